//! Training: what it depends on, what it does not, and how it ends.

use crate::simulation::{normal, sigmoid};
use easyllp::method::{Draw, Naive, Supervised};
use easyllp::model::Hidden;
use easyllp::train::Aim;
use easyllp::{
    Bags, Error, Noise, Partition, Result, Rows, bagging,
    correction::{Correction, Targets},
    loss::LossName,
    method::{EasyLlp, TargetRows, TargetRule},
    model::{EmbeddingNet, LinearModel, Mlp, Scorer},
    optim::{Adam, Lbfgs},
    train::{EarlyStopping, Optimizer, Progress, Stop, TrainLog, Trainer},
};
use ndarray::{Array1, Array2};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::ops::ControlFlow;

/// Rows with three dense features and two fields, and labels that depend on both.
fn data(n_rows: usize) -> (Rows<'static>, Vec<u32>) {
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    #[expect(clippy::cast_possible_truncation, reason = "features are f32")]
    let dense = Array2::from_shape_simple_fn((n_rows, 3), || normal(&mut rng) as f32);
    let mut rng = ChaCha8Rng::seed_from_u64(12);
    let categories =
        Array2::from_shape_fn((n_rows, 2), |(_, field)| rng.random_range(0..if field == 0 { 4 } else { 7 }));
    let labels = (0..n_rows)
        .map(|row| {
            let score =
                f64::from(dense[[row, 0]] - 0.5 * dense[[row, 1]]) + f64::from(categories[[row, 0]]) - 1.5;
            u32::from(rng.random::<f64>() < sigmoid(score))
        })
        .collect();
    (Rows::new(dense, categories, vec![4, 7]).unwrap(), labels)
}

fn lbfgs() -> Trainer {
    let optimizer = Optimizer::Lbfgs(Lbfgs { l2: 0.01, tolerance: 1e-9, ..Lbfgs::default() });
    Trainer { optimizer, seed: 3 }
}

fn adam() -> Trainer {
    let settings =
        Adam { epochs: 3, batch_size: 300, weight_decay: 0.01, clip_norm: Some(1.0), ..Adam::default() };
    Trainer { optimizer: Optimizer::Adam(settings), seed: 3 }
}

fn train(trainer: &Trainer, rows: &Rows, rule: &mut dyn TargetRule) -> (LinearModel, TrainLog) {
    let mut model = LinearModel::for_rows(rows, rule.target_rows().n_classes).unwrap();
    let loss = LossName::cross_entropy(rule.target_rows().n_classes).training().unwrap();
    let log = trainer.fit(&mut model, rows, Aim::Targets(rule, loss)).unwrap();
    (model, log)
}

#[test]
fn all_bags_of_one_equal_supervision_bit_for_bit() {
    let (rows, labels) = data(1000);
    let partition = bagging::random(1000, &bagging::Sizes::Fixed(1), 5).unwrap();
    let bags = Bags::from_labels(partition, &labels, 2).unwrap();
    for trainer in [lbfgs(), adam()] {
        let (supervised, _) = train(&trainer, &rows, &mut Supervised::new(&labels, 2).unwrap());
        assert_eq!(supervised, train(&trainer, &rows, &mut EasyLlp::new(&bags)).0);
        assert_eq!(supervised, train(&trainer, &rows, &mut Naive::new(&bags)).0);
        let surrogate = &mut EasyLlp::with(&bags, Correction::default(), Draw::EveryEpoch { seed: 1 });
        assert_eq!(supervised, train(&trainer, &rows, surrogate).0);
    }
}

#[test]
fn one_thread_and_two_give_the_same_bytes() {
    let (rows, labels) = data(3000);
    let partition = bagging::random(3000, &bagging::Sizes::Range(1..=20), 5).unwrap();
    let bags = Bags::from_labels(partition, &labels, 2).unwrap();
    for trainer in [lbfgs(), adam()] {
        let [one, two, three] = [1, 2, 3].map(|threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let (model, log) = train(&trainer, &rows, &mut EasyLlp::new(&bags));
                let scores = model.scores(&rows).unwrap();
                (model, log, scores)
            })
        });
        assert_eq!(one, two);
        assert_eq!(one, three);
    }
}

