//! A fitted model and its training log.

use super::{FitConfig, StageLog, StageOptimizer};
use crate::artifact::ModelFile;
use crate::bags::Bags;
use crate::classes::Classes;
use crate::error::{Error, Result};
use crate::estimate::{Estimate, Estimator};
use crate::loss::Link;
use crate::model::{AnyModel, ImageShape, Scorer};
use crate::predictions::Predictions;
use crate::prior::LabelPrior;
use crate::rows::Rows;
use crate::session::validation::ValidationBags;
use crate::table::Encoder;
use crate::train::TrainLog;
use crate::training_bags::TrainingBags;
use ndarray::Array2;
use std::collections::BTreeMap;
use std::path::Path;

/// A fitted model: predict, evaluate, save, and inspect its settings, log and validation metrics.
#[derive(Debug, Clone)]
pub struct Fitted<M = AnyModel> {
    /// The model, trained on all bags.
    pub model: M,
    /// What the scores mean.
    pub link: Link,
    /// The label prior of the training rows.
    pub prior: LabelPrior,
    /// The names of the classes.
    pub classes: Classes,
    /// The settings of the fit.
    pub config: FitConfig,
    /// The stages of training on all bags; with validation bags, only the stages up to the best
    /// model.
    pub stages: Vec<StageLog>,
    /// Messages of the method, such as why a stage was skipped.
    pub notes: Vec<String>,
    /// The validation bags, if any were held out.
    pub validation: Option<Validation>,
    pub(super) loss: String,
    /// The name of a method that is not built in.
    pub(super) foreign_method: Option<String>,
    pub(super) encoder: Option<Encoder>,
    pub(super) image: Option<ImageShape>,
    pub(super) n_bags: usize,
    pub(super) n_rows: usize,
    pub(super) fingerprint: String,
    pub(super) training_bags: TrainingBags,
}

/// Validation bags, with scores of their rows by models that were trained on the other bags.
#[derive(Debug, Clone)]
pub struct Validation {
    /// The row indices of the validation bags in the table.
    pub rows: Vec<u32>,
    /// The validation bags, with indices into these rows.
    pub bags: Bags,
    /// The number of bags that the models were trained on.
    pub n_others: usize,
    /// The number of candidates that were compared: penalties, epochs or rounds.
    pub n_candidates: usize,
    /// Scores for evaluation: for each fold, scores by the model that was best on the other folds,
    /// so that no bag evaluates its own choice. `None` if there was more than one candidate and
    /// fewer than 4 validation bags.
    pub scores: Option<Array2<f32>>,
    /// The folds, over the same rows as `bags`; a single fold with all bags if there was only one
    /// candidate.
    pub folds: Vec<Bags>,
    /// The stages up to the one that was best on all validation bags.
    pub stages: Vec<StageLog>,
}

impl Validation {
    pub(super) fn new(
        held_out: ValidationBags,
        n_others: usize,
        stages: Vec<StageLog>,
        n_candidates: usize,
        scores: Option<Array2<f32>>,
    ) -> Self {
        let ValidationBags { members: rows, bags, folds, .. } = held_out;
        let folds = match n_candidates {
            1 => vec![bags.clone()],
            _ => folds.into_iter().map(|fold| fold.reporting).collect(),
        };
        Self { rows, bags, n_others, n_candidates, scores, folds, stages }
    }

    /// Every metric that the validation bags allow, with its name; `None` without `scores`. Metrics
    /// are estimated per fold and averaged by rows.
    fn metrics(&self, link: Link) -> Result<Option<Vec<(&'static str, Estimate)>>> {
        let Some(scores) = &self.scores else { return Ok(None) };
        let predictions = Predictions::new(scores.view(), link)?;
        let of = |bags: &Bags| Estimator::new(bags)?.metrics(&predictions);
        let of_folds: Vec<_> = self.folds.iter().map(of).collect::<Result<_>>()?;
        let mean = |name: &'static str| {
            let in_fold = |(fold, of_fold): (&Bags, &Vec<(&'static str, Estimate)>)| {
                let (_, estimate) = of_fold.iter().find(|(other, _)| *other == name)?;
                Some((fold.n_members() as f64, *estimate))
            };
            let parts: Option<Vec<_>> = self.folds.iter().zip(&of_folds).map(in_fold).collect();
            parts.map(|parts| (name, Estimate::mean_of(&parts)))
        };
        Ok(of_folds.first().map(|first| first.iter().filter_map(|(name, _)| mean(name)).collect()))
    }
}

