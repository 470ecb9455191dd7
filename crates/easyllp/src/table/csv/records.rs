//! Find the fields of records by delimiters and line ends.

use super::blocks::Flaw;
use super::delimiter::Delimiter;
use crate::kernel::places_of;
use memchr::{memchr, memchr3_iter, memrchr};
use std::borrow::Cow;

/// Splits a block into chunks of whole records.
pub(super) fn pieces(mut block: &[u8], delimiter: Delimiter) -> impl Iterator<Item = &[u8]> {
    const PIECE: usize = 128 << 10;
    std::iter::from_fn(move || {
        let wanted = &block[..PIECE.min(block.len())];
        // A record longer than a piece: the rest in one.
        let end = last_record_end(wanted, delimiter).map_or(block.len(), |end| end + 1);
        let (piece, rest) = block.split_at(end);
        block = rest;
        (!piece.is_empty()).then_some(piece)
    })
}

/// The end of the last whole record, in bytes that start with a record.
pub(super) fn last_record_end(block: &[u8], delimiter: Delimiter) -> Option<usize> {
    if memchr(b'"', block).is_none() {
        return memrchr(b'\n', block);
    }
    Separators::new(block, delimiter).filter(|(_, is_line)| *is_line).last().map(|(end, _)| end)
}

/// Delimiters and line ends, 64 bytes at a time: the position, and whether it is a line end.
fn separators(bytes: &[u8], delimiter: Delimiter) -> impl Iterator<Item = (usize, bool)> {
    let delimiter = delimiter.byte();
    let (whole, rest) = bytes.as_chunks::<64>();
    let mut last = [0; 64];
    last[..rest.len()].copy_from_slice(rest);
    whole.iter().copied().chain([last]).enumerate().flat_map(move |(place, chunk)| {
        let lines = places_of(b'\n', &chunk);
        let mut hits = places_of(delimiter, &chunk) | lines;
        std::iter::from_fn(move || {
            let bit = hits.trailing_zeros();
            (hits != 0).then(|| {
                hits &= hits - 1;
                (place * 64 + bit as usize, lines >> bit & 1 == 1)
            })
        })
    })
}

/// Delimiters and line ends outside of quotes: the position, and whether it is a line end.
pub(super) struct Separators<'b> {
    bytes: &'b [u8],
    hits: memchr::Memchr3<'b>,
    field_start: usize,
    is_quoted: bool,
    /// The second quote of a doubled quote.
    passed_over: Option<usize>,
}

impl<'b> Separators<'b> {
    pub(super) fn new(bytes: &'b [u8], delimiter: Delimiter) -> Self {
        let hits = memchr3_iter(delimiter.byte(), b'\n', b'"', bytes);
        Self { bytes, hits, field_start: 0, is_quoted: false, passed_over: None }
    }
}

impl Iterator for Separators<'_> {
    type Item = (usize, bool);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let hit = self.hits.next()?;
            match self.bytes[hit] {
                b'"' if self.passed_over == Some(hit) => {}
                b'"' if self.is_quoted => {
                    if self.bytes.get(hit + 1) == Some(&b'"') {
                        self.passed_over = Some(hit + 1);
                    } else {
                        self.is_quoted = false;
                    }
                }
                // Elsewhere than at the start of a field a quote is a letter like others.
                b'"' => self.is_quoted = hit == self.field_start,
                _ if self.is_quoted => {}
                separator => {
                    self.field_start = hit + 1;
                    return Some((hit, separator == b'\n'));
                }
            }
        }
    }
}

/// Where a record starts.
pub(super) fn start_of(bytes: &[u8], delimiter: Delimiter, record: usize) -> usize {
    let (mut start, mut n_fields, mut n_records) = (0, 0, 0);
    for (end, is_line) in Separators::new(bytes, delimiter) {
        n_fields += 1;
        if !is_line {
            continue;
        }
        if n_fields > 1 || !is_blank(&bytes[start..end]) {
            if n_records == record {
                break;
            }
            n_records += 1;
        }
        (start, n_fields) = (end + 1, 0);
    }
    start
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(|byte| matches!(byte, b'\r' | b'\n'))
}

/// Records of a block, each with the same number of fields.
pub(super) struct Records<'b> {
    text: &'b str,
    delimiter: Delimiter,
    n_fields: usize,
    has_quotes: bool,
    /// Where each record starts.
    starts: Vec<u32>,
    /// Where each field ends, record by record.
    ends: Vec<u32>,
}

impl<'b> Records<'b> {
    /// Finds the fields; empty lines are skipped.
    pub(super) fn split(bytes: &'b [u8], delimiter: Delimiter, n_fields: usize) -> Result<Self, Flaw> {
        let text = std::str::from_utf8(bytes).map_err(|_| Flaw::NotText)?;
        let has_quotes = memchr(b'"', bytes).is_some();
        let mut records =
            Self { text, delimiter, n_fields, has_quotes, starts: Vec::new(), ends: Vec::new() };
        if has_quotes {
            records.collect(Separators::new(bytes, delimiter))?;
        } else {
            records.collect(separators(bytes, delimiter))?;
        }
        Ok(records)
    }

