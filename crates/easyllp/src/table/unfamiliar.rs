//! Find values that an encoder did not see when it was fitted.
//!
//! A model predicts any row, even one that is unlike its training rows: an unknown country is
//! encoded as *any other value*, a missing number as the mean. This module counts such values
//! column by column.

use super::encode::{ColumnEncoder, ColumnEncoding, Encoder};
use super::hashed::{AsIs, hash_of};
use super::{Column, Table};
use rayon::prelude::*;
use std::collections::{BTreeMap, HashSet};
use std::fmt;

/// Numbers may leave the training range by this share of its width before they are counted.
const SLACK: f64 = 0.1;

/// Unfamiliar values by column, summed over the tables that were checked.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Unfamiliar {
    n_rows: usize,
    columns: BTreeMap<(String, Reason), Found>,
}

/// How values are unfamiliar, in the order of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reason {
    Unseen,
    OutOfRange,
    /// Missing, but never missing in training.
    NewlyMissing,
    /// Missing, as some were in training: only reported if all are.
    Missing,
}

#[derive(Debug, Clone, PartialEq)]
struct Found {
    n_rows: usize,
    /// An example, if known.
    example: Option<String>,
    /// The training range, of numbers.
    range: Option<(f64, f64)>,
}

impl Unfamiliar {
    /// The maximum number of columns listed.
    const LISTED: usize = 10;

    /// Adds the counts of another table.
    pub fn merge(&mut self, other: Self) {
        self.n_rows += other.n_rows;
        for (key, found) in other.columns {
            match self.columns.get_mut(&key) {
                Some(known) => {
                    known.n_rows += found.n_rows;
                    known.example = known.example.take().or(found.example);
                }
                None => {
                    self.columns.insert(key, found);
                }
            }
        }
    }

    /// Whether every value is familiar.
    pub fn is_empty(&self) -> bool {
        self.worth_a_word().next().is_none()
    }

    /// One line per column, without a full stop; at most ten columns.
    pub fn lines(&self) -> Vec<String> {
        let all: Vec<String> = self.worth_a_word().map(|line| line.to_string()).collect();
        let mut lines: Vec<String> = all.iter().take(Self::LISTED).cloned().collect();
        if all.len() > Self::LISTED {
            lines.push(format!("and {} more", all.len() - Self::LISTED));
        }
        lines
    }

    fn worth_a_word(&self) -> impl Iterator<Item = Line<'_>> {
        let lines = self.columns.iter();
        let lines = lines.map(|((column, reason), found)| Line {
            column,
            reason: *reason,
            found,
            n_rows: self.n_rows,
        });
        lines.filter(|line| line.reason != Reason::Missing || line.found.n_rows == line.n_rows)
    }
}

struct Line<'u> {
    column: &'u str,
    reason: Reason,
    found: &'u Found,
    n_rows: usize,
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Self { column, reason, found: Found { n_rows: n_found, example, range }, n_rows } = self;
        write!(f, "column `{column}`: {n_found} of {n_rows} rows ")?;
        match (reason, range) {
            (Reason::Unseen, _) => f.write_str("have values not seen in training")?,
            (Reason::OutOfRange, Some((low, high))) => {
                write!(f, "are outside the training range of {low} to {high}")?;
            }
            (Reason::OutOfRange, None) => f.write_str("are outside the training range")?,
            (Reason::NewlyMissing, _) => f.write_str("have no value; in training all had one")?,
            (Reason::Missing, _) => f.write_str("have no value")?,
        }
        match example {
            Some(example) => write!(f, ", such as {example}"),
            None => Ok(()),
        }
    }
}

