//! Statistics: a value with each bag's influence on it.
//!
//! Smooth functions of statistics are statistics again, by the delta method: ratios, products,
//! differences of two models on the same bags.

use super::{Estimate, Estimator, Form, Intervals, Scope};

/// An estimate without an interval.
#[derive(Debug, Clone)]
pub(super) struct Statistic {
    pub(super) value: f64,
    /// The influence of each bag; they sum to nearly zero.
    pub(super) influence: Vec<f64>,
    /// Weights of the pooled class counts, if these are random only by declared noise.
    pub(super) pooled: Vec<f64>,
}

impl Statistic {
    /// A function of statistics, given its value and its derivatives.
    pub(super) fn of(value: f64, derivatives: &[(f64, &Self)]) -> Self {
        let (_, first) = derivatives[0];
        let sum = |part: fn(&Self) -> &[f64]| {
            let mut sum = vec![0.0; part(first).len()];
            for (derivative, statistic) in derivatives {
                for (sum, value) in sum.iter_mut().zip(part(statistic)) {
                    *sum += derivative * value;
                }
            }
            sum
        };
        Self { value, influence: sum(|of| &of.influence), pooled: sum(|of| &of.pooled) }
    }

    pub(super) fn minus(&self, other: &Self) -> Self {
        Self::of(self.value - other.value, &[(1.0, self), (-1.0, other)])
    }

    pub(super) fn over(&self, other: &Self) -> Self {
        let ratio = self.value / other.value;
        Self::of(ratio, &[(1.0 / other.value, self), (-ratio / other.value, other)])
    }

    /// 1 − the statistic.
    pub(super) fn complement(&self) -> Self {
        Self::of(1.0 - self.value, &[(-1.0, self)])
    }
}

impl Estimator<'_> {
    /// Whether the estimate is exact: the mean over these very rows is asked for, and each row is a
    /// bag of its own.
    pub(super) fn is_certain(&self) -> bool {
        let bags = self.bags;
        self.scope == Scope::TheseRows && bags.n_members() == bags.n_bags() && !bags.has_noise()
    }

    /// The covariance of two statistics.
    pub(super) fn covariance(&self, first: &Statistic, second: &Statistic) -> f64 {
        if self.is_certain() {
            return 0.0;
        }
        let n_bags = self.bags.n_bags() as f64;
        let of_bags: f64 = first.influence.iter().zip(&second.influence).map(|(a, b)| a * b).sum();
        n_bags / (n_bags - 1.0) * of_bags + self.pooled_noise(&first.pooled, &second.pooled)
    }

    pub(super) fn standard_error(&self, statistic: &Statistic) -> f64 {
        self.covariance(statistic, statistic).sqrt()
    }

    /// The estimate with its interval, clipped to its natural range.
    pub(super) fn estimate(&self, statistic: &Statistic, least: f64, most: f64) -> Estimate {
        let estimate = match self.intervals {
            Intervals::StandardErrors => {
                self.t_interval(statistic.value, self.standard_error(statistic), Form::Mean)
            }
            Intervals::Bootstrap { draws, seed } => {
                self.bootstrap_interval(statistic, Form::Mean, draws, seed)
            }
        };
        estimate.clipped(least, most)
    }
}
