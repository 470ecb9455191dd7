//! Alternating mean map: labels that match the counts and agree best with the model, the model of these labels, and so on, from the
//! mean map on (Patrini, Nock, Rivera & Caetano 2014, the form that minimises in both steps).

use super::assignment::{best_labels, whole_counts};
use super::{Alternation, MeanMap, TargetRule};
use crate::bags::Bags;
use crate::correction::Targets;
use crate::error::Result;
use ndarray::{ArrayView2, ArrayViewMut2};

/// Whole labels, round after round.
#[derive(Debug, Clone)]
pub struct AlternatingMeanMap<'b> {
    start: MeanMap<'b>,
    bags: &'b Bags,
}

impl<'b> AlternatingMeanMap<'b> {
    /// From this mean map on.
    pub fn new(bags: &'b Bags, start: MeanMap<'b>) -> Self {
        Self { start, bags }
    }
}

impl Alternation for AlternatingMeanMap<'_> {
    fn bags(&self) -> &Bags {
        self.bags
    }

    fn first(&self, out: &mut Targets) -> Result<()> {
        self.start.clone().targets(0, out)
    }

    fn again(&self, bag: usize, scores: ArrayView2<f32>, targets: ArrayViewMut2<f32>) {
        let counts = self.bags.counts_of(bag).to_vec();
        best_labels(scores, &whole_counts(&counts, scores.nrows()), targets);
    }
}
