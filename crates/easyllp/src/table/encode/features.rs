//! Encode columns as features, a block of rows at a time.

use super::{ColumnEncoder, ColumnEncoding, Encoder};
use crate::error::{Error, Result, check_length};
use crate::kernel::vectorised;
use crate::rows::Rows;
use crate::table::hashed::{AsIs, hash_of};
use crate::table::{Column, Table};
use ndarray::{Array2, ArrayView2, ArrayViewMut2, Axis, s};
use rayon::prelude::*;
use std::collections::HashMap;
use std::ops::Range;

/// Rows per block, processed column by column: few enough for their features to stay in the cache.
const BLOCK: usize = 256;

impl Encoder {
    /// Features of a table's rows. Columns that the encoder does not know are ignored.
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

/// A column to encode: source, encoding and destination.
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

    /// Writes the features of some rows. The error names the first row and value without a finite
    /// feature.
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

/// A column of a block with contiguous lines.
fn column<'b, T>(block: &'b mut ArrayViewMut2<T>, place: usize) -> impl Iterator<Item = &'b mut T> {
    let width = block.ncols();
    let numbers = block.as_slice_mut().expect("whole lines of an array in rows");
    numbers[place..].iter_mut().step_by(width)
}

/// Hash buckets for the values of a field; each field has its own hash.
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

#[expect(clippy::cast_possible_truncation, reason = "features are f32")]
fn standardised(value: f64, mean: f64, scale: f64) -> f32 {
    if scale > 0.0 { ((value - mean) / scale) as f32 } else { 0.0 }
}
