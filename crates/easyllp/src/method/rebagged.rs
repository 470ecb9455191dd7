//! EasyLLP on bags that are randomly regrouped in every epoch: an upper bound for other groupings
//! of the same rows.
//!
//! It requires row labels, given as bags of one row, and is meant for experiments.

use crate::aim::{TargetRows, TargetRule};
use crate::bagging::{self, Sizes};
use crate::bags::{Bags, Partition};
use crate::correction::{Correction, Targets};
use crate::error::{Error, Result};
use crate::seed::{Stream, stream};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// Training on corrected targets of bags that change from epoch to epoch.
#[derive(Debug, Clone)]
pub struct Rebagged<'b> {
    labelled: &'b Bags,
    size: usize,
    correction: Correction,
    seed: u64,
    rng: Option<ChaCha8Rng>,
}

impl<'b> Rebagged<'b> {
    /// Bags of one row each, which are regrouped into bags of `size` rows.
    pub fn new(labelled: &'b Bags, size: usize, correction: Correction, seed: u64) -> Result<Self> {
        check_labelled("regrouped bags", labelled)?;
        Ok(Self { labelled, size, correction, seed, rng: None })
    }
}

/// Checks that every bag is a single row.
pub(super) fn check_labelled(what: &str, bags: &Bags) -> Result<()> {
    match bags.sizes().position(|size| size != 1) {
        Some(bag) => Err(Error::NotLabelled { what: what.to_owned(), bag, size: bags.size(bag) }),
        None => Ok(()),
    }
}

impl TargetRule for Rebagged<'_> {
    fn target_rows(&self) -> TargetRows {
        TargetRows::of_bags(self.labelled)
    }

    fn changes(&self) -> bool {
        true
    }

    fn shares(&self) -> Result<Option<Vec<f64>>> {
        Ok(self.correction.known_shares())
    }

    fn targets(&mut self, epoch: usize, out: &mut Targets) -> Result<()> {
        if epoch == 0 {
            self.rng = None; // a second training begins with the same bags
        }
        let seed = self.rng.get_or_insert_with(|| stream(self.seed, Stream::Bagging)).random();
        let dealt = bagging::random(self.labelled.n_bags(), &Sizes::Fixed(self.size), seed)?;
        // A member of a new bag is an old bag, of one row.
        let old = |new: usize| dealt.members(new).iter().map(|&old| old as usize);
        let rows = |new: usize| old(new).map(|old| self.labelled.members(old)[0]).collect::<Vec<u32>>();
        let partition = Partition::new(self.labelled.n_rows(), (0..dealt.n_bags()).map(rows))?;
        let mut counts = ndarray::Array2::zeros((dealt.n_bags(), self.labelled.n_classes()));
        for new in 0..dealt.n_bags() {
            for old in old(new) {
                let mut sum = counts.row_mut(new);
                sum += &self.labelled.counts_of(old);
            }
        }
        let bags = Bags::multiclass(partition, counts, crate::bags::Noise::None)?;
        self.correction.soft_into(&bags, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bags_are_others_in_every_epoch_and_the_same_again() {
        // Row 3 is in no bag, as if it were held out.
        let partition = Partition::new(41, (0..41).filter(|row| *row != 3).map(|row| [row])).unwrap();
        let labels: Vec<u32> = (0..41).map(|row| u32::from(row % 3 == 0)).collect();
        let labelled = Bags::from_labels(partition, &labels, 2).unwrap();
        let mut rule = Rebagged::new(&labelled, 4, Correction::default(), 5).unwrap();
        let mut of_epoch = |epoch| {
            let mut out = Targets::zeros(41, 2);
            rule.targets(epoch, &mut out).unwrap();
            out
        };
        let (first, second) = (of_epoch(0), of_epoch(1));
        assert_ne!(first, second);
        assert_eq!(first, of_epoch(0));
        // All dealings have the same mean: the share of positives among the rows that are dealt.
        let mean = first.values().sum() / 40.0;
        assert!((mean - 13.0 / 40.0).abs() < 1e-5, "{mean}");
        assert!(first.values()[[3, 0]].abs() <= 0.0);
    }

    #[test]
    fn labels_are_needed() {
        let bags =
            Bags::from_labels(Partition::new(3, [vec![0], vec![1, 2]]).unwrap(), &[0, 1, 1], 2).unwrap();
        let refused = Rebagged::new(&bags, 4, Correction::default(), 5).unwrap_err();
        assert_eq!(refused, Error::NotLabelled { what: "regrouped bags".into(), bag: 1, size: 2 });
    }
}
