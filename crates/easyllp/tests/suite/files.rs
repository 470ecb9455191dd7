//! Files as one table: every format says the same, and broken files are refused with a reason.

use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use easyllp::Error;
use easyllp::table::{Column, CsvOptions, Delimiter, Kind, ReadAs, Source, Table, TableWriter};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

fn batch() -> RecordBatch {
    let columns: [(&str, ArrayRef); 5] = [
        ("id", Arc::new(Int64Array::from(vec![7, 8, 9, 10]))),
        ("age", Arc::new(Float64Array::from(vec![Some(20.5), None, Some(40.0), Some(0.25)]))),
        ("city", Arc::new(StringArray::from(vec![Some("Bern"), Some("New, York"), None, Some("Bern")]))),
        ("is_new", Arc::new(BooleanArray::from(vec![true, false, true, true]))),
        ("day", Arc::new(StringArray::from(vec!["2026-01-01", "2026-01-02", "2026-01-01", "2026-01-03"]))),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn write(path: &Path) {
    let mut writer = TableWriter::create(path, batch().schema()).unwrap();
    writer.write(&batch()).unwrap();
    writer.finish().unwrap();
}

fn open(path: &Path) -> Result<Source, Error> {
    Source::open(&[path.display().to_string()], BTreeMap::new())
}

fn read(path: &Path, columns: &[&str]) -> Result<Table, Error> {
    open(path)?.read(&columns.iter().map(ToString::to_string).collect::<Vec<_>>())
}

#[test]
fn all_formats_say_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for name in ["t.csv", "t.parquet", "t.arrow"] {
        write(&at(name));
    }
    let text = fs::read(at("t.csv")).unwrap();
    let mut packed =
        flate2::write::GzEncoder::new(fs::File::create(at("t.csv.gz")).unwrap(), flate2::Compression::new(6));
    packed.write_all(&text).unwrap();
    packed.finish().unwrap();
    fs::write(at("t.csv.zst"), zstd::encode_all(&text[..], 3).unwrap()).unwrap();
    let columns = ["age", "city", "is_new", "id"];
    let expected = read(&at("t.parquet"), &columns).unwrap();
    let Column::Numeric(ages) = expected.column("age").unwrap() else { panic!("ages are numbers") };
    assert!(ages[1].is_nan() && (ages[3] - 0.25).abs() < 1e-12);
    assert_eq!(*expected.column("city").unwrap(), Column::categorical(["Bern", "New, York", "", "Bern"]));
    assert_eq!(*expected.column("is_new").unwrap(), Column::Numeric(vec![1.0, 0.0, 1.0, 1.0]));
    for name in ["t.csv", "t.csv.gz", "t.csv.zst", "t.arrow"] {
        // NaN is not equal to itself; what is printed is.
        assert_eq!(format!("{:?}", read(&at(name), &columns).unwrap()), format!("{expected:?}"), "{name}");
    }
    // Several files are one table, by pattern, in the order of their names.
    write(&at("u1.parquet"));
    write(&at("u2.parquet"));
    let pattern = at("u*.parquet").display().to_string();
    let both =
        Source::open(&[pattern], BTreeMap::new()).unwrap().read(&["id".into(), "city".into()]).unwrap();
    assert_eq!(both.n_rows(), 8);
    assert_eq!(*both.column("id").unwrap(), Column::Numeric(vec![7.0, 8.0, 9.0, 10.0, 7.0, 8.0, 9.0, 10.0]));
    let Column::Categorical { dictionary, codes } = both.column("city").unwrap() else {
        panic!("cities are text")
    };
    assert_eq!((dictionary.len(), codes[4] == codes[0]), (3, true));
}

#[test]
fn kinds_are_told_and_can_be_overruled() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    write(&path);
    let kinds: Vec<Kind> = open(&path).unwrap().columns().into_iter().map(|(_, kind)| kind).collect();
    assert_eq!(kinds, [Kind::Integer, Kind::Number, Kind::Text, Kind::Boolean, Kind::Time]);
    let Column::Numeric(days) = read(&path, &["day"]).unwrap().column("day").unwrap().clone() else {
        panic!("no days")
    };
    assert!((days[1] - days[0] - 86_400.0).abs() < 1e-6);
    let forced = BTreeMap::from([("id".to_owned(), ReadAs::Text)]);
    let source = Source::open(&[path.display().to_string()], forced).unwrap();
    assert_eq!(
        *source.read(&["id".into()]).unwrap().column("id").unwrap(),
        Column::categorical(["7", "8", "9", "10"])
    );
}

