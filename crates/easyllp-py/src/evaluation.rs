//! Estimates from bags, and the diagnosis of bags, as JSON that Python parses.

use crate::bags::bags;
use crate::failure::failure;
use crate::features::Features;
use crate::work::pooled;
use easyllp::diagnose::{
    Feature, Randomness, UNEVEN_LEVEL, equivalent_rows, prior_interval, randomness, uneven_features,
};
use easyllp::estimate::Intervals;
use easyllp::table::EncoderOptions;
use easyllp::{Estimate, Estimator, Predictions, Result, estimate::Scope, loss::Link};
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::{Value, json};

fn link(name: &str) -> PyResult<Link> {
    match name {
        "logit" => Ok(Link::Logit),
        "identity" => Ok(Link::Identity),
        _ => Err(PyValueError::new_err(format!("unknown link `{name}`: choose one of logit, identity"))),
    }
}

/// Metrics by names that are Python's, in their order.
pub(crate) fn named(metrics: Vec<(&'static str, Estimate)>) -> Vec<(String, Estimate)> {
    metrics.into_iter().map(|(name, estimate)| (name.to_lowercase().replace(' ', "_"), estimate)).collect()
}

/// All metrics of scores, with curves if there are two classes and none is empty.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "keywords of a private function")]
pub(crate) fn evaluate(
    py: Python,
    scores: PyReadonlyArray2<f32>,
    link_name: &str,
    of_row: PyReadonlyArray1<u32>,
    counts: PyReadonlyArray2<f64>,
    noise: Option<(String, Vec<f64>)>,
    level: f64,
    is_of_population: bool,
    bootstrap: Option<(usize, u64)>,
    with_curves: bool,
) -> PyResult<String> {
    /// Points of a curve, and groups of rows.
    const POINTS: usize = 100;
    const GROUPS: usize = 10;
    let link = link(link_name)?;
    let bags = bags(&of_row, &counts, noise)?;
    let scores = scores.as_array();
    let found = pooled(py, || -> Result<Value> {
        let predictions = Predictions::new(scores, link)?;
        let intervals = match bootstrap {
            Some((draws, seed)) => Intervals::Bootstrap { draws, seed },
            None => Intervals::default(),
        };
        let scope = if is_of_population { Scope::Population } else { Scope::TheseRows };
        let estimator = Estimator::new(&bags)?.level(level)?.scope(scope).intervals(intervals)?;
        let mut found = json!({
            "metrics": named(estimator.metrics(&predictions)?),
            "randomness": told(&randomness(&bags)?),
        });
        let has_all = bags.pooled_proportions().iter().all(|&share| share > 0.0);
        if with_curves && has_all {
            found["confusion"] = json!(estimator.confusion(&predictions)?);
            if bags.n_classes() == 2 {
                found["thresholds"] = json!(estimator.curve(&predictions, POINTS)?);
                found["calibration"] = json!(estimator.calibration(&predictions, GROUPS)?);
                found["lift"] = json!(estimator.lift(&predictions, GROUPS)?);
            }
        }
        Ok(found)
    })?;
    Ok(found.to_string())
}

/// Whether bags look random, as numbers and text.
pub(crate) fn told(found: &Randomness) -> Value {
    json!({
        "verdict": found.verdict,
        "ratio": found.ratio,
        "p_value": found.p_value,
        "is_rejected": found.is_rejected(),
        "words": found.to_string(),
    })
}

/// The estimate of one metric: value, standard error, and the ends of its interval.
#[pyfunction]
pub(crate) fn metric(
    py: Python,
    name: &str,
    scores: PyReadonlyArray2<f32>,
    link_name: &str,
    of_row: PyReadonlyArray1<u32>,
    counts: PyReadonlyArray2<f64>,
) -> PyResult<(f64, f64, f64, f64)> {
    let link = link(link_name)?;
    let bags = bags(&of_row, &counts, None)?;
    let scores = scores.as_array();
    let estimate = pooled(py, || -> Result<Option<Estimate>> {
        let predictions = Predictions::new(scores, link)?;
        let estimator = Estimator::new(&bags)?;
        Ok(Some(match name {
            "log_loss" => estimator.log_loss(&predictions)?,
            "brier" => estimator.brier(&predictions)?,
            "error" => estimator.error(&predictions)?,
            "accuracy" => estimator.accuracy(&predictions)?,
            "auc" => estimator.auc(&predictions)?,
            "balanced_accuracy" => estimator.confusion(&predictions)?.balanced_accuracy,
            _ => return Ok(None),
        }))
    })?;
    let Estimate { value, standard_error, low, high, .. } = estimate.ok_or_else(|| {
        PyValueError::new_err(format!(
            "unknown metric `{name}`: choose one of log_loss, brier, error, accuracy, auc, balanced_accuracy"
        ))
    })?;
    Ok((value, standard_error, low, high))
}

/// The diagnosis: are the bags random, which features differ between bags, and how much information
/// do they hold?
#[pyfunction]
pub(crate) fn diagnose(
    py: Python,
    of_row: PyReadonlyArray1<u32>,
    counts: PyReadonlyArray2<f64>,
    noise: Option<(String, Vec<f64>)>,
    features: Option<Features>,
) -> PyResult<String> {
    let bags = bags(&of_row, &counts, noise)?;
    let found = pooled(py, || randomness(&bags))?;
    let priors: Vec<Estimate> = (0..bags.n_classes())
        .map(|class| prior_interval(&bags, class, 0.95))
        .collect::<Result<_>>()
        .map_err(failure)?;
    let mut uneven = Vec::new();
    if let Some(features) = features {
        let is_array = matches!(features, Features::Array(_) | Features::Sparse(..));
        let lent = features.lent();
        let (encoder, all) = pooled(py, || {
            let (encoder, rows) = lent.encoded(EncoderOptions::default())?;
            let all = uneven_features(&rows, &bags, UNEVEN_LEVEL)?;
            Ok((encoder, all))
        })?;
        for found in all {
            // Columns of an array have places for names.
            let column = match found.feature {
                Feature::Dense(place) if is_array => json!(place),
                Feature::Dense(place) => json!(encoder.dense_column(place)),
                Feature::Category { field, .. } => json!(encoder.field_column(field)),
            };
            uneven.push(json!({
                "column": column,
                "ratio": found.ratio,
                "p_value": found.p_value,
            }));
        }
    }
    Ok(json!({
        "randomness": told(&found),
        "prior": priors,
        "equivalent_rows": equivalent_rows(&bags),
        "uneven": uneven,
    })
    .to_string())
}
