//! Whether a run along a schedule shows what the schedule claims.

use std::collections::BTreeSet;

use foresee_capture::replay::script::{After, Mode, Way};
use foresee_capture::replay::{Claim, Schedule, State, is_sized};
use foresee_trace::{Finding, FindingKind, Verdict};

use super::{Attempt, Shown};

/// Whether what was found is what a schedule claims.
pub(super) fn convicts(claim: &Claim, found: &Finding) -> bool {
    if found.kind == FindingKind::Conditional {
        return false;
    }
    let is_observed = found.kind == FindingKind::Observed;
    let Some((check, verdict)) = claim.rule.split_once('/') else {
        return is_observed && found.rule() == claim.rule;
    };
    let blocks = [
        Verdict::LockCycle,
        Verdict::Stall,
        Verdict::EndlessWait,
        Verdict::LockNeverReleased,
        Verdict::Stuck,
    ];
    if blocks.iter().any(|blocks| blocks.word() == verdict) {
        // Which of the words fits a ring depends on who waits besides.
        return is_observed && found.property == check;
    }
    if found.property != check || !is_observed && found.rule() != claim.rule {
        return false;
    }
    // What was predicted of one access of a line may be seen at another.
    let is_known = found.fingerprint.is_some_and(|found| found.to_string() == claim.fingerprint);
    is_known
        || places(found) == claim.places.iter().cloned().collect()
        // A region that was disturbed shows it by other conflicts than the predicted ones.
        || is_observed && !claim.about.is_empty() && about(found) == claim.about
}

/// What a finding is about as a whole.
pub(super) fn about(finding: &Finding) -> Vec<String> {
    finding.about.iter().map(|subject| format!("{} {}", subject.kind(), subject.name())).collect()
}

/// Where a finding happens.
pub(super) fn places(finding: &Finding) -> BTreeSet<String> {
    let places = finding.sites.iter().filter_map(|site| site.location());
    places.map(ToString::to_string).collect()
}

/// The most bytes of one access.
const WIDEST: u64 = 16;

/// Whether the accesses of a race, if that is claimed, were to the same memory. Two threads can stand at the same places with
/// different objects: a race check that knows nothing of how the objects are handed on would still see a race there.
fn meets(schedule: &Schedule, [last, before]: [u64; 2]) -> bool {
    let is_race = schedule.claim.as_ref().is_some_and(|claim| claim.rule.starts_with("race/"));
    let steps = schedule.steps.len();
    let are_sized = schedule.steps[steps.saturating_sub(2)..].iter().all(|step| is_sized(step.tag));
    !is_race || !are_sized || last.abs_diff(before) < WIDEST
}

/// How an attempt confirms what the schedule claims, if it does. `usual` is what the program says when it is not forced.
pub(super) fn confirms(
    schedule: &Schedule,
    attempt: &Attempt,
    way: Way,
    usual: impl FnOnce() -> anyhow::Result<Vec<String>>,
) -> anyhow::Result<Option<Shown>> {
    let is_followed = attempt.progress.state == State::Followed;
    let way = match (way.mode, way.after, way.sleeps) {
        (_, _, true) => "with real sleeps",
        (_, After::ViolatorFirst, _) => "and its thread continued first",
        (_, After::OthersFirst, _) => "and the other threads continued first",
        (Mode::Strict, ..) => "every step was as predicted",
        (Mode::Switch, ..) => "threads changed as predicted",
    };
    let failed = attempt.failed.as_ref().filter(|how| **how != schedule.observed_end);
    let path = if is_followed { way } else { "on another path than predicted" };
    let convicted = match &attempt.convicted {
        // A race is two threads at their accesses at once, and a ring stands still only at the schedule's end.
        Some(_) if !is_followed && schedule.claims_check() => None,
        Some(_) if !meets(schedule, attempt.progress.met) => None,
        convicted => convicted.as_ref(),
    };
    let mut said = attempt.said.clone();
    if !said.is_empty() {
        let usual = usual()?;
        said.retain(|message| !usual.contains(message));
    }
    let spoke = match said.as_slice() {
        [] => String::new(),
        [message] => format!(" ({message})"),
        [message, more @ ..] => format!(" ({message}, and {} more)", more.len()),
    };
    let how = match (convicted, failed) {
        (Some(_), None) if said.is_empty() => format!("the violation happened; {path}"),
        (Some(_), None) => {
            format!("the violation happened, and the program reported it{spoke}; {path}")
        }
        (Some(_), Some(how)) => {
            format!("the violation happened, and the program {how}{spoke}; {path}")
        }
        (None, Some(how)) if is_followed => format!("the program {how}{spoke}; {path}"),
        (None, None) if is_followed && said.iter().any(|message| is_sanitizer(message)) => {
            format!("a sanitizer in the program reported a failure{spoke}; {path}")
        }
        _ => return Ok(None),
    };
    Ok(Some(Shown { how, said, stacks: attempt.stacks.clone() }))
}

/// Whether a message is of a sanitizer, which need not end the program.
fn is_sanitizer(message: &str) -> bool {
    message.split_once(": ").is_some_and(|(name, _)| name.ends_with("Sanitizer"))
}