/// The same table by every delimiter, inferred, set or by the file extension; fields in quotes hold any of them.
#[test]
fn delimiters_do_not_change_the_table() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let lines = [
        "id~\"what, who; how|why\twhere\"~city",
        "1~\"a, b; c|d\te~f\"~Bern",
        "2~say \"so\"~\"\"",
        "3~\"\n\"~x",
    ];
    let columns = ["id", "what, who; how|why\twhere", "city"];
    let by =
        |delimiter: Delimiter| lines.join("\r\n").replace('~', &char::from(delimiter.byte()).to_string());
    let set = |path: &Path, delimiter| {
        let csv = CsvOptions { delimiter: Some(delimiter), ..CsvOptions::default() };
        Source::open_with(&[path.display().to_string()], BTreeMap::new(), csv)
    };
    for delimiter in Delimiter::ALL {
        let character = char::from(delimiter.byte());
        let what = [format!("a, b; c|d\te{character}f"), "say \"so\"".into(), "\n".into()];
        let expected = [
            Column::Numeric(vec![1.0, 2.0, 3.0]),
            Column::categorical(what.iter().map(String::as_str)),
            Column::categorical(["Bern", "", "x"]),
        ];
        fs::write(at("t.csv"), by(delimiter)).unwrap();
        fs::write(at("t.log"), by(delimiter)).unwrap();
        let names = columns.map(str::to_owned);
        let tables = [
            open(&at("t.csv")).unwrap().read(&names),
            set(&at("t.csv"), delimiter).unwrap().read(&names),
            // With a delimiter a file may have any name.
            set(&at("t.log"), delimiter).unwrap().read(&names),
        ];
        for table in tables {
            let table = table.unwrap();
            let found: Vec<&Column> = columns.iter().map(|name| table.column(name).unwrap()).collect();
            assert_eq!(found, expected.iter().collect::<Vec<_>>(), "{delimiter}");
        }
        // Batch by batch, too.
        let source = open(&at("t.csv")).unwrap();
        let batch = source.batches(&names).next().unwrap().unwrap();
        assert_eq!(source.table(&batch, &names).unwrap().column("city").unwrap(), &expected[2]);
    }
    // The extension sets tabs although the header suggests commas; an explicit option overrides both.
    let header = "a,b,c\td\n1\t2\n";
    let mut packed =
        flate2::write::GzEncoder::new(fs::File::create(at("t.tsv.gz")).unwrap(), flate2::Compression::new(6));
    packed.write_all(header.as_bytes()).unwrap();
    packed.finish().unwrap();
    fs::write(at("t.TSV"), header).unwrap();
    fs::write(at("t.tsv.zst"), zstd::encode_all(header.as_bytes(), 3).unwrap()).unwrap();
    for name in ["t.TSV", "t.tsv.gz", "t.tsv.zst"] {
        let names: Vec<String> =
            open(&at(name)).unwrap().columns().into_iter().map(|(name, _)| name.to_owned()).collect();
        assert_eq!(names, ["a,b,c", "d"], "{name}");
        assert!(set(&at(name), Delimiter::Comma).is_err(), "{name}");
    }
    // Files of one table may have delimiters of their own.
    fs::write(at("u1.csv"), "a;b\n1;2\n").unwrap();
    fs::write(at("u2.tsv"), "a\tb\n3\t4\n").unwrap();
    let both = [at("u1.csv"), at("u2.tsv")].map(|path| path.display().to_string());
    let both = Source::open(&both, BTreeMap::new()).unwrap().read(&["b".into()]).unwrap();
    assert_eq!(*both.column("b").unwrap(), Column::Numeric(vec![2.0, 4.0]));
}

