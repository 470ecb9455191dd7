//! Networks with embeddings of categories, which are trained with the other weights.

use super::dense::{DenseStack, DenseTape};
use super::fields::Fields;
use super::{
    Activation, Block, Draws, Gradient, Hidden, MOST_EMBEDDINGS, MOST_WEIGHTS, Model, Parameters, Pass,
    Updates, check_size,
};
use crate::classes::{check_classes, n_columns};
use crate::error::{Error, Result, check_length};
use crate::kernel::{prefetch, table_of_zeros};
use crate::rows::{RowBatch, Rows};
use crate::seed::{Stream, stream};
use ndarray::{Array2, ArrayView2, ArrayViewMut2, Axis};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;
use rayon::prelude::*;

/// The index of the embeddings' block; the layers' blocks follow.
const EMBEDDINGS: usize = 0;
const FIRST_LAYER: usize = 1;

/// The input shape and the embedding width of an [`EmbeddingNet`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Embedding<'s> {
    /// The number of dense features per row; may be 0.
    pub n_dense: usize,
    /// The number of categories of each field; at least one field.
    pub cardinalities: &'s [u32],
    /// The embedding width.
    pub width: usize,
}

/// Fully connected layers over the dense features and an embedding of each categorical field.
///
/// ```
/// use easyllp::model::Hidden;
/// use easyllp::{Rows, model::{EmbeddingNet, Scorer}};
/// use ndarray::array;
///
/// let rows = Rows::new(array![[1.0_f32], [0.5]], array![[0, 2], [1, 0]], vec![2, 3])?;
/// let model = EmbeddingNet::for_rows(&rows, 4, &Hidden::new(&[8]), 2, 1)?; // width 4, two classes, seed 1
/// assert_eq!(model.embeddings(1).dim(), (3, 4));
/// assert_eq!(model.scores(&rows)?.dim(), (2, 1));
/// # Ok::<(), easyllp::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct EmbeddingNet {
    parameters: Parameters,
    n_dense: usize,
    width: usize,
    fields: Fields,
    stack: DenseStack,
}

impl EmbeddingNet {
    /// Creates a network for rows of this shape, with embeddings of this width.
    pub fn for_rows(rows: &Rows, width: usize, hidden: &Hidden, n_classes: usize, seed: u64) -> Result<Self> {
        let embedding = Embedding { n_dense: rows.n_dense(), cardinalities: rows.cardinalities(), width };
        Self::new(embedding, hidden, n_classes, seed)
    }

    /// Creates a network for rows of a given shape. Embeddings are drawn from the normal
    /// distribution with standard deviation 0.01, other weights as in
    /// [`Mlp::new`](super::Mlp::new).
    pub fn new(embedding: Embedding, hidden: &Hidden, n_classes: usize, seed: u64) -> Result<Self> {
        check_classes(n_classes)?;
        let Embedding { n_dense, cardinalities, width } = embedding;
        let at_least_one = |name, value: usize| match value {
            0 => Err(Error::Setting { name, value: "0".into(), expected: "at least 1" }),
            _ => Ok(()),
        };
        at_least_one("number of categorical fields", cardinalities.len())?;
        at_least_one("width of embeddings", width)?;
        check_size("number of inputs of embeddings", cardinalities.len(), width, MOST_WEIGHTS)?;
        let fields = Fields::new(cardinalities)?;
        check_size("number of embeddings", fields.n_lines(), width, MOST_EMBEDDINGS)?;
        let n_inputs = n_dense.saturating_add(cardinalities.len() * width);
        let stack = DenseStack::new(FIRST_LAYER, n_inputs, hidden.layers(), n_columns(n_classes))?;
        let table = draw_embeddings(fields.n_lines(), width, seed);
        let mut blocks = vec![Block::new("embeddings", table, Updates::Touched, true)];
        blocks.extend(stack.blocks(&mut stream(seed, Stream::Weights)));
        Ok(Self { parameters: Parameters::new(blocks), n_dense, width, fields, stack })
    }

    /// The number of categories of each field.
    pub(crate) fn cardinalities(&self) -> &[u32] {
        &self.fields.cardinalities
    }

    /// The activation and dropout of each hidden layer.
    pub(crate) fn activations(&self) -> impl Iterator<Item = Activation> {
        self.stack.activations()
    }

    /// The embeddings of one field's categories: its cardinality × width.
    pub fn embeddings(&self, field: usize) -> ArrayView2<'_, f32> {
        self.parameters.0[EMBEDDINGS].values.slice(ndarray::s![self.fields.range(field), ..])
    }
}

