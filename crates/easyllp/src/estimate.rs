//! Row-level metrics from bag counts, with confidence intervals.
//!
//! The bags must **not** be training bags, and they must be random: rows were grouped regardless of
//! their labels. N rows are in n bags of sizes k_i, with counts k_i α_ic. A function g(row, class)
//! has the sum S_ic over a bag and the mean ḡ_c. A *control variate* q(row, class) is any
//! prediction of the label: the better it is, the smaller the variance. With r̄_ic = α_ic − mean
//! q_c in the bag, r̂ the same over all rows, and κ = (N−1)/(N(n−1)):
//!
//! ```text
//! mean of g      θ = mean Σ_c q_c g_c + Σ_c [r̂_c ḡ_c + κ Σ_i (r̄_ic − r̂_c)(S_ic − k_i ḡ_c)]
//! squared form   θ = Σ_c [r̂_c² + κ Σ_i k_i (r̄_ic − r̂_c)²],   the mean of Σ_c (y_c − q_c)²
//! ```
//!
//! Both are exactly unbiased over all random assignments of the rows to bags of these sizes; q = 0
//! gives the plain mean. Zero-mean noise leaves the first form unbiased; the second form subtracts
//! the variance of declared noise.
//!
//! The squared form has the smaller variance in most cases. With q the predicted probability it is
//! the Brier score; with q the predicted class, half the sum is the error rate. For a weak model
//! and rare positives the mean, with the predicted probability as control variate, may be better.
//! It is used if its standard error is expected to be far smaller given the predicted
//! probabilities; [`Form`] records the choice. Choosing by the observed counts would bias both.
//! Standard errors follow from the variation of the bags' contributions.
//!
//! Rates, curves and ranks are functions of means of y_c·w, where w selects rows or is a row's
//! rank. Their standard errors follow by the delta method.

mod bag_sums;
mod bootstrap;
mod brier;
mod confusion;
mod figures;
mod groups;
mod inversion;
mod joint;
mod outlook;
mod parts;
mod ranks;
mod squares;
mod statistic;
mod threshold;

pub use bag_sums::BagSums;
pub use confusion::Confusion;
pub use groups::{Calibration, CalibrationGroup, LiftRow};
pub use threshold::AtThreshold;

use crate::bags::Bags;
use crate::error::{Error, Result};
use crate::predictions::{Predictions, Reader};
use ndarray::Axis;
use rayon::prelude::*;
use serde::Serialize;
use squares::Squares;
use statistic::Statistic;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// What a confidence interval covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scope {
    /// The mean over the population that the rows were drawn from.
    #[default]
    Population,
    /// The mean over these very rows. Only the assignment to bags and the noise are random; with
    /// row labels nothing is.
    TheseRows,
}

/// How confidence intervals are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Intervals {
    /// From standard errors and the known distribution of an estimate.
    #[default]
    StandardErrors,
    /// By the bootstrap over bags. It is slower, and also unreliable with few bags; intervals may
    /// be asymmetric. The squared calibration error keeps its own interval.
    Bootstrap {
        /// The number of draws, from 100 to a million; with 2,000 the ends depend little on the
        /// seed.
        draws: usize,
        /// The seed of the draws.
        seed: u64,
    },
}

/// The form of an estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// A mean over rows, or a function of such means.
    Mean,
    /// Squared residuals of bags.
    Squares,
}

/// A metric by which two models can be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// Log loss: mean −log probability of the true class.
    LogLoss,
    /// Brier score: mean squared difference of predicted probability and truth.
    Brier,
    /// Error rate: the share of wrong predictions.
    Error,
    /// The area under the ROC curve.
    Auc,
}

/// An estimated metric with its standard error and confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    /// The estimate. With few bags it may leave its natural range.
    pub value: f64,
    /// Its standard error.
    pub standard_error: f64,
    /// The interval's lower end, clipped to the natural range.
    pub low: f64,
    /// The interval's upper end, likewise.
    pub high: f64,
    /// Its form.
    pub form: Form,
    /// Whether the value is outside its natural range, which happens with few bags: an AUC above 1,
    /// a Brier score below 0.
    pub outside_range: bool,
    /// The interval's ends before they were clipped.
    #[serde(skip)]
    unclipped: [f64; 2],
    /// The natural range.
    #[serde(skip)]
    range: [f64; 2],
}

