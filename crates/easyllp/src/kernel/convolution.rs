//! Direct convolution of one image: forward, and the gradients of its input and of its weights.
//!
//! Nothing is copied into columns first. A line of a window (k pixels of all channels) is contiguous in memory, so that
//! all three are sums of products in which one factor is a single number and the other a vector:
//!
//! ```text
//! forward         output[pixel][out]        = Σ_ky Σ_(kx,in)  input[window of pixel][ky][kx,in] · weights[ky][kx,in][out]
//! input gradient  window of pixel[ky][kx,in] += Σ_ky Σ_out     dout[pixel][out]                 · weights[ky][out][kx,in]
//! weight gradient dweights[ky][kx,in][out]  = Σ_y Σ_x         input[window of pixel][ky][kx,in] · dout[pixel][out]
//! ```
//!
//! The input gradient adds whole lines of windows where they overlap. It so meets no border, however the kernel, the
//! stride and the padding are, and its vectors are filled even if there are few input channels.

use super::buffer::Buffer;
use super::plane::Plane;
use super::tile::{Factors, Tiled, blocks, run_lines, tile};
use super::vector::{Part, add, add_lines, load, store_lines};
use pulp::{Arch, Simd, WithSimd};

/// Numbers of input and output that a weight gradient works on at a time, so that they stay in the first-level cache.
const NEAR: usize = 8 << 10;

/// The form of a convolution with a square kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Convolution {
    /// Lines and columns of a window.
    pub(crate) kernel: usize,
    /// Pixels from a window to the next.
    pub(crate) stride: usize,
    /// What is read: its border is the padding.
    pub(crate) input: Plane,
    /// What is written: its border is left as it is.
    pub(crate) output: Plane,
}

impl Convolution {
    /// Numbers in a line of a window.
    fn window_line(&self) -> usize {
        self.kernel * self.input.channels
    }

    /// Numbers in a window: the lines of the weight matrix.
    pub(crate) fn window(&self) -> usize {
        self.kernel * self.window_line()
    }

    /// Where the window of an output pixel starts.
    fn window_start(&self, y: usize, x: usize) -> usize {
        y * self.stride * self.input.line() + x * self.stride * self.input.channels
    }

    /// Half a vector of output channels is done better by vectors of half the width: they are read twice as fast.
    fn suited(&self, arch: Arch) -> Arch {
        #[cfg(target_arch = "x86_64")]
        if let (Arch::V4(_), 0..=8, Some(half)) = (arch, self.output.channels, pulp::x86::V3::try_new()) {
            return Arch::V3(half);
        }
        arch
    }

    /// The output from the input; with `relu` what is negative becomes 0.
    pub(crate) fn forward(
        &self,
        arch: Arch,
        weights: &PackedWeights,
        relu: bool,
        input: &[f32],
        output: &mut [f32],
    ) {
        self.suited(arch).dispatch(Forward { form: *self, weights, relu, input, output, y: 0 });
    }

    /// Adds to the gradient of the input, in the form of the input and over its border too, that of the output.
    pub(crate) fn input_gradient(
        &self,
        arch: Arch,
        weights: &PackedWeights,
        doutput: &[f32],
        dinput: &mut [f32],
    ) {
        self.suited(arch).dispatch(InputGradient { form: *self, weights, doutput, dinput, y: 0 });
    }

    /// Adds to the gradient of weights and bias.
    pub(crate) fn weight_gradient(
        &self,
        arch: Arch,
        input: &[f32],
        doutput: &[f32],
        gradient: &mut WeightSums,
    ) {
        self.suited(arch).dispatch(WeightGradient {
            form: *self,
            input,
            doutput,
            gradient,
            lines: 0..0,
            ky: 0,
        });
    }
}

/// The weights of a convolution as its loops read them: in vectors, what is missing from the last being 0.
#[derive(Debug, Default)]
pub(crate) struct PackedWeights {
    /// `[ky][kx, in][out]`
    forward: Buffer,
    /// `[ky][out][kx, in]`
    backward: Buffer,
    bias: Buffer,
}

