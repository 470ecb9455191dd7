//! Mergeable summaries of tables, which encoders are fitted from.
//!
//! The numbers of a part are summarised by their count n, mean m and sum of squared deviations M =
//! Σ(x − m)². Two parts merge by the formulas of Chan, Golub & LeVeque (1983), which are accurate
//! for large means:
//!
//! ```text
//! n = n₁ + n₂        m = m₁ + (m₂ − m₁) n₂/n        M = M₁ + M₂ + (m₂ − m₁)² n₁n₂/n
//! ```

use super::{ColumnEncoder, ColumnEncoding, Encoder, EncoderOptions};
use crate::error::{Error, Result};
use crate::kernel::vectorised;
use crate::table::unfamiliar::extremes;
use crate::table::{Column, Table};
use ndarray::{Array2, Axis};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// A summary of a part of a table, from which an encoder is fitted. Summaries of parts
/// [`merge`](Self::merge) in any order: moments up to rounding; counts, extremes and vocabularies
/// exactly. An encoder can therefore be fitted without all rows on one machine.
///
/// Columns are matched by name. Every part must have the same columns of the same kinds.
///
/// ```
/// use easyllp::table::{Column, Encoder, EncoderOptions, Table, TableSummary};
///
/// let part = |ages: Vec<f64>, city: &str| {
///     let cities = vec![city; ages.len()];
///     Table::new(vec![
///         ("age".into(), Column::Numeric(ages)),
///         ("city".into(), Column::categorical(cities)),
///     ])
/// };
/// let options = EncoderOptions::default();
/// let mut summary = TableSummary::of(&part(vec![20.0, 30.0], "Bern")?, options)?;
/// summary.merge(TableSummary::of(&part(vec![40.0], "Wien")?, options)?)?;
///
/// let all = Table::new(vec![
///     ("age".into(), Column::Numeric(vec![20.0, 30.0, 40.0])),
///     ("city".into(), Column::categorical(["Bern", "Bern", "Wien"])),
/// ])?;
/// assert_eq!(summary.encoder()?, Encoder::fit(&all, options)?);
/// # Ok::<(), easyllp::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableSummary {
    options: EncoderOptions,
    /// Sorted by name.
    columns: Vec<(String, ColumnSummary)>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum ColumnSummary {
    Numbers {
        n_missing: u64,
        n_present: u64,
        mean: f64,
        /// Σ(x − mean)².
        squares: f64,
        range: (f64, f64),
    },
    Lists {
        n_rows: u64,
        means: Vec<f64>,
        /// Σ(x − mean of its entry)², over all entries.
        squares: f64,
        range: (f64, f64),
    },
    /// The distinct values, sorted; none if there are more than the vocabulary allows.
    Text { values: Option<Vec<String>> },
}

impl TableSummary {
    /// Summarises all columns of a table.
    pub fn of(table: &Table, options: EncoderOptions) -> Result<Self> {
        options.check()?;
        let of = |(name, column): &(String, Column)| (name.clone(), ColumnSummary::of(column, options));
        let mut columns: Vec<(String, ColumnSummary)> = table.columns().par_iter().map(of).collect();
        columns.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(Self { options, columns })
    }

    /// Adds the summary of another part of the table.
    pub fn merge(&mut self, other: Self) -> Result<()> {
        if self.options != other.options {
            return Err(Error::PartsDiffer { what: "encoder options" });
        }
        let names = |summary: &Self| summary.columns.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        if names(self) != names(&other) {
            return Err(Error::PartsDiffer { what: "columns" });
        }
        // Nothing is added before all of it can be.
        if let Some(((column, one), (_, other))) =
            self.columns.iter().zip(&other.columns).find(|((_, one), (_, other))| !one.merges_with(other))
        {
            let (expected, got) = (one.kind(), other.kind());
            return Err(if expected == got {
                Error::PartsDiffer { what: "lengths of lists" }
            } else {
                Error::ColumnKind { column: column.clone(), expected, got }
            });
        }
        for ((_, one), (_, other)) in self.columns.iter_mut().zip(other.columns) {
            one.merge(other, self.options.max_vocabulary);
        }
        Ok(())
    }

    /// Creates the encoder of all merged parts.
    pub fn encoder(&self) -> Result<Encoder> {
        let encoder = |(name, summary): &(String, ColumnSummary)| {
            Ok(ColumnEncoder { name: name.clone(), encoding: summary.encoding(name, self.options)? })
        };
        Ok(Encoder { columns: self.columns.iter().map(encoder).collect::<Result<_>>()? })
    }
}

