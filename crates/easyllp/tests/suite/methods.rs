//! What every method keeps to.

use crate::rounding::Sum;
use crate::simulation::{normal, seed};
use easyllp::method::{
    AlternatingMeanMap, BagObjective, CountLikelihood, DebiasedSquare, Distance, EasyLlpByBag,
    LabelGeneration, LaplacianMeanMap, LlpEm, MeanMap, MethodConfig, Naive, NonNegative, Positive,
    ProportionMatching, Rounds, Supervised,
};
use easyllp::model::Hidden;
use easyllp::{
    Bags, Error, Noise, Partition, Predictions, Rows, Session, bagging,
    classes::n_columns,
    correction::{Correction, Targets},
    loss::{Link, LossName},
    method::{EasyLlp, TargetRule},
    metrics,
    model::{LinearModel, Mlp, Model, Scorer},
    optim::{Adam, Lbfgs},
    train::{Optimizer, Trainer},
};
use ndarray::{Array2, Axis};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

fn objectives(bags: &Bags) -> Vec<(&'static str, Box<dyn BagObjective + '_>)> {
    let loss = LossName::cross_entropy(bags.n_classes()).training().unwrap();
    vec![
        ("matching", Box::new(ProportionMatching::new(bags, Distance::CrossEntropy))),
        ("matching, squared", Box::new(ProportionMatching::new(bags, Distance::Squared))),
        ("debiased square", Box::new(DebiasedSquare::new(bags))),
        ("count likelihood", Box::new(CountLikelihood::new(bags))),
        ("whole labels", Box::new(LabelGeneration::new(bags, NonNegative::ZERO))),
        ("soft labels", Box::new(LabelGeneration::new(bags, NonNegative::new(0.4).unwrap()))),
        ("easyllp by bag", Box::new(EasyLlpByBag::new(bags, &Correction::default(), loss).unwrap())),
    ]
}

fn examples() -> Vec<(Bags, usize)> {
    let partition = Partition::new(9, [vec![0, 3, 4], vec![1], vec![2, 5, 6, 7, 8]]).unwrap();
    let two = Bags::binary(partition.clone(), &[1.0, 1.0, 3.0], Noise::None).unwrap();
    let noisy = Bags::binary(partition.clone(), &[1.7, 0.4, 2.2], Noise::Laplace(vec![0.7; 3])).unwrap();
    let three = Bags::from_labels(partition, &[0, 1, 2, 1, 0, 2, 2, 1, 0], 3).unwrap();
    vec![(two, 1), (noisy, 1), (three, 3)]
}

#[expect(clippy::cast_possible_truncation, reason = "scores are f32")]
fn scores(n_rows: usize, n_scores: usize, seed: u64) -> Array2<f32> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    Array2::from_shape_simple_fn((n_rows, n_scores), || 1.5 * normal(&mut rng) as f32)
}

#[test]
fn derivatives_equal_finite_differences() {
    for (bags, n_scores) in examples() {
        for (name, mut objective) in objectives(&bags) {
            // A running mean that is not the pooled share.
            objective.after_batch(scores(20, n_scores, 3).view());
            objective.before_batch(&[0, 1, 2]);
            for bag in 0..bags.n_bags() {
                let scores = scores(bags.size(bag), n_scores, bag as u64);
                let mut slopes = Array2::zeros(scores.dim());
                objective.bag(bag, scores.view(), slopes.view_mut());
                for (place, &slope) in slopes.indexed_iter() {
                    let shifted = |step: f32| {
                        let mut scores = scores.clone();
                        scores[place] += step;
                        objective.bag(bag, scores.view(), Array2::zeros(scores.dim()).view_mut())
                    };
                    let difference = (shifted(0.005) - shifted(-0.005)) / 0.01;
                    assert!(
                        (difference - f64::from(slope)).abs() < 1e-3 * (1.0 + difference.abs()),
                        "{name}, bag {bag}, {place:?}: {slope} {difference}"
                    );
                }
            }
        }
    }
}

