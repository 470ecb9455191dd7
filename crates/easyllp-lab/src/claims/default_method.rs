//! Whether the default method is as good as the best one, wherever methods were compared.

use super::{Claim, Found, Results, Verdict, claim, name_of};
use crate::experiment::Kind;
use crate::experiment::comparison::{AUC, BRIER, SUPERVISED};
use crate::point::{Point, Summary};
use std::collections::BTreeMap;

const DEFAULT: &str = "auto";
const PAPER: &str = "easyllp";

/// With fewer replicas a difference has no standard error to speak of.
const FEWEST_REPLICAS: usize = 3;
/// A difference is none if it is at most this large, or at most two standard errors, which count up to `MOST`.
const LEAST: f64 = 0.005;
const MOST: f64 = 0.01;
/// It may be behind at one in this number of places.
const ONE_IN: usize = 10;

/// A method's results at a place, by replica; the higher the better.
type ByMethod<'p> = BTreeMap<&'p str, BTreeMap<u32, f64>>;

/// All places of an experiment at which the default method was run.
fn places<'p>(points: &'p [Point], measure: &str) -> Vec<(f64, ByMethod<'p>)> {
    let sign = if measure == BRIER { -1.0 } else { 1.0 };
    let mut places: BTreeMap<u64, ByMethod> = BTreeMap::new();
    for point in points.iter().filter(|point| point.measure == measure && point.series != SUPERVISED) {
        let place = places.entry(point.x.to_bits()).or_default();
        place.entry(&point.series).or_default().insert(point.replica, sign * point.value);
    }
    let is_whole = |(_, found): &(f64, ByMethod)| {
        found.get(DEFAULT).is_some_and(|replicas| replicas.len() >= FEWEST_REPLICAS)
    };
    places.into_iter().map(|(x, found)| (f64::from_bits(x), found)).filter(is_whole).collect()
}

/// How far the default method is behind another one, beyond what counts as no difference; below 0 if it is not.
fn behind(found: &ByMethod, other: &str) -> Option<f64> {
    let (own, other) = (found.get(DEFAULT)?, found.get(other)?);
    let differences: Vec<f64> =
        own.iter().filter_map(|(replica, value)| Some(other.get(replica)? - value)).collect();
    let summary = Summary::of(&differences).filter(|summary| summary.n >= FEWEST_REPLICAS)?;
    Some(summary.mean - (2.0 * summary.standard_error()).clamp(LEAST, MOST))
}

/// The method with the best mean.
fn best<'p>(found: &ByMethod<'p>) -> Option<&'p str> {
    let mean = |values: &BTreeMap<u32, f64>| values.values().sum::<f64>() / values.len() as f64;
    let means = found.iter().map(|(name, values)| (*name, mean(values)));
    means.max_by(|one, other| one.1.total_cmp(&other.1)).map(|(name, _)| name)
}

