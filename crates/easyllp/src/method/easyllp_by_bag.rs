//! EasyLLP with minibatches of whole bags, each centred at its own proportions.
//!
//! Targets centred at the pooled proportions have a small variance only if all bags are summed:
//! minibatches of a few bags of 1024 rows vary as much as in the paper's form. A batch of B bags
//! with K rows is therefore centred again:
//!
//! ```text
//! A_ic = p̂_c + (N − 1)/N · K/(B − 1) · (α_ic − p̂_c of the batch)
//! ```
//!
//! The mean corrected loss of its rows is then unbiased over all random bags of the given size.
//! With a known prior the paper's targets are used unchanged.

use crate::aim::BagObjective;
use crate::bags::Bags;
use crate::classes::columns;
use crate::correction::{BagWeights, Correction, Targets, inside};
use crate::error::{Error, Result};
use crate::loss::TrainingLoss;
use ndarray::{Array2, ArrayView2, ArrayViewMut2};

/// Training on targets that are corrected per batch.
#[derive(Clone)]
pub struct EasyLlpByBag<'b> {
    bags: &'b Bags,
    loss: &'b dyn TrainingLoss,
    pooled: Vec<f64>,
    /// The part of the targets that is the same in every batch.
    fixed: Option<Targets>,
    /// K/(B − 1) of the current batch, up to a factor of (N − 1)/N.
    slope: f64,
    /// The proportions of the current batch.
    of_batch: Vec<f64>,
    /// One divided by the mean bag size.
    share: f64,
}

impl<'b> EasyLlpByBag<'b> {
    /// Supports the paper's correction, and the centred one with equal bag weights.
    pub fn new(bags: &'b Bags, correction: &Correction, loss: &'b dyn TrainingLoss) -> Result<Self> {
        loss.check_classes(bags.n_classes())?;
        let mut fixed = match correction {
            Correction::Centred(BagWeights::Equal) => None,
            Correction::Centred(weights) => {
                return Err(Error::Setting {
                    name: "bag weights",
                    value: format!("{weights:?}"),
                    expected: "equal weights where batches are of whole bags",
                });
            }
            Correction::Paper(_) | Correction::Naive => Some(correction.soft(bags)?),
        };
        if fixed.is_none() && bags.n_bags() < 2 {
            return Err(Error::TooFewBags { what: "a centred correction", needed: 2, got: bags.n_bags() });
        }
        let mut pooled = bags.pooled_proportions();
        if !loss.has_minimum_for_any_targets() {
            pooled = inside(pooled, 0.5 / bags.n_members() as f64);
            if let Some(fixed) = &mut fixed {
                fixed.shift_to_shares(&bags.rows(), correction.known_shares());
            }
        }
        Ok(Self { bags, loss, of_batch: pooled.clone(), pooled, fixed, slope: 0.0, share: 0.0 })
    }
}

