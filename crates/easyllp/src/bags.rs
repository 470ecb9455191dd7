//! BAG: a partition of row indices, and the class counts of each part.
//!
//! Bags hold no features and no labels, so that no method can see more than the counts. Baggings,
//! splits and folds of a table copy no row.

use crate::classes::{check_classes, check_labels};
use crate::error::{Error, Result, check_length};
use crate::rows::row_count;
use ndarray::{Array2, ArrayView1, ArrayView2, Axis};
use rand::RngExt;
use rand_distr::{Distribution, Exp1, StandardNormal};
use xxhash_rust::xxh3::Xxh3;

/// Marks a row that is in no bag.
pub(crate) const NO_BAG: u32 = u32::MAX;

/// Larger counts or noise scales are rejected: sums of them would lose the unit.
const LARGEST_COUNT: f64 = 1e12;

/// Which rows are in which bag. No bag is empty and no row is in two bags; a row may be in none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    /// Row indices, bag after bag.
    members: Vec<u32>,
    /// Bag `i` is `members[offsets[i]..offsets[i + 1]]`.
    offsets: Vec<usize>,
    /// The inverse: the bag of each row of the table, or [`NO_BAG`].
    bag_of_row: Vec<u32>,
}

impl Partition {
    /// Creates bags from lists of row indices into a table of `n_rows` rows.
    pub fn new<B>(n_rows: usize, bags: impl IntoIterator<Item = B>) -> Result<Self>
    where
        B: AsRef<[u32]>,
    {
        row_count(n_rows)?;
        let mut members = Vec::new();
        let mut offsets = vec![0];
        let mut bag_of_row = vec![NO_BAG; n_rows];
        for (bag, rows) in bags.into_iter().enumerate() {
            if rows.as_ref().is_empty() {
                return Err(Error::EmptyBag { bag });
            }
            for &row in rows.as_ref() {
                let Some(place) = bag_of_row.get_mut(row as usize) else {
                    return Err(Error::RowOutOfRange { bag, row, n_rows });
                };
                if *place != NO_BAG {
                    return Err(Error::RowTwice { row, first: *place as usize, second: bag });
                }
                *place = u32::try_from(bag).expect("no more bags than rows, which are counted by u32");
                members.push(row);
            }
            offsets.push(members.len());
        }
        if members.is_empty() {
            return Err(Error::NoBags);
        }
        Ok(Self { members, offsets, bag_of_row })
    }

    /// Creates bags from a bag number per row, from 0 to `n_bags` − 1. Every bag must have a row.
    pub fn from_bag_of_row(bag_of_row: &[u32], n_bags: usize) -> Result<Self> {
        row_count(bag_of_row.len())?;
        if n_bags == 0 {
            return Err(Error::NoBags);
        }
        if n_bags > bag_of_row.len() {
            let (expected, got) = (bag_of_row.len(), n_bags);
            return Err(Error::Shape { what: "bags, at most one per row", expected, got });
        }
        let mut offsets = vec![0; n_bags + 1];
        for (row, &bag) in bag_of_row.iter().enumerate() {
            if bag as usize >= n_bags {
                return Err(Error::BagOutOfRange { row, bag, n_bags });
            }
            offsets[bag as usize + 1] += 1;
        }
        if let Some(bag) = offsets[1..].iter().position(|&size| size == 0) {
            return Err(Error::EmptyBag { bag });
        }
        for bag in 0..n_bags {
            offsets[bag + 1] += offsets[bag];
        }
        let mut next = offsets.clone();
        let mut members = vec![0; bag_of_row.len()];
        for (row, &bag) in (0..).zip(bag_of_row) {
            members[next[bag as usize]] = row;
            next[bag as usize] += 1;
        }
        Ok(Self { members, offsets, bag_of_row: bag_of_row.to_vec() })
    }

