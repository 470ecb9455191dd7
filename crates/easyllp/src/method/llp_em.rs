//! Expectation maximisation (EM): each row's label gets its probability given its bag's count, the
//! model is trained on these probabilities, and both steps are repeated.
//!
//! No round lowers the likelihood of the counts, which [`CountLikelihood`](super::CountLikelihood)
//! maximises by gradients. For two classes the probabilities are exact. For more they are those of
//! tilted rows: scores of a bag are shifted until each class has its count, which the exact
//! probabilities approach as bags grow.

use super::Naive;
use super::assignment::soft_labels;
use super::count_likelihood::given_count;
use super::rounds::{Rounds, alternate};
use super::schema::{About, Assumes, BuiltIn};
use crate::aim::TargetRule;
use crate::bags::Bags;
use crate::correction::Targets;
use crate::error::Result;
use crate::session::{Method, Session, Supports};
use ndarray::{ArrayView2, ArrayViewMut2};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::num::NonZeroUsize;

/// EM: probabilities of labels given the counts, round after round.
#[derive(Debug, Clone, Copy)]
pub struct LlpEm<'b> {
    bags: &'b Bags,
}

impl<'b> LlpEm<'b> {
    /// For these bags; the first round uses the bags' proportions.
    pub fn new(bags: &'b Bags) -> Self {
        Self { bags }
    }
}

impl Rounds for LlpEm<'_> {
    fn bags(&self) -> &Bags {
        self.bags
    }

    fn first(&self, out: &mut Targets) -> Result<()> {
        Naive::new(self.bags).targets(0, out)
    }

    #[expect(clippy::cast_possible_truncation, reason = "targets are f32")]
    fn again(&self, bag: usize, scores: ArrayView2<f32>, mut targets: ArrayViewMut2<f32>) {
        if scores.ncols() == 1 {
            let odds: Vec<f64> = scores.iter().map(|&score| f64::from(score)).collect();
            let given = given_count(&odds, self.bags, bag);
            targets.iter_mut().zip(given).for_each(|(target, given)| *target = given as f32);
        } else {
            let counts = self.bags.counts_of(bag).to_vec();
            soft_labels(scores, &counts, 1.0, targets);
        }
    }
}

/// Parameters of `llp-em`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LlpEmParams {
    /// Maximum number of rounds.
    pub rounds: NonZeroUsize,
}

impl Default for LlpEmParams {
    fn default() -> Self {
        Self { rounds: NonZeroUsize::new(20).expect("20 is positive") }
    }
}

impl BuiltIn for LlpEmParams {
    const ABOUT: About = About {
        name: "llp-em",
        aliases: &[],
        summary: "alternates between labels as probable as the counts make them and the model of these",
        bags: Assumes::RandomBagsOrFeatures,
        classes: "any; approximate for more than two",
        cost: "k C per round, less for large bags",
        reference: "Dempster, Laird & Rubin 1977",
    };
}

impl Method for LlpEmParams {
    fn name(&self) -> &str {
        Self::ABOUT.name
    }

    fn supports(&self) -> Supports {
        Supports::LinearLogOdds
    }

    fn run(&self, session: &mut Session) -> Result<()> {
        let method = LlpEm::new(session.bags());
        alternate(session, self.name(), self.rounds.get(), &method)
    }
}
