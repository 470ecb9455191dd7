//! Test whether features differ between bags by more than chance.
//!
//! In random bags, bag means of a feature differ as in random samples: the ratio of the variance
//! between bags to the variance within bags is near 1 and follows F(n − 1, N − n) (one-way analysis
//! of variance). Bags made by a feature, or by something correlated with it, have a larger ratio,
//! even if labels are unrelated.

use crate::bags::Bags;
use crate::error::{Error, Result, check_length};
use crate::rows::{Csr, RowBatch, Rows};
use rayon::prelude::*;
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, FisherSnedecor};
use std::ops::Range;

/// A feature that differs between bags.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct UnevenFeature {
    /// The feature.
    pub feature: Feature,
    /// The variance between bags divided by the variance within bags; 1 by chance.
    pub ratio: f64,
    /// The p-value, multiplied by the number of features tested (Bonferroni).
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

/// The level of [`uneven_features`] at which the program and the Python package name a column.
pub const UNEVEN_LEVEL: f64 = 0.001;

/// Features whose corrected p-value is below `level`, the largest ratio first.
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
    check_length("rows", bags.n_rows(), rows.n_rows())?;
    let (n_bags, n_rows) = (bags.n_bags(), bags.n_members());
    if n_bags < 2 || n_rows <= n_bags {
        return Err(Error::TooFewBags { what: "a look at features from bag to bag", needed: 2, got: n_bags });
    }
    let all = rows.dense_part().all();
    let of_dense = dense_variances(&all, bags);
    let mut features: Vec<Feature> = (0..of_dense.len()).map(Feature::Dense).collect();
    let (common, of_common) = match rows.as_sparse() {
        Some(matrix) => column_variances(matrix, bags),
        None => category_variances(&all, rows.cardinalities(), bags),
    };
    features.extend(common);
    let n_features = features.len() as f64;
    let law = FisherSnedecor::new(n_bags as f64 - 1.0, (n_rows - n_bags) as f64).expect("positive degrees");
    let mut found: Vec<UnevenFeature> = features
        .into_iter()
        .zip(of_dense.into_iter().chain(of_common))
        .filter_map(|(feature, variances)| {
            let ratio = variances.ratio(n_bags as f64, n_rows as f64)?;
            let p_value = (law.sf(ratio) * n_features).min(1.0);
            (p_value < level).then_some(UnevenFeature { feature, ratio, p_value })
        })
        .collect();
    found.sort_by(|a, b| b.ratio.total_cmp(&a.ratio));
    Ok(found)
}

/// The sums of squares of a feature: between bags (bag means around the overall mean, weighted by
/// size) and within bags (rows around their bag's mean).
#[derive(Debug, Clone, Copy, Default)]
struct Variances {
    between: f64,
    within: f64,
}

impl Variances {
    /// The variance between bags divided by the variance within bags; none if the feature is
    /// constant.
    fn ratio(self, n_bags: f64, n_rows: f64) -> Option<f64> {
        let scale = self.between + self.within;
        if scale <= 0.0 {
            return None;
        }
        // A feature that is constant within every bag is as uneven as possible.
        let within = self.within.max(1e-12 * scale) / (n_rows - n_bags);
        Some(self.between / (n_bags - 1.0) / within)
    }
}

/// Categories and sparse columns in fewer rows are left out: the F test needs more values.
const RARE: f64 = 0.01;

/// Marks a rare category or column.
const NO_NUMBER: u32 = u32::MAX;

/// Numbers the categories or columns that are in many rows, but not in all, starting from `first`;
/// counts are replaced by these numbers.
fn number_common(counts: &mut [u32], first: usize, n_rows: usize) -> impl Iterator<Item = u32> {
    let mut common = Vec::new();
    for (place, count) in (0..).zip(counts) {
        let is_common = f64::from(*count) >= RARE * n_rows as f64 && (*count as usize) < n_rows;
        *count = NO_NUMBER;
        if is_common {
            *count = u32::try_from(first + common.len()).expect("a hundred for each number in a row");
            common.push(place);
        }
    }
    common.into_iter()
}

