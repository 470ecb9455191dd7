//! `easyllp train`: rows and reports into a model file.

use crate::commands::{parse_count, use_threads};
use crate::data::{Data, DataArgs};
use crate::figures::{figures, table};
use crate::output::{misuse, print, thousands};
use anyhow::Result;
use clap::{Args, ValueEnum};
use easyllp::diagnose::{Verdict, dispersion};
use easyllp::method::Naive;
use easyllp::table::{Encoder, EncoderOptions};
use easyllp::{
    BagWeights, Bags, Correction, EasyLlp, Estimator, LabelPrior, Lbfgs, LinearModel, LossName, Model,
    ModelFile, Optimizer, Predictions, Rows, TargetRule, Trainer, TrainingLoss, bagging,
};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Train a model of rows from bags.
///
/// A share of the bags is held out to choose the penalty and to say how good the model is; the model that is written is then trained
/// on all bags.
#[derive(Debug, Args)]
pub(crate) struct TrainArgs {
    #[command(flatten)]
    data: DataArgs,

    /// How rows get their targets
    #[arg(long, value_enum, default_value_t = Method::Easyllp)]
    method: Method,

    /// The loss: logistic, softmax or squared; by default cross-entropy
    #[arg(long, value_name = "LOSS", value_parser = parse_loss)]
    loss: Option<LossName>,

    /// Penalty l2/2·‖w‖²: a number, or `auto` for the best of eight on held-out bags
    #[arg(long, value_name = "L2", default_value = "auto", value_parser = parse_l2, allow_negative_numbers = true)]
    l2: L2,

    /// A known share of the positive class: the paper's targets instead of centred ones
    #[arg(long, value_name = "P", value_parser = parse_share, conflicts_with = "bag_weights")]
    prior: Option<f64>,

    /// How much say each bag has: equal, size, noise (as declared) or variance:RHO
    #[arg(long, value_name = "WEIGHTS", default_value = "equal", value_parser = parse_weights)]
    bag_weights: BagWeights,

    /// Share of the bags to hold out; 0 holds out none, and says nothing of how good the model is
    #[arg(long, value_name = "SHARE", default_value = "0.2", value_parser = parse_share)]
    holdout: f64,

    /// Seed of the split
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Threads; by default one a core. The model does not depend on it
    #[arg(long, value_name = "N", value_parser = parse_count)]
    threads: Option<NonZeroUsize>,

