//! REPORT: run experiments into a folder: a journal; a CSV, a record and figures for each
//! experiment; and one page.

use crate::error::{Error, Result};
use crate::experiment::{Experiment, names};
use crate::figures::figures;
use crate::page::{Shown, page};
use crate::point::{from_csv, to_csv};
use crate::record::{Made, Record};
use crate::runner::{Outcome, Progress, kept, run};
use easyllp::files::{Journal, write_whole};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Where results are written, and what they depend on.
#[derive(Debug, Clone)]
pub struct Study {
    /// The folder of results.
    pub out: PathBuf,
    /// The folder of data sets.
    pub data: PathBuf,
    /// The seed of all experiments.
    pub seed: u64,
    /// The command that makes these results again.
    pub command: String,
}

/// How often the used time is saved, in case the run is killed.
const NOTE_TIME_EVERY: Duration = Duration::from_secs(20);

/// The outcome of an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Finished cells, in this run or an earlier one.
    pub done: usize,
    /// Cells without a result, since training diverged in the first epoch.
    pub empty: usize,
    /// All cells.
    pub cells: usize,
}

impl Study {
    fn journal(&self) -> Result<Journal> {
        Ok(Journal::open(&self.out.join("journal"))?)
    }

    /// Whether an experiment has unfinished cells, and whether their data are there.
    pub fn has_work(&self, experiment: &Experiment) -> bool {
        let is_open = || -> Result<bool> {
            let data = experiment.load(&self.data)?;
            let earlier = kept(&experiment.cells(data.as_ref(), self.seed)?, &self.journal()?);
            Ok(earlier.done < earlier.cells)
        };
        // What cannot even begin takes no time.
        is_open().unwrap_or(false)
    }

    /// Runs or continues an experiment, within a time budget if given; writes its CSV, record and
    /// figures from the finished cells, even if a cell failed.
    pub fn run(
        &self,
        experiment: &Experiment,
        budget: Option<Duration>,
        watch: &(dyn Fn(Progress) -> ControlFlow<()> + Sync),
    ) -> Result<Ended> {
        let started = Instant::now();
        let data = experiment.load(&self.data)?;
        let cells = experiment.cells(data.as_ref(), self.seed)?;
        let journal = self.journal()?;
        let made_before = Record::read(&self.out, &experiment.name)
            .filter(|kept| kept.seed == self.seed)
            .and_then(|kept| kept.made);
        let earlier = kept(&cells, &journal);
        if earlier.done < earlier.cells {
            // Before the first cell: a run that is killed after its last one has no time left to say who made it, and what other runs found must
            // not be taken for its own.
            self.write(experiment, &earlier, Some(self.made()))?;
        }
        let before = seconds(&journal, &experiment.name, self.seed);
        let note_time = || {
            let spent = before + started.elapsed().as_secs_f64();
            journal.put(&time_key(&experiment.name, self.seed), format!("{spent:?}").as_bytes())
        };
        let noted = Mutex::new(Instant::now());
        let ended = run(&cells, &journal, budget, &|progress| {
            let mut noted = noted.lock().unwrap_or_else(PoisonError::into_inner);
            if noted.elapsed() >= NOTE_TIME_EVERY {
                *noted = Instant::now();
                // It matters to nothing but the page.
                let _ = note_time();
            }
            watch(progress)
        });
        let (outcome, error) = match ended {
            Ok(outcome) => (outcome, None),
            Err(failure) => (failure.outcome, Some(failure.error)),
        };
        let noted = if outcome.new > 0 { note_time() } else { Ok(()) };
        // Who only draws results did not make them.
        let made = if outcome.new > 0 { Some(self.made()) } else { made_before };
        let written = self.write(experiment, &outcome, made);
        // The failure of a cell is reported first: other errors came after it.
        error.map_or(Ok(()), Err)?;
        noted?;
        written?;
        Ok(Ended { done: outcome.done, empty: outcome.empty, cells: outcome.cells })
    }

