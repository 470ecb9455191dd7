//! Many linear models in one pass: each as it would be alone, whatever becomes of the others.

use crate::rounding::Sum;
use crate::simulation::{normal, sigmoid};
use easyllp::method::{Draw, Naive, Supervised};
use easyllp::train::Aim;
use easyllp::{
    Bags, Error, Result, Rows, bagging,
    correction::{BagWeights, Correction, Targets},
    loss::LossName,
    method::{EasyLlp, TargetRows, TargetRule},
    model::{LinearColumns, LinearModel, Model, Scorer},
    optim::Adam,
    train::{ColumnsLog, Optimizer, Stop, Trainer},
};
use ndarray::{Array2, ArrayView1};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::ops::ControlFlow;

const ROWS: usize = 1000;

/// Rows with five features, and labels of two different tasks.
fn data() -> (Rows<'static>, [Vec<u32>; 2]) {
    let mut rng = ChaCha8Rng::seed_from_u64(21);
    #[expect(clippy::cast_possible_truncation, reason = "features are f32")]
    let dense = Array2::from_shape_simple_fn((ROWS, 5), || normal(&mut rng) as f32);
    let labels = [0, 3].map(|column| {
        let features = dense.column(column);
        features.iter().map(|&x| u32::from(rng.random::<f64>() < sigmoid(2.0 * f64::from(x)))).collect()
    });
    (Rows::dense(dense).unwrap(), labels)
}

/// The same numbers among four times as many zeros, in other places from row to row.
fn among_zeros(rows: &Rows) -> Rows<'static> {
    let dense = rows.as_dense().unwrap().batch(0..ROWS).dense;
    let feature = |(row, place): (usize, usize)| {
        if (row + place) % 5 == 0 { dense[[row, place / 5]] } else { 0.0 }
    };
    Rows::dense(Array2::from_shape_fn((ROWS, 25), feature)).unwrap()
}

/// Bags of all rows.
fn bags(labels: &[u32], size: usize, seed: u64) -> Bags {
    let partition = bagging::random(ROWS, &bagging::Sizes::Fixed(size), seed).unwrap();
    Bags::from_labels(partition, labels, 2).unwrap()
}

/// Seven rules: two tasks, four methods, soft targets and drawn ones.
fn rules<'b>(labels: &'b [Vec<u32>; 2], bags: &'b [Bags; 3]) -> Vec<Box<dyn TargetRule + 'b>> {
    let size_weights = Correction::Centred(BagWeights::Size);
    vec![
        Box::new(Supervised::new(&labels[0], 2).unwrap()),
        Box::new(Supervised::new(&labels[1], 2).unwrap()),
        Box::new(Naive::new(&bags[0])),
        Box::new(EasyLlp::new(&bags[1])),
        Box::new(EasyLlp::with(&bags[2], size_weights, Draw::Never)),
        Box::new(EasyLlp::with(&bags[0], Correction::default(), Draw::EveryEpoch { seed: 4 })),
        Box::new(EasyLlp::with(&bags[1], Correction::default(), Draw::Once { seed: 5 })),
    ]
}

fn three_baggings(labels: &[Vec<u32>; 2]) -> [Bags; 3] {
    [bags(&labels[0], 4, 1), bags(&labels[0], 16, 2), bags(&labels[1], 8, 3)]
}

fn adam(change: impl FnOnce(&mut Adam)) -> Trainer {
    let mut settings =
        Adam { epochs: 4, batch_size: 300, learning_rate: 0.01, weight_decay: 0.1, ..Adam::default() };
    change(&mut settings);
    Trainer { optimizer: Optimizer::Adam(settings), seed: 3 }
}

/// Models that do not begin at zero, each different.
fn models(n_models: usize, rows: &Rows) -> Vec<LinearModel> {
    (0..n_models)
        .map(|task| {
            let mut model = LinearModel::for_rows(rows, 2).unwrap();
            for block in &mut model.parameters_mut().blocks_mut()[..2] {
                let values = Array2::from_elem(block.values().dim(), task as f32 / 20.0);
                block.set(values.view()).unwrap();
            }
            model
        })
        .collect()
}

