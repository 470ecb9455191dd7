//! EasyLLP: empirical risk minimisation on corrected targets (eq. *ermsoftlabel* of the paper).
//!
//! The corrected loss is an unbiased estimate of the loss on row labels, so minimising it trains a
//! row-level model. Bags still hold less information than row labels. To avoid overfitting their
//! noise, use weight decay, averaged weights and early stopping on validation bags.

use super::schema::{About, Assumes, BuiltIn};
use super::{EasyLlpByBag, Rebagged};
use crate::aim::{Aim, TargetRows, TargetRule};
use crate::bags::Bags;
use crate::correction::{BagWeights, Correction, Targets};
use crate::error::{Error, Result};
use crate::prior::LabelPrior;
use crate::seed::{Stream, stream};
use crate::session::{Method, Requires, Session};
use rand_chacha::ChaCha8Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::num::NonZeroUsize;

/// Whether surrogate labels (the paper's first form) are drawn, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Draw {
    /// Soft targets, without draws (eq. *simple_tlalpha*).
    #[default]
    Never,
    /// One surrogate label per row for the whole training run (eq. *tlsimple*).
    Once {
        /// The seed of the draw.
        seed: u64,
    },
    /// A new surrogate label per row in every epoch.
    EveryEpoch {
        /// The seed of the draws.
        seed: u64,
    },
}

/// Training on corrected targets.
///
/// ```
/// use easyllp::method::EasyLlp;
/// use easyllp::train::{Aim, Trainer};
/// use easyllp::{Bags, Noise, Partition, Rows, loss::LossName, model::LinearModel};
/// use ndarray::array;
///
/// // Positives have a large feature; only the counts of the three bags are known.
/// let rows = Rows::dense(array![[0.9_f32], [0.1], [0.2], [0.8], [0.7], [0.95]])?;
/// let partition = Partition::new(6, [[0, 1], [2, 3], [4, 5]])?;
/// let bags = Bags::binary(partition, &[1.0, 1.0, 2.0], Noise::None)?;
///
/// let mut model = LinearModel::for_rows(&rows, 2)?;
/// let loss = LossName::Logistic.training()?;
/// Trainer::default().fit(&mut model, &rows, Aim::Targets(&mut EasyLlp::new(&bags), loss))?;
/// assert!(model.weights()[[0, 0]] > 0.0);
/// # Ok::<(), easyllp::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct EasyLlp<'b> {
    bags: &'b Bags,
    correction: Correction,
    draw: Draw,
    rng: Option<ChaCha8Rng>,
}

impl<'b> EasyLlp<'b> {
    /// Soft, centred targets with equal bag weights.
    pub fn new(bags: &'b Bags) -> Self {
        Self::with(bags, Correction::default(), Draw::Never)
    }

    /// Any correction, with soft or surrogate targets.
    pub fn with(bags: &'b Bags, correction: Correction, draw: Draw) -> Self {
        Self { bags, correction, draw, rng: None }
    }
}

impl TargetRule for EasyLlp<'_> {
    fn target_rows(&self) -> TargetRows {
        TargetRows::of_bags(self.bags)
    }

    fn changes(&self) -> bool {
        matches!(self.draw, Draw::EveryEpoch { .. })
    }

    fn shares(&self) -> Result<Option<Vec<f64>>> {
        if self.bags.have_row_labels() {
            return Ok(None); // targets are the labels
        }
        match (self.correction.known_shares(), self.draw) {
            (None, Draw::Once { .. } | Draw::EveryEpoch { .. }) => {
                Ok(Some(self.correction.line(self.bags)?.means(self.bags)))
            }
            (known, _) => Ok(known),
        }
    }

    fn targets(&mut self, epoch: usize, out: &mut Targets) -> Result<()> {
        let seed = match self.draw {
            Draw::Never => return self.correction.soft_into(self.bags, out),
            Draw::Once { seed } | Draw::EveryEpoch { seed } => seed,
        };
        if epoch == 0 {
            self.rng = None; // a second training begins with the same draws
        }
        let rng = self.rng.get_or_insert_with(|| stream(seed, Stream::Surrogate));
        self.correction.surrogate_into(self.bags, rng, out)
    }
}

/// What `easyllp` and `easyllp-sgd` correct to get targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TargetsFrom {
    /// The bag's proportions.
    #[default]
    Soft,
    /// A surrogate label per row, drawn once from the proportions.
    Surrogate,
    /// Surrogate labels that are drawn again in every epoch.
    FreshSurrogate,
}

/// What minibatches consist of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Batches {
    /// Rows of all bags, shuffled.
    #[default]
    Rows,
    /// Whole bags; each batch is centred at its own proportions.
    Bags,
}

