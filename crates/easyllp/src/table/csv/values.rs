//! Convert fields into columns and Arrow arrays.

use super::blocks::{Block, Flaw};
use super::records::Records;
use crate::table::convert::{ColumnBuilder, SoFar};
use crate::table::kind::is_missing;
use crate::table::{Kind, times};
use arrow_array::types::{
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};
use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Float64Array, Int64Array, PrimitiveArray, RecordBatch, StringArray,
};
use arrow_buffer::{Buffer, NullBufferBuilder, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use std::sync::Arc;

/// The columns with these indices. A column of whole numbers becomes numeric if a later field is
/// fractional.
pub(super) fn batch(block: &Block, schema: &Schema, places: &[Place]) -> Result<RecordBatch, Flaw> {
    let builder = |place: &Place| Builder::new(schema.field(place.column).data_type(), *place);
    let mut builders: Vec<Builder> = places.iter().map(builder).collect();
    let mut n_before = 0;
    for records in block.pieces(schema.fields().len()) {
        let records = records.map_err(|flaw| flaw.after(n_before))?;
        for builder in &mut builders {
            builder.extend(&records).map_err(|flaw| flaw.after(n_before))?;
        }
        n_before += records.len();
    }
    let mut fields = Vec::with_capacity(places.len());
    let mut columns = Vec::with_capacity(places.len());
    for builder in builders {
        let field = schema.field(builder.place.column);
        let array = builder.finish(field.data_type())?;
        fields.push(Field::new(field.name(), array.data_type().clone(), true));
        columns.push(array);
    }
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).expect("columns of one length"))
}

/// Appends the fields with one index to a column of this type.
pub(super) fn extend(
    column: &mut ColumnBuilder,
    records: &Records,
    place: usize,
    data_type: &DataType,
) -> Result<(), Flaw> {
    let is_number = Kind::of(data_type).is_some_and(Kind::is_number);
    match &mut column.so_far {
        SoFar::Numbers(numbers) if is_number => records.try_each(place, |record, field| {
            let number = if is_missing(field) { Some(f64::NAN) } else { number(field) };
            numbers.push(number.ok_or_else(|| Flaw::Value { record, place, value: field.to_owned() })?);
            Ok(())
        }),
        SoFar::Hashed(text) => {
            let mut text = text.adding();
            records.try_each(place, |_, field| {
                text.push(if is_missing(field) { "" } else { field });
                Ok(())
            })
        }
        _ => {
            let mut builder = Builder::new(data_type, Place { column: place, is_in_full: column.is_in_full });
            builder.extend(records)?;
            let array = builder.finish(data_type)?;
            column.extend(&array).expect("an array of the column's kind");
            Ok(())
        }
    }
}

/// A column of a file, and whether its text is read in full, with only empty fields missing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) column: usize,
    pub(super) is_in_full: bool,
}

/// A column under construction.
struct Builder {
    place: Place,
    is_there: NullBufferBuilder,
    values: Values,
}

enum Values {
    Whole(Vec<i64>),
    Numbers(Vec<f64>),
    /// Text that is converted at the end: dates, times, true and false.
    Text {
        bytes: Vec<u8>,
        offsets: Vec<i32>,
    },
}

impl Builder {
    fn new(data_type: &DataType, place: Place) -> Self {
        let values = match data_type {
            DataType::Int64 => Values::Whole(Vec::new()),
            DataType::Float64 => Values::Numbers(Vec::new()),
            _ => Values::Text { bytes: Vec::new(), offsets: vec![0] },
        };
        Self { place, is_there: NullBufferBuilder::new(0), values }
    }

