use super::*;
use crate::Noise;
use crate::bags::Partition;
use crate::correction::{BagWeights, Correction};
use crate::link::Link;
use crate::method::Batches;
use crate::predictions::Predictions;
use ndarray::array;

/// Of pairs of rows it is known how many are positive, which they are where the first feature is 1.
fn pairs(n_bags: usize) -> (Rows<'static>, Bags) {
    let labels: Vec<u32> = (0..2 * n_bags).map(|row| u32::from(row % 3 == 0)).collect();
    let feature = |(row, column)| match column {
        0 => labels[row] as f32,
        _ => (row % 5) as f32,
    };
    let rows = Rows::dense(Array2::from_shape_fn((labels.len(), 2), feature)).unwrap();
    let partition = bagging::random(labels.len(), &bagging::Sizes::Fixed(2), 3).unwrap();
    (rows, Bags::from_labels(partition, &labels, 2).unwrap())
}

fn go_on(_: Doing) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

#[test]
fn settings_that_do_not_go_together_are_refused() {
    let recipe = Recipe::default();
    let choices = Choices::default();
    let by_bags = Choices { batches: Some(Batches::Bags), ..Choices::default() };
    let count = NonZeroUsize::new(2);
    let refused = [
        Recipe { method: MethodName::EasyLlpSgd, epochs: count, ..recipe.clone() },
        Recipe { l2: Some(Penalty::Auto), epochs: count, ..recipe.clone() },
        Recipe { holdout: 0.0, ..recipe.clone() },
        Recipe { choices: Choices { epsilon: Some(1.0), ..choices.clone() }, ..recipe.clone() },
        Recipe { choices: Choices { rebag: count, ..choices.clone() }, ..recipe.clone() },
        Recipe { method: MethodName::Event, ..recipe.clone() },
        Recipe {
            choices: Choices { targets: Some(TargetsName::Surrogate), ..by_bags.clone() },
            ..recipe.clone()
        },
        Recipe {
            choices: Choices { bag_weights: Some(BagWeights::Size), ..by_bags.clone() },
            ..recipe.clone()
        },
    ];
    for recipe in refused {
        assert!(matches!(recipe.check(false), Err(Error::Misfit { .. })), "{recipe:?}");
    }
    recipe.check(false).unwrap();
    Recipe { choices: by_bags, ..recipe.clone() }.check(false).unwrap();
    Recipe { choices: Choices { rebag: count, ..choices }, ..recipe }.check(true).unwrap();
}

#[test]
fn what_is_given_is_what_is_trained() {
    let (rows, bags) = pairs(30);
    let recipe = Recipe { l2: Some(Penalty::Value(0.1)), holdout: 0.0, ..Recipe::default() };
    let fitted = recipe.fit(&rows, &bags, None, &mut go_on).unwrap();
    assert!(fitted.held_out.is_none());

    let form = RowsForm { n_dense: 2, cardinalities: &[], image: None };
    let mut model = ModelName::Linear.build(form, 2, 1).unwrap();
    let optimizer = Optimizer::Lbfgs(Lbfgs { l2: 0.1, ..Lbfgs::default() });
    let loss = LossName::Logistic.training().unwrap();
    Trainer { optimizer, seed: 1 }.fit(&mut model, &rows, &mut crate::EasyLlp::new(&bags), loss).unwrap();
    assert_eq!(fitted.model, model);
}

