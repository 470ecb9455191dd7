//! READ: the features of N rows, in the caller's order.
//!
//! Nothing here knows of bags or labels, and nothing downstream copies rows to bag them: bags hold row indices.

use crate::error::{Error, Result, check_length};
use crate::kernel::{NonZeros, prefetch};
use ndarray::{Array2, ArrayView2, ArrayViewMut2, CowArray, Ix2, s};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::OnceLock;
use xxhash_rust::xxh3::xxh3_64;

/// Rows that one thread checks at least, so that small tables stay on one.
const CHECKED_AT_ONCE: usize = 4096;

/// Dense features are worth a copy without their zeros if no more than this share of them are others.
const FEW: f64 = 0.3;

/// Features of N rows: a dense `f32` matrix and categorical ids, either of which may have no column.
///
/// Both are borrowed where the caller has them as arrays, owned otherwise. Dense features are finite, and the id in
/// field `f` is below `cardinalities()[f]`: that is checked at construction, and trusted from there on.
///
/// ```
/// use easyllp::Rows;
/// use ndarray::array;
///
/// let features = array![[0.5_f32, 1.0], [0.1, -1.0], [0.9, 0.0]];
/// let rows = Rows::dense(features.view())?; // borrowed: nothing is copied
/// assert_eq!((rows.n_rows(), rows.n_dense(), rows.n_fields()), (3, 2, 0));
/// # Ok::<(), easyllp::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Rows<'a> {
    dense: CowArray<'a, f32, Ix2>,
    categories: CowArray<'a, u32, Ix2>,
    cardinalities: Vec<u32>,
    nonzeros: OnceLock<Option<NonZeros>>,
}

/// The features of a few rows, side by side, as a model sees them.
#[derive(Debug, Clone, Copy)]
pub struct RowBatch<'b> {
    /// One line a row, one column a dense feature.
    pub dense: ArrayView2<'b, f32>,
    /// One line a row, one column a categorical field.
    pub categories: ArrayView2<'b, u32>,
}

/// Space into which rows are gathered, used again from batch to batch.
#[derive(Debug, Clone, Default)]
pub struct RowBuffer {
    dense: Array2<f32>,
    categories: Array2<u32>,
}

impl<'a> Rows<'a> {
    /// Rows with dense features only: N × D.
    pub fn dense(dense: impl Into<CowArray<'a, f32, Ix2>>) -> Result<Self> {
        let dense = dense.into();
        let categories = CowArray::from(Array2::zeros((dense.nrows(), 0)));
        Self::new(dense, categories, Vec::new())
    }

    /// Rows with dense features (N × D) and categories (N × F); field `f` has ids below `cardinalities[f]`.
    pub fn new(
        dense: impl Into<CowArray<'a, f32, Ix2>>,
        categories: impl Into<CowArray<'a, u32, Ix2>>,
        cardinalities: Vec<u32>,
    ) -> Result<Self> {
        let (dense, categories) = (dense.into(), categories.into());
        check_length("rows of the category matrix", dense.nrows(), categories.nrows())?;
        row_count(dense.nrows())?;
        if dense.ncols() + categories.ncols() == 0 {
            return Err(Error::NoFeatures);
        }
        check_length("cardinalities, one a categorical field", categories.ncols(), cardinalities.len())?;
        let bad_feature =
            (0..dense.nrows()).into_par_iter().with_min_len(CHECKED_AT_ONCE).find_map_first(|row| {
                let features = dense.row(row);
                // All at once first, which is fast: there is hardly ever one to look for.
                if features.iter().fold(true, |all, feature| all & feature.is_finite()) {
                    return None;
                }
                let column = features.iter().position(|feature| !feature.is_finite())?;
                Some(Error::FeatureNotFinite { row, column, value: features[column] })
            });
        let bad_category = || {
            (0..categories.nrows()).into_par_iter().with_min_len(CHECKED_AT_ONCE).find_map_first(|row| {
                let ids = categories.row(row);
                let mut fields = ids.iter().zip(&cardinalities).enumerate();
                let (field, (&id, &cardinality)) = fields.find(|(_, (id, cardinality))| id >= cardinality)?;
                Some(Error::CategoryOutOfRange { row, field, id, cardinality })
            })
        };
        match bad_feature.or_else(bad_category) {
            Some(error) => Err(error),
            None => Ok(Self { dense, categories, cardinalities, nonzeros: OnceLock::new() }),
        }
    }

