//! The cells of Arrow arrays as text or numbers.
//!
//! Arrow's own casts do more than this, but compiling them takes longer than compiling this
//! library.

use super::Kind;
use crate::kernel::vectorised;
use arrow_array::cast::AsArray;
use arrow_array::temporal_conversions::{as_date, as_datetime, as_duration, as_time};
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type,
    DecimalType, DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType,
    DurationSecondType, Float16Type, Float32Type, Float64Type, Time32MillisecondType, Time32SecondType,
    Time64MicrosecondType, Time64NanosecondType, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType,
};
use arrow_array::{
    Array, ArrayRef, Float64Array, LargeStringArray, StringArray, StringViewArray, downcast_integer,
};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, TimeUnit};
use std::fmt::{Display, Write};
use std::sync::Arc;

/// A type whose cells have no such form, in words.
pub(super) type NoSuchForm = String;

/// Calls `each` with the text of each cell in order, or with `None` for an empty cell. Dates and
/// times are written in ISO 8601.
pub(super) fn each_text(array: &dyn Array, visit: &mut dyn FnMut(Option<&str>)) -> Result<(), NoSuchForm> {
    macro_rules! integers {
        ($of:ty) => {
            written::<$of, _>(array, visit, |value| value)
        };
    }
    macro_rules! floats {
        ($of:ty) => {
            // With a point or an exponent, to distinguish them from whole numbers.
            written::<$of, _>(array, visit, |value| format!("{value:?}"))
        };
    }
    macro_rules! times {
        ($of:ty, $read:ident, $zone:expr) => {
            written::<$of, _>(array, visit, |value| {
                let value = i64::from(value);
                // Beyond what calendars reach the number stands for itself.
                $read::<$of>(value).map_or_else(|| value.to_string(), |time| format!("{time:?}{}", $zone))
            })
        };
    }
    let zone = |zone: &Option<Arc<str>>| if zone.is_some() { "Z" } else { "" };
    downcast_integer! {
        array.data_type() => (integers),
        DataType::Float16 => floats!(Float16Type),
        DataType::Float32 => floats!(Float32Type),
        DataType::Float64 => floats!(Float64Type),
        DataType::Decimal32(..) => decimals::<Decimal32Type>(array, visit),
        DataType::Decimal64(..) => decimals::<Decimal64Type>(array, visit),
        DataType::Decimal128(..) => decimals::<Decimal128Type>(array, visit),
        DataType::Decimal256(..) => decimals::<Decimal256Type>(array, visit),
        DataType::Boolean => {
            let words = |value| if value { "true" } else { "false" };
            array.as_boolean().iter().for_each(|value| visit(value.map(words)));
        }
        DataType::Date32 => times!(Date32Type, as_date, ""),
        DataType::Date64 => times!(Date64Type, as_datetime, ""),
        DataType::Time32(TimeUnit::Second) => times!(Time32SecondType, as_time, ""),
        DataType::Time32(_) => times!(Time32MillisecondType, as_time, ""),
        DataType::Time64(TimeUnit::Nanosecond) => times!(Time64NanosecondType, as_time, ""),
        DataType::Time64(_) => times!(Time64MicrosecondType, as_time, ""),
        DataType::Timestamp(TimeUnit::Second, of) => times!(TimestampSecondType, as_datetime, zone(of)),
        DataType::Timestamp(TimeUnit::Millisecond, of) => times!(TimestampMillisecondType, as_datetime, zone(of)),
        DataType::Timestamp(TimeUnit::Microsecond, of) => times!(TimestampMicrosecondType, as_datetime, zone(of)),
        DataType::Timestamp(TimeUnit::Nanosecond, of) => times!(TimestampNanosecondType, as_datetime, zone(of)),
        DataType::Duration(TimeUnit::Second) => durations::<DurationSecondType>(array, visit),
        DataType::Duration(TimeUnit::Millisecond) => durations::<DurationMillisecondType>(array, visit),
        DataType::Duration(TimeUnit::Microsecond) => durations::<DurationMicrosecondType>(array, visit),
        DataType::Duration(TimeUnit::Nanosecond) => durations::<DurationNanosecondType>(array, visit),
        DataType::Utf8 => array.as_string::<i32>().iter().for_each(visit),
        DataType::LargeUtf8 => array.as_string::<i64>().iter().for_each(visit),
        DataType::Utf8View => array.as_string_view().iter().for_each(visit),
        DataType::Null => (0..array.len()).for_each(|_| visit(None)),
        DataType::Dictionary(..) => {
            let Coded { values, places } = coded(array)?;
            for place in places {
                visit(place.and_then(|place| values[place].as_deref()));
            }
        }
        other => return Err(other.to_string()),
    }
    Ok(())
}

