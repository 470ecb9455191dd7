//! TRAIN: losses on scores, each linear in the target.
//!
//! A task of two classes has one score `f` and one target `A`, of class 1; its corrected loss is
//! `(1 − A) ℓ(f, 0) + A ℓ(f, 1)`. C > 2 classes have C scores and C targets, and the corrected loss is `Σ_c A_c ℓ(f, c)`.
//! Linearity in the target is what makes it unbiased: the paper's Lemma *derand* holds for any ℓ. All is computed in
//! `f64`, and finite for scores far beyond ±10⁴.

mod link;

pub use link::Link;

use crate::error::{Error, Result};
use crate::kernel::{logistic_columns, logistic_losses, logistic_scores};
use ndarray::{ArrayView2, ArrayViewMut2};
use serde::{Deserialize, Serialize};

/// For which targets a corrected loss is convex in the scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Convexity {
    /// For any target, since ℓ(f, c) differ from class to class by an affine function of the score.
    AnyTarget,
    /// Only for targets in [0, 1]: corrected targets may make it concave.
    UnitTargets,
    /// Never.
    Never,
}

/// A loss of scores and a class, to evaluate with.
pub trait Loss: Sync {
    /// The loss's name, for messages and model files.
    fn name(&self) -> &'static str;

    /// What scores trained with this loss say.
    fn link(&self) -> Link;

    /// ℓ(f, c) for every class c: two values from one score, or as many as there are scores.
    fn values(&self, scores: &[f64], out: &mut [f64]);

    /// Whether it stays convex for targets outside [0, 1].
    fn convexity(&self) -> Convexity;

    /// Whether it serves two classes only.
    fn is_binary(&self) -> bool {
        false
    }
}

/// A loss that can be trained with.
pub trait TrainingLoss: Loss {
    /// The corrected loss of a row, and its derivative in each score.
    fn corrected(&self, scores: &[f64], targets: &[f64], derivative: &mut [f64]) -> f64;

    /// About the second derivative of the corrected loss in a score, the same for all rows: what L-BFGS starts from. A bound from above
    /// will do. `mean_targets` has the mean target of each score.
    fn curvature(&self, mean_targets: &[f64]) -> f64;

    /// The scores that are best if all rows have the same, given the mean target of each score; `None` if there are no such scores.
    fn best_constants(&self, mean_targets: &[f64]) -> Option<Vec<f64>> {
        let _ = mean_targets;
        None
    }

    /// Whether the mean corrected loss has a minimum along a shift of all scores whatever the targets are. If not, training
    /// shifts targets so that each class has a mean in (0, 1); see [`Correction`](crate::correction).
    fn has_minimum_for_any_targets(&self) -> bool {
        false
    }

    /// Refuses more than two classes, if that is all that it knows.
    fn check_classes(&self, n_classes: usize) -> Result<()> {
        if self.is_binary() && n_classes > 2 {
            return Err(Error::BinaryLoss { loss: self.name(), n_classes });
        }
        Ok(())
    }

    /// The corrected loss of some rows in sum, and its derivative in each score; a line a row.
    fn corrected_batch(
        &self,
        scores: ArrayView2<f32>,
        targets: ArrayView2<f32>,
        derivative: ArrayViewMut2<f32>,
    ) -> f64 {
        corrected_rows(self, scores, targets, derivative)
    }

    /// The corrected loss of some rows with one score each, in sum, and its derivative in each score.
    fn corrected_scores(&self, scores: &[f64], targets: &[f32], derivative: &mut [f64]) -> f64 {
        let lines = scores.iter().zip(targets).zip(derivative);
        lines
            .map(|((score, target), derivative)| {
                self.corrected(&[*score], &[f64::from(*target)], std::slice::from_mut(derivative))
            })
            .sum()
    }

