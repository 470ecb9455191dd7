//! Assignments against a search through all of them, and what must not matter to them.

use super::*;
use ndarray::Zip;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Scores with many ties, or none.
fn some_scores(shape: (usize, usize), has_ties: bool, rng: &mut impl Rng) -> Array2<f32> {
    Array2::from_shape_simple_fn(shape, || {
        let score = rng.random_range(-3.0..3.0_f32);
        if has_ties { score.round() } else { score }
    })
}

/// The counts of random labels, some classes without any.
fn some_counts(n_rows: usize, n_classes: usize, rng: &mut impl Rng) -> Vec<usize> {
    let mut counts = vec![0; n_classes];
    let classes = rng.random_range(1..=n_classes);
    (0..n_rows).for_each(|_| counts[rng.random_range(0..classes)] += 1);
    counts
}

fn n_scores(n_classes: usize) -> usize {
    if n_classes == 2 { 1 } else { n_classes }
}

fn score(scores: &Array2<f32>, row: usize, class: usize) -> f64 {
    match scores.ncols() {
        1 => f64::from(class == 1) * f64::from(scores[[row, 0]]),
        _ => f64::from(scores[[row, class]]),
    }
}

/// How much of each row is of each class: of every class as much as its count.
fn plan(scores: &Array2<f32>, counts: &[usize]) -> Array2<f64> {
    let mut out = Array2::from_elem(scores.dim(), f32::NAN);
    best_labels(scores.view(), counts, out.view_mut());
    let plan = match scores.ncols() {
        1 => ndarray::concatenate![Axis(1), 1.0 - &out, out],
        _ => out,
    };
    let plan = plan.mapv(f64::from);
    assert!(plan.iter().all(|share| (0.0..=1.0).contains(share)), "{plan}");
    assert!(plan.sum_axis(Axis(1)).iter().all(|sum| (sum - 1.0).abs() < 1e-5), "{plan}");
    for (held, &count) in plan.sum_axis(Axis(0)).iter().zip(counts) {
        assert!((held - count as f64).abs() < 1e-3, "{plan} {counts:?}");
    }
    plan
}

/// The labels of rows of which no two are equal.
fn labels(scores: &Array2<f32>, counts: &[usize]) -> Vec<usize> {
    let plan = plan(scores, counts);
    assert!(plan.iter().all(|&share| share <= 0.0 || share >= 1.0), "{plan}");
    plan.rows().into_iter().map(|line| line.iter().position(|&share| share > 0.5).unwrap()).collect()
}

fn soft(scores: &Array2<f32>, counts: &[f64], epsilon: f64) -> Array2<f32> {
    let mut out = Array2::from_elem(scores.dim(), f32::NAN);
    soft_labels(scores.view(), counts, epsilon, out.view_mut());
    out
}

/// The highest sum of scores of rows from `row` on, with these counts left.
fn by_enumeration(scores: &Array2<f32>, row: usize, left: &mut [usize]) -> f64 {
    if row == scores.nrows() {
        return 0.0;
    }
    let mut best = f64::NEG_INFINITY;
    for class in 0..left.len() {
        if left[class] > 0 {
            left[class] -= 1;
            best = best.max(score(scores, row, class) + by_enumeration(scores, row + 1, left));
            left[class] += 1;
        }
    }
    best
}

#[test]
fn no_labels_are_better() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for case in 0..1500 {
        let (n_rows, n_classes) = (rng.random_range(0..=7), rng.random_range(2..=4));
        let scores = some_scores((n_rows, n_scores(n_classes)), case % 2 == 0, &mut rng);
        let mut counts = some_counts(n_rows, n_classes, &mut rng);
        let got = plan(&scores, &counts);
        let sum: f64 =
            got.indexed_iter().map(|((row, class), share)| share * score(&scores, row, class)).sum();
        let expected = by_enumeration(&scores, 0, &mut counts);
        assert!((sum - expected).abs() < 1e-5, "{scores} {counts:?} {got}: {sum} {expected}");
        for (one, other) in (0..n_rows).flat_map(|one| (0..one).map(move |other| (one, other))) {
            let is_equal = scores.row(one) == scores.row(other);
            assert!(!is_equal || got.row(one) == got.row(other), "{scores} {counts:?} {got}");
        }
    }
}

