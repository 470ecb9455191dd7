//! A stack of fully connected layers. Every layer but the last is followed by an activation and by
//! dropout.
//!
//! The stack owns no parameters. Its blocks are in its model's `Parameters`, starting at a given
//! index, with weights (inputs × outputs) and bias (1 × outputs) alternating: `fc1.weights`,
//! `fc1.bias`, `fc2.weights`…

use super::{Block, Gradient, MOST_WEIGHTS, Parameters, Pass, Updates, check_size};
use crate::error::{Error, Result};
use crate::kernel::{
    Activation, Dropout, Onto, activate, activate_to_learn, add_to_lines, column_sums, drop_out, multiply,
    pass_positive, product,
};
use ndarray::{Array2, ArrayView2, ArrayViewMut2};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// The hidden layers of a network: number, widths, activation and dropout.
///
/// ```
/// use easyllp::model::{Activation, Hidden};
///
/// let hidden = Hidden { dropout: 0.1, activation: Activation::Gelu, ..Hidden::new(&[256, 128]) };
/// assert_eq!(hidden.widths, [256, 128]);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Hidden {
    /// The width of each hidden layer, from the input on. An empty list is a linear model.
    pub widths: Vec<usize>,
    /// The activation of each layer.
    pub activation: Activation,
    /// The dropout rate in training, from 0 to below 1.
    pub dropout: f32,
}

impl Hidden {
    /// Layers of these widths, with ReLU and no dropout.
    pub fn new(widths: &[usize]) -> Self {
        Self { widths: widths.to_vec(), activation: Activation::Relu, dropout: 0.0 }
    }

    /// The layers, one by one.
    pub(crate) fn layers(&self) -> Vec<HiddenLayer> {
        let &Self { activation, dropout, .. } = self;
        self.widths.iter().map(|&width| HiddenLayer { width, activation, dropout }).collect()
    }
}

/// One hidden layer, with its activation and dropout.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct HiddenLayer {
    pub(crate) width: usize,
    pub(crate) activation: Activation,
    pub(crate) dropout: f32,
}

/// The layers of a stack, and the index of their blocks.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DenseStack {
    first_block: usize,
    n_inputs: usize,
    hidden: Vec<HiddenLayer>,
    n_scores: usize,
    /// Whether the input is exactly the rows' dense features.
    is_of_rows: bool,
}

/// What a stack keeps from `forward` to `backward`, and its scratch buffers.
#[derive(Debug, Default)]
pub(crate) struct DenseTape {
    hidden: Vec<HiddenTape>,
}

/// Buffers of one hidden layer, each rows × width.
#[derive(Debug, Default)]
struct HiddenTape {
    /// After activation and dropout.
    outputs: Vec<f32>,
    /// d output/d input of activation and dropout together; unused with ReLU, where the outputs are
    /// enough.
    slopes: Vec<f32>,
    /// d loss/d output, then d loss/d input.
    derivatives: Vec<f32>,
}

impl DenseStack {
    /// Creates a stack over `n_inputs` columns, with blocks from `first_block` on.
    pub(crate) fn new(
        first_block: usize,
        n_inputs: usize,
        hidden: Vec<HiddenLayer>,
        n_scores: usize,
    ) -> Result<Self> {
        for (name, value) in [("number of inputs", n_inputs), ("number of scores", n_scores)]
            .into_iter()
            .chain(hidden.iter().map(|layer| ("width of a hidden layer", layer.width)))
        {
            if value == 0 {
                return Err(Error::Setting { name, value: "0".into(), expected: "at least 1" });
            }
        }
        if let Some(layer) = hidden.iter().find(|layer| !(0.0..1.0).contains(&layer.dropout)) {
            let value = layer.dropout.to_string();
            return Err(Error::Setting { name: "dropout", value, expected: "at least 0 and below 1" });
        }
        let stack = Self { first_block, n_inputs, hidden, n_scores, is_of_rows: false };
        for layer in 0..stack.n_layers() {
            let [n_inputs, width] = stack.shape(layer);
            check_size("number of weights of a layer", n_inputs, width, MOST_WEIGHTS)?;
        }
        Ok(stack)
    }

    /// Marks the input as exactly the rows' dense features.
    pub(crate) fn of_rows(self) -> Self {
        Self { is_of_rows: true, ..self }
    }

