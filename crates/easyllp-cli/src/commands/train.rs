//! `easyllp train`: rows and reports into a model file.

use crate::commands::{parse_count, use_threads};
use crate::data::{Data, DataArgs};
use crate::diagnosis::uneven_columns;
use crate::figures::{figures, table};
use crate::method::{MethodArgs, parse_positive, parse_share};
use crate::output::{misuse, print, thousands};
use crate::progress::Training;
use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use easyllp::diagnose::{Verdict, dispersion};
use easyllp::estimate::Intervals;
use easyllp::model::RowsForm;
use easyllp::table::{Column, Encoder};
use easyllp::{
    Adam, AnyModel, Bags, Estimator, ImageShape, Judge, LabelPrior, Lbfgs, Lesson, LossName, MethodName,
    MethodOptions, Model, ModelFile, ModelName, Optimizer, Predictions, Rows, TrainLog, Trainer,
    TrainingLoss, bagging,
};
use ndarray::Array2;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::PathBuf;

/// Train a model of rows from bags.
///
/// A share of the bags is held out to choose the penalty and to say how good the model is; the model that is written is then trained
/// on all bags.
#[derive(Debug, Args)]
pub(crate) struct TrainArgs {
    #[command(flatten)]
    data: DataArgs,

    /// A TOML file with any of these options, by name; the command line wins
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// The model: linear, mlp:256,128, embedding:16,mlp:256,128, cnn:mnist, cnn:cifar or cnn:LAYERS, such as 'cnn:conv5x8 relu
    /// pool2 fc120 relu'
    #[arg(long, value_name = "MODEL", default_value = "linear")]
    model: ModelName,

    /// The shape of images, for a cnn; by default as the files say
    #[arg(long, value_name = "CxHxW")]
    image: Option<ImageShape>,

    /// The loss: logistic, softmax or squared; by default cross-entropy. For networks squared is often the better one
    #[arg(long, value_name = "LOSS", value_parser = parse_loss)]
    loss: Option<LossName>,

    /// Penalty l2/2·‖w‖²: a number, or `auto` (the default) for the best of eight on held-out bags. With minibatches it is the
    /// decay of weights, by default none
    #[arg(long, value_name = "L2", value_parser = parse_l2, allow_negative_numbers = true)]
    l2: Option<L2>,

    /// Train by minibatches (Adam), with at most this many passes over the rows (40 by default for networks), stopped when held-out
    /// bags see no better; a linear model is else brought to its optimum
    #[arg(long, value_name = "N", value_parser = parse_count)]
    epochs: Option<NonZeroUsize>,

    /// Step size of minibatches, by default 0.001; for easyllp-sgd a factor of the paper's steps, by default 1
    #[arg(long, value_name = "RATE", value_parser = parse_positive, allow_negative_numbers = true)]
    lr: Option<f64>,

    /// Rows in a minibatch; by default 256
    #[arg(long, value_name = "N", value_parser = parse_count)]
    batch_size: Option<NonZeroUsize>,

    /// Share of the bags to hold out; 0 holds out none, and says nothing of how good the model is
    #[arg(long, value_name = "SHARE", default_value = "0.2", value_parser = parse_share)]
    holdout: f64,

    /// What held-out bags choose and stop by
    #[arg(long, value_enum, value_name = "FIGURE", default_value_t = StopBy::Brier)]
    stop_by: StopBy,

    /// Stop minibatches after so many epochs in a row that are no better
    #[arg(long, value_name = "N", default_value = "10", value_parser = parse_count)]
    patience: NonZeroUsize,

    /// Judge an epoch by the mean figure of so many, the last of which it is
    #[arg(long, value_name = "N", default_value = "1", value_parser = parse_count)]
    smoothing: NonZeroUsize,

    /// Seed of the split and of the order of rows in minibatches
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Threads; by default one a core. The model does not depend on it
    #[arg(long, value_name = "N", value_parser = parse_count)]
    threads: Option<NonZeroUsize>,

    /// A column with labels of the rows, in the place of reports: for `--method event`, and to deal bags with --rebag
    #[arg(long, value_name = "COLUMN", conflicts_with_all = ["reports", "key", "count"])]
    label: Option<String>,

