//! One Adam epoch of a linear model over 60,000 × 784, on one core. The peer is what cannot be left out: gathering each
//! batch, and its two matrix products with the `gemm` crate at the same batch size.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use easyllp::train::Aim;
use easyllp::{
    Bags, Rows, bagging,
    loss::LossName,
    method::EasyLlp,
    model::LinearModel,
    optim::Adam,
    train::{Optimizer, Trainer},
};
use easyllp_benches::{print_ratio, use_one_thread};
use gemm::Parallelism;
use ndarray::Array2;
use std::hint::black_box;

const ROWS: usize = 60_000;
const FEATURES: usize = 784;
const BATCH: usize = 256;

/// The peer: order of rows, space for a batch, and the three vectors of the products.
struct Products<'x> {
    features: &'x Array2<f32>,
    order: Vec<usize>,
    batch: Vec<f32>,
    weights: Vec<f32>,
    scores: Vec<f32>,
    gradient: Vec<f32>,
}

impl Products<'_> {
    fn epoch(&mut self) {
        for members in self.order.chunks(BATCH) {
            for (&row, line) in members.iter().zip(self.batch.chunks_exact_mut(FEATURES)) {
                line.copy_from_slice(self.features.row(row).to_slice().expect("rows are contiguous"));
            }
            product(members.len(), FEATURES, &self.batch, [FEATURES, 1], &self.weights, &mut self.scores);
            product(FEATURES, members.len(), &self.batch, [1, FEATURES], &self.scores, &mut self.gradient);
        }
        black_box(&self.gradient);
    }
}

/// A matrix of m × k, with these strides by row and by column, times a vector of k.
#[expect(unsafe_code, clippy::cast_possible_wrap, reason = "gemm takes raw pointers and signed strides")]
fn product(m: usize, k: usize, matrix: &[f32], strides: [usize; 2], vector: &[f32], out: &mut [f32]) {
    assert!(
        out.len() >= m && vector.len() >= k && matrix.len() > (m - 1) * strides[0] + (k - 1) * strides[1]
    );
    let [by_row, by_column] = strides.map(|stride| stride as isize);
    // SAFETY: the lengths are asserted above, and `out` is borrowed mutably.
    unsafe {
        gemm::gemm(
            m,
            1,
            k,
            out.as_mut_ptr(),
            1,
            1,
            false,
            matrix.as_ptr(),
            by_column,
            by_row,
            vector.as_ptr(),
            1,
            1,
            1.0_f32,
            1.0_f32,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}

fn epoch(criterion: &mut Criterion) {
    use_one_thread();
    let features = Array2::from_shape_fn((ROWS, FEATURES), |(row, column)| {
        ((row * 31 + column * 17) % 29) as f32 / 29.0
    });
    let labels: Vec<u32> = (0_u32..).take(ROWS).map(|row| row * 7 % 2).collect();
    let rows = Rows::dense(features.view()).expect("rows");
    let partition = bagging::random(ROWS, &bagging::Sizes::Fixed(32), 1).expect("a bagging");
    let bags = Bags::from_labels(partition, &labels, 2).expect("bags");
    let order = bagging::random(ROWS, &bagging::Sizes::Fixed(ROWS), 2).expect("an order");
    let mut products = Products {
        features: &features,
        order: order.members(0).iter().map(|&row| row as usize).collect(),
        batch: vec![0.0; BATCH * FEATURES],
        weights: vec![0.01; FEATURES],
        scores: vec![0.0; BATCH],
        gradient: vec![0.0; FEATURES],
    };
    let train = || {
        let settings = Adam { epochs: 1, batch_size: BATCH, ..Adam::default() };
        let trainer = Trainer { optimizer: Optimizer::Adam(settings), seed: 1 };
        let mut model = LinearModel::for_rows(&rows, 2).expect("a model");
        let loss = LossName::Logistic.training().expect("a loss");
        trainer.fit(&mut model, &rows, Aim::Targets(&mut EasyLlp::new(&bags), loss)).expect("a training");
        black_box(model);
    };
    let mut group = criterion.benchmark_group("linear epoch over 60,000 × 784");
    group.throughput(Throughput::Elements(ROWS as u64)).sample_size(20);
    group.bench_function("Adam", |bencher| bencher.iter(train));
    group.bench_function("gather and two products", |bencher| bencher.iter(|| products.epoch()));
    print_ratio("linear epoch, against gather and two products", 21, train, || products.epoch());
}

criterion_group!(benches, epoch);
criterion_main!(benches);
