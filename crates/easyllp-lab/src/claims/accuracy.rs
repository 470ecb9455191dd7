//! Claims about accuracies: which method is better.

use super::{Claim, Found, Results, Verdict, claim, name_of};
use crate::experiment::{Kind, MEASURES};
use crate::point::{Summary, lines};
use std::fmt::Write;

/// The best epoch by test labels: the paper's protocol, which verdicts use.
const BEST: &str = MEASURES[0];
/// The epoch chosen on validation bags.
const CHOSEN: &str = MEASURES[2];

/// Mean accuracies under one protocol: experiment, panel (a task, or all classes against the rest),
/// method, bag size.
struct Accuracies {
    experiment: String,
    dataset: &'static str,
    is_linear: bool,
    panel: String,
    /// Whether it is part of the mean over all classes, which is included, too.
    is_of_all: bool,
    methods: Vec<(String, Vec<(f64, Summary)>)>,
}

impl Accuracies {
    /// The accuracy of the epoch that a measure names.
    fn of(results: &Results, measure: &str) -> Vec<Self> {
        let mut all = Vec::new();
        for (experiment, points) in results {
            let Kind::Accuracy(accuracy) = &experiment.kind else { continue };
            // The paper's bags are fixed.
            if accuracy.rebag {
                continue;
            }
            for panel in accuracy.pictures(points) {
                let is_it = |task: &str| accuracy.shows(panel, task);
                all.push(Self {
                    experiment: experiment.name.clone(),
                    dataset: accuracy.dataset.title(),
                    is_linear: accuracy.model == "linear",
                    panel: panel.to_owned(),
                    is_of_all: accuracy.is_of_all(panel),
                    methods: lines(points, is_it, measure),
                });
            }
        }
        all
    }

    /// A place, as text.
    fn place(&self, size: f64) -> String {
        format!("{}, {}, k = {size}", self.experiment, self.panel)
    }

    fn line(&self, method: &str) -> &[(f64, Summary)] {
        self.methods.iter().find(|(name, _)| name == method).map_or(&[][..], |(_, line)| line)
    }

    /// Bag sizes at which both methods were run, with their means.
    fn both<'a>(&'a self, one: &str, other: &str) -> impl Iterator<Item = (f64, f64, f64)> + 'a {
        let other = self.line(other);
        self.line(one).iter().filter_map(move |(x, first)| {
            let (_, second) = other.iter().find(|(at, _)| at.to_bits() == x.to_bits())?;
            Some((*x, first.mean, second.mean))
        })
    }
}

pub(super) fn mean_map_is_close(results: &Results) -> Claim {
    let all = Accuracies::of(results, BEST);
    let differences: Vec<(f64, String)> = all
        .iter()
        .filter(|of| of.is_linear && !of.is_of_all)
        .flat_map(|of| of.both("easyllp", "mean-map").map(move |(k, one, other)| (one - other, of.place(k))))
        .collect();
    let found =
        differences.iter().max_by(|one, other| one.0.abs().total_cmp(&other.0.abs())).map(|(most, place)| {
            let mean = differences.iter().map(|(difference, _)| difference.abs()).sum::<f64>()
                / differences.len() as f64;
            Found {
                verdict: Verdict::of(mean <= 0.01),
                number: format!("mean difference {mean:.4}"),
                evidence: format!(
                    "accuracies differ by {mean:.4} in the mean over {} places, most ({most:+.4}) at {place}",
                    differences.len()
                ),
            }
        });
    claim(
        "For linear models EasyLLP performs very similarly to MeanMap.",
        "mean absolute difference of accuracies at most 0.01, in the best round by test labels",
        linear(results),
        found,
    )
}

