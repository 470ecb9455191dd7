//! `easyllp inspect`: what rows and reports hold, before anything is trained on them.

use crate::data::{Data, DataArgs};
use crate::diagnosis::{diagnosis, uneven_columns};
use crate::output::{print, thousands};
use crate::progress::Step;
use anyhow::Result;
use clap::Args;
use easyllp::Bags;
use easyllp::diagnose::{prior_interval, randomness};
use easyllp::table::{Column, ColumnEncoding, Encoder, Table};
use std::fmt::Write;

/// Look at rows and reports: sizes, prior, columns, and whether the bags look as the method needs them.
#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    #[command(flatten)]
    data: DataArgs,
}

pub(crate) fn run(args: &InspectArgs) -> Result<()> {
    let step = Step::begin("reading rows and reports");
    let Data { features, bags, classes, .. } = args.data.load()?;
    drop(step);
    let step = Step::begin("comparing counts with those of random bags");
    let mut text =
        format!("{} rows in {} bags\n\nsizes\n", thousands(bags.n_members()), thousands(bags.n_bags()));
    text.push_str(&histogram(&bags));
    text.push_str("\nshare of each class\n");
    for (class, name) in classes.names().iter().enumerate() {
        let share = prior_interval(&bags, class, 0.95)?;
        let _ = writeln!(text, "  {name:<16} {:.4}  ({:.4} to {:.4})", share.value, share.low, share.high);
    }
    for paragraph in diagnosis(&bags, &randomness(&bags)?)? {
        let _ = writeln!(text, "\n{}", wrapped(&paragraph));
    }
    drop(step);
    let step = Step::begin("encoding columns and comparing them from bag to bag");
    let encoder = Encoder::fit(&features, args.data.encoding.options())?;
    if let Some(sentence) = uneven_columns(&encoder.encode(&features)?, &encoder, &bags)? {
        let _ = writeln!(text, "\n{}", wrapped(&sentence));
    }
    drop(step);
    let step = Step::begin("looking for problems");
    text.push_str("\ncolumns\n");
    for column in encoder.columns() {
        let how = match &column.encoding {
            ColumnEncoding::Standardise { scale, .. } if *scale <= 0.0 => {
                format!("number, {}", ignored(features.column(&column.name)?))
            }
            ColumnEncoding::Standardise { flags_missing, .. } => {
                format!("number, standardised{}", if *flags_missing { ", missing ones flagged" } else { "" })
            }
            ColumnEncoding::StandardiseVector { means, .. } => {
                format!("list of {} numbers, scaled together", means.len())
            }
            ColumnEncoding::AsIs { width } => format!("list of {width} numbers, as they are"),
            ColumnEncoding::Vocabulary(values) => format!("one of {} values", values.len()),
            ColumnEncoding::Hash(buckets) => format!("many values, hashed into {buckets} buckets"),
        };
        let _ = writeln!(text, "  {:<20} {how}", column.name);
    }
    text.push_str("\nproblems found\n");
    let problems = problems(&features, &encoder, &bags, classes.names());
    if problems.is_empty() {
        text.push_str("  none\n");
    }
    for problem in problems {
        let _ = writeln!(text, "  {problem}");
    }
    drop(step);
    print(&text)
}

/// Lines of a width that any terminal has.
fn wrapped(paragraph: &str) -> String {
    const WIDTH: usize = 110;
    let mut lines = vec![String::new()];
    for word in paragraph.split(' ') {
        let line = lines.last_mut().expect("a first line");
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines.push(word.to_owned());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join("\n")
}

/// Why a numeric column is no feature. Numbers that agree to 13 digits count as one, but may differ, as large identifiers do.
fn ignored(column: &Column) -> String {
    /// From here on, reading rounds whole numbers.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let Column::Numeric(values) = column else { unreachable!("only numbers are standardised") };
    let mut there: Vec<f64> = values.iter().copied().filter(|value| !value.is_nan()).collect();
    let n_there = there.len();
    there.sort_unstable_by(f64::total_cmp);
    there.dedup();
    let why = match there[..] {
        [] => return "ignored: it is missing in every row".into(),
        [value] if value.abs() < EXACT => "one value in all rows",
        _ if there.len() == n_there && n_there > 1 => {
            "every value is different but agrees to 13 digits, as identifiers do"
        }
        _ => "all values agree to 13 digits, as identifiers do",
    };
    let but = if n_there < values.len() { " but for whether it is missing" } else { "" };
    format!("ignored{but}: {why}")
}

/// What is likely to go wrong with this data, a sentence each.
fn problems(features: &Table, encoder: &Encoder, bags: &Bags, classes: &[String]) -> Vec<String> {
    /// Below this an interval is too wide to choose by.
    const FEW_BAGS: usize = 30;
    let mut problems = Vec::new();
    let n_bags = bags.n_bags();
    if n_bags < FEW_BAGS {
        problems.push(format!("{n_bags} bags are few: estimates from them have wide intervals"));
    }
    let of_one = bags.sizes().filter(|&size| size == 1).count();
    if of_one > 0 && of_one < n_bags {
        problems.push(format!("{} bags of a single row: their counts are row labels", thousands(of_one)));
    }
    for (class, name) in classes.iter().enumerate() {
        if bags.counts().column(class).iter().all(|&count| count <= 0.0) {
            problems.push(format!("no bag has a row of class {name}: there is nothing to learn about it"));
        }
    }
    let n_rows = features.n_rows() as f64;
    let is_ignored = |name: &String| {
        encoder.columns().iter().any(|column| {
            column.name == *name
                && matches!(column.encoding, ColumnEncoding::Standardise { scale, .. } if scale <= 0.0)
        })
    };
    for (name, column) in features.columns() {
        match column {
            Column::Numeric(_) if is_ignored(name) => {
                problems.push(format!("column `{name}` is {}; leave it out with --exclude", ignored(column)));
            }
            Column::Numeric(values) => {
                let missing = values.iter().filter(|value| value.is_nan()).count() as f64 / n_rows;
                if missing > 0.5 {
                    problems.push(format!("column `{name}` is missing in {:.0} % of the rows", 100.0 * missing));
                }
            }
            Column::Hashed(text) => match text.n_distinct() {
                1 => problems.push(format!("column `{name}` has one value in all rows: leave it out with --exclude")),
                distinct if distinct as f64 > 0.9 * n_rows => problems.push(format!(
                    "column `{name}` has another value in nearly every row, as an identifier has: leave it out with --exclude"
                )),
                _ => {}
            },
            Column::Categorical { .. } | Column::Vector(_) => {}
        }
    }
    problems
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
