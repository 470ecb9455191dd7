//! Adam's step for a run of parameters, in one pass: scaling, moments, step, average, and whether all stays finite.

#![expect(clippy::inline_always, reason = "a loop is only vectorised with all of its body in it")]

use super::sort::{line, place};
use super::vectorised;

/// The numbers of one step, the same for every parameter of a block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    /// From the gradient of a sum of rows to the clipped gradient of their mean.
    pub(crate) scale: f32,
    pub(crate) beta1: f32,
    pub(crate) beta2: f32,
    /// Learning rate with the correction of the young mean.
    pub(crate) rate: f32,
    /// Correction of the young squares.
    pub(crate) square_scale: f32,
    pub(crate) epsilon: f32,
    pub(crate) keep: f32,
    /// The newest weights' share of the average.
    pub(crate) share: f32,
}

impl Step {
    /// Updates one parameter and its moments; whether they are still finite.
    #[inline(always)]
    fn update(self, gradient: f32, weight: &mut f32, mean: &mut f32, square: &mut f32) -> bool {
        let gradient = gradient * self.scale;
        *mean = self.beta1 * *mean + (1.0 - self.beta1) * gradient;
        *square = self.beta2 * *square + (1.0 - self.beta2) * gradient * gradient;
        let size = (*square * self.square_scale).sqrt() + self.epsilon;
        *weight = *weight * self.keep - self.rate * *mean / size;
        // An infinite square would hide in the division.
        weight.is_finite() & square.is_finite()
    }
}

/// A run of a dense block; `average` is empty if there is none.
#[derive(Debug)]
pub(crate) struct Run<'a> {
    pub(crate) weights: &'a mut [f32],
    pub(crate) mean: &'a mut [f32],
    pub(crate) square: &'a mut [f32],
    pub(crate) average: &'a mut [f32],
}

impl Run<'_> {
    /// The first numbers, and the rest.
    pub(crate) fn split_at(self, at: usize) -> (Self, Self) {
        let (weights, weights_after) = self.weights.split_at_mut(at);
        let (mean, mean_after) = self.mean.split_at_mut(at);
        let (square, square_after) = self.square.split_at_mut(at);
        let (average, average_after) = self.average.split_at_mut(at.min(self.average.len()));
        (
            Run { weights, mean, square, average },
            Run { weights: weights_after, mean: mean_after, square: square_after, average: average_after },
        )
    }

    /// One step along the sum of gradients, each as long as the run; whether all stays finite.
    pub(crate) fn update<'g>(self, step: Step, gradients: impl Iterator<Item = &'g [f32]> + Clone) -> bool {
        vectorised(|| self.update_loop(step, gradients))
    }

    #[inline(always)]
    fn update_loop<'g>(self, step: Step, gradients: impl Iterator<Item = &'g [f32]> + Clone) -> bool {
        /// Numbers whose gradients are added up at a time, within the first cache.
        const PIECE: usize = 1024;
        let mut sums = [0.0; PIECE];
        let mut is_finite = true;
        let mut rest = self;
        let mut start = 0;
        while !rest.weights.is_empty() {
            let length = rest.weights.len().min(PIECE);
            let (run, after) = rest.split_at(length);
            let sum = sum_of(gradients.clone().map(|gradient| &gradient[start..start + length]), &mut sums);
            let moments = run.mean.iter_mut().zip(run.square);
            for ((weight, gradient), (mean, square)) in run.weights.iter_mut().zip(sum).zip(moments) {
                is_finite &= step.update(*gradient, weight, mean, square);
            }
            for (average, weight) in run.average.iter_mut().zip(run.weights) {
                *average += step.share * (*weight - *average);
            }
            rest = after;
            start += length;
        }
        is_finite
    }
}

/// The sum of slices of one length, in order; a single one is its own sum.
#[inline(always)]
fn sum_of<'g>(mut gradients: impl Iterator<Item = &'g [f32]>, sums: &'g mut [f32]) -> &'g [f32] {
    let first = gradients.next().expect("a batch has a chunk");
    let Some(second) = gradients.next() else { return first };
    let sums = &mut sums[..first.len()];
    for ((sum, first), second) in sums.iter_mut().zip(first).zip(second) {
        *sum = first + second;
    }
    for gradient in gradients {
        for (sum, gradient) in sums.iter_mut().zip(gradient) {
            *sum += gradient;
        }
    }
    sums
}

