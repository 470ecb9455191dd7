//! Arrow's arrays, batch after batch, into columns that an encoder understands.

use super::source::{Kind, ReadAs};
use super::{Column, HashedText};
use crate::error::{Error, Result};
use crate::kernel::vectorised;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int32Type};
use arrow_array::{Array, ArrayRef};
use arrow_buffer::NullBuffer;
use arrow_cast::cast;
use arrow_schema::{ArrowError, DataType, TimeUnit};
use ndarray::Array2;
use std::collections::HashMap;
use std::sync::Arc;

/// A column that grows by arrays.
pub(super) struct ColumnBuilder {
    name: String,
    kind: Kind,
    pub(super) so_far: SoFar,
}

pub(super) enum SoFar {
    Numbers(Vec<f64>),
    Lists { entries: Vec<f32>, width: usize },
    Text(Dictionary),
    Hashed(HashedText),
}

/// Distinct values as they come up, and their places row by row.
#[derive(Default)]
pub(super) struct Dictionary {
    places: HashMap<String, u32>,
    codes: Vec<u32>,
}

impl ColumnBuilder {
    /// An empty column of this kind. Of categories the distinct values are kept, while few, if `keeps_values` says so.
    pub(super) fn new(name: &str, kind: Kind, read_as: Option<ReadAs>, keeps_values: bool) -> Self {
        let so_far = match (kind, read_as) {
            (Kind::List, _) => SoFar::Lists { entries: Vec::new(), width: 0 },
            (_, Some(ReadAs::Category)) if keeps_values => SoFar::Hashed(HashedText::default()),
            (_, Some(ReadAs::Category)) => SoFar::Hashed(HashedText::without_values()),
            (Kind::Text, None) | (_, Some(ReadAs::Text)) => SoFar::Text(Dictionary::default()),
            _ => SoFar::Numbers(Vec::new()),
        };
        Self { name: name.into(), kind, so_far }
    }

    /// Makes room for so many rows, if they are expected and there is room.
    pub(super) fn reserve(&mut self, n_rows: usize) {
        match &mut self.so_far {
            SoFar::Numbers(numbers) => {
                let _ = numbers.try_reserve_exact(n_rows);
            }
            SoFar::Hashed(text) => text.reserve(n_rows),
            SoFar::Lists { .. } | SoFar::Text(_) => {}
        }
    }

    /// Adds the rows of an array.
    pub(super) fn extend(&mut self, array: &ArrayRef) -> Result<()> {
        let name = &self.name;
        let unreadable =
            |error: ArrowError| Error::UnreadableColumn { column: name.clone(), found: error.to_string() };
        match &mut self.so_far {
            SoFar::Lists { entries, width } => lists(name, array, entries, width),
            SoFar::Hashed(text) => hash(array, text).map_err(unreadable),
            SoFar::Text(dictionary) => {
                let text = cast(array, &DataType::Utf8).map_err(unreadable)?;
                text.as_string::<i32>().iter().for_each(|value| dictionary.add(value.unwrap_or_default()));
                Ok(())
            }
            SoFar::Numbers(numbers) if self.kind == Kind::Text => {
                let text = cast(array, &DataType::Utf8).map_err(unreadable)?;
                for cell in text.as_string::<i32>() {
                    let row = numbers.len();
                    numbers.push(match cell {
                        None | Some("") => f64::NAN,
                        Some(cell) => cell.trim().parse().map_err(|_| Error::NotANumber {
                            column: name.clone(),
                            row,
                            value: cell.into(),
                        })?,
                    });
                }
                Ok(())
            }
            SoFar::Numbers(numbers) => {
                let is_time = self.kind == Kind::Time;
                let array = if is_time { microseconds(array) } else { Ok(Arc::clone(array)) };
                let array = array.and_then(|array| cast(&array, &DataType::Float64)).map_err(unreadable)?;
                let array = array.as_primitive::<Float64Type>();
                let start = numbers.len();
                numbers.extend_from_slice(array.values());
                let numbers = &mut numbers[start..];
                if is_time {
                    // Seconds since 1970, or since midnight.
                    for number in &mut *numbers {
                        *number /= 1e6;
                    }
                }
                if let Some(is_there) = array.nulls() {
                    vectorised(
                        #[inline(always)]
                        || mark_missing(numbers, is_there),
                    );
                }
                Ok(())
            }
        }
    }

