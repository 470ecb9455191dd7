//! Trials: combinations of settings, each cross-validated over bags.

use super::nothing_to_compare;
use crate::config::ConfigFile;
use crate::method::MethodSetting;
use anyhow::Result;
use easyllp::fit::{OptimizerConfig, PENALTIES, Penalty};
use easyllp::model::RowsForm;
use easyllp::session::{Requires, Supports};
use easyllp::{
    Bags, FitConfig, Method, ModelSpec, Predictions, Rows, Session, bagging,
    classes::CountOrder,
    loss::{Link, LossName},
    model::{AnyModel, Model, Scorer},
    optim::{Adam, Lbfgs},
    train::Optimizer,
};
use ndarray::Array2;
use std::num::NonZeroUsize;

/// Lists of settings to try; empty lists are filled from the file or the defaults.
pub(super) struct Lists<'l> {
    pub(super) methods: &'l [MethodSetting],
    pub(super) models: &'l [ModelSpec],
    pub(super) losses: &'l [LossName],
    pub(super) penalties: &'l [f64],
    pub(super) rates: &'l [f64],
    pub(super) epochs: &'l [NonZeroUsize],
}

/// The completed lists, and the settings that all trials share.
pub(super) struct Grid {
    base: FitConfig,
    order: CountOrder,
    methods: Vec<MethodSetting>,
    models: Vec<ModelSpec>,
    losses: Vec<LossName>,
    penalties: Vec<f64>,
    rates: Vec<f64>,
    epochs: Vec<NonZeroUsize>,
}

/// One combination of settings.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Trial {
    /// The method as given.
    pub(super) method: MethodSetting,
    pub(super) config: FitConfig,
}

/// The given values, or those of a file, or the defaults.
fn values<T: Copy>(given: &[T], of_file: Option<T>, defaults: &[T]) -> Vec<T> {
    match (given, of_file) {
        ([], Some(value)) => vec![value],
        ([], None) => defaults.to_vec(),
        (given, _) => given.to_vec(),
    }
}

impl Grid {
    pub(super) fn new(lists: &Lists, file: &ConfigFile) -> Result<Self> {
        let order = file.data.classes()?.1;
        let base = file.fit_config(Some(&order)).map_err(crate::output::refused_settings)?;
        let OptimizerConfig { l2, lr, epochs, .. } = base.optimizer;
        let l2 = match l2 {
            Some(Penalty::Value(l2)) => Some(l2),
            Some(Penalty::Auto) | None => None,
        };
        let ten = NonZeroUsize::new(10).expect("ten is positive");
        Ok(Self {
            methods: if lists.methods.is_empty() {
                vec![file.method.clone()]
            } else {
                lists.methods.to_vec()
            },
            models: if lists.models.is_empty() { vec![file.model.clone()] } else { lists.models.to_vec() },
            losses: values(lists.losses, base.loss, &[]),
            penalties: values(lists.penalties, l2, &[]),
            rates: values(lists.rates, lr, &[0.0003, 0.001, 0.003]),
            epochs: values(lists.epochs, epochs, &[ten]),
            base,
            order,
        })
    }

    /// All combinations, or a random sample of them.
    pub(super) fn trials(&self, bags: &Bags, wanted: Option<NonZeroUsize>) -> Result<Vec<Trial>> {
        let mut trials = Vec::new();
        for method in &self.methods {
            for model in &self.models {
                self.add_trials(method, model, bags, &mut trials)?;
            }
        }
        if let Some(wanted) = wanted.map(NonZeroUsize::get).filter(|&wanted| wanted < trials.len()) {
            // The bagging of trials into one drawn part and the rest.
            let drawn = bagging::random(trials.len(), &bagging::Sizes::Fixed(wanted), self.base.seed)?;
            let mut places: Vec<u32> = drawn.members(0).to_vec();
            places.sort_unstable();
            trials = places.into_iter().map(|place| trials[place as usize].clone()).collect();
        }
        if trials.len() < 2 { Err(nothing_to_compare()) } else { Ok(trials) }
    }

    /// The combinations of a method and a model.
    fn add_trials(
        &self,
        method: &MethodSetting,
        model: &ModelSpec,
        bags: &Bags,
        trials: &mut Vec<Trial>,
    ) -> Result<()> {
        let settings = method.in_class_order(Some(&self.order))?;
        let takes_any_loss = settings.supports() == Supports::Any
            && settings.requires() == Requires::AnyOptimizer
            && *model != ModelSpec::Linear;
        let base = FitConfig { method: settings, model: model.clone(), ..self.base.clone() };
        let optimizer = base.optimizer_choice().name;
        let usual = LossName::cross_entropy(bags.n_classes());
        let losses = match &self.losses[..] {
            [] if takes_any_loss => vec![usual, LossName::Squared],
            [] => vec![usual],
            given => given.to_vec(),
        };
        // A fold's model sees this share of the bags; penalties of linear models go by the number of labels.
        let n_labels = bags.n_bags() as f64;
        let penalties = match &self.penalties[..] {
            [] if optimizer == "L-BFGS" => PENALTIES.map(|penalty| penalty / n_labels).to_vec(),
            [] => vec![0.0, 1.0],
            given => given.to_vec(),
        };
        for &loss in &losses {
            let mut add = |optimizer| {
                let config = FitConfig { loss: Some(loss), optimizer, ..base.clone() };
                trials.push(Trial { method: method.clone(), config });
            };
            let unset = OptimizerConfig::default();
            if optimizer == "SGD" {
                self.rates.iter().for_each(|&lr| add(OptimizerConfig { lr: Some(lr), ..unset }));
                continue;
            }
            for l2 in penalties.iter().map(|&l2| Some(Penalty::Value(l2))) {
                if optimizer == "L-BFGS" {
                    add(OptimizerConfig { l2, ..unset });
                    continue;
                }
                let batch_size = base.optimizer.batch_size;
                for &lr in &self.rates {
                    for &epochs in &self.epochs {
                        add(OptimizerConfig { l2, lr: Some(lr), epochs: Some(epochs), batch_size });
                    }
                }
            }
        }
        Ok(())
    }
}

