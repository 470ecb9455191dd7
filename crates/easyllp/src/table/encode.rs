//! Encoders: fitted once on the training rows, stored with the model, and applied to all later
//! rows.

mod features;
mod summary;

pub use summary::TableSummary;

use super::{HashedText, Table};
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// When a categorical column keeps a vocabulary, and when it is hashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EncoderOptions {
    /// A column with more distinct values than this is hashed. At most [`HashedText::MOST_VALUES`].
    pub max_vocabulary: usize,
    /// The number of hash buckets, from 1 to [`MOST_BUCKETS`](Self::MOST_BUCKETS).
    pub hash_buckets: u32,
}

impl EncoderOptions {
    /// The maximum number of buckets: a model has weights for each of them.
    pub const MOST_BUCKETS: u32 = 1 << 26;

    fn check(self) -> Result<()> {
        if !(1..=Self::MOST_BUCKETS).contains(&self.hash_buckets) {
            let (name, value) = ("hash buckets", self.hash_buckets.to_string());
            return Err(Error::Setting { name, value, expected: "from 1 to 67,108,864" });
        }
        if self.max_vocabulary > HashedText::MOST_VALUES {
            let (name, value) = ("values in a vocabulary", self.max_vocabulary.to_string());
            return Err(Error::Setting { name, value, expected: "at most 4096" });
        }
        Ok(())
    }
}

impl Default for EncoderOptions {
    fn default() -> Self {
        Self { max_vocabulary: 1000, hash_buckets: 1 << 16 }
    }
}

/// The encoding of one column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ColumnEncoding {
    /// Standardised: (x − mean)/scale, or 0 for a constant column. Missing numbers are replaced by
    /// the mean.
    Standardise {
        /// The mean of the numbers that are not missing.
        mean: f64,
        /// Their standard deviation; 0 for a constant column.
        scale: f64,
        /// Whether a second feature marks missing numbers; it is added if the fitted table has any.
        flags_missing: bool,
        /// The training range: the smallest and the largest number.
        range: (f64, f64),
    },
    /// Each entry is centred, with one scale for the whole list: entries with a small variance stay
    /// small.
    StandardiseVector {
        /// The mean of each entry.
        means: Vec<f64>,
        /// The root of the entries' mean variance; 0 if all are constant.
        scale: f64,
        /// The smallest and the largest entry.
        range: (f64, f64),
    },
    /// A list of this length, unchanged.
    AsIs {
        /// The length.
        width: usize,
    },
    /// The index in this sorted vocabulary, from 1; 0 is any other value.
    Vocabulary(Vec<String>),
    /// A hash of column name and value, modulo this number of buckets.
    Hash(u32),
}

/// A column's name and encoding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ColumnEncoder {
    /// The name by which the column is found in a table, in any order.
    pub name: String,
    /// The encoding.
    pub encoding: ColumnEncoding,
}

/// Encodes the columns of a table as features: numbers become dense features, text becomes
/// categories. Columns are found by name, and features are sorted by name, so the order of columns
/// in a table does not matter.
///
/// ```
/// use easyllp::table::{Column, Encoder, EncoderOptions, Table};
///
/// let seen = Table::new(vec![
///     ("age".into(), Column::Numeric(vec![20.0, 40.0])),
///     ("city".into(), Column::categorical(["Bern", "Wien"])),
/// ])?;
/// let encoder = Encoder::fit(&seen, EncoderOptions::default())?;
/// let new = Table::new(vec![
///     ("city".into(), Column::categorical(["Wien", "Oslo"])),
///     ("age".into(), Column::Numeric(vec![30.0, 50.0])),
/// ])?;
/// let rows = encoder.encode(&new)?;
/// let batch = rows.dense_only("this example")?.batch(0..2);
/// assert_eq!(batch.dense.column(0).to_vec(), [0.0, 2.0]);
/// assert_eq!(batch.categories.column(0).to_vec(), [2, 0]); // Oslo was not seen
/// # Ok::<(), easyllp::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Encoder {
    columns: Vec<ColumnEncoder>,
}

impl Encoder {
    /// Fits the encoding of every column.
    pub fn fit(table: &Table, options: EncoderOptions) -> Result<Self> {
        TableSummary::of(table, options)?.encoder()
    }

