//! `easyllp train`: train a model on rows and reports.

mod report;

use crate::commands::{parse_count, use_threads};
use crate::config::ConfigFile;
use crate::data::Data;
use crate::data::args::DataArgs;
use crate::diagnosis::{Shown, on_uneven_columns, uneven_columns, verdict};
use crate::messages::{detail, note, warn};
use crate::output::{misuse, print, print_json, refuse_overwrite, refused_settings, spelled, thousands};
use crate::progress::{Step, Training};
use crate::settings::FitArgs;
use anyhow::{Result, bail};
use clap::Args;
use easyllp::diagnose::{Randomness, Verdict, randomness};
use easyllp::fit::{FitEvent, StageOptimizer};
use easyllp::table::{Column, Encoder};
use easyllp::{
    Bags, FitConfig, Fitted, ModelSpec,
    classes::{Classes, CountOrder},
    model::ImageShape,
};
use report::Report;
use std::fmt::Write;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::PathBuf;

/// Train a model of rows from bags.
///
/// A share of the bags is held out as validation bags. They choose the penalty or the number of epochs, and estimate metrics. No bag
/// evaluates what it chose: validation bags are split into folds, and each fold evaluates what is best on the others. The saved model
/// is trained on all bags.
#[derive(Debug, Args)]
pub(crate) struct TrainArgs {
    #[command(flatten)]
    data: DataArgs,

    /// Column with row labels, instead of reports: for the method `supervised`, and for the parameter `rebag`
    #[arg(long, value_name = "COLUMN", conflicts_with_all = ["reports", "key", "count", "class"])]
    label: Option<String>,

    /// Positive values of the label
    #[arg(long, value_name = "VALUE", value_delimiter = ',', requires = "label")]
    positive: Vec<String>,

    /// Model file to write
    #[arg(long, value_name = "FILE", required_unless_present = "config")]
    out: Option<PathBuf>,

    /// Threads. The model does not depend on their number. [default: one per core]
    #[arg(long, value_name = "N", value_parser = parse_count)]
    threads: Option<NonZeroUsize>,

    /// Print validation metrics of bags that do not look random, with a warning
    #[arg(long)]
    force: bool,

    /// Print validation metrics, settings and stages as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    fit: FitArgs,
}

pub(crate) fn run(args: &TrainArgs) -> Result<()> {
    let file = args.settings()?;
    use_threads(file.threads)?;
    let config = checked(&file)?;
    let Some(out) = &file.out else {
        return Err(misuse("neither the command line nor the --config file sets --out"));
    };
    for line in file.to_toml()?.lines().filter(|line| !line.is_empty()) {
        detail(format!("settings: {line}"));
    }
    let step = Step::begin("reading rows and reports");
    refuse_overwrite(out, file.data.files())?;
    let data = match &file.label {
        Some(label) => file.data.load_labelled(label, &file.positive)?,
        None => file.data.load()?,
    };
    drop(step);
    note(format!(
        "{} rows in {} bags, {} columns to learn from",
        thousands(data.bags.n_members()),
        thousands(data.bags.n_bags()),
        data.features.columns().len()
    ));
    config.check_classes(data.bags.n_classes()).map_err(refused_settings)?;
    refuse_one_class(&data.bags, &data.classes)?;
    let shown = warn_unless_random(&data, &config, file.force)?;
    let Data { features, bags, classes, image, .. } = data;
    let image = image_for(&config.model, features.columns(), file.image.or(image))?;
    let step = Step::begin("encoding columns and comparing them from bag to bag");
    let encoder = Encoder::fit(&features, file.data.encoder_options()?)?;
    let rows = encoder.encode(&features)?;
    drop(features);
    let uneven = uneven_columns(&rows, &encoder, &bags)?;
    drop(step);
    if !uneven.is_empty() {
        warn(on_uneven_columns(&uneven, Some(&config.method)));
    }

    note(format!("optimizer: {}", spelled(&config.optimizer_choice().to_string())));
    let mut training = None;
    let mut watch = |event: FitEvent| {
        match event {
            FitEvent::Started { what, stage, epochs, rows } => {
                training = Some(Training::begin(&format!("{stage}, {what}"), epochs, rows));
            }
            FitEvent::Progress(progress) => training.iter_mut().for_each(|training| training.see(&progress)),
        }
        ControlFlow::Continue(())
    };
    let fit = config.fitting(&rows, &bags).encoder(encoder).classes(classes).image(image);
    let fitted = fit.watch(&mut watch).run()?;
    drop(training);
    for stage in &fitted.stages {
        detail(format!("stage {}", report::words(stage)));
    }
    fitted.notes.iter().for_each(note);
    let report = Report::new(&fitted, shown, out)?;
    let how = optimum(&fitted);
    fitted.save(out)?;
    if args.json {
        print_json(&report)?;
    } else {
        print(&report.text())?;
    }
    note(format!("{how}model written to {}", out.display()));
    Ok(())
}

