//! Count likelihood: maximise the probability of each bag's count, if rows are independent with the
//! predicted probabilities.
//!
//! The number of positives among independent rows has the Poisson-binomial distribution. Its
//! negative log-likelihood has the derivative q_j − E[y_j | count] in row j's log-odds: the
//! predicted probability minus the probability given the count. Both are computed from
//! probabilities *tilted* to the count. With t such that Σ σ(f_j + t) is the count c, and K(t) = Σ
//! log(1 − q_j + q_j eᵗ),
//!
//! ```text
//! −log P(c) = t c − K(t) − log P_t(c),     E[y_j | c] is the same under tilted rows
//! ```
//!
//! so that very improbable counts do not underflow. P_t(c) is exact, from pairwise products of the
//! rows' polynomials, unless the variance V of the tilted count is 25 or more. Then the
//! saddle-point approximation is used: P_t(c) ≈ 1/√(2πV).
//!
//! Several classes are treated one against the rest, and their likelihoods are multiplied (a
//! composite likelihood).
//!
//! With declared noise, the reported count is a whole number plus a draw of the noise. Its
//! likelihood is the sum over all whole numbers, each with the density of the required noise. Rows
//! are tilted to the most likely number. The probabilities among tilted rows are exact for V below
//! 25, and normal above.

use super::schema::{About, Assumes, BuiltIn};
use crate::aim::{Aim, BagObjective};
use crate::bags::{Bags, Noise};
use crate::error::Result;
use crate::loss::{log_sum_exp, sigmoid, softplus};
use crate::session::{Method, Requires, Session, Supports};
use ndarray::{ArrayView2, ArrayViewMut2};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// From this variance of the count on, the approximation is used.
const LARGE: f64 = 25.0;

/// Maximum likelihood of the bags' counts.
#[derive(Debug, Clone)]
pub struct CountLikelihood<'b> {
    bags: &'b Bags,
}

impl<'b> CountLikelihood<'b> {
    /// For these bags.
    pub fn new(bags: &'b Bags) -> Self {
        Self { bags }
    }
}

impl BagObjective for CountLikelihood<'_> {
    fn bags(&self) -> &Bags {
        self.bags
    }

    #[expect(clippy::cast_possible_truncation, reason = "derivatives are stored as f32")]
    fn bag(&self, bag: usize, scores: ArrayView2<f32>, mut derivative: ArrayViewMut2<f32>) -> f64 {
        let counts = self.bags.counts();
        let counts = counts.row(bag);
        let noise = Density::of(self.bags, bag);
        let (n_rows, n_scores) = scores.dim();
        if n_scores == 1 {
            let odds: Vec<f64> = scores.iter().map(|&score| f64::from(score)).collect();
            let (loss, slopes) = of_count(&odds, counts[1], noise);
            derivative.iter_mut().zip(slopes).for_each(|(out, slope)| *out = slope as f32);
            return loss;
        }
        // Log odds of each class against the rest; their slopes go back through the softmax. The rest is added up, not taken from one:
        // next to a class that is all but certain nothing would be left of it.
        let mut odds = vec![0.0; n_rows * n_scores];
        let mut weights = odds.clone();
        let mut rests = odds.clone();
        for (row, scores) in scores.rows().into_iter().enumerate() {
            let line = row * n_scores..(row + 1) * n_scores;
            let largest = scores.fold(f32::NEG_INFINITY, |largest, &score| largest.max(score));
            let off = |class: usize| f64::from(scores[class]) - f64::from(largest);
            (0..n_scores).for_each(|class| weights[line.start + class] = off(class).exp());
            for class in 0..n_scores {
                let others = weights[line.clone()].iter().enumerate().filter(|(other, _)| *other != class);
                let rest = others.map(|(_, weight)| weight).sum::<f64>().max(f64::MIN_POSITIVE);
                rests[line.start + class] = rest;
                odds[line.start + class] = off(class) - rest.ln();
            }
        }
        let mut loss = 0.0;
        let mut of_odds = vec![0.0; n_rows * n_scores];
        for class in 0..n_scores {
            let odds: Vec<f64> = odds.iter().skip(class).step_by(n_scores).copied().collect();
            let (of_class, slopes) = of_count(&odds, counts[class], noise);
            loss += of_class;
            for (line, slope) in of_odds.chunks_exact_mut(n_scores).zip(slopes) {
                line[class] = slope;
            }
        }
        for (row, mut out) in derivative.rows_mut().into_iter().enumerate() {
            let line = row * n_scores..(row + 1) * n_scores;
            let (weights, rests, slopes) = (&weights[line.clone()], &rests[line.clone()], &of_odds[line]);
            // d log odds_c / d score_d is 1 for d = c, and else less the share of d in what is not c.
            for (class, out) in out.iter_mut().enumerate() {
                let others = (0..n_scores).filter(|&other| other != class);
                let spread: f64 = others.map(|other| slopes[other] * weights[class] / rests[other]).sum();
                *out = (slopes[class] - spread) as f32;
            }
        }
        loss
    }
}

