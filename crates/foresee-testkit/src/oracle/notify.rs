//! Which notification ended which wait.
//!
//! A trace does not record this. The rule works on a stream, and it finds a match wherever the
//! events allow one.

use foresee_trace::{Op, ThreadId, Trace};

/// A thread between the beginning and the end of its wait.
struct Waiting {
    thread: ThreadId,
    condition: u32,
    began: usize,
    /// The notification assigned to it so far.
    notification: Option<usize>,
}

/// For each event that ends a wait, the notification that ended it, if there is one; otherwise the
/// wait timed out, was interrupted, or ended spuriously.
///
/// - A `notify` goes to the thread that has waited longest among those that have none yet, a
///   `notify_all` to each thread that has none yet.
/// - A wait that ends without one takes over the earliest `notify` that came after the wait began
///   and was assigned to another thread still waiting: which thread it woke is up to the machine.
/// - The end of a wait whose beginning was not recorded goes with the latest notification.
pub fn matched_notifications(trace: &Trace) -> Vec<Option<usize>> {
    let mut matched = vec![None; trace.events.len()];
    let mut waiting: Vec<Waiting> = Vec::new();
    for (i, event) in trace.events.iter().enumerate() {
        let waits_here = |w: &Waiting| Some(w.condition) == event.target();
        match event.op() {
            Op::WaitBegin => waiting.push(Waiting {
                thread: event.thread(),
                condition: event.cond().0,
                began: i,
                notification: None,
            }),
            Op::Notify | Op::NotifyAll => {
                let most = if event.op() == Op::Notify { 1 } else { usize::MAX };
                waiting
                    .iter_mut()
                    .filter(|w| waits_here(w) && w.notification.is_none())
                    .take(most)
                    .for_each(|w| w.notification = Some(i));
            }
            Op::WaitEnd => {
                let own = waiting.iter().position(|w| waits_here(w) && w.thread == event.thread());
                let Some(own) = own else { continue };
                let own = waiting.remove(own);
                matched[i] = own.notification.or_else(|| {
                    waiting
                        .iter_mut()
                        .filter(|w| waits_here(w))
                        .filter(|w| {
                            w.notification.is_some_and(|n| {
                                n > own.began && trace.events[n].op() == Op::Notify
                            })
                        })
                        .min_by_key(|w| w.notification)
                        .and_then(|w| w.notification.take())
                });
            }
            Op::Wait => {
                matched[i] = trace.events[..i].iter().rposition(|e| {
                    matches!(e.op(), Op::Notify | Op::NotifyAll) && e.target() == event.target()
                });
            }
            _ => {}
        }
    }
    matched
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace;

    #[test]
    fn the_longest_waiting_thread_is_notified_first() {
        let trace = trace! {
            T1: wait_begin(c); T2: wait_begin(c); T3: notify(c), notify(c);
            T2: wait_end(c); T1: wait_end(c)
        };
        assert_eq!(matched_notifications(&trace)[4..], [Some(3), Some(2)]);
    }

    #[test]
    fn a_thread_that_wakes_first_takes_over_the_notification() {
        let trace = trace! {
            T1: wait_begin(c); T2: wait_begin(c); T3: notify(c);
            T2: wait_end(c); T1: wait_end(c)
        };
        assert_eq!(matched_notifications(&trace)[3..], [Some(2), None]);
    }

    #[test]
    fn no_wait_takes_over_what_came_before_it() {
        let trace = trace! {
            T1: wait_begin(c); T3: notify(c); T2: wait_begin(c), wait_end(c); T1: wait_end(c)
        };
        assert_eq!(matched_notifications(&trace)[3..], [None, Some(1)]);
    }

    #[test]
    fn all_are_woken_by_one_event_and_conditions_are_apart() {
        let trace = trace! {
            T1: wait_begin(c); T2: wait_begin(c); T4: wait_begin(d); T3: notify_all(c);
            T2: wait_end(c); T1: wait_end(c); T4: wait_end(d)
        };
        assert_eq!(matched_notifications(&trace)[4..], [Some(3), Some(3), None]);
    }

    #[test]
    fn a_bare_wait_goes_with_the_latest_notification() {
        let trace = trace! { T1: notify(c), notify(c); T2: wait(c); T3: wait(c), wait(d) };
        assert_eq!(matched_notifications(&trace)[2..], [Some(1), Some(1), None]);
    }
}
