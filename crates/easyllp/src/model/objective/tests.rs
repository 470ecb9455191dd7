use super::*;
use crate::loss::LossName;
use crate::model::{LinearModel, Model, linear};
use ndarray::array;

/// Rows, targets of all of them for so many scores, and the members: every row but some, the last first.
fn example(n_rows: usize, n_scores: usize, cardinalities: &[u32]) -> (Rows<'static>, Array2<f32>, Vec<u32>) {
    let dense = Array2::from_shape_fn((n_rows, 37), |(row, column)| ((row * 37 + column) as f32 * 0.3).sin());
    let ids = Array2::from_shape_fn((n_rows, cardinalities.len()), |(row, field)| {
        let id = u32::try_from(row * row + 3 * field).unwrap() % cardinalities[field];
        // Some categories never occur, among them the first and the last.
        if id.is_multiple_of(3) || id + 1 == cardinalities[field] { 1 } else { id }
    });
    let rows = Rows::new(dense, ids, cardinalities.to_vec()).unwrap();
    let targets =
        Array2::from_shape_fn((n_rows, n_scores), |(row, score)| ((row + 5 * score) as f32).cos() * 3.0);
    let members = (0..u32::try_from(n_rows).unwrap()).rev().filter(|row| row % 7 != 0).collect();
    (rows, targets, members)
}

/// The objective of one part, and the problem that is made of it.
struct Whole<'o> {
    objective: Objective<'o>,
    problem: LinearProblem<'o>,
}

impl<'o> Whole<'o> {
    fn new(
        rows: &'o Rows,
        members: Vec<u32>,
        targets: ArrayView2<f32>,
        loss: &'o dyn TrainingLoss,
        l2: f64,
    ) -> Self {
        let objective = Objective::new(rows, members, targets, loss);
        let problem = LinearProblem::new(objective.features().clone(), loss, l2);
        Self { objective, problem }
    }

    fn value(&mut self, point: &[f64], gradient: &mut [f64]) -> f64 {
        let loss = self.objective.sums(point, gradient);
        self.problem.value(loss, point, gradient)
    }
}

/// The model's own scores and gradient, row by row, are the oracle: of one score and of several, of few rows and of many parts, with
/// many fields and with one whose rows are shared out.
#[test]
fn equals_a_plain_sum_over_rows() {
    for (n_rows, n_classes, cardinalities) in [
        (100, 2, &[4, 9][..]),
        (100, 3, &[4, 9]),
        (9000, 2, &[6]),
        (20_000, 4, &[5]),
        (700, 2, &[]),
        (3000, 2, &[70_000, 3]),
    ] {
        let mut model = LinearModel::new(37, cardinalities, n_classes).unwrap();
        let n_scores = model.n_scores();
        let (rows, targets, members) = example(n_rows, n_scores, cardinalities);
        let mut next = 0.0_f32;
        for block in &mut model.parameters_mut().0 {
            block.values.mapv_inplace(|_| {
                next += 0.7;
                next.sin()
            });
        }
        let loss = LossName::cross_entropy(n_classes).training().unwrap();
        let mut objective = Whole::new(&rows, members.clone(), targets.view(), loss, 0.3);
        // Without a penalty on what does not occur.
        objective.problem.write_to(&objective.problem.start(&model), &mut model);
        let point = objective.problem.start(&model);
        let mut gradient = vec![f64::NAN; point.len()];
        let value = objective.value(&point, &mut gradient);

        let parameters = model.as_vector();
        let (weights, intercept, table) = cut(&parameters, 37, n_scores);
        let mut expected = vec![0.0; parameters.len()];
        let (mut sum, mut size) = (0.0, 0.0);
        let all = rows.as_dense().unwrap().batch(0..n_rows);
        for &row in &members {
            let lines: Vec<usize> =
                model.lines(all.categories.row(row as usize)).map(|line| line as usize).collect();
            let dense: Vec<f64> = all.dense.row(row as usize).iter().copied().map(f64::from).collect();
            let scores: Vec<f64> = (0..n_scores)
                .map(|score| {
                    let of_dense: f64 =
                        dense.iter().enumerate().map(|(i, x)| x * weights[i * n_scores + score]).sum();
                    of_dense
                        + intercept[score]
                        + lines.iter().map(|line| table[line * n_scores + score]).sum::<f64>()
                })
                .collect();
            let wanted: Vec<f64> = targets.row(row as usize).iter().copied().map(f64::from).collect();
            let mut slopes = vec![0.0; n_scores];
            let of_row = loss.corrected(&scores, &wanted, &mut slopes);
            (sum, size) = (sum + of_row, size + of_row.abs());
            for (score, slope) in slopes.iter().enumerate() {
                dense.iter().enumerate().for_each(|(i, x)| expected[i * n_scores + score] += x * slope);
                expected[37 * n_scores + score] += slope;
                for line in &lines {
                    expected[(38 + line) * n_scores + score] += slope;
                }
            }
        }
        let n = members.len() as f64;
        let mut penalty = 0.0;
        for (place, (slope, weight)) in expected.iter_mut().zip(&parameters).enumerate() {
            let l2 = if (37 * n_scores..38 * n_scores).contains(&place) { 0.0 } else { 0.3 };
            *slope = *slope / n + l2 * weight;
            penalty += 0.5 * l2 * weight * weight;
        }
        assert!((value - sum / n - penalty).abs() < 1e-12 * (size / n + penalty), "{value}");
        // The categories that occur, in the order of lines; the others have no gradient.
        let lines: Vec<usize> =
            objective.problem.features.places.iter().map(|place| place.line as usize).collect();
        assert!(lines.len() < table.len() / n_scores || cardinalities.is_empty());
        let places = (0..38).chain(lines.iter().map(|line| 38 + line));
        for (place, got) in places.zip(gradient.chunks_exact(n_scores)) {
            for (score, got) in got.iter().enumerate() {
                let expected = std::mem::take(&mut expected[place * n_scores + score]);
                assert!((got - expected).abs() < 1e-11, "{n_rows} {n_classes} {place}: {got} {expected}");
            }
        }
        assert!(expected.iter().all(|slope| *slope == 0.0));
    }
}

