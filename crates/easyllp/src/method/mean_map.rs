//! Mean map: the mean features of each class, estimated from the mean features of bags (Quadrianto,
//! Smola, Caetano & Le 2008).
//!
//! Random bags have means m_i = Σ_c α_ic μ_c up to noise, so least squares over bags estimate the
//! class means μ_c. With log loss a linear model depends on labels only through the *mean
//! operator*, the sum of features of each class, p_c μ_c. Given an estimate of it, the model is
//! trained as if rows were labelled.
//!
//! Least squares are linear in the bags' means, μ̂_c = x̄ + Σ_i W_ci (m_i − x̄) with W = (Π'DΠ +
//! λ)⁻¹ Π'D, and so is the mean operator. The following targets, equal for all rows of a bag, have
//! the same mean operator:
//!
//! ```text
//! A_ic = p_c (1 − Σ_i W_ci + N W_ci / k_i),   then shifted by the same for all classes to sum to 1
//! ```
//!
//! The features themselves are not used, so categories work as well as numbers. Bags are weighted
//! by size (D). The ridge penalty λ keeps class means near the overall mean if proportions hardly
//! differ. Noisy counts make Π noisy, which shrinks the estimated difference between classes.

use super::schema::{About, Assumes, BuiltIn};
use crate::aim::{Aim, TargetRows, TargetRule};
use crate::bags::Bags;
use crate::correction::Targets;
use crate::error::Result;
use crate::kernel::{factorise, matrix_product, solve};
use crate::number::Positive;
use crate::session::{Method, Session, Supports};
use ndarray::{Array2, Axis};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Targets with the mean operator of the mean map.
#[derive(Debug, Clone)]
pub struct MeanMap<'b> {
    bags: &'b Bags,
    ridge: f64,
}

impl<'b> MeanMap<'b> {
    /// A negligible ridge, for proportions that do not differ at all.
    pub const RIDGE: f64 = 1e-9;

    /// With the negligible default ridge.
    pub fn new(bags: &'b Bags) -> Self {
        Self { bags, ridge: Self::RIDGE }
    }

    /// With a ridge penalty, relative to the mean of the diagonal that it is added to.
    pub fn with_ridge(bags: &'b Bags, ridge: Positive) -> Self {
        Self { bags, ridge: ridge.get() }
    }

    /// The weights W, one line per class, one column per bag.
    fn weights(&self) -> Array2<f64> {
        let bags = self.bags;
        let (n_bags, n_classes) = (bags.n_bags(), bags.n_classes());
        let proportions =
            Array2::from_shape_fn((n_bags, n_classes), |(bag, class)| bags.proportion(bag, class));
        // Π'D, sizes over their sum.
        let weighted = Array2::from_shape_fn((n_classes, n_bags), |(class, bag)| {
            proportions[[bag, class]] * bags.size(bag) as f64 / bags.n_members() as f64
        });
        let mut normal = matrix_product(weighted.view(), proportions.view());
        let mean = normal.diag().sum() / n_classes as f64;
        normal.diag_mut().map_inplace(|value| *value += self.ridge * mean);
        solved(normal, weighted)
    }
}

impl TargetRule for MeanMap<'_> {
    fn target_rows(&self) -> TargetRows {
        TargetRows::of_bags(self.bags)
    }

    fn targets(&mut self, _epoch: usize, out: &mut Targets) -> Result<()> {
        let mut weights = self.weights();
        for (mut of_class, p) in weights.rows_mut().into_iter().zip(self.bags.pooled_proportions()) {
            of_class *= p;
        }
        write_targets(self.bags, &weights, out);
        Ok(())
    }
}

/// The targets whose mean operator is p_c x̄ + Σ_i w_ci (m_i − x̄), given weights w with one line
/// per class and one column per bag.
#[expect(clippy::cast_possible_truncation, reason = "targets are f32")]
pub(super) fn write_targets(bags: &Bags, weights: &Array2<f64>, out: &mut Targets) {
    let n_classes = bags.n_classes();
    let (pooled, of_all) = (bags.pooled_proportions(), weights.sum_axis(Axis(1)));
    let n_rows = bags.n_members() as f64;
    *out = Targets::zeros(bags.n_rows(), n_classes);
    let mut values = out.values_mut();
    // Of two classes there is one target, of class 1.
    let first = n_classes - values.ncols();
    let mut of_bag = vec![0.0; n_classes];
    for bag in 0..bags.n_bags() {
        for (class, target) in of_bag.iter_mut().enumerate() {
            *target = pooled[class] - of_all[class] + n_rows * weights[[class, bag]] / bags.size(bag) as f64;
        }
        let shift = (1.0 - of_bag.iter().sum::<f64>()) / n_classes as f64;
        for &row in bags.members(bag) {
            let line = values.row_mut(row as usize).into_iter();
            line.zip(&of_bag[first..]).for_each(|(out, target)| *out = (target + shift) as f32);
        }
    }
}

