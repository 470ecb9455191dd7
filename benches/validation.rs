//! Whether validation metrics are honest: `validation [FITS]` trains FITS models (400 by default) by the default recipe on simulated
//! bags and prints, for each setting,
//!
//! - the bias of the reported Brier score against the models that it describes, with the labels of the validation rows, in standard
//!   errors;
//! - the same if the bags that chose the penalty had reported, too;
//! - how often the reported 95 % interval covers the Brier score of the final model on 20,000 new rows, and how far the two differ.

use easyllp::bagging::{self, Sizes};
use easyllp::fit::{FitConfig, Fitted, OptimizerConfig, PENALTIES, Penalty};
use easyllp::{Bags, Noise, Predictions, Result, Rows, loss::Link, metrics, model::Scorer};
use ndarray::Array2;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;
use rayon::prelude::*;

const N_ROWS: usize = 4000;
const N_FEATURES: usize = 20;
const BAG_SIZE: usize = 20;

struct Setting {
    name: &'static str,
    intercept: f64,
    noise: Option<f64>,
}

/// The result of one fit.
struct Fit {
    off: f64,
    off_if_chosen_and_reported: f64,
    off_final: f64,
    is_covered: bool,
}

#[expect(clippy::print_stdout, reason = "the result")]
fn main() -> Result<()> {
    let n_fits: u64 = std::env::args().nth(1).map_or(400, |fits| fits.parse().expect("a number of fits"));
    println!(
        "{n_fits} fits each, {N_ROWS} rows in bags of {BAG_SIZE}, {N_FEATURES} features; bias of the Brier score (standard errors)"
    );
    println!(
        "| setting | reported | chosen and reported on the same bags | against the final model | its coverage |"
    );
    println!("|---|---|---|---|---|");
    let settings = [
        Setting { name: "balanced", intercept: 0.0, noise: None },
        Setting { name: "12 % positives", intercept: -2.3, noise: None },
        Setting { name: "balanced, Laplace 2", intercept: 0.0, noise: Some(2.0) },
    ];
    for setting in settings {
        let fits: Vec<Fit> =
            (0..n_fits).into_par_iter().map(|seed| fit(&setting, seed)).collect::<Result<_>>()?;
        let with_error = |of: fn(&Fit) -> f64| {
            let n = fits.len() as f64;
            let mean = fits.iter().map(of).sum::<f64>() / n;
            let variance = fits.iter().map(|fit| (of(fit) - mean).powi(2)).sum::<f64>() / (n - 1.0);
            format!("{mean:+.4} ({:+.1})", mean / (variance / n).sqrt())
        };
        let covered = fits.iter().filter(|fit| fit.is_covered).count() as f64 / fits.len() as f64;
        println!(
            "| {} | {} | {} | {} | {covered:.3} |",
            setting.name,
            with_error(|fit| fit.off),
            with_error(|fit| fit.off_if_chosen_and_reported),
            with_error(|fit| fit.off_final)
        );
    }
    Ok(())
}

fn fit(setting: &Setting, seed: u64) -> Result<Fit> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (rows, labels) = draw(setting, N_ROWS, &mut rng)?;
    let exact = Bags::from_labels(bagging::random(N_ROWS, &Sizes::Fixed(BAG_SIZE), seed)?, &labels, 2)?;
    let noise = setting.noise.map_or(Noise::None, |scale| Noise::Laplace(vec![scale; exact.n_bags()]));
    let bags = bagging::add_noise(&exact, noise, seed)?;
    let train = |l2| {
        let optimizer = OptimizerConfig { l2, ..OptimizerConfig::default() };
        FitConfig { optimizer, seed, ..FitConfig::default() }.fit(&rows, &bags)
    };
    // The Brier score from bags, and from the labels of the same rows.
    let briers = |fitted: &Fitted| -> Result<_> {
        let held_out = fitted.validation.as_ref().expect("bags are held out");
        let scores = held_out.scores.as_ref().expect("there are enough validation bags");
        let predictions = Predictions::new(scores.view(), Link::Logit)?;
        let labels: Vec<u32> = held_out.rows.iter().map(|&row| labels[row as usize]).collect();
        let truth = metrics::brier(&predictions, &labels)?;
        let figures = fitted.validation_metrics()?.expect("there are enough validation bags");
        let brier = figures.into_iter().find(|(name, _)| *name == "Brier");
        Ok((brier.expect("logits give probabilities").1, truth))
    };
    let fitted = train(None)?;
    let (reported, truth) = briers(&fitted)?;

    let n_train = fitted.validation.as_ref().map_or(0, |held_out| held_out.n_others) as f64;
    let mut chosen = (f64::INFINITY, f64::NAN);
    for penalty in PENALTIES {
        let (reported, truth) = briers(&train(Some(Penalty::Value(penalty / n_train)))?)?;
        if reported.value < chosen.0 {
            chosen = (reported.value, truth);
        }
    }

    let (new_rows, new_labels) = draw(setting, 20_000, &mut rng)?;
    let scores = fitted.model.scores(&new_rows)?;
    let of_final = metrics::brier(&Predictions::new(scores.view(), Link::Logit)?, &new_labels)?;
    Ok(Fit {
        off: reported.value - truth,
        off_if_chosen_and_reported: chosen.0 - chosen.1,
        off_final: reported.value - of_final,
        is_covered: reported.covers(of_final),
    })
}

/// Rows of standard normal features, labels by log-odds that five of them move.
#[expect(clippy::cast_possible_truncation, reason = "features are f32")]
fn draw(setting: &Setting, n_rows: usize, rng: &mut ChaCha8Rng) -> Result<(Rows<'static>, Vec<u32>)> {
    let mut features = Array2::zeros((n_rows, N_FEATURES));
    let labels = features
        .rows_mut()
        .into_iter()
        .map(|mut row| {
            row.mapv_inplace(|_: f32| rng.sample::<f64, _>(StandardNormal) as f32);
            let score = setting.intercept + 0.8 * f64::from(row.iter().take(5).sum::<f32>());
            u32::from(rng.random::<f64>() < 1.0 / (1.0 + (-score).exp()))
        })
        .collect();
    Ok((Rows::dense(features)?, labels))
}
