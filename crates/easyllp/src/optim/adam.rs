//! Adam (Kingma & Ba 2015) with decoupled weight decay, gradient clipping and averaged weights.
//!
//! Lines of a table that a batch does not touch are not updated, moments included ("lazy" Adam), so
//! that a step costs only the touched lines. Weight decay applies to a line only in steps that
//! touch it.

use super::check_setting;
use super::dense::DenseMemory;
use super::table::TableMemory;
use crate::error::{Error, Result};
use crate::kernel::{Moment, Step};
use crate::model::{Gradient, Parameters, Updates};

/// Settings of minibatch training with Adam.
#[derive(Debug, Clone, PartialEq)]
pub struct Adam {
    /// Number of epochs.
    pub epochs: usize,
    /// Minibatch size in rows.
    pub batch_size: usize,
    /// Learning rate.
    pub learning_rate: f64,
    /// Decay of the first moment, β₁.
    pub beta1: f64,
    /// Decay of the second moment, β₂.
    pub beta2: f64,
    /// ε, which avoids division by zero.
    pub epsilon: f64,
    /// Decoupled weight decay, multiplied by the learning rate; intercepts have none.
    pub weight_decay: f64,
    /// Gradient clipping: the largest norm of a gradient.
    pub clip_norm: Option<f64>,
    /// Whether the model ends with averaged weights, step t having weight t (Lacoste-Julien,
    /// Schmidt & Bach 2012). Averaging reduces the noise of targets and forgets the first steps.
    pub average: bool,
}

impl Default for Adam {
    fn default() -> Self {
        Self {
            epochs: 40,
            batch_size: 256,
            learning_rate: 1e-3,
            beta1: 0.9,
            beta2: 0.999,
            epsilon: 1e-8,
            weight_decay: 0.0,
            clip_norm: None,
            average: true,
        }
    }
}

impl Adam {
    pub(crate) fn check(&self) -> Result<()> {
        let count = |name, value: usize| match value {
            0 => Err(Error::Setting { name, value: "0".into(), expected: "at least 1" }),
            _ => Ok(()),
        };
        count("number of epochs", self.epochs)?;
        count("batch size", self.batch_size)?;
        // Limits within which f32 holds the values derived from a setting.
        let is_rate = self.learning_rate > 0.0 && self.learning_rate <= 1e6;
        check_setting("learning rate", self.learning_rate, is_rate, "positive, at most 1e6")?;
        for (name, beta) in [("beta1", self.beta1), ("beta2", self.beta2)] {
            check_setting(name, beta, (0.0..1.0).contains(&beta), "at least 0 and below 1")?;
        }
        check_setting("epsilon", self.epsilon, self.epsilon >= 1e-30, "at least 1e-30")?;
        let shrinks = self.weight_decay >= 0.0 && self.weight_decay * self.learning_rate <= 1.0;
        check_setting("weight decay", self.weight_decay, shrinks, "at least 0, at most 1/learning rate")?;
        if let Some(norm) = self.clip_norm {
            check_setting("clipping norm", norm, norm > 0.0, "positive")?;
        }
        Ok(())
    }

    /// The coefficients of a step, counted from 1; `scale` turns sums of gradients into means.
    #[expect(clippy::cast_possible_truncation, reason = "parameters are f32")]
    pub(crate) fn step(&self, step: u32, scale: f64) -> Step {
        let Self { learning_rate, beta1, beta2, epsilon, weight_decay, .. } = *self;
        let steps = f64::from(step);
        Step {
            scale: scale as f32,
            beta1: beta1 as f32,
            beta2: beta2 as f32,
            fresh1: (1.0 - beta1) as f32,
            fresh2: (1.0 - beta2) as f32,
            rate: (learning_rate / (1.0 - beta1.powf(steps))) as f32,
            square_scale: (1.0 / (1.0 - beta2.powf(steps))) as f32,
            epsilon: epsilon as f32,
            keep: (1.0 - learning_rate * weight_decay) as f32,
            share: (2.0 / (steps + 1.0)) as f32,
        }
    }
}

