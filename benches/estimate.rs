//! The log loss of ten million rows from bags of 64, on one core, in one pass and without a copy of the rows. The peer is
//! the true log loss from row labels.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use easyllp::{Bags, Estimator, Link, Predictions, bagging, metrics};
use easyllp_benches::{print_ratio, use_one_thread};
use ndarray::Array2;
use std::hint::black_box;

const ROWS: usize = 10_000_000;

fn estimate(criterion: &mut Criterion) {
    use_one_thread();
    let labels: Vec<u32> =
        (0_u32..).take(ROWS).map(|row| u32::from(row.wrapping_mul(2_654_435_761) < 1 << 30)).collect();
    let partition = bagging::random(ROWS, &bagging::Sizes::Fixed(64), 1).expect("a bagging");
    let bags = Bags::from_labels(partition, &labels, 2).expect("bags");
    let scores = Array2::from_shape_fn((ROWS, 1), |(row, _)| (row as f32 * 0.37).sin() * 3.0);
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

criterion_group!(benches, estimate);
criterion_main!(benches);
