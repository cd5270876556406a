//! Uses of objects that only relaxed atomics order before the end, as with a reference count that is lowered without
//! releasing.
//!
//! Freeing memory conflicts with every access of it. As with [races](super::super::race), the observed run is an execution of
//! the C11 memory model: if its own [happens-before](LanguageClocks) leaves a use and the end of its object unordered, that is a
//! violation in it, and no reordering is needed to show it. Only those that sequential consistency would order are reported:
//! the others are found without weak memory, or depend on one that is.
//!
//! The [judge](foresee_causality::judge::language) confirms each before it is reported.

use foresee_causality::judge::language::is_ordered;
use foresee_causality::{Clocks, LanguageClocks, Order};
use foresee_trace::{Id, Op, ThreadId, entry};

use super::super::Context;
use super::lives::{Pair, Wrong};
use super::objects::{Objects, Said};
use crate::analysis::AnalysisError;

/// The last use of an object by a thread.
struct Use {
    thread: ThreadId,
    event: u32,
    time: u32,
}

/// The uses of objects, the last of each thread, that happen before the end by sequential consistency alone.
pub(super) fn unordered(
    context: &Context<'_>,
    objects: &Objects,
) -> Result<Vec<Pair>, AnalysisError> {
    let trace = context.trace;
    let uninstrumented = context.uninstrumented();
    let mut strong: Clocks = Clocks::new(Order::HappensBefore);
    let mut language = LanguageClocks::new(&uninstrumented);
    let mut times: Vec<u32> = Vec::new();
    let mut uses: Vec<Vec<Use>> = Vec::new();
    let mut pairs = Vec::new();
    for (index, event) in trace.events.iter().enumerate() {
        let (index, thread) = (index as u32, event.thread());
        if event.op() == Op::Init {
            continue;
        }
        let time = entry(&mut times, thread.index());
        *time += 1;
        strong.event(event)?;
        strong.forget_old(&[]);
        language.event(event);
        language.forget_old();
        let Some((said, object)) = objects.said(event, &trace.pool) else { continue };
        if uninstrumented.contains(&thread) {
            continue;
        }
        let known = entry(&mut uses, object as usize);
        match said {
            Said::Begins => known.clear(),
            Said::Used => {
                known.retain(|used| used.thread != thread);
                known.push(Use { thread, event: index, time: *time });
            }
            Said::Ends(_) => {
                for used in known.drain(..).filter(|used| used.thread != thread) {
                    let is_known = |count: u32| count >= used.time;
                    if is_known(strong.count_now(thread, used.thread))
                        && !is_known(language.count_now(thread, used.thread))
                    {
                        let (first, second) = (index, used.event);
                        pairs.push(Pair { wrong: Wrong::UsedAfterEnd, object, first, second });
                    }
                }
            }
        }
    }
    for pair in &pairs {
        let (used, end) = (pair.second as usize, pair.first as usize);
        if is_ordered(&trace.events, &uninstrumented, used, end) {
            return Err(AnalysisError::Limit(format!(
                "internal error, please report it with the trace: events {used} and {end} are in order by the language's rules"
            )));
        }
    }
    Ok(pairs)
}