impl ColumnSummary {
    fn of(column: &Column, options: EncoderOptions) -> Self {
        match column {
            Column::Numeric(values) => {
                let n_present = values.iter().filter(|value| !value.is_nan()).count() as u64;
                let mean = sum_of(values, |value| value) / n_present.max(1) as f64;
                Self::Numbers {
                    n_missing: values.len() as u64 - n_present,
                    n_present,
                    mean,
                    squares: sum_of(values, |value| (value - mean).powi(2)),
                    range: extremes(values.iter().copied()),
                }
            }
            Column::Vector(values) => {
                let wide: Array2<f64> = values.mapv(f64::from);
                let means = wide.sum_axis(Axis(0)) / values.nrows() as f64;
                let squares = (&wide - &means).mapv(|difference| difference * difference).sum();
                Self::Lists {
                    n_rows: values.nrows() as u64,
                    squares,
                    means: means.to_vec(),
                    range: extremes(wide.iter().copied()),
                }
            }
            Column::Categorical { dictionary, codes } => {
                let mut is_used = vec![false; dictionary.len()];
                for &code in codes {
                    is_used[code as usize] = true;
                }
                let values = dictionary.iter().zip(is_used).filter(|(_, is_used)| *is_used);
                let values = values.map(|(value, _)| value.clone()).collect();
                Self::Text { values: vocabulary(values, options.max_vocabulary) }
            }
            Column::Hashed(text) => {
                let values = text.values().and_then(|values| vocabulary(values, options.max_vocabulary));
                Self::Text { values }
            }
        }
    }

    fn merges_with(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Numbers { .. }, Self::Numbers { .. }) | (Self::Text { .. }, Self::Text { .. }) => true,
            (Self::Lists { means: one, .. }, Self::Lists { means: other, .. }) => one.len() == other.len(),
            _ => false,
        }
    }

    /// Adds a part that [merges with](Self::merges_with) this one.
    fn merge(&mut self, other: Self, max_vocabulary: usize) {
        match (self, other) {
            (
                Self::Numbers { n_missing, n_present, mean, squares, range },
                Self::Numbers {
                    n_missing: more_missing,
                    n_present: more,
                    mean: other_mean,
                    squares: other_squares,
                    range: other_range,
                },
            ) => {
                *n_missing += more_missing;
                *range = joint_range((*range, *n_present), (other_range, more));
                let shift = Shift::between(*n_present, more);
                *squares += other_squares + shift.moved(mean, other_mean);
                *n_present += more;
            }
            (
                Self::Lists { n_rows, means, squares, range },
                Self::Lists { n_rows: more, means: other_means, squares: other_squares, range: other_range },
            ) => {
                *range = joint_range((*range, *n_rows), (other_range, more));
                let shift = Shift::between(*n_rows, more);
                let between: f64 =
                    means.iter_mut().zip(other_means).map(|(mean, other)| shift.moved(mean, other)).sum();
                *squares += other_squares + between;
                *n_rows += more;
            }
            (Self::Text { values }, Self::Text { values: other }) => {
                let both = values.take().zip(other);
                *values = both.and_then(|(one, other)| vocabulary([one, other].concat(), max_vocabulary));
            }
            _ => unreachable!("parts of different kinds were refused before"),
        }
    }

    fn encoding(&self, name: &str, options: EncoderOptions) -> Result<ColumnEncoding> {
        let checked = |variance: f64, largest_mean: f64| match variance.sqrt() {
            scale if !scale.is_finite() => Err(Error::NumbersTooLarge { column: name.into() }),
            // What varies by rounding only does not vary.
            scale if scale <= 1e-13 * largest_mean => Ok(0.0),
            scale => Ok(scale),
        };
        Ok(match self {
            &Self::Numbers { n_missing, n_present, mean, squares, range } => {
                let scale = checked(squares / n_present.max(1) as f64, mean.abs())?;
                ColumnEncoding::Standardise { mean, scale, flags_missing: n_missing > 0, range }
            }
            Self::Lists { n_rows, means, squares, range } => {
                let largest = means.iter().fold(0.0, |largest: f64, mean| largest.max(mean.abs()));
                let n_numbers = *n_rows as f64 * means.len() as f64;
                let scale = checked(squares / n_numbers, largest)?;
                ColumnEncoding::StandardiseVector { scale, means: means.clone(), range: *range }
            }
            Self::Text { values: Some(values) } => ColumnEncoding::Vocabulary(values.clone()),
            Self::Text { values: None } => ColumnEncoding::Hash(options.hash_buckets),
        })
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::Numbers { .. } => "numeric",
            Self::Lists { .. } => "a column of lists",
            Self::Text { .. } => "categorical",
        }
    }
}

/// The distinct values, sorted, if the vocabulary allows them.
fn vocabulary(mut values: Vec<String>, most: usize) -> Option<Vec<String>> {
    values.sort_unstable();
    values.dedup();
    (values.len() <= most).then_some(values)
}

