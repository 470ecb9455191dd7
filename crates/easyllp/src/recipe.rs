//! All of `train` at once: what is chosen by held-out bags, and then the model of all bags.
//!
//! The program and the Python package both cook by these recipes, so that the same settings give the same model, byte for byte.

mod choices;
mod optimizer;
mod path;
mod validation;

pub use choices::{Choices, TargetsName};
pub use optimizer::OptimizerChoice;

use crate::artifact::ModelFile;
use crate::bagging;
use crate::bags::Bags;
use crate::classes::Classes;
use crate::error::{Error, Result};
use crate::estimate::{Estimate, Estimator};
use crate::link::Link;
use crate::loss::{LossName, TrainingLoss};
use crate::method::{MethodName, MethodOptions};
use crate::model::{AnyModel, ImageShape, Model, ModelName, RowsForm};
use crate::optim::{Adam, Lbfgs};
use crate::predictions::Predictions;
use crate::prior::LabelPrior;
use crate::rows::Rows;
use crate::table::Encoder;
use crate::train::{FullBatch, Judge, Lesson, Optimizer, Progress, Stop, TrainLog, Trainer};
use crate::training_bags::TrainingBags;
use choices::by_name;
use ndarray::Array2;
use path::PathSearch;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use validation::{Candidate, Selection, ValidationBags};

/// Penalties for a single label, from strong to weak, that [`Penalty::Auto`] chooses from. Not all of them are tried.
pub const PENALTIES: [f64; 8] = [1000.0, 300.0, 100.0, 30.0, 10.0, 3.0, 1.0, 0.3];

/// How precisely a penalty's solution is found that is only compared with others. The final model is fitted to
/// [`Lbfgs::tolerance`].
const PATH_TOLERANCE: f64 = 1e-3;

/// How a model comes out of rows and bags.
///
/// ```
/// use easyllp::recipe::Recipe;
/// use easyllp::{Bags, Model, Rows, bagging};
/// use ndarray::Array2;
/// use std::ops::ControlFlow;
///
/// // Of two hundred pairs of rows it is known how many are positive, which they are where the feature is 1.
/// let labels: Vec<u32> = (0..400).map(|row| row % 2).collect();
/// let rows = Rows::dense(Array2::from_shape_fn((400, 1), |(row, _)| if labels[row] == 1 { 1.0_f32 } else { -1.0 }))?;
/// let bags = Bags::from_labels(bagging::random(400, &bagging::Sizes::Fixed(2), 1)?, &labels, 2)?;
///
/// let recipe = Recipe::default(); // a linear model, its penalty chosen by a fifth of the bags
/// let fitted = recipe.fit(&rows, &bags, None, &mut |_| ControlFlow::Continue(()))?;
/// assert!(fitted.model.scores(&rows)?[[1, 0]] > 0.0);
/// # Ok::<(), easyllp::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Recipe {
    /// The method.
    pub method: MethodName,
    /// What is said of what the method leaves open.
    pub choices: Choices,
    /// The model.
    pub model: ModelName,
    /// The loss; cross-entropy if nothing is said.
    pub loss: Option<LossName>,
    /// The penalty of a linear model at its optimum; with minibatches the decay of weights, 0 if nothing is said.
    pub l2: Option<Penalty>,
    /// The most passes of minibatches, which a linear model then goes by, too.
    pub epochs: Option<NonZeroUsize>,
    /// The step size of minibatches; for easyllp-sgd a factor of the paper's steps.
    pub lr: Option<f64>,
    /// Rows in a minibatch.
    pub batch_size: Option<NonZeroUsize>,
    /// The share of bags to choose by, from 0 to below 1.
    pub holdout: f64,
    /// What held-out bags choose and stop by.
    pub stop_by: StopBy,
    /// After so many epochs in a row that are no better, minibatches stop.
    pub patience: NonZeroUsize,
    /// An epoch is judged by the mean figure of so many, the last of which it is.
    pub smoothing: NonZeroUsize,
    /// The seed of the split, of first weights and of the order of rows.
    pub seed: u64,
}

impl Default for Recipe {
    fn default() -> Self {
        Self {
            method: MethodName::default(),
            choices: Choices::default(),
            model: ModelName::default(),
            loss: None,
            l2: None,
            epochs: None,
            lr: None,
            batch_size: None,
            holdout: 0.2,
            stop_by: StopBy::default(),
            patience: NonZeroUsize::new(10).expect("ten is not nothing"),
            smoothing: NonZeroUsize::MIN,
            seed: 1,
        }
    }
}

