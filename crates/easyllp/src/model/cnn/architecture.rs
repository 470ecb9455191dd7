//! The text form of a convolutional network: one word per layer.

use crate::error::{Error, Result};
use crate::kernel::Activation;
use crate::model::MOST_WEIGHTS;
use crate::model::dense::HiddenLayer;
use std::fmt;
use std::str::FromStr;

/// The layers of a convolutional network, from the image on. The output layer is implied.
///
/// The text form is words with spaces between them:
///
/// | word | layer |
/// |---|---|
/// | `conv5x16` | a convolution with windows of 5 × 5 pixels and 16 output channels |
/// | `conv5x16:same` | padded with zeros, so that the image keeps its size; without it, or with `:valid`, windows lie inside the image |
/// | `conv5x16:stride2` | windows every 2 pixels; goes with `:same` too |
/// | `pool2` | the largest number in windows of 2 × 2 pixels, side by side |
/// | `avgpool2` | their mean |
/// | `pool3:stride2` | windows every 2 pixels, for either |
/// | `relu`, `gelu`, `tanh` | an activation, after a convolution or a fully connected layer |
/// | `dropout0.5` | leaves out half of the numbers while learning |
/// | `fc120` | a fully connected layer of 120 outputs |
///
/// `mnist` and `cifar` name two built-in networks: see [`MNIST`](Self::MNIST) and
/// [`CIFAR`](Self::CIFAR).
///
/// ```
/// use easyllp::model::Architecture;
///
/// let layers: Architecture = "conv5x8 relu pool2 fc32 relu".parse()?;
/// assert_eq!(layers.layers().len(), 5);
/// assert_eq!(layers.to_string(), "conv5x8 relu pool2 fc32 relu");
///
/// let error = "conv5x8 swish".parse::<Architecture>().unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "layer 2, `swish`: not a layer; layers are such as conv5x16, conv3x32:same:stride2, pool2, avgpool2, relu, gelu, \
///      tanh, dropout0.5, fc120"
/// );
/// # Ok::<(), easyllp::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Architecture(Vec<Layer>);

/// One layer of a convolutional network.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Layer {
    /// `conv<kernel>x<channels>`
    Convolution {
        /// Lines and columns of a window.
        kernel: usize,
        /// Output channels.
        channels: usize,
        /// Whether windows may extend beyond the image.
        padding: Padding,
        /// Pixels from a window to the next.
        stride: usize,
    },
    /// `pool<size>`: the largest number of a window.
    MaxPool(Windows),
    /// `avgpool<size>`: the mean of a window.
    AveragePool(Windows),
    /// `relu`, `gelu`, `tanh`
    Activation(Activation),
    /// `dropout<share>`
    Dropout(f32),
    /// `fc<width>`
    Full(usize),
}

/// The windows of a pooling layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Windows {
    /// Lines and columns of a window.
    pub size: usize,
    /// Pixels from a window to the next.
    pub stride: usize,
}

/// Where the windows of a convolution may lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Padding {
    /// Windows are inside the image.
    #[default]
    Valid,
    /// A window around every pixel (every `stride`-th), with zero padding: (kernel − 1)/2 above and
    /// to the left, kernel/2 below and to the right, both rounded down.
    Same,
}

impl Architecture {
    /// The network named `mnist`, for small grey images: the paper's LeNet with fewer channels.
    pub const MNIST: &str = "conv5x8 relu pool2 conv5x16 relu pool2 fc120 relu fc84 relu";

    /// The network named `cifar`, for small colour images: three convolutions of 3 × 3.
    pub const CIFAR: &str = "conv3x32:same relu conv3x32:same relu pool2 conv3x64:same relu pool2 fc128 relu";

    /// The maximum number of layers.
    const MOST_LAYERS: usize = 1000;

    /// Creates an architecture if the layers can follow each other in this order.
    ///
    /// Fully connected layers come last, each followed by an activation. An activation directly
    /// follows a convolution or a fully connected layer.
    pub fn new(layers: Vec<Layer>) -> Result<Self> {
        if layers.is_empty() || layers.len() > Self::MOST_LAYERS {
            return Err(Error::Setting {
                name: "number of layers",
                value: layers.len().to_string(),
                expected: "1 to 1000",
            });
        }
        for (place, layer) in layers.iter().enumerate() {
            layer.check().and_then(|()| follows(&layers[..place], *layer)).map_err(|reason| {
                Error::BadLayer { layer: place + 1, text: layer.to_string(), reason: reason.into() }
            })?;
        }
        let architecture = Self(layers);
        architecture.head()?;
        Ok(architecture)
    }

    /// The layers, in order.
    pub fn layers(&self) -> &[Layer] {
        &self.0
    }

