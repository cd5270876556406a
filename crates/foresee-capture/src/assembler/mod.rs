//! The assembler behind `foresee cc`: what compilers write, with the hooks that they left out.
//!
//! The thread-sanitizer passes of gcc and clang see statements of their inner languages. Structures that are passed by
//! value or returned, copies that are carried out without a call and more besides become loads and stores only
//! afterwards, and have no hook. In the assembly everything is there, whatever it came from: each access without a hook
//! gets a call of the runtime that keeps all registers ([`function`]).
//!
//! The compiler is told where to look for its assembler (`-B`), and finds this in place of its own, which is run in the end.
//! Nothing else of the build changes, whether files are compiled one by one or many at a time.
//!
//! What was done is written down in a section of the object, a line each: `unit` for the file, and `doubt FUNCTION REASON`
//! for functions in which something was not understood. Linkers put these together; see [`Notes`].

mod function;
mod instruction;
mod values;

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::{env, fs};

use function::{Source, complete};

/// The section that tells what was done.
pub const SECTION: &str = ".foresee.hooks";
/// The environment variable with the compiler whose assembler is meant.
pub const COMPILER: &str = "FORESEE_COMPILER";

/// What the objects of a program say about their hooks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// How many files had their hooks completed.
    pub units: usize,
    /// Functions in which something was not understood, with what it was.
    pub doubts: Vec<(String, String)>,
}

impl Notes {
    /// Reads the section.
    pub fn read(section: &[u8]) -> Notes {
        let mut notes = Notes::default();
        for line in String::from_utf8_lossy(section).split(['\n', '\0']) {
            match line.split_once(' ') {
                None if line == "unit" => notes.units += 1,
                Some(("doubt", rest)) => {
                    let (function, why) = rest.split_once(' ').unwrap_or((rest, ""));
                    notes.doubts.push((function.to_owned(), why.to_owned()));
                }
                _ => {}
            }
        }
        notes
    }
}

/// Assembly with all hooks; none if it is nothing that a compiler wrote for capture.
pub fn rewrite(text: &str) -> Option<String> {
    if !text.contains("__tsan_init") || text.contains(".intel_syntax") {
        return None;
    }
    let lines: Vec<&str> = text.lines().collect();
    let is_clang = text.contains(".Lfunc_end0:");
    let mut source = Source { is_clang, ..Source::default() };
    let mut resolvers = Vec::new();
    let mut section_is_constant = false;
    for line in lines.iter().map(|l| l.trim()) {
        let mut words = line.split([' ', '\t', ',']).filter(|w| !w.is_empty());
        match words.next() {
            Some(".section" | ".pushsection") => {
                let name = words.next().unwrap_or_default();
                section_is_constant =
                    name.starts_with(".rodata") || name.starts_with(".data.rel.ro");
            }
            Some(".text" | ".data" | ".bss") => section_is_constant = false,
            Some(".set") => resolvers.extend(words.nth(1)),
            Some(word) if section_is_constant => {
                source.constants.extend(word.strip_suffix(':').filter(|w| !w.starts_with(".L")));
            }
            _ => {}
        }
    }
    // These run before the linker has filled in where the runtime is.
    let has_resolvers = text.contains("@gnu_indirect_function");
    let mut out = String::with_capacity(text.len() + text.len() / 4);
    let mut notes = String::from("unit\\n");
    let mut at = 0;
    while at < lines.len() {
        let Some((name, end)) = function_at(&lines, at) else {
            out.push_str(lines[at]);
            out.push('\n');
            at += 1;
            continue;
        };
        let body = &lines[at..end];
        if has_resolvers && resolvers.contains(&name) {
            body.iter().for_each(|line| out.extend([*line, "\n"]));
        } else if let Some(why) = complete(body, &source, &mut out).doubt {
            notes.push_str(&format!("doubt {name} {why}\\n"));
        }
        at = end;
    }
    out.push_str(&note(&notes));
    Some(out)
}

fn note(text: &str) -> String {
    format!("\t.section\t{SECTION},\"\",@progbits\n\t.ascii\t\"{text}\"\n")
}

