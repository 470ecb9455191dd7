//! `--config FILE`: settings in TOML. The `[data]` table names the inputs; the other keys are those
//! of [`FitConfig`] and of the commands. Every command reads the keys that it has options for. The
//! command line overrides them.

use crate::data::DataConfig;
use crate::method::MethodSetting;
use crate::output::misuse;
use anyhow::{Context, Result};
use easyllp::fit::{OptimizerConfig, ValidationConfig};
use easyllp::{FitConfig, ModelSpec, classes::CountOrder, loss::LossName, model::ImageShape};
use serde::{Deserialize, Serialize};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// The settings in a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ConfigFile {
    /// The model file to write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) out: Option<PathBuf>,
    #[serde(with = "words", skip_serializing_if = "Option::is_none")]
    pub(crate) image: Option<ImageShape>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) label: Option<String>,
    #[serde(deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub(crate) positive: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) threads: Option<NonZeroUsize>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) force: bool,
    pub(crate) model: ModelSpec,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) loss: Option<LossName>,
    pub(crate) seed: u64,
    pub(crate) method: MethodSetting,
    pub(crate) optimizer: OptimizerConfig,
    pub(crate) validation: ValidationConfig,
    pub(crate) data: DataConfig,
}

impl Default for ConfigFile {
    fn default() -> Self {
        let FitConfig { method: _, model, loss, optimizer, validation, seed } = FitConfig::default();
        Self {
            out: None,
            image: None,
            label: None,
            positive: Vec::new(),
            threads: None,
            force: false,
            model,
            loss,
            seed,
            method: MethodSetting::default(),
            optimizer,
            validation,
            data: DataConfig::default(),
        }
    }
}

impl ConfigFile {
    /// Reads a file; without one, returns the defaults.
    pub(crate) fn read(path: Option<&Path>) -> Result<Self> {
        let Some(path) = path else { return Ok(Self::default()) };
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        toml::from_str(&text).map_err(|error| {
            let line = error.span().map_or(1, |span| 1 + text[..span.start].matches('\n').count());
            let message = error.message().replace('\n', " ").replace("unknown field", "unknown key");
            misuse(&format!("{}, line {line}: {message}", path.display()))
        })
    }

    /// The settings of the fit, for counts in this order.
    pub(crate) fn fit_config(&self, order: Option<&CountOrder>) -> easyllp::Result<FitConfig> {
        Ok(FitConfig {
            method: self.method.in_class_order(order)?,
            model: self.model.clone(),
            loss: self.loss,
            optimizer: self.optimizer,
            validation: self.validation,
            seed: self.seed,
        })
    }

    /// The text of the file.
    pub(crate) fn to_toml(&self) -> Result<String> {
        toml::to_string(self).context("these settings cannot be written as TOML")
    }
}

/// A text, or a list of texts.
pub(crate) fn list<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected a text or a list of texts")]
    enum List {
        One(String),
        Several(Vec<String>),
    }
    Ok(match List::deserialize(deserializer)? {
        List::One(text) => vec![text],
        List::Several(texts) => texts,
    })
}

/// A value with a text form, such as `1x28x28`.
mod words {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::fmt::Display;
    use std::str::FromStr;

    #[expect(clippy::ref_option, reason = "serde passes a reference to the field")]
    pub(super) fn serialize<T: Display, S: Serializer>(
        value: &Option<T>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        value.as_ref().map(ToString::to_string).serialize(serializer)
    }

    pub(super) fn deserialize<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
    where
        T: FromStr<Err: Display>,
        D: Deserializer<'de>,
    {
        String::deserialize(deserializer)?.parse().map(Some).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use easyllp::table::Delimiter;

    fn read(text: &str) -> Result<ConfigFile, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.toml");
        std::fs::write(&path, text).unwrap();
        ConfigFile::read(Some(&path)).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_written_is_read_back() {
        let text = "image = '1x2x2'\nmodel = 'mlp:8'\nloss = 'squared'\nseed = 3\n[method]\nname = 'easyllp'\nprior = 0.3\n\
                    [optimizer]\nepochs = 3\n[data]\nrows = 'a.csv'\ndelimiter = '\t'\nkey = ['a', 'b']\nnoise = 'laplace:scale'\n";
        let file = read(text).unwrap();
        assert_eq!((&file.data.rows[..], file.data.delimiter), (&["a.csv".into()][..], Some(Delimiter::Tab)));
        assert!(file.to_toml().unwrap().contains("delimiter = \"tab\""));
        assert_eq!(read(&file.to_toml().unwrap()).unwrap(), file);
        let settings = toml::to_string(&FitConfig::default()).unwrap();
        assert_eq!(read(&settings).unwrap().fit_config(None).unwrap(), FitConfig::default());
    }

    #[test]
    fn mistakes_have_their_line_and_key() {
        for (text, expected) in [
            ("seed = 1\npenalty = 2\n", "line 2: unknown key `penalty`, expected one of "),
            ("[data]\nrow = 'a'\n", "line 2: unknown key `row`, expected one of "),
            ("\nseed = 'one'\n", "line 2: invalid type: string \"one\", expected u64"),
            ("[data]\nkey = 3\n", "line 2: expected a text or a list of texts"),
            (
                "[data]\ndelimiter = ' '\n",
                "line 2: delimiter is ` `: it must be comma, tab, semicolon or pipe",
            ),
            ("[data]\nnoise = 'uniform:1'\n", "line 2: expected laplace:SCALE or gaussian:SD"),
            ("method = 'forest'\n", "line 1: unknown method `forest`"),
            ("seed = = 2\n", "line 1: "),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(&format!("c.toml, {expected}")), "{error}");
        }
    }
}
