//! `easyllp show`: what is in a model file.

use crate::output::{print, thousands};
use anyhow::Result;
use clap::Args;
use easyllp::table::ColumnEncoding;
use easyllp::{LinearModel, Model, ModelFile};
use std::fmt::Write;
use std::path::PathBuf;

/// Show what a model file holds: columns, prior, settings, top weights.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The model file
    model: PathBuf,

    /// How many of the largest weights to show
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
}

pub(crate) fn run(args: &ShowArgs) -> Result<()> {
    let file = ModelFile::load(&args.model)?;
    let mut text = String::new();
    let _ = writeln!(text, "{} model, {} loss, method {}", file.name, file.loss.as_str(), file.method);
    let shares: Vec<String> = file
        .classes
        .names()
        .iter()
        .zip(file.prior.classes())
        .map(|(class, p)| format!("{class} {p:.4}"))
        .collect();
    let _ = writeln!(text, "prior      {}", shares.join(", "));
    for (name, value) in &file.settings {
        let _ = writeln!(text, "{name:<10} {value}");
    }
    let _ = writeln!(text, "data       {}\n\ncolumns", file.fingerprint);
    for column in file.encoder.columns() {
        let how = match &column.encoding {
            ColumnEncoding::Standardise { mean, scale, flags_missing, range: (low, high) } => {
                let flag = if *flags_missing { ", a flag where it is missing" } else { "" };
                format!("number, {low} to {high}, mean {mean:.4}, standard deviation {scale:.4}{flag}")
            }
            ColumnEncoding::StandardiseVector { means, .. } => format!("list of {} numbers", means.len()),
            ColumnEncoding::AsIs { width } => format!("list of {width} numbers, as they are"),
            ColumnEncoding::Vocabulary(values) => format!("one of {} values", values.len()),
            ColumnEncoding::Hash(buckets) => format!("hashed into {buckets} buckets"),
        };
        let _ = writeln!(text, "  {:<20} {how}", column.name);
    }
    if let Some(model) = file.model.as_linear() {
        let mut weights = weights(&file, model);
        weights.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
        let towards = file.classes.positive().map_or_else(String::new, |class| format!(", towards {class}"));
        let _ = writeln!(text, "\nlargest weights{towards}");
        for (name, weight) in weights.iter().take(args.top) {
            let _ = writeln!(text, "  {weight:>9.4}  {name}");
        }
    } else {
        let _ = writeln!(text, "\n{} parameters", thousands(file.model.parameters().len()));
        for block in file.model.parameters().blocks() {
            let shape = block.values();
            let _ = writeln!(text, "  {:<20} {} × {}", block.name(), shape.nrows(), shape.ncols());
        }
    }
    print(&text)
}

/// Every weight by the feature and class it belongs to.
fn weights(file: &ModelFile, model: &LinearModel) -> Vec<(String, f32)> {
    let mut names: Vec<String> = Vec::new();
    let mut weights = Vec::new();
    let of_class = |column: usize| {
        if file.classes.len() == 2 { String::new() } else { format!(" → {}", file.classes.names()[column]) }
    };
    let mut field = 0;
    for column in file.encoder.columns() {
        match &column.encoding {
            ColumnEncoding::Standardise { flags_missing, .. } => {
                names.push(column.name.clone());
                names.extend(flags_missing.then(|| format!("{} is missing", column.name)));
            }
            ColumnEncoding::StandardiseVector { means, .. } => {
                names.extend((0..means.len()).map(|place| format!("{}[{place}]", column.name)));
            }
            ColumnEncoding::AsIs { width } => {
                names.extend((0..*width).map(|place| format!("{}[{place}]", column.name)));
            }
            ColumnEncoding::Vocabulary(values) => {
                for (id, value) in values.iter().enumerate() {
                    for (score, weight) in model.categories(field).row(id + 1).iter().enumerate() {
                        weights.push((format!("{} = {value}{}", column.name, of_class(score)), *weight));
                    }
                }
                field += 1;
            }
            ColumnEncoding::Hash(_) => {
                for ((bucket, score), weight) in model.categories(field).indexed_iter() {
                    weights.push((format!("{} in bucket {bucket}{}", column.name, of_class(score)), *weight));
                }
                field += 1;
            }
        }
    }
    for ((feature, score), weight) in model.weights().indexed_iter() {
        weights.push((format!("{}{}", names[feature], of_class(score)), *weight));
    }
    weights
}