    /// The corrected losses of many tasks of two classes, one a column: each task's loss, in sum over the rows, is added to
    /// its place in `losses`. Where the target is NaN, the task leaves the row out, and loss and derivative are 0.
    ///
    /// All three matrices are by rows, as many columns as `losses` has.
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

/// The corrected loss of some rows in sum, row by row.
#[expect(clippy::cast_possible_truncation, reason = "derivatives are stored as f32")]
fn corrected_rows(
    loss: &(impl TrainingLoss + ?Sized),
    scores: ArrayView2<f32>,
    targets: ArrayView2<f32>,
    mut derivative: ArrayViewMut2<f32>,
) -> f64 {
    /// Up to this many scores a row, nothing is allocated.
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

/// The losses that can be named.
///
/// ```
/// use easyllp::LossName;
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
    /// [`Hinge`]
    Hinge,
    /// [`ZeroOne`], for evaluation only
    ZeroOne,
}

impl LossName {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Logistic, Self::Softmax, Self::Squared, Self::Hinge, Self::ZeroOne];
    const CHOICES: &str = "logistic, softmax, squared, hinge, zero-one";

    /// The name as users write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Logistic => "logistic",
            Self::Softmax => "softmax",
            Self::Squared => "squared",
            Self::Hinge => "hinge",
            Self::ZeroOne => "zero-one",
        }
    }

    /// The loss to train with; zero-one has no derivative to follow.
    pub fn training(self) -> Result<&'static dyn TrainingLoss> {
        match self {
            Self::Logistic => Ok(&Logistic),
            Self::Softmax => Ok(&Softmax),
            Self::Squared => Ok(&Squared),
            Self::Hinge => Ok(&Hinge),
            Self::ZeroOne => Err(Error::Setting {
                name: "training loss",
                value: self.as_str().into(),
                expected: "a loss with a derivative, such as logistic",
            }),
        }
    }

    /// Cross-entropy for this many classes.
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
        logistic_scores(scores, targets, derivative)
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

/// Squared error of the score, which is a probability then: ℓ(f, y) = (f − y)², summed over the columns.
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

/// One if the class with the highest score is another one, else zero; for evaluation only.
#[derive(Debug, Clone, Copy)]
pub struct ZeroOne {
    /// What the scores say, and so where a single one decides.
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

/// The second derivative of cross-entropy where every row has the mean target, which is no further from 0 and 1 than rows' own
/// predictions are likely to be.
fn curvature_of_cross_entropy(mean_targets: &[f64]) -> f64 {
    let of_scores = mean_targets.iter().map(|mean| {
        let mean = mean.clamp(0.02, 0.98);
        mean * (1.0 - mean)
    });
    of_scores.sum::<f64>() / mean_targets.len() as f64
}

/// The log-odds of class shares: one score for two classes, else one a class.
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
mod tests {
    use super::*;

    const TRAINING: [LossName; 4] =
        [LossName::Logistic, LossName::Softmax, LossName::Squared, LossName::Hinge];

    /// Scores away from the hinge's kinks, and targets well outside [0, 1].
    const ONE: [(&[f64], &[f64]); 5] =
        [(&[0.3], &[0.7]), (&[-2.5], &[4.0]), (&[7.0], &[-3.0]), (&[0.0], &[0.0]), (&[-0.4], &[1.0])];
    const THREE: [(&[f64], &[f64]); 3] = [
        (&[0.3, -0.2, 0.5], &[0.2, 0.5, 0.3]),
        (&[-2.0, 3.0, 0.1], &[3.0, -2.5, 0.5]),
        (&[12.0, -11.0, 0.0], &[0.0, 1.0, 0.0]),
    ];

    #[test]
    fn derivatives_equal_finite_differences() {
        for name in TRAINING {
            let loss = name.training().unwrap();
            for (scores, targets) in ONE.iter().chain(&THREE) {
                let mut slopes = vec![0.0; scores.len()];
                loss.corrected(scores, targets, &mut slopes);
                for column in 0..scores.len() {
                    let shifted = |step: f64| {
                        let mut scores = scores.to_vec();
                        scores[column] += step;
                        loss.corrected(&scores, targets, &mut vec![0.0; scores.len()])
                    };
                    let difference = (shifted(1e-5) - shifted(-1e-5)) / 2e-5;
                    assert!((difference - slopes[column]).abs() < 1e-7, "{name:?} {scores:?} {targets:?}");
                }
            }
        }
    }