/// Networks, with all that could depend on threads: dropout, tables, clipping, averages, a last batch that is not full.
#[test]
fn networks_give_the_same_bytes_on_any_number_of_threads() {
    let (rows, labels) = data(1500);
    let dense = Rows::dense(rows.as_dense().unwrap().batch(0..1500).dense.to_owned()).unwrap();
    let hidden = Hidden { dropout: 0.3, ..Hidden::new(&[150, 140]) };
    let loss = LossName::Logistic.training().unwrap();
    let [one, two, three] = [1, 2, 3].map(|threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut event = Supervised::new(&labels, 2).unwrap();
            let mut mlp = Mlp::for_rows(&dense, &hidden, 2, 5).unwrap();
            let of_mlp = adam().fit(&mut mlp, &dense, Aim::Targets(&mut event, loss)).unwrap();
            let mut net = EmbeddingNet::for_rows(&rows, 5, &hidden, 2, 5).unwrap();
            let of_net = adam().fit(&mut net, &rows, Aim::Targets(&mut event, loss)).unwrap();
            let scores = [mlp.scores(&dense).unwrap(), net.scores(&rows).unwrap()];
            (mlp, of_mlp, net, of_net, scores)
        })
    });
    assert_eq!(one, two);
    assert_eq!(one, three);
    let last = one.1.epochs.last().unwrap().loss;
    assert!(last < one.1.epochs[0].loss, "an Mlp learns");
}

/// Dropout draws from the seed, and differently from step to step: without it this training would stand still.
#[test]
fn dropout_follows_the_seed() {
    let (rows, labels) = data(200);
    let dense = Rows::dense(rows.as_dense().unwrap().batch(0..200).dense.to_owned()).unwrap();
    let hidden = Hidden { dropout: 0.5, ..Hidden::new(&[20]) };
    let train = |seed| {
        let mut model = Mlp::for_rows(&dense, &hidden, 2, 5).unwrap();
        let settings = Adam { epochs: 3, batch_size: 200, ..Adam::default() };
        let trainer = Trainer { optimizer: Optimizer::Adam(settings), seed };
        let loss = LossName::Logistic.training().unwrap();
        trainer
            .fit(&mut model, &dense, Aim::Targets(&mut Supervised::new(&labels, 2).unwrap(), loss))
            .unwrap();
        model
    };
    assert_eq!(train(1), train(1));
    assert_ne!(train(1), train(2));
}

/// A run-away in the second epoch leaves the weights of the first, lines of tables included.
#[test]
fn a_diverged_network_holds_the_weights_of_the_last_good_epoch() {
    /// Targets that are fine once and monstrous later.
    struct Monstrous(usize);
    impl TargetRule for Monstrous {
        fn target_rows(&self) -> TargetRows {
            TargetRows { n_rows: self.0, n_classes: 2, rows: (0..).take(self.0).collect() }
        }
        fn changes(&self) -> bool {
            true
        }
        fn targets(&mut self, epoch: usize, out: &mut Targets) -> Result<()> {
            let monstrous = |row: usize| if row.is_multiple_of(2) { 1e38 } else { -1e38 };
            for (row, mut target) in out.values_mut().rows_mut().into_iter().enumerate() {
                target.fill(if epoch == 0 { 0.5 } else { monstrous(row) });
            }
            Ok(())
        }
    }
    let (rows, _) = data(400);
    let fit = |epochs| {
        let mut model = EmbeddingNet::for_rows(&rows, 3, &Hidden::new(&[4]), 2, 5).unwrap();
        let settings = Adam { epochs, batch_size: 64, average: false, ..Adam::default() };
        let trainer = Trainer { optimizer: Optimizer::Adam(settings), seed: 3 };
        let loss = LossName::Logistic.training().unwrap();
        let outcome = trainer.fit(&mut model, &rows, Aim::Targets(&mut Monstrous(400), loss));
        (model, outcome)
    };
    let (good, outcome) = fit(1);
    assert!(outcome.is_ok());
    let (diverged, outcome) = fit(2);
    assert!(matches!(outcome, Err(Error::Diverged { epoch: 2, .. })), "{outcome:?}");
    assert_eq!(diverged, good);
}

