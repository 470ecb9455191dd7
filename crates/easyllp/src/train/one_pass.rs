//! One pass over the bags, with a step on one row of each: the paper's Algorithm *pickone*, for linear models.
//!
//! Corrected gradients of rows in one bag are correlated, since they share the bag's proportions.
//! One row per bag gives independent gradients, as Theorem *convex_pickone* assumes.

use super::{EpochLog, Progress, Stop, TrainLog};
use crate::bags::Bags;
use crate::classes::{columns, n_columns};
use crate::correction::{Correction, check_drawable, draw_class};
use crate::error::{Error, Result, check_length};
use crate::kernel::{Vectors, add_scaled};
use crate::loss::{Convexity, TrainingLoss};
use crate::model::{LinearModel, Model};
use crate::optim::sgd::Labels;
use crate::optim::{Descent, Sgd};
use crate::prior::LabelPrior;
use crate::rows::{RowBatch, Rows};
use crate::seed::{Stream, stream};
use rand::RngExt;
use rand::seq::SliceRandom;

/// Rows that are gathered before steps are taken on them, since picks are scattered over the table;
/// the callback runs in between.
const ROWS_AT_ONCE: usize = 128;

/// Trains a linear model by the paper's Algorithm *pickone*: bags are visited once, in random
/// order, with a step on one random row of each.
///
/// The target is the paper's, A = p + k(α − p) with the bag's own size k; surrogate labels replace
/// α by a label drawn from the proportions. Step sizes use the mean bag size.
///
/// ```
/// use easyllp::bagging::{Sizes, random};
/// use easyllp::optim::sgd::{Domain, Sgd};
/// use easyllp::train::OnePass;
/// use easyllp::{Bags, Rows, correction::LabelPrior, loss::LossName, model::LinearModel};
/// use ndarray::Array2;
/// use std::ops::ControlFlow;
///
/// // Positive rows have a feature of 1, the others −1; only counts of random pairs are known.
/// let labels: Vec<u32> = (0..1000).map(|row| row % 2).collect();
/// let rows = Rows::dense(Array2::from_shape_fn((1000, 1), |(row, _)| if labels[row] == 1 { 1.0_f32 } else { -1.0 }))?;
/// let bags = Bags::from_labels(random(1000, &Sizes::Fixed(2), 1)?, &labels, 2)?;
///
/// let mut model = LinearModel::for_rows(&rows, 2)?;
/// let settings = Sgd { domain: Domain::Ball(2.0), ..Sgd::default() };
/// let one_pass = OnePass { settings, seed: 1, prior: LabelPrior::binary(0.5)? };
/// one_pass.fit(&mut model, &rows, &bags, LossName::Logistic.training()?, &mut |_| ControlFlow::Continue(()))?;
/// assert!(model.weights()[[0, 0]] > 1.0);
/// # Ok::<(), easyllp::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct OnePass {
    /// Labels, steps, domain and iterate.
    pub settings: Sgd,
    /// The seed of the order of bags, and of the row picked from each.
    pub seed: u64,
    /// The label prior p of the targets.
    pub prior: LabelPrior,
}

impl OnePass {
    /// Trains the model.
    pub fn fit(
        &self,
        model: &mut LinearModel,
        rows: &Rows,
        bags: &Bags,
        loss: &dyn TrainingLoss,
        watch: super::Watch,
    ) -> Result<TrainLog> {
        fit(self, model, rows, bags, loss, watch)
    }
}

