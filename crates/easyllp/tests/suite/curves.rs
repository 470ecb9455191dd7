//! Ranks, rates, curves, calibration and differences from bags: exact over every way to deal rows, and intervals that
//! cover.

#![expect(clippy::cast_possible_truncation, reason = "scores are f32")]

use crate::estimates::{SIZES, assert_close, over_dealings};
use crate::simulation::{Population, Sample, draws, is_95_percent, normal, seed, sigmoid};
use easyllp::bagging::Sizes;
use easyllp::estimate::{Form, Metric};
use easyllp::{
    Bags, Estimate, Estimator, Noise, Partition, Predictions, estimate::Scope, loss::Link, metrics,
};
use ndarray::{Array2, array};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// Pairs won by the row of class 1, one by one.
fn auc_by_pairs(scores: &[f32], labels: &[u32]) -> f64 {
    let (mut won, mut pairs) = (0.0, 0.0);
    for (one, _) in scores.iter().zip(labels).filter(|(_, label)| **label == 1) {
        for (zero, _) in scores.iter().zip(labels).filter(|(_, label)| **label == 0) {
            won += if one > zero {
                1.0
            } else if one < zero {
                0.0
            } else {
                0.5
            };
            pairs += 1.0;
        }
    }
    won / pairs
}

#[test]
fn ranks_are_exact_over_all_dealings() {
    for (scores, labels) in [
        ([0.4_f32, 1.3, -0.6, -2.0, 0.9, 0.1], [0, 1, 1, 0, 0, 1]),
        ([0.5, 0.5, -0.5, 0.5, 2.0, -0.5], [1, 0, 0, 1, 1, 1]), // with ties
    ] {
        let column = Array2::from_shape_vec((6, 1), scores.to_vec()).unwrap();
        let truth = auc_by_pairs(&scores, &labels);
        for link in [Link::Logit, Link::Margin] {
            let predictions = Predictions::new(column.view(), link).unwrap();
            assert_close(metrics::auc(&predictions, &labels).unwrap().unwrap(), truth, "true AUC");
            for sizes in SIZES {
                let got = over_dealings(&labels, 2, sizes, |e| e.auc(&predictions).unwrap());
                assert_close(got, truth, "AUC");
            }
        }
    }
}

#[test]
fn rates_are_exact_over_all_dealings() {
    let labels = [0, 1, 1, 0, 0, 1];
    let scores = array![[0.4_f32], [1.3], [-0.6], [-2.0], [0.9], [0.1]];
    let predictions = Predictions::new(scores.view(), Link::Logit).unwrap();
    for sizes in SIZES {
        let mean = |of: &dyn Fn(&Estimator) -> Estimate| over_dealings(&labels, 2, sizes, of);
        // Rows 0, 1, 4 and 5 are selected, and two of them are of class 1, of three in all.
        let at = |e: &Estimator| e.at_threshold(&predictions, 0.1_f32.into()).unwrap();
        assert_close(mean(&|e| at(e).recall), 2.0 / 3.0, "recall");
        assert_close(mean(&|e| at(e).fall_out), 2.0 / 3.0, "fall-out");
        assert_close(mean(&|e| at(e).precision.unwrap()), 0.5, "precision");
        assert_close(mean(&|e| at(e).f1), 4.0 / 7.0, "F1");
        assert_close(mean(&|e| at(e).balanced_accuracy), 0.5, "balanced accuracy");
        // The same as a point of the curve.
        let point = |e: &Estimator| e.curve(&predictions, 3).unwrap()[1];
        assert_close(mean(&|e| point(e).recall), 2.0 / 3.0, "recall on the curve");
        assert_close(mean(&|e| e.curve(&predictions, 3).unwrap()[2].fall_out), 1.0, "the curve's end");
        // Thirds from the top: (1, 4), (0, 5), (2, 3).
        let group = |e: &Estimator, place: usize| e.calibration(&predictions, 3).unwrap().groups[place];
        assert_close(mean(&|e| group(e, 0).observed), 0.5, "the lowest group");
        let lift = |e: &Estimator| e.lift(&predictions, 3).unwrap();
        assert_close(mean(&|e| lift(e)[0].captured), 1.0 / 3.0, "captured");
        assert_close(mean(&|e| lift(e)[1].lift), 1.0, "lift");
    }
    let bags = Bags::from_labels(Partition::new(6, [[0, 1], [2, 3], [4, 5]]).unwrap(), &labels, 2).unwrap();
    let group = Estimator::new(&bags).unwrap().calibration(&predictions, 3).unwrap().groups[2];
    let expected = 0.5 * (sigmoid(f64::from(1.3_f32)) + sigmoid(f64::from(0.9_f32)));
    assert_close(group.predicted, expected, "the mean probability of the highest group");
}

