//! The experiments: each is described by a file and consists of [cells](crate::Cell).

mod accuracy;
pub(crate) mod comparison;
mod diverged;
mod erm;
mod held_out;
pub(crate) mod method;
mod population;
mod sgd;
mod tracking;
mod variance;

pub use accuracy::Accuracy;
pub(crate) use accuracy::{ALL, MEASURES};
pub use comparison::Comparison;
pub use erm::Erm;
pub(crate) use population::IN_WORDS as POPULATION;
pub use sgd::Sgd;
pub use tracking::Tracking;
pub use variance::Variance;

use crate::data::{self, Data, DatasetName};
use crate::error::{Error, Result};
use crate::runner::Cell;
use easyllp::ModelSpec;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The content of an experiment file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "experiment", rename_all = "kebab-case")]
pub enum Kind {
    /// Accuracy against bag size, by method.
    Accuracy(Accuracy),
    /// Methods with default settings, on the same bags.
    Comparison(Comparison),
    /// Variance of estimates against bag size and share of positives.
    Variance(Variance),
    /// The training loss by epoch: true, and estimated from bags.
    Tracking(Tracking),
    /// The paper's one-pass algorithm: excess risk.
    Sgd(Sgd),
    /// Empirical risk minimisation: excess risk.
    Erm(Erm),
}

impl Kind {
    /// Checks the settings.
    pub(crate) fn check(&self) -> Result<(), String> {
        match self {
            Self::Accuracy(accuracy) => accuracy.check(),
            Self::Comparison(comparison) => comparison.check(),
            Self::Variance(variance) => variance.check(),
            Self::Tracking(tracking) => tracking.check(),
            Self::Sgd(sgd) => sgd.check(),
            Self::Erm(erm) => erm.check(),
        }
    }
}

/// An experiment with its name.
#[derive(Debug, Clone, PartialEq)]
pub struct Experiment {
    /// The name: that of its file.
    pub name: String,
    /// The settings.
    pub kind: Kind,
}

/// The paper's experiments in the order of its figures, then its theorems; then comparisons of the default method; and their quick
/// versions on embedded data.
const EMBEDDED: [(&str, &str); 29] = [
    ("variance", include_str!("../experiments/variance.toml")),
    ("mnist-linear", include_str!("../experiments/mnist-linear.toml")),
    ("mnist-cnn", include_str!("../experiments/mnist-cnn.toml")),
    ("mnist-cnn-classes", include_str!("../experiments/mnist-cnn-classes.toml")),
    ("cifar-linear", include_str!("../experiments/cifar-linear.toml")),
    ("cifar-cnn", include_str!("../experiments/cifar-cnn.toml")),
    ("ctr-linear", include_str!("../experiments/ctr-linear.toml")),
    ("ctr-network", include_str!("../experiments/ctr-network.toml")),
    ("tracking", include_str!("../experiments/tracking.toml")),
    ("cifar-classes", include_str!("../experiments/cifar-classes.toml")),
    ("sgd", include_str!("../experiments/sgd.toml")),
    ("erm", include_str!("../experiments/erm.toml")),
    ("auto-adult-linear", include_str!("../experiments/auto-adult-linear.toml")),
    ("auto-adult-network", include_str!("../experiments/auto-adult-network.toml")),
    ("auto-adult-unequal", include_str!("../experiments/auto-adult-unequal.toml")),
    ("auto-adult-noise", include_str!("../experiments/auto-adult-noise.toml")),
    ("auto-mnist-linear", include_str!("../experiments/auto-mnist-linear.toml")),
    ("auto-mnist-cnn", include_str!("../experiments/auto-mnist-cnn.toml")),
    ("auto-mnist-digits", include_str!("../experiments/auto-mnist-digits.toml")),
    ("auto-cifar-cnn", include_str!("../experiments/auto-cifar-cnn.toml")),
    ("quick-auto", include_str!("../experiments/quick-auto.toml")),
    ("quick-variance", include_str!("../experiments/quick-variance.toml")),
    ("quick-linear", include_str!("../experiments/quick-linear.toml")),
    ("quick-cnn", include_str!("../experiments/quick-cnn.toml")),
    ("quick-ctr-linear", include_str!("../experiments/quick-ctr-linear.toml")),
    ("quick-ctr", include_str!("../experiments/quick-ctr.toml")),
    ("quick-tracking", include_str!("../experiments/quick-tracking.toml")),
    ("quick-sgd", include_str!("../experiments/quick-sgd.toml")),
    ("quick-erm", include_str!("../experiments/quick-erm.toml")),
];