#[test]
fn held_out_bags_choose_and_all_bags_are_learnt_from() {
    let (rows, bags) = pairs(100);
    let mut trainings = Vec::new();
    let mut watch = |doing: Doing| {
        if let Doing::Begins { what, rows, .. } = doing {
            trainings.push((what.to_owned(), rows));
        }
        ControlFlow::Continue(())
    };
    let fitted = Recipe::default().fit(&rows, &bags, None, &mut watch).unwrap();
    assert!((4..=9).contains(&trainings.len()), "{trainings:?}");
    assert!(trainings[0].0.starts_with("penalty 1 of at most 8 (l2 "), "{trainings:?}");
    assert_eq!(trainings[0].1, 160);
    assert_eq!(trainings.last(), Some(&("all bags".to_owned(), 200)));
    let held_out = fitted.held_out.unwrap();
    assert_eq!((held_out.bags.n_bags(), held_out.n_others), (20, 80));
    let Optimizer::Lbfgs(lbfgs) = fitted.optimizer else { panic!("no penalty") };
    assert!(PENALTIES.iter().any(|penalty| (penalty / 100.0 - lbfgs.l2).abs() < 1e-12));

    let epochs = NonZeroUsize::new(30);
    let recipe = Recipe { epochs, lr: Some(0.1), ..Recipe::default() };
    let fitted = recipe.fit(&rows, &bags, None, &mut go_on).unwrap();
    let best = fitted.held_out.unwrap().log.best.unwrap().0;
    assert_eq!(fitted.log.epochs.len(), best);
}

/// A round of these methods is a whole training: the rounds that held-out bags chose are gone through again, each with the epochs that were
/// asked for.
#[test]
fn rounds_are_not_epochs() {
    let (rows, bags) = pairs(100);
    let (epochs, rounds) = (NonZeroUsize::new(3), NonZeroUsize::new(6));
    for method in [MethodName::LlpEm, MethodName::AlternatingMeanMap] {
        for epochs in [epochs, None] {
            let choices = Choices { rounds, ..Choices::default() };
            let l2 = Some(Penalty::Value(0.01));
            let recipe = Recipe { method, choices, l2, epochs, ..Recipe::default() };
            let fitted = recipe.fit(&rows, &bags, None, &mut go_on).unwrap();
            let (best, _) = fitted.held_out.as_ref().unwrap().log.best.unwrap();
            assert!(fitted.log.epochs.len() <= best, "{method}: {best}");
            match &fitted.optimizer {
                Optimizer::Adam(adam) => assert_eq!(Some(adam.epochs), epochs.map(NonZeroUsize::get)),
                other => assert!(epochs.is_none() && matches!(other, Optimizer::Lbfgs(_))),
            }
            let told = recipe.settings(&bags, &fitted);
            assert!(told.contains(&("rounds".into(), fitted.log.epochs.len().to_string())), "{told:?}");
        }
    }
}

#[test]
fn labels_that_are_drawn_in_every_epoch_have_epochs() {
    let choices = |targets| Choices { targets: Some(targets), ..Choices::default() };
    let plan = |targets| Recipe { choices: choices(targets), ..Recipe::default() }.plan().unwrap();
    assert!(matches!(plan(TargetsName::FreshSurrogate), Plan::Given(Optimizer::Adam(_))));
    assert!(matches!(plan(TargetsName::Surrogate), Plan::BestPenalty));
}

#[test]
fn a_pass_has_the_papers_steps_or_those_asked_for() {
    use crate::optim::sgd::Steps;
    let steps = |targets, steps| {
        let choices = Choices { targets, steps, ..Choices::default() };
        let recipe = Recipe { method: MethodName::EasyLlpSgd, choices, ..Recipe::default() };
        match recipe.plan().unwrap() {
            Plan::Given(Optimizer::Sgd(sgd)) => sgd.steps,
            _ => panic!("one pass"),
        }
    };
    assert_eq!(steps(None, None), Steps::OverSoft);
    assert_eq!(steps(Some(TargetsName::Surrogate), None), Steps::OverSurrogate);
    assert_eq!(steps(None, Some(Steps::Given)), Steps::Given);
    assert_eq!("given".parse::<Steps>().unwrap(), Steps::Given);
}

