//! Steps of schedules, and where threads did something else, in words.

use foresee_capture::log::Log;
use foresee_capture::replay::script::{self, Mode};
use foresee_capture::replay::{Got, Place, Reason, Schedule, State, op_name};
use foresee_capture::symbols::Symbols;

use super::Attempt;

/// How far an attempt came, and why not further.
pub(super) fn describe(schedule: &Schedule, mode: Mode, attempt: &Attempt) -> (usize, String) {
    let told = script::told(schedule, mode);
    let at = attempt.progress.at as usize;
    let step = told.get(at).copied();
    let of = schedule.steps.len();
    let expected = step.map_or("nothing".to_owned(), |step| step_text(schedule, step));
    let number = step.map_or(of, |step| step + 1);
    let got = &attempt.got;
    let text = match attempt.progress.state {
        State::Diverged(reason) => match reason {
            Reason::OtherStep | Reason::OtherPlace | Reason::OtherValue => {
                format!("at step {number} of {of}: expected {expected}; got {got}")
            }
            Reason::NotStarted => {
                format!(
                    "at step {number} of {of}: expected {expected}; its thread was never started"
                )
            }
            Reason::Ended => {
                format!("at step {number} of {of}: expected {expected}; its thread ended")
            }
            Reason::Busy => format!(
                "at step {number} of {of}: expected {expected}; another thread holds what {got} needs"
            ),
            Reason::DidNotBlock => format!(
                "at step {number} of {of}: expected {expected}, which should have waited and did not"
            ),
            Reason::Stalled => format!(
                "at step {number} of {of}: expected {expected}; all threads sleep, and nothing wakes them"
            ),
            Reason::Lost => format!(
                "at step {number} of {of}: expected {expected}; its thread goes on and on and does not come to that, last with {got}"
            ),
            Reason::Unreadable => "the runtime could not read the schedule".to_owned(),
        },
        _ => match &attempt.failed {
            Some(how) => {
                format!("at step {number} of {of}: expected {expected}; the program {how}")
            }
            None => format!(
                "at step {number} of {of}: expected {expected}; the program ended, or took too long"
            ),
        },
    };
    (number, text)
}

/// A step in words.
pub(super) fn step_text(schedule: &Schedule, i: usize) -> String {
    let step = &schedule.steps[i];
    let name = schedule.threads.get(step.thread).map_or("", |thread| &*thread.name);
    let value = step.value.map_or(String::new(), |value| format!(" = {value:#x}"));
    let place = match step.comment.as_str() {
        "" if step.place == Place::None => String::new(),
        "" => format!(" at {}", step.place),
        comment => format!(" at {comment}"),
    };
    format!("{} ({name}): {}{value}{place}", schedule.path(step.thread), op_name(step.tag))
}

/// What a thread did, in words.
pub(super) fn got(schedule: &Schedule, got: &Got, log: &Log, symbols: &Symbols) -> String {
    if got.tag == 0 && got.pc == 0 {
        return "nothing".to_owned();
    }
    let name = match schedule.threads.get(got.thread) {
        Some(thread) => format!("{} ({})", schedule.path(got.thread), thread.name),
        None => "a thread that is not in the schedule".to_owned(),
    };
    let place = symbols.place(log.place(got.pc).address.wrapping_sub(1)).to_string();
    let place =
        if got.pc == 0 || place.is_empty() { String::new() } else { format!(" at {place}") };
    let value = if got.tag < 0x40 { format!(" = {:#x}", got.value) } else { String::new() };
    format!("{name}: {}{value}{place}", op_name(got.tag))
}
