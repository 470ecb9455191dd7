//! The settings of a fit and the list of methods, as JSON.

use crate::failure::failure;
use easyllp::{FitConfig, Method as _, MethodConfig};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::{Value, json};

/// The settings of a fit.
pub(crate) fn config(settings: &str) -> PyResult<FitConfig> {
    let value = serde_json::from_str(settings).map_err(refused)?;
    // Not from the text at once: a reader would not care to know in which column of it the mistake is.
    serde_json::from_value(value).map_err(refused)
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn refused(error: serde_json::Error) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// The setting that does not support sparse rows, if any.
#[pyfunction]
pub(crate) fn needs_dense_rows(settings: &str) -> PyResult<Option<&'static str>> {
    let config = config(settings)?;
    Ok(config.needs_dense_rows(&config.method))
}

/// The name of a method and, as JSON, its given parameters.
#[pyfunction]
pub(crate) fn method_in_words(words: &str) -> PyResult<(&str, String)> {
    let (name, parameters) = MethodConfig::name_and_parameters(words).map_err(failure)?;
    Ok((name, Value::Object(parameters).to_string()))
}

/// All methods, as JSON.
#[pyfunction]
pub(crate) fn methods() -> String {
    let of_method = |method: &MethodConfig| {
        let about = method.about();
        json!({
            "name": about.name,
            "summary": about.summary,
            "assumes": about.bags.as_str(),
            "supports": method.supports().as_str(),
            "classes": about.classes,
            "cost": about.cost,
            "reference": about.reference,
            "parameters": method.parameters(),
        })
    };
    MethodConfig::all().iter().map(of_method).collect::<Value>().to_string()
}
