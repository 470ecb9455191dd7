//! Write your own method: a session trains stages and keeps the best model.
//!
//! A [`Method`] is a procedure over a [`Session`]: it trains stages, asks for scores, and offers
//! models as candidates. With validation bags a session stops stages early, keeps the best
//! candidate, and records the stages up to it with their lengths. The same procedure is then
//! replayed on all bags, without validation, following that record.

mod choose;
mod judge;
mod learner;
mod log;
mod method;
mod path;
mod starts;
pub(crate) mod validation;

pub(crate) use choose::OptimizerPlan;
pub use choose::PENALTIES;
pub(crate) use learner::Learner;
pub use log::{FitEvent, FitWatch, StageLog, StageOptimizer};
pub use method::{Method, Requires, Supports};
pub(crate) use starts::DrawModel;
pub use validation::ValidationMetric;

use crate::aim::{Aim, FixedTargets};
use crate::bags::Bags;
use crate::classes::n_columns;
use crate::correction::Targets;
use crate::error::{Error, Result, check_length};
use crate::loss::TrainingLoss;
use crate::model::{Model, Scorer};
use crate::optim::sgd::Sgd;
use crate::optim::{Adam, Lbfgs};
use crate::prior::LabelPrior;
use crate::rows::Rows;

use crate::train::{
    BestSoFar, EarlyStopping, EpochLog, FullBatch, OnePass, Optimizer, Progress, Stop, TrainLog, Trainer,
};
use judge::Judge;
pub(crate) use method::check_support;
use ndarray::Array2;
use std::ops::ControlFlow;
use validation::Selection;

/// The choice made on validation bags.
pub(crate) struct Record {
    stages: Vec<ChosenStage>,
    /// The index of the initial weights.
    start: usize,
    /// The chosen model; the optimum of all bags is close to it.
    model: Box<dyn Learner>,
}

/// The outcome of a session with validation bags.
pub(crate) struct Choice {
    pub(crate) record: Record,
    /// The stages up to the best one.
    pub(crate) stages: Vec<StageLog>,
    /// The number of candidates compared.
    pub(crate) n_candidates: usize,
    /// Scores of the validation rows, for each bag by a model that it did not choose; `None` if
    /// there are too few bags.
    pub(crate) scores: Option<Array2<f32>>,
}

#[derive(Debug, Clone)]
struct ChosenStage {
    stage: String,
    optimizer: StageOptimizer,
    /// The index of the optimizer.
    place: usize,
    /// The number of epochs or rounds.
    length: usize,
}

/// The best candidate of all stages so far.
struct BestStage {
    n_stages: usize,
    metric: f64,
    model: Box<dyn Learner>,
}

/// A round in progress.
struct Round {
    optimizer: Optimizer,
    number: usize,
    loss: f64,
}

