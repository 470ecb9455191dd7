//! `easyllp predict`: predict rows, batch by batch.

use crate::commands::{parse_count, use_threads};
use crate::config::ConfigFile;
use crate::data::DataConfig;
use crate::messages::warn;
use crate::output::refuse_overwrite;
use anyhow::Result;
use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use clap::Args;
use easyllp::ModelFile;
use easyllp::table::{Delimiter, TableWriter, Unfamiliar};
use ndarray::ArrayView1;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

/// Predict classes of rows, with probabilities.
///
/// Writes a column `probability`, that of the positive class, which `easyllp show` names; for more than two classes a column
/// `probability_CLASS` for each. The column `predicted_class` has the most likely class. Memory does not grow with the file.
#[derive(Debug, Args)]
pub(crate) struct PredictArgs {
    /// Model file
    #[arg(long, value_name = "FILE")]
    model: PathBuf,

    /// Read `rows`, `delimiter` and `threads` from a TOML file. Options on the command line override it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Rows to predict
    #[arg(long, value_name = "FILE", required_unless_present = "config", num_args = 1..)]
    rows: Vec<String>,

    /// Delimiter of text files: comma, tab, semicolon or pipe. [default: tab for .tsv, otherwise inferred from the
    /// header]
    #[arg(long, value_name = "NAME")]
    delimiter: Option<Delimiter>,

    /// Columns of the rows to write beside the predictions
    #[arg(long, value_name = "COLUMN", value_delimiter = ',')]
    keep: Vec<String>,

    /// Reject rows with values unlike the training rows: unseen, missing or out of range. Nothing is written
    #[arg(long)]
    strict: bool,

    /// Threads. [default: one per core]
    #[arg(long, value_name = "N", value_parser = parse_count)]
    threads: Option<NonZeroUsize>,

    /// File to write: .csv, .parquet or .arrow
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

const PROBABILITY: &str = "probability";
const PREDICTED_CLASS: &str = "predicted_class";

pub(crate) fn run(args: &PredictArgs) -> Result<()> {
    let settings = ConfigFile::read(args.config.as_deref())?;
    use_threads(args.threads.or(settings.threads))?;
    let rows = if args.rows.is_empty() { settings.data.rows } else { args.rows.clone() };
    let delimiter = args.delimiter.or(settings.data.delimiter);
    let data = DataConfig { rows, delimiter, ..DataConfig::default() };
    data.check(false)?;
    let file = ModelFile::load(&args.model)?;
    // As the files have them, and not as the encoder would read them.
    file.encoder.check_kinds(data.kinds()?.columns())?;
    let source = data.source(&data.rows, file.encoder.read_as())?;
    let features: Vec<String> = file.encoder.columns().iter().map(|column| column.name.clone()).collect();
    let kept = args.keep.iter().map(|name| {
        source.kind(name)?;
        Ok(source.schema().field_with_name(name)?.clone())
    });
    let mut fields = kept.collect::<Result<Vec<Field>>>()?;
    let number = |name: String| Field::new(name, DataType::Float64, false);
    let classes = file.classes.names();
    let is_binary = classes.len() == 2;
    if is_binary {
        fields.push(number(PROBABILITY.into()));
    } else {
        fields.extend(classes.iter().map(|class| number(format!("{PROBABILITY}_{class}"))));
    }
    fields.push(Field::new(PREDICTED_CLASS, DataType::Utf8, false));
    refuse_duplicates(&fields)?;
    let schema = Arc::new(Schema::new(fields));
    refuse_overwrite(&args.out, &data.rows)?;
    let mut writer = TableWriter::create(&args.out, Arc::clone(&schema))?;
    let mut columns: Vec<String> = features.iter().chain(&args.keep).cloned().collect();
    columns.sort_unstable();
    columns.dedup();
    let mut unfamiliar = Unfamiliar::default();
    for batch in source.batches(&columns) {
        let batch = batch?;
        if batch.num_rows() == 0 {
            continue;
        }
        let table = source.table(&batch, &features)?;
        unfamiliar.merge(file.encoder.unfamiliar(&table));
        let rows = file.encoder.encode(&table)?;
        let probabilities = file.probabilities(&rows)?;
        let mut columns: Vec<ArrayRef> = source.plain(&batch, &args.keep)?;
        let of_class = |class: ArrayView1<f64>| Arc::new(Float64Array::from(class.to_vec())) as ArrayRef;
        // Of two classes one probability is enough.
        columns.extend(probabilities.columns().into_iter().skip(usize::from(is_binary)).map(of_class));
        let names: StringArray =
            probabilities.rows().into_iter().map(|row| Some(classes[likeliest(row)].as_str())).collect();
        columns.push(Arc::new(names));
        writer.write(&RecordBatch::try_new(Arc::clone(&schema), columns)?)?;
    }
    report_unfamiliar(&unfamiliar, args.strict)?;
    Ok(writer.finish()?)
}

/// The most likely class; the first of equals.
fn likeliest(probabilities: ArrayView1<f64>) -> usize {
    let better = |a: &usize, b: &usize| probabilities[*a].total_cmp(&probabilities[*b]);
    (0..probabilities.len()).rev().max_by(better).expect("at least two classes")
}

/// Rejects kept columns with the name of an output column.
fn refuse_duplicates(fields: &[Field]) -> Result<()> {
    for (place, field) in fields.iter().enumerate() {
        anyhow::ensure!(
            fields[..place].iter().all(|other| other.name() != field.name()),
            "two columns to write are called `{}`: rename the one that --keep names",
            field.name()
        );
    }
    Ok(())
}

/// Reports values that the model was not trained on, and rejects them if requested.
pub(crate) fn report_unfamiliar(unfamiliar: &Unfamiliar, is_strict: bool) -> Result<()> {
    for line in unfamiliar.lines() {
        warn(line);
    }
    anyhow::ensure!(
        !is_strict || unfamiliar.is_empty(),
        "the rows have values that the model was not trained on, and --strict refuses them"
    );
    Ok(())
}
