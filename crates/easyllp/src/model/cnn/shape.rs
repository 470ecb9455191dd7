//! The shape of the images that rows hold.

use crate::error::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// The shape of an image: a row's dense features are its numbers, channel by channel, each line by line, as files of
/// images usually have them.
///
/// ```
/// use easyllp::model::ImageShape;
///
/// let shape: ImageShape = "3x32x32".parse()?;
/// assert_eq!(shape, ImageShape { channels: 3, height: 32, width: 32 });
/// assert_eq!(shape.to_string(), "3x32x32");
/// # Ok::<(), easyllp::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageShape {
    /// One for grey, three for colour.
    pub channels: usize,
    /// Lines of pixels.
    pub height: usize,
    /// Pixels in a line.
    pub width: usize,
}

impl ImageShape {
    /// The most numbers that an image, or what a layer makes of it, may have: more is a mistake, and no allocation
    /// should be tried for it.
    pub(super) const MOST_VALUES: usize = 1 << 24;

    /// How many numbers an image has; none if that is no number to be allocated.
    pub(crate) fn n_values(&self) -> Option<usize> {
        let n_values = self.channels.checked_mul(self.height)?.checked_mul(self.width)?;
        (1..=Self::MOST_VALUES).contains(&n_values).then_some(n_values)
    }

    /// Refuses an image without a pixel, or a giant one.
    pub(super) fn check(&self) -> Result<usize> {
        self.n_values().ok_or_else(|| Error::Setting {
            name: "shape of images",
            value: self.to_string(),
            expected: "channels x height x width, each at least 1, with at most 2^24 numbers",
        })
    }
}

impl fmt::Display for ImageShape {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}x{}x{}", self.channels, self.height, self.width)
    }
}

impl FromStr for ImageShape {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let sizes: Option<Vec<usize>> = text.split('x').map(|size| size.trim().parse().ok()).collect();
        let Some(&[channels, height, width]) = sizes.as_deref() else {
            return Err(Error::Setting {
                name: "shape of images",
                value: format!("`{text}`"),
                expected: "channels x height x width, such as 1x28x28",
            });
        };
        let shape = Self { channels, height, width };
        shape.check()?;
        Ok(shape)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_what_is_no_shape() {
        for text in
            ["", "28x28", "1x28x28x1", "1x28x", "1x0x28", "-1x2x2", "99999999999x99999999999x99999999999"]
        {
            assert!(text.parse::<ImageShape>().is_err(), "{text}");
        }
        let error = "28x28".parse::<ImageShape>().unwrap_err().to_string();
        assert_eq!(
            error,
            "shape of images is `28x28`: it must be channels x height x width, such as 1x28x28"
        );
    }
}
