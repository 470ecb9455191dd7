//! Bags that were grouped regardless of labels are found plausible as often as promised; others are found out.

use crate::simulation::{laplace, normal, seed};
use easyllp::bagging::{Sizes, random};
use easyllp::diagnose::{Feature, Verdict, dispersion, prior_interval, randomness, uneven_features};
use easyllp::{Bags, Noise, Partition, Rows};
use ndarray::Array2;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Bags of consecutive rows.
fn partition(sizes: &[usize]) -> Partition {
    let bag_of_row: Vec<u32> =
        (0..).zip(sizes).flat_map(|(bag, &size)| std::iter::repeat_n(bag, size)).collect();
    Partition::from_bag_of_row(&bag_of_row, sizes.len()).unwrap()
}

/// Class counts of independent rows with these class probabilities.
fn class_counts(sizes: &[usize], classes: &[f64], rng: &mut ChaCha8Rng) -> Array2<f64> {
    let mut counts = Array2::zeros((sizes.len(), classes.len()));
    for (mut line, &size) in counts.rows_mut().into_iter().zip(sizes) {
        for _ in 0..size {
            let mut place = rng.random::<f64>();
            let passed = |p: &&f64| {
                place -= **p;
                place >= 0.0
            };
            line[classes.iter().take_while(passed).count().min(classes.len() - 1)] += 1.0;
        }
    }
    counts
}

/// The share of 1,000 sets of bags that are not found plausible at level 0.05, which should lie within four standard
/// errors of it. The p-value is exact for any number of draws, so few will do.
fn assert_few_false_alarms(name: &str, rng: &mut ChaCha8Rng, mut set: impl FnMut(&mut ChaCha8Rng) -> Bags) {
    let n_sets = 1000;
    let alarms = (0..n_sets)
        .filter(|_| {
            let found = dispersion(&set(rng), 49, rng.random()).unwrap();
            found.over < 0.025 || found.under < 0.025
        })
        .count();
    let share = alarms as f64 / f64::from(n_sets);
    let standard_error = (0.05 * 0.95 / f64::from(n_sets)).sqrt();
    assert!((share - 0.05).abs() < 4.0 * standard_error, "{name}: {share} of the sets are not plausible");
}

fn sizes_to_try(rng: &mut ChaCha8Rng) -> Vec<(&'static str, Vec<usize>)> {
    let mixed = (0..200).map(|_| rng.random_range(4..=256)).collect();
    vec![("2", vec![2; 200]), ("8", vec![8; 200]), ("64", vec![64; 200]), ("4 to 256", mixed)]
}

/// 200 bags each. Passes on 20 of the seeds 0 to 19.
#[test]
fn false_alarms_are_as_rare_as_promised() {
    let mut rng = ChaCha8Rng::seed_from_u64(seed());
    for (size, sizes) in sizes_to_try(&mut rng) {
        let partition = partition(&sizes);
        for p in [0.01, 0.3] {
            assert_few_false_alarms(&format!("bags of {size}, p = {p}"), &mut rng, |rng| {
                let counts = class_counts(&sizes, &[1.0 - p, p], rng);
                Bags::multiclass(partition.clone(), counts, Noise::None).unwrap()
            });
        }
    }
    let sizes = vec![16; 100];
    assert_few_false_alarms("four classes", &mut rng, |rng| {
        let counts = class_counts(&sizes, &[0.5, 0.3, 0.15, 0.05], rng);
        Bags::multiclass(partition(&sizes), counts, Noise::None).unwrap()
    });
}

