//! The methods side by side, on MNIST.
//!
//! `methods linear|network|digits FOLDER [SEEDS [EPOCHS [METHOD…]]]` prints the test accuracy of every method, or of those named, and every
//! bag size: of the best epoch by test labels, of the last, and of the one that held-out bags (a fifth) chose by their Brier score; means over
//! seeds of bagging, split and training, and what seeds differ by. Finished trainings are kept in FOLDER, and not repeated. `linear` and
//! `network` (`cnn:mnist`) tell odd from even, `digits` is that network on all ten. Linear models are trained twice: the best and the last
//! epoch are those of a training on all bags. Networks hold out a fifth of the bags in all three.
//!
//! `methods penalty FOLDER [SEEDS]` brings linear models of easyllp and mean-map to their optimum, with the penalty that held-out bags
//! choose.
//!
//! `methods speed` prints the time of an epoch of `cnn:mnist`, over that of `supervised`; trainings take turns, and medians count.
//! `methods mean-map` prints the seconds that it takes to its optimum, targets included.

use easyllp::bagging::{Sizes, Split, random, split};
use easyllp::fit::FitEvent;
use easyllp::method::MethodConfig;
use easyllp::model::RowsForm;
use easyllp::table::{Column, Table};
use easyllp::train::EarlyStopping;
use easyllp::{
    Bags, Estimator, Partition, Predictions, Result, Rows, Session,
    files::Journal,
    loss::LossName,
    metrics,
    model::{AnyModel, LinearModel, Scorer},
    optim::{Adam, Lbfgs},
    train::{Optimizer, Progress},
};
use easyllp_benches::mnist;
use ndarray::Array2;
use rayon::prelude::*;
use std::fmt::Write;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

/// The model, and its rows.
struct Task {
    model: &'static str,
    n_classes: usize,
    train: Rows<'static>,
    train_labels: Vec<u32>,
    test: Rows<'static>,
    test_labels: Vec<u32>,
}

/// A method with its parameters.
#[derive(Clone)]
struct Way {
    name: &'static str,
    method: MethodConfig,
    /// Whether weights are averaged.
    average: bool,
}

impl Way {
    fn plain(words: &'static str) -> Self {
        Self::with(words, words)
    }

    fn with(name: &'static str, words: &str) -> Self {
        Self { name, method: words.parse().expect("a method"), average: true }
    }

    /// Accuracies are of models after each epoch; such a method goes a round in it.
    fn is_by_rounds(&self) -> bool {
        matches!(self.method, MethodConfig::LlpEm(_) | MethodConfig::AlternatingMeanMap(_))
    }

    /// The method with at most so many rounds, if it goes by rounds.
    fn of_rounds(&self, epochs: usize) -> MethodConfig {
        if !self.is_by_rounds() {
            return self.method.clone();
        }
        format!("{}:rounds={epochs}", self.method.name()).parse().expect("rounds are a parameter")
    }

    /// A model that the method trains on all bags by this optimizer.
    fn train(
        &self,
        model: AnyModel,
        rows: &Rows,
        bags: &Bags,
        loss: LossName,
        optimizer: Optimizer,
        seed: u64,
    ) -> Result<AnyModel> {
        let mut session = Session::new(model, rows, bags, loss.training()?);
        session.set_optimizer(optimizer);
        session.set_seed(seed);
        session.run(&self.method)?;
        Ok(session.finish().0)
    }
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize, usual: usize| {
        arguments.get(place).map_or(usual, |text| text.parse().expect("a whole number"))
    };
    let folder = || Path::new(arguments.get(1).expect("a folder to keep finished trainings in"));
    let seeds = number(2, 5) as u64;
    let named = |ways: Vec<Way>| -> Vec<Way> {
        let names = arguments.get(4..).unwrap_or_default();
        ways.into_iter().filter(|way| names.is_empty() || names.iter().any(|name| name == way.name)).collect()
    };
    match arguments.first().map(String::as_str) {
        Some("linear") => {
            let sizes = [2, 8, 32, 128, 512, 1024];
            tables(&task("linear", 2)?, &named(linear_ways()), &sizes, folder(), seeds, number(3, 40))
        }
        Some("network") => {
            let ways = named(network_ways());
            tables(&task("cnn:mnist", 2)?, &ways, &[32, 256, 1024], folder(), seeds, number(3, 15))
        }
        Some("digits") => {
            let ways = named(network_ways());
            tables(&task("cnn:mnist", 10)?, &ways, &[32], folder(), seeds, number(3, 15))
        }
        Some("penalty") => penalties(&task("linear", 2)?, folder(), seeds),
        Some("speed") => speed(&task("cnn:mnist", 2)?),
        Some("mean-map") => mean_map(&task("linear", 2)?),
        _ => panic!("linear, network, digits, penalty, speed or mean-map"),
    }
}

