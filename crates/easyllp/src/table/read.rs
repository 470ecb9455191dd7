//! Files as one table: CSV (plain, gzip, zstd), Parquet, Arrow IPC, and images as IDX or CIFAR binary.
//!
//! A [`Source`] is read batch by batch, in Arrow's own types, so that a file need not fit in memory; [`Source::table`]
//! turns a batch into columns that an encoder understands. Files are told by their names.

use super::images;
use super::{Column, Table};
use crate::error::{Error, Result};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_cast::cast;
use arrow_csv::reader::{Format as CsvFormat, ReaderBuilder};
use arrow_ipc::reader::FileReader;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};
use ndarray::Array2;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use regex::Regex;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rows in a batch.
const BATCH: usize = 65_536;
/// Lines of a CSV file that its types are told by.
const LINES_FOR_TYPES: usize = 10_000;

/// As what a column is to be read, whatever it looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadAs {
    /// Numbers.
    Number,
    /// Text, also where it looks like numbers.
    Text,
}

/// What a column holds, as the file has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Whole numbers.
    Integer,
    /// Numbers.
    Number,
    /// True or false.
    Boolean,
    /// Dates and times.
    Time,
    /// Text.
    Text,
    /// Lists of numbers, all of one length.
    List,
}

impl Kind {
    fn of(data_type: &DataType) -> Option<Self> {
        Some(match data_type {
            _ if data_type.is_integer() => Self::Integer,
            _ if data_type.is_numeric() => Self::Number,
            DataType::Boolean => Self::Boolean,
            _ if data_type.is_temporal() => Self::Time,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null => Self::Text,
            DataType::Dictionary(_, values) => return Self::of(values),
            DataType::FixedSizeList(entry, _) if entry.data_type().is_numeric() => Self::List,
            _ => return None,
        })
    }

    /// The kind in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Integer => "whole numbers",
            Self::Number => "numbers",
            Self::Boolean => "true or false",
            Self::Time => "dates or times",
            Self::Text => "text",
            Self::List => "lists of numbers",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Csv,
    Parquet,
    Arrow,
    Idx,
    Cifar,
}

impl Format {
    fn of(path: &Path) -> Result<Self> {
        let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
        let plain = name.trim_end_matches(".gz").trim_end_matches(".zst");
        let is_packed = plain.len() < name.len();
        match plain.rsplit_once('.').map_or(plain, |(_, extension)| extension) {
            "csv" => Ok(Self::Csv),
            "parquet" | "pq" if !is_packed => Ok(Self::Parquet),
            "arrow" | "feather" | "ipc" if !is_packed => Ok(Self::Arrow),
            "bin" if !is_packed => Ok(Self::Cifar),
            "idx" => Ok(Self::Idx),
            _ if plain.ends_with("-ubyte") => Ok(Self::Idx),
            _ => Err(Error::UnknownFormat { path: path.into() }),
        }
    }
}

/// Files of one format that are read as one table.
#[derive(Debug, Clone)]
pub struct Source {
    files: Vec<PathBuf>,
    format: Format,
    schema: SchemaRef,
    forced: BTreeMap<String, ReadAs>,
}

impl Source {
    /// Opens files by name or by pattern (`logs/*.parquet`), in the order of their names; `forced` columns are read as told.
    pub fn open(patterns: &[String], forced: BTreeMap<String, ReadAs>) -> Result<Self> {
        let files = expand(patterns)?;
        let format = Format::of(&files[0])?;
        let mut schema: Option<Schema> = None;
        for file in &files {
            if Format::of(file)? != format {
                return Err(bad(file, format!("it is of another format than {}", files[0].display())));
            }
            let of_file = schema_of(file, format, &forced)?;
            schema = Some(match schema {
                None => of_file,
                Some(schema) => merged(&schema, &of_file, file)?,
            });
        }
        let schema = schema.expect("a pattern that matches nothing is refused");
        for (place, field) in schema.fields().iter().enumerate() {
            if schema.fields()[..place].iter().any(|other| other.name() == field.name()) {
                return Err(Error::ColumnTwice { column: field.name().clone() });
            }
            if Kind::of(field.data_type()).is_none() {
                let (column, found) = (field.name().clone(), field.data_type().to_string());
                return Err(Error::UnreadableColumn { column, found });
            }
        }
        if let Some(column) = forced.keys().find(|name| schema.field_with_name(name).is_err()) {
            return Err(Error::ColumnMissing { column: column.clone() });
        }
        Ok(Self { files, format, schema: Arc::new(schema), forced })
    }

