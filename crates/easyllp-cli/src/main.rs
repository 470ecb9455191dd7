//! The program `easyllp`: reads its arguments, calls the library, prints. Data goes to stdout, messages to stderr.
//!
//! Exit codes: 0 success; 1 an error in the data or on the machine; 2 an invalid command line; 130
//! interrupted.

/// Prints a message on stderr. Where nobody reads it, as after `2>&1 | head -1`, the work goes on: `std`'s macro panics there.
macro_rules! eprintln {
    ($($message:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($message)*);
    }};
}

mod args;
mod commands;
mod config;
mod data;
mod diagnosis;
mod figures;
mod interrupt;
mod messages;
mod method;
mod output;
mod progress;
mod settings;

use args::{Args, Command};
use clap::{CommandFactory, Parser};
use interrupt::{INTERRUPTED, Interrupted};
use output::USAGE;
use std::process::ExitCode;

fn main() -> ExitCode {
    interrupt::listen();
    if let Err(error) = easyllp::train::Vectors::chosen() {
        eprintln!("easyllp: {error}");
        return ExitCode::from(USAGE);
    }
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(usage) => return output::usage(&usage),
    };
    messages::set_verbosity(args.verbosity());
    let done = match &args.command {
        Command::Demo(demo) => commands::demo::run(demo),
        Command::Bag(bag) => commands::bag::run(bag),
        Command::Inspect(inspect) => commands::inspect::run(inspect),
        Command::Train(train) => commands::train::run(train),
        Command::Tune(tune) => commands::tune::run(tune),
        Command::Methods(methods) => commands::methods::run(methods),
        Command::Predict(predict) => commands::predict::run(predict),
        Command::Evaluate(evaluate) => commands::evaluate::run(evaluate),
        Command::Show(show) => commands::show::run(show),
        Command::Export(export) => commands::export::run(export),
        Command::Datasets(datasets) => commands::datasets::run(datasets),
        Command::Reproduce(reproduce) => commands::reproduce::run(reproduce),
        Command::Completions(completions) => commands::completions::run(completions, Args::command()),
        Command::Man(man) => commands::completions::write_pages(man, Args::command()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if output::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            if let Some(usage) = error.downcast_ref::<clap::Error>() {
                return output::usage(usage);
            }
            eprintln!("easyllp: {error:#}{}", output::options_to_see(&error));
            if error.is::<Interrupted>() { ExitCode::from(INTERRUPTED) } else { ExitCode::FAILURE }
        }
    }
}
