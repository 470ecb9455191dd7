//! Trainings whose numbers run away: one among many must not end an experiment.

use easyllp::{Error, Result};

/// A training that ran away counts with the rounds before; if there is none, its cell finds nothing.
pub(super) fn as_far_as_it_went<T>(fitted: Result<T>) -> Result<()> {
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
        assert!(as_far_as_it_went::<()>(Err(diverged)).is_ok());
        assert!(as_far_as_it_went::<()>(Err(Error::NoRows)).is_err());
    }
}
