//! What L-BFGS brings down: the mean corrected loss of a linear model plus l2/2·‖w‖², as a function of one vector.
//!
//! In `f64` throughout, so that the optimum is found to more digits than the model's `f32` weights can hold. The vector holds
//! the weights of dense features, the intercepts, and the weights of the categories, or the columns of a sparse matrix, that occur in
//! the rows at hand: the others have no gradient, and with a penalty their best weight is 0.
//!
//! An evaluation goes over the rows once, for scores, slopes of the loss and the gradient of dense weights, and then over the
//! slopes for the gradient of those. Rows are worked on in parts, whose number depends on the data alone and whose
//! contributions are added in order: the bytes of the result do not depend on the number of threads. What an evaluation needs is
//! allocated once.

mod columns;
mod fields;
mod matrix;

use super::{LinearModel, Model, linear};
use crate::kernel::{Onto, add_dots, add_weighed_lines, product};
use crate::loss::TrainingLoss;
use crate::rows::{DenseRows, RowBuffer, Rows};
use columns::{Columns, NOT_NUMBERED};
use ndarray::{Array2, ArrayView2, ArrayViewMut2, s};
use rayon::prelude::*;
use std::ops::Range;

/// The mean corrected loss of the members under a linear model whose parameters are one vector.
pub(crate) struct Objective<'o> {
    pub(super) data: Data<'o>,
    pub(super) columns: Columns<'o>,
    /// The derivative of the loss in the scores, a line a member.
    slopes: Vec<f64>,
    members_a_part: usize,
    parts: Vec<Part>,
}

/// What does not change from evaluation to evaluation.
pub(super) struct Data<'o> {
    /// Dense features; none if rows are sparse.
    pub(super) rows: DenseRows<'o>,
    pub(super) members: Vec<u32>,
    /// A line a member.
    targets: Vec<f32>,
    pub(super) loss: &'o dyn TrainingLoss,
    pub(super) l2: f64,
    pub(super) n_scores: usize,
}

/// What a part of the members comes to, and what is needed on the way.
struct Part {
    loss: f64,
    /// Of dense weights and intercepts.
    gradient: Vec<f64>,
    space: Space,
}

/// Scratch for a stretch of rows.
#[derive(Default)]
struct Space {
    scores: Vec<f64>,
    buffer: RowBuffer,
    /// Dense features in `f64`, where matrix products need them.
    dense: Array2<f64>,
}

impl<'o> Objective<'o> {
    /// Of a linear model's loss on the members, towards targets that all rows have.
    pub(crate) fn new(
        rows: &'o Rows,
        members: Vec<u32>,
        targets: ArrayView2<f32>,
        loss: &'o dyn TrainingLoss,
        l2: f64,
    ) -> Self {
        /// Members of a part, at least.
        const FEWEST: usize = 512;
        /// Parts, at most: enough for the threads of a machine.
        const MOST_PARTS: usize = 64;
        /// Numbers that the gradients of all parts may have, if there is more than one.
        const MOST_NUMBERS: usize = 1 << 23;
        let n_scores = targets.ncols();
        let columns = Columns::new(rows, &members, n_scores);
        let rows = rows.dense_part();
        let n_dense_numbers = (rows.n_dense() + 1) * n_scores;
        let most_parts = (MOST_NUMBERS / n_dense_numbers).clamp(1, MOST_PARTS);
        let members_a_part = members.len().div_ceil(most_parts).max(FEWEST);
        let n_parts = members.len().div_ceil(members_a_part);
        let part = || Part { loss: 0.0, gradient: vec![0.0; n_dense_numbers], space: Space::default() };
        let parts = (0..n_parts).map(|_| part()).collect();
        let slopes = vec![0.0; members.len() * n_scores];
        let mut by_member = Vec::with_capacity(members.len() * n_scores);
        for &row in &members {
            by_member.extend(targets.row(row as usize));
        }
        let data = Data { rows, members, targets: by_member, loss, l2, n_scores };
        Self { data, columns, slopes, members_a_part, parts }
    }

    /// Puts another penalty in the place of that it has.
    pub(crate) fn set_penalty(&mut self, l2: f64) {
        self.data.l2 = l2;
    }

    /// Where a model is. A model of zeros starts with the intercepts that are best alone.
    pub(crate) fn start(&self, model: &LinearModel) -> Vec<f64> {
        self.data.start(model, &self.columns)
    }

    /// Gives a model the parameters of a point.
    #[expect(clippy::cast_possible_truncation, reason = "a model's parameters are f32")]
    pub(crate) fn write_to(&self, point: &[f64], model: &mut LinearModel) {
        let n_dense = self.data.rows.n_dense();
        let (weights, intercept, table) = cut(point, n_dense, self.data.n_scores);
        let blocks = &mut model.parameters_mut().0;
        for (block, values) in [(linear::WEIGHTS, weights), (linear::INTERCEPT, intercept)] {
            let to = blocks[block].values.iter_mut();
            to.zip(values).for_each(|(to, value)| *to = *value as f32);
        }
        let block = &mut blocks[self.columns.block()].values;
        if self.data.l2 > 0.0 {
            block.fill(0.0);
        }
        for (place, values) in self.columns.places().zip(table.chunks_exact(self.data.n_scores)) {
            let to = block.row_mut(place.line as usize);
            to.into_iter().zip(values).for_each(|(to, value)| *to = *value as f32);
        }
    }