/// Loss and derivative of all rows, of a method by its name, at these scores (a line per row); an alternating method is
/// evaluated on its next labels. There is none if rows are picked at random.
fn of_all_rows(
    method: &MethodConfig,
    rows: &Rows,
    bags: &Bags,
    scores: &Array2<f32>,
) -> Option<(f64, Array2<f32>)> {
    let loss = LossName::cross_entropy(bags.n_classes()).training().unwrap();
    let mut slopes = Array2::zeros(scores.dim());
    let by_targets = |targets: &Targets| {
        let mut slopes = Array2::zeros(scores.dim());
        let loss = loss.corrected_batch(scores.view(), targets.values(), slopes.view_mut());
        Some((loss, slopes))
    };
    let by_rule = |rule: &mut dyn TargetRule| {
        let mut targets = Targets::zeros(bags.n_rows(), bags.n_classes());
        rule.targets(0, &mut targets).unwrap();
        by_targets(&targets)
    };
    let of_bag = |bag: usize| {
        let members: Vec<usize> = bags.members(bag).iter().map(|&row| row as usize).collect();
        let scores = scores.select(Axis(0), &members);
        (members, scores)
    };
    let by_rounds = |method: &dyn Rounds| {
        let mut targets = Targets::zeros(bags.n_rows(), bags.n_classes());
        for bag in 0..bags.n_bags() {
            let (members, scores) = of_bag(bag);
            let mut out = Array2::zeros(scores.dim());
            method.again(bag, scores.view(), out.view_mut());
            for (row, line) in members.into_iter().zip(out.rows()) {
                targets.values_mut().row_mut(row).assign(&line);
            }
        }
        by_targets(&targets)
    };
    let mut by_objective = |objective: &mut dyn BagObjective| {
        let all: Vec<u32> = (0..).take(bags.n_bags()).collect();
        objective.before_batch(&all);
        let mut sum = 0.0;
        for bag in 0..bags.n_bags() {
            let (members, scores) = of_bag(bag);
            let mut derivative = Array2::zeros(scores.dim());
            sum += objective.bag(bag, scores.view(), derivative.view_mut());
            for (row, line) in members.into_iter().zip(derivative.rows()) {
                slopes.row_mut(row).assign(&line);
            }
        }
        Some((sum, slopes.clone()))
    };
    match method {
        MethodConfig::Supervised(_) | MethodConfig::Naive(_) => by_rule(&mut Naive::new(bags)),
        MethodConfig::EasyLlp(_) => by_rule(&mut EasyLlp::new(bags)),
        MethodConfig::Auto(_) | MethodConfig::EasyLlpSgd(_) => None,
        MethodConfig::MeanMap(_) => by_rule(&mut MeanMap::new(bags)),
        MethodConfig::LaplacianMeanMap(_) => {
            by_rule(&mut LaplacianMeanMap::new(bags, rows, Positive::new(1.0).unwrap()).unwrap())
        }
        MethodConfig::LabelGeneration(params) => {
            by_objective(&mut LabelGeneration::new(bags, params.epsilon))
        }
        MethodConfig::ProportionMatching(_) => {
            by_objective(&mut ProportionMatching::new(bags, Distance::CrossEntropy))
        }
        MethodConfig::DebiasedSquare(_) => by_objective(&mut DebiasedSquare::new(bags)),
        MethodConfig::CountLikelihood(_) => by_objective(&mut CountLikelihood::new(bags)),
        MethodConfig::LlpEm(_) => by_rounds(&LlpEm::new(bags)),
        MethodConfig::AlternatingMeanMap(_) => by_rounds(&AlternatingMeanMap::new(bags, MeanMap::new(bags))),
    }
}

/// Whether two objectives of all rows, and their derivatives, are the same at these scores up to rounding: targets and derivatives are f32,
/// and a row adds about 1, and its derivative times its score, to an objective that may be near 0.
fn is_same(one: &(f64, Array2<f32>), other: &(f64, Array2<f32>), scores: &Array2<f32>) -> bool {
    let added = one.1.iter().zip(scores).flat_map(|(&slope, &score)| [1.0, f64::from(slope * score)]);
    let size = added.collect::<Sum>().total_size();
    let is_near = |a: f32, b: f32| (a - b).abs() < 1e-4 * (1.0 + a.abs());
    (one.0 - other.0).abs() <= 1e-6 * size && one.1.iter().zip(&other.1).all(|(&a, &b)| is_near(a, b))
}

/// The same bags, in another order and with their rows in another order.
fn permuted(bags: &Bags, labels: &[u32], seed: u64) -> Bags {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut members: Vec<Vec<u32>> = (0..bags.n_bags()).map(|bag| bags.members(bag).to_vec()).collect();
    for members in &mut members {
        members.shuffle(&mut rng);
    }
    members.shuffle(&mut rng);
    Bags::from_labels(Partition::new(bags.n_rows(), members).unwrap(), labels, bags.n_classes()).unwrap()
}

