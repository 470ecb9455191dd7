//! Many linear models in one pass: minibatches with Adam, computed as wide matrix products.
//!
//! Models are independent, so they are split into blocks of columns, which threads take in turn. A
//! block stores its models side by side: a line of weights, moments or targets has one number per
//! model.

mod features;

use super::{EpochLog, Stop, TrainLog, check_members, next_targets};
use crate::aim::TargetRule;
use crate::correction::Targets;
use crate::error::{Error, Result, check_length};
use crate::kernel::{GROUP, Run, Step, column_sums, multiply};
use crate::loss::TrainingLoss;
use crate::model::{LinearColumns, LinearModel, Model};
use crate::optim::Adam;
use crate::rows::{DenseRows, Rows, row_count};
use crate::seed::{Stream, stream};
use features::{Features, Gathering};
use ndarray::{ArrayView2, ArrayViewMut2, s};
use rand::seq::SliceRandom;
use rayon::prelude::*;
use std::ops::ControlFlow;

/// Blocks are a multiple of a vector wide; padding columns are trained on no row. The width is also
/// a cache line, and so the number of target columns read and written at a time.
const VECTOR: usize = GROUP;

/// Rows of targets that are read and written at a time, while they are in the cache.
const STRETCH: usize = 64;

/// The validation metric of many models: one value each, lower is better; none to record nothing.
pub type ColumnFigures = Option<Vec<f64>>;

/// The result of training many models.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnsLog {
    /// The log of each model.
    pub logs: Vec<TrainLog>,
    /// The best epoch of each model, if metrics were given.
    pub best: Vec<Option<Best>>,
}

/// A model after the epoch with its lowest metric; the first of equals.
#[derive(Debug, Clone, PartialEq)]
pub struct Best {
    /// The epoch, from 1.
    pub epoch: usize,
    /// The metric.
    pub figure: f64,
    /// The model after that epoch, averaged if averaging is on.
    pub model: LinearModel,
}

pub(super) fn fit(
    settings: &Adam,
    seed: u64,
    models: &mut [LinearModel],
    rows: &Rows,
    rules: &mut [&mut dyn TargetRule],
    loss: &dyn TrainingLoss,
    judge: &mut dyn FnMut(usize, &LinearColumns) -> ControlFlow<(), ColumnFigures>,
) -> Result<ColumnsLog> {
    settings.check()?;
    let (mut order, left_out) = check(models, rows, rules)?;
    let rows = rows.dense_only("training models in columns")?;
    let mut rng = stream(seed, Stream::Shuffle);
    let batch_size = settings.batch_size.min(order.len());
    let mut gathering = Gathering::new(rows, order.len(), batch_size);
    let width = width_of_blocks(models.len(), gathering.widest());
    let mut blocks: Vec<Block> = models
        .chunks(width)
        .zip(left_out.chunks(width))
        .map(|(models, left_out)| Block::new(models, left_out, rows, batch_size, settings))
        .collect();
    drop(left_out);
    let mut columns = LinearColumns::zeros(rows.n_dense(), models.len());
    let mut best: Vec<Option<Best>> = vec![None; models.len()];
    let mut space = vec![Targets::zeros(rows.n_rows(), 2); VECTOR.min(models.len())];
    let mut step = 0;
    let mut stopped = Stop::Finished;

    for epoch in 1..=settings.epochs {
        let of_blocks = blocks.iter_mut().zip(rules.chunks_mut(width));
        for ((block, rules), first_task) in of_blocks.zip((0..).step_by(width)) {
            block.next_targets(rules, loss, first_task, epoch - 1, &mut space)?;
            block.start_epoch();
        }
        order.shuffle(&mut rng);
        for stretch in order.chunks(gathering.n_rows()) {
            let batches = stretch.chunks(batch_size).zip(gathering.gather(rows, stretch));
            let batches: Vec<Batch> = batches
                .map(|(members, features)| {
                    step += 1;
                    Batch { members, features, step: settings.step(step, 1.0 / members.len() as f64) }
                })
                .collect();
            blocks.par_iter_mut().for_each(|block| {
                for batch in &batches {
                    block.learn(batch, loss, settings.clip_norm);
                }
            });
        }
        for (block, first_task) in blocks.iter_mut().zip((0..).step_by(width)) {
            block.end_epoch(epoch);
            let tasks = first_task..first_task + block.n_models();
            for (has_ended, ended) in columns.ended_mut()[tasks.clone()].iter_mut().zip(&block.ended) {
                *has_ended = ended.is_some();
            }
            block.write_to(columns.values_mut().slice_mut(s![.., tasks]));
        }
        let ControlFlow::Continue(figures) = judge(epoch, &columns) else {
            stopped = Stop::Interrupted;
            break;
        };
        if let Some(figures) = figures {
            check_length("validation metrics, one per model", models.len(), figures.len())?;
            for (task, figure) in figures.into_iter().enumerate() {
                let least = best[task].as_ref().map_or(f64::INFINITY, |best| best.figure);
                if figure < least && !columns.has_ended(task) {
                    best[task] = Some(Best { epoch, figure, model: columns.model(task)? });
                }
            }
        }
    }
    for (task, model) in models.iter_mut().enumerate() {
        columns.write_to(task, model);
    }
    let courses = blocks.into_iter().flat_map(|block| block.logs(stopped)).collect();
    Ok(ColumnsLog { logs: courses, best })
}

