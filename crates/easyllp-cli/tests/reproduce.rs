//! `easyllp reproduce`: finished cells are kept, and an interrupted run ends with the same bytes.

use assert_cmd::cargo::cargo_bin;
use easyllp::files::Journal;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// Two experiments: one whose cells share a pass, and others beside it; and one without data.
const ACCURACY: &str = "experiment = \"accuracy\"\ndataset = \"optdigits\"\ntasks = [\"even-vs-odd\", \"3\"]\nmodel = \"linear\"\n\
    methods = [\"event\", \"easyllp\", \"label-generation\"]\nbag-sizes = [2, 16]\nreplicas = 3\nepochs = 8\n";
const ERM: &str = "experiment = \"erm\"\nsizes = [1, 4]\nbags = [50, 100]\nsamples = 20\n";

fn reproduce(folder: &Path, out: &str, more: &[&str]) -> Command {
    let mut command = Command::new(cargo_bin!("easyllp"));
    command
        .args(["reproduce", "own-accuracy.toml", "own-erm.toml", "--out", out])
        .args(more)
        .current_dir(folder);
    command
}

fn done(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("own-accuracy.toml"), ACCURACY).unwrap();
    fs::write(folder.path().join("own-erm.toml"), ERM).unwrap();
    folder
}

fn results(folder: &Path, out: &str) -> Vec<Vec<u8>> {
    ["own-accuracy.csv", "own-erm.csv"].map(|name| fs::read(folder.join(out).join(name)).unwrap()).to_vec()
}

/// The records of unfinished runs: their files, keys and contents. A run that ends packs them. Those of the time that was spent, which
/// has no line of points, are not of cells.
fn records(folder: &Path, out: &str) -> BTreeMap<PathBuf, (String, String)> {
    let files = fs::read_dir(folder.join(out).join("journal")).into_iter().flatten().flatten();
    let record = |path: PathBuf| {
        let is_it = path.extension().is_some_and(|extension| extension == "record");
        let bytes = is_it.then(|| fs::read(&path).unwrap())?;
        // A checksum, the key and the points.
        let text = std::str::from_utf8(&bytes[8..]).ok()?;
        let (key, points) =
            text.split_once('\n').filter(|(_, points)| points.starts_with("panel,series,x,"))?;
        Some((path, (key.to_owned(), points.to_owned())))
    };
    files.filter_map(|file| record(file.path())).collect()
}

/// Copies the files of a folder.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for file in fs::read_dir(from).unwrap().flatten() {
        fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
}

/// The number of finished cells that the output names.
fn n_done(output: &Output) -> usize {
    let text = String::from_utf8_lossy(&output.stdout);
    let of_line = |line: &str| line.split_once(": ")?.1.split(' ').next()?.parse::<usize>().ok();
    text.lines().filter_map(of_line).sum()
}

/// Killed at ten moments, spread over its cells, and started again each time: no byte is different in the end, and nothing that was done is
/// done again.
#[test]
fn a_run_that_is_killed_and_started_again_ends_with_the_same_bytes() {
    let folder = folder();
    let n_cells = n_done(&done(&mut reproduce(folder.path(), "whole", &["--threads", "2"])));
    let expected = results(folder.path(), "whole");
    let mut is_cut_short = false;
    for moment in 0..10 {
        let mut run = reproduce(folder.path(), "killed", &["--threads", "2"]);
        let mut run = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // At once, then when another tenth is done, in the middle of other cells: by the clock it might always be before the first
        // cell or after the last.
        let is_early = || records(folder.path(), "killed").len() < moment * n_cells / 10;
        while is_early() && run.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        run.kill().unwrap();
        run.wait().unwrap();
        if (1..n_cells).contains(&records(folder.path(), "killed").len()) {
            is_cut_short = true;
            copy(&folder.path().join("killed/journal"), &folder.path().join("changed/journal"));
        }
    }
    assert!(is_cut_short, "no run was killed between the first and the last of {n_cells} cells");
    let before = records(folder.path(), "changed");
    // Another value in a record is found in the results: its cell was not run again.
    let (_, (key, points)) = before.first_key_value().expect("a finished cell");
    let (kept, _) = points.trim_end().rsplit_once(',').unwrap();
    let journal = Journal::open(&folder.path().join("changed/journal")).unwrap();
    journal.put(key, format!("{kept},0.123456\n").as_bytes()).unwrap();
    done(&mut reproduce(folder.path(), "changed", &["--threads", "2"]));
    let changed = results(folder.path(), "changed").concat();
    assert_eq!(String::from_utf8(changed).unwrap().matches("0.123456").count(), 1);
    let output = done(&mut reproduce(folder.path(), "killed", &["--threads", "1"]));
    assert_eq!(results(folder.path(), "killed"), expected);
    // A run that ends leaves one file, from which the next one has nothing to do.
    assert_eq!(records(folder.path(), "killed").len(), 0);
    let pack = folder.path().join("killed/journal/records.pack");
    let packed = fs::read(&pack).unwrap();
    assert_eq!(n_done(&done(&mut reproduce(folder.path(), "killed", &[]))), n_cells);
    assert_eq!(fs::read(&pack).unwrap(), packed);
    assert!(String::from_utf8_lossy(&output.stdout).contains("own-erm: 4 of 4 cells"));
    // Nor does it matter in which order cells are taken.
    done(&mut reproduce(folder.path(), "by width", &["--budget", "2h"]));
    assert_eq!(results(folder.path(), "by width"), expected);
    // Nothing half-written is left under any name that is looked at, and the page is there.
    let page = fs::read_to_string(folder.path().join("killed/index.html")).unwrap();
    assert!(page.contains("The paper's claims") && page.contains("own-accuracy.csv"));
}

