//! Infer the type of a column from its first fields.

use super::records::Records;
use super::values::{number, truth, whole_number};
use crate::table::kind::is_missing;
use arrow_schema::{DataType, TimeUnit};

/// The narrowest type that holds all fields seen so far.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Told {
    /// No value was seen, or all are missing.
    Nothing,
    Whole,
    Number,
    Boolean,
    /// Dates, or instants whose finest unit is this.
    Time(Option<TimeUnit>),
    Text,
}

impl Told {
    pub(super) fn see(&mut self, records: &Records, place: usize) {
        // It ends early once nothing but text is left.
        let _ = records.try_each(place, |_, field| {
            if !is_missing(field) {
                *self = self.and(Self::of(field));
            }
            if *self == Self::Text { Err(()) } else { Ok(()) }
        });
    }

    fn of(field: &str) -> Self {
        if whole_number(field).is_some() {
            Self::Whole
        } else if number(field).is_some() {
            Self::Number
        } else if truth(field).is_some() {
            Self::Boolean
        } else {
            Self::of_time(field)
        }
    }

    /// Recognises dates and times by their form: a date, `2026-05-31`, or an instant,
    /// `2026-05-31T10:20:30.123` (a space may replace the T, and a time zone may follow).
    fn of_time(field: &str) -> Self {
        const DAY: &[u8] = b"0000-00-00";
        const INSTANT: &[u8] = b"0000-00-00T00:00:00";
        // A digit for each 0.
        let begins_like = |outline: &[u8]| {
            let fits = |(found, wanted): (u8, &u8)| match wanted {
                b'0' => found.is_ascii_digit(),
                b'T' => matches!(found, b'T' | b' '),
                _ => found == *wanted,
            };
            field.len() >= outline.len() && field.bytes().zip(outline).all(fits)
        };
        if field.len() == DAY.len() && begins_like(DAY) {
            return Self::Time(None);
        }
        if !begins_like(INSTANT) {
            return Self::Text;
        }
        let Some(fraction) = field[INSTANT.len()..].strip_prefix('.') else {
            return Self::Time(Some(TimeUnit::Second));
        };
        match fraction.bytes().take_while(u8::is_ascii_digit).count() {
            1..=3 => Self::Time(Some(TimeUnit::Millisecond)),
            4..=6 => Self::Time(Some(TimeUnit::Microsecond)),
            7..=9 => Self::Time(Some(TimeUnit::Nanosecond)),
            _ => Self::Text,
        }
    }

    /// The narrowest type that holds both.
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Nothing, told) => told,
            (told, other) if told == other => told,
            (Self::Whole | Self::Number, Self::Whole | Self::Number) => Self::Number,
            (Self::Time(unit), Self::Time(other)) => Self::Time(unit.max(other)),
            _ => Self::Text,
        }
    }

    pub(super) fn data_type(self) -> DataType {
        match self {
            Self::Whole => DataType::Int64,
            Self::Number => DataType::Float64,
            Self::Boolean => DataType::Boolean,
            Self::Time(None) => DataType::Date32,
            Self::Time(Some(unit)) => DataType::Timestamp(unit, None),
            Self::Nothing | Self::Text => DataType::Utf8,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::blocks::Block;
    use super::*;

    #[test]
    fn the_narrowest_type_that_holds_all() {
        let told = |fields: &[&str]| {
            let text = fields.join("\n") + "\n";
            let mut told = Told::Nothing;
            // In two goes, as blocks come.
            let (first, second) = text.split_at(text.find('\n').unwrap() + 1);
            for part in [first, second] {
                told.see(&Block::of(part.as_bytes()).records(1).unwrap(), 0);
            }
            told.data_type()
        };
        let instant = |unit| DataType::Timestamp(unit, None);
        for (fields, expected) in [
            (&["1", "-2", "NA"][..], DataType::Int64),
            (&["1", "2.5"], DataType::Float64),
            (&["1e-3", " 4"], DataType::Float64),
            (&["99999999999999999999"], DataType::Float64),
            (&["true", "False"], DataType::Boolean),
            (&["true", "1"], DataType::Utf8),
            // Infinity is a number: one that is refused later, and does not make text of the others.
            (&["1", "inf"], DataType::Float64),
            (&["1", "0x10"], DataType::Utf8),
            (&["NA", "null"], DataType::Utf8),
            (&["2026-01-31"], DataType::Date32),
            (&["2026-01-31", "2026-01"], DataType::Utf8),
            (&["2026-01-31", "2026-01-31 10:00:00"], instant(TimeUnit::Second)),
            (&["2026-01-31T10:00:00.5Z", "2026-01-31T10:00:00"], instant(TimeUnit::Millisecond)),
            (&["2026-01-31T10:00:00.123456+01:00"], instant(TimeUnit::Microsecond)),
            (&["2026-01-31T10:00:00.123456789"], instant(TimeUnit::Nanosecond)),
            (&["2026-01-31T10:00:00."], DataType::Utf8),
        ] {
            assert_eq!(told(fields), expected, "{fields:?}");
        }
    }
}
