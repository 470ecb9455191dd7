//! How often bags that were put together at random are not found plausible, at level 0.05, and what the same test says of bags that
//! were made by a column.
//!
//! `false-alarms [SETS]` (10,000 by default) draws 200 bags of independent rows SETS times for each size and share of positives, and
//! prints the share of alarms, whose standard error is 0.0022; then the p-value of Adult's rows in bags by column.

use easyllp::diagnose::{Verdict, dispersion};
use easyllp::table::Column;
use easyllp::{Bags, Noise, Partition, Result, bagging, datasets};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Binomial, Distribution};
use rayon::prelude::*;

const BAGS: usize = 200;
/// The p-value is exact for any number of draws.
const DRAWS: usize = 99;

#[expect(clippy::print_stdout, reason = "the result")]
fn main() -> Result<()> {
    let sets = std::env::args().nth(1).map_or(10_000, |sets| sets.parse().expect("a number of sets"));
    println!("| bags | share of positives | false alarms |");
    println!("|---|---|---|");
    for (name, sizes) in [("2", 2..=2), ("8", 8..=8), ("64", 64..=64), ("4 to 1024", 4..=1024)] {
        for p in [0.01, 0.3] {
            let is_alarm = |set: u64| -> Result<usize> {
                let mut rng = ChaCha8Rng::seed_from_u64(set);
                let sizes: Vec<u32> = (0..BAGS).map(|_| rng.random_range(sizes.clone())).collect();
                let count = |&size: &u32| {
                    let count = Binomial::new(size.into(), p).expect("a share").sample(&mut rng);
                    count as f64
                };
                let counts: Vec<f64> = sizes.iter().map(count).collect();
                let bag_of_row: Vec<u32> = (0..)
                    .zip(&sizes)
                    .flat_map(|(bag, &size)| std::iter::repeat_n(bag, size as usize))
                    .collect();
                let bags =
                    Bags::binary(Partition::from_bag_of_row(&bag_of_row, BAGS)?, &counts, Noise::None)?;
                Ok(usize::from(dispersion(&bags, DRAWS, set)?.verdict(0.05) != Verdict::Plausible))
            };
            let alarms = (0..sets).into_par_iter().map(is_alarm).try_reduce(|| 0, |a, b| Ok(a + b))?;
            println!("| {BAGS} of {name} | {p} | {:.4} |", alarms as f64 / sets as f64);
        }
    }
    println!("\n| Adult in bags by | bags | times as much as by chance | p-value |");
    println!("|---|---|---|---|");
    let adult = datasets::adult()?.train;
    for name in ["education", "occupation", "native-country"] {
        let keys: Vec<u32> = match adult.table.column(name)? {
            Column::Categorical { codes, .. } => codes.clone(),
            _ => panic!("`{name}` is a text"),
        };
        let (_, partition) = bagging::by_key(&keys)?;
        let bags = Bags::from_labels(partition, &adult.labels, 2)?;
        let found = dispersion(&bags, 9999, 1)?;
        let p_value = if found.over < 0.001 { "< 0.001".into() } else { format!("{:.3}", found.over) };
        println!("| `{name}` | {} | {:.0} | {p_value} |", bags.n_bags(), found.ratio);
    }
    Ok(())
}