    fn extend(&mut self, records: &Records) -> Result<(), Flaw> {
        let Place { column: place, is_in_full } = self.place;
        let is_there = &mut self.is_there;
        let first = is_there.len();
        if let Values::Whole(numbers) = &mut self.values {
            let taken = records.try_each(place, |_, field| {
                let number = if is_missing(field) { Some(0) } else { whole_number(field) };
                numbers.push(number.ok_or(())?);
                is_there.append(!is_missing(field));
                Ok(())
            });
            match taken {
                Ok(()) => return Ok(()),
                Err(()) => self.values = Values::Numbers(widened(numbers)),
            }
        }
        // Where whole numbers gave up, if they did.
        let done = is_there.len() - first;
        match &mut self.values {
            Values::Numbers(numbers) => records.try_each(place, |record, field| {
                if record < done {
                    return Ok(());
                }
                let is_value = !is_missing(field);
                is_there.append(is_value);
                numbers.push(match number(field) {
                    Some(number) => number,
                    None if !is_value => 0.0,
                    None => {
                        return Err(Flaw::Value { record, place, value: field.to_owned() });
                    }
                });
                Ok(())
            }),
            Values::Text { bytes, offsets } => records.try_each(place, |_, field| {
                let is_value = if is_in_full { !field.is_empty() } else { !is_missing(field) };
                is_there.append(is_value);
                if is_value {
                    bytes.extend_from_slice(field.as_bytes());
                }
                offsets.push(i32::try_from(bytes.len()).map_err(|_| Flaw::TooLong)?);
                Ok(())
            }),
            Values::Whole(_) => unreachable!("dealt with above"),
        }
    }

    fn finish(mut self, data_type: &DataType) -> Result<ArrayRef, Flaw> {
        let is_there = self.is_there.finish();
        match self.values {
            Values::Whole(numbers) => Ok(Arc::new(Int64Array::new(ScalarBuffer::from(numbers), is_there))),
            Values::Numbers(numbers) => {
                Ok(Arc::new(Float64Array::new(ScalarBuffer::from(numbers), is_there)))
            }
            Values::Text { bytes, offsets } => {
                let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
                let text = StringArray::try_new(offsets, Buffer::from_vec(bytes), is_there)
                    .map_err(|_| Flaw::NotText)?;
                made_of(&text, data_type).map_err(|record| Flaw::Value {
                    record,
                    place: self.place.column,
                    value: text.value(record).into(),
                })
            }
        }
    }
}

/// The text as the required type, or the first record that is not.
fn made_of(text: &StringArray, data_type: &DataType) -> Result<ArrayRef, usize> {
    fn each<A, T>(text: &StringArray, read: impl Fn(&str) -> Option<T>) -> Result<ArrayRef, usize>
    where
        A: FromIterator<Option<T>> + arrow_array::Array + 'static,
    {
        let cells = text
            .iter()
            .enumerate()
            .map(|(record, cell)| cell.map(|cell| read(cell).ok_or(record)).transpose());
        Ok(Arc::new(cells.collect::<Result<A, usize>>()?))
    }
    match data_type {
        DataType::Boolean => each::<BooleanArray, _>(text, truth),
        DataType::Date32 => each::<Date32Array, _>(text, times::day),
        DataType::Timestamp(unit, _) => {
            let read = |cell: &str| times::instant(cell, *unit);
            match unit {
                TimeUnit::Second => each::<PrimitiveArray<TimestampSecondType>, _>(text, read),
                TimeUnit::Millisecond => each::<PrimitiveArray<TimestampMillisecondType>, _>(text, read),
                TimeUnit::Microsecond => each::<PrimitiveArray<TimestampMicrosecondType>, _>(text, read),
                TimeUnit::Nanosecond => each::<PrimitiveArray<TimestampNanosecondType>, _>(text, read),
            }
        }
        _ => Ok(Arc::new(text.clone())),
    }
}

/// True or false, in upper or lower case.
pub(super) fn truth(field: &str) -> Option<bool> {
    if field.eq_ignore_ascii_case("true") {
        Some(true)
    } else if field.eq_ignore_ascii_case("false") {
        Some(false)
    } else {
        None
    }
}

fn widened(numbers: &[i64]) -> Vec<f64> {
    numbers.iter().map(|&number| number as f64).collect()
}

/// Digits with an optional minus sign.
pub(super) fn whole_number(field: &str) -> Option<i64> {
    let digits = field.strip_prefix('-').unwrap_or(field).as_bytes();
    // So many digits do not overflow; longer ones go the slow way.
    if digits.is_empty() || digits.len() > 18 {
        return field.parse().ok();
    }
    let mut number = 0;
    for &digit in digits {
        if !digit.is_ascii_digit() {
            return field.parse().ok();
        }
        number = number * 10 + i64::from(digit - b'0');
    }
    Some(if digits.len() < field.len() { -number } else { number })
}

