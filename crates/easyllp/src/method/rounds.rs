//! Alternating rounds: compute targets that match the bags' counts and the current scores, then
//! train on them.

use crate::bags::Bags;
use crate::correction::Targets;
use crate::error::Result;
use crate::session::Session;
use ndarray::{Array2, ArrayView2, ArrayViewMut2, Axis};
use rayon::prelude::*;
use std::ops::ControlFlow;

/// How a method computes the targets of its rounds.
pub trait Rounds: Sync {
    /// The training bags.
    fn bags(&self) -> &Bags;

    /// Targets of the first round, before there are scores.
    fn first(&self, out: &mut Targets) -> Result<()>;

    /// Targets of a bag's rows, given their scores (one line per member, in order).
    fn again(&self, bag: usize, scores: ArrayView2<f32>, targets: ArrayViewMut2<f32>);
}

/// Trains for at most this number of rounds, each from the end of the last one; stops early when
/// targets hardly change.
pub(super) fn alternate(session: &mut Session, stage: &str, most: usize, method: &dyn Rounds) -> Result<()> {
    /// Targets that change by at most this have converged.
    const CONVERGED: f32 = 1e-3;
    let bags = method.bags();
    let mut targets = Targets::zeros(bags.n_rows(), bags.n_classes());
    session.rounds(stage, most, &mut |session, round| {
        if round == 1 {
            targets = Targets::zeros(bags.n_rows(), bags.n_classes());
            method.first(&mut targets)?;
        } else {
            let again = |bag: usize, scores: ArrayView2<f32>, targets: ArrayViewMut2<f32>| {
                method.again(bag, scores, targets);
            };
            let next = next_targets(bags, &again, session.scores()?.view());
            let (before, after) = (targets.values(), next.values());
            let changes = after.iter().zip(before).map(|(a, b)| (a - b).abs());
            let most_changed = changes.fold(0.0, f32::max);
            targets = next;
            if most_changed <= CONVERGED {
                return Ok(ControlFlow::Break(()));
            }
        }
        session.update(&targets)?;
        Ok(ControlFlow::Continue(()))
    })
}

/// Writes the targets of a bag's rows, given the bag's index and the scores of its rows.
pub(super) type TargetsOfRows<'t> = dyn Fn(usize, ArrayView2<f32>, ArrayViewMut2<f32>) + Sync + 't;

/// The targets of a round, with bags shared by threads.
pub(super) fn next_targets(bags: &Bags, of_rows: &TargetsOfRows, scores: ArrayView2<f32>) -> Targets {
    let of_bag = |bag: usize| {
        let members: Vec<usize> = bags.members(bag).iter().map(|&row| row as usize).collect();
        let scores = scores.select(Axis(0), &members);
        let mut targets = Array2::zeros(scores.dim());
        of_rows(bag, scores.view(), targets.view_mut());
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
    targets
}
