//! `easyllp train`: rows and reports into a model file.

use crate::commands::{parse_count, use_threads};
use crate::data::{Data, DataArgs};
use crate::diagnosis::{Shown, uneven_columns, verdict};
use crate::figures::{Figure, ON_ASTERISKS, positive_class, table};
use crate::method::{MethodArgs, one_of, parse_positive, parse_share};
use crate::output::{misfit, misuse, print, refuse_overwrite, spelled, thousands};
use crate::progress::{Step, Training};
use anyhow::{Result, bail};
use clap::Args;
use easyllp::diagnose::{Randomness, Verdict, randomness};
use easyllp::recipe::{Doing, Fitted, HeldOut, Penalty, StopBy};
use easyllp::table::{Column, Encoder};
use easyllp::{Classes, ImageShape, LossName, ModelName, Optimizer, Recipe};
use std::fmt::Write;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::PathBuf;

/// Train a model of rows from bags.
///
/// A share of the bags is held out as validation bags, to choose the penalty (or the epoch) and to estimate how good the model is. Bags
/// never evaluate what they chose: the validation bags are split into folds, and each fold evaluates what is best on the others. The
/// model that is written is then trained on all bags.
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

    /// Penalty l2/2·‖w‖²: a number, or `auto` (the default) for the best of up to eight on validation bags. With minibatches it is the
    /// decay of weights, by default none
    #[arg(long, value_name = "L2", value_parser = parse_l2, allow_negative_numbers = true)]
    l2: Option<Penalty>,

    /// Train with Adam for at most N epochs (40 by default for networks), with early stopping on validation bags. Without this
    /// option, --lr and --batch-size a linear model is fitted to convergence (L-BFGS)
    #[arg(long, value_name = "N", value_parser = parse_count)]
    epochs: Option<NonZeroUsize>,

    /// Learning rate of Adam, by default 0.001; also makes a linear model train with Adam. For easyllp-sgd a factor of the paper's
    /// steps, by default 1
    #[arg(long, value_name = "RATE", value_parser = parse_positive, allow_negative_numbers = true)]
    lr: Option<f64>,

    /// Rows in a minibatch of Adam, by default 256; also makes a linear model train with Adam
    #[arg(long, value_name = "N", value_parser = parse_count)]
    batch_size: Option<NonZeroUsize>,

    /// Share of the bags to hold out; 0 holds out none, and says nothing of how good the model is
    #[arg(long, value_name = "SHARE", default_value = "0.2", value_parser = parse_share)]
    holdout: f64,

    /// What held-out bags choose and stop by
    #[arg(long, value_parser = one_of::<StopBy>(StopBy::NAMES), value_name = "FIGURE", default_value = "brier")]
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

    /// Print validation metrics of bags that do not look random, with a warning
    #[arg(long)]
    force: bool,

    /// A column with labels of the rows, in the place of reports: for `--method event`, and to deal bags with --rebag
    #[arg(long, value_name = "COLUMN", conflicts_with_all = ["reports", "key", "count", "class"])]
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

fn parse_l2(text: &str) -> Result<Penalty, String> {
    match text.parse() {
        _ if text == "auto" => Ok(Penalty::Auto),
        Ok(l2) if l2 >= 0.0 && f64::is_finite(l2) => Ok(Penalty::Value(l2)),
        _ => Err("`auto` or a number of at least 0 is needed".into()),
    }
}

pub(super) fn parse_l2_value(text: &str) -> Result<f64, String> {
    match parse_l2(text) {
        Ok(Penalty::Value(l2)) => Ok(l2),
        _ => Err("a number of at least 0 is needed".into()),
    }
}

pub(super) fn parse_loss(text: &str) -> Result<LossName, String> {
    match text.parse() {
        Ok(loss @ (LossName::Logistic | LossName::Softmax | LossName::Squared)) => Ok(loss),
        _ => Err("choose logistic, softmax or squared".into()),
    }
}