/// A penalty l2/2·‖w‖².
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Penalty {
    /// The best of [`PENALTIES`] on held-out bags.
    Auto,
    /// This one, at least 0.
    Value(f64),
}

/// What held-out bags choose by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StopBy {
    /// The Brier score.
    #[default]
    Brier,
    /// The error.
    Error,
}

by_name! { StopBy, "figure to stop by", "brier" => Brier, "error" => Error }

/// What a training is doing, for a caller that watches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Doing<'d> {
    /// One of its trainings begins.
    Begins {
        /// Which one.
        what: &'d str,
        /// The most epochs, or iterations of L-BFGS, that it takes.
        epochs: usize,
        /// How many rows it has.
        rows: usize,
    },
    /// It goes on.
    Progress(Progress),
}

/// A model, and how it came about.
#[derive(Debug, Clone)]
pub struct Fitted {
    /// The model of all bags.
    pub model: AnyModel,
    /// The loss that it was trained with.
    pub loss: LossName,
    /// How it was trained in the end: with the best penalty, for as many epochs as were best.
    pub optimizer: Optimizer,
    /// The course of the training on all bags.
    pub log: TrainLog,
    /// What the choice was made by, if bags were held out.
    pub held_out: Option<HeldOut>,
}

/// Validation bags, held out of training, and what models of the other bags say of their rows.
#[derive(Debug, Clone)]
pub struct HeldOut {
    /// The rows of the validation bags, by their places in the table.
    pub rows: Vec<u32>,
    /// The validation bags, over these rows alone.
    pub bags: Bags,
    /// How many bags the models were trained on.
    pub n_others: usize,
    /// How many models were compared: penalties, epochs or rounds.
    pub n_candidates: usize,
    /// Scores of these rows to evaluate with: those of a fold of the bags by the model that was best on the other folds, so that
    /// no bag evaluates what it chose. `None` if there was a choice among models and there are fewer than 4 validation bags.
    pub scores: Option<Array2<f32>>,
    /// The folds, over the same rows as `bags`: all bags in one, if there was no choice.
    pub folds: Vec<Bags>,
    /// The log of the training that was best on all validation bags.
    pub log: TrainLog,
}

