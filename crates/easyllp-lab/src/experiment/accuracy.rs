//! The paper's figure *bagsize_vs_perf*: test accuracy against the size of bags.
//!
//! A fifth of the bags is held out unless the file says otherwise. Of each training three accuracies are kept: that of the best round by test
//! labels, which is the paper's protocol; of the last; and of the round that held-out bags chose by their Brier score, which needs no label.

use super::held_out::HeldOut;
use super::{check_all, seed_of};
use crate::data::{Data, DatasetName, Task};
use crate::error::Result;
use crate::point::Point;
use crate::runner::{Cell, Tell};
use easyllp::bagging::{self, Sizes};
use easyllp::method::{EasyLlp, MeanMap, Naive};
use easyllp::{
    Adam, AnyModel, Bags, Judge, Lesson, LinearColumns, LinearModel, LossName, MethodName, MethodOptions,
    Model, ModelName, Optimizer, Partition, Predictions, Progress, TargetRule, Trainer, metrics,
};
use ndarray::{Array2, s};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use serde::Deserialize;
use std::ops::ControlFlow;

/// What to train.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Accuracy {
    /// On which data.
    pub dataset: DatasetName,
    /// For which tasks.
    pub tasks: Vec<String>,
    /// Which model.
    pub model: String,
    /// By which methods.
    pub methods: Vec<MethodName>,
    /// With how many rows in a bag.
    pub bag_sizes: Vec<usize>,
    /// How often, each time with bags and initial weights of its own.
    pub replicas: u32,
    /// Rounds of Adam.
    pub epochs: usize,
    /// Adam's step.
    #[serde(default = "usual_step")]
    pub learning_rate: f64,
    /// Rows in a batch.
    #[serde(default = "usual_batch")]
    pub batch_size: usize,
    /// The share of bags that is held out; with 0 there is no round that they choose.
    #[serde(default = "a_fifth")]
    pub held_out: f64,
    /// Whether bags are dealt anew in every round, which is known of easyllp only.
    #[serde(default)]
    pub rebag: bool,
}

fn a_fifth() -> f64 {
    0.2
}

fn usual_step() -> f64 {
    Adam::default().learning_rate
}

fn usual_batch() -> usize {
    Adam::default().batch_size
}

/// Models that are trained in one pass, at most.
const COLUMNS: usize = 256;

/// Measures, in the order of [`Course::figures`].
pub(crate) const MEASURES: [&str; 3] = ["best round", "last round", "chosen round"];

impl Accuracy {
    pub(super) fn check(&self) -> Result<(), String> {
        self.model.parse::<ModelName>().map_err(|error| error.to_string())?;
        check_all(&[
            ("`tasks` must name one", !self.tasks.is_empty()),
            ("`methods` must name one", !self.methods.is_empty()),
            (
                "`bag-sizes` must be numbers from 1 on",
                !self.bag_sizes.is_empty() && !self.bag_sizes.contains(&0),
            ),
            ("`replicas` must be at least 1", self.replicas > 0),
            ("`epochs` must be at least 1", self.epochs > 0),
            ("`learning-rate` must be above 0", self.learning_rate > 0.0),
            ("`batch-size` must be at least 1", self.batch_size > 0),
            ("`held-out` must be below 1", (0.0..1.0).contains(&self.held_out)),
            (
                "only easyllp is trained on bags that are dealt anew",
                !self.rebag
                    || self
                        .methods
                        .iter()
                        .all(|&method| method == MethodName::EasyLlp || method == MethodName::Event),
            ),
        ])
    }

    /// Whether a method's models can be columns of one matrix: linear, and told a target for each row.
    fn is_column(&self, method: MethodName, data: &Data) -> bool {
        let by_rows = [MethodName::Event, MethodName::EasyLlp, MethodName::Naive, MethodName::MeanMap];
        self.model == "linear" && data.train.n_fields() == 0 && !self.rebag && by_rows.contains(&method)
    }

