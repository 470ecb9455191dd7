//! The claim that the loss estimated from bags tracks the true loss.

use super::{Claim, Found, Results, Verdict, claim, name_of, of_kind};
use crate::experiment::Kind;
use crate::point::{Point, Summary};
use std::collections::BTreeMap;

/// Epochs that are left out: scores are nearly 0, so any estimate is right.
const FIRST_ROUNDS: f64 = 5.0;
/// The allowed deviation of the mean, in standard errors.
const ERRORS: f64 = 3.0;
/// The allowed deviation per epoch, as a share of the range of the true loss in a run.
const CLOSE: f64 = 0.25;

pub(super) fn the_estimate_tracks(results: &Results) -> Claim {
    claim(
        "The loss that is estimated from bags closely tracks the true training loss, with larger variance.",
        "after five rounds the mean difference over all rounds of all runs, each of which has bags of its own, is within 3 standard errors of \
         none, the absolute difference is at most a quarter of the range of the true loss in the mean, and runs differ more in the \
         estimate than in the true loss",
        name_of(results, |kind| matches!(kind, Kind::Tracking(_))),
        of_kind(results, |kind| matches!(kind, Kind::Tracking(_))).and_then(found_in),
    )
}

/// An epoch of a run.
struct Round {
    number: f64,
    truth: f64,
    estimate: f64,
}

impl Round {
    fn difference(&self) -> f64 {
        self.estimate - self.truth
    }
}

/// Runs, epoch by epoch, as far as both losses are known.
fn runs(points: &[Point]) -> Vec<Vec<Round>> {
    let mut found: BTreeMap<u32, BTreeMap<u64, [Option<f64>; 2]>> = BTreeMap::new();
    for point in points {
        let Some(place) = ["true", "from bags"].iter().position(|series| point.series == *series) else {
            continue;
        };
        // Numbers from 0 on are in the order of their bits.
        let round = found.entry(point.replica).or_default().entry(point.x.to_bits()).or_default();
        round[place] = Some(point.value);
    }
    let round = |(number, losses): (&u64, &[Option<f64>; 2])| {
        Some(Round { number: f64::from_bits(*number), truth: losses[0]?, estimate: losses[1]? })
    };
    found.values().map(|rounds| rounds.iter().filter_map(round).collect()).collect()
}

fn found_in(points: &[Point]) -> Option<Found> {
    let runs = runs(points);
    let n_rounds = runs.iter().map(Vec::len).max()?;
    let distances: Vec<f64> = runs.iter().filter_map(|run| distance(run)).collect();
    if distances.len() < 2 {
        let evidence = "a single run is not enough: run two or more replicas".into();
        return Some(Found { verdict: Verdict::Open, number: String::new(), evidence });
    }
    let distance = Summary::of(&distances)?.mean;
    // The bags of a round are dealt for its estimate alone: whatever the models are, rounds are off independently of each other. So chance is
    // known from hundreds of rounds, not from a few runs.
    let of_rounds: Vec<f64> = runs.iter().flat_map(|run| settled(run)).map(Round::difference).collect();
    let off = Summary::of(&of_rounds)?;
    let of_truth = spread(&runs, |round| round.truth)?;
    let of_estimate = spread(&runs, |round| round.estimate)?;
    let of_mean = distance_of_mean(&runs)?;
    let is_right = off.mean.abs() <= ERRORS * off.standard_error();
    Some(Found {
        verdict: Verdict::of(is_right && distance <= CLOSE && of_estimate > of_truth),
        number: format!("difference {distance:.2} of the range"),
        evidence: format!(
            "over {} runs of {n_rounds} rounds the estimate is {:+.4} off in the mean ({:.1} standard errors), and by {distance:.2} of the range of \
             the true loss in absolute value ({of_mean:.2} in the mean of these runs; the paper shows the mean of 30); runs differ by {of_truth:.4} \
             in the true loss and by {of_estimate:.4} in the estimate",
            distances.len(),
            off.mean,
            off.mean.abs() / off.standard_error(),
        ),
    })
}

fn settled(run: &[Round]) -> impl Iterator<Item = &Round> {
    run.iter().filter(|round| round.number > FIRST_ROUNDS)
}

/// The deviation of a run's estimate per epoch, as a share of the range of its true loss.
fn distance(run: &[Round]) -> Option<f64> {
    let absolute: Vec<f64> = settled(run).map(|round| round.difference().abs()).collect();
    let truth = || run.iter().map(|round| round.truth);
    let range = truth().reduce(f64::max)? - truth().reduce(f64::min)?;
    Some(Summary::of(&absolute)?.mean / range)
}

/// The same for the mean of runs.
fn distance_of_mean(runs: &[Vec<Round>]) -> Option<f64> {
    let mut rounds: BTreeMap<u64, Vec<&Round>> = BTreeMap::new();
    for round in runs.iter().flatten() {
        rounds.entry(round.number.to_bits()).or_default().push(round);
    }
    let mean = |of: &[&Round], loss: fn(&Round) -> f64| {
        of.iter().map(|round| loss(round)).sum::<f64>() / of.len() as f64
    };
    let of_number = |of: &Vec<&Round>| Round {
        number: of[0].number,
        truth: mean(of, |round| round.truth),
        estimate: mean(of, |round| round.estimate),
    };
    distance(&rounds.values().map(of_number).collect::<Vec<_>>())
}

