//! Two small public data sets with row labels, embedded in the library.
//!
//! Both are from the UCI Machine Learning Repository, licensed under CC BY 4.0; `data/README.md`
//! names the authors. The files are the official ones, compressed.

use crate::error::{Cause, Error, Result};
use crate::table::{Column, Table};
use ndarray::Array2;
use ruzstd::decoding::StreamingDecoder;
use std::io::Read;

/// A table with the true label of each row.
#[derive(Debug, Clone, PartialEq)]
pub struct Labelled {
    /// The features.
    pub table: Table,
    /// Class indices, from 0.
    pub labels: Vec<u32>,
}

/// A data set with its official split.
#[derive(Debug, Clone, PartialEq)]
pub struct Dataset {
    /// The name of each class.
    pub classes: Vec<&'static str>,
    /// The training part.
    pub train: Labelled,
    /// The test part.
    pub test: Labelled,
}

/// 5,620 handwritten digits of 8 × 8 pixels, each 0 to 16 (Alpaydin & Kaynak 1998): 3,823 training
/// rows, 1,797 test rows. The pixels are one column of lists.
///
/// ```
/// let digits = easyllp::datasets::optdigits()?;
/// assert_eq!(digits.train.table.n_rows() + digits.test.table.n_rows(), 5620);
/// # Ok::<(), easyllp::Error>(())
/// ```
pub fn optdigits() -> Result<Dataset> {
    let read = |packed, n_rows| {
        let text = unpack("optdigits", packed)?;
        let lines = cells("optdigits", &text, n_rows, 65)?;
        let pixels = lines.iter().flat_map(|line| &line[..64]).map(|cell| number("optdigits", cell));
        let pixels =
            Array2::from_shape_vec((n_rows, 64), pixels.collect::<Result<_>>()?).expect("64 cells a line");
        let table = Table::new(vec![("pixels".into(), Column::Vector(pixels))])?;
        let labels = lines.iter().map(|line| number("optdigits", line[64])).collect::<Result<_>>()?;
        Ok(Labelled { table, labels })
    };
    Ok(Dataset {
        classes: vec!["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"],
        train: read(include_bytes!("../data/optdigits.tra.zst"), 3823)?,
        test: read(include_bytes!("../data/optdigits.tes.zst"), 1797)?,
    })
}

/// 48,842 people of the 1994 census (Becker & Kohavi 1996), and whether each earns over $50,000:
/// 32,561 training rows, 16,281 test rows. Six columns are numeric and eight categorical; `?` is a
/// category.
pub fn adult() -> Result<Dataset> {
    const COLUMNS: [&str; 14] = [
        "age",
        "workclass",
        "fnlwgt",
        "education",
        "education-num",
        "marital-status",
        "occupation",
        "relationship",
        "race",
        "sex",
        "capital-gain",
        "capital-loss",
        "hours-per-week",
        "native-country",
    ];
    const NUMERIC: [&str; 6] =
        ["age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"];
    let read = |packed, n_rows| {
        let text = unpack("adult", packed)?;
        let lines = cells("adult", &text, n_rows, 15)?;
        let columns = COLUMNS.iter().enumerate().map(|(place, &name)| {
            let column = if NUMERIC.contains(&name) {
                Column::Numeric(numbers("adult", &lines, place)?)
            } else {
                Column::categorical(lines.iter().map(|line| line[place]))
            };
            Ok((name.to_owned(), column))
        });
        let table = Table::new(columns.collect::<Result<_>>()?)?;
        // Labels of the test file end in a full stop.
        let labels = lines.iter().map(|line| match line[14].trim_end_matches('.') {
            "<=50K" => Ok(0),
            ">50K" => Ok(1),
            other => Err(damaged("adult", format!("label `{other}`"))),
        });
        Ok(Labelled { labels: labels.collect::<Result<_>>()?, table })
    };
    Ok(Dataset {
        classes: vec!["<=50K", ">50K"],
        train: read(include_bytes!("../data/adult.data.zst"), 32561)?,
        test: read(include_bytes!("../data/adult.test.zst"), 16281)?,
    })
}