/// The number of models per block: an even number of blocks of similar width, for threads to share.
/// It does not depend on the number of threads, since the order of sums in a product may depend on
/// its width.
fn width_of_blocks(n_models: usize, widest: usize) -> usize {
    let n_blocks = n_models.div_ceil(widest).next_multiple_of(2);
    n_models.div_ceil(n_blocks).next_multiple_of(VECTOR)
}

/// The rows that any rule has a target for, in order, and the rows that each rule leaves out, after
/// all checks.
fn check(
    models: &[LinearModel],
    rows: &Rows,
    rules: &[&mut dyn TargetRule],
) -> Result<(Vec<u32>, Vec<Vec<u32>>)> {
    check_length("rules, one per model", models.len(), rules.len())?;
    if rows.n_fields() > 0 {
        return Err(Error::FieldsInColumns { n_fields: rows.n_fields() });
    }
    let n_rows = row_count(rows.n_rows())?;
    let mut in_any = vec![false; rows.n_rows()];
    let mut left_out = Vec::with_capacity(rules.len());
    for (task, (model, rule)) in models.iter().zip(rules).enumerate() {
        let of_task = || {
            model.check(rows)?;
            check_length("scores of the model", 1, model.n_scores())?;
            let targets = rule.target_rows();
            check_length("rows that have a target or none", rows.n_rows(), targets.n_rows)?;
            check_length("classes", 2, targets.n_classes)?;
            check_members(&targets.rows, rows.n_rows())?;
            Ok(targets.rows)
        };
        let members = of_task().map_err(|error| Error::Task { task, source: Box::new(error) })?;
        if members.iter().copied().eq(0..n_rows) {
            in_any.fill(true);
            left_out.push(Vec::new());
            continue;
        }
        let mut is_member = vec![false; rows.n_rows()];
        for row in members {
            is_member[row as usize] = true;
        }
        in_any.iter_mut().zip(&is_member).for_each(|(any, is)| *any |= is);
        left_out.push((0..).zip(is_member).filter_map(|(row, is)| (!is).then_some(row)).collect());
    }
    let order: Vec<u32> = (0..).zip(in_any).filter_map(|(row, is)| is.then_some(row)).collect();
    if order.is_empty() { Err(Error::NoTargets) } else { Ok((order, left_out)) }
}

/// Some rows, with the number of the step.
struct Batch<'b> {
    members: &'b [u32],
    features: Features<'b>,
    step: Step,
}