/// The same with noise as declared, of one count and of every class. The totals are then known only roughly, also where
/// positives are so rare that noise hides them. Passes on 20 of the seeds 0 to 19.
#[test]
fn declared_noise_raises_no_alarm() {
    let mut rng = ChaCha8Rng::seed_from_u64(seed());
    for (p, size, scale) in [(0.01, 8, 1.0), (0.3, 8, 2.0), (0.3, 64, 3.0)] {
        let sizes = vec![size; 100];
        let partition = partition(&sizes);
        let scales = vec![scale; 100];
        assert_few_false_alarms(&format!("normal, bags of {size}, p = {p}"), &mut rng, |rng| {
            let counts = class_counts(&sizes, &[1.0 - p, p], rng);
            let noisy: Vec<f64> = counts.column(1).iter().map(|count| count + scale * normal(rng)).collect();
            Bags::binary(partition.clone(), &noisy, Noise::Gaussian(scales.clone())).unwrap()
        });
        for classes in [&[1.0 - p, p][..], &[0.6, 0.4 - p, p]] {
            assert_few_false_alarms(&format!("Laplace, bags of {size}, {classes:?}"), &mut rng, |rng| {
                let counts = class_counts(&sizes, classes, rng).mapv(|count| count + laplace(rng, scale));
                Bags::multiclass(partition.clone(), counts, Noise::Laplace(scales.clone())).unwrap()
            });
        }
    }
}

/// Counts of bags that were filled with positives first.
fn sorted_by_label(sizes: &[usize], mut n_positives: usize) -> Vec<f64> {
    let fill = |&size: &usize| {
        let count = size.min(n_positives);
        n_positives -= count;
        count as f64
    };
    sizes.iter().map(fill).collect()
}

#[test]
fn bags_made_by_label_are_found_out() {
    let mut rng = ChaCha8Rng::seed_from_u64(seed());
    for (size, sizes) in sizes_to_try(&mut rng) {
        let n_rows: usize = sizes.iter().sum();
        for share in [10, 3] {
            let counts = sorted_by_label(&sizes, n_rows / share);
            let bags = Bags::binary(partition(&sizes), &counts, Noise::None).unwrap();
            let found = dispersion(&bags, 1999, seed()).unwrap();
            assert!(
                found.over < 0.001 && randomness(&bags).unwrap().is_rejected(),
                "bags of {size}: {found:?}"
            );
            assert!(found.ratio > 1.3, "bags of {size}: {found:?}");

            // Noise that drowns what two rows say lets bags of two pass, as it should.
            if size != "2" {
                let noisy: Vec<f64> = counts.iter().map(|count| count + laplace(&mut rng, 1.0)).collect();
                let declared = Noise::Laplace(vec![1.0; sizes.len()]);
                let bags = Bags::binary(partition(&sizes), &noisy, declared).unwrap();
                let found = dispersion(&bags, 1999, seed()).unwrap();
                assert!(found.over < 0.001, "noisy bags of {size}: {found:?}");
            }
        }
    }
}

#[test]
fn balanced_bags_are_found_out() {
    for (size, count) in [(2, 1.0), (8, 2.0), (64, 20.0)] {
        let bags = Bags::binary(partition(&[size; 200]), &[count; 200], Noise::None).unwrap();
        let found = dispersion(&bags, 1999, seed()).unwrap();
        assert!(found.under < 0.001, "bags of {size}: {found:?}");
        assert_eq!(randomness(&bags).unwrap().verdict, Verdict::Balanced, "bags of {size}");
    }
    let counts = Array2::from_shape_fn((200, 4), |(_, class)| (class + 1) as f64);
    let bags = Bags::multiclass(partition(&[10; 200]), counts, Noise::None).unwrap();
    assert_eq!(randomness(&bags).unwrap().verdict, Verdict::Balanced);
}

/// Noise that nobody declared makes no bags; noise declared and left out makes them too much alike.
#[test]
fn noise_must_be_what_was_declared() {
    let mut rng = ChaCha8Rng::seed_from_u64(seed());
    let sizes = [8; 200];
    let counts: Vec<f64> = class_counts(&sizes, &[0.7, 0.3], &mut rng).column(1).to_vec();
    let noisy: Vec<f64> = counts.iter().map(|count| count + laplace(&mut rng, 2.0)).collect();
    assert!(Bags::binary(partition(&sizes), &noisy, Noise::None).is_err());
    let bags = Bags::binary(partition(&sizes), &counts, Noise::Laplace(vec![4.0; 200])).unwrap();
    assert_eq!(randomness(&bags).unwrap().verdict, Verdict::Balanced);
}

