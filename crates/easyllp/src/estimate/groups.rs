//! Rows in groups by their score: does the model's probability hold in each (calibration), and how many positives are
//! where it is high (lift)?

use super::joint::BagSums;
use super::statistic::Statistic;
use super::threshold::Walk;
use super::{Estimate, Estimator, Form};
use crate::error::{Error, Result};
use crate::predictions::Predictions;
use serde::Serialize;

/// Rows of about one probability.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CalibrationGroup {
    /// The share of all rows that are in it.
    pub share: f64,
    /// The mean probability of class 1, as the model says.
    pub predicted: f64,
    /// The share of class 1 in it, as the bags say.
    pub observed: Estimate,
}

/// How well probabilities hold, group by group and in all.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Calibration {
    /// From the lowest probability to the highest.
    pub groups: Vec<CalibrationGroup>,
    /// The mean over rows of (observed − predicted)² of their group. The square of each difference is put together from
    /// products of different bags, so that noise adds nothing to it; the estimate may come out below 0.
    pub squared_error: Estimate,
}

/// The rows with the highest scores.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LiftRow {
    /// The share of all rows that are scored this high.
    pub selected: f64,
    /// The share of class 1 among them, over that among all rows.
    pub lift: Estimate,
    /// Of all rows of class 1, the share that is among them.
    pub captured: Estimate,
}

impl Estimator<'_> {
    /// Calibration in so many groups of about equal size. For two classes.
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
            let sums = BagSums { weight: &walk.selected, product: &walk.products, control: &control };
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

    /// Σ D²/w over groups of share w, D having its own variance taken off its square.
    fn squared_differences(&self, differences: &[(f64, Statistic)]) -> Estimate {
        let mut value = 0.0;
        // The variance of Σ D²/w is 4 Σ D·D'·C/(w·w') + 2 Σ C²/(w·w'), C being the covariance of D and D'. Estimated
        // D in the place of true ones make the first term too large by twice the second.
        let mut of_noise = 0.0;
        for (place, (share, difference)) in differences.iter().enumerate() {
            value += (difference.value.powi(2) - self.covariance(difference, difference)) / share;
            for (other_share, other) in &differences[..=place] {
                let times = if std::ptr::eq(&raw const *other, difference) { 2.0 } else { 4.0 };
                of_noise += times * self.covariance(difference, other).powi(2) / (share * other_share);
            }
        }
        let slopes: Vec<(f64, &Statistic)> = differences
            .iter()
            .map(|(share, difference)| (2.0 * difference.value / share, difference))
            .collect();
        let smooth = Statistic::of(value, &slopes);
        let standard_error = (self.covariance(&smooth, &smooth) - of_noise).max(of_noise).sqrt();
        self.t_interval(value, standard_error, Form::Squares).clipped(0.0, 1.0)
    }

    /// The best-scored rows in steps of about equal size, up to all of them. For two classes.
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
            let sums = BagSums { weight: &walk.selected, product: &walk.products, control: &control };
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