fn task(model: &'static str, n_classes: usize) -> Result<Task> {
    let parts = if n_classes == 2 { mnist::even_and_odd()? } else { mnist::digits()? };
    let [train, test] = parts.expect("MNIST's files");
    Ok(Task {
        model,
        n_classes,
        train: pixels(&train.0)?,
        train_labels: train.1,
        test: pixels(&test.0)?,
        test_labels: test.1,
    })
}

/// Pixels from 0 to 1, as the paper's field has them.
fn pixels(images: &Table) -> Result<Rows<'static>> {
    let [(_, Column::Vector(pixels))] = images.columns() else { panic!("one column of images") };
    Rows::dense(pixels.mapv(|pixel| pixel / 255.0))
}

fn linear_ways() -> Vec<Way> {
    let mut ways: Vec<Way> = MethodConfig::all()
        .into_iter()
        .map(|method| Way { name: method.name(), method, average: true })
        .filter(|way| way.name != "easyllp-sgd")
        .collect();
    ways.push(Way::with("easyllp, surrogate", "easyllp:targets=surrogate"));
    ways.push(by_bags());
    ways.push(Way { name: "easyllp, weights not averaged", average: false, ..Way::plain("easyllp") });
    ways
}

fn by_bags() -> Way {
    Way::with("easyllp, batches of bags", "easyllp:batches=bags")
}

fn network_ways() -> Vec<Way> {
    let methods =
        ["easyllp", "label-generation", "proportion-matching", "debiased-square", "count-likelihood"];
    methods.map(Way::plain).to_vec()
}

/// The accuracy of a training's best, last and chosen epoch.
type Course = [f64; 3];

/// A table for each of the three, a line a method, a column a bag size.
#[expect(clippy::print_stdout, reason = "the result")]
fn tables(
    task: &Task,
    ways: &[Way],
    sizes: &[usize],
    folder: &Path,
    seeds: u64,
    epochs: usize,
) -> Result<()> {
    let journal = Journal::open(folder)?;
    // Labels do not come in sizes: they are trained on once.
    let at = |way: &Way, size: usize| if way.name == "supervised" { sizes[0] } else { size };
    let mut cells = Vec::new();
    for seed in 1..=seeds {
        for &size in sizes {
            let of_size = ways.iter().filter(|way| at(way, size) == size);
            cells.extend(of_size.map(|way| (way, size, seed)));
        }
    }
    let courses = cells
        .par_iter()
        .map(|&(way, size, seed)| {
            let key =
                format!("{}, {} classes, {}, {size}, {seed}, {epochs}", task.model, task.n_classes, way.name);
            if let Some(course) = journal.get(&key).and_then(|bytes| course_of(&bytes)) {
                return Ok(course);
            }
            let begun = Instant::now();
            let course = course(task, way, size, seed, epochs)?;
            journal.put(&key, &course.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>())?;
            eprintln!("{key}: {course:.4?}, {:.1} s", begun.elapsed().as_secs_f64());
            Ok(course)
        })
        .collect::<Result<Vec<Course>>>()?;
    for (place, title) in
        ["best epoch by test labels", "last epoch", "epoch chosen by held-out bags"].iter().enumerate()
    {
        let head: Vec<String> = sizes.iter().map(|size| format!("k = {size}")).collect();
        println!("| {title} | {} |\n|---{}|", head.join(" | "), "|---".repeat(sizes.len()));
        for way in ways {
            let mut line = format!("| {}", way.name);
            for &size in sizes {
                let is_it = |of: &Way, of_size: usize| of.name == way.name && of_size == at(way, size);
                let of_seeds = cells.iter().zip(&courses).filter(|((of, of_size, _), _)| is_it(of, *of_size));
                let values: Vec<f64> = of_seeds.map(|(_, course)| course[place]).collect();
                let _ = write!(line, " | {}", mean_and_spread(&values));
            }
            println!("{line} |");
        }
        println!();
    }
    Ok(())
}

fn mean_and_spread(values: &[f64]) -> String {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    if values.len() < 2 {
        return format!("{mean:.3}");
    }
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    format!("{mean:.3} ± {:.3}", variance.sqrt())
}

fn course_of(bytes: &[u8]) -> Option<Course> {
    let values: Vec<f64> =
        bytes.chunks_exact(8).map(|bytes| f64::from_le_bytes(bytes.try_into().expect("eight"))).collect();
    values.try_into().ok()
}

