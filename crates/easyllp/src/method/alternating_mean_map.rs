//! Alternating mean map: starts from the mean map, then alternates between labels that match the
//! counts and fit the model best, and a model of these labels (Patrini, Nock, Rivera & Caetano
//! 2014, the version that minimises in both steps).

use super::MeanMap;
use super::assignment::{best_labels, whole_counts};
use super::rounds::{Rounds, alternate};
use super::schema::{About, Assumes, BuiltIn};
use crate::aim::TargetRule;
use crate::bags::Bags;
use crate::correction::Targets;
use crate::error::Result;
use crate::number::Positive;
use crate::session::{Method, Session, Supports};
use ndarray::{ArrayView2, ArrayViewMut2};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::num::NonZeroUsize;

/// Alternating rounds of whole labels.
#[derive(Debug, Clone)]
pub struct AlternatingMeanMap<'b> {
    start: MeanMap<'b>,
    bags: &'b Bags,
}

impl<'b> AlternatingMeanMap<'b> {
    /// Starts from this mean map.
    pub fn new(bags: &'b Bags, start: MeanMap<'b>) -> Self {
        Self { start, bags }
    }
}

impl Rounds for AlternatingMeanMap<'_> {
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

/// Parameters of `alternating-mean-map`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AlternatingMeanMapParams {
    /// Ridge penalty of the initial mean map.
    pub ridge: Positive,
    /// Maximum number of rounds.
    pub rounds: NonZeroUsize,
}

impl Default for AlternatingMeanMapParams {
    fn default() -> Self {
        Self { ridge: Positive::of(MeanMap::RIDGE), rounds: NonZeroUsize::new(20).expect("20 is positive") }
    }
}

impl BuiltIn for AlternatingMeanMapParams {
    const ABOUT: About = About {
        name: "alternating-mean-map",
        aliases: &[],
        summary: "starts at the mean map, then alternates between labels that match the counts and the model of these",
        bags: Assumes::RandomBags,
        classes: "any; exact transport",
        cost: "log k per round; C² log k for more than two classes",
        reference: "Patrini et al. 2014",
    };
}

impl Method for AlternatingMeanMapParams {
    fn name(&self) -> &str {
        Self::ABOUT.name
    }

    fn supports(&self) -> Supports {
        Supports::LinearLogOdds
    }

    fn run(&self, session: &mut Session) -> Result<()> {
        let method = AlternatingMeanMap::new(session.bags(), MeanMap::with_ridge(session.bags(), self.ridge));
        alternate(session, self.name(), self.rounds.get(), &method)
    }
}
