//! Laplacian mean map: class means may differ between bags, but are similar for bags with similar
//! features (Patrini, Nock, Rivera & Caetano 2014).
//!
//! The mean map assumes that the mean features of a class are the same in all bags. Here bag i has
//! its own class means μ_ic, and they are pulled together where the bags' means m_i are close:
//!
//! ```text
//! Σ_i d_i ‖m_i − Σ_c α_ic μ_ic‖² + γ/2n · Σ_c Σ_ij v_ij ‖μ_ic − μ_jc‖²,     v_ij = exp(−‖m_i − m_j‖²/2),   d_i = k_i n/N
//! ```
//!
//! Features are scaled so that the bags' means have a root mean square distance of 1 from their
//! centre. The mean operator Σ_i k_i/N α_ic μ_ic is linear in the bags' means, and the targets are
//! chosen to have this mean operator. For γ → ∞ it is the mean map.
//!
//! The n² similarities are never computed: positive random features φ with v_ij ≈ φ_i·φ_j make a
//! conjugate gradient step linear in the number of bags. Only numeric features enter the
//! similarity; categories do not.

use super::mean_map::write_targets;
use super::schema::{About, Assumes, BuiltIn};
use crate::aim::{Aim, TargetRows, TargetRule};
use crate::bags::Bags;
use crate::correction::Targets;
use crate::error::{Result, check_length};
use crate::kernel::{Onto, matrix_product, product};
use crate::number::Positive;
use crate::rows::{DenseRows, Rows};
use crate::seed::{Stream, stream};
use crate::session::{Method, Session, Supports};
use ndarray::{Array1, Array2, ArrayView2, Axis, Zip};
use rand_distr::{Distribution, StandardNormal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The number of random features of a bag's mean.
const N_FEATURES: usize = 128;

/// A negligible ridge, for proportions that do not differ.
const RIDGE: f64 = 1e-9;

/// Targets with the mean operator of the Laplacian mean map.
#[derive(Debug, Clone)]
pub struct LaplacianMeanMap<'b> {
    bags: &'b Bags,
    smoothness: f64,
    /// φ, a line per bag.
    features: Array2<f64>,
}

impl<'b> LaplacianMeanMap<'b> {
    /// The γ of the formula above.
    pub const SMOOTHNESS: f64 = 1.0;

    /// Computes the bags' means of the rows' dense features; `smoothness` is γ.
    pub fn new(bags: &'b Bags, rows: &Rows, smoothness: Positive) -> Result<Self> {
        check_length("rows that are in bags or not", rows.n_rows(), bags.n_rows())?;
        let rows = rows.dense_only("laplacian-mean-map")?;
        Ok(Self {
            bags,
            smoothness: smoothness.get(),
            features: positive_features(&centred_means(bags, rows)),
        })
    }

    /// The equations of the bags' class means.
    fn system(&self) -> System<'_> {
        let bags = self.bags;
        let (n_bags, n_classes) = (bags.n_bags(), bags.n_classes());
        System {
            proportions: Array2::from_shape_fn((n_bags, n_classes), |(bag, class)| {
                bags.proportion(bag, class)
            }),
            shares: bags.sizes().map(|size| size as f64 * n_bags as f64 / bags.n_members() as f64).collect(),
            features: self.features.view(),
            degrees: self.features.dot(&self.features.sum_axis(Axis(0))),
            smoothness: self.smoothness / n_bags as f64,
        }
    }
}

impl TargetRule for LaplacianMeanMap<'_> {
    fn target_rows(&self) -> TargetRows {
        TargetRows::of_bags(self.bags)
    }

    fn targets(&mut self, _epoch: usize, out: &mut Targets) -> Result<()> {
        let system = self.system();
        let mut weights = Array2::zeros((self.bags.n_classes(), self.bags.n_bags()));
        for (class, mut line) in weights.rows_mut().into_iter().enumerate() {
            line.assign(&system.weights(class));
        }
        write_targets(self.bags, &weights, out);
        Ok(())
    }
}