    /// The objective at a point, and its gradient.
    pub(crate) fn value(&mut self, point: &[f64], gradient: &mut [f64]) -> f64 {
        let Self { data, columns, slopes, members_a_part, parts, .. } = self;
        let (n_dense, n_scores) = (data.rows.n_dense(), data.n_scores);
        let (weights, intercept, table) = cut(point, n_dense, n_scores);
        columns.set_weights(table, n_scores);
        let stretches = slopes.par_chunks_mut(*members_a_part * n_scores).enumerate();
        parts.par_iter_mut().zip(stretches).for_each(|(part, (place, slopes))| {
            part.run(data, columns, place * *members_a_part, point, slopes);
        });
        let (of_dense, of_table) = gradient.split_at_mut((n_dense + 1) * n_scores);
        of_dense.fill(0.0);
        let mut loss = 0.0;
        for part in parts {
            loss += part.loss;
            of_dense.iter_mut().zip(&part.gradient).for_each(|(sum, part)| *sum += part);
        }
        columns.gradient(slopes, n_scores, of_table);

        let n_rows = data.members.len() as f64;
        let (of_weights, of_intercept) = of_dense.split_at_mut(n_dense * n_scores);
        loss / n_rows
            + add_penalty(data.l2, weights, n_rows, of_weights)
            + add_penalty(0.0, intercept, n_rows, of_intercept)
            + add_penalty(data.l2, table, n_rows, of_table)
    }
}

/// Makes sums over so many rows means, and adds the gradient of l2/2·‖w‖², which is returned.
fn add_penalty(l2: f64, weights: &[f64], n_rows: f64, gradient: &mut [f64]) -> f64 {
    /// Weights that one thread works on at a time.
    const CHUNK: usize = 1 << 15;
    let of_chunk = |(weights, gradient): (&[f64], &mut [f64])| {
        let mut squares = 0.0;
        for (weight, gradient) in weights.iter().zip(gradient) {
            *gradient = *gradient / n_rows + l2 * weight;
            squares += weight * weight;
        }
        squares
    };
    let squares: f64 = if weights.len() <= CHUNK {
        of_chunk((weights, gradient))
    } else {
        let chunks = weights.par_chunks(CHUNK).zip(gradient.par_chunks_mut(CHUNK));
        chunks.map(of_chunk).collect::<Vec<f64>>().iter().sum()
    };
    0.5 * l2 * squares
}

impl Data<'_> {
    fn start(&self, model: &LinearModel, columns: &Columns) -> Vec<f64> {
        let blocks = &model.parameters().0;
        let mut start: Vec<f64> = Vec::new();
        if self.rows.n_dense() > 0 {
            start.extend(blocks[linear::WEIGHTS].values.iter().copied().map(f64::from));
        }
        start.extend(blocks[linear::INTERCEPT].values.iter().copied().map(f64::from));
        for place in columns.places() {
            start.extend(
                blocks[columns.block()].values.row(place.line as usize).iter().copied().map(f64::from),
            );
        }
        if start.iter().all(|&parameter| parameter == 0.0) {
            let intercept = self.rows.n_dense() * self.n_scores;
            start[intercept..][..self.n_scores].copy_from_slice(&self.best_constants());
        }
        start
    }

    /// The scores that are best if all rows have the same; zeros where targets have no such.
    fn best_constants(&self) -> Vec<f64> {
        let finite = |constants: &Vec<f64>| constants.iter().all(|constant| constant.is_finite());
        let constants = self.loss.best_constants(&self.mean_targets()).filter(finite);
        constants.unwrap_or_else(|| vec![0.0; self.n_scores])
    }

    /// The mean target of each score.
    pub(super) fn mean_targets(&self) -> Vec<f64> {
        let mut sums = vec![0.0; self.n_scores];
        for targets in self.targets.chunks_exact(self.n_scores) {
            sums.iter_mut().zip(targets).for_each(|(sum, target)| *sum += f64::from(*target));
        }
        sums.iter().map(|sum| sum / self.members.len() as f64).collect()
    }
}

