//! Training runs that diverge: one of many must not end an experiment.

use easyllp::{Error, Result};

/// A training run that diverged keeps its earlier epochs; if there are none, its cell has no
/// result.
pub(super) fn until_divergence<T>(fitted: Result<T>) -> Result<()> {
    match fitted {
        // Scores may be too large for their numbers before weights are.
        Ok(_) | Err(Error::Diverged { .. } | Error::ScoreNotFinite { .. } | Error::Interrupted) => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_errors_stay_errors() {
        let diverged = Error::Diverged { epoch: 2, batch: 1, loss: f64::NAN };
        assert!(until_divergence::<()>(Err(diverged)).is_ok());
        assert!(until_divergence::<()>(Err(Error::NoRows)).is_err());
    }
}