/// Large tables are drawn by all threads; each range of lines has its own random stream.
fn draw_embeddings(n_lines: usize, width: usize, seed: u64) -> Array2<f32> {
    const LINES: usize = 4096;
    const DEVIATION: f32 = 0.01;
    let draws = Draws::new(stream(seed, Stream::Embeddings).random());
    let mut table = table_of_zeros(n_lines, width);
    table.axis_chunks_iter_mut(Axis(0), LINES).into_par_iter().enumerate().for_each(|(chunk, mut lines)| {
        let mut rng = ChaCha8Rng::seed_from_u64(draws.of_chunk(chunk as u64));
        lines.map_inplace(|value| *value = DEVIATION * rng.sample::<f32, _>(StandardNormal));
    });
    table
}

/// What [`EmbeddingNet`] keeps from `forward` to `backward`.
#[derive(Debug, Default)]
pub struct EmbeddingTape {
    /// The layers' input: rows × (dense features, then the embedding of each field).
    input: Vec<f32>,
    layers: DenseTape,
}

impl Model for EmbeddingNet {
    type Tape = EmbeddingTape;

    fn n_scores(&self) -> usize {
        self.stack.n_scores()
    }

    fn check(&self, rows: &Rows) -> Result<()> {
        rows.dense_only("an embedding net")?;
        check_length("dense features", self.n_dense, rows.n_dense())?;
        self.fields.check(rows)
    }

    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn parameters_mut(&mut self) -> &mut Parameters {
        &mut self.parameters
    }

    fn forward(&self, rows: &RowBatch, pass: Pass, tape: &mut EmbeddingTape, scores: ArrayViewMut2<f32>) {
        let (n_rows, n_inputs) = (rows.n_rows(), self.stack.n_inputs());
        if tape.input.len() < n_rows * n_inputs {
            tape.input.resize(n_rows * n_inputs, 0.0);
        }
        let table = self.parameters.0[EMBEDDINGS].values.as_slice().expect("parameters are contiguous");
        let features = rows.dense.rows().into_iter().zip(rows.categories.rows()).enumerate();
        for (line, (row, (dense, ids))) in tape.input.chunks_exact_mut(n_inputs).zip(features) {
            if row + 1 < n_rows {
                for line in self.fields.lines(rows.categories.row(row + 1)) {
                    prefetch(&table[line as usize * self.width..][..self.width]);
                }
            }
            let (numbers, embeddings) = line.split_at_mut(self.n_dense);
            numbers.iter_mut().zip(dense).for_each(|(number, value)| *number = *value);
            for (place, line) in embeddings.chunks_exact_mut(self.width).zip(self.fields.lines(ids)) {
                place.copy_from_slice(&table[line as usize * self.width..][..self.width]);
            }
        }
        let EmbeddingTape { input, layers } = tape;
        let input = ArrayView2::from_shape((n_rows, n_inputs), &input[..n_rows * n_inputs]);
        self.stack.forward(&self.parameters, input.expect("cut to this shape"), pass, layers, scores);
    }

