//! Fit a model: from rows, bags and a [`FitConfig`] to a [`Fitted`] model.
//!
//! A share of the bags is held out for validation. The validation bags choose the penalty, the
//! number of epochs and the best stage of a method. The method is then replayed on all bags. The
//! command line, TOML files, Python and model files share this schema, so the same settings give
//! the same model, byte for byte.

mod fitted;

pub use crate::config::{FitConfig, OptimizerChoice, OptimizerConfig, Penalty, ValidationConfig};
pub use crate::session::{FitEvent, FitWatch, PENALTIES, StageLog, StageOptimizer, ValidationMetric};
pub use fitted::{Fitted, Validation};

use crate::bagging;
use crate::bags::Bags;
use crate::classes::Classes;
use crate::error::{Error, Result};
use crate::loss::{LossName, TrainingLoss};
use crate::model::{ImageShape, Model, ModelSpec, RowsForm};
use crate::optim::Adam;
use crate::prior::LabelPrior;
use crate::rows::Rows;
use crate::session::validation::{Selection, ValidationBags};
use crate::session::{Choice, DrawModel, Learner, Method, OptimizerPlan, Record, Session};
use crate::table::Encoder;
use crate::training_bags::TrainingBags;
use std::ops::ControlFlow;

/// A builder for a fit.
///
/// ```
/// use easyllp::fit::FitEvent;
/// use easyllp::{Bags, FitConfig, Rows, bagging};
/// use ndarray::Array2;
/// use std::ops::ControlFlow;
///
/// // Of two hundred pairs of rows it is known how many are positive, which they are where the feature is 1.
/// let labels: Vec<u32> = (0..400).map(|row| row % 2).collect();
/// let rows = Rows::dense(Array2::from_shape_fn((400, 1), |(row, _)| if labels[row] == 1 { 1.0_f32 } else { -1.0 }))?;
/// let bags = Bags::from_labels(bagging::random(400, &bagging::Sizes::Fixed(2), 1)?, &labels, 2)?;
///
/// let mut n_runs = 0;
/// let mut watch = |event: FitEvent| {
///     n_runs += usize::from(matches!(event, FitEvent::Started { .. }));
///     ControlFlow::Continue(())
/// };
/// let config = FitConfig::default(); // a linear model, its penalty chosen on a fifth of the bags
/// let fitted = config.fitting(&rows, &bags).watch(&mut watch).run()?;
/// assert!(fitted.predict_proba(&rows)?[[1, 1]] > 0.5);
/// assert!(n_runs > 2);
/// # Ok::<(), easyllp::Error>(())
/// ```
pub struct Fit<'f, 'r> {
    config: &'f FitConfig,
    rows: &'f Rows<'r>,
    bags: &'f Bags,
    method: &'f dyn Method,
    is_built_in: bool,
    loss: Option<&'f dyn TrainingLoss>,
    encoder: Option<Encoder>,
    classes: Option<Classes>,
    image: Option<ImageShape>,
    watch: Option<FitWatch<'f>>,
}

impl FitConfig {
    /// Trains a model on bags of these rows.
    pub fn fit(&self, rows: &Rows, bags: &Bags) -> Result<Fitted> {
        self.fitting(rows, bags).run()
    }

    /// Trains a model by a method that is not built in; the `method` of the settings is ignored.
    pub fn fit_with(&self, method: &dyn Method, rows: &Rows, bags: &Bags) -> Result<Fitted> {
        self.fitting(rows, bags).method(method).run()
    }

    /// Starts a fit with these settings.
    pub fn fitting<'f, 'r>(&'f self, rows: &'f Rows<'r>, bags: &'f Bags) -> Fit<'f, 'r> {
        Fit {
            config: self,
            rows,
            bags,
            method: &self.method,
            is_built_in: true,
            loss: None,
            encoder: None,
            classes: None,
            image: None,
            watch: None,
        }
    }
}

