use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The folder of the crate.
const CRATE: &str = env!("CARGO_MANIFEST_DIR");

/// Rooms in the order of ARCHITECTURE.md, each with those that it may import.
fn plan() -> Vec<(String, BTreeSet<String>)> {
    let text = std::fs::read_to_string(Path::new(CRATE).join("../../ARCHITECTURE.md")).unwrap();
    let table = text.split("| room | may import | holds |").nth(1).expect("the table of rooms");
    let names =
        |cell: &str| -> BTreeSet<String> { cell.split('`').skip(1).step_by(2).map(str::to_owned).collect() };
    let line = |line: &str| {
        let mut cells = line.trim_matches('|').split('|');
        let room = names(cells.next()?).pop_first()?;
        Some((room, names(cells.next()?)))
    };
    table.lines().skip(2).map_while(line).collect()
}

fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

/// What the code outside of tests imports, room by room.
fn imports() -> BTreeMap<String, BTreeSet<String>> {
    let source = Path::new(CRATE).join("src");
    let mut files = Vec::new();
    sources(&source, &mut files);
    let mut imports: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in files {
        let path = file.strip_prefix(&source).unwrap();
        let name = path.file_stem().unwrap().to_str().unwrap();
        if ["lib", "rounding", "tests", "enumeration"].contains(&name) {
            continue;
        }
        let room = path.iter().next().unwrap().to_str().unwrap().trim_end_matches(".rs").to_owned();
        let text = std::fs::read_to_string(&file).unwrap();
        let code = text.split("\n#[cfg(test)]\nmod tests").next().unwrap();
        let code = code.lines().filter(|line| !line.trim_start().starts_with("//"));
        let imported = imports.entry(room.clone()).or_default();
        for line in code {
            for used in line.split("crate::").skip(1) {
                let used: String = used.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                if used != room && !used.is_empty() {
                    imported.insert(used);
                }
            }
        }
    }
    imports
}

#[test]
fn rooms_import_what_the_plan_says() {
    let (plan, imports) = (plan(), imports());
    let known: BTreeSet<&String> = plan.iter().map(|(room, _)| room).collect();
    assert_eq!(known, imports.keys().collect(), "the rooms of the table are those of the code");
    let mut above = BTreeSet::new();
    for (room, may_import) in &plan {
        assert_eq!(*may_import, imports[room], "what `{room}` may import, and what it does import");
        let below: Vec<&String> = may_import.difference(&above).collect();
        assert!(below.is_empty(), "`{room}` imports {below:?}, which stand below it");
        above.insert(room.clone());
    }
}
