//! Work as a list of independent cells. The result of a cell is written to a journal at once: a run
//! that is killed and started again repeats at most the unfinished cells, and ends with the same
//! bytes.

use crate::error::{Error, Result};
use crate::point::{Point, Summary, from_csv, to_csv};
use easyllp::files::Journal;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Reports the number of rows processed; returns whether to continue.
pub type Tell<'a> = dyn Fn(u64) -> ControlFlow<()> + Sync + 'a;

/// The work of a cell: it returns the result, or nothing if it was cancelled.
type Work<'a> = dyn Fn(&Tell) -> Result<Option<Vec<Point>>> + Send + Sync + 'a;

/// A piece of work that does not depend on others.
pub struct Cell<'a> {
    /// Everything that the result depends on, as text: the key of the journal record.
    pub key: String,
    /// The band that its points belong to, together with those of other replicas.
    pub band: String,
    /// The relative cost.
    pub cost: f64,
    /// The approximate number of rows it will report, for estimating progress.
    pub rows: u64,
    /// Whether it uses all threads itself.
    pub is_wide: bool,
    /// The work.
    pub work: Box<Work<'a>>,
}

/// The progress of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Finished cells, including earlier runs.
    pub done: usize,
    /// All cells.
    pub cells: usize,
    /// Rows processed per second.
    pub rows_a_second: f64,
    /// The estimated remaining time; none if unknown.
    pub left: Option<Duration>,
}

/// The outcome of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The results, in the order of cells.
    pub points: Vec<Point>,
    /// Finished cells.
    pub done: usize,
    /// Cells finished by this run.
    pub new: usize,
    /// Cells without a result.
    pub empty: usize,
    /// All cells.
    pub cells: usize,
}

/// The outcome of a run with failed cells.
#[derive(Debug)]
pub struct Failure {
    /// The finished part.
    pub outcome: Outcome,
    /// The first failure and the number of failures.
    pub error: Error,
}

impl Outcome {
    fn of(found: Vec<Option<Vec<Point>>>, new: usize) -> Self {
        let cells = found.len();
        let done = found.iter().flatten().count();
        let empty = found.iter().flatten().filter(|points| points.is_empty()).count();
        Self { points: found.into_iter().flatten().flatten().collect(), done, new, empty, cells }
    }
}

/// The results of earlier runs.
pub(crate) fn kept(cells: &[Cell], journal: &Journal) -> Outcome {
    Outcome::of(in_journal(cells, journal), 0)
}

/// The journal's result of each cell.
fn in_journal(cells: &[Cell], journal: &Journal) -> Vec<Option<Vec<Point>>> {
    let found = |cell: &Cell| {
        let record = journal.get(&cell.key)?;
        from_csv(std::str::from_utf8(&record).ok()?).ok()
    };
    cells.iter().map(found).collect()
}

/// Runs the cells: wide ones in turn, then the others in parallel, one thread each. `watch`
/// receives the progress and may cancel. With a time budget, the cells of the widest bands come
/// first, whether wide or not, and no cell is started after the budget is used up. Failed cells are
/// reported at the end; the others are finished. Only an error of the journal stops the run.
pub fn run(
    cells: &[Cell],
    journal: &Journal,
    budget: Option<Duration>,
    watch: &(dyn Fn(Progress) -> ControlFlow<()> + Sync),
) -> Result<Outcome, Box<Failure>> {
    let found = in_journal(cells, journal);
    let running = Running {
        cells,
        journal,
        started: Instant::now(),
        budget,
        watch,
        rows: cells.iter().map(|_| AtomicU64::new(0)).collect(),
        is_over: AtomicBool::new(false),
        state: Mutex::new(State {
            is_taken: found.iter().map(Option::is_some).collect(),
            found,
            new: 0,
            cost: 0.0,
            failed: 0,
            error: None,
        }),
    };
    // With a budget it may be the turn of wide cells again after others.
    while running.next(&running.state()).is_some() {
        while let Some(cell) = running.take(true) {
            running.work_on(cell);
        }
        running.side_by_side();
    }
    let State { found, new, failed: n_failed, error, .. } =
        running.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    let outcome = Outcome::of(found, new);
    let Some(mut error) = error else { return Ok(outcome) };
    if let Error::Cells { failed, .. } = &mut error {
        *failed = n_failed;
    }
    Err(Box::new(Failure { outcome, error }))
}

struct Running<'a> {
    cells: &'a [Cell<'a>],
    journal: &'a Journal,
    started: Instant,
    budget: Option<Duration>,
    watch: &'a (dyn Fn(Progress) -> ControlFlow<()> + Sync),
    /// The rows that each cell has reported in this run.
    rows: Vec<AtomicU64>,
    is_over: AtomicBool,
    state: Mutex<State>,
}

