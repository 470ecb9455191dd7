//! Validation bags: they choose a model, and say how good it is.
//!
//! A metric that was minimised over candidates (penalties, epochs, rounds) is too good on the bags that it was minimised on. So
//! the bags are dealt into folds. Each fold reports on the candidate that is best on the other folds; what it reports is then
//! independent of what chose. Each fold estimates alone, and the estimates are averaged: an estimate from all bags at once would
//! be centred at a mean that all folds share. The choice for the final model is made on all validation bags.

use super::StopBy;
use crate::bagging;
use crate::bags::Bags;
use crate::error::{Error, Result};
use crate::estimate::Estimator;
use crate::link::Link;
use crate::model::Model;
use crate::predictions::Predictions;
use crate::rows::Rows;
use crate::train::Smoothed;
use ndarray::{Array2, Axis};

/// Bags that no training sees, with a copy of their rows.
pub(super) struct ValidationBags {
    /// Their places in the table.
    pub(super) members: Vec<u32>,
    rows: Rows<'static>,
    /// The bags over these rows alone.
    pub(super) bags: Bags,
    /// None if there are too few bags.
    pub(super) folds: Vec<Fold>,
}

/// A part of the validation bags.
pub(super) struct Fold {
    /// Bags that report together.
    pub(super) reporting: Bags,
    /// The others, which choose for them.
    choosing: Bags,
    /// The places of the others among all validation bags.
    others: Vec<usize>,
}

impl ValidationBags {
    /// The fewest bags that a metric can be estimated from.
    const LEAST: usize = 2;
    /// More folds leave more bags to choose, and fewer to report together.
    const MOST_FOLDS: usize = 5;
    /// Bags that report together, where there are enough for two folds of them.
    const FOLD: usize = 8;

    /// These bags, dealt into folds by the seed.
    pub(super) fn new(rows: &Rows, bags: &Bags, seed: u64) -> Result<Self> {
        let (members, bags) = bags.reindexed();
        let n_folds = (bags.n_bags() / Self::FOLD).clamp(2, Self::MOST_FOLDS);
        let fold = |members: Vec<usize>| {
            let mut is_other = vec![true; bags.n_bags()];
            for &bag in &members {
                is_other[bag] = false;
            }
            let others: Vec<usize> = (0..bags.n_bags()).filter(|&bag| is_other[bag]).collect();
            let (reporting, choosing) = (bags.select(&members)?, bags.select(&others)?);
            Ok::<_, Error>(Fold { reporting, choosing, others })
        };
        let folds = if bags.n_bags() < 2 * Self::LEAST {
            Vec::new()
        } else {
            bagging::fold_members(&bags, n_folds, seed).into_iter().map(fold).collect::<Result<_>>()?
        };
        Ok(Self { rows: rows.select(&members), members, bags, folds })
    }
}

impl ValidationBags {
    /// The metric on all bags, and on those that choose for each fold.
    fn metrics(&self, predictions: &Predictions, metric: StopBy) -> Result<Vec<f64>> {
        let estimator = Estimator::new(&self.bags)?;
        let choosing = self.folds.iter().map(|fold| Ok((Estimator::new(&fold.choosing)?, fold)));
        let choosing: Vec<_> = choosing.collect::<Result<_>>()?;
        Ok(match metric {
            StopBy::Brier => {
                let sums = estimator.brier_sums(predictions)?;
                let on_others = |(estimator, fold): &(Estimator, &Fold)| {
                    estimator.brier_from(sums.select(&fold.others)).value
                };
                let mut metrics: Vec<f64> = choosing.iter().map(on_others).collect();
                metrics.insert(0, estimator.brier_from(sums).value);
                metrics
            }
            StopBy::Error => {
                let estimators = std::iter::once(&estimator).chain(choosing.iter().map(|(on, _)| on));
                let errors = estimators.map(|estimator| Ok(estimator.error(predictions)?.value));
                errors.collect::<Result<_>>()?
            }
        })
    }
}

/// Compares candidates on validation bags, and keeps what is to be reported.
pub(super) struct Selection<'v> {
    validation: &'v ValidationBags,
    metric: StopBy,
    link: Link,
    window: usize,
    seen: Vec<Seen>,
    /// Scores of each fold by the best candidate on the others.
    scores: Array2<f32>,
    n_candidates: usize,
    /// What the last candidate came to.
    last: Option<Candidate>,
}

/// Metrics and scores of a candidate on the validation bags.
#[derive(Clone)]
pub(super) struct Candidate {
    /// On all bags, and on the choosing bags of each fold.
    pub(super) metrics: Vec<f64>,
    pub(super) scores: Array2<f32>,
}

/// What the choosing bags of a fold have seen.
struct Seen {
    smoothed: Smoothed,
    best: f64,
}

impl<'v> Selection<'v> {
    /// Nothing seen yet. Candidates of one training are compared by the mean metric of the last `window` of them.
    pub(super) fn new(
        validation: &'v ValidationBags,
        metric: StopBy,
        link: Link,
        window: usize,
        n_scores: usize,
    ) -> Self {
        let nothing = |_| Seen { smoothed: Smoothed::new(window), best: f64::INFINITY };
        Self {
            validation,
            metric,
            link,
            window,
            seen: validation.folds.iter().map(nothing).collect(),
            scores: Array2::zeros((validation.rows.n_rows(), n_scores)),
            n_candidates: 0,
            last: None,
        }
    }

    /// The next candidates come from another training: their metrics are not averaged with those seen so far.
    pub(super) fn start_training(&mut self) {
        for seen in &mut self.seen {
            seen.smoothed = Smoothed::new(self.window);
        }
    }

    /// The metric of a candidate on all validation bags, the lower the better.
    pub(super) fn see(&mut self, model: &impl Model) -> Result<f64> {
        let scores = model.scores(&self.validation.rows)?;
        let predictions = Predictions::new(scores.view(), self.link)?;
        let metrics = self.validation.metrics(&predictions, self.metric)?;
        self.n_candidates += 1;
        if self.n_candidates == 1 {
            self.scores.assign(&scores);
        }
        for ((fold, seen), metric) in self.validation.folds.iter().zip(&mut self.seen).zip(&metrics[1..]) {
            let metric = seen.smoothed.next(*metric);
            // A metric that is not a number is not better.
            if metric < seen.best {
                seen.best = metric;
                copy_rows(&mut self.scores, &scores, &fold.reporting);
            }
        }
        let on_all = metrics[0];
        self.last = Some(Candidate { metrics, scores });
        Ok(on_all)
    }

    /// What the last candidate came to, for a caller that compares candidates itself.
    pub(super) fn take_last(&mut self) -> Option<Candidate> {
        self.last.take()
    }

    /// Reports these scores of a fold in the place of those kept so far.
    pub(super) fn report(&mut self, fold: usize, scores: &Array2<f32>) {
        copy_rows(&mut self.scores, scores, &self.validation.folds[fold].reporting);
    }

    /// Scores of the rows of all validation bags, by models that the row's own fold did not choose. `None` if there was a choice
    /// and there are too few bags for folds.
    pub(super) fn finish(self) -> (usize, Option<Array2<f32>>) {
        let is_independent = self.n_candidates == 1 || !self.validation.folds.is_empty();
        (self.n_candidates, is_independent.then_some(self.scores))
    }
}

fn copy_rows(to: &mut Array2<f32>, from: &Array2<f32>, bags: &Bags) {
    for row in bags.rows() {
        let row = row as usize;
        to.index_axis_mut(Axis(0), row).assign(&from.row(row));
    }
}
