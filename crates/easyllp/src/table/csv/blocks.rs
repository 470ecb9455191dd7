//! Read bytes in blocks of whole records, and find malformed records.

use super::delimiter::Delimiter;
use super::records::{Records, Separators, last_record_end, pieces, start_of};
use memchr::memchr_iter;
use std::convert::Infallible;
use std::io::Read;

/// The maximum length of a record.
const LONGEST: usize = 64 << 20;

/// A malformed file; records are counted from the start of their block.
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
        delimiter: Delimiter,
    },
    Value {
        record: usize,
        place: usize,
        value: String,
    },
}

impl Flaw {
    /// The same error, with its record counted from an earlier start.
    pub(super) fn after(self, n_records: usize) -> Self {
        match self {
            Self::Fields { record, found, delimiter } => {
                Self::Fields { record: record + n_records, found, delimiter }
            }
            Self::Value { record, place, value } => Self::Value { record: record + n_records, place, value },
            other => other,
        }
    }
}

/// An error, and the line of the file where its record starts, counted from 1 as in editors: a
/// record may have several lines, and empty lines are no records.
#[derive(Debug)]
pub(super) struct Mistake {
    pub(super) line: usize,
    pub(super) flaw: Flaw,
}

/// Whole records, and the number of lines before them in the file.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) bytes: Vec<u8>,
    pub(super) delimiter: Delimiter,
    n_lines_before: usize,
}

impl Block {
    /// The fields of all its records.
    pub(super) fn records(&self, n_fields: usize) -> Result<Records<'_>, Flaw> {
        Records::split(&self.bytes, self.delimiter, n_fields)
    }

    /// The same in chunks of whole records, small enough to stay in the cache while their fields
    /// are converted.
    pub(super) fn pieces(&self, n_fields: usize) -> impl Iterator<Item = Result<Records<'_>, Flaw>> {
        let cut = pieces(&self.bytes, self.delimiter);
        cut.map(move |piece| Records::split(piece, self.delimiter, n_fields))
    }

    /// Finds the line of an error in this block.
    pub(super) fn mistake(&self, flaw: Flaw) -> Mistake {
        let start = match flaw {
            Flaw::Fields { record, .. } | Flaw::Value { record, .. } => {
                start_of(&self.bytes, self.delimiter, record)
            }
            Flaw::NotText => std::str::from_utf8(&self.bytes).map_or_else(|error| error.valid_up_to(), |_| 0),
            Flaw::CannotRead(_) | Flaw::TooLong | Flaw::Open => 0,
        };
        Mistake { line: self.n_lines_before + n_lines(&self.bytes[..start]) + 1, flaw }
    }
}

fn n_lines(bytes: &[u8]) -> usize {
    memchr_iter(b'\n', bytes).count()
}

/// Splits the input into blocks that end at a record.
pub(super) struct Blocks<R> {
    reader: R,
    /// The delimiter; inferred from the first line if it is not set.
    delimiter: Option<Delimiter>,
    /// Bytes read at a time.
    size: usize,
    /// The start of a record that is not complete yet.
    rest: Vec<u8>,
    /// The number of lines before it.
    n_lines: usize,
    is_at_end: bool,
}

impl<R: Read> Blocks<R> {
    pub(super) fn new(reader: R, delimiter: Option<Delimiter>, size: usize) -> Self {
        Self { reader, delimiter, size, rest: Vec::new(), n_lines: 0, is_at_end: false }
    }

