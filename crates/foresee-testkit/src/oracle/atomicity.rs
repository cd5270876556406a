//! Atomic regions, directly from the definitions.
//!
//! A *transaction* is a declared region (the outermost, if regions are nested) or a single event
//! outside all regions. Two transactions conflict if they access a variable that one of them
//! writes. An order of events is *serialisable* if no transaction comes, through conflicts and the
//! order of threads, both before and after another one.

use std::collections::{BTreeMap, BTreeSet};

use foresee_trace::{Event, LockId, Op, ThreadId, Trace};

use super::reorder::{Reads, Reorderings, State, Step};

/// The grouping of events into transactions.
#[derive(Debug)]
pub struct Transactions {
    /// For each event its transaction.
    of: Vec<usize>,
    /// Whether it is a declared region.
    is_region: Vec<bool>,
}

impl Transactions {
    /// The transactions of a trace whose regions are declared by `begin` and `end`.
    pub fn new(trace: &Trace) -> Transactions {
        let mut of = Vec::new();
        let mut is_region = Vec::new();
        for (i, event) in trace.events.iter().enumerate() {
            let own = || trace.events[..i].iter().filter(|e| e.thread() == event.thread());
            let begins = own().filter(|e| e.op() == Op::Begin).count();
            let ends = own().filter(|e| e.op() == Op::End).count();
            if begins > ends && event.op() != Op::Init {
                let before = (0..i).rev().find(|&j| {
                    trace.events[j].thread() == event.thread() && trace.events[j].op() != Op::Init
                });
                of.push(before.map_or(is_region.len(), |j| of[j]));
            } else {
                of.push(is_region.len());
                is_region.push(event.op() == Op::Begin);
            }
        }
        Transactions { of, is_region }
    }

    /// The transaction of an event.
    pub fn of(&self, event: usize) -> usize {
        self.of[event]
    }

    /// The declared region that an event is in.
    pub fn region(&self, event: usize) -> Option<usize> {
        Some(self.of[event]).filter(|&transaction| self.is_region[transaction])
    }
}

fn is_access(event: &Event) -> bool {
    event.op().reads() || event.op().writes()
}

/// Whether two events access one variable and one of them writes it.
pub fn conflict(a: &Event, b: &Event) -> bool {
    is_access(a) && is_access(b) && a.var() == b.var() && (a.op().writes() || b.op().writes())
}

/// The edges between transactions that an event adds after those that happened before it.
fn edges<'a>(
    trace: &'a Trace,
    transactions: &'a Transactions,
    before: impl Iterator<Item = usize> + 'a,
    event: usize,
) -> impl Iterator<Item = (usize, usize)> + 'a {
    let events = &trace.events;
    before
        .filter(move |&e| {
            events[e].thread() == events[event].thread() || conflict(&events[e], &events[event])
        })
        .map(move |e| (transactions.of(e), transactions.of(event)))
        .filter(|(a, b)| a != b)
}

/// Whether a graph has a cycle, by repeatedly removing nodes without successors.
fn is_cyclic(edges: &BTreeSet<(usize, usize)>) -> bool {
    let mut left = edges.clone();
    loop {
        let sources: BTreeSet<usize> = left.iter().map(|e| e.0).collect();
        let before = left.len();
        left.retain(|(_, to)| sources.contains(to));
        if left.len() == before {
            return !left.is_empty();
        }
    }
}

/// Whether an order of some events is equivalent to one in which each transaction is uninterrupted.
pub fn is_serialisable(trace: &Trace, order: &[usize]) -> bool {
    let transactions = Transactions::new(trace);
    let mut graph = BTreeSet::new();
    for (i, &event) in order.iter().enumerate() {
        graph.extend(edges(trace, &transactions, order[..i].iter().copied(), event));
    }
    !is_cyclic(&graph)
}

