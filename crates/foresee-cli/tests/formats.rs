//! Reports in the formats of other tools, and as a page that a real browser shows.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value as Json;
use tempfile::TempDir;

use crate::harness::{Bench, FORESEE, every_kind, root, text};

/// A trace whose names are made to break out of whatever they are printed into.
const HOSTILE: &str = "\"</script><script>alert(1)</script>\"|w(\"x<b>&\\\"'\")=1|\"<i>.c:1(f::%)\"\n\
    \"\\u{1b}[2J::error::\"|w(\"x<b>&\\\"'\")=2|b,c.c:2\n";

fn check(words: &str, format: &[&str]) -> Output {
    let mut command = Command::new(FORESEE);
    command.current_dir(root()).arg("check").args(words.split_whitespace()).args(format);
    command.output().unwrap()
}

/// The arguments of [`every_kind`], and those for traces with hostile names and of other languages.
pub(crate) fn commands(folder: &Path) -> Vec<String> {
    let hostile = folder.join("hostile.std");
    std::fs::write(&hostile, HOSTILE).unwrap();
    let mut all = every_kind(folder);
    all.push(format!("{} --check race", hostile.display()));
    // Names that fill a page, and a source that is not UTF-8.
    let source = folder.join("latin1.c");
    std::fs::write(&source, b"int caf\xe9;\n\xff\xfe\n").unwrap();
    let (long, source) = ("n".repeat(10_000), source.display());
    let trace = format!("{long}|w({long})=1|{source}:1({long})\nT2|w({long})=2|{source}:2(f)\n");
    let file = folder.join("long.std");
    std::fs::write(&file, trace).unwrap();
    all.push(format!("{} --check race", file.display()));
    #[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
    all.extend(of_other_languages(folder));
    all
}

/// Traces of a Java and of a Rust program with a race.
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
fn of_other_languages(folder: &Path) -> [String; 2] {
    let kept = ["java.fse", "rust.fse"].map(|name| folder.join(name).display().to_string());
    let (status, out, err) = crate::jvm::run(&["--keep", &kept[0]], &["RacyCounter"]);
    assert_eq!(status, 1, "{out}{err}");
    let mut rust = Command::new(FORESEE);
    rust.args(["run", "--keep", &kept[1], "--", FORESEE, "self-test", "--planted"]);
    let rust = rust.output().unwrap();
    assert_eq!(rust.status.code(), Some(1), "{}", text(&rust.stderr));
    kept.map(|trace| format!("{trace} --check race"))
}

/// The schema that the standard publishes; cargo knows where the crate is that holds it.
fn sarif_schema() -> jsonschema::Validator {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--format-version", "1", "--locked"]).current_dir(root());
    let output = cargo.output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let metadata: Json = serde_json::from_slice(&output.stdout).unwrap();
    let mut packages = metadata["packages"].as_array().unwrap().iter();
    let package = packages.find(|package| package["name"] == "serde-sarif").unwrap();
    let manifest = PathBuf::from(package["manifest_path"].as_str().unwrap());
    let schema = std::fs::read(manifest.with_file_name("src").join("schema.json")).unwrap();
    let mut schema: Json = serde_json::from_slice(&schema).unwrap();
    // This pattern is not a valid regular expression.
    for place in ["run", "toolComponent"] {
        let language = schema.pointer_mut(&format!("/definitions/{place}/properties/language"));
        language.unwrap().as_object_mut().unwrap().remove("pattern").unwrap();
    }
    jsonschema::validator_for(&schema).unwrap()
}

