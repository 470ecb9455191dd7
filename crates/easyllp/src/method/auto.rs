//! The default method: training in stages, the best of which is chosen on validation bags.
//!
//! EasyLLP finds the signal from any start and at any bag size, but its targets are noisy. Debiased square and count likelihood are
//! precise near a good model, but find nothing from a cold start on large bags. Together they beat either:
//!
//! 1. **easyllp**. A linear model is fitted to convergence with the penalty [`PENALTY`]: on few validation bags a penalty that is chosen
//!    is worse than one that is fixed. A network trains with the Brier loss, which is bounded for any target.
//! 2. **debiased-square**, from there.
//! 3. **count-likelihood**, from there; for networks once more with a lower learning rate.
//!
//! The stage and the epoch with the least Brier score on validation bags are kept, and the same stages are replayed on all bags. A replay
//! under which the counts are less likely than under the model that was chosen is discarded. `docs/guide/methods.md` has the
//! measurements behind the constants.

use super::schema::{About, Assumes, BuiltIn};
use super::{CountLikelihood, DebiasedSquare, Draw, EasyLlp, SupervisedParams};
use crate::aim::{Aim, BagObjective, TargetRule};
use crate::bags::Bags;
use crate::correction::{BagWeights, Correction};
use crate::error::Result;
use crate::loss::{Convexity, Link, LossName};
use crate::optim::Adam;
use crate::session::{Method, Session};
use crate::train::Optimizer;
use ndarray::{Array2, ArrayView2, Axis};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The penalty for a single label of the first stage of a linear model.
const PENALTY: f64 = 20.0;

/// With fewer training bags a network is trained from [`STARTS`] initial weights.
const FEW_BAGS: usize = 100;
const STARTS: usize = 3;

/// With fewer training bags a high learning rate of count likelihood ends at the constant model.
const MANY_BAGS: usize = 150;

/// With fewer training bags later stages have too little to be chosen by.
const FEWEST_BAGS: usize = 20;

/// A stage makes no more steps than these: long epochs need not be many.
const MOST_STEPS: usize = 40_000;

/// Parameters of `auto`: none.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AutoParams {}

impl BuiltIn for AutoParams {
    const ABOUT: About = About {
        name: "auto",
        aliases: &[],
        summary: "easyllp, then debiased-square and count-likelihood from there; the best stage by validation bags",
        bags: Assumes::RandomBags,
        classes: "any",
        cost: "that of its stages",
        reference: "this software",
    };
}

impl Method for AutoParams {
    fn name(&self) -> &str {
        Self::ABOUT.name
    }

    fn penalty(&self) -> Option<f64> {
        Some(PENALTY)
    }

    fn run(&self, session: &mut Session) -> Result<()> {
        let bags = session.bags();
        if bags.have_row_labels() {
            session.note("every bag is a single row: trained as supervised");
            return SupervisedParams::default().run(session);
        }
        let stages = Stages::of(session);
        if session.is_linear() {
            stages.linear(session)?;
        } else {
            stages.network(session)?;
        }
        let loss = |scores: ArrayView2<f32>| Ok(count_loss(bags, scores));
        if stages.has_count_likelihood() && session.revert_worse_replay(&loss)? {
            session.note(
                "counts are less likely after training on all bags: kept the model of the training bags",
            );
        }
        Ok(())
    }
}

/// Which stages there are, and how long epochs are.
struct Stages {
    /// Why there are none after the first, if so.
    first_only: Option<&'static str>,
    is_noisy: bool,
    n_bags: usize,
    /// Steps of an epoch.
    steps: usize,
    /// Adam as the settings have it.
    adam: Adam,
}

impl Stages {
    fn of(session: &Session) -> Self {
        let bags = session.bags();
        let adam = session.adam().cloned().unwrap_or_default();
        let loss = session.loss();
        let first_only = if loss.link() != Link::Logit {
            Some("its scores are not log-odds")
        } else if session.rows().as_sparse().is_some() {
            Some("rows are sparse")
        } else if bags.n_bags() < FEWEST_BAGS {
            Some("there are few bags")
        } else {
            None
        };
        Self {
            first_only,
            is_noisy: (0..bags.n_bags()).any(|bag| bags.noise().variance(bag) > 0.0),
            n_bags: bags.n_bags(),
            steps: bags.n_members().div_ceil(adam.batch_size),
            adam,
        }
    }

    fn has_count_likelihood(&self) -> bool {
        self.first_only.is_none()
    }

