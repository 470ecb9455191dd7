//! Convolutional networks. Ours have the channels of a pixel side by side; ONNX has one channel after the other, in
//! images, in weights, and in what goes on to fully connected layers.

use super::graph::{Attribute, Graph, Value, int};
use super::scores::{activated, layers};
use crate::model::{Block, Cnn, ImageShape, Layer, Model, Padding, Windows};
use ndarray::{Array2, ArrayView2, Axis};

/// Adds the network, over rows that are images channel after channel.
pub(super) fn add(graph: &mut Graph, cnn: &Cnn, rows: Value) -> Value {
    let ImageShape { mut channels, height, width } = cnn.image();
    // 0 leaves the number of rows as it is.
    let shape = graph.ints("image", &[0, int(channels), int(height), int(width)]);
    let mut value = graph.node("Reshape", &[rows, shape], &[]);
    let mut blocks = cnn.parameters().blocks();
    for layer in cnn.architecture().layers() {
        match *layer {
            Layer::Convolution { kernel, channels: n_outputs, padding, stride } => {
                let [weights, bias, behind @ ..] = blocks else {
                    unreachable!("a convolution has two blocks")
                };
                value = convolution(graph, [weights, bias], (kernel, channels), (padding, stride), value);
                (blocks, channels) = (behind, n_outputs);
            }
            Layer::MaxPool(windows) => value = pool(graph, "MaxPool", windows, value),
            Layer::AveragePool(windows) => value = pool(graph, "AveragePool", windows, value),
            Layer::Activation(activation) => value = activated(graph, activation, value),
            Layer::Dropout(_) => {}
            Layer::Full(_) => break,
        }
    }
    let features = graph.node("Flatten", &[value], &[Attribute::Int("axis", 1)]);
    let mut blocks = blocks.to_vec();
    if let Some(first) = blocks.first_mut() {
        first.values = by_channel(first.values.view(), channels);
    }
    layers(graph, &blocks, cnn.activations_of_head(), features)
}

fn convolution(
    graph: &mut Graph,
    [weights, bias]: [&Block; 2],
    (kernel, n_inputs): (usize, usize),
    (padding, stride): (Padding, usize),
    value: Value,
) -> Value {
    let n_outputs = bias.values().ncols();
    let by_place = weights.values().into_shape_with_order((kernel, kernel, n_inputs, n_outputs));
    let by_channel = by_place.expect("a line for each number of a window").permuted_axes([3, 2, 0, 1]);
    let weights = graph.floats(weights.name(), &by_channel);
    let bias = graph.floats(bias.name(), &bias.values().index_axis(Axis(0), 0));
    let (before, after) = match padding {
        Padding::Valid => (0, 0),
        Padding::Same => (int((kernel - 1) / 2), int(kernel / 2)),
    };
    let attributes = [
        Attribute::Ints("kernel_shape", &[int(kernel); 2]),
        Attribute::Ints("pads", &[before, before, after, after]),
        Attribute::Ints("strides", &[int(stride); 2]),
    ];
    graph.node("Conv", &[value, weights, bias], &attributes)
}

fn pool(graph: &mut Graph, operator: &'static str, windows: Windows, value: Value) -> Value {
    let Windows { size, stride } = windows;
    let attributes =
        [Attribute::Ints("kernel_shape", &[int(size); 2]), Attribute::Ints("strides", &[int(stride); 2])];
    graph.node(operator, &[value], &attributes)
}

/// The lines of a matrix, pixel by pixel with the channels side by side, as one channel after the other.
fn by_channel(weights: ArrayView2<f32>, n_channels: usize) -> Array2<f32> {
    let n_pixels = weights.nrows() / n_channels;
    Array2::from_shape_fn(weights.dim(), |(line, column)| {
        weights[[line % n_pixels * n_channels + line / n_pixels, column]]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_go_from_pixels_to_channels() {
        // Three pixels of two channels: pixel and channel as two digits.
        let by_pixel = ndarray::array![[0.0_f32], [1.0], [10.0], [11.0], [20.0], [21.0]];
        let expected = ndarray::array![[0.0_f32], [10.0], [20.0], [1.0], [11.0], [21.0]];
        assert_eq!(by_channel(by_pixel.view(), 2), expected);
    }
}