fn deal(task: &Task, way: &Way, size: usize, seed: u64) -> Result<Bags> {
    let n_rows = task.train_labels.len();
    let partition = if way.name == "supervised" {
        Partition::new(n_rows, (0..).take(n_rows).map(|row: u32| [row]))?
    } else {
        random(n_rows, &Sizes::Fixed(size), seed)?
    };
    Bags::from_labels(partition, &task.train_labels, task.n_classes)
}

fn build(task: &Task, seed: u64) -> Result<AnyModel> {
    let form = RowsForm { n_dense: 784, cardinalities: &[], image: Some("1x28x28".parse()?) };
    task.model.parse::<easyllp::ModelSpec>()?.build(form, task.n_classes, seed)
}

fn course(task: &Task, way: &Way, size: usize, seed: u64, epochs: usize) -> Result<Course> {
    let whole = deal(task, way, size, seed)?;
    let Split { train, held_out } = split(&whole, 0.2, seed)?;
    let (accuracies, chosen) = accuracies(task, way, &train, Some(&held_out), seed, epochs)?;
    let of_chosen = accuracies[chosen - 1];
    let accuracies = match task.model {
        "linear" => self::accuracies(task, way, &whole, None, seed, epochs)?.0,
        _ => accuracies,
    };
    let best = accuracies.iter().copied().fold(0.0, f64::max);
    Ok([best, *accuracies.last().expect("an epoch"), of_chosen])
}

/// The accuracy after each epoch, and the epoch that held-out bags choose (the last, if there are none).
fn accuracies(
    task: &Task,
    way: &Way,
    train: &Bags,
    held_out: Option<&Bags>,
    seed: u64,
    epochs: usize,
) -> Result<(Vec<f64>, usize)> {
    let loss = LossName::cross_entropy(task.n_classes).training()?;
    let judges = held_out.map(|bags| -> Result<_> {
        let rows = bags.rows();
        Ok((Estimator::new(bags)?, task.train.select(&rows), rows))
    });
    let judges = judges.transpose()?;
    let mut accuracies = Vec::new();
    let mut figure = |model: &(dyn Scorer + 'static)| {
        let scores = model.scores(&task.test)?;
        accuracies
            .push(metrics::accuracy(&Predictions::new(scores.view(), loss.link())?, &task.test_labels)?);
        let Some((estimator, rows, places)) = &judges else { return Ok(-(accuracies.len() as f64)) };
        // An estimate looks at the scores of its bags' rows alone.
        let mut of_all = Array2::zeros((task.train.n_rows(), scores.ncols()));
        for (score, &place) in model.scores(rows)?.rows().into_iter().zip(places) {
            of_all.row_mut(place as usize).assign(&score);
        }
        Ok(estimator.brier(&Predictions::new(of_all.view(), loss.link())?)?.value)
    };
    let judge = EarlyStopping { metric: &mut figure, patience: epochs, smoothing: 1 };
    let per_round = if way.is_by_rounds() { 1 } else { epochs };
    let mut session = Session::new(build(task, seed)?, &task.train, train, loss);
    session.set_optimizer(Optimizer::Adam(Adam {
        epochs: per_round,
        average: way.average,
        ..Adam::default()
    }));
    session.set_seed(seed);
    session.set_early_stopping(judge);
    session.run(&way.of_rounds(epochs))?;
    let (_, stages): (AnyModel, _) = session.finish();
    let log = &stages[0].log;
    let chosen = log.best.map(|(epoch, _)| epoch);
    let chosen = chosen.unwrap_or(accuracies.len());
    Ok((accuracies, chosen))
}