/// Targets that are given, to see what training makes of them.
struct Given(Array1<f64>);

impl TargetRule for Given {
    fn target_rows(&self) -> TargetRows {
        TargetRows {
            n_rows: self.0.len(),
            n_classes: 2,
            rows: (0..).zip(&self.0).map(|(row, _)| row).collect(),
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "targets are f32")]
    fn targets(&mut self, _epoch: usize, out: &mut Targets) -> Result<()> {
        out.values_mut().column_mut(0).assign(&self.0.mapv(|target| target as f32));
        Ok(())
    }
}

/// For a linear model and log loss, labels enter through ΣA·x only: the mean operator of mean-map.
#[test]
fn linear_log_loss_sees_labels_through_the_mean_operator_only() {
    let (full, labels) = data(200);
    let rows = Rows::dense(full.as_dense().unwrap().batch(0..200).dense.to_owned()).unwrap();
    let mut targets: Array1<f64> = labels.iter().map(|&label| f64::from(label)).collect();
    let (model, log) = train(&lbfgs(), &rows, &mut Given(targets.clone()));
    assert_eq!(log.stopped, Stop::Converged);

    // Move the targets far, but at right angles to every feature and to the constant.
    let mut directions = rows
        .as_dense()
        .unwrap()
        .batch(0..200)
        .dense
        .mapv(f64::from)
        .columns()
        .into_iter()
        .map(|c| c.to_owned())
        .collect::<Vec<_>>();
    directions.push(Array1::ones(200));
    let mut moved = Array1::from_shape_fn(200, |row| (row as f64 * 1.7).sin());
    let mut basis: Vec<Array1<f64>> = Vec::new();
    for mut direction in directions {
        for of_basis in &basis {
            direction = &direction - &(of_basis * of_basis.dot(&direction));
        }
        basis.push(&direction / direction.dot(&direction).sqrt());
    }
    for _ in 0..2 {
        for of_basis in &basis {
            moved = &moved - &(of_basis * of_basis.dot(&moved));
        }
    }
    targets += &(&moved * 5.0);
    assert!(targets.iter().any(|target| *target > 3.0));
    let (same, _) = train(&lbfgs(), &rows, &mut Given(targets.clone()));
    for (a, b) in
        model.weights().iter().chain(model.intercept()).zip(same.weights().iter().chain(same.intercept()))
    {
        assert!((a - b).abs() < 1e-5, "{a} {b}");
    }

    // Along a feature they do matter.
    targets += &(&basis[0] * 5.0);
    let (other, _) = train(&lbfgs(), &rows, &mut Given(targets));
    assert!((model.weights()[[0, 0]] - other.weights()[[0, 0]]).abs() > 0.05);
}

#[test]
fn adam_comes_to_the_optimum_that_lbfgs_finds() {
    let (rows, labels) = data(2000);
    let (optimum, _) = train(
        &Trainer { optimizer: Optimizer::Lbfgs(Lbfgs { l2: 0.0, ..Lbfgs::default() }), seed: 0 },
        &rows,
        &mut Supervised::new(&labels, 2).unwrap(),
    );
    let settings = Adam { epochs: 200, batch_size: 100, learning_rate: 0.01, ..Adam::default() };
    let (model, log) = train(
        &Trainer { optimizer: Optimizer::Adam(settings), seed: 0 },
        &rows,
        &mut Supervised::new(&labels, 2).unwrap(),
    );
    assert_eq!((log.stopped, log.epochs.len()), (Stop::Finished, 200));
    assert!(log.epochs[199].loss < log.epochs[0].loss);
    let (scores, best) = (model.scores(&rows).unwrap(), optimum.scores(&rows).unwrap());
    let difference = (&scores - &best).mapv(|d| d * d).mean().unwrap().sqrt();
    assert!(difference < 0.05, "scores differ by {difference} from the optimum's");
}

