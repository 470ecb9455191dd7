//! Methods and what they leave open, as the commands take them.

use crate::commands::parse_count;
use crate::output::misuse;
use anyhow::Result;
use clap::{Args, ValueEnum};
use easyllp::method::{Batches, Distance, Draw};
use easyllp::sgd::{Domain, Iterate, Labels, Sgd, Steps};
use easyllp::{BagWeights, Correction, LabelPrior, MethodName, MethodOptions};
use std::num::NonZeroUsize;

#[derive(Debug, Args)]
#[command(next_help_heading = "Method")]
pub(crate) struct MethodArgs {
    /// The method; `easyllp methods` lists them
    #[arg(long, value_name = "METHOD", default_value = "easyllp")]
    pub(crate) method: MethodName,

    /// easyllp, easyllp-sgd: a known share of the positive class; easyllp then has the paper's targets instead of centred ones
    #[arg(long, value_name = "P", value_parser = parse_share, conflicts_with = "bag_weights")]
    pub(crate) prior: Option<f64>,

    /// easyllp: how much say each bag has: equal (the default), size, noise (as declared) or variance:RHO
    #[arg(long, value_name = "WEIGHTS", value_parser = parse_weights)]
    bag_weights: Option<BagWeights>,

    /// easyllp, easyllp-sgd: correct proportions as they are (soft, the default), or a surrogate label drawn from them for each row,
    /// once or afresh in every epoch
    #[arg(long, value_enum, value_name = "TARGETS")]
    targets: Option<DrawName>,

    /// easyllp: minibatches of rows of all bags (the default), or of whole bags, each batch centred at its own proportions
    #[arg(long, value_enum, value_name = "UNITS")]
    batches: Option<BatchesName>,

    /// easyllp, with --label: deal rows anew into bags of this size in every epoch
    #[arg(long, value_name = "SIZE", value_parser = parse_count)]
    rebag: Option<NonZeroUsize>,

    /// easyllp-sgd: where weights are kept: whole (anywhere, the default), ball:RADIUS or box:BOUND
    #[arg(long, value_name = "DOMAIN", value_parser = parse_domain)]
    domain: Option<Domain>,

    /// easyllp-sgd: end with the last weights (the default), or with the mean of all
    #[arg(long, value_enum, value_name = "ITERATE")]
    iterate: Option<IterateName>,

    /// label-generation: how soft labels are; by default they are whole
    #[arg(long, value_name = "EPSILON", value_parser = parse_positive, allow_negative_numbers = true)]
    epsilon: Option<f64>,

    /// proportion-matching: what a mean prediction is compared by
    #[arg(long, value_enum, value_name = "DISTANCE")]
    distance: Option<DistanceName>,

    /// mean-map, alternating-mean-map: what holds class means together where proportions hardly differ
    #[arg(long, value_name = "RIDGE", value_parser = parse_positive, allow_negative_numbers = true)]
    ridge: Option<f64>,

    /// laplacian-mean-map: how close class means of bags that are alike are held; by default 1
    #[arg(long, value_name = "GAMMA", value_parser = parse_positive, allow_negative_numbers = true)]
    smoothness: Option<f64>,

