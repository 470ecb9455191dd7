//! Convert errors of the library to Python exceptions.

use easyllp::Error;
use pyo3::PyErr;
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PyValueError};

/// File errors become `OSError`, all others `ValueError` with the library's message.
pub(crate) fn failure(error: Error) -> PyErr {
    match error {
        Error::CannotRead { .. } | Error::CannotWrite { .. } => PyOSError::new_err(error.to_string()),
        Error::Interrupted => PyKeyboardInterrupt::new_err(()),
        _ => PyValueError::new_err(error.to_string()),
    }
}
