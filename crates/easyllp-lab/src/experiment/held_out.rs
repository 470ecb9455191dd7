//! Validation bags with a copy of their rows.

use easyllp::{Bags, Estimator, Predictions, loss::Link};
use ndarray::ArrayView2;

/// Bags with indices into these rows.
pub(super) struct HeldOut {
    /// The row indices in the whole table.
    pub(super) rows: Vec<u32>,
    bags: Bags,
}

impl HeldOut {
    /// Copies these bags and their rows.
    pub(super) fn new(bags: &Bags) -> Self {
        let (rows, bags) = bags.reindexed();
        Self { rows, bags }
    }

    /// The Brier score of scores, one for each of the rows.
    pub(super) fn brier(&self, scores: ArrayView2<f32>, link: Link) -> easyllp::Result<f64> {
        Ok(Estimator::new(&self.bags)?.brier(&Predictions::new(scores, link)?)?.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use easyllp::bagging::{self, Sizes};
    use ndarray::Array2;

    #[test]
    fn it_is_the_score_of_the_bags_among_all_rows() {
        let labels: Vec<u32> = (0..600).map(|row| u32::from(row % 3 == 0)).collect();
        let scores = Array2::from_shape_fn((600, 1), |(row, _)| (row as f32 * 0.7).sin());
        let bags = Bags::from_labels(bagging::random(600, &Sizes::Fixed(5), 1).unwrap(), &labels, 2).unwrap();
        let held_out = bagging::split(&bags, 0.3, 2).unwrap().held_out;
        let expected = Estimator::new(&held_out)
            .unwrap()
            .brier(&Predictions::new(scores.view(), Link::Logit).unwrap())
            .unwrap();
        let apart = HeldOut::new(&held_out);
        let of_rows = apart.rows.iter().map(|&row| scores[[row as usize, 0]]).collect();
        let of_rows = Array2::from_shape_vec((apart.rows.len(), 1), of_rows).unwrap();
        assert!((apart.brier(of_rows.view(), Link::Logit).unwrap() - expected.value).abs() < 1e-12);
    }
}
