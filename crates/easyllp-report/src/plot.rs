//! One chart as SVG: axes and marks.

use crate::escaped;
use std::fmt::Write;

const WIDTH: f64 = 360.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = 18.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 40.0;

/// The range of an axis.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Axis {
    least: f64,
    most: f64,
    /// For a logarithmic axis, the base of the ticks, if enough powers fit.
    by_ratio: Option<f64>,
}

impl Axis {
    pub(crate) fn new(least: f64, most: f64, by_ratio: Option<f64>) -> Self {
        Self { least, most, by_ratio }
    }

    /// The position of a number on the axis, from 0 to 1.
    fn share(self, number: f64) -> f64 {
        let of =
            |number: f64| if self.by_ratio.is_some() { number.max(f64::MIN_POSITIVE).ln() } else { number };
        let share = (of(number) - of(self.least)) / (of(self.most) - of(self.least));
        share.clamp(0.0, 1.0)
    }

    fn ticks(self) -> Vec<f64> {
        match self.by_ratio {
            Some(base) => ratio_ticks(self.least, self.most, base),
            None => ticks((self.least, self.most)),
        }
    }

    fn label(self, tick: f64) -> String {
        if self.by_ratio.is_some() && !(1e-3..1e5).contains(&tick) { power_label(tick) } else { label(tick) }
    }
}

impl From<(f64, f64)> for Axis {
    fn from((least, most): (f64, f64)) -> Self {
        Self::new(least, most, None)
    }
}

/// A chart under construction.
pub(crate) struct Plot {
    x: Axis,
    y: Axis,
    marks: String,
}