    #[expect(clippy::cast_possible_truncation, reason = "no block is longer than a record may be, 64 MB")]
    fn collect(&mut self, separators: impl Iterator<Item = (usize, bool)>) -> Result<(), Flaw> {
        // Shorter fields than this on average are rare.
        self.ends.reserve(self.text.len() / 4);
        let (mut start, mut first_field) = (0, 0);
        for (end, is_line) in separators {
            self.ends.push(end as u32);
            if !is_line {
                continue;
            }
            let found = self.ends.len() - first_field;
            if found == 1 && is_blank(&self.text.as_bytes()[start..end]) {
                self.ends.pop();
            } else if found == self.n_fields {
                self.starts.push(start as u32);
            } else {
                let delimiter = self.delimiter;
                return Err(Flaw::Fields { record: self.starts.len(), found, delimiter });
            }
            first_field = self.ends.len();
            start = end + 1;
        }
        Ok(())
    }

    pub(super) fn len(&self) -> usize {
        self.starts.len()
    }

    /// Calls `each` with the field at one index, record by record, until it returns an error.
    pub(super) fn try_each<E>(
        &self,
        place: usize,
        mut take: impl FnMut(usize, &str) -> Result<(), E>,
    ) -> Result<(), E> {
        let records = self.ends.chunks_exact(self.n_fields).zip(&self.starts).enumerate();
        let mut fields = records.map(|(record, (ends, &first))| {
            let start = if place == 0 { first } else { ends[place - 1] + 1 };
            (record, &self.text[start as usize..ends[place] as usize])
        });
        let is_last = place + 1 == self.n_fields;
        if !is_last && !self.has_quotes {
            return fields.try_for_each(|(record, field)| take(record, field));
        }
        fields.try_for_each(|(record, field)| {
            let field = if is_last { field.strip_suffix('\r').unwrap_or(field) } else { field };
            take(record, &unquoted(field))
        })
    }
}

/// The text of a field without its quotes.
fn unquoted(field: &str) -> Cow<'_, str> {
    let Some(inner) = field.strip_prefix('"') else { return Cow::Borrowed(field) };
    let inner = inner.strip_suffix('"').unwrap_or(inner);
    if !inner.contains('"') {
        return Cow::Borrowed(inner);
    }
    let mut is_second = false;
    let kept = inner.chars().filter(|&letter| {
        is_second = letter == '"' && !is_second;
        !is_second
    });
    Cow::Owned(kept.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fields(text: &str, delimiter: Delimiter, n_fields: usize) -> Result<Vec<Vec<String>>, Flaw> {
        let records = Records::split(text.as_bytes(), delimiter, n_fields)?;
        let mut columns: Vec<Vec<String>> = vec![Vec::new(); n_fields];
        for (place, column) in columns.iter_mut().enumerate() {
            records.try_each(place, |_, field| {
                column.push(field.to_owned());
                Ok(())
            })?;
        }
        Ok((0..records.len())
            .map(|record| columns.iter().map(|column| column[record].clone()).collect())
            .collect())
    }

    /// Of the four only the delimiter separates; the others are letters.
    #[test]
    fn quotes_hide_delimiters_and_line_ends() {
        for delimiter in Delimiter::ALL {
            let character = char::from(delimiter.byte()).to_string();
            let read = |text: &str| fields(&text.replace('~', &character), delimiter, 2);
            let others = ",\t;|".replace(&character, "");
            let text = format!(
                "a~\"b~ c\"\n\"d\ne\"~\"say \"\"f\"\"\"\r\n\n5\" pipe~\n{others}~\"{others}\"\n\"~\"~\"\"\n"
            );
            let expected =
                [["a", "b~ c"], ["d\ne", "say \"f\""], ["5\" pipe", ""], [&others, &others], ["~", ""]];
            let expected = expected.map(|record| record.map(|field| field.replace('~', &character)));
            assert_eq!(read(&text).unwrap(), expected, "{delimiter}");
            let one = format!("a~b\nc{others}\n");
            assert!(matches!(read(&one), Err(Flaw::Fields { record: 1, found: 1, .. })), "{delimiter}");
        }
    }

    /// Each byte that stands in a proptest's text for the delimiter, since its strategies know none.
    fn with(delimiter: Delimiter, bytes: &[u8]) -> Vec<u8> {
        bytes.iter().map(|&byte| if byte == b'~' { delimiter.byte() } else { byte }).collect()
    }

    fn any_delimiter() -> impl Strategy<Value = Delimiter> {
        prop::sample::select(Delimiter::ALL.to_vec())
    }

    proptest! {
        /// What is written by the rules comes back, whatever it is.
        #[test]
        fn what_is_written_is_read(
            delimiter in any_delimiter(),
            table in prop::collection::vec(prop::collection::vec("[a-c,;|\t\"\r\n é]{0,6}", 3), 1..8),
        ) {
            let quoted = |field: &String| format!("\"{}\"", field.replace('"', "\"\""));
            let between = char::from(delimiter.byte()).to_string();
            let lines: Vec<String> =
                table.iter().map(|record| record.iter().map(quoted).collect::<Vec<_>>().join(&between)).collect();
            prop_assert_eq!(fields(&(lines.join("\n") + "\n"), delimiter, 3).unwrap(), table);
        }

        /// Without quotes both ways to find separators agree.
        #[test]
        fn many_at_a_time_finds_the_same(
            delimiter in any_delimiter(),
            bytes in prop::collection::vec(prop::sample::select(b"a~,;\t|\n-\x0b\xac\x8a\x3a\x7d".to_vec()), 0..200),
        ) {
            let bytes = with(delimiter, &bytes);
            let slowly: Vec<_> = Separators::new(&bytes, delimiter).collect();
            prop_assert_eq!(separators(&bytes, delimiter).collect::<Vec<_>>(), slowly);
        }
    }
}