    /// An encoder for numeric arrays: one column of lists, which are not changed.
    pub fn as_is(name: &str, width: usize) -> Self {
        let encoding = ColumnEncoding::AsIs { width };
        Self { columns: vec![ColumnEncoder { name: name.into(), encoding }] }
    }

    /// The columns, in the order of features.
    pub fn columns(&self) -> &[ColumnEncoder] {
        &self.columns
    }

    /// The column of a dense feature.
    pub fn dense_column(&self, place: usize) -> Option<&str> {
        let of_features = self
            .columns
            .iter()
            .flat_map(|column| std::iter::repeat_n(column.name.as_str(), column.encoding.n_dense()));
        of_features.into_iter().nth(place)
    }

    /// The column of a categorical field.
    pub fn field_column(&self, field: usize) -> Option<&str> {
        let of_fields = self.columns.iter().filter(|column| column.encoding.cardinality().is_some());
        of_fields.map(|column| column.name.as_str()).nth(field)
    }

    /// The number of dense features, and the number of categories of each field.
    pub(crate) fn shape(&self) -> (usize, Vec<u32>) {
        let n_dense = self.columns.iter().map(|column| column.encoding.n_dense()).sum();
        (n_dense, self.columns.iter().filter_map(|column| column.encoding.cardinality()).collect())
    }

    /// Checks an encoder that was read from a file.
    pub(crate) fn check(&self) -> Result<()> {
        let refuse =
            |column: &ColumnEncoder, reason| Err(Error::BadEncoder { column: column.name.clone(), reason });
        let mut pairs = self.columns.iter().zip(self.columns.iter().skip(1));
        if let Some((_, second)) = pairs.find(|(first, second)| first.name >= second.name) {
            return refuse(second, "columns must be in the order of their names, each there once");
        }
        for column in &self.columns {
            if let Some(reason) = column.encoding.flaw() {
                return refuse(column, reason);
            }
        }
        Ok(())
    }
}

/// The maximum length of a list; larger values in a file are an error.
const MOST_IN_LIST: usize = 1 << 32;

impl ColumnEncoding {
    /// The number of dense features of the column; none for a category.
    fn n_dense(&self) -> usize {
        match self {
            Self::Standardise { flags_missing, .. } => 1 + usize::from(*flags_missing),
            Self::StandardiseVector { means, .. } => means.len(),
            Self::AsIs { width } => *width,
            Self::Vocabulary(_) | Self::Hash(_) => 0,
        }
    }

    /// The number of categories of the column; none for dense features.
    fn cardinality(&self) -> Option<u32> {
        match self {
            Self::Standardise { .. } | Self::StandardiseVector { .. } | Self::AsIs { .. } => None,
            Self::Vocabulary(values) => {
                Some(u32::try_from(values.len()).map_or(u32::MAX, |n| n.saturating_add(1)))
            }
            Self::Hash(buckets) => Some(*buckets),
        }
    }

    /// What is invalid about an encoding read from a file.
    fn flaw(&self) -> Option<&'static str> {
        let (sound, otherwise) = match self {
            Self::Standardise { mean, scale, range, .. } => (
                mean.is_finite() && is_scale(*scale) && is_range(*range),
                "its mean, scale and range must be finite, its scale at least 0",
            ),
            Self::StandardiseVector { means, scale, range } => (
                means.iter().all(|mean| mean.is_finite()) && is_scale(*scale) && is_range(*range),
                "its means, scale and range must be finite, its scale at least 0",
            ),
            Self::AsIs { width } => {
                ((1..=MOST_IN_LIST).contains(width), "its lists must have from 1 to 2^32 numbers")
            }
            Self::Vocabulary(values) => {
                (values.is_sorted_by(|a, b| a < b), "its values must be sorted, each there once")
            }
            Self::Hash(buckets) => (*buckets > 0, "it must have a bucket"),
        };
        (!sound).then_some(otherwise)
    }

    /// The kind of column that the encoding applies to.
    fn kind(&self) -> &'static str {
        match self {
            Self::Standardise { .. } => "numeric",
            Self::StandardiseVector { .. } | Self::AsIs { .. } => "a column of lists",
            Self::Vocabulary(_) | Self::Hash(_) => "categorical",
        }
    }
}

fn is_scale(scale: f64) -> bool {
    scale.is_finite() && scale >= 0.0
}

fn is_range((low, high): (f64, f64)) -> bool {
    low.is_finite() && high.is_finite() && low <= high
}

#[cfg(test)]
mod tests;