#[test]
fn a_seed_gives_the_same_whatever_the_threads() {
    let mut rng = ChaCha8Rng::seed_from_u64(seed());
    let sizes: Vec<usize> = (0..50).map(|_| rng.random_range(1..=90)).collect();
    let counts = class_counts(&sizes, &[0.2, 0.5, 0.3], &mut rng);
    let noisy = counts.mapv(|count| count + normal(&mut rng));
    let exact = Bags::multiclass(partition(&sizes), counts, Noise::None).unwrap();
    let noisy = Bags::multiclass(partition(&sizes), noisy, Noise::Gaussian(vec![1.0; 50])).unwrap();
    for bags in [exact, noisy] {
        let on = |n_threads: usize, seed: u64| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
            pool.install(|| dispersion(&bags, 300, seed).unwrap())
        };
        assert_eq!(on(1, 5), on(4, 5));
        assert_ne!(on(1, 5), on(1, 6));
    }
}

/// The share of 1,000 sets of random bags that the one rule rejects is at most 0.01, and four standard errors of 0.0031
/// above that. Passes on 20 of the seeds 0 to 19.
#[test]
fn random_bags_are_rejected_at_most_once_in_a_hundred() {
    let n_sets = 1000;
    let most = 0.01 + 4.0 * (0.01 * 0.99 / f64::from(n_sets)).sqrt();
    let mut rng = ChaCha8Rng::seed_from_u64(seed());
    // Few bags and rare positives make many ties, many bags vary by little.
    let settings =
        [("4 of 5", vec![5; 4], 0.3), ("30 of 8", vec![8; 30], 0.02), ("200 of 64", vec![64; 200], 0.3)];
    for (name, sizes, p) in settings {
        let partition = partition(&sizes);
        let is_rejected = |_: &u32| {
            let counts = class_counts(&sizes, &[1.0 - p, p], &mut rng);
            let bags = Bags::multiclass(partition.clone(), counts, Noise::None).unwrap();
            randomness(&bags).unwrap().is_rejected()
        };
        let share = (0..n_sets).filter(is_rejected).count() as f64 / f64::from(n_sets);
        assert!(share <= most, "{name}: {share} of the sets are rejected");
    }
}

/// Rows of one bag that lean the same way by a little: a ratio below 1.1 is no reason to withhold anything, though 40,000
/// bags leave no doubt of it. The ratio's standard error is √(2/40,000) = 0.0071, a quarter of what would reject.
#[test]
fn a_trifle_does_not_reject_many_bags() {
    let mut rng = ChaCha8Rng::seed_from_u64(seed());
    let sizes = vec![8; 40_000];
    // Shares of 0.5 ± lean make the ratio 1 + (8 − 1) lean²/0.25: 1.07 and 1.28.
    for (lean, is_rejected) in [(0.05, false), (0.1, true)] {
        let count = |&size: &usize| {
            let share = if rng.random() { 0.5 + lean } else { 0.5 - lean };
            (0..size).filter(|_| rng.random::<f64>() < share).count() as f64
        };
        let counts: Vec<f64> = sizes.iter().map(count).collect();
        let found = randomness(&Bags::binary(partition(&sizes), &counts, Noise::None).unwrap()).unwrap();
        assert!(found.p_value < 0.01 && found.is_rejected() == is_rejected, "{lean}: {found:?}");
    }
}

#[cfg(feature = "datasets")]
#[test]
fn people_bagged_by_a_column_are_not_bagged_at_random() {
    use easyllp::bagging;
    use easyllp::table::Column;
    let adult = easyllp::datasets::adult().unwrap().train;
    for column in ["education", "occupation"] {
        let Ok(Column::Categorical { codes, .. }) = adult.table.column(column) else {
            panic!("{column} is a column of categories")
        };
        let (_, by_column) = bagging::by_key(codes).unwrap();
        let found = randomness(&Bags::from_labels(by_column, &adult.labels, 2).unwrap()).unwrap();
        assert!(found.is_rejected() && found.p_value < 0.001 && found.ratio > 5.0, "{column}: {found:?}");
    }
    let random = bagging::random(adult.labels.len(), &bagging::Sizes::Range(4..=256), seed()).unwrap();
    let bags = Bags::from_labels(random, &adult.labels, 2).unwrap();
    assert_eq!(randomness(&bags).unwrap().verdict, Verdict::Plausible);
}

