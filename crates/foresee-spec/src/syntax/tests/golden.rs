//! Common mistakes, in `testdata/specs/syntax`: each `.spec` with its diagnostics.
//!
//! `FORESEE_BLESS=1 cargo test` rewrites the expected diagnostics; review the difference.

use std::fs;
use std::path::{Path, PathBuf};

use super::super::parse;
use super::parsed;
use crate::diagnostic::render;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn mistakes_are_explained() {
    let mut cases = 0;
    for entry in fs::read_dir(root().join("testdata/specs/syntax")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "spec") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        let said = render(&parse(&text).diagnostics, name, &text, false);
        let expected = path.with_extension("expected");
        if std::env::var_os("FORESEE_BLESS").is_some() {
            fs::write(&expected, &said).unwrap();
        }
        assert_eq!(said, fs::read_to_string(&expected).unwrap(), "{name}");
        cases += 1;
    }
    assert!(cases > 20, "only {cases} cases");
}

#[test]
fn examples_of_the_documentation_are_right() {
    let text = fs::read_to_string(root().join("docs/spec-language.md")).unwrap();
    let mut blocks = 0;
    for block in text.split("```spec\n").skip(1) {
        parsed(block.split("```").next().unwrap());
        blocks += 1;
    }
    assert!(blocks > 5, "only {blocks} blocks");
}
