//! Rows and reports on the command line.

use super::config::{DataConfig, Mismatch, parse_noise};
use crate::config::ConfigFile;
use anyhow::Result;
use clap::Args;
use easyllp::table::Delimiter;
use easyllp::table::reports::ReportNoise;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct ColumnArgs {
    /// Read these columns as numbers
    #[arg(long, value_name = "COLUMN", value_delimiter = ',')]
    pub(crate) numeric: Vec<String>,

    /// Read these columns as categories, even if they hold numbers
    #[arg(long, value_name = "COLUMN", value_delimiter = ',')]
    pub(crate) categorical: Vec<String>,

    /// Delimiter of text files: comma, tab, semicolon or pipe. [default: tab for .tsv, otherwise inferred from the
    /// header]
    #[arg(long, value_name = "NAME")]
    pub(crate) delimiter: Option<Delimiter>,
}

#[derive(Debug, Args)]
pub(crate) struct RowsArgs {
    /// Read settings from a TOML file. Options on the command line override it
    ///
    /// The table `[data]` holds the options on rows and reports, by name: `rows`, `reports`, `key`, `count`, `on_mismatch` and so on.
    /// The table `[method]` holds `name` and parameters, `[optimizer]` holds `l2`, `epochs`, `lr` and `batch_size`, `[validation]`
    /// holds `share`, `metric`, `patience` and `smoothing`. The other keys are `model`, `loss`, `seed`, `image`, `label`, `positive`,
    /// `threads`, `force` and `out`. Paths are relative to the current folder. Commands ignore keys that they have no use for.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Rows: CSV or TSV (plain, .gz, .zst), Parquet or Arrow. Several files, or a quoted pattern, are one table
    #[arg(long, value_name = "FILE", required_unless_present = "config", num_args = 1..)]
    rows: Vec<String>,

    #[command(flatten)]
    columns: ColumnArgs,
}

#[derive(Debug, Args)]
pub(crate) struct FeatureArgs {
    /// Feature columns. [default: all except keys, labels and excluded ones]
    #[arg(long, value_name = "COLUMN", value_delimiter = ',', conflicts_with = "exclude")]
    features: Vec<String>,

    /// Columns to exclude from the features
    #[arg(long, value_name = "COLUMN", value_delimiter = ',')]
    exclude: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ReportsArgs {
    /// Reports: one line per bag, with its key and its count
    #[arg(long, value_name = "FILE", required_unless_present = "config", num_args = 1..)]
    reports: Vec<String>,

    /// Key columns of rows and reports. Numbers match as numbers (7, 7.0, 007), text letter by letter
    #[arg(long, value_name = "COLUMN", required_unless_present = "config", value_delimiter = ',')]
    key: Vec<String>,

    /// Count column of the positive class; or comma-separated columns, one per class, in any order
    #[arg(long, value_name = "COLUMN", required_unless_present = "config", value_delimiter = ',')]
    count: Vec<String>,

    /// Class that each --count column counts, in the same order. [default: the name of the column]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    class: Vec<String>,

    /// Column with each bag's size, to check against the rows
    #[arg(long, value_name = "COLUMN")]
    size: Option<String>,

    /// Noise that the provider added to counts: laplace:SCALE or gaussian:SD, with a number or a column
    #[arg(long, value_name = "LAW:SCALE", value_parser = parse_noise)]
    noise: Option<ReportNoise>,

    /// Leave out bags whose counts are suppressed by the provider: counts below this number
    #[arg(long, value_name = "COUNT")]
    suppressed_below: Option<f64>,

    /// Refuse or drop rows and reports that do not match. [default: error]
    #[arg(long, value_enum, value_name = "ACTION")]
    on_mismatch: Option<Mismatch>,
}

#[derive(Debug, Args)]
pub(crate) struct EncodingArgs {
    /// Hash text columns with more distinct values than this. [default: 1000; at most 4096]
    #[arg(long, value_name = "N")]
    max_vocabulary: Option<usize>,

    /// Buckets of each hashed column. [default: 65536]
    #[arg(long, value_name = "N")]
    hash_buckets: Option<u32>,
}

/// What to learn from, and the bags to learn it in.
#[derive(Debug, Args)]
pub(crate) struct DataArgs {
    #[command(flatten)]
    rows: RowsArgs,
    #[command(flatten)]
    features: FeatureArgs,
    #[command(flatten)]
    encoding: EncodingArgs,
    #[command(flatten)]
    reports: ReportsArgs,
}

impl DataArgs {
    /// The settings of the file, with the data of the command line over its own.
    pub(crate) fn config(&self) -> Result<ConfigFile> {
        let file = ConfigFile::read(self.rows.config.as_deref())?;
        let mut given = DataConfig::given(&self.rows, &self.reports);
        given.features.clone_from(&self.features.features);
        given.exclude.clone_from(&self.features.exclude);
        given.max_vocabulary = self.encoding.max_vocabulary;
        given.hash_buckets = self.encoding.hash_buckets;
        Ok(ConfigFile { data: given.or(&file.data), ..file })
    }

    /// Whether reports are named on the command line.
    pub(crate) fn names_reports(&self) -> bool {
        !self.reports.reports.is_empty()
    }
}

impl DataConfig {
    /// What the command line says of rows and reports.
    pub(crate) fn given(rows: &RowsArgs, reports: &ReportsArgs) -> Self {
        Self {
            rows: rows.rows.clone(),
            numeric: rows.columns.numeric.clone(),
            categorical: rows.columns.categorical.clone(),
            delimiter: rows.columns.delimiter,
            reports: reports.reports.clone(),
            key: reports.key.clone(),
            count: reports.count.clone(),
            class: reports.class.clone(),
            size: reports.size.clone(),
            noise: reports.noise.clone(),
            suppressed_below: reports.suppressed_below,
            on_mismatch: reports.on_mismatch,
            ..Self::default()
        }
    }
}