/// The state of Adam.
pub(crate) struct AdamState<'s> {
    settings: &'s Adam,
    step: u32,
    /// The last step of the epoch before.
    epoch_start: u32,
    blocks: Vec<Memory>,
}

/// The state of Adam for one block.
enum Memory {
    Dense(DenseMemory),
    Table(TableMemory),
}

impl<'s> AdamState<'s> {
    pub(crate) fn new(settings: &'s Adam, parameters: &Parameters) -> Self {
        let blocks = parameters
            .0
            .iter()
            .map(|block| match block.updates {
                Updates::Dense | Updates::OfRows => {
                    Memory::Dense(DenseMemory::new(&block.values, settings.average))
                }
                Updates::Touched => Memory::Table(TableMemory::new(&block.values, settings.average)),
            })
            .collect();
        Self { settings, step: 0, epoch_start: 0, blocks }
    }

    /// Saves the parameters: `restore` returns to them.
    pub(crate) fn start_epoch(&mut self, parameters: &Parameters) {
        self.epoch_start = self.step;
        for (block, memory) in parameters.0.iter().zip(&mut self.blocks) {
            if let Memory::Dense(memory) = memory {
                memory.keep(&block.values);
            }
        }
    }

    /// Restores the parameters of the start of the epoch.
    pub(crate) fn restore(&self, parameters: &mut Parameters) {
        for (block, memory) in parameters.0.iter_mut().zip(&self.blocks) {
            match memory {
                Memory::Dense(memory) => memory.restore(&mut block.values),
                Memory::Table(memory) => memory.restore(&mut block.values, self.epoch_start),
            }
        }
    }

    /// One step along the gradient of a sum over `n_rows` rows, given in parts that are added in
    /// order. Returns whether parameters and moments are finite; if not, they cannot be used any
    /// more.
    pub(crate) fn step(&mut self, parameters: &mut Parameters, parts: &[Gradient], n_rows: usize) -> bool {
        self.step += 1;
        for (block, memory) in self.blocks.iter_mut().enumerate() {
            if let Memory::Table(memory) = memory {
                memory.sort(block, parts);
            }
        }
        let mut scale = 1.0 / n_rows as f64;
        if let Some(limit) = self.settings.clip_norm {
            let blocks = self.blocks.iter().zip(&parameters.0).enumerate();
            let squares = blocks.map(|(block, (memory, of_block))| match memory {
                Memory::Dense(memory) => memory.squared_norm(block, of_block.values.ncols(), parts),
                Memory::Table(memory) => memory.squared_norm(block, parts),
            });
            let norm = squares.sum::<f64>().sqrt() * scale;
            scale *= (limit / norm).min(1.0);
        }
        let step = self.settings.step(self.step, scale);
        let moment = Moment { step: self.step, epoch_start: self.epoch_start };
        let mut is_finite = true;
        for (place, (block, memory)) in parameters.0.iter_mut().zip(&mut self.blocks).enumerate() {
            let step = Step { keep: if block.decays { step.keep } else { 1.0 }, ..step };
            is_finite &= match memory {
                Memory::Dense(memory) => memory.update(step, &mut block.values, place, parts),
                Memory::Table(memory) => memory.update(step, moment, &mut block.values, place, parts),
            };
        }
        is_finite
    }

