//! The lifetimes of objects in the observed order: which could be used too late or too early.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use foresee_causality::{Clocks, Epoch, Order};
use foresee_trace::{Event, Id, Op, ThreadId, Trace, entry};

use super::super::lock_state::{given, taken};
use super::super::locksets::Hold;
use super::objects::{Objects, Said};
use crate::analysis::AnalysisError;
use crate::reorder::Requirements;

/// What is wrong, or could be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Wrong {
    /// `second` uses what `first` has ended.
    UsedAfterEnd,
    /// `second` ends what `first` has ended.
    EndedTwice,
    /// `first` uses what `second` has yet to begin.
    UsedBeforeBegin,
}

/// Two events of an object's life, in the order in which they are wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) wrong: Wrong,
    pub(super) object: u32,
    pub(super) first: u32,
    pub(super) second: u32,
}

/// A use of an object.
#[derive(Clone, Debug)]
struct Use {
    event: u32,
    epoch: Epoch,
    /// Whether it is an explicit `use` event; otherwise it is an access.
    is_said: bool,
    /// The locks held at it, and when they were taken.
    held: Vec<(Hold, Epoch)>,
}

/// One life of an object, as far as it has come.
#[derive(Debug, Default)]
struct Life {
    begin: Option<u32>,
    /// The last use by each thread at each place.
    uses: Vec<Use>,
    end: Option<u32>,
}

/// The result for all lifetimes of a trace.
#[derive(Debug, Default)]
pub(super) struct Lives {
    /// Violations in the observed order, the first of each kind and place.
    pub(super) observed: Vec<Pair>,
    /// Violations that another order might have, unless in `impossible`.
    pub(super) possible: Vec<Pair>,
    /// Violations that no order has, because one event requires the other.
    pub(super) impossible: Vec<Pair>,
    /// The number of lifetimes that ended.
    pub(super) ended: u64,
}

impl Lives {
    /// Follows all objects through a trace. Events of `uninstrumented` threads are ignored.
    pub(super) fn new(
        trace: &Trace,
        objects: &Objects,
        uninstrumented: &[ThreadId],
        requirements: &Requirements,
    ) -> Result<Lives, AnalysisError> {
        let mut this = Lives::default();
        let mut needs: Clocks = Clocks::new(Order::Needs);
        let mut lives: Vec<Life> = Vec::new();
        let mut locks: Vec<Vec<(Hold, Epoch)>> = Vec::new();
        for (i, event) in trace.events.iter().enumerate() {
            let i = i as u32;
            let stamp = needs.event(&requirements.bound(i, event))?;
            needs.forget_old(&[]);
            let held = entry(&mut locks, event.thread().index());
            if let Some(hold) = taken(event) {
                held.push((hold, stamp.epoch()));
            } else if let Some(hold) = given(event) {
                let at = held.iter().rposition(|(known, _)| *known == hold);
                at.map(|at| held.remove(at));
            }
            let Some((said, object)) = objects.said(event, &trace.pool) else { continue };
            if uninstrumented.contains(&event.thread()) {
                continue;
            }
            let life = entry(&mut lives, object as usize);
            match said {
                Said::Begins => this.begin(life, object, i),
                Said::Used => {
                    let is_said = event.op() == Op::Event;
                    this.used(life, object, (i, stamp.epoch(), is_said), held, trace);
                }
                Said::Ends(_) => {
                    // If the end requires the critical section of the use to have begun, and holds
                    // its lock, then that section is over, and so is the use.
                    let is_after = |used: &Use| {
                        let excludes = |(theirs, since): &(Hold, Epoch)| {
                            held.iter().any(|(own, _)| own.excludes(*theirs))
                                && needs.knows(&stamp, *since)
                        };
                        needs.knows(&stamp, used.epoch) || used.held.iter().any(excludes)
                    };
                    this.end(life, object, i, trace, is_after);
                }
            }
        }
        Ok(this)
    }

    fn begin(&mut self, life: &mut Life, object: u32, i: u32) {
        // An explicit use before the first explicit beginning is too early.
        if life.begin.is_none() && life.end.is_none() {
            for early in life.uses.iter().filter(|use_| use_.is_said) {
                let first = early.event;
                let pair = Pair { wrong: Wrong::UsedBeforeBegin, object, first, second: i };
                self.observed.push(pair);
            }
        }
        *life = Life { begin: Some(i), ..Life::default() };
    }

    fn used(
        &mut self,
        life: &mut Life,
        object: u32,
        (at, epoch, is_said): (u32, Epoch, bool),
        held: &[(Hold, Epoch)],
        trace: &Trace,
    ) {
        if let Some(first) = life.end {
            let pair = Pair { wrong: Wrong::UsedAfterEnd, object, first, second: at };
            self.observed.push(pair);
            return;
        }
        let event = &trace.events[at as usize];
        let known = life.uses.iter_mut().find(|known| is_alike(trace, known.event, event));
        // Whether a use could precede the beginning is tried once for each place.
        let is_first = !known.as_ref().is_some_and(|known| known.is_said);
        if let Some(begin) = life.begin.filter(|_| is_said && is_first)
            && trace.events[begin as usize].thread() != event.thread()
        {
            let (wrong, first) = (Wrong::UsedBeforeBegin, at);
            self.possible.push(Pair { wrong, object, first, second: begin });
        }
        match known {
            Some(known) => {
                (known.event, known.epoch) = (at, epoch);
                known.is_said |= is_said;
                known.held.clear();
                known.held.extend_from_slice(held);
            }
            None => life.uses.push(Use { event: at, epoch, is_said, held: held.to_vec() }),
        }
    }

    fn end(
        &mut self,
        life: &mut Life,
        object: u32,
        i: u32,
        trace: &Trace,
        is_after: impl Fn(&Use) -> bool,
    ) {
        if let Some(first) = life.end {
            self.observed.push(Pair { wrong: Wrong::EndedTwice, object, first, second: i });
            return;
        }
        self.ended += 1;
        life.end = Some(i);
        let thread = trace.events[i as usize].thread();
        for used in std::mem::take(&mut life.uses) {
            if trace.events[used.event as usize].thread() == thread {
                continue;
            }
            let (wrong, second) = (Wrong::UsedAfterEnd, used.event);
            let pair = Pair { wrong, object, first: i, second };
            match is_after(&used) {
                true => self.impossible.push(pair),
                false => self.possible.push(pair),
            }
        }
    }
}

/// Whether two uses of an object are by one thread at one place.
fn is_alike(trace: &Trace, known: u32, event: &Event) -> bool {
    let known = &trace.events[known as usize];
    (known.thread(), known.loc()) == (event.thread(), event.loc())
}

/// The key of a pair: its places or, without places, its object and threads.
pub(super) fn places(trace: &Trace, pair: &Pair) -> (Wrong, [u32; 4]) {
    let [first, second] = [pair.first, pair.second].map(|i| &trace.events[i as usize]);
    let places = [first.loc().0, second.loc().0];
    let key = match places.contains(&0) {
        false => [places[0], places[1], 0, 0],
        true => [places[0], places[1], pair.object + 1, first.thread().0 << 16 ^ second.thread().0],
    };
    (pair.wrong, key)
}

/// One pair for each tuple of places.
pub(super) fn distinct(trace: &Trace, pairs: &[Pair]) -> Vec<Pair> {
    let mut seen: HashMap<_, (), RandomState> = HashMap::default();
    let is_new = |pair: &&Pair| seen.insert(places(trace, pair), ()).is_none();
    pairs.iter().filter(is_new).copied().collect()
}