impl PackedWeights {
    /// Takes over the weights `[ky, kx, in][out]` and the bias `[out]`.
    pub(crate) fn pack(&mut self, arch: Arch, form: &Convolution, weights: &[f32], bias: &[f32]) {
        let n_out = form.output.channels;
        let window_line = form.window_line();
        assert_eq!(
            weights.len(),
            form.window() * n_out,
            "a weight for each number of a window and output channel"
        );
        assert_eq!(bias.len(), n_out, "a bias for each output channel");
        let lanes = lanes(form.suited(arch));
        let (wide_out, wide_line) = (n_out.next_multiple_of(lanes), window_line.next_multiple_of(lanes));
        self.forward.grow(form.window() * wide_out);
        self.backward.grow(form.kernel * n_out * wide_line);
        self.bias.grow(wide_out);
        self.bias[..n_out].copy_from_slice(bias);
        for (wide, line) in self.forward.chunks_exact_mut(wide_out).zip(weights.chunks_exact(n_out)) {
            wide[..n_out].copy_from_slice(line);
        }
        let kernel_lines = self.backward.chunks_exact_mut(n_out * wide_line);
        for (backward, weights) in kernel_lines.zip(weights.chunks_exact(window_line * n_out)) {
            for (out, wide) in backward.chunks_exact_mut(wide_line).enumerate() {
                let column = weights[out..].iter().step_by(n_out);
                wide.iter_mut().zip(column).for_each(|(to, from)| *to = *from);
            }
        }
    }
}

#[cfg(test)]
impl PackedWeights {
    /// Where its first buffer is.
    pub(crate) fn place(&self) -> *const f32 {
        self.forward.as_ptr()
    }
}

/// Gradients of weights and bias, summed over images: `[ky, kx, in][out]` in vectors.
#[derive(Debug, Default)]
pub(crate) struct WeightSums {
    weights: Buffer,
    bias: Buffer,
}

impl WeightSums {
    /// Zeros for a convolution of this form.
    pub(crate) fn clear(&mut self, arch: Arch, form: &Convolution) {
        let wide_out = form.output.channels.next_multiple_of(lanes(form.suited(arch)));
        self.weights.grow(form.window() * wide_out);
        self.bias.grow(wide_out);
        self.weights.fill(0.0);
        self.bias.fill(0.0);
    }

    /// Copies the sums to a gradient of weights `[ky, kx, in][out]`.
    pub(crate) fn write_weights(&self, weights: &mut [f32]) {
        let wide_out = self.bias.len();
        let n_out = weights.len() / (self.weights.len() / wide_out);
        for (line, sums) in weights.chunks_exact_mut(n_out).zip(self.weights.chunks_exact(wide_out)) {
            line.copy_from_slice(&sums[..n_out]);
        }
    }

    /// Copies the sums to a gradient of the bias `[out]`.
    pub(crate) fn write_bias(&self, bias: &mut [f32]) {
        bias.copy_from_slice(&self.bias[..bias.len()]);
    }
}

/// Numbers in a vector.
fn lanes(arch: Arch) -> usize {
    struct Lanes;
    impl WithSimd for Lanes {
        type Output = usize;
        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) -> usize {
            S::F32_LANES
        }
    }
    arch.dispatch(Lanes)
}

struct Forward<'a> {
    form: Convolution,
    weights: &'a PackedWeights,
    relu: bool,
    input: &'a [f32],
    output: &'a mut [f32],
    /// The output line at work.
    y: usize,
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
            let mut values = [bias; P];
            for p in 0..P {
                let value = simd.add_f32s(sums[p][v], bias);
                // Not the larger of the two, which would turn what is not a number into the floor and hide a training
                // that ran away.
                values[p] = simd.select_f32s(simd.less_than_f32s(value, floor), floor, value);
            }
            let part = Part::first(simd, n_out - start);
            store_lines(simd, &mut self.output[first + start..], n_out, part, values);
        }
    }
}

struct InputGradient<'a> {
    form: Convolution,
    weights: &'a PackedWeights,
    doutput: &'a [f32],
    dinput: &'a mut [f32],
    /// The input line at work, counted with the border.
    y: usize,
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

struct WeightGradient<'a> {
    form: Convolution,
    input: &'a [f32],
    doutput: &'a [f32],
    gradient: &'a mut WeightSums,
    /// The output lines at work.
    lines: std::ops::Range<usize>,
    /// The line of the kernel at work.
    ky: usize,
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

/// One vector of each line of a tile.
#[inline(always)]
fn column<T: Copy, const P: usize, const V: usize>(sums: &[[T; V]; P], v: usize) -> [T; P] {
    let mut column = [sums[0][v]; P];
    for p in 0..P {
        column[p] = sums[p][v];
    }
    column
}

#[cfg(test)]
mod tests;
