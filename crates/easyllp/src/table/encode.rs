//! Encoders: fitted once on the rows to train on, stored with the model, and applied alike ever after.

use super::hashed::{AsIs, hash_of};
use super::unfamiliar::extremes;
use super::{Column, HashedText, Table};
use crate::error::{Error, Result, check_length};
use crate::kernel::vectorised;
use crate::rows::Rows;
use ndarray::{Array2, ArrayView2, ArrayViewMut2, Axis, s};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::ops::Range;

/// When a categorical column keeps its values, and when they are hashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EncoderOptions {
    /// A column with more distinct values than this is hashed; at most [`HashedText::MOST_VALUES`].
    pub max_vocabulary: usize,
    /// Into how many buckets; at least 1, at most [`MOST_BUCKETS`](Self::MOST_BUCKETS).
    pub hash_buckets: u32,
}

impl EncoderOptions {
    /// The most buckets: a model has weights for each, and no memory holds those of a mistake.
    pub const MOST_BUCKETS: u32 = 1 << 26;
}

impl Default for EncoderOptions {
    fn default() -> Self {
        Self { max_vocabulary: 1000, hash_buckets: 1 << 16 }
    }
}

/// How one column becomes a feature.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ColumnEncoding {
    /// (x − mean)/scale, or 0 for a column that did not vary. A missing number is put at the mean.
    Standardise {
        /// The mean of the numbers that are there.
        mean: f64,
        /// Their standard deviation; 0 if they do not vary.
        scale: f64,
        /// Whether a second feature says that the number is missing: so if one was when the encoder was fitted.
        flags_missing: bool,
        /// The smallest and the largest of the numbers that are there.
        range: (f64, f64),
    },
    /// (x − its mean)/scale, with one scale for all entries of the list: what hardly varies stays small.
    StandardiseVector {
        /// The mean of each entry.
        means: Vec<f64>,
        /// The root of the entries' mean variance; 0 if nothing varies.
        scale: f64,
        /// The smallest and the largest entry.
        range: (f64, f64),
    },
    /// A list of so many numbers, as it is.
    AsIs {
        /// How many.
        width: usize,
    },
    /// The place in this sorted list, from 1; 0 is any other value.
    Vocabulary(Vec<String>),
    /// A hash of name and value, into so many buckets.
    Hash(u32),
}

/// A column's name and encoding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ColumnEncoder {
    /// The name by which the column is found, wherever it stands in a table.
    pub name: String,
    /// What is done with it.
    pub encoding: ColumnEncoding,
}

