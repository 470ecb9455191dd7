//! The shape of images in rows.

use crate::error::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// The shape of an image. A row's dense features are its values, channel by channel and line by
/// line, as in common image files.
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
    /// The number of lines.
    pub height: usize,
    /// The number of pixels per line.
    pub width: usize,
}

impl ImageShape {
    /// The maximum number of values of an image or of a layer's output, so that a mistake does not
    /// lead to a huge allocation.
    pub(super) const MOST_VALUES: usize = 1 << 24;

    /// The number of values of an image; none on overflow.
    pub(crate) fn n_values(&self) -> Option<usize> {
        let n_values = self.channels.checked_mul(self.height)?.checked_mul(self.width)?;
        (1..=Self::MOST_VALUES).contains(&n_values).then_some(n_values)
    }

    /// Checks that the image is neither empty nor too large.
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