/// The differences between runs: the root of their mean variance over epochs.
fn spread(runs: &[Vec<Round>], loss: impl Fn(&Round) -> f64) -> Option<f64> {
    let mut rounds: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for round in runs.iter().flat_map(|run| settled(run)) {
        rounds.entry(round.number.to_bits()).or_default().push(loss(round));
    }
    let of_round = |losses: &Vec<f64>| Summary::of(losses).filter(|found| found.n > 1);
    let variances: Vec<f64> =
        rounds.values().filter_map(of_round).map(|found| found.deviation.powi(2)).collect();
    Some(Summary::of(&variances)?.mean.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;

    fn verdict(replicas: u32, truth_of: impl Fn(u32) -> f64, off: impl Fn(u32, u32) -> f64) -> Verdict {
        found(replicas, truth_of, off).verdict
    }

    /// The claim for runs of 40 epochs whose true loss falls from 1 towards 0, and whose estimates deviate from it.
    fn found(replicas: u32, truth_of: impl Fn(u32) -> f64, off: impl Fn(u32, u32) -> f64) -> Claim {
        let text = "experiment = \"tracking\"\ndataset = \"optdigits\"\ntask = \"even-vs-odd\"\nmodel = \"linear\"\n\
                    bag-size = 2\nepochs = 40\nreplicas = 1";
        let experiment = Experiment::parse("t", text).unwrap();
        let mut points = Vec::new();
        for (replica, round) in (1..=replicas).flat_map(|replica| (1..=40).map(move |round| (replica, round)))
        {
            let truth = 1.0 / f64::from(round) + truth_of(replica);
            for (series, value) in [("true", truth), ("from bags", truth + off(replica, round))] {
                points.push(Point {
                    panel: "t".into(),
                    series: series.into(),
                    x: f64::from(round),
                    replica,
                    measure: "training loss".into(),
                    value,
                });
            }
        }
        the_estimate_tracks(&[(&experiment, &points)])
    }

    /// Up and down from round to round, and not quite the same in every run.
    fn noise(size: f64) -> impl Fn(u32, u32) -> f64 {
        move |replica, round| {
            let sign = if (replica + round) % 2 == 0 { 1.0 } else { -1.0 };
            size * sign * (1.0 + 0.1 * f64::from(replica * round % 7))
        }
    }

    fn same(_: u32) -> f64 {
        0.0
    }

    #[test]
    fn an_estimate_that_is_close_and_right_in_the_mean_tracks() {
        assert_eq!(verdict(4, same, noise(0.1)), Verdict::Held);
    }

    /// Runs that are off to either side by as much: by a fifth of the range of 1 − 1/40 each, and not at all in the mean.
    #[test]
    fn what_cancels_over_runs_is_told() {
        let off = |replica: u32, _: u32| if replica.is_multiple_of(2) { 0.195 } else { -0.195 };
        let told = found(4, same, off).evidence;
        assert!(told.contains("by 0.20 of the range of the true loss in absolute value (0.00 in"), "{told}");
    }

    #[test]
    fn a_single_run_tells_nothing() {
        assert_eq!(verdict(1, same, noise(0.1)), Verdict::Open);
        assert_eq!(verdict(2, same, noise(0.1)), Verdict::Held);
    }

    /// Of 140 rounds with a noise of about 0.13 the mean has a standard error of 0.011.
    #[test]
    fn a_small_difference_in_every_round_is_none_of_chance() {
        let off_by = |more: f64| verdict(4, same, move |replica, round| noise(0.1)(replica, round) + more);
        assert_eq!(off_by(0.02), Verdict::Held);
        assert_eq!(off_by(0.05), Verdict::NotHeld);
        assert_eq!(off_by(-0.05), Verdict::NotHeld);
    }

    /// Nothing is off in the mean, but from round to round by a third of the range.
    #[test]
    fn differences_that_cancel_over_rounds_are_seen() {
        assert_eq!(verdict(4, same, noise(0.3)), Verdict::NotHeld);
    }

    #[test]
    fn the_estimate_must_differ_more_from_run_to_run() {
        // Runs are far apart, and so are their estimates, by a little less.
        let truth = |replica: u32| if replica.is_multiple_of(2) { 0.5 } else { -0.5 };
        let nearer = move |replica: u32, _: u32| -0.1 * truth(replica);
        assert_eq!(verdict(4, truth, nearer), Verdict::NotHeld);
        let further = move |replica: u32, _: u32| 0.1 * truth(replica);
        assert_eq!(verdict(4, truth, further), Verdict::Held);
    }

    #[test]
    fn the_first_rounds_do_not_count() {
        let at_first = |replica: u32, round: u32| if round <= 5 { 9.0 } else { noise(0.1)(replica, round) };
        assert_eq!(verdict(4, same, at_first), Verdict::Held);
    }
}
