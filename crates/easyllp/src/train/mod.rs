//! TRAIN: the meeting point of rows, targets, a loss, a model and an optimiser.

mod alternate;
mod by_bag;
mod columns;
mod full_batch;
mod lesson;
mod minibatch;
mod one_pass;

pub use columns::{Best, ColumnFigures, ColumnsLog};
pub(crate) use full_batch::FullBatch;
pub use lesson::{Lesson, Way};

use crate::bags::Bags;
use crate::classes::n_columns;
use crate::correction::Targets;
use crate::error::{Error, Result, check_length};
use crate::kernel::Vectors;
use crate::loss::TrainingLoss;
use crate::method::{BagObjective, TargetRule};
use crate::model::{LinearColumns, LinearModel, Model};
use crate::optim::{Adam, AdamState, Lbfgs, Sgd};
use crate::prior::LabelPrior;
use crate::rows::{DenseRows, Rows};
use minibatch::{Aim, Onlookers};
use serde::Serialize;
use std::collections::VecDeque;
use std::ops::ControlFlow;

/// The optimiser and its settings.
#[derive(Debug, Clone, PartialEq)]
pub enum Optimizer {
    /// Minibatches; any model, any loss.
    Adam(Adam),
    /// All rows at once; linear models, losses that stay convex. Finds the optimum to many digits, in seconds.
    Lbfgs(Lbfgs),
    /// One row of each bag, once: the paper's algorithm for linear models (`easyllp-sgd`), and no other.
    Sgd(Sgd),
}

/// Trains a model on the targets that a method gives.
///
/// Runs on the rayon pool of the caller; the bytes of the result do not depend on its number of threads.
#[derive(Debug, Clone, PartialEq)]
pub struct Trainer {
    /// How the loss is brought down.
    pub optimizer: Optimizer,
    /// The seed of the order in which minibatches see rows.
    pub seed: u64,
}

impl Default for Trainer {
    fn default() -> Self {
        Self { optimizer: Optimizer::Lbfgs(Lbfgs::default()), seed: 0 }
    }
}

/// Something that happens in training, for a caller that watches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Progress {
    /// A minibatch is done.
    Batch {
        /// Counted from 1.
        epoch: usize,
        /// Rows of this epoch that are done.
        rows_done: usize,
        /// Rows that an epoch has.
        n_rows: usize,
    },
    /// An iteration of L-BFGS is done; an [`Epoch`](Self::Epoch) with its loss follows.
    Iteration {
        /// Counted from 1.
        iteration: usize,
        /// About how many more it will take, once that can be estimated.
        left: Option<usize>,
    },
    /// A pass over the rows (an iteration of L-BFGS) is done.
    Epoch(EpochLog),
}

/// What one pass over the rows came to.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct EpochLog {
    /// Counted from 1.
    pub epoch: usize,
    /// The mean corrected loss of its rows, or that of its bags: of Adam as each batch was met, of L-BFGS with the l2 penalty.
    pub loss: f64,
}

/// Why training stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// All epochs or iterations are done.
    Finished,
    /// The gradient is as small as was asked for.
    Converged,
    /// The loss does not fall any more in the numbers at hand.
    Flat,
    /// The caller broke it off.
    Caller,
    /// Too many epochs in a row were no better, in a judge's eyes, than one before.
    NoBetter,
    /// Numbers ran away, of one model among many: it holds the weights of its last good epoch.
    Diverged,
}

/// The course of a training.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrainLog {
    /// One entry a pass over the rows.
    pub epochs: Vec<EpochLog>,
    /// Why it stopped.
    pub stopped: Stop,
    /// The epoch that a judge found best, counted from 1, and its figure.
    pub best: Option<(usize, f64)>,
}