/// Cells of a dictionary-encoded array.
pub(super) struct Coded {
    /// The text of each value.
    pub(super) values: Vec<Option<String>>,
    /// The place of each cell's value.
    pub(super) places: Vec<Option<usize>>,
}

pub(super) fn coded(array: &dyn Array) -> Result<Coded, NoSuchForm> {
    let array = array.as_any_dictionary();
    let mut values = Vec::with_capacity(array.values().len());
    each_text(array.values(), &mut |value| values.push(value.map(str::to_owned)))?;
    if values.is_empty() {
        return Ok(Coded { values, places: vec![None; array.len()] });
    }
    let mut places: Vec<Option<usize>> = array.normalized_keys().into_iter().map(Some).collect();
    if let Some(is_there) = array.keys().nulls() {
        places
            .iter_mut()
            .zip(is_there)
            .filter(|(_, is_there)| !is_there)
            .for_each(|(place, _)| *place = None);
    }
    Ok(Coded { values, places })
}

fn written<T: ArrowPrimitiveType, D: Display>(
    array: &dyn Array,
    visit: &mut dyn FnMut(Option<&str>),
    shown: impl Fn(T::Native) -> D,
) {
    let mut cell = String::new();
    for value in array.as_primitive::<T>() {
        cell.clear();
        visit(value.map(|value| {
            write!(cell, "{}", shown(value)).expect("text takes what is written to it");
            cell.as_str()
        }));
    }
}

fn decimals<T: DecimalType>(array: &dyn Array, visit: &mut dyn FnMut(Option<&str>)) {
    let array = array.as_primitive::<T>();
    (0..array.len())
        .for_each(|row| visit((!array.is_null(row)).then(|| array.value_as_string(row)).as_deref()));
}

fn durations<T: ArrowPrimitiveType<Native = i64>>(array: &dyn Array, visit: &mut dyn FnMut(Option<&str>)) {
    written::<T, _>(array, visit, |value| {
        as_duration::<T>(value).map_or_else(|| value.to_string(), |duration| duration.to_string())
    });
}