    /// The stack's blocks: weights and biases uniform within ±1/√inputs of their layer, as in
    /// PyTorch.
    pub(crate) fn blocks(&self, rng: &mut ChaCha8Rng) -> Vec<Block> {
        let mut blocks = Vec::with_capacity(2 * self.n_layers());
        for layer in 0..self.n_layers() {
            let [n_inputs, width] = self.shape(layer);
            let bound = 1.0 / (n_inputs as f32).sqrt();
            let mut draw =
                |n_lines| Array2::from_shape_simple_fn((n_lines, width), || rng.random_range(-bound..=bound));
            let (weights, bias) = (draw(n_inputs), draw(1));
            let name = |of| format!("fc{}.{of}", layer + 1);
            let updates = if layer == 0 && self.is_of_rows { Updates::OfRows } else { Updates::Dense };
            blocks.push(Block::new(name("weights"), weights, updates, true));
            blocks.push(Block::new(name("bias"), bias, Updates::Dense, false));
        }
        blocks
    }

    /// The number of input columns.
    pub(crate) fn n_inputs(&self) -> usize {
        self.n_inputs
    }

    /// The number of output columns.
    pub(crate) fn n_scores(&self) -> usize {
        self.n_scores
    }

    /// The activation and dropout of each layer but the last.
    pub(crate) fn activations(&self) -> impl Iterator<Item = Activation> {
        self.hidden.iter().map(|layer| layer.activation)
    }

    fn n_layers(&self) -> usize {
        self.hidden.len() + 1
    }

    /// The numbers of input and output columns of a layer.
    fn shape(&self, layer: usize) -> [usize; 2] {
        let before = layer.checked_sub(1).map_or(self.n_inputs, |before| self.hidden[before].width);
        [before, self.hidden.get(layer).map_or(self.n_scores, |layer| layer.width)]
    }

    fn weights<'p>(&self, parameters: &'p Parameters, layer: usize) -> ArrayView2<'p, f32> {
        parameters.0[self.first_block + 2 * layer].values.view()
    }

    fn bias<'p>(&self, parameters: &'p Parameters, layer: usize) -> &'p [f32] {
        parameters.0[self.first_block + 2 * layer + 1].values.as_slice().expect("parameters are contiguous")
    }

    /// Scores (rows × scores) of inputs (rows × inputs).
    pub(crate) fn forward(
        &self,
        parameters: &Parameters,
        input: ArrayView2<f32>,
        pass: Pass,
        tape: &mut DenseTape,
        mut scores: ArrayViewMut2<f32>,
    ) {
        let n_rows = input.nrows();
        let last = self.n_layers() - 1;
        tape.hidden.resize_with(last, HiddenTape::default);
        for (layer, &HiddenLayer { width, activation, dropout }) in self.hidden.iter().enumerate() {
            let (before, rest) = tape.hidden.split_at_mut(layer);
            let HiddenTape { outputs, slopes, .. } = &mut rest[0];
            let outputs = space(outputs, n_rows * width);
            let input =
                before.last().map_or(input, |tape| matrix(&tape.outputs, n_rows, self.shape(layer)[0]));
            product(input, self.weights(parameters, layer), Onto::Overwrite, matrix_mut(outputs, width));
            let bias = self.bias(parameters, layer);
            match pass {
                Pass::Score => activate(activation, outputs, bias),
                Pass::Learn { draw } => {
                    let slopes = match activation {
                        Activation::Relu => &mut [],
                        Activation::Gelu | Activation::Tanh => space(slopes, n_rows * width),
                    };
                    activate_to_learn(activation, outputs, bias, slopes);
                    if dropout > 0.0 {
                        let dropout = Dropout::new(dropout, draw, layer);
                        drop_out(dropout, outputs);
                        drop_out(dropout, slopes);
                    }
                }
            }
        }
        let input =
            tape.hidden.last().map_or(input, |tape| matrix(&tape.outputs, n_rows, self.shape(last)[0]));
        product(input, self.weights(parameters, last), Onto::Overwrite, scores.view_mut());
        let bias = self.bias(parameters, last);
        match scores.as_slice_mut() {
            Some(scores) => add_to_lines(bias, scores),
            None => scores += &ndarray::aview1(bias),
        }
    }

    /// Writes the gradient of the stack's blocks, from the input and the tape of `forward`. If
    /// `dinput` is given, it receives the derivative in the last columns of the input.
    pub(crate) fn backward(
        &self,
        parameters: &Parameters,
        input: ArrayView2<f32>,
        tape: &mut DenseTape,
        dscores: ArrayView2<f32>,
        gradient: &mut Gradient,
        dinput: Option<ArrayViewMut2<f32>>,
    ) {
        let n_rows = input.nrows();
        for layer in (0..self.n_layers()).rev() {
            let [n_inputs, width] = self.shape(layer);
            let (before, rest) = tape.hidden.split_at_mut(layer);
            let dz = rest.first().map_or(dscores, |tape| matrix(&tape.derivatives, n_rows, width));
            let weights = self.weights(parameters, layer);
            let block = self.first_block + 2 * layer;
            let dbias = gradient.dense_mut(block + 1).as_slice_mut().expect("gradients are contiguous");
            column_sums(dz.as_slice().expect("derivatives are contiguous"), dbias);
            let Some(previous) = before.last_mut() else {
                if self.is_of_rows {
                    let of_rows = gradient.of_rows_mut(block);
                    if let Some(tape) = rest.first_mut() {
                        std::mem::swap(of_rows, &mut tape.derivatives);
                    } else {
                        of_rows.clear();
                        of_rows.extend(dscores.iter());
                    }
                    return;
                }
                let dweights = gradient.dense_mut(block).view_mut();
                product(input.t(), dz, Onto::Overwrite, dweights);
                if let Some(dinput) = dinput {
                    let first = n_inputs - dinput.ncols();
                    product(dz, weights.slice(ndarray::s![first.., ..]).t(), Onto::Overwrite, dinput);
                }
                return;
            };
            let length = n_rows * n_inputs;
            let outputs = &previous.outputs[..length];
            let dweights = gradient.dense_mut(block).view_mut();
            product(matrix(outputs, n_rows, n_inputs).t(), dz, Onto::Overwrite, dweights);
            let derivatives = space(&mut previous.derivatives, length);
            product(dz, weights.t(), Onto::Overwrite, matrix_mut(derivatives, n_inputs));
            let HiddenLayer { activation, dropout, .. } = self.hidden[layer - 1];
            match activation {
                Activation::Relu => pass_positive(derivatives, outputs, 1.0 / (1.0 - dropout)),
                Activation::Gelu | Activation::Tanh => multiply(derivatives, &previous.slopes[..length]),
            }
        }
    }
}

