//! Accesses that no other thread can notice, because one lock guards their variable.
//!
//! If every access of a variable is made with the same lock held, none of another thread comes between two accesses of one critical
//! section of this lock, whatever the order of threads. So a read in a section that has accessed the variable before sees what
//! the section wrote there itself, or what its first read saw; and a write that the same section overwrites is seen by nobody
//! else. Neither can race. A reordering without them is one of all events, with each directly after the event before it in
//! its thread, and one of all events is one without them: the same threads can stand before the same other events.
//!
//! The accesses of one thread before any other accesses the variable need no lock, if starts of threads put them before those
//! of all others.
//!
//! What is kept of a section shows the same as a whole: its first read, the read directly before its first write, the write
//! after that, and its last write. So a value that is read only to be written back still is one.
//!
//! Lifetimes ask for each use of an object, so variables of objects that some event names are left alone; and regions that are
//! meant to be atomic ask for all conflicts, so in a trace with such regions nothing is left out.

use std::collections::HashSet;

use foresee_trace::{
    Event, Id, LockId, Names, Op, Pool, SymId, TargetKind, ThreadId, Value, VarId, entry, object_of,
};

use crate::private::{Starts, is_before};

/// Some events of a trace, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct EventSet {
    bits: Vec<u64>,
}

impl EventSet {
    fn insert(&mut self, event: usize) {
        *entry(&mut self.bits, event / 64) |= 1 << (event % 64);
    }

    fn remove(&mut self, event: usize) {
        *entry(&mut self.bits, event / 64) &= !(1 << (event % 64));
    }

    pub(crate) fn has(&self, event: usize) -> bool {
        self.bits.get(event / 64).is_some_and(|bits| bits >> (event % 64) & 1 != 0)
    }
}

/// The accesses of a trace that no other thread can notice.
pub(crate) fn unnoticed(events: &[Event], pool: &Pool, names: &Names) -> EventSet {
    let mut unnoticed = EventSet::default();
    if events.iter().any(|event| matches!(event.op(), Op::Begin | Op::Enter)) {
        return unnoticed;
    }
    let guards = guards(events, pool, names);
    let mut sections: Vec<Section> = Vec::new();
    let mut locks = Locks::default();
    for (index, event) in events.iter().enumerate() {
        locks.event(event);
        if !matches!(event.op(), Op::Read | Op::Write) {
            continue;
        }
        let Some(&(lock, from)) = guards.get(event.var().index()).and_then(Option::as_ref) else {
            continue;
        };
        let Some(number) = locks.section(event.thread(), lock).filter(|_| index >= from) else {
            continue;
        };
        let section = entry(&mut sections, event.var().index());
        if section.number != number {
            *section = Section { number, ..Section::default() };
        }
        section.access(index, event.op(), &mut unnoticed);
    }
    unnoticed
}

/// The accesses of a variable in one critical section, so far.
#[derive(Clone, Copy, Debug, Default)]
struct Section {
    /// Which section it is; zero is none.
    number: u32,
    has_read: bool,
    has_written: bool,
    /// The latest read, if it is left out and no write came before it.
    read: Option<usize>,
    /// The latest write, if another one makes it superfluous.
    write: Option<usize>,
}

impl Section {
    fn access(&mut self, index: usize, op: Op, unnoticed: &mut EventSet) {
        if op == Op::Write {
            if let Some(read) = self.read.take() {
                unnoticed.remove(read);
            }
            if let Some(write) = self.write.take() {
                unnoticed.insert(write);
            }
            let is_written_back = self.has_read && !self.has_written;
            self.write = (!is_written_back).then_some(index);
            self.has_written = true;
        } else if self.has_read || self.has_written {
            unnoticed.insert(index);
            self.read = (!self.has_written).then_some(index);
        } else {
            self.has_read = true;
        }
    }
}

