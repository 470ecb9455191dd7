//! Plan an architecture for images of one shape: what each layer reads and writes, or why it does
//! not fit.

use super::architecture::{Architecture, Layer, Padding, Windows};
use super::shape::ImageShape;
use crate::error::{Error, Result};
use crate::kernel::{Activation, Convolution, Plane, Pool, Summary};
use crate::model::MOST_WEIGHTS;

/// The convolutional part of a network, up to the first fully connected layer.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Plan {
    /// The image and the outputs of the stages: stage `i` reads plane `i` and writes plane `i + 1`.
    pub(super) planes: Vec<Plane>,
    pub(super) stages: Vec<Stage>,
}

/// One step from plane to plane.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Stage {
    /// With the activation behind it, if there is one.
    Convolution(ConvolutionStage),
    /// `behind_relu` if its input was made by ReLU: the two go back in one.
    Pool { form: Pool, behind_relu: bool },
    /// Drops this share in training.
    Dropout(f32),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ConvolutionStage {
    pub(super) form: Convolution,
    pub(super) activation: Option<Activation>,
    /// Counted from 0 among convolutions: its weights are block 2·number, its bias the one behind.
    pub(super) number: usize,
    /// Whether the pooling behind it brings the gradient back through ReLU.
    pub(super) relu_done: bool,
}

impl Plan {
    pub(super) fn new(architecture: &Architecture, image: ImageShape) -> Result<Self> {
        image.check()?;
        let layers = &architecture.layers()[..architecture.n_before_head()];
        let mut planes = vec![Plane::bare(image.channels, image.height, image.width)];
        let mut stages: Vec<Stage> = Vec::new();
        let mut n_convolutions = 0;
        for (place, &layer) in layers.iter().enumerate() {
            let input = *planes.last().expect("the image is there");
            let bad = |reason| Error::BadLayer { layer: place + 1, text: layer.to_string(), reason };
            match layer {
                Layer::Convolution { kernel, channels, padding, stride } => {
                    let form = convolution(input, kernel, channels, padding, stride).map_err(bad)?;
                    *planes.last_mut().expect("the image is there") = form.input;
                    planes.push(form.output);
                    let number = n_convolutions;
                    let stage = ConvolutionStage { form, activation: None, number, relu_done: false };
                    stages.push(Stage::Convolution(stage));
                    n_convolutions += 1;
                }
                Layer::MaxPool(windows) | Layer::AveragePool(windows) => {
                    let max = matches!(layer, Layer::MaxPool(_));
                    let summary = if max { Summary::Max } else { Summary::Mean };
                    let form = pool(input, summary, windows).map_err(bad)?;
                    let mut behind_relu = false;
                    if let (true, Some(Stage::Convolution(stage))) = (max, stages.last_mut()) {
                        behind_relu = stage.activation == Some(Activation::Relu);
                        stage.relu_done = behind_relu;
                    }
                    planes.push(form.output);
                    stages.push(Stage::Pool { form, behind_relu });
                }
                Layer::Activation(activation) => match stages.last_mut() {
                    Some(Stage::Convolution(stage)) => stage.activation = Some(activation),
                    _ => unreachable!("an architecture has activations behind convolutions only"),
                },
                Layer::Dropout(share) => {
                    planes.push(input);
                    stages.push(Stage::Dropout(share));
                }
                Layer::Full(_) => unreachable!("these are the layers before the first full one"),
            }
        }
        // A plane gets its border from who reads it, after who writes it has been put down.
        for (stage, planes) in stages.iter_mut().zip(planes.windows(2)) {
            match stage {
                Stage::Convolution(stage) => stage.form.output = planes[1],
                Stage::Pool { form, .. } => form.output = planes[1],
                Stage::Dropout(_) => {}
            }
        }
        Ok(Self { planes, stages })
    }

    /// The convolutions, in order.
    pub(super) fn convolutions(&self) -> impl Iterator<Item = &Convolution> {
        self.stages.iter().filter_map(|stage| match stage {
            Stage::Convolution(stage) => Some(&stage.form),
            _ => None,
        })
    }

    /// What the fully connected layers see of an image: the numbers of the last plane, which has no border.
    pub(super) fn n_features(&self) -> usize {
        self.planes.last().expect("the image is there").n_values()
    }
}