    /// Names and kinds of the columns, in the order of the file.
    pub fn columns(&self) -> Vec<(&str, Kind)> {
        let kind = |field: &Arc<Field>| Kind::of(field.data_type()).expect("checked when opened");
        self.schema.fields().iter().map(|field| (field.name().as_str(), kind(field))).collect()
    }

    /// The kind of one column.
    pub fn kind(&self, column: &str) -> Result<Kind> {
        let found = self.columns().into_iter().find(|(name, _)| *name == column);
        found.map(|(_, kind)| kind).ok_or_else(|| Error::ColumnMissing { column: column.into() })
    }

    /// Arrow's schema, for whoever writes rows on.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// The rows in batches, file after file.
    pub fn batches(&self) -> impl Iterator<Item = Result<RecordBatch>> + '_ {
        self.files.iter().flat_map(|file| match self.open_file(file) {
            Ok(batches) => batches,
            Err(error) => Box::new(std::iter::once(Err(error))),
        })
    }

    /// The named columns of a batch, as an encoder takes them.
    pub fn table(&self, batch: &RecordBatch, columns: &[String]) -> Result<Table> {
        let column = |name: &String| {
            let array =
                batch.column_by_name(name).ok_or_else(|| Error::ColumnMissing { column: name.clone() })?;
            Ok((name.clone(), to_column(name, array, self.forced.get(name).copied())?))
        };
        Table::new(columns.iter().map(column).collect::<Result<_>>()?)
    }

    /// The named columns of all rows.
    pub fn read(&self, columns: &[String]) -> Result<Table> {
        let mut whole: Option<Table> = None;
        for batch in self.batches() {
            let batch = batch?;
            if batch.num_rows() == 0 {
                continue;
            }
            let part = self.table(&batch, columns)?;
            match &mut whole {
                None => whole = Some(part),
                Some(whole) => whole.append(part),
            }
        }
        whole.ok_or(Error::NoRows)
    }

    fn open_file<'s>(&'s self, file: &'s Path) -> Result<Box<dyn Iterator<Item = Result<RecordBatch>> + 's>> {
        let opened = || File::open(file).map_err(|error| cannot_read(file, &error));
        Ok(match self.format {
            Format::Csv => {
                let reader = ReaderBuilder::new(self.schema())
                    .with_format(csv_format())
                    .with_header_validation(true)
                    .with_batch_size(BATCH)
                    .build(unpacked(file)?)
                    .map_err(|error| bad_csv(file, &self.schema, &error))?;
                Box::new(reader.map(move |batch| batch.map_err(|error| bad_csv(file, &self.schema, &error))))
            }
            Format::Parquet => {
                let builder =
                    ParquetRecordBatchReaderBuilder::try_new(opened()?).map_err(|error| bad(file, error))?;
                let reader = builder.with_batch_size(BATCH).build().map_err(|error| bad(file, error))?;
                Box::new(reader.map(move |batch| batch.map_err(|error| bad(file, error))))
            }
            Format::Arrow => {
                let reader =
                    FileReader::try_new(BufReader::new(opened()?), None).map_err(|error| bad(file, error))?;
                Box::new(reader.map(move |batch| batch.map_err(|error| bad(file, error))))
            }
            Format::Idx => Box::new(std::iter::once(images::read_idx(file, unpacked(file)?))),
            Format::Cifar => Box::new(images::read_cifar(file, opened()?)),
        })
    }
}

fn expand(patterns: &[String]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for pattern in patterns {
        if Path::new(pattern).exists() {
            files.push(PathBuf::from(pattern));
            continue;
        }
        let found = glob::glob(pattern).ok().into_iter().flatten().filter_map(std::result::Result::ok);
        let found: Vec<PathBuf> = found.filter(|path| path.is_file()).collect();
        if found.is_empty() {
            return Err(Error::CannotRead { path: pattern.into(), reason: "no such file".into() });
        }
        files.extend(found);
    }
    if files.is_empty() {
        return Err(Error::NoRows);
    }
    Ok(files)
}

