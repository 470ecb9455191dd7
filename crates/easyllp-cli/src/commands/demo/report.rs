//! The demo's result, as JSON and text.

use super::Source;
use crate::figures::{ON_ASTERISKS, interval, value};
use crate::output::thousands;
use comfy_table::{CellAlignment, Table, presets};
use easyllp::Estimate;
use serde::Serialize;
use std::fmt::Write;

#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) version: &'static str,
    pub(super) dataset: Source,
    pub(super) task: String,
    pub(super) bag_size: usize,
    pub(super) seed: u64,
    pub(super) train: PartSize,
    pub(super) test: PartSize,
    pub(super) models: Vec<ModelReport>,
}

#[derive(Debug, Serialize)]
pub(super) struct PartSize {
    pub(super) rows: usize,
    pub(super) bags: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum TrainedOn {
    RowLabels,
    Naive,
    #[serde(rename = "easyllp")]
    EasyLlp,
}

impl TrainedOn {
    fn name(self) -> &'static str {
        match self {
            Self::RowLabels => "row labels",
            Self::Naive => "bags, naive",
            Self::EasyLlp => "bags, EasyLLP",
        }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct ModelReport {
    pub(super) trained_on: TrainedOn,
    pub(super) log_loss: Figure,
    pub(super) brier: Figure,
    pub(super) accuracy: Figure,
    /// Share of the positive test rows that are called positive.
    pub(super) recall: Option<f64>,
    pub(super) l2: f64,
    pub(super) training: Course,
}

type FigureOf = fn(&ModelReport) -> &Figure;

/// A metric on the test rows.
#[derive(Debug, Serialize)]
pub(super) struct Figure {
    #[serde(rename = "true")]
    pub(super) truth: f64,
    pub(super) from_bags: Estimate,
}

#[derive(Debug, Serialize)]
pub(super) struct Course {
    pub(super) iterations: usize,
    pub(super) stopped: easyllp::train::Stop,
}

impl Report {
    /// The report as text; `positive` names the rows of class 1.
    pub(super) fn text(&self, positive: Option<&str>) -> String {
        let mut text = format!(
            "{}, {}: {} training rows in {} bags of {}, {} test rows in {} bags\n\n",
            if self.dataset == Source::Adult { "Adult" } else { "optdigits" },
            self.task,
            thousands(self.train.rows),
            thousands(self.train.bags),
            self.bag_size,
            thousands(self.test.rows),
            thousands(self.test.bags),
        );
        let _ = writeln!(text, "{}\n", self.table());
        let estimates = self.models.iter().flat_map(|model| [&model.log_loss, &model.brier, &model.accuracy]);
        if estimates.map(|figure| &figure.from_bags).any(|estimate| estimate.outside_range) {
            let _ = writeln!(text, "{ON_ASTERISKS}");
        }
        let _ = writeln!(
            text,
            "{}\n{ON_INTERVALS}",
            if self.bag_size == 1 { ON_BAGS_OF_ONE } else { ON_METHODS }
        );
        if let Some(positive) = positive {
            let found: Vec<String> = self
                .models
                .iter()
                .filter_map(|model| {
                    Some(format!("{:.0} % ({})", 100.0 * model.recall?, model.trained_on.name()))
                })
                .collect();
            if !found.is_empty() {
                let _ = writeln!(text, "{positive} found among the test rows: {}.", found.join(", "));
            }
        }
        text
    }

    fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_style(presets::UTF8_HORIZONTAL_ONLY);
        table.set_header(["", "trained on", "true", "from bags", "95 % interval"]);
        let figures: [(&str, FigureOf); 3] =
            [("log loss", |m| &m.log_loss), ("Brier", |m| &m.brier), ("accuracy", |m| &m.accuracy)];
        for (name, figure) in figures {
            let lines = |line: &dyn Fn(&ModelReport) -> String| {
                self.models.iter().map(line).collect::<Vec<_>>().join("\n")
            };
            table.add_row([
                name.to_owned(),
                lines(&|model| model.trained_on.name().to_owned()),
                lines(&|model| format!("{:.3}", figure(model).truth)),
                lines(&|model| value(&figure(model).from_bags, 3)),
                lines(&|model| interval(&figure(model).from_bags, 3)),
            ]);
        }
        for column in table.column_iter_mut().skip(2) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table
    }
}

const ON_METHODS: &str = "\
Log loss and Brier score measure probabilities. Those of the naive baseline stay
near the overall share of each class, even on balanced tasks, where it ranks rows
about as well as EasyLLP.";

const ON_BAGS_OF_ONE: &str = "\
In a bag of one row the count is the label: all three models are trained on the same labels.";

const ON_INTERVALS: &str = "\
\"From bags\" used only the counts of the test bags, no row labels. Its intervals
have a coverage of 95 % or more.";
