//! Log loss, Brier score and accuracy: from bags, and true where labels are given.

use anyhow::Result;
use comfy_table::{CellAlignment, Table, presets};
use easyllp::{Bags, Estimate, Estimator, Link, Predictions, metrics};
use ndarray::{Array2, Axis};
use serde::Serialize;

/// A figure of rows, as bags tell it and as labels do.
#[derive(Debug, Serialize)]
pub(crate) struct Figure {
    pub(crate) name: &'static str,
    pub(crate) from_bags: Estimate,
    #[serde(rename = "true", skip_serializing_if = "Option::is_none")]
    pub(crate) truth: Option<f64>,
}

/// The figures of scores, from bags and, given the labels of all rows, in truth: of the rows that are in bags.
pub(crate) fn figures(
    scores: &Array2<f32>,
    link: Link,
    bags: &Bags,
    labels: Option<&[u32]>,
) -> Result<Vec<Figure>> {
    let predictions = &Predictions::new(scores.view(), link)?;
    let estimator = Estimator::new(bags)?;
    let members: Vec<usize> = bags.rows().into_iter().map(|row| row as usize).collect();
    let of_members = labels.map(|labels| {
        let labels: Vec<u32> = members.iter().map(|&row| labels[row]).collect();
        (scores.select(Axis(0), &members), labels)
    });
    let truth = |of: fn(&Predictions, &[u32]) -> easyllp::Result<f64>| {
        let of_members = of_members.as_ref();
        of_members.map(|(scores, labels)| of(&Predictions::new(scores.view(), link)?, labels)).transpose()
    };
    Ok(vec![
        Figure {
            name: "log loss",
            from_bags: estimator.log_loss(predictions)?,
            truth: truth(metrics::log_loss)?,
        },
        Figure { name: "Brier", from_bags: estimator.brier(predictions)?, truth: truth(metrics::brier)? },
        Figure {
            name: "accuracy",
            from_bags: estimator.accuracy(predictions)?,
            truth: truth(metrics::accuracy)?,
        },
    ])
}

/// The figures as a table for people.
pub(crate) fn table(figures: &[Figure]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY);
    let with_truth = figures.iter().any(|figure| figure.truth.is_some());
    let mut header = vec!["", "from bags", "95 % interval"];
    if with_truth {
        header.push("true");
    }
    table.set_header(header);
    for Figure { name, from_bags, truth } in figures {
        let mut cells = vec![
            (*name).to_owned(),
            format!("{:.3}", from_bags.value),
            format!("{:.3} to {:.3}", from_bags.low, from_bags.high),
        ];
        cells.extend(truth.map(|truth| format!("{truth:.3}")));
        table.add_row(cells);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
