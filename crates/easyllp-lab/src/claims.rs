//! REPORT: what the paper claims, and what was found: held or not, by rules that were laid down before.

use crate::experiment::{Experiment, Kind, MEASURES};
use crate::point::{Point, Summary, lines};

/// Whether a claim holds here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It does.
    Held,
    /// It does not.
    NotHeld,
    /// There is nothing to tell it by.
    Open,
}

/// A claim, with what was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// What the paper says.
    pub text: &'static str,
    /// The rule by which it is held to hold.
    pub rule: &'static str,
    /// Whether it does.
    pub verdict: Verdict,
    /// What was found, in a sentence.
    pub evidence: String,
}

/// Results by experiment.
pub type Results<'a> = [(&'a Experiment, &'a [Point])];

/// All claims that the experiments look at.
pub fn claims(results: &Results) -> Vec<Claim> {
    vec![
        mean_map_is_close(results),
        label_generation_is_below(results),
        networks_are_ahead(results),
        variances_grow_as_they_should(results),
        the_estimate_tracks(results),
        one_pass_has_its_slopes(results),
        minimisers_pay_a_factor(results),
    ]
}

fn claim(text: &'static str, rule: &'static str, found: Option<(bool, String)>) -> Claim {
    let (verdict, evidence) = match found {
        None => (Verdict::Open, "nothing was run that could tell".into()),
        Some((true, evidence)) => (Verdict::Held, evidence),
        Some((false, evidence)) => (Verdict::NotHeld, evidence),
    };
    Claim { text, rule, verdict, evidence }
}

/// Mean accuracies of the best round: experiment, picture (a task, or all classes against the rest), method, size.
struct Accuracies {
    experiment: String,
    dataset: &'static str,
    is_linear: bool,
    panel: String,
    methods: Vec<(String, Vec<(f64, Summary)>)>,
}

impl Accuracies {
    fn of(results: &Results) -> Vec<Self> {
        let mut all = Vec::new();
        for (experiment, points) in results {
            let Kind::Accuracy(accuracy) = &experiment.kind else { continue };
            for panel in accuracy.pictures(points) {
                let is_it = |task: &str| accuracy.picture(task) == panel;
                all.push(Self {
                    experiment: experiment.name.clone(),
                    dataset: accuracy.dataset.title(),
                    is_linear: accuracy.model == "linear",
                    panel: panel.to_owned(),
                    methods: lines(points, is_it, MEASURES[0]),
                });
            }
        }
        all
    }

    /// Sizes at which both methods were tried, with their means.
    fn both<'a>(&'a self, one: &str, other: &str) -> impl Iterator<Item = (f64, f64, f64)> + 'a {
        let of = |method: &str| {
            self.methods.iter().find(|(name, _)| name == method).map_or(&[][..], |(_, line)| line)
        };
        let other = of(other);
        of(one).iter().filter_map(move |(x, first)| {
            let (_, second) = other.iter().find(|(at, _)| at.to_bits() == x.to_bits())?;
            Some((*x, first.mean, second.mean))
        })
    }
}

fn mean_map_is_close(results: &Results) -> Claim {
    let all = Accuracies::of(results);
    let differences: Vec<(f64, String)> = all
        .iter()
        .filter(|of| of.is_linear)
        .flat_map(|of| {
            of.both("easyllp", "mean-map")
                .map(move |(k, one, other)| (one - other, format!("{}, {}, k = {k}", of.dataset, of.panel)))
        })
        .collect();
    let found =
        differences.iter().max_by(|one, other| one.0.abs().total_cmp(&other.0.abs())).map(|(most, place)| {
            let mean = differences.iter().map(|(difference, _)| difference.abs()).sum::<f64>()
                / differences.len() as f64;
            (
                mean <= 0.01,
                format!(
                    "accuracies differ by {mean:.4} in the mean over {} places, most ({most:+.4}) at {place}",
                    differences.len()
                ),
            )
        });
    claim(
        "For linear models EasyLLP performs very similarly to MeanMap.",
        "mean absolute difference of accuracies at most 0.01",
        found,
    )
}

fn label_generation_is_below(results: &Results) -> Claim {
    let all = Accuracies::of(results);
    let places: Vec<(bool, String)> = all
        .iter()
        .filter(|of| of.is_linear)
        .flat_map(|of| {
            of.both("label-generation", "easyllp")
                .map(move |(k, one, other)| (one < other, format!("{}, {}, k = {k}", of.dataset, of.panel)))
        })
        .collect();
    let found = (!places.is_empty()).then(|| {
        let above: Vec<&str> =
            places.iter().filter(|(below, _)| !below).map(|(_, place)| place.as_str()).collect();
        let listed =
            if above.is_empty() { String::new() } else { format!("; not below at {}", shortened(&above)) };
        (
            above.is_empty(),
            format!("below EasyLLP at {} of {} places{listed}", places.len() - above.len(), places.len()),
        )
    });
    claim(
        "Label generation consistently underperforms MeanMap and EasyLLP (linear models).",
        "below EasyLLP in the mean at every size",
        found,
    )
}

