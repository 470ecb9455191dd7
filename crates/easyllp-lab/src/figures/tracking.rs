//! The loss by epoch, true and estimated from bags.

use super::Figure;
use crate::experiment::Tracking;
use crate::point::{Point, lines};
use easyllp_report::{Line, LineChart, Style};

pub(super) fn figures(tracking: &Tracking, points: &[Point]) -> Vec<Figure> {
    let numbers = lines(points, |_| true, "training loss");
    if numbers.is_empty() {
        return Vec::new();
    }
    // The smooth line lies upon the other. With as many bags as there are the centred form cannot be told from the paper's: it is among the
    // numbers only.
    let line = |series: &str| {
        let (name, line) = numbers.iter().find(|(name, _)| name == series)?;
        let points = line.iter().map(|(x, found)| (*x, found.mean, found.deviation)).collect();
        Some(Line { name: name.clone(), style: Style::Band, points })
    };
    let chart = LineChart {
        title: format!("Training loss, {} rows in a bag, regrouped in every round", tracking.bag_size),
        x_name: "round".into(),
        y_name: "log loss on the rows to train on".into(),
        x_by_ratio: false,
        y_by_ratio: false,
        lines: ["from bags", "true"].into_iter().filter_map(line).collect(),
    };
    vec![Figure { name: "loss".into(), chart, numbers }]
}