    /// Replaces the last weights by the averaged ones, if averaging is on.
    pub(crate) fn finish(&self, parameters: &mut Parameters) {
        if !self.settings.average || self.step == 0 {
            return;
        }
        for (block, memory) in parameters.0.iter_mut().zip(&self.blocks) {
            match memory {
                Memory::Dense(memory) => memory.finish(&mut block.values),
                Memory::Table(memory) => memory.finish(&mut block.values, self.step),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{LinearModel, Model};

    /// A dense block and a table of one and the same parameter, to see that the lazy way equals the plain one.
    fn model() -> LinearModel {
        LinearModel::new(1, &[2], 2).unwrap()
    }

    #[test]
    fn a_step_by_hand() {
        // First step: mean and square are bias-corrected to g and g², so the step is the learning rate, but for ε.
        let settings = Adam { learning_rate: 0.1, weight_decay: 0.5, average: false, ..Adam::default() };
        let mut model = model();
        model.parameters_mut().0[0].values.fill(2.0);
        model.parameters_mut().0[1].values.fill(2.0);
        let mut gradient = model.parameters().zero_gradient();
        gradient.dense_mut(0).fill(-3.0);
        gradient.dense_mut(1).fill(5.0);
        AdamState::new(&settings, model.parameters()).step(model.parameters_mut(), &[gradient], 4);
        assert!((model.weights()[[0, 0]] - (2.0 * 0.95 + 0.1)).abs() < 1e-6);
        assert!((model.intercept()[[0, 0]] - (2.0 - 0.1)).abs() < 1e-6); // does not decay
    }

    #[test]
    fn a_long_gradient_is_clipped_as_a_whole() {
        let run = |clip_norm, size: f32| {
            let settings = Adam { epsilon: 1.0, clip_norm, ..Adam::default() };
            let mut model = model();
            let mut gradient = model.parameters().zero_gradient();
            gradient.dense_mut(0).fill(3.0 * size);
            gradient.touched_mut(2).add(0, &[4.0 * size]);
            AdamState::new(&settings, model.parameters()).step(model.parameters_mut(), &[gradient], 1);
            model
        };
        assert_eq!(run(Some(1.0), 1.0), run(None, 0.2));
        assert_eq!(run(Some(10.0), 1.0), run(None, 1.0));
    }

    #[test]
    fn averages_weigh_step_t_by_t_touched_or_not() {
        let settings = Adam { learning_rate: 0.1, average: true, ..Adam::default() };
        let mut model = model();
        let mut state = AdamState::new(&settings, model.parameters());
        let (mut sum, mut sum_of_line, mut weight) = (0.0, 0.0, 0.0);
        for step in 1..=7_u8 {
            let mut gradient = model.parameters().zero_gradient();
            gradient.dense_mut(0).fill(f32::from(step));
            if step == 2 || step == 5 {
                gradient.touched_mut(2).add(1, &[1.0]);
            }
            state.step(model.parameters_mut(), &[gradient], 1);
            sum += f32::from(step) * model.weights()[[0, 0]];
            sum_of_line += f32::from(step) * model.categories(0)[[1, 0]];
            weight += f32::from(step);
        }
        state.finish(model.parameters_mut());
        assert!((model.weights()[[0, 0]] - sum / weight).abs() < 1e-6);
        assert!((model.categories(0)[[1, 0]] - sum_of_line / weight).abs() < 1e-6);
        assert!(model.categories(0)[[0, 0]].abs() < 1e-9); // never touched
        assert!(sum_of_line < 0.0);
    }

    #[test]
    fn refuses_settings_that_make_no_sense() {
        let refused = |change: fn(&mut Adam)| {
            let mut settings = Adam::default();
            change(&mut settings);
            settings.check().unwrap_err().to_string()
        };
        assert_eq!(
            refused(|adam| adam.learning_rate = -1.0),
            "learning rate is -1: it must be positive, at most 1e6"
        );
        assert_eq!(refused(|adam| adam.beta2 = 1.0), "beta2 is 1: it must be at least 0 and below 1");
        assert_eq!(refused(|adam| adam.epochs = 0), "number of epochs is 0: it must be at least 1");
        assert!(refused(|adam| adam.clip_norm = Some(0.0)).starts_with("clipping norm"));
        assert!(refused(|adam| adam.weight_decay = f64::NAN).starts_with("weight decay is NaN"));
    }
}