#[test]
fn a_budget_of_nothing_begins_nothing_and_mistakes_are_told() {
    let folder = folder();
    let output = done(&mut reproduce(folder.path(), "none", &["--budget", "0s"]));
    assert!(String::from_utf8_lossy(&output.stdout).contains("own-accuracy: 0 of"));
    let output = done(&mut reproduce(folder.path(), "none", &["--budget", "0s", "--json"]));
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let erm = serde_json::json!({ "name": "own-erm", "cells": 4, "done": 0, "empty": 0 });
    assert_eq!((&found["experiments"][1], &found["page"]), (&erm, &"none/index.html".into()));
    let refused = |arguments: &[&str]| {
        let output = Command::new(cargo_bin!("easyllp"))
            .arg("reproduce")
            .args(arguments)
            .current_dir(&folder)
            .output()
            .unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, message) = refused(&["dance"]);
    assert!(
        code == Some(2) && message.contains("there is no experiment `dance`; choose all, variance"),
        "{message}"
    );
    let (code, message) = refused(&["--budget", "2 days"]);
    assert!(code == Some(2) && message.contains("such as 90s, 30m or 2h"), "{message}");
    let (code, message) = refused(&["nowhere.toml"]);
    assert!(code == Some(1) && message.contains("cannot read nowhere.toml"), "{message}");
    fs::write(folder.path().join("odd.toml"), "experiment = \"erm\"\nsizes = []\nbags = [5]\nsamples = 1\n")
        .unwrap();
    let (code, message) = refused(&["odd.toml"]);
    assert!(code == Some(1) && message.contains("odd describes no experiment: `sizes`"), "{message}");
    let (code, message) = refused(&["mnist-linear", "--data", "empty", "--out", "r"]);
    assert!(
        code == Some(1)
            && message.contains("mnist is not in empty: `easyllp datasets get mnist --dir empty`"),
        "{message}"
    );
    assert!(!folder.path().join("r/index.html").exists());
}

/// Ctrl-C shows what is done, and the rest is done when it is started again.
#[cfg(unix)]
#[test]
fn an_interrupt_leaves_a_page_of_what_is_done() {
    let folder = folder();
    // Cells of a moment, and two of minutes.
    let long = ERM.replace("[50, 100]", "[50, 100000]").replace("samples = 20", "samples = 400");
    fs::write(folder.path().join("own-erm.toml"), long).unwrap();
    let mut run = reproduce(folder.path(), "r", &["--threads", "1"]);
    let mut run = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let is_begun = || folder.path().join("r/own-erm.json").exists();
    while !is_begun() && run.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(Command::new("kill").args(["-INT", &run.id().to_string()]).status().unwrap().success());
    let output = run.wait_with_output().unwrap();
    let (told, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(told.contains("own-erm: ") && told.contains("index.html"), "{told}");
    assert!(said.contains("once more ends it at once") && said.ends_with("easyllp: interrupted\n"), "{said}");
    let page = fs::read_to_string(folder.path().join("r/index.html")).unwrap();
    assert!(page.contains("own-erm.csv") && page.contains("cells so far"), "{page}");
}

#[test]
fn experiments_without_data_are_left_out_and_named_in_the_end() {
    let folder = folder();
    let more = ["mnist-linear", "cifar-cnn", "mnist-cnn", "--data", "empty"];
    let output = reproduce(folder.path(), "some", &more).output().unwrap();
    let (told, refused) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1));
    assert!(told.contains("own-erm: 4 of 4 cells") && told.ends_with("index.html\n"), "{told}");
    let expected = [
        "left out mnist-linear, mnist-cnn: mnist is not in empty: `easyllp datasets get mnist --dir empty` brings it there",
        "left out cifar-cnn: cifar10 is not in empty: `easyllp datasets get cifar10 --dir empty` brings it there",
    ];
    assert!(expected.iter().all(|line| refused.contains(line)), "{refused}");
    // What comes along with no program stays on the page when others are run.
    let mut other = Command::new(cargo_bin!("easyllp"));
    fs::write(folder.path().join("second.toml"), ERM).unwrap();
    done(other.args(["reproduce", "second.toml", "--out", "some"]).current_dir(&folder));
    let page = fs::read_to_string(folder.path().join("some/index.html")).unwrap();
    for name in ["own-accuracy", "own-erm", "second"] {
        assert!(page.contains(&format!("({name})</h2>")), "{name}");
    }
    assert!(page.contains("easyllp reproduce own-accuracy.toml own-erm.toml"));
}

