//! A sparse matrix by rows.

use crate::error::{Error, Result, check_length};
use crate::rows::row_count;
use rayon::prelude::*;
use std::borrow::Cow;
use std::ops::Range;

/// Minimum number of rows per thread when a matrix is checked.
const CHECKED_AT_ONCE: usize = 4096;

/// A sparse matrix in compressed sparse row (CSR) format: for each row, the columns with non-zero
/// values, and these values.
///
/// Columns of a row may be in any order; values of the same column are added. Slices of the caller
/// are borrowed where possible. Everything is checked at construction.
///
/// ```
/// use easyllp::{Rows, rows::Csr};
///
/// // Row 0 has 0.5 in column 3; row 1 is all zeros; row 2 has two numbers.
/// let matrix = Csr::new(100_000, vec![0, 1, 1, 3], vec![3, 7, 99_999], vec![0.5, 1.0, -2.0])?;
/// let rows = Rows::sparse(matrix);
/// assert_eq!((rows.n_rows(), rows.n_dense()), (3, 100_000));
/// # Ok::<(), easyllp::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Csr<'a> {
    n_columns: usize,
    starts: Vec<usize>,
    columns: Cow<'a, [u32]>,
    values: Cow<'a, [f32]>,
}

impl<'a> Csr<'a> {
    /// The values of row `r` are those from `starts[r]` to before `starts[r + 1]`; `columns` has
    /// their columns.
    pub fn new(
        n_columns: usize,
        starts: Vec<usize>,
        columns: impl Into<Cow<'a, [u32]>>,
        values: impl Into<Cow<'a, [f32]>>,
    ) -> Result<Self> {
        let (columns, values) = (columns.into(), values.into());
        row_count(starts.len().saturating_sub(1))?;
        if n_columns == 0 {
            return Err(Error::NoFeatures);
        }
        check_length("columns of a sparse matrix, one a number", values.len(), columns.len())?;
        let n_values = values.len();
        let ends = starts.iter().skip(1);
        let is_wrong = |(&start, &end): (&usize, &usize)| start > end || end > n_values;
        if let Some(row) = starts.iter().zip(ends).position(is_wrong) {
            return Err(Error::SparseRow { row, start: starts[row], end: starts[row + 1], n_values });
        }
        let in_rows = starts[starts.len() - 1] - starts[0];
        check_length("numbers in the rows of a sparse matrix", n_values, in_rows)?;
        let matrix = Self { n_columns, starts, columns, values };
        let bad = (0..matrix.n_rows()).into_par_iter().with_min_len(CHECKED_AT_ONCE).find_map_first(|row| {
            let (columns, values) = matrix.row(row);
            // All at once first, which is fast: there is hardly ever one to look for.
            let is_column = |&column: &u32| (column as usize) < n_columns;
            if columns.iter().fold(true, |all, column| all & is_column(column))
                && values.iter().fold(true, |all, value| all & value.is_finite())
            {
                return None;
            }
            let column = columns.iter().copied().find(|column| !is_column(column));
            Some(column.map_or_else(
                || {
                    let place = values.iter().position(|value| !value.is_finite()).unwrap_or(0);
                    Error::FeatureNotFinite { row, column: columns[place] as usize, value: values[place] }
                },
                |column| Error::SparseColumn { row, column, n_columns },
            ))
        });
        bad.map_or(Ok(matrix), Err)
    }

    /// The number of rows.
    pub fn n_rows(&self) -> usize {
        self.starts.len() - 1
    }

    /// The number of columns.
    pub fn n_columns(&self) -> usize {
        self.n_columns
    }

    /// The number of stored values.
    pub fn n_values(&self) -> usize {
        self.values.len()
    }

    /// A row: its columns and its values.
    ///
    /// # Panics
    ///
    /// If there is no such row.
    pub fn row(&self, row: usize) -> (&[u32], &[f32]) {
        let range: Range<usize> = self.starts[row]..self.starts[row + 1];
        (&self.columns[range.clone()], &self.values[range])
    }

    /// The distinct columns of a row in order, each with the sum of its values.
    pub(crate) fn write_sorted(&self, row: usize, to: &mut Vec<(u32, f32)>) {
        let (columns, values) = self.row(row);
        to.extend(columns.iter().copied().zip(values.iter().copied()));
        to.sort_by_key(|&(column, _)| column);
        to.dedup_by(|next, first| {
            let is_same = next.0 == first.0;
            if is_same {
                first.1 += next.1;
            }
            is_same
        });
    }

    /// A copy of the selected rows, in that order.
    pub(crate) fn select(&self, rows: &[u32]) -> Csr<'static> {
        let n_values = rows.iter().map(|&row| self.row(row as usize).0.len()).sum();
        let (mut columns, mut values) = (Vec::with_capacity(n_values), Vec::with_capacity(n_values));
        let mut starts = Vec::with_capacity(rows.len() + 1);
        starts.push(0);
        for &row in rows {
            let (of_row, numbers) = self.row(row as usize);
            columns.extend_from_slice(of_row);
            values.extend_from_slice(numbers);
            starts.push(values.len());
        }
        Csr { n_columns: self.n_columns, starts, columns: columns.into(), values: values.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_what_is_no_matrix_and_says_where() {
        let error = |n_columns, starts: &[usize], columns: &[u32], values: &[f32]| {
            Csr::new(n_columns, starts.to_vec(), columns, values).unwrap_err()
        };
        assert_eq!(error(3, &[], &[], &[]), Error::NoRows);
        assert_eq!(error(3, &[0], &[], &[]), Error::NoRows);
        assert_eq!(error(0, &[0, 0], &[], &[]), Error::NoFeatures);
        assert!(matches!(error(3, &[0, 2], &[0, 1], &[1.0]), Error::Shape { expected: 1, got: 2, .. }));
        assert_eq!(
            error(3, &[0, 2, 1], &[0, 1], &[1.0, 2.0]),
            Error::SparseRow { row: 1, start: 2, end: 1, n_values: 2 }
        );
        assert_eq!(
            error(3, &[0, 9, 2], &[0, 1], &[1.0, 2.0]),
            Error::SparseRow { row: 0, start: 0, end: 9, n_values: 2 }
        );
        assert!(matches!(error(3, &[0, 1], &[0, 1], &[1.0, 2.0]), Error::Shape { expected: 2, got: 1, .. }));
        assert!(matches!(error(3, &[1, 2], &[0, 1], &[1.0, 2.0]), Error::Shape { expected: 2, got: 1, .. }));
        assert_eq!(
            error(3, &[0, 1, 2], &[0, 3], &[1.0, 2.0]),
            Error::SparseColumn { row: 1, column: 3, n_columns: 3 }
        );
        assert_eq!(
            error(3, &[0, 1, 2], &[0, 2], &[1.0, f32::INFINITY]),
            Error::FeatureNotFinite { row: 1, column: 2, value: f32::INFINITY }
        );
    }

    #[test]
    fn selects_rows() {
        let matrix = Csr::new(5, vec![0, 2, 2, 3], vec![4, 1, 0], vec![1.0, 2.0, 3.0]).unwrap();
        let some = matrix.select(&[2, 1, 0, 2]);
        assert_eq!((some.n_rows(), some.n_columns(), some.n_values()), (4, 5, 4));
        assert_eq!(some.row(0), (&[0][..], &[3.0][..]));
        assert_eq!(some.row(1), (&[][..], &[][..]));
        assert_eq!(some.row(2), (&[4, 1][..], &[1.0, 2.0][..]));
    }
}
