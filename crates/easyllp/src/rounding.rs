//! The rounding error of sums, for tests of this crate and of `tests/`.
//!
//! In any order of n terms tᵢ, each term takes part in at most n − 1 additions, and is rounded once
//! more if it is a product. Each rounding changes it by at most a share u = ε/2, so to first order
//! the result is off by at most n·u·Σ|tᵢ| (Higham, *Accuracy and Stability of Numerical
//! Algorithms*, 2nd ed., section 4.2). Two results differ by at most twice that:
//!
//! ```text
//! |one − other| ≤ n ε Σ|tᵢ|
//! ```
//!
//! The bound depends on the size of the terms, not on the sum: if terms cancel, the sum says
//! nothing about its rounding error. A missing term changes the sum by about an n-th of Σ|tᵢ|, far
//! more than the bound.

#![allow(dead_code, reason = "each test binary uses a part of it")]

/// A sum with the quantities of its rounding bound: the number of its terms, and the sum of their
/// absolute values.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sum {
    pub(crate) value: f64,
    size: f64,
    n_terms: u32,
}

/// A floating-point type of sums.
pub(crate) trait Number: Into<f64> {
    const EPSILON: f64;
}

impl Number for f32 {
    const EPSILON: f64 = f32::EPSILON as f64;
}

impl Number for f64 {
    const EPSILON: f64 = f64::EPSILON;
}

impl Sum {
    pub(crate) fn add(&mut self, term: f64) {
        self.value += term;
        self.size += term.abs();
        self.n_terms += 1;
    }

    /// Σ|tᵢ|.
    pub(crate) fn total_size(&self) -> f64 {
        self.size
    }

    /// The mean absolute value of a term.
    pub(crate) fn mean_size(&self) -> f64 {
        self.size / f64::from(self.n_terms.max(1))
    }

    /// Whether `got` equals this sum up to rounding, if it was computed in this type from exact
    /// terms.
    pub(crate) fn equals<T: Number>(&self, got: T) -> bool {
        self.equals_within(f64::from(self.n_terms) * T::EPSILON, got)
    }

    /// Whether `got` equals this sum up to this share of Σ|tᵢ|, for terms that have an error
    /// themselves.
    pub(crate) fn equals_within<T: Number>(&self, share: f64, got: T) -> bool {
        (got.into() - self.value).abs() <= share * self.size
    }
}

impl FromIterator<f64> for Sum {
    fn from_iter<I: IntoIterator<Item = f64>>(terms: I) -> Self {
        let mut sum = Self::default();
        terms.into_iter().for_each(|term| sum.add(term));
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1e8 + 3 − 1e8 is 0 in f32, added from the left: off by all of the sum, by little of the terms.
    #[test]
    fn terms_that_cancel_leave_room_for_their_rounding_and_not_for_a_missing_term() {
        let terms = [1e8_f32, 3.0, -1e8];
        let sum: Sum = terms.iter().map(|&term| f64::from(term)).collect();
        assert!(sum.equals(terms.iter().sum::<f32>()) && !sum.equals(0.0_f64) && sum.equals(3.0));
        let terms = [0.25_f32, 0.5, -0.75, 1e-3];
        let sum: Sum = terms.iter().map(|&term| f64::from(term)).collect();
        assert!(sum.equals(terms.iter().rev().sum::<f32>()) && !sum.equals(terms[..3].iter().sum::<f32>()));
        assert!((sum.mean_size() - 1.501 / 4.0).abs() < 1e-6);
        assert!(Sum::default().equals(0.0) && !Sum::default().equals(1e-300));
    }
}