/// The function that begins at a line, and the line behind it.
fn function_at<'a>(lines: &[&'a str], at: usize) -> Option<(&'a str, usize)> {
    // `.type f, @function`, then perhaps more about it, then its label; at last `.size f, .-f`.
    let (name, kind) = lines[at].trim().strip_prefix(".type")?.split_once(',')?;
    let name = name.trim();
    if !kind.trim_start().starts_with("@function") {
        return None;
    }
    let is_end = |line: &&str| {
        let rest = line.trim().strip_prefix(".size").and_then(|r| r.trim().strip_prefix(name));
        rest.is_some_and(|r| r.starts_with(','))
    };
    let length = lines[at..].iter().position(is_end)?;
    Some((name, at + length + 1))
}

/// Acts as the assembler of the compiler that `FORESEE_COMPILER` names.
pub fn run(arguments: &[OsString]) -> io::Result<ExitStatus> {
    let mut real = Command::new(real_assembler());
    let input = input(arguments);
    let text = match input {
        Input::None => return Err(real.args(arguments).exec()),
        Input::Standard => {
            let mut bytes = Vec::new();
            io::stdin().lock().read_to_end(&mut bytes)?;
            bytes
        }
        // What cannot be read, the assembler itself complains of best.
        Input::File(at) => match fs::read(&arguments[at]) {
            Ok(bytes) => bytes,
            Err(_) => return Err(real.args(arguments).exec()),
        },
    };
    let file = match input {
        Input::File(at) => Some(at),
        _ => None,
    };
    let rest = arguments.iter().enumerate().filter(|(i, a)| Some(*i) != file && *a != "-");
    real.args(rest.map(|(_, a)| a));
    let Some(complete) = std::str::from_utf8(&text).ok().and_then(|t| rewrite(t)) else {
        return feed(&mut real, &text);
    };
    // Should the assembler not understand what we made of it, the program is still built, and says so.
    real.stderr(Stdio::null());
    let status = feed(&mut real, complete.as_bytes())?;
    if status.success() {
        return Ok(status);
    }
    real.stderr(Stdio::inherit());
    feed(&mut real, &text)
}

fn feed(command: &mut Command, text: &[u8]) -> io::Result<ExitStatus> {
    let mut child = command.stdin(Stdio::piped()).spawn()?;
    if let Some(mut input) = child.stdin.take() {
        // One that ends early says itself why.
        let _ = input.write_all(text);
    }
    child.wait()
}

enum Input {
    /// A question, or several files.
    None,
    Standard,
    /// The argument with this number.
    File(usize),
}

fn input(arguments: &[OsString]) -> Input {
    let mut found = Input::Standard;
    let mut words = arguments.iter().enumerate();
    while let Some((i, word)) = words.next() {
        match word.to_str() {
            Some(
                "-o" | "-I" | "--defsym" | "--MD" | "--debug-prefix-map" | "-march" | "-mtune",
            ) => {
                words.next();
            }
            Some("--version" | "-V" | "--help" | "--target-help") => return Input::None,
            Some(word) if word.starts_with('-') => {}
            _ => match found {
                Input::Standard => found = Input::File(i),
                _ => return Input::None,
            },
        }
    }
    found
}

/// The assembler that the compiler would run without us.
fn real_assembler() -> OsString {
    let ask = |words: &str| {
        let mut words = words.split_whitespace();
        let mut ask = Command::new(words.next()?);
        ask.args(words).arg("-print-prog-name=as").stderr(Stdio::null());
        let said = String::from_utf8(ask.output().ok()?.stdout).ok()?;
        let path = said.trim();
        (!path.is_empty()).then(|| OsString::from(path))
    };
    let asked = env::var(COMPILER).ok().and_then(|words| ask(&words));
    match asked {
        Some(path) if Path::new(&path).is_absolute() => path,
        _ => in_path(OsStr::new("as")),
    }
}

/// The first program of this name in the path that is not this process.
fn in_path(name: &OsStr) -> OsString {
    let own = env::current_exe().and_then(fs::canonicalize).ok();
    let path = env::var_os("PATH").unwrap_or_else(|| OsString::from("/bin:/usr/bin"));
    let is_other = |file: &std::path::PathBuf| file.is_file() && fs::canonicalize(file).ok() != own;
    env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(is_other)
        .map_or_else(|| name.to_owned(), Into::into)
}
