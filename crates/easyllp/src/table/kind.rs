//! The kind of a column.

/// The kind of a column, as stored in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Whole numbers.
    Integer,
    /// Numbers.
    Number,
    /// True or false.
    Boolean,
    /// Dates and times.
    Time,
    /// Text.
    Text,
    /// Lists of numbers, all of one length.
    List,
}

impl Kind {
    /// The name of the kind.
    pub fn name(self) -> &'static str {
        match self {
            Self::Integer => "whole numbers",
            Self::Number => "numbers",
            Self::Boolean => "true or false",
            Self::Time => "dates or times",
            Self::Text => "text",
            Self::List => "lists of numbers",
        }
    }

    /// Whether it is numeric.
    pub fn is_number(self) -> bool {
        matches!(self, Self::Integer | Self::Number)
    }
}

/// Whether text such as `NA` in a column of this kind is a missing value.
pub(super) fn is_missing(field: &str) -> bool {
    // The length settles nearly all.
    match field.len() {
        0 => true,
        2..=4 => matches!(field, "NA" | "N/A" | "NaN" | "nan" | "null" | "NULL" | "None"),
        _ => false,
    }
}