    fn made(&self) -> Made {
        Made::here(&self.command)
    }

    fn write(&self, experiment: &Experiment, outcome: &Outcome, made: Option<Made>) -> Result<()> {
        let name = &experiment.name;
        write_whole(&self.csv(name), to_csv(&outcome.points).as_bytes())?;
        for figure in figures(experiment, &outcome.points) {
            let path = self.out.join(format!("{name}-{}.svg", figure.name));
            write_whole(&path, figure.svg(experiment).as_bytes())?;
        }
        Record::new(experiment, self.seed, outcome, made).write(&self.out, name)
    }

    fn csv(&self, name: &str) -> PathBuf {
        self.out.join(format!("{name}.csv"))
    }

    /// Packs the journal into one file.
    pub fn pack(&self) -> Result<()> {
        Ok(self.journal()?.pack()?)
    }

    /// Writes the page from all results in the folder; returns its path.
    pub fn report(&self) -> Result<PathBuf> {
        let journal = self.journal()?;
        let mut results = Vec::new();
        for (experiment, record) in self.experiments()? {
            let path = self.csv(&experiment.name);
            let Ok(text) = std::fs::read_to_string(&path) else { continue };
            let points = from_csv(&text).map_err(|(line, text)| Error::BadLine { path, line, text })?;
            let seed = record.as_ref().map_or(self.seed, |record| record.seed);
            let seconds = seconds(&journal, &experiment.name, seed);
            results.push(Shown { experiment, points, record, seconds });
        }
        let path = self.out.join("index.html");
        write_whole(&path, page(&results).as_bytes())?;
        Ok(path)
    }

    /// All experiments that may have results: the built-in ones in their order, and those with a
    /// record.
    fn experiments(&self) -> Result<Vec<(Experiment, Option<Record>)>> {
        let mut experiments = Vec::new();
        for name in names(false).chain(names(true)) {
            let record = Record::read(&self.out, name);
            let experiment = match &record {
                Some(record) => record.experiment(name),
                None => Experiment::named(name).expect("a name of its own list")?,
            };
            experiments.push((experiment, record));
        }
        for name in Record::names(&self.out) {
            if experiments.iter().all(|(known, _)| known.name != name)
                && let Some(record) = Record::read(&self.out, &name)
            {
                experiments.push((record.experiment(&name), Some(record)));
            }
        }
        Ok(experiments)
    }
}

fn time_key(name: &str, seed: u64) -> String {
    format!("seconds, {name}, seed {seed}")
}

