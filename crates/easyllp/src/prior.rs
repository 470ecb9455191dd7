//! CORRECT: the label prior, the share of each class among all rows.

use crate::bags::Bags;
use crate::classes::check_classes;
use crate::error::{Error, Result};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The probability p of each class, on the simplex by construction.
///
/// ```
/// use easyllp::correction::LabelPrior;
///
/// let prior = LabelPrior::binary(0.1)?;
/// assert_eq!(prior.classes(), [0.9, 0.1]);
/// assert!(LabelPrior::known(vec![0.5, 0.6]).is_err());
/// # Ok::<(), easyllp::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Shares")]
pub struct LabelPrior(Vec<f64>);

/// How a prior is given in settings.
#[derive(Deserialize)]
#[serde(untagged)]
enum Shares {
    /// The share of the positive class of two.
    Positive(f64),
    /// The share of each class.
    Classes(Vec<f64>),
}

impl LabelPrior {
    /// The rounding error allowed in a prior's sum.
    const SLACK: f64 = 1e-6;

    /// A known prior: at least two probabilities that sum to 1.
    pub fn known(classes: Vec<f64>) -> Result<Self> {
        check_classes(classes.len())?;
        if let Some(class) = classes.iter().position(|p| !(0.0..=1.0).contains(p)) {
            return Err(Error::PriorOutOfRange { class, value: classes[class] });
        }
        let sum: f64 = classes.iter().sum();
        if (sum - 1.0).abs() > Self::SLACK {
            return Err(Error::PriorDoesNotSum { sum });
        }
        Ok(Self::normalised(classes))
    }

    /// Normalises, unless the sum is 1 up to rounding: a stored prior is read back bit for bit.
    fn normalised(classes: Vec<f64>) -> Self {
        let sum: f64 = classes.iter().sum();
        let rounding = classes.len() as f64 * f64::EPSILON;
        let divisor = if (sum - 1.0).abs() <= rounding { 1.0 } else { sum };
        Self(classes.into_iter().map(|p| (p / divisor).min(1.0)).collect())
    }

    /// A known prior of the positive class.
    pub fn binary(positive: f64) -> Result<Self> {
        if !(0.0..=1.0).contains(&positive) {
            return Err(Error::PriorOutOfRange { class: 1, value: positive });
        }
        Ok(Self(vec![1.0 - positive, positive]))
    }

    /// Estimates the prior by pooling the class counts of all bags.
    ///
    /// Large bags have more weight, since they hold more rows. With noise a pooled share may leave
    /// [0, 1]; the result is the nearest point of the simplex.
    pub fn pooled(bags: &Bags) -> Self {
        Self::normalised(onto_simplex(bags.pooled_proportions()))
    }

    /// The probability of each class.
    pub fn classes(&self) -> &[f64] {
        &self.0
    }
}

impl TryFrom<Shares> for LabelPrior {
    type Error = Error;

    fn try_from(shares: Shares) -> Result<Self> {
        match shares {
            Shares::Positive(share) => Self::binary(share),
            Shares::Classes(classes) => Self::known(classes),
        }
    }
}

impl JsonSchema for LabelPrior {
    fn schema_name() -> Cow<'static, str> {
        "LabelPrior".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let expected = "a share from 0 to 1, or a list of the shares of all classes, which sum to 1";
        json_schema!({ "type": ["number", "array"], "x-expected": expected })
    }
}

/// The point of the simplex nearest to a point of the plane Σ = 1: subtract what sorts out the largest entries.
pub(crate) fn onto_simplex(point: Vec<f64>) -> Vec<f64> {
    if point.iter().all(|&p| p >= 0.0) {
        return point;
    }
    let mut sorted = point.clone();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let mut sum = 0.0;
    let mut excess = 0.0;
    for (rank, &p) in sorted.iter().enumerate() {
        sum += p;
        let candidate = (sum - 1.0) / (rank + 1) as f64;
        if p > candidate {
            excess = candidate;
        }
    }
    point.into_iter().map(|p| (p - excess).max(0.0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bags::{Noise, Partition};

    #[test]
    fn refuses_what_is_not_on_the_simplex() {
        assert_eq!(LabelPrior::known(vec![1.0]).unwrap_err(), Error::TooFewClasses { n_classes: 1 });
        assert_eq!(
            LabelPrior::known(vec![1.2, -0.2]).unwrap_err(),
            Error::PriorOutOfRange { class: 0, value: 1.2 }
        );
        assert!(LabelPrior::known(vec![f64::NAN, 1.0]).is_err());
        assert!(LabelPrior::binary(f64::NAN).is_err());
    }

    #[test]
    fn a_stored_prior_is_checked_and_read_back_to_the_last_bit() {
        let shares = |n_classes: u32| {
            let total = f64::from(n_classes * (n_classes + 1) / 2);
            (1..=n_classes).map(|share| f64::from(share) / total).collect::<Vec<f64>>()
        };
        let rounded = |n_classes| shares(n_classes).iter().map(|p| (p * 1e8).round() / 1e8).collect();
        for n_classes in 2..60 {
            for classes in [shares(n_classes), rounded(n_classes)] {
                let prior = LabelPrior::known(classes).unwrap();
                let stored = serde_json::to_string(&prior).unwrap();
                assert_eq!(serde_json::from_str::<LabelPrior>(&stored).unwrap(), prior);
            }
        }
        assert!(serde_json::from_str::<LabelPrior>("[0.5,0.6]").is_err());
        assert!(serde_json::from_str::<LabelPrior>("[1.0]").is_err());
    }

    #[test]
    fn pools_rows_and_not_bags() {
        let partition = Partition::new(4, [vec![0], vec![1, 2, 3]]).unwrap();
        let bags = Bags::binary(partition, &[1.0, 0.0], Noise::None).unwrap();
        assert_eq!(LabelPrior::pooled(&bags).classes(), [0.75, 0.25]);
    }

    #[test]
    fn noise_does_not_carry_it_off_the_simplex() {
        let partition = Partition::new(4, [vec![0], vec![1, 2, 3]]).unwrap();
        let bags = Bags::binary(partition, &[-2.0, 0.5], Noise::Laplace(vec![1.0; 2])).unwrap();
        assert_eq!(LabelPrior::pooled(&bags).classes(), [1.0, 0.0]);
        let nearest = onto_simplex(vec![0.7, 0.5, -0.2]);
        for (got, expected) in nearest.iter().zip([0.6, 0.4, 0.0]) {
            assert!((got - expected).abs() < 1e-12);
        }
    }
}
