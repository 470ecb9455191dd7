//! What the runner of `easyllp reproduce` adds to the work of its cells: choosing them, watching them, and writing down what they found.
//! The peer does the same work in a plain loop that keeps nothing. Cells are those of the smallest experiments, which last a fraction of a
//! second, so that there is nothing where it would show more; trained on one thread, so that both do the same in the same order.
//!
//!     cargo bench --bench runner [-- EXPERIMENT...]

use easyllp::Journal;
use easyllp_lab::{Cell, Experiment, names, run};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

const ROUNDS: usize = 5;

#[expect(clippy::print_stdout, reason = "a bench reports to people")]
fn main() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a pool");
    println!("| experiment | cells | alone, ms a cell | by the runner | more |\n|---|---|---|---|---|");
    // cargo adds a flag of its own.
    let asked: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let is_asked = |name: &&str| asked.is_empty() || asked.iter().any(|asked| asked == name);
    for name in names(true).filter(is_asked) {
        let experiment = Experiment::named(name).expect("an experiment").expect("that can be read");
        let data = experiment.load(Path::new("nowhere")).expect("embedded data");
        let cells = experiment.cells(data.as_ref(), 1).expect("cells");
        let (mut alone, mut by_runner) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            alone.push(pool.install(|| in_a_loop(&cells)));
            by_runner.push(pool.install(|| by_the_runner(&cells)));
        }
        let (alone, by_runner) = (median(&mut alone), median(&mut by_runner));
        println!(
            "| {name} | {} | {:.2} | {:.2} | {:+.2} % |",
            cells.len(),
            1e3 * alone / cells.len() as f64,
            1e3 * by_runner / cells.len() as f64,
            100.0 * (by_runner / alone - 1.0)
        );
    }
}

fn in_a_loop(cells: &[Cell]) -> f64 {
    let started = Instant::now();
    for cell in cells {
        (cell.work)(&|_| ControlFlow::Continue(())).expect("what it finds");
    }
    started.elapsed().as_secs_f64()
}

fn by_the_runner(cells: &[Cell]) -> f64 {
    let folder = std::env::temp_dir().join(format!("easyllp-runner-{}", std::process::id()));
    let started = Instant::now();
    let journal = Journal::open(&folder).expect("a journal");
    let outcome = run(cells, &journal, None, &|_| ControlFlow::Continue(())).expect("what they find");
    let seconds = started.elapsed().as_secs_f64();
    assert_eq!(outcome.done, cells.len());
    std::fs::remove_dir_all(&folder).expect("a folder that goes");
    seconds
}

fn median(seconds: &mut [f64]) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}
