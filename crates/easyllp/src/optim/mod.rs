//! Optimizers: Adam, L-BFGS and one-pass SGD.
//!
//! Optimizers do not depend on rows: Adam works on blocks of parameters, L-BFGS on a function, SGD
//! on a vector.

mod adam;
mod dense;
mod lbfgs;
pub mod sgd;
mod table;
mod vector;

pub use adam::Adam;
pub(crate) use adam::AdamState;
pub use lbfgs::Lbfgs;
pub(crate) use lbfgs::{Divide, End, Taken, minimise};
pub(crate) use sgd::Descent;
pub use sgd::Sgd;

use crate::error::{Error, Result};

/// Checks that a setting is finite and within limits.
fn check_setting(name: &'static str, value: f64, fits: bool, expected: &'static str) -> Result<()> {
    if value.is_finite() && fits {
        Ok(())
    } else {
        Err(Error::Setting { name, value: value.to_string(), expected })
    }
}
