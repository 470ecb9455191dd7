//! Make bags of rows, and split bags into training and validation bags.
//!
//! All functions work on row indices and are reproducible from a seed.

use crate::bags::{Bags, Noise, Partition};
use crate::error::{Error, Result, check_length};
use crate::rows::row_count;
use crate::seed::{Stream, stream};
use rand::RngExt;
use rand::seq::SliceRandom;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// The bag sizes of a random bagging.
///
/// Every row is used. If the rows run out, the last bag is smaller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sizes {
    /// Every bag has this number of rows.
    Fixed(usize),
    /// Each bag's size is drawn uniformly from the list.
    OneOf(Vec<usize>),
    /// Each bag's size is drawn uniformly from the range.
    Range(RangeInclusive<usize>),
}

impl Sizes {
    fn check(&self) -> Result<()> {
        let refuse = |value, expected| Err(Error::Setting { name: "bag size", value, expected });
        match self {
            Self::Fixed(0) => refuse("0".into(), "at least 1"),
            Self::OneOf(sizes) if sizes.is_empty() => refuse("an empty list".into(), "a list of sizes"),
            Self::OneOf(sizes) if sizes.contains(&0) => refuse("0".into(), "at least 1"),
            Self::Range(range) if range.is_empty() || *range.start() == 0 => {
                refuse(format!("{} to {}", range.start(), range.end()), "a range from at least 1 upwards")
            }
            _ => Ok(()),
        }
    }

    fn draw(&self, rng: &mut impl RngExt) -> usize {
        match self {
            Self::Fixed(size) => *size,
            Self::OneOf(sizes) => sizes[rng.random_range(0..sizes.len())],
            Self::Range(range) => rng.random_range(range.clone()),
        }
    }
}

/// Deals all rows of a table into bags at random.
///
/// ```
/// use easyllp::bagging::{Sizes, random};
///
/// let partition = random(100, &Sizes::Fixed(16), 7)?;
/// assert_eq!(partition.n_bags(), 7); // six of 16, and the four rows that are left
/// assert_eq!(partition.size(6), 4);
/// # Ok::<(), easyllp::Error>(())
/// ```
pub fn random(n_rows: usize, sizes: &Sizes, seed: u64) -> Result<Partition> {
    sizes.check()?;
    let mut rng = stream(seed, Stream::Bagging);
    let mut order: Vec<u32> = (0..row_count(n_rows)?).collect();
    order.shuffle(&mut rng);
    let mut rest = order.as_slice();
    Partition::new(
        n_rows,
        std::iter::from_fn(|| {
            let (bag, left) = rest.split_at(sizes.draw(&mut rng).min(rest.len()));
            rest = left;
            (!bag.is_empty()).then_some(bag)
        }),
    )
}

/// Groups rows with equal keys into bags. Bags are sorted by key; the keys are returned, too.
pub fn by_key<K: Ord + Clone>(keys: &[K]) -> Result<(Vec<K>, Partition)> {
    row_count(keys.len())?;
    let mut groups: BTreeMap<&K, Vec<u32>> = BTreeMap::new();
    for (row, key) in (0..).zip(keys) {
        groups.entry(key).or_default().push(row);
    }
    let partition = Partition::new(keys.len(), groups.values())?;
    Ok((groups.into_keys().cloned().collect(), partition))
}

/// Adds noise to exact counts, as a provider that protects privacy would report them.
///
/// With two classes only one count is noisy; with more, each class count gets its own noise.
pub fn add_noise(bags: &Bags, noise: Noise, seed: u64) -> Result<Bags> {
    check_length("noise scales, one per bag", bags.n_bags(), noise.scales().map_or(bags.n_bags(), Vec::len))?;
    let mut rng = stream(seed, Stream::Noise);
    let mut counts = bags.counts().to_owned();
    let is_binary = bags.n_classes() == 2;
    for ((bag, class), count) in counts.indexed_iter_mut() {
        if !is_binary || class == 1 {
            *count += noise.draw(bag, &mut rng);
        }
    }
    let partition = bags.partition().clone();
    if is_binary {
        Bags::binary(partition, &counts.column(1).to_vec(), noise)
    } else {
        Bags::multiclass(partition, counts, noise)
    }
}