impl Estimate {
    /// An estimate of a quantity that may be any number.
    pub fn new(value: f64, standard_error: f64, interval: [f64; 2], form: Form) -> Self {
        let [low, high] = interval;
        let range = [f64::NEG_INFINITY, f64::INFINITY];
        Self { value, standard_error, low, high, form, outside_range: false, unclipped: interval, range }
    }

    /// Whether the interval covers a value.
    pub fn covers(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// The estimate of one minus the quantity.
    fn complement(self) -> Self {
        let mirrored = |[low, high]: [f64; 2]| [1.0 - high, 1.0 - low];
        Self {
            value: 1.0 - self.value,
            low: 1.0 - self.high,
            high: 1.0 - self.low,
            unclipped: mirrored(self.unclipped),
            range: mirrored(self.range),
            ..self
        }
    }

    /// The estimate with its interval clipped to the natural range.
    #[must_use]
    pub fn clipped(self, least: f64, most: f64) -> Self {
        /// Rounding alone does not count as outside.
        const ROUNDING: f64 = 1e-9;
        Self {
            low: self.low.clamp(least, most),
            high: self.high.clamp(least, most),
            outside_range: self.value < least - ROUNDING || self.value > most + ROUNDING,
            range: [least, most],
            ..self
        }
    }
}

/// Estimates row-level metrics from bag counts. By default intervals have level 0.95 and cover the
/// population mean.
///
/// ```
/// use easyllp::{Bags, Estimator, Predictions, bagging, loss::Link};
/// use ndarray::Array2;
///
/// // 2000 rows whose score is right in four cases of five; bags of 10 know the labels' counts only.
/// let labels: Vec<u32> = (0..2000).map(|row| row % 2).collect();
/// let scores = Array2::from_shape_fn((2000, 1), |(row, _)| {
///     let right = (row / 2) % 5 != 0;
///     if (labels[row] == 1) == right { 1.0_f32 } else { -1.0 }
/// });
/// let partition = bagging::random(2000, &bagging::Sizes::Fixed(10), 1)?;
/// let bags = Bags::from_labels(partition, &labels, 2)?;
///
/// let accuracy = Estimator::new(&bags)?.accuracy(&Predictions::new(scores.view(), Link::Logit)?)?;
/// assert!(accuracy.covers(0.8) && accuracy.standard_error < 0.03);
/// # Ok::<(), easyllp::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Estimator<'b> {
    bags: &'b Bags,
    level: f64,
    scope: Scope,
    intervals: Intervals,
}

impl<'b> Estimator<'b> {
    /// The maximum number of draws; more do not improve an interval.
    const MOST_DRAWS: usize = 1_000_000;

    /// Requires at least two bags.
    pub fn new(bags: &'b Bags) -> Result<Self> {
        if bags.n_bags() < 2 {
            return Err(Error::TooFewBags { what: "an estimate", needed: 2, got: bags.n_bags() });
        }
        Ok(Self { bags, level: 0.95, scope: Scope::default(), intervals: Intervals::default() })
    }

    /// Sets the confidence level, between 0 and 1.
    pub fn level(self, level: f64) -> Result<Self> {
        if level > 0.0 && level < 1.0 {
            Ok(Self { level, ..self })
        } else {
            Err(Error::Setting { name: "level", value: level.to_string(), expected: "between 0 and 1" })
        }
    }

    /// Sets what intervals cover.
    #[must_use]
    pub fn scope(self, scope: Scope) -> Self {
        Self { scope, ..self }
    }

    /// Sets how intervals are computed.
    pub fn intervals(self, intervals: Intervals) -> Result<Self> {
        match intervals {
            Intervals::Bootstrap { draws, .. } if !(100..=Self::MOST_DRAWS).contains(&draws) => {
                let value = draws.to_string();
                Err(Error::Setting {
                    name: "number of bootstrap draws",
                    value,
                    expected: "from 100 to 1,000,000",
                })
            }
            _ => Ok(Self { intervals, ..self }),
        }
    }

