//! TRAIN: LLP methods, one a file. A method knows bags and labels; it knows nothing of models or optimisers.

mod alternating_mean_map;
mod assignment;
mod count_likelihood;
mod debiased_square;
mod easyllp;
mod easyllp_by_bag;
mod event;
mod label_generation;
mod laplacian_mean_map;
mod llp_em;
mod mean_map;
mod naive;
mod named;
mod proportion_matching;
mod rebagged;

pub use alternating_mean_map::AlternatingMeanMap;
pub use count_likelihood::CountLikelihood;
pub use debiased_square::DebiasedSquare;
pub use easyllp::{Draw, EasyLlp};
pub use easyllp_by_bag::EasyLlpByBag;
pub use event::Event;
pub use label_generation::LabelGeneration;
pub use laplacian_mean_map::LaplacianMeanMap;
pub use llp_em::LlpEm;
pub use mean_map::MeanMap;
pub use naive::Naive;
pub use named::{About, Batches, MethodName, MethodOptions, Serves};
pub use proportion_matching::{Distance, ProportionMatching};
pub use rebagged::Rebagged;

pub(crate) use rebagged::check_labelled;

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

    /// How many bags a batch must have at least.
    fn least_bags(&self) -> usize {
        1
    }

    /// Sees which bags the next batch has.
    fn before_batch(&mut self, _bags: &[u32]) {}

    /// The loss of a bag, given the scores of its rows (a line a member, in order), and its derivative in each of them.
    fn bag(&self, bag: usize, scores: ArrayView2<f32>, derivative: ArrayViewMut2<f32>) -> f64;

    /// Sees the scores of a batch's rows, once it is done.
    fn after_batch(&mut self, _scores: ArrayView2<f32>) {}
}

/// A method that goes back and forth: the model says what rows could be, counts say how many of them can be that, and the model is
/// trained on what both agree on.
pub trait Alternation: Sync {
    /// The bags that are trained on.
    fn bags(&self) -> &Bags;

    /// Targets of the first round, when there is no model yet.
    fn first(&self, out: &mut Targets) -> Result<()>;

    /// Targets of a bag's rows, given their scores (a line a member, in order).
    fn again(&self, bag: usize, scores: ArrayView2<f32>, targets: ArrayViewMut2<f32>);
}
