//! Five Adam epochs of 330 linear models over 60,000 × 784, all in one pass: the tasks and replicas of a sweep. The peer trains
//! them one by one; a few of them, from which the time of all follows.

use easyllp::train::Aim;
use easyllp::{
    Bags, Rows, bagging,
    loss::{LossName, TrainingLoss},
    method::{EasyLlp, TargetRule},
    model::LinearModel,
    optim::Adam,
    train::{Optimizer, Trainer},
};
use ndarray::Array2;
use std::hint::black_box;
use std::ops::ControlFlow;
use std::time::Instant;

const ROWS: usize = 60_000;
const FEATURES: usize = 784;
const BATCH: usize = 256;
const TASKS: u32 = 330;
/// Models that the peer trains in a round.
const SAMPLE: usize = 5;
const ROUNDS: usize = 3;
const EPOCHS: usize = 5;

fn main() {
    let features = Array2::from_shape_fn((ROWS, FEATURES), |(row, column)| {
        ((row * 31 + column * 17) % 29) as f32 / 29.0
    });
    let rows = Rows::dense(features).expect("rows");
    let bags: Vec<Bags> = (1..=TASKS)
        .map(|task| {
            let labels: Vec<u32> = (0_u32..).take(ROWS).map(|row| row / task % 2).collect();
            let partition =
                bagging::random(ROWS, &bagging::Sizes::Fixed(32), task.into()).expect("a bagging");
            Bags::from_labels(partition, &labels, 2).expect("bags")
        })
        .collect();
    for name in [LossName::Logistic, LossName::Squared] {
        for threads in [1, 2] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
            let loss = name.training().expect("a loss");
            pool.install(|| compare(&rows, &bags, loss, threads));
        }
    }
}

/// Times both sides in turn, so that both see the same machine, and prints the ratio of their medians.
#[expect(clippy::print_stdout, reason = "a bench reports to people")]
fn compare(rows: &Rows, bags: &[Bags], loss: &dyn TrainingLoss, threads: usize) {
    let settings = Adam { epochs: EPOCHS, batch_size: BATCH, ..Adam::default() };
    let trainer = Trainer { optimizer: Optimizer::Adam(settings), seed: 1 };
    let zeros = LinearModel::for_rows(rows, 2).expect("a model");
    let in_columns = || {
        let mut rules: Vec<EasyLlp> = bags.iter().map(EasyLlp::new).collect();
        let mut rules: Vec<&mut dyn TargetRule> = rules.iter_mut().map(|rule| rule as _).collect();
        let mut models = vec![zeros.clone(); bags.len()];
        let log =
            trainer.fit_columns(&mut models, rows, &mut rules, loss, &mut |_, _| ControlFlow::Continue(None));
        black_box((models, log.expect("a training")));
    };
    let one_by_one = || {
        for bags in &bags[..SAMPLE] {
            let mut model = zeros.clone();
            let log = trainer.fit(&mut model, rows, Aim::Targets(&mut EasyLlp::new(bags), loss));
            black_box((model, log.expect("a training")));
        }
    };
    let seconds = |work: &dyn Fn()| {
        let start = Instant::now();
        work();
        start.elapsed().as_secs_f64()
    };
    seconds(&one_by_one);
    let (mut ours, mut peer): (Vec<f64>, Vec<f64>) =
        (0..ROUNDS).map(|_| (seconds(&in_columns), seconds(&one_by_one))).unzip();
    ours.sort_by(f64::total_cmp);
    peer.sort_by(f64::total_cmp);
    let (ours, of_one) = (ours[ROUNDS / 2], peer[ROUNDS / 2] / SAMPLE as f64);
    let of_all = of_one * bags.len() as f64;
    println!(
        "{TASKS} models, {} loss, {threads} threads: {ours:.2} s in columns, {:.1} ms one alone and {of_all:.1} s for \
         all, {:.1} times faster",
        loss.name(),
        1e3 * of_one,
        of_all / ours
    );
}
