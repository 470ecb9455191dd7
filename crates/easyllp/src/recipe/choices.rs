//! What can be said of methods: each choice by the name that a command line and a keyword share.

use crate::correction::{BagWeights, Correction};
use crate::error::{Error, Result};
use crate::method::{Batches, Distance, Draw, MethodName, MethodOptions};
use crate::optim::sgd::{Domain, Iterate, Labels, Sgd, Steps};
use crate::prior::LabelPrior;
use std::num::NonZeroUsize;
use std::str::FromStr;

/// Gives the values of an enumeration names, and reads them.
macro_rules! by_name {
    ($type:ty, $what:literal, $first:literal => $first_value:ident $(, $name:literal => $value:ident)*) => {
        impl $type {
            /// The names of all values.
            pub const NAMES: &[&str] = &[$first $(, $name)*];

            /// What it is called.
            pub fn as_str(self) -> &'static str {
                match self {
                    Self::$first_value => $first,
                    $(Self::$value => $name,)*
                }
            }
        }

        impl std::str::FromStr for $type {
            type Err = crate::error::Error;

            fn from_str(text: &str) -> crate::error::Result<Self> {
                match text {
                    $first => Ok(Self::$first_value),
                    $($name => Ok(Self::$value),)*
                    _ => Err(crate::error::Error::UnknownName {
                        what: $what,
                        name: text.to_owned(),
                        choices: concat!($first $(, ", ", $name)*),
                    }),
                }
            }
        }
    };
}
pub(super) use by_name;

/// What easyllp and easyllp-sgd correct.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TargetsName {
    /// Proportions as they are.
    #[default]
    Soft,
    /// A label drawn from them for each row.
    Surrogate,
    /// Such a label, drawn afresh in every epoch.
    FreshSurrogate,
}

by_name! { TargetsName, "kind of targets", "soft" => Soft, "surrogate" => Surrogate, "fresh-surrogate" => FreshSurrogate }
by_name! { Batches, "unit of batches", "rows" => Rows, "bags" => Bags }
by_name! { Steps, "kind of steps", "soft" => OverSoft, "surrogate" => OverSurrogate, "given" => Given }
by_name! { Iterate, "iterate", "last" => Last, "average" => Average }
by_name! { Distance, "distance", "cross-entropy" => CrossEntropy, "squared" => Squared }

/// What is said of what methods leave open; what is not said is as usual.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Choices {
    /// easyllp, easyllp-sgd: known shares of the classes; easyllp then has the paper's targets instead of centred ones.
    pub prior: Option<LabelPrior>,
    /// easyllp: how much say each bag has.
    pub bag_weights: Option<BagWeights>,
    /// easyllp, easyllp-sgd: what is corrected.
    pub targets: Option<TargetsName>,
    /// easyllp: what minibatches are made of.
    pub batches: Option<Batches>,
    /// easyllp, with labels: deal rows anew into bags of this size in every epoch.
    pub rebag: Option<NonZeroUsize>,
    /// easyllp-sgd: where weights are kept.
    pub domain: Option<Domain>,
    /// easyllp-sgd: how large steps are; by default as the paper has them for these targets.
    pub steps: Option<Steps>,
    /// easyllp-sgd: which weights it ends with.
    pub iterate: Option<Iterate>,
    /// label-generation: how soft labels are, above 0.
    pub epsilon: Option<f64>,
    /// proportion-matching: what a mean prediction is compared by.
    pub distance: Option<Distance>,
    /// mean-map, alternating-mean-map: what holds class means together where proportions hardly differ.
    pub ridge: Option<f64>,
    /// laplacian-mean-map: how close class means of bags that are alike are held.
    pub smoothness: Option<f64>,
    /// llp-em, alternating-mean-map: the most rounds between labels and model.
    pub rounds: Option<NonZeroUsize>,
}

