//! Linear models and neural networks.
//!
//! A model scores rows ([`Scorer`]) and back-propagates derivatives ([`Model`]). It does not depend
//! on bags, targets or methods.

#[cfg(feature = "burn")]
mod burn;
mod cnn;
mod columns;
mod dense;
mod embedding;
mod fields;
mod linear;
mod mlp;
mod named;
pub mod objective;
mod parameters;
mod pass;

#[cfg(feature = "burn")]
pub use self::burn::{BurnModel, BurnScores, BurnTape};
pub use crate::kernel::Activation;
pub use cnn::{Architecture, Cnn, CnnTape, ImageShape, Layer, Padding, Windows};
pub use columns::LinearColumns;
pub use dense::Hidden;
pub use embedding::{Embedding, EmbeddingNet, EmbeddingTape};
pub use linear::LinearModel;
pub use mlp::{Mlp, MlpTape};
pub use named::{AnyModel, AnyTape, ModelSpec, RowsForm};
pub(crate) use objective::{Gram, LinearProblem, Objective};
pub(crate) use parameters::BlockGradient;
pub use parameters::{Block, Gradient, Parameters, Touched, Updates};
pub(crate) use pass::Draws;
pub use pass::Pass;

use crate::error::{Error, Result};
use crate::kernel::Vectors;
use crate::rows::{Csr, RowBatch, Rows};
use ndarray::{Array2, ArrayView2, ArrayViewMut2, Axis, s};
use rayon::prelude::*;

/// Rows per chunk of a batch: few enough for several threads, enough for efficient matrix products.
const ROWS_AT_ONCE: usize = 128;

/// Anything that scores rows, for prediction and evaluation.
///
/// Every [`Model`] is a scorer. A type that only scores, such as a wrapper of another library's
/// model, implements only this trait.
pub trait Scorer: Send + Sync {
    /// Scores of all rows, in order: one column for two classes, else one per class.
    fn scores(&self, rows: &Rows) -> Result<Array2<f32>>;
}

/// A trainable model: it scores rows, and back-propagates the derivative of a loss in the scores.
pub trait Model: Send + Sync {
    /// What `backward` needs from `forward`, and scratch buffers of both. The caller owns it, so
    /// threads can share the model, and reuses it from batch to batch.
    type Tape: Default + Send;

    /// The number of scores per row: one for two classes, else one per class.
    fn n_scores(&self) -> usize;

    /// Checks that the model can score these rows.
    fn check(&self, rows: &Rows) -> Result<()>;

    /// The trainable parameters.
    fn parameters(&self) -> &Parameters;

    /// The trainable parameters, for writing.
    fn parameters_mut(&mut self) -> &mut Parameters;

    /// Scores of a batch: a line per row, [`n_scores`](Self::n_scores) columns.
    fn forward(&self, rows: &RowBatch, pass: Pass, tape: &mut Self::Tape, scores: ArrayViewMut2<f32>);

    /// Writes the batch's gradient, from the derivative of the loss in its scores and the tape of
    /// the training pass. Every dense block is overwritten; blocks of touched lines are empty at
    /// first.
    fn backward(
        &self,
        rows: &RowBatch,
        tape: &mut Self::Tape,
        dscores: ArrayView2<f32>,
        gradient: &mut Gradient,
    );

    /// The number of rows of a batch that a thread works on at a time; each such chunk has its own
    /// gradient. The bytes of a training run depend on it.
    fn rows_at_once(&self) -> usize {
        ROWS_AT_ONCE
    }

    /// Scores of sparse rows, in order, for models that support them.
    fn sparse_scores(&self, _rows: &Csr) -> Result<Array2<f32>> {
        Err(Error::SparseRows { what: "this model" })
    }

    /// The model as a linear one, if it is; L-BFGS requires that.
    fn as_linear_mut(&mut self) -> Option<&mut LinearModel> {
        None
    }
}

impl<M: Model> Scorer for M {
    fn scores(&self, rows: &Rows) -> Result<Array2<f32>> {
        /// Rows scored at a time by one thread.
        const CHUNK: usize = 1024;
        /// Products of fewer rows are summed in another order. Few rows are therefore scored
        /// together with copies of the last one, so that a row's score does not depend on its
        /// batch.
        const FEWEST: usize = 16;
        Vectors::chosen()?;
        self.check(rows)?;
        if let Some(matrix) = rows.as_sparse() {
            return self.sparse_scores(matrix);
        }
        let rows = rows.dense_part();
        let mut scores = Array2::zeros((rows.n_rows(), self.n_scores()));
        scores.axis_chunks_iter_mut(Axis(0), CHUNK).into_par_iter().enumerate().for_each_init(
            M::Tape::default,
            |tape, (chunk, mut scores)| {
                let (start, n_rows) = (chunk * CHUNK, scores.nrows());
                if n_rows >= FEWEST {
                    let batch = rows.batch(start..start + n_rows);
                    return self.forward(&batch, Pass::Score, tape, scores);
                }
                let copied = (0..FEWEST).map(|place| start + place.min(n_rows - 1));
                let copied: Vec<u32> = copied.map(|row| u32::try_from(row).expect("a row's index")).collect();
                let mut buffer = rows.buffer(FEWEST);
                let mut of_copies = Array2::zeros((FEWEST, scores.ncols()));
                self.forward(&rows.gather(&copied, &mut buffer), Pass::Score, tape, of_copies.view_mut());
                scores.assign(&of_copies.slice(s![..n_rows, ..]));
            },
        );
        Ok(scores)
    }
}

/// The maximum number of weights per layer, so that a mistake does not lead to a huge allocation.
pub(crate) const MOST_WEIGHTS: usize = 1 << 30;

/// The maximum number of embedding values.
pub(crate) const MOST_EMBEDDINGS: usize = 1 << 36;

/// Checks the size of a matrix before it is allocated.
pub(crate) fn check_size(name: &'static str, n_lines: usize, n_columns: usize, most: usize) -> Result<()> {
    if n_lines.checked_mul(n_columns).is_some_and(|n_numbers| n_numbers <= most) {
        return Ok(());
    }
    Err(Error::Setting {
        name, value: format!("{n_lines}·{n_columns}"), expected: "one that fits in memory"
    })
}