impl Plot {
    /// Starts a chart with these axes, a grid and tick labels.
    pub(crate) fn new(x: impl Into<Axis>, y: impl Into<Axis>, x_name: &str, y_name: &str) -> Self {
        let mut plot = Self { x: x.into(), y: y.into(), marks: String::new() };
        for tick in plot.x.ticks() {
            let at = plot.across(tick);
            let _ = writeln!(
                plot.marks,
                r#"<line class="grid" x1="{at:.1}" x2="{at:.1}" y1="{TOP}" y2="{:.1}"/><text x="{at:.1}" y="{:.1}" text-anchor="middle">{}</text>"#,
                HEIGHT - BOTTOM,
                HEIGHT - BOTTOM + 16.0,
                plot.x.label(tick)
            );
        }
        for tick in plot.y.ticks() {
            let at = plot.up(tick);
            let _ = writeln!(
                plot.marks,
                r#"<line class="grid" x1="{LEFT}" x2="{:.1}" y1="{at:.1}" y2="{at:.1}"/><text x="{:.1}" y="{:.1}" text-anchor="end">{}</text>"#,
                WIDTH - RIGHT,
                LEFT - 6.0,
                at + 4.0,
                plot.y.label(tick)
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
        LEFT + self.x.share(x) * (WIDTH - LEFT - RIGHT)
    }

    fn up(&self, y: f64) -> f64 {
        HEIGHT - BOTTOM - self.y.share(y) * (HEIGHT - TOP - BOTTOM)
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

    /// Fills the area between two lines.
    pub(crate) fn band(&mut self, class: &str, points: &[(f64, f64, f64)]) {
        let up = points.iter().map(|&(x, low, _)| (x, low));
        let back = points.iter().rev().map(|&(x, _, high)| (x, high));
        let path = self.path(up.chain(back));
        let _ = writeln!(self.marks, r#"<path class="{class}" d="{path}Z"/>"#);
    }

    pub(crate) fn dot(&mut self, class: &str, (x, y): (f64, f64), radius: f64) {
        let _ = writeln!(
            self.marks,
            r#"<circle class="{class}" cx="{:.1}" cy="{:.1}" r="{radius:.1}"/>"#,
            self.across(x),
            self.up(y)
        );
    }

    /// Draws a vertical line, such as an interval.
    pub(crate) fn reach(&mut self, class: &str, x: f64, low: f64, high: f64) {
        let at = self.across(x);
        let _ = writeln!(
            self.marks,
            r#"<line class="{class}" x1="{at:.1}" x2="{at:.1}" y1="{:.1}" y2="{:.1}"/>"#,
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

    /// The chart with its title, its text alternative and a legend.
    pub(crate) fn finish(self, title: &str, in_words: &str, key: &str) -> String {
        format!(
            "<figure><h2>{}</h2>\n<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">\n{}</svg>\n\
             <figcaption>{key}</figcaption></figure>\n",
            escaped(title),
            escaped(in_words),
            self.marks
        )
    }

    /// The chart as an SVG file, with its title above and the legend below.
    pub(crate) fn finish_alone(
        self,
        title: &str,
        in_words: &str,
        style: &str,
        key: &[(String, String)],
    ) -> String {
        const LINE: f64 = 16.0;
        let headline = wrapped(title, LETTERS);
        let top = LINE * (headline.len() as f64) + 6.0;
        let height = top + HEIGHT + LINE * (key.len() as f64) + 6.0;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{}\" height=\"{}\" role=\"img\" \
             aria-label=\"{}\">\n<style>\n{style}</style>\n<rect class=\"paper\" width=\"{WIDTH}\" height=\"{height}\"/>\n",
            2.0 * WIDTH,
            2.0 * height,
            escaped(in_words)
        );
        for (place, line) in headline.iter().enumerate() {
            let _ = writeln!(
                svg,
                r#"<text class="title" x="{:.1}" y="{:.1}" text-anchor="middle">{}</text>"#,
                WIDTH / 2.0,
                LINE * (place as f64 + 1.0),
                escaped(line)
            );
        }
        let _ = write!(svg, "<g transform=\"translate(0 {top})\">\n{}", self.marks);
        for (place, (class, name)) in key.iter().enumerate() {
            let y = HEIGHT + 6.0 + LINE * place as f64;
            let _ = writeln!(
                svg,
                r#"<path class="{class}" d="M{LEFT} {y:.1}h22"/><text x="{:.1}" y="{:.1}">{}</text>"#,
                LEFT + 28.0,
                y + 4.0,
                escaped(name)
            );
        }
        svg.push_str("</g></svg>\n");
        svg
    }
}

/// The number of characters of a title that fit on a line, in the widest of the usual fonts.
const LETTERS: usize = 44;

/// Wraps a text at this number of characters, between words where possible.
fn wrapped(text: &str, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let letters: Vec<char> = word.chars().collect();
        // A word that is too long for a line, such as that of a model, is several.
        for part in letters.chunks(most) {
            match lines.last_mut() {
                Some(line) if line.chars().count() + 1 + part.len() <= most => {
                    line.push(' ');
                    line.extend(part);
                }
                _ => lines.push(part.iter().collect()),
            }
        }
    }
    lines
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

/// Powers of the base, or of a greater one if these are too many; 1, 2, 5, 10, … if they are too few.
fn ratio_ticks(least: f64, most: f64, base: f64) -> Vec<f64> {
    const TICKS: std::ops::RangeInclusive<usize> = 3..=8;
    let within = |tick: &f64| *tick <= most * (1.0 + 1e-9);
    let powers = |base: f64| -> Vec<f64> {
        let first = (least.ln() / base.ln() - 1e-9).ceil();
        (0..=*TICKS.end()).map(|place| base.powf(first + place as f64)).take_while(within).collect()
    };
    let bases = [base, 4.0, 10.0, 100.0, 1e3, 1e6, 1e12].into_iter().filter(|other| *other >= base);
    let fitting = bases.map(powers).find(|powers| TICKS.contains(&powers.len()));
    fitting.unwrap_or_else(|| {
        let first = 10_f64.powf(least.log10().floor());
        let decades = (0..=*TICKS.end()).map(|place| first * 10_f64.powf(place as f64));
        let steps = decades.flat_map(|decade| [1.0, 2.0, 5.0].map(|times| times * decade));
        steps.skip_while(|tick| *tick < least * (1.0 - 1e-9)).take_while(within).collect()
    })
}

/// A power of ten, or a number of two digits times one.
fn power_label(tick: f64) -> String {
    const RAISED: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let text = format!("{tick:.1e}");
    let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
    let raised: String =
        power.chars().map(|letter| letter.to_digit(10).map_or('⁻', |digit| RAISED[digit as usize])).collect();
    match digits.trim_end_matches(".0") {
        "1" => format!("10{raised}"),
        digits => format!("{digits}·10{raised}"),
    }
}

/// The fewest digits that distinguish neighbouring ticks.
fn label(tick: f64) -> String {
    let text = format!("{tick:.5}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text.is_empty() || text == "-0" { "0".into() } else { text.replace('-', "−") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headlines_are_broken_between_words() {
        assert_eq!(wrapped("a headline of words", 10), ["a headline", "of words"]);
        assert_eq!(wrapped("mlp:1024,1024 é", 8), ["mlp:1024", ",1024 é"]);
        assert!(wrapped("", 8).is_empty());
    }

    #[test]
    fn a_chart_alone_has_its_headline_above_it() {
        let alone =
            |title: &str| Plot::new((0.0, 1.0), (0.0, 1.0), "x", "y").finish_alone(title, "", "", &[]);
        let two = alone("Accuracy < 1 on a data set with a name that is long");
        assert!(two.contains("Accuracy &lt; 1 on a data set with a name that</text>"), "{two}");
        assert!(two.contains(">is long</text>") && two.contains("translate(0 38)"), "{two}");
        assert!(two.contains("viewBox=\"0 0 360 344\""), "{two}");
        assert!(alone("Short").contains("translate(0 22)"));
    }

    #[test]
    fn ticks_are_round_and_within() {
        assert_eq!(ticks((0.0, 1.0)).len(), 6);
        let labels = |range| ticks(range).into_iter().map(label).collect::<Vec<_>>();
        assert_eq!(labels((0.0, 1.0)), ["0", "0.2", "0.4", "0.6", "0.8", "1"]);
        assert_eq!(labels((-3.0, 4.0)), ["−2", "0", "2", "4"]);
        assert_eq!(labels((0.0, 1234.0)), ["0", "250", "500", "750", "1000"]);
        assert_eq!(labels((0.02, 0.05)), ["0.02", "0.03", "0.04", "0.05"]);
    }

    #[test]
    fn ticks_by_ratio_are_powers() {
        let labels = |least, most| {
            let axis = Axis::new(least, most, Some(2.0));
            axis.ticks().into_iter().map(|tick| axis.label(tick)).collect::<Vec<_>>()
        };
        assert_eq!(labels(1.0, 64.0), ["1", "2", "4", "8", "16", "32", "64"]);
        assert_eq!(labels(1.0, 1024.0), ["1", "4", "16", "64", "256", "1024"]);
        assert_eq!(labels(1e-5, 1e2), ["10⁻⁵", "10⁻⁴", "0.001", "0.01", "0.1", "1", "10", "100"]);
        assert_eq!(labels(0.005, 0.3), ["0.00781", "0.01562", "0.03125", "0.0625", "0.125", "0.25"]);
        let tens = Axis::new(0.008, 0.3, Some(10.0));
        assert_eq!(
            tens.ticks().into_iter().map(label).collect::<Vec<_>>(),
            ["0.01", "0.02", "0.05", "0.1", "0.2"]
        );
        assert_eq!(power_label(262_144.0), "2.6·10⁵");
        let axis = Axis::new(1.0, 100.0, Some(10.0));
        assert!((axis.share(10.0) - 0.5).abs() < 1e-12 && axis.share(-3.0).abs() < 1e-12);
    }
}
