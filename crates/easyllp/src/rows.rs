//! Features of rows, dense, categorical or sparse, in the caller's order.
//!
//! Rows do not depend on bags or labels. Bags hold row indices, so rows are never copied to group
//! them.

mod csr;

pub use csr::Csr;

use crate::error::{Error, Result, check_length};
use crate::kernel::{NonZeros, prefetch};
use ndarray::{Array2, ArrayView2, ArrayViewMut2, CowArray, Ix2, s};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::OnceLock;
use xxhash_rust::xxh3::xxh3_64;

/// Minimum number of rows per thread when rows are checked.
const CHECKED_AT_ONCE: usize = 4096;

/// Dense features get a sparse copy if at most this share of them is not zero.
const FEW: f64 = 0.3;

/// Features of N rows: a dense `f32` matrix and categorical ids, either of which may have no
/// columns; or a [sparse](Csr) matrix.
///
/// Arrays of the caller are borrowed where possible. Dense features must be finite, and ids in
/// field `f` must be below `cardinalities()[f]`; both are checked at construction.
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
    numbers: Numbers<'a>,
    categories: CowArray<'a, u32, Ix2>,
    cardinalities: Vec<u32>,
    nonzeros: OnceLock<Option<NonZeros>>,
}

/// Numeric features.
#[derive(Debug, Clone)]
enum Numbers<'a> {
    Dense(CowArray<'a, f32, Ix2>),
    Sparse(Csr<'a>),
}

/// Rows with dense numeric features, borrowed from [`Rows`] that are not sparse. Most models and
/// methods require them.
///
/// ```
/// use easyllp::{Rows, rows::Csr};
///
/// let sparse = Rows::sparse(Csr::new(9, vec![0, 1], vec![3], vec![0.5])?);
/// let refused = sparse.dense_only("my model").unwrap_err();
/// assert!(refused.to_string().starts_with("my model does not support sparse rows"));
/// # Ok::<(), easyllp::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct DenseRows<'r> {
    dense: ArrayView2<'r, f32>,
    categories: ArrayView2<'r, u32>,
    nonzeros: Option<&'r OnceLock<Option<NonZeros>>>,
}

/// The features of a few rows, contiguous, as a model reads them.
#[derive(Debug, Clone, Copy)]
pub struct RowBatch<'b> {
    /// One line per row, one column per dense feature.
    pub dense: ArrayView2<'b, f32>,
    /// One line per row, one column per categorical field.
    pub categories: ArrayView2<'b, u32>,
}

/// A buffer for gathered rows, reused from batch to batch.
#[derive(Debug, Clone, Default)]
pub struct RowBuffer {
    dense: Array2<f32>,
    categories: Array2<u32>,
}

impl<'a> Rows<'a> {
    /// Creates rows with dense features only: N × D.
    pub fn dense(dense: impl Into<CowArray<'a, f32, Ix2>>) -> Result<Self> {
        let dense = dense.into();
        let categories = CowArray::from(Array2::zeros((dense.nrows(), 0)));
        Self::new(dense, categories, Vec::new())
    }