/// Labels are the best if no round of moves gains, each class giving a row to the next.
#[test]
fn no_round_of_moves_gains_in_large_bags() {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    for (n_rows, n_classes, has_ties) in
        [(300, 5, false), (1000, 10, false), (500, 10, true), (64, 80, false)]
    {
        let scores = some_scores((n_rows, n_classes), has_ties, &mut rng);
        let counts = some_counts(n_rows, n_classes, &mut rng);
        let got = plan(&scores, &counts);
        let mut least = Array2::from_elem((n_classes, n_classes), f64::INFINITY);
        for ((row, from), _) in got.indexed_iter().filter(|(_, share)| **share > 0.0) {
            for to in 0..n_classes {
                let loss = score(&scores, row, from) - score(&scores, row, to);
                least[[from, to]] = loss.min(least[[from, to]]);
            }
        }
        for over in 0..n_classes {
            for from in 0..n_classes {
                for to in 0..n_classes {
                    let way = least[[from, over]] + least[[over, to]];
                    least[[from, to]] = way.min(least[[from, to]]);
                }
            }
        }
        assert!(least.diag().iter().all(|&round| round > -1e-9), "{}", least.diag());
    }
}

#[test]
fn equal_rows_share_and_odd_scores_do_no_harm() {
    let is_near = |got: Array2<f64>, expected: Array2<f64>| {
        assert!((&got - &expected).iter().all(|gap| gap.abs() < 1e-6), "{got}");
    };
    let column = |scores: &[f32]| Array2::from_shape_vec((scores.len(), 1), scores.to_vec()).unwrap();
    is_near(
        plan(&column(&[0.0, -0.0, 0.0, 0.0, 0.0]), &[3, 2]),
        Array2::from_shape_fn((5, 2), |(_, class)| [0.6, 0.4][class]),
    );
    // One above the cut, two of the three on it, and one below.
    let got = plan(&column(&[1.0, 2.0, 1.0, 1.0, 0.0]), &[2, 3]);
    let expected = [2.0 / 3.0, 1.0, 2.0 / 3.0, 2.0 / 3.0, 0.0];
    assert!(got.column(1).iter().zip(expected).all(|(got, expected)| (got - expected).abs() < 1e-6), "{got}");
    // Two rows of three classes that are equal, and one that is not.
    let scores = ndarray::array![[0.0_f32, 1.0, 2.0], [5.0, 0.0, 0.0], [0.0, 1.0, 2.0]];
    is_near(plan(&scores, &[1, 1, 1]), ndarray::array![[0.0, 0.5, 0.5], [1.0, 0.0, 0.0], [0.0, 0.5, 0.5]]);
    let mut scores = Array2::from_elem((3, 3), f32::NEG_INFINITY);
    is_near(plan(&scores, &[1, 1, 1]), Array2::from_elem((3, 3), 1.0 / 3.0));
    scores.diag_mut().fill(f32::INFINITY);
    assert_eq!(labels(&scores, &[1, 1, 1]), [0, 1, 2]);
    scores.fill(f32::NAN);
    plan(&scores, &[0, 1, 2]);
    scores[[1, 1]] = f32::INFINITY;
    assert!(soft(&scores, &[1.0, 0.5, 1.5], 1.0).iter().all(|label| label.is_finite()));
    assert!(
        soft(&Array2::from_elem((2, 1), f32::INFINITY), &[1.0, 1.0], 1.0)
            .iter()
            .all(|label| label.is_finite())
    );
}

#[test]
fn whole_counts_are_near_to_those_reported() {
    let cases: [(&[f64], usize, &[usize]); 9] = [
        (&[3.0, 0.0, 7.0], 10, &[3, 0, 7]),
        (&[2.999_999_9, 7.000_000_1], 10, &[3, 7]),
        (&[-3.0, 13.0], 10, &[0, 10]),
        (&[2.4, 7.6], 10, &[2, 8]),
        (&[0.5, 0.5, 9.0], 10, &[1, 0, 9]),
        (&[-3.0, 5.0, 10.0], 12, &[0, 4, 8]),
        (&[1.0, 1.0], 4, &[2, 2]),
        (&[-1.0, 0.0, -2.0], 4, &[2, 1, 1]),
        (&[1.0, 2.0], 0, &[0, 0]),
    ];
    for (reported, n_rows, expected) in cases {
        assert_eq!(whole_counts(reported, n_rows), expected, "{reported:?}");
    }
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    for n_rows in 0..200 {
        let reported: Vec<f64> = (0..7).map(|_| rng.random_range(-1.0..5.0)).collect();
        assert_eq!(whole_counts(&reported, n_rows).iter().sum::<usize>(), n_rows);
    }
}

