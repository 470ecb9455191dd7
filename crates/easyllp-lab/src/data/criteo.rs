//! Criteo's Kaggle log (`train.txt`), from a copy that the user has: its licence does not let others pass it on.
//!
//! A line is a label, 13 counts and 26 categories of eight hex digits, apart by tabs; any but the label may be empty.

use crate::error::{Error, Result};
use easyllp::Rows;
use ndarray::Array2;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

const N_COUNTS: usize = 13;
const N_FIELDS: usize = 26;
/// Buckets that the values of a field are hashed to; the last is that of no value.
const N_BUCKETS: u32 = 1 << 16;
/// Lines that are read: the first to train on, the next to test on.
const N_TRAIN: usize = 1_000_000;
const N_TEST: usize = 200_000;
/// No line of the log is nearly as long.
const LONGEST: u64 = 4096;

/// Rows with their labels, to train on and to test on.
pub(super) fn read(folder: &Path) -> Result<[(Rows<'static>, Vec<u32>); 2]> {
    let path = folder.join("criteo/train.txt");
    let opened = File::open(&path).map_err(|_| Error::NoCriteo { path: path.clone() })?;
    parse(BufReader::with_capacity(1 << 20, opened), &path, [N_TRAIN, N_TEST])
}

fn parse(mut reader: impl BufRead, path: &Path, sizes: [usize; 2]) -> Result<[(Rows<'static>, Vec<u32>); 2]> {
    let mut line = String::new();
    let mut n_lines = 0;
    let mut part = |size: usize| {
        let mut counts: Vec<f32> = Vec::new();
        let mut buckets: Vec<u32> = Vec::new();
        let mut labels: Vec<u32> = Vec::new();
        while labels.len() < size {
            line.clear();
            let bad = |line: &str| Error::BadLine {
                path: path.into(),
                line: n_lines + 1,
                text: line.chars().take(60).collect(),
            };
            match reader.by_ref().take(LONGEST).read_line(&mut line) {
                Ok(0) => break,
                Ok(_) => {}
                Err(_) => return Err(bad("no text")),
            }
            add(&line, &mut labels, &mut counts, &mut buckets).ok_or_else(|| bad(&line))?;
            n_lines += 1;
        }
        if labels.is_empty() {
            return Err(Error::ShortCriteo { path: path.into(), lines: n_lines, needed: sizes[0] + 1 });
        }
        let shaped = "a line adds as many as there are columns";
        let counts = Array2::from_shape_vec((labels.len(), N_COUNTS), counts).expect(shaped);
        let buckets = Array2::from_shape_vec((labels.len(), N_FIELDS), buckets).expect(shaped);
        Ok((Rows::new(counts, buckets, vec![N_BUCKETS; N_FIELDS])?, labels))
    };
    Ok([part(sizes[0])?, part(sizes[1])?])
}

/// Adds what a line says; nothing if it is no line of the log.
fn add(line: &str, labels: &mut Vec<u32>, counts: &mut Vec<f32>, buckets: &mut Vec<u32>) -> Option<()> {
    let fields: Vec<&str> = line.trim_end_matches(['\n', '\r']).split('\t').collect();
    let [label, rest @ ..] = &fields[..] else { return None };
    if rest.len() != N_COUNTS + N_FIELDS || !matches!(*label, "0" | "1") {
        return None;
    }
    for count in &rest[..N_COUNTS] {
        // Counts reach from −3 to millions: their logarithms are features; where there is none, 0.
        let count: f32 = if count.is_empty() {
            0.0
        } else {
            count.parse().ok().filter(|count: &f32| count.is_finite())?
        };
        counts.push(count.signum() * count.abs().ln_1p());
    }
    for value in &rest[N_COUNTS..] {
        buckets.push(match value.len() {
            0 => N_BUCKETS - 1,
            // Hex digits are a hash already.
            1..=8 => u32::from_str_radix(value, 16).ok()? % (N_BUCKETS - 1),
            _ => return None,
        });
    }
    labels.push(u32::from(*label == "1"));
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(label: &str, count: &str, value: &str) -> String {
        let counts = vec![count; N_COUNTS].join("\t");
        let values = vec![value; N_FIELDS].join("\t");
        format!("{label}\t{counts}\t{values}\n")
    }

    #[test]
    fn lines_are_rows_in_two_parts() {
        let log = [line("1", "5", "68fd1e64"), line("0", "", ""), line("0", "-3", "ff"), line("1", "2", "1")]
            .concat();
        let [(train, train_labels), (test, test_labels)] =
            parse(log.as_bytes(), Path::new("t"), [2, 9]).unwrap();
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
            "1\t2\n".into(),
            "x".repeat(9000),
        ] {
            let text = good.clone() + &bad;
            let refused = parse(text.as_bytes(), Path::new("t"), [9, 9]).err().unwrap().to_string();
            assert!(refused.contains("line 2"), "{refused}");
        }
        // Too few lines for a test part, or for any.
        for (log, lines) in [(good.as_str(), 1), ("", 0)] {
            let refused = parse(log.as_bytes(), Path::new("t"), [9, 9]).err().unwrap().to_string();
            let expected =
                format!("t has {lines} lines, but at least 10 are needed: the first 9 to train on");
            assert!(refused.starts_with(&expected), "{refused}");
        }
    }
}