/// What a [`Method`] works with: rows, bags, the current model, stages of training and candidates.
///
/// ```
/// use easyllp::method::{CountLikelihood, EasyLlp};
/// use easyllp::session::{Method, Session};
/// use easyllp::train::{Aim, Optimizer};
/// use easyllp::{Bags, Noise, Partition, Result, Rows, loss::LossName, model::LinearModel, optim::Adam};
/// use ndarray::array;
///
/// /// A warm start: corrected targets first, then the likelihood of counts.
/// struct WarmStart;
///
/// impl Method for WarmStart {
///     fn name(&self) -> &str {
///         "warm-start"
///     }
///
///     fn run(&self, session: &mut Session) -> Result<()> {
///         let (bags, loss) = (session.bags(), session.loss());
///         session.train("easyllp", Aim::Targets(&mut EasyLlp::new(bags), loss))?;
///         session.train("count-likelihood", Aim::Bags(&mut CountLikelihood::new(bags)))
///     }
/// }
///
/// let rows = Rows::dense(array![[0.9_f32], [0.1], [0.2], [0.8], [0.7], [0.95]])?;
/// let partition = Partition::new(6, [[0, 1], [2, 3], [4, 5]])?;
/// let bags = Bags::binary(partition, &[1.0, 1.0, 2.0], Noise::None)?;
/// let model = LinearModel::for_rows(&rows, 2)?;
/// let mut session = Session::new(model, &rows, &bags, LossName::Logistic.training()?);
/// session.set_optimizer(Optimizer::Adam(Adam::default()));
/// session.run(&WarmStart)?;
/// let (model, stages): (LinearModel, _) = session.finish();
/// assert!(model.weights()[[0, 0]] > 0.0);
/// assert_eq!(stages[1].stage, "count-likelihood");
/// # Ok::<(), easyllp::Error>(())
/// ```
pub struct Session<'s, 'r> {
    rows: &'s Rows<'r>,
    bags: &'s Bags,
    loss: &'s dyn TrainingLoss,
    model: Box<dyn Learner>,
    plan: OptimizerPlan,
    learning_rate: Option<f64>,
    seed: u64,
    judge: Judge<'s>,
    patience: usize,
    smoothing: usize,
    replay: Option<Record>,
    /// Makes a model with other initial weights.
    draw: Option<&'s DrawModel<'s>>,
    /// Which of several initial weights the model comes from.
    start: usize,
    notes: Vec<String>,
    watch: Option<FitWatch<'s>>,
    /// What is trained on, for progress.
    what: &'static str,
    stages: Vec<StageLog>,
    chosen: Vec<ChosenStage>,
    best: Option<BestStage>,
    round: Option<Round>,
}

