//! CSV files: types told by their first lines, whole blocks of lines read by threads side by side.
//!
//! Fields are apart by commas, records by line ends; a field in double quotes may hold both, and a quote as two. A
//! mistake is told with its line and column.

mod records;
mod times;
mod types;
mod values;
pub(super) mod write;

use super::convert::ColumnBuilder;
use super::source::{Kind, ReadAs, bad, cannot_read, unpacked};
use crate::error::{Error, Result};
use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use rayon::prelude::*;
use records::{Blocks, Flaw, Records};
use std::collections::{BTreeMap, VecDeque};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use types::Told;

/// Types are told by at least so many lines, if they are not very long.
const LINES_FOR_TYPES: usize = 10_000;
const BYTES_FOR_TYPES: usize = 32 << 20;

pub(super) fn schema(file: &Path, read_as: &BTreeMap<String, ReadAs>) -> Result<Schema> {
    let mut blocks = Blocks::new(without_mark(file)?, 1 << 20);
    let header = |flaw| explained(file, &Schema::empty(), 0, flaw);
    let names = blocks.header().map_err(header)?;
    let text = |name: &String| Field::new(name, DataType::Utf8, true);
    let unknown = Schema::new(names.iter().map(text).collect::<Vec<_>>());
    let mut told = vec![Told::Nothing; names.len()];
    let (mut n_lines, mut n_bytes) = (0, 0);
    while n_lines < LINES_FOR_TYPES && n_bytes < BYTES_FOR_TYPES {
        let Some(block) = blocks.next() else { break };
        let flawed = |flaw| explained(file, &unknown, n_lines, flaw);
        let block = block.map_err(flawed)?;
        let records = Records::split(&block, names.len()).map_err(flawed)?;
        told.par_iter_mut().enumerate().for_each(|(place, told)| told.see(&records, place));
        n_lines += records.len();
        n_bytes += block.len();
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

const NOT_TEXT: &str = "it is no UTF-8 text";

/// Adds the columns at these places to `columns`: threads share the blocks while fields are found, then the columns.
pub(super) fn read(
    file: &Path,
    schema: &SchemaRef,
    places: &[usize],
    columns: &mut [ColumnBuilder],
) -> Result<()> {
    // With the places of its fields a block is to stay near the processor while columns go through it.
    let mut blocks = blocks(file, schema, 256 << 10)?;
    let n_threads = rayon::current_num_threads();
    let mut n_before = 0;
    let mut read = blocks.some(n_threads);
    // From within the pool: nothing is handed over to it block by block.
    rayon::scope(|_| {
        while !read.0.is_empty() || read.1.is_some() {
            // The next ones are read while these are taken apart.
            let (added, next) = rayon::join(|| add(read, schema, places, columns), || blocks.some(n_threads));
            n_before += added.map_err(|flaw| explained(file, schema, n_before, flaw))?;
            read = next;
        }
        Ok(())
    })
}

/// Adds the records of some blocks, and says how many they are. Of all flaws the first in the file is told.
fn add(
    (blocks, failed): (Vec<Vec<u8>>, Option<Flaw>),
    schema: &Schema,
    places: &[usize],
    columns: &mut [ColumnBuilder],
) -> std::result::Result<usize, Flaw> {
    let split: Vec<_> = blocks.par_iter().map(|block| Records::split(block, schema.fields().len())).collect();
    let mut n_records = 0;
    let (mut sound, mut flaw) = (Vec::new(), None);
    for records in split.into_iter().chain(failed.map(Err)) {
        match records {
            Ok(records) => {
                let n_before = n_records;
                n_records += records.len();
                sound.push((n_before, records));
            }
            Err(found) => {
                flaw = Some(found.after(n_records));
                break;
            }
        }
    }
    let flaws = columns.par_iter_mut().zip(places).with_max_len(1).filter_map(|(column, &place)| {
        let data_type = schema.field(place).data_type();
        sound.iter().find_map(|(n_before, records)| {
            Some(values::extend(column, records, place, data_type).err()?.after(*n_before))
        })
    });
    let flaws: Vec<Flaw> = flaws.collect();
    // A flaw of no known record comes after all that was sound.
    let first = flaws.into_iter().chain(flaw).min_by_key(|flaw| flaw.record().unwrap_or(n_records));
    first.map_or(Ok(n_records), Err)
}

/// A file's records below its header, in blocks of about so many bytes.
fn blocks(file: &Path, schema: &Schema, size: usize) -> Result<Blocks<Box<dyn Read + Send>>> {
    let mut blocks = Blocks::new(without_mark(file)?, size);
    blocks.header().map_err(|flaw| explained(file, schema, 0, flaw))?;
    Ok(blocks)
}

/// The columns at these places, batch by batch.
pub(super) fn batches(
    file: &Path,
    schema: &SchemaRef,
    places: Vec<usize>,
) -> Result<impl Iterator<Item = Result<RecordBatch>> + use<>> {
    let blocks = blocks(file, schema, 1 << 20)?;
    let (path, schema) = (file.to_owned(), Arc::clone(schema));
    Ok(Batches { path, schema, places, blocks, n_records: 0, parsed: VecDeque::new() })
}

/// A file without the mark by which some programs say that it is UTF-8.
fn without_mark(file: &Path) -> Result<Box<dyn Read + Send>> {
    const MARK: &[u8] = "\u{feff}".as_bytes();
    let mut reader = unpacked(file)?;
    let mut start = Vec::new();
    reader
        .by_ref()
        .take(MARK.len() as u64)
        .read_to_end(&mut start)
        .map_err(|error| cannot_read(file, &error))?;
    if start == MARK {
        start.clear();
    }
    Ok(Box::new(std::io::Cursor::new(start).chain(reader)))
}

struct Batches<R> {
    path: PathBuf,
    schema: SchemaRef,
    places: Vec<usize>,
    blocks: Blocks<R>,
    /// Records below the header that were given out.
    n_records: usize,
    /// Blocks that are read, in order.
    parsed: VecDeque<std::result::Result<RecordBatch, Flaw>>,
}

impl<R: Read> Batches<R> {
    /// Reads as many blocks as there are threads.
    fn read_on(&mut self) {
        let (blocks, failed) = self.blocks.some(rayon::current_num_threads());
        let (schema, places) = (&self.schema, &self.places);
        let parse = |block| values::batch(block, schema, places);
        self.parsed = blocks.into_par_iter().map(parse).collect::<Vec<_>>().into();
        self.parsed.extend(failed.map(Err));
    }
}

impl<R: Read> Iterator for Batches<R> {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.parsed.is_empty() {
            self.read_on();
        }
        Some(match self.parsed.pop_front()? {
            Ok(batch) => {
                self.n_records += batch.num_rows();
                Ok(batch)
            }
            Err(flaw) => Err(explained(&self.path, &self.schema, self.n_records, flaw)),
        })
    }
}

/// A flaw in words, with the number of records that came before its block.
fn explained(file: &Path, schema: &Schema, n_before: usize, flaw: Flaw) -> Error {
    match flaw {
        Flaw::CannotRead(error) => cannot_read(file, &error),
        Flaw::TooLong => bad(file, "a line is longer than 64 MB: a quote may be missing its end"),
        Flaw::Open => bad(file, "it ends within quotes: a quote is missing"),
        Flaw::NotText => bad(file, NOT_TEXT),
        Flaw::Fields { record, found } => {
            let (line, expected) = (n_before + record + 2, schema.fields().len());
            bad(
                file,
                format!("line {line} has a number of fields, {found}, that is not the header's, {expected}"),
            )
        }
        Flaw::Value { record, place, value } => {
            let field = schema.field(place);
            let kind = Kind::of(field.data_type()).map_or("something else", Kind::name);
            let (line, name) = (n_before + record + 1, field.name());
            bad(
                file,
                format!(
                    "line {line} below the header has `{value}` in column `{name}`, which holds {kind} so far"
                ),
            )
        }
    }
}
