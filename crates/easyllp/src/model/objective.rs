//! The objective of L-BFGS: the mean corrected loss of a linear model plus l2/2·‖w‖², as a function
//! of one vector.
//!
//! It is computed in `f64`, so that the optimum has more digits than the model's `f32` weights. The
//! vector holds the weights of dense features, the intercepts, and the weights of the categories
//! (or sparse columns) that occur in the rows. The others have no gradient; with a penalty their
//! best weight is 0.
//!
//! An evaluation makes one pass over the rows, for scores, derivatives of the loss and the gradient
//! of dense weights, and one pass over the derivatives for the other gradients. Rows are processed
//! in chunks; the number of chunks depends on the data alone, and their results are added in order.
//! The bytes of the result do not depend on the number of threads. Buffers are allocated once.
//!
//! # Rows in parts
//!
//! Training only needs sums over the rows, so rows may be distributed in parts. A [`LinearPart`]
//! computes the sums of its rows: [`FeatureSums`], [`GramSums`] and [`LinearSums`]. Each of them
//! has `merge`. [`fit_parts`](crate::train::fit_parts) trains on the merged sums, and gives the
//! model of all rows in one place.

mod columns;
mod curvature;
mod fields;
mod matrix;
mod part;
mod problem;
mod sums;

pub use part::{LinearPart, LinearParts};
pub use sums::{FeatureSums, GramSample, GramSums, LinearSums};

pub(crate) use curvature::Gram;
pub(crate) use problem::LinearProblem;

use crate::kernel::{Onto, add_dots, add_weighed_lines, product};
use crate::loss::TrainingLoss;
use crate::rows::{DenseRows, RowBuffer, Rows};
use columns::{Columns, NOT_NUMBERED};
use ndarray::{Array2, ArrayView2, ArrayViewMut2, s};
use rayon::prelude::*;
use std::ops::Range;

/// The sum of the members' corrected losses for a linear model whose parameters are one vector.
pub(crate) struct Objective<'o> {
    data: Data<'o>,
    columns: Columns<'o>,
    features: FeatureSums,
    /// The derivative of the loss in the scores, a line per member.
    slopes: Vec<f64>,
    members_a_chunk: usize,
    chunks: Vec<Chunk>,
}

/// What is constant between evaluations.
struct Data<'o> {
    /// Dense features; none if rows are sparse.
    rows: DenseRows<'o>,
    members: Vec<u32>,
    /// A line per member.
    targets: Vec<f32>,
    loss: &'o dyn TrainingLoss,
    n_scores: usize,
}

