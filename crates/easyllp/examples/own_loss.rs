//! A loss of one's own: the squared error of the probability, which is bounded for any target.
//!
//! ```sh
//! cargo run --release --package easyllp --example own_loss
//! ```

use easyllp::fit::OptimizerConfig;
use easyllp::loss::Convexity;
use easyllp::table::{Encoder, EncoderOptions};
use easyllp::{
    Bags, FitConfig, Result, bagging, datasets,
    loss::{Link, Loss, TrainingLoss},
};
use std::num::NonZeroUsize;

/// ℓ(f, 1) = (1 − σ(f))² and ℓ(f, 0) = σ(f)², for two classes.
struct SquaredProbability;

impl Loss for SquaredProbability {
    fn name(&self) -> &'static str {
        "squared-probability"
    }

    fn link(&self) -> Link {
        Link::Logit
    }

    fn values(&self, scores: &[f64], out: &mut [f64]) {
        let q = probability(scores[0]);
        out.copy_from_slice(&[q * q, (1.0 - q) * (1.0 - q)]);
    }

    fn convexity(&self) -> Convexity {
        Convexity::Never
    }

    fn is_binary(&self) -> bool {
        true
    }
}

impl TrainingLoss for SquaredProbability {
    fn corrected(&self, scores: &[f64], targets: &[f64], derivative: &mut [f64]) -> f64 {
        let (q, target) = (probability(scores[0]), targets[0]);
        derivative[0] = 2.0 * (q - target) * q * (1.0 - q);
        q * q + target * (1.0 - 2.0 * q)
    }

    fn curvature(&self, _mean_targets: &[f64]) -> f64 {
        0.125
    }

    fn has_minimum_for_any_targets(&self) -> bool {
        true
    }
}

fn probability(score: f64) -> f64 {
    1.0 / (1.0 + (-score).exp())
}

#[expect(clippy::print_stdout, reason = "an example prints")]
pub(crate) fn main() -> Result<()> {
    let digits = datasets::optdigits()?;
    let encoder = Encoder::fit(&digits.train.table, EncoderOptions::default())?;
    let rows = encoder.encode(&digits.train.table)?;
    let odd: Vec<u32> = digits.train.labels.iter().map(|digit| digit % 2).collect();
    let partition = bagging::random(rows.n_rows(), &bagging::Sizes::Fixed(8), 1)?;
    let bags = Bags::from_labels(partition, &odd, 2)?;

    // A loss that is not convex needs Adam.
    let optimizer = OptimizerConfig { epochs: NonZeroUsize::new(30), ..OptimizerConfig::default() };
    let config = FitConfig { optimizer, ..FitConfig::default() };
    let fitted = config.fitting(&rows, &bags).loss(&SquaredProbability).run()?;
    for (name, estimate) in fitted.validation_metrics()?.expect("enough validation bags") {
        println!("{name}: {:.3} ± {:.3}", estimate.value, estimate.standard_error);
    }

    // The derivative of the corrected loss is what finite differences say.
    for (score, target) in [(-2.0, 1.7), (0.3, -0.4), (1.5, 1.0)] {
        let loss = |score: f64| SquaredProbability.corrected(&[score], &[target], &mut [0.0]);
        let mut slope = [0.0];
        SquaredProbability.corrected(&[score], &[target], &mut slope);
        let difference = (loss(score + 1e-5) - loss(score - 1e-5)) / 2e-5;
        assert!((slope[0] - difference).abs() < 1e-8, "{score} {target}");
    }
    let right = fitted
        .predict_proba(&rows)?
        .column(1)
        .iter()
        .zip(&odd)
        .filter(|(q, odd)| (**q > 0.5) == (**odd == 1))
        .count();
    assert!(right * 10 > 8 * rows.n_rows(), "{right} of {} rows", rows.n_rows());
    Ok(())
}
