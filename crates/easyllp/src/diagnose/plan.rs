//! Plan a data collection: how much information do n bags of k rows hold?

use crate::bags::Bags;
use crate::error::{Error, Result};
use serde::Serialize;

/// The approximate number of labelled rows that would train an equally good linear model.
///
/// A linear model learns from the covariance of label and features. A bag of any size estimates it
/// with the same variance as a single row, as long as features explain little of the label, so a
/// bag counts as a row. Declared noise σ² on a count reduces that to p(1−p)/(p(1−p) + σ²/k). If
/// features explain much of the label, labelled rows are worth more.
pub fn equivalent_rows(bags: &Bags) -> f64 {
    // Over the classes the rarest variance rules; for two there is one.
    let spread = bags.pooled_proportions().iter().map(|p| p * (1.0 - p)).fold(f64::INFINITY, f64::min);
    let of_bag = |bag: usize| {
        let noise = bags.count_variance(bag) / bags.size(bag) as f64;
        if noise > 0.0 { spread.max(0.0) / (spread.max(0.0) + noise) } else { 1.0 }
    };
    (0..bags.n_bags()).map(of_bag).sum()
}

/// The expected standard error of an estimated error rate, for bags of one size without noise.
///
/// Squared residuals of bags have variance 2·error², as normal ones do; for single rows it is
/// error·(1 − error).
///
/// ```
/// use easyllp::diagnose::{bags_needed, expected_standard_error};
///
/// // An error of 2.25 %, seen through 39 bags of 256.
/// let expected = expected_standard_error(0.0225, 256, 39)?;
/// assert!((expected - 0.0054).abs() < 1e-4);
/// assert_eq!(bags_needed(0.0225, 256, expected)?, 39);
/// # Ok::<(), easyllp::Error>(())
/// ```
pub fn expected_standard_error(error: f64, size: usize, n_bags: usize) -> Result<f64> {
    let variance = variance_of_one(error, size)?;
    if n_bags < 2 {
        return Err(Error::TooFewBags { what: "an estimate", needed: 2, got: n_bags });
    }
    Ok((variance / (n_bags as f64 - 1.0)).sqrt())
}

/// The number of bags of one size needed to estimate an error rate with this standard error.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a number of bags that is not small"
)]
pub fn bags_needed(error: f64, size: usize, standard_error: f64) -> Result<usize> {
    let variance = variance_of_one(error, size)?;
    if !(standard_error > 0.0 && standard_error < 1.0) {
        let value = standard_error.to_string();
        return Err(Error::Setting { name: "standard error", value, expected: "between 0 and 1" });
    }
    // Rounding must not ask for one more.
    let needed = (variance / standard_error.powi(2) - 1e-9).ceil();
    Ok((needed as usize).saturating_add(1).max(2))
}

fn variance_of_one(error: f64, size: usize) -> Result<f64> {
    if !(error > 0.0 && error < 1.0) {
        let value = error.to_string();
        return Err(Error::Setting { name: "error", value, expected: "between 0 and 1" });
    }
    if size == 0 {
        return Err(Error::Setting { name: "bag size", value: "0".into(), expected: "at least 1" });
    }
    let single = 1.0 / size as f64;
    Ok(2.0 * error * error * (1.0 - single) + error * (1.0 - error) * single)
}

/// The class of linear models that a bound holds for: ‖w‖·‖x‖ at most `reach`, and log loss.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinearClass {
    /// The largest absolute score.
    pub reach: f64,
}

/// A uniform bound on the difference between the loss on the data and the loss on the population.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Bounds {
    /// From n bags of k rows: Γ(k, n, δ) of the paper (Theorem *ucb*).
    pub from_bags: f64,
    /// From the same n·k rows with their labels (eq. *event_level*).
    pub from_rows: f64,
}