    /// The mean over rows of g(row, true class), for any function of a row index and a class.
    pub fn mean(&self, g: impl Fn(usize, usize) -> f64 + Sync) -> Estimate {
        self.mean_with_control(g, |_, _| 0.0)
    }

    /// The same with a control variate q(row, class): a prediction of the label that sums to one
    /// over the classes.
    pub fn mean_with_control(
        &self,
        g: impl Fn(usize, usize) -> f64 + Sync,
        q: impl Fn(usize, usize) -> f64 + Sync,
    ) -> Estimate {
        let sums = self.sums(
            || (),
            |(), _| (),
            |(), _, row, line| {
                line.g.iter_mut().enumerate().for_each(|(class, value)| *value = g(row, class));
                line.q.iter_mut().enumerate().for_each(|(class, value)| *value = q(row, class));
            },
        );
        self.estimate_mean(&sums)
    }

    /// Log loss: mean −log probability of the true class, with the predicted probability as control
    /// variate.
    pub fn log_loss(&self, predictions: &Predictions) -> Result<Estimate> {
        Ok(self.estimate(&self.log_loss_statistic(predictions)?, 0.0, f64::INFINITY))
    }

    fn log_loss_statistic(&self, predictions: &Predictions) -> Result<Statistic> {
        predictions.check(self.bags)?;
        predictions.check_probabilities()?;
        let sums = self.sums_of(predictions, |reader, place, line| {
            reader.probabilities_and_log_losses(place, line.q, line.g);
        });
        Ok(self.mean_of(&sums))
    }

    /// Error rate: the share of rows whose predicted class is wrong.
    pub fn error(&self, predictions: &Predictions) -> Result<Estimate> {
        predictions.check(self.bags)?;
        let decides_by_probability = predictions.check_probabilities().is_ok();
        let estimate = if decides_by_probability && self.error_outlook(predictions).favours_mean() {
            self.estimate_mean(&self.sums_of(predictions, |reader, place, line| {
                reader.decision(place, line.g);
                line.g.iter_mut().for_each(|g| *g = 1.0 - *g);
                reader.probabilities(place, line.q);
            }))
        } else {
            self.squares_interval(&self.error_squares(predictions)?, 1.0)
        };
        Ok(estimate.clipped(0.0, 1.0))
    }

    fn estimate_mean(&self, sums: &BagSums) -> Estimate {
        self.estimate(&self.mean_of(sums), f64::NEG_INFINITY, f64::INFINITY)
    }

    fn error_squares(&self, predictions: &Predictions) -> Result<Squares> {
        predictions.check(self.bags)?;
        let sums = self.sums_of(predictions, |reader, place, line| reader.decision(place, line.q));
        Ok(self.squares_of(&sums.q, 0.5))
    }

    /// The paired difference of a metric between two models on the same bags. What both have in
    /// common cancels, so that small differences are detected.
    ///
    /// ```
    /// use easyllp::estimate::Metric;
    /// use easyllp::{Bags, Estimator, Predictions, bagging, loss::Link};
    /// use ndarray::Array2;
    ///
    /// let labels: Vec<u32> = (0..3000).map(|row| row % 2).collect();
    /// let scores = |wrong: usize| {
    ///     Array2::from_shape_fn((3000, 1), move |(row, _)| {
    ///         if (row % 2 == 1) == ((row / 2) % wrong != 0) { 1.0_f32 } else { -1.0 }
    ///     })
    /// };
    /// let (good, better) = (scores(5), scores(10)); // one in 5 wrong, one in 10
    /// let predictions = |scores| Predictions::new(scores, Link::Logit);
    /// let bags = Bags::from_labels(bagging::random(3000, &bagging::Sizes::Fixed(10), 1)?, &labels, 2)?;
    /// let (good, better) = (predictions(good.view())?, predictions(better.view())?);
    /// let difference = Estimator::new(&bags)?.difference(Metric::Error, &good, &better)?;
    /// assert!(difference.covers(0.1) && difference.low > 0.0);
    /// # Ok::<(), easyllp::Error>(())
    /// ```
    pub fn difference(&self, metric: Metric, first: &Predictions, second: &Predictions) -> Result<Estimate> {
        let of = |predictions: &Predictions| {
            Ok::<_, Error>(match metric {
                Metric::LogLoss => self.log_loss_statistic(predictions)?,
                Metric::Brier => self.brier_squares(predictions)?.statistic,
                Metric::Error => self.error_squares(predictions)?.statistic,
                Metric::Auc => self.auc_statistic(predictions)?,
            })
        };
        let difference = of(first)?.minus(&of(second)?);
        Ok(self.estimate(&difference, f64::NEG_INFINITY, f64::INFINITY))
    }

