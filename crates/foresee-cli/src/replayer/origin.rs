//! What a schedule was made from: the program, its arguments and its input.

use std::ffi::OsString;
use std::path::Path;

use foresee_capture::program::Program;
use foresee_capture::replay::{Claim, Schedule, checksum};
use foresee_predict::session::Session;
use foresee_trace::Finding;

use super::verdict::{about, places};

/// The linker's fingerprint of a program, in hexadecimal digits; empty if it has none.
pub(crate) fn build_id(program: &Program) -> String {
    program.build_id().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Completes a schedule: what it is a schedule of.
pub(crate) fn complete(
    schedule: &mut Schedule,
    program: &Program,
    command: &[OsString],
    session: &Session,
    checks: &[String],
    finding: Option<&Finding>,
) {
    schedule.program = command.first().map_or(String::new(), |name| name.to_string_lossy().into());
    schedule.build_id = build_id(program);
    let arguments = command.iter().skip(1);
    schedule.arguments = arguments.map(|argument| argument.to_string_lossy().into()).collect();
    schedule.environment = Some(environment());
    schedule.inputs = inputs(command);
    let specs = session.specs().iter();
    schedule.specs = specs.map(|spec| (spec.name.clone(), spec.text.clone())).collect();
    schedule.checks = checks.to_vec();
    schedule.claim = finding.map(|finding| Claim {
        rule: finding.rule(),
        fingerprint: finding.fingerprint.map_or(String::new(), |print| print.to_string()),
        message: finding.message.clone(),
        places: places(finding).into_iter().collect(),
        about: about(finding),
    });
}

/// A checksum of the environment, without what differs from shell to shell.
fn environment() -> u64 {
    let volatile = ["_", "PWD", "OLDPWD", "SHLVL"];
    let all = std::env::vars_os();
    let mut all: Vec<String> = all
        .map(|(name, value)| format!("{}={}", name.to_string_lossy(), value.to_string_lossy()))
        .filter(|line| {
            let name = line.split('=').next().unwrap_or("");
            !volatile.contains(&name) && !name.starts_with("FORESEE_")
        })
        .collect();
    all.sort();
    checksum(all.join("\n").as_bytes())
}

/// Checksums of files that the program may read: standard input, and those among its arguments.
fn inputs(command: &[OsString]) -> Vec<(String, u64)> {
    let mut all = Vec::new();
    let sum = |path: &Path| {
        let is_file = std::fs::metadata(path).is_ok_and(|about| about.is_file());
        is_file.then(|| std::fs::read(path).ok()).flatten().map(|bytes| checksum(&bytes))
    };
    all.extend(sum(Path::new("/dev/stdin")).map(|sum| ("standard input".to_owned(), sum)));
    for argument in command.iter().skip(1) {
        let name = argument.to_string_lossy().into_owned();
        all.extend(sum(Path::new(argument)).map(|sum| (name, sum)));
    }
    all
}

/// What is different from the run that the schedule was made from.
pub(crate) fn differences(
    schedule: &Schedule,
    program: &Program,
    command: &[OsString],
) -> Vec<String> {
    let mut all = Vec::new();
    if !schedule.build_id.is_empty() && build_id(program) != schedule.build_id {
        all.push("the program is another build than the one of the schedule: places are recognised by function, line and operation".to_owned());
    }
    let arguments = command.iter().skip(1).map(|argument| argument.to_string_lossy());
    if !arguments.eq(schedule.arguments.iter().map(String::as_str)) {
        all.push(format!("the arguments differ; they were: {}", schedule.arguments.join(" ")));
    }
    let now = inputs(command);
    for (name, sum) in &schedule.inputs {
        if !now.iter().any(|(other, now)| other == name && now == sum) {
            all.push(format!("the input differs: {name}"));
        }
    }
    all
}
