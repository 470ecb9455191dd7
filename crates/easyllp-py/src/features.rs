//! Rows from Python: NumPy arrays, sparse matrices or tables.

use crate::work::pooled;
use arrow_array::ffi_stream::RecordBatchStreamReader;
use arrow_array::{Array, RecordBatch};
use arrow_pyarrow::FromPyArrow;
use easyllp::datasets::{self, Dataset, Labelled};
use easyllp::table::{
    Column, ColumnEncoder, ColumnEncoding, Encoder, EncoderOptions, HashedText, Kind, Table, Unfamiliar,
};
use easyllp::{Error, Rows, rows::Csr};
use ndarray::{ArrayView1, ArrayView2};
use numpy::{IntoPyArray, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Rows from Python.
pub(crate) enum Features<'py> {
    /// Borrowed without a copy.
    Array(PyReadonlyArray2<'py, f32>),
    /// A CSR matrix: number of columns, row starts, columns and values; columns and values are
    /// borrowed.
    Sparse(usize, PyReadonlyArray1<'py, i64>, PyReadonlyArray1<'py, u32>, PyReadonlyArray1<'py, f32>),
    /// Named columns as Arrow batches.
    Batches(Vec<RecordBatch>),
    /// Columns with names.
    Table(Table),
}

impl<'a, 'py> FromPyObject<'a, 'py> for Features<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(array) = object.extract::<PyReadonlyArray2<f32>>() {
            return Ok(Self::Array(array));
        }
        if let Ok((n_columns, starts, columns, values)) = object.extract() {
            return Ok(Self::Sparse(n_columns, starts, columns, values));
        }
        if object.hasattr("__arrow_c_stream__")? {
            let reader = RecordBatchStreamReader::from_pyarrow_bound(&object)?;
            let batches = reader.collect::<Result<Vec<_>, _>>();
            let batches = batches.map_err(|error| PyValueError::new_err(error.to_string()))?;
            return Ok(Self::Batches(batches));
        }
        let Ok(columns) = object.cast::<PyList>() else {
            return Err(PyTypeError::new_err(
                "rows must be a float32 array, a sparse matrix, a table or a list of columns",
            ));
        };
        let columns = columns.iter().map(|column| {
            let (name, values): (String, Bound<PyAny>) = column.extract()?;
            Ok((name, self::column(&values)?))
        });
        let columns = columns.collect::<PyResult<_>>()?;
        pooled(object.py(), || Table::new(columns)).map(Self::Table)
    }
}

/// Numbers, or text.
fn column(values: &Bound<PyAny>) -> PyResult<Column> {
    if let Ok(numbers) = values.extract::<PyReadonlyArray1<f64>>() {
        return Ok(Column::Numeric(numbers.as_array().to_vec()));
    }
    let mut text = HashedText::default();
    let cells: Vec<Option<String>> = values.extract()?;
    text.extend(cells.iter().map(|cell| cell.as_deref().unwrap_or_default()));
    Ok(Column::Hashed(text))
}

/// The name of the column of an array in a model file.
const ARRAY: &str = "x";

impl Features<'_> {
    /// Rows that can be used without Python's lock.
    pub(crate) fn lent(&self) -> Lent<'_> {
        match self {
            Self::Array(array) => Lent::Array(array.as_array()),
            Self::Sparse(n_columns, starts, columns, values) => Lent::Sparse {
                n_columns: *n_columns,
                starts: starts.as_array(),
                columns: columns.as_array(),
                values: values.as_array(),
            },
            Self::Batches(batches) => Lent::Batches(batches),
            Self::Table(table) => Lent::Table(table),
        }
    }
}