/// The regions that the observed order breaks, by their transactions, each with the first access
/// that breaks it.
///
/// An access `a` breaks its region if it conflicts with an earlier event `e` of a transaction that
/// comes after the region, in the graph of transactions of everything before `a`, unless `e`
/// precedes an earlier event of the thread of `a` anyway.
pub fn broken_regions(trace: &Trace) -> BTreeMap<usize, usize> {
    let transactions = Transactions::new(trace);
    let mut graph: BTreeSet<(usize, usize)> = BTreeSet::new();
    let mut broken = BTreeMap::new();
    let before = comes_before(trace);
    for (event, it) in trace.events.iter().enumerate() {
        if it.op() == Op::Init {
            continue;
        }
        let is_step = |&e: &usize| trace.events[e].op() != Op::Init;
        let new: BTreeSet<(usize, usize)> =
            edges(trace, &transactions, (0..event).filter(is_step), event).collect();
        if let Some(region) = transactions.region(event) {
            let mut after = BTreeSet::from([region]);
            loop {
                let next = graph.iter().filter(|(from, _)| after.contains(from)).map(|e| e.1);
                let more: BTreeSet<usize> = next.filter(|to| !after.contains(to)).collect();
                if more.is_empty() {
                    break;
                }
                after.extend(more);
            }
            let own = || (0..event).filter(|&e| trace.events[e].thread() == it.thread());
            let breaks = |&e: &usize| {
                trace.events[e].thread() != it.thread()
                    && conflict(&trace.events[e], it)
                    && after.contains(&transactions.of(e))
                    && !own().any(|own| before[e][own])
            };
            if (0..event).filter(is_step).any(|e| breaks(&e)) {
                broken.entry(region).or_insert(event);
            }
        }
        graph.extend(new);
    }
    broken
}

/// Whether some order with the same order of conflicts and threads, in which other regions may be
/// interrupted, does not interrupt the region: nothing else comes after one of its events and
/// before another.
pub fn can_be_in_one_piece(trace: &Trace, region: usize) -> bool {
    let transactions = Transactions::new(trace);
    let before = comes_before(trace);
    let all = 0..trace.events.len();
    let is_its = |e: &usize| transactions.region(*e) == Some(region);
    !all.clone().filter(|e| !is_its(e)).any(|e| {
        all.clone().filter(is_its).any(|a| before[a][e])
            && all.clone().filter(is_its).any(|a| before[e][a])
    })
}

/// For each pair of events, whether the first comes before the second by the order of threads and
/// conflicts alone.
fn comes_before(trace: &Trace) -> Vec<Vec<bool>> {
    let events = &trace.events;
    let mut before = vec![vec![false; events.len()]; events.len()];
    let is_step = |e: usize| events[e].op() != Op::Init;
    for b in (0..events.len()).filter(|&b| is_step(b)) {
        for a in (0..b).filter(|&a| is_step(a)) {
            let same = events[a].thread() == events[b].thread();
            if same || conflict(&events[a], &events[b]) {
                before[a][b] = true;
                for row in before.iter_mut().take(a) {
                    row[b] |= row[a];
                }
            }
        }
    }
    before
}

/// The triples `[a1, b, a2]` of accesses that no serial order has if they happen in this order:
/// `a1` and `a2` in a region, `b` of another thread. Between `a1` and `a2` the region does not
/// access the variable or, for a read between two writes, does not write it. Three writes do not
/// count.
pub fn triples(trace: &Trace) -> Vec<[usize; 3]> {
    let transactions = Transactions::new(trace);
    let events = &trace.events;
    let mut found = Vec::new();
    for a1 in 0..events.len() {
        for a2 in a1 + 1..events.len() {
            let together = transactions.region(a1).is_some()
                && transactions.of(a1) == transactions.of(a2)
                && is_access(&events[a1])
                && is_access(&events[a2])
                && events[a1].var() == events[a2].var();
            if !together {
                continue;
            }
            let between = (a1 + 1..a2).filter(|&e| {
                transactions.of(e) == transactions.of(a1)
                    && is_access(&events[e])
                    && events[e].var() == events[a1].var()
            });
            let is_consecutive = between.clone().next().is_none();
            let is_unwritten = !between.clone().any(|e| events[e].op().writes());
            let (one, two) = (events[a1].op(), events[a2].op());
            for (b, other) in events.iter().enumerate() {
                if other.thread() == events[a1].thread()
                    || !is_access(other)
                    || other.var() != events[a1].var()
                {
                    continue;
                }
                let around_write =
                    is_consecutive && other.op().writes() && (one.reads() || two.reads());
                let around_read =
                    is_unwritten && other.op().reads() && one.writes() && two.writes();
                if around_write || around_read {
                    found.push([a1, b, a2]);
                }
            }
        }
    }
    found
}

