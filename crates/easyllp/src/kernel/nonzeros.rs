//! Products with a sparse matrix: zeros are skipped.

#![expect(clippy::inline_always, reason = "code that is not inlined is not compiled for these vectors")]

use super::{Onto, arch, prefetch};
use ndarray::ArrayView2;
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

/// The other factor has a multiple of this number of columns: whole vectors on every kind of machine.
pub(crate) const GROUP: usize = 16;

/// Lines that one thread reads at a time.
const LINES: usize = 512;

/// A matrix by its numbers that are not zero, line after line.
#[derive(Debug, Clone, Default)]
pub(crate) struct NonZeros {
    /// Where each line starts, and where the last one ends.
    starts: Vec<usize>,
    columns: Vec<u16>,
    values: Vec<f32>,
}

impl NonZeros {
    /// Lines and columns that there may be of what is transposed.
    pub(crate) const MOST: usize = 1 << u16::BITS;

    /// The non-zeros of a matrix, if they are at most this share of its numbers.
    pub(crate) fn at_most(share: f64, matrix: ArrayView2<f32>) -> Option<Self> {
        if matrix.ncols() > Self::MOST {
            return None;
        }
        let n_values: usize = (0..matrix.nrows())
            .into_par_iter()
            .with_min_len(LINES)
            .map(|line| matrix.row(line).iter().filter(|&&value| value != 0.0).count())
            .sum();
        if n_values as f64 > share * matrix.len() as f64 {
            return None;
        }
        let mut this = Self {
            starts: Vec::with_capacity(matrix.nrows() + 1),
            columns: Vec::with_capacity(n_values),
            values: Vec::with_capacity(n_values),
        };
        this.starts.push(0);
        for line in matrix.rows() {
            for (column, &value) in (0..=u16::MAX).zip(line).filter(|(_, value)| **value != 0.0) {
                this.columns.push(column);
                this.values.push(value);
            }
            this.starts.push(this.values.len());
        }
        Some(this)
    }

    /// How many lines there are.
    pub(crate) fn n_lines(&self) -> usize {
        self.starts.len() - 1
    }

    /// A line: its columns, and the number in each.
    fn line(&self, line: usize) -> (&[u16], &[f32]) {
        let range = self.starts[line]..self.starts[line + 1];
        (&self.columns[range.clone()], &self.values[range])
    }

    /// Asks for a line that comes next.
    fn prefetch(&self, line: Option<usize>) {
        if let Some(line) = line {
            let (columns, values) = self.line(line);
            prefetch(columns);
            prefetch(values);
        }
    }

    /// Makes this the transpose of some lines of another matrix, which has so many columns.
    ///
    /// # Panics
    ///
    /// If there are more than [`MOST`](Self::MOST).
    pub(crate) fn transpose(&mut self, from: &Self, lines: &[u32], n_columns: usize) {
        assert!(lines.len() <= Self::MOST, "lines have numbers of 16 bits");
        self.starts.clear();
        self.starts.resize(n_columns + 1, 0);
        for (place, &line) in lines.iter().enumerate() {
            from.prefetch(lines.get(place + 1).map(|&line| line as usize));
            for &column in from.line(line as usize).0 {
                self.starts[column as usize + 1] += 1;
            }
        }
        let mut n_values = 0;
        for start in &mut self.starts[1..] {
            // Where its column starts, which moves to where it ends as numbers come in.
            n_values += std::mem::replace(start, n_values);
        }
        self.columns.resize(n_values, 0);
        self.values.resize(n_values, 0.0);
        for (&line, place) in lines.iter().zip(0..=u16::MAX) {
            let (columns, values) = from.line(line as usize);
            for (&column, &value) in columns.iter().zip(values) {
                let at = &mut self.starts[column as usize + 1];
                self.columns[*at] = place;
                self.values[*at] = value;
                *at += 1;
            }
        }
    }

    /// `out = lines · rhs`, or `out += lines · rhs`; both by rows, of `width` columns.
    pub(crate) fn times(
        &self,
        lines: impl Iterator<Item = usize> + Clone,
        rhs: &[f32],
        width: usize,
        onto: Onto,
        out: &mut [f32],
    ) {
        self.times_with(arch(), lines, rhs, width, onto, out);
    }

    fn times_with(
        &self,
        arch: Arch,
        lines: impl Iterator<Item = usize> + Clone,
        rhs: &[f32],
        width: usize,
        onto: Onto,
        out: &mut [f32],
    ) {
        assert!(width > 0 && width.is_multiple_of(GROUP), "whole vectors");
        arch.dispatch(Times { lhs: self, lines, rhs, width, onto, out });
    }
}

struct Times<'a, L> {
    lhs: &'a NonZeros,
    lines: L,
    rhs: &'a [f32],
    width: usize,
    onto: Onto,
    out: &'a mut [f32],
}

