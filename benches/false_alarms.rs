//! How often random bags are found not to be random, which is to be at most 0.01; what the same test says of bags that were made by a
//! column; and the time that it takes.
//!
//! `false-alarms [SETS]` (10,000 by default) draws 200 bags of independent rows SETS times for each size and share of positives, and
//! prints the share of sets that are rejected, whose standard error is 0.001; then the p-value of Adult's rows in bags by column; then
//! the time for 10⁵ and 10⁶ bags, random and not.

use easyllp::diagnose::{Randomness, randomness};
use easyllp::table::Column;
use easyllp::{Bags, Noise, Partition, Result, bagging, datasets};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Binomial, Distribution};
use rayon::prelude::*;
use std::time::Instant;

const BAGS: usize = 200;

#[expect(clippy::print_stdout, reason = "the result")]
fn main() -> Result<()> {
    let sets = std::env::args().nth(1).map_or(10_000, |sets| sets.parse().expect("a number of sets"));
    println!("| bags | share of positives | rejected |");
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
                Ok(usize::from(randomness(&bags)?.is_rejected()))
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
        let Randomness { ratio, p_value, .. } = randomness(&bags)?;
        let p_value = if p_value < 0.001 { "< 0.001".into() } else { format!("{p_value:.3}") };
        println!("| `{name}` | {} | {ratio:.0} | {p_value} |", bags.n_bags());
    }
    println!("\n| bags of 8 | rejected | seconds |");
    println!("|---|---|---|");
    for n_bags in [100_000_u32, 1_000_000] {
        for lean in [0.0, 0.2] {
            let mut rng = ChaCha8Rng::seed_from_u64(1);
            let counts: Vec<f64> = (0..n_bags)
                .map(|bag| 0.3 + if bag % 2 == 0 { lean } else { -lean })
                .map(|share| Binomial::new(8, share).expect("a share").sample(&mut rng) as f64)
                .collect();
            let bag_of_row: Vec<u32> = (0..8 * n_bags).map(|row| row / 8).collect();
            let partition = Partition::from_bag_of_row(&bag_of_row, n_bags as usize)?;
            let bags = Bags::binary(partition, &counts, Noise::None)?;
            let start = Instant::now();
            let is_rejected = randomness(&bags)?.is_rejected();
            println!("| {n_bags} | {is_rejected} | {:.2} |", start.elapsed().as_secs_f64());
        }
    }
    Ok(())
}
