//! L-BFGS on all rows, for linear models.

use super::{EpochLog, Progress, Stop, TrainLog};
use crate::aim::{Aim, TargetRows, TargetRule};
use crate::correction::Targets;
use crate::error::{Error, Result};
use crate::loss::{Convexity, TrainingLoss};
use crate::model::objective::LinearParts;
use crate::model::{Gram, LinearModel, LinearProblem, Objective};
use crate::optim::{Divide, End, Lbfgs, Taken, minimise};
use crate::rows::Rows;
use std::ops::ControlFlow;

/// Rows with targets, and the curvature of their loss, shared by several penalties.
pub(crate) struct FullBatch<'r> {
    objective: Objective<'r>,
    problem: LinearProblem<'r>,
    gram: Option<Gram>,
    /// The same with a convex loss, whose optimum a loss that is not convex starts from.
    start: Option<Box<Self>>,
}

impl<'r> FullBatch<'r> {
    /// From the targets of a rule in epoch 0; rows have been checked.
    fn new(rows: &'r Rows, rule: &mut dyn TargetRule, loss: &'r dyn TrainingLoss, l2: f64) -> Result<Self> {
        let start = match (check_convex(loss), loss.convex_start()) {
            (Ok(()), _) => None,
            (Err(_), Some(convex)) => Some(Box::new(Self::new(rows, rule, convex, l2)?)),
            (Err(refused), None) => return Err(refused),
        };
        let TargetRows { n_rows, n_classes, rows: trained } = rule.target_rows();
        let mut targets = Targets::zeros(n_rows, n_classes);
        super::next_targets(rule, loss, 0, &mut targets)?;
        let objective = Objective::new(rows, trained, targets.values(), loss);
        let problem = LinearProblem::new(objective.features().clone(), loss, l2);
        let gram = match Gram::sample(&problem) {
            Some(sample) => Some(Gram::new(&problem, &sample, objective.gram(&sample))?),
            None => None,
        };
        Ok(Self { objective, problem, gram, start })
    }

    /// The same, checked against the model to be trained.
    pub(crate) fn checked(
        model: &mut LinearModel,
        rows: &'r Rows,
        rule: &mut dyn TargetRule,
        loss: &'r dyn TrainingLoss,
        l2: f64,
    ) -> Result<Self> {
        super::check(model, rows, &Aim::Targets(rule, loss))?;
        Self::new(rows, rule, loss, l2)
    }

