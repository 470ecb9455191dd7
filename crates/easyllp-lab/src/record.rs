//! REPORT: how results were made, in a small file next to the CSV. It also contains the experiment,
//! so that a page can show experiments that are not built in.

use crate::error::Result;
use crate::experiment::{Experiment, Kind};
use crate::runner::Outcome;
use easyllp::files::write_whole;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The record of an experiment's results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) seed: u64,
    /// The number of finished cells, and of cells without a result.
    pub(crate) done: usize,
    pub(crate) empty: usize,
    /// The number of cells.
    pub(crate) cells: usize,
    /// The last run that finished cells, or is about to; none if unknown.
    pub(crate) made: Option<Made>,
    description: Kind,
}

/// The program that made results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Made {
    /// The command to make them again.
    pub(crate) command: String,
    /// The version of the program.
    pub(crate) version: String,
    pub(crate) machine: String,
}

impl Made {
    /// This program, on this machine.
    pub(crate) fn here(command: &str) -> Self {
        Self { command: command.into(), version: env!("CARGO_PKG_VERSION").into(), machine: machine() }
    }
}

impl Record {
    /// The record of a run's outcome.
    pub(crate) fn new(experiment: &Experiment, seed: u64, outcome: &Outcome, made: Option<Made>) -> Self {
        let &Outcome { done, empty, cells, .. } = outcome;
        Self { seed, done, empty, cells, made, description: experiment.kind.clone() }
    }

    /// The record of the experiment of this name; none if it is missing or invalid.
    pub(crate) fn read(folder: &Path, name: &str) -> Option<Self> {
        let record: Self = serde_json::from_slice(&std::fs::read(path(folder, name)).ok()?).ok()?;
        record.description.check().is_ok().then_some(record)
    }

    pub(crate) fn write(&self, folder: &Path, name: &str) -> Result<()> {
        let mut text = serde_json::to_string_pretty(self).expect("words and numbers");
        text.push('\n');
        Ok(write_whole(&path(folder, name), text.as_bytes())?)
    }

    /// The sorted names of the records in a folder.
    pub(crate) fn names(folder: &Path) -> Vec<String> {
        let name = |path: PathBuf| {
            let is_it = path.extension().is_some_and(|extension| extension == "json");
            is_it.then(|| path.file_stem()?.to_str().map(str::to_owned))?
        };
        let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut names: Vec<String> = files.filter_map(|file| name(file.path())).collect();
        names.sort_unstable();
        names
    }

    /// The recorded experiment.
    pub(crate) fn experiment(&self, name: &str) -> Experiment {
        Experiment { name: name.into(), kind: self.description.clone() }
    }
}

fn path(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.json"))
}

/// The machine and program, in a few words.
fn machine() -> String {
    let cpus = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = cpus
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map_or(std::env::consts::ARCH, |rest| rest.trim_start_matches([' ', '\t', ':']));
    format!("{name}, {} threads", rayon::current_num_threads())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::names;

    #[test]
    fn every_experiment_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Record::names(&folder.path().join("nowhere")).is_empty());
        let outcome = Outcome { points: Vec::new(), done: 3, new: 3, empty: 1, cells: 4 };
        for name in names(false).chain(names(true)) {
            let mut experiment = Experiment::named(name).unwrap().unwrap();
            experiment.set_rebag();
            let record = Record::new(&experiment, 7, &outcome, Some(Made::here("easyllp reproduce")));
            record.write(folder.path(), &experiment.name).unwrap();
            let read = Record::read(folder.path(), &experiment.name).unwrap();
            assert_eq!(read, record);
            assert_eq!(read.experiment(&experiment.name), experiment);
        }
        assert!(Record::names(folder.path()).contains(&"mnist-cnn-rebag".into()));
        std::fs::write(path(folder.path(), "erm"), "{}").unwrap();
        assert_eq!(Record::read(folder.path(), "erm"), None);
        let sgd = std::fs::read_to_string(path(folder.path(), "sgd")).unwrap();
        let without_passes = sgd.replace("\"passes\": ", "\"passes\": 0, \"was\": ");
        std::fs::write(path(folder.path(), "sgd"), without_passes).unwrap();
        assert_eq!(Record::read(folder.path(), "sgd"), None);
        assert_eq!(Record::read(folder.path(), "nothing"), None);
    }
}