#[test]
fn a_watcher_sees_the_loss_and_can_stop() {
    let (rows, labels) = data(1000);
    let loss = LossName::Logistic.training().unwrap();
    for trainer in [lbfgs(), adam()] {
        let mut model = LinearModel::for_rows(&rows, 2).unwrap();
        let mut epochs = Vec::new();
        let log = trainer
            .fit_watched(
                &mut model,
                &rows,
                Aim::Targets(&mut Supervised::new(&labels, 2).unwrap(), loss),
                &mut |event| match event {
                    Progress::Epoch(epoch) => {
                        epochs.push(epoch);
                        if epochs.len() == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                    }
                    Progress::Batch { rows_done, n_rows, .. } => {
                        assert!(rows_done <= n_rows && n_rows == 1000);
                        ControlFlow::Continue(())
                    }
                    Progress::Iteration { iteration, .. } => {
                        assert_eq!(iteration, epochs.len() + 1);
                        ControlFlow::Continue(())
                    }
                },
                None,
            )
            .unwrap();
        assert_eq!(log.stopped, Stop::Interrupted);
        assert_eq!(log.epochs, epochs);
        assert_eq!(epochs.len(), 2);
        assert!(
            model.weights().iter().any(|weight| weight.abs() > 0.0),
            "the model keeps what it has learnt"
        );
    }
    let mut model = LinearModel::for_rows(&rows, 2).unwrap();
    let stopped = adam()
        .fit_watched(
            &mut model,
            &rows,
            Aim::Targets(&mut Supervised::new(&labels, 2).unwrap(), loss),
            &mut |_| ControlFlow::Break(()),
            None,
        )
        .unwrap();
    assert_eq!(stopped, TrainLog { epochs: vec![], stopped: Stop::Interrupted, best: None });
}

/// A judge that likes the third epoch best: training stops after its patience, and the model is that of the third epoch.
#[test]
fn a_judge_ends_training_with_the_best_epoch() {
    let (rows, labels) = data(1000);
    let loss = LossName::Logistic.training().unwrap();
    let rule = || Supervised::new(&labels, 2).unwrap();
    let trainer = |epochs| Trainer {
        optimizer: Optimizer::Adam(Adam { epochs, batch_size: 100, ..Adam::default() }),
        seed: 4,
    };
    let mut model = LinearModel::for_rows(&rows, 2).unwrap();
    let mut figures = [f64::NAN, 5.0, 3.0, 4.0, f64::NAN, 1.0].into_iter();
    let mut figure = |_: &LinearModel| Ok(figures.next().unwrap());
    let judge = EarlyStopping { metric: &mut figure, patience: 2, smoothing: 1 };
    let mut watch = |_| ControlFlow::Continue(());
    let log = trainer(50)
        .fit_watched(&mut model, &rows, Aim::Targets(&mut rule(), loss), &mut watch, Some(judge))
        .unwrap();
    assert_eq!((log.stopped, log.best, log.epochs.len()), (Stop::EarlyStopping, Some((3, 3.0)), 5));
    let mut expected = LinearModel::for_rows(&rows, 2).unwrap();
    trainer(3).fit(&mut expected, &rows, Aim::Targets(&mut rule(), loss)).unwrap();
    assert_eq!(model, expected);
}

