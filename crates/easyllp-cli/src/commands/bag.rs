//! `easyllp bag`: group labelled rows into bags, and write rows and reports.

use crate::config::ConfigFile;
use crate::data::DataConfig;
use crate::data::args::ColumnArgs;
use crate::data::config::parse_noise;
use crate::messages::note;
use crate::output::{misuse, thousands};
use anyhow::{Context, Result};
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use clap::{Args, ValueEnum};
use easyllp::table::reports::{NoiseScale, ReportNoise};
use easyllp::table::{Groups, Labels, Source, TableWriter, labels};
use easyllp::{Bags, Noise, Partition, bagging, classes::Classes};
use std::path::PathBuf;
use std::sync::Arc;

/// The column with bag numbers.
const BAG: &str = "bag";
/// The label column in the file of labels.
const LABEL: &str = "label";

/// Make bags of labelled rows: rows without labels, and reports of counts.
///
/// Writes DIR/rows without the label, DIR/reports and, for checking, DIR/labels. Reports have one line per bag: its key, `size`, and the
/// count of the positive class, or of each class, in a column with its name. With --size the key is a new column `bag`, with --by it is
/// the columns themselves: name them with --key when you train. Columns keep their types; from CSV to CSV every field keeps its text.
#[derive(Debug, Args)]
pub(crate) struct BagArgs {
    /// Read `rows`, `numeric`, `categorical`, `delimiter`, `label`, `positive` and `seed` from a TOML file. Options on the command line
    /// override it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Rows: CSV or TSV (plain, .gz, .zst), Parquet or Arrow. Several files, or a quoted pattern, are one table
    #[arg(long, value_name = "FILE", required_unless_present = "config", num_args = 1..)]
    rows: Vec<String>,

    #[command(flatten)]
    columns: ColumnArgs,

    /// Label column
    #[arg(long, value_name = "COLUMN", required_unless_present = "config")]
    label: Option<String>,

    /// Positive values of the label. Not needed if labels are 0 and 1, or if every value is a class
    #[arg(long, value_name = "VALUE", value_delimiter = ',')]
    positive: Vec<String>,

    /// Make random bags of K rows, or of sizes drawn from a range such as 8-128
    #[arg(long, value_name = "K", conflicts_with = "by", required_unless_present = "by", value_parser = parse_sizes)]
    size: Option<bagging::Sizes>,

    /// Group rows by these columns, which become the keys of the reports
    #[arg(long, value_name = "COLUMN", value_delimiter = ',')]
    by: Vec<String>,

    /// Add noise to each count: laplace:SCALE or gaussian:SD
    #[arg(long, value_name = "LAW:SCALE", value_parser = parse_noise)]
    noise: Option<ReportNoise>,

    /// Format of the files
    #[arg(long, value_enum, default_value_t = FileFormat::Parquet)]
    format: FileFormat,

    /// Do not write the labels
    #[arg(long)]
    no_labels: bool,

    /// Seed of the bags and of the noise. [default: 1]
    #[arg(long, value_name = "SEED")]
    seed: Option<u64>,

    /// Folder to write to
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
    let file = ConfigFile::read(args.config.as_deref())?;
    let Some(label) = args.label.as_ref().or(file.label.as_ref()) else {
        return Err(misuse("neither the command line nor the --config file sets --label"));
    };
    let names_positive = args.label.is_some() || !args.positive.is_empty();
    let positive = if names_positive { &args.positive } else { &file.positive };
    let seed = args.seed.unwrap_or(file.seed);
    if args.by.contains(label) {
        return Err(misuse("--by names the label: bags made by it would say it"));
    }
    if let Some(twice) = (1..args.by.len()).find(|&place| args.by[..place].contains(&args.by[place])) {
        return Err(misuse(&format!("--by names `{}` twice", args.by[twice])));
    }
    if !args.no_labels && args.by.iter().any(|name| name == LABEL) {
        return Err(misuse(
            "--by names `label`, as the file of labels calls them: rename it, or add --no-labels",
        ));
    }
    let data = DataConfig {
        rows: args.rows.clone(),
        numeric: args.columns.numeric.clone(),
        categorical: args.columns.categorical.clone(),
        delimiter: args.columns.delimiter,
        ..DataConfig::default()
    };
    let data = data.or(&file.data);
    data.check(false)?;
    let source = data.open(&[])?;
    let table = source.read(std::slice::from_ref(label))?;
    let Labels { labels, classes } = labels(label, table.column(label)?, positive)?;
    // Where nothing asks for types, text is passed on as it is.
    let source = if source.is_csv() && matches!(args.format, FileFormat::Csv) {
        let names: Vec<String> = source.columns().into_iter().map(|(name, _)| name.to_owned()).collect();
        data.open(&names)?
    } else {
        source
    };
    let (partition, keys) = keyed(args, &source, labels.len(), seed)?;
    let bags = Bags::from_labels(partition, &labels, classes.len())?;
    let bags = match noise_of(args, bags.n_bags())? {
        Noise::None => bags,
        noise => bagging::add_noise(&bags, noise, seed)?,
    };
    let reports = reports(keys, &bags, &classes)?;