#[test]
fn confusion_is_exact_over_all_dealings() {
    let labels = [0, 2, 1, 1, 0, 2];
    let scores = Array2::from_shape_fn((6, 3), |(row, class)| (1.7 * row as f32 + 2.9 * class as f32).sin());
    let decided: Vec<usize> = scores
        .rows()
        .into_iter()
        .map(|row| (0..3).max_by(|&a, &b| row[a].total_cmp(&row[b])).unwrap())
        .collect();
    let predictions = Predictions::new(scores.view(), Link::Logit).unwrap();
    let share = |class: u32, decision: usize| {
        labels.iter().zip(&decided).filter(|&(l, d)| *l == class && *d == decision).count() as f64 / 6.0
    };
    for sizes in SIZES {
        let mean = |of: &dyn Fn(&Estimator) -> Estimate| over_dealings(&labels, 3, sizes, of);
        for class in 0..3 {
            for decision in 0..3 {
                let got = mean(&|e| e.confusion(&predictions).unwrap().shares[class as usize][decision]);
                assert_close(got, share(class, decision), "a share of the confusion matrix");
            }
        }
        let recalls = (0..3).map(|class| share(class, class as usize) * 3.0).sum::<f64>() / 3.0;
        assert_close(mean(&|e| e.confusion(&predictions).unwrap().balanced_accuracy), recalls, "balanced");
    }
}

#[test]
fn a_score_turned_round_has_the_other_ranks() {
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let sample = Sample::draw(&Sizes::Range(3..=9), 60, None, &mut rng);
    let scores =
        |sign: f64| Array2::from_shape_fn((sample.x.len(), 1), |(row, _)| (sign * sample.x[row]) as f32);
    let (up, down) = (scores(1.0), scores(-1.0));
    let estimator = Estimator::new(&sample.bags).unwrap();
    let of = |scores: &Array2<f32>| {
        estimator.auc(&Predictions::new(scores.view(), Link::Margin).unwrap()).unwrap()
    };
    let (up, down) = (of(&up), of(&down));
    assert!(up.value > 0.7 && down.value < 0.3, "{up:?} {down:?}");
}

/// The weak model with rare positives uses the mean, the strong one the squares.
#[test]
fn the_form_with_the_smaller_error_is_given() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let form = |share: f64, slope: f64, rng: &mut ChaCha8Rng| {
        let logit = |x: f64| slope * x + (share / (1.0 - share)).ln();
        let x: Vec<f64> = (0..20_000).map(|_| normal(rng)).collect();
        let labels: Vec<u32> =
            x.iter().map(|&x| u32::from(sigmoid(logit(x)) > sigmoid(normal(rng) * 1.7))).collect();
        let scores = Array2::from_shape_fn((x.len(), 1), |(row, _)| logit(x[row]) as f32);
        let partition = easyllp::bagging::random(x.len(), &Sizes::Fixed(100), 1).unwrap();
        let bags = Bags::from_labels(partition, &labels, 2).unwrap();
        let predictions = Predictions::new(scores.view(), Link::Logit).unwrap();
        Estimator::new(&bags).unwrap().brier(&predictions).unwrap().form
    };
    assert_eq!(form(0.5, 6.0, &mut rng), Form::Squares);
    assert_eq!(form(0.02, 0.3, &mut rng), Form::Mean);
}

