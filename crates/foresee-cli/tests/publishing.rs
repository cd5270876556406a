//! The crates can be put on a registry: each has what it must have, and depends on nothing that is not there before it.

use std::fs;

use crate::harness::root;

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

#[test]
fn every_crate_has_what_a_registry_asks_for() {
    let workspace: toml::Table = read("Cargo.toml").parse().unwrap();
    let version = workspace["workspace"]["package"]["version"].as_str().unwrap();
    for (name, entry) in workspace["workspace"]["dependencies"].as_table().unwrap() {
        // What tests use comes after what they test, so it has no version to be looked up.
        let expected = (name != "foresee-testkit").then_some(version);
        if name.starts_with("foresee") {
            assert_eq!(entry.get("version").and_then(|it| it.as_str()), expected, "{name}");
        }
    }
    let mut crates = 0;
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let manifest: toml::Table = read(&format!("crates/{name}/Cargo.toml")).parse().unwrap();
        let package = manifest["package"].as_table().unwrap();
        for field in ["description", "license", "repository", "keywords", "categories"] {
            assert!(package.contains_key(field), "{name} has no {field}");
        }
        let has_testkit = |table: &str| {
            let table = manifest.get(table).and_then(toml::Value::as_table);
            table.is_some_and(|all| all.contains_key("foresee-testkit"))
        };
        assert!(!has_testkit("dependencies") && !has_testkit("build-dependencies"), "{name}");
        for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
            assert_eq!(read(&format!("crates/{name}/{licence}")), read(licence), "{name}");
        }
        crates += 1;
    }
    assert!(crates > 15, "{crates}");
}