impl HeldOut {
    /// Every metric that the validation bags allow, with its name; `None` without `scores`. Each fold gives its own, and these are
    /// their means by rows.
    pub fn figures(&self, link: Link) -> Result<Option<Vec<(&'static str, Estimate)>>> {
        let Some(scores) = &self.scores else { return Ok(None) };
        let predictions = Predictions::new(scores.view(), link)?;
        let of = |bags: &Bags| Estimator::new(bags)?.figures(&predictions);
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

/// A caller that watches, and may break off at any event.
pub type Watch<'w> = &'w mut dyn FnMut(Doing) -> ControlFlow<()>;

impl Recipe {
    /// Refuses settings that do not go together; `has_labels` says whether every bag is to be a single row.
    pub fn check(&self, has_labels: bool) -> Result<()> {
        self.choices.check(self.method, has_labels)?;
        self.plan().map(|_| ())
    }

    /// What of these settings does not support sparse rows, if anything.
    pub fn needs_dense_rows(&self) -> Option<&'static str> {
        match self.plan() {
            _ if self.model != ModelName::Linear => Some("a model that is not linear"),
            _ if self.method == MethodName::LaplacianMeanMap => Some("laplacian-mean-map"),
            Ok(Plan::Given(Optimizer::Sgd(_))) => Some("easyllp-sgd"),
            Ok(Plan::Given(Optimizer::Adam(_))) => Some("training with Adam"),
            _ => None,
        }
    }

    /// Trains on some of the bags, chooses by the others, and trains on all.
    pub fn fit(&self, rows: &Rows, bags: &Bags, image: Option<ImageShape>, watch: Watch) -> Result<Fitted> {
        self.check(bags.sizes().all(|size| size == 1))?;
        if let Some(what) = self.needs_dense_rows() {
            rows.dense_only(what)?;
        }
        let plan = self.plan()?;
        let name = self.loss.unwrap_or(LossName::cross_entropy(bags.n_classes()));
        let form = RowsForm { n_dense: rows.n_dense(), cardinalities: rows.cardinalities(), image };
        let untrained = self.model.build(form, bags.n_classes(), self.seed)?;
        let options = self.choices.options(self.seed);
        let mut course = Course { recipe: self, options, rows, loss: name.training()?, untrained };
        let (held_out, optimizer) = if self.holdout > 0.0 {
            let bagging::Split { train, held_out } = bagging::split(bags, self.holdout, self.seed)?;
            if held_out.n_bags() < 2 {
                let (holdout, n_bags, n_held_out) = (self.holdout, bags.n_bags(), held_out.n_bags());
                return Err(Error::TooFewHeldOut { holdout, n_bags, n_held_out });
            }
            let validation = ValidationBags::new(rows, &held_out, self.seed)?;
            let Chosen { model, log, place, n_candidates, scores } =
                course.choose(&plan, &train, &validation, watch)?;
            let best = log.best.map_or(log.epochs.len(), |(best, _)| best);
            let mut optimizer = plan.optimizers(bags.n_bags()).swap_remove(place);
            if self.method.goes_by_rounds() {
                course.options.rounds = best;
            } else if let Optimizer::Adam(adam) = &mut optimizer {
                adam.epochs = best;
            }
            // A convex loss has one minimum, and the best model of the other bags is close to it.
            if let Optimizer::Lbfgs(_) = optimizer {
                course.untrained = model;
            }
            let ValidationBags { members, bags, folds, .. } = validation;
            let folds = match n_candidates {
                1 => vec![bags.clone()],
                _ => folds.into_iter().map(|fold| fold.reporting).collect(),
            };
            let n_others = train.n_bags();
            (Some(HeldOut { rows: members, bags, n_others, n_candidates, scores, folds, log }), optimizer)
        } else {
            (None, plan.optimizers(bags.n_bags()).swap_remove(0))
        };
        let mut model = course.untrained.clone();
        let log = course.fit(&mut model, bags, &optimizer, "all bags", None, watch)?;
        Ok(Fitted { model, loss: name, optimizer, log, held_out })
    }

    /// The file of a model that this recipe gave.
    pub fn model_file(
        &self,
        fitted: Fitted,
        rows: &Rows,
        bags: &Bags,
        encoder: Encoder,
        classes: Classes,
        image: Option<ImageShape>,
    ) -> ModelFile {
        ModelFile {
            classes,
            loss: fitted.loss,
            method: self.method.to_string(),
            prior: LabelPrior::pooled(bags),
            settings: self.settings(bags, &fitted).into_iter().collect(),
            fingerprint: bags.fingerprint(),
            training_bags: TrainingBags::new(&rows.hashes(), bags),
            encoder,
            name: self.model.clone(),
            image,
            model: fitted.model,
        }
    }

    /// What a model file tells of a training.
    fn settings(&self, bags: &Bags, fitted: &Fitted) -> Vec<(String, String)> {
        let mut settings = vec![
            ("bags", bags.n_bags().to_string()),
            ("rows", bags.n_members().to_string()),
            ("holdout", self.holdout.to_string()),
            ("seed", self.seed.to_string()),
        ];
        settings.extend(self.choices.settings(self.method));
        if self.method.goes_by_rounds() {
            settings.push(("rounds", fitted.log.epochs.len().to_string()));
        }
        settings.extend(match &fitted.optimizer {
            Optimizer::Lbfgs(lbfgs) => {
                vec![("optimizer", "L-BFGS".into()), ("l2", format!("{:.3e}", lbfgs.l2))]
            }
            Optimizer::Adam(adam) => vec![
                ("optimizer", "Adam".into()),
                ("epochs", adam.epochs.to_string()),
                ("lr", adam.learning_rate.to_string()),
                ("batch size", adam.batch_size.to_string()),
                ("l2", adam.weight_decay.to_string()),
            ],
            Optimizer::Sgd(sgd) => vec![("optimizer", "SGD".into()), ("lr", sgd.scale.to_string())],
        });
        settings.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    fn plan(&self) -> Result<Plan> {
        let misfit = |reason: &str| Err(Error::Misfit { reason: reason.into() });
        if self.method == MethodName::EasyLlpSgd {
            if self.epochs.is_some() || self.batch_size.is_some() || self.l2.is_some() {
                return misfit(
                    "easyllp-sgd is one pass with a row at a time, held by `domain`: `epochs`, `batch_size` and `l2` are for others",
                );
            }
            return Ok(Plan::Given(Optimizer::Sgd(self.choices.sgd(self.lr))));
        }
        let has_minibatches = self.optimizer_choice().because.is_some();
        match (has_minibatches, self.l2) {
            (true, Some(Penalty::Auto)) => {
                misfit("`l2` auto is for linear models without minibatches: give a number")
            }
            (true, l2) => {
                let adam = Adam::default();
                Ok(Plan::Given(Optimizer::Adam(Adam {
                    epochs: self.epochs.map_or(adam.epochs, NonZeroUsize::get),
                    batch_size: self.batch_size.map_or(adam.batch_size, NonZeroUsize::get),
                    learning_rate: self.lr.unwrap_or(adam.learning_rate),
                    weight_decay: if let Some(Penalty::Value(l2)) = l2 { l2 } else { 0.0 },
                    ..adam
                })))
            }
            (false, Some(Penalty::Value(l2))) => {
                Ok(Plan::Given(Optimizer::Lbfgs(Lbfgs { l2, ..Lbfgs::default() })))
            }
            (false, _) if self.holdout <= 0.0 => {
                misfit("`l2` auto needs held-out bags to choose by: give a number, or a `holdout` above 0")
            }
            (false, _) => Ok(Plan::BestPenalty),
        }
    }
}

/// How the loss is brought down, as far as the recipe says.
enum Plan {
    /// To its optimum, with the best of eight penalties.
    BestPenalty,
    Given(Optimizer),
}

impl Plan {
    /// What is to be tried on so many bags.
    fn optimizers(&self, n_bags: usize) -> Vec<Optimizer> {
        let with_penalty =
            |penalty: f64| Optimizer::Lbfgs(Lbfgs { l2: penalty / n_bags as f64, ..Lbfgs::default() });
        match self {
            Self::BestPenalty => PENALTIES.map(with_penalty).to_vec(),
            Self::Given(optimizer) => vec![optimizer.clone()],
        }
    }
}

/// A recipe on its way.
struct Course<'c, 'r> {
    recipe: &'c Recipe,
    options: MethodOptions,
    rows: &'c Rows<'r>,
    loss: &'static dyn TrainingLoss,
    untrained: AnyModel,
}

/// What was best on held-out bags.
struct Chosen {
    model: AnyModel,
    log: TrainLog,
    /// Which of the plan's optimisers.
    place: usize,
    n_candidates: usize,
    scores: Option<Array2<f32>>,
}

/// A fit on the training bags.
struct Tried {
    model: AnyModel,
    log: TrainLog,
    metric: f64,
    candidate: Candidate,
}

impl<'c> Course<'c, '_> {
    fn lesson<'l>(&self, bags: &'l Bags) -> Lesson<'l>
    where
        'c: 'l,
    {
        Lesson { method: self.recipe.method, options: self.options.clone(), bags, loss: self.loss }
    }

