use super::*;
use crate::Noise;
use crate::bags::Partition;
use crate::correction::BagWeights;
use crate::method::Batches;
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
    assert_eq!(trainings.len(), 9);
    assert_eq!(trainings[0], ("penalty 1 of 8".to_owned(), 160));
    assert_eq!(trainings[8], ("all bags".to_owned(), 200));
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
