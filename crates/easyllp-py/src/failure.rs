//! What the library refuses, as Python's exceptions.

use easyllp::Error;
use pyo3::PyErr;
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PyValueError};

/// Files that cannot be read or written are `OSError`s, all else is a `ValueError` in the library's words.
pub(crate) fn failure(error: Error) -> PyErr {
    match error {
        Error::CannotRead { .. } | Error::CannotWrite { .. } => PyOSError::new_err(error.to_string()),
        Error::Interrupted => PyKeyboardInterrupt::new_err(()),
        _ => PyValueError::new_err(error.to_string()),
    }
}