pub(super) fn number(field: &str) -> Option<f64> {
    /// Up to here every whole number is exact as `f64`.
    const EXACT: u64 = 1 << 53;
    match whole_number(field) {
        Some(number) if number != 0 && number.unsigned_abs() <= EXACT => Some(number as f64),
        _ if field == "0" => Some(0.0),
        _ => field.trim().parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_what_the_standard_library_reads() {
        for text in [
            "0",
            "-0",
            "7",
            "-12",
            "+3",
            "999999999999999999",
            "9007199254740993",
            "-9223372036854775808",
            "1.5",
            " 2 ",
            "1e3",
            "-",
            "",
            "4x",
            "18446744073709551616",
        ] {
            assert_eq!(whole_number(text), text.parse().ok(), "{text}");
            let expected: Option<f64> = text.trim().parse().ok();
            assert_eq!(number(text).map(f64::to_bits), expected.map(f64::to_bits), "{text}");
        }
    }

    #[test]
    fn whole_numbers_give_way_to_numbers() {
        let schema =
            Schema::new(vec![Field::new("a", DataType::Int64, true), Field::new("b", DataType::Utf8, true)]);
        let place = |column| Place { column, is_in_full: false };
        let read = |text: &str| batch(&Block::of(text.as_bytes()), &schema, &[place(0), place(1)]);
        let both = read("1,x\n,NA\n2.5,\"y, z\"\n").unwrap();
        let numbers: Vec<Option<f64>> =
            arrow_array::cast::AsArray::as_primitive::<arrow_array::types::Float64Type>(both.column(0))
                .iter()
                .collect();
        assert_eq!(numbers, [Some(1.0), None, Some(2.5)]);
        let text: Vec<Option<&str>> =
            arrow_array::cast::AsArray::as_string::<i32>(both.column(1)).iter().collect();
        assert_eq!(text, [Some("x"), None, Some("y, z")]);
        assert_eq!(*read("1,x\n2,y\n").unwrap().column(0).data_type(), DataType::Int64);
        assert!(matches!(read("1,x\n2.5,y\nz,z\n"), Err(Flaw::Value { record: 2, place: 0, .. })));
        assert!(matches!(batch(&Block::of(b"1,\xff\n"), &schema, &[place(1)]), Err(Flaw::NotText)));
    }

    #[test]
    fn text_is_what_it_is_told_to_be_or_a_flaw() {
        let instant = DataType::Timestamp(TimeUnit::Millisecond, None);
        let types = [DataType::Boolean, DataType::Date32, instant];
        let names = ["a", "b", "c"].into_iter().zip(types);
        let schema = Schema::new(names.map(|(name, of)| Field::new(name, of, true)).collect::<Vec<_>>());
        let places = [0, 1, 2].map(|column| Place { column, is_in_full: false });
        let read = |text: &str| batch(&Block::of(text.as_bytes()), &schema, &places);
        let rows =
            read("True,1970-01-03,1970-01-01\nNA,,\nfalse,1970-01-01,1970-01-01T01:00:00.5+01:00\n").unwrap();
        assert_eq!(rows.column(0).as_ref(), &BooleanArray::from(vec![Some(true), None, Some(false)]));
        assert_eq!(rows.column(1).as_ref(), &Date32Array::from(vec![Some(2), None, Some(0)]));
        let instants = PrimitiveArray::<TimestampMillisecondType>::from(vec![Some(0), None, Some(500)]);
        assert_eq!(rows.column(2).as_ref(), &instants);
        for (text, at) in [("true,,\n1,,\n", 0), (",,\n,1970-01-32,\n", 1), (",,\n,,1970-01-01T1\n", 2)] {
            let Err(Flaw::Value { record: 1, place, .. }) = read(text) else { panic!("{text} was read") };
            assert_eq!(place, at);
        }
    }
}
