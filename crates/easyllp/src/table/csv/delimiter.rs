//! The delimiter between fields, and how it is inferred from a header.

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// The delimiter of a text file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Delimiter {
    /// `,`
    Comma,
    /// A tab, as in files that end in `.tsv`.
    Tab,
    /// `;`
    Semicolon,
    /// `|`
    Pipe,
}

impl Delimiter {
    /// All delimiters, the default first.
    pub const ALL: [Self; 4] = [Self::Comma, Self::Tab, Self::Semicolon, Self::Pipe];

    /// The character.
    pub fn byte(self) -> u8 {
        match self {
            Self::Comma => b',',
            Self::Tab => b'\t',
            Self::Semicolon => b';',
            Self::Pipe => b'|',
        }
    }

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Comma => "comma",
            Self::Tab => "tab",
            Self::Semicolon => "semicolon",
            Self::Pipe => "pipe",
        }
    }

    /// The delimiter by file extension: a tab for `.tsv`, compressed or not.
    pub(super) fn of_name(file: &Path) -> Option<Self> {
        let name = file.file_name()?.to_string_lossy().to_lowercase();
        let plain = name.trim_end_matches(".gz").trim_end_matches(".zst");
        (Path::new(plain).extension()? == "tsv").then_some(Self::Tab)
    }

    /// The delimiter that occurs most often outside of quotes in the first non-empty line; comma on
    /// a tie or if there is none. `None` if the line is not complete in these bytes, unless they
    /// are the whole input.
    pub(super) fn inferred(bytes: &[u8], is_all: bool) -> Option<Self> {
        let is_blank = |byte: &u8| matches!(byte, b'\r' | b'\n');
        let start = bytes.iter().position(|byte| !is_blank(byte)).or(is_all.then_some(bytes.len()))?;
        let mut counts = [0_usize; Self::ALL.len()];
        let (mut is_quoted, mut is_field_start, mut is_whole) = (false, true, is_all);
        for &byte in &bytes[start..] {
            // A doubled quote closes and opens again at once.
            if byte == b'"' && (is_quoted || is_field_start) {
                is_field_start = is_quoted;
                is_quoted = !is_quoted;
                continue;
            }
            is_field_start = false;
            if is_quoted {
                continue;
            }
            if byte == b'\n' {
                is_whole = true;
                break;
            }
            if let Some(place) = Self::ALL.iter().position(|delimiter| delimiter.byte() == byte) {
                counts[place] += 1;
                is_field_start = true;
            }
        }
        let most = counts.iter().max().expect("there are four");
        let mut with_most = Self::ALL.into_iter().zip(&counts).filter(|(_, count)| *count == most);
        let (first, is_tie) = (with_most.next().expect("one has the most").0, with_most.next().is_some());
        is_whole.then_some(if is_tie { Self::Comma } else { first })
    }
}

impl fmt::Display for Delimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Delimiter {
    type Err = Error;

    /// The name, or the character itself; `\t` for a tab.
    fn from_str(text: &str) -> Result<Self> {
        let is_it = |delimiter: &Self| {
            text == delimiter.as_str()
                || text.as_bytes() == [delimiter.byte()]
                || (text, *delimiter) == ("\\t", Self::Tab)
        };
        Self::ALL.into_iter().find(is_it).ok_or_else(|| Error::Setting {
            name: "delimiter",
            value: format!("`{text}`"),
            expected: "comma, tab, semicolon or pipe",
        })
    }
}

impl TryFrom<String> for Delimiter {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<Delimiter> for String {
    fn from(delimiter: Delimiter) -> Self {
        delimiter.as_str().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_tell_their_delimiter() {
        for (header, expected) in [
            ("a,b,c\n", Delimiter::Comma),
            ("a\tb\tc\r\n", Delimiter::Tab),
            ("a;b;c\n", Delimiter::Semicolon),
            ("a|b|c\n", Delimiter::Pipe),
            // Only the first line that is not empty counts.
            ("\n\r\na;b\n1,2,3,4\n", Delimiter::Semicolon),
            ("price, net;tax;sum\n", Delimiter::Semicolon),
            // What is in quotes does not count, whatever the delimiter turns out to be.
            ("\"a,b,c\";\"d,e\"\n", Delimiter::Semicolon),
            ("\"a\"\"b|c|d\"\t\"e\nf||\"\n", Delimiter::Tab),
            ("5\" pipe|a\n", Delimiter::Pipe),
            // A tie, or none.
            ("a;b|c\n", Delimiter::Comma),
            ("a,b;c\n", Delimiter::Comma),
            ("a\n", Delimiter::Comma),
            ("\"a;b\"\n", Delimiter::Comma),
        ] {
            assert_eq!(Delimiter::inferred(header.as_bytes(), false), Some(expected), "{header:?}");
        }
        for (cut, at_the_end) in [
            ("", Delimiter::Comma),
            ("\n\r\n", Delimiter::Comma),
            ("a;b", Delimiter::Semicolon),
            ("a;\"b\n|||", Delimiter::Semicolon),
        ] {
            assert_eq!(Delimiter::inferred(cut.as_bytes(), false), None, "{cut:?}");
            assert_eq!(Delimiter::inferred(cut.as_bytes(), true), Some(at_the_end), "{cut:?}");
        }
    }

    #[test]
    fn names_and_characters_are_delimiters() {
        for delimiter in Delimiter::ALL {
            let character = char::from(delimiter.byte()).to_string();
            assert_eq!([delimiter.as_str(), &character].map(str::parse), [Ok(delimiter), Ok(delimiter)]);
        }
        assert_eq!("\\t".parse(), Ok(Delimiter::Tab));
        for text in ["", "Comma", ",,", "\\;", "\"", "\n", "é"] {
            let refused = text.parse::<Delimiter>().unwrap_err().to_string();
            assert_eq!(refused, format!("delimiter is `{text}`: it must be comma, tab, semicolon or pipe"));
        }
    }

    #[test]
    fn tsv_means_tabs() {
        for (name, expected) in [
            ("a.tsv", Some(Delimiter::Tab)),
            ("in/a.TSV.gz", Some(Delimiter::Tab)),
            ("a.tsv.zst", Some(Delimiter::Tab)),
            ("a.csv", None),
            ("tsv", None),
            ("a.tsv.csv", None),
        ] {
            assert_eq!(Delimiter::of_name(Path::new(name)), expected, "{name}");
        }
    }
}
