//! `easyllp inspect`: what rows and reports hold, before anything is trained on them.

use crate::data::{Data, DataArgs};
use crate::output::{print, thousands};
use anyhow::Result;
use clap::Args;
use easyllp::Bags;
use easyllp::diagnose::{Verdict, dispersion, prior_interval};
use easyllp::table::{ColumnEncoding, Encoder, EncoderOptions};
use std::fmt::Write;

/// Look at rows and reports: sizes, prior, columns, and whether the bags look as the method needs them.
#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    #[command(flatten)]
    data: DataArgs,
}

/// Dealings that the bags are compared with.
const DEALINGS: usize = 1999;

pub(crate) fn run(args: &InspectArgs) -> Result<()> {
    let Data { features, bags } = args.data.load()?;
    let mut text =
        format!("{} rows in {} bags\n\nsizes\n", thousands(bags.n_members()), thousands(bags.n_bags()));
    text.push_str(&histogram(&bags));
    text.push_str("\nshare of each class\n");
    for (class, name) in args.data.reports.classes().iter().enumerate() {
        let share = prior_interval(&bags, class, 0.95)?;
        let _ = writeln!(text, "  {name:<16} {:.4}  ({:.4} to {:.4})", share.value, share.low, share.high);
    }
    let found = dispersion(&bags, DEALINGS, 1)?;
    let how = format!("counts differ from bag to bag {:.2} times as much as by chance", found.ratio);
    let _ = match found.verdict(0.05) {
        Verdict::Plausible => {
            writeln!(text, "\nThe bags look as if rows were put together at random: {how}.")
        }
        Verdict::Over => writeln!(
            text,
            "\nThe bags are NOT i.i.d. (p = {:.4}): {how}. They were made by something that goes with the label, such\n\
             as a region or a campaign; models and estimates from them are biased. Make bags at random if you can.",
            found.over
        ),
        Verdict::Under => writeln!(
            text,
            "\nThe bags are NOT i.i.d. (p = {:.4}): {how}. They were balanced on purpose, or counts are not what they seem.",
            found.under
        ),
    };
    text.push_str("\ncolumns\n");
    let encoder = Encoder::fit(&features, EncoderOptions::default())?;
    for column in encoder.columns() {
        let how = match &column.encoding {
            ColumnEncoding::Standardise { scale, .. } if *scale <= 0.0 => {
                "number that does not vary: no use".into()
            }
            ColumnEncoding::Standardise { flags_missing, .. } => {
                format!("number, standardised{}", if *flags_missing { ", missing ones flagged" } else { "" })
            }
            ColumnEncoding::StandardiseVector { means, .. } => {
                format!("list of {} numbers, scaled together", means.len())
            }
            ColumnEncoding::Vocabulary(values) => format!("one of {} values", values.len()),
            ColumnEncoding::Hash(buckets) => format!("many values, hashed into {buckets} buckets"),
        };
        let _ = writeln!(text, "  {:<20} {how}", column.name);
    }
    print(&text)
}

/// Sizes by powers of two.
fn histogram(bags: &Bags) -> String {
    const WIDTH: usize = 40;
    let mut counts = vec![0; 64];
    for size in bags.sizes() {
        counts[size.ilog2() as usize] += 1;
    }
    let most = counts.iter().copied().max().unwrap_or(1);
    let first = counts.iter().position(|&count| count > 0).unwrap_or(0);
    let last = counts.iter().rposition(|&count| count > 0).unwrap_or(0);
    let mut text = String::new();
    for (power, &count) in counts.iter().enumerate().take(last + 1).skip(first) {
        let (from, to) = (1_usize << power, (1_usize << power) * 2 - 1);
        let range = if from == to { from.to_string() } else { format!("{from} to {to}") };
        let bar = "█".repeat((count * WIDTH).div_ceil(most));
        let _ = writeln!(text, "  {range:>16}  {bar} {}", thousands(count));
    }
    text
}
