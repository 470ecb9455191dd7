//! Criteo's Kaggle log (`train.txt`), from the user's own copy: its licence does not allow
//! redistribution.
//!
//! A line has no header and is tab-separated: a label, 13 counts and 26 categories of eight hex
//! digits. Any field but the label may be empty.

use crate::error::{Error, Result};
use easyllp::Rows;
use easyllp::table::{Column, CsvOptions, Delimiter, ReadAs, Source, Table};
use ndarray::Array2;
use std::path::Path;

const N_COUNTS: usize = 13;
const N_FIELDS: usize = 26;
/// The number of hash buckets per field; the last is for missing values.
const N_BUCKETS: u32 = 1 << 16;
/// The number of lines to read: training rows first, then test rows.
const N_TRAIN: usize = 1_000_000;
const N_TEST: usize = 200_000;

/// Training and test rows with their labels.
pub(super) fn read(folder: &Path) -> Result<[(Rows<'static>, Vec<u32>); 2]> {
    let path = folder.join("criteo/train.txt");
    if !path.is_file() {
        return Err(Error::NoCriteo { path });
    }
    read_parts(&path, [N_TRAIN, N_TEST])
}

fn read_parts(path: &Path, [n_train, n_test]: [usize; 2]) -> Result<[(Rows<'static>, Vec<u32>); 2]> {
    let names: Vec<String> = (0..=N_COUNTS + N_FIELDS).map(|place| place.to_string()).collect();
    // Counts, too: what they may be is checked here.
    let as_text = names.iter().map(|name| (name.clone(), ReadAs::Text)).collect();
    let csv = CsvOptions { delimiter: Some(Delimiter::Tab), names: names.clone() };
    let source =
        Source::open_with(&[path.display().to_string()], as_text, csv)?.first(n_train.saturating_add(n_test));
    let mut log = Log::default();
    for batch in source.batches(&names) {
        let table = source.table(&batch?, &names)?;
        let n_before = log.labels.len();
        log.add(&table).map_err(|(row, text)| Error::BadLine {
            path: path.into(),
            line: n_before + row + 1,
            text: text.chars().take(60).collect(),
        })?;
    }
    let lines = log.labels.len();
    if lines <= n_train {
        return Err(Error::ShortCriteo { path: path.into(), lines, needed: n_train + 1 });
    }
    let test = log.split_off(n_train);
    Ok([log.into_rows()?, test.into_rows()?])
}

/// Lines of the log, by row.
#[derive(Default)]
struct Log {
    labels: Vec<u32>,
    counts: Vec<f32>,
    buckets: Vec<u32>,
}

impl Log {
    /// Adds rows. The error names the row index and the invalid text.
    fn add(&mut self, table: &Table) -> Result<(), (usize, String)> {
        let (labels, rest) = table.columns().split_first().expect("the label comes first");
        let (counts, fields) = rest.split_at(N_COUNTS);
        let n_before = self.labels.len();
        self.labels.resize(n_before + table.n_rows(), 0);
        fill(&mut self.labels[n_before..], &labels.1, label)?;
        self.counts.resize((n_before + table.n_rows()) * N_COUNTS, 0.0);
        for (place, (_, column)) in counts.iter().enumerate() {
            let cells = self.counts[n_before * N_COUNTS..].iter_mut().skip(place).step_by(N_COUNTS);
            fill(cells, column, count)?;
        }
        self.buckets.resize((n_before + table.n_rows()) * N_FIELDS, 0);
        for (place, (_, column)) in fields.iter().enumerate() {
            let cells = self.buckets[n_before * N_FIELDS..].iter_mut().skip(place).step_by(N_FIELDS);
            fill(cells, column, bucket)?;
        }
        Ok(())
    }

    fn split_off(&mut self, n_rows: usize) -> Self {
        Self {
            labels: self.labels.split_off(n_rows),
            counts: self.counts.split_off(n_rows * N_COUNTS),
            buckets: self.buckets.split_off(n_rows * N_FIELDS),
        }
    }

    fn into_rows(self) -> Result<(Rows<'static>, Vec<u32>)> {
        let shaped = "a row has as many cells as there are columns";
        let counts = Array2::from_shape_vec((self.labels.len(), N_COUNTS), self.counts).expect(shaped);
        let buckets = Array2::from_shape_vec((self.labels.len(), N_FIELDS), self.buckets).expect(shaped);
        Ok((Rows::new(counts, buckets, vec![N_BUCKETS; N_FIELDS])?, self.labels))
    }
}

/// Parses a column. Invalid text is returned with its row index.
fn fill<'c, T: Copy + 'c>(
    cells: impl IntoIterator<Item = &'c mut T>,
    column: &Column,
    meaning: impl Fn(&str) -> Option<T>,
) -> Result<(), (usize, String)> {
    let Column::Categorical { dictionary, codes } = column else { unreachable!("columns are read as text") };
    let meanings: Vec<Option<T>> = dictionary.iter().map(|text| meaning(text)).collect();
    for (row, (cell, &code)) in cells.into_iter().zip(codes).enumerate() {
        *cell = meanings[code as usize].ok_or_else(|| (row, dictionary[code as usize].clone()))?;
    }
    Ok(())
}

fn label(text: &str) -> Option<u32> {
    match text {
        "0" => Some(0),
        "1" => Some(1),
        _ => None,
    }
}

/// Counts range from −3 to millions: their logarithms are features; missing ones are 0.
fn count(text: &str) -> Option<f32> {
    let count =
        if text.is_empty() { 0.0 } else { text.parse().ok().filter(|count: &f32| count.is_finite())? };
    Some(count.signum() * count.abs().ln_1p())
}

fn bucket(text: &str) -> Option<u32> {
    match text.len() {
        0 => Some(N_BUCKETS - 1),
        // Hex digits are a hash already.
        1..=8 => Some(u32::from_str_radix(text, 16).ok()? % (N_BUCKETS - 1)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(label: &str, count: &str, value: &str) -> String {
        let counts = vec![count; N_COUNTS].join("\t");
        let values = vec![value; N_FIELDS].join("\t");
        format!("{label}\t{counts}\t{values}\n")
    }

    fn parse(log: &str, sizes: [usize; 2]) -> Result<[(Rows<'static>, Vec<u32>); 2]> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("train.txt");
        std::fs::write(&path, log).unwrap();
        read_parts(&path, sizes)
    }

    #[test]
    fn lines_are_rows_in_two_parts() {
        let log = [line("1", "5", "68fd1e64"), line("0", "", ""), line("0", "-3", "ff"), line("1", "2", "1")]
            .concat();
        let [(train, train_labels), (test, test_labels)] = parse(&log, [2, 9]).unwrap();
        assert_eq!((train_labels, test_labels), (vec![1, 0], vec![0, 1]));
        assert_eq!((train.n_rows(), train.n_dense(), train.n_fields()), (2, 13, 26));
        let batch = train.as_dense().unwrap().batch(0..2);
        assert!((batch.dense[[0, 3]] - 6_f32.ln()).abs() < 1e-6 && batch.dense[[1, 0]].abs() < 1e-12);
        assert_eq!((batch.categories[[0, 0]], batch.categories[[1, 25]]), (0x68fd_1e64 % 65_535, 65_535));
        assert!((test.as_dense().unwrap().batch(0..1).dense[[0, 0]] + 4_f32.ln()).abs() < 1e-6);
    }

    #[test]
    fn anything_else_is_told_with_its_line() {
        let good = line("1", "5", "68fd1e64");
        for bad in [
            line("2", "5", "ff"),
            line("1", "x", "ff"),
            line("1", "5", "xyz"),
            line("1", "inf", "f"),
            line("1", "NA", "f"),
            line("1", "1e39", "f"),
            line("1", "5", "123456789"),
            line("", "5", "f"),
            "1\t2\n".into(),
            "x".repeat(9000),
        ] {
            let refused = parse(&(good.clone() + &bad), [9, 9]).err().unwrap();
            let source = std::error::Error::source(&refused).map(ToString::to_string).unwrap_or_default();
            assert!(format!("{refused} {source}").contains("line 2"), "{refused:?}");
        }
        // Too few lines for a test part, or for any.
        for (log, lines) in [(good.as_str(), 1), ("", 0)] {
            let refused = parse(log, [9, 9]).err().unwrap().to_string();
            let expected =
                format!("train.txt has {lines} lines, but at least 10 are needed: the first 9 to train on");
            assert!(refused.contains(&expected), "{refused}");
        }
    }
}