/// Some models, with all training buffers. Matrices are stored by rows, `width` columns each.
struct Block {
    width: usize,
    n_dense: usize,
    /// D + 1 lines, the last with the intercepts; moments, average and gradient have the same
    /// shape.
    weights: Vec<f32>,
    mean: Vec<f32>,
    square: Vec<f32>,
    /// Averaged weights; empty if averaging is off.
    average: Vec<f32>,
    /// The weights before the epoch, once its loss is finite.
    before: Vec<f32>,
    /// Whether the epoch has had no batch yet.
    is_new_epoch: bool,
    factors: Factors,
    gradient: Vec<f32>,
    /// N lines; NaN where a model's rule leaves the row out, or the model has stopped.
    targets: Vec<f32>,
    /// As many lines as a batch, like scores and derivatives.
    batch_targets: Vec<f32>,
    scores: Vec<f32>,
    slopes: Vec<f32>,
    losses: Vec<f64>,
    epoch_losses: Vec<f64>,
    /// Whether some model is not trained on some row.
    is_partial: bool,
    /// The number of training rows of each model.
    n_rows: Vec<usize>,
    epochs: Vec<Vec<EpochLog>>,
    /// The last good weights of each model that diverged.
    ended: Vec<Option<Vec<f32>>>,
}

impl Block {
    fn new(
        models: &[LinearModel],
        left_out: &[Vec<u32>],
        rows: DenseRows,
        batch_size: usize,
        settings: &Adam,
    ) -> Self {
        let (width, n_dense) = (models.len().next_multiple_of(VECTOR), rows.n_dense());
        let zeros = |n_lines: usize| vec![0.0; n_lines * width];
        let mut weights = zeros(n_dense + 1);
        for (column, model) in models.iter().enumerate() {
            let numbers = model.weights().into_iter().chain(model.intercept());
            for (line, &number) in weights.chunks_exact_mut(width).zip(numbers) {
                line[column] = number;
            }
        }
        let mut targets = zeros(rows.n_rows());
        for (column, left_out) in left_out.iter().enumerate() {
            for &row in left_out {
                targets[row as usize * width + column] = f32::NAN;
            }
        }
        if models.len() < width {
            targets.chunks_exact_mut(width).for_each(|line| line[models.len()..].fill(f32::NAN));
        }
        Self {
            width,
            n_dense,
            mean: zeros(n_dense + 1),
            square: zeros(n_dense + 1),
            average: if settings.average { zeros(n_dense + 1) } else { Vec::new() },
            before: weights.clone(),
            is_new_epoch: false,
            factors: Factors::new(width),
            gradient: zeros(n_dense + 1),
            weights,
            targets,
            batch_targets: zeros(batch_size),
            scores: zeros(batch_size),
            slopes: zeros(batch_size),
            losses: vec![0.0; width],
            epoch_losses: vec![0.0; width],
            is_partial: left_out.iter().any(|left_out| !left_out.is_empty()),
            n_rows: left_out.iter().map(|left_out| rows.n_rows() - left_out.len()).collect(),
            epochs: vec![Vec::new(); models.len()],
            ended: vec![None; models.len()],
        }
    }

    fn n_models(&self) -> usize {
        self.ended.len()
    }

    /// Computes the targets of an epoch, counted from 0, for as many models at a time as the buffer
    /// holds.
    fn next_targets(
        &mut self,
        rules: &mut [&mut dyn TargetRule],
        loss: &dyn TrainingLoss,
        first_task: usize,
        epoch: usize,
        space: &mut [Targets],
    ) -> Result<()> {
        for (group, rules) in rules.chunks_mut(space.len()).enumerate() {
            if epoch > 0 && rules.iter().all(|rule| !rule.changes()) {
                continue;
            }
            let first = group * space.len();
            let space = &mut space[..rules.len()];
            // A rule finds what it wrote last: it need not write again what does not change.
            let mut columns: Vec<&mut [f32]> = space.iter_mut().map(Targets::column_mut).collect();
            if epoch == 0 {
                for column in &mut columns {
                    column.fill(0.0);
                }
            } else {
                let stretches = self.targets.chunks(STRETCH * self.width);
                for (lines, start) in stretches.zip((0..).step_by(STRETCH)) {
                    for (place, column) in columns.iter_mut().enumerate() {
                        let targets = lines.chunks_exact(self.width).map(|line| line[first + place]);
                        for (out, target) in column[start..].iter_mut().zip(targets) {
                            *out = if target.is_nan() { 0.0 } else { target };
                        }
                    }
                }
            }
            let ended = &self.ended[first..];
            for (column, (rule, out)) in rules.iter_mut().zip(&mut *space).enumerate() {
                if ended[column].is_none() {
                    next_targets(&mut **rule, loss, epoch, out).map_err(|error| Error::Task {
                        task: first_task + first + column,
                        source: Box::new(error),
                    })?;
                }
            }
            let columns: Vec<&[f32]> = space.iter_mut().map(|targets| &*targets.column_mut()).collect();
            let stretches = self.targets.chunks_mut(STRETCH * self.width);
            for (lines, start) in stretches.zip((0..).step_by(STRETCH)) {
                for (place, column) in columns.iter().enumerate() {
                    for (line, &target) in lines.chunks_exact_mut(self.width).zip(&column[start..]) {
                        let old = &mut line[first + place];
                        *old = if old.is_nan() { *old } else { target };
                    }
                }
            }
        }
        Ok(())
    }