/// The sum of squares of a sum of gradients, in `f64`.
pub(crate) fn squared_norm<'g>(length: usize, gradients: impl Iterator<Item = &'g [f32]> + Clone) -> f64 {
    vectorised(|| squared_norm_loop(length, gradients))
}

#[inline(always)]
fn squared_norm_loop<'g>(length: usize, gradients: impl Iterator<Item = &'g [f32]> + Clone) -> f64 {
    const PIECE: usize = 1024;
    let mut sums = [0.0; PIECE];
    let mut lanes = [0.0_f64; LANES];
    let mut rest = 0.0;
    for start in (0..length).step_by(PIECE) {
        let range = start..length.min(start + PIECE);
        let sum = sum_of(gradients.clone().map(|gradient| &gradient[range.clone()]), &mut sums);
        let (tiles, tail) = sum.as_chunks::<LANES>();
        for tile in tiles {
            for (lane, value) in lanes.iter_mut().zip(tile) {
                *lane += f64::from(*value) * f64::from(*value);
            }
        }
        rest += tail.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>();
    }
    lanes.iter().sum::<f64>() + rest
}

/// Columns of a line that are worked on at a time: one vector of the widest kind.
const LANES: usize = 16;

/// A stretch of a table's lines, from line `first` on.
///
/// What is remembered of a line lies side by side, since lines are met in no order and each place costs a trip to memory:
/// mean, square, the weights before the epoch and, if asked for, the average.
#[derive(Debug)]
pub(crate) struct Stretch<'a> {
    pub(crate) first: usize,
    pub(crate) width: usize,
    /// 3 parts, or 4 with the average.
    pub(crate) n_parts: usize,
    pub(crate) weights: &'a mut [f32],
    pub(crate) memory: &'a mut [f32],
    /// The step that last touched each line; 0 for none.
    pub(crate) touched_at: &'a mut [u32],
}

/// When a step happens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    /// Counted from 1.
    pub(crate) step: u32,
    /// The last step of the epoch before.
    pub(crate) epoch_start: u32,
}

impl Stretch<'_> {
    /// The lines before line `at`, and the rest.
    pub(crate) fn split_at(self, at: usize) -> (Self, Self) {
        let Self { first, width, n_parts, .. } = self;
        let n_lines = at - first;
        let (weights, weights_after) = self.weights.split_at_mut(n_lines * width);
        let (memory, memory_after) = self.memory.split_at_mut(n_lines * width * n_parts);
        let (touched_at, touched_after) = self.touched_at.split_at_mut(n_lines);
        (
            Stretch { first, width, n_parts, weights, memory, touched_at },
            Stretch {
                first: at,
                width,
                n_parts,
                weights: weights_after,
                memory: memory_after,
                touched_at: touched_after,
            },
        )
    }

    /// One step for the lines of sorted items, along the sum of the gradients of each; whether all stays finite.
    /// `gradient` gives the gradient of an item by its place.
    pub(crate) fn update<'g>(
        self,
        step: Step,
        moment: Moment,
        items: &[u64],
        gradient: impl Fn(usize) -> &'g [f32],
    ) -> bool {
        vectorised(|| self.update_loop(step, moment, items, gradient))
    }

    #[inline(always)]
    fn update_loop<'g>(
        self,
        step: Step,
        moment: Moment,
        items: &[u64],
        gradient: impl Fn(usize) -> &'g [f32],
    ) -> bool {
        let Self { first, width, n_parts, weights, memory, touched_at } = self;
        let mut is_finite = true;
        for (group, ahead) in groups(items) {
            if let Some(item) = ahead {
                let next = line(item) - first;
                prefetch(&weights[next * width..][..width]);
                prefetch(&memory[next * width * n_parts..][..width * n_parts]);
            }
            let at = line(group[0]) - first;
            let weights = &mut weights[at * width..][..width];
            let memory = &mut memory[at * width * n_parts..][..width * n_parts];
            let touched = std::mem::replace(&mut touched_at[at], moment.step);
            let (mean, memory) = memory.split_at_mut(width);
            let (square, memory) = memory.split_at_mut(width);
            let (before, average) = memory.split_at_mut(width);
            if touched <= moment.epoch_start {
                before.copy_from_slice(weights);
            }
            if !average.is_empty() {
                catch_up(average, weights, touched, moment.step - 1);
            }
            let mut start = 0;
            while start < width {
                let length = LANES.min(width - start);
                let mut sums = [0.0; LANES];
                for &item in group {
                    add_tile(&mut sums, &gradient(place(item))[start..start + length]);
                }
                let range = start..start + length;
                is_finite &= update_tile(
                    step,
                    &sums,
                    &mut weights[range.clone()],
                    &mut mean[range.clone()],
                    &mut square[range],
                );
                start += length;
            }
            for (average, weight) in average.iter_mut().zip(weights) {
                *average += step.share * (*weight - *average);
            }
        }
        is_finite
    }
}