/// The front of a buffer, which grows on first use.
fn space(buffer: &mut Vec<f32>, length: usize) -> &mut [f32] {
    if buffer.len() < length {
        buffer.resize(length, 0.0);
    }
    &mut buffer[..length]
}

fn matrix(values: &[f32], n_rows: usize, width: usize) -> ArrayView2<'_, f32> {
    ArrayView2::from_shape((n_rows, width), &values[..n_rows * width]).expect("cut to this shape")
}

fn matrix_mut(values: &mut [f32], width: usize) -> ArrayViewMut2<'_, f32> {
    ArrayViewMut2::from_shape((values.len() / width, width), values).expect("cut to this shape")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::{Stream, stream};
    use ndarray::array;

    fn example(hidden: &Hidden, n_scores: usize) -> (DenseStack, Parameters, Array2<f32>) {
        let stack = DenseStack::new(0, 3, hidden.layers(), n_scores).unwrap();
        let parameters = Parameters::new(stack.blocks(&mut stream(5, Stream::Weights)));
        let input = Array2::from_shape_fn((5, 3), |(i, j)| ((i * 3 + j) as f32 * 1.7).sin());
        (stack, parameters, input)
    }

    #[test]
    fn scores_by_hand() {
        let (stack, mut parameters, _) = example(&Hidden::new(&[2]), 1);
        for (block, values) in parameters.blocks_mut().iter_mut().zip([
            array![[1.0_f32, -1.0], [0.5, 2.0], [0.0, 1.0]],
            array![[0.25, -0.5]],
            array![[2.0], [3.0]],
            array![[0.125]],
        ]) {
            block.set(values.view()).unwrap();
        }
        let mut scores = Array2::zeros((2, 1));
        let input = array![[1.0_f32, 2.0, 3.0], [-1.0, -1.0, 0.0]];
        stack.forward(&parameters, input.view(), Pass::Score, &mut DenseTape::default(), scores.view_mut());
        // Row 0: hidden (2.25, 5.5); row 1: (−1.25, −1.5), cut off.
        assert_eq!(scores, array![[2.0 * 2.25 + 3.0 * 5.5 + 0.125], [0.125]]);
        let names: Vec<&str> = parameters.blocks().iter().map(Block::name).collect();
        assert_eq!(names, ["fc1.weights", "fc1.bias", "fc2.weights", "fc2.bias"]);
    }

    /// The loss is Σ c·score with odd factors c; slopes in all blocks and in the input, dropout included.
    #[test]
    fn the_gradient_equals_finite_differences() {
        for activation in Activation::ALL {
            for (widths, dropout, n_scores) in
                [(vec![], 0.0, 2), (vec![4], 0.0, 1), (vec![7, 17], 0.0, 3), (vec![33, 5], 0.4, 2)]
            {
                let hidden = Hidden { widths, activation, dropout };
                let (stack, parameters, input) = example(&hidden, n_scores);
                let dscores = Array2::from_shape_fn((5, n_scores), |(i, j)| ((i + 2 * j) as f32 + 0.3).cos());
                let mut tape = DenseTape::default();
                let mut loss = |parameters: &Parameters, input: &Array2<f32>| {
                    let mut scores = Array2::zeros((5, n_scores));
                    let pass = Pass::Learn { draw: 9 };
                    stack.forward(parameters, input.view(), pass, &mut tape, scores.view_mut());
                    (&scores * &dscores).mapv(f64::from).sum()
                };
                loss(&parameters, &input);
                let mut gradient = parameters.zero_gradient();
                (0..parameters.0.len()).for_each(|block| gradient.dense_mut(block).fill(f32::NAN));
                let mut dinput = Array2::from_elem((5, 2), f32::NAN);
                let mut used = DenseTape::default();
                stack.forward(
                    &parameters,
                    input.view(),
                    Pass::Learn { draw: 9 },
                    &mut used,
                    Array2::zeros((5, n_scores)).view_mut(),
                );
                stack.backward(
                    &parameters,
                    input.view(),
                    &mut used,
                    dscores.view(),
                    &mut gradient,
                    Some(dinput.view_mut()),
                );
                let check = |slope: f32, shifted: &mut dyn FnMut(f32) -> f64, what: &str| {
                    // On one side of a kink of ReLU, if not on both.
                    let [below, here, above] = [-0.004, 0.0, 0.004].map(&mut *shifted);
                    let differences =
                        [above - below, 2.0 * (above - here), 2.0 * (here - below)].map(|d| d / 0.008);
                    let close = differences.iter().any(|d| (d - f64::from(slope)).abs() < 1e-3);
                    assert!(close, "{hidden:?} {what}: {slope} {differences:?}");
                };
                for block in 0..parameters.0.len() {
                    for (place, &slope) in gradient.dense_mut(block).clone().indexed_iter() {
                        let mut shifted = |step| {
                            let mut parameters = parameters.clone();
                            parameters.0[block].values[place] += step;
                            loss(&parameters, &input)
                        };
                        check(slope, &mut shifted, parameters.0[block].name());
                    }
                }
                for ((row, column), &slope) in dinput.indexed_iter() {
                    let mut shifted = |step| {
                        let mut input = input.clone();
                        input[[row, column + 1]] += step;
                        loss(&parameters, &input)
                    };
                    check(slope, &mut shifted, "input");
                }
            }
        }
    }

    #[test]
    fn a_used_tape_changes_nothing() {
        let (stack, parameters, input) = example(&Hidden { dropout: 0.5, ..Hidden::new(&[6, 4]) }, 1);
        let scores = |tape: &mut DenseTape, n_rows: usize, pass| {
            let mut scores = Array2::zeros((n_rows, 1));
            stack.forward(&parameters, input.slice(ndarray::s![..n_rows, ..]), pass, tape, scores.view_mut());
            scores
        };
        let mut tape = DenseTape::default();
        let learn = Pass::Learn { draw: 3 };
        let first = scores(&mut tape, 5, learn);
        scores(&mut tape, 2, Pass::Score);
        assert_eq!(first, scores(&mut tape, 5, learn));
        assert_eq!(first, scores(&mut DenseTape::default(), 5, learn));
        assert_ne!(first, scores(&mut tape, 5, Pass::Learn { draw: 4 }));
        assert_ne!(first, scores(&mut tape, 5, Pass::Score));
    }

    #[test]
    fn refuses_shapes_that_make_no_layers() {
        let refused = |hidden: &Hidden| DenseStack::new(0, 3, hidden.layers(), 1).unwrap_err().to_string();
        assert_eq!(refused(&Hidden::new(&[4, 0])), "width of a hidden layer is 0: it must be at least 1");
        assert!(refused(&Hidden::new(&[1 << 30, 1 << 30])).starts_with("number of weights of a layer"));
        assert!(refused(&Hidden::new(&[usize::MAX])).starts_with("number of weights of a layer"));
        for dropout in [1.0, -0.1, f32::NAN] {
            assert!(refused(&Hidden { dropout, ..Hidden::new(&[4]) }).starts_with("dropout is"));
        }
        assert!(DenseStack::new(0, 0, Hidden::new(&[4]).layers(), 1).is_err());
    }
}
