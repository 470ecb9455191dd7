//! Delimiter-separated text files, CSV and TSV. Types are inferred from the first lines, and blocks
//! of lines are read in parallel.
//!
//! Fields are separated by a delimiter, records by a line end. A field in double quotes may contain
//! both; a quote in it is doubled. Errors name the line and the column.

mod blocks;
mod delimiter;
mod records;
mod types;
mod values;
pub(super) mod write;

pub use delimiter::Delimiter;

use super::Kind;
use super::convert::ColumnBuilder;
use super::source::{ReadAs, bad, cannot_read, unpacked};
use crate::error::{Error, Result};
use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use blocks::{Block, Blocks, Flaw, Mistake};
use rayon::prelude::*;
use std::collections::{BTreeMap, VecDeque};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use types::Told;
use values::Place;

/// Types are inferred from at least this number of records, unless they are very long.
const RECORDS_FOR_TYPES: usize = 10_000;
const BYTES_FOR_TYPES: usize = 32 << 20;

/// Options of text files. Files of other formats ignore them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CsvOptions {
    /// The delimiter. By default a tab for `.tsv` files; for others the delimiter that occurs most
    /// often in the first line, outside of quotes. If it is set, files may have any extension.
    pub delimiter: Option<Delimiter>,
    /// The column names of files without a header. If empty, the first line is the header.
    pub names: Vec<String>,
}

type FileBlocks = Blocks<Box<dyn Read + Send>>;

impl CsvOptions {
    /// The column names of a file, and its records in blocks of about this number of bytes.
    fn open(&self, file: &Path, size: usize) -> Result<(Vec<String>, FileBlocks)> {
        let delimiter = self.delimiter.or_else(|| Delimiter::of_name(file));
        let mut blocks = Blocks::new(without_mark(file)?, delimiter, size);
        let names = if self.names.is_empty() {
            blocks.header().map_err(|mistake| self.explained(file, &Schema::empty(), mistake))?
        } else {
            self.names.clone()
        };
        Ok((names, blocks))
    }
}

pub(super) fn schema(
    file: &Path,
    options: &CsvOptions,
    read_as: &BTreeMap<String, ReadAs>,
) -> Result<Schema> {
    let (names, mut blocks) = options.open(file, 1 << 20)?;
    let text = |name: &String| Field::new(name, DataType::Utf8, true);
    let unknown = Schema::new(names.iter().map(text).collect::<Vec<_>>());
    let mut told = vec![Told::Nothing; names.len()];
    let (mut n_records, mut n_bytes) = (0, 0);
    while n_records < RECORDS_FOR_TYPES && n_bytes < BYTES_FOR_TYPES {
        let Some(block) = blocks.next() else { break };
        let mistaken = |mistake| options.explained(file, &unknown, mistake);
        let block = block.map_err(mistaken)?;
        let records = block.records(names.len()).map_err(|flaw| mistaken(block.mistake(flaw)))?;
        told.par_iter_mut().enumerate().for_each(|(place, told)| told.see(&records, place));
        n_records += records.len();
        n_bytes += block.bytes.len();
    }
    let field = |(name, told): (&String, Told)| {
        let told = told.data_type();
        let data_type = match read_as.get(name) {
            Some(ReadAs::Text | ReadAs::Category) => DataType::Utf8,
            Some(ReadAs::Number) if !told.is_temporal() && told != DataType::Boolean => DataType::Float64,
            _ => told,
        };
        Field::new(name, data_type, true)
    };
    Ok(Schema::new(names.iter().zip(told).map(field).collect::<Vec<_>>()))
}

/// Appends the columns with these indices to `columns`: threads share the blocks to find fields,
/// then the columns to convert them.
pub(super) fn read(
    file: &Path,
    options: &CsvOptions,
    schema: &SchemaRef,
    places: &[usize],
    columns: &mut [ColumnBuilder],
) -> Result<()> {
    // With the places of its fields a block is to stay near the processor while columns go through it.
    let (_, mut blocks) = options.open(file, 256 << 10)?;
    let n_threads = rayon::current_num_threads();
    let mut read = blocks.some(n_threads);
    // From within the pool: nothing is handed over to it block by block.
    rayon::scope(|_| {
        while !read.0.is_empty() || read.1.is_some() {
            // The next ones are read while these are taken apart.
            let (added, next) = rayon::join(|| add(read, schema, places, columns), || blocks.some(n_threads));
            added.map_err(|mistake| options.explained(file, schema, mistake))?;
            read = next;
        }
        Ok(())
    })
}