    fn backward(
        &self,
        rows: &RowBatch,
        tape: &mut EmbeddingTape,
        dscores: ArrayView2<f32>,
        gradient: &mut Gradient,
    ) {
        let (n_rows, n_inputs) = (rows.n_rows(), self.stack.n_inputs());
        let EmbeddingTape { input, layers } = tape;
        let input = ArrayView2::from_shape((n_rows, n_inputs), &input[..n_rows * n_inputs]);
        // What touches a line is a piece of the derivative in the input, row by row and field by field: the product writes
        // it to where the gradient is to be.
        let mut touched = std::mem::take(gradient.touched_mut(EMBEDDINGS));
        let lines = rows.categories.rows().into_iter().flat_map(|ids| self.fields.lines(ids));
        let dembeddings = touched.extend(lines);
        let dinput = ArrayViewMut2::from_shape((n_rows, n_inputs - self.n_dense), dembeddings);
        self.stack.backward(
            &self.parameters,
            input.expect("cut to this shape"),
            layers,
            dscores,
            gradient,
            Some(dinput.expect("a line a field of each row")),
        );
        *gradient.touched_mut(EMBEDDINGS) = touched;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Scorer;
    use ndarray::{Array1, array};

    fn example(n_dense: usize) -> (Rows<'static>, EmbeddingNet) {
        let dense = Array2::from_shape_fn((5, n_dense), |(i, j)| ((i * 3 + j) as f32 * 1.7).sin());
        let ids = array![[0, 2], [1, 0], [1, 2], [0, 1], [1, 2]];
        let rows = Rows::new(dense, ids, vec![2, 4]).unwrap();
        let hidden = Hidden { activation: super::super::Activation::Tanh, ..Hidden::new(&[6]) };
        let mut model = EmbeddingNet::for_rows(&rows, 3, &hidden, 3, 1).unwrap();
        model.parameters.0[EMBEDDINGS].values *= 50.0;
        (rows, model)
    }

    /// Row 1, by hand: numbers first, then the embedding of each field.
    #[test]
    fn inputs_are_numbers_then_embeddings() {
        let (rows, model) = example(2);
        let mut tape = EmbeddingTape::default();
        model.forward(
            &rows.as_dense().unwrap().batch(0..5),
            Pass::Score,
            &mut tape,
            Array2::zeros((5, 3)).view_mut(),
        );
        let dense = rows.as_dense().unwrap().batch(1..2).dense.row(0).to_owned();
        let [first, second] = [model.embeddings(0).row(1).to_owned(), model.embeddings(1).row(0).to_owned()];
        let expected: Array1<f32> = dense.into_iter().chain(first).chain(second).collect();
        assert_eq!(ndarray::aview1(&tape.input[8..16]), expected);
    }

    #[test]
    fn the_gradient_equals_finite_differences() {
        for n_dense in [0, 2] {
            let (rows, model) = example(n_dense);
            let batch = rows.as_dense().unwrap().batch(0..5);
            let dscores = Array2::from_shape_fn((5, 3), |(i, j)| ((i + 2 * j) as f32 + 0.3).cos());
            let loss = |model: &EmbeddingNet, tape: &mut EmbeddingTape| {
                let mut scores = Array2::zeros((5, 3));
                model.forward(&batch, Pass::Learn { draw: 0 }, tape, scores.view_mut());
                (&scores * &dscores).mapv(f64::from).sum()
            };
            let mut tape = EmbeddingTape::default();
            loss(&model, &mut tape);
            let mut gradient = model.parameters.zero_gradient();
            model.backward(&batch, &mut tape, dscores.view(), &mut gradient);
            for (block, gradient) in gradient.blocks.iter().enumerate() {
                let slopes = gradient.to_matrix(model.parameters.0[block].values.dim());
                for (place, &slope) in slopes.indexed_iter() {
                    let shifted = |step: f32| {
                        let mut model = model.clone();
                        model.parameters.0[block].values[place] += step;
                        loss(&model, &mut EmbeddingTape::default())
                    };
                    let difference = (shifted(0.01) - shifted(-0.01)) / 0.02;
                    assert!((difference - f64::from(slope)).abs() < 1e-3, "block {block} at {place:?}");
                }
            }
        }
    }

    #[test]
    fn refuses_what_makes_no_network() {
        let refused = |n_dense, cardinalities: &[u32], width| {
            let embedding = Embedding { n_dense, cardinalities, width };
            EmbeddingNet::new(embedding, &Hidden::new(&[2]), 2, 0).unwrap_err().to_string()
        };
        assert_eq!(refused(3, &[], 4), "number of categorical fields is 0: it must be at least 1");
        assert_eq!(refused(3, &[2], 0), "width of embeddings is 0: it must be at least 1");
        assert!(refused(3, &[u32::MAX, 2], 1).starts_with("number of categories"));
        assert!(refused(3, &[1 << 31], 1 << 20).starts_with("number of embeddings"));
        assert!(refused(3, &[2], usize::MAX).starts_with("number of"));
        assert!(refused(usize::MAX, &[2], 1).starts_with("number of weights"));
        let (rows, _) = example(2);
        let (_, other) = example(1);
        assert!(matches!(other.scores(&rows), Err(Error::Shape { what: "dense features", .. })));
    }

    #[test]
    fn embeddings_are_small_normal_numbers_of_their_seed() {
        let table = draw_embeddings(5000, 4, 3);
        let deviation = table.mapv(|value| value * value).mean().unwrap().sqrt();
        assert!((deviation - 0.01).abs() < 2e-4, "{deviation}");
        assert_eq!(table, draw_embeddings(5000, 4, 3));
        assert_ne!(table, draw_embeddings(5000, 4, 4));
    }
}
