//! Sums in `f64`, also over `f32` features without a copy of them in `f64`.

#![expect(clippy::inline_always, reason = "a loop is only vectorised with all of its body in it")]

use super::vectorised;

/// Sums that run side by side in a dot product, and are added up in the end.
const LANES: usize = 32;

/// Adds to each of `out` the dot product of its line with the weights; lines are as long as there are weights.
pub(crate) fn add_dots(lines: &[f32], weights: &[f64], out: &mut [f64]) {
    vectorised(
        #[inline(always)]
        || add_dots_loop(lines, weights, out),
    );
}

#[inline(always)]
fn add_dots_loop(lines: &[f32], weights: &[f64], out: &mut [f64]) {
    if weights.is_empty() {
        return;
    }
    for (line, out) in lines.chunks_exact(weights.len()).zip(out) {
        let mut sums = [0.0; LANES];
        let (values, factors) = (line.chunks_exact(LANES), weights.chunks_exact(LANES));
        let rest = values.remainder().iter().zip(factors.remainder());
        for (values, factors) in values.zip(factors) {
            for lane in 0..LANES {
                sums[lane] += f64::from(values[lane]) * factors[lane];
            }
        }
        let of_rest: f64 = rest.map(|(&value, factor)| f64::from(value) * factor).sum();
        *out += sums.iter().sum::<f64>() + of_rest;
    }
}

/// Adds a vector times a factor.
pub(crate) fn add_scaled(to: &mut [f64], scale: f64, values: &[f64]) {
    to.iter_mut().zip(values).for_each(|(to, value)| *to += scale * value);
}

/// The dot product of two vectors of a length.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    vectorised(
        #[inline(always)]
        || dot_loop(a, b),
    )
}

#[inline(always)]
fn dot_loop(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; LANES];
    let (first, second) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest: f64 = first.remainder().iter().zip(second.remainder()).map(|(a, b)| a * b).sum();
    for (first, second) in first.zip(second) {
        for lane in 0..LANES {
            sums[lane] += first[lane] * second[lane];
        }
    }
    sums.iter().sum::<f64>() + rest
}

/// Adds each line times its factor to `out`, which is as long as a line.
pub(crate) fn add_weighed_lines(lines: &[f32], factors: &[f64], out: &mut [f64]) {
    vectorised(
        #[inline(always)]
        || add_weighed_lines_loop(lines, factors, out),
    );
}

#[inline(always)]
fn add_weighed_lines_loop(lines: &[f32], factors: &[f64], out: &mut [f64]) {
    let width = out.len();
    if width == 0 {
        return;
    }
    // Four lines at a time, so that `out` is read and written a quarter as often.
    let (fours, four_factors) = (lines.chunks_exact(4 * width), factors.chunks_exact(4));
    let rest = fours.remainder().chunks_exact(width).zip(four_factors.remainder());
    for (lines, factors) in fours.zip(four_factors) {
        let (first, lines) = lines.split_at(width);
        let (second, lines) = lines.split_at(width);
        let (third, fourth) = lines.split_at(width);
        for (place, out) in out.iter_mut().enumerate() {
            let upper = f64::from(first[place]) * factors[0] + f64::from(second[place]) * factors[1];
            let lower = f64::from(third[place]) * factors[2] + f64::from(fourth[place]) * factors[3];
            *out += upper + lower;
        }
    }
    for (line, factor) in rest {
        for (out, &value) in out.iter_mut().zip(line) {
            *out += f64::from(value) * factor;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::every_arch;
    use crate::rounding::Sum;
    use proptest::prelude::*;

    proptest! {
        /// Plain sums are the oracle, on every kind of vectors; all kinds give the same bytes.
        #[test]
        fn equal_plain_sums(n_lines in 0_usize..11, width in 0_usize..100) {
            let lines: Vec<f32> = (0..n_lines * width).map(|i| (i as f32 * 0.7).sin()).collect();
            let weights: Vec<f64> = (0..width).map(|i| (i as f64 * 1.3).cos()).collect();
            let factors: Vec<f64> = (0..n_lines).map(|i| (i as f64 + 0.4).sin()).collect();
            let at = |line: usize, place: usize| f64::from(lines[line * width + place]);
            let mut bytes = None;
            for arch in every_arch() {
                let (mut dots, mut sums) = (vec![0.5; n_lines], vec![-0.5; width]);
                arch.dispatch(#[inline(always)] || add_dots_loop(&lines, &weights, &mut dots));
                arch.dispatch(#[inline(always)] || add_weighed_lines_loop(&lines, &factors, &mut sums));
                for (line, dot) in dots.iter().enumerate() {
                    let products = (0..width).map(|place| at(line, place) * weights[place]);
                    prop_assert!(products.chain([0.5]).collect::<Sum>().equals(*dot));
                }
                for (place, sum) in sums.iter().enumerate() {
                    let products = (0..n_lines).map(|line| at(line, place) * factors[line]);
                    prop_assert!(products.chain([-0.5]).collect::<Sum>().equals(*sum));
                }
                let norm = arch.dispatch(#[inline(always)] || dot_loop(&weights, &weights));
                prop_assert!(weights.iter().map(|weight| weight * weight).collect::<Sum>().equals(norm));
                let of_arch: Vec<u64> = dots.iter().chain(&sums).chain([&norm]).map(|value| value.to_bits()).collect();
                prop_assert!(bytes.get_or_insert_with(|| of_arch.clone()) == &of_arch);
            }
        }
    }
}