    /// Values of the label that are positive
    #[arg(long, value_name = "VALUE", value_delimiter = ',', requires = "label")]
    positive: Vec<String>,

    /// The model file to write
    #[arg(long, value_name = "FILE")]
    out: PathBuf,

    #[command(flatten)]
    method: MethodArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum StopBy {
    Brier,
    Error,
}

#[derive(Debug, Clone, Copy)]
enum L2 {
    Auto,
    Value(f64),
}

fn parse_l2(text: &str) -> Result<L2, String> {
    match text.parse() {
        _ if text == "auto" => Ok(L2::Auto),
        Ok(l2) if l2 >= 0.0 && f64::is_finite(l2) => Ok(L2::Value(l2)),
        _ => Err("`auto` or a number of at least 0 is needed".into()),
    }
}

pub(super) fn parse_l2_value(text: &str) -> Result<f64, String> {
    match parse_l2(text) {
        Ok(L2::Value(l2)) => Ok(l2),
        _ => Err("a number of at least 0 is needed".into()),
    }
}

pub(super) fn parse_loss(text: &str) -> Result<LossName, String> {
    match text.parse() {
        Ok(loss @ (LossName::Logistic | LossName::Softmax | LossName::Squared)) => Ok(loss),
        _ => Err("choose logistic, softmax or squared".into()),
    }
}

/// Penalties for a single label that `auto` tries, from strong to weak: each solution is where the next one starts.
pub(super) const PENALTIES: [f64; 8] = [1000.0, 300.0, 100.0, 30.0, 10.0, 3.0, 1.0, 0.3];

pub(crate) fn run(args: &TrainArgs) -> Result<()> {
    use_threads(args.threads)?;
    let options = args.method.options(args.seed, args.label.is_some())?;
    let plan = Plan::new(args)?;
    let Data { features, bags, classes, image } = match &args.label {
        Some(label) => args.data.load_labelled(label, &args.positive)?,
        None => args.data.load()?,
    };
    eprintln!(
        "easyllp: {} rows in {} bags, {} columns to learn from",
        thousands(bags.n_members()),
        thousands(bags.n_bags()),
        features.columns().len()
    );
    if args.label.is_none() {
        warn_if_not_iid(&bags)?;
    }
    let image = match (&args.model, features.columns()) {
        (ModelName::Cnn(_), [(_, Column::Vector(_))]) => args.image.or(image),
        (ModelName::Cnn(_), _) => bail!(
            "a cnn learns from images, one column of lists as in IDX, CIFAR, Parquet or Arrow files: name it with --features"
        ),
        _ => None,
    };
    let encoder = Encoder::fit(&features, args.data.encoding.options())?;
    let rows = encoder.encode(&features)?;
    drop(features);
    if let Some(sentence) = uneven_columns(&rows, &encoder, &bags)? {
        eprintln!("easyllp: warning: {sentence}");
    }

    let name = args.loss.unwrap_or(LossName::cross_entropy(bags.n_classes()));
    let form = RowsForm { n_dense: rows.n_dense(), cardinalities: rows.cardinalities(), image };
    let model = args.model.build(form, bags.n_classes(), args.seed)?;
    let task = Task { args, options, rows: &rows, loss: name.training()?, untrained: model };
    let optimizer = if args.holdout > 0.0 {
        let bagging::Split { train, held_out } = bagging::split(&bags, args.holdout, args.seed)?;
        anyhow::ensure!(
            held_out.n_bags() >= 2,
            "--holdout {} of {} bags leaves {} to hold out, and 2 are needed: hold out more, or none",
            args.holdout,
            bags.n_bags(),
            held_out.n_bags()
        );
        let Chosen { scores, place, epoch } = task.choose(&plan, &train, &held_out)?;
        let found = figures(&scores, task.loss.link(), &held_out, None, Intervals::default())?;
        print(&format!(
            "{}\nFrom {} held-out bags, for a model trained on the other {}.\n",
            table(&found),
            thousands(held_out.n_bags()),
            thousands(train.n_bags())
        ))?;
        stopped_at(plan.optimizers(bags.n_bags()).swap_remove(place), epoch)
    } else {
        plan.optimizers(bags.n_bags()).swap_remove(0)
    };
    let mut model = task.untrained.clone();
    task.fit(&mut model, &bags, &optimizer, "all bags", None)?;
    let file = ModelFile {
        classes,
        loss: name,
        method: args.method.method.to_string(),
        prior: LabelPrior::pooled(&bags),
        settings: settings(args, &bags, &optimizer),
        fingerprint: bags.fingerprint(),
        encoder,
        name: args.model.clone(),
        image,
        model,
    };
    file.save(&args.out)?;
    let l2 = match &optimizer {
        Optimizer::Lbfgs(lbfgs) => format!("l2 {:.2e}; ", lbfgs.l2),
        Optimizer::Adam(adam) => format!("{} epochs; ", adam.epochs),
        Optimizer::Sgd(_) => String::new(),
    };
    eprintln!("easyllp: {l2}model written to {}", args.out.display());
    Ok(())
}

/// What `show` tells of a training.
fn settings(args: &TrainArgs, bags: &Bags, optimizer: &Optimizer) -> BTreeMap<String, String> {
    let mut settings = vec![
        ("bags", thousands(bags.n_bags())),
        ("rows", thousands(bags.n_members())),
        ("holdout", args.holdout.to_string()),
        ("seed", args.seed.to_string()),
    ];
    settings.extend(args.method.settings());
    settings.extend(match optimizer {
        Optimizer::Lbfgs(lbfgs) => vec![("optimizer", "L-BFGS".into()), ("l2", format!("{:.3e}", lbfgs.l2))],
        Optimizer::Adam(adam) => vec![
            ("optimizer", "Adam".into()),
            ("epochs", adam.epochs.to_string()),
            ("lr", adam.learning_rate.to_string()),
            ("batch size", adam.batch_size.to_string()),
            ("l2", adam.weight_decay.to_string()),
        ],
        Optimizer::Sgd(sgd) => vec![("optimizer", "SGD".into()), ("lr", sgd.scale.to_string())],
    });
    settings.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// How the loss is brought down, as far as the command line says.
enum Plan {
    /// To its optimum, with the best of eight penalties.
    BestPenalty,
    Given(Optimizer),
}

impl Plan {
    fn new(args: &TrainArgs) -> Result<Self> {
        if args.method.method == MethodName::EasyLlpSgd {
            if args.epochs.is_some() || args.batch_size.is_some() || args.l2.is_some() {
                return Err(misuse(
                    "easyllp-sgd is one pass with a row at a time, held by --domain: --epochs, --batch-size and --l2 are for others",
                ));
            }
            return Ok(Self::Given(Optimizer::Sgd(args.method.sgd(args.lr))));
        }
        let has_minibatches = args.model != ModelName::Linear
            || args.method.needs_minibatches()
            || args.epochs.is_some()
            || args.lr.is_some()
            || args.batch_size.is_some();
        match (has_minibatches, args.l2) {
            (true, Some(L2::Auto)) => {
                Err(misuse("--l2 auto is for linear models without minibatches: give a number"))
            }
            (true, l2) => {
                let adam = Adam::default();
                Ok(Self::Given(Optimizer::Adam(Adam {
                    epochs: args.epochs.map_or(adam.epochs, NonZeroUsize::get),
                    batch_size: args.batch_size.map_or(adam.batch_size, NonZeroUsize::get),
                    learning_rate: args.lr.unwrap_or(adam.learning_rate),
                    weight_decay: if let Some(L2::Value(l2)) = l2 { l2 } else { 0.0 },
                    ..adam
                })))
            }
            (false, Some(L2::Value(l2))) => {
                Ok(Self::Given(Optimizer::Lbfgs(Lbfgs { l2, ..Lbfgs::default() })))
            }
            (false, _) if args.holdout <= 0.0 => Err(misuse(
                "--l2 auto needs held-out bags to choose by: give a number, or a --holdout above 0",
            )),
            (false, _) => Ok(Self::BestPenalty),
        }
    }

    /// What is to be tried on so many bags.
    fn optimizers(&self, n_bags: usize) -> Vec<Optimizer> {
        let with_penalty =
            |penalty: f64| Optimizer::Lbfgs(Lbfgs { l2: penalty / n_bags as f64, ..Lbfgs::default() });
        match self {
            Self::BestPenalty => PENALTIES.map(with_penalty).to_vec(),
            Self::Given(optimizer) => vec![optimizer.clone()],
        }
    }
}

fn warn_if_not_iid(bags: &Bags) -> Result<()> {
    if bags.n_bags() < 2 {
        return Ok(());
    }
    let found = dispersion(bags, 999, 1)?;
    if found.verdict(0.01) == Verdict::Over {
        eprintln!(
            "easyllp: warning: counts differ from bag to bag {:.1} times as much as chance allows: bags seem to be made by \
             something that goes with the label, and what is learnt and estimated is biased",
            found.ratio
        );
    }
    Ok(())
}

/// The same, but for no more epochs than were best.
fn stopped_at(optimizer: Optimizer, epoch: usize) -> Optimizer {
    match optimizer {
        Optimizer::Adam(adam) => Optimizer::Adam(Adam { epochs: epoch, ..adam }),
        others @ (Optimizer::Lbfgs(_) | Optimizer::Sgd(_)) => others,
    }
}

struct Task<'t> {
    args: &'t TrainArgs,
    options: MethodOptions,
    rows: &'t Rows<'static>,
    loss: &'static dyn TrainingLoss,
    untrained: AnyModel,
}

/// What was best on held-out bags.
struct Chosen {
    scores: Array2<f32>,
    /// Which of the plan's optimisers.
    place: usize,
    /// After how many epochs.
    epoch: usize,
}

impl Task<'_> {
    fn fit(
        &self,
        model: &mut AnyModel,
        bags: &Bags,
        optimizer: &Optimizer,
        what: &str,
        held_out: Option<&Estimator>,
    ) -> Result<TrainLog> {
        let method = self.args.method.method;
        let lesson = Lesson { method, options: self.options.clone(), bags, loss: self.loss };
        let n_epochs = match optimizer {
            Optimizer::Adam(adam) => adam.epochs,
            Optimizer::Lbfgs(lbfgs) => lbfgs.max_iterations,
            Optimizer::Sgd(_) => 1,
        };
        let mut progress = Training::begin(what, n_epochs, bags.n_members());
        let mut watch = |event| {
            progress.see(&event);
            ControlFlow::Continue(())
        };
        let trainer = Trainer { optimizer: optimizer.clone(), seed: self.args.seed };
        let mut figure;
        let judge = match held_out {
            Some(estimator) => {
                figure = |model: &AnyModel| self.figure(&model.scores(self.rows)?, estimator);
                let (patience, smoothing) = (self.args.patience.get(), self.args.smoothing.get());
                Some(Judge { figure: &mut figure, patience, smoothing })
            }
            None => None,
        };
        Ok(trainer.fit_method(model, self.rows, &lesson, &mut watch, judge)?)
    }

