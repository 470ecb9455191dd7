//! Line charts with bands, one line per method.

use crate::escaped;
use crate::plot::{Axis, Plot};

/// A chart of several lines.
///
/// ```
/// use easyllp_report::{Line, LineChart, Style};
///
/// let line = Line { name: "EasyLLP".into(), style: Style::Band, points: vec![(2.0, 0.9, 0.01), (4.0, 0.8, 0.02)] };
/// let chart = LineChart {
///     title: "Accuracy".into(),
///     x_name: "rows in a bag".into(),
///     y_name: "accuracy".into(),
///     x_by_ratio: true,
///     y_by_ratio: false,
///     lines: vec![line],
/// };
/// assert!(chart.figure().contains("EasyLLP") && chart.svg().starts_with("<svg"));
/// ```
#[derive(Debug, Clone, Default)]
pub struct LineChart {
    /// The title.
    pub title: String,
    /// The name of the x axis.
    pub x_name: String,
    /// The name of the y axis.
    pub y_name: String,
    /// Whether the x axis is logarithmic.
    pub x_by_ratio: bool,
    /// Whether the y axis is logarithmic.
    pub y_by_ratio: bool,
    /// The lines. Their styles set how they are drawn.
    pub lines: Vec<Line>,
}

/// One line.
#[derive(Debug, Clone)]
pub struct Line {
    /// The name in the legend.
    pub name: String,
    /// How it is drawn.
    pub style: Style,
    /// Points: x, y, and half the height of the band.
    pub points: Vec<(f64, f64, f64)>,
}

/// How a line is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// A line with a band, with a dot at each point unless there are many.
    Band,
    /// Dots with error bars, for measurements next to a curve.
    Dots,
    /// A dashed curve, for theory; it has the colour of the dots before it, if there are any.
    Theory,
}

/// A line with more points than this has no dots, which would hide it.
const MARKED: usize = 48;

/// Methods in the order of their colours: a method has the same colour in every figure. The gallery's figures use the same
/// list (`python/examples/_figure.py`).
const METHODS: [&str; 5] = ["event", "easyllp", "mean-map", "label-generation", "naive"];

/// The number of colours, which are distinguishable with colour blindness; then they repeat.
const N_COLOURS: usize = 8;

impl LineChart {
    /// The chart with its title and legend, for a [page](crate::document).
    pub fn figure(&self) -> String {
        let key: Vec<String> = self
            .keys()
            .into_iter()
            .map(|(class, name)| {
                format!(
                    "<span class=\"key\"><svg viewBox=\"0 0 22 8\"><path class=\"{class}\" d=\"M0 4h22\"/></svg>{}</span>",
                    escaped(&name)
                )
            })
            .collect();
        self.plot().finish(&self.title, &self.in_words(), &key.concat())
    }

    /// The chart with its title and legend, as an SVG file.
    pub fn svg(&self) -> String {
        self.plot().finish_alone(
            &self.title,
            &self.in_words(),
            concat!(include_str!("alone.css"), include_str!("series.css")),
            &self.keys(),
        )
    }

    /// What explains a line of dots has its colour and is not named again.
    fn keys(&self) -> Vec<(String, String)> {
        let mut keys = Vec::new();
        let mut explains = false;
        for (place, (class, line)) in self.classes().into_iter().zip(&self.lines).enumerate() {
            if self.explains(place) {
                explains = true;
            } else {
                keys.push((class, line.name.clone()));
            }
        }
        if explains {
            keys.push(("series c6 theory".into(), "dashed: theory".into()));
        }
        keys
    }

    /// Whether a line is the theory curve of the dots before it.
    fn explains(&self, place: usize) -> bool {
        self.lines[place].style == Style::Theory && place > 0 && self.lines[place - 1].style == Style::Dots
    }

    /// The CSS class of each line: its colour, and whether it is dashed. Lines other than methods are numbered.
    fn classes(&self) -> Vec<String> {
        let (mut next, mut colour) = (0, 0);
        (0..self.lines.len())
            .map(|place| {
                let is_it = |method: &&str| self.lines[place].name.split(' ').next() == Some(method);
                if let Some(method) = METHODS.iter().position(is_it) {
                    colour = method;
                } else if !self.explains(place) {
                    colour = next % N_COLOURS;
                    next += 1;
                }
                let dashed = if self.lines[place].style == Style::Theory { " theory" } else { "" };
                format!("series c{colour}{dashed}")
            })
            .collect()
    }

