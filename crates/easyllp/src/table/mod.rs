//! Read tables of named columns, and encode columns as features.

#[cfg(feature = "tables")]
mod batches;
#[cfg(feature = "tables")]
mod cells;
#[cfg(feature = "tables")]
mod convert;
#[cfg(feature = "tables")]
mod csv;
mod encode;
#[cfg(feature = "tables")]
mod groups;
mod hashed;
#[cfg(feature = "tables")]
mod images;
mod keys;
mod kind;
mod labels;
#[cfg(feature = "tables")]
mod parquet;
pub mod reports;
#[cfg(feature = "tables")]
mod source;
#[cfg(feature = "tables")]
mod times;
mod unfamiliar;
#[cfg(feature = "tables")]
mod write;

#[cfg(feature = "tables")]
pub use csv::{CsvOptions, Delimiter};
pub use encode::{ColumnEncoder, ColumnEncoding, Encoder, EncoderOptions, TableSummary};
#[cfg(feature = "tables")]
pub use groups::Groups;
pub use hashed::HashedText;
pub use kind::Kind;
pub use labels::{Labels, labels, labels_of};
#[cfg(feature = "tables")]
pub use source::{ReadAs, Source};
pub use unfamiliar::Unfamiliar;
#[cfg(feature = "tables")]
pub use write::TableWriter;

use crate::error::{Error, Result, check_length};
use crate::rows::row_count;
use ndarray::Array2;
use rayon::prelude::*;
use std::collections::{HashMap, HashSet};

/// A column: numbers, lists of numbers, or dictionary-encoded text.
#[derive(Debug, Clone, PartialEq)]
pub enum Column {
    /// Numbers; NaN is missing.
    Numeric(Vec<f64>),
    /// A list of finite numbers per row, such as the pixels of an image; all of one length.
    Vector(Array2<f32>),
    /// Text, dictionary-encoded; missing values are empty text.
    Categorical {
        /// Distinct values, used or not.
        dictionary: Vec<String>,
        /// The dictionary index of each row.
        codes: Vec<u32>,
    },
    /// Text that is only used as a feature.
    Hashed(HashedText),
}

impl Column {
    /// Creates a categorical column from text, in the order of rows.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "no more distinct values than rows, which Table counts by u32"
    )]
    pub fn categorical<'v>(values: impl IntoIterator<Item = &'v str>) -> Self {
        let mut places = HashMap::new();
        let mut dictionary = Vec::new();
        let codes = values
            .into_iter()
            .map(|value| {
                *places.entry(value).or_insert_with(|| {
                    dictionary.push(value.to_owned());
                    dictionary.len() as u32 - 1
                })
            })
            .collect();
        Self::Categorical { dictionary, codes }
    }

    fn len(&self) -> usize {
        match self {
            Self::Numeric(values) => values.len(),
            Self::Vector(values) => values.nrows(),
            Self::Categorical { codes, .. } => codes.len(),
            Self::Hashed(text) => text.hashes().len(),
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::Numeric(_) => "numeric",
            Self::Vector(_) => "a column of lists",
            Self::Categorical { .. } | Self::Hashed(_) => "categorical",
        }
    }

    fn check(&self, name: &str) -> Result<()> {
        match self {
            Self::Hashed(_) => Ok(()),
            // All at once first, which is fast: there is hardly ever one to look for.
            Self::Numeric(values) if !values.iter().fold(false, |any, value| any | value.is_infinite()) => {
                Ok(())
            }
            Self::Numeric(values) => match values.iter().position(|value| value.is_infinite()) {
                Some(row) => Err(Error::NumberNotFinite { column: name.into(), row, value: values[row] }),
                None => Ok(()),
            },
            Self::Vector(values) if values.ncols() == 0 => Err(Error::EmptyLists { column: name.into() }),
            Self::Vector(values) => match values.indexed_iter().find(|(_, value)| !value.is_finite()) {
                Some(((row, _), &value)) => {
                    Err(Error::NumberNotFinite { column: name.into(), row, value: f64::from(value) })
                }
                None => Ok(()),
            },
            Self::Categorical { dictionary, codes } => {
                let len = dictionary.len();
                match codes.iter().position(|&code| code as usize >= len) {
                    Some(row) => {
                        Err(Error::CodeOutOfRange { column: name.into(), row, code: codes[row], len })
                    }
                    None => Ok(()),
                }
            }
        }
    }
}

/// Named columns of equal length.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    n_rows: usize,
    columns: Vec<(String, Column)>,
}

impl Table {
    /// Creates a table from columns of equal length with unique names.
    pub fn new(columns: Vec<(String, Column)>) -> Result<Self> {
        let n_rows = columns.first().map_or(0, |(_, column)| column.len());
        row_count(n_rows)?;
        let mut names = HashSet::new();
        for (name, column) in &columns {
            if !names.insert(name) {
                return Err(Error::ColumnTwice { column: name.clone() });
            }
            check_length("values in a column", n_rows, column.len())?;
        }
        if let Some(error) = columns.par_iter().find_map_first(|(name, column)| column.check(name).err()) {
            return Err(error);
        }
        Ok(Self { n_rows, columns })
    }

    /// The number of rows.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Names and columns, in the order given.
    pub fn columns(&self) -> &[(String, Column)] {
        &self.columns
    }

    /// Keeps only these columns, in this order.
    pub fn select(mut self, names: &[String]) -> Result<Self> {
        let column = |name: &String| {
            let place = self.columns.iter().position(|(of_column, _)| of_column == name);
            let place = place.ok_or_else(|| Error::ColumnMissing { column: name.clone() })?;
            Ok(self.columns.swap_remove(place))
        };
        Ok(Self { columns: names.iter().map(column).collect::<Result<_>>()?, n_rows: self.n_rows })
    }

    /// The columns of two tables with the same number of rows.
    pub fn beside(mut self, other: Self) -> Result<Self> {
        self.columns.extend(other.columns);
        Self::new(self.columns)
    }

    /// The column of this name.
    pub fn column(&self, name: &str) -> Result<&Column> {
        let found = self.columns.iter().find(|(of_column, _)| of_column == name);
        found.map(|(_, column)| column).ok_or_else(|| Error::ColumnMissing { column: name.into() })
    }
}