/// The results and buffers of one chunk of the members.
struct Chunk {
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
    ) -> Self {
        /// Members of a chunk, at least.
        const FEWEST: usize = 512;
        /// Chunks, at most: enough for the threads of a machine.
        const MOST_CHUNKS: usize = 64;
        /// Numbers that the gradients of all chunks may have, if there is more than one.
        const MOST_NUMBERS: usize = 1 << 23;
        let n_scores = targets.ncols();
        let columns = Columns::new(rows, &members, n_scores);
        let rows = rows.dense_part();
        let n_dense_numbers = (rows.n_dense() + 1) * n_scores;
        let most_chunks = (MOST_NUMBERS / n_dense_numbers).clamp(1, MOST_CHUNKS);
        let members_a_chunk = members.len().div_ceil(most_chunks).max(FEWEST);
        let n_chunks = members.len().div_ceil(members_a_chunk);
        let chunk = || Chunk { loss: 0.0, gradient: vec![0.0; n_dense_numbers], space: Space::default() };
        let chunks = (0..n_chunks).map(|_| chunk()).collect();
        let slopes = vec![0.0; members.len() * n_scores];
        let mut by_member = Vec::with_capacity(members.len() * n_scores);
        for &row in &members {
            by_member.extend(targets.row(row as usize));
        }
        let features = FeatureSums::new(rows.n_dense(), n_scores, &by_member, &columns);
        let data = Data { rows, members, targets: by_member, loss, n_scores };
        Self { data, columns, features, slopes, members_a_chunk, chunks }
    }

    /// The sums of features and targets.
    pub(crate) fn features(&self) -> &FeatureSums {
        &self.features
    }

    /// The sum of losses at a point, and its gradient.
    pub(crate) fn sums(&mut self, point: &[f64], gradient: &mut [f64]) -> f64 {
        let Self { data, columns, slopes, members_a_chunk, chunks, .. } = self;
        let (n_dense, n_scores) = (data.rows.n_dense(), data.n_scores);
        let (_, _, table) = cut(point, n_dense, n_scores);
        columns.set_weights(table, n_scores);
        let stretches = slopes.par_chunks_mut(*members_a_chunk * n_scores).enumerate();
        chunks.par_iter_mut().zip(stretches).for_each(|(chunk, (place, slopes))| {
            chunk.run(data, columns, place * *members_a_chunk, point, slopes);
        });
        let (of_dense, of_table) = gradient.split_at_mut((n_dense + 1) * n_scores);
        of_dense.fill(0.0);
        let mut loss = 0.0;
        for chunk in chunks {
            loss += chunk.loss;
            of_dense.iter_mut().zip(&chunk.gradient).for_each(|(sum, chunk)| *sum += chunk);
        }
        columns.gradient(slopes, n_scores, of_table);
        loss
    }

    /// X'X of weights, intercept and the sample's lines, over the sampled members.
    pub(crate) fn gram(&self, sample: &GramSample) -> GramSums {
        /// Rows that are looked at together.
        const CHUNK: usize = 2048;
        let Self { data, columns, .. } = self;
        let n_dense = data.rows.n_dense();
        let numbers = columns.numbers(&sample.lines, &self.features.places);
        let n_features = n_dense + 1 + sample.lines.len();
        let places: Vec<usize> = (0..data.members.len()).step_by(sample.every.max(1)).collect();
        let mut sums = GramSums::zeros(n_features);
        let mut buffer = data.rows.buffer(CHUNK);
        let mut features = Array2::<f32>::ones((CHUNK, n_features));
        let mut gram = Array2::<f32>::zeros((n_features, n_features));
        for places in places.chunks(CHUNK) {
            let members: Vec<u32> = places.iter().map(|&place| data.members[place]).collect();
            let batch = data.rows.gather(&members, &mut buffer);
            let mut features = features.slice_mut(s![..places.len(), ..]);
            features.slice_mut(s![.., ..n_dense]).assign(&batch.dense);
            features.slice_mut(s![.., n_dense + 1..]).fill(0.0);
            if !sample.lines.is_empty() {
                for (mut features, &place) in features.rows_mut().into_iter().zip(places) {
                    let add = |number, value| features[n_dense + 1 + number] += value;
                    columns.numbered(&numbers, place, add);
                }
            }
            product(features.t(), features.view(), Onto::Overwrite, gram.view_mut());
            sums.add(places.len(), &gram);
        }
        sums
    }
}

impl Chunk {
    /// Loss, derivatives and dense gradient of the members from `first` on, as many as `slopes`
    /// holds.
    fn run(&mut self, data: &Data, columns: &Columns, first: usize, point: &[f64], slopes: &mut [f64]) {
        /// Scores that are processed before the next field's weights are read.
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

    /// Adds dense features to scores, then computes the loss and its derivatives, and adds them to
    /// the gradient.
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

    /// The same for a model with one score, without matrix products: rows are read once, and stay
    /// in the cache until they are added to the gradient.
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

/// Dense weights, intercept and sparse weights, in this order.
fn cut(point: &[f64], n_dense: usize, n_scores: usize) -> (&[f64], &[f64], &[f64]) {
    let (weights, rest) = point.split_at(n_dense * n_scores);
    let (intercept, table) = rest.split_at(n_scores);
    (weights, intercept, table)
}

#[cfg(test)]
mod tests;