#[test]
fn a_wrong_delimiter_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    let refused = |text: &str, delimiter: Option<Delimiter>| {
        fs::write(&path, text).unwrap();
        let csv = CsvOptions { delimiter, ..CsvOptions::default() };
        let source = Source::open_with(&[path.display().to_string()], BTreeMap::new(), csv);
        let error = source.and_then(|source| source.read(&["b".into()])).unwrap_err().in_full();
        error.rsplit("t.csv ").next().unwrap().to_owned()
    };
    let cannot = "cannot be read as a table: line 2: ";
    for (text, delimiter, expected) in [
        (
            "a;b\n1;2\n",
            Some(Delimiter::Comma),
            "has no column `b`; it has a;b (one column: is the delimiter semicolon?)",
        ),
        ("a;b|c\n1;2|3\n", None, "has no column `b`; it has a;b|c (one column: is the delimiter semicolon?)"),
        (
            "a;b\n1,5;2,5\n",
            Some(Delimiter::Comma),
            &format!(
                "{cannot}found 3 fields, expected 1 as in the header; the delimiter is comma: is it semicolon?"
            ),
        ),
        (
            "a|b|c,d\n1,2\n",
            None,
            &format!(
                "{cannot}found 1 field, expected 3 as in the header; the delimiter is pipe: set another if it is not"
            ),
        ),
        ("a,b\n1\n", None, &format!("{cannot}found 1 field, expected 2 as in the header")),
    ] {
        assert_eq!(refused(text, delimiter), expected, "{text:?}");
    }
}

/// Names in place of a header, and a limit on rows.
#[test]
fn files_without_a_header_have_names_and_the_first_rows_may_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    let with = |text: &str, n_names: usize| {
        fs::write(&path, text).unwrap();
        let names = (0..n_names).map(|place| format!("c{place}")).collect();
        Source::open_with(
            &[path.display().to_string()],
            BTreeMap::new(),
            CsvOptions { names, ..CsvOptions::default() },
        )
    };
    let column =
        |source: Source| source.read(&["c1".into()]).map(|table| table.column("c1").unwrap().clone());
    let text = "\n1|2|x\n3|4|\"y\nz\"\n5|6|\n";
    let numbers = |numbers: &[f64]| Ok(Column::Numeric(numbers.to_vec()));
    assert_eq!(column(with(text, 3).unwrap()), numbers(&[2.0, 4.0, 6.0]));
    for n_rows in 1..5 {
        let expected = numbers(&[2.0, 4.0, 6.0][..n_rows.min(3)]);
        assert_eq!(column(with(text, 3).unwrap().first(n_rows)), expected);
    }
    assert_eq!(column(with(text, 3).unwrap().first(0)), Err(Error::NoRows));
    let refused = with(text, 2).unwrap_err().in_full();
    assert!(
        refused.ends_with(
            ": line 2: found 3 fields, expected 2; the delimiter is pipe: set another if it is not"
        ),
        "{refused}"
    );
    let twice = CsvOptions { names: ["a", "b", "a"].map(String::from).to_vec(), ..CsvOptions::default() };
    let twice = Source::open_with(&[path.display().to_string()], BTreeMap::new(), twice);
    assert_eq!(twice.unwrap_err(), Error::ColumnTwice { column: "a".into() });
    assert_eq!(column(with("", 3).unwrap()), Err(Error::NoRows));
    // Rows far after the first ones are not parsed, in many batches or in several files.
    let long = "1,2\n".repeat(1 << 20) + "1,x\n";
    assert!(matches!(column(with(&long, 2).unwrap()), Err(Error::BadFile { .. })));
    let Column::Numeric(values) = column(with(&long, 2).unwrap().first(400_000)).unwrap() else {
        panic!("c1 has numbers")
    };
    assert_eq!(values.len(), 400_000);
    let parquet = folder.path().join("t.parquet");
    write(&parquet);
    write(&folder.path().join("u.parquet"));
    let both = [parquet, folder.path().join("u.parquet")].map(|path| path.display().to_string());
    let first = Source::open(&both, BTreeMap::new()).unwrap().first(5).read(&["id".into()]).unwrap();
    assert_eq!(*first.column("id").unwrap(), Column::Numeric(vec![7.0, 8.0, 9.0, 10.0, 7.0]));
}

