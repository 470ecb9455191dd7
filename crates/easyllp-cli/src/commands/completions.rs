//! `easyllp completions`: shell completions and manual pages.

use crate::args::Args;
use crate::output::print;
use anyhow::{Context, Result};
use clap::{Args as ClapArgs, CommandFactory};
use clap_complete::Shell;
use std::path::PathBuf;

/// Print a shell's completion script.
///
/// For example, in ~/.bashrc: source <(easyllp completions bash)
#[derive(Debug, ClapArgs)]
pub(crate) struct CompletionsArgs {
    /// Shell
    shell: Shell,
}

/// Write manual pages, one for each command.
#[derive(Debug, ClapArgs)]
pub(crate) struct ManArgs {
    /// Folder to write them to; created if it does not exist
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

pub(crate) fn run(args: &CompletionsArgs) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "easyllp", &mut script);
    print(&String::from_utf8(script).context("the script is not UTF-8")?)
}

pub(crate) fn write_pages(args: &ManArgs) -> Result<()> {
    let folder = &args.folder;
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    clap_mangen::generate_to(Args::command(), folder)
        .with_context(|| format!("cannot write manual pages to {}", folder.display()))
}
