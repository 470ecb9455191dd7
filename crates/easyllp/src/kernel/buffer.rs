//! Buffers aligned to cache lines.

use std::ops::{Deref, DerefMut};

/// Numbers aligned to a cache line, so that a vector of that width is read from one line and not
/// from two.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    values: Vec<f32>,
    start: usize,
    len: usize,
}

impl Buffer {
    /// Numbers in a cache line.
    pub(crate) const LINE: usize = 16;

    /// Grows to at least this length. A buffer that grows is filled with zeros.
    pub(crate) fn grow(&mut self, len: usize) {
        if self.len < len {
            self.values.clear();
            self.values.resize(len + Self::LINE - 1, 0.0);
            let start = self.values.as_ptr().align_offset(Self::LINE * size_of::<f32>());
            // Without alignment only speed is lost.
            self.start = start.min(Self::LINE - 1);
            self.len = len;
        }
    }

    /// This number of zeros.
    pub(crate) fn zeros(len: usize) -> Self {
        let mut buffer = Self::default();
        buffer.grow(len);
        buffer
    }
}

impl Deref for Buffer {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.values[self.start..self.start + self.len]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.values[self.start..self.start + self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_on_a_line_and_with_zeros() {
        let mut buffer = Buffer::default();
        assert!(buffer.is_empty());
        for len in [1, 5, 16, 1000, 100_000] {
            buffer.grow(len);
            assert_eq!(buffer.as_ptr().align_offset(64), 0);
            assert!(buffer.len() == len && buffer.iter().all(|value| value.to_bits() == 0));
            buffer.fill(1.0);
            let place = buffer.as_ptr();
            buffer.grow(len / 2);
            assert_eq!((place, len), (buffer.as_ptr(), buffer.len()));
        }
        assert_eq!(Buffer::zeros(7).len(), 7);
    }
}