fn fit(
    trainer: &Trainer,
    models: &mut [LinearModel],
    rows: &Rows,
    rules: &mut [Box<dyn TargetRule + '_>],
    loss: LossName,
) -> Result<ColumnsLog> {
    let mut rules: Vec<&mut dyn TargetRule> = rules.iter_mut().map(|rule| &mut **rule as _).collect();
    trainer.fit_columns(models, rows, &mut rules, loss.training().unwrap(), &mut |_, _| {
        ControlFlow::Continue(None)
    })
}

/// The largest difference of weights, as a share of the largest weight.
fn difference(one: &LinearModel, other: &LinearModel) -> f64 {
    let numbers = |model: &LinearModel| -> Vec<f32> {
        model.weights().iter().chain(model.intercept()).copied().collect()
    };
    let (one, other) = (numbers(one), numbers(other));
    let largest = one.iter().fold(0.0_f32, |largest, weight| largest.max(weight.abs()));
    f64::from(
        one.iter().zip(&other).fold(0.0_f32, |most, (one, other)| most.max((one - other).abs())) / largest,
    )
}

/// By how much two trainings of the same model may differ, as a share of the size of what they add up. Scores are sums in f32, each off
/// by up to 1e-6 of its terms, and a few dozen steps of Adam amplify what they start from.
const SHARE: f64 = 1e-5;

/// The mean size of a row's loss, which is positive or negative: what the rounding of their mean follows, whatever that is.
/// Before training or after it, whichever is larger.
fn size_of_losses(model: &LinearModel, rows: &Rows, rule: &mut dyn TargetRule, loss: LossName) -> f64 {
    let (loss, n_classes) = (loss.training().unwrap(), rule.target_rows().n_classes);
    let mut targets = Targets::zeros(rows.n_rows(), n_classes);
    rule.targets(0, &mut targets).unwrap();
    let size = |scores: Array2<f32>| {
        let losses = rule.target_rows().rows.into_iter().map(|row| {
            let line = |of: ArrayView1<f32>| of.iter().map(|&value| f64::from(value)).collect::<Vec<_>>();
            let (scores, targets) =
                (line(scores.row(row as usize)), line(targets.values().row(row as usize)));
            loss.corrected(&scores, &targets, &mut vec![0.0; scores.len()])
        });
        losses.collect::<Sum>().mean_size()
    };
    let scores = model.scores(rows).unwrap();
    size(Array2::zeros(scores.dim())).max(size(scores))
}

#[test]
fn models_come_to_what_each_alone_comes_to() {
    let (dense, labels) = data();
    let baggings = three_baggings(&labels);
    let changes: [fn(&mut Adam); 3] =
        [|_| {}, |adam| adam.average = false, |adam| adam.clip_norm = Some(0.1)];
    for (rows, change) in
        [&dense, &among_zeros(&dense)].into_iter().flat_map(|rows| changes.map(|to| (rows, to)))
    {
        let trainer = adam(change);
        for loss in [LossName::Logistic, LossName::Squared, LossName::Softmax, LossName::Hinge] {
            let mut in_columns = models(7, rows);
            let found = fit(&trainer, &mut in_columns, rows, &mut rules(&labels, &baggings), loss).unwrap();
            assert!(found.best.iter().all(Option::is_none));
            for (task, rule) in rules(&labels, &baggings).iter_mut().enumerate() {
                let mut alone = models(7, rows).swap_remove(task);
                let log = trainer
                    .fit(&mut alone, rows, Aim::Targets(&mut **rule, loss.training().unwrap()))
                    .unwrap();
                let difference = difference(&alone, &in_columns[task]);
                assert!(difference <= SHARE, "{trainer:?} {loss:?} task {task}: {difference}");
                assert_eq!(found.logs[task].stopped, Stop::Finished);
                assert_eq!(found.logs[task].epochs.len(), 4);
                let size = size_of_losses(&alone, rows, &mut **rule, loss);
                for (one, other) in found.logs[task].epochs.iter().zip(&log.epochs) {
                    assert_eq!(one.epoch, other.epoch);
                    assert!((one.loss - other.loss).abs() <= SHARE * size, "{one:?} {other:?} of {size}");
                }
            }
        }
    }
}

/// So many features that those of all batches are not gathered at once.
#[test]
fn batches_of_many_features_come_to_the_same() {
    let (few, labels) = data();
    let few = few.as_dense().unwrap().batch(0..100).dense.to_owned();
    let rows =
        Rows::dense(Array2::from_shape_fn((100, 60_000), |(row, place)| few[[row, place % 5]])).unwrap();
    let trainer = adam(|adam| (adam.batch_size, adam.epochs, adam.learning_rate) = (16, 2, 1e-5));
    let loss = LossName::Logistic;
    let mut rule = Supervised::new(&labels[0][..100], 2).unwrap();
    let mut alone = models(1, &rows).swap_remove(0);
    trainer.fit(&mut alone, &rows, Aim::Targets(&mut rule, loss.training().unwrap())).unwrap();
    let mut in_columns = models(1, &rows);
    fit(&trainer, &mut in_columns, &rows, &mut [Box::new(rule)], loss).unwrap();
    let difference = difference(&alone, &in_columns[0]);
    assert!(difference <= SHARE, "{difference}");
}

/// Whether these are the scores of a model for two classes, of the rows in this order.
fn are_scores(
    scores: ArrayView1<f32>,
    model: &LinearModel,
    rows: &Rows,
    members: impl Iterator<Item = usize>,
) -> bool {
    let (dense, weights) = (rows.as_dense().unwrap().all().dense, model.weights());
    scores.iter().zip(members).all(|(&score, row)| {
        let products = dense.row(row).into_iter().zip(weights.column(0));
        let products = products.map(|(&feature, &weight)| f64::from(feature) * f64::from(weight));
        products.chain([f64::from(model.intercept()[[0, 0]])]).collect::<Sum>().equals(score)
    })
}

#[test]
fn threads_change_no_byte() {
    let (dense, labels) = data();
    let sparse = among_zeros(&dense);
    let baggings = three_baggings(&labels);
    // More than two blocks of models.
    let n_models = 43 * 7;
    for (rows, clip_norm) in [(&dense, None), (&dense, Some(0.1)), (&sparse, None)] {
        let [one, two, three] = [1, 2, 3].map(|threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let mut rules: Vec<_> = (0..43).flat_map(|_| rules(&labels, &baggings)).collect();
                let mut rules: Vec<&mut dyn TargetRule> =
                    rules.iter_mut().map(|rule| &mut **rule as _).collect();
                let mut models = models(n_models, rows);
                let loss = LossName::Logistic.training().unwrap();
                let mut scores = Vec::new();
                let mut judge = |_, columns: &LinearColumns| {
                    scores.push(columns.scores(rows).unwrap());
                    ControlFlow::Continue(None)
                };
                let trainer = adam(|adam| adam.clip_norm = clip_norm);
                let log = trainer.fit_columns(&mut models, rows, &mut rules, loss, &mut judge).unwrap();
                (models, log, scores)
            })
        });
        assert_eq!(one, two);
        assert_eq!(one, three);
    }
}