fn shortened(names: &[&str]) -> String {
    const LISTED: usize = 6;
    let listed = names[..names.len().min(LISTED)].join("; ");
    if names.len() > LISTED { format!("{listed} and {} more", names.len() - LISTED) } else { listed }
}

fn networks_are_ahead(results: &Results) -> Claim {
    let all = Accuracies::of(results);
    let mut gains = Vec::new();
    for network in all.iter().filter(|of| !of.is_linear) {
        let linear =
            all.iter().find(|of| of.is_linear && of.dataset == network.dataset && of.panel == network.panel);
        let Some(linear) = linear else { continue };
        let line = |of: &Accuracies| {
            of.methods
                .iter()
                .find(|(name, _)| name == "easyllp")
                .map(|(_, line)| line.clone())
                .unwrap_or_default()
        };
        let of_linear = line(linear);
        for (k, found) in line(network) {
            if let Some((_, other)) = of_linear.iter().find(|(at, _)| at.to_bits() == k.to_bits()) {
                gains.push((
                    found.mean - other.mean,
                    format!("{}, {}, k = {k}", network.experiment, network.panel),
                ));
            }
        }
    }
    let found = gains.iter().min_by(|one, other| one.0.total_cmp(&other.0)).map(|(least, place)| {
        let ahead = gains.iter().filter(|(gain, _)| *gain > 0.0).count();
        (
            ahead == gains.len(),
            format!("ahead at {ahead} of {} places; least ({least:+.4}) at {place}", gains.len()),
        )
    });
    claim(
        "The main advantage is seen with neural networks: under EasyLLP they are ahead of linear models.",
        "ahead in the mean at every size that both were tried at",
        found,
    )
}

/// The slope of log y against log x, from the middle of the line to its end, where laws for large x are to be seen.
fn slope(line: &[(f64, Summary)]) -> Option<f64> {
    let (first, last) = (line.get(line.len().saturating_sub(1) / 2)?, line.last()?);
    let of = |one: f64, other: f64| (other / one).ln();
    let across = of(first.0, last.0);
    (across.abs() > 1e-9).then(|| of(first.1.mean, last.1.mean) / across)
}

fn of_kind<'a>(results: &'a Results, is_it: impl Fn(&Kind) -> bool) -> Option<&'a [Point]> {
    results
        .iter()
        .find(|(experiment, points)| is_it(&experiment.kind) && !points.is_empty())
        .map(|(_, points)| *points)
}

fn slope_of(points: &[Point], panel: &str, series: &str, measure: &str) -> Option<f64> {
    let found = lines(points, |of| of == panel, measure);
    slope(&found.iter().find(|(name, _)| name == series)?.1)
}

fn variances_grow_as_they_should(results: &Results) -> Claim {
    let found = of_kind(results, |kind| matches!(kind, Kind::Variance(_))).and_then(|points| {
        let of = |series: &str| slope_of(points, "by size", series, "variance");
        let (surrogate, soft, centred) = (of("surrogate one")?, of("derandomised avg")?, of("centred")?);
        let mut worst: f64 = 0.0;
        for panel in ["by size", "by share"] {
            let of = |measure: &str| lines(points, |of| of == panel, measure);
            for (((_, found), (_, errors)), (_, theory)) in of("variance").iter().zip(&of("standard error")).zip(&of("closed form")) {
                for (((_, found), (_, error)), (_, theory)) in found.iter().zip(errors).zip(theory) {
                    worst = worst.max(((found.mean - theory.mean) / error.mean.max(1e-12)).abs());
                }
            }
        }
        let holds = (surrogate - 2.0).abs() < 0.15 && (soft - 1.0).abs() < 0.15;
        Some((holds, format!(
            "variance grows like k^{surrogate:.2} with one surrogate label and like k^{soft:.2} derandomised (centred: k^{centred:.2}); every point is \
             within {worst:.1} standard errors of its closed form"
        )))
    });
    claim(
        "The variance grows like k² with surrogate labels, and like k without.",
        "slopes within 0.15 of 2 and of 1, from the middle size on",
        found,
    )
}

