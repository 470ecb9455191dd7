//! Check bags before and after training: are they random, and how much information do they hold?
//!
//! Most methods and all estimates assume random bags, but many real aggregates are grouped by
//! campaign, region or ward. Rows within such a bag are similar, so the bags' proportions differ
//! more than by chance. For N rows in n bags of sizes k_i with counts c_ij of class j and pooled
//! shares p̂_j, the test statistic is
//!
//! ```text
//! T = Σ_i Σ_j (c_ij − k_i p̂_j)²                 j the positive class only, if there are two
//! ```
//!
//! The statistic is compared with its values under random permutations of the same labels over bags
//! of the same sizes. No χ² approximation is used: for rare positives in bags of unequal sizes it
//! raises several times too many false alarms.
//!
//! Declared noise is added to each permutation. The true totals are then unknown, and permutations
//! use the noisy ones. An error in these totals shifts T in all permutations. T is therefore
//! compared after its mean under the drawn totals is subtracted:
//!
//! ```text
//! T − V Σ_j p̂_j (1 − p̂_j),   V = Σ_i k_i (N − k_i)/(N − 1)
//! ```
//!
//! Without noise this subtracts a constant and changes nothing. With noise, a test at level 0.05
//! keeps its level. The uncorrected T rejects 0.09 of random sets of 200 bags of 8, at 1 %
//! positives and normal noise of 1.

mod dealing;
mod features;
mod plan;
mod randomness;

pub use features::{Feature, UNEVEN_LEVEL, UnevenFeature, uneven_features};
pub use plan::{Bounds, LinearClass, bags_needed, equivalent_rows, expected_standard_error};
pub use randomness::{Randomness, Verdict, randomness};

use crate::bags::{Bags, Noise};
use crate::classes::columns;
use crate::error::{Error, Result};
use crate::estimate::{Estimate, Estimator, Form};
use crate::seed::{Stream, stream};
use dealing::{Dealer, Dealing};
use ndarray::{Array2, ArrayView2};
use rand::{Rng, RngExt};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use serde::Serialize;
use std::cmp::Ordering;

/// How much bags differ, compared with random permutations of the same labels.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Dispersion {
    /// The observed T.
    pub statistic: f64,
    /// The mean of T over random permutations.
    pub expected: f64,
    /// T divided by its expectation; 1 if the labels cannot be permuted.
    pub ratio: f64,
    /// The p-value for bags that differ more than by chance.
    pub over: f64,
    /// The p-value for bags that differ less than by chance. The two sum to 1.
    pub under: f64,
}

/// Runs a permutation test of random bags with `n_draws` permutations. Requires at least two bags.
///
/// With U uniform on [0, 1), `over` = (#{T* > T} + U (#{T* = T} + 1))/(`n_draws` + 1), and `under`
/// likewise with < and 1 − U. Ties are broken at random, so `over` is uniform for random bags, for
/// any number of draws. With 999 or more it depends little on the seed. The time is proportional to
/// draws × bags × classes.
///
/// [`randomness`] decides whether metrics are shown; this function allows other levels and seeds.
pub fn dispersion(bags: &Bags, n_draws: usize, seed: u64) -> Result<Dispersion> {
    if n_draws == 0 {
        return Err(Error::Setting { name: "number of draws", value: "0".into(), expected: "at least 1" });
    }
    let dealings = Dealings::new(bags, seed)?;
    let mut comparison = dealings.comparison();
    dealings.draw(&mut comparison, n_draws);
    let (more, equal) = comparison.more_and_equal();
    let tie: f64 = draw_stream(seed, 0).random();
    let over = (more + tie * (equal + 1.0)) / (n_draws + 1) as f64;
    Ok(Dispersion {
        statistic: comparison.observed.statistic,
        expected: comparison.expected(),
        ratio: comparison.ratio(),
        over,
        under: 1.0 - over,
    })
}

