//! Mergeable sums over parts of the rows: in any order and for any split of the rows.

use super::columns::Columns;
use crate::error::{Error, Result, check_length};
use ndarray::Array2;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// Sums of features and targets: the number of rows, the sums of targets, and how often each
/// category or sparse column occurs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FeatureSums {
    pub(super) n_rows: u64,
    pub(super) n_dense: usize,
    pub(super) lines: Lines,
    /// The sum of the targets of each score.
    pub(super) targets: Vec<f64>,
    /// The lines that occur, ascending.
    pub(super) places: Vec<Place>,
}

/// The index of the model's block with a line per sparse feature, and its number of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Lines {
    Categories(u32),
    Columns(u32),
}

/// A line that occurs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Place {
    /// The line of the model's block.
    pub(crate) line: u32,
    /// The number of rows with it.
    pub(crate) count: u64,
    /// The sum of its squared values; a category counts as 1.
    pub(crate) squares: f64,
}

impl FeatureSums {
    pub(super) fn new(n_dense: usize, n_scores: usize, targets: &[f32], columns: &Columns) -> Self {
        let mut sums = vec![0.0; n_scores];
        for targets in targets.chunks_exact(n_scores) {
            sums.iter_mut().zip(targets).for_each(|(sum, target)| *sum += f64::from(*target));
        }
        Self {
            n_rows: (targets.len() / n_scores) as u64,
            n_dense,
            lines: columns.lines(),
            targets: sums,
            places: columns.places().collect(),
        }
    }

    /// The number of rows.
    pub fn n_rows(&self) -> u64 {
        self.n_rows
    }

    /// Adds the sums of other rows.
    pub fn merge(&mut self, other: Self) -> Result<()> {
        let shape = |sums: &Self| (sums.n_dense, sums.lines, sums.targets.len());
        if shape(self) != shape(&other) {
            return Err(Error::PartsDiffer { what: "features" });
        }
        self.n_rows += other.n_rows;
        add(&mut self.targets, &other.targets);
        let (one, other) = (std::mem::take(&mut self.places), other.places);
        self.places = merged(
            one,
            other,
            |place| place.line,
            |place, other| {
                place.count += other.count;
                place.squares += other.squares;
            },
        );
        Ok(())
    }

    pub(super) fn n_scores(&self) -> usize {
        self.targets.len()
    }

    /// The mean target of each score.
    pub(super) fn mean_targets(&self) -> Vec<f64> {
        self.targets.iter().map(|sum| sum / self.n_rows as f64).collect()
    }

    /// The length of a point that holds the parameters of all lines.
    pub(super) fn n_parameters(&self) -> usize {
        (self.n_dense + 1 + self.lines.n_lines()) * self.n_scores()
    }

    /// The offsets of dense weights, intercepts and lines in such a point, which has the layout of
    /// the model's blocks.
    pub(super) fn starts(&self) -> [usize; 3] {
        let n_scores = self.n_scores();
        match self.lines {
            Lines::Categories(_) => [0, self.n_dense, self.n_dense + 1].map(|place| place * n_scores),
            Lines::Columns(n) => [n as usize, n as usize, 0].map(|place| place * n_scores),
        }
    }
}

impl Lines {
    pub(super) fn n_lines(self) -> usize {
        match self {
            Self::Categories(n) | Self::Columns(n) => n as usize,
        }
    }
}

/// The sum of the rows' losses at a model's parameters, and its gradient.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinearSums {
    pub(super) n_rows: u64,
    pub(super) loss: f64,
    /// The gradient of dense weights and intercepts.
    pub(super) dense: Vec<f64>,
    /// The lines that occur, ascending.
    pub(super) lines: Vec<u32>,
    /// Their gradients, one after the other.
    pub(super) of_lines: Vec<f64>,
}

impl LinearSums {
    /// The number of rows.
    pub fn n_rows(&self) -> u64 {
        self.n_rows
    }

