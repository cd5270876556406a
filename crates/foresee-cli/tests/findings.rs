//! Findings as data: JSON reports keep to the published schema, and a bug is known by its
//! fingerprint from run to run.

#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use crate::harness::{FORESEE, root, text};
use jsonschema::Validator;
use serde_json::Value as Json;

fn schema() -> Validator {
    let text = std::fs::read_to_string(root().join("docs/report.schema.json")).unwrap();
    jsonschema::validator_for(&serde_json::from_str(&text).unwrap()).unwrap()
}

/// A report, which must be as the schema says.
fn valid(schema: &Validator, report: &str, how: &str) -> Json {
    let report: Json = serde_json::from_str(report).unwrap_or_else(|e| panic!("{how}: {e}"));
    let errors: Vec<String> =
        schema.iter_errors(&report).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert!(errors.is_empty(), "{how}: {errors:#?}\n{report:#}");
    report
}

fn findings(report: &Json) -> Vec<&Json> {
    let analyses = report["analyses"].as_array().unwrap();
    analyses.iter().flat_map(|one| one["findings"].as_array().unwrap()).collect()
}

/// What every finding has that was made with the whole trace.
fn assert_complete(finding: &Json) {
    let fingerprint = finding["fingerprint"].as_str().unwrap_or_default();
    assert!(fingerprint.starts_with("F-") && fingerprint.len() == 14, "{finding:#}");
    let sites = finding["sites"].as_array().unwrap();
    assert!(!sites.is_empty(), "{finding:#}");
    for site in sites.iter().filter(|site| site.get("event").is_some()) {
        for field in ["op", "step", "thread", "frames", "locks"] {
            assert!(site.get(field).is_some(), "no {field}: {finding:#}");
        }
        assert!(site["thread"]["name"].is_string(), "{finding:#}");
    }
    if let Some(witness) = finding.get("witness") {
        let steps = witness["steps"].as_array().unwrap();
        let order = witness["order"].as_array().unwrap();
        let next = witness.get("next").and_then(Json::as_array);
        let known = |event: &Json| order.contains(event) || next.is_some_and(|n| n.contains(event));
        assert!(!steps.is_empty() && steps.iter().all(|s| known(&s["event"])), "{finding:#}");
    }
}

#[test]
fn reports_of_every_kind_are_as_the_schema_says() {
    let folder = tempfile::TempDir::new().unwrap();
    let commands = crate::formats::commands(folder.path());
    let schema = schema();
    let mut seen: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for words in &commands {
        let output = Command::new(FORESEE)
            .current_dir(root())
            .arg("check")
            .args(words.split_whitespace())
            .args(["--format", "json"])
            .output()
            .unwrap();
        let how = format!("{words}: {}", text(&output.stderr));
        let report = valid(&schema, &text(&output.stdout), &how);
        for finding in findings(&report) {
            assert_complete(finding);
            for field in ["kind", "property", "verdict"] {
                let word = finding[field].as_str().unwrap().to_owned();
                seen.entry(field).or_default().insert(word);
            }
        }
    }
    let has = |field: &str, words: &[&str]| {
        for word in words {
            assert!(seen[field].contains(*word), "no {word}: {seen:#?}");
        }
    };
    has("kind", &["observed", "predicted", "conditional", "schedule-dependent"]);
    let checks =
        ["race", "deadlock", "atomicity", "likely-atomicity", "lifetime", "nondeterminism"];
    has("property", &checks);
    has("verdict", &["violated", "concurrent-access", "lock-cycle", "endless-wait", "lost-update"]);
}

#[test]
fn what_is_no_report_is_refused_by_the_schema() {
    let output = Command::new(FORESEE)
        .current_dir(root())
        .args(["check", "examples/races/hidden.std", "--check", "race", "--format", "json"])
        .output()
        .unwrap();
    let schema = schema();
    let mut report = valid(&schema, &text(&output.stdout), "hidden.std");
    let finding = &mut report["analyses"][0]["findings"][0];
    finding["sites"][0]["role"] = "bystander".into();
    assert!(!schema.is_valid(&report));
    report["analyses"][0]["findings"][0]["sites"][0]["role"] = "access".into();
    assert!(schema.is_valid(&report));
    report["analyses"][0]["findings"][0]["fingerprint"] = "F-1".into();
    assert!(!schema.is_valid(&report));
    report["analyses"][0]["findings"][0].as_object_mut().unwrap().remove("fingerprint");
    assert!(schema.is_valid(&report));
    report["analyses"][0]["findings"][0].as_object_mut().unwrap().remove("message");
    assert!(!schema.is_valid(&report));
}

