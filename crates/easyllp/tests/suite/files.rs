//! Files as one table: every format says the same, and broken files are refused with a reason.

use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use easyllp::Error;
use easyllp::table::{Column, Kind, ReadAs, Source, Table, TableWriter};
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
        let error = read(&path, &["a"]).unwrap_err().to_string();
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
    assert!(refused("t.txt", b"a\n1\n").contains("no known format"));
    assert!(matches!(read(Path::new("nowhere.csv"), &["a"]), Err(Error::CannotRead { .. })));
}
