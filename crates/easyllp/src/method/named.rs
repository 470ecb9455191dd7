//! Methods by name, and what each of them needs to be told apart from the others.

use crate::error::{Error, Result};
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
    /// [`EasyLlp`](super::EasyLlp)
    #[default]
    #[serde(rename = "easyllp")]
    EasyLlp,
    /// [`Naive`](super::Naive)
    Naive,
    /// [`MeanMap`](super::MeanMap)
    MeanMap,
    /// [`ProportionMatching`](super::ProportionMatching), by cross-entropy
    ProportionMatching,
    /// [`DebiasedSquare`](super::DebiasedSquare)
    DebiasedSquare,
    /// [`CountLikelihood`](super::CountLikelihood)
    CountLikelihood,
}

/// What to know of a method before it is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct About {
    /// What it does, in a few words.
    pub what: &'static str,
    /// How bags must have been made.
    pub bags: &'static str,
    /// The time that it takes a row, beyond what the model takes, with k rows in a bag and C classes.
    pub cost: &'static str,
    /// Where it is from.
    pub reference: &'static str,
}

impl MethodName {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::EasyLlp,
        Self::Naive,
        Self::MeanMap,
        Self::ProportionMatching,
        Self::DebiasedSquare,
        Self::CountLikelihood,
    ];

    /// The name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::EasyLlp => "easyllp",
            Self::Naive => "naive",
            Self::MeanMap => "mean-map",
            Self::ProportionMatching => "proportion-matching",
            Self::DebiasedSquare => "debiased-square",
            Self::CountLikelihood => "count-likelihood",
        }
    }

    /// Whether it judges whole bags: such a method is trained by minibatches of bags, on scores that are log odds.
    pub fn judges_bags(self) -> bool {
        match self {
            Self::EasyLlp | Self::Naive | Self::MeanMap => false,
            Self::ProportionMatching | Self::DebiasedSquare | Self::CountLikelihood => true,
        }
    }

    /// What to know of it.
    pub fn about(self) -> About {
        match self {
            Self::EasyLlp => About {
                what: "any loss on corrected targets, unbiased for rows",
                bags: "at random",
                cost: "C",
                reference: "Busa-Fekete et al. 2023",
            },
            Self::Naive => About {
                what: "each row towards its bag's proportion, to compare with",
                bags: "in any way, but what is learnt is biased",
                cost: "C",
                reference: "Busa-Fekete et al. 2023",
            },
            Self::MeanMap => About {
                what: "class means from bag means by least squares; linear models with log loss only",
                bags: "at random",
                cost: "C",
                reference: "Quadrianto et al. 2008",
            },
            Self::ProportionMatching => About {
                what: "a bag's mean prediction towards its proportion",
                bags: "in any way",
                cost: "C",
                reference: "Ardehali & Culotta 2017",
            },
            Self::DebiasedSquare => About {
                what: "squared error of a bag's mean prediction, less what bags add to that of rows",
                bags: "at random",
                cost: "C",
                reference: "Li et al. 2024",
            },
            Self::CountLikelihood => About {
                what: "the likelihood of a bag's count under independent rows",
                bags: "at random, or by features that the model sees",
                cost: "k C, less for large bags",
                reference: "Poisson-binomial likelihood",
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
        const CHOICES: &str =
            "easyllp, naive, mean-map, proportion-matching, debiased-square, count-likelihood";
        Self::ALL.into_iter().find(|name| name.as_str() == text).ok_or_else(|| Error::UnknownName {
            what: "method",
            name: text.to_owned(),
            choices: CHOICES,
        })
    }
}