pub(super) fn label_generation_is_below(results: &Results) -> Claim {
    let all = Accuracies::of(results, BEST);
    let against = |rival: &'static str| {
        let linear = all.iter().filter(|of| of.is_linear && !of.is_of_all);
        let places = linear.flat_map(|of| {
            of.both("label-generation", rival).map(move |(k, one, other)| (one < other, of.place(k)))
        });
        places.collect::<Vec<(bool, String)>>()
    };
    let rivals = [("EasyLLP", against("easyllp")), ("MeanMap", against("mean-map"))];
    let is_tried = rivals.iter().all(|(_, places)| !places.is_empty());
    let found = is_tried.then(|| {
        let places = || rivals.iter().flat_map(|(_, places)| places);
        let n_below = places().filter(|(below, _)| *below).count();
        Found {
            verdict: Verdict::of(n_below == places().count()),
            number: format!("below in {n_below} of {} comparisons", places().count()),
            evidence: rivals.map(|(name, places)| below(name, &places)).join("; "),
        }
    });
    claim(
        "Label generation consistently underperforms MeanMap and EasyLLP (linear models).",
        "below both in the mean at every size, in the best round by test labels",
        linear(results),
        found,
    )
}

/// The first experiment on linear models.
fn linear(results: &Results) -> Option<String> {
    name_of(results, |kind| matches!(kind, Kind::Accuracy(accuracy) if accuracy.model == "linear"))
}

/// The number of places where something is below a rival, and the places where it is not.
fn below(rival: &str, places: &[(bool, String)]) -> String {
    let above: Vec<&str> =
        places.iter().filter(|(below, _)| !below).map(|(_, place)| place.as_str()).collect();
    let listed = if above.is_empty() { String::new() } else { format!(", not at {}", shortened(&above)) };
    format!("below {rival} at {} of {} places{listed}", places.len() - above.len(), places.len())
}

fn shortened(names: &[&str]) -> String {
    const LISTED: usize = 6;
    let listed = names[..names.len().min(LISTED)].join("; ");
    if names.len() > LISTED { format!("{listed} and {} more", names.len() - LISTED) } else { listed }
}

/// The gain of a network over a linear model at one bag size.
struct Gain {
    dataset: &'static str,
    value: f64,
    is_ahead: bool,
    place: String,
}

/// All places where both were trained with EasyLLP on the same task.
fn gains(all: &[Accuracies]) -> Vec<Gain> {
    let mut gains = Vec::new();
    for network in all.iter().filter(|of| !of.is_linear) {
        let linear =
            all.iter().find(|of| of.is_linear && of.dataset == network.dataset && of.panel == network.panel);
        let Some(linear) = linear else { continue };
        for (k, found) in network.line("easyllp") {
            let same = linear.line("easyllp").iter().find(|(at, _)| at.to_bits() == k.to_bits());
            gains.extend(same.map(|(_, other)| Gain {
                dataset: network.dataset,
                value: found.mean - other.mean,
                is_ahead: is_ahead(found, other),
                place: network.place(*k),
            }));
        }
    }
    gains
}

/// The number of places of each data set where networks are not worse.
fn by_dataset(gains: &[Gain]) -> String {
    let mut datasets: Vec<&str> = Vec::new();
    for gain in gains {
        if !datasets.contains(&gain.dataset) {
            datasets.push(gain.dataset);
        }
    }
    let of = |dataset: &str| {
        let own = || gains.iter().filter(|gain| gain.dataset == dataset);
        format!("{} of {} places on {dataset}", own().filter(|gain| gain.is_ahead).count(), own().count())
    };
    datasets.into_iter().map(of).collect::<Vec<_>>().join(" and ")
}

pub(super) fn networks_are_ahead(results: &Results) -> Claim {
    let gains_in = |measure: &str| gains(&Accuracies::of(results, measure));
    let (gains, chosen) = (gains_in(BEST), gains_in(CHOSEN));
    let found = gains.iter().min_by(|one, other| one.value.total_cmp(&other.value)).map(|least| {
        let mean = gains.iter().map(|gain| gain.value).sum::<f64>() / gains.len() as f64;
        let mut evidence = format!(
            "not behind at {}, and {mean:+.4} in the mean over them; least ({:+.4}) at {}",
            by_dataset(&gains),
            least.value,
            least.place
        );
        if !chosen.is_empty() {
            let _ = write!(
                evidence,
                "; in the round that held-out bags choose, not behind at {}",
                by_dataset(&chosen)
            );
        }
        Found {
            verdict: Verdict::of(gains.iter().all(|gain| gain.is_ahead) && mean > 0.0),
            number: format!("mean gain {mean:+.4}"),
            evidence,
        }
    });
    claim(
        "The main advantage is seen with neural networks: under EasyLLP they are ahead of linear models.",
        "not behind by more than two standard errors at any size that both were tried at, and ahead in the mean, in the best round by test labels; \
         where one of them has a single replica, ahead",
        name_of(results, |kind| matches!(kind, Kind::Accuracy(accuracy) if accuracy.model != "linear")),
        found,
    )
}

