use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The folder of the crate.
const CRATE: &str = env!("CARGO_MANIFEST_DIR");

/// The modules of a crate in the order of ARCHITECTURE.md, with the modules that each may import.
fn plan(of: &str) -> Vec<(String, BTreeSet<String>)> {
    let text = std::fs::read_to_string(Path::new(CRATE).join("../../ARCHITECTURE.md")).unwrap();
    let section = text.split(&format!("\n### {of}\n")).nth(1).expect("a section for each crate");
    let table = section.split("| module | may import | owns |").nth(1).expect("the table of modules");
    let names =
        |cell: &str| -> BTreeSet<String> { cell.split('`').skip(1).step_by(2).map(str::to_owned).collect() };
    let line = |line: &str| {
        let mut cells = line.trim_matches('|').split('|');
        let module = names(cells.next()?).pop_first()?;
        Some((module, names(cells.next()?)))
    };
    table.lines().skip(2).map_while(line).collect()
}

/// The files of code in a folder.
pub(crate) fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

/// The code of a file, without comments and tests.
pub(crate) fn code_of(file: &Path) -> String {
    let text = std::fs::read_to_string(file).unwrap();
    let code = text.split("\n#[cfg(test)]\nmod tests").next().unwrap();
    code.lines().filter(|line| !line.trim_start().starts_with("//")).flat_map(|line| [line, "\n"]).collect()
}

/// What the code of a crate imports outside of tests, module by module.
fn imports(of: &str) -> BTreeMap<String, BTreeSet<String>> {
    let source = Path::new(CRATE).join("..").join(of).join("src");
    let mut files = Vec::new();
    sources(&source, &mut files);
    let mut imports: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in files {
        let path = file.strip_prefix(&source).unwrap();
        let name = path.file_stem().unwrap().to_str().unwrap();
        if ["lib", "main", "rounding", "tests", "enumeration"].contains(&name) {
            continue;
        }
        let module = path.iter().next().unwrap().to_str().unwrap().trim_end_matches(".rs").to_owned();
        let imported = imports.entry(module.clone()).or_default();
        for line in code_of(&file).lines() {
            for used in line.split("crate::").skip(1) {
                let used: String = used.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                if used != module && !used.is_empty() {
                    imported.insert(used);
                }
            }
        }
    }
    // Other crates also use names that their root exports; the library names the module each time.
    if of != "easyllp" {
        let known: BTreeSet<String> = imports.keys().cloned().collect();
        for imported in imports.values_mut() {
            imported.retain(|module| known.contains(module));
        }
    }
    imports
}

#[test]
fn modules_of_every_crate_are_those_of_the_plan() {
    for of in ["easyllp", "easyllp-report", "easyllp-lab", "easyllp-cli", "easyllp-py"] {
        let (plan, imports) = (plan(of), imports(of));
        let known: BTreeSet<&String> = plan.iter().map(|(module, _)| module).collect();
        assert_eq!(known, imports.keys().collect(), "the modules of {of} in the table, and in the code");
        for (module, may_import) in &plan {
            assert_eq!(
                *may_import, imports[module],
                "what `{module}` of {of} may import, and what it imports"
            );
        }
    }
}

#[test]
fn modules_of_the_library_import_only_modules_above_them() {
    let plan = plan("easyllp");
    let mut above = BTreeSet::new();
    for (module, may_import) in &plan {
        let below: Vec<&String> = may_import.difference(&above).collect();
        assert!(below.is_empty(), "`{module}` imports {below:?}, which stand below it");
        above.insert(module.clone());
    }
}
