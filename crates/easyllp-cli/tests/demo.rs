//! The program as a user meets it. Digits are masked in snapshots: they may depend on the processor.

use assert_cmd::Command;
use serde_json::Value;
use std::fmt::Write;
use std::process::Stdio;

fn easyllp(arguments: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("easyllp"));
    command.args(arguments);
    command
}

fn json(arguments: &[&str]) -> Value {
    let output = easyllp(arguments).arg("--json").assert().success();
    serde_json::from_slice(&output.get_output().stdout).expect("valid JSON")
}

fn stdout(arguments: &[&str]) -> String {
    let output = easyllp(arguments).assert().success().stderr("");
    String::from_utf8(output.get_output().stdout.clone()).expect("UTF-8")
}

fn model<'r>(report: &'r Value, trained_on: &str) -> &'r Value {
    let models = report["models"].as_array().expect("a list of models");
    models.iter().find(|model| model["trained_on"] == trained_on).expect("a model of this name")
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

#[test]
fn the_table_is_as_documented() {
    insta::with_settings!({filters => vec![(r"-?\d+\.\d{3}", "#.###"), (r"\b\d+ % \(", "## % (")]}, {
        insta::assert_snapshot!(stdout(&["demo"]));
    });
}

/// The README shows a run of the program: its words and numbers are up to date, up to the last digit.
#[test]
fn the_readme_shows_this_very_output() {
    let readme = include_str!("../../../README.md");
    let today = stdout(&["demo"]);
    let first = today.lines().next().expect("a first line");
    let shown = readme.split_once(first).expect("README.md shows the demo").1;
    let (shown, today) = (shown.split_whitespace(), today[first.len()..].split_whitespace());
    for (shown, today) in shown.zip(today) {
        match (shown.parse::<f64>(), today.parse::<f64>()) {
            (Ok(a), Ok(b)) => {
                assert!((a - b).abs() <= 1.0 + 1e-9 && ((a - b).abs() < 0.0015 || b > 2.0), "{a} {b}");
            }
            _ => assert_eq!(shown, today, "run the demo and put its output into README.md"),
        }
    }
}

#[test]
fn intervals_of_the_default_run_contain_the_truth() {
    for arguments in [&["demo"][..], &["demo", "--dataset", "adult"]] {
        let report = json(arguments);
        for model in report["models"].as_array().expect("a list of models") {
            for figure in ["log_loss", "brier", "accuracy"] {
                let figure = &model[figure];
                let (low, high) = (number(&figure["from_bags"]["low"]), number(&figure["from_bags"]["high"]));
                assert!((low..=high).contains(&number(&figure["true"])), "{arguments:?}: {model:#}");
            }
        }
    }
}

#[test]
fn easyllp_beats_the_naive_way_where_it_should() {
    let report = json(&["demo", "--task", "0-vs-rest"]);
    let (naive, easyllp) = (model(&report, "naive"), model(&report, "easyllp"));
    assert!(number(&naive["recall"]) < 0.05, "{naive:#}");
    assert!(number(&easyllp["recall"]) > 0.75, "{easyllp:#}");
    assert!(number(&easyllp["log_loss"]["true"]) < 0.5 * number(&naive["log_loss"]["true"]));
    let ten = json(&["demo", "--task", "digits", "--bag-size", "4"]);
    assert!(number(&model(&ten, "easyllp")["accuracy"]["true"]) > 0.8);
}

#[test]
fn bags_of_one_are_full_supervision() {
    let report = json(&["demo", "--bag-size", "1"]);
    let [labels, easyllp] = ["row_labels", "easyllp"].map(|name| model(&report, name));
    for figure in ["log_loss", "brier", "accuracy"] {
        assert_eq!(labels[figure], easyllp[figure]);
        let (truth, from_bags) =
            (number(&labels[figure]["true"]), number(&labels[figure]["from_bags"]["value"]));
        assert!((truth - from_bags).abs() < 1e-9);
    }
}

#[test]
fn threads_do_not_change_a_byte() {
    let adult = |threads| stdout(&["demo", "--dataset", "adult", "--json", "--threads", threads]);
    assert_eq!(adult("1"), adult("2"));
    assert_ne!(stdout(&["demo", "--json", "--seed", "1"]), stdout(&["demo", "--json", "--seed", "2"]));
}

#[test]
fn bad_input_gets_one_clear_message_and_its_exit_code() {
    let cases: [&[&str]; 9] = [
        &["dmeo"],
        &["demo", "--sede", "3"],
        &["demo", "--bag-size", "0"],
        &["demo", "--bag-size", "many"],
        &["demo", "--l2", "-1"],
        &["demo", "--task", "10-vs-rest"],
        &["demo", "--dataset", "mnist"],
        &["demo", "--dataset", "adult", "--task", "digits"],
        &["demo", "--bag-size", "2000"],
    ];
    let mut table = String::new();
    for arguments in cases {
        let output = easyllp(arguments).output().expect("the program runs");
        assert!(output.stdout.is_empty(), "data of a failure: {arguments:?}");
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(message.lines().count(), 1, "{arguments:?}: {message}");
        let code = output.status.code().expect("no signal");
        let _ = write!(table, "easyllp {}\n  {code}: {message}", arguments.join(" "));
    }
    insta::assert_snapshot!(table);
}

#[test]
fn help_and_version_are_there() {
    let nothing_said = easyllp(&[]).assert().code(2).stdout("");
    assert!(
        String::from_utf8_lossy(&nothing_said.get_output().stderr)
            .contains("Usage: easyllp [OPTIONS] <COMMAND>")
    );
    insta::assert_snapshot!(stdout(&["--help"]));
    insta::assert_snapshot!(stdout(&["demo", "--help"]));
    let version = format!("easyllp {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(stdout(&["-V"]), version);
    let vectors = stdout(&["--version"]).strip_prefix(&version).expect("the version first").to_owned();
    assert!(vectors.starts_with("vectors: ") && vectors.contains(" (available: scalar"), "{vectors}");
}

#[test]
fn the_environment_chooses_vectors_among_those_that_are_there() {
    let with = |vectors: &str| {
        let mut command = easyllp(&["--version"]);
        command.env("EASYLLP_VECTORS", vectors).assert()
    };
    let scalar = with("scalar").success();
    let version = String::from_utf8_lossy(&scalar.get_output().stdout).into_owned();
    assert!(version.contains("vectors: scalar (available: scalar"), "{version}");
    let refused = with("mmx").code(2).stdout("");
    let message = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
    let expected =
        "easyllp: EASYLLP_VECTORS is `mmx`, which this machine does not have: choose one of scalar";
    assert!(message.starts_with(expected) && message.lines().count() == 1, "{message}");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin!("easyllp"))
        .args(["demo", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program runs");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("the program ends");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty());
}

#[test]
fn work_goes_on_where_nobody_reads_messages() {
    let folder = tempfile::tempdir().expect("a folder");
    let rows = folder.path().join("adult.csv");
    easyllp(&["datasets", "export", "adult", "--part", "test", "--out"]).arg(&rows).assert().success();
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin!("easyllp"))
        .args(
            "train --rows adult.csv --label income --method supervised --l2 1 --holdout 0 --out m".split(' '),
        )
        .current_dir(folder.path())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program runs");
    drop(child.stderr.take());
    assert_eq!(child.wait().expect("the program ends").code(), Some(0));
    assert!(folder.path().join("m").exists());
}
