//! `easyllp methods`: what can be named with --method.

use crate::output::print;
use anyhow::Result;
use clap::Args;
use easyllp::MethodName;
use easyllp::method::{About, Serves};
use std::fmt::Write;

/// List the methods that learn from bags.
#[derive(Debug, Args)]
pub(crate) struct MethodsArgs {}

pub(crate) fn run(_: &MethodsArgs) -> Result<()> {
    let mut text = String::new();
    for name in MethodName::ALL {
        let About { what, bags, models, classes, cost, reference } = name.about();
        let models = match models {
            Serves::Any => "any, with any loss",
            Serves::LogOdds => "any, with logistic or softmax loss",
            Serves::LinearLogOdds => "linear, with logistic or softmax loss",
            Serves::LinearConvex => "linear, with a loss that stays convex",
        };
        let _ = writeln!(
            text,
            "{name}\n  {what} ({reference})\n  bags made: {bags}\n  models: {models}\n  classes: {classes}\n  cost a row: {cost}\n"
        );
    }
    text.push_str("k: rows in a bag, C: classes; cost a row and epoch, beyond the model's own.\n");
    print(&text)
}
