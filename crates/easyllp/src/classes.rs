//! Classes, labels, and the columns in which scores and targets of classes stand.
//!
//! A task of two classes has one column, of class 1; a task of C > 2 classes has C.

use crate::error::{Error, Result};
use std::ops::Range;

/// How many score and target columns a task has: one for two classes, else one a class.
pub fn n_columns(n_classes: usize) -> usize {
    columns(n_classes).len()
}

/// The inverse: the number of classes that so many columns stand for.
pub fn n_classes(n_columns: usize) -> usize {
    if n_columns == 1 { 2 } else { n_columns }
}

/// The classes that have a column, in the order of the columns.
pub(crate) fn columns(n_classes: usize) -> Range<usize> {
    if n_classes == 2 { 1..2 } else { 0..n_classes }
}

/// More classes than any report has: what a forged or mistaken number is caught by.
const MOST_CLASSES: usize = 1 << 16;

/// Refuses a task of less than two classes, or of an absurd number.
pub(crate) fn check_classes(n_classes: usize) -> Result<()> {
    match n_classes {
        0 | 1 => Err(Error::TooFewClasses { n_classes }),
        2..=MOST_CLASSES => Ok(()),
        _ => Err(Error::TooManyClasses { n_classes, limit: MOST_CLASSES }),
    }
}

/// Refuses labels that are not below the number of classes.
pub(crate) fn check_labels(labels: &[u32], n_classes: usize) -> Result<()> {
    check_classes(n_classes)?;
    match labels.iter().position(|&label| label as usize >= n_classes) {
        Some(row) => Err(Error::LabelOutOfRange { row, label: labels[row], n_classes }),
        None => Ok(()),
    }
}