impl Encoder {
    /// Counts the values of a table that are unlike the training rows: unknown categories, numbers
    /// outside the training range by more than a tenth of its width, and missing values in columns
    /// without any in training.
    ///
    /// Hashed columns keep no values, and unscaled lists have no range: nothing is counted there.
    ///
    /// ```
    /// use easyllp::table::{Column, Encoder, EncoderOptions, Table};
    ///
    /// let table = |age: f64, city: &str| {
    ///     let columns = vec![
    ///         ("age".to_owned(), Column::Numeric(vec![20.0, age])),
    ///         ("city".to_owned(), Column::categorical(["Bern", city])),
    ///     ];
    ///     Table::new(columns)
    /// };
    /// let encoder = Encoder::fit(&table(60.0, "Wien")?, EncoderOptions::default())?;
    /// assert!(encoder.unfamiliar(&table(61.0, "Bern")?).is_empty());
    /// let lines = encoder.unfamiliar(&table(6e9, "Oslo")?).lines();
    /// assert_eq!(lines, [
    ///     "column `age`: 1 of 2 rows are outside the training range of 20 to 60, such as 6000000000",
    ///     "column `city`: 1 of 2 rows have values not seen in training, such as `Oslo`",
    /// ]);
    /// # Ok::<(), easyllp::Error>(())
    /// ```
    pub fn unfamiliar(&self, table: &Table) -> Unfamiliar {
        let of_column = |column: &ColumnEncoder| {
            let values = table.column(&column.name).ok()?;
            let found = match (&column.encoding, values) {
                (
                    ColumnEncoding::Standardise { scale, range, flags_missing, .. },
                    Column::Numeric(values),
                ) => {
                    let range = (*scale > 0.0).then_some(*range);
                    let missing = if *flags_missing { Reason::Missing } else { Reason::NewlyMissing };
                    numbers(values.iter().copied(), range, missing)
                }
                (ColumnEncoding::StandardiseVector { scale, range, .. }, Column::Vector(lists)) => {
                    let range = (*scale > 0.0).then_some(*range);
                    let furthest = |list: ndarray::ArrayView1<f32>| {
                        let (low, high) = extremes(list.iter().map(|&value| f64::from(value)));
                        match range {
                            Some((least, _)) if low < least => low,
                            _ => high,
                        }
                    };
                    numbers(lists.rows().into_iter().map(furthest), range, Reason::NewlyMissing)
                }
                (ColumnEncoding::Vocabulary(known), Column::Categorical { dictionary, codes }) => {
                    let known: HashSet<u32, AsIs> = known.iter().map(|value| hash_of(value)).collect();
                    let is_known: Vec<bool> =
                        dictionary.iter().map(|value| known.contains(&hash_of(value))).collect();
                    let unknown = codes.iter().filter(|&&code| !is_known[code as usize]);
                    categories(unknown.map(|&code| Some(dictionary[code as usize].as_str())))
                }
                (ColumnEncoding::Vocabulary(known), Column::Hashed(text)) => {
                    let known: HashSet<u32, AsIs> = known.iter().map(|value| hash_of(value)).collect();
                    let unknown = text.hashes().iter().filter(|hash| !known.contains(hash));
                    let empty = hash_of("");
                    categories(unknown.map(|&hash| if hash == empty { Some("") } else { text.value(hash) }))
                }
                _ => Vec::new(),
            };
            Some(
                found
                    .into_iter()
                    .map(|(reason, found)| ((column.name.clone(), reason), found))
                    .collect::<Vec<_>>(),
            )
        };
        let columns = self.columns().par_iter().filter_map(of_column).flatten().collect();
        Unfamiliar { n_rows: table.n_rows(), columns }
    }
}

/// The smallest and the largest number that is not missing; 0 and 0 if all are missing.
pub(super) fn extremes(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values
        .filter(|value| !value.is_nan())
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
    if low <= high { (low, high) } else { (0.0, 0.0) }
}

/// The number of missing values, and of values outside the range, if there is one.
fn numbers(
    values: impl Iterator<Item = f64>,
    range: Option<(f64, f64)>,
    missing: Reason,
) -> Vec<(Reason, Found)> {
    let (least, most) = range.map_or((f64::NEG_INFINITY, f64::INFINITY), |(low, high)| {
        (low - SLACK * (high - low), high + SLACK * (high - low))
    });
    let (mut n_missing, mut n_outside, mut example) = (0, 0, None);
    for value in values {
        if value.is_nan() {
            n_missing += 1;
        } else if value < least || value > most {
            n_outside += 1;
            example.get_or_insert(value);
        }
    }
    let example = example.map(|value: f64| value.to_string());
    let found = [
        (missing, Found { n_rows: n_missing, example: None, range: None }),
        (Reason::OutOfRange, Found { n_rows: n_outside, example, range }),
    ];
    found.into_iter().filter(|(_, found)| found.n_rows > 0).collect()
}

