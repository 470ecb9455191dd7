//! Bytes into blocks of whole records, and records into fields.

use crate::kernel::places_of;
use memchr::{memchr, memchr_iter, memchr3_iter, memrchr};
use std::borrow::Cow;
use std::convert::Infallible;
use std::io::Read;

/// No record is longer.
const LONGEST: usize = 64 << 20;

/// What can be wrong with a file; records are counted from the start of their block.
#[derive(Debug)]
pub(super) enum Flaw {
    CannotRead(std::io::Error),
    TooLong,
    /// A quote is open at the end of the file.
    Open,
    NotText,
    Fields {
        record: usize,
        found: usize,
    },
    Value {
        record: usize,
        place: usize,
        value: String,
    },
}

impl Flaw {
    /// The same flaw, its record counted from further up.
    pub(super) fn after(self, n_records: usize) -> Self {
        match self {
            Self::Fields { record, found } => Self::Fields { record: record + n_records, found },
            Self::Value { record, place, value } => Self::Value { record: record + n_records, place, value },
            other => other,
        }
    }
}

/// A flaw, and the line of the file where its record starts, counted from 1 as editors do: a record may take several lines, and
/// empty lines are no records.
#[derive(Debug)]
pub(super) struct Mistake {
    pub(super) line: usize,
    pub(super) flaw: Flaw,
}

/// Whole records, and how many lines of the file come before them.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) bytes: Vec<u8>,
    n_lines_before: usize,
}

impl Block {
    /// Finds the line of a flaw in this block.
    pub(super) fn mistake(&self, flaw: Flaw) -> Mistake {
        let start = match flaw {
            Flaw::Fields { record, .. } | Flaw::Value { record, .. } => start_of(&self.bytes, record),
            Flaw::NotText => std::str::from_utf8(&self.bytes).map_or_else(|error| error.valid_up_to(), |_| 0),
            Flaw::CannotRead(_) | Flaw::TooLong | Flaw::Open => 0,
        };
        Mistake { line: self.n_lines_before + n_lines(&self.bytes[..start]) + 1, flaw }
    }
}

fn n_lines(bytes: &[u8]) -> usize {
    memchr_iter(b'\n', bytes).count()
}

