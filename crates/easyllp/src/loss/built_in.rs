//! The built-in losses.

use super::{Convexity, Link, Loss, LossName, TrainingLoss, corrected_rows, log_sum_exp, sigmoid, softplus};
use crate::kernel::{logistic_columns, logistic_losses};
use ndarray::{ArrayView2, ArrayViewMut2};

/// Logistic loss of a single score: ℓ(f, 1) = log(1 + e^−f), ℓ(f, 0) = log(1 + e^f). For two classes.
#[derive(Debug, Clone, Copy)]
pub struct Logistic;

impl Loss for Logistic {
    fn name(&self) -> &'static str {
        LossName::Logistic.as_str()
    }

    fn link(&self) -> Link {
        Link::Logit
    }

    fn convexity(&self) -> Convexity {
        Convexity::AnyTarget
    }

    fn is_binary(&self) -> bool {
        true
    }

    fn values(&self, scores: &[f64], out: &mut [f64]) {
        column_values(scores, out, |f| {
            let rest = (-f.abs()).exp().ln_1p();
            [f.max(0.0) + rest, (-f).max(0.0) + rest]
        });
    }
}

impl TrainingLoss for Logistic {
    fn curvature(&self, mean_targets: &[f64]) -> f64 {
        curvature_of_cross_entropy(mean_targets)
    }

    fn best_constants(&self, mean_targets: &[f64]) -> Option<Vec<f64>> {
        Some(log_odds(mean_targets))
    }

    fn corrected(&self, scores: &[f64], targets: &[f64], derivative: &mut [f64]) -> f64 {
        // ℓ(f, 1) − ℓ(f, 0) = −f, so the corrected loss is softplus(f) − A f, convex whatever A is.
        column_sum(scores, targets, derivative, |f, target| (softplus(f) - target * f, sigmoid(f) - target))
    }

    fn corrected_batch(
        &self,
        scores: ArrayView2<f32>,
        targets: ArrayView2<f32>,
        mut derivative: ArrayViewMut2<f32>,
    ) -> f64 {
        match (scores.as_slice(), targets.as_slice(), derivative.as_slice_mut()) {
            (Some(scores), Some(targets), Some(derivative)) => logistic_losses(scores, targets, derivative),
            _ => corrected_rows(self, scores, targets, derivative),
        }
    }

    fn corrected_scores(&self, scores: &[f64], targets: &[f32], derivative: &mut [f64]) -> f64 {
        logistic_losses(scores, targets, derivative)
    }

    fn corrected_columns(&self, scores: &[f32], targets: &[f32], derivative: &mut [f32], losses: &mut [f64]) {
        logistic_columns(scores, targets, derivative, losses);
    }
}

/// Cross-entropy of the softmax of C scores: ℓ(f, c) = log Σ_j e^(f_j) − f_c.
#[derive(Debug, Clone, Copy)]
pub struct Softmax;

impl Loss for Softmax {
    fn name(&self) -> &'static str {
        LossName::Softmax.as_str()
    }

    fn link(&self) -> Link {
        Link::Logit
    }

    fn convexity(&self) -> Convexity {
        Convexity::AnyTarget
    }

    fn values(&self, scores: &[f64], out: &mut [f64]) {
        if scores.len() == 1 {
            return Logistic.values(scores, out);
        }
        let total = log_sum_exp(scores);
        out.iter_mut().zip(scores).for_each(|(value, f)| *value = total - f);
    }
}

impl TrainingLoss for Softmax {
    fn curvature(&self, mean_targets: &[f64]) -> f64 {
        curvature_of_cross_entropy(mean_targets)
    }

    fn best_constants(&self, mean_targets: &[f64]) -> Option<Vec<f64>> {
        Some(log_odds(mean_targets))
    }

    fn corrected(&self, scores: &[f64], targets: &[f64], derivative: &mut [f64]) -> f64 {
        if scores.len() == 1 {
            return Logistic.corrected(scores, targets, derivative);
        }
        let total = log_sum_exp(scores);
        let weight: f64 = targets.iter().sum();
        let mut value = weight * total;
        for ((f, target), slope) in scores.iter().zip(targets).zip(derivative) {
            value -= target * f;
            *slope = weight * (f - total).exp() - target;
        }
        value
    }
}

