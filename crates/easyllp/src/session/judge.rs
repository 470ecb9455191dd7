//! Who compares the candidates of a session.

use super::validation::Selection;
use crate::error::{Error, Result};
use crate::model::Scorer;

/// Who compares candidates.
pub(super) enum Judge<'s> {
    Nobody,
    Custom(&'s mut dyn FnMut(&(dyn Scorer + 'static)) -> Result<f64>),
    Validation(Selection<'s>),
}

impl Judge<'_> {
    pub(super) fn is_there(&self) -> bool {
        !matches!(self, Self::Nobody)
    }

    pub(super) fn start_training(&mut self) {
        if let Self::Validation(selection) = self {
            selection.start_training();
        }
    }

    pub(super) fn see(&mut self, model: &(dyn Scorer + 'static)) -> Result<f64> {
        match self {
            Self::Nobody => Err(Error::NoValidationMetric),
            Self::Custom(metric) => metric(model),
            Self::Validation(selection) => selection.see(model),
        }
    }
}
