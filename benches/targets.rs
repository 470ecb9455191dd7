//! Soft targets for ten million rows in bags of 64, on one core. The peer is a `fill` of as many bytes.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use easyllp::{
    Bags, Noise, Partition, bagging,
    correction::{Correction, Targets},
};
use easyllp_benches::print_ratio;
use std::hint::black_box;

const ROWS: usize = 10_000_000;
const SIZE: usize = 64;

fn counts(partition: &Partition) -> Vec<f64> {
    (0..partition.n_bags()).map(|bag| (bag % (partition.size(bag) + 1)) as f64).collect()
}

fn targets(criterion: &mut Criterion) {
    let shuffled = bagging::random(ROWS, &bagging::Sizes::Fixed(SIZE), 1).expect("a bagging");
    #[expect(clippy::cast_possible_truncation, reason = "156,250 bags")]
    let in_order: Vec<u32> = (0..ROWS).map(|row| (row / SIZE) as u32).collect();
    let in_order = Partition::from_bag_of_row(&in_order, ROWS.div_ceil(SIZE)).expect("a bagging");
    let mut group = criterion.benchmark_group("soft targets of 10 M rows");
    group.throughput(Throughput::Bytes(4 * ROWS as u64)).sample_size(20);
    for (name, partition) in [("rows in bag order", in_order), ("rows shuffled", shuffled)] {
        let positives = counts(&partition);
        let bags = Bags::binary(partition, &positives, Noise::None).expect("bags");
        let correction = Correction::default();
        let mut out = Targets::zeros(ROWS, 2);
        let mut plain = vec![0_f32; ROWS];
        group.bench_function(name, |bencher| {
            bencher.iter(|| correction.soft_into(black_box(&bags), &mut out).expect("targets"));
        });
        let ours = || correction.soft_into(black_box(&bags), &mut out).expect("targets");
        print_ratio(name, 15, ours, || black_box(&mut plain).fill(black_box(1.0)));
    }
}

criterion_group!(benches, targets);
criterion_main!(benches);
