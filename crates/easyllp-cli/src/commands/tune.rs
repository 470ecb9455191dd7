//! `easyllp tune`: which settings serve best, by bags that each of them was not trained on.

use crate::commands::train::{parse_l2_value, parse_loss};
use crate::commands::{parse_count, use_threads};
use crate::data::{Data, DataArgs};
use crate::figures::{ON_ASTERISKS, interval, value};
use crate::method::parse_positive;
use crate::output::{misuse, print, thousands};
use anyhow::{Context, Result};
use clap::Args;
use comfy_table::{CellAlignment, Table, presets};
use easyllp::diagnose::{Verdict, randomness};
use easyllp::estimate::Metric;
use easyllp::model::RowsForm;
use easyllp::recipe::PENALTIES;
use easyllp::table::Encoder;
use easyllp::{
    Adam, Bags, Estimate, Estimator, ImageShape, Journal, Lbfgs, Lesson, Link, LossName, MethodName,
    MethodOptions, Model, ModelName, Optimizer, Predictions, Rows, Sgd, Trainer, bagging,
};
use ndarray::Array2;
use rayon::prelude::*;
use std::fmt::Write;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Look for the settings that serve best.
///
/// Every combination of the lists below is a trial (or `--trials` of them, drawn at random). In a trial each fold of the
/// bags is scored by a model trained on the others; trials are ranked by the Brier score of these scores, and each is
/// compared with the best on the same bags. Finished trials are kept in a journal: stopped and started again, nothing is
/// repeated.
#[derive(Debug, Args)]
pub(crate) struct TuneArgs {
    #[command(flatten)]
    data: DataArgs,

    /// Models to try, by name and width, such as linear, mlp:64 or mlp:256,128; repeat it for several
    #[arg(long, value_name = "MODEL", default_value = "linear")]
    model: Vec<ModelName>,

    /// The shape of images, for a cnn; by default as the files say
    #[arg(long, value_name = "CxHxW")]
    image: Option<ImageShape>,

    /// Methods to try, apart by commas; `easyllp methods` lists them
    #[arg(long, value_name = "METHOD", value_delimiter = ',', default_value = "easyllp")]
    method: Vec<MethodName>,

    /// Losses to try, apart by commas; by default cross-entropy, and squared for networks
    #[arg(long, value_name = "LOSS", value_parser = parse_loss, value_delimiter = ',')]
    loss: Vec<LossName>,

    /// Penalties to try; by default eight for linear models, and 0 and 1 for networks
    #[arg(long, value_name = "L2", value_parser = parse_l2_value, value_delimiter = ',', allow_negative_numbers = true)]
    l2: Vec<f64>,

    /// Step sizes to try, for networks
    #[arg(long, value_name = "RATE", value_parser = parse_positive, value_delimiter = ',', allow_negative_numbers = true, default_value = "0.0003,0.001,0.003")]
    lr: Vec<f64>,

    /// Numbers of epochs to try, for networks
    #[arg(long, value_name = "N", value_parser = parse_count, value_delimiter = ',', default_value = "10")]
    epochs: Vec<NonZeroUsize>,

    /// Folds of the bags
    #[arg(long, value_name = "N", default_value = "3", value_parser = parse_count)]
    folds: NonZeroUsize,

    /// Try so many combinations, drawn at random, instead of all
    #[arg(long, value_name = "N", value_parser = parse_count)]
    trials: Option<NonZeroUsize>,

    /// Seed of folds, draws and training
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Threads; by default one a core. The result does not depend on it
    #[arg(long, value_name = "N", value_parser = parse_count)]
    threads: Option<NonZeroUsize>,

    /// Choose by metrics from bags that do not look random, with a warning
    #[arg(long)]
    force: bool,

    /// Folder of finished trials; by default the name of the file to write, with `.journal` added
    #[arg(long, value_name = "FOLDER")]
    journal: Option<PathBuf>,