/// To look at averages changes nothing in them: most of a thousand categories are not there in the last batch of an epoch.
#[test]
fn a_judge_leaves_averages_as_they_are() {
    let mut rng = ChaCha8Rng::seed_from_u64(21);
    let ids = Array2::from_shape_simple_fn((2000, 1), || rng.random_range(0..1000));
    let labels: Vec<u32> = ids.iter().map(|id| id % 2).collect();
    let rows = Rows::new(Array2::zeros((2000, 0)), ids, vec![1000]).unwrap();
    let loss = LossName::Logistic.training().unwrap();
    let optimizer = Optimizer::Adam(Adam { epochs: 4, batch_size: 100, ..Adam::default() });
    let trainer = Trainer { optimizer, seed: 4 };
    let untrained = LinearModel::for_rows(&rows, 2).unwrap();
    let (mut judged, mut alone) = (untrained.clone(), untrained);
    let mut figures = [4.0, 3.0, 2.0, 1.0].into_iter();
    let mut figure = |_: &LinearModel| Ok(figures.next().unwrap());
    let judge = EarlyStopping { metric: &mut figure, patience: 4, smoothing: 1 };
    let mut watch = |_| ControlFlow::Continue(());
    let rule = || Supervised::new(&labels, 2).unwrap();
    trainer
        .fit_watched(&mut judged, &rows, Aim::Targets(&mut rule(), loss), &mut watch, Some(judge))
        .unwrap();
    trainer.fit(&mut alone, &rows, Aim::Targets(&mut rule(), loss)).unwrap();
    assert_eq!(judged, alone);
}

/// A step that is one too far shows in the epoch behind it, and does not count as good; but what a judge liked stays.
#[test]
fn weights_are_good_if_their_loss_is() {
    let rows = Rows::dense(ndarray::array![[1e18_f32], [2e18]]).unwrap();
    let loss = LossName::Logistic.training().unwrap();
    let untrained = Mlp::new(1, &Hidden::new(&[64, 64]), 2, 1).unwrap();
    let fit = |epochs, judge: Option<EarlyStopping<Mlp>>| {
        // All rows in a batch: an epoch is a step, and steps are long.
        let settings = Adam { learning_rate: 1e6, epochs, batch_size: 2, average: false, ..Adam::default() };
        let trainer = Trainer { optimizer: Optimizer::Adam(settings), seed: 0 };
        let mut model = untrained.clone();
        let mut rule = Supervised::new(&[1, 0], 2).unwrap();
        let outcome = match judge {
            None => trainer.fit(&mut model, &rows, Aim::Targets(&mut rule, loss)),
            Some(judge) => {
                let mut watch = |_| ControlFlow::Continue(());
                trainer.fit_watched(&mut model, &rows, Aim::Targets(&mut rule, loss), &mut watch, Some(judge))
            }
        };
        (model, outcome)
    };
    let (too_far, outcome) = fit(1, None);
    assert!(outcome.is_ok() && too_far != untrained);
    let (restored, outcome) = fit(2, None);
    assert!(matches!(outcome, Err(Error::Diverged { epoch: 2, batch: 1, .. })), "{outcome:?}");
    assert_eq!(restored, untrained);
    let mut figure = |_: &Mlp| Ok(1.0);
    let (liked, outcome) = fit(2, Some(EarlyStopping { metric: &mut figure, patience: 2, smoothing: 1 }));
    assert!(matches!(outcome, Err(Error::Diverged { epoch: 2, batch: 1, .. })), "{outcome:?}");
    assert_eq!(liked, too_far);
}

/// Figures 5, 1, 4, 6, 6: the second is the lowest, but the mean of two is lowest for the third.
#[test]
fn a_judge_may_look_at_several_epochs() {
    let (rows, labels) = data(300);
    let loss = LossName::Logistic.training().unwrap();
    let best = |smoothing| {
        let mut figures = [5.0, 1.0, 4.0, 6.0, 6.0].into_iter();
        let mut figure = |_: &LinearModel| Ok(figures.next().unwrap());
        let judge = EarlyStopping { metric: &mut figure, patience: 9, smoothing };
        let optimizer = Optimizer::Adam(Adam { epochs: 5, ..Adam::default() });
        let mut model = LinearModel::for_rows(&rows, 2).unwrap();
        let mut watch = |_| ControlFlow::Continue(());
        let mut rule = Supervised::new(&labels, 2).unwrap();
        let trainer = Trainer { optimizer, seed: 4 };
        trainer
            .fit_watched(&mut model, &rows, Aim::Targets(&mut rule, loss), &mut watch, Some(judge))
            .unwrap()
            .best
    };
    assert_eq!(best(1), Some((2, 1.0)));
    assert_eq!(best(2), Some((3, 2.5)));
}

