//! `easyllp bag`: rows with labels into rows without, and reports of their bags.

use crate::data::{RowsArgs, parse_noise};
use crate::output::{misuse, thousands};
use anyhow::{Context, Result, bail};
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use clap::{Args, ValueEnum};
use easyllp::table::reports::{NoiseScale, ReportNoise};
use easyllp::table::{Column, Labels, TableWriter, labels};
use easyllp::{Bags, Classes, Noise, Partition, bagging};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Make bags of labelled rows: rows without labels, and reports of counts.
///
/// Writes DIR/rows (the label removed, a column `bag` added), DIR/reports (`bag`, `size` and the counts of the positive class, or
/// of each of several classes, in a column with the name of the class) and, for checking, DIR/labels.
#[derive(Debug, Args)]
pub(crate) struct BagArgs {
    #[command(flatten)]
    rows: RowsArgs,

    /// The label column
    #[arg(long, value_name = "COLUMN")]
    label: String,

    /// Values of the label that are positive; needed unless it is 0/1, or every value is to be a class
    #[arg(long, value_name = "VALUE", value_delimiter = ',')]
    positive: Vec<String>,

    /// Bags of this many random rows, or of a number drawn from a range such as 8-128
    #[arg(long, value_name = "K", conflicts_with = "by", required_unless_present = "by", value_parser = parse_sizes)]
    size: Option<bagging::Sizes>,

    /// Bags of the rows that agree in these columns
    #[arg(long, value_name = "COLUMN", value_delimiter = ',')]
    by: Vec<String>,

    /// Noise to add to each count: laplace:SCALE or gaussian:SD
    #[arg(long, value_name = "LAW:SCALE", value_parser = parse_noise)]
    noise: Option<ReportNoise>,

    /// Format of the files
    #[arg(long, value_enum, default_value_t = FileFormat::Parquet)]
    format: FileFormat,

    /// Do not write the labels
    #[arg(long)]
    no_labels: bool,