/// Solves A·X = B for a symmetric positive definite matrix A.
pub(super) fn solved(mut a: Array2<f64>, mut b: Array2<f64>) -> Array2<f64> {
    factorise(&mut a, f64::MIN_POSITIVE);
    let mut of_column = vec![0.0; b.nrows()];
    for mut column in b.columns_mut() {
        of_column.iter_mut().zip(&column).for_each(|(to, value)| *to = *value);
        solve(&a, &mut of_column);
        column.iter_mut().zip(&of_column).for_each(|(to, value)| *to = *value);
    }
    b
}

/// Parameters of `mean-map`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MeanMapParams {
    /// Ridge penalty of the least squares from bag means to class means.
    pub ridge: Positive,
}

impl Default for MeanMapParams {
    fn default() -> Self {
        Self { ridge: Positive::of(MeanMap::RIDGE) }
    }
}

impl BuiltIn for MeanMapParams {
    const ABOUT: About = About {
        name: "mean-map",
        aliases: &[],
        summary: "estimates class means from bag means by least squares",
        bags: Assumes::RandomBags,
        classes: "any",
        cost: "C",
        reference: "Quadrianto et al. 2008",
    };
}

impl Method for MeanMapParams {
    fn name(&self) -> &str {
        Self::ABOUT.name
    }

    fn supports(&self) -> Supports {
        Supports::LinearLogOdds
    }

    fn run(&self, session: &mut Session) -> Result<()> {
        let (bags, loss) = (session.bags(), session.loss());
        session.train(self.name(), Aim::Targets(&mut MeanMap::with_ridge(bags, self.ridge), loss))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bags::{Noise, Partition};
    use ndarray::array;

    #[test]
    fn solves_what_it_should() {
        let a = array![[4.0, 2.0, 0.5], [2.0, 3.0, -1.0], [0.5, -1.0, 2.0]];
        let x = array![[1.0, -2.0], [0.5, 3.0], [-1.5, 0.25]];
        let got = solved(a.clone(), a.dot(&x));
        assert!(got.iter().zip(&x).all(|(got, expected)| (got - expected).abs() < 1e-12), "{got}");
    }

    /// Rows that are their class's mean: least squares have no error, and the targets' mean operator is that of the labels.
    #[test]
    fn without_chance_the_mean_operator_is_that_of_labels() {
        let labels = [0, 1, 2, 2, 0, 0, 1, 2, 1, 1, 0, 2];
        let means = [[1.0, -2.0], [0.5, 4.0], [-3.0, 0.25]];
        for n_classes in [2, 3] {
            let labels: Vec<u32> = labels.iter().map(|&label: &u32| label.min(n_classes - 1)).collect();
            let n_classes = n_classes as usize;
            let partition =
                Partition::new(12, [vec![0, 1, 5], vec![2, 3], vec![4, 6, 7, 8], vec![9, 10, 11]]).unwrap();
            let bags = Bags::from_labels(partition, &labels, n_classes).unwrap();
            let mut out = Targets::zeros(12, n_classes);
            MeanMap::new(&bags).targets(0, &mut out).unwrap();
            for class in 1..n_classes {
                let column = if n_classes == 2 { 0 } else { class };
                for feature in [0, 1] {
                    let of = |row: usize| means[labels[row] as usize][feature];
                    let got: f64 = (0..12).map(|row| f64::from(out.values()[[row, column]]) * of(row)).sum();
                    let expected: f64 = (0..12).filter(|&row| labels[row] as usize == class).map(of).sum();
                    assert!((got - expected).abs() < 1e-4, "{n_classes} {class} {feature}: {got} {expected}");
                }
            }
        }
    }

    #[test]
    fn a_ridge_takes_differences_away_and_proportions_that_are_all_the_same_do_no_harm() {
        let partition = Partition::new(6, [[0, 1], [2, 3], [4, 5]]).unwrap();
        let targets = |counts: &[f64], ridge: f64| {
            let bags = Bags::binary(partition.clone(), counts, Noise::None).unwrap();
            let mut out = Targets::zeros(6, 2);
            MeanMap::with_ridge(&bags, Positive::new(ridge).unwrap()).targets(0, &mut out).unwrap();
            out.values().to_owned()
        };
        let (weak, strong) = (targets(&[2.0, 1.0, 0.0], 1e-9), targets(&[2.0, 1.0, 0.0], 1e9));
        assert!(weak[[0, 0]] > 1.0 && weak[[5, 0]] < 0.0, "{weak}");
        assert!(strong.iter().all(|target| (target - 0.5).abs() < 1e-6), "{strong}");
        let same = targets(&[1.0, 1.0, 1.0], 1e-9);
        assert!(same.iter().all(|target| (target - 0.5).abs() < 1e-3), "{same}");
    }
}