#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
mod captured {
    use super::*;
    use crate::harness::Bench;

    /// Two races in one function, one in another on memory from the heap, and a deadlock; `EXTRA`
    /// marks where lines are added.
    const PROGRAM: &str = r#"EXTRA
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
EXTRA
static pthread_mutex_t l = PTHREAD_MUTEX_INITIALIZER, m = PTHREAD_MUTEX_INITIALIZER;
static int first, second;
struct node { int key, value; };
static struct node *shared;
EXTRA
static void bump(void) {
    EXTRA
    first = first + 1;
    EXTRA
    second = second + 1;
}
static void store(int value) {
    EXTRA
    shared->value = value;
}
static void *one(void *unused) {
    bump();
    store(1);
    pthread_mutex_lock(&l);
    EXTRA
    pthread_mutex_lock(&m);
    pthread_mutex_unlock(&m);
    pthread_mutex_unlock(&l);
    return unused;
}
static void *two(void *unused) {
    usleep(50000);
    bump();
    EXTRA
    store(2);
    pthread_mutex_lock(&m);
    pthread_mutex_lock(&l);
    pthread_mutex_unlock(&l);
    pthread_mutex_unlock(&m);
    return unused;
}
int main(void) {
    pthread_t a, b;
    EXTRA
    shared = calloc(1, sizeof *shared);
    pthread_create(&a, NULL, one, NULL);
    pthread_create(&b, NULL, two, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    EXTRA
    return 0;
}
"#;

    /// The fingerprints of all races and deadlocks, with lines for people.
    fn fingerprints(bench: &Bench, seed: u32) -> BTreeMap<String, String> {
        let words = format!("--check race,deadlock --seed {seed} --format json -- ./program");
        let (_, out, err) = bench.run(&words);
        let report = valid(&schema(), &out, &err);
        let known = findings(&report).into_iter().filter(|f| f["kind"] != "conditional");
        let mut all = BTreeMap::new();
        for finding in known {
            assert_complete(finding);
            let message = finding["message"].as_str().unwrap().to_owned();
            let before = all.insert(finding["fingerprint"].as_str().unwrap().to_owned(), message);
            assert_eq!(before, None, "two bugs with one fingerprint: {finding:#}");
        }
        all
    }

    #[test]
    fn fingerprints_survive_new_lines_and_other_schedules() {
        let mut expected: Option<BTreeMap<String, String>> = None;
        for extra in ["", "\n", "/* one\n   two\n   three */\n\n"] {
            let bench = Bench::new();
            bench.write("program.c", &PROGRAM.replace("EXTRA", extra));
            bench.built("cc -g -o program program.c -lpthread");
            for seed in 0..4 {
                let found = fingerprints(&bench, seed);
                assert!(found.len() >= 4, "{found:#?}");
                let expected = expected.get_or_insert_with(|| found.clone());
                let keys = |all: &BTreeMap<String, String>| -> Vec<String> {
                    all.keys().cloned().collect()
                };
                assert_eq!(keys(&found), keys(expected), "seed {seed}: {found:#?} {expected:#?}");
            }
        }
    }

    #[test]
    fn a_failure_of_the_program_is_a_finding_with_its_place() {
        let bench = Bench::new();
        let source = |extra: &str| {
            format!(
                "{extra}#include <stdlib.h>\nstatic void fail(void) {{ exit(7); }}\n\
                     int main(void) {{ fail(); return 0; }}\n"
            )
        };
        let mut known = BTreeSet::new();
        for extra in ["", "\n\n"] {
            bench.write("program.c", &source(extra));
            bench.built("cc -g -O0 -o program program.c");
            let (status, out, err) = bench.run("--check race --format json -- ./program");
            assert_eq!(status, 1, "{out}{err}");
            let report = valid(&schema(), &out, &err);
            let found = findings(&report);
            let failure = found.iter().find(|f| f["property"] == "program-failure").unwrap();
            assert_complete(failure);
            assert_eq!(failure["verdict"], "failed");
            assert_eq!(failure["sites"][0]["frames"][0]["function"], "fail");
            known.insert(failure["fingerprint"].to_string());
        }
        assert_eq!(known.len(), 1, "{known:?}");
    }
}
