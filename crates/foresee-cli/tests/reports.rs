//! Text reports that people can read, suppressions and baselines, settings, and exports.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use serde_json::Value as Json;
use unicode_width::UnicodeWidthStr as _;

use crate::harness::{Bench, every_kind, root, said, text};

/// Two threads that write `count` variables without a lock, each in functions of its own.
fn racy(count: usize) -> String {
    let mut trace = String::from("main|fork(T1)|m.c:1(main)\nmain|fork(T2)|m.c:2(main)\n");
    for thread in ["T1", "T2"] {
        for i in 0..count {
            trace += &format!("{thread}|w(v{i})={i}|{thread}.c:{}({thread}_{i})\n", i + 1);
        }
    }
    trace
}

/// A folder with a cache of its own, so that no other test replaces the last report.
struct Desk(Bench);

impl Desk {
    fn new() -> Desk {
        Desk(Bench::new())
    }

    fn command(&self) -> Command {
        let mut command = self.0.foresee();
        command.env("FORESEE_CACHE", self.0.path("cache")).env_remove("FORESEE_OPTIONS");
        command
    }

    fn foresee(&self, words: &str) -> (i32, String, String) {
        said(&self.command().args(words.split_whitespace()).output().unwrap())
    }
}

#[test]
fn a_thousand_findings_are_a_page_not_a_book() {
    let desk = Desk::new();
    desk.0.write("t.std", &racy(1_000));
    let (status, out, err) = desk.foresee("check t.std --check race --time-limit 0");
    assert!(status == 1 && out.contains("1000 predicted"), "{out}{err}");
    assert!(out.lines().count() < 400, "{} lines", out.lines().count());
    assert_eq!(out.matches("\n  possible: ").count(), 10, "ten in full\n{out}");
    assert!(out.contains("990 more in brief:"), "{out}");
    // Every one of them can still be explained.
    let last = desk.foresee("explain").1.lines().last().unwrap().to_owned();
    let print = last.split(' ').next().unwrap();
    let (status, out, err) = desk.foresee(&format!("explain {print}"));
    assert!(status == 0 && out.contains(print) && out.contains("possible: "), "{out}{err}");
}

#[test]
fn one_cause_is_told_once() {
    let desk = Desk::new();
    let mut trace = String::new();
    for thread in ["T1", "T2"] {
        for line in 1..=3 {
            trace += &format!("{thread}|w(total)={line}|a.c:{line}(add)\n");
        }
    }
    desk.0.write("t.std", &trace);
    let (_, out, err) = desk.foresee("check t.std --check race");
    assert_eq!(out.matches("PREDICTED race on total").count(), 1, "{out}{err}");
    assert!(out.contains("the same cause, "), "{out}");
    let (status, out, _) = desk.foresee("check t.std --check race -q");
    assert!(status == 1 && out.lines().all(|line| !line.starts_with(' ')), "{out}");
}

#[test]
fn tables_fit_the_terminal_and_name_only_what_they_show() {
    let desk = Desk::new();
    let folder = desk.0.dir.path();
    for words in every_kind(folder) {
        for width in [60, 80, 120] {
            let mut command = desk.command();
            command.current_dir(root()).env("COLUMNS", width.to_string()).arg("check");
            let (_, out, err) = said(&command.args(words.split_whitespace()).output().unwrap());
            let mut shown: Vec<&str> = Vec::new();
            let mut overtaken: Vec<&str> = Vec::new();
            for line in out.lines() {
                let is_row = line.starts_with("  ")
                    && line.trim_start().starts_with(|c: char| c.is_ascii_digit() || c == '…');
                if line.starts_with("  event ") {
                    (shown, overtaken) = (Vec::new(), Vec::new());
                } else if is_row {
                    assert!(line.width() <= width, "{words} at {width}: {line}\n{err}");
                    shown.push(line.split_whitespace().next().unwrap());
                    overtaken.extend(line.split("« ").nth(1).and_then(|n| n.split(' ').next()));
                } else if line.starts_with("  « N") {
                    let is_there = |event: &&str| shown.contains(event);
                    assert!(overtaken.iter().all(is_there), "{words}\n{out}");
                }
            }
        }
    }
}

