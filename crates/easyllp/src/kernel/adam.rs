//! Adam's step for a run of parameters, in one pass: scaling, moments, step, average, and whether all stays finite.

#![expect(clippy::inline_always, reason = "a loop is only vectorised with all of its body in it")]

use super::sort::{line, place};
use super::{prefetch, vectorised};

/// The numbers of one step, the same for every parameter of a block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    /// From the gradient of a sum of rows to the clipped gradient of their mean.
    pub(crate) scale: f32,
    pub(crate) beta1: f32,
    pub(crate) beta2: f32,
    /// 1 − beta of each: betas near 1 have hardly a digit left in the difference of two `f32`.
    pub(crate) fresh1: f32,
    pub(crate) fresh2: f32,
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
        *mean = zero_if_tiny(self.beta1 * *mean + self.fresh1 * gradient);
        *square = zero_if_tiny(self.beta2 * *square + self.fresh2 * gradient * gradient);
        let size = (*square * self.square_scale).sqrt() + self.epsilon;
        *weight = *weight * self.keep - self.rate * *mean / size;
        // An infinite square would hide in the division.
        weight.is_finite() & square.is_finite()
    }
}

/// The moments of a parameter that no row reaches decay to 0. Before they become subnormal numbers,
/// which cost the processor a hundred cycles each, they are set to 0.
#[inline(always)]
fn zero_if_tiny(value: f32) -> f32 {
    if value.abs() < 1e-34 { 0.0 } else { value }
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
        vectorised(
            #[inline(always)]
            || self.update_loop(step, gradients),
        )
    }

    #[inline(always)]
    fn update_loop<'g>(self, step: Step, gradients: impl Iterator<Item = &'g [f32]> + Clone) -> bool {
        let mut sums = [0.0; PIECE];
        let mut is_finite = true;
        let mut rest = self;
        let mut start = 0;
        while !rest.weights.is_empty() {
            let length = rest.weights.len().min(PIECE);
            let (run, after) = rest.split_at(length);
            let sum = sum_of(gradients.clone().map(|gradient| &gradient[start..start + length]), &mut sums);
            is_finite &= run.update_along(step, sum);
            rest = after;
            start += length;
        }
        is_finite
    }

    #[inline(always)]
    fn update_along(self, step: Step, gradient: &[f32]) -> bool {
        let mut is_finite = true;
        let (gradients, last_gradient) = gradient.as_chunks::<LANES>();
        let (weights, last_weights) = self.weights.as_chunks_mut::<LANES>();
        let (means, last_mean) = self.mean.as_chunks_mut::<LANES>();
        let (squares, last_square) = self.square.as_chunks_mut::<LANES>();
        for (((gradient, weights), mean), square) in gradients.iter().zip(weights).zip(means).zip(squares) {
            is_finite &= update_tile(step, gradient, weights, mean, square);
        }
        let last = last_gradient.iter().zip(last_weights).zip(last_mean).zip(last_square);
        for (((gradient, weight), mean), square) in last {
            is_finite &= step.update(*gradient, weight, mean, square);
        }
        for (average, weight) in self.average.iter_mut().zip(self.weights) {
            *average += step.share * (*weight - *average);
        }
        is_finite
    }
}

/// Numbers whose gradients are added up at a time.
const PIECE: usize = 1024;

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
    vectorised(
        #[inline(always)]
        || squared_norm_loop(length, gradients),
    )
}