/// Looks at the model after each epoch, with averaged weights if they are asked for; training then ends with the best.
pub struct Judge<'j, M> {
    /// A figure that is lower the better a model is, such as its Brier score on bags held out.
    pub figure: &'j mut dyn FnMut(&M) -> Result<f64>,
    /// After so many epochs in a row that are no better, training stops.
    pub patience: usize,
    /// An epoch is judged by the mean of the figures of so many epochs, the last of which it is; 1 for its own alone. Figures from
    /// few bags jump up and down, and the lowest of many is often a lucky one.
    pub smoothing: usize,
}

/// The mean of the last few figures.
pub(crate) struct Smoothed {
    window: usize,
    figures: VecDeque<f64>,
}

impl Smoothed {
    pub(crate) fn new(window: usize) -> Self {
        Self { window: window.max(1), figures: VecDeque::new() }
    }

    pub(crate) fn next(&mut self, figure: f64) -> f64 {
        if self.figures.len() == self.window {
            self.figures.pop_front();
        }
        self.figures.push_back(figure);
        self.figures.iter().sum::<f64>() / self.figures.len() as f64
    }
}

/// Keeps the model that a judge liked best.
struct BestSoFar<'j, M> {
    judge: Judge<'j, M>,
    smoothed: Smoothed,
    best: Option<(usize, f64, M)>,
}

impl<'j, M> BestSoFar<'j, M> {
    fn new(judge: Judge<'j, M>) -> Self {
        Self { smoothed: Smoothed::new(judge.smoothing), judge, best: None }
    }

