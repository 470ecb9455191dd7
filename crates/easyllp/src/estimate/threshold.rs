//! Predictions at thresholds: rates, precision, and curves.

use super::joint::{Members, WeighedSums};
use super::statistic::Statistic;
use super::{Estimate, Estimator};
use crate::error::{Error, Result};
use crate::predictions::Predictions;
use serde::Serialize;

/// Metrics of predicting class 1 for all rows with at least this score.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct AtThreshold {
    /// The threshold: the lowest score that predicts class 1.
    pub threshold: f64,
    /// The share of rows that are predicted as class 1.
    pub selected: f64,
    /// Recall, the true positive rate: of the rows of class 1, the share predicted as class 1.
    pub recall: Estimate,
    /// The false positive rate: of the rows of class 0, the share predicted as class 1.
    pub fall_out: Estimate,
    /// Precision: of the rows predicted as class 1, the share of class 1; none if there are no such
    /// rows.
    pub precision: Option<Estimate>,
    /// F1: the harmonic mean of precision and recall.
    pub f1: Estimate,
    /// Balanced accuracy: the mean of both classes' recall.
    pub balanced_accuracy: Estimate,
}

impl Estimator<'_> {
    /// Metrics at one threshold on the score of class 1. Requires two classes.
    pub fn at_threshold(&self, predictions: &Predictions, threshold: f64) -> Result<AtThreshold> {
        let members = self.members_of(predictions)?;
        let n_bags = self.bags.n_bags();
        let is_selected = |member: usize| f64::from(u8::from(members.scores[member] >= threshold));
        let sums = WeighedSums {
            weight: &members.sum(n_bags, is_selected),
            product: &members.sum(n_bags, |member| is_selected(member) * members.controls[member]),
            control: &members.sum(n_bags, |member| members.controls[member]),
        };
        Ok(self.decisions(threshold, &self.positives()?, &sums))
    }

    /// Metrics at thresholds between groups of nearly equal size, from the highest score down to
    /// all rows: the points of the ROC and precision-recall curves.
    pub fn curve(&self, predictions: &Predictions, n_points: usize) -> Result<Vec<AtThreshold>> {
        let members = self.members_of(predictions)?;
        let share = self.positives()?;
        let control = members.sum(self.bags.n_bags(), |member| members.controls[member]);
        let mut walk = Walk::new(&members, self.bags.n_bags());
        let mut points = Vec::with_capacity(n_points);
        for end in members.group_ends(&walk.order, n_points.max(1)) {
            let threshold = walk.to(end);
            let sums = WeighedSums { weight: &walk.selected, product: &walk.products, control: &control };
            points.push(self.decisions(threshold, &share, &sums));
        }
        Ok(points)
    }

    fn positives(&self) -> Result<Statistic> {
        let share = self.class_share(1);
        if share.value > 0.0 && share.value < 1.0 {
            Ok(share)
        } else {
            Err(Error::OneClass { what: "a rate of each class" })
        }
    }

    fn decisions(&self, threshold: f64, share: &Statistic, sums: &WeighedSums) -> AtThreshold {
        let selected = self.plain_mean(sums.weight);
        let hits = self.joint(1, sums);
        let recall = hits.over(share);
        let fall_out = selected.minus(&hits).over(&share.complement());
        let both = Statistic::of(share.value + selected.value, &[(1.0, share), (1.0, &selected)]);
        let f1 = Statistic::of(2.0 * hits.value, &[(2.0, &hits)]).over(&both);
        let balanced =
            Statistic::of(0.5 * (1.0 + recall.value - fall_out.value), &[(0.5, &recall), (-0.5, &fall_out)]);
        let in_range = |statistic: &Statistic| self.estimate(statistic, 0.0, 1.0);
        AtThreshold {
            threshold,
            selected: selected.value,
            precision: (selected.value > 0.0).then(|| in_range(&hits.over(&selected))),
            recall: in_range(&recall),
            fall_out: in_range(&fall_out),
            f1: in_range(&f1),
            balanced_accuracy: in_range(&balanced),
        }
    }
}

/// A walk from the highest score down, with sums over the rows passed in each bag.
pub(super) struct Walk<'m> {
    members: &'m Members,
    pub(super) order: Vec<u32>,
    place: usize,
    /// The number of rows passed.
    pub(super) selected: Vec<f64>,
    /// The sum of their control variates.
    pub(super) products: Vec<f64>,
}

impl<'m> Walk<'m> {
    pub(super) fn new(members: &'m Members, n_bags: usize) -> Self {
        let order = members.downward();
        Self { members, order, place: 0, selected: vec![0.0; n_bags], products: vec![0.0; n_bags] }
    }

    /// Moves to this position and returns the lowest score passed.
    pub(super) fn to(&mut self, end: usize) -> f64 {
        for &member in &self.order[self.place..end] {
            let bag = self.members.bags[member as usize] as usize;
            self.selected[bag] += 1.0;
            self.products[bag] += self.members.controls[member as usize];
        }
        self.place = end;
        self.members.scores[self.order[end - 1] as usize]
    }

    /// Resets the sums, but not the position.
    pub(super) fn forget(&mut self) {
        self.selected.fill(0.0);
        self.products.fill(0.0);
    }
}