fn convolution(
    mut input: Plane,
    kernel: usize,
    channels: usize,
    padding: Padding,
    stride: usize,
) -> std::result::Result<Convolution, String> {
    (input.before, input.after) = match padding {
        Padding::Valid => (0, 0),
        Padding::Same => ((kernel - 1) / 2, kernel / 2),
    };
    let windows = |size: usize| {
        let padded = size.checked_add(input.before)?.checked_add(input.after)?;
        Some((padded, padded.checked_sub(kernel)? / stride + 1))
    };
    let (Some((padded_height, height)), Some((padded_width, width))) =
        (windows(input.height), windows(input.width))
    else {
        return Err(format!("windows of {kernel} x {kernel} do not fit in {}", shape(&input)));
    };
    let output = ImageShape { channels, height, width };
    let padded = ImageShape { channels: input.channels, height: padded_height, width: padded_width };
    check_size(&padded, "its padded input")?;
    check_size(&output, "its output")?;
    let weights = [kernel, kernel, input.channels, channels];
    let n_weights = weights.iter().try_fold(1_usize, |product, &size| product.checked_mul(size));
    if n_weights.is_none_or(|n_weights| n_weights > MOST_WEIGHTS) {
        return Err(format!("its weights would be more than {MOST_WEIGHTS}, on {}", shape(&input)));
    }
    Ok(Convolution { kernel, stride, input, output: Plane::bare(channels, height, width) })
}

fn pool(input: Plane, summary: Summary, windows: Windows) -> std::result::Result<Pool, String> {
    let Windows { size, stride } = windows;
    if size > input.height.min(input.width) {
        return Err(format!("windows of {size} x {size} do not fit in {}", shape(&input)));
    }
    let windows = |side: usize| (side - size) / stride + 1;
    let output = Plane::bare(input.channels, windows(input.height), windows(input.width));
    Ok(Pool { summary, size, stride, input, output })
}

fn check_size(shape: &ImageShape, what: &str) -> std::result::Result<(), String> {
    match shape.n_values() {
        Some(_) => Ok(()),
        None => Err(format!("{what} would be {shape}, of more than {} numbers", ImageShape::MOST_VALUES)),
    }
}

/// A plane as its users see it.
fn shape(plane: &Plane) -> ImageShape {
    ImageShape { channels: plane.channels, height: plane.height, width: plane.width }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(architecture: &str, image: &str) -> Result<Plan> {
        Plan::new(&architecture.parse()?, image.parse()?)
    }

    fn shapes(architecture: &str, image: &str) -> Vec<String> {
        plan(architecture, image).unwrap().planes.iter().map(|plane| shape(plane).to_string()).collect()
    }

    #[test]
    fn shapes_follow_from_layers() {
        assert_eq!(shapes("mnist", "1x28x28"), ["1x28x28", "8x24x24", "8x12x12", "16x8x8", "16x4x4"]);
        assert_eq!(
            shapes("cifar", "3x32x32"),
            ["3x32x32", "32x32x32", "32x32x32", "32x16x16", "64x16x16", "64x8x8"]
        );
        // As PyTorch's with padding = kernel / 2: ⌊(size − 1) / stride⌋ + 1.
        assert_eq!(shapes("conv3x2:same:stride2 avgpool3:stride2", "1x8x7"), ["1x8x7", "2x4x4", "2x1x1"]);
        assert_eq!(shapes("conv4x2:same", "1x5x1"), ["1x5x1", "2x5x1"]);
        assert_eq!(shapes("fc3 relu", "1x5x1"), ["1x5x1"]);
    }

    #[test]
    fn refuses_what_does_not_fit_with_layer_and_shapes() {
        for (architecture, image, expected) in [
            ("conv5x8 pool2 conv5x8", "1x12x12", "layer 3, `conv5x8`: windows of 5 x 5 do not fit in 8x4x4"),
            ("conv3x8 relu pool9", "1x10x11", "layer 3, `pool9`: windows of 9 x 9 do not fit in 8x8x9"),
            (
                "conv1x99999999999",
                "1x10x11",
                "layer 1, `conv1x99999999999`: its output would be 99999999999x10x11",
            ),
            (
                "conv99999999999x1:same",
                "1x4x4",
                "layer 1, `conv99999999999x1:same`: its padded input would be",
            ),
            ("conv18446744073709551615x1:same", "1x4x4", "do not fit in 1x4x4"),
            (
                "conv1x9999999 conv1x9999999",
                "1x1x1",
                "layer 2, `conv1x9999999`: its weights would be more than",
            ),
        ] {
            let error = plan(architecture, image).unwrap_err().to_string();
            assert!(error.starts_with(expected) || error.ends_with(expected), "{architecture}: {error}");
        }
    }
}