pub(crate) fn run(args: &TrainArgs) -> Result<()> {
    use_threads(args.threads)?;
    let recipe = args.recipe()?;
    let needs_labels = args.method.needs_labels();
    if let (Some(option), None) = (needs_labels, &args.label) {
        return Err(misuse(&format!(
            "{option} needs labels of the rows: give --label in the place of reports"
        )));
    }
    recipe.check(args.label.is_some()).map_err(misfit)?;
    let step = Step::begin("reading rows and reports");
    refuse_overwrite(&args.out, args.data.files())?;
    let Data { features, bags, classes, image, n_suppressed } = match &args.label {
        Some(label) => args.data.load_labelled(label, &args.positive)?,
        None => args.data.load()?,
    };
    drop(step);
    eprintln!(
        "easyllp: {} rows in {} bags, {} columns to learn from",
        thousands(bags.n_members()),
        thousands(bags.n_bags()),
        features.columns().len()
    );
    if !bags.has_noise()
        && let Some(class) = bags.pooled_proportions().iter().position(|&share| share >= 1.0)
    {
        bail!(
            "all rows are `{}` by the counts, so there is nothing to learn: check --count",
            classes.names()[class]
        );
    }
    let mut shown = Shown::Yes;
    if bags.n_bags() > 1 {
        let found = randomness(&bags)?;
        shown = Shown::new(&found, n_suppressed, args.force);
        if n_suppressed == 0 {
            args.warn_unless_random(&found, shown);
        } else if let Some(text) = verdict(&found, n_suppressed, shown) {
            eprintln!("easyllp: warning: {text}");
        }
    }
    let image = match (&args.model, features.columns()) {
        (ModelName::Cnn(_), [(_, Column::Vector(_))]) => args.image.or(image),
        (ModelName::Cnn(_), _) => bail!(
            "a cnn learns from images, one column of lists as in IDX, CIFAR, Parquet or Arrow files: name it with --features"
        ),
        _ => None,
    };
    let step = Step::begin("encoding columns and comparing them from bag to bag");
    let encoder = Encoder::fit(&features, args.data.encoding.options())?;
    let rows = encoder.encode(&features)?;
    drop(features);
    let uneven = uneven_columns(&rows, &encoder, &bags)?;
    drop(step);
    if let Some(sentence) = uneven {
        eprintln!("easyllp: warning: {sentence}");
    }

    eprintln!("easyllp: optimizer: {}", spelled(&recipe.optimizer_choice().to_string()));
    let mut training = None;
    let mut watch = |doing: Doing| {
        match doing {
            Doing::Begins { what, epochs, rows } => training = Some(Training::begin(what, epochs, rows)),
            Doing::Progress(progress) => training.iter_mut().for_each(|training| training.see(&progress)),
        }
        ControlFlow::Continue(())
    };
    let fitted = recipe.fit(&rows, &bags, image, &mut watch)?;
    drop(training);
    print_held_out(&fitted, &classes, shown)?;
    let how = match &fitted.optimizer {
        Optimizer::Lbfgs(lbfgs) => format!("l2 {:.2e}; ", lbfgs.l2),
        Optimizer::Adam(adam) => format!("{} epochs; ", adam.epochs),
        Optimizer::Sgd(_) => String::new(),
    };
    recipe.model_file(fitted, &rows, &bags, encoder, classes, image).save(&args.out)?;
    eprintln!("easyllp: {how}model written to {}", args.out.display());
    Ok(())
}

impl TrainArgs {
    /// Says what bags that are not random do to the model, to what is chosen, and to validation metrics.
    fn warn_unless_random(&self, found: &Randomness, shown: Shown) {
        if found.verdict == Verdict::Plausible {
            return;
        }
        let mut text = found.to_string();
        if found.is_rejected() && self.holdout > 0.0 {
            text.push_str(
                ". The choice of a penalty and early stopping use such a metric; validation metrics are ",
            );
            text.push_str(match shown {
                Shown::Withheld => "withheld: use --force to print them",
                Shown::Forced | Shown::Yes => "printed because of --force",
            });
        }
        if found.is_rejected() && self.method.method.assumes_random_bags() {
            let method = self.method.method;
            let _ = write!(
                text,
                ". Method {method} assumes random bags, so the model is biased, too: consider --method \
                 count-likelihood, for bags made by features that the model sees"
            );
        }
        eprintln!("easyllp: warning: {text}");
    }

    fn recipe(&self) -> Result<Recipe> {
        // A prior is given in the order of --count, and needed in that of the classes.
        let order = if self.label.is_none() { Some(self.data.reports.classes()?.1) } else { None };
        Ok(Recipe {
            method: self.method.method,
            choices: self.method.choices(order.as_ref())?,
            model: self.model.clone(),
            loss: self.loss,
            l2: self.l2,
            epochs: self.epochs,
            lr: self.lr,
            batch_size: self.batch_size,
            holdout: self.holdout,
            stop_by: self.stop_by,
            patience: self.patience,
            smoothing: self.smoothing,
            seed: self.seed,
        })
    }
}

/// Validation metrics, and which models they describe.
fn print_held_out(fitted: &Fitted, classes: &Classes, shown: Shown) -> Result<()> {
    let Some(held_out) = &fitted.held_out else { return Ok(()) };
    let HeldOut { bags, n_others, n_candidates, .. } = held_out;
    let (n_bags, n_others) = (thousands(bags.n_bags()), thousands(*n_others));
    if shown.is_withheld() {
        return Ok(());
    }
    let Some(figures) = held_out.figures(fitted.loss.training()?.link())? else {
        return print(&format!(
            "No validation metrics: {n_bags} validation bags are too few to choose a model on some and evaluate it on the \
             others. Hold out at least 4 bags (--holdout).\n"
        ));
    };
    let figure = |(name, estimate)| Figure { name, from_bags: Some(estimate), truth: None };
    let figures: Vec<Figure> = figures.into_iter().map(figure).collect();
    let mut table = table(&figures).to_string();
    if figures.iter().filter_map(|figure| figure.from_bags).any(|estimate| estimate.outside_range) {
        table = format!("{table}\n{ON_ASTERISKS}");
    }
    let which = if *n_candidates == 1 {
        format!("a model trained on the other {n_others} bags.")
    } else {
        let what = match fitted.optimizer {
            Optimizer::Lbfgs(_) => "penalty",
            Optimizer::Adam(_) | Optimizer::Sgd(_) => "epoch",
        };
        format!(
            "models trained on the other {n_others} bags.\nThe validation bags are split into {} folds. Each fold evaluates the {what} \
             that is best on the others,\nso that no bag evaluates what it chose.",
            held_out.folds.len()
        )
    };
    print(&format!(
        "{table}\nValidation metrics, from {n_bags} bags held out of training. They describe {which}\nThe saved model is trained on \
         all bags.{}\n",
        positive_class(classes)
    ))
}
