//! A practitioner's own files, start to finish.

use assert_cmd::Command;
use easyllp::method::About;
use easyllp::table::reports::{KeyColumn, OnMismatch, ReportColumns, ReportNoise, join};
use easyllp::table::{ReadAs, Source};
use easyllp::{
    Method, MethodConfig, ModelFile,
    correction::Targets,
    method::{EasyLlp, TargetRule},
    model::Model,
};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::Command as Process;

fn easyllp(folder: &Path, arguments: &str) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("easyllp"));
    command.current_dir(folder).args(arguments.split_whitespace());
    command
}

fn stdout(folder: &Path, arguments: &str) -> String {
    let output = easyllp(folder, arguments).assert().success();
    String::from_utf8(output.get_output().stdout.clone()).expect("UTF-8")
}

/// The area under the ROC curve, by ranks.
fn auc(mut scored: Vec<(f64, bool)>) -> f64 {
    scored.sort_by(|a, b| a.0.total_cmp(&b.0));
    let n_positive = scored.iter().filter(|(_, positive)| *positive).count() as f64;
    let n_negative = scored.len() as f64 - n_positive;
    let ranks: f64 =
        (1..).zip(&scored).filter(|(_, (_, positive))| *positive).map(|(rank, _)| f64::from(rank)).sum();
    (ranks - n_positive * (n_positive + 1.0) / 2.0) / (n_positive * n_negative)
}

/// The same of the probabilities in `scores.csv`, which the label stands before.
fn auc_of(folder: &Path, positive: &str) -> f64 {
    let scores = fs::read_to_string(folder.join("scores.csv")).expect("scores");
    let line = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        (cells[1].parse().expect("a probability"), cells[0] == positive)
    };
    auc(scores.lines().skip(1).map(line).collect())
}

/// The README's lines are run as they stand there.
#[test]
fn the_readmes_lines_run() {
    let readme = include_str!("../../../README.md");
    let section = readme.split_once("## Your own data").expect("the section").1;
    let lines =
        section.split_once("```sh\n").expect("its commands").1.split_once("```").expect("their end").0;
    assert_eq!(lines.matches("easyllp ").count(), 6);
    let folder = tempfile::tempdir().expect("a folder");
    let program = assert_cmd::cargo::cargo_bin!("easyllp").parent().expect("a folder of programs").to_owned();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default());
    let output = Process::new("sh")
        .args(["-e", "-c", lines])
        .current_dir(folder.path())
        .env("PATH", path)
        .output()
        .expect("a shell");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("The bags look random: counts vary") && text.contains("accuracy"), "{text}");
    assert!(folder.path().join("scores.parquet").exists());
}

/// Test AUC with the penalty that held-out bags choose; full supervision gives 0.906. Intervals contain the truth.
#[test]
fn adult_is_learnt_from_bags() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    for part in ["train", "test"] {
        stdout(folder, &format!("datasets export adult --part {part} --out {part}.csv"));
    }
    for (k, least) in [(8, 0.895), (32, 0.885), (64, 0.87)] {
        for part in ["train", "test"] {
            stdout(
                folder,
                &format!("bag --rows {part}.csv --label income --positive >50K --size {k} --out {part}{k}"),
            );
        }
        let files = |part: &str| {
            format!(
                "--rows {part}{k}/rows.parquet --reports {part}{k}/reports.parquet --key bag --count >50K"
            )
        };
        stdout(folder, &format!("train {} --size size --out model", files("train")));
        stdout(folder, "predict --model model --rows test.csv --keep income --out scores.csv");
        let area = auc_of(folder, ">50K");
        assert!(area >= least, "k = {k}: AUC {area}");

        // The same rows with their labels back, to compare estimates with the truth.
        let labels = rows_with_labels_and_bags(folder, k);
        fs::write(folder.join("labelled.csv"), labels).expect("a file");
        let report = stdout(
            folder,
            &format!(
                "evaluate --model model --rows labelled.csv --reports test{k}/reports.parquet --key bag --count >50K --label income --positive >50K --json"
            ),
        );
        let figures: serde_json::Value = serde_json::from_str(&report).expect("JSON");
        for figure in figures["figures"].as_array().expect("figures") {
            let [low, high] = ["low", "high"].map(|end| figure["from_bags"][end].as_f64().expect("a number"));
            let truth = figure["true"].as_f64().expect("a number");
            assert!((low..=high).contains(&truth), "k = {k}: {figure:#}");
        }
    }
}

/// test.csv with the bag of each row, which `bag --format csv` writes beside it.
fn rows_with_labels_and_bags(folder: &Path, k: usize) -> String {
    stdout(
        folder,
        &format!("bag --rows test.csv --label income --positive >50K --size {k} --format csv --out again"),
    );
    let rows = fs::read_to_string(folder.join("test.csv")).expect("rows");
    let bagged = fs::read_to_string(folder.join("again/rows.csv")).expect("bagged rows");
    let bag = |line: &str| line.rsplit(',').next().expect("a last cell").to_owned();
    let lines = rows.lines().zip(bagged.lines()).map(|(row, bagged)| format!("{row},{}", bag(bagged)));
    lines.collect::<Vec<_>>().join("\n")
}

