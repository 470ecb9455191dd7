//! Learn a model of individual **rows** when only **aggregate labels** are known.
//!
//! Rows are grouped in bags, and each bag reports how many of its rows are positive, or how many
//! are in each class. From these counts the library trains a model that scores single rows, and
//! estimates its metrics without row labels. It is built on *Easy Learning from Label Proportions*
//! (Busa-Fekete, Choi, Dick, Gentile & Muñoz Medina 2023); equations are cited by their labels in
//! the paper's source.
//!
//! ```text
//!   READ            BAG              CORRECT           TRAIN                     EVALUATE
//!   Rows            Bags             Correction        FitConfig → Fitted        Estimator
//!   table, datasets bagging          LabelPrior        method, session, train,   metrics
//!                                    Targets           loss, model               diagnose
//!
//!   features ─────────────────────────────────────────► scores ────────────────► log loss, Brier, accuracy
//!      │ indices only                                     ▲                          ▲ each with an interval
//!      └───────────► counts of bags ──► a target per row ───┘                          │
//!                      └───────────────── bags kept back ────────────────────────────┘
//! ```
//!
//! Terms: a *row* is in a *bag* of *size* k, which reports *proportions* α. The share of a class
//! among all rows is its *prior* p. A row's *target* A is what it is trained towards. A model gives
//! it a *score*, and a *loss* compares score and target.
//!
//! ```
//! use easyllp::*;
//!
//! // READ: digits of 8 × 8 pixels, and whether each is odd. Only `Bags` sees the labels.
//! let digits = datasets::optdigits()?;
//! let encoder = table::Encoder::fit(&digits.train.table, table::EncoderOptions::default())?;
//! let rows = encoder.encode(&digits.train.table)?;
//! let odd: Vec<u32> = digits.train.labels.iter().map(|digit| digit % 2).collect();
//!
//! // BAG: 16 rows per bag with one count; a fifth of the bags is held out.
//! let partition = bagging::random(rows.n_rows(), &bagging::Sizes::Fixed(16), 1)?;
//! let bags = Bags::from_labels(partition, &odd, 2)?;
//! let bagging::Split { train, held_out } = bagging::split(&bags, 0.2, 1)?;
//!
//! // CORRECT and TRAIN: a linear model of rows from the counts of bags, its penalty chosen on validation bags.
//! let fitted = FitConfig::default().fitting(&rows, &train).encoder(encoder.clone()).run()?;
//!
//! // EVALUATE: estimate *row-level* metrics from the held-out bags.
//! let estimates = fitted.evaluate(&rows, &held_out)?;
//! let (_, accuracy) = estimates.iter().find(|(name, _)| *name == "accuracy").unwrap();
//! assert!(accuracy.value > 0.8);
//!
//! // With row labels, the true accuracy can be computed, too: here on the test digits.
//! let test = encoder.encode(&digits.test.table)?;
//! let odd: Vec<u32> = digits.test.labels.iter().map(|digit| digit % 2).collect();
//! let scores = fitted.scores(&test)?;
//! let truth = metrics::accuracy(&Predictions::new(scores.view(), fitted.link)?, &odd)?;
//! assert!(truth > 0.8);
//! # Ok::<(), easyllp::Error>(())
//! ```

pub mod classes;
mod error;
#[cfg(test)]
mod rounding;
mod seed;

// READ
#[cfg(feature = "datasets")]
pub mod datasets;
pub mod rows;
pub mod table;

// BAG
pub mod bagging;
mod bags;

// CORRECT
pub mod correction;
mod prior;

// TRAIN
mod aim;
mod kernel;
pub mod loss;
pub mod model;
mod number;
pub mod optim;
pub mod train;

// EVALUATE
pub mod diagnose;
pub mod estimate;
pub mod metrics;
mod predictions;

// ALL OF IT
mod config;
pub mod fit;
pub mod method;
pub mod session;

// REPORT
mod artifact;
mod atomic;
mod journal;
mod onnx;
pub mod training_bags;

/// Atomic file writes, and a journal of finished work.
pub mod files {
    pub use crate::atomic::{abandon_unfinished_files, write_whole};
    pub use crate::journal::Journal;
}

pub use artifact::ModelFile;
pub use bags::{Bags, Noise, Partition};
pub use error::{Cause, Error, Result};
pub use estimate::{Estimate, Estimator};
pub use fit::{FitConfig, Fitted};
pub use method::MethodConfig;
pub use model::ModelSpec;
pub use predictions::Predictions;
pub use rows::Rows;
pub use session::{Method, Session};

/// The README's example is run with the documentation's.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
