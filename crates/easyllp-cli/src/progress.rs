//! Progress on stderr: a bar on a terminal, otherwise a line from time to time.

use crate::messages::{Verbosity, note, prints};
use crate::output::thousands;
use easyllp::train::Progress;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The time between two lines without a terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Whether progress is a bar.
fn has_bar() -> bool {
    prints(Verbosity::Normal) && std::io::stderr().is_terminal()
}

/// The progress of a training run.
pub(crate) struct Training {
    bar: Option<ProgressBar>,
    what: String,
    n_epochs: usize,
    n_rows: usize,
    started: Instant,
    told: Instant,
}

impl Training {
    /// Starts; `what` names the training run.
    pub(crate) fn begin(what: &str, n_epochs: usize, n_rows: usize) -> Self {
        let bar = has_bar().then(|| {
            let template = "{msg} {wide_bar} {percent}%  {per_sec} rows  {eta} left";
            let style = ProgressStyle::with_template(template).expect("a template that is right");
            let bar = ProgressBar::new((n_epochs * n_rows) as u64).with_style(style);
            bar.set_message(what.to_owned());
            bar
        });
        let now = Instant::now();
        Self { bar, what: what.into(), n_epochs, n_rows, started: now, told: now }
    }

    /// Handles an event.
    pub(crate) fn see(&mut self, progress: &Progress) {
        let (epoch, done, of_epoch) = match *progress {
            Progress::Batch { epoch, rows_done, n_rows } => (epoch, (epoch - 1) * n_rows + rows_done, n_rows),
            Progress::Iteration { iteration, left } => return self.see_iteration(iteration, left),
            Progress::Epoch(log) => {
                if let Some(bar) = &self.bar {
                    bar.set_message(format!("{}, loss {:.4}", self.what, log.loss));
                }
                return;
            }
        };
        if let Some(bar) = &self.bar {
            bar.set_position(done as u64);
        } else if self.told.elapsed() >= LINE_EVERY {
            self.told = Instant::now();
            let seconds = self.started.elapsed().as_secs_f64();
            let rate = done as f64 / seconds;
            let left = (self.n_epochs * of_epoch).saturating_sub(done) as f64 / rate;
            note(format!(
                "{}: epoch {epoch} of {}, {} rows/s, {left:.0} s left",
                self.what,
                self.n_epochs,
                thousands(rounded(rate))
            ));
        }
    }

    /// L-BFGS has no fixed number of iterations, but an estimated one.
    fn see_iteration(&mut self, iteration: usize, left: Option<usize>) {
        if let Some(bar) = &self.bar {
            bar.set_length(((iteration + left.unwrap_or(self.n_epochs - iteration)) * self.n_rows) as u64);
            bar.set_position((iteration * self.n_rows) as u64);
        } else if self.told.elapsed() >= LINE_EVERY {
            self.told = Instant::now();
            let of_iteration = self.started.elapsed().as_secs_f64() / iteration as f64;
            let outlook = left.map_or_else(String::new, |left| {
                format!(" of about {}, {:.0} s left", iteration + left, left as f64 * of_iteration)
            });
            note(format!("{}: iteration {iteration}{outlook}", self.what));
        }
    }
}

/// A step that may take long and has no measure of progress.
pub(crate) struct Step {
    bar: Option<ProgressBar>,
    /// Dropping it ends the thread that prints lines.
    end: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Step {
    /// Starts; `what` names the step, such as "reading rows".
    pub(crate) fn begin(what: &str) -> Self {
        if has_bar() {
            let style = ProgressStyle::with_template("{msg} … {elapsed}").expect("a template that is right");
            let bar = ProgressBar::new_spinner().with_style(style).with_message(what.to_owned());
            bar.enable_steady_tick(Duration::from_millis(500));
            return Self { bar: Some(bar), end: None };
        }
        let (sender, receiver) = channel();
        let (what, started) = (what.to_owned(), Instant::now());
        let tell = move || {
            while receiver.recv_timeout(LINE_EVERY) == Err(RecvTimeoutError::Timeout) {
                note(format!("{what}: {} s", started.elapsed().as_secs()));
            }
        };
        Self { bar: None, end: Some((sender, std::thread::spawn(tell))) }
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        if let Some((sender, thread)) = self.end.take() {
            drop(sender);
            // It has nothing to give back, and whether it panicked is of no interest.
            let _ = thread.join();
        }
    }
}

/// The progress of a list of cells, reported by any thread.
pub(crate) struct Cells {
    bar: Option<ProgressBar>,
    what: String,
    told: Mutex<Instant>,
}

impl Cells {
    /// Starts; `what` names the list.
    pub(crate) fn begin(what: &str) -> Self {
        let bar = has_bar().then(|| {
            let style = ProgressStyle::with_template("{prefix} {wide_bar} {pos} of {len} cells{msg}");
            ProgressBar::new(0)
                .with_style(style.expect("a template that is right"))
                .with_prefix(what.to_owned())
        });
        Self { bar, what: what.into(), told: Mutex::new(Instant::now()) }
    }

    /// Handles a progress report.
    pub(crate) fn see(&self, progress: &easyllp_lab::Progress) {
        let left = progress.left.map_or_else(String::new, |left| format!(", {} left", in_words(left)));
        let rate = format!(", {} rows/s", thousands(rounded(progress.rows_a_second)));
        if let Some(bar) = &self.bar {
            bar.set_length(progress.cells as u64);
            bar.set_position(progress.done as u64);
            bar.set_message(format!("{rate}{left}"));
            return;
        }
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.elapsed() >= LINE_EVERY {
            *told = Instant::now();
            note(format!("{}: {} of {} cells{rate}{left}", self.what, progress.done, progress.cells));
        }
    }
}

impl Drop for Cells {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// The progress of a download of several files.
pub(crate) struct Download {
    bar: Option<ProgressBar>,
    told: Instant,
}

impl Download {
    pub(crate) fn begin() -> Self {
        let bar = has_bar().then(|| {
            let template = "{msg} {wide_bar} {bytes} of {total_bytes}  {bytes_per_sec}  {eta} left";
            let style = ProgressStyle::with_template(template).expect("a template that is right");
            ProgressBar::new(0).with_style(style)
        });
        Self { bar, told: Instant::now() }
    }

    /// Handles a progress report of a file.
    pub(crate) fn see(&mut self, file: &str, done: u64, bytes: u64) {
        if let Some(bar) = &self.bar {
            if bar.message() != file {
                bar.set_message(file.to_owned());
                bar.reset_eta();
            }
            bar.set_length(bytes);
            bar.set_position(done);
        } else if self.told.elapsed() >= LINE_EVERY {
            self.told = Instant::now();
            note(format!("{file}: {} of {} MB", done >> 20, bytes >> 20));
        }
    }
}

impl Drop for Download {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// A remaining time in a suitable unit.
fn in_words(left: Duration) -> String {
    match left.as_secs() {
        seconds @ ..120 => format!("{seconds} s"),
        seconds @ 120..7200 => format!("{} min", seconds / 60),
        seconds => format!("{:.1} h", seconds as f64 / 3600.0),
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rounded rate")]
fn rounded(rate: f64) -> usize {
    rate as usize
}

impl Drop for Training {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
