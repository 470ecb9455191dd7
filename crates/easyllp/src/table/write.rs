//! Write tables to CSV, Parquet or Arrow IPC, by file extension, atomically.

use super::csv::write::{header, lines};
use crate::atomic::{AtomicFile, cannot_write};
use crate::error::Result;
use arrow_array::RecordBatch;
use arrow_ipc::writer::FileWriter;
use arrow_schema::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Writes batches of one schema to a file, which appears under its name when it is complete.
pub struct TableWriter {
    path: PathBuf,
    writer: Writer,
}

enum Writer {
    Csv(AtomicFile),
    Parquet(Box<ArrowWriter<AtomicFile>>),
    Arrow(Box<FileWriter<AtomicFile>>),
}

impl TableWriter {
    /// Starts a file; its extension sets the format: `.csv`, `.parquet` or `.arrow`.
    pub fn create(path: &Path, schema: SchemaRef) -> Result<Self> {
        let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
        let file = || AtomicFile::create(path);
        let writer = match extension.as_deref() {
            Some("csv") => {
                let mut file = file()?;
                file.write_all(header(&schema).as_bytes()).map_err(|error| cannot_write(path, error))?;
                Writer::Csv(file)
            }
            Some("parquet" | "pq") => {
                let properties =
                    WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default()));
                let writer = ArrowWriter::try_new(file()?, schema, Some(properties.build()));
                Writer::Parquet(Box::new(writer.map_err(|error| cannot_write(path, error))?))
            }
            Some("arrow" | "feather" | "ipc") => {
                let writer = FileWriter::try_new(file()?, &schema);
                Writer::Arrow(Box::new(writer.map_err(|error| cannot_write(path, error))?))
            }
            _ => {
                return Err(cannot_write(path, "its name must end in csv, parquet or arrow"));
            }
        };
        Ok(Self { path: path.into(), writer })
    }

    /// Adds rows.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        match &mut self.writer {
            Writer::Csv(file) => {
                let lines = lines(batch).map_err(|of| {
                    cannot_write(
                        &self.path,
                        format!("a field of CSV cannot hold {of}: write Parquet or Arrow"),
                    )
                })?;
                file.write_all(lines.as_bytes()).map_err(|error| cannot_write(&self.path, error))
            }
            Writer::Parquet(writer) => writer.write(batch).map_err(|error| cannot_write(&self.path, error)),
            Writer::Arrow(writer) => writer.write(batch).map_err(|error| cannot_write(&self.path, error)),
        }
    }

    /// Completes the file and renames it into place.
    pub fn finish(self) -> Result<()> {
        let file = match self.writer {
            Writer::Csv(file) => file,
            Writer::Parquet(writer) => {
                writer.into_inner().map_err(|error| cannot_write(&self.path, error))?
            }
            Writer::Arrow(writer) => writer.into_inner().map_err(|error| cannot_write(&self.path, error))?,
        };
        file.commit()
    }
}
