//! `easyllp evaluate`: how good a model is, from bags alone.

use crate::commands::predict::open_for;
use crate::commands::{parse_count, use_threads};
use crate::data::{ReportsArgs, RowsArgs};
use crate::figures::{figures, table};
use crate::output::{print, thousands};
use anyhow::Result;
use clap::Args;
use easyllp::table::labels;
use easyllp::{Model, ModelFile};
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Say how good a model is on rows, from the counts of their bags.
///
/// The bags must be ones that the model was not trained on. With --label the true figures stand beside the estimates.
#[derive(Debug, Args)]
pub(crate) struct EvaluateArgs {
    /// The model file
    #[arg(long, value_name = "FILE")]
    model: PathBuf,
    #[command(flatten)]
    rows: RowsArgs,
    #[command(flatten)]
    reports: ReportsArgs,

    /// A column with the rows' true labels, where there are some
    #[arg(long, value_name = "COLUMN")]
    label: Option<String>,

    /// Values of the label that are positive
    #[arg(long, value_name = "VALUE", value_delimiter = ',', requires = "label")]
    positive: Vec<String>,

    /// Print JSON for machines instead of the table
    #[arg(long)]
    json: bool,

    /// Threads; by default one a core. The result does not depend on it
    #[arg(long, value_name = "N", value_parser = parse_count)]
    threads: Option<NonZeroUsize>,
}

pub(crate) fn run(args: &EvaluateArgs) -> Result<()> {
    use_threads(args.threads)?;
    let file = ModelFile::load(&args.model)?;
    let features: Vec<String> = file.encoder.columns().iter().map(|column| column.name.clone()).collect();
    let rows = file.encoder.encode(&open_for(&file, &args.rows.rows)?.read(&features)?)?;
    let mut columns = args.reports.key.clone();
    columns.extend(args.label.iter().filter(|label| !args.reports.key.contains(label)).cloned());
    let known = args.rows.open(&args.reports.key)?.read(&columns)?;
    let joined = args.reports.join(&args.rows, &known)?;
    anyhow::ensure!(
        joined.bags.n_classes() == file.classes.len(),
        "the reports count {} classes, but the model knows {}",
        joined.bags.n_classes(),
        file.classes.len()
    );
    let scores = file.model.scores(&rows)?;
    let truth =
        args.label.as_ref().map(|name| labels(name, known.column(name)?, &args.positive)).transpose()?;
    let link = file.loss.training()?.link();
    let found = figures(&scores, link, &joined.bags, truth.as_ref().map(|truth| &truth.labels[..]))?;
    if args.json {
        return print(&format!("{}\n", serde_json::to_string_pretty(&found)?));
    }
    print(&format!(
        "{}\nFrom {} bags of {} rows.\n",
        table(&found),
        thousands(joined.bags.n_bags()),
        thousands(joined.bags.n_members())
    ))
}
