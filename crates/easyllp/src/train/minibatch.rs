//! Minibatches with Adam.
//!
//! A batch is split into chunks of the size that the model asks for. Threads compute their
//! gradients, which are added in order: the bytes of the result do not depend on the number of
//! threads.

use super::by_bag::BagBatch;
use super::{EpochLog, Progress, Stop, TrainLog};
use crate::aim::{Aim, BagObjective, TargetRows};
use crate::correction::Targets;
use crate::error::{Error, Result};
use crate::kernel::join;
use crate::loss::TrainingLoss;
use crate::model::{Draws, Gradient, Model, Pass};
use crate::optim::{Adam, AdamState};
use crate::rows::DenseRows;
use crate::seed::{Stream, stream};
use ndarray::{Array2, ArrayView2, ArrayViewMut2, Axis, s};
use rand::RngExt;
use rand::seq::SliceRandom;
use std::ops::ControlFlow;

/// Callbacks, which may stop a training run.
pub(super) struct Callbacks<'o, M> {
    /// Called after every step.
    pub(super) watch: &'o mut dyn FnMut(Progress) -> ControlFlow<()>,
    /// Called after each epoch with the model, its optimizer and the epoch's number.
    pub(super) after_epoch: &'o mut AfterEpoch<'o, M>,
}

pub(super) type AfterEpoch<'o, M> = dyn FnMut(&M, &AdamState, usize) -> Result<ControlFlow<()>> + 'o;

/// The initial state of a training run.
struct Start {
    /// Rows or bags, in the order of training.
    order: Vec<u32>,
    /// The number of rows per epoch.
    n_rows: usize,
    /// How much larger than requested a batch may be, since bags are not split.
    in_excess: usize,
    targets: Targets,
}

impl Start {
    fn new(aim: &mut Aim) -> Self {
        match aim {
            Aim::Targets(rule, _) => {
                let TargetRows { n_rows, n_classes, rows: order } = rule.target_rows();
                let targets = Targets::zeros(n_rows, n_classes);
                Start { n_rows: order.len(), order, in_excess: 0, targets }
            }
            Aim::Bags(objective) => {
                objective.start();
                let bags = objective.bags();
                Start {
                    order: (0..).take(bags.n_bags()).collect(),
                    n_rows: bags.n_members(),
                    in_excess: (2 * objective.least_bags() - 1) * bags.sizes().max().unwrap_or(1),
                    targets: Targets::zeros(0, 2),
                }
            }
        }
    }
}

pub(super) fn fit<M: Model>(
    settings: &Adam,
    seed: u64,
    model: &mut M,
    rows: DenseRows,
    mut aim: Aim,
    callbacks: Callbacks<M>,
) -> Result<TrainLog> {
    let Callbacks { watch, after_epoch } = callbacks;
    settings.check()?;
    let Start { mut order, n_rows, in_excess, mut targets } = Start::new(&mut aim);
    let mut rng = stream(seed, Stream::Shuffle);
    let draws = Draws::new(stream(seed, Stream::Dropout).random());
    let mut chunks_done = 0;
    let batch_size = settings.batch_size.min(n_rows);
    let at_once = model.rows_at_once().clamp(1, batch_size);
    let n_chunks = (batch_size + in_excess).div_ceil(at_once);
    let mut chunks: Vec<Chunk<M>> = (0..n_chunks).map(|_| Chunk::new(model, at_once)).collect();
    let gradient = || Gradient { rows: rows.buffer(at_once), ..model.parameters().zero_gradient() };
    let mut gradients: Vec<Gradient> = (0..n_chunks).map(|_| gradient()).collect();
    let mut of_bags = BagBatch::new(model.n_scores());
    let mut adam = AdamState::new(settings, model.parameters());
    adam.start_epoch(model.parameters());
    let mut epochs = Vec::new();
    let mut stopped = Stop::Finished;

    'training: for epoch in 1..=settings.epochs {
        if let Aim::Targets(rule, loss) = &mut aim {
            super::next_targets(*rule, *loss, epoch - 1, &mut targets)?;
        }
        order.shuffle(&mut rng);
        let mut epoch_loss = 0.0;
        let mut rows_done = 0;
        let mut batch = 0;
        let mut rest = &order[..];
        while !rest.is_empty() {
            let n_units = match &aim {
                Aim::Targets(..) => batch_size.min(rest.len()),
                Aim::Bags(objective) => {
                    of_bags.fill(objective.bags(), rest, batch_size, objective.least_bags())
                }
            };
            let units;
            (units, rest) = rest.split_at(n_units);
            let n_in_batch = if let Aim::Targets(..) = aim { n_units } else { of_bags.n_rows() };
            batch += 1;
            let n_chunks = n_in_batch.div_ceil(at_once);
            for (chunk, number) in chunks[..n_chunks].iter_mut().zip(chunks_done..) {
                chunk.draw = draws.of_chunk(number);
            }
            chunks_done += n_chunks as u64;
            if let Aim::Bags(objective) = &mut aim {
                objective.before_batch(units);
            }
            let kind = match &aim {
                Aim::Targets(_, loss) => Step::Rows { targets: &targets, loss: *loss },
                Aim::Bags(objective) => Step::Bags(&**objective),
            };
            let (chunks, gradients) = (&mut chunks[..n_chunks], &mut gradients[..n_chunks]);
            let mut step = || {
                let batch_loss = match kind {
                    Step::Rows { targets, loss } => {
                        let shared = &*model;
                        on_each(chunks, gradients, at_once, units, &|chunk, gradient, members: &[u32]| {
                            chunk.learn(shared, rows, members, targets, loss, gradient);
                        });
                        chunks.iter().map(|chunk| chunk.loss).sum::<f64>()
                    }
                    Step::Bags(objective) => {
                        of_bags.learn(&*model, rows, objective, units, chunks, gradients, at_once)
                    }
                };
                if !batch_loss.is_finite() {
                    return (batch_loss, false);
                }
                // Weights are good if a loss of theirs is: the last step of an epoch may have been one too far.
                if batch == 1 {
                    adam.start_epoch(model.parameters());
                }
                (batch_loss, adam.step(model.parameters_mut(), gradients, n_units))
            };
            // What one thread does alone need not be handed over.
            let (batch_loss, is_finite) = if n_chunks == 1 { step() } else { in_pool(step) };
            if !is_finite {
                adam.restore(model.parameters_mut());
                return Err(Error::Diverged { epoch, batch, loss: batch_loss / n_units as f64 });
            }
            if let Aim::Bags(objective) = &mut aim {
                objective.after_batch(of_bags.scores());
            }
            epoch_loss += batch_loss;
            rows_done += n_in_batch;
            if watch(Progress::Batch { epoch, rows_done, n_rows }).is_break() {
                stopped = Stop::Interrupted;
                break 'training;
            }
        }
        let log = EpochLog { epoch, loss: epoch_loss / order.len() as f64 };
        epochs.push(log);
        // A metric fails only on scores that are not finite.
        let flow = after_epoch(model, &adam, epoch).inspect_err(|_| adam.restore(model.parameters_mut()))?;
        if flow.is_break() {
            stopped = Stop::EarlyStopping;
            break;
        }
        if watch(Progress::Epoch(log)).is_break() {
            stopped = Stop::Interrupted;
            break;
        }
    }
    adam.finish(model.parameters_mut());
    Ok(TrainLog { epochs, stopped, best: None })
}

