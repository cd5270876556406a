//! Known requirements of some events of each thread.
//!
//! To decide whether a goal is conceivable, the search follows everything that it needs, back to its
//! first event. That is expensive if its events are far apart; but then one of them nearly always
//! needs another, by a chain of values that were read. So the clock of a thread is kept at intervals:
//! for each thread, the latest event that is needed. An event needs whatever the landmark before it
//! needs. This never rules out a conceivable goal, and it need not rule out an inconceivable one.
//!
//! Landmarks follow program order, forks, joins and the writes that reads saw: all of them, or only
//! those that no other write of the same value could replace.

use foresee_causality::{Clock, ClockStore};
use foresee_trace::ThreadId;

use super::goal::{Goal, Sight};
use super::requirements::Requirements;
use crate::needs::{Kind, NONE};

/// The number of events of a thread from one landmark to the next.
pub(super) const STRIDE: u32 = 64;
/// Goals whose events are nearer than this do not use landmarks.
pub(super) const FAR: u32 = 4096;

/// The landmarks of a trace.
#[derive(Debug, Default)]
pub(crate) struct Landmarks {
    store: ClockStore,
    /// For each thread, the events with a landmark in their order, and what they need.
    threads: Vec<Vec<(u32, Clock)>>,
}

#[derive(Clone, Debug, Default)]
struct Thread {
    known: Clock,
    count: u32,
}

impl Landmarks {
    /// Places landmarks at regular intervals in each thread, for reads that must see this.
    pub(super) fn new(requirements: &Requirements, stride: u32, sight: Sight) -> Landmarks {
        let is_bound = |read: u32| sight == Sight::Writers || !requirements.is_free(read);
        let mut this = Landmarks::default();
        this.threads.resize(requirements.thread_count(), Vec::new());
        let mut threads = vec![Thread::default(); requirements.thread_count()];
        // What the last write of each variable and each fork needs; clocks count from one.
        let mut written = vec![Clock::EMPTY; requirements.object_count().div_ceil(2)];
        let mut kept = 0;
        for event in 0..requirements.len() as u32 {
            let (kind, t) = (requirements.kind(event), requirements.thread(event) as usize);
            if kind == Kind::Init {
                continue;
            }
            let mut known = threads[t].known;
            let object = requirements.object(event);
            let store = &mut this.store;
            let mut hear = |other: u32, needs: Clock| {
                let of = ThreadId(requirements.thread(other));
                if store.get(known, of)[0] <= other {
                    known = store.learn(known, needs, of, [other + 1]);
                }
            };
            if !requirements.has_previous(event) && requirements.previous(event) != NONE {
                // By now its parent knows more, so only the fork itself counts.
                hear(requirements.previous(event), Clock::EMPTY);
            }
            let partner = requirements.partner(event);
            match kind {
                Kind::Read | Kind::Rmw if partner != NONE && object != NONE && is_bound(event) => {
                    hear(partner, written[(object / 2) as usize]);
                }
                Kind::Join if partner != NONE => {
                    hear(partner, threads[requirements.thread(partner) as usize].known);
                }
                _ => {}
            }
            if kind.writes() && object != NONE {
                written[(object / 2) as usize] = known;
            }
            threads[t].known = known;
            threads[t].count += 1;
            if threads[t].count.is_multiple_of(stride) {
                this.threads[t].push((event, known));
                kept += 1;
            }
            if this.store.is_worth_collecting(written.len() + kept) {
                let marks = this.threads.iter().flatten().map(|mark| mark.1);
                let now = threads.iter().map(|thread| thread.known);
                this.store.collect(marks.chain(now).chain(written.iter().copied()));
            }
        }
        this
    }

    /// Whether what is needed for `event` to be next certainly contains another event.
    fn needs(&self, event: u32, other: u32, requirements: &Requirements) -> bool {
        let (t, u) = (requirements.thread(event), requirements.thread(other));
        if t == u {
            return other < event;
        }
        let marks = &self.threads[t as usize];
        let Some(at) = marks.partition_point(|mark| mark.0 < event).checked_sub(1) else {
            return false;
        };
        self.store.get(marks[at].1, ThreadId(u))[0] > other
    }

    /// Whether a goal is certainly not conceivable: one of its events needs another that is to come
    /// later.
    pub(super) fn rule_out(&self, goal: &Goal<'_>, requirements: &Requirements) -> bool {
        let needs = |event: u32, other: u32| self.needs(event, other, requirements);
        let executed = goal.executed;
        executed.iter().enumerate().any(|(i, wanted)| {
            executed[i + 1..].iter().any(|later| needs(wanted.event, later.event))
                || goal.next.iter().any(|&next| needs(wanted.event, next))
        }) || goal
            .next
            .iter()
            .any(|&next| goal.next.iter().any(|&other| next != other && needs(next, other)))
    }
}

#[cfg(test)]
mod tests {
    use foresee_causality::judge::Reads;
    use foresee_testkit::random_trace;
    use foresee_trace::{Op, Trace};

    use super::super::goal::Wanted;
    use super::super::repair::Search;
    use super::*;

    /// Only inconceivable goals are ruled out. Without waits and failed try-locks, and with a
    /// landmark at every event, all of them are, except through forks.
    #[test]
    fn what_is_ruled_out_is_not_conceivable() {
        let (mut ruled_out, mut missed) = (0, 0);
        for seed in 0..600 {
            let trace = random_trace(seed);
            let mut requirements = Requirements::default();
            let Trace { events, pool, .. } = &trace;
            events.iter().for_each(|event| requirements.push(event, pool).unwrap());
            requirements.finish();
            let dense = Landmarks::new(&requirements, 1, Sight::Values);
            let sparse = Landmarks::new(&requirements, 3, Sight::Values);
            let mut search = Search::new(&requirements, Reads::Terminal);
            let is_step = |e: &u32| trace.events[*e as usize].op() != Op::Init;
            let events: Vec<u32> = (0..trace.events.len() as u32).filter(is_step).collect();
            for &e in &events {
                for &f in events.iter().filter(|&&f| f != e) {
                    let wanted = |event| Wanted { event, keeps_value: false };
                    let both = [wanted(e), wanted(f)];
                    let goals = [
                        Goal { executed: &[], next: &[e, f] },
                        Goal { executed: &both[..1], next: &[f] },
                        Goal { executed: &both, next: &[] },
                    ];
                    for goal in &goals {
                        let is_conceivable = search.is_conceivable(goal);
                        let by_dense = dense.rule_out(goal, &requirements);
                        assert!(!(by_dense && is_conceivable), "{seed}: {goal:?}\n{trace}");
                        let by_sparse = sparse.rule_out(goal, &requirements);
                        assert!(by_dense || !by_sparse, "{seed}: {goal:?}\n{trace}");
                        ruled_out += usize::from(by_dense);
                        missed += usize::from(!by_dense && !is_conceivable);
                    }
                }
            }
        }
        assert!(ruled_out > 10_000 && missed * 4 < ruled_out, "{ruled_out} {missed}");
    }
}
