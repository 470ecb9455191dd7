//! Ctrl-C: exits at once, or asks long work to stop.

use std::sync::atomic::{AtomicBool, Ordering};

/// The exit code of an interrupted program.
pub(crate) const INTERRUPTED: u8 = 130;

static IS_HEEDED: AtomicBool = AtomicBool::new(false);
static IS_ASKED: AtomicBool = AtomicBool::new(false);

/// Why work stopped early.
#[derive(Debug)]
pub(crate) struct Interrupted;

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

/// From now on an interrupt removes temporary files and exits.
pub(crate) fn listen() {
    // Without a handler an interrupt still ends the program; what is half-written then stays under a hidden name.
    let _ = ctrlc::set_handler(|| {
        if IS_HEEDED.load(Ordering::Relaxed) && !IS_ASKED.swap(true, Ordering::Relaxed) {
            eprintln!("\neasyllp: interrupted; showing what is done (once more ends it at once)");
            return;
        }
        easyllp::files::abandon_unfinished_files();
        eprintln!("\neasyllp: interrupted");
        std::process::exit(INTERRUPTED.into());
    });
}

/// From now on the first interrupt only sets a flag, which the work checks with [`is_asked`].
pub(crate) fn heed() {
    IS_HEEDED.store(true, Ordering::Relaxed);
}

/// Whether an interrupt was received.
pub(crate) fn is_asked() -> bool {
    IS_ASKED.load(Ordering::Relaxed)
}
