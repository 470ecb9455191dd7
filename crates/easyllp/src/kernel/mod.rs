//! The fast loops, each behind a safe function. The only room with `unsafe` in it.
//!
//! Loops over single numbers are plain ones over slices, compiled for every kind of vectors and chosen at run time: none
//! of them lets the compiler contract or reorder, so that all kinds give the same bytes. Products of matrices and
//! convolutions, which sum in vectors, give the same bytes on the same kind of machine.

mod activation;
mod buffer;
mod convolution;
mod dropout;
mod plane;
mod pool;
mod product;
mod sums;
mod tile;
mod vector;

pub use activation::Activation;
pub(crate) use activation::{activate, activate_to_learn};
pub(crate) use buffer::Buffer;
pub(crate) use convolution::{Convolution, PackedWeights, WeightSums};
pub(crate) use dropout::{Dropout, drop_out};
pub(crate) use plane::Plane;
pub(crate) use pool::{Pool, Summary};
pub(crate) use product::{Onto, product};
pub(crate) use sums::{add_to_lines, column_sums, multiply, pass_positive};

/// Runs a loop as it was compiled for the widest vectors of this machine. What the loop calls must be inlined into it.
#[inline]
pub(crate) fn vectorised<R>(work: impl FnOnce() -> R) -> R {
    pulp::Arch::new().dispatch(work)
}

/// Every way in which [`vectorised`] may run a loop on this machine.
#[cfg(test)]
pub(crate) fn every_arch() -> Vec<pulp::Arch> {
    let mut every = vec![pulp::Arch::Scalar];
    #[cfg(target_arch = "x86_64")]
    {
        every.extend(pulp::x86::V3::try_new().map(pulp::Arch::V3));
        every.extend(pulp::x86::V4::try_new().map(pulp::Arch::V4));
    }
    #[cfg(not(target_arch = "x86_64"))]
    every.push(pulp::Arch::new());
    every
}