#[test]
fn only_rows_in_bags_are_trained_on() {
    let (rows, labels) = data(600);
    let partition = bagging::random(600, &bagging::Sizes::Fixed(5), 5).unwrap();
    let bags = Bags::from_labels(partition, &labels, 2).unwrap();
    let bagging::Split { train: kept, .. } = bagging::split(&bags, 0.5, 1).unwrap();
    let (model, _) = train(&lbfgs(), &rows, &mut EasyLlp::new(&kept));

    // The same bags over a table that has no other rows.
    let chosen = kept.rows();
    let mut buffer = rows.as_dense().unwrap().buffer(chosen.len());
    let batch = rows.as_dense().unwrap().gather(&chosen, &mut buffer);
    let fewer = Rows::new(batch.dense, batch.categories, rows.cardinalities().to_vec()).unwrap();
    let place = |row: &u32| u32::try_from(chosen.binary_search(row).unwrap()).unwrap();
    let lists = (0..kept.n_bags()).map(|bag| kept.members(bag).iter().map(place).collect::<Vec<_>>());
    let partition = Partition::new(chosen.len(), lists).unwrap();
    let renumbered = Bags::multiclass(partition, kept.counts().to_owned(), Noise::None).unwrap();
    assert_eq!(model, train(&lbfgs(), &fewer, &mut EasyLlp::new(&renumbered)).0);
}

#[test]
fn refuses_what_does_not_fit_together() {
    let (rows, labels) = data(50);
    let loss = LossName::Logistic.training().unwrap();
    let fit = |model: &mut LinearModel, rule: &mut dyn TargetRule| {
        lbfgs().fit(model, &rows, Aim::Targets(rule, loss)).unwrap_err()
    };
    let mut model = LinearModel::for_rows(&rows, 2).unwrap();
    assert!(matches!(fit(&mut model, &mut Supervised::new(&labels[1..], 2).unwrap()), Error::Shape { .. }));
    assert!(matches!(fit(&mut model, &mut Supervised::new(&labels, 3).unwrap()), Error::Shape { .. }));
    let mut narrow = LinearModel::new(2, &[4, 7], 2).unwrap();
    assert!(matches!(fit(&mut narrow, &mut Supervised::new(&labels, 2).unwrap()), Error::Shape { .. }));
}

/// Adam and L-BFGS report a loss or weights that diverge, and leave finite weights.
#[test]
fn running_away_is_told_and_leaves_good_weights() {
    let loss = LossName::Squared.training().unwrap();
    let steep = |row: usize| if row.is_multiple_of(2) { 1e30_f32 } else { -1e30 };
    let rows = Rows::dense(Array2::from_shape_fn((64, 1), |(row, _)| steep(row))).unwrap();
    let labels: Vec<u32> = (0..64).map(|row| row % 2).collect();
    let settings = Adam { learning_rate: 1e6, epochs: 5, batch_size: 8, average: false, ..Adam::default() };
    let trainer = Trainer { optimizer: Optimizer::Adam(settings), seed: 0 };
    let mut model = LinearModel::for_rows(&rows, 2).unwrap();
    let error = trainer
        .fit(&mut model, &rows, Aim::Targets(&mut Supervised::new(&labels, 2).unwrap(), loss))
        .unwrap_err();
    assert!(matches!(error, Error::Diverged { epoch: 1, .. }), "{error:?}");
    assert!(model.weights().iter().chain(model.intercept()).all(|weight| weight.is_finite()));

    // Targets outside [0, 1] and no penalty: the corrected log loss has no minimum.
    let rows = Rows::dense(ndarray::array![[1.0_f32], [-1.0]]).unwrap();
    let optimizer = Optimizer::Lbfgs(Lbfgs { l2: 0.0, ..Lbfgs::default() });
    let mut model = LinearModel::for_rows(&rows, 2).unwrap();
    let loss = LossName::Logistic.training().unwrap();
    let mut rule = Given(ndarray::array![3.0, -2.0]);
    let error =
        Trainer { optimizer, seed: 0 }.fit(&mut model, &rows, Aim::Targets(&mut rule, loss)).unwrap_err();
    assert!(matches!(error, Error::Unbounded { .. }), "{error:?}");
    assert!(model.weights().iter().all(|weight| weight.is_finite()));
}

