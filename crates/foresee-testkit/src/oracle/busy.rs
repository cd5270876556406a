//! Which critical section made a try-lock fail.
//!
//! A failed try-lock shows its thread that the lock was held. Just as a read keeps the write that
//! it saw, it keeps the critical section that blocked it: the earliest one that had begun and not
//! ended.

use foresee_trace::{Op, Trace};

use super::reorder::{given, taken};

/// For a failed try-lock, the beginning of the critical section that blocked it, and its end, if
/// any.
pub(super) fn section_in_the_way(trace: &Trace, busy: usize) -> Option<(usize, Option<usize>)> {
    let event = &trace.events[busy];
    let shared = match event.op() {
        Op::Busy => false,
        Op::BusyShared => true,
        _ => return None,
    };
    let others =
        trace.events[..busy].iter().enumerate().filter(|(_, e)| e.thread() != event.thread());
    for (begin, other) in others {
        let Some(hold) = taken(other).filter(|hold| hold.0 == event.lock()) else { continue };
        let of_thread = |e: &foresee_trace::Event| e.thread() == other.thread();
        let gives = |e: &foresee_trace::Event| of_thread(e) && given(e) == Some(hold);
        let end = trace.events[begin..].iter().position(gives).map(|at| begin + at);
        let is_open = end.is_none_or(|end| end > busy);
        if is_open && !(shared && hold.1) {
            return Some((begin, end));
        }
    }
    None
}