    /// The TOML file to write: options of the best trial, for `easyllp train --config`
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

/// One combination of settings.
#[derive(Debug, Clone, PartialEq)]
struct Trial {
    method: MethodName,
    model: ModelName,
    loss: LossName,
    optimizer: Optimizer,
}

impl Trial {
    /// Settings in words, by which the journal knows them.
    fn words(&self) -> String {
        let (method, model, loss) = (self.method, &self.model, self.loss.as_str());
        match &self.optimizer {
            Optimizer::Lbfgs(lbfgs) => format!("{method}, {model}, {loss}, l2 {:.3e}", lbfgs.l2),
            Optimizer::Adam(adam) => format!(
                "{method}, {model}, {loss}, l2 {}, lr {}, {} epochs",
                adam.weight_decay, adam.learning_rate, adam.epochs
            ),
            Optimizer::Sgd(sgd) => format!("{method}, {model}, {loss}, lr {}", sgd.scale),
        }
    }

    /// Options of `train` that do the same.
    fn options(&self) -> String {
        let (method, model, loss) = (self.method, &self.model, self.loss.as_str());
        let mut text = format!("method = \"{method}\"\nmodel = \"{model}\"\nloss = \"{loss}\"\n");
        let _ = match &self.optimizer {
            Optimizer::Lbfgs(lbfgs) => writeln!(text, "l2 = {}", lbfgs.l2),
            Optimizer::Adam(adam) => writeln!(
                text,
                "l2 = {}\nlr = {}\nepochs = {}",
                adam.weight_decay, adam.learning_rate, adam.epochs
            ),
            Optimizer::Sgd(sgd) => writeln!(text, "lr = {}", sgd.scale),
        };
        text
    }
}

/// A trial with the scores that each fold got from a model of the others.
struct Tried {
    trial: Trial,
    scores: Array2<f32>,
    link: Link,
}

impl Tried {
    fn predictions(&self) -> easyllp::Result<Predictions<'_>> {
        Predictions::new(self.scores.view(), self.link)
    }
}

pub(crate) fn run(args: &TuneArgs) -> Result<()> {
    use_threads(args.threads)?;
    let Data { features, bags, image, n_suppressed, .. } = args.data.load()?;
    anyhow::ensure!(
        args.force || n_suppressed == 0,
        "{n_suppressed} bags were left out because their counts are suppressed. The other bags were selected by their counts, so metrics \
         estimated from them are biased, and trials are ranked by such a metric: nothing was chosen. Use --force to choose by it \
         nevertheless"
    );
    let found = randomness(&bags)?;
    anyhow::ensure!(
        args.force || !found.is_rejected(),
        "{found}, and trials are ranked by such a metric: nothing was chosen. Use --force to choose by it nevertheless"
    );
    if found.verdict != Verdict::Plausible {
        eprintln!("easyllp: warning: {found}, and trials are ranked by such a metric");
    }
    let trials = args.trials_for(&bags)?;
    let encoder = Encoder::fit(&features, args.data.encoding.options())?;
    let rows = encoder.encode(&features)?;
    drop(features);
    let form = RowsForm {
        n_dense: rows.n_dense(),
        cardinalities: rows.cardinalities(),
        image: args.image.or(image),
    };
    for model in &args.model {
        // Told before the first trial, and not after half of them.
        model.build(form, bags.n_classes(), args.seed).with_context(|| format!("model `{model}`"))?;
    }
    let folder = args.journal.clone().unwrap_or_else(|| {
        let mut name = args.out.clone().into_os_string();
        name.push(".journal");
        name.into()
    });
    let journal = Journal::open(&folder)?;
    let folds = bagging::folds(&bags, args.folds.get(), args.seed)?;
    // Whatever the scores depend on: other data or other folds are other work.
    let about = format!(
        "{}; rows {:016x}; {} folds, seed {}",
        bags.fingerprint(),
        fingerprint(&rows),
        folds.len(),
        args.seed
    );
    eprintln!(
        "easyllp: {} trials on {} bags of {} rows",
        trials.len(),
        thousands(bags.n_bags()),
        thousands(bags.n_members())
    );
    let n_done = AtomicUsize::new(0);
    let n_trials = trials.len();
    let try_one = |trial: Trial| -> Result<Tried> {
        let key = format!("{}; {about}", trial.words());
        let kept = journal.get(&key).and_then(|bytes| scores_of(&bytes, rows.n_rows()));
        let is_kept = kept.is_some();
        let scores = if let Some(scores) = kept {
            scores
        } else {
            let scores = cross_scores(&trial, form, &rows, &folds, &bags, args.seed)
                .with_context(|| format!("trial `{}`", trial.words()))?;
            journal.put(&key, &bytes_of(&scores))?;
            scores
        };
        let done = n_done.fetch_add(1, Ordering::Relaxed) + 1;
        eprintln!(
            "easyllp: {done} of {n_trials}: {}{}",
            trial.words(),
            if is_kept { " (from the journal)" } else { "" }
        );
        let link = trial.loss.training()?.link();
        Ok(Tried { trial, scores, link })
    };
    let tried = trials.into_par_iter().map(try_one).collect::<Result<Vec<Tried>>>()?;
    let board = ranked(tried, &bags)?;
    let best = &board[0].0.trial;
    let text = format!(
        "# easyllp train --config {} --rows … --reports … --key … --count … --out model\n{}",
        args.out.display(),
        best.options()
    );
    easyllp::write_whole(&args.out, text.as_bytes())?;
    let is_outside = board.iter().any(|(_, brier, _)| brier.outside_range);
    print(&format!(
        "{}\n{}From {} bags, each scored by models of other bags. Trials marked = cannot be told apart from the best.\n",
        leaderboard(&board),
        if is_outside { format!("{ON_ASTERISKS}\n") } else { String::new() },
        thousands(bags.n_bags())
    ))?;
    eprintln!("easyllp: {} written to {}", best.words(), args.out.display());
    Ok(())
}

