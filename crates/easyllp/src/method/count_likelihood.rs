//! Count likelihood: how probable a bag's count is, if its rows are independent with the probabilities that the model says.
//!
//! The number of positives among independent rows has the Poisson-binomial distribution. Its −log likelihood has the derivative
//! q_j − E[y_j | count] in row j's log odds: the model's probability against what it becomes once the count is known. Both come
//! from probabilities *tilted* to the count: with t such that Σ σ(f_j + t) is the count c, and K(t) = Σ log(1 − q_j + q_j eᵗ),
//!
//! ```text
//! −log P(c) = t c − K(t) − log P_t(c),     E[y_j | c] is the same under tilted rows
//! ```
//!
//! so that nothing is too improbable to be reckoned with. P_t(c) is exact, by products of the rows' polynomials two by two and back,
//! unless the tilted count varies by so much (V of 25 or more) that the saddle-point approximation will do: P_t(c) ≈ 1/√(2πV).
//!
//! Several classes are taken one against the rest each, and their likelihoods multiplied (a composite likelihood). Where noise is
//! declared, the count is taken for normal with the noise's variance added.

use super::BagObjective;
use crate::bags::Bags;
use crate::link::Link;
use crate::loss::sigmoid;
use ndarray::{ArrayView2, ArrayViewMut2};

/// From this variance of the count on, the approximation will do.
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
        let noise = self.bags.count_variance(bag);
        let (n_rows, n_scores) = scores.dim();
        if n_scores == 1 {
            let odds: Vec<f64> = scores.iter().map(|&score| f64::from(score)).collect();
            let (loss, slopes) = of_count(&odds, counts[1], noise);
            derivative.iter_mut().zip(slopes).for_each(|(out, slope)| *out = slope as f32);
            return loss;
        }
        // Log odds of each class against the rest; their slopes go back through the softmax.
        let mut probabilities = vec![0.0; n_rows * n_scores];
        for (row, line) in scores.rows().into_iter().zip(probabilities.chunks_exact_mut(n_scores)) {
            let row: Vec<f64> = row.iter().map(|&score| f64::from(score)).collect();
            Link::Logit.probabilities(&row, line).expect("log odds are probabilities");
        }
        let mut loss = 0.0;
        let mut of_odds = vec![0.0; n_rows * n_scores];
        for class in 0..n_scores {
            let odds: Vec<f64> = probabilities
                .chunks_exact(n_scores)
                .map(|line| (line[class].max(1e-300) / (1.0 - line[class]).max(1e-300)).ln())
                .collect();
            let (of_class, slopes) = of_count(&odds, counts[class], noise);
            loss += of_class;
            for (line, slope) in of_odds.chunks_exact_mut(n_scores).zip(slopes) {
                line[class] = slope;
            }
        }
        let lines = probabilities.chunks_exact(n_scores).zip(of_odds.chunks_exact(n_scores));
        for (mut out, (q, slopes)) in derivative.rows_mut().into_iter().zip(lines) {
            // d log odds_c / d score_d is 1 for d = c, and −q_d/(1 − q_c) else.
            for (class, out) in out.iter_mut().enumerate() {
                let others = (0..n_scores).filter(|&other| other != class);
                let spread: f64 =
                    others.map(|other| slopes[other] * q[class] / (1.0 - q[other]).max(1e-300)).sum();
                *out = (slopes[class] - spread) as f32;
            }
        }
        loss
    }
}