fn fit(
    one_pass: &OnePass,
    model: &mut LinearModel,
    rows: &Rows,
    bags: &Bags,
    loss: &dyn TrainingLoss,
    watch: super::Watch,
) -> Result<TrainLog> {
    let &OnePass { ref settings, seed, ref prior } = one_pass;
    Vectors::chosen()?;
    settings.check()?;
    if loss.convexity() != Convexity::AnyTarget {
        return Err(Error::NotConvex { loss: loss.name() });
    }
    model.check(rows)?;
    let rows = rows.dense_only("easyllp-sgd")?;
    check_length("rows that are in bags or not", rows.n_rows(), bags.n_rows())?;
    check_length("scores of the model", n_columns(bags.n_classes()), model.n_scores())?;
    loss.check_classes(bags.n_classes())?;
    if settings.labels == Labels::Surrogate {
        check_drawable(bags)?;
    }
    let line = Correction::Paper(prior.clone()).line(bags)?;

    // Streams of their own: soft and surrogate labels see the same bags in the same order, and the same rows of them.
    let order = order(bags.n_bags(), seed);
    let mut surrogates = stream(seed, Stream::Surrogate);
    let mut picks = stream(seed, Stream::Picks);
    let picked: Vec<u32> = order
        .iter()
        .map(|&bag| {
            let members = bags.members(bag as usize);
            members[picks.random_range(0..members.len())]
        })
        .collect();

    let n_bags = order.len();
    let mut descent = Descent::new(settings, model.as_vector(), bags.n_members() as f64 / n_bags as f64);
    let mut step = RowStep::new(model);
    let mut buffer = rows.buffer(ROWS_AT_ONCE.min(n_bags));
    let mut targets = vec![0.0; model.n_scores()];
    let mut log = TrainLog { epochs: Vec::new(), stopped: Stop::Finished, best: None };
    let (mut n_done, mut loss_sum) = (0, 0.0);

    for (some_bags, some_rows) in order.chunks(ROWS_AT_ONCE).zip(picked.chunks(ROWS_AT_ONCE)) {
        let batch = rows.gather(some_rows, &mut buffer);
        for (place, &bag) in some_bags.iter().enumerate() {
            let bag = bag as usize;
            let drawn = match settings.labels {
                Labels::Soft => None,
                Labels::Surrogate => Some(draw_class(bags, bag, surrogates.random())),
            };
            for (target, class) in targets.iter_mut().zip(columns(bags.n_classes())) {
                let label = match drawn {
                    None => bags.proportion(bag, class),
                    Some(drawn) => f64::from(u8::from(class == drawn)),
                };
                *target = line.exact(bag, class, label);
            }
            let row_loss = step.take(&batch, place, &targets, loss, &mut descent);
            n_done += 1;
            if !(descent.is_finite() && row_loss.is_finite()) {
                return Err(Error::Diverged { epoch: 1, batch: n_done, loss: row_loss });
            }
            loss_sum += row_loss;
        }
        if watch(Progress::Batch { epoch: 1, rows_done: n_done, n_rows: n_bags }).is_break() {
            log.stopped = Stop::Interrupted;
            break;
        }
    }
    let loss = loss_sum / n_done as f64;
    let point = descent.finish();
    if point.iter().any(|value| value.abs() > f64::from(f32::MAX)) {
        return Err(Error::Diverged { epoch: 1, batch: n_done, loss });
    }
    model.set_parameters(&point);
    if log.stopped == Stop::Finished {
        log.epochs.push(EpochLog { epoch: 1, loss });
        if watch(Progress::Epoch(log.epochs[0])).is_break() {
            log.stopped = Stop::Interrupted;
        }
    }
    Ok(log)
}

/// The order in which a pass visits bags.
fn order(n_bags: usize, seed: u64) -> Vec<u32> {
    let mut order: Vec<u32> = (0..).take(n_bags).collect();
    order.shuffle(&mut stream(seed, Stream::Shuffle));
    order
}

/// Steps on single rows, with the parameters as one vector: weights, intercepts and categories;
/// each line has one number per score. A step costs the row's dense features, and one category per
/// field.
struct RowStep<'s> {
    model: &'s LinearModel,
    scores: Vec<f64>,
    slopes: Vec<f64>,
}

impl<'s> RowStep<'s> {
    fn new(model: &'s LinearModel) -> Self {
        let zeros = || vec![0.0; model.n_scores()];
        Self { model, scores: zeros(), slopes: zeros() }
    }