fn category_variances(all: &RowBatch, cardinalities: &[u32], bags: &Bags) -> (Vec<Feature>, Vec<Variances>) {
    let members = bags.rows();
    let count = |(field, &cardinality): (usize, &u32)| {
        let mut counts = vec![0_u32; cardinality as usize];
        for &row in &members {
            counts[all.categories[[row as usize, field]] as usize] += 1;
        }
        counts
    };
    let mut numbers: Vec<Vec<u32>> = cardinalities.par_iter().enumerate().map(count).collect();
    let mut features = Vec::new();
    for (field, numbers) in numbers.iter_mut().enumerate() {
        let common = number_common(numbers, features.len(), members.len());
        features.extend(common.map(|category| Feature::Category { field, category }));
    }
    let variances = few_variances(bags, features.len(), |row, add| {
        for (&id, numbers) in all.categories.row(row).iter().zip(&numbers) {
            add(numbers[id as usize], 1.0);
        }
    });
    (features, variances)
}

fn column_variances(matrix: &Csr, bags: &Bags) -> (Vec<Feature>, Vec<Variances>) {
    let members = bags.rows();
    let mut numbers = vec![0_u32; matrix.n_columns()];
    for &row in &members {
        for &column in matrix.row(row as usize).0 {
            let count = &mut numbers[column as usize];
            *count = count.saturating_add(1);
        }
    }
    // A column that all rows have a number in may vary all the same.
    let common = number_common(&mut numbers, 0, members.len() + 1);
    let features: Vec<Feature> = common.map(|column| Feature::Dense(column as usize)).collect();
    let variances = few_variances(bags, features.len(), |row, add| {
        let (columns, values) = matrix.row(row);
        for (&column, &value) in columns.iter().zip(values) {
            add(numbers[column as usize], f64::from(value));
        }
    });
    (features, variances)
}

/// Bags in chunks for threads; the number of chunks does not depend on the number of threads.
fn parts(bags: &Bags) -> Vec<Range<usize>> {
    const PARTS: usize = 64;
    let n_bags = bags.n_bags();
    let length = n_bags.div_ceil(PARTS);
    (0..n_bags).step_by(length).map(|start| start..(start + length).min(n_bags)).collect()
}

/// Adds the results of the chunks, in order.
fn added<T>(parts: Vec<Vec<T>>, add: impl Fn(&mut T, T)) -> Vec<T> {
    let mut parts = parts.into_iter();
    let mut sum = parts.next().unwrap_or_default();
    for part in parts {
        sum.iter_mut().zip(part).for_each(|(sum, part)| add(sum, part));
    }
    sum
}

fn dense_variances(all: &RowBatch, bags: &Bags) -> Vec<Variances> {
    let n_dense = all.dense.ncols();
    let add_rows = |bag: usize, sums: &mut [f64], shift: &[f64]| {
        for &row in bags.members(bag) {
            let features = all.dense.row(row as usize);
            let features = features.iter().zip(shift).map(|(&value, shift)| f64::from(value) - shift);
            sums.iter_mut().zip(features).for_each(|(sum, value)| *sum += value);
        }
    };
    let zeros = vec![0.0; n_dense];
    let sum_of_part = |range: Range<usize>| {
        let mut sums = zeros.clone();
        range.for_each(|bag| add_rows(bag, &mut sums, &zeros));
        sums
    };
    let sums = added(parts(bags).into_par_iter().map(sum_of_part).collect(), |sum, part| *sum += part);
    let means: Vec<f64> = sums.iter().map(|sum| sum / bags.n_members() as f64).collect();
    let of_part = |range: Range<usize>| {
        let mut variances = vec![Variances::default(); n_dense];
        let mut from_mean = zeros.clone();
        for bag in range {
            let size = bags.size(bag) as f64;
            from_mean.fill(0.0);
            add_rows(bag, &mut from_mean, &means);
            for (variances, from_mean) in variances.iter_mut().zip(&mut from_mean) {
                *from_mean /= size;
                variances.between += size * from_mean.powi(2);
            }
            for &row in bags.members(bag) {
                let features = all.dense.row(row as usize);
                for (place, (variances, &value)) in variances.iter_mut().zip(features).enumerate() {
                    variances.within += (f64::from(value) - means[place] - from_mean[place]).powi(2);
                }
            }
        }
        variances
    };
    added(parts(bags).into_par_iter().map(of_part).collect(), |sum, part| {
        sum.between += part.between;
        sum.within += part.within;
    })
}

