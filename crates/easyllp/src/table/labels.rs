//! Row labels out of a column, for experiments and to look at the truth.

use super::Column;
use crate::error::{Error, Result};

/// Labels and the names of their classes.
#[derive(Debug, Clone, PartialEq)]
pub struct Labels {
    /// One class a row, counted from 0.
    pub labels: Vec<u32>,
    /// The names of the classes, in order.
    pub classes: Vec<String>,
}

/// Reads labels. With `positive` values given, those are class 1 and all others class 0; a column of 0 and 1 needs none.
/// Any other column has a class for each of its values, in their order.
pub fn labels(name: &str, column: &Column, positive: &[String]) -> Result<Labels> {
    let values = text(name, column)?;
    if !positive.is_empty() {
        if let Some(missing) = positive.iter().find(|value| !values.iter().any(|found| found == *value)) {
            return Err(Error::LabelMissing { column: name.into(), value: missing.clone() });
        }
        let labels = values.iter().map(|value| u32::from(positive.contains(value))).collect();
        return Ok(Labels { labels, classes: vec!["rest".into(), positive.join("|")] });
    }
    let mut classes: Vec<String> = values.clone();
    classes.sort_unstable_by(|a, b| match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(a), Ok(b)) => a.total_cmp(&b),
        _ => a.cmp(b),
    });
    classes.dedup();
    if classes.iter().all(|class| class == "0" || class == "1") {
        classes = vec!["0".into(), "1".into()];
    }
    if classes.len() < 2 {
        return Err(Error::TooFewClasses { n_classes: classes.len() });
    }
    let place =
        |value: &String| classes.iter().position(|class| class == value).expect("every value is a class");
    let labels = values.iter().map(|value| u32::try_from(place(value)).expect("few classes")).collect();
    Ok(Labels { labels, classes })
}

fn text(name: &str, column: &Column) -> Result<Vec<String>> {
    match column {
        Column::Categorical { dictionary, codes } => {
            Ok(codes.iter().map(|&code| dictionary[code as usize].clone()).collect())
        }
        Column::Numeric(values) => {
            if let Some(row) = values.iter().position(|value| value.is_nan()) {
                return Err(Error::NoLabel { column: name.into(), row });
            }
            Ok(values.iter().map(f64::to_string).collect())
        }
        Column::Vector(_) | Column::Hashed(_) => {
            Err(Error::UnreadableColumn { column: name.into(), found: column.kind().into() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_and_ones_are_two_classes_and_words_need_a_positive() {
        let numbers = labels("y", &Column::Numeric(vec![0.0, 1.0, 1.0]), &[]).unwrap();
        assert_eq!(numbers, Labels { labels: vec![0, 1, 1], classes: vec!["0".into(), "1".into()] });
        let words = Column::categorical(["b", "a", "c"]);
        assert_eq!(labels("y", &words, &[]).unwrap().labels, [1, 0, 2]);
        assert_eq!(labels("y", &words, &["a".into(), "c".into()]).unwrap().labels, [0, 1, 1]);
        assert!(labels("y", &words, &["d".into()]).is_err());
        assert!(labels("y", &Column::Numeric(vec![2.0, 2.0]), &[]).is_err());
        assert!(labels("y", &Column::Numeric(vec![1.0, f64::NAN]), &[]).is_err());
    }
}