    /// Takes a step on a row of a batch; returns its loss before the step.
    fn take(
        &mut self,
        batch: &RowBatch,
        row: usize,
        targets: &[f64],
        loss: &dyn TrainingLoss,
        descent: &mut Descent,
    ) -> f64 {
        let Self { model, scores, slopes } = self;
        let width = scores.len();
        let features = batch.dense.row(row);
        let intercept = features.len() * width;
        let categories =
            || model.lines(batch.categories.row(row)).map(|line| intercept + width * (1 + line as usize));

        let point = descent.point();
        scores.copy_from_slice(&point[intercept..][..width]);
        for (&feature, weights) in features.iter().zip(point.chunks_exact(width)) {
            add_scaled(scores, f64::from(feature), weights);
        }
        categories().for_each(|place| add_scaled(scores, 1.0, &point[place..][..width]));

        let value = loss.corrected(scores, targets, slopes);
        descent.begin_step();
        for (&feature, place) in features.iter().zip((0..).step_by(width)) {
            descent.descend(place, f64::from(feature), slopes);
        }
        descent.descend(intercept, 1.0, slopes);
        categories().for_each(|place| descent.descend(place, 1.0, slopes));
        descent.end_step();
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bags::{Noise, Partition};
    use crate::loss::LossName;
    use crate::optim::sgd::{Domain, Iterate, Steps};
    use ndarray::{Array2, array};
    use std::ops::ControlFlow;

    fn pass(
        settings: &Sgd,
        seed: u64,
        model: &mut LinearModel,
        rows: &Rows,
        bags: &Bags,
        loss: LossName,
    ) -> Result<TrainLog> {
        let prior = LabelPrior::pooled(bags);
        let watch = &mut |_| ControlFlow::Continue(());
        OnePass { settings: settings.clone(), seed, prior }.fit(
            model,
            rows,
            bags,
            loss.training().unwrap(),
            watch,
        )
    }

    /// Two features and a field of three categories, in the order of rows.
    fn table(n_rows: usize) -> Rows<'static> {
        let dense = Array2::from_shape_fn((n_rows, 2), |(row, column)| {
            f32::from(u8::try_from((row * (3 + column)) % 7).unwrap()) / 4.0 - 0.5
        });
        let categories = Array2::from_shape_fn((n_rows, 1), |(row, _)| u32::try_from(row % 3).unwrap());
        Rows::new(dense, categories, vec![3]).unwrap()
    }

    fn singles(labels: &[u32], n_classes: usize) -> Bags {
        let partition = Partition::new(labels.len(), (0..).take(labels.len()).map(|row| [row])).unwrap();
        Bags::from_labels(partition, labels, n_classes).unwrap()
    }

    fn in_pairs(n_bags: u32, positives: &[f64], noise: Noise) -> Bags {
        let pairs = (0..n_bags).map(|bag| [2 * bag, 2 * bag + 1]);
        Bags::binary(Partition::new(2 * n_bags as usize, pairs).unwrap(), positives, noise).unwrap()
    }

