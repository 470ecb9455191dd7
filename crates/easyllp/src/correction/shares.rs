//! Shift targets so that their means are class shares.
//!
//! Log loss and hinge loss are unbounded below along a shift of all scores (the intercept has no
//! penalty) if the mean target of a class leaves (0, 1). Corrected targets can do that. The paper's
//! form with a known prior has the mean p + Σk_i²(α_i − p)/N, whose variance is p(1 − p)Σk_i³/N².
//! Surrogate labels add as much variance, and noisy counts of a rare class may have a negative sum.
//! No class share lies outside (0, 1). Training therefore adds one constant per class, which moves
//! the mean to the known prior, or to the pooled share clipped into (0, 1).
//!
//! The constant does not change how targets differ between bags, and it removes the noise of the
//! mean from the intercept. It adds a small bias. With a known prior the corrected risk is
//! `E[(1−p)ℓ₀ + pℓ₁] + Cov(y, ℓ₁ − ℓ₀)`, and the shift multiplies the estimated covariance by 1 −
//! Σk_i²/N², which is 1 − 1/n for n bags of one size (`enumeration.rs` proves it). Without a known
//! prior nothing is shifted unless the pooled share leaves (0, 1). Surrogate labels are shifted
//! without bias, since their draws do not depend on the rows.

use super::{Line, Targets};
use crate::bags::Bags;
use crate::classes::columns;
use crate::prior::onto_simplex;
use ndarray::ArrayView1;

/// The relative rounding error allowed in a mean of `f32` targets.
const ROUNDING: f64 = 1e-6;

impl Targets {
    /// Adds one constant per class so that the targets of these rows average to shares in (0, 1):
    /// the given shares, one per class, or else the targets' own means. Means that match up to
    /// rounding are not changed.
    #[expect(clippy::cast_possible_truncation, reason = "targets are stored as f32")]
    pub(crate) fn shift_to_shares(&mut self, rows: &[u32], shares: Option<Vec<f64>>) {
        let n_classes = self.n_classes();
        let largest = self.0.iter().fold(1.0_f64, |largest, &target| largest.max(f64::from(target.abs())));
        let means: Vec<f64> = self.0.columns().into_iter().map(|column| mean(column, rows)).collect();
        let by_class = match means[..] {
            [positive] => vec![1.0 - positive, positive],
            _ => means.clone(),
        };
        let least = (0.5 / rows.len() as f64).max(ROUNDING * largest).min(0.5 / n_classes as f64);
        let shares = inside(shares.unwrap_or_else(|| by_class.clone()), least);
        let is_near = |(mean, share): (&f64, &f64)| (mean - share).abs() <= ROUNDING * largest;
        if by_class.iter().all(|&mean| mean > 0.0 && mean < 1.0) && by_class.iter().zip(&shares).all(is_near)
        {
            return;
        }
        for ((column, class), mean) in self.0.columns_mut().into_iter().zip(columns(n_classes)).zip(means) {
            let shift = shares[class] - mean;
            let mut column = column;
            for &row in rows {
                let target = &mut column[row as usize];
                *target = (f64::from(*target) + shift) as f32;
            }
        }
    }

    fn n_classes(&self) -> usize {
        self.0.ncols().max(2)
    }
}

fn mean(column: ArrayView1<f32>, rows: &[u32]) -> f64 {
    rows.iter().map(|&row| f64::from(column[row as usize])).sum::<f64>() / rows.len() as f64
}

/// The nearest shares that are at least `least` each.
pub(crate) fn inside(shares: Vec<f64>, least: f64) -> Vec<f64> {
    if shares.iter().all(|&share| share >= least) {
        return shares;
    }
    let raised: Vec<f64> = onto_simplex(shares).into_iter().map(|share| share.max(least)).collect();
    let sum: f64 = raised.iter().sum();
    raised.into_iter().map(|share| share / sum).collect()
}

impl Line {
    /// The mean of soft targets over all rows, by class.
    pub(crate) fn means(&self, bags: &Bags) -> Vec<f64> {
        let n_rows = bags.n_members() as f64;
        let of_bag = |bag, class| bags.size(bag) as f64 * self.exact(bag, class, bags.proportion(bag, class));
        let sum = |class| (0..bags.n_bags()).map(|bag| of_bag(bag, class)).sum::<f64>();
        (0..bags.n_classes()).map(|class| sum(class) / n_rows).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Axis, array};

    #[test]
    fn means_that_are_shares_are_left_as_they_are() {
        let targets = Targets(array![[-3.0_f32], [3.7], [0.5]]);
        let mut shifted = targets.clone();
        shifted.shift_to_shares(&[0, 1, 2], None);
        assert_eq!(shifted, targets);
        // A share of 0.4 is the mean, up to the rounding of f32.
        shifted.shift_to_shares(&[0, 1, 2], Some(vec![0.6, 0.4]));
        assert_eq!(shifted, targets);
    }

    #[test]
    fn means_outside_go_to_the_known_shares_or_just_inside() {
        let rows = [0, 2];
        for (shares, expected) in [(Some(vec![0.7, 0.3]), 0.3), (None, 0.75), (Some(vec![0.0, 1.0]), 0.75)] {
            let mut targets = Targets(array![[4.0_f32], [100.0], [2.0]]);
            targets.shift_to_shares(&rows, shares);
            // Half a row of two: 1 − 0.25, renormalised to (0.25, 1)/1.25 = (0.2, 0.8).
            let expected = if expected > 0.5 { 0.8 } else { expected };
            let values = targets.values();
            assert!((mean(values.column(0), &rows) - expected).abs() < 1e-6, "{values}");
            assert!((values[[0, 0]] - values[[2, 0]] - 2.0).abs() < 1e-6, "one constant for all rows");
            assert!((values[[1, 0]] - 100.0).abs() < 1e-6, "rows without a target are not touched");
        }
    }

    #[test]
    fn targets_of_several_classes_still_sum_to_one() {
        let mut targets = Targets(array![[-0.5_f32, 0.5, 1.0], [-0.3, 0.4, 0.9]]);
        targets.shift_to_shares(&[0, 1], None);
        assert!(targets.values().sum_axis(Axis(1)).iter().all(|sum| (sum - 1.0).abs() < 1e-6));
        let means = targets.values().mean_axis(Axis(0)).unwrap();
        assert!(means.iter().all(|&mean| mean > 0.0 && mean < 1.0), "{means}");
        assert!(means[0] < means[1] && means[1] < means[2], "{means}");
    }
}
