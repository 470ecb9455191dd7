//! Writes a synthetic impression log in the layout of Criteo's display-advertising data: `label`, 13 columns of counts with
//! missing ones (`i1`…`i13`) and 26 columns of eight hex digits (`c1`…`c26`), whose numbers of distinct values are
//! Criteo's and whose frequencies fall off as in a log.
//!
//! `criteo-log ROWS FILE`: the file's extension sets the format.

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use easyllp::table::TableWriter;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, LogNormal, Zipf};
use rayon::prelude::*;
use std::error::Error;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

/// Distinct values of Criteo's 26 categorical columns (Kaggle display advertising challenge, training file).
const DISTINCT: [u32; 26] = [
    1_460, 583, 10_131_227, 2_202_608, 305, 24, 12_517, 633, 3, 93_145, 5_683, 8_351_593, 3_194, 27, 14_992,
    5_461_306, 10, 5_652, 2_173, 4, 7_046_547, 18, 15, 286_181, 105, 142_572,
];
/// Shares of missing numbers, about Criteo's.
const MISSING: [f64; 13] = [0.45, 0.0, 0.21, 0.22, 0.03, 0.22, 0.04, 0.0, 0.04, 0.45, 0.04, 0.77, 0.22];
const BATCH: usize = 1 << 16;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [n_rows, path] = &arguments[..] else { return Err("usage: criteo-log ROWS FILE".into()) };
    let n_rows: usize = n_rows.parse()?;
    let number = |name: String| Field::new(name, DataType::Int64, true);
    let mut fields = vec![number("label".into())];
    fields.extend((1..=MISSING.len()).map(|place| number(format!("i{place}"))));
    fields.extend((1..=DISTINCT.len()).map(|place| Field::new(format!("c{place}"), DataType::Utf8, true)));
    let schema = Arc::new(Schema::new(fields));
    let mut writer = TableWriter::create(Path::new(path), Arc::clone(&schema))?;
    for (batch, start) in (0..n_rows).step_by(BATCH).enumerate() {
        let n_rows = BATCH.min(n_rows - start);
        let columns = (0..schema.fields().len())
            .into_par_iter()
            .map(|column| {
                let mut rng = ChaCha8Rng::seed_from_u64((batch * schema.fields().len() + column) as u64);
                match column.checked_sub(1 + MISSING.len()) {
                    None if column == 0 => labels(n_rows, &mut rng),
                    None => numbers(n_rows, MISSING[column - 1], &mut rng),
                    Some(column) => categories(n_rows, column, &mut rng),
                }
            })
            .collect();
        writer.write(&RecordBatch::try_new(Arc::clone(&schema), columns)?)?;
    }
    Ok(writer.finish()?)
}

fn labels(n_rows: usize, rng: &mut impl Rng) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values((0..n_rows).map(|_| i64::from(rng.random_bool(0.256)))))
}

#[expect(clippy::cast_possible_truncation, reason = "counts are whole numbers")]
fn numbers(n_rows: usize, missing: f64, rng: &mut impl Rng) -> ArrayRef {
    let counts = LogNormal::new(1.5, 1.5).expect("a standard deviation");
    let number = |_| {
        let count = counts.sample(rng) as i64;
        (!rng.random_bool(missing)).then_some(count)
    };
    Arc::new((0..n_rows).map(number).collect::<Int64Array>())
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "ranks are whole numbers")]
fn categories(n_rows: usize, column: usize, rng: &mut impl Rng) -> ArrayRef {
    let ranks = Zipf::new(f64::from(DISTINCT[column]), 1.05).expect("an exponent above 0");
    let mut text = String::new();
    let values = (0..n_rows).map(|_| {
        let rank = ranks.sample(rng) as u64;
        // Hex digits that are unlike for ranks that are near each other.
        let scattered = (rank * 32 + column as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        text.clear();
        write!(text, "{scattered:08x}").expect("text grows");
        text.clone()
    });
    Arc::new(StringArray::from_iter_values(values))
}
