//! Do all orders that the execution allows have the same verdict?
//!
//! First the unordered pairs are swapped one by one, which settles most cases whatever the length
//! of the trace. Then all orders are followed at once: a node is how many steps of each thread have
//! happened, the state of the program and that of the monitor. Where two writes of one variable are
//! unordered, the program's state does not follow from the steps that happened, so unlike in the
//! lattice of prediction it is part of the node. Nothing behind a violation needs to be looked at.
//!
//! The result is an order of all events, which the caller must confirm: an order that keeps the
//! order of the execution may still change what a read sees.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use foldhash::fast::RandomState;
use foresee_spec::monitor::{StateId, TooManyStates};
use foresee_spec::observe::{EvalWarnings, ProgramState, Projection, Step};
use foresee_spec::property::Compiled;
use foresee_trace::{Id, ThreadId, Trace};

use super::order::Whole;
use super::pairs::Pair;
use crate::lattice::beginning;

/// A step of the property, or of one binding of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Relevant {
    pub(super) index: u64,
    pub(super) step: Step,
}

/// How far to search, all searches of one trace together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    /// How many events are taken along swapped pairs.
    swapped: u64,
    nodes: u64,
    until: Option<Instant>,
}

impl Budget {
    pub(super) fn new(nodes: u64, time: Option<Duration>) -> Budget {
        let until = time.and_then(|time| Instant::now().checked_add(time));
        Budget { swapped: SWAPPED_EVENTS, nodes, until }
    }

    fn is_late(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() > until)
    }
}

/// How a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// An order with another verdict was found and confirmed.
    Found,
    /// There is none.
    Nothing,
    /// There are some, but none was confirmed.
    Unconfirmed,
    /// A limit was hit.
    GaveUp,
}

/// Some seconds' worth.
const SWAPPED_EVENTS: u64 = 200_000_000;

/// The number of unconfirmed orders that are offered.
const OFFERS: u32 = 32;

/// Offers an order of all events; returns whether it is confirmed.
pub(super) type Offer<'a> = &'a mut dyn FnMut(Vec<u64>) -> bool;

/// The steps of one property and the verdict that the observed order has.
pub(super) struct Search<'a> {
    trace: &'a Trace,
    steps: &'a [Relevant],
    projection: &'a Projection,
    property: &'a mut Compiled,
    initial: ProgramState,
    start: StateId,
    /// Whether the observed order violates the property.
    pub(super) is_violated: bool,
}

