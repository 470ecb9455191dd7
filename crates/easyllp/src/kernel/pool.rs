//! Pooling: one number for each channel of a window of pixels, its largest or its mean.

#![expect(clippy::inline_always, reason = "code that is not inlined is not compiled for these vectors")]

use super::plane::Plane;
use super::vector::{Part, add, load, store, suited};
use pulp::{Arch, Simd, WithSimd};

/// The pooling function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Summary {
    Max,
    Mean,
}

/// The form of a pooling layer with square windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pool {
    pub(crate) summary: Summary,
    /// Lines and columns of a window.
    pub(crate) size: usize,
    /// Pixels from a window to the next.
    pub(crate) stride: usize,
    pub(crate) input: Plane,
    pub(crate) output: Plane,
}

impl Pool {
    /// The output from the input.
    pub(crate) fn forward(&self, arch: Arch, input: &[f32], output: &mut [f32]) {
        suited(arch, self.input.channels).dispatch(Forward { form: *self, input, output });
    }

    /// The gradient of the input (without its border) from that of the output. The first of several largest numbers
    /// takes it all. If the input was made by ReLU, the gradient is that of what went into it.
    pub(crate) fn backward(
        &self,
        arch: Arch,
        relu: bool,
        input: &[f32],
        output: &[f32],
        doutput: &[f32],
        dinput: &mut [f32],
    ) {
        let relu = relu && self.summary == Summary::Max;
        let exact = self.covers_all_once();
        if !exact {
            for y in 0..self.input.height {
                dinput[self.input.inside(y)].fill(0.0);
            }
        }
        suited(arch, self.input.channels).dispatch(Backward {
            form: *self,
            relu,
            exact,
            input,
            output,
            doutput,
            dinput,
        });
    }

    /// Whether every input pixel is in one window, so that its gradient can be written where it would else be added.
    fn covers_all_once(&self) -> bool {
        self.stride == self.size
            && self.output.height * self.size == self.input.height
            && self.output.width * self.size == self.input.width
    }

    /// Calls with the start of each output pixel and of its window.
    #[inline(always)]
    fn for_each_window(&self, mut visit: impl FnMut(usize, usize)) {
        for y in 0..self.output.height {
            for x in 0..self.output.width {
                visit(self.output.pixel(y, x), self.input.pixel(y * self.stride, x * self.stride));
            }
        }
    }

    /// Calls with the start of each pixel of the window that starts here.
    #[inline(always)]
    fn for_each_pixel(&self, window: usize, mut visit: impl FnMut(usize)) {
        for y in 0..self.size {
            for x in 0..self.size {
                visit(window + y * self.input.line() + x * self.input.channels);
            }
        }
    }

    /// Calls with the start of each vector of a pixel's channels, and how much of it is meant.
    #[inline(always)]
    fn for_each_vector<S: Simd>(&self, simd: S, mut visit: impl FnMut(usize, Part<S>)) {
        for start in (0..self.input.channels).step_by(S::F32_LANES) {
            visit(start, Part::first(simd, self.input.channels - start));
        }
    }

    fn share(&self) -> f32 {
        1.0 / (self.size * self.size) as f32
    }
}

struct Forward<'a> {
    form: Pool,
    input: &'a [f32],
    output: &'a mut [f32],
}

impl WithSimd for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { form, input, output } = self;
        form.for_each_window(
            #[inline(always)]
            |pixel, window| {
                form.for_each_vector(
                    simd,
                    #[inline(always)]
                    |start, part| {
                        let first = match form.summary {
                            Summary::Max => load(simd, &input[window + start..], part),
                            Summary::Mean => simd.splat_f32s(0.0),
                        };
                        let mut summary = first;
                        form.for_each_pixel(
                            window,
                            #[inline(always)]
                            |place| {
                                let value = load(simd, &input[place + start..], part);
                                summary = match form.summary {
                                    Summary::Max => simd.max_f32s(summary, value),
                                    Summary::Mean => simd.add_f32s(summary, value),
                                };
                            },
                        );
                        if form.summary == Summary::Mean {
                            summary = simd.mul_f32s(summary, simd.splat_f32s(form.share()));
                        }
                        store(simd, &mut output[pixel + start..], part, summary);
                    },
                );
            },
        );
    }
}

struct Backward<'a> {
    form: Pool,
    relu: bool,
    exact: bool,
    input: &'a [f32],
    output: &'a [f32],
    doutput: &'a [f32],
    dinput: &'a mut [f32],
}

