//! The fast loops, each behind a safe function. The only module with `unsafe`.
//!
//! Loops over single numbers are plain ones over slices, compiled for every kind of vectors and chosen at run time
//! (`vectors.rs`): none of them lets the compiler contract or reorder, so that all kinds give the same bytes. Products of
//! matrices and convolutions, which sum in vectors, give the same bytes with the same kind of vectors.

mod activation;
mod adam;
mod buffer;
#[cfg(feature = "tables")]
mod bytes;
mod cholesky;
mod convolution;
mod dropout;
mod logistic;
mod memory;
mod nonzeros;
mod plane;
mod pool;
mod product;
mod sort;
mod sums;
mod tile;
mod vector;
mod vectors;
mod widened;

pub use activation::Activation;
pub(crate) use activation::{activate, activate_to_learn};
pub(crate) use adam::{Moment, Run, Step, Stretch, put_average, squared_norm, squared_norm_of_lines};
pub(crate) use buffer::Buffer;
#[cfg(feature = "tables")]
pub(crate) use bytes::places_of;
pub(crate) use cholesky::{factorise, solve};
pub(crate) use convolution::{Convolution, PackedWeights, WeightSums};
pub(crate) use dropout::{Dropout, drop_out};
pub(crate) use logistic::{logistic_columns, logistic_losses};
pub(crate) use memory::{prefetch, table_of_zeros, wish_for_large_pages};
pub(crate) use nonzeros::{GROUP, NonZeros};
pub(crate) use plane::Plane;
pub(crate) use pool::{Pool, Summary};
pub(crate) use product::{Onto, matrix_product, product};
pub(crate) use sort::{line, pack, sort_by_line};
pub(crate) use sums::{add_to_lines, column_sums, multiply, pass_positive};
pub use vectors::Vectors;
pub(crate) use vectors::arch;
pub(crate) use widened::{add_dots, add_scaled, add_weighed_lines, dot};

/// Runs a loop as it was compiled for the vectors in use ([`Vectors`]). The loop and what it calls must be inlined, so that
/// they are compiled for those vectors: `vectorised(#[inline(always)] || …)`.
#[inline]
pub(crate) fn vectorised<R>(work: impl FnOnce() -> R) -> R {
    arch().dispatch(work)
}

/// Both works, on two threads if the pool has them. Outside of a pool of one nothing is handed over to it.
pub(crate) fn join<A: Send, B: Send>(
    first: impl FnOnce() -> A + Send,
    second: impl FnOnce() -> B + Send,
) -> (A, B) {
    if rayon::current_num_threads() == 1 { (first(), second()) } else { rayon::join(first, second) }
}

/// Every way in which [`vectorised`] may run a loop on this machine.
#[cfg(test)]
pub(crate) fn every_arch() -> Vec<pulp::Arch> {
    Vectors::ALL.into_iter().filter_map(Vectors::arch).collect()
}
