//! The library as its users meet it, in one test binary.
//!
//! Simulations take their seed from `EASYLLP_TEST_SEED` (1 if it is not set); each says on how many of the seeds 0 to 19
//! it passes. The default is 1 since a coverage test fails on 0.

/// Many models in one pass.
mod columns;
/// Ranks, rates, curves and calibration from bags.
mod curves;
/// Whether bags were grouped regardless of labels, and the interval of a prior.
mod diagnose;
/// The whole flow on embedded data.
#[cfg(feature = "datasets")]
mod digits;
/// Steps of networks against PyTorch's.
mod engine;
/// Errors: their sources, and what they do not name.
mod errors;
/// Estimates from bags: exact by enumeration, intervals by simulation.
mod estimates;
/// Files in all formats.
#[cfg(feature = "tables")]
mod files;
/// Malformed input at every constructor.
mod malformed;
/// When EasyLLP and the mean map train the same model.
mod mean_map;
/// What every method keeps to.
mod methods;
/// Which module may import which: the table in ARCHITECTURE.md.
mod modules;
/// The paper's one pass of stochastic gradient descent, and its excess risk.
mod one_pass;
/// A loss, a method and a model of other crates: the examples.
#[cfg(feature = "datasets")]
mod own;
/// The words of the project, and the width of its documents.
mod prose;
/// Golden numbers, and the Python that made them.
mod reference;
/// How far two ways to add up the same numbers may differ.
#[path = "../../src/rounding.rs"]
mod rounding;
/// Random draws, and a population whose metrics are known.
mod simulation;
/// Sparse matrices as rows.
mod sparse;
/// What training depends on, and what it does not.
mod training;
/// How noisy corrections are.
mod variance;
