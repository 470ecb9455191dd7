//! Validation bags: they choose a model, and estimate its metrics.
//!
//! A metric that was minimised over candidates (penalties, epochs, rounds) is too optimistic on the
//! same bags. The validation bags are therefore split into folds, and each fold evaluates the
//! candidate that is best on the other folds. Each fold is estimated alone, and the estimates are
//! averaged: one estimate of all bags would be centred at a mean that all folds share. The final
//! model is chosen on all validation bags.

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

/// The validation metric that chooses a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ValidationMetric {
    /// The Brier score.
    #[default]
    Brier,
    /// The error rate.
    Error,
}

/// Validation bags, with a copy of their rows.
pub(crate) struct ValidationBags {
    /// Their row indices in the table.
    pub(crate) members: Vec<u32>,
    rows: Rows<'static>,
    /// The bags, with indices into these rows.
    pub(crate) bags: Bags,
    /// None if there are too few bags.
    pub(crate) folds: Vec<Fold>,
}

/// A part of the validation bags.
pub(crate) struct Fold {
    /// The bags that are evaluated together.
    pub(crate) reporting: Bags,
    /// The other bags, which choose the candidate for them.
    choosing: Bags,
    /// The indices of the others among all validation bags.
    others: Vec<usize>,
}

impl ValidationBags {
    /// The fewest bags that a metric can be estimated from.
    const LEAST: usize = 2;
    /// More folds leave more bags to choose with, and fewer to evaluate together.
    const MOST_FOLDS: usize = 5;
    /// Bags per fold, if there are enough for two folds.
    const FOLD: usize = 8;

    /// Splits these bags into folds by the seed.
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
    /// The metric on all bags, and on the choosing bags of each fold.
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

/// Compares candidates on validation bags, and keeps the scores to report.
pub(crate) struct Selection<'v> {
    validation: &'v ValidationBags,
    metric: ValidationMetric,
    link: Link,
    window: usize,
    seen: Vec<Seen>,
    /// Scores of each fold by the best candidate on the others.
    scores: Array2<f32>,
    n_candidates: usize,
    /// The metrics of the last candidate.
    last: Option<Candidate>,
}

/// The fold scores at some point.
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

/// The best metric on the choosing bags of a fold.
struct Seen {
    smoothed: Smoothed,
    best: f64,
}

impl<'v> Selection<'v> {
    /// Starts empty. Candidates of one training run are compared by the mean metric of the last
    /// `window` of them.
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

    /// Starts another training run: its metrics are not averaged with earlier ones.
    pub(crate) fn start_training(&mut self) {
        for seen in &mut self.seen {
            seen.smoothed = Smoothed::new(self.window);
        }
    }

    /// The metric of a candidate on all validation bags; lower is better.
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

    /// The metrics of the last candidate, for callers that compare candidates themselves.
    pub(crate) fn take_last(&mut self) -> Option<Candidate> {
        self.last.take()
    }

    pub(crate) fn n_folds(&self) -> usize {
        self.validation.folds.len()
    }

    /// The current fold scores, before a stage that compares candidates by its own search.
    pub(crate) fn reported(&self) -> Reported {
        Reported { best: self.seen.iter().map(|seen| seen.best).collect(), scores: self.scores.clone() }
    }

    /// Ends such a search: each fold keeps the metric and scores of its best candidate, unless an
    /// earlier stage was better.
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

    /// Scores of all validation rows, for each fold by a model that it did not choose. `None` if
    /// candidates were compared and there are too few bags for folds.
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
