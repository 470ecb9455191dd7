//! Images with labels, as columns `pixels` and `label`: IDX (MNIST's format) and CIFAR binary.
//!
//! Files are untrusted: sizes in a header are checked before memory is allocated.

use super::source::{bad, cannot_read};
use crate::error::Result;
use crate::model::ImageShape;
use arrow_array::{ArrayRef, FixedSizeListArray, Int64Array, RecordBatch, UInt8Array};
use arrow_schema::{DataType, Field, Schema};
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;
use std::sync::Arc;

/// The maximum size of a decompressed IDX file, so that a small file cannot fill the memory.
const LARGEST: u64 = 4 << 30;
/// The values of a CIFAR image, 32 × 32 in three colours.
const CIFAR_PIXELS: usize = 3072;
/// Images read at a time.
const IMAGES: usize = 4096;

/// Reads an IDX file: images (three dimensions) with the labels of the matching file, or labels
/// (one dimension).
pub(super) fn read_idx(file: &Path, reader: Box<dyn Read + Send>) -> Result<RecordBatch> {
    let (shape, bytes) = idx(file, reader)?;
    let mut fields = Vec::new();
    let mut columns: Vec<ArrayRef> = Vec::new();
    let label = || Field::new("label", DataType::Int64, false);
    match shape[..] {
        [_] => {
            fields.push(label());
            columns.push(labels(&bytes));
        }
        [n_images, height, width] => {
            let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let beside = file.with_file_name(name.replace("images-idx3", "labels-idx1"));
            if beside != file && beside.exists() {
                let (of_labels, values) = idx(&beside, super::source::unpacked(&beside)?)?;
                if of_labels != [n_images] {
                    return Err(bad(
                        &beside,
                        format!("its shape is {of_labels:?}, but there are {n_images} images"),
                    ));
                }
                fields.push(label());
                columns.push(labels(&values));
            }
            fields.push(pixel_field(ImageShape { channels: 1, height, width }));
            columns.push(pixels(bytes, height * width));
        }
        _ => return Err(bad(file, format!("{} dimensions: images have three, labels one", shape.len()))),
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).map_err(|error| bad(file, error))
}

/// The metadata key of a column's image shape.
const SHAPE: &str = "easyllp.image";

fn pixel_field(shape: ImageShape) -> Field {
    let n_pixels = shape.channels * shape.height * shape.width;
    let pixels = DataType::FixedSizeList(entry(), i32::try_from(n_pixels).expect("LARGEST is checked"));
    Field::new("pixels", pixels, false)
        .with_metadata(std::collections::HashMap::from([(SHAPE.to_owned(), shape.to_string())]))
}

/// The shape of the images in a column, if it is stored.
pub(super) fn shape(field: &Field) -> Option<ImageShape> {
    field.metadata().get(SHAPE)?.parse().ok()
}

/// Shape and bytes of an IDX file.
fn idx(file: &Path, mut reader: Box<dyn Read + Send>) -> Result<(Vec<usize>, Vec<u8>)> {
    let mut read = |n_bytes: usize| {
        let mut bytes = vec![0; n_bytes];
        reader.read_exact(&mut bytes).map_err(|_| bad(file, "it ends before its header does"))?;
        Ok(bytes)
    };
    let magic = read(4)?;
    if magic[..3] != [0, 0, 8] || magic[3] == 0 {
        return Err(bad(file, "it is no IDX file of bytes"));
    }
    let sizes = read(4 * usize::from(magic[3]))?;
    let size = |four: &[u8]| u32::from_be_bytes([four[0], four[1], four[2], four[3]]) as usize;
    let shape: Vec<usize> = sizes.chunks_exact(4).map(size).collect();
    let n_bytes = shape.iter().try_fold(1_u64, |product, &size| product.checked_mul(size as u64));
    let Some(n_bytes) = n_bytes.filter(|n_bytes| (1..=LARGEST).contains(n_bytes)) else {
        return Err(bad(file, format!("its shape {shape:?} is empty or larger than {LARGEST} bytes")));
    };
    let mut bytes = Vec::new();
    reader.take(n_bytes + 1).read_to_end(&mut bytes).map_err(|error| cannot_read(file, error))?;
    if bytes.len() as u64 != n_bytes {
        return Err(bad(file, format!("its shape {shape:?} does not fit the bytes that are there")));
    }
    Ok((shape, bytes))
}

pub(super) fn cifar_schema() -> Schema {
    let pixels = pixel_field(ImageShape { channels: 3, height: 32, width: 32 });
    Schema::new(vec![Field::new("label", DataType::Int64, false), pixels])
}

/// CIFAR's binary version: one byte of label, then the pixels.
pub(super) fn read_cifar(file: &Path, opened: File) -> impl Iterator<Item = Result<RecordBatch>> + '_ {
    let mut reader = BufReader::new(opened);
    std::iter::from_fn(move || {
        let mut bytes = Vec::new();
        let most = (IMAGES * (CIFAR_PIXELS + 1)) as u64;
        if let Err(error) = reader.by_ref().take(most).read_to_end(&mut bytes) {
            return Some(Err(cannot_read(file, error)));
        }
        if bytes.is_empty() {
            return None;
        }
        if !bytes.len().is_multiple_of(CIFAR_PIXELS + 1) {
            return Some(Err(bad(file, format!("its length is no multiple of {}", CIFAR_PIXELS + 1))));
        }
        let images = bytes.chunks_exact(CIFAR_PIXELS + 1);
        let of_label: Vec<u8> = images.clone().map(|image| image[0]).collect();
        let of_pixels: Vec<u8> = images.flat_map(|image| &image[1..]).copied().collect();
        let columns = [("label", labels(&of_label)), ("pixels", pixels(of_pixels, CIFAR_PIXELS))];
        Some(RecordBatch::try_from_iter(columns).map_err(|error| bad(file, error)))
    })
}

fn entry() -> Arc<Field> {
    Arc::new(Field::new("item", DataType::UInt8, false))
}

fn labels(bytes: &[u8]) -> ArrayRef {
    Arc::new(bytes.iter().map(|&label| i64::from(label)).collect::<Int64Array>())
}

fn pixels(bytes: Vec<u8>, width: usize) -> ArrayRef {
    let width = i32::try_from(width).expect("an image of less than two billion pixels: LARGEST is checked");
    Arc::new(FixedSizeListArray::new(entry(), width, Arc::new(UInt8Array::from(bytes)), None))
}
