//! The memory layout of an image: line by line, pixel by pixel, the channels of a pixel contiguous.

use super::Buffer;

/// The form of an image in memory, with a border around it.
///
/// Convolutions read the border as part of the image: it holds the zeros of their padding and is
/// never written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Plane {
    pub(crate) channels: usize,
    pub(crate) height: usize,
    pub(crate) width: usize,
    /// Pixels of border above and to the left.
    pub(crate) before: usize,
    /// Pixels of border below and to the right.
    pub(crate) after: usize,
}

impl Plane {
    /// Numbers behind the last pixel, so that a whole vector can be read from any place.
    const SLACK: usize = 16;

    /// An image without a border.
    pub(crate) fn bare(channels: usize, height: usize, width: usize) -> Self {
        Self { channels, height, width, before: 0, after: 0 }
    }

    /// Numbers from one line to the next.
    pub(crate) fn line(&self) -> usize {
        (self.before + self.width + self.after) * self.channels
    }

    /// Where a pixel starts.
    pub(crate) fn pixel(&self, y: usize, x: usize) -> usize {
        (self.before + y) * self.line() + (self.before + x) * self.channels
    }

    /// The numbers of the image on one line, without its border.
    pub(crate) fn inside(&self, y: usize) -> std::ops::Range<usize> {
        let start = self.pixel(y, 0);
        start..start + self.width * self.channels
    }

    /// Numbers that an image takes, border and slack included: whole cache lines, so that the next one starts on one too.
    pub(crate) fn len(&self) -> usize {
        let n_values = (self.before + self.height + self.after) * self.line();
        (n_values + Self::SLACK).next_multiple_of(Buffer::LINE)
    }

    /// Numbers of the image itself.
    pub(crate) fn n_values(&self) -> usize {
        self.height * self.width * self.channels
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Numbers without a pattern, about half of them negative.
    pub(in super::super) fn numbers(n: usize, seed: usize) -> Vec<f32> {
        (0..n).map(|i| (((i * 7919 + seed * 104_729) % 1009) as f32 - 504.0) / 512.0).collect()
    }

    /// An image of such numbers, with a border of zeros.
    pub(in super::super) fn image(plane: &Plane, seed: usize) -> Buffer {
        let mut values = Buffer::zeros(plane.len());
        let inside = numbers(plane.n_values(), seed);
        for (y, line) in inside.chunks_exact(plane.width * plane.channels).enumerate() {
            values[plane.inside(y)].copy_from_slice(line);
        }
        values
    }
}