    /// The number of bags, n; at least 1.
    pub fn n_bags(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The rows of a bag.
    pub fn members(&self, bag: usize) -> &[u32] {
        &self.members[self.offsets[bag]..self.offsets[bag + 1]]
    }

    /// The size k of a bag.
    pub fn size(&self, bag: usize) -> usize {
        self.offsets[bag + 1] - self.offsets[bag]
    }

    fn select(&self, bags: &[usize]) -> Result<Self> {
        if let Some(&bag) = bags.iter().find(|&&bag| bag >= self.n_bags()) {
            return Err(Error::NoSuchBag { bag, n_bags: self.n_bags() });
        }
        Self::new(self.bag_of_row.len(), bags.iter().map(|&bag| self.members(bag)))
    }
}

/// Zero-mean noise that a provider adds to counts, for example for differential privacy.
///
/// A noisy count may be negative, fractional or larger than the bag. Clipping noisy counts at zero
/// makes their mean wrong, and biases models that are trained on them.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Noise {
    /// Counts are exact.
    #[default]
    None,
    /// Laplace noise of scale b, variance 2b².
    Laplace(Vec<f64>),
    /// Normal noise of standard deviation s.
    Gaussian(Vec<f64>),
}

impl Noise {
    pub(crate) fn scales(&self) -> Option<&Vec<f64>> {
        match self {
            Self::None => None,
            Self::Laplace(scales) | Self::Gaussian(scales) => Some(scales),
        }
    }

    /// The variance of the noise on each count of bag `bag`.
    pub fn variance(&self, bag: usize) -> f64 {
        match self {
            Self::None => 0.0,
            Self::Laplace(scales) => 2.0 * scales[bag].powi(2),
            Self::Gaussian(scales) => scales[bag].powi(2),
        }
    }

    /// Draws the noise of one count of bag `bag`.
    pub(crate) fn draw(&self, bag: usize, rng: &mut impl RngExt) -> f64 {
        match self {
            Self::None => 0.0,
            Self::Laplace(scales) => {
                let length: f64 = Exp1.sample(rng);
                if rng.random() { scales[bag] * length } else { -scales[bag] * length }
            }
            Self::Gaussian(scales) => {
                let standard: f64 = StandardNormal.sample(rng);
                scales[bag] * standard
            }
        }
    }

    fn select(&self, bags: &[usize]) -> Self {
        let pick = |scales: &[f64]| bags.iter().map(|&bag| scales[bag]).collect();
        match self {
            Self::None => Self::None,
            Self::Laplace(scales) => Self::Laplace(pick(scales)),
            Self::Gaussian(scales) => Self::Gaussian(pick(scales)),
        }
    }
}

/// Bags of rows with their class counts: a [`Partition`] and the reported counts.
///
/// ```
/// use easyllp::{Bags, Noise, Partition};
///
/// // Six rows in two bags; the first reports 2 positives, the second 0.
/// let partition = Partition::new(6, [[0, 1, 2], [3, 4, 5]])?;
/// let bags = Bags::binary(partition, &[2.0, 0.0], Noise::None)?;
/// assert_eq!(bags.size(0), 3);
/// assert_eq!(bags.pooled_proportions(), [4.0 / 6.0, 2.0 / 6.0]);
///
/// // Every refusal names the bag and the numbers.
/// let partition = Partition::new(6, [[0, 1, 2], [3, 4, 5]])?;
/// let refused = Bags::binary(partition, &[2.0, 4.0], Noise::None).unwrap_err();
/// assert_eq!(refused.to_string(), "bag index 1 of 3 rows reports 4 of class index 1: a count lies in 0 to 3");
/// # Ok::<(), easyllp::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Bags {
    partition: Partition,
    /// n × C, each line summing to the bag's size.
    counts: Array2<f64>,
    noise: Noise,
    /// The noise variance of each class count of a bag, as held in `counts`; empty without noise.
    count_variances: Vec<f64>,
}

impl Bags {
    /// Bags with one count each, of the positive class; class 0 is the remaining rows.
    pub fn binary(partition: Partition, positives: &[f64], noise: Noise) -> Result<Self> {
        check_length("counts, one per bag", partition.n_bags(), positives.len())?;
        let counts = Array2::from_shape_fn((partition.n_bags(), 2), |(bag, class)| {
            if class == 1 { positives[bag] } else { partition.size(bag) as f64 - positives[bag] }
        });
        // The two columns are one reported number: they share its noise, and sum to the size whatever it is.
        Self::checked(partition, counts, noise, |variance| variance)
    }

