//! Bags from arrays, their targets and random baggings.

use crate::failure::failure;
use crate::work::pooled;
use easyllp::{
    Bags, Noise, Partition, bagging,
    correction::{BagWeights, Correction, LabelPrior, Targets},
};
use ndarray::Array2;
use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;

/// Creates bags of rows: the bag index of each row, and for each bag one count (of the positive
/// class) or one per class.
pub(crate) fn bags(
    of_row: &PyReadonlyArray1<u32>,
    counts: &PyReadonlyArray2<f64>,
    noise: Option<(String, Vec<f64>)>,
) -> PyResult<Bags> {
    let counts = counts.as_array();
    let of_row = of_row.as_array();
    let of_row = of_row.as_standard_layout();
    let of_row = of_row.as_slice().expect("a standard layout");
    let partition = Partition::from_bag_of_row(of_row, counts.nrows()).map_err(failure)?;
    let noise = match noise {
        None => Noise::None,
        Some((law, scales)) if law == "laplace" => Noise::Laplace(scales),
        Some((_, scales)) => Noise::Gaussian(scales),
    };
    if counts.ncols() == 1 {
        Bags::binary(partition, &counts.column(0).to_vec(), noise).map_err(failure)
    } else {
        Bags::multiclass(partition, counts.to_owned(), noise).map_err(failure)
    }
}

/// The prior with these shares; one share is that of the positive class.
fn prior(shares: &[f64]) -> PyResult<LabelPrior> {
    match shares {
        [positive] => LabelPrior::binary(*positive),
        several => LabelPrior::known(several.to_vec()),
    }
    .map_err(failure)
}

/// Targets of all rows: one column for two classes, else one per class.
#[pyfunction]
#[pyo3(signature = (of_row, counts, noise, prior, bag_weights))]
pub(crate) fn soft_targets<'py>(
    py: Python<'py>,
    of_row: PyReadonlyArray1<u32>,
    counts: PyReadonlyArray2<f64>,
    noise: Option<(String, Vec<f64>)>,
    prior: Option<Vec<f64>>,
    bag_weights: &str,
) -> PyResult<Bound<'py, PyArray2<f32>>> {
    let bags = bags(&of_row, &counts, noise)?;
    let correction = match prior {
        Some(shares) => Correction::Paper(self::prior(&shares)?),
        None => Correction::Centred(bag_weights.parse::<BagWeights>().map_err(failure)?),
    };
    let targets: Targets = pooled(py, || correction.soft(&bags))?;
    let values: Array2<f32> = targets.values().to_owned();
    Ok(values.into_pyarray(py))
}

/// Random bags: the bag index of each row.
#[pyfunction]
pub(crate) fn deal(
    py: Python<'_>,
    n_rows: usize,
    sizes: Vec<usize>,
    seed: u64,
) -> PyResult<Bound<'_, PyArray1<u32>>> {
    let sizes = match sizes[..] {
        [size] => bagging::Sizes::Fixed(size),
        [least, most] => bagging::Sizes::Range(least..=most),
        _ => bagging::Sizes::OneOf(sizes),
    };
    let partition = pooled(py, || bagging::random(n_rows, &sizes, seed))?;
    let mut of_row = vec![0; n_rows];
    for (place, bag) in (0..).zip(0..partition.n_bags()) {
        for &row in partition.members(bag) {
            of_row[row as usize] = place;
        }
    }
    Ok(of_row.into_pyarray(py))
}
