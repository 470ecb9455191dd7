//! Confidence intervals of squares, by test inversion: all values that the estimate does not
//! reject.
//!
//! Squares are skewed, and vary less the smaller they are. An interval from the observed standard
//! error is too wide near 0, too narrow above, and shifted. If the variance and skewness are known
//! as functions of the true value, the interval follows from them.

use super::{Estimate, Estimator, Form};
use crate::bags::Noise;
use statrs::distribution::{ContinuousCDF, Normal};
use statrs::function::gamma::gamma_lr;

/// The second and third cumulant of an unbiased estimate.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spread {
    pub(super) variance: f64,
    pub(super) third: f64,
}

impl Spread {
    /// The cumulants of the sum with an independent estimate.
    pub(super) fn plus(self, other: Self) -> Self {
        Self { variance: self.variance + other.variance, third: self.third + other.third }
    }

    /// The probability that the error is at most this: a gamma distribution shifted to mean 0 with
    /// these cumulants (Pearson's type III).
    fn below(self, error: f64) -> f64 {
        /// From this shape on, a gamma distribution is treated as normal.
        const NORMAL: f64 = 1e6;
        let deviation = self.variance.sqrt();
        if deviation <= 0.0 {
            return if error >= 0.0 { 1.0 } else { 0.0 };
        }
        let z = error / deviation;
        let shape = 4.0 * self.variance.powi(3) / self.third.powi(2);
        if shape >= NORMAL {
            return Normal::standard().cdf(z);
        }
        let place = |z: f64| shape + z * shape.sqrt();
        let lower = |z: f64| if place(z) > 0.0 { gamma_lr(shape, place(z)) } else { 0.0 };
        if self.third > 0.0 { lower(z) } else { 1.0 - lower(-z) }
    }
}

impl Estimator<'_> {
    /// All true values for which the estimate is in neither tail; `spread` gives the cumulants at a
    /// value from 0 to `most`. The interval may leave that range, as the estimate may.
    pub(super) fn inverted(&self, value: f64, most: f64, spread: impl Fn(f64) -> Spread) -> Estimate {
        /// Nothing is further off than this many standard errors.
        const FAR: f64 = 20.0;
        let tail = 0.5 - 0.5 * self.level;
        let at = |truth: f64| spread(truth.clamp(0.0, most));
        let below = |truth: f64| at(truth).below(value - truth);
        let least = value.min(0.0) - FAR * at(0.0).variance.sqrt();
        let most = value.max(most) + FAR * at(most).variance.sqrt();
        let low = crossing(least, most, |truth| 1.0 - below(truth) >= tail);
        let high = crossing(least, most, |truth| below(truth) < tail);
        Estimate::new(value, at(value).variance.sqrt(), [low, high], Form::Squares)
    }

    /// The cumulants of the squared form of two classes when rows with this mean square are
    /// randomly assigned to bags; `centre` is the part of the pooled residual.
    ///
    /// A row's own square is in the sum in every assignment, so only products of different rows
    /// vary, and noise. With σ² the mean minus the centre and ε the noise of a bag's count, (Σe +
    /// ε)² has the variance 2k(k−1)σ⁴ + 4kσ²·Eε² + Var ε²; its third cumulant is computed likewise.
    pub(super) fn dealt_squares(&self, centre: f64, of_pooled: f64) -> impl Fn(f64) -> Spread + use<> {
        let bags = self.bags;
        let (n_rows, n_bags) = (bags.n_members() as f64, bags.n_bags() as f64);
        let kappa = (n_rows - 1.0) / (n_rows * (n_bags - 1.0));
        // Moments of noise, over powers of its variance.
        let (fourth, sixth): (f64, f64) = match bags.noise() {
            Noise::None => (0.0, 0.0),
            Noise::Laplace(_) => (6.0, 90.0),
            Noise::Gaussian(_) => (3.0, 15.0),
        };
        // Coefficients of powers of σ².
        let (mut variance, mut third) = ([0.0; 3], [0.0; 4]);
        for (bag, size) in bags.sizes().enumerate() {
            let (k, noise) = (size as f64, bags.count_variance(bag));
            // Bags are one fewer than they seem, their mean being given.
            let (square, cube) = ((kappa / k).powi(2), (kappa / k).powi(3));
            let free = 1.0 - 1.0 / n_bags;
            variance[2] += free * square * 2.0 * k * (k - 1.0);
            variance[1] += free * square * 4.0 * k * noise;
            variance[0] += free * square * (fourth - 1.0).max(0.0) * noise.powi(2);
            third[3] += free * cube * 8.0 * k * (k - 1.0) * (k - 2.0);
            third[2] += free * cube * 24.0 * k * k * noise;
            third[1] += free * cube * 12.0 * k * (fourth - 1.0).max(0.0) * noise.powi(2);
            third[0] += free * cube * (sixth - 3.0 * fourth + 2.0) * noise.powi(3);
        }
        variance[0] += of_pooled;
        move |mean| {
            let square = (mean - centre).max(0.0);
            let at = |powers: &[f64]| powers.iter().rev().fold(0.0, |sum, factor| sum * square + factor);
            Spread { variance: at(&variance), third: at(&third) }
        }
    }

    /// The addition to [`Self::dealt_squares`] if the rows are a sample, too: their own squares
    /// vary, and so does the pooled residual, including noise.
    ///
    /// Squares are between 0 and 1. Of all distributions with mean m on that range, zeros and ones
    /// have the largest variance, m(1 − m). The result is therefore exact for the error rate and an
    /// upper bound for the Brier score; it is small compared with declared noise.
    pub(super) fn drawn_squares(&self, centre: f64) -> impl Fn(f64) -> Spread + use<> {
        let bags = self.bags;
        let n_rows = bags.n_members() as f64;
        let noise: f64 = (0..bags.n_bags()).map(|bag| bags.count_variance(bag)).sum();
        move |mean| {
            let single = mean * (1.0 - mean).max(0.0);
            let of_residual = ((mean - centre).max(0.0) + noise / n_rows) / n_rows;
            Spread {
                variance: single / n_rows + 4.0 * centre * of_residual,
                third: single * (1.0 - 2.0 * mean) / n_rows.powi(2),
            }
        }
    }
}