#[test]
fn a_rule_learns_nothing_from_rows_that_it_leaves_out() {
    let (rows, labels) = data();
    let all = bags(&labels[0], 4, 1);
    let half = all.select(&(0..all.n_bags() / 2).collect::<Vec<_>>()).unwrap();
    // The same rows, except for the features of those left out.
    let mut other_features = rows.as_dense().unwrap().batch(0..ROWS).dense.to_owned();
    let mut is_left_out = [true; ROWS];
    half.rows().iter().for_each(|&row| is_left_out[row as usize] = false);
    for (mut line, is_left_out) in other_features.rows_mut().into_iter().zip(is_left_out) {
        if is_left_out {
            line.mapv_inplace(|feature| 3.0 - feature);
        }
    }
    let other_rows = Rows::dense(other_features).unwrap();
    let train = |rows: &Rows, clip_norm| {
        let mut rules: Vec<Box<dyn TargetRule>> =
            vec![Box::new(EasyLlp::new(&half)), Box::new(EasyLlp::new(&all))];
        let mut models = models(2, rows);
        let trainer = adam(|adam| adam.clip_norm = clip_norm);
        fit(&trainer, &mut models, rows, &mut rules, LossName::Logistic).unwrap();
        models
    };
    for clip_norm in [None, Some(0.1)] {
        let [one, other] = [&rows, &other_rows].map(|rows| train(rows, clip_norm));
        assert!(difference(&one[0], &other[0]) < 1e-6);
        assert!(difference(&one[1], &other[1]) > 1e-3);
    }

    // If all rows are in one batch, the mean over its own rows is what the rule alone is trained on.
    let trainer = adam(|adam| adam.batch_size = ROWS);
    let mut rules: Vec<Box<dyn TargetRule>> =
        vec![Box::new(EasyLlp::new(&half)), Box::new(EasyLlp::new(&all))];
    let mut in_columns = models(2, &rows);
    let log = fit(&trainer, &mut in_columns, &rows, &mut rules, LossName::Logistic).unwrap();
    let mut alone = models(2, &rows).swap_remove(0);
    let loss = LossName::Logistic.training().unwrap();
    let log_alone = trainer.fit(&mut alone, &rows, Aim::Targets(&mut EasyLlp::new(&half), loss)).unwrap();
    assert!(difference(&alone, &in_columns[0]) <= SHARE);
    let size = size_of_losses(&alone, &rows, &mut EasyLlp::new(&half), LossName::Logistic);
    assert!((log.logs[0].epochs[3].loss - log_alone.epochs[3].loss).abs() <= SHARE * size);
}