    pub(super) fn cells<'d>(&self, data: &'d Data, seed: u64) -> Result<Vec<Cell<'d>>> {
        let tasks = data.tasks(&self.tasks)?;
        let (columns, others): (Vec<MethodName>, Vec<MethodName>) =
            self.methods.iter().partition(|&&method| self.is_column(method, data));
        let mut cells = Vec::new();
        // Supervision knows no bags.
        let sizes_of =
            |method: MethodName| if method == MethodName::Event { &[1][..] } else { &self.bag_sizes[..] };
        let (supervised, by_bags): (Vec<MethodName>, Vec<MethodName>) =
            columns.iter().partition(|&&method| method == MethodName::Event);
        for (methods, sizes) in [(supervised, &[1][..]), (by_bags, &self.bag_sizes[..])] {
            if methods.is_empty() {
                continue;
            }
            let in_a_pass =
                u32::try_from((COLUMNS / (tasks.len() * methods.len())).max(1)).unwrap_or(u32::MAX);
            for first in (1..=self.replicas).step_by(in_a_pass as usize) {
                let replicas = first..=self.replicas.min(first + in_a_pass - 1);
                for &size in sizes {
                    cells.push(self.pass(data, &tasks, &methods, size, replicas.clone().collect(), seed));
                }
            }
        }
        for replica in 1..=self.replicas {
            for &method in &others {
                for &size in sizes_of(method) {
                    cells.extend(
                        tasks.iter().map(|task| self.training(data, task, method, size, replica, seed)),
                    );
                }
            }
        }
        Ok(cells)
    }

    /// All on which a result depends but for what differs from cell to cell.
    fn settings(&self, seed: u64) -> String {
        let Self { dataset, model, epochs, held_out, rebag, learning_rate, batch_size, .. } = self;
        format!(
            "accuracy, {}, {model}, {epochs} rounds, steps {learning_rate:?}, batches {batch_size}, {held_out:?} held out, rebag {rebag}, seed {seed}",
            dataset.as_str()
        )
    }

    fn trainer(&self, epochs: usize, seed: u64) -> Trainer {
        let (learning_rate, batch_size) = (self.learning_rate, self.batch_size);
        let adam = Adam { epochs, learning_rate, batch_size, ..Adam::default() };
        Trainer { optimizer: Optimizer::Adam(adam), seed }
    }

    /// Bags of a replica, for one of its tasks: those to train on, and those held out.
    fn deal(&self, partition: &Partition, labels: &[u32], seed: u64) -> Result<(Bags, Option<HeldOut>)> {
        let whole = Bags::from_labels(partition.clone(), labels, 2)?;
        if self.held_out > 0.0 {
            let parts = bagging::split(&whole, self.held_out, seed)?;
            return Ok((parts.train, Some(HeldOut::new(&parts.held_out)?)));
        }
        Ok((whole, None))
    }

    /// One pass for all tasks, some replicas and the methods that give rows targets.
    fn pass<'d>(
        &self,
        data: &'d Data,
        tasks: &[Task],
        methods: &[MethodName],
        size: usize,
        replicas: Vec<u32>,
        seed: u64,
    ) -> Cell<'d> {
        let names = |of: Vec<&str>| of.join(" + ");
        let key = format!(
            "{}, {}, {}, {size} rows, replicas {replicas:?}",
            self.settings(seed),
            names(methods.iter().map(|method| method.as_str()).collect()),
            names(tasks.iter().map(|task| task.name.as_str()).collect()),
        );
        let (this, tasks, methods) = (self.clone(), tasks.to_vec(), methods.to_vec());
        Cell {
            band: format!(
                "{}, {}, {size} rows",
                self.settings(seed),
                names(methods.iter().map(|method| method.as_str()).collect())
            ),
            key,
            // A column of many costs a twentieth of a model alone.
            cost: 0.05
                * (tasks.len() * methods.len() * replicas.len() * self.epochs * data.train.n_rows()) as f64,
            is_wide: true,
            work: Box::new(move |tell| {
                this.train_columns(data, &tasks, &methods, size, &replicas, seed, tell)
            }),
        }
    }

    #[expect(clippy::too_many_arguments, reason = "what makes a cell")]
    fn train_columns(
        &self,
        data: &Data,
        tasks: &[Task],
        methods: &[MethodName],
        size: usize,
        replicas: &[u32],
        seed: u64,
        tell: &Tell,
    ) -> Result<Option<Vec<Point>>> {
        let n_rows = data.train.n_rows();
        let mut dealt = Vec::new();
        for &replica in replicas {
            let seed = seed_of(seed, &format!("{}, replica {replica}", self.dataset.as_str()));
            let partition = bagging::random(n_rows, &Sizes::Fixed(size), seed)?;
            for task in tasks {
                dealt.push((replica, task, self.deal(&partition, &task.train, seed)?));
            }
        }
        let mut columns = Vec::new();
        let mut rules: Vec<Box<dyn TargetRule + Send + '_>> = Vec::new();
        let mut models = Vec::new();
        for (replica, task, (bags, held_out)) in &dealt {
            for &method in methods {
                columns.push((*replica, *task, method, held_out.as_ref()));
                rules.push(match method {
                    MethodName::Naive => Box::new(Naive::new(bags)),
                    MethodName::MeanMap => Box::new(MeanMap::new(bags)),
                    // Of bags of one these are the labels.
                    _ => Box::new(EasyLlp::new(bags)),
                });
                let start = format!(
                    "{}, {}, {}, replica {replica}",
                    self.dataset.as_str(),
                    task.name,
                    method.as_str()
                );
                models.push(start_of(data, seed_of(seed, &start))?);
            }
        }
        let mut courses = vec![Course::default(); columns.len()];
        let (mut failed, mut is_over) = (None, false);
        let loss = LossName::Logistic.training()?;
        let mut judge = |_: usize, models: &LinearColumns| {
            let judged = judge_columns(data, models, &columns, &mut courses, loss.link());
            failed = failed.take().or(judged.err());
            is_over |= tell((n_rows * columns.len()) as u64).is_break();
            None
        };
        let mut borrowed: Vec<&mut dyn TargetRule> = rules.iter_mut().map(|rule| &mut **rule as _).collect();
        let pass_seed = seed_of(seed, &format!("{}, {size} rows, {replicas:?}", self.dataset.as_str()));
        self.trainer(self.epochs, pass_seed).fit_columns(
            &mut models,
            &data.train,
            &mut borrowed,
            loss,
            &mut judge,
        )?;
        failed.map_or(Ok(()), Err)?;
        let points = columns.iter().zip(&courses).flat_map(|((replica, task, method, _), course)| {
            points_of(&task.name, *method, size, *replica, course)
        });
        Ok((!is_over).then(|| points.collect()))
    }

    /// One training.
    fn training<'d>(
        &self,
        data: &'d Data,
        task: &Task,
        method: MethodName,
        size: usize,
        replica: u32,
        seed: u64,
    ) -> Cell<'d> {
        let band = format!("{}, {}, {}, {size} rows", self.settings(seed), method.as_str(), task.name);
        let (this, task) = (self.clone(), task.clone());
        let of_model = if self.model == "linear" { 1.0 } else { 20.0 };
        Cell {
            key: format!("{band}, replica {replica}"),
            band,
            cost: of_model * (self.epochs * data.train.n_rows()) as f64,
            is_wide: false,
            work: Box::new(move |tell| this.train_one(data, &task, method, size, replica, seed, tell)),
        }
    }

    #[expect(clippy::too_many_arguments, reason = "what makes a cell")]
    fn train_one(
        &self,
        data: &Data,
        task: &Task,
        method: MethodName,
        size: usize,
        replica: u32,
        seed: u64,
        tell: &Tell,
    ) -> Result<Option<Vec<Point>>> {
        let part = format!("{}, replica {replica}", self.dataset.as_str());
        let n_rows = data.train.n_rows();
        let rebag = (self.rebag && method == MethodName::EasyLlp).then_some(size);
        let dealt_size = if rebag.is_some() { 1 } else { size };
        let partition = bagging::random(n_rows, &Sizes::Fixed(dealt_size), seed_of(seed, &part))?;
        let (bags, held_out) = self.deal(&partition, &task.train, seed_of(seed, &part))?;
        let judges = held_out.map(|held_out| (data.train.select(&held_out.rows), held_out));
        let loss = LossName::Logistic.training()?;
        let seed = seed_of(seed, &format!("{part}, {}, {}", task.name, method.as_str()));
        let mut model = self.model.parse::<ModelName>()?.build(data.form(), 2, seed)?;
        let mut course = Course::default();
        let mut figure = |model: &AnyModel| {
            let scores = model.scores(&data.test)?;
            course
                .accuracies
                .push(metrics::accuracy(&Predictions::new(scores.view(), loss.link())?, &task.test)?);
            let Some((rows, held_out)) = &judges else { return Ok(0.0) };
            let brier = held_out.brier(&model.scores(rows)?, loss.link())?;
            course.briers.push(brier);
            Ok(brier)
        };
        let judge = Judge { figure: &mut figure, patience: self.epochs, smoothing: 1 };
        // Methods that go by rounds go one in a round of Adam's.
        let by_rounds = matches!(method, MethodName::LlpEm | MethodName::AlternatingMeanMap);
        let options = MethodOptions { rebag, rounds: self.epochs, ..MethodOptions::default() };
        let trainer = self.trainer(if by_rounds { 1 } else { self.epochs }, seed);
        let mut is_over = false;
        let mut done = 0;
        let mut watch = |progress: Progress| {
            if let Progress::Batch { rows_done, .. } = progress {
                // A new round counts from 0.
                let new = rows_done.checked_sub(done).unwrap_or(rows_done);
                done = rows_done;
                if tell(new as u64).is_break() {
                    is_over = true;
                    return ControlFlow::Break(());
                }
            }
            ControlFlow::Continue(())
        };
        let lesson = Lesson { method, options, bags: &bags, loss };
        trainer.fit_method(&mut model, &data.train, &lesson, &mut watch, Some(judge))?;
        Ok((!is_over).then(|| points_of(&task.name, method, size, replica, &course)))
    }
}

