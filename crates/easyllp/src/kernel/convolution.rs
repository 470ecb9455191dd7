//! Direct convolution of one image: forward, and the gradients of its input and of its weights.
//!
//! No image is copied into columns. A line of a window (k pixels of all channels) is contiguous in
//! memory, so all three are sums of products of a single number and a vector:
//!
//! ```text
//! forward         output[pixel][out]        = Σ_ky Σ_(kx,in)  input[window of pixel][ky][kx,in] · weights[ky][kx,in][out]
//! input gradient  window of pixel[ky][kx,in] += Σ_ky Σ_out     dout[pixel][out]                 · weights[ky][out][kx,in]
//! weight gradient dweights[ky][kx,in][out]  = Σ_y Σ_x         input[window of pixel][ky][kx,in] · dout[pixel][out]
//! ```
//!
//! The input gradient adds whole lines of overlapping windows. It needs no special case at the
//! border for any kernel, stride and padding, and its vectors are full even with few input
//! channels.

mod forward;
mod input_gradient;
mod weight_gradient;

use super::buffer::Buffer;
use super::plane::Plane;
use super::vector::suited;
use forward::Forward;
use input_gradient::InputGradient;
use pulp::{Arch, Simd, WithSimd};
use weight_gradient::WeightGradient;

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

    /// The vectors for so many output channels.
    fn suited(&self, arch: Arch) -> Arch {
        suited(arch, self.output.channels)
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
        fn with_simd<S: Simd>(self, _: S) -> usize {
            S::F32_LANES
        }
    }
    arch.dispatch(Lanes)
}

#[cfg(test)]
mod tests;
