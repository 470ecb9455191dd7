//! EVALUATE: scores and predictions of each row, as evaluation reads them.

use crate::bags::Bags;
use crate::classes::n_classes;
use crate::error::{Error, Result, check_length};
use crate::loss::Link;
use ndarray::ArrayView2;

/// Scores of all rows, in row order, with the link that turns them into probabilities.
#[derive(Debug, Clone, Copy)]
pub struct Predictions<'s> {
    scores: ArrayView2<'s, f32>,
    link: Link,
}

impl<'s> Predictions<'s> {
    /// Creates predictions from finite scores, a line per row: one column for two classes, else one
    /// per class.
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

    /// The number of rows.
    pub fn n_rows(&self) -> usize {
        self.scores.nrows()
    }

    /// The number of classes.
    pub fn n_classes(&self) -> usize {
        n_classes(self.scores.ncols())
    }

    /// What the scores mean.
    pub fn link(&self) -> Link {
        self.link
    }

    /// The prediction for class 1 of a row, for two classes: its probability, or its margin if
    /// there is none.
    ///
    /// # Panics
    ///
    /// If there is no such row.
    pub fn of_class_one(&self, row: usize) -> f64 {
        let score = f64::from(self.scores[[row, 0]]);
        let mut both = [0.0; 2];
        match self.link.probabilities(&[score], &mut both) {
            Ok(()) => both[1],
            Err(_) => score,
        }
    }

    /// Checks that the bags are of the same table and task.
    pub(crate) fn check(&self, bags: &Bags) -> Result<()> {
        check_length("scored rows", bags.n_rows(), self.n_rows())?;
        check_length("scored classes", bags.n_classes(), self.n_classes())
    }

    /// Checks that the scores give probabilities.
    pub(crate) fn check_probabilities(&self) -> Result<()> {
        if self.link == Link::Margin { Err(Error::NoProbabilities) } else { Ok(()) }
    }

    /// A reader of a few rows at a time, with its own buffers.
    pub(crate) fn reader(&self) -> Reader<'s> {
        Reader { predictions: *self, scores: Vec::new() }
    }
}

/// Reads the predictions of a few rows at a time: prefetching their scores hides memory latency.
pub(crate) struct Reader<'s> {
    predictions: Predictions<'s>,
    scores: Vec<f64>,
}

impl Reader<'_> {
    /// Rows that are worth fetching together.
    pub(crate) const AT_ONCE: usize = 64;

    /// Fetches the scores of these rows; the methods below use their index here.
    pub(crate) fn load(&mut self, rows: impl Iterator<Item = usize>) {
        self.scores.clear();
        let scores = &self.predictions.scores;
        if scores.ncols() == 1 {
            self.scores.extend(rows.map(|row| f64::from(scores[[row, 0]])));
        } else {
            rows.for_each(|row| self.scores.extend(scores.row(row).iter().copied().map(f64::from)));
        }
    }

    fn at(&self, place: usize) -> (Link, &[f64]) {
        let width = self.predictions.scores.ncols();
        (self.predictions.link, &self.scores[place * width..][..width])
    }

    /// The score of class 1 of a task of two classes.
    pub(crate) fn score(&self, place: usize) -> f64 {
        self.at(place).1[0]
    }

    /// One for the predicted class, zero for the others.
    pub(crate) fn decision(&self, place: usize, out: &mut [f64]) {
        let (link, scores) = self.at(place);
        out.fill(0.0);
        out[link.class(scores)] = 1.0;
    }

    /// The probability of each class; the caller has checked that there is one.
    pub(crate) fn probabilities(&self, place: usize, out: &mut [f64]) {
        let (link, scores) = self.at(place);
        link.probabilities(scores, out).expect("checked: the link gives probabilities");
    }

    /// −log of the probability of each class; the caller has checked that there is one.
    pub(crate) fn log_losses(&self, place: usize, out: &mut [f64]) {
        let (link, scores) = self.at(place);
        link.log_losses(scores, out).expect("checked: the link gives probabilities");
    }

    /// Both of the former at once.
    pub(crate) fn probabilities_and_log_losses(&self, place: usize, q: &mut [f64], losses: &mut [f64]) {
        let (link, scores) = self.at(place);
        link.probabilities_and_log_losses(scores, q, losses).expect("checked: the link gives probabilities");
    }
}
