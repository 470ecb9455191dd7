//! REPORT: results as single numbers. All experiments write the same kind of line, so they share
//! one journal, CSV format and drawing code.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// A result.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// The panel that it belongs to, such as a task.
    pub panel: String,
    /// The series in it, such as a method.
    pub series: String,
    /// The position on the x axis, such as the bag size.
    pub x: f64,
    /// The replica, counted from 1.
    pub replica: u32,
    /// The name of the measure.
    pub measure: String,
    /// The value.
    pub value: f64,
}

const HEADER: &str = "panel,series,x,replica,measure,value\n";

/// Points as CSV, with a header and full precision.
pub fn to_csv(points: &[Point]) -> String {
    let mut text = HEADER.to_owned();
    for point in points {
        let Point { panel, series, x, replica, measure, value } = point;
        debug_assert!(![panel, series, measure].iter().any(|name| name.contains([',', '"', '\n'])));
        let _ = writeln!(text, "{panel},{series},{x:?},{replica},{measure},{value:?}");
    }
    text
}

/// Reads the output of [`to_csv`]; the error is the first invalid line, counted from 1.
pub fn from_csv(text: &str) -> Result<Vec<Point>, (usize, String)> {
    let mut lines = text.split_inclusive('\n').enumerate();
    match lines.next() {
        Some((_, header)) if header == HEADER => {}
        other => return Err((1, other.map_or_else(String::new, |(_, line)| line.trim_end().to_owned()))),
    }
    let point = |line: &str| {
        let mut fields = line.strip_suffix('\n')?.split(',');
        let mut field = || fields.next();
        let (panel, series) = (field()?.to_owned(), field()?.to_owned());
        let (x, replica) = (field()?.parse().ok()?, field()?.parse().ok()?);
        let (measure, value) = (field()?.to_owned(), field()?.parse().ok()?);
        field().is_none().then_some(Point { panel, series, x, replica, measure, value })
    };
    lines.map(|(place, line)| point(line).ok_or_else(|| (place + 1, line.trim_end().to_owned()))).collect()
}

/// A summary of numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation; 0 for a single one.
    pub deviation: f64,
    /// The number of values.
    pub n: usize,
}

impl Summary {
    /// Summarises these numbers; none if there are none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let n = values.len();
        if n == 0 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / n as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Some(Self { mean, deviation: (squares / (n.max(2) - 1) as f64).sqrt(), n })
    }

    /// The standard error of the mean.
    pub fn standard_error(&self) -> f64 {
        self.deviation / (self.n as f64).sqrt()
    }
}

/// Series of one measure, averaged over replicas: in order of occurrence, points sorted by x. With
/// several panels a replica counts with its mean over panels, and is left out if a panel is
/// missing, since tasks differ in difficulty.
pub fn lines(
    points: &[Point],
    panels: impl Fn(&str) -> bool,
    measure: &str,
) -> Vec<(String, Vec<(f64, Summary)>)> {
    let mut order: Vec<&str> = Vec::new();
    let mut all_panels: BTreeSet<&str> = BTreeSet::new();
    // Places are compared by their bits, which for numbers from 0 on is their order.
    let mut found: BTreeMap<(&str, u64, u32), BTreeMap<&str, f64>> = BTreeMap::new();
    for point in points.iter().filter(|point| point.measure == measure && panels(&point.panel)) {
        if !order.contains(&point.series.as_str()) {
            order.push(&point.series);
        }
        all_panels.insert(&point.panel);
        let replica = found.entry((&point.series, point.x.to_bits(), point.replica)).or_default();
        replica.insert(&point.panel, point.value);
    }
    found.retain(|_, values| values.len() == all_panels.len());
    let line = |series: &str| {
        let mut places: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        for ((_, x, _), values) in found.iter().filter(|((of, ..), _)| *of == series) {
            let values: Vec<f64> = values.values().copied().collect();
            places.entry(*x).or_default().extend(Summary::of(&values).map(|replica| replica.mean));
        }
        let places = places.into_iter();
        (
            series.to_owned(),
            places.filter_map(|(x, values)| Some((f64::from_bits(x), Summary::of(&values)?))).collect(),
        )
    };
    order.into_iter().map(line).filter(|(_, line): &(_, Vec<_>)| !line.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(panel: &str, series: &str, x: f64, replica: u32, value: f64) -> Point {
        let (panel, series, measure) = (panel.into(), series.into(), "accuracy".into());
        Point { panel, series, x, replica, measure, value }
    }

    #[test]
    fn what_is_written_is_read() {
        let points =
            [point("a b", "easyllp", 2.0, 1, 0.1 + 0.2), point("a b", "event", 1e-7, 30, f64::INFINITY)];
        let text = to_csv(&points);
        assert_eq!(from_csv(&text).unwrap(), points);
        assert_eq!(from_csv(&text.replace(",30,", ",x,")).unwrap_err().0, 3);
        assert_eq!(from_csv("").unwrap_err().0, 1);
        // Cut off anywhere but at the end of a line.
        let whole = [HEADER.len(), text.find("\na b,event").unwrap() + 1, text.len()];
        for length in 0..text.len() {
            assert_eq!(from_csv(&text[..length]).is_ok(), whole.contains(&length), "{length}");
        }
    }

    #[test]
    fn replicas_are_summed_up_and_panels_averaged() {
        let points = [
            point("0", "b", 4.0, 1, 1.0),
            point("1", "b", 4.0, 1, 1.0),
            point("0", "b", 2.0, 1, 2.0),
            point("1", "b", 2.0, 1, 4.0),
            point("0", "b", 2.0, 2, 5.0),
            point("1", "b", 2.0, 2, 5.0),
            // No panel 1: the third replica is no mean of both.
            point("0", "b", 2.0, 3, 9.0),
            point("0", "a", 2.0, 1, 7.0),
            point("other", "a", 2.0, 1, 70.0),
        ];
        let found = lines(&points, |panel| panel != "other", "accuracy");
        // What has no whole replica is no line.
        assert_eq!(found.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["b"]);
        let two = Summary { mean: 4.0, deviation: 2.0_f64.sqrt(), n: 2 };
        assert_eq!(found[0].1, [(2.0, two), (4.0, Summary { mean: 1.0, deviation: 0.0, n: 1 })]);
        assert!((two.standard_error() - 1.0).abs() < 1e-12);
        let of_one = lines(&points, |panel| panel == "0", "accuracy");
        assert_eq!(of_one.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["b", "a"]);
        assert_eq!(of_one[0].1[0].1.n, 3);
        assert!(lines(&points, |_| true, "loss").is_empty());
    }
}
