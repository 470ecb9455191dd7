//! The experiments of the paper *Easy Learning from Label Proportions*: read → run → report.

mod claims;
mod data;
mod error;
mod experiment;
mod figures;
mod point;
mod runner;
mod study;

pub use claims::{Claim, Results, Verdict, claims};
pub use data::{
    ArchiveError, Data, DatasetName, DownloadError, MirrorFailure, Origin, Task, default_folder, get,
};
pub use error::{Error, Result};
pub use experiment::{Accuracy, Erm, Experiment, Kind, Sgd, Tracking, Variance, names};
pub use figures::{Figure, figures, title};
pub use point::{Point, Summary, from_csv, lines, to_csv};
pub use runner::{Cell, Outcome, Progress, Tell, run};
pub use study::{Ended, Study};
