//! Whatever a command writes, it writes through links and into FIFOs, and replaces nothing but regular files.

#![cfg(unix)]

use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::harness::FORESEE;

const TRACE: &str = "T1|w(x)=1|a.c:1\nT2|w(x)=2|a.c:2\nT1|r(x)=2|a.c:3\n";
/// Commands that write to a file called `out`, and the status that they end with.
const COMMANDS: &[(&str, i32)] = &[
    ("trace convert t.std --to csv -o out", 0),
    ("trace convert t.std --to native -o out", 0),
    ("trace generate --events 100 -o out", 0),
    ("trace show t.std --svg out", 0),
    ("index t.std -o out", 0),
    ("check t.std --spec p.spec --lattice out", 1),
    ("check t.std --check nondeterminism --witness-svg out", 1),
    ("spec explain p.spec --automaton svg -o out", 0),
    ("spec explain p.spec -o out", 0),
    ("spec check p.spec --output out", 0),
    ("trace info t.std --output out", 0),
    ("trace validate t.std --output out", 0),
    ("trace show t.std --output out", 0),
    ("check t.std --spec p.spec --output out", 1),
    ("check t.std --spec p.spec --format json -o out", 1),
    ("check t.std --spec p.spec --html out", 1),
    ("check t.std --spec p.spec --format sarif -o out", 1),
    ("trace convert t.std --to perfetto -o out", 0),
    ("batch --no-cache t.std p.spec -o out", 1),
    ("batch --no-cache t.std p.spec --html out", 1),
    ("report r.json --html out", 0),
];

/// A report without findings.
const REPORT: &str = r#"{"foresee":"0.1.0","name":"t.std",
    "trace":{"events":3,"threads":2,"variables":1,"locks":0},"analyses":[],"summary":{"observed":0,"predicted":0}}"#;

fn folder() -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("t.std"), TRACE).unwrap();
    fs::write(folder.path().join("p.spec"), "init x = 0\nproperty p: x < 2\n").unwrap();
    fs::write(folder.path().join("r.json"), REPORT).unwrap();
    folder
}

fn run(folder: &Path, (words, status): (&str, i32)) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_foresee"));
    let output = command.args(words.split(' ')).current_dir(folder).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let text = text + &String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(status), "{words}\n{text}");
}

#[test]
fn a_link_stays_a_link_and_a_file_keeps_its_mode() {
    for &command in COMMANDS {
        let (linked, plain) = (folder(), folder());
        let (target, link) = (linked.path().join("target"), linked.path().join("out"));
        fs::write(&target, "old").unwrap();
        symlink("target", &link).unwrap();
        run(linked.path(), command);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink(), "{}", command.0);
        let path = plain.path().join("out");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        run(plain.path(), command);
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o640,
            "{}",
            command.0
        );
        let written = fs::read(&path).unwrap();
        assert_ne!(written, b"old", "{}", command.0);
        // An index remembers when its trace was changed, so two of them differ in a few bytes.
        assert_eq!(fs::read(&target).unwrap().len(), written.len(), "{}", command.0);
        assert_eq!(fs::read_dir(plain.path()).unwrap().count(), 4, "{}", command.0);
    }
}

#[test]
fn a_fifo_stays_a_fifo() {
    for &command in COMMANDS {
        let folder = folder();
        let fifo = folder.path().join("out");
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let reader = fifo.clone();
        let reading = std::thread::spawn(move || fs::read(reader).unwrap());
        run(folder.path(), command);
        assert!(!reading.join().unwrap().is_empty(), "{}", command.0);
        assert!(fs::symlink_metadata(&fifo).unwrap().file_type().is_fifo(), "{}", command.0);
    }
}

/// Runs a command in a folder: status, standard output and standard error.
fn outcome(folder: &Path, words: &str) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_foresee"));
    let output = command.args(words.split(' ')).current_dir(folder).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn the_file_gets_what_standard_output_would() {
    for words in [
        "check t.std --spec p.spec",
        "check t.std --check race,nondeterminism --format json",
        "trace info t.std --format json",
        "trace show t.std",
        "spec explain p.spec",
    ] {
        let folder = folder();
        let (status, printed, _) = outcome(folder.path(), words);
        assert!(!printed.is_empty(), "{words}");
        let (again, rest, _) = outcome(folder.path(), &format!("{words} --output out"));
        assert_eq!((again, rest.as_str()), (status, ""), "{words}");
        assert_eq!(fs::read_to_string(folder.path().join("out")).unwrap(), printed, "{words}");
        let (again, dash, _) = outcome(folder.path(), &format!("{words} --output -"));
        assert_eq!((again, dash), (status, printed), "{words}");
    }
}