/// Labels as targets, enormous from an epoch on.
struct Huge<'l>(Supervised<'l>, usize);

impl TargetRule for Huge<'_> {
    fn target_rows(&self) -> TargetRows {
        self.0.target_rows()
    }
    fn changes(&self) -> bool {
        true
    }
    fn targets(&mut self, epoch: usize, out: &mut Targets) -> Result<()> {
        self.0.targets(epoch, out)?;
        if epoch >= self.1 {
            out.values_mut().fill(3e38);
        }
        Ok(())
    }
}

#[test]
fn a_model_that_runs_away_spoils_no_other() {
    let (rows, labels) = data();
    let event = || Supervised::new(&labels[0], 2).unwrap();
    let train = |at: usize, epochs: usize| {
        let mut rules: Vec<Box<dyn TargetRule>> =
            vec![Box::new(event()), Box::new(Huge(event(), at)), Box::new(event())];
        let mut models = models(3, &rows);
        let trainer = adam(|adam| {
            adam.epochs = epochs;
            adam.average = false;
        });
        let mut rules: Vec<&mut dyn TargetRule> = rules.iter_mut().map(|rule| &mut **rule as _).collect();
        let mut ended = Vec::new();
        let mut judge = |_, models: &LinearColumns| {
            ended.push([0, 1, 2].map(|task| models.has_ended(task)));
            ControlFlow::Continue(None)
        };
        let loss = LossName::Squared.training().unwrap();
        let log = trainer.fit_columns(&mut models, &rows, &mut rules, loss, &mut judge).unwrap();
        (models, log, ended)
    };
    let (good, _, none) = train(usize::MAX, 4);
    let (after_two, ..) = train(usize::MAX, 2);
    let (models, log, ended) = train(2, 4);
    assert_eq!(none, [[false; 3]; 4]);
    let one = [false, true, false];
    assert_eq!(ended, [[false; 3], [false; 3], one, one]);
    assert_eq!(log.logs[1].stopped, Stop::Diverged);
    assert_eq!(log.logs[1].epochs.len(), 2);
    assert_eq!(models[1], after_two[1]);
    for task in [0, 2] {
        assert_eq!(models[task], good[task]);
        assert_eq!(log.logs[task].stopped, Stop::Finished);
        assert_eq!(log.logs[task].epochs.len(), 4);
    }
}

