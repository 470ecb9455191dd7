//! What the benches share: running on one thread, and comparing two sides in one run.

#[cfg(feature = "tables")]
pub mod mnist;

use std::time::{Duration, Instant};

/// Leaves the library one thread, from the first call on.
pub fn use_one_thread() {
    // A second call finds the pool built already, and just as small.
    let _ = rayon::ThreadPoolBuilder::new().num_threads(1).build_global();
}

/// Times two sides in turn, so that both see the same machine, and prints the ratio of their medians.
#[expect(clippy::print_stdout, reason = "a bench reports to people")]
pub fn print_ratio(name: &str, rounds: usize, mut ours: impl FnMut(), mut peer: impl FnMut()) {
    let time = |work: &mut dyn FnMut()| {
        let start = Instant::now();
        work();
        start.elapsed()
    };
    time(&mut ours);
    time(&mut peer);
    let (mut of_ours, mut of_peer): (Vec<Duration>, Vec<Duration>) =
        (0..rounds).map(|_| (time(&mut ours), time(&mut peer))).unzip();
    of_ours.sort_unstable();
    of_peer.sort_unstable();
    let (ours, peer) = (of_ours[rounds / 2].as_secs_f64(), of_peer[rounds / 2].as_secs_f64());
    println!("{name}: {:.2} ms, peer {:.2} ms, ratio {:.2}", 1e3 * ours, 1e3 * peer, ours / peer);
}