/// Whatever the number of threads, and whatever the evaluation before.
#[test]
fn threads_and_earlier_evaluations_change_no_byte() {
    for (n_classes, cardinalities) in [(2, &[6, 400, 70_000][..]), (3, &[6, 400]), (2, &[5])] {
        let model = LinearModel::new(37, cardinalities, n_classes).unwrap();
        let (rows, targets, members) = example(20_000, model.n_scores(), cardinalities);
        let loss = LossName::cross_entropy(n_classes).training().unwrap();
        let run = |n_threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
            pool.install(|| {
                let mut objective = Whole::new(&rows, members.clone(), targets.view(), loss, 0.3);
                let point: Vec<f64> =
                    (0..objective.problem.start(&model).len()).map(|i| (0.7 * i as f64).sin()).collect();
                let mut gradient = vec![f64::NAN; point.len()];
                for n_before in 0..n_threads {
                    objective.value(&vec![n_before as f64; point.len()], &mut gradient);
                }
                (objective.value(&point, &mut gradient).to_bits(), gradient)
            })
        };
        assert_eq!(run(1), run(3));
    }
}

#[test]
fn the_gradient_equals_finite_differences() {
    let rows = Rows::new(array![[0.5_f32, -1.0], [2.0, 0.25], [-0.75, 1.5]], array![[0], [1], [1]], vec![2])
        .unwrap();
    let targets = array![[0.2_f32, 0.5, 0.3], [2.0, -1.5, 0.5], [1.0, 0.0, 0.0]];
    let model = LinearModel::for_rows(&rows, 3).unwrap();
    let point: Vec<f64> = (0..model.parameters().len()).map(|i| (0.7 * i as f64).sin()).collect();
    for name in [LossName::Softmax, LossName::Squared] {
        let loss = name.training().unwrap();
        let mut objective = Whole::new(&rows, vec![0, 2, 1], targets.view(), loss, 0.3);
        let mut gradient = vec![0.0; point.len()];
        objective.value(&point, &mut gradient);
        for place in 0..point.len() {
            let mut shifted = |step: f64| {
                let mut point = point.clone();
                point[place] += step;
                objective.value(&point, &mut vec![0.0; point.len()])
            };
            let difference = (shifted(1e-5) - shifted(-1e-5)) / 2e-5;
            assert!((difference - gradient[place]).abs() < 1e-8, "{name:?} at {place}");
        }
    }
}

/// A model of zeros starts with the intercepts that are best alone: there they have no gradient.
#[test]
fn starts_with_the_best_intercepts() {
    let (rows, _, members) = example(200, 1, &[4]);
    for (n_classes, name) in [(2, LossName::Logistic), (3, LossName::Softmax), (2, LossName::Squared)] {
        let model = LinearModel::for_rows(&rows, n_classes).unwrap();
        let n_scores = model.n_scores();
        let targets = Array2::from_shape_fn((200, n_scores), |(row, score)| {
            if n_scores == 1 {
                ((row % 5) as f32) / 4.0 - 0.2
            } else {
                [0.5, 0.2, 0.3][(score + row / 190) % 3]
            }
        });
        let loss = name.training().unwrap();
        let mut objective = Whole::new(&rows, members.clone(), targets.view(), loss, 0.3);
        let start = objective.problem.start(&model);
        let mut gradient = vec![0.0; start.len()];
        objective.value(&start, &mut gradient);
        let of_intercepts = &gradient[37 * n_scores..38 * n_scores];
        assert!(of_intercepts.iter().all(|slope| slope.abs() < 1e-9), "{name:?}: {of_intercepts:?}");
    }
}

/// With a penalty their best weight is 0, without one nothing is known of them.
#[test]
fn categories_that_do_not_occur_go_to_zero_or_stay() {
    let rows = Rows::new(Array2::zeros((2, 0)), array![[1], [3]], vec![5]).unwrap();
    let targets = array![[0.0_f32], [1.0]];
    let loss = LossName::Logistic.training().unwrap();
    for (l2, of_others) in [(0.1, 0.0), (0.0, 7.0)] {
        let mut model = LinearModel::for_rows(&rows, 2).unwrap();
        model.parameters_mut().0[linear::CATEGORIES].values.fill(7.0);
        let objective = Whole::new(&rows, vec![0, 1], targets.view(), loss, l2);
        assert_eq!(objective.problem.start(&model), [0.0, 7.0, 7.0]);
        objective.problem.write_to(&[1.0, 2.0, 3.0], &mut model);
        assert_eq!(model.intercept(), array![[1.0]]);
        let expected = array![[of_others], [2.0], [of_others], [3.0], [of_others]];
        assert_eq!(model.categories(0), expected);
    }
}
