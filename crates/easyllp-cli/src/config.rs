//! `--config FILE`: options of `train` out of a TOML file, under their names on the command line, which wins.

use crate::output::misuse;
use anyhow::{Context, Result};
use clap::CommandFactory;
use std::ffi::OsString;
use std::path::Path;
use toml::Value;

/// The arguments, with those of a `--config` file added where the command line does not say otherwise.
pub(crate) fn with_config(mut arguments: Vec<OsString>) -> Result<Vec<OsString>> {
    let is_train = arguments.get(1).is_some_and(|command| command == "train");
    let Some(path) = config_path(&arguments).filter(|_| is_train) else { return Ok(arguments) };
    let path = Path::new(&path);
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
        let line = error.span().map_or(1, |span| 1 + text[..span.start].matches('\n').count());
        anyhow::anyhow!("{}, line {line}: {}", path.display(), error.message().replace('\n', " "))
    })?;
    let command = crate::args::Args::command();
    let train = command.find_subcommand("train").expect("the command of this option");
    for (key, value) in &table {
        let name = key.replace('_', "-");
        let is_option = |argument: &clap::Arg| argument.get_long() == Some(name.as_str());
        if name == "config" || !train.get_arguments().any(is_option) {
            return Err(misuse(&format!("{} sets `{key}`, which is no option of train", path.display())));
        }
        if !is_given(&arguments, &name) {
            add(&mut arguments, &name, value).with_context(|| {
                format!("{} sets `{key}` to something that is no option's value", path.display())
            })?;
        }
    }
    Ok(arguments)
}

fn config_path(arguments: &[OsString]) -> Option<OsString> {
    let place = arguments.iter().position(|argument| argument.to_string_lossy().starts_with("--config"))?;
    let argument = arguments[place].to_string_lossy();
    match argument.strip_prefix("--config=") {
        Some(path) => Some(path.into()),
        None if argument == "--config" => arguments.get(place + 1).cloned(),
        None => None,
    }
}

fn is_given(arguments: &[OsString], name: &str) -> bool {
    arguments.iter().any(|argument| {
        let argument = argument.to_string_lossy();
        argument
            .strip_prefix("--")
            .and_then(|rest| rest.strip_prefix(name))
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    })
}

/// `--name=value`, once for each value of a list; a flag that is false is left out.
fn add(arguments: &mut Vec<OsString>, name: &str, value: &Value) -> Result<()> {
    let text = match value {
        Value::Array(values) => return values.iter().try_for_each(|value| add(arguments, name, value)),
        Value::Boolean(is_set) => {
            arguments.extend(is_set.then(|| format!("--{name}").into()));
            return Ok(());
        }
        Value::String(text) => text.clone(),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Table(_) | Value::Datetime(_) => {
            anyhow::bail!("text, a number, true, false or a list is needed")
        }
    };
    arguments.push(format!("--{name}={text}").into());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_wins() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("train.toml");
        std::fs::write(&path, "l2 = 0.5\nkey = ['a', 'b']\nbag_weights = 'size'\nseed = 3\n").unwrap();
        let path = path.display().to_string();
        let arguments = ["easyllp", "train", "--config", &path, "--seed", "7", "--l2=1"];
        let merged = with_config(arguments.iter().map(OsString::from).collect()).unwrap();
        let merged: Vec<String> = merged.into_iter().map(|part| part.into_string().unwrap()).collect();
        assert_eq!(merged[..7], arguments);
        assert_eq!(merged[7..], ["--bag-weights=size", "--key=a", "--key=b"]);
        let of_other = vec!["easyllp".into(), "show".into(), "--config".into(), "nowhere".into()];
        assert_eq!(with_config(of_other.clone()).unwrap(), of_other);
    }
}