/// Whether one is not significantly worse than another. With a single replica the noise is unknown:
/// it must be better.
fn is_ahead(one: &Summary, other: &Summary) -> bool {
    let gain = one.mean - other.mean;
    if one.n < 2 || other.n < 2 {
        return gain > 0.0;
    }
    gain >= -2.0 * one.standard_error().hypot(other.standard_error())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::claims;
    use crate::experiment::Experiment;
    use crate::point::Point;

    fn accuracy(name: &str, model: &str, task: &str) -> Experiment {
        let text = format!(
            "experiment = \"accuracy\"\ndataset = \"optdigits\"\ntasks = [\"{task}\"]\nmodel = \"{model}\"\n\
             methods = [\"easyllp\"]\nbag-sizes = [2]\nreplicas = 1\nepochs = 1"
        );
        Experiment::parse(name, &text).unwrap()
    }

    fn point(panel: &str, series: &str, x: f64, value: f64) -> Point {
        let (panel, series, measure) = (panel.into(), series.into(), MEASURES[0].into());
        Point { panel, series, x, replica: 1, measure, value }
    }

    fn best(series: &str, k: f64, value: f64) -> Point {
        point("even vs odd", series, k, value)
    }

    #[test]
    fn verdicts_follow_the_numbers() {
        let (linear, network) =
            (accuracy("l", "linear", "even-vs-odd"), accuracy("n", "mlp:4", "even-vs-odd"));
        let of_linear = [
            best("easyllp", 2.0, 0.9),
            best("easyllp", 8.0, 0.8),
            best("mean-map", 2.0, 0.905),
            best("mean-map", 8.0, 0.8),
            best("label-generation", 2.0, 0.91),
            best("label-generation", 8.0, 0.7),
        ];
        let of_network = [best("easyllp", 2.0, 0.95), best("easyllp", 8.0, 0.85)];
        let found = claims(&[(&linear, &of_linear), (&network, &of_network)]);
        let verdicts: Vec<Verdict> = found.iter().take(3).map(|claim| claim.verdict).collect();
        assert_eq!(verdicts, [Verdict::Held, Verdict::NotHeld, Verdict::Held], "{found:?}");
        assert!(found[1].evidence.contains("1 of 2 places, not at l, even vs odd, k = 2"), "{found:?}");
        assert!(found[0].evidence.ends_with("at l, even vs odd, k = 2"), "{found:?}");
        // A single class is held against that class, not against the mean of all.
        let all = accuracy("l", "linear", "one-vs-all");
        let of_class = |value: f64| [point("3 vs rest", "easyllp", 2.0, value)];
        let (of_all, of_one) = (of_class(0.9), of_class(0.8));
        assert_eq!(claims(&[(&all, &of_all), (&network, &of_one)])[2].verdict, Verdict::Open);
        // Where each class is shown beside the mean, it can be; claims about linear models use the mean alone.
        let mut each = all.clone();
        if let Kind::Accuracy(accuracy) = &mut each.kind {
            accuracy.each_class = true;
        }
        let of_classes = [of_class(0.9), [point("3 vs rest", "mean-map", 2.0, 0.9)]].concat();
        let found = claims(&[(&each, &of_classes), (&accuracy("n", "mlp:4", "3"), &of_one)]);
        assert_eq!((found[0].verdict, found[2].verdict), (Verdict::Held, Verdict::NotHeld));
        assert!(found[0].evidence.contains("over 1 places") && found[2].evidence.contains("of 1 places"));
        let behind = [best("easyllp", 2.0, 0.95), best("easyllp", 8.0, 0.75)];
        assert_eq!(claims(&[(&linear, &of_linear), (&network, &behind)])[2].verdict, Verdict::NotHeld);
    }

    #[test]
    fn a_gap_within_chance_is_none_but_all_together_are_ahead() {
        let (linear, network) =
            (accuracy("l", "linear", "even-vs-odd"), accuracy("n", "mlp:4", "even-vs-odd"));
        // Two replicas, 0.01 to either side: a standard error of 0.01, and one of 0.0141 of a difference.
        let twice = |k: f64, mean: f64| {
            let replica = |replica: u32, value: f64| Point { replica, ..best("easyllp", k, value) };
            [replica(1, mean - 0.01), replica(2, mean + 0.01)]
        };
        let of_linear = [twice(2.0, 0.8), twice(8.0, 0.8)].concat();
        let judged = |at_two: f64, at_eight: f64| {
            let of_network = [twice(2.0, at_two), twice(8.0, at_eight)].concat();
            networks_are_ahead(&[(&linear, &of_linear), (&network, &of_network)])
        };
        let found = judged(0.9, 0.78);
        assert_eq!(found.verdict, Verdict::Held);
        let told = "not behind at 2 of 2 places on Optdigits, and +0.0400 in the mean over them; least (-0.0200) at n, even vs odd, k = 8";
        assert_eq!(found.evidence, told);
        assert_eq!(judged(0.9, 0.77).verdict, Verdict::NotHeld);
        // Behind by a little everywhere is not ahead.
        assert_eq!(judged(0.79, 0.79).verdict, Verdict::NotHeld);
        // One replica of the network: what chance does is not known.
        let of_one = [best("easyllp", 2.0, 0.9), best("easyllp", 8.0, 0.799)];
        let claim = networks_are_ahead(&[(&linear, &of_linear), (&network, &of_one)]);
        assert_eq!(claim.verdict, Verdict::NotHeld);
    }

    /// In the round that held-out bags choose the network is behind at one of two places, which changes no verdict.
    #[test]
    fn what_the_chosen_round_says_is_told_beside_the_verdict() {
        let (linear, network) =
            (accuracy("l", "linear", "even-vs-odd"), accuracy("n", "mlp:4", "even-vs-odd"));
        let of = |best_of: f64, chosen: [f64; 2]| -> Vec<Point> {
            let places = [2.0, 8.0].into_iter().zip(chosen);
            let both = |(k, chosen): (f64, f64)| {
                [best("easyllp", k, best_of), Point { measure: CHOSEN.into(), ..best("easyllp", k, chosen) }]
            };
            places.flat_map(both).collect()
        };
        let (of_linear, of_network) = (of(0.8, [0.7, 0.7]), of(0.9, [0.8, 0.6]));
        let found = networks_are_ahead(&[(&linear, &of_linear), (&network, &of_network)]);
        assert_eq!(found.verdict, Verdict::Held);
        let told = "; in the round that held-out bags choose, not behind at 1 of 2 places on Optdigits";
        assert!(
            found.evidence.starts_with("not behind at 2 of 2") && found.evidence.ends_with(told),
            "{found:?}"
        );
    }

    #[test]
    fn label_generation_is_held_against_both() {
        let linear = accuracy("l", "linear", "even-vs-odd");
        let judged = |points: &[Point]| label_generation_is_below(&[(&linear, points)]);
        let (easyllp, generated) = (best("easyllp", 2.0, 0.9), best("label-generation", 2.0, 0.85));
        let verdict = |mean_map: f64| {
            judged(&[easyllp.clone(), generated.clone(), best("mean-map", 2.0, mean_map)]).verdict
        };
        assert_eq!((verdict(0.9), verdict(0.8)), (Verdict::Held, Verdict::NotHeld));
        // One of the two alone cannot tell.
        assert_eq!(judged(&[easyllp.clone(), generated.clone()]).verdict, Verdict::Open);
    }

    #[test]
    fn bags_that_are_dealt_anew_are_none_of_the_papers() {
        let linear = accuracy("l", "linear", "even-vs-odd");
        let mut network = accuracy("n", "mlp:4", "even-vs-odd");
        network.set_rebag();
        let (behind, ahead) = ([best("easyllp", 2.0, 0.8)], [best("easyllp", 2.0, 0.9)]);
        assert_eq!(networks_are_ahead(&[(&linear, &behind), (&network, &ahead)]).verdict, Verdict::Open);
    }
}