    /// Bags that report a count for each of C ≥ 2 classes: n × C.
    ///
    /// Noise is assumed to be independent between classes. Noisy counts do not sum to the bag's
    /// size. The difference is spread evenly over the classes, which keeps counts unbiased and
    /// lowers their noise.
    pub fn multiclass(partition: Partition, counts: Array2<f64>, noise: Noise) -> Result<Self> {
        check_length("lines of counts, one per bag", partition.n_bags(), counts.nrows())?;
        let n_classes = counts.ncols() as f64;
        Self::checked(partition, counts, noise, |variance| variance * (1.0 - 1.0 / n_classes))
    }

    /// Bags with exact counts of known row labels, each below `n_classes`; for experiments.
    pub fn from_labels(partition: Partition, labels: &[u32], n_classes: usize) -> Result<Self> {
        check_length("labels, one per row", partition.bag_of_row.len(), labels.len())?;
        check_labels(labels, n_classes)?;
        let mut counts = Array2::zeros((partition.n_bags(), n_classes));
        for (&bag, &label) in partition.bag_of_row.iter().zip(labels) {
            if bag != NO_BAG {
                counts[[bag as usize, label as usize]] += 1.0;
            }
        }
        Ok(Self { partition, counts, noise: Noise::None, count_variances: Vec::new() })
    }

    fn checked(
        partition: Partition,
        mut counts: Array2<f64>,
        noise: Noise,
        left_in_class: impl Fn(f64) -> f64,
    ) -> Result<Self> {
        let n_bags = partition.n_bags();
        check_classes(counts.ncols())?;
        if let Some(scales) = noise.scales() {
            check_length("noise scales, one per bag", n_bags, scales.len())?;
            if let Some(bag) = scales.iter().position(|scale| !(0.0..=LARGEST_COUNT).contains(scale)) {
                return Err(Error::NoiseScale { bag, scale: scales[bag], limit: LARGEST_COUNT });
            }
        }
        for (bag, mut line) in counts.rows_mut().into_iter().enumerate() {
            let size = partition.size(bag);
            // Of two columns made from one count, the reported one is the last: look there first.
            for class in (0..line.len()).rev() {
                let count = line[class];
                if count.is_nan() || count.abs() > LARGEST_COUNT {
                    return Err(Error::CountNotFinite { bag, class, count, limit: LARGEST_COUNT });
                }
                if noise.variance(bag) > 0.0 {
                    continue;
                }
                if count.fract().abs() > 0.0 {
                    return Err(Error::CountNotWhole { bag, class, count });
                }
                if !(0.0..=size as f64).contains(&count) {
                    return Err(Error::CountOutOfRange { bag, class, count, size });
                }
            }
            let missing = size as f64 - line.sum();
            if noise.variance(bag) > 0.0 {
                line += missing / line.len() as f64;
            } else if missing.abs() > 0.0 {
                return Err(Error::CountsDoNotSum { bag, size, counted: line.sum() });
            }
        }
        let count_variances = match noise {
            Noise::None => Vec::new(),
            _ => (0..n_bags).map(|bag| left_in_class(noise.variance(bag))).collect(),
        };
        Ok(Self { partition, counts, noise, count_variances })
    }

    /// The partition into bags, without the counts.
    pub fn partition(&self) -> &Partition {
        &self.partition
    }

    /// The number of bags, n; at least 1.
    pub fn n_bags(&self) -> usize {
        self.partition.n_bags()
    }

    /// The number of rows in bags, N.
    pub fn n_members(&self) -> usize {
        self.partition.members.len()
    }

    /// The number of rows in the table that the bags index; N or more.
    pub fn n_rows(&self) -> usize {
        self.partition.bag_of_row.len()
    }

    /// The number of classes, C; at least 2.
    pub fn n_classes(&self) -> usize {
        self.counts.ncols()
    }

    /// The rows of a bag.
    pub fn members(&self, bag: usize) -> &[u32] {
        self.partition.members(bag)
    }

    /// The size k of a bag.
    pub fn size(&self, bag: usize) -> usize {
        self.partition.size(bag)
    }

