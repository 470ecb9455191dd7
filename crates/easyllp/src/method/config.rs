//! The built-in methods by name, each with its parameters.
//!
//! One schema for the command line, TOML files, Python and model files. To add a method, write its
//! file with parameters that implement [`Method`] and `BuiltIn`, and add a line to the list below.

use super::schema::{self, About, Assumes, BuiltIn, Parameter};
use super::{
    AlternatingMeanMapParams, AutoParams, CountLikelihoodParams, DebiasedSquareParams, EasyLlpParams,
    EasyLlpSgdParams, LabelGenerationParams, LaplacianMeanMapParams, LlpEmParams, MeanMapParams, NaiveParams,
    ProportionMatchingParams, SupervisedParams,
};
use crate::error::{Error, Result};
use crate::prior::LabelPrior;
use crate::session::{Method, Requires, Session, Supports};
use schemars::Schema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};
use std::fmt;
use std::str::FromStr;

/// The key of the method's name, next to its parameters.
const NAME: &str = "name";

macro_rules! built_in_methods {
    ($($variant:ident($params:ident)),* $(,)?) => {
        /// A built-in method with its parameters.
        ///
        /// As text it is the name and the parameters that differ from their defaults:
        ///
        /// ```
        /// use easyllp::MethodConfig;
        ///
        /// let method: MethodConfig = "label-generation:epsilon=0.1".parse()?;
        /// assert_eq!(method.to_string(), "label-generation:epsilon=0.1");
        /// let error = "label-generation:epsilon=-1".parse::<MethodConfig>().unwrap_err();
        /// assert_eq!(error.to_string(), "parameter `epsilon` of label-generation is -1: expected a number of at least 0");
        /// # Ok::<(), easyllp::Error>(())
        /// ```
        #[derive(Debug, Clone, PartialEq)]
        pub enum MethodConfig {
            $(
                #[doc = concat!("See [`", stringify!($params), "`].")]
                $variant($params),
            )*
        }

        impl MethodConfig {
            /// All built-in methods, with default parameters.
            pub fn all() -> Vec<Self> {
                vec![$(Self::$variant($params::default())),*]
            }

            /// A method by name with these parameters; the others have their defaults.
            pub fn with_parameters(name: &str, parameters: Map<String, Value>) -> Result<Self> {
                $(
                    if $params::ABOUT.name == name || $params::ABOUT.aliases.contains(&name) {
                        return Ok(Self::$variant(parsed(parameters)?));
                    }
                )*
                Err(Error::UnknownMethod { name: name.to_owned(), choices: names().join(", ") })
            }

            /// The method's summary.
            pub fn about(&self) -> &'static About {
                match self {
                    $(Self::$variant(_) => &$params::ABOUT,)*
                }
            }

            /// The parameters, by name.
            fn values(&self) -> Map<String, Value> {
                let value = match self {
                    $(Self::$variant(parameters) => serde_json::to_value(parameters),)*
                };
                let Ok(Value::Object(values)) = value else { panic!("parameters are a struct of plain values") };
                values
            }

            /// The JSON schema of the parameters.
            pub fn schema(&self) -> Schema {
                match self {
                    $(Self::$variant(_) => schema::schema_of::<$params>(),)*
                }
            }

            fn method(&self) -> &dyn Method {
                match self {
                    $(Self::$variant(parameters) => parameters,)*
                }
            }
        }
    };
}

built_in_methods! {
    Auto(AutoParams),
    EasyLlp(EasyLlpParams),
    EasyLlpSgd(EasyLlpSgdParams),
    Supervised(SupervisedParams),
    Naive(NaiveParams),
    LabelGeneration(LabelGenerationParams),
    ProportionMatching(ProportionMatchingParams),
    DebiasedSquare(DebiasedSquareParams),
    CountLikelihood(CountLikelihoodParams),
    LlpEm(LlpEmParams),
    MeanMap(MeanMapParams),
    LaplacianMeanMap(LaplacianMeanMapParams),
    AlternatingMeanMap(AlternatingMeanMapParams),
}

fn names() -> Vec<&'static str> {
    MethodConfig::all().iter().map(|method| method.about().name).collect()
}