impl Part {
    /// Loss, slopes and dense gradient of the members from `first` on, as many as there are slopes for.
    fn run(&mut self, data: &Data, columns: &Columns, first: usize, point: &[f64], slopes: &mut [f64]) {
        /// Scores that are worked on before the next field's weights are read.
        const SCORES: usize = 16_384;
        let n_scores = data.n_scores;
        let (weights, intercept, table) = cut(point, data.rows.n_dense(), n_scores);
        self.loss = 0.0;
        self.gradient.fill(0.0);
        let n_members = (SCORES / n_scores).max(512);
        for (chunk, slopes) in slopes.chunks_mut(n_members * n_scores).enumerate() {
            let first = first + chunk * n_members;
            let mut scores = std::mem::take(&mut self.space.scores);
            scores.clear();
            scores.extend(intercept.iter().cycle().take(slopes.len()));
            columns.add_scores(first, table, n_scores, &mut scores);
            let members = first..first + slopes.len() / n_scores;
            let work = if n_scores == 1 { Self::one_score } else { Self::by_products };
            work(self, data, members, weights, &mut scores, slopes);
            self.space.scores = scores;
        }
    }

    /// Adds dense features to scores; from these, the loss and its slopes, which are added to the gradient.
    fn by_products(
        &mut self,
        data: &Data,
        members: Range<usize>,
        weights: &[f64],
        scores: &mut [f64],
        slopes: &mut [f64],
    ) {
        /// Rows of a matrix product.
        const STRETCH: usize = 512;
        let (n_dense, n_scores) = (data.rows.n_dense(), data.n_scores);
        let Self { loss, gradient, space: Space { buffer, dense, .. } } = self;
        if dense.nrows() == 0 {
            (*buffer, *dense) = (data.rows.buffer(STRETCH), Array2::zeros((STRETCH, n_dense)));
        }
        let (of_weights, of_intercept) = gradient.split_at_mut(n_dense * n_scores);
        let by_rows = "lines of a matrix by rows";
        let weights = ArrayView2::from_shape((n_dense, n_scores), weights).expect(by_rows);
        let mut of_weights = ArrayViewMut2::from_shape((n_dense, n_scores), of_weights).expect(by_rows);
        let mut widened = vec![0.0; n_scores];
        let stretches = scores.chunks_mut(STRETCH * n_scores).zip(slopes.chunks_mut(STRETCH * n_scores));
        let targets =
            data.targets[members.start * n_scores..members.end * n_scores].chunks(STRETCH * n_scores);
        let members = data.members[members].chunks(STRETCH).zip(targets);
        for ((members, targets), (scores, slopes)) in members.zip(stretches) {
            let shape = (members.len(), n_scores);
            let mut dense = dense.slice_mut(s![..members.len(), ..]);
            dense.zip_mut_with(&data.rows.gather(members, buffer).dense, |to, from| *to = f64::from(*from));
            let matrix = ArrayViewMut2::from_shape(shape, &mut *scores).expect(by_rows);
            product(dense.view(), weights, Onto::Add, matrix);
            let lines = scores.chunks_exact(n_scores).zip(slopes.chunks_exact_mut(n_scores));
            for (targets, (scores, slopes)) in targets.chunks_exact(n_scores).zip(lines) {
                widened.iter_mut().zip(targets).for_each(|(to, target)| *to = f64::from(*target));
                *loss += data.loss.corrected(scores, &widened, slopes);
                of_intercept.iter_mut().zip(&*slopes).for_each(|(sum, slope)| *sum += slope);
            }
            let slopes = ArrayView2::from_shape(shape, &*slopes).expect(by_rows);
            product(dense.t(), slopes, Onto::Add, of_weights.view_mut());
        }
    }

    /// The same of a model with one score, which needs no matrix product: rows are read once, and stay in the cache until they are
    /// added to the gradient.
    fn one_score(
        &mut self,
        data: &Data,
        members: Range<usize>,
        weights: &[f64],
        scores: &mut [f64],
        slopes: &mut [f64],
    ) {
        let n_dense = data.rows.n_dense();
        // Rows that are in the nearest cache at a time.
        let stretch = (4096 / n_dense.max(1)).clamp(32, 256);
        let Self { loss, gradient, space: Space { buffer, .. } } = self;
        if buffer.is_empty() {
            *buffer = data.rows.buffer(stretch);
        }
        let (of_weights, of_intercept) = gradient.split_at_mut(n_dense);
        let stretches = scores.chunks_mut(stretch).zip(slopes.chunks_mut(stretch));
        let targets = data.targets[members.clone()].chunks(stretch);
        let members = data.members[members].chunks(stretch).zip(targets);
        for ((members, targets), (scores, slopes)) in members.zip(stretches) {
            let batch = data.rows.at(members, buffer);
            let dense = batch.dense.to_slice().expect("lines of a stretch are contiguous");
            add_dots(dense, weights, scores);
            *loss += data.loss.corrected_scores(scores, targets, slopes);
            add_weighed_lines(dense, slopes, of_weights);
            of_intercept[0] += slopes.iter().sum::<f64>();
        }
    }
}

/// Dense weights, intercept and what is in places, as they lie one after the other.
fn cut(point: &[f64], n_dense: usize, n_scores: usize) -> (&[f64], &[f64], &[f64]) {
    let (weights, rest) = point.split_at(n_dense * n_scores);
    let (intercept, table) = rest.split_at(n_scores);
    (weights, intercept, table)
}

#[cfg(test)]
mod tests;
