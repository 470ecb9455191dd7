//! Claims about how variances and excess risks grow: slopes of powers, and closed forms.

use super::{Claim, Results, Verdict, claim, of_kind};
use crate::experiment::Kind;
use crate::point::{Point, Summary, lines};

/// The slope of log y against log x, from the middle of the line to its end, where laws for large x are to be seen.
fn slope(line: &[(f64, Summary)]) -> Option<f64> {
    let (first, last) = (line.get(line.len().saturating_sub(1) / 2)?, line.last()?);
    let of = |one: f64, other: f64| (other / one).ln();
    let across = of(first.0, last.0);
    (across.abs() > 1e-9).then(|| of(first.1.mean, last.1.mean) / across)
}

fn line(points: &[Point], panel: &str, series: &str, measure: &str) -> Option<Vec<(f64, Summary)>> {
    let found = lines(points, |of| of == panel, measure);
    found.into_iter().find(|(name, _)| name == series).map(|(_, line)| line)
}

fn slope_of(points: &[Point], panel: &str, series: &str, measure: &str) -> Option<f64> {
    slope(&line(points, panel, series, measure)?)
}

fn is_near(slope: f64, expected: f64, reach: f64) -> bool {
    (slope - expected).abs() < reach
}

pub(super) fn variances_grow_as_they_should(results: &Results) -> Claim {
    let found = of_kind(results, |kind| matches!(kind, Kind::Variance(_))).and_then(|points| {
        let of = |series: &str| slope_of(points, "by size", series, "variance");
        let (surrogate, soft, centred) = (of("surrogate one")?, of("derandomised avg")?, of("centred")?);
        let deviations = deviations(points);
        let furthest = deviations.iter().copied().fold(0.0, f64::max);
        let most = furthest_of(deviations.len());
        let holds = is_near(surrogate, 2.0, 0.15) && is_near(soft, 1.0, 0.15) && furthest <= most;
        Some((
            Verdict::of(holds),
            format!(
                "variance grows like k^{surrogate:.2} with one surrogate label and like k^{soft:.2} derandomised (centred: k^{centred:.2}); of {} \
                 points the furthest from its closed form is {furthest:.1} standard errors away, where {most:.1} are allowed",
                deviations.len()
            ),
        ))
    });
    claim(
        "The variance grows like k² with surrogate labels, and like k without.",
        "slopes within 0.15 of 2 and of 1, from the middle size on; and no point is further from its closed form than chance brings one of as \
         many in a hundredth of all cases",
        found,
    )
}

/// How far measured variances are from their closed forms, in standard errors.
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

/// What the largest of so many normal deviations is beyond in at most 1 of 100 cases: one of them is beyond z with a chance of at most
/// exp(−z²/2).
fn furthest_of(n_points: usize) -> f64 {
    (2.0 * (100.0 * n_points as f64).ln()).sqrt()
}

pub(super) fn one_pass_has_its_slopes(results: &Results) -> Claim {
    const REACH: f64 = 0.15;
    let found = of_kind(results, |kind| matches!(kind, Kind::Sgd(_))).and_then(|points| {
        let of = |series: &str| {
            let of = |panel: &str| slope_of(points, panel, series, "excess risk");
            Some((of("by bags")?, of("by size")?))
        };
        let ((soft_by_bags, soft_by_size), (drawn_by_bags, drawn_by_size)) = (of("soft")?, of("surrogate")?);
        let by_bags = is_near(soft_by_bags, -0.5, REACH) && is_near(drawn_by_bags, -0.5, REACH);
        let by_size = is_near(soft_by_size, 0.5, REACH) && is_near(drawn_by_size, 1.0, REACH);
        Some((
            Verdict::of(by_bags && by_size),
            format!(
                "the last iterate's excess risk goes like n^{soft_by_bags:.2} and k^{soft_by_size:.2} with soft labels, and like \
                 n^{drawn_by_bags:.2} and k^{drawn_by_size:.2} with surrogate labels"
            ),
        ))
    });
    claim(
        "One pass of SGD over n bags has an excess risk of the order of √(k/n) with soft labels, and of k/√n with surrogate labels.",
        "slopes within 0.15 of −½ in n with both, and of ½ and 1 in k",
        found,
    )
}

pub(super) fn minimisers_pay_a_factor(results: &Results) -> Claim {
    const REACH: f64 = 0.2;
    let found = of_kind(results, |kind| matches!(kind, Kind::Erm(_))).and_then(|points| {
        let of = |panel: &str, series: &str| slope_of(points, panel, series, "excess risk");
        let (paper, centred) = (of("by size", "paper")?, of("by size", "centred")?);
        let (paper_by_bags, centred_by_bags) = (of("by bags", "paper")?, of("by bags", "centred")?);
        let in_words = |slope: f64| if is_near(slope, 1.0, REACH) { "held" } else { "not held" };
        Some((
            Verdict::of(is_near(paper, 1.0, REACH)),
            format!(
                "{} for the paper's form with known p: with as many rows in all, excess risk grows like k^{paper:.2}; {} for the centred form, \
                 which is not the paper's: k^{centred:.2}. Of the paper's form the intercept is off by the error of whole bags, which centring \
                 leaves out. With more bags both fall, like n^{paper_by_bags:.2} and n^{centred_by_bags:.2}{}",
                in_words(paper),
                in_words(centred),
                if is_within_bound(points) { "; the paper's bound 2Γ is kept throughout" } else { "" }
            ),
        ))
    });
    claim(
        "Empirical risk minimisation from bags is worse than from as many labels by a factor of k in excess risk (√k in the deviation).",
        "slope within 0.2 of 1 in k at a fixed number of rows, for the paper's form; the centred form is beside it",
        found,
    )
}