/// Parses parameters one by one, so that the error names the invalid one.
fn parsed<P: BuiltIn>(parameters: Map<String, Value>) -> Result<P> {
    let method = P::ABOUT.name;
    let known = schema::parameters_of(&schema::schema_of::<P>());
    for (name, value) in &parameters {
        let Some(parameter) = known.iter().find(|parameter| parameter.name == *name) else {
            let known: Vec<&str> = known.iter().map(|parameter| parameter.name.as_str()).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(Error::UnknownParameter { method, name: name.clone(), known });
        };
        let alone = Map::from_iter([(name.clone(), value.clone())]);
        if serde_json::from_value::<P>(Value::Object(alone)).is_err() {
            let (name, value) = (name.clone(), schema::shown(value));
            return Err(Error::BadParameter { method, name, value, expected: parameter.expected.clone() });
        }
    }
    serde_json::from_value(Value::Object(parameters))
        .map_err(|error| Error::Parameters { method, source: error.into() })
}

impl MethodConfig {
    /// The name.
    pub fn name(&self) -> &'static str {
        self.about().name
    }

    /// The name and the parameters as text, such as `llp-em:rounds=7`, for
    /// [`with_parameters`](Self::with_parameters).
    pub fn name_and_parameters(text: &str) -> Result<(&str, Map<String, Value>)> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let mut parameters = Map::new();
        for part in parts(rest) {
            let Some((key, value)) = part.split_once('=') else {
                return Err(Error::Config {
                    reason: format!("`{part}` in method `{text}`: expected PARAMETER=VALUE"),
                });
            };
            let key = key.trim().replace('-', "_");
            if parameters.insert(key.clone(), value_of(value.trim())).is_some() {
                return Err(Error::Config {
                    reason: format!("parameter `{key}` is set twice in method `{text}`"),
                });
            }
        }
        Ok((name.trim(), parameters))
    }

    /// The parameters, with their ranges and defaults.
    pub fn parameters(&self) -> Vec<Parameter> {
        schema::parameters_of(&self.schema())
    }

    /// Whether the method is biased if bags are not random.
    pub fn assumes_random_bags(&self) -> bool {
        self.about().bags == Assumes::RandomBags
    }

    /// The known label prior, if the method has this parameter and it is set.
    pub fn prior_mut(&mut self) -> Option<&mut LabelPrior> {
        match self {
            Self::EasyLlp(parameters) => parameters.prior.as_mut(),
            Self::EasyLlpSgd(parameters) => parameters.prior.as_mut(),
            _ => None,
        }
    }
}

impl Default for MethodConfig {
    fn default() -> Self {
        Self::EasyLlp(EasyLlpParams::default())
    }
}

impl Method for MethodConfig {
    fn name(&self) -> &str {
        self.method().name()
    }

    fn supports(&self) -> Supports {
        self.method().supports()
    }

    fn requires(&self) -> Requires {
        self.method().requires()
    }

    fn penalty(&self) -> Option<f64> {
        self.method().penalty()
    }

    fn check(&self, has_row_labels: bool) -> Result<()> {
        self.method().check(has_row_labels)
    }

    fn run(&self, session: &mut Session) -> Result<()> {
        self.method().run(session)
    }
}

impl fmt::Display for MethodConfig {
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        let default = Self::with_parameters(self.about().name, Map::new()).map_err(|_| fmt::Error)?.values();
        let set: Vec<String> = (self.values().iter())
            .filter(|(name, value)| default.get(*name) != Some(*value))
            .map(|(name, value)| format!("{name}={}", schema::shown(value)))
            .collect();
        let words = if set.is_empty() { String::new() } else { format!(":{}", set.join(",")) };
        to.pad(&format!("{}{words}", self.about().name))
    }
}

impl FromStr for MethodConfig {
    type Err = Error;

    /// `NAME` or `NAME:PARAMETER=VALUE,…`. Values are numbers, words, or lists such as `[0.2,0.8]`.
    fn from_str(text: &str) -> Result<Self> {
        let (name, parameters) = Self::name_and_parameters(text)?;
        Self::with_parameters(name, parameters)
    }
}

/// The parts between commas that are not in brackets.
fn parts(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0_usize, 0, Vec::new());
    for (place, byte) in text.bytes().enumerate() {
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                parts.push(&text[start..place]);
                start = place + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts.retain(|part| !part.trim().is_empty());
    parts
}

/// A number or a list, else text.
fn value_of(text: &str) -> Value {
    let number = || text.parse::<f64>().ok().filter(|number| number.is_finite());
    serde_json::from_str(text)
        .ok()
        .or_else(|| number().map(Value::from))
        .unwrap_or_else(|| Value::String(text.to_owned()))
}