impl<M> Fitted<M> {
    /// The optimizer of the last stage, with the chosen penalty or number of epochs.
    pub fn optimizer(&self) -> &StageOptimizer {
        self.stages.last().map_or(&StageOptimizer::None, |stage| &stage.optimizer)
    }

    /// The log of the last stage on all bags.
    pub fn log(&self) -> Option<&TrainLog> {
        self.stages.last().map(|stage| &stage.log)
    }

    /// Row-level metrics estimated from the validation bags, with their names. They describe models
    /// of the other bags, and no bag evaluates its own choice. `None` if too few bags were held
    /// out.
    pub fn validation_metrics(&self) -> Result<Option<Vec<(&'static str, Estimate)>>> {
        self.validation.as_ref().map_or(Ok(None), |validation| validation.metrics(self.link))
    }

    /// The description of the training in a model file.
    fn settings(&self) -> BTreeMap<String, String> {
        let mut settings = vec![("bags", self.n_bags.to_string()), ("rows", self.n_rows.to_string())];
        if let [_, _, ..] = &self.stages[..] {
            let names: Vec<&str> = self.stages.iter().map(|stage| stage.stage.as_str()).collect();
            settings.push(("stages", names.join(", ")));
        }
        if let Some(log) = self.log()
            && matches!(self.optimizer(), StageOptimizer::Adam(_) | StageOptimizer::Lbfgs(_))
        {
            settings.push(("iterations", log.epochs.len().to_string()));
        }
        if !self.notes.is_empty() {
            settings.push(("notes", self.notes.join("; ")));
        }
        settings.extend(match self.optimizer() {
            StageOptimizer::Lbfgs(lbfgs) => {
                vec![("optimizer", "L-BFGS".into()), ("l2", format!("{:.3e}", lbfgs.l2))]
            }
            StageOptimizer::Adam(adam) => vec![
                ("optimizer", "Adam".into()),
                ("epochs", adam.epochs.to_string()),
                ("lr", adam.learning_rate.to_string()),
                ("batch size", adam.batch_size.to_string()),
                ("l2", adam.weight_decay.to_string()),
            ],
            StageOptimizer::Sgd(sgd) => vec![("optimizer", "SGD".into()), ("lr", sgd.scale.to_string())],
            StageOptimizer::None => Vec::new(),
        });
        settings.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

impl<M: Scorer> Fitted<M> {
    /// Scores of rows: one column for two classes, else one per class.
    pub fn scores(&self, rows: &Rows) -> Result<Array2<f32>> {
        self.model.scores(rows)
    }

    /// The probability of each class for each row: N × C.
    pub fn predict_proba(&self, rows: &Rows) -> Result<Array2<f64>> {
        self.link.probabilities_of(self.scores(rows)?.view(), self.classes.len())
    }

    /// Row-level metrics estimated from bags that were not used for training, with their names.
    pub fn evaluate(&self, rows: &Rows, bags: &Bags) -> Result<Vec<(&'static str, Estimate)>> {
        let scores = self.scores(rows)?;
        Estimator::new(bags)?.metrics(&Predictions::new(scores.view(), self.link)?)
    }
}

impl Fitted {
    /// Writes the model to a file, atomically.
    pub fn save(self, path: &Path) -> Result<()> {
        self.into_file()?.save(path)
    }

    /// The content of the model's file.
    pub fn into_file(self) -> Result<ModelFile> {
        let settings = self.settings();
        let method = self.foreign_method.clone().unwrap_or_else(|| self.config.method.name().to_owned());
        Ok(ModelFile {
            encoder: self.encoder.ok_or(Error::NoEncoder)?,
            classes: self.classes,
            loss: self.loss,
            link: self.link,
            method,
            name: self.config.model.clone(),
            config: self.foreign_method.is_none().then_some(self.config),
            prior: self.prior,
            settings,
            fingerprint: self.fingerprint,
            training_bags: self.training_bags,
            image: self.image,
            model: self.model,
        })
    }
}