/// The locks that a thread holds just before an event, each with the event that acquired it.
fn held(trace: &Trace, event: usize) -> Vec<(LockId, usize)> {
    let mut held = Vec::new();
    for (i, e) in trace.events[..event].iter().enumerate() {
        if e.thread() != trace.events[event].thread() {
            continue;
        }
        match e.op() {
            Op::Acquire | Op::AcquireShared => held.push((e.lock(), i)),
            Op::WaitEnd => held.extend(e.wait_lock().map(|lock| (lock, i))),
            Op::Release | Op::ReleaseShared => held.retain(|h| h.0 != e.lock()),
            Op::WaitBegin => held.retain(|h| Some(h.0) != e.wait_lock()),
            _ => {}
        }
    }
    held
}

/// The triples `[a1, b, a2]` where `a1` reads a variable and `a2` writes it, in different critical
/// sections of one lock and in one call of one thread, which does not access it in between; no
/// declared region is open, begins or ends there; and `b` writes it in another thread.
pub fn likely_triples(trace: &Trace) -> Vec<[usize; 3]> {
    let transactions = Transactions::new(trace);
    let events = &trace.events;
    let mut found = Vec::new();
    for a1 in 0..events.len() {
        for a2 in a1 + 1..events.len() {
            let (one, two) = (&events[a1], &events[a2]);
            let is_pair = one.op().reads()
                && !one.op().writes()
                && two.op().writes()
                && !two.op().reads()
                && one.thread() == two.thread()
                && one.var() == two.var();
            if !is_pair {
                continue;
            }
            let between = || (a1 + 1..a2).filter(|&e| events[e].thread() == one.thread());
            let is_apart = |e: usize| {
                is_access(&events[e]) && events[e].var() == one.var()
                    || transactions.region(e).is_some()
                    || matches!(events[e].op(), Op::Begin | Op::End)
            };
            if transactions.region(a1).is_some() || between().any(is_apart) {
                continue;
            }
            let mut depth = 0i64;
            let mut lowest = 0;
            for e in between() {
                depth += i64::from(events[e].op() == Op::Enter);
                depth -= i64::from(events[e].op() == Op::Exit);
                lowest = lowest.min(depth);
            }
            let (first, second) = (held(trace, a1), held(trace, a2));
            let is_retaken = second.iter().any(|&(lock, taken)| {
                taken > a1
                    && first.iter().any(|h| h.0 == lock)
                    && second.iter().all(|h| h.0 != lock || h.1 > a1)
            });
            if (depth, lowest) != (0, 0) || !is_retaken {
                continue;
            }
            let is_between = |b: &usize| {
                let other = &events[*b];
                other.thread() != one.thread()
                    && is_access(other)
                    && other.op().writes()
                    && other.var() == one.var()
            };
            found.extend((0..events.len()).filter(is_between).map(|b| [a1, b, a2]));
        }
    }
    found
}

/// Whether an event is the next one of its thread, and the thread has been started.
pub fn is_next(trace: &Trace, all: &Reorderings<'_>, state: &State, event: usize) -> bool {
    let thread = trace.events[event].thread();
    let is_fork = |e: &Event| e.op() == Op::Fork && e.other() == thread;
    let fork = trace.events.iter().position(is_fork);
    all.next(state, thread) == Some(event) && fork.is_none_or(|f| all.has_happened(state, f))
}

