//! Row targets from bag counts: unbiased for the class probabilities.
//!
//! A row of bag `i` gets, for each class `c`,
//!
//! ```text
//! A_ic = a_c + s_i (α_ic − b_c)
//! ```
//!
//! where `α_ic` is the bag's proportion, `s_i` the bag's *slope*, and `a`, `b` depend on the form
//! of the correction. The corrected loss of a row is `Σ_c A_ic ℓ(f, c)`: the loss is linear in the
//! target. Let N be the number of rows, n the number of bags, k_i the size of a bag, p̂ the pooled
//! proportions, and ω bag weights with Σω = 1:
//!
//! | form | s_i | a | b |
//! |---|---|---|---|
//! | naive | 1 | 0 | 0 |
//! | paper, prior p | k_i | p | p |
//! | centred | N f ω_i | p̂ − N f h | p̂ |
//! | centred, noise-aware | N f ω_i | p_ω | p_ω |
//!
//! * **Naive** targets are the proportions themselves. By Proposition *bias* of the paper they are
//!   a mixture of the truth, with weight 1/k, and of the prior.
//! * The **paper**'s targets (eq. *simple_tlalpha*; Theorem *multiclass*) are exactly unbiased if p
//!   is known and rows are independent. Their variance grows like k.
//! * **Centred** targets estimate a covariance. The risk is `E[(1−p)ℓ₀ + pℓ₁] + Cov(y, ℓ₁ − ℓ₀)`,
//!   and a bag of any size gives an unbiased estimate of that covariance. Bags may therefore be
//!   weighted freely once they are centred at p̂. The targets are exactly unbiased over all random
//!   assignments of the N rows to bags of the given sizes. They need no prior, and their variance
//!   per bag does not grow with k. Here `f = (N − 1)/(N − Σω_i k_i)` and `h = Σω_i k_i (α_i −
//!   p̂)/N`; with noise `p_ω = Σω_i k_i α_i / Σω_i k_i`, and `Σω_i k_i` in `f` becomes `N Σω_i² k_i
//!   / Σω_i k_i`.
//!
//! Log loss has no minimum if the mean target of a class leaves (0, 1). Training then shifts
//! targets by one constant per class. `correction/shares.rs` states when this happens, the shift,
//! and its small bias.
//!
//! The surrogate form (eq. *tlsimple*) replaces `α_i` by a label drawn from the bag's proportions.
//! If all bags have one row, every form returns the label itself, bit for bit.

mod shares;
mod words;

pub use crate::prior::LabelPrior;
pub(crate) use shares::inside;

use crate::bags::{Bags, NO_BAG};
use crate::classes::{check_labels, columns, n_columns};
use crate::error::{Error, Result, check_length};
use crate::seed::{Stream, stream};
use ndarray::{Array2, ArrayView2, ArrayViewMut2, Axis};
use rand::RngExt;
use serde::{Deserialize, Serialize};

/// The weights of bags in a centred correction.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum BagWeights {
    /// Equal weights. The covariance within a bag is as noisy for a large bag as for a small one,
    /// so this is the right default.
    #[default]
    Equal,
    /// Weights by size, as in the paper's estimator; much worse if sizes differ.
    Size,
    /// Weights 1/(1 + ρ/k), between equal and by size. Better than equal for rare positives in very
    /// small bags. A good ρ is at most about 1/p.
    Variance {
        /// The ρ of the formula, at least 0.
        rho: f64,
    },
    /// Weights 1/(p(1−p) + σ²/k) with the declared noise σ² of each bag; the prior uses the same
    /// weights.
    NoiseAware,
}

/// How bags become row targets; see the [module](self) for the formulas.
///
/// ```
/// use easyllp::{Bags, Noise, Partition, correction::{BagWeights, Correction, LabelPrior}};
///
/// let partition = Partition::new(6, [[0, 1, 2], [3, 4, 5]])?;
/// let bags = Bags::binary(partition, &[2.0, 0.0], Noise::None)?;
///
/// // The paper's targets: A = p + k(α − p). They leave [0, 1], and must not be clipped.
/// let paper = Correction::Paper(LabelPrior::binary(0.5)?).soft(&bags)?;
/// assert_eq!(paper.values().column(0).to_vec(), [1.0, 1.0, 1.0, -1.0, -1.0, -1.0]);
///
/// // Centred targets average to the pooled proportion, 1/3.
/// let centred = Correction::Centred(BagWeights::Equal).soft(&bags)?;
/// assert!((centred.values().mean().unwrap() - 1.0 / 3.0).abs() < 1e-6);
/// # Ok::<(), easyllp::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Correction {
    /// The bag's proportions, uncorrected: biased, a baseline.
    Naive,
    /// The paper's form, with a prior that is known or pooled from the bags.
    Paper(LabelPrior),
    /// The centred form: the default.
    Centred(BagWeights),
}