/// A model with fewer features is worse, and the page shows the comparison.
#[test]
fn models_are_compared_and_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    for part in ["train", "test"] {
        stdout(folder, &format!("datasets export adult --part {part} --out {part}.csv"));
        stdout(
            folder,
            &format!("bag --rows {part}.csv --label income --positive >50K --size 16 --out {part}"),
        );
    }
    let files = |part: &str| {
        format!("--rows {part}/rows.parquet --reports {part}/reports.parquet --key bag --count >50K")
    };
    stdout(folder, &format!("train {} --l2 0.003 --holdout 0 --out model", files("train")));
    let less = "--exclude capital-gain,marital-status,relationship,education-num";
    stdout(folder, &format!("train {} --l2 0.003 --holdout 0 {less} --out less", files("train")));
    let evaluate = format!("evaluate --model model {}", files("test"));
    let text = stdout(folder, &format!("{evaluate} --details --against less --report report.html"));
    for part in ["AUC", "balanced accuracy", "Less the figures of less", "Calibration", "Lift", "recall"] {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
    let found: serde_json::Value =
        serde_json::from_str(&stdout(folder, &format!("{evaluate} --against less --json"))).expect("JSON");
    let difference = |name: &str| {
        let all = found["difference"].as_array().expect("differences");
        let figure = all.iter().find(|figure| figure["name"] == name).expect("a figure");
        ["low", "high"].map(|end| figure["from_bags"][end].as_f64().expect("a number"))
    };
    assert!(difference("Brier")[1] < 0.0, "{found:#}");
    assert!(difference("AUC")[0] > 0.0, "{found:#}");
    assert_eq!(found["thresholds"].as_array().map(Vec::len), Some(100));
    assert_eq!(found["calibration"]["groups"].as_array().map(Vec::len), Some(10));
    let page = fs::read_to_string(folder.join("report.html")).expect("a page");
    assert_eq!(page.matches("<svg").count(), 5);
    assert!(!page.contains("http://") && !page.contains("https://"));
}

/// Rows of three kinds in bags of three, with their labels; and the reports of the bags.
fn three_classes(folder: &Path) {
    let mut rows = String::from("bag,x,kind\n");
    let mut reports = String::from("bag,none,few,many,zero\n");
    for bag in 0..200_u32 {
        let mut counts = [0; 3];
        for place in 0..3 {
            let row = 3 * bag + place;
            let kind = (row.wrapping_mul(2_654_435_761) >> 16) % 3;
            counts[kind as usize] += 1;
            // One row in eleven looks like another kind.
            let x = if row.is_multiple_of(11) { (kind + 1) % 3 } else { kind };
            let _ = writeln!(
                rows,
                "{bag},{},{}",
                ["a", "b", "c"][x as usize],
                ["none", "few", "many"][kind as usize]
            );
        }
        let [none, few, many] = counts;
        let _ = writeln!(reports, "{bag},{none},{few},{many},{none}");
    }
    fs::write(folder.join("rows.csv"), rows).expect("a file");
    fs::write(folder.join("reports.csv"), reports).expect("a file");
}

/// In whatever order count columns are named, they are those of their classes, and so are labels.
#[test]
fn classes_are_matched_by_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    three_classes(folder);
    let files = "--rows rows.csv --reports reports.csv --key bag";
    let train = |counts: &str, prior: &str, out: &str| {
        let rest =
            format!("--exclude kind --l2 0.01 --holdout 0 --method easyllp:prior=[{prior}] --out {out}");
        stdout(folder, &format!("train {files} --count {counts} {rest}"));
        fs::read(folder.join(out)).expect("a model")
    };
    let model = train("none,few,many", "0.4,0.3,0.3", "model");
    assert!(
        model == train("many,none,few", "0.3,0.4,0.3", "other"),
        "the order of columns changed the model"
    );
    assert!(model != train("none,few,many", "0.3,0.4,0.3", "other"), "the prior is ignored");

    // Kinds follow each other by a rule, so that bags do not look random.
    let evaluate = format!("evaluate --model model --force {files}");
    let found = |rest: &str| -> serde_json::Value {
        serde_json::from_str(&stdout(folder, &format!("{evaluate} {rest} --label kind --json")))
            .expect("JSON")
    };
    let expected = found("--count none,few,many");
    assert_eq!(expected["classes"], serde_json::json!(["few", "many", "none"]));
    let accuracy = &expected["figures"][2];
    assert_eq!(accuracy["name"], "accuracy");
    assert!(accuracy["true"].as_f64().is_some_and(|accuracy| accuracy > 0.9), "{accuracy}");
    assert!(accuracy["from_bags"]["value"].as_f64().is_some_and(|accuracy| accuracy > 0.85), "{accuracy}");
    assert_eq!(found("--count many,none,few"), expected);
    assert_eq!(found("--count many,zero,few --class many,none,few"), expected);

    let refused = |command: &str, code: i32| {
        let output = easyllp(folder, command).assert().code(code);
        String::from_utf8_lossy(&output.get_output().stderr).into_owned()
    };
    let said = refused(&format!("{evaluate} --count many,zero,few"), 1);
    assert!(said.contains("`many`, `zero`, `few`") && said.contains("`few`, `many`, `none`: "), "{said}");
    assert!(said.contains("--class"), "{said}");
    refused(&format!("{evaluate} --count many,few"), 1);
    refused(&format!("{evaluate} --count many,zero,few --class many,none"), 2);
    let said = refused(&format!("{evaluate} --count none,few,many --label x"), 1);
    assert!(said.contains("`a`") && said.contains("`b`") && said.contains("`few`, `many`, `none`"), "{said}");
}

