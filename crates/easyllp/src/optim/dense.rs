//! The state of Adam for a dense block.

use crate::kernel::{Onto, Run, Step, join, product, squared_norm};
use crate::model::{BlockGradient, Gradient};
use ndarray::{Array2, ArrayView2, ArrayViewMut2, s};
use std::cell::RefCell;

/// Numbers that one thread updates before it looks for other work.
const PIECE: usize = 1 << 14;

/// The same of numbers whose gradient has to be multiplied out first: a good part of a core's own cache.
const MULTIPLIED: usize = 1 << 16;

/// Lines of such a block are processed in groups of this size, for full vectors.
const LINES: usize = 16;

pub(super) struct DenseMemory {
    mean: Vec<f32>,
    square: Vec<f32>,
    /// Averaged weights; empty if averaging is off.
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

    pub(super) fn finish(&self, values: &mut Array2<f32>) {
        values.as_slice_mut().expect("parameters are contiguous").copy_from_slice(&self.average);
    }

    pub(super) fn squared_norm(&self, block: usize, width: usize, parts: &[Gradient]) -> f64 {
        Parts { block, width, gradients: parts }.squared_norm(0, self.mean.len())
    }

    /// Parameters are independent of each other, so any split between threads works.
    pub(super) fn update(
        &mut self,
        step: Step,
        values: &mut Array2<f32>,
        block: usize,
        parts: &[Gradient],
    ) -> bool {
        let width = values.ncols();
        let weights = values.as_slice_mut().expect("parameters are contiguous");
        let Self { mean, square, average, .. } = self;
        Parts { block, width, gradients: parts }.update(step, Run { weights, mean, square, average }, 0)
    }
}

/// The gradient of a block of some width, in parts that are to be added up.
#[derive(Clone, Copy)]
struct Parts<'g> {
    block: usize,
    width: usize,
    gradients: &'g [Gradient],
}

impl<'g> Parts<'g> {
    fn update(self, step: Step, run: Run, start: usize) -> bool {
        let length = run.weights.len();
        if let Some(middle) = self.middle(length) {
            let (first, second) = run.split_at(middle);
            let (first, second) =
                join(|| self.update(step, first, start), || self.update(step, second, start + middle));
            return first & second;
        }
        if self.is_of_rows() {
            self.multiplied(start, length, |gradient| run.update(step, std::iter::once(gradient)))
        } else {
            run.update(step, self.slices(start, length))
        }
    }

    /// The sum of squares of a range, always cut at the same places: threads change nothing.
    fn squared_norm(self, start: usize, length: usize) -> f64 {
        if let Some(middle) = self.middle(length) {
            let (first, second) = join(
                || self.squared_norm(start, middle),
                || self.squared_norm(start + middle, length - middle),
            );
            return first + second;
        }
        if self.is_of_rows() {
            self.multiplied(start, length, |gradient| squared_norm(length, std::iter::once(gradient)))
        } else {
            squared_norm(length, self.slices(start, length))
        }
    }

    /// Where a range is cut in about half, if it is too long for one thread.
    fn middle(self, length: usize) -> Option<usize> {
        let (most, unit) = if self.is_of_rows() { (MULTIPLIED, LINES * self.width) } else { (PIECE, PIECE) };
        (length > most.max(unit)).then(|| (length / 2).next_multiple_of(unit))
    }

    fn is_of_rows(self) -> bool {
        matches!(self.gradients[0].blocks[self.block], BlockGradient::OfRows(_))
    }

    /// The same range of each part's gradient.
    fn slices(self, start: usize, length: usize) -> impl Iterator<Item = &'g [f32]> + Clone {
        self.gradients.iter().map(move |part| match &part.blocks[self.block] {
            BlockGradient::Dense(values) => {
                &values.as_slice().expect("gradients are contiguous")[start..start + length]
            }
            _ => unreachable!("gradients of one model have one form"),
        })
    }

    /// The sum over a range of whole lines, computed when it is needed as a product with features
    /// of the rows; it stays in the cache.
    fn multiplied<R>(self, start: usize, length: usize, work: impl FnOnce(&[f32]) -> R) -> R {
        thread_local! {
            static SPACE: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
        }
        SPACE.with_borrow_mut(|space| {
            if space.len() < length {
                space.resize(length, 0.0);
            }
            let out = &mut space[..length];
            let features = start / self.width..(start + length) / self.width;
            for (place, part) in self.gradients.iter().enumerate() {
                let BlockGradient::OfRows(derivative) = &part.blocks[self.block] else {
                    unreachable!("gradients of one model have one form");
                };
                let derivative = &derivative[..part.n_rows * self.width];
                let shape = "a line per row";
                product(
                    part.rows.batch(part.n_rows).dense.slice(s![.., features.clone()]).t(),
                    ArrayView2::from_shape((part.n_rows, self.width), derivative).expect(shape),
                    if place == 0 { Onto::Overwrite } else { Onto::Add },
                    ArrayViewMut2::from_shape((features.len(), self.width), &mut *out).expect(shape),
                );
            }
            work(out)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Block, Parameters, Updates};
    use crate::optim::{Adam, AdamState};
    use crate::rows::Rows;

    /// A gradient that comes as a product does what the product itself does, whatever the shape and the number of parts: one step,
    /// cut off or not.
    #[test]
    fn products_are_multiplied_out() {
        for (n_features, width, sizes) in
            [(1, 1, vec![1]), (5, 3, vec![4]), (33, 7, vec![20, 3]), (300, 256, vec![9, 9, 2])]
        {
            for clip_norm in [None, Some(0.5)] {
                let values = Array2::from_shape_fn((n_features, width), |(i, j)| ((i * 5 + j) as f32).sin());
                let parameters =
                    |updates| Parameters::new(vec![Block::new("w", values.clone(), updates, true)]);
                let settings = Adam { clip_norm, average: false, ..Adam::default() };
                let step = |updates, gradients: &[Gradient]| {
                    let mut parameters = parameters(updates);
                    assert!(AdamState::new(&settings, &parameters).step(&mut parameters, gradients, 10));
                    parameters.blocks()[0].values().to_owned()
                };
                let (mut products, mut multiplied) = (Vec::new(), Vec::new());
                for &n_rows in &sizes {
                    let features =
                        Array2::from_shape_fn((n_rows, n_features), |(i, j)| ((i + 3 * j) as f32).cos());
                    let slopes = Array2::from_shape_fn((n_rows, width), |(i, j)| ((2 * i + j) as f32).sin());
                    let mut dense = parameters(Updates::Dense).zero_gradient();
                    dense.dense_mut(0).assign(&features.t().dot(&slopes));
                    multiplied.push(dense);
                    let rows = Rows::dense(features).unwrap();
                    let mut product = parameters(Updates::OfRows).zero_gradient();
                    product.of_rows_mut(0).extend(&slopes);
                    // Space for more rows than there are, as a last batch has it.
                    (product.rows, product.n_rows) = (rows.as_dense().unwrap().buffer(n_rows + 2), n_rows);
                    let all: Vec<u32> = (0..).take(n_rows).collect();
                    rows.as_dense().unwrap().gather(&all, &mut product.rows);
                    products.push(product);
                }
                let (got, expected) = (step(Updates::OfRows, &products), step(Updates::Dense, &multiplied));
                for (got, expected) in got.iter().zip(&expected) {
                    assert!((got - expected).abs() < 1e-5, "{n_features} {width} {clip_norm:?}");
                }
            }
        }
    }
}
