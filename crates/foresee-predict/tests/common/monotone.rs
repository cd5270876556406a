//! The monotone rule sets: sections of reorderings so simple that the least tuple of events is
//! found without any choice. They find less than the search, but what they find is certain, and for
//! each of them the pointers that only move forward are exact.
//!
//! All rules bound the slice of an event from above, and lower bounds only follow from lower ones;
//! so there is a greatest solution, found by going round until nothing changes.

use foresee_causality::judge::Reads;
use foresee_testkit::oracle::{matched_notifications, reads_from};
use foresee_trace::{Event, LockId, Op, Trace};

/// Which rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rules {
    /// Among the kept events the order of conflicting accesses and of locks is kept.
    Px,
    /// A write and its reads may move as a block behind a later write.
    Pr,
    /// And a section that was started is finished before an earlier one of its lock starts later.
    Ps,
}

pub(crate) struct Monotone<'t> {
    trace: &'t Trace,
    rules: Rules,
    reads: Reads,
    needs: Vec<Vec<usize>>,
    saw: Vec<Option<usize>>,
    /// Ends of waits with their beginnings and notifications.
    waits: Vec<(usize, usize, usize)>,
    /// Sections: lock, acquire, release.
    sections: Vec<(LockId, usize, Option<usize>)>,
}

fn taken(event: &Event) -> Option<LockId> {
    match event.op() {
        Op::Acquire => Some(event.lock()),
        Op::WaitEnd => event.wait_lock(),
        _ => None,
    }
}

fn given(event: &Event) -> Option<LockId> {
    match event.op() {
        Op::Release => Some(event.lock()),
        Op::WaitBegin => event.wait_lock(),
        _ => None,
    }
}