    fn fit(
        &self,
        model: &mut AnyModel,
        bags: &Bags,
        optimizer: &Optimizer,
        what: &str,
        selection: Option<&mut Selection>,
        watch: Watch,
    ) -> Result<TrainLog> {
        let method = self.recipe.method;
        let lesson = self.lesson(bags);
        let epochs = match optimizer {
            _ if method.goes_by_rounds() => self.options.rounds,
            Optimizer::Adam(adam) => adam.epochs,
            Optimizer::Lbfgs(lbfgs) => lbfgs.max_iterations,
            Optimizer::Sgd(_) => 1,
        };
        begin(what, epochs, bags, watch)?;
        let trainer = Trainer { optimizer: optimizer.clone(), seed: self.recipe.seed };
        let mut figure;
        let judge = match selection {
            Some(selection) => {
                selection.start_training();
                figure = |model: &AnyModel| selection.see(model);
                let (patience, smoothing) = (self.recipe.patience.get(), self.recipe.smoothing.get());
                Some(Judge { figure: &mut figure, patience, smoothing })
            }
            None => None,
        };
        let mut watch = |progress| watch(Doing::Progress(progress));
        match trainer.fit_method(model, self.rows, &lesson, &mut watch, judge)? {
            TrainLog { stopped: Stop::Caller, .. } => Err(Error::BrokenOff),
            log => Ok(log),
        }
    }

