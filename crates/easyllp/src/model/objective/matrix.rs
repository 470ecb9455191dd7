//! The columns of a sparse matrix that occur in the rows, and a transpose for gradients.
//!
//! Scores read the matrix by rows. The gradient of a column is a sum over its rows, always in the
//! same order, so threads can share columns without changing a byte.

use crate::rows::Csr;
use rayon::prelude::*;
use std::ops::Range;

/// A sparse matrix, by its columns.
pub(crate) struct MatrixColumns<'m> {
    matrix: &'m Csr<'m>,
    members: Vec<u32>,
    /// The columns that occur, ascending: those in places.
    columns: Vec<u32>,
    /// Where the numbers of each place start, and where the last ones end.
    starts: Vec<usize>,
    /// Of each number the member that has it, by its place among all.
    rows: Vec<u32>,
    values: Vec<f32>,
    /// Places with about the same number of numbers.
    shares: Vec<Range<usize>>,
    /// The weights of all columns; zeros where a column does not occur.
    weights: Vec<f64>,
}

impl<'m> MatrixColumns<'m> {
    /// Those of the named rows, in that order.
    pub(crate) fn new(matrix: &'m Csr<'m>, members: &[u32], n_scores: usize) -> Self {
        let mut counts = vec![0_usize; matrix.n_columns()];
        for &row in members {
            matrix.row(row as usize).0.iter().for_each(|&column| counts[column as usize] += 1);
        }
        let (mut columns, mut starts, mut n_values) = (Vec::new(), Vec::new(), 0);
        // Of each column where its next number goes, where its count was.
        for (column, next) in (0..).zip(&mut counts).filter(|(_, count)| **count > 0) {
            columns.push(column);
            starts.push(n_values);
            n_values += std::mem::replace(next, n_values);
        }
        starts.push(n_values);
        let (mut rows, mut values) = (vec![0; n_values], vec![0.0; n_values]);
        for (place, &row) in (0..).zip(members) {
            let (of_row, numbers) = matrix.row(row as usize);
            for (&column, &value) in of_row.iter().zip(numbers) {
                let next = &mut counts[column as usize];
                (rows[*next], values[*next]) = (place, value);
                *next += 1;
            }
        }
        let shares = shares(&starts);
        let weights = vec![0.0; matrix.n_columns() * n_scores];
        Self { matrix, members: members.to_vec(), columns, starts, rows, values, shares, weights }
    }

    /// The columns in the order of places, in how many rows each has a number, and the squares of these in sum.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (u32, u64, f64)> + '_ {
        self.columns.iter().zip(self.starts.windows(2)).map(|(&column, ends)| {
            let values = &self.values[ends[0]..ends[1]];
            let squares = values.iter().map(|&value| f64::from(value).powi(2)).sum();
            (column, values.len() as u64, squares)
        })
    }

    /// Takes the weights of an evaluation: one line per place.
    pub(crate) fn set_weights(&mut self, table: &[f64], n_scores: usize) {
        for (&column, of_place) in self.columns.iter().zip(table.chunks_exact(n_scores)) {
            self.weights[column as usize * n_scores..][..n_scores].copy_from_slice(of_place);
        }
    }

    /// Adds to the scores of consecutive members.
    pub(crate) fn add_scores(&self, first: usize, n_scores: usize, scores: &mut [f64]) {
        let members = self.members[first..].iter();
        for (&row, scores) in members.zip(scores.chunks_exact_mut(n_scores)) {
            let (columns, values) = self.matrix.row(row as usize);
            let numbers =
                columns.iter().zip(values).map(|(&column, &value)| (column as usize, f64::from(value)));
            if let [score] = scores {
                *score += numbers.map(|(column, value)| value * self.weights[column]).sum::<f64>();
                continue;
            }
            for (column, value) in numbers {
                let weights = &self.weights[column * n_scores..][..n_scores];
                scores.iter_mut().zip(weights).for_each(|(score, weight)| *score += value * weight);
            }
        }
    }

    /// Writes the gradient of all weights, from the slopes of the loss in the scores of all members.
    pub(crate) fn gradient(&self, slopes: &[f64], n_scores: usize, gradient: &mut [f64]) {
        let mut rest = gradient;
        let mut of_shares = Vec::with_capacity(self.shares.len());
        for share in &self.shares {
            let of_share;
            (of_share, rest) = rest.split_at_mut(share.len() * n_scores);
            of_shares.push((share.clone(), of_share));
        }
        of_shares.into_par_iter().for_each(|(share, gradient)| {
            for (place, sums) in share.zip(gradient.chunks_exact_mut(n_scores)) {
                let range = self.starts[place]..self.starts[place + 1];
                let (rows, values) = (&self.rows[range.clone()], &self.values[range]);
                if let [sum] = sums {
                    *sum = weighed_sum(rows, values, slopes);
                    continue;
                }
                sums.fill(0.0);
                for (&row, &value) in rows.iter().zip(values) {
                    let slopes = &slopes[row as usize * n_scores..][..n_scores];
                    sums.iter_mut().zip(slopes).for_each(|(sum, slope)| *sum += f64::from(value) * slope);
                }
            }
        });
    }

    /// Calls `each` with the numbers of a member's columns, given that of each column, and their values; those that have none are
    /// passed over.
    pub(crate) fn numbered(&self, number_of: &[u32], member: usize, mut each: impl FnMut(usize, f32)) {
        let (columns, values) = self.matrix.row(self.members[member] as usize);
        for (&column, &value) in columns.iter().zip(values) {
            let number = number_of[column as usize];
            if number != super::NOT_NUMBERED {
                each(number as usize, value);
            }
        }
    }

    /// How many columns the matrix has, whether they occur or not.
    pub(crate) fn n_columns(&self) -> usize {
        self.matrix.n_columns()
    }
}

/// Σ value · slope, in sums that run side by side.
fn weighed_sum(rows: &[u32], values: &[f32], slopes: &[f64]) -> f64 {
    const LANES: usize = 4;
    let (fours, last_rows) = rows.as_chunks::<LANES>();
    let (values, last_values) = values.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for (rows, values) in fours.iter().zip(values) {
        for lane in 0..LANES {
            sums[lane] += f64::from(values[lane]) * slopes[rows[lane] as usize];
        }
    }
    let last =
        last_rows.iter().zip(last_values).map(|(&row, &value)| f64::from(value) * slopes[row as usize]);
    sums.iter().sum::<f64>() + last.sum::<f64>()
}

/// Cuts places into stretches of about as many numbers each; how many does not depend on the threads.
fn shares(starts: &[usize]) -> Vec<Range<usize>> {
    const NUMBERS: usize = 1 << 15;
    let n_places = starts.len() - 1;
    let mut shares = Vec::new();
    let mut first = 0;
    while first < n_places {
        let end = starts[first..].partition_point(|&start| start < starts[first] + NUMBERS);
        let end = (first + end).clamp(first + 1, n_places);
        shares.push(first..end);
        first = end;
    }
    shares
}
