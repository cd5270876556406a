//! The compiler wrapper behind `foresee cc` and `foresee c++`: runs the user's command with what
//! capture needs.
//!
//! Compiling places the hooks of the compiler's thread sanitizer; linking adds our runtime instead
//! of the sanitizer's own, which need not be installed. In between, our own assembler
//! ([`crate::assembler`]) adds the hooks that compilers leave out.
//!
//! | compiler | hooks | no runtime of its own |
//! |---|---|---|
//! | gcc | a specs file that hands `-fsanitize=thread` to `cc1` alone | the driver never hears of it |
//! | clang | `-fsanitize=thread` | `-fno-sanitize-link-runtime` |

mod arguments;
mod kit;

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::assembler;
use arguments::{Arguments, Step};

pub use kit::{Kit, KitError, own_cache};

/// Functions that gcc would expand inline if sizes are known, without a hook; as calls they are
/// seen.
const CALLED: [&str; 22] = [
    "memcpy", "memmove", "memset", "memcmp", "memchr", "mempcpy", "bcmp", "bcopy", "bzero",
    "strlen", "strnlen", "strcmp", "strncmp", "strcpy", "stpcpy", "strncpy", "strcat", "strncat",
    "strchr", "strrchr", "sprintf", "snprintf",
];

/// The default language of the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// `foresee cc`.
    C,
    /// `foresee c++`.
    Cpp,
}

/// The supported compilers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Gcc,
    Clang,
}

