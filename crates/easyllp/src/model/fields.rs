//! The categorical fields of a model; their categories are lines of one table, field after field.

use crate::error::{Error, Result, check_length};
use crate::rows::Rows;
use ndarray::ArrayView1;

/// The number of categories of each field, and the first line of each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fields {
    pub(crate) cardinalities: Vec<u32>,
    starts: Vec<u32>,
    n_lines: u32,
}

impl Fields {
    pub(crate) fn new(cardinalities: &[u32]) -> Result<Self> {
        let mut starts = Vec::with_capacity(cardinalities.len());
        let mut n_lines = 0_u32;
        for &cardinality in cardinalities {
            starts.push(n_lines);
            n_lines = n_lines.checked_add(cardinality).ok_or_else(|| Error::Setting {
                name: "number of categories in all fields",
                value: format!("more than {}", u32::MAX),
                expected: "one that fits in 32 bits",
            })?;
        }
        Ok(Self { cardinalities: cardinalities.to_vec(), starts, n_lines })
    }

    /// The number of fields.
    pub(crate) fn len(&self) -> usize {
        self.starts.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// The number of lines of all fields together.
    pub(crate) fn n_lines(&self) -> usize {
        self.n_lines as usize
    }

    /// The lines of one field.
    pub(crate) fn range(&self, field: usize) -> std::ops::Range<usize> {
        let start = self.starts[field] as usize;
        start..start + self.cardinalities[field] as usize
    }

    /// The lines of a row, one per field.
    pub(crate) fn lines<'f>(&'f self, ids: ArrayView1<'f, u32>) -> impl Iterator<Item = u32> + 'f {
        self.starts.iter().zip(ids).map(|(start, id)| start + id)
    }

    /// Checks that rows have fields if the model does.
    pub(crate) fn check_none(&self) -> Result<()> {
        check_length("categorical fields", self.len(), 0)
    }

    /// Checks that rows have the same fields.
    pub(crate) fn check(&self, rows: &Rows) -> Result<()> {
        check_length("categorical fields", self.len(), rows.n_fields())?;
        let mut fields = self.cardinalities.iter().zip(rows.cardinalities()).enumerate();
        match fields.find(|(_, (expected, got))| expected != got) {
            Some((field, (&expected, &got))) => Err(Error::Cardinality { field, expected, got }),
            None => Ok(()),
        }
    }
}