/// How the columns of a table become features: numbers dense, text as categories. Columns are taken by name, in the
/// order of their names, so that their order in a table does not matter.
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
    /// Learns the encoding of every column.
    pub fn fit(table: &Table, options: EncoderOptions) -> Result<Self> {
        if !(1..=EncoderOptions::MOST_BUCKETS).contains(&options.hash_buckets) {
            let (name, value) = ("hash buckets", options.hash_buckets.to_string());
            return Err(Error::Setting { name, value, expected: "from 1 to 67,108,864" });
        }
        if options.max_vocabulary > HashedText::MOST_VALUES {
            let (name, value) = ("values in a vocabulary", options.max_vocabulary.to_string());
            return Err(Error::Setting { name, value, expected: "at most 4096" });
        }
        let fit = |(name, column): &(String, Column)| {
            Ok(ColumnEncoder { name: name.clone(), encoding: fit_column(name, column, options)? })
        };
        let mut columns = table.columns().par_iter().map(fit).collect::<Result<Vec<ColumnEncoder>>>()?;
        columns.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Self { columns })
    }

    /// The encoder of rows that are arrays of numbers already: one column of lists, which stay as they are.
    pub fn as_is(name: &str, width: usize) -> Self {
        let encoding = ColumnEncoding::AsIs { width };
        Self { columns: vec![ColumnEncoder { name: name.into(), encoding }] }
    }

    /// The columns, in the order of features.
    pub fn columns(&self) -> &[ColumnEncoder] {
        &self.columns
    }

    /// The name of the column that a dense feature comes from.
    pub fn dense_column(&self, place: usize) -> Option<&str> {
        let of_features = self
            .columns
            .iter()
            .flat_map(|column| std::iter::repeat_n(column.name.as_str(), column.encoding.n_dense()));
        of_features.into_iter().nth(place)
    }

    /// The name of the column that a categorical field comes from.
    pub fn field_column(&self, field: usize) -> Option<&str> {
        let of_fields = self.columns.iter().filter(|column| column.encoding.cardinality().is_some());
        of_fields.map(|column| column.name.as_str()).nth(field)
    }

    /// How many dense features there are, and the cardinality of each categorical field.
    pub(crate) fn shape(&self) -> (usize, Vec<u32>) {
        let n_dense = self.columns.iter().map(|column| column.encoding.n_dense()).sum();
        (n_dense, self.columns.iter().filter_map(|column| column.encoding.cardinality()).collect())
    }

    /// Refuses what fitting never leaves, but a file may hold.
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

    /// Features of a table's rows. Columns that the encoder does not know are passed over.
    pub fn encode<'r>(&self, table: &Table) -> Result<Rows<'r>> {
        let (n_dense, cardinalities) = self.shape();
        let (mut place, mut field) = (0, 0);
        let mut fillings = Vec::with_capacity(self.columns.len());
        for ColumnEncoder { name, encoding } in &self.columns {
            fillings.push((name, Filling::new(name, encoding, table.column(name)?, (place, field))?));
            place += encoding.n_dense();
            field += usize::from(encoding.n_dense() == 0);
        }
        let mut dense = Array2::zeros((table.n_rows(), n_dense));
        let mut categories = Array2::zeros((table.n_rows(), cardinalities.len()));
        let blocks = dense
            .axis_chunks_iter_mut(Axis(0), BLOCK)
            .into_par_iter()
            .zip(categories.axis_chunks_iter_mut(Axis(0), BLOCK));
        let failed = blocks.enumerate().find_map_first(|(block, (mut dense, mut categories))| {
            let rows = block * BLOCK..block * BLOCK + dense.nrows();
            fillings.iter().find_map(|(name, filling)| {
                let (row, value) = filling.fill(rows.clone(), &mut dense, &mut categories).err()?;
                Some(Error::NumberNotFinite { column: (*name).clone(), row, value })
            })
        });
        match failed {
            Some(error) => Err(error),
            None => Ok(Rows::checked(dense, categories, cardinalities)),
        }
    }
}

/// More numbers than a list has: what a file says is not added up unseen.
const MOST_IN_LIST: usize = 1 << 32;

/// Rows filled at a time, column by column: few enough for their features to stay near the processor.
const BLOCK: usize = 256;