#[test]
fn sarif_is_as_the_standard_says() {
    let folder = TempDir::new().unwrap();
    let schema = sarif_schema();
    let mut flows = 0;
    for words in commands(folder.path()) {
        let output = check(&words, &["--format", "sarif"]);
        let how = format!("{words}: {}", text(&output.stderr));
        let log: Json =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{how} {e}"));
        let errors: Vec<String> = schema.iter_errors(&log).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{how}{errors:#?}\n{log:#}");
        let run = &log["runs"][0];
        let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
        let results = run["results"].as_array().unwrap();
        assert!(!results.is_empty(), "{how}{log:#}");
        let json: Json =
            serde_json::from_slice(&check(&words, &["--format", "json"]).stdout).unwrap();
        let is_complete = json["complete"].as_bool().unwrap();
        let is_mistaken = output.status.code() == Some(2);
        let successful = run["invocations"][0]["executionSuccessful"].as_bool().unwrap();
        assert_eq!(successful, is_complete && !is_mistaken, "{how}{log:#}");
        for result in results {
            let rule = &rules[result["ruleIndex"].as_u64().unwrap() as usize];
            assert_eq!(rule["id"], result["ruleId"], "{how}");
            let uri = &result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
            assert!(uri.is_string(), "{how}{result:#}");
            for flow in result["codeFlows"].as_array().into_iter().flatten() {
                let threads = flow["threadFlows"].as_array().unwrap();
                let steps = threads[0]["locations"].as_array().unwrap();
                assert!(threads.len() == 1 && !steps.is_empty(), "{how}{result:#}");
                for step in steps {
                    let said = step["location"]["message"]["text"].as_str().unwrap();
                    assert!(said.starts_with('['), "{said}");
                }
                flows += 1;
            }
        }
    }
    assert!(flows > 10, "{flows}");
}

#[test]
fn junit_never_passes_what_is_open() {
    let folder = TempDir::new().unwrap();
    let cut = folder.path().join("cut.std");
    std::fs::write(&cut, "T1|w(x)=1|a.c:1\nT1|w(x)=2|a.c:2\n").unwrap();
    let mut all = commands(folder.path());
    all.push(format!(
        "{} --spec examples/landing/landing.spec --max-states 1",
        "examples/landing/landing.std"
    ));
    all.push(format!("{} --check race", cut.display()));
    for words in all {
        let output = check(&words, &["--format", "junit"]);
        let xml = text(&output.stdout);
        let document =
            roxmltree::Document::parse(&xml).unwrap_or_else(|e| panic!("{words}: {e}\n{xml}"));
        let cases: Vec<_> = document.descendants().filter(|n| n.has_tag_name("testcase")).collect();
        let with = |tag: &str| {
            let has =
                |case: &&roxmltree::Node<'_, '_>| case.children().any(|n| n.has_tag_name(tag));
            cases.iter().filter(has).count()
        };
        let (failed, open) = (with("failure"), with("skipped") + with("error"));
        match output.status.code() {
            Some(0) => assert_eq!((failed, open), (0, 0), "{words}\n{xml}"),
            Some(1) => assert!(failed > 0, "{words}\n{xml}"),
            _ => assert!(failed == 0 && open > 0, "{words}\n{xml}"),
        }
        let suite = document.descendants().find(|n| n.has_tag_name("testsuite")).unwrap();
        let count = |name: &str| suite.attribute(name).unwrap().parse::<usize>().unwrap();
        assert_eq!(
            (count("tests"), count("failures"), count("skipped") + count("errors")),
            (cases.len(), failed, open),
            "{words}\n{xml}"
        );
    }
}

#[test]
fn annotations_are_a_line_each_and_stay_inside_their_command() {
    let folder = TempDir::new().unwrap();
    for words in commands(folder.path()) {
        let output = check(&words, &["--format", "github"]);
        let said = text(&output.stdout);
        assert!(!said.is_empty(), "{words}");
        for line in said.lines() {
            let is_command =
                line.starts_with("::error title=") || line.starts_with("::warning title=");
            assert!(is_command && line.matches("::").count() >= 2, "{words}: {line}");
            let (properties, _) = line[2..].split_once("::").unwrap();
            assert!(!properties.contains(':') && !line.chars().any(char::is_control), "{line}");
        }
    }
}

#[test]
fn a_machine_format_is_not_mixed_with_what_the_program_prints() {
    let bench = Bench::new();
    bench.write("loud.c", "#include <stdio.h>\nint main(void) { puts(\"hello\"); return 0; }\n");
    bench.built("cc -g loud.c -o loud");
    for format in ["json", "sarif"] {
        let (_, out, err) = bench.run(&format!("--format {format} -- ./loud"));
        serde_json::from_str::<Json>(&out).unwrap_or_else(|e| panic!("{e}: {out}"));
        assert!(err.contains("hello"), "{err}");
    }
    let (_, out, _) = bench.run("-- ./loud");
    assert!(out.contains("hello"), "{out}");
    let (_, out, _) = bench.run("--format json --output report.json -- ./loud");
    assert_eq!(out, "hello\n");
}

/// Runs in the page after it has been built, and leaves what it saw in the document.
const DRIVER: &str = include_str!("harness/drive_page.js");

/// Opens a page in a browser, drives it, and returns what it saw by name.
fn drive(page: &Path) -> Json {
    let text = std::fs::read_to_string(page).unwrap();
    // Whatever goes wrong is noted before the page's own script runs.
    let early = "<script>const errors = []; addEventListener('error', (e) => errors.push(e.message)); \
         console.error = (...all) => errors.push(all.join(' '));</script></head>";
    let text = text.replacen("</head>", early, 1).replacen(
        "</body>",
        &format!("<script>{DRIVER}</script></body>"),
        1,
    );
    let driven = page.with_extension("driven.html");
    std::fs::write(&driven, text).unwrap();
    let profile = TempDir::new().unwrap();
    let mut browser = Command::new("chromium");
    browser.args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
    ]);
    browser.args([
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
    ]);
    browser.args(["--window-size=1300,900", "--virtual-time-budget=10000", "--dump-dom"]);
    browser.arg(format!("--user-data-dir={}", profile.path().display()));
    browser.arg(format!("file://{}", driven.display()));
    let output = browser.output().unwrap_or_else(|error| {
        panic!("`chromium` is missing ({error}): Debian: apt-get install chromium")
    });
    let dom = self::text(&output.stdout);
    let result =
        dom.split_once("<pre id=\"result\">").and_then(|(_, rest)| rest.split_once("</pre>"));
    let Some((result, _)) = result else { panic!("{dom}\n{}", self::text(&output.stderr)) };
    let result = result.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    let seen: Vec<(String, Json)> = serde_json::from_str(&result).unwrap();
    Json::Object(seen.into_iter().collect())
}

