//! Label generation: in every step, generate labels that match each bag's counts and fit the
//! current predictions best, and train on them (Dulac-Arnold, Zeghidour, Cuturi, Beyer & Vert
//! 2019).
//!
//! By default labels are hard: the rows of a bag with the highest scores become positive; several
//! classes are an exact transport problem. Only rows with equal scores share labels, as all rows of
//! a bag do before a linear model is trained. With ε > 0 labels are soft: the entropy-regularised
//! transport P (Sinkhorn), which tends to hard labels for ε → 0. The loss is then the cross-entropy
//! plus ε Σ P log P, of which P is the minimiser.
//!
//! The method reinforces its own first predictions: wrong generated labels are not corrected, and
//! larger bags allow more of them.

use super::assignment::{best_labels, soft_labels, whole_counts};
use super::rounds::next_targets;
use super::schema::{About, Assumes, BuiltIn};
use crate::aim::{Aim, BagObjective};
use crate::bags::Bags;
use crate::error::{Error, Result};
use crate::loss::{Logistic, Softmax, TrainingLoss};
use crate::number::NonNegative;
use crate::optim::Adam;
use crate::session::{Method, Requires, Session, Supports};
use crate::train::Optimizer;
use ndarray::{Array2, ArrayView2, ArrayViewMut2};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;

/// Training on labels that match the counts and the current predictions.
#[derive(Clone)]
pub struct LabelGeneration<'b> {
    bags: &'b Bags,
    epsilon: f64,
    /// One divided by the mean bag size: the loss of a bag is the sum over its rows divided by the
    /// mean bag size.
    share: f64,
}

impl<'b> LabelGeneration<'b> {
    /// Hard labels with ε = 0, else soft labels.
    pub fn new(bags: &'b Bags, epsilon: NonNegative) -> Self {
        let share = bags.n_bags() as f64 / bags.n_members() as f64;
        Self { bags, epsilon: epsilon.get(), share }
    }

    /// Labels of a bag's rows, given their scores.
    fn labels(&self, bag: usize, scores: ArrayView2<f32>, labels: ArrayViewMut2<f32>) {
        let counts = self.bags.counts_of(bag).to_vec();
        if self.epsilon > 0.0 {
            soft_labels(scores, &counts, self.epsilon, labels);
        } else {
            best_labels(scores, &whole_counts(&counts, scores.nrows()), labels);
        }
    }
}

impl BagObjective for LabelGeneration<'_> {
    fn bags(&self) -> &Bags {
        self.bags
    }

    #[expect(clippy::cast_possible_truncation, reason = "derivatives are f32")]
    fn bag(&self, bag: usize, scores: ArrayView2<f32>, mut derivative: ArrayViewMut2<f32>) -> f64 {
        let mut labels = Array2::zeros(scores.dim());
        self.labels(bag, scores, labels.view_mut());
        let mut loss = -self.epsilon * entropy(labels.view());
        let cross_entropy: &dyn TrainingLoss = if scores.ncols() == 1 { &Logistic } else { &Softmax };
        loss += cross_entropy.corrected_batch(scores, labels.view(), derivative.view_mut());
        derivative *= self.share as f32;
        self.share * loss
    }
}

fn entropy(labels: ArrayView2<f32>) -> f64 {
    let of = |p: f64| if p > 0.0 { -p * p.ln() } else { 0.0 };
    let is_binary = labels.ncols() == 1;
    labels.iter().map(|&p| of(f64::from(p)) + if is_binary { of(1.0 - f64::from(p)) } else { 0.0 }).sum()
}

/// How often labels are generated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Relabel {
    /// In every minibatch.
    Minibatch,
    /// Once per round of this number of epochs.
    Round(NonZeroUsize),
}

const RELABEL: &str = "minibatch or round:EPOCHS";

impl fmt::Display for Relabel {
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Minibatch => to.write_str("minibatch"),
            Self::Round(epochs) => write!(to, "round:{epochs}"),
        }
    }
}

impl TryFrom<String> for Relabel {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        let unknown = || Error::UnknownName { what: "time to relabel", name: text.clone(), choices: RELABEL };
        match text.strip_prefix("round:") {
            None if text == "minibatch" => Ok(Self::Minibatch),
            Some(epochs) => epochs.parse().map(Self::Round).map_err(|_| unknown()),
            None => Err(unknown()),
        }
    }
}

impl From<Relabel> for String {
    fn from(relabel: Relabel) -> Self {
        relabel.to_string()
    }
}

impl JsonSchema for Relabel {
    fn schema_name() -> Cow<'static, str> {
        "Relabel".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "x-expected": RELABEL })
    }
}

/// Parameters of `label-generation`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LabelGenerationParams {
    /// Entropy regularisation of the labels: 0 gives hard labels, 1 the probabilities given the counts.
    pub epsilon: NonNegative,
    /// Generate labels in every minibatch, or once per round of epochs.
    pub relabel: Relabel,
}

impl Default for LabelGenerationParams {
    fn default() -> Self {
        Self { epsilon: NonNegative::of(1.0), relabel: Relabel::Minibatch }
    }
}

impl BuiltIn for LabelGenerationParams {
    const ABOUT: About = About {
        name: "label-generation",
        aliases: &[],
        summary: "in every step, trains on the labels that match the counts and agree best with the model",
        bags: Assumes::Nothing,
        classes: "any; exact transport",
        cost: "log k; C² log k for more than two classes",
        reference: "Dulac-Arnold et al. 2019",
    };
}

impl Method for LabelGenerationParams {
    fn name(&self) -> &str {
        Self::ABOUT.name
    }

    fn supports(&self) -> Supports {
        Supports::LogOdds
    }

    fn requires(&self) -> Requires {
        Requires::Adam(format!("method {} trains on minibatches of whole bags", self.name()))
    }

    fn run(&self, session: &mut Session) -> Result<()> {
        let bags = session.bags();
        let mut objective = LabelGeneration::new(bags, self.epsilon);
        let (Relabel::Round(epochs), Some(adam)) = (self.relabel, session.adam()) else {
            return session.train(self.name(), Aim::Bags(&mut objective));
        };
        let epochs = epochs.get().min(adam.epochs);
        let n_rounds = adam.epochs.div_ceil(epochs);
        let optimizer = Optimizer::Adam(Adam { epochs, ..adam.clone() });
        let labels = |bag: usize, scores: ArrayView2<f32>, labels: ArrayViewMut2<f32>| {
            objective.labels(bag, scores, labels);
        };
        session.rounds_with(self.name(), n_rounds, optimizer, &mut |session, _| {
            let targets = next_targets(bags, &labels, session.scores()?.view());
            session.update(&targets)?;
            Ok(ControlFlow::Continue(()))
        })
    }
}
