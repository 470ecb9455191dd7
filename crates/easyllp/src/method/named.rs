//! Methods by name, and what each of them needs to be told apart from the others.

use super::{Distance, Draw, LaplacianMeanMap, MeanMap};
use crate::correction::Correction;
use crate::error::{Error, Result};
use crate::link::Link;
use crate::loss::TrainingLoss;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A method that learns from bags, by its name.
///
/// ```
/// use easyllp::MethodName;
///
/// let name: MethodName = "count-likelihood".parse()?;
/// assert_eq!(name, MethodName::CountLikelihood);
/// assert!("count".parse::<MethodName>().unwrap_err().to_string().contains("choose one of"));
/// # Ok::<(), easyllp::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MethodName {
    /// [`EasyLlp`](super::EasyLlp), or [`EasyLlpByBag`](super::EasyLlpByBag), or [`Rebagged`](super::Rebagged)
    #[default]
    #[serde(rename = "easyllp")]
    EasyLlp,
    /// [`Trainer::fit_one_pass`](crate::Trainer::fit_one_pass)
    #[serde(rename = "easyllp-sgd")]
    EasyLlpSgd,
    /// [`Event`](super::Event), on bags of one
    Event,
    /// [`Naive`](super::Naive)
    Naive,
    /// [`LabelGeneration`](super::LabelGeneration)
    LabelGeneration,
    /// [`ProportionMatching`](super::ProportionMatching)
    ProportionMatching,
    /// [`DebiasedSquare`](super::DebiasedSquare)
    DebiasedSquare,
    /// [`CountLikelihood`](super::CountLikelihood)
    CountLikelihood,
    /// [`LlpEm`](super::LlpEm)
    LlpEm,
    /// [`MeanMap`](super::MeanMap)
    MeanMap,
    /// [`LaplacianMeanMap`](super::LaplacianMeanMap)
    LaplacianMeanMap,
    /// [`AlternatingMeanMap`](super::AlternatingMeanMap)
    AlternatingMeanMap,
}

/// What minibatches are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Batches {
    /// Rows of all bags, mixed.
    #[default]
    Rows,
    /// Whole bags.
    Bags,
}

/// What methods leave open; each looks at its own.
#[derive(Debug, Clone, PartialEq)]
pub struct MethodOptions {
    /// How easyllp corrects targets; easyllp-sgd looks at the prior alone, if it is known.
    pub correction: Correction,
    /// Whether easyllp draws labels, and when.
    pub draw: Draw,
    /// What easyllp's minibatches are made of.
    pub batches: Batches,
    /// Deals the rows of easyllp anew in every epoch, into bags of this size; needs labels, as bags of one.
    pub rebag: Option<usize>,
    /// How soft the labels of label-generation are, above 0; whole ones if there is none.
    pub epsilon: Option<f64>,
    /// What proportion-matching compares by.
    pub distance: Distance,
    /// The ridge of mean-map and of the start of alternating-mean-map.
    pub ridge: f64,
    /// How close class means of bags that are alike are held, in laplacian-mean-map.
    pub smoothness: f64,
    /// The most rounds that llp-em and alternating-mean-map go.
    pub rounds: usize,
}

impl Default for MethodOptions {
    fn default() -> Self {
        Self {
            correction: Correction::default(),
            draw: Draw::default(),
            batches: Batches::default(),
            rebag: None,
            epsilon: None,
            distance: Distance::default(),
            ridge: MeanMap::RIDGE,
            smoothness: LaplacianMeanMap::SMOOTHNESS,
            rounds: 20,
        }
    }
}

/// The models that a method serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Serves {
    /// Any model with any loss.
    Any,
    /// Any model, with scores that are log odds.
    LogOdds,
    /// Linear models with scores that are log odds.
    LinearLogOdds,
    /// Linear models with a loss that stays convex for any target.
    LinearConvex,
}

/// How bags must be made for methods that assume random ones.
const RANDOM: &str = "at random";

/// What to know of a method before it is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct About {
    /// What it does, in a few words.
    pub what: &'static str,
    /// How bags must have been made.
    pub bags: &'static str,
    /// The models that it serves.
    pub models: Serves,
    /// How it treats more than two classes.
    pub classes: &'static str,
    /// The time that it takes a row, beyond what the model takes, with k rows in a bag and C classes.
    pub cost: &'static str,
    /// Where it is from.
    pub reference: &'static str,
}