fn points_of(task: &str, method: MethodName, size: usize, replica: u32, course: &Course) -> Vec<Point> {
    let point = |(measure, value): (&str, Option<f64>)| {
        Some(Point {
            panel: task.into(),
            series: method.as_str().into(),
            x: size as f64,
            replica,
            measure: measure.into(),
            value: value?,
        })
    };
    MEASURES.into_iter().zip(course.figures()).filter_map(point).collect()
}

/// A training, round by round.
#[derive(Debug, Clone, Default)]
struct Course {
    accuracies: Vec<f64>,
    /// From held-out bags; none if there are none.
    briers: Vec<f64>,
}

impl Course {
    fn figures(&self) -> [Option<f64>; 3] {
        let best = self.accuracies.iter().copied().reduce(f64::max);
        // The first of equals.
        let chosen = (0..self.briers.len())
            .reduce(|best, round| if self.briers[round] < self.briers[best] { round } else { best });
        [best, self.accuracies.last().copied(), chosen.map(|round| self.accuracies[round])]
    }
}

type Column<'a> = (u32, &'a Task, MethodName, Option<&'a HeldOut>);

fn judge_columns(
    data: &Data,
    models: &LinearColumns,
    columns: &[Column],
    courses: &mut [Course],
    link: easyllp::Link,
) -> Result<()> {
    let of_test = models.scores(&data.test)?;
    let needs_bags = columns.iter().any(|(.., held_out)| held_out.is_some());
    let of_train = if needs_bags { models.scores(&data.train)? } else { Array2::zeros((0, columns.len())) };
    let judge = |(place, ((_, task, _, held_out), course)): (usize, (&Column, &mut Course))| {
        let scores = of_test.slice(s![.., place..=place]);
        course.accuracies.push(metrics::accuracy(&Predictions::new(scores, link)?, &task.test)?);
        if let Some(held_out) = held_out {
            let score = |(place_of_row, _)| of_train[[held_out.rows[place_of_row] as usize, place]];
            course
                .briers
                .push(held_out.brier(&Array2::from_shape_fn((held_out.rows.len(), 1), score), link)?);
        }
        Ok(())
    };
    columns.par_iter().zip(courses).enumerate().try_for_each(judge)
}

/// A linear model whose weights are drawn evenly from ±1/√D.
fn start_of(data: &Data, seed: u64) -> Result<LinearModel> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut model = LinearModel::for_rows(&data.train, 2)?;
    let reach = 1.0 / (data.train.n_dense() as f32).sqrt();
    let weights = &mut model.parameters_mut().blocks_mut()[0];
    let drawn = Array2::from_shape_simple_fn(weights.values().dim(), || rng.random_range(-reach..reach));
    weights.set(drawn.view())?;
    Ok(model)
}
