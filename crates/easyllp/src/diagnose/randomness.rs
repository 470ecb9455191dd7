//! Decide whether bags look random: the one rule by which metrics are shown or withheld.

use super::{Comparison, Dealings};
use crate::bags::{Bags, Noise};
use crate::error::Result;
use serde::Serialize;
use std::fmt;

/// Random bags are rejected at a p-value below this and a ratio above [`Randomness::RATIO`].
const LEVEL: f64 = 0.01;

/// The level for bags that vary less than by chance. Such bags are rare, so most alarms would be
/// false.
const BALANCED_LEVEL: f64 = 0.001;

/// The maximum number of permutations.
const DRAWS: usize = 1999;

/// The number of permutations between checks for an early stop.
const ROUND: usize = 100;

/// Beyond this distance the verdict is certain: by Cantelli's inequality the p-value is below 1/(1
/// + 40²).
const FAR: f64 = 40.0;

/// The seed of the permutations: the same bags always get the same verdict.
const SEED: u64 = 1;

/// The result of the test of random bags.
///
/// Displays as a sentence without a full stop, for warnings and reports.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Randomness {
    /// The verdict.
    pub verdict: Verdict,
    /// The variance of counts between bags, divided by its expectation for random bags.
    pub ratio: f64,
    /// The p-value: the probability that random bags vary as much, or as little if the ratio is
    /// below 1.
    pub p_value: f64,
}

/// The conclusion of the test of random bags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Random bags are not rejected. This does not prove that they are random.
    Plausible,
    /// Counts vary more than by chance: the label is correlated with how rows were grouped. Estimates that assume
    /// random bags are biased.
    NotRandom,
    /// Counts vary less than by chance: bags were balanced, counts smoothed, or less noise added than declared.
    Balanced,
}

impl Verdict {
    /// Its name: `plausible`, `not_random` or `balanced`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Plausible => "plausible",
            Self::NotRandom => "not_random",
            Self::Balanced => "balanced",
        }
    }
}

impl Randomness {
    /// A ratio up to this does not reject random bags, for any number of bags: the bias is then
    /// small, and many bags would reject trivial differences.
    pub const RATIO: f64 = 1.1;

    /// Whether random bags are rejected. Metrics that assume them must then not be shown without a
    /// warning.
    pub fn is_rejected(&self) -> bool {
        self.verdict == Verdict::NotRandom
    }
}

impl fmt::Display for Randomness {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Self { verdict, ratio, p_value } = *self;
        let p = if p_value < 0.001 { "p < 0.001".into() } else { format!("p = {p_value:.3}") };
        match verdict {
            Verdict::Plausible => {
                write!(f, "the bags look random: counts vary {ratio:.2} times as much as by chance ({p})")
            }
            Verdict::NotRandom => write!(
                f,
                "the bags do not look random: counts vary {ratio:.1} times as much as by chance ({p}). \
                 The label is correlated with how rows were grouped, so metrics estimated from these bags are biased"
            ),
            Verdict::Balanced => write!(
                f,
                "the bags look balanced: counts vary only {ratio:.2} times as much as by chance ({p}). Rows were grouped \
                 by their labels, or counts are not what they seem, so metrics estimated from these bags may be biased"
            ),
        }
    }
}

/// Tests whether bags look random: the one rule of this library, its program and its Python package.
///
/// Random bags are rejected if counts vary more than [`Randomness::RATIO`] times as much as by
/// chance *and* the p-value is below 0.01. Requires at least two bags.
///
/// Ties count against rejection, so at most 1 % of random sets of bags are rejected. Up to 1,999
/// permutations are drawn, and fewer once more could not change the verdict: most sets need 100 or
/// 200.
///
/// ```
/// use easyllp::diagnose::{Verdict, randomness};
/// use easyllp::{Bags, bagging};
///
/// let labels: Vec<u32> = (0..2000).map(|row| u32::from(row % 5 == 0)).collect();
/// let random = bagging::random(2000, &bagging::Sizes::Fixed(10), 1)?;
/// assert_eq!(randomness(&Bags::from_labels(random, &labels, 2)?)?.verdict, Verdict::Plausible);
///
/// // A key that the label depends on.
/// let keys: Vec<u32> = labels.iter().zip(0..).map(|(label, row)| row % 100 + 50 * label).collect();
/// let (_, by_key) = bagging::by_key(&keys)?;
/// let found = randomness(&Bags::from_labels(by_key, &labels, 2)?)?;
/// assert!(found.is_rejected() && found.to_string().starts_with("the bags do not look random"));
/// # Ok::<(), easyllp::Error>(())
/// ```
pub fn randomness(bags: &Bags) -> Result<Randomness> {
    let dealings = Dealings::new(bags, SEED)?;
    // Row labels can be dealt in one way only, as far as counts tell.
    if *bags.noise() == Noise::None && bags.have_row_labels() {
        return Ok(Randomness { verdict: Verdict::Plausible, ratio: 1.0, p_value: 1.0 });
    }
    let mut comparison = dealings.comparison();
    while comparison.draws.len() < DRAWS && !is_settled(&comparison) {
        let n_draws = ROUND.min(DRAWS - comparison.draws.len());
        dealings.draw(&mut comparison, n_draws);
    }
    Ok(conclude(&comparison))
}

