//! How often 95 % intervals cover the truth, when the same rows are dealt into bags again and again.
//!
//! `coverage [SETS]` deals each set of rows SETS times (1,000 by default) for every bag size, equal sizes and unequal ones, with
//! Laplace noise and without, and prints a Markdown table of the share of intervals that cover the figures of these very
//! rows. Rows: simulated ones, Adult, and MNIST (even against odd), if its training files are in `$EASYLLP_DATA/mnist`
//! or `~/.cache/easyllp/mnist`. Models are linear ones, trained with labels on other rows.

use easyllp::bagging::{Sizes, random};
use easyllp::estimate::AtThreshold;
use easyllp::method::Supervised;
use easyllp::table::{Encoder, EncoderOptions, Table};
use easyllp::train::Aim;
use easyllp::{
    Bags, Error, Estimate, Estimator, Noise, Partition, Predictions, Result, Rows, datasets,
    estimate::Scope,
    loss::{Link, LossName},
    model::{LinearModel, Scorer},
    optim::Lbfgs,
    train::{Optimizer, Trainer},
};
use ndarray::Array2;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

const METRICS: [&str; 9] =
    ["log loss", "Brier", "error", "AUC", "precision", "recall", "F1", "balanced", "calibration"];
/// A cell with fewer bags says little.
const FEWEST_BAGS: usize = 100;

/// Rows with a score and a label.
struct Scored {
    name: &'static str,
    scores: Array2<f32>,
    labels: Vec<u32>,
}

#[expect(clippy::print_stdout, reason = "the result")]
fn main() -> Result<()> {
    let sets = std::env::args().nth(1).map_or(1000, |sets| sets.parse().expect("a number of sets"));
    println!("| rows | bags | sizes | noise | {} |", METRICS.join(" | "));
    println!("|{}", "---|".repeat(4 + METRICS.len()));
    let (mut within, mut cells) = ([0; METRICS.len()], 0);
    let sets_of_rows = [Some(simulated()), Some(adult()?), mnist()?];
    for rows in sets_of_rows.iter().flatten() {
        for k in [8, 64, 256] {
            for (name, sizes) in [("equal", Sizes::Fixed(k)), ("unequal", Sizes::Range(k / 2..=k + k / 2))] {
                for noise in [None, Some(1.0 + k as f64 / 64.0)] {
                    let n_bags = rows.labels.len() / k;
                    if n_bags < FEWEST_BAGS {
                        continue;
                    }
                    let shares = coverage(rows, &sizes, noise, sets)?;
                    let text: Vec<String> = shares.iter().map(|share| format!("{share:.3}")).collect();
                    let noise = noise.map_or("none".into(), |scale| format!("Laplace {scale}"));
                    println!("| {} | {n_bags} of {k} | {name} | {noise} | {} |", rows.name, text.join(" | "));
                    cells += 1;
                    for (within, share) in within.iter_mut().zip(shares) {
                        *within += usize::from((0.92..=0.98).contains(&share));
                    }
                }
            }
        }
    }
    let shares: Vec<String> = within.iter().map(|within| format!("{within} of {cells}")).collect();
    println!("| cells within 0.92–0.98 | | | | {} |", shares.join(" | "));
    Ok(())
}

fn coverage(rows: &Scored, sizes: &Sizes, noise: Option<f64>, sets: usize) -> Result<[f64; METRICS.len()]> {
    let n_rows = rows.labels.len();
    let predictions = Predictions::new(rows.scores.view(), Link::Logit)?;
    let singles = Partition::new(n_rows, (0..).take(n_rows).map(|row: u32| [row]))?;
    let truths =
        figures(&Bags::from_labels(singles, &rows.labels, 2)?, &predictions)?.map(|truth| truth.value);
    let covered = (0..sets).into_par_iter().map(|set| {
        let mut rng = ChaCha8Rng::seed_from_u64(set as u64);
        let bags = Bags::from_labels(random(n_rows, sizes, rng.random())?, &rows.labels, 2)?;
        let bags = match noise {
            None => bags,
            Some(scale) => {
                let counts: Vec<f64> =
                    bags.counts().column(1).iter().map(|count| count + laplace(scale, &mut rng)).collect();
                let scales = Noise::Laplace(vec![scale; bags.n_bags()]);
                Bags::binary(bags.partition().clone(), &counts, scales)?
            }
        };
        let found = figures(&bags, &predictions)?;
        let mut covered = [0_usize; METRICS.len()];
        for ((covered, estimate), truth) in covered.iter_mut().zip(found).zip(truths) {
            *covered = usize::from(estimate.covers(truth));
        }
        Ok(covered)
    });
    let sum = |mut a: [usize; METRICS.len()], b: [usize; METRICS.len()]| {
        a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
        a
    };
    let covered = covered.try_reduce(|| [0; METRICS.len()], |a, b| Ok::<_, Error>(sum(a, b)))?;
    Ok(covered.map(|covered| covered as f64 / sets as f64))
}

