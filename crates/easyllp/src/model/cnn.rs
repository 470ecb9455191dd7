//! Convolutional networks for rows that are images.

mod architecture;
mod body;
mod plan;
mod shape;

pub use architecture::{Architecture, Layer, Padding, Windows};
pub use shape::ImageShape;

use super::dense::{DenseStack, DenseTape};
use super::{Activation, Block, Gradient, Model, Parameters, Pass, Updates};
use crate::classes::{check_classes, n_columns};
use crate::error::{Result, check_length};
use crate::kernel::Convolution;
use crate::rows::{RowBatch, Rows};
use crate::seed::{Stream, stream};
use body::BodyTape;
use ndarray::{Array2, ArrayView2, ArrayViewMut2};
use plan::Plan;
use rand::RngExt;

/// A convolutional network: convolutions and pooling on the image in a row's dense features, then
/// fully connected layers.
///
/// ```
/// use easyllp::{Rows, model::{Cnn, Scorer}};
/// use ndarray::Array2;
///
/// let images = Array2::from_shape_fn((3, 64), |(row, pixel)| ((row + pixel) % 5) as f32);
/// let rows = Rows::dense(images)?;
/// let layers = "conv3x8:same relu pool2 conv3x16 relu fc32 relu".parse()?;
/// let model = Cnn::new(&layers, "1x8x8".parse()?, 2, 1)?; // two classes, seed 1
/// assert_eq!(model.scores(&rows)?.dim(), (3, 1));
/// # Ok::<(), easyllp::Error>(())
/// ```
///
/// Blocks are named `conv1.weights`, `conv1.bias`, `conv2.weights`…, followed by `fc1.weights`,
/// `fc1.bias`… of the fully connected layers. Convolution weights have one line per value of a
/// window, ordered by window line, column and input channel, and one column per output channel. The
/// inputs of the first fully connected layer are ordered by image line, column and channel.
#[derive(Debug, Clone, PartialEq)]
pub struct Cnn {
    parameters: Parameters,
    architecture: Architecture,
    image: ImageShape,
    plan: Plan,
    head: DenseStack,
}

impl Cnn {
    /// Creates a network for images of this shape. Weights and biases are drawn uniformly from
    /// ±1/√(inputs of an output).
    pub fn new(architecture: &Architecture, image: ImageShape, n_classes: usize, seed: u64) -> Result<Self> {
        check_classes(n_classes)?;
        let plan = Plan::new(architecture, image)?;
        architecture.check_head(plan.n_features())?;
        let hidden = architecture.head()?;
        let n_convolutions = plan.convolutions().count();
        let head = DenseStack::new(2 * n_convolutions, plan.n_features(), hidden, n_columns(n_classes))?;
        let mut rng = stream(seed, Stream::Weights);
        let mut blocks = Vec::with_capacity(2 * n_convolutions);
        for (number, form) in plan.convolutions().enumerate() {
            let bound = 1.0 / (form.window() as f32).sqrt();
            let mut draw = |n_lines| {
                let shape = (n_lines, form.output.channels);
                Array2::from_shape_simple_fn(shape, || rng.random_range(-bound..=bound))
            };
            let (weights, bias) = (draw(form.window()), draw(1));
            let name = |of| format!("conv{}.{of}", number + 1);
            blocks.push(Block::new(name("weights"), weights, Updates::Dense, true));
            blocks.push(Block::new(name("bias"), bias, Updates::Dense, false));
        }
        blocks.extend(head.blocks(&mut rng));
        let parameters = Parameters::new(blocks);
        Ok(Self { parameters, architecture: architecture.clone(), image, plan, head })
    }

    /// The layers.
    pub fn architecture(&self) -> &Architecture {
        &self.architecture
    }

    /// The shape of the images.
    pub fn image(&self) -> ImageShape {
        self.image
    }

    /// The activation and dropout of each fully connected layer.
    pub(crate) fn activations_of_head(&self) -> impl Iterator<Item = Activation> {
        self.head.activations()
    }
}

impl Architecture {
    /// The number of convolution parameters on images of this shape, the number of features after
    /// them, and the widths of the fully connected layers.
    pub(super) fn sizes(&self, image: ImageShape) -> Result<(usize, usize, Vec<usize>)> {
        let plan = Plan::new(self, image)?;
        let of_convolution = |form: &Convolution| (form.window() + 1).saturating_mul(form.output.channels);
        let n_parameters = plan.convolutions().map(of_convolution).fold(0_usize, usize::saturating_add);
        let widths = self.head()?.iter().map(|layer| layer.width).collect();
        Ok((n_parameters, plan.n_features(), widths))
    }
}

/// What [`Cnn`] keeps from `forward` to `backward`.
#[derive(Debug, Default)]
pub struct CnnTape {
    body: BodyTape,
    head: DenseTape,
}

impl Model for Cnn {
    type Tape = CnnTape;

    fn n_scores(&self) -> usize {
        self.head.n_scores()
    }

    fn check(&self, rows: &Rows) -> Result<()> {
        check_length("categorical fields", 0, rows.n_fields())?;
        rows.dense_only("a cnn")?;
        let ImageShape { channels, height, width } = self.image;
        check_length("dense features, the numbers of an image", channels * height * width, rows.n_dense())
    }

    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn parameters_mut(&mut self) -> &mut Parameters {
        &mut self.parameters
    }

    fn forward(&self, rows: &RowBatch, pass: Pass, tape: &mut CnnTape, scores: ArrayViewMut2<f32>) {
        self.plan.forward(&self.parameters, rows, pass, &mut tape.body);
        let (features, _) = tape.body.features(rows.n_rows());
        self.head.forward(&self.parameters, features, pass, &mut tape.head, scores);
    }

    fn backward(
        &self,
        rows: &RowBatch,
        tape: &mut CnnTape,
        dscores: ArrayView2<f32>,
        gradient: &mut Gradient,
    ) {
        let (features, dfeatures) = tape.body.features(rows.n_rows());
        let head = &mut tape.head;
        self.head.backward(&self.parameters, features, head, dscores, gradient, Some(dfeatures));
        self.plan.backward(rows.n_rows(), &mut tape.body, gradient);
    }
}

#[cfg(test)]
mod tests;
