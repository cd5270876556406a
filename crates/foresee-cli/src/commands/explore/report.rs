//! What came of an exploration, as text and as JSON.

use std::fmt::Write as _;

use foresee_explore::program::{Failure, Operation, Patience, Program, Told, Value};
use foresee_explore::{Contradiction, Covered, Did, Doubt, Explored, Finding, Stopped, Trouble};
use foresee_predict::info::{DEADLOCK, PROGRAM_FAILURE, SPEC};
use foresee_report::Report;
use foresee_support::count::count;
use serde_json::json;

use super::{REPLAYS, Reported};
use crate::args::ExploreArgs;
use crate::output;

/// What went wrong, in words.
pub(super) fn what(trouble: &Trouble, properties: &[String]) -> String {
    match trouble {
        Trouble::Failed(Failure::Assertion) => "assertion".to_owned(),
        Trouble::Failed(Failure::Abort) => "abort".to_owned(),
        Trouble::Failed(Failure::Signal(signal)) => format!("signal {signal}"),
        Trouble::Failed(Failure::Sanitizer) => "sanitizer".to_owned(),
        Trouble::Exited(status) => format!("exit status {status}"),
        Trouble::Deadlock(_) => DEADLOCK.to_owned(),
        Trouble::Hung => "hang".to_owned(),
        Trouble::Violated(property) => {
            let name = properties.get(*property).map_or("", String::as_str);
            format!("property {name} violated")
        }
    }
}

pub(super) fn claim(finding: &Finding, names: &dyn Program, properties: &[String]) -> String {
    let what = what(&finding.trouble, properties);
    match &finding.trouble {
        Trouble::Deadlock(all) => {
            let stands = all.iter().map(|(thread, operation, place)| {
                format!("{thread} {} at {}", waits(operation), names.place_name(*place))
            });
            format!("deadlock: {}", stands.collect::<Vec<_>>().join("; "))
        }
        _ => {
            let place = names.place_name(finding.place);
            match place.is_empty() {
                true => format!("thread {} ({what})", finding.thread),
                false => format!("{place} ({what})"),
            }
        }
    }
}

/// What a thread of a deadlock waits for.
fn waits(operation: &Operation) -> &'static str {
    match operation {
        Operation::Lock { .. } => "waits for a lock",
        Operation::WaitEnd { .. } => "waits for a condition",
        Operation::Join { .. } => "waits for the end of a thread",
        Operation::SemWait(..) => "waits for a semaphore",
        Operation::Pass(_) => "waits at a barrier",
        Operation::OnceBegin(_) => "waits for what is done once",
        _ => "stands",
    }
}

/// What a thread did, in words.
fn did(did: &Did, names: &dyn Program) -> String {
    let word = match did.operation {
        Operation::Load(_) => "read",
        Operation::Store(..) => "wrote",
        Operation::Modify(..) => "changed",
        Operation::Lock { patience: Patience::Wait, .. } => "locked",
        Operation::Lock { .. } => "tried to lock",
        Operation::Unlock { .. } => "unlocked",
        Operation::Wait { .. } => "waited for a condition",
        Operation::WaitEnd { .. } => "ended a wait",
        Operation::Signal(_) | Operation::Broadcast(_) => "signalled a condition",
        Operation::Fork(_) => "started a thread",
        Operation::Join { .. } => "joined a thread",
        Operation::End(_) => "ended",
        Operation::Exit(_) => "ended the process",
        Operation::Fail(_) => "failed",
        Operation::Mark(_) => "reported an event",
        _ => "used a semaphore, a barrier or a guard",
    };
    let value = match did.told {
        Some(Told::Value(Value::Bits(bits))) => format!(" {bits:#x}"),
        Some(Told::Value(Value::Address(_))) => " an address".to_owned(),
        Some(Told::TimedOut) => " and its time was over".to_owned(),
        Some(Told::Busy) => " and did not get it".to_owned(),
        _ => String::new(),
    };
    format!("{word}{value} at {}", names.place_name(did.place))
}

