//! The naive way: the bag's proportion as the target of each of its rows.
//!
//! Proposition *bias* of the paper says what that trains: a mixture of the truth, weighing 1/k, and of the prior, which
//! says nothing of rows. On a balanced task such a model still ranks rows almost as well, but its probabilities hardly
//! leave the prior; where positives are rare it calls nearly every row negative.

use super::TargetRule;
use crate::bags::Bags;
use crate::correction::{Correction, Targets};
use crate::error::Result;

/// Training on uncorrected proportions.
#[derive(Debug, Clone, Copy)]
pub struct Naive<'b> {
    bags: &'b Bags,
}

impl<'b> Naive<'b> {
    /// Rows learn their bag's proportions.
    pub fn new(bags: &'b Bags) -> Self {
        Self { bags }
    }
}

impl TargetRule for Naive<'_> {
    fn n_rows(&self) -> usize {
        self.bags.n_rows()
    }

    fn n_classes(&self) -> usize {
        self.bags.n_classes()
    }

    fn rows(&self) -> Vec<u32> {
        self.bags.rows()
    }

    fn changes(&self) -> bool {
        false
    }

    fn targets(&mut self, _epoch: usize, out: &mut Targets) -> Result<()> {
        Correction::Naive.soft_into(self.bags, out)
    }
}
