//! The tutorial, followed to the letter: its files are written, its changes made, its commands run in a fresh folder.
//!
//! A block ```` ```c NAME ```` or ```` ```text NAME ```` is a file, ```` ```diff NAME ```` a change of one, and
//! ```` ```console ```` commands with what they print. A line `...` stands for any lines, `[..]` for any text within one:
//! threads and events are numbered as the system schedules them.

#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

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

#[test]
fn the_tutorial_can_be_followed() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tutorial.md");
    let text = fs::read_to_string(page).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let foresee = Path::new(env!("CARGO_BIN_EXE_foresee")).parent().unwrap();
    let others = env::var_os("PATH").unwrap();
    let path = env::join_paths([foresee.to_owned()].into_iter().chain(env::split_paths(&others)));
    let path = path.unwrap();
    let mut commands = 0;
    for (info, lines) in blocks(&text) {
        match info[..] {
            ["c" | "text", name] => {
                fs::write(folder.path().join(name), lines.join("\n") + "\n").unwrap();
            }
            ["diff", name] => {
                let file = folder.path().join(name);
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
                    let shell = shell.current_dir(folder.path()).env("PATH", &path);
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
    assert_eq!(commands, 14, "a command was overlooked");
}