/// −log P(count) of independent rows with these log odds, and its derivative in each.
fn of_count(odds: &[f64], count: f64, noise: Option<Density>) -> (f64, Vec<f64>) {
    let n_rows = odds.len() as f64;
    if let Some(noise) = noise {
        return with_noise(odds, count, noise);
    }
    // Counts of bags without noise are whole numbers from 0 to their size.
    if count < 0.5 {
        let loss = odds.iter().map(|&f| softplus(f)).sum();
        return (loss, odds.iter().map(|&f| sigmoid(f)).collect());
    }
    if count > n_rows - 0.5 {
        let loss = odds.iter().map(|&f| softplus(-f)).sum();
        return (loss, odds.iter().map(|&f| -sigmoid(-f)).collect());
    }
    let tilt = tilt(odds, count);
    let tilted: Vec<f64> = odds.iter().map(|&f| sigmoid(f + tilt)).collect();
    let cumulant: f64 = odds.iter().map(|&f| softplus(f + tilt) - softplus(f)).sum();
    let variances: Vec<f64> = tilted.iter().map(|q| q * (1.0 - q)).collect();
    let variance: f64 = variances.iter().sum();
    let base = tilt * count - cumulant;
    if variance >= LARGE {
        let third: f64 = variances.iter().zip(&tilted).map(|(v, q)| v * (1.0 - 2.0 * q)).sum();
        let loss = base + 0.5 * (std::f64::consts::TAU * variance).ln();
        let slope = |((&f, &q), &v): ((&f64, &f64), &f64)| {
            sigmoid(f) - q + 0.5 * v / variance * (1.0 - 2.0 * q - third / variance)
        };
        return (loss, odds.iter().zip(&tilted).zip(&variances).map(slope).collect());
    }
    let mut weights = vec![0.0; odds.len() + 1];
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 1 to the bag's size")]
    let count = count.round() as usize;
    weights[count] = 1.0;
    let (probability, given_count) = from_nearer_end(&tilted, weights);
    let slopes = odds.iter().zip(given_count).map(|(&f, given)| sigmoid(f) - given).collect();
    (base - probability.ln(), slopes)
}

/// Each row's probability of being positive, given the bag's count.
pub(super) fn given_count(odds: &[f64], bags: &Bags, bag: usize) -> Vec<f64> {
    let (_, slopes) = of_count(odds, bags.counts_of(bag)[1], Density::of(bags, bag));
    odds.iter().zip(slopes).map(|(&f, slope)| (sigmoid(f) - slope).clamp(0.0, 1.0)).collect()
}

/// The distribution of the noise on a count.
#[derive(Debug, Clone, Copy)]
enum Density {
    Laplace { scale: f64 },
    Normal { deviation: f64 },
}

impl Density {
    /// What noise leaves in the counts of a bag, if any.
    fn of(bags: &Bags, bag: usize) -> Option<Self> {
        // Counts of several classes are brought to sum to the size, which takes some of the noise away: the law is kept.
        let variance = bags.count_variance(bag);
        match bags.noise() {
            _ if variance <= 0.0 => None,
            Noise::None => None,
            Noise::Laplace(_) => Some(Self::Laplace { scale: (0.5 * variance).sqrt() }),
            Noise::Gaussian(_) => Some(Self::Normal { deviation: variance.sqrt() }),
        }
    }

