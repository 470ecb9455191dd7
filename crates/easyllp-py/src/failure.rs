//! Convert errors of the library to Python exceptions.

use easyllp::Error;
use pyo3::PyErr;
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PyValueError};

/// File errors become `OSError`, all others `ValueError` with the library's message and the parameters to check.
pub(crate) fn failure(error: Error) -> PyErr {
    let parameters = match error {
        Error::CannotRead { .. } | Error::CannotWrite { .. } => return PyOSError::new_err(error.in_full()),
        Error::Interrupted => return PyKeyboardInterrupt::new_err(()),
        Error::Diverged { .. } => " (see `lr` and `l2`)",
        Error::OnnxHash { .. } => " (see `max_vocabulary`)",
        Error::TooFewHeldOut { .. } => " (see `holdout`)",
        _ => "",
    };
    PyValueError::new_err(format!("{}{parameters}", error.in_full()))
}
