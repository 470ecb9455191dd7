//! What the library refuses, as Python's exceptions.

use easyllp::Error;
use pyo3::PyErr;
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PyValueError};

/// Files that cannot be read or written are `OSError`s, all else is a `ValueError` in the library's words, with the parameters to look
/// at, for which it has no names.
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