    /// Seed of the bags and of the noise
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// The folder to write to
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum FileFormat {
    Csv,
    Parquet,
    Arrow,
}

fn parse_sizes(text: &str) -> Result<bagging::Sizes, String> {
    let expected = "a whole number of at least 1 is needed, or a range such as 8-128";
    let number = |text: &str| text.parse::<usize>().ok().filter(|&size| size > 0).ok_or(expected);
    Ok(match text.split_once('-') {
        None => bagging::Sizes::Fixed(number(text)?),
        Some((from, to)) if number(from)? <= number(to)? => {
            bagging::Sizes::Range(number(from)?..=number(to)?)
        }
        Some(_) => return Err(expected.into()),
    })
}

pub(crate) fn run(args: &BagArgs) -> Result<()> {
    let mut columns = args.by.clone();
    if columns.contains(&args.label) {
        return Err(misuse("--by names the label: bags made by it would say it"));
    }
    columns.push(args.label.clone());
    let source = args.rows.open(&args.by)?;
    anyhow::ensure!(source.kind("bag").is_err(), "the rows have a column `bag` already: rename it");
    let table = source.read(&columns)?;
    let Labels { labels, classes } = labels(&args.label, table.column(&args.label)?, &args.positive)?;
    let partition = match &args.size {
        Some(sizes) => bagging::random(labels.len(), sizes, args.seed)?,
        None => by_columns(&table, &args.by)?,
    };
    let bags = Bags::from_labels(partition, &labels, classes.len())?;
    let bags = match noise_of(args, bags.n_bags())? {
        Noise::None => bags,
        noise => bagging::add_noise(&bags, noise, args.seed)?,
    };

    std::fs::create_dir_all(&args.out).with_context(|| format!("cannot make {}", args.out.display()))?;
    let extension = match args.format {
        FileFormat::Csv => "csv",
        FileFormat::Parquet => "parquet",
        FileFormat::Arrow => "arrow",
    };
    let file = |name: &str| args.out.join(name).with_extension(extension);
    let bag_of_row: Vec<i64> = bag_of_row(&bags);

    // The rows last: whoever finds them finds the rest too.
    write(&file("reports"), &[reports(&bags, &classes)?])?;
    if !args.no_labels {
        let names: StringArray =
            labels.iter().map(|&label| Some(classes.names()[label as usize].as_str())).collect();
        let columns: [(&str, ArrayRef); 2] =
            [("bag", Arc::new(Int64Array::from(bag_of_row.clone()))), ("label", Arc::new(names))];
        write(&file("labels"), &[RecordBatch::try_from_iter(columns)?])?;
    }
    let label_place = source.schema().index_of(&args.label)?;
    let mut fields: Vec<Field> = source.schema().fields().iter().map(|f| f.as_ref().clone()).collect();
    fields.remove(label_place);
    let kept: Vec<String> = fields.iter().map(|field| field.name().clone()).collect();
    fields.push(Field::new("bag", DataType::Int64, false));
    let schema = Arc::new(Schema::new(fields));
    let mut writer = TableWriter::create(&file("rows"), Arc::clone(&schema))?;
    let mut start = 0;
    for batch in source.batches(&kept) {
        let batch = batch?;
        let of_batch = &bag_of_row[start..start + batch.num_rows()];
        start += batch.num_rows();
        let mut columns = source.plain(&batch, &kept)?;
        columns.push(Arc::new(Int64Array::from(of_batch.to_vec())));
        writer.write(&RecordBatch::try_new(Arc::clone(&schema), columns)?)?;
    }
    writer.finish()?;
    eprintln!(
        "easyllp: {} rows in {} bags, written to {}",
        thousands(labels.len()),
        thousands(bags.n_bags()),
        args.out.display()
    );
    Ok(())
}

fn noise_of(args: &BagArgs, n_bags: usize) -> Result<Noise> {
    let all = |scale: &NoiseScale| match scale {
        NoiseScale::All(scale) => Ok(vec![*scale; n_bags]),
        NoiseScale::Column(_) => {
            Err(misuse("--noise needs a number here: there are no reports with a column yet"))
        }
    };
    Ok(match &args.noise {
        None | Some(ReportNoise::None) => Noise::None,
        Some(ReportNoise::Laplace(scale)) => Noise::Laplace(all(scale)?),
        Some(ReportNoise::Gaussian(scale)) => Noise::Gaussian(all(scale)?),
    })
}

fn by_columns(table: &easyllp::table::Table, columns: &[String]) -> Result<Partition> {
    let mut keys: Vec<Vec<&str>> = vec![Vec::new(); table.n_rows()];
    for name in columns {
        let Column::Categorical { dictionary, codes } = table.column(name)? else {
            bail!("column `{name}` cannot be a key");
        };
        keys.iter_mut().zip(codes).for_each(|(key, &code)| key.push(&dictionary[code as usize]));
    }
    Ok(bagging::by_key(&keys)?.1)
}

fn bag_of_row(bags: &Bags) -> Vec<i64> {
    let mut of_row = vec![0; bags.n_rows()];
    for (bag, number) in (0..bags.n_bags()).zip(0_i64..) {
        for &row in bags.members(bag) {
            of_row[row as usize] = number;
        }
    }
    of_row
}

fn reports(bags: &Bags, classes: &Classes) -> Result<RecordBatch> {
    let numbers = (0_i64..).take(bags.n_bags()).collect::<Vec<_>>();
    let sizes = bags.sizes().map(|size| i64::try_from(size).expect("sizes fit")).collect::<Vec<_>>();
    let mut columns: Vec<(String, ArrayRef)> = vec![
        ("bag".into(), Arc::new(Int64Array::from(numbers))),
        ("size".into(), Arc::new(Int64Array::from(sizes))),
    ];
    let count = |class: usize| Arc::new(Float64Array::from(bags.counts().column(class).to_vec()));
    // Of two classes one is enough.
    let n_left_out = usize::from(classes.len() == 2);
    for (class, name) in classes.names().iter().enumerate().skip(n_left_out) {
        anyhow::ensure!(
            !columns.iter().any(|(column, _)| column == name),
            "a class is called `{name}`, as a column of the reports already is: rename the class"
        );
        columns.push((name.clone(), count(class)));
    }
    Ok(RecordBatch::try_from_iter(columns)?)
}

fn write(path: &Path, batches: &[RecordBatch]) -> Result<()> {
    let mut writer = TableWriter::create(path, batches[0].schema())?;
    for batch in batches {
        writer.write(batch)?;
    }
    Ok(writer.finish()?)
}
