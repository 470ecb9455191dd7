//! The paper's figure *bagsize_vs_perf*: test accuracy against bag size.
//!
//! By default a fifth of the bags is held out. Three accuracies of each training run are recorded:
//! the best epoch by test labels, which is the paper's protocol; the last epoch; and the epoch with
//! the lowest Brier score on validation bags, which needs no labels.

mod by_bag;
mod pass;
mod training;

use super::held_out::HeldOut;
use super::method::MethodName;
use super::{check_all, seed_of, written_out};
use crate::data::{Data, DatasetName, Task, is_against_rest};
use crate::error::Result;
use crate::point::Point;
use crate::runner::{Cell, Tell};
use by_bag::ByBag;
use easyllp::bagging::{self, Sizes};
use easyllp::session::{Method, Supports};
use easyllp::{
    Bags, ModelSpec, Partition, Predictions,
    loss::Link,
    metrics,
    optim::Adam,
    train::{Optimizer, Progress, Trainer},
};
use ndarray::{Array1, ArrayView2};
use pass::Pass;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;
use std::sync::Arc;
use training::Training;

/// The settings of the experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Accuracy {
    /// The data set.
    pub dataset: DatasetName,
    /// The tasks.
    pub tasks: Vec<String>,
    /// The model.
    pub model: String,
    /// The methods.
    pub methods: Vec<MethodName>,
    /// The bag sizes.
    pub bag_sizes: Vec<usize>,
    /// The number of replicas, each with its own bags and initial weights.
    pub replicas: u32,
    /// The number of epochs of Adam.
    pub epochs: usize,
    /// Adam's learning rate.
    #[serde(default = "usual_step")]
    pub learning_rate: f64,
    /// The minibatch size.
    #[serde(default = "usual_batch")]
    pub batch_size: usize,
    /// The share of bags held out for validation; with 0 no epoch is chosen by bags.
    #[serde(default = "a_fifth")]
    pub held_out: f64,
    /// Whether bags are regrouped in every epoch; only easyllp supports that.
    #[serde(default)]
    pub rebag: bool,
    /// Whether each class against the rest has its own figure in addition to the mean.
    #[serde(default)]
    pub each_class: bool,
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

/// The panel of the mean over all classes against the rest.
pub(crate) const ALL: &str = "one vs all";

/// Measures, in the order of [`EpochLog::measures`].
pub(crate) const MEASURES: [&str; 3] = ["best round", "last round", "chosen round"];

impl Accuracy {
    pub(super) fn check(&self) -> Result<(), String> {
        let knows_rebag = |method: &MethodName| Self::knows_rebag(*method);
        self.model.parse::<ModelSpec>().map_err(|error| error.to_string())?;
        if let Some(method) = self.methods.iter().find(|method| !self.serves(**method)) {
            return Err(format!("{} does not train {}", method.as_str(), self.model));
        }
        check_all(&[
            (
                "easyllp-sgd makes one pass, not rounds: see the experiment sgd",
                !self.methods.contains(&MethodName::EASYLLP_SGD),
            ),
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
                "`each-class` needs the task one-vs-all",
                !self.each_class || self.tasks.iter().any(|task| task == "one-vs-all"),
            ),
            (
                "only easyllp is trained on bags that are regrouped",
                !self.rebag || self.methods.iter().all(knows_rebag),
            ),
        ])
    }

    /// Whether a method supports this model.
    fn serves(&self, method: MethodName) -> bool {
        match method.config().supports() {
            Supports::Any | Supports::LogOdds => true,
            Supports::LinearLogOdds | Supports::LinearConvex => self.model == "linear",
        }
    }

    fn is_linear_over_numbers(&self) -> bool {
        self.model == "linear" && !self.dataset.has_fields()
    }

    /// Whether some of its models are trained together in one pass.
    pub(crate) fn shares_passes(&self) -> bool {
        self.methods.iter().any(|&method| pass::suits(self, method))
    }

    /// Whether a task is shown only in a mean: one class against the rest, if all classes were
    /// requested.
    pub(crate) fn is_of_all(&self, task: &str) -> bool {
        is_against_rest(task) && self.tasks.iter().any(|name| name == "one-vs-all")
    }

    /// Whether a task belongs to a panel.
    pub(crate) fn shows(&self, picture: &str, task: &str) -> bool {
        picture == task || (picture == ALL && self.is_of_all(task))
    }

    /// The panels of these points, in order of occurrence.
    pub(crate) fn pictures<'p>(&self, points: &'p [Point]) -> Vec<&'p str> {
        let mut pictures = Vec::new();
        for point in points {
            let is_of_all = self.is_of_all(&point.panel);
            let of_all = is_of_all.then_some(ALL);
            let of_task = (!is_of_all || self.each_class).then_some(point.panel.as_str());
            for picture in of_all.into_iter().chain(of_task) {
                if !pictures.contains(&picture) {
                    pictures.push(picture);
                }
            }
        }
        pictures
    }

    /// Whether a method supports bags that are regrouped; row labels need no bags.
    pub(super) fn knows_rebag(method: MethodName) -> bool {
        [MethodName::EASYLLP, MethodName::SUPERVISED].contains(&method)
    }

    /// First the shared passes over many models, then single models, replica by replica.
    pub(super) fn cells<'d>(&self, data: &'d Data, seed: u64) -> Result<Vec<Cell<'d>>> {
        let setting =
            Arc::new(Setting { accuracy: self.clone(), data, tasks: data.tasks(&self.tasks)?, seed });
        let (in_passes, others): (Vec<MethodName>, Vec<MethodName>) =
            self.methods.iter().partition(|&&method| pass::suits(self, method));
        let mut cells = Pass::all(&setting, &in_passes);
        for replica in 1..=self.replicas {
            for &method in &others {
                if by_bag::suits(&setting, method) {
                    cells.extend(ByBag::all(&setting, method, replica));
                    continue;
                }
                for &size in self.sizes_for(method) {
                    cells.extend((0..setting.tasks.len()).map(|task| {
                        Training { setting: Arc::clone(&setting), task, method, size, replica }.cell()
                    }));
                }
            }
        }
        Ok(cells)
    }

    /// Row labels: bags of one row.
    fn sizes_for(&self, method: MethodName) -> &[usize] {
        if method == MethodName::SUPERVISED { &[1] } else { &self.bag_sizes }
    }
}

