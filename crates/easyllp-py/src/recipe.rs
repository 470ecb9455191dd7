//! Settings of an estimator, by name, as a recipe.

use crate::bags::prior;
use crate::failure::failure;
use easyllp::recipe::{Choices, Penalty};
use easyllp::{LossName, MethodName, Recipe};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::num::NonZeroUsize;
use std::str::FromStr;

/// The names of all methods.
#[pyfunction]
pub(crate) fn methods() -> Vec<&'static str> {
    MethodName::ALL.iter().map(|method| method.as_str()).collect()
}

/// What of the settings does not support sparse rows, if anything.
#[pyfunction]
pub(crate) fn needs_dense_rows(settings: &Bound<PyDict>) -> PyResult<Option<&'static str>> {
    Ok(recipe(settings)?.needs_dense_rows())
}

/// The settings of a dictionary; each is of the type that its name says, or None where it may be left open.
struct Settings<'s, 'py>(&'s Bound<'py, PyDict>);

impl<'py> Settings<'_, 'py> {
    fn value(&self, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.0.get_item(name)?.filter(|value| !value.is_none()))
    }

    fn get<T>(&self, name: &str, expected: &str) -> PyResult<Option<T>>
    where
        T: for<'a> FromPyObject<'a, 'py>,
    {
        let Some(value) = self.value(name)? else { return Ok(None) };
        let wrong = || {
            let shown = value.repr().map_or_else(|_| "?".into(), |text| text.to_string());
            PyTypeError::new_err(format!("{name} is {shown}: it must be {expected}"))
        };
        value.extract().map(Some).map_err(|_| wrong())
    }

    fn count(&self, name: &str) -> PyResult<Option<NonZeroUsize>> {
        let expected = "a whole number of at least 1";
        let Some(count) = self.get::<i64>(name, expected)? else { return Ok(None) };
        let whole = usize::try_from(count).ok().and_then(NonZeroUsize::new);
        whole
            .map(Some)
            .ok_or_else(|| PyValueError::new_err(format!("{name} is {count}: it must be {expected}")))
    }

    fn number(&self, name: &str, expected: &str, is_right: impl Fn(f64) -> bool) -> PyResult<Option<f64>> {
        let Some(number) = self.get::<f64>(name, expected)? else { return Ok(None) };
        if is_right(number) {
            Ok(Some(number))
        } else {
            Err(PyValueError::new_err(format!("{name} is {number}: it must be {expected}")))
        }
    }

    fn positive(&self, name: &str) -> PyResult<Option<f64>> {
        self.number(name, "a number above 0", |number| number > 0.0 && number.is_finite())
    }

    fn named<T: FromStr<Err = easyllp::Error>>(&self, name: &str) -> PyResult<Option<T>> {
        let Some(text) = self.get::<String>(name, "text")? else { return Ok(None) };
        text.parse().map(Some).map_err(failure)
    }

    fn penalty(&self) -> PyResult<Option<Penalty>> {
        let expected = "\"auto\" or a number of at least 0";
        let Some(value) = self.value("l2")? else { return Ok(None) };
        if value.extract::<&str>().is_ok_and(|text| text == "auto") {
            return Ok(Some(Penalty::Auto));
        }
        let l2 = self.number("l2", expected, |number| number >= 0.0 && number.is_finite())?;
        Ok(l2.map(Penalty::Value))
    }
}

/// The recipe that the settings say.
pub(crate) fn recipe(settings: &Bound<PyDict>) -> PyResult<Recipe> {
    let given = Settings(settings);
    let usual = Recipe::default();
    let shares = given.get::<Vec<f64>>("prior", "the share of the positive class, or one share a class")?;
    let is_share = |share| (0.0..1.0).contains(&share);
    let loss = match given.named("loss")? {
        Some(LossName::ZeroOne | LossName::Hinge) => {
            return Err(PyValueError::new_err("choose logistic, softmax or squared as loss"));
        }
        loss => loss,
    };
    let recipe = Recipe {
        method: given.named("method")?.unwrap_or_default(),
        choices: Choices {
            prior: shares.map(|shares| prior(&shares)).transpose()?,
            bag_weights: given.named("bag_weights")?,
            targets: given.named("targets")?,
            batches: given.named("batches")?,
            rebag: given.count("rebag")?,
            domain: given.named("domain")?,
            steps: given.named("steps")?,
            iterate: given.named("iterate")?,
            epsilon: given.positive("epsilon")?,
            distance: given.named("distance")?,
            ridge: given.positive("ridge")?,
            smoothness: given.positive("smoothness")?,
            rounds: given.count("rounds")?,
        },
        model: given.named("model")?.unwrap_or_default(),
        loss,
        l2: given.penalty()?,
        epochs: given.count("epochs")?,
        lr: given.positive("lr")?,
        batch_size: given.count("batch_size")?,
        holdout: given.number("holdout", "a number from 0 to below 1", is_share)?.unwrap_or(usual.holdout),
        stop_by: given.named("stop_by")?.unwrap_or_default(),
        patience: given.count("patience")?.unwrap_or(usual.patience),
        smoothing: given.count("smoothing")?.unwrap_or(usual.smoothing),
        seed: given.get("seed", "a whole number of at least 0")?.unwrap_or(usual.seed),
    };
    Ok(recipe)
}