/// What a step minimises.
#[derive(Clone, Copy)]
enum Step<'t> {
    Rows { targets: &'t Targets, loss: &'t dyn TrainingLoss },
    Bags(&'t dyn BagObjective),
}

/// Runs a function on each chunk, with its gradient and its part of the batch, on all threads.
pub(super) fn on_each<M: Model, B: ByRows>(
    chunks: &mut [Chunk<M>],
    gradients: &mut [Gradient],
    at_once: usize,
    batch: B,
    work: &(impl Fn(&mut Chunk<M>, &mut Gradient, B) + Sync),
) {
    if let ([chunk], [gradient]) = (&mut *chunks, &mut *gradients) {
        return work(chunk, gradient, batch);
    }
    let middle = chunks.len() / 2;
    let (chunks, other_chunks) = chunks.split_at_mut(middle);
    let (gradients, other_gradients) = gradients.split_at_mut(middle);
    let (batch, other_batch) = batch.split_rows(middle * at_once);
    join(
        || on_each(chunks, gradients, at_once, batch, work),
        || on_each(other_chunks, other_gradients, at_once, other_batch, work),
    );
}

/// An array with an entry for each row of a batch.
pub(super) trait ByRows: Send {
    /// Splits off the entries of the first rows.
    fn split_rows(self, at: usize) -> (Self, Self)
    where
        Self: Sized;
}

impl ByRows for &[u32] {
    fn split_rows(self, at: usize) -> (Self, Self) {
        self.split_at(at)
    }
}

impl ByRows for ArrayView2<'_, f32> {
    fn split_rows(self, at: usize) -> (Self, Self) {
        self.split_at(Axis(0), at)
    }
}

impl ByRows for ArrayViewMut2<'_, f32> {
    fn split_rows(self, at: usize) -> (Self, Self) {
        self.split_at(Axis(0), at)
    }
}

impl<A: ByRows, B: ByRows> ByRows for (A, B) {
    fn split_rows(self, at: usize) -> (Self, Self) {
        let ((a, other_a), (b, other_b)) = (self.0.split_rows(at), self.1.split_rows(at));
        ((a, b), (other_a, other_b))
    }
}

/// Runs a step on a thread of the pool; its parts are then distributed from there, which is
/// cheaper.
pub(super) fn in_pool<R: Send>(step: impl FnOnce() -> R + Send) -> R {
    if rayon::current_num_threads() == 1 { step() } else { rayon::scope(|_| step()) }
}

/// The buffers of one chunk of a batch, reused from step to step.
pub(super) struct Chunk<M: Model> {
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

    /// The sum of loss and gradient over the chunk's rows.
    fn learn(
        &mut self,
        model: &M,
        rows: DenseRows,
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

    /// First half: the scores of these rows, kept for the gradient.
    pub(super) fn forward(
        &mut self,
        model: &M,
        rows: DenseRows,
        members: &[u32],
        gradient: &mut Gradient,
        scores: ArrayViewMut2<f32>,
    ) {
        let batch = rows.gather(members, &mut gradient.rows);
        model.forward(&batch, Pass::Learn { draw: self.draw }, &mut self.tape, scores);
        gradient.n_rows = members.len();
    }

    /// Second half: the gradient, from the derivative in the scores.
    pub(super) fn backward(&mut self, model: &M, dscores: ArrayView2<f32>, gradient: &mut Gradient) {
        let buffer = std::mem::take(&mut gradient.rows);
        gradient.clear_touched();
        model.backward(&buffer.batch(gradient.n_rows), &mut self.tape, dscores, gradient);
        gradient.rows = buffer;
    }
}
