//! Fully connected networks over dense features.

use super::dense::{DenseStack, DenseTape};
use super::{Activation, Gradient, Hidden, Model, Parameters, Pass};
use crate::classes::{check_classes, n_columns};
use crate::error::{Error, Result, check_length};
use crate::rows::{RowBatch, Rows};
use crate::seed::{Stream, stream};
use ndarray::{ArrayView2, ArrayViewMut2};

/// A multi-layer perceptron: fully connected layers with activations.
///
/// ```
/// use easyllp::model::Hidden;
/// use easyllp::{Rows, model::{Mlp, Scorer}};
/// use ndarray::array;
///
/// let rows = Rows::dense(array![[1.0_f32, 2.0], [0.0, 1.0]])?;
/// let model = Mlp::for_rows(&rows, &Hidden::new(&[8, 4]), 2, 1)?; // two classes, seed 1
/// assert_eq!(model.scores(&rows)?.dim(), (2, 1));
/// # Ok::<(), easyllp::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Mlp {
    parameters: Parameters,
    stack: DenseStack,
}

impl Mlp {
    /// Creates a network for rows of this shape; categories are not supported.
    pub fn for_rows(rows: &Rows, hidden: &Hidden, n_classes: usize, seed: u64) -> Result<Self> {
        check_no_fields(rows)?;
        Self::new(rows.n_dense(), hidden, n_classes, seed)
    }

    /// Creates a network for `n_dense` features. Weights and biases are drawn uniformly from
    /// ±1/√(inputs of their layer).
    pub fn new(n_dense: usize, hidden: &Hidden, n_classes: usize, seed: u64) -> Result<Self> {
        check_classes(n_classes)?;
        let stack = DenseStack::new(0, n_dense, hidden.layers(), n_columns(n_classes))?.of_rows();
        let parameters = Parameters::new(stack.blocks(&mut stream(seed, Stream::Weights)));
        Ok(Self { parameters, stack })
    }

    /// The activation and dropout of each hidden layer.
    pub(crate) fn activations(&self) -> impl Iterator<Item = Activation> {
        self.stack.activations()
    }
}

fn check_no_fields(rows: &Rows) -> Result<()> {
    match rows.n_fields() {
        0 => Ok(()),
        n_fields => Err(Error::FieldsWithoutEmbedding { n_fields }),
    }
}

/// What [`Mlp`] keeps from `forward` to `backward`.
#[derive(Debug, Default)]
pub struct MlpTape(DenseTape);

impl Model for Mlp {
    type Tape = MlpTape;

    fn n_scores(&self) -> usize {
        self.stack.n_scores()
    }

    fn check(&self, rows: &Rows) -> Result<()> {
        check_no_fields(rows)?;
        rows.dense_only("an MLP")?;
        check_length("dense features", self.stack.n_inputs(), rows.n_dense())
    }

    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn parameters_mut(&mut self) -> &mut Parameters {
        &mut self.parameters
    }

    fn forward(&self, rows: &RowBatch, pass: Pass, tape: &mut MlpTape, scores: ArrayViewMut2<f32>) {
        self.stack.forward(&self.parameters, rows.dense, pass, &mut tape.0, scores);
    }

    fn backward(
        &self,
        rows: &RowBatch,
        tape: &mut MlpTape,
        dscores: ArrayView2<f32>,
        gradient: &mut Gradient,
    ) {
        self.stack.backward(&self.parameters, rows.dense, &mut tape.0, dscores, gradient, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Scorer;
    use ndarray::array;

    #[test]
    fn weights_are_drawn_from_the_seed_within_their_bounds() {
        let model = |seed| Mlp::new(100, &Hidden::new(&[50]), 3, seed).unwrap();
        assert_eq!(model(1), model(1));
        assert_ne!(model(1), model(2));
        let blocks = model(1);
        for (block, (shape, bound)) in blocks.parameters().blocks().iter().zip([
            ([100, 50], 0.1),
            ([1, 50], 0.1),
            ([50, 3], 0.141_421_4),
            ([1, 3], 0.141_421_4),
        ]) {
            assert_eq!(block.values().shape(), shape);
            let largest = block.values().iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
            assert!(largest <= bound && largest > 0.5 * bound, "{} {largest}", block.name());
        }
    }

    #[test]
    fn refuses_categories_and_says_what_to_use() {
        let rows = Rows::new(array![[1.0_f32]], array![[0]], vec![1]).unwrap();
        let error = Mlp::for_rows(&rows, &Hidden::new(&[2]), 2, 0).unwrap_err();
        assert_eq!(error, Error::FieldsWithoutEmbedding { n_fields: 1 });
        let model = Mlp::new(1, &Hidden::new(&[2]), 2, 0).unwrap();
        assert_eq!(model.scores(&rows).unwrap_err(), error);
        assert!(error.to_string().contains("use an embedding net"));
        let rows = Rows::dense(array![[1.0_f32, 2.0]]).unwrap();
        assert!(matches!(model.scores(&rows), Err(Error::Shape { expected: 1, got: 2, .. })));
        assert!(Mlp::new(1, &Hidden::new(&[2]), 1, 0).is_err());
    }
}