impl LinearClass {
    /// Both bounds; each holds with probability at least 1 − δ.
    pub fn bounds(self, size: usize, n_bags: usize, delta: f64) -> Result<Bounds> {
        let Self { reach } = self;
        if !(reach > 0.0 && reach.is_finite()) {
            let value = reach.to_string();
            return Err(Error::Setting { name: "largest score", value, expected: "above 0" });
        }
        if !(delta > 0.0 && delta < 1.0) {
            return Err(Error::Setting {
                name: "delta",
                value: delta.to_string(),
                expected: "between 0 and 1",
            });
        }
        if size == 0 || n_bags == 0 {
            return Err(Error::NoRows);
        }
        let (k, n) = (size as f64, n_bags as f64);
        // Rademacher complexity of the class through a loss that changes by at most 1 per unit of score (Talagrand).
        let complexity = reach / (k * n).sqrt();
        let largest_loss = reach.exp().ln_1p();
        let factor = 2.0 * ((2.0 * k * (k * n).ln()).sqrt() + 1.0);
        let confidence = (2.0 / delta).ln();
        Ok(Bounds {
            from_bags: factor * 2.0 * complexity
                + 4.0 * largest_loss / n
                + 4.0 * largest_loss * (k * confidence / (2.0 * n)).sqrt(),
            from_rows: 2.0 * complexity + largest_loss * (confidence / (2.0 * k * n)).sqrt(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bags::{Noise, Partition};

    #[test]
    fn bags_count_as_rows_but_for_noise() {
        let partition = || Partition::new(8, [[0, 1], [2, 3], [4, 5], [6, 7]]).unwrap();
        let bags = |noise| Bags::binary(partition(), &[1.0, 2.0, 0.0, 1.0], noise).unwrap();
        assert!((equivalent_rows(&bags(Noise::None)) - 4.0).abs() < 1e-12);
        // p(1 − p) = 1/4 and σ²/k = 1/4: each bag says half as much.
        let noisy = bags(Noise::Gaussian(vec![0.5_f64.sqrt(); 4]));
        assert!((equivalent_rows(&noisy) - 2.0).abs() < 1e-12);
    }

    #[test]
    fn single_rows_need_what_a_share_needs() {
        // √(0.1·0.9/900) = 0.01
        assert!((expected_standard_error(0.1, 1, 901).unwrap() - 0.01).abs() < 1e-12);
        assert_eq!(bags_needed(0.1, 1, 0.01).unwrap(), 901);
        // √(2/50)·0.1 for large bags
        assert!((expected_standard_error(0.1, 1_000_000, 51).unwrap() - 0.02).abs() < 1e-5);
        for refused in [bags_needed(0.0, 8, 0.1), bags_needed(0.1, 0, 0.1), bags_needed(0.1, 8, 0.0)] {
            assert!(refused.is_err());
        }
        assert!(expected_standard_error(0.1, 8, 1).is_err());
    }

    #[test]
    fn bounds_by_hand() {
        // k = 1, n = 100, reach 1, δ = 2/e: log(2/δ) = 1.
        let delta = 2.0 / std::f64::consts::E;
        let bounds = LinearClass { reach: 1.0 }.bounds(1, 100, delta).unwrap();
        let largest = 1f64.exp().ln_1p();
        let rows = 0.2 + largest * (1.0 / 200.0_f64).sqrt();
        assert!((bounds.from_rows - rows).abs() < 1e-12);
        let factor = 2.0 * ((2.0 * 100f64.ln()).sqrt() + 1.0);
        let bags = factor * 0.2 + 0.04 * largest + 4.0 * largest * (1.0 / 200.0_f64).sqrt();
        assert!((bounds.from_bags - bags).abs() < 1e-12);
        // More bags help, larger ones do not.
        let bound = |k, n| LinearClass { reach: 1.0 }.bounds(k, n, 0.05).unwrap().from_bags;
        assert!(bound(8, 1000) < bound(8, 100) && bound(8, 1000) < bound(64, 1000));
        assert!(LinearClass { reach: 0.0 }.bounds(1, 1, 0.5).is_err());
        assert!(LinearClass { reach: 1.0 }.bounds(1, 1, 1.0).is_err());
    }
}
