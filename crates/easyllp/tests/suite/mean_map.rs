//! When EasyLLP and the mean map train the same linear model: the theorem of `docs/theory/meanmap.md`.
//!
//! With κ = (N − 1)/(n − 1), both have targets p̂ + slope·(α_i − p̂): EasyLLP's slope is κ, the mean map's is κ/D, where D is
//! the variance of proportions over its expectation in random bags.

use crate::simulation::seed;
use easyllp::fit::{OptimizerConfig, Penalty, ValidationConfig};
use easyllp::method::{MeanMap, Positive};
use easyllp::{
    Bags, FitConfig, MethodConfig, Noise, Partition, Rows,
    correction::{Correction, Targets},
    method::TargetRule,
};
use ndarray::Array2;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Bags of rows in turn, with these sizes and counts of positives.
fn bags(sizes: &[u32], counts: &[f64]) -> Bags {
    let mut next = 0;
    let lists: Vec<Vec<u32>> = sizes
        .iter()
        .map(|size| {
            next += size;
            (next - size..next).collect()
        })
        .collect();
    Bags::binary(Partition::new(next as usize, lists).unwrap(), counts, Noise::None).unwrap()
}

/// κ, p̂(1 − p̂) and the variance of proportions, weighed by size.
fn moments(bags: &Bags) -> (f64, f64, f64) {
    let (n_rows, n_bags, p) = (bags.n_members() as f64, bags.n_bags() as f64, bags.pooled_proportions()[1]);
    let of_bag = |bag: usize| bags.size(bag) as f64 * (bags.proportion(bag, 1) - p).powi(2) / n_rows;
    let variance = (0..bags.n_bags()).map(of_bag).sum();
    ((n_rows - 1.0) / (n_bags - 1.0), p * (1.0 - p), variance)
}

/// D: how many times as much as by chance the counts vary.
fn dispersion(bags: &Bags) -> f64 {
    let (kappa, chance, variance) = moments(bags);
    kappa * variance / chance
}

fn mean_map(rule: &mut MeanMap, bags: &Bags) -> Targets {
    let mut out = Targets::zeros(bags.n_rows(), bags.n_classes());
    rule.targets(0, &mut out).unwrap();
    out
}

/// The slope of targets that are p̂ + slope·(α_i − p̂), which is looked at in every bag.
fn slope(targets: &Targets, bags: &Bags) -> f64 {
    let p = bags.pooled_proportions()[1];
    let off = |bag: usize| f64::from(targets.values()[[bags.members(bag)[0] as usize, 0]]) - p;
    let by = |bag: usize| bags.proportion(bag, 1) - p;
    let most = (0..bags.n_bags()).max_by(|&a, &b| by(a).abs().total_cmp(&by(b).abs())).unwrap();
    let slope = off(most) / by(most);
    for bag in 0..bags.n_bags() {
        let largest = slope.abs() * by(most).abs() + 1.0;
        assert!((off(bag) - slope * by(bag)).abs() < 1e-5 * largest, "bag {bag}: {slope}");
    }
    slope
}

/// Bags of 1 to 12 rows, drawn with a chance of positives that differs by `spread` from bag to bag.
fn drawn(n_bags: usize, spread: f64, rng: &mut ChaCha8Rng) -> Bags {
    let sizes: Vec<u32> = (0..n_bags).map(|_| rng.random_range(1..=12)).collect();
    let count = |size: &u32| {
        let chance = 0.4 + spread * (rng.random::<f64>() - 0.5);
        (0..*size).map(|_| f64::from(u8::from(rng.random::<f64>() < chance))).sum()
    };
    let counts: Vec<f64> = sizes.iter().map(count).collect();
    bags(&sizes, &counts)
}

#[test]
fn the_targets_differ_by_the_dispersion_of_counts_and_nothing_else() {
    let mut rng = ChaCha8Rng::seed_from_u64(seed());
    for spread in [0.0, 0.2, 0.8] {
        for n_bags in [3, 10, 200] {
            let bags = drawn(n_bags, spread, &mut rng);
            let (kappa, ..) = moments(&bags);
            let easyllp = slope(&Correction::default().soft(&bags).unwrap(), &bags);
            let theirs = slope(&mean_map(&mut MeanMap::new(&bags), &bags), &bags);
            assert!((easyllp - kappa).abs() < 1e-4 * kappa, "{easyllp} is not {kappa}");
            let expected = kappa / dispersion(&bags);
            assert!((theirs - expected).abs() < 1e-4 * expected, "{theirs} is not {expected}");
        }
    }
}