#[test]
fn soft_labels_sum_to_one_by_row_and_to_counts_by_class() {
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    for (n_rows, n_classes) in [(1, 3), (7, 2), (64, 2), (9, 3), (64, 10), (1000, 10)] {
        for epsilon in [0.01, 0.1, 1.0, 30.0] {
            let scores = some_scores((n_rows, n_scores(n_classes)), false, &mut rng);
            let mut counts: Vec<f64> = (0..n_classes).map(|_| rng.random_range(0.1..1.0)).collect();
            counts[0] = if n_rows == 9 { -1.0 } else { counts[0] };
            let counts = shares(&counts, n_rows);
            let got = soft(&scores, &counts, epsilon);
            for (column, &count) in got.columns().into_iter().rev().zip(counts.iter().rev()) {
                let sum: f64 = column.iter().map(|&value| f64::from(value)).sum();
                assert!((sum - count).abs() < 2e-6 * n_rows as f64, "{n_rows} {epsilon}: {sum} {count}");
            }
            if n_classes > 2 {
                assert!(got.sum_axis(Axis(1)).iter().all(|sum| (sum - 1.0).abs() < 1e-6));
            }
        }
    }
    assert!(soft(&Array2::zeros((3, 1)), &[3.0, 0.0], 1.0).iter().all(|&label| label <= 0.0));
    assert!(soft(&Array2::zeros((3, 1)), &[-1.0, 4.0], 1.0).iter().all(|&label| label >= 1.0));
}

/// log P − s/ε is the same for all rows up to a constant per row: each pair of rows and of classes has odds that
/// are those of its scores.
#[test]
fn soft_labels_have_the_odds_of_scores() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let scores = some_scores((12, 3), false, &mut rng);
    let got = soft(&scores, &[2.0, 3.5, 6.5], 0.7).mapv(f64::from);
    let kept = Zip::from(&got).and(&scores).map_collect(|p, &score| p.ln() - f64::from(score) / 0.7);
    for class in [1, 2] {
        let odds = &kept.column(class) - &kept.column(0);
        assert!(odds.iter().all(|value| (value - odds[0]).abs() < 1e-4), "{odds}");
    }
    let scores = some_scores((12, 1), false, &mut rng);
    let got = soft(&scores, &[7.5, 4.5], 1.0).mapv(f64::from);
    let tilts = Zip::from(&got).and(&scores).map_collect(|p, &score| (p / (1.0 - p)).ln() - f64::from(score));
    assert!(tilts.iter().all(|tilt| (tilt - tilts[[0, 0]]).abs() < 1e-4), "{tilts}");
}

#[test]
fn soft_labels_become_the_best_labels_as_epsilon_goes() {
    let mut rng = ChaCha8Rng::seed_from_u64(6);
    for (n_rows, n_classes) in [(6, 2), (40, 2), (6, 3), (40, 5), (64, 10)] {
        let scores = some_scores((n_rows, n_scores(n_classes)), false, &mut rng);
        let counts = some_counts(n_rows, n_classes, &mut rng);
        let as_reported: Vec<f64> = counts.iter().map(|&count| count as f64).collect();
        let got = soft(&scores, &as_reported, 1e-4);
        let mut expected = Array2::zeros(scores.dim());
        best_labels(scores.view(), &counts, expected.view_mut());
        let far = Zip::from(&got).and(&expected).fold(0.0_f32, |far, a, b| far.max((a - b).abs()));
        assert!(far < 0.01, "{n_rows} {n_classes}: {far}");
    }
}

#[test]
fn the_order_of_rows_is_irrelevant() {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let order = [3, 0, 5, 1, 4, 2, 6];
    for (n_classes, counts) in [(2, [3.0, 4.0, 0.0]), (3, [2.5, 1.5, 3.0])] {
        let scores = some_scores((7, n_scores(n_classes)), false, &mut rng);
        let (counts, turned) = (&counts[..n_classes], scores.select(Axis(0), &order));
        let expected = soft(&scores, counts, 0.5).select(Axis(0), &order);
        let got = soft(&turned, counts, 0.5);
        assert!((&got - &expected).iter().all(|gap| gap.abs() < 1e-5), "{got} {expected}");
        let counts = whole_counts(counts, 7);
        let expected: Vec<usize> = order.iter().map(|&row| labels(&scores, &counts)[row]).collect();
        assert_eq!(labels(&turned, &counts), expected);
    }
}
