//! Train one model at a time, with any method.

use super::{EpochLog, MethodName, Setting, told};
use crate::error::Result;
use crate::experiment::diverged::until_divergence;
use crate::point::Point;
use crate::runner::{Cell, Tell};
use easyllp::fit::FitEvent;
use easyllp::train::EarlyStopping;
use easyllp::{
    Bags, ModelSpec, Partition, Session,
    loss::LossName,
    model::{Model, Scorer},
};
use ndarray::Axis;
use std::ops::ControlFlow;
use std::sync::Arc;

/// A training run.
pub(super) struct Training<'d> {
    pub(super) setting: Arc<Setting<'d>>,
    /// The index of its task.
    pub(super) task: usize,
    pub(super) method: MethodName,
    pub(super) size: usize,
    pub(super) replica: u32,
}

impl<'d> Training<'d> {
    pub(super) fn cell(self) -> Cell<'d> {
        let Self { setting, task, method, size, replica } = &self;
        let band =
            format!("{}, {}, {}, {size} rows", setting.key(), method.as_str(), setting.tasks[*task].name);
        let (of_model, start) =
            if setting.accuracy.model == "linear" { (1.0, ", drawn start") } else { (20.0, "") };
        Cell {
            key: format!("{band}, replica {replica}{start}"),
            band,
            cost: of_model * setting.rows_in_all(),
            rows: setting.rows_learnt_from(),
            is_wide: false,
            work: Box::new(move |tell| self.train(tell)),
        }
    }

    fn train(&self, tell: &Tell) -> Result<Option<Vec<Point>>> {
        let Self { setting, method, size, replica, .. } = self;
        let (accuracy, data, task) = (&setting.accuracy, setting.data, &setting.tasks[self.task]);
        let rebag = (accuracy.rebag && *method == MethodName::EASYLLP).then_some(*size);
        let (mut bags, held_out) = setting.deal(&setting.partition(*replica, *size)?, task, *replica)?;
        if rebag.is_some() {
            // Rows that are regrouped in every round come as bags of one; those held out stay in their bags.
            bags = row_by_row(&bags, &task.train)?;
        }
        let apart = held_out.map(|held_out| (data.train.select(&held_out.rows), held_out));
        let loss = LossName::Logistic.training()?;
        let mut log = EpochLog::default();
        let mut metric = |model: &(dyn Scorer + 'static)| {
            let of_bags = apart.as_ref().map(|(rows, _)| model.scores(rows)).transpose()?;
            let judged = apart.as_ref().zip(of_bags.as_ref());
            let judged = judged.map(|((_, held_out), scores)| (held_out, scores.view()));
            let metric = log.see(task, model.scores(&data.test)?.view(), judged, loss.link())?;
            Ok(metric.unwrap_or(0.0))
        };
        let judge = EarlyStopping { metric: &mut metric, patience: accuracy.epochs, smoothing: 1 };
        let mut is_over = false;
        let mut progress = told(tell, 1, &mut is_over);
        let seed = setting.seed_of(&format!("replica {replica}, {}, {}", task.name, method.as_str()));
        let mut model = accuracy.model.parse::<ModelSpec>()?.build(data.form(), 2, seed)?;
        if let Some(linear) = model.as_linear_mut() {
            let start = setting.start(task, *method, *replica).insert_axis(Axis(1));
            linear.parameters_mut().blocks_mut()[0].set(start.view())?;
        }
        // Methods that go by rounds go one in a round of Adam's.
        let epochs = if method.goes_by_rounds() { 1 } else { accuracy.epochs };
        let rebag = rebag.map(|size| ("rebag", size));
        let parameters: Vec<_> = rebag.into_iter().chain([("rounds", accuracy.epochs)]).collect();
        let mut session = Session::new(model, &data.train, &bags, loss);
        session.set_optimizer(setting.trainer(epochs, seed).optimizer);
        session.set_seed(seed);
        session.set_early_stopping(judge);
        let mut watch = |event: FitEvent| match event {
            FitEvent::Progress(event) => progress(event),
            FitEvent::Started { .. } => ControlFlow::Continue(()),
        };
        session.set_watch(&mut watch);
        until_divergence(session.run(&method.with(&parameters)?))?;
        drop(session);
        drop(progress);
        Ok((!is_over).then(|| log.points(&task.name, *method, *size, *replica)))
    }
}

/// The rows of these bags as bags of one, with their labels.
fn row_by_row(bags: &Bags, labels: &[u32]) -> Result<Bags> {
    let rows = bags.rows();
    let partition = Partition::new(bags.n_rows(), rows.iter().map(|&row| [row]))?;
    Ok(Bags::from_labels(partition, labels, 2)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use easyllp::bagging::{self, Sizes};

    #[test]
    fn rows_of_bags_are_told_one_by_one() {
        let labels: Vec<u32> = (0..20).map(|row| u32::from(row % 3 == 0)).collect();
        let partition = bagging::random(20, &Sizes::Fixed(4), 1).unwrap();
        let parts = bagging::split(&Bags::from_labels(partition, &labels, 2).unwrap(), 0.4, 1).unwrap();
        let singles = row_by_row(&parts.train, &labels).unwrap();
        assert_eq!((singles.n_bags(), singles.n_rows()), (12, 20));
        assert!(singles.rows().iter().all(|row| !parts.held_out.rows().contains(row)));
        for bag in 0..singles.n_bags() {
            let label = labels[singles.members(bag)[0] as usize];
            assert_eq!(singles.counts_of(bag)[1].to_bits(), f64::from(label).to_bits());
        }
    }
}
