//! Read files as one table: CSV and TSV (plain, gzip, zstd), Parquet, Arrow IPC, and images as IDX
//! or CIFAR binary.
//!
//! A [`Source`] is read batch by batch, as Arrow arrays, so a file need not fit in memory.
//! [`Source::table`] converts a batch into columns for an encoder. Formats are inferred from file
//! extensions.

use super::cells::as_type;
use super::convert::ColumnBuilder;
use super::csv::CsvOptions;
use super::{Kind, Table, csv, images, parquet};
use crate::error::{Cause, Error, Result};
use crate::model::ImageShape;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::reader::FileReader;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use rayon::prelude::*;
use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rows in a batch.
pub(super) const BATCH: usize = 65_536;

/// The type to read a column as, overriding the inferred one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadAs {
    /// Numbers.
    Number,
    /// Categories, even if they look like numbers: hashed text.
    Category,
    /// Text in full, even if it looks like numbers; only empty text is missing.
    Text,
}

impl Kind {
    /// The kind of an Arrow type; none for unsupported types.
    pub fn of(data_type: &DataType) -> Option<Self> {
        Some(match data_type {
            _ if data_type.is_integer() => Self::Integer,
            _ if data_type.is_numeric() => Self::Number,
            DataType::Boolean => Self::Boolean,
            DataType::Interval(_) => return None,
            _ if data_type.is_temporal() => Self::Time,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null => Self::Text,
            DataType::Dictionary(_, values) => return Self::of(values),
            DataType::FixedSizeList(entry, _) if entry.data_type().is_numeric() => Self::List,
            _ => return None,
        })
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
    fn of(path: &Path, csv: &CsvOptions) -> Result<Self> {
        let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
        let plain = name.trim_end_matches(".gz").trim_end_matches(".zst");
        let is_packed = plain.len() < name.len();
        match plain.rsplit_once('.').map_or(plain, |(_, extension)| extension) {
            "csv" | "tsv" => Ok(Self::Csv),
            "parquet" | "pq" if !is_packed => Ok(Self::Parquet),
            "arrow" | "feather" | "ipc" if !is_packed => Ok(Self::Arrow),
            "bin" if !is_packed => Ok(Self::Cifar),
            "idx" => Ok(Self::Idx),
            _ if plain.ends_with("-ubyte") => Ok(Self::Idx),
            // What has a delimiter is text, whatever it is called.
            _ if csv.delimiter.is_some() => Ok(Self::Csv),
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
    read_as: BTreeMap<String, ReadAs>,
    csv: CsvOptions,
    /// The maximum number of rows to read; none for all.
    limit: Option<usize>,
}

impl Source {
    /// Opens files by name or pattern (`logs/*.parquet`), sorted by name. The columns of `read_as`
    /// are read as the given types.
    pub fn open(patterns: &[String], read_as: BTreeMap<String, ReadAs>) -> Result<Self> {
        Self::open_with(patterns, read_as, CsvOptions::default())
    }

    /// The same with options for text files.
    pub fn open_with(
        patterns: &[String],
        read_as: BTreeMap<String, ReadAs>,
        csv: CsvOptions,
    ) -> Result<Self> {
        let files = expand(patterns)?;
        let format = Format::of(&files[0], &csv)?;
        let mut schema: Option<Schema> = None;
        for file in &files {
            if Format::of(file, &csv)? != format {
                return Err(bad(file, format!("it is of another format than {}", files[0].display())));
            }
            let of_file = schema_of(file, format, &read_as, &csv)?;
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
        let source = Self { files, format, schema: Arc::new(schema), read_as, csv, limit: None };
        for column in source.read_as.keys() {
            source.kind(column)?;
        }
        Ok(source)
    }

    /// The names and kinds of the columns, in file order.
    pub fn columns(&self) -> Vec<(&str, Kind)> {
        let kind = |field: &Arc<Field>| Kind::of(field.data_type()).expect("checked when opened");
        self.schema.fields().iter().map(|field| (field.name().as_str(), kind(field))).collect()
    }

    /// The kind of one column.
    pub fn kind(&self, column: &str) -> Result<Kind> {
        let found = self.columns().into_iter().find(|(name, _)| *name == column);
        found.map(|(_, kind)| kind).ok_or_else(|| self.lacks(column))
    }

    /// The shape of the images in a list column, if the files store it.
    pub fn image(&self, column: &str) -> Option<ImageShape> {
        images::shape(self.schema.field_with_name(column).ok()?)
    }

    /// Whether the files are delimiter-separated text, whose types are inferred.
    pub fn is_csv(&self) -> bool {
        self.format == Format::Csv
    }

    /// The first file, for messages.
    pub(super) fn first_file(&self) -> &Path {
        &self.files[0]
    }

    fn lacks(&self, column: &str) -> Error {
        /// The maximum number of names in a message.
        const LISTED: usize = 12;
        let names: Vec<&str> = self.columns().into_iter().map(|(name, _)| name).collect();
        let listed = names[..names.len().min(LISTED)].join(", ");
        let columns = match names.len().saturating_sub(LISTED) {
            0 => listed,
            more => format!("{listed} and {more} more"),
        };
        let columns = match csv::of_one_column(&self.schema).filter(|_| self.is_csv()) {
            Some(delimiter) => format!("{columns} (one column: is the delimiter {delimiter}?)"),
            None => columns,
        };
        Error::NoSuchColumn { path: self.files[0].clone(), column: column.into(), columns }
    }

    /// The Arrow schema, for writing rows.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// From now on reads text in these columns as [categories](ReadAs::Category), unless another
    /// type was set.
    #[must_use]
    pub fn with_categories(mut self, columns: &[String]) -> Self {
        for name in columns {
            if self.kind(name) == Ok(Kind::Text) {
                self.read_as.entry(name.clone()).or_insert(ReadAs::Category);
            }
        }
        self
    }

    /// Reads only the first rows. An error in later rows may still be reported.
    #[must_use]
    pub fn first(self, n_rows: usize) -> Self {
        Self { limit: Some(n_rows), ..self }
    }

    /// The named columns in batches, file after file. Categories may be dictionary-encoded;
    /// [`plain`](Self::plain) decodes them to the types of the file.
    pub fn batches<'s>(&'s self, columns: &'s [String]) -> impl Iterator<Item = Result<RecordBatch>> + 's {
        let mut batches = self.files.iter().flat_map(|file| match self.open_file(file, columns) {
            Ok(batches) => batches,
            Err(error) => Box::new(std::iter::once(Err(error))),
        });
        let mut left = self.limit.unwrap_or(usize::MAX);
        std::iter::from_fn(move || {
            if left == 0 {
                return None;
            }
            let batch = batches.next()?.map(|batch| batch.slice(0, left.min(batch.num_rows())));
            left -= batch.as_ref().map_or(0, RecordBatch::num_rows);
            Some(batch)
        })
    }

    /// The named columns of a batch, for a fitted encoder.
    pub fn table(&self, batch: &RecordBatch, columns: &[String]) -> Result<Table> {
        let mut builders = self.builders(columns)?;
        extend(&mut builders, batch, columns)?;
        finish(builders, columns)
    }

    /// The named columns of a batch, with the types of [`schema`](Self::schema).
    pub fn plain(&self, batch: &RecordBatch, columns: &[String]) -> Result<Vec<ArrayRef>> {
        let column = |name: &String| {
            let unreadable = |found: String| Error::UnreadableColumn { column: name.clone(), found };
            let field = self.schema.field_with_name(name).map_err(|_| self.lacks(name))?;
            let array = array(batch, name)?;
            if field.data_type().is_integer() && array.data_type().is_floating() {
                let reason =
                    format!("column `{name}` begins with whole numbers, but not all are: read it as numbers");
                return Err(bad(&self.files[0], reason));
            }
            as_type(array, field.data_type()).map_err(unreadable)
        };
        columns.iter().map(column).collect()
    }

    /// The named columns of all rows.
    pub fn read(&self, columns: &[String]) -> Result<Table> {
        let mut builders = self.builders(columns)?;
        if self.format == Format::Parquet && self.limit.is_none() {
            let n_rows = self.files.iter().map(|file| parquet::n_rows(file)).sum::<Result<usize>>()?;
            for builder in &mut builders {
                builder.reserve(n_rows);
            }
        }
        if self.format == Format::Csv && self.limit.is_none() {
            let places = self.places(columns)?;
            for file in &self.files {
                csv::read(file, &self.csv, &self.schema, &places, &mut builders)?;
            }
            return finish(builders, columns);
        }
        for batch in self.batches(columns) {
            extend(&mut builders, &batch?, columns)?;
        }
        finish(builders, columns)
    }

    fn builders(&self, columns: &[String]) -> Result<Vec<ColumnBuilder>> {
        let builder =
            |name: &String| Ok(ColumnBuilder::new(name, self.kind(name)?, self.read_as.get(name).copied()));
        columns.iter().map(builder).collect()
    }

    fn places(&self, columns: &[String]) -> Result<Vec<usize>> {
        columns.iter().map(|name| self.schema.index_of(name).map_err(|_| self.lacks(name))).collect()
    }

    fn open_file<'s>(
        &'s self,
        file: &'s Path,
        columns: &[String],
    ) -> Result<Box<dyn Iterator<Item = Result<RecordBatch>> + 's>> {
        let opened = || File::open(file).map_err(|error| cannot_read(file, error));
        let places = self.places(columns)?;
        Ok(match self.format {
            Format::Csv => Box::new(csv::batches(file, &self.csv, &self.schema, &places, &self.read_as)?),
            Format::Parquet => Box::new(parquet::batches(file, &places, &self.read_as)?),
            Format::Arrow => {
                let reader = FileReader::try_new(BufReader::new(opened()?), Some(places))
                    .map_err(|error| bad(file, error))?;
                Box::new(reader.map(move |batch| batch.map_err(|error| bad(file, error))))
            }
            Format::Idx => Box::new(std::iter::once(images::read_idx(file, unpacked(file)?))),
            Format::Cifar => Box::new(images::read_cifar(file, opened()?)),
        })
    }
}

/// Appends a batch to columns; threads share the columns.
fn extend(builders: &mut [ColumnBuilder], batch: &RecordBatch, columns: &[String]) -> Result<()> {
    let failed: Option<Error> = builders
        .par_iter_mut()
        .zip(columns)
        .map(|(builder, name)| builder.extend(array(batch, name)?))
        .find_map_first(Result::err);
    failed.map_or(Ok(()), Err)
}

fn finish(builders: Vec<ColumnBuilder>, columns: &[String]) -> Result<Table> {
    Table::new(columns.iter().cloned().zip(builders.into_iter().map(ColumnBuilder::finish)).collect())
}

fn array<'b>(batch: &'b RecordBatch, name: &str) -> Result<&'b ArrayRef> {
    batch.column_by_name(name).ok_or_else(|| Error::ColumnMissing { column: name.into() })
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
            return Err(cannot_read(Path::new(pattern), "no such file"));
        }
        files.extend(found);
    }
    if files.is_empty() {
        return Err(Error::NoRows);
    }
    // By any name: a pattern may find a file that is named, too, and a link is the file that it points to.
    let mut seen = HashSet::new();
    if let Some(twice) =
        files.iter().find(|file| !seen.insert(file.canonicalize().unwrap_or_else(|_| (*file).clone())))
    {
        return Err(Error::FileTwice { path: twice.clone() });
    }
    Ok(files)
}