impl<'a> Search<'a> {
    pub(super) fn new(
        trace: &'a Trace,
        steps: &'a [Relevant],
        projection: &'a Projection,
        property: &'a mut Compiled,
    ) -> Result<Search<'a>, TooManyStates> {
        let (initial, start) = beginning(projection, property)?;
        let mut search =
            Search { trace, steps, projection, property, initial, start, is_violated: false };
        search.is_violated = search.violates(steps.iter().map(|s| s.step))?;
        Ok(search)
    }

    /// Whether steps in this order violate the property.
    fn violates(&mut self, order: impl Iterator<Item = Step>) -> Result<bool, TooManyStates> {
        let mut program = self.initial.clone();
        let mut state = self.start;
        for step in order {
            let letter = self.projection.apply(&mut program, step, &mut EvalWarnings::default());
            state = self.property.monitor.step(state, letter)?;
            if state == StateId::BAD {
                return Ok(true);
            }
        }
        Ok(state == StateId::BAD)
    }

    /// Swaps unordered pairs, each in as few other events as possible, and offers the orders that
    /// have another verdict.
    pub(super) fn swap(
        &mut self,
        pairs: &[Pair],
        whole: &Whole,
        budget: &mut Budget,
        offer: Offer<'_>,
    ) -> Result<Ended, TooManyStates> {
        let by_index: HashMap<u64, Step, RandomState> =
            self.steps.iter().map(|s| (s.index, s.step)).collect();
        let mut offers = 0;
        for pair in pairs {
            let (e, f) = (pair.first.index as usize, pair.second.index as usize);
            if budget.swapped == 0 || budget.is_late() || offers >= OFFERS {
                break;
            }
            if whole.is_before(e, f) {
                continue;
            }
            // Everything that follows the first waits until the second has happened; or the second
            // comes early, with everything that it needs.
            let after_first = |i: usize| whole.is_before(e, i);
            let not_before_second = |i: usize| !whole.is_before(i, f);
            for waits in [&after_first as &dyn Fn(usize) -> bool, &not_before_second] {
                let (late, early): (Vec<usize>, Vec<usize>) = (e..=f).partition(|&i| waits(i));
                let n = self.trace.events.len();
                let order: Vec<u64> =
                    (0..e).chain(early).chain(late).chain(f + 1..n).map(|i| i as u64).collect();
                budget.swapped = budget.swapped.saturating_sub(n as u64);
                let steps = order.iter().filter_map(|i| by_index.get(i)).copied();
                if self.violates(steps)? != self.is_violated {
                    offers += 1;
                    if offer(order) {
                        return Ok(Ended::Found);
                    }
                }
            }
        }
        Ok(if offers > 0 { Ended::Unconfirmed } else { Ended::Nothing })
    }

    /// Follows all orders, and offers those that have another verdict.
    pub(super) fn all(
        &mut self,
        whole: &Whole,
        budget: &mut Budget,
        offer: Offer<'_>,
    ) -> Result<Ended, TooManyStates> {
        let columns = Columns::new(self.steps, self.trace, whole);
        let mut states = States::default();
        let mut seen: HashSet<(Box<[u32]>, u32, StateId), RandomState> = HashSet::default();
        let root = Node {
            counts: vec![0; columns.steps.len()].into(),
            program: states.number(&self.initial),
            monitor: self.start,
        };
        // The nodes of one run, each with the column to try next.
        let mut path = vec![(root, 0)];
        let mut offers = 0;
        while let Some((node, next)) = path.last_mut() {
            let c = *next;
            if c == columns.steps.len() {
                path.pop();
                continue;
            }
            *next += 1;
            let Some(step) = columns.enabled(&node.counts, c) else { continue };
            let mut program = states.get(node.program).clone();
            let step = self.steps[step].step;
            let letter = self.projection.apply(&mut program, step, &mut EvalWarnings::default());
            let monitor = self.property.monitor.step(node.monitor, letter)?;
            let mut counts = node.counts.clone();
            counts[c] += 1;
            let is_bad = monitor == StateId::BAD;
            let is_whole = counts.iter().zip(&columns.steps).all(|(&n, s)| n as usize == s.len());
            // Sought is a violation, or else a whole run without one.
            let is_sought = if self.is_violated { is_whole && !is_bad } else { is_bad };
            if is_sought {
                offers += 1;
                let taken = path.iter().map(|(_, next)| next - 1);
                if offer(columns.whole_order(taken, self.steps, self.trace, whole, is_whole)) {
                    return Ok(Ended::Found);
                }
                if offers == OFFERS {
                    return Ok(Ended::Unconfirmed);
                }
            }
            // After a violation everything is violated, and if none can follow, nothing is.
            let is_settled = is_bad || !self.is_violated && self.property.monitor.good(monitor);
            let program = states.number(&program);
            if is_settled || is_whole || !seen.insert((counts.clone(), program, monitor)) {
                continue;
            }
            if budget.nodes == 0 || seen.len().is_multiple_of(1024) && budget.is_late() {
                return Ok(Ended::GaveUp);
            }
            budget.nodes -= 1;
            path.push((Node { counts, program, monitor }, 0));
        }
        Ok(if offers > 0 { Ended::Unconfirmed } else { Ended::Nothing })
    }
}

