//! BAG: group rows by the values of some columns.

use super::cells::each_text;
use super::source::bad;
use super::{Kind, Source};
use crate::bags::Partition;
use crate::error::{Cause, Error, Result};
use crate::rows::row_count;
use arrow_array::{ArrayRef, UInt32Array};
use arrow_select::concat::concat;
use arrow_select::take::take;
use std::collections::HashMap;

/// Groups of rows with equal values in some columns.
#[derive(Debug, Clone)]
pub struct Groups {
    /// The rows of each group.
    pub partition: Partition,
    /// The value of each of the columns in each group, with the type of the file.
    pub keys: Vec<ArrayRef>,
}

impl Source {
    /// Groups rows by their values in these columns; groups are sorted by these values. Missing
    /// values form a group, too.
    pub fn groups(&self, columns: &[String]) -> Result<Groups> {
        let kinds = columns.iter().map(|name| self.kind(name)).collect::<Result<Vec<_>>>()?;
        if let Some(place) = kinds.iter().position(|kind| *kind == Kind::List) {
            return Err(Error::NotAKey { column: columns[place].clone(), found: Kind::List.name() });
        }
        let mut group_of_key: HashMap<Vec<String>, u32> = HashMap::new();
        let mut group_of_row = Vec::new();
        // Of each batch the first rows of groups.
        let mut firsts: Vec<Vec<ArrayRef>> = vec![Vec::new(); columns.len()];
        for batch in self.batches(columns) {
            let batch = batch?;
            let arrays = self.plain(&batch, columns)?;
            let mut keys: Vec<Vec<String>> = vec![Vec::with_capacity(columns.len()); batch.num_rows()];
            for ((array, kind), name) in arrays.iter().zip(&kinds).zip(columns) {
                let mut row = 0;
                each_text(array, &mut |cell| {
                    keys[row].push(value(cell.unwrap_or_default(), *kind).to_owned());
                    row += 1;
                })
                .map_err(|found| Error::UnreadableColumn { column: name.clone(), found })?;
            }
            row_count(group_of_row.len() + keys.len())?;
            let mut new = Vec::new();
            for (key, row) in keys.into_iter().zip(0_u32..) {
                let next = u32::try_from(group_of_key.len()).expect("no more groups than rows");
                let group = *group_of_key.entry(key).or_insert_with(|| {
                    new.push(row);
                    next
                });
                group_of_row.push(group);
            }
            let new = UInt32Array::from(new);
            for (firsts, array) in firsts.iter_mut().zip(&arrays) {
                firsts.push(take(array, &new, None).map_err(|error| self.failed(error))?);
            }
        }
        let mut order: Vec<(Vec<String>, u32)> = group_of_key.into_iter().collect();
        sort(&mut order);
        let mut place = vec![0; order.len()];
        for ((_, group), next) in order.iter().zip(0..) {
            place[*group as usize] = next;
        }
        let group_of_row: Vec<u32> = group_of_row.iter().map(|&group| place[group as usize]).collect();
        let partition = Partition::from_bag_of_row(&group_of_row, order.len())?;
        let order: UInt32Array = order.into_iter().map(|(_, group)| Some(group)).collect();
        let keys = firsts.into_iter().map(|pieces| {
            let pieces: Vec<_> = pieces.iter().map(AsRef::as_ref).collect();
            concat(&pieces).and_then(|all| take(&all, &order, None)).map_err(|error| self.failed(error))
        });
        Ok(Groups { partition, keys: keys.collect::<Result<_>>()? })
    }

    fn failed(&self, error: impl Into<Cause>) -> Error {
        bad(self.first_file(), error)
    }
}

/// A value as it is compared: −0 equals 0, and NaN is a missing value.
fn value(text: &str, kind: Kind) -> &str {
    match (kind, text) {
        (Kind::Number, "-0.0") => "0.0",
        (Kind::Number, "NaN") => "",
        _ => text,
    }
}

/// Sorts keys: all-numeric columns by value, the others as text.
fn sort(keys: &mut [(Vec<String>, u32)]) {
    let n_columns = keys.first().map_or(0, |(key, _)| key.len());
    let is_number = |text: &String| text.is_empty() || text.parse::<f64>().is_ok();
    let are_numbers: Vec<bool> =
        (0..n_columns).map(|column| keys.iter().all(|(key, _)| is_number(&key[column]))).collect();
    keys.sort_by_cached_key(|(key, _)| {
        let parts = key.iter().zip(&are_numbers).map(|(text, &is_number)| {
            // The order of f64::total_cmp; what is missing comes first.
            let size = text.parse::<f64>().ok().filter(|_| is_number).map(|number| {
                let bits = number.to_bits().cast_signed();
                bits ^ ((bits >> 63).cast_unsigned() >> 1).cast_signed()
            });
            (size, text.clone())
        });
        parts.collect::<Vec<_>>()
    });
}
