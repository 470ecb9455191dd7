//! Messages on stderr, filtered by `--quiet` and `--verbose`. Data goes to stdout: see
//! [`output`](crate::output).

use std::fmt::Display;
use std::sync::atomic::{AtomicU8, Ordering};

/// Which messages are printed; errors always are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verbosity {
    /// Warnings.
    Quiet,
    /// Progress and notes, too.
    Normal,
    /// Settings and stages of training, too.
    Verbose,
}

static CHOSEN: AtomicU8 = AtomicU8::new(Verbosity::Normal as u8);

/// Sets the verbosity for the whole run.
pub(crate) fn set_verbosity(verbosity: Verbosity) {
    CHOSEN.store(verbosity as u8, Ordering::Relaxed);
}

/// Whether messages of this verbosity are printed.
pub(crate) fn prints(verbosity: Verbosity) -> bool {
    CHOSEN.load(Ordering::Relaxed) >= verbosity as u8
}

/// Prints a warning.
pub(crate) fn warn(text: impl Display) {
    eprintln!("easyllp: warning: {text}");
}

/// Prints progress or a note.
pub(crate) fn note(text: impl Display) {
    if prints(Verbosity::Normal) {
        eprintln!("easyllp: {text}");
    }
}

/// Prints a message that only `--verbose` shows.
pub(crate) fn detail(text: impl Display) {
    if prints(Verbosity::Verbose) {
        eprintln!("easyllp: {text}");
    }
}
