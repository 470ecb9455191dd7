//! Test metrics of methods with default settings, against the size of bags.

use super::{Figure, file_part};
use crate::experiment::Comparison;
use crate::experiment::comparison::{ACCURACY, AUC, BRIER, SUPERVISED};
use crate::point::{Point, Summary, lines};
use easyllp_report::{Line, LineChart, Style};

pub(super) fn figures(comparison: &Comparison, points: &[Point]) -> Vec<Figure> {
    let figure = |measure: &str| {
        let numbers = lines(points, |_| true, measure);
        (!numbers.is_empty()).then(|| Figure {
            name: file_part(measure),
            chart: LineChart {
                title: format!("test {measure}"),
                x_name: "rows in a bag".into(),
                y_name: measure.into(),
                x_by_ratio: true,
                y_by_ratio: false,
                lines: numbers.iter().map(|(name, line)| drawn(comparison, name, line)).collect(),
            },
            numbers,
        })
    };
    [AUC, ACCURACY, BRIER].into_iter().filter_map(figure).collect()
}

/// Supervision is the same for every size.
fn drawn(comparison: &Comparison, name: &str, line: &[(f64, Summary)]) -> Line {
    let mut points: Vec<(f64, f64, f64)> =
        line.iter().map(|(x, found)| (*x, found.mean, found.deviation)).collect();
    if let (SUPERVISED, [(_, height, reach)]) = (name, &points[..]) {
        let sizes = || comparison.bag_sizes.iter().copied();
        let ends = [sizes().min().unwrap_or(1), sizes().max().unwrap_or(2)];
        points = ends.map(|size| (size as f64, *height, *reach)).to_vec();
    }
    Line { name: name.into(), style: Style::Band, points }
}