struct State {
    is_taken: Vec<bool>,
    found: Vec<Option<Vec<Point>>>,
    /// The number of cells finished in this run, and their cost.
    new: usize,
    cost: f64,
    /// The failed cells, and the first error, or the journal's error.
    failed: usize,
    error: Option<Error>,
}

impl Running<'_> {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waiting cells that are not wide.
    fn side_by_side(&self) {
        std::thread::scope(|scope| {
            for _ in 0..rayon::current_num_threads() {
                scope.spawn(|| {
                    let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build();
                    while let Some(cell) = self.take(false) {
                        match &alone {
                            Ok(pool) => pool.install(|| self.work_on(cell)),
                            // A machine that has no thread to spare works on this one.
                            Err(_) => self.work_on(cell),
                        }
                    }
                });
            }
        });
    }

    /// The next cell, if one is left and there is time.
    fn next(&self, state: &State) -> Option<usize> {
        if self.is_over.load(Ordering::Relaxed)
            || self.budget.is_some_and(|budget| self.started.elapsed() >= budget)
        {
            return None;
        }
        let open = (0..self.cells.len()).filter(|&cell| !state.is_taken[cell]);
        // The first of equals.
        if self.budget.is_none() {
            return open.min_by_key(|&cell| !self.cells[cell].is_wide);
        }
        let widths = widths(self.cells, state);
        let width =
            |cell: usize| widths.get(self.cells[cell].band.as_str()).copied().unwrap_or(f64::INFINITY);
        open.reduce(|best, cell| if width(cell) > width(best) { cell } else { best })
    }

    /// Takes the next cell, if it is of this kind.
    fn take(&self, wide: bool) -> Option<usize> {
        let mut state = self.state();
        let cell = self.next(&state).filter(|&cell| self.cells[cell].is_wide == wide)?;
        state.is_taken[cell] = true;
        Some(cell)
    }

    fn work_on(&self, cell: usize) {
        let tell = |rows: u64| {
            self.rows[cell].fetch_add(rows, Ordering::Relaxed);
            let told = if self.is_over.load(Ordering::Relaxed) {
                ControlFlow::Break(())
            } else {
                (self.watch)(self.progress(&self.state()))
            };
            if told.is_break() {
                self.is_over.store(true, Ordering::Relaxed);
            }
            told
        };
        let key = &self.cells[cell].key;
        let found = (self.cells[cell].work)(&tell);
        let kept = match &found {
            Ok(Some(points)) => self.journal.put(key, to_csv(points).as_bytes()),
            _ => Ok(()),
        };
        let mut state = self.state();
        match found {
            Ok(Some(points)) => {
                state.found[cell] = Some(points);
                state.new += 1;
                state.cost += self.cells[cell].cost;
                if (self.watch)(self.progress(&state)).is_break() {
                    self.is_over.store(true, Ordering::Relaxed);
                }
            }
            Ok(None) => {}
            Err(error) => {
                state.failed += 1;
                let (key, source) = (key.clone(), Box::new(error));
                state.error.get_or_insert(Error::Cells { failed: 1, key, source });
            }
        }
        if let Err(error) = kept {
            // What comes after it would be lost as well.
            self.is_over.store(true, Ordering::Relaxed);
            state.error = Some(error.into());
        }
    }

    fn progress(&self, state: &State) -> Progress {
        let elapsed = self.started.elapsed();
        let (mut cost_done, mut cost_left, mut rows_told) = (state.cost, 0.0, 0);
        for ((cell, found), told) in self.cells.iter().zip(&state.found).zip(&self.rows) {
            let told = told.load(Ordering::Relaxed);
            rows_told += told;
            if found.is_none() {
                // A cell that reports more rows than announced is nearly done.
                let share = (told as f64 / cell.rows.max(1) as f64).min(1.0);
                cost_done += share * cell.cost;
                cost_left += (1.0 - share) * cell.cost;
            }
        }
        let left = (cost_done > 0.0).then(|| elapsed.mul_f64(cost_left / cost_done));
        let of_budget = self.budget.map(|budget| budget.saturating_sub(elapsed));
        Progress {
            done: state.found.iter().flatten().count(),
            cells: self.cells.len(),
            rows_a_second: rows_told as f64 / elapsed.as_secs_f64().max(1e-3),
            left: match (left, of_budget) {
                (Some(left), Some(of_budget)) => Some(left.min(of_budget)),
                (left, of_budget) => left.or(of_budget),
            },
        }
    }
}

/// Panel, series, x and measure.
type Place<'p> = (&'p str, &'p str, u64, &'p str);

