//! The fast loops against the plain ones, with every kind of vector that the machine has.

use super::*;
use crate::kernel::every_arch;
use crate::kernel::plane::tests::{image, numbers};
use crate::rounding::Sum;
use proptest::prelude::*;
use std::time::Instant;

/// Every product of the convolution once: calls with the places of input, weight and output.
fn for_each_product(form: &Convolution, mut visit: impl FnMut(usize, usize, usize)) {
    let Convolution { kernel, stride, input, output } = *form;
    for y in 0..output.height {
        for x in 0..output.width {
            for ky in 0..kernel {
                for kx in 0..kernel {
                    for from in 0..input.channels {
                        for to in 0..output.channels {
                            visit(
                                (y * stride + ky) * input.line() + (x * stride + kx) * input.channels + from,
                                ((ky * kernel + kx) * input.channels + from) * output.channels + to,
                                output.pixel(y, x) + to,
                            );
                        }
                    }
                }
            }
        }
    }
}

fn close(got: &[f32], expected: &[Sum]) -> bool {
    got.len() == expected.len() && got.iter().zip(expected).all(|(&got, expected)| expected.equals(got))
}

prop_compose! {
    fn forms()(
        kernel in 1_usize..6,
        stride in 1_usize..4,
        channels in (1_usize..5, 1_usize..40),
        deep in any::<bool>(),
        more in (0_usize..9, 0_usize..18),
        border in (0_usize..3, 0_usize..3),
        next in (0_usize..2, 0_usize..3),
    ) -> Convolution {
        let (from, to) = if deep { (channels.1, channels.0) } else { channels };
        // Too small a kernel for its border is no convolution, and the last pixels may be left over by the stride.
        let size = |more: usize| (kernel + more).saturating_sub(border.0 + border.1).max(1);
        let input = Plane {
            channels: from,
            height: size(more.0),
            width: size(more.1),
            before: border.0,
            after: border.1 + kernel,
        };
        let windows = |size: usize| (border.0 + size + border.1) / stride + 1;
        let output = Plane {
            channels: to,
            height: windows(input.height),
            width: windows(input.width),
            before: next.0,
            after: next.1,
        };
        Convolution { kernel, stride, input, output }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn equals_the_plain_loops(form in forms(), relu in any::<bool>()) {
        let input = image(&form.input, 1);
        let weights = numbers(form.window() * form.output.channels, 2);
        let bias = numbers(form.output.channels, 3);
        let doutput = image(&form.output, 4);

        let mut output = vec![Sum::default(); form.output.len()];
        for y in 0..form.output.height {
            for (i, place) in form.output.inside(y).enumerate() {
                output[place].add(f64::from(bias[i % bias.len()]));
            }
        }
        let mut dinput = vec![Sum::default(); form.input.len()];
        let mut dweights = vec![Sum::default(); weights.len()];
        for_each_product(&form, |from, weight, to| {
            output[to].add(f64::from(input[from]) * f64::from(weights[weight]));
            dinput[from].add(f64::from(doutput[to]) * f64::from(weights[weight]));
            dweights[weight].add(f64::from(doutput[to]) * f64::from(input[from]));
        });
        if relu {
            for sum in &mut output {
                sum.value = sum.value.max(0.0);
            }
        }
        let mut dbias = vec![Sum::default(); bias.len()];
        for y in 0..form.output.height {
            for (i, place) in form.output.inside(y).enumerate() {
                dbias[i % bias.len()].add(f64::from(doutput[place]));
            }
        }

        for arch in every_arch() {
            let mut packed = PackedWeights::default();
            packed.pack(arch, &form, &weights, &bias);
            let mut got = vec![0.0; form.output.len()];
            form.forward(arch, &packed, relu, &input, &mut got);
            prop_assert!(close(&got, &output), "forward, {arch:?}");

            let mut got = vec![0.0; form.input.len()];
            form.input_gradient(arch, &packed, &doutput, &mut got);
            prop_assert!(close(&got, &dinput), "input gradient, {arch:?}");

            let mut sums = WeightSums::default();
            sums.clear(arch, &form);
            form.weight_gradient(arch, &input, &doutput, &mut sums);
            let (mut got, mut got_bias) = (vec![0.0; weights.len()], vec![0.0; bias.len()]);
            sums.write_weights(&mut got);
            sums.write_bias(&mut got_bias);
            prop_assert!(close(&got, &dweights), "weight gradient, {arch:?}");
            prop_assert!(close(&got_bias, &dbias), "bias gradient, {arch:?}");
        }
    }
}

/// Speed of each convolution of the built-in networks, in GFLOP/s of one thread:
/// `cargo test --release -p easyllp --lib speed -- --ignored --nocapture`
#[test]
#[ignore = "takes seconds, and says something only in a release build on a quiet machine"]
fn speed() {
    let layers = [
        ("conv5x8 of 1x28x28", 5, 0, (1, 28), 8),
        ("conv5x16 of 8x12x12", 5, 0, (8, 12), 16),
        ("conv3x32:same of 1x28x28", 3, 2, (1, 28), 32),
        ("conv3x32:same of 32x28x28", 3, 2, (32, 28), 32),
        ("conv3x64:same of 32x14x14", 3, 2, (32, 14), 64),
        ("conv3x32:same of 3x32x32", 3, 2, (3, 32), 32),
        ("conv3x32:same of 32x32x32", 3, 2, (32, 32), 32),
        ("conv3x64:same of 32x16x16", 3, 2, (32, 16), 64),
    ];
    let only: Option<usize> = std::env::var("LAYER").ok().and_then(|layer| layer.parse().ok());
    for (i, (name, kernel, border, (from, size), to)) in layers.into_iter().enumerate() {
        if only.is_some_and(|only| only != i) {
            continue;
        }
        let input =
            Plane { channels: from, height: size, width: size, before: border / 2, after: border / 2 };
        let windows = size + border + 1 - kernel;
        let form = Convolution { kernel, stride: 1, input, output: Plane::bare(to, windows, windows) };
        let (x, dy) = (image(&form.input, 1), image(&form.output, 4));
        let (mut y, mut dx) = (Buffer::zeros(form.output.len()), Buffer::zeros(form.input.len()));
        for arch in every_arch().into_iter().skip(1) {
            let mut packed = PackedWeights::default();
            packed.pack(arch, &form, &numbers(form.window() * to, 2), &numbers(to, 3));
            let mut sums = WeightSums::default();
            sums.clear(arch, &form);
            let n_products = windows * windows * form.window() * to;
            let report = |what: &str, work: &mut dyn FnMut()| {
                // Many short looks, since others may use the machine too.
                let calls = 1 + 3_000_000 / n_products;
                let (begin, mut best) = (Instant::now(), f64::INFINITY);
                while begin.elapsed().as_secs_f64() < 0.3 {
                    let start = Instant::now();
                    (0..calls).for_each(|_| work());
                    best = best.min(start.elapsed().as_secs_f64() / calls as f64);
                }
                let vectors = if lanes(arch) == 16 { "AVX-512" } else { "AVX2" };
                eprintln!(
                    "{name:28} {vectors:8} {what:15} {:6.1} us {:6.1} GFLOP/s",
                    best * 1e6,
                    2e-9 * n_products as f64 / best
                );
            };
            report("forward", &mut || form.forward(arch, &packed, true, &x, &mut y));
            report("input gradient", &mut || form.input_gradient(arch, &packed, &dy, &mut dx));
            dx.fill(0.0);
            report("weight gradient", &mut || form.weight_gradient(arch, &x, &dy, &mut sums));
        }
    }
}
