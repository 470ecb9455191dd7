//! `easyllp show`: show the content of a model file.

use crate::output::{print, print_json, thousands};
use anyhow::Result;
use clap::Args;
use easyllp::table::{ColumnEncoder, ColumnEncoding};
use easyllp::{
    FitConfig, ModelFile, ModelSpec,
    model::{LinearModel, Model},
};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

/// Show what a model file holds: columns, prior, settings, top weights.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Model file
    model: PathBuf,

    /// Show the N largest weights
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The content of a model file, for JSON.
#[derive(Debug, Serialize)]
struct Contents<'f> {
    model: &'f ModelSpec,
    loss: &'f str,
    method: &'f str,
    /// The settings of the fit; none if the method is not built in.
    config: Option<&'f FitConfig>,
    classes: &'f [String],
    prior: &'f [f64],
    settings: &'f BTreeMap<String, String>,
    data: &'f str,
    columns: &'f [ColumnEncoder],
    /// The largest weights of a linear model.
    #[serde(skip_serializing_if = "Option::is_none")]
    weights: Option<Vec<Weight>>,
    /// The parameter blocks of a network.
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<Vec<Shape<'f>>>,
}

#[derive(Debug, Serialize)]
struct Weight {
    feature: String,
    weight: f32,
}

#[derive(Debug, Serialize)]
struct Shape<'f> {
    name: &'f str,
    shape: [usize; 2],
}

impl<'f> Contents<'f> {
    fn new(file: &'f ModelFile, top: usize) -> Self {
        let weight = |(feature, weight)| Weight { feature, weight };
        let weights = file.model.as_linear().map(|model| largest_weights(file, model, top));
        let block = |block: &'f easyllp::model::Block| Shape {
            name: block.name(),
            shape: [block.values().nrows(), block.values().ncols()],
        };
        let parameters =
            weights.is_none().then(|| file.model.parameters().blocks().iter().map(block).collect());
        Self {
            model: &file.name,
            loss: &file.loss,
            method: &file.method,
            config: file.config.as_ref(),
            classes: file.classes.names(),
            prior: file.prior.classes(),
            settings: &file.settings,
            data: &file.fingerprint,
            columns: file.encoder.columns(),
            weights: weights.map(|weights| weights.into_iter().map(weight).collect()),
            parameters,
        }
    }
}

pub(crate) fn run(args: &ShowArgs) -> Result<()> {
    let file = ModelFile::load(&args.model)?;
    if args.json {
        return print_json(&Contents::new(&file, args.top));
    }
    print(&text(&file, args.top))
}

/// The content of a model file, as text.
fn text(file: &ModelFile, top: usize) -> String {
    let mut text = String::new();
    let method = file.config.as_ref().map_or(file.method.clone(), |config| config.method.to_string());
    let _ = writeln!(text, "{} model, {} loss, method {method}", file.name, file.loss);
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
        let towards = file.classes.positive().map_or_else(String::new, |class| format!(", towards {class}"));
        let _ = writeln!(text, "\nlargest weights{towards}");
        for (name, weight) in largest_weights(file, model, top) {
            let _ = writeln!(text, "  {weight:>9.4}  {name}");
        }
    } else {
        let _ = writeln!(text, "\n{} parameters", thousands(file.model.parameters().len()));
        for block in file.model.parameters().blocks() {
            let shape = block.values();
            let _ = writeln!(text, "  {:<20} {} × {}", block.name(), shape.nrows(), shape.ncols());
        }
    }
    text
}

/// The largest weights in absolute value, in descending order.
fn largest_weights(file: &ModelFile, model: &LinearModel, top: usize) -> Vec<(String, f32)> {
    let mut weights = weights(file, model);
    weights.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
    weights.truncate(top);
    weights
}

/// Every weight with its feature and class.
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
