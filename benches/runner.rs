//! What the runner of `easyllp reproduce` adds to the work of its cells: choosing them, watching them, and writing down what they found.
//! The time of a run is set beside the time that its cells spend on their own work, in the same run: two runs of the same cells differ by
//! more than what is asked for. Cells are those of the smallest experiments, which last a fraction of a second, so that there is nothing
//! where it would show more; on one thread, so that nothing is done meanwhile.
//!
//!     cargo bench --bench runner [-- EXPERIMENT...]

use easyllp::files::Journal;
use easyllp_lab::{Cell, Experiment, Tell, names, run};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

const ROUNDS: usize = 3;

#[expect(clippy::print_stdout, reason = "a bench reports to people")]
fn main() {
    // cargo adds a flag of its own.
    let asked: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let is_asked = |name: &&str| asked.is_empty() || asked.iter().any(|asked| asked == name);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a pool");
    println!(
        "| experiment | cells | their work, ms a cell | the runner's beside | share |\n|---|---|---|---|---|"
    );
    for name in names(true).filter(is_asked) {
        let experiment = Experiment::named(name).expect("an experiment").expect("that can be read");
        let data = experiment.load(Path::new("nowhere")).expect("embedded data");
        let cells = experiment.cells(data.as_ref(), 1).expect("cells");
        let mut rounds: Vec<[f64; 2]> = (0..ROUNDS).map(|_| pool.install(|| shares(&cells))).collect();
        rounds.sort_by(|one, other| (one[1] / one[0]).total_cmp(&(other[1] / other[0])));
        let [work, beside] = rounds[ROUNDS / 2];
        println!(
            "| {name} | {} | {:.2} | {:.3} | {:.3} % |",
            cells.len(),
            1e3 * work / cells.len() as f64,
            1e3 * beside / cells.len() as f64,
            100.0 * beside / work
        );
    }
}

/// Seconds that cells spend on their work in a run, and those that the rest of it takes.
fn shares(cells: &[Cell]) -> [f64; 2] {
    let at_work = AtomicU64::new(0);
    let cells: Vec<Cell> = cells
        .iter()
        .map(|cell| Cell {
            key: cell.key.clone(),
            band: cell.band.clone(),
            work: Box::new(|tell| {
                // Reporting rows counts as the runner's time.
                let told = AtomicU64::new(0);
                let timed: &Tell = &|rows| {
                    let started = Instant::now();
                    let answer = tell(rows);
                    told.fetch_add(nanoseconds(started), Ordering::Relaxed);
                    answer
                };
                let started = Instant::now();
                let found = (cell.work)(timed);
                at_work.fetch_add(nanoseconds(started) - told.into_inner(), Ordering::Relaxed);
                found
            }),
            ..*cell
        })
        .collect();
    let folder = std::env::temp_dir().join(format!("easyllp-runner-{}", std::process::id()));
    let started = Instant::now();
    let journal = Journal::open(&folder).expect("a journal");
    let outcome = run(&cells, &journal, None, &|_| ControlFlow::Continue(())).expect("what they find");
    let seconds = started.elapsed().as_secs_f64();
    assert_eq!(outcome.done, cells.len());
    std::fs::remove_dir_all(&folder).expect("a folder that goes");
    drop(cells);
    let work = at_work.into_inner() as f64 / 1e9;
    [work, seconds - work]
}

fn nanoseconds(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).expect("less than centuries")
}
