//! What a session tells: events while it trains, and a log of each stage.

use crate::optim::sgd::Sgd;
use crate::optim::{Adam, Lbfgs};
use crate::train::{Optimizer, Progress, TrainLog};
use std::ops::ControlFlow;

/// An event of a fit, for a progress callback.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FitEvent<'e> {
    /// A training run starts.
    Started {
        /// What it is trained on or tries, such as `all bags`.
        what: &'e str,
        /// The name of its stage.
        stage: &'e str,
        /// At most so many epochs, rounds or iterations of L-BFGS.
        epochs: usize,
        /// How many rows it trains on.
        rows: usize,
    },
    /// It goes on.
    Progress(Progress),
}

/// A progress callback of a fit; breaking cancels it.
pub type FitWatch<'w> = &'w mut dyn FnMut(FitEvent) -> ControlFlow<()>;

/// The optimizer of a stage, with the penalty or the number of epochs that was chosen.
#[derive(Debug, Clone, PartialEq)]
pub enum StageOptimizer {
    /// Adam.
    Adam(Adam),
    /// L-BFGS.
    Lbfgs(Lbfgs),
    /// One pass of SGD.
    Sgd(Sgd),
    /// None: the stage only offered the model.
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
    /// The name that the method gave it.
    pub stage: String,
    /// How it was trained.
    pub optimizer: StageOptimizer,
    /// Its epochs, or its rounds.
    pub log: TrainLog,
}
