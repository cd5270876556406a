//! `foresee self-test`: a small program with a planted race in each language must be reported, or something is wrong with
//! foresee or with how it is installed.

mod planted;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use anyhow::Context;
use foresee_capture::jvm::Agent;
use foresee_capture::scratch::Scratch;
use foresee_predict::info::RACE;
use serde_json::Value as Json;

use crate::args::{Language, SelfTestArgs};
use crate::output::Sink;
use crate::settings;

/// The variable that the programs race on.
const PLANTED: &str = "planted";

/// The result for a language.
enum Tried {
    /// The planted bug was reported.
    Found,
    /// It was not, for this reason.
    Missed(String),
    /// The machine has no toolchain for it.
    Skipped(String),
}

/// Tries every language; those that are named must be tried.
pub(crate) fn run(args: &SelfTestArgs) -> anyhow::Result<u8> {
    if args.planted {
        planted::run();
        return Ok(0);
    }
    let mut to = Sink::new(&args.output)?;
    let folder = Scratch::new().context("cannot make a folder for the programs")?;
    let (mut found, mut missed, mut skipped) = (0_u32, 0_u32, 0_u32);
    for language in [Language::C, Language::Cxx, Language::Java, Language::Rust] {
        if !args.languages.is_empty() && !args.languages.contains(&language) {
            continue;
        }
        let tried = attempt(language, folder.path())?;
        let name = language.title();
        let line = match tried {
            Tried::Found => {
                found += 1;
                format!("{name}: ok, the planted race was reported\n")
            }
            Tried::Skipped(why) if args.languages.is_empty() => {
                skipped += 1;
                format!("{name}: not tried: {why}\n")
            }
            Tried::Missed(why) | Tried::Skipped(why) => {
                missed += 1;
                format!("{name}: FAILED: {why}\n")
            }
        };
        to.print(&line)?;
    }
    to.finish()?;
    Ok(match missed {
        1.. => 1,
        // The program in Rust is always there.
        0 if skipped > 0 && found <= 1 => 3,
        0 => 0,
    })
}

/// Builds the program of a language, and looks for its bug.
fn attempt(language: Language, folder: &Path) -> anyhow::Result<Tried> {
    let foresee = env::current_exe().context("cannot find the foresee program")?;
    let (file, source) = match language {
        Language::C => ("planted.c", include_str!("self_test/planted.c")),
        Language::Cxx => ("planted.cc", include_str!("self_test/planted.cc")),
        Language::Java => ("Planted.java", include_str!("self_test/Planted.java")),
        Language::Rust => {
            let command = [foresee.clone().into(), "self-test".into(), "--planted".into()];
            return find(&foresee, folder, &command);
        }
    };
    let (source_file, program) = (folder.join(file), folder.join(format!("{file}.out")));
    fs::write(&source_file, source).context("cannot write a program")?;
    let mut build;
    let command: Vec<OsString> = match language {
        Language::Java => {
            for tool in ["javac", "java"] {
                if !is_there(tool.as_ref()) {
                    return Ok(Tried::Skipped(format!("there is no {tool}")));
                }
            }
            if let Err(missing) = Agent::find("java".as_ref()) {
                return Ok(Tried::Skipped(missing.to_string()));
            }
            build = Command::new("javac");
            build.arg("-g").arg("-d").arg(folder).arg(&source_file);
            vec!["java".into(), "-cp".into(), folder.into(), "Planted".into()]
        }
        _ => {
            let (variable, usual, word) = match language {
                Language::C => ("FORESEE_CC", "cc", "cc"),
                _ => ("FORESEE_CXX", "c++", "c++"),
            };
            let compiler = env::var_os(variable).unwrap_or_else(|| usual.into());
            if !is_there(&compiler) {
                return Ok(Tried::Skipped(format!("there is no {}", compiler.display())));
            }
            build = Command::new(&foresee);
            build.args([word, "-g", "-pthread", "-o"]).arg(&program).arg(&source_file);
            vec![program.into()]
        }
    };
    let built = build.stdin(Stdio::null()).output().context("cannot run the compiler")?;
    if !built.status.success() {
        let said = String::from_utf8_lossy(&built.stderr).trim().to_owned();
        return Ok(Tried::Missed(format!("the program could not be built: {said}")));
    }
    find(&foresee, folder, &command)
}

/// Runs a program, and looks for its bug.
fn find(foresee: &Path, folder: &Path, command: &[OsString]) -> anyhow::Result<Tried> {
    let mut run = Command::new(foresee);
    let report = folder.join("report");
    // The settings of the folder are not to be tested.
    let settings = folder.join("foresee.toml");
    fs::write(&settings, "").context("cannot write the settings")?;
    run.env_remove(settings::VARIABLE).args(["run", "--forget", "--config"]).arg(&settings);
    run.args(["--check", RACE, "--format", "json", "--output"]).arg(&report);
    let ran = run.arg("--").args(command).stdin(Stdio::null()).output();
    let ran = ran.context("cannot run foresee")?;
    let text = fs::read_to_string(&report).unwrap_or_default();
    Ok(match is_reported(&text) {
        true if ran.status.code() == Some(1) => Tried::Found,
        _ => {
            let said = String::from_utf8_lossy(&ran.stderr).trim().to_owned();
            Tried::Missed(format!("the planted race was not reported ({}): {said}", ran.status))
        }
    })
}

/// Whether the report has a race on the planted variable.
fn is_reported(report: &str) -> bool {
    let Ok(report) = serde_json::from_str::<Json>(report) else { return false };
    let analyses = report["analyses"].as_array().into_iter().flatten();
    let mut findings = analyses.flat_map(|one| one["findings"].as_array().into_iter().flatten());
    findings.any(|finding| {
        let is_planted = |site: &Json| {
            let name = site["target"]["name"].as_str().unwrap_or_default();
            name == PLANTED || name.ends_with(&format!(".{PLANTED}"))
        };
        let sites = finding["sites"].as_array();
        finding["property"] == RACE && sites.is_some_and(|sites| sites.iter().any(is_planted))
    })
}

/// Whether a program can be found as the shell would.
pub(crate) fn is_there(program: &std::ffi::OsStr) -> bool {
    let path = PathBuf::from(program);
    if path.components().count() > 1 {
        return path.is_file();
    }
    let folders = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&folders).any(|folder| folder.join(&path).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_race_on_the_planted_variable_counts() {
        let report = |property: &str, name: &str| {
            format!(
                r#"{{"analyses":[{{"findings":[{{"property":"{property}","sites":[{{"target":{{"name":"{name}"}}}}]}}]}}]}}"#
            )
        };
        assert!(is_reported(&report(RACE, "Planted.planted")));
        assert!(is_reported(&report(RACE, "planted")));
        assert!(!is_reported(&report(RACE, "transplanted")));
        assert!(!is_reported(&report("atomicity", "planted")));
        assert!(!is_reported("{}") && !is_reported(""));
    }
}
