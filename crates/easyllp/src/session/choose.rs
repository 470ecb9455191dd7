//! The optimizer of a stage: a given one, or L-BFGS with the penalty that is best on validation
//! bags.

use super::judge::Judge;
use super::learner::Learner;
use super::path::PathSearch;
use super::validation::Candidate;
use super::{Session, forward, not_interrupted};
use crate::error::{Error, Result};
use crate::optim::Lbfgs;
use crate::train::{FullBatch, Optimizer, TrainLog};

/// The penalties that `l2 = "auto"` chooses from, from strong to weak. Not all of them are tried.
pub const PENALTIES: [f64; 8] = [1000.0, 300.0, 100.0, 30.0, 10.0, 3.0, 1.0, 0.3];

/// The tolerance for penalties that are only compared. The final model is fitted to
/// [`Lbfgs::tolerance`].
const PATH_TOLERANCE: f64 = 1e-3;

/// The optimizers to choose from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum OptimizerPlan {
    /// L-BFGS with the penalty that is best on validation bags.
    BestPenalty,
    /// L-BFGS with this penalty for a single label.
    FixedPenalty(f64),
    /// A given optimizer.
    Given(Optimizer),
}

impl OptimizerPlan {
    pub(super) fn optimizers(&self, n_bags: usize) -> Vec<Optimizer> {
        let with_penalty =
            |penalty: f64| Optimizer::Lbfgs(Lbfgs { l2: penalty / n_bags as f64, ..Lbfgs::default() });
        match self {
            Self::BestPenalty => PENALTIES.map(with_penalty).to_vec(),
            Self::FixedPenalty(penalty) => vec![with_penalty(*penalty)],
            Self::Given(optimizer) => vec![optimizer.clone()],
        }
    }
}

/// A candidate, with its training log.
struct Tried {
    model: Box<dyn Learner>,
    log: TrainLog,
    metric: f64,
    candidate: Candidate,
}

impl Session<'_, '_> {
    /// Trains with one of several penalties, sharing everything else.
    pub(super) fn fit_penalty(
        &mut self,
        stage: &str,
        what: &str,
        full_batch: &mut FullBatch,
        lbfgs: &Lbfgs,
    ) -> Result<TrainLog> {
        self.begin(stage, what, lbfgs.max_iterations)?;
        let Self { model, watch, .. } = self;
        let linear = model.as_linear_mut().ok_or(Error::NotLinear)?;
        let log = full_batch.fit(lbfgs, linear, &mut |progress| forward(watch, progress))?;
        self.judged(not_interrupted(log)?)
    }

    /// Trains a stage with each optimizer that is worth trying, and keeps the best. Several
    /// optimizers are a path from the strongest penalty to the weakest.
    pub(super) fn choose(
        &mut self,
        stage: &str,
        mut optimizers: Vec<Optimizer>,
        fit: &mut dyn FnMut(&mut Self, &Optimizer, &str) -> Result<TrainLog>,
    ) -> Result<()> {
        if let [optimizer] = &optimizers[..] {
            let log = fit(self, optimizer, self.what)?;
            return self.finish_stage(stage, optimizer.clone().into(), 0, log);
        }
        let Judge::Validation(selection) = &self.judge else { return Err(Error::NoValidationMetric) };
        let (before, n_folds) = (selection.reported(), selection.n_folds());
        let start = self.model.clone();
        let n_optimizers = optimizers.len();
        let mut tried: Vec<Option<Tried>> = (0..n_optimizers).map(|_| None).collect();
        // All bags choose the final model. For each fold the others search on their own, so that it does not affect its own choice.
        let mut searches: Vec<_> = (0..=n_folds).map(|_| PathSearch::new(n_optimizers)).collect();
        for (by, search) in searches.iter_mut().enumerate() {
            while let Some(place) = search.next() {
                if tried[place].is_none() {
                    let mut what = String::new();
                    if let Optimizer::Lbfgs(lbfgs) = &mut optimizers[place] {
                        lbfgs.tolerance = PATH_TOLERANCE;
                        let number = tried.iter().flatten().count() + 1;
                        what = format!("penalty {number} of at most {n_optimizers} (l2 {:.1e})", lbfgs.l2);
                    }
                    let neighbour = search.neighbour(place).and_then(|place| tried[place].as_ref());
                    self.model = neighbour.map_or(&start, |tried| &tried.model).clone();
                    let log = fit(self, &optimizers[place], &what)?;
                    let Some((_, metric)) = log.best else { return Err(Error::NoValidationMetric) };
                    let Judge::Validation(selection) = &mut self.judge else { break };
                    let candidate = selection.take_last().ok_or(Error::NoValidationMetric)?;
                    tried[place] = Some(Tried { model: self.model.clone(), log, metric, candidate });
                }
                let Some(Tried { log, metric, candidate, .. }) = &tried[place] else { break };
                let metric = if by == 0 { *metric } else { candidate.metrics[by] };
                search.see(metric, log.epochs.is_empty());
            }
        }
        let best_of = |search: &PathSearch| {
            let (place, metric) = search.best()?;
            Some((metric, &tried[place].as_ref()?.candidate.scores))
        };
        if let Judge::Validation(selection) = &mut self.judge {
            selection.settle(&before, &searches[1..].iter().map(best_of).collect::<Vec<_>>());
        }
        let (place, _) = searches[0].best().ok_or(Error::NoValidationMetric)?;
        let Some(Tried { model, log, .. }) = tried.swap_remove(place) else {
            return Err(Error::NoValidationMetric);
        };
        self.model = model;
        self.finish_stage(stage, optimizers.swap_remove(place).into(), place, log)
    }
}
