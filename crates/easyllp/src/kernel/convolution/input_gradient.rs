//! From the derivatives in the output to those in the input.

#![expect(clippy::inline_always, reason = "code that is not inlined is not compiled for these vectors")]

use super::{Convolution, PackedWeights};
use crate::kernel::plane::Plane;
use crate::kernel::tile::{Factors, Tiled, blocks, column, run_lines, tile};
use crate::kernel::vector::{Part, add_lines};
use pulp::{Simd, WithSimd};

pub(super) struct InputGradient<'a> {
    pub(super) form: Convolution,
    pub(super) weights: &'a PackedWeights,
    pub(super) doutput: &'a [f32],
    pub(super) dinput: &'a mut [f32],
    /// The input line at work, counted with the border.
    pub(super) y: usize,
}

impl WithSimd for InputGradient<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let Plane { height, width, .. } = self.form.output;
        let n_vectors = self.form.window_line().div_ceil(S::F32_LANES);
        let n_lines = (height - 1) * self.form.stride + self.form.kernel;
        for (vector, vectors) in blocks::<S>(n_vectors) {
            for y in 0..n_lines {
                self.y = y;
                run_lines(simd, &mut self, width, vector, vectors);
            }
        }
    }
}

impl<S: Simd> Tiled<S> for InputGradient<'_> {
    /// Lines of a tile are output pixels whose windows lie side by side, columns are numbers of a window's line.
    #[inline(always)]
    fn tile<const P: usize, const V: usize>(&mut self, simd: S, line: usize, vector: usize) {
        let Convolution { kernel, stride, input, output } = self.form;
        let n_out = output.channels;
        let window_line = self.form.window_line();
        let wide_line = window_line.next_multiple_of(S::F32_LANES);
        // The output lines whose windows hold line y of the input, which is line y − stride·(output line) of theirs.
        let first = (self.y + 1).saturating_sub(kernel).div_ceil(stride);
        let last = (self.y / stride).min(output.height - 1);
        let factors = Factors {
            lhs: self.doutput,
            rhs: &self.weights.backward,
            n_segments: (last + 1).saturating_sub(first),
            n_terms: n_out,
            lhs_segment: output.line(),
            lhs_term: 1,
            lhs_line: n_out,
            rhs_segment: -(stride * n_out * wide_line).cast_signed(),
            rhs_term: wide_line,
        };
        if factors.n_segments == 0 {
            return;
        }
        let rhs_start = (self.y - first * stride) * n_out * wide_line + vector * S::F32_LANES;
        let sums = tile::<S, P, V>(simd, &factors, output.pixel(first, line), rhs_start);
        let first = self.y * input.line() + line * stride * input.channels;
        for v in 0..V {
            let start = (vector + v) * S::F32_LANES;
            let (to, part) = (&mut self.dinput[first + start..], Part::first(simd, window_line - start));
            add_lines(simd, to, stride * input.channels, part, column(&sums, v));
        }
    }
}
