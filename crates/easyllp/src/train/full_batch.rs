//! L-BFGS over all rows, for linear models.

use super::{EpochLog, Progress, Stop, TrainLog};
use crate::correction::Targets;
use crate::error::{Error, Result};
use crate::loss::{Convexity, TrainingLoss};
use crate::method::TargetRule;
use crate::model::{Curvature, LinearModel, Objective};
use crate::optim::{Divide, End, Lbfgs, Taken, minimise};
use crate::rows::Rows;
use std::ops::ControlFlow;

pub(super) fn fit(
    settings: &Lbfgs,
    model: &mut LinearModel,
    rows: &Rows,
    rule: &mut dyn TargetRule,
    loss: &dyn TrainingLoss,
    watch: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<TrainLog> {
    settings.check()?;
    if loss.convexity() != Convexity::AnyTarget {
        return Err(Error::NotConvex { loss: loss.name().as_str() });
    }
    let mut targets = Targets::zeros(rule.n_rows(), rule.n_classes());
    super::next_targets(rule, loss, 0, &mut targets)?;
    let mut objective = Objective::new(model, rows, rule.rows(), targets.values(), loss, settings.l2);
    let mut epochs = Vec::new();
    let mut point = objective.start();
    let curvature = Curvature::of(&objective);
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
    let end = if point.iter().all(|value| value.abs() <= f64::from(f32::MAX)) { end } else { End::Unbounded };
    let stopped = match end {
        End::Converged => Stop::Converged,
        End::Flat => Stop::Flat,
        End::Iterations => Stop::Finished,
        End::Caller => Stop::Caller,
        End::Unbounded => {
            let (iteration, loss) = epochs.last().map_or((0, f64::NAN), |last| (last.epoch, last.loss));
            return Err(Error::Unbounded { iteration, loss });
        }
    };
    objective.write_to(&point, model);
    Ok(TrainLog { epochs, stopped, best: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::LossName;
    use crate::method::Event;
    use ndarray::array;

    #[test]
    fn refuses_losses_that_may_bend_the_wrong_way() {
        let rows = Rows::dense(array![[0.5_f32], [2.0]]).unwrap();
        let mut model = LinearModel::for_rows(&rows, 2).unwrap();
        let loss = LossName::Hinge.training().unwrap();
        let mut rule = Event::new(&[0, 1], 2).unwrap();
        let refused =
            fit(&Lbfgs::default(), &mut model, &rows, &mut rule, loss, &mut |_| ControlFlow::Continue(()));
        assert_eq!(refused.unwrap_err(), Error::NotConvex { loss: "hinge" });
    }
}
