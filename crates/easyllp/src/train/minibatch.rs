//! Minibatches with Adam.
//!
//! A batch is cut into chunks of as many rows as the model asks for, which threads work on apart and whose gradients are added in
//! order: the bytes of the result do not depend on the number of threads.

use super::{EpochLog, Progress, Stop, TrainLog};
use crate::correction::Targets;
use crate::error::{Error, Result};
use crate::loss::TrainingLoss;
use crate::method::TargetRule;
use crate::model::{Draws, Gradient, Model, Pass};
use crate::optim::{Adam, AdamState};
use crate::rows::Rows;
use crate::seed::{Stream, stream};
use ndarray::{Array2, s};
use rand::RngExt;
use rand::seq::SliceRandom;
use rayon::prelude::*;
use std::ops::ControlFlow;

/// Whoever may end a training before its time.
pub(super) struct Onlookers<'o, M> {
    /// Sees every step.
    pub(super) watch: &'o mut dyn FnMut(Progress) -> ControlFlow<()>,
    /// Sees the model, its optimiser and the epoch's number after each epoch.
    pub(super) after_epoch: &'o mut AfterEpoch<'o, M>,
}

pub(super) type AfterEpoch<'o, M> = dyn FnMut(&M, &mut AdamState, usize) -> Result<ControlFlow<()>> + 'o;

pub(super) fn fit<M: Model>(
    settings: &Adam,
    seed: u64,
    model: &mut M,
    rows: &Rows,
    rule: &mut dyn TargetRule,
    loss: &dyn TrainingLoss,
    onlookers: Onlookers<M>,
) -> Result<TrainLog> {
    let Onlookers { watch, after_epoch } = onlookers;
    settings.check()?;
    let mut order = rule.rows();
    let mut rng = stream(seed, Stream::Shuffle);
    let draws = Draws::new(stream(seed, Stream::Dropout).random());
    let mut chunks_done = 0;
    let mut targets = Targets::zeros(rule.n_rows(), rule.n_classes());
    let batch_size = settings.batch_size.min(order.len());
    let at_once = model.rows_at_once().clamp(1, batch_size);
    let n_chunks = batch_size.div_ceil(at_once);
    let mut chunks: Vec<Chunk<M>> = (0..n_chunks).map(|_| Chunk::new(model, at_once)).collect();
    let gradient = || Gradient { rows: rows.buffer(at_once), ..model.parameters().zero_gradient() };
    let mut gradients: Vec<Gradient> = (0..n_chunks).map(|_| gradient()).collect();
    let mut adam = AdamState::new(settings, model.parameters());
    let mut epochs = Vec::with_capacity(settings.epochs);
    let mut stopped = Stop::Finished;

    'training: for epoch in 1..=settings.epochs {
        super::next_targets(rule, epoch - 1, &mut targets)?;
        order.shuffle(&mut rng);
        adam.start_epoch(model.parameters());
        let mut epoch_loss = 0.0;
        let mut rows_done = 0;
        for (batch, members) in order.chunks(batch_size).enumerate() {
            let n_chunks = members.len().div_ceil(at_once);
            for (chunk, number) in chunks[..n_chunks].iter_mut().zip(chunks_done..) {
                chunk.draw = draws.of_chunk(number);
            }
            chunks_done += n_chunks as u64;
            let gradients = &mut gradients[..n_chunks];
            let mut step = || {
                let shared = &*model;
                let work = |((chunk, gradient), members): ((&mut Chunk<M>, &mut Gradient), &[u32])| {
                    chunk.learn(shared, rows, members, &targets, loss, gradient);
                };
                if n_chunks == 1 || rayon::current_num_threads() == 1 {
                    chunks.iter_mut().zip(&mut *gradients).zip(members.chunks(at_once)).for_each(work);
                } else {
                    chunks
                        .par_iter_mut()
                        .zip(&mut *gradients)
                        .zip(members.par_chunks(at_once))
                        .for_each(work);
                }
                adam.step(model.parameters_mut(), gradients, members.len())
            };
            // What one thread does alone need not be handed over.
            let is_finite = if n_chunks == 1 { step() } else { in_pool(step) };
            let batch_loss: f64 = chunks[..n_chunks].iter().map(|chunk| chunk.loss).sum();
            if !(is_finite && batch_loss.is_finite()) {
                adam.restore(model.parameters_mut());
                let loss = batch_loss / members.len() as f64;
                return Err(Error::Diverged { epoch, batch: batch + 1, loss });
            }
            epoch_loss += batch_loss;
            rows_done += members.len();
            if watch(Progress::Batch { epoch, rows_done, n_rows: order.len() }).is_break() {
                stopped = Stop::Caller;
                break 'training;
            }
        }
        let log = EpochLog { epoch, loss: epoch_loss / order.len() as f64 };
        epochs.push(log);
        if after_epoch(model, &mut adam, epoch)?.is_break() {
            stopped = Stop::NoBetter;
            break;
        }
        if watch(Progress::Epoch(log)).is_break() {
            stopped = Stop::Caller;
            break;
        }
    }
    adam.finish(model.parameters_mut());
    Ok(TrainLog { epochs, stopped, best: None })
}

/// Runs a step on a thread of the pool: its parts are then handed over from there, which is cheaper than from outside.
pub(super) fn in_pool<R: Send>(step: impl FnOnce() -> R + Send) -> R {
    if rayon::current_num_threads() == 1 { step() } else { rayon::scope(|_| step()) }
}

/// Everything that one chunk of a batch needs, used again from step to step.
struct Chunk<M: Model> {
    targets: Array2<f32>,
    scores: Array2<f32>,
    dscores: Array2<f32>,
    tape: M::Tape,
    loss: f64,
    draw: u64,
}

impl<M: Model> Chunk<M> {
    fn new(model: &M, n_rows: usize) -> Self {
        let matrix = || Array2::zeros((n_rows, model.n_scores()));
        Self {
            targets: matrix(),
            scores: matrix(),
            dscores: matrix(),
            tape: M::Tape::default(),
            loss: 0.0,
            draw: 0,
        }
    }

    /// Loss and gradient, in sum over the chunk's rows.
    fn learn(
        &mut self,
        model: &M,
        rows: &Rows,
        members: &[u32],
        targets: &Targets,
        loss: &dyn TrainingLoss,
        gradient: &mut Gradient,
    ) {
        let here = s![..members.len(), ..];
        // The gradient keeps the rows, but a batch of them cannot be borrowed from what is written to.
        let mut buffer = std::mem::take(&mut gradient.rows);
        let batch = rows.gather(members, &mut buffer);
        for (&row, mut line) in members.iter().zip(self.targets.rows_mut()) {
            line.assign(&targets.values().row(row as usize));
        }
        let pass = Pass::Learn { draw: self.draw };
        model.forward(&batch, pass, &mut self.tape, self.scores.slice_mut(here));
        let mut dscores = self.dscores.slice_mut(here);
        self.loss =
            loss.corrected_batch(self.scores.slice(here), self.targets.slice(here), dscores.view_mut());
        gradient.clear_touched();
        model.backward(&batch, &mut self.tape, dscores.view(), gradient);
        (gradient.rows, gradient.n_rows) = (buffer, members.len());
    }
}
