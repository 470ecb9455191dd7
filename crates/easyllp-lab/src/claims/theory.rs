//! Claims about the growth of variances and excess risks: slopes in log-log scale, and closed
//! forms.

use super::{Claim, Found, Results, Verdict, claim, name_of, of_kind};
use crate::experiment::Kind;
use crate::point::{Point, Summary, lines};

/// A point of a line: x, y, and the standard error of y; none for a single sample.
type Place = (f64, f64, Option<f64>);

/// An estimated exponent, with its standard error if it is known.
#[derive(Debug, Clone, Copy)]
struct Slope {
    power: f64,
    error: Option<f64>,
}

impl Slope {
    /// The slope of log y against log x, from the middle of the line to its end, where the laws for
    /// large x apply.
    fn of(line: &[Place]) -> Option<Self> {
        let (first, last) = (line.get(line.len().saturating_sub(1) / 2)?, line.last()?);
        let ratio = |one: f64, other: f64| (other / one).ln();
        let across = ratio(first.0, last.0);
        let share = |(_, found, error): &Place| Some((*error)? / found);
        let error = || Some(share(first)?.hypot(share(last)?) / across.abs());
        (across.abs() > 1e-9).then(|| Self { power: ratio(first.1, last.1) / across, error: error() })
    }

    /// Whether it is within the tolerance. Undecided if its standard error is more than half of the
    /// tolerance.
    fn is_near(self, expected: f64, reach: f64) -> Verdict {
        if self.error.is_none_or(|error| error > reach / 2.0) {
            return Verdict::Open;
        }
        Verdict::of((self.power - expected).abs() < reach)
    }
}

/// The combined verdict: one claim that fails decides it, and one that is undecided leaves it
/// undecided.
fn all_of(verdicts: &[Verdict]) -> Verdict {
    let settles = |verdict: &Verdict| verdicts.contains(verdict);
    [Verdict::NotHeld, Verdict::Open].into_iter().find(settles).unwrap_or(Verdict::Held)
}

/// What an undecided verdict adds to the evidence.
fn doubt(verdict: Verdict) -> &'static str {
    if verdict == Verdict::Open { "; too few samples to tell" } else { "" }
}

fn line(points: &[Point], panel: &str, series: &str, measure: &str) -> Option<Vec<(f64, Summary)>> {
    let found = lines(points, |of| of == panel, measure);
    found.into_iter().find(|(name, _)| name == series).map(|(_, line)| line)
}

/// The slope of excess risks, with the standard errors of sample means.
fn slope_of_risk(points: &[Point], panel: &str, series: &str) -> Option<Slope> {
    let place = |(x, found): (f64, Summary)| (x, found.mean, (found.n > 1).then(|| found.standard_error()));
    let places: Vec<Place> = line(points, panel, series, "excess risk")?.into_iter().map(place).collect();
    Slope::of(&places)
}

/// The slope of variances, with measured standard errors.
fn slope_of_variance(points: &[Point], series: &str) -> Option<Slope> {
    let of = |measure: &str| line(points, "by size", series, measure);
    let (found, errors) = (of("variance")?, of("standard error").unwrap_or_default());
    let error =
        |at: f64| errors.iter().find(|(x, _)| x.to_bits() == at.to_bits()).map(|(_, error)| error.mean);
    let places: Vec<Place> = found.into_iter().map(|(x, found)| (x, found.mean, error(x))).collect();
    Slope::of(&places)
}

pub(super) fn variances_grow_as_they_should(results: &Results) -> Claim {
    const REACH: f64 = 0.15;
    let found = of_kind(results, |kind| matches!(kind, Kind::Variance(_))).and_then(|points| {
        let of = |series: &str| slope_of_variance(points, series);
        let (surrogate, soft, centred) = (of("surrogate one")?, of("derandomised avg")?, of("centred")?);
        let deviations = deviations(points);
        let furthest = deviations.iter().copied().fold(0.0, f64::max);
        let most = furthest_of(deviations.len());
        let verdict = all_of(&[
            surrogate.is_near(2.0, REACH),
            soft.is_near(1.0, REACH),
            Verdict::of(furthest <= most),
        ]);
        Some(Found {
            verdict,
            number: format!("k^{:.2} and k^{:.2}", surrogate.power, soft.power),
            evidence: format!(
                "variance grows like k^{:.2} with one surrogate label and like k^{:.2} derandomised (centred: k^{:.2}); of {} points the \
                 furthest from its closed form is {furthest:.1} standard errors away, where {most:.1} are allowed{}",
                surrogate.power,
                soft.power,
                centred.power,
                deviations.len(),
                doubt(verdict)
            ),
        })
    });
    claim(
        "The variance grows like k² with surrogate labels, and like k without.",
        "slopes within 0.15 of 2 and of 1, from the middle size on; and no point is further from its closed form than chance brings one of as \
         many in a hundredth of all cases. Open if a slope's own error is above half of 0.15",
        name_of(results, |kind| matches!(kind, Kind::Variance(_))),
        found,
    )
}

