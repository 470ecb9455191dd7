//! One chart: axes, and what is drawn between them, as SVG.

use crate::escaped;
use std::fmt::Write;

const WIDTH: f64 = 360.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 46.0;
const RIGHT: f64 = 10.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 40.0;

/// A chart as it grows.
pub(crate) struct Plot {
    x: (f64, f64),
    y: (f64, f64),
    marks: String,
}

impl Plot {
    /// A chart over these ranges, with a grid and the numbers on it.
    pub(crate) fn new(x: (f64, f64), y: (f64, f64), x_name: &str, y_name: &str) -> Self {
        let mut plot = Self { x, y, marks: String::new() };
        for tick in ticks(x) {
            let at = plot.across(tick);
            let _ = writeln!(
                plot.marks,
                r#"<line class="grid" x1="{at:.1}" x2="{at:.1}" y1="{TOP}" y2="{:.1}"/><text x="{at:.1}" y="{:.1}" text-anchor="middle">{}</text>"#,
                HEIGHT - BOTTOM,
                HEIGHT - BOTTOM + 16.0,
                label(tick)
            );
        }
        for tick in ticks(y) {
            let at = plot.up(tick);
            let _ = writeln!(
                plot.marks,
                r#"<line class="grid" x1="{LEFT}" x2="{:.1}" y1="{at:.1}" y2="{at:.1}"/><text x="{:.1}" y="{:.1}" text-anchor="end">{}</text>"#,
                WIDTH - RIGHT,
                LEFT - 6.0,
                at + 4.0,
                label(tick)
            );
        }
        let _ = writeln!(
            plot.marks,
            r#"<text x="{:.1}" y="{:.1}" text-anchor="middle">{}</text><text transform="translate(12 {:.1}) rotate(-90)" text-anchor="middle">{}</text>"#,
            (LEFT + WIDTH - RIGHT) / 2.0,
            HEIGHT - 6.0,
            escaped(x_name),
            (TOP + HEIGHT - BOTTOM) / 2.0,
            escaped(y_name)
        );
        plot
    }

    fn across(&self, x: f64) -> f64 {
        let share = (x - self.x.0) / (self.x.1 - self.x.0);
        LEFT + share.clamp(0.0, 1.0) * (WIDTH - LEFT - RIGHT)
    }

    fn up(&self, y: f64) -> f64 {
        let share = (y - self.y.0) / (self.y.1 - self.y.0);
        HEIGHT - BOTTOM - share.clamp(0.0, 1.0) * (HEIGHT - TOP - BOTTOM)
    }

    fn path(&self, points: impl Iterator<Item = (f64, f64)>) -> String {
        let mut path = String::new();
        for (x, y) in points {
            let _ = write!(
                path,
                "{}{:.1} {:.1}",
                if path.is_empty() { "M" } else { "L" },
                self.across(x),
                self.up(y)
            );
        }
        path
    }

    pub(crate) fn line(&mut self, class: &str, points: impl Iterator<Item = (f64, f64)>) {
        let path = self.path(points);
        let _ = writeln!(self.marks, r#"<path class="{class}" d="{path}"/>"#);
    }

    /// The area between two lines.
    pub(crate) fn band(&mut self, points: &[(f64, f64, f64)]) {
        let up = points.iter().map(|&(x, low, _)| (x, low));
        let back = points.iter().rev().map(|&(x, _, high)| (x, high));
        let path = self.path(up.chain(back));
        let _ = writeln!(self.marks, r#"<path class="band" d="{path}Z"/>"#);
    }

    pub(crate) fn dot(&mut self, class: &str, (x, y): (f64, f64), radius: f64) {
        let _ = writeln!(
            self.marks,
            r#"<circle class="{class}" cx="{:.1}" cy="{:.1}" r="{radius:.1}"/>"#,
            self.across(x),
            self.up(y)
        );
    }

    /// A line upwards, such as an interval.
    pub(crate) fn reach(&mut self, x: f64, low: f64, high: f64) {
        let at = self.across(x);
        let _ = writeln!(
            self.marks,
            r#"<line class="reach" x1="{at:.1}" x2="{at:.1}" y1="{:.1}" y2="{:.1}"/>"#,
            self.up(low),
            self.up(high)
        );
    }

    pub(crate) fn bar(&mut self, from: f64, to: f64, height: f64) {
        let (left, right, top) = (self.across(from), self.across(to), self.up(height));
        let _ = writeln!(
            self.marks,
            r#"<rect class="bar" x="{:.1}" y="{top:.1}" width="{:.1}" height="{:.1}"/>"#,
            left + 0.5,
            (right - left - 1.0).max(0.5),
            HEIGHT - BOTTOM - top
        );
    }

    /// The chart with its headline, what it shows in words for those who do not see it, and a key.
    pub(crate) fn finish(self, title: &str, in_words: &str, key: &str) -> String {
        format!(
            "<figure><h2>{}</h2>\n<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">\n{}</svg>\n\
             <figcaption>{key}</figcaption></figure>\n",
            escaped(title),
            escaped(in_words),
            self.marks
        )
    }
}

/// Three to six round numbers within a range.
pub(crate) fn ticks((least, most): (f64, f64)) -> Vec<f64> {
    let rough = (most - least) / 5.0;
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().map(|times| times * power).find(|&step| step >= rough);
    let step = step.unwrap_or(10.0 * power);
    let mut ticks = Vec::new();
    let mut place = (least / step - 1e-9).ceil();
    while place * step <= most + 1e-9 * step {
        ticks.push(place * step);
        place += 1.0;
    }
    ticks
}

/// As few digits as tell a tick from its neighbours.
fn label(tick: f64) -> String {
    let text = format!("{tick:.4}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text.is_empty() || text == "-0" { "0".into() } else { text.replace('-', "−") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_within() {
        assert_eq!(ticks((0.0, 1.0)).len(), 6);
        let labels = |range| ticks(range).into_iter().map(label).collect::<Vec<_>>();
        assert_eq!(labels((0.0, 1.0)), ["0", "0.2", "0.4", "0.6", "0.8", "1"]);
        assert_eq!(labels((-3.0, 4.0)), ["−2", "0", "2", "4"]);
        assert_eq!(labels((0.0, 1234.0)), ["0", "250", "500", "750", "1000"]);
        assert_eq!(labels((0.02, 0.05)), ["0.02", "0.03", "0.04", "0.05"]);
    }
}