/// One count is that of the class that its column is named for; a model of both counts knows the other, too.
#[test]
fn a_count_of_one_class_has_its_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    stdout(folder, "datasets export adult --part test --out test.csv");
    stdout(folder, "bag --rows test.csv --label income --positive >50K --size 8 --format csv --out bags");
    let reports = fs::read_to_string(folder.join("bags/reports.csv")).expect("reports");
    assert!(reports.starts_with("bag,size,>50K\n"), "{}", reports.lines().next().unwrap_or_default());
    let both = |(place, line): (usize, &str)| {
        if place == 0 {
            return format!("{line},rest\n");
        }
        let cells: Vec<f64> = line.split(',').map(|cell| cell.parse().expect("a number")).collect();
        format!("{line},{}\n", cells[1] - cells[2])
    };
    let lines: String = reports.lines().enumerate().map(both).collect();
    fs::write(folder.join("both.csv"), lines).expect("a file");
    let files = "--rows bags/rows.csv --key bag";
    let one = "--reports bags/reports.csv --count >50K";
    let said = stdout(folder, &format!("train {files} {one} --l2 0.01 --out one"));
    assert!(said.contains("The positive class is `>50K`."), "{said}");
    let shown = stdout(folder, "show one");
    assert!(shown.contains("not >50K 0.") && shown.contains("largest weights, towards >50K"), "{shown}");

    let accuracy = |command: &str| -> f64 {
        let report = stdout(folder, &format!("evaluate {files} {command}"));
        assert!(report.contains("The positive class is `>50K`."), "{report}");
        let line = report.lines().find(|line| line.contains("accuracy")).expect("a line of accuracy");
        line.split_whitespace().nth(1).expect("a figure").parse().expect("a number")
    };
    let good = 0.8..0.9;
    assert!(good.contains(&accuracy(&format!("--model one {one}"))));
    stdout(
        folder,
        &format!("train {files} --reports both.csv --count >50K,rest --class >50K,<=50K --l2 0.01 --out two"),
    );
    for counts in ["--reports both.csv --count >50K", "--reports both.csv --count rest --class <=50K"] {
        assert!(good.contains(&accuracy(&format!("--model two {counts}"))), "{counts}");
    }
    easyllp(folder, &format!("evaluate {files} --model one --reports both.csv --count rest"))
        .assert()
        .code(1);
    easyllp(folder, &format!("evaluate {files} {one} --model one --against two")).assert().code(1);
    stdout(folder, &format!("evaluate {files} {one} --model one --report page.html"));
    let page = fs::read_to_string(folder.join("page.html")).expect("a page");
    assert!(page.contains("share of &gt;50K") && !page.contains("class 1"), "{page}");
}

/// Stopped and started again, `tune` repeats nothing and has the same result; `train` reads its file unchanged.
#[test]
fn settings_are_tuned_and_nothing_is_repeated() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    stdout(folder, "datasets export adult --part test --out rows.csv");
    stdout(folder, "bag --rows rows.csv --label income --positive >50K --size 8 --out bagged");
    let files = "--rows bagged/rows.parquet --reports bagged/reports.parquet --key bag --count >50K";
    let tune = || {
        let arguments = format!("tune {files} --l2 1,0.01,0.001 --folds 2 --out best.toml");
        let output = easyllp(folder, &arguments).unwrap();
        let said = String::from_utf8(output.stderr).expect("UTF-8");
        (String::from_utf8(output.stdout).expect("UTF-8"), said.matches("from the journal").count())
    };
    let (first, kept) = tune();
    assert_eq!(kept, 0);
    assert!(
        first.contains("best") && !first.lines().nth(3).expect("a first trial").contains("l2 1.000e0"),
        "{first}"
    );
    assert_eq!(tune(), (first.clone(), 3));
    // A record that is lost or damaged is made again.
    let mut records = names(&folder.join("best.toml.journal"));
    records.sort();
    assert_eq!(records.len(), 3);
    fs::remove_file(folder.join("best.toml.journal").join(&records[0])).expect("a record");
    fs::write(folder.join("best.toml.journal").join(&records[1]), b"half").expect("a record");
    assert_eq!(tune(), (first, 1));
    let written = fs::read_to_string(folder.join("best.toml")).expect("settings");
    assert!(written.starts_with("# easyllp train --config best.toml --out MODEL\n"), "{written}");
    stdout(folder, "train --config best.toml --out model");
    let report =
        stdout(folder, &format!("tune {files} --l2 1,0.01 --folds 2 --json --quiet --out other.toml"));
    let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
    assert_eq!(report["trials"].as_array().map(Vec::len), Some(2));
    assert_eq!(report["trials"][0]["ties_with_best"], true);
}

