//! TRAIN: LLP methods, one a file. A method knows bags and labels; it knows nothing of models or optimisers.

mod easyllp;
mod event;
mod naive;

pub use easyllp::{Draw, EasyLlp};
pub use event::Event;
pub use naive::Naive;

use crate::correction::Targets;
use crate::error::Result;

/// A method that gives every row a target.
pub trait TargetRule {
    /// How many rows the table has.
    fn n_rows(&self) -> usize;

    /// How many classes there are.
    fn n_classes(&self) -> usize;

    /// The rows that have a target, and so are trained on, in ascending order.
    fn rows(&self) -> Vec<u32>;

    /// Whether targets may change from epoch to epoch. If not, they are asked for once.
    fn changes(&self) -> bool {
        true
    }

    /// Writes the targets of an epoch, counted from 0. Called once for each epoch, in order, with the same `out`; once in all if
    /// targets do not change. L-BFGS asks for epoch 0 only.
    fn targets(&mut self, epoch: usize, out: &mut Targets) -> Result<()>;
}
