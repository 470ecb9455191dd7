//! The default method: training in stages, the best of which is chosen on validation bags.
//!
//! EasyLLP finds the signal from any start and at any bag size, but its targets are noisy. Debiased square and count likelihood are
//! precise near a good model, but find nothing from a cold start on large bags. Together they beat either:
//!
//! 1. **easyllp**. A linear model is fitted to convergence with the penalty [`PENALTY`]: on few validation bags a penalty that is chosen
//!    is worse than one that is fixed. A network trains with the Brier loss, which is bounded for any target.
//! 2. **debiased-square**, from there.
//! 3. **count-likelihood**, from there.
//!
//! The stage and the epoch with the least Brier score on validation bags are kept, and the same stages are replayed on all bags. A replay
//! under which the counts are less likely than under the model that was chosen is discarded. `docs/guide/methods.md` has the
//! measurements behind the constants.

use super::schema::{About, Assumes, BuiltIn};
use super::{CountLikelihood, DebiasedSquare, EasyLlp, SupervisedParams};
use crate::aim::{Aim, BagObjective, TargetRule};
use crate::bags::Bags;
use crate::correction::{BagWeights, Correction};
use crate::error::Result;
use crate::loss::{Convexity, Link, LossName};
use crate::method::Draw;
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
        if bags.sizes().all(|size| size == 1) {
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
        self.later(session, &[(Later::DebiasedSquare, 20, 1.0), (Later::CountLikelihood, 20, 1.0)])
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
        self.later(session, &[(Later::DebiasedSquare, 8, 1.0), (Later::CountLikelihood, 12, 1.0)])
    }

    /// The stages after the first, each with its epochs and learning rate.
    fn later(&self, session: &mut Session, stages: &[(Later, usize, f64)]) -> Result<()> {
        if let Some(why) = self.first_only {
            session.note(format!("easyllp alone: {why}"));
            return Ok(());
        }
        for (stage, epochs, rate) in stages {
            let bags = session.bags();
            let optimizer = self.adam(*epochs, *rate);
            match stage {
                Later::DebiasedSquare if self.is_noisy => {
                    session.note("no debiased-square: it ignores the declared noise");
                }
                Later::DebiasedSquare => {
                    let mut objective = DebiasedSquare::new(bags);
                    session.train_with("debiased-square", Aim::Bags(&mut objective), optimizer)?;
                }
                Later::CountLikelihood => {
                    let mut objective = CountLikelihood::new(bags);
                    session.train_with("count-likelihood", Aim::Bags(&mut objective), optimizer)?;
                }
            }
        }
        Ok(())
    }
}

/// A stage after the first.
enum Later {
    DebiasedSquare,
    CountLikelihood,
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
