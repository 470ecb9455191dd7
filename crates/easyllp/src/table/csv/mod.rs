//! CSV files: types told by their first lines, whole blocks of lines read by threads side by side.
//!
//! Fields are apart by commas, records by line ends; a field in double quotes may hold both, and a quote as two. A
//! mistake is told with its line and column.

mod records;
mod values;

use super::source::{Kind, ReadAs, bad, cannot_read, unpacked};
use crate::error::{Error, Result};
use arrow_array::RecordBatch;
use arrow_csv::reader::Format;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use rayon::prelude::*;
use records::{Blocks, Flaw};
use regex::Regex;
use std::collections::{BTreeMap, VecDeque};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Lines that types are told by.
const LINES_FOR_TYPES: usize = 10_000;

pub(super) fn schema(file: &Path, read_as: &BTreeMap<String, ReadAs>) -> Result<Schema> {
    let missing = Regex::new("^(NA|N/A|NaN|nan|null|NULL|None)?$").expect("a pattern that compiles");
    let format = Format::default().with_header(true).with_null_regex(missing);
    let (schema, _) = format
        .infer_schema(without_mark(file)?, Some(LINES_FOR_TYPES))
        .map_err(|error| bad(file, reworded(&error)))?;
    let field = |field: &Arc<Field>| {
        let inferred = field.data_type().clone();
        let data_type = match read_as.get(field.name()) {
            Some(ReadAs::Text | ReadAs::Category) => DataType::Utf8,
            None if inferred == DataType::Null => DataType::Utf8,
            Some(ReadAs::Number) if !inferred.is_temporal() && inferred != DataType::Boolean => {
                DataType::Float64
            }
            _ => inferred,
        };
        Field::new(field.name(), data_type, true)
    };
    Ok(Schema::new(schema.fields().iter().map(field).collect::<Vec<_>>()))
}

/// arrow-csv's words for what can be wrong with the first lines, in ours.
fn reworded(error: &ArrowError) -> String {
    let text = error.to_string();
    let ragged = || {
        let (_, rest) = text.split_once("Expected ")?;
        let (expected, rest) = rest.split_once(" records, found ")?;
        let (found, line) = rest.split_once(" records at line ")?;
        // Counted with the header, as an editor does.
        Some(miscounted(line.trim(), found, expected))
    };
    ragged().unwrap_or_else(|| if text.contains("UTF-8") { NOT_TEXT.into() } else { text.clone() })
}

fn miscounted(
    line: impl std::fmt::Display,
    found: impl std::fmt::Display,
    expected: impl std::fmt::Display,
) -> String {
    format!("line {line} has a number of fields, {found}, that is not the header's, {expected}")
}

const NOT_TEXT: &str = "it is no UTF-8 text";

/// The columns at these places, batch by batch.
pub(super) fn batches(
    file: &Path,
    schema: &SchemaRef,
    places: Vec<usize>,
) -> Result<impl Iterator<Item = Result<RecordBatch>> + use<>> {
    let mut blocks = Blocks::new(without_mark(file)?);
    blocks.skip_record().map_err(|flaw| explained(file, schema, 0, flaw))?;
    let (path, schema) = (file.to_owned(), Arc::clone(schema));
    Ok(Batches { path, schema, places, blocks, n_records: 0, parsed: VecDeque::new() })
}

/// A file without the mark by which some programs say that it is UTF-8.
fn without_mark(file: &Path) -> Result<Box<dyn Read>> {
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
        let mut blocks = Vec::new();
        let mut failed = None;
        while blocks.len() < rayon::current_num_threads() {
            match self.blocks.next() {
                Some(Ok(block)) => blocks.push(block),
                Some(Err(flaw)) => {
                    failed = Some(Err(flaw));
                    break;
                }
                None => break,
            }
        }
        let (schema, places) = (&self.schema, &self.places);
        let parse = |block| values::batch(block, schema, places);
        self.parsed = blocks.into_par_iter().map(parse).collect::<Vec<_>>().into();
        self.parsed.extend(failed);
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
        Flaw::NotText => bad(file, NOT_TEXT),
        Flaw::Fields { record, found } => {
            let (line, expected) = (n_before + record + 2, schema.fields().len());
            bad(file, miscounted(line, found, expected))
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
