//! Recognise training bags, with a sketch of bounded size in the model file.
//!
//! Metrics on training bags are too good: a flexible model fits exactly their counts. A model file
//! therefore keeps hashes of its training bags, and evaluation checks its bags against them.
//!
//! The hash of a bag covers its rows' features in any order; only the smallest hashes are kept (a
//! bottom-k sketch). Evaluation bags with a hash in the sketch's range are a random sample, and the
//! share of them in the sketch estimates the share of training bags.
//!
//! If rows have few distinct values, bags can be equal by chance. The probability that a new bag
//! equals one of the n training bags is bounded in two ways, and the smaller bound is used:
//!
//! - A new row equals a training row with a probability d of about the share of training rows that
//!   are not unique (Good–Turing), so all of k different rows do with about d^k.
//! - If e of the n(n − 1)/2 pairs of training bags are equal, a new bag equals about 2e/(n − 1) of
//!   them. To allow for chance, (√e + 2)² replaces e.

use crate::bags::Bags;
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use xxhash_rust::xxh3::xxh3_64;

/// The maximum number of hashes.
const KEPT: usize = 512;

/// Digits of a hash.
const DIGITS: usize = 16;

/// A sketch of the bags that a model was trained on; the default is empty.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct TrainingBags {
    sketch: Sketch,
    /// The share of training rows that are not unique.
    repeated_rows: f64,
    /// The probability that a new bag equals a training bag, estimated from pairs of training bags.
    equal_bags: f64,
}

/// The share of evaluation bags that are training bags.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Overlap {
    /// The approximate share of bags, or of their rows, that the model was trained on, from 0 to 1.
    pub share: f64,
    /// Whether the share is of rows: the model was trained on row labels.
    pub is_of_rows: bool,
}

impl Overlap {
    /// The share, as text.
    pub fn words(self) -> String {
        let what = if self.is_of_rows { "rows" } else { "bags" };
        match self.share {
            share if share > 0.99 => format!("these {what}"),
            share if share < 0.01 => format!("some of these {what} (less than 1 %)"),
            share => format!("some of these {what} (about {:.0} %)", 100.0 * share),
        }
    }
}

impl TrainingBags {
    /// Creates the sketch of bags, given the hashes of all rows of the table; see [`Rows::hashes`].
    ///
    /// [`Rows::hashes`]: crate::Rows::hashes
    pub fn new(row_hashes: &[u64], bags: &Bags) -> Self {
        let mut members: Vec<u64> = bags.rows().into_iter().map(|row| row_hashes[row as usize]).collect();
        members.sort_unstable();
        let n_single = members.chunk_by(|a, b| a == b).filter(|alike| alike.len() == 1).count();
        let repeated_rows = 1.0 - n_single as f64 / members.len() as f64;
        let mut hashes: Vec<u64> = bag_hashes(row_hashes, bags).map(|bag| bag.hash).collect();
        hashes.sort_unstable();
        let pairs = |alike: &[u64]| 0.5 * alike.len() as f64 * (alike.len() as f64 - 1.0);
        let n_equal: f64 = hashes.chunk_by(|a, b| a == b).map(pairs).sum();
        let equal_bags = (2.0 * (n_equal.sqrt() + 2.0).powi(2) / (bags.n_bags() as f64 - 1.0)).min(1.0);
        hashes.dedup();
        hashes.truncate(KEPT);
        Self { sketch: Sketch(hashes), repeated_rows, equal_bags }
    }

    /// Checks for training bags among these bags, more than by chance; or for training rows, if the
    /// model was trained on row labels.
    ///
    /// ```
    /// use easyllp::{Bags, Noise, Partition, Rows, training_bags::TrainingBags};
    /// use ndarray::Array2;
    ///
    /// let rows = Rows::dense(Array2::from_shape_fn((40, 1), |(row, _)| row as f32))?;
    /// let bags = |first: u32| {
    ///     let members = (0..5).map(|bag| [first + 4 * bag, first + 4 * bag + 1, first + 4 * bag + 2]);
    ///     Bags::binary(Partition::new(40, members)?, &[1.0; 5], Noise::None)
    /// };
    /// let hashes = rows.hashes();
    /// let training = TrainingBags::new(&hashes, &bags(0)?);
    /// assert_eq!(training.overlap(&hashes, &bags(0)?).map(|found| found.share), Some(1.0));
    /// assert_eq!(training.overlap(&hashes, &bags(20)?), None);
    /// # Ok::<(), easyllp::Error>(())
    /// ```
    pub fn overlap(&self, row_hashes: &[u64], bags: &Bags) -> Option<Overlap> {
        let share = self.share_of(bag_hashes(row_hashes, bags));
        let of_rows = || self.share_of(single_hashes(row_hashes, bags));
        let is_of_rows = share.is_none();
        share.or_else(of_rows).map(|share| Overlap { share, is_of_rows })
    }

