//! The errors of the lab.

use crate::data::default_folder;
use std::path::{Path, PathBuf};

/// Why an experiment failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An error of the library.
    #[error(transparent)]
    Library(#[from] easyllp::Error),
    /// A failed download, or an archive without the expected content.
    #[error(transparent)]
    Download(#[from] crate::data::DownloadError),
    /// An invalid experiment file.
    #[error("{name} describes no experiment: {reason}")]
    Description {
        /// Its name or file.
        name: String,
        /// The reason.
        reason: String,
    },
    /// A data set that is not on this machine.
    #[error("{dataset} is not in {}: `easyllp datasets get {dataset}{}` brings it there", folder.display(), into(folder))]
    NoData {
        /// The data set.
        dataset: &'static str,
        /// The folder that was searched.
        folder: PathBuf,
    },
    /// Criteo's log, which cannot be downloaded.
    #[error("{} is not there: put your own copy of Criteo's Kaggle log there; its licence does not let others pass it on", path.display())]
    NoCriteo {
        /// The folder that was searched.
        path: PathBuf,
    },
    /// Criteo's log with too few lines.
    #[error("{} has {lines} lines, but at least {needed} are needed: the first {} to train on, those after them to test on", path.display(), needed - 1)]
    ShortCriteo {
        /// The file.
        path: PathBuf,
        /// The number of lines found.
        lines: usize,
        /// The number of lines required.
        needed: usize,
    },
    /// A task that a data set does not have.
    #[error("{dataset} has no task `{task}`; it has {known}")]
    NoTask {
        /// The data set.
        dataset: &'static str,
        /// The task that was requested.
        task: String,
        /// The tasks that exist.
        known: String,
    },
    /// Cells of an experiment that failed.
    #[error("{failed} of its cells failed, the first of them `{key}`")]
    Cells {
        /// The number of failed cells.
        failed: usize,
        /// The first of them.
        key: String,
        /// The error of the first.
        source: Box<Error>,
    },
    /// An invalid line in a file.
    #[error("{path} is not what it should be: line {line} has `{text}`", path = path.display())]
    BadLine {
        /// The file.
        path: PathBuf,
        /// The line number, from 1.
        line: usize,
        /// The content.
        text: String,
    },
}

/// The option that makes a download go into this folder.
fn into(folder: &Path) -> String {
    if folder == default_folder() { String::new() } else { format!(" --dir {}", folder.display()) }
}

/// The result type of the lab.
pub type Result<T, E = Error> = std::result::Result<T, E>;
