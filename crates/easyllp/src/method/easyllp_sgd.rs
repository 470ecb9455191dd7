//! EasyLLP in one pass: the paper's Algorithm *pickone*, a projected SGD step on one row of each
//! bag.

use super::TargetsFrom;
use super::schema::{About, Assumes, BuiltIn};
use crate::error::Result;
use crate::optim::sgd::{Domain, Iterate, Labels, Sgd, Steps};
use crate::prior::LabelPrior;
use crate::session::{Method, Requires, Session, Supports};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of `easyllp-sgd`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EasyLlpSgdParams {
    /// Known share of the positive class, or of each class. Unset: pooled from the bags.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prior: Option<LabelPrior>,
    /// Correct the bag's proportions, or a surrogate label that is drawn from them for each step.
    pub targets: TargetsFrom,
    /// Size of step t for bags of k rows, times the learning rate: 1/√(kt), 1/(k√t) or 1/√t. Unset: the paper's for these targets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<Steps>,
    /// The convex set that the weights are projected onto.
    pub domain: Domain,
    /// Return the last iterate, or the mean of all iterates.
    pub iterate: Iterate,
}

impl EasyLlpSgdParams {
    /// The settings of the pass, with step sizes times a factor.
    pub(crate) fn settings(&self, scale: Option<f64>) -> Sgd {
        let (labels, steps) = match self.targets {
            TargetsFrom::Soft => (Labels::Soft, Steps::OverSoft),
            TargetsFrom::Surrogate | TargetsFrom::FreshSurrogate => (Labels::Surrogate, Steps::OverSurrogate),
        };
        let &Self { steps: given, domain, iterate, .. } = self;
        Sgd { labels, steps: given.unwrap_or(steps), scale: scale.unwrap_or(1.0), domain, iterate }
    }
}

impl BuiltIn for EasyLlpSgdParams {
    const ABOUT: About = About {
        name: "easyllp-sgd",
        aliases: &[],
        summary: "one pass over the bags, with a projected step on one row of each",
        bags: Assumes::RandomBags,
        classes: "any",
        cost: "1/k of an epoch in all",
        reference: "Busa-Fekete et al. 2023, Algorithm 1",
    };
}

impl Method for EasyLlpSgdParams {
    fn name(&self) -> &str {
        Self::ABOUT.name
    }

    fn supports(&self) -> Supports {
        Supports::LinearConvex
    }

    fn requires(&self) -> Requires {
        Requires::OnePass
    }

    fn run(&self, session: &mut Session) -> Result<()> {
        let prior = self.prior.clone().unwrap_or_else(|| LabelPrior::pooled(session.bags()));
        session.train_one_pass(self.name(), self.settings(session.learning_rate()), prior)
    }
}