/// Over all ways to deal four rows into two bags of two, its mean is the squared error of the rows.
#[test]
fn the_debiased_square_is_that_of_rows() {
    let labels = [1, 0, 0, 1];
    let scores = Array2::from_shape_vec((4, 1), vec![1.0_f32, -0.4, 0.3, 2.0]).unwrap();
    let probability = |row: usize| 1.0 / (1.0 + f64::from(-scores[[row, 0]]).exp());
    let truth: f64 = (0..4).map(|row| (f64::from(labels[row]) - probability(row)).powi(2)).sum::<f64>() / 4.0;
    // Rows are drawn one by one from an endless supply of these four: every choice of two is a bag.
    let mut mean = 0.0;
    for first in 0..4 {
        for second in 0..4 {
            let of_bag = ndarray::stack![ndarray::Axis(0), scores.row(first), scores.row(second)];
            // The other bag has all four, so that the pooled share is that of the supply.
            let partition = Partition::new(2 + 4 * 50, [vec![0, 1], (2..202).collect()]).unwrap();
            let count = f64::from(labels[first] + labels[second]);
            let bags = Bags::binary(partition, &[count, 101.0 - count], Noise::None).unwrap();
            let mut objective = DebiasedSquare::new(&bags);
            for _ in 0..400 {
                objective.after_batch(scores.view());
            }
            mean += objective.bag(0, of_bag.view(), Array2::zeros((2, 1)).view_mut()) / 16.0;
        }
    }
    assert!((mean - truth).abs() < 1e-4, "{mean} {truth}");
}

/// Two features; of two classes their sum decides, of three the direction in which they lie.
#[expect(clippy::cast_possible_truncation, reason = "features are f32")]
fn separable(n_rows: usize, n_classes: usize, seed: u64) -> (Rows<'static>, Vec<u32>) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let features = Array2::from_shape_simple_fn((n_rows, 2), || normal(&mut rng) as f32);
    let label = |row: ndarray::ArrayView1<f32>| match n_classes {
        2 => u32::from(row[0] + row[1] > 0.4),
        _ if row[0] > row[1].abs() => 0,
        _ => 1 + u32::from(row[1] > 0.0),
    };
    let labels = features.rows().into_iter().map(label).collect();
    (Rows::dense(features).unwrap(), labels)
}

fn trainer(epochs: usize) -> Trainer {
    let settings = Adam { epochs, batch_size: 64, learning_rate: 0.02, ..Adam::default() };
    Trainer { optimizer: Optimizer::Adam(settings), seed: 2 }
}

fn accuracy(model: &LinearModel, rows: &Rows, labels: &[u32]) -> f64 {
    let scores = model.scores(rows).unwrap();
    metrics::accuracy(&Predictions::new(scores.view(), Link::Logit).unwrap(), labels).unwrap()
}

/// The method with this name and what the contract sets of its parameters.
fn of_contract(method: &MethodConfig) -> MethodConfig {
    let words = match method {
        // Bags that are dealt have the same class means, and may be held together closely.
        MethodConfig::LaplacianMeanMap(_) => "laplacian-mean-map:smoothness=10",
        MethodConfig::LlpEm(_) => "llp-em:rounds=12",
        MethodConfig::AlternatingMeanMap(_) => "alternating-mean-map:rounds=12",
        MethodConfig::EasyLlpSgd(_) => "easyllp-sgd:iterate=average",
        other => return other.clone(),
    };
    words.parse().unwrap()
}

/// A model that a method trains on all bags.
fn run<M: Model + Clone + 'static>(
    method: &MethodConfig,
    model: M,
    rows: &Rows,
    bags: &Bags,
    loss: LossName,
    optimizer: Optimizer,
) -> easyllp::Result<M> {
    let mut session = Session::new(model, rows, bags, loss.training()?);
    session.set_optimizer(optimizer);
    session.set_seed(2);
    session.set_learning_rate(Some(5.0));
    session.run(method)?;
    Ok(session.finish().0)
}

fn learnt(method: &MethodConfig, rows: &Rows, bags: &Bags) -> LinearModel {
    let model = LinearModel::for_rows(rows, bags.n_classes()).unwrap();
    let trainer = match method {
        // Every round is a training run.
        MethodConfig::LlpEm(_) | MethodConfig::AlternatingMeanMap(_) => trainer(4),
        _ => trainer(20),
    };
    run(method, model, rows, bags, LossName::cross_entropy(bags.n_classes()), trainer.optimizer).unwrap()
}

