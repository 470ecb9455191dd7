//! What can go wrong.

use crate::data::default_folder;
use std::path::{Path, PathBuf};

/// Why an experiment could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The library refused something.
    #[error(transparent)]
    Library(#[from] easyllp::Error),
    /// A file that could not be had, or an archive that does not hold what it should.
    #[error(transparent)]
    Download(#[from] crate::data::DownloadError),
    /// A description that is none.
    #[error("{name} describes no experiment: {reason}")]
    Description {
        /// Its name, or its file.
        name: String,
        /// Why not.
        reason: String,
    },
    /// A data set that is not on this machine.
    #[error("{dataset} is not in {}: `easyllp datasets get {dataset}{}` brings it there", folder.display(), into(folder))]
    NoData {
        /// Which one.
        dataset: &'static str,
        /// Where it was looked for.
        folder: PathBuf,
    },
    /// Criteo's log, which only the user can bring.
    #[error("{} is not there: put your own copy of Criteo's Kaggle log there; its licence does not let others pass it on", path.display())]
    NoCriteo {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// Criteo's log, of which there is too little.
    #[error("{} has {lines} lines, but at least {needed} are needed: the first {} to train on, those after them to test on", path.display(), needed - 1)]
    ShortCriteo {
        /// Which file.
        path: PathBuf,
        /// How many it has.
        lines: usize,
        /// How many it takes.
        needed: usize,
    },
    /// A task that a data set does not have.
    #[error("{dataset} has no task `{task}`; it has {known}")]
    NoTask {
        /// Which data set.
        dataset: &'static str,
        /// What was asked for.
        task: String,
        /// What there is.
        known: String,
    },
    /// Parts of an experiment that could not be done.
    #[error("{failed} of its cells failed, the first of them `{key}`")]
    Cells {
        /// How many.
        failed: usize,
        /// Which was the first.
        key: String,
        /// Why it failed.
        source: Box<Error>,
    },
    /// A line that does not belong into its file.
    #[error("{path} is not what it should be: line {line} has `{text}`", path = path.display())]
    BadLine {
        /// Which file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is there.
        text: String,
    },
}

/// What to add to a command that fetches data, so that it comes into this folder.
fn into(folder: &Path) -> String {
    if folder == default_folder() { String::new() } else { format!(" --dir {}", folder.display()) }
}

/// What experiments return.
pub type Result<T, E = Error> = std::result::Result<T, E>;
