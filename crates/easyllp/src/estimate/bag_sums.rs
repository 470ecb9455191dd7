//! Mergeable sums over the rows of each bag: rows may be scored anywhere, and a bag may be split
//! between machines.

use super::{Estimate, Estimator};
use crate::error::{Error, Result, check_length};
use ndarray::{Array1, Array2};

/// Per bag, the sums over its rows of g(row, class) and of the control variate q(row, class): all
/// that estimates need of rows.
///
/// Sums of parts [`merge`](Self::merge) in any order, up to rounding. The g and q of each metric:
///
/// | metric | g | q | estimate |
/// |---|---|---|---|
/// | log loss | −log of the class's probability | its probability | [`mean_from`](Estimator::mean_from) |
/// | Brier score | any | the class's probability | [`squares_from`](Estimator::squares_from), half of it for two classes |
/// | error | any | 1 for the predicted class, 0 for others | [`squares_from`](Estimator::squares_from), half of it |
///
/// ```
/// use easyllp::estimate::BagSums;
/// use easyllp::{Bags, Estimator, Predictions, bagging, loss::Link};
/// use ndarray::Array2;
///
/// let labels: Vec<u32> = (0..400).map(|row| row % 2).collect();
/// let score = |row: usize| if (row % 2 == 1) == (row % 7 > 0) { 1.0 } else { -1.0 };
/// let bags = Bags::from_labels(bagging::random(400, &bagging::Sizes::Fixed(8), 1)?, &labels, 2)?;
/// let estimator = Estimator::new(&bags)?;
///
/// // Two machines, of which each has every other row, whatever its bag.
/// let mut parts = [0, 1].map(|_| BagSums::new(bags.n_bags(), 2));
/// for bag in 0..bags.n_bags() {
///     for &row in bags.members(bag) {
///         let probability = 1.0 / (1.0 + f64::exp(-score(row as usize)));
///         let q = [1.0 - probability, probability];
///         parts[row as usize % 2].add(bag, &q.map(|q| -q.ln()), &q)?;
///     }
/// }
/// let [mut sums, other] = parts;
/// sums.merge(&other)?;
/// let log_loss = estimator.mean_from(&sums)?;
///
/// let scores = Array2::from_shape_fn((400, 1), |(row, _)| score(row) as f32);
/// let here = estimator.log_loss(&Predictions::new(scores.view(), Link::Logit)?)?;
/// assert!((log_loss.value - here.value).abs() < 1e-9);
/// # Ok::<(), easyllp::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct BagSums {
    /// Σ_c q_c g_c.
    pub(super) own: Array1<f64>,
    /// g, a column per class.
    pub(super) g: Array2<f64>,
    /// q, a column per class.
    pub(super) q: Array2<f64>,
}

impl BagSums {
    /// Sums of no rows.
    pub fn new(n_bags: usize, n_classes: usize) -> Self {
        let zeros = Array2::zeros((n_bags, n_classes));
        Self { own: Array1::zeros(n_bags), g: zeros.clone(), q: zeros }
    }

    /// Adds a row of a bag: its g and q for each class.
    pub fn add(&mut self, bag: usize, g: &[f64], q: &[f64]) -> Result<()> {
        let (n_bags, n_classes) = self.g.dim();
        if bag >= n_bags {
            return Err(Error::NoSuchBag { bag, n_bags });
        }
        check_length("classes", n_classes, g.len())?;
        check_length("classes", n_classes, q.len())?;
        for (class, (g, q)) in g.iter().zip(q).enumerate() {
            self.own[bag] += q * g;
            self.g[[bag, class]] += g;
            self.q[[bag, class]] += q;
        }
        Ok(())
    }

    /// Adds the sums of other rows of the same bags.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        check_length("bags", self.g.nrows(), other.g.nrows())?;
        check_length("classes", self.g.ncols(), other.g.ncols())?;
        self.own += &other.own;
        self.g += &other.g;
        self.q += &other.q;
        Ok(())
    }
}