/// Methods differ by their parameters, a prior keeps the order in which it was given, and a file sets what the command line does not.
#[test]
fn methods_with_parameters_are_tuned() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    three_classes(folder);
    let config = "model = 'mlp:4'\n[optimizer]\nepochs = 2\nlr = 0.01\nl2 = 0\n[data]\nrows = 'rows.csv'\n\
                  reports = 'reports.csv'\nkey = 'bag'\ncount = ['none', 'few', 'many']\nnumeric = []\nexclude = ['kind', 'x']\n";
    fs::write(folder.join("base.toml"), config.replace("exclude = ['kind', 'x']", "features = 'n'"))
        .expect("a file");
    let rows = fs::read_to_string(folder.join("rows.csv")).expect("rows");
    let lines = rows.lines().enumerate().map(|(place, line)| match place {
        0 => format!("{line},n\n"),
        _ => format!("{line},{}\n", place * 7 % 5),
    });
    fs::write(folder.join("rows.csv"), lines.collect::<String>()).expect("a file");
    let command = "tune --config base.toml --force --folds 2 --loss softmax --method easyllp:prior=[0.4,0.3,0.3] \
                   --method easyllp:prior=[0.4,0.3,0.3],targets=surrogate --out best.toml --json";
    let board: serde_json::Value = serde_json::from_str(&stdout(folder, command)).expect("JSON");
    let config = &board["trials"][0]["config"];
    assert_eq!(config["method"]["prior"], serde_json::json!([0.3, 0.3, 0.4]));
    assert_eq!(config["optimizer"], serde_json::json!({"l2": 0.0, "epochs": 2, "lr": 0.01}));
    let written = fs::read_to_string(folder.join("best.toml")).expect("settings");
    assert!(written.contains("prior=[0.4,0.3,0.3]"), "{written}");
    stdout(folder, "train --config best.toml --out model");
    let shown: serde_json::Value = serde_json::from_str(&stdout(folder, "show model --json")).expect("JSON");
    assert_eq!(shown["config"]["method"], config["method"]);
}

/// Whatever is listed can be named, and comes to a model that orders rows.
#[test]
fn every_listed_method_trains() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    stdout(folder, "datasets export adult --part test --out rows.csv");
    stdout(folder, "bag --rows rows.csv --label income --positive >50K --size 8 --out bags");
    let files = "--rows bags/rows.parquet --reports bags/reports.parquet --key bag --count >50K";
    let list = stdout(folder, "methods");
    let auc_of = |command: &str| -> f64 {
        let figures = stdout(folder, command);
        let auc = figures.lines().find(|line| line.contains("AUC")).expect("a line of AUC");
        auc.split_whitespace().nth(1).expect("a figure").parse().expect("a number")
    };
    let labelled = "--rows rows.csv --label income --positive >50K";
    for method in MethodConfig::all() {
        let About { name, summary, bags, classes, cost, reference, .. } = *method.about();
        let part = list.split("\n\n").find(|part| part.starts_with(&format!("{name}\n"))).expect("its part");
        let expected = [
            summary.to_owned(),
            format!("assumes: {}", bags.as_str()),
            format!("supports: {}", method.supports().as_str()),
            format!("classes: {classes}"),
            format!("cost: {cost}"),
            format!("reference: {reference}"),
        ];
        assert_eq!(part.lines().skip(1).map(str::trim).collect::<Vec<_>>(), expected);
        let described = stdout(folder, &format!("methods {name}"));
        let json: serde_json::Value =
            serde_json::from_str(&stdout(folder, &format!("methods {name} --json"))).expect("JSON");
        assert_eq!(json["summary"], summary);
        for parameter in method.parameters() {
            assert!(
                described.contains(&format!("  {}\n    {}\n", parameter.name, parameter.about)),
                "{described}"
            );
            assert!(json["schema"]["properties"][&parameter.name].is_object(), "{json:#}");
        }
        let (parameters, rest) = match method {
            MethodConfig::Supervised(_) => ("", format!("{labelled} --epochs 3 --lr 0.01")),
            MethodConfig::EasyLlpSgd(_) => (":domain=ball:10,iterate=average", format!("{files} --lr 0.3")),
            MethodConfig::LlpEm(_) | MethodConfig::AlternatingMeanMap(_) => {
                (":rounds=3", format!("{files} --l2 0.001"))
            }
            _ => ("", format!("{files} --epochs 3 --lr 0.01")),
        };
        let auc = auc_of(&format!("train --method {name}{parameters} {rest} --out {name}"));
        assert!(auc > 0.7, "{method}: {auc}");
        assert!(stdout(folder, &format!("show {name}")).contains(&format!("method {name}")));
    }
    // Parameters.
    for rest in [
        format!("{files} --epochs 3 --lr 0.01 --method easyllp:batches=bags"),
        format!("{files} --epochs 3 --lr 0.01 --method easyllp:targets=fresh-surrogate,bag_weights=size"),
        format!("{files} --method easyllp:prior=[0.76,0.24] --l2 0.01"),
        format!("{files} --method easyllp:prior=0.24 --l2 0.01"),
        format!(
            "{files} --method easyllp-sgd:targets=surrogate,steps=soft,domain=box:3,iterate=average --lr 0.1"
        ),
        format!("{labelled} --epochs 3 --lr 0.01 --method easyllp:rebag=8"),
        format!("{files} --method label-generation:epsilon=0.5 --epochs 3 --lr 0.01"),
        format!("{files} --method proportion-matching:distance=squared --epochs 3 --lr 0.01"),
        format!("{files} --method mean-map:ridge=0.01 --l2 0.01"),
        format!("{files} --method laplacian-mean-map:smoothness=10 --l2 0.01"),
    ] {
        let auc = auc_of(&format!("train {rest} --out some"));
        assert!(auc > 0.7, "{rest}: {auc}");
    }
}