    std::fs::create_dir_all(&args.out).with_context(|| format!("cannot make {}", args.out.display()))?;
    let extension = match args.format {
        FileFormat::Csv => "csv",
        FileFormat::Parquet => "parquet",
        FileFormat::Arrow => "arrow",
    };
    let file = |name: &str| args.out.join(name).with_extension(extension);
    let mut writer = TableWriter::create(&file("reports"), reports.schema())?;
    writer.write(&reports)?;
    writer.finish()?;
    let names: Vec<&str> = labels.iter().map(|&label| classes.names()[label as usize].as_str()).collect();
    write_rows(args, &source, (label, &names), &bags, file)?;
    note(format!(
        "{} rows in {} bags, written to {}",
        thousands(labels.len()),
        thousands(bags.n_bags()),
        args.out.display()
    ));
    Ok(())
}

/// The rows of the bags, and the key columns of the reports.
fn keyed(
    args: &BagArgs,
    source: &Source,
    n_rows: usize,
    seed: u64,
) -> Result<(Partition, Vec<(Field, ArrayRef)>)> {
    if let Some(sizes) = &args.size {
        anyhow::ensure!(source.kind(BAG).is_err(), "the rows have a column `{BAG}` already: rename it");
        let partition = bagging::random(n_rows, sizes, seed)?;
        let numbers: Int64Array = (0_i64..).take(partition.n_bags()).map(Some).collect();
        return Ok((partition, vec![(bag_field(), Arc::new(numbers))]));
    }
    let Groups { partition, keys } = source.groups(&args.by)?;
    let field = |name: &String| Ok(source.schema().field_with_name(name)?.clone());
    let fields = args.by.iter().map(field).collect::<Result<Vec<_>>>()?;
    Ok((partition, fields.into_iter().zip(keys).collect()))
}

/// Rows without their label, which is written to a file of its own.
fn write_rows(
    args: &BagArgs,
    source: &Source,
    (label, labels): (&str, &[&str]),
    bags: &Bags,
    file: impl Fn(&str) -> PathBuf,
) -> Result<()> {
    let schema = source.schema();
    let mut fields: Vec<Field> = schema.fields().iter().map(|field| field.as_ref().clone()).collect();
    fields.remove(schema.index_of(label)?);
    let kept: Vec<String> = fields.iter().map(|field| field.name().clone()).collect();
    if args.size.is_some() {
        fields.push(bag_field());
    }
    let keys: Vec<usize> = match &args.size {
        Some(_) => vec![kept.len()],
        None => (0..kept.len()).filter(|&column| args.by.contains(&kept[column])).collect(),
    };
    let schema = Arc::new(Schema::new(fields));
    let of_labels: Vec<Field> = keys
        .iter()
        .map(|&column| schema.field(column).clone())
        .chain([Field::new(LABEL, DataType::Utf8, false)])
        .collect();
    let of_labels = Arc::new(Schema::new(of_labels));
    let bag_of_row = bag_of_row(bags);
    let mut rows = TableWriter::create(&file("rows"), Arc::clone(&schema))?;
    let mut labels_file = if args.no_labels {
        None
    } else {
        Some(TableWriter::create(&file("labels"), Arc::clone(&of_labels))?)
    };
    let mut start = 0;
    for batch in source.batches(&kept) {
        let batch = batch?;
        let of_batch = start..start + batch.num_rows();
        start = of_batch.end;
        let mut columns = source.plain(&batch, &kept)?;
        if args.size.is_some() {
            columns.push(Arc::new(Int64Array::from(bag_of_row[of_batch.clone()].to_vec())));
        }
        if let Some(writer) = &mut labels_file {
            let label: ArrayRef = Arc::new(StringArray::from(labels[of_batch].to_vec()));
            let columns = keys.iter().map(|&column| Arc::clone(&columns[column])).chain([label]).collect();
            writer.write(&RecordBatch::try_new(Arc::clone(&of_labels), columns)?)?;
        }
        rows.write(&RecordBatch::try_new(Arc::clone(&schema), columns)?)?;
    }
    // The rows last: whoever finds them finds the rest too.
    labels_file.map_or(Ok(()), TableWriter::finish)?;
    Ok(rows.finish()?)
}

fn bag_field() -> Field {
    Field::new(BAG, DataType::Int64, false)
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

fn bag_of_row(bags: &Bags) -> Vec<i64> {
    let mut of_row = vec![0; bags.n_rows()];
    for (bag, number) in (0..bags.n_bags()).zip(0_i64..) {
        for &row in bags.members(bag) {
            of_row[row as usize] = number;
        }
    }
    of_row
}

/// A report per bag: key, size and counts.
fn reports(keys: Vec<(Field, ArrayRef)>, bags: &Bags, classes: &Classes) -> Result<RecordBatch> {
    let (mut fields, mut columns): (Vec<Field>, Vec<ArrayRef>) = keys.into_iter().unzip();
    let mut add = |what: &str, name: &str, column: ArrayRef| {
        let is_taken = fields.iter().any(|field| field.name() == name);
        anyhow::ensure!(
            !is_taken,
            "{what} is called `{name}`, as a column of the reports already is: rename it"
        );
        fields.push(Field::new(name, column.data_type().clone(), false));
        columns.push(column);
        Ok(())
    };
    let sizes = bags.sizes().map(|size| i64::try_from(size).expect("sizes fit")).collect::<Vec<_>>();
    add("a column of --by", "size", Arc::new(Int64Array::from(sizes)))?;
    let count = |class: usize| Arc::new(Float64Array::from(bags.counts().column(class).to_vec()));
    // Of two classes one is enough.
    let n_left_out = usize::from(classes.len() == 2);
    for (class, name) in classes.names().iter().enumerate().skip(n_left_out) {
        add("a class", name, count(class))?;
    }
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}