/// How the mean of one part moves when another part is merged.
#[derive(Debug, Clone, Copy)]
struct Shift {
    /// n₂/n.
    share: f64,
    /// n₁n₂/n.
    weight: f64,
}

impl Shift {
    fn between(n: u64, more: u64) -> Self {
        let (n, more) = (n as f64, more as f64);
        let share = more / (n + more).max(1.0);
        Self { share, weight: n * share }
    }

    /// Moves the mean, and returns the increase of the squared deviations. An empty part changes
    /// nothing.
    fn moved(self, mean: &mut f64, other: f64) -> f64 {
        let difference = other - *mean;
        if self.share >= 1.0 {
            *mean = other;
        } else if self.share > 0.0 {
            *mean += difference * self.share;
        }
        if self.weight > 0.0 { difference * difference * self.weight } else { 0.0 }
    }
}

/// The extremes of two parts of these sizes; an empty part has none.
fn joint_range((one, n): ((f64, f64), u64), (other, more): ((f64, f64), u64)) -> (f64, f64) {
    match (n, more) {
        (_, 0) => one,
        (0, _) => other,
        _ => (one.0.min(other.0), one.1.max(other.1)),
    }
}

/// The sum of the numbers that are not missing, in eight parallel sums for the processor's vectors.
fn sum_of(values: &[f64], of: impl Fn(f64) -> f64) -> f64 {
    let of = |value: f64| if value.is_nan() { 0.0 } else { of(value) };
    let (eights, rest) = values.as_chunks::<8>();
    let mut sums = [0.0; 8];
    vectorised(
        #[inline(always)]
        || {
            for eight in eights {
                for (sum, &value) in sums.iter_mut().zip(eight) {
                    *sum += of(value);
                }
            }
        },
    );
    sums.iter().sum::<f64>() + rest.iter().map(|&value| of(value)).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rounding::Sum;
    use crate::seed::{Stream, stream};
    use rand::RngExt;
    use rand::seq::SliceRandom;

    const OPTIONS: EncoderOptions = EncoderOptions { max_vocabulary: 4, hash_buckets: 8 };
    const N_ROWS: usize = 97;

    /// A table of some of the rows: numbers with and without missing ones, one of a large mean, a column of which most parts
    /// have no number, lists, and texts of few and of many values.
    fn part(rows: &[usize]) -> Table {
        let numbers = |of: fn(usize) -> f64| Column::Numeric(rows.iter().map(|&row| of(row)).collect());
        let texts = |of: fn(usize) -> usize| rows.iter().map(move |&row| format!("v{}", of(row)));
        let texts = |of| texts(of).collect::<Vec<String>>();
        let categorical = |texts: Vec<String>| Column::categorical(texts.iter().map(String::as_str));
        let hashed = |texts: Vec<String>| Column::Hashed(texts.iter().map(String::as_str).collect());
        Table::new(vec![
            ("plain".into(), numbers(|row| (row * row % 31) as f64 / 7.0 - 2.0)),
            ("far".into(), numbers(|row| 1e9 + (row % 13) as f64 * 0.1)),
            ("gaps".into(), numbers(|row| if row % 5 == 0 { f64::NAN } else { -(row as f64) })),
            ("rare".into(), numbers(|row| if row % 40 == 3 { row as f64 } else { f64::NAN })),
            ("constant".into(), numbers(|_| 0.1)),
            (
                "list".into(),
                Column::Vector(Array2::from_shape_fn((rows.len(), 3), |(place, entry)| {
                    (rows[place] * (entry + 2) % 17) as f32 / 3.0
                })),
            ),
            ("few".into(), categorical(texts(|row| row % 4))),
            ("many".into(), categorical(texts(|row| row % 5))),
            ("few_hashed".into(), hashed(texts(|row| row % 3))),
            ("many_hashed".into(), hashed(texts(|row| row % 50))),
        ])
        .unwrap()
    }

    fn sums(values: impl Iterator<Item = f64> + Clone) -> (Sum, Sum) {
        (values.clone().collect(), values.map(|value| value * value).collect())
    }

    #[test]
    fn parts_merge_to_the_whole_however_they_are_cut_and_ordered() {
        let rows: Vec<usize> = (0..N_ROWS).collect();
        let table = part(&rows);
        let whole = TableSummary::of(&table, OPTIONS).unwrap();
        for seed in 0..20 {
            let mut rng = stream(seed, Stream::Shuffle);
            let mut rows = rows.clone();
            rows.shuffle(&mut rng);
            let mut parts = Vec::new();
            let mut rest = rows.as_slice();
            while !rest.is_empty() {
                let (first, others) = rest.split_at(rng.random_range(1..=rest.len().min(40)));
                parts.push(TableSummary::of(&part(first), OPTIONS).unwrap());
                rest = others;
            }
            // Any two of them, until one is left.
            while parts.len() > 1 {
                let other = parts.swap_remove(rng.random_range(0..parts.len()));
                let place = rng.random_range(0..parts.len());
                parts[place].merge(other).unwrap();
            }
            for ((name, merged), (_, whole)) in parts[0].columns.iter().zip(&whole.columns) {
                compare(name, merged, whole, table.column(name).unwrap());
            }
        }
    }

    fn compare(name: &str, merged: &ColumnSummary, whole: &ColumnSummary, column: &Column) {
        // Squares are of distances from a mean that is rounded as well: a few roundings more a term.
        let share = 4.0 * N_ROWS as f64 * f64::EPSILON;
        match (merged, whole, column) {
            (
                ColumnSummary::Numbers { n_missing, n_present, mean, squares, range },
                ColumnSummary::Numbers {
                    n_missing: whole_missing,
                    n_present: whole_present,
                    mean: whole_mean,
                    squares: whole_squares,
                    range: whole_range,
                },
                Column::Numeric(values),
            ) => {
                assert_eq!((n_missing, n_present), (whole_missing, whole_present), "{name}");
                assert_eq!(range, whole_range, "{name}");
                let (sum, sizes) = sums(values.iter().copied().filter(|value| !value.is_nan()));
                let n = *n_present as f64;
                assert!(
                    sum.equals_within(share, mean * n) && sum.equals_within(share, whole_mean * n),
                    "{name}"
                );
                let difference = (squares - whole_squares).abs();
                assert!(difference <= share * sizes.total_size(), "{name}: {squares} {whole_squares}");
            }
            (
                ColumnSummary::Lists { n_rows, means, squares, range },
                ColumnSummary::Lists {
                    n_rows: whole_rows,
                    means: whole_means,
                    squares: whole_squares,
                    range: whole_range,
                },
                Column::Vector(values),
            ) => {
                assert_eq!((n_rows, range), (whole_rows, whole_range), "{name}");
                let (sum, sizes) = sums(values.iter().map(|&value| f64::from(value)));
                for (mean, whole) in means.iter().zip(whole_means) {
                    assert!((mean - whole).abs() * N_ROWS as f64 <= share * sum.total_size(), "{name}");
                }
                assert!((squares - whole_squares).abs() <= share * sizes.total_size(), "{name}");
            }
            (one, whole, _) => assert_eq!(one, whole, "{name}"),
        }
    }

    #[test]
    fn a_summary_survives_its_transport() {
        let summary = TableSummary::of(&part(&[1, 2, 43, 5]), OPTIONS).unwrap();
        let sent = serde_json::to_string(&summary).unwrap();
        assert_eq!(serde_json::from_str::<TableSummary>(&sent).unwrap(), summary);
        // One row of a column may have no number at all.
        let nothing = TableSummary::of(&part(&[0]), OPTIONS).unwrap();
        let sent = serde_json::to_string(&nothing).unwrap();
        assert_eq!(serde_json::from_str::<TableSummary>(&sent).unwrap(), nothing);
    }

    #[test]
    fn parts_of_other_data_are_refused_and_change_nothing() {
        let summary = |columns: Vec<(&str, Column)>| {
            let columns = columns.into_iter().map(|(name, column)| (name.into(), column)).collect();
            TableSummary::of(&Table::new(columns).unwrap(), OPTIONS).unwrap()
        };
        let numbers = || Column::Numeric(vec![1.0, 2.0]);
        let lists = |width| Column::Vector(Array2::from_elem((2, width), 1.0));
        let first = summary(vec![("a", numbers()), ("b", lists(2))]);
        let mut merged = first.clone();
        let mut refusal = |other: TableSummary| {
            let message = merged.merge(other).unwrap_err().to_string();
            assert_eq!(merged, first);
            message
        };
        assert_eq!(
            refusal(summary(vec![("a", numbers())])),
            "these sums are not of parts of the same data: their columns differ"
        );
        assert_eq!(
            refusal(summary(vec![("a", numbers()), ("b", lists(3))])),
            "these sums are not of parts of the same data: their lengths of lists differ"
        );
        assert!(
            refusal(summary(vec![("a", numbers()), ("b", numbers())])).starts_with("column `b` is numeric")
        );
        let table = Table::new(vec![("a".into(), numbers()), ("b".into(), lists(2))]).unwrap();
        let other_options = EncoderOptions { max_vocabulary: 5, ..OPTIONS };
        assert!(refusal(TableSummary::of(&table, other_options).unwrap()).contains("encoder options"));
    }
}