/// Why coverage is not claimed.
fn doubt(doubt: &Doubt, names: &dyn Program) -> String {
    match doubt {
        Doubt::Contradiction(contradiction) => {
            let Contradiction { thread, after, first_run, first, second_run, second } =
                &**contradiction;
            let (first, second) = (did(first, names), did(second, names));
            match first_run {
                0 => format!(
                    "after {after} operations thread {thread} should have {first} by what was captured, and {second} in run {second_run}: \
                     something changed memory that was not captured"
                ),
                run => format!(
                    "after the same {after} operations thread {thread} {first} in run {run} and {second} in run {second_run}"
                ),
            }
        }
        Doubt::NotModelled { run, thread, place, why, .. } => {
            let place = names.place_name(*place);
            format!(
                "thread {thread} did something in run {run} at {place} that is not understood: {why}"
            )
        }
    }
}

/// With commas between the thousands.
pub(super) fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

pub(super) fn text(
    args: &ExploreArgs,
    called: &str,
    explored: &Explored,
    told: &[Reported],
    names: &dyn Program,
) -> String {
    let mut out = String::new();
    for (finding, told) in explored.findings.iter().zip(told) {
        let detours = plural(finding.detours as usize, "detour");
        let saved = match &told.saved {
            Some(path) => format!("schedule saved as {}", path.display()),
            None => "--keep DIR saves the schedule".to_owned(),
        };
        let _ = writeln!(
            out,
            "FAILED {} in run {}: {detours}, {saved}, replayed {} of {REPLAYS}.",
            told.claim, finding.run, told.confirmed
        );
    }
    for (i, why) in explored.doubts.iter().enumerate() {
        let head = if i == 0 { "NOT A FUNCTION OF ITS TRACE: " } else { "  also: " };
        let _ = writeln!(out, "{head}{}.", doubt(why, names));
    }
    if !explored.doubts.is_empty() {
        out += "  Findings stand, coverage is not claimed. Look for hidden input: time, random numbers, process ids, addresses, files, memory that is not instrumented.\n";
    }
    let (runs, states) = (plural(explored.runs as usize, "run"), plural(explored.states, "state"));
    let conditions = format!(
        "  for this input, at the granularity of captured operations, assuming sequential consistency{} and that each thread acts only on what was captured \
         ({runs}, no contradiction)\n",
        if explored.has_collapsed {
            ", that a thread which did and was told the same twice in a loop is waiting"
        } else {
            ""
        }
    );
    if explored.is_complete() && explored.findings.is_empty() {
        let _ = writeln!(
            out,
            "EXPLORED {called}: {runs}, {states}. Every schedule was covered: no crash, no failed assertion, no deadlock{}.",
            if args.spec.is_empty() { "" } else { ", every property held" }
        );
        out += &conditions;
        return output::plain(&out);
    }
    if explored.is_complete() {
        let _ = writeln!(
            out,
            "EXPLORED {called}: {runs}, {states}. Every schedule was covered; all failures are listed."
        );
        out += &conditions;
        return output::plain(&out);
    }
    let covered = match explored.covered {
        Covered::Everything if !explored.undecided.is_empty() && explored.doubts.is_empty() => {
            "Covered: every schedule, but not every property"
        }
        _ if !explored.doubts.is_empty() || explored.unseen.is_some() => {
            "Nothing is claimed to be covered"
        }
        Covered::Detours(detours) => {
            &format!("Covered: every schedule with at most {}", plural(detours as usize, "detour"))
        }
        Covered::Everything if explored.unreached.is_empty() && !explored.has_cut => {
            "Nothing new was left to run"
        }
        Covered::Everything => "Covered: every schedule but what is listed here",
        Covered::Nothing => "Nothing was covered completely",
    };
    let head = if explored.findings.is_empty() { "NOT ALL" } else { "EXPLORED" };
    let _ = write!(out, "{head} {called}: {runs}, {states}. {covered}.");
    if explored.open > 0 {
        let open = plural(explored.open, "behaviour");
        let were = if explored.open == 1 { "was" } else { "were" };
        let _ = write!(out, " {open} beyond {were} predicted and not run.");
    }
    out.push_str(match explored.stopped {
        Stopped::Found => " It stopped at the first failure; --all goes on.",
        Stopped::Runs | Stopped::Time if args.keep.is_some() => {
            " Continue with the same --keep DIR."
        }
        Stopped::Runs | Stopped::Time => " Continue with --keep DIR.",
        Stopped::States => " The memory for states is used up: --max-memory allows more.",
        Stopped::Interrupted => " It was interrupted.",
        Stopped::Doubts | Stopped::Done => "",
    });
    out.push('\n');
    if let Some(unseen) = &explored.unseen {
        let _ = writeln!(out, "  Part of the program is not captured: {unseen}.");
    }
    for why in &explored.undecided {
        let _ = writeln!(out, "  Not decided for every schedule: {why}. Each run was judged.");
    }
    if explored.has_cut {
        out += "  Loops that wait were cut after some rounds: --spin bound=N follows them further, --spin collapse takes them for waiting.\n";
    }
    for why in explored.unreached.iter().take(5) {
        let _ = writeln!(out, "  Not reached: {why}.");
    }
    if explored.unreached.len() > 5 {
        let _ = writeln!(out, "  Not reached: {} more.", explored.unreached.len() - 5);
    }
    output::plain(&out)
}

