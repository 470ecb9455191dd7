//! The settings of a fit: one schema for the command line, TOML files, Python and model files.

mod optimizer;

pub use optimizer::OptimizerChoice;

use crate::error::{Error, Result, check_length};
use crate::loss::Link;
use crate::loss::LossName;
use crate::method::MethodConfig;
use crate::model::ModelSpec;
use crate::optim::{Adam, Lbfgs};
use crate::session::{Method, OptimizerPlan, Requires, ValidationMetric, check_support};
use crate::train::Optimizer;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::num::NonZeroUsize;
use std::str::FromStr;

/// The settings of a fit: method, model, loss, optimizer, validation. Unset fields have their
/// defaults. [`check`](Self::check) reports settings that exclude each other.
///
/// ```
/// use easyllp::FitConfig;
///
/// let config = FitConfig { method: "count-likelihood".parse()?, ..FitConfig::default() };
/// config.check(false)?;
/// # Ok::<(), easyllp::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FitConfig {
    /// The method and its parameters.
    pub method: MethodConfig,
    /// The model.
    pub model: ModelSpec,
    /// The loss; by default cross-entropy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<LossName>,
    /// The optimizer's settings.
    pub optimizer: OptimizerConfig,
    /// The validation split and metric.
    pub validation: ValidationConfig,
    /// The seed of the split, of initial weights and of minibatches.
    pub seed: u64,
}

impl Default for FitConfig {
    fn default() -> Self {
        Self {
            method: MethodConfig::default(),
            model: ModelSpec::default(),
            loss: None,
            optimizer: OptimizerConfig::default(),
            validation: ValidationConfig::default(),
            seed: 1,
        }
    }
}

/// The optimizer's settings. A linear model is fitted to convergence (L-BFGS) unless `epochs`, `lr`
/// or `batch_size` is set, or the method requires Adam.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OptimizerConfig {
    /// With L-BFGS: the L2 penalty, by default chosen on validation bags. With Adam: the weight
    /// decay, by default 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub l2: Option<Penalty>,
    /// Maximum number of epochs of Adam.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epochs: Option<NonZeroUsize>,
    /// Learning rate of Adam. For easyllp-sgd: a factor of the paper's step sizes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lr: Option<f64>,
    /// Minibatch size of Adam, in rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch_size: Option<NonZeroUsize>,
}

/// The validation split and metric.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ValidationConfig {
    /// The share of bags to hold out for validation, from 0 (none) to below 1.
    pub share: f64,
    /// The metric that chooses the model.
    pub metric: ValidationMetric,
    /// Patience: stop after this many epochs in a row without improvement.
    pub patience: NonZeroUsize,
    /// Smooth the validation metric over this many epochs.
    pub smoothing: NonZeroUsize,
}

impl Default for ValidationConfig {
    fn default() -> Self {
        Self {
            share: 0.2,
            metric: ValidationMetric::default(),
            patience: NonZeroUsize::new(10).expect("ten is positive"),
            smoothing: NonZeroUsize::MIN,
        }
    }
}

/// A penalty l2/2·‖w‖².
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Penalty {
    /// The best of [`PENALTIES`](crate::fit::PENALTIES) on validation bags.
    Auto,
    /// This penalty, at least 0.
    Value(f64),
}

impl Penalty {
    const AUTO: &str = "auto";
    const EXPECTED: &str = "auto or a number of at least 0";
}

impl FromStr for Penalty {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text.parse() {
            _ if text == Self::AUTO => Ok(Self::Auto),
            Ok(l2) if l2 >= 0.0 && f64::is_finite(l2) => Ok(Self::Value(l2)),
            _ => Err(Error::Setting { name: "l2", value: text.into(), expected: Self::EXPECTED }),
        }
    }
}

impl Serialize for Penalty {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        match self {
            Self::Auto => serializer.serialize_str(Self::AUTO),
            Self::Value(l2) => serializer.serialize_f64(*l2),
        }
    }
}

impl<'de> Deserialize<'de> for Penalty {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "expected `l2` to be \"auto\" or a number of at least 0")]
        enum Form {
            Word(String),
            Number(f64),
        }
        match Form::deserialize(deserializer)? {
            Form::Word(word) => word.parse().map_err(serde::de::Error::custom),
            Form::Number(l2) => Ok(Self::Value(l2)),
        }
    }
}

