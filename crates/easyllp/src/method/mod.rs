//! TRAIN: LLP methods, one a file. A method knows bags and labels; it knows nothing of models or optimisers.

mod count_likelihood;
mod debiased_square;
mod easyllp;
mod event;
mod mean_map;
mod naive;
mod named;
mod proportion_matching;

pub use count_likelihood::CountLikelihood;
pub use debiased_square::DebiasedSquare;
pub use easyllp::{Draw, EasyLlp};
pub use event::Event;
pub use mean_map::MeanMap;
pub use naive::Naive;
pub use named::{About, MethodName};
pub use proportion_matching::{Distance, ProportionMatching};

use crate::bags::Bags;
use crate::correction::Targets;
use crate::error::Result;
use ndarray::{ArrayView2, ArrayViewMut2};

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

/// A method that judges whole bags by the scores of their rows, which are log odds.
pub trait BagObjective: Send + Sync {
    /// The bags that are trained on.
    fn bags(&self) -> &Bags;

    /// Forgets what an earlier training left.
    fn start(&mut self) {}

    /// The loss of a bag, given the scores of its rows (a line a member, in order), and its derivative in each of them.
    fn bag(&self, bag: usize, scores: ArrayView2<f32>, derivative: ArrayViewMut2<f32>) -> f64;

    /// Sees the scores of a batch's rows, once it is done.
    fn after_batch(&mut self, _scores: ArrayView2<f32>) {}
}
