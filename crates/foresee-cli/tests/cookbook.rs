//! The cookbook of specifications: each recipe predicts the mistake of its program, and finds nothing in the program
//! without it.
//!
//! A block ```` ```spec NAME.spec ```` of the page is a specification, and `testdata/cookbook/NAME.c` or `NAME.java`
//! its program. What other blocks with a name show of a program must be in it.

#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

use std::fs;
use std::path::PathBuf;

use crate::harness::{Bench, root, said};

/// The blocks of the page that have a name, with their contents.
fn blocks() -> Vec<(String, String)> {
    let page = fs::read_to_string(root().join("docs/cookbook.md")).unwrap();
    let blocks = page.split("\n```").skip(1).step_by(2);
    let blocks = blocks.filter_map(|block| {
        let (info, content) = block.split_once('\n').unwrap();
        let (_, name) = info.split_once(' ')?;
        Some((name.to_owned(), content.to_owned() + "\n"))
    });
    blocks.collect()
}

fn folder() -> PathBuf {
    root().join("testdata/cookbook")
}

/// The recipes whose programs end in `ending`, by name, with their specifications.
fn recipes(ending: &str) -> Vec<(String, String)> {
    let recipes = blocks().into_iter().filter_map(|(name, content)| {
        let name = name.strip_suffix(".spec")?.to_owned();
        folder().join(format!("{name}.{ending}")).exists().then_some((name, content))
    });
    recipes.collect()
}

#[test]
fn every_recipe_has_a_program_and_shows_what_is_in_it() {
    let blocks = blocks();
    let programs = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let mut programs: Vec<String> = programs
        .filter(|path| path.extension().is_some_and(|ending| ending != "md"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    let mut recipes: Vec<String> = blocks
        .iter()
        .filter_map(|(name, _)| name.strip_suffix(".spec"))
        .map(str::to_owned)
        .collect();
    programs.sort();
    recipes.sort();
    assert_eq!(programs, recipes);
    for (name, shown) in blocks.iter().filter(|(name, _)| !name.ends_with(".spec")) {
        let program = fs::read_to_string(folder().join(name)).unwrap();
        assert!(program.contains(shown.as_str()), "{name} does not have\n{shown}");
    }
}

#[test]
fn recipes_for_c_predict_and_are_silent() {
    let recipes = recipes("c");
    assert!(recipes.len() >= 6, "{recipes:?}");
    for (name, spec) in recipes {
        let bench = Bench::new();
        bench.write("rule.spec", &spec);
        let source = folder().join(format!("{name}.c"));
        for (flag, expected) in [("-DWRONG", 1), ("-DRIGHT", 0)] {
            bench.built(&format!("cc {flag} -o program {}", source.display()));
            let (status, out, err) = bench.run("--spec rule.spec -- ./program");
            assert_eq!(status, expected, "{name} {flag}\n{out}{err}");
            assert_eq!(out.contains("\nPREDICTED "), expected == 1, "{name} {flag}\n{out}{err}");
        }
    }
}

#[test]
fn recipes_for_java_predict_and_are_silent() {
    crate::jvm::classes();
    let recipes = recipes("java");
    assert!(recipes.len() >= 5, "{recipes:?}");
    for (name, spec) in recipes {
        let bench = Bench::new();
        bench.write("rule.spec", &spec);
        let mut compiler = std::process::Command::new("javac");
        compiler.args(["-g", "-d"]).arg(bench.path("classes"));
        let compiled = compiler.arg(folder().join(format!("{name}.java"))).output().unwrap();
        assert!(compiled.status.success(), "{:?}", said(&compiled));
        for (flag, expected) in [("-Dright=false", 1), ("-Dright=true", 0)] {
            let mut command = bench.foresee();
            command.args(["run", "--spec", "rule.spec", "--", "java", flag, "-cp", "classes"]);
            command.arg(&name).env("FORESEE_JVM_AGENT", crate::jvm::agent());
            let (status, out, err) = said(&command.output().unwrap());
            assert_eq!(status, expected, "{name} {flag}\n{out}{err}");
            assert_eq!(out.contains("\nPREDICTED "), expected == 1, "{name} {flag}\n{out}{err}");
        }
    }
}