struct Node {
    counts: Box<[u32]>,
    program: u32,
    monitor: StateId,
}

/// States of the program, by number.
#[derive(Default)]
struct States {
    all: Vec<ProgramState>,
    numbers: HashMap<ProgramState, u32, RandomState>,
}

impl States {
    fn number(&mut self, state: &ProgramState) -> u32 {
        if let Some(&number) = self.numbers.get(state) {
            return number;
        }
        let number = self.all.len() as u32;
        self.all.push(state.clone());
        self.numbers.insert(state.clone(), number);
        number
    }

    fn get(&self, number: u32) -> &ProgramState {
        &self.all[number as usize]
    }
}

/// The steps by their threads.
struct Columns {
    /// The steps of each thread, by number, and for each how many of every column it needs.
    steps: Vec<Vec<(usize, Box<[u32]>)>>,
}

impl Columns {
    fn new(steps: &[Relevant], trace: &Trace, whole: &Whole) -> Columns {
        let thread = |s: &Relevant| trace.events[s.index as usize].thread();
        let mut threads: Vec<ThreadId> = Vec::new();
        let mut of: Vec<Vec<usize>> = Vec::new();
        for (i, step) in steps.iter().enumerate() {
            let c = threads.iter().position(|&t| t == thread(step)).unwrap_or_else(|| {
                threads.push(thread(step));
                of.push(Vec::new());
                threads.len() - 1
            });
            of[c].push(i);
        }
        let needs = |i: usize| -> Box<[u32]> {
            let event = steps[i].index as usize;
            let known = |(t, of): (&ThreadId, &Vec<usize>)| {
                let known = whole.known(event, *t);
                of.partition_point(|&s| whole.time(steps[s].index as usize) <= known) as u32
            };
            threads.iter().zip(&of).map(known).collect()
        };
        let with_needs = |of: &Vec<usize>| of.iter().map(|&i| (i, needs(i))).collect();
        Columns { steps: of.iter().map(with_needs).collect() }
    }

    /// The next step of a column, if all that it needs has happened.
    fn enabled(&self, counts: &[u32], c: usize) -> Option<usize> {
        let (step, needs) = self.steps[c].get(counts[c] as usize)?;
        let others = (0..counts.len()).filter(|&other| other != c);
        others.into_iter().all(|other| needs[other] <= counts[other]).then_some(*step)
    }

    /// An order of events for an order of steps: each step with all that must precede it, in the
    /// order of the file; and if it is a whole run, then everything else.
    fn whole_order(
        &self,
        columns: impl Iterator<Item = usize>,
        steps: &[Relevant],
        trace: &Trace,
        whole: &Whole,
        is_whole: bool,
    ) -> Vec<u64> {
        let mut of_thread: Vec<Vec<usize>> = vec![Vec::new(); trace.names.threads.len()];
        let mut order: Vec<u64> = Vec::new();
        for i in 0..trace.events.len() {
            match whole.time(i) {
                0 => order.push(i as u64),
                _ => of_thread[trace.events[i].thread().index()].push(i),
            }
        }
        let mut taken = vec![0; of_thread.len()];
        let mut counts = vec![0; self.steps.len()];
        for c in columns {
            let (step, _) = &self.steps[c][counts[c]];
            counts[c] += 1;
            let event = steps[*step].index as usize;
            let from = order.len();
            for (t, events) in of_thread.iter().enumerate() {
                let until = whole.known(event, ThreadId::new(t)) as usize;
                if until > taken[t] {
                    order.extend(events[taken[t]..until].iter().map(|&i| i as u64));
                    taken[t] = until;
                }
            }
            order[from..].sort_unstable();
        }
        if is_whole {
            let from = order.len();
            let rest = of_thread.iter().zip(&taken).flat_map(|(events, &taken)| &events[taken..]);
            order.extend(rest.map(|&i| i as u64));
            order[from..].sort_unstable();
        }
        order
    }
}
