//! `easyllp inspect`: summarise rows and reports before training.

use crate::data::Data;
use crate::data::args::DataArgs;
use crate::diagnosis::{diagnosis, on_uneven_columns, uneven_columns};
use crate::output::{print, print_json, thousands};
use crate::progress::Step;
use anyhow::Result;
use clap::Args;
use easyllp::diagnose::{Randomness, equivalent_rows, prior_interval, randomness};
use easyllp::table::{Column, ColumnEncoder, ColumnEncoding, Encoder, EncoderOptions, Table};
use easyllp::{Bags, Estimate};
use serde::Serialize;
use std::fmt::Write;

/// Inspect rows and reports: sizes, prior, columns, and whether the bags look random.
#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    #[command(flatten)]
    data: DataArgs,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The result, as JSON or text.
#[derive(Debug, Serialize)]
struct Inspection {
    rows: usize,
    bags: usize,
    sizes: Vec<SizeRange>,
    classes: Vec<ClassShare>,
    randomness: Randomness,
    /// The approximate number of labelled rows with the same information for a linear model.
    equivalent_rows: f64,
    /// Columns that differ between bags by more than chance.
    uneven_columns: Vec<String>,
    columns: Vec<ColumnReport>,
    problems: Vec<String>,
    /// Paragraphs.
    #[serde(skip)]
    diagnosis: Vec<String>,
}

/// The number of bags with a size in a range.
#[derive(Debug, Serialize)]
struct SizeRange {
    from: usize,
    to: usize,
    bags: usize,
}

#[derive(Debug, Serialize)]
struct ClassShare {
    class: String,
    share: Estimate,
}

#[derive(Debug, Serialize)]
struct ColumnReport {
    name: String,
    encoding: String,
}

pub(crate) fn run(args: &InspectArgs) -> Result<()> {
    let file = args.data.config()?;
    file.data.check(true)?;
    let step = Step::begin("reading rows and reports");
    let data = file.data.load()?;
    drop(step);
    let found = Inspection::new(&data, file.data.encoder_options()?)?;
    if args.json { print_json(&found) } else { print(&found.text()) }
}

impl Inspection {
    fn new(data: &Data, options: EncoderOptions) -> Result<Self> {
        let Data { features, bags, classes, .. } = data;
        let step = Step::begin("comparing counts with those of random bags");
        let share = |(class, name): (usize, &String)| -> Result<ClassShare> {
            Ok(ClassShare { class: name.clone(), share: prior_interval(bags, class, 0.95)? })
        };
        let shares = classes.names().iter().enumerate().map(share).collect::<Result<_>>()?;
        let randomness = randomness(bags)?;
        let diagnosis = diagnosis(bags, &randomness)?;
        drop(step);
        let step = Step::begin("encoding columns and comparing them from bag to bag");
        let encoder = Encoder::fit(features, options)?;
        let uneven_columns = uneven_columns(&encoder.encode(features)?, &encoder, bags)?;
        let column = |column: &ColumnEncoder| -> Result<ColumnReport> {
            Ok(ColumnReport { name: column.name.clone(), encoding: encoding(column, features)? })
        };
        let columns = encoder.columns().iter().map(column).collect::<Result<_>>()?;
        drop(step);
        let _step = Step::begin("looking for problems");
        Ok(Self {
            rows: bags.n_members(),
            bags: bags.n_bags(),
            sizes: sizes(bags),
            classes: shares,
            randomness,
            equivalent_rows: equivalent_rows(bags),
            uneven_columns,
            columns,
            problems: problems(features, &encoder, bags, classes.names()),
            diagnosis,
        })
    }

    fn text(&self) -> String {
        let mut text = format!("{} rows in {} bags\n\nsizes\n", thousands(self.rows), thousands(self.bags));
        text.push_str(&histogram(&self.sizes));
        text.push_str("\nshare of each class\n");
        for ClassShare { class, share } in &self.classes {
            let Estimate { value, low, high, .. } = share;
            let _ = writeln!(text, "  {class:<16} {value:.4}  ({low:.4} to {high:.4})");
        }
        for paragraph in &self.diagnosis {
            let _ = writeln!(text, "\n{}", wrapped(paragraph));
        }
        if !self.uneven_columns.is_empty() {
            let _ = writeln!(text, "\n{}", wrapped(&on_uneven_columns(&self.uneven_columns, None)));
        }
        text.push_str("\ncolumns\n");
        for ColumnReport { name, encoding } in &self.columns {
            let _ = writeln!(text, "  {name:<20} {encoding}");
        }
        text.push_str("\nproblems found\n");
        if self.problems.is_empty() {
            text.push_str("  none\n");
        }
        for problem in &self.problems {
            let _ = writeln!(text, "  {problem}");
        }
        text
    }
}

/// The encoding of a column, as text.
fn encoding(column: &ColumnEncoder, features: &Table) -> Result<String> {
    Ok(match &column.encoding {
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
    })
}

/// Wraps text for a terminal.
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

/// Why a numeric column is not used. Numbers that agree to 13 digits count as equal but may differ,
/// such as large identifiers.
fn ignored(column: &Column) -> String {
    /// From here on, whole numbers are rounded when they are read.
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

/// Warnings about this data, one sentence each.
fn problems(features: &Table, encoder: &Encoder, bags: &Bags, classes: &[String]) -> Vec<String> {
    /// Below this number of bags an interval is too wide to choose a model by.
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

/// Sizes by powers of two, from the smallest to the largest.
fn sizes(bags: &Bags) -> Vec<SizeRange> {
    let mut counts = vec![0; 64];
    for size in bags.sizes() {
        counts[size.ilog2() as usize] += 1;
    }
    let first = counts.iter().position(|&count| count > 0).unwrap_or(0);
    let last = counts.iter().rposition(|&count| count > 0).unwrap_or(0);
    let range = |power: usize| SizeRange { from: 1 << power, to: (1 << power) * 2 - 1, bags: counts[power] };
    (first..=last).map(range).collect()
}

fn histogram(sizes: &[SizeRange]) -> String {
    const WIDTH: usize = 40;
    let most = sizes.iter().map(|range| range.bags).max().unwrap_or(1);
    let mut text = String::new();
    for &SizeRange { from, to, bags } in sizes {
        let range = if from == to { from.to_string() } else { format!("{from} to {to}") };
        let bar = "█".repeat((bags * WIDTH).div_ceil(most));
        let _ = writeln!(text, "  {range:>16}  {bar} {}", thousands(bags));
    }
    text
}