#[test]
fn a_caller_may_break_off_and_few_bags_are_refused() {
    let (rows, bags) = pairs(30);
    let mut n_events = 0;
    let mut watch = |_: Doing| {
        n_events += 1;
        if n_events == 7 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    assert_eq!(Recipe::default().fit(&rows, &bags, None, &mut watch).unwrap_err(), Error::BrokenOff);
    assert_eq!(n_events, 7);

    let rows = Rows::dense(array![[0.0_f32], [1.0], [0.0]]).unwrap();
    let partition = Partition::new(3, [[0], [1], [2]]).unwrap();
    let bags = Bags::binary(partition, &[0.0, 1.0, 0.0], Noise::None).unwrap();
    let error = Recipe::default().fit(&rows, &bags, None, &mut go_on).unwrap_err();
    assert_eq!(error, Error::TooFewHeldOut { holdout: 0.2, n_bags: 3, n_held_out: 1 });
}

/// Rows with two features, of which the first tells the label with this probability, in bags of this size.
fn simulated(n_rows: usize, share: f64, size: usize, seed: u64) -> (Rows<'static>, Vec<u32>, Partition) {
    use rand::{RngExt, SeedableRng};
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
    let labels: Vec<u32> = (0..n_rows).map(|_| u32::from(rng.random::<f64>() < share)).collect();
    let mut feature = |(row, column): (usize, usize)| {
        let noise: f32 = (0..4).map(|_| rng.random::<f32>() - 0.5).sum();
        noise + if column == 0 { labels[row] as f32 } else { 0.0 }
    };
    let features = Array2::from_shape_fn((n_rows, 4), &mut feature);
    let partition = bagging::random(n_rows, &bagging::Sizes::Fixed(size), seed).unwrap();
    (Rows::dense(features).unwrap(), labels, partition)
}

/// Weights are finite, and the optimiser says that it found a minimum.
fn assert_sound(fitted: &Fitted, what: &str) {
    let linear = fitted.model.as_linear().unwrap();
    let weights = linear.weights();
    let mut parameters = weights.iter().chain(linear.intercept());
    assert!(parameters.all(|value| value.is_finite()), "{what}: {weights}");
    assert!(matches!(fitted.log.stopped, Stop::Converged | Stop::Flat), "{what}: {:?}", fitted.log.stopped);
}

/// A known prior and drawn labels carry the mean target out of (0, 1) in most of these fits: log loss has no minimum then, unless
/// targets are shifted.
#[test]
fn a_mean_target_outside_zero_to_one_still_gives_a_model() {
    let prior = Some(LabelPrior::binary(0.5).unwrap());
    let drawn = Some(TargetsName::Surrogate);
    let l2 = Some(Penalty::Value(0.1));
    let mut n_outside = 0;
    for seed in 0..20 {
        let (rows, labels, partition) = simulated(1000, 0.5, 50, seed);
        let bags = Bags::from_labels(partition, &labels, 2).unwrap();
        for choices in [
            Choices { prior: prior.clone(), ..Choices::default() },
            Choices { targets: drawn, ..Choices::default() },
            Choices { prior: prior.clone(), targets: drawn, ..Choices::default() },
        ] {
            let recipe = Recipe { choices, l2, holdout: 0.0, seed, ..Recipe::default() };
            let fitted = recipe.fit(&rows, &bags, None, &mut go_on).unwrap();
            assert_sound(&fitted, &format!("seed {seed}, {:?}", recipe.choices));
            let mean =
                Correction::Paper(prior.clone().unwrap()).soft(&bags).unwrap().values().mean().unwrap();
            n_outside += usize::from(!(0.0..=1.0).contains(&mean));
            // On average the model says what the prior says, and the feature still counts for the label.
            let linear = fitted.model.as_linear().unwrap();
            assert!(linear.weights()[[0, 0]].is_normal() && linear.intercept()[[0, 0]].abs() < 20.0);
        }
    }
    assert!(n_outside > 20, "{n_outside}");
}

/// Noise on counts of a rare class makes the pooled share negative in some of these fits.
#[test]
fn noisy_reports_of_a_rare_class_still_give_a_model() {
    let mut n_negative = 0;
    for seed in 0..20 {
        let (rows, labels, partition) = simulated(1000, 0.005, 10, seed);
        let exact = Bags::from_labels(partition, &labels, 2).unwrap();
        let bags = bagging::add_noise(&exact, Noise::Laplace(vec![5.0; exact.n_bags()]), seed).unwrap();
        n_negative += usize::from(bags.pooled_proportions()[1] < 0.0);
        for holdout in [0.0, 0.2] {
            let l2 = Some(Penalty::Value(0.1));
            let recipe = Recipe { l2, holdout, seed, ..Recipe::default() };
            let fitted = recipe.fit(&rows, &bags, None, &mut go_on).unwrap();
            assert_sound(&fitted, &format!("seed {seed}, holdout {holdout}"));
        }
    }
    assert!(n_negative > 3, "{n_negative}");
}

/// Means outside (0, 1) of several classes, by a known prior that is far off.
#[test]
fn several_classes_still_give_a_model() {
    for seed in 0..10 {
        let (rows, labels, partition) = simulated(600, 0.3, 30, seed);
        let labels: Vec<u32> =
            labels.iter().enumerate().map(|(row, label)| label + u32::from(row % 4 == 0)).collect();
        let bags = Bags::from_labels(partition, &labels, 3).unwrap();
        let prior = Some(LabelPrior::known(vec![0.2, 0.3, 0.5]).unwrap());
        let choices = Choices { prior, ..Choices::default() };
        let l2 = Some(Penalty::Value(0.1));
        let recipe = Recipe { choices, l2, holdout: 0.0, seed, ..Recipe::default() };
        assert_sound(&recipe.fit(&rows, &bags, None, &mut go_on).unwrap(), &format!("seed {seed}"));
    }
}

/// The Brier score that validation bags report, less that of the same predictions against the labels of the same rows: its mean over
/// 100 fits is zero within 3.5 standard errors. `benches/validation.rs` has more fits, and what it was when the bags that chose the
/// penalty reported, too.
#[test]
fn validation_metrics_do_not_flatter() {
    let first = std::env::var("EASYLLP_TEST_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0);
    for (share, noise) in [(0.5, None), (0.12, None), (0.5, Some(2.0))] {
        let differences: Vec<f64> = (0..100)
            .map(|fit| {
                let seed = 1000 * first + fit;
                let (rows, labels, partition) = simulated(1600, share, 16, seed);
                let exact = Bags::from_labels(partition, &labels, 2).unwrap();
                let noise = noise.map_or(Noise::None, |scale| Noise::Laplace(vec![scale; exact.n_bags()]));
                let bags = bagging::add_noise(&exact, noise, seed).unwrap();
                let recipe = Recipe { seed, ..Recipe::default() };
                let held_out = recipe.fit(&rows, &bags, None, &mut go_on).unwrap().held_out.unwrap();
                let predictions =
                    Predictions::new(held_out.scores.as_ref().unwrap().view(), Link::Logit).unwrap();
                let labels: Vec<u32> = held_out.rows.iter().map(|&row| labels[row as usize]).collect();
                let figures = held_out.figures(Link::Logit).unwrap().unwrap();
                let (_, reported) = figures.iter().find(|(name, _)| *name == "Brier").unwrap();
                reported.value - crate::metrics::brier(&predictions, &labels).unwrap()
            })
            .collect();
        let n = differences.len() as f64;
        let mean = differences.iter().sum::<f64>() / n;
        let variance = differences.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / (n - 1.0);
        let t = mean / (variance / n).sqrt();
        assert!(t.abs() < 3.5, "share {share}, noise {noise:?}: {mean:.4}, {t:.1} standard errors");
    }
}

#[test]
fn few_validation_bags_choose_but_do_not_evaluate_what_they_chose() {
    let (rows, bags) = pairs(15);
    let fitted = Recipe::default().fit(&rows, &bags, None, &mut go_on).unwrap();
    let held_out = fitted.held_out.unwrap();
    assert_eq!(held_out.bags.n_bags(), 3);
    assert!(held_out.scores.is_none());
    // With nothing to choose, all bags may evaluate.
    let recipe = Recipe { l2: Some(Penalty::Value(0.1)), ..Recipe::default() };
    let held_out = recipe.fit(&rows, &bags, None, &mut go_on).unwrap().held_out.unwrap();
    assert_eq!((held_out.n_candidates, held_out.scores.unwrap().nrows()), (1, 6));
}
