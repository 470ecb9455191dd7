//! Activation functions of layers, together with the bias.
//!
//! exp, erf and tanh are polynomials here, since calls into the mathematical library keep a loop from being vectorised.

#![expect(clippy::inline_always, reason = "a loop is only vectorised with all of its body in it")]

use super::vectorised;
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// The activation function of a layer.
///
/// ```
/// use easyllp::model::Activation;
///
/// let activation: Activation = "gelu".parse()?;
/// assert_eq!(activation, Activation::Gelu);
/// # Ok::<(), easyllp::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activation {
    /// max(z, 0)
    #[default]
    Relu,
    /// z·Φ(z) with the normal distribution Φ, to seven digits: not its approximation by tanh.
    Gelu,
    /// The hyperbolic tangent.
    Tanh,
}

impl Activation {
    /// All activation functions.
    pub const ALL: [Self; 3] = [Self::Relu, Self::Gelu, Self::Tanh];

    /// The name in settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Relu => "relu",
            Self::Gelu => "gelu",
            Self::Tanh => "tanh",
        }
    }
}

impl std::str::FromStr for Activation {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|activation| activation.as_str() == name).ok_or_else(|| {
            Error::UnknownName { what: "activation", name: name.into(), choices: "relu, gelu, tanh" }
        })
    }
}

/// `values = activation(values + bias)`, line by line; `values` has lines as long as `bias`.
pub(crate) fn activate(activation: Activation, values: &mut [f32], bias: &[f32]) {
    vectorised(
        #[inline(always)]
        || match activation {
            Activation::Relu => each(values, bias, relu),
            Activation::Gelu => each(values, bias, |z| gelu(z).0),
            Activation::Tanh => each(values, bias, tanh),
        },
    );
}

/// The same, and the activation's slope at each value. ReLU's is not written: a positive output says that it is 1.
pub(crate) fn activate_to_learn(
    activation: Activation,
    values: &mut [f32],
    bias: &[f32],
    slopes: &mut [f32],
) {
    vectorised(
        #[inline(always)]
        || match activation {
            Activation::Relu => each(values, bias, relu),
            Activation::Gelu => each_with_slope(values, bias, slopes, gelu),
            Activation::Tanh => each_with_slope(values, bias, slopes, |z| {
                let output = tanh(z);
                (output, 1.0 - output * output)
            }),
        },
    );
}

#[inline(always)]
fn each(values: &mut [f32], bias: &[f32], function: impl Fn(f32) -> f32) {
    for line in values.chunks_exact_mut(bias.len()) {
        for (value, bias) in line.iter_mut().zip(bias) {
            *value = function(*value + bias);
        }
    }
}

#[inline(always)]
fn each_with_slope(
    values: &mut [f32],
    bias: &[f32],
    slopes: &mut [f32],
    function: impl Fn(f32) -> (f32, f32),
) {
    for (line, slopes) in values.chunks_exact_mut(bias.len()).zip(slopes.chunks_exact_mut(bias.len())) {
        for ((value, slope), bias) in line.iter_mut().zip(slopes).zip(bias) {
            (*value, *slope) = function(*value + bias);
        }
    }
}

/// Not `f32::max`, which would turn NaN into 0 and hide that training diverged.
#[inline(always)]
fn relu(z: f32) -> f32 {
    if z < 0.0 { 0.0 } else { z }
}

/// z·Φ(z) and its slope Φ(z) + z·φ(z). Φ by Abramowitz & Stegun 7.1.26, whose error is below 1.5e-7.
#[inline(always)]
fn gelu(z: f32) -> (f32, f32) {
    const P: f32 = 0.327_591_1;
    const COEFFICIENTS: [f32; 5] = [1.061_405_4, -1.453_152, 1.421_413_8, -0.284_496_72, 0.254_829_6];
    let x = z.abs() * std::f32::consts::FRAC_1_SQRT_2;
    let t = 1.0 / (1.0 + P * x);
    let bell = exp(-x * x);
    let tail = 0.5 * bell * t * polynomial(t, COEFFICIENTS);
    let below = if z < 0.0 { tail } else { 1.0 - tail };
    let density = bell * (0.5 * std::f32::consts::FRAC_2_SQRT_PI * std::f32::consts::FRAC_1_SQRT_2);
    // Far out the bell is 0, and z·Φ(z) must be z or 0 also for z that is infinite: 0·∞ would be no number.
    let output = if z < -20.0 { 0.0 } else { z * below };
    (output, below + z.clamp(-20.0, 20.0) * density)
}

/// Cephes' tanhf: a polynomial near 0, where 1 − 2/(e^2z + 1) would lose digits, else that.
#[inline(always)]
fn tanh(z: f32) -> f32 {
    const COEFFICIENTS: [f32; 5] =
        [-5.704_988_7e-3, 2.063_909e-2, -5.373_971_6e-2, 1.333_144_2e-1, -3.333_328e-1];
    let size = z.abs();
    let square = z * z;
    let near = z + z * square * polynomial(square, COEFFICIENTS);
    let far = 1.0 - 2.0 / (exp(2.0 * size.min(20.0)) + 1.0);
    if size < 0.625 {
        near
    } else if z.is_nan() {
        z
    } else {
        far.copysign(z)
    }
}