/// For each variable that has one, a lock that guards it, and the first access that it guards.
fn guards(events: &[Event], pool: &Pool, names: &Names) -> Vec<Option<(LockId, usize)>> {
    let mut variables: Vec<Variable> = Vec::new();
    let mut locks = Locks::default();
    let mut starts = Starts::default();
    let mut named: HashSet<SymId> = HashSet::new();
    for (index, event) in events.iter().enumerate() {
        locks.event(event);
        match event.op() {
            Op::Fork => starts.start(event.thread(), event.other()),
            Op::Join => starts.precede(event.other(), event.thread()),
            Op::Event => {
                if let Some(&Value::Str(object)) = pool.values(event).first() {
                    named.insert(object);
                }
            }
            Op::Init => {}
            op if op.target_kind() == TargetKind::Var => {
                let variable = entry(&mut variables, event.var().index());
                variable.access(index, event, &locks, &mut starts);
            }
            _ => {}
        }
    }
    let is_named = |var: usize| {
        let object = object_of(names.vars.get(VarId::new(var)));
        names.syms.lookup(object).is_some_and(|object| named.contains(&object))
    };
    let guard = |(var, variable): (usize, &Variable)| {
        let is_sound = |lock: &&LockId| !locks.doubtful.contains(lock);
        let always = variable.always.iter().find(is_sound).map(|&lock| (lock, 0));
        let guard = always.or_else(|| {
            let (from, guards) = variable.later.as_ref().filter(|_| variable.is_ordered)?;
            guards.iter().find(is_sound).map(|&lock| (lock, *from))
        });
        guard.filter(|_| variable.is_plain && !is_named(var))
    };
    variables.iter().enumerate().map(guard).collect()
}

/// What is known of a variable.
#[derive(Debug)]
struct Variable {
    /// The thread that accessed it first, and its time when it last did so before any other thread.
    first: Option<(ThreadId, u32)>,
    /// The locks that were held at all accesses.
    always: Vec<LockId>,
    /// The first access of another thread, and the locks that were held then and at all accesses since.
    later: Option<(usize, Vec<LockId>)>,
    /// Whether the accesses before that come before all of other threads.
    is_ordered: bool,
    /// Whether there are only plain reads and writes.
    is_plain: bool,
}

impl Default for Variable {
    fn default() -> Variable {
        let (first, always, later) = (None, Vec::new(), None);
        Variable { first, always, later, is_ordered: true, is_plain: true }
    }
}

impl Variable {
    fn access(&mut self, index: usize, event: &Event, locks: &Locks, starts: &mut Starts) {
        let is_guarded = |guards: &Option<(usize, Vec<LockId>)>| {
            guards.as_ref().is_none_or(|(_, guards)| !guards.is_empty())
        };
        self.is_plain &= matches!(event.op(), Op::Read | Op::Write);
        let is_open = self.always.is_empty() && !(self.is_ordered && is_guarded(&self.later));
        if !self.is_plain || self.first.is_some() && is_open {
            return;
        }
        let thread = event.thread();
        let held = locks.held(thread);
        let all = || held.iter().map(|held| held.lock).collect::<Vec<LockId>>();
        let is_held = |guard: &LockId| held.iter().any(|held| held.lock == *guard);
        let Some(first) = self.first else {
            (self.first, self.always) = (Some((thread, starts.time(thread))), all());
            return;
        };
        self.always.retain(is_held);
        match &mut self.later {
            None if first.0 == thread => self.first = Some((thread, starts.time(thread))),
            None => self.later = Some((index, all())),
            Some((_, guards)) => guards.retain(is_held),
        }
        // The times of threads with large numbers are not known.
        self.is_ordered &= first.0 == thread || first.1 != 0 && is_before(starts.of(thread), first);
    }
}

/// The locks that threads hold exclusively.
#[derive(Debug, Default)]
struct Locks {
    threads: Vec<Vec<Held>>,
    /// The number of sections so far.
    sections: u32,
    /// Locks that a thread released which did not hold them.
    doubtful: HashSet<LockId>,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    lock: LockId,
    section: u32,
}

