//! TRAIN: losses on scores, each linear in the target.
//!
//! A task of two classes has one score `f` and one target `A`, of class 1; its corrected loss is
//! `(1 − A) ℓ(f, 0) + A ℓ(f, 1)`. C > 2 classes have C scores and C targets, and the corrected loss
//! is `Σ_c A_c ℓ(f, c)`. The loss is unbiased because it is linear in the target: the paper's Lemma
//! *derand* holds for any ℓ. Everything is computed in `f64`, and is finite for scores far beyond
//! ±10⁴.

mod built_in;
mod link;

pub use built_in::{Brier, Hinge, Logistic, Softmax, Squared, ZeroOne};
pub use link::{LEAST_PROBABILITY, Link};

use crate::error::{Error, Result};
use ndarray::{ArrayView2, ArrayViewMut2};
use serde::{Deserialize, Serialize};

/// For which targets a corrected loss is convex in the scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Convexity {
    /// For any target: ℓ(f, c) differ between classes by an affine function of the score.
    AnyTarget,
    /// Only for targets in [0, 1]; other corrected targets may make it concave.
    UnitTargets,
    /// Never.
    Never,
}

/// A loss of scores and a class, for evaluation.
pub trait Loss: Sync {
    /// The loss's name, for messages and model files.
    fn name(&self) -> &'static str;

    /// What scores trained with this loss mean.
    fn link(&self) -> Link;

    /// ℓ(f, c) for every class c: two values for one score, else one per score.
    fn values(&self, scores: &[f64], out: &mut [f64]);

    /// Whether it stays convex for targets outside [0, 1].
    fn convexity(&self) -> Convexity;

    /// Whether it supports two classes only.
    fn is_binary(&self) -> bool {
        false
    }
}

/// A loss for training.
pub trait TrainingLoss: Loss {
    /// The corrected loss of a row, and its derivative in each score.
    fn corrected(&self, scores: &[f64], targets: &[f64], derivative: &mut [f64]) -> f64;

    /// An approximate second derivative of the corrected loss in a score, the same for all rows;
    /// L-BFGS starts from it. An upper bound is fine. `mean_targets` has the mean target of each
    /// score.
    fn curvature(&self, mean_targets: &[f64]) -> f64;

    /// The best constant scores, given the mean target of each score; `None` if they do not exist.
    fn best_constants(&self, mean_targets: &[f64]) -> Option<Vec<f64>> {
        let _ = mean_targets;
        None
    }

    /// A convex loss of the same scores: if this loss is not convex, L-BFGS starts from that one's optimum. Without one, L-BFGS
    /// refuses this loss.
    fn convex_start(&self) -> Option<&'static dyn TrainingLoss> {
        None
    }

    /// Whether the mean corrected loss has a minimum along a shift of all scores for any targets.
    /// If not, training shifts targets so that each class has a mean in (0, 1); see
    /// [`Correction`](crate::correction).
    fn has_minimum_for_any_targets(&self) -> bool {
        false
    }

    /// Checks that the loss supports this number of classes.
    fn check_classes(&self, n_classes: usize) -> Result<()> {
        if self.is_binary() && n_classes > 2 {
            return Err(Error::BinaryLoss { loss: self.name(), n_classes });
        }
        Ok(())
    }

    /// The sum of the corrected losses of some rows, and its derivative in each score; a line per
    /// row.
    fn corrected_batch(
        &self,
        scores: ArrayView2<f32>,
        targets: ArrayView2<f32>,
        derivative: ArrayViewMut2<f32>,
    ) -> f64 {
        corrected_rows(self, scores, targets, derivative)
    }

    /// The sum of the corrected losses of some rows with one score each, and its derivative in each
    /// score.
    fn corrected_scores(&self, scores: &[f64], targets: &[f32], derivative: &mut [f64]) -> f64 {
        let lines = scores.iter().zip(targets).zip(derivative);
        lines
            .map(|((score, target), derivative)| {
                self.corrected(&[*score], &[f64::from(*target)], std::slice::from_mut(derivative))
            })
            .sum()
    }

    /// The corrected losses of many binary tasks, one per column: the sum over the rows is added to
    /// the task's entry of `losses`. Where the target is NaN, the task skips the row; loss and
    /// derivative are 0.
    ///
    /// All three matrices are stored by rows, with as many columns as `losses`.
    #[expect(clippy::cast_possible_truncation, reason = "derivatives are stored as f32")]
    fn corrected_columns(&self, scores: &[f32], targets: &[f32], derivative: &mut [f32], losses: &mut [f64]) {
        let width = losses.len();
        let lines = scores.chunks_exact(width).zip(targets.chunks_exact(width));
        for ((scores, targets), derivative) in lines.zip(derivative.chunks_exact_mut(width)) {
            for (column, loss) in losses.iter_mut().enumerate() {
                let mut slope = [0.0];
                if !targets[column].is_nan() {
                    let (score, target) = (f64::from(scores[column]), f64::from(targets[column]));
                    *loss += self.corrected(&[score], &[target], &mut slope);
                }
                derivative[column] = slope[0] as f32;
            }
        }
    }
}

