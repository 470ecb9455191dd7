//! `easyllp datasets`: the embedded data sets as files.

use crate::output::print;
use anyhow::{Context, Result};
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use clap::{Args, Subcommand, ValueEnum};
use easyllp::datasets::{self, Dataset, Labelled};
use easyllp::table::{Column, TableWriter};
use std::path::PathBuf;
use std::sync::Arc;

/// List the embedded data sets, or write one to a file.
#[derive(Debug, Args)]
pub(crate) struct DatasetsArgs {
    #[command(subcommand)]
    command: DatasetsCommand,
}

#[derive(Debug, Subcommand)]
enum DatasetsCommand {
    /// Name the data sets and what is in them
    List,
    /// Write a data set, labels included, as CSV, Parquet or Arrow
    Export {
        /// Which one
        #[arg(value_enum)]
        name: Name,
        /// The file to write; its name tells the format
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
        /// Which of its official parts
        #[arg(long, value_enum, default_value_t = Part::All)]
        part: Part,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Name {
    Adult,
    Optdigits,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    All,
    Train,
    Test,
}

pub(crate) fn run(args: &DatasetsArgs) -> Result<()> {
    match &args.command {
        DatasetsCommand::List => print(
            "adult      48,842 people of the 1994 census, 14 columns; label `income`: <=50K or >50K\n\
             optdigits  5,620 handwritten digits of 8 × 8 pixels; label `digit`: 0 to 9\n",
        ),
        DatasetsCommand::Export { name, out, part } => {
            let (data, label) = match name {
                Name::Adult => (datasets::adult()?, "income"),
                Name::Optdigits => (datasets::optdigits()?, "digit"),
            };
            let parts: Vec<&Labelled> = match part {
                Part::All => vec![&data.train, &data.test],
                Part::Train => vec![&data.train],
                Part::Test => vec![&data.test],
            };
            let batches =
                parts.into_iter().map(|part| batch(&data, part, label)).collect::<Result<Vec<_>>>()?;
            let mut writer = TableWriter::create(out, batches[0].schema())?;
            for batch in &batches {
                writer.write(batch)?;
            }
            Ok(writer.finish()?)
        }
    }
}

fn batch(data: &Dataset, part: &Labelled, label: &str) -> Result<RecordBatch> {
    let mut columns: Vec<(String, ArrayRef)> = Vec::new();
    for (name, column) in part.table.columns() {
        match column {
            Column::Numeric(values) => {
                columns.push((name.clone(), Arc::new(Float64Array::from(values.clone()))));
            }
            Column::Categorical { dictionary, codes } => {
                let text = codes.iter().map(|&code| Some(dictionary[code as usize].as_str()));
                columns.push((name.clone(), Arc::new(text.collect::<StringArray>())));
            }
            // A column a pixel, since CSV knows no lists.
            Column::Hashed(_) => unreachable!("embedded sets hold their text in full"),
            Column::Vector(pixels) => {
                for (place, pixel) in pixels.columns().into_iter().enumerate() {
                    let values = pixel.iter().map(|&value| Some(f64::from(value)));
                    columns.push((format!("pixel_{place}"), Arc::new(values.collect::<Float64Array>())));
                }
            }
        }
    }
    let labels: ArrayRef = if label == "digit" {
        Arc::new(part.labels.iter().map(|&digit| Some(i64::from(digit))).collect::<Int64Array>())
    } else {
        Arc::new(part.labels.iter().map(|&class| Some(data.classes[class as usize])).collect::<StringArray>())
    };
    columns.push((label.into(), labels));
    RecordBatch::try_from_iter(columns).context("columns of one length")
}
