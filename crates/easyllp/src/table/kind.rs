//! What a column holds.

/// What a column holds, as its file has it.
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
    /// The kind in words.
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

    /// Whether numbers are held, whole or not.
    pub fn is_number(self) -> bool {
        matches!(self, Self::Integer | Self::Number)
    }
}

/// Whether text in the place of a number, a time or a word stands for a missing value.
pub(super) fn is_missing(field: &str) -> bool {
    // The length settles nearly all.
    match field.len() {
        0 => true,
        2..=4 => matches!(field, "NA" | "N/A" | "NaN" | "nan" | "null" | "NULL" | "None"),
        _ => false,
    }
}
