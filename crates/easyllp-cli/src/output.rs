//! Output and exit codes, shared by all commands.

use anyhow::{Context, Result};
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;

/// The exit code for an invalid command line or environment.
pub(crate) const USAGE: u8 = 2;

/// Writes text to stdout.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).context("cannot write to standard output")
}

/// Rejects an output file that is also an input.
pub(crate) fn refuse_overwrite<'p>(out: &Path, inputs: impl IntoIterator<Item = &'p String>) -> Result<()> {
    let Ok(real) = out.canonicalize() else { return Ok(()) }; // there is no such file yet
    if inputs.into_iter().any(|input| Path::new(input).canonicalize().is_ok_and(|input| input == real)) {
        return Err(misuse(&format!(
            "{} is read and would be overwritten: choose another --out",
            out.display()
        )));
    }
    Ok(())
}

/// Whether the reader of stdout has closed it, as `| head` does: not an error.
pub(crate) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .any(|cause| cause.kind() == ErrorKind::BrokenPipe)
}

/// Handles clap's errors: help on stdout, a mistake in one line on stderr.
pub(crate) fn usage(answer: &clap::Error) -> ExitCode {
    use clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand as NothingSaid;
    if !answer.use_stderr() || answer.kind() == NothingSaid {
        // Where even help cannot be printed there is nobody to tell.
        let _ = answer.print();
    } else {
        let text = answer.render().to_string();
        let lines =
            text.lines().take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
        let words: Vec<&str> = lines.flat_map(str::split_whitespace).collect();
        eprintln!(
            "easyllp: {}; see --help",
            words.join(" ").trim_start_matches("error: ").replace(" tip: ", "; ")
        );
    }
    ExitCode::from(if answer.use_stderr() { USAGE } else { 0 })
}

/// A mistake in the combination of options.
pub(crate) fn misuse(message: &str) -> anyhow::Error {
    clap::Error::raw(clap::error::ErrorKind::ArgumentConflict, message).into()
}

/// An error of the library, shown as a mistake on the command line if it is about settings.
pub(crate) fn refused_settings(error: easyllp::Error) -> anyhow::Error {
    misuse(&spelled(&error.in_full()))
}

/// A message of the library, with settings replaced by command-line options.
pub(crate) fn spelled(sentence: &str) -> String {
    let options = ["l2", "epochs", "lr", "batch_size"];
    options.into_iter().fold(sentence.to_owned(), |sentence, name| {
        sentence.replace(&format!("`{name}`"), &format!("--{}", name.replace('_', "-")))
    })
}

/// The options to look at after an error of the library, which has no names for them: to be added to its message.
pub(crate) fn options_to_see(error: &anyhow::Error) -> String {
    use easyllp::Error;
    let options = match error.chain().find_map(|cause| cause.downcast_ref()) {
        Some(Error::ClassesDiffer { .. }) => "--count and --class",
        Some(Error::CountMissing { .. }) => "--suppressed-below",
        Some(Error::Diverged { .. }) => "--lr and --l2",
        Some(Error::OnnxHash { .. }) => "--max-vocabulary of train",
        Some(Error::RowsWithoutReport { .. } | Error::ReportsWithoutRows { .. }) => "--on-mismatch",
        Some(Error::TooFewHeldOut { .. }) => "--holdout",
        Some(Error::TooManyLabels { .. }) => "--positive",
        Some(Error::Unbounded { .. }) => "--l2",
        Some(Error::UnknownFormat { .. }) => "--delimiter",
        Some(Error::UnknownLabels { hint, .. }) if !hint.is_empty() => "--positive",
        _ => return String::new(),
    };
    format!(" (see {options})")
}

/// Prints a value as JSON.
pub(crate) fn print_json(value: &impl serde::Serialize) -> Result<()> {
    print(&format!("{}\n", serde_json::to_string_pretty(value)?))
}

/// A count with commas between thousands.
pub(crate) fn thousands(count: usize) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{spelled, thousands};

    #[test]
    fn options_are_spelled_as_on_the_command_line() {
        let sentence = "`batch_size` and `l2` cannot be set; its weights are limited by `domain`";
        assert_eq!(
            spelled(sentence),
            "--batch-size and --l2 cannot be set; its weights are limited by `domain`"
        );
    }

    #[test]
    fn commas_stand_between_thousands() {
        assert_eq!(
            [0, 16, 999, 1000, 48_842, 1_234_567].map(thousands),
            ["0", "16", "999", "1,000", "48,842", "1,234,567"]
        );
    }
}
