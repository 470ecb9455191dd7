//! Measured variances as dots, with their closed forms as curves.

use super::Figure;
use crate::experiment::Variance;
use crate::point::{Point, lines};
use easyllp_report::{Line, LineChart, Style};

pub(super) fn figures(variance: &Variance, points: &[Point]) -> Vec<Figure> {
    let by_share = format!("share of positives, {} rows in a bag", variance.size);
    let panels = [
        ("by size", "rows in a bag", "against the size of bags, p = ½", true),
        ("by share", by_share.as_str(), "against the share of positives", false),
    ];
    let figure = |(panel, x_name, title, x_by_ratio): (&str, &str, &str, bool)| {
        let of = |measure: &str| lines(points, |of| of == panel, measure);
        let (measured, errors, theory) = (of("variance"), of("standard error"), of("closed form"));
        let mut drawn = Vec::new();
        for (((name, line), (_, errors)), (_, theory)) in measured.iter().zip(&errors).zip(&theory) {
            let reach = |error: f64| 2.0 * error;
            let dots =
                line.iter().zip(errors).map(|((x, found), (_, error))| (*x, found.mean, reach(error.mean)));
            drawn.push(Line { name: name.clone(), style: Style::Dots, points: dots.collect() });
            let curve = theory.iter().map(|(x, found)| (*x, found.mean, 0.0));
            drawn.push(Line {
                name: format!("{name}, closed form"),
                style: Style::Theory,
                points: curve.collect(),
            });
        }
        let chart = LineChart {
            title: format!("Variance {title}"),
            x_name: x_name.into(),
            y_name: "variance a bag".into(),
            x_by_ratio,
            y_by_ratio: true,
            lines: drawn,
        };
        let numbers = measured
            .into_iter()
            .chain(theory.into_iter().map(|(name, line)| (format!("{name}, closed form"), line)));
        (!chart.lines.is_empty()).then(|| Figure {
            name: panel.replace(' ', "-"),
            chart,
            numbers: numbers.collect(),
        })
    };
    panels.into_iter().filter_map(figure).collect()
}
