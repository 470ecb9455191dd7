//! The squared form: the mean of Σ_c (y_c − q_c)² from squared residuals of bags, with its
//! interval.

use super::statistic::Statistic;
use super::{Estimate, Estimator, Form, Intervals, Scope};
use ndarray::{Array2, Axis};
use statrs::distribution::{ChiSquared, ContinuousCDF};

/// The squared form, with what its interval needs.
pub(super) struct Squares {
    pub(super) statistic: Statistic,
    variance: f64,
    /// The variance divided by the squared value, if bag means were normal.
    normal: f64,
    /// The largest contribution of single rows if no bag shows a difference.
    single: f64,
    /// The part of the pooled residual.
    centre: f64,
}

impl Estimator<'_> {
    /// The mean of `share` · Σ_c (y_c − q_c)², from the sums of q over each bag.
    pub(super) fn squares_of(&self, q: &Array2<f64>, share: f64) -> Squares {
        let bags = self.bags;
        let (n_rows, n_bags) = (bags.n_members() as f64, bags.n_bags() as f64);
        let n_classes = bags.n_classes() as f64;
        let kappa = (n_rows - 1.0) / (n_rows * (n_bags - 1.0));
        let residuals = &bags.counts() - q;
        let residual = residuals.sum_axis(Axis(0)) / n_rows;

        let mut squares = Vec::with_capacity(bags.n_bags());
        let mut spreads = Vec::with_capacity(bags.n_bags());
        for (bag, size) in bags.sizes().enumerate() {
            let k = size as f64;
            let (mut square, mut spread) = (0.0, 0.0);
            for class in 0..bags.n_classes() {
                let of_residual = residuals[[bag, class]] - k * residual[class];
                square += of_residual * of_residual / k;
                spread += 2.0 * residual[class] * of_residual / n_rows;
            }
            squares.push(share * kappa * square);
            spreads.push(share * spread);
        }
        let within: f64 = squares.iter().sum();
        let mut value = share * residual.dot(&residual) + within;
        if bags.has_noise() {
            let total: f64 = (0..bags.n_bags()).map(|bag| bags.count_variance(bag)).sum();
            let by_size: f64 =
                (0..bags.n_bags()).map(|bag| bags.count_variance(bag) / bags.size(bag) as f64).sum();
            value -= share * n_classes * (total / n_rows.powi(2) + kappa * (by_size - total / n_rows));
        }
        let influence = |bag: usize| {
            let of_bags = squares[bag] - within / n_bags;
            if self.scope == Scope::Population { of_bags + spreads[bag] } else { of_bags }
        };
        let pooled = match self.scope {
            Scope::TheseRows => (&residual * (2.0 * share)).to_vec(),
            Scope::Population => vec![0.0; bags.n_classes()],
        };
        let influence = (0..bags.n_bags()).map(influence).collect();
        let statistic = Statistic { value, influence, pooled };
        // Bag means are near normal, so squares vary by at least this much; few bags may happen to show less.
        let singles = bags.sizes().map(|size| 1.0 / size as f64).sum::<f64>() / n_bags;
        let normal = 2.0 * (1.0 - singles) / ((n_bags - 1.0) * (n_classes - 1.0));
        let variance = self.covariance(&statistic, &statistic).max(normal * within * within);
        let centre = share * residual.dot(&residual);
        Squares { statistic, variance, normal, single: singles / n_bags, centre }
    }

    /// The interval of a mean of squares that is at most `most`.
    pub(super) fn squares_interval(&self, squares: &Squares, most: f64) -> Estimate {
        let &Squares { ref statistic, variance, normal, single, centre } = squares;
        if self.is_certain() {
            return self.t_interval(statistic.value, 0.0, Form::Squares);
        }
        if let Intervals::Bootstrap { draws, seed } = self.intervals {
            return self.bootstrap_interval(statistic, Form::Squares, draws, seed);
        }
        if self.bags.n_classes() == 2 && (self.scope == Scope::TheseRows || self.bags.has_noise()) {
            let of_pooled = self.pooled_noise(&statistic.pooled, &statistic.pooled);
            let dealt = self.dealt_squares(centre, of_pooled);
            return match self.scope {
                Scope::TheseRows => self.inverted(statistic.value, most, dealt),
                Scope::Population => {
                    let drawn = self.drawn_squares(centre);
                    self.inverted(statistic.value, most, |truth| dealt(truth).plus(drawn(truth)))
                }
            };
        }
        if self.bags.has_noise() {
            return self.t_interval(statistic.value, variance.sqrt(), Form::Squares);
        }
        self.square_interval(statistic.value, variance, normal, single)
    }

    /// An interval for a mean of squares. Its variance is `normal`·θ² from nearly normal bag means,
    /// plus a part from single rows that is nearly proportional to θ.
    ///
    /// For large bags the first part dominates: the estimate is nearly a multiple of χ² with
    /// degrees of freedom by its variance (Satterthwaite 1946). For small bags the second part
    /// dominates, as for a share of single rows: the interval holds all θ that a score test does
    /// not reject (Wilson 1927). If no bag shows a difference, `single` is the largest contribution
    /// of single rows.
    fn square_interval(&self, value: f64, variance: f64, normal: f64, single: f64) -> Estimate {
        let (standard_error, form) = (variance.sqrt(), Form::Squares);
        let rest = (variance - normal * value * value).max(0.0);
        if value > 0.0 && rest < 0.5 * variance {
            let chi = ChiSquared::new(2.0 * value * value / variance).expect("positive degrees of freedom");
            let end = |probability: f64| value * chi.freedom() / chi.inverse_cdf(probability);
            let tail = 0.5 - 0.5 * self.level;
            let (low, high) = (end(1.0 - tail), end(tail));
            return Estimate::new(value, standard_error, [low, high], form);
        }
        // (θ − value)² = t² (normal·θ² + slope·θ), a quadratic in θ.
        let t_squared = self.t_quantile().powi(2);
        let slope = if value > 0.0 { rest / value } else { single };
        let leading = 1.0 - t_squared * normal;
        let middle = 2.0 * value + t_squared * slope;
        let root = (middle * middle - 4.0 * leading * value * value).max(0.0).sqrt();
        let high = if leading > 0.0 { (middle + root) / (2.0 * leading) } else { f64::INFINITY };
        let low = 2.0 * value * value / (middle + root).max(f64::MIN_POSITIVE);
        Estimate::new(value, standard_error, [low, high], form)
    }
}