/// The largest difference of the two models' probabilities.
fn difference(bags: &Bags) -> f64 {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let rows = Rows::dense(Array2::from_shape_fn((bags.n_rows(), 2), |_| rng.random::<f32>() - 0.5)).unwrap();
    let probabilities = |method: &str| {
        let optimizer = OptimizerConfig { l2: Some(Penalty::Value(0.05)), ..OptimizerConfig::default() };
        let validation = ValidationConfig { share: 0.0, ..ValidationConfig::default() };
        let method = MethodConfig::with_parameters(method, serde_json::Map::new()).unwrap();
        let config = FitConfig { method, optimizer, validation, ..FitConfig::default() };
        config.fit(&rows, bags).unwrap().predict_proba(&rows).unwrap()
    };
    let both = [probabilities("easyllp"), probabilities("mean-map")];
    both[0].iter().zip(&both[1]).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

#[test]
fn the_models_are_the_same_where_counts_vary_as_much_as_by_chance_and_nowhere_else() {
    // D = 1, with bags of one size and of three.
    for (sizes, counts) in [(&[2, 2, 2], [1.0, 2.0, 2.0]), (&[2, 3, 4], [1.0, 0.0, 2.0])] {
        let same = bags(sizes, &counts);
        assert!((dispersion(&same) - 1.0).abs() < 1e-12);
        assert!(difference(&same) < 1e-5, "{}", difference(&same));
    }
    // D = 5/3 and D = 5/8.
    for (counts, expected) in [([2.0, 1.0, 0.0], 5.0 / 3.0), ([1.0, 1.0, 2.0], 0.625)] {
        let other = bags(&[2, 2, 2], &counts);
        assert!((dispersion(&other) - expected).abs() < 1e-12, "{}", dispersion(&other));
        assert!(difference(&other) > 0.01, "{}", difference(&other));
    }
}

#[test]
fn a_ridge_makes_them_the_same_only_where_counts_vary_less_than_by_chance() {
    for (counts, is_less) in [([1.0, 1.0, 2.0], true), ([2.0, 1.0, 0.0], false)] {
        let bags = bags(&[2, 2, 2], &counts);
        let (kappa, chance, variance) = moments(&bags);
        // slope(λ) = (p̂(1 − p̂) + λ/2)/(V + λ(2V + 1 − 2p̂(1 − p̂)) + λ²)
        let linear = 2.0 * variance + 1.0 - 2.0 * chance;
        let expected = |ridge: f64| (chance + ridge / 2.0) / (variance + ridge * linear + ridge * ridge);
        // The rule's ridge is a multiple of the mean diagonal, Σ k (α² + (1 − α)²)/2N.
        let squares = |bag: usize| bags.proportion(bag, 1).powi(2) + bags.proportion(bag, 0).powi(2);
        let weighed = |bag: usize| bags.size(bag) as f64 * squares(bag) / bags.n_members() as f64;
        let diagonal = (0..bags.n_bags()).map(weighed).sum::<f64>() / 2.0;
        let got = |ridge: f64| {
            let mut rule = MeanMap::with_ridge(&bags, Positive::new(ridge / diagonal).unwrap());
            slope(&mean_map(&mut rule, &bags), &bags)
        };
        for ridge in [1e-3, 0.02, 0.3, 5.0] {
            assert!(
                (got(ridge) - expected(ridge)).abs() < 1e-4,
                "{ridge}: {} {}",
                got(ridge),
                expected(ridge)
            );
        }
        // κλ² + (κ·linear − ½)λ + κV − p̂(1 − p̂) = 0
        let (b, c) = (kappa * linear - 0.5, kappa * variance - chance);
        assert_eq!(c < 0.0, is_less);
        if is_less {
            let root = ((b * b - 4.0 * kappa * c).sqrt() - b) / (2.0 * kappa);
            assert!((got(root) - kappa).abs() < 1e-4, "{}", got(root));
        } else {
            assert!([1e-9, 1e-4, 0.01, 0.1, 1.0, 10.0].iter().all(|&ridge| got(ridge) < kappa));
        }
    }
}

/// The mean map divides by the covariance of proportions, EasyLLP by its expectation (diag(p̂) − p̂p̂ᵀ)/κ.
#[test]
fn of_three_classes_the_covariance_stands_in_the_place_of_the_variance() {
    let mut rng = ChaCha8Rng::seed_from_u64(seed());
    let labels: Vec<u32> = (0..60).map(|_| rng.random_range(0..3)).collect();
    let lists: Vec<Vec<u32>> =
        [0..4, 4..9, 9..19, 19..31, 31..33, 33..47, 47..60].map(Iterator::collect).to_vec();
    let bags = Bags::from_labels(Partition::new(60, lists).unwrap(), &labels, 3).unwrap();
    let p = bags.pooled_proportions();
    let off = |bag: usize, class: usize| bags.proportion(bag, class) - p[class];
    let covariance = |a: usize, b: usize| {
        let of_bag = |bag: usize| bags.size(bag) as f64 * off(bag, a) * off(bag, b) / 60.0;
        (0..bags.n_bags()).map(of_bag).sum::<f64>()
    };
    let (easyllp, theirs) =
        (Correction::default().soft(&bags).unwrap(), mean_map(&mut MeanMap::new(&bags), &bags));
    let (kappa, ..) = moments(&bags);
    for bag in 0..bags.n_bags() {
        let row = bags.members(bag)[0] as usize;
        for class in 0..3 {
            let ours = f64::from(easyllp.values()[[row, class]]) - p[class];
            assert!((ours - kappa * off(bag, class)).abs() < 1e-4);
            let divided = |other: usize| (f64::from(theirs.values()[[row, other]]) - p[other]) / p[other];
            let back: f64 = (0..3).map(|other| covariance(class, other) * divided(other)).sum();
            assert!((back - off(bag, class)).abs() < 1e-5, "{bag} {class}: {back} {}", off(bag, class));
        }
    }
}