    /// Rows whose maker has seen to what [`new`](Self::new) checks.
    pub(crate) fn checked(dense: Array2<f32>, categories: Array2<u32>, cardinalities: Vec<u32>) -> Self {
        debug_assert!(Rows::new(dense.view(), categories.view(), cardinalities.clone()).is_ok());
        Rows { dense: dense.into(), categories: categories.into(), cardinalities, nonzeros: OnceLock::new() }
    }

    /// How many rows there are: N, at least 1.
    pub fn n_rows(&self) -> usize {
        self.dense.nrows()
    }

    /// How many dense features a row has.
    pub fn n_dense(&self) -> usize {
        self.dense.ncols()
    }

    /// How many categorical fields a row has.
    pub fn n_fields(&self) -> usize {
        self.categories.ncols()
    }

    /// One above the largest id that each categorical field may hold.
    pub fn cardinalities(&self) -> &[u32] {
        &self.cardinalities
    }

    /// A hash of each row's features, the same on every machine: of the dense ones that are not zero, with their columns,
    /// and of all categories.
    pub fn hashes(&self) -> Vec<u64> {
        let rows = (0..self.n_rows()).into_par_iter().with_min_len(CHECKED_AT_ONCE);
        rows.map_init(Vec::new, |bytes: &mut Vec<u8>, row| {
            bytes.clear();
            for (column, value) in (0_u32..).zip(self.dense.row(row)) {
                if value.abs() > 0.0 {
                    bytes.extend(column.to_le_bytes());
                    bytes.extend(value.to_le_bytes());
                }
            }
            bytes.extend(self.categories.row(row).iter().flat_map(|category| category.to_le_bytes()));
            xxh3_64(bytes)
        })
        .collect()
    }

    /// Consecutive rows, without a copy.
    pub fn batch(&self, range: Range<usize>) -> RowBatch<'_> {
        RowBatch {
            dense: self.dense.slice(s![range.clone(), ..]),
            categories: self.categories.slice(s![range, ..]),
        }
    }

    /// Copies the named rows, in that order, to the front of the buffer.
    pub fn gather<'b>(&self, rows: &[u32], buffer: &'b mut RowBuffer) -> RowBatch<'b> {
        if self.n_dense() > 0 {
            gather_lines(&self.dense.view(), rows, buffer.dense.view_mut());
        }
        if self.n_fields() > 0 {
            gather_lines(&self.categories.view(), rows, buffer.categories.view_mut());
        }
        buffer.batch(rows.len())
    }

    /// The named rows, in that order and line after line; a copy of them in the buffer, unless they lie so already.
    pub(crate) fn at<'b>(&'b self, rows: &[u32], buffer: &'b mut RowBuffer) -> RowBatch<'b> {
        let is_stretch = rows.windows(2).all(|pair| pair[0] + 1 == pair[1]);
        match rows.first() {
            Some(&first) if is_stretch && self.dense.is_standard_layout() => {
                self.batch(first as usize..first as usize + rows.len())
            }
            _ => self.gather(rows, buffer),
        }
    }

    /// Copies the dense features of the named rows, in that order.
    pub(crate) fn gather_dense(&self, rows: &[u32], to: ArrayViewMut2<f32>) {
        gather_lines(&self.dense.view(), rows, to);
    }

    /// The dense features that are not zero, if they are few: a copy, made when it is first asked for.
    pub(crate) fn nonzeros(&self) -> Option<&NonZeros> {
        self.nonzeros.get_or_init(|| NonZeros::at_most(FEW, self.dense.view())).as_ref()
    }

    /// A copy of the named rows, of which there is at least one, in that order.
    pub fn select(&self, rows: &[u32]) -> Rows<'static> {
        let mut buffer = self.buffer(rows.len());
        self.gather(rows, &mut buffer);
        let RowBuffer { dense, categories } = buffer;
        Rows {
            dense: dense.into(),
            categories: categories.into(),
            cardinalities: self.cardinalities.clone(),
            nonzeros: OnceLock::new(),
        }
    }

    /// Space for batches of up to this many rows.
    pub fn buffer(&self, n_rows: usize) -> RowBuffer {
        RowBuffer {
            dense: Array2::zeros((n_rows, self.n_dense())),
            categories: Array2::zeros((n_rows, self.n_fields())),
        }
    }
}

