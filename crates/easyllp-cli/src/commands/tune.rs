//! `easyllp tune`: search hyperparameters by cross-validation over bags.

mod board;
mod trial;

use crate::commands::{parse_count, use_threads};
use crate::config::ConfigFile;
use crate::data::Data;
use crate::data::args::DataArgs;
use crate::messages::{note, warn};
use crate::method::MethodSetting;
use crate::output::{misuse, print, print_json, refused_settings, thousands};
use anyhow::{Context, Result};
use board::Board;
use clap::Args;
use easyllp::diagnose::{Verdict, randomness};
use easyllp::model::RowsForm;
use easyllp::table::Encoder;
use easyllp::{Bags, ModelSpec, Rows, bagging, files::Journal, loss::LossName, model::ImageShape};
use rayon::prelude::*;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use trial::{Grid, Lists, Scored, Trial};

/// Search hyperparameters by cross-validation over bags.
///
/// Every combination of the lists below is a trial. In a trial each fold of the bags is scored by a model trained on the others. Trials
/// are ranked by the Brier score of these scores, and each is compared with the best on the same bags. Finished trials are kept in a
/// journal: an interrupted search continues where it stopped.
#[derive(Debug, Args)]
pub(crate) struct TuneArgs {
    #[command(flatten)]
    data: DataArgs,

    /// Method to try, with parameters, such as easyllp:bag_weights=size; repeat for several. [default: easyllp]
    #[arg(long, value_name = "NAME:PARAM=VALUE,...")]
    method: Vec<MethodSetting>,

    /// Model to try, such as linear or mlp:256,128; repeat for several. [default: linear]
    #[arg(long, value_name = "MODEL")]
    model: Vec<ModelSpec>,

    /// Shape of the images, for a cnn. [default: inferred from the files]
    #[arg(long, value_name = "CxHxW")]
    image: Option<ImageShape>,

    /// Losses to try, comma-separated. [default: cross-entropy, for networks squared, too]
    #[arg(long, value_name = "LOSS", value_delimiter = ',')]
    loss: Vec<LossName>,

    /// L2 penalties to try, comma-separated. [default: eight for linear models, 0 and 1 for networks]
    #[arg(long, value_name = "L2", value_delimiter = ',', allow_negative_numbers = true)]
    l2: Vec<f64>,

    /// Learning rates to try with Adam, comma-separated. [default: 0.0003,0.001,0.003]
    #[arg(long, value_name = "RATE", value_delimiter = ',', allow_negative_numbers = true)]
    lr: Vec<f64>,

    /// Numbers of epochs to try with Adam, comma-separated. [default: 10]
    #[arg(long, value_name = "N", value_parser = parse_count, value_delimiter = ',')]
    epochs: Vec<NonZeroUsize>,

    /// Folds of the bags
    #[arg(long, value_name = "N", default_value = "3", value_parser = parse_count)]
    folds: NonZeroUsize,

    /// Try N combinations, drawn at random, instead of all
    #[arg(long, value_name = "N", value_parser = parse_count)]
    trials: Option<NonZeroUsize>,

    /// Seed of folds, draws and training. [default: 1]
    #[arg(long, value_name = "SEED")]
    seed: Option<u64>,

    /// Threads. The result does not depend on their number. [default: one per core]
    #[arg(long, value_name = "N", value_parser = parse_count)]
    threads: Option<NonZeroUsize>,

    /// Use metrics from bags that do not look random, with a warning
    #[arg(long)]
    force: bool,

    /// Folder of finished trials. [default: the file of --out with .journal added]
    #[arg(long, value_name = "FOLDER")]
    journal: Option<PathBuf>,

    /// Print the trials as JSON
    #[arg(long)]
    json: bool,

