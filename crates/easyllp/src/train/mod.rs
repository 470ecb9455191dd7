//! Training loops over rows and targets, with early stopping.

mod by_bag;
mod columns;
mod full_batch;
mod minibatch;
mod one_pass;

pub use crate::aim::Aim;
pub use crate::kernel::Vectors;
pub use columns::{Best, ColumnFigures, ColumnsLog};
pub(crate) use full_batch::FullBatch;
pub use full_batch::fit_parts;
pub use one_pass::OnePass;

use crate::aim::{TargetRows, TargetRule};
use crate::classes::n_columns;
use crate::correction::Targets;
use crate::error::{Error, Result, check_length};
use crate::loss::TrainingLoss;
use crate::model::{LinearColumns, LinearModel, Model};
use crate::optim::{Adam, AdamState, Lbfgs};
use crate::rows::Rows;
use minibatch::Callbacks;
use serde::Serialize;
use std::collections::VecDeque;
use std::ops::ControlFlow;

/// The optimizer and its settings.
#[derive(Debug, Clone, PartialEq)]
pub enum Optimizer {
    /// Minibatches. Supports any model and any loss.
    Adam(Adam),
    /// All rows at once, to convergence. Supports linear models, row targets, and losses that stay convex.
    Lbfgs(Lbfgs),
}

/// Trains a model with one optimizer towards one [`Aim`].
///
/// Runs on the rayon pool of the caller; the bytes of the result do not depend on its number of threads.
#[derive(Debug, Clone, PartialEq)]
pub struct Trainer {
    /// The optimizer and its settings.
    pub optimizer: Optimizer,
    /// The seed of the order of minibatches.
    pub seed: u64,
}

impl Default for Trainer {
    fn default() -> Self {
        Self { optimizer: Optimizer::Lbfgs(Lbfgs::default()), seed: 0 }
    }
}

/// A training event, for a progress callback.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Progress {
    /// A minibatch is finished.
    Batch {
        /// The epoch, from 1.
        epoch: usize,
        /// The rows of this epoch that are done.
        rows_done: usize,
        /// The number of rows per epoch.
        n_rows: usize,
    },
    /// An L-BFGS iteration is done; an [`Epoch`](Self::Epoch) with its loss follows.
    Iteration {
        /// The iteration, from 1.
        iteration: usize,
        /// The estimated number of remaining iterations, once known.
        left: Option<usize>,
    },
    /// An epoch (or an L-BFGS iteration) is done.
    Epoch(EpochLog),
}

/// The result of one epoch.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct EpochLog {
    /// The epoch, from 1.
    pub epoch: usize,
    /// The mean corrected loss of its rows, or of its bags. With Adam: as computed in each batch.
    /// With L-BFGS: including the L2 penalty.
    pub loss: f64,
}

/// Why training stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// The maximum number of epochs or iterations is reached.
    Finished,
    /// Converged: the gradient is below the tolerance.
    Converged,
    /// The loss does not decrease any more, up to rounding.
    Flat,
    /// Converged or flat, with a loss that is not convex: the minimum may be a local one.
    LocalMinimum,
    /// The callback interrupted it.
    Interrupted,
    /// Early stopping: the validation metric did not improve for `patience` epochs.
    EarlyStopping,
    /// One of many models diverged: it keeps the weights of its last good epoch.
    Diverged,
}

/// The log of a training run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrainLog {
    /// One entry per epoch or iteration.
    pub epochs: Vec<EpochLog>,
    /// Why it stopped.
    pub stopped: Stop,
    /// The epoch with the best validation metric, counted from 1, and that metric.
    pub best: Option<(usize, f64)>,
}

/// Early stopping: a validation metric after each epoch, of averaged weights if averaging is on.
/// Training ends with the best model.
pub struct EarlyStopping<'e, M: ?Sized> {
    /// The metric, lower is better, such as the Brier score on validation bags.
    pub metric: &'e mut dyn FnMut(&M) -> Result<f64>,
    /// Patience: stop after this many epochs in a row without improvement.
    pub patience: usize,
    /// Compare the mean metric of this many epochs; 1 compares single epochs. Metrics of few bags
    /// are noisy, and the lowest of many is often a lucky one.
    pub smoothing: usize,
}

/// The mean of the last few metrics.
pub(crate) struct Smoothed {
    window: usize,
    metrics: VecDeque<f64>,
}

impl Smoothed {
    pub(crate) fn new(window: usize) -> Self {
        Self { window: window.max(1), metrics: VecDeque::new() }
    }

    pub(crate) fn next(&mut self, metric: f64) -> f64 {
        if self.metrics.len() == self.window {
            self.metrics.pop_front();
        }
        self.metrics.push_back(metric);
        self.metrics.iter().sum::<f64>() / self.metrics.len() as f64
    }
}

/// The best model so far, and whether to stop.
pub(crate) struct BestSoFar<M> {
    patience: usize,
    smoothed: Smoothed,
    best: Option<(usize, f64, M)>,
}

