//! What a command promises whatever it is asked: it reads pipes, and says the same each time.

#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

use fastrand::Rng;

/// Runs a command with this on its standard input: its status, and what it prints.
fn foresee(words: &[&str], input: &str) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_foresee"));
    command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&text).into_owned())
}

/// What is found is drawn from a second reading, which a pipe does not allow.
#[test]
fn what_comes_through_a_pipe_is_read_as_often_as_need_be() {
    let race = "T1|w(x)=1|\nT2|w(x)=2|\n";
    let deadlock = "T1|acq(l)|\nT1|acq(m)|\nT1|rel(m)|\nT1|rel(l)|\n\
                    T2|acq(m)|\nT2|acq(l)|\nT2|rel(l)|\nT2|rel(m)|\n";
    for (check, trace) in [("race", race), ("nondeterminism", race), ("deadlock", deadlock)] {
        for path in ["-", "/dev/stdin"] {
            let (status, text) = foresee(&["check", path, "--check", check], trace);
            assert_eq!(status, Some(1), "{check} of {path}:\n{text}");
            assert!(text.contains("1 predicted"), "{check} of {path}:\n{text}");
        }
    }
}

/// A trace that is different for every seed, with regions, locks and events, and with places or
/// without.
fn trace(seed: u64) -> String {
    let mut rng = Rng::with_seed(seed);
    let threads = rng.usize(2..=4);
    let mut open: Vec<Vec<&str>> = vec![Vec::new(); threads];
    let mut free = vec!["l", "m"];
    let mut text = String::new();
    for _ in 0..rng.usize(20..70) {
        let t = rng.usize(..threads);
        let place = if seed.is_multiple_of(2) { rng.u8(1..9).to_string() } else { String::new() };
        let op = match rng.u8(..10) {
            0 if !free.is_empty() => {
                let lock = free.swap_remove(rng.usize(..free.len()));
                open[t].push(lock);
                format!("acq({lock})")
            }
            1 => {
                open[t].push("");
                "begin(R)".to_owned()
            }
            2 | 3 => match open[t].pop() {
                Some("") => "end(R)".to_owned(),
                Some(lock) => {
                    free.push(lock);
                    format!("rel({lock})")
                }
                None => "event(e3,0)".to_owned(),
            },
            4 => format!("event(e{},{})", rng.u8(..3), rng.u8(..3)),
            _ => format!("{}({})", ["r", "w"][rng.usize(..2)], ["x", "y", "z"][rng.usize(..3)]),
        };
        writeln!(text, "T{t}|{op}|{place}").unwrap();
    }
    text
}

#[test]
fn the_same_trace_has_the_same_report_each_time() {
    let folder = tempfile::tempdir().unwrap();
    let spec = folder.path().join("a.spec");
    std::fs::write(
        &spec,
        "pattern p(a, b): event(e0, a) .. event(e1, b)\n\
         automaton q(a, b) { initial i; i: event(e1, a) -> j; j: event(e2, b) -> bad; }\n\
         property r(a, b): event(e2, a) -> once event(e0, b)\n",
    )
    .unwrap();
    let every = "race,deadlock,atomicity,likely-atomicity,order,nondeterminism,causality";
    let mut found = 0;
    for seed in 0..30 {
        let trace = trace(seed);
        for words in [
            &["check", "-", "--check", every][..],
            &["check", "-", "--check", "spec,monitorability", "--spec", spec.to_str().unwrap()],
        ] {
            let first = foresee(words, &trace);
            found += usize::from(first.0 == Some(1));
            assert!(matches!(first.0, Some(0 | 1 | 3)), "seed {seed}:\n{}\n{trace}", first.1);
            for _ in 0..2 {
                assert_eq!(foresee(words, &trace), first, "seed {seed}:\n{trace}");
            }
        }
    }
    assert!(found > 30, "only {found}");
}

/// A program whose steps interleave with some that no property asks about.
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
#[test]
fn a_program_with_unrelated_steps_has_its_violation_predicted() {
    let folder = tempfile::tempdir().unwrap();
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/programs");
    let foresee = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_foresee"));
        let cache = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("foresee-cache");
        command.current_dir(&folder).args(words).env("FORESEE_CACHE", cache);
        let output = command.env_remove("FORESEE_CC").output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&text).into_owned())
    };
    let source = root.join("witness_end.c");
    let built = foresee(&["cc", "-g", "-o", "program", source.to_str().unwrap()]);
    assert_eq!(built.0, Some(0), "{}", built.1);
    let spec = root.join("witness_end.spec");
    for _ in 0..3 {
        let words = ["run", "--spec", spec.to_str().unwrap(), "--", "./program"];
        let (status, text) = foresee(&words);
        assert_eq!(status, Some(1), "{text}");
        assert!(text.contains("PREDICTED p"), "{text}");
    }
}

/// An index of a part of the trace answers for that part only.
#[test]
fn an_index_of_a_trace_that_was_cut_short_is_not_complete() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (whole, cut) = (path("whole.fse"), path("cut.fse"));
    let text: String = (0..50).map(|i| format!("T{}|w(x)={i}|\n", i % 3)).collect();
    let (status, _) = foresee(&["trace", "convert", "-", "--to", "native", "-o", &whole], &text);
    assert_eq!(status, Some(0));
    let bytes = std::fs::read(&whole).unwrap();
    // Without the mark at its end.
    std::fs::write(&cut, &bytes[..bytes.len() - 4]).unwrap();
    for (trace, expected) in [(&whole, 0), (&cut, 3)] {
        let (status, text) = foresee(&["index", trace], "");
        assert_eq!(status, Some(expected), "{text}");
        assert_eq!(text.contains("note: the trace was cut short"), expected == 3, "{text}");
        let (status, text) =
            foresee(&["check", trace, "--pattern", "write(x)@T1 .. write(x)@T0"], "");
        assert_eq!(status, Some(1), "what is found is found\n{text}");
        let (status, text) =
            foresee(&["check", trace, "--pattern", "write(x)@T0 .. write(x)@T3"], "");
        assert_eq!(status, Some(3), "{text}");
    }
}