/// The share of a class in the population, with a confidence interval that treats bags, not rows,
/// as the sampling units.
///
/// With φ_i = (c_i − k_i p̂)/N the squared standard error is n/(n−1) Σφ_i². The interval is valid
/// if rows within a bag are correlated, as long as bags are independent. It includes the noise of
/// the counts. The ends are clipped to [0, 1].
///
/// ```
/// use easyllp::{Bags, Noise, Partition, diagnose::prior_interval};
///
/// let partition = Partition::new(8, [[0, 1], [2, 3], [4, 5], [6, 7]])?;
/// let bags = Bags::binary(partition, &[0.0, 1.0, 0.0, 1.0], Noise::None)?;
/// let prior = prior_interval(&bags, 1, 0.95)?;
/// assert_eq!(prior.value, 0.25);
/// assert!(prior.covers(0.5) && prior.low == 0.0);
/// # Ok::<(), easyllp::Error>(())
/// ```
pub fn prior_interval(bags: &Bags, class: usize, level: f64) -> Result<Estimate> {
    let estimator = Estimator::new(bags)?.level(level)?;
    if class >= bags.n_classes() {
        return Err(Error::Shape { what: "class numbers below", expected: bags.n_classes(), got: class });
    }
    let (n_rows, n_bags) = (bags.n_members() as f64, bags.n_bags() as f64);
    let counts = bags.counts();
    let share = counts.column(class).sum() / n_rows;
    let influence = |(&count, size): (&f64, usize)| (count - size as f64 * share) / n_rows;
    let squares: f64 =
        counts.column(class).iter().zip(bags.sizes()).map(influence).map(|phi| phi * phi).sum();
    let standard_error = (n_bags / (n_bags - 1.0) * squares).sqrt();
    Ok(estimator.t_interval(share, standard_error, Form::Mean).clipped(0.0, 1.0))
}

/// Random permutations of the labels of bags.
struct Dealings<'b> {
    bags: &'b Bags,
    measure: Measure,
    dealer: Dealer,
    seed: u64,
}

impl<'b> Dealings<'b> {
    fn new(bags: &'b Bags, seed: u64) -> Result<Self> {
        if bags.n_bags() < 2 {
            return Err(Error::TooFewBags { what: "a test of random bags", needed: 2, got: bags.n_bags() });
        }
        Ok(Self { bags, measure: Measure::new(bags), dealer: Dealer::new(bags), seed })
    }

    /// The bags before any permutation is drawn.
    fn comparison(&self) -> Comparison {
        Comparison { observed: self.measure.of(self.bags.counts()), draws: Vec::new() }
    }

    /// Draws `n_draws` more permutations.
    fn draw(&self, comparison: &mut Comparison, n_draws: usize) {
        let first = comparison.draws.len();
        comparison.draws.par_extend((first..first + n_draws).into_par_iter().map_init(
            || Dealing::new(self.bags),
            |dealing, draw| {
                let mut rng = draw_stream(self.seed, draw + 1);
                self.dealer.deal(dealing, &mut rng);
                add_noise(self.bags, &mut dealing.counts, &mut rng);
                self.measure.of(dealing.counts.view())
            },
        ));
    }
}

/// T of the bags, and T of random permutations.
struct Comparison {
    observed: Spread,
    draws: Vec<Spread>,
}

impl Comparison {
    /// How many permutations have a larger T than the bags, and how many have the same.
    fn more_and_equal(&self) -> (f64, f64) {
        let count = |ordering| {
            let is = |draw: &&Spread| draw.centred.total_cmp(&self.observed.centred) == ordering;
            self.draws.iter().filter(is).count() as f64
        };
        (count(Ordering::Greater), count(Ordering::Equal))
    }

    /// The mean of T over the permutations.
    fn expected(&self) -> f64 {
        self.draws.iter().map(|draw| draw.statistic).sum::<f64>() / self.draws.len() as f64
    }

    /// T divided by its expectation; 1 if the labels cannot be permuted.
    fn ratio(&self) -> f64 {
        let expected = self.expected();
        if expected > 0.0 { self.observed.statistic / expected } else { 1.0 }
    }
}