/// The bags' means around the mean of all rows, at a distance of 1 in the quadratic mean.
fn centred_means(bags: &Bags, rows: DenseRows) -> Array2<f64> {
    let mut means = Array2::zeros((bags.n_bags(), rows.n_dense()));
    let mut buffer = rows.buffer(1);
    for bag in 0..bags.n_bags() {
        let mut mean = means.row_mut(bag);
        for &row in bags.members(bag) {
            let row = rows.gather(&[row], &mut buffer);
            Zip::from(&mut mean).and(row.dense.row(0)).for_each(|sum, &value| *sum += f64::from(value));
        }
        mean /= bags.size(bag) as f64;
    }
    let sizes: Array1<f64> = bags.sizes().map(|size| size as f64 / bags.n_members() as f64).collect();
    let centre = sizes.dot(&means);
    means -= &centre;
    let spread = means.rows().into_iter().zip(&sizes).map(|(mean, size)| size * mean.dot(&mean)).sum::<f64>();
    if spread > 0.0 {
        means /= spread.sqrt();
    }
    means
}

/// φ(m) = exp(w·m − ‖m‖²) over random directions w: their products are exp(−‖m − m'‖²/2) in the mean.
fn positive_features(means: &Array2<f64>) -> Array2<f64> {
    /// No likeness is worth more than this factor, however far out a bag is.
    const MOST: f64 = 20.0;
    let mut rng = stream(0, Stream::Likeness);
    let directions: Array2<f64> =
        Array2::from_shape_simple_fn((means.ncols(), N_FEATURES), || StandardNormal.sample(&mut rng));
    let mut features = matrix_product(means.view(), directions.view());
    for (mut line, mean) in features.rows_mut().into_iter().zip(means.rows()) {
        let squared = mean.dot(&mean);
        line.mapv_inplace(|product| (product - squared).min(MOST).exp() / (N_FEATURES as f64).sqrt());
    }
    features
}

/// The normal equations: a line per bag, a column per class.
struct System<'s> {
    proportions: Array2<f64>,
    shares: Array1<f64>,
    features: ArrayView2<'s, f64>,
    degrees: Array1<f64>,
    smoothness: f64,
}

impl System<'_> {
    /// The weights of the bags' means in the mean operator of a class.
    fn weights(&self, class: usize) -> Array1<f64> {
        let mut operator = Array2::zeros(self.proportions.dim());
        let n_bags = self.shares.len() as f64;
        operator.column_mut(class).assign(&(&self.shares / n_bags * self.proportions.column(class)));
        (self.solve(operator) * &self.proportions).sum_axis(Axis(1)) * &self.shares
    }

    fn times(&self, x: &Array2<f64>) -> Array2<f64> {
        let mut alike = Array2::zeros((self.features.ncols(), x.ncols()));
        product(self.features.t(), x.view(), Onto::Overwrite, alike.view_mut());
        let mut out = Array2::zeros(x.dim());
        product(self.features, alike.view(), Onto::Overwrite, out.view_mut());
        for (bag, (mut out, x)) in out.rows_mut().into_iter().zip(x.rows()).enumerate() {
            let proportions = self.proportions.row(bag);
            out *= -self.smoothness;
            out.scaled_add(self.own(bag), &x);
            out.scaled_add(self.shares[bag] * proportions.dot(&x), &proportions);
        }
        out
    }

    /// The weight of a bag's own class means in its equations, without the fit.
    fn own(&self, bag: usize) -> f64 {
        RIDGE + self.smoothness * self.degrees[bag]
    }

    /// The solution if bags had no neighbours: a bag's equations are a multiple of one and the square of its proportions, which
    /// Sherman and Morrison's formula inverts.
    fn bag_by_bag(&self, right: &Array2<f64>) -> Array2<f64> {
        let mut x = right.clone();
        for (bag, mut x) in x.rows_mut().into_iter().enumerate() {
            let (proportions, own, share) = (self.proportions.row(bag), self.own(bag), self.shares[bag]);
            let along = share * proportions.dot(&x) / (own + share * proportions.dot(&proportions));
            x.scaled_add(-along, &proportions);
            x /= own;
        }
        x
    }

    /// By conjugate gradients from there on. What neighbours add has no more directions than there are random features, of which a
    /// few matter: some dozens of steps will do, however many bags there are.
    fn solve(&self, right: Array2<f64>) -> Array2<f64> {
        const MOST_STEPS: usize = 2000;
        const ENOUGH: f64 = 1e-20; // of the squared residual
        let dot = |a: &Array2<f64>, b: &Array2<f64>| Zip::from(a).and(b).fold(0.0, |sum, a, b| sum + a * b);
        let enough = ENOUGH * dot(&right, &right);
        let mut x = Array2::zeros(right.dim());
        let mut residual = right;
        let mut nearer = self.bag_by_bag(&residual);
        let mut direction = nearer.clone();
        let mut gain = dot(&residual, &nearer);
        for _ in 0..MOST_STEPS {
            if dot(&residual, &residual) <= enough {
                break;
            }
            let image = self.times(&direction);
            let step = gain / dot(&direction, &image);
            x.scaled_add(step, &direction);
            residual.scaled_add(-step, &image);
            nearer = self.bag_by_bag(&residual);
            let next = dot(&residual, &nearer);
            direction *= next / gain;
            direction += &nearer;
            gain = next;
        }
        x
    }
}