impl Serialize for MethodConfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut all = Map::from_iter([(NAME.to_owned(), Value::from(self.about().name))]);
        all.extend(self.values());
        all.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for MethodConfig {
    /// A table with the name and the parameters, or the text form.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let read = match Value::deserialize(deserializer)? {
            Value::String(words) => words.parse(),
            Value::Object(mut values) => match values.remove(NAME) {
                Some(Value::String(name)) => Self::with_parameters(&name, values),
                _ => return Err(D::Error::custom("a method needs its `name`, such as name = \"easyllp\"")),
            },
            _ => return Err(D::Error::custom("expected a method: its name, or a table with its `name`")),
        };
        read.map_err(|error| D::Error::custom(error.in_full()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_and_written() {
        for words in [
            "easyllp",
            "easyllp:prior=[0.7,0.3],targets=surrogate",
            "easyllp:bag_weights=variance:2",
            "easyllp:batches=bags",
            "easyllp-sgd:domain=ball:2.5,iterate=average,steps=given",
            "label-generation:epsilon=0.5",
            "llp-em:rounds=7",
            "mean-map:ridge=1e-6",
        ] {
            let method: MethodConfig = words.parse().unwrap();
            assert_eq!(method.to_string(), words);
            let json = serde_json::to_string(&method).unwrap();
            assert_eq!(serde_json::from_str::<MethodConfig>(&json).unwrap(), method, "{json}");
        }
        let by_share: MethodConfig = "easyllp: prior = .3".parse().unwrap();
        assert_eq!(by_share, "easyllp:prior=[0.7,0.3]".parse().unwrap());
        assert_eq!("event-level".parse::<MethodConfig>().unwrap().name(), "supervised");
        assert_eq!(
            "easyllp:bag-weights=size".parse::<MethodConfig>().unwrap().to_string(),
            "easyllp:bag_weights=size"
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (words, message) in [
            ("forest", "unknown method `forest`: choose one of auto, "),
            ("naive:epsilon=1", "method naive has no parameter `epsilon`: its parameters are none"),
            (
                "easyllp:wights=size",
                "method easyllp has no parameter `wights`: its parameters are bag_weights, batches, prior, rebag, targets",
            ),
            (
                "easyllp:targets=hard",
                "parameter `targets` of easyllp is hard: expected soft, surrogate or fresh-surrogate",
            ),
            ("easyllp:rebag=0", "parameter `rebag` of easyllp is 0: expected a whole number of at least 1"),
            ("easyllp:prior=[0.5,0.6]", "parameter `prior` of easyllp is [0.5,0.6]: expected "),
            ("easyllp:prior=nan", "parameter `prior` of easyllp is nan: expected "),
            ("easyllp-sgd:domain=ball:-1", "parameter `domain` of easyllp-sgd is ball:-1: expected whole, "),
            ("mean-map:ridge=inf", "parameter `ridge` of mean-map is inf: expected a number above 0"),
            ("easyllp:rebag", "`rebag` in method `easyllp:rebag`: expected PARAMETER=VALUE"),
            (
                "llp-em:rounds=2,rounds=3",
                "parameter `rounds` is set twice in method `llp-em:rounds=2,rounds=3`",
            ),
        ] {
            let error = words.parse::<MethodConfig>().unwrap_err().in_full();
            assert!(error.starts_with(message), "{words}: {error}");
        }
    }

    #[test]
    fn parameters_have_what_help_shows() {
        for method in MethodConfig::all() {
            for Parameter { name, about, expected, default } in method.parameters() {
                assert!(about.ends_with('.') && !expected.is_empty(), "{method} {name}: {about} {expected}");
                // The default is a value that it may have.
                if let Some(default) = default {
                    format!("{method}:{name}={default}").parse::<MethodConfig>().unwrap();
                }
            }
        }
    }

    /// `EASYLLP_WRITE_DOCS=1 cargo test tables` writes the file.
    #[test]
    fn the_documented_tables_are_those_of_the_schema() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/method/methods.md");
        let expected = format!("{}{}", schema::methods_table(), schema::parameters_tables());
        if std::env::var_os("EASYLLP_WRITE_DOCS").is_some() {
            std::fs::write(path, &expected).unwrap();
            return;
        }
        assert!(include_str!("methods.md") == expected, "run `EASYLLP_WRITE_DOCS=1 cargo test tables`");
    }
}
