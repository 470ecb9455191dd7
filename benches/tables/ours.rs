//! Our side of `tables/run`: seconds to turn a log into features, as one line of JSON.
//!
//! `tables-ours encode FILE` reads all columns but `label`, fits the encoder and encodes; `tables-ours read FILE` reads only.
//! Threads are rayon's: `RAYON_NUM_THREADS`.

use easyllp::table::{Encoder, EncoderOptions, Source};
use std::collections::BTreeMap;
use std::error::Error;
use std::time::Instant;

#[expect(clippy::print_stdout, reason = "the result")]
fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [what, path] = &arguments[..] else { return Err("usage: tables-ours encode|read FILE".into()) };
    let start = Instant::now();
    let source = Source::open(std::slice::from_ref(path), BTreeMap::new())?;
    let columns: Vec<String> =
        source.columns().iter().map(|(name, _)| (*name).to_owned()).filter(|name| name != "label").collect();
    let source = source.with_categories(&columns);
    let table = source.read(&columns)?;
    if what == "encode" {
        // No vocabulary: as the peer does, every text is hashed.
        let options = EncoderOptions { max_vocabulary: 0, hash_buckets: 1 << 16 };
        let encoder = Encoder::fit(&table, options)?;
        std::hint::black_box(encoder.encode(&table)?);
    }
    let seconds = start.elapsed().as_secs_f64();
    println!("{{\"rows\": {}, \"seconds\": {seconds}}}", table.n_rows());
    Ok(())
}