/// Unknown categories, each with its text if known; empty text is a missing value.
fn categories<'v>(unknown: impl Iterator<Item = Option<&'v str>>) -> Vec<(Reason, Found)> {
    /// The maximum length of an example.
    const SHOWN: usize = 40;
    let (mut n_missing, mut n_unseen, mut example) = (0, 0, None);
    for value in unknown {
        if value == Some("") {
            n_missing += 1;
        } else {
            n_unseen += 1;
            example = example.or(value);
        }
    }
    let example = example.map(|text| format!("`{}`", text.chars().take(SHOWN).collect::<String>()));
    let found = [
        (Reason::NewlyMissing, Found { n_rows: n_missing, example: None, range: None }),
        (Reason::Unseen, Found { n_rows: n_unseen, example, range: None }),
    ];
    found.into_iter().filter(|(_, found)| found.n_rows > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::EncoderOptions;
    use ndarray::array;

    fn table(columns: Vec<(&str, Column)>) -> Table {
        Table::new(columns.into_iter().map(|(name, column)| (name.into(), column)).collect()).unwrap()
    }

    fn encoder(columns: Vec<(&str, Column)>) -> Encoder {
        Encoder::fit(&table(columns), EncoderOptions { max_vocabulary: 3, hash_buckets: 8 }).unwrap()
    }

    #[test]
    fn what_was_seen_is_familiar() {
        let columns = || {
            vec![
                ("number", Column::Numeric(vec![1.0, 3.0, f64::NAN, 2.0])),
                ("constant", Column::Numeric(vec![7.0; 4])),
                ("list", Column::Vector(array![[0.0_f32, 1.0], [0.5, 0.5], [1.0, 0.0], [0.0, 0.0]])),
                ("word", Column::categorical(["x", "y", "", "x"])),
                ("hashed", Column::categorical(["a", "b", "c", "d"])),
            ]
        };
        assert!(encoder(columns()).unfamiliar(&table(columns())).is_empty());
        // A model does not look at a column that did not vary, and hashes know no values.
        let other = vec![
            ("number", Column::Numeric(vec![0.9, f64::NAN])),
            ("constant", Column::Numeric(vec![-1e9, 1e9])),
            ("list", Column::Vector(array![[1.05_f32, -0.05], [0.0, 0.0]])),
            ("word", Column::Hashed(["y", ""].into_iter().collect())),
            ("hashed", Column::categorical(["z", "a"])),
        ];
        assert_eq!(encoder(columns()).unfamiliar(&table(other)).lines(), Vec::<String>::new());
    }

    #[test]
    fn tables_are_added_up() {
        let encoder = encoder(vec![
            ("number", Column::Numeric(vec![0.0, 10.0])),
            ("list", Column::Vector(array![[0.0_f32, 1.0], [1.0, 0.5]])),
            ("word", Column::categorical(["x", "y"])),
        ]);
        let part = |number: f64, pixel: f32, word: &'static str, is_hashed: bool| {
            encoder.unfamiliar(&table(vec![
                ("number", Column::Numeric(vec![number, 5.0])),
                ("list", Column::Vector(array![[0.0_f32, pixel], [0.0, 1.0]])),
                ("word", {
                    let words = [word, "x"];
                    if is_hashed {
                        Column::Hashed(words.into_iter().collect())
                    } else {
                        Column::categorical(words)
                    }
                }),
            ]))
        };
        let mut all = Unfamiliar::default();
        assert!(all.is_empty());
        for (number, pixel, word, is_hashed) in
            [(-1.5, 255.0, "z", true), (f64::NAN, 0.5, "w", false), (10.9, -3.0, "", true)]
        {
            all.merge(part(number, pixel, word, is_hashed));
        }
        assert_eq!(
            all.lines(),
            [
                "column `list`: 2 of 6 rows are outside the training range of 0 to 1, such as 255",
                "column `number`: 1 of 6 rows are outside the training range of 0 to 10, such as -1.5",
                "column `number`: 1 of 6 rows have no value; in training all had one",
                "column `word`: 2 of 6 rows have values not seen in training, such as `z`",
                "column `word`: 1 of 6 rows have no value; in training all had one",
            ]
        );
    }

    #[test]
    fn missing_numbers_are_familiar_unless_all_are_missing() {
        let encoder = encoder(vec![("a", Column::Numeric(vec![1.0, f64::NAN, 2.0]))]);
        let lines = |values| encoder.unfamiliar(&table(vec![("a", Column::Numeric(values))])).lines();
        assert!(lines(vec![f64::NAN, 1.0]).is_empty());
        assert_eq!(lines(vec![f64::NAN; 2]), ["column `a`: 2 of 2 rows have no value"]);
    }

    #[test]
    fn few_of_many_columns_are_listed() {
        let columns = |value: f64| -> Vec<(String, Column)> {
            (0..30).map(|column| (format!("c{column:02}"), Column::Numeric(vec![0.0, value]))).collect()
        };
        let fitted = Encoder::fit(&Table::new(columns(1.0)).unwrap(), EncoderOptions::default()).unwrap();
        let lines = fitted.unfamiliar(&Table::new(columns(9.0)).unwrap()).lines();
        assert_eq!((lines.len(), lines[10].as_str()), (11, "and 20 more"));
    }
}