#[inline(always)]
fn squared_norm_loop<'g>(length: usize, gradients: impl Iterator<Item = &'g [f32]> + Clone) -> f64 {
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

/// Columns of a line that are processed at a time: one vector of the widest kind.
const LANES: usize = 16;

/// A range of a table's lines, starting at line `first`.
///
/// The state of a line is contiguous, since lines are touched in no order and each access costs a
/// trip to memory: mean, square, the weights before the epoch and, if averaging is on, the average.
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
        vectorised(
            #[inline(always)]
            || self.update_loop(step, moment, items, gradient),
        )
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
#[inline(always)]
fn catch_up(average: &mut [f32], weights: &[f32], from: u32, to: u32) {
    if to == 0 {
        return;
    }
    let left = left_of_average(from, to);
    for (average, weight) in average.iter_mut().zip(weights) {
        *average = weight + left * (*average - weight);
    }
}

/// Puts the average of a line at step `to` into the place of its weights. The average itself stays that of step `from`, so that it can be asked
/// for at any step.
pub(crate) fn put_average(average: &[f32], weights: &mut [f32], from: u32, to: u32) {
    let left = left_of_average(from, to);
    for (weight, average) in weights.iter_mut().zip(average) {
        *weight += left * (average - *weight);
    }
}

/// What is left of the average of step `from` at step `to`, if the weights stood still: Π (1 − 2/(t+1)) over the steps in between, t − 1
/// over t + 1.
#[expect(clippy::cast_possible_truncation, reason = "averages are f32")]
fn left_of_average(from: u32, to: u32) -> f32 {
    let (from, to) = (f64::from(from), f64::from(to));
    (from * (from + 1.0) / (to * (to + 1.0))) as f32
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

#[cfg(test)]
mod tests {
    use super::super::sort::{pack, sort_by_line};
    use super::*;
    use crate::kernel::every_arch;
    use crate::rounding::Sum;
    use proptest::prelude::*;

    const STEP: Step = Step {
        scale: 0.25,
        beta1: 0.9,
        beta2: 0.99,
        fresh1: 0.1,
        fresh2: 0.01,
        rate: 0.02,
        square_scale: 1.7,
        epsilon: 1e-8,
        keep: 0.999,
        share: 0.3,
    };

    fn numbers(n: usize, seed: f32) -> Vec<f32> {
        (0..n).map(|i| (i as f32 * 0.7 + seed).sin()).collect()
    }

    /// One parameter updated by the textbook formulas: weight, mean, square and average after a
    /// step.
    fn plain(gradient: f32, [weight, mean, square, average]: [f32; 4]) -> [f32; 4] {
        let gradient = gradient * STEP.scale;
        let mean = zero_if_tiny(STEP.beta1 * mean + 0.1 * gradient);
        let square = zero_if_tiny(STEP.beta2 * square + 0.01 * gradient * gradient);
        let size = (square * STEP.square_scale).sqrt() + STEP.epsilon;
        let weight = weight * STEP.keep - STEP.rate * mean / size;
        [weight, mean, square, average + STEP.share * (weight - average)]
    }

    fn bits(values: &[f32]) -> Vec<u32> {
        values.iter().map(|value| value.to_bits()).collect()
    }

    proptest! {
        /// Parameter by parameter is the oracle, on every kind of vectors.
        #[test]
        fn a_run_equals_single_parameters(
            length in prop::sample::select(vec![1_usize, 3, 16, 17, 100, 1023, 1024, 1025, 2500]),
            n_parts in 1_usize..4,
            averages in any::<bool>(),
        ) {
            let parts: Vec<Vec<f32>> = (0_u8..).take(n_parts).map(|part| numbers(length, f32::from(part))).collect();
            let [weights, mean, average] = [5.0, 6.0, 8.0].map(|seed| numbers(length, seed));
            let square: Vec<f32> = numbers(length, 7.0).iter().map(|value| value * value).collect();
            let expected: Vec<[f32; 4]> = (0..length)
                .map(|at| {
                    let gradient = parts.iter().map(|part| part[at]).reduce(|sum, value| sum + value);
                    plain(gradient.unwrap(), [weights[at], mean[at], square[at], average[at]])
                })
                .collect();
            for arch in every_arch() {
                let [mut weights, mut mean, mut square] = [weights.clone(), mean.clone(), square.clone()];
                let mut average = if averages { average.clone() } else { Vec::new() };
                let run =
                    Run { weights: &mut weights, mean: &mut mean, square: &mut square, average: &mut average };
                let slices = parts.iter().map(Vec::as_slice);
                let is_finite = arch.dispatch(#[inline(always)] || run.update_loop(STEP, slices));
                prop_assert!(is_finite);
                for (part, got) in [weights, mean, square, average].iter().enumerate() {
                    let expected: Vec<f32> = expected.iter().map(|of| of[part]).take(got.len()).collect();
                    prop_assert_eq!(bits(got), bits(&expected));
                }
            }
        }

        #[test]
        fn norms_equal_plain_sums(length in 0_usize..2100, n_parts in 1_usize..4) {
            let parts: Vec<Vec<f32>> = (0_u8..).take(n_parts).map(|part| numbers(length, f32::from(part))).collect();
            let expected: Sum = (0..length)
                .map(|at| f64::from(parts.iter().map(|part| part[at]).sum::<f32>()).powi(2))
                .collect();
            let of = |arch: pulp::Arch| {
                let slices = parts.iter().map(Vec::as_slice);
                arch.dispatch(#[inline(always)] || squared_norm_loop(length, slices))
            };
            for arch in every_arch() {
                prop_assert!(expected.equals(of(arch)));
                prop_assert_eq!(of(arch).to_bits(), of(pulp::Arch::Scalar).to_bits());
            }
        }

        /// A table of 7 lines, touched in any order and again and again, equals single parameters with summed gradients.
        #[test]
        fn lines_equal_single_parameters(
            touches in prop::collection::vec(0_u32..7, 0..30),
            width in prop::sample::select(vec![1_usize, 2, 15, 16, 17, 33, 64]),
            averages in any::<bool>(),
        ) {
            let n_parts = if averages { 4 } else { 3 };
            let gradients = numbers(touches.len() * width, 0.5);
            let gradient = |place: usize| &gradients[place * width..][..width];
            let (before, memory_before) = (numbers(7 * width, 1.5), {
                let mut memory = numbers(7 * width * n_parts, 2.5);
                for value in &mut memory {
                    *value *= *value;
                }
                memory
            });
            let touched_before = [0, 1, 2, 3, 4, 5, 6];
            let moment = Moment { step: 9, epoch_start: 4 };
            let mut items: Vec<u64> = (0..).zip(&touches).map(|(place, &line)| pack(line, place)).collect();
            sort_by_line(&mut items, &mut Vec::new(), 7);
            let mut norm = Sum::default();
            for arch in every_arch() {
                let (mut weights, mut memory, mut touched_at) = (before.clone(), memory_before.clone(), touched_before);
                let stretch = Stretch {
                    first: 0,
                    width,
                    n_parts,
                    weights: &mut weights,
                    memory: &mut memory,
                    touched_at: &mut touched_at,
                };
                let is_finite =
                    arch.dispatch(#[inline(always)] || stretch.update_loop(STEP, moment, &items, gradient));
                prop_assert!(is_finite);
                norm = Sum::default();
                for line in 0..7_u32 {
                    let row = line as usize;
                    let mut places = (0..touches.len()).filter(|&place| touches[place] == line).peekable();
                    let is_touched = places.peek().is_some();
                    prop_assert_eq!(touched_at[row], if is_touched { 9 } else { line });
                    let mut sums = vec![0.0_f32; width];
                    places.for_each(|place| sums.iter_mut().zip(gradient(place)).for_each(|(sum, value)| *sum += value));
                    for &sum in &sums {
                        norm.add(f64::from(sum).powi(2));
                    }
                    for (column, sum) in sums.into_iter().enumerate() {
                        let part = |memory: &[f32], part: usize| memory[row * width * n_parts + part * width + column];
                        let weight = before[row * width + column];
                        let [mean, square, kept] = [0, 1, 2].map(|which| part(&memory_before, which));
                        if !is_touched {
                            prop_assert_eq!(weights[row * width + column].to_bits(), weight.to_bits());
                            continue;
                        }
                        let mut average = [0.0];
                        if averages {
                            average = [part(&memory_before, 3)];
                            catch_up(&mut average, &[weight], line, 8);
                        }
                        let expected = plain(sum, [weight, mean, square, average[0]]);
                        prop_assert_eq!(weights[row * width + column].to_bits(), expected[0].to_bits());
                        prop_assert_eq!(part(&memory, 0).to_bits(), expected[1].to_bits());
                        prop_assert_eq!(part(&memory, 1).to_bits(), expected[2].to_bits());
                        // Lines 0 to 4 were last touched before this epoch: their weights are kept.
                        let kept = if line <= 4 { weight } else { kept };
                        prop_assert_eq!(part(&memory, 2).to_bits(), kept.to_bits());
                        if averages {
                            prop_assert_eq!(part(&memory, 3).to_bits(), expected[3].to_bits());
                        }
                    }
                }
            }
            prop_assert!(norm.equals(squared_norm_of_lines(&items, width, gradient)));
        }
    }

    /// After a thousand steps without a gradient, the mean would be a subnormal number, and slow.
    #[test]
    fn moments_fade_to_zero() {
        let [mut weights, mut mean, mut square] = [[0.5; 3], [1e-4; 3], [1e-8; 3]];
        for _ in 0..1000 {
            let run = Run { weights: &mut weights, mean: &mut mean, square: &mut square, average: &mut [] };
            assert!(run.update(STEP, std::iter::once(&[0.0; 3][..])));
            assert!(!mean.iter().chain(&square).any(|value| value.is_subnormal()));
        }
        assert_eq!(bits(&mean), [0; 3]);
    }

    #[test]
    fn what_is_not_finite_is_told() {
        for bad in [f32::NAN, f32::INFINITY, 1e30] {
            let gradient = [1.0, bad, 1.0];
            let [mut weights, mut mean, mut square] = [[0.0; 3]; 3];
            let run = Run { weights: &mut weights, mean: &mut mean, square: &mut square, average: &mut [] };
            assert!(!run.update(STEP, std::iter::once(&gradient[..])), "{bad}");
            let (mut weights, mut memory) = ([0.0; 3], [0.0; 9]);
            let stretch = Stretch {
                first: 0,
                width: 3,
                n_parts: 3,
                weights: &mut weights,
                memory: &mut memory,
                touched_at: &mut [0],
            };
            let moment = Moment { step: 1, epoch_start: 0 };
            assert!(!stretch.update(STEP, moment, &[pack(0, 0)], |_| &gradient[..]), "{bad}");
        }
    }
}
