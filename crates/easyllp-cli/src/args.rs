//! The command line, parsed by clap.

use crate::commands::bag::BagArgs;
use crate::commands::completions::{CompletionsArgs, ManArgs};
use crate::commands::datasets::DatasetsArgs;
use crate::commands::demo::DemoArgs;
use crate::commands::evaluate::EvaluateArgs;
use crate::commands::export::ExportArgs;
use crate::commands::inspect::InspectArgs;
use crate::commands::methods::MethodsArgs;
use crate::commands::predict::PredictArgs;
use crate::commands::reproduce::ReproduceArgs;
use crate::commands::show::ShowArgs;
use crate::commands::train::TrainArgs;
use crate::commands::tune::TuneArgs;
use crate::messages::Verbosity;
use clap::{Parser, Subcommand};
use easyllp::train::Vectors;
use std::sync::LazyLock;

/// Learn a model of individual rows when only aggregate labels are known.
///
/// Rows come in bags, and each bag reports how many of its rows are positive. easyllp trains a model that scores single
/// rows from those counts, and estimates how good it is without row labels.
#[derive(Debug, Parser)]
#[command(name = "easyllp", version, long_version = version(), max_term_width = 100, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// Print no progress and no notes; warnings and errors stay
    #[arg(long, short, global = true, conflicts_with = "verbose", help_heading = GLOBAL)]
    quiet: bool,

    /// Print settings and stages of training, too
    #[arg(long, short, global = true, help_heading = GLOBAL)]
    verbose: bool,
}

/// The heading of global options.
const GLOBAL: &str = "Global options";

impl Args {
    /// The verbosity of messages.
    pub(crate) fn verbosity(&self) -> Verbosity {
        match (self.quiet, self.verbose) {
            (true, _) => Verbosity::Quiet,
            (_, true) => Verbosity::Verbose,
            _ => Verbosity::Normal,
        }
    }
}

/// The version, and the vector instructions that the last digits of results depend on.
fn version() -> &'static str {
    static VERSION: LazyLock<String> = LazyLock::new(|| {
        let available: Vec<&str> = Vectors::available().into_iter().map(Vectors::as_str).collect();
        let chosen = Vectors::chosen().map_or("none", Vectors::as_str);
        format!("{}\nvectors: {chosen} (available: {})", env!("CARGO_PKG_VERSION"), available.join(" "))
    });
    &VERSION
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Demo(DemoArgs),
    Bag(BagArgs),
    Inspect(Box<InspectArgs>),
    // Labels of rows stand in for reports.
    #[command(
        mut_arg("reports", |arg| arg.required_unless_present("label")),
        mut_arg("key", |arg| arg.required_unless_present("label")),
        mut_arg("count", |arg| arg.required_unless_present("label"))
    )]
    Train(Box<TrainArgs>),
    Tune(Box<TuneArgs>),
    Methods(MethodsArgs),
    Predict(PredictArgs),
    Evaluate(Box<EvaluateArgs>),
    Show(ShowArgs),
    Export(ExportArgs),
    Datasets(DatasetsArgs),
    Reproduce(ReproduceArgs),
    Completions(CompletionsArgs),
    // For packagers, by `make man`.
    #[command(hide = true)]
    Man(ManArgs),
}
