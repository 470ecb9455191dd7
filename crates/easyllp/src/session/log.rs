//! Training events and the log of each stage.

use crate::optim::sgd::Sgd;
use crate::optim::{Adam, Lbfgs};
use crate::train::{Optimizer, Progress, TrainLog};
use std::ops::ControlFlow;

/// An event of a fit, for a progress callback.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FitEvent<'e> {
    /// A training run starts.
    Started {
        /// What is trained on or tried, such as `all bags`.
        what: &'e str,
        /// The name of its stage.
        stage: &'e str,
        /// The maximum number of epochs, rounds or L-BFGS iterations.
        epochs: usize,
        /// The number of training rows.
        rows: usize,
    },
    /// Progress within the training run.
    Progress(Progress),
}

/// A progress callback of a fit; breaking cancels it.
pub type FitWatch<'w> = &'w mut dyn FnMut(FitEvent) -> ControlFlow<()>;

/// The optimizer of a stage, with the chosen penalty or number of epochs.
#[derive(Debug, Clone, PartialEq)]
pub enum StageOptimizer {
    /// Adam.
    Adam(Adam),
    /// L-BFGS.
    Lbfgs(Lbfgs),
    /// One pass of SGD.
    Sgd(Sgd),
    /// None: the stage only offered the model as a candidate.
    None,
}

impl From<Optimizer> for StageOptimizer {
    fn from(optimizer: Optimizer) -> Self {
        match optimizer {
            Optimizer::Adam(adam) => Self::Adam(adam),
            Optimizer::Lbfgs(lbfgs) => Self::Lbfgs(lbfgs),
        }
    }
}

/// The log of a stage.
#[derive(Debug, Clone, PartialEq)]
pub struct StageLog {
    /// The name of the stage.
    pub stage: String,
    /// How it was trained.
    pub optimizer: StageOptimizer,
    /// Its epochs or rounds.
    pub log: TrainLog,
}
