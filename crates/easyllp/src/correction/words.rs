//! Bag weights in words.

use super::BagWeights;
use crate::error::{Error, Result};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

const CHOICES: &str = "equal, size, noise or variance:RHO with RHO of at least 0";

impl fmt::Display for BagWeights {
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Equal => to.write_str("equal"),
            Self::Size => to.write_str("size"),
            Self::NoiseAware => to.write_str("noise"),
            Self::Variance { rho } => write!(to, "variance:{rho}"),
        }
    }
}

impl FromStr for BagWeights {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match (text, text.strip_prefix("variance:").map(str::parse)) {
            ("equal", _) => Ok(Self::Equal),
            ("size", _) => Ok(Self::Size),
            ("noise", _) => Ok(Self::NoiseAware),
            (_, Some(Ok(rho))) if rho >= 0.0 && f64::is_finite(rho) => Ok(Self::Variance { rho }),
            _ => Err(Error::UnknownName { what: "bag weight", name: text.to_owned(), choices: CHOICES }),
        }
    }
}

impl TryFrom<String> for BagWeights {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<BagWeights> for String {
    fn from(weights: BagWeights) -> Self {
        weights.to_string()
    }
}

impl JsonSchema for BagWeights {
    fn schema_name() -> Cow<'static, str> {
        "BagWeights".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "x-expected": CHOICES })
    }
}
