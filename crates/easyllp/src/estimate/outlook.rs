//! Choose the form of a metric with the smaller expected variance, from the scores alone.

use super::Estimator;
use crate::bags::Bags;
use crate::predictions::Predictions;

/// The expected variance of each form times the number of bags, without the common part; 0 if
/// unknown.
#[derive(Debug, Default)]
pub(super) struct Outlook {
    squares: f64,
    mean: f64,
}

impl Outlook {
    /// For a metric of two classes, if the predicted probabilities q hold: the means over rows of
    /// q(1 − q) and of the expected metric, and the variance of its difference between the classes.
    ///
    /// The result does not depend on which row is in which bag, so the choice leaves both forms
    /// unbiased.
    pub(super) fn new(bags: &Bags, chance: f64, expected: f64, spread: f64) -> Self {
        let n_bags = bags.n_bags() as f64;
        let mut outlook = Self::default();
        for (bag, size) in bags.sizes().enumerate() {
            let k = size as f64;
            let noise = bags.count_variance(bag) / k;
            // What single rows add is in both.
            let together = (1.0 - 1.0 / k) / n_bags;
            outlook.squares += together * 2.0 * (expected + noise).powi(2);
            outlook.mean += together * (chance + noise) * spread;
        }
        outlook
    }

    /// Whether the mean promises at most half the standard error. A smaller gain is not enough: an
    /// underconfident model makes fewer errors than its probabilities say, which only the squared
    /// form uses.
    pub(super) fn favours_mean(&self) -> bool {
        self.mean < 0.25 * self.squares
    }
}

impl Estimator<'_> {
    /// The forms of the error rate of two classes.
    pub(super) fn error_outlook(&self, predictions: &Predictions) -> Outlook {
        let bags = self.bags;
        if bags.n_classes() != 2 {
            return Outlook::default();
        }
        let sums = self.sums_of(predictions, |reader, place, line| {
            reader.decision(place, line.g);
            reader.probabilities(place, line.q);
            let (q, decision) = (line.q[1], line.g[1]);
            let expected = if decision > 0.5 { 1.0 - q } else { q };
            // The sums have room for four numbers; these three are needed.
            (line.q[0], line.q[1]) = (q * (1.0 - q), expected);
            line.g[0] = 0.0;
        });
        let n_rows = bags.n_members() as f64;
        let (chance, expected) = (sums.q.column(0).sum() / n_rows, sums.q.column(1).sum() / n_rows);
        // The difference is 1 or −1.
        let difference = 1.0 - 2.0 * sums.g.column(1).sum() / n_rows;
        Outlook::new(bags, chance, expected, 1.0 - difference * difference)
    }
}