    /// TOML file to write: the data and the settings of the best trial, for `easyllp train --config`
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

pub(crate) fn run(args: &TuneArgs) -> Result<()> {
    let file = args.settings()?;
    use_threads(file.threads)?;
    let grid = Grid::new(&args.lists(), &file)?;
    let Data { features, bags, image, n_suppressed, .. } = file.data.load()?;
    refuse_biased(&bags, n_suppressed, file.force)?;
    let trials = grid.trials(&bags, args.trials)?;
    let encoder = Encoder::fit(&features, file.data.encoder_options()?)?;
    let rows = encoder.encode(&features)?;
    drop(features);
    let image = file.image.or(image);
    let form = RowsForm { n_dense: rows.n_dense(), cardinalities: rows.cardinalities(), image };
    for trial in &trials {
        // Told before the first trial, and not after half of them.
        let checked = trial.config.check(false).and_then(|()| trial.config.check_classes(bags.n_classes()));
        checked.map_err(refused_settings)?;
        let model = &trial.config.model;
        model.build(form, bags.n_classes(), file.seed).with_context(|| format!("model `{model}`"))?;
    }
    let scored = args.run_trials(trials, &rows, &bags, form, file.seed)?;
    let board = Board::ranked(scored, &bags)?;
    let best = board.best();
    easyllp::files::write_whole(&args.out, args.best_settings(&file, best)?.as_bytes())?;
    if args.json {
        print_json(&board)?;
    } else {
        print(&board.text(bags.n_bags()))?;
    }
    note(format!("{} written to {}", best.words(), args.out.display()));
    Ok(())
}

/// Rejects bags for which metrics would be biased, unless `force` is set.
fn refuse_biased(bags: &Bags, n_suppressed: usize, force: bool) -> Result<()> {
    anyhow::ensure!(
        force || n_suppressed == 0,
        "{n_suppressed} bags were left out because their counts are suppressed. The other bags were selected by their counts, so metrics \
         estimated from them are biased, and trials are ranked by such a metric: nothing was chosen. Use --force to choose by it \
         nevertheless"
    );
    let found = randomness(bags)?;
    anyhow::ensure!(
        force || !found.is_rejected(),
        "{found}, and trials are ranked by such a metric: nothing was chosen. Use --force to choose by it nevertheless"
    );
    if found.verdict != Verdict::Plausible {
        warn(format!("{found}, and trials are ranked by such a metric"));
    }
    Ok(())
}

impl TuneArgs {
    /// The settings of the file, overridden by the command line.
    fn settings(&self) -> Result<ConfigFile> {
        let mut file = self.data.config()?;
        file.image = self.image.or(file.image);
        file.seed = self.seed.unwrap_or(file.seed);
        file.threads = self.threads.or(file.threads);
        file.force |= self.force;
        file.data.check(true)?;
        Ok(file)
    }

    fn lists(&self) -> Lists<'_> {
        Lists {
            methods: &self.method,
            models: &self.model,
            losses: &self.loss,
            penalties: &self.l2,
            rates: &self.lr,
            epochs: &self.epochs,
        }
    }

    /// The scores of all rows by each trial, from the journal if recorded.
    fn run_trials(
        &self,
        trials: Vec<Trial>,
        rows: &Rows,
        bags: &Bags,
        form: RowsForm,
        seed: u64,
    ) -> Result<Vec<Scored>> {
        let folder = self.journal.clone().unwrap_or_else(|| {
            let mut name = self.out.clone().into_os_string();
            name.push(".journal");
            name.into()
        });
        let journal = Journal::open(&folder)?;
        let folds = bagging::folds(bags, self.folds.get(), seed)?;
        // Whatever the scores depend on: other data or other folds are other work.
        let about =
            format!("{}; rows {:016x}; {} folds", bags.fingerprint(), trial::fingerprint(rows), folds.len());
        let (n_trials, n_done) = (trials.len(), AtomicUsize::new(0));
        note(format!(
            "{n_trials} trials on {} bags of {} rows",
            thousands(bags.n_bags()),
            thousands(bags.n_members())
        ));
        let run = |trial: Trial| -> Result<Scored> {
            let key = format!("{}; {about}", trial.key()?);
            let kept = journal.get(&key).and_then(|bytes| trial::scores_of(&bytes, rows.n_rows()));
            let from = if kept.is_some() { " (from the journal)" } else { "" };
            let scores = if let Some(scores) = kept {
                scores
            } else {
                let scores = trial
                    .cross_scores(form, rows, &folds, bags.n_classes())
                    .with_context(|| format!("trial `{}`", trial.words()))?;
                journal.put(&key, &trial::bytes_of(&scores))?;
                scores
            };
            let done = n_done.fetch_add(1, Ordering::Relaxed) + 1;
            note(format!("{done} of {n_trials}: {}{from}", trial.words()));
            Scored::new(trial, scores)
        };
        trials.into_par_iter().map(run).collect()
    }

    /// The file for `train`: the data, and the settings of a trial.
    fn best_settings(&self, file: &ConfigFile, best: &Trial) -> Result<String> {
        let settings = ConfigFile {
            out: None,
            threads: None,
            label: None,
            positive: Vec::new(),
            model: best.config.model.clone(),
            loss: best.config.loss,
            method: best.method.clone(),
            optimizer: best.config.optimizer,
            ..file.clone()
        };
        let path = self.out.display();
        Ok(format!("# easyllp train --config {path} --out MODEL\n{}", settings.to_toml()?))
    }
}

/// Requires at least two trials.
fn nothing_to_compare() -> anyhow::Error {
    misuse("there is one combination only, and nothing to compare: give lists of settings")
}
