//! Convert Arrow arrays, batch by batch, into columns for an encoder.

use super::cells::{Coded, NoSuchForm, add_numbers, coded, each_text};
use super::source::ReadAs;
use super::{Column, HashedText, Kind};
use crate::error::{Error, Result};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use ndarray::Array2;
use std::collections::HashMap;

/// A column that arrays are appended to.
pub(super) struct ColumnBuilder {
    name: String,
    kind: Kind,
    /// Whether text is read in full, with only empty text missing.
    pub(super) is_in_full: bool,
    pub(super) so_far: SoFar,
}

pub(super) enum SoFar {
    Numbers(Vec<f64>),
    Lists { entries: Vec<f32>, width: usize },
    Text(Dictionary),
    Hashed(HashedText),
}

/// Distinct values in order of occurrence, and the index of each row's value.
#[derive(Default)]
pub(super) struct Dictionary {
    places: HashMap<String, u32>,
    codes: Vec<u32>,
}

impl ColumnBuilder {
    /// An empty column of this kind.
    pub(super) fn new(name: &str, kind: Kind, read_as: Option<ReadAs>) -> Self {
        let so_far = match (kind, read_as) {
            (Kind::List, _) => SoFar::Lists { entries: Vec::new(), width: 0 },
            (_, Some(ReadAs::Category)) => SoFar::Hashed(HashedText::default()),
            (Kind::Text, None) | (_, Some(ReadAs::Text)) => SoFar::Text(Dictionary::default()),
            _ => SoFar::Numbers(Vec::new()),
        };
        Self { name: name.into(), kind, is_in_full: read_as == Some(ReadAs::Text), so_far }
    }

    /// Reserves memory for this number of rows, if it is available.
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
        let unreadable = |found: NoSuchForm| Error::UnreadableColumn { column: name.clone(), found };
        match &mut self.so_far {
            SoFar::Lists { entries, width } => lists(name, array, entries, width),
            SoFar::Hashed(text) => hash(array, text).map_err(unreadable),
            SoFar::Text(dictionary) => {
                each_text(array, &mut |cell| dictionary.add(cell.unwrap_or_default())).map_err(unreadable)
            }
            SoFar::Numbers(numbers) if self.kind == Kind::Text => {
                let mut unread: Option<Error> = None;
                let mut read = |cell: Option<&str>| {
                    let cell = cell.unwrap_or_default();
                    let number = if cell.is_empty() { Ok(f64::NAN) } else { cell.trim().parse() };
                    let row = numbers.len();
                    numbers.push(number.unwrap_or_else(|_| {
                        let found = Error::NotANumber { column: name.clone(), row, value: cell.into() };
                        unread.get_or_insert(found);
                        f64::NAN
                    }));
                };
                each_text(array, &mut read).map_err(unreadable)?;
                unread.map_or(Ok(()), Err)
            }
            SoFar::Numbers(numbers) => add_numbers(array, |number| number, numbers).map_err(unreadable),
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

fn hash(array: &ArrayRef, text: &mut HashedText) -> std::result::Result<(), NoSuchForm> {
    match array.data_type() {
        DataType::Utf8 => text.extend(array.as_string::<i32>().iter().map(Option::unwrap_or_default)),
        DataType::Utf8View => text.extend(array.as_string_view().iter().map(Option::unwrap_or_default)),
        DataType::Dictionary(..) => {
            let Coded { values, places } = coded(array)?;
            let values: Vec<&str> = values.iter().map(|value| value.as_deref().unwrap_or_default()).collect();
            text.extend_coded(&values, places.into_iter());
        }
        _ => {
            let mut text = text.adding();
            each_text(array, &mut |cell| text.push(cell.unwrap_or_default()))?;
        }
    }
    Ok(())
}

#[expect(clippy::cast_possible_truncation, reason = "features are f32")]
fn lists(name: &str, array: &ArrayRef, all: &mut Vec<f32>, width: &mut usize) -> Result<()> {
    let unreadable = |found: String| Error::UnreadableColumn { column: name.into(), found };
    let lists = array.as_fixed_size_list();
    *width = usize::try_from(lists.value_length()).unwrap_or(0);
    let entries = lists.values().slice(lists.value_offset_at(0), lists.len() * *width);
    if lists.null_count() + entries.logical_null_count() > 0 {
        return Err(unreadable("lists with missing numbers".into()));
    }
    add_numbers(&entries, |number| number as f32, all).map_err(unreadable)
}
