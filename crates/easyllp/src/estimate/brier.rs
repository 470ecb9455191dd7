//! The Brier score, from sums over bags that can be reused for subsets of the bags.

use super::outlook::Outlook;
use super::squares::Squares;
use super::{BagSums, Estimate, Estimator};
use crate::error::Result;
use crate::metrics::brier_share;
use crate::predictions::Predictions;
use ndarray::{Array2, Axis};

/// Per bag, sums over its rows: a column per class.
pub(crate) struct BrierSums {
    probabilities: Array2<f64>,
    squares: Array2<f64>,
}

impl BrierSums {
    /// The sums of some bags.
    pub(crate) fn select(&self, bags: &[usize]) -> Self {
        Self {
            probabilities: self.probabilities.select(Axis(0), bags),
            squares: self.squares.select(Axis(0), bags),
        }
    }
}

impl Estimator<'_> {
    /// Brier score: mean squared difference of predicted probability and truth; of class 1 for two
    /// classes, else summed over the classes.
    pub fn brier(&self, predictions: &Predictions) -> Result<Estimate> {
        Ok(self.brier_from(self.brier_sums(predictions)?))
    }

    /// One pass over the rows.
    pub(crate) fn brier_sums(&self, predictions: &Predictions) -> Result<BrierSums> {
        predictions.check(self.bags)?;
        predictions.check_probabilities()?;
        let BagSums { q, g, .. } = self.sums_of(predictions, |reader, place, line| {
            reader.probabilities(place, line.q);
            line.g.iter_mut().zip(&*line.q).for_each(|(square, q)| *square = q * q);
        });
        Ok(BrierSums { probabilities: q, squares: g })
    }

    /// The score of these bags.
    pub(crate) fn brier_from(&self, sums: BrierSums) -> Estimate {
        let share = brier_share(self.bags.n_classes());
        let estimate = if self.brier_outlook(&sums).favours_mean() {
            let n_rows = ndarray::Array1::from_iter(self.bags.sizes().map(|size| size as f64));
            let BrierSums { probabilities, squares } = sums;
            let all = squares.sum_axis(Axis(1));
            // g_c = share · Σ_d (1[c = d] − q_d)², of which Σ_c q_c g_c is left with the model's own labels.
            let mut g = -2.0 * &probabilities;
            g += &(&all + &n_rows).insert_axis(Axis(1));
            g *= share;
            self.estimate_mean(&BagSums { own: share * (n_rows - all), g, q: probabilities })
        } else {
            self.squares_interval(&self.squares_of(&sums.probabilities, share), 2.0 * share)
        };
        estimate.clipped(0.0, 2.0 * share)
    }

    /// For two classes: a row with probability q has the expectation q(1 − q), and the classes
    /// differ by 1 − 2q.
    fn brier_outlook(&self, sums: &BrierSums) -> Outlook {
        if self.bags.n_classes() != 2 {
            return Outlook::default();
        }
        let n_rows = self.bags.n_members() as f64;
        let mean = |of: &Array2<f64>| of.column(1).sum() / n_rows;
        let (q, square) = (mean(&sums.probabilities), mean(&sums.squares));
        let spread = 4.0 * (square - q * q);
        Outlook::new(self.bags, q - square, q - square, spread)
    }

    pub(super) fn brier_squares(&self, predictions: &Predictions) -> Result<Squares> {
        let sums = self.brier_sums(predictions)?;
        Ok(self.squares_of(&sums.probabilities, brier_share(self.bags.n_classes())))
    }
}
