//! Numbers in a range.

use crate::error::{Error, Result};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// A finite number above 0.
///
/// ```
/// use easyllp::method::Positive;
///
/// assert!(Positive::new(0.5)?.get() > 0.4);
/// assert!(Positive::new(0.0).is_err() && Positive::new(f64::NAN).is_err());
/// # Ok::<(), easyllp::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Positive(f64);

impl Positive {
    /// Creates the number if it is finite and above 0.
    pub fn new(number: f64) -> Result<Self> {
        if number > 0.0 && number.is_finite() { Ok(Self(number)) } else { Err(Error::NotPositive { number }) }
    }

    /// A number that is known to be one.
    pub(crate) const fn of(number: f64) -> Self {
        assert!(number > 0.0 && number.is_finite());
        Self(number)
    }

    /// The number.
    pub fn get(self) -> f64 {
        self.0
    }
}

/// A finite number of at least 0.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct NonNegative(f64);

impl NonNegative {
    /// 0.
    pub const ZERO: Self = Self(0.0);

    /// The number, if it is one.
    pub fn new(number: f64) -> Result<Self> {
        if number >= 0.0 && number.is_finite() { Ok(Self(number)) } else { Err(Error::Negative { number }) }
    }

    /// A number that is known to be one.
    pub(crate) const fn of(number: f64) -> Self {
        assert!(number >= 0.0 && number.is_finite());
        Self(number)
    }

    /// The number.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for NonNegative {
    type Error = Error;

    fn try_from(number: f64) -> Result<Self> {
        Self::new(number)
    }
}

impl From<NonNegative> for f64 {
    fn from(number: NonNegative) -> Self {
        number.0
    }
}

impl JsonSchema for NonNegative {
    fn schema_name() -> Cow<'static, str> {
        "NonNegative".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "minimum": 0 })
    }
}

impl TryFrom<f64> for Positive {
    type Error = Error;

    fn try_from(number: f64) -> Result<Self> {
        Self::new(number)
    }
}

impl From<Positive> for f64 {
    fn from(number: Positive) -> Self {
        number.0
    }
}

impl JsonSchema for Positive {
    fn schema_name() -> Cow<'static, str> {
        "Positive".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "exclusiveMinimum": 0 })
    }
}
