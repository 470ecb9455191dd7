//! REPORT: how good a model is, on one page that needs nothing else: no network, no script, no font. It is drawn with SVG
//! that a phone can read and a printer can print.
//!
//! ```
//! use easyllp::{Bags, Estimator, Link, Predictions, bagging};
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
//! page.figures.push(Figure { name: "accuracy".into(), estimate: estimator.accuracy(&predictions)?, truth: None });
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

/// A figure with its interval, and the true one where it is known.
#[derive(Debug, Clone)]
pub struct Figure {
    /// What it is.
    pub name: String,
    /// From bags.
    pub estimate: Estimate,
    /// From row labels.
    pub truth: Option<f64>,
}

/// What a model and its reports say of one bag.
#[derive(Debug, Clone, Copy)]
pub struct BagShare {
    /// The mean probability of the positive class over its rows.
    pub predicted: f64,
    /// The share of the positive class as reported.
    pub reported: f64,
}

/// Everything on the page; what is empty is left out.
#[derive(Debug, Clone, Default)]
pub struct Page {
    /// The headline.
    pub title: String,
    /// The line below it.
    pub subtitle: String,
    /// What the positive one of two classes is called.
    pub positive: Option<String>,
    /// Headline figures.
    pub figures: Vec<Figure>,
    /// The curve of decisions, from the highest threshold on.
    pub thresholds: Vec<AtThreshold>,
    /// The same from row labels.
    pub true_thresholds: Vec<AtThreshold>,
    /// Whether probabilities hold.
    pub calibration: Option<Calibration>,
    /// The same from row labels.
    pub true_calibration: Option<Calibration>,
    /// Probabilities of the positive class that rows have, or scores.
    pub scores: Vec<f64>,
    /// What the scores are: probabilities, or something else.
    pub scores_are_probabilities: bool,
    /// Bags, predicted and reported.
    pub bags: Vec<BagShare>,
    /// Paragraphs on whether the bags are what the estimates need.
    pub diagnosis: Vec<String>,
}

/// A whole HTML document around what stands on the page; it needs nothing from elsewhere, and may load nothing.
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
    /// A page with a headline and nothing else yet.
    pub fn new(title: impl Into<String>, subtitle: impl Into<String>) -> Self {
        Self { title: title.into(), subtitle: subtitle.into(), ..Self::default() }
    }

    /// The page as one HTML document.
    pub fn html(&self) -> String {
        let mut body =
            format!("<header><h1>{}</h1><p>{}</p></header>\n", escaped(&self.title), escaped(&self.subtitle));
        body.push_str(&self.headline());
        let class = self.positive.as_deref().unwrap_or("the positive class");
        let charts = [
            charts::roc(&self.thresholds, &self.true_thresholds),
            charts::precision_recall(&self.thresholds, &self.true_thresholds),
            self.calibration
                .as_ref()
                .and_then(|all| charts::calibration(all, self.true_calibration.as_ref(), class)),
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
        if self.figures.is_empty() {
            return String::new();
        }
        let mut text = String::from("<section class=\"figures\">\n");
        for Figure { name, estimate, truth } in &self.figures {
            let truth = truth.map_or_else(String::new, |truth| {
                format!("<span class=\"truth\">true: {}</span>", number(truth))
            });
            let _ = writeln!(
                text,
                "<div class=\"figure\"><h2>{}</h2><strong>{}</strong><span>{} to {}</span>{truth}</div>",
                escaped(name),
                number(estimate.value),
                number(estimate.low),
                number(estimate.high),
            );
        }
        text.push_str("</section>\n<p class=\"note\">From the counts of bags, with 95 % intervals; no row label was used.");
        if let Some(positive) = &self.positive {
            let _ = write!(text, " The positive class is <b>{}</b>.", escaped(positive));
        }
        if self.figures.iter().any(|figure| figure.truth.is_some()) {
            text.push_str(" Where row labels are given, the true figure stands beside.");
        }
        if self.figures.iter().any(|figure| !figure.estimate.covers(figure.estimate.value)) {
            text.push_str(
                " An estimate outside of its interval left its natural range, as it may on few bags.",
            );
        }
        text.push_str("</p>\n");
        text
    }
}

/// Three digits behind the point are what intervals deserve.
fn number(value: f64) -> String {
    format!("{value:.3}").replace('-', "−")
}

/// Text that is no markup.
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

    #[test]
    fn what_is_empty_is_left_out() {
        let html = Page::new("A model", "nothing known").html();
        assert!(!html.contains("<svg") && !html.contains("<section"));
    }
}
