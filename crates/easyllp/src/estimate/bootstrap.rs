//! Bootstrap intervals: bags are drawn with replacement.
//!
//! A draw changes an estimate by the sum of the influences of its bags, divided by the draw's own
//! standard error (the bootstrap-t of Efron 1981). Intervals are therefore asymmetric for skewed
//! estimates.

use super::statistic::Statistic;
use super::{Estimate, Estimator, Form};
use crate::seed::{Stream, stream};
use rand::RngExt;
use rayon::prelude::*;

impl Estimator<'_> {
    pub(super) fn bootstrap_interval(
        &self,
        statistic: &Statistic,
        form: Form,
        draws: usize,
        seed: u64,
    ) -> Estimate {
        let influence = &statistic.influence;
        let n_bags = influence.len() as f64;
        let mean = influence.iter().sum::<f64>() / n_bags;
        let draw = |draw: usize| {
            let mut rng = stream(seed, Stream::Bootstrap);
            rng.set_word_pos((draw * influence.len()) as u128 * WORDS);
            let (mut sum, mut squares) = (0.0, 0.0);
            for _ in influence {
                let value = influence[rng.random_range(0..influence.len())] - mean;
                sum += value;
                squares += value * value;
            }
            let variance = n_bags / (n_bags - 1.0) * (squares - sum * sum / n_bags);
            // A draw of one bag alone has no standard error, and counts as infinitely far off.
            if variance > 0.0 { sum / variance.sqrt() } else { f64::INFINITY.copysign(sum) }
        };
        let mut distances: Vec<f64> = (0..draws).into_par_iter().map(draw).collect();
        distances.sort_by(f64::total_cmp);
        let tail = 0.5 - 0.5 * self.level;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of the draws")]
        let at = |share: f64| distances[((share * draws as f64) as usize).min(draws - 1)];
        let standard_error = self.standard_error(statistic);
        let end = |share: f64| if standard_error > 0.0 { at(share) * standard_error } else { 0.0 };
        let interval = [statistic.value - end(1.0 - tail), statistic.value - end(tail)];
        Estimate::new(statistic.value, standard_error, interval, form)
    }
}

/// Words of the random stream reserved for the draw of a bag; each draw of bags starts at its own
/// position.
const WORDS: u128 = 4;

#[cfg(test)]
mod tests {
    use crate::bags::{Bags, Partition};
    use crate::estimate::{Estimator, Intervals};

    #[test]
    fn is_near_the_interval_by_standard_error_and_leans_where_influences_do() {
        // 400 bags of one row: the share of a class of 4 in 100, whose influences are skew.
        let labels: Vec<u32> = (0..400).map(|row| u32::from(row % 25 == 0)).collect();
        let bags =
            Bags::from_labels(Partition::new(400, (0..400).map(|row| [row])).unwrap(), &labels, 2).unwrap();
        let estimator = Estimator::new(&bags).unwrap();
        let share = |estimator: Estimator| estimator.mean(|_, class| class as f64);
        let plain = share(estimator);
        let drawn = estimator.intervals(Intervals::Bootstrap { draws: 4000, seed: 1 }).unwrap();
        let drawn = share(drawn);
        assert!((drawn.value - 0.04).abs() < 1e-12);
        assert!((drawn.standard_error - plain.standard_error).abs() < 1e-12);
        assert!((drawn.high - drawn.low) / (plain.high - plain.low) < 1.5, "{drawn:?} {plain:?}");
        assert!(drawn.high - drawn.value > 1.1 * (drawn.value - drawn.low), "{drawn:?}");
        let again = estimator.intervals(Intervals::Bootstrap { draws: 4000, seed: 1 }).unwrap();
        assert_eq!(share(again), drawn);
        assert!(estimator.intervals(Intervals::Bootstrap { draws: 10, seed: 1 }).is_err());
    }
}
