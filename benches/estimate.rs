//! The log loss of ten million rows from bags of 64, on one core, in one pass and without a copy of the rows; the peer is the true
//! log loss from row labels. Then all that `easyllp evaluate` says of a million rows; the peer sorts the rows by score, which any
//! curve has to do.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use easyllp::{Bags, Estimator, Predictions, Result, bagging, loss::Link, metrics};
use easyllp_benches::{print_ratio, use_one_thread};
use ndarray::Array2;
use std::hint::black_box;

const ROWS: usize = 10_000_000;

/// Labels, bags of 64 and scores of this number of rows.
fn example(n_rows: usize) -> (Vec<u32>, Bags, Array2<f32>) {
    let labels: Vec<u32> =
        (0_u32..).take(n_rows).map(|row| u32::from(row.wrapping_mul(2_654_435_761) < 1 << 30)).collect();
    let partition = bagging::random(n_rows, &bagging::Sizes::Fixed(64), 1).expect("a bagging");
    let bags = Bags::from_labels(partition, &labels, 2).expect("bags");
    let scores = Array2::from_shape_fn((n_rows, 1), |(row, _)| (row as f32 * 0.37).sin() * 3.0);
    (labels, bags, scores)
}

fn estimate(criterion: &mut Criterion) {
    use_one_thread();
    let (labels, bags, scores) = example(ROWS);
    let predictions = Predictions::new(scores.view(), Link::Logit).expect("scores");
    let mut group = criterion.benchmark_group("log loss of 10 M rows");
    group.throughput(Throughput::Elements(ROWS as u64)).sample_size(10);
    let estimator = Estimator::new(&bags).expect("bags");
    group.bench_function("from bags", |bencher| {
        bencher.iter(|| estimator.log_loss(black_box(&predictions)).expect("an estimate"));
    });
    print_ratio(
        "log loss from bags, against true log loss",
        7,
        || {
            black_box(estimator.log_loss(black_box(&predictions)).expect("an estimate"));
        },
        || {
            black_box(metrics::log_loss(black_box(&predictions), &labels).expect("a figure"));
        },
    );
}

fn everything(_: &mut Criterion) {
    const ROWS: usize = 1_000_000;
    use_one_thread();
    let (_, bags, scores) = example(ROWS);
    let predictions = Predictions::new(scores.view(), Link::Logit).expect("scores");
    let estimator = Estimator::new(&bags).expect("bags");
    let all = || -> Result<()> {
        black_box(estimator.log_loss(&predictions)?);
        black_box(estimator.brier(&predictions)?);
        black_box(estimator.error(&predictions)?);
        black_box(estimator.auc(&predictions)?);
        black_box(estimator.at_threshold(&predictions, 0.0)?);
        black_box(estimator.confusion(&predictions)?);
        black_box(estimator.curve(&predictions, 100)?);
        black_box(estimator.calibration(&predictions, 10)?);
        black_box(estimator.lift(&predictions, 10)?);
        Ok(())
    };
    print_ratio(
        "all metrics and curves of 1 M rows, against sorting them by score",
        5,
        || all().expect("estimates"),
        || {
            let mut order: Vec<u32> = (0..).take(ROWS).collect();
            order.sort_unstable_by(|&a, &b| {
                scores[[b as usize, 0]].total_cmp(&scores[[a as usize, 0]]).then(a.cmp(&b))
            });
            black_box(order);
        },
    );
}

criterion_group!(benches, estimate, everything);
criterion_main!(benches);
