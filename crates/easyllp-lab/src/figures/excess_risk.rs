//! Excess risk against the number of bags and their size, with what theory says.

use super::Figure;
use crate::point::{Point, lines};
use easyllp_report::{Line, LineChart, Style};

pub(super) fn of_sgd(points: &[Point]) -> Vec<Figure> {
    figures(points, "greatest number of bags")
}

pub(super) fn of_erm(points: &[Point]) -> Vec<Figure> {
    figures(points, "as many rows in all")
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