    /// The model that is best on validation bags.
    fn choose(&self, plan: &Plan, train: &Bags, validation: &ValidationBags, watch: Watch) -> Result<Chosen> {
        let Recipe { stop_by, smoothing, .. } = self.recipe;
        let n_scores = self.untrained.n_scores();
        let mut selection = Selection::new(validation, *stop_by, self.loss.link(), smoothing.get(), n_scores);
        let mut optimizers = plan.optimizers(train.n_bags());
        let n_penalties = optimizers.len();
        let lesson = self.lesson(train);
        let mut full_batch = match (optimizers.first(), self.untrained.as_linear()) {
            (Some(Optimizer::Lbfgs(lbfgs)), Some(linear)) if n_penalties > 1 => {
                FullBatch::of_lesson(linear, self.rows, &lesson, self.recipe.seed, lbfgs.l2)?
            }
            _ => None,
        };
        let mut tried: Vec<Option<Tried>> = (0..n_penalties).map(|_| None).collect();
        // All bags choose the final model. For each fold the others search by themselves, so that it has no say in what it reports.
        let n_searches = if n_penalties > 1 { 1 + validation.folds.len() } else { 1 };
        let mut searches: Vec<_> = (0..n_searches).map(|_| PathSearch::new(n_penalties)).collect();
        for (by, search) in searches.iter_mut().enumerate() {
            while let Some(place) = search.next() {
                if tried[place].is_none() {
                    let optimizer = &mut optimizers[place];
                    let what = match optimizer {
                        Optimizer::Lbfgs(lbfgs) if n_penalties > 1 => {
                            lbfgs.tolerance = PATH_TOLERANCE;
                            let number = tried.iter().flatten().count() + 1;
                            format!("penalty {number} of at most {n_penalties} (l2 {:.1e})", lbfgs.l2)
                        }
                        _ => "training bags".into(),
                    };
                    let neighbour = search.neighbour(place).and_then(|place| tried[place].as_ref());
                    let mut model = neighbour.map_or(&self.untrained, |tried| &tried.model).clone();
                    let log = match (&mut full_batch, &*optimizer) {
                        (Some(full_batch), Optimizer::Lbfgs(lbfgs)) => {
                            begin(&what, lbfgs.max_iterations, train, watch)?;
                            selection.start_training();
                            fit_penalty(full_batch, lbfgs, &mut model, &mut selection, watch)?
                        }
                        _ => self.fit(&mut model, train, optimizer, &what, Some(&mut selection), watch)?,
                    };
                    let Some((_, metric)) = log.best else { return Err(Error::NoFigure) };
                    let candidate = selection.take_last().ok_or(Error::NoFigure)?;
                    tried[place] = Some(Tried { model, log, metric, candidate });
                }
                let Some(Tried { log, metric, candidate, .. }) = &tried[place] else { break };
                let metric = if by == 0 { *metric } else { candidate.metrics[by] };
                search.see(metric, log.epochs.is_empty());
            }
        }
        for (fold, search) in searches[1..].iter().enumerate() {
            if let Some(best) = search.best().and_then(|place| tried[place].as_ref()) {
                selection.report(fold, &best.candidate.scores);
            }
        }
        let place = searches[0].best().ok_or(Error::NoFigure)?;
        let Some(Tried { model, log, .. }) = tried.swap_remove(place) else { return Err(Error::NoFigure) };
        let (n_candidates, scores) = selection.finish();
        Ok(Chosen { model, log, place, n_candidates, scores })
    }
}

/// Says that a training of so many epochs at most begins.
fn begin(what: &str, epochs: usize, bags: &Bags, watch: Watch) -> Result<()> {
    match watch(Doing::Begins { what, epochs, rows: bags.n_members() }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::BrokenOff),
    }
}

/// Trains with one penalty of several, which have all else in common.
fn fit_penalty(
    full_batch: &mut FullBatch,
    lbfgs: &Lbfgs,
    model: &mut AnyModel,
    selection: &mut Selection,
    watch: Watch,
) -> Result<TrainLog> {
    let linear = model.as_linear_mut().ok_or(Error::NotLinear)?;
    let log = full_batch.fit(lbfgs, linear, &mut |progress| watch(Doing::Progress(progress)))?;
    if log.stopped == Stop::Caller {
        return Err(Error::BrokenOff);
    }
    let best = Some((log.epochs.len(), selection.see(model)?));
    Ok(TrainLog { best, ..log })
}

#[cfg(test)]
mod tests;