    /// What rows are tilted by for a count: they come to sum to the number that it stands for most likely, where the law of numbers falls
    /// as fast as that of the noise rises. No weight is lost to rounding then, and what is approximated is near.
    fn tilt(self, odds: &[f64], count: f64) -> f64 {
        match self {
            // The rise is the same everywhere but at the count itself.
            Self::Laplace { scale } => {
                let to_count = tilt(odds, count.clamp(0.5, odds.len() as f64 - 0.5));
                to_count.clamp(-1.0 / scale, 1.0 / scale)
            }
            Self::Normal { deviation } => tilt_against(odds, count, deviation * deviation),
        }
    }

    /// How far a tilt goes back when a row's odds add as much as one to the sum of the tilted rows, which vary by so much.
    fn give(self, tilt: f64, variance: f64) -> f64 {
        match self {
            Self::Laplace { scale } if tilt.abs() < 1.0 / scale => 1.0 / variance,
            Self::Laplace { .. } => 0.0,
            Self::Normal { deviation } => 1.0 / (variance + deviation * deviation),
        }
    }

    fn log(self, noise: f64) -> f64 {
        match self {
            Self::Laplace { scale } => -noise.abs() / scale - (2.0 * scale).ln(),
            Self::Normal { deviation } => {
                let squared = (noise / deviation).powi(2);
                -0.5 * squared - 0.5 * (std::f64::consts::TAU * deviation * deviation).ln()
            }
        }
    }
}

/// −log density of a count with noise, and its derivative in each row's log odds.
///
/// With ν the density of the noise, tilted rows have Σ_m P(m) ν(c − m) = e^K(t) Σ_m P_t(m) ν(c − m) e^(−tm).
fn with_noise(odds: &[f64], count: f64, noise: Density) -> (f64, Vec<f64>) {
    let q: Vec<f64> = odds.iter().map(|&f| sigmoid(f)).collect();
    let tilt = noise.tilt(odds, count);
    let tilted: Vec<f64> = odds.iter().map(|&f| sigmoid(f + tilt)).collect();
    let cumulant: f64 = odds.iter().map(|&f| softplus(f + tilt) - softplus(f)).sum();
    let needed = (0..=odds.len()).map(|number| noise.log(count - number as f64) - tilt * number as f64);
    let spread: Vec<f64> = tilted.iter().map(|q| q * (1.0 - q)).collect();
    let of_tilted: f64 = spread.iter().sum();
    if of_tilted < LARGE {
        let needed: Vec<f64> = needed.collect();
        let largest = needed.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = needed.iter().map(|log| (log - largest).exp()).collect();
        let (density, given_count) = from_nearer_end(&tilted, weights);
        let slopes = q.iter().zip(given_count).map(|(q, given)| q - given).collect();
        return (-cumulant - largest - density.ln(), slopes);
    }
    // Every whole number weighs by its normal density among tilted rows, too.
    let of_sum: f64 = tilted.iter().sum();
    let off = |number: usize| number as f64 - of_sum;
    let weights: Vec<f64> =
        needed.enumerate().map(|(number, log)| log - 0.5 * off(number).powi(2) / of_tilted).collect();
    let total = log_sum_exp(&weights);
    let (mut first, mut second) = (0.0, 0.0);
    for (number, weight) in weights.iter().enumerate() {
        let weight = (weight - total).exp();
        first += weight * off(number);
        second += weight * off(number).powi(2);
    }
    let loss = 0.5 * (std::f64::consts::TAU * of_tilted).ln() - cumulant - total;
    let (in_mean, in_variance) = (first / of_tilted, 0.5 * (second / of_tilted - 1.0) / of_tilted);
    let third: f64 = spread.iter().zip(&tilted).map(|(v, q)| v * (1.0 - 2.0 * q)).sum();
    // The tilt moves with the rows; of the loss that changes what is third of their cumulants alone.
    let of_tilt = noise.give(tilt, of_tilted);
    let slope = |((&q, &tilted), &v): ((&f64, &f64), &f64)| {
        q - tilted - v * (in_mean + (1.0 - 2.0 * tilted) * in_variance - third * in_variance * of_tilt)
    };
    (loss, q.iter().zip(&tilted).zip(&spread).map(slope).collect())
}