    /// A pass over bags of one is supervised descent, written out here with every class on its own.
    #[test]
    fn bags_of_one_are_descent_on_labels() {
        let rows = table(60);
        for n_classes in [2, 3] {
            let labels: Vec<u32> = (0..60).map(|row| (row * row / 5) % n_classes).collect();
            let n_classes = n_classes as usize;
            let width = columns(n_classes).len();
            let mut model = LinearModel::for_rows(&rows, n_classes).unwrap();
            // Weights of two features, of a constant, and of three categories.
            let mut weights = vec![[0.0; 6]; width];
            let mut mean_loss = 0.0;
            for (row, t) in order(60, 9).into_iter().zip(1..) {
                let batch = rows.as_dense().unwrap().batch(row as usize..row as usize + 1);
                let mut x =
                    [f64::from(batch.dense[[0, 0]]), f64::from(batch.dense[[0, 1]]), 1.0, 0.0, 0.0, 0.0];
                x[3 + batch.categories[[0, 0]] as usize] = 1.0;
                for (weights, class) in weights.iter_mut().zip(columns(n_classes)) {
                    let y = f64::from(u8::from(labels[row as usize] as usize == class));
                    let score: f64 = weights.iter().zip(x).map(|(w, x)| w * x).sum();
                    // ℓ = (f − y)², whose gradient is 2 (f − y) x.
                    mean_loss += (score - y).powi(2) / 60.0;
                    for (w, x) in weights.iter_mut().zip(x) {
                        *w -= 0.1 / f64::from(t).sqrt() * 2.0 * (score - y) * x;
                    }
                }
            }
            let settings = Sgd { steps: Steps::Given, scale: 0.1, ..Sgd::default() };
            let log = pass(&settings, 9, &mut model, &rows, &singles(&labels, n_classes), LossName::Squared)
                .unwrap();
            assert_eq!((log.stopped, log.epochs.len()), (Stop::Finished, 1));
            assert!((log.epochs[0].loss - mean_loss).abs() < 1e-12);
            for (place, got) in model.as_vector().into_iter().enumerate() {
                let expected = weights[place % width][place / width];
                assert!((got - expected).abs() < 1e-7, "{got} instead of {expected}");
            }
        }
    }

    /// Two bags, two steps, by hand: rows are alike, so that it does not matter which are picked.
    #[test]
    fn targets_go_by_the_bags_own_size_and_steps_by_the_mean() {
        let rows = Rows::dense(Array2::from_elem((6, 1), 2.0_f32)).unwrap();
        let partition = Partition::new(6, [vec![0, 1, 2, 3], vec![4, 5]]).unwrap();
        let bags = Bags::binary(partition, &[3.0, 1.0], Noise::None).unwrap();
        let prior = LabelPrior::binary(0.25).unwrap();
        let targets = [0.25 + 4.0 * (0.75 - 0.25), 0.25 + 2.0 * (0.5 - 0.25)];
        let (mut weight, mut intercept) = (0.0, 0.0);
        for (bag, t) in order(2, 5).into_iter().zip([1.0_f64, 2.0]) {
            let slope = 2.0 * (2.0 * weight + intercept - targets[bag as usize]);
            let size = 1.0 / (3.0 * t.sqrt());
            weight -= size * slope * 2.0;
            intercept -= size * slope;
        }
        let settings = Sgd { steps: Steps::OverSurrogate, ..Sgd::default() };
        let mut model = LinearModel::for_rows(&rows, 2).unwrap();
        let loss = LossName::Squared.training().unwrap();
        let watch = &mut |_| ControlFlow::Continue(());
        OnePass { settings, seed: 5, prior: prior.clone() }
            .fit(&mut model, &rows, &bags, loss, watch)
            .unwrap();
        let got = model.as_vector();
        assert!((got[0] - weight).abs() < 1e-6 && (got[1] - intercept).abs() < 1e-6, "{got:?}");
    }

    /// One bag of four rows, one of them positive. Of 400 seeds about 100 pick each row, and about 100 draw a positive; the
    /// standard deviation is √(400 · ¼ · ¾) = 8.7, and the bounds leave four of them.
    #[test]
    fn rows_are_picked_alike_and_labels_drawn_in_proportion() {
        let rows = Rows::dense(array![[1.0_f32], [2.0], [3.0], [4.0]]).unwrap();
        let partition = Partition::new(4, [[0, 1, 2, 3]]).unwrap();
        let bags = Bags::binary(partition, &[1.0], Noise::None).unwrap();
        let settings = Sgd { labels: Labels::Surrogate, steps: Steps::Given, ..Sgd::default() };
        let (mut picked, mut n_positives) = ([0; 4], 0);
        for seed in 0..400 {
            let mut model = LinearModel::for_rows(&rows, 2).unwrap();
            pass(&settings, seed, &mut model, &rows, &bags, LossName::Squared).unwrap();
            // The step is 2 A x, and A is ¼ + 4 (1 − ¼) or ¼ − 4 · ¼.
            let [weight, intercept] = model.as_vector()[..] else { panic!("two parameters") };
            let row = (0..4).find(|&row| (weight / intercept - f64::from(row + 1)).abs() < 1e-6).unwrap();
            picked[usize::try_from(row).unwrap()] += 1;
            let is_positive = intercept > 0.0;
            let target = if is_positive { 3.25 } else { -0.75 };
            assert!((intercept - 2.0 * target).abs() < 1e-6);
            n_positives += i32::from(is_positive);
        }
        assert!(
            picked.iter().chain([&n_positives]).all(|n: &i32| (n - 100).abs() < 35),
            "{picked:?} {n_positives}"
        );
    }

