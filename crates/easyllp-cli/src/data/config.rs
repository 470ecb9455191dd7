//! The `[data]` table of a settings file, and the same options of the command line.

use crate::config::list;
use crate::output::misuse;
use anyhow::Result;
use clap::ValueEnum;
use easyllp::table::reports::{NoiseScale, ReportNoise};
use easyllp::table::{Delimiter, EncoderOptions, HashedText};
use serde::{Deserialize, Serialize};

/// Each key is described by the option of the same name.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct DataConfig {
    #[serde(deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub(crate) rows: Vec<String>,
    #[serde(deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub(crate) numeric: Vec<String>,
    #[serde(deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub(crate) categorical: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) delimiter: Option<Delimiter>,
    #[serde(deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub(crate) features: Vec<String>,
    #[serde(deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub(crate) exclude: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_vocabulary: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hash_buckets: Option<u32>,
    #[serde(deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub(crate) reports: Vec<String>,
    #[serde(deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub(crate) key: Vec<String>,
    #[serde(deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub(crate) count: Vec<String>,
    #[serde(deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub(crate) class: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) size: Option<String>,
    #[serde(with = "noise", skip_serializing_if = "Option::is_none")]
    pub(crate) noise: Option<ReportNoise>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) suppressed_below: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) on_mismatch: Option<Mismatch>,
}

#[derive(Debug, Clone, Copy, PartialEq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Mismatch {
    Error,
    Drop,
}

impl DataConfig {
    /// These settings, completed by those of a file. Settings that exclude each other are taken
    /// from one source.
    pub(crate) fn or(self, file: &Self) -> Self {
        let list =
            |given: Vec<String>, other: &Vec<String>| if given.is_empty() { other.clone() } else { given };
        let (features, exclude) = if self.features.is_empty() && self.exclude.is_empty() {
            (file.features.clone(), file.exclude.clone())
        } else {
            (self.features, self.exclude)
        };
        let class = if self.count.is_empty() { list(self.class, &file.class) } else { self.class };
        Self {
            rows: list(self.rows, &file.rows),
            numeric: list(self.numeric, &file.numeric),
            categorical: list(self.categorical, &file.categorical),
            delimiter: self.delimiter.or(file.delimiter),
            features,
            exclude,
            max_vocabulary: self.max_vocabulary.or(file.max_vocabulary),
            hash_buckets: self.hash_buckets.or(file.hash_buckets),
            reports: list(self.reports, &file.reports),
            key: list(self.key, &file.key),
            count: list(self.count, &file.count),
            class,
            size: self.size.or_else(|| file.size.clone()),
            noise: self.noise.or_else(|| file.noise.clone()),
            suppressed_below: self.suppressed_below.or(file.suppressed_below),
            on_mismatch: self.on_mismatch.or(file.on_mismatch),
        }
    }

    /// Checks that rows are given, and reports if they are required.
    pub(crate) fn check(&self, needs_reports: bool) -> Result<()> {
        let required = [
            ("--rows", &self.rows, true),
            ("--reports", &self.reports, needs_reports),
            ("--key", &self.key, needs_reports),
            ("--count", &self.count, needs_reports),
        ];
        let missing: Vec<&str> = required
            .into_iter()
            .filter_map(|(name, values, is_needed)| (is_needed && values.is_empty()).then_some(name))
            .collect();
        if !missing.is_empty() {
            return Err(misuse(&format!(
                "neither the command line nor [data] in the --config file sets {}",
                missing.join(", ")
            )));
        }
        if !self.features.is_empty() && !self.exclude.is_empty() {
            return Err(misuse("[data] in the --config file sets both `features` and `exclude`: choose one"));
        }
        self.encoder_options().map(drop)
    }

    /// How text columns are encoded.
    pub(crate) fn encoder_options(&self) -> Result<EncoderOptions> {
        let EncoderOptions { max_vocabulary, hash_buckets } = EncoderOptions::default();
        let options = EncoderOptions {
            max_vocabulary: self.max_vocabulary.unwrap_or(max_vocabulary),
            hash_buckets: self.hash_buckets.unwrap_or(hash_buckets),
        };
        let (most_values, most_buckets) = (HashedText::MOST_VALUES, EncoderOptions::MOST_BUCKETS);
        if options.max_vocabulary > most_values {
            let value = options.max_vocabulary;
            return Err(misuse(&format!("--max-vocabulary is {value}: it must be at most {most_values}")));
        }
        if !(1..=most_buckets).contains(&options.hash_buckets) {
            let value = options.hash_buckets;
            return Err(misuse(&format!("--hash-buckets is {value}: it must be from 1 to {most_buckets}")));
        }
        Ok(options)
    }
}

pub(crate) fn parse_noise(text: &str) -> Result<ReportNoise, String> {
    let expected = "expected laplace:SCALE or gaussian:SD, with a number above 0 or a column";
    let (law, scale) = text.split_once(':').ok_or(expected)?;
    let scale = match scale.parse::<f64>() {
        Ok(scale) if scale > 0.0 && scale.is_finite() => NoiseScale::All(scale),
        Ok(_) => return Err(expected.into()),
        Err(_) if scale.is_empty() => return Err(expected.into()),
        Err(_) => NoiseScale::Column(scale.into()),
    };
    match law {
        "laplace" => Ok(ReportNoise::Laplace(scale)),
        "gaussian" => Ok(ReportNoise::Gaussian(scale)),
        _ => Err(expected.into()),
    }
}

/// Noise, as text.
mod noise {
    use super::{NoiseScale, ReportNoise, parse_noise};
    use serde::{Deserialize, Deserializer, Serializer, de};

    #[expect(clippy::ref_option, reason = "serde passes a reference to the field")]
    pub(super) fn serialize<S: Serializer>(
        noise: &Option<ReportNoise>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let (law, scale) = match noise {
            Some(ReportNoise::Laplace(scale)) => ("laplace", scale),
            Some(ReportNoise::Gaussian(scale)) => ("gaussian", scale),
            Some(ReportNoise::None) | None => return serializer.serialize_none(),
        };
        match scale {
            NoiseScale::All(scale) => serializer.serialize_str(&format!("{law}:{scale}")),
            NoiseScale::Column(name) => serializer.serialize_str(&format!("{law}:{name}")),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<ReportNoise>, D::Error> {
        parse_noise(&String::deserialize(deserializer)?).map(Some).map_err(de::Error::custom)
    }
}