    /// The number of layers before the first fully connected one.
    pub(super) fn n_before_head(&self) -> usize {
        self.0.iter().position(|layer| matches!(layer, Layer::Full(_))).unwrap_or(self.0.len())
    }

    /// The fully connected layers, each with its activation and its dropout.
    pub(super) fn head(&self) -> Result<Vec<HiddenLayer>> {
        let mut head = Vec::new();
        for (place, layer) in self.0.iter().enumerate() {
            let &Layer::Full(width) = layer else { continue };
            let Some(&Layer::Activation(activation)) = self.0.get(place + 1) else {
                return Err(Error::BadLayer {
                    layer: place + 1,
                    text: layer.to_string(),
                    reason: "a fully connected layer needs an activation behind it, such as relu".into(),
                });
            };
            let dropout = match self.0.get(place + 2) {
                Some(&Layer::Dropout(share)) => share,
                _ => 0.0,
            };
            head.push(HiddenLayer { width, activation, dropout });
        }
        Ok(head)
    }

    /// Checks the size of the fully connected layers for this number of features.
    pub(super) fn check_head(&self, n_features: usize) -> Result<()> {
        let mut n_inputs = n_features;
        for (place, layer) in self.0.iter().enumerate() {
            let &Layer::Full(width) = layer else { continue };
            if n_inputs.checked_mul(width).is_none_or(|n_weights| n_weights > MOST_WEIGHTS) {
                return Err(Error::BadLayer {
                    layer: place + 1,
                    text: layer.to_string(),
                    reason: format!("its weights would be more than {MOST_WEIGHTS}, on {n_inputs} numbers"),
                });
            }
            n_inputs = width;
        }
        Ok(())
    }
}

/// Why a layer cannot follow these.
fn follows(before: &[Layer], layer: Layer) -> std::result::Result<(), &'static str> {
    let full = before.iter().any(|before| matches!(before, Layer::Full(_)));
    match (layer, before.last()) {
        (Layer::Convolution { .. } | Layer::MaxPool(_) | Layer::AveragePool(_), _) if full => {
            Err("behind a fully connected layer there is no image any more")
        }
        (Layer::Activation(_), Some(Layer::Convolution { .. } | Layer::Full(_))) => Ok(()),
        (Layer::Activation(_), _) => {
            Err("an activation stands directly behind a convolution or a fully connected layer")
        }
        (Layer::Dropout(_), Some(Layer::Dropout(_))) => Err("behind another dropout it is one too many"),
        _ => Ok(()),
    }
}

impl Layer {
    /// Why the layer's numbers are invalid.
    fn check(&self) -> std::result::Result<(), &'static str> {
        match *self {
            Self::Convolution { kernel, channels, stride, .. } if kernel.min(channels).min(stride) == 0 => {
                Err("kernel, channels and stride are at least 1")
            }
            Self::MaxPool(windows) | Self::AveragePool(windows) if windows.size.min(windows.stride) == 0 => {
                Err("size and stride are at least 1")
            }
            Self::Full(0) => Err("a layer has at least one output"),
            Self::Dropout(share) if !(0.0..1.0).contains(&share) => {
                Err("the share to leave out is at least 0 and below 1")
            }
            _ => Ok(()),
        }
    }

    /// Parses one layer.
    fn parse(word: &str) -> Option<Self> {
        if let Ok(activation) = word.parse() {
            return Some(Self::Activation(activation));
        }
        let mut parts = word.split(':');
        let name = parts.next()?;
        let (mut padding, mut stride) = (None, None);
        for option in parts {
            match option {
                "valid" if padding.is_none() => padding = Some(Padding::Valid),
                "same" if padding.is_none() => padding = Some(Padding::Same),
                _ if stride.is_none() => stride = Some(number(option.strip_prefix("stride")?)?),
                _ => return None,
            }
        }
        if let Some(sizes) = name.strip_prefix("conv") {
            let (kernel, channels) = sizes.split_once('x')?;
            let (kernel, channels) = (number(kernel)?, number(channels)?);
            let (padding, stride) = (padding.unwrap_or_default(), stride.unwrap_or(1));
            return Some(Self::Convolution { kernel, channels, padding, stride });
        }
        if padding.is_some() {
            return None;
        }
        let windows = |size: &str| {
            let size = number(size)?;
            Some(Windows { size, stride: stride.unwrap_or(size) })
        };
        if let Some(size) = name.strip_prefix("pool") {
            return windows(size).map(Self::MaxPool);
        }
        if let Some(size) = name.strip_prefix("avgpool") {
            return windows(size).map(Self::AveragePool);
        }
        if stride.is_some() {
            return None;
        }
        if let Some(share) = name.strip_prefix("dropout") {
            return share.parse().ok().map(Self::Dropout);
        }
        name.strip_prefix("fc").and_then(number).map(Self::Full)
    }
}