/// A split of bags into training and validation bags.
#[derive(Debug, Clone, PartialEq)]
pub struct Split {
    /// The training bags, in the order of the original bags.
    pub train: Bags,
    /// The held-out bags, in the same order.
    pub held_out: Bags,
}

/// Holds out a random share of the bags; each side keeps at least one bag.
pub fn split(bags: &Bags, held_out_share: f64, seed: u64) -> Result<Split> {
    if !(held_out_share > 0.0 && held_out_share < 1.0) {
        let value = held_out_share.to_string();
        return Err(Error::Setting { name: "held-out share", value, expected: "between 0 and 1" });
    }
    if bags.n_bags() < 2 {
        return Err(Error::TooFewBags { what: "a split", needed: 2, got: bags.n_bags() });
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a count")]
    let n_held_out = (bags.n_bags() as f64 * held_out_share).round() as usize;
    let n_held_out = n_held_out.clamp(1, bags.n_bags() - 1);
    let order = shuffled_bags(bags, seed);
    take_out(bags, &order[..n_held_out])
}

/// Splits the bags into folds of nearly equal size; each fold is held out once.
pub fn folds(bags: &Bags, n_folds: usize, seed: u64) -> Result<Vec<Split>> {
    if n_folds < 2 {
        return Err(Error::Setting {
            name: "number of folds",
            value: n_folds.to_string(),
            expected: "at least 2",
        });
    }
    if bags.n_bags() < n_folds {
        return Err(Error::TooFewBags { what: "that many folds", needed: n_folds, got: bags.n_bags() });
    }
    fold_members(bags, n_folds, seed).iter().map(|held_out| take_out(bags, held_out)).collect()
}

/// The bags of each fold.
pub(crate) fn fold_members(bags: &Bags, n_folds: usize, seed: u64) -> Vec<Vec<usize>> {
    let order = shuffled_bags(bags, seed);
    (0..n_folds).map(|fold| order.iter().copied().skip(fold).step_by(n_folds).collect()).collect()
}

fn shuffled_bags(bags: &Bags, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..bags.n_bags()).collect();
    order.shuffle(&mut stream(seed, Stream::Split));
    order
}

