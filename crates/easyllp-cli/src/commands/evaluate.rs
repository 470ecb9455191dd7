//! `easyllp evaluate`: estimate the metrics of a model from bags.

use crate::commands::predict::report_unfamiliar;
use crate::commands::{parse_count, use_threads};
use crate::config::ConfigFile;
use crate::data::DataConfig;
use crate::data::args::{ReportsArgs, RowsArgs};
use crate::diagnosis::{Shown, diagnosis, sentence, verdict};
use crate::figures::{
    Curves, Figure, ON_ASTERISKS, calibration_table, confusion_table, curves, figures, interval, lift_table,
    positive_class, single_rows, table, value,
};
use crate::messages::{note, warn};
use crate::output::{print, print_json, thousands};
use anyhow::Result;
use clap::Args;
use easyllp::diagnose::{Randomness, randomness};
use easyllp::estimate::{Confusion, Intervals, Metric};
use easyllp::table::reports::Joined;
use easyllp::table::{Source, Table, labels_of};
use easyllp::{
    Bags, Error, Estimate, Estimator, ModelFile, Predictions, Rows, classes::Classes, loss::Link,
    model::Scorer,
};
use easyllp_report::{BagShare, Page};
use ndarray::Array2;
use serde::Serialize;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// Estimate row-level metrics of a model from bag counts.
///
/// The bags must be random, and not among those that the model was trained on. Metrics are withheld if the counts show that bags are
/// not random. Intervals are for the population that the rows were drawn from. With --label the true metrics are printed, too.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
pub(crate) struct EvaluateArgs {
    /// Model file
    #[arg(long, value_name = "FILE")]
    model: PathBuf,
    #[command(flatten)]
    rows: RowsArgs,
    #[command(flatten)]
    reports: ReportsArgs,

    /// Column with true row labels, by the names of the model's classes
    #[arg(long, value_name = "COLUMN")]
    label: Option<String>,

    /// Positive values of the label, if they are not the names of classes
    #[arg(long, value_name = "VALUE", value_delimiter = ',', requires = "label")]
    positive: Vec<String>,

    /// Another model file: estimate the metric differences between both models on the same bags
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,

    /// Add calibration and lift, and the confusion matrix
    #[arg(long)]
    details: bool,

    /// Write an HTML page with metrics, curves and a diagnosis of the bags. It needs no network
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,

    /// Print all metrics, curves and details as JSON
    #[arg(long)]
    json: bool,

    /// Compute intervals from N bootstrap draws of the bags, 100 to 1,000,000. [default: from standard errors]
    #[arg(long, value_name = "N", value_parser = parse_draws)]
    bootstrap: Option<usize>,

    /// Show metrics from bags that do not look random, with a warning
    #[arg(long)]
    force: bool,

    /// Reject rows with values unlike the training rows: unseen, missing or out of range
    #[arg(long)]
    strict: bool,

    /// Threads. The result does not depend on their number. [default: one per core]
    #[arg(long, value_name = "N", value_parser = parse_count)]
    threads: Option<NonZeroUsize>,
}

/// With fewer bags, coverage of confidence intervals may be below their level.
const FEWEST_BAGS: usize = 5;

fn parse_draws(text: &str) -> Result<usize, String> {
    let draws = text.parse().ok().filter(|draws| (100..=1_000_000).contains(draws));
    draws.ok_or("a whole number from 100 to 1,000,000 is needed".into())
}

impl EvaluateArgs {
    fn intervals(&self) -> Intervals {
        self.bootstrap.map_or_else(Intervals::default, |draws| Intervals::Bootstrap { draws, seed: 1 })
    }
}

/// Everything that is reported about a model.
#[derive(Debug, Serialize)]
struct Evaluation {
    /// The names of the classes, in the order of the confusion matrix; of two the second is the
    /// positive one.
    classes: Vec<String>,
    /// Whether the bags look random.
    bags: Randomness,
    /// The number of bags left out because their counts are suppressed.
    suppressed_bags: usize,
    /// Whether metrics from bags are shown; otherwise they are null.
    shown: Shown,
    /// The approximate share of the bags that the model was trained on; 0 if none is known.
    training_bags: f64,
    figures: Vec<Figure>,
    /// The differences of metrics between the model and the other one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    difference: Vec<Figure>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    curves: Option<Curves>,
    #[serde(rename = "true", skip_serializing_if = "Option::is_none")]
    true_curves: Option<Curves>,
    #[serde(skip_serializing_if = "Option::is_none")]
    confusion: Option<Confusion>,
}

