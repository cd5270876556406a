//! The pictures in `docs/analyses/lattice.md` are what the command draws of the examples.
//!
//! `FORESEE_OVERWRITE=1 cargo test -p foresee-cli --test main pictures` writes what is drawn now.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

#[test]
fn the_pictures_of_the_documentation_are_those_of_the_command() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = tempfile::tempdir().unwrap();
    for example in ["xyz/xyz", "landing/landing", "water-level/water"] {
        let input = root.join("examples").join(example);
        let name = Path::new(example).file_name().unwrap();
        let drawn = folder.path().join(name).with_extension("svg");
        let status = Command::new(env!("CARGO_BIN_EXE_foresee"))
            .arg("check")
            .arg(input.with_extension("std"))
            .arg("--spec")
            .arg(input.with_extension("spec"))
            .arg("--lattice")
            .arg(&drawn)
            .output()
            .unwrap()
            .status;
        assert_eq!(status.code(), Some(1), "{example}: each of them has a violating run");
        let drawn = fs::read_to_string(&drawn).unwrap();
        let kept = root.join("docs/analyses/lattice").join(name).with_extension("svg");
        if env::var_os("FORESEE_OVERWRITE").is_some() {
            fs::write(&kept, &drawn).unwrap();
        }
        let is_same = fs::read_to_string(&kept).is_ok_and(|kept| kept == drawn);
        assert!(is_same, "{} is out of date", kept.display());
    }
    // Nothing half-written, nothing else.
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
}

/// A violation that needs critical sections to swap is no way through the lattice; the picture still tells its steps.
#[test]
fn a_violation_beyond_the_lattice_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let drawn = folder.path().join("close.svg");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let draw = |more: &[&str]| {
        let mut check = Command::new(env!("CARGO_BIN_EXE_foresee"));
        check.current_dir(&root).args(["check", "examples/locked-log/close.std"]);
        check
            .args(["--spec", "examples/locked-log/close.spec", "--lattice"])
            .arg(&drawn)
            .args(more);
        let status = check.output().unwrap().status.code();
        (status, std::fs::read_to_string(&drawn).unwrap())
    };
    let (status, picture) = draw(&[]);
    assert_eq!(status, Some(1));
    assert!(picture.contains("violated in an order that is not in this lattice"), "{picture}");
    let (status, picture) = draw(&["--reorder", "maz"]);
    assert_eq!(status, Some(0));
    assert!(!picture.contains("not in this lattice"), "{picture}");
}