impl BagObjective for EasyLlpByBag<'_> {
    fn bags(&self) -> &Bags {
        self.bags
    }

    fn least_bags(&self) -> usize {
        if self.fixed.is_some() { 1 } else { 2 }
    }

    fn before_batch(&mut self, bags: &[u32]) {
        let n_in_batch: usize = bags.iter().map(|&bag| self.bags.size(bag as usize)).sum();
        let (n_rows, n_in_batch) = (self.bags.n_members() as f64, n_in_batch as f64);
        for (class, proportion) in self.of_batch.iter_mut().enumerate() {
            let count: f64 = bags.iter().map(|&bag| self.bags.counts_of(bag as usize)[class]).sum();
            *proportion = count / n_in_batch;
        }
        self.slope = (n_rows - 1.0) / n_rows * n_in_batch / (bags.len() as f64 - 1.0).max(1.0);
        self.share = bags.len() as f64 / n_in_batch;
    }

    #[expect(clippy::cast_possible_truncation, reason = "targets and derivatives are f32")]
    fn bag(&self, bag: usize, scores: ArrayView2<f32>, mut derivative: ArrayViewMut2<f32>) -> f64 {
        let centred = |class| {
            let off = self.bags.proportion(bag, class) - self.of_batch[class];
            (self.pooled[class] + self.slope * off) as f32
        };
        let of_bag: Vec<f32> = match &self.fixed {
            Some(fixed) => fixed.values().row(self.bags.members(bag)[0] as usize).to_vec(),
            None => columns(self.bags.n_classes()).map(centred).collect(),
        };
        let targets = Array2::from_shape_fn(scores.dim(), |(_, column)| of_bag[column]);
        // A step divides by the number of bags: so scaled, it comes to the mean over the batch's rows.
        let loss = self.loss.corrected_batch(scores, targets.view(), derivative.view_mut());
        derivative *= self.share as f32;
        self.share * loss
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bags::Partition;
    use crate::loss::LossName;

    /// The mean loss of a batch's rows.
    fn of_batch(objective: &mut EasyLlpByBag, batch: &[u32], scores: &[f32]) -> f64 {
        objective.before_batch(batch);
        let of_bag = |&bag: &u32| {
            let members = objective.bags.members(bag as usize);
            let scores =
                Array2::from_shape_fn((members.len(), 1), |(place, _)| scores[members[place] as usize]);
            objective.bag(bag as usize, scores.view(), Array2::zeros(scores.dim()).view_mut())
        };
        batch.iter().map(of_bag).sum::<f64>() / batch.len() as f64
    }

    /// All 90 ways to deal six rows into three bags of two, and all batches of two of the bags: the mean is the loss of the rows.
    #[test]
    fn batches_are_unbiased_over_all_dealings() {
        let labels = [1, 0, 0, 1, 1, 0];
        let scores = [0.3_f32, -1.0, 0.8, 2.0, -0.4, 0.1];
        let loss = LossName::Logistic.training().unwrap();
        let truth: f64 = (0..6)
            .map(|row| loss.corrected(&[f64::from(scores[row])], &[f64::from(labels[row])], &mut [0.0]))
            .sum::<f64>()
            / 6.0;
        let (mut sum, mut n_batches) = (0.0, 0);
        for dealing in 0..729_u32 {
            let of_row: Vec<u32> = (0..6).map(|row| dealing / 3_u32.pow(row) % 3).collect();
            if (0..3).any(|bag| of_row.iter().filter(|&&of| of == bag).count() != 2) {
                continue;
            }
            let bags =
                Bags::from_labels(Partition::from_bag_of_row(&of_row, 3).unwrap(), &labels, 2).unwrap();
            let mut objective = EasyLlpByBag::new(&bags, &Correction::default(), loss).unwrap();
            for batch in [[0, 1], [0, 2], [1, 2]] {
                sum += of_batch(&mut objective, &batch, &scores);
                n_batches += 1;
            }
        }
        assert_eq!(n_batches, 270);
        let mean = sum / f64::from(n_batches);
        assert!((mean - truth).abs() < 1e-6, "{mean} {truth}");
    }

    /// All bags in one batch are centred as they are by rows.
    #[test]
    fn one_batch_of_all_bags_is_the_centred_form() {
        let labels = [1, 0, 0, 1, 1, 0, 1];
        let scores = [0.3_f32, -1.0, 0.8, 2.0, -0.4, 0.1, 0.6];
        let partition = Partition::new(7, [vec![0, 1, 2], vec![3], vec![4, 5, 6]]).unwrap();
        let bags = Bags::from_labels(partition, &labels, 2).unwrap();
        let loss = LossName::Squared.training().unwrap();
        for correction in
            [Correction::default(), Correction::Paper(crate::correction::LabelPrior::binary(0.4).unwrap())]
        {
            let targets = correction.soft(&bags).unwrap();
            let mut objective = EasyLlpByBag::new(&bags, &correction, loss).unwrap();
            let scores = |row: usize| f64::from(scores[row]);
            let expected: f64 = (0..7)
                .map(|row| {
                    let target = f64::from(targets.values()[[row, 0]]);
                    loss.corrected(&[scores(row)], &[target], &mut [0.0])
                })
                .sum::<f64>()
                / 7.0;
            #[expect(clippy::cast_possible_truncation, reason = "they were f32")]
            let scores: Vec<f32> = (0..7).map(|row| scores(row) as f32).collect();
            let got = of_batch(&mut objective, &[0, 1, 2], &scores);
            assert!((got - expected).abs() < 1e-6, "{correction:?}: {got} {expected}");
        }
    }

    #[test]
    fn refuses_what_cannot_be_centred_by_batches() {
        let bags = Bags::from_labels(Partition::new(2, [[0], [1]]).unwrap(), &[0, 1], 2).unwrap();
        let loss = LossName::Logistic.training().unwrap();
        let refused = EasyLlpByBag::new(&bags, &Correction::Centred(BagWeights::Size), loss);
        assert!(matches!(refused.err(), Some(Error::Setting { name: "bag weights", .. })));
        let one = bags.select(&[0]).unwrap();
        assert!(matches!(
            EasyLlpByBag::new(&one, &Correction::default(), loss).err(),
            Some(Error::TooFewBags { .. })
        ));
    }
}
