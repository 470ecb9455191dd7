//! Minibatches of whole bags: all rows are scored, bag losses are computed from these scores, and
//! derivatives are propagated back.
//!
//! Rows are split into chunks regardless of bags, so that threads share bags of any size. Bags are
//! distributed once all scores are computed.

use super::minibatch::{ByRows, Chunk, on_each};
use crate::aim::BagObjective;
use crate::bags::Bags;
use crate::kernel::join;
use crate::model::{Gradient, Model};
use crate::rows::DenseRows;
use ndarray::{Array2, ArrayView2, ArrayViewMut2, s};

/// The rows of some bags, bag after bag, with their scores.
pub(super) struct BagBatch {
    members: Vec<u32>,
    scores: Array2<f32>,
    dscores: Array2<f32>,
}

impl BagBatch {
    pub(super) fn new(n_scores: usize) -> Self {
        Self {
            members: Vec::new(),
            scores: Array2::zeros((0, n_scores)),
            dscores: Array2::zeros((0, n_scores)),
        }
    }

    /// Takes bags from the front until the batch has the required rows and bags; returns how many.
    /// The rest is never smaller than the minimum batch.
    pub(super) fn fill(&mut self, bags: &Bags, order: &[u32], n_rows: usize, least_bags: usize) -> usize {
        self.members.clear();
        let mut n_bags = 0;
        for &bag in order {
            let is_full = self.members.len() >= n_rows && n_bags >= least_bags;
            if is_full && order.len() - n_bags >= least_bags {
                break;
            }
            self.members.extend_from_slice(bags.members(bag as usize));
            n_bags += 1;
        }
        if self.scores.nrows() < self.members.len() {
            self.scores = Array2::zeros((self.members.len(), self.scores.ncols()));
            self.dscores = self.scores.clone();
        }
        n_bags
    }

    pub(super) fn n_rows(&self) -> usize {
        self.members.len()
    }

    pub(super) fn scores(&self) -> ArrayView2<'_, f32> {
        self.scores.slice(s![..self.n_rows(), ..])
    }

    /// The sum of the bags' losses, and its gradient.
    #[expect(clippy::too_many_arguments, reason = "all that a step has")]
    pub(super) fn learn<M: Model>(
        &mut self,
        model: &M,
        rows: DenseRows,
        objective: &dyn BagObjective,
        bags: &[u32],
        chunks: &mut [Chunk<M>],
        gradients: &mut [Gradient],
        at_once: usize,
    ) -> f64 {
        let n_rows = self.n_rows();
        let mut scores = self.scores.slice_mut(s![..n_rows, ..]);
        let batch = (&self.members[..], scores.view_mut());
        on_each(chunks, gradients, at_once, batch, &|chunk, gradient, (members, scores)| {
            chunk.forward(model, rows, members, gradient, scores);
        });
        let mut dscores = self.dscores.slice_mut(s![..n_rows, ..]);
        let loss = judge(objective, bags, scores.view(), dscores.view_mut());
        on_each(chunks, gradients, at_once, dscores.view(), &|chunk, gradient, dscores| {
            chunk.backward(model, dscores, gradient);
        });
        loss
    }
}

/// The sum of bag losses, always added in the same order.
fn judge(
    objective: &dyn BagObjective,
    bags: &[u32],
    scores: ArrayView2<f32>,
    dscores: ArrayViewMut2<f32>,
) -> f64 {
    /// The minimum number of rows to use another thread for.
    const ENOUGH: usize = 512;
    if let [bag] = bags {
        return objective.bag(*bag as usize, scores, dscores);
    }
    let (first, second) = bags.split_at(bags.len() / 2);
    let n_first: usize = first.iter().map(|&bag| objective.bags().size(bag as usize)).sum();
    let is_enough = scores.nrows() > ENOUGH;
    let (upper, lower) = (scores, dscores).split_rows(n_first);
    let of_first = || judge(objective, first, upper.0, upper.1);
    let of_second = || judge(objective, second, lower.0, lower.1);
    let (a, b) = if is_enough { join(of_first, of_second) } else { (of_first(), of_second()) };
    a + b
}
