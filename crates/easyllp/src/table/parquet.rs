//! Parquet files: each column has its own reader, so that threads share decompression.

use super::source::{BATCH, ReadAs, bad, cannot_read};
use crate::error::Result;
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::basic::Encoding;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(super) fn schema(file: &Path) -> Result<Schema> {
    Ok(metadata(file)?.schema().as_ref().clone())
}

/// The number of rows in the metadata, limited by the file's size, since a file may claim anything.
pub(super) fn n_rows(file: &Path) -> Result<usize> {
    /// The maximum plausible number of rows per byte.
    const MOST_IN_A_BYTE: u64 = 64;
    let said = metadata(file)?.metadata().file_metadata().num_rows();
    let n_bytes = std::fs::metadata(file).map_err(|error| cannot_read(file, error))?.len();
    let likely = u64::try_from(said).unwrap_or(0).min(n_bytes.saturating_mul(MOST_IN_A_BYTE));
    Ok(usize::try_from(likely).unwrap_or(0))
}

fn metadata(file: &Path) -> Result<ArrowReaderMetadata> {
    let opened = File::open(file).map_err(|error| cannot_read(file, error))?;
    ArrowReaderMetadata::load(&opened, ArrowReaderOptions::new()).map_err(|error| bad(file, error))
}

/// The columns with these indices, batch by batch. Categories are read in the form that hashes
/// fastest.
pub(super) fn batches(
    file: &Path,
    places: &[usize],
    read_as: &BTreeMap<String, ReadAs>,
) -> Result<impl Iterator<Item = Result<RecordBatch>> + use<>> {
    let metadata = metadata(file)?;
    let field = |(place, field): (usize, &Arc<Field>)| {
        let is_text = matches!(field.data_type(), DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
        match read_as.get(field.name()) {
            Some(ReadAs::Category) if is_text => {
                let coded = is_coded(metadata.metadata(), place);
                let data_type = if coded {
                    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
                } else {
                    DataType::Utf8View
                };
                Arc::new(field.as_ref().clone().with_data_type(data_type))
            }
            _ => Arc::clone(field),
        }
    };
    let fields: Vec<Arc<Field>> = metadata.schema().fields().iter().enumerate().map(field).collect();
    let wanted = Schema::new_with_metadata(fields, metadata.schema().metadata().clone());
    let options = ArrowReaderOptions::new().with_schema(Arc::new(wanted));
    let metadata = ArrowReaderMetadata::try_new(Arc::clone(metadata.metadata()), options)
        .map_err(|error| bad(file, error))?;
    let reader = |&place: &usize| {
        // Each reader opens the file again: cloned handles share one position.
        let opened = File::open(file).map_err(|error| cannot_read(file, error))?;
        ParquetRecordBatchReaderBuilder::new_with_metadata(opened, metadata.clone())
            .with_projection(ProjectionMask::roots(metadata.parquet_schema(), [place]))
            .with_batch_size(BATCH)
            .build()
            .map_err(|error| bad(file, error))
    };
    Ok(Columns { path: file.to_owned(), readers: places.iter().map(reader).collect::<Result<_>>()? })
}

/// Whether all pages of a text column are dictionary-encoded: each value is then hashed once.
fn is_coded(metadata: &ParquetMetaData, root: usize) -> bool {
    let schema = metadata.file_metadata().schema_descr();
    let Some(leaf) = (0..schema.num_columns()).find(|&leaf| schema.get_column_root_idx(leaf) == root) else {
        return false;
    };
    let is_coded = |chunk: &ColumnChunkMetaData| {
        let pages = chunk.page_encoding_stats_mask();
        let by_dictionary = [Encoding::RLE_DICTIONARY, Encoding::PLAIN_DICTIONARY];
        chunk.dictionary_page_offset().is_some()
            && pages.is_some_and(|pages| by_dictionary.iter().any(|encoding| pages.is_only(*encoding)))
    };
    metadata.row_groups().iter().all(|group| is_coded(group.column(leaf)))
}

struct Columns {
    path: PathBuf,
    readers: Vec<ParquetRecordBatchReader>,
}

impl Iterator for Columns {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let parts: Vec<_> = self.readers.par_iter_mut().map(Iterator::next).collect();
        if parts.iter().all(Option::is_none) {
            return None;
        }
        let mut fields = Vec::with_capacity(parts.len());
        let mut columns = Vec::with_capacity(parts.len());
        for part in parts {
            match part {
                Some(Ok(part)) => {
                    fields.push(Arc::clone(&part.schema().fields()[0]));
                    columns.push(Arc::clone(part.column(0)));
                }
                Some(Err(error)) => return Some(Err(bad(&self.path, error))),
                None => return Some(Err(bad(&self.path, "its columns are not of one length"))),
            }
        }
        // Readers of sound columns all come to a batch's end at the same row.
        if columns.iter().any(|column| column.len() != columns[0].len()) {
            return Some(Err(bad(&self.path, "its columns are not of one length")));
        }
        Some(
            RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
                .map_err(|error| bad(&self.path, error)),
        )
    }
}
