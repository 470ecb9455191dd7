//! Bad input at every command: one line that says what, where and what to do; its exit code; and nothing left on disk.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

const ROWS: &str = "bag,x,city\n1,0.5,Bern\n1,0.25,Wien\n2,1.5,Bern\n2,2.5,Oslo\n3,0.75,Wien\n3,1.25,Oslo\n";
const REPORTS: &str = "bag,size,count,scale\n1,2,1,1\n2,2,2,1\n3,2,0,1\n";
const FILES: &str = "--key bag --count count";

/// Files that the cases use, by name.
fn prepare(folder: &Path) {
    let files = [
        ("rows.csv", ROWS.to_owned()),
        ("reports.csv", REPORTS.to_owned()),
        ("labelled.csv", "x,y,city\n1,0,a\n2,1,b\n3,1,a\n4,0,b\n".into()),
        ("one-class.csv", "x,y\n1,5\n2,5\n".into()),
        ("missing-label.csv", "x,y\n1,0\n2,\n".into()),
        ("empty.csv", String::new()),
        ("header.csv", "bag,x\n".into()),
        ("twice.csv", "bag,x,x\n1,2,3\n".into()),
        ("ragged.csv", "bag,x\n1,2\n3\n".into()),
        ("huge.csv", ROWS.replace("0.5", "1e300")),
        ("infinite.csv", ROWS.replace("0.5", "inf")),
        ("fewer.csv", REPORTS.replace("3,2,0,1\n", "")),
        ("more.csv", format!("{REPORTS}9,1,0,1\n")),
        ("again.csv", format!("{REPORTS}2,2,1,1\n")),
        ("size.csv", REPORTS.replace("2,2,2,1", "2,7,2,1")),
        ("over.csv", REPORTS.replace("2,2,2,1", "2,2,3,1")),
        ("negative.csv", REPORTS.replace("2,2,2,1", "2,2,-1,1")),
        ("fraction.csv", REPORTS.replace("2,2,2,1", "2,2,0.5,1")),
        ("no-count.csv", REPORTS.replace("2,2,2,1", "2,2,,1")),
        ("words.csv", REPORTS.replace("2,2,2,1", "2,2,two,1")),
        ("scales.csv", REPORTS.replace("2,2,2,1", "2,2,2,-1")),
        ("text-keys.csv", REPORTS.replace("\n1,", "\na,").replace("\n2,", "\nb,").replace("\n3,", "\nc,")),
        ("three.csv", "bag,a,b,c\n1,1,0,1\n2,0,2,0\n3,1,1,0\n".into()),
        ("one-bag.csv", "bag,size,count\n1,2,1\n".into()),
        ("one-bag-rows.csv", "bag,x\n1,2\n1,3\n".into()),
        ("only-key.csv", "bag\n1\n1\n2\n2\n3\n3\n".into()),
        ("other.csv", "bag,z\n1,2\n1,2\n2,1\n2,3\n3,3\n3,1\n".into()),
        ("no.safetensors", "no model".into()),
        ("rows.txt", ROWS.into()),
        ("tie.csv", ROWS.replace(',', ";").replacen("bag;x;city", "bag;x|city", 1)),
        ("ragged.tsv", ROWS.replace(',', "\t") + "3\t1\n"),
        ("broken.parquet", "PAR1".into()),
        ("broken.csv.gz", "no gzip".into()),
        ("quote.csv", ROWS.replacen("0.5", "\"0.5", 1)),
        ("broken.toml", "[optimizer]\nl2 = 0.1\nepochs = = 2\n".into()),
        ("unknown.toml", "[optimizer]\nl2 = 0.1\npenalty = 1\n".into()),
        ("flat.toml", "rows = 'rows.csv'\n".into()),
        ("type.toml", "seed = 1\n[data]\nkey = 3\n".into()),
        ("value.toml", "[optimizer]\nl2 = 'strong'\n".into()),
        ("method.toml", "[method]\nname = 'easyllp'\nwights = 'size'\n".into()),
        ("partial.toml", "[data]\nrows = 'rows.csv'\n".into()),
        ("both.toml", "label = 'y'\n[data]\nrows = 'rows.csv'\nreports = 'reports.csv'\n".into()),
    ];
    for (name, text) in files {
        fs::write(folder.join(name), text).expect("a file");
    }
    let latin = [ROWS.as_bytes(), b"3,1,Z\xfcrich\n"].concat();
    fs::write(folder.join("latin.csv"), latin).expect("a file");
}

fn cases() -> Vec<String> {
    [trainings(), files(), methods(), others()].concat()
}

