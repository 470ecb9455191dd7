//! Calibration and lift, from groups of rows with similar scores.

use super::inversion::Spread;
use super::joint::WeighedSums;
use super::statistic::Statistic;
use super::threshold::Walk;
use super::{Estimate, Estimator};
use crate::error::{Error, Result};
use crate::kernel::matrix_product;
use crate::predictions::Predictions;
use ndarray::{Array1, Array2};
use serde::Serialize;

/// Rows of similar predicted probability.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CalibrationGroup {
    /// The share of all rows in the group.
    pub share: f64,
    /// The mean predicted probability of class 1.
    pub predicted: f64,
    /// The share of class 1 in the group, estimated from the bags.
    pub observed: Estimate,
}

/// Calibration, by group and overall.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Calibration {
    /// The groups, from the lowest probability to the highest.
    pub groups: Vec<CalibrationGroup>,
    /// The mean over rows of (observed − predicted)² of their group. Squares are products of
    /// different bags, so that noise adds nothing; the estimate may be below 0.
    pub squared_error: Estimate,
}

/// The rows with the highest scores.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LiftRow {
    /// The share of all rows with scores this high.
    pub selected: f64,
    /// Lift: the share of class 1 among them, divided by the share among all rows.
    pub lift: Estimate,
    /// The share of all rows of class 1 that is among them.
    pub captured: Estimate,
}

impl Estimator<'_> {
    /// Calibration in this number of groups of nearly equal size. Requires two classes.
    pub fn calibration(&self, predictions: &Predictions, n_groups: usize) -> Result<Calibration> {
        predictions.check_probabilities()?;
        let members = self.members_of(predictions)?;
        let n_bags = self.bags.n_bags();
        let control = members.sum(n_bags, |member| members.controls[member]);
        let mut walk = Walk::new(&members, n_bags);
        let mut groups = Vec::new();
        let mut differences: Vec<(f64, Statistic)> = Vec::new();
        for end in members.group_ends(&walk.order, n_groups.max(1)) {
            walk.forget();
            walk.to(end);
            let sums = WeighedSums { weight: &walk.selected, product: &walk.products, control: &control };
            let positives = self.joint(1, &sums);
            let share = self.plain_mean(&walk.selected);
            let predicted = self.plain_mean(&walk.products);
            groups.push(CalibrationGroup {
                share: share.value,
                predicted: predicted.value / share.value,
                observed: self.estimate(&positives.over(&share), 0.0, 1.0),
            });
            differences.push((share.value, positives.minus(&predicted)));
        }
        groups.reverse();
        Ok(Calibration { groups, squared_error: self.squared_differences(&differences) })
    }

    /// Σ D²/w over groups of share w, with the variance of D subtracted from its square.
    ///
    /// With C the covariance of the estimated D and W⁻¹ the weights 1/w, Σ D²/w has the variance 4
    /// D'W⁻¹CW⁻¹D + 2 tr (CW⁻¹)² and the third cumulant 24 D'W⁻¹(CW⁻¹)²D + 8 tr (CW⁻¹)³. The true D
    /// is assumed to have the direction of the estimated one.
    fn squared_differences(&self, differences: &[(f64, Statistic)]) -> Estimate {
        let n_groups = differences.len();
        // √W⁻¹ C √W⁻¹ and √W⁻¹ D.
        let scale = |place: usize| differences[place].0.sqrt().recip();
        let covariance = Array2::from_shape_fn((n_groups, n_groups), |(a, b)| {
            self.covariance(&differences[a].1, &differences[b].1) * scale(a) * scale(b)
        });
        let seen = Array1::from_shape_fn(n_groups, |place| differences[place].1.value * scale(place));
        let square = matrix_product(covariance.view(), covariance.view());
        let cube = matrix_product(square.view(), covariance.view());
        let total = seen.dot(&seen);
        let along = |matrix: &Array2<f64>| seen.dot(&matrix.dot(&seen)) / total.max(f64::MIN_POSITIVE);
        let (along_once, along_twice) = (along(&covariance), along(&square));
        let trace = |matrix: &Array2<f64>| matrix.diag().sum();
        let (of_variance, of_third) = (2.0 * trace(&square), 8.0 * trace(&cube));
        let estimate = self.inverted(total - trace(&covariance), 1.0, |truth| Spread {
            variance: 4.0 * along_once * truth + of_variance,
            third: 24.0 * along_twice * truth + of_third,
        });
        estimate.clipped(0.0, 1.0)
    }

    /// Lift and gain of the highest scores, in steps of nearly equal size up to all rows. Requires
    /// two classes.
    pub fn lift(&self, predictions: &Predictions, n_steps: usize) -> Result<Vec<LiftRow>> {
        let members = self.members_of(predictions)?;
        let n_bags = self.bags.n_bags();
        let share = self.class_share(1);
        if share.value <= 0.0 {
            return Err(Error::OneClass { what: "lift" });
        }
        let control = members.sum(n_bags, |member| members.controls[member]);
        let mut walk = Walk::new(&members, n_bags);
        let mut rows = Vec::new();
        for end in members.group_ends(&walk.order, n_steps.max(1)) {
            walk.to(end);
            let sums = WeighedSums { weight: &walk.selected, product: &walk.products, control: &control };
            let captured = self.joint(1, &sums).over(&share);
            let selected = self.plain_mean(&walk.selected);
            rows.push(LiftRow {
                selected: selected.value,
                lift: self.estimate(&captured.over(&selected), 0.0, 1.0 / selected.value),
                captured: self.estimate(&captured, 0.0, 1.0),
            });
        }
        Ok(rows)
    }
}
