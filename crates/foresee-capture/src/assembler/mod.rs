//! The assembler behind `foresee cc`: it adds the hooks that compilers leave out.
//!
//! The thread-sanitizer passes of gcc and clang work on their intermediate languages. Structures
//! passed or returned by value, copies without a call, and more become loads and stores only later,
//! and have no hook. In the assembly, all of them are visible: each access without a hook gets a
//! call of the runtime that preserves all registers (`function/`).
//!
//! The option `-B` makes the compiler find this assembler in place of its own, which this one runs
//! at the end. Nothing else in the build changes, whether files are compiled one by one or many at
//! a time.
//!
//! A section of the object records what was done, one item per line: `unit` for the file, and
//! `doubt FUNCTION REASON` for functions in which something was not understood. Linkers concatenate
//! these; see [`Notes`].

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

/// The section that records what was done.
pub const SECTION: &str = ".foresee.hooks";
/// The environment variable with the compiler whose assembler to run.
pub const COMPILER: &str = "FORESEE_COMPILER";

/// What the objects of a program record about their hooks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// The number of files whose hooks were completed.
    pub units: usize,
    /// Functions in which something was not understood, with the reason.
    pub doubts: Vec<(String, String)>,
}

impl Notes {
    /// Parses the section.
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

/// The assembly with all hooks; `None` if it is not compiler output for capture.
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
    // These run before the linker has resolved the runtime's symbols.
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

/// The function that begins at a line, and the line after it.
fn function_at<'a>(lines: &[&'a str], at: usize) -> Option<(&'a str, usize)> {
    // `.type f, @function`, then possibly more about it, then its label; finally `.size f, .-f`.
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
        // The assembler itself gives the best message for a file that cannot be read.
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
    let Some(complete) = std::str::from_utf8(&text).ok().and_then(rewrite) else {
        return feed(&mut real, &text);
    };
    // If the assembler rejects our output, the program is still built without it and says so.
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
        // An assembler that ends early reports why itself.
        let _ = input.write_all(text);
    }
    child.wait()
}

enum Input {
    /// A query, or several files.
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

/// The assembler that the compiler would run by itself.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A function in a file that was compiled for capture.
    fn completed(body: &str) -> String {
        let text = format!(
            "\t.type\tf, @function\nf:\n\t.cfi_startproc\n{body}\tret\n\t.cfi_endproc\n\t.size\tf, .-f\n\
             \t.section\t.rodata\nfixed:\n\t.long 1\n\t.text\n\tjmp\t__tsan_init@PLT\n"
        );
        rewrite(&text).expect("compiled for capture")
    }

    fn added(body: &str) -> Vec<String> {
        let text = completed(body);
        let call = |l: &str| l.trim().strip_prefix("call\t*foresee_").map(str::to_owned);
        text.lines()
            .filter_map(call)
            .map(|c| c.split('@').next().unwrap_or("").to_owned())
            .filter(|c| !c.starts_with("open") && !c.starts_with("close"))
            .collect()
    }

    #[test]
    fn accesses_behind_the_end_of_their_function_are_still_in_it() {
        let text = |body: &str| completed(&format!("\tcall\t__tsan_func_entry@PLT\n{body}"));
        assert!(!text("\tmovq\t%rax, 8(%rbx)\n").contains("foresee_open"));
        let behind = text("\tcall\t__tsan_func_exit@PLT\n\tmovq\t%rax, 8(%rdi)\n");
        let inserted = "\tleaq\t144(%rsp), %rdi\n\tcall\t*foresee_open@GOTPCREL(%rip)\n\tmovq\t8(%rsp), %rdi\n\
                        \tleaq\t8(%rdi), %rdi\n\tmovl\t$0x8, %esi\n\tcall\t*foresee_write@GOTPCREL(%rip)\n\
                        \tleaq\t144(%rsp), %rdi\n\tcall\t*foresee_close@GOTPCREL(%rip)\n\tpopq\t%rsi\n";
        assert!(behind.contains(inserted), "{behind}");
        let copy = completed("\tcall\tmemcpy@PLT\n");
        let at = |what: &str| copy.find(what).expect(what);
        assert!(at("foresee_open") < at("memcpy") && at("memcpy") < at("foresee_close"), "{copy}");
    }

    #[test]
    fn accesses_without_a_hook_get_one() {
        assert_eq!(added("\tmovq\ts(%rip), %rdi\n\tcall\tg\n"), ["read_x"]);
        let entered = "\tcall\t__tsan_func_entry@PLT\n";
        assert_eq!(added(&format!("{entered}\tmovq\t%rax, 8(%rbx)\n")), ["write"]);
        assert_eq!(added("\taddl\t$1, 8(%rbx)\n"), ["update_x"]);
        assert_eq!(added("\tvmovdqu\t(%rbx), %ymm0\n"), ["read_y"]);
        assert_eq!(added("\trep movsq\n"), ["write_range_x", "read_range_x"]);
        assert_eq!(added("#APP\n\tlock; incl (%rbx)\n#NO_APP\n"), ["atomic_x"]);
    }

