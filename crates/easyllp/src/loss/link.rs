//! TRAIN: what a score means.

use super::{Loss, Softmax, log_sum_exp};
use crate::error::{Error, Result};
use ndarray::{Array2, ArrayView2};
use serde::{Deserialize, Serialize};

/// The least probability of log losses: that of 0 would be infinite.
pub const LEAST_PROBABILITY: f64 = 1e-15;

/// What a score means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Link {
    /// Log-odds: probabilities are the logistic function or the softmax of the scores.
    Logit,
    /// The probability itself; it may leave [0, 1].
    Identity,
    /// A margin: its sign predicts the class, and there is no probability.
    Margin,
}

impl Link {
    /// The score of two classes above which a row is predicted to be in class 1.
    pub fn threshold(self) -> f64 {
        if self == Self::Identity { 0.5 } else { 0.0 }
    }

    /// The predicted class; the first of equal scores.
    pub fn class(self, scores: &[f64]) -> usize {
        if let [score] = scores {
            return usize::from(*score > self.threshold());
        }
        let best = |best: usize, class: usize| if scores[class] > scores[best] { class } else { best };
        (1..scores.len()).fold(0, best)
    }

    /// The probability of each class: two for one score, else one per score.
    pub fn probabilities(self, scores: &[f64], out: &mut [f64]) -> Result<()> {
        match (self, scores) {
            (Self::Margin, _) => return Err(Error::NoProbabilities),
            (Self::Logit, [score]) => [out[0], out[1]] = of_two(*score).0,
            (Self::Identity, [score]) => {
                [out[0], out[1]] = [1.0 - score.clamp(0.0, 1.0), score.clamp(0.0, 1.0)];
            }
            (Self::Logit, _) => {
                let total = log_sum_exp(scores);
                out.iter_mut().zip(scores).for_each(|(p, f)| *p = (f - total).exp());
            }
            (Self::Identity, _) => {
                let sum: f64 = scores.iter().map(|f| f.clamp(0.0, 1.0)).sum();
                let even = 1.0 / scores.len() as f64;
                let share = |f: &f64| if sum > 0.0 { f.clamp(0.0, 1.0) / sum } else { even };
                out.iter_mut().zip(scores).for_each(|(p, f)| *p = share(f));
            }
        }
        Ok(())
    }

    /// The probability of each class for each row, from scores by row: N × C.
    pub fn probabilities_of(self, scores: ArrayView2<f32>, n_classes: usize) -> Result<Array2<f64>> {
        let mut probabilities = Array2::zeros((scores.nrows(), n_classes));
        let mut wide = vec![0.0; scores.ncols()];
        for (line, mut of_row) in scores.rows().into_iter().zip(probabilities.rows_mut()) {
            wide.iter_mut().zip(line).for_each(|(wide, score)| *wide = f64::from(*score));
            self.probabilities(&wide, of_row.as_slice_mut().expect("a line of a new array"))?;
        }
        Ok(probabilities)
    }

    /// The probability of each class and its −log, cheaper than both separately.
    pub(crate) fn probabilities_and_log_losses(
        self,
        scores: &[f64],
        probabilities: &mut [f64],
        log_losses: &mut [f64],
    ) -> Result<()> {
        if let (Self::Logit, [score]) = (self, scores) {
            let (q, small) = of_two(*score);
            let rest = small.ln_1p();
            // What is unlikely costs the score more.
            let more = [score.max(0.0), (-score).max(0.0)];
            [probabilities[0], probabilities[1]] = q;
            [log_losses[0], log_losses[1]] = more.map(|more| more + rest);
            return Ok(());
        }
        self.probabilities(scores, probabilities)?;
        self.log_losses(scores, log_losses)
    }

    /// −log of the probability of each class, computed directly from the score where possible.
    pub fn log_losses(self, scores: &[f64], out: &mut [f64]) -> Result<()> {
        if self == Self::Logit {
            Softmax.values(scores, out);
        } else {
            self.probabilities(scores, out)?;
            for p in out {
                *p = -p.max(LEAST_PROBABILITY).ln();
            }
        }
        Ok(())
    }
}

/// The probabilities of two classes from the log-odds of the second, and their common exponential.
fn of_two(score: f64) -> ([f64; 2], f64) {
    let small = (-score.abs()).exp();
    let [unlikely, likely] = [small / (1.0 + small), 1.0 / (1.0 + small)];
    (if score >= 0.0 { [unlikely, likely] } else { [likely, unlikely] }, small)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::sigmoid;

    #[test]
    fn both_of_two_classes_have_the_logistic_function() {
        for score in [-1e3, -40.0, -0.3, -0.0, 0.0, 1e-9, 2.0, 1e3] {
            let both = [sigmoid(-score), sigmoid(score)];
            assert_eq!(of_two(score).0.map(f64::to_bits), both.map(f64::to_bits));
        }
    }

    #[test]
    fn links_turn_scores_into_probabilities() {
        let mut two = [0.0; 2];
        Link::Logit.probabilities(&[3f64.ln()], &mut two).unwrap();
        assert!((two[1] - 0.75).abs() < 1e-12 && (two[0] - 0.25).abs() < 1e-12);
        let mut three = [0.0; 3];
        Link::Logit.probabilities(&[0.0, 2f64.ln(), 0.0], &mut three).unwrap();
        assert!((three[1] - 0.5).abs() < 1e-12);
        Link::Identity.probabilities(&[-1.0, 0.5, 0.75], &mut three).unwrap();
        assert!((three[0]).abs() < 1e-12 && (three[2] - 0.6).abs() < 1e-12);
        assert_eq!(Link::Margin.probabilities(&[0.0], &mut two).unwrap_err(), Error::NoProbabilities);
        for link in [Link::Logit, Link::Identity] {
            for scores in [vec![0.3], vec![-2.0], vec![0.0], vec![0.2, -0.7, 1.5]] {
                let mut values = [[0.0; 3]; 4];
                let n_classes = scores.len().max(2);
                let [q, loss, both_q, both_loss] = &mut values[..] else { unreachable!("four lines") };
                link.probabilities(&scores, &mut q[..n_classes]).unwrap();
                link.log_losses(&scores, &mut loss[..n_classes]).unwrap();
                let (both_q, both_loss) = (&mut both_q[..n_classes], &mut both_loss[..n_classes]);
                link.probabilities_and_log_losses(&scores, both_q, both_loss).unwrap();
                for class in 0..n_classes {
                    assert!(
                        (both_q[class] - q[class]).abs() < 1e-15
                            && (both_loss[class] - loss[class]).abs() < 1e-15
                    );
                }
            }
        }
        assert_eq!(Link::Logit.class(&[1.0, 3.0, 3.0]), 1);
    }
}
