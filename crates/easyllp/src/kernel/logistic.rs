//! The corrected logistic loss of many scores at once, in `f64` as the loss of one.
//!
//! exp and log are polynomials here, good to the last digits but one: calls into the mathematical library keep a loop from
//! being vectorised.

#![expect(clippy::inline_always, reason = "a loop is only vectorised with all of its body in it")]

use super::vectorised;

/// Scores that are processed together: their losses are added in this number of sums, for any vectors.
const LANES: usize = 16;

/// A number that scores, and slopes in them, are stored as.
pub(crate) trait Score: Copy {
    /// The loss of a score, and its slope.
    fn logistic(self, target: f32) -> (f64, Self);
}

impl Score for f32 {
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "slopes are stored as f32")]
    fn logistic(self, target: f32) -> (f64, f32) {
        let (loss, slope) = logistic(f64::from(self), f64::from(target));
        (loss, slope as f32)
    }
}

impl Score for f64 {
    #[inline(always)]
    fn logistic(self, target: f32) -> (f64, f64) {
        logistic(self, f64::from(target))
    }
}

/// Σ softplus(f) − A·f over scores f with targets A; its slope in each score, sigmoid(f) − A, is written to `slopes`.
pub(crate) fn logistic_losses<S: Score>(scores: &[S], targets: &[f32], slopes: &mut [S]) -> f64 {
    vectorised(
        #[inline(always)]
        || logistic_losses_loop(scores, targets, slopes),
    )
}

#[inline(always)]
fn logistic_losses_loop<S: Score>(scores: &[S], targets: &[f32], slopes: &mut [S]) -> f64 {
    let mut sums = [0.0_f64; LANES];
    let (score_tiles, last_scores) = scores.as_chunks::<LANES>();
    let (target_tiles, last_targets) = targets.as_chunks::<LANES>();
    let (slope_tiles, last_slopes) = slopes.as_chunks_mut::<LANES>();
    for ((scores, targets), slopes) in score_tiles.iter().zip(target_tiles).zip(slope_tiles) {
        for lane in 0..LANES {
            let (loss, slope) = scores[lane].logistic(targets[lane]);
            sums[lane] += loss;
            slopes[lane] = slope;
        }
    }
    for (lane, ((score, target), slope)) in last_scores.iter().zip(last_targets).zip(last_slopes).enumerate()
    {
        let loss;
        (loss, *slope) = score.logistic(*target);
        sums[lane] += loss;
    }
    sums.iter().sum()
}

/// The same for many tasks, one per column of three matrices by rows: losses are added to those of each column. Where the
/// target is NaN, the row is left out: it adds no loss and its slope is 0.
pub(crate) fn logistic_columns(scores: &[f32], targets: &[f32], slopes: &mut [f32], losses: &mut [f64]) {
    vectorised(
        #[inline(always)]
        || logistic_columns_loop(scores, targets, slopes, losses),
    );
}

#[inline(always)]
fn logistic_columns_loop(scores: &[f32], targets: &[f32], slopes: &mut [f32], losses: &mut [f64]) {
    let width = losses.len();
    let lines = scores.chunks_exact(width).zip(targets.chunks_exact(width));
    for ((scores, targets), slopes) in lines.zip(slopes.chunks_exact_mut(width)) {
        for (((&score, &target), slope), sum) in scores.iter().zip(targets).zip(slopes).zip(&mut *losses) {
            let (loss, of_score) = score.logistic(target);
            let is_left_out = target.is_nan();
            *slope = if is_left_out { 0.0 } else { of_score };
            *sum += if is_left_out { 0.0 } else { loss };
        }
    }
}

#[inline(always)]
fn logistic(f: f64, target: f64) -> (f64, f64) {
    let small = exp_of_negative(-f.abs());
    let above = if f > 0.0 { f } else { 0.0 };
    let numerator = if f < 0.0 { small } else { 1.0 };
    let loss = above + log_of_one_and(small) - target * f;
    (loss, numerator / (1.0 + small) - target)
}

/// e^x for x ≤ 0: 2^n·e^r with |r| ≤ ln 2/2, and e^r by its series. Below −708 it is as good as 0.
#[inline(always)]
fn exp_of_negative(x: f64) -> f64 {
    /// 1.5·2⁵²: a number near 0 added to it is rounded to a whole one, which stands in its lowest bits.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    /// ln 2 in two parts, the first of which times n is exact.
    const LN_2: [f64; 2] = [6.931_471_803_691_238e-1, 1.908_214_929_270_587_7e-10];
    let x = if x < -708.0 { -708.0 } else { x };
    let shifted = x * std::f64::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let rest = (x - n * LN_2[0]) - n * LN_2[1];
    let mut value = 1.0;
    for divisor in [13.0, 12.0, 11.0, 10.0, 9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0_f64] {
        value = value * (rest * (1.0 / divisor)) + 1.0;
    }
    let exponent = shifted.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(1023) << 52;
    value * f64::from_bits(exponent)
}

