//! Long work: without Python's lock, on a thread of its own, while the caller's thread listens for Ctrl-C.

use pyo3::prelude::*;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// How long an interrupt may go unheard.
const LISTEN_EVERY: Duration = Duration::from_millis(50);

/// How work tells of itself, and hears that it shall stop.
pub(crate) struct Line<'w> {
    stop: &'w AtomicBool,
    lines: Option<Sender<String>>,
}

impl Line<'_> {
    /// Whether to go on.
    pub(crate) fn goes_on(&self) -> ControlFlow<()> {
        if self.stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Whether anyone listens.
    pub(crate) fn is_heard(&self) -> bool {
        self.lines.is_some()
    }

    /// Says a line, where it was asked for.
    pub(crate) fn say(&self, line: String) {
        // Nobody is left to hear it only when the work is to stop.
        let _ = self.lines.as_ref().map(|lines| lines.send(line));
    }
}

/// Does the work; what it says goes to `sys.stderr` if `is_verbose`. An interrupt is raised once the work has stopped, at its next
/// look at the line.
pub(crate) fn without_lock<T: Send>(
    py: Python,
    n_threads: Option<usize>,
    is_verbose: bool,
    work: impl FnOnce(&Line) -> T + Send,
) -> PyResult<T> {
    let pool = n_threads.map(|n_threads| rayon::ThreadPoolBuilder::new().num_threads(n_threads).build());
    let pool = pool.transpose().map_err(|error| {
        pyo3::exceptions::PyRuntimeError::new_err(format!("cannot start threads: {error}"))
    })?;
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
                match pool {
                    Some(pool) => pool.install(|| work(&line)),
                    None => work(&line),
                }
            });
            loop {
                match heard.recv_timeout(LISTEN_EVERY) {
                    Ok(said) => interrupt = interrupt.and(Python::attach(|py| write(py, &said))),
                    Err(RecvTimeoutError::Timeout) => {
                        interrupt = interrupt.and(Python::attach(listen));
                    }
                    Err(RecvTimeoutError::Disconnected) => break,
                }
                if interrupt.is_err() {
                    stop.store(true, Ordering::Relaxed);
                }
            }
            (worker.join(), interrupt)
        })
    });
    interrupt?;
    // A panic is a bug, and told as one; the interpreter lives on.
    done.map_err(|_| {
        pyo3::exceptions::PyRuntimeError::new_err("easyllp panicked, which is a bug: please report it")
    })
}

/// Fails if Ctrl-C, or whatever else has a handler in Python, was heard.
fn listen(py: Python) -> PyResult<()> {
    py.check_signals()
}

fn write(py: Python, line: &str) -> PyResult<()> {
    let stderr = py.import("sys")?.getattr("stderr")?;
    if !stderr.is_none() {
        stderr.call_method1("write", (format!("easyllp: {line}\n"),))?;
    }
    Ok(())
}
