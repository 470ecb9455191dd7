//! EasyLLP: empirical risk minimisation on corrected targets (eq. *ermsoftlabel* of the paper).
//!
//! The corrected loss is an unbiased estimate of the loss on row labels, so minimising it learns rows. It has no more
//! information than the bags have: keep it from fitting their noise with weight decay, averaged weights, and by
//! stopping on held-out bags.

use super::TargetRule;
use crate::bags::Bags;
use crate::correction::{Correction, Targets};
use crate::error::Result;
use crate::seed::{Stream, stream};
use rand_chacha::ChaCha8Rng;

/// Whether the surrogate labels of the paper's first form are drawn, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Draw {
    /// Nothing is drawn: targets are soft (eq. *simple_tlalpha*).
    #[default]
    Never,
    /// One surrogate label a row for the whole training (eq. *tlsimple*).
    Once {
        /// The seed of the draw.
        seed: u64,
    },
    /// A new surrogate label a row in every epoch.
    EveryEpoch {
        /// The seed of the draws.
        seed: u64,
    },
}

/// Training on corrected targets.
///
/// ```
/// use easyllp::{Bags, EasyLlp, LinearModel, LossName, Model, Noise, Partition, Rows, Trainer};
/// use ndarray::array;
///
/// // Positives have a large feature; only the counts of the three bags are known.
/// let rows = Rows::dense(array![[0.9_f32], [0.1], [0.2], [0.8], [0.7], [0.95]])?;
/// let partition = Partition::new(6, [[0, 1], [2, 3], [4, 5]])?;
/// let bags = Bags::binary(partition, &[1.0, 1.0, 2.0], Noise::None)?;
///
/// let mut model = LinearModel::for_rows(&rows, 2)?;
/// let loss = LossName::Logistic.training()?;
/// Trainer::default().fit(&mut model, &rows, &mut EasyLlp::new(&bags), loss)?;
/// assert!(model.weights()[[0, 0]] > 0.0);
/// # Ok::<(), easyllp::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct EasyLlp<'b> {
    bags: &'b Bags,
    correction: Correction,
    draw: Draw,
    rng: Option<ChaCha8Rng>,
}

impl<'b> EasyLlp<'b> {
    /// Soft, centred targets with equal bag weights.
    pub fn new(bags: &'b Bags) -> Self {
        Self::with(bags, Correction::default(), Draw::Never)
    }

    /// Any correction, soft or drawn.
    pub fn with(bags: &'b Bags, correction: Correction, draw: Draw) -> Self {
        Self { bags, correction, draw, rng: None }
    }
}

impl TargetRule for EasyLlp<'_> {
    fn n_rows(&self) -> usize {
        self.bags.n_rows()
    }

    fn n_classes(&self) -> usize {
        self.bags.n_classes()
    }

    fn rows(&self) -> Vec<u32> {
        self.bags.rows()
    }

    fn changes(&self) -> bool {
        matches!(self.draw, Draw::EveryEpoch { .. })
    }

    fn shares(&self) -> Result<Option<Vec<f64>>> {
        if self.bags.sizes().all(|size| size == 1) {
            return Ok(None); // targets are the labels
        }
        match (self.correction.known_shares(), self.draw) {
            (None, Draw::Once { .. } | Draw::EveryEpoch { .. }) => {
                Ok(Some(self.correction.line(self.bags)?.means(self.bags)))
            }
            (known, _) => Ok(known),
        }
    }

    fn targets(&mut self, epoch: usize, out: &mut Targets) -> Result<()> {
        let seed = match self.draw {
            Draw::Never => return self.correction.soft_into(self.bags, out),
            Draw::Once { seed } | Draw::EveryEpoch { seed } => seed,
        };
        if epoch == 0 {
            self.rng = None; // a second training begins with the same draws
        }
        let rng = self.rng.get_or_insert_with(|| stream(seed, Stream::Surrogate));
        self.correction.surrogate_into(self.bags, rng, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bags::{Noise, Partition};

    #[test]
    fn surrogates_are_drawn_when_asked_for() {
        let partition = Partition::new(40, (0..10).map(|bag| [bag, bag + 10, bag + 20, bag + 30])).unwrap();
        let bags = Bags::binary(partition, &[2.0; 10], Noise::None).unwrap();
        let epochs = |draw| {
            let mut rule = EasyLlp::with(&bags, Correction::default(), draw);
            let mut out = Targets::zeros(40, 2);
            [0, 1].map(|epoch| {
                if epoch == 0 || rule.changes() {
                    rule.targets(epoch, &mut out).unwrap();
                }
                out.clone()
            })
        };
        let [soft, soft_again] = epochs(Draw::Never);
        let [once, once_again] = epochs(Draw::Once { seed: 5 });
        let [first, second] = epochs(Draw::EveryEpoch { seed: 5 });
        assert_eq!(soft, soft_again);
        assert_eq!(once, once_again);
        assert_eq!(once, first);
        assert_eq!(once, Correction::default().surrogate(&bags, 5).unwrap());
        assert_ne!(once, soft);
        assert_ne!(first, second);
    }
}
