//! What the program says, and withholds, where data is not what it is taken for.

use assert_cmd::Command;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// What a run ends with: exit code, stdout and stderr.
fn run(folder: &Path, arguments: &str) -> (i32, String, String) {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("easyllp"));
    let output =
        command.current_dir(folder).args(arguments.split_whitespace()).output().expect("the program runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code().expect("an exit code"), text(output.stdout), text(output.stderr))
}

/// The same of a run that succeeds.
fn succeed(folder: &Path, arguments: &str) -> (String, String) {
    let (code, stdout, stderr) = run(folder, arguments);
    assert_eq!(code, 0, "{arguments}\n{stdout}{stderr}");
    (stdout, stderr)
}

/// Adult's people in bags by education: the label is correlated with how rows are grouped.
struct ByEducation {
    folder: tempfile::TempDir,
}

const BY: &str = "--rows by/rows.parquet --reports by/reports.parquet --key education --count >50K";

impl ByEducation {
    fn new() -> Self {
        let by = Self { folder: tempfile::tempdir().expect("a folder") };
        succeed(by.path(), "datasets export adult --part test --out adult.csv");
        succeed(by.path(), "bag --rows adult.csv --label income --positive >50K --by education --out by");
        by
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }
}

const NOT_RANDOM: &str = "the bags do not look random: counts vary ";

#[test]
fn training_on_bags_by_a_feature_warns_and_prints_no_metrics() {
    let by = ByEducation::new();
    let (text, _) = succeed(by.path(), &format!("inspect {BY}"));
    assert!(text.contains("The bags do not look random: counts vary"), "{text}");
    let (text, said) = succeed(by.path(), &format!("train {BY} --holdout 0.4 --out m"));
    assert!(text.is_empty(), "{text}");
    assert!(said.contains(&format!("warning: {NOT_RANDOM}")), "{said}");
    assert!(said.contains("withheld: use --force") && said.contains("assumes random bags"), "{said}");
    assert!(said.contains("differ from bag to bag by more than chance: education"), "{said}");
    let (text, said) = succeed(by.path(), &format!("train {BY} --holdout 0.4 --force --out m"));
    assert!(text.contains("AUC") && said.contains("because of --force"), "{text}{said}");
    // No metric chooses anything, and the method does not need random bags.
    let method = "--method count-likelihood --epochs 1 --holdout 0";
    let (text, said) = succeed(by.path(), &format!("train {BY} {method} --out m"));
    assert!(said.contains(NOT_RANDOM) && !said.contains("withheld") && !said.contains("assumes"), "{said}");
    assert!(text.is_empty(), "{text}");
}

#[test]
fn metrics_from_bags_by_a_feature_are_withheld() {
    let by = ByEducation::new();
    succeed(by.path(), &format!("train {BY} --l2 0.01 --holdout 0 --out m"));
    let evaluate = format!("evaluate --model m {BY}");
    let (text, said) = succeed(by.path(), &format!("{evaluate} --report page.html --against m --details"));
    assert!(said.contains(NOT_RANDOM) && said.contains("withheld. Use --force to show them"), "{said}");
    assert!(text.starts_with("The bags do not look random") && !text.contains("AUC"), "{text}");
    let page = fs::read_to_string(by.path().join("page.html")).expect("a page");
    assert!(page.contains("The bags do not look random"), "{page}");
    for part in ["ROC", "Precision and recall", "Calibration", "AUC"] {
        assert!(!page.contains(part), "the page shows {part}");
    }

    let json = |options: &str| -> Value {
        serde_json::from_str(&succeed(by.path(), &format!("{evaluate} --json {options}")).0).expect("JSON")
    };
    let found = json("");
    assert_eq!((&found["bags"]["verdict"], &found["shown"]), (&"not_random".into(), &"withheld".into()));
    assert!(found["figures"].as_array().expect("figures").iter().all(|figure| figure["from_bags"].is_null()));
    assert!(found["thresholds"].is_null() && found["confusion"].is_null(), "{found:#}");
    assert_eq!(json("--force")["shown"], "forced");

    let (text, said) = succeed(by.path(), &format!("{evaluate} --force"));
    assert!(said.contains(NOT_RANDOM) && said.contains("because of --force"), "{said}");
    assert!(text.starts_with("The bags do not look random") && text.contains("AUC"), "{text}");
    // What cannot be true is not printed as if it were.
    let impossible = |line: &str| {
        let cells: Vec<&str> = line.split_whitespace().collect();
        matches!(cells[..], ["AUC" | "accuracy", value, ..] if value.parse::<f64>().is_ok_and(|v| !(0.0..=1.0).contains(&v)))
    };
    assert!(!text.lines().any(impossible) && text.contains("outside its range"), "{text}");
}