/// Whole tiles are arrays, whose loops become single instructions.
#[inline(always)]
fn add_tile(sums: &mut [f32; LANES], gradient: &[f32]) {
    if let Some(gradient) = gradient.as_array::<LANES>() {
        for (sum, value) in sums.iter_mut().zip(gradient) {
            *sum += value;
        }
    } else {
        for (sum, value) in sums.iter_mut().zip(gradient) {
            *sum += value;
        }
    }
}

#[inline(always)]
fn update_tile(
    step: Step,
    gradient: &[f32; LANES],
    weights: &mut [f32],
    mean: &mut [f32],
    square: &mut [f32],
) -> bool {
    let mut is_finite = true;
    if let (Some(weights), Some(mean), Some(square)) =
        (weights.as_mut_array::<LANES>(), mean.as_mut_array::<LANES>(), square.as_mut_array::<LANES>())
    {
        for lane in 0..LANES {
            is_finite &= step.update(gradient[lane], &mut weights[lane], &mut mean[lane], &mut square[lane]);
        }
    } else {
        for (((gradient, weight), mean), square) in gradient.iter().zip(weights).zip(mean).zip(square) {
            is_finite &= step.update(*gradient, weight, mean, square);
        }
    }
    is_finite
}

/// Brings a line's average up to step `to`: its weights have stood still since step `from` touched it.
///
/// The share of the old average that is left is Π (1 − 2/(t+1)) over the steps in between, t − 1 over t + 1.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "averages are f32")]
pub(crate) fn catch_up(average: &mut [f32], weights: &[f32], from: u32, to: u32) {
    if to == 0 {
        return;
    }
    let (from, to) = (f64::from(from), f64::from(to));
    let left = (from * (from + 1.0) / (to * (to + 1.0))) as f32;
    for (average, weight) in average.iter_mut().zip(weights) {
        *average = weight + left * (*average - weight);
    }
}

/// The sum of squares of the gradients of lines, each the sum of its items.
pub(crate) fn squared_norm_of_lines<'g>(
    items: &[u64],
    width: usize,
    gradient: impl Fn(usize) -> &'g [f32],
) -> f64 {
    let mut norm = 0.0;
    for (group, _) in groups(items) {
        for start in (0..width).step_by(LANES) {
            let range = start..width.min(start + LANES);
            let mut sums = [0.0; LANES];
            for &item in group {
                add_tile(&mut sums, &gradient(place(item))[range.clone()]);
            }
            norm += sums.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>();
        }
    }
    norm
}

/// Sorted items line by line, each with an item that will be met soon.
#[inline(always)]
fn groups(items: &[u64]) -> impl Iterator<Item = (&[u64], Option<u64>)> {
    /// How far ahead: long enough for memory to answer, short enough to stay in the first cache.
    const AHEAD: usize = 8;
    let mut start = 0;
    std::iter::from_fn(move || {
        let rest = items.get(start..).filter(|rest| !rest.is_empty())?;
        let length = 1 + rest[1..].iter().take_while(|&&item| line(item) == line(rest[0])).count();
        start += length;
        Some((&rest[..length], items.get(start + AHEAD).copied()))
    })
}

/// Tells the memory that these numbers will be asked for.
#[inline(always)]
fn prefetch(values: &[f32]) {
    #[cfg(target_arch = "x86_64")]
    for line in values.chunks(16) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        #[expect(unsafe_code, reason = "an instruction with a pointer")]
        // SAFETY: prefetching reads nothing that the program sees, and the pointer is that of a slice.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = values;
}