/// Adds the number of each cell in order, as computed by `of`; empty cells become NaN. Times are
/// seconds (since 1970, since midnight, or a duration); true is 1 and false is 0.
#[expect(clippy::cast_lossless, reason = "one macro for all types, 64 bits wide or less")]
pub(super) fn add_numbers<N: Copy>(
    array: &dyn Array,
    of: impl Fn(f64) -> N + Copy,
    numbers: &mut Vec<N>,
) -> Result<(), NoSuchForm> {
    let start = numbers.len();
    macro_rules! values {
        ($of:ty) => {
            numbers.extend(array.as_primitive::<$of>().values().iter().map(|&value| of(value as f64)))
        };
    }
    macro_rules! seconds {
        ($of:ty, $in_a_second:expr) => {
            numbers.extend(
                array.as_primitive::<$of>().values().iter().map(|&value| of(value as f64 / $in_a_second)),
            )
        };
    }
    downcast_integer! {
        array.data_type() => (values),
        DataType::Float16 => {
            numbers.extend(array.as_primitive::<Float16Type>().values().iter().map(|value| of(value.to_f64())));
        }
        DataType::Float32 => values!(Float32Type),
        DataType::Float64 => values!(Float64Type),
        DataType::Boolean => {
            numbers.extend(array.as_boolean().values().iter().map(|value| of(f64::from(u8::from(value)))));
        }
        DataType::Decimal32(..) | DataType::Decimal64(..) | DataType::Decimal128(..) | DataType::Decimal256(..) => {
            each_text(array, &mut |digits| {
                numbers.push(of(digits.and_then(|digits| digits.parse().ok()).unwrap_or(f64::NAN)));
            })?;
        }
        DataType::Date32 => {
            let days = array.as_primitive::<Date32Type>().values().iter();
            numbers.extend(days.map(|&day| of(f64::from(day) * 86_400.0)));
        }
        DataType::Date64 => seconds!(Date64Type, 1e3),
        DataType::Time32(TimeUnit::Second) => values!(Time32SecondType),
        DataType::Time32(_) => seconds!(Time32MillisecondType, 1e3),
        DataType::Time64(TimeUnit::Nanosecond) => seconds!(Time64NanosecondType, 1e9),
        DataType::Time64(_) => seconds!(Time64MicrosecondType, 1e6),
        DataType::Timestamp(TimeUnit::Second, _) => values!(TimestampSecondType),
        DataType::Timestamp(TimeUnit::Millisecond, _) => seconds!(TimestampMillisecondType, 1e3),
        DataType::Timestamp(TimeUnit::Microsecond, _) => seconds!(TimestampMicrosecondType, 1e6),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => seconds!(TimestampNanosecondType, 1e9),
        DataType::Duration(TimeUnit::Second) => values!(DurationSecondType),
        DataType::Duration(TimeUnit::Millisecond) => seconds!(DurationMillisecondType, 1e3),
        DataType::Duration(TimeUnit::Microsecond) => seconds!(DurationMicrosecondType, 1e6),
        DataType::Duration(TimeUnit::Nanosecond) => seconds!(DurationNanosecondType, 1e9),
        DataType::Dictionary(..) => {
            let array = array.as_any_dictionary();
            let mut values = Vec::with_capacity(array.values().len());
            add_numbers(array.values(), of, &mut values)?;
            if values.is_empty() {
                numbers.extend((0..array.len()).map(|_| of(f64::NAN)));
            } else {
                numbers.extend(array.normalized_keys().into_iter().map(|place| values[place]));
            }
        }
        other => return Err(other.to_string()),
    }
    // Of a dictionary these are the keys'.
    if let Some(is_there) = array.nulls() {
        vectorised(
            #[inline(always)]
            || mark_missing(&mut numbers[start..], is_there, of(f64::NAN)),
        );
    }
    Ok(())
}

/// Replaces null numbers by a value.
#[inline(always)]
#[expect(clippy::inline_always, reason = "it is compiled for the vectors of its caller")]
fn mark_missing<N: Copy>(numbers: &mut [N], is_there: &NullBuffer, missing: N) {
    let bits = is_there.inner().bit_chunks();
    for (numbers, bits) in numbers.chunks_mut(64).zip(bits.iter_padded()) {
        for (place, number) in numbers.iter_mut().enumerate() {
            *number = if bits >> place & 1 == 1 { *number } else { missing };
        }
    }
}

