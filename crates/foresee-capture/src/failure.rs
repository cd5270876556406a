//! Describes how and where a program failed.

use std::os::unix::process::ExitStatusExt;

use foresee_trace::{
    Detail, Fact, Finding, FindingKind, Fingerprint, Location, Role, Site, SiteThread, Subject,
    Verdict,
};

use crate::launch::Ended;
use crate::log::{Last, Log, Pc};
use crate::symbols::Symbols;

/// How a program failed, in words: `ended with exit status 7`; `None` if it did not.
pub fn how(ended: &Ended) -> Option<String> {
    match (ended.status.code(), ended.status.signal()) {
        _ if ended.hung.contains(&ended.process) => {
            Some("hung: all its threads waited, and none was left to wake them".to_owned())
        }
        _ if ended.is_stopped => Some("was ended because foresee was asked to stop".to_owned()),
        _ if ended.timed_out => Some(format!("was ended after {} seconds", ended.took.as_secs())),
        _ if ended.status.success() => match ended.hung.len() {
            0 => None,
            1 => Some("started a process that hung".to_owned()),
            n => Some(format!("started {n} processes that hung")),
        },
        (Some(code), _) => Some(format!("ended with exit status {code}")),
        (None, Some(signal)) => Some(format!("was killed by signal {signal}{}", meaning(signal))),
        (None, None) => Some("did not end well".to_owned()),
    }
}

/// The names of the most common signals.
fn meaning(signal: i32) -> &'static str {
    match signal {
        4 => " (SIGILL)",
        6 => " (SIGABRT)",
        7 => " (SIGBUS)",
        8 => " (SIGFPE)",
        9 => " (SIGKILL)",
        11 => " (SIGSEGV)",
        13 => " (SIGPIPE)",
        15 => " (SIGTERM)",
        _ => "",
    }
}

/// The finding that `program` failed, called `name`, with details from its log.
pub fn finding(
    name: &'static str,
    (program, how): (&str, &str),
    ended: &Ended,
    log: Option<(&Log, &Symbols)>,
) -> Finding {
    let mut finding = Finding {
        fingerprint: None,
        kind: FindingKind::Observed,
        analysis: name,
        property: name.to_owned(),
        verdict: if ended.hung.is_empty() { Verdict::Failed } else { Verdict::Hung },
        message: format!("{program} {how}"),
        event: None,
        witness: None,
        sites: Vec::new(),
        about: Vec::new(),
        details: Vec::new(),
        shown_by: None,
        schedule: None,
        confirmation: None,
    };
    if let Some((log, symbols)) = log {
        add_places(&mut finding, ended, log, symbols);
    }
    finding.fingerprint = Some(Fingerprint::of(&finding, |_| 0));
    finding
}

/// Adds what the log shows about the failure.
fn add_places(finding: &mut Finding, ended: &Ended, log: &Log, symbols: &Symbols) {
    let place = |pc: Pc| symbols.place(pc.address.wrapping_sub(1)).to_string();
    if ended.timed_out || ended.hung.contains(&log.header.pid) {
        for (thread, pc) in log.last_places() {
            let name = log.thread_name(thread);
            let fact = Fact::LastSeen(finding.sites.len());
            finding.sites.push(site(Role::LastSeen, &name, &place(pc)));
            finding.details.push(Detail::new(name, fact));
        }
        return;
    }
    let told = log.header.last.and_then(|(last, pc, thread)| {
        let what = match (last, ended.status.code(), ended.status.signal()) {
            (Last::Exit(status), Some(code), _) if i32::from(status) == code => "the call of exit",
            (Last::Abort, _, Some(6)) => "the call of abort",
            (Last::Assertion, _, Some(6)) => "the assertion that failed",
            (Last::Fault(s), _, Some(signal)) if i32::from(s) == signal => {
                "the instruction that failed"
            }
            (Last::Raise(s), _, Some(signal)) if i32::from(s) == signal => "the call of raise",
            _ => return None,
        };
        Some((what, log.place(pc), thread))
    });
    let of = |thread: u32| log.last_places().find(|(number, _)| *number == thread);
    if let Some((what, pc, thread)) = told {
        let name = Subject::Thread(log.thread_name(thread));
        finding.details.push(Detail::new("thread", Fact::Subject(name)));
        // Libraries, and our runtime, abort and fault because of what their callers did.
        let stack = log.header.stack.iter().map(|&word| log.place(word));
        let stack = stack.filter(|pc| pc.module.is_some_and(|m| log.modules[m].instrumented));
        let mut known = std::iter::once(pc).chain(stack).filter(|&pc| is_own(symbols, pc));
        if let Some(pc) = known.next() {
            add_place(finding, what, site(Role::Failure, &log.thread_name(thread), &place(pc)));
        } else if let Some((_, pc)) = of(thread) {
            let site = site(Role::LastSeen, &log.thread_name(thread), &place(pc));
            add_place(finding, "the last step seen of the thread", site);
        }
    } else if let Some((_, pc)) = of(1) {
        let site = site(Role::LastSeen, &log.thread_name(1), &place(pc));
        add_place(finding, "the last step seen of main", site);
    }
}

/// A place where a thread was.
fn site(role: Role, thread: &str, place: &str) -> Site {
    Site {
        thread: Some(SiteThread { name: thread.to_owned(), forked: None }),
        frames: Location::parse(place).into_iter().collect(),
        ..Site::new(role, None)
    }
}

/// Adds a site under this label, if its place is known.
fn add_place(finding: &mut Finding, label: &str, site: Site) {
    if site.location().is_some() {
        finding.details.push(Detail::new(label, Fact::Place(finding.sites.len())));
        finding.sites.push(site);
    }
}

/// Whether a location is in the program's own code with known lines.
fn is_own(symbols: &Symbols, pc: Pc) -> bool {
    let place = symbols.place(pc.address.wrapping_sub(1));
    let is_ours = |name: &String| name.starts_with("foresee_rt::");
    place
        .0
        .first()
        .is_some_and(|frame| frame.line.is_some() && !frame.function.as_ref().is_some_and(is_ours))
}