    fn plot(&self) -> Plot {
        let points = || self.lines.iter().flat_map(|line| &line.points);
        // Sizes of bags are powers of two.
        let x = range(points().map(|point| point.0), self.x_by_ratio.then_some(2.0));
        let reach = points().flat_map(|&(_, y, reach)| [y - reach, y + reach]);
        // A band may reach below what ratios can show.
        let heights = reach.filter(|&y| !self.y_by_ratio || y > 0.0);
        let mut plot =
            Plot::new(x, range(heights, self.y_by_ratio.then_some(10.0)), &self.x_name, &self.y_name);
        for (line, class) in self.lines.iter().zip(self.classes()) {
            let points = || line.points.iter().map(|&(x, y, _)| (x, y));
            let band: Vec<(f64, f64, f64)> =
                line.points.iter().map(|&(x, y, reach)| (x, y - reach, y + reach)).collect();
            let colour = class.split(' ').nth(1).unwrap_or_default().to_owned();
            match line.style {
                Style::Band => {
                    plot.band(&format!("spread {colour}"), &band);
                    plot.line(&class, points());
                    if line.points.len() <= MARKED {
                        points().for_each(|point| plot.dot(&format!("mark {colour}"), point, 2.2));
                    }
                }
                Style::Dots => {
                    for (x, low, high) in band {
                        plot.reach(&class, x, low, high);
                    }
                    points().for_each(|point| plot.dot(&format!("mark {colour}"), point, 3.0));
                }
                Style::Theory => plot.line(&class, points()),
            }
        }
        plot
    }

    /// The text alternative: where each line starts and ends.
    fn in_words(&self) -> String {
        let of_line = |line: &Line| {
            let (first, last) = (line.points.first()?, line.points.last()?);
            Some(format!(
                "{} goes from {:.3} at {} to {:.3} at {}",
                line.name, first.1, first.0, last.1, last.0
            ))
        };
        let lines: Vec<String> = self.lines.iter().filter_map(of_line).collect();
        format!("{}: {} against {}. {}.", self.title, self.y_name, self.x_name, lines.join("; "))
    }
}

/// The range from the smallest to the largest number, with a margin.
fn range(numbers: impl Iterator<Item = f64>, by_ratio: Option<f64>) -> Axis {
    let (least, most) = numbers
        .filter(|number| number.is_finite())
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), number| {
            (least.min(number), most.max(number))
        });
    if least > most {
        return Axis::new(by_ratio.map_or(0.0, |_| 1.0), 2.0, by_ratio);
    }
    if by_ratio.is_some() {
        let margin = (most / least).powf(0.03).max(1.01);
        return Axis::new(least / margin, most * margin, by_ratio);
    }
    // A flat line is drawn flat, not as the noise of its last digits.
    let margin = (0.04 * (most - least)).max(0.005 * most.abs()).max(1e-12);
    Axis::new(least - margin, most + margin, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(lines: Vec<Line>) -> LineChart {
        LineChart {
            title: "T".into(),
            x_name: "x".into(),
            y_name: "y".into(),
            x_by_ratio: true,
            y_by_ratio: true,
            lines,
        }
    }

    #[test]
    fn theory_has_the_colour_of_what_it_explains() {
        let line =
            |style| Line { name: "a < b".into(), style, points: vec![(1.0, 2.0, 3.0), (8.0, 1.0, 0.0)] };
        let styles = [Style::Dots, Style::Theory, Style::Band, Style::Theory];
        let chart = chart(styles.map(line).to_vec());
        assert_eq!(chart.classes(), ["series c0", "series c0 theory", "series c1", "series c2 theory"]);
        let names: Vec<String> = chart.keys().into_iter().map(|(_, name)| name).collect();
        assert_eq!(names, ["a < b", "a < b", "a < b", "dashed: theory"]);
        for drawing in [chart.figure(), chart.svg()] {
            assert!(drawing.contains("a &lt; b") && !drawing.contains("NaN"), "{drawing}");
        }
    }

    #[test]
    fn a_method_has_the_same_colour_in_every_figure() {
        let line = |name: &str| Line { name: name.into(), style: Style::Band, points: vec![(1.0, 2.0, 0.0)] };
        let colour = |names: &[&str]| {
            chart(names.iter().copied().map(line).collect()).classes().pop().expect("a line")
        };
        assert_eq!(colour(&["event (row labels)", "easyllp", "mean-map", "label-generation"]), "series c3");
        assert_eq!(colour(&["label-generation"]), "series c3");
        assert_eq!(colour(&["soft", "surrogate"]), "series c1");
    }

    #[test]
    fn dots_do_not_hide_a_line_of_many_points() {
        let dots = |n_points: u8| {
            let points = (1..=n_points).map(|place| (f64::from(place), 1.0, 0.1)).collect();
            let line = Line { name: "a".into(), style: Style::Band, points };
            chart(vec![line]).svg().matches("<circle").count()
        };
        assert_eq!((dots(20), dots(200)), (20, 0));
    }

    #[test]
    fn nothing_at_all_is_drawn_too() {
        assert!(!chart(Vec::new()).svg().contains("NaN"));
        let flat = Line { name: "flat".into(), style: Style::Band, points: vec![(2.0, 0.5, 0.0)] };
        assert!(!chart(vec![flat]).svg().contains("NaN"));
    }
}
