//! `easyllp methods`: what can be named with --method.

use crate::output::print;
use anyhow::Result;
use clap::Args;
use comfy_table::{ContentArrangement, Table, presets};
use easyllp::MethodName;

/// List the methods that learn from bags.
#[derive(Debug, Args)]
pub(crate) struct MethodsArgs {}

pub(crate) fn run(_: &MethodsArgs) -> Result<()> {
    /// A width that any terminal has.
    const WIDTH: u16 = 110;
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY);
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(WIDTH);
    table.set_header(["method", "what it does", "bags made", "trained by", "cost a row", "reference"]);
    for name in MethodName::ALL {
        let about = name.about();
        let by = if name.judges_bags() { "bags" } else { "rows" };
        table.add_row([name.as_str(), about.what, about.bags, by, about.cost, about.reference]);
    }
    print(&format!(
        "{table}\nAll take any model and any number of classes. k: rows in a bag, C: classes; cost beyond the model's own.\n"
    ))
}
