//! From an image to the next.

#![expect(clippy::inline_always, reason = "code that is not inlined is not compiled for these vectors")]

use super::{Convolution, PackedWeights};
use crate::kernel::plane::Plane;
use crate::kernel::tile::{Factors, Tiled, blocks, column, run_lines, tile};
use crate::kernel::vector::{Part, load, store_lines};
use pulp::{Simd, WithSimd};

pub(super) struct Forward<'a> {
    pub(super) form: Convolution,
    pub(super) weights: &'a PackedWeights,
    pub(super) relu: bool,
    pub(super) input: &'a [f32],
    pub(super) output: &'a mut [f32],
    /// The output line at work.
    pub(super) y: usize,
}

impl WithSimd for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let Plane { channels, height, width, .. } = self.form.output;
        let n_vectors = channels.div_ceil(S::F32_LANES);
        for (vector, vectors) in blocks::<S>(n_vectors) {
            for y in 0..height {
                self.y = y;
                run_lines(simd, &mut self, width, vector, vectors);
            }
        }
    }
}

impl<S: Simd> Tiled<S> for Forward<'_> {
    /// Lines of a tile are pixels of the output line, columns are output channels.
    #[inline(always)]
    fn tile<const P: usize, const V: usize>(&mut self, simd: S, line: usize, vector: usize) {
        let form = &self.form;
        let n_out = form.output.channels;
        let wide_out = n_out.next_multiple_of(S::F32_LANES);
        let factors = Factors {
            lhs: self.input,
            rhs: &self.weights.forward,
            n_segments: form.kernel,
            n_terms: form.window_line(),
            lhs_segment: form.input.line(),
            lhs_term: 1,
            lhs_line: form.stride * form.input.channels,
            rhs_segment: (form.window_line() * wide_out).cast_signed(),
            rhs_term: wide_out,
        };
        let sums = tile::<S, P, V>(simd, &factors, form.window_start(self.y, line), vector * S::F32_LANES);
        let first = form.output.pixel(self.y, line);
        let floor = simd.splat_f32s(if self.relu { 0.0 } else { f32::NEG_INFINITY });
        for v in 0..V {
            let start = (vector + v) * S::F32_LANES;
            let bias = load(simd, &self.weights.bias[start..], Part::all(simd));
            let mut values = column(&sums, v);
            for value in &mut values {
                let sum = simd.add_f32s(*value, bias);
                // Not the larger of the two, which would turn what is not a number into the floor and hide a training
                // that diverged.
                *value = simd.select_f32s(simd.less_than_f32s(sum, floor), floor, sum);
            }
            let part = Part::first(simd, n_out - start);
            store_lines(simd, &mut self.output[first + start..], n_out, part, values);
        }
    }
}