/// What all cells of an experiment share.
struct Setting<'d> {
    accuracy: Accuracy,
    data: &'d Data,
    tasks: Vec<Task>,
    seed: u64,
}

impl Setting<'_> {
    /// Everything that results depend on, except what differs between cells.
    fn key(&self) -> String {
        let Accuracy { model, epochs, held_out, rebag, learning_rate, batch_size, .. } = &self.accuracy;
        format!(
            "accuracy, {}, {}, {epochs} rounds, steps {learning_rate:?}, batches {batch_size}, {held_out:?} held out, rebag {rebag}, seed {}",
            self.data.kept_as(),
            written_out(model),
            self.seed
        )
    }

    fn tasks_named(&self) -> String {
        let names: Vec<&str> = self.tasks.iter().map(|task| task.name.as_str()).collect();
        names.join(" + ")
    }

    /// The number of rows per training run.
    fn rows_in_all(&self) -> f64 {
        (self.accuracy.epochs * self.data.train.n_rows()) as f64
    }

    /// The number of them that are not held out.
    fn rows_learnt_from(&self) -> u64 {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a count")]
        let rows = (self.rows_in_all() * (1.0 - self.accuracy.held_out)) as u64;
        rows
    }

    /// Initial weights of a linear model on numbers, drawn uniformly from ±1/√D.
    fn start(&self, task: &Task, method: MethodName, replica: u32) -> Array1<f32> {
        let seed = self.seed_of(&format!("{}, {}, replica {replica}", task.name, method.as_str()));
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let n_dense = self.data.train.n_dense();
        let reach = 1.0 / (n_dense as f32).sqrt();
        Array1::from_shape_simple_fn(n_dense, || rng.random_range(-reach..reach))
    }

    /// The seed of a part of this experiment.
    fn seed_of(&self, part: &str) -> u64 {
        seed_of(self.seed, &format!("{}, {part}", self.accuracy.dataset.as_str()))
    }

    fn trainer(&self, epochs: usize, seed: u64) -> Trainer {
        let Accuracy { learning_rate, batch_size, .. } = self.accuracy;
        let adam = Adam { epochs, learning_rate, batch_size, ..Adam::default() };
        Trainer { optimizer: Optimizer::Adam(adam), seed }
    }

    /// The bags of a replica, the same for all of its tasks and methods.
    fn partition(&self, replica: u32, size: usize) -> Result<Partition> {
        let seed = self.seed_of(&format!("replica {replica}"));
        Ok(bagging::random(self.data.train.n_rows(), &Sizes::Fixed(size), seed)?)
    }

    /// Bags with the counts of a task: training and validation bags.
    fn deal(&self, partition: &Partition, task: &Task, replica: u32) -> Result<(Bags, Option<HeldOut>)> {
        let whole = Bags::from_labels(partition.clone(), &task.train, 2)?;
        let share = self.accuracy.held_out;
        if share > 0.0 {
            let parts = bagging::split(&whole, share, self.seed_of(&format!("replica {replica}")))?;
            return Ok((parts.train, Some(HeldOut::new(&parts.held_out))));
        }
        Ok((whole, None))
    }
}

