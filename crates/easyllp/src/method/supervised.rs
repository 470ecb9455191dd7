//! Supervised: every row's own label is its target. The upper baseline of all methods.

use super::schema::{About, Assumes, BuiltIn};
use super::{Naive, check_labelled};
use crate::aim::{Aim, TargetRows, TargetRule};
use crate::classes::check_labels;
use crate::correction::Targets;
use crate::error::{Error, Result};
use crate::rows::row_count;
use crate::session::{Method, Session};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Training on row labels.
#[derive(Debug, Clone, Copy)]
pub struct Supervised<'l> {
    labels: &'l [u32],
    n_classes: usize,
}

impl<'l> Supervised<'l> {
    /// One label per row, each below `n_classes`.
    pub fn new(labels: &'l [u32], n_classes: usize) -> Result<Self> {
        row_count(labels.len())?;
        check_labels(labels, n_classes)?;
        Ok(Self { labels, n_classes })
    }
}

impl TargetRule for Supervised<'_> {
    fn target_rows(&self) -> TargetRows {
        let rows = (0..).zip(self.labels).map(|(row, _)| row).collect();
        TargetRows { n_rows: self.labels.len(), n_classes: self.n_classes, rows }
    }

    fn targets(&mut self, _epoch: usize, out: &mut Targets) -> Result<()> {
        *out = Targets::from_labels(self.labels, self.n_classes)?;
        Ok(())
    }
}

/// Parameters of `supervised`: none.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SupervisedParams {}

impl BuiltIn for SupervisedParams {
    const ABOUT: About = About {
        name: "supervised",
        aliases: &["event-level"],
        summary: "trains on row labels, as bags of one row; the reference",
        bags: Assumes::RowLabels,
        classes: "any",
        cost: "C",
        reference: "full supervision",
    };
}

impl Method for SupervisedParams {
    fn name(&self) -> &str {
        Self::ABOUT.name
    }

    fn check(&self, has_row_labels: bool) -> Result<()> {
        if has_row_labels { Ok(()) } else { Err(Error::RowLabelsOnly { what: "method supervised".into() }) }
    }

    fn run(&self, session: &mut Session) -> Result<()> {
        let (bags, loss) = (session.bags(), session.loss());
        check_labelled(self.name(), bags)?;
        // The proportion of a bag of one row is its label.
        session.train(self.name(), Aim::Targets(&mut Naive::new(bags), loss))
    }
}
