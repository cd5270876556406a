//! Whatever a command writes, it writes through links and into FIFOs, and replaces nothing but regular files.

#![cfg(unix)]

use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

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
];

fn folder() -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("t.std"), TRACE).unwrap();
    fs::write(folder.path().join("p.spec"), "init x = 0\nproperty p: x < 2\n").unwrap();
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
        assert_eq!(fs::read_dir(plain.path()).unwrap().count(), 3, "{}", command.0);
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