    /// Reads the first non-empty record, the header, and returns its fields; none for an empty
    /// file.
    pub(super) fn header(&mut self) -> Result<Vec<String>, Mistake> {
        while let Some(block) = self.next() {
            let mut block = block?;
            let bytes = &block.bytes;
            let start = bytes.iter().position(|byte| !matches!(byte, b'\r' | b'\n')).unwrap_or(bytes.len());
            let mut n_fields = 0;
            let end = Separators::new(&bytes[start..], block.delimiter).find(|(_, is_line)| {
                n_fields += 1;
                *is_line
            });
            let Some((length, _)) = end else { continue };
            let mut names = Vec::with_capacity(n_fields);
            let header = Records::split(&bytes[start..=start + length], block.delimiter, n_fields)
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

    /// Reads at most this number of blocks, and the error that follows them, if any.
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

    /// Fills the block up to its size; returns whether the input has ended.
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
            // Before the first line has ended, no record has.
            let delimiter = self.delimiter.or_else(|| Delimiter::inferred(&bytes, self.is_at_end));
            let end = delimiter.and_then(|delimiter| Some((delimiter, last_record_end(&bytes, delimiter)?)));
            match end {
                Some((delimiter, end)) => {
                    self.delimiter = Some(delimiter);
                    self.rest = bytes.split_off(end + 1);
                    let n_lines_before = self.n_lines;
                    self.n_lines += n_lines(&bytes);
                    return Some(Ok(Block { bytes, delimiter, n_lines_before }));
                }
                None if self.is_at_end => break Flaw::Open,
                None if size >= LONGEST => break Flaw::TooLong,
                None => size *= 2,
            }
        };
        Some(Err(Mistake { line: self.n_lines + 1, flaw }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    impl Block {
        /// The first lines of a file, with commas.
        pub(in crate::table::csv) fn of(bytes: &[u8]) -> Self {
            Self { bytes: bytes.to_vec(), delimiter: Delimiter::Comma, n_lines_before: 0 }
        }
    }

    fn blocks(bytes: &[u8], size: usize) -> Blocks<&[u8]> {
        Blocks::new(bytes, None, size)
    }

    #[test]
    fn blocks_end_where_records_do() {
        let mut with_header = blocks(b"\nh,i\n\"a\nb\",c\nd,e", 1 << 20);
        assert_eq!(with_header.header().unwrap(), ["h", "i"]);
        let rest: Vec<Vec<u8>> = with_header.map(|block| block.unwrap().bytes).collect();
        assert_eq!(rest, [b"\"a\nb\",c\nd,e\n".to_vec()]);
        // A long file in many blocks: nothing is lost, nothing is cut.
        let line = format!("\"{}\n\",{}\n", "x".repeat(700), "y".repeat(900));
        let text = line.repeat((2 << 20) / line.len() + 10);
        let cut: Vec<Vec<u8>> = blocks(text.as_bytes(), 1 << 20).map(|block| block.unwrap().bytes).collect();
        assert!(cut.len() > 2 && cut.iter().all(|block| block.len() % line.len() == 0));
        assert_eq!(cut.concat(), text.as_bytes());
        let cut: Vec<&[u8]> = pieces(text.as_bytes(), Delimiter::Comma).collect();
        assert!(cut.len() > 12 && cut.iter().all(|piece| piece.len() % line.len() == 0));
        assert_eq!(cut.concat(), text.as_bytes());
        let endless = [b"\"".to_vec(), vec![b'z'; 100]].concat();
        assert!(matches!(blocks(&endless, 1 << 20).next(), Some(Err(Mistake { line: 1, flaw: Flaw::Open }))));
    }

    /// A header that is longer than a block, and has other delimiters in quotes, is waited for.
    #[test]
    fn the_delimiter_is_known_before_the_first_record_is_cut_off() {
        for delimiter in Delimiter::ALL {
            let between = char::from(delimiter.byte());
            let name = format!("\"{}\n,,;;\t\t||\"", "x".repeat(300));
            let text = format!("{name}{between}{name}{between}i\n1{between}\"{between}\n\"{between}3\n");
            let mut found = blocks(text.as_bytes(), 64);
            assert_eq!(found.header().unwrap().len(), 3, "{delimiter}");
            let block = found.next().unwrap().unwrap();
            assert_eq!((block.delimiter, block.records(3).unwrap().len()), (delimiter, 1));
            // One that is set is not inferred.
            let set = if delimiter == Delimiter::Pipe { Delimiter::Tab } else { Delimiter::Pipe };
            let mut wrong = Blocks::new(text.as_bytes(), Some(set), 1 << 20);
            assert_ne!(wrong.header().map(|names| names.len()).ok(), Some(3), "{delimiter}");
        }
    }

    /// Lines are those of the file, whatever lies before: empty lines, a header of two lines, records of two, other blocks.
    #[test]
    fn a_mistake_knows_its_line() {
        let record = "\"a\nb\",c\n\n";
        let n_records = 20_000;
        let text = format!("\n\"h\n1\",i\n{}bad\n", record.repeat(n_records));
        let mut with_header = blocks(text.as_bytes(), 64 << 10);
        with_header.header().unwrap();
        let mut found = Vec::new();
        for block in with_header {
            let block = block.unwrap();
            found.extend(block.records(2).err().map(|flaw| block.mistake(flaw)));
        }
        assert!(
            matches!(found[..], [Mistake { line, flaw: Flaw::Fields { found: 1, .. } }] if line == 4 + 3 * n_records),
            "{found:?}"
        );
        let block = Block { n_lines_before: 10, ..Block::of(b"a,b\n\nc,\"\n\xff\"\n") };
        assert_eq!(block.mistake(Flaw::NotText).line, 14);
        let value = |record| Flaw::Value { record, place: 0, value: String::new() };
        assert_eq!([0, 1].map(|record| block.mistake(value(record)).line), [11, 13]);
        let mut open = blocks(b"h,i\n1,2\n\"x,2\n3,4\n", 1 << 20);
        open.header().unwrap();
        assert!(open.next().unwrap().is_ok());
        assert!(matches!(open.next(), Some(Err(Mistake { line: 3, flaw: Flaw::Open }))));
    }

    proptest! {
        /// Whatever the bytes and the delimiter, reading ends, and does not panic.
        #[test]
        fn any_bytes_end(
            delimiter in prop::option::of(prop::sample::select(Delimiter::ALL.to_vec())),
            size in 1_usize..80,
            bytes in prop::collection::vec(prop::sample::select(b"a,;\t|\"\n\r\xff".to_vec()), 0..60),
        ) {
            let mut blocks = Blocks::new(&bytes[..], delimiter, size);
            let _ = blocks.header();
            for block in blocks.take(100) {
                let Ok(block) = block else { break };
                for records in block.pieces(2).flatten() {
                    let _ = records.try_each(1, |_, field| if field.len() < 1000 { Ok(()) } else { Err(()) });
                }
            }
        }
    }
}