fn take_out(bags: &Bags, held_out: &[usize]) -> Result<Split> {
    let mut is_held_out = vec![false; bags.n_bags()];
    for &bag in held_out {
        is_held_out[bag] = true;
    }
    let (held_out, train): (Vec<usize>, Vec<usize>) = (0..bags.n_bags()).partition(|&bag| is_held_out[bag]);
    Ok(Split { train: bags.select(&train)?, held_out: bags.select(&held_out)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes_of(partition: &Partition) -> Vec<usize> {
        (0..partition.n_bags()).map(|bag| partition.size(bag)).collect()
    }

    fn labelled(n_rows: u32, size: usize) -> Bags {
        let labels: Vec<u32> = (0..n_rows).map(|row| row % 2).collect();
        Bags::from_labels(random(labels.len(), &Sizes::Fixed(size), 1).unwrap(), &labels, 2).unwrap()
    }

    #[test]
    fn every_row_is_dealt_once_and_a_seed_deals_the_same_again() {
        for sizes in [Sizes::Fixed(7), Sizes::OneOf(vec![1, 5, 30]), Sizes::Range(2..=9)] {
            let bagging = random(200, &sizes, 3).unwrap();
            let mut rows: Vec<u32> =
                (0..bagging.n_bags()).flat_map(|bag| bagging.members(bag).to_vec()).collect();
            rows.sort_unstable();
            assert!(rows.into_iter().eq(0..200));
            assert_eq!(bagging, random(200, &sizes, 3).unwrap());
            assert_ne!(bagging, random(200, &sizes, 4).unwrap());
        }
    }

    #[test]
    fn sizes_are_those_asked_for_but_for_the_last() {
        let drawn = sizes_of(&random(1000, &Sizes::OneOf(vec![4, 64]), 5).unwrap());
        let (last, whole) = drawn.split_last().unwrap();
        assert!(whole.iter().all(|size| [4, 64].contains(size)) && whole.contains(&4) && whole.contains(&64));
        assert!((1..=64).contains(last));
        let drawn = sizes_of(&random(1000, &Sizes::Range(3..=5), 5).unwrap());
        assert!(drawn[..drawn.len() - 1].iter().all(|size| (3..=5).contains(size)));
        assert_eq!(sizes_of(&random(10, &Sizes::Fixed(64), 5).unwrap()), [10]);
    }

    #[test]
    fn rows_with_one_key_share_a_bag() {
        let (keys, partition) = by_key(&["b", "a", "b", "c", "a", "b"]).unwrap();
        assert_eq!(keys, ["a", "b", "c"]);
        assert_eq!(partition.members(1), [0, 2, 5]);
    }

    #[test]
    fn noise_is_added_as_declared() {
        // 2,000 draws of variance 2·3²: their mean square has a relative standard error of √(5/2000) = 0.05.
        let bags = labelled(20_000, 10);
        let noisy = add_noise(&bags, Noise::Laplace(vec![3.0; 2000]), 4).unwrap();
        let differences = &noisy.counts() - &bags.counts();
        let square = differences.column(1).mapv(|noise| noise * noise).mean().unwrap();
        assert!((square / 18.0 - 1.0).abs() < 0.2, "{square}");
        assert!(differences.rows().into_iter().all(|line| line.sum().abs() < 1e-9));
        assert!(add_noise(&bags, Noise::Gaussian(vec![1.0; 3]), 4).is_err());
    }

    #[test]
    fn a_split_parts_the_bags() {
        let bags = labelled(103, 10);
        let Split { train, held_out } = split(&bags, 0.3, 9).unwrap();
        assert_eq!((train.n_bags(), held_out.n_bags()), (8, 3));
        let mut rows = [train.rows(), held_out.rows()].concat();
        rows.sort_unstable();
        assert_eq!(rows, bags.rows());
        assert_eq!(split(&bags, 0.001, 9).unwrap().held_out.n_bags(), 1);
    }

    #[test]
    fn each_bag_is_held_out_in_one_fold() {
        let bags = labelled(103, 10);
        let folds = folds(&bags, 4, 9).unwrap();
        let mut rows: Vec<u32> = folds.iter().flat_map(|fold| fold.held_out.rows()).collect();
        rows.sort_unstable();
        assert_eq!(rows, bags.rows());
        for fold in &folds {
            assert_eq!(fold.train.n_bags() + fold.held_out.n_bags(), bags.n_bags());
            assert!((2..=3).contains(&fold.held_out.n_bags()));
        }
    }

    #[test]
    fn refuses_sizes_and_shares_that_make_no_sense() {
        assert!(random(10, &Sizes::Fixed(0), 1).is_err());
        assert!(random(10, &Sizes::OneOf(vec![]), 1).is_err());
        assert!(random(10, &Sizes::OneOf(vec![3, 0]), 1).is_err());
        assert!(random(10, &Sizes::Range(0..=3), 1).is_err());
        assert!(random(0, &Sizes::Fixed(3), 1).is_err());
        let bags = labelled(20, 5);
        for share in [0.0, 1.0, -0.5, f64::NAN] {
            assert!(split(&bags, share, 1).is_err());
        }
        assert!(folds(&bags, 1, 1).is_err());
        assert!(folds(&bags, 5, 1).is_err());
    }
}