/// Optima with the best of some penalties.
#[expect(clippy::print_stdout, reason = "the result")]
fn penalties(task: &Task, folder: &Path, seeds: u64) -> Result<()> {
    const SIZES: [usize; 6] = [2, 8, 32, 128, 512, 1024];
    const PENALTIES: [f64; 4] = [300.0, 30.0, 3.0, 0.3];
    let journal = Journal::open(folder)?;
    let loss = LossName::Logistic.training()?;
    let head: Vec<String> = SIZES.iter().map(|size| format!("k = {size}")).collect();
    println!(
        "| optimum, penalty chosen by held-out bags | {} |\n|---{}|",
        head.join(" | "),
        "|---".repeat(6)
    );
    for method in ["easyllp", "mean-map", "laplacian-mean-map"] {
        let way = Way::plain(method);
        let mut line = format!("| {method}");
        for size in SIZES {
            let of_seed = |seed: u64| -> Result<f64> {
                let key = format!("penalty, {method}, {size}, {seed}");
                let kept = journal.get(&key).and_then(|bytes| bytes.try_into().ok()).map(f64::from_le_bytes);
                if let Some(kept) = kept {
                    return Ok(kept);
                }
                let Split { train, held_out } = split(&deal(task, &way, size, seed)?, 0.2, seed)?;
                let estimator = Estimator::new(&held_out)?;
                let mut model = build(task, seed)?;
                let mut best = (f64::INFINITY, 0.0);
                for penalty in PENALTIES {
                    let l2 = penalty / train.n_bags() as f64;
                    let optimizer = Optimizer::Lbfgs(Lbfgs { l2, ..Lbfgs::default() });
                    model = way.train(model, &task.train, &train, LossName::Logistic, optimizer, seed)?;
                    let scores = model.scores(&task.train)?;
                    let figure = estimator.brier(&Predictions::new(scores.view(), loss.link())?)?.value;
                    if figure < best.0 {
                        let scores = model.scores(&task.test)?;
                        let predictions = Predictions::new(scores.view(), loss.link())?;
                        best = (figure, metrics::accuracy(&predictions, &task.test_labels)?);
                    }
                }
                journal.put(&key, &best.1.to_le_bytes())?;
                eprintln!("{key}: {:.4}", best.1);
                Ok(best.1)
            };
            let values = (1..=seeds).into_par_iter().map(of_seed).collect::<Result<Vec<f64>>>()?;
            let _ = write!(line, " | {}", mean_and_spread(&values));
        }
        println!("{line} |");
    }
    Ok(())
}

/// Time of an epoch over that of `supervised`.
#[expect(clippy::print_stdout, reason = "the result")]
fn speed(task: &Task) -> Result<()> {
    const TURNS: usize = 5;
    let loss = LossName::Logistic.training()?;
    let supervised = Way::plain("supervised");
    println!("| k | method | ms per epoch | over supervised |\n|---|---|---|---|");
    for size in [64, 1024] {
        let ways: Vec<Way> = [supervised.clone()]
            .into_iter()
            .chain(network_ways())
            .chain([by_bags(), Way::plain("naive")])
            .collect();
        let bags = ways.iter().map(|way| deal(task, way, size, 1)).collect::<Result<Vec<Bags>>>()?;
        let mut times = vec![Vec::new(); ways.len()];
        for _ in 0..TURNS {
            for ((way, bags), times) in ways.iter().zip(&bags).zip(&mut times) {
                // What comes before the first epoch is not an epoch's.
                let mut begun = Instant::now();
                let mut epochs = Vec::new();
                let mut watch = |event: FitEvent| {
                    if let FitEvent::Progress(Progress::Epoch(_)) = event {
                        epochs.push(begun.elapsed().as_secs_f64());
                        begun = Instant::now();
                    }
                    ControlFlow::Continue(())
                };
                let mut session = Session::new(build(task, 1)?, &task.train, bags, loss);
                session.set_optimizer(Optimizer::Adam(Adam { epochs: 2, ..Adam::default() }));
                session.set_seed(1);
                session.set_watch(&mut watch);
                session.run(&way.method)?;
                drop(session);
                times.push(epochs[1]);
            }
        }
        let median = |times: &Vec<f64>| {
            let mut sorted = times.clone();
            sorted.sort_by(f64::total_cmp);
            sorted[TURNS / 2]
        };
        let of_labels = median(&times[0]);
        for (way, times) in ways.iter().zip(&times) {
            let time = median(times);
            println!("| {size} | {} | {:.0} | {:.2} |", way.name, 1e3 * time, time / of_labels);
        }
    }
    Ok(())
}

/// Time of a mean map, targets and all.
#[expect(clippy::print_stdout, reason = "the result")]
fn mean_map(task: &Task) -> Result<()> {
    let loss = LossName::Logistic.training()?;
    println!("| k | mean-map, seconds | iterations |\n|---|---|---|");
    let way = Way::plain("mean-map");
    for size in [2, 64, 1024] {
        let bags = deal(task, &way, size, 1)?;
        let l2 = 30.0 / bags.n_bags() as f64;
        let model = LinearModel::for_rows(&task.train, 2)?;
        let begun = Instant::now();
        let mut session = Session::new(model, &task.train, &bags, loss);
        session.set_optimizer(Optimizer::Lbfgs(Lbfgs { l2, ..Lbfgs::default() }));
        session.set_seed(1);
        session.run(&way.method)?;
        let (_, stages): (LinearModel, _) = session.finish();
        let log = &stages[0].log;
        println!("| {size} | {:.2} | {} |", begun.elapsed().as_secs_f64(), log.epochs.len());
    }
    Ok(())
}
