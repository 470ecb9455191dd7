//! EVALUATE: what a model says of each row, as evaluation reads it.

use crate::bags::Bags;
use crate::classes::n_classes;
use crate::error::{Error, Result, check_length};
use crate::loss::Link;
use ndarray::ArrayView2;

/// Scores of all rows of a table, in row order, and what they mean.
#[derive(Debug, Clone, Copy)]
pub struct Predictions<'s> {
    scores: ArrayView2<'s, f32>,
    link: Link,
}

impl<'s> Predictions<'s> {
    /// Finite scores, a line a row; one column for two classes, else one a class.
    pub fn new(scores: ArrayView2<'s, f32>, link: Link) -> Result<Self> {
        if scores.nrows() == 0 {
            return Err(Error::NoRows);
        }
        if scores.ncols() == 0 {
            return Err(Error::TooFewClasses { n_classes: 0 });
        }
        if let Some(((row, column), &value)) = scores.indexed_iter().find(|(_, score)| !score.is_finite()) {
            return Err(Error::ScoreNotFinite { row, column, value });
        }
        Ok(Self { scores, link })
    }

    /// How many rows are scored.
    pub fn n_rows(&self) -> usize {
        self.scores.nrows()
    }

    /// How many classes are told apart.
    pub fn n_classes(&self) -> usize {
        n_classes(self.scores.ncols())
    }

    /// Refuses bags of another table or another task.
    pub(crate) fn check(&self, bags: &Bags) -> Result<()> {
        check_length("scored rows", bags.n_rows(), self.n_rows())?;
        check_length("scored classes", bags.n_classes(), self.n_classes())
    }

    /// Refuses scores that give no probabilities.
    pub(crate) fn check_probabilities(&self) -> Result<()> {
        if self.link == Link::Margin { Err(Error::NoProbabilities) } else { Ok(()) }
    }

    /// A reader of single rows, with space of its own.
    pub(crate) fn reader(&self) -> Reader<'s> {
        Reader { predictions: *self, scores: vec![0.0; self.scores.ncols()] }
    }
}

/// Reads what is said of one row after the other.
pub(crate) struct Reader<'s> {
    predictions: Predictions<'s>,
    scores: Vec<f64>,
}

impl Reader<'_> {
    fn load(&mut self, row: usize) -> Link {
        for (score, stored) in self.scores.iter_mut().zip(self.predictions.scores.row(row)) {
            *score = f64::from(*stored);
        }
        self.predictions.link
    }

    /// One for the class that the scores speak for, zero for the others.
    pub(crate) fn decision(&mut self, row: usize, out: &mut [f64]) {
        let link = self.load(row);
        out.fill(0.0);
        out[link.class(&self.scores)] = 1.0;
    }

    /// The probability of each class; the caller has checked that there is one.
    pub(crate) fn probabilities(&mut self, row: usize, out: &mut [f64]) {
        let link = self.load(row);
        link.probabilities(&self.scores, out).expect("checked: the link gives probabilities");
    }

    /// −log of the probability of each class; the caller has checked that there is one.
    pub(crate) fn log_losses(&mut self, row: usize, out: &mut [f64]) {
        let link = self.load(row);
        link.log_losses(&self.scores, out).expect("checked: the link gives probabilities");
    }
}
