//! Bags made by a file's own columns, and keys that two files write in two ways.

use assert_cmd::Command;
use easyllp::table::{Kind, Source};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

fn easyllp(folder: &Path, arguments: &str) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("easyllp"));
    command.current_dir(folder).args(arguments.split_whitespace());
    command
}

fn stdout(folder: &Path, arguments: &str) -> String {
    let output = easyllp(folder, arguments).assert().success();
    String::from_utf8(output.get_output().stdout.clone()).expect("UTF-8")
}

fn refused(folder: &Path, arguments: &str) -> String {
    let output = easyllp(folder, arguments).assert().failure();
    String::from_utf8(output.get_output().stderr.clone()).expect("UTF-8")
}

fn columns(folder: &Path, path: &str) -> Vec<(String, Kind)> {
    let source = Source::open(&[folder.join(path).display().to_string()], BTreeMap::new()).expect("a table");
    source.columns().into_iter().map(|(name, kind)| (name.to_owned(), kind)).collect()
}

fn named(columns: &[(&str, Kind)]) -> Vec<(String, Kind)> {
    columns.iter().map(|&(name, kind)| (name.to_owned(), kind)).collect()
}

/// Rows with a job, a month, two numbers and a label that depends on one of them, grouped into jobs and months regardless of it.
fn rows() -> String {
    let mut text = "job,month,zip,x,y\n".to_owned();
    let mut state = 1_u64;
    let mut draw = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for _ in 0..3_000 {
        let x = draw(1_000);
        let y = u64::from(draw(1_000) < x);
        let job = ["clerk", "cook", "\"maid, or \"\"char\"\"\"", "NA", ""]
            [usize::try_from(draw(5)).expect("small")];
        let _ = writeln!(text, "{job},{},{:05},{}.{:02},{y}", 1 + draw(12), draw(300), x / 100, x % 100);
    }
    text
}

/// Reports have the columns that bags were made by, under their names and of their types, and so have the rows.
#[test]
fn bags_by_columns_are_trained_and_evaluated_by_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    fs::write(folder.join("rows.csv"), rows()).expect("a file");
    let (text, whole, number) = (Kind::Text, Kind::Integer, Kind::Number);
    for format in ["parquet", "arrow", "csv"] {
        stdout(
            folder,
            &format!("bag --rows rows.csv --label y --by job,month --format {format} --out {format}"),
        );
        let columns = |name: &str| columns(folder, &format!("{format}/{name}.{format}"));
        assert_eq!(columns("rows"), named(&[("job", text), ("month", whole), ("zip", whole), ("x", number)]));
        let expected = [("job", text), ("month", whole), ("size", whole), ("1", number)];
        assert_eq!(columns("reports"), named(&expected));
        // Classes have names, which a CSV file does not tell from numbers.
        let label = if format == "csv" { whole } else { text };
        assert_eq!(columns("labels"), named(&[("job", text), ("month", whole), ("label", label)]));
        let files = format!(
            "--rows {format}/rows.{format} --reports {format}/reports.{format} --key job,month --count 1 --size size"
        );
        stdout(folder, &format!("train {files} --exclude zip --l2 0.01 --holdout 0 --out model"));
        let shown = stdout(folder, &format!("evaluate --model model {files}"));
        assert!(shown.contains("AUC"), "{shown}");
    }
    // From text to text nothing changes, zeros in front included.
    let labelled = rows();
    let without_label =
        labelled.lines().map(|line| line.rsplit_once(',').expect("a label").0.to_owned() + "\n");
    assert_eq!(
        fs::read_to_string(folder.join("csv/rows.csv")).expect("rows"),
        without_label.collect::<String>()
    );
    // Bags come in the order of their keys, numbers by size.
    let reports = fs::read_to_string(folder.join("csv/reports.csv")).expect("reports");
    let month = |line: &str| line.split(',').nth(1).expect("a month").to_owned();
    let months: Vec<String> = reports.lines().skip(1).take(12).map(month).collect();
    assert_eq!(months, (1..=12).map(|month| month.to_string()).collect::<Vec<_>>());
}

/// A column is a number to the model whether or not bags were made by it.
#[test]
fn a_key_that_is_a_feature_keeps_its_type() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    fs::write(folder.join("rows.csv"), rows()).expect("a file");
    stdout(folder, "bag --rows rows.csv --label y --by month --out by");
    let files = "--rows by/rows.parquet --reports by/reports.parquet --key month --count 1";
    stdout(folder, &format!("train {files} --features month,x --l2 0.01 --holdout 0 --out model"));
    let shown = stdout(folder, "show model");
    assert!(shown.contains("month") && !shown.contains("categor"), "{shown}");
}