impl FitConfig {
    /// Checks ranges and settings that exclude each other. `has_row_labels` says whether every bag
    /// is a single row.
    pub fn check(&self, has_row_labels: bool) -> Result<()> {
        self.check_with(&self.method, has_row_labels)?;
        let is_linear = self.model == ModelSpec::Linear;
        // Of softmax, the default for more than two classes, a method may expect as much as of logistic.
        check_support(&self.method, is_linear, self.loss.unwrap_or(LossName::Logistic).training()?)?;
        match self.plan(&self.method, is_linear)? {
            OptimizerPlan::Given(Optimizer::Adam(adam)) => adam.check(),
            OptimizerPlan::Given(Optimizer::Lbfgs(lbfgs)) => lbfgs.check(),
            OptimizerPlan::BestPenalty | OptimizerPlan::FixedPenalty(_) => Ok(()),
        }
    }

    /// Refuses a loss or a known prior that does not suit so many classes.
    pub fn check_classes(&self, n_classes: usize) -> Result<()> {
        if let Some(loss) = self.loss {
            loss.training()?.check_classes(n_classes)?;
        }
        match self.method.clone().prior_mut() {
            Some(prior) => check_length("classes of the prior", n_classes, prior.classes().len()),
            None => Ok(()),
        }
    }

    /// The same settings with another method.
    pub(crate) fn check_with(&self, method: &dyn Method, has_row_labels: bool) -> Result<()> {
        let Self { optimizer: OptimizerConfig { l2, lr, .. }, validation, .. } = self;
        let within = |name, value: f64, is_right: bool, expected| {
            if is_right { Ok(()) } else { Err(Error::Setting { name, value: value.to_string(), expected }) }
        };
        let share = validation.share;
        within("validation share", share, (0.0..1.0).contains(&share), "a number from 0 to below 1")?;
        if let Some(lr) = *lr {
            within("lr", lr, lr > 0.0 && lr.is_finite(), "a number above 0")?;
        }
        if let Some(Penalty::Value(l2)) = *l2 {
            within("l2", l2, l2 >= 0.0 && l2.is_finite(), Penalty::EXPECTED)?;
        }
        if let Some(loss) = self.loss
            && loss.training()?.link() == Link::Margin
        {
            let expected = "a loss that gives probabilities: logistic, softmax, squared or brier";
            return Err(Error::Setting { name: "loss", value: loss.as_str().into(), expected });
        }
        method.check(has_row_labels)
    }

    /// The setting that does not support sparse rows, if any.
    pub fn needs_dense_rows(&self, method: &dyn Method) -> Option<&'static str> {
        match self.plan(method, true) {
            _ if self.model != ModelSpec::Linear => Some("a model that is not linear"),
            _ if matches!(self.method, MethodConfig::LaplacianMeanMap(_)) => Some("laplacian-mean-map"),
            _ if method.requires() == Requires::OnePass => Some("easyllp-sgd"),
            Ok(OptimizerPlan::Given(Optimizer::Adam(_))) => Some("training with Adam"),
            _ => None,
        }
    }

    /// The optimizers that the settings allow.
    pub(crate) fn plan(&self, method: &dyn Method, is_linear: bool) -> Result<OptimizerPlan> {
        let refuse = |reason: &str| Err(Error::Config { reason: reason.into() });
        let OptimizerConfig { l2, epochs, lr, batch_size } = self.optimizer;
        if method.requires() == Requires::OnePass {
            if epochs.is_some() || batch_size.is_some() || l2.is_some() {
                return refuse(
                    "easyllp-sgd is one pass with a row at a time: `epochs`, `batch_size` and `l2` cannot be set; its weights are \
                     limited by `domain`",
                );
            }
            return Ok(OptimizerPlan::Given(Optimizer::Lbfgs(Lbfgs::default())));
        }
        match (self.reason_for_adam(method, is_linear).is_some(), l2) {
            (true, Some(Penalty::Auto)) => {
                refuse("`l2` auto requires a linear model that is fitted to convergence: give a number")
            }
            (true, l2) => {
                let adam = Adam::default();
                Ok(OptimizerPlan::Given(Optimizer::Adam(Adam {
                    epochs: epochs.map_or(adam.epochs, NonZeroUsize::get),
                    batch_size: batch_size.map_or(adam.batch_size, NonZeroUsize::get),
                    learning_rate: lr.unwrap_or(adam.learning_rate),
                    weight_decay: if let Some(Penalty::Value(l2)) = l2 { l2 } else { 0.0 },
                    ..adam
                })))
            }
            (false, Some(Penalty::Value(l2))) => {
                Ok(OptimizerPlan::Given(Optimizer::Lbfgs(Lbfgs { l2, ..Lbfgs::default() })))
            }
            (false, None) if method.penalty().is_some() => {
                Ok(OptimizerPlan::FixedPenalty(method.penalty().unwrap_or_default()))
            }
            (false, _) if self.validation.share <= 0.0 => {
                refuse("`l2` auto requires validation bags: give a number, or hold out a share of the bags")
            }
            (false, _) => Ok(OptimizerPlan::BestPenalty),
        }
    }
}