    /// Trains a model to the optimum, from its current weights. A loss that is not convex ends in a local minimum near the optimum of
    /// its convex start.
    pub(crate) fn fit(
        &mut self,
        settings: &Lbfgs,
        model: &mut LinearModel,
        watch: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<TrainLog> {
        let Self { objective, problem, gram, start } = self;
        if let Some(start) = start {
            let log = start.fit(settings, model, watch)?;
            if log.stopped == Stop::Interrupted {
                return Ok(log);
            }
        }
        problem.l2 = settings.l2;
        let mut sums = |point: &[f64], gradient: &mut [f64]| Ok(objective.sums(point, gradient));
        let mut log = descend(settings, problem, gram.as_ref(), model, &mut sums, watch)?;
        if start.is_some() && matches!(log.stopped, Stop::Converged | Stop::Flat) {
            log.stopped = Stop::LocalMinimum;
        }
        Ok(log)
    }
}

fn check_convex(loss: &dyn TrainingLoss) -> Result<()> {
    match loss.convexity() {
        Convexity::AnyTarget => Ok(()),
        _ => Err(Error::NotConvex { loss: loss.name() }),
    }
}

/// Trains a linear model to its optimum from sums over its rows, which may be distributed: each
/// part of a cluster computes its own sums, and they are merged. The model equals that of all rows
/// in one place, up to rounding.
///
/// ```
/// use easyllp::model::objective::{FeatureSums, GramSample, GramSums, LinearPart, LinearParts, LinearSums};
/// use easyllp::{Result, Rows, loss::LossName, model::{LinearModel, Scorer}, optim::Lbfgs, train};
/// use ndarray::array;
/// use std::ops::ControlFlow;
///
/// /// Two parts; each could be on its own machine.
/// struct Both<'r>([LinearPart<'r>; 2]);
///
/// impl LinearParts for Both<'_> {
///     fn features(&mut self) -> Result<FeatureSums> {
///         let mut sums = self.0[0].features()?;
///         sums.merge(self.0[1].features()?)?;
///         Ok(sums)
///     }
///     fn gram(&mut self, sample: &GramSample) -> Result<GramSums> {
///         let mut sums = self.0[0].gram(sample)?;
///         sums.merge(&self.0[1].gram(sample)?)?;
///         Ok(sums)
///     }
///     fn sums(&mut self, point: &[f64]) -> Result<LinearSums> {
///         let mut sums = self.0[0].sums(point)?;
///         sums.merge(self.0[1].sums(point)?)?;
///         Ok(sums)
///     }
/// }
///
/// let loss = LossName::Logistic.training()?;
/// let first = Rows::dense(array![[0.0_f32], [1.0]])?;
/// let second = Rows::dense(array![[2.0_f32], [3.0]])?;
/// let mut parts = Both([
///     LinearPart::new(&first, array![[0.0_f32], [0.0]].view(), loss)?,
///     LinearPart::new(&second, array![[1.0_f32], [1.0]].view(), loss)?,
/// ]);
/// let mut model = LinearModel::for_rows(&first, 2)?;
/// train::fit_parts(&Lbfgs::default(), &mut model, &mut parts, loss, &mut |_| ControlFlow::Continue(()))?;
/// let scores = model.scores(&Rows::dense(array![[1.4_f32], [1.6]])?)?;
/// assert!(scores[[0, 0]] < 0.0 && scores[[1, 0]] > 0.0);
/// # Ok::<(), easyllp::Error>(())
/// ```
pub fn fit_parts(
    settings: &Lbfgs,
    model: &mut LinearModel,
    parts: &mut dyn LinearParts,
    loss: &dyn TrainingLoss,
    watch: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<TrainLog> {
    settings.check()?;
    check_convex(loss)?;
    let problem = LinearProblem::new(parts.features()?, loss, settings.l2);
    problem.check(model)?;
    let gram = match Gram::sample(&problem) {
        Some(sample) => Some(Gram::new(&problem, &sample, parts.gram(&sample)?)?),
        None => None,
    };
    let mut sums =
        |point: &[f64], gradient: &mut [f64]| problem.gather(&parts.sums(&problem.spread(point))?, gradient);
    descend(settings, &problem, gram.as_ref(), model, &mut sums, watch)
}

/// The sum of losses at a point; writes its gradient.
type Sums<'s> = &'s mut dyn FnMut(&[f64], &mut [f64]) -> Result<f64>;

/// L-BFGS, for any source of sums.
fn descend(
    settings: &Lbfgs,
    problem: &LinearProblem,
    gram: Option<&Gram>,
    model: &mut LinearModel,
    sums: Sums,
    watch: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<TrainLog> {
    settings.check()?;
    let mut epochs = Vec::new();
    let mut failed = None;
    let mut point = problem.start(model);
    let curvature = gram.map(|gram| gram.with_penalty(settings.l2));
    let divide = curvature.map(|curvature| move |vector: &mut [f64]| curvature.divide(vector));
    let end = minimise(
        settings,
        &mut point,
        |point, gradient| match sums(point, gradient) {
            Ok(loss) if failed.is_none() => problem.value(loss, point, gradient),
            // No number: the search ends here.
            Ok(_) => f64::NAN,
            Err(error) => {
                failed.get_or_insert(error);
                f64::NAN
            }
        },
        divide.as_ref().map(|divide| divide as Divide),
        |Taken { iteration: epoch, value: loss, left }| {
            epochs.push(EpochLog { epoch, loss });
            if watch(Progress::Iteration { iteration: epoch, left }).is_break() {
                return ControlFlow::Break(());
            }
            watch(Progress::Epoch(EpochLog { epoch, loss }))
        },
    );
    if let Some(error) = failed {
        return Err(error);
    }
    // Weights that a model cannot hold are no minimum, whatever made the search stop.
    let end = if point.iter().all(|value| value.abs() <= f64::from(f32::MAX)) { end } else { End::Unbounded };
    let stopped = match end {
        End::Converged => Stop::Converged,
        End::Flat => Stop::Flat,
        End::Iterations => Stop::Finished,
        End::Caller => Stop::Interrupted,
        End::Unbounded => {
            let (iteration, loss) = epochs.last().map_or((0, f64::NAN), |last| (last.epoch, last.loss));
            return Err(Error::Unbounded { iteration, loss });
        }
    };
    problem.write_to(&point, model);
    Ok(TrainLog { epochs, stopped, best: None })
}

/// Trains a model on a rule's targets.
pub(super) fn fit(
    settings: &Lbfgs,
    model: &mut LinearModel,
    rows: &Rows,
    rule: &mut dyn TargetRule,
    loss: &dyn TrainingLoss,
    watch: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<TrainLog> {
    settings.check()?;
    FullBatch::new(rows, rule, loss, settings.l2)?.fit(settings, model, watch)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::LossName;
    use crate::method::Supervised;
    use ndarray::array;

    #[test]
    fn refuses_losses_that_may_bend_the_wrong_way() {
        let rows = Rows::dense(array![[0.5_f32], [2.0]]).unwrap();
        let mut model = LinearModel::for_rows(&rows, 2).unwrap();
        let loss = LossName::Hinge.training().unwrap();
        let mut rule = Supervised::new(&[0, 1], 2).unwrap();
        let refused =
            fit(&Lbfgs::default(), &mut model, &rows, &mut rule, loss, &mut |_| ControlFlow::Continue(()));
        assert_eq!(refused.unwrap_err(), Error::NotConvex { loss: "hinge" });
    }
}