/// For sparse features: `numbers_of` passes on the features of a row with their values. With sums s
/// of bags of k rows and S of all N rows, the variance between bags is Σ s²/k − S²/N, and within
/// bags Σ x² − Σ s²/k.
fn few_variances(
    bags: &Bags,
    n_features: usize,
    numbers_of: impl Fn(usize, &mut dyn FnMut(u32, f64)) + Sync,
) -> Vec<Variances> {
    #[derive(Clone, Copy, Default)]
    struct Sums {
        values: f64,
        squares: f64,
        squares_of_bags: f64,
    }
    let of_part = |range: Range<usize>| {
        let mut sums = vec![Sums::default(); n_features];
        let mut of_bag = vec![0.0; n_features];
        let mut touched = Vec::new();
        for bag in range {
            for &row in bags.members(bag) {
                numbers_of(row as usize, &mut |number, value| {
                    if number != NO_NUMBER {
                        of_bag[number as usize] += value;
                        sums[number as usize].squares += value * value;
                        touched.push(number as usize);
                    }
                });
            }
            for number in touched.drain(..) {
                // What is met again is 0 then.
                let sum = std::mem::take(&mut of_bag[number]);
                sums[number].values += sum;
                sums[number].squares_of_bags += sum * sum / bags.size(bag) as f64;
            }
        }
        sums
    };
    let sums = added(parts(bags).into_par_iter().map(of_part).collect(), |sum, part| {
        sum.values += part.values;
        sum.squares += part.squares;
        sum.squares_of_bags += part.squares_of_bags;
    });
    let n_rows = bags.n_members() as f64;
    let variances = |sums: Sums| Variances {
        between: (sums.squares_of_bags - sums.values * sums.values / n_rows).max(0.0),
        within: (sums.squares - sums.squares_of_bags).max(0.0),
    };
    sums.into_iter().map(variances).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bags::{Noise, Partition};
    use ndarray::Array2;

    /// Sums over rows, one feature at a time, are the oracle. Any number of threads gives the same
    /// bytes.
    #[test]
    fn variances_equal_plain_sums() {
        let n_rows = 900;
        let dense = Array2::from_shape_fn((n_rows, 3), |(row, column)| {
            [1e4, 0.0, -3.0][column] + ((row * 3 + column) as f32 * 0.7).sin()
        });
        let ids = Array2::from_shape_fn((n_rows, 2), |(row, field)| {
            u32::try_from((row * row + field) % 5).unwrap()
        });
        let rows = Rows::new(dense, ids, vec![5, 6]).unwrap();
        let bag_of_row: Vec<u32> = (0..900).map(|row| (row * 7 % 900) / 6).collect();
        let partition = Partition::from_bag_of_row(&bag_of_row, 150).unwrap();
        let bags = Bags::binary(partition, &[1.0; 150], Noise::None).unwrap();
        let all = rows.as_dense().unwrap().batch(0..n_rows);
        let values: Vec<f32> = all.dense.iter().copied().collect();
        let columns: Vec<u32> = (0..n_rows).flat_map(|_| [0, 1, 2]).collect();
        let matrix = Csr::new(3, (0..=n_rows).map(|row| 3 * row).collect(), columns, values).unwrap();
        let sparse = uneven_features(&Rows::sparse(matrix), &bags, 2.0).unwrap();
        let found = |n_threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
            pool.install(|| uneven_features(&rows, &bags, 2.0).unwrap())
        };
        assert_eq!(found(1), found(3));
        let found = found(2);
        assert_eq!(found.len(), 3 + 3 + 3);
        for uneven in found {
            let value = |row: u32| match uneven.feature {
                Feature::Dense(column) => f64::from(all.dense[[row as usize, column]]),
                Feature::Category { field, category } => {
                    f64::from(u8::from(all.categories[[row as usize, field]] == category))
                }
            };
            let mean = (0..900).map(value).sum::<f64>() / 900.0;
            let (mut between, mut within) = (0.0, 0.0);
            for bag in 0..150 {
                let members = bags.members(bag);
                let of_bag = members.iter().map(|&row| value(row)).sum::<f64>() / 6.0;
                between += 6.0 * (of_bag - mean).powi(2);
                within += members.iter().map(|&row| (value(row) - of_bag).powi(2)).sum::<f64>();
            }
            let expected = (between / 149.0) / (within / 750.0);
            assert!((uneven.ratio / expected - 1.0).abs() < 1e-9, "{uneven:?} {expected}");
            // Of a matrix that is not sparse at all. Numbers far from 0 lose as many digits as they are times as far.
            for of_sparse in sparse.iter().filter(|other| other.feature == uneven.feature) {
                assert!((of_sparse.ratio / expected - 1.0).abs() < 1e-6, "{of_sparse:?} {expected}");
            }
        }
        assert_eq!(sparse.len(), 3);
    }
}