fn dealt(labels: &[u32], n_classes: usize, size: usize) -> Bags {
    let partition = bagging::random(labels.len(), &bagging::Sizes::Fixed(size), seed()).unwrap();
    Bags::from_labels(partition, labels, n_classes).unwrap()
}

/// The contract, of two classes and of three: at k = 4 a separable task is learnt to within two points of supervision, on other rows (but
/// by the naive method); bags of one are supervision; the order of rows and bags is nothing; a second training gives the same bytes.
/// Three classes have twice as much to learn, and more rows to learn it from.
///
/// `cargo test --test suite contract -- --nocapture` prints the table. Passes on 20 of the seeds 0 to 19.
#[test]
fn contract() {
    let mut table = String::from(
        "| method | classes | accuracy | supervised | bags of one | any order |\n|---|---|---|---|---|---|\n",
    );
    let mut failures = Vec::new();
    for (n_classes, n_rows) in [(2, 16_000), (3, 64_000)] {
        let (rows, labels) = separable(n_rows, n_classes, 3 * seed());
        let (other_rows, other_labels) = separable(16_000, n_classes, 3 * seed() + 1);
        let of_one = dealt(&labels, n_classes, 1);
        let supervised = learnt(&"supervised".parse().unwrap(), &rows, &of_one);
        let best = accuracy(&supervised, &other_rows, &other_labels);
        let bags = dealt(&labels, n_classes, 4);
        let scores = scores(n_rows, n_columns(n_classes), 9);
        let of_method = |method: &MethodConfig| {
            let method = &of_contract(method);
            let mut failures = Vec::new();
            let mut fails = |what: &str| failures.push(format!("{method}, {n_classes} classes: {what}"));
            // One pass needs more bags.
            let (many_rows, many_bags);
            let (rows, bags) = match method {
                MethodConfig::Supervised(_) => (&rows, &of_one),
                MethodConfig::EasyLlpSgd(_) => {
                    let labels;
                    (many_rows, labels) = separable(200_000, n_classes, 3 * seed() + 2);
                    many_bags = dealt(&labels, n_classes, 4);
                    (&many_rows, &many_bags)
                }
                _ => (&rows, &bags),
            };
            let model = learnt(method, rows, bags);
            if model != learnt(method, rows, bags) {
                fails("a second training has other bytes");
            }
            let got = accuracy(&model, &other_rows, &other_labels);
            if got < best - 0.02 && method.name() != "naive" {
                fails(&format!("accuracy {got}, supervised {best}"));
            }
            // Even where all rows are alike, as they are before a linear model has learnt anything.
            let is_nothing_at = |scores: &Array2<f32>| {
                let other = || of_all_rows(method, rows, &permuted(bags, &labels, 5), scores).unwrap();
                of_all_rows(method, rows, bags, scores).map(|one| is_same(&one, &other(), scores))
            };
            let is_order_nothing = is_nothing_at(&scores)
                .zip(is_nothing_at(&Array2::zeros(scores.dim())))
                .map(|(apart, alike)| apart && alike);
            if is_order_nothing == Some(false) {
                fails("order matters");
            }
            let supervision = match method {
                // Neighbours have an effect whatever a bag reports; one pass has no objective of all rows, and stages have several;
                // classes against the rest each are not the log loss of several.
                MethodConfig::LaplacianMeanMap(_) | MethodConfig::EasyLlpSgd(_) | MethodConfig::Auto(_) => {
                    None
                }
                MethodConfig::CountLikelihood(_) if n_classes > 2 => None,
                MethodConfig::DebiasedSquare(_) => Some(brier(&scores, &labels)),
                _ => Some(cross_entropy(&scores, &labels, n_classes)),
            };
            let is_supervision = supervision.map(|expected| {
                is_same(&of_all_rows(method, rows, &of_one, &scores).unwrap(), &expected, &scores)
            });
            if is_supervision == Some(false) {
                fails("bags of one are not supervision");
            }
            let name = method.name();
            let word = |is: Option<bool>| is.map_or("–", |is| if is { "yes" } else { "no" });
            let (of_one, order) = (word(is_supervision), word(is_order_nothing));
            (format!("| {name} | {n_classes} | {got:.3} | {best:.3} | {of_one} | {order} |\n"), failures)
        };
        for (line, failed) in MethodConfig::all().par_iter().map(of_method).collect::<Vec<_>>() {
            table.push_str(&line);
            failures.extend(failed);
        }
    }
    eprintln!("{table}");
    assert!(failures.is_empty(), "{failures:#?}");
}

