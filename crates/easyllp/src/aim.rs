//! TRAIN: the training objective, either a loss of row targets or a loss of whole bags.

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

/// The rows that a [`TargetRule`] has targets for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetRows {
    /// The number of rows in the table.
    pub n_rows: usize,
    /// The number of classes.
    pub n_classes: usize,
    /// The rows with a target, in ascending order.
    pub rows: Vec<u32>,
}

impl TargetRows {
    /// The rows of all bags.
    pub fn of_bags(bags: &Bags) -> Self {
        Self { n_rows: bags.n_rows(), n_classes: bags.n_classes(), rows: bags.rows() }
    }
}

/// A rule that gives every row a target.
pub trait TargetRule {
    /// The rows with a target. Others are not trained on.
    fn target_rows(&self) -> TargetRows;

    /// Whether targets change from epoch to epoch. If not, they are computed once.
    fn changes(&self) -> bool {
        false
    }

    /// The class shares that targets should average to, if they are known better than from the
    /// targets' own means. Some losses have no minimum otherwise (see
    /// [`TrainingLoss`](crate::loss::TrainingLoss)); their targets are shifted to these shares.
    fn shares(&self) -> Result<Option<Vec<f64>>> {
        Ok(None)
    }

    /// Writes the targets of an epoch, counted from 0. It is called once per epoch, in order, with
    /// the same `out`; or once in all, if targets do not change. L-BFGS only uses epoch 0.
    fn targets(&mut self, epoch: usize, out: &mut Targets) -> Result<()>;
}

/// The loss of whole bags, computed from the scores of their rows, which are log-odds.
pub trait BagObjective: Send + Sync {
    /// The bags to train on.
    fn bags(&self) -> &Bags;

    /// The number of scores per row.
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

    /// The loss of a bag and its derivative in each score, given the scores of its rows (one line
    /// per member, in order).
    fn bag(&self, bag: usize, scores: ArrayView2<f32>, derivative: ArrayViewMut2<f32>) -> f64;

    /// Called after each batch, with the scores of its rows.
    fn after_batch(&mut self, _scores: ArrayView2<f32>) {}
}

impl Aim<'_> {
    /// The same aim, borrowed.
    pub(crate) fn reborrow(&mut self) -> Aim<'_> {
        match self {
            Self::Targets(rule, loss) => Aim::Targets(&mut **rule, *loss),
            Self::Bags(objective) => Aim::Bags(&mut **objective),
        }
    }
}

/// Fixed targets for the rows of some bags.
#[derive(Debug, Clone, Copy)]
pub struct FixedTargets<'t> {
    bags: &'t Bags,
    targets: &'t Targets,
}

impl<'t> FixedTargets<'t> {
    /// Only the rows of these bags are trained on.
    pub fn new(bags: &'t Bags, targets: &'t Targets) -> Self {
        Self { bags, targets }
    }
}

impl TargetRule for FixedTargets<'_> {
    fn target_rows(&self) -> TargetRows {
        TargetRows::of_bags(self.bags)
    }

    fn targets(&mut self, _epoch: usize, out: &mut Targets) -> Result<()> {
        out.clone_from(self.targets);
        Ok(())
    }
}
