//! The charts of a page, each from the numbers it shows.

use crate::plot::Plot;
use crate::{BagShare, number};
use easyllp::Estimate;
use easyllp::estimate::{AtThreshold, Calibration};

const UNIT: (f64, f64) = (0.0, 1.0);

fn key(parts: &[(&str, &str)]) -> String {
    let part =
        |(class, text): &(&str, &str)| format!("<span class=\"key\"><i class=\"{class}\"></i>{text}</span>");
    parts.iter().map(part).collect::<Vec<_>>().concat()
}

fn keys_of_curve(has_estimates: bool, has_truth: bool, chance: Option<&'static str>) -> String {
    let mut parts = Vec::new();
    if has_estimates {
        parts.extend([("", "from bags"), ("is-band", "95 % interval")]);
    }
    if has_truth {
        parts.push(("is-true", "true"));
    }
    parts.extend(chance.map(|chance| ("is-chance", chance)));
    key(&parts)
}

/// The ROC curve: true against false positive rate. The band is the interval of the true positive
/// rate at each threshold.
pub(crate) fn roc(thresholds: &[AtThreshold], truth: &[AtThreshold]) -> Option<String> {
    let shown = if thresholds.is_empty() { truth } else { thresholds };
    let middle = shown.get(shown.len() / 2)?;
    let mut plot = Plot::new(UNIT, UNIT, "false positive rate", "true positive rate");
    plot.line("chance", [(0.0, 0.0), (1.0, 1.0)].into_iter());
    let point = |at: &AtThreshold| (at.fall_out.value, at.recall);
    let points: Vec<(f64, Estimate)> = monotone(thresholds.iter().map(point).collect());
    if !points.is_empty() {
        let start = [(0.0, 0.0, 0.0)];
        let band: Vec<(f64, f64, f64)> =
            start.into_iter().chain(points.iter().map(|(x, y)| (*x, y.low, y.high))).collect();
        plot.band("band", &band);
        plot.line("line", [(0.0, 0.0)].into_iter().chain(points.iter().map(|(x, y)| (*x, y.value))));
    }
    if !truth.is_empty() {
        let points = truth.iter().map(|at| (at.fall_out.value, at.recall.value));
        plot.line("true-line", [(0.0, 0.0)].into_iter().chain(points));
    }
    let words = format!(
        "ROC curve from {}: at a false positive rate of {} the true positive rate is {}.",
        origin(!thresholds.is_empty()),
        number(middle.fall_out.value),
        number(middle.recall.value)
    );
    let keys = keys_of_curve(!thresholds.is_empty(), !truth.is_empty(), Some("chance"));
    Some(plot.finish("ROC curve", &words, &keys))
}

/// Where a curve comes from, if its estimates are not withheld.
fn origin(has_estimates: bool) -> &'static str {
    if has_estimates { "bags" } else { "row labels" }
}

/// Rates that are not monotone by chance are drawn from left to right.
fn monotone(mut points: Vec<(f64, Estimate)>) -> Vec<(f64, Estimate)> {
    let mut so_far: f64 = 0.0;
    for (x, _) in &mut points {
        so_far = so_far.max(*x);
        *x = so_far;
    }
    points
}

/// The precision-recall curve.
pub(crate) fn precision_recall(thresholds: &[AtThreshold], truth: &[AtThreshold]) -> Option<String> {
    let points_of = |all: &[AtThreshold]| -> Vec<(f64, Estimate)> {
        all.iter().filter_map(|at| Some((at.recall.value, at.precision?))).collect()
    };
    let (points, true_points) = (monotone(points_of(thresholds)), points_of(truth));
    let shown = if points.is_empty() { &true_points } else { &points };
    let (last, middle) = (shown.last()?, &shown[shown.len() / 2]);
    let mut plot = Plot::new(UNIT, UNIT, "recall", "precision");
    plot.line("chance", [(0.0, last.1.value), (1.0, last.1.value)].into_iter());
    if !points.is_empty() {
        plot.band("band", &points.iter().map(|(x, y)| (*x, y.low, y.high)).collect::<Vec<_>>());
        plot.line("line", points.iter().map(|(x, y)| (*x, y.value)));
    }
    if !true_points.is_empty() {
        plot.line("true-line", true_points.iter().map(|(x, y)| (*x, y.value)));
    }
    let words = format!(
        "Precision against recall from {}: at a recall of {} the precision is {}.",
        origin(!points.is_empty()),
        number(middle.0),
        number(middle.1.value)
    );
    let keys = keys_of_curve(!points.is_empty(), !true_points.is_empty(), Some("share of all rows"));
    Some(plot.finish("Precision and recall", &words, &keys))
}

