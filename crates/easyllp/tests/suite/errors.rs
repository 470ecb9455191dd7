use crate::modules::{code_of, sources};
use easyllp::{Error, ModelFile};
use std::error::Error as _;
use std::io;
use std::path::Path;

/// Options belong to the program: Python and Rust have other names for them.
#[test]
fn no_text_of_the_library_names_an_option_of_the_command_line() {
    let mut files = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
    assert!(files.len() > 100);
    for file in files {
        for line in code_of(&file).lines() {
            let mut after = line.split("--").skip(1);
            let names_one = after.any(|text| text.starts_with(|first: char| first.is_ascii_lowercase()));
            assert!(!names_one, "{}: {line}", file.display());
        }
    }
}

/// What an error was caused by, as the type that it had.
fn cause<E: std::error::Error + 'static>(error: &Error) -> &E {
    let source = error.source().unwrap_or_else(|| panic!("{error} has no source"));
    source.downcast_ref().unwrap_or_else(|| panic!("the source of {error} is {source:?}"))
}

#[test]
fn what_was_caused_by_another_error_gives_it_and_does_not_repeat_it() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);

    let missing = ModelFile::load(&at("model.safetensors")).unwrap_err();
    assert_eq!(cause::<io::Error>(&missing).kind(), io::ErrorKind::NotFound);
    let (message, source) = (missing.to_string(), missing.source().unwrap().to_string());
    assert!(!message.contains(&source));
    assert_eq!(missing.in_full(), format!("{message}: {source}"));
    assert_eq!(missing.clone(), missing);

    let lost = easyllp::files::write_whole(&at("no/such/folder"), b"").unwrap_err();
    assert_eq!(cause::<io::Error>(&lost).kind(), io::ErrorKind::NotFound);
    assert_ne!(lost, missing);

    // A reason in words is a source, too, and a chain may be longer.
    let error = ModelFile::from_bytes(b"PK").unwrap_err();
    assert_eq!(error.source().unwrap().to_string(), "it does not begin as a model file does");
    let error = Error::Task { task: 3, source: Box::new(error) };
    assert_eq!(error.in_full(), "task index 3: invalid model: it does not begin as a model file does");
}

#[cfg(feature = "tables")]
#[test]
fn files_that_are_no_tables_give_the_error_of_their_reader() {
    use arrow_schema::ArrowError;
    use easyllp::table::Source;
    use parquet::errors::ParquetError;
    use std::collections::BTreeMap;
    let folder = tempfile::tempdir().unwrap();
    let open = |name: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, "neither Parquet nor Arrow").unwrap();
        Source::open(&[path.display().to_string()], BTreeMap::new()).unwrap_err()
    };
    let (parquet, arrow) = (open("a.parquet"), open("a.arrow"));
    assert!(matches!(cause(&parquet), ParquetError::General(_) | ParquetError::EOF(_)), "{parquet:?}");
    assert!(matches!(cause(&arrow), ArrowError::ParseError(_) | ArrowError::IoError(..)), "{arrow:?}");
    assert!([parquet, arrow].iter().all(|error| matches!(error, Error::BadFile { .. })));
}
