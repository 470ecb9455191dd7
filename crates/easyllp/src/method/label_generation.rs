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
use super::schema::{About, Assumes, BuiltIn};
use crate::aim::{Aim, BagObjective};
use crate::bags::Bags;
use crate::error::Result;
use crate::loss::{Logistic, Softmax, TrainingLoss};
use crate::number::Positive;
use crate::session::{Method, Requires, Session, Supports};
use ndarray::{Array2, ArrayView2, ArrayViewMut2};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Training on labels that match the counts and the current predictions.
#[derive(Clone)]
pub struct LabelGeneration<'b> {
    bags: &'b Bags,
    epsilon: Option<f64>,
    /// One divided by the mean bag size: the loss of a bag is the sum over its rows divided by the
    /// mean bag size.
    share: f64,
}

impl<'b> LabelGeneration<'b> {
    /// Hard labels, or soft labels with ε above 0.
    pub fn new(bags: &'b Bags, epsilon: Option<Positive>) -> Self {
        let share = bags.n_bags() as f64 / bags.n_members() as f64;
        Self { bags, epsilon: epsilon.map(Positive::get), share }
    }
}

impl BagObjective for LabelGeneration<'_> {
    fn bags(&self) -> &Bags {
        self.bags
    }

    #[expect(clippy::cast_possible_truncation, reason = "derivatives are f32")]
    fn bag(&self, bag: usize, scores: ArrayView2<f32>, mut derivative: ArrayViewMut2<f32>) -> f64 {
        let mut labels = Array2::zeros(scores.dim());
        let counts = self.bags.counts_of(bag).to_vec();
        let mut loss = match self.epsilon {
            None => {
                best_labels(scores, &whole_counts(&counts, scores.nrows()), labels.view_mut());
                0.0
            }
            Some(epsilon) => {
                soft_labels(scores, &counts, epsilon, labels.view_mut());
                -epsilon * entropy(labels.view())
            }
        };
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

/// Parameters of `label-generation`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LabelGenerationParams {
    /// Entropy regularisation of the labels. Unset: hard labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epsilon: Option<Positive>,
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
        let mut objective = LabelGeneration::new(session.bags(), self.epsilon);
        session.train(self.name(), Aim::Bags(&mut objective))
    }
}
