//! TRAIN: models, which score rows and take back derivatives. A model knows nothing of bags, targets or methods.

mod linear;
mod objective;
mod parameters;

pub use linear::LinearModel;
pub(crate) use objective::Objective;
pub(crate) use parameters::BlockGradient;
pub use parameters::{Block, Gradient, Parameters, Touched, Updates};

use crate::error::Result;
use crate::rows::{RowBatch, Rows};
use ndarray::{Array2, ArrayView2, ArrayViewMut2, Axis};
use rayon::prelude::*;

/// Anything that scores rows and takes back the derivative of a loss in the scores.
pub trait Model: Sync {
    /// What `backward` needs to know of `forward`. The caller owns it, so that threads share the model itself.
    type Tape: Default + Send;

    /// How many scores a row gets: one for two classes, else one a class.
    fn n_scores(&self) -> usize;

    /// Refuses rows that the model cannot score.
    fn check(&self, rows: &Rows) -> Result<()>;

    /// The numbers to be learnt.
    fn parameters(&self) -> &Parameters;

    /// The numbers to be learnt, to be changed.
    fn parameters_mut(&mut self) -> &mut Parameters;

    /// Scores of a batch: a line a row, [`n_scores`](Self::n_scores) columns.
    fn forward(&self, rows: &RowBatch, tape: &mut Self::Tape, scores: ArrayViewMut2<f32>);

    /// Adds to `gradient` what the batch contributes, from the derivative of the loss in its scores.
    fn backward(&self, rows: &RowBatch, tape: &Self::Tape, dscores: ArrayView2<f32>, gradient: &mut Gradient);

    /// The model as a linear one, where it is one: what L-BFGS asks for.
    fn as_linear_mut(&mut self) -> Option<&mut LinearModel> {
        None
    }

    /// Scores of all rows, in their order.
    fn scores(&self, rows: &Rows) -> Result<Array2<f32>> {
        /// Rows scored at a time by one thread.
        const CHUNK: usize = 1024;
        self.check(rows)?;
        let mut scores = Array2::zeros((rows.n_rows(), self.n_scores()));
        scores.axis_chunks_iter_mut(Axis(0), CHUNK).into_par_iter().enumerate().for_each(
            |(chunk, scores)| {
                let start = chunk * CHUNK;
                let batch = rows.batch(start..start + scores.nrows());
                self.forward(&batch, &mut Self::Tape::default(), scores);
            },
        );
        Ok(scores)
    }
}
