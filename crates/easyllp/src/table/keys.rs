//! BAG: compare the keys of two tables.
//!
//! A key is a tuple. Its parts are compared column by column, so ("a / b", "c") differs from ("a",
//! "b / c"). How a column is compared depends on its types in the two files:
//!
//! - numbers as exact numbers: `7`, `7.0` and `007` are equal;
//! - dates and times as instants, a date being its midnight; times with a time zone only among
//!   themselves;
//! - true and false in upper or lower case;
//! - text letter by letter; if the other file has another type, text is read as that type if all of
//!   its values can be.
//!
//! Two values of one table are never merged into one key: if they would be (`7` and `007` in the
//! rows), the column is compared as text. Missing values form one key, as in SQL's GROUP BY, and
//! empty text is missing.

use super::kind::is_missing;
use super::{Column, Kind, Table};
use crate::error::{Error, Result};
use std::collections::HashMap;

/// A key column: its name, and its kind in either table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyColumn {
    /// Its name in both tables.
    pub name: String,
    /// Its kind in the rows' file.
    pub in_rows: Kind,
    /// Its kind in the reports' file.
    pub in_reports: Kind,
}

impl KeyColumn {
    /// A column of text in both tables.
    pub fn text(name: impl Into<String>) -> Self {
        Self { name: name.into(), in_rows: Kind::Text, in_reports: Kind::Text }
    }

    /// The kinds, as text.
    pub(super) fn types(&self) -> String {
        let (name, rows, reports) = (&self.name, self.in_rows.name(), self.in_reports.name());
        if self.in_rows == self.in_reports {
            format!("`{name}` holds {rows}")
        } else {
            format!("`{name}` holds {rows} in the rows and {reports} in the reports")
        }
    }

    /// A number for each value of either dictionary; equal keys get the same number.
    fn numbered(&self, rows: &[String], reports: &[String]) -> Result<[Vec<u32>; 2]> {
        let sides = [(rows, self.in_rows), (reports, self.in_reports)];
        let is_text_beside_other = (self.in_rows == Kind::Text) != (self.in_reports == Kind::Text);
        let reading =
            Reading::of(self.in_rows, self.in_reports).ok_or_else(|| self.differs(rows, reports))?;
        self.check_rounding(reading, sides)?;
        let read = sides.map(|(values, kind)| {
            values.iter().map(|value| reading.read(value, kind)).collect::<Option<Vec<_>>>()
        });
        let compared = match read {
            [Some(rows_read), Some(reports_read)] => {
                let is_one_to_one = is_one_to_one(rows, &rows_read) && is_one_to_one(reports, &reports_read);
                is_one_to_one.then_some([rows_read, reports_read])
            }
            _ if is_text_beside_other => return Err(self.differs(rows, reports)),
            _ => None,
        };
        let as_text = || sides.map(|(values, _)| values.iter().map(|value| text(value)).collect());
        let mut numbers: HashMap<Part, u32> = HashMap::new();
        Ok(compared.unwrap_or_else(as_text).map(|values| {
            let number = |value| {
                let next = u32::try_from(numbers.len()).expect("no more values than rows and reports");
                *numbers.entry(value).or_insert(next)
            };
            values.into_iter().map(number).collect()
        }))
    }

    /// Rejects floating-point whole numbers of 2^53 and more: they are rounded, and may be another
    /// key.
    fn check_rounding(&self, reading: Reading, sides: [(&[String], Kind); 2]) -> Result<()> {
        const EXACT: f64 = 9_007_199_254_740_992.0;
        if reading != Reading::Number || self.in_rows == self.in_reports {
            return Ok(());
        }
        for ((values, kind), table) in sides.into_iter().zip(["rows", "reports"]) {
            let is_rounded = |value: &&String| {
                value.contains(['.', 'e', 'E'])
                    && value.trim().parse::<f64>().is_ok_and(|value| value.abs() >= EXACT)
            };
            if kind == Kind::Number
                && let Some(key) = values.iter().find(is_rounded)
            {
                return Err(Error::KeyRounded { column: self.name.clone(), table, key: key.clone() });
            }
        }
        Ok(())
    }

    fn differs(&self, rows: &[String], reports: &[String]) -> Error {
        let few = |values: &[String]| first_few(values.iter().map(|value| shown(value)));
        Error::KeyKind {
            column: self.name.clone(),
            rows: self.in_rows.name(),
            row_keys: few(rows),
            reports: self.in_reports.name(),
            report_keys: few(reports),
        }
    }
}

/// How a column is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    Text,
    Number,
    Time,
    Truth,
}

/// A key part in its comparable form; `None` if it is missing.
type Part = Option<String>;

impl Reading {
    fn of(rows: Kind, reports: Kind) -> Option<Self> {
        let kind = match (rows, reports) {
            (Kind::Text, kind) | (kind, Kind::Text) => kind,
            (one, other) if one == other || one.is_number() && other.is_number() => one,
            _ => return None,
        };
        match kind {
            Kind::Integer | Kind::Number => Some(Self::Number),
            Kind::Time => Some(Self::Time),
            Kind::Boolean => Some(Self::Truth),
            Kind::Text => Some(Self::Text),
            Kind::List => None,
        }
    }