/// Cephes' expf, to the last digit or two: e^x = 2^n·e^r with |r| ≤ ln 2/2. Below −87 it is as good as 0.
#[inline(always)]
fn exp(x: f32) -> f32 {
    /// 1.5·2²³: a number near 0 added to it is rounded to a whole one, which stands in its lowest bits.
    const ROUND: f32 = 12_582_912.0;
    const COEFFICIENTS: [f32; 6] =
        [1.987_569_1e-4, 1.398_2e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5];
    let x = if x < -87.0 { -87.0 } else { x };
    let x = if x > 88.0 { 88.0 } else { x };
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    // ln 2 in two parts, the first of which times n is exact.
    let rest = (x - n * 0.693_359_4) - n * -2.121_944_4e-4;
    let value = polynomial(rest, COEFFICIENTS) * rest * rest + rest + 1.0;
    let exponent = shifted.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(127) << 23;
    value * f32::from_bits(exponent)
}

/// Horner's scheme, highest power first.
#[inline(always)]
fn polynomial<const N: usize>(x: f32, coefficients: [f32; N]) -> f32 {
    let mut value = coefficients[0];
    for coefficient in &coefficients[1..] {
        value = value * x + coefficient;
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::every_arch;
    use proptest::prelude::*;
    use statrs::function::erf::erf;

    fn plain(activation: Activation, z: f64) -> (f64, f64) {
        match activation {
            Activation::Relu => (z.max(0.0), f64::from(u8::from(z > 0.0))),
            Activation::Gelu => {
                let below = 0.5 * (1.0 + erf(z * std::f64::consts::FRAC_1_SQRT_2));
                let density = (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt();
                (z * below, below + z * density)
            }
            Activation::Tanh => (z.tanh(), 1.0 - z.tanh().powi(2)),
        }
    }

    proptest! {
        /// The mathematical library is the oracle.
        #[test]
        fn equal_the_plain_functions(
            lines in 1_usize..4,
            width in 1_usize..40,
            scale in prop::sample::select(vec![0.01_f32, 1.0, 10.0]),
        ) {
            let bias: Vec<f32> = (0..width).map(|i| scale * (i as f32 * 0.7).sin()).collect();
            let before: Vec<f32> = (0..lines * width).map(|i| scale * (i as f32 * 1.3).cos()).collect();
            for activation in Activation::ALL {
                let (mut scored, mut learnt) = (before.clone(), before.clone());
                let mut slopes = vec![f32::NAN; before.len()];
                activate(activation, &mut scored, &bias);
                activate_to_learn(activation, &mut learnt, &bias, &mut slopes);
                prop_assert_eq!(&scored, &learnt);
                for (place, &output) in scored.iter().enumerate() {
                    let (expected, slope) = plain(activation, f64::from(before[place] + bias[place % width]));
                    prop_assert!((f64::from(output) - expected).abs() < 5e-7 * (1.0 + expected.abs()));
                    if activation != Activation::Relu {
                        prop_assert!((f64::from(slopes[place]) - slope).abs() < 2e-6);
                    }
                }
            }
        }
    }

    #[test]
    fn every_kind_of_vectors_gives_the_same_bytes() {
        for width in [1, 7, 16, 37] {
            let bias: Vec<f32> = (0..width).map(|i| (i as f32 * 0.7).sin()).collect();
            let before: Vec<f32> = (0..5 * width).map(|i| 4.0 * (i as f32 * 1.3).cos()).collect();
            for function in [relu, |z| gelu(z).0, |z| gelu(z).1, tanh] {
                let of = |arch: pulp::Arch| {
                    let mut values = before.clone();
                    arch.dispatch(
                        #[inline(always)]
                        || each(&mut values, &bias, function),
                    );
                    values
                };
                for arch in every_arch() {
                    assert_eq!(of(pulp::Arch::Scalar), of(arch), "{arch:?} {width}");
                }
            }
        }
    }

    #[test]
    fn the_ends_of_the_line() {
        for activation in Activation::ALL {
            let mut values = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0, 1e30, -1e30];
            let mut slopes = [0.0; 6];
            activate_to_learn(activation, &mut values, &[0.0], &mut slopes);
            let top = if activation == Activation::Tanh { 1.0 } else { f32::INFINITY };
            let bottom = if activation == Activation::Tanh { -1.0 } else { 0.0 };
            assert!(values[0].is_nan(), "{activation:?} hides what is not a number");
            assert_eq!(values[1..4], [top, bottom, 0.0], "{activation:?}");
            assert_eq!(values[4..], [top.min(1e30), bottom], "{activation:?}");
            assert!(slopes[1..].iter().all(|slope| slope.is_finite()), "{activation:?} {slopes:?}");
        }
        assert!("swish".parse::<Activation>().is_err());
    }

    #[test]
    fn exp_is_good_to_the_last_digits() {
        for step in -870..=880 {
            let x = 0.1 * step as f32;
            let expected = f64::from(x).exp();
            assert!((f64::from(exp(x)) / expected - 1.0).abs() < 3e-7, "{x}");
        }
    }
}