    #[test]
    fn an_order_has_every_bag_once() {
        let mut sorted = order(100, 3);
        assert_ne!(sorted, order(100, 4));
        sorted.sort_unstable();
        assert_eq!(sorted, (0..100).collect::<Vec<u32>>());
    }

    #[test]
    fn refuses_what_it_cannot_learn_from_and_leaves_the_model_alone() {
        let rows = Rows::dense(array![[0.5_f32], [2.0], [1.0], [-1.0]]).unwrap();
        let exact = in_pairs(2, &[1.0, 2.0], Noise::None);
        let noisy = in_pairs(2, &[-0.5, 1.0], Noise::Laplace(vec![1.0; 2]));
        let surrogate = Sgd { labels: Labels::Surrogate, ..Sgd::default() };
        let mut model = LinearModel::for_rows(&rows, 2).unwrap();
        let mut refused = |settings: &Sgd, bags: &Bags, loss| {
            let refused = pass(settings, 1, &mut model, &rows, bags, loss).unwrap_err();
            assert_eq!(model, LinearModel::for_rows(&rows, 2).unwrap());
            refused
        };
        let logistic = LossName::Logistic;
        assert_eq!(refused(&Sgd::default(), &exact, LossName::Hinge), Error::NotConvex { loss: "hinge" });
        assert_eq!(refused(&surrogate, &noisy, logistic), Error::NoSurrogate { bag: 0, proportion: 1.25 });
        let bad = Sgd { domain: Domain::Ball(f64::NAN), ..Sgd::default() };
        assert!(matches!(refused(&bad, &exact, logistic), Error::Setting { .. }));
        // Numbers that are too large for the model, and NaN.
        for scale in [1e60, 1e200] {
            let wild = Sgd { scale, ..Sgd::default() };
            assert!(matches!(refused(&wild, &exact, LossName::Squared), Error::Diverged { epoch: 1, .. }));
        }
        let one = exact.select(&[0]).unwrap();
        let mut other = LinearModel::for_rows(&rows, 3).unwrap();
        assert!(matches!(
            pass(&Sgd::default(), 1, &mut other, &rows, &one, logistic).unwrap_err(),
            Error::Shape { .. }
        ));
        assert!(pass(&Sgd::default(), 1, &mut model, &rows, &noisy, logistic).is_ok());
    }

    #[test]
    fn a_caller_may_break_it_off_and_keeps_what_is_learnt() {
        let rows = table(2000);
        let labels: Vec<u32> = (0..2000).map(|row| row % 2).collect();
        let mut model = LinearModel::for_rows(&rows, 2).unwrap();
        let prior = LabelPrior::binary(0.5).unwrap();
        let mut seen = Vec::new();
        let mut watch = |progress| {
            seen.push(progress);
            if seen.len() == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let settings = Sgd { iterate: Iterate::Average, ..Sgd::default() };
        let loss = LossName::Logistic.training().unwrap();
        let log = OnePass { settings, seed: 1, prior }
            .fit(&mut model, &rows, &singles(&labels, 2), loss, &mut watch)
            .unwrap();
        assert_eq!((log.stopped, log.epochs.len()), (Stop::Interrupted, 0));
        assert_eq!(seen[1], Progress::Batch { epoch: 1, rows_done: 256, n_rows: 2000 });
        assert_ne!(model, LinearModel::for_rows(&rows, 2).unwrap());
    }
}