fn trainings() -> Vec<String> {
    let train = |rest: &str| format!("train --rows rows.csv {FILES} --out m.safetensors {rest}");
    let on = |rest: &str| train(&format!("--reports reports.csv {rest}"));
    vec![
        "train".into(),
        "train --rows rows.csv".into(),
        on("--l2 -1"),
        on("--l2 strong"),
        on("--holdout 1"),
        on("--holdout 0"),
        on("--loss log"),
        on("--loss hinge"),
        on("--loss zero-one"),
        on("--loss softmax --holdout nan"),
        on("--method magic"),
        on("--method easyllp:bag_weights=heavy"),
        on("--method easyllp:bag_weights=variance:-1"),
        on("--method easyllp:prior=2"),
        on("--holdout 0.01"),
        on("--threads 0"),
        on("--model forest"),
        on("--model mlp:0"),
        on("--model mlp:16"),
        on("--model cnn:mnist"),
        on("--model cnn:pool"),
        on("--model cnn:mnist --image 28"),
        on("--model embedding:4 --l2 auto"),
        on("--model embedding:4,mlp:8 --l2 auto"),
        on("--epochs 0"),
        on("--lr -0.1"),
        on("--lr 1e9 --holdout 0"),
        on("--epochs 2 --l2 auto"),
        on("--batch-size many"),
        on("--hash-buckets 0"),
        on("--max-vocabulary 5000"),
        on("--config nowhere.toml"),
        on("--config broken.toml"),
        on("--config unknown.toml"),
        on("--config flat.toml"),
        on("--config type.toml"),
        on("--config value.toml"),
        on("--config method.toml"),
        "train --config partial.toml".into(),
        "train --config partial.toml --reports reports.csv --key bag --count count".into(),
        "train --config both.toml --out m.safetensors".into(),
        "inspect --config partial.toml".into(),
        "inspect --config unknown.toml".into(),
        on("--noise laplace"),
        on("--noise laplace:-1"),
        on("--noise uniform:1"),
        on("--noise laplace:nothing"),
        on("--size nothing"),
        on("--features x,nothing"),
        on("--exclude nothing"),
        on("--exclude x --features x"),
        on("--exclude x,city"),
        on("--numeric city"),
        on("--numeric nothing"),
        on("--delimiter space"),
        on("--delimiter ;"),
        on("--on-mismatch ignore"),
        format!(
            "train --rows rows.csv --reports reports.csv --key nothing --count count --out m.safetensors"
        ),
        format!("train --rows rows.csv --reports reports.csv --key bag --count nothing --out m.safetensors"),
        format!(
            "train --rows rows.csv --reports reports.csv {FILES} --l2 1 --holdout 0 --out nowhere/m.safetensors"
        ),
    ]
}

fn files() -> Vec<String> {
    let mut cases = Vec::new();
    for rows in [
        "nowhere.csv",
        "nowhere*.csv",
        "empty.csv",
        "header.csv",
        "twice.csv",
        "ragged.csv",
        "latin.csv",
        "quote.csv",
        "huge.csv",
        "infinite.csv",
        "only-key.csv",
        "rows.txt",
        "tie.csv",
        "ragged.tsv",
        "broken.parquet",
        "broken.csv.gz",
    ] {
        cases.push(format!("train --rows {rows} --reports reports.csv {FILES} --out m.safetensors"));
    }
    for reports in [
        "nowhere.csv",
        "fewer.csv",
        "more.csv",
        "again.csv",
        "size.csv --size size",
        "over.csv",
        "negative.csv",
        "fraction.csv",
        "no-count.csv",
        "words.csv",
        "text-keys.csv",
        "scales.csv --noise laplace:scale",
    ] {
        cases.push(format!("train --rows rows.csv {FILES} --out m.safetensors --reports {reports}"));
    }
    cases
}

fn methods() -> Vec<String> {
    let on = |rest: &str| {
        format!(
            "train --rows rows.csv --reports reports.csv {FILES} --exclude city --holdout 0 {rest} --out m.safetensors"
        )
    };
    vec![
        on("--method easyllp:prior=[0.3,0.5] --l2 1"),
        on("--method easyllp:prior=[0.2,0.3,0.5] --l2 1"),
        on("--method easyllp:steps=given"),
        on("--method easyllp-sgd:steps=long"),
        on("--method count"),
        on("--method supervised --l2 1"),
        on("--method mean-map --loss squared --l2 1"),
        on("--method llp-em --model mlp:8"),
        on("--method count-likelihood --loss squared --l2 1"),
        on("--method label-generation:epsilon=-1"),
        on("--method mean-map:epsilon=1"),
        on("--method mean-map:bag_weights=size"),
        on("--method mean-map:ridge"),
        on("--method easyllp-sgd --epochs 3"),
        on("--method easyllp-sgd:domain=sphere"),
        on("--method easyllp-sgd --model mlp:8"),
        on("--method easyllp:batches=bags,bag_weights=size --epochs 2"),
        on("--method easyllp:batches=bags,targets=surrogate"),
        on("--method easyllp:prior=0.3,bag_weights=equal --l2 1"),
        on("--method easyllp:rebag=2 --epochs 2"),
        "train --rows rows.csv --reports three.csv --key bag --count a,b,c --loss logistic --out m.safetensors".into(),
        on("--stop-by auc"),
        on("--label y"),
    ]
}