impl TrainArgs {
    /// The settings of the file, overridden by the command line.
    fn settings(&self) -> Result<ConfigFile> {
        let mut file = self.data.config()?;
        self.fit.override_in(&mut file);
        file.out = self.out.clone().or(file.out);
        file.threads = self.threads.or(file.threads);
        file.force |= self.force;
        if self.label.is_some() {
            (file.label, file.positive) = (self.label.clone(), self.positive.clone());
        } else if self.data.names_reports() {
            file.label = None;
        } else if file.label.is_some() && !file.data.reports.is_empty() {
            return Err(misuse(
                "the --config file sets both `label` and `reports`: choose one with an option",
            ));
        }
        file.data.check(file.label.is_none())?;
        Ok(file)
    }
}

/// The settings of the fit, after checks.
fn checked(file: &ConfigFile) -> Result<FitConfig> {
    let order: Option<CountOrder> = match &file.label {
        Some(_) => None,
        None => Some(file.data.classes()?.1),
    };
    let config = file.fit_config(order.as_ref()).map_err(refused_settings)?;
    match config.check(file.label.is_some()) {
        Ok(()) => Ok(config),
        Err(error) if config.check(true).is_ok() => {
            Err(misuse(&format!("{}: give --label instead of --reports", error.in_full())))
        }
        Err(error) => Err(refused_settings(error)),
    }
}

fn refuse_one_class(bags: &Bags, classes: &Classes) -> Result<()> {
    if !bags.has_noise()
        && let Some(class) = bags.pooled_proportions().iter().position(|&share| share >= 1.0)
    {
        bail!(
            "all rows are `{}` by the counts, so there is nothing to learn: check --count",
            classes.names()[class]
        );
    }
    Ok(())
}

/// The image shape, if the model reads images.
fn image_for(
    model: &ModelSpec,
    columns: &[(String, Column)],
    image: Option<ImageShape>,
) -> Result<Option<ImageShape>> {
    match (model, columns) {
        (ModelSpec::Cnn(_), [(_, Column::Vector(_))]) => Ok(image),
        (ModelSpec::Cnn(_), _) => bail!(
            "a cnn learns from images, one column of lists as in IDX, CIFAR, Parquet or Arrow files: name it with --features"
        ),
        _ => Ok(None),
    }
}

/// Warns if the bags do not look random; returns whether validation metrics are shown.
fn warn_unless_random(data: &Data, config: &FitConfig, force: bool) -> Result<Shown> {
    if data.bags.n_bags() < 2 {
        return Ok(Shown::Yes);
    }
    let found = randomness(&data.bags)?;
    let shown = Shown::new(&found, data.n_suppressed, force);
    if data.n_suppressed > 0 {
        verdict(&found, data.n_suppressed, shown).iter().for_each(warn);
    } else if found.verdict != Verdict::Plausible {
        warn(on_bags(&found, config, shown));
    }
    Ok(shown)
}

/// How bags that are not random affect the model, its choice and the validation metrics.
fn on_bags(found: &Randomness, config: &FitConfig, shown: Shown) -> String {
    let mut text = found.to_string();
    if !found.is_rejected() {
        return text;
    }
    if config.validation.share > 0.0 {
        text.push_str(
            ". The choice of a penalty and early stopping use such a metric; validation metrics are ",
        );
        text.push_str(match shown {
            Shown::Withheld => "withheld: use --force to print them",
            Shown::Forced | Shown::Yes => "printed because of --force",
        });
    }
    if config.method.assumes_random_bags() {
        let _ = write!(
            text,
            ". Method {} assumes random bags, so the model is biased, too: consider --method count-likelihood, for bags made by \
             features that the model sees",
            config.method.name()
        );
    }
    text
}

/// What the validation bags chose, for a note.
fn optimum(fitted: &Fitted) -> String {
    match fitted.optimizer() {
        StageOptimizer::Lbfgs(lbfgs) => format!("l2 {:.2e}; ", lbfgs.l2),
        StageOptimizer::Adam(adam) => format!("{} epochs; ", adam.epochs),
        StageOptimizer::Sgd(_) | StageOptimizer::None => String::new(),
    }
}