impl<L: Iterator<Item = usize> + Clone> WithSimd for Times<'_, L> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let mut start = 0;
        while start < self.width {
            let vectors = match (self.width - start) / S::F32_LANES {
                8.. => self.columns::<S, 8>(simd, start),
                4..8 => self.columns::<S, 4>(simd, start),
                2..4 => self.columns::<S, 2>(simd, start),
                _ => self.columns::<S, 1>(simd, start),
            };
            start += vectors * S::F32_LANES;
        }
    }
}

impl<L: Iterator<Item = usize> + Clone> Times<'_, L> {
    /// Does `V` vectors of each line of the output, whose sums stay in registers.
    #[inline(always)]
    fn columns<S: Simd, const V: usize>(&mut self, simd: S, start: usize) -> usize {
        let n_numbers = V * S::F32_LANES;
        let mut next = self.lines.clone().skip(1);
        for (line, out) in self.lines.clone().zip(self.out.chunks_exact_mut(self.width)) {
            self.lhs.prefetch(next.next());
            let out = S::as_mut_simd_f32s(&mut out[start..start + n_numbers]).0;
            let mut sums = [simd.splat_f32s(0.0); V];
            if self.onto == Onto::Add {
                sums.copy_from_slice(out);
            }
            let (columns, values) = self.lhs.line(line);
            for (&column, &value) in columns.iter().zip(values) {
                let value = simd.splat_f32s(value);
                let factors = &self.rhs[column as usize * self.width + start..][..n_numbers];
                for (sum, &factor) in sums.iter_mut().zip(S::as_simd_f32s(factors).0) {
                    *sum = simd.mul_add_e_f32s(value, factor, *sum);
                }
            }
            out.copy_from_slice(&sums);
        }
        V
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{every_arch, product};
    use ndarray::{Array2, Axis};
    use proptest::prelude::*;

    /// Multiples of 1/8, so few of which have exact sums, and as many zeros as are asked for.
    fn numbers(m: usize, n: usize, seed: usize, zeros: usize) -> Array2<f32> {
        Array2::from_shape_fn((m, n), |(i, j)| {
            let hash = i * 31 + j * 17 + seed * 7;
            if hash % 10 < zeros { 0.0 } else { ((hash % 23) as f32 - 11.5) / 8.0 }
        })
    }

    proptest! {
        /// The dense product is the oracle, of some lines and of their transpose, on every kind of vectors.
        #[test]
        fn equals_the_dense_product(
            n_lines in 1_u32..12, n_columns in 1_usize..30, groups in 1_usize..14, zeros in 0_usize..10,
            lines in prop::collection::vec(0_u32..12, 1..20), add in any::<bool>(),
        ) {
            let lines: Vec<u32> = lines.iter().map(|line| line % n_lines).collect();
            let n_lines = n_lines as usize;
            let width = groups * GROUP;
            let matrix = numbers(n_lines, n_columns, 1, zeros);
            let sparse = NonZeros::at_most(1.0, matrix.view()).unwrap();
            prop_assert_eq!(sparse.n_lines(), n_lines);
            let mut transpose = NonZeros::default();
            // The old content is cleared.
            transpose.transpose(&sparse, &[0, 0], n_columns);
            transpose.transpose(&sparse, &lines, n_columns);
            let places: Vec<usize> = lines.iter().map(|&line| line as usize).collect();
            let selected = matrix.select(Axis(0), &places);
            let onto = if add { Onto::Add } else { Onto::Overwrite };
            for arch in every_arch() {
                let mut expected = numbers(lines.len(), width, 3, 0);
                let mut out = expected.clone().into_raw_vec_and_offset().0;
                let rhs = numbers(n_columns, width, 2, 1);
                product(selected.view(), rhs.view(), onto, expected.view_mut());
                sparse.times_with(arch, places.iter().copied(), rhs.as_slice().unwrap(), width, onto, &mut out);
                prop_assert_eq!(&out, expected.as_slice().unwrap());

                let mut expected = numbers(n_columns, width, 3, 0);
                let mut out = expected.clone().into_raw_vec_and_offset().0;
                let rhs = numbers(lines.len(), width, 2, 1);
                product(selected.t(), rhs.view(), onto, expected.view_mut());
                transpose.times_with(arch, 0..n_columns, rhs.as_slice().unwrap(), width, onto, &mut out);
                prop_assert_eq!(&out, expected.as_slice().unwrap());
            }
        }
    }

    #[test]
    fn a_matrix_with_too_few_zeros_is_left_alone() {
        let matrix = ndarray::array![[0.0_f32, 1.0, 0.0, 0.0], [0.0, 0.0, -2.0, 3.0]];
        assert!(NonZeros::at_most(0.37, matrix.view()).is_none());
        let sparse = NonZeros::at_most(0.375, matrix.view()).unwrap();
        assert_eq!(sparse.line(0), (&[1][..], &[1.0][..]));
        assert_eq!(sparse.line(1), (&[2, 3][..], &[-2.0, 3.0][..]));
    }
}