    /// Creates rows with dense features (N × D) and categories (N × F); field `f` has ids below
    /// `cardinalities[f]`.
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
            None => Ok(Self::of(Numbers::Dense(dense), categories, cardinalities)),
        }
    }

    /// Creates rows without the checks of [`new`](Self::new), which the caller guarantees.
    pub(crate) fn checked(dense: Array2<f32>, categories: Array2<u32>, cardinalities: Vec<u32>) -> Self {
        debug_assert!(Rows::new(dense.view(), categories.view(), cardinalities.clone()).is_ok());
        Rows::of(Numbers::Dense(dense.into()), categories.into(), cardinalities)
    }

    /// Creates rows from a sparse matrix, without categories. Linear models are trained on them
    /// with L-BFGS, in time proportional to the stored values.
    pub fn sparse(matrix: Csr<'a>) -> Self {
        let categories = Array2::zeros((matrix.n_rows(), 0)).into();
        Self::of(Numbers::Sparse(matrix), categories, Vec::new())
    }

    fn of(numbers: Numbers<'a>, categories: CowArray<'a, u32, Ix2>, cardinalities: Vec<u32>) -> Self {
        Self { numbers, categories, cardinalities, nonzeros: OnceLock::new() }
    }

    /// The number of rows, N; at least 1.
    pub fn n_rows(&self) -> usize {
        self.categories.nrows()
    }

    /// The number of numeric features: the columns of the dense or sparse matrix.
    pub fn n_dense(&self) -> usize {
        match &self.numbers {
            Numbers::Dense(dense) => dense.ncols(),
            Numbers::Sparse(matrix) => matrix.n_columns(),
        }
    }

    /// The number of categorical fields.
    pub fn n_fields(&self) -> usize {
        self.categories.ncols()
    }

    /// The number of categories of each field: ids are below it.
    pub fn cardinalities(&self) -> &[u32] {
        &self.cardinalities
    }

    /// A hash of each row's features, the same on every machine. It covers the numeric features
    /// that are not zero, with their columns, and all categories. Sparse rows have the hashes of
    /// their dense form.
    pub fn hashes(&self) -> Vec<u64> {
        let rows = (0..self.n_rows()).into_par_iter().with_min_len(CHECKED_AT_ONCE);
        rows.map_init(
            || (Vec::new(), Vec::new()),
            |(numbers, bytes): &mut (Vec<(u32, f32)>, Vec<u8>), row| {
                numbers.clear();
                match &self.numbers {
                    Numbers::Dense(dense) => numbers.extend((0..).zip(dense.row(row).iter().copied())),
                    Numbers::Sparse(matrix) => matrix.write_sorted(row, numbers),
                }
                bytes.clear();
                for (column, value) in numbers.iter().filter(|(_, value)| value.abs() > 0.0) {
                    bytes.extend(column.to_le_bytes());
                    bytes.extend(value.to_le_bytes());
                }
                bytes.extend(self.categories.row(row).iter().flat_map(|category| category.to_le_bytes()));
                xxh3_64(bytes)
            },
        )
        .collect()
    }

    /// The categories: N × F.
    pub(crate) fn categories(&self) -> ArrayView2<'_, u32> {
        self.categories.view()
    }

    /// The rows as dense rows; if they are sparse, an error that names what does not support them.
    pub fn dense_only(&self, what: &'static str) -> Result<DenseRows<'_>> {
        self.as_dense().ok_or(Error::SparseRows { what })
    }

    /// The rows as dense rows, if they are not sparse.
    pub fn as_dense(&self) -> Option<DenseRows<'_>> {
        match &self.numbers {
            Numbers::Dense(dense) => {
                let (dense, categories) = (dense.view(), self.categories.view());
                Some(DenseRows { dense, categories, nonzeros: Some(&self.nonzeros) })
            }
            Numbers::Sparse(_) => None,
        }
    }

    /// The matrix of sparse rows.
    pub fn as_sparse(&self) -> Option<&Csr<'a>> {
        match &self.numbers {
            Numbers::Dense(_) => None,
            Numbers::Sparse(matrix) => Some(matrix),
        }
    }

    /// Everything but the sparse matrix: sparse rows become rows without numeric features.
    pub(crate) fn dense_part(&self) -> DenseRows<'_> {
        self.as_dense().unwrap_or_else(|| DenseRows {
            dense: ArrayView2::from_shape((self.n_rows(), 0), &[]).expect("no numbers"),
            categories: self.categories.view(),
            nonzeros: None,
        })
    }

    /// A copy of the selected rows, at least one, in that order.
    pub fn select(&self, rows: &[u32]) -> Rows<'static> {
        let mut buffer = self.dense_part().buffer(rows.len());
        self.dense_part().gather(rows, &mut buffer);
        let RowBuffer { dense, categories } = buffer;
        let numbers = match &self.numbers {
            Numbers::Dense(_) => Numbers::Dense(dense.into()),
            Numbers::Sparse(matrix) => Numbers::Sparse(matrix.select(rows)),
        };
        Rows::of(numbers, categories.into(), self.cardinalities.clone())
    }
}

impl<'r> DenseRows<'r> {
    /// The number of rows, N; at least 1.
    pub fn n_rows(self) -> usize {
        self.categories.nrows()
    }

    /// The number of dense features.
    pub fn n_dense(self) -> usize {
        self.dense.ncols()
    }

