//! The tutorials, followed to the letter: its files are written, its changes made, its commands run in a fresh folder.
//!
//! A block ```` ```c NAME ```` (or `java`, `rust`, `text`) is a file, ```` ```diff NAME ```` a change of one, and
//! ```` ```console ```` commands with what they print. A line `...` stands for any lines, `[..]` for any text within one:
//! threads and events are numbered as the system schedules them.

#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

use foresee::Recorder;

use crate::harness::{FORESEE, root, said};

/// The fenced blocks of a page: what follows the fence, and the lines.
fn blocks(text: &str) -> Vec<(Vec<&str>, Vec<&str>)> {
    let mut blocks: Vec<(Vec<&str>, Vec<&str>)> = Vec::new();
    let mut is_inside = false;
    for line in text.lines() {
        if let Some(info) = line.strip_prefix("```") {
            is_inside = !is_inside;
            if is_inside {
                blocks.push((info.split_whitespace().collect(), Vec::new()));
            }
        } else if is_inside {
            blocks.last_mut().unwrap().1.push(line);
        }
    }
    assert!(!is_inside, "a block is not closed");
    blocks
}

/// Replaces the lines with ` ` and `-` by those with ` ` and `+`.
fn patched(file: &str, lines: &[&str]) -> String {
    let side = |sign: char| -> String {
        let kept = lines.iter().filter(|line| line.starts_with([' ', sign]));
        kept.map(|line| format!("{}\n", &line[1..])).collect()
    };
    let (old, new) = (side('-'), side('+'));
    assert_eq!(file.matches(&old).count(), 1, "the change fits one place:\n{old}");
    file.replace(&old, &new)
}

/// Whether a line is the one that is wanted, in which `[..]` may be any text.
fn fits(line: &str, want: &str) -> bool {
    let parts: Vec<&str> = want.split("[..]").collect();
    let [first, middle @ .., last] = &parts[..] else { return line == want };
    let inner = line.strip_prefix(first).and_then(|rest| rest.strip_suffix(last));
    let Some(mut rest) = inner else { return false };
    middle.iter().all(|part| match rest.split_once(part) {
        Some((_, after)) => {
            rest = after;
            true
        }
        None => false,
    })
}

/// Whether the expected lines are all there, in their order; `...` may be any lines.
fn assert_matches(command: &str, expected: &[&str], printed: &str) {
    let mut printed_lines = printed.lines();
    let mut may_skip = false;
    for &want in expected {
        if want == "..." {
            may_skip = true;
            continue;
        }
        let found = if may_skip {
            printed_lines.any(|line| fits(line, want))
        } else {
            printed_lines.next().is_some_and(|line| fits(line, want))
        };
        assert!(found, "{command}\nshould print\n{want}\nbut prints\n{printed}");
        may_skip = false;
    }
    assert!(may_skip || printed_lines.next().is_none(), "{command}\nprints more:\n{printed}");
}

/// Follows a page in a folder; returns how many commands it has.
fn follow(page: &str, folder: &Path) -> usize {
    let text = fs::read_to_string(root().join("docs").join(page)).unwrap();
    let foresee = Path::new(FORESEE).parent().unwrap();
    let others = env::var_os("PATH").unwrap();
    let path = env::join_paths([foresee.to_owned()].into_iter().chain(env::split_paths(&others)));
    let path = path.unwrap();
    let mut commands = 0;
    for (info, lines) in blocks(&text) {
        match info[..] {
            ["c" | "text" | "java" | "rust", name] => {
                let file = folder.join(name);
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(file, lines.join("\n") + "\n").unwrap();
            }
            ["diff", name] => {
                let file = folder.join(name);
                let changed = patched(&fs::read_to_string(&file).unwrap(), &lines);
                fs::write(file, changed).unwrap();
            }
            ["console"] => {
                for part in lines.join("\n").split("$ ").skip(1) {
                    let mut lines: Vec<&str> = part.trim_end().lines().collect();
                    let command = lines.remove(0);
                    let status = lines.first().and_then(|line| line.strip_prefix("? "));
                    let status: i32 = status.map_or(0, |status| status.parse().unwrap());
                    lines.retain(|line| !line.starts_with("? "));
                    let mut shell = Command::new("sh");
                    shell.args(["-c", &format!("{command} 2>&1")]);
                    shell.current_dir(folder).env("PATH", &path);
                    shell.env("FORESEE_JVM_AGENT", crate::jvm::agent());
                    let output = shell.output().unwrap();
                    let printed = String::from_utf8(output.stdout).unwrap();
                    assert_eq!(output.status.code(), Some(status), "{command}\n{printed}");
                    assert_matches(command, &lines, &printed);
                    commands += 1;
                }
            }
            ["sh"] => {}
            _ => panic!("what is a block of {info:?}?"),
        }
    }
    commands
}