    /// Accuracy: the share of rows whose predicted class is right.
    pub fn accuracy(&self, predictions: &Predictions) -> Result<Estimate> {
        Ok(self.error(predictions)?.complement())
    }

    /// The same sums where g and q come from predictions.
    fn sums_of(
        &self,
        predictions: &Predictions,
        fill: impl Fn(&Reader, usize, &mut RowValues) + Sync,
    ) -> BagSums {
        self.sums(
            || predictions.reader(),
            |reader, members| reader.load(members.iter().map(|&row| row as usize)),
            |reader, place, _, line| fill(reader, place, line),
        )
    }

    /// One pass over the rows: per bag, the sums of q·g, of g and of q.
    ///
    /// `load` receives a few members of a bag; `fill` then writes g and q of each, by its position
    /// among them and its row.
    fn sums<R>(
        &self,
        reader: impl Fn() -> R + Sync,
        load: impl Fn(&mut R, &[u32]) + Sync,
        fill: impl Fn(&R, usize, usize, &mut RowValues) + Sync,
    ) -> BagSums {
        /// Bags per task of a thread.
        const CHUNK: usize = 256;
        let bags = self.bags;
        let n_classes = bags.n_classes();
        let mut sums = BagSums::new(bags.n_bags(), n_classes);
        let chunks = sums
            .own
            .axis_chunks_iter_mut(Axis(0), CHUNK)
            .into_par_iter()
            .zip(sums.g.axis_chunks_iter_mut(Axis(0), CHUNK))
            .zip(sums.q.axis_chunks_iter_mut(Axis(0), CHUNK))
            .enumerate();
        chunks.for_each(|(chunk, ((mut own, mut g_sums), mut q_sums))| {
            let mut reader = reader();
            let (mut g, mut q) = (vec![0.0; n_classes], vec![0.0; n_classes]);
            let lines = own.iter_mut().zip(g_sums.rows_mut()).zip(q_sums.rows_mut());
            for (bag, ((own, mut g_sums), mut q_sums)) in lines.enumerate() {
                let contiguous = "lines of a matrix by rows";
                let g_sums = g_sums.as_slice_mut().expect(contiguous);
                let q_sums = q_sums.as_slice_mut().expect(contiguous);
                for members in bags.members(chunk * CHUNK + bag).chunks(Reader::AT_ONCE) {
                    load(&mut reader, members);
                    for (place, &row) in members.iter().enumerate() {
                        fill(&reader, place, row as usize, &mut RowValues { g: &mut g, q: &mut q });
                        for (((g, q), g_sum), q_sum) in g.iter().zip(&q).zip(&mut *g_sums).zip(&mut *q_sums) {
                            *own += q * g;
                            *g_sum += g;
                            *q_sum += q;
                        }
                    }
                }
            }
        });
        sums
    }

