//! The command line, as clap reads it.

use crate::commands::demo::DemoArgs;
use clap::{Parser, Subcommand};

/// Learn a model of individual rows when only aggregate labels are known.
///
/// Rows come in bags, and each bag reports how many of its rows are positive. easyllp trains a model that scores single
/// rows from those counts, and says how good it is without one row label.
#[derive(Debug, Parser)]
#[command(name = "easyllp", version, max_term_width = 100, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Demo(DemoArgs),
}
