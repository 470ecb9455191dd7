//! The compiled part of the Python package `easyllp`: module `easyllp._easyllp`, private to it.
//!
//! Python hands over arrays that it has checked for shape; what the library refuses becomes a `ValueError`. Nothing here prints
//! but progress that was asked for, and long work runs without Python's lock.

mod bags;
mod config;
mod evaluation;
mod failure;
mod features;
mod model;
mod work;

use pyo3::pymodule;

#[pymodule]
mod _easyllp {
    use super::failure::failure;
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::bags::{deal, soft_targets};
    #[pymodule_export]
    use super::config::{method_in_words, methods, needs_dense_rows};
    #[pymodule_export]
    use super::evaluation::{diagnose, evaluate, metric};
    #[pymodule_export]
    use super::features::{address, dataset};
    #[pymodule_export]
    use super::model::Model;
    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "the name that Python has for it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_export]
    const LEAST_PROBABILITY: f64 = easyllp::loss::LEAST_PROBABILITY;

    /// A wrong `EASYLLP_VECTORS` is a mistake in the environment, reported where it first matters.
    #[pymodule_init]
    fn check_environment(_: &Bound<'_, PyModule>) -> PyResult<()> {
        easyllp::train::Vectors::chosen().map(drop).map_err(failure)
    }
}