/// A training run, epoch by epoch.
#[derive(Debug, Clone, Default)]
struct EpochLog {
    accuracies: Vec<f64>,
    /// The metric on validation bags; none without them.
    briers: Vec<f64>,
}

impl EpochLog {
    /// Records an epoch: scores of the test rows and of the validation rows. Returns the validation
    /// metric, if there is one.
    fn see(
        &mut self,
        task: &Task,
        of_test: ArrayView2<f32>,
        judged: Option<(&HeldOut, ArrayView2<f32>)>,
        link: Link,
    ) -> easyllp::Result<Option<f64>> {
        self.accuracies.push(metrics::accuracy(&Predictions::new(of_test, link)?, &task.test)?);
        let brier = judged.map(|(held_out, scores)| held_out.brier(scores, link)).transpose()?;
        self.briers.extend(brier);
        Ok(brier)
    }

    fn measures(&self) -> [Option<f64>; 3] {
        let best = self.accuracies.iter().copied().reduce(f64::max);
        // The first of equals.
        let chosen = (0..self.briers.len())
            .reduce(|best, round| if self.briers[round] < self.briers[best] { round } else { best });
        [best, self.accuracies.last().copied(), chosen.map(|round| self.accuracies[round])]
    }

    fn points(&self, task: &str, method: MethodName, size: usize, replica: u32) -> Vec<Point> {
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
        MEASURES.into_iter().zip(self.measures()).filter_map(point).collect()
    }
}

