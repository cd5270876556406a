//! `foresee replay`: makes a program follow a schedule, and says whether it fails as predicted.

use std::time::Duration;

use anyhow::{Context, ensure};
use foresee_capture::program::Program;
use foresee_capture::replay::Schedule;
use foresee_explore::script::{self, Script};
use foresee_predict::session::Session;
use serde_json::json;

use crate::args::{Expect, ReplayArgs, ReportFormat};
use crate::commands::explore::{self, Replayed};
use crate::commands::run::catch_signals;
use crate::output::{self, Sink};
use crate::replayer::{self, Debugger, Outcome, Replayer, Shown, Stop};
use crate::{asked, specs, whole_file};

/// The failure happened.
const CONFIRMED: u8 = 1;
/// The schedule was followed, and the failure did not happen; or what was expected is the case.
const FINE: u8 = 0;
/// Nothing is known: the schedule was not followed.
const UNKNOWN: u8 = 3;

pub(crate) fn run(args: &ReplayArgs) -> anyhow::Result<u8> {
    let format = args.analysis.format;
    let is_plain = matches!(format, ReportFormat::Text | ReportFormat::Json);
    ensure!(is_plain, "a replay is reported as text or JSON: use --format text or json");
    let draws = args.analysis.html.is_some()
        || args.analysis.lattice.is_some()
        || args.analysis.nondeterminism.witness_svg.is_some();
    ensure!(
        !draws,
        "a replay draws nothing: use --html, --lattice or --witness-svg with `foresee run`"
    );
    let stop = stop(args)?;
    let name = args.schedule.display();
    let text = whole_file::read(&args.schedule, whole_file::SCHEDULE)?;
    if text.starts_with(script::FIRST) {
        ensure!(
            stop.is_none() && !args.trace,
            "{name} was written by `foresee explore`: --debug, --step and --trace need a schedule of `foresee run`"
        );
        return explored(args, &text);
    }
    let schedule: Schedule = text.parse().with_context(|| format!("{name} is not a schedule"))?;
    let session = session(args, &schedule)?;
    let command = &args.command;
    let called = command[0].to_string_lossy();
    let program =
        Program::find(&command[0]).with_context(|| format!("there is no program `{called}`"))?;
    let mut to = Sink::new(&args.analysis.output)?;
    let differences = replayer::differences(&schedule, &program, command);
    differences.iter().for_each(|difference| output::note(difference));
    catch_signals();
    let replayer = Replayer {
        session: &session,
        program: &program,
        command,
        trusted: &[],
        memory: args.analysis.max_memory.saturating_mul(1 << 20),
        timeout: Duration::from_secs(args.timeout),
        is_silent: args.analysis.text.quiet,
        is_traced: args.trace,
    };
    let outcome = match &stop {
        Some(stop) => replayer.stop(&schedule, stop)?,
        None => replayer.replay(&schedule, None)?,
    };
    let (word, shown, status) = match outcome {
        Outcome::Confirmed(shown) => ("confirmed", shown, CONFIRMED),
        Outcome::Held(shown) => ("held", shown, FINE),
        Outcome::Diverged(how) => ("diverged", plain(how), UNKNOWN),
        Outcome::NotForced(how) => ("not-forced", plain(how), UNKNOWN),
        Outcome::Harmless => {
            let text = match schedule.claim {
                Some(_) => "the program followed the schedule to its end, and did not fail",
                None => "the program followed the schedule to its end",
            };
            ("followed", plain(text), FINE)
        }
    };
    let claim = schedule.claim.as_ref().map_or("", |claim| &claim.message);
    report(args, &mut to, (word, &shown, status), claim)?;
    to.finish()?;
    Ok(expected(args, status))
}

