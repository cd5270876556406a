//! Parses a compiler's arguments as far as capture needs it.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use super::CompilerError;

/// How far the compiler goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It only answers a query, or has no input.
    Other,
    Preprocess,
    Compile,
    /// To a program or library, with or without compiling first.
    Link,
}

/// The parsed arguments.
#[derive(Clone, Debug)]
pub(super) struct Arguments {
    pub(super) step: Step,
    /// Whether there is a source among the inputs.
    pub(super) compiles: bool,
    pub(super) is_shared: bool,
    pub(super) is_relocatable: bool,
    pub(super) has_no_libraries: bool,
    pub(super) has_debug_info: bool,
    pub(super) has_openmp: bool,
    is_static: Option<String>,
    other_sanitizer: Option<String>,
    sanitizer_library: Option<String>,
}

/// The maximum depth of nested files of arguments.
const DEEPEST: usize = 16;

impl Arguments {
    pub(super) fn read(arguments: &[OsString]) -> Result<Arguments, CompilerError> {
        let mut all = Vec::new();
        expand(arguments, 0, &mut all)?;
        let mut read = Arguments {
            step: Step::Link,
            compiles: false,
            is_shared: false,
            is_relocatable: false,
            has_no_libraries: false,
            has_debug_info: false,
            has_openmp: false,
            is_static: None,
            other_sanitizer: None,
            sanitizer_library: None,
        };
        let mut has_input = false;
        let mut asks = false;
        let mut words = all.iter();
        while let Some(word) = words.next() {
            let text = word.to_string_lossy();
            if !text.starts_with('-') || text == "-" {
                has_input = true;
                read.compiles |= is_source(&text);
                if is_sanitizer_library(&text) {
                    read.sanitizer_library = Some(text.into_owned());
                }
                continue;
            }
            match &*text {
                "-E" | "-M" | "-MM" => read.step = Step::Preprocess,
                "-c" | "-S" | "-fsyntax-only" if read.step != Step::Preprocess => {
                    read.step = Step::Compile;
                }
                "-shared" | "--shared" => read.is_shared = true,
                "-r" => read.is_relocatable = true,
                "-nostdlib" | "-nodefaultlibs" => read.has_no_libraries = true,
                "-static" | "--static" | "-static-pie" => read.is_static = Some(text.into_owned()),
                "-fopenmp" => read.has_openmp = true,
                "-fno-openmp" => read.has_openmp = false,
                "-g0" => read.has_debug_info = false,
                "-###" | "--help" | "--version" | "-V" | "-qversion" => asks = true,
                "-x" => {
                    // From here on, inputs without an extension are sources.
                    let language = words.next().map(|w| w.to_string_lossy());
                    read.compiles |= language.is_some_and(|l| l != "none");
                }
                _ if takes_a_word(&text) => {
                    words.next();
                }
                _ if text.starts_with("-x") => read.compiles |= text != "-xnone",
                _ if text.starts_with("-l") => {
                    has_input = true;
                    if is_sanitizer_library(&text) {
                        read.sanitizer_library = Some(text.into_owned());
                    }
                }
                _ if text.starts_with("-dump") || text.starts_with("-print-") => asks = true,
                _ if text.starts_with("--print-") || text.starts_with("--help=") => asks = true,
                _ if is_debug_level(&text) => read.has_debug_info = true,
                _ => {
                    let list = text.strip_prefix("-fsanitize=").into_iter();
                    let rival = list.flat_map(|l| l.split(',')).find(|name| {
                        ["address", "hwaddress", "memory", "leak", "kernel-address"].contains(name)
                    });
                    if rival.is_some() {
                        read.other_sanitizer = Some(text.into_owned());
                    }
                }
            }
        }
        if !has_input || asks {
            read.step = Step::Other;
        }
        Ok(read)
    }