/// Parameters of `laplacian-mean-map`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LaplacianMeanMapParams {
    /// How strongly class means of similar bags are pulled together (γ).
    pub smoothness: Positive,
}

impl Default for LaplacianMeanMapParams {
    fn default() -> Self {
        Self { smoothness: Positive::of(LaplacianMeanMap::SMOOTHNESS) }
    }
}

impl BuiltIn for LaplacianMeanMapParams {
    const ABOUT: About = About {
        name: "laplacian-mean-map",
        aliases: &[],
        summary: "estimates class means of each bag, similar where bags are similar",
        bags: Assumes::RandomBagsOrSimilar,
        classes: "any",
        cost: "C, and once about 10⁵/k",
        reference: "Patrini et al. 2014",
    };
}

impl Method for LaplacianMeanMapParams {
    fn name(&self) -> &str {
        Self::ABOUT.name
    }

    fn supports(&self) -> Supports {
        Supports::LinearLogOdds
    }

    fn run(&self, session: &mut Session) -> Result<()> {
        let (bags, loss) = (session.bags(), session.loss());
        let mut rule = LaplacianMeanMap::new(bags, session.rows(), self.smoothness)?;
        session.train(self.name(), Aim::Targets(&mut rule, loss))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bags::Partition;
    use crate::method::MeanMap;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    /// 100 bags of 20 rows. The first feature is the class's, and moves with the bag as far as is said; the second says how far it does.
    /// Bags that move more have more positives, but also others than their neighbours.
    #[expect(clippy::cast_possible_truncation, reason = "features are f32")]
    fn example(moves: f64) -> (Rows<'static>, Bags, Vec<u32>) {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let (mut labels, mut features) = (Vec::new(), Vec::new());
        for bag in 0..100 {
            let place = f64::from(bag) / 100.0;
            let share = 0.3 + 0.4 * place + rng.random_range(-0.25..0.25);
            for _ in 0..20 {
                let label = u32::from(rng.random::<f64>() < share);
                let noise: f64 = StandardNormal.sample(&mut rng);
                features
                    .extend([(f64::from(label) + moves * place + 0.1 * noise) as f32, (5.0 * place) as f32]);
                labels.push(label);
            }
        }
        let rows = Rows::dense(Array2::from_shape_vec((2000, 2), features).unwrap()).unwrap();
        let of_row: Vec<u32> = (0..2000).map(|row| row / 20).collect();
        let bags = Bags::from_labels(Partition::from_bag_of_row(&of_row, 100).unwrap(), &labels, 2).unwrap();
        (rows, bags, labels)
    }

    fn targets(rule: &mut dyn TargetRule) -> Array2<f32> {
        let TargetRows { n_rows, n_classes, .. } = rule.target_rows();
        let mut out = Targets::zeros(n_rows, n_classes);
        rule.targets(0, &mut out).unwrap();
        out.values().to_owned()
    }

    /// The first feature's part of the mean operator of class 1.
    fn operator(rows: &Rows, targets: &Array2<f32>) -> f64 {
        let batch = rows.as_dense().unwrap().batch(0..rows.n_rows());
        batch.dense.column(0).iter().zip(targets).map(|(x, a)| f64::from(x * a)).sum::<f64>()
            / rows.n_rows() as f64
    }

    #[test]
    fn without_end_to_smoothness_it_is_the_mean_map() {
        let (rows, bags, _) = example(0.0);
        let laplacian = targets(&mut LaplacianMeanMap::new(&bags, &rows, Positive::of(1e7)).unwrap());
        let plain = targets(&mut MeanMap::new(&bags));
        for (a, b) in laplacian.iter().zip(&plain) {
            assert!((a - b).abs() < 2e-3, "{a} {b}");
        }
    }

    /// Class means that move with the bag's share deceive the mean map, and much less the one that lets them move.
    #[test]
    fn follows_class_means_that_move() {
        let (rows, bags, labels) = example(2.0);
        let of_labels = Targets::from_labels(&labels, 2).unwrap().values().to_owned();
        let truth = operator(&rows, &of_labels);
        let plain = operator(&rows, &targets(&mut MeanMap::new(&bags)));
        let laplacian =
            operator(&rows, &targets(&mut LaplacianMeanMap::new(&bags, &rows, Positive::of(0.1)).unwrap()));
        let (of_plain, of_laplacian) = ((plain - truth).abs(), (laplacian - truth).abs());
        assert!(of_laplacian < 0.6 * of_plain, "{truth}: plain {plain}, laplacian {laplacian}");
    }

    /// The equations as they stand, each bag against each: Σ_c α_c μ_c d α + γ/n Σ_j v_ij (μ_i − μ_j).
    #[test]
    fn class_means_solve_their_equations() {
        let (rows, bags, _) = example(2.0);
        for smoothness in [0.01, 1.0, 1e4] {
            let rule = LaplacianMeanMap::new(&bags, &rows, Positive::of(smoothness)).unwrap();
            let system = rule.system();
            let right = Array2::from_shape_fn((100, 2), |(bag, class)| ((3 * bag + class) as f64).sin());
            let x = system.solve(right.clone());
            for ((bag, class), expected) in right.indexed_iter() {
                let proportions = system.proportions.row(bag);
                let mut got = RIDGE * x[[bag, class]]
                    + system.shares[bag] * proportions[class] * proportions.dot(&x.row(bag));
                for other in 0..100 {
                    let alike = system.features.row(bag).dot(&system.features.row(other));
                    got += smoothness / 100.0 * alike * (x[[bag, class]] - x[[other, class]]);
                }
                assert!((got - expected).abs() < 1e-7, "{smoothness}, bag {bag}: {got} {expected}");
            }
        }
    }

    #[test]
    fn products_of_features_are_likenesses() {
        let means = ndarray::array![[0.0, 0.0], [0.5, 0.2], [-0.3, 0.6]];
        let features = positive_features(&means);
        for (i, j) in [(0, 1), (0, 2), (1, 2)] {
            let difference = &means.row(i) - &means.row(j);
            let (got, expected) =
                (features.row(i).dot(&features.row(j)), (-0.5 * difference.dot(&difference)).exp());
            assert!((got - expected).abs() < 0.25, "{i} {j}: {got} {expected}"); // 128 features: a s.e. of about 0.08
        }
    }

    #[test]
    fn refuses_what_makes_no_sense() {
        let (_, bags, _) = example(0.0);
        let fewer = Rows::dense(ndarray::array![[1.0_f32]]).unwrap();
        assert!(LaplacianMeanMap::new(&bags, &fewer, Positive::of(1.0)).is_err());
    }
}
