//! The features of batches, and their products with many models: dense, or without zeros if most
//! values are zero.

use super::{matrix, matrix_mut};
use crate::kernel::{NonZeros, Onto, product};
use crate::rows::DenseRows;
use ndarray::{Array2, ArrayView2, Axis, s};
use rayon::prelude::*;

/// Rows that a thread gathers at a time.
const GATHERED: usize = 64;

/// Features of some batches, up to this number of bytes, are gathered at once: threads then
/// synchronise less often.
const GATHERED_BYTES: usize = 1 << 23;

/// A buffer for the features of some batches.
pub(super) struct Gathering<'r> {
    batch_size: usize,
    n_batches: usize,
    space: Space<'r>,
}

enum Space<'r> {
    /// Rows, contiguous.
    Dense(Array2<f32>),
    /// The features of all rows, and a transpose for each batch.
    Sparse(&'r NonZeros, Vec<NonZeros>),
}

/// The features of the rows of a batch.
pub(super) enum Features<'b> {
    Dense(ArrayView2<'b, f32>),
    Sparse { of_all: &'b NonZeros, members: &'b [u32], transpose: &'b NonZeros },
}

impl<'r> Gathering<'r> {
    /// For this number of rows in batches of this size.
    pub(super) fn new(rows: DenseRows<'r>, n_rows: usize, batch_size: usize) -> Self {
        let bytes_of_batch = batch_size * rows.n_dense() * size_of::<f32>();
        let n_batches = (GATHERED_BYTES / bytes_of_batch.max(1)).clamp(1, n_rows.div_ceil(batch_size));
        let space = match rows.nonzeros() {
            Some(of_all) if batch_size <= NonZeros::MOST => {
                Space::Sparse(of_all, vec![NonZeros::default(); n_batches])
            }
            _ => Space::Dense(Array2::zeros((n_batches * batch_size, rows.n_dense()))),
        };
        Self { batch_size, n_batches, space }
    }

    /// The maximum number of models per block. Wider blocks read the features of a batch less
    /// often, until their weights do not fit into the cache.
    pub(super) fn widest(&self) -> usize {
        match self.space {
            Space::Dense(_) => 128,
            Space::Sparse(..) => 64,
        }
    }

    /// The capacity in rows.
    pub(super) fn n_rows(&self) -> usize {
        self.n_batches * self.batch_size
    }

    /// Gathers the features of some rows, up to the capacity, batch by batch.
    pub(super) fn gather<'b>(&'b mut self, rows: DenseRows, members: &'b [u32]) -> Vec<Features<'b>> {
        match &mut self.space {
            Space::Dense(features) => {
                let pieces = features.axis_chunks_iter_mut(Axis(0), GATHERED).into_par_iter();
                pieces.zip(members.par_chunks(GATHERED)).for_each(|(mut to, members)| {
                    rows.gather_dense(members, to.slice_mut(s![..members.len(), ..]));
                });
                let batches = features.axis_chunks_iter(Axis(0), self.batch_size);
                let batches = batches.zip(members.chunks(self.batch_size));
                batches
                    .map(|(features, members)| Features::Dense(features.slice_move(s![..members.len(), ..])))
                    .collect()
            }
            Space::Sparse(of_all, transposes) => {
                let of_all = *of_all;
                let batches = members.par_chunks(self.batch_size).zip(transposes);
                let gather = |(members, transpose): (&'b [u32], &'b mut NonZeros)| {
                    transpose.transpose(of_all, members, rows.n_dense());
                    Features::Sparse { of_all, members, transpose }
                };
                batches.map(gather).collect()
            }
        }
    }
}

impl Features<'_> {
    /// `scores += features · weights`, one column per model.
    pub(super) fn add_scores(&self, weights: &[f32], width: usize, scores: &mut [f32]) {
        match self {
            Self::Dense(features) => {
                product(*features, matrix(weights, width), Onto::Add, matrix_mut(scores, width));
            }
            Self::Sparse { of_all, members, .. } => {
                let lines = members.iter().map(|&row| row as usize);
                of_all.times(lines, weights, width, Onto::Add, scores);
            }
        }
    }

    /// `gradient = featuresᵀ · slopes`, one column per model.
    pub(super) fn write_gradient(&self, slopes: &[f32], width: usize, gradient: &mut [f32]) {
        match self {
            Self::Dense(features) => {
                product(features.t(), matrix(slopes, width), Onto::Overwrite, matrix_mut(gradient, width));
            }
            Self::Sparse { transpose, .. } => {
                transpose.times(0..transpose.n_lines(), slopes, width, Onto::Overwrite, gradient);
            }
        }
    }
}