    /// llp-em, alternating-mean-map: the most rounds between labels and model; by default 20
    #[arg(long, value_name = "N", value_parser = parse_count)]
    rounds: Option<NonZeroUsize>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum DrawName {
    Soft,
    Surrogate,
    FreshSurrogate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum BatchesName {
    Rows,
    Bags,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum IterateName {
    Last,
    Average,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum DistanceName {
    CrossEntropy,
    Squared,
}

pub(crate) fn parse_share(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|share| (0.0..1.0).contains(share))
        .ok_or("a number from 0 to below 1 is needed".into())
}

pub(crate) fn parse_positive(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| *number > 0.0 && f64::is_finite(*number));
    number.ok_or("a number above 0 is needed".into())
}

fn parse_weights(text: &str) -> Result<BagWeights, String> {
    match (text, text.strip_prefix("variance:").map(str::parse)) {
        ("equal", _) => Ok(BagWeights::Equal),
        ("size", _) => Ok(BagWeights::Size),
        ("noise", _) => Ok(BagWeights::NoiseAware),
        (_, Some(Ok(rho))) if rho >= 0.0 && f64::is_finite(rho) => Ok(BagWeights::Variance { rho }),
        _ => Err("choose equal, size, noise, or variance:RHO with RHO of at least 0".into()),
    }
}

fn parse_domain(text: &str) -> Result<Domain, String> {
    let expected = "choose whole, ball:RADIUS or box:BOUND, with a number above 0";
    match text.split_once(':') {
        None if text == "whole" => Ok(Domain::Whole),
        Some(("ball", radius)) => parse_positive(radius).map(Domain::Ball).map_err(|_| expected.into()),
        Some(("box", bound)) => parse_positive(bound).map(Domain::Box).map_err(|_| expected.into()),
        _ => Err(expected.into()),
    }
}

impl MethodArgs {
    /// The steps of easyllp-sgd, the paper's times a factor.
    pub(crate) fn sgd(&self, scale: Option<f64>) -> Sgd {
        let (labels, steps) = match self.targets {
            None | Some(DrawName::Soft) => (Labels::Soft, Steps::OverSoft),
            Some(DrawName::Surrogate | DrawName::FreshSurrogate) => (Labels::Surrogate, Steps::OverSurrogate),
        };
        let iterate = match self.iterate {
            None | Some(IterateName::Last) => Iterate::Last,
            Some(IterateName::Average) => Iterate::Average,
        };
        Sgd { labels, steps, scale: scale.unwrap_or(1.0), domain: self.domain.unwrap_or_default(), iterate }
    }

    /// What the method is told; an option that it does not know of is refused, and so are bags where labels of rows are needed.
    pub(crate) fn options(&self, seed: u64, has_labels: bool) -> Result<MethodOptions> {
        self.check()?;
        if !has_labels && (self.method == MethodName::Event || self.rebag.is_some()) {
            let option = if self.rebag.is_some() { "--rebag" } else { "--method event" };
            return Err(misuse(&format!(
                "{option} needs labels of the rows: give --label in the place of reports"
            )));
        }
        let usual = MethodOptions::default();
        Ok(MethodOptions {
            correction: match self.prior {
                Some(prior) => Correction::Paper(LabelPrior::binary(prior)?),
                None => Correction::Centred(self.bag_weights.unwrap_or_default()),
            },
            draw: match self.targets {
                None | Some(DrawName::Soft) => Draw::Never,
                Some(DrawName::Surrogate) => Draw::Once { seed },
                Some(DrawName::FreshSurrogate) => Draw::EveryEpoch { seed },
            },
            batches: if self.is_by_bags() { Batches::Bags } else { Batches::Rows },
            rebag: self.rebag.map(NonZeroUsize::get),
            epsilon: self.epsilon,
            distance: match self.distance {
                None | Some(DistanceName::CrossEntropy) => Distance::CrossEntropy,
                Some(DistanceName::Squared) => Distance::Squared,
            },
            ridge: self.ridge.unwrap_or(usual.ridge),
            smoothness: self.smoothness.unwrap_or(usual.smoothness),
            rounds: self.rounds.map_or(usual.rounds, NonZeroUsize::get),
        })
    }

    fn is_by_bags(&self) -> bool {
        self.batches == Some(BatchesName::Bags)
    }

    /// Whether there is no training without minibatches.
    pub(crate) fn needs_minibatches(&self) -> bool {
        self.method.judges_bags() || self.is_by_bags() || self.rebag.is_some()
    }

    fn check(&self) -> Result<()> {
        use MethodName as M;
        let known: [(&str, bool, &[M]); 12] = [
            ("--prior", self.prior.is_some(), &[M::EasyLlp, M::EasyLlpSgd]),
            ("--bag-weights", self.bag_weights.is_some(), &[M::EasyLlp]),
            ("--targets", self.targets.is_some(), &[M::EasyLlp, M::EasyLlpSgd]),
            ("--domain", self.domain.is_some(), &[M::EasyLlpSgd]),
            ("--iterate", self.iterate.is_some(), &[M::EasyLlpSgd]),
            ("--batches", self.batches.is_some(), &[M::EasyLlp]),
            ("--rebag", self.rebag.is_some(), &[M::EasyLlp]),
            ("--epsilon", self.epsilon.is_some(), &[M::LabelGeneration]),
            ("--distance", self.distance.is_some(), &[M::ProportionMatching]),
            ("--ridge", self.ridge.is_some(), &[M::MeanMap, M::AlternatingMeanMap]),
            ("--smoothness", self.smoothness.is_some(), &[M::LaplacianMeanMap]),
            ("--rounds", self.rounds.is_some(), &[M::LlpEm, M::AlternatingMeanMap]),
        ];
        for (option, is_given, methods) in known {
            if is_given && !methods.contains(&self.method) {
                let methods: Vec<&str> = methods.iter().map(|method| method.as_str()).collect();
                return Err(misuse(&format!(
                    "{option} is for {}, not for {}",
                    methods.join(" and "),
                    self.method
                )));
            }
        }
        let is_drawn = matches!(self.targets, Some(DrawName::Surrogate | DrawName::FreshSurrogate));
        if is_drawn && (self.is_by_bags() || self.rebag.is_some()) {
            return Err(misuse(
                "labels are drawn for minibatches of rows, without --batches bags and --rebag",
            ));
        }
        if self.is_by_bags() && self.bag_weights.is_some_and(|weights| weights != BagWeights::Equal) {
            return Err(misuse(
                "--batches bags weighs bags equally: --bag-weights is for minibatches of rows",
            ));
        }
        if self.rebag.is_some() && self.is_by_bags() {
            return Err(misuse("--rebag is for minibatches of rows, without --batches bags"));
        }
        Ok(())
    }

    /// What `show` tells of them.
    pub(crate) fn settings(&self) -> Vec<(&'static str, String)> {
        // Around a known prior bags weigh by their sizes.
        let around_prior = self.prior.map(|_| BagWeights::Size);
        let weights = match around_prior.or(self.bag_weights).unwrap_or_default() {
            BagWeights::Equal => "equal".into(),
            BagWeights::Size => "size".into(),
            BagWeights::NoiseAware => "noise".into(),
            BagWeights::Variance { rho } => format!("variance:{rho}"),
        };
        let number = |name, value: Option<f64>| value.map(|value| (name, value.to_string()));
        let is_easyllp = self.method == MethodName::EasyLlp;
        let mut settings = Vec::new();
        settings.extend(is_easyllp.then_some(("bag weights", weights)));
        settings.extend(number("prior", self.prior));
        settings.extend(self.targets.map(|targets| ("targets", name(targets))));
        settings.extend(self.batches.map(|batches| ("batches", name(batches))));
        settings.extend(self.rebag.map(|size| ("rebag", size.to_string())));
        settings.extend(self.domain.map(|domain| ("domain", format!("{domain:?}"))));
        settings.extend(self.iterate.map(|iterate| ("iterate", name(iterate))));
        settings.extend(number("epsilon", self.epsilon));
        settings.extend(self.distance.map(|distance| ("distance", name(distance))));
        settings.extend(number("ridge", self.ridge));
        settings.extend(number("smoothness", self.smoothness));
        settings.extend(self.rounds.map(|rounds| ("rounds", rounds.to_string())));
        settings
    }
}

/// What a value is called on the command line.
fn name(value: impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}