    /// Rejects what cannot be captured.
    pub(super) fn refuse(&self) -> Result<(), CompilerError> {
        if let Some(word) = &self.other_sanitizer {
            return Err(CompilerError::OtherSanitizer(word.clone()));
        }
        if self.step != Step::Link || self.is_relocatable {
            return Ok(());
        }
        if let Some(word) = &self.is_static {
            return Err(CompilerError::Static(word.clone()));
        }
        match &self.sanitizer_library {
            Some(word) => Err(CompilerError::TwoRuntimes(word.clone())),
            None => Ok(()),
        }
    }
}

/// An argument without its request for the thread sanitizer; `None` if nothing is left.
pub(super) fn without_thread_sanitizer(word: &OsString) -> Option<OsString> {
    let Some(list) = word.to_str().and_then(|text| text.strip_prefix("-fsanitize=")) else {
        return Some(word.clone());
    };
    let rest: Vec<&str> = list.split(',').filter(|name| *name != "thread").collect();
    (!rest.is_empty()).then(|| format!("-fsanitize={}", rest.join(",")).into())
}

/// Options whose value is the next word.
fn takes_a_word(option: &str) -> bool {
    matches!(
        option,
        "-o" | "-D"
            | "-U"
            | "-I"
            | "-L"
            | "-T"
            | "-u"
            | "-z"
            | "-e"
            | "-h"
            | "-b"
            | "-B"
            | "-A"
            | "-F"
            | "-G"
            | "-MF"
            | "-MT"
            | "-MQ"
            | "-include"
            | "-imacros"
            | "-isystem"
            | "-iquote"
            | "-idirafter"
            | "-iprefix"
            | "-iwithprefix"
            | "-iwithprefixbefore"
            | "-isysroot"
            | "-imultilib"
            | "-aux-info"
            | "-Xlinker"
            | "-Xassembler"
            | "-Xpreprocessor"
            | "-Xclang"
            | "-mllvm"
            | "--param"
            | "-target"
            | "--sysroot"
            | "-arch"
            | "-framework"
            | "-wrapper"
            | "-specs"
            | "-dumpbase"
            | "-dumpdir"
    )
}

/// `-g`, `-g3`, `-ggdb`, `-gdwarf-4`; not `-g0`, `-gz`, `-gsplit-dwarf` or `-gno-…`.
fn is_debug_level(option: &str) -> bool {
    let Some(rest) = option.strip_prefix("-g") else { return false };
    let with_level = |name: &str| rest.strip_prefix(name).is_some_and(|l| !l.starts_with("-g0"));
    rest.is_empty() || matches!(rest, "2" | "3") || with_level("gdb") || with_level("dwarf")
}

fn is_source(file: &str) -> bool {
    let ending = Path::new(file).extension().and_then(OsStr::to_str).unwrap_or_default();
    file == "-"
        || matches!(
            ending,
            "c" | "i"
                | "ii"
                | "m"
                | "mi"
                | "mm"
                | "M"
                | "cc"
                | "cp"
                | "cxx"
                | "cpp"
                | "CPP"
                | "c++"
                | "C"
                | "h"
                | "hh"
                | "H"
                | "hpp"
                | "hxx"
                | "s"
                | "S"
                | "sx"
        )
}

fn is_sanitizer_library(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or(word);
    word == "-ltsan" || name.starts_with("libtsan.") || name.starts_with("libclang_rt.tsan")
}

/// Replaces `@file` with its contents, as the compiler does.
fn expand(from: &[OsString], depth: usize, into: &mut Vec<OsString>) -> Result<(), CompilerError> {
    for word in from {
        let path = match word.as_bytes().strip_prefix(b"@") {
            Some(path) if depth < DEEPEST => Path::new(OsStr::from_bytes(path)),
            _ => {
                into.push(word.clone());
                continue;
            }
        };
        // To the compiler, a file that does not exist is an ordinary word.
        if !path.exists() {
            into.push(word.clone());
            continue;
        }
        let text = fs::read(path)
            .map_err(|source| CompilerError::Response { path: path.to_owned(), source })?;
        expand(&split(&text), depth + 1, into)?;
    }
    Ok(())
}

