//! Debiased square: the squared error of a bag's mean prediction, minus the bias that bags of k
//! rows add to it (Li, Chen, Javanmard & Mirrokni 2024).
//!
//! ```text
//! k (α − h̄)² − (k − 1)(E h − p)²
//! ```
//!
//! has the mean E (y − h)² over random bags, where E h is the mean prediction of all rows. E h is
//! estimated by a running mean m over the batches: (E h − p)² is replaced by (m − p)(2 h̄ − m − p),
//! which has the right derivative.

use super::proportion_matching::Predicted;
use super::schema::{About, Assumes, BuiltIn};
use crate::aim::{Aim, BagObjective};
use crate::bags::Bags;
use crate::error::Result;
use crate::session::{Method, Requires, Session, Supports};
use ndarray::{ArrayView2, ArrayViewMut2};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Debiased squared error of bags.
#[derive(Debug, Clone)]
pub struct DebiasedSquare<'b> {
    bags: &'b Bags,
    /// The running mean prediction of each class.
    running: Vec<f64>,
    pooled: Vec<f64>,
}

/// The weight of a batch in the running mean.
const NEW: f64 = 0.1;

impl<'b> DebiasedSquare<'b> {
    /// For these bags.
    pub fn new(bags: &'b Bags) -> Self {
        let pooled = bags.pooled_proportions();
        Self { bags, running: pooled.clone(), pooled }
    }
}

impl BagObjective for DebiasedSquare<'_> {
    fn bags(&self) -> &Bags {
        self.bags
    }

    fn start(&mut self) {
        self.running.clone_from(&self.pooled);
    }

    fn bag(&self, bag: usize, scores: ArrayView2<f32>, derivative: ArrayViewMut2<f32>) -> f64 {
        let k = scores.nrows() as f64;
        let predicted = Predicted::new(scores);
        let share = if predicted.mean.len() == 2 { 0.5 } else { 1.0 };
        let mut loss = 0.0;
        let mut slopes = vec![0.0; predicted.mean.len()];
        for (class, slope) in slopes.iter_mut().enumerate() {
            let (mean, reported) = (predicted.mean[class], self.bags.proportion(bag, class));
            let (running, pooled) = (self.running[class], self.pooled[class]);
            let off = running - pooled;
            loss +=
                share * (k * (reported - mean).powi(2) - (k - 1.0) * off * (2.0 * mean - running - pooled));
            *slope = share * (2.0 * k * (mean - reported) - 2.0 * (k - 1.0) * off);
        }
        predicted.write_derivative(&slopes, derivative);
        loss
    }

    fn after_batch(&mut self, scores: ArrayView2<f32>) {
        for (running, mean) in self.running.iter_mut().zip(Predicted::new(scores).mean) {
            *running += NEW * (mean - *running);
        }
    }
}

/// Parameters of `debiased-square`: none.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DebiasedSquareParams {}

impl BuiltIn for DebiasedSquareParams {
    const ABOUT: About = About {
        name: "debiased-square",
        aliases: &[],
        summary: "minimises the squared error of mean predictions, corrected to that of rows",
        bags: Assumes::RandomBags,
        classes: "any",
        cost: "C",
        reference: "Li et al. 2024",
    };
}

impl Method for DebiasedSquareParams {
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
        let mut objective = DebiasedSquare::new(session.bags());
        session.train(self.name(), Aim::Bags(&mut objective))
    }
}