#[test]
fn each_model_is_kept_at_its_best() {
    let (rows, labels) = data();
    let mut first = Supervised::new(&labels[0], 2).unwrap();
    let mut second = Supervised::new(&labels[1], 2).unwrap();
    let mut third = Supervised::new(&labels[1], 2).unwrap();
    let mut rules: [&mut dyn TargetRule; 3] = [&mut first, &mut second, &mut third];
    let mut trained = models(3, &rows);
    let mut seen: Vec<LinearColumns> = Vec::new();
    let figures =
        [[3.0, f64::NAN, 1.0], [1.0, f64::NAN, 1.0], [1.0, f64::INFINITY, 1.0], [2.0, f64::NAN, 0.5]];
    let log = adam(|_| {})
        .fit_columns(
            &mut trained,
            &rows,
            &mut rules,
            LossName::Logistic.training().unwrap(),
            &mut |epoch, models| {
                seen.push(models.clone());
                ControlFlow::Continue((epoch != 4).then(|| figures[epoch - 1].to_vec()))
            },
        )
        .unwrap();
    assert_eq!(seen.len(), 4);
    let best = log.best[0].as_ref().unwrap();
    assert_eq!((best.epoch, &best.model), (2, &seen[1].model(0).unwrap()));
    assert!(log.best[1].is_none());
    assert_eq!(log.best[2].as_ref().unwrap().epoch, 1);
    for (task, model) in trained.iter().enumerate() {
        assert_eq!(model, &seen[3].model(task).unwrap());
        let scores = seen[3].scores(&rows).unwrap();
        assert!(are_scores(scores.column(task), model, &rows, 0..ROWS));
    }
}

/// Some rows, not in their order and more than are scored at a time, by the last two of three models.
#[test]
fn some_rows_are_scored_by_some_models() {
    let (dense, labels) = data();
    let members: Vec<u32> = (0..700).map(|place| (place * 37) % 1000).collect();
    for rows in [&dense, &among_zeros(&dense)] {
        let mut event = [Supervised::new(&labels[0], 2).unwrap(); 3];
        let mut trained = models(3, rows);
        let mut scored = Vec::new();
        let mut judge = |_, models: &LinearColumns| {
            assert_eq!(models.scores_of(rows, &members, 2..2).unwrap().dim(), (700, 0));
            scored.push((models.scores(rows).unwrap(), models.scores_of(rows, &members, 1..3).unwrap()));
            ControlFlow::Continue(None)
        };
        let loss = LossName::Logistic.training().unwrap();
        let mut rules: Vec<&mut dyn TargetRule> = event.iter_mut().map(|rule| rule as _).collect();
        adam(|_| {}).fit_columns(&mut trained, rows, &mut rules, loss, &mut judge).unwrap();
        let (all, some) = scored.last().unwrap();
        assert_eq!((all.dim(), some.dim()), ((ROWS, 3), (700, 2)));
        for (task, model) in trained.iter().enumerate() {
            assert!(are_scores(all.column(task), model, rows, 0..ROWS));
        }
        for (scores, model) in some.columns().into_iter().zip(&trained[1..]) {
            assert!(are_scores(scores, model, rows, members.iter().map(|&row| row as usize)));
        }
    }
}

