//! The paper's Algorithm *pickone*: the excess risk of its last iterate, against how many bags it saw and how large they were.

use super::population::{self, DIMENSION, P};
use super::{check_all, check_sizes_and_bags, seed_of};
use crate::error::Result;
use crate::point::Point;
use crate::runner::Cell;
use easyllp::sgd::{Domain, Labels, Steps};
use easyllp::{LabelPrior, LinearModel, LossName, Optimizer, Trainer};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;

/// What to run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Sgd {
    /// Rows in a bag.
    pub sizes: Vec<usize>,
    /// Bags that a pass sees.
    pub bags: Vec<usize>,
    /// Passes, each over bags of its own.
    pub passes: u32,
}

/// The radius of the ball that iterates are held in; the optimum is well within.
const RADIUS: f64 = 2.0;

impl Sgd {
    pub(super) fn check(&self) -> Result<(), String> {
        check_sizes_and_bags(&self.sizes, &self.bags)?;
        check_all(&[("`passes` must be at least 1", self.passes > 0)])
    }

    /// What is held fixed: the size where the number of bags changes (the middle one), and the number of bags where their size does (the
    /// greatest).
    pub(crate) fn fixed(&self) -> (usize, usize) {
        (self.sizes[self.sizes.len() / 2], *self.bags.iter().max().expect("checked"))
    }

    /// By the number of bags, and by size.
    pub(super) fn cells(&self, seed: u64) -> Vec<Cell<'static>> {
        let (middle, most) = self.fixed();
        let by_bags = self.bags.iter().map(|&bags| ("by bags", bags as f64, middle, bags));
        let by_size = self.sizes.iter().map(|&size| ("by size", size as f64, size, most));
        let parts = by_bags.chain(by_size).flat_map(|part| [(part, Labels::Soft), (part, Labels::Surrogate)]);
        parts.map(|((panel, x, size, bags), labels)| self.cell(panel, x, size, bags, labels, seed)).collect()
    }

    fn cell(
        &self,
        panel: &'static str,
        x: f64,
        size: usize,
        n_bags: usize,
        labels: Labels,
        seed: u64,
    ) -> Cell<'static> {
        let passes = self.passes;
        let series = if labels == Labels::Soft { "soft" } else { "surrogate" };
        let key = format!("sgd, {panel}, {series}, {size} rows, {n_bags} bags, {passes} passes, seed {seed}");
        let point = move |measure: &str, replica, value| Point {
            panel: panel.into(),
            series: series.into(),
            x,
            replica,
            measure: measure.into(),
            value,
        };
        Cell {
            band: key.clone(),
            cost: (size * n_bags) as f64 * f64::from(passes),
            is_wide: false,
            work: Box::new({
                let key = key.clone();
                move |tell| {
                    let mut rng = ChaCha8Rng::seed_from_u64(seed_of(seed, &key));
                    let mut points = vec![point("theory", 1, expected(labels, size, n_bags))];
                    for pass in 1..=passes {
                        points.push(point("excess risk", pass, one_pass(labels, size, n_bags, &mut rng)?));
                        if tell((size * n_bags) as u64).is_break() {
                            return Ok(None);
                        }
                    }
                    Ok(Some(points))
                }
            }),
            key,
        }
    }
}

/// Where the last iterate settles: η_n σ²/4, with the variance σ² of a step's gradient at the optimum.
fn expected(labels: Labels, size: usize, n_bags: usize) -> f64 {
    let (k, n) = (size as f64, n_bags as f64);
    let of_labels = P * (1.0 - P) * DIMENSION;
    let at_optimum = population::residual() * DIMENSION;
    let (step, variance) = match labels {
        Labels::Soft => (1.0 / (k * n).sqrt(), (k - 1.0) * of_labels + at_optimum),
        // A drawn label is off by k times its own deviation, and nearly independent of the row's.
        Labels::Surrogate => (1.0 / (k * n.sqrt()), k * k * of_labels),
    };
    step * variance / 4.0
}

fn one_pass(labels: Labels, size: usize, n_bags: usize, rng: &mut ChaCha8Rng) -> Result<f64> {
    let (rows, bags) = population::draw(size, n_bags, rng)?;
    let steps = if labels == Labels::Soft { Steps::OverSoft } else { Steps::OverSurrogate };
    // The paper's steps are for ½(f − y)². Our squared loss is (f − y)², whose gradient is twice as long: half the step is the same.
    let settings =
        easyllp::Sgd { labels, steps, scale: 0.5, domain: Domain::Ball(RADIUS), ..easyllp::Sgd::default() };
    let mut model = LinearModel::for_rows(&rows, 2)?;
    let trainer = Trainer { optimizer: Optimizer::Sgd(settings), seed: rng.random() };
    let prior = LabelPrior::binary(P)?;
    let mut watch = |_| ControlFlow::Continue(());
    trainer.fit_one_pass(&mut model, &rows, &bags, &prior, LossName::Squared.training()?, &mut watch)?;
    Ok(population::excess_risk(&model))
}
