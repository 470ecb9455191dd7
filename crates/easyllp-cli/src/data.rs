//! Read rows and bags from files.

pub(crate) mod args;
pub(crate) mod config;

pub(crate) use config::DataConfig;

use crate::messages::note;
use crate::output::{misuse, thousands};
use anyhow::Result;
use config::Mismatch;
use easyllp::table::reports::{Joined, KeyColumn, NoiseScale, OnMismatch, ReportColumns, ReportNoise, join};
use easyllp::table::{Column, CsvOptions, Encoder, Labels, ReadAs, Source, Table, labels};
use easyllp::{
    Bags, Partition,
    classes::{Classes, CountOrder},
    model::ImageShape,
};
use std::collections::BTreeMap;

/// Rows and bags read from files.
pub(crate) struct Data {
    /// The feature columns.
    pub(crate) features: Table,
    pub(crate) bags: Bags,
    pub(crate) classes: Classes,
    /// The image shape of a row, if the files store it.
    pub(crate) image: Option<ImageShape>,
    /// The number of bags left out because their counts are suppressed.
    pub(crate) n_suppressed: usize,
}

impl DataConfig {
    /// Reads the rows, and joins the reports to them.
    pub(crate) fn load(&self) -> Result<Data> {
        let keys = &self.key;
        let (classes, order) = self.classes()?;
        let mut n_suppressed = 0;
        let data = self.read(keys, keys, |rows| {
            let joined = self.join(&self.kinds()?, rows, &order)?;
            n_suppressed = joined.suppressed;
            Ok((joined.bags, classes))
        })?;
        Ok(Data { n_suppressed, ..data })
    }

    /// The input files that are named, not matched by a pattern.
    pub(crate) fn files(&self) -> impl Iterator<Item = &String> {
        self.rows.iter().chain(&self.reports)
    }

    /// Reads rows with labels: each row is a bag.
    pub(crate) fn load_labelled(&self, label: &String, positive: &[String]) -> Result<Data> {
        self.read(std::slice::from_ref(label), &[], |rows| {
            let Labels { labels, classes } = labels(label, rows.column(label)?, positive)?;
            let partition = Partition::new(labels.len(), (0..).take(labels.len()).map(|row: u32| [row]))?;
            Ok((Bags::from_labels(partition, &labels, classes.len())?, classes))
        })
    }

    /// Reads the feature columns and other columns, from which bags are made; `text` columns are
    /// read as text.
    fn read(
        &self,
        beside: &[String],
        text: &[String],
        bags: impl FnOnce(&Table) -> Result<(Bags, Classes)>,
    ) -> Result<Data> {
        let source = self.open(text)?;
        let features = self.feature_columns(&source, beside)?;
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
            whole = whole.beside(self.open(&[])?.with_categories(&again).read(&again)?)?;
        }
        Ok(Data { features: whole.select(&features)?, bags, classes, image, n_suppressed: 0 })
    }

    /// Reads the columns of an encoder, and other columns: keys as text. A column that is both is
    /// read twice.
    pub(crate) fn read_beside(&self, encoder: &Encoder, beside: &[String]) -> Result<(Table, Table)> {
        let features = encoder.columns().iter().map(|column| column.name.clone());
        let (again, once): (Vec<String>, Vec<String>) = features.partition(|name| beside.contains(name));
        let mut as_features = encoder.read_as();
        as_features.extend(self.read_as());
        let mut read_as = as_features.clone();
        read_as.retain(|name, _| !again.contains(name));
        read_as.extend(
            beside.iter().filter(|name| self.key.contains(name)).map(|name| (name.clone(), ReadAs::Text)),
        );
        let whole = self.source(&self.rows, read_as)?.read(&[beside, &once].concat())?;
        let column =
            |name: &String| -> Result<(String, Column)> { Ok((name.clone(), whole.column(name)?.clone())) };
        let others = Table::new(beside.iter().map(column).collect::<Result<_>>()?)?;
        let mut features = whole.select(&once)?;
        if !again.is_empty() {
            features = features.beside(self.source(&self.rows, as_features)?.read(&again)?)?;
        }
        Ok((features, others))
    }

    /// The rows, with `text` columns read as text.
    pub(crate) fn open(&self, text: &[String]) -> Result<Source> {
        let mut read_as = self.read_as();
        read_as.extend(text.iter().map(|name| (name.clone(), ReadAs::Text)));
        self.source(&self.rows, read_as)
    }

    /// The rows with the types of their files, except for columns with a type option; these are not
    /// keys.
    pub(crate) fn kinds(&self) -> Result<Source> {
        let mut read_as = self.read_as();
        read_as.retain(|name, _| !self.key.contains(name));
        self.source(&self.rows, read_as)
    }

    /// Files of rows or reports, with these options.
    pub(crate) fn source(&self, files: &[String], read_as: BTreeMap<String, ReadAs>) -> Result<Source> {
        let csv = CsvOptions { delimiter: self.delimiter, ..CsvOptions::default() };
        Ok(Source::open_with(files, read_as, csv)?)
    }

    /// The columns with a type option.
    pub(crate) fn read_as(&self) -> BTreeMap<String, ReadAs> {
        let numbers = self.numeric.iter().map(|name| (name.clone(), ReadAs::Number));
        numbers.chain(self.categorical.iter().map(|name| (name.clone(), ReadAs::Category))).collect()
    }

    /// The feature columns.
    fn feature_columns(&self, source: &Source, not_these: &[String]) -> Result<Vec<String>> {
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

    /// Joins rows and reports into bags, with the count columns in the order of classes. `kinds`
    /// holds the rows with the types of their files. Reports dropped rows and reports on stderr.
    pub(crate) fn join(&self, kinds: &Source, rows: &Table, order: &CountOrder) -> Result<Joined> {
        let keys = self.key_columns(kinds)?;
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
        let source = self.source(&self.reports, forced)?;
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
                    Some(Mismatch::Error) | None => OnMismatch::Refuse,
                    Some(Mismatch::Drop) => OnMismatch::Drop,
                },
            },
        )?;
        if *order == CountOrder::Negative {
            joined.bags = joined.bags.reversed();
        }
        let tell = |count: usize, what: &str| {
            if count > 0 {
                note(format!("left out {} {what}", thousands(count)));
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

    /// The key columns with their kinds in either file, which decide how keys are compared.
    fn key_columns(&self, rows: &Source) -> Result<Vec<KeyColumn>> {
        let reports = self.source(&self.reports, BTreeMap::new())?;
        let column = |name: &String| {
            Ok(KeyColumn { name: name.clone(), in_rows: rows.kind(name)?, in_reports: reports.kind(name)? })
        };
        self.key.iter().map(column).collect()
    }

    /// The classes of the reports, and the order of their count columns.
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