/// Reports how many rows this number of models has processed; `is_over` says whether to stop.
fn told<'t>(
    tell: &'t Tell,
    n_models: usize,
    is_over: &'t mut bool,
) -> impl FnMut(Progress) -> ControlFlow<()> + 't {
    let mut done = 0;
    move |progress| {
        let Progress::Batch { rows_done, .. } = progress else { return ControlFlow::Continue(()) };
        // A new round counts from 0; it may be of a single batch.
        let new = if rows_done > done { rows_done - done } else { rows_done };
        done = rows_done;
        let told = tell((new * n_models) as u64);
        *is_over |= told.is_break();
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use easyllp::Rows;
    use ndarray::Array2;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn the_chosen_round_is_the_first_of_the_best() {
        let log = EpochLog { accuracies: vec![0.6, 0.9, 0.8, 0.7], briers: vec![0.3, 0.2, 0.1, 0.1] };
        assert_eq!(log.measures(), [Some(0.9), Some(0.7), Some(0.8)]);
        let unjudged = EpochLog { briers: Vec::new(), ..log };
        assert_eq!(unjudged.points("t", MethodName::EASYLLP, 4, 2).len(), 2);
    }

    #[test]
    fn classes_against_the_rest_are_one_picture_and_each_its_own_where_asked_for() {
        let text = |more: &str| {
            format!(
                "dataset = \"optdigits\"\ntasks = [\"even-vs-odd\", \"one-vs-all\"]\nmodel = \"linear\"\n\
                 methods = [\"easyllp\"]\nbag-sizes = [2]\nreplicas = 1\nepochs = 1\n{more}"
            )
        };
        let log = EpochLog { accuracies: vec![0.5], briers: Vec::new() };
        let tasks = ["even vs odd", "0 vs rest", "1 vs rest"];
        let points = tasks.map(|task| log.points(task, MethodName::EASYLLP, 2, 1)).concat();
        let usual: Accuracy = toml::from_str(&text("")).unwrap();
        assert_eq!(usual.pictures(&points), ["even vs odd", "one vs all"]);
        assert!(usual.shows("one vs all", "1 vs rest") && !usual.shows("one vs all", "even vs odd"));
        let mut each: Accuracy = toml::from_str(&text("each-class = true")).unwrap();
        assert_eq!(each.pictures(&points), ["even vs odd", "one vs all", "0 vs rest", "1 vs rest"]);
        assert!(each.shows("1 vs rest", "1 vs rest") && !each.shows("1 vs rest", "0 vs rest"));
        assert!(each.check().is_ok());
        for (method, told) in
            [(MethodName::EASYLLP_SGD, "one pass"), (MethodName::MEAN_MAP, "mean-map does not train mlp:4")]
        {
            let model = if method == MethodName::MEAN_MAP { "mlp:4" } else { "linear" };
            let other = Accuracy { methods: vec![method], model: model.into(), ..each.clone() };
            assert!(other.check().unwrap_err().contains(told));
        }
        each.tasks.pop();
        assert!(each.check().unwrap_err().contains("one-vs-all"));
    }

    fn digits() -> Data {
        crate::data::load(DatasetName::Optdigits, "nowhere".as_ref()).unwrap()
    }

    /// What a method finds for these tasks in pairs of rows, cell by cell.
    fn found(data: &Data, method: MethodName, tasks: &[&str]) -> Vec<Vec<Point>> {
        let accuracy = Accuracy {
            dataset: DatasetName::Optdigits,
            tasks: tasks.iter().map(|&task| task.into()).collect(),
            model: "linear".into(),
            methods: vec![method],
            bag_sizes: vec![2],
            replicas: 1,
            epochs: 12,
            learning_rate: 0.01,
            batch_size: 64,
            held_out: 0.2,
            rebag: false,
            each_class: false,
        };
        let seed = std::env::var("EASYLLP_TEST_SEED").map_or(1, |seed| seed.parse().unwrap());
        let cells = accuracy.cells(data, seed).unwrap();
        cells.iter().map(|cell| (cell.work)(&|_| ControlFlow::Continue(())).unwrap().unwrap()).collect()
    }

    /// In passes, side by side, and alone: as many rows as were announced, except for the rest when bags are held out.
    #[test]
    fn cells_tell_of_as_many_rows_as_they_said() {
        let digits = digits();
        for (methods, tasks) in
            [("easyllp", "even-vs-odd"), ("label-generation", "one-vs-all"), ("label-generation", "3")]
        {
            // Batches of more rows than there are: a round has a single one.
            let text = format!(
                "dataset = \"optdigits\"\ntasks = [\"{tasks}\"]\nmodel = \"linear\"\nmethods = [\"{methods}\"]\n\
                 bag-sizes = [4]\nreplicas = 2\nepochs = 3\nbatch-size = 10000"
            );
            let accuracy: Accuracy = toml::from_str(&text).unwrap();
            for cell in accuracy.cells(&digits, 1).unwrap() {
                let told = AtomicU64::new(0);
                let tell = |rows: u64| {
                    told.fetch_add(rows, Ordering::Relaxed);
                    ControlFlow::Continue(())
                };
                (cell.work)(&tell).unwrap().unwrap();
                let share = told.into_inner() as f64 / cell.rows as f64;
                assert!((share - 1.0).abs() < 0.01, "{}: {share}", cell.key);
            }
        }
    }

    #[test]
    fn a_run_that_diverges_at_once_has_no_result_and_is_no_error() {
        let mut digits = digits();
        // Pixels as bright as numbers go: no gradient of them is finite.
        let too_bright = Array2::from_elem((digits.train.n_rows(), digits.train.n_dense()), f32::MAX);
        digits.train = Rows::dense(too_bright).unwrap();
        // In passes, side by side, and alone.
        for (method, tasks) in [
            (MethodName::EASYLLP, "one-vs-all"),
            (MethodName::LABEL_GENERATION, "one-vs-all"),
            (MethodName::LABEL_GENERATION, "3"),
        ] {
            assert!(found(&digits, method, &[tasks]).concat().is_empty(), "{method:?}, {tasks}");
        }
    }

    /// Passes on 20 of the seeds 0 to 19.
    #[test]
    fn tasks_that_share_their_bags_are_learnt_together_and_each_as_well() {
        let method = MethodName::LABEL_GENERATION;
        let together = found(&digits(), method, &["one-vs-all"]).concat();
        assert_eq!(together.len(), 10 * MEASURES.len());
        for alone in found(&digits(), method, &["0", "1"]).iter().flatten() {
            let same = |point: &&Point| point.panel == alone.panel && point.measure == alone.measure;
            let shared = together.iter().find(same).unwrap();
            // Weights start elsewhere and batches come in another order. Of 1,797 test rows a hundredth is 18.
            assert!((shared.value - alone.value).abs() < 0.01, "{shared:?} {alone:?}");
            assert!(alone.value > 0.95, "{alone:?}");
        }
    }
}
