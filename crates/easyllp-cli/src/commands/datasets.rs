//! `easyllp datasets`: which data sets there are; bringing them here, and the embedded ones as files.

use crate::output::print;
use crate::progress::Download;
use anyhow::{Context, Result};
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand, ValueEnum};
use easyllp::datasets::{self, Dataset, Labelled};
use easyllp::table::{Column, TableWriter};
use easyllp_lab::{DatasetName, Origin, default_folder};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// List the data sets, download one, or write an embedded one to a file.
#[derive(Debug, Args)]
pub(crate) struct DatasetsArgs {
    #[command(subcommand)]
    command: DatasetsCommand,
}

#[derive(Debug, Subcommand)]
enum DatasetsCommand {
    /// Name the data sets, what is in them, and whether they are here
    List {
        /// The folder of data sets; by default $EASYLLP_DATA, or ~/.cache/easyllp
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
    /// Download a data set, checked; an interrupted download goes on where it ended
    #[command(
        after_help = "Criteo's Kaggle log may not be passed on: get it from its publisher, and put your copy of train.txt \
        into the folder criteo among the data sets. `synthetic-ctr` has the same layout."
    )]
    Get {
        /// Which one
        #[arg(value_parser = PossibleValuesParser::new(DOWNLOADED.map(DatasetName::as_str)))]
        name: String,
        /// The folder of data sets; by default $EASYLLP_DATA, or ~/.cache/easyllp
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
        /// A folder that holds copies of the published files, or an address to which their names are added
        #[arg(long, value_name = "DIR|URL")]
        from: Option<String>,
    },
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
        DatasetsCommand::List { dir } => print(&list(&dir.clone().unwrap_or_else(default_folder))),
        DatasetsCommand::Get { name, dir, from } => {
            get(name, &dir.clone().unwrap_or_else(default_folder), from.as_deref())
        }
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

/// The data sets that are neither embedded nor made up.
const DOWNLOADED: [DatasetName; 2] = [DatasetName::Mnist, DatasetName::Cifar10];

fn list(folder: &Path) -> String {
    let line = |name: DatasetName| {
        let here = match DOWNLOADED.contains(&name) {
            _ if name == DatasetName::Criteo && !folder.join("criteo/train.txt").exists() => ", not here",
            true if folder.join(name.as_str()).exists() => ", here",
            true => ", not here yet",
            false => "",
        };
        format!("{:14} {}{here}\n", name.as_str(), name.about())
    };
    DatasetName::ALL.map(line).concat()
}

fn get(name: &str, folder: &Path, from: Option<&str>) -> Result<()> {
    let name =
        DOWNLOADED.into_iter().find(|known| known.as_str() == name).context("a name that clap knows")?;
    let origin = match from {
        None => Origin::Mirrors,
        Some(address) if address.contains("://") => Origin::Address(address.into()),
        Some(folder) => Origin::Folder(folder.into()),
    };
    let mut download = Download::begin();
    let folder = easyllp_lab::get(name, folder, &origin, &mut |file, done, bytes| {
        download.see(file, done, bytes);
        ControlFlow::Continue(())
    });
    drop(download);
    print(&format!("{}\n", folder?.display()))
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