/// The names of the built-in experiments: the paper's, or the quick ones.
pub fn names(quick: bool) -> impl Iterator<Item = &'static str> {
    EMBEDDED.iter().map(|(name, _)| *name).filter(move |name| name.starts_with("quick-") == quick)
}

impl Experiment {
    /// A built-in experiment by name.
    pub fn named(name: &str) -> Option<Result<Self>> {
        let (name, text) = EMBEDDED.iter().find(|(known, _)| *known == name)?;
        Some(Self::parse(name, text))
    }

    /// Parses an experiment file.
    pub fn parse(name: &str, text: &str) -> Result<Self> {
        let bad = |reason: String| Error::Description { name: name.into(), reason };
        let kind: Kind = toml::from_str(text).map_err(|error| bad(error.to_string().trim().into()))?;
        kind.check().map_err(bad)?;
        Ok(Self { name: name.into(), kind })
    }

    /// Whether it is a built-in experiment, with any number of replicas. A user's own file may have
    /// the same name.
    pub(crate) fn comes_along(&self, quick: bool) -> bool {
        let of_one = |experiment: &Self| {
            let mut experiment = experiment.clone();
            experiment.set_replicas(1);
            experiment
        };
        let is_it = |known: Result<Self>| known.is_ok_and(|known| of_one(&known) == of_one(self));
        names(quick).any(|name| name == self.name) && Self::named(&self.name).is_some_and(is_it)
    }

    /// Whether the name refers to it: its own name, also without `quick-`, or that of its kind.
    pub fn answers_to(&self, name: &str) -> bool {
        let kind = match &self.kind {
            Kind::Accuracy(_) => "accuracy",
            // The default method against all others.
            Kind::Comparison(_) => "auto",
            Kind::Variance(_) => "variance",
            Kind::Tracking(_) => "tracking",
            Kind::Sgd(_) => "sgd",
            Kind::Erm(_) => "erm",
        };
        ["all", kind, &self.name, self.name.trim_start_matches("quick-")].contains(&name)
    }

    /// The experiment with another number of replicas.
    pub fn set_replicas(&mut self, replicas: u32) {
        match &mut self.kind {
            Kind::Accuracy(accuracy) => accuracy.replicas = replicas,
            Kind::Comparison(comparison) => comparison.replicas = replicas,
            Kind::Tracking(tracking) => tracking.replicas = replicas,
            // Their samples are their replicas.
            Kind::Variance(_) | Kind::Sgd(_) | Kind::Erm(_) => {}
        }
    }

    /// The experiment with bags that are regrouped in every epoch, for methods that support it.
    pub fn set_rebag(&mut self) {
        if let Kind::Accuracy(accuracy) = &mut self.kind {
            accuracy.rebag = true;
            accuracy.methods.retain(|method| Accuracy::knows_rebag(*method));
            // Results of its own.
            self.name.push_str("-rebag");
        }
    }

    /// Loads the data that it needs, if any, from this folder.
    pub fn load(&self, folder: &Path) -> Result<Option<Data>> {
        self.dataset().map(|dataset| data::load(dataset, folder)).transpose()
    }

    /// The data set that it needs, if any.
    pub fn dataset(&self) -> Option<DatasetName> {
        match &self.kind {
            Kind::Accuracy(accuracy) => Some(accuracy.dataset),
            Kind::Comparison(comparison) => Some(comparison.dataset),
            Kind::Tracking(tracking) => Some(tracking.dataset),
            Kind::Variance(_) | Kind::Sgd(_) | Kind::Erm(_) => None,
        }
    }

