//! Minibatches with Adam.
//!
//! A batch is cut into chunks of a fixed number of rows, which threads work on apart and whose gradients are added in
//! order: the bytes of the result do not depend on the number of threads.

use super::{EpochLog, Progress, Stop, TrainLog};
use crate::correction::Targets;
use crate::error::{Error, Result};
use crate::loss::TrainingLoss;
use crate::method::TargetRule;
use crate::model::{Draws, Gradient, Model, Pass};
use crate::optim::{Adam, AdamState};
use crate::rows::{RowBuffer, Rows};
use crate::seed::{Stream, stream};
use ndarray::{Array2, s};
use rand::RngExt;
use rand::seq::SliceRandom;
use rayon::prelude::*;
use std::ops::ControlFlow;

/// Rows in a chunk: small enough to share out a batch, large enough for a matrix product to be worth it.
const CHUNK: usize = 128;

/// Beyond this the squares that Adam keeps of a gradient no longer fit in `f32`.
const LARGEST_SQUARE: f64 = 1e36;

pub(super) fn fit<M: Model>(
    settings: &Adam,
    seed: u64,
    model: &mut M,
    rows: &Rows,
    rule: &mut dyn TargetRule,
    loss: &dyn TrainingLoss,
    watch: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<TrainLog> {
    settings.check()?;
    let mut order = rule.rows();
    let mut rng = stream(seed, Stream::Shuffle);
    let draws = Draws::new(stream(seed, Stream::Dropout).random());
    let mut chunks_done = 0;
    let mut targets = Targets::zeros(rule.n_rows(), rule.n_classes());
    let batch_size = settings.batch_size.min(order.len());
    let mut chunks: Vec<Chunk<M>> =
        (0..batch_size.div_ceil(CHUNK)).map(|_| Chunk::new(model, rows)).collect();
    let mut adam = AdamState::new(settings, model.parameters());
    let mut epochs = Vec::with_capacity(settings.epochs);
    let mut stopped = Stop::Finished;
    let mut last_good = model.parameters().clone();

    'training: for epoch in 1..=settings.epochs {
        super::next_targets(rule, epoch - 1, &mut targets)?;
        order.shuffle(&mut rng);
        let mut epoch_loss = 0.0;
        let mut rows_done = 0;
        for (batch, members) in order.chunks(batch_size).enumerate() {
            let n_chunks = members.len().div_ceil(CHUNK);
            for (chunk, number) in chunks[..n_chunks].iter_mut().zip(chunks_done..) {
                chunk.draw = draws.of_chunk(number);
            }
            chunks_done += n_chunks as u64;
            let work = |(chunk, members): (&mut Chunk<M>, &[u32])| {
                chunk.learn(&*model, rows, members, &targets, loss);
            };
            if rayon::current_num_threads() == 1 {
                chunks.iter_mut().zip(members.chunks(CHUNK)).for_each(work);
            } else {
                chunks.par_iter_mut().zip(members.par_chunks(CHUNK)).for_each(work);
            }
            let (first, rest) = chunks[..n_chunks].split_first_mut().expect("a batch has rows");
            let mut batch_loss = first.loss;
            for chunk in rest {
                first.gradient.add(&chunk.gradient);
                batch_loss += chunk.loss;
            }
            if !(batch_loss.is_finite() && first.gradient.squared_norm() < LARGEST_SQUARE) {
                *model.parameters_mut() = last_good;
                let loss = batch_loss / members.len() as f64;
                return Err(Error::Diverged { epoch, batch: batch + 1, loss });
            }
            adam.step(model.parameters_mut(), &first.gradient, members.len());
            epoch_loss += batch_loss;
            rows_done += members.len();
            if watch(Progress::Batch { epoch, rows_done, n_rows: order.len() }).is_break() {
                stopped = Stop::Caller;
                break 'training;
            }
        }
        if !model.parameters().is_finite() {
            *model.parameters_mut() = last_good;
            let (batch, loss) = (order.len().div_ceil(batch_size), epoch_loss / order.len() as f64);
            return Err(Error::Diverged { epoch, batch, loss });
        }
        last_good.clone_from(model.parameters());
        let log = EpochLog { epoch, loss: epoch_loss / order.len() as f64 };
        epochs.push(log);
        if watch(Progress::Epoch(log)).is_break() {
            stopped = Stop::Caller;
            break;
        }
    }
    adam.finish(model.parameters_mut());
    Ok(TrainLog { epochs, stopped })
}

/// Everything that one chunk of a batch needs, used again from step to step.
struct Chunk<M: Model> {
    rows: RowBuffer,
    targets: Array2<f32>,
    scores: Array2<f32>,
    dscores: Array2<f32>,
    tape: M::Tape,
    gradient: Gradient,
    loss: f64,
    draw: u64,
}

impl<M: Model> Chunk<M> {
    fn new(model: &M, rows: &Rows) -> Self {
        let matrix = || Array2::zeros((CHUNK, model.n_scores()));
        Self {
            rows: rows.buffer(CHUNK),
            targets: matrix(),
            scores: matrix(),
            dscores: matrix(),
            tape: M::Tape::default(),
            gradient: model.parameters().zero_gradient(),
            loss: 0.0,
            draw: 0,
        }
    }

    /// Loss and gradient, in sum over the chunk's rows.
    fn learn(&mut self, model: &M, rows: &Rows, members: &[u32], targets: &Targets, loss: &dyn TrainingLoss) {
        let here = s![..members.len(), ..];
        let batch = rows.gather(members, &mut self.rows);
        for (&row, mut line) in members.iter().zip(self.targets.rows_mut()) {
            line.assign(&targets.values().row(row as usize));
        }
        let pass = Pass::Learn { draw: self.draw };
        model.forward(&batch, pass, &mut self.tape, self.scores.slice_mut(here));
        let mut dscores = self.dscores.slice_mut(here);
        self.loss =
            loss.corrected_batch(self.scores.slice(here), self.targets.slice(here), dscores.view_mut());
        self.gradient.clear_touched();
        model.backward(&batch, &mut self.tape, dscores.view(), &mut self.gradient);
    }
}