/// The same data in any format, and with its columns in another order: the same model, to the byte.
#[test]
fn formats_and_column_order_do_not_change_the_model() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    stdout(folder, "datasets export optdigits --part test --out digits.parquet");
    let train = |rows: &str, reports: &str| {
        let files = format!("--rows {rows} --reports {reports} --key bag --count 0,1,2,3,4,5,6,7,8,9");
        stdout(folder, &format!("train {files} --out model.safetensors"));
        fs::read(folder.join("model.safetensors")).expect("a model")
    };
    for format in ["csv", "parquet", "arrow"] {
        stdout(
            folder,
            &format!("bag --rows digits.parquet --label digit --size 8 --format {format} --out {format}"),
        );
    }
    let expected = train("parquet/rows.parquet", "parquet/reports.parquet");
    assert!(train("csv/rows.csv", "csv/reports.csv") == expected, "CSV");
    assert!(train("arrow/rows.arrow", "arrow/reports.arrow") == expected, "Arrow");
    let text = fs::read(folder.join("csv/rows.csv")).expect("rows");
    let packed = fs::File::create(folder.join("rows.csv.gz")).expect("a file");
    let mut packed = flate2::write::GzEncoder::new(packed, flate2::Compression::fast());
    packed.write_all(&text).and_then(|()| packed.finish()).expect("packed rows");
    assert!(train("rows.csv.gz", "csv/reports.csv") == expected, "CSV, packed");
    let text = fs::read_to_string(folder.join("csv/rows.csv")).expect("rows");
    let reversed = |line: &str| line.split(',').rev().collect::<Vec<_>>().join(",") + "\n";
    fs::write(folder.join("reversed.csv"), text.lines().map(reversed).collect::<String>()).expect("a file");
    assert!(train("reversed.csv", "csv/reports.csv") == expected, "columns reversed");
    let shown = stdout(folder, "show model.safetensors --top 3");
    assert!(shown.contains("softmax loss") && shown.contains("pixel_0"), "{shown}");
    stdout(folder, "predict --model model.safetensors --rows csv/rows.csv --out scores.csv");
    let scores = fs::read_to_string(folder.join("scores.csv")).expect("scores");
    assert!(scores.starts_with("probability_0,"), "{}", scores.lines().next().unwrap_or_default());
}

/// Images out of IDX files, which say their shape, over bags into a network; the model does not depend on threads.
#[test]
fn images_are_learnt_by_a_network() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let n_images = 600_u32;
    // Bright on the left or on the right, over noise.
    let is_left = |image: u32| (image * 7).is_multiple_of(3);
    let pixel = |image: u32, place: u32| {
        let noise = image.wrapping_mul(2_654_435_761).wrapping_add(place.wrapping_mul(40_503)) >> 7 & 127;
        u8::try_from(noise).expect("7 bits") + if is_left(image) == (place % 8 < 4) { 100 } else { 0 }
    };
    let header = |magic: [u8; 4], sizes: &[u32]| {
        magic.into_iter().chain(sizes.iter().flat_map(|size| size.to_be_bytes())).collect::<Vec<u8>>()
    };
    let mut images = header([0, 0, 8, 3], &[n_images, 8, 8]);
    images.extend((0..n_images).flat_map(|image| (0..64).map(move |place| pixel(image, place))));
    fs::write(folder.join("x-images-idx3-ubyte"), images).expect("a file");
    let mut labels = header([0, 0, 8, 1], &[n_images]);
    labels.extend((0..n_images).map(|image| u8::from(is_left(image))));
    fs::write(folder.join("x-labels-idx1-ubyte"), labels).expect("a file");

    stdout(folder, "bag --rows x-images-idx3-ubyte --label label --size 5 --out bags");
    let train = |threads: usize| {
        let files = "--rows bags/rows.parquet --reports bags/reports.parquet --key bag --count 1";
        let mut command = easyllp(
            folder,
            &format!("train {files} --epochs 12 --lr 0.01 --batch-size 32 --threads {threads} --out cnn"),
        );
        command.args(["--model", "cnn:conv3x4:same relu pool2 conv3x4 relu fc8 relu"]).assert().success();
        fs::read(folder.join("cnn")).expect("a model")
    };
    assert!(train(1) == train(2));
    let shown = stdout(folder, "show cnn");
    assert!(shown.contains("conv2.weights") && shown.contains("36 × 4"), "{shown}");
    stdout(folder, "predict --model cnn --rows x-images-idx3-ubyte --keep label --out scores.csv");
    let area = auc_of(folder, "1");
    assert!(area > 0.99, "AUC {area}");
}