/// What has to be added to all log odds for their probabilities to sum to the count, which lies between 0 and their number.
pub(super) fn tilt(odds: &[f64], count: f64) -> f64 {
    tilt_against(odds, count, 0.0)
}

/// What has to be added for sum + resistance · tilt to be the count, as far as probabilities are above 0 and below 1.
fn tilt_against(odds: &[f64], count: f64, resistance: f64) -> f64 {
    let largest = odds.iter().fold(0.0_f64, |largest, f| largest.max(f.abs()));
    let reach = largest + 2.0 * (odds.len() as f64 + 1.0).ln() + 5.0;
    let (mut low, mut high, mut tilt) = (-reach, reach, 0.0);
    for _ in 0..100 {
        let (mut sum, mut slope) = (resistance * tilt, resistance);
        for &f in odds {
            let q = sigmoid(f + tilt);
            sum += q;
            slope += q * (1.0 - q);
        }
        let excess = sum - count;
        if excess.abs() <= 1e-10 * count.abs() {
            break;
        }
        if excess > 0.0 {
            high = tilt;
        } else {
            low = tilt;
        }
        // Newton, as long as it stays within what is known.
        let next = tilt - excess / slope;
        tilt = if next > low && next < high { next } else { 0.5 * (low + high) };
    }
    tilt
}

/// The conditional probabilities of tilted rows, computed from the end that is nearer to the
/// weights: if positives are few, positives are counted, else negatives. Products are cut off after
/// the last relevant weight, and rows are tilted to where weights are large.
fn from_nearer_end(q: &[f64], mut weights: Vec<f64>) -> (f64, Vec<f64>) {
    /// As a share of the largest.
    const NEGLIGIBLE: f64 = 1e-30;
    let matters = |weight: &f64| *weight > NEGLIGIBLE;
    let first = weights.iter().position(matters).unwrap_or(0);
    let last = weights.iter().rposition(matters).unwrap_or(q.len());
    if last <= q.len() - first {
        return conditional(q, &weights[..=last]);
    }
    weights.reverse();
    let negatives: Vec<f64> = q.iter().map(|q| 1.0 - q).collect();
    let (sum, given) = conditional(&negatives, &weights[..=q.len() - first]);
    (sum, given.into_iter().map(|given| 1.0 - given).collect())
}

/// Σ_m w_m P(m) over the counts m of independent rows, and each row's probability with counts so weighed.
///
/// A tree: leaves are the polynomials 1 − q + q·x of the rows, every node is the product of the two below it, and the derivative of the
/// sum runs back from the root. Coefficients above the last weight are left out.
fn conditional(q: &[f64], weights: &[f64]) -> (f64, Vec<f64>) {
    let most = weights.len() - 1;
    let mut levels: Vec<Vec<Vec<f64>>> = vec![q.iter().map(|&q| vec![1.0 - q, q]).collect()];
    while levels.last().is_some_and(|level| level.len() > 1) {
        let level = levels.last().expect("a first level");
        let next = level
            .chunks(2)
            .map(|pair| match pair {
                [first, second] => product(first, second, most),
                _ => pair[0].clone(),
            })
            .collect();
        levels.push(next);
    }
    let root = &levels.pop().expect("a first level")[0];
    let probability: f64 = root.iter().zip(weights).map(|(p, weight)| p * weight).sum();
    let mut slopes = vec![weights[..root.len()].to_vec()];
    for level in levels.iter().rev() {
        let of_pair = |(pair, slope): (&[Vec<f64>], &Vec<f64>)| match pair {
            [first, second] => {
                vec![correlation(slope, second, first.len()), correlation(slope, first, second.len())]
            }
            _ => vec![slope.clone()],
        };
        slopes = level.chunks(2).zip(&slopes).flat_map(of_pair).collect();
    }
    let given = q.iter().zip(slopes).map(|(&q, slope)| q * slope[1] / probability).collect();
    (probability, given)
}