/// A method from outside that breaks its promises gets an error, not a panic.
#[test]
fn a_method_that_breaks_its_promises_is_refused() {
    struct Broken {
        rows: Vec<u32>,
        targets: Targets,
    }
    impl TargetRule for Broken {
        fn target_rows(&self) -> TargetRows {
            TargetRows { n_rows: 4, n_classes: 2, rows: self.rows.clone() }
        }
        fn targets(&mut self, _epoch: usize, out: &mut Targets) -> Result<()> {
            *out = self.targets.clone();
            Ok(())
        }
    }
    let rows = Rows::dense(Array2::from_shape_fn((4, 1), |(row, _)| row as f32)).unwrap();
    let whole = Targets::from_labels(&[0, 1, 0, 1], 2).unwrap();
    let mut not_finite = whole.clone();
    not_finite.values_mut()[[2, 0]] = f32::NAN;
    assert!(Targets::from_values(not_finite.values().to_owned()).is_err());
    for trainer in [lbfgs(), adam()] {
        let fit = |rows_of_rule: &[u32], targets: &Targets| {
            let mut model = LinearModel::for_rows(&rows, 2).unwrap();
            let mut rule = Broken { rows: rows_of_rule.to_vec(), targets: targets.clone() };
            trainer.fit(&mut model, &rows, Aim::Targets(&mut rule, LossName::Logistic.training().unwrap()))
        };
        assert!(fit(&[0, 1, 2, 3], &whole).is_ok());
        assert_eq!(fit(&[], &whole).unwrap_err(), Error::NoTargets);
        assert_eq!(fit(&[0, 4], &whole).unwrap_err(), Error::TrainingRowOutOfRange { row: 4, n_rows: 4 });
        assert!(matches!(fit(&[0, 1], &Targets::zeros(3, 2)).unwrap_err(), Error::Shape { .. }));
        assert!(matches!(fit(&[0, 1], &not_finite).unwrap_err(), Error::TargetNotFinite { row: 2, .. }));
    }
}

#[test]
fn the_order_of_rows_within_a_bag_is_irrelevant() {
    let (rows, labels) = data(300);
    let partition = bagging::random(300, &bagging::Sizes::Fixed(6), 5).unwrap();
    let reversed =
        (0..partition.n_bags()).map(|bag| partition.members(bag).iter().rev().copied().collect::<Vec<_>>());
    let reversed = Partition::new(300, reversed).unwrap();
    let [one, other] =
        [partition, reversed].map(|partition| Bags::from_labels(partition, &labels, 2).unwrap());
    for trainer in [lbfgs(), adam()] {
        let [one, other] = [&one, &other].map(|bags| train(&trainer, &rows, &mut EasyLlp::new(bags)).0);
        assert_eq!(one, other);
    }
}

#[test]
fn logistic_loss_is_for_two_classes() {
    let rows = Rows::dense(Array2::from_shape_fn((3, 1), |(row, _)| row as f32)).unwrap();
    let mut model = LinearModel::for_rows(&rows, 3).unwrap();
    let mut rule = Supervised::new(&[0, 1, 2], 3).unwrap();
    let refused =
        lbfgs().fit(&mut model, &rows, Aim::Targets(&mut rule, LossName::Logistic.training().unwrap()));
    assert_eq!(refused.unwrap_err(), Error::BinaryLoss { loss: "logistic", n_classes: 3 });
}
