//! The experiments of the paper *Easy Learning from Label Proportions*, and your own: read → run →
//! report.
//!
//! An [`Experiment`] is described by a few lines of TOML. It is a list of independent
//! [cells](Cell), which [`run`] executes. The results of a cell, its [points](Point), are written
//! to a journal at once. [`figures`] draws points and [`claims`] compares them with the paper's
//! claims. A [`Study`] is all of that in one folder, with one HTML page.
//!
//! ```
//! use easyllp_lab::{Experiment, Study};
//! use std::ops::ControlFlow;
//!
//! let text = "experiment = \"erm\"\nsizes = [1, 4]\nbags = [50, 100]\nsamples = 10";
//! let experiment = Experiment::parse("erm", text)?;
//! let out = std::env::temp_dir().join(format!("easyllp-lab-{}", std::process::id()));
//! let study = Study { out: out.clone(), data: out.clone(), seed: 1, command: "a doctest".into() };
//! let ended = study.run(&experiment, None, &|_| ControlFlow::Continue(()))?;
//! assert_eq!((ended.done, ended.cells), (4, 4));
//! let page = study.report()?;
//! assert!(page.exists() && out.join("erm.csv").exists() && out.join("erm-by-size.svg").exists());
//! # std::fs::remove_dir_all(&out).unwrap();
//! # Ok::<(), easyllp_lab::Error>(())
//! ```

mod error;

// READ
mod data;
mod experiment;

// RUN
mod point;
mod runner;

// REPORT
mod claims;
mod figures;
mod page;
mod protocol;
mod record;
mod study;

pub use claims::{Claim, Results, Verdict, claims};
pub use data::{
    Clicks, Data, DatasetName, DownloadError, MirrorFailure, Origin, Task, clicks, default_folder, get,
    is_here,
};
pub use error::{Error, Result};
pub use experiment::method::MethodName;
pub use experiment::{Accuracy, Comparison, Erm, Experiment, Kind, Sgd, Tracking, Variance, names};
pub use figures::{Figure, figures, title};
pub use point::{Point, Summary, from_csv, lines, to_csv};
pub use runner::{Cell, Failure, Outcome, Progress, Tell, run};
pub use study::{Ended, Study};
