//! Sparse features: categories, or the columns of a sparse matrix. Each one that occurs gets an
//! index.

use super::fields::FieldColumns;
use super::matrix::MatrixColumns;
use super::sums::{Lines, Place};
use crate::rows::Rows;

/// The index of a column that does not occur.
pub(crate) const NOT_NUMBERED: u32 = u32::MAX;

/// The columns of the rows that are trained on.
pub(crate) enum Columns<'o> {
    Fields { columns: FieldColumns, cardinalities: &'o [u32] },
    Matrix(MatrixColumns<'o>),
}

impl<'o> Columns<'o> {
    /// Those of the named rows, in that order.
    pub(crate) fn new(rows: &'o Rows, members: &[u32], n_scores: usize) -> Self {
        if let Some(matrix) = rows.as_sparse() {
            return Self::Matrix(MatrixColumns::new(matrix, members, n_scores));
        }
        let columns = FieldColumns::new(rows.categories(), rows.cardinalities(), members, n_scores);
        Self::Fields { columns, cardinalities: rows.cardinalities() }
    }

    /// Which lines of the model they are.
    pub(crate) fn lines(&self) -> Lines {
        match self {
            Self::Fields { cardinalities, .. } => Lines::Categories(cardinalities.iter().sum()),
            Self::Matrix(columns) => {
                Lines::Columns(u32::try_from(columns.n_columns()).expect("columns are counted by u32"))
            }
        }
    }

    /// What is known of each place, in order.
    pub(crate) fn places(&self) -> Box<dyn Iterator<Item = Place> + '_> {
        match self {
            Self::Fields { columns, cardinalities } => {
                let line = |(line, count)| Place { line, count: u64::from(count), squares: f64::from(count) };
                Box::new(columns.lines(cardinalities).map(line))
            }
            Self::Matrix(columns) => {
                let line = |(line, count, squares)| Place { line, count, squares };
                Box::new(columns.lines().map(line))
            }
        }
    }

    /// Makes an evaluation with these weights possible, a line per place.
    pub(crate) fn set_weights(&mut self, table: &[f64], n_scores: usize) {
        if let Self::Matrix(columns) = self {
            columns.set_weights(table, n_scores);
        }
    }

    /// Adds to the scores of consecutive members, the same weights that were set.
    pub(crate) fn add_scores(&self, first: usize, table: &[f64], n_scores: usize, scores: &mut [f64]) {
        match self {
            Self::Fields { columns, .. } => columns.add_scores(first, table, n_scores, scores),
            Self::Matrix(columns) => columns.add_scores(first, n_scores, scores),
        }
    }

    /// Writes the gradient of all weights, from the slopes of the loss in the scores of all members.
    pub(crate) fn gradient(&mut self, slopes: &[f64], n_scores: usize, gradient: &mut [f64]) {
        match self {
            Self::Fields { columns, .. } => columns.gradient(slopes, n_scores, gradient),
            Self::Matrix(columns) => columns.gradient(slopes, n_scores, gradient),
        }
    }

    /// Calls `each` with the places' numbers that a member has, and what it has there.
    pub(crate) fn numbered(&self, numbers: &Numbers, member: usize, mut each: impl FnMut(usize, f32)) {
        match self {
            Self::Fields { columns, .. } => columns.numbered(&numbers.0, member, |number| each(number, 1.0)),
            Self::Matrix(columns) => columns.numbered(&numbers.0, member, each),
        }
    }

    /// Numbers some lines of the model, given in order, from 0. `places` are those of all lines here; one that does not occur here
    /// has no place.
    pub(crate) fn numbers(&self, numbered: &[u32], places: &[Place]) -> Numbers {
        // A row of a matrix names columns, one of a field places.
        let (length, by_line) = match self {
            Self::Fields { .. } => (places.len(), false),
            Self::Matrix(columns) => (columns.n_columns(), true),
        };
        let mut numbers = vec![NOT_NUMBERED; length];
        for (number, &line) in (0..).zip(numbered) {
            if let Ok(place) = places.binary_search_by_key(&line, |place| place.line) {
                numbers[if by_line { line as usize } else { place }] = number;
            }
        }
        Numbers(numbers)
    }
}

/// What [`Columns::numbers`] gives.
pub(crate) struct Numbers(Vec<u32>);
