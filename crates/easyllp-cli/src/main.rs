//! The program `easyllp`: reads its arguments, calls the library, prints. Data goes to stdout, messages to stderr.
//!
//! Exit codes: 0 all is well; 1 the data or the machine said no; 2 the command line makes no sense.

mod args;
mod commands;
mod output;

use args::{Args, Command};
use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args = Args::parse(); // exits with 2 and a message of its own
    let done = match &args.command {
        Command::Demo(demo) => commands::demo::run(demo),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if output::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("easyllp: {error:#}");
            ExitCode::FAILURE
        }
    }
}