/// Coefficients of a product, up to a power.
fn product(first: &[f64], second: &[f64], most: usize) -> Vec<f64> {
    let mut out = vec![0.0; (first.len() + second.len() - 1).min(most + 1)];
    for (place, a) in first.iter().enumerate() {
        for (sum, b) in out[place.min(most + 1)..].iter_mut().zip(second) {
            *sum += a * b;
        }
    }
    out
}

/// The derivative in one factor of a product, given that in the product and the other factor.
fn correlation(slope: &[f64], other: &[f64], length: usize) -> Vec<f64> {
    (0..length)
        .map(|place| slope[place.min(slope.len())..].iter().zip(other).map(|(a, b)| a * b).sum())
        .collect()
}

/// Parameters of `count-likelihood`: none.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CountLikelihoodParams {}

impl BuiltIn for CountLikelihoodParams {
    const ABOUT: About = About {
        name: "count-likelihood",
        aliases: &[],
        summary: "maximises the likelihood of the counts under independent rows",
        bags: Assumes::RandomBagsOrFeatures,
        classes: "any; each against the rest",
        cost: "k C, less for large bags",
        reference: "Poisson-binomial likelihood",
    };
}

impl Method for CountLikelihoodParams {
    fn name(&self) -> &str {
        Self::ABOUT.name
    }

    fn supports(&self) -> Supports {
        Supports::LogOdds
    }

    fn requires(&self) -> Requires {
        Requires::Adam(format!("method {} trains on minibatches of whole bags", self.name()))
    }