    /// Shows the model after an epoch to the judge, who may have lost patience.
    fn see(&mut self, model: M, epoch: usize) -> Result<ControlFlow<()>> {
        let figure = self.smoothed.next((self.judge.figure)(&model)?);
        // What is no number is not better.
        if figure < self.best.as_ref().map_or(f64::INFINITY, |(_, least, _)| *least) {
            self.best = Some((epoch, figure, model));
        }
        let since = epoch - self.best.as_ref().map_or(0, |(epoch, ..)| *epoch);
        Ok(if since >= self.judge.patience { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    /// Makes a model what was best; when that was, and what the judge said of it.
    fn give_to(self, model: &mut M) -> Option<(usize, f64)> {
        let (epoch, figure, best) = self.best?;
        *model = best;
        Some((epoch, figure))
    }
}

impl Trainer {
    /// Trains until the optimiser is done.
    ///
    /// If numbers run away ([`Error::Diverged`]), the model is left with the weights of its last good epoch, as they were then: not
    /// averaged.
    pub fn fit<M: Model>(
        &self,
        model: &mut M,
        rows: &Rows,
        rule: &mut dyn TargetRule,
        loss: &dyn TrainingLoss,
    ) -> Result<TrainLog> {
        self.fit_watched(model, rows, rule, loss, &mut |_| ControlFlow::Continue(()))
    }

    /// Trains while `watch` looks on; it may break off at any event, and the model keeps what it has learnt by then.
    pub fn fit_watched<M: Model>(
        &self,
        model: &mut M,
        rows: &Rows,
        rule: &mut dyn TargetRule,
        loss: &dyn TrainingLoss,
        watch: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<TrainLog> {
        check(model, rows, rule, loss)?;
        match &self.optimizer {
            Optimizer::Adam(settings) => {
                let after_epoch = &mut |_: &M, _: &AdamState, _| Ok(ControlFlow::Continue(()));
                let onlookers = Onlookers { watch, after_epoch };
                minibatch::fit(
                    settings,
                    self.seed,
                    model,
                    dense_for_adam(rows)?,
                    Aim::Rows(rule, loss),
                    onlookers,
                )
            }
            Optimizer::Lbfgs(settings) => {
                let model = model.as_linear_mut().ok_or(Error::NotLinear)?;
                full_batch::fit(settings, model, rows, rule, loss, watch)
            }
            Optimizer::Sgd(_) => Err(Error::OnePassOnly),
        }
    }

    /// Trains by minibatches until a judge sees no better model any more, or all epochs are done; the model ends as it was after the
    /// epoch that the judge liked best, even if numbers run away later. L-BFGS goes to its optimum, which is judged once.
    pub fn fit_judged<M: Model + Clone>(
        &self,
        model: &mut M,
        rows: &Rows,
        rule: &mut dyn TargetRule,
        loss: &dyn TrainingLoss,
        watch: &mut dyn FnMut(Progress) -> ControlFlow<()>,
        judge: Judge<M>,
    ) -> Result<TrainLog> {
        let Optimizer::Adam(settings) = &self.optimizer else {
            let mut log = self.fit_watched(model, rows, rule, loss, watch)?;
            log.best = Some((log.epochs.len(), (judge.figure)(model)?));
            return Ok(log);
        };
        check(model, rows, rule, loss)?;
        judged(settings, self.seed, model, rows, Aim::Rows(rule, loss), watch, judge)
    }

    /// Trains towards the counts of whole bags, by minibatches of bags; a judge may look on as in [`fit_judged`](Self::fit_judged).
    ///
    /// ```
    /// use easyllp::method::CountLikelihood;
    /// use easyllp::{Adam, Bags, LinearModel, Noise, Optimizer, Partition, Rows, Trainer};
    /// use ndarray::array;
    /// use std::ops::ControlFlow;
    ///
    /// let rows = Rows::dense(array![[0.9_f32], [0.1], [0.2], [0.8], [0.7], [0.95]])?;
    /// let partition = Partition::new(6, [[0, 1], [2, 3], [4, 5]])?;
    /// let bags = Bags::binary(partition, &[1.0, 1.0, 2.0], Noise::None)?;
    /// let mut model = LinearModel::for_rows(&rows, 2)?;
    /// let trainer = Trainer { optimizer: Optimizer::Adam(Adam::default()), seed: 1 };
    /// let mut watch = |_| ControlFlow::Continue(());
    /// trainer.fit_bags(&mut model, &rows, &mut CountLikelihood::new(&bags), &mut watch, None)?;
    /// assert!(model.weights()[[0, 0]] > 0.0);
    /// # Ok::<(), easyllp::Error>(())
    /// ```
    pub fn fit_bags<M: Model + Clone>(
        &self,
        model: &mut M,
        rows: &Rows,
        objective: &mut dyn BagObjective,
        watch: &mut dyn FnMut(Progress) -> ControlFlow<()>,
        judge: Option<Judge<M>>,
    ) -> Result<TrainLog> {
        let Optimizer::Adam(settings) = &self.optimizer else { return Err(Error::BagsWithoutAdam) };
        let bags = objective.bags();
        model.check(rows)?;
        check_length("rows that are in bags or not", rows.n_rows(), bags.n_rows())?;
        check_length("scores of the model", objective.n_scores(), model.n_scores())?;
        check_members(&bags.rows(), rows.n_rows())?;
        let aim = Aim::Bags(objective);
        if let Some(judge) = judge {
            return judged(settings, self.seed, model, rows, aim, watch, judge);
        }
        let after_epoch = &mut |_: &M, _: &AdamState, _| Ok(ControlFlow::Continue(()));
        minibatch::fit(
            settings,
            self.seed,
            model,
            dense_for_adam(rows)?,
            aim,
            Onlookers { watch, after_epoch },
        )
    }

    /// Trains a linear model by the paper's Algorithm *pickone*, with the settings of [`Optimizer::Sgd`]: bags come once, in an order
    /// that the seed draws, and a row drawn from each is what a step is taken on.
    ///
    /// Its target is the paper's, A = p + k(α − p) with the bag's own size k, or a label drawn from the proportions in the
    /// place of α; a step's size goes by the mean size of bags.
    ///
    /// ```
    /// use easyllp::bagging::{Sizes, random};
    /// use easyllp::sgd::{Domain, Sgd};
    /// use easyllp::{Bags, LabelPrior, LinearModel, LossName, Optimizer, Rows, Trainer};
    /// use ndarray::Array2;
    /// use std::ops::ControlFlow;
    ///
    /// // Every other row is positive and has a feature of 1, not −1; of random pairs of rows only counts are known.
    /// let labels: Vec<u32> = (0..1000).map(|row| row % 2).collect();
    /// let rows = Rows::dense(Array2::from_shape_fn((1000, 1), |(row, _)| if labels[row] == 1 { 1.0_f32 } else { -1.0 }))?;
    /// let bags = Bags::from_labels(random(1000, &Sizes::Fixed(2), 1)?, &labels, 2)?;
    ///
    /// let mut model = LinearModel::for_rows(&rows, 2)?;
    /// let settings = Sgd { domain: Domain::Ball(2.0), ..Sgd::default() };
    /// let trainer = Trainer { optimizer: Optimizer::Sgd(settings), seed: 1 };
    /// let (prior, loss) = (LabelPrior::binary(0.5)?, LossName::Logistic.training()?);
    /// trainer.fit_one_pass(&mut model, &rows, &bags, &prior, loss, &mut |_| ControlFlow::Continue(()))?;
    /// assert!(model.weights()[[0, 0]] > 1.0);
    /// # Ok::<(), easyllp::Error>(())
    /// ```
    pub fn fit_one_pass(
        &self,
        model: &mut LinearModel,
        rows: &Rows,
        bags: &Bags,
        prior: &LabelPrior,
        loss: &dyn TrainingLoss,
        watch: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<TrainLog> {
        let Optimizer::Sgd(settings) = &self.optimizer else { return Err(Error::OnePassOnly) };
        one_pass::fit(settings, self.seed, model, rows, bags, prior, loss, watch)
    }

    /// Trains by a method of any name; L-BFGS serves those that give rows targets.
    ///
    /// ```
    /// use easyllp::{Adam, Bags, Lesson, LinearModel, LossName, MethodName, Noise, Optimizer, Partition, Rows, Trainer};
    /// use ndarray::array;
    /// use std::ops::ControlFlow;
    ///
    /// let rows = Rows::dense(array![[0.9_f32], [0.1], [0.2], [0.8], [0.7], [0.95]])?;
    /// let partition = Partition::new(6, [[0, 1], [2, 3], [4, 5]])?;
    /// let bags = Bags::binary(partition, &[1.0, 1.0, 2.0], Noise::None)?;
    /// let trainer = Trainer { optimizer: Optimizer::Adam(Adam::default()), seed: 1 };
    /// for method in [MethodName::EasyLlp, MethodName::LabelGeneration, MethodName::LlpEm] {
    ///     let loss = LossName::Logistic.training()?;
    ///     let lesson = Lesson { method, options: Default::default(), bags: &bags, loss };
    ///     let mut model = LinearModel::for_rows(&rows, 2)?;
    ///     trainer.fit_method(&mut model, &rows, &lesson, &mut |_| ControlFlow::Continue(()), None)?;
    ///     assert!(model.weights()[[0, 0]] > 0.0);
    /// }
    /// # Ok::<(), easyllp::Error>(())
    /// ```
    pub fn fit_method<M: Model + Clone>(
        &self,
        model: &mut M,
        rows: &Rows,
        lesson: &Lesson,
        watch: &mut dyn FnMut(Progress) -> ControlFlow<()>,
        judge: Option<Judge<M>>,
    ) -> Result<TrainLog> {
        let &Lesson { method, ref options, bags, loss } = lesson;
        method.check(model.as_linear_mut().is_some(), loss)?;
        loss.check_classes(bags.n_classes())?;
        match (lesson.way(rows, self.seed)?, judge) {
            (Way::Rows(mut rule), Some(judge)) => {
                self.fit_judged(model, rows, &mut *rule, loss, watch, judge)
            }
            (Way::Rows(mut rule), None) => self.fit_watched(model, rows, &mut *rule, loss, watch),
            (Way::Bags(mut objective), judge) => self.fit_bags(model, rows, &mut *objective, watch, judge),
            (Way::InTurn(alternation), judge) => {
                let (optimizer, rounds) = (&self.optimizer, options.rounds);
                alternate::fit(optimizer, self.seed, model, rows, &*alternation, rounds, loss, watch, judge)
            }
            (Way::OnePass(prior), judge) => {
                let linear = model.as_linear_mut().ok_or(Error::LinearOnly { method: method.as_str() })?;
                let mut log = self.fit_one_pass(linear, rows, bags, &prior, loss, watch)?;
                if let Some(judge) = judge {
                    log.best = Some((1, (judge.figure)(model)?));
                }
                Ok(log)
            }
        }
    }

    /// Trains many linear models of two classes in one pass over dense rows, each towards the targets of its own rule:
    /// the tasks, replicas and methods of a sweep, as the columns of one matrix.
    ///
    /// All models see the same batches, drawn from the rows that any rule has a target for. A row that a rule leaves out
    /// has no say in that rule's model, whose gradient is the mean over its own rows of a batch. So each model comes to
    /// what [`fit`](Self::fit) alone would come to, up to rounding, if its rule has a target for every row. Clipping is
    /// by model.
    ///
    /// After each epoch, `judge` is handed its number (from 1) and the models as they would be if training ended there.
    /// It goes on with one figure a model, the lower the better, or with `None` to record nothing, or breaks training off.
    /// A model that runs away goes back to its last good epoch and stays there, which its log and
    /// [`LinearColumns::has_ended`] say; the others go on.
    ///
    /// ```
    /// use easyllp::method::Event;
    /// use easyllp::{Adam, LinearModel, LossName, Optimizer, Rows, TargetRule, Trainer};
    /// use ndarray::array;
    /// use std::ops::ControlFlow;
    ///
    /// let rows = Rows::dense(array![[0.9_f32], [0.1], [0.2], [0.8]])?;
    /// let mut rules = [Event::new(&[1, 0, 0, 1], 2)?, Event::new(&[0, 1, 1, 0], 2)?];
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
            Optimizer::Lbfgs(_) | Optimizer::Sgd(_) => Err(Error::ColumnsWithoutAdam),
        }
    }
}

/// Trains while a judge looks at the model after each epoch, and ends with what it liked best.
fn judged<M: Model + Clone>(
    settings: &Adam,
    seed: u64,
    model: &mut M,
    rows: &Rows,
    aim: Aim,
    watch: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    judge: Judge<M>,
) -> Result<TrainLog> {
    let mut best = BestSoFar::new(judge);
    let mut after_epoch = |model: &M, adam: &AdamState, epoch| {
        let mut candidate = model.clone();
        adam.finish(candidate.parameters_mut());
        best.see(candidate, epoch)
    };
    let onlookers = Onlookers { watch, after_epoch: &mut after_epoch };
    let outcome = minibatch::fit(settings, seed, model, dense_for_adam(rows)?, aim, onlookers);
    // Of a training that ran away, too.
    let best = best.give_to(model);
    outcome.map(|log| TrainLog { best, ..log })
}

fn dense_for_adam<'r>(rows: &'r Rows) -> Result<DenseRows<'r>> {
    rows.dense_only("training with Adam")
}

fn check<M: Model>(model: &M, rows: &Rows, rule: &dyn TargetRule, loss: &dyn TrainingLoss) -> Result<()> {
    model.check(rows)?;
    check_length("rows that have a target or none", rows.n_rows(), rule.n_rows())?;
    check_length("scores of the model", n_columns(rule.n_classes()), model.n_scores())?;
    loss.check_classes(rule.n_classes())?;
    check_members(&rule.rows(), rows.n_rows())
}

/// Refuses to train on no row, on one that is not there, and with vectors that are not there.
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

/// Asks a method for the targets of an epoch, and refuses them where nothing can be trained towards them.
///
/// Where the loss needs it, they are shifted so that their means are class shares.
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
    out.check(rule.n_rows(), rule.n_classes())?;
    out.check_finite()?;
    if !loss.has_minimum_for_any_targets() {
        out.shift_to_shares(&rule.rows(), rule.shares()?);
    }
    Ok(())
}
