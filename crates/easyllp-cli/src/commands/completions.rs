//! `easyllp completions`: shell completions and manual pages.

use crate::output::print;
use anyhow::{Context, Result};
use clap::{Args as ClapArgs, Command};
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

/// Completions of this program.
pub(crate) fn run(args: &CompletionsArgs, mut program: Command) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut program, "easyllp", &mut script);
    print(&String::from_utf8(script).context("the script is not UTF-8")?)
}

/// Manual pages of this program.
pub(crate) fn write_pages(args: &ManArgs, program: Command) -> Result<()> {
    let folder = &args.folder;
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    clap_mangen::generate_to(program, folder)
        .with_context(|| format!("cannot write manual pages to {}", folder.display()))
}
