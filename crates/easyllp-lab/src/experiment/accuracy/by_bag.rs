//! Linear models of all tasks of a replica, for methods with a loss of whole bags: their bags are
//! the same, so they are columns of one matrix, too.

use super::{EpochLog, MethodName, Setting, told};
use crate::error::Result;
use crate::experiment::diverged::until_divergence;
use crate::point::Point;
use crate::runner::{Cell, Tell};
use easyllp::method::SideBySide;
use easyllp::train::{Aim, EarlyStopping};
use easyllp::{
    loss::LossName,
    model::{LinearModel, Model, Scorer},
};
use ndarray::{Array2, s};
use std::sync::Arc;

/// All tasks of a replica.
pub(super) struct ByBag<'d> {
    setting: Arc<Setting<'d>>,
    method: MethodName,
    size: usize,
    replica: u32,
}

/// Whether a method's models can be columns: linear ones on numeric features, with a loss of whole
/// bags. With two tasks they cannot: a linear model of two classes has one score.
pub(super) fn suits(setting: &Setting, method: MethodName) -> bool {
    setting.accuracy.is_linear_over_numbers() && setting.tasks.len() > 2 && method.judges_bags()
}

impl<'d> ByBag<'d> {
    /// The training runs for a method.
    pub(super) fn all(setting: &Arc<Setting<'d>>, method: MethodName, replica: u32) -> Vec<Cell<'d>> {
        let of_size = |&size| Self { setting: Arc::clone(setting), method, size, replica }.cell();
        setting.accuracy.sizes_for(method).iter().map(of_size).collect()
    }

    fn cell(self) -> Cell<'d> {
        let Self { setting, method, size, replica } = &self;
        let band = format!("{}, {}, {}, {size} rows", setting.key(), method.as_str(), setting.tasks_named());
        Cell {
            key: format!("{band}, replica {replica}"),
            band,
            // A column more costs a tenth of a model alone.
            cost: (1.0 + 0.1 * setting.tasks.len() as f64) * setting.rows_in_all(),
            rows: setting.rows_learnt_from() * setting.tasks.len() as u64,
            is_wide: false,
            work: Box::new(move |tell| self.train(tell)),
        }
    }

    fn train(&self, tell: &Tell) -> Result<Option<Vec<Point>>> {
        let Self { setting, method, size, replica } = self;
        let (data, tasks) = (setting.data, &setting.tasks);
        let partition = setting.partition(*replica, *size)?;
        let deal = |task| setting.deal(&partition, task, *replica);
        let dealt = tasks.iter().map(deal).collect::<Result<Vec<_>>>()?;
        let loss = LossName::Logistic.training()?;
        let objectives: Vec<_> = dealt.iter().filter_map(|(bags, _)| method.objective(bags)).collect();
        let rows_held_out = dealt[0].1.as_ref().map(|held_out| data.train.select(&held_out.rows));
        let mut epoch_logs = vec![EpochLog::default(); tasks.len()];
        let mut metric = |model: &LinearModel| {
            let of_test = model.scores(&data.test)?;
            let of_bags = rows_held_out.as_ref().map(|rows| model.scores(rows)).transpose()?;
            for (place, ((task, (_, held_out)), log)) in
                tasks.iter().zip(&dealt).zip(&mut epoch_logs).enumerate()
            {
                let column = s![.., place..=place];
                let judged = held_out.as_ref().zip(of_bags.as_ref());
                let judged = judged.map(|(held_out, scores)| (held_out, scores.slice(column)));
                log.see(task, of_test.slice(column), judged, loss.link())?;
            }
            // Every round counts; none is gone back to.
            Ok(0.0)
        };
        let judge = EarlyStopping { metric: &mut metric, patience: setting.accuracy.epochs, smoothing: 1 };
        let mut is_over = false;
        let mut watch = told(tell, tasks.len(), &mut is_over);
        let seed = setting.seed_of(&format!("replica {replica}, {}, {size} rows", method.as_str()));
        let mut model = self.start()?;
        let mut objective = SideBySide::new(objectives)?;
        let trainer = setting.trainer(setting.accuracy.epochs, seed);
        until_divergence(trainer.fit_watched(
            &mut model,
            &data.train,
            Aim::Bags(&mut objective),
            &mut watch,
            Some(judge),
        ))?;
        drop(watch);
        let points = tasks
            .iter()
            .zip(&epoch_logs)
            .flat_map(|(task, log)| log.points(&task.name, *method, *size, *replica));
        Ok((!is_over).then(|| points.collect()))
    }

    /// The initial models, each as if it was trained alone.
    fn start(&self) -> Result<LinearModel> {
        let Self { setting, method, replica, .. } = self;
        let mut model = LinearModel::for_rows(&setting.data.train, setting.tasks.len())?;
        let mut weights = Array2::zeros(model.weights().dim());
        for (mut column, task) in weights.columns_mut().into_iter().zip(&setting.tasks) {
            column.assign(&setting.start(task, *method, *replica));
        }
        model.parameters_mut().blocks_mut()[0].set(weights.view())?;
        Ok(model)
    }
}