    /// Adam with this many epochs, as far as the settings allow it, and a learning rate that is a multiple of theirs.
    fn adam(&self, epochs: usize, rate: f64) -> Optimizer {
        let most = (MOST_STEPS / self.steps).max(1).min(self.adam.epochs);
        let learning_rate = rate * self.adam.learning_rate;
        Optimizer::Adam(Adam { epochs: epochs.min(most), learning_rate, ..self.adam.clone() })
    }

    fn correction(&self) -> Correction {
        Correction::Centred(if self.is_noisy { BagWeights::NoiseAware } else { BagWeights::Equal })
    }

    fn linear(&self, session: &mut Session) -> Result<()> {
        let (bags, loss) = (session.bags(), session.loss());
        let mut rule = EasyLlp::with(bags, self.correction(), Draw::Never);
        session.train("easyllp", Aim::Targets(&mut rule, loss))?;
        self.later(
            session,
            &[Later::DebiasedSquare(20, 1.0), Later::CountLikelihood("count-likelihood", 20, 1.0)],
        )
    }

    fn network(&self, session: &mut Session) -> Result<()> {
        let (bags, loss) = (session.bags(), session.loss());
        let loss = if loss.link() == Link::Logit && loss.convexity() == Convexity::AnyTarget {
            LossName::Brier.training()?
        } else {
            loss
        };
        let first = self.adam(1_000_usize.div_ceil(self.steps).max(5), 1.0);
        let n_starts = if self.n_bags < FEW_BAGS { STARTS } else { 1 };
        session.starts(n_starts, &mut |session| {
            let mut rule = EasyLlp::with(bags, self.correction(), Draw::Never);
            let rule: &mut dyn TargetRule = &mut rule;
            session.train_with("easyllp", Aim::Targets(rule, loss), first.clone())
        })?;
        let rate = if self.n_bags < MANY_BAGS { 1.0 } else { 3.0 };
        let stages = [
            Later::DebiasedSquare(8, 3.0),
            Later::CountLikelihood("count-likelihood", 12, rate),
            Later::CountLikelihood("count-likelihood, fine", 10, 1.0),
        ];
        self.later(session, &stages)
    }

    fn later(&self, session: &mut Session, stages: &[Later]) -> Result<()> {
        if let Some(why) = self.first_only {
            session.note(format!("easyllp alone: {why}"));
            return Ok(());
        }
        let bags = session.bags();
        for stage in stages {
            match *stage {
                Later::DebiasedSquare(..) if self.is_noisy => {
                    session.note("no debiased-square: it ignores the declared noise");
                }
                Later::DebiasedSquare(epochs, rate) => {
                    let aim = &mut DebiasedSquare::new(bags);
                    session.train_with("debiased-square", Aim::Bags(aim), self.adam(epochs, rate))?;
                }
                Later::CountLikelihood(name, epochs, rate) => {
                    let aim = &mut CountLikelihood::new(bags);
                    session.train_with(name, Aim::Bags(aim), self.adam(epochs, rate))?;
                }
            }
        }
        Ok(())
    }
}