/// Appends the records of some blocks. Reports the first error in the file.
fn add(
    (blocks, failed): (Vec<Block>, Option<Mistake>),
    schema: &Schema,
    places: &[usize],
    columns: &mut [ColumnBuilder],
) -> std::result::Result<(), Mistake> {
    let n_fields = schema.fields().len();
    let split = blocks.par_iter().map(|block| match block.records(n_fields) {
        Ok(records) => Ok((block, records)),
        Err(flaw) => Err(block.mistake(flaw)),
    });
    let (mut sound, mut mistake) = (Vec::new(), None);
    for records in split.collect::<Vec<_>>().into_iter().chain(failed.map(Err)) {
        match records {
            Ok(records) => sound.push(records),
            Err(found) => {
                mistake = Some(found);
                break;
            }
        }
    }
    let mistakes = columns.par_iter_mut().zip(places).with_max_len(1).filter_map(|(column, &place)| {
        let data_type = schema.field(place).data_type();
        sound.iter().find_map(|(block, records)| {
            Some(block.mistake(values::extend(column, records, place, data_type).err()?))
        })
    });
    let mistakes: Vec<Mistake> = mistakes.collect();
    let first = mistakes.into_iter().chain(mistake).min_by_key(|mistake| mistake.line);
    first.map_or(Ok(()), Err)
}

/// The columns with these indices, batch by batch.
pub(super) fn batches(
    file: &Path,
    options: &CsvOptions,
    schema: &SchemaRef,
    places: &[usize],
    read_as: &BTreeMap<String, ReadAs>,
) -> Result<impl Iterator<Item = Result<RecordBatch>> + use<>> {
    let place = |&column: &usize| {
        let is_in_full = read_as.get(schema.field(column).name()) == Some(&ReadAs::Text);
        Place { column, is_in_full }
    };
    let places = places.iter().map(place).collect();
    let (_, blocks) = options.open(file, 1 << 20)?;
    let (path, options, schema) = (file.to_owned(), options.clone(), Arc::clone(schema));
    Ok(Batches { path, options, schema, places, blocks, parsed: VecDeque::new() })
}

/// A file without its byte order mark.
fn without_mark(file: &Path) -> Result<Box<dyn Read + Send>> {
    const MARK: &[u8] = "\u{feff}".as_bytes();
    let mut reader = unpacked(file)?;
    let mut start = Vec::new();
    reader
        .by_ref()
        .take(MARK.len() as u64)
        .read_to_end(&mut start)
        .map_err(|error| cannot_read(file, error))?;
    if start == MARK {
        start.clear();
    }
    Ok(Box::new(std::io::Cursor::new(start).chain(reader)))
}

struct Batches {
    path: PathBuf,
    options: CsvOptions,
    schema: SchemaRef,
    places: Vec<Place>,
    blocks: FileBlocks,
    /// Blocks that were read, in order.
    parsed: VecDeque<std::result::Result<RecordBatch, Mistake>>,
}

impl Batches {
    /// Reads one block per thread.
    fn read_on(&mut self) {
        let (blocks, failed) = self.blocks.some(rayon::current_num_threads());
        let (schema, places) = (&self.schema, &self.places);
        let parse = |block: Block| values::batch(&block, schema, places).map_err(|flaw| block.mistake(flaw));
        self.parsed = blocks.into_par_iter().map(parse).collect::<Vec<_>>().into();
        self.parsed.extend(failed.map(Err));
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.parsed.is_empty() {
            self.read_on();
        }
        let parsed = self.parsed.pop_front()?;
        Some(parsed.map_err(|mistake| self.options.explained(&self.path, &self.schema, mistake)))
    }
}

impl CsvOptions {
    /// The error message for a malformed file.
    fn explained(&self, file: &Path, schema: &Schema, Mistake { line, flaw }: Mistake) -> Error {
        let reason = match flaw {
            Flaw::CannotRead(error) => return cannot_read(file, error),
            Flaw::TooLong => {
                format!(
                    "the record that starts in line {line} is longer than 64 MB: a quote may be missing its end"
                )
            }
            Flaw::Open => {
                format!("the record that starts in line {line} ends within quotes: a quote is missing")
            }
            Flaw::NotText => format!("line {line} is not UTF-8 text"),
            Flaw::Fields { found, delimiter, .. } => {
                let (fields, expected) = (if found == 1 { "field" } else { "fields" }, schema.fields().len());
                let told = if self.names.is_empty() { " as in the header" } else { "" };
                let doubt = doubt(schema, delimiter);
                format!("line {line}: found {found} {fields}, expected {expected}{told}{doubt}")
            }
            Flaw::Value { place, value, .. } => {
                let field = schema.field(place);
                let kind = Kind::of(field.data_type()).map_or("something else", Kind::name);
                let name = field.name();
                format!("line {line}: found `{value}` in column `{name}`, which is read as {kind}")
            }
        };
        bad(file, reason)
    }
}

/// A hint for errors that a wrong delimiter may have caused; empty if the header has no other
/// delimiter.
fn doubt(schema: &Schema, delimiter: Delimiter) -> String {
    if let Some(other) = of_one_column(schema) {
        return format!("; the delimiter is {delimiter}: is it {other}?");
    }
    let is_usual = delimiter == Delimiter::Comma;
    if is_usual { String::new() } else { format!("; the delimiter is {delimiter}: set another if it is not") }
}

/// The delimiter that the name of the only column contains: such a file probably has that
/// delimiter.
pub(super) fn of_one_column(schema: &Schema) -> Option<Delimiter> {
    let [only] = &schema.fields()[..] else { return None };
    Delimiter::ALL.into_iter().find(|delimiter| only.name().as_bytes().contains(&delimiter.byte()))
}