/// The log loss of labels, and its derivative in scores.
fn cross_entropy(scores: &Array2<f32>, labels: &[u32], n_classes: usize) -> (f64, Array2<f32>) {
    let mut targets = Targets::zeros(labels.len(), n_classes);
    Supervised::new(labels, n_classes).unwrap().targets(0, &mut targets).unwrap();
    let mut slopes = Array2::zeros(scores.dim());
    let loss = LossName::cross_entropy(n_classes).training().unwrap();
    (loss.corrected_batch(scores.view(), targets.values(), slopes.view_mut()), slopes)
}

/// The squared error of probabilities, of class 1 if there are two, and its derivative in scores.
#[expect(clippy::cast_possible_truncation, reason = "derivatives are f32")]
fn brier(scores: &Array2<f32>, labels: &[u32]) -> (f64, Array2<f32>) {
    let (mut sum, mut slopes) = (0.0, Array2::zeros(scores.dim()));
    let mut of_row = |row: usize| {
        let line: Vec<f64> = scores.row(row).iter().map(|&score| f64::from(score)).collect();
        let mut q = vec![0.0; line.len().max(2)];
        Link::Logit.probabilities(&line, &mut q).unwrap();
        let off: Vec<f64> =
            (0..q.len()).map(|class| q[class] - f64::from(u8::from(labels[row] as usize == class))).collect();
        let squares: f64 = off.iter().map(|off| off * off).sum();
        sum += if q.len() == 2 { squares / 2.0 } else { squares };
        (q, off)
    };
    for row in 0..scores.nrows() {
        let (q, off) = of_row(row);
        if q.len() == 2 {
            slopes[[row, 0]] = (2.0 * off[1] * q[1] * (1.0 - q[1])) as f32;
        } else {
            let mean: f64 = q.iter().zip(&off).map(|(q, off)| q * off).sum();
            for (class, slope) in slopes.row_mut(row).iter_mut().enumerate() {
                *slope = (2.0 * q[class] * (off[class] - mean)) as f32;
            }
        }
    }
    (sum, slopes)
}

/// EasyLLP by whole bags, with drawn labels and on regrouped bags, learns as well.
#[test]
fn every_form_of_easyllp_learns() {
    let (rows, labels) = separable(16_000, 2, 3 * seed());
    let (other_rows, other_labels) = separable(16_000, 2, 3 * seed() + 1);
    let (bags, of_one) = (dealt(&labels, 2, 4), dealt(&labels, 2, 1));
    for (words, bags) in [
        ("easyllp:batches=bags", &bags),
        ("easyllp:targets=surrogate", &bags),
        ("easyllp:targets=fresh-surrogate", &bags),
        ("easyllp:rebag=4", &of_one),
    ] {
        let got = accuracy(&learnt(&words.parse().unwrap(), &rows, bags), &other_rows, &other_labels);
        // What is drawn adds to the variance.
        let least = if words.contains("surrogate") { 0.92 } else { 0.96 };
        assert!(got > least, "{words}: {got}");
    }
}

#[test]
fn threads_change_nothing() {
    let (rows, labels) = separable(3000, 2, 4);
    // Batches of more rows than one thread judges.
    let partition = bagging::random(3000, &bagging::Sizes::Range(1..=1200), 3).unwrap();
    let bags = Bags::from_labels(partition, &labels, 2).unwrap();
    let of_one = dealt(&labels, 2, 1);
    let words = ["easyllp:batches=bags", "llp-em:rounds=3", "alternating-mean-map:rounds=3"];
    let words = words.map(|words| words.parse().unwrap());
    for method in MethodConfig::all().into_iter().chain(words) {
        let on = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let bags = if method.name() == "supervised" { &of_one } else { &bags };
            pool.install(|| learnt(&method, &rows, bags))
        };
        assert_eq!(on(1), on(3), "{method}");
    }
}