impl Locks {
    fn held(&self, thread: ThreadId) -> &[Held] {
        self.threads.get(thread.index()).map_or(&[], Vec::as_slice)
    }

    /// The number of the section of a lock that a thread is in, counted from one.
    fn section(&self, thread: ThreadId, lock: LockId) -> Option<u32> {
        self.held(thread).iter().find(|held| held.lock == lock).map(|held| held.section)
    }

    fn event(&mut self, event: &Event) {
        let (thread, wait_lock) = (event.thread(), event.wait_lock());
        match event.op() {
            Op::Acquire => self.take(thread, event.lock()),
            Op::Release => self.give(thread, event.lock()),
            Op::WaitBegin => wait_lock.into_iter().for_each(|lock| self.give(thread, lock)),
            Op::WaitEnd => wait_lock.into_iter().for_each(|lock| self.take(thread, lock)),
            // Which lock it gave back meanwhile is not known.
            Op::Wait => {
                for held in entry(&mut self.threads, thread.index()) {
                    self.sections += 1;
                    held.section = self.sections;
                }
            }
            _ => {}
        }
    }

    fn take(&mut self, thread: ThreadId, lock: LockId) {
        self.sections += 1;
        let section = self.sections;
        entry(&mut self.threads, thread.index()).push(Held { lock, section });
    }

