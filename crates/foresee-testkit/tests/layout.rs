//! Test files that belong to no executable would never run, without any sign of it.

use std::fs;
use std::path::Path;

#[test]
fn every_test_file_belongs_to_an_executable() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let (mut merged, mut files) = (0, 0);
    for folder in fs::read_dir(crates).unwrap().map(|entry| entry.unwrap().path()) {
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        if !manifest.contains("autotests = false") {
            continue;
        }
        merged += 1;
        let main = fs::read_to_string(folder.join("tests/main.rs")).unwrap();
        for file in fs::read_dir(folder.join("tests")).unwrap() {
            let file = file.unwrap().path();
            let name = file.file_stem().unwrap().to_str().unwrap();
            if file.extension().is_none_or(|extension| extension != "rs") {
                continue;
            }
            files += 1;
            let is_module = main.lines().any(|line| line == format!("mod {name};"));
            let is_own = manifest.contains(&format!("path = \"tests/{name}.rs\""));
            assert!(is_module || is_own, "{} is not in tests/main.rs", file.display());
        }
    }
    assert!(merged >= 6 && files >= 40, "{merged} crates, {files} files");
}