#[test]
fn row_labels_say_what_bags_by_a_feature_cannot() {
    let by = ByEducation::new();
    succeed(by.path(), &format!("train {BY} --l2 0.01 --holdout 0 --out m"));
    // The rows that bags were made of have the key, and their labels.
    let (text, _) = succeed(
        by.path(),
        "evaluate --model m --rows adult.csv --reports by/reports.parquet --key education --count >50K --label income \
         --positive >50K --report page.html",
    );
    assert!(text.contains("AUC") && text.contains("true") && !text.contains("from bags "), "{text}");
    let page = fs::read_to_string(by.path().join("page.html")).expect("a page");
    assert!(page.contains("ROC curve from row labels") && page.contains("true: "), "the true curve is drawn");
}

/// Labels of another event, or of other rows, are not the truth about these bags.
#[test]
fn labels_that_reports_do_not_count_are_told() {
    let by = ByEducation::new();
    succeed(by.path(), &format!("train {BY} --l2 0.01 --holdout 0 --out m"));
    let evaluate =
        "evaluate --model m --rows adult.csv --reports by/reports.parquet --key education --count >50K";
    let told = |rest: &str| succeed(by.path(), &format!("{evaluate} {rest}")).1;
    assert!(!told("--label income --positive >50K").contains("disagree"));
    let said = told("--label sex --positive Male");
    assert!(
        said.contains(
            "warning: labels in column `sex` disagree with the reports of 16 of 16 bags: in bag 10th 294 rows"
        ),
        "{said}"
    );
    assert!(said.contains(" are `>50K` by their labels, and 25 by the report"), "{said}");
    // Counts with noise tell nothing of single bags.
    assert!(!told("--label sex --positive Male --noise laplace:1").contains("disagree"));
}

#[test]
fn nothing_is_tuned_by_metrics_that_are_withheld() {
    let by = ByEducation::new();
    let tune = format!("tune {BY} --l2 0.1,0.01 --folds 2 --out best.toml");
    let (code, text, said) = run(by.path(), &tune);
    assert!(code == 1 && text.is_empty() && said.contains(NOT_RANDOM) && said.contains("--force"), "{said}");
    assert!(!by.path().join("best.toml").exists() && !by.path().join("best.toml.journal").exists());
    let (text, said) = succeed(by.path(), &format!("{tune} --force"));
    assert!(text.contains("best") && said.contains(NOT_RANDOM), "{text}{said}");
}