    /// A value of a column of this kind; nothing if it cannot be read as one.
    fn read(self, value: &str, kind: Kind) -> Option<Part> {
        if self == Self::Text {
            return Some(text(value));
        }
        if is_missing(value) {
            return Some(None);
        }
        match self {
            Self::Text => unreachable!("dealt with above"),
            Self::Number => number(value, kind == Kind::Text).map(Some),
            Self::Time => time(value).map(Some),
            Self::Truth => {
                let value = value.to_ascii_lowercase();
                matches!(value.as_str(), "true" | "false").then_some(Some(value))
            }
        }
    }
}

fn text(value: &str) -> Part {
    (!value.is_empty()).then(|| value.to_owned())
}

/// A number's digits without leading and trailing zeros, and its power of ten. Text counts as a
/// number only with digits, a minus and a point: `1e5` may be a name.
fn number(value: &str, is_text: bool) -> Option<String> {
    let value = if is_text { value } else { value.trim() };
    let (sign, rest) = match value.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None if is_text => ("", value),
        None => ("", value.strip_prefix('+').unwrap_or(value)),
    };
    let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
        Some(_) if is_text => return None,
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (rest, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let digits = digits.trim_start_matches('0');
    let significant = digits.trim_end_matches('0');
    if significant.is_empty() {
        return Some("0".into()); // and so is -0
    }
    let power = i64::from(exponent) + i64::try_from(digits.len() - significant.len()).ok()?
        - i64::try_from(fraction.len()).ok()?;
    Some(format!("{sign}{significant}e{power}"))
}

/// An instant in seconds and nanoseconds from 1970, marked if it has a time zone.
#[cfg(feature = "tables")]
fn time(value: &str) -> Option<String> {
    let instant = super::times::utc(value)?;
    let is_zoned = value.get("0000-00-00".len()..)?.contains(['Z', 'z', '+', '-']);
    let zone = if is_zoned { "Z" } else { "" };
    Some(format!("{}.{:09}{zone}", instant.timestamp(), instant.timestamp_subsec_nanos()))
}

/// Only files hold times; without the feature for files there is no calendar.
#[cfg(not(feature = "tables"))]
fn time(_: &str) -> Option<String> {
    None
}

/// Whether all values have different forms, ignoring missing ones and the sign of zero.
fn is_one_to_one(values: &[String], read: &[Part]) -> bool {
    let mut seen: HashMap<&str, &str> = HashMap::new();
    values.iter().zip(read).all(|(value, part)| match part {
        None => true,
        Some(part) => {
            let value = if part == "0" { value.trim_start_matches('-') } else { value };
            *seen.entry(part).or_insert(value) == value
        }
    })
}

/// The keys of one table, line by line.
pub(super) struct Keys<'t> {
    columns: Vec<Numbered<'t>>,
    len: usize,
}

struct Numbered<'t> {
    dictionary: &'t [String],
    codes: &'t [u32],
    /// A number for each value of the dictionary, shared by both tables.
    numbers: Vec<u32>,
}

impl<'t> Keys<'t> {
    /// The keys of rows and of reports.
    pub(super) fn of(rows: &'t Table, reports: &'t Table, columns: &[KeyColumn]) -> Result<[Self; 2]> {
        crate::error::check_length("key columns, at least", 1, columns.len().min(1))?;
        let mut keys = [rows, reports]
            .map(|table| Self { columns: Vec::with_capacity(columns.len()), len: table.n_rows() });
        for column in columns {
            let sides = [categories(rows, &column.name)?, categories(reports, &column.name)?];
            let numbers = column.numbered(sides[0].0, sides[1].0)?;
            for ((keys, (dictionary, codes)), numbers) in keys.iter_mut().zip(sides).zip(numbers) {
                keys.columns.push(Numbered { dictionary, codes, numbers });
            }
        }
        Ok(keys)
    }

    /// The number of lines.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The key of a line: a number per column; equal keys have equal numbers in both tables.
    pub(super) fn key(&self, line: usize, key: &mut Vec<u32>) {
        key.clear();
        key.extend(self.columns.iter().map(|column| column.numbers[column.codes[line] as usize]));
    }

    /// The key of a line, as text.
    pub(super) fn shown(&self, line: usize) -> String {
        let part = |column: &Numbered| shown(&column.dictionary[column.codes[line] as usize]);
        self.columns.iter().map(part).collect::<Vec<_>>().join(" / ")
    }
}

fn categories<'t>(table: &'t Table, name: &str) -> Result<(&'t [String], &'t [u32])> {
    match table.column(name)? {
        Column::Categorical { dictionary, codes } => Ok((dictionary, codes)),
        Column::Vector(_) => Err(Error::NotAKey { column: name.into(), found: Kind::List.name() }),
        other => Err(Error::ColumnKind { column: name.into(), expected: "categorical", got: other.kind() }),
    }
}

/// A value in a message, quoted if it starts or ends with white space.
fn shown(value: &str) -> String {
    if value.is_empty() {
        "(missing)".into()
    } else if value.trim().len() < value.len() || value.contains([',', '/']) {
        format!("{value:?}")
    } else {
        value.into()
    }
}

/// The first few of many, for a message.
pub(super) fn first_few(mut keys: impl Iterator<Item = String>) -> String {
    const FEW: usize = 3;
    let shown: Vec<String> = keys.by_ref().take(FEW).collect();
    let more = if keys.next().is_some() { ", …" } else { "" };
    format!("{}{more}", shown.join(", "))
}

#[cfg(test)]
mod tests;