    /// The share of these hashes that are training bags, if it is more than by chance.
    fn share_of(&self, hashes: impl Iterator<Item = BagHash>) -> Option<f64> {
        let (mut n_in_reach, mut n_found, mut by_chance) = (0_u32, 0_u32, 0.0);
        for BagHash { hash, n_different } in hashes {
            if self.sketch.reaches(hash) {
                n_in_reach += 1;
                n_found += u32::from(self.sketch.holds(hash));
                by_chance += self.repeated_rows.powf(n_different as f64).min(self.equal_bags);
            }
        }
        // Four standard deviations of a Poisson number.
        let most_by_chance = by_chance + 4.0 * by_chance.sqrt();
        let is_overlap = n_found > 0 && f64::from(n_found) > most_by_chance;
        is_overlap.then(|| f64::from(n_found) / f64::from(n_in_reach))
    }

    /// What is invalid about a sketch read from a file.
    pub(crate) fn flaw(&self) -> Option<&'static str> {
        if [self.repeated_rows, self.equal_bags].iter().any(|share| !(0.0..=1.0).contains(share)) {
            return Some("shares of repeated training rows and bags must be from 0 to 1");
        }
        (!self.sketch.0.is_sorted_by(|a, b| a < b)).then_some("hashes of training bags must be sorted")
    }
}

struct BagHash {
    hash: u64,
    /// The number of its rows that are unique.
    n_different: usize,
}

fn bag_hashes<'b>(row_hashes: &'b [u64], bags: &'b Bags) -> impl Iterator<Item = BagHash> + 'b {
    let (mut members, mut bytes) = (Vec::new(), Vec::new());
    (0..bags.n_bags()).map(move |bag| {
        members.clear();
        members.extend(bags.members(bag).iter().map(|&row| row_hashes[row as usize]));
        members.sort_unstable();
        bytes.clear();
        bytes.extend(members.iter().flat_map(|hash: &u64| hash.to_le_bytes()));
        members.dedup();
        BagHash { hash: xxh3_64(&bytes), n_different: members.len() }
    })
}

/// The hashes of all rows in bags, as bags of one row.
fn single_hashes<'b>(row_hashes: &'b [u64], bags: &'b Bags) -> impl Iterator<Item = BagHash> + 'b {
    let rows = bags.rows().into_iter().map(|row| row_hashes[row as usize]);
    rows.map(|row| BagHash { hash: xxh3_64(&row.to_le_bytes()), n_different: 1 })
}

/// The smallest hashes, sorted. In a file they are one text of hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
struct Sketch(Vec<u64>);

impl Sketch {
    /// Whether this hash would have been kept.
    fn reaches(&self, hash: u64) -> bool {
        self.0.len() < KEPT || self.0.last().is_some_and(|&last| hash <= last)
    }

    fn holds(&self, hash: u64) -> bool {
        self.0.binary_search(&hash).is_ok()
    }
}

impl From<Sketch> for String {
    fn from(sketch: Sketch) -> Self {
        let mut text = Self::with_capacity(DIGITS * sketch.0.len());
        for hash in &sketch.0 {
            let _ = write!(text, "{hash:0DIGITS$x}");
        }
        text
    }
}

impl TryFrom<String> for Sketch {
    type Error = &'static str;