    /// The sizes of all bags.
    pub fn sizes(&self) -> impl Iterator<Item = usize> + '_ {
        self.partition.offsets.windows(2).map(|pair| pair[1] - pair[0])
    }

    /// Whether every bag is a single row, so that its counts are the label of the row.
    pub fn have_row_labels(&self) -> bool {
        self.sizes().all(|size| size == 1)
    }

    /// The rows that are in a bag, in ascending order.
    pub fn rows(&self) -> Vec<u32> {
        (0..).zip(&self.partition.bag_of_row).filter(|&(_, &bag)| bag != NO_BAG).map(|(row, _)| row).collect()
    }

    /// The bag of each row of the table, or [`NO_BAG`].
    pub(crate) fn bag_of_row(&self) -> &[u32] {
        &self.partition.bag_of_row
    }

    /// Class counts, n × C; each line sums to the bag's size.
    pub fn counts(&self) -> ArrayView2<'_, f64> {
        self.counts.view()
    }

    /// Class counts of one bag.
    pub fn counts_of(&self, bag: usize) -> ArrayView1<'_, f64> {
        self.counts.row(bag)
    }

    /// The share of a class among the rows of a bag: α.
    pub fn proportion(&self, bag: usize, class: usize) -> f64 {
        self.counts[[bag, class]] / self.size(bag) as f64
    }

    /// The declared noise.
    pub fn noise(&self) -> &Noise {
        &self.noise
    }

    /// Whether any bag has declared noise.
    pub fn has_noise(&self) -> bool {
        self.count_variances.iter().any(|variance| *variance > 0.0)
    }

    /// The variance that noise adds to each class count of the bag.
    pub fn count_variance(&self, bag: usize) -> f64 {
        self.count_variances.get(bag).copied().unwrap_or(0.0)
    }

    /// The share of each class among all rows in bags: p̂ = Σkα/N. With noise it may leave [0, 1].
    pub fn pooled_proportions(&self) -> Vec<f64> {
        self.counts.sum_axis(Axis(0)).iter().map(|count| count / self.n_members() as f64).collect()
    }

    /// A short fingerprint of the rows and counts, to compare the training data of two models.
    pub fn fingerprint(&self) -> String {
        let mut hash = Xxh3::new();
        for &bag in &self.partition.bag_of_row {
            hash.update(&bag.to_le_bytes());
        }
        for count in &self.counts {
            hash.update(&count.to_le_bytes());
        }
        format!("{:016x}", hash.digest())
    }

    /// The same bags with the two classes swapped.
    #[must_use]
    pub fn reversed(mut self) -> Self {
        self.counts.invert_axis(Axis(1));
        self.counts = self.counts.as_standard_layout().into_owned();
        self
    }

    /// The selected bags, in this order, over the same table. No row is copied.
    pub fn select(&self, bags: &[usize]) -> Result<Self> {
        let partition = self.partition.select(bags)?;
        let pick = |values: &Vec<f64>| {
            if values.is_empty() { Vec::new() } else { bags.iter().map(|&b| values[b]).collect() }
        };
        Ok(Self {
            partition,
            counts: self.counts.select(Axis(0), bags),
            noise: self.noise.select(bags),
            count_variances: pick(&self.count_variances),
        })
    }

    /// The rows of these bags, bag after bag, and the same bags with indices into those rows only.
    pub fn reindexed(&self) -> (Vec<u32>, Self) {
        let mut rows = Vec::with_capacity(self.n_members());
        let mut bag_of_row = Vec::with_capacity(self.n_members());
        for (bag, number) in (0..self.n_bags()).zip(0..) {
            rows.extend(self.members(bag));
            bag_of_row.extend(std::iter::repeat_n(number, self.size(bag)));
        }
        let partition = Partition::from_bag_of_row(&bag_of_row, self.n_bags()).expect("a bag has rows");
        (rows, Self { partition, ..self.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    fn three_bags() -> Partition {
        Partition::new(7, [vec![4, 1], vec![0, 2, 6], vec![5]]).unwrap()
    }

    #[test]
    fn both_ways_to_name_a_partition_agree() {
        let ids = [1, 0, 1, 2, 0, 2, 1];
        let by_id = Partition::from_bag_of_row(&ids, 3).unwrap();
        let by_list = Partition::new(7, [vec![1, 4], vec![0, 2, 6], vec![3, 5]]).unwrap();
        assert_eq!(by_id, by_list);
    }

    #[test]
    fn a_partition_refuses_with_the_bag_and_the_row() {
        let lists = |lists: &[&[u32]]| Partition::new(4, lists).unwrap_err();
        assert_eq!(lists(&[]), Error::NoBags);
        assert_eq!(lists(&[&[0], &[]]), Error::EmptyBag { bag: 1 });
        assert_eq!(lists(&[&[0], &[1, 4]]), Error::RowOutOfRange { bag: 1, row: 4, n_rows: 4 });
        assert_eq!(lists(&[&[0], &[1, 0]]), Error::RowTwice { row: 0, first: 0, second: 1 });
        assert_eq!(lists(&[&[2, 2]]), Error::RowTwice { row: 2, first: 0, second: 0 });
        assert_eq!(Partition::new(0, [[0]]).unwrap_err(), Error::NoRows);
        assert_eq!(Partition::from_bag_of_row(&[0, 2, 0], 3).unwrap_err(), Error::EmptyBag { bag: 1 });
    }

    #[test]
    fn counts_refuse_with_the_bag_and_the_numbers() {
        let binary = |counts: &[f64]| Bags::binary(three_bags(), counts, Noise::None).unwrap_err();
        assert_eq!(binary(&[0.0, 1.5, 0.0]), Error::CountNotWhole { bag: 1, class: 1, count: 1.5 });
        assert_eq!(
            binary(&[0.0, 1.0, 2.0]),
            Error::CountOutOfRange { bag: 2, class: 1, count: 2.0, size: 1 }
        );
        assert_eq!(
            binary(&[-1.0, 1.0, 1.0]),
            Error::CountOutOfRange { bag: 0, class: 1, count: -1.0, size: 2 }
        );
        let wrong_sum =
            Bags::multiclass(three_bags(), array![[1.0, 1.0], [1.0, 1.0], [0.0, 1.0]], Noise::None);
        assert_eq!(wrong_sum.unwrap_err(), Error::CountsDoNotSum { bag: 1, size: 3, counted: 2.0 });
        let one_class = Bags::multiclass(three_bags(), array![[2.0], [3.0], [1.0]], Noise::None);
        assert_eq!(one_class.unwrap_err(), Error::TooFewClasses { n_classes: 1 });
    }

    #[test]
    fn declared_noise_lets_counts_leave_their_range() {
        let noise = Noise::Laplace(vec![1.0, 3.0, 1.0]);
        let bags = Bags::binary(three_bags(), &[-0.5, 4.25, 1.0], noise).unwrap();
        assert_eq!(bags.counts_of(0), array![2.5, -0.5]);
        assert!((bags.count_variance(1) - 18.0).abs() < 1e-12);
        // A bag whose own scale is zero is exact, and must look it.
        let half_exact = Bags::binary(three_bags(), &[0.5, 1.0, 1.0], Noise::Gaussian(vec![0.0, 1.0, 1.0]));
        assert_eq!(half_exact.unwrap_err(), Error::CountNotWhole { bag: 0, class: 1, count: 0.5 });
    }

    #[test]
    fn noisy_class_counts_are_made_to_sum_to_the_size() {
        let counts = array![[2.0, 1.0, 2.0], [1.0, 1.0, 1.0], [0.0, 0.5, 2.0]];
        let bags = Bags::multiclass(three_bags(), counts, Noise::Gaussian(vec![1.0; 3])).unwrap();
        assert_eq!(bags.counts_of(0), array![1.0, 0.0, 1.0]);
        assert_eq!(bags.counts_of(2), array![-0.5, 0.0, 1.5]);
        assert!((bags.count_variance(0) - 2.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn selecting_bags_keeps_what_is_known_of_each() {
        let noise = Noise::Gaussian(vec![1.0, 2.0, 3.0]);
        let bags = Bags::binary(three_bags(), &[1.5, 2.5, 0.5], noise).unwrap();
        let chosen = bags.select(&[2, 0]).unwrap();
        assert_eq!(chosen.members(0), [5]);
        assert_eq!(chosen.rows(), [1, 4, 5]);
        assert_eq!(chosen.counts_of(1), bags.counts_of(0));
        assert_eq!(chosen.noise(), &Noise::Gaussian(vec![3.0, 1.0]));
        assert_ne!(chosen.fingerprint(), bags.fingerprint());
        assert_eq!(bags.fingerprint(), bags.clone().fingerprint());
        assert_eq!(bags.select(&[]).unwrap_err(), Error::NoBags);
        assert!(bags.select(&[3]).is_err());
    }
}
