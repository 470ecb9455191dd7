//! REPORT: an HTML page on the metrics of a model. It is self-contained: no network, no script, no
//! font. Charts are SVG, readable on a phone and in print.
//!
//! ```
//! use easyllp::{Bags, Estimator, Predictions, bagging, loss::Link};
//! use easyllp_report::{Figure, Page};
//! use ndarray::Array2;
//!
//! let labels: Vec<u32> = (0..2000).map(|row| row % 2).collect();
//! let scores = Array2::from_shape_fn((2000, 1), |(row, _)| (row % 2) as f32 - 0.4);
//! let bags = Bags::from_labels(bagging::random(2000, &bagging::Sizes::Fixed(10), 1)?, &labels, 2)?;
//! let predictions = Predictions::new(scores.view(), Link::Logit)?;
//! let estimator = Estimator::new(&bags)?;
//!
//! let mut page = Page::new("A model", "from 200 bags of 2,000 rows");
//! let estimate = Some(estimator.accuracy(&predictions)?);
//! page.figures.push(Figure { name: "accuracy".into(), estimate, truth: None });
//! page.thresholds = estimator.curve(&predictions, 50)?;
//! let html = page.html();
//! assert!(html.starts_with("<!doctype html>") && html.contains("ROC"));
//! # Ok::<(), easyllp::Error>(())
//! ```

mod charts;
mod lines;
mod plot;

pub use lines::{Line, LineChart, Style};

use easyllp::Estimate;
use easyllp::estimate::{AtThreshold, Calibration};
use std::fmt::Write;

/// A metric with its interval, and the true value if it is known.
#[derive(Debug, Clone)]
pub struct Figure {
    /// The name of the metric.
    pub name: String,
    /// The estimate from bags; none if it is withheld.
    pub estimate: Option<Estimate>,
    /// The true value, from row labels.
    pub truth: Option<f64>,
}

/// A bag's predicted and reported share.
#[derive(Debug, Clone, Copy)]
pub struct BagShare {
    /// The mean predicted probability of the positive class over its rows.
    pub predicted: f64,
    /// The reported share of the positive class.
    pub reported: f64,
}

/// The content of the page. Empty parts are left out.
#[derive(Debug, Clone, Default)]
pub struct Page {
    /// The title.
    pub title: String,
    /// The line below the title.
    pub subtitle: String,
    /// The name of the positive class, for two classes.
    pub positive: Option<String>,
    /// Warnings, shown before any metric.
    pub warning: Option<String>,
    /// The metrics.
    pub figures: Vec<Figure>,
    /// The metrics at thresholds, from the highest threshold down.
    pub thresholds: Vec<AtThreshold>,
    /// The same from row labels.
    pub true_thresholds: Vec<AtThreshold>,
    /// The calibration.
    pub calibration: Option<Calibration>,
    /// The same from row labels.
    pub true_calibration: Option<Calibration>,
    /// Predicted probabilities of the positive class by row, or scores.
    pub scores: Vec<f64>,
    /// The name of the scores' axis: probability or score.
    pub scores_are_probabilities: bool,
    /// Bags, predicted and reported.
    pub bags: Vec<BagShare>,
    /// Paragraphs on whether the bags are random.
    pub diagnosis: Vec<String>,
}

/// Wraps content in a self-contained HTML document that may not load anything.
pub fn document(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n\
         <link rel=\"icon\" href=\"data:,\">\n<style>\n{}</style>\n</head>\n<body>\n<main>\n{body}</main>\n</body>\n</html>\n",
        escaped(title),
        concat!(include_str!("page.css"), include_str!("series.css")),
    )
}

impl Page {
    /// A page with a title and no content.
    pub fn new(title: impl Into<String>, subtitle: impl Into<String>) -> Self {
        Self { title: title.into(), subtitle: subtitle.into(), ..Self::default() }
    }

    /// Renders the page as one HTML document.
    pub fn html(&self) -> String {
        let mut body =
            format!("<header><h1>{}</h1><p>{}</p></header>\n", escaped(&self.title), escaped(&self.subtitle));
        if let Some(warning) = &self.warning {
            let _ = writeln!(body, "<p class=\"warning\" role=\"alert\">{}</p>", escaped(warning));
        }
        body.push_str(&self.headline());
        let class = self.positive.as_deref().unwrap_or("the positive class");
        let charts = [
            charts::roc(&self.thresholds, &self.true_thresholds),
            charts::precision_recall(&self.thresholds, &self.true_thresholds),
            charts::calibration(self.calibration.as_ref(), self.true_calibration.as_ref(), class),
            charts::histogram(&self.scores, self.scores_are_probabilities),
            charts::bags(&self.bags, class),
        ];
        let charts: Vec<String> = charts.into_iter().flatten().collect();
        if !charts.is_empty() {
            let _ = writeln!(body, "<section class=\"charts\">\n{}</section>", charts.concat());
        }
        if !self.diagnosis.is_empty() {
            body.push_str("<section class=\"text\"><h2>The bags</h2>\n");
            for paragraph in &self.diagnosis {
                let _ = writeln!(body, "<p>{}</p>", escaped(paragraph));
            }
            body.push_str("</section>\n");
        }
        document(&self.title, &body)
    }

