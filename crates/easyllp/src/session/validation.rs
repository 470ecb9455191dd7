//! Validation bags: they choose a model, and say how good it is.
//!
//! A metric that was minimised over candidates (penalties, epochs, rounds) is too good on the bags that it was minimised on. So
//! the bags are dealt into folds. Each fold reports on the candidate that is best on the other folds; what it reports is then
//! independent of what chose. Each fold estimates alone, and the estimates are averaged: an estimate from all bags at once would
//! be centred at a mean that all folds share. The choice for the final model is made on all validation bags.

use crate::bagging;
use crate::bags::Bags;
use crate::error::{Error, Result};
use crate::estimate::Estimator;
use crate::loss::Link;
use crate::model::Scorer;
use crate::predictions::Predictions;
use crate::rows::Rows;
use crate::train::Smoothed;
use ndarray::{Array2, Axis};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The metric on validation bags that chooses a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ValidationMetric {
    /// The Brier score.
    #[default]
    Brier,
    /// The error rate.
    Error,
}

/// Bags that no training sees, with a copy of their rows.
pub(crate) struct ValidationBags {
    /// Their places in the table.
    pub(crate) members: Vec<u32>,
    rows: Rows<'static>,
    /// The bags over these rows alone.
    pub(crate) bags: Bags,
    /// None if there are too few bags.
    pub(crate) folds: Vec<Fold>,
}

/// A part of the validation bags.
pub(crate) struct Fold {
    /// Bags that report together.
    pub(crate) reporting: Bags,
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
    pub(crate) fn new(rows: &Rows, bags: &Bags, seed: u64) -> Result<Self> {
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
    fn metrics(&self, predictions: &Predictions, metric: ValidationMetric) -> Result<Vec<f64>> {
        let estimator = Estimator::new(&self.bags)?;
        let choosing = self.folds.iter().map(|fold| Ok((Estimator::new(&fold.choosing)?, fold)));
        let choosing: Vec<_> = choosing.collect::<Result<_>>()?;
        Ok(match metric {
            ValidationMetric::Brier => {
                let sums = estimator.brier_sums(predictions)?;
                let on_others = |(estimator, fold): &(Estimator, &Fold)| {
                    estimator.brier_from(sums.select(&fold.others)).value
                };
                let mut metrics: Vec<f64> = choosing.iter().map(on_others).collect();
                metrics.insert(0, estimator.brier_from(sums).value);
                metrics
            }
            ValidationMetric::Error => {
                let estimators = std::iter::once(&estimator).chain(choosing.iter().map(|(on, _)| on));
                let errors = estimators.map(|estimator| Ok(estimator.error(predictions)?.value));
                errors.collect::<Result<_>>()?
            }
        })
    }
}

/// Compares candidates on validation bags, and keeps what is to be reported.
pub(crate) struct Selection<'v> {
    validation: &'v ValidationBags,
    metric: ValidationMetric,
    link: Link,
    window: usize,
    seen: Vec<Seen>,
    /// Scores of each fold by the best candidate on the others.
    scores: Array2<f32>,
    n_candidates: usize,
    /// What the last candidate came to.
    last: Option<Candidate>,
}

/// What folds report at some point.
pub(crate) struct Reported {
    best: Vec<f64>,
    scores: Array2<f32>,
}

/// Metrics and scores of a candidate on the validation bags.
#[derive(Clone)]
pub(crate) struct Candidate {
    /// On all bags, and on the choosing bags of each fold.
    pub(crate) metrics: Vec<f64>,
    pub(crate) scores: Array2<f32>,
}

/// What the choosing bags of a fold have seen.
struct Seen {
    smoothed: Smoothed,
    best: f64,
}

impl<'v> Selection<'v> {
    /// Nothing seen yet. Candidates of one training are compared by the mean metric of the last `window` of them.
    pub(crate) fn new(
        validation: &'v ValidationBags,
        metric: ValidationMetric,
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
    pub(crate) fn start_training(&mut self) {
        for seen in &mut self.seen {
            seen.smoothed = Smoothed::new(self.window);
        }
    }

    /// The metric of a candidate on all validation bags, the lower the better.
    pub(crate) fn see(&mut self, model: &dyn Scorer) -> Result<f64> {
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
    pub(crate) fn take_last(&mut self) -> Option<Candidate> {
        self.last.take()
    }

    pub(crate) fn n_folds(&self) -> usize {
        self.validation.folds.len()
    }

    /// What each fold would report now, before a stage that compares candidates by a search of its own.
    pub(crate) fn reported(&self) -> Reported {
        Reported { best: self.seen.iter().map(|seen| seen.best).collect(), scores: self.scores.clone() }
    }

    /// Ends such a search: each fold reports its best candidate, a metric and scores, unless an earlier stage was better.
    pub(crate) fn settle(&mut self, before: &Reported, best: &[Option<(f64, &Array2<f32>)>]) {
        let folds = self.validation.folds.iter().zip(&mut self.seen);
        for (((fold, seen), best), &earlier) in folds.zip(best).zip(&before.best) {
            let (metric, scores) = match best {
                Some((metric, _)) if earlier <= *metric => (earlier, &before.scores),
                Some((metric, scores)) => (*metric, *scores),
                None => (earlier, &before.scores),
            };
            seen.best = metric;
            copy_rows(&mut self.scores, scores, &fold.reporting);
        }
    }

    /// Scores of the rows of all validation bags, by models that the row's own fold did not choose. `None` if there was a choice
    /// and there are too few bags for folds.
    pub(crate) fn finish(self) -> (usize, Option<Array2<f32>>) {
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