/// A number in a word: digits only, no sign.
fn number(text: &str) -> Option<usize> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

impl FromStr for Architecture {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let text = match text.trim() {
            "mnist" => Self::MNIST,
            "cifar" => Self::CIFAR,
            text => text,
        };
        let layers: Result<Vec<Layer>> = text
            .split_whitespace()
            .enumerate()
            .map(|(place, word)| {
                Layer::parse(word).ok_or_else(|| Error::BadLayer {
                    layer: place + 1,
                    text: word.into(),
                    reason: "not a layer; layers are such as conv5x16, conv3x32:same:stride2, pool2, avgpool2, relu, \
                             gelu, tanh, dropout0.5, fc120"
                        .into(),
                })
            })
            .collect();
        Self::new(layers?)
    }
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        for (place, layer) in self.0.iter().enumerate() {
            let space = if place == 0 { "" } else { " " };
            write!(f, "{space}{layer}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match *self {
            Self::Convolution { kernel, channels, padding, stride } => {
                write!(f, "conv{kernel}x{channels}")?;
                if padding == Padding::Same {
                    write!(f, ":same")?;
                }
                if stride == 1 { Ok(()) } else { write!(f, ":stride{stride}") }
            }
            Self::MaxPool(windows) => write!(f, "pool{windows}"),
            Self::AveragePool(windows) => write!(f, "avgpool{windows}"),
            Self::Activation(activation) => f.write_str(activation.as_str()),
            Self::Dropout(share) => write!(f, "dropout{share}"),
            Self::Full(width) => write!(f, "fc{width}"),
        }
    }
}

impl fmt::Display for Windows {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}", self.size)?;
        if self.stride == self.size { Ok(()) } else { write!(f, ":stride{}", self.stride) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_all_words() {
        let text = "dropout0.1 conv5x8 tanh conv3x4:same:stride2 gelu pool3:stride2 avgpool2 dropout0.25 \
                    fc10 relu dropout0.5 fc4 tanh fc3 gelu dropout0.1";
        assert_eq!(text.parse::<Architecture>().unwrap().to_string(), text);
        assert_eq!("conv5x8:valid:stride1".parse::<Architecture>().unwrap().to_string(), "conv5x8");
        assert_eq!("  pool2:stride2 ".parse::<Architecture>().unwrap().to_string(), "pool2");
        assert_eq!("mnist".parse::<Architecture>().unwrap().to_string(), Architecture::MNIST);
        assert_eq!("cifar".parse::<Architecture>().unwrap().to_string(), Architecture::CIFAR);
    }

    #[test]
    fn refuses_what_is_no_layer_or_cannot_stand_there() {
        for (text, expected) in [
            ("", "number of layers is 0"),
            ("conv5", "layer 1, `conv5`: not a layer"),
            ("conv5x", "layer 1, `conv5x`: not a layer"),
            ("conv+5x3", "not a layer"),
            ("conv5x3:full", "not a layer"),
            ("conv5x3:same:valid", "not a layer"),
            ("pool2:same", "not a layer"),
            ("fc3:stride2", "not a layer"),
            ("fc99999999999999999999999 relu", "not a layer"),
            ("conv5x3 relu mnist", "layer 3, `mnist`: not a layer"),
            ("conv0x3", "layer 1, `conv0x3`: kernel, channels and stride are at least 1"),
            ("conv3x3:stride0", "at least 1"),
            ("pool0", "layer 1, `pool0`: size and stride are at least 1"),
            ("fc0 relu", "layer 1, `fc0`: a layer has at least one output"),
            ("dropout1", "layer 1, `dropout1`: the share to leave out is at least 0 and below 1"),
            ("dropoutNaN", "below 1"),
            ("relu", "layer 1, `relu`: an activation stands directly behind"),
            ("conv3x3 pool2 relu", "layer 3, `relu`: an activation stands directly behind"),
            (
                "fc3 relu conv3x3",
                "layer 3, `conv3x3`: behind a fully connected layer there is no image any more",
            ),
            ("fc3 relu pool2", "layer 3, `pool2`: behind a fully"),
            ("conv3x3 fc3", "layer 2, `fc3`: a fully connected layer needs an activation"),
            ("fc3 relu fc4", "layer 3, `fc4`: a fully connected layer needs an activation"),
            ("conv3x3 dropout0.5 dropout0.5", "layer 3, `dropout0.5`: behind another dropout"),
        ] {
            let error = text.parse::<Architecture>().unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "((conv|pool|fc|dropout|relu|same|stride|x|:|[0-9. -])*)") {
            if let Ok(layers) = text.parse::<Architecture>() {
                prop_assert_eq!(layers.to_string().parse::<Architecture>().unwrap(), layers);
            }
        }
    }
}