    fn mean_of(&self, sums: &BagSums) -> Statistic {
        let bags = self.bags;
        let (n_rows, n_bags) = (bags.n_members() as f64, bags.n_bags() as f64);
        let kappa = (n_rows - 1.0) / (n_rows * (n_bags - 1.0));
        let residuals = &bags.counts() - &sums.q;
        let residual = residuals.sum_axis(Axis(0)) / n_rows;
        let g = sums.g.sum_axis(Axis(0)) / n_rows;
        let own = sums.own.sum() / n_rows;

        let mut covariances = Vec::with_capacity(bags.n_bags());
        let mut spreads = Vec::with_capacity(bags.n_bags());
        for (bag, size) in bags.sizes().enumerate() {
            let k = size as f64;
            let (mut covariance, mut spread) = (0.0, sums.own[bag] - k * own);
            for class in 0..bags.n_classes() {
                let of_residual = residuals[[bag, class]] - k * residual[class];
                let of_g = sums.g[[bag, class]] - k * g[class];
                covariance += kappa * of_residual / k * of_g;
                spread += g[class] * of_residual + residual[class] * of_g;
            }
            covariances.push(covariance);
            spreads.push(spread / n_rows);
        }
        let covariance: f64 = covariances.iter().sum();
        let value = own + residual.dot(&g) + covariance;
        let influence = |bag: usize| {
            let of_bags = covariances[bag] - covariance / n_bags;
            if self.scope == Scope::Population { of_bags + spreads[bag] } else { of_bags }
        };
        // For these rows the pooled residual is not random, except for its noise.
        let pooled = if self.scope == Scope::TheseRows { g.to_vec() } else { vec![0.0; bags.n_classes()] };
        Statistic { value, influence: (0..bags.n_bags()).map(influence).collect(), pooled }
    }

    /// The covariance that noise adds to the pooled counts' part of two sums with these class
    /// weights.
    fn pooled_noise(&self, first: &[f64], second: &[f64]) -> f64 {
        if self.scope == Scope::Population || !self.bags.has_noise() {
            return 0.0;
        }
        let bags = self.bags;
        let n_classes = bags.n_classes() as f64;
        let middle = |weights: &[f64]| weights.iter().sum::<f64>() / n_classes;
        let (middle, of_second) = (middle(first), middle(second));
        // Class counts of a bag sum to its size, so only differences between the weights matter.
        let contrast = first.iter().zip(second).map(|(a, b)| (a - middle) * (b - of_second)).sum::<f64>()
            * n_classes
            / (n_classes - 1.0);
        contrast * (0..bags.n_bags()).map(|bag| bags.count_variance(bag)).sum::<f64>()
            / (bags.n_members() as f64).powi(2)
    }

    fn t_quantile(&self) -> f64 {
        let t = StudentsT::new(0.0, 1.0, self.bags.n_bags() as f64 - 1.0).expect("two bags or more");
        t.inverse_cdf(0.5 + 0.5 * self.level)
    }

    pub(crate) fn t_interval(&self, value: f64, standard_error: f64, form: Form) -> Estimate {
        let reach = self.t_quantile() * standard_error;
        Estimate::new(value, standard_error, [value - reach, value + reach], form)
    }
}

