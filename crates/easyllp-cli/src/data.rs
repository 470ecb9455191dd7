//! Rows and reports as the commands take them: arguments, and bags out of files.

use crate::output::{misuse, thousands};
use anyhow::Result;
use clap::{Args, ValueEnum};
use easyllp::table::reports::{Joined, KeyColumn, NoiseScale, OnMismatch, ReportColumns, ReportNoise, join};
use easyllp::table::{EncoderOptions, HashedText, Labels, ReadAs, Source, Table, labels};
use easyllp::{Bags, Classes, CountOrder, ImageShape, Partition};
use std::collections::BTreeMap;

#[derive(Debug, Args)]
pub(crate) struct RowsArgs {
    /// Rows: CSV (plain, .gz, .zst), Parquet or Arrow; several files or a quoted pattern are one table
    #[arg(long, value_name = "FILE", required = true, num_args = 1..)]
    pub(crate) rows: Vec<String>,

    /// Columns to read as numbers, whatever they look like
    #[arg(long, value_name = "COLUMN", value_delimiter = ',')]
    pub(crate) numeric: Vec<String>,

    /// Columns to read as categories, also if they look like numbers
    #[arg(long, value_name = "COLUMN", value_delimiter = ',')]
    pub(crate) categorical: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct FeatureArgs {
    /// Columns to learn from; by default all but keys, labels and excluded ones
    #[arg(long, value_name = "COLUMN", value_delimiter = ',', conflicts_with = "exclude")]
    features: Vec<String>,

    /// Columns not to learn from
    #[arg(long, value_name = "COLUMN", value_delimiter = ',')]
    exclude: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ReportsArgs {
    /// Reports: one line a bag, with its key and its count
    #[arg(long, value_name = "FILE", required = true, num_args = 1..)]
    reports: Vec<String>,

    /// Key columns, which rows and reports share. Numbers match as numbers (7, 7.0, 007), text letter by letter
    #[arg(long, value_name = "COLUMN", required = true, value_delimiter = ',')]
    pub(crate) key: Vec<String>,

    /// Count column of the positive class; or comma-separated columns, one a class, in any order
    #[arg(long, value_name = "COLUMN", required = true, value_delimiter = ',')]
    count: Vec<String>,

    /// Class that each --count column counts, in the same order; by default the name of the column
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    class: Vec<String>,

    /// Column with each bag's size, to be compared with the rows
    #[arg(long, value_name = "COLUMN")]
    size: Option<String>,

    /// Noise that the provider adds to counts: laplace:SCALE or gaussian:SD, or a column's name in the number's place
    #[arg(long, value_name = "LAW:SCALE", value_parser = parse_noise)]
    noise: Option<ReportNoise>,

    /// The provider leaves out counts below this: such bags are left out, and counted
    #[arg(long, value_name = "COUNT")]
    suppressed_below: Option<f64>,

    /// What to do with rows and reports that do not match
    #[arg(long, value_enum, default_value_t = Mismatch::Error)]
    on_mismatch: Mismatch,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Mismatch {
    Error,
    Drop,
}

pub(crate) fn parse_noise(text: &str) -> Result<ReportNoise, String> {
    let expected = "laplace:SCALE or gaussian:SD is needed, with a positive number or a column's name";
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

#[derive(Debug, Args)]
pub(crate) struct EncodingArgs {
    /// A text column with more distinct values than this is hashed; at most 4096
    #[arg(long, value_name = "N", default_value_t = EncoderOptions::default().max_vocabulary, value_parser = parse_vocabulary)]
    max_vocabulary: usize,

    /// Buckets for each hashed column
    #[arg(long, value_name = "N", default_value_t = EncoderOptions::default().hash_buckets, value_parser = clap::value_parser!(u32).range(1..=i64::from(EncoderOptions::MOST_BUCKETS)))]
    hash_buckets: u32,
}

fn parse_vocabulary(text: &str) -> Result<usize, String> {
    let most = HashedText::MOST_VALUES;
    text.parse().ok().filter(|n| *n <= most).ok_or(format!("a whole number of at most {most} is needed"))
}

impl EncodingArgs {
    pub(crate) fn options(&self) -> EncoderOptions {
        EncoderOptions { max_vocabulary: self.max_vocabulary, hash_buckets: self.hash_buckets }
    }
}

/// What to learn from, and the bags to learn it in.
#[derive(Debug, Args)]
pub(crate) struct DataArgs {
    #[command(flatten)]
    rows: RowsArgs,
    #[command(flatten)]
    features: FeatureArgs,
    #[command(flatten)]
    pub(crate) encoding: EncodingArgs,
    #[command(flatten)]
    pub(crate) reports: ReportsArgs,
}

/// Rows and bags out of files.
pub(crate) struct Data {
    /// The columns to learn from.
    pub(crate) features: Table,
    pub(crate) bags: Bags,
    pub(crate) classes: Classes,
    /// The shape of the images that a row is, if it is one and the files say it.
    pub(crate) image: Option<ImageShape>,
    /// How many bags were left out because their counts are suppressed.
    pub(crate) n_suppressed: usize,
}

impl DataArgs {
    /// Reads the rows, and joins the reports to them.
    pub(crate) fn load(&self) -> Result<Data> {
        let keys = &self.reports.key;
        let (classes, order) = self.reports.classes()?;
        let mut n_suppressed = 0;
        let data = self.read(keys, keys, |rows| {
            let joined = self.reports.join(&self.rows, rows, &order)?;
            n_suppressed = joined.suppressed;
            Ok((joined.bags, classes))
        })?;
        Ok(Data { n_suppressed, ..data })
    }

    /// The files that are read, as far as they are named and not found by a pattern.
    pub(crate) fn files(&self) -> impl Iterator<Item = &String> {
        self.rows.rows.iter().chain(&self.reports.reports)
    }

    /// Reads rows that have labels of their own: each is a bag.
    pub(crate) fn load_labelled(&self, label: &String, positive: &[String]) -> Result<Data> {
        self.read(std::slice::from_ref(label), &[], |rows| {
            let Labels { labels, classes } = labels(label, rows.column(label)?, positive)?;
            let partition = Partition::new(labels.len(), (0..).take(labels.len()).map(|row: u32| [row]))?;
            Ok((Bags::from_labels(partition, &labels, classes.len())?, classes))
        })
    }

    /// Reads the columns to learn from and others beside, out of which bags are made; `text` columns are read as text.
    fn read(
        &self,
        beside: &[String],
        text: &[String],
        bags: impl FnOnce(&Table) -> Result<(Bags, Classes)>,
    ) -> Result<Data> {
        let source = self.rows.open(text)?;
        let features = self.features.columns(&source, beside)?;
        // A key to learn from is read once more: as what it is.
        let (again, once): (Vec<String>, Vec<String>) =
            features.iter().cloned().partition(|name| text.contains(name));
        let source = source.with_categories(&once);
        let mut columns = [beside.to_vec(), once.clone()].concat();
        columns.sort_unstable();
        columns.dedup();
        let whole = source.read(&columns)?;
        let (bags, classes) = bags(&whole)?;
        let image = if let [only] = &features[..] { source.image(only) } else { None };
        let mut whole = whole.select(&once)?;
        if !again.is_empty() {
            whole = whole.beside(self.rows.open(&[])?.with_categories(&again).read(&again)?)?;
        }
        Ok(Data { features: whole.select(&features)?, bags, classes, image, n_suppressed: 0 })
    }
}

impl RowsArgs {
    /// The rows, with `text` columns read as text.
    pub(crate) fn open(&self, text: &[String]) -> Result<Source> {
        let mut forced = BTreeMap::new();
        forced.extend(self.numeric.iter().map(|name| (name.clone(), ReadAs::Number)));
        forced.extend(self.categorical.iter().map(|name| (name.clone(), ReadAs::Category)));
        forced.extend(text.iter().map(|name| (name.clone(), ReadAs::Text)));
        Ok(Source::open(&self.rows, forced)?)
    }
}

impl FeatureArgs {
    /// The columns to learn from.
    pub(crate) fn columns(&self, source: &Source, not_these: &[String]) -> Result<Vec<String>> {
        for name in self.features.iter().chain(&self.exclude) {
            source.kind(name)?;
        }
        let is_feature = |name: &str| {
            let is = |names: &[String]| names.iter().any(|other| other == name);
            if self.features.is_empty() { !is(&self.exclude) && !is(not_these) } else { is(&self.features) }
        };
        let columns: Vec<String> = source
            .columns()
            .into_iter()
            .map(|(name, _)| name.to_owned())
            .filter(|name| is_feature(name))
            .collect();
        anyhow::ensure!(!columns.is_empty(), "no column is left to learn from");
        Ok(columns)
    }
}

impl ReportsArgs {
    /// Bags out of rows and reports, with the count columns in the order of classes; what was dropped or left out is said
    /// on stderr.
    pub(crate) fn join(&self, rows_args: &RowsArgs, rows: &Table, order: &CountOrder) -> Result<Joined> {
        let keys = self.key_columns(rows_args)?;
        let counts = match order {
            CountOrder::Positive | CountOrder::Negative => self.count.clone(),
            CountOrder::Columns(places) => places.iter().map(|&place| self.count[place].clone()).collect(),
        };
        let mut forced: BTreeMap<String, ReadAs> =
            self.key.iter().map(|key| (key.clone(), ReadAs::Text)).collect();
        let scale = match &self.noise {
            Some(
                ReportNoise::Laplace(NoiseScale::Column(name))
                | ReportNoise::Gaussian(NoiseScale::Column(name)),
            ) => Some(name),
            _ => None,
        };
        let numbers = self.count.iter().chain(&self.size).chain(scale);
        forced.extend(numbers.clone().map(|name| (name.clone(), ReadAs::Number)));
        let source = Source::open(&self.reports, forced)?;
        let mut columns: Vec<String> = self.key.iter().chain(numbers).cloned().collect();
        columns.sort_unstable();
        columns.dedup();
        let mut joined = join(
            rows,
            &source.read(&columns)?,
            &ReportColumns {
                keys,
                counts,
                size: self.size.clone(),
                noise: self.noise.clone().unwrap_or_default(),
                suppressed_below: self.suppressed_below,
                on_mismatch: match self.on_mismatch {
                    Mismatch::Error => OnMismatch::Refuse,
                    Mismatch::Drop => OnMismatch::Drop,
                },
            },
        )?;
        if *order == CountOrder::Negative {
            joined.bags = joined.bags.reversed();
        }
        let tell = |count: usize, what: &str| {
            if count > 0 {
                eprintln!("easyllp: left out {} {what}", thousands(count));
            }
        };
        tell(joined.rows_without_report, "rows without a report");
        tell(joined.reports_without_rows, "reports without rows");
        tell(
            joined.suppressed,
            "bags whose counts are suppressed: models of the other bags lean towards the positive class",
        );
        Ok(joined)
    }

    /// The key columns, and what they hold in either file: it decides how keys are compared.
    fn key_columns(&self, rows: &RowsArgs) -> Result<Vec<KeyColumn>> {
        let (rows, reports) =
            (Source::open(&rows.rows, BTreeMap::new())?, Source::open(&self.reports, BTreeMap::new())?);
        let column = |name: &String| {
            Ok(KeyColumn { name: name.clone(), in_rows: rows.kind(name)?, in_reports: reports.kind(name)? })
        };
        self.key.iter().map(column).collect()
    }

    /// The classes that the reports count, and the order of their columns.
    pub(crate) fn classes(&self) -> Result<(Classes, CountOrder)> {
        let counted = self.counted()?;
        if let [positive] = counted {
            return Ok((Classes::counted(positive), CountOrder::Positive));
        }
        let (classes, places) = Classes::sorted(counted)?;
        Ok((classes, CountOrder::Columns(places)))
    }

    /// The class of each count column.
    pub(crate) fn counted(&self) -> Result<&[String]> {
        match self.class.len() {
            0 => Ok(&self.count),
            n_names if n_names == self.count.len() => Ok(&self.class),
            n_names => Err(misuse(&format!(
                "--class gives {n_names} names for {} columns of --count: give one for each",
                self.count.len()
            ))),
        }
    }
}