/// Categories by embeddings.
#[test]
fn a_table_is_learnt_by_a_network() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    for part in ["train", "test"] {
        stdout(folder, &format!("datasets export adult --part {part} --out {part}.csv"));
    }
    stdout(folder, "bag --rows train.csv --label income --positive >50K --size 8 --out bags");
    let files = "--rows bags/rows.parquet --reports bags/reports.parquet --key bag --count >50K";
    stdout(folder, &format!("train {files} --model embedding:4,mlp:32 --epochs 5 --out model"));
    stdout(folder, "predict --model model --rows test.csv --keep income --out scores.csv");
    let area = auc_of(folder, ">50K");
    assert!(area > 0.89, "AUC {area}");

    let exported = easyllp(folder, "export model --onnx model.onnx").assert().success();
    let said = String::from_utf8_lossy(&exported.get_output().stderr).into_owned();
    assert!(said.starts_with("easyllp: wrote model.onnx, whose inputs are double[rows, 1]: age, "), "{said}");
    assert!(said.contains("; string[rows, 1]: education, "), "{said}");
    assert!(fs::metadata(folder.join("model.onnx")).expect("a file").len() > 4 * 32 * 36);
}

/// Rows in another order: each row has the same target, and the model is the same up to rounding.
#[test]
fn the_order_of_rows_does_not_matter() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    stdout(folder, "datasets export adult --part test --out adult.csv");
    stdout(folder, "bag --rows adult.csv --label income --positive >50K --size 5-20 --format csv --out bags");
    let text = fs::read_to_string(folder.join("bags/rows.csv")).expect("rows");
    let lines: Vec<&str> = text.lines().collect();
    let n_rows = lines.len() - 1;
    // 7919 is a prime that the number of rows is no multiple of: every row once.
    assert_ne!(n_rows % 7919, 0);
    let from: Vec<usize> = (0..n_rows).map(|row| row * 7919 % n_rows).collect();
    let permuted: Vec<&str> = [lines[0]].into_iter().chain(from.iter().map(|&row| lines[row + 1])).collect();
    fs::write(folder.join("permuted.csv"), permuted.join("\n")).expect("a file");

    let targets = |rows: &str| {
        let key = || BTreeMap::from([("bag".to_owned(), ReadAs::Text)]);
        let open =
            |path: &str| Source::open(&[folder.join(path).display().to_string()], key()).expect("a file");
        let reports = open("bags/reports.csv").read(&["bag".into(), ">50K".into()]).expect("reports");
        let columns = ReportColumns {
            keys: vec![KeyColumn::text("bag")],
            counts: vec![">50K".into()],
            size: None,
            noise: ReportNoise::None,
            suppressed_below: None,
            on_mismatch: OnMismatch::Refuse,
        };
        let joined =
            join(&open(rows).read(&["bag".into()]).expect("keys"), &reports, &columns).expect("bags");
        let mut targets = Targets::zeros(n_rows, 2);
        EasyLlp::new(&joined.bags).targets(0, &mut targets).expect("targets");
        targets
    };
    let (ordered, mixed) = (targets("bags/rows.csv"), targets("permuted.csv"));
    for (row, &from) in from.iter().enumerate() {
        let (got, expected) = (mixed.values()[[row, 0]], ordered.values()[[from, 0]]);
        assert_eq!(got.to_bits(), expected.to_bits(), "row {row}");
    }
    let model = |rows: &str| {
        let files = format!("--rows {rows} --reports bags/reports.csv --key bag --count >50K");
        stdout(folder, &format!("train {files} --l2 0.001 --holdout 0 --out model"));
        ModelFile::load(&folder.join("model")).expect("a model").model
    };
    let (ordered, mixed) = (model("bags/rows.csv"), model("permuted.csv"));
    for (one, other) in ordered.parameters().blocks().iter().zip(mixed.parameters().blocks()) {
        for (one, other) in one.values().iter().zip(other.values()) {
            assert!((one - other).abs() < 1e-5, "{one} {other}");
        }
    }
}

/// Settings of a file train the same model as options of the command line, which override them.
#[test]
fn a_file_holds_all_settings() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    stdout(folder, "datasets export adult --part test --out adult.csv");
    stdout(folder, "bag --rows adult.csv --label income --positive >50K --size 16 --out bags");
    let config = "seed = 3\nout = 'c'\n[optimizer]\nepochs = 2\nlr = 0.01\nbatch_size = 128\nl2 = 0.1\n[method]\nname = 'easyllp'\n\
                  bag_weights = 'size'\n[data]\nrows = ['bags/rows.parquet']\nreports = 'bags/reports.parquet'\nkey = 'bag'\n\
                  count = '>50K'\nexclude = ['age', 'sex']\n";
    fs::write(folder.join("train.toml"), config).expect("a file");
    stdout(folder, "train --config train.toml --l2 0.001 --out a");
    let files = "--rows bags/rows.parquet --reports bags/reports.parquet --key bag --count >50K";
    stdout(
        folder,
        &format!(
            "train {files} --epochs 2 --lr 0.01 --batch-size 128 --l2 0.001 --exclude age,sex --seed 3 --method easyllp:bag_weights=size --out b"
        ),
    );
    let read = |name: &str| fs::read(folder.join(name)).expect("a model");
    assert!(read("a") == read("b"));
    let shown = stdout(folder, "show a");
    assert!(shown.contains("Adam") && !shown.contains("sex"), "{shown}");
    assert!(shown.contains("method easyllp:bag_weights=size"), "{shown}");
    // Every command that reads data takes the same file.
    stdout(folder, "train --config train.toml --holdout 0");
    stdout(folder, "inspect --config train.toml");
    assert!(stdout(folder, "evaluate --config train.toml --model c").contains("AUC"));
    stdout(folder, "predict --config train.toml --model c --out scores.csv");
    let scores = fs::read_to_string(folder.join("scores.csv")).expect("scores");
    assert!(
        scores.starts_with("probability,predicted_class\n"),
        "{}",
        scores.lines().next().unwrap_or_default()
    );
    let labelled =
        "label = 'income'\npositive = '>50K'\nseed = 3\n[data]\nrows = 'adult.csv'\nnumeric = 'age'\n";
    fs::write(folder.join("bag.toml"), labelled).expect("a file");
    stdout(folder, "bag --config bag.toml --size 16 --out one");
    stdout(
        folder,
        "bag --rows adult.csv --numeric age --label income --positive >50K --seed 3 --size 16 --out other",
    );
    for name in ["rows", "reports", "labels"] {
        assert!(read(&format!("one/{name}.parquet")) == read(&format!("other/{name}.parquet")), "{name}");
    }
    let refused = easyllp(folder, "inspect --config train.toml --key nothing").assert().code(1);
    assert!(String::from_utf8_lossy(&refused.get_output().stderr).contains("no column `nothing`"));
}