    fn give(&mut self, thread: ThreadId, lock: LockId) {
        let held = entry(&mut self.threads, thread.index());
        match held.iter().rposition(|held| held.lock == lock) {
            Some(at) => {
                held.remove(at);
            }
            None => {
                self.doubtful.insert(lock);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use foresee_testkit::oracle::{Reads, Reorderings};
    use foresee_testkit::{only, trace};
    use foresee_trace::Trace;
    use foresee_trace::generate::{Config, Written};

    use super::*;

    fn of(trace: &Trace) -> EventSet {
        unnoticed(&trace.events, &trace.pool, &trace.names)
    }

    /// The events that are left out, as text.
    fn left_out(trace: &Trace) -> Vec<String> {
        let set = of(trace);
        let events = trace.events.iter().enumerate().filter(|(index, _)| set.has(*index));
        events.map(|(_, event)| event.describe(&trace.names, &trace.pool).to_string()).collect()
    }

    #[test]
    fn a_section_shows_its_first_read_and_its_last_write() {
        let expected = ["r(x)=0", "r(x)=1", "w(x)=2", "w(x)=4", "r(x)=4", "r(x)=5"];
        let always = trace! {
            T1: acq(l), r(x)=0, r(x)=0, r(x)=0, w(x)=1, r(x)=1, w(x)=2, w(x)=3, rel(l);
            T2: acq(l), w(x)=4, r(x)=4, w(x)=5, rel(l), acq(l), r(x)=5, r(x)=5, rel(l)
        };
        assert_eq!(left_out(&always), expected);
        let later = trace! {
            T1: w(x)=1, w(x)=0, fork(T2);
            T2: acq(l), r(x)=0, rel(l);
            T1: acq(l), r(x)=0, r(x)=0, r(x)=0, w(x)=1, r(x)=1, w(x)=2, w(x)=3, rel(l);
            T2: acq(l), w(x)=4, r(x)=4, w(x)=5, rel(l), acq(l), r(x)=5, r(x)=5, rel(l)
        };
        assert_eq!(left_out(&later), expected);
    }

    #[test]
    fn nothing_is_left_out_without_a_common_lock() {
        for trace in [
            // Nothing puts the first write before the others.
            trace! {
                T1: w(x)=0;
                T2: acq(l), r(x)=0, r(x)=0, rel(l)
            },
            // One access is under another lock.
            trace! {
                T1: w(x)=0, fork(T2), acq(l), r(x)=0, r(x)=0, rel(l);
                T2: acq(m), w(x)=0, rel(m)
            },
            // The wait gives the lock back.
            trace! {
                T1: w(x)=0, fork(T2);
                T2: acq(l), r(x)=0, wait_begin(c, l);
                T1: acq(l), r(x)=0, notify(c), rel(l);
                T2: wait_end(c, l), r(x)=0, rel(l)
            },
            // Lifetimes ask for each use.
            trace! {
                T1: w("heap(a.c:1)#1+0")=0, fork(T2);
                T2: acq(l), r("heap(a.c:1)#1+0")=0, r("heap(a.c:1)#1+0")=0, rel(l);
                T1: acq(l), event(heap_free, "heap(a.c:1)#1"), rel(l)
            },
            // A region asks for all conflicts.
            trace! {
                T1: w(x)=0, fork(T2);
                T2: begin(region), acq(l), r(x)=0, r(x)=0, rel(l), end(region)
            },
            // Only a shared hold.
            trace! {
                T1: w(x)=0, fork(T2);
                T2: racq(l), r(x)=0, r(x)=0, rrel(l)
            },
        ] {
            assert!(left_out(&trace).is_empty(), "{trace}");
        }
    }

    /// Before which events, of those that are kept, all threads can stand at once.
    fn stands(trace: &Trace, reads: Reads, kept: &[usize]) -> BTreeSet<Vec<Option<usize>>> {
        let all = Reorderings::new(trace, reads);
        let numbers: Vec<Option<usize>> = (0..trace.events.len())
            .map(|event| kept.iter().position(|&kept| kept == event))
            .collect();
        let mut stands = BTreeSet::new();
        all.reach(|state| {
            let threads = (0..trace.names.threads.len()).map(ThreadId::new);
            let next: Vec<Option<usize>> = threads.map(|thread| all.next(state, thread)).collect();
            if next.iter().flatten().all(|&event| numbers[event].is_some()) {
                let number = |next: Option<usize>| next.and_then(|event| numbers[event]);
                stands.insert(next.into_iter().map(number).collect());
            }
            false
        });
        stands
    }

    #[test]
    fn what_is_left_out_changes_nothing_that_can_happen_to_the_rest() {
        let family = |seed: u64| Config {
            seed,
            threads: 2 + (seed % 2) as u32,
            events: 10 + seed % 14,
            variables: 1 + (seed % 3) as u32,
            locks: 1 + (seed / 3 % 2) as u32,
            conditions: (seed % 2) as u32,
            waits: if seed.is_multiple_of(2) { 0.0 } else { 0.1 },
            in_sections: if seed.is_multiple_of(5) { 0.8 } else { 1.0 },
            section_events: 5.0,
            reads: 0.6,
            shared: if seed.is_multiple_of(7) { 0.2 } else { 0.0 },
            tries: if seed.is_multiple_of(6) { 0.2 } else { 0.0 },
            reentrant: 0.1,
            forked: if seed.is_multiple_of(3) { 0.0 } else { 1.0 },
            joined: 0.5,
            values: if seed.is_multiple_of(4) { Written::Distinct } else { Written::Repeating(2) },
            ..Config::default()
        };
        let mut left_out = 0;
        for seed in foresee_testkit::seeds(20_000) {
            let trace = foresee_testkit::generated(family(seed));
            let set = of(&trace);
            let kept: Vec<usize> =
                (0..trace.events.len()).filter(|&event| !set.has(event)).collect();
            if kept.len() == trace.events.len() {
                continue;
            }
            left_out += trace.events.len() - kept.len();
            let rest = only(&trace, |event| !set.has(event));
            let of_rest: Vec<usize> = (0..kept.len()).collect();
            for reads in [Reads::Strict, Reads::Terminal, Reads::Identical] {
                let (before, after) =
                    (stands(&trace, reads, &kept), stands(&rest, reads, &of_rest));
                assert!(before == after, "seed {seed}, {reads:?}:\n{trace}\nwithout some:\n{rest}");
            }
        }
        assert!(left_out > foresee_testkit::enough::<usize>(2_000), "{left_out}");
    }
}