/// −log P(count) of independent rows with these log odds, and its derivative in each.
fn of_count(odds: &[f64], count: f64, noise: f64) -> (f64, Vec<f64>) {
    let n_rows = odds.len() as f64;
    if noise > 0.0 {
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
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 1 to the bag's size")]
    let (probability, given_count) = conditional(&tilted, count.round() as usize);
    let slopes = odds.iter().zip(given_count).map(|(&f, given)| sigmoid(f) - given).collect();
    (base - probability.ln(), slopes)
}

/// The same of a count with noise, taken for normal.
fn with_noise(odds: &[f64], count: f64, noise: f64) -> (f64, Vec<f64>) {
    let q: Vec<f64> = odds.iter().map(|&f| sigmoid(f)).collect();
    let mean: f64 = q.iter().sum();
    let variance = noise + q.iter().map(|q| q * (1.0 - q)).sum::<f64>();
    let distance = (count - mean) / variance;
    let loss = 0.5 * distance * (count - mean) + 0.5 * (std::f64::consts::TAU * variance).ln();
    let slope = |q: f64| {
        let v = q * (1.0 - q);
        v * (-distance + 0.5 * (1.0 - 2.0 * q) * (1.0 / variance - distance * distance))
    };
    (loss, q.into_iter().map(slope).collect())
}

fn softplus(f: f64) -> f64 {
    f.max(0.0) + (-f.abs()).exp().ln_1p()
}

/// What has to be added to all log odds for their probabilities to sum to the count, which lies between 0 and their number.
fn tilt(odds: &[f64], count: f64) -> f64 {
    let largest = odds.iter().fold(0.0_f64, |largest, f| largest.max(f.abs()));
    let reach = largest + 2.0 * (odds.len() as f64 + 1.0).ln() + 5.0;
    let (mut low, mut high, mut tilt) = (-reach, reach, 0.0);
    for _ in 0..100 {
        let (mut sum, mut slope) = (0.0, 0.0);
        for &f in odds {
            let q = sigmoid(f + tilt);
            sum += q;
            slope += q * (1.0 - q);
        }
        let excess = sum - count;
        if excess.abs() <= 1e-10 * count {
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

/// P(count) of independent rows, and each row's probability given the count.
///
/// A tree: leaves are the polynomials 1 − q + q·x of the rows, every node is the product of the two below it, and the derivative of
/// P(count) runs back from the root. Coefficients above the count are left out.
fn conditional(q: &[f64], count: usize) -> (f64, Vec<f64>) {
    let mut levels: Vec<Vec<Vec<f64>>> = vec![q.iter().map(|&q| vec![1.0 - q, q]).collect()];
    while levels.last().is_some_and(|level| level.len() > 1) {
        let level = levels.last().expect("a first level");
        let next = level
            .chunks(2)
            .map(|pair| match pair {
                [first, second] => product(first, second, count),
                _ => pair[0].clone(),
            })
            .collect();
        levels.push(next);
    }
    let root = &levels.pop().expect("a first level")[0];
    let probability = root[count];
    let mut slopes =
        vec![(0..root.len()).map(|place| f64::from(u8::from(place == count))).collect::<Vec<f64>>()];
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
                let (loss, slopes) = of_count(&odds, count as f64, 0.0);
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
        let (loss, slopes) = of_count(&[-30.0; 60], 50.0, 0.0);
        assert!((loss - 1475.0).abs() < 10.0, "{loss}"); // 50·30 − log of C(60, 50)
        assert!(slopes.iter().all(|slope| (slope + 50.0 / 60.0).abs() < 1e-9));
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
            let (loss, slopes) = of_count(&odds, count, 0.0);
            let (probability, given) = conditional(&tilted, place);
            let cumulant: f64 = odds.iter().map(|&f| softplus(f + tilt) - softplus(f)).sum();
            let exact = tilt * count - cumulant - probability.ln();
            assert!((loss - exact).abs() < 0.005, "{loss} {exact}");
            for ((slope, given), &f) in slopes.iter().zip(given).zip(&odds) {
                assert!((slope - (sigmoid(f) - given)).abs() < 2e-4);
            }
        }
    }

    #[test]
    fn slopes_equal_finite_differences_in_every_case() {
        for (n_rows, count, noise) in
            [(9, 4.0, 0.0), (9, 0.0, 0.0), (9, 9.0, 0.0), (300, 120.0, 0.0), (12, 4.7, 2.0)]
        {
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
                    "{n_rows} {count} {noise}: {difference} {}",
                    slopes[row]
                );
            }
        }
    }
}