    pub(super) fn finish(self) -> Column {
        match self.so_far {
            SoFar::Numbers(numbers) => Column::Numeric(numbers),
            SoFar::Hashed(text) => Column::Hashed(text),
            SoFar::Lists { entries, width } => {
                let lists = Array2::from_shape_vec((entries.len() / width.max(1), width), entries);
                Column::Vector(lists.expect("as many entries as lists say"))
            }
            SoFar::Text(Dictionary { places, codes }) => {
                let mut values: Vec<(u32, String)> =
                    places.into_iter().map(|(value, place)| (place, value)).collect();
                values.sort_unstable();
                Column::Categorical {
                    dictionary: values.into_iter().map(|(_, value)| value).collect(),
                    codes,
                }
            }
        }
    }
}

impl Dictionary {
    fn add(&mut self, value: &str) {
        let code = self.places.get(value).copied().unwrap_or_else(|| {
            let next = u32::try_from(self.places.len()).expect("no more values than rows, which u32 counts");
            self.places.insert(value.to_owned(), next);
            next
        });
        self.codes.push(code);
    }
}

/// Puts NaN where no number is.
#[inline(always)]
#[expect(clippy::inline_always, reason = "it is compiled for the vectors of its caller")]
fn mark_missing(numbers: &mut [f64], is_there: &NullBuffer) {
    let bits = is_there.inner().bit_chunks();
    for (numbers, bits) in numbers.chunks_mut(64).zip(bits.iter_padded()) {
        for (place, number) in numbers.iter_mut().enumerate() {
            *number = if bits >> place & 1 == 1 { *number } else { f64::NAN };
        }
    }
}

fn microseconds(array: &ArrayRef) -> std::result::Result<ArrayRef, ArrowError> {
    let timestamp = DataType::Timestamp(TimeUnit::Microsecond, None);
    let of_time = [timestamp, DataType::Time64(TimeUnit::Microsecond)];
    let as_type = of_time.iter().find(|data_type| arrow_cast::can_cast_types(array.data_type(), data_type));
    let micros = as_type.map_or_else(|| Ok(Arc::clone(array)), |data_type| cast(array, data_type))?;
    cast(&micros, &DataType::Int64)
}

fn hash(array: &ArrayRef, text: &mut HashedText) -> std::result::Result<(), ArrowError> {
    match array.data_type() {
        DataType::Utf8 => text.extend(array.as_string::<i32>().iter().map(Option::unwrap_or_default)),
        DataType::Utf8View => text.extend(array.as_string_view().iter().map(Option::unwrap_or_default)),
        DataType::Dictionary(_, values) if Kind::of(values) == Some(Kind::Text) => {
            let plain = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
            let array = cast(array, &plain)?;
            let array = array.as_dictionary::<Int32Type>();
            let values: Vec<&str> =
                array.values().as_string::<i32>().iter().map(Option::unwrap_or_default).collect();
            let place = |key: Option<i32>| key.and_then(|key| usize::try_from(key).ok());
            text.extend_coded(&values, array.keys().iter().map(place));
        }
        _ => {
            let plain = cast(array, &DataType::Utf8)?;
            text.extend(plain.as_string::<i32>().iter().map(Option::unwrap_or_default));
        }
    }
    Ok(())
}

fn lists(name: &str, array: &ArrayRef, all: &mut Vec<f32>, width: &mut usize) -> Result<()> {
    let unreadable = |found: String| Error::UnreadableColumn { column: name.into(), found };
    let lists = array.as_fixed_size_list();
    *width = usize::try_from(lists.value_length()).unwrap_or(0);
    let entries = cast(lists.values(), &DataType::Float32).map_err(|error| unreadable(error.to_string()))?;
    if lists.null_count() + entries.null_count() > 0 {
        return Err(unreadable("lists with missing numbers".into()));
    }
    let start = lists.value_offset_at(0);
    all.extend(&entries.as_primitive::<Float32Type>().values()[start..start + lists.len() * *width]);
    Ok(())
}