/// Why a command cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum CompilerError {
    /// There is no such compiler.
    #[error(
        "cannot run the compiler `{name}`: {source}; name another with FORESEE_CC and FORESEE_CXX, or after `--`"
    )]
    Missing {
        /// The compiler.
        name: String,
        /// The reason.
        source: std::io::Error,
    },
    /// It is neither gcc nor clang.
    #[error(
        "`{0}` is neither gcc nor clang; name one of these with FORESEE_CC and FORESEE_CXX, or after `--`"
    )]
    Unknown(String),
    /// The word after `--` is missing.
    #[error("expected the name of a compiler after `--`, as in `foresee cc -- clang -c main.c`")]
    NoName,
    /// The linker would produce a program without a dynamic linker.
    #[error(
        "`{0}` makes a program that cannot be captured: the runtime stands between the program and its libraries, so link without it"
    )]
    Static(String),
    /// Another sanitizer needs the same memory.
    #[error("`{0}` cannot be combined with capture: build without this sanitizer")]
    OtherSanitizer(String),
    /// The sanitizer's own library is linked besides ours.
    #[error(
        "`{0}` links the sanitizer's own runtime beside that of foresee, and the program would crash at start: leave it out"
    )]
    TwoRuntimes(String),
    /// A file of arguments cannot be read.
    #[error("cannot read the file of arguments {path}: {source}", path = path.display())]
    Response {
        /// The file.
        path: std::path::PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// The parts of the runtime cannot be installed.
    #[error(transparent)]
    Kit(#[from] KitError),
}

/// The command to run for `foresee cc ARGS…`. `environment` is the value of `FORESEE_CC` or
/// `FORESEE_CXX`, which overrides the arguments.
pub fn command(
    language: Language,
    arguments: &[OsString],
    environment: Option<&OsStr>,
    kit: impl FnOnce() -> Result<Kit, KitError>,
) -> Result<Command, CompilerError> {
    let (named, rest) = match arguments.split_first() {
        Some((first, rest)) if first == "--" => {
            let (name, rest) = rest.split_first().ok_or(CompilerError::NoName)?;
            (Some(name.as_os_str()), rest)
        }
        _ => (None, arguments),
    };
    let usual = match language {
        Language::C => "cc",
        Language::Cpp => "c++",
    };
    let given = environment.filter(|e| !e.is_empty()).or(named).unwrap_or(OsStr::new(usual));
    // `FORESEE_CC="ccache gcc"` is a compiler and its first arguments, as with make.
    let words: Vec<OsString> = match given.to_str() {
        Some(text) if !Path::new(given).exists() => {
            text.split_whitespace().map(OsString::from).collect()
        }
        _ => vec![given.to_owned()],
    };
    let (name, first) = words.split_first().ok_or(CompilerError::NoName)?;
    let mut command = Command::new(name);
    command.args(first);
    let read = Arguments::read(rest)?;
    if read.step == Step::Other {
        command.args(rest);
        return Ok(command);
    }
    let family = family(name, first)?;
    read.refuse()?;
    let kit = kit()?;
    command.env(assembler::COMPILER, given);
    // Requests for the thread sanitizer are redundant.
    command.args(rest.iter().filter_map(arguments::without_thread_sanitizer));
    command.args(compile_flags(family, &read, &kit));
    if read.step == Step::Link {
        command.args(link_flags(family, &read, &kit));
    }
    Ok(command)
}

fn compile_flags(family: Family, read: &Arguments, kit: &Kit) -> Vec<OsString> {
    let mut flags: Vec<OsString> = vec!["-idirafter".into(), kit.include.clone().into()];
    // After the user's directories and before the compiler's own.
    flags.extend(["-isystem".into(), kit.cxx_include.clone().into()]);
    if !read.has_debug_info {
        flags.push("-g".into());
    }
    match family {
        // Preprocessing places no hooks, but needs the same macros.
        Family::Gcc if read.step == Step::Preprocess => flags.push("-fsanitize=thread".into()),
        Family::Gcc => {
            let mut specs = OsString::from("-specs=");
            specs.push(&kit.specs);
            flags.push(specs);
            // The user's options must not add the sanitizer's library; `cc1` sees ours last.
            flags.push("-fno-sanitize=thread".into());
            // Our runtime supports fences, and some programs turn warnings into errors.
            flags.push("-Wno-tsan".into());
            flags.push("-grecord-gcc-switches".into());
            if read.has_openmp {
                // Some atomic operations are generated after the hooks are placed, and would have
                // none.
                flags.push("-fno-inline-atomics".into());
            }
            flags.extend(CALLED.iter().map(|name| format!("-fno-builtin-{name}").into()));
        }
        Family::Clang => {
            flags.push("-fsanitize=thread".into());
            if read.compiles {
                // Otherwise `x++` would be only a write.
                flags.extend(["-mllvm", "-tsan-instrument-read-before-write=1"].map(Into::into));
                // Otherwise a variable that a loop changes only sometimes would be read in any
                // case, even by threads that never change it.
                flags.extend(["-mllvm", "-disable-licm-promotion"].map(Into::into));
                // Later, the recorded command line shows what was built for capture; types must be
                // complete.
                flags.extend(["-grecord-command-line", "-fstandalone-debug"].map(Into::into));
            }
        }
    }
    if read.step != Step::Preprocess && read.compiles {
        // Our own assembler precedes the compiler's.
        let mut prefix = OsString::from("-B");
        prefix.push(&kit.assembler);
        prefix.push("/");
        flags.push(prefix);
        match family {
            // Its comments distinguish variables from the compiler's own data.
            Family::Gcc => flags.push("-fverbose-asm".into()),
            Family::Clang => {
                flags.extend(["-fno-integrated-as", "-fverbose-asm"].map(Into::into));
            }
        }
    }
    // The checks of fortified headers are builtins, which are expanded inline if sizes are known.
    flags.push("-U_FORTIFY_SOURCE".into());
    // Hooks are placed file by file; at link time it would be too late for gcc.
    flags.push("-fno-lto".into());
    flags
}

fn link_flags(family: Family, read: &Arguments, kit: &Kit) -> Vec<OsString> {
    let mut flags: Vec<OsString> = Vec::new();
    if family == Family::Clang {
        flags.push("-fno-sanitize-link-runtime".into());
    }
    let mut linker = |word: &OsStr| {
        flags.push("-Xlinker".into());
        flags.push(word.to_owned());
    };
    if read.is_relocatable || read.has_no_libraries {
        // A link without libraries brings everything along.
    } else if read.is_shared {
        // Uses the program's own copy if there is one, and replaces it otherwise.
        linker(kit.library.as_os_str());
        linker("-rpath".as_ref());
        linker(kit.folder.as_os_str());
    } else {
        // Passed to the linker, it is an object even after an `-x` option.
        linker(kit.object.as_os_str());
        linker("--dynamic-list".as_ref());
        linker(kit.exports.as_os_str());
        flags.extend(["-lpthread", "-ldl"].map(Into::into));
    }
    flags
}

/// gcc or clang, by its name or else by its predefined macros.
fn family(name: &OsStr, first: &[OsString]) -> Result<Family, CompilerError> {
    let last = first.iter().rfind(|a| !a.as_encoded_bytes().starts_with(b"-"));
    let file = Path::new(last.map_or(name, |a| a.as_os_str())).file_name().unwrap_or(name);
    let file = file.to_string_lossy();
    if file.contains("clang") {
        return Ok(Family::Clang);
    }
    if file.contains("gcc") || file.contains("g++") {
        return Ok(Family::Gcc);
    }
    // `cc` may be either; its predefined macros decide.
    let mut ask = Command::new(name);
    ask.args(first).args(["-dM", "-E", "-x", "c", "/dev/null"]).stderr(Stdio::null());
    let missing = |source| CompilerError::Missing { name: file.to_string(), source };
    let said = String::from_utf8_lossy(&ask.output().map_err(missing)?.stdout).into_owned();
    if said.contains("#define __clang__ ") {
        Ok(Family::Clang)
    } else if said.contains("#define __GNUC__ ") {
        Ok(Family::Gcc)
    } else {
        Err(CompilerError::Unknown(file.into_owned()))
    }
}