impl Evaluation {
    /// The tables of the text output.
    fn text(&self, against: Option<&Path>, with_details: bool) -> String {
        let mut parts: Vec<String> = verdict(&self.bags, self.suppressed_bags, self.shown)
            .map(|text| sentence(&text))
            .into_iter()
            .collect();
        if self.shown.is_withheld() && self.figures.iter().all(|figure| figure.truth.is_none()) {
            return parts.join("\n\n") + "\n";
        }
        parts.push(table(&self.figures).to_string());
        if let Some(path) = against {
            parts.push(format!(
                "Less the figures of {}\n{}\nDifferences are estimated bag by bag. They are more precise than a subtraction of the metrics of \
                 both models, and may\ndiffer from it.",
                path.display(),
                table(&self.difference)
            ));
        }
        if !with_details {
            return parts.join("\n\n") + "\n";
        }
        if let Some(Curves { calibration, lift, .. }) = &self.curves {
            if let Some(calibration) = calibration {
                let error = calibration.squared_error;
                parts.push(format!(
                    "Calibration\n{}\nsquared calibration error {} ({})",
                    calibration_table(calibration),
                    value(&error, 5),
                    interval(&error, 5)
                ));
            }
            parts.push(format!("Lift\n{}", lift_table(lift)));
        }
        if let Some(confusion) = &self.confusion {
            let table = confusion_table(confusion, &self.classes);
            parts.push(format!("Decisions, as shares of all rows\n{table}"));
        }
        parts.join("\n\n") + "\n"
    }

    /// The metrics that the tables show.
    fn estimates(&self, with_details: bool) -> impl Iterator<Item = &Estimate> {
        let figures = self.figures.iter().filter_map(|figure| figure.from_bags.as_ref());
        let calibration = self.curves.iter().flat_map(|curves| &curves.calibration);
        let groups = calibration
            .flat_map(|all| all.groups.iter().map(|group| &group.observed).chain([&all.squared_error]));
        let lift = self.curves.iter().flat_map(|curves| &curves.lift);
        let shares = self.confusion.iter().flat_map(|confusion| confusion.shares.iter().flatten());
        let details = groups.chain(lift.flat_map(|row| [&row.lift, &row.captured])).chain(shares);
        figures.chain(details.filter(move |_| with_details))
    }
}

pub(crate) fn run(args: &EvaluateArgs) -> Result<()> {
    let settings = args.settings()?;
    use_threads(settings.threads)?;
    let file = ModelFile::load(&args.model)?;
    let order = file.classes.order_of(settings.data.counted()?)?;
    let kinds = settings.data.kinds()?;
    let mut beside = settings.data.key.clone();
    beside.extend(settings.label.iter().filter(|label| !settings.data.key.contains(label)).cloned());
    let (scored, known) = Scored::new(file, &settings.data, &kinds, &beside, args.strict)?;
    let joined = settings.data.join(&kinds, &known, &order)?;
    let bags = &joined.bags;
    let training_bags = scored.warn_of_training_bags(&args.model, bags);
    let Scored { file, scores, .. } = scored;
    let link = file.link;
    let label = |name: &String| labels_of(name, known.column(name)?, &settings.positive, &file.classes);
    let truth = settings.label.as_ref().map(label).transpose()?;
    let truth = truth.as_deref();
    if let (Some(labels), Some(column)) = (truth, &settings.label) {
        warn_of_other_labels(column, labels, &joined, &file.classes);
    }
    let predictions = Predictions::new(scores.view(), link)?;
    let has_curves = bags.n_classes() == 2 && bags.pooled_proportions().iter().all(|&share| share > 0.0);
    let intervals = args.intervals();
    let found = randomness(bags)?;
    let shown = Shown::new(&found, joined.suppressed, settings.force);
    verdict(&found, joined.suppressed, shown).iter().for_each(warn);
    if bags.n_bags() < FEWEST_BAGS {
        warn(format!(
            "{} bags are few: confidence intervals from fewer than {FEWEST_BAGS} bags may be far too narrow",
            bags.n_bags()
        ));
    }
    let true_curves = |labels| curves(&predictions, link, &single_rows(bags, labels)?, Intervals::default());
    let wants_details = (args.details || args.json || args.report.is_some()) && !shown.is_withheld();
    let found = Evaluation {
        classes: file.classes.names().to_vec(),
        bags: found,
        suppressed_bags: joined.suppressed,
        shown,
        training_bags,
        figures: figures(&scores, link, bags, truth, intervals, shown)?,
        difference: match &args.against {
            Some(path) => {
                let other = other(path, &file.classes, &settings.data, &kinds, args.strict)?;
                other.warn_of_training_bags(path, bags);
                difference(&predictions, &other, bags, truth, intervals, shown)?
            }
            None => Vec::new(),
        },
        curves: (wants_details && has_curves)
            .then(|| curves(&predictions, link, bags, intervals))
            .transpose()?,
        true_curves: truth
            .filter(|_| (args.json || args.report.is_some()) && has_curves)
            .map(true_curves)
            .transpose()?,
        confusion: wants_details
            .then(|| Estimator::new(bags)?.intervals(intervals)?.confusion(&predictions))
            .transpose()?,
    };
    if let Some(path) = &args.report {
        let page = page(&found, &args.model, &file.classes, &predictions, link, bags)?;
        easyllp::files::write_whole(path, page.html().as_bytes())?;
        note(format!("report written to {}", path.display()));
    }
    if args.json {
        return print_json(&found);
    }
    let mut text = found.text(args.against.as_deref(), args.details);
    if found.estimates(args.details).any(|estimate| estimate.outside_range) {
        text = format!("{text}\n{ON_ASTERISKS}\n");
    }
    print(&format!(
        "{text}\nFrom {} bags of {} rows.{}\n",
        thousands(bags.n_bags()),
        thousands(bags.n_members()),
        positive_class(&file.classes)
    ))
}