#[test]
fn a_browser_plays_and_filters_the_page() {
    let folder = TempDir::new().unwrap();
    let html = folder.path().join("page.html");
    let hostile = folder.path().join("hostile.std");
    // Two variables, so that there are two findings to choose from.
    let more = HOSTILE.replace("x<b>", "y<b>").replace(".c:1(", ".c:3(").replace(".c:2", ".c:4");
    std::fs::write(&hostile, format!("{HOSTILE}{more}")).unwrap();
    let words = format!("{} --check race", hostile.display());
    let output = check(&words, &["--html", html.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let seen = drive(&html);
    assert_eq!(seen["errors"], serde_json::json!([]), "{seen:#}");
    assert!(seen.get("error").is_none(), "{seen:#}");
    assert_eq!(seen["findings"], 2, "{seen:#}");
    assert_eq!(seen["injected"], 0, "{seen:#}");
    assert_eq!(seen["filtered"], 0, "{seen:#}");
    assert_eq!(seen["all again"], 2, "{seen:#}");
    assert_eq!(seen["next"], "2", "{seen:#}");
    let said = |name: &str| seen[name].as_str().unwrap().to_owned();
    assert!(said("first").starts_with("step 1 of"), "{seen:#}");
    assert!(said("second").starts_with("step 2 of"), "{seen:#}");
    assert_ne!(said("last"), said("first"), "{seen:#}");

    // The same page comes from the JSON report.
    let json = folder.path().join("report.json");
    let output = check(&words, &["--format", "json", "--output", json.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let again = folder.path().join("again.html");
    let mut command = Command::new(FORESEE);
    command.current_dir(root()).arg("report").arg(&json).arg("--html").arg(&again);
    assert_eq!(command.output().unwrap().status.code(), Some(0));
    assert_eq!(std::fs::read(&html).unwrap(), std::fs::read(&again).unwrap());
}

#[test]
fn a_page_shows_all_lines_of_source() {
    let folder = TempDir::new().unwrap();
    let (html, trace) = (folder.path().join("page.html"), folder.path().join("t.std"));
    let source = folder.path().join("count.c");
    std::fs::write(&source, "int n;\nvoid f(void) {\n  n = 1;\n  g();\n}\nvoid h(void) {}\n")
        .unwrap();
    let place = source.display();
    std::fs::write(&trace, format!("T1|w(n)=1|{place}:3\nT2|w(n)=2|{place}:3\n")).unwrap();
    let words = format!("{} --check race", trace.display());
    let output = check(&words, &["--html", html.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let seen = drive(&html);
    assert_eq!((&seen["sources"], &seen["hidden sources"]), (&1.into(), &0.into()), "{seen:#}");
}

#[test]
fn a_page_tells_what_was_seen_from_what_would_be() {
    let folder = TempDir::new().unwrap();
    let html = folder.path().join("page.html");
    let words = "crates/foresee-cli/tests/cmd/reports.in/conditional.std --check deadlock";
    let output = check(words, &["--html", html.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    let seen = drive(&html);
    assert_eq!(seen["errors"], serde_json::json!([]), "{seen:#}");
    // The value that a thread would have to read is no part of the deadlock.
    assert_eq!(seen["heading"], "conditional deadlock F-ff53f79ac73e", "{seen:#}");
    // It is unknown in the schedule; what the run read is not.
    assert_eq!(seen["unknown values"], serde_json::json!([1, 0]), "{seen:#}");
}

/// A page of 5,000 steps opened in less than a second on two cores that others used, too: it is small, and draws only the steps in view.
#[test]
fn a_page_of_a_long_schedule_is_small() {
    let bench = Bench::new();
    let mut trace = "T1|fork(T2)|a.c:1\nT1|w(done)=1|a.c:2\n".to_owned();
    for i in 0..5000 {
        trace += &format!("T2|w(y{})={i}|b.c:{}\n", i % 50, i % 200 + 2);
    }
    bench.write("long.std", &(trace + "T2|w(used)=1|b.c:900\n"));
    let property = "init done = 0, used = 0\nproperty order: start(used == 1) -> done == 1\n";
    bench.write("long.spec", property);
    let words = ["check", "long.std", "--spec", "long.spec", "--html", "long.html"];
    let output = bench.foresee().args(words).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let html = bench.path("long.html");
    assert!(std::fs::metadata(&html).unwrap().len() < 2_000_000);
    let seen = drive(&html);
    assert_eq!(seen["errors"], serde_json::json!([]), "{seen:#}");
    assert!(seen["last"].as_str().unwrap().contains(" of 500"), "{seen:#}");
    assert!((1..300).contains(&seen["drawn"].as_u64().unwrap()), "{seen:#}");
}

#[test]
fn a_page_has_small_lattices() {
    let folder = TempDir::new().unwrap();
    let html = folder.path().join("page.html");
    let words = "examples/landing/landing.std --spec examples/landing/landing.spec";
    let output = check(words, &["--html", html.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "", "pictures that were not asked for need no note");
    let page = std::fs::read_to_string(&html).unwrap();
    assert!(page.contains(r#""lattices":[{"image":"data:image/svg+xml,%3Csvg"#), "{page}");
}

#[test]
fn what_is_not_a_report_is_refused() {
    let bench = Bench::new();
    for (name, content) in [("a.json", "{\"foresee\": 1}"), ("b.json", "nonsense"), ("c.json", "")]
    {
        bench.write(name, content);
        let output = bench.foresee().args(["report", name, "--html", "out.html"]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{name}");
        assert!(text(&output.stderr).contains("not a report"), "{}", text(&output.stderr));
        assert!(!bench.path("out.html").exists());
    }
    let output =
        bench.foresee().args(["report", "none.json", "--html", "out.html"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("none.json"), "{}", text(&output.stderr));
}