/// Squared error of the score, which is then a probability: ℓ(f, y) = (f − y)², summed over the
/// columns.
#[derive(Debug, Clone, Copy)]
pub struct Squared;

impl Loss for Squared {
    fn name(&self) -> &'static str {
        LossName::Squared.as_str()
    }

    fn link(&self) -> Link {
        Link::Identity
    }

    fn convexity(&self) -> Convexity {
        Convexity::AnyTarget
    }

    fn values(&self, scores: &[f64], out: &mut [f64]) {
        column_values(scores, out, |f| [f * f, (f - 1.0) * (f - 1.0)]);
    }
}

impl TrainingLoss for Squared {
    fn curvature(&self, _mean_targets: &[f64]) -> f64 {
        2.0
    }

    fn best_constants(&self, mean_targets: &[f64]) -> Option<Vec<f64>> {
        Some(mean_targets.to_vec())
    }

    fn has_minimum_for_any_targets(&self) -> bool {
        true
    }

    fn corrected(&self, scores: &[f64], targets: &[f64], derivative: &mut [f64]) -> f64 {
        column_sum(scores, targets, derivative, |f, target| {
            (f * f + target * (1.0 - 2.0 * f), 2.0 * (f - target))
        })
    }
}

/// The Brier score: squared error of the probability, ℓ(f, y) = (σ(f) − y)² for two classes, else Σ_j (q_j − 1[j = y])² with
/// q = softmax(f).
///
/// It is bounded for any target, where log loss follows a target beyond 0 or 1 without end. It is not convex.
#[derive(Debug, Clone, Copy)]
pub struct Brier;

impl Loss for Brier {
    fn name(&self) -> &'static str {
        LossName::Brier.as_str()
    }

    fn link(&self) -> Link {
        Link::Logit
    }

    fn convexity(&self) -> Convexity {
        Convexity::Never
    }

    fn values(&self, scores: &[f64], out: &mut [f64]) {
        if let [score] = scores {
            let q = sigmoid(*score);
            [out[0], out[1]] = [q * q, sigmoid(-score).powi(2)];
            return;
        }
        softmax_into(scores, out);
        let squares: f64 = out.iter().map(|q| q * q).sum();
        for q in out {
            *q = 1.0 - 2.0 * *q + squares;
        }
    }
}

impl TrainingLoss for Brier {
    fn curvature(&self, mean_targets: &[f64]) -> f64 {
        // Where σ(f) is the target, the second derivative is 2 (q (1 − q))².
        2.0 * curvature_of_cross_entropy(mean_targets).powi(2)
    }

    fn best_constants(&self, mean_targets: &[f64]) -> Option<Vec<f64>> {
        Some(log_odds(mean_targets))
    }

    fn convex_start(&self) -> Option<&'static dyn TrainingLoss> {
        Some(&Softmax)
    }

    fn corrected(&self, scores: &[f64], targets: &[f64], derivative: &mut [f64]) -> f64 {
        if let ([score], [target]) = (scores, targets) {
            let q = sigmoid(*score);
            derivative[0] = 2.0 * q * sigmoid(-score) * (q - target);
            return q * q + target * (1.0 - 2.0 * q);
        }
        // With W = Σ A_c, S = Σ q_c² and T = Σ A_c q_c, the loss is W (1 + S) − 2 T.
        softmax_into(scores, derivative);
        let weight: f64 = targets.iter().sum();
        let squares: f64 = derivative.iter().map(|q| q * q).sum();
        let matched: f64 = derivative.iter().zip(targets).map(|(q, target)| q * target).sum();
        for (slope, target) in derivative.iter_mut().zip(targets) {
            let q = *slope;
            *slope = 2.0 * q * (weight * (q - squares) - (target - matched));
        }
        weight * (1.0 + squares) - 2.0 * matched
    }
}

