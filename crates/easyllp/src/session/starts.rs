//! Several initial weights, and whether a replay is as good as what was chosen.

use super::learner::Learner;
use super::{Record, Session};
use crate::error::Result;
use ndarray::ArrayView2;

/// Makes a model with initial weights from a seed.
pub(crate) type DrawModel<'d> = dyn Fn(u64) -> Result<Box<dyn Learner>> + 'd;

impl<'s> Session<'s, '_> {
    /// Allows training from several initial weights.
    pub(crate) fn set_draw(&mut self, draw: &'s DrawModel<'s>) {
        self.draw = Some(draw);
    }

    /// Trains from so many initial weights by the same stages, and goes on with the best on validation bags. Without validation bags,
    /// or for models that are not drawn, there is one start. Call it before any other stage.
    pub fn starts(&mut self, n: usize, train: &mut dyn FnMut(&mut Self) -> Result<()>) -> Result<()> {
        let Some(draw) = self.draw else { return train(self) };
        let seed_of = |seed: u64, start: usize| seed.wrapping_add(1000 * start as u64);
        if let Some(Record { start, .. }) = &self.replay {
            self.start = *start;
            if *start > 0 {
                self.model = draw(seed_of(self.seed, *start))?;
            }
            return train(self);
        }
        if !self.judge.is_there() {
            return train(self);
        }
        let mut best = None;
        let mut least = f64::INFINITY;
        for start in 0..n {
            if start > 0 {
                self.model = draw(seed_of(self.seed, start))?;
            }
            self.start = start;
            train(self)?;
            let metric = self.best.as_ref().map_or(f64::INFINITY, |best| best.metric);
            let trained = (self.start, self.best.take(), self.model.clone());
            let (stages, chosen) = (std::mem::take(&mut self.stages), std::mem::take(&mut self.chosen));
            if best.is_none() || metric < least {
                least = metric;
                best = Some((trained, stages, chosen));
            }
        }
        if let Some(((start, best, model), stages, chosen)) = best {
            (self.start, self.best, self.model) = (start, best, model);
            (self.stages, self.chosen) = (stages, chosen);
        }
        Ok(())
    }

    /// In a replay, goes back to the model that was chosen on validation bags if its loss is lower. Whether it did.
    pub fn revert_worse_replay(&mut self, loss: &dyn Fn(ArrayView2<f32>) -> Result<f64>) -> Result<bool> {
        let Some(Record { model: chosen, .. }) = &self.replay else { return Ok(false) };
        let of = |model: &dyn Learner| loss(model.scores(self.rows)?.view());
        let is_worse = of(&**chosen)? < of(&*self.model)?;
        if is_worse {
            self.model = chosen.clone();
        }
        Ok(is_worse)
    }
}