impl Choices {
    /// Refuses choices that the method does not know of, that exclude each other, or that need labels where there are none.
    pub(super) fn check(&self, method: MethodName, has_labels: bool) -> Result<()> {
        use MethodName as M;
        let misfit = |reason: &str| Err(Error::Misfit { reason: reason.into() });
        let known: [(&str, bool, &[M]); 13] = [
            ("prior", self.prior.is_some(), &[M::EasyLlp, M::EasyLlpSgd]),
            ("bag_weights", self.bag_weights.is_some(), &[M::EasyLlp]),
            ("targets", self.targets.is_some(), &[M::EasyLlp, M::EasyLlpSgd]),
            ("domain", self.domain.is_some(), &[M::EasyLlpSgd]),
            ("steps", self.steps.is_some(), &[M::EasyLlpSgd]),
            ("iterate", self.iterate.is_some(), &[M::EasyLlpSgd]),
            ("batches", self.batches.is_some(), &[M::EasyLlp]),
            ("rebag", self.rebag.is_some(), &[M::EasyLlp]),
            ("epsilon", self.epsilon.is_some(), &[M::LabelGeneration]),
            ("distance", self.distance.is_some(), &[M::ProportionMatching]),
            ("ridge", self.ridge.is_some(), &[M::MeanMap, M::AlternatingMeanMap]),
            ("smoothness", self.smoothness.is_some(), &[M::LaplacianMeanMap]),
            ("rounds", self.rounds.is_some(), &[M::LlpEm, M::AlternatingMeanMap]),
        ];
        for (option, is_given, methods) in known {
            if is_given && !methods.contains(&method) {
                let methods: Vec<&str> = methods.iter().map(|method| method.as_str()).collect();
                return misfit(&format!("`{option}` is for {}, not for {method}", methods.join(" and ")));
            }
        }
        if !has_labels && self.rebag.is_some() {
            return misfit("`rebag` needs labels of the rows, not counts of bags");
        }
        if !has_labels && method == M::Event {
            return misfit("`method` event needs labels of the rows, not counts of bags");
        }
        if self.prior.is_some() && self.bag_weights.is_some() {
            return misfit("around a known `prior` bags weigh by their sizes, without `bag_weights`");
        }
        let is_drawn = matches!(self.targets, Some(TargetsName::Surrogate | TargetsName::FreshSurrogate));
        if is_drawn && (self.is_by_bags() || self.rebag.is_some()) {
            return misfit("labels are drawn for minibatches of rows, without `batches` bags and `rebag`");
        }
        if self.is_by_bags() && self.bag_weights.is_some_and(|weights| weights != BagWeights::Equal) {
            return misfit("`batches` bags weighs bags equally: `bag_weights` is for minibatches of rows");
        }
        if self.rebag.is_some() && self.is_by_bags() {
            return misfit("`rebag` is for minibatches of rows, without `batches` bags");
        }
        Ok(())
    }

    /// What the method is told.
    pub(super) fn options(&self, seed: u64) -> MethodOptions {
        let usual = MethodOptions::default();
        MethodOptions {
            correction: match &self.prior {
                Some(prior) => Correction::Paper(prior.clone()),
                None => Correction::Centred(self.bag_weights.unwrap_or_default()),
            },
            draw: match self.targets.unwrap_or_default() {
                TargetsName::Soft => Draw::Never,
                TargetsName::Surrogate => Draw::Once { seed },
                TargetsName::FreshSurrogate => Draw::EveryEpoch { seed },
            },
            batches: self.batches.unwrap_or_default(),
            rebag: self.rebag.map(NonZeroUsize::get),
            epsilon: self.epsilon,
            distance: self.distance.unwrap_or_default(),
            ridge: self.ridge.unwrap_or(usual.ridge),
            smoothness: self.smoothness.unwrap_or(usual.smoothness),
            rounds: self.rounds.map_or(usual.rounds, NonZeroUsize::get),
        }
    }

    /// The pass of easyllp-sgd, its steps times a factor.
    pub(super) fn sgd(&self, scale: Option<f64>) -> Sgd {
        let (labels, steps) = match self.targets.unwrap_or_default() {
            TargetsName::Soft => (Labels::Soft, Steps::OverSoft),
            TargetsName::Surrogate | TargetsName::FreshSurrogate => (Labels::Surrogate, Steps::OverSurrogate),
        };
        let steps = self.steps.unwrap_or(steps);
        let (domain, iterate) = (self.domain.unwrap_or_default(), self.iterate.unwrap_or_default());
        Sgd { labels, steps, scale: scale.unwrap_or(1.0), domain, iterate }
    }

