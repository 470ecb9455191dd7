//! The words of the project, in everything that is read: help texts, errors, comments, docstrings, documents and pages.

use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The root of the repository.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The list of phrases to avoid, with replacements.
const PHRASES: &str = include_str!("prose.txt");

/// Extensions of text files, and names without an extension.
const TEXT: [&str; 13] =
    ["rs", "py", "pyi", "md", "html", "toml", "txt", "sh", "snap", "cff", "yml", "css", "Makefile"];

/// All text files of the project. Of results only what is written for readers.
fn files() -> Vec<PathBuf> {
    let root = Path::new(ROOT).canonicalize().unwrap();
    let mut files = vec![root.join("results/README.md"), root.join("results/index.html")];
    let mut folders = vec![root];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            let skipped = ["target", "results", "generated", "prose.txt", "prose.rs"].contains(&name)
                || (name.starts_with('.') && name != ".github")
                || path.join("pyvenv.cfg").exists();
            let kind = path.extension().map_or(name, |extension| extension.to_str().unwrap());
            if path.is_dir() && !skipped {
                folders.push(path);
            } else if TEXT.contains(&kind) && !skipped {
                files.push(path);
            }
        }
    }
    files
}

/// A text in lower case without comment marks, quotes and tags, its words separated by single spaces; and for each byte its line.
fn words(text: &str, is_html: bool) -> (String, Vec<usize>) {
    let (mut words, mut lines, mut is_tag) = (String::from(" "), vec![1], false);
    for (line, number) in text.lines().zip(1..) {
        let line = line.trim_start().trim_start_matches(['/', '!', '#', '>', '*']).to_lowercase();
        for letter in line.replace("f\"", " ").chars().chain(['\n']) {
            is_tag = is_html && (is_tag || letter == '<');
            let is_space = is_tag || letter.is_whitespace() || matches!(letter, '"' | '\\');
            is_tag &= letter != '>';
            if !is_space {
                words.push(letter);
            } else if !words.ends_with(' ') {
                words.push(' ');
            }
            lines.resize(words.len(), number);
        }
    }
    (words, lines)
}

/// Where a phrase occurs as whole words; one that ends with `*` may go on within its last word.
fn places(words: &str, phrase: &str) -> Vec<usize> {
    let is_letter = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-');
    let found = words.match_indices(phrase.trim_end_matches('*'));
    let is_whole = |(place, found): &(usize, &str)| {
        let goes_on = words[place + found.len()..].starts_with(is_letter);
        !words[..*place].ends_with(is_letter)
            && (phrase.ends_with('*') || !found.ends_with(is_letter) || !goes_on)
    };
    found.filter(is_whole).map(|(place, _)| place).collect()
}

/// Phrases to avoid, with replacements.
fn phrases() -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = PHRASES.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.split_once(" | ").expect("a phrase and its replacement"))
}

#[test]
fn everything_is_in_plain_words() {
    let files = files();
    assert!(files.len() > 400, "only {} files", files.len());
    let mut found = String::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let (words, lines) = words(&text, file.extension().is_some_and(|extension| extension == "html"));
        for (phrase, instead) in phrases() {
            for place in places(&words, phrase) {
                writeln!(found, "{}:{}: `{phrase}`: write {instead}", file.display(), lines[place]).unwrap();
            }
        }
    }
    assert!(found.is_empty(), "phrases of prose.txt:\n{found}");
}

#[test]
fn phrases_are_found_across_lines_marks_and_tags() {
    let text = "/// Training *was*, broken\n    /// off. \"It is \" \\\n  f\"told so\" <b>runs</b> away";
    let (words, lines) = words(text, true);
    let line = |phrase: &str| places(&words, phrase).first().map(|&place| lines[place]);
    assert_eq!(line("broken off"), Some(1));
    assert_eq!(line("is told"), Some(2));
    assert_eq!(line("runs away"), Some(3));
    assert_eq!((line("roken off"), line("it is to"), line("it is to*")), (None, None, Some(2)));
}

/// Documents are wrapped at 100 columns, tables and code excepted; the README is short.
#[test]
fn lines_of_documents_are_short() {
    let root = Path::new(ROOT).canonicalize().unwrap();
    let documents: Vec<PathBuf> =
        files().into_iter().filter(|file| file.extension().is_some_and(|kind| kind == "md")).collect();
    assert!(documents.len() > 80, "only {} documents", documents.len());
    let mut found = String::new();
    for file in documents {
        let mut is_code = false;
        for (line, number) in std::fs::read_to_string(&file).unwrap().lines().zip(1..) {
            is_code ^= line.trim_start().starts_with("```");
            let is_prose = !is_code && !line.trim_start().starts_with('|') && !line.starts_with("    ");
            // An address cannot be broken.
            if is_prose && line.chars().count() > 100 && !line.trim_start().starts_with("http") {
                writeln!(found, "{}:{number}: {} columns", file.display(), line.chars().count()).unwrap();
            }
        }
    }
    assert!(found.is_empty(), "lines of more than 100 columns:\n{found}");
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    assert!(readme.lines().count() <= 150, "README.md has {} lines", readme.lines().count());
}