/// An embedding model overfits its training bags: `evaluate` warns on all of them, on half, and on a mix with new bags.
#[test]
fn a_model_evaluated_on_its_training_bags_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    succeed(folder, "datasets export adult --part test --out adult.csv");
    succeed(folder, "bag --rows adult.csv --label income --positive >50K --size 16 --format csv --out bags");
    let read = |name: &str| fs::read_to_string(folder.join(name)).expect("a file");
    let (rows, reports) = (read("bags/rows.csv"), read("bags/reports.csv"));
    let place = |text: &str| text.lines().next().expect("a header").split(',').position(|name| name == "bag");
    // Rows and reports of the bags from one number to below another.
    let write = |name: &str, from: usize, to: usize| {
        for (text, file) in [(&rows, "rows"), (&reports, "reports")] {
            let place = place(text).expect("a bag");
            let is_in = |line: &&str| {
                let bag: usize = line.split(',').nth(place).expect("a cell").parse().expect("a number");
                (from..to).contains(&bag)
            };
            let lines: Vec<&str> = text.lines().take(1).chain(text.lines().skip(1).filter(is_in)).collect();
            fs::write(folder.join(format!("{name}-{file}.csv")), lines.join("\n")).expect("a file");
        }
    };
    for (name, from, to) in [("train", 0, 600), ("half", 0, 300), ("new", 600, 1000), ("mixed", 300, 900)] {
        write(name, from, to);
    }
    let files =
        |name: &str| format!("--rows {name}-rows.csv --reports {name}-reports.csv --key bag --count >50K");
    let model = "--model embedding:4,mlp:8 --epochs 2 --holdout 0 --out m";
    succeed(folder, &format!("train {} {model}", files("train")));
    let told = |name: &str| succeed(folder, &format!("evaluate --model m {}", files(name))).1;
    for name in ["train", "half"] {
        let said = told(name);
        assert!(said.contains("warning: m was trained on these bags: metrics from training bags"), "{said}");
    }
    let said = told("mixed");
    assert!(said.contains("trained on some of these bags (about 50 %)"), "{said}");
    assert!(!told("new").contains("trained on"));
    let against = succeed(folder, &format!("evaluate --model m {} --against m --json", files("half")));
    assert_eq!(against.1.matches("trained on these bags").count(), 2);
    let found: Value = serde_json::from_str(&against.0).expect("JSON");
    assert_eq!(found["training_bags"], 1.0);
}

#[test]
fn values_that_the_model_was_not_trained_on_are_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    succeed(folder, "datasets export adult --part test --out adult.csv");
    succeed(folder, "bag --rows adult.csv --label income --positive >50K --size 16 --format csv --out bags");
    let files = "--reports bags/reports.csv --key bag --count >50K";
    succeed(folder, &format!("train --rows bags/rows.csv {files} --l2 0.01 --holdout 0 --out m"));
    let predict =
        |rows: &str, rest: &str| run(folder, &format!("predict --model m --rows {rows} --out s.csv {rest}"));
    let (code, _, said) = predict("bags/rows.csv", "--strict");
    assert!(code == 0 && said.is_empty(), "{said}");

    let text = fs::read_to_string(folder.join("bags/rows.csv")).expect("rows");
    let header: Vec<&str> = text.lines().next().expect("a header").split(',').collect();
    // The same rows with another value in one column of every tenth row, or of all.
    let write = |name: &str, column: &str, every: usize, change: &dyn Fn(&str) -> String| {
        let place = header.iter().position(|name| *name == column).expect("a column");
        let line = |(row, line): (usize, &str)| {
            let mut cells: Vec<String> = line.split(',').map(str::to_owned).collect();
            if row > 0 && row.is_multiple_of(every) {
                cells[place] = change(&cells[place]);
            }
            cells.join(",")
        };
        let lines: Vec<String> = text.lines().enumerate().map(line).collect();
        fs::write(folder.join(name), lines.join("\n")).expect("a file");
    };
    write("countries.csv", "native-country", 1, &|_| "Atlantis".into());
    write("ages.csv", "age", 10, &|age| format!("{age}e9"));
    write("gaps.csv", "age", 10, &|_| String::new());
    write("codes.csv", "native-country", 1, &|_| "12".into());
    write("words.csv", "age", 1, &|_| "old".into());
    for (file, expected) in [
        (
            "countries.csv",
            "column `native-country`: 16281 of 16281 rows have values not seen in training, such as `Atlantis`",
        ),
        ("ages.csv", "column `age`: 1628 of 16281 rows are outside the training range of 17 to 90, such as "),
        ("gaps.csv", "column `age`: 1628 of 16281 rows have no value; in training all had one"),
    ] {
        let (code, _, said) = predict(file, "");
        assert!(code == 0 && said.contains(&format!("warning: {expected}")), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        fs::remove_file(folder.join("s.csv")).expect("scores");
        let (code, _, said) = predict(file, "--strict");
        assert!(code == 1 && said.contains(expected) && said.contains("--strict"), "{said}");
        assert!(!folder.join("s.csv").exists());
        let (code, _, said) = run(folder, &format!("evaluate --model m --rows {file} {files} --strict"));
        assert!(code == 1 && said.contains(expected), "{said}");
    }
    let (code, _, said) = predict("codes.csv", "");
    let expected = "column `native-country` holds whole numbers, but the model was trained on text such as";
    assert!(code == 1 && said.contains(expected), "{said}");
    let (code, _, said) = predict("words.csv", "");
    assert!(code == 1 && said.contains("age"), "{said}");
    assert!(!folder.join("s.csv").exists());
}