#[test]
fn what_cannot_be_written_is_an_error_and_not_a_verdict() {
    let folder = folder();
    let (status, out, err) = outcome(folder.path(), "check t.std --spec p.spec -o no/where");
    assert_eq!((status, out.as_str()), (Some(2), ""), "{err}");
    assert!(err.contains("cannot write no/where: there is no folder no"), "{err}");
    // A failed command leaves the old report.
    fs::write(folder.path().join("out"), "old").unwrap();
    let (status, ..) = outcome(folder.path(), "check missing.std --spec p.spec -o out");
    assert_eq!(status, Some(2));
    assert_eq!(fs::read(folder.path().join("out")).unwrap(), b"old");
    // A full disk is noticed.
    let (status, _, err) = outcome(folder.path(), "check t.std --spec p.spec -o /dev/full");
    assert_eq!(status, Some(2), "{err}");
    assert!(err.contains("cannot write /dev/full: "), "{err}");
    // A reader that goes away takes the verdict with it, so the status must not be that of success.
    let fifo = folder.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let mut long = TRACE.to_owned();
    (0..20_000).for_each(|i| long += &format!("T1|w(y{i})|a.c:{i}\n"));
    fs::write(folder.path().join("long.std"), long).unwrap();
    let reading = std::thread::spawn(move || drop(fs::File::open(fifo).unwrap()));
    let words = "trace show long.std --rows 20000 -o fifo";
    let (status, _, err) = outcome(folder.path(), words);
    reading.join().unwrap();
    assert_eq!(status, Some(2), "{err}");
    let both = "trace show t.std --svg a.svg --output out";
    assert_eq!(outcome(folder.path(), both).0, Some(2), "one drawing, one file");
}

/// A baseline is read before it is written, but a pipe has nothing to read.
#[test]
fn a_baseline_can_be_written_to_a_fifo() {
    let folder = folder();
    let fifo = folder.path().join("out");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let reader = fifo.clone();
    let reading = std::thread::spawn(move || fs::read(reader).unwrap());
    run(folder.path(), ("baseline update r.json --baseline out", 0));
    assert!(String::from_utf8_lossy(&reading.join().unwrap()).contains("Findings that are known"));
    assert!(fs::symlink_metadata(&fifo).unwrap().file_type().is_fifo());
}

/// Whatever the path of an input leads to: no more of it is read than it takes to see that it is wrong.
#[test]
fn what_never_ends_is_refused() {
    let folder = folder();
    let inputs = [
        ("check INPUT", "a trace in a known format"),
        ("check INPUT --spec p.spec", "a trace in a known format"),
        ("check INPUT --input-format std", "line 1"),
        ("trace info INPUT", "a trace in a known format"),
        ("trace show INPUT", "a trace in a known format"),
        ("trace convert INPUT --to csv", "a trace in a known format"),
        ("send INPUT --to 127.0.0.1:1", "a trace in a known format"),
        ("lsp --trace INPUT", "a trace in a known format"),
        ("index INPUT -o out", "only a regular file can be indexed"),
        ("check t.std --spec INPUT", "not a specification"),
        ("spec check INPUT", "not a specification"),
        ("check t.std --check race --suppressions INPUT", "not a list of suppressions"),
        ("check t.std --check race --baseline INPUT", "not a baseline"),
        ("check t.std --check race --config INPUT", "not a file of settings"),
        ("batch --no-cache --manifest INPUT", "not a manifest"),
        ("report INPUT --html out", "INPUT"),
        ("replay INPUT -- true", "not a schedule"),
        ("trace convert t.std --to perfetto --witness INPUT -o out", "INPUT"),
    ];
    for (words, what) in inputs {
        for (input, of_shell) in [
            ("/dev/zero", "exec \"$@\""),
            ("/dev/urandom", "exec \"$@\""),
            ("/dev/stdin", "yes | \"$@\""),
            ("empty", "exec \"$@\""),
            (".", "exec \"$@\""),
        ] {
            fs::write(folder.path().join("empty"), "").unwrap();
            let words: Vec<String> =
                words.split(' ').map(|word| word.replace("INPUT", input)).collect();
            // No input that is refused takes this much memory.
            let script = format!("ulimit -v 1000000; {of_shell}");
            let output = Command::new("sh")
                .args(["-c", &script, "sh", FORESEE])
                .args(&words)
                .current_dir(folder.path())
                .output()
                .unwrap();
            let err = String::from_utf8_lossy(&output.stderr);
            let is_endless = !matches!(input, "empty" | ".");
            let said = what.replace("INPUT", input);
            let is_refused = output.status.code() == Some(2) && err.starts_with("error: ");
            // Something is missing in an empty file, or it says nothing.
            let is_fine = !is_endless && matches!(output.status.code(), Some(0..=3));
            assert!(is_fine || is_refused, "{words:?}: {:?}\n{err}", output.status);
            // Random bytes may begin like a trace that goes wrong later.
            let is_any = input == "/dev/urandom" && what.starts_with("a trace");
            assert!(!is_endless || is_any || err.contains(&said), "{words:?}: {err}");
        }
    }
}
