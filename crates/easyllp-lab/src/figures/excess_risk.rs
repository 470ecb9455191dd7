//! Excess risk against the number of bags and their size, with the theory.

use super::Figure;
use crate::experiment::{Erm, Sgd};
use crate::point::{Point, Summary, lines};
use easyllp_report::{Line, LineChart, Style};

pub(super) fn of_sgd(sgd: &Sgd, points: &[Point]) -> Vec<Figure> {
    let (size, n_bags) = sgd.fixed();
    let mut figures = figures(points, size, &format!("{n_bags} bags"));
    for figure in &mut figures {
        figure.chart.lines.extend(slopes(figure.chart.x_name == BAGS, &figure.numbers));
    }
    figures
}

/// The orders of the paper's theorem for one pass, as lines that end at the last measured point.
fn slopes(by_bags: bool, numbers: &[(String, Vec<(f64, Summary)>)]) -> Vec<Line> {
    // With n bags of k rows.
    let orders = [("soft", "√(k/n)", 0.5), ("surrogate", "k/√n", 1.0)];
    let line = |(series, order, power_of_size): (&str, &str, f64)| {
        let (_, found) = numbers.iter().find(|(name, _)| name == series)?;
        let (end, height) = found.last().map(|(x, summary)| (*x, summary.mean))?;
        let power = if by_bags { -0.5 } else { power_of_size };
        let points = found.iter().map(|(x, _)| (*x, height * (x / end).powf(power), 0.0)).collect();
        Some(Line { name: format!("{series}: slope of {order}"), style: Style::Theory, points })
    };
    orders.into_iter().filter_map(line).collect()
}

pub(super) fn of_erm(erm: &Erm, points: &[Point]) -> Vec<Figure> {
    let points: Vec<Point> = points.iter().cloned().map(by_prior).collect();
    let (size, n_rows) = erm.fixed();
    let mut figures = figures(&points, size, &format!("{n_rows} rows in all"));
    figures.extend(bounds(&points));
    figures
}

/// The keys `paper` and `centred` are both the paper's form, with known or pooled p: figures say
/// which.
fn by_prior(mut point: Point) -> Point {
    match point.series.as_str() {
        "paper" => point.series = "paper (known p)".into(),
        "centred" => point.series = "centred (pooled p)".into(),
        _ => {}
    }
    point
}

/// The ratio of the paper's bounds to the measured risk.
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

/// The x axis where the number of bags varies.
const BAGS: &str = "bags";

/// The fixed bag size where the number of bags varies, and what is fixed where the size varies.
fn figures(points: &[Point], size: usize, at_every_size: &str) -> Vec<Figure> {
    let panels = [
        ("by bags", BAGS, format!("Excess risk against the number of bags, {size} rows in each")),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_theorems_orders_end_where_the_line_does() {
        let found = |values: [f64; 2]| -> Vec<(f64, Summary)> {
            [4.0, 16.0].into_iter().zip(values).map(|(x, y)| (x, Summary::of(&[y]).unwrap())).collect()
        };
        let numbers = [("soft".to_owned(), found([9.0, 1.0])), ("surrogate".to_owned(), found([9.0, 2.0]))];
        for (by_bags, expected) in [(true, [[2.0, 1.0], [4.0, 2.0]]), (false, [[0.5, 1.0], [0.5, 2.0]])] {
            let lines = slopes(by_bags, &numbers);
            assert_eq!(lines.len(), 2);
            for (line, heights) in lines.iter().zip(expected) {
                let near = |(point, height): (&(f64, f64, f64), f64)| (point.1 - height).abs() < 1e-12;
                assert!(line.points.iter().zip(heights).all(near), "{line:?}");
            }
        }
    }

    #[test]
    fn pictures_say_what_is_held_fixed_and_which_p_is_used() {
        let point = |panel: &str, series: &str, measure: &str| Point {
            panel: panel.into(),
            series: series.into(),
            x: 2.0,
            replica: 1,
            measure: measure.into(),
            value: 0.5,
        };
        let points: Vec<Point> = ["by bags", "by size"]
            .iter()
            .flat_map(|panel| [point(panel, "paper", "excess risk"), point(panel, "paper", "theory")])
            .collect();
        let titles = |figures: Vec<Figure>| -> Vec<String> {
            figures.into_iter().map(|figure| figure.chart.title).collect()
        };
        let sgd = Sgd { sizes: vec![2, 4, 8, 16, 32, 64], bags: vec![1000, 32_000], passes: 1 };
        let of_sgd = titles(of_sgd(&sgd, &points));
        assert!(of_sgd[0].ends_with("number of bags, 16 rows in each"), "{of_sgd:?}");
        assert!(of_sgd[1].ends_with("size of bags, 32000 bags"), "{of_sgd:?}");
        let erm = Erm { sizes: vec![1, 2, 4, 8, 16, 32, 64], bags: vec![250, 4000], samples: 1 };
        let of_erm = of_erm(&erm, &points);
        assert_eq!(of_erm[0].numbers[0].0, "paper (known p)");
        let of_erm = titles(of_erm);
        assert!(of_erm[0].ends_with("number of bags, 8 rows in each"), "{of_erm:?}");
        assert!(of_erm[1].ends_with("size of bags, 32000 rows in all"), "{of_erm:?}");
    }
}