/// The triples that some correct reordering has: the first two events happen in this order, and the
/// third is then the next one of its thread.
pub fn reachable_triples(
    trace: &Trace,
    reads: Reads,
    triples: &[[usize; 3]],
) -> BTreeSet<[usize; 3]> {
    let all = Reorderings::new(trace, reads);
    let mut found = BTreeSet::new();
    // Several pairs at a time, as bits of the monitor: which of them are in order.
    let pairs: BTreeSet<(usize, usize)> = triples.iter().map(|t| (t[0], t[1])).collect();
    let pairs: Vec<(usize, usize)> = pairs.into_iter().collect();
    for some in pairs.chunks(8) {
        let step = |&(first, both): &(u8, u8), step: Step| {
            let (mut now_first, mut now_both) = (first, both);
            for (i, &(a, b)) in some.iter().enumerate() {
                now_first |= u8::from(step.event == a) << i;
                now_both |= u8::from(step.event == b && first >> i & 1 != 0) << i;
            }
            Some((now_first, now_both))
        };
        all.search((0u8, 0u8), step, |state, &(_, both)| {
            for triple in triples {
                let pair = some.iter().position(|&p| p == (triple[0], triple[1]));
                if pair.is_some_and(|i| both >> i & 1 != 0)
                    && is_next(trace, &all, state, triple[2])
                {
                    found.insert(*triple);
                }
            }
            false
        });
    }
    found
}

/// The pairs that some correct reordering has: the first event has happened, and the second is the
/// next one of its thread.
pub fn reachable_pairs(
    trace: &Trace,
    reads: Reads,
    pairs: &[(usize, usize)],
) -> BTreeSet<(usize, usize)> {
    let all = Reorderings::new(trace, reads);
    let mut found = BTreeSet::new();
    all.reach(|state| {
        let is_so = |&&(done, next): &&(usize, usize)| {
            all.has_happened(state, done) && is_next(trace, &all, state, next)
        };
        found.extend(pairs.iter().filter(is_so));
        false
    });
    found
}

