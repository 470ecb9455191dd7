//! TRAIN: what a model is trained towards. Row targets, or the counts of whole bags.

use crate::bags::Bags;
use crate::classes::n_columns;
use crate::correction::Targets;
use crate::error::Result;
use crate::loss::TrainingLoss;
use ndarray::{ArrayView2, ArrayViewMut2};

/// What a training run minimises.
pub enum Aim<'a> {
    /// The mean loss of rows towards their targets.
    Targets(&'a mut dyn TargetRule, &'a dyn TrainingLoss),
    /// The mean loss of whole bags.
    Bags(&'a mut dyn BagObjective),
}

/// Gives every row a target.
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

    /// The class shares that targets should average to, where they are known better than from the targets' own means. Losses that
    /// have no minimum otherwise (see [`TrainingLoss`](crate::loss::TrainingLoss)) are trained on targets shifted to these shares.
    fn shares(&self) -> Result<Option<Vec<f64>>> {
        Ok(None)
    }

    /// Writes the targets of an epoch, counted from 0. Called once for each epoch, in order, with the same `out`; once in all if
    /// targets do not change. L-BFGS asks for epoch 0 only.
    fn targets(&mut self, epoch: usize, out: &mut Targets) -> Result<()>;
}

/// The loss of whole bags, computed from the scores of their rows, which are log-odds.
pub trait BagObjective: Send + Sync {
    /// The bags that are trained on.
    fn bags(&self) -> &Bags;

    /// How many scores a row has.
    fn n_scores(&self) -> usize {
        n_columns(self.bags().n_classes())
    }

    /// Resets state that an earlier training run left.
    fn start(&mut self) {}

    /// The smallest number of bags in a batch.
    fn least_bags(&self) -> usize {
        1
    }

    /// Called before each batch, with its bags.
    fn before_batch(&mut self, _bags: &[u32]) {}

    /// The loss of a bag, given the scores of its rows (a line a member, in order), and its derivative in each of them.
    fn bag(&self, bag: usize, scores: ArrayView2<f32>, derivative: ArrayViewMut2<f32>) -> f64;

    /// Called after each batch, with the scores of its rows.
    fn after_batch(&mut self, _scores: ArrayView2<f32>) {}
}

impl Aim<'_> {
    /// The same aim, borrowed for a while.
    pub(crate) fn reborrow(&mut self) -> Aim<'_> {
        match self {
            Self::Targets(rule, loss) => Aim::Targets(&mut **rule, *loss),
            Self::Bags(objective) => Aim::Bags(&mut **objective),
        }
    }
}

/// Targets that are known already, of the rows of some bags.
#[derive(Debug, Clone, Copy)]
pub struct FixedTargets<'t> {
    bags: &'t Bags,
    targets: &'t Targets,
}

impl<'t> FixedTargets<'t> {
    /// The rows of these bags are trained on.
    pub fn new(bags: &'t Bags, targets: &'t Targets) -> Self {
        Self { bags, targets }
    }
}

impl TargetRule for FixedTargets<'_> {
    fn n_rows(&self) -> usize {
        self.bags.n_rows()
    }

    fn n_classes(&self) -> usize {
        self.bags.n_classes()
    }

    fn rows(&self) -> Vec<u32> {
        self.bags.rows()
    }

    fn changes(&self) -> bool {
        false
    }

    fn targets(&mut self, _epoch: usize, out: &mut Targets) -> Result<()> {
        out.clone_from(self.targets);
        Ok(())
    }
}