/// Words separated by white space; either kind of quotes groups them, and a backslash escapes the
/// next byte.
fn split(text: &[u8]) -> Vec<OsString> {
    let mut words = Vec::new();
    let mut word: Option<Vec<u8>> = None;
    let mut quote = None;
    let mut bytes = text.iter().copied();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => word.get_or_insert_default().extend(bytes.next()),
            _ if quote == Some(byte) => quote = None,
            b'\'' | b'"' if quote.is_none() => {
                quote = Some(byte);
                word.get_or_insert_default();
            }
            _ if quote.is_none() && byte.is_ascii_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(byte),
        }
    }
    words.extend(word);
    words.into_iter().map(OsString::from_vec).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Arguments {
        Arguments::read(&split(line.as_bytes())).unwrap()
    }

    #[test]
    fn steps() {
        for (line, step) in [
            ("-c a.c", Step::Compile),
            ("a.c -o a", Step::Link),
            ("a.o -lm", Step::Link),
            ("-lm", Step::Link),
            ("-E a.c", Step::Preprocess),
            ("-MM -c a.c", Step::Preprocess),
            ("-MD -MF a.d -c a.c", Step::Compile),
            ("-S a.c", Step::Compile),
            ("-x c -", Step::Link),
            ("-v", Step::Other),
            ("--version", Step::Other),
            ("-print-prog-name=ld", Step::Other),
            ("-dumpmachine", Step::Other),
            ("-o a", Step::Other),
            ("", Step::Other),
        ] {
            assert_eq!(read(line).step, step, "{line}");
        }
    }

    #[test]
    fn what_else_is_asked_for() {
        assert!(read("-shared a.o").is_shared);
        assert!(!read("-o -shared a.o").is_shared);
        assert!(read("a.c b.o").compiles && !read("a.o b.so").compiles);
        assert!(read("-x c a").compiles);
        for (line, debug) in [
            ("-g", true),
            ("-ggdb3", true),
            ("-gdwarf-4", true),
            ("-g -g0", false),
            ("-gz", false),
            ("-gsplit-dwarf", false),
            ("", false),
        ] {
            assert_eq!(read(&format!("{line} a.c")).has_debug_info, debug, "{line}");
        }
    }

    #[test]
    fn what_cannot_be_captured_is_refused() {
        for line in ["-static a.c", "-static-pie a.o", "-fsanitize=undefined,address -c a.c"] {
            assert!(read(line).refuse().is_err(), "{line}");
        }
        for line in ["a.o -ltsan", "a.o /usr/lib/libtsan.so.2"] {
            assert!(matches!(read(line).refuse(), Err(CompilerError::TwoRuntimes(_))), "{line}");
        }
        for line in ["-static -c a.c", "-fsanitize=thread a.c", "-static-libgcc a.c"] {
            assert!(read(line).refuse().is_ok(), "{line}");
        }
        let left = |word: &str| without_thread_sanitizer(&word.into());
        assert_eq!(left("-fsanitize=thread"), None);
        assert_eq!(left("-fsanitize=thread,undefined"), Some("-fsanitize=undefined".into()));
        assert_eq!(left("-c"), Some("-c".into()));
    }

    #[test]
    fn files_of_arguments_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let (inner, outer) = (dir.path().join("inner"), dir.path().join("outer"));
        fs::write(&inner, "-shared\n'a b.c'").unwrap();
        fs::write(&outer, format!("-I \"x y\" @{}", inner.display())).unwrap();
        let read = Arguments::read(&[format!("@{}", outer.display()).into()]).unwrap();
        assert!(read.is_shared && read.compiles && read.step == Step::Link);
        // A file that includes itself must not recurse forever.
        fs::write(&inner, format!("-c @{}", inner.display())).unwrap();
        assert!(Arguments::read(&[format!("@{}", inner.display()).into()]).is_ok());
        assert_eq!(split(b"a\\ b 'c\"d' \"\" e"), ["a b", "c\"d", "", "e"]);
    }
}
