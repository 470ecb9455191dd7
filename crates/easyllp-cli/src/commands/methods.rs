//! `easyllp methods`: what can be named with --method.

use crate::output::print;
use anyhow::Result;
use clap::Args;
use easyllp::MethodName;
use std::fmt::Write;

/// List the methods that learn from bags.
#[derive(Debug, Args)]
pub(crate) struct MethodsArgs {}

pub(crate) fn run(_: &MethodsArgs) -> Result<()> {
    let mut text = String::new();
    for name in MethodName::ALL {
        let about = name.about();
        let unit = if name.judges_bags() { "whole bags" } else { "rows" };
        let _ = writeln!(
            text,
            "{name}\n  {}\n  trained by {unit}; bags made {}; cost a row {}; {}\n",
            about.what, about.bags, about.cost, about.reference
        );
    }
    text.push_str(
        "But for mean-map all take any model, and all any number of classes. k: rows in a bag, C: classes; cost beyond the model's own.\n",
    );
    print(&text)
}
