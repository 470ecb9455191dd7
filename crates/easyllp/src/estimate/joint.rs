//! The mean of y_c·w for a class c and a weight w of rows, from which rates, ranks and curves are
//! computed.

use super::statistic::Statistic;
use super::{Estimator, Scope};
use crate::error::Result;
use crate::predictions::{Predictions, Reader};

/// Sums over the rows of each bag, for one class and one weight.
pub(super) struct WeighedSums<'s> {
    /// Sums of a weight w.
    pub(super) weight: &'s [f64],
    /// Sums of the control variate q of a class.
    pub(super) control: &'s [f64],
    /// Sums of w·q.
    pub(super) product: &'s [f64],
}

impl Estimator<'_> {
    /// The mean over rows of y_c·w.
    pub(super) fn joint(&self, class: usize, sums: &WeighedSums) -> Statistic {
        let bags = self.bags;
        let (n_rows, n_bags) = (bags.n_members() as f64, bags.n_bags() as f64);
        let kappa = (n_rows - 1.0) / (n_rows * (n_bags - 1.0));
        let counts = bags.counts();
        let counts = counts.column(class);
        let mean = |of: &[f64]| of.iter().sum::<f64>() / n_rows;
        let (weight, product) = (mean(sums.weight), mean(sums.product));
        let residual = counts.sum() / n_rows - mean(sums.control);
        let is_of_population = self.scope == Scope::Population;
        let mut covariance = 0.0;
        let mut influence: Vec<f64> = Vec::with_capacity(bags.n_bags());
        for (bag, size) in bags.sizes().enumerate() {
            let k = size as f64;
            let of_residual = counts[bag] - sums.control[bag] - k * residual;
            let of_weight = sums.weight[bag] - k * weight;
            let of_bag = kappa * of_residual / k * of_weight;
            covariance += of_bag;
            let spread = sums.product[bag] - k * product + weight * of_residual + residual * of_weight;
            influence.push(if is_of_population { of_bag + spread / n_rows } else { of_bag });
        }
        for of_bag in &mut influence {
            *of_bag -= covariance / n_bags;
        }
        let mut pooled = vec![0.0; bags.n_classes()];
        if !is_of_population {
            pooled[class] = weight;
        }
        Statistic { value: product + residual * weight + covariance, influence, pooled }
    }

    /// The mean over rows of a weight that does not depend on labels.
    pub(super) fn plain_mean(&self, weight: &[f64]) -> Statistic {
        let n_rows = self.bags.n_members() as f64;
        let value = weight.iter().sum::<f64>() / n_rows;
        let of_bag = |(sum, size): (&f64, usize)| match self.scope {
            Scope::Population => (sum - size as f64 * value) / n_rows,
            Scope::TheseRows => 0.0,
        };
        let influence = weight.iter().zip(self.bags.sizes()).map(of_bag).collect();
        Statistic { value, influence, pooled: vec![0.0; self.bags.n_classes()] }
    }

    /// The share of a class.
    pub(super) fn class_share(&self, class: usize) -> Statistic {
        let ones: Vec<f64> = self.bags.sizes().map(|size| size as f64).collect();
        let zeros = vec![0.0; ones.len()];
        self.joint(class, &WeighedSums { weight: &ones, control: &zeros, product: &zeros })
    }

    /// The members of the bags, bag after bag, with the prediction for class 1 of each.
    pub(super) fn members_of(&self, predictions: &Predictions) -> Result<Members> {
        predictions.check(self.bags)?;
        if self.bags.n_classes() != 2 {
            return Err(crate::error::Error::TwoClassesOnly { n_classes: self.bags.n_classes() });
        }
        let has_probabilities = predictions.check_probabilities().is_ok();
        let n_rows = self.bags.n_members();
        let mut members = Members {
            scores: Vec::with_capacity(n_rows),
            controls: Vec::with_capacity(n_rows),
            bags: Vec::with_capacity(n_rows),
        };
        let mut reader = predictions.reader();
        let mut of_classes = [0.0; 2];
        for (bag, number) in (0..self.bags.n_bags()).zip(0_u32..) {
            for rows in self.bags.members(bag).chunks(Reader::AT_ONCE) {
                reader.load(rows.iter().map(|&row| row as usize));
                for place in 0..rows.len() {
                    // Where scores give no probability, the decision is a guess as good as any.
                    if has_probabilities {
                        reader.probabilities(place, &mut of_classes);
                    } else {
                        reader.decision(place, &mut of_classes);
                    }
                    members.scores.push(reader.score(place));
                    members.controls.push(of_classes[1]);
                    members.bags.push(number);
                }
            }
        }
        Ok(members)
    }
}

/// Rows in bags of a task of two classes, bag after bag.
pub(super) struct Members {
    pub(super) scores: Vec<f64>,
    /// A prediction of class 1: its probability, or the predicted class.
    pub(super) controls: Vec<f64>,
    pub(super) bags: Vec<u32>,
}

impl Members {
    /// Positions from the highest score to the lowest.
    pub(super) fn downward(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..).take(self.scores.len()).collect();
        order.sort_unstable_by(|&a, &b| {
            self.scores[b as usize].total_cmp(&self.scores[a as usize]).then(a.cmp(&b))
        });
        order
    }

    /// The ends of groups of nearly equal size in such an order; rows with equal scores are in one
    /// group.
    pub(super) fn group_ends(&self, order: &[u32], n_groups: usize) -> Vec<usize> {
        let score = |place: usize| self.scores[order[place] as usize];
        let mut ends: Vec<usize> = Vec::with_capacity(n_groups);
        for group in 1..=n_groups {
            let mut end = (group * order.len() / n_groups).max(1);
            while end < order.len() && score(end).total_cmp(&score(end - 1)).is_eq() {
                end += 1;
            }
            if ends.last().is_none_or(|&last| last < end) {
                ends.push(end);
            }
        }
        ends
    }

    /// Sums over the rows of each bag.
    pub(super) fn sum(&self, n_bags: usize, of: impl Fn(usize) -> f64) -> Vec<f64> {
        let mut sums = vec![0.0; n_bags];
        for (member, &bag) in self.bags.iter().enumerate() {
            sums[bag as usize] += of(member);
        }
        sums
    }
}
