//! Choosing and judging by bags alone, held against row labels that nothing here is trained or chosen by. MNIST, even against odd.
//!
//! `selection` prints two tables. First, what the standard error of an MLP's error is from bags of its 10,000 test rows, and what
//! estimates differ by over 200 baggings. Second, for the network `cnn:mnist` trained on bags of the 60,000 training rows with
//! averaged weights: the test accuracy after the epoch that held-out bags (a fifth) chose by their Brier score, that of the best epoch by
//! test labels, and that of the last epoch without averaging; five seeds of bagging, split and training.

use easyllp::bagging::{Sizes, Split, random, split};
use easyllp::method::Supervised;
use easyllp::model::Hidden;
use easyllp::table::{Encoder, EncoderOptions};
use easyllp::train::Aim;
use easyllp::{
    Bags, Estimator, Predictions, Result, Rows,
    estimate::Scope,
    loss::{Link, LossName},
    method::EasyLlp,
    metrics,
    model::{Cnn, Mlp, Scorer},
    optim::Adam,
    train::{EarlyStopping, Optimizer, Trainer},
};
use easyllp_benches::mnist;
use std::ops::ControlFlow;

const EPOCHS: usize = 15;
const SEEDS: u64 = 5;

struct Images {
    train: Rows<'static>,
    train_labels: Vec<u32>,
    test: Rows<'static>,
    test_labels: Vec<u32>,
}

fn main() -> Result<()> {
    let [train, test] = mnist::even_and_odd()?.expect("MNIST's files");
    let encoder = Encoder::fit(&train.0, EncoderOptions::default())?;
    let images = Images {
        train: encoder.encode(&train.0)?,
        train_labels: train.1,
        test: encoder.encode(&test.0)?,
        test_labels: test.1,
    };
    precision(&images)?;
    stopping(&images)
}

/// The standard error of an MLP's error.
#[expect(clippy::print_stdout, reason = "the result")]
fn precision(images: &Images) -> Result<()> {
    const BAGGINGS: u64 = 200;
    let mut model = Mlp::new(784, &Hidden::new(&[256, 128]), 2, 1)?;
    let trainer = Trainer { optimizer: Optimizer::Adam(Adam { epochs: 4, ..Adam::default() }), seed: 1 };
    let mut labels = Supervised::new(&images.train_labels, 2)?;
    trainer.fit(&mut model, &images.train, Aim::Targets(&mut labels, LossName::Logistic.training()?))?;
    let scores = model.scores(&images.test)?;
    let predictions = Predictions::new(scores.view(), Link::Logit)?;
    let truth = 1.0 - metrics::accuracy(&predictions, &images.test_labels)?;
    println!(
        "| bags of the test rows | true error | mean estimate | mean standard error | estimates differ by | mean s.e., population |"
    );
    println!("|---|---|---|---|---|---|");
    for k in [64, 256] {
        let mut found = Vec::new();
        let mut of_population = 0.0;
        for seed in 0..BAGGINGS {
            let partition = random(images.test_labels.len(), &Sizes::Fixed(k), seed)?;
            let bags = Bags::from_labels(partition, &images.test_labels, 2)?;
            // 10,000 is no multiple of k: the last bag is short.
            let estimator = Estimator::new(&bags)?;
            of_population += estimator.error(&predictions)?.standard_error / BAGGINGS as f64;
            found.push(estimator.scope(Scope::TheseRows).error(&predictions)?);
        }
        let n = found.len() as f64;
        let mean = found.iter().map(|estimate| estimate.value).sum::<f64>() / n;
        let variance = found.iter().map(|estimate| (estimate.value - mean).powi(2)).sum::<f64>() / (n - 1.0);
        let standard_error = found.iter().map(|estimate| estimate.standard_error).sum::<f64>() / n;
        println!(
            "| {} of {k} | {truth:.4} | {mean:.4} | {standard_error:.4} | {:.4} | {of_population:.4} |",
            images.test_labels.len().div_ceil(k),
            variance.sqrt()
        );
    }
    println!();
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the result")]
fn stopping(images: &Images) -> Result<()> {
    println!(
        "| bags of | seed | chosen epoch | its accuracy | best epoch | its accuracy | last epoch, plain |"
    );
    println!("|---|---|---|---|---|---|---|");
    for k in [32, 256] {
        let mut means = [0.0; 3];
        for seed in 1..=SEEDS {
            let course = Course::new(images, k, seed)?;
            let (chosen, of_chosen) = course.chosen;
            let (best, of_best) = course.best;
            let plain = course.plain;
            println!("| {k} | {seed} | {chosen} | {of_chosen:.4} | {best} | {of_best:.4} | {plain:.4} |");
            for (mean, accuracy) in means.iter_mut().zip([of_chosen, of_best, plain]) {
                *mean += accuracy / SEEDS as f64;
            }
        }
        println!("| {k} | mean | | {:.4} | | {:.4} | {:.4} |", means[0], means[1], means[2]);
    }
    Ok(())
}

/// One training, and how good it was on the test rows.
struct Course {
    /// The epoch that held-out bags chose, and its accuracy.
    chosen: (usize, f64),
    best: (usize, f64),
    /// The last epoch's accuracy without averaged weights.
    plain: f64,
}

impl Course {
    fn new(images: &Images, k: usize, seed: u64) -> Result<Self> {
        let loss = LossName::Squared.training()?;
        let accuracy = |model: &Cnn| -> Result<f64> {
            let scores = model.scores(&images.test)?;
            metrics::accuracy(&Predictions::new(scores.view(), loss.link())?, &images.test_labels)
        };
        let partition = random(images.train_labels.len(), &Sizes::Fixed(k), seed)?;
        let bags = Bags::from_labels(partition, &images.train_labels, 2)?;
        let Split { train, held_out } = split(&bags, 0.2, seed)?;
        let estimator = Estimator::new(&held_out)?;
        let untrained = Cnn::new(&"mnist".parse()?, "1x28x28".parse()?, 2, seed)?;
        let trainer = |average| Trainer {
            optimizer: Optimizer::Adam(Adam { epochs: EPOCHS, average, ..Adam::default() }),
            seed,
        };

        let mut of_epochs = Vec::new();
        let mut figure = |model: &Cnn| {
            of_epochs.push(accuracy(model)?);
            let scores = model.scores(&images.train)?;
            Ok(estimator.brier(&Predictions::new(scores.view(), loss.link())?)?.value)
        };
        let judge = EarlyStopping { metric: &mut figure, patience: EPOCHS, smoothing: 1 };
        let mut model = untrained.clone();
        let mut watch = |_| ControlFlow::Continue(());
        let mut rule = EasyLlp::new(&train);
        let log = trainer(true).fit_watched(
            &mut model,
            &images.train,
            Aim::Targets(&mut rule, loss),
            &mut watch,
            Some(judge),
        )?;
        let (chosen, _) = log.best.expect("figures are numbers");
        let best = (0..of_epochs.len()).max_by(|&a, &b| of_epochs[a].total_cmp(&of_epochs[b]));
        let best = best.expect("an epoch");

        let mut plain = untrained;
        trainer(false).fit(&mut plain, &images.train, Aim::Targets(&mut EasyLlp::new(&train), loss))?;
        Ok(Self {
            chosen: (chosen, of_epochs[chosen - 1]),
            best: (best + 1, of_epochs[best]),
            plain: accuracy(&plain)?,
        })
    }
}
