//! Full supervision: every row's own label is its target. What every LLP method is measured against.

use super::TargetRule;
use crate::classes::check_labels;
use crate::correction::Targets;
use crate::error::Result;
use crate::rows::row_count;

/// Training on known row labels.
#[derive(Debug, Clone, Copy)]
pub struct Event<'l> {
    labels: &'l [u32],
    n_classes: usize,
}

impl<'l> Event<'l> {
    /// One label a row, each below `n_classes`.
    pub fn new(labels: &'l [u32], n_classes: usize) -> Result<Self> {
        row_count(labels.len())?;
        check_labels(labels, n_classes)?;
        Ok(Self { labels, n_classes })
    }
}

impl TargetRule for Event<'_> {
    fn n_rows(&self) -> usize {
        self.labels.len()
    }

    fn n_classes(&self) -> usize {
        self.n_classes
    }

    fn rows(&self) -> Vec<u32> {
        (0..).zip(self.labels).map(|(row, _)| row).collect()
    }

    fn changes(&self) -> bool {
        false
    }

    fn targets(&mut self, _epoch: usize, out: &mut Targets) -> Result<()> {
        *out = Targets::from_labels(self.labels, self.n_classes)?;
        Ok(())
    }
}
