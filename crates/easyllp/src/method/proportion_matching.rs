//! Proportion matching: fit the mean prediction of a bag to its reported proportion (DLLP, Ardehali
//! & Culotta 2017).
//!
//! The loss does not separate the rows of a bag: predicting the bag's proportion for each row is
//! optimal, too. It works if proportions differ between bags, and with networks that prefer
//! confident predictions.

use super::schema::{About, Assumes, BuiltIn};
use crate::aim::{Aim, BagObjective};
use crate::bags::Bags;
use crate::error::Result;
use crate::loss::Link;
use crate::session::{Method, Requires, Session, Supports};
use ndarray::{ArrayView2, ArrayViewMut2};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The distance between mean prediction and proportion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Distance {
    /// −Σ_c α_c log h̄_c; noisy proportions are clipped to [0, 1].
    #[default]
    CrossEntropy,
    /// Σ_c (α_c − h̄_c)², over class 1 only if there are two.
    Squared,
}

/// Matching of proportions.
#[derive(Debug, Clone)]
pub struct ProportionMatching<'b> {
    bags: &'b Bags,
    distance: Distance,
}

impl<'b> ProportionMatching<'b> {
    /// For these bags.
    pub fn new(bags: &'b Bags, distance: Distance) -> Self {
        Self { bags, distance }
    }
}

impl BagObjective for ProportionMatching<'_> {
    fn bags(&self) -> &Bags {
        self.bags
    }

    fn bag(&self, bag: usize, scores: ArrayView2<f32>, derivative: ArrayViewMut2<f32>) -> f64 {
        /// Smaller probabilities are clipped to this, so that their logarithm is finite; trained
        /// scores do not reach it.
        const LEAST: f64 = 1e-300;
        let predicted = Predicted::new(scores);
        let share = if predicted.mean.len() == 2 { 0.5 } else { 1.0 };
        let mut loss = 0.0;
        let mut slopes = vec![0.0; predicted.mean.len()];
        for (class, (slope, &mean)) in slopes.iter_mut().zip(&predicted.mean).enumerate() {
            let reported = self.bags.proportion(bag, class);
            match self.distance {
                Distance::CrossEntropy => {
                    let (mean, reported) = (mean.max(LEAST), reported.clamp(0.0, 1.0));
                    loss -= reported * mean.ln();
                    *slope = -reported / mean;
                }
                Distance::Squared => {
                    loss += share * (mean - reported).powi(2);
                    *slope = share * 2.0 * (mean - reported);
                }
            }
        }
        predicted.write_derivative(&slopes, derivative);
        loss
    }
}

/// Probabilities of a bag's rows, and their mean.
pub(super) struct Predicted {
    /// A line per row, a column per class.
    probabilities: Vec<f64>,
    pub(super) mean: Vec<f64>,
}

impl Predicted {
    /// From log odds.
    pub(super) fn new(scores: ArrayView2<f32>) -> Self {
        let (n_rows, n_scores) = scores.dim();
        let n_classes = n_scores.max(2);
        let mut probabilities = vec![0.0; n_rows * n_classes];
        let mut mean = vec![0.0; n_classes];
        let mut of_row = vec![0.0; n_scores];
        for (row, line) in scores.rows().into_iter().zip(probabilities.chunks_exact_mut(n_classes)) {
            of_row.iter_mut().zip(row).for_each(|(out, &score)| *out = f64::from(score));
            Link::Logit.probabilities(&of_row, line).expect("log odds are probabilities");
            mean.iter_mut().zip(line).for_each(|(sum, q)| *sum += *q / n_rows as f64);
        }
        Self { probabilities, mean }
    }

    /// The derivative of a loss in each score, given the derivative in the mean probability of each
    /// class.
    #[expect(clippy::cast_possible_truncation, reason = "derivatives are stored as f32")]
    pub(super) fn write_derivative(&self, slopes: &[f64], mut derivative: ArrayViewMut2<f32>) {
        let n_classes = self.mean.len();
        let (n_rows, n_scores) = derivative.dim();
        for (mut out, q) in derivative.rows_mut().into_iter().zip(self.probabilities.chunks_exact(n_classes))
        {
            // Through the softmax; the one score of two classes is that of class 1 against 0.
            let along: f64 = slopes.iter().zip(q).map(|(slope, q)| slope * q).sum();
            for (place, out) in out.iter_mut().enumerate() {
                let class = if n_scores == 1 { 1 } else { place };
                *out = (q[class] * (slopes[class] - along) / n_rows as f64) as f32;
            }
        }
    }
}

/// Parameters of `proportion-matching`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ProportionMatchingParams {
    /// The distance between mean prediction and proportion.
    pub distance: Distance,
}

impl BuiltIn for ProportionMatchingParams {
    const ABOUT: About = About {
        name: "proportion-matching",
        aliases: &[],
        summary: "matches the mean prediction of a bag to its proportion",
        bags: Assumes::Nothing,
        classes: "any",
        cost: "C",
        reference: "Ardehali & Culotta 2017",
    };
}

impl Method for ProportionMatchingParams {
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
        let mut objective = ProportionMatching::new(session.bags(), self.distance);
        session.train(self.name(), Aim::Bags(&mut objective))
    }
}
