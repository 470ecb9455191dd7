//! REPORT: the HTML page: claims, then a section per experiment.

use crate::claims::{Claim, Verdict, claims};
use crate::experiment::{Experiment, Kind};
use crate::figures::{figures, title};
use crate::point::Point;
use crate::protocol::{about, caption, protocol};
use crate::record::Record;
use easyllp_report::{document, escaped};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// An experiment with its results.
pub(crate) struct Shown {
    pub(crate) experiment: Experiment,
    pub(crate) points: Vec<Point>,
    pub(crate) record: Option<Record>,
    pub(crate) seconds: f64,
}

/// The page as one HTML document.
pub(crate) fn page(results: &[Shown]) -> String {
    const TITLE: &str = "Easy learning from label proportions: the experiments";
    let mut body = format!("<header><h1>{TITLE}</h1></header>\n");
    body.push_str(&checklist(&claims(&judged(results))));
    for shown in results {
        body.push_str(&section(shown));
    }
    document(TITLE, &body)
}

/// The results that verdicts use: the paper's experiments, or the quick ones if there are
/// none. A user's own experiments do not count.
fn judged(results: &[Shown]) -> Vec<(&Experiment, &[Point])> {
    let of = |quick: bool| -> Vec<(&Experiment, &[Point])> {
        let is_it = |shown: &&Shown| !shown.points.is_empty() && shown.experiment.comes_along(quick);
        results.iter().filter(is_it).map(|shown| (&shown.experiment, &shown.points[..])).collect()
    };
    Some(of(false)).filter(|found| !found.is_empty()).unwrap_or_else(|| of(true))
}

fn section(shown: &Shown) -> String {
    let Shown { experiment, points, .. } = shown;
    let name = escaped(&experiment.name);
    let mut html = format!(
        "<section class=\"experiment\" id=\"{name}\"><h2>{} ({name})</h2>\n",
        escaped(&title(experiment))
    );
    if let Some(caption) = caption(experiment) {
        let _ = writeln!(html, "<p class=\"caption\">The paper: “{}”</p>", escaped(caption));
    }
    let _ = writeln!(
        html,
        "<p>{}</p>\n<details><summary>how it was made</summary><p class=\"note\">{}<br>\n\
         <a href=\"{name}.csv\">{name}.csv</a>: {} numbers{}<br>\n{}</p></details>\n<div class=\"charts\">",
        escaped(&about(&experiment.kind)),
        escaped(&protocol(&experiment.kind)),
        points.len(),
        escaped(&repeated(&experiment.kind, points)),
        escaped(&origin(shown))
    );
    for figure in figures(experiment, points) {
        let _ = writeln!(
            html,
            "<div>{}<details><summary>numbers</summary>{}</details></div>",
            figure.chart.figure(),
            figure.table()
        );
    }
    html.push_str("</div></section>\n");
    html
}

/// How the results were made, if known.
fn origin(shown: &Shown) -> String {
    let mut parts = Vec::new();
    match shown.record.as_ref().and_then(|record| record.made.as_ref()) {
        Some(made) => parts.push(format!("{}; easyllp {}, {}", made.command, made.version, made.machine)),
        // Of results that are older than records, whoever looks at them again knows the seed and the cells only.
        None if !shown.points.is_empty() => parts.push("made before this was noted".into()),
        None => {}
    }
    if let Some(record) = &shown.record {
        let Record { seed, done, empty, cells, .. } = record;
        parts.push(format!("seed {seed}"));
        parts.push(if done < cells {
            format!("{done} of {cells} cells so far")
        } else {
            format!("{cells} cells")
        });
        if *empty > 0 {
            parts.push(format!("{empty} of them have no result, since training diverged in the first round"));
        }
    }
    parts.push(duration(shown.seconds));
    parts.join("; ")
}

/// The number of replicas. Experiments with samples state their number in the protocol instead.
fn repeated(kind: &Kind, points: &[Point]) -> String {
    match kind {
        _ if points.is_empty() => String::new(),
        Kind::Accuracy(accuracy) => {
            let sizes: Vec<f64> = accuracy.bag_sizes.iter().map(|&size| size as f64).collect();
            format!("; replicas: {}", replicas(points, &sizes).join(", "))
        }
        Kind::Comparison(_) | Kind::Tracking(_) => {
            format!("; replicas: {}", replicas(points, &[]).join(", "))
        }
        Kind::Variance(_) | Kind::Sgd(_) | Kind::Erm(_) => String::new(),
    }
}

/// The number of replicas of each series: the minimum over its points, and the maximum if they
/// differ. A series with several bag sizes is expected at all of them; row labels are bags of one.
fn replicas(points: &[Point], places: &[f64]) -> Vec<String> {
    let mut series: Vec<&str> = Vec::new();
    let mut found: BTreeMap<(&str, &str, u64), BTreeSet<u32>> = BTreeMap::new();
    for point in points {
        if !series.contains(&point.series.as_str()) {
            series.push(&point.series);
        }
        found.entry((&point.series, &point.panel, point.x.to_bits())).or_default().insert(point.replica);
    }
    let of_series = |series: &str| {
        let own = || found.iter().filter(|((of, ..), _)| *of == series);
        let is_at = |place: &f64| own().any(|((_, _, x), _)| *x == place.to_bits());
        let is_missing = places.iter().any(is_at) && !places.iter().all(is_at);
        let counts = || own().map(|(_, replicas)| replicas.len()).chain(is_missing.then_some(0));
        match (counts().min().unwrap_or(0), counts().max().unwrap_or(0)) {
            (least, most) if least == most => format!("{series} {most}"),
            (least, most) => format!("{series} {least} to {most}"),
        }
    };
    series.into_iter().map(of_series).collect()
}