#[test]
fn the_tutorial_can_be_followed() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(follow("tutorial.md", folder.path()), 14, "a command was overlooked");
}

#[test]
fn the_tutorial_for_java_can_be_followed() {
    crate::jvm::classes();
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(follow("tutorial-java.md", folder.path()), 7, "a command was overlooked");
}

/// The program of the tutorial for Rust.
#[path = "../../foresee/examples/shop.rs"]
mod shop;

/// Where the user's program would be is a script that runs [`shop_in_rust`] in a process of its own.
#[test]
fn the_tutorial_for_rust_can_be_followed() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("target/debug/shop");
    fs::create_dir_all(program.parent().unwrap()).unwrap();
    let own = env::current_exe().unwrap();
    let script = format!(
        "#!/bin/sh\n{} --ignored --exact --nocapture tutorial::shop_in_rust | grep ' left$'\n",
        own.display()
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(follow("tutorial-rust.md", folder.path()), 2, "a command was overlooked");
    let page = fs::read_to_string(folder.path().join("src/main.rs")).unwrap();
    let example = fs::read_to_string(root().join("crates/foresee/examples/shop.rs")).unwrap();
    let example = example.replace("pub(crate) fn main", "fn main");
    assert!(example.ends_with(&page), "the page has another program than the example");
}

#[test]
#[ignore = "a program that other tests run"]
fn shop_in_rust() {
    shop::main();
}

/// A test program that records twice, and fails to in other ways: every recording counts, and none is missed in silence.
#[test]
fn every_recording_of_a_process_counts() {
    let folder = tempfile::tempdir().unwrap();
    let run = |program: &str| {
        let mut command = Command::new(FORESEE);
        command.args(["run", "--keep", "kept.fse", "--"]).arg(env::current_exe().unwrap());
        command.args(["--ignored", "--exact", "--nocapture"]).arg(format!("tutorial::{program}"));
        let output = command.current_dir(folder.path()).output().unwrap();
        said(&output)
    };
    let (status, out, _) = run("two_recordings");
    assert_eq!(status, 1, "{out}");
    assert!(out.contains("(2 recordings)"), "{out}");
    assert_eq!(out.matches("PREDICTED race").count(), 2, "{out}");
    for kept in ["kept.fse", "kept.2.fse"] {
        assert!(folder.path().join(kept).exists(), "{kept} is missing");
    }
    let (status, _, note) = run("a_recording_that_is_never_dropped");
    assert_eq!(status, 3, "{note}");
    let early = "is lost: the process ended before all clones of the recorder were dropped";
    assert!(note.contains(early), "{note}");
    let (status, _, note) = run("a_recording_of_an_unknown_thread");
    assert_eq!(status, 3, "{note}");
    assert!(note.contains("was not started through the recorder"), "{note}");
}

fn race_on(name: &str) {
    let recorder = Recorder::new();
    let variable = recorder.var(name, 0);
    let shared = variable.clone();
    let other = recorder.spawn("other", move || shared.set(1));
    variable.set(2);
    other.join();
}

#[test]
#[ignore = "a program that other tests run"]
fn two_recordings() {
    race_on("here");
    race_on("there");
}

#[test]
#[ignore = "a program that other tests run"]
fn a_recording_that_is_never_dropped() {
    std::mem::forget(Recorder::new());
}

#[test]
#[ignore = "a program that other tests run"]
fn a_recording_of_an_unknown_thread() {
    let variable = Recorder::new().var("here", 0);
    std::thread::spawn(move || variable.set(1)).join().unwrap();
}