/// The deviation of measured variances from their closed forms, in standard errors.
fn deviations(points: &[Point]) -> Vec<f64> {
    let mut deviations = Vec::new();
    for panel in ["by size", "by share"] {
        let of = |measure: &str| lines(points, |of| of == panel, measure);
        let all = of("variance").into_iter().zip(of("standard error")).zip(of("closed form"));
        for (((_, found), (_, errors)), (_, theory)) in all {
            let places = found.iter().zip(&errors).zip(&theory);
            deviations.extend(places.map(|(((_, found), (_, error)), (_, theory))| {
                ((found.mean - theory.mean) / error.mean.max(1e-12)).abs()
            }));
        }
    }
    deviations
}

/// The level that the largest of this many normal deviations exceeds in at most 1 of 100 cases:
/// each exceeds z with a probability of at most exp(−z²/2).
fn furthest_of(n_points: usize) -> f64 {
    (2.0 * (100.0 * n_points as f64).ln()).sqrt()
}

pub(super) fn one_pass_has_its_slopes(results: &Results) -> Claim {
    const REACH: f64 = 0.15;
    let found = of_kind(results, |kind| matches!(kind, Kind::Sgd(_))).and_then(|points| {
        let of = |series: &str| {
            let of = |panel: &str| slope_of_risk(points, panel, series);
            Some((of("by bags")?, of("by size")?))
        };
        let ((soft_by_bags, soft_by_size), (drawn_by_bags, drawn_by_size)) = (of("soft")?, of("surrogate")?);
        let verdict = all_of(&[
            soft_by_bags.is_near(-0.5, REACH),
            drawn_by_bags.is_near(-0.5, REACH),
            soft_by_size.is_near(0.5, REACH),
            drawn_by_size.is_near(1.0, REACH),
        ]);
        Some(Found {
            verdict,
            number: format!("k^{:.2} and k^{:.2}", soft_by_size.power, drawn_by_size.power),
            evidence: format!(
                "the last iterate's excess risk goes like n^{:.2} and k^{:.2} with soft labels, and like n^{:.2} and k^{:.2} with surrogate \
                 labels{}",
                soft_by_bags.power,
                soft_by_size.power,
                drawn_by_bags.power,
                drawn_by_size.power,
                doubt(verdict)
            ),
        })
    });
    claim(
        "One pass of SGD over n bags has an excess risk of the order of √(k/n) with soft labels, and of k/√n with surrogate labels.",
        "slopes within 0.15 of −½ in n with both, from the middle number of bags on, and of ½ and 1 in k, from the middle size on. Open if a \
         slope's own error is above half of that",
        name_of(results, |kind| matches!(kind, Kind::Sgd(_))),
        found,
    )
}

/// The verdict uses the theorem's form, which knows p. The paper's recommended form is reported,
/// too: p is pooled from the bags, which is the centred form since the bags have one size here.
pub(super) fn minimisers_pay_a_factor(results: &Results) -> Claim {
    const REACH: f64 = 0.2;
    let found = of_kind(results, |kind| matches!(kind, Kind::Erm(_))).and_then(|points| {
        let of = |panel: &str, series: &str| slope_of_risk(points, panel, series);
        let (pooled, known) = (of("by size", "centred")?, of("by size", "paper")?);
        let (pooled_by_bags, known_by_bags) = (of("by bags", "centred")?, of("by bags", "paper")?);
        let in_words = |slope: Slope| match slope.is_near(1.0, REACH) {
            Verdict::Held => "held",
            Verdict::NotHeld => "not held",
            Verdict::Open => "too few samples to tell",
        };
        Some(Found {
            verdict: known.is_near(1.0, REACH),
            number: format!("k^{:.2}", known.power),
            evidence: format!(
                "{} with the true p: with a fixed number of rows, excess risk grows like k^{:.2} (up to k² is within the theorem, whose \
                 last term is then 4k times that for labels, not √k times); {} with p pooled from the bags, as the paper recommends (the \
                 centred form): k^{:.2}. With the true p the intercept has the error of whole bags, which the pooled p shares and so cancels \
                 out. With more bags both fall, like n^{:.2} and n^{:.2}{}",
                in_words(known),
                known.power,
                in_words(pooled),
                pooled.power,
                known_by_bags.power,
                pooled_by_bags.power,
                distance_to_bound(points),
            ),
        })
    });
    claim(
        "Empirical risk minimisation from bags is worse than from as many labels by a factor of k in excess risk (√k in the deviation).",
        "slope within 0.2 of 1 in k at a fixed number of rows, from the middle size on, for known p as in the theorem; the result with pooled p \
         is reported, too. Open if the slope's own error is above half of 0.2",
        name_of(results, |kind| matches!(kind, Kind::Erm(_))),
        found,
    )
}