/// The width of each band: the largest standard error of its points. A band with a single replica
/// has an unknown width and counts as wider than any other; a band without replicas is missing. A
/// band whose cells have no result needs no more replicas: its width is 0.
fn widths<'c>(cells: &'c [Cell], state: &State) -> HashMap<&'c str, f64> {
    let mut values: HashMap<&str, HashMap<Place, Vec<f64>>> = HashMap::new();
    for (cell, found) in cells.iter().zip(&state.found) {
        let Some(points) = found else { continue };
        let lines = values.entry(&cell.band).or_default();
        for point in points {
            let line =
                (point.panel.as_str(), point.series.as_str(), point.x.to_bits(), point.measure.as_str());
            lines.entry(line).or_default().push(point.value);
        }
    }
    let width = |values: &Vec<f64>| match Summary::of(values) {
        Some(summary) if summary.n > 1 => summary.standard_error(),
        _ => f64::MAX,
    };
    values.into_iter().map(|(band, lines)| (band, lines.values().map(width).fold(0.0, f64::max))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    fn go_on(_: Progress) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// Cells of three bands, which find 1, 2, … times the width of their band, and count how often they are asked.
    fn cells(asked: &AtomicUsize, widths: [f64; 3], replicas: u32) -> Vec<Cell<'_>> {
        let of = |replica: u32, band: usize| Cell {
            key: format!("{band}, {replica}"),
            band: band.to_string(),
            cost: 1.0,
            rows: 10,
            is_wide: band == 0,
            work: Box::new(move |tell| {
                asked.fetch_add(1, Ordering::Relaxed);
                if tell(10).is_break() {
                    return Ok(None);
                }
                let value = widths[band] * f64::from(replica);
                let (panel, series, measure) = (band.to_string(), "s".to_owned(), "m".to_owned());
                Ok(Some(vec![Point { panel, series, x: 1.0, replica, measure, value }]))
            }),
        };
        (1..=replicas).flat_map(|replica| (0..3).map(move |band| of(replica, band))).collect()
    }

    #[test]
    fn what_is_done_stays_done_and_the_order_is_that_of_cells() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::open(folder.path()).unwrap();
        let asked = AtomicUsize::new(0);
        let cells = cells(&asked, [1.0; 3], 4);
        // Cancelled when five are done.
        let stop = |progress: Progress| {
            if progress.done >= 5 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let first = run(&cells, &journal, None, &stop).unwrap();
        assert!((5..12).contains(&first.done) && first.cells == 12, "{first:?}");
        let before = asked.load(Ordering::Relaxed);
        let second = run(&cells, &journal, None, &go_on).unwrap();
        assert_eq!(second.done, 12);
        // Only the unfinished cells are run again.
        assert_eq!(asked.load(Ordering::Relaxed) - before, 12 - first.done);
        let order: Vec<(String, u32)> =
            second.points.iter().map(|point| (point.panel.clone(), point.replica)).collect();
        let expected: Vec<(String, u32)> =
            (1..=4).flat_map(|replica| ["0", "1", "2"].map(|panel| (panel.to_owned(), replica))).collect();
        assert_eq!(order, expected);
        assert_eq!(second.new, 12 - first.done);
        assert_eq!(run(&cells, &journal, None, &go_on).unwrap(), Outcome { new: 0, ..second });
    }

    #[test]
    fn a_budget_goes_to_the_widest_bands() {
        let asked = AtomicUsize::new(0);
        let cells = cells(&asked, [0.0, 1.0, 5.0], 3);
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::open(folder.path()).unwrap();
        // Nothing is begun without time.
        assert_eq!(run(&cells, &journal, Some(Duration::ZERO), &go_on).unwrap().done, 0);
        let found = |which: &[usize]| {
            let found = cells.iter().enumerate().map(|(place, cell)| {
                which.contains(&place).then(|| (cell.work)(&|_| ControlFlow::Continue(())).unwrap().unwrap())
            });
            State {
                is_taken: vec![false; cells.len()],
                found: found.collect(),
                new: 0,
                cost: 0.0,
                failed: 0,
                error: None,
            }
        };
        // Two replicas of each band but the last, of which there is one: its width is not known.
        let mut state = found(&[0, 1, 2, 3, 4]);
        let known = widths(&cells, &state);
        assert!(known["0"].abs() < 1e-12 && (known["1"] - 0.5).abs() < 1e-12);
        assert!(known["2"] > 1e300);
        // If all that it found is nothing, it has none; of a band without any cell that is done nothing is said.
        state.found[2] = Some(Vec::new());
        assert_eq!(widths(&cells, &state)["2"].to_bits(), 0.0_f64.to_bits());
        assert!(!widths(&cells, &found(&[0])).contains_key("2"));
    }

    #[test]
    fn the_time_left_is_known_before_a_cell_is_done() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::open(folder.path()).unwrap();
        let pause = Duration::from_millis(20);
        // Two cells, each of which reports its rows in two halves.
        let cell = |key: &str, rows: u64| Cell {
            key: key.into(),
            band: key.into(),
            cost: 5.0,
            rows,
            is_wide: true,
            work: Box::new(move |tell| {
                for _ in 0..2 {
                    std::thread::sleep(pause);
                    let _ = tell(rows / 2);
                }
                Ok(Some(Vec::new()))
            }),
        };
        let seen = |cells: &[Cell]| {
            let (started, seen) = (Instant::now(), Mutex::new(Vec::new()));
            run(cells, &journal, None, &|progress| {
                seen.lock().unwrap().push((progress.left, started.elapsed()));
                ControlFlow::Continue(())
            })
            .unwrap();
            seen.into_inner().unwrap()
        };
        // Half of one of two: three times as much is left. A cell that is done counts as a whole, and no rows of it twice.
        let told = seen(&[cell("a", 40), cell("b", 40)]);
        for (place, times) in [(0, 3.0), (1, 1.0), (2, 1.0), (3, 1.0 / 3.0), (5, 0.0)] {
            let (left, elapsed) = told[place];
            let left = left.unwrap();
            assert!(left <= elapsed.mul_f64(times) && left >= pause.mul_f64(times), "{place}: {told:?}");
        }
        // If no rows are reported, the progress is unknown until a cell is done.
        let untold = seen(&[cell("c", 0), cell("d", 0)]);
        assert!(untold[..2].iter().all(|(left, _)| left.is_none()) && untold[2].0.is_some(), "{untold:?}");
    }

    /// Cells of other bands than the wide ones are not left for the time when those are done.
    #[test]
    fn wide_cells_and_others_take_turns_by_width() {
        let order = Mutex::new(Vec::new());
        let cell = |band: &'static str, is_wide: bool, replica: u32, value: f64| {
            let order = &order;
            let work = move |_: &Tell| {
                order.lock().unwrap().push(band);
                let (panel, series, measure) = (band.to_owned(), "s".to_owned(), "m".to_owned());
                Ok(Some(vec![Point { panel, series, x: 1.0, replica, measure, value }]))
            };
            Cell {
                key: format!("{band}, {replica}"),
                band: band.into(),
                cost: 1.0,
                rows: 1,
                is_wide,
                work: Box::new(work),
            }
        };
        let values = [0.0, 1.0, 0.0, 1.0];
        let of = |band, is_wide, scale: f64| {
            (1..).zip(values).map(move |(replica, value)| cell(band, is_wide, replica, scale * value))
        };
        let cells: Vec<Cell> = of("wide", true, 1.0).chain(of("other", false, 9.0)).collect();
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::open(folder.path()).unwrap();
        let one_thread = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let ended = one_thread.install(|| run(&cells, &journal, Some(Duration::from_mins(10)), &go_on));
        assert_eq!(ended.unwrap().done, 8);
        // One of each, then a second of each, so that widths are known; then the wider band.
        let expected = ["wide", "other", "wide", "other", "other", "other", "wide", "wide"];
        assert_eq!(*order.lock().unwrap(), expected);
    }

    #[test]
    fn what_fails_does_not_keep_others_from_being_done() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::open(folder.path()).unwrap();
        let asked = AtomicUsize::new(0);
        let mut cells = cells(&asked, [1.0; 3], 2);
        for failing in [0, 3] {
            cells[failing].work = Box::new(|_| Err(easyllp::Error::NoRows.into()));
        }
        let failure = run(&cells, &journal, None, &go_on).unwrap_err();
        assert_eq!(failure.error.to_string(), "2 of its cells failed, the first of them `0, 1`");
        let source = std::error::Error::source(&failure.error).unwrap();
        assert_eq!(source.to_string(), easyllp::Error::NoRows.to_string());
        assert!(journal.get("0, 1").is_none() && journal.get("2, 2").is_some());
        let Outcome { points, done, new, cells, .. } = failure.outcome;
        assert_eq!((points.len(), done, new, cells), (4, 4, 4, 6));
    }

    #[test]
    fn a_journal_that_takes_nothing_ends_the_run() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::open(folder.path()).unwrap();
        std::fs::remove_dir(folder.path()).unwrap();
        let asked = AtomicUsize::new(0);
        let failure = run(&cells(&asked, [1.0; 3], 2), &journal, None, &go_on).unwrap_err();
        assert!(matches!(failure.error, Error::Library(_)), "{}", failure.error);
        // A single wide one.
        assert_eq!(asked.into_inner(), 1);
    }
}