impl TuneArgs {
    /// All combinations, or some of them.
    fn trials_for(&self, bags: &Bags) -> Result<Vec<Trial>> {
        // A fold's model sees this share of the bags; penalties of linear models go by the number of labels.
        let n_labels = bags.n_bags() as f64;
        let mut trials = Vec::new();
        let of_methods =
            self.method.iter().flat_map(|method| self.model.iter().map(move |model| (method, model)));
        for (&method, model) in of_methods {
            let is_linear = *model == ModelName::Linear;
            let has_optimum = is_linear && !method.judges_bags();
            let usual = LossName::cross_entropy(bags.n_classes());
            let losses = match &self.loss[..] {
                [] if is_linear || method.judges_bags() => vec![usual],
                [] => vec![usual, LossName::Squared],
                given => given.to_vec(),
            };
            let penalties = match &self.l2[..] {
                [] if has_optimum => PENALTIES.map(|penalty| penalty / n_labels).to_vec(),
                [] => vec![0.0, 1.0],
                given => given.to_vec(),
            };
            for &loss in &losses {
                if method == MethodName::EasyLlpSgd {
                    trials.extend(self.lr.iter().map(|&scale| Trial {
                        method,
                        model: model.clone(),
                        loss,
                        optimizer: Optimizer::Sgd(Sgd { scale, ..Sgd::default() }),
                    }));
                    continue;
                }
                for &l2 in &penalties {
                    let trial = |optimizer| Trial { method, model: model.clone(), loss, optimizer };
                    if has_optimum {
                        trials.push(trial(Optimizer::Lbfgs(Lbfgs { l2, ..Lbfgs::default() })));
                        continue;
                    }
                    for &learning_rate in &self.lr {
                        for epochs in &self.epochs {
                            trials.push(trial(Optimizer::Adam(Adam {
                                learning_rate,
                                epochs: epochs.get(),
                                weight_decay: l2,
                                ..Adam::default()
                            })));
                        }
                    }
                }
            }
        }
        if let Some(wanted) = self.trials.map(NonZeroUsize::get).filter(|&wanted| wanted < trials.len()) {
            // The bagging of trials into one drawn part and the rest.
            let drawn = bagging::random(trials.len(), &bagging::Sizes::Fixed(wanted), self.seed)?;
            let mut places: Vec<u32> = drawn.members(0).to_vec();
            places.sort_unstable();
            trials = places.into_iter().map(|place| trials[place as usize].clone()).collect();
        }
        if trials.len() < 2 {
            return Err(misuse(
                "there is one combination only, and nothing to compare: give lists of settings",
            ));
        }
        Ok(trials)
    }
}