/// Where a record starts.
fn start_of(bytes: &[u8], record: usize) -> usize {
    let (mut start, mut n_fields, mut n_records) = (0, 0, 0);
    for (end, is_line) in Separators::new(bytes) {
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

/// Cuts what it reads into blocks that end where a record does.
pub(super) struct Blocks<R> {
    reader: R,
    /// Bytes read at a time.
    size: usize,
    /// The beginning of a record whose end is not read yet.
    rest: Vec<u8>,
    /// Lines before that.
    n_lines: usize,
    is_at_end: bool,
}

impl<R: Read> Blocks<R> {
    pub(super) fn new(reader: R, size: usize) -> Self {
        Self { reader, size, rest: Vec::new(), n_lines: 0, is_at_end: false }
    }

    /// Takes off the first record that is not empty, the header, and says what its fields are; none in an empty file.
    pub(super) fn header(&mut self) -> Result<Vec<String>, Mistake> {
        while let Some(block) = self.next() {
            let mut block = block?;
            let bytes = &block.bytes;
            let start = bytes.iter().position(|byte| !matches!(byte, b'\r' | b'\n')).unwrap_or(bytes.len());
            let mut n_fields = 0;
            let end = Separators::new(&bytes[start..]).find(|(_, is_line)| {
                n_fields += 1;
                *is_line
            });
            let Some((length, _)) = end else { continue };
            let mut names = Vec::with_capacity(n_fields);
            let header = Records::split(&bytes[start..=start + length], n_fields)
                .map_err(|flaw| block.mistake(flaw))?;
            for place in 0..n_fields {
                let Ok(()) = header.try_each(place, |_, name| {
                    names.push(name.to_owned());
                    Ok::<_, Infallible>(())
                });
            }
            self.n_lines = block.n_lines_before + n_lines(&bytes[..=start + length]);
            block.bytes.drain(..=start + length);
            block.bytes.append(&mut self.rest);
            self.rest = block.bytes;
            return Ok(names);
        }
        Ok(Vec::new())
    }

    /// At most so many blocks, and the mistake that follows them if one does.
    pub(super) fn some(&mut self, most: usize) -> (Vec<Block>, Option<Mistake>) {
        let mut blocks = Vec::new();
        for block in self.take(most) {
            match block {
                Ok(block) => blocks.push(block),
                Err(mistake) => return (blocks, Some(mistake)),
            }
        }
        (blocks, None)
    }

    /// Fills the block up to its size; it is at the end if there is no more.
    fn fill(&mut self, block: &mut Vec<u8>, size: usize) -> Result<(), Flaw> {
        let missing = size.saturating_sub(block.len());
        block.reserve_exact(missing + 1);
        let read = self.reader.by_ref().take(missing as u64).read_to_end(block).map_err(Flaw::CannotRead)?;
        if read < missing {
            self.is_at_end = true;
            if block.last().is_some_and(|&last| last != b'\n') {
                block.push(b'\n');
            }
        }
        Ok(())
    }
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(|byte| matches!(byte, b'\r' | b'\n'))
}

impl<R: Read> Iterator for Blocks<R> {
    type Item = Result<Block, Mistake>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut bytes = std::mem::take(&mut self.rest);
        let mut size = self.size;
        let flaw = loop {
            if !self.is_at_end
                && let Err(flaw) = self.fill(&mut bytes, size)
            {
                break flaw;
            }
            if bytes.is_empty() {
                return None;
            }
            match last_record_end(&bytes) {
                Some(end) => {
                    self.rest = bytes.split_off(end + 1);
                    let n_lines_before = self.n_lines;
                    self.n_lines += n_lines(&bytes);
                    return Some(Ok(Block { bytes, n_lines_before }));
                }
                None if self.is_at_end => break Flaw::Open,
                None if size >= LONGEST => break Flaw::TooLong,
                None => size *= 2,
            }
        };
        Some(Err(Mistake { line: self.n_lines + 1, flaw }))
    }
}

/// Cuts a block into pieces of whole records, small enough to stay near the processor while their fields are taken up.
pub(super) fn pieces(mut block: &[u8]) -> impl Iterator<Item = &[u8]> {
    const PIECE: usize = 128 << 10;
    std::iter::from_fn(move || {
        let wanted = &block[..PIECE.min(block.len())];
        // A record longer than a piece: the rest in one.
        let end = last_record_end(wanted).map_or(block.len(), |end| end + 1);
        let (piece, rest) = block.split_at(end);
        block = rest;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Where the last whole record ends, in bytes that begin with a record.
fn last_record_end(block: &[u8]) -> Option<usize> {
    if memchr(b'"', block).is_none() {
        return memrchr(b'\n', block);
    }
    Separators::new(block).filter(|(_, is_line)| *is_line).last().map(|(end, _)| end)
}

/// Commas and line ends, 64 bytes at a time: where, and whether it is a line end.
fn separators(bytes: &[u8]) -> impl Iterator<Item = (usize, bool)> {
    let (whole, rest) = bytes.as_chunks::<64>();
    let mut last = [0; 64];
    last[..rest.len()].copy_from_slice(rest);
    whole.iter().copied().chain([last]).enumerate().flat_map(|(place, chunk)| {
        let lines = places_of(b'\n', &chunk);
        let mut hits = places_of(b',', &chunk) | lines;
        std::iter::from_fn(move || {
            let bit = hits.trailing_zeros();
            (hits != 0).then(|| {
                hits &= hits - 1;
                (place * 64 + bit as usize, lines >> bit & 1 == 1)
            })
        })
    })
}

/// Commas and line ends that are not in quotes: where, and whether it is a line end.
struct Separators<'b> {
    bytes: &'b [u8],
    hits: memchr::Memchr3<'b>,
    field_start: usize,
    is_quoted: bool,
    /// The second of two quotes that stand for one.
    passed_over: Option<usize>,
}

impl<'b> Separators<'b> {
    fn new(bytes: &'b [u8]) -> Self {
        let hits = memchr3_iter(b',', b'\n', b'"', bytes);
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

/// Records of a block, each of the same number of fields.
pub(super) struct Records<'b> {
    text: &'b str,
    n_fields: usize,
    has_quotes: bool,
    /// Where each record starts.
    starts: Vec<u32>,
    /// Where each field ends, record by record.
    ends: Vec<u32>,
}

impl<'b> Records<'b> {
    /// Finds the fields; lines without anything are passed over.
    pub(super) fn split(bytes: &'b [u8], n_fields: usize) -> Result<Self, Flaw> {
        let text = std::str::from_utf8(bytes).map_err(|_| Flaw::NotText)?;
        let has_quotes = memchr(b'"', bytes).is_some();
        let mut records = Self { text, n_fields, has_quotes, starts: Vec::new(), ends: Vec::new() };
        if has_quotes {
            records.collect(Separators::new(bytes))?;
        } else {
            records.collect(separators(bytes))?;
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
                return Err(Flaw::Fields { record: self.starts.len(), found });
            }
            first_field = self.ends.len();
            start = end + 1;
        }
        Ok(())
    }

    pub(super) fn len(&self) -> usize {
        self.starts.len()
    }

    /// Calls for what each field at one place says, record by record, until one is refused.
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

/// What a field says, once its quotes are taken off.
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

    fn fields(text: &str, n_fields: usize) -> Result<Vec<Vec<String>>, Flaw> {
        let records = Records::split(text.as_bytes(), n_fields)?;
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

    #[test]
    fn quotes_hide_commas_and_line_ends() {
        let read = fields("a,\"b, c\"\n\"d\ne\",\"say \"\"f\"\"\"\r\n\n5\" pipe,\n", 2).unwrap();
        assert_eq!(read, [["a", "b, c"], ["d\ne", "say \"f\""], ["5\" pipe", ""]]);
        assert!(matches!(fields("a,b\nc\n", 2), Err(Flaw::Fields { record: 1, found: 1 })));
    }

    #[test]
    fn blocks_end_where_records_do() {
        let mut blocks = Blocks::new(&b"\nh,i\n\"a\nb\",c\nd,e"[..], 1 << 20);
        assert_eq!(blocks.header().unwrap(), ["h", "i"]);
        let rest: Vec<Vec<u8>> = blocks.map(|block| block.unwrap().bytes).collect();
        assert_eq!(rest, [b"\"a\nb\",c\nd,e\n".to_vec()]);
        // A long file in many blocks: nothing is lost, nothing is cut.
        let line = format!("\"{}\n\",{}\n", "x".repeat(700), "y".repeat(900));
        let text = line.repeat((2 << 20) / line.len() + 10);
        let blocks: Vec<Block> = Blocks::new(text.as_bytes(), 1 << 20).map(Result::unwrap).collect();
        let blocks: Vec<Vec<u8>> = blocks.into_iter().map(|block| block.bytes).collect();
        assert!(blocks.len() > 2 && blocks.iter().all(|block| block.len() % line.len() == 0));
        assert_eq!(blocks.concat(), text.as_bytes());
        let cut: Vec<&[u8]> = pieces(text.as_bytes()).collect();
        assert!(cut.len() > 12 && cut.iter().all(|piece| piece.len() % line.len() == 0));
        assert_eq!(cut.concat(), text.as_bytes());
        let endless = [b"\"".to_vec(), vec![b'z'; 100]].concat();
        assert!(matches!(
            Blocks::new(&endless[..], 1 << 20).next(),
            Some(Err(Mistake { line: 1, flaw: Flaw::Open }))
        ));
    }

    /// Lines are those of the file, whatever lies before: empty lines, a header of two lines, records of two, other blocks.
    #[test]
    fn a_mistake_knows_its_line() {
        let record = "\"a\nb\",c\n\n";
        let n_records = 20_000;
        let text = format!("\n\"h\n1\",i\n{}bad\n", record.repeat(n_records));
        let mut blocks = Blocks::new(text.as_bytes(), 64 << 10);
        blocks.header().unwrap();
        let mut found = Vec::new();
        for block in blocks {
            let block = block.unwrap();
            found.extend(Records::split(&block.bytes, 2).err().map(|flaw| block.mistake(flaw)));
        }
        assert!(
            matches!(found[..], [Mistake { line, flaw: Flaw::Fields { found: 1, .. } }] if line == 4 + 3 * n_records),
            "{found:?}"
        );
        let block = Block { bytes: b"a,b\n\nc,\"\n\xff\"\n".to_vec(), n_lines_before: 10 };
        assert_eq!(block.mistake(Flaw::NotText).line, 14);
        let value = |record| Flaw::Value { record, place: 0, value: String::new() };
        assert_eq!([0, 1].map(|record| block.mistake(value(record)).line), [11, 13]);
        let mut open = Blocks::new(&b"h,i\n1,2\n\"x,2\n3,4\n"[..], 1 << 20);
        open.header().unwrap();
        assert!(open.next().unwrap().is_ok());
        assert!(matches!(open.next(), Some(Err(Mistake { line: 3, flaw: Flaw::Open }))));
    }

    proptest! {
        /// What is written by the rules comes back, whatever it is.
        #[test]
        fn what_is_written_is_read(table in prop::collection::vec(prop::collection::vec("[a-c,\"\r\n é]{0,6}", 3), 1..8)) {
            let quoted = |field: &String| format!("\"{}\"", field.replace('"', "\"\""));
            let lines: Vec<String> = table.iter().map(|record| record.iter().map(quoted).collect::<Vec<_>>().join(",")).collect();
            prop_assert_eq!(fields(&(lines.join("\n") + "\n"), 3).unwrap(), table);
        }

        /// Without quotes both ways to find separators agree.
        #[test]
        fn many_at_a_time_finds_the_same(bytes in prop::collection::vec(prop::sample::select(b"a,\n-\x0b\xac\x8a".to_vec()), 0..200)) {
            prop_assert_eq!(separators(&bytes).collect::<Vec<_>>(), Separators::new(&bytes).collect::<Vec<_>>());
        }

        /// Whatever the bytes, reading ends, and does not panic.
        #[test]
        fn any_bytes_end(bytes in prop::collection::vec(prop::sample::select(b"a,\"\n\r\xff".to_vec()), 0..60)) {
            let mut blocks = Blocks::new(&bytes[..], 1 << 20);
            let _ = blocks.header();
            for block in blocks.take(100) {
                let Ok(block) = block else { break };
                for piece in pieces(&block.bytes) {
                    if let Ok(records) = Records::split(piece, 2) {
                        let _ = records.try_each(1, |_, field| if field.len() < 1000 { Ok(()) } else { Err(()) });
                    }
                }
            }
        }
    }
}