    fn start_epoch(&mut self) {
        self.is_new_epoch = true;
        self.epoch_losses.fill(0.0);
    }

    /// Accepts the weights of models with a finite loss: the last step of an epoch may have
    /// diverged.
    fn keep_good(&mut self) {
        let lines = self.before.chunks_exact_mut(self.width).zip(self.weights.chunks_exact(self.width));
        for (before, weights) in lines {
            for ((before, weight), loss) in before.iter_mut().zip(weights).zip(&self.losses) {
                *before = if loss.is_finite() { *weight } else { *before };
            }
        }
    }

    /// One step of all models.
    fn learn(&mut self, batch: &Batch, loss: &dyn TrainingLoss, clip_norm: Option<f64>) {
        let &Batch { members, ref features, step } = batch;
        let (width, n_dense) = (self.width, self.n_dense);
        let (n_numbers, n_weights) = (members.len() * width, n_dense * width);
        let targets = &mut self.batch_targets[..n_numbers];
        let scores = &mut self.scores[..n_numbers];
        let slopes = &mut self.slopes[..n_numbers];
        let (weights, intercepts) = self.weights.split_at(n_weights);
        for (&row, line) in members.iter().zip(targets.chunks_exact_mut(width)) {
            line.copy_from_slice(&self.targets[row as usize * width..][..width]);
        }
        scores.chunks_exact_mut(width).for_each(|line| line.copy_from_slice(intercepts));
        features.add_scores(weights, width, scores);
        self.losses.fill(0.0);
        loss.corrected_columns(scores, targets, slopes, &mut self.losses);
        if std::mem::take(&mut self.is_new_epoch) {
            self.keep_good();
        }
        let (targets, slopes) = (&self.batch_targets[..n_numbers], &self.slopes[..n_numbers]);
        let (of_weights, of_intercepts) = self.gradient.split_at_mut(n_weights);
        features.write_gradient(slopes, width, of_weights);
        column_sums(slopes, of_intercepts);
        if self.is_partial || clip_norm.is_some() {
            let factors = self.factors.of(&self.gradient, targets, clip_norm);
            self.gradient.chunks_exact_mut(width).for_each(|line| multiply(line, factors));
        }
        let Self { weights, mean, square, average, .. } = self;
        let (weights, intercepts) = Run { weights, mean, square, average }.split_at(n_weights);
        let (of_weights, of_intercepts) = self.gradient.split_at(n_weights);
        let mut is_finite = weights.update(step, std::iter::once(of_weights));
        // Intercepts do not decay.
        is_finite &= intercepts.update(Step { keep: 1.0, ..step }, std::iter::once(of_intercepts));
        for (sum, loss) in self.epoch_losses.iter_mut().zip(&self.losses) {
            *sum += loss;
            is_finite &= loss.is_finite();
        }
        if !is_finite {
            self.end_runaways();
        }
    }

