//! The commands, one per file.

pub(crate) mod bag;
pub(crate) mod completions;
pub(crate) mod datasets;
pub(crate) mod demo;
pub(crate) mod evaluate;
pub(crate) mod export;
pub(crate) mod inspect;
pub(crate) mod methods;
pub(crate) mod predict;
pub(crate) mod reproduce;
pub(crate) mod show;
pub(crate) mod train;
pub(crate) mod tune;

use anyhow::{Context, Result};
use std::num::NonZeroUsize;

/// A count on the command line.
pub(crate) fn parse_count(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| "a whole number of at least 1 is needed".into())
}

/// The maximum number of threads, if there are not more cores.
const MOST_THREADS: usize = 64;

/// Limits the library's threads, if a number was given.
pub(crate) fn use_threads(threads: Option<NonZeroUsize>) -> Result<()> {
    if let Some(threads) = threads {
        let n_cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let n_threads = threads.get().min(n_cores.max(MOST_THREADS));
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads);
        pool.build_global().context("cannot start threads")?;
    }
    Ok(())
}