fn schema_of(file: &Path, format: Format, forced: &BTreeMap<String, ReadAs>) -> Result<Schema> {
    let opened = || File::open(file).map_err(|error| cannot_read(file, &error));
    let schema = match format {
        Format::Csv => {
            let (schema, _) = csv_format()
                .infer_schema(unpacked(file)?, Some(LINES_FOR_TYPES))
                .map_err(|error| bad(file, error))?;
            let field = |field: &Arc<Field>| {
                let inferred = field.data_type().clone();
                let data_type = match forced.get(field.name()) {
                    Some(ReadAs::Text) => DataType::Utf8,
                    None if inferred == DataType::Null => DataType::Utf8,
                    Some(ReadAs::Number) if !inferred.is_temporal() && inferred != DataType::Boolean => {
                        DataType::Float64
                    }
                    _ => inferred,
                };
                Field::new(field.name(), data_type, true)
            };
            Schema::new(schema.fields().iter().map(field).collect::<Vec<_>>())
        }
        Format::Parquet => {
            let builder =
                ParquetRecordBatchReaderBuilder::try_new(opened()?).map_err(|error| bad(file, error))?;
            builder.schema().as_ref().clone()
        }
        Format::Arrow => {
            let reader =
                FileReader::try_new(BufReader::new(opened()?), None).map_err(|error| bad(file, error))?;
            reader.schema().as_ref().clone()
        }
        Format::Idx => images::read_idx(file, unpacked(file)?)?.schema().as_ref().clone(),
        Format::Cifar => images::cifar_schema(),
    };
    if schema.fields().is_empty() {
        return Err(bad(file, "it has no columns"));
    }
    Ok(schema)
}

/// One schema for two files: the same columns, and of whole numbers and numbers the wider type.
fn merged(schema: &Schema, other: &Schema, file: &Path) -> Result<Schema> {
    let names =
        |schema: &Schema| schema.fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>();
    if names(schema) != names(other) {
        let (first, second) = (names(schema).join(", "), names(other).join(", "));
        return Err(bad(file, format!("its columns are {second}, those of the files before it are {first}")));
    }
    let field = |(one, two): (&Arc<Field>, &Arc<Field>)| {
        let data_type = match (one.data_type(), two.data_type()) {
            (one, two) if one == two => one.clone(),
            (DataType::Int64, DataType::Float64) | (DataType::Float64, DataType::Int64) => DataType::Float64,
            (first, second) => {
                let reason =
                    format!("column `{}` is {second}, but {first} in the files before it", one.name());
                return Err(bad(file, reason));
            }
        };
        Ok(Field::new(one.name(), data_type, true))
    };
    Ok(Schema::new(schema.fields().iter().zip(other.fields()).map(field).collect::<Result<Vec<_>>>()?))
}

fn csv_format() -> CsvFormat {
    let missing = Regex::new("^(NA|N/A|NaN|nan|null|NULL|None)?$").expect("a pattern that compiles");
    CsvFormat::default().with_header(true).with_null_regex(missing)
}

/// The bytes of a file, unpacked by its name.
pub(super) fn unpacked(file: &Path) -> Result<Box<dyn Read>> {
    let opened =
        BufReader::with_capacity(1 << 20, File::open(file).map_err(|error| cannot_read(file, &error))?);
    Ok(match file.extension().map(|extension| extension.to_string_lossy().to_lowercase()).as_deref() {
        Some("gz") => Box::new(flate2::bufread::MultiGzDecoder::new(opened)),
        Some("zst") => {
            Box::new(zstd::Decoder::with_buffer(opened).map_err(|error| cannot_read(file, &error))?)
        }
        _ => Box::new(opened),
    })
}

