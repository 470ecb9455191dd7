//! `easyllp predict`: rows into scores, batch by batch.

use crate::commands::{parse_count, use_threads};
use crate::output::refuse_overwrite;
use anyhow::{Result, bail};
use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use clap::Args;
use easyllp::ModelFile;
use easyllp::table::{Source, TableWriter, Unfamiliar};
use ndarray::ArrayView1;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

/// Score rows with a model.
///
/// Writes a column `score`, the probability of the positive class, which `easyllp show` names; for more than two classes a column
/// `score_CLASS` for each and `class`, the likeliest. Memory does not grow with the file.
#[derive(Debug, Args)]
pub(crate) struct PredictArgs {
    /// The model file
    #[arg(long, value_name = "FILE")]
    model: PathBuf,

    /// Rows to score
    #[arg(long, value_name = "FILE", required = true, num_args = 1..)]
    rows: Vec<String>,

    /// Columns of the rows to write beside the scores
    #[arg(long, value_name = "COLUMN", value_delimiter = ',')]
    keep: Vec<String>,

    /// Refuse rows with values that the model was not trained on: unseen, missing or out of range. Nothing is written
    #[arg(long)]
    strict: bool,

    /// Threads; by default one a core
    #[arg(long, value_name = "N", value_parser = parse_count)]
    threads: Option<NonZeroUsize>,

    /// The file to write: .csv, .parquet or .arrow
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

pub(crate) fn run(args: &PredictArgs) -> Result<()> {
    use_threads(args.threads)?;
    let file = ModelFile::load(&args.model)?;
    let source = open_for(&file, &args.rows)?;
    let features: Vec<String> = file.encoder.columns().iter().map(|column| column.name.clone()).collect();
    let kept = args.keep.iter().map(|name| {
        source.kind(name)?;
        Ok(source.schema().field_with_name(name)?.clone())
    });
    let mut fields = kept.collect::<Result<Vec<Field>>>()?;
    let number = |name: String| Field::new(name, DataType::Float64, false);
    let classes = file.classes.names();
    if classes.len() == 2 {
        fields.push(number("score".into()));
    } else {
        fields.extend(classes.iter().map(|class| number(format!("score_{class}"))));
        fields.push(Field::new("class", DataType::Utf8, false));
    }
    let mut names: Vec<&String> = fields.iter().map(Field::name).collect();
    names.sort_unstable();
    if let Some([twice, _]) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        bail!(
            "two columns to write are called `{twice}`: a kept column must not have the name of another one"
        );
    }
    let schema = Arc::new(Schema::new(fields));
    refuse_overwrite(&args.out, &args.rows)?;
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
        if classes.len() == 2 {
            columns.push(Arc::new(Float64Array::from(probabilities.column(1).to_vec())));
        } else {
            // Of equal ones the first.
            let best = |row: usize| {
                let better =
                    |a: &usize, b: &usize| probabilities[[row, *a]].total_cmp(&probabilities[[row, *b]]);
                (0..classes.len()).rev().max_by(better).map(|class| classes[class].as_str())
            };
            let names: StringArray = (0..batch.num_rows()).map(best).collect();
            let of_class = |class: ArrayView1<f64>| Arc::new(Float64Array::from(class.to_vec())) as ArrayRef;
            columns.extend(probabilities.columns().into_iter().map(of_class));
            columns.push(Arc::new(names));
        }
        writer.write(&RecordBatch::try_new(Arc::clone(&schema), columns)?)?;
    }
    report_unfamiliar(&unfamiliar, args.strict)?;
    Ok(writer.finish()?)
}

/// Says which values the model was not trained on, and refuses them if that is wanted.
pub(crate) fn report_unfamiliar(unfamiliar: &Unfamiliar, is_strict: bool) -> Result<()> {
    for line in unfamiliar.lines() {
        eprintln!("easyllp: warning: {line}");
    }
    anyhow::ensure!(
        !is_strict || unfamiliar.is_empty(),
        "the rows have values that the model was not trained on, and --strict refuses them"
    );
    Ok(())
}

/// Rows read as the model's encoder knows their columns.
pub(crate) fn open_for(file: &ModelFile, rows: &[String]) -> Result<Source> {
    // As the files have them, and not as the encoder would read them.
    file.encoder.check_kinds(Source::open(rows, BTreeMap::new())?.columns())?;
    Ok(Source::open(rows, file.encoder.read_as())?)
}