    /// All rows, without copying.
    pub fn all(self) -> RowBatch<'r> {
        RowBatch { dense: self.dense, categories: self.categories }
    }

    /// Consecutive rows, without copying.
    pub fn batch(self, range: Range<usize>) -> RowBatch<'r> {
        RowBatch {
            dense: self.dense.slice_move(s![range.clone(), ..]),
            categories: self.categories.slice_move(s![range, ..]),
        }
    }

    /// Copies the selected rows, in that order, to the front of the buffer.
    pub fn gather<'b>(self, rows: &[u32], buffer: &'b mut RowBuffer) -> RowBatch<'b> {
        if self.dense.ncols() > 0 {
            gather_lines(&self.dense, rows, buffer.dense.view_mut());
        }
        if self.categories.ncols() > 0 {
            gather_lines(&self.categories, rows, buffer.categories.view_mut());
        }
        buffer.batch(rows.len())
    }

    /// The selected rows, in that order, contiguous; copied to the buffer only if needed.
    pub(crate) fn at<'b>(self, rows: &[u32], buffer: &'b mut RowBuffer) -> RowBatch<'b>
    where
        'r: 'b,
    {
        let is_stretch = rows.windows(2).all(|pair| pair[0] + 1 == pair[1]);
        match rows.first() {
            Some(&first) if is_stretch && self.dense.is_standard_layout() => {
                let batch = self.batch(first as usize..first as usize + rows.len());
                RowBatch { dense: batch.dense.reborrow(), categories: batch.categories.reborrow() }
            }
            _ => self.gather(rows, buffer),
        }
    }

    /// Copies the dense features of the selected rows, in that order.
    pub(crate) fn gather_dense(self, rows: &[u32], to: ArrayViewMut2<f32>) {
        gather_lines(&self.dense, rows, to);
    }

    /// A sparse copy of the dense features, if few are not zero; made on first use.
    pub(crate) fn nonzeros(self) -> Option<&'r NonZeros> {
        self.nonzeros?.get_or_init(|| NonZeros::at_most(FEW, self.dense)).as_ref()
    }

    /// Allocates a buffer for batches of up to this many rows.
    pub fn buffer(self, n_rows: usize) -> RowBuffer {
        RowBuffer {
            dense: Array2::zeros((n_rows, self.dense.ncols())),
            categories: Array2::zeros((n_rows, self.categories.ncols())),
        }
    }
}

impl RowBuffer {
    /// Whether the buffer is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.dense.nrows() == 0
    }

    /// The first rows.
    pub(crate) fn batch(&self, n_rows: usize) -> RowBatch<'_> {
        RowBatch {
            dense: self.dense.slice(s![..n_rows, ..]),
            categories: self.categories.slice(s![..n_rows, ..]),
        }
    }
}

impl RowBatch<'_> {
    /// The number of rows of the batch.
    pub fn n_rows(&self) -> usize {
        self.dense.nrows()
    }
}

/// The number of rows as the type of row indices; the largest value is reserved for "none".
pub(crate) fn row_count(n_rows: usize) -> Result<u32> {
    match u32::try_from(n_rows) {
        Ok(0) => Err(Error::NoRows),
        Ok(n_rows) if n_rows < u32::MAX => Ok(n_rows),
        _ => Err(Error::TooManyRows { n_rows, limit: u32::MAX as usize - 1 }),
    }
}

fn gather_lines<T: Copy>(from: &ArrayView2<T>, rows: &[u32], mut to: ArrayViewMut2<T>) {
    /// The values to prefetch of the next line; the hardware prefetches the rest.
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
        let batch = some.as_dense().unwrap().batch(0..2);
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
        // In no order, in two parts, and with zeros that are stored.
        let sparse = Csr::new(3, vec![0, 4, 5], vec![2, 0, 1, 2, 1], vec![0.5, 4.0, 0.0, 0.25, 3.0]).unwrap();
        let dense = Rows::dense(array![[4.0_f32, 0.0, 0.75], [0.0, 3.0, 0.0]]).unwrap();
        assert_eq!(Rows::sparse(sparse).hashes(), dense.hashes());
    }

    #[test]
    fn gathers_in_the_order_asked_for_whatever_the_layout() {
        let by_columns = array![[0.0_f32, 1.0, 2.0], [10.0, 11.0, 12.0]].reversed_axes();
        let rows = Rows::new(by_columns.view(), array![[0], [1], [2]], vec![3]).unwrap();
        let mut buffer = rows.as_dense().unwrap().buffer(4);
        let batch = rows.as_dense().unwrap().gather(&[2, 0], &mut buffer);
        assert_eq!(batch.dense, array![[2.0, 12.0], [0.0, 10.0]]);
        assert_eq!(batch.categories, array![[2], [0]]);
    }
}