pub(super) fn plural(n: usize, word: &str) -> String {
    count(thousands(n as u64), word)
}

pub(super) fn json(
    called: &str,
    explored: &Explored,
    told: &[Reported],
    names: &dyn Program,
    checked: Option<&Report>,
) -> String {
    let (covered, detours) = match explored.covered {
        _ if !explored.doubts.is_empty() || explored.unseen.is_some() => ("nothing", None),
        Covered::Everything if explored.is_complete() => ("everything", None),
        Covered::Everything | Covered::Nothing => ("nothing", None),
        Covered::Detours(detours) => ("detours", Some(detours)),
    };
    let mut findings: Vec<_> = explored
        .findings
        .iter()
        .zip(told)
        .enumerate()
        .map(|(i, (finding, told))| {
            let rule = match finding.trouble {
                Trouble::Deadlock(_) => DEADLOCK,
                Trouble::Violated(_) => SPEC,
                _ => PROGRAM_FAILURE,
            };
            json!({
                "id": i + 1, "kind": "observed", "rule": rule, "message": told.claim,
                "what": what(&finding.trouble, &[]), "thread": finding.thread.to_string(),
                "place": names.place_name(finding.place), "run": finding.run,
                "detours": finding.detours, "replayed": told.confirmed, "replays": REPLAYS,
                "schedule": told.script.text(),
            })
        })
        .collect();
    let observed = findings.len();
    let checked: Option<serde_json::Value> =
        checked.and_then(|report| serde_json::from_str(&foresee_report::json::report(report)).ok());
    let analyses = checked.as_ref().and_then(|report| report["analyses"].as_array());
    for analysis in analyses.into_iter().flatten() {
        findings.extend(analysis["findings"].as_array().into_iter().flatten().cloned());
    }
    let predicted = findings.len() - observed;
    let doubts: Vec<String> = explored.doubts.iter().map(|why| doubt(why, names)).collect();
    let stopped = match explored.stopped {
        Stopped::Done => "done",
        Stopped::Found => "found",
        Stopped::Runs => "runs",
        Stopped::Time => "time",
        Stopped::States => "states",
        Stopped::Interrupted => "interrupted",
        Stopped::Doubts => "contradictions",
    };
    let object = json!({
        "foresee": env!("CARGO_PKG_VERSION"),
        "explored": {
            "program": called, "runs": explored.runs, "states": explored.states,
            "facts": explored.facts, "covered": covered, "detours": detours,
            "open": explored.open, "unreached": explored.unreached, "contradictions": doubts,
            "loops_cut": explored.has_cut, "loops_collapsed": explored.has_collapsed,
            "stopped": stopped, "unseen": explored.unseen,
            "undecided": explored.undecided,
        },
        "findings": findings,
        "summary": {"observed": observed, "predicted": predicted},
    });
    foresee_report::json::visible(&format!("{object}\n"))
}