fn others() -> Vec<String> {
    let evaluate = |rest: &str| format!("evaluate --rows rows.csv --reports reports.csv {FILES} {rest}");
    vec![
        format!("train --rows one-bag-rows.csv --reports one-bag.csv {FILES} --out m.safetensors"),
        format!("inspect --rows one-bag-rows.csv --reports one-bag.csv {FILES}"),
        "train --rows labelled.csv --label y --method easyllp:rebag=0 --out m".into(),
        "train --rows labelled.csv --label nothing --method supervised --out m".into(),
        "train --rows one-class.csv --label y --method supervised --out m".into(),
        "train --rows labelled.csv --method supervised --out m".into(),
        "bag --rows labelled.csv --label y --out d".into(),
        "bag --rows labelled.csv --label y --size 0 --out d".into(),
        "bag --rows labelled.csv --label y --size 9-3 --out d".into(),
        "bag --config partial.toml --size 2 --out d".into(),
        "bag --rows labelled.csv --label nothing --size 2 --out d".into(),
        "bag --rows labelled.csv --label y --by nothing --out d".into(),
        "bag --rows labelled.csv --label y --by y --out d".into(),
        "bag --rows labelled.csv --label city --positive c --size 2 --out d".into(),
        "bag --rows one-class.csv --label y --size 2 --out d".into(),
        "bag --rows missing-label.csv --label y --size 2 --out d".into(),
        "bag --rows rows.csv --label city --size 2 --out d".into(),
        "bag --rows labelled.csv --label y --size 2 --noise laplace:column --out d".into(),
        "bag --rows labelled.csv --label y --size 2 --out rows.csv".into(),
        "predict --model nowhere.safetensors --rows rows.csv --out s.csv".into(),
        "predict --model no.safetensors --rows rows.csv --out s.csv".into(),
        "predict --model good.model --rows other.csv --out s.csv".into(),
        "predict --model good.model --rows rows.csv --out s.txt".into(),
        "predict --model good.model --rows rows.csv --out nowhere/s.csv".into(),
        "predict --model good.model --rows rows.csv --keep nothing --out s.csv".into(),
        "predict --model good.model --rows rows.csv --keep x,x --out s.csv".into(),
        "predict --model good.model --rows rows.csv ./r*ws.csv --out s.csv".into(),
        evaluate("--model nowhere.safetensors"),
        evaluate("--model good.model --label nothing"),
        evaluate("--model good.model --label city"),
        evaluate("--model good.model --positive a"),
        evaluate("--model good.model --against nowhere.safetensors"),
        format!("tune --rows rows.csv --reports reports.csv {FILES} --l2 1 --out best.toml"),
        format!("tune --rows rows.csv --reports reports.csv {FILES} --l2=-1,1 --out best.toml"),
        format!("tune --rows rows.csv --reports reports.csv {FILES} --method mean-map --loss squared --l2=1,2 --out best.toml"),
        evaluate("--model good.model --report nowhere/report.html"),
        "evaluate --model good.model --rows rows.csv --reports reports.csv --key bag --count size,count,scale".into(),
        "methods forest".into(),
        format!("tune --rows rows.csv --reports reports.csv {FILES} --method naive:ridge=1 --out best.toml"),
        "show nowhere.safetensors".into(),
        "show no.safetensors".into(),
        "export good.model".into(),
        "export nowhere.safetensors --onnx m.onnx".into(),
        "export no.safetensors --onnx m.onnx".into(),
        "export good.model --onnx nowhere/m.onnx".into(),
        "export hashed.model --onnx m.onnx".into(),
        "datasets export iris --out i.csv".into(),
        "datasets export adult --out adult.xls".into(),
    ]
}

#[test]
fn each_mistake_gets_its_message_and_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    prepare(folder);
    let run = |arguments: &str| {
        let program = assert_cmd::cargo::cargo_bin!("easyllp");
        Command::new(program)
            .current_dir(folder)
            .args(arguments.split_whitespace())
            .output()
            .expect("the program runs")
    };
    let names = || {
        let mut names: Vec<_> = fs::read_dir(folder)
            .expect("a folder")
            .map(|entry| entry.expect("an entry").file_name())
            .collect();
        names.sort_unstable();
        names
    };
    for out in ["good.model", "hashed.model --max-vocabulary 2"] {
        let train = format!("train --rows rows.csv --reports reports.csv {FILES} --l2 1 --holdout 0");
        assert!(run(&format!("{train} --out {out}")).status.success());
    }
    let before = names();
    let mut table = String::new();
    let cases = cases();
    assert!(cases.len() >= 60, "{} cases", cases.len());
    for arguments in cases {
        let output = run(&arguments);
        let code = output.status.code().expect("no signal");
        let message = String::from_utf8_lossy(&output.stderr);
        // What went well before the mistake may have been told; the mistake is the last line.
        let last = message.lines().last().unwrap_or_default();
        assert!(code == 1 || code == 2, "{arguments}: {code}\n{message}");
        assert!(last.starts_with("easyllp: ") && !message.contains("panicked"), "{arguments}: {message}");
        assert!(output.stdout.is_empty(), "{arguments}: data of a failure");
        assert_eq!(names(), before, "{arguments} leaves files");
        let _ = writeln!(table, "easyllp {arguments}\n  {code}: {last}");
    }
    insta::assert_snapshot!(table);
}
