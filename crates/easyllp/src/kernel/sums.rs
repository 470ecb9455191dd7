//! Small loops between matrix products.

#![expect(clippy::inline_always, reason = "a loop is only vectorised with all of its body in it")]

use super::vectorised;

/// The sum of the lines of a matrix by rows, as many columns as `out` has.
pub(crate) fn column_sums(matrix: &[f32], out: &mut [f32]) {
    vectorised(
        #[inline(always)]
        || column_sums_loop(matrix, out),
    );
}

#[inline(always)]
fn column_sums_loop(matrix: &[f32], out: &mut [f32]) {
    out.fill(0.0);
    for line in matrix.chunks_exact(out.len()) {
        for (sum, value) in out.iter_mut().zip(line) {
            *sum += value;
        }
    }
}

/// Adds the same line to each line of a matrix by rows.
pub(crate) fn add_to_lines(line: &[f32], matrix: &mut [f32]) {
    vectorised(
        #[inline(always)]
        || add_to_lines_loop(line, matrix),
    );
}

#[inline(always)]
fn add_to_lines_loop(line: &[f32], matrix: &mut [f32]) {
    for values in matrix.chunks_exact_mut(line.len()) {
        for (value, add) in values.iter_mut().zip(line) {
            *value += add;
        }
    }
}

/// `values *= factors`.
pub(crate) fn multiply(values: &mut [f32], factors: &[f32]) {
    vectorised(
        #[inline(always)]
        || multiply_loop(values, factors),
    );
}

#[inline(always)]
fn multiply_loop(values: &mut [f32], factors: &[f32]) {
    for (value, factor) in values.iter_mut().zip(factors) {
        *value *= factor;
    }
}

/// The derivative of ReLU, with `factor` for what dropout raised: `values · factor` where `outputs` is positive, else 0.
pub(crate) fn pass_positive(values: &mut [f32], outputs: &[f32], factor: f32) {
    vectorised(
        #[inline(always)]
        || pass_positive_loop(values, outputs, factor),
    );
}

#[inline(always)]
fn pass_positive_loop(values: &mut [f32], outputs: &[f32], factor: f32) {
    for (value, output) in values.iter_mut().zip(outputs) {
        *value = if *output > 0.0 { *value * factor } else { 0.0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::every_arch;
    use proptest::prelude::*;

    fn numbers(n: usize, seed: f32) -> Vec<f32> {
        (0..n).map(|i| (i as f32 * 0.7 + seed).sin()).collect()
    }

    proptest! {
        /// Loops over single numbers are the oracle, on every kind of vectors.
        #[test]
        fn equal_plain_loops(lines in 0_usize..6, width in 1_usize..40) {
            let (matrix, other) = (numbers(lines * width, 0.0), numbers(lines * width, 1.0));
            let line = numbers(width, 2.0);
            for arch in every_arch() {
                let mut sums = vec![f32::NAN; width];
                arch.dispatch(#[inline(always)] || column_sums_loop(&matrix, &mut sums));
                let (mut added, mut product, mut passed) = (matrix.clone(), matrix.clone(), matrix.clone());
                arch.dispatch(#[inline(always)] || add_to_lines_loop(&line, &mut added));
                arch.dispatch(#[inline(always)] || multiply_loop(&mut product, &other));
                arch.dispatch(#[inline(always)] || pass_positive_loop(&mut passed, &other, 2.0));
                for column in 0..width {
                    let mut sum = 0.0;
                    for at in (0..lines).map(|row| row * width + column) {
                        sum += matrix[at];
                        prop_assert_eq!(added[at].to_bits(), (matrix[at] + line[column]).to_bits());
                        prop_assert_eq!(product[at].to_bits(), (matrix[at] * other[at]).to_bits());
                        let expected = if other[at] > 0.0 { matrix[at] * 2.0 } else { 0.0 };
                        prop_assert_eq!(passed[at].to_bits(), expected.to_bits());
                    }
                    prop_assert_eq!(sums[column].to_bits(), sum.to_bits());
                }
            }
        }
    }
}