/// Whether some correct reordering, followed by the next event of a region, is not serialisable.
/// Unless `blind`, two writes alone are not a conflict.
pub fn is_breakable(trace: &Trace, reads: Reads, blind: bool) -> bool {
    let all = Reorderings::new(trace, reads);
    let transactions = Transactions::new(trace);
    let threads: BTreeSet<ThreadId> = trace.events.iter().map(Event::thread).collect();
    type Graph = (BTreeSet<usize>, BTreeSet<(usize, usize)>);
    let with = |(done, graph): &Graph, event: usize| -> Graph {
        let (mut done, mut graph) = (done.clone(), graph.clone());
        let counts = |&e: &usize| {
            let (one, two) = (&trace.events[e], &trace.events[event]);
            blind || one.thread() == two.thread() || one.op().reads() || two.op().reads()
        };
        let before = done.iter().copied().filter(counts).collect::<Vec<_>>().into_iter();
        graph.extend(edges(trace, &transactions, before, event));
        done.insert(event);
        (done, graph)
    };
    let start: Graph = Default::default();
    let step = |graph: &Graph, step: Step| Some(with(graph, step.event));
    let wanted = |state: &State, graph: &Graph| {
        threads.iter().any(|&t| {
            all.next(state, t).is_some_and(|event| {
                transactions.region(event).is_some()
                    && is_next(trace, &all, state, event)
                    && is_cyclic(&with(graph, event).1)
            })
        })
    };
    all.search(start, step, wanted).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace;

    #[test]
    fn a_write_between_two_reads_of_a_region_is_not_serialisable() {
        let trace = trace! { T1: begin, r(x); T2: w(x); T1: r(x), end };
        let all: Vec<usize> = (0..trace.events.len()).collect();
        assert!(!is_serialisable(&trace, &all));
        assert!(is_serialisable(&trace, &[0, 1, 3, 4, 2]));
        assert_eq!(triples(&trace), [[1, 2, 3]]);
        assert!(is_breakable(&trace, Reads::Terminal, true));
    }

    #[test]
    fn the_region_that_is_disturbed_is_broken_and_its_neighbour_is_not() {
        let disturbed = trace! {
            T1: begin, r(x); T0: begin, w(x); T1: r(x), end; T0: r(q), end
        };
        assert_eq!(broken_regions(&disturbed), BTreeMap::from([(0, 4)]));
        assert!(!can_be_in_one_piece(&disturbed, 0) && can_be_in_one_piece(&disturbed, 1));
        // Each could be uninterrupted, but not both, and only the first was interrupted.
        let entangled = trace! {
            T1: begin, w(x); T0: begin, r(y), w(x); T1: w(y), end; T0: end
        };
        assert_eq!(broken_regions(&entangled), BTreeMap::from([(0, 5)]));
        assert!(can_be_in_one_piece(&entangled, 0) && can_be_in_one_piece(&entangled, 1));
    }

    /// By definition: some linear extension of the order of conflicts does not interrupt it.
    #[test]
    fn one_piece_is_one_of_all_orders() {
        let mut counts = [0; 2];
        for seed in 0..400 {
            let family = crate::Family {
                regions: 0.3,
                variables: 1,
                in_sections: 0.0,
                ..crate::Family::PLAIN
            };
            let trace = family.trace(seed, 9);
            let transactions = Transactions::new(&trace);
            let events = &trace.events;
            let regions: BTreeSet<usize> =
                (0..events.len()).filter_map(|e| transactions.region(e)).collect();
            for region in regions {
                let is_its = |e: &usize| transactions.region(*e) == Some(region);
                let mut is_possible = false;
                extensions(&trace, &mut Vec::new(), &mut |order| {
                    let first = order.iter().position(is_its).unwrap_or(0);
                    let last = order.iter().rposition(is_its).unwrap_or(0);
                    is_possible |= order[first..=last].iter().all(is_its);
                });
                assert_eq!(can_be_in_one_piece(&trace, region), is_possible, "{seed}\n{trace}");
                counts[usize::from(is_possible)] += 1;
            }
        }
        assert!(counts.iter().all(|&n| n > 20), "{counts:?}");
    }

    /// All orders that preserve the order of threads and of conflicts.
    fn extensions(trace: &Trace, done: &mut Vec<usize>, each: &mut impl FnMut(&[usize])) {
        let events = &trace.events;
        if done.len() == events.len() {
            return each(done);
        }
        for e in (0..events.len()).filter(|e| !done.contains(e)).collect::<Vec<_>>() {
            let waits_for = |f: usize| {
                events[f].thread() == events[e].thread() || conflict(&events[f], &events[e])
            };
            if (0..e).all(|f| done.contains(&f) || !waits_for(f)) {
                done.push(e);
                extensions(trace, done, each);
                done.pop();
            }
        }
    }

    #[test]
    fn locks_around_the_whole_region_protect_it() {
        let one = trace! { T1: begin, acq(l), r(x), r(x), rel(l), end; T2: acq(l), w(x), rel(l) };
        let two = trace! {
            T1: begin, acq(l), r(x), rel(l), acq(l), r(x), rel(l), end; T2: acq(l), w(x), rel(l)
        };
        assert!(reachable_triples(&one, Reads::Terminal, &triples(&one)).is_empty());
        assert_eq!(reachable_triples(&two, Reads::Terminal, &triples(&two)).len(), 1);
        assert!(!is_breakable(&one, Reads::Terminal, true));
        assert!(is_breakable(&two, Reads::Terminal, true));
    }

    #[test]
    fn nested_regions_are_one_and_single_events_are_transactions() {
        let trace = trace! { T1: begin, begin, r(x), end, w(x), end, w(y) };
        let transactions = Transactions::new(&trace);
        assert!((0..6).all(|i| transactions.region(i) == Some(transactions.of(0))));
        assert_eq!(transactions.region(6), None);
        assert!(triples(&trace! { T1: begin, w(x), end; T2: w(x); T1: w(x) }).is_empty());
        // Three writes are a cycle of conflicts, but no read sees it.
        assert!(triples(&trace! { T1: begin, w(x); T2: w(x); T1: w(x), end }).is_empty());
    }
}