/// log(1 + x) for x from 0 to 1: 2·artanh(x/(2 + x)) by its series.
#[inline(always)]
fn log_of_one_and(x: f64) -> f64 {
    let s = x / (2.0 + x);
    let square = s * s;
    let mut value = 0.0;
    for divisor in
        [31.0, 29.0, 27.0, 25.0, 23.0, 21.0, 19.0, 17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0, 1.0_f64]
    {
        value = value * square + 1.0 / divisor;
    }
    2.0 * s * value
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::every_arch;
    use crate::loss::{sigmoid, softplus};
    use crate::rounding::Sum;
    use proptest::prelude::*;

    proptest! {
        /// The loss of one score is the oracle, on every kind of vectors.
        #[test]
        fn equals_the_loss_of_single_scores(
            cases in prop::collection::vec((-1e5_f32..1e5, -9.0_f32..9.0, 0_u8..3), 0..70),
        ) {
            let scores: Vec<f32> = cases.iter().map(|(score, _, size)| score / [1.0, 1e3, 1e5][*size as usize]).collect();
            let targets: Vec<f32> = cases.iter().map(|case| case.1).collect();
            let of = |arch: pulp::Arch| {
                let mut slopes = vec![f32::NAN; scores.len()];
                let loss = arch.dispatch(
                    #[inline(always)]
                    || logistic_losses_loop(&scores, &targets, &mut slopes),
                );
                (loss.to_bits(), slopes)
            };
            let (loss, slopes) = of(pulp::Arch::Scalar);
            let mut expected = Sum::default();
            for ((&score, &target), slope) in scores.iter().zip(&targets).zip(&slopes) {
                let (f, target) = (f64::from(score), f64::from(target));
                expected.add(softplus(f));
                expected.add(-target * f);
                prop_assert!((f64::from(*slope) - (sigmoid(f) - target)).abs() < 1e-6);
            }
            // Up to 140 roundings of 2e-16 in the sum, and a few in each term.
            prop_assert!(expected.equals_within(5e-14, f64::from_bits(loss)));
            for arch in every_arch() {
                prop_assert_eq!(of(arch), (loss, slopes.clone()));
            }
        }
    }

    proptest! {
        /// In `f64` too.
        #[test]
        fn equals_the_loss_of_single_scores_in_f64(
            cases in prop::collection::vec((-1e5_f64..1e5, -9.0_f32..9.0, 0_u8..3), 0..70),
        ) {
            let scores: Vec<f64> = cases.iter().map(|(score, _, size)| score / [1.0, 1e3, 1e5][*size as usize]).collect();
            let targets: Vec<f32> = cases.iter().map(|case| case.1).collect();
            let (mut expected, mut size) = (0.0, 1.0);
            let mut slopes_expected = Vec::new();
            for (&f, &target) in scores.iter().zip(&targets) {
                expected += softplus(f) - f64::from(target) * f;
                size += f.abs() * 9.0;
                slopes_expected.push(sigmoid(f) - f64::from(target));
            }
            let mut bytes = None;
            for arch in every_arch() {
                let mut slopes = vec![f64::NAN; scores.len()];
                let loss = arch.dispatch(
                    #[inline(always)]
                    || logistic_losses_loop(&scores, &targets, &mut slopes),
                );
                prop_assert!((loss - expected).abs() <= 1e-13 * size);
                for (slope, expected) in slopes.iter().zip(&slopes_expected) {
                    prop_assert!((slope - expected).abs() < 1e-14);
                }
                let of_arch = (loss.to_bits(), slopes);
                prop_assert!(bytes.get_or_insert_with(|| of_arch.clone()) == &of_arch);
            }
        }
    }

    proptest! {
        /// Column by column it is the sum over single scores, on every kind of vectors; rows without a target have no say.
        #[test]
        fn columns_equal_single_scores(
            width in 1_usize..40,
            cases in prop::collection::vec((-30.0_f32..30.0, -2.0_f32..3.0, 0_u8..4), 0..400),
        ) {
            let n_rows = cases.len() / width;
            let cases = &cases[..n_rows * width];
            let scores: Vec<f32> = cases.iter().map(|case| case.0).collect();
            let targets: Vec<f32> = cases.iter().map(|case| if case.2 == 0 { f32::NAN } else { case.1 }).collect();
            let (mut losses, mut slopes) = (vec![0.5; width], Vec::new());
            for (place, (&score, &target)) in scores.iter().zip(&targets).enumerate() {
                let (loss, slope) = if target.is_nan() { (0.0, 0.0) } else { score.logistic(target) };
                losses[place % width] += loss;
                slopes.push(slope);
            }
            for arch in every_arch() {
                let (mut got, mut of_scores) = (vec![0.5; width], vec![f32::NAN; scores.len()]);
                arch.dispatch(
                    #[inline(always)]
                    || logistic_columns_loop(&scores, &targets, &mut of_scores, &mut got),
                );
                prop_assert_eq!(&got, &losses);
                prop_assert_eq!(&of_scores, &slopes);
            }
        }
    }

    #[test]
    fn polynomials_are_good_to_the_last_digits() {
        for step in 0..=7000 {
            let x = -0.1 * f64::from(step);
            assert!((exp_of_negative(x) / x.exp() - 1.0).abs() < 1e-15, "{x}");
            let x = f64::from(step) / 7000.0;
            assert!((log_of_one_and(x) - x.ln_1p()).abs() <= 1e-15, "{x}");
        }
        let mut slopes = [0.0; 3];
        assert!(logistic_losses(&[f32::NAN, 0.0, 1.0], &[0.5; 3], &mut slopes).is_nan());
        assert!(slopes[0].is_nan());
        assert!(!logistic_losses(&[f32::INFINITY], &[0.5], &mut slopes[..1]).is_finite());
    }
}
