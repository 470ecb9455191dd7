//! Completions for shells and manual pages name every command.

use assert_cmd::cargo::cargo_bin;
use std::process::Command;

const COMMANDS: [&str; 8] = ["bag", "inspect", "train", "tune", "predict", "evaluate", "export", "reproduce"];

fn easyllp(arguments: &[&str]) -> std::process::Output {
    Command::new(cargo_bin!("easyllp")).args(arguments).output().unwrap()
}

#[test]
fn completions_name_the_commands() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let output = easyllp(&["completions", shell]);
        assert!(output.status.success());
        let script = String::from_utf8(output.stdout).unwrap();
        for command in COMMANDS {
            assert!(script.contains(command), "{shell}: {command}");
        }
        // Fish has names of options without dashes.
        let option = if shell == "fish" { "-l reports" } else { "--reports" };
        assert!(script.contains(option), "{shell}");
    }
    let output = easyllp(&["completions", "abacus"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn manual_pages_are_written_for_all_commands() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man");
    assert!(easyllp(&["man", pages.to_str().unwrap()]).status.success());
    for command in COMMANDS {
        let page = std::fs::read_to_string(pages.join(format!("easyllp-{command}.1"))).unwrap();
        assert!(page.contains(".SH OPTIONS"), "{command}");
    }
    // A file stands where the folder should be.
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let output = easyllp(&["man", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().starts_with("easyllp: cannot create"));
}