#[test]
fn schedules_show_what_the_verdict_needs() {
    let desk = Desk::new();
    let mut trace = String::from("main|fork(T1)|m.c:1\nmain|fork(T2)|m.c:2\n");
    for i in 0..40 {
        trace += &format!("T1|acq(l)|a.c:1\nT1|w(x)={i}|a.c:2\nT1|rel(l)|a.c:3\n");
    }
    trace += "T1|event(a)|a.c:9\n";
    for i in 0..40 {
        trace += &format!("T2|acq(l)|b.c:1\nT2|w(x)={i}|b.c:2\nT2|rel(l)|b.c:3\n");
    }
    trace += "T2|event(b)|b.c:9\n";
    desk.0.write("t.std", &trace);
    let mut check = desk.command();
    check.args(["check", "t.std", "--pattern", "event(b) .. event(a)"]);
    let (status, out, err) = said(&check.output().unwrap());
    let rows = |out: &str| {
        let starts =
            |line: &&str| line.trim_start().starts_with(|c: char| c.is_ascii_digit() || c == '…');
        out.lines().filter(|line| line.starts_with("  ")).filter(starts).count()
    };
    assert!(status == 1 && rows(&out) < 20, "{out}{err}");
    let (_, wide, _) = said(&check.arg("--wide").output().unwrap());
    assert!(rows(&wide) > 100, "{wide}");
}

#[test]
fn what_terminals_obey_is_in_no_report() {
    let desk = Desk::new();
    let long = "n".repeat(10_000);
    let evil = "\"a\\u{1b}[2J\\nFORGED: \\\"'<script>&\"";
    let trace = format!("{evil}|w({long})=1|{evil}\n{long}|w({long})=2|b.c:2({long})\n");
    desk.0.write("t.std", &trace);
    for format in ["text", "json", "sarif", "junit", "github"] {
        for more in ["", " --wide", " -q", " -v"] {
            let words =
                format!("check t.std --check race --html page.html --format {format}{more}");
            let (status, out, err) = desk.foresee(&words);
            assert_eq!(status, 1, "{words}: {err}");
            let page = std::fs::read_to_string(desk.0.path("page.html")).unwrap();
            for text in [&out, &page] {
                let is_obeyed = |c: char| c.is_control() && c != '\n' && c != '\t';
                assert!(!text.contains(is_obeyed), "{words}");
            }
            assert!(!out.lines().any(|line| line.starts_with("FORGED")), "{words}: {out}");
            if format == "text" && more.is_empty() {
                assert!(out.lines().all(|line| line.width() < 400), "{out}");
            }
        }
    }
    let (status, out, _) = desk.foresee("explain");
    assert!(status == 0 && !out.contains('\u{1b}'), "{out}");
}

#[test]
fn known_findings_do_not_fail() {
    let desk = Desk::new();
    desk.0.write("t.std", &racy(3));
    let (status, out, err) = desk.foresee("explain");
    assert!(status == 2 && err.contains("no report was made in this folder yet"), "{out}{err}");
    let (status, out, _) = desk.foresee("check t.std --check race");
    assert_eq!(status, 1, "{out}");
    let file = std::fs::read_dir(desk.0.path("cache/reports")).unwrap().next().unwrap().unwrap();
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let (status, out, err) = desk.foresee("baseline update");
    assert!(
        status == 0 && out.contains("foresee.baseline: 3 added, 0 removed, 3 known"),
        "{out}{err}"
    );
    let (status, out, err) = desk.foresee("check t.std --check race --baseline foresee.baseline");
    assert!(status == 0 && out.contains("0 predicted, 3 known; complete"), "{out}{err}");
    assert!(out.contains("baseline: 3 of 3 known findings were found again"), "{out}");
    // One more is new, and the only one that is told.
    desk.0.write("t.std", &racy(4));
    let (status, out, err) =
        desk.foresee("check t.std --check race --baseline foresee.baseline --format sarif");
    let log: Json = serde_json::from_str(&out).unwrap();
    let results = log["runs"][0]["results"].as_array().unwrap();
    let states: Vec<&str> = results.iter().map(|r| r["baselineState"].as_str().unwrap()).collect();
    assert!(status == 1 && states == ["new", "unchanged", "unchanged", "unchanged"], "{out}{err}");
    let (_, out, err) = desk.foresee("baseline update");
    assert!(out.contains("1 added, 0 removed, 4 known"), "{out}{err}");
    // What is not found any more is removed only if that is asked for.
    desk.0.write("t.std", &racy(1));
    desk.foresee("check t.std --check race --baseline foresee.baseline");
    assert!(desk.foresee("baseline update").1.contains("0 added, 0 removed, 4 known"));
    assert!(desk.foresee("baseline update --prune").1.contains("0 added, 3 removed, 1 known"));
    let (_, json, _) = desk.foresee("check t.std --check race --format json");
    desk.0.write("r.json", &json);
    let (status, out, err) = desk.foresee("baseline update r.json --baseline other");
    assert!(status == 0 && out.contains("other: 1 added"), "{out}{err}");
    let (status, _, err) = desk.foresee("baseline update t.std");
    assert!(status == 2 && err.contains("is not a report"), "{err}");
}