    #[test]
    fn the_corrected_loss_is_the_values_weighed_by_the_targets() {
        for name in TRAINING {
            let loss = name.training().unwrap();
            for (scores, targets) in ONE {
                let mut values = [0.0; 2];
                loss.values(scores, &mut values);
                let expected = (1.0 - targets[0]) * values[0] + targets[0] * values[1];
                assert!((loss.corrected(scores, targets, &mut [0.0]) - expected).abs() < 1e-12, "{name:?}");
            }
            for (scores, targets) in THREE {
                let mut values = [0.0; 3];
                loss.values(scores, &mut values);
                let expected: f64 = values.iter().zip(targets).map(|(value, target)| value * target).sum();
                assert!(
                    (loss.corrected(scores, targets, &mut [0.0; 3]) - expected).abs() < 1e-10,
                    "{name:?}"
                );
            }
        }
    }

    #[test]
    fn known_values() {
        let at = |loss: &dyn Loss, score: f64| {
            let mut values = [0.0; 2];
            loss.values(&[score], &mut values);
            values
        };
        let close = |got: [f64; 2], expected: [f64; 2]| {
            assert!(
                got.iter().zip(expected).all(|(got, expected)| (got - expected).abs() < 1e-12),
                "{got:?}"
            );
        };
        close(at(&Logistic, 3f64.ln()), [4f64.ln(), (4.0 / 3.0f64).ln()]);
        close(at(&Squared, 0.25), [0.0625, 0.5625]);
        close(at(&Hinge, 0.25), [1.25, 0.75]);
        close(at(&ZeroOne { link: Link::Logit }, 0.25), [1.0, 0.0]);
        close(at(&ZeroOne { link: Link::Identity }, 0.25), [0.0, 1.0]);
    }

    #[test]
    fn large_scores_stay_finite() {
        for name in TRAINING {
            let loss = name.training().unwrap();
            for score in [-1e4, -1e2, 1e2, 1e4] {
                let mut slope = [f64::NAN];
                let value = loss.corrected(&[score], &[1.0], &mut slope);
                assert!(value.is_finite() && slope[0].is_finite(), "{name:?} at {score}");
                let mut slopes = [f64::NAN; 3];
                let value = loss.corrected(&[score, 0.0, -score], &[0.0, 1.0, 0.0], &mut slopes);
                assert!(value.is_finite() && slopes.iter().all(|s| s.is_finite()), "{name:?} at {score}");
            }
        }
        // The right side of a large score costs nothing, the wrong side costs the score.
        assert!(Logistic.corrected(&[1e4], &[1.0], &mut [0.0]).abs() < 1e-12);
        assert!((Logistic.corrected(&[-1e4], &[1.0], &mut [0.0]) - 1e4).abs() < 1e-9);
    }

    #[test]
    fn convexity_is_as_each_loss_says() {
        // Second differences along lines, with targets far outside [0, 1].
        for name in TRAINING {
            let loss = name.training().unwrap();
            let value = |f: f64, target: f64| loss.corrected(&[f], &[target], &mut [0.0]);
            let bend = |target: f64| {
                (-40..40)
                    .map(|step| f64::from(step) / 8.0)
                    .map(|f| value(f + 0.1, target) + value(f - 0.1, target) - 2.0 * value(f, target))
                    .fold(f64::INFINITY, f64::min)
            };
            assert!(bend(0.3) > -1e-12, "{name:?}");
            let outside = bend(5.0).min(bend(-4.0));
            assert_eq!(
                outside > -1e-12,
                loss.convexity() == Convexity::AnyTarget,
                "{name:?} bends by {outside}"
            );
        }
    }

    #[test]
    fn names_are_read_back() {
        for name in TRAINING.into_iter().chain([LossName::ZeroOne]) {
            assert_eq!(name.as_str().parse::<LossName>().unwrap(), name);
        }
        assert!(LossName::ZeroOne.training().is_err());
    }
}
