//! The area under the ROC curve, from ranks: ½ + Cov(y, F)/(p(1 − p)), where F is a row's mid-rank among all rows as a share.
//!
//! Ranks need no labels, so this is a covariance that can be estimated from bags. Weighting pairs
//! of rows by targets would be far too noisy.

use super::joint::{Members, WeighedSums};
use super::statistic::Statistic;
use super::{Estimate, Estimator, Scope};
use crate::error::{Error, Result};
use crate::predictions::Predictions;

impl Estimator<'_> {
    /// AUC: the probability that a row of class 1 has a higher score than a row of class 0; ties
    /// count half. Requires two classes.
    ///
    /// ```
    /// use easyllp::{Bags, Estimator, Predictions, bagging, loss::Link};
    /// use ndarray::Array2;
    ///
    /// // Scores 0 to 9; a row is positive if its score is above 4, with one in five flipped.
    /// let labels: Vec<u32> = (0..4000).map(|row| u32::from((row % 10 > 4) != (row / 10 % 5 == 0))).collect();
    /// let scores = Array2::from_shape_fn((4000, 1), |(row, _)| (row % 10) as f32 - 4.5);
    /// let bags = Bags::from_labels(bagging::random(4000, &bagging::Sizes::Fixed(8), 1)?, &labels, 2)?;
    /// let auc = Estimator::new(&bags)?.auc(&Predictions::new(scores.view(), Link::Logit)?)?;
    /// assert!(auc.covers(0.8) && auc.standard_error < 0.04, "{auc:?}");
    /// # Ok::<(), easyllp::Error>(())
    /// ```
    pub fn auc(&self, predictions: &Predictions) -> Result<Estimate> {
        Ok(self.estimate(&self.auc_statistic(predictions)?, 0.0, 1.0))
    }

    pub(super) fn auc_statistic(&self, predictions: &Predictions) -> Result<Statistic> {
        let members = self.members_of(predictions)?;
        let n_bags = self.bags.n_bags();
        let order = members.downward();
        let ranks = mid_ranks(&members, &order);
        let control = members.sum(n_bags, |member| members.controls[member]);
        let sums = WeighedSums {
            weight: &members.sum(n_bags, |member| ranks[member]),
            product: &members.sum(n_bags, |member| ranks[member] * members.controls[member]),
            control: &control,
        };
        let mut with_rank = self.joint(1, &sums);
        if self.scope == Scope::Population {
            self.add_chance_of_ranks(&mut with_rank, &members, &order, &control);
        }
        let share = self.class_share(1);
        let p = share.value;
        if p <= 0.0 || p >= 1.0 {
            return Err(Error::OneClass { what: "the area under the ROC curve" });
        }
        // (E[yF] − p²/2)/(p(1 − p))
        let both = p * (1.0 - p);
        let value = (with_rank.value - 0.5 * p * p) / both;
        let in_p = (-p - value * (1.0 - 2.0 * p)) / both;
        Ok(Statistic::of(value, &[(1.0 / both, &with_rank), (in_p, &share)]))
    }

    /// In another sample ranks would differ, too: a row j adds H_j = E[y·1(score > that of j)] to
    /// the mean of y·F. The labels are replaced by corrected targets, q + r̂ + (N−1)/(n−1)·(r̄ −
    /// r̂).
    fn add_chance_of_ranks(
        &self,
        with_rank: &mut Statistic,
        members: &Members,
        order: &[u32],
        control: &[f64],
    ) {
        let (n_rows, n_bags) = (self.bags.n_members() as f64, self.bags.n_bags());
        let slope = (n_rows - 1.0) / (n_bags as f64 - 1.0);
        let counts = self.bags.counts();
        let residual = (counts.column(1).sum() - control.iter().sum::<f64>()) / n_rows;
        let of_bag: Vec<f64> = (0..n_bags)
            .map(|bag| {
                let mean = (counts[[bag, 1]] - control[bag]) / self.bags.size(bag) as f64;
                residual + slope * (mean - residual)
            })
            .collect();
        let target = |member: u32| {
            let member = member as usize;
            members.controls[member] + of_bag[members.bags[member] as usize]
        };
        let mut above = 0.0;
        let mut sums = vec![0.0; n_bags];
        let mut total = 0.0;
        for tied in order.chunk_by(|&a, &b| is_tied(members, a, b)) {
            let of_tied: f64 = tied.iter().map(|&member| target(member)).sum();
            let share_above = (above + 0.5 * of_tied) / n_rows;
            for &member in tied {
                sums[members.bags[member as usize] as usize] += share_above;
            }
            total += share_above * tied.len() as f64;
            above += of_tied;
        }
        let mean = total / n_rows;
        for ((influence, sum), size) in with_rank.influence.iter_mut().zip(&sums).zip(self.bags.sizes()) {
            *influence += (sum - size as f64 * mean) / n_rows;
        }
    }
}

fn is_tied(members: &Members, a: u32, b: u32) -> bool {
    members.scores[a as usize].total_cmp(&members.scores[b as usize]).is_eq()
}

/// (rank − ½)/N, counted from the lowest score; rows of one score share the mean of their ranks.
fn mid_ranks(members: &Members, order: &[u32]) -> Vec<f64> {
    let n_rows = members.scores.len() as f64;
    let mut ranks = vec![0.0; members.scores.len()];
    let mut n_above = 0;
    for tied in order.chunk_by(|&a, &b| is_tied(members, a, b)) {
        let rank = 1.0 - (n_above as f64 + 0.5 * tied.len() as f64) / n_rows;
        for &member in tied {
            ranks[member as usize] = rank;
        }
        n_above += tied.len();
    }
    ranks
}
