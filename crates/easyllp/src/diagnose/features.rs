//! Do rows' features differ from bag to bag by more than chance allows?
//!
//! Bags that were put together at random have means of a feature that differ as random samples do: the ratio of the
//! variance between bags to that within is near 1 and follows F(n − 1, N − n) (one-way analysis of variance). Bags made by a
//! feature, or by something that goes with one, show it there, whether labels have to do with it or not.

use crate::bags::Bags;
use crate::error::{Error, Result, check_length};
use crate::rows::Rows;
use rayon::prelude::*;
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, FisherSnedecor};

/// A feature that differs between bags.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct UnevenFeature {
    /// Which feature.
    pub feature: Feature,
    /// The variance between bags over that within; 1 is chance.
    pub ratio: f64,
    /// The chance of so large a ratio, times the number of features looked at.
    pub p_value: f64,
}

/// A feature of encoded rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Feature {
    /// The dense feature in this column.
    Dense(usize),
    /// One category of a field.
    Category {
        /// The field.
        field: usize,
        /// Its category.
        category: u32,
    },
}

/// Features whose p-value, corrected for their number, is below `level`, the most uneven first.
///
/// ```
/// use easyllp::diagnose::uneven_features;
/// use easyllp::{Bags, Noise, Partition, Rows};
/// use ndarray::array;
///
/// // Bags by the size of the feature.
/// let rows = Rows::dense(array![[1.0_f32], [1.1], [1.2], [5.0], [5.1], [5.2], [9.0], [9.1], [9.2]])?;
/// let bags = Bags::binary(Partition::new(9, [[0, 1, 2], [3, 4, 5], [6, 7, 8]])?, &[1.0, 1.0, 2.0], Noise::None)?;
/// assert_eq!(uneven_features(&rows, &bags, 0.001)?.len(), 1);
/// # Ok::<(), easyllp::Error>(())
/// ```
pub fn uneven_features(rows: &Rows, bags: &Bags, level: f64) -> Result<Vec<UnevenFeature>> {
    /// Categories rarer than this are left out: an F test of so few rows means little.
    const RARE: f64 = 0.01;
    check_length("rows", bags.n_rows(), rows.n_rows())?;
    let (n_bags, n_rows) = (bags.n_bags(), bags.n_members());
    if n_bags < 2 || n_rows <= n_bags {
        return Err(Error::TooFewBags { what: "a look at features from bag to bag", needed: 2, got: n_bags });
    }
    let all = rows.batch(0..rows.n_rows());
    let mut features: Vec<Feature> = (0..rows.n_dense()).map(Feature::Dense).collect();
    for (field, &cardinality) in rows.cardinalities().iter().enumerate() {
        let mut counts = vec![0_usize; cardinality as usize];
        for row in bags.rows() {
            counts[all.categories[[row as usize, field]] as usize] += 1;
        }
        let is_common = |&(_, count): &(u32, usize)| count as f64 >= RARE * n_rows as f64 && count < n_rows;
        let common = (0..cardinality).zip(counts).filter(is_common);
        features.extend(common.map(|(category, _)| Feature::Category { field, category }));
    }
    let n_features = features.len() as f64;
    let law = FisherSnedecor::new(n_bags as f64 - 1.0, (n_rows - n_bags) as f64).expect("positive degrees");
    let mut found: Vec<UnevenFeature> = features
        .into_par_iter()
        .filter_map(|feature| {
            let value = |row: u32| match feature {
                Feature::Dense(column) => f64::from(all.dense[[row as usize, column]]),
                Feature::Category { field, category } => {
                    f64::from(u8::from(all.categories[[row as usize, field]] == category))
                }
            };
            let ratio = variance_ratio(bags, value)?;
            let p_value = (law.sf(ratio) * n_features).min(1.0);
            (p_value < level).then_some(UnevenFeature { feature, ratio, p_value })
        })
        .collect();
    found.sort_by(|a, b| b.ratio.total_cmp(&a.ratio));
    Ok(found)
}

/// The variance between bags over that within; none if the feature does not vary.
fn variance_ratio(bags: &Bags, value: impl Fn(u32) -> f64) -> Option<f64> {
    let (n_bags, n_rows) = (bags.n_bags() as f64, bags.n_members() as f64);
    let mut total = 0.0;
    let mut of_bags = Vec::with_capacity(bags.n_bags());
    let mut squares = 0.0;
    for bag in 0..bags.n_bags() {
        let sum: f64 = bags.members(bag).iter().map(|&row| value(row)).sum();
        let mean = sum / bags.size(bag) as f64;
        squares += bags.members(bag).iter().map(|&row| (value(row) - mean).powi(2)).sum::<f64>();
        total += sum;
        of_bags.push(mean);
    }
    let mean = total / n_rows;
    let between: f64 =
        of_bags.iter().zip(bags.sizes()).map(|(of_bag, size)| size as f64 * (of_bag - mean).powi(2)).sum();
    let scale = between + squares;
    if scale <= 0.0 {
        return None;
    }
    // A feature that is constant within every bag is as uneven as can be.
    let within = squares.max(1e-12 * scale) / (n_rows - n_bags);
    Some(between / (n_bags - 1.0) / within)
}
