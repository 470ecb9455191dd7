//! Metrics of a model: estimated from bags, and true ones if labels are given.

use crate::diagnosis::Shown;
use anyhow::Result;
use comfy_table::{CellAlignment, Table, presets};
use easyllp::estimate::{AtThreshold, Calibration, Confusion, Intervals, LiftRow};
use easyllp::{Bags, Estimate, Estimator, Partition, Predictions, classes::Classes, loss::Link};
use ndarray::Array2;
use serde::Serialize;

/// A row-level metric, estimated from bags and computed from row labels.
#[derive(Debug, Serialize)]
pub(crate) struct Figure {
    pub(crate) name: &'static str,
    /// None if it is withheld.
    pub(crate) from_bags: Option<Estimate>,
    #[serde(rename = "true", skip_serializing_if = "Option::is_none")]
    pub(crate) truth: Option<f64>,
}

/// Curves and groups, for two classes.
#[derive(Debug, Serialize)]
pub(crate) struct Curves {
    /// Metrics at thresholds, for ROC and precision-recall curves.
    pub(crate) thresholds: Vec<AtThreshold>,
    /// The calibration, if scores give probabilities.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) calibration: Option<Calibration>,
    pub(crate) lift: Vec<LiftRow>,
}

/// The metrics of scores: estimated from bags unless they are withheld, and from the row labels, if
/// given, of the rows in bags.
pub(crate) fn figures(
    scores: &Array2<f32>,
    link: Link,
    bags: &Bags,
    labels: Option<&[u32]>,
    intervals: Intervals,
    shown: Shown,
) -> Result<Vec<Figure>> {
    let predictions = &Predictions::new(scores.view(), link)?;
    let truth = |labels| Estimator::new(&single_rows(bags, labels)?)?.metrics(predictions);
    let truth = labels.map(truth).transpose()?;
    let from_bags = Estimator::new(bags)?.intervals(intervals)?.metrics(predictions)?;
    let figure = |(place, (name, from_bags)): (usize, (&'static str, Estimate))| {
        let truth = truth.as_ref().and_then(|truth| truth.get(place)).map(|(_, estimate)| estimate.value);
        Figure { name, from_bags: Some(from_bags).filter(|_| !shown.is_withheld()), truth }
    };
    Ok(from_bags.into_iter().enumerate().map(figure).collect())
}

/// Bags of one row each, for which every estimate is exact.
pub(crate) fn single_rows(bags: &Bags, labels: &[u32]) -> easyllp::Result<Bags> {
    let partition = Partition::new(bags.n_rows(), bags.rows().into_iter().map(|row| [row]))?;
    Bags::from_labels(partition, labels, bags.n_classes())
}

/// Curves of a task of two classes.
pub(crate) fn curves(
    predictions: &Predictions,
    link: Link,
    bags: &Bags,
    intervals: Intervals,
) -> Result<Curves> {
    /// Points of a curve.
    const POINTS: usize = 100;
    const GROUPS: usize = 10;
    let estimator = Estimator::new(bags)?.intervals(intervals)?;
    let has_probabilities = link != Link::Margin;
    Ok(Curves {
        thresholds: estimator.curve(predictions, POINTS)?,
        calibration: has_probabilities.then(|| estimator.calibration(predictions, GROUPS)).transpose()?,
        lift: estimator.lift(predictions, GROUPS)?,
    })
}

/// A sentence that names the positive class.
pub(crate) fn positive_class(classes: &Classes) -> String {
    classes.positive().map_or_else(String::new, |positive| format!(" The positive class is `{positive}`."))
}

/// The metrics as a text table, without estimates if they are withheld.
pub(crate) fn table(figures: &[Figure]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY);
    let mut header = vec![""];
    if figures.iter().any(|figure| figure.from_bags.is_some()) {
        header.extend(["from bags", "95 % interval"]);
    }
    if figures.iter().any(|figure| figure.truth.is_some()) {
        header.push("true");
    }
    table.set_header(header);
    for Figure { name, from_bags, truth } in figures {
        let mut cells = vec![(*name).to_owned()];
        cells.extend(from_bags.iter().flat_map(|estimate| [value(estimate, 3), interval(estimate, 3)]));
        cells.extend(truth.map(|truth| format!("{truth:.3}")));
        table.add_row(cells);
    }
    right_aligned(table, 1)
}

/// What an asterisk in a table stands for.
pub(crate) const ON_ASTERISKS: &str = "* The estimate is outside its range: too few bags, or bags that are not random. The nearest \
                                       possible value is shown.";

/// A value clipped to its natural range, marked if it differs.
pub(crate) fn value(estimate: &Estimate, decimals: usize) -> String {
    if estimate.outside_range {
        format!("{:.decimals$}*", estimate.value.clamp(estimate.low, estimate.high))
    } else {
        format!("{:.decimals$}", estimate.value)
    }
}

/// An interval; if none of it is within the range, a note.
pub(crate) fn interval(estimate: &Estimate, decimals: usize) -> String {
    let Estimate { low, high, outside_range, .. } = *estimate;
    let [low_end, high_end] = [low, high].map(|end| format!("{end:.decimals$}"));
    if outside_range && high <= low { "outside its range".into() } else { format!("{low_end} to {high_end}") }
}

/// The calibration as a text table.
pub(crate) fn calibration_table(calibration: &Calibration) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY);
    table.set_header(["share of rows", "predicted", "from bags", "95 % interval"]);
    for group in &calibration.groups {
        table.add_row([
            format!("{:.3}", group.share),
            format!("{:.3}", group.predicted),
            value(&group.observed, 3),
            interval(&group.observed, 3),
        ]);
    }
    right_aligned(table, 0)
}

/// The lift as a text table.
pub(crate) fn lift_table(lift: &[LiftRow]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY);
    table.set_header(["best-scored rows", "lift", "95 % interval", "of all positives", "95 % interval"]);
    for row in lift {
        table.add_row([
            format!("{:.3}", row.selected),
            value(&row.lift, 2),
            interval(&row.lift, 2),
            value(&row.captured, 3),
            interval(&row.captured, 3),
        ]);
    }
    right_aligned(table, 0)
}

/// The confusion matrix as a text table.
pub(crate) fn confusion_table(confusion: &Confusion, classes: &[String]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY);
    table.set_header(
        std::iter::once("class, taken for".to_owned())
            .chain(classes.iter().cloned())
            .chain(["recall".into()]),
    );
    for ((class, line), recall) in classes.iter().zip(&confusion.shares).zip(&confusion.recalls) {
        let mut cells = vec![class.clone()];
        cells.extend(line.iter().map(|share| value(share, 3)));
        cells.push(recall.map_or_else(String::new, |recall| value(&recall, 3)));
        table.add_row(cells);
    }
    right_aligned(table, 1)
}

fn right_aligned(mut table: Table, from: usize) -> Table {
    for column in table.column_iter_mut().skip(from) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