impl MethodName {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::EasyLlp,
        Self::EasyLlpSgd,
        Self::Event,
        Self::Naive,
        Self::LabelGeneration,
        Self::ProportionMatching,
        Self::DebiasedSquare,
        Self::CountLikelihood,
        Self::LlpEm,
        Self::MeanMap,
        Self::LaplacianMeanMap,
        Self::AlternatingMeanMap,
    ];

    /// The name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::EasyLlp => "easyllp",
            Self::EasyLlpSgd => "easyllp-sgd",
            Self::Event => "event",
            Self::Naive => "naive",
            Self::LabelGeneration => "label-generation",
            Self::ProportionMatching => "proportion-matching",
            Self::DebiasedSquare => "debiased-square",
            Self::CountLikelihood => "count-likelihood",
            Self::LlpEm => "llp-em",
            Self::MeanMap => "mean-map",
            Self::LaplacianMeanMap => "laplacian-mean-map",
            Self::AlternatingMeanMap => "alternating-mean-map",
        }
    }

    /// Whether it judges whole bags: such a method is trained by minibatches of bags, on scores that are log odds.
    pub fn judges_bags(self) -> bool {
        matches!(
            self,
            Self::LabelGeneration | Self::ProportionMatching | Self::DebiasedSquare | Self::CountLikelihood
        )
    }

    /// Whether it goes back and forth between targets and model: what its trainings count are rounds.
    pub fn goes_by_rounds(self) -> bool {
        matches!(self, Self::LlpEm | Self::AlternatingMeanMap)
    }

    /// Whether it is biased by bags that are not random.
    pub fn assumes_random_bags(self) -> bool {
        self.about().bags == RANDOM
    }

    /// Refuses a model or a loss that it does not serve.
    pub(crate) fn check(self, is_linear: bool, loss: &dyn TrainingLoss) -> Result<()> {
        let (method, is_log_odds) = (self.as_str(), loss.link() == Link::Logit);
        match self.about().models {
            Serves::LogOdds if !is_log_odds => Err(Error::LogOddsOnly { method, loss: loss.name().as_str() }),
            Serves::LinearLogOdds if !(is_linear && is_log_odds) => Err(Error::LinearLogLossOnly { method }),
            Serves::LinearConvex if !is_linear => Err(Error::LinearOnly { method }),
            _ => Ok(()),
        }
    }

    /// What to know of it.
    pub fn about(self) -> About {
        match self {
            Self::EasyLlp => About {
                what: "any loss on corrected targets, unbiased for rows",
                bags: RANDOM,
                models: Serves::Any,
                classes: "any",
                cost: "C",
                reference: "Busa-Fekete et al. 2023",
            },
            Self::EasyLlpSgd => About {
                what: "one pass over the bags, a projected step on one row of each",
                bags: RANDOM,
                models: Serves::LinearConvex,
                classes: "any",
                cost: "1/k of an epoch in all",
                reference: "Busa-Fekete et al. 2023, Algorithm 1",
            },
            Self::Event => About {
                what: "labels of rows, as bags of one, to compare with",
                bags: "of one row",
                models: Serves::Any,
                classes: "any",
                cost: "C",
                reference: "full supervision",
            },
            Self::Naive => About {
                what: "each row towards its bag's proportion, to compare with",
                bags: "in any way, but what is learnt is biased",
                models: Serves::Any,
                classes: "any",
                cost: "C",
                reference: "Busa-Fekete et al. 2023",
            },
            Self::LabelGeneration => About {
                what: "labels that match counts and agree best with the model, in every step",
                bags: "in any way",
                models: Serves::LogOdds,
                classes: "any; exact transport",
                cost: "log k, C² log k for several classes",
                reference: "Dulac-Arnold et al. 2019",
            },
            Self::ProportionMatching => About {
                what: "a bag's mean prediction towards its proportion",
                bags: "in any way",
                models: Serves::LogOdds,
                classes: "any",
                cost: "C",
                reference: "Ardehali & Culotta 2017",
            },
            Self::DebiasedSquare => About {
                what: "squared error of a bag's mean prediction, less what bags add to that of rows",
                bags: RANDOM,
                models: Serves::LogOdds,
                classes: "any",
                cost: "C",
                reference: "Li et al. 2024",
            },
            Self::CountLikelihood => About {
                what: "the likelihood of a bag's count under independent rows",
                bags: "at random, or by features that the model sees",
                models: Serves::LogOdds,
                classes: "any; each against the rest",
                cost: "k C, less for large bags",
                reference: "Poisson-binomial likelihood",
            },
            Self::LlpEm => About {
                what: "labels as probable as the counts make them, the model of these, and so on",
                bags: "at random, or by features that the model sees",
                models: Serves::LinearLogOdds,
                classes: "any; approximate for several",
                cost: "k C a round, less for large bags",
                reference: "Dempster, Laird & Rubin 1977",
            },
            Self::MeanMap => About {
                what: "class means from bag means by least squares",
                bags: RANDOM,
                models: Serves::LinearLogOdds,
                classes: "any",
                cost: "C",
                reference: "Quadrianto et al. 2008",
            },
            Self::LaplacianMeanMap => About {
                what: "class means that differ between bags, but little between bags that are alike",
                bags: "at random, or alike where features are alike",
                models: Serves::LinearLogOdds,
                classes: "any",
                cost: "C, and once about 10⁵/k",
                reference: "Patrini et al. 2014",
            },
            Self::AlternatingMeanMap => About {
                what: "from the mean map on, labels that match counts and the model of these, in turn",
                bags: RANDOM,
                models: Serves::LinearLogOdds,
                classes: "any; exact transport",
                cost: "log k a round, C² log k for several classes",
                reference: "Patrini et al. 2014",
            },
        }
    }
}

impl fmt::Display for MethodName {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

impl FromStr for MethodName {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        const CHOICES: &str = "easyllp, easyllp-sgd, event, naive, label-generation, proportion-matching, debiased-square, \
            count-likelihood, llp-em, mean-map, laplacian-mean-map, alternating-mean-map";
        Self::ALL.into_iter().find(|name| name.as_str() == text).ok_or_else(|| Error::UnknownName {
            what: "method",
            name: text.to_owned(),
            choices: CHOICES,
        })
    }
}
