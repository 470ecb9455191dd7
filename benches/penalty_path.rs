//! What choosing the penalty costs: `penalty-path [ROWS [FEATURES]]` (1,000,000 × 50 by default) trains a linear model by the default
//! settings, which tries penalties on validation bags, and with the penalty that came out of it on all bags at once, three times in turn,
//! and prints the seconds and their ratio.

use easyllp::bagging::{self, Sizes};
use easyllp::fit::{FitConfig, FitEvent, OptimizerConfig, Penalty, StageOptimizer, ValidationConfig};
use easyllp::{Bags, Result, Rows, train::Progress};
use ndarray::Array2;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;
use std::ops::ControlFlow;
use std::time::Instant;

#[expect(clippy::print_stdout, reason = "the result")]
fn main() -> Result<()> {
    let mut numbers = std::env::args().skip(1).map(|number| number.parse().expect("a whole number"));
    let n_rows: usize = numbers.next().unwrap_or(1_000_000);
    let n_features: usize = numbers.next().unwrap_or(50);
    let (rows, bags) = draw(n_rows, n_features)?;
    let mut ratios = Vec::new();
    for _ in 0..3 {
        let begun = Instant::now();
        let mut trainings = Vec::new();
        let mut watch = |event: FitEvent| {
            match event {
                FitEvent::Started { what, .. } => trainings.push((what.to_owned(), 0)),
                FitEvent::Progress(Progress::Epoch(_)) => {
                    trainings.iter_mut().next_back().into_iter().for_each(|(_, n)| *n += 1);
                }
                FitEvent::Progress(_) => {}
            }
            ControlFlow::Continue(())
        };
        let fitted = FitConfig::default().fitting(&rows, &bags).watch(&mut watch).run()?;
        let path = begun.elapsed().as_secs_f64();
        let StageOptimizer::Lbfgs(lbfgs) = fitted.optimizer() else { unreachable!("the default is L-BFGS") };

        let begun = Instant::now();
        let single = FitConfig {
            optimizer: OptimizerConfig { l2: Some(Penalty::Value(lbfgs.l2)), ..OptimizerConfig::default() },
            validation: ValidationConfig { share: 0.0, ..ValidationConfig::default() },
            ..FitConfig::default()
        };
        let single = single.fit(&rows, &bags)?;
        let alone = begun.elapsed().as_secs_f64();
        ratios.push(path / alone);
        println!(
            "{path:.2} s with the choice, {alone:.2} s for one fit of {} iterations: {:.2} times",
            single.log().map_or(0, |log| log.epochs.len()),
            path / alone
        );
        for (what, iterations) in trainings {
            println!("  {what}: {iterations} iterations");
        }
    }
    ratios.sort_by(f64::total_cmp);
    println!("median ratio {:.2}", ratios[1]);
    Ok(())
}

/// Standard normal features, of which the first ten move the log-odds, in random bags of 50.
#[expect(clippy::cast_possible_truncation, reason = "features are f32")]
fn draw(n_rows: usize, n_features: usize) -> Result<(Rows<'static>, Bags)> {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut features = Array2::zeros((n_rows, n_features));
    let labels: Vec<u32> = features
        .rows_mut()
        .into_iter()
        .map(|mut row| {
            row.mapv_inplace(|_: f32| rng.sample::<f64, _>(StandardNormal) as f32);
            let score = 0.5 * f64::from(row.iter().take(10).sum::<f32>());
            u32::from(rng.random::<f64>() < 1.0 / (1.0 + (-score).exp()))
        })
        .collect();
    let bags = Bags::from_labels(bagging::random(n_rows, &Sizes::Fixed(50), 1)?, &labels, 2)?;
    Ok((Rows::dense(features)?, bags))
}
