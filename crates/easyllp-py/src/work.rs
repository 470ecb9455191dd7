//! Long work: on its own thread without Python's lock, while the caller's thread waits for Ctrl-C.

use crate::failure::failure;
use pyo3::exceptions::{PyException, PyRuntimeError};
use pyo3::prelude::*;
use rayon::ThreadPool;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The interval between checks for an interrupt.
const LISTEN_EVERY: Duration = Duration::from_millis(50);

/// Progress output and cancellation for work.
pub(crate) struct Line<'w> {
    stop: &'w AtomicBool,
    lines: Option<Sender<String>>,
}

impl Line<'_> {
    /// Whether to continue.
    pub(crate) fn goes_on(&self) -> ControlFlow<()> {
        if self.stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Whether progress is printed.
    pub(crate) fn is_heard(&self) -> bool {
        self.lines.is_some()
    }

    /// Prints a line, if requested.
    pub(crate) fn say(&self, line: String) {
        // Nobody is left to hear it only when the work is to stop.
        let _ = self.lines.as_ref().map(|lines| lines.send(line));
    }
}

/// The thread pool of this process, with the process id.
static POOL: Mutex<Option<(u32, &'static ThreadPool)>> = Mutex::new(None);

/// Runs work in a pool of this many threads, or in a permanent pool with a thread per core. A
/// forked process has none of its parent's threads and would wait for them forever, so rayon's own
/// pool is not used, but one that remembers its process.
pub(crate) fn in_pool<T: Send>(
    n_threads: Option<usize>,
    work: impl FnOnce() -> T + Send,
) -> Result<T, rayon::ThreadPoolBuildError> {
    if let Some(n_threads) = n_threads {
        return Ok(rayon::ThreadPoolBuilder::new().num_threads(n_threads).build()?.install(work));
    }
    let process = std::process::id();
    let mut kept = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    let pool = match *kept {
        Some((of_process, pool)) if of_process == process => pool,
        _ => {
            let pool: &'static ThreadPool = Box::leak(Box::new(rayon::ThreadPoolBuilder::new().build()?));
            *kept = Some((process, pool));
            pool
        }
    };
    drop(kept);
    Ok(pool.install(work))
}

/// Runs short work in the pool, without Python's lock.
pub(crate) fn pooled<T: Send>(
    py: Python,
    work: impl FnOnce() -> Result<T, easyllp::Error> + Send,
) -> PyResult<T> {
    py.detach(|| in_pool(None, work)).map_err(no_threads)?.map_err(failure)
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn no_threads(error: rayon::ThreadPoolBuildError) -> PyErr {
    PyRuntimeError::new_err(format!("cannot start threads: {error}"))
}

/// Runs the work; its messages go to `sys.stderr` if `is_verbose`. An interrupt is raised once the
/// work has stopped, at its next check.
pub(crate) fn without_lock<T: Send>(
    py: Python,
    n_threads: Option<usize>,
    is_verbose: bool,
    work: impl FnOnce(&Line) -> Result<T, easyllp::Error> + Send,
) -> PyResult<T> {
    let stop = AtomicBool::new(false);
    let (lines, heard) = channel::<String>();
    let line = Line { stop: &stop, lines: is_verbose.then(|| lines.clone()) };
    let (done, interrupt) = py.detach(|| {
        let heard = heard;
        let mut interrupt = Ok(());
        std::thread::scope(|scope| {
            // Its end hangs up the line, which wakes the listener.
            let worker = scope.spawn(move || {
                let _until_done = lines;
                in_pool(n_threads, || work(&line))
            });
            loop {
                let said = match heard.recv_timeout(LISTEN_EVERY) {
                    Ok(said) => Some(said),
                    Err(RecvTimeoutError::Timeout) => None,
                    Err(RecvTimeoutError::Disconnected) => break,
                };
                // After an interrupt no more is said. Of several the first is raised.
                let said = said.filter(|_| interrupt.is_ok());
                interrupt = interrupt.and(Python::attach(|py| listen(py, said.as_deref())));
                if interrupt.is_err() {
                    stop.store(true, Ordering::Relaxed);
                }
            }
            (worker.join(), interrupt)
        })
    });
    interrupt?;
    // A panic is a bug, and told as one; the interpreter lives on.
    let panicked = "easyllp panicked, which is a bug: please report it";
    let done = done.map_err(|_| PyRuntimeError::new_err(panicked))?;
    done.map_err(no_threads)?.map_err(failure)
}

/// Prints a line, if there is one, and fails on Ctrl-C or another Python signal handler's
/// exception.
fn listen(py: Python, said: Option<&str>) -> PyResult<()> {
    match said.map_or(Ok(()), |line| write(py, line)) {
        // An interrupt that is heard while Python writes: no `Exception`, as failures are.
        Err(error) if !error.is_instance_of::<PyException>(py) => Err(error),
        // Progress that cannot be told is no reason to stop.
        _ => py.check_signals(),
    }
}

fn write(py: Python, line: &str) -> PyResult<()> {
    let stderr = py.import("sys")?.getattr("stderr")?;
    if !stderr.is_none() {
        stderr.call_method1("write", (format!("easyllp: {line}\n"),))?;
    }
    Ok(())
}
