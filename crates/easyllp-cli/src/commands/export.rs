//! `easyllp export`: export a model as ONNX.

use crate::messages::note;
use anyhow::Result;
use clap::Args;
use easyllp::table::ColumnEncoding;
use easyllp::{ModelFile, files::write_whole};
use std::path::PathBuf;

/// Write a model as ONNX, for other programs and languages to run.
///
/// The file has an input for each column by its name, with any number of rows. Numbers are double[rows, 1], where NaN is missing. Text
/// is string[rows, 1], where the empty one is missing. Lists of numbers are float[rows, width]. Its outputs are `label`,
/// `probabilities` and `scores`.
///
/// Hashed columns are not supported: train with a --max-vocabulary that keeps their values.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Model file
    model: PathBuf,

    /// ONNX file to write
    #[arg(long, value_name = "FILE")]
    onnx: PathBuf,
}

pub(crate) fn run(args: &ExportArgs) -> Result<()> {
    let file = ModelFile::load(&args.model)?;
    write_whole(&args.onnx, &file.to_onnx()?)?;
    note(format!("wrote {}, whose inputs are {}", args.onnx.display(), inputs(&file)));
    Ok(())
}

/// The inputs of the graph, grouped by type.
fn inputs(file: &ModelFile) -> String {
    /// The maximum number of names in a message.
    const MOST_NAMES: usize = 6;
    let mut kinds: Vec<(String, Vec<&str>)> = Vec::new();
    for column in file.encoder.columns() {
        let kind = match &column.encoding {
            ColumnEncoding::Standardise { .. } => "double[rows, 1]".into(),
            ColumnEncoding::StandardiseVector { means, .. } => format!("float[rows, {}]", means.len()),
            ColumnEncoding::AsIs { width } => format!("float[rows, {width}]"),
            ColumnEncoding::Vocabulary(_) | ColumnEncoding::Hash(_) => "string[rows, 1]".into(),
        };
        match kinds.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, names)) => names.push(&column.name),
            None => kinds.push((kind, vec![&column.name])),
        }
    }
    let list = |(kind, names): (String, Vec<&str>)| {
        let some = names[..names.len().min(MOST_NAMES)].join(", ");
        match names.len().saturating_sub(MOST_NAMES) {
            0 => format!("{kind}: {some}"),
            more => format!("{kind}: {some} and {more} more"),
        }
    };
    kinds.into_iter().map(list).collect::<Vec<_>>().join("; ")
}