    /// Stops models whose weights are not finite.
    fn end_runaways(&mut self) {
        let width = self.width;
        for column in 0..self.n_models() {
            let of_model = |matrix: &[f32]| matrix.iter().skip(column).step_by(width).copied().collect();
            let numbers: [Vec<f32>; 2] = [of_model(&self.weights), of_model(&self.square)];
            if self.losses[column].is_finite() && numbers.iter().flatten().all(|number| number.is_finite()) {
                continue;
            }
            self.ended[column] = Some(of_model(&self.before));
            // Zeros stay zeros, without a row to learn from.
            let all = [&mut self.weights, &mut self.mean, &mut self.square, &mut self.average];
            for number in all.into_iter().flat_map(|matrix| matrix.iter_mut().skip(column).step_by(width)) {
                *number = 0.0;
            }
            self.targets.iter_mut().skip(column).step_by(width).for_each(|target| *target = f32::NAN);
            self.is_partial = true;
        }
    }

    fn end_epoch(&mut self, epoch: usize) {
        for (column, epochs) in self.epochs.iter_mut().enumerate() {
            if self.ended[column].is_none() {
                let loss = self.epoch_losses[column] / self.n_rows[column] as f64;
                epochs.push(EpochLog { epoch, loss });
            }
        }
    }

    /// Writes the models as they are now, one per column, intercepts in the last line.
    fn write_to(&self, mut out: ArrayViewMut2<f32>) {
        let numbers = if self.average.is_empty() { &self.weights } else { &self.average };
        out.assign(&matrix(numbers, self.width).slice(s![.., ..self.n_models()]));
        for (mut column, ended) in out.columns_mut().into_iter().zip(&self.ended) {
            if let Some(numbers) = ended {
                column.iter_mut().zip(numbers).for_each(|(number, &good)| *number = good);
            }
        }
    }

    /// The log of each model, for a training run that stopped for this reason.
    fn logs(self, stopped: Stop) -> impl Iterator<Item = TrainLog> {
        self.epochs.into_iter().zip(self.ended).map(move |(epochs, ended)| TrainLog {
            best: None,
            epochs,
            stopped: if ended.is_some() { Stop::Diverged } else { stopped },
        })
    }
}

/// The factor of each model's gradient, which is a sum over a batch, before division by the batch
/// size: it becomes the mean over the model's own rows, clipped.
struct Factors {
    own_rows: Vec<u32>,
    squares: Vec<f64>,
    values: Vec<f32>,
}

impl Factors {
    fn new(width: usize) -> Self {
        Self { own_rows: vec![0; width], squares: vec![0.0; width], values: vec![0.0; width] }
    }

    #[expect(clippy::cast_possible_truncation, reason = "gradients are f32")]
    fn of(&mut self, gradient: &[f32], targets: &[f32], clip_norm: Option<f64>) -> &[f32] {
        let width = self.values.len();
        self.own_rows.fill(0);
        for line in targets.chunks_exact(width) {
            for (own, target) in self.own_rows.iter_mut().zip(line) {
                *own += u32::from(!target.is_nan());
            }
        }
        self.squares.fill(0.0);
        if clip_norm.is_some() {
            for line in gradient.chunks_exact(width) {
                for (square, &value) in self.squares.iter_mut().zip(line) {
                    *square += f64::from(value) * f64::from(value);
                }
            }
        }
        let batch_size = (targets.len() / width) as f64;
        for ((factor, own), square) in self.values.iter_mut().zip(&self.own_rows).zip(&self.squares) {
            // A model without a row in the batch has a gradient of zeros.
            let own = f64::from((*own).max(1));
            let clip = clip_norm.map_or(1.0, |limit| (limit * own / square.sqrt()).min(1.0));
            *factor = (batch_size / own * clip) as f32;
        }
        &self.values
    }
}

fn matrix(numbers: &[f32], width: usize) -> ArrayView2<'_, f32> {
    ArrayView2::from_shape((numbers.len() / width, width), numbers).expect("lines are whole")
}

fn matrix_mut(numbers: &mut [f32], width: usize) -> ArrayViewMut2<'_, f32> {
    ArrayViewMut2::from_shape((numbers.len() / width, width), numbers).expect("lines are whole")
}
