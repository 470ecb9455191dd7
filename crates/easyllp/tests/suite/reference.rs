//! Golden numbers; `reference.py` beside this file made them.

use easyllp::estimate::Form;
use easyllp::method::Supervised;
use easyllp::train::Aim;
use easyllp::{
    Bags, Estimator, Partition, Predictions, Rows,
    loss::{Link, LossName},
    method::{EasyLlp, TargetRule},
    model::LinearModel,
    optim::Lbfgs,
    train::{Optimizer, Trainer},
};
use ndarray::Array2;

#[expect(clippy::cast_possible_truncation, reason = "features are f32")]
fn data() -> (Array2<f32>, Vec<u32>, Bags) {
    let x = Array2::from_shape_fn((24, 2), |(row, column)| {
        let i = row as f64;
        (if column == 0 { (1.3 * i).sin() } else { (0.7 * i * i).cos() }) as f32
    });
    let labels: Vec<u32> =
        (0..24).map(|row| u32::from((2.1 * row as f64).sin() + f64::from(x[[row, 0]]) > 0.0)).collect();
    let mut next = 0;
    let bags = [3, 5, 4, 4, 3, 5].map(|size| {
        let bag: Vec<u32> = (next..next + size).collect();
        next += size;
        bag
    });
    let bags = Bags::from_labels(Partition::new(24, bags).unwrap(), &labels, 2).unwrap();
    (x, labels, bags)
}

#[test]
fn training_agrees_with_scikit_learn_and_scipy() {
    let (x, labels, bags) = data();
    let rows = Rows::dense(x).unwrap();
    let fit = |rule: &mut dyn TargetRule| {
        let mut model = LinearModel::for_rows(&rows, 2).unwrap();
        let optimizer = Optimizer::Lbfgs(Lbfgs { l2: 0.05, tolerance: 1e-10, ..Lbfgs::default() });
        let trainer = Trainer { optimizer, seed: 0 };
        trainer.fit(&mut model, &rows, Aim::Targets(rule, LossName::Logistic.training().unwrap())).unwrap();
        [model.weights()[[0, 0]], model.weights()[[1, 0]], model.intercept()[[0, 0]]]
    };
    let cases = [
        (fit(&mut Supervised::new(&labels, 2).unwrap()), [1.465_873_7, 0.250_665_9, -0.298_918_2]),
        (fit(&mut EasyLlp::new(&bags)), [-0.194_287_1, 0.175_864_2, -0.229_913_8]),
    ];
    for (got, expected) in cases {
        assert!(
            got.iter().zip(expected).all(|(got, expected): (&f32, f32)| (got - expected).abs() < 2e-6),
            "{got:?}"
        );
    }
}

#[test]
fn estimates_agree_with_numpy() {
    let (x, _, bags) = data();
    let scores = Array2::from_shape_fn((24, 1), |(row, _)| x[[row, 0]] - 0.5 * x[[row, 1]]);
    let predictions = Predictions::new(scores.view(), Link::Logit).unwrap();
    let estimator = Estimator::new(&bags).unwrap();
    let log_loss = estimator.log_loss(&predictions).unwrap();
    let got = [log_loss.value, log_loss.standard_error, log_loss.low, log_loss.high];
    let expected = [0.729_603_738, 0.077_995_111, 0.529_110_922, 0.930_096_555];
    assert!(got.iter().zip(expected).all(|(got, expected)| (got - expected).abs() < 1e-6), "{got:?}");
    let brier = estimator.brier(&predictions).unwrap();
    assert!((brier.value - 0.087_551_529).abs() < 1e-6, "{brier:?}");
    assert_eq!(brier.form, Form::Squares);
    let scores = scores / 10.0;
    let brier = estimator.brier(&Predictions::new(scores.view(), Link::Logit).unwrap()).unwrap();
    assert!((brier.value - 0.252_672_802).abs() < 1e-6, "{brier:?}");
    assert_eq!(brier.form, Form::Mean);
}