#[test]
fn refuses_what_it_cannot_train() {
    let (rows, labels) = separable(40, 2, 1);
    let bags =
        Bags::from_labels(bagging::random(40, &bagging::Sizes::Fixed(4), 3).unwrap(), &labels, 2).unwrap();
    let method = |words: &str| words.parse::<MethodConfig>().unwrap();
    let adam = || trainer(1).optimizer;
    let linear = |rows: &Rows| LinearModel::for_rows(rows, 2).unwrap();
    let fit = |optimizer: Optimizer, loss: LossName, rows: &Rows| {
        run(&method("count-likelihood"), linear(rows), rows, &bags, loss, optimizer).unwrap_err()
    };
    assert_eq!(fit(Optimizer::Lbfgs(Lbfgs::default()), LossName::Logistic, &rows), Error::BagsWithoutAdam);
    assert!(matches!(fit(adam(), LossName::Squared, &rows), Error::LogOddsOnly { .. }));
    let network = Mlp::for_rows(&rows, &Hidden::new(&[3]), 2, 1).unwrap();
    let error = run(&method("mean-map"), network, &rows, &bags, LossName::Logistic, adam()).unwrap_err();
    assert_eq!(error, Error::LinearLogLossOnly { method: "mean-map".into() });
    let error =
        run(&method("supervised"), linear(&rows), &rows, &bags, LossName::Logistic, adam()).unwrap_err();
    assert!(matches!(error, Error::RowLabelsOnly { .. }), "{error}");
    let (more_rows, _) = separable(41, 2, 1);
    assert!(matches!(fit(adam(), LossName::Logistic, &more_rows), Error::Shape { .. }));
}

/// Forms that do not go together are refused, never ignored.
#[test]
fn easyllp_refuses_forms_that_do_not_go_together() {
    let (rows, labels) = separable(40, 3, 1);
    let (of_one, of_four) = (dealt(&labels, 3, 1), dealt(&labels, 3, 4));
    for (bags, words) in [
        (&of_four, "easyllp:targets=surrogate,batches=bags"),
        (&of_one, "easyllp:targets=surrogate,rebag=4"),
        (&of_one, "easyllp:batches=bags,rebag=4"),
    ] {
        let model = LinearModel::for_rows(&rows, 3).unwrap();
        let refused =
            run(&words.parse().unwrap(), model, &rows, bags, LossName::Softmax, trainer(1).optimizer);
        assert!(matches!(refused, Err(Error::Config { .. })), "{words}");
    }
    let logistic = LossName::Logistic.training().unwrap();
    let refused = EasyLlpByBag::new(&of_four, &Correction::default(), logistic);
    assert_eq!(refused.err(), Some(Error::BinaryLoss { loss: "logistic", n_classes: 3 }));
}

/// A model that is sure of the opposite learns from a bag of one as from its label.
#[test]
fn matching_has_slopes_for_any_score() {
    let bags = Bags::binary(Partition::new(1, [[0]]).unwrap(), &[1.0], Noise::None).unwrap();
    let mut slope = Array2::zeros((1, 1));
    for score in [-5.0_f32, -20.0, -40.0, -300.0] {
        let scores = Array2::from_elem((1, 1), score);
        let loss =
            ProportionMatching::new(&bags, Distance::CrossEntropy).bag(0, scores.view(), slope.view_mut());
        assert!((loss + f64::from(score)).abs() < 0.01, "{score}: {loss}");
        assert!((slope[[0, 0]] + 1.0).abs() < 0.01, "{score}: {slope}");
    }
}

/// Rows that are too many for the bags, a model of too few scores, a loss of too few classes: the same words from every method.
#[test]
fn every_method_refuses_what_does_not_fit_together() {
    let (rows, labels) = separable(40, 3, 1);
    let (more_rows, _) = separable(41, 3, 1);
    let (of_one, of_four) = (dealt(&labels, 3, 1), dealt(&labels, 3, 4));
    for method in MethodConfig::all() {
        let bags = if method.name() == "supervised" { &of_one } else { &of_four };
        let refused = |rows: &Rows, n_classes, loss: LossName| {
            let model = LinearModel::for_rows(rows, n_classes).unwrap();
            run(&method, model, rows, bags, loss, trainer(1).optimizer).unwrap_err()
        };
        let is_shape = |error: Error| matches!(error, Error::Shape { .. });
        assert!(is_shape(refused(&more_rows, 3, LossName::Softmax)), "{method}: rows");
        assert!(is_shape(refused(&rows, 2, LossName::Softmax)), "{method}: scores");
        let binary = Error::BinaryLoss { loss: "logistic", n_classes: 3 };
        assert_eq!(refused(&rows, 3, LossName::Logistic), binary, "{method}");
    }
}
