//! The whole flow on real data: what EasyLLP reaches, and where the naive baseline fails.

use easyllp::method::{Naive, Supervised};
use easyllp::table::{Encoder, EncoderOptions};
use easyllp::train::Aim;
use easyllp::{
    Bags, Predictions, Rows, bagging, datasets,
    loss::LossName,
    method::{EasyLlp, TargetRule},
    metrics,
    model::{LinearModel, Scorer},
    optim::Lbfgs,
    train::{Optimizer, Trainer},
};

/// Log loss, accuracy and recall of class 1 on the test rows.
#[derive(Debug, Clone, Copy)]
struct Figures {
    log_loss: f64,
    accuracy: f64,
    recall: f64,
}

fn evaluate(
    rule: &mut dyn TargetRule,
    n_labels: usize,
    train: &Rows,
    test: &Rows,
    labels: &[u32],
) -> Figures {
    let loss = LossName::Logistic.training().unwrap();
    let mut model = LinearModel::for_rows(train, 2).unwrap();
    let optimizer = Optimizer::Lbfgs(Lbfgs { l2: 40.0 / n_labels as f64, ..Lbfgs::default() });
    Trainer { optimizer, seed: 0 }.fit(&mut model, train, Aim::Targets(rule, loss)).unwrap();
    let scores = model.scores(test).unwrap();
    let predictions = Predictions::new(scores.view(), loss.link()).unwrap();
    Figures {
        log_loss: metrics::log_loss(&predictions, labels).unwrap(),
        accuracy: metrics::accuracy(&predictions, labels).unwrap(),
        recall: metrics::recall(&predictions, labels, 1).unwrap().unwrap(),
    }
}

/// Means over five baggings of 16 rows per bag: row labels, the naive baseline, EasyLLP.
fn five_seeds(is_positive: fn(u32) -> bool) -> [Figures; 3] {
    let digits = datasets::optdigits().unwrap();
    let encoder = Encoder::fit(&digits.train.table, EncoderOptions::default()).unwrap();
    let (train, test) =
        (encoder.encode(&digits.train.table).unwrap(), encoder.encode(&digits.test.table).unwrap());
    let label = |&digit: &u32| u32::from(is_positive(digit));
    let train_labels: Vec<u32> = digits.train.labels.iter().map(label).collect();
    let test_labels: Vec<u32> = digits.test.labels.iter().map(label).collect();
    let runs: Vec<[Figures; 3]> = (1..=5)
        .map(|seed| {
            let partition = bagging::random(train.n_rows(), &bagging::Sizes::Fixed(16), seed).unwrap();
            let bags = Bags::from_labels(partition, &train_labels, 2).unwrap();
            let evaluate =
                |rule: &mut dyn TargetRule, n_labels| evaluate(rule, n_labels, &train, &test, &test_labels);
            [
                evaluate(&mut Supervised::new(&train_labels, 2).unwrap(), train.n_rows()),
                evaluate(&mut Naive::new(&bags), bags.n_bags()),
                evaluate(&mut EasyLlp::new(&bags), bags.n_bags()),
            ]
        })
        .collect();
    [0, 1, 2].map(|way| {
        let mean = |of: fn(&Figures) -> f64| runs.iter().map(|run| of(&run[way])).sum::<f64>() / 5.0;
        Figures { log_loss: mean(|f| f.log_loss), accuracy: mean(|f| f.accuracy), recall: mean(|f| f.recall) }
    })
}

#[test]
fn even_against_odd_comes_close_to_row_labels() {
    let [labels, naive, easyllp] = five_seeds(|digit| digit % 2 == 0);
    assert!(labels.accuracy > 0.9, "{labels:?}");
    assert!(easyllp.accuracy > labels.accuracy - 0.05, "{easyllp:?} against {labels:?}");
    assert!(easyllp.log_loss < 0.6 * naive.log_loss, "{easyllp:?} against {naive:?}");
    // On a balanced task the naive baseline decides about as well: it is the probabilities that it gets wrong.
    assert!((naive.accuracy - easyllp.accuracy).abs() < 0.03, "{easyllp:?} against {naive:?}");
}

#[test]
fn zeros_are_found_where_the_naive_way_finds_none() {
    let [_, naive, easyllp] = five_seeds(|digit| digit == 0);
    assert!(naive.recall < 0.02, "{naive:?}");
    assert!(easyllp.recall > 0.8 && easyllp.accuracy > 0.97, "{easyllp:?}");
    assert!(easyllp.log_loss < 0.4 * naive.log_loss, "{easyllp:?} against {naive:?}");
}
