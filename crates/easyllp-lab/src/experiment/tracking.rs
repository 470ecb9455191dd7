//! The paper's figure *tracking*: the loss during training with EasyLLP, true and estimated from
//! bags, with bags that are regrouped in every epoch.

use super::method::MethodName;
use super::{check_all, seed_of, written_out};
use crate::data::{Data, DatasetName, Task};
use crate::error::Result;
use crate::experiment::diverged::until_divergence;
use crate::point::Point;
use crate::runner::{Cell, Tell};
use easyllp::bagging::{self, Sizes};
use easyllp::fit::FitEvent;
use easyllp::train::EarlyStopping;
use easyllp::{
    Bags, ModelSpec, Predictions, Session,
    correction::{BagWeights, Correction, LabelPrior},
    loss::LossName,
    metrics,
    model::Scorer,
    optim::Adam,
    train::{Optimizer, Progress},
};
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;

/// The settings of the experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Tracking {
    /// The data set.
    pub dataset: DatasetName,
    /// The task.
    pub task: String,
    /// The model.
    pub model: String,
    /// The bag size.
    pub bag_size: usize,
    /// The number of epochs of Adam.
    pub epochs: usize,
    /// The number of replicas.
    pub replicas: u32,
}

impl Tracking {
    pub(super) fn check(&self) -> Result<(), String> {
        self.model.parse::<ModelSpec>().map_err(|error| error.to_string())?;
        check_all(&[
            ("`bag-size` must be at least 1", self.bag_size > 0),
            ("`epochs` must be at least 1", self.epochs > 0),
            ("`replicas` must be at least 1", self.replicas > 0),
        ])
    }

    pub(super) fn cells<'d>(&self, data: &'d Data, seed: u64) -> Result<Vec<Cell<'d>>> {
        let task = data.tasks(std::slice::from_ref(&self.task))?.swap_remove(0);
        let Self { model, bag_size, epochs, .. } = self;
        let band = format!(
            "tracking, {}, {}, {}, {bag_size} rows, {epochs} rounds, seed {seed}",
            data.kept_as(),
            task.name,
            written_out(model)
        );
        let cell = |replica: u32| {
            let (this, task) = (self.clone(), task.clone());
            Cell {
                key: format!("{band}, replica {replica}"),
                band: band.clone(),
                cost: (epochs * data.train.n_rows()) as f64,
                rows: (epochs * data.train.n_rows()) as u64,
                is_wide: false,
                work: Box::new(move |tell| this.train(data, &task, replica, seed, tell)),
            }
        };
        Ok((1..=self.replicas).map(cell).collect())
    }

    fn train(
        &self,
        data: &Data,
        task: &Task,
        replica: u32,
        seed: u64,
        tell: &Tell,
    ) -> Result<Option<Vec<Point>>> {
        let seed = seed_of(seed, &format!("tracking, {}, {replica}", self.dataset.as_str()));
        let n_rows = data.train.n_rows();
        let singles = Bags::from_labels(bagging::random(n_rows, &Sizes::Fixed(1), seed)?, &task.train, 2)?;
        let loss = LossName::Logistic.training()?;
        let model = self.model.parse::<ModelSpec>()?.build(data.form(), 2, seed)?;
        let mut points = Vec::new();
        let mut epoch = 0;
        let mut figure = |model: &(dyn Scorer + 'static)| {
            epoch += 1;
            let scores = model.scores(&data.train)?;
            let truth = metrics::log_loss(&Predictions::new(scores.view(), loss.link())?, &task.train)?;
            let partition = bagging::random(n_rows, &Sizes::Fixed(self.bag_size), seed.wrapping_add(epoch))?;
            let bags = Bags::from_labels(partition, &task.train, 2)?;
            let prior = LabelPrior::pooled(&bags);
            let estimate = |correction: Correction| corrected_log_loss(&scores, &bags, &correction);
            let found = [
                ("true", truth),
                ("from bags", estimate(Correction::Paper(prior))?),
                ("from bags, centred", estimate(Correction::Centred(BagWeights::Equal))?),
            ];
            points.extend(found.map(|(series, value)| Point {
                panel: task.name.clone(),
                // Fields of CSV have no commas.
                series: series.replace(',', ""),
                x: epoch as f64,
                replica,
                measure: "training loss".into(),
                value,
            }));
            // Every round counts; none is gone back to.
            Ok(-(epoch as f64))
        };
        let judge = EarlyStopping { metric: &mut figure, patience: self.epochs, smoothing: 1 };
        let mut is_over = false;
        let mut watch = |event: FitEvent| {
            if matches!(event, FitEvent::Progress(Progress::Epoch(_))) && tell(n_rows as u64).is_break() {
                is_over = true;
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        };
        let mut session = Session::new(model, &data.train, &singles, loss);
        session.set_optimizer(Optimizer::Adam(Adam { epochs: self.epochs, ..Adam::default() }));
        session.set_seed(seed);
        session.set_early_stopping(judge);
        session.set_watch(&mut watch);
        until_divergence(session.run(&MethodName::EASYLLP.with(&[("rebag", self.bag_size)])?))?;
        drop(session);
        Ok((!is_over).then_some(points))
    }
}

/// The mean of softplus(f) − A·f: the log loss, corrected.
fn corrected_log_loss(
    scores: &ndarray::Array2<f32>,
    bags: &Bags,
    correction: &Correction,
) -> easyllp::Result<f64> {
    let targets = correction.soft(bags)?;
    let of_row = |(&score, &target): (&f32, &f32)| {
        let score = f64::from(score);
        score.max(0.0) + (-score.abs()).exp().ln_1p() - f64::from(target) * score
    };
    let sum: f64 = bags
        .rows()
        .iter()
        .map(|&row| row as usize)
        .map(|row| of_row((&scores[[row, 0]], &targets.values()[[row, 0]])))
        .sum();
    Ok(sum / bags.n_members() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is kept is found by these words: one that changes is work that is lost.
    #[test]
    fn keys_name_the_data_by_what_it_is_kept_as() {
        let key = |dataset: DatasetName, task: &str| {
            let data = crate::data::load(dataset, "nowhere".as_ref()).unwrap();
            let (task, model) = (task.into(), "linear".into());
            let tracking = Tracking { dataset, task, model, bag_size: 32, epochs: 7, replicas: 1 };
            tracking.cells(&data, 1).unwrap()[0].key.clone()
        };
        let of_digits = "tracking, optdigits, even vs odd, linear, 32 rows, 7 rounds, seed 1, replica 1";
        assert_eq!(key(DatasetName::Optdigits, "even-vs-odd"), of_digits);
        assert!(
            key(DatasetName::SyntheticCtr, "label")
                .starts_with("tracking, synthetic-ctr, stronger effects, click")
        );
    }
}