/// Rows borrowed from Python.
#[derive(Clone, Copy)]
pub(crate) enum Lent<'l> {
    Array(ArrayView2<'l, f32>),
    Sparse {
        n_columns: usize,
        starts: ArrayView1<'l, i64>,
        columns: ArrayView1<'l, u32>,
        values: ArrayView1<'l, f32>,
    },
    Batches(&'l [RecordBatch]),
    Table(&'l Table),
}

impl<'l> Lent<'l> {
    /// An encoder for these rows, and the encoded rows.
    pub(crate) fn encoded(self, options: EncoderOptions) -> Result<(Encoder, Rows<'l>), Error> {
        let of = |table: &Table| {
            let encoder = Encoder::fit(table, options)?;
            let rows = encoder.encode(table)?;
            Ok((encoder, rows))
        };
        let n_columns = match self {
            Self::Batches(batches) => return of(&Table::from_batches(batches, &BTreeMap::new())?),
            Self::Table(table) => return of(table),
            Self::Array(array) => array.ncols(),
            Self::Sparse { n_columns, .. } => n_columns,
        };
        let encoder = Encoder::as_is(ARRAY, n_columns);
        let rows = self.new_rows(&encoder)?.0;
        Ok((encoder, rows))
    }

    /// The encoded rows of new data, with their unfamiliar values; an array that is not changed is borrowed.
    pub(crate) fn new_rows(self, encoder: &Encoder) -> Result<(Rows<'l>, Unfamiliar), Error> {
        let new = |table: &Table| Ok((encoder.encode(table)?, encoder.unfamiliar(table)));
        let array = match self {
            Self::Table(table) => return new(table),
            Self::Batches(batches) => {
                encoder.check_kinds(kinds(batches))?;
                return new(&Table::from_batches(batches, &encoder.read_as())?);
            }
            Self::Sparse { n_columns, starts, columns, values } => {
                let has_own_encoding = !matches!(
                    encoder.columns(),
                    [ColumnEncoder { encoding: ColumnEncoding::AsIs { .. }, .. }]
                );
                if has_own_encoding {
                    return Err(Error::SparseRows { what: "a model that encodes the columns of a table" });
                }
                // A negative start is larger than any number of numbers, and refused as such.
                let starts = starts.iter().map(|&start| usize::try_from(start).unwrap_or(usize::MAX));
                let matrix = Csr::new(n_columns, starts.collect(), cow(columns), cow(values))?;
                return Ok((Rows::sparse(matrix), Unfamiliar::default()));
            }
            Self::Array(array) => array,
        };
        match encoder.columns() {
            [ColumnEncoder { encoding: ColumnEncoding::AsIs { width }, .. }] if array.ncols() == *width => {
                Ok((Rows::dense(array)?, Unfamiliar::default()))
            }
            // One column of lists, which says what is wrong if there is something.
            columns => {
                let name = columns.first().map(|column| column.name.clone()).unwrap_or_default();
                new(&Table::new(vec![(name, Column::Vector(array.to_owned()))])?)
            }
        }
    }
}

/// The kinds of the columns of batches, except for empty ones.
fn kinds(batches: &[RecordBatch]) -> Vec<(&str, Kind)> {
    let Some(first) = batches.first() else { return Vec::new() };
    let is_there =
        |place: usize| batches.iter().any(|batch| batch.column(place).null_count() < batch.num_rows());
    let fields = first.schema_ref().fields().iter().enumerate();
    let fields = fields.filter(|(place, _)| is_there(*place));
    fields.filter_map(|(_, field)| Some((field.name().as_str(), Kind::of(field.data_type())?))).collect()
}

/// A contiguous array of numbers, borrowed.
fn cow<T: Clone>(numbers: ArrayView1<'_, T>) -> Cow<'_, [T]> {
    numbers.to_slice().map_or_else(|| numbers.to_vec().into(), Cow::Borrowed)
}

/// How the rows of an array are read: borrowed.
#[pyfunction]
pub(crate) fn address(py: Python, array: PyReadonlyArray2<f32>) -> PyResult<usize> {
    let lent = Lent::Array(array.as_array());
    pooled(py, || {
        let (_, rows) = lent.encoded(EncoderOptions::default())?;
        Ok(rows.dense_only("an address")?.all().dense.as_ptr().addr())
    })
}

/// An embedded data set: for each part its columns by name (numbers, or dictionary-encoded text)
/// and its labels.
#[pyfunction]
pub(crate) fn dataset<'py>(
    py: Python<'py>,
    name: &str,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>, Vec<&'static str>)> {
    let read: fn() -> easyllp::Result<Dataset> = match name {
        "adult" => datasets::adult,
        "optdigits" => datasets::optdigits,
        _ => {
            return Err(PyValueError::new_err(format!(
                "unknown data set `{name}`: choose one of adult, optdigits"
            )));
        }
    };
    let found = pooled(py, read)?;
    let part = |part: Labelled| -> PyResult<Bound<'py, PyAny>> {
        let columns = PyDict::new(py);
        for (name, column) in part.table.columns() {
            match column {
                Column::Numeric(numbers) => columns.set_item(name, numbers.clone().into_pyarray(py))?,
                Column::Vector(lists) => columns.set_item(name, lists.clone().into_pyarray(py))?,
                Column::Categorical { dictionary, codes } => {
                    columns.set_item(name, (dictionary.clone(), codes.clone().into_pyarray(py)))?;
                }
                Column::Hashed(_) => unreachable!("embedded text is kept in full"),
            }
        }
        Ok((columns, part.labels.into_pyarray(py)).into_pyobject(py)?.into_any())
    };
    Ok((part(found.train)?, part(found.test)?, found.classes))
}
