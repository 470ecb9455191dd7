//! Ctrl-C: it ends the program at once, but for work that ends by itself when it is asked to.

use std::sync::atomic::{AtomicBool, Ordering};

/// What a shell reports of a program that Ctrl-C ended.
pub(crate) const INTERRUPTED: u8 = 130;

static IS_HEEDED: AtomicBool = AtomicBool::new(false);
static IS_ASKED: AtomicBool = AtomicBool::new(false);

/// Why work ended early.
#[derive(Debug)]
pub(crate) struct Interrupted;

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

/// From now on an interrupt leaves nothing half-written.
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

/// From now on the first interrupt only asks to end: the work looks at [`is_asked`].
pub(crate) fn heed() {
    IS_HEEDED.store(true, Ordering::Relaxed);
}

/// Whether there was one.
pub(crate) fn is_asked() -> bool {
    IS_ASKED.load(Ordering::Relaxed)
}
