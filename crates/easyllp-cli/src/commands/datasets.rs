//! `easyllp datasets`: list, download and export data sets.

use crate::output::{misuse, print, print_json};
use crate::progress::Download;
use anyhow::{Context, Result};
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, Subcommand, ValueEnum};
use easyllp::datasets::{self, Dataset, Labelled};
use easyllp::table::{Column, TableWriter};
use easyllp_lab::{Clicks, DatasetName, Origin, clicks, default_folder, is_here};
use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// List the data sets, download one, or write one that comes with the program to a file.
#[derive(Debug, Args)]
pub(crate) struct DatasetsArgs {
    #[command(subcommand)]
    command: DatasetsCommand,
}

#[derive(Debug, Subcommand)]
enum DatasetsCommand {
    /// List the data sets, what is in them, and whether they are here
    List {
        /// Folder of data sets. [default: $EASYLLP_DATA, or ~/.cache/easyllp]
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Download a data set and check it. An interrupted download continues where it stopped
    #[command(
        after_help = "Criteo's Kaggle log may not be passed on: get it from its publisher, and put your copy of train.txt \
        into the folder criteo among the data sets. `synthetic-ctr` has the same layout."
    )]
    Get {
        /// Data set
        #[arg(value_parser = names_to_get())]
        name: String,
        /// Folder of data sets. [default: $EASYLLP_DATA, or ~/.cache/easyllp]
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
        /// Folder with copies of the published files, or an address to which their names are added
        #[arg(long, value_name = "DIR|URL")]
        from: Option<String>,
    },
    /// Write a data set, labels included, as CSV, Parquet or Arrow
    Export {
        /// Data set
        #[arg(value_enum)]
        name: Name,
        /// File to write. The format is inferred from its extension
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
        /// Official part to write
        #[arg(long, value_enum, default_value_t = Part::All)]
        part: Part,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Name {
    Adult,
    Optdigits,
    /// Adds the click probability as the column `probability`.
    SyntheticCtr,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    All,
    Train,
    Test,
}

pub(crate) fn run(args: &DatasetsArgs) -> Result<()> {
    match &args.command {
        DatasetsCommand::List { dir, json } => {
            let folder = dir.clone().unwrap_or_else(default_folder);
            if *json { print_json(&listed(&folder)) } else { print(&list(&folder)) }
        }
        DatasetsCommand::Get { name, dir, from } => {
            get(name, &dir.clone().unwrap_or_else(default_folder), from.as_deref())
        }
        DatasetsCommand::Export { name, out, part } => {
            let both = match name {
                Name::Adult => of_embedded(&datasets::adult()?, "income")?,
                Name::Optdigits => of_embedded(&datasets::optdigits()?, "digit")?,
                Name::SyntheticCtr => {
                    let [train, test] = clicks();
                    [of_clicks(&train)?, of_clicks(&test)?]
                }
            };
            let batches = match part {
                Part::All => &both[..],
                Part::Train => &both[..1],
                Part::Test => &both[1..],
            };
            let mut writer = TableWriter::create(out, batches[0].schema())?;
            for batch in batches {
                writer.write(batch)?;
            }
            Ok(writer.finish()?)
        }
    }
}

/// The data sets that are neither embedded nor synthetic.
const DOWNLOADED: [DatasetName; 2] = [DatasetName::Mnist, DatasetName::Cifar10];

/// The names that `get` accepts. Criteo's is accepted to explain why it cannot be downloaded.
fn names_to_get() -> PossibleValuesParser {
    let downloaded = DOWNLOADED.map(|name| PossibleValue::new(name.as_str()));
    let criteo = PossibleValue::new(DatasetName::Criteo.as_str()).hide(true);
    PossibleValuesParser::new(downloaded.into_iter().chain([criteo]))
}

fn list(folder: &Path) -> String {
    let line = |name: DatasetName| {
        let here = match (DOWNLOADED.contains(&name), is_here(name, folder)) {
            (true, true) => ", here",
            (true, false) => ", not here yet",
            (false, true) => "",
            (false, false) => ", not here",
        };
        format!("{:14} {}{here}\n", name.as_str(), name.about())
    };
    DatasetName::ALL.map(line).concat()
}

/// The same for machines.
fn listed(folder: &Path) -> Vec<Value> {
    let entry = |name: DatasetName| {
        json!({
            "name": name.as_str(),
            "about": name.about(),
            "is_here": is_here(name, folder),
            "can_be_downloaded": DOWNLOADED.contains(&name),
        })
    };
    DatasetName::ALL.map(entry).to_vec()
}

fn get(name: &str, folder: &Path, from: Option<&str>) -> Result<()> {
    if name == DatasetName::Criteo.as_str() {
        return Err(misuse(&format!(
            "criteo cannot be downloaded: its licence does not let others pass it on. Get it from its publisher, and put your copy to {}",
            folder.join("criteo/train.txt").display()
        )));
    }
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

/// The parts of an embedded data set: training and test rows.
fn of_embedded(data: &Dataset, label: &str) -> Result<[RecordBatch; 2]> {
    Ok([batch(data, &data.train, label)?, batch(data, &data.test, label)?])
}

fn of_clicks(clicks: &Clicks) -> Result<RecordBatch> {
    let mut columns: Vec<(String, ArrayRef)> = Vec::new();
    for (place, number) in clicks.numbers.columns().into_iter().enumerate() {
        let values = number.iter().map(|&value| Some(f64::from(value)));
        columns.push((format!("number_{place}"), Arc::new(values.collect::<Float64Array>())));
    }
    for (place, category) in clicks.categories.columns().into_iter().enumerate() {
        // With a letter, so that no reader takes it for a number.
        let values = category.iter().map(|value| Some(format!("v{value}")));
        columns.push((format!("category_{place}"), Arc::new(values.collect::<StringArray>())));
    }
    let labels = clicks.labels.iter().map(|&label| Some(i64::from(label)));
    columns.push(("click".into(), Arc::new(labels.collect::<Int64Array>())));
    columns.push(("probability".into(), Arc::new(Float64Array::from(clicks.chances.clone()))));
    RecordBatch::try_from_iter(columns).context("columns of one length")
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