/// What a population's rates are, by integration.
fn truths() -> [f64; 6] {
    let step = 1e-3;
    let (mut positives, mut selected, mut hits, mut below, mut pairs) = (0.0, 0.0, 0.0, 0.0, 0.0);
    let (mut brier, mut brier_of_zero) = (0.0, 0.0);
    for place in -9000..=9000 {
        let x = f64::from(place) * step;
        let weight = step * (-0.5 * x * x).exp() / std::f64::consts::TAU.sqrt();
        let (p, score) = (Population::truth(x), f64::from(Population::score(x)));
        pairs += weight * p * (below + 0.5 * weight * (1.0 - p));
        below += weight * (1.0 - p);
        positives += weight * p;
        if score >= 0.5 {
            selected += weight;
            hits += weight * p;
        }
        let q = sigmoid(score);
        brier += weight * (p * (1.0 - q).powi(2) + (1.0 - p) * q * q);
        let q = sigmoid(0.5 * score);
        brier_of_zero += weight * (p * (1.0 - q).powi(2) + (1.0 - p) * q * q);
    }
    [
        pairs / (positives * (1.0 - positives)),
        hits / positives,
        hits / selected,
        2.0 * hits / (positives + selected),
        0.5 * (hits / positives + 1.0 - (selected - hits) / (1.0 - positives)),
        brier - brier_of_zero,
    ]
}

/// As the test of the same name in `estimates`: 400 sets of bags a case, and 1,000 by `make test-long`, with shares within three standard
/// errors, 0.011 and 0.007. Passes on 20 of the seeds 0 to 19, by `make test-long` on 19, with 18 such shares each.
#[test]
fn intervals_of_rates_and_ranks_cover() {
    let n_sets = draws(400, 1000);
    let truths = truths();
    let cases = [
        ("500 bags of 8", Sizes::Fixed(8), None),
        ("500 bags of 4 to 60", Sizes::Range(4..=60), None),
        ("500 bags of 8, Laplace noise", Sizes::Fixed(8), Some(1.0)),
    ];
    for (name, sizes, laplace) in cases {
        let mut rng = ChaCha8Rng::seed_from_u64(seed());
        let mut covered = [0_u32; 6];
        for _ in 0..n_sets {
            let sample = Sample::draw(&sizes, 500, laplace, &mut rng);
            let scores = |scale: f32| {
                Array2::from_shape_fn((sample.x.len(), 1), |(row, _)| {
                    scale * Population::score(sample.x[row])
                })
            };
            let (scores, flat) = (scores(1.0), scores(0.5));
            let predictions = Predictions::new(scores.view(), Link::Logit).unwrap();
            let flat = Predictions::new(flat.view(), Link::Logit).unwrap();
            let estimator = Estimator::new(&sample.bags).unwrap();
            let at = estimator.at_threshold(&predictions, 0.5).unwrap();
            let estimates = [
                estimator.auc(&predictions).unwrap(),
                at.recall,
                at.precision.unwrap(),
                at.f1,
                at.balanced_accuracy,
                estimator.difference(Metric::Brier, &predictions, &flat).unwrap(),
            ];
            for ((covered, estimate), truth) in covered.iter_mut().zip(estimates).zip(truths) {
                *covered += u32::from(estimate.covers(truth));
            }
        }
        let metrics = ["AUC", "recall", "precision", "F1", "balanced accuracy", "difference of Brier scores"];
        for (metric, covered) in metrics.iter().zip(covered) {
            let share = f64::from(covered) / f64::from(n_sets);
            assert!(is_95_percent(share, n_sets, 3.0), "{name}, {metric}: {share} of the intervals cover");
        }
    }
}

