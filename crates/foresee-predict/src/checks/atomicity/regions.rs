//! Atomic regions: parts of a thread that should execute atomically.
//!
//! A region is declared by `begin` and `end`, or is a call of a method that the user named. Only
//! the outermost of nested regions counts. Each event outside of all regions is a region of its
//! own.

use foresee_trace::{Event, Id, Names, Op, SymId, entry};

use crate::checks::glob::Glob;
use crate::reorder::NONE;

/// A region that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    /// Its thread.
    pub(crate) thread: u32,
    /// The event that it begins with.
    pub(crate) begin: u32,
    /// The event that it ends with, or `u32::MAX` if it does not.
    pub(crate) end: u32,
    /// Its name.
    pub(crate) name: Option<SymId>,
}

/// What an event does to the regions of its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Nothing.
    None,
    /// An outermost region begins with it.
    Begins,
    /// The outermost region ends with it.
    Ends,
}

/// The regions of a trace, as it is read.
#[derive(Debug, Default)]
pub(crate) struct Regions {
    /// The methods whose calls are regions.
    methods: Vec<Glob>,
    /// For each name, whether it is one of them, if known.
    is_method: Vec<Option<bool>>,
    all: Vec<Region>,
    threads: Vec<Thread>,
}

#[derive(Debug, Default)]
struct Thread {
    /// The number of open regions.
    depth: u32,
    /// Its regions, in their order.
    regions: Vec<u32>,
}

impl Regions {
    /// Calls of these methods are regions, too.
    pub(crate) fn new(methods: Vec<Glob>) -> Regions {
        Regions { methods, ..Regions::default() }
    }

    /// One region, and no other.
    pub(crate) fn of_one(thread: u32, begin: u32, end: u32) -> Regions {
        let mut one = Regions::default();
        entry(&mut one.threads, thread as usize).regions.push(0);
        one.all.push(Region { thread, begin, end, name: None });
        one
    }

    fn is_method(&mut self, name: Option<SymId>, names: &Names) -> bool {
        let Some(sym) = name.filter(|_| !self.methods.is_empty()) else { return false };
        let methods = &self.methods;
        let known = entry(&mut self.is_method, sym.index());
        *known.get_or_insert_with(|| methods.iter().any(|m| m.matches_path(names.syms.get(sym))))
    }

    /// Takes the next event.
    pub(crate) fn event(&mut self, i: u32, event: &Event, names: &Names) -> Change {
        let (op, t) = (event.op(), event.thread());
        let begins = match op {
            Op::Begin => true,
            Op::End => false,
            Op::Enter if self.is_method(event.sym(), names) => true,
            Op::Exit if self.is_method(event.sym(), names) => false,
            _ => return Change::None,
        };
        let thread = entry(&mut self.threads, t.index());
        match (begins, thread.depth) {
            (true, depth) => {
                thread.depth += 1;
                if depth > 0 {
                    return Change::None;
                }
                thread.regions.push(self.all.len() as u32);
                self.all.push(Region { thread: t.0, begin: i, end: NONE, name: event.sym() });
                Change::Begins
            }
            // The return of a call that began before the capture.
            (false, 0) => Change::None,
            (false, depth) => {
                thread.depth -= 1;
                match thread.regions.last() {
                    Some(&last) if depth == 1 => {
                        self.all[last as usize].end = i;
                        Change::Ends
                    }
                    _ => Change::None,
                }
            }
        }
    }

    /// All regions in the order in which they began.
    pub(crate) fn all(&self) -> &[Region] {
        &self.all
    }

    /// The region that an event of a thread is in, by its number.
    pub(crate) fn at(&self, thread: u32, event: u32) -> Option<u32> {
        let regions = &self.threads.get(thread as usize)?.regions;
        let after = regions.partition_point(|&r| self.all[r as usize].begin <= event);
        let region = regions[after.checked_sub(1)?];
        (event <= self.all[region as usize].end).then_some(region)
    }

    /// The same for one event after the other, in the order of the trace.
    pub(crate) fn in_order(&self) -> InOrder<'_> {
        InOrder { regions: self, begun: vec![0; self.threads.len()] }
    }

    /// The latest position not after `event` that no region extends across.
    pub(crate) fn quiet_before(&self, event: u32) -> u32 {
        let mut start = event;
        let before = self.all.partition_point(|r| r.begin < event);
        // From the latest to the first: each may extend across the beginning of a later one.
        for region in self.all[..before].iter().rev() {
            if region.begin < start && region.end >= start {
                start = region.begin;
            }
        }
        start
    }
}

/// Finds the regions of events that come in the order of the trace, without a search for each.
#[derive(Debug)]
pub(crate) struct InOrder<'r> {
    regions: &'r Regions,
    /// For each thread, the number of its regions that have begun.
    begun: Vec<usize>,
}

impl InOrder<'_> {
    /// The region that an event of a thread is in, by its number.
    #[inline]
    pub(crate) fn at(&mut self, thread: u32, event: u32) -> Option<u32> {
        let all = &self.regions.all;
        let regions = &self.regions.threads.get(thread as usize)?.regions;
        let begun = &mut self.begun[thread as usize];
        while regions.get(*begun).is_some_and(|&next| all[next as usize].begin <= event) {
            *begun += 1;
        }
        let region = regions[begun.checked_sub(1)?];
        (event <= all[region as usize].end).then_some(region)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foresee_testkit::trace;

    #[test]
    fn regions_are_declared_or_calls_of_methods() {
        let trace = trace! {
            T1: enter(transfer), begin, w(x), end, exit(transfer), enter(other), w(x), exit(other);
            T2: begin(whole), w(x)
        };
        let mut regions = Regions::new(vec![Glob::new("trans*")]);
        for (i, event) in trace.events.iter().enumerate() {
            regions.event(i as u32, event, &trace.names);
        }
        let spans: Vec<_> = regions.all().iter().map(|r| (r.begin, r.end)).collect();
        assert_eq!(spans, [(0, 4), (8, NONE)]);
        assert_eq!([2, 4, 6].map(|e| regions.at(0, e)), [Some(0), Some(0), None]);
        assert_eq!(regions.at(1, 9), Some(1));
        let mut in_order = regions.in_order();
        for (i, event) in trace.events.iter().enumerate() {
            let (thread, i) = (event.thread().0, i as u32);
            assert_eq!(in_order.at(thread, i), regions.at(thread, i));
        }
        assert_eq!((regions.quiet_before(7), regions.quiet_before(3)), (7, 0));
    }
}