impl EvaluateArgs {
    /// The settings of the file, overridden by the command line.
    fn settings(&self) -> Result<ConfigFile> {
        let mut file = ConfigFile::read(self.rows.config.as_deref())?;
        file.data = DataConfig::given(&self.rows, &self.reports).or(&file.data);
        file.data.check(true)?;
        if self.label.is_some() {
            (file.label, file.positive) = (self.label.clone(), self.positive.clone());
        }
        file.threads = self.threads.or(file.threads);
        file.force |= self.force;
        Ok(file)
    }
}

/// Warns about bags whose labels disagree with their counts.
fn warn_of_other_labels(column: &str, labels: &[u32], Joined { bags, keys, .. }: &Joined, classes: &Classes) {
    if bags.has_noise() {
        return;
    }
    let labelled = |bag: usize, class: usize| {
        bags.members(bag).iter().filter(|&&row| labels[row as usize] as usize == class).count()
    };
    let reported = |bag: usize, class: usize| bags.counts_of(bag)[class];
    let differs =
        |&(bag, class): &(usize, usize)| (labelled(bag, class) as f64 - reported(bag, class)).abs() > 0.5;
    // The positive class of two, which reports count.
    let first_of = |bag| (0..classes.len()).rev().map(|class| (bag, class)).find(differs);
    let others: Vec<(usize, usize)> = (0..bags.n_bags()).filter_map(first_of).collect();
    let Some(&(bag, class)) = others.first() else { return };
    warn(format!(
        "labels in column `{column}` disagree with the reports of {} of {} bags: in bag {} {} rows are `{}` by their labels, \
         and {} by the report",
        thousands(others.len()),
        thousands(bags.n_bags()),
        keys[bag],
        labelled(bag, class),
        classes.names()[class],
        reported(bag, class),
    ));
}

/// The model to compare with; its classes must be the same.
fn other(
    path: &Path,
    classes: &Classes,
    data: &DataConfig,
    kinds: &Source,
    is_strict: bool,
) -> Result<Scored> {
    let file = ModelFile::load(path)?;
    if !classes.agree(&file.classes) {
        return Err(Error::ModelsDiffer { first: classes.list(), second: file.classes.list() }.into());
    }
    Ok(Scored::new(file, data, kinds, &data.key, is_strict)?.0)
}

/// A model with its scores of the rows.
struct Scored {
    file: ModelFile,
    scores: Array2<f32>,
    /// The hashes that identify training bags.
    row_hashes: Vec<u64>,
}