/// Quiet runs say nothing that is not asked for, verbose ones more; results come as JSON.
#[test]
fn messages_and_formats_are_chosen() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    stdout(folder, "datasets export adult --part test --out adult.csv");
    stdout(folder, "bag --rows adult.csv --label income --positive >50K --size 16 --out bags");
    let files = "--rows bags/rows.parquet --reports bags/reports.parquet --key bag --count >50K";
    let said = |arguments: &str| {
        let output = easyllp(folder, arguments).assert().success();
        String::from_utf8_lossy(&output.get_output().stderr).into_owned()
    };
    let train = format!("train {files} --l2 0.01 --out model");
    assert_eq!(said(&format!("{train} --quiet")), "");
    assert!(said(&train).contains("model written to model") && !said(&train).contains("settings: "));
    let verbose = said(&format!("--verbose {train}"));
    assert!(verbose.contains("settings: [optimizer]\n") && verbose.contains("stage easyllp: "), "{verbose}");
    easyllp(folder, &format!("{train} --quiet --verbose")).assert().code(2);
    let json = |arguments: &str| -> serde_json::Value {
        serde_json::from_str(&stdout(folder, &format!("{arguments} --json"))).expect("JSON")
    };
    let report = json(&train);
    assert_eq!(report["config"]["optimizer"]["l2"], 0.01);
    assert_eq!(report["validation"]["metrics"][0]["name"], "log loss");
    assert_eq!(report["stages"][0]["optimizer"], "L-BFGS");
    let inspected = json(&format!("inspect {files}"));
    assert_eq!(
        (&inspected["rows"], &inspected["randomness"]["verdict"]),
        (&16281.into(), &"plausible".into())
    );
    let shown = json("show model --top 3");
    assert_eq!(shown["weights"].as_array().map(Vec::len), Some(3));
    assert_eq!(shown["config"], report["config"]);
    let sets = json("datasets list --dir nowhere");
    let names_here: Vec<&str> = (sets.as_array().expect("a list").iter())
        .filter(|set| set["is_here"] == true)
        .filter_map(|set| set["name"].as_str())
        .collect();
    assert_eq!(names_here, ["optdigits", "adult", "synthetic-ctr"]);
    assert_eq!(json("methods").as_array().map(Vec::len), Some(MethodConfig::all().len()));
}

/// `evaluate` reads columns as the model's encoder does, and as options say.
#[test]
fn categories_that_look_like_numbers_are_evaluated() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let mut rows = "bag,x,zip\n".to_owned();
    let mut reports = "bag,n\n".to_owned();
    for row in 0..300_u32 {
        let value = row.wrapping_mul(2_654_435_761) >> 16;
        let _ = writeln!(rows, "{},{},{}", row / 3, value % 17, ["a7", "8", "9"][value as usize % 3]);
        if row % 3 == 0 {
            let _ = writeln!(reports, "{},{}", row / 3, value % 4);
        }
    }
    let numbers = rows.replace(",a7", ",7");
    fs::write(
        folder.join("rows.csv"),
        rows.replace(",a7", ",7x").replace(",8\n", ",8x\n").replace(",9\n", ",9x\n"),
    )
    .expect("a file");
    fs::write(folder.join("numbers.csv"), numbers).expect("a file");
    fs::write(folder.join("reports.csv"), reports).expect("a file");
    let files = "--reports reports.csv --key bag --count n";
    stdout(folder, &format!("train --rows rows.csv {files} --l2 0.1 --holdout 0 --out model"));
    let evaluate = format!("evaluate --rows numbers.csv {files} --force --model model");
    easyllp(folder, &evaluate).assert().code(1);
    stdout(folder, &format!("{evaluate} --categorical zip"));
}

