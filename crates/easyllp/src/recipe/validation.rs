//! Validation bags: they choose a model, and say how good it is.
//!
//! A metric that was minimised over candidates (penalties, epochs, rounds) is too good on the bags that it was minimised on. So
//! the bags are dealt into two halves. The best candidate on one half is reported on the other half, and the other way
//! round; what is reported is then independent of what chose. The choice for the final model is made on all validation bags.

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
    /// Two halves of the bags, if there are enough to estimate a metric from each.
    halves: Option<[Bags; 2]>,
}

impl ValidationBags {
    /// The fewest bags that a metric can be estimated from.
    const LEAST: usize = 2;

    /// These bags, dealt into halves by the seed.
    pub(super) fn new(rows: &Rows, bags: &Bags, seed: u64) -> Result<Self> {
        let (members, bags) = bags.reindexed();
        let halves = if bags.n_bags() < 2 * Self::LEAST {
            None
        } else {
            let bagging::Split { train: first, held_out: second } = bagging::split(&bags, 0.5, seed)?;
            Some([first, second])
        };
        Ok(Self { rows: rows.select(&members), members, bags, halves })
    }

    /// Whether there are enough bags for halves.
    pub(super) fn has_halves(&self) -> bool {
        self.halves.is_some()
    }
}

/// Compares candidates on validation bags, and keeps what is to be reported.
pub(super) struct Selection<'v> {
    validation: &'v ValidationBags,
    metric: StopBy,
    link: Link,
    window: usize,
    halves: Option<[Half<'v>; 2]>,
    /// Scores of each half by the best candidate on the other half.
    scores: Array2<f32>,
    n_candidates: usize,
    /// What the last candidate came to.
    last: Option<Candidate>,
}

/// Metrics and scores of a candidate on the validation bags.
#[derive(Clone)]
pub(super) struct Candidate {
    /// On all bags, and on either half; not a number where there are no halves.
    pub(super) metrics: [f64; 3],
    pub(super) scores: Array2<f32>,
}

/// What one half of the bags has seen.
struct Half<'v> {
    bags: &'v Bags,
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
        let half = |bags| Half { bags, smoothed: Smoothed::new(window), best: f64::INFINITY };
        Self {
            validation,
            metric,
            link,
            window,
            halves: validation.halves.as_ref().map(|[first, second]| [half(first), half(second)]),
            scores: Array2::zeros((validation.rows.n_rows(), n_scores)),
            n_candidates: 0,
            last: None,
        }
    }

    /// The next candidates come from another training: their metrics are not averaged with those seen so far.
    pub(super) fn start_training(&mut self) {
        for half in self.halves.iter_mut().flatten() {
            half.smoothed = Smoothed::new(self.window);
        }
    }

    /// The metric of a candidate on all validation bags, the lower the better.
    pub(super) fn see(&mut self, model: &impl Model) -> Result<f64> {
        let scores = model.scores(&self.validation.rows)?;
        let predictions = Predictions::new(scores.view(), self.link)?;
        let metric = self.metric;
        let of = |bags: &Bags| {
            let estimator = Estimator::new(bags)?;
            Ok::<f64, Error>(match metric {
                StopBy::Brier => estimator.brier(&predictions)?.value,
                StopBy::Error => estimator.error(&predictions)?.value,
            })
        };
        self.n_candidates += 1;
        if self.n_candidates == 1 {
            self.scores.assign(&scores);
        }
        let mut metrics = [of(&self.validation.bags)?, f64::NAN, f64::NAN];
        if let Some([first, second]) = &mut self.halves {
            let others = [second.bags, first.bags];
            for ((chooser, other), of_half) in [first, second].into_iter().zip(others).zip(&mut metrics[1..])
            {
                *of_half = of(chooser.bags)?;
                let metric = chooser.smoothed.next(*of_half);
                // A metric that is not a number is not better.
                if metric < chooser.best {
                    chooser.best = metric;
                    for row in other.rows() {
                        let row = row as usize;
                        self.scores.index_axis_mut(Axis(0), row).assign(&scores.row(row));
                    }
                }
            }
        }
        self.last = Some(Candidate { metrics, scores });
        Ok(metrics[0])
    }

    /// What the last candidate came to, for a caller that compares candidates itself.
    pub(super) fn take_last(&mut self) -> Option<Candidate> {
        self.last.take()
    }

    /// Reports these scores of either half in the place of those kept so far.
    pub(super) fn report(&mut self, of_halves: [&Array2<f32>; 2]) {
        for (bags, scores) in self.validation.halves.iter().flatten().zip(of_halves) {
            for row in bags.rows() {
                let row = row as usize;
                self.scores.index_axis_mut(Axis(0), row).assign(&scores.row(row));
            }
        }
    }

    /// Scores of the rows of all validation bags, by models that the row's own half did not choose. `None` if there was a choice
    /// and there are too few bags for halves.
    pub(super) fn finish(self) -> (usize, Option<Array2<f32>>) {
        let is_independent = self.n_candidates == 1 || self.halves.is_some();
        (self.n_candidates, is_independent.then_some(self.scores))
    }
}