#[test]
fn suppressions_have_reasons_and_an_end() {
    let desk = Desk::new();
    desk.0.write("t.std", &racy(3));
    let (_, out, _) = desk.foresee("check t.std --check race -q");
    let line = out.lines().find(|line| line.contains(" on v0 ")).unwrap();
    let print = line.split_whitespace().find(|word| word.starts_with("F-")).unwrap();
    let print = print.trim_end_matches(':');
    desk.0.write(
        "s.supp",
        &format!(
            "{print} # benign\n# a reason above\nrace:^v1$\nrace:v2 until 2020-01-01\nrace:gone\n"
        ),
    );
    let (status, out, err) = desk.foresee("check t.std --check race --suppressions s.supp");
    assert!(status == 1 && out.contains("1 predicted, 2 suppressed"), "{out}{err}");
    for said in [
        "(s.supp:1): 1 finding; benign",
        "race:^v1$ (s.supp:3): 1 finding; a reason above",
        "race:v2 (s.supp:4): expired after 2020-01-01, so it suppresses nothing",
        "race:gone (s.supp:5): unused",
    ] {
        assert!(out.contains(said), "{said}\n{out}");
    }
    let (_, out, _) = desk.foresee("check t.std --check race --suppressions s.supp --format sarif");
    let log: Json = serde_json::from_str(&out).unwrap();
    let results = log["runs"][0]["results"].as_array().unwrap();
    let mut reasons: Vec<&str> = results
        .iter()
        .map(|result| result["suppressions"][0]["justification"].as_str().unwrap_or("none"))
        .collect();
    reasons.sort_unstable();
    assert_eq!(reasons, ["a reason above", "benign", "none"], "{out}");
    desk.0.write("bad.supp", "race:a\nrase:b\n");
    let (status, _, err) = desk.foresee("check t.std --check race --suppressions bad.supp");
    assert!(status == 2 && err.contains("bad.supp:2: `rase:b` should be"), "{err}");
}

#[test]
fn settings_are_found_and_what_is_typed_counts_most() {
    let desk = Desk::new();
    desk.0.write("t.std", &racy(2));
    std::fs::create_dir(desk.0.path("sub")).unwrap();
    desk.0.write(
        "foresee.toml",
        "check = [\"race\"]\nformat = \"json\"\nsuppressions = \"s.supp\"\n\
         [profile.ci]\nformat = \"junit\"\n",
    );
    desk.0.write("s.supp", "race:^v1$\n");
    let run = |words: &str, options: Option<&str>| {
        let mut command = desk.command();
        command.current_dir(desk.0.path("sub"));
        options.map(|options| command.env("FORESEE_OPTIONS", options));
        said(&command.args(words.split_whitespace()).output().unwrap())
    };
    let (status, out, err) = run("check ../t.std", None);
    assert!(status == 1 && out.starts_with('{') && out.contains("\"suppressed\":1"), "{out}{err}");
    assert!(run("check ../t.std --profile ci", None).1.starts_with("<?xml"));
    assert!(run("check ../t.std", Some("profile=ci")).1.starts_with("<?xml"));
    assert!(run("check ../t.std", Some("format=github")).1.starts_with("::error"));
    let (_, out, _) = run("check ../t.std --format text", Some("format=github:verbose"));
    assert!(out.contains("PREDICTED race") && out.contains("candidates 2"), "{out}");
    for (options, says) in [
        ("formt=json", "there is no setting `formt`: did you mean `format`?"),
        ("wide=maybe", "`wide` is on or off"),
        ("profile=cii", "there is no profile `cii`: did you mean `ci`?"),
        ("format='json", "does not end"),
    ] {
        let (status, _, err) = run("check ../t.std", Some(options));
        assert!(status == 2 && err.contains(says), "{options}: {err}");
    }
    desk.0.write("foresee.toml", "[profile.ci]\ntime-limt = 3\n");
    let (status, _, err) = run("check ../t.std", None);
    assert!(status == 2 && err.contains("did you mean `time-limit`?"), "{err}");
    assert!(err.contains("foresee.toml, profile ci"), "{err}");
    assert_eq!(run("check ../t.std --config /dev/null", None).0, 1);
}

#[test]
fn the_doctor_looks_at_everything() {
    let desk = Desk::new();
    let (status, out, err) = desk.foresee("doctor");
    assert!([0, 3].contains(&status), "{out}{err}");
    for what in ["runtime", "C compiler", "JDK", "Java agent", "cache", "limit", "settings"] {
        assert!(out.lines().any(|line| line.contains(&format!(" {what}: "))), "{what}\n{out}");
    }
    desk.0.write("foresee.toml", "nonsense = 1\n");
    let mut command = desk.command();
    let (status, out, _) =
        said(&command.arg("doctor").env("FORESEE_CC", "/absent").output().unwrap());
    assert!(status == 1 && out.contains("BROKEN   settings: "), "{out}");
    assert!(
        out.contains("BROKEN   C compiler: FORESEE_CC is `/absent`, which does not run"),
        "{out}"
    );
}