impl Default for Correction {
    fn default() -> Self {
        Self::Centred(BagWeights::Equal)
    }
}

/// One target per row and class, in row order. A target may leave [0, 1].
///
/// Two classes have one column, the target of class 1. C > 2 classes have C columns, and each line
/// sums to 1. Rows in no bag hold zeros and are not trained on.
#[derive(Debug, Clone, PartialEq)]
pub struct Targets(Array2<f32>);

impl Targets {
    /// Allocates targets for this number of rows.
    pub fn zeros(n_rows: usize, n_classes: usize) -> Self {
        Self(Array2::zeros((n_rows, n_columns(n_classes))))
    }

    /// The labels themselves as targets, each below `n_classes`.
    pub fn from_labels(labels: &[u32], n_classes: usize) -> Result<Self> {
        check_labels(labels, n_classes)?;
        let mut targets = Self::zeros(labels.len(), n_classes);
        for (mut line, &label) in targets.0.rows_mut().into_iter().zip(labels) {
            for (column, class) in columns(n_classes).enumerate() {
                line[column] = f32::from(u8::from(class == label as usize));
            }
        }
        Ok(targets)
    }

    /// Any finite targets, one line per row: one column for two classes, else one per class.
    pub fn from_values(values: Array2<f32>) -> Result<Self> {
        let targets = Self(values);
        targets.check_finite()?;
        Ok(targets)
    }

    /// The targets, one line per row.
    pub fn values(&self) -> ArrayView2<'_, f32> {
        self.0.view()
    }

    /// The targets, for writing. Training rejects targets that are not finite.
    pub fn values_mut(&mut self) -> ArrayViewMut2<'_, f32> {
        self.0.view_mut()
    }

    /// The only target column of two classes.
    pub(crate) fn column_mut(&mut self) -> &mut [f32] {
        if !self.0.is_standard_layout() {
            self.0 = self.0.as_standard_layout().into_owned();
        }
        self.0.as_slice_mut().expect("a standard layout is contiguous")
    }

    /// Checks that the targets belong to this table and task.
    pub(crate) fn check(&self, n_rows: usize, n_classes: usize) -> Result<()> {
        check_length("rows of targets", n_rows, self.0.nrows())?;
        check_length("columns of targets", n_columns(n_classes), self.0.ncols())
    }

    /// Checks that all targets are finite.
    pub(crate) fn check_finite(&self) -> Result<()> {
        match self.0.indexed_iter().find(|(_, target)| !target.is_finite()) {
            Some(((row, column), &value)) => Err(Error::TargetNotFinite { row, column, value }),
            None => Ok(()),
        }
    }
}

impl Correction {
    /// Soft targets: the bag's proportions, corrected.
    pub fn soft(&self, bags: &Bags) -> Result<Targets> {
        let mut targets = Targets::zeros(bags.n_rows(), bags.n_classes());
        self.soft_into(bags, &mut targets)?;
        Ok(targets)
    }

    /// Soft targets, written into an existing array.
    pub fn soft_into(&self, bags: &Bags, out: &mut Targets) -> Result<()> {
        let line = self.line(bags)?;
        out.check(bags.n_rows(), bags.n_classes())?;
        for (class, mut column) in columns(bags.n_classes()).zip(out.0.columns_mut()) {
            // Bags first, then rows in their order: the few bag values stay in cache, and writing is sequential.
            let of_bag: Vec<f32> =
                (0..bags.n_bags()).map(|bag| line.target(bag, class, bags.proportion(bag, class))).collect();
            for (target, &bag) in column.iter_mut().zip(bags.bag_of_row()) {
                *target = of_bag.get(bag as usize).copied().unwrap_or(0.0);
            }
        }
        Ok(())
    }

    /// Surrogate targets: each row draws a label from its bag's proportions; the label is then
    /// corrected.
    ///
    /// Their mean over draws is the soft target. Their variance is larger, and grows like k² in the
    /// paper's form.
    pub fn surrogate(&self, bags: &Bags, seed: u64) -> Result<Targets> {
        let mut targets = Targets::zeros(bags.n_rows(), bags.n_classes());
        self.surrogate_into(bags, &mut stream(seed, Stream::Surrogate), &mut targets)?;
        Ok(targets)
    }

    /// Surrogate targets from the next draws of a stream, written into an existing array.
    pub(crate) fn surrogate_into(&self, bags: &Bags, rng: &mut impl RngExt, out: &mut Targets) -> Result<()> {
        check_drawable(bags)?;
        let line = self.line(bags)?;
        out.check(bags.n_rows(), bags.n_classes())?;
        for (&bag, mut targets) in bags.bag_of_row().iter().zip(out.0.rows_mut()) {
            if bag == NO_BAG {
                targets.fill(0.0);
                continue;
            }
            let drawn = draw_class(bags, bag as usize, rng.random());
            for (target, class) in targets.iter_mut().zip(columns(bags.n_classes())) {
                *target = line.target(bag as usize, class, f64::from(u8::from(class == drawn)));
            }
        }
        Ok(())
    }