fn damaged(dataset: &'static str, source: impl Into<Cause>) -> Error {
    Error::DamagedData { dataset, source: source.into() }
}

fn unpack(dataset: &'static str, packed: &[u8]) -> Result<String> {
    let mut text = String::new();
    let mut decoder = StreamingDecoder::new(packed).map_err(|error| damaged(dataset, error))?;
    decoder.read_to_string(&mut text).map_err(|error| damaged(dataset, error))?;
    Ok(text)
}

/// The fields of all lines, except empty lines and the comment (`|…`) at the top of Adult's test
/// file.
fn cells<'t>(
    dataset: &'static str,
    text: &'t str,
    n_lines: usize,
    n_cells: usize,
) -> Result<Vec<Vec<&'t str>>> {
    let lines: Vec<Vec<&str>> = text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('|'))
        .map(|line| line.split(',').map(str::trim).collect())
        .collect();
    if lines.len() != n_lines {
        return Err(damaged(dataset, format!("{} lines, not {n_lines}", lines.len())));
    }
    match lines.iter().position(|line| line.len() != n_cells) {
        Some(line) => {
            Err(damaged(dataset, format!("{} cells in line {line}, not {n_cells}", lines[line].len())))
        }
        None => Ok(lines),
    }
}

fn numbers(dataset: &'static str, lines: &[Vec<&str>], place: usize) -> Result<Vec<f64>> {
    lines.iter().map(|line| number(dataset, line[place])).collect()
}

fn number<T: std::str::FromStr>(dataset: &'static str, cell: &str) -> Result<T> {
    cell.parse().map_err(|_| damaged(dataset, format!("`{cell}` is not a number")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn optdigits_is_whole() {
        let digits = optdigits().unwrap();
        // Class sizes as the repository's own description states them.
        let of_class = |part: &Labelled, class| part.labels.iter().filter(|&&label| label == class).count();
        let train: Vec<usize> = (0..10).map(|class| of_class(&digits.train, class)).collect();
        let test: Vec<usize> = (0..10).map(|class| of_class(&digits.test, class)).collect();
        assert_eq!(train, [376, 389, 380, 389, 387, 376, 377, 387, 380, 382]);
        assert_eq!(test, [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]);
        let Column::Vector(pixels) = digits.train.table.column("pixels").unwrap() else {
            panic!("no list of pixels")
        };
        assert!(pixels.iter().all(|value| (0.0..=16.0).contains(value)));
        assert!((pixels[[0, 3]] - 15.0).abs() < 1e-6); // the first line begins 0,1,6,15
    }

    #[test]
    fn adult_is_whole_and_keeps_its_categories() {
        let adult = adult().unwrap();
        assert_eq!((adult.train.labels.len(), adult.test.labels.len()), (32561, 16281));
        let rich = |part: &Labelled| part.labels.iter().sum::<u32>();
        assert_eq!((rich(&adult.train), rich(&adult.test)), (7841, 3846));
        let Column::Categorical { dictionary, codes } = adult.train.table.column("education").unwrap() else {
            panic!("education is not categorical")
        };
        assert_eq!(dictionary.len(), 16);
        assert_eq!(dictionary[codes[0] as usize], "Bachelors");
        let n_numeric =
            adult.test.table.columns().iter().filter(|(_, c)| matches!(c, Column::Numeric(_))).count();
        assert_eq!(n_numeric, 6);
    }

    #[test]
    fn damage_is_told() {
        assert!(matches!(unpack("adult", b"no zstd"), Err(Error::DamagedData { dataset: "adult", .. })));
        assert!(cells("adult", "1,2\n3", 2, 2).is_err());
        assert!(cells("adult", "1,2", 2, 2).is_err());
    }
}