/// A stage after the first, with its epochs and the factor of its learning rate.
enum Later {
    DebiasedSquare(usize, f64),
    CountLikelihood(&'static str, usize, f64),
}

/// −log likelihood of all counts.
fn count_loss(bags: &Bags, scores: ArrayView2<f32>) -> f64 {
    let objective = CountLikelihood::new(bags);
    let of_bag = |bag: usize| {
        let members: Vec<usize> = bags.members(bag).iter().map(|&row| row as usize).collect();
        let scores = scores.select(Axis(0), &members);
        let mut derivative = Array2::zeros(scores.dim());
        objective.bag(bag, scores.view(), derivative.view_mut())
    };
    (0..bags.n_bags()).map(of_bag).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bagging::{self, Sizes};
    use crate::fit::{FitConfig, OptimizerConfig, Penalty, ValidationConfig};
    use crate::predictions::Predictions;
    use crate::rows::{Csr, Rows};
    use crate::{Noise, metrics};
    use ndarray::Array2;
    use std::num::NonZeroUsize;

    /// Two features, of which the first decides, and noise that the model cannot explain.
    fn rows_and_labels(n_rows: usize) -> (Array2<f32>, Vec<u32>) {
        let noise = |seed: usize| ((seed * 7919 + 13) % 1000) as f32 / 500.0 - 1.0;
        let rows = Array2::from_shape_fn((n_rows, 2), |(row, column)| noise(2 * row + column));
        let labels = (0..n_rows).map(|row| u32::from(rows[[row, 0]] + 0.5 * noise(31 * row + 5) > 0.2));
        let labels = labels.collect();
        (rows, labels)
    }

    fn bags(labels: &[u32], size: usize) -> Bags {
        Bags::from_labels(bagging::random(labels.len(), &Sizes::Fixed(size), 1).unwrap(), labels, 2).unwrap()
    }

    fn config(method: &str, model: &str) -> FitConfig {
        FitConfig { method: method.parse().unwrap(), model: model.parse().unwrap(), ..FitConfig::default() }
    }

    #[test]
    fn stages_are_chosen_and_replayed() {
        let (values, labels) = rows_and_labels(3000);
        let rows = Rows::dense(values).unwrap();
        for model in ["linear", "mlp:4"] {
            let fitted = config("auto", model).fit(&rows, &bags(&labels, 10)).unwrap();
            let validation = fitted.validation.as_ref().unwrap();
            let names = |stages: &[crate::fit::StageLog]| -> Vec<String> {
                stages.iter().map(|stage| stage.stage.clone()).collect()
            };
            // Replayed are the stages up to the best one, each as long as it was then.
            assert_eq!(names(&fitted.stages), names(&validation.stages));
            assert_eq!(fitted.stages[0].stage, "easyllp");
            for (replayed, chosen) in fitted.stages.iter().zip(&validation.stages).skip(1) {
                let (length, _) = chosen.log.best.unwrap();
                assert_eq!(replayed.log.epochs.len(), length, "{}", chosen.stage);
            }
            let scores = fitted.scores(&rows).unwrap();
            let predictions = Predictions::new(scores.view(), fitted.link).unwrap();
            // Labels follow from the rows but for noise: a model of all row labels has an AUC of 0.93.
            assert!(metrics::auc(&predictions, &labels).unwrap().unwrap() > 0.9, "{model}");
        }
    }

    #[test]
    fn bags_of_one_are_supervision_to_the_last_bit() {
        let (values, labels) = rows_and_labels(300);
        let rows = Rows::dense(values).unwrap();
        let bags = bags(&labels, 1);
        let optimizer = OptimizerConfig { l2: Some(Penalty::Value(0.01)), ..OptimizerConfig::default() };
        let of = |method: &str| {
            let config = FitConfig { optimizer, ..config(method, "linear") };
            config.fit(&rows, &bags).unwrap().scores(&rows).unwrap()
        };
        assert_eq!(of("auto"), of("supervised"));
    }

    #[test]
    fn stages_that_cannot_be_trained_are_left_out_and_named() {
        let (values, labels) = rows_and_labels(600);
        let dense = Rows::dense(values.clone()).unwrap();
        let starts: Vec<usize> = (0..=600).map(|row| 2 * row).collect();
        let columns: Vec<u32> = (0..1200).map(|place| place % 2).collect();
        let numbers: Vec<f32> = values.iter().copied().collect();
        let sparse = Rows::sparse(Csr::new(2, starts, columns, numbers).unwrap());
        let few = bags(&labels, 60);
        let many = bags(&labels, 10);
        let noisy = bagging::add_noise(&many, Noise::Laplace(vec![1.0; many.n_bags()]), 1).unwrap();
        for (rows, bags, loss, note) in [
            (&dense, &few, None, "easyllp alone: there are few bags"),
            (&sparse, &many, None, "easyllp alone: rows are sparse"),
            (&dense, &many, Some(LossName::Squared), "easyllp alone: its scores are not log-odds"),
            (&dense, &noisy, None, "no debiased-square: it ignores the declared noise"),
        ] {
            let validation = ValidationConfig { share: 0.0, ..ValidationConfig::default() };
            let config = FitConfig { loss, validation, ..config("auto", "linear") };
            let fitted = config.fit(rows, bags).unwrap();
            assert_eq!(fitted.notes, [note]);
            assert!(fitted.stages.iter().all(|stage| stage.stage != "debiased-square"), "{note}");
        }
    }

    #[test]
    fn settings_limit_every_stage() {
        let (values, labels) = rows_and_labels(600);
        let rows = Rows::dense(values).unwrap();
        let optimizer = OptimizerConfig { epochs: NonZeroUsize::new(2), ..OptimizerConfig::default() };
        let validation = ValidationConfig { share: 0.0, ..ValidationConfig::default() };
        let config = FitConfig { optimizer, validation, ..config("auto", "mlp:4") };
        let fitted = config.fit(&rows, &bags(&labels, 10)).unwrap();
        assert_eq!(fitted.stages.len(), 4);
        assert!(fitted.stages.iter().all(|stage| stage.log.epochs.len() == 2));
    }
}