    fn headline(&self) -> String {
        let known = |figure: &&Figure| figure.estimate.is_some() || figure.truth.is_some();
        if !self.figures.iter().any(|figure| known(&figure)) {
            return String::new();
        }
        let mut text = String::from("<section class=\"figures\">\n");
        for Figure { name, estimate, truth } in self.figures.iter().filter(known) {
            let estimate = estimate.map_or_else(String::new, |estimate| headline_of(&estimate));
            let truth = truth.map_or_else(String::new, |truth| {
                format!("<span class=\"truth\">true: {}</span>", number(truth))
            });
            let _ = writeln!(text, "<div class=\"figure\"><h2>{}</h2>{estimate}{truth}</div>", escaped(name));
        }
        text.push_str("</section>\n<p class=\"note\">");
        let estimates = || self.figures.iter().filter_map(|figure| figure.estimate);
        text.push_str(match estimates().next() {
            Some(_) => "From the counts of bags, with 95 % intervals; no row label was used.",
            None => "Metrics from bags are withheld.",
        });
        if let Some(positive) = &self.positive {
            let _ = write!(text, " The positive class is <b>{}</b>.", escaped(positive));
        }
        if self.figures.iter().any(|figure| figure.truth.is_some()) {
            text.push_str(" Where row labels are given, the true figure stands beside.");
        }
        if estimates().any(|estimate| estimate.outside_range) {
            text.push_str(
                " * The estimate is outside its range: too few bags, or bags that are not random. The nearest possible value is shown.",
            );
        }
        text.push_str("</p>\n");
        text
    }
}

/// A value clipped to its natural range, with its interval.
fn headline_of(estimate: &Estimate) -> String {
    let &Estimate { value, low, high, outside_range, .. } = estimate;
    let interval = if outside_range && high <= low {
        "outside its range".to_owned()
    } else {
        format!("{} to {}", number(low), number(high))
    };
    let (value, mark) = if outside_range { (value.clamp(low, high), "*") } else { (value, "") };
    format!("<strong>{}{mark}</strong><span>{interval}</span>", number(value))
}

/// Three decimals are enough for confidence intervals.
fn number(value: f64) -> String {
    format!("{value:.3}").replace('-', "−")
}

/// Escapes text for HTML.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_never_markup() {
        let mut page = Page::new("<script>alert(1)</script>", "a & b");
        page.diagnosis.push("\"<b>\"".into());
        let html = page.html();
        assert!(!html.contains("<script") && !html.contains("<b>"));
        assert!(html.contains("&lt;script&gt;") && html.contains("a &amp; b"));
    }

    fn estimate(value: f64, low: f64, high: f64, outside_range: bool) -> Estimate {
        let mut estimate = Estimate::new(value, 0.1, [low, high], easyllp::estimate::Form::Mean);
        estimate.outside_range = outside_range;
        estimate
    }

    #[test]
    fn what_cannot_be_true_is_marked() {
        let mut page = Page::new("A model", "from few bags");
        let figure = |estimate| Figure { name: "AUC".into(), estimate: Some(estimate), truth: None };
        page.figures.push(figure(estimate(1.013, 0.95, 1.0, true)));
        page.figures.push(figure(estimate(2.647, 1.0, 1.0, true)));
        let html = page.html();
        assert!(html.contains("1.000*") && html.contains("outside its range"), "{html}");
        assert!(!html.contains("1.013") && !html.contains("2.647") && !html.contains("1.000 to 1.000"));
    }

    #[test]
    fn withheld_metrics_leave_what_labels_say_and_the_warning_first() {
        let mut page = Page::new("A model", "from bags by region");
        page.warning = Some("The bags do not look random".into());
        page.figures.push(Figure { name: "AUC".into(), estimate: None, truth: Some(0.844) });
        page.figures.push(Figure { name: "accuracy".into(), estimate: None, truth: None });
        let html = page.html();
        let place = |text: &str| html.find(text).expect(text);
        assert!(place("The bags do not look random") < place("0.844"));
        assert!(html.contains("Metrics from bags are withheld.") && !html.contains("accuracy"));
    }

    #[test]
    fn what_is_empty_is_left_out() {
        let html = Page::new("A model", "nothing known").html();
        assert!(!html.contains("<svg") && !html.contains("<section"));
    }
}