/// 95 % intervals of 2,000 sets of 100 bags: the share that covers lies within four standard errors, 0.0195, of 0.95,
/// whether rows of a bag are independent, alike, or counted with noise. Passes on 20 of the seeds 0 to 19.
#[test]
fn intervals_of_the_prior_cover() {
    let n_sets = 2000;
    let mut rng = ChaCha8Rng::seed_from_u64(seed());
    let sizes: Vec<usize> = (0..100).map(|_| rng.random_range(4..=60)).collect();
    let partition = partition(&sizes);
    for (name, shares, scale) in
        [("independent", [0.3, 0.3], 0.0), ("alike", [0.1, 0.5], 0.0), ("noisy", [0.3, 0.3], 4.0)]
    {
        let covering = (0..n_sets)
            .filter(|_| {
                let count = |&size: &usize| {
                    let share = shares[rng.random_range(0..2)];
                    let exact = (0..size).filter(|_| rng.random::<f64>() < share).count() as f64;
                    exact + laplace(&mut rng, scale)
                };
                let counts: Vec<f64> = sizes.iter().map(count).collect();
                let noise = Noise::Laplace(vec![scale; sizes.len()]);
                let bags = Bags::binary(partition.clone(), &counts, noise).unwrap();
                prior_interval(&bags, 1, 0.95).unwrap().covers(0.3)
            })
            .count();
        let share = covering as f64 / f64::from(n_sets);
        let standard_error = (0.95 * 0.05 / f64::from(n_sets)).sqrt();
        assert!((share - 0.95).abs() < 4.0 * standard_error, "{name}: {share} of the intervals cover");
    }
}

/// Of 400 random baggings of rows with two numbers and a field of three categories, a share of about 5 % shows an uneven
/// feature at level 0.05 (Bonferroni makes it a little less): between 1 % and 8.3 %, three standard errors of 0.011 above.
/// Passes on 20 of the seeds 0 to 19. Bags by the first number are always seen.
#[test]
fn features_of_random_bags_are_even() {
    let mut rng = ChaCha8Rng::seed_from_u64(seed());
    let mut alarms = 0_u32;
    for trial in 0..400 {
        let dense = Array2::from_shape_simple_fn((600, 2), || rng.random::<f32>().powi(3));
        let categories = Array2::from_shape_simple_fn((600, 1), || rng.random_range(0..3_u32));
        let rows = Rows::new(dense, categories, vec![3]).unwrap();
        let partition = random(600, &Sizes::Range(4..=20), rng.random()).unwrap();
        let bags = Bags::from_labels(partition, &[0; 600], 2).unwrap();
        alarms += u32::from(!uneven_features(&rows, &bags, 0.05).unwrap().is_empty());
        if trial == 0 {
            let mut order: Vec<u32> = (0..600).collect();
            let first = rows.as_dense().unwrap().batch(0..600).dense.column(0).to_vec();
            order.sort_by(|&a, &b| first[a as usize].total_cmp(&first[b as usize]));
            let bags =
                Bags::from_labels(Partition::new(600, order.chunks(10)).unwrap(), &[0; 600], 2).unwrap();
            let found = uneven_features(&rows, &bags, 0.001).unwrap();
            assert_eq!(found[0].feature, Feature::Dense(0));
            assert!(found.len() == 1 && found[0].ratio > 10.0 && found[0].p_value < 1e-6);
        }
    }
    let share = f64::from(alarms) / 400.0;
    assert!((0.01..=0.083).contains(&share), "{share} of random baggings are called uneven");
}