#[test]
fn a_judge_breaks_training_off() {
    let (rows, labels) = data();
    let train = |epochs, last| {
        let mut rule = Supervised::new(&labels[0], 2).unwrap();
        let mut trained = models(1, &rows);
        let loss = LossName::Logistic.training().unwrap();
        let mut judge = |epoch, _: &LinearColumns| {
            if epoch == last { ControlFlow::Break(()) } else { ControlFlow::Continue(None) }
        };
        let log = adam(|adam| adam.epochs = epochs)
            .fit_columns(&mut trained, &rows, &mut [&mut rule], loss, &mut judge)
            .unwrap();
        (trained, log.logs[0].epochs.clone(), log.logs[0].stopped)
    };
    let (whole, of_whole, finished) = train(2, 0);
    let (broken_off, of_broken_off, stopped) = train(4, 2);
    assert_eq!((whole, of_whole), (broken_off, of_broken_off));
    assert_eq!((finished, stopped), (Stop::Finished, Stop::Interrupted));
}

#[test]
fn refuses_what_does_not_fit_together() {
    let (rows, labels) = data();
    let refused = |models: &mut [LinearModel], rows: &Rows, labels: &[&[u32]], n_classes| {
        let mut rules: Vec<_> =
            labels.iter().map(|labels| Supervised::new(labels, n_classes).unwrap()).collect();
        let mut rules: Vec<&mut dyn TargetRule> = rules.iter_mut().map(|rule| rule as _).collect();
        let loss = LossName::Logistic.training().unwrap();
        let mut judge = |_: usize, _: &LinearColumns| ControlFlow::Continue(Some(vec![0.0]));
        adam(|_| {}).fit_columns(models, rows, &mut rules, loss, &mut judge).unwrap_err()
    };
    let both: [&[u32]; 2] = [&labels[0], &labels[1]];
    let of_task = |task, what, expected, got| Error::Task {
        task,
        source: Box::new(Error::Shape { what, expected, got }),
    };
    let judged = refused(&mut models(2, &rows), &rows, &both, 2);
    assert_eq!(judged, Error::Shape { what: "validation metrics, one per model", expected: 2, got: 1 });
    let missing = refused(&mut models(1, &rows), &rows, &both, 2);
    assert_eq!(missing, Error::Shape { what: "rules, one per model", expected: 1, got: 2 });
    assert_eq!(refused(&mut [], &rows, &[], 2), Error::NoTargets);
    let short = refused(&mut models(2, &rows), &rows, &[&labels[0], &labels[1][1..]], 2);
    assert_eq!(short, of_task(1, "rows that have a target or none", ROWS, ROWS - 1));
    assert_eq!(refused(&mut models(2, &rows), &rows, &both, 3), of_task(0, "classes", 2, 3));
    let mut narrow = [LinearModel::for_rows(&rows, 2).unwrap(), LinearModel::new(4, &[], 2).unwrap()];
    let narrow = refused(&mut narrow, &rows, &both, 2);
    assert_eq!(narrow, of_task(1, "dense features", 4, 5));
    assert_eq!(narrow.in_full(), "task index 1: dense features: expected 4, got 5");
    let mut three = [LinearModel::for_rows(&rows, 2).unwrap(), LinearModel::for_rows(&rows, 3).unwrap()];
    assert_eq!(refused(&mut three, &rows, &both, 2), of_task(1, "scores of the model", 1, 3));

    let fields = Rows::new(Array2::zeros((ROWS, 5)), Array2::zeros((ROWS, 2)), vec![1, 1]).unwrap();
    assert_eq!(refused(&mut models(2, &rows), &fields, &both, 2), Error::FieldsInColumns { n_fields: 2 });
    let trained = Trainer::default().fit_columns(
        &mut models(1, &rows),
        &rows,
        &mut [&mut Supervised::new(&labels[0], 2).unwrap()],
        LossName::Logistic.training().unwrap(),
        &mut |_, _| ControlFlow::Continue(None),
    );
    assert_eq!(trained.unwrap_err(), Error::ColumnsWithoutAdam);
}