fn schema_of(
    file: &Path,
    format: Format,
    read_as: &BTreeMap<String, ReadAs>,
    csv: &CsvOptions,
) -> Result<Schema> {
    let opened = || File::open(file).map_err(|error| cannot_read(file, error));
    let schema = match format {
        Format::Csv => csv::schema(file, csv, read_as)?,
        Format::Parquet => parquet::schema(file)?,
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

/// The common schema of two files: the same columns, with whole numbers widened to numbers if
/// needed.
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
        Ok(Field::new(one.name(), data_type, true).with_metadata(one.metadata().clone()))
    };
    Ok(Schema::new(schema.fields().iter().zip(other.fields()).map(field).collect::<Result<Vec<_>>>()?))
}

/// The bytes of a file, decompressed by its extension.
pub(super) fn unpacked(file: &Path) -> Result<Box<dyn Read + Send>> {
    let opened = File::open(file).map_err(|error| cannot_read(file, error))?;
    let buffered = |opened| BufReader::with_capacity(1 << 20, opened);
    Ok(match file.extension().map(|extension| extension.to_string_lossy().to_lowercase()).as_deref() {
        Some("gz") => Box::new(flate2::bufread::MultiGzDecoder::new(buffered(opened))),
        Some("zst") => {
            Box::new(zstd::Decoder::with_buffer(buffered(opened)).map_err(|error| cannot_read(file, error))?)
        }
        _ => Box::new(opened),
    })
}

pub(super) fn cannot_read(file: &Path, source: impl Into<Cause>) -> Error {
    Error::CannotRead { path: file.into(), source: source.into() }
}

pub(super) fn bad(file: &Path, source: impl Into<Cause>) -> Error {
    Error::BadFile { path: file.into(), source: source.into() }
}