impl Trial {
    /// What distinguishes it from other trials, as text.
    pub(super) fn words(&self) -> String {
        let FitConfig { method, model, loss, optimizer, .. } = &self.config;
        let mut words = format!("{method}, {model}, {}", loss.map_or("", LossName::as_str));
        if let Some(Penalty::Value(l2)) = optimizer.l2 {
            let l2 = if optimizer.lr.is_some() { l2.to_string() } else { format!("{l2:.3e}") };
            words = format!("{words}, l2 {l2}");
        }
        if let Some(lr) = optimizer.lr {
            words = format!("{words}, lr {lr}");
        }
        if let Some(epochs) = optimizer.epochs {
            words = format!("{words}, {epochs} epochs");
        }
        words
    }

    /// All settings, as the key of the journal.
    pub(super) fn key(&self) -> Result<String> {
        Ok(serde_json::to_string(&self.config)?)
    }

    fn optimizer(&self) -> Optimizer {
        let OptimizerConfig { l2, epochs, lr, batch_size } = self.config.optimizer;
        let l2 = if let Some(Penalty::Value(l2)) = l2 { l2 } else { 0.0 };
        if self.config.optimizer_choice().name != "Adam" {
            return Optimizer::Lbfgs(Lbfgs { l2, ..Lbfgs::default() });
        }
        let adam = Adam::default();
        Optimizer::Adam(Adam {
            weight_decay: l2,
            epochs: epochs.map_or(adam.epochs, NonZeroUsize::get),
            learning_rate: lr.unwrap_or(adam.learning_rate),
            batch_size: batch_size.map_or(adam.batch_size, NonZeroUsize::get),
            ..adam
        })
    }

    /// Out-of-fold scores of all rows.
    pub(super) fn cross_scores(
        &self,
        form: RowsForm,
        rows: &Rows,
        folds: &[bagging::Split],
        n_classes: usize,
    ) -> Result<Array2<f32>> {
        let FitConfig { method, model, loss, optimizer, seed, .. } = &self.config;
        let loss = loss.unwrap_or(LossName::cross_entropy(n_classes)).training()?;
        let untrained = model.build(form, n_classes, *seed)?;
        let mut scores = Array2::zeros((rows.n_rows(), untrained.n_scores()));
        for bagging::Split { train, held_out } in folds {
            let mut session = Session::new(untrained.clone(), rows, train, loss);
            session.set_optimizer(self.optimizer());
            session.set_learning_rate(optimizer.lr);
            session.set_seed(*seed);
            session.run(method)?;
            let (model, _): (AnyModel, _) = session.finish();
            let of_fold = model.scores(rows)?;
            for row in held_out.rows() {
                scores.row_mut(row as usize).assign(&of_fold.row(row as usize));
            }
        }
        Ok(scores)
    }
}

/// A trial with its out-of-fold scores.
pub(super) struct Scored {
    pub(super) trial: Trial,
    scores: Array2<f32>,
    link: Link,
}

impl Scored {
    pub(super) fn new(trial: Trial, scores: Array2<f32>) -> Result<Self> {
        let loss = trial.config.loss.unwrap_or(LossName::Logistic);
        Ok(Self { link: loss.training()?.link(), trial, scores })
    }

    pub(super) fn predictions(&self) -> easyllp::Result<Predictions<'_>> {
        Predictions::new(self.scores.view(), self.link)
    }
}

pub(super) fn bytes_of(scores: &Array2<f32>) -> Vec<u8> {
    scores.iter().flat_map(|score| score.to_le_bytes()).collect()
}

/// The scores in a record, if their number is right.
pub(super) fn scores_of(bytes: &[u8], n_rows: usize) -> Option<Array2<f32>> {
    let (numbers, rest) = bytes.as_chunks::<4>();
    if n_rows == 0 || !rest.is_empty() || numbers.len() % n_rows != 0 {
        return None;
    }
    let scores = numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    Array2::from_shape_vec((n_rows, numbers.len() / n_rows), scores).ok()
}

/// A fingerprint of the features.
pub(super) fn fingerprint(rows: &Rows) -> u64 {
    let all = rows.as_dense().expect("rows of files are dense").all();
    let bits = all.dense.iter().map(|value| value.to_bits()).chain(all.categories.iter().copied());
    bits.fold(0xcbf2_9ce4_8422_2325, |hash, bits| (hash ^ u64::from(bits)).wrapping_mul(0x0100_0000_01b3))
}