impl WithSimd for Backward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { form, relu, exact, input, output, doutput, dinput } = self;
        let zero = simd.splat_f32s(0.0);
        form.for_each_window(
            #[inline(always)]
            |pixel, window| {
                form.for_each_vector(
                    simd,
                    #[inline(always)]
                    |start, part| {
                        let largest = load(simd, &output[pixel + start..], part);
                        let mut slope = load(simd, &doutput[pixel + start..], part);
                        if relu {
                            slope = simd.select_f32s(simd.greater_than_f32s(largest, zero), slope, zero);
                        }
                        if form.summary == Summary::Mean {
                            slope = simd.mul_f32s(slope, simd.splat_f32s(form.share()));
                        }
                        form.for_each_pixel(
                            window,
                            #[inline(always)]
                            |place| {
                                let mut here = slope;
                                if form.summary == Summary::Max {
                                    let value = load(simd, &input[place + start..], part);
                                    let hit = simd.equal_f32s(value, largest);
                                    here = simd.select_f32s(hit, slope, zero);
                                    slope = simd.select_f32s(hit, zero, slope);
                                }
                                let to = &mut dinput[place + start..];
                                if exact { store(simd, to, part, here) } else { add(simd, to, part, here) }
                            },
                        );
                    },
                );
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::every_arch;
    use crate::kernel::plane::tests::{image, numbers};
    use proptest::prelude::*;

    /// One number at a time.
    fn plain(form: &Pool, relu: bool, input: &[f32], doutput: &[f32]) -> (Vec<f32>, Vec<f32>) {
        let (mut output, mut dinput) = (vec![0.0; form.output.len()], vec![0.0; form.input.len()]);
        for y in 0..form.output.height {
            for x in 0..form.output.width {
                for channel in 0..form.input.channels {
                    let to = form.output.pixel(y, x) + channel;
                    let window: Vec<usize> = (0..form.size * form.size)
                        .map(|i| {
                            let (dy, dx) = (i / form.size, i % form.size);
                            form.input.pixel(y * form.stride + dy, x * form.stride + dx) + channel
                        })
                        .collect();
                    match form.summary {
                        Summary::Max => {
                            let mut best = window[0];
                            for &place in &window {
                                if input[place] > input[best] {
                                    best = place;
                                }
                            }
                            output[to] = input[best];
                            if !relu || input[best] > 0.0 {
                                dinput[best] += doutput[to];
                            }
                        }
                        Summary::Mean => {
                            for &place in &window {
                                output[to] += input[place] / window.len() as f32;
                                dinput[place] += doutput[to] / window.len() as f32;
                            }
                        }
                    }
                }
            }
        }
        (output, dinput)
    }

    proptest! {
        #[test]
        fn equals_the_plain_loops(
            max in any::<bool>(),
            relu in any::<bool>(),
            size in 1_usize..4,
            stride in 1_usize..4,
            channels in 1_usize..40,
            more in (0_usize..7, 0_usize..7),
            borders in (0_usize..2, 0_usize..2),
        ) {
            let summary = if max { Summary::Max } else { Summary::Mean };
            let input = Plane { channels, height: size + more.0, width: size + more.1, before: borders.0, after: borders.1 };
            let output = Plane {
                channels, height: more.0 / stride + 1, width: more.1 / stride + 1, before: borders.1, after: borders.0,
            };
            let form = Pool { summary, size, stride, input, output };
            let mut from = image(&input, 1);
            if relu {
                // Many equal numbers: the largest of a window is often there twice.
                from.iter_mut().for_each(|value| *value = (*value * 3.0).round().max(0.0));
            }
            let doutput = image(&output, 2);
            let relu = relu && max;
            let (expected, expected_slopes) = plain(&form, relu, &from, &doutput);
            for arch in every_arch() {
                let mut got = vec![0.0; output.len()];
                form.forward(arch, &from, &mut got);
                let mut slopes = vec![0.0; input.len()];
                for y in 0..input.height {
                    let dirt = numbers(input.inside(y).len(), 3);
                    slopes[input.inside(y)].copy_from_slice(&dirt);
                }
                form.backward(arch, relu, &from, &got, &doutput, &mut slopes);
                for (got, expected) in got.iter().zip(&expected).chain(slopes.iter().zip(&expected_slopes)) {
                    prop_assert!((got - expected).abs() < 1e-5, "{arch:?}: {got} for {expected}");
                }
            }
        }
    }
}