/// Scores of all rows, each by a model of the folds that its bag is not in.
fn cross_scores(
    trial: &Trial,
    form: RowsForm,
    rows: &Rows,
    folds: &[bagging::Split],
    bags: &Bags,
    seed: u64,
) -> Result<Array2<f32>> {
    let loss = trial.loss.training()?;
    let untrained = trial.model.build(form, bags.n_classes(), seed)?;
    let mut scores = Array2::zeros((rows.n_rows(), untrained.n_scores()));
    for bagging::Split { train, held_out } in folds {
        let mut model = untrained.clone();
        let trainer = Trainer { optimizer: trial.optimizer.clone(), seed };
        let lesson = Lesson { method: trial.method, options: MethodOptions::default(), bags: train, loss };
        trainer.fit_method(&mut model, rows, &lesson, &mut |_| ControlFlow::Continue(()), None)?;
        let of_fold = model.scores(rows)?;
        for row in held_out.rows() {
            scores.row_mut(row as usize).assign(&of_fold.row(row as usize));
        }
    }
    Ok(scores)
}

/// Trials from the best Brier score to the worst, with it and with the difference to the best.
type Board = Vec<(Tried, Estimate, Estimate)>;

fn ranked(mut tried: Vec<Tried>, bags: &Bags) -> Result<Board> {
    let estimator = Estimator::new(bags)?;
    let differences = |tried: &[Tried], from: &Predictions| {
        let difference = |tried: &Tried| estimator.difference(Metric::Brier, &tried.predictions()?, from);
        tried.iter().map(difference).collect::<easyllp::Result<Vec<Estimate>>>()
    };
    // By what they differ from any one of them: all by the same form, and without what is common to all.
    let order = differences(&tried, &tried[0].predictions()?)?;
    let mut order: Vec<(f64, usize)> = order.iter().map(|estimate| estimate.value).zip(0..).collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut places: Vec<Option<Tried>> = tried.drain(..).map(Some).collect();
    tried.extend(order.into_iter().filter_map(|(_, place)| places[place].take()));
    let differences = differences(&tried, &tried[0].predictions()?)?;
    tried
        .into_iter()
        .zip(differences)
        .map(|(tried, difference)| {
            let brier = estimator.brier(&tried.predictions()?)?;
            Ok((tried, brier, difference))
        })
        .collect()
}

fn leaderboard(board: &Board) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY);
    table.set_header(["", "Brier", "95 % interval", "more than the best", "95 % interval", ""]);
    for (place, (tried, brier, difference)) in board.iter().enumerate() {
        let is_best = place == 0;
        table.add_row([
            tried.trial.words(),
            value(brier, 4),
            interval(brier, 4),
            if is_best { String::new() } else { value(difference, 4) },
            if is_best { String::new() } else { interval(difference, 4) },
            match is_best {
                true => "best".into(),
                false if difference.covers(0.0) => "=".to_owned(),
                false => String::new(),
            },
        ]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn bytes_of(scores: &Array2<f32>) -> Vec<u8> {
    scores.iter().flat_map(|score| score.to_le_bytes()).collect()
}

/// Scores that a record holds, if it is as long as so many rows make it.
fn scores_of(bytes: &[u8], n_rows: usize) -> Option<Array2<f32>> {
    let (numbers, rest) = bytes.as_chunks::<4>();
    if n_rows == 0 || !rest.is_empty() || numbers.len() % n_rows != 0 {
        return None;
    }
    let scores = numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    Array2::from_shape_vec((n_rows, numbers.len() / n_rows), scores).ok()
}

/// A number that differs if a feature does.
fn fingerprint(rows: &Rows) -> u64 {
    let all = rows.as_dense().expect("rows of files are dense").all();
    let bits = all.dense.iter().map(|value| value.to_bits()).chain(all.categories.iter().copied());
    bits.fold(0xcbf2_9ce4_8422_2325, |hash, bits| (hash ^ u64::from(bits)).wrapping_mul(0x0100_0000_01b3))
}