impl<'s, 'r> Session<'s, 'r> {
    /// A session that trains on these bags, with L-BFGS unless another optimizer is set.
    pub fn new<M: Model + Clone + 'static>(
        model: M,
        rows: &'s Rows<'r>,
        bags: &'s Bags,
        loss: &'s dyn TrainingLoss,
    ) -> Self {
        Self::of(Box::new(model), rows, bags, loss)
    }

    fn of(model: Box<dyn Learner>, rows: &'s Rows<'r>, bags: &'s Bags, loss: &'s dyn TrainingLoss) -> Self {
        Self {
            rows,
            bags,
            loss,
            model,
            plan: OptimizerPlan::Given(Optimizer::Lbfgs(Lbfgs::default())),
            learning_rate: None,
            seed: 0,
            judge: Judge::Nobody,
            patience: usize::MAX,
            smoothing: 1,
            replay: None,
            draw: None,
            start: 0,
            notes: Vec::new(),
            watch: None,
            what: "all bags",
            stages: Vec::new(),
            chosen: Vec::new(),
            best: None,
            round: None,
        }
    }

    /// Sets the optimizer of stages that do not give their own.
    pub fn set_optimizer(&mut self, optimizer: Optimizer) {
        self.plan = OptimizerPlan::Given(optimizer);
    }

    pub(crate) fn set_plan(&mut self, plan: OptimizerPlan) {
        self.plan = plan;
    }

    /// Sets the seed of minibatches and of a method's random draws.
    pub fn set_seed(&mut self, seed: u64) {
        self.seed = seed;
    }

    /// Sets the learning rate, for methods with their own step sizes.
    pub fn set_learning_rate(&mut self, learning_rate: Option<f64>) {
        self.learning_rate = learning_rate;
    }

    /// Sets the progress callback.
    pub fn set_watch(&mut self, watch: FitWatch<'s>) {
        self.watch = Some(watch);
    }

    /// Compares candidates by this metric, lower is better. Stages stop early by it, and the
    /// session ends with the best candidate.
    pub fn set_early_stopping(&mut self, early_stopping: EarlyStopping<'s, dyn Scorer>) {
        let EarlyStopping { metric, patience, smoothing } = early_stopping;
        (self.judge, self.patience, self.smoothing) = (Judge::Custom(metric), patience, smoothing);
    }

    /// Compares candidates on validation bags.
    pub(crate) fn set_validation(&mut self, selection: Selection<'s>, patience: usize, smoothing: usize) {
        (self.judge, self.patience, self.smoothing) = (Judge::Validation(selection), patience, smoothing);
        self.what = "training bags";
    }

    /// Replays the choice made on validation bags.
    pub(crate) fn set_replay(&mut self, record: Record) {
        self.replay = Some(record);
    }

    /// Runs a method. If candidates are compared, the model is then the best of them.
    pub fn run(&mut self, method: &dyn Method) -> Result<()> {
        let has_row_labels = self.bags.have_row_labels();
        method.check(has_row_labels)?;
        let is_linear = self.model.as_linear_mut().is_some();
        check_support(method, is_linear, self.loss)?;
        self.loss.check_classes(self.bags.n_classes())?;
        self.model.check(self.rows)?;
        check_length("scores of the model", n_columns(self.bags.n_classes()), self.model.n_scores())?;
        method.run(self)?;
        if let Some(best) = self.best.take() {
            self.stages.truncate(best.n_stages);
            self.chosen.truncate(best.n_stages);
            self.model = best.model;
        }
        Ok(())
    }

    /// Messages of the method for the user.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Returns the model, with the logs of the stages that led to it.
    ///
    /// # Panics
    ///
    /// If the session was made for a model of another type.
    pub fn finish<M: Model + Clone + 'static>(self) -> (M, Vec<StageLog>) {
        let model =
            self.model.into_any().downcast().expect("the type of model that the session was made for");
        (*model, self.stages)
    }

    /// The choice made on validation bags.
    pub(crate) fn choice(self) -> Choice {
        let Judge::Validation(selection) = self.judge else { panic!("a session with validation bags") };
        let (n_candidates, scores) = selection.finish();
        let record = Record { stages: self.chosen, start: self.start, model: self.model };
        Choice { record, stages: self.stages, n_candidates, scores }
    }

    /// The rows.
    pub fn rows(&self) -> &'s Rows<'r> {
        self.rows
    }

    /// The bags to train on.
    pub fn bags(&self) -> &'s Bags {
        self.bags
    }

    /// The loss of rows.
    pub fn loss(&self) -> &'s dyn TrainingLoss {
        self.loss
    }

    /// The logs of the stages so far.
    pub fn stages(&self) -> &[StageLog] {
        &self.stages
    }

    /// The seed, for a method's random draws.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Whether candidates are compared, so that training can be stopped early.
    pub fn has_validation(&self) -> bool {
        self.judge.is_there()
    }

    /// Whether the model is linear.
    pub fn is_linear(&mut self) -> bool {
        self.model.as_linear_mut().is_some()
    }

    /// Adam as the settings have it, if the model is trained by it.
    pub fn adam(&self) -> Option<&Adam> {
        match &self.plan {
            OptimizerPlan::Given(Optimizer::Adam(adam)) => Some(adam),
            _ => None,
        }
    }

    /// Tells the user something about this fit, such as why a stage was left out.
    pub fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// The learning rate of the settings, if one is set.
    pub fn learning_rate(&self) -> Option<f64> {
        self.learning_rate
    }

    /// Scores of all rows of the table by the current model.
    pub fn scores(&self) -> Result<Array2<f32>> {
        self.model.scores(self.rows)
    }

    /// Trains a stage with the optimizer of the settings. Weights carry over from the previous
    /// stage.
    ///
    /// If candidates are compared, Adam offers the model after each epoch and stops early. L-BFGS
    /// offers the optimum, or the best of several penalties if none is set.
    pub fn train(&mut self, stage: &str, aim: Aim) -> Result<()> {
        let plan = self.plan.clone();
        self.train_by(stage, aim, &plan)
    }

    /// Trains a stage with an optimizer of its own.
    pub fn train_with(&mut self, stage: &str, aim: Aim, optimizer: Optimizer) -> Result<()> {
        self.train_by(stage, aim, &OptimizerPlan::Given(optimizer))
    }

    fn train_by(&mut self, stage: &str, mut aim: Aim, plan: &OptimizerPlan) -> Result<()> {
        let mut optimizers = plan.optimizers(self.bags.n_bags());
        match self.next_stage(stage) {
            Next::Skipped => Ok(()),
            Next::Replayed(ChosenStage { optimizer, place, length, .. }) => {
                // Penalties depend on the number of bags, which is not that of the choice.
                let optimizer = match optimizer {
                    StageOptimizer::Adam(adam) => Optimizer::Adam(Adam { epochs: length, ..adam }),
                    _ => optimizers.swap_remove(place),
                };
                self.start_close(&optimizer);
                let log = self.fit_stage(stage, self.what, aim, &optimizer)?;
                self.finish_stage(stage, optimizer.into(), 0, log)
            }
            Next::New => {
                let mut full_batch = match (&optimizers[..], &mut aim, self.model.as_linear_mut()) {
                    ([Optimizer::Lbfgs(lbfgs), _, ..], Aim::Targets(rule, loss), Some(linear)) => {
                        Some(FullBatch::checked(linear, self.rows, *rule, *loss, lbfgs.l2)?)
                    }
                    _ => None,
                };
                self.choose(stage, optimizers, &mut |session, optimizer, what| match (
                    &mut full_batch,
                    optimizer,
                ) {
                    (Some(full_batch), Optimizer::Lbfgs(lbfgs)) => {
                        session.fit_penalty(stage, what, full_batch, lbfgs)
                    }
                    _ => session.fit_stage(stage, what, aim.reborrow(), optimizer),
                })
            }
        }
    }

    /// Trains a linear model by one pass of SGD, with a step on one row of each bag.
    pub fn train_one_pass(&mut self, stage: &str, settings: Sgd, prior: LabelPrior) -> Result<()> {
        if let Next::Skipped = self.next_stage(stage) {
            return Ok(());
        }
        self.begin(stage, self.what, 1)?;
        let one_pass = OnePass { settings, seed: self.seed, prior };
        let (rows, bags, loss) = (self.rows, self.bags, self.loss);
        let Self { model, watch, .. } = self;
        let linear = model.as_linear_mut().ok_or(Error::NotLinear)?;
        let log = one_pass.fit(linear, rows, bags, loss, &mut |progress| forward(watch, progress))?;
        let log = self.judged(not_interrupted(log)?)?;
        self.finish_stage(stage, StageOptimizer::Sgd(one_pass.settings), 0, log)
    }

    /// Trains towards these targets without offering the model: part of a round, or of a stage that ends with
    /// [`offer`](Self::offer).
    pub fn update(&mut self, targets: &Targets) -> Result<()> {
        if self.replay.as_ref().is_some_and(|record| record.stages.len() <= self.stages.len()) {
            return Ok(());
        }
        let default = self.plan.optimizers(self.bags.n_bags()).swap_remove(0);
        let (optimizer, number) =
            self.round.as_ref().map_or((default, 1), |round| (round.optimizer.clone(), round.number));
        // From round to round minibatches come in another order.
        let seed = self.seed.wrapping_add(number as u64 - 1);
        let (rows, bags, loss) = (self.rows, self.bags, self.loss);
        let batch = Progress::Batch { epoch: number, rows_done: 0, n_rows: bags.n_members() };
        let Self { model, watch, .. } = self;
        let mut rule = FixedTargets::new(bags, targets);
        let aim = Aim::Targets(&mut rule, loss);
        let trainer = Trainer { optimizer, seed };
        let log = model.train(&trainer, rows, aim, &mut |_| forward(watch, batch), None)?;
        let log = not_interrupted(log)?;
        if let Some(round) = &mut self.round {
            round.loss = log.epochs.last().map_or(f64::NAN, |last| last.loss);
        }
        Ok(())
    }

    /// Trains a stage of at most `n_rounds` rounds. Each call of `round` receives the number of the
    /// round, from 1, and [updates](Self::update) the model, or breaks if it has converged. The
    /// model is offered after each round.
    pub fn rounds(
        &mut self,
        stage: &str,
        most: usize,
        round: &mut dyn FnMut(&mut Self, usize) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let plan = self.plan.clone();
        self.rounds_by(stage, most, &plan, round)
    }

    /// Trains a stage in rounds with an optimizer of its own.
    pub fn rounds_with(
        &mut self,
        stage: &str,
        most: usize,
        optimizer: Optimizer,
        round: &mut dyn FnMut(&mut Self, usize) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        self.rounds_by(stage, most, &OptimizerPlan::Given(optimizer), round)
    }

    fn rounds_by(
        &mut self,
        stage: &str,
        most: usize,
        plan: &OptimizerPlan,
        round: &mut dyn FnMut(&mut Self, usize) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let mut optimizers = plan.optimizers(self.bags.n_bags());
        match self.next_stage(stage) {
            Next::Skipped => Ok(()),
            Next::Replayed(ChosenStage { place, length, .. }) => {
                let optimizer = optimizers.swap_remove(place);
                self.start_close(&optimizer);
                let log = self.run_rounds(stage, self.what, length, &optimizer, round)?;
                self.finish_stage(stage, optimizer.into(), 0, log)
            }
            Next::New => self.choose(stage, optimizers, &mut |session, optimizer, what| {
                session.run_rounds(stage, what, most, optimizer, round)
            }),
        }
    }

    /// Offers the current model as a candidate.
    pub fn offer(&mut self, stage: &str) -> Result<()> {
        if let Next::Skipped = self.next_stage(stage) {
            return Ok(());
        }
        let log = self.judged(TrainLog { epochs: Vec::new(), stopped: Stop::Finished, best: None })?;
        self.finish_stage(stage, StageOptimizer::None, 0, log)
    }

    fn next_stage(&self, stage: &str) -> Next {
        let Some(record) = &self.replay else { return Next::New };
        match record.stages.get(self.stages.len()) {
            Some(chosen) if chosen.stage == stage => Next::Replayed(chosen.clone()),
            _ => Next::Skipped,
        }
    }

    /// The optimum of all bags is close to that of the other bags: a replay with L-BFGS starts from
    /// it.
    fn start_close(&mut self, optimizer: &Optimizer) {
        if let (Optimizer::Lbfgs(_), Some(record), true) = (optimizer, &self.replay, self.stages.is_empty()) {
            self.model = record.model.clone();
        }
    }

    /// Reports the start of a training run with this maximum number of epochs.
    fn begin(&mut self, stage: &str, what: &str, epochs: usize) -> Result<()> {
        let rows = self.bags.n_members();
        let Some(watch) = &mut self.watch else { return Ok(()) };
        match watch(FitEvent::Started { what, stage, epochs, rows }) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Error::Interrupted),
        }
    }

    /// The log, with the metric of the current model.
    fn judged(&mut self, log: TrainLog) -> Result<TrainLog> {
        if !self.judge.is_there() {
            return Ok(log);
        }
        self.judge.start_training();
        let metric = self.judge.see(self.model.as_scorer())?;
        Ok(TrainLog { best: Some((log.epochs.len(), metric)), ..log })
    }

    /// Trains the current model with one optimizer.
    fn fit_stage(&mut self, stage: &str, what: &str, aim: Aim, optimizer: &Optimizer) -> Result<TrainLog> {
        let epochs = match optimizer {
            Optimizer::Adam(adam) => adam.epochs,
            Optimizer::Lbfgs(lbfgs) => lbfgs.max_iterations,
        };
        self.begin(stage, what, epochs)?;
        // From stage to stage minibatches come in another order.
        let seed = self.seed.wrapping_add(self.stages.len() as u64);
        let trainer = Trainer { optimizer: optimizer.clone(), seed };
        let rows = self.rows;
        let Self { model, judge, patience, smoothing, watch, .. } = self;
        let mut progress = |progress| forward(watch, progress);
        let log = if judge.is_there() {
            judge.start_training();
            let mut metric = |model: &(dyn Scorer + 'static)| judge.see(model);
            let early_stopping =
                EarlyStopping { metric: &mut metric, patience: *patience, smoothing: *smoothing };
            model.train(&trainer, rows, aim, &mut progress, Some(early_stopping))?
        } else {
            model.train(&trainer, rows, aim, &mut progress, None)?
        };
        not_interrupted(log)
    }

    /// Runs rounds, starting from the current model.
    fn run_rounds(
        &mut self,
        stage: &str,
        what: &str,
        most: usize,
        optimizer: &Optimizer,
        round: &mut dyn FnMut(&mut Self, usize) -> Result<ControlFlow<()>>,
    ) -> Result<TrainLog> {
        self.begin(stage, what, most)?;
        self.judge.start_training();
        let mut best = BestSoFar::new(self.patience, self.smoothing);
        let mut log = TrainLog { epochs: Vec::new(), stopped: Stop::Finished, best: None };
        for number in 1..=most {
            self.round = Some(Round { optimizer: optimizer.clone(), number, loss: f64::NAN });
            if round(self, number)?.is_break() {
                log.stopped = Stop::Converged;
                break;
            }
            let loss = self.round.take().map_or(f64::NAN, |round| round.loss);
            let of_round = EpochLog { epoch: number, loss };
            log.epochs.push(of_round);
            if self.judge.is_there() {
                let metric = self.judge.see(self.model.as_scorer())?;
                if best.see(self.model.clone(), metric, number).is_break() {
                    log.stopped = Stop::EarlyStopping;
                    break;
                }
            }
            if forward(&mut self.watch, Progress::Epoch(of_round)).is_break() {
                return Err(Error::Interrupted);
            }
        }
        self.round = None;
        log.best = best.give_to(&mut self.model);
        Ok(log)
    }

    /// Keeps the log of a stage, and its model if it is the best so far.
    fn finish_stage(
        &mut self,
        stage: &str,
        optimizer: StageOptimizer,
        place: usize,
        log: TrainLog,
    ) -> Result<()> {
        let length = log.best.map_or(log.epochs.len(), |(best, _)| best);
        let metric = log.best.map(|(_, metric)| metric);
        self.chosen.push(ChosenStage {
            stage: stage.to_owned(),
            optimizer: optimizer.clone(),
            place,
            length,
        });
        self.stages.push(StageLog { stage: stage.to_owned(), optimizer, log });
        if self.judge.is_there() {
            let metric = metric.ok_or(Error::NoValidationMetric)?;
            if self.best.as_ref().is_none_or(|best| metric < best.metric) {
                let n_stages = self.stages.len();
                self.best = Some(BestStage { n_stages, metric, model: self.model.clone() });
            }
        }
        Ok(())
    }
}

/// The next step of a session.
enum Next {
    /// A stage to train, and to choose from if candidates are compared.
    New,
    /// A recorded stage to replay.
    Replayed(ChosenStage),
    /// Nothing: the record ends before this stage.
    Skipped,
}

fn forward(watch: &mut Option<FitWatch>, progress: Progress) -> ControlFlow<()> {
    watch.as_mut().map_or(ControlFlow::Continue(()), |watch| watch(FitEvent::Progress(progress)))
}

fn not_interrupted(log: TrainLog) -> Result<TrainLog> {
    if log.stopped == Stop::Interrupted { Err(Error::Interrupted) } else { Ok(log) }
}
