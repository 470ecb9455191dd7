//! The state of Adam for a table of which a step touches few lines: a step costs only these lines.
//!
//! The touches of a batch are sorted by line, so that each line is updated once, and threads can share the table as
//! stretches of it.

use crate::kernel::{
    Moment, Step, Stretch, join, line, pack, put_average, sort_by_line, squared_norm_of_lines,
    table_of_zeros, wish_for_large_pages,
};
use crate::model::{BlockGradient, Gradient, Touched};
use ndarray::Array2;
use rayon::prelude::*;

/// Touches that one thread works on before it looks for other work.
const PIECE: usize = 512;

pub(super) struct TableMemory {
    averages: bool,
    n_lines: usize,
    width: usize,
    /// Of each line its mean, square, weights before the epoch and, if asked for, average: see [`Stretch`].
    memory: Array2<f32>,
    /// The step that last touched each line; 0 for none.
    touched_at: Vec<u32>,
    /// The touches of a batch, sorted, and space to sort.
    items: Vec<u64>,
    scratch: Vec<u64>,
    /// Where the touches of each part of a batch start.
    starts: Vec<usize>,
}

impl TableMemory {
    pub(super) fn new(values: &Array2<f32>, averages: bool) -> Self {
        let (n_lines, width) = values.dim();
        let memory = table_of_zeros(n_lines, width * n_parts(averages));
        let mut touched_at = vec![0; n_lines];
        wish_for_large_pages(&mut touched_at);
        let (items, scratch, starts) = (Vec::new(), Vec::new(), Vec::new());
        Self { averages, n_lines, width, memory, touched_at, items, scratch, starts }
    }

    /// Takes up the touches of a batch, to be called before all that follows.
    #[expect(clippy::cast_possible_truncation, reason = "a batch has fewer touches than u32 can count")]
    pub(super) fn sort(&mut self, block: usize, parts: &[Gradient]) {
        self.items.clear();
        self.starts.clear();
        for part in parts {
            let start = self.items.len();
            self.starts.push(start);
            let lines = touched(block, part).lines();
            self.items.extend(lines.iter().zip(start as u32..).map(|(&line, place)| pack(line, place)));
        }
        sort_by_line(&mut self.items, &mut self.scratch, self.n_lines);
    }

    pub(super) fn squared_norm(&self, block: usize, parts: &[Gradient]) -> f64 {
        squared_norm_of_lines(&self.items, self.width, gradients(&self.starts, block, parts))
    }

    pub(super) fn update(
        &mut self,
        step: Step,
        moment: Moment,
        values: &mut Array2<f32>,
        block: usize,
        parts: &[Gradient],
    ) -> bool {
        let stretch = Stretch {
            first: 0,
            width: self.width,
            n_parts: n_parts(self.averages),
            weights: values.as_slice_mut().expect("parameters are contiguous"),
            memory: self.memory.as_slice_mut().expect("a table is contiguous"),
            touched_at: &mut self.touched_at,
        };
        update_stretch(step, moment, stretch, &self.items, &gradients(&self.starts, block, parts))
    }

    /// Puts lines back that were touched since the epoch started.
    pub(super) fn restore(&self, values: &mut Array2<f32>, epoch_start: u32) {
        let width = self.width;
        let memory = self.memory.rows();
        for ((mut line, memory), &touched_at) in
            values.rows_mut().into_iter().zip(memory).zip(&self.touched_at)
        {
            if touched_at > epoch_start {
                line.assign(&memory.slice(ndarray::s![2 * width..3 * width]));
            }
        }
    }

    /// Puts the averages of touched lines in their places; the others have never moved.
    pub(super) fn finish(&self, values: &mut Array2<f32>, step: u32) {
        let width = self.width;
        let weights = values.as_slice_mut().expect("parameters are contiguous");
        let memory = self.memory.as_slice().expect("a table is contiguous");
        let memory = memory.par_chunks_exact((width * n_parts(true)).max(1));
        let lines = weights.par_chunks_exact_mut(width.max(1)).zip(memory).zip(&self.touched_at);
        lines.filter(|(_, touched_at)| **touched_at > 0).for_each(|((weights, memory), &touched_at)| {
            put_average(&memory[3 * width..], weights, touched_at, step);
        });
    }
}

fn n_parts(averages: bool) -> usize {
    if averages { 4 } else { 3 }
}

/// The items of a stretch in halves, cut between lines. Lines do not depend on each other.
fn update_stretch<'g>(
    step: Step,
    moment: Moment,
    stretch: Stretch,
    items: &[u64],
    gradient: &(impl Fn(usize) -> &'g [f32] + Sync),
) -> bool {
    let middle = items.len() / 2;
    let same = items[middle..].iter().take_while(|&&item| line(item) == line(items[middle])).count();
    let (before, after) = items.split_at(middle + same);
    if items.len() <= PIECE || after.is_empty() {
        return stretch.update(step, moment, items, gradient);
    }
    let (first, second) = stretch.split_at(line(after[0]));
    let (first, second) = join(
        || update_stretch(step, moment, first, before, gradient),
        || update_stretch(step, moment, second, after, gradient),
    );
    first & second
}

/// The gradient of a touch by its place among those of all parts.
fn gradients<'g>(
    starts: &'g [usize],
    block: usize,
    parts: &'g [Gradient],
) -> impl Fn(usize) -> &'g [f32] + Sync {
    move |place| {
        let part = starts.partition_point(|&start| start <= place) - 1;
        touched(block, &parts[part]).gradient(place - starts[part])
    }
}

fn touched(block: usize, part: &Gradient) -> &Touched {
    match &part.blocks[block] {
        BlockGradient::Touched(touched) => touched,
        _ => unreachable!("gradients of one model have one form"),
    }
}