fn the_estimate_tracks(results: &Results) -> Claim {
    let found = of_kind(results, |kind| matches!(kind, Kind::Tracking(_))).and_then(|points| {
        let found = lines(points, |_| true, "training loss");
        let of = |series: &str| found.iter().find(|(name, _)| name == series).map(|(_, line)| line);
        let (truth, estimate) = (of("true")?, of("from bags")?);
        let off: Vec<f64> = truth.iter().zip(estimate).map(|((_, truth), (_, estimate))| estimate.mean - truth.mean).collect();
        let mean = Summary::of(&off)?;
        let deviation = |line: &[(f64, Summary)]| line.iter().map(|(_, found)| found.deviation).sum::<f64>() / line.len() as f64;
        let (of_truth, of_estimate) = (deviation(truth), deviation(estimate));
        Some((mean.mean.abs() < of_estimate, format!(
            "over {} rounds the estimate is {:+.4} off in the mean; runs differ by {of_truth:.4} in the true loss and by {of_estimate:.4} in the estimate",
            off.len(),
            mean.mean
        )))
    });
    claim(
        "The loss that is estimated from bags closely tracks the true training loss, with larger variance.",
        "off by less in the mean than runs differ",
        found,
    )
}

fn one_pass_has_its_slopes(results: &Results) -> Claim {
    let found = of_kind(results, |kind| matches!(kind, Kind::Sgd(_))).and_then(|points| {
        let of = |panel: &str, series: &str| slope_of(points, panel, series, "excess risk");
        let (by_bags, by_size, drawn) = (of("by bags", "soft")?, of("by size", "soft")?, of("by size", "surrogate")?);
        let holds = (by_bags + 0.5).abs() < 0.15 && (by_size - 0.5).abs() < 0.15;
        Some((holds, format!("with soft labels excess risk goes like n^{by_bags:.2} and k^{by_size:.2}; with surrogate labels like k^{drawn:.2}")))
    });
    claim(
        "One pass of SGD over bags has an excess risk of the order of √(k/n).",
        "slopes within 0.15 of −½ in n and of ½ in k",
        found,
    )
}

fn minimisers_pay_a_factor(results: &Results) -> Claim {
    let found = of_kind(results, |kind| matches!(kind, Kind::Erm(_))).and_then(|points| {
        let of = |panel: &str, series: &str| slope_of(points, panel, series, "excess risk");
        let (paper, centred, by_bags) = (of("by size", "paper")?, of("by size", "centred")?, of("by bags", "centred")?);
        Some(((centred - 1.0).abs() < 0.2, format!(
            "with as many rows in all, excess risk grows like k^{centred:.2} centred and like k^{paper:.2} in the paper's form, whose intercept carries the \
             error of the whole bag; with more bags it falls like n^{by_bags:.2}"
        )))
    });
    claim(
        "Empirical risk minimisation from bags is worse than from labels by a factor of k in excess risk (√k in the deviation).",
        "slope within 0.2 of 1 in k at a fixed number of rows, centred",
        found,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accuracy(name: &str, model: &str, task: &str) -> Experiment {
        let text = format!(
            "experiment = \"accuracy\"\ndataset = \"optdigits\"\ntasks = [\"{task}\"]\nmodel = \"{model}\"\n\
             methods = [\"easyllp\"]\nbag-sizes = [2]\nreplicas = 1\nepochs = 1"
        );
        Experiment::parse(name, &text).unwrap()
    }

    fn point(panel: &str, series: &str, x: f64, measure: &str, value: f64) -> Point {
        Point { panel: panel.into(), series: series.into(), x, replica: 1, measure: measure.into(), value }
    }

    #[test]
    fn nothing_is_claimed_without_results() {
        assert!(claims(&[]).iter().all(|claim| claim.verdict == Verdict::Open));
    }

    #[test]
    fn verdicts_follow_the_numbers() {
        let (linear, network) =
            (accuracy("l", "linear", "even-vs-odd"), accuracy("n", "mlp:4", "even-vs-odd"));
        let best = |series: &str, k: f64, value: f64| point("even vs odd", series, k, MEASURES[0], value);
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
        assert!(found[1].evidence.contains("1 of 2") && found[1].evidence.contains("k = 2"));
        // A single class is held against that class, not against the mean of all.
        let all = accuracy("l", "linear", "one-vs-all");
        let of_class = |value: f64| [point("3 vs rest", "easyllp", 2.0, MEASURES[0], value)];
        let (of_all, of_one) = (of_class(0.9), of_class(0.8));
        assert_eq!(claims(&[(&all, &of_all), (&network, &of_one)])[2].verdict, Verdict::Open);
        let behind = [best("easyllp", 2.0, 0.95), best("easyllp", 8.0, 0.75)];
        assert_eq!(claims(&[(&linear, &of_linear), (&network, &behind)])[2].verdict, Verdict::NotHeld);
    }

    #[test]
    fn slopes_are_those_of_powers() {
        let line: Vec<(f64, Summary)> = [1.0, 2.0, 4.0, 8.0, 16.0]
            .map(|x: f64| (x, Summary { mean: 3.0 * x.powf(1.5), deviation: 0.0, n: 1 }))
            .to_vec();
        assert!((slope(&line).unwrap() - 1.5).abs() < 1e-12);
        assert_eq!(slope(&line[..1]), None);
    }
}
