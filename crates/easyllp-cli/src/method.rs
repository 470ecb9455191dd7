//! Methods and what they leave open, as the commands take them.

use crate::commands::parse_count;
use anyhow::Result;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use easyllp::method::{Batches, Distance};
use easyllp::recipe::{Choices, TargetsName};
use easyllp::sgd::{Domain, Iterate, Steps};
use easyllp::{BagWeights, CountOrder, LabelPrior, MethodName};
use std::fmt::Debug;
use std::num::NonZeroUsize;
use std::str::FromStr;

#[derive(Debug, Args)]
#[command(next_help_heading = "Method")]
pub(crate) struct MethodArgs {
    /// The method; `easyllp methods` lists them
    #[arg(long, value_name = "METHOD", default_value = "easyllp")]
    pub(crate) method: MethodName,

    /// easyllp, easyllp-sgd: a known share of the positive class, or the comma-separated shares of all classes in the order of
    /// --count (with --label, in sorted order); easyllp then has the paper's targets instead of centred ones
    #[arg(long, value_name = "P", value_parser = parse_prior, conflicts_with = "bag_weights")]
    prior: Option<Shares>,

    /// easyllp: how much say each bag has: equal (the default), size, noise (as declared) or variance:RHO
    #[arg(long, value_name = "WEIGHTS")]
    bag_weights: Option<BagWeights>,

    /// easyllp, easyllp-sgd: correct proportions as they are (soft, the default), or a surrogate label drawn from them for each row,
    /// once or afresh in every epoch
    #[arg(long, value_parser = one_of::<TargetsName>(TargetsName::NAMES), value_name = "TARGETS")]
    targets: Option<TargetsName>,

    /// easyllp: minibatches of rows of all bags (the default), or of whole bags, each batch centred at its own proportions
    #[arg(long, value_parser = one_of::<Batches>(Batches::NAMES), value_name = "UNITS")]
    batches: Option<Batches>,

    /// easyllp, with --label: deal rows anew into bags of this size in every epoch
    #[arg(long, value_name = "SIZE", value_parser = parse_count)]
    rebag: Option<NonZeroUsize>,

    /// easyllp-sgd: where weights are kept: whole (anywhere, the default), ball:RADIUS or box:BOUND
    #[arg(long, value_name = "DOMAIN")]
    domain: Option<Domain>,

    /// easyllp-sgd: steps of size 1/sqrt(kt) (soft), 1/(k sqrt(t)) (surrogate) or 1/sqrt(t) (given), times --lr, for bags of k rows;
    /// by default those of the paper for these targets
    #[arg(long, value_parser = one_of::<Steps>(Steps::NAMES), value_name = "STEPS")]
    steps: Option<Steps>,

    /// easyllp-sgd: end with the last weights (the default), or with the mean of all
    #[arg(long, value_parser = one_of::<Iterate>(Iterate::NAMES), value_name = "ITERATE")]
    iterate: Option<Iterate>,

    /// label-generation: how soft labels are; by default they are whole
    #[arg(long, value_name = "EPSILON", value_parser = parse_positive, allow_negative_numbers = true)]
    epsilon: Option<f64>,

    /// proportion-matching: what a mean prediction is compared by
    #[arg(long, value_parser = one_of::<Distance>(Distance::NAMES), value_name = "DISTANCE")]
    distance: Option<Distance>,

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

/// One of these names.
pub(crate) fn one_of<T>(names: &'static [&'static str]) -> impl TypedValueParser<Value = T>
where
    T: FromStr<Err: Debug> + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(names).map(|name| name.parse().expect("one of the names"))
}

pub(crate) fn parse_share(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|share| (0.0..1.0).contains(share))
        .ok_or("a number from 0 to below 1 is needed".into())
}

/// The share of the positive class, or of each class.
#[derive(Debug, Clone)]
struct Shares(Vec<f64>);

impl Shares {
    /// The prior, if classes are given in an order that is not theirs.
    fn prior(&self, order: Option<&CountOrder>) -> easyllp::Result<LabelPrior> {
        match (&self.0[..], order) {
            ([positive], _) => LabelPrior::binary(*positive),
            (shares, Some(CountOrder::Columns(places))) if shares.len() == places.len() => {
                LabelPrior::known(places.iter().map(|&place| shares[place]).collect())
            }
            (shares, _) => LabelPrior::known(shares.to_vec()),
        }
    }
}

fn parse_prior(text: &str) -> Result<Shares, String> {
    let shares = Shares(text.split(',').map(|share| parse_share(share.trim())).collect::<Result<_, _>>()?);
    shares.prior(None).map(|_| shares).map_err(|error| error.to_string())
}

pub(crate) fn parse_positive(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| *number > 0.0 && f64::is_finite(*number));
    number.ok_or("a number above 0 is needed".into())
}

impl MethodArgs {
    /// The option that needs labels of the rows, if one does.
    pub(crate) fn needs_labels(&self) -> Option<&'static str> {
        match self.method {
            _ if self.rebag.is_some() => Some("--rebag"),
            MethodName::Event => Some("--method event"),
            _ => None,
        }
    }

    /// The parameters of the method. Shares of classes are put from the order of count columns into that of the classes.
    pub(crate) fn choices(&self, order: Option<&CountOrder>) -> Result<Choices> {
        Ok(Choices {
            prior: self.prior.as_ref().map(|shares| shares.prior(order)).transpose()?,
            bag_weights: self.bag_weights,
            targets: self.targets,
            batches: self.batches,
            rebag: self.rebag,
            domain: self.domain,
            steps: self.steps,
            iterate: self.iterate,
            epsilon: self.epsilon,
            distance: self.distance,
            ridge: self.ridge,
            smoothness: self.smoothness,
            rounds: self.rounds,
        })
    }
}