    /// What held-out bags choose by.
    fn figure(&self, scores: &Array2<f32>, estimator: &Estimator) -> easyllp::Result<f64> {
        let predictions = Predictions::new(scores.view(), self.loss.link())?;
        Ok(match self.args.stop_by {
            StopBy::Brier => estimator.brier(&predictions)?.value,
            StopBy::Error => estimator.error(&predictions)?.value,
        })
    }

    /// The optimiser and epoch whose model is best on held-out bags.
    fn choose(&self, plan: &Plan, train: &Bags, held_out: &Bags) -> Result<Chosen> {
        let estimator = Estimator::new(held_out)?;
        let mut model = self.untrained.clone();
        let mut best: Option<(f64, Chosen)> = None;
        let optimizers = plan.optimizers(train.n_bags());
        for (place, optimizer) in optimizers.iter().enumerate() {
            let what = match optimizers.len() {
                1 => "bags to learn from".into(),
                several => format!("penalty {} of {several}", place + 1),
            };
            let log = self.fit(&mut model, train, optimizer, &what, Some(&estimator))?;
            let Some((epoch, figure)) = log.best else {
                bail!("no epoch has a figure on the held-out bags that is a number");
            };
            if best.as_ref().is_none_or(|(least, _)| figure < *least) {
                best = Some((figure, Chosen { scores: model.scores(self.rows)?, place, epoch }));
            }
        }
        Ok(best.expect("at least one optimiser is tried").1)
    }
}