/// g and q of one row, for each class.
struct RowValues<'l> {
    g: &'l mut [f64],
    q: &'l mut [f64],
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bags::{Noise, Partition};
    use crate::loss::Link;
    use crate::metrics;
    use ndarray::{Array2, array};

    #[test]
    fn bags_of_one_give_the_true_figures() {
        let scores = array![[0.5_f32], [-1.0], [2.0], [0.25], [-0.75]];
        let labels = [1, 0, 0, 1, 1];
        let bags =
            Bags::from_labels(Partition::new(5, [[3], [1], [0], [4], [2]]).unwrap(), &labels, 2).unwrap();
        let predictions = Predictions::new(scores.view(), Link::Logit).unwrap();
        let estimator = Estimator::new(&bags).unwrap();
        let close =
            |estimate: Estimate, truth: f64| assert!((estimate.value - truth).abs() < 1e-12, "{estimate:?}");
        close(estimator.log_loss(&predictions).unwrap(), metrics::log_loss(&predictions, &labels).unwrap());
        close(estimator.brier(&predictions).unwrap(), metrics::brier(&predictions, &labels).unwrap());
        close(estimator.accuracy(&predictions).unwrap(), metrics::accuracy(&predictions, &labels).unwrap());
    }

    #[test]
    fn a_mean_by_hand() {
        // Two bags of two, one positive in the first; g is the row number for positives, 0 for negatives.
        let bags =
            Bags::binary(Partition::new(4, [[0, 1], [2, 3]]).unwrap(), &[1.0, 0.0], Noise::None).unwrap();
        let mean = Estimator::new(&bags).unwrap().mean(|row, class| (row * class) as f64);
        // p̂ = 1/4, ḡ₁ = 3/2, S = (1, 5), κ = 3/4: 3/8 + 3/4·[(1/4)(−2) + (−1/4)(2)] = 3/8 − 3/4
        assert!((mean.value + 0.375).abs() < 1e-12);
    }

    #[test]
    fn no_error_seen_is_no_proof_of_none() {
        // 500 single rows, all right: by Wilson's interval the error is at most t²/(n + t²).
        let labels: Vec<u32> = (0..500).map(|row| row % 2).collect();
        let scores = Array2::from_shape_fn((500, 1), |(row, _)| if row % 2 == 1 { 1.0_f32 } else { -1.0 });
        let bags =
            Bags::from_labels(Partition::new(500, (0..500).map(|row| [row])).unwrap(), &labels, 2).unwrap();
        let predictions = Predictions::new(scores.view(), Link::Logit).unwrap();
        let error = Estimator::new(&bags).unwrap().error(&predictions).unwrap();
        assert!(error.value.abs() < 1e-12 && error.low.abs() < 1e-12);
        assert!((error.high - 3.86 / 500.0).abs() < 1e-4, "{error:?}");
        // One error in 100 single rows: Wilson gives 0.0018 to 0.0545; with t for the normal quantile a little wider.
        let first = bags.select(&(0..100).collect::<Vec<_>>()).unwrap();
        let mut scores = scores.clone();
        scores[[7, 0]] = -1.0;
        let predictions = Predictions::new(scores.view(), Link::Logit).unwrap();
        let error = Estimator::new(&first).unwrap().error(&predictions).unwrap();
        assert!((error.low - 0.0018).abs() < 2e-4 && (0.0545..0.059).contains(&error.high), "{error:?}");
    }

    #[test]
    fn labels_of_these_rows_leave_nothing_to_chance() {
        let labels: Vec<u32> = (0..60).map(|row| row * row % 7 % 3).collect();
        let singles = Partition::new(60, (0..60).map(|row| [row])).unwrap();
        for n_classes in [2, 3] {
            let labels: Vec<u32> = labels.iter().map(|&label| label.min(n_classes - 1)).collect();
            let bags = Bags::from_labels(singles.clone(), &labels, n_classes as usize).unwrap();
            let columns = if n_classes == 2 { 1 } else { 3 };
            let scores =
                Array2::from_shape_fn((60, columns), |(row, class)| (row * (class + 2) % 11) as f32 - 4.0);
            // No error at all is as certain as any other number of them.
            let right = Array2::from_shape_fn((60, columns), |(row, class)| {
                let is_of_class = labels[row] as usize == if columns == 1 { 1 } else { class };
                if is_of_class { 9.0_f32 } else { -9.0 }
            });
            for scores in [scores, right] {
                let predictions = Predictions::new(scores.view(), Link::Logit).unwrap();
                let estimator = Estimator::new(&bags).unwrap();
                let drawn = estimator.intervals(Intervals::Bootstrap { draws: 100, seed: 1 }).unwrap();
                for of_rows in [estimator.scope(Scope::TheseRows), drawn.scope(Scope::TheseRows)] {
                    for (name, figure) in of_rows.metrics(&predictions).unwrap() {
                        let width = figure.high - figure.low;
                        assert!(width.abs() < 1e-12 && figure.standard_error < 1e-12, "{name}: {figure:?}");
                        assert!((figure.high - figure.value).abs() < 1e-9, "{name}: {figure:?}");
                    }
                }
                let (_, log_loss) = estimator.metrics(&predictions).unwrap()[0];
                assert!(log_loss.high > log_loss.low, "the population is still unknown: {log_loss:?}");
            }
        }
    }

    #[test]
    fn refuses_one_bag_and_scores_of_another_table() {
        let bags =
            Bags::binary(Partition::new(4, [[0, 1], [2, 3]]).unwrap(), &[1.0, 0.0], Noise::None).unwrap();
        assert!(Estimator::new(&bags.select(&[0]).unwrap()).is_err());
        assert!(Estimator::new(&bags).unwrap().level(1.0).is_err());
        let scores = array![[0.0_f32], [1.0], [0.0]];
        let short = Predictions::new(scores.view(), Link::Logit).unwrap();
        assert!(Estimator::new(&bags).unwrap().error(&short).is_err());
    }
}