/// How many permutations, counting the bags themselves, vary at least as much as the bags, and how
/// many at most as much.
fn tails(comparison: &Comparison) -> (f64, f64) {
    let (more, equal) = comparison.more_and_equal();
    (more + equal + 1.0, comparison.draws.len() as f64 - more + 1.0)
}

/// Whether more permutations cannot bring the p-value below the level, or the bags are beyond
/// doubt.
fn is_settled(comparison: &Comparison) -> bool {
    let enough = LEVEL * (DRAWS + 1) as f64;
    let (as_much, as_little) = tails(comparison);
    (as_much >= enough && as_little >= enough) || distance(comparison).abs() > FAR
}

/// The distance of the bags from the permutations' mean, in standard deviations; 0 if the
/// permutations do not vary.
fn distance(comparison: &Comparison) -> f64 {
    let n_draws = comparison.draws.len() as f64;
    let draws = || comparison.draws.iter().map(|draw| draw.centred);
    let mean = draws().sum::<f64>() / n_draws;
    let deviation = (draws().map(|draw| (draw - mean).powi(2)).sum::<f64>() / n_draws).sqrt();
    if deviation > 0.0 { (comparison.observed.centred - mean) / deviation } else { 0.0 }
}

fn conclude(comparison: &Comparison) -> Randomness {
    let ratio = comparison.ratio();
    let (as_much, as_little) = tails(comparison);
    let tail = if ratio >= 1.0 { as_much } else { as_little };
    let mut p_value = tail / (comparison.draws.len() + 1) as f64;
    let distance = distance(comparison);
    if distance.abs() > FAR {
        p_value = p_value.min(1.0 / (1.0 + distance * distance));
    }
    let verdict = if p_value < LEVEL && ratio > Randomness::RATIO {
        Verdict::NotRandom
    } else if p_value < BALANCED_LEVEL && ratio < 1.0 / Randomness::RATIO {
        Verdict::Balanced
    } else {
        Verdict::Plausible
    };
    Randomness { verdict, ratio, p_value }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bags::Partition;
    use crate::diagnose::{Spread, dispersion};

    fn bags(counts: &[f64]) -> Bags {
        let partition = Partition::new(10 * counts.len(), {
            let n_bags = u32::try_from(counts.len()).unwrap();
            (0..n_bags).map(|bag| (10 * bag..10 * (bag + 1)).collect::<Vec<_>>())
        });
        Bags::binary(partition.unwrap(), counts, Noise::None).unwrap()
    }

    /// Stopping early keeps the verdict that all dealings give, and the ratio within their chance: the mean of 100
    /// dealings of 40 bags has a standard error of √(2/40)/10 = 0.022.
    #[test]
    fn stopping_early_changes_no_verdict() {
        for spread in 1..6 {
            let counts: Vec<f64> =
                (0..40).map(|bag| f64::from(5 + (bag * 13 % (2 * spread + 1)) - spread)).collect();
            let bags = bags(&counts);
            let (found, all) = (randomness(&bags).unwrap(), dispersion(&bags, DRAWS, SEED).unwrap());
            assert_eq!(found.is_rejected(), all.over < LEVEL && all.ratio > Randomness::RATIO, "{spread}");
            assert!((found.ratio / all.ratio - 1.0).abs() < 4.0 * 0.022, "{found:?} {all:?}");
        }
    }

    #[test]
    fn a_small_excess_rejects_nothing_however_sure_it_is() {
        let verdict = |observed: f64| {
            let spread = |statistic| Spread { statistic, centred: statistic };
            let draws = (0..1999).map(|draw| spread(1.0 + 0.001 * f64::from(draw % 3 - 1))).collect();
            conclude(&Comparison { observed: spread(observed), draws }).verdict
        };
        assert_eq!(verdict(1.0), Verdict::Plausible);
        assert_eq!(verdict(1.09), Verdict::Plausible);
        assert_eq!(verdict(1.11), Verdict::NotRandom);
        assert_eq!(verdict(0.92), Verdict::Plausible);
        assert_eq!(verdict(0.9), Verdict::Balanced);
    }

    #[test]
    fn words_say_the_numbers() {
        let words = |verdict, ratio, p_value| Randomness { verdict, ratio, p_value }.to_string();
        let text = words(Verdict::NotRandom, 5.21, 0.0004);
        assert!(text.contains("do not look random: counts vary 5.2 times") && text.contains("(p < 0.001)"));
        assert!(
            words(Verdict::Plausible, 1.031, 0.25).ends_with("1.03 times as much as by chance (p = 0.250)")
        );
        assert!(words(Verdict::Balanced, 0.2, 0.004).contains("balanced: counts vary only 0.20 times"));
    }
}