/// The random numbers of one draw. Draws are far enough apart in the stream that they do not
/// overlap, so threads may take them in any order.
fn draw_stream(seed: u64, draw: usize) -> ChaCha8Rng {
    let mut rng = stream(seed, Stream::Diagnose);
    rng.set_word_pos((draw as u128) << 36);
    rng
}

/// T, and T minus its mean under the drawn totals.
struct Spread {
    statistic: f64,
    centred: f64,
}

/// What T needs of the bag sizes.
struct Measure {
    sizes: Vec<f64>,
    n_rows: f64,
    /// Σ k².
    squared_sizes: f64,
    /// V = Σ k (N − k)/(N − 1).
    spread: f64,
}

impl Measure {
    fn new(bags: &Bags) -> Self {
        let sizes: Vec<f64> = bags.sizes().map(|size| size as f64).collect();
        let n_rows = bags.n_members() as f64;
        let squared_sizes = sizes.iter().map(|k| k * k).sum();
        let spread = sizes.iter().map(|k| k * (n_rows - k)).sum::<f64>() / (n_rows - 1.0);
        Self { sizes, n_rows, squared_sizes, spread }
    }

    /// From counts n × C.
    fn of(&self, counts: ArrayView2<f64>) -> Spread {
        let n_rows = self.n_rows;
        let (mut varying, mut squared_totals, mut mean) = (0.0, 0.0, 0.0);
        for class in columns(counts.ncols()) {
            let (mut total, mut squares, mut products) = (0.0, 0.0, 0.0);
            for (&count, k) in counts.column(class).iter().zip(&self.sizes) {
                total += count;
                squares += count * count;
                products += count * k;
            }
            varying += n_rows * squares - 2.0 * total * products;
            squared_totals += total * total;
            mean += total / n_rows * (1.0 - total / n_rows);
        }
        // Of whole counts, what varies from dealing to dealing is a sum of whole numbers: no rounding hides a tie.
        let statistic = (varying + squared_totals * self.squared_sizes / n_rows) / n_rows;
        // Rounding may leave a little less than the nothing that balanced bags have.
        Spread { statistic: statistic.max(0.0), centred: statistic - self.spread * mean }
    }
}

