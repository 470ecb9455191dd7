//! Accuracy against bag size, a figure per task and protocol. The one-vs-all tasks share one figure
//! of their mean, and have one figure each on request.

use super::{Figure, file_part};
use crate::experiment::{ALL, Accuracy, MEASURES};
use crate::point::{Point, lines};
use easyllp_report::{Line, LineChart, Style};

pub(super) fn figures(accuracy: &Accuracy, points: &[Point]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for panel in accuracy.pictures(points) {
        for (measure, protocol) in
            [(MEASURES[0], "best round by test labels"), (MEASURES[2], "round chosen by held-out bags")]
        {
            let is_it = |task: &str| accuracy.shows(panel, task);
            let numbers = lines(points, is_it, measure);
            if numbers.is_empty() {
                continue;
            }
            let n_tasks = points
                .iter()
                .filter(|point| is_it(&point.panel))
                .map(|point| &point.panel)
                .collect::<std::collections::BTreeSet<_>>()
                .len();
            let of_tasks = if panel == ALL { format!(" (mean of {n_tasks} tasks)") } else { String::new() };
            figures.push(Figure {
                name: file_part(&format!("{panel} {measure}")),
                chart: LineChart {
                    title: format!("{panel}{of_tasks}, {protocol}"),
                    x_name: "rows in a bag".into(),
                    y_name: "test accuracy".into(),
                    x_by_ratio: true,
                    y_by_ratio: false,
                    lines: numbers.iter().map(|(name, line)| drawn(accuracy, name, line)).collect(),
                },
                numbers,
            });
        }
    }
    figures
}

/// Row labels do not depend on the bag size.
fn drawn(accuracy: &Accuracy, name: &str, line: &[(f64, crate::point::Summary)]) -> Line {
    let mut points: Vec<(f64, f64, f64)> =
        line.iter().map(|(x, found)| (*x, found.mean, found.deviation)).collect();
    if name == "event" && points.len() == 1 {
        let (_, height, reach) = points[0];
        let sizes = || accuracy.bag_sizes.iter().copied();
        let ends = [sizes().min().unwrap_or(1), sizes().max().unwrap_or(2)];
        points = ends.map(|size| (size as f64, height, reach)).to_vec();
    }
    let name = if name == "event" { "event (row labels)" } else { name };
    Line { name: name.into(), style: Style::Band, points }
}