fn checklist(claims: &[Claim]) -> String {
    let mut html = "<h2>The paper's claims</h2>\n<table class=\"claims\">\n\
                    <tr><th>claim</th><th>verdict</th><th>number</th><th>figures</th></tr>\n"
        .to_owned();
    for claim in claims {
        let (class, mark) = match claim.verdict {
            Verdict::Held => ("held", "✓ holds"),
            Verdict::NotHeld => ("not-held", "✗ does not hold"),
            Verdict::Open => ("open", "? undecided"),
        };
        let figures = claim.experiment.as_deref().map(escaped);
        let _ = writeln!(
            html,
            "<tr><td>{}<details><summary>details</summary><p>Found: {}.</p><p>Holds if: {}.</p></details></td>\
             <td class=\"verdict {class}\">{mark}</td><td>{}</td><td>{}</td></tr>",
            escaped(claim.text),
            escaped(&claim.evidence),
            escaped(claim.rule),
            escaped(&claim.number),
            figures.map_or_else(String::new, |name| format!("<a href=\"#{name}\">{name}</a>"))
        );
    }
    html.push_str("</table>\n");
    html
}

fn duration(seconds: f64) -> String {
    match seconds {
        ..60.0 => format!("{seconds:.0} s"),
        60.0..3600.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(series: &str, x: f64, replica: u32) -> Point {
        let (panel, series, measure) = ("p".into(), series.into(), "m".into());
        Point { panel, series, x, replica, measure, value: 0.0 }
    }

    fn shown(name: &str, kind_of: &str, points: Vec<Point>) -> Shown {
        let kind = Experiment::named(kind_of).unwrap().unwrap().kind;
        Shown { experiment: Experiment { name: name.into(), kind }, points, record: None, seconds: 0.0 }
    }

    #[test]
    fn verdicts_are_of_the_papers_experiments_alone() {
        let some = || vec![point("a", 1.0, 1)];
        let names = |results: &[Shown]| -> Vec<String> {
            judged(results).iter().map(|(experiment, _)| experiment.name.clone()).collect()
        };
        // A file of the user's, under a name of its own and under that of another.
        let mut results = vec![shown("own", "erm", some()), shown("sgd", "quick-sgd", some())];
        assert!(names(&results).is_empty());
        results.push(shown("quick-erm", "quick-erm", some()));
        results.push(shown("variance", "variance", Vec::new()));
        assert_eq!(names(&results), ["quick-erm"]);
        results.push(shown("erm", "erm", some()));
        assert_eq!(names(&results), ["erm"]);
    }

    #[test]
    fn claims_are_a_table_that_links_to_figures() {
        let points = [("mean-map", 0.9), ("easyllp", 0.9)].map(|(series, value)| Point {
            panel: "click".into(),
            measure: crate::experiment::MEASURES[0].into(),
            value,
            ..point(series, 2.0, 1)
        });
        let html = page(&[shown("ctr-linear", "ctr-linear", points.to_vec())]);
        assert_eq!(
            html.matches("<tr><td>").count() - html.matches("<tr><td>mean-map").count() - 1,
            8,
            "{html}"
        );
        let row = html.split("<tr>").find(|row| row.contains("performs very similarly to MeanMap")).unwrap();
        assert!(
            row.contains("✓ holds</td><td>mean difference 0.0000</td><td><a href=\"#ctr-linear\">"),
            "{row}"
        );
        assert!(html.contains("<section class=\"experiment\" id=\"ctr-linear\">"));
        assert!(html.contains("The paper: “Performance of various methods"));
    }

    #[test]
    fn replicas_are_told_where_there_are_any() {
        let told =
            |name: &str| page(&[shown(name, name, vec![point("a", 1.0, 1)])]).contains("; replicas: a 1");
        assert_eq!(
            ["ctr-linear", "tracking", "variance", "sgd", "erm"].map(told),
            [true, true, false, false, false]
        );
    }

    #[test]
    fn replicas_are_counted_place_by_place() {
        let points = [
            point("b", 1.0, 1),
            point("b", 1.0, 2),
            point("b", 2.0, 1),
            point("a", 1.0, 7),
            point("a", 1.0, 7),
        ];
        assert_eq!(replicas(&points, &[]), ["b 1 to 2", "a 1"]);
        assert_eq!(replicas(&points, &[1.0, 2.0]), ["b 1 to 2", "a 0 to 1"]);
        // As row labels are, where no bag is of one.
        assert_eq!(replicas(&points[3..], &[2.0]), ["a 1"]);
    }
}
