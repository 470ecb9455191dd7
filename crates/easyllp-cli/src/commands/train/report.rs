//! The output of `train`: validation metrics, and the models that they describe.

use crate::diagnosis::Shown;
use crate::figures::{Figure, ON_ASTERISKS, positive_class, table};
use crate::output::thousands;
use anyhow::Result;
use easyllp::fit::{StageLog, StageOptimizer};
use easyllp::{FitConfig, Fitted, train::TrainLog};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// A trained model, for JSON or text.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// The model file.
    model: PathBuf,
    /// The settings of the fit.
    config: FitConfig,
    stages: Vec<StageReport>,
    /// None without validation bags.
    validation: Option<ValidationReport>,
    #[serde(skip)]
    positive_class: String,
}

#[derive(Debug, Serialize)]
struct StageReport {
    stage: String,
    optimizer: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    l2: Option<f64>,
    #[serde(flatten)]
    log: TrainLog,
}

#[derive(Debug, Serialize)]
struct ValidationReport {
    bags: usize,
    training_bags: usize,
    folds: usize,
    /// The number of candidates compared.
    candidates: usize,
    /// Whether metrics are shown.
    shown: Shown,
    /// None if they are withheld or there are too few validation bags.
    metrics: Option<Vec<Figure>>,
    /// The chosen penalty or number of epochs.
    #[serde(skip)]
    chosen: &'static str,
}

impl StageReport {
    fn new(StageLog { stage, optimizer, log }: &StageLog) -> Self {
        let (optimizer, l2) = match optimizer {
            StageOptimizer::Lbfgs(lbfgs) => ("L-BFGS", Some(lbfgs.l2)),
            StageOptimizer::Adam(adam) => ("Adam", Some(adam.weight_decay)),
            StageOptimizer::Sgd(_) => ("SGD", None),
            StageOptimizer::None => ("none", None),
        };
        Self { stage: stage.clone(), optimizer, l2, log: log.clone() }
    }
}

/// A stage, as text.
pub(super) fn words(stage: &StageLog) -> String {
    let optimizer = match &stage.optimizer {
        StageOptimizer::Lbfgs(lbfgs) => format!("L-BFGS, l2 {:.3e}", lbfgs.l2),
        StageOptimizer::Adam(adam) => format!(
            "Adam, lr {}, batch size {}, l2 {}",
            adam.learning_rate, adam.batch_size, adam.weight_decay
        ),
        StageOptimizer::Sgd(sgd) => format!("SGD, lr {}", sgd.scale),
        StageOptimizer::None => "no optimizer".into(),
    };
    format!("{}: {optimizer}, {} iterations, {:?}", stage.stage, stage.log.epochs.len(), stage.log.stopped)
}

impl Report {
    pub(super) fn new(fitted: &Fitted, shown: Shown, model: &Path) -> Result<Self> {
        let validation = match &fitted.validation {
            None => None,
            Some(validation) => {
                let metrics = if shown.is_withheld() { None } else { fitted.validation_metrics()? };
                let figure = |(name, estimate)| Figure { name, from_bags: Some(estimate), truth: None };
                let chosen = match (fitted.optimizer(), &fitted.stages[..]) {
                    (StageOptimizer::Lbfgs(_), [_]) => "penalty",
                    (StageOptimizer::Adam(_), [_]) => "epoch",
                    _ => "model",
                };
                Some(ValidationReport {
                    bags: validation.bags.n_bags(),
                    training_bags: validation.n_others,
                    folds: validation.folds.len(),
                    candidates: validation.n_candidates,
                    shown,
                    metrics: metrics.map(|metrics| metrics.into_iter().map(figure).collect()),
                    chosen,
                })
            }
        };
        Ok(Self {
            model: model.to_owned(),
            config: fitted.config.clone(),
            stages: fitted.stages.iter().map(StageReport::new).collect(),
            validation,
            positive_class: positive_class(&fitted.classes),
        })
    }

    /// The metrics, as text, if there are any.
    pub(super) fn text(&self) -> String {
        let Some(validation) = &self.validation else { return String::new() };
        let ValidationReport { shown, metrics, candidates, folds, chosen, .. } = validation;
        let (n_bags, n_others) = (thousands(validation.bags), thousands(validation.training_bags));
        if shown.is_withheld() {
            return String::new();
        }
        let Some(metrics) = metrics else {
            return format!(
                "No validation metrics: {n_bags} validation bags are too few to choose a model on some and evaluate it on the \
                 others. Hold out at least 4 bags (--holdout).\n"
            );
        };
        let mut table = table(metrics).to_string();
        if metrics.iter().filter_map(|metric| metric.from_bags).any(|estimate| estimate.outside_range) {
            table = format!("{table}\n{ON_ASTERISKS}");
        }
        let which = if *candidates == 1 {
            format!("a model trained on the other {n_others} bags.")
        } else {
            format!(
                "models trained on the other {n_others} bags.\nThe validation bags are split into {folds} folds. Each fold evaluates \
                 the {chosen} that is best on the others,\nso that no bag evaluates what it chose."
            )
        };
        format!(
            "{table}\nValidation metrics, from {n_bags} bags held out of training. They describe {which}\nThe saved model is trained \
             on all bags.{}\n",
            self.positive_class
        )
    }
}