/// The calibration curve: observed against predicted shares, by group.
pub(crate) fn calibration(
    all: Option<&Calibration>,
    truth: Option<&Calibration>,
    class: &str,
) -> Option<String> {
    let shown = all.or(truth).filter(|shown| !shown.groups.is_empty())?;
    let mut plot = Plot::new(UNIT, UNIT, "predicted probability", &format!("share of {class}"));
    plot.line("chance", [(0.0, 0.0), (1.0, 1.0)].into_iter());
    for group in all.iter().flat_map(|all| &all.groups) {
        plot.reach("reach", group.predicted, group.observed.low, group.observed.high);
        plot.dot("dot", (group.predicted, group.observed.value), 4.0);
    }
    for group in truth.iter().flat_map(|truth| &truth.groups) {
        plot.dot("true-dot", (group.predicted, group.observed.value), 5.0);
    }
    let words = format!(
        "Calibration in {} groups of rows; the squared calibration error is {}.",
        shown.groups.len(),
        format_args!("{:.5}", shown.squared_error.value)
    );
    let mut parts = Vec::new();
    if all.is_some() {
        parts.push(("", "from bags, with 95 % interval"));
    }
    if truth.is_some() {
        parts.push(("is-true", "true"));
    }
    parts.push(("is-chance", "what a calibrated model has"));
    Some(plot.finish("Calibration", &words, &key(&parts)))
}

/// The histogram of scores.
pub(crate) fn histogram(scores: &[f64], are_probabilities: bool) -> Option<String> {
    const BARS: usize = 25;
    let (least, most) = scores.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), &score| {
        (least.min(score), most.max(score))
    });
    if scores.is_empty() || !(least.is_finite() && most.is_finite()) {
        return None;
    }
    let (least, most) = if are_probabilities { UNIT } else { (least, most.max(least + 1e-9)) };
    let mut counts = [0_usize; BARS];
    for score in scores {
        let place = (score - least) / (most - least) * BARS as f64;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the bars")]
        let place = place.clamp(0.0, BARS as f64 - 1.0) as usize;
        counts[place] += 1;
    }
    let shares = counts.map(|count| count as f64 / scores.len() as f64);
    let highest = shares.iter().fold(0.0_f64, |highest, &share| highest.max(share));
    let name = if are_probabilities { "predicted probability" } else { "score" };
    let mut plot = Plot::new((least, most), (0.0, 1.05 * highest), name, "share of rows");
    let width = (most - least) / BARS as f64;
    for (place, share) in shares.iter().enumerate() {
        let from = least + place as f64 * width;
        plot.bar(from, from + width, *share);
    }
    let mean = scores.iter().sum::<f64>() / scores.len() as f64;
    let words = format!("Histogram of the scores of rows; their mean is {}.", number(mean));
    Some(plot.finish("Scores", &words, &format!("{BARS} bars of equal width; the mean is {}", number(mean))))
}

/// Predicted against reported shares, by bag.
pub(crate) fn bags(bags: &[BagShare], class: &str) -> Option<String> {
    /// The maximum number of dots.
    const MOST: usize = 1500;
    if bags.is_empty() {
        return None;
    }
    let largest = bags.iter().flat_map(|bag| [bag.predicted, bag.reported]).fold(0.0_f64, f64::max);
    let range = (0.0, if largest > 0.5 { 1.0 } else { (2.2 * largest).clamp(0.05, 1.0) / 2.0 });
    let mut plot = Plot::new(range, range, &format!("predicted share of {class}"), "reported share");
    plot.line("chance", [(0.0, 0.0), (range.1, range.1)].into_iter());
    let step = bags.len().div_ceil(MOST);
    let radius = if bags.len() > 200 { 2.5 } else { 4.0 };
    for bag in bags.iter().step_by(step) {
        plot.dot("faint-dot", (bag.predicted, bag.reported), radius);
    }
    let shown = bags.len().div_ceil(step);
    let words =
        format!("{shown} bags, each by the share of {class} that the model predicts and the one reported.");
    let caption = if step == 1 {
        "each dot is a bag; the dotted line is where both agree".to_owned()
    } else {
        format!("each dot is a bag, {shown} of {} shown; the dotted line is where both agree", bags.len())
    };
    Some(plot.finish("Bags, predicted and reported", &words, &caption))
}
