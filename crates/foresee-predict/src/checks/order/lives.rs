//! The lives of objects in the observed order: what could be used too late or too early.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use foresee_trace::{Event, Op, ThreadId, Trace, entry};

use super::needs::Needs;
use super::objects::{Objects, Said};

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

/// One life of an object, as far as it has come.
#[derive(Debug, Default)]
struct Life {
    begin: Option<u32>,
    /// The last use by each thread at each place, and whether it was said or was an access.
    uses: Vec<(u32, bool)>,
    end: Option<u32>,
}

/// What the lives of a trace come to.
#[derive(Debug, Default)]
pub(super) struct Lives {
    /// What the observed order does wrong, the first of each kind and place.
    pub(super) observed: Vec<Pair>,
    /// What another order might do wrong, unless it is in `impossible`.
    pub(super) possible: Vec<Pair>,
    /// What no order can do wrong, because one needs the other.
    pub(super) impossible: Vec<Pair>,
    /// How many lives ended.
    pub(super) ended: u64,
}

impl Lives {
    /// Follows all objects through a trace. What `strangers` do counts for nothing.
    pub(super) fn new(trace: &Trace, objects: &Objects, strangers: &[ThreadId]) -> Lives {
        let mut this = Lives::default();
        let mut needs = Needs::default();
        let mut lives: Vec<Life> = Vec::new();
        for (i, event) in trace.events.iter().enumerate() {
            let i = i as u32;
            needs.event(i, event);
            let Some((said, object)) = objects.said(event, &trace.pool) else { continue };
            if strangers.contains(&event.thread()) {
                continue;
            }
            let life = entry(&mut lives, object as usize);
            match said {
                Said::Begins => this.begin(life, object, i),
                Said::Used => this.used(life, object, i, trace),
                Said::Ends(_) => this.end(life, object, i, trace, &needs),
            }
        }
        this
    }

    fn begin(&mut self, life: &mut Life, object: u32, i: u32) {
        // What is said to be used before it is said to begin for the first time is used too early.
        if life.begin.is_none() && life.end.is_none() {
            for &(first, _) in life.uses.iter().filter(|&&(_, is_said)| is_said) {
                let pair = Pair { wrong: Wrong::UsedBeforeBegin, object, first, second: i };
                self.observed.push(pair);
            }
        }
        *life = Life { begin: Some(i), ..Life::default() };
    }

    fn used(&mut self, life: &mut Life, object: u32, i: u32, trace: &Trace) {
        if let Some(first) = life.end {
            self.observed.push(Pair { wrong: Wrong::UsedAfterEnd, object, first, second: i });
            return;
        }
        let event = &trace.events[i as usize];
        let is_said = event.op() == Op::Event;
        if let Some(begin) = life.begin.filter(|_| is_said) {
            // Whether it could have come earlier is asked once for each place.
            let known = |&(use_, said): &(u32, bool)| said && is_alike(trace, use_, event);
            let of_other = trace.events[begin as usize].thread() != event.thread();
            if of_other && !life.uses.iter().any(known) {
                let pair = Pair { wrong: Wrong::UsedBeforeBegin, object, first: i, second: begin };
                self.possible.push(pair);
            }
        }
        match life.uses.iter_mut().find(|(use_, _)| is_alike(trace, *use_, event)) {
            Some(known) => *known = (i, is_said),
            None => life.uses.push((i, is_said)),
        }
    }

    fn end(&mut self, life: &mut Life, object: u32, i: u32, trace: &Trace, needs: &Needs) {
        if let Some(first) = life.end {
            self.observed.push(Pair { wrong: Wrong::EndedTwice, object, first, second: i });
            return;
        }
        self.ended += 1;
        life.end = Some(i);
        let thread = trace.events[i as usize].thread();
        for (second, _) in std::mem::take(&mut life.uses) {
            let other = trace.events[second as usize].thread();
            if other == thread {
                continue;
            }
            let pair = Pair { wrong: Wrong::UsedAfterEnd, object, first: i, second };
            match needs.has(thread, other, second) {
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

/// What pairs are told apart by: their places or, without places, object and threads.
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
