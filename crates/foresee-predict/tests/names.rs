//! No file but `info.rs` spells the name of an analysis.

use std::fs;
use std::path::{Path, PathBuf};

use foresee_predict::info::{ALL, SPEC};

/// Literals that mean something else: the file, the literal, and what it means there.
const OTHERS: &[(&str, &str, &str)] = &[
    ("foresee-batch/src/collect.rs", "spec", "the ending of a file"),
    ("foresee-cli/src/args.rs", "lattice", "the flag --lattice"),
    ("foresee-cli/src/args.rs", "spec", "the flag --spec"),
    ("foresee-cli/src/commands/explore/report.rs", "observed", "a kind of finding"),
    ("foresee-cli/src/commands/trace/witness.rs", "observed", "a field of a witness"),
    ("foresee-cli/src/settings.rs", "atomicity", "a table of foresee.toml"),
    ("foresee-explore/src/explore.rs", "deadlock", "the noun in messages"),
    ("foresee-lsp/src/completion.rs", "pattern", "a keyword of specifications"),
    ("foresee-predict/src/checks/deadlock/mod.rs", "deadlock", "the noun in statements"),
    ("foresee-predict/src/checks/race/mod.rs", "race", "the noun in statements"),
    ("foresee-predict/src/nondeterminism/places.rs", "observed", "the label of a detail"),
    ("foresee-report/src/lattice_svg.rs", "observed", "a style class"),
    ("foresee-spec/src/pattern.rs", "pattern", "a keyword of specifications"),
    ("foresee-spec/src/syntax/format.rs", "pattern", "a keyword of specifications"),
    ("foresee-spec/src/syntax/items.rs", "pattern", "a keyword of specifications"),
    ("foresee-spec/src/syntax/parser.rs", "pattern", "a keyword of specifications"),
    ("foresee-testkit/src/corpus.rs", "atomicity", "a folder of the corpus"),
    ("foresee-testkit/src/corpus.rs", "lifetime", "a folder of the corpus"),
    ("foresee-testkit/src/corpus.rs", "monitorability", "a folder of the corpus"),
    ("foresee-trace/src/finding.rs", "correct", "a space of reorderings"),
    ("foresee-trace/src/finding.rs", "observed", "a kind of finding"),
    ("foresee-trace/src/finding.rs", "sliced", "a space of reorderings"),
    ("foresee-trace/src/source.rs", "observed", "an order of a file"),
];

/// The product's source files below a directory, without files of tests.
fn sources(directory: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
        if stem == "tests" || stem.ends_with("_tests") {
            continue;
        }
        if path.is_dir() {
            sources(&path, out);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            out.push(path);
        }
    }
}

/// The code of a file before its module of tests, without comments.
fn code(text: &str) -> impl Iterator<Item = &str> {
    let is_code = |line: &&str| !line.trim_start().starts_with("//");
    let tests = text.find("\n#[cfg(test)]\nmod tests {\n");
    text[..tests.unwrap_or(text.len())].lines().filter(is_code)
}

#[test]
fn only_the_list_of_analyses_spells_their_names() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = Vec::new();
    for entry in fs::read_dir(crates).unwrap() {
        sources(&entry.unwrap().path().join("src"), &mut files);
    }
    assert!(files.len() > 100, "these are not all sources: {files:?}");
    let names: Vec<&str> = ALL.iter().map(|info| info.name).chain([SPEC]).collect();
    let mut met = vec![false; OTHERS.len()];
    let mut spelled = Vec::new();
    let mut listed = 0;
    for file in files {
        let path = file.strip_prefix(crates).unwrap().to_string_lossy().replace('\\', "/");
        let text = fs::read_to_string(&file).unwrap();
        for line in code(&text) {
            for name in names.iter().filter(|name| line.contains(&format!("\"{name}\""))) {
                let other =
                    OTHERS.iter().position(|(file, word, _)| (*file, word) == (&path, name));
                match other {
                    _ if path == "foresee-predict/src/info.rs" => listed += 1,
                    Some(other) => met[other] = true,
                    None => spelled.push(format!("{path}: {}", line.trim())),
                }
            }
        }
    }
    assert!(spelled.is_empty(), "use the constants of foresee_predict::info:\n{spelled:#?}");
    assert_eq!(listed, names.len(), "each name is spelled once in info.rs");
    let stale: Vec<_> = OTHERS.iter().zip(met).filter(|(_, met)| !met).collect();
    assert!(stale.is_empty(), "these exceptions are no longer needed: {stale:?}");
}