    /// The class shares, if they are known and not estimated.
    pub(crate) fn known_shares(&self) -> Option<Vec<f64>> {
        match self {
            Self::Paper(prior) => Some(prior.classes().to_vec()),
            Self::Naive | Self::Centred(_) => None,
        }
    }

    /// Slopes, and the numbers a and b of the module's table.
    pub(crate) fn line(&self, bags: &Bags) -> Result<Line> {
        match self {
            Self::Naive => {
                let zeros = vec![0.0; bags.n_classes()];
                Ok(Line { slopes: vec![1.0; bags.n_bags()], level: zeros.clone(), origin: zeros })
            }
            Self::Paper(prior) => {
                check_length("classes of the prior", bags.n_classes(), prior.classes().len())?;
                let prior = prior.classes().to_vec();
                let slopes = bags.sizes().map(|size| size as f64).collect();
                Ok(Line { slopes, level: prior.clone(), origin: prior })
            }
            Self::Centred(weights) => centred(*weights, bags),
        }
    }
}

/// A target as an affine function of a proportion or of a drawn label.
pub(crate) struct Line {
    slopes: Vec<f64>,
    level: Vec<f64>,
    origin: Vec<f64>,
}

impl Line {
    // Do not clip to [0, 1]: a target outside the simplex looks wrong, but clipping biases the gradient, and more bags
    // do not remove that bias. The order of the operations makes a slope of one with a = b return the label exactly.
    pub(crate) fn exact(&self, bag: usize, class: usize, proportion: f64) -> f64 {
        let slope = self.slopes[bag];
        slope * proportion + (self.level[class] - slope * self.origin[class])
    }

    #[expect(clippy::cast_possible_truncation, reason = "targets are stored as f32")]
    fn target(&self, bag: usize, class: usize, proportion: f64) -> f32 {
        self.exact(bag, class, proportion) as f32
    }
}

fn centred(weights: BagWeights, bags: &Bags) -> Result<Line> {
    if bags.n_bags() < 2 {
        return Err(Error::TooFewBags { what: "a centred correction", needed: 2, got: bags.n_bags() });
    }
    let n_rows = bags.n_members() as f64;
    let weights_of_bags = relative_weights(weights, bags)?;
    let total: f64 = weights_of_bags.iter().sum();
    let sizes = || bags.sizes().map(|size| size as f64);
    let weighed_rows: f64 = weights_of_bags.iter().zip(sizes()).map(|(w, k)| w * k).sum();
    let weighed: Vec<f64> = bags
        .counts()
        .axis_iter(Axis(1))
        .map(|counts| weights_of_bags.iter().zip(counts).map(|(w, count)| w * count).sum())
        .collect();
    let slopes = |f: f64| weights_of_bags.iter().map(|w| n_rows * f * w / total).collect();

    if weights == BagWeights::NoiseAware {
        let squares: f64 = weights_of_bags.iter().zip(sizes()).map(|(w, k)| w * w * k).sum();
        let f = (n_rows - 1.0) / (n_rows - n_rows * squares / (total * weighed_rows));
        let prior: Vec<f64> = weighed.iter().map(|counts| counts / weighed_rows).collect();
        return Ok(Line { slopes: slopes(f), level: prior.clone(), origin: prior });
    }
    let f = (n_rows - 1.0) / (n_rows - weighed_rows / total);
    let pooled = bags.pooled_proportions();
    // Where all weights are one, h is zero; computed, it would come out as a rounding error.
    let is_equal = weights_of_bags.iter().all(|weight| (weight - 1.0).abs() <= 0.0);
    let shift = |counts: f64, p: f64| if is_equal { 0.0 } else { f * (counts - p * weighed_rows) / total };
    let level = weighed.iter().zip(&pooled).map(|(&counts, &p)| p - shift(counts, p)).collect();
    Ok(Line { slopes: slopes(f), level, origin: pooled })
}