/// The array cast to this type: text in another encoding, or whole numbers as floats.
pub(super) fn as_type(array: &ArrayRef, data_type: &DataType) -> Result<ArrayRef, NoSuchForm> {
    if array.data_type() == data_type {
        return Ok(Arc::clone(array));
    }
    let text = || -> Result<Vec<Option<String>>, NoSuchForm> {
        let mut cells = Vec::with_capacity(array.len());
        each_text(array, &mut |cell| cells.push(cell.map(str::to_owned)))?;
        Ok(cells)
    };
    Ok(match data_type {
        DataType::Utf8 => Arc::new(StringArray::from(text()?)),
        DataType::LargeUtf8 => Arc::new(LargeStringArray::from(text()?)),
        DataType::Utf8View => Arc::new(StringViewArray::from(text()?)),
        DataType::Float64 if Kind::of(array.data_type()) == Some(Kind::Integer) => {
            let mut numbers = Vec::with_capacity(array.len());
            add_numbers(array, |number| number, &mut numbers)?;
            Arc::new(Float64Array::new(numbers.into(), array.logical_nulls()))
        }
        _ => return Err(format!("{}, where {data_type} is expected", array.data_type())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::types::Int8Type;
    use arrow_array::{
        BooleanArray, Date32Array, Date64Array, Decimal128Array, DictionaryArray, DurationMillisecondArray,
        Float32Array, Int64Array, ListArray, NullArray, Time32SecondArray, Time64MicrosecondArray,
        TimestampMillisecondArray, TimestampNanosecondArray, TimestampSecondArray, UInt8Array,
    };

    fn text(array: &dyn Array) -> Vec<Option<String>> {
        let mut cells = Vec::new();
        each_text(array, &mut |cell| cells.push(cell.map(str::to_owned))).unwrap();
        cells
    }

    fn numbers(array: &dyn Array) -> Vec<f64> {
        let mut numbers = vec![7.5];
        add_numbers(array, |number| number, &mut numbers).unwrap();
        assert!((numbers.remove(0) - 7.5).abs() < 1e-15, "what was there stays");
        numbers
    }

    /// An array whose first cell says this, and whose second is empty.
    fn says(array: impl Array, as_text: &str, as_number: f64) {
        assert_eq!(text(&array), [Some(as_text.to_owned()), None], "{}", array.data_type());
        let numbers = numbers(&array);
        assert!((numbers[0] - as_number).abs() < 1e-12 * (1.0 + as_number.abs()), "{}", array.data_type());
        assert!(numbers[1].is_nan() && numbers.len() == 2, "{}", array.data_type());
    }

    #[test]
    fn cells_say_the_same_as_text_and_as_numbers() {
        says(UInt8Array::from(vec![Some(255), None]), "255", 255.0);
        says(Int64Array::from(vec![Some(-9_000_000_000_000_000_001), None]), "-9000000000000000001", -9e18);
        says(Float32Array::from(vec![Some(0.5), None]), "0.5", 0.5);
        says(Float64Array::from(vec![Some(3.0), None]), "3.0", 3.0);
        says(Float64Array::from(vec![Some(1e-7), None]), "1e-7", 1e-7);
        says(BooleanArray::from(vec![Some(true), None]), "true", 1.0);
        let decimals =
            Decimal128Array::from(vec![Some(-12_345), None]).with_precision_and_scale(9, 2).unwrap();
        says(decimals, "-123.45", -123.45);
        says(Date32Array::from(vec![Some(20_604), None]), "2026-05-31", 20_604.0 * 86_400.0);
        says(Date64Array::from(vec![Some(86_400_500), None]), "1970-01-02T00:00:00.500", 86_400.5);
        says(Time32SecondArray::from(vec![Some(3_723), None]), "01:02:03", 3_723.0);
        says(Time64MicrosecondArray::from(vec![Some(1_500_000), None]), "00:00:01.500", 1.5);
        says(TimestampSecondArray::from(vec![Some(-1), None]), "1969-12-31T23:59:59", -1.0);
        says(TimestampMillisecondArray::from(vec![Some(1_250), None]), "1970-01-01T00:00:01.250", 1.25);
        let zoned = TimestampNanosecondArray::from(vec![Some(1_000_000_001), None]).with_timezone("+01:00");
        says(zoned, "1970-01-01T00:00:01.000000001Z", 1.000_000_001);
        says(DurationMillisecondArray::from(vec![Some(90_500), None]), "PT90.5S", 90.5);
        // Days that no calendar has stand for themselves.
        assert_eq!(text(&Date32Array::from(vec![i32::MAX])), [Some("2147483647".to_owned())]);
    }

    #[test]
    fn text_is_text_in_every_form() {
        let cells = [Some("a"), None, Some("ä, b")];
        let expected: Vec<Option<String>> = cells.iter().map(|cell| cell.map(str::to_owned)).collect();
        let coded: DictionaryArray<Int8Type> = cells.into_iter().collect();
        let plain: ArrayRef = Arc::new(StringArray::from(cells.to_vec()));
        let forms: [ArrayRef; 4] = [
            Arc::clone(&plain),
            Arc::new(LargeStringArray::from(cells.to_vec())),
            Arc::new(StringViewArray::from(cells.to_vec())),
            Arc::new(coded),
        ];
        for form in &forms {
            assert_eq!(text(form), expected, "{}", form.data_type());
            assert_eq!(as_type(form, &DataType::Utf8).unwrap().as_ref(), plain.as_ref());
            for wanted in &forms[..3] {
                assert_eq!(&as_type(form, wanted.data_type()).unwrap(), wanted);
            }
        }
        assert_eq!(text(&NullArray::new(2)), [None, None]);
    }

    #[test]
    fn dictionaries_may_miss_keys_values_or_all() {
        let keys = || arrow_array::Int8Array::from(vec![Some(1), None, Some(0), Some(1)]);
        let array = DictionaryArray::new(keys(), Arc::new(Float64Array::from(vec![None, Some(2.5)])));
        assert_eq!(text(&array), [Some("2.5".to_owned()), None, None, Some("2.5".to_owned())]);
        assert_eq!(format!("{:?}", numbers(&array)), "[2.5, NaN, NaN, 2.5]");
        let none: ArrayRef = Arc::new(StringArray::from(Vec::<&str>::new()));
        let array = DictionaryArray::new(arrow_array::Int8Array::from(vec![None, None]), none);
        assert_eq!(text(&array), [None, None]);
        let none: ArrayRef = Arc::new(Float64Array::from(Vec::<f64>::new()));
        let array = DictionaryArray::new(arrow_array::Int8Array::from(vec![None, None]), none);
        assert!(numbers(&array).iter().all(|number| number.is_nan()));
    }

    #[test]
    fn parts_of_arrays_and_long_ones_keep_their_gaps() {
        let cells: Vec<Option<i64>> = (0..200).map(|cell| (cell % 7 != 3).then_some(cell)).collect();
        let part = Int64Array::from(cells.clone()).slice(5, 130);
        let expected: Vec<f64> =
            cells[5..135].iter().map(|cell| cell.map_or(f64::NAN, |cell| cell as f64)).collect();
        assert_eq!(format!("{:?}", numbers(&part)), format!("{expected:?}"));
        let wider = as_type(&(Arc::new(part.clone()) as ArrayRef), &DataType::Float64).unwrap();
        let wider: Vec<Option<f64>> = wider.as_primitive::<Float64Type>().iter().collect();
        let whole: Vec<Option<f64>> = part.iter().map(|cell| cell.map(|cell| cell as f64)).collect();
        assert_eq!(wider, whole);
    }

    #[test]
    fn what_has_no_such_form_is_named() {
        let lists = ListArray::from_iter_primitive::<Int8Type, _, _>([Some([Some(1)])]);
        assert!(each_text(&lists, &mut |_| {}).unwrap_err().contains("List"));
        assert!(add_numbers(&lists, |number| number, &mut Vec::new()).unwrap_err().contains("List"));
        let text: ArrayRef = Arc::new(StringArray::from(vec!["1"]));
        assert!(add_numbers(&text, |number| number, &mut Vec::new()).is_err());
        assert_eq!(as_type(&text, &DataType::Float64).unwrap_err(), "Utf8, where Float64 is expected");
    }
}