/// Whether the excess risk of the paper's form is below the bound at every size.
fn is_within_bound(points: &[Point]) -> bool {
    let of = |series: &str, measure: &str| line(points, "by size", series, measure).unwrap_or_default();
    let (found, bounds) = (of("paper", "excess risk"), of("from bags (2Γ)", "bound"));
    let places = found.iter().zip(&bounds);
    !bounds.is_empty() && places.into_iter().all(|((_, found), (_, bound))| found.mean <= bound.mean)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;

    fn experiment(text: &str) -> Experiment {
        Experiment::parse("e", text).unwrap()
    }

    /// A line of powers of x.
    fn power(panel: &str, series: &str, measure: &str, exponent: f64) -> Vec<Point> {
        let value = |x: f64| Point {
            panel: panel.into(),
            series: series.into(),
            x,
            replica: 1,
            measure: measure.into(),
            value: 3.0 * x.powf(exponent),
        };
        [1.0, 2.0, 4.0, 8.0, 16.0].map(value).to_vec()
    }

    #[test]
    fn slopes_are_those_of_powers() {
        let line = line(&power("p", "s", "m", 1.5), "p", "s", "m").unwrap();
        assert!((slope(&line).unwrap() - 1.5).abs() < 1e-12);
        assert_eq!(slope(&line[..1]), None);
    }

    #[test]
    fn variances_are_held_to_their_slopes_and_to_their_closed_forms() {
        let variance =
            experiment("experiment = \"variance\"\nsizes = [1]\nshares = []\nsize = 1\nsamples = 2");
        let verdict = |surrogate: f64, off: f64| {
            let mut points = Vec::new();
            for (series, slope) in [("surrogate one", surrogate), ("derandomised avg", 1.0), ("centred", 0.0)]
            {
                points.extend(power("by size", series, "variance", slope));
                points.extend(power("by size", series, "standard error", slope));
                points.extend(power("by size", series, "closed form", slope));
            }
            // A standard error is as large as the variance: one of them is so many away.
            points[0].value *= 1.0 + off;
            variances_grow_as_they_should(&[(&variance, &points)]).verdict
        };
        assert_eq!(verdict(2.0, 0.0), Verdict::Held);
        assert_eq!(verdict(1.8, 0.0), Verdict::NotHeld);
        // Of 15 points: √(2 ln 1500) = 3.8.
        assert_eq!((verdict(2.0, 3.7), verdict(2.0, 3.9)), (Verdict::Held, Verdict::NotHeld));
        assert!((furthest_of(95) - 4.28).abs() < 0.01);
    }

    #[test]
    fn one_pass_is_held_to_all_of_its_slopes() {
        let sgd = experiment("experiment = \"sgd\"\nsizes = [1]\nbags = [2]\npasses = 1");
        let verdict = |slopes: [f64; 4]| {
            let lines = [
                ("by bags", "soft"),
                ("by size", "soft"),
                ("by bags", "surrogate"),
                ("by size", "surrogate"),
            ];
            let points: Vec<Point> = lines
                .iter()
                .zip(slopes)
                .flat_map(|((panel, series), slope)| power(panel, series, "excess risk", slope))
                .collect();
            one_pass_has_its_slopes(&[(&sgd, &points)]).verdict
        };
        let theorem = [-0.5, 0.5, -0.5, 1.0];
        assert_eq!(verdict(theorem), Verdict::Held);
        for place in 0..4 {
            let mut other = theorem;
            other[place] += 0.2;
            assert_eq!(verdict(other), Verdict::NotHeld, "{other:?}");
        }
    }

    #[test]
    fn minimisers_are_judged_by_the_papers_own_form() {
        let erm = experiment("experiment = \"erm\"\nsizes = [1]\nbags = [2]\nsamples = 1");
        let judged = |paper: f64, centred: f64| {
            let mut points = Vec::new();
            for (series, slope) in [("paper", paper), ("centred", centred)] {
                points.extend(power("by size", series, "excess risk", slope));
                points.extend(power("by bags", series, "excess risk", -1.0));
            }
            minimisers_pay_a_factor(&[(&erm, &points)])
        };
        assert_eq!(judged(1.0, 1.0).verdict, Verdict::Held);
        let found = judged(1.7, 1.0);
        assert_eq!(found.verdict, Verdict::NotHeld);
        assert!(found.evidence.starts_with("not held for the paper's form"), "{}", found.evidence);
        assert!(found.evidence.contains("held for the centred form") && found.evidence.contains("k^1.70"));
    }
}