fn to_column(name: &str, array: &ArrayRef, forced: Option<ReadAs>) -> Result<Column> {
    let kind = Kind::of(array.data_type()).expect("checked when opened");
    let unreadable =
        |error: ArrowError| Error::UnreadableColumn { column: name.into(), found: error.to_string() };
    match (kind, forced) {
        (Kind::List, _) => to_lists(name, array),
        (Kind::Text, None) | (_, Some(ReadAs::Text)) => {
            let text = cast(array, &DataType::Utf8).map_err(unreadable)?;
            let text = text.as_string::<i32>();
            Ok(Column::categorical(text.iter().map(Option::unwrap_or_default)))
        }
        (Kind::Text, Some(ReadAs::Number)) => {
            let text = cast(array, &DataType::Utf8).map_err(unreadable)?;
            let number = |(row, cell): (usize, Option<&str>)| match cell {
                None | Some("") => Ok(f64::NAN),
                Some(cell) => cell.trim().parse().map_err(|_| Error::NotANumber {
                    column: name.into(),
                    row,
                    value: cell.into(),
                }),
            };
            Ok(Column::Numeric(
                text.as_string::<i32>().iter().enumerate().map(number).collect::<Result<_>>()?,
            ))
        }
        (Kind::Time, _) => {
            // Seconds since 1970, or since midnight.
            let timestamp = DataType::Timestamp(TimeUnit::Microsecond, None);
            let of_time = [timestamp, DataType::Time64(TimeUnit::Microsecond)];
            let as_type =
                of_time.iter().find(|data_type| arrow_cast::can_cast_types(array.data_type(), data_type));
            let micros = as_type.map_or_else(|| Ok(Arc::clone(array)), |data_type| cast(array, data_type));
            let whole = micros.and_then(|micros| cast(&micros, &DataType::Int64)).map_err(unreadable)?;
            let seconds = numbers(&cast(&whole, &DataType::Float64).map_err(unreadable)?);
            Ok(Column::Numeric(seconds.into_iter().map(|micros| micros / 1e6).collect()))
        }
        (Kind::Integer | Kind::Number | Kind::Boolean, _) => {
            Ok(Column::Numeric(numbers(&cast(array, &DataType::Float64).map_err(unreadable)?)))
        }
    }
}

fn numbers(array: &ArrayRef) -> Vec<f64> {
    array.as_primitive::<Float64Type>().iter().map(|value| value.unwrap_or(f64::NAN)).collect()
}

fn to_lists(name: &str, array: &ArrayRef) -> Result<Column> {
    let unreadable = |found: String| Error::UnreadableColumn { column: name.into(), found };
    let lists = array.as_fixed_size_list();
    let width = usize::try_from(lists.value_length()).unwrap_or(0);
    let entries = cast(lists.values(), &DataType::Float32).map_err(|error| unreadable(error.to_string()))?;
    if lists.null_count() + entries.null_count() > 0 {
        return Err(unreadable("lists with missing numbers".into()));
    }
    let entries = entries.as_primitive::<Float32Type>().values();
    let start = lists.value_offset_at(0);
    let entries = entries[start..start + lists.len() * width].to_vec();
    Ok(Column::Vector(
        Array2::from_shape_vec((lists.len(), width), entries).expect("as many entries as lists say"),
    ))
}

pub(super) fn cannot_read(file: &Path, error: &std::io::Error) -> Error {
    Error::CannotRead { path: file.into(), reason: error.to_string() }
}

pub(super) fn bad(file: &Path, reason: impl ToString) -> Error {
    Error::BadFile { path: file.into(), reason: reason.to_string() }
}

/// arrow-csv numbers columns and quotes the whole line; say the column's name and the cell.
fn bad_csv(file: &Path, schema: &Schema, error: &ArrowError) -> Error {
    let text = error.to_string();
    let cell = || {
        let (_, rest) = text.split_once("Error while parsing value '")?;
        let (value, rest) = rest.split_once("' as type '")?;
        let (_, rest) = rest.split_once("' for column ")?;
        let (column, rest) = rest.split_once(" at line ")?;
        let (line, _) = rest.split_once('.')?;
        let field = schema.fields().get(column.parse::<usize>().ok()?)?;
        let kind = Kind::of(field.data_type())?.name();
        Some(format!(
            "line {line} below the header has `{value}` in column `{}`, which holds {kind} so far",
            field.name()
        ))
    };
    bad(file, cell().unwrap_or(text.clone()))
}
