//! A population whose true figures are known by integration, and samples of it.

use easyllp::bagging::{Sizes, random};
use easyllp::{Bags, Estimator, Noise, Predictions, estimate::Scope, loss::Link, metrics};
use ndarray::Array2;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// x ~ N(0, 1), P(y = 1 | x) = σ(2x − 0.5), scored by a model that is not quite right.
pub(crate) struct Population {
    pub(crate) log_loss: f64,
    pub(crate) brier: f64,
    pub(crate) error: f64,
    /// E[x·y], the mean of a function other than a loss.
    pub(crate) moment: f64,
}

/// The seed of all simulations: 1, or that of the environment, to try a test on others.
pub(crate) fn seed() -> u64 {
    std::env::var("EASYLLP_TEST_SEED").map_or(1, |seed| seed.parse().expect("EASYLLP_TEST_SEED is a number"))
}

/// How often a long simulation draws: fewer times by default than by `make test-long`.
pub(crate) fn draws(few: u32, many: u32) -> u32 {
    if std::env::var_os("EASYLLP_LONG_TESTS").is_some() { many } else { few }
}

/// Whether that share of `n` intervals of 95 % is as it should be, but for so many standard errors.
pub(crate) fn is_95_percent(share: f64, n: u32, standard_errors: f64) -> bool {
    (share - 0.95).abs() <= standard_errors * (0.95 * 0.05 / f64::from(n)).sqrt()
}

pub(crate) fn sigmoid(f: f64) -> f64 {
    1.0 / (1.0 + (-f).exp())
}

impl Population {
    pub(crate) fn new() -> Self {
        let mut sums = [0.0; 4];
        let step = 1e-3;
        for place in -9000..=9000 {
            let x = f64::from(place) * step;
            let weight = step * (-0.5 * x * x).exp() / std::f64::consts::TAU.sqrt();
            let (p, q) = (Self::truth(x), sigmoid(f64::from(Self::score(x))));
            sums[0] += weight * -(p * q.ln() + (1.0 - p) * (1.0 - q).ln());
            sums[1] += weight * (p * (1.0 - q).powi(2) + (1.0 - p) * q * q);
            sums[2] += weight * if q > 0.5 { 1.0 - p } else { p };
            sums[3] += weight * x * p;
        }
        Self { log_loss: sums[0], brier: sums[1], error: sums[2], moment: sums[3] }
    }

    pub(crate) fn truth(x: f64) -> f64 {
        sigmoid(2.0 * x - 0.5)
    }

    #[expect(clippy::cast_possible_truncation, reason = "scores are f32")]
    pub(crate) fn score(x: f64) -> f32 {
        (1.5 * x + 0.2) as f32
    }
}

/// A standard normal draw (Box & Muller 1958).
pub(crate) fn normal(rng: &mut impl Rng) -> f64 {
    let (u, v): (f64, f64) = (rng.random(), rng.random());
    (-2.0 * (1.0 - u).ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

/// A draw of Laplace noise.
pub(crate) fn laplace(rng: &mut impl Rng, scale: f64) -> f64 {
    let u = rng.random::<f64>() - 0.5;
    -scale * u.signum() * (1.0 - 2.0 * u.abs()).ln()
}

/// Bags of rows from the population: their features, and counts with noise or without.
pub(crate) struct Sample {
    pub(crate) x: Vec<f64>,
    pub(crate) labels: Vec<u32>,
    pub(crate) bags: Bags,
}

impl Sample {
    pub(crate) fn draw(
        sizes: &Sizes,
        n_bags: usize,
        laplace_scale: Option<f64>,
        rng: &mut ChaCha8Rng,
    ) -> Self {
        // More rows than needed are dealt, and only so many bags kept: the last one may have come out short.
        let most = match sizes {
            Sizes::Fixed(size) => *size,
            Sizes::OneOf(sizes) => *sizes.iter().max().unwrap(),
            Sizes::Range(range) => *range.end(),
        };
        let partition = random(most * (n_bags + 1), sizes, rng.random()).unwrap();
        let x: Vec<f64> = (0..most * (n_bags + 1)).map(|_| normal(rng)).collect();
        let labels: Vec<u32> =
            x.iter().map(|&x| u32::from(rng.random::<f64>() < Population::truth(x))).collect();
        let kept: Vec<usize> = (0..n_bags).collect();
        let exact = Bags::from_labels(partition, &labels, 2).unwrap().select(&kept).unwrap();
        let bags = match laplace_scale {
            None => exact,
            Some(scale) => {
                let noisy: Vec<f64> =
                    exact.counts().column(1).iter().map(|count| count + laplace(rng, scale)).collect();
                let partition =
                    easyllp::Partition::new(x.len(), kept.iter().map(|&bag| exact.members(bag))).unwrap();
                Bags::binary(partition, &noisy, Noise::Laplace(vec![scale; n_bags])).unwrap()
            }
        };
        Self { x, labels, bags }
    }
}

/// For each metric, the share of sets of bags whose interval covers the truth.
pub(crate) fn coverage(
    population: &Population,
    sizes: &Sizes,
    n_bags: usize,
    laplace_scale: Option<f64>,
    scope: Scope,
    n_sets: u32,
    seed: u64,
) -> Vec<(&'static str, f64)> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut covered = [("log loss", 0_u32), ("Brier", 0), ("error", 0), ("mean of g", 0)];
    for _ in 0..n_sets {
        let sample = Sample::draw(sizes, n_bags, laplace_scale, &mut rng);
        let scores = Array2::from_shape_fn((sample.x.len(), 1), |(row, _)| Population::score(sample.x[row]));
        let predictions = Predictions::new(scores.view(), Link::Logit).unwrap();
        let estimator = Estimator::new(&sample.bags).unwrap().scope(scope);
        let estimates = [
            estimator.log_loss(&predictions).unwrap(),
            estimator.brier(&predictions).unwrap(),
            estimator.error(&predictions).unwrap(),
            estimator.mean(|row, class| sample.x[row] * class as f64),
        ];
        let truths = match scope {
            Scope::Population => [population.log_loss, population.brier, population.error, population.moment],
            Scope::TheseRows => of_these_rows(&sample, &scores),
        };
        for ((covered, estimate), truth) in covered.iter_mut().zip(estimates).zip(truths) {
            covered.1 += u32::from(estimate.covers(truth));
        }
    }
    covered.map(|(metric, count)| (metric, f64::from(count) / f64::from(n_sets))).to_vec()
}

fn of_these_rows(sample: &Sample, scores: &Array2<f32>) -> [f64; 4] {
    let rows: Vec<usize> = sample.bags.rows().into_iter().map(|row| row as usize).collect();
    let labels: Vec<u32> = rows.iter().map(|&row| sample.labels[row]).collect();
    let scores = scores.select(ndarray::Axis(0), &rows);
    let predictions = Predictions::new(scores.view(), Link::Logit).unwrap();
    let moment = rows.iter().map(|&row| sample.x[row] * f64::from(sample.labels[row])).sum::<f64>()
        / rows.len() as f64;
    [
        metrics::log_loss(&predictions, &labels).unwrap(),
        metrics::brier(&predictions, &labels).unwrap(),
        1.0 - metrics::accuracy(&predictions, &labels).unwrap(),
        moment,
    ]
}