/// Adds noise as declared to exact counts, and makes them sum to the sizes again as [`Bags`] does.
fn add_noise(bags: &Bags, counts: &mut Array2<f64>, rng: &mut impl Rng) {
    if *bags.noise() == Noise::None {
        return;
    }
    for (bag, mut line) in counts.rows_mut().into_iter().enumerate() {
        let variance = bags.noise().variance(bag);
        if variance <= 0.0 {
            continue;
        }
        // Counts of classes, once they sum to the size, have lost some noise; the two columns of one count have it all.
        if bags.count_variance(bag) < variance {
            let mut sum = 0.0;
            for count in &mut line {
                let noise = bags.noise().draw(bag, rng);
                *count += noise;
                sum += noise;
            }
            line -= sum / line.len() as f64;
        } else {
            let noise = bags.noise().draw(bag, rng);
            line[0] -= noise;
            line[1] += noise;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bags::Partition;
    use ndarray::array;

    pub(super) fn seed() -> u64 {
        std::env::var("EASYLLP_TEST_SEED")
            .map_or(1, |seed| seed.parse().expect("EASYLLP_TEST_SEED is a number"))
    }

    /// Every order of the numbers below n.
    pub(super) fn orders(n: u32) -> Vec<Vec<u32>> {
        (0..n).fold(vec![vec![]], |orders, next| {
            let longer = |order: &Vec<u32>| {
                let order = order.clone();
                (0..=order.len()).map(move |place| {
                    let mut longer = order.clone();
                    longer.insert(place, next);
                    longer
                })
            };
            orders.iter().flat_map(longer).collect()
        })
    }

    fn deal(order: &[u32], sizes: &[usize]) -> Partition {
        let ends = sizes.iter().scan(0, |end, size| {
            *end += size;
            Some(*end)
        });
        Partition::new(order.len(), ends.zip(sizes).map(|(end, size)| &order[end - size..end])).unwrap()
    }

    /// T by its definition.
    fn plain_statistic(bags: &Bags) -> f64 {
        let pooled = bags.pooled_proportions();
        let of_bag = |bag: usize| {
            let of_class =
                |class: usize| (bags.counts()[[bag, class]] - bags.size(bag) as f64 * pooled[class]).powi(2);
            columns(bags.n_classes()).map(of_class).sum::<f64>()
        };
        (0..bags.n_bags()).map(of_bag).sum()
    }

    /// Six rows, all 720 orders: for each dealing the p-value is (with the same U) the exact one within four standard
    /// errors of 20,000 draws, and so is the mean. Passes on 20 of the seeds 0 to 19.
    #[test]
    fn p_values_agree_with_going_through_all_dealings() {
        let n_draws = 20_000_u32;
        let tie: f64 = draw_stream(seed(), 0).random();
        for sizes in [&[2, 2, 2][..], &[1, 2, 3], &[1, 5]] {
            for (labels, n_classes) in
                [([0, 1, 1, 0, 0, 0], 2), ([1, 1, 0, 1, 1, 0], 2), ([0, 2, 1, 1, 0, 2], 3)]
            {
                let sets: Vec<Bags> = orders(6)
                    .iter()
                    .map(|order| Bags::from_labels(deal(order, sizes), &labels, n_classes).unwrap())
                    .collect();
                let all: Vec<f64> = sets.iter().map(plain_statistic).collect();
                let mean = all.iter().sum::<f64>() / 720.0;
                let variance = all.iter().map(|t| (t - mean).powi(2)).sum::<f64>() / 720.0;
                let mut seen: Vec<f64> = Vec::new();
                for (bags, &statistic) in sets.iter().zip(&all) {
                    if seen.iter().any(|t| (t - statistic).abs() < 1e-9) {
                        continue;
                    }
                    seen.push(statistic);
                    let share = |holds: &dyn Fn(f64) -> bool| {
                        all.iter().filter(|&&t| holds(t - statistic)).count() as f64 / 720.0
                    };
                    let (greater, equal) = (share(&|t| t > 1e-9), share(&|t| t.abs() < 1e-9));
                    let exact = greater + tie * equal;
                    let spread = greater + tie * tie * equal - exact * exact;
                    let got = dispersion(bags, n_draws as usize, seed()).unwrap();
                    assert!((got.statistic - statistic).abs() < 1e-12);
                    // One draw's worth of rounding, since the bags themselves count as one.
                    let tolerance = |variance: f64| 4.0 * (variance / f64::from(n_draws)).sqrt() + 1e-4;
                    assert!(
                        (got.over - exact).abs() < tolerance(spread),
                        "{sizes:?} {labels:?}: {} is not {exact}",
                        got.over
                    );
                    assert!((got.over + got.under - 1.0).abs() < 1e-12);
                    assert!(
                        (got.expected - mean).abs() < tolerance(variance),
                        "{} is not {mean}",
                        got.expected
                    );
                }
            }
        }
    }

    #[test]
    fn noise_is_simulated_as_bags_treat_it() {
        let n_bags: u32 = 4000;
        let partition = || Partition::new(8000, (0..n_bags).map(|bag| [2 * bag, 2 * bag + 1])).unwrap();
        let scales = vec![1.5; 4000];
        for noise in [Noise::Laplace(scales.clone()), Noise::Gaussian(scales)] {
            let one_count = Bags::binary(partition(), &vec![1.0; 4000], noise.clone()).unwrap();
            let two = Bags::multiclass(partition(), Array2::ones((4000, 2)), noise.clone()).unwrap();
            let four = Bags::multiclass(partition(), Array2::ones((4000, 4)), noise.clone()).unwrap();
            for bags in [one_count, two, four] {
                let mut noisy = bags.counts().to_owned();
                add_noise(&bags, &mut noisy, &mut draw_stream(1, 0));
                let added = &noisy - &bags.counts();
                assert!(added.rows().into_iter().all(|line| line.sum().abs() < 1e-12));
                for class in 0..bags.n_classes() {
                    let variance = added.column(class).map(|noise| noise * noise).mean().unwrap();
                    // A square of Laplace noise has a relative spread of √5: four standard errors are 0.14.
                    assert!((variance / bags.count_variance(0) - 1.0).abs() < 0.14, "{variance} {noise:?}");
                }
            }
        }
        // A bag whose own scale is zero stays exact.
        let noise = Noise::Laplace(vec![0.0, 1.0]);
        let bags = Bags::binary(deal(&[0, 1, 2, 3], &[2, 2]), &[1.0, 0.3], noise).unwrap();
        let mut counts = array![[1.0, 1.0], [1.0, 1.0]];
        add_noise(&bags, &mut counts, &mut draw_stream(1, 0));
        assert_eq!(counts.row(0), array![1.0, 1.0]);
        assert!((counts[[1, 1]] - 1.0).abs() > 0.0);
    }

    #[test]
    fn labels_that_leave_nothing_to_deal_are_plausible() {
        let bags = Bags::from_labels(deal(&[0, 1, 2, 3, 4], &[2, 3]), &[1; 5], 2).unwrap();
        let dispersion = dispersion(&bags, 99, 1).unwrap();
        assert!(dispersion.statistic.abs() < 1e-12 && dispersion.expected.abs() < 1e-12);
        assert!((dispersion.ratio - 1.0).abs() < 1e-12);
        assert_eq!(randomness(&bags).unwrap().verdict, Verdict::Plausible);
    }

    #[test]
    fn an_interval_by_hand() {
        // Counts 1, 2, 0 of sizes 1, 2, 3: p̂ = 1/2, φ = (1/2, 1, −3/2)/6, Σφ² = 3.5/36, se² = 3/2 · 3.5/36.
        let bags =
            Bags::binary(deal(&[0, 1, 2, 3, 4, 5], &[1, 2, 3]), &[1.0, 2.0, 0.0], Noise::None).unwrap();
        let prior = prior_interval(&bags, 1, 0.5).unwrap();
        let standard_error = (1.5_f64 * 3.5 / 36.0).sqrt();
        assert!((prior.value - 0.5).abs() < 1e-12);
        assert!((prior.standard_error - standard_error).abs() < 1e-12);
        // The upper quartile of t with two degrees of freedom is 1/√(2 − 1/2) = 0.816497.
        assert!((prior.high - (0.5 + (2.0_f64 / 3.0).sqrt() * standard_error)).abs() < 1e-6);
        // It is that of the mean of the class's indicator, except for the clipping.
        let wide = prior_interval(&bags, 0, 0.95).unwrap();
        let mean = Estimator::new(&bags).unwrap().mean(|_, class| if class == 0 { 1.0 } else { 0.0 });
        assert!((wide.standard_error - mean.standard_error).abs() < 1e-12);
        assert!(mean.low < 0.0 && mean.high > 1.0);
        assert!(wide.low.abs() < 1e-12 && (wide.high - 1.0).abs() < 1e-12);
    }

    #[test]
    fn refuses_one_bag_no_draws_and_settings_that_make_no_sense() {
        let bags = Bags::binary(deal(&[0, 1, 2, 3], &[2, 2]), &[1.0, 0.0], Noise::None).unwrap();
        let one = bags.select(&[0]).unwrap();
        assert_eq!(
            dispersion(&one, 9, 1).unwrap_err(),
            Error::TooFewBags { what: "a test of random bags", needed: 2, got: 1 }
        );
        assert!(matches!(dispersion(&bags, 0, 1), Err(Error::Setting { .. })));
        assert!(prior_interval(&one, 1, 0.9).is_err());
        assert_eq!(
            prior_interval(&bags, 2, 0.9).unwrap_err(),
            Error::Shape { what: "class numbers below", expected: 2, got: 2 }
        );
        for level in [0.0, 1.0, f64::NAN] {
            assert!(prior_interval(&bags, 1, level).is_err());
        }
    }
}