impl RowBuffer {
    /// The first rows.
    pub(crate) fn batch(&self, n_rows: usize) -> RowBatch<'_> {
        RowBatch {
            dense: self.dense.slice(s![..n_rows, ..]),
            categories: self.categories.slice(s![..n_rows, ..]),
        }
    }
}

impl RowBatch<'_> {
    /// How many rows the batch has.
    pub fn n_rows(&self) -> usize {
        self.dense.nrows()
    }
}

/// The number of rows as the type of row indices, whose last value stays free to mean "none".
pub(crate) fn row_count(n_rows: usize) -> Result<u32> {
    match u32::try_from(n_rows) {
        Ok(0) => Err(Error::NoRows),
        Ok(n_rows) if n_rows < u32::MAX => Ok(n_rows),
        _ => Err(Error::TooManyRows { n_rows, limit: u32::MAX as usize - 1 }),
    }
}

fn gather_lines<T: Copy>(from: &ArrayView2<T>, rows: &[u32], mut to: ArrayViewMut2<T>) {
    /// What is asked for ahead of the next line; the memory guesses the rest by itself.
    const AHEAD: usize = 256;
    for (place, (&row, mut line)) in rows.iter().zip(to.rows_mut()).enumerate() {
        if let Some(next) = rows.get(place + 1).and_then(|&next| from.row(next as usize).to_slice()) {
            prefetch(&next[..next.len().min(AHEAD)]);
        }
        let source = from.row(row as usize);
        match (source.to_slice(), line.as_slice_mut()) {
            (Some(source), Some(line)) => line.copy_from_slice(source),
            _ => line.assign(&source),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn refuses_what_is_not_finite_and_says_where() {
        let error = Rows::dense(array![[0.0_f32, 1.0], [2.0, f32::INFINITY]]).unwrap_err();
        assert_eq!(error, Error::FeatureNotFinite { row: 1, column: 1, value: f32::INFINITY });
        assert_eq!(error.to_string(), "row index 1 has inf in dense column index 1: features must be finite");
    }

    #[test]
    fn refuses_categories_beyond_their_cardinality() {
        let error = Rows::new(array![[0.0_f32], [1.0]], array![[0, 2], [1, 3]], vec![2, 3]).unwrap_err();
        assert_eq!(error, Error::CategoryOutOfRange { row: 1, field: 1, id: 3, cardinality: 3 });
    }

    #[test]
    fn refuses_nothing_at_all() {
        assert_eq!(Rows::dense(Array2::<f32>::zeros((0, 3))).unwrap_err(), Error::NoRows);
        assert_eq!(Rows::dense(Array2::<f32>::zeros((3, 0))).unwrap_err(), Error::NoFeatures);
    }

    #[test]
    fn selects_rows_with_all_they_have() {
        let rows =
            Rows::new(array![[0.0_f32], [1.0], [2.0]], array![[0, 2], [1, 1], [0, 0]], vec![2, 3]).unwrap();
        let some = rows.select(&[2, 0]);
        assert_eq!((some.n_rows(), some.cardinalities()), (2, &[2, 3][..]));
        let batch = some.batch(0..2);
        assert_eq!(
            (batch.dense, batch.categories),
            (array![[2.0_f32], [0.0]].view(), array![[0, 0], [0, 2]].view())
        );
    }

    #[test]
    fn rows_have_the_same_hash_if_they_have_the_same_features() {
        let dense = array![[0.0_f32, 1.0], [-0.0, 1.0], [1.0, 0.0], [0.0, 1.0]];
        let rows = Rows::new(dense, array![[1], [1], [1], [0]], vec![2]).unwrap();
        let hashes = rows.hashes();
        assert_eq!(hashes[0], hashes[1]);
        assert!(hashes[0] != hashes[2] && hashes[0] != hashes[3] && hashes[2] != hashes[3]);
    }

    #[test]
    fn gathers_in_the_order_asked_for_whatever_the_layout() {
        let by_columns = array![[0.0_f32, 1.0, 2.0], [10.0, 11.0, 12.0]].reversed_axes();
        let rows = Rows::new(by_columns.view(), array![[0], [1], [2]], vec![3]).unwrap();
        let mut buffer = rows.buffer(4);
        let batch = rows.gather(&[2, 0], &mut buffer);
        assert_eq!(batch.dense, array![[2.0, 12.0], [0.0, 10.0]]);
        assert_eq!(batch.categories, array![[2], [0]]);
    }
}