/// A column on its way into features: where from, how, and where to.
enum Filling<'c> {
    Numbers { values: &'c [f64], mean: f64, scale: f64, flags_missing: bool, place: usize },
    Lists { values: ArrayView2<'c, f32>, means: &'c [f64], scale: f64, place: usize },
    AsIs { values: ArrayView2<'c, f32>, place: usize },
    Codes { codes: &'c [u32], ids: Vec<u32>, field: usize },
    Known { hashes: &'c [u32], ids: HashMap<u32, u32, AsIs>, field: usize },
    Buckets { hashes: &'c [u32], of_field: Buckets, field: usize },
}

impl<'c> Filling<'c> {
    fn new(
        name: &str,
        encoding: &'c ColumnEncoding,
        column: &'c Column,
        (place, field): (usize, usize),
    ) -> Result<Self> {
        let known = |values: &[String]| values.iter().map(|value| hash_of(value)).zip(1..).collect();
        Ok(match (encoding, column) {
            (&ColumnEncoding::Standardise { mean, scale, flags_missing, .. }, Column::Numeric(values)) => {
                Self::Numbers { values, mean, scale, flags_missing, place }
            }
            (ColumnEncoding::StandardiseVector { means, scale, .. }, Column::Vector(values)) => {
                check_length("numbers in a list", means.len(), values.ncols())?;
                Self::Lists { values: values.view(), means, scale: *scale, place }
            }
            (ColumnEncoding::AsIs { width }, Column::Vector(values)) => {
                check_length("numbers in a list", *width, values.ncols())?;
                Self::AsIs { values: values.view(), place }
            }
            (ColumnEncoding::Vocabulary(values), Column::Categorical { dictionary, codes }) => {
                let known: HashMap<u32, u32, AsIs> = known(values);
                let id = |value: &String| known.get(&hash_of(value)).copied().unwrap_or(0);
                Self::Codes { codes, ids: dictionary.iter().map(id).collect(), field }
            }
            (ColumnEncoding::Vocabulary(values), Column::Hashed(text)) => {
                Self::Known { hashes: text.hashes(), ids: known(values), field }
            }
            (&ColumnEncoding::Hash(buckets), Column::Categorical { dictionary, codes }) => {
                let of_field = Buckets::new(name, buckets);
                let ids = dictionary.iter().map(|value| of_field.bucket(hash_of(value))).collect();
                Self::Codes { codes, ids, field }
            }
            (&ColumnEncoding::Hash(buckets), Column::Hashed(text)) => {
                Self::Buckets { hashes: text.hashes(), of_field: Buckets::new(name, buckets), field }
            }
            (encoding, column) => {
                let (expected, got) = (encoding.kind(), column.kind());
                return Err(Error::ColumnKind { column: name.into(), expected, got });
            }
        })
    }

    /// Writes the features of some rows; fails with the first row and value that do not become a finite one.
    fn fill(
        &self,
        rows: Range<usize>,
        dense: &mut ArrayViewMut2<f32>,
        categories: &mut ArrayViewMut2<u32>,
    ) -> std::result::Result<(), (usize, f64)> {
        match self {
            Self::Numbers { values, mean, scale, flags_missing, place } => {
                let values = &values[rows.clone()];
                // Side by side first, which is done in vectors; then each to its row.
                let (mut features, mut flags) = ([0.0; BLOCK], [0.0; BLOCK]);
                vectorised(
                    #[inline(always)]
                    || {
                        for ((feature, flag), &value) in features.iter_mut().zip(&mut flags).zip(values) {
                            let number = standardised(value, *mean, *scale);
                            *feature = if value.is_nan() { 0.0 } else { number };
                            *flag = if value.is_nan() { 1.0 } else { 0.0 };
                        }
                    },
                );
                if let Some(row) = features.iter().position(|feature| !feature.is_finite()) {
                    return Err((rows.start + row, values[row]));
                }
                column(dense, *place).zip(features).for_each(|(to, feature)| *to = feature);
                if *flags_missing {
                    column(dense, place + 1).zip(flags).for_each(|(to, flag)| *to = flag);
                }
            }
            Self::Lists { values, means, scale, place } => {
                let mut features = dense.slice_mut(s![.., *place..place + means.len()]);
                let lists = values.slice(s![rows.clone(), ..]);
                for ((row, features), list) in rows.zip(features.rows_mut()).zip(lists.rows()) {
                    for ((to, value), mean) in features.into_iter().zip(list).zip(*means) {
                        *to = standardised(f64::from(*value), *mean, *scale);
                        if !to.is_finite() {
                            return Err((row, f64::from(*value)));
                        }
                    }
                }
            }
            Self::AsIs { values, place } => {
                let width = values.ncols();
                dense.slice_mut(s![.., *place..place + width]).assign(&values.slice(s![rows, ..]));
            }
            Self::Codes { codes, ids, field } => {
                let to = column(categories, *field);
                to.zip(&codes[rows]).for_each(|(to, &code)| *to = ids[code as usize]);
            }
            Self::Known { hashes, ids, field } => {
                let to = column(categories, *field);
                let id = |hash| ids.get(hash).copied().unwrap_or(0);
                to.zip(&hashes[rows]).for_each(|(to, hash)| *to = id(hash));
            }
            Self::Buckets { hashes, of_field, field } => {
                let to = column(categories, *field);
                to.zip(&hashes[rows]).for_each(|(to, &hash)| *to = of_field.bucket(hash));
            }
        }
        Ok(())
    }
}

/// A column of a block whose lines stand one after the other.
fn column<'b, T>(block: &'b mut ArrayViewMut2<T>, place: usize) -> impl Iterator<Item = &'b mut T> {
    let width = block.ncols();
    let numbers = block.as_slice_mut().expect("whole lines of an array in rows");
    numbers[place..].iter_mut().step_by(width)
}

/// Buckets for the values of a field, each field in a way of its own.
#[derive(Debug, Clone, Copy)]
struct Buckets {
    seed: u32,
    n_buckets: u32,
}

impl Buckets {
    fn new(name: &str, n_buckets: u32) -> Self {
        Self { seed: hash_of(name), n_buckets }
    }

    fn bucket(self, hash: u32) -> u32 {
        let mixed = (hash ^ self.seed).wrapping_mul(0x9E37_79B1);
        ((u64::from(mixed) * u64::from(self.n_buckets)) >> 32) as u32
    }
}

impl ColumnEncoding {
    /// How many dense features the column becomes; none if it becomes a category.
    fn n_dense(&self) -> usize {
        match self {
            Self::Standardise { flags_missing, .. } => 1 + usize::from(*flags_missing),
            Self::StandardiseVector { means, .. } => means.len(),
            Self::AsIs { width } => *width,
            Self::Vocabulary(_) | Self::Hash(_) => 0,
        }
    }

    /// How many categories the column has; none if it becomes dense features.
    fn cardinality(&self) -> Option<u32> {
        match self {
            Self::Standardise { .. } | Self::StandardiseVector { .. } | Self::AsIs { .. } => None,
            Self::Vocabulary(values) => {
                Some(u32::try_from(values.len()).map_or(u32::MAX, |n| n.saturating_add(1)))
            }
            Self::Hash(buckets) => Some(*buckets),
        }
    }

    /// What is wrong with it, if fitting did not make it.
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

    /// The kind of column that it serves.
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

fn fit_column(name: &str, column: &Column, options: EncoderOptions) -> Result<ColumnEncoding> {
    let checked = |scale: f64, largest_mean: f64| match scale {
        _ if !scale.is_finite() => Err(Error::NumbersTooLarge { column: name.into() }),
        // What varies by rounding only does not vary.
        _ if scale <= 1e-13 * largest_mean => Ok(0.0),
        _ => Ok(scale),
    };
    Ok(match column {
        Column::Numeric(values) => {
            let count = values.iter().filter(|value| !value.is_nan()).count() as f64;
            let n_there = count.max(1.0);
            let mean = sum_of(values, |value| value) / n_there;
            let variance = sum_of(values, |value| (value - mean).powi(2)) / n_there;
            let scale = checked(variance.sqrt(), mean.abs())?;
            let range = extremes(values.iter().copied());
            ColumnEncoding::Standardise { mean, scale, flags_missing: count < values.len() as f64, range }
        }
        Column::Vector(values) => {
            let n_rows = values.nrows() as f64;
            let wide = values.mapv(f64::from);
            let means = wide.sum_axis(Axis(0)) / n_rows;
            let variance = (&wide - &means).mapv(|difference| difference * difference).mean().unwrap_or(0.0);
            let largest = means.iter().fold(0.0, |largest: f64, mean| largest.max(mean.abs()));
            ColumnEncoding::StandardiseVector {
                scale: checked(variance.sqrt(), largest)?,
                means: means.to_vec(),
                range: extremes(wide.iter().copied()),
            }
        }
        Column::Categorical { dictionary, codes } => {
            let mut used = vec![false; dictionary.len()];
            for &code in codes {
                used[code as usize] = true;
            }
            let mut values: Vec<String> = dictionary
                .iter()
                .zip(used)
                .filter(|(_, used)| *used)
                .map(|(value, _)| value.clone())
                .collect();
            values.sort_unstable();
            values.dedup();
            if values.len() > options.max_vocabulary {
                ColumnEncoding::Hash(options.hash_buckets)
            } else {
                ColumnEncoding::Vocabulary(values)
            }
        }
        Column::Hashed(text) => match text.values() {
            Some(values) if values.len() <= options.max_vocabulary => ColumnEncoding::Vocabulary(values),
            _ => ColumnEncoding::Hash(options.hash_buckets),
        },
    })
}

/// The sum over the numbers that are there, in eight sums side by side: a processor adds them all at once.
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

#[expect(clippy::cast_possible_truncation, reason = "features are f32")]
fn standardised(value: f64, mean: f64, scale: f64) -> f32 {
    if scale > 0.0 { ((value - mean) / scale) as f32 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        Table::new(vec![
            ("b".into(), Column::Numeric(vec![1.0, 3.0, 5.0, 7.0])),
            ("a".into(), Column::Numeric(vec![4.0; 4])),
            ("word".into(), Column::categorical(["x", "z", "y", "x"])),
        ])
        .unwrap()
    }

    #[test]
    fn numbers_are_standardised_and_constants_do_no_harm() {
        let rows = Encoder::fit(&table(), EncoderOptions::default()).unwrap().encode(&table()).unwrap();
        let batch = rows.as_dense().unwrap().batch(0..4);
        assert_eq!(batch.dense.column(0).to_vec(), [0.0; 4]); // "a", by name
        let sd = 5f32.sqrt();
        for (got, expected) in batch.dense.column(1).iter().zip([-3.0 / sd, -1.0 / sd, 1.0 / sd, 3.0 / sd]) {
            assert!((got - expected).abs() < 1e-6);
        }
        assert_eq!(batch.categories.column(0).to_vec(), [1, 3, 2, 1]);
        assert_eq!(rows.cardinalities(), [4]);
    }

    #[test]
    fn missing_numbers_stand_at_the_mean_and_are_flagged() {
        let table = |values| Table::new(vec![("a".into(), Column::Numeric(values))]).unwrap();
        let seen = table(vec![1.0, f64::NAN, 3.0]);
        let encoder = Encoder::fit(&seen, EncoderOptions::default()).unwrap();
        let rows = encoder.encode(&seen).unwrap();
        assert_eq!(
            rows.as_dense().unwrap().batch(0..3).dense,
            ndarray::array![[-1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]
        );
        // None was missing in training: a missing one is put at the mean, and there is no flag to raise.
        let encoder = Encoder::fit(&table(vec![1.0, 3.0]), EncoderOptions::default()).unwrap();
        assert_eq!(
            encoder.encode(&seen).unwrap().as_dense().unwrap().batch(0..3).dense,
            ndarray::array![[-1.0], [0.0], [1.0]]
        );
        let nothing = table(vec![f64::NAN; 2]);
        let encoder = Encoder::fit(&nothing, EncoderOptions::default()).unwrap();
        assert_eq!(
            encoder.encode(&nothing).unwrap().as_dense().unwrap().batch(0..2).dense,
            ndarray::array![[0.0, 1.0], [0.0, 1.0]]
        );
    }

    #[test]
    fn lists_stay_as_they_are_if_the_encoder_says_so() {
        let lists = ndarray::array![[0.5_f32, -3.0], [1e9, 0.0]];
        let table = Table::new(vec![("x".into(), Column::Vector(lists.clone()))]).unwrap();
        assert_eq!(
            Encoder::as_is("x", 2).encode(&table).unwrap().as_dense().unwrap().batch(0..2).dense,
            lists
        );
        let message = Encoder::as_is("x", 3).encode(&table).unwrap_err().to_string();
        assert_eq!(message, "numbers in a list: expected 3, got 2");
        assert!(Encoder::as_is("x", 0).check().is_err());
        assert!(Encoder::as_is("x", usize::MAX).check().is_err());
    }

    #[test]
    fn extreme_numbers_are_standardised_or_refused() {
        let encode = |values: Vec<f64>| -> Result<Array2<f32>> {
            let table = Table::new(vec![("a".into(), Column::Numeric(values))]).unwrap();
            Ok(Encoder::fit(&table, EncoderOptions::default())?
                .encode(&table)?
                .as_dense()
                .unwrap()
                .batch(0..2)
                .dense
                .to_owned())
        };
        // Nanoseconds since 1970, half a second apart.
        let times = encode(vec![1.7e18, 1.7e18 + 5e8]).unwrap();
        assert!((times[[0, 0]] + 1.0).abs() < 1e-3 && (times[[1, 0]] - 1.0).abs() < 1e-3, "{times}");
        assert_eq!(encode(vec![0.1; 2]).unwrap(), ndarray::array![[0.0], [0.0]]);
        assert_eq!(encode(vec![1e300, -1.0]).unwrap_err(), Error::NumbersTooLarge { column: "a".into() });
        let lists = Table::new(vec![("a".into(), Column::Vector(Array2::from_elem((7, 3), 0.1)))]).unwrap();
        let encoder = Encoder::fit(&lists, EncoderOptions::default()).unwrap();
        assert!(
            encoder
                .encode(&lists)
                .unwrap()
                .as_dense()
                .unwrap()
                .batch(0..7)
                .dense
                .iter()
                .all(|feature| feature.abs() < 1e-9)
        );
        assert!(Table::new(vec![("a".into(), Column::Vector(Array2::zeros((2, 0))))]).is_err());
    }

    #[test]
    fn lists_share_one_scale() {
        // Variances 1, 0 and 8: the scale is the root of 3.
        let lists = ndarray::array![[1.0_f32, 5.0, 0.0], [3.0, 5.0, 4.0 * 2f32.sqrt()]];
        let table = Table::new(vec![
            ("a".into(), Column::Numeric(vec![0.0, 2.0])),
            ("list".into(), Column::Vector(lists)),
        ])
        .unwrap();
        let encoder = Encoder::fit(&table, EncoderOptions::default()).unwrap();
        let rows = encoder.encode(&table).unwrap();
        let scale = 3f32.sqrt();
        for (got, expected) in rows.as_dense().unwrap().batch(0..1).dense.iter().zip([
            -1.0,
            -1.0 / scale,
            0.0,
            -(8f32.sqrt()) / scale,
        ]) {
            assert!((got - expected).abs() < 1e-6, "{got} {expected}");
        }
        let shorter = Column::Vector(Array2::zeros((1, 2)));
        let shorter =
            Table::new(vec![("a".into(), Column::Numeric(vec![0.0])), ("list".into(), shorter)]).unwrap();
        assert!(encoder.encode(&shorter).is_err());
    }

    #[test]
    fn many_values_are_hashed_each_field_its_own_way() {
        let values: Vec<String> = (0..500).map(|value| format!("v{value}")).collect();
        let column = || Column::categorical(values.iter().map(String::as_str));
        let table = Table::new(vec![("c".into(), column()), ("d".into(), column())]).unwrap();
        let options = EncoderOptions { max_vocabulary: 10, hash_buckets: 64 };
        let rows = Encoder::fit(&table, options).unwrap().encode(&table).unwrap();
        let batch = rows.as_dense().unwrap().batch(0..500);
        assert_eq!(rows.cardinalities(), [64, 64]);
        let used: std::collections::HashSet<u32> = batch.categories.column(0).iter().copied().collect();
        assert!(used.len() > 60, "500 values fill nearly all of 64 buckets, not {}", used.len());
        assert_ne!(batch.categories.column(0), batch.categories.column(1));
    }

    #[test]
    fn hashed_text_is_encoded_as_the_text_is() {
        let values: Vec<String> = (0..500).map(|value| format!("v{}", value % 70)).collect();
        let text = || values.iter().map(String::as_str);
        let in_full = Table::new(vec![("c".into(), Column::categorical(text()))]).unwrap();
        let hashed = Table::new(vec![("c".into(), Column::Hashed(text().collect()))]).unwrap();
        for max_vocabulary in [69, 70] {
            let options = EncoderOptions { max_vocabulary, hash_buckets: 32 };
            let encoder = Encoder::fit(&in_full, options).unwrap();
            assert_eq!(Encoder::fit(&hashed, options).unwrap(), encoder);
            let ids = |table| {
                encoder.encode(table).unwrap().as_dense().unwrap().batch(0..500).categories.to_owned()
            };
            assert_eq!(ids(&hashed), ids(&in_full));
        }
        let too_many = EncoderOptions { max_vocabulary: 4097, hash_buckets: 1 };
        assert!(Encoder::fit(&hashed, too_many).is_err());
    }

    #[test]
    fn an_encoder_is_stored_and_read_back() {
        let encoder = Encoder::fit(&table(), EncoderOptions::default()).unwrap();
        let stored = serde_json::to_string(&encoder).unwrap();
        assert_eq!(serde_json::from_str::<Encoder>(&stored).unwrap(), encoder);
    }

    #[test]
    fn the_shape_is_that_of_the_rows() {
        let lists = ("list".into(), Column::Vector(Array2::zeros((4, 3))));
        let table = Table::new([table().columns(), &[lists]].concat()).unwrap();
        for max_vocabulary in [1, 10] {
            let encoder = Encoder::fit(&table, EncoderOptions { max_vocabulary, hash_buckets: 7 }).unwrap();
            let rows = encoder.encode(&table).unwrap();
            assert_eq!(encoder.shape(), (rows.n_dense(), rows.cardinalities().to_vec()));
            assert_eq!(encoder.check(), Ok(()));
            // "a", "b", three numbers of "list"; "word" is the only field.
            let names: Vec<Option<&str>> = (0..6).map(|place| encoder.dense_column(place)).collect();
            assert_eq!(names, [Some("a"), Some("b"), Some("list"), Some("list"), Some("list"), None]);
            assert_eq!([0, 1].map(|field| encoder.field_column(field)), [Some("word"), None]);
        }
    }

    #[test]
    fn refuses_encoders_that_were_never_fitted() {
        let column = |name: &str, encoding| ColumnEncoder { name: name.into(), encoding };
        let number = |name: &str| {
            let range = (-1.0, 4.0);
            column(name, ColumnEncoding::Standardise { mean: 1.0, scale: 2.0, flags_missing: false, range })
        };
        let list = |means: &[f64], scale| ColumnEncoding::StandardiseVector {
            means: means.to_vec(),
            scale,
            range: (0.0, 1.0),
        };
        let words =
            |values: &[&str]| ColumnEncoding::Vocabulary(values.iter().copied().map(str::to_owned).collect());
        let refused = |columns: Vec<ColumnEncoder>| Encoder { columns }.check().is_err();
        assert!(!refused(vec![number("a"), number("b"), column("c", words(&["x", "y"]))]));
        assert!(refused(vec![number("b"), number("a")]));
        assert!(refused(vec![number("a"), number("a")]));
        for encoding in [
            ColumnEncoding::Standardise {
                mean: f64::NAN,
                scale: 1.0,
                flags_missing: false,
                range: (0.0, 1.0),
            },
            ColumnEncoding::Standardise { mean: 0.0, scale: -1.0, flags_missing: true, range: (0.0, 1.0) },
            ColumnEncoding::Standardise { mean: 0.0, scale: 1.0, flags_missing: true, range: (2.0, 1.0) },
            ColumnEncoding::Standardise {
                mean: 0.0,
                scale: 1.0,
                flags_missing: true,
                range: (0.0, f64::NAN),
            },
            list(&[0.0, f64::INFINITY], 1.0),
            list(&[0.0], -1.0),
            words(&["y", "x"]),
            words(&["x", "x"]),
            ColumnEncoding::Hash(0),
        ] {
            assert!(refused(vec![column("a", encoding)]));
        }
    }

    #[test]
    fn refuses_tables_that_do_not_fit() {
        let encoder = Encoder::fit(&table(), EncoderOptions::default()).unwrap();
        let other = |columns| encoder.encode(&Table::new(columns).unwrap()).unwrap_err().to_string();
        let numbers = |name: &str| (name.to_owned(), Column::Numeric(vec![1.0]));
        assert_eq!(other(vec![numbers("a"), numbers("c")]), "column `b` is missing from the table");
        assert_eq!(
            other(vec![numbers("a"), numbers("b"), numbers("word")]),
            "column `word` is numeric, but the encoder was fitted on a categorical one"
        );
        assert!(Table::new(vec![numbers("a"), numbers("a")]).is_err());
        assert!(Table::new(vec![]).is_err());
        assert!(Table::new(vec![("a".into(), Column::Numeric(vec![f64::INFINITY]))]).is_err());
        let bad_code = Column::Categorical { dictionary: vec!["x".into()], codes: vec![1] };
        assert!(Table::new(vec![("a".into(), bad_code)]).is_err());
        assert!(Encoder::fit(&table(), EncoderOptions { hash_buckets: 0, max_vocabulary: 1 }).is_err());
    }
}