/// Intervals for these rows cover their AUC: 1,000 sets as above. Passes on 20 of the seeds 0 to 19.
#[test]
fn ranks_of_the_rows_at_hand_are_covered() {
    let mut rng = ChaCha8Rng::seed_from_u64(seed());
    let mut covered = 0_u32;
    for _ in 0..1000 {
        let sample = Sample::draw(&Sizes::Fixed(32), 200, None, &mut rng);
        let scores = Array2::from_shape_fn((sample.x.len(), 1), |(row, _)| Population::score(sample.x[row]));
        let predictions = Predictions::new(scores.view(), Link::Logit).unwrap();
        let estimator = Estimator::new(&sample.bags).unwrap().scope(Scope::TheseRows);
        let (scores, labels): (Vec<f32>, Vec<u32>) = sample
            .bags
            .rows()
            .into_iter()
            .map(|row| (scores[[row as usize, 0]], sample.labels[row as usize]))
            .unzip();
        let column = Array2::from_shape_vec((scores.len(), 1), scores).unwrap();
        let truth = metrics::auc(&Predictions::new(column.view(), Link::Logit).unwrap(), &labels);
        covered += u32::from(estimator.auc(&predictions).unwrap().covers(truth.unwrap().unwrap()));
    }
    let share = f64::from(covered) / 1000.0;
    assert!((0.93..=0.97).contains(&share), "{share} of the intervals cover");
}

/// For a model whose probabilities hold, the squared calibration error is 0 on average, and its standard error is what
/// it varies by: the mean over 400 sets within 4 of its standard errors, the ratio of spreads within 4/√(2·400) = 0.14.
/// Passes on 20 of the seeds 0 to 19.
#[test]
fn calibration_of_a_true_model_has_no_error() {
    const SETS: usize = 400;
    for (sizes, laplace) in [(Sizes::Range(4..=60), None), (Sizes::Fixed(16), Some(1.0))] {
        let mut rng = ChaCha8Rng::seed_from_u64(seed());
        let (mut values, mut predicted) = (Vec::new(), 0.0);
        for _ in 0..SETS {
            let sample = Sample::draw(&sizes, 300, laplace, &mut rng);
            let scores =
                Array2::from_shape_fn((sample.x.len(), 1), |(row, _)| (2.0 * sample.x[row] - 0.5) as f32);
            let predictions = Predictions::new(scores.view(), Link::Logit).unwrap();
            let error = Estimator::new(&sample.bags).unwrap().calibration(&predictions, 10).unwrap();
            values.push(error.squared_error.value);
            predicted += error.squared_error.standard_error / SETS as f64;
        }
        let mean = values.iter().sum::<f64>() / SETS as f64;
        let spread =
            (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (SETS - 1) as f64).sqrt();
        assert!(mean.abs() < 4.0 * spread / (SETS as f64).sqrt(), "{mean} ± {spread}");
        assert!((spread / predicted - 1.0).abs() < 0.3, "it varies by {spread}, but says {predicted}");
    }
}

#[test]
fn refuses_what_has_no_answer() {
    let partition = || Partition::new(4, [[0, 1], [2, 3]]).unwrap();
    let scores = array![[0.5_f32], [-1.0], [0.25], [2.0]];
    let predictions = Predictions::new(scores.view(), Link::Logit).unwrap();
    let all_negative = Bags::binary(partition(), &[0.0, 0.0], Noise::None).unwrap();
    let estimator = Estimator::new(&all_negative).unwrap();
    for message in [
        estimator.auc(&predictions).unwrap_err().to_string(),
        estimator.curve(&predictions, 5).unwrap_err().to_string(),
        estimator.lift(&predictions, 5).unwrap_err().to_string(),
    ] {
        assert!(message.ends_with("needs rows of both classes, but by their counts the bags hold one only"));
    }
    let bags = Bags::binary(partition(), &[1.0, 0.0], Noise::None).unwrap();
    let estimator = Estimator::new(&bags).unwrap();
    assert_eq!(estimator.at_threshold(&predictions, 9.0).unwrap().precision, None);
    let margins = Predictions::new(scores.view(), Link::Margin).unwrap();
    assert!(estimator.calibration(&margins, 2).is_err());
    let three = Bags::from_labels(partition(), &[0, 1, 2, 0], 3).unwrap();
    let scores = Array2::zeros((4, 3));
    let predictions = Predictions::new(scores.view(), Link::Logit).unwrap();
    let message = Estimator::new(&three).unwrap().auc(&predictions).unwrap_err().to_string();
    assert_eq!(message, "requires two classes, found 3");
}