/// Bag weights up to a factor; the largest is one.
fn relative_weights(weights: BagWeights, bags: &Bags) -> Result<Vec<f64>> {
    let sizes = bags.sizes().map(|size| size as f64);
    let relative: Vec<f64> = match weights {
        BagWeights::Equal => vec![1.0; bags.n_bags()],
        BagWeights::Size => sizes.collect(),
        BagWeights::Variance { rho } => {
            if !(rho >= 0.0 && rho.is_finite()) {
                return Err(Error::Setting {
                    name: "rho",
                    value: rho.to_string(),
                    expected: "finite, at least 0",
                });
            }
            sizes.map(|k| 1.0 / (1.0 + rho / k)).collect()
        }
        BagWeights::NoiseAware => {
            // One weight a bag serves all classes, so that targets still sum to one: their mean variance.
            let prior = LabelPrior::pooled(bags);
            let spread: f64 =
                prior.classes().iter().map(|p| p * (1.0 - p)).sum::<f64>() / bags.n_classes() as f64;
            // Where all counts agree on one class, noise is all that is left to weigh by; a row's worth keeps it finite.
            let spread = spread.max(1.0 / bags.n_members() as f64);
            sizes.enumerate().map(|(bag, k)| 1.0 / (spread + bags.count_variance(bag) / k)).collect()
        }
    };
    let largest = relative.iter().copied().fold(0.0, f64::max);
    Ok(relative.into_iter().map(|weight| weight / largest).collect())
}

/// Checks that the proportions are probabilities that can be drawn from.
pub(crate) fn check_drawable(bags: &Bags) -> Result<()> {
    for bag in 0..bags.n_bags() {
        for class in 0..bags.n_classes() {
            let proportion = bags.proportion(bag, class);
            if !(0.0..=1.0).contains(&proportion) {
                return Err(Error::NoSurrogate { bag, proportion });
            }
        }
    }
    Ok(())
}

/// The class for a uniform draw from [0, 1).
pub(crate) fn draw_class(bags: &Bags, bag: usize, uniform: f64) -> usize {
    let mut place = uniform * bags.size(bag) as f64;
    let counts = bags.counts_of(bag);
    for (class, &count) in counts.iter().enumerate() {
        if place < count {
            return class;
        }
        place -= count;
    }
    counts.iter().rposition(|&count| count > 0.0).expect("counts sum to the size, which is positive")
}

#[cfg(test)]
mod enumeration;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bags::{Noise, Partition};

    fn uneven() -> Bags {
        let partition = Partition::new(8, [vec![0, 3], vec![1, 2, 4, 6], vec![5]]).unwrap();
        Bags::binary(partition, &[1.0, 1.0, 1.0], Noise::None).unwrap()
    }

    #[test]
    fn naive_targets_are_the_proportions_and_rows_in_no_bag_have_none() {
        let targets = Correction::Naive.soft(&uneven()).unwrap();
        assert_eq!(targets.values().column(0).to_vec(), [0.5, 0.25, 0.25, 0.5, 0.25, 1.0, 0.25, 0.0]);
    }

    #[test]
    fn the_papers_targets_by_hand() {
        // A = p + k(α − p) with p = 0.25: .25 + 2(.25), .25 + 4·0, .25 + 1(.75)
        let paper = Correction::Paper(LabelPrior::binary(0.25).unwrap());
        let targets = paper.soft(&uneven()).unwrap();
        assert_eq!(targets.values().column(0).to_vec()[..6], [0.75, 0.25, 0.25, 0.75, 0.25, 1.0]);
    }

    #[test]
    fn centred_targets_by_hand() {
        // N = 7, n = 3, p̂ = 3/7: A = p̂ + 3(α − p̂)
        let targets = Correction::default().soft(&uneven()).unwrap();
        for (row, proportion) in [(0, 0.5), (1, 0.25), (5, 1.0)] {
            let expected = 3.0 / 7.0 + 3.0 * (proportion - 3.0 / 7.0);
            assert!((f64::from(targets.values()[[row, 0]]) - expected).abs() < 1e-6);
        }
    }

    #[test]
    fn one_bag_is_too_few_to_centre() {
        let bags = uneven().select(&[1]).unwrap();
        let refused = Correction::default().soft(&bags).unwrap_err();
        assert_eq!(refused, Error::TooFewBags { what: "a centred correction", needed: 2, got: 1 });
    }

    #[test]
    fn surrogates_cannot_be_drawn_from_noisy_proportions() {
        let partition = Partition::new(4, [[0, 1], [2, 3]]).unwrap();
        let bags = Bags::binary(partition, &[-0.5, 1.0], Noise::Laplace(vec![1.0; 2])).unwrap();
        let refused = Correction::default().surrogate(&bags, 1).unwrap_err();
        assert_eq!(refused, Error::NoSurrogate { bag: 0, proportion: 1.25 });
    }

    #[test]
    fn a_draw_falls_on_classes_in_proportion() {
        let partition = Partition::new(4, [[0, 1, 2, 3]]).unwrap();
        let bags = Bags::multiclass(partition, ndarray::array![[1.0, 0.0, 3.0]], Noise::None).unwrap();
        assert_eq!([0.0, 0.2499, 0.25, 0.9999].map(|u| draw_class(&bags, 0, u)), [0, 0, 2, 2]);
    }
}