/// An interrupt ends the work at once, and leaves no file, not even a hidden one.
#[cfg(unix)]
#[test]
fn an_interrupt_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    stdout(folder, "datasets export adult --part test --out rows.csv");
    stdout(folder, "bag --rows rows.csv --label income --positive >50K --size 16 --out bags");
    let files = "--rows bags/rows.parquet --reports bags/reports.parquet --key bag --count >50K";
    stdout(folder, &format!("train {files} --l2 0.01 --out ready"));
    link(folder, "rows.csv", 200);
    let before = names(folder);
    let predict = "predict --model ready --rows many/*.csv --out scores.parquet".to_owned();
    let train = format!("train {files} --epochs 100000 --holdout 0 --out model");
    for command in [predict, train] {
        let mut child = Process::new(assert_cmd::cargo::cargo_bin!("easyllp"))
            .current_dir(folder)
            .args(command.split_whitespace())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .expect("the program runs");
        std::thread::sleep(std::time::Duration::from_millis(700));
        let sent = Process::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill runs");
        assert!(sent.success());
        assert_eq!(child.wait().expect("it ends").code(), Some(130), "{command}");
        let mut said = String::new();
        child.stderr.take().expect("its messages").read_to_string(&mut said).expect("text");
        assert!(said.contains("interrupted"), "{said}");
        assert_eq!(names(folder), before);
    }
}

/// A file under so many names, in a folder of their own: one file given twice is refused.
fn link(folder: &Path, file: &str, n_names: usize) {
    fs::create_dir(folder.join("many")).expect("a folder");
    for number in 0..n_names {
        let name = folder.join(format!("many/{number}.csv"));
        fs::hard_link(folder.join(file), name).expect("a file system with links");
    }
}

#[cfg(unix)]
fn names(folder: &Path) -> Vec<std::ffi::OsString> {
    let mut names: Vec<_> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file").file_name()).collect();
    names.sort();
    names
}

/// Killed at 20 moments, spread over the run: under the final name there is a whole file, or none.
#[test]
fn a_kill_leaves_no_partial_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    stdout(folder, "datasets export adult --part test --out rows.csv");
    stdout(folder, "bag --rows rows.csv --label income --positive >50K --size 16 --out bags");
    let files = "--rows bags/rows.parquet --reports bags/reports.parquet --key bag --count >50K";
    let train = format!("train {files} --out model.safetensors");
    stdout(folder, &format!("train {files} --l2 0.01 --out ready.safetensors"));
    link(folder, "rows.csv", 3);
    let predict = "predict --model ready.safetensors --rows many/*.csv --out scores.parquet".to_owned();
    let check_model = "show model.safetensors".to_owned();
    // The scores are a table that can be read to its end.
    let check_scores =
        "bag --rows scores.parquet --label predicted_class --positive nothing --size 2 --out never"
            .to_owned();
    for (command, out, check) in
        [(train, "model.safetensors", check_model), (predict, "scores.parquet", check_scores)]
    {
        let spawn = || {
            Process::new(assert_cmd::cargo::cargo_bin!("easyllp"))
                .current_dir(folder)
                .args(command.split_whitespace())
                .stdout(std::process::Stdio::null())
                .stderr(std::process::Stdio::null())
                .spawn()
                .expect("the program runs")
        };
        let start = std::time::Instant::now();
        assert!(spawn().wait().expect("it ends").success());
        let whole = start.elapsed();
        let path = folder.join(out);
        let mut n_whole = 0;
        for moment in 1..=20_u32 {
            fs::remove_file(&path).ok();
            let mut child = spawn();
            std::thread::sleep(whole * moment / 20);
            child.kill().expect("a running program");
            child.wait().expect("it ends");
            if path.exists() {
                n_whole += 1;
                let output = easyllp(folder, &check).output().expect("the program runs");
                let message = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success() || message.contains("no row has `nothing`"), "{message}");
            }
        }
        assert!(n_whole < 20, "no kill came in time");
    }
}

/// Identifiers of 64 bits agree in more digits than a feature is held to, but they do vary.
#[test]
fn what_inspect_says_of_ignored_columns_is_true() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut rows = "bag,x,id,near,one,half\n".to_owned();
    let mut reports = "bag,count\n".to_owned();
    for bag in 0..40 {
        let _ = writeln!(reports, "{bag},{}", bag % 3);
        for row in 0..2 {
            let id = 7_000_000_000_000_000_000_u64 + 4096 * (2 * bag + row);
            let near = 7_000_000_000_000_000_000_u64 + 4096 * row;
            let half = if row == 0 { "5" } else { "" };
            let _ = writeln!(rows, "{bag},{},{id},{near},3,{half}", bag * 7 % 5 + row);
        }
    }
    fs::write(folder.path().join("rows.csv"), rows).expect("a file");
    fs::write(folder.path().join("reports.csv"), reports).expect("a file");
    let text = stdout(folder.path(), "inspect --rows rows.csv --reports reports.csv --key bag --count count");
    for (name, how) in [
        ("id", "ignored: every value is different but agrees to 13 digits, as identifiers do"),
        ("near", "ignored: all values agree to 13 digits, as identifiers do"),
        ("one", "ignored: one value in all rows"),
        ("half", "ignored but for whether it is missing: one value in all rows"),
    ] {
        assert!(text.contains(&format!("  {name:<20} number, {how}\n")), "{name}: {text}");
        let problem = format!("  column `{name}` is {how}; leave it out with --exclude\n");
        assert!(text.contains(&problem), "{name}: {text}");
    }
}