    /// The sum of the rows' losses.
    pub fn loss(&self) -> f64 {
        self.loss
    }

    /// Adds the sums of other rows at the same parameters.
    pub fn merge(&mut self, other: Self) -> Result<()> {
        let same_shape = self.dense.len() == other.dense.len();
        let (Some(width), Some(other_width)) = (self.width(), other.width()) else {
            return Err(Error::PartsDiffer { what: "gradients" });
        };
        let no_lines = self.lines.is_empty() || other.lines.is_empty();
        if !same_shape || !(no_lines || width == other_width) {
            return Err(Error::PartsDiffer { what: "gradients" });
        }
        self.n_rows += other.n_rows;
        self.loss += other.loss;
        add(&mut self.dense, &other.dense);
        if self.lines == other.lines {
            add(&mut self.of_lines, &other.of_lines);
            return Ok(());
        }
        let width = width.max(other_width);
        let one = self.lines.iter().copied().zip(self.of_lines.chunks_exact(width));
        let other = other.lines.iter().copied().zip(other.of_lines.chunks_exact(width));
        let own = |(line, gradient): (u32, &[f64])| (line, gradient.to_vec());
        let both = merged(
            one.map(own).collect(),
            other.map(own).collect(),
            |(line, _)| *line,
            |(_, sum), (_, gradient)| add(sum, &gradient),
        );
        self.lines = both.iter().map(|(line, _)| *line).collect();
        self.of_lines = both.into_iter().flat_map(|(_, gradient)| gradient).collect();
        Ok(())
    }

    /// Splits numbers into lines of equal length, at least 1; nothing if the lengths do not match.
    fn width(&self) -> Option<usize> {
        let n_lines = self.lines.len().max(1);
        self.of_lines.len().is_multiple_of(n_lines).then(|| (self.of_lines.len() / n_lines).max(1))
    }
}

/// The sample for the products of features: which rows, and which lines in addition to dense
/// features and the intercept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GramSample {
    /// Every n-th row is in the sample.
    pub(super) every: usize,
    /// The most frequent lines, ascending.
    pub(super) lines: Vec<u32>,
}

/// The products of features in the rows of a [`GramSample`]: X'X.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GramSums {
    pub(super) n_rows: u64,
    pub(super) n_features: usize,
    /// Stored by rows.
    pub(super) products: Vec<f64>,
}

impl GramSums {
    pub(super) fn zeros(n_features: usize) -> Self {
        Self { n_rows: 0, n_features, products: vec![0.0; n_features * n_features] }
    }

    pub(super) fn add(&mut self, n_rows: usize, products: &Array2<f32>) {
        self.n_rows += n_rows as u64;
        self.products.iter_mut().zip(products).for_each(|(sum, product)| *sum += f64::from(*product));
    }

    /// Adds the sums of other rows of the same sample.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        check_length("features", self.n_features, other.n_features)?;
        check_length("products of features", self.products.len(), other.products.len())?;
        self.n_rows += other.n_rows;
        add(&mut self.products, &other.products);
        Ok(())
    }
}

fn add(sums: &mut [f64], terms: &[f64]) {
    sums.iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
}

/// Merges two lists that are sorted by key, joining equal keys.
fn merged<T>(one: Vec<T>, other: Vec<T>, key: impl Fn(&T) -> u32, join: impl Fn(&mut T, T)) -> Vec<T> {
    let mut all = Vec::with_capacity(one.len().max(other.len()));
    let (mut one, mut other) = (one.into_iter().peekable(), other.into_iter().peekable());
    loop {
        let order = match (one.peek(), other.peek()) {
            (Some(first), Some(second)) => key(first).cmp(&key(second)),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => return all,
        };
        let mut next = if order.is_gt() { other.next() } else { one.next() }.expect("a list that goes on");
        if let (true, Some(same)) = (order.is_eq(), order.is_eq().then(|| other.next()).flatten()) {
            join(&mut next, same);
        }
        all.push(next);
    }
}