    #[test]
    fn accesses_with_a_hook_get_none() {
        for body in [
            "\tleaq\t8(%rbx), %rdi\n\tcall\t__tsan_read8@PLT\n\tmovq\t8(%rbx), %rax\n",
            // The place is computed twice, from what the frame holds.
            "\tmovq\t8(%rsp), %rax\n\taddq\t$4, %rax\n\tmovq\t%rax, %rdi\n\tcall\t__tsan_write4@PLT\n\
             \tmovq\t8(%rsp), %rax\n\tmovl\t$1, 4(%rax)\n",
            "\tmovl\t$24, %esi\n\tmovq\t%rbx, %rdi\n\tcall\t__tsan_write_range@PLT\n\tmovups\t%xmm0, (%rbx)\n\tmovq\t$0, 16(%rbx)\n",
            "\tleaq\tx(%rip), %rdi\n\tcall\t__tsan_read4@PLT\n.LVL3:\n\tcmpl\t$2, x(%rip)\n",
        ] {
            assert_eq!(added(body), [""; 0], "{body}");
        }
        // A hook applies to what follows it, but not across merges of control flow or calls, nor to
        // larger accesses.
        for body in [
            "\tleaq\tx(%rip), %rdi\n\tcall\t__tsan_read4@PLT\n.L3:\n\tcmpl\t$2, x(%rip)\n",
            "\tleaq\tx(%rip), %rdi\n\tcall\t__tsan_read4@PLT\n\tcall\tg\n\tcmpl\t$2, x(%rip)\n",
            "\tleaq\tx(%rip), %rdi\n\tcall\t__tsan_read4@PLT\n\tcmpq\t$2, x(%rip)\n",
            "\tleaq\tx(%rip), %rdi\n\tcall\t__tsan_read4@PLT\n\tmovl\t$2, x(%rip)\n",
            "\tmovq\t%rbx, %rdi\n\tcall\t__tsan_read4@PLT\n\taddq\t$4, %rbx\n\tcmpl\t$2, (%rbx)\n",
        ] {
            assert_eq!(added(body).len(), 1, "{body}");
        }
    }

    /// clang leaves a load behind where it has put a call of the runtime, also of what lies in the frame while its address is in a
    /// register.
    #[test]
    fn a_load_that_was_left_behind_gets_none() {
        let clang = |load: &str| {
            format!(
                "\tsubq\t$40, %rsp\n\t.cfi_def_cfa_offset 48\n\tleaq\t8(%rsp), %r14\n\tmovq\t%r14, %rdi\n\tcallq\tg\n\
                 .LBB0_6:\n\tmovq\t%r14, %rdi\n\tcallq\t__tsan_atomic64_load@PLT\n{load}\ttestq\t%rbx, %rbx\n\
                 \tje\t.LBB0_6\n.Lfunc_end0:\n"
            )
        };
        assert_eq!(added(&clang("\tmovq\t8(%rsp), %rax\n")), [""; 0]);
        // One is left behind, of the same size.
        for load in ["\tmovl\t8(%rsp), %eax\n", "\tmovq\t8(%rsp), %rax\n\tmovq\t8(%rsp), %rcx\n"] {
            let hooks = added(&clang(load));
            assert!(matches!(&hooks[..], [one] if one.starts_with("read")), "{hooks:?}");
        }
    }

    #[test]
    fn what_belongs_to_one_thread_is_left_alone() {
        for body in [
            "\tmovq\t8(%rsp), %rax\n",
            "\tmovl\tfixed(%rip), %eax\n",
            "\tmovsd\t.LC0(%rip), %xmm0\n",
            "\tmovq\tx@GOTPCREL(%rip), %rax\n",
            "\tmovq\t%fs:40, %rax\n",
            "#APP\n\tpause\n#NO_APP\n",
        ] {
            assert_eq!(added(body), [""; 0], "{body}");
        }
        // A variable whose address is passed on.
        let known = "\tsubq\t$40, %rsp\n\t.cfi_def_cfa_offset 48\n\tleaq\t8(%rsp), %rdi\n\tcall\tg\n\tmovq\t8(%rsp), %rdi\t# v,\n";
        assert_eq!(added(known), ["read_x"]);
        assert_eq!(added(&known.replace("# v", "# %sfp")), [""; 0]);
        // Its caller's argument on the stack is separate.
        assert_eq!(added(&known.replace("movq\t8(", "movq\t56(")), [""; 0]);
    }

    #[test]
    fn what_is_not_understood_is_written_down() {
        let notes = |body: &str| {
            let text = completed(body);
            let line = text.lines().last().expect("the notes").trim();
            let quoted = line.split('"').nth(1).expect("a text");
            Notes::read(quoted.replace("\\n", "\n").as_bytes())
        };
        assert_eq!(notes("\tmovq\t(%rax), %rax\n"), Notes { units: 1, doubts: vec![] });
        let doubt = |why: &str| Notes { units: 1, doubts: vec![("f".to_owned(), why.to_owned())] };
        let registers = "\tfucomip\t%st(1), %st\n\tfaddp\t%st, %st(1)\n";
        assert_eq!(notes(registers), Notes { units: 1, doubts: vec![] });
        assert_eq!(notes("\txsave\t(%rax)\n"), doubt("xsave"));
        assert_eq!(notes("#APP\n\tsyscall\n#NO_APP\n"), doubt("inline assembly"));
        assert_eq!(rewrite("\tmovq\t(%rax), %rax\n"), None);
    }
}