impl Estimator<'_> {
    /// The mean over rows of g(row, true class), with q as control variate. The sums must hold all
    /// rows of the bags.
    pub fn mean_from(&self, sums: &BagSums) -> Result<Estimate> {
        self.check_sums(sums)?;
        Ok(self.estimate_mean(sums))
    }

    /// The mean over rows of `share` · Σ_c (y_c − q_c)², at least 0. The sums must hold all rows of
    /// the bags.
    pub fn squares_from(&self, sums: &BagSums, share: f64) -> Result<Estimate> {
        self.check_sums(sums)?;
        let expected = "a positive number";
        if !(share > 0.0 && share.is_finite()) {
            return Err(Error::Setting { name: "share of squares", value: share.to_string(), expected });
        }
        let most = 2.0 * share;
        Ok(self.squares_interval(&self.squares_of(&sums.q, share), most).clipped(0.0, most))
    }

    fn check_sums(&self, sums: &BagSums) -> Result<()> {
        check_length("bags", self.bags.n_bags(), sums.g.nrows())?;
        check_length("classes", self.bags.n_classes(), sums.g.ncols())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bagging::{Sizes, random};
    use crate::bags::Bags;
    use crate::loss::Link;
    use crate::predictions::Predictions;
    use crate::rounding::Sum;
    use crate::seed::{Stream, stream};
    use rand::RngExt;
    use rand::seq::SliceRandom;

    const N_ROWS: usize = 210;
    const N_CLASSES: usize = 3;

    fn g(row: usize, class: usize) -> f64 {
        ((row * N_CLASSES + class) as f64 * 0.7).sin() * 4.0
    }

    fn q(row: usize, class: usize) -> f64 {
        [0.5, 0.3, 0.2][(row + class) % N_CLASSES]
    }

    fn add(sums: &mut BagSums, bag: usize, row: usize) {
        let of = |f: fn(usize, usize) -> f64| [0, 1, 2].map(|class| f(row, class));
        sums.add(bag, &of(g), &of(q)).unwrap();
    }

    fn bags() -> Bags {
        let labels: Vec<u32> = (0..N_ROWS).map(|row| u32::try_from(row * row % 3).unwrap()).collect();
        let partition = random(N_ROWS, &Sizes::Fixed(7), 3).unwrap();
        Bags::from_labels(partition, &labels, N_CLASSES).unwrap()
    }

    #[test]
    fn parts_merge_to_the_whole_however_they_are_cut_and_ordered() {
        let bags = bags();
        let estimator = Estimator::new(&bags).unwrap();
        let whole = estimator.mean_with_control(g, q);
        let mut rows: Vec<(usize, usize)> = (0..bags.n_bags())
            .flat_map(|bag| bags.members(bag).iter().map(move |&row| (bag, row as usize)))
            .collect();
        let terms = |bag: usize, of: &dyn Fn(usize) -> f64| -> Sum {
            bags.members(bag).iter().map(|&row| of(row as usize)).collect()
        };
        for seed in 0..20 {
            let mut rng = stream(seed, Stream::Shuffle);
            rows.shuffle(&mut rng);
            let mut parts = vec![BagSums::new(bags.n_bags(), N_CLASSES); rng.random_range(1..9)];
            for &(bag, row) in &rows {
                let part = rng.random_range(0..parts.len());
                add(&mut parts[part], bag, row);
            }
            let mut sums = parts.pop().unwrap();
            for part in &parts {
                sums.merge(part).unwrap();
            }
            for bag in 0..bags.n_bags() {
                for class in 0..N_CLASSES {
                    assert!(terms(bag, &|row| g(row, class)).equals(sums.g[[bag, class]]));
                    assert!(terms(bag, &|row| q(row, class)).equals(sums.q[[bag, class]]));
                }
                let products: Sum = bags
                    .members(bag)
                    .iter()
                    .flat_map(|&row| (0..N_CLASSES).map(move |c| q(row as usize, c) * g(row as usize, c)))
                    .collect();
                assert!(products.equals(sums.own[bag]));
            }
            let merged = estimator.mean_from(&sums).unwrap();
            // No g is above 4; residuals of a bag are at most its size.
            let rounding = 4.0 * (N_ROWS * 7) as f64 * f64::EPSILON;
            assert!((merged.value - whole.value).abs() <= rounding, "{merged:?} {whole:?}");
            assert!((merged.standard_error - whole.standard_error).abs() <= rounding);
        }
    }

    #[test]
    #[expect(clippy::cast_possible_truncation, reason = "scores are f32")]
    fn metrics_follow_from_sums() {
        let bags = bags();
        let estimator = Estimator::new(&bags).unwrap();
        let scores = Array2::from_shape_fn((N_ROWS, N_CLASSES), |(row, class)| g(row, class) as f32);
        let predictions = Predictions::new(scores.view(), Link::Logit).unwrap();
        let mut reader = predictions.reader();
        let [mut probabilities, mut decisions] = [0, 1].map(|_| BagSums::new(bags.n_bags(), N_CLASSES));
        for bag in 0..bags.n_bags() {
            for &row in bags.members(bag) {
                let (mut q, mut losses) = ([0.0; N_CLASSES], [0.0; N_CLASSES]);
                reader.load([row as usize].into_iter());
                reader.probabilities_and_log_losses(0, &mut q, &mut losses);
                probabilities.add(bag, &losses, &q).unwrap();
                reader.decision(0, &mut q);
                decisions.add(bag, &losses, &q).unwrap();
            }
        }
        let close = |one: Estimate, other: Estimate| {
            assert!((one.value - other.value).abs() < 1e-12, "{one:?} {other:?}");
            assert!((one.high - other.high).abs() < 1e-12, "{one:?} {other:?}");
        };
        close(estimator.mean_from(&probabilities).unwrap(), estimator.log_loss(&predictions).unwrap());
        close(estimator.squares_from(&probabilities, 1.0).unwrap(), estimator.brier(&predictions).unwrap());
        close(estimator.squares_from(&decisions, 0.5).unwrap(), estimator.error(&predictions).unwrap());
    }

    #[test]
    fn refuses_sums_of_other_bags() {
        let bags = bags();
        let estimator = Estimator::new(&bags).unwrap();
        let mut sums = BagSums::new(bags.n_bags(), N_CLASSES);
        assert!(sums.merge(&BagSums::new(bags.n_bags() + 1, N_CLASSES)).is_err());
        assert!(sums.merge(&BagSums::new(bags.n_bags(), 2)).is_err());
        assert!(sums.add(bags.n_bags(), &[0.0; 3], &[0.0; 3]).is_err());
        assert!(sums.add(0, &[0.0; 2], &[0.0; 3]).is_err());
        assert!(estimator.mean_from(&BagSums::new(1, N_CLASSES)).is_err());
        assert!(estimator.squares_from(&sums, f64::NAN).is_err());
        assert!(estimator.squares_from(&BagSums::new(bags.n_bags(), 2), 0.5).is_err());
    }
}