impl<'t> Monotone<'t> {
    /// For traces without shared holds of locks.
    pub(crate) fn new(trace: &'t Trace, rules: Rules, reads: Reads) -> Monotone<'t> {
        let events = &trace.events;
        let notifications = matched_notifications(trace);
        let mut waits = Vec::new();
        let needs = (0..events.len()).map(|i| {
            let e = &events[i];
            let mut needs: Vec<usize> = notifications[i].into_iter().collect();
            let own = |j: &usize| events[*j].thread() == e.thread() && events[*j].op() != Op::Init;
            let previous = (0..i).rev().find(own);
            needs.extend(previous);
            if previous.is_none() {
                let is_fork = |f: &Event| f.op() == Op::Fork && f.other() == e.thread();
                needs.extend(events.iter().position(is_fork));
            }
            if e.op() == Op::Join {
                needs.extend(events.iter().rposition(|f| f.thread() == e.other()));
            }
            if let (Op::WaitEnd, Some(n), Some(begin)) = (e.op(), notifications[i], previous) {
                waits.push((i, begin, n));
            }
            needs
        });
        let needs = needs.collect();
        let sections = (0..events.len()).filter_map(|i| {
            let lock = taken(&events[i])?;
            let is_end = |j: &usize| {
                given(&events[*j]) == Some(lock) && events[*j].thread() == events[i].thread()
            };
            Some((lock, i, (i..events.len()).find(is_end)))
        });
        let sections = sections.collect();
        Monotone { trace, rules, reads, needs, saw: reads_from(trace), waits, sections }
    }

    /// The slices of all events for a tuple, if there are such; `tuple.len() + 1` is left out.
    pub(crate) fn slices(&self, tuple: &[usize]) -> Option<Vec<usize>> {
        let m = tuple.len();
        let out = m + 1;
        let mut s = vec![out; self.trace.events.len()];
        for (i, &event) in tuple.iter().enumerate() {
            s[event] = s[event].min(i + 1);
        }
        loop {
            let before = s.clone();
            self.round(&mut s, m)?;
            if s == before {
                return Some(s);
            }
        }
    }

    /// Applies all rules once; nothing if one of them can never be met.
    fn round(&self, s: &mut [usize], m: usize) -> Option<()> {
        let events = &self.trace.events;
        let n = events.len();
        let lower = |s: &mut [usize], event: usize, to: usize| s[event] = s[event].min(to);
        for e in (0..n).rev().filter(|&e| events[e].op() != Op::Init) {
            if s[e] <= m {
                self.needs[e].iter().for_each(|&need| lower(s, need, s[e]));
            }
        }
        for &(end, begin, notification) in &self.waits {
            if s[end] <= m {
                lower(s, begin, s[notification]);
            }
        }
        let active: Vec<bool> = (0..n)
            .map(|r| {
                let follows = |e: usize| {
                    s[e] <= m && self.needs[e].contains(&r) && events[e].op() != Op::Init
                };
                events[r].op().reads()
                    && s[r] <= m
                    && (self.reads == Reads::Strict
                        || events[r].op() == Op::Rmw
                        || (0..n).any(follows))
            })
            .collect();
        for r in (0..n).filter(|&r| active[r]) {
            if let Some(w) = self.saw[r] {
                lower(s, w, s[r]);
            }
        }
        self.variable_rules(s, m, &active);
        self.lock_rules(s, m)
    }

    fn variable_rules(&self, s: &mut [usize], m: usize, active: &[bool]) {
        let events = &self.trace.events;
        let accesses: Vec<usize> = (0..events.len())
            .filter(|&i| s[i] <= m && (events[i].op().writes() || active[i]))
            .collect();
        for &a in &accesses {
            for &b in
                accesses.iter().filter(|&&b| b > a && events[b].target() == events[a].target())
            {
                let (writes_a, writes_b) = (events[a].op().writes(), events[b].op().writes());
                match self.rules {
                    Rules::Px if writes_a || writes_b => s[a] = s[a].min(s[b]),
                    Rules::Px => {}
                    Rules::Pr | Rules::Ps => {
                        if active[a] && writes_b {
                            let written = self.saw[a].map_or(0, |w| s[w]);
                            s[a] = s[a].min(s[b].max(written));
                        }
                        let is_read = |&r: &usize| active[r] && self.saw[r] == Some(b);
                        if writes_a && writes_b && accesses.iter().any(is_read) {
                            s[a] = s[a].min(s[b]);
                        }
                    }
                }
            }
        }
    }

    fn lock_rules(&self, s: &mut [usize], m: usize) -> Option<()> {
        for (i, &(lock, a1, r1)) in self.sections.iter().enumerate() {
            for &(_, a2, r2) in self.sections[i + 1..].iter().filter(|section| section.0 == lock) {
                let events = &self.trace.events;
                if s[a1] > m || s[a2] > m || events[a1].thread() == events[a2].thread() {
                    continue;
                }
                let r1 = r1?;
                match (self.rules, r2) {
                    (Rules::Ps, Some(r2)) => {
                        s[r1] = s[r1].min(s[a1].max(s[a2]));
                        let k = s[a2].max(s[a1] - 1);
                        if k < m {
                            s[r2] = s[r2].min(k);
                        }
                    }
                    _ => s[r1] = s[r1].min(s[a2]),
                }
                if self.rules == Rules::Px {
                    for x in [a1, r1] {
                        for y in [Some(a2), r2].into_iter().flatten() {
                            // One that is left out bounds nothing.
                            s[x] = s[x].min(if s[y] <= m { s[y] } else { s[x] });
                        }
                    }
                }
            }
        }
        Some(())
    }

    /// Whether the tuple is shown in its order.
    pub(crate) fn admits(&self, tuple: &[usize]) -> bool {
        let fits = |s: Vec<usize>| tuple.iter().enumerate().all(|(i, &e)| s[e] == i + 1);
        self.slices(tuple).is_some_and(fits)
    }

    /// The order that the slices stand for.
    pub(crate) fn emission(&self, tuple: &[usize]) -> Option<Vec<u64>> {
        let s = self.slices(tuple)?;
        let is_kept = |&e: &usize| s[e] <= tuple.len();
        let mut order: Vec<usize> = (0..s.len()).filter(is_kept).collect();
        order.sort_by_key(|&e| (s[e], e));
        Some(order.into_iter().map(|e| e as u64).collect())
    }

    /// The least tuple of events from these chains, each of one thread, found by pointers that only
    /// move forward.
    pub(crate) fn least(&self, chains: &[Vec<usize>]) -> Option<Vec<usize>> {
        let mut pointers = vec![0; chains.len()];
        loop {
            let tuple: Vec<usize> = chains.iter().zip(&pointers).map(|(c, &p)| c[p]).collect();
            let s = self.slices(&tuple)?;
            let early = (0..tuple.len()).find(|&j| s[tuple[j]] < j + 1);
            let Some(j) = early else { return Some(tuple) };
            pointers[j] += 1;
            if pointers[j] == chains[j].len() {
                return None;
            }
        }
    }
}
