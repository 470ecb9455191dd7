//! TRAIN: LLP methods, one a file. A method knows bags and labels; it knows nothing of models or optimisers.
//!
//! | name | what it does | bags made | models | classes | cost a row | from |
//! |---|---|---|---|---|---|---|
//! | `easyllp` | any loss on corrected targets, unbiased for rows | at random | any | any | C | Busa-Fekete et al. 2023 |
//! | `easyllp-sgd` | one pass over the bags, a projected step on one row of each | at random | linear, convex loss | any | 1/k of an epoch in all | Busa-Fekete et al. 2023, Algorithm 1 |
//! | `event` | labels of rows, as bags of one, to compare with | of one row | any | any | C | full supervision |
//! | `naive` | each row towards its bag's proportion, to compare with | in any way, but what is learnt is biased | any | any | C | Busa-Fekete et al. 2023 |
//! | `label-generation` | labels that match counts and agree best with the model, in every step | in any way | any, log odds | any; exact transport | log k, C² log k for several classes | Dulac-Arnold et al. 2019 |
//! | `proportion-matching` | a bag's mean prediction towards its proportion | in any way | any, log odds | any | C | Ardehali & Culotta 2017 |
//! | `debiased-square` | squared error of a bag's mean prediction, less what bags add to that of rows | at random | any, log odds | any | C | Li et al. 2024 |
//! | `count-likelihood` | the likelihood of a bag's count under independent rows | at random, or by features that the model sees | any, log odds | any; each against the rest | k C, less for large bags | Poisson-binomial likelihood |
//! | `llp-em` | labels as probable as the counts make them, the model of these, and so on | at random, or by features that the model sees | linear, log odds | any; approximate for several | k C a round, less for large bags | Dempster, Laird & Rubin 1977 |
//! | `mean-map` | class means from bag means by least squares | at random | linear, log odds | any | C | Quadrianto et al. 2008 |
//! | `laplacian-mean-map` | class means that differ between bags, but little between bags that are alike | at random, or alike where features are alike | linear, log odds | any | C, and once about 10⁵/k | Patrini et al. 2014 |
//! | `alternating-mean-map` | from the mean map on, labels that match counts and the model of these, in turn | at random | linear, log odds | any; exact transport | log k a round, C² log k for several classes | Patrini et al. 2014 |
//!
//! k: rows in a bag, C: classes. The cost is a row's in an epoch, beyond the model's own. *Log odds*: with logistic or softmax loss.

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
mod side_by_side;

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
pub use side_by_side::SideBySide;

pub(crate) use rebagged::check_labelled;

use crate::bags::Bags;
use crate::classes::n_columns;
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

    /// The class shares that targets shall average to, where the method knows better than the targets' own means. Losses that
    /// have no minimum otherwise (see [`TrainingLoss`](crate::TrainingLoss)) are trained on targets shifted to these shares.
    fn shares(&self) -> Result<Option<Vec<f64>>> {
        Ok(None)
    }

    /// Writes the targets of an epoch, counted from 0. Called once for each epoch, in order, with the same `out`; once in all if
    /// targets do not change. L-BFGS asks for epoch 0 only.
    fn targets(&mut self, epoch: usize, out: &mut Targets) -> Result<()>;
}

/// A method that judges whole bags by the scores of their rows, which are log odds.
pub trait BagObjective: Send + Sync {
    /// The bags that are trained on.
    fn bags(&self) -> &Bags;

    /// How many scores of a row it judges.
    fn n_scores(&self) -> usize {
        n_columns(self.bags().n_classes())
    }

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