/// The sum of the corrected losses of some rows, computed row by row.
#[expect(clippy::cast_possible_truncation, reason = "derivatives are stored as f32")]
fn corrected_rows(
    loss: &(impl TrainingLoss + ?Sized),
    scores: ArrayView2<f32>,
    targets: ArrayView2<f32>,
    mut derivative: ArrayViewMut2<f32>,
) -> f64 {
    /// Up to this number of scores per row, nothing is allocated.
    const FEW: usize = 64;
    let width = scores.ncols();
    let (mut few, mut many) = ([0.0; 3 * FEW], Vec::new());
    let line = if width <= FEW {
        &mut few[..3 * width]
    } else {
        many.resize(3 * width, 0.0);
        &mut many[..]
    };
    let (score, rest) = line.split_at_mut(width);
    let (target, slope) = rest.split_at_mut(width);
    let mut sum = 0.0;
    for row in 0..scores.nrows() {
        for column in 0..width {
            score[column] = f64::from(scores[[row, column]]);
            target[column] = f64::from(targets[[row, column]]);
        }
        sum += loss.corrected(score, target, slope);
        for column in 0..width {
            derivative[[row, column]] = slope[column] as f32;
        }
    }
    sum
}

/// The built-in losses by name.
///
/// ```
/// use easyllp::loss::LossName;
///
/// let name: LossName = "logistic".parse()?;
/// assert_eq!(name, LossName::Logistic);
/// assert!("log-loss".parse::<LossName>().unwrap_err().to_string().contains("choose one of"));
/// # Ok::<(), easyllp::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LossName {
    /// [`Logistic`]
    Logistic,
    /// [`Softmax`]
    Softmax,
    /// [`Squared`]
    Squared,
    /// [`Brier`]
    Brier,
    /// [`Hinge`]
    Hinge,
    /// [`ZeroOne`], for evaluation only
    ZeroOne,
}

impl LossName {
    /// All losses.
    pub const ALL: [Self; 6] =
        [Self::Logistic, Self::Softmax, Self::Squared, Self::Brier, Self::Hinge, Self::ZeroOne];
    const CHOICES: &str = "logistic, softmax, squared, brier, hinge, zero-one";

    /// The name in settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Logistic => "logistic",
            Self::Softmax => "softmax",
            Self::Squared => "squared",
            Self::Brier => "brier",
            Self::Hinge => "hinge",
            Self::ZeroOne => "zero-one",
        }
    }

    /// The loss for training; zero-one has no useful derivative.
    pub fn training(self) -> Result<&'static dyn TrainingLoss> {
        match self {
            Self::Logistic => Ok(&Logistic),
            Self::Softmax => Ok(&Softmax),
            Self::Squared => Ok(&Squared),
            Self::Brier => Ok(&Brier),
            Self::Hinge => Ok(&Hinge),
            Self::ZeroOne => Err(Error::Setting {
                name: "training loss",
                value: self.as_str().into(),
                expected: "a loss with a derivative, such as logistic",
            }),
        }
    }

    /// Cross-entropy for this number of classes.
    pub fn cross_entropy(n_classes: usize) -> Self {
        if n_classes == 2 { Self::Logistic } else { Self::Softmax }
    }
}

impl std::str::FromStr for LossName {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|loss| loss.as_str() == name).ok_or_else(|| Error::UnknownName {
            what: "loss",
            name: name.into(),
            choices: Self::CHOICES,
        })
    }
}

/// log(1 + e^f) without overflow.
pub(crate) fn softplus(f: f64) -> f64 {
    f.max(0.0) + (-f.abs()).exp().ln_1p()
}

/// 1/(1 + e^−f) without overflow, and without losing small values to rounding.
pub(crate) fn sigmoid(f: f64) -> f64 {
    let small = (-f.abs()).exp();
    if f >= 0.0 { 1.0 / (1.0 + small) } else { small / (1.0 + small) }
}

pub(crate) fn log_sum_exp(scores: &[f64]) -> f64 {
    let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    largest + scores.iter().map(|f| (f - largest).exp()).sum::<f64>().ln()
}

#[cfg(test)]
mod tests;