/// Follows a schedule that `foresee explore` wrote.
fn explored(args: &ReplayArgs, text: &str) -> anyhow::Result<u8> {
    let name = args.schedule.display();
    let script = Script::parse(text).with_context(|| format!("{name} is not a schedule"))?;
    let program = Program::find(&args.command[0])
        .with_context(|| format!("there is no program `{}`", args.command[0].to_string_lossy()))?;
    if replayer::build_id(&program) != script.build_id {
        output::note("the schedule is of another build of the program");
    }
    let mut to = Sink::new(&args.analysis.output)?;
    let timeout = Duration::from_secs(args.timeout);
    let is_silent = args.analysis.text.quiet;
    let (word, shown, status) =
        match explore::replay(&script, &args.command, &args.analysis.spec, timeout, is_silent)? {
            Replayed::Confirmed(how) => ("confirmed", plain(how), CONFIRMED),
            Replayed::Diverged(how) => ("diverged", plain(how), UNKNOWN),
            Replayed::Harmless => {
                let text = "the program followed the schedule to its end, and did not fail";
                ("followed", plain(text), FINE)
            }
        };
    report(args, &mut to, (word, &shown, status), &script.claim)?;
    to.finish()?;
    Ok(expected(args, status))
}

/// A result that is known in one sentence.
fn plain(how: impl Into<String>) -> Shown {
    Shown { how: how.into(), ..Shown::default() }
}

/// Reports the result of a replay.
fn report(
    args: &ReplayArgs,
    to: &mut Sink,
    (word, shown, status): (&str, &Shown, u8),
    claim: &str,
) -> anyhow::Result<()> {
    let report = match args.analysis.format {
        ReportFormat::Json => {
            let stacks = shown.stacks.iter();
            let stacks: Vec<_> = stacks
                .map(|stack| json!({"thread": stack.thread, "frames": stack.frames}))
                .collect();
            let object = json!({"foresee": env!("CARGO_PKG_VERSION"), "confirmation": word,
                "how": shown.how, "claim": claim, "schedule": args.schedule.to_string_lossy(),
                "said": shown.said, "stacks": stacks});
            foresee_report::json::visible(&format!("{object}\n"))
        }
        _ => {
            let word = word.replace('-', " ");
            let mut report = format!("{word}: {}\n", output::plain(&shown.how));
            for message in &shown.said {
                report += &format!("  the program said: {}\n", output::plain(message));
            }
            for stack in &shown.stacks {
                report += &format!("  {}:\n", output::plain(&stack.thread));
                for frame in &stack.frames {
                    report += &format!("    {}\n", output::plain(frame));
                }
            }
            if !claim.is_empty() {
                report += &format!("  the schedule claims: {}\n", output::plain(claim));
            }
            if status == UNKNOWN {
                report += "  This refutes nothing: the failure may still be possible.\n";
            }
            report
        }
    };
    to.print(&report)
}

/// The exit status, given what was expected.
fn expected(args: &ReplayArgs, status: u8) -> u8 {
    match args.expect {
        None => status,
        Some(Expect::Confirmed) if status == CONFIRMED => FINE,
        Some(Expect::Confirmed) if status == FINE => CONFIRMED,
        Some(Expect::Confirmed | Expect::Clean) => status,
    }
}

/// Where the program is to be held, if it is.
fn stop(args: &ReplayArgs) -> anyhow::Result<Option<Stop>> {
    if !args.debug && args.step.is_none() {
        return Ok(None);
    }
    ensure!(args.debug || args.trace, "--step needs --debug or --trace");
    ensure!(args.expect.is_none(), "--expect needs a whole replay: leave out --debug and --step");
    ensure!(args.step != Some(0), "steps are counted from 1");
    let step = args.step.map(|step| step - 1);
    let debugger = args.debug.then(|| Debugger::find(args.debugger.as_deref())).transpose()?;
    Ok(Some(Stop { step, debugger }))
}

/// By what the new trace is judged: by what the schedule was made with, unless the command line says otherwise.
fn session(args: &ReplayArgs, schedule: &Schedule) -> anyhow::Result<Session> {
    let mut session = asked::everything(&args.analysis)?;
    if !args.analysis.spec.is_empty() || !args.analysis.check.is_empty() {
        return Ok(session);
    }
    for (name, text) in &schedule.specs {
        let source = specs::Source { name: name.clone(), text: text.clone() };
        session.add_spec(specs::load(&source)?);
    }
    for check in &schedule.checks {
        session.add_check(check).map_err(specs::failed)?;
    }
    if schedule.specs.is_empty() && schedule.checks.is_empty() {
        session.add_default_checks();
    }
    Ok(session)
}