/// Adult's people in random bags of 32, counts below 7 left out: what is left was selected by its counts.
#[test]
fn metrics_of_bags_selected_by_their_counts_are_withheld() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    succeed(path, "datasets export adult --part test --out adult.csv");
    succeed(path, "bag --rows adult.csv --label income --positive >50K --size 32 --out b");
    let all = "--rows b/rows.parquet --reports b/reports.parquet --key bag --count >50K";
    succeed(path, &format!("train {all} --l2 0.1 --out m"));
    let some = format!("{all} --suppressed-below 7");
    let (text, said) = succeed(path, &format!("evaluate --model m {some}"));
    assert!(said.contains("were selected by their counts") && text.contains("withheld"), "{text}{said}");
    assert!(!text.contains("AUC"), "{text}");
    let (text, said) = succeed(path, &format!("evaluate --model m {some} --force"));
    assert!(text.contains("AUC") && said.contains("because of --force"), "{text}{said}");
    let (text, said) = succeed(path, &format!("train {some} --out n"));
    assert!(text.is_empty() && said.contains("were selected by their counts"), "{text}{said}");
    let (code, _, said) = run(path, &format!("tune {some} --out t.toml"));
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("nothing was chosen"), "{said}");
}

#[test]
fn inputs_and_devices_are_not_overwritten_and_one_class_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    let lines = |line: fn(usize) -> String, n| (0..n).map(line).collect::<String>();
    fs::write(path.join("rows.csv"), format!("x,bag\n{}", lines(|i| format!("{},{}\n", i % 7, i / 5), 100)))
        .unwrap();
    fs::write(path.join("all.csv"), format!("bag,n,zero\n{}", lines(|i| format!("{i},{},0\n", i % 4), 20)))
        .unwrap();
    let train = |out: &str, count: &str| {
        run(
            path,
            &format!(
                "train --rows rows.csv --reports all.csv --key bag --count {count} --l2 0.1 --out {out}"
            ),
        )
    };
    let before = fs::read(path.join("all.csv")).unwrap();
    let (code, _, said) = train("all.csv", "n");
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("would be overwritten"), "{said}");
    assert_eq!(fs::read(path.join("all.csv")).unwrap(), before);
    let (code, _, said) = train("m", "zero");
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("all rows are `not zero` by the counts"), "{said}");
    #[cfg(unix)]
    {
        // A device of another folder, so that a mistake takes nothing away from this machine: a pipe is as good.
        let made = std::process::Command::new("mkfifo").arg(path.join("pipe")).status();
        if made.is_ok_and(|status| status.success()) {
            let (code, _, said) = train("pipe", "n");
            assert_eq!(code, 1, "{said}");
            assert!(said.contains("not a regular file"), "{said}");
        }
        std::os::unix::fs::symlink("real", path.join("link")).unwrap();
        fs::write(path.join("real"), "old").unwrap();
        assert_eq!(train("link", "n").0, 0);
        assert!(path.join("link").is_symlink());
        assert_ne!(fs::read(path.join("real")).unwrap(), b"old");
    }
    assert_eq!(train("m", "n").0, 0);
    let (code, _, said) = run(path, "predict --model m --rows rows.csv --out rows.csv");
    assert_eq!(code, 2, "{said}");
}