/// The first place from `least` to `most` where something holds that holds from there on; `most` if it never does.
fn crossing(least: f64, most: f64, holds: impl Fn(f64) -> bool) -> f64 {
    if holds(least) {
        return least;
    }
    let (mut low, mut high) = (least, most);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if holds(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bags::{Bags, Partition};

    #[test]
    fn the_shifted_gamma_is_a_chi_square_where_it_should_be() {
        // 5 degrees of freedom: mean 5, variance 10, third cumulant 40; P(χ² ≤ 11.0705) = 0.95.
        let spread = Spread { variance: 10.0, third: 40.0 };
        assert!((spread.below(11.0705 - 5.0) - 0.95).abs() < 1e-5);
        assert!(spread.below(-5.5).abs() < 1e-12);
        // And its mirror image.
        let mirrored = Spread { third: -40.0, ..spread };
        assert!((mirrored.below(5.0 - 11.0705) - 0.05).abs() < 1e-5);
        let normal = Spread { third: 1e-9, ..spread };
        assert!((normal.below(1.959_964 * 10.0_f64.sqrt()) - 0.975).abs() < 1e-6);
        let certain = Spread { variance: 0.0, third: 0.0 };
        assert!(certain.below(0.0) > 0.5 && certain.below(-1.0) < 0.5);
    }

    /// Four rows e = (1, −1, 0, 0) dealt into two bags of two: in one way of three both sums are 0, in two they are ±1,
    /// so that κ Σ k·r̄² is 0 or 3/4, with variance 1/8.
    #[test]
    fn what_varies_is_what_dealing_changes() {
        let ways: [[f64; 2]; 3] = [[0.0, 0.0], [1.0, -1.0], [1.0, -1.0]];
        let values = ways.map(|sums| 0.75 * sums.iter().map(|sum| sum * sum / 2.0).sum::<f64>());
        let mean = values.iter().sum::<f64>() / 3.0;
        assert!((mean - 0.5).abs() < 1e-12, "unbiased");
        let exact = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 3.0;
        let bags = Bags::binary(Partition::new(4, [[0, 1], [2, 3]]).unwrap(), &[1.0, 0.0], Noise::None);
        let bags = bags.unwrap();
        let spread = Estimator::new(&bags).unwrap().dealt_squares(0.0, 0.0)(0.5);
        assert!((spread.variance / exact - 1.0).abs() < 0.3, "{} {exact}", spread.variance);
    }
}
