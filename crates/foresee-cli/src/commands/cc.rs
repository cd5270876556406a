//! `foresee cc` and `foresee c++`: run the compiler with the flags that capture needs.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;

use anyhow::Context;
use foresee_capture::compiler::{CompilerError, Kit, Language, command};

/// The language and the arguments if this process was invoked as a compiler: by `foresee cc …`, or
/// through a link named `foresee-cc`. clap must not parse a compiler's arguments.
pub(crate) fn invocation() -> Option<(Language, Vec<OsString>)> {
    let mut words = std::env::args_os();
    let own = words.next()?;
    let named = |name: &str| match name {
        "foresee-cc" => Some(Language::C),
        "foresee-c++" => Some(Language::Cpp),
        _ => None,
    };
    if let Some(language) = Path::new(&own).file_name().and_then(|n| named(n.to_str()?)) {
        return Some((language, words.collect()));
    }
    let language = match words.next()?.to_str()? {
        "cc" => Language::C,
        "c++" => Language::Cpp,
        _ => return None,
    };
    let rest: Vec<OsString> = words.collect();
    // Without arguments, clap prints the help.
    (!rest.is_empty()).then_some((language, rest))
}

/// The arguments if this process was invoked as an assembler, by a compiler that [`run`] started.
pub(crate) fn assembler() -> Option<Vec<OsString>> {
    let mut words = std::env::args_os();
    let own = words.next()?;
    (Path::new(&own).file_name()? == "as").then(|| words.collect())
}

/// Runs the assembler.
pub(crate) fn assemble(arguments: &[OsString]) -> anyhow::Result<u8> {
    let status = foresee_capture::assembler::run(arguments).context("cannot run the assembler")?;
    Ok(u8::try_from(status.code().unwrap_or(1)).unwrap_or(1))
}

/// Replaces this process with the compiler; returns only on failure.
pub(crate) fn run(language: Language, arguments: &[OsString]) -> anyhow::Result<u8> {
    let variable = match language {
        Language::C => "FORESEE_CC",
        Language::Cpp => "FORESEE_CXX",
    };
    let environment = std::env::var_os(variable);
    let mut command = command(language, arguments, environment.as_deref(), Kit::install)?;
    let source = command.exec();
    let name = command.get_program().to_string_lossy().into_owned();
    Err(CompilerError::Missing { name, source }.into())
}