impl Scored {
    /// Scores the rows; returns the columns that the model does not read.
    fn new(
        file: ModelFile,
        data: &DataConfig,
        kinds: &Source,
        beside: &[String],
        is_strict: bool,
    ) -> Result<(Self, Table)> {
        file.encoder.check_kinds(kinds.columns())?;
        let (table, beside) = data.read_beside(&file.encoder, beside)?;
        report_unfamiliar(&file.encoder.unfamiliar(&table), is_strict)?;
        let rows: Rows = file.encoder.encode(&table)?;
        let scores = file.model.scores(&rows)?;
        Ok((Self { row_hashes: rows.hashes(), file, scores }, beside))
    }

    /// The share of the bags that the model was trained on; warns if it is not 0.
    fn warn_of_training_bags(&self, path: &Path, bags: &Bags) -> f64 {
        let Some(found) = self.file.training_bags.overlap(&self.row_hashes, bags) else { return 0.0 };
        warn(format!(
            "{} was trained on {}: metrics from training bags are too good. Evaluate it on other bags",
            path.display(),
            found.words()
        ));
        found.share
    }
}

/// The differences of metrics between two models, for metrics that both have.
fn difference(
    first: &Predictions,
    other: &Scored,
    bags: &Bags,
    labels: Option<&[u32]>,
    intervals: Intervals,
    shown: Shown,
) -> Result<Vec<Figure>> {
    let second = &Predictions::new(other.scores.view(), other.file.link)?;
    let singles = labels.map(|labels| single_rows(bags, labels)).transpose()?;
    let mut figures = Vec::new();
    for (name, metric) in [
        ("log loss", Metric::LogLoss),
        ("Brier", Metric::Brier),
        ("error", Metric::Error),
        ("AUC", Metric::Auc),
    ] {
        let of = |bags: &Bags, intervals| -> Result<Option<Estimate>> {
            match Estimator::new(bags)?.intervals(intervals)?.difference(metric, first, second) {
                Ok(estimate) => Ok(Some(estimate)),
                // A figure that this task or these models do not have.
                Err(Error::NoProbabilities | Error::TwoClassesOnly { .. } | Error::OneClass { .. }) => {
                    Ok(None)
                }
                Err(error) => Err(error.into()),
            }
        };
        let truth = singles.as_ref().map(|singles| of(singles, Intervals::default())).transpose()?.flatten();
        let truth = truth.map(|estimate| estimate.value);
        let from_bags = of(bags, intervals)?;
        figures.extend(from_bags.map(|from_bags| Figure {
            name,
            from_bags: Some(from_bags).filter(|_| !shown.is_withheld()),
            truth,
        }));
    }
    Ok(figures)
}

/// Writes the page of `--report`.
fn page(
    found: &Evaluation,
    model: &Path,
    classes: &Classes,
    predictions: &Predictions,
    link: Link,
    bags: &Bags,
) -> Result<Page> {
    let mut page = Page::new(
        format!("How good is {}?", model.file_name().unwrap_or(model.as_os_str()).display()),
        format!("From {} bags of {} rows", thousands(bags.n_bags()), thousands(bags.n_members())),
    );
    page.positive = classes.positive().map(str::to_owned);
    page.figures.extend(found.figures.iter().map(|figure| easyllp_report::Figure {
        name: figure.name.into(),
        estimate: figure.from_bags,
        truth: figure.truth,
    }));
    page.warning = verdict(&found.bags, found.suppressed_bags, found.shown).map(|text| sentence(&text));
    if let Some(curves) = &found.curves {
        page.thresholds.clone_from(&curves.thresholds);
        page.calibration.clone_from(&curves.calibration);
    }
    if let Some(curves) = &found.true_curves {
        page.true_thresholds.clone_from(&curves.thresholds);
        page.true_calibration.clone_from(&curves.calibration);
    }
    if bags.n_classes() == 2 {
        page.scores_are_probabilities = link != Link::Margin;
        for bag in 0..bags.n_bags() {
            let of_rows: Vec<f64> =
                bags.members(bag).iter().map(|&row| predictions.of_class_one(row as usize)).collect();
            if page.scores_are_probabilities {
                page.bags.push(BagShare {
                    predicted: of_rows.iter().sum::<f64>() / of_rows.len() as f64,
                    reported: bags.proportion(bag, 1),
                });
            }
            page.scores.extend(of_rows);
        }
    }
    page.diagnosis = diagnosis(bags, &found.bags)?;
    Ok(page)
}
