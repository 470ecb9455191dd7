//! `easyllp inspect`: what rows and reports hold, before anything is trained on them.

use crate::data::{Data, DataArgs};
use crate::output::{print, thousands};
use anyhow::Result;
use clap::Args;
use easyllp::Bags;
use easyllp::diagnose::{
    Feature, LinearClass, Verdict, bags_needed, dispersion, equivalent_rows, expected_standard_error,
    prior_interval, uneven_features,
};
use easyllp::table::{Column, ColumnEncoding, Encoder, Table};
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
    let Data { features, bags, .. } = args.data.load()?;
    let mut text =
        format!("{} rows in {} bags\n\nsizes\n", thousands(bags.n_members()), thousands(bags.n_bags()));
    text.push_str(&histogram(&bags));
    text.push_str("\nshare of each class\n");
    for (class, name) in args.data.reports.classes().iter().enumerate() {
        let share = prior_interval(&bags, class, 0.95)?;
        let _ = writeln!(text, "  {name:<16} {:.4}  ({:.4} to {:.4})", share.value, share.low, share.high);
    }
    for paragraph in diagnosis(&bags)? {
        let _ = writeln!(text, "\n{}", wrapped(&paragraph));
    }
    let encoder = Encoder::fit(&features, args.data.encoding.options())?;
    text.push_str(&uneven_columns(&features, &encoder, &bags)?);
    text.push_str("\ncolumns\n");
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
    text.push_str("\nproblems found\n");
    let problems = problems(&features, &bags, &args.data.reports.classes());
    if problems.is_empty() {
        text.push_str("  none\n");
    }
    for problem in problems {
        let _ = writeln!(text, "  {problem}");
    }
    print(&text)
}

/// What the bags are like and what they can tell, a paragraph each.
pub(crate) fn diagnosis(bags: &Bags) -> Result<Vec<String>> {
    let found = dispersion(bags, DEALINGS, 1)?;
    let how = format!("counts differ from bag to bag {:.2} times as much as by chance", found.ratio);
    let verdict = match found.verdict(0.05) {
        Verdict::Plausible => format!("The bags look as if rows were put together at random: {how}."),
        Verdict::Over => format!(
            "The bags are NOT i.i.d. (p = {:.4}): {how}. They were made by something that goes with the label, such \
             as a region or a campaign; models and estimates from them are biased. Make bags at random if you can.",
            found.over
        ),
        Verdict::Under => format!(
            "The bags are NOT i.i.d. (p = {:.4}): {how}. They were balanced on purpose, or counts are not what they seem.",
            found.under
        ),
    };
    let mut paragraphs = vec![verdict];
    paragraphs.extend(outlook(bags)?);
    Ok(paragraphs)
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

/// A sentence on columns that differ from bag to bag; nothing if none does.
fn uneven_columns(features: &Table, encoder: &Encoder, bags: &Bags) -> Result<String> {
    /// Below this a column is named.
    const LEVEL: f64 = 0.001;
    if bags.n_members() <= bags.n_bags() {
        return Ok(String::new());
    }
    let found = uneven_features(&encoder.encode(features)?, bags, LEVEL)?;
    let mut names: Vec<&str> = Vec::new();
    for uneven in &found {
        let name = match uneven.feature {
            Feature::Dense(place) => encoder.dense_column(place),
            Feature::Category { field, .. } => encoder.field_column(field),
        };
        if let Some(name) = name.filter(|name| !names.contains(name)) {
            names.push(name);
        }
    }
    Ok(match names.split_at_checked(5) {
        _ if names.is_empty() => String::new(),
        Some((first, rest)) if !rest.is_empty() => {
            format!(
                "\nThese columns differ from bag to bag by more than chance: {} and {} more.\n{BY_FEATURE}",
                first.join(", "),
                rest.len()
            )
        }
        _ => format!(
            "\nThese columns differ from bag to bag by more than chance: {}.\n{BY_FEATURE}",
            names.join(", ")
        ),
    })
}

const BY_FEATURE: &str = "Bags were made by them, or by something that goes with them. Where such a column says something of the label, models\n\
     and estimates from these bags are biased: ask for reports on random groups of rows.\n";

/// What so many bags can tell.
fn outlook(bags: &Bags) -> Result<Vec<String>> {
    /// Figures that the plan is made for.
    const ERROR: f64 = 0.1;
    const WANTED: f64 = 0.01;
    let size = (bags.n_members() / bags.n_bags()).max(1);
    let mut text = format!(
        "For a linear model these bags say about as much as {:.0} labelled rows.",
        equivalent_rows(bags)
    );
    if bags.n_bags() > 1 && !bags.has_noise() {
        let _ = write!(
            text,
            " An error of 10 % will be known to ± {:.3} (standard error); for ± {WANTED} it takes {} bags of {size} rows.",
            expected_standard_error(ERROR, size, bags.n_bags())?,
            thousands(bags_needed(ERROR, size, WANTED)?)
        );
    }
    let bounds = LinearClass { reach: 1.0 }.bounds(size, bags.n_bags(), 0.05)?;
    let for_all = "for all linear models with scores up to 1, with probability 0.95";
    Ok(vec![
        text,
        format!(
            "Bound on |loss here − loss on the population| {for_all}, from these bags: {:.3} (Γ(k, n, δ), Theorem ucb of the paper).",
            bounds.from_bags
        ),
        format!("The same bound from the same rows with labels: {:.3} (eq. event_level).", bounds.from_rows),
    ])
}

/// What is likely to go wrong with this data, a sentence each.
fn problems(features: &Table, bags: &Bags, classes: &[String]) -> Vec<String> {
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
    for (name, column) in features.columns() {
        match column {
            Column::Numeric(values) => {
                let missing = values.iter().filter(|value| value.is_nan()).count() as f64 / n_rows;
                let mut there = values.iter().filter(|value| !value.is_nan());
                let first = there.next();
                if missing > 0.5 {
                    problems.push(format!("column `{name}` is missing in {:.0} % of the rows", 100.0 * missing));
                }
                if there.all(|value| Some(value) == first) {
                    problems.push(format!("column `{name}` does not vary: leave it out with --exclude"));
                }
            }
            Column::Hashed(text) => match text.n_distinct() {
                1 => problems.push(format!("column `{name}` does not vary: leave it out with --exclude")),
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