    /// The model file to write
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Method {
    Easyllp,
    Naive,
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

fn parse_loss(text: &str) -> Result<LossName, String> {
    match text.parse() {
        Ok(loss @ (LossName::Logistic | LossName::Softmax | LossName::Squared)) => Ok(loss),
        _ => Err("choose logistic, softmax or squared".into()),
    }
}

fn parse_share(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|share| (0.0..1.0).contains(share))
        .ok_or("a number from 0 to below 1 is needed".into())
}

fn parse_weights(text: &str) -> Result<BagWeights, String> {
    match (text, text.strip_prefix("variance:").map(str::parse)) {
        ("equal", _) => Ok(BagWeights::Equal),
        ("size", _) => Ok(BagWeights::Size),
        ("noise", _) => Ok(BagWeights::NoiseAware),
        (_, Some(Ok(rho))) if rho >= 0.0 && f64::is_finite(rho) => Ok(BagWeights::Variance { rho }),
        _ => Err("choose equal, size, noise, or variance:RHO with RHO of at least 0".into()),
    }
}

/// Penalties for a single label that `auto` tries, from strong to weak: each solution is where the next one starts.
const PENALTIES: [f64; 8] = [1000.0, 300.0, 100.0, 30.0, 10.0, 3.0, 1.0, 0.3];

pub(crate) fn run(args: &TrainArgs) -> Result<()> {
    use_threads(args.threads)?;
    if args.holdout <= 0.0 && matches!(args.l2, L2::Auto) {
        return Err(misuse(
            "--l2 auto needs held-out bags to choose by: give a number, or a --holdout above 0",
        ));
    }
    let Data { features, bags } = args.data.load()?;
    eprintln!(
        "easyllp: {} rows in {} bags, {} columns to learn from",
        thousands(bags.n_members()),
        thousands(bags.n_bags()),
        features.columns().len()
    );
    warn_if_not_iid(&bags)?;
    let encoder = Encoder::fit(&features, EncoderOptions::default())?;
    let rows = encoder.encode(&features)?;
    drop(features);

    let name = args.loss.unwrap_or(LossName::cross_entropy(bags.n_classes()));
    let task = Task { args, rows: &rows, loss: name.training()? };
    let penalty = if args.holdout > 0.0 {
        let bagging::Split { train, held_out } = bagging::split(&bags, args.holdout, args.seed)?;
        anyhow::ensure!(
            held_out.n_bags() >= 2,
            "--holdout {} of {} bags leaves {} to hold out, and 2 are needed: hold out more, or none",
            args.holdout,
            bags.n_bags(),
            held_out.n_bags()
        );
        let (model, penalty) = task.choose(&train, &held_out)?;
        let scores = model.scores(&rows)?;
        let found = figures(&scores, task.loss.link(), &held_out, None)?;
        print(&format!(
            "{}\nFrom {} held-out bags, for a model trained on the other {}.\n",
            table(&found),
            thousands(held_out.n_bags()),
            thousands(train.n_bags())
        ))?;
        penalty
    } else {
        match args.l2 {
            L2::Value(l2) => l2 * bags.n_bags() as f64,
            L2::Auto => unreachable!("refused above"),
        }
    };
    let mut model = LinearModel::for_rows(&rows, bags.n_classes())?;
    let l2 = penalty / bags.n_bags() as f64;
    task.fit(&mut model, &bags, l2)?;
    let settings = BTreeMap::from([
        ("bags".to_owned(), bags.n_bags().to_string()),
        ("rows".to_owned(), bags.n_members().to_string()),
        ("l2".to_owned(), format!("{l2:.6}")),
        ("bag weights".to_owned(), format!("{:?}", args.bag_weights)),
        ("holdout".to_owned(), args.holdout.to_string()),
        ("seed".to_owned(), args.seed.to_string()),
    ]);
    let file = ModelFile {
        classes: args.data.reports.classes(),
        loss: name,
        method: format!("{:?}", args.method).to_lowercase(),
        prior: LabelPrior::pooled(&bags),
        settings,
        fingerprint: bags.fingerprint(),
        encoder,
        model,
    };
    file.save(&args.out)?;
    eprintln!("easyllp: l2 {l2:.2e}; model written to {}", args.out.display());
    Ok(())
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

struct Task<'t> {
    args: &'t TrainArgs,
    rows: &'t Rows<'static>,
    loss: &'static dyn TrainingLoss,
}

impl Task<'_> {
    fn fit(&self, model: &mut LinearModel, bags: &Bags, l2: f64) -> Result<()> {
        let correction = match self.args.prior {
            Some(prior) => Correction::Paper(LabelPrior::binary(prior)?),
            None => Correction::Centred(self.args.bag_weights),
        };
        let mut rule: Box<dyn TargetRule> = match self.args.method {
            Method::Easyllp => Box::new(EasyLlp::with(bags, correction, easyllp::method::Draw::Never)),
            Method::Naive => Box::new(Naive::new(bags)),
        };
        let trainer =
            Trainer { optimizer: Optimizer::Lbfgs(Lbfgs { l2, ..Lbfgs::default() }), ..Trainer::default() };
        trainer.fit(model, self.rows, &mut *rule, self.loss)?;
        Ok(())
    }

    /// The model whose Brier score on held-out bags is best, and its penalty for a single label.
    fn choose(&self, train: &Bags, held_out: &Bags) -> Result<(LinearModel, f64)> {
        let n_bags = train.n_bags() as f64;
        let penalties = match self.args.l2 {
            L2::Auto => PENALTIES.to_vec(),
            L2::Value(l2) => vec![l2 * n_bags],
        };
        let estimator = Estimator::new(held_out)?;
        let mut model = LinearModel::for_rows(self.rows, train.n_classes())?;
        let mut best: Option<(f64, LinearModel, f64)> = None;
        for penalty in penalties {
            self.fit(&mut model, train, penalty / n_bags)?;
            let scores = model.scores(self.rows)?;
            let predictions = Predictions::new(scores.view(), self.loss.link())?;
            let brier = estimator.brier(&predictions)?.value;
            if best.as_ref().is_none_or(|(best, ..)| brier < *best) {
                best = Some((brier, model.clone(), penalty));
            }
        }
        let (_, model, penalty) = best.expect("at least one penalty is tried");
        Ok((model, penalty))
    }
}