#[test]
fn traces_and_schedules_go_to_other_viewers() {
    let desk = Desk::new();
    let trace = root().join("examples/landing/landing.std");
    let spec = root().join("examples/landing/landing.spec");
    let (trace, spec) = (trace.display(), spec.display());
    let (_, json, _) = desk.foresee(&format!("check {trace} --spec {spec} --format json"));
    desk.0.write("r.json", &json);
    let convert = |words: &str| desk.foresee(&format!("trace convert {trace} {words}"));
    let (status, out, err) = convert("--to perfetto");
    let log: Json = serde_json::from_str(&out).unwrap();
    assert!(status == 0 && log["traceEvents"].as_array().unwrap().len() > 10, "{out}{err}");
    let (status, out, _) = convert("--to shiviz --witness r.json --finding 1");
    assert!(status == 0 && out.lines().last() == Some("w(landing)=1 landing.c:22"), "{out}");
    let (status, out, _) = convert("--to std --witness r.json");
    let report: Json = serde_json::from_str(&json).unwrap();
    let findings = report["analyses"].as_array().unwrap().iter();
    let mut findings = findings.flat_map(|one| one["findings"].as_array().unwrap());
    let order = findings.next().unwrap()["witness"]["order"].as_array().unwrap().len();
    assert!(status == 0 && out.lines().count() == order, "{out}");
    let (status, _, err) = convert("--to perfeto");
    assert!(status == 2 && err.contains("perfetto and shiviz are for other viewers"), "{err}");
    let (status, _, err) = convert("--to std --witness r.json --finding F-0");
    assert!(status == 2 && err.contains("the report has no finding F-0"), "{err}");
    let other = root().join("examples/races/hidden.std");
    let words = format!("trace convert {} --to std --witness r.json", other.display());
    let (status, _, err) = desk.foresee(&words);
    assert!(status == 2 && err.contains("about another trace"), "{err}");
}

/// Names come from programs and files: whatever the format, none of their characters is obeyed by a terminal or a browser.
#[test]
fn no_output_has_characters_that_are_obeyed() {
    let bench = Bench::new();
    let (thread, variable) =
        ("\u{1b}[31mT\u{202e}\u{85}\u{7f}\u{2066}", "x\u{1b}]0;a\u{7}\u{200f}\u{9b}");
    let (lock, place) = ("l\u{61c}\u{feff}", "a\u{1b}[2J\u{202d}.c:3(f)");
    let steps = [
        format!(
            "T1|fork({thread})|{place}\nT1|w({variable})=1|{place}\n{thread}|w({variable})=2|{place}\n"
        ),
        format!("T1|acq({lock})|{place}\nT1|acq(m)|{place}\nT1|rel(m)|\nT1|rel({lock})|\n"),
        format!(
            "{thread}|acq(m)|{place}\n{thread}|acq({lock})|{place}\n{thread}|rel({lock})|\n{thread}|rel(m)|\n"
        ),
    ];
    bench.write("t.std", &steps.concat());
    let found = "check t.std --check race,deadlock -o out --format";
    let convert = "trace convert t.std -o out --to";
    let mut commands = vec![
        "check t.std --check race,deadlock --html out".to_owned(),
        "check t.std --check nondeterminism --witness-svg out".to_owned(),
        "trace show t.std -o out".to_owned(),
        "trace show t.std --svg out".to_owned(),
        "trace info t.std -o out".to_owned(),
        "trace info t.std --format json -o out".to_owned(),
        "batch --no-cache t.std --check race --format json -o out".to_owned(),
    ];
    commands
        .extend(["text", "json", "sarif", "junit", "github"].map(|form| format!("{found} {form}")));
    commands.extend(
        ["std", "rr", "csv", "jsonl", "perfetto", "shiviz"].map(|form| format!("{convert} {form}")),
    );
    for words in commands {
        let output = bench.foresee().args(words.split(' ')).output().unwrap();
        assert!(matches!(output.status.code(), Some(0 | 1)), "{words}: {}", text(&output.stderr));
        let written = std::fs::read_to_string(bench.path("out")).unwrap();
        let is_obeyed =
            |c: &char| foresee_trace::is_hidden(*c) && !matches!(*c, '\n' | '\r' | '\t');
        let all = written.chars().chain(text(&output.stdout).chars().collect::<Vec<_>>());
        let obeyed: Vec<char> = all.filter(is_obeyed).collect();
        assert!(obeyed.is_empty(), "{words}: {obeyed:?}");
    }
}