/// In the order of `METRICS`, for these rows.
fn figures(bags: &Bags, predictions: &Predictions) -> Result<[Estimate; METRICS.len()]> {
    let estimator = Estimator::new(bags)?.scope(Scope::TheseRows);
    let AtThreshold { precision, recall, f1, balanced_accuracy, .. } =
        estimator.at_threshold(predictions, 0.0)?;
    Ok([
        estimator.log_loss(predictions)?,
        estimator.brier(predictions)?,
        estimator.error(predictions)?,
        estimator.auc(predictions)?,
        precision.expect("some rows are scored above 0"),
        recall,
        f1,
        balanced_accuracy,
        estimator.calibration(predictions, 10)?.squared_error,
    ])
}

fn laplace(scale: f64, rng: &mut impl Rng) -> f64 {
    let u = rng.random::<f64>() - 0.5;
    -scale * u.signum() * (1.0 - 2.0 * u.abs()).ln()
}

/// 40,000 rows with a normal feature x and P(y = 1) = σ(2x − 0.5), scored by 1.5x + 0.2.
#[expect(clippy::cast_possible_truncation, reason = "scores are f32")]
fn simulated() -> Scored {
    const ROWS: usize = 40_000;
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut normal = || {
        let (u, v): (f64, f64) = (rng.random(), rng.random());
        ((-2.0 * (1.0 - u).ln()).sqrt() * (std::f64::consts::TAU * v).cos(), rng.random::<f64>())
    };
    let draws: Vec<(f64, f64)> = (0..ROWS).map(|_| normal()).collect();
    let labels = draws.iter().map(|(x, u)| u32::from(*u < 1.0 / (1.0 + (0.5 - 2.0 * x).exp()))).collect();
    let scores = Array2::from_shape_fn((ROWS, 1), |(row, _)| (1.5 * draws[row].0 + 0.2) as f32);
    Scored { name: "simulated", scores, labels }
}

/// Adult's training rows, scored by a model of its test rows: there are twice as many to be dealt.
fn adult() -> Result<Scored> {
    let adult = datasets::adult()?;
    scored("Adult", &adult.test.table, &adult.test.labels, &adult.train.table, adult.train.labels.clone())
}

/// The same of MNIST's images, even against odd.
fn mnist() -> Result<Option<Scored>> {
    let Some([dealt, learnt]) = easyllp_benches::mnist::even_and_odd()? else { return Ok(None) };
    Ok(Some(scored("MNIST", &learnt.0, &learnt.1, &dealt.0, dealt.1)?))
}

fn scored(
    name: &'static str,
    learnt: &Table,
    of_learnt: &[u32],
    dealt: &Table,
    labels: Vec<u32>,
) -> Result<Scored> {
    let encoder = Encoder::fit(learnt, EncoderOptions::default())?;
    let rows: Rows = encoder.encode(learnt)?;
    let mut model = LinearModel::for_rows(&rows, 2)?;
    let optimizer = Optimizer::Lbfgs(Lbfgs { l2: 0.01, ..Lbfgs::default() });
    let loss = LossName::Logistic.training()?;
    Trainer { optimizer, seed: 1 }.fit(
        &mut model,
        &rows,
        Aim::Targets(&mut Supervised::new(of_learnt, 2)?, loss),
    )?;
    Ok(Scored { name, scores: model.scores(&encoder.encode(dealt)?)?, labels })
}