    /// Why there is no training without minibatches, if so.
    pub(super) fn reason_for_minibatches(&self, method: MethodName) -> Option<String> {
        let reason = match self.targets {
            _ if method.judges_bags() => {
                return Some(format!("method {method} needs minibatches of whole bags"));
            }
            _ if self.is_by_bags() => "`batches` bags needs minibatches",
            _ if self.rebag.is_some() => "`rebag` needs epochs",
            Some(TargetsName::FreshSurrogate) => "`targets` fresh-surrogate needs epochs",
            _ => return None,
        };
        Some(reason.into())
    }

    fn is_by_bags(&self) -> bool {
        self.batches == Some(Batches::Bags)
    }

    /// What a model file tells of them.
    pub(super) fn settings(&self, method: MethodName) -> Vec<(&'static str, String)> {
        // Around a known prior bags weigh by their sizes.
        let around_prior = self.prior.as_ref().map(|_| BagWeights::Size);
        let weights = match around_prior.or(self.bag_weights).unwrap_or_default() {
            BagWeights::Equal => "equal".into(),
            BagWeights::Size => "size".into(),
            BagWeights::NoiseAware => "noise".into(),
            BagWeights::Variance { rho } => format!("variance:{rho}"),
        };
        let number = |name, value: Option<f64>| value.map(|value| (name, value.to_string()));
        let prior = self.prior.as_ref().map(|prior| match prior.classes() {
            [_, positive] => positive.to_string(),
            several => several.iter().map(f64::to_string).collect::<Vec<_>>().join(" "),
        });
        let mut settings = Vec::new();
        settings.extend((method == MethodName::EasyLlp).then_some(("bag weights", weights)));
        settings.extend(prior.map(|prior| ("prior", prior)));
        settings.extend(self.targets.map(|targets| ("targets", targets.as_str().into())));
        settings.extend(self.batches.map(|batches| ("batches", batches.as_str().into())));
        settings.extend(self.rebag.map(|size| ("rebag", size.to_string())));
        settings.extend(self.steps.map(|steps| ("steps", steps.as_str().into())));
        settings.extend(self.domain.map(|domain| ("domain", format!("{domain:?}"))));
        settings.extend(self.iterate.map(|iterate| ("iterate", iterate.as_str().into())));
        settings.extend(number("epsilon", self.epsilon));
        settings.extend(self.distance.map(|distance| ("distance", distance.as_str().into())));
        settings.extend(number("ridge", self.ridge));
        settings.extend(number("smoothness", self.smoothness));
        settings
    }
}

impl FromStr for BagWeights {
    type Err = Error;

    /// `equal`, `size`, `noise` or `variance:RHO`.
    fn from_str(text: &str) -> Result<Self> {
        match (text, text.strip_prefix("variance:").map(str::parse)) {
            ("equal", _) => Ok(Self::Equal),
            ("size", _) => Ok(Self::Size),
            ("noise", _) => Ok(Self::NoiseAware),
            (_, Some(Ok(rho))) if rho >= 0.0 && f64::is_finite(rho) => Ok(Self::Variance { rho }),
            _ => Err(Error::UnknownName {
                what: "weight of bags",
                name: text.to_owned(),
                choices: "equal, size, noise, or variance:RHO with RHO of at least 0",
            }),
        }
    }
}

impl FromStr for Domain {
    type Err = Error;

    /// `whole`, `ball:RADIUS` or `box:BOUND`.
    fn from_str(text: &str) -> Result<Self> {
        let positive = |text: &str| text.parse().ok().filter(|bound| *bound > 0.0 && f64::is_finite(*bound));
        let domain = match text.split_once(':') {
            None if text == "whole" => Some(Self::Whole),
            Some(("ball", radius)) => positive(radius).map(Self::Ball),
            Some(("box", bound)) => positive(bound).map(Self::Box),
            _ => None,
        };
        domain.ok_or_else(|| Error::UnknownName {
            what: "domain",
            name: text.to_owned(),
            choices: "whole, ball:RADIUS or box:BOUND, with a number above 0",
        })
    }
}