    fn run(&self, session: &mut Session) -> Result<()> {
        let mut objective = CountLikelihood::new(session.bags());
        session.train(self.name(), Aim::Bags(&mut objective))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All 2^n outcomes, one by one.
    fn by_enumeration(odds: &[f64], count: usize) -> (f64, Vec<f64>) {
        let q: Vec<f64> = odds.iter().map(|&f| sigmoid(f)).collect();
        let (mut total, mut with) = (0.0, vec![0.0; q.len()]);
        for outcome in 0_u32..1 << q.len() {
            if outcome.count_ones() as usize == count {
                let is_one = |row: usize| outcome >> row & 1 == 1;
                let p: f64 =
                    (0..q.len()).map(|row| if is_one(row) { q[row] } else { 1.0 - q[row] }).product();
                total += p;
                (0..q.len()).filter(|&row| is_one(row)).for_each(|row| with[row] += p);
            }
        }
        (-total.ln(), q.iter().zip(with).map(|(q, with)| q - with / total).collect())
    }

    #[test]
    fn likelihood_and_slopes_are_exact() {
        for n_rows in [1, 2, 3, 7, 10] {
            let odds: Vec<f64> = (0..n_rows).map(|row| 3.0 * (1.3 * f64::from(row)).sin() - 0.5).collect();
            for count in 0..=odds.len() {
                let (loss, slopes) = of_count(&odds, count as f64, None);
                let (expected, expected_slopes) = by_enumeration(&odds, count);
                assert!((loss - expected).abs() < 1e-9, "{n_rows} {count}: {loss} {expected}");
                for (slope, expected) in slopes.iter().zip(&expected_slopes) {
                    assert!((slope - expected).abs() < 1e-9, "{n_rows} {count}: {slope} {expected}");
                }
            }
        }
    }

    /// A count as improbable as 10⁻⁶⁰⁰ has a likelihood still.
    #[test]
    fn nothing_is_too_improbable() {
        let (loss, slopes) = of_count(&[-30.0; 60], 50.0, None);
        assert!((loss - 1475.0).abs() < 10.0, "{loss}"); // 50·30 − log of C(60, 50)
        assert!(slopes.iter().all(|slope| (slope + 50.0 / 60.0).abs() < 1e-9));
    }

    /// A class that is certain to the last digit leaves shares among the others all the same.
    #[test]
    fn certain_classes_have_finite_slopes() {
        let scores = ndarray::array![[60.0_f32, 1.0, 0.0], [-2.0, 90.0, 3.0], [0.5, 0.25, -1000.0]];
        let partition = crate::Partition::new(3, [[0, 1, 2]]).unwrap();
        let bags = Bags::from_labels(partition, &[1, 0, 2], 3).unwrap();
        let objective = CountLikelihood::new(&bags);
        let mut slopes = ndarray::Array2::zeros((3, 3));
        let loss = objective.bag(0, scores.view(), slopes.view_mut());
        assert!(loss.is_finite());
        let mut ignored = slopes.clone();
        for ((row, class), &slope) in slopes.indexed_iter() {
            assert!(slope.is_finite() && slope.abs() <= 3.0, "{slopes}");
            let mut at = |step: f32| {
                let mut scores = scores.clone();
                scores[[row, class]] += step;
                objective.bag(0, scores.view(), ignored.view_mut())
            };
            let difference = (at(0.25) - at(-0.25)) / 0.5;
            assert!((difference - f64::from(slope)).abs() < 0.02, "{row}, {class}: {difference} and {slope}");
        }
    }

    /// The weights of a count that is known.
    fn only(count: usize) -> Vec<f64> {
        let mut weights = vec![0.0; count + 1];
        weights[count] = 1.0;
        weights
    }

    #[test]
    fn it_is_the_same_from_either_end() {
        let q: Vec<f64> = (0..40).map(|row| 0.5 + 0.49 * (0.7 * f64::from(row)).sin()).collect();
        for count in [0, 3, 19, 20, 21, 37, 40] {
            // Alone, and among others as noise weighs them.
            for scale in [0.01, 0.5, 30.0] {
                let weight = |number: i32| (-f64::from((number - count).abs()) / scale).exp();
                let weights: Vec<f64> = (0..=40).map(weight).collect();
                let (expected, of_rows) = conditional(&q, &weights);
                let (sum, given) = from_nearer_end(&q, weights);
                assert!((sum / expected - 1.0).abs() < 1e-10, "{count} {scale}: {sum} {expected}");
                assert!(given.iter().zip(of_rows).all(|(one, other)| (one - other).abs() < 1e-10));
            }
        }
    }

    /// Just above V = 25 the approximation is within a few per mille of the exact likelihood, and its slopes too.
    #[test]
    fn the_approximation_takes_over_smoothly() {
        let odds: Vec<f64> = (0..160).map(|row| 1.5 * (0.7 * f64::from(row)).sin() - 0.3).collect();
        for count in [40_u32, 57, 75] {
            let (place, count) = (count as usize, f64::from(count));
            let tilt = tilt(&odds, count);
            let tilted: Vec<f64> = odds.iter().map(|&f| sigmoid(f + tilt)).collect();
            let variance: f64 = tilted.iter().map(|q| q * (1.0 - q)).sum();
            assert!((LARGE..40.0).contains(&variance), "{variance}");
            let (loss, slopes) = of_count(&odds, count, None);
            let (probability, given) = conditional(&tilted, &only(place));
            let cumulant: f64 = odds.iter().map(|&f| softplus(f + tilt) - softplus(f)).sum();
            let exact = tilt * count - cumulant - probability.ln();
            assert!((loss - exact).abs() < 0.005, "{loss} {exact}");
            for ((slope, given), &f) in slopes.iter().zip(given).zip(&odds) {
                assert!((slope - (sigmoid(f) - given)).abs() < 2e-4);
            }
        }
    }

    /// With noise as well, and far from what the rows say themselves: at 150 of 1,000 rows of which some 50 are expected, the untilted
    /// normal law would have an error of 35.
    #[test]
    fn the_approximation_takes_over_smoothly_with_noise() {
        let near: Vec<f64> = (0..160).map(|row| 1.5 * (0.7 * f64::from(row)).sin() - 0.3).collect();
        let far: Vec<f64> = (0..1000).map(|row| 0.5 * (0.7 * f64::from(row)).sin() - 3.0).collect();
        for (odds, count) in [(&near, 40.3), (&near, 74.0), (&far, 150.0), (&far, 90.5), (&far, 49.0)] {
            for noise in [
                Density::Laplace { scale: 0.05 },
                Density::Laplace { scale: 4.0 },
                Density::Normal { deviation: 6.0 },
            ] {
                // Rows are tilted to the count, so that probabilities are none of them too small.
                let tilt = tilt(odds, count);
                let tilted: Vec<f64> = odds.iter().map(|&f| sigmoid(f + tilt)).collect();
                let log = |number: usize| noise.log(count - number as f64) - tilt * (number as f64 - count);
                let weights: Vec<f64> = (0..=odds.len()).map(|number| log(number).exp()).collect();
                let (density, given) = conditional(&tilted, &weights);
                let cumulant: f64 = odds.iter().map(|&f| softplus(f + tilt) - softplus(f)).sum();
                let exact = tilt * count - cumulant - density.ln();
                let (loss, slopes) = of_count(odds, count, Some(noise));
                assert!((loss - exact).abs() < 0.005, "{noise:?} {count}: {loss} {exact}");
                for ((slope, given), &f) in slopes.iter().zip(given).zip(odds) {
                    assert!((slope - (sigmoid(f) - given)).abs() < 2e-4, "{noise:?} {count}");
                }
            }
        }
    }

    /// Noise needs every outcome: the density is the sum over all 2^n, each with the noise that it needs.
    #[test]
    fn noise_is_convolved_with_the_count() {
        let odds = [0.4, -1.2, 2.0, 0.1, -0.3, 1.1];
        let q = odds.map(sigmoid);
        for noise in [Density::Laplace { scale: 0.8 }, Density::Normal { deviation: 1.3 }] {
            for count in [-2.0, 0.3, 2.5, 6.0, 9.7] {
                let (mut total, mut with) = (0.0, [0.0; 6]);
                for outcome in 0_u32..1 << 6 {
                    let is_one = |row: usize| outcome >> row & 1 == 1;
                    let p: f64 = (0..6).map(|row| if is_one(row) { q[row] } else { 1.0 - q[row] }).product();
                    let density = p * noise.log(count - f64::from(outcome.count_ones())).exp();
                    total += density;
                    (0..6).filter(|&row| is_one(row)).for_each(|row| with[row] += density);
                }
                let (loss, slopes) = of_count(&odds, count, Some(noise));
                assert!((loss + total.ln()).abs() < 1e-9, "{noise:?} {count}: {loss} {}", -total.ln());
                for ((slope, q), with) in slopes.iter().zip(q).zip(with) {
                    assert!((slope - (q - with / total)).abs() < 1e-9, "{noise:?} {count}");
                }
            }
        }
    }

    /// A density of the noise is one: over all counts it sums to 1, and so has the count with noise, up to a few per mille where it is
    /// approximated.
    #[test]
    fn densities_sum_to_one() {
        for noise in [Density::Laplace { scale: 3.0 }, Density::Normal { deviation: 4.0 }] {
            for odds in [vec![0.3; 5], vec![0.2; 150]] {
                let counts = (-2000..4000).map(|step| f64::from(step) * 0.05);
                let total: f64 =
                    counts.map(|count| (-of_count(&odds, count, Some(noise)).0).exp() * 0.05).sum();
                let tolerance = if odds.len() < 10 { 1e-3 } else { 5e-3 };
                assert!((total - 1.0).abs() < tolerance, "{noise:?}, {} rows: {total}", odds.len());
            }
        }
    }

    #[test]
    fn slopes_equal_finite_differences_in_every_case() {
        let laplace = Some(Density::Laplace { scale: 1.5 });
        let normal = Some(Density::Normal { deviation: 2.5 });
        for (n_rows, count, noise) in [
            (9, 4.0, None),
            (9, 0.0, None),
            (9, 9.0, None),
            (300, 120.0, None),
            (12, 4.7, laplace),
            (12, -3.2, normal),
            (300, 171.4, laplace),
            (300, 120.9, normal),
            (300, 60.2, laplace),
            (300, 260.0, normal),
        ] {
            let odds: Vec<f64> = (0..n_rows).map(|row| (1.1 * f64::from(row)).sin()).collect();
            let (_, slopes) = of_count(&odds, count, noise);
            for row in [0, 3, 8] {
                let shifted = |step: f64| {
                    let mut odds = odds.clone();
                    odds[row] += step;
                    of_count(&odds, count, noise).0
                };
                let difference = (shifted(1e-4) - shifted(-1e-4)) / 2e-4;
                assert!(
                    (difference - slopes[row]).abs() < 1e-6,
                    "{n_rows} {count} {noise:?}: {difference} {}",
                    slopes[row]
                );
            }
        }
    }
}