/// Whole numbers are the same keys in any spelling, and what does not match is shown from both sides.
#[test]
fn keys_match_by_value_and_mismatches_show_both_sides() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let rows = |keys: [&str; 3]| {
        let mut text = "bag,x\n".to_owned();
        for (place, key) in keys.iter().cycle().take(12).enumerate() {
            let _ = writeln!(text, "{key},{}", place % 5);
        }
        text
    };
    let reports = |keys: [&str; 3]| format!("bag,count\n{},1\n{},2\n{},0\n", keys[0], keys[1], keys[2]);
    let train =
        "train --rows rows.csv --reports reports.csv --key bag --count count --l2 1 --holdout 0 --out model";
    for (of_rows, of_reports) in [
        (["0", "1", "2"], ["0.0", "1.0", "2.0"]),
        (["00000", "00001", "00002"], ["0", "1", "2"]),
        (["0", "1", "2"], ["2", "01", "-0"]),
        (["True", "False", ""], ["true", "false", ""]),
        (["2026-05-31", "2026-06-01", "NA"], ["2026-05-31 00:00:00", "2026-06-01T00:00:00", ""]),
        (["NA", "None", "x"], ["None", "x", "NA"]),
    ] {
        fs::write(folder.join("rows.csv"), rows(of_rows)).expect("a file");
        fs::write(folder.join("reports.csv"), reports(of_reports)).expect("a file");
        stdout(folder, train);
    }
    fs::write(folder.join("rows.csv"), rows(["0", "1", "2"])).expect("a file");
    for (keys, expected) in [
        (
            ["0", "1", "7.5"],
            "such as 2 (1 in all); reports have keys such as 7.5 (`bag` holds whole numbers in the rows and numbers in the reports)",
        ),
        (
            ["a", "1", "2"],
            "holds whole numbers in the rows, such as 0, 1, 2, but text in the reports, such as a, 1, 2",
        ),
        (["0", "1", "9007199254740992.0"], "a floating-point number of at least 2^53"),
    ] {
        fs::write(folder.join("reports.csv"), reports(keys)).expect("a file");
        let said = refused(folder, train);
        assert!(said.contains(expected), "{said}");
    }
    fs::write(folder.join("labelled.csv"), "x,y,size\n1,0,a\n2,1,b\n").expect("a file");
    let said = refused(folder, "bag --rows labelled.csv --label y --by size --out d");
    assert!(said.contains("`size`, as a column of the reports already is"), "{said}");
    assert!(!folder.join("d").exists());
}

/// The same rows and reports by every delimiter: the same model and the same predictions, to the byte.
#[test]
fn delimiters_do_not_change_the_model() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    fs::write(folder.join("rows.csv"), rows()).expect("a file");
    stdout(folder, "bag --rows rows.csv --label y --by job,month --format csv --out bags");
    let (rows, reports) = ("bags/rows.csv", "bags/reports.csv");
    let read = |name: &str| fs::read(folder.join(name)).expect("a file");
    // No other field than the last of the jobs has a comma.
    let rewrite = |from: &str, to: &str, delimiter: &str| {
        let text = String::from_utf8(read(from)).expect("UTF-8").replace("maid, or", "maid@ or");
        let text = text.replace(',', delimiter).replace("maid@ or", "maid, or");
        fs::write(folder.join(to), text).expect("a file");
    };
    for (name, delimiter) in [("tsv", "\t"), ("txt", ";"), ("pipe.csv", "|")] {
        rewrite(rows, &format!("rows.{name}"), delimiter);
        rewrite(reports, &format!("reports.{name}"), delimiter);
    }
    let config =
        "delimiter = ';'\nrows = 'rows.txt'\nreports = 'reports.txt'\nkey = ['job', 'month']\ncount = '1'\n";
    fs::write(folder.join("data.toml"), format!("[data]\n{config}")).expect("a file");
    let files =
        |rows: &str, reports: &str| format!("--rows {rows} --reports {reports} --key job,month --count 1");
    let results = |data: &str, rows: &str| {
        stdout(folder, &format!("train {data} --exclude job,month --l2 0.01 --holdout 0 --out model"));
        stdout(folder, &format!("predict --model model {rows} --keep job --out scores.csv"));
        let inspected = stdout(folder, &format!("inspect {data} --json"));
        (
            read("model"),
            read("scores.csv"),
            stdout(folder, &format!("evaluate {data} --model model --json")),
            inspected,
        )
    };
    let expected = results(&files(rows, reports), &format!("--rows {rows}"));
    for (data, rows) in [
        (files("rows.tsv", "reports.pipe.csv"), "--rows rows.tsv"),
        (files("rows.pipe.csv", "reports.tsv"), "--rows rows.pipe.csv --delimiter |"),
        (files("rows.txt", "reports.txt --delimiter semicolon"), "--rows rows.txt --delimiter ;"),
        ("--config data.toml".to_owned(), "--config data.toml"),
    ] {
        assert!(results(&data, rows) == expected, "{data}");
    }
    // Bags are made of such files, too.
    rewrite("rows.csv", "labelled.txt", "\t");
    stdout(
        folder,
        "bag --rows labelled.txt --delimiter tab --label y --by job,month --format csv --out again",
    );
    assert_eq!(read("again/rows.csv"), read(rows));
}
