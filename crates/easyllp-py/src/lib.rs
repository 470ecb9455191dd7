//! The compiled part of the Python package `easyllp`: module `easyllp._easyllp`, private to it.
//!
//! Python checks the shapes of arrays; errors of the library become a `ValueError`. Nothing is
//! printed except requested progress, and long work runs without Python's lock.

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

    /// An invalid `EASYLLP_VECTORS` is reported on first use.
    #[pymodule_init]
    fn check_environment(_: &Bound<'_, PyModule>) -> PyResult<()> {
        easyllp::train::Vectors::chosen().map(drop).map_err(failure)
    }
}
