//! L-BFGS over all rows, for linear models.

use super::{EpochLog, Progress, Stop, TrainLog};
use crate::aim::{Aim, TargetRule};
use crate::correction::Targets;
use crate::error::{Error, Result};
use crate::loss::{Convexity, TrainingLoss};
use crate::model::{Gram, LinearModel, Objective};
use crate::optim::{Divide, End, Lbfgs, Taken, minimise};
use crate::rows::Rows;
use std::ops::ControlFlow;

/// Rows with targets, and how their loss bends: what several penalties have in common.
pub(crate) struct FullBatch<'r> {
    objective: Objective<'r>,
    gram: Option<Gram>,
}

impl<'r> FullBatch<'r> {
    /// Of the targets that a rule gives rows at first; which rows they are has been checked.
    fn new(rows: &'r Rows, rule: &mut dyn TargetRule, loss: &'r dyn TrainingLoss, l2: f64) -> Result<Self> {
        if loss.convexity() != Convexity::AnyTarget {
            return Err(Error::NotConvex { loss: loss.name() });
        }
        let mut targets = Targets::zeros(rule.n_rows(), rule.n_classes());
        super::next_targets(rule, loss, 0, &mut targets)?;
        let objective = Objective::new(rows, rule.rows(), targets.values(), loss, l2);
        let gram = Gram::of(&objective);
        Ok(Self { objective, gram })
    }

    /// Of the same, checked against the model that is to be trained.
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

    /// Trains a model from where it is to the optimum.
    pub(crate) fn fit(
        &mut self,
        settings: &Lbfgs,
        model: &mut LinearModel,
        watch: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<TrainLog> {
        settings.check()?;
        let Self { objective, gram } = self;
        objective.set_penalty(settings.l2);
        let mut epochs = Vec::new();
        let mut point = objective.start(model);
        let curvature = gram.as_ref().map(|gram| gram.with_penalty(settings.l2));
        let divide = curvature.map(|curvature| move |vector: &mut [f64]| curvature.divide(vector));
        let end = minimise(
            settings,
            &mut point,
            |point, gradient| objective.value(point, gradient),
            divide.as_ref().map(|divide| divide as Divide),
            |Taken { iteration: epoch, value: loss, left }| {
                epochs.push(EpochLog { epoch, loss });
                if watch(Progress::Iteration { iteration: epoch, left }).is_break() {
                    return ControlFlow::Break(());
                }
                watch(Progress::Epoch(EpochLog { epoch, loss }))
            },
        );
        // Weights that a model cannot hold are no minimum, whatever made the search stop.
        let end =
            if point.iter().all(|value| value.abs() <= f64::from(f32::MAX)) { end } else { End::Unbounded };
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
        objective.write_to(&point, model);
        Ok(TrainLog { epochs, stopped, best: None })
    }
}

/// Trains a model towards a rule's targets.
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