fn seconds(journal: &Journal, name: &str, seed: u64) -> f64 {
    let record = journal.get(&time_key(name, seed));
    record.and_then(|record| String::from_utf8(record).ok()?.parse().ok()).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ERM: &str = "experiment = \"erm\"\nsizes = [1, 4]\nbags = [50, 100]\nsamples = 3";

    fn study(out: PathBuf, command: &str) -> Study {
        Study { data: out.clone(), out, seed: 1, command: command.into() }
    }

    fn go_on(_: Progress) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    #[test]
    fn results_keep_who_made_them_and_stay_on_the_page() {
        let folder = tempfile::tempdir().unwrap();
        let page_by = |command: &str, name: &str| {
            let study = study(folder.path().into(), command);
            study.run(&Experiment::parse(name, ERM).unwrap(), None, &go_on).unwrap();
            std::fs::read_to_string(study.report().unwrap()).unwrap()
        };
        let of_two = |page: &str| [page.contains("by one;"), page.contains("by another;")];
        assert_eq!(of_two(&page_by("by one", "own")), [true, false]);
        // Its cells are done: whoever looks at them again did not make them. What another found under another name is there, too.
        let page = page_by("by another", "own");
        assert_eq!(of_two(&page), [true, false]);
        std::fs::remove_dir_all(folder.path().join("journal")).unwrap();
        let page = page_by("by another", "second");
        assert_eq!(of_two(&page), [true, true]);
        assert!(page.contains("(own)") && page.contains("(second)") && page.contains("own.csv"));
        // Without a record an experiment that does not come with the program is not known, and one that does is.
        std::fs::remove_file(folder.path().join("own.json")).unwrap();
        std::fs::rename(folder.path().join("own.csv"), folder.path().join("erm.csv")).unwrap();
        let page = page_by("by another", "second");
        assert!(page.contains("(erm)") && !page.contains("(own)") && page.contains("(second)"));
        // It is not known by whom that one was made; nor is it when its cells are there and its record is not.
        let unknown = |page: &str| page.matches("made before this was noted").count();
        assert_eq!(unknown(&page), 1);
        std::fs::remove_file(folder.path().join("second.json")).unwrap();
        let page = page_by("by a third", "second");
        assert_eq!(unknown(&page), 2);
        assert!(
            page.contains("made before this was noted; seed 1; 4 cells") && !page.contains("by a third;")
        );
        assert_eq!(Record::read(folder.path(), "second").unwrap().made, None);
    }

    #[test]
    fn a_run_that_is_killed_after_its_last_cell_has_said_who_made_it() {
        let folder = tempfile::tempdir().unwrap();
        let (record, aside) = (folder.path().join("own.json"), folder.path().join("aside"));
        let experiment = Experiment::parse("own", ERM).unwrap();
        let keep_record = |progress: Progress| {
            if progress.done == progress.cells {
                std::fs::copy(&record, &aside).unwrap();
            }
            ControlFlow::Continue(())
        };
        study(folder.path().into(), "by one").run(&experiment, None, &keep_record).unwrap();
        // As it was when the last cell was done, and nothing else was written yet.
        std::fs::rename(&aside, &record).unwrap();
        std::fs::remove_file(folder.path().join("own.csv")).unwrap();
        let other = study(folder.path().into(), "by another");
        other.run(&experiment, None, &go_on).unwrap();
        let page = std::fs::read_to_string(other.report().unwrap()).unwrap();
        assert!(page.contains("by one;") && !page.contains("by another;"), "{page}");
    }

    #[test]
    fn what_is_done_is_written_when_a_cell_fails() {
        let folder = tempfile::tempdir().unwrap();
        let study = study(folder.path().into(), "by one");
        // All rows in one bag: there is none to hold out.
        let text = "experiment = \"accuracy\"\ndataset = \"optdigits\"\ntasks = [\"3\"]\nmodel = \"mlp:2\"\n\
                    methods = [\"easyllp\"]\nbag-sizes = [32, 100000]\nreplicas = 1\nepochs = 1";
        let experiment = Experiment::parse("own", text).unwrap();
        // In their order, so that the one that fails is the second.
        let one_thread = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        assert!(one_thread.install(|| study.run(&experiment, None, &go_on)).is_err());
        let record = Record::read(folder.path(), "own").unwrap();
        assert_eq!((record.done, record.cells), (1, 2));
        assert!(record.made.is_some() && seconds(&study.journal().unwrap(), "own", 1) > 0.0);
        let points = from_csv(&std::fs::read_to_string(study.csv("own")).unwrap()).unwrap();
        assert_eq!(points.len(), 3);
        assert!(folder.path().join("own-3-vs-rest-best-round.svg").exists());
        let page = std::fs::read_to_string(study.report().unwrap()).unwrap();
        assert!(page.contains("1 of 2 cells so far"));
    }

    #[test]
    fn nothing_was_made_where_nothing_is_done() {
        let folder = tempfile::tempdir().unwrap();
        let study = study(folder.path().into(), "by one");
        let experiment = Experiment::parse("own", ERM).unwrap();
        assert_eq!(study.run(&experiment, Some(Duration::ZERO), &go_on).unwrap().done, 0);
        let page = std::fs::read_to_string(study.report().unwrap()).unwrap();
        assert!(page.contains("0 of 4 cells so far") && !page.contains("made before this was noted"));
        assert_eq!(Record::read(folder.path(), "own").unwrap().made, None);
    }
}
