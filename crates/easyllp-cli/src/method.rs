//! The method as given on the command line or in a file.

use easyllp::{MethodConfig, classes::CountOrder, correction::LabelPrior};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use std::str::FromStr;

/// A method as given: a prior of several classes is in the order of the count columns.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MethodSetting {
    method: MethodConfig,
    /// Text, or a table of parameters.
    given: Value,
}

impl MethodSetting {
    /// The method with its prior in the order of classes.
    pub(crate) fn in_class_order(&self, order: Option<&CountOrder>) -> easyllp::Result<MethodConfig> {
        let mut method = self.method.clone();
        if let (true, Some(CountOrder::Columns(places)), Some(prior)) =
            (self.lists_prior(), order, method.prior_mut())
            && places.len() == prior.classes().len()
        {
            *prior = LabelPrior::known(places.iter().map(|&place| prior.classes()[place]).collect())?;
        }
        Ok(method)
    }

    /// Whether the prior has a share per class, not only that of the positive class.
    fn lists_prior(&self) -> bool {
        match &self.given {
            Value::String(words) => words.replace(char::is_whitespace, "").contains("prior=["),
            table => table.get("prior").is_some_and(Value::is_array),
        }
    }
}

impl Default for MethodSetting {
    fn default() -> Self {
        let method = MethodConfig::default();
        Self { given: Value::String(method.to_string()), method }
    }
}

impl FromStr for MethodSetting {
    type Err = easyllp::Error;

    fn from_str(words: &str) -> easyllp::Result<Self> {
        Ok(Self { method: words.parse()?, given: Value::String(words.to_owned()) })
    }
}

impl Serialize for MethodSetting {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.given.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for MethodSetting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let given = Value::deserialize(deserializer)?;
        let method = MethodConfig::deserialize(&given).map_err(serde::de::Error::custom)?;
        Ok(Self { method, given })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_prior_is_put_into_class_order_and_a_share_is_not() {
        let order = CountOrder::Columns(vec![1, 0]);
        let prior = |words: &str| {
            let setting: MethodSetting = words.parse().unwrap();
            let mut method = setting.in_class_order(Some(&order)).unwrap();
            method.prior_mut().unwrap().classes().to_vec()
        };
        assert_eq!(prior("easyllp: prior = [0.25, 0.75]"), [0.75, 0.25]);
        assert_eq!(prior("easyllp:prior=0.75"), [0.25, 0.75]);
        let table: MethodSetting = toml::from_str("name = 'easyllp'\nprior = [0.25, 0.75]").unwrap();
        let mut method = table.in_class_order(Some(&order)).unwrap();
        assert_eq!(method.prior_mut().unwrap().classes(), [0.75, 0.25]);
        assert_eq!(table.in_class_order(None).unwrap(), table.method);
    }
}
