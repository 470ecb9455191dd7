//! Combine estimates on separate bags into one.

use super::Estimate;

impl Estimate {
    /// The weighted mean of independent estimates of one kind; weights are relative to their sum.
    ///
    /// Half the length M of an interval is proportional to the standard error. Its asymmetry A is
    /// proportional to the third cumulant over the variance. M² therefore adds up with squared
    /// weights, and A·M² with cubed ones: the mean of skewed estimates is less skewed. If an end
    /// was clipped to the natural range, the unclipped end is used.
    pub(crate) fn mean_of(parts: &[(f64, Self)]) -> Self {
        let total: f64 = parts.iter().map(|(weight, _)| weight).sum();
        let (mut value, mut variance, mut square, mut cube) = (0.0, 0.0, 0.0, 0.0);
        for (weight, part) in parts {
            let weight = weight / total;
            let [low, high] = part.unclipped;
            let (half, lean) = (0.5 * (high - low), 0.5 * (high + low) - part.value);
            value += weight * part.value;
            variance += (weight * part.standard_error).powi(2);
            square += (weight * half).powi(2);
            cube += weight * lean * (weight * half).powi(2);
        }
        let interval = if square.is_finite() {
            let (half, lean) = (square.sqrt(), if square > 0.0 { cube / square } else { 0.0 });
            [value + lean - half, value + lean + half]
        } else {
            [f64::NEG_INFINITY, f64::INFINITY]
        };
        let (_, first) = parts[0];
        let [least, most] = first.range;
        Self::new(value, variance.sqrt(), interval, first.form).clipped(least, most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::Form;

    #[test]
    fn the_mean_of_equal_parts_is_narrower_and_less_skew() {
        let part = Estimate::new(0.3, 0.1, [0.2, 0.6], Form::Squares).clipped(0.0, 1.0);
        let mean = Estimate::mean_of(&[(5.0, part); 4]);
        let close = |left: f64, right: f64| assert!((left - right).abs() < 1e-12, "{left} {right}");
        close(mean.value, 0.3);
        close(mean.standard_error, 0.05);
        // Half the length is 0.2 / √4, the lean 0.1 / 4.
        close(mean.low, 0.3 + 0.025 - 0.1);
        close(mean.high, 0.3 + 0.025 + 0.1);
        // A part that has no weight has no say; one alone is what it was.
        let other = Estimate::new(0.9, 0.3, [0.1, 0.95], Form::Squares).clipped(0.0, 1.0);
        let alone = Estimate::mean_of(&[(1.0, part), (0.0, other)]);
        close(alone.low, part.low);
        close(alone.high, part.high);
        // What one part does not bound is not bounded.
        let unbounded = Estimate::new(0.1, 0.1, [0.05, f64::INFINITY], Form::Squares).clipped(0.0, 1.0);
        let mean = Estimate::mean_of(&[(1.0, part), (1.0, unbounded)]);
        assert_eq!((mean.low, mean.high), (0.0, 1.0));
    }

    #[test]
    fn an_end_that_was_clipped_counts_with_its_whole_distance() {
        let half = Estimate::new(0.95, 0.1, [0.75, 1.15], Form::Mean).clipped(0.0, 1.0);
        let mean = Estimate::mean_of(&[(1.0, half), (1.0, half)]);
        assert!((mean.low - (0.95 - 0.2 / 2.0_f64.sqrt())).abs() < 1e-12);
        assert!((mean.high - 1.0).abs() < 1e-12 && !mean.outside_range);
        let complement = Estimate::mean_of(&[(1.0, half.complement()), (1.0, half.complement())]);
        assert!((complement.high - (1.0 - mean.low)).abs() < 1e-12 && complement.low.abs() < 1e-12);
        // A value outside its range is pulled in by another that is inside.
        let outside = Estimate::new(1.05, 0.1, [0.85, 1.25], Form::Mean).clipped(0.0, 1.0);
        assert!(outside.outside_range && !Estimate::mean_of(&[(1.0, half), (1.0, outside)]).outside_range);
    }
}