impl<M> BestSoFar<M> {
    pub(crate) fn new(patience: usize, smoothing: usize) -> Self {
        Self { patience, smoothed: Smoothed::new(smoothing), best: None }
    }

    /// Records the model after an epoch, with its metric; breaks once patience is exceeded.
    pub(crate) fn see(&mut self, model: M, metric: f64, epoch: usize) -> ControlFlow<()> {
        let metric = self.smoothed.next(metric);
        // A metric that is not a number is no improvement.
        if metric < self.best.as_ref().map_or(f64::INFINITY, |(_, least, _)| *least) {
            self.best = Some((epoch, metric, model));
        }
        let since = epoch - self.best.as_ref().map_or(0, |(epoch, ..)| *epoch);
        if since >= self.patience { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Replaces a model by the best one; returns its epoch and metric.
    pub(crate) fn give_to(self, model: &mut M) -> Option<(usize, f64)> {
        let (epoch, metric, best) = self.best?;
        *model = best;
        Some((epoch, metric))
    }
}

/// A progress callback; breaking interrupts the training run, and the model keeps what it has learned by then.
pub type Watch<'w> = &'w mut dyn FnMut(Progress) -> ControlFlow<()>;

impl Trainer {
    /// Trains until the optimizer is finished.
    ///
    /// If training diverges ([`Error::Diverged`]), the model is left with the weights of its last good epoch, not averaged.
    ///
    /// ```
    /// use easyllp::method::CountLikelihood;
    /// use easyllp::train::{Aim, Optimizer, Trainer};
    /// use easyllp::{Bags, Noise, Partition, Rows, model::LinearModel, optim::Adam};
    /// use ndarray::array;
    ///
    /// let rows = Rows::dense(array![[0.9_f32], [0.1], [0.2], [0.8], [0.7], [0.95]])?;
    /// let partition = Partition::new(6, [[0, 1], [2, 3], [4, 5]])?;
    /// let bags = Bags::binary(partition, &[1.0, 1.0, 2.0], Noise::None)?;
    /// let mut model = LinearModel::for_rows(&rows, 2)?;
    /// let trainer = Trainer { optimizer: Optimizer::Adam(Adam::default()), seed: 1 };
    /// trainer.fit(&mut model, &rows, Aim::Bags(&mut CountLikelihood::new(&bags)))?;
    /// assert!(model.weights()[[0, 0]] > 0.0);
    /// # Ok::<(), easyllp::Error>(())
    /// ```
    pub fn fit<M: Model + Clone>(&self, model: &mut M, rows: &Rows, aim: Aim) -> Result<TrainLog> {
        self.fit_watched(model, rows, aim, &mut |_| ControlFlow::Continue(()), None)
    }

    /// Trains with a progress callback, and optionally with early stopping: the model is then the
    /// one of the best epoch, even if training diverges later. With L-BFGS the metric is computed
    /// once, at the optimum.
    pub fn fit_watched<M: Model + Clone>(
        &self,
        model: &mut M,
        rows: &Rows,
        aim: Aim,
        watch: Watch,
        early_stopping: Option<EarlyStopping<M>>,
    ) -> Result<TrainLog> {
        check(model, rows, &aim)?;
        match (&self.optimizer, aim) {
            (Optimizer::Adam(settings), aim) => {
                let rows = rows.dense_only("training with Adam")?;
                let Some(EarlyStopping { metric, patience, smoothing }) = early_stopping else {
                    let after_epoch = &mut |_: &M, _: &AdamState, _| Ok(ControlFlow::Continue(()));
                    let callbacks = Callbacks { watch, after_epoch };
                    return minibatch::fit(settings, self.seed, model, rows, aim, callbacks);
                };
                let mut best = BestSoFar::new(patience, smoothing);
                let mut after_epoch = |model: &M, adam: &AdamState, epoch| {
                    let mut candidate = model.clone();
                    adam.finish(candidate.parameters_mut());
                    let metric = metric(&candidate)?;
                    Ok(best.see(candidate, metric, epoch))
                };
                let callbacks = Callbacks { watch, after_epoch: &mut after_epoch };
                let outcome = minibatch::fit(settings, self.seed, model, rows, aim, callbacks);
                // The best epoch of a run that diverged, too.
                let best = best.give_to(model);
                outcome.map(|log| TrainLog { best, ..log })
            }
            (Optimizer::Lbfgs(settings), Aim::Targets(rule, loss)) => {
                let linear = model.as_linear_mut().ok_or(Error::NotLinear)?;
                let mut log = full_batch::fit(settings, linear, rows, rule, loss, watch)?;
                if let Some(EarlyStopping { metric, .. }) = early_stopping {
                    log.best = Some((log.epochs.len(), metric(model)?));
                }
                Ok(log)
            }
            (Optimizer::Lbfgs(_), Aim::Bags(_)) => Err(Error::BagsWithoutAdam),
        }
    }

    /// Trains many binary linear models in one pass over dense rows, each on the targets of its own
    /// rule: the tasks, replicas and methods of a sweep, as columns of one matrix.
    ///
    /// All models see the same batches, drawn from the rows that any rule has a target for. Rows
    /// that a rule leaves out do not affect its model; its gradient is the mean over its own rows
    /// of a batch. Each model therefore equals the result of [`fit`](Self::fit), up to rounding, if
    /// its rule has a target for every row. Gradients are clipped per model.
    ///
    /// After each epoch, `judge` receives its number (from 1) and the models as they would be if
    /// training ended there. It returns one metric per model, lower is better, or `None` to record
    /// nothing, or breaks to stop training. A model that diverges returns to its last good epoch
    /// and stays there (see its log and [`LinearColumns::has_ended`]); the others continue.
    ///
    /// ```
    /// use easyllp::method::Supervised;
    /// use easyllp::{
    ///     Rows,
    ///     loss::LossName,
    ///     method::TargetRule,
    ///     model::LinearModel,
    ///     optim::Adam,
    ///     train::{Optimizer, Trainer},
    /// };
    /// use ndarray::array;
    /// use std::ops::ControlFlow;
    ///
    /// let rows = Rows::dense(array![[0.9_f32], [0.1], [0.2], [0.8]])?;
    /// let mut rules = [Supervised::new(&[1, 0, 0, 1], 2)?, Supervised::new(&[0, 1, 1, 0], 2)?];
    /// let mut rules: Vec<&mut dyn TargetRule> = rules.iter_mut().map(|rule| rule as _).collect();
    /// let mut models = vec![LinearModel::for_rows(&rows, 2)?; 2];
    /// let trainer = Trainer { optimizer: Optimizer::Adam(Adam::default()), seed: 1 };
    /// let loss = LossName::Logistic.training()?;
    /// trainer.fit_columns(&mut models, &rows, &mut rules, loss, &mut |_, _| ControlFlow::Continue(None))?;
    /// assert!(models[0].weights()[[0, 0]] > 0.0 && models[1].weights()[[0, 0]] < 0.0);
    /// # Ok::<(), easyllp::Error>(())
    /// ```
    pub fn fit_columns(
        &self,
        models: &mut [LinearModel],
        rows: &Rows,
        rules: &mut [&mut dyn TargetRule],
        loss: &dyn TrainingLoss,
        judge: &mut dyn FnMut(usize, &LinearColumns) -> ControlFlow<(), ColumnFigures>,
    ) -> Result<ColumnsLog> {
        match &self.optimizer {
            Optimizer::Adam(settings) => columns::fit(settings, self.seed, models, rows, rules, loss, judge),
            Optimizer::Lbfgs(_) => Err(Error::ColumnsWithoutAdam),
        }
    }
}

/// Checks that rows, models and aims fit each other.
fn check<M: Model>(model: &M, rows: &Rows, aim: &Aim) -> Result<()> {
    model.check(rows)?;
    match aim {
        Aim::Targets(rule, loss) => {
            let targets = rule.target_rows();
            check_length("rows that have a target or none", rows.n_rows(), targets.n_rows)?;
            check_length("scores of the model", n_columns(targets.n_classes), model.n_scores())?;
            loss.check_classes(targets.n_classes)?;
            check_members(&targets.rows, rows.n_rows())
        }
        Aim::Bags(objective) => {
            let bags = objective.bags();
            check_length("rows that are in bags or not", rows.n_rows(), bags.n_rows())?;
            check_length("scores of the model", objective.n_scores(), model.n_scores())?;
            check_members(&bags.rows(), rows.n_rows())
        }
    }
}

/// Checks that the training rows exist, and that the vector instructions do.
fn check_members(members: &[u32], n_rows: usize) -> Result<()> {
    Vectors::chosen()?;
    if members.is_empty() {
        return Err(Error::NoTargets);
    }
    match members.iter().find(|&&row| row as usize >= n_rows) {
        Some(&row) => Err(Error::TrainingRowOutOfRange { row, n_rows }),
        None => Ok(()),
    }
}

/// Computes the targets of an epoch, and checks that they are finite.
///
/// If the loss requires it, targets are shifted so that their means are class shares.
fn next_targets(
    rule: &mut dyn TargetRule,
    loss: &dyn TrainingLoss,
    epoch: usize,
    out: &mut Targets,
) -> Result<()> {
    if epoch > 0 && !rule.changes() {
        return Ok(());
    }
    rule.targets(epoch, out)?;
    let TargetRows { n_rows, n_classes, rows } = rule.target_rows();
    out.check(n_rows, n_classes)?;
    out.check_finite()?;
    if !loss.has_minimum_for_any_targets() {
        out.shift_to_shares(&rows, rule.shares()?);
    }
    Ok(())
}