#[test]
fn images_come_with_their_labels() {
    let folder = tempfile::tempdir().unwrap();
    let images = folder.path().join("train-images-idx3-ubyte");
    let header = |magic: &[u8], sizes: &[u32]| {
        [magic, &sizes.iter().flat_map(|s| s.to_be_bytes()).collect::<Vec<_>>()].concat()
    };
    fs::write(&images, [header(&[0, 0, 8, 3], &[2, 1, 3]), vec![1, 2, 3, 4, 5, 255]].concat()).unwrap();
    fs::write(
        folder.path().join("train-labels-idx1-ubyte"),
        [header(&[0, 0, 8, 1], &[2]), vec![7, 9]].concat(),
    )
    .unwrap();
    let table = read(&images, &["label", "pixels"]).unwrap();
    assert_eq!(*table.column("label").unwrap(), Column::Numeric(vec![7.0, 9.0]));
    assert_eq!(
        *table.column("pixels").unwrap(),
        Column::Vector(ndarray::array![[1.0, 2.0, 3.0], [4.0, 5.0, 255.0]])
    );

    let batch = folder.path().join("data_batch_1.bin");
    fs::write(&batch, [vec![3; 3073], vec![4; 3073]].concat()).unwrap();
    let table = read(&batch, &["label", "pixels"]).unwrap();
    assert_eq!((table.n_rows(), table.column("label").unwrap()), (2, &Column::Numeric(vec![3.0, 4.0])));

    // A header that promises more than is there, or more than anyone has.
    for (sizes, bytes) in [([2, 1, 3], 5), ([u32::MAX; 3], 5), ([0, 1, 3], 0), ([1, 1, 3], 6)] {
        fs::write(&images, [header(&[0, 0, 8, 3], &sizes), vec![0; bytes]].concat()).unwrap();
        assert!(matches!(read(&images, &["pixels"]), Err(Error::BadFile { .. })), "{sizes:?}");
    }
    fs::write(&batch, vec![0; 3074]).unwrap();
    assert!(matches!(read(&batch, &["label"]), Err(Error::BadFile { .. })));
}

#[test]
fn broken_files_are_refused_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        let error = read(&path, &["a"]).unwrap_err().in_full();
        error.replace(&folder.path().display().to_string(), "DIR")
    };
    assert_eq!(
        refused("t.csv", b"a,b\n1,2\n3\n").split(':').next(),
        Some("DIR/t.csv cannot be read as a table")
    );
    assert_eq!(refused("t.csv", b"b\n1\n"), "DIR/t.csv has no column `a`; it has b");
    assert_eq!(refused("t.csv", b"a,a\n1,2\n"), "duplicate column `a`");
    assert_eq!(refused("t.csv", b"a\n"), "there are no rows");
    assert!(refused("t.csv", b"").contains("no columns"));
    let late = [b"a\n".to_vec(), b"1\n".repeat(600_000), b"x\n".to_vec()].concat();
    let message = refused("t.csv", &late);
    assert_eq!(
        message,
        "DIR/t.csv cannot be read as a table: line 600002: found `x` in column `a`, which is read as whole numbers"
    );
    // Lines are those that an editor shows, for both kinds of mistakes: a record of two lines and an empty line lie before.
    let lines = |last: &str| {
        refused(
            "t.csv",
            [b"a,b\n1,\"x\ny\"\n\n".as_slice(), &b"1,x\n".repeat(600_000), last.as_bytes()]
                .concat()
                .as_slice(),
        )
    };
    assert!(lines("z,y\n").contains(": line 600005: found `z` in column `a`"), "{}", lines("z,y\n"));
    assert!(
        lines("3\n").ends_with(": line 600005: found 1 field, expected 2 as in the header"),
        "{}",
        lines("3\n")
    );
    assert!(refused("t.csv", b"a\n\n\xff\n").ends_with(": line 3 is not UTF-8 text"));
    assert!(refused("t.csv", b"a\n1\n\"2\n").contains("the record that starts in line 3 ends within quotes"));
    assert!(refused("t.parquet", b"PAR1 no PAR1").starts_with("DIR/t.parquet cannot be read as a table"));
    assert!(refused("t.arrow", b"ARROW1").starts_with("DIR/t.arrow cannot be read as a table"));
    assert!(refused("t.csv.gz", b"no gzip").contains("t.csv.gz"));
    assert!(refused("t.txt", b"a\n1\n").contains("unknown format"));
    assert!(matches!(read(Path::new("nowhere.csv"), &["a"]), Err(Error::CannotRead { .. })));
}