pub(super) fn the_default_is_the_best(results: &Results) -> Claim {
    let (mut n_places, mut n_behind) = (0_usize, 0_usize);
    let (mut worst, mut below_paper): (Option<(f64, String)>, Vec<String>) = (None, Vec::new());
    for (experiment, points) in results {
        if !matches!(experiment.kind, Kind::Comparison(_)) {
            continue;
        }
        let measure = if points.iter().any(|point| point.measure == AUC) { AUC } else { "accuracy" };
        for measure in [measure, BRIER] {
            for (size, found) in places(points, measure) {
                let place =
                    |other: &str| format!("{}, k = {size}, {measure}, against {other}", experiment.name);
                let Some(best) = best(&found) else { continue };
                n_places += 1;
                if let Some(off) = behind(&found, best).filter(|off| *off > 0.0) {
                    n_behind += 1;
                    if worst.as_ref().is_none_or(|(most, _)| off > *most) {
                        worst = Some((off, place(best)));
                    }
                }
                if behind(&found, PAPER).is_some_and(|off| off > 0.0) {
                    below_paper.push(place(PAPER));
                }
            }
        }
    }
    let found = (n_places > 0).then(|| {
        let holds = ONE_IN * n_behind <= n_places && below_paper.is_empty();
        let worst =
            worst.map_or_else(String::new, |(off, place)| format!("; most ({off:.4} more) at {place}"));
        let below = match &below_paper[..] {
            [] => "nowhere below easyllp".to_owned(),
            places => format!("below easyllp at {}", places.join("; ")),
        };
        let evidence = format!("behind the best method at {n_behind} of {n_places} places{worst}; {below}");
        let number = format!("behind at {n_behind} of {n_places} places");
        Found { verdict: Verdict::of(holds), number, evidence }
    });
    claim(
        "Not the paper's: the method auto is as good as the best method at any bag size.",
        "at 90 % of the places with at least 3 replicas, AUC (accuracy of several classes) and Brier score are within 0.005, \
         or two standard errors of the paired difference up to 0.01, of the best method's, and nowhere worse than easyllp's \
         by more than that",
        name_of(results, |kind| matches!(kind, Kind::Comparison(_))),
        found,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;

    fn points(of: &[(&str, [f64; 3])]) -> Vec<Point> {
        let of_method = |(series, values): &(&str, [f64; 3])| {
            let point = |(replica, value): (u32, &f64)| Point {
                panel: "t".into(),
                series: (*series).into(),
                x: 8.0,
                replica,
                measure: AUC.into(),
                value: *value,
            };
            (1..).zip(values).map(point).collect::<Vec<_>>()
        };
        of.iter().flat_map(of_method).collect()
    }

    fn verdict(of: &[(&str, [f64; 3])]) -> Verdict {
        let experiment = Experiment::named("quick-auto").unwrap().unwrap();
        the_default_is_the_best(&[(&experiment, &points(of))]).verdict
    }

    #[test]
    fn small_and_uncertain_differences_are_none() {
        let auto = ("auto", [0.9, 0.8, 0.7]);
        assert_eq!(verdict(&[auto, ("easyllp", [0.904, 0.804, 0.704])]), Verdict::Held);
        assert_eq!(verdict(&[auto, ("easyllp", [0.906, 0.806, 0.706])]), Verdict::NotHeld);
        assert_eq!(verdict(&[auto, ("naive", [0.906, 0.806, 0.706])]), Verdict::NotHeld);
        // Replicas differ by as much: 0.008 ± 0.005.
        assert_eq!(verdict(&[auto, ("naive", [0.916, 0.806, 0.702])]), Verdict::Held);
        // Two standard errors count up to 0.01.
        assert_eq!(verdict(&[auto, ("naive", [0.96, 0.8, 0.7])]), Verdict::NotHeld);
        // Row labels are no rival, and two replicas tell nothing.
        assert_eq!(verdict(&[auto, ("supervised", [1.0, 1.0, 1.0])]), Verdict::Held);
        assert_eq!(verdict(&[("easyllp", [1.0, 1.0, 1.0])]), Verdict::Open);
    }

    #[test]
    fn one_place_in_ten_may_be_behind() {
        let experiment = Experiment::named("quick-auto").unwrap().unwrap();
        let of_places = |n_behind: u32| {
            let at = |place: u32| {
                let other = if place < n_behind { [0.95; 3] } else { [0.8; 3] };
                let move_to = move |point| Point { x: f64::from(place), ..point };
                points(&[("auto", [0.9; 3]), ("naive", other)]).into_iter().map(move_to)
            };
            let points: Vec<Point> = (0..10).flat_map(at).collect();
            the_default_is_the_best(&[(&experiment, &points)]).verdict
        };
        assert_eq!([0, 1, 2].map(of_places), [Verdict::Held, Verdict::Held, Verdict::NotHeld]);
    }

    #[test]
    fn a_low_brier_score_is_the_better_one() {
        let experiment = Experiment::named("quick-auto").unwrap().unwrap();
        let mut points = points(&[("auto", [0.1, 0.2, 0.3]), ("easyllp", [0.2, 0.3, 0.4])]);
        for point in &mut points {
            point.measure = BRIER.into();
        }
        assert_eq!(the_default_is_the_best(&[(&experiment, &points)]).verdict, Verdict::Held);
    }
}