/// The ratio of the paper's bound to the mean excess risk where they are closest, for either p.
/// None for results without bounds. There is no verdict: the bound is above, or nearly above, the
/// largest loss in its class of models.
fn distance_to_bound(points: &[Point]) -> String {
    let of = |series: &str, measure: &str| line(points, "by size", series, measure).unwrap_or_default();
    let found = [of("paper", "excess risk"), of("centred", "excess risk")].concat();
    let ratios = of("from bags (2Γ)", "bound").into_iter().flat_map(|(k, bound)| {
        let here = found.iter().filter(move |(at, _)| at.to_bits() == k.to_bits());
        here.map(move |(_, found)| bound.mean / found.mean)
    });
    match ratios.reduce(f64::min) {
        None => String::new(),
        Some(least) if least >= 1.0 => {
            format!("; the paper's bound 2Γ is kept, and is {least:.0} times the excess risk or more")
        }
        Some(least) => {
            format!("; the paper's bound 2Γ is not kept: it is down to {least:.2} of the excess risk")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;

    fn experiment(text: &str) -> Experiment {
        Experiment::parse("e", text).unwrap()
    }

    /// Two samples whose mean has a standard error of 1 %, so that slopes of [`power`] have one of √2 % / ln 4 = 0.0102.
    const SAMPLES: [f64; 2] = [2.97, 3.03];

    /// A line of powers of x, as many times as there are heights at x = 1.
    fn power(panel: &str, series: &str, measure: &str, exponent: f64, heights: &[f64]) -> Vec<Point> {
        let mut points = Vec::new();
        for (replica, height) in (1..).zip(heights) {
            points.extend([1.0_f64, 2.0, 4.0, 8.0, 16.0].map(|x| Point {
                panel: panel.into(),
                series: series.into(),
                x,
                replica,
                measure: measure.into(),
                value: height * x.powf(exponent),
            }));
        }
        points
    }

    #[test]
    fn slopes_are_those_of_powers_and_know_their_errors() {
        let slope =
            |heights: &[f64]| slope_of_risk(&power("p", "s", "excess risk", 1.5, heights), "p", "s").unwrap();
        let found = slope(&SAMPLES);
        assert!((found.power - 1.5).abs() < 1e-12);
        assert!((found.error.unwrap() - 0.010_2).abs() < 1e-4, "{found:?}");
        assert_eq!(found.is_near(1.5, 0.021), Verdict::Held);
        assert_eq!(found.is_near(1.6, 0.021), Verdict::NotHeld);
        // Its error is above half of the reach: neither.
        assert_eq!(found.is_near(1.5, 0.020), Verdict::Open);
        assert_eq!(found.is_near(1.6, 0.020), Verdict::Open);
        // Of a single sample the error is not known; a single place has no slope.
        assert_eq!(slope(&[3.0]).is_near(1.5, 1e9), Verdict::Open);
        assert!(Slope::of(&[(1.0, 3.0, Some(0.1))]).is_none());
    }

    #[test]
    fn one_verdict_settles_what_another_leaves_open() {
        use Verdict::{Held, NotHeld, Open};
        assert_eq!(all_of(&[Held, Held]), Held);
        assert_eq!(all_of(&[Held, Open]), Open);
        assert_eq!(all_of(&[Open, NotHeld, Held]), NotHeld);
    }

    #[test]
    fn variances_are_held_to_their_slopes_and_to_their_closed_forms() {
        let variance =
            experiment("experiment = \"variance\"\nsizes = [1]\nshares = []\nsize = 1\nsamples = 2");
        // Errors are this share of the variance; one point is so many errors off.
        let verdict = |surrogate: f64, share: f64, off: f64| {
            let mut points = Vec::new();
            for (series, slope) in [("surrogate one", surrogate), ("derandomised avg", 1.0), ("centred", 0.0)]
            {
                points.extend(power("by size", series, "variance", slope, &[3.0]));
                points.extend(power("by size", series, "standard error", slope, &[3.0 * share]));
                points.extend(power("by size", series, "closed form", slope, &[3.0]));
            }
            points[0].value *= 1.0 + share * off;
            variances_grow_as_they_should(&[(&variance, &points)]).verdict
        };
        assert_eq!(verdict(2.0, 0.01, 0.0), Verdict::Held);
        assert_eq!(verdict(1.8, 0.01, 0.0), Verdict::NotHeld);
        // Of 15 points: √(2 ln 1500) = 3.8.
        assert_eq!((verdict(2.0, 0.01, 3.7), verdict(2.0, 0.01, 3.9)), (Verdict::Held, Verdict::NotHeld));
        // Errors of 10 % make one of 0.102 of the slopes.
        assert_eq!((verdict(2.0, 0.1, 0.0), verdict(2.0, 0.1, 3.9)), (Verdict::Open, Verdict::NotHeld));
        assert!((furthest_of(95) - 4.28).abs() < 0.01);
    }

    #[test]
    fn one_pass_is_held_to_all_of_its_slopes() {
        let sgd = experiment("experiment = \"sgd\"\nsizes = [1]\nbags = [2]\npasses = 1");
        let judged = |slopes: [f64; 4], heights: &[f64]| {
            let lines = [
                ("by bags", "soft"),
                ("by size", "soft"),
                ("by bags", "surrogate"),
                ("by size", "surrogate"),
            ];
            let points: Vec<Point> = lines
                .iter()
                .zip(slopes)
                .flat_map(|((panel, series), slope)| power(panel, series, "excess risk", slope, heights))
                .collect();
            one_pass_has_its_slopes(&[(&sgd, &points)])
        };
        let theorem = [-0.5, 0.5, -0.5, 1.0];
        assert_eq!(judged(theorem, &SAMPLES).verdict, Verdict::Held);
        for place in 0..4 {
            let mut other = theorem;
            other[place] += 0.2;
            assert_eq!(judged(other, &SAMPLES).verdict, Verdict::NotHeld, "{other:?}");
        }
        let open = judged(theorem, &[2.0, 4.0]);
        assert_eq!(open.verdict, Verdict::Open);
        assert!(open.evidence.ends_with("; too few samples to tell"), "{}", open.evidence);
    }

    /// The claim about risk minimisation, from the slopes of both forms and the height of the bound; NaN for no bound.
    fn risks_and_bound(known: f64, pooled: f64, bound: f64) -> Claim {
        let erm = experiment("experiment = \"erm\"\nsizes = [1]\nbags = [2]\nsamples = 1");
        let mut points = power("by size", "from bags (2Γ)", "bound", 1.0, &[bound]);
        points.retain(|point| !point.value.is_nan());
        for (series, slope) in [("paper", known), ("centred", pooled)] {
            points.extend(power("by size", series, "excess risk", slope, &SAMPLES));
            points.extend(power("by bags", series, "excess risk", -1.0, &SAMPLES));
        }
        minimisers_pay_a_factor(&[(&erm, &points)])
    }

    #[test]
    fn minimisers_are_judged_by_the_form_of_the_theorem() {
        let judged = risks_and_bound;
        let found = judged(1.7, 1.0, 100.0);
        assert_eq!(found.verdict, Verdict::NotHeld);
        assert!(found.evidence.starts_with("not held with the true p"), "{}", found.evidence);
        assert!(
            found.evidence.contains("; held with p pooled from the bags")
                && found.evidence.contains("k^1.70")
        );
        assert!(found.evidence.contains("4k times that for labels"), "{}", found.evidence);
        assert_eq!(judged(1.0, 1.7, 100.0).verdict, Verdict::Held);
    }

    /// Excess risks are 3k and 3k^1.1, the bound a multiple of k.
    #[test]
    fn the_bound_is_told_of_and_settles_nothing() {
        let far = risks_and_bound(1.1, 1.0, 300.0);
        // 100k⁰ at k = 1, and 100/16^0.1 = 75.8 at k = 16.
        assert!(far.evidence.ends_with("2Γ is kept, and is 76 times the excess risk or more"), "{far:?}");
        let near = risks_and_bound(1.1, 1.0, 3.0);
        assert!(near.evidence.ends_with("2Γ is not kept: it is down to 0.76 of the excess risk"), "{near:?}");
        assert_eq!([far.verdict, near.verdict], [Verdict::Held; 2]);
        assert!(risks_and_bound(1.1, 1.0, f64::NAN).evidence.ends_with("n^-1.00 and n^-1.00"));
    }
}