#[test]
fn an_experiment_that_fails_keeps_what_it_found_and_others_are_run() {
    let folder = folder();
    // All rows in one bag, of which none can be held out: the second of two cells fails.
    let failing = "experiment = \"accuracy\"\ndataset = \"optdigits\"\ntasks = [\"3\"]\nmodel = \"mlp:2\"\n\
        methods = [\"easyllp\"]\nbag-sizes = [32, 100000]\nreplicas = 1\nepochs = 1\n";
    fs::write(folder.path().join("failing.toml"), failing).unwrap();
    let arguments = ["reproduce", "failing.toml", "own-erm.toml", "--out", "some", "--threads", "1"];
    let output = Command::new(cargo_bin!("easyllp")).args(arguments).current_dir(&folder).output().unwrap();
    let (told, refused) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1));
    assert!(told.contains("own-erm: 4 of 4 cells") && told.ends_with("index.html\n"), "{told}");
    assert!(refused.contains("easyllp: experiment failing: "), "{refused}");
    let csv = fs::read_to_string(folder.path().join("some/failing.csv")).unwrap();
    assert_eq!(csv.lines().count(), 1 + 3, "{csv}");
    let page = fs::read_to_string(folder.path().join("some/index.html")).unwrap();
    assert!(page.contains("1 of 2 cells so far") && page.contains("(own-erm)</h2>"));
}

#[test]
fn clicks_that_are_made_up_come_with_their_chances() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["datasets", "export", "synthetic-ctr", "--part", "test", "--out", "clicks.csv"];
    done(Command::new(cargo_bin!("easyllp")).args(arguments).current_dir(&folder));
    let text = fs::read_to_string(folder.path().join("clicks.csv")).unwrap();
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    assert_eq!((names.len(), lines.clone().count()), (13 + 26 + 2, 20_000));
    assert_eq!(names[39..], ["click", "probability"]);
    let chances = lines.map(|line| line.rsplit(',').next().unwrap().parse::<f64>().unwrap());
    assert!(chances.into_iter().all(|chance| chance > 0.0 && chance < 1.0));
}

#[test]
fn who_asks_for_criteo_is_told_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |arguments: &[&str]| {
        let output =
            Command::new(cargo_bin!("easyllp")).args(arguments).current_dir(&folder).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, message) = refused(&["datasets", "get", "criteo", "--dir", "sets"]);
    let told = ["licence does not let others pass it on", "put your copy to sets/criteo/train.txt"];
    assert!(code == Some(2) && told.iter().all(|part| message.contains(part)), "{message}");
    let (code, message) = refused(&["datasets", "get", "iris"]);
    assert!(code == Some(2) && message.contains("possible values: mnist, cifar10]"), "{message}");
    // A copy of a single line cannot be split.
    let line = format!("1{}{}\n", "\t5".repeat(13), "\tff".repeat(26));
    fs::create_dir_all(folder.path().join("sets/criteo")).unwrap();
    fs::write(folder.path().join("sets/criteo/train.txt"), line).unwrap();
    let text = ACCURACY.replace("optdigits", "criteo").replace("\"even-vs-odd\", \"3\"", "\"label\"");
    fs::write(folder.path().join("clicks.toml"), text).unwrap();
    let (code, message) = refused(&["reproduce", "clicks.toml", "--data", "sets", "--out", "r"]);
    let told = "sets/criteo/train.txt has 1 lines, but at least 1000001 are needed";
    assert!(code == Some(1) && message.contains(told), "{message}");
}

#[test]
fn experiments_are_named() {
    let output = done(Command::new(cargo_bin!("easyllp")).args(["reproduce", "--list"]));
    let names = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(names.lines().any(|name| name == "mnist-linear") && !names.contains("quick"));
    let output = done(Command::new(cargo_bin!("easyllp")).args(["reproduce", "--list", "--json"]));
    let listed: Vec<String> = serde_json::from_slice(&output.stdout).unwrap();
    assert!(names.lines().eq(listed));
}