/// Parameters of `easyllp`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EasyLlpParams {
    /// Known share of the positive class, or of each class. Uses the paper's targets instead of centred ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prior: Option<LabelPrior>,
    /// Weights of bags. Unset: `equal`, or `size` with a prior.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bag_weights: Option<BagWeights>,
    /// Correct the bag's proportions, or surrogate labels that are drawn from them once or in every
    /// epoch.
    pub targets: TargetsFrom,
    /// Minibatches of rows of all bags, or of whole bags.
    pub batches: Batches,
    /// Requires row labels: randomly regroup the rows into bags of this size in every epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rebag: Option<NonZeroUsize>,
}

impl EasyLlpParams {
    fn correction(&self) -> Correction {
        match &self.prior {
            Some(prior) => Correction::Paper(prior.clone()),
            None => Correction::Centred(self.bag_weights.unwrap_or_default()),
        }
    }
}

impl BuiltIn for EasyLlpParams {
    const ABOUT: About = About {
        name: "easyllp",
        aliases: &[],
        summary: "minimises any loss on corrected targets; unbiased at row level",
        bags: Assumes::RandomBags,
        classes: "any",
        cost: "C",
        reference: "Busa-Fekete et al. 2023",
    };
}

impl Method for EasyLlpParams {
    fn name(&self) -> &str {
        Self::ABOUT.name
    }

    fn requires(&self) -> Requires {
        match self.targets {
            _ if self.batches == Batches::Bags => Requires::Adam("`batches` is bags".into()),
            _ if self.rebag.is_some() => Requires::Adam("`rebag` is set".into()),
            TargetsFrom::FreshSurrogate => Requires::Adam("`targets` is fresh-surrogate".into()),
            TargetsFrom::Soft | TargetsFrom::Surrogate => Requires::AnyOptimizer,
        }
    }

    fn check(&self, has_row_labels: bool) -> Result<()> {
        let by_bags = self.batches == Batches::Bags;
        let is_drawn = self.targets != TargetsFrom::Soft;
        let reason = if self.rebag.is_some() && !has_row_labels {
            return Err(Error::RowLabelsOnly { what: "`rebag`".into() });
        } else if self.prior.is_some() && self.bag_weights.is_some() {
            "`bag_weights` cannot be combined with `prior`, which weighs bags by size"
        } else if is_drawn && (by_bags || self.rebag.is_some()) {
            "surrogate `targets` cannot be combined with `rebag` or with `batches` of bags"
        } else if by_bags && self.bag_weights.is_some_and(|weights| weights != BagWeights::Equal) {
            "`batches` of bags requires equal `bag_weights`"
        } else if by_bags && self.rebag.is_some() {
            "`rebag` cannot be combined with `batches` of bags"
        } else {
            return Ok(());
        };
        Err(Error::Config { reason: reason.into() })
    }

    fn run(&self, session: &mut Session) -> Result<()> {
        let (bags, loss, seed) = (session.bags(), session.loss(), session.seed());
        let correction = self.correction();
        let draw = match self.targets {
            TargetsFrom::Soft => Draw::Never,
            TargetsFrom::Surrogate => Draw::Once { seed },
            TargetsFrom::FreshSurrogate => Draw::EveryEpoch { seed },
        };
        match (self.rebag, self.batches) {
            (Some(size), _) => {
                let mut rule = Rebagged::new(bags, size.get(), correction, seed)?;
                session.train(self.name(), Aim::Targets(&mut rule, loss))
            }
            (None, Batches::Rows) => {
                let mut rule = EasyLlp::with(bags, correction, draw);
                session.train(self.name(), Aim::Targets(&mut rule, loss))
            }
            (None, Batches::Bags) => {
                let mut objective = EasyLlpByBag::new(bags, &correction, loss)?;
                session.train(self.name(), Aim::Bags(&mut objective))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bags::{Noise, Partition};

    #[test]
    fn surrogates_are_drawn_when_asked_for() {
        let partition = Partition::new(40, (0..10).map(|bag| [bag, bag + 10, bag + 20, bag + 30])).unwrap();
        let bags = Bags::binary(partition, &[2.0; 10], Noise::None).unwrap();
        let epochs = |draw| {
            let mut rule = EasyLlp::with(&bags, Correction::default(), draw);
            let mut out = Targets::zeros(40, 2);
            [0, 1].map(|epoch| {
                if epoch == 0 || rule.changes() {
                    rule.targets(epoch, &mut out).unwrap();
                }
                out.clone()
            })
        };
        let [soft, soft_again] = epochs(Draw::Never);
        let [once, once_again] = epochs(Draw::Once { seed: 5 });
        let [first, second] = epochs(Draw::EveryEpoch { seed: 5 });
        assert_eq!(soft, soft_again);
        assert_eq!(once, once_again);
        assert_eq!(once, first);
        assert_eq!(once, Correction::default().surrogate(&bags, 5).unwrap());
        assert_ne!(once, soft);
        assert_ne!(first, second);
    }
}
