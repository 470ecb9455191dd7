//! Linear models of many tasks, replicas and methods as columns of one matrix, in one pass over the rows.

use super::{Accuracy, EpochLog, HeldOut, MethodName, Setting, Task};
use crate::error::Result;
use crate::point::Point;
use crate::runner::{Cell, Tell};
use easyllp::method::{EasyLlp, MeanMap, Naive};
use easyllp::{
    loss::{Link, LossName},
    method::TargetRule,
    model::{LinearColumns, LinearModel, Model},
};
use ndarray::{Axis, s};
use rayon::prelude::*;
use std::ops::ControlFlow;
use std::sync::Arc;

/// The maximum number of models in a pass.
const COLUMNS: usize = 256;

/// Whether a method's models can be columns of a matrix: linear ones on numeric features, with a
/// target per row.
pub(super) fn suits(accuracy: &Accuracy, method: MethodName) -> bool {
    let by_rows = [MethodName::SUPERVISED, MethodName::EASYLLP, MethodName::NAIVE, MethodName::MEAN_MAP];
    accuracy.is_linear_over_numbers() && !accuracy.rebag && by_rows.contains(&method)
}

/// Some replicas of all tasks, with some methods, in bags of one size.
pub(super) struct Pass<'d> {
    setting: Arc<Setting<'d>>,
    methods: Vec<MethodName>,
    size: usize,
    replicas: Vec<u32>,
}

/// One of the models.
struct Column<'a> {
    replica: u32,
    task: &'a Task,
    method: MethodName,
    held_out: Option<&'a HeldOut>,
}

impl<'d> Pass<'d> {
    /// The passes for these methods.
    pub(super) fn all(setting: &Arc<Setting<'d>>, methods: &[MethodName]) -> Vec<Cell<'d>> {
        let (supervised, by_bags): (Vec<MethodName>, Vec<MethodName>) =
            methods.iter().partition(|&&method| method == MethodName::SUPERVISED);
        let mut cells = Vec::new();
        for methods in [supervised, by_bags] {
            let Some(&first) = methods.first() else { continue };
            let replicas: Vec<u32> = (1..=setting.accuracy.replicas).collect();
            let in_a_pass = (COLUMNS / (setting.tasks.len() * methods.len())).max(1);
            for replicas in replicas.chunks(in_a_pass) {
                cells.extend(setting.accuracy.sizes_for(first).iter().map(|&size| {
                    let (methods, replicas) = (methods.clone(), replicas.to_vec());
                    Pass { setting: Arc::clone(setting), methods, size, replicas }.cell()
                }));
            }
        }
        cells
    }

    fn cell(self) -> Cell<'d> {
        let Self { setting, methods, size, replicas } = &self;
        let methods_named: Vec<&str> = methods.iter().map(|method| method.as_str()).collect();
        let methods_named = methods_named.join(" + ");
        let n_models = setting.tasks.len() * methods.len() * replicas.len();
        Cell {
            key: format!(
                "{}, {methods_named}, {}, {size} rows, replicas {replicas:?}",
                setting.key(),
                setting.tasks_named(),
            ),
            band: format!("{}, {methods_named}, {size} rows", setting.key()),
            // One of many costs a tenth of a model alone.
            cost: 0.1 * n_models as f64 * setting.rows_in_all(),
            rows: (setting.accuracy.epochs * setting.data.train.n_rows() * n_models) as u64,
            is_wide: true,
            work: Box::new(move |tell| self.train(tell)),
        }
    }

    fn train(&self, tell: &Tell) -> Result<Option<Vec<Point>>> {
        let Self { setting, methods, size, replicas } = self;
        let data = setting.data;
        let mut dealt = Vec::with_capacity(replicas.len() * setting.tasks.len());
        for &replica in replicas {
            let partition = setting.partition(replica, *size)?;
            for task in &setting.tasks {
                dealt.push((replica, task, setting.deal(&partition, task, replica)?));
            }
        }
        let (mut columns, mut rules, mut models) = (Vec::new(), Vec::new(), Vec::new());
        for (replica, task, (bags, held_out)) in &dealt {
            for &method in methods {
                columns.push(Column { replica: *replica, task, method, held_out: held_out.as_ref() });
                rules.push(match method {
                    MethodName::NAIVE => Box::new(Naive::new(bags)) as Box<dyn TargetRule>,
                    MethodName::MEAN_MAP => Box::new(MeanMap::new(bags)),
                    // Of bags of one these are the labels.
                    _ => Box::new(EasyLlp::new(bags)),
                });
                let mut model = LinearModel::for_rows(&data.train, 2)?;
                let start = setting.start(task, method, *replica).insert_axis(Axis(1));
                model.parameters_mut().blocks_mut()[0].set(start.view())?;
                models.push(model);
            }
        }
        let mut epoch_logs = vec![EpochLog::default(); columns.len()];
        let (mut failed, mut is_over) = (None, false);
        let loss = LossName::Logistic.training()?;
        let mut judge = |_: usize, models: &LinearColumns| {
            let judged = self.judge(models, &columns, &mut epoch_logs, loss.link());
            failed = judged.err();
            is_over = tell((data.train.n_rows() * columns.len()) as u64).is_break();
            if is_over || failed.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(None) }
        };
        let mut rules: Vec<&mut dyn TargetRule> = rules.iter_mut().map(|rule| &mut **rule as _).collect();
        let seed = setting.seed_of(&format!("{size} rows, {replicas:?}"));
        let trainer = setting.trainer(setting.accuracy.epochs, seed);
        trainer.fit_columns(&mut models, &data.train, &mut rules, loss, &mut judge)?;
        failed.map_or(Ok(()), Err)?;
        let points = columns
            .iter()
            .zip(&epoch_logs)
            .flat_map(|(column, log)| log.points(&column.task.name, column.method, *size, column.replica));
        Ok((!is_over).then(|| points.collect()))
    }

    /// Adds an epoch to the log of each model that has not diverged.
    fn judge(
        &self,
        models: &LinearColumns,
        columns: &[Column],
        epoch_logs: &mut [EpochLog],
        link: Link,
    ) -> Result<()> {
        let data = self.setting.data;
        let of_test = models.scores(&data.test)?;
        // A replica's models stand side by side, and the same rows are held out of them.
        let width = columns.len() / self.replicas.len();
        let replicas = columns.chunks(width).zip(epoch_logs.chunks_mut(width));
        for ((columns, epoch_logs), first) in replicas.zip((0..).step_by(width)) {
            let rows = columns[0].held_out.map(|held_out| &held_out.rows);
            let of_bags =
                rows.map(|rows| models.scores_of(&data.train, rows, first..first + width)).transpose()?;
            let judge = |(place, (column, log)): (usize, (&Column, &mut EpochLog))| -> Result<()> {
                let judged = column.held_out.zip(of_bags.as_ref());
                let judged = judged.map(|(held_out, scores)| (held_out, scores.slice(s![.., place..=place])));
                let place = first + place;
                if models.has_ended(place) {
                    return Ok(());
                }
                log.see(column.task, of_test.slice(s![.., place..=place]), judged, link)?;
                Ok(())
            };
            columns.par_iter().zip(epoch_logs).enumerate().try_for_each(judge)?;
        }
        Ok(())
    }
}
