//! A population with a known optimum: x ∈ {±1}⁷ uniformly, and P(y = 1 | x) = p + w·x, between 0.02
//! and 0.58. The optimum of the squared loss is linear; with the intercept's constant, rows have d
//! = 8 uncorrelated coordinates.

use crate::error::Result;
use easyllp::{Bags, Noise, Partition, Rows, model::LinearModel};
use ndarray::Array2;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

const N_FEATURES: usize = 7;
const WEIGHTS: [f64; N_FEATURES] = [0.04, -0.04, -0.04, 0.04, 0.04, -0.04, 0.04];

/// The description on the page.
pub(crate) const IN_WORDS: &str = "Rows are x ∈ {±1}⁷, each as likely as any other, with P(y = 1 | x) = p + w·x, p = 0.3 and weights of ±0.04: the \
                                   best model for the squared loss is linear, and known.";

/// The share of positives.
pub(super) const P: f64 = 0.3;
/// The d of the formulas.
pub(super) const DIMENSION: f64 = N_FEATURES as f64 + 1.0;

/// ‖w‖², without the intercept.
pub(super) fn square_of_weights() -> f64 {
    WEIGHTS.iter().map(|weight| weight * weight).sum()
}

/// E(y − p − w·x)².
pub(super) fn residual() -> f64 {
    P * (1.0 - P) - square_of_weights()
}

/// Bags of k rows each.
pub(super) fn draw(k: usize, n_bags: usize, rng: &mut ChaCha8Rng) -> Result<(Rows<'static>, Bags)> {
    let mut features = Array2::<f32>::zeros((n_bags * k, N_FEATURES));
    let mut positives = vec![0.0; n_bags];
    for (row, mut x) in features.rows_mut().into_iter().enumerate() {
        let signs: u8 = rng.random();
        let mut chance = P;
        for (feature, (x, weight)) in x.iter_mut().zip(WEIGHTS).enumerate() {
            *x = if signs >> feature & 1 == 1 { 1.0 } else { -1.0 };
            chance += f64::from(*x) * weight;
        }
        positives[row / k] += f64::from(u8::from(rng.random::<f64>() < chance));
    }
    let bag_of_row: Vec<u32> = (0..).take(n_bags).flat_map(|bag| std::iter::repeat_n(bag, k)).collect();
    let partition = Partition::from_bag_of_row(&bag_of_row, n_bags)?;
    Ok((Rows::dense(features)?, Bags::binary(partition, &positives, Noise::None)?))
}

/// The excess risk of a model: E[½(f − y)²] minus its minimum, which is half of ‖w − w*‖².
pub(super) fn excess_risk(model: &LinearModel) -> f64 {
    let of_intercept = (f64::from(model.intercept()[[0, 0]]) - P).powi(2);
    let of_weights = model.weights().into_iter().zip(WEIGHTS).map(|(&w, best)| (f64::from(w) - best).powi(2));
    0.5 * (of_intercept + of_weights.sum::<f64>())
}
