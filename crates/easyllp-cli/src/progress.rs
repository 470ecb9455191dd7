//! How far long work has come: a bar on a terminal, now and then a line elsewhere. Both on stderr.

use crate::output::thousands;
use easyllp::Progress;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Between two lines, where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// A training on its way through epochs.
pub(crate) struct Training {
    bar: Option<ProgressBar>,
    what: String,
    n_epochs: usize,
    started: Instant,
    told: Instant,
}

impl Training {
    /// Begins to watch: `what` says which of several trainings it is.
    pub(crate) fn begin(what: &str, n_epochs: usize, n_rows: usize) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let template = "{msg} {wide_bar} {percent}%  {per_sec} rows  {eta} left";
            let style = ProgressStyle::with_template(template).expect("a template that is right");
            let bar = ProgressBar::new((n_epochs * n_rows) as u64).with_style(style);
            bar.set_message(what.to_owned());
            bar
        });
        let now = Instant::now();
        Self { bar, what: what.into(), n_epochs, started: now, told: now }
    }

    /// Takes note of what happened.
    pub(crate) fn see(&mut self, progress: &Progress) {
        let (epoch, done, of_epoch) = match *progress {
            Progress::Batch { epoch, rows_done, n_rows } => (epoch, (epoch - 1) * n_rows + rows_done, n_rows),
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
            eprintln!(
                "easyllp: {}: epoch {epoch} of {}, {} rows/s, {left:.0} s left",
                self.what,
                self.n_epochs,
                thousands(rounded(rate))
            );
        }
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate, for people")]
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
