//! `foresee doctor`: what this machine has of what foresee can use, and what to do about the rest.

use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::{env, fs};

use foresee_capture::compiler::{Kit, own_cache};
use foresee_capture::jvm::Agent;
use foresee_trace::Visible;

use crate::commands::self_test::is_there;
use crate::{output, settings};

/// How something is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    Fine,
    /// Something can be used without it.
    Missing,
    /// What is there does not work.
    Broken,
}

/// One thing that was looked at.
struct Item {
    state: State,
    what: &'static str,
    text: String,
}

impl Item {
    fn new(state: State, what: &'static str, text: impl Into<String>) -> Item {
        Item { state, what, text: text.into() }
    }
}

pub(crate) fn run() -> anyhow::Result<u8> {
    let mut items = vec![runtime()];
    items.push(compiler("C compiler", "FORESEE_CC", "cc", "install gcc or clang"));
    items.push(compiler("C++ compiler", "FORESEE_CXX", "c++", "install g++ or clang"));
    items.push(tool("assembler", "as", "install binutils"));
    items.push(tool("JDK", "javac", "install a JDK to capture Java programs"));
    items.push(tool("JVM", "java", "install a JRE or JDK to capture Java programs"));
    items.push(agent());
    items.push(tool("Rust", "rustc", "install Rust to use the foresee crate"));
    items.push(cache());
    items.push(temporary());
    items.extend(limits());
    items.push(config());
    let worst = items.iter().map(|item| item.state).max().unwrap_or(State::Fine);
    let mut text = String::new();
    for Item { state, what, text: said } in &items {
        let word = match state {
            State::Fine => "ok",
            State::Missing => "missing",
            State::Broken => "BROKEN",
        };
        text += &format!("{word:<8} {what}: {}\n", Visible(said));
    }
    let (status, end) = match worst {
        State::Fine => (0, "everything is there; `foresee self-test` tries it"),
        State::Missing => (3, "what is not missing can be used; `foresee self-test` tries it"),
        State::Broken => (1, "something is broken, see above"),
    };
    output::print(&format!("{text}doctor: {end}\n"))?;
    Ok(status)
}

/// What is linked into captured programs.
fn runtime() -> Item {
    match Kit::install() {
        Ok(kit) => Item::new(State::Fine, "runtime", kit.folder.display().to_string()),
        Err(error) => Item::new(State::Broken, "runtime", error.to_string()),
    }
}

/// A program's first line about itself, if it runs.
fn version(program: &OsStr, flag: &str) -> Option<String> {
    let said = Command::new(program).arg(flag).stdin(Stdio::null()).output().ok()?;
    let text = if said.stdout.is_empty() { said.stderr } else { said.stdout };
    let text = String::from_utf8_lossy(&text).into_owned();
    let first = text.lines().find(|line| !line.trim().is_empty())?.trim().to_owned();
    said.status.success().then_some(first)
}

fn compiler(what: &'static str, variable: &str, usual: &str, remedy: &str) -> Item {
    match env::var_os(variable) {
        // What was asked for by name should be there.
        Some(chosen) => match version(&chosen, "--version") {
            Some(text) => Item::new(State::Fine, what, format!("{text} ({variable})")),
            None => {
                let name = chosen.display();
                Item::new(
                    State::Broken,
                    what,
                    format!("{variable} is `{name}`, which does not run"),
                )
            }
        },
        None => tool(what, usual, remedy),
    }
}

fn tool(what: &'static str, program: &str, remedy: &str) -> Item {
    let name = OsString::from(program);
    match version(&name, "--version").or_else(|| version(&name, "-version")) {
        Some(text) => Item::new(State::Fine, what, format!("{text} ({program})")),
        None if is_there(&name) => {
            Item::new(State::Broken, what, format!("`{program}` is there, but does not run"))
        }
        None => Item::new(State::Missing, what, format!("there is no `{program}`: {remedy}")),
    }
}

fn agent() -> Item {
    match Agent::find("java".as_ref()) {
        Ok(_) => Item::new(State::Fine, "Java agent", "found"),
        Err(missing) => Item::new(State::Missing, "Java agent", missing.to_string()),
    }
}

/// Whether the user's cache is there and nobody else's.
fn cache() -> Item {
    match own_cache("reports") {
        Ok(folder) => Item::new(State::Fine, "cache", folder.display().to_string()),
        Err(error) => Item::new(State::Broken, "cache", error.to_string()),
    }
}

/// Whether captured programs can leave their logs.
fn temporary() -> Item {
    let folder = env::temp_dir();
    let name = folder.display().to_string();
    let written = tempfile::tempfile_in(&folder).and_then(|mut file| file.write_all(&[0; 4096]));
    match written {
        Ok(()) => Item::new(State::Fine, "temporary folder", name),
        Err(error) => {
            let text = format!("{name}: {error}: TMPDIR names another folder");
            Item::new(State::Broken, "temporary folder", text)
        }
    }
}

/// What a limit of the system should be at least: its name in /proc/self/limits, and why.
const LIMITS: &[(&str, u64, &str)] = &[
    ("Max open files", 256, "raise it with `ulimit -n`: logs of many threads take a file each"),
    ("Max processes", 256, "raise it with `ulimit -u`: threads count as processes"),
    ("Max address space", 8 << 30, "remove it with `ulimit -v unlimited`: logs are mapped"),
    ("Max file size", 1 << 30, "remove it with `ulimit -f unlimited`: logs grow large"),
];

fn limits() -> Vec<Item> {
    let text = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let mut items = Vec::new();
    for &(name, least, remedy) in LIMITS {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let soft = line.and_then(|rest| rest.split_whitespace().next());
        let Some(soft) = soft else { continue };
        let is_enough = soft.parse::<u64>().map_or(soft == "unlimited", |soft| soft >= least);
        let (state, remedy) = match is_enough {
            true => (State::Fine, String::new()),
            false => (State::Missing, format!(": {remedy}")),
        };
        items.push(Item::new(state, "limit", format!("{}: {soft}{remedy}", name.to_lowercase())));
    }
    if let Ok(text) = fs::read_to_string("/proc/sys/vm/max_map_count") {
        let is_enough = text.trim().parse::<u64>().is_ok_and(|count| count >= 65_530);
        let (state, remedy) = match is_enough {
            true => (State::Fine, ""),
            false => (State::Missing, ": programs with thousands of threads need 65530"),
        };
        let text = format!("memory maps: {}{remedy}", text.trim());
        items.push(Item::new(state, "limit", text));
    }
    items
}

/// Whether the settings of this folder can be used.
fn config() -> Item {
    match settings::nearest_file() {
        None => Item::new(State::Fine, "settings", "no foresee.toml here or above"),
        Some(path) => match settings::check(&path) {
            Ok(()) => Item::new(State::Fine, "settings", path.display().to_string()),
            Err(error) => Item::new(State::Broken, "settings", format!("{error:#}")),
        },
    }
}
