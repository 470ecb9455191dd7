//! What Adam remembers of a block whose numbers change in every step.

use crate::kernel::{Run, Step, join, squared_norm};
use crate::model::{BlockGradient, Gradient};
use ndarray::Array2;

/// Numbers that one thread updates before it looks for other work.
const PIECE: usize = 1 << 14;

pub(super) struct DenseMemory {
    mean: Vec<f32>,
    square: Vec<f32>,
    /// Averaged weights; empty when they are not asked for.
    average: Vec<f32>,
    /// The weights before the epoch.
    before: Vec<f32>,
}

impl DenseMemory {
    pub(super) fn new(values: &Array2<f32>, averages: bool) -> Self {
        let zeros = || vec![0.0; values.len()];
        let average = if averages { zeros() } else { Vec::new() };
        Self { mean: zeros(), square: zeros(), average, before: zeros() }
    }

    pub(super) fn keep(&mut self, values: &Array2<f32>) {
        self.before.copy_from_slice(values.as_slice().expect("parameters are contiguous"));
    }

    pub(super) fn restore(&self, values: &mut Array2<f32>) {
        values.as_slice_mut().expect("parameters are contiguous").copy_from_slice(&self.before);
    }

    pub(super) fn finish(&mut self, values: &mut Array2<f32>) {
        values.as_slice_mut().expect("parameters are contiguous").copy_from_slice(&self.average);
    }

    pub(super) fn squared_norm(&self, block: usize, parts: &[Gradient]) -> f64 {
        norm_of_range(0, self.mean.len(), block, parts)
    }

    /// Numbers do not depend on each other, so that it does not matter how threads share them.
    pub(super) fn update(
        &mut self,
        step: Step,
        values: &mut Array2<f32>,
        block: usize,
        parts: &[Gradient],
    ) -> bool {
        let weights = values.as_slice_mut().expect("parameters are contiguous");
        let Self { mean, square, average, .. } = self;
        update_run(step, Run { weights, mean, square, average }, 0, block, parts)
    }
}

fn update_run(step: Step, run: Run, start: usize, block: usize, parts: &[Gradient]) -> bool {
    let length = run.weights.len();
    if length <= PIECE {
        return run.update(step, slices(start, length, block, parts));
    }
    let middle = middle(length);
    let (first, second) = run.split_at(middle);
    let (first, second) = join(
        || update_run(step, first, start, block, parts),
        || update_run(step, second, start + middle, block, parts),
    );
    first & second
}

/// The sum of squares of a range, always cut at the same places: threads change nothing.
fn norm_of_range(start: usize, length: usize, block: usize, parts: &[Gradient]) -> f64 {
    if length <= PIECE {
        return squared_norm(length, slices(start, length, block, parts));
    }
    let middle = middle(length);
    let (first, second) = join(
        || norm_of_range(start, middle, block, parts),
        || norm_of_range(start + middle, length - middle, block, parts),
    );
    first + second
}

/// About half of it, in whole pieces.
fn middle(length: usize) -> usize {
    length.div_ceil(PIECE).div_ceil(2) * PIECE
}

/// The same range of each part's gradient.
fn slices(
    start: usize,
    length: usize,
    block: usize,
    parts: &[Gradient],
) -> impl Iterator<Item = &[f32]> + Clone {
    parts.iter().map(move |part| match &part.0[block] {
        BlockGradient::Dense(values) => {
            &values.as_slice().expect("gradients are contiguous")[start..start + length]
        }
        BlockGradient::Touched(_) => unreachable!("gradients of one model have one form"),
    })
}
