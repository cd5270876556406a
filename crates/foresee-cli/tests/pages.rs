//! The pages of the project: links lead somewhere, and lists name what there is.

#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// All Markdown files of the project, without what is built.
fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if !name.starts_with('.') && name != "target" {
                pages(&path, found);
            }
        } else if name.ends_with(".md") {
            found.push(path);
        }
    }
}

/// The lines of a page outside fenced blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut is_inside = false;
    text.lines().filter(move |line| {
        if line.trim_start().starts_with("```") {
            is_inside = !is_inside;
            return false;
        }
        !is_inside
    })
}

/// The line without what stands in backquotes.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("`")
}

/// The targets of `[text](target)` and `![text](target)`.
fn links(line: &str) -> Vec<String> {
    let parts = without_code(line);
    let mut links = Vec::new();
    for part in parts.split("](").skip(1) {
        links.push(part.split(')').next().unwrap().to_owned());
    }
    links
}

/// The anchors of a page's headings, as the usual viewers make them.
fn anchors(text: &str) -> HashSet<String> {
    let headings = prose(text).filter(|line| line.starts_with('#'));
    headings
        .map(|line| {
            let heading = line.trim_start_matches('#').trim().to_lowercase();
            let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
            kept.map(|c| if c == ' ' { '-' } else { c }).collect()
        })
        .collect()
}

#[test]
fn links_lead_somewhere() {
    let root = root();
    let mut found = Vec::new();
    pages(&root, &mut found);
    let (mut checked, mut wrong) = (0, Vec::new());
    for page in &found {
        let text = fs::read_to_string(page).unwrap();
        for link in prose(&text).flat_map(links) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            checked += 1;
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target =
                if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
            let is_there = target.exists()
                && (anchor.is_empty()
                    || fs::read_to_string(&target).is_ok_and(|t| anchors(&t).contains(anchor)));
            if !is_there {
                wrong.push(format!("{}: {link}", page.strip_prefix(&root).unwrap().display()));
            }
        }
    }
    assert!(wrong.is_empty(), "links that lead nowhere:\n{}", wrong.join("\n"));
    assert!(found.len() > 30 && checked > 150, "{} pages, {checked} links", found.len());
}

/// Pages that sources, scripts and other pages name by their path from the top.
#[test]
fn pages_that_are_named_exist() {
    fn files(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                if !name.starts_with('.') && name != "target" {
                    files(&path, found);
                }
            } else {
                found.push(path);
            }
        }
    }
    let root = root();
    let mut found = Vec::new();
    for folder in ["crates", "benches", "docs", "examples", "field", "fuzz", "scripts", "specs"] {
        files(&root.join(folder), &mut found);
    }
    found.extend(["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|name| root.join(name)));
    let (mut checked, mut wrong) = (0, Vec::new());
    for file in &found {
        let Ok(text) = fs::read_to_string(file) else { continue };
        for start in ["docs/", "benches/results/"] {
            for (at, _) in text.match_indices(start) {
                // The test of links covers `../docs/x.md`.
                if text[..at].ends_with('/') {
                    continue;
                }
                let is_part = |c: char| c.is_ascii_alphanumeric() || "/-_.".contains(c);
                let name: String = text[at..].chars().take_while(|&c| is_part(c)).collect();
                let name = name.trim_end_matches('.');
                if !name.ends_with(".md") && !name.ends_with(".svg") {
                    continue;
                }
                checked += 1;
                if !root.join(name).exists() {
                    wrong.push(format!("{}: {name}", file.strip_prefix(&root).unwrap().display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "pages that do not exist:\n{}", wrong.join("\n"));
    assert!(checked > 30, "{checked} names");
}

#[test]
fn every_page_is_in_the_index_and_in_the_book() {
    let docs = root().join("docs");
    let lists = [docs.join("README.md"), docs.join("SUMMARY.md")];
    let mut found = Vec::new();
    pages(&docs, &mut found);
    for list in &lists {
        let text = fs::read_to_string(list).unwrap();
        let listed: HashSet<PathBuf> = prose(&text)
            .flat_map(links)
            .filter_map(|link| docs.join(link).canonicalize().ok())
            .collect();
        let missing: Vec<_> =
            found.iter().filter(|page| !lists.contains(page) && !listed.contains(*page)).collect();
        assert!(missing.is_empty(), "not in {}: {missing:?}", list.display());
    }
}

#[test]
fn every_example_is_listed_and_can_be_run() {
    let examples = root().join("examples");
    let list = fs::read_to_string(examples.join("README.md")).unwrap();
    let mut folders = 0;
    let entries = |folder: &Path| -> Vec<PathBuf> {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
    };
    // Those of other languages have a folder of their own.
    let all = entries(&examples).into_iter().chain(entries(&examples.join("jvm")));
    for folder in all {
        if !folder.is_dir() || folder.ends_with("jvm") {
            continue;
        }
        folders += 1;
        let name = folder.strip_prefix(&examples).unwrap().to_str().unwrap();
        let row = format!("| [{name}]({name}/) |");
        assert_eq!(list.matches(&row).count(), 1, "{name} in examples/README.md");
        let files: Vec<PathBuf> =
            fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path()).collect();
        let has = |ending: &str| files.iter().any(|f| f.extension().is_some_and(|e| e == ending));
        if ["c", "cc", "java", "kt", "scala"].into_iter().any(has) {
            continue;
        }
        assert!(has("std"), "{name} has neither a program nor a trace");
        let has_checks = files.iter().any(|file| file.file_name().unwrap() == "checks");
        for trace in files.iter().filter(|file| file.extension().is_some_and(|e| e == "std")) {
            let is_asked = trace.with_extension("spec").exists() || has_checks;
            assert!(is_asked, "{}: nothing says what to look for", trace.display());
        }
    }
    assert_eq!(list.matches("/) |").count(), folders, "a row without a folder");
}
