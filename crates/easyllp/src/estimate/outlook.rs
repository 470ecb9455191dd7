//! Which form of a figure will vary less, told by the scores alone.

use super::Estimator;
use crate::predictions::Predictions;
use ndarray::Array2;

/// The variance of each form times the number of bags, but for what both have in common; 0 where they are not known.
#[derive(Debug, Default)]
pub(super) struct Outlook {
    squares: f64,
    mean: f64,
}

impl Outlook {
    /// Whether the mean promises at most half the standard error. Less will not do: a model whose probabilities are too timid
    /// makes fewer errors than it says, and the squares know.
    pub(super) fn favours_mean(&self) -> bool {
        self.mean < 0.25 * self.squares
    }
}

impl Estimator<'_> {
    /// What the two forms of a figure of two classes will vary by, if the model's probabilities hold. `of_row` has the figure
    /// that is expected of a row and what it would differ by between the classes, given probability and decision of class 1.
    /// Nothing here depends on which row is in which bag, so that the choice leaves both forms unbiased.
    pub(super) fn outlook(
        &self,
        predictions: &Predictions,
        of_row: impl Fn(f64, f64) -> (f64, f64) + Sync,
    ) -> Outlook {
        let bags = self.bags;
        if bags.n_classes() != 2 {
            return Outlook::default();
        }
        let sums = self.sums_of(predictions, |reader, place, line| {
            reader.decision(place, line.g);
            reader.probabilities(place, line.q);
            let (q, decision) = (line.q[1], line.g[1]);
            let (expected, difference) = of_row(q, decision);
            // Four sums a bag are at hand, and these four are needed.
            (line.q[0], line.q[1]) = (q * (1.0 - q), difference * difference);
            (line.g[0], line.g[1]) = (expected, difference);
        });
        let n_rows = bags.n_members() as f64;
        let mean = |of: &Array2<f64>, place: usize| of.column(place).sum() / n_rows;
        let (chance, figure, difference) = (mean(&sums.q, 0), mean(&sums.g, 0), mean(&sums.g, 1));
        let spread = mean(&sums.q, 1) - difference * difference;
        let n_bags = bags.n_bags() as f64;
        let mut outlook = Outlook::default();
        for (bag, size) in bags.sizes().enumerate() {
            let k = size as f64;
            let noise = bags.count_variance(bag) / k;
            // What single rows add is in both.
            let together = (1.0 - 1.0 / k) / n_bags;
            outlook.squares += together * 2.0 * (figure + noise).powi(2);
            outlook.mean += together * (chance + noise) * spread;
        }
        outlook
    }
}
