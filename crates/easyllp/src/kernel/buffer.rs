//! Numbers that start where a cache line does.

use std::ops::{Deref, DerefMut};

/// Numbers whose first is at the start of a cache line: a vector as wide as a line is then read from one line, not from
/// two, which would take twice the time.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    values: Vec<f32>,
    start: usize,
    len: usize,
}

impl Buffer {
    /// Numbers in a cache line.
    pub(crate) const LINE: usize = 16;

    /// Makes it at least this long. If it was shorter, it is all zeros then.
    pub(crate) fn grow(&mut self, len: usize) {
        if self.len < len {
            self.values.clear();
            self.values.resize(len + Self::LINE - 1, 0.0);
            let start = self.values.as_ptr().align_offset(Self::LINE * size_of::<f32>());
            // Where alignment cannot be had, speed is all that is lost.
            self.start = start.min(Self::LINE - 1);
            self.len = len;
        }
    }

    /// So many zeros.
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