    fn try_from(text: String) -> std::result::Result<Self, Self::Error> {
        let flaw = "hashes of training bags must be at most 512 times 16 hexadecimal digits";
        let (hashes, rest) = text.as_bytes().as_chunks::<DIGITS>();
        if !rest.is_empty() || hashes.len() > KEPT {
            return Err(flaw);
        }
        let hash = |digits: &[u8; DIGITS]| {
            let is_hex = digits.iter().all(u8::is_ascii_hexdigit);
            let text = std::str::from_utf8(digits).ok().filter(|_| is_hex)?;
            u64::from_str_radix(text, 16).ok()
        };
        hashes.iter().map(hash).collect::<Option<Vec<u64>>>().map(Self).ok_or(flaw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bagging::{Sizes, random};
    use crate::bags::Partition;
    use crate::rows::Rows;
    use ndarray::Array2;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    /// Rows of random features that have so many different values each, and random bags of them.
    fn data(n_rows: usize, n_values: u32, size: usize, seed: u64) -> (Vec<u64>, Bags) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let value = || f32::from(u16::try_from(rng.random_range(0..n_values)).unwrap());
        let rows = Rows::dense(Array2::from_shape_simple_fn((n_rows, 3), value)).unwrap();
        let bags = Bags::from_labels(random(n_rows, &Sizes::Fixed(size), seed).unwrap(), &vec![0; n_rows], 2);
        (rows.hashes(), bags.unwrap())
    }

    /// Two tables, one after the other, with the bags of both.
    fn mixed(
        (mut first, of_first): (Vec<u64>, Bags),
        (second, of_second): (Vec<u64>, Bags),
    ) -> (Vec<u64>, Bags) {
        let n_first = u32::try_from(first.len()).unwrap();
        first.extend(second);
        let members = |bags: &Bags, shift: u32| -> Vec<Vec<u32>> {
            (0..bags.n_bags()).map(|bag| bags.members(bag).iter().map(|row| row + shift).collect()).collect()
        };
        let all = [members(&of_first, 0), members(&of_second, n_first)].concat();
        let n_rows = first.len();
        (first, Bags::from_labels(Partition::new(n_rows, all).unwrap(), &vec![0; n_rows], 2).unwrap())
    }

    /// All bags, half of them and all mixed with as many new ones are noticed; new ones alone are not, on 200 tables of each
    /// kind: many bags and few, of many rows and of one, of rows that repeat never, often, or nearly always.
    #[test]
    fn training_bags_are_noticed_and_new_ones_are_not() {
        for (n_rows, n_values, size) in
            [(20_000, 1000, 8), (400, 1000, 40), (3000, 1000, 1), (6000, 8, 1), (6000, 3, 4), (2000, 2, 10)]
        {
            for seed in 0..200 {
                if n_rows > 10_000 && seed >= 5 {
                    break;
                }
                let (hashes, bags) = data(n_rows, n_values, size, 2 * seed);
                let training = TrainingBags::new(&hashes, &bags);
                let new = data(n_rows, n_values, size, 2 * seed + 1);
                let name = format!("{n_rows} rows of {n_values} values in bags of {size}, {seed}");
                assert_eq!(training.overlap(&new.0, &new.1), None, "{name}");
                // Where nine rows in ten are seen again anyhow, bags of one tell nothing.
                if size == 1 && n_values < 10 {
                    continue;
                }
                let half: Vec<usize> = (0..bags.n_bags()).step_by(2).collect();
                let half = bags.select(&half).unwrap();
                for known in [&bags, &half] {
                    let share = training.overlap(&hashes, known).map(|found| found.share);
                    assert!(share.is_some_and(|share| share > 0.99), "{name}: {share:?}");
                }
                let (hashes, both) = mixed((hashes, bags), new);
                let share = training.overlap(&hashes, &both).map(|found| found.share);
                // The share of 1,024 bags in reach has a standard error of 0.016.
                assert!(share.is_some_and(|share| (share - 0.5).abs() < 0.1), "{name}: {share:?}");
            }
        }
    }

    /// A model of row labels has seen these rows, whatever bags they come in.
    #[test]
    fn rows_that_were_bags_of_one_are_noticed_in_any_bags() {
        for seed in 0..50 {
            let (hashes, singles) = data(3000, 1000, 1, 2 * seed);
            let training = TrainingBags::new(&hashes, &singles);
            let bags = |seed| data(3000, 1000, 6, seed);
            let found = training.overlap(&hashes, &bags(2 * seed).1).expect("training rows");
            assert!(found.is_of_rows && found.share > 0.99, "{found:?}");
            assert_eq!(found.words(), "these rows");
            let (new, of_new) = bags(2 * seed + 1);
            assert_eq!(training.overlap(&new, &of_new), None);
            // Bags of several rows are known as such alone.
            let training = TrainingBags::new(&hashes, &bags(2 * seed).1);
            assert_eq!(training.overlap(&hashes, &singles), None);
        }
    }

    #[test]
    fn the_order_of_rows_and_bags_does_not_matter() {
        let (hashes, bags) = data(100, 1000, 5, 1);
        let members: Vec<Vec<u32>> =
            (0..20).rev().map(|bag| bags.members(bag).iter().rev().copied().collect()).collect();
        let again = Bags::from_labels(Partition::new(100, members).unwrap(), &[0; 100], 2).unwrap();
        assert_eq!(TrainingBags::new(&hashes, &bags), TrainingBags::new(&hashes, &again));
    }

    #[test]
    fn is_bounded_and_refuses_what_no_training_writes() {
        let (hashes, bags) = data(20_000, 1000, 2, 1);
        let training = TrainingBags::new(&hashes, &bags);
        assert_eq!(training.sketch.0.len(), KEPT);
        let text = serde_json::to_string(&training).unwrap();
        assert!(text.len() < KEPT * DIGITS + 100);
        assert_eq!(serde_json::from_str::<TrainingBags>(&text).unwrap(), training);
        let read = |sketch: &str| {
            let text = format!("{{\"sketch\":\"{sketch}\",\"repeated_rows\":0.5,\"equal_bags\":0.5}}");
            serde_json::from_str::<TrainingBags>(&text)
        };
        for bad in ["0", "00000000000000zz", "+000000000000001", &"0".repeat((KEPT + 1) * DIGITS)] {
            assert!(read(bad).is_err(), "{bad}");
        }
        assert_eq!(read("").unwrap().flaw(), None);
        assert!(read(&"0".repeat(2 * DIGITS)).unwrap().flaw().is_some());
        let share = TrainingBags { repeated_rows: 1.5, ..TrainingBags::default() };
        assert!(share.flaw().is_some());
    }
}
