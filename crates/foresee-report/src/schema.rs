//! The schema of JSON reports, made from the types that write them.
//!
//! `docs/report.schema.json` is what this module makes. `FORESEE_BLESS=1` writes it anew.

use std::path::Path;

use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator, json_schema};

use foresee_trace::{Confirmed, FindingKind, Outcome, Role, Space, Verdict};

use crate::json::Root;

fn one_of(about: &str, words: impl Iterator<Item = &'static str>) -> Schema {
    let mut words: Vec<&str> = words.collect();
    words.dedup();
    json_schema!({ "description": about, "type": "string", "enum": words })
}

pub(crate) fn kinds(_: &mut SchemaGenerator) -> Schema {
    let about = "Whether the violation was seen or is foreseen.";
    one_of(about, FindingKind::ALL.iter().map(|one| one.word()))
}

pub(crate) fn reorderings(_: &mut SchemaGenerator) -> Schema {
    let about = "The smallest space of reorderings that is known to have the witness.";
    one_of(about, Space::ALL.iter().map(|one| one.word()))
}

pub(crate) fn outcomes(_: &mut SchemaGenerator) -> Schema {
    let about = "How much of what could be searched was searched; `exhausted` is everything.";
    one_of(about, Outcome::ALL.iter().map(|one| one.word()))
}

pub(crate) fn verdicts(_: &mut SchemaGenerator) -> Schema {
    one_of("What goes wrong.", Verdict::ALL.iter().map(|one| one.word()))
}

pub(crate) fn confirmations(_: &mut SchemaGenerator) -> Schema {
    let about = "Whether it was seen to happen in the program, by replay.";
    one_of(about, Confirmed::ALL.iter().map(|one| one.word()))
}

pub(crate) fn roles(_: &mut SchemaGenerator) -> Schema {
    let about = "What the event has to do with the finding.";
    one_of(about, Role::ALL.iter().map(|one| one.word()))
}

#[test]
fn the_published_schema_is_that_of_the_types() {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let schema = settings.into_generator().into_root_schema_for::<Root<'_>>();
    let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/report.schema.json");
    if std::env::var_os("FORESEE_BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let published = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        published == text,
        "docs/report.schema.json is not what the types say; write it anew with \
         FORESEE_BLESS=1 cargo test -p foresee-report schema"
    );
}

/// `docs/formats/report.md` has a section for each type, and in it a row for each field; and it
/// explains every word that a field can have.
#[test]
fn the_page_describes_every_field() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let schema = std::fs::read_to_string(docs.join("report.schema.json")).unwrap();
    let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    let page = std::fs::read_to_string(docs.join("formats/report.md")).unwrap();
    let mut missing = Vec::new();
    let types = schema["$defs"].as_object().unwrap().iter().map(|(name, of)| (name.as_str(), of));
    for (name, of) in types.chain([("Report", &schema)]) {
        let section = page.split("\n## ").find(|section| section.lines().next() == Some(name));
        let cells = section.unwrap_or_default().lines().filter_map(|line| line.split('|').nth(1));
        let cells: Vec<&str> = cells.collect();
        for (field, about) in of["properties"].as_object().unwrap() {
            if !cells.iter().any(|cell| cell.contains(&format!("`{field}`"))) {
                missing.push(format!("{name}.{field}"));
            }
            let words = about["enum"].as_array().into_iter().flatten();
            let words = words.filter_map(|word| word.as_str());
            let unsaid = words.filter(|word| !page.contains(&format!("`{word}`")));
            missing.extend(unsaid.map(|word| format!("{name}.{field} = {word}")));
        }
    }
    assert!(missing.is_empty(), "docs/formats/report.md lacks {missing:?}");
}
