//! The trait of methods, and what they require.

use super::Session;
use crate::error::{Error, Result};
use crate::loss::{Convexity, Link, TrainingLoss};

/// The models and losses that a method supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Supports {
    /// Any model with any loss.
    Any,
    /// Any model, with a loss whose scores are log-odds.
    LogOdds,
    /// Linear models, with a loss whose scores are log-odds.
    LinearLogOdds,
    /// Linear models, with a loss that stays convex for any target.
    LinearConvex,
}

/// The optimizer that a method requires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Requires {
    /// None: a linear model is fitted to convergence unless the settings ask for epochs.
    AnyOptimizer,
    /// Adam, for this reason.
    Adam(String),
    /// One pass of SGD over the bags.
    OnePass,
}

/// A method that learns from bags: a procedure over a [`Session`].
///
/// The built-in methods implement it, and so can other crates: see `examples/own_method.rs`.
pub trait Method: Send + Sync {
    /// The name, for messages and model files.
    fn name(&self) -> &str;

    /// The models and losses that it supports.
    fn supports(&self) -> Supports {
        Supports::Any
    }

    /// The optimizer that it requires.
    fn requires(&self) -> Requires {
        Requires::AnyOptimizer
    }

    /// The penalty for a single label of a linear model that is fitted to convergence, if the settings leave `l2` unset. By default
    /// it is chosen on validation bags.
    fn penalty(&self) -> Option<f64> {
        None
    }

    /// Checks for parameters that exclude each other; `has_row_labels` says whether every bag is a
    /// single row.
    fn check(&self, has_row_labels: bool) -> Result<()> {
        let _ = has_row_labels;
        Ok(())
    }

    /// Trains the session's model.
    fn run(&self, session: &mut Session) -> Result<()>;
}

/// Checks that a method supports a model and a loss.
pub(crate) fn check_support(method: &dyn Method, is_linear: bool, loss: &dyn TrainingLoss) -> Result<()> {
    let name = || method.name().to_owned();
    let is_convex = loss.convexity() == Convexity::AnyTarget;
    let is_log_odds = loss.link() == Link::Logit && is_convex;
    match method.supports() {
        Supports::LogOdds if !is_log_odds => {
            Err(Error::LogOddsOnly { method: name(), loss: loss.name().to_owned() })
        }
        Supports::LinearLogOdds if !(is_linear && is_log_odds) => {
            Err(Error::LinearLogLossOnly { method: name() })
        }
        Supports::LinearConvex if !is_linear => Err(Error::LinearOnly { method: name() }),
        Supports::LinearConvex if !is_convex => {
            Err(Error::ConvexOnly { method: name(), loss: loss.name().to_owned() })
        }
        _ => Ok(()),
    }
}
