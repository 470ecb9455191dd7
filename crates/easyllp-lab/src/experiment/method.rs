//! Methods by name in experiments, with default parameters unless an experiment sets them.

use easyllp::method::{
    BagObjective, CountLikelihood, DebiasedSquare, LabelGeneration, MethodConfig, ProportionMatching,
};
use easyllp::{Bags, Result};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};
use std::fmt;

/// The name of row labels in experiments and results, as in the paper.
const EVENT: &str = "event";

/// The name of a built-in method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MethodName(&'static str);

impl MethodName {
    /// Row labels.
    pub const SUPERVISED: Self = Self("supervised");
    /// Corrected targets.
    pub const EASYLLP: Self = Self("easyllp");
    /// One pass.
    pub const EASYLLP_SGD: Self = Self("easyllp-sgd");
    /// Proportions as targets.
    pub const NAIVE: Self = Self("naive");
    /// Class means from bag means.
    pub const MEAN_MAP: Self = Self("mean-map");
    /// Labels that match counts.
    pub const LABEL_GENERATION: Self = Self("label-generation");

    /// The name in results.
    pub fn as_str(self) -> &'static str {
        if self == Self::SUPERVISED { EVENT } else { self.0 }
    }

    /// The method with those of these parameters that it has.
    pub(crate) fn with(self, parameters: &[(&str, usize)]) -> Result<MethodConfig> {
        let default = self.config();
        let known = default.parameters();
        let has = |name: &str| known.iter().any(|parameter| parameter.name == name);
        let set: Vec<String> = (parameters.iter().filter(|(name, _)| has(name)))
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        if set.is_empty() { Ok(default) } else { format!("{}:{}", self.0, set.join(",")).parse() }
    }

    /// The method with its default parameters, but for label generation, which is the paper's: whole labels.
    pub(crate) fn config(self) -> MethodConfig {
        let whole = || ("epsilon".to_owned(), Value::from(0));
        let parameters = (self == Self::LABEL_GENERATION).then(whole).into_iter().collect();
        MethodConfig::with_parameters(self.0, parameters).expect("the name of a built-in method")
    }

    /// Its loss of whole bags, if it has one.
    pub(crate) fn objective(self, bags: &Bags) -> Option<Box<dyn BagObjective + '_>> {
        match self.config() {
            MethodConfig::LabelGeneration(parameters) => {
                Some(Box::new(LabelGeneration::new(bags, parameters.epsilon)))
            }
            MethodConfig::ProportionMatching(parameters) => {
                Some(Box::new(ProportionMatching::new(bags, parameters.distance)))
            }
            MethodConfig::DebiasedSquare(_) => Some(Box::new(DebiasedSquare::new(bags))),
            MethodConfig::CountLikelihood(_) => Some(Box::new(CountLikelihood::new(bags))),
            _ => None,
        }
    }

    /// Whether it minimises a loss of whole bags.
    pub(crate) fn judges_bags(self) -> bool {
        use MethodConfig as M;
        let config = self.config();
        matches!(
            config,
            M::LabelGeneration(_) | M::ProportionMatching(_) | M::DebiasedSquare(_) | M::CountLikelihood(_)
        )
    }

    /// Whether it alternates between labels and model in rounds.
    pub(crate) fn goes_by_rounds(self) -> bool {
        matches!(self.config(), MethodConfig::LlpEm(_) | MethodConfig::AlternatingMeanMap(_))
    }
}

impl Serialize for MethodName {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for MethodName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        if name == EVENT {
            return Ok(Self::SUPERVISED);
        }
        let method = MethodConfig::with_parameters(&name, Map::new()).map_err(D::Error::custom)?;
        Ok(Self(method.name()))
    }
}

impl fmt::Display for MethodName {
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        to.pad(self.as_str())
    }
}