    /// Its cells, with the data from [`load`](Self::load).
    pub fn cells<'d>(&self, data: Option<&'d Data>, seed: u64) -> Result<Vec<Cell<'d>>> {
        let data = || {
            data.ok_or_else(|| Error::Description {
                name: self.name.clone(),
                reason: "its data is not loaded".into(),
            })
        };
        match &self.kind {
            Kind::Accuracy(accuracy) => accuracy.cells(data()?, seed),
            Kind::Comparison(comparison) => comparison.cells(data()?, seed),
            Kind::Tracking(tracking) => tracking.cells(data()?, seed),
            Kind::Variance(variance) => Ok(variance.cells(seed)),
            Kind::Sgd(sgd) => Ok(sgd.cells(seed)),
            Kind::Erm(erm) => Ok(erm.cells(seed)),
        }
    }
}

/// Checks that a list is not empty, or that a number is above 0.
fn check_all(checks: &[(&str, bool)]) -> Result<(), String> {
    match checks.iter().find(|(_, is_right)| !is_right) {
        Some((what, _)) => Err((*what).into()),
        None => Ok(()),
    }
}

fn check_sizes_and_bags(sizes: &[usize], bags: &[usize]) -> Result<(), String> {
    check_all(&[
        ("`sizes` must be numbers from 1 on", !sizes.is_empty() && sizes.iter().all(|&size| size > 0)),
        ("`bags` must be numbers from 2 on", !bags.is_empty() && bags.iter().all(|&bags| bags > 1)),
    ])
}

/// A model by its layers instead of the name of a network, whose layers might change: results
/// depend on them.
fn written_out(model: &str) -> String {
    model.parse::<ModelSpec>().expect("an experiment is checked when it is read").to_string()
}

/// The seed of each part of an experiment: it does not depend on which other parts are run.
fn seed_of(seed: u64, part: &str) -> u64 {
    // FNV-1a: short, and the same for ever.
    let bytes = seed.to_le_bytes().into_iter().chain(part.bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_come_with_the_program_are_read_and_have_cells_of_their_own() {
        for quick in [false, true] {
            for name in names(quick) {
                let experiment = Experiment::named(name).unwrap().unwrap();
                let embedded = [
                    None,
                    Some(DatasetName::Optdigits),
                    Some(DatasetName::Adult),
                    Some(DatasetName::SyntheticCtr),
                ];
                if !embedded.contains(&experiment.dataset()) {
                    assert!(!quick, "{name} needs data that is not embedded");
                    continue;
                }
                let data = experiment.load(Path::new("nowhere")).unwrap();
                let cells = experiment.cells(data.as_ref(), 1).unwrap();
                let mut keys: Vec<&str> = cells.iter().map(|cell| cell.key.as_str()).collect();
                keys.sort_unstable();
                keys.dedup();
                assert!(!cells.is_empty() && keys.len() == cells.len(), "{name}");
            }
        }
    }

    #[test]
    fn what_comes_along_is_known_by_its_name_and_by_what_it_is() {
        let mut experiment = Experiment::named("quick-linear").unwrap().unwrap();
        experiment.set_replicas(99);
        assert!(experiment.comes_along(true) && !experiment.comes_along(false));
        experiment.name = "own".into();
        assert!(!experiment.comes_along(true));
        let own = "experiment = \"erm\"\nsizes = [1]\nbags = [4]\nsamples = 1";
        assert!(!Experiment::parse("erm", own).unwrap().comes_along(false));
    }

    #[test]
    fn what_describes_nothing_is_refused_in_words() {
        let refused = |text: &str| Experiment::parse("e.toml", text).unwrap_err().to_string();
        assert!(refused("experiment = \"dance\"").contains("e.toml describes no experiment"));
        assert!(
            refused("experiment = \"sgd\"\nstep = 3\nsizes = [1]\nbags = [4]\npasses = 1").contains("step")
        );
        assert!(refused("experiment = \"sgd\"\nsizes = []\nbags = [4]\npasses = 1").contains("sizes"));
    }

    #[test]
    fn seeds_differ_by_part_and_by_seed() {
        let seeds = [seed_of(1, "a"), seed_of(1, "b"), seed_of(2, "a"), seed_of(1, "")];
        assert!((0..4).all(|one| (0..one).all(|other| seeds[one] != seeds[other])));
    }
}
