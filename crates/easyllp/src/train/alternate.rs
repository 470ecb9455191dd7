//! Back and forth between targets and model, for linear models.

use super::{BestSoFar, EpochLog, Judge, Optimizer, Progress, Stop, TrainLog, Trainer};
use crate::bags::Bags;
use crate::correction::Targets;
use crate::error::Result;
use crate::loss::TrainingLoss;
use crate::method::{Alternation, TargetRule};
use crate::model::Model;
use crate::rows::Rows;
use ndarray::{Array2, Axis};
use rayon::prelude::*;
use std::ops::ControlFlow;

/// Trains for so many rounds at most, each from where the last one ended; fewer once targets hardly change.
#[expect(clippy::too_many_arguments, reason = "all that a training has")]
pub(super) fn fit<M: Model + Clone>(
    optimizer: &Optimizer,
    seed: u64,
    model: &mut M,
    rows: &Rows,
    method: &dyn Alternation,
    rounds: usize,
    loss: &dyn TrainingLoss,
    watch: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    judge: Option<Judge<M>>,
) -> Result<TrainLog> {
    /// Targets that change by no more than this have settled.
    const SETTLED: f32 = 1e-3;
    let bags = method.bags();
    let n_rows = bags.n_members();
    let mut best = judge.map(BestSoFar::new);
    let mut targets = Targets::zeros(bags.n_rows(), bags.n_classes());
    method.first(&mut targets)?;
    let mut log = TrainLog { epochs: Vec::new(), stopped: Stop::Finished, best: None };
    for round in 1..=rounds {
        // From round to round minibatches come in another order.
        let trainer = Trainer { optimizer: optimizer.clone(), seed: seed.wrapping_add(round as u64 - 1) };
        let mut within = |_| watch(Progress::Batch { epoch: round, rows_done: 0, n_rows });
        let of_round =
            trainer.fit_watched(model, rows, &mut Given { bags, targets: &targets }, loss, &mut within)?;
        let loss = of_round.epochs.last().map_or(f64::NAN, |last| last.loss);
        log.epochs.push(EpochLog { epoch: round, loss });
        if let Some(best) = &mut best
            && best.see(model.clone(), round)?.is_break()
        {
            log.stopped = Stop::NoBetter;
            break;
        }
        if of_round.stopped == Stop::Caller
            || watch(Progress::Epoch(EpochLog { epoch: round, loss })).is_break()
        {
            log.stopped = Stop::Caller;
            break;
        }
        let next = next_targets(method, model, rows)?;
        let change =
            next.values().iter().zip(targets.values()).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        targets = next;
        if change <= SETTLED {
            log.stopped = Stop::Converged;
            break;
        }
    }
    if let Some(best) = best {
        log.best = best.give_to(model);
    }
    Ok(log)
}

/// What the model and the counts agree on, bags shared out to threads.
fn next_targets<M: Model>(method: &dyn Alternation, model: &M, rows: &Rows) -> Result<Targets> {
    let bags = method.bags();
    let scores = model.scores(rows)?;
    let of_bag = |bag: usize| {
        let members: Vec<usize> = bags.members(bag).iter().map(|&row| row as usize).collect();
        let scores = scores.select(Axis(0), &members);
        let mut targets = Array2::zeros(scores.dim());
        method.again(bag, scores.view(), targets.view_mut());
        targets
    };
    let of_bags: Vec<Array2<f32>> = (0..bags.n_bags()).into_par_iter().map(of_bag).collect();
    let mut targets = Targets::zeros(bags.n_rows(), bags.n_classes());
    let mut values = targets.values_mut();
    for (bag, of_bag) in of_bags.iter().enumerate() {
        for (&row, line) in bags.members(bag).iter().zip(of_bag.rows()) {
            values.row_mut(row as usize).assign(&line);
        }
    }
    Ok(targets)
}

/// Targets that are there already.
struct Given<'g> {
    bags: &'g Bags,
    targets: &'g Targets,
}

impl TargetRule for Given<'_> {
    fn n_rows(&self) -> usize {
        self.bags.n_rows()
    }

    fn n_classes(&self) -> usize {
        self.bags.n_classes()
    }

    fn rows(&self) -> Vec<u32> {
        self.bags.rows()
    }

    fn changes(&self) -> bool {
        false
    }

    fn targets(&mut self, _epoch: usize, out: &mut Targets) -> Result<()> {
        out.clone_from(self.targets);
        Ok(())
    }
}