impl<'f> Fit<'f, '_> {
    /// Sets a method that is not built in.
    #[must_use]
    pub fn method(self, method: &'f dyn Method) -> Self {
        Self { method, is_built_in: false, ..self }
    }

    /// Sets a loss that is not built in.
    #[must_use]
    pub fn loss(self, loss: &'f dyn TrainingLoss) -> Self {
        Self { loss: Some(loss), ..self }
    }

    /// Sets the encoder of the rows, so that the model file reads the same columns.
    #[must_use]
    pub fn encoder(self, encoder: Encoder) -> Self {
        Self { encoder: Some(encoder), ..self }
    }

    /// Sets the names of the classes; by default 0, 1, ….
    #[must_use]
    pub fn classes(self, classes: Classes) -> Self {
        Self { classes: Some(classes), ..self }
    }

    /// Sets the image shape of the rows, for a convolutional network.
    #[must_use]
    pub fn image(self, image: Option<ImageShape>) -> Self {
        Self { image, ..self }
    }

    /// Sets a progress callback, which may cancel the fit.
    #[must_use]
    pub fn watch(self, watch: FitWatch<'f>) -> Self {
        Self { watch: Some(watch), ..self }
    }

    /// Trains the model that the settings name.
    pub fn run(self) -> Result<Fitted> {
        let (rows, bags, config) = (self.rows, self.bags, self.config);
        self.check()?;
        if let Some(what) = config.needs_dense_rows(self.method) {
            rows.dense_only(what)?;
        }
        let form =
            RowsForm { n_dense: rows.n_dense(), cardinalities: rows.cardinalities(), image: self.image };
        let n_classes = bags.n_classes();
        let model = config.model.build(form, n_classes, config.seed)?;
        let draw = |seed| Ok(Box::new(config.model.build(form, n_classes, seed)?) as Box<dyn Learner>);
        self.run_checked(model, (config.model != ModelSpec::Linear).then_some(&draw))
    }

    /// Trains the given model instead of the one that the settings name.
    pub fn run_model<M: Model + Clone + 'static>(self, model: M) -> Result<Fitted<M>> {
        self.check()?;
        self.run_checked(model, None)
    }

    fn check(&self) -> Result<()> {
        self.config.check_with(self.method, self.bags.have_row_labels())
    }

    fn run_checked<M: Model + Clone + 'static>(
        self,
        mut model: M,
        draw: Option<&DrawModel>,
    ) -> Result<Fitted<M>> {
        let Self { config, rows, bags, method, is_built_in, loss, encoder, classes, image, watch } = self;
        let is_linear = model.as_linear_mut().is_some();
        let plan = config.plan(method, is_linear)?;
        let name = config.loss.unwrap_or(LossName::cross_entropy(bags.n_classes()));
        let loss = loss.map_or_else(|| name.training().map(|loss| loss as &dyn TrainingLoss), Ok)?;
        let mut watch = watch;
        let mut watch =
            |event: FitEvent| watch.as_mut().map_or(ControlFlow::Continue(()), |watch| watch(event));
        let share = config.validation.share;
        let mut still_improving = None;
        let (record, validation) = if share > 0.0 {
            let bagging::Split { train, held_out } = bagging::split(bags, share, config.seed)?;
            if held_out.n_bags() < 2 {
                let (n_bags, n_held_out) = (bags.n_bags(), held_out.n_bags());
                return Err(Error::TooFewHeldOut { holdout: share, n_bags, n_held_out });
            }
            let held_out = ValidationBags::new(rows, &held_out, config.seed)?;
            let stage = Stage { config, rows, bags: &train, method, loss, draw, plan: plan.clone() };
            let choice = stage.choose(model.clone(), &held_out, &mut watch)?;
            let Choice { record, stages, n_candidates, scores } = choice;
            if let [only] = &stages[..] {
                still_improving = note_on_last_epoch(only);
            }
            let validation = Validation::new(held_out, train.n_bags(), stages, n_candidates, scores);
            (Some(record), Some(validation))
        } else {
            (None, None)
        };
        let stage = Stage { config, rows, bags, method, loss, draw, plan };
        let (model, stages, mut notes) = stage.train(model, record, &mut watch)?;
        notes.extend(still_improving);
        let encoder = encoder.or_else(|| {
            let is_plain = rows.cardinalities().is_empty();
            is_plain.then(|| Encoder::as_is("x", rows.n_dense()))
        });
        let classes = classes.map_or_else(|| Classes::numbered(bags.n_classes()), Ok)?;
        Ok(Fitted {
            model,
            link: loss.link(),
            loss: loss.name().to_owned(),
            prior: LabelPrior::pooled(bags),
            classes,
            config: config.clone(),
            foreign_method: (!is_built_in).then(|| method.name().to_owned()),
            stages,
            notes,
            validation,
            encoder,
            image,
            n_bags: bags.n_bags(),
            n_rows: bags.n_members(),
            fingerprint: bags.fingerprint(),
            training_bags: TrainingBags::new(&rows.hashes(), bags),
        })
    }
}

/// What to try if the validation metric was still improving in the last epoch.
fn note_on_last_epoch(StageLog { optimizer, log, .. }: &StageLog) -> Option<String> {
    let StageOptimizer::Adam(Adam { epochs, .. }) = optimizer else { return None };
    let is_last = log.best.is_some_and(|(best, _)| best == *epochs && best == log.epochs.len());
    is_last.then(|| {
        format!(
            "the last of {epochs} epochs was the best one: with more epochs or a higher learning rate the model may be better"
        )
    })
}

/// One of the two sessions of a fit.
struct Stage<'s, 'r> {
    config: &'s FitConfig,
    rows: &'s Rows<'r>,
    bags: &'s Bags,
    method: &'s dyn Method,
    loss: &'s dyn TrainingLoss,
    draw: Option<&'s DrawModel<'s>>,
    plan: OptimizerPlan,
}

impl<'s, 'r> Stage<'s, 'r> {
    fn session<M: Model + Clone + 'static>(&self, model: M, watch: FitWatch<'s>) -> Session<'s, 'r> {
        let mut session = Session::new(model, self.rows, self.bags, self.loss);
        session.set_plan(self.plan.clone());
        session.set_seed(self.config.seed);
        session.set_learning_rate(self.config.optimizer.lr);
        session.set_watch(watch);
        if let Some(draw) = self.draw {
            session.set_draw(draw);
        }
        session
    }

    fn choose<M: Model + Clone + 'static>(
        &self,
        model: M,
        held_out: &'s ValidationBags,
        watch: FitWatch<'s>,
    ) -> Result<Choice> {
        let ValidationConfig { metric, patience, smoothing, .. } = self.config.validation;
        let selection = Selection::new(held_out, metric, self.loss.link(), smoothing.get(), model.n_scores());
        let mut session = self.session(model, watch);
        session.set_validation(selection, patience.get(), smoothing.get());
        session.run(self.method)?;
        Ok(session.choice())
    }

    fn train<M: Model + Clone + 'static>(
        &self,
        model: M,
        record: Option<Record>,
        watch: FitWatch<'s>,
    ) -> Result<(M, Vec<StageLog>, Vec<String>)> {
        let mut session = self.session(model, watch);
        if let Some(record) = record {
            session.set_replay(record);
        }
        session.run(self.method)?;
        let notes = session.notes().to_vec();
        let (model, stages) = session.finish();
        Ok((model, stages, notes))
    }
}

#[cfg(test)]
mod tests;
