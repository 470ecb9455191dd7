//! Naive baseline: the bag's proportion is the target of each of its rows.
//!
//! By Proposition *bias* of the paper this fits a mixture: the truth with weight 1/k, and the
//! prior, which carries no information on rows. On a balanced task such a model still ranks rows
//! almost as well, but its probabilities stay near the prior. If positives are rare, it predicts
//! nearly every row as negative.

use super::schema::{About, Assumes, BuiltIn};
use crate::aim::{Aim, TargetRows, TargetRule};
use crate::bags::Bags;
use crate::correction::{Correction, Targets};
use crate::error::Result;
use crate::session::{Method, Session};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Training on uncorrected proportions.
#[derive(Debug, Clone, Copy)]
pub struct Naive<'b> {
    bags: &'b Bags,
}

impl<'b> Naive<'b> {
    /// Uses the bags' proportions as targets.
    pub fn new(bags: &'b Bags) -> Self {
        Self { bags }
    }
}

impl TargetRule for Naive<'_> {
    fn target_rows(&self) -> TargetRows {
        TargetRows::of_bags(self.bags)
    }

    fn targets(&mut self, _epoch: usize, out: &mut Targets) -> Result<()> {
        Correction::Naive.soft_into(self.bags, out)
    }
}

/// Parameters of `naive`: none.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NaiveParams {}

impl BuiltIn for NaiveParams {
    const ABOUT: About = About {
        name: "naive",
        aliases: &[],
        summary: "trains each row towards the proportion of its bag; a baseline",
        bags: Assumes::AlwaysBiased,
        classes: "any",
        cost: "C",
        reference: "Busa-Fekete et al. 2023",
    };
}

impl Method for NaiveParams {
    fn name(&self) -> &str {
        Self::ABOUT.name
    }

    fn run(&self, session: &mut Session) -> Result<()> {
        let (bags, loss) = (session.bags(), session.loss());
        session.train(self.name(), Aim::Targets(&mut Naive::new(bags), loss))
    }
}
