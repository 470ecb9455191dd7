//! Excess risk against the number of bags and their size, with what theory says.

use super::Figure;
use crate::point::{Point, Summary, lines};
use easyllp_report::{Line, LineChart, Style};

pub(super) fn of_sgd(points: &[Point]) -> Vec<Figure> {
    figures(points, "greatest number of bags")
}

pub(super) fn of_erm(points: &[Point]) -> Vec<Figure> {
    let mut figures = figures(points, "as many rows in all");
    figures.extend(bounds(points));
    figures
}

/// How far above what is found the paper's bounds are.
fn bounds(points: &[Point]) -> Option<Figure> {
    let of = |measure: &str| lines(points, |panel| panel == "by size", measure);
    let (found, bounds) = (of("excess risk"), of("bound"));
    let drawn = |style: Style| {
        move |(name, line): &(String, Vec<(f64, Summary)>)| Line {
            name: name.clone(),
            style,
            points: line.iter().map(|(x, summary)| (*x, summary.mean, 0.0)).collect(),
        }
    };
    let lines: Vec<Line> =
        found.iter().map(drawn(Style::Band)).chain(bounds.iter().map(drawn(Style::Theory))).collect();
    let chart = LineChart {
        title: "Excess risk and the paper's bounds".into(),
        x_name: "rows in a bag".into(),
        y_name: "excess risk".into(),
        x_by_ratio: true,
        y_by_ratio: true,
        lines,
    };
    (!bounds.is_empty()).then(|| Figure {
        name: "bounds".into(),
        chart,
        numbers: found.into_iter().chain(bounds).collect(),
    })
}

fn figures(points: &[Point], at_every_size: &str) -> Vec<Figure> {
    let panels = [
        ("by bags", "bags", "Excess risk against the number of bags".to_owned()),
        ("by size", "rows in a bag", format!("Excess risk against the size of bags, {at_every_size}")),
    ];
    let figure = |(panel, x_name, title): (&str, &str, String)| {
        let (found, theory) =
            (lines(points, |of| of == panel, "excess risk"), lines(points, |of| of == panel, "theory"));
        let mut drawn = Vec::new();
        for (name, line) in &theory {
            if let Some((_, found)) = found.iter().find(|(of, _)| of == name) {
                let dots =
                    found.iter().map(|(x, summary)| (*x, summary.mean, 2.0 * summary.standard_error()));
                drawn.push(Line { name: name.clone(), style: Style::Dots, points: dots.collect() });
            }
            let curve = line.iter().map(|(x, summary)| (*x, summary.mean, 0.0)).collect();
            drawn.push(Line { name: format!("{name}, theory"), style: Style::Theory, points: curve });
        }
        let chart = LineChart {
            title,
            x_name: x_name.into(),
            y_name: "excess risk".into(),
            x_by_ratio: true,
            y_by_ratio: true,
            lines: drawn,
        };
        let numbers =
            found.into_iter().chain(theory.into_iter().map(|(name, line)| (format!("{name}, theory"), line)));
        (!chart.lines.is_empty()).then(|| Figure {
            name: panel.replace(' ', "-"),
            chart,
            numbers: numbers.collect(),
        })
    };
    panels.into_iter().filter_map(figure).collect()
}
