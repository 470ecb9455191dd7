//! From the derivatives in the output to those in weights and bias.

#![expect(clippy::inline_always, reason = "code that is not inlined is not compiled for these vectors")]

use super::{Convolution, WeightSums};
use crate::kernel::tile::{Factors, Tiled, blocks, column, run_lines, tile};
use crate::kernel::vector::{Part, add, add_lines, load};
use pulp::{Simd, WithSimd};

/// Numbers of input and output that a weight gradient works on at a time, so that they stay in the first-level cache.
const NEAR: usize = 8 << 10;

pub(super) struct WeightGradient<'a> {
    pub(super) form: Convolution,
    pub(super) input: &'a [f32],
    pub(super) doutput: &'a [f32],
    pub(super) gradient: &'a mut WeightSums,
    /// The output lines at work.
    pub(super) lines: std::ops::Range<usize>,
    /// The line of the kernel at work.
    pub(super) ky: usize,
}

impl WithSimd for WeightGradient<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let Convolution { kernel, stride, input, output } = self.form;
        let n_vectors = output.channels.div_ceil(S::F32_LANES);
        let window_line = self.form.window_line();
        let at_once = (NEAR / (stride * input.line() + output.line())).clamp(1, output.height);
        for start in (0..output.height).step_by(at_once) {
            self.lines = start..output.height.min(start + at_once);
            for ky in 0..kernel {
                self.ky = ky;
                for (vector, vectors) in blocks::<S>(n_vectors) {
                    run_lines(simd, &mut self, window_line, vector, vectors);
                }
            }
        }
        self.bias(simd);
    }
}

impl WeightGradient<'_> {
    /// The gradient of the bias is the sum over pixels.
    #[inline(always)]
    fn bias<S: Simd>(&mut self, simd: S) {
        let output = self.form.output;
        for (vector, bias) in self.gradient.bias.chunks_exact_mut(S::F32_LANES).enumerate() {
            let start = vector * S::F32_LANES;
            let part = Part::first(simd, output.channels - start);
            let mut sum = simd.splat_f32s(0.0);
            for y in 0..output.height {
                for pixel in self.doutput[output.inside(y)].chunks_exact(output.channels) {
                    sum = simd.add_f32s(sum, load(simd, &pixel[start..], part));
                }
            }
            add(simd, bias, Part::all(simd), sum);
        }
    }
}

impl<S: Simd> Tiled<S> for WeightGradient<'_> {
    /// Lines of a tile are numbers of a window's line, columns are output channels.
    #[inline(always)]
    fn tile<const P: usize, const V: usize>(&mut self, simd: S, line: usize, vector: usize) {
        let Convolution { stride, input, output, .. } = self.form;
        let wide_out = output.channels.next_multiple_of(S::F32_LANES);
        let factors = Factors {
            lhs: self.input,
            rhs: self.doutput,
            n_segments: self.lines.len(),
            n_terms: output.width,
            lhs_segment: stride * input.line(),
            lhs_term: stride * input.channels,
            lhs_line: 1,
            rhs_segment: output.line().cast_signed(),
            rhs_term: output.channels,
        };
        let lhs_start = (self.lines.start * stride + self.ky) * input.line() + line;
        let rhs_start = output.pixel(self.lines.start, 0) + vector * S::F32_LANES;
        let sums = tile::<S, P, V>(simd, &factors, lhs_start, rhs_start);
        let first = (self.ky * self.form.window_line() + line) * wide_out;
        for v in 0..V {
            let to = &mut self.gradient.weights[first + (vector + v) * S::F32_LANES..];
            add_lines(simd, to, wide_out, Part::all(simd), column(&sums, v));
        }
    }
}