/// Hinge loss of a margin: ℓ(f, 1) = max(0, 1 − f), ℓ(f, 0) = max(0, 1 + f), summed over the columns.
///
/// Corrected targets outside [0, 1] make it neither convex nor bounded below.
#[derive(Debug, Clone, Copy)]
pub struct Hinge;

impl Loss for Hinge {
    fn name(&self) -> &'static str {
        LossName::Hinge.as_str()
    }

    fn link(&self) -> Link {
        Link::Margin
    }

    fn convexity(&self) -> Convexity {
        Convexity::UnitTargets
    }

    fn values(&self, scores: &[f64], out: &mut [f64]) {
        column_values(scores, out, |f| [(1.0 + f).max(0.0), (1.0 - f).max(0.0)]);
    }
}

impl TrainingLoss for Hinge {
    fn curvature(&self, _mean_targets: &[f64]) -> f64 {
        2.0
    }

    fn corrected(&self, scores: &[f64], targets: &[f64], derivative: &mut [f64]) -> f64 {
        column_sum(scores, targets, derivative, |f, target| {
            let value = (1.0 - target) * (1.0 + f).max(0.0) + target * (1.0 - f).max(0.0);
            let slope_0 = if f > -1.0 { 1.0 - target } else { 0.0 };
            let slope_1 = if f < 1.0 { -target } else { 0.0 };
            (value, slope_0 + slope_1)
        })
    }
}

/// Zero-one loss: 0 if the class with the highest score is the true one, else 1. For evaluation
/// only.
#[derive(Debug, Clone, Copy)]
pub struct ZeroOne {
    /// What the scores mean, and so the threshold of a single score.
    pub link: Link,
}

impl Loss for ZeroOne {
    fn name(&self) -> &'static str {
        LossName::ZeroOne.as_str()
    }

    fn link(&self) -> Link {
        self.link
    }

    fn convexity(&self) -> Convexity {
        Convexity::Never
    }

    fn values(&self, scores: &[f64], out: &mut [f64]) {
        out.fill(1.0);
        out[self.link.class(scores)] = 0.0;
    }
}

/// The second derivative of cross-entropy if every row's prediction is the mean target; predictions
/// of single rows are usually nearer to 0 and 1.
fn curvature_of_cross_entropy(mean_targets: &[f64]) -> f64 {
    let of_scores = mean_targets.iter().map(|mean| {
        let mean = mean.clamp(0.02, 0.98);
        mean * (1.0 - mean)
    });
    of_scores.sum::<f64>() / mean_targets.len() as f64
}

/// The softmax of scores.
fn softmax_into(scores: &[f64], out: &mut [f64]) {
    let total = log_sum_exp(scores);
    out.iter_mut().zip(scores).for_each(|(q, f)| *q = (f - total).exp());
}

/// The log-odds of class shares: one score for two classes, else one per class.
fn log_odds(shares: &[f64]) -> Vec<f64> {
    let of = |share: &f64| if shares.len() == 1 { (share / (1.0 - share)).ln() } else { share.ln() };
    shares.iter().map(of).collect()
}

/// Values of a loss that is a sum over columns, from its values [for class 0, for class 1] at one score.
fn column_values(scores: &[f64], out: &mut [f64], at: impl Fn(f64) -> [f64; 2]) {
    if let [score] = scores {
        out.copy_from_slice(&at(*score));
        return;
    }
    let against: f64 = scores.iter().map(|&f| at(f)[0]).sum();
    for (value, &f) in out.iter_mut().zip(scores) {
        let [other, own] = at(f);
        *value = against - other + own;
    }
}

/// Sum over columns of a loss and its derivative, from both at one score and target.
fn column_sum(
    scores: &[f64],
    targets: &[f64],
    slopes: &mut [f64],
    at: impl Fn(f64, f64) -> (f64, f64),
) -> f64 {
    let mut sum = 0.0;
    for ((&f, &target), slope) in scores.iter().zip(targets).zip(slopes) {
        let (value, derivative) = at(f, target);
        sum += value;
        *slope = derivative;
    }
    sum
}
