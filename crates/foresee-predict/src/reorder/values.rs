//! Which writes a read could have seen just as well: those of the same value.
//!
//! A thread that reads a value does the same whichever write stored it. So a read does not need the
//! very write that it saw, but some write of that value, the initial one included. The search
//! decides which of them is the last before the read; most can be ruled out at once. A write cannot
//! be seen if another one, of another value, certainly comes after it and before the read, or if it
//! needs the read itself. A read for which only the write that it saw remains is *bound* to it. For
//! the others, if all remaining writes are of one thread, at least the first of them comes before
//! the read.
//!
//! As for [landmarks](super::landmarks), clocks over program order, forks, joins and what bound
//! reads saw show what certainly comes before what. There are two passes: the second knows from the
//! first what later writes need.
//!
//! Values are kept as numbers of 32 bits, four bytes per event: small integers as they are, others
//! by where they were first seen. Zero is an unknown value, or one that means nothing because it
//! may be an address.

use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;
use foresee_causality::{Clock, ClockStore};
use foresee_trace::{Event, Op, Pool, ThreadId, Value};

use super::free::FreeReads;
use super::requirements::Requirements;
use crate::needs::{Kind, NONE};

/// The number of values other than small integers that are distinguished.
const MOST_OTHERS: usize = 1 << 20;
/// How many writes before a read are examined for one that hides others.
const LOOK_BACK: usize = 64;
/// Set in the numbers of values other than small integers.
const OTHER: u32 = 1 << 31;

/// The values of all events of a trace, and what follows from them.
#[derive(Debug, Default)]
pub(super) struct Values {
    /// For each event, the value that it wrote, or read if it only reads.
    codes: Vec<u32>,
    /// The values that read-modify-writes read, in their order.
    found: Vec<(u32, u32)>,
    /// The initial value of each variable.
    initial: Vec<u32>,
    others: HashMap<Value, u32, RandomState>,
    /// The reads that may see another write, with what they still need.
    free: FreeReads,
    /// For each variable and value of such a read, the writes of that value in their order.
    alike: HashMap<(u32, u32), Vec<u32>, RandomState>,
    /// For each variable of such a read, all its writes in their order.
    writes: HashMap<u32, Vec<u32>, RandomState>,
    /// The variables and values for which some read has no recorded value.
    untold: HashSet<(u32, u32), RandomState>,
}

impl Values {
    fn code(&mut self, value: Option<Value>) -> u32 {
        match value.filter(|value| value.stands_for_itself()) {
            Some(Value::Int(n)) if (-(1 << 29)..1 << 29).contains(&n) => (n + (1 << 29) + 1) as u32,
            Some(value) => {
                let next = self.others.len() as u32 | OTHER;
                match self.others.get(&value) {
                    Some(&code) => code,
                    None if self.others.len() >= MOST_OTHERS => 0,
                    None => *self.others.entry(value).or_insert(next),
                }
            }
            None => 0,
        }
    }

    /// Takes the next event; `writer` is the write that it saw.
    pub(super) fn push(&mut self, event: &Event, pool: &Pool, writer: u32) {
        let (op, index) = (event.op(), self.codes.len() as u32);
        let code = match op {
            Op::Init => self.code(pool.value(event)),
            _ if op.writes() => self.code(pool.value_left(event)),
            _ if op.reads() => self.code(pool.value_found(event)),
            _ => 0,
        };
        self.codes.push(code);
        let mut found = if op.reads() { code } else { 0 };
        if op == Op::Rmw {
            found = self.code(pool.value_found(event));
            self.found.push((index, found));
        }
        if op == Op::Init && code != 0 || op.reads() && writer == NONE {
            let variable = event.var().0 as usize;
            if variable >= self.initial.len() {
                self.initial.resize(variable + 1, 0);
            }
            let initial = &mut self.initial[variable];
            if op == Op::Init {
                *initial = code;
            } else if *initial == 0 {
                *initial = found;
            }
        }
    }

    /// The value that a read saw.
    #[inline]
    fn found(&self, read: u32) -> u32 {
        let at = self.found.partition_point(|&(rmw, _)| rmw < read);
        match self.found.get(at) {
            Some(&(rmw, code)) if rmw == read => code,
            _ => self.codes[read as usize],
        }
    }

    /// The same, given what kind of read it is: only read-modify-writes have to be looked up.
    #[inline]
    fn found_by(&self, kind: Kind, read: u32) -> u32 {
        if kind == Kind::Rmw { self.found(read) } else { self.codes[read as usize] }
    }

    /// Ignores the value of a read.
    fn forget(&mut self, read: u32) {
        match self.found.binary_search_by_key(&read, |&(rmw, _)| rmw) {
            Ok(at) => self.found[at].1 = 0,
            Err(_) => self.codes[read as usize] = 0,
        }
    }

    /// The value of a variable after a write, or its initial value.
    #[inline]
    fn left(&self, variable: u32, write: u32) -> u32 {
        match write {
            NONE => self.initial.get(variable as usize).copied().unwrap_or(0),
            write => self.codes[write as usize],
        }
    }

    /// Whether any read could have seen another write.
    pub(super) fn has_free_reads(&self) -> bool {
        !self.free.is_empty()
    }

    /// What a read needs although it may see another write; `None` if it may not.
    #[inline]
    pub(super) fn need_of_free(&self, read: u32) -> Option<u32> {
        self.free.get(read)
    }

    /// Whether a read of a variable would see the same value after another write, or after none.
    #[inline]
    pub(super) fn is_alike(&self, read: u32, variable: u32, write: u32) -> bool {
        let found = self.found(read);
        found != 0 && found == self.left(variable, write)
    }

    /// The writes of the value that a read saw, in their order.
    pub(super) fn alike(&self, read: u32, variable: u32) -> &[u32] {
        self.alike.get(&(variable, self.found(read))).map_or(&[], Vec::as_slice)
    }

    /// The representative of all writes of this one's value, if no read distinguishes them. With
    /// `base`, it is the last write before some event if that has the same value.
    pub(super) fn stands_for(&self, variable: u32, write: u32, base: u32) -> Option<u32> {
        let code = self.left(variable, write);
        let key = (variable, code);
        let alike = self.alike.get(&key).filter(|_| code != 0 && !self.untold.contains(&key))?;
        match self.left(variable, base) == code {
            true => Some(base),
            false => alike.first().copied(),
        }
    }

    /// The last write of a variable before an event, if some read of it is not bound.
    pub(super) fn last_before(&self, variable: u32, event: u32) -> u32 {
        let Some(writes) = self.writes.get(&variable) else { return NONE };
        let before = writes.partition_point(|&write| write < event);
        before.checked_sub(1).map_or(NONE, |at| writes[at])
    }
}

/// Data about a variable and a value while reads are being bound.
#[derive(Debug, Default)]
struct Group {
    /// The writes, in their order.
    writes: Vec<u32>,
    /// The same by thread.
    threads: Vec<(u32, Vec<u32>)>,
    is_initial: bool,
}

/// Finds the reads that are bound to the write they saw. The trace has ended, and only variables
/// that several threads use remain.
pub(super) fn bind(requirements: &Requirements, values: &mut Values) {
    let mut groups: Vec<Group> = Vec::new();
    let mut numbers: HashMap<(u32, u32), u32, RandomState> = HashMap::default();
    let mut pairs: Vec<(u32, u32, u32)> = Vec::new();
    let mut is_read: Vec<bool> = Vec::new();
    for event in 0..requirements.len() as u32 {
        let (kind, object) = (requirements.kind(event), requirements.object(event));
        if object == NONE || !(kind.reads() || kind.writes()) {
            continue;
        }
        let variable = (object / 2) as usize;
        if kind.reads() {
            if variable >= is_read.len() {
                is_read.resize(variable + 1, false);
            }
            is_read[variable] = true;
        }
        if kind.writes() && values.codes[event as usize] != 0 {
            pairs.push((variable as u32, values.codes[event as usize], event));
        }
    }
    pairs.retain(|pair| is_read.get(pair.0 as usize) == Some(&true));
    pairs.sort_unstable();
    for same in pairs.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
        let (variable, code, _) = same[0];
        let is_initial = values.left(variable, NONE) == code;
        // If there is only one write, every read saw it, unless its own value is unknown.
        let mut group = Group { is_initial, ..Group::default() };
        for &(_, _, event) in same {
            group.writes.push(event);
            let thread = requirements.thread(event);
            match group.threads.iter_mut().find(|own| own.0 == thread) {
                Some(own) => own.1.push(event),
                None => group.threads.push((thread, vec![event])),
            }
        }
        numbers.insert((variable, code), groups.len() as u32);
        groups.push(group);
    }
    drop(pairs);
    let (mut doubtful, mut wrong) = (Vec::new(), Vec::new());
    for read in 0..requirements.len() as u32 {
        let kind = requirements.kind(read);
        if kind.reads() && requirements.object(read) != NONE {
            let variable = requirements.object(read) / 2;
            let (found, writer) = (values.found_by(kind, read), requirements.partner(read));
            let left = values.left(variable, writer);
            // The value was stored by a write that is not in the trace.
            if found != 0 && left != 0 && left != found {
                wrong.push(read);
            }
            if left != 0 && left != found {
                values.untold.insert((variable, left));
            }
            if found == 0 || left != 0 && left != found {
                continue;
            }
            let Some(&number) = numbers.get(&(variable, found)) else { continue };
            let group = &groups[number as usize];
            let is_only = match writer {
                NONE => false,
                writer => !group.is_initial && group.writes == [writer],
            };
            if !is_only {
                doubtful.push((read, number));
            }
        }
    }
    wrong.into_iter().for_each(|read| values.forget(read));
    if doubtful.is_empty() {
        return;
    }
    let mut binder = Binder::new(requirements, &groups, &doubtful);
    for _ in 0..2 {
        binder.pass(values);
    }
    let free = std::mem::take(&mut binder.free);
    for read in free.reads() {
        let variable = requirements.object(read) / 2;
        values.writes.entry(variable).or_default();
        let key = (variable, values.found(read));
        let group = numbers.get(&key).map(|&number| &mut groups[number as usize]);
        if let Some(group) = group.filter(|group| !group.writes.is_empty()) {
            values.alike.insert(key, std::mem::take(&mut group.writes));
        }
    }
    values.free = free;
    for event in 0..requirements.len() as u32 {
        let object = requirements.object(event);
        if object != NONE
            && requirements.kind(event).writes()
            && let Some(writes) = values.writes.get_mut(&(object / 2))
        {
            writes.push(event);
        }
    }
}

/// A write of a variable with a doubtful read.
#[derive(Clone, Copy, Debug)]
struct Written {
    event: u32,
    needs: Clock,
    /// The first of the writes just before it that all certainly come before it, by its place among
    /// the writes of the variable.
    run: u32,
}

/// Rules out writes that reads cannot see.
struct Binder<'b> {
    requirements: &'b Requirements,
    groups: &'b [Group],
    /// The reads in doubt, with the groups of what they found.
    doubtful: &'b [(u32, u32)],
    store: ClockStore,
    /// The number of each variable with a doubtful read; [`NONE`] for others.
    numbers: Vec<u32>,
    /// For each of these, its writes so far, and those of the previous pass.
    writes: Vec<Vec<Written>>,
    needed: Vec<Vec<Written>>,
    free: FreeReads,
}

impl<'b> Binder<'b> {
    fn new(
        requirements: &'b Requirements,
        groups: &'b [Group],
        doubtful: &'b [(u32, u32)],
    ) -> Binder<'b> {
        let mut numbers = vec![NONE; requirements.object_count().div_ceil(2)];
        let mut count = 0;
        for &(read, _) in doubtful {
            let number = &mut numbers[(requirements.object(read) / 2) as usize];
            if *number == NONE {
                *number = count;
                count += 1;
            }
        }
        Binder {
            requirements,
            groups,
            doubtful,
            store: ClockStore::default(),
            numbers,
            writes: vec![Vec::new(); count as usize],
            needed: vec![Vec::new(); count as usize],
            free: FreeReads::default(),
        }
    }

    /// Goes through the trace once.
    fn pass(&mut self, values: &Values) {
        let requirements = self.requirements;
        self.free = FreeReads::default();
        std::mem::swap(&mut self.writes, &mut self.needed);
        self.writes.iter_mut().for_each(Vec::clear);
        let mut kept: usize = self.needed.iter().map(Vec::len).sum();
        let mut threads = vec![Clock::EMPTY; requirements.thread_count()];
        let mut written = vec![Clock::EMPTY; requirements.object_count().div_ceil(2)];
        let mut next = self.doubtful.iter().copied().peekable();
        for event in 0..requirements.len() as u32 {
            let (kind, t) = (requirements.kind(event), requirements.thread(event) as usize);
            if kind == Kind::Init {
                continue;
            }
            let mut known = threads[t];
            let object = requirements.object(event);
            let mut hear = |store: &mut ClockStore, other: u32, needs: Clock| {
                let of = ThreadId(requirements.thread(other));
                if store.get(known, of)[0] <= other {
                    known = store.learn(known, needs, of, [other + 1]);
                }
            };
            if !requirements.has_previous(event) && requirements.previous(event) != NONE {
                hear(&mut self.store, requirements.previous(event), Clock::EMPTY);
            }
            let partner = requirements.partner(event);
            match kind {
                Kind::Read | Kind::Rmw if object != NONE => {
                    let seen = match next.next_if(|doubtful| doubtful.0 == event) {
                        Some((_, group)) => self.seen(values, event, group, threads[t]),
                        None => Seen::Bound,
                    };
                    match seen {
                        Seen::Bound if partner != NONE => {
                            hear(&mut self.store, partner, written[(object / 2) as usize]);
                        }
                        Seen::Bound => {}
                        Seen::After(NONE) => {
                            self.free.push(event, NONE);
                        }
                        Seen::After(first) => {
                            self.free.push(event, first);
                            let number = self.numbers[(object / 2) as usize];
                            let needs = needs_of(&self.writes[number as usize], first);
                            hear(&mut self.store, first, needs.unwrap_or(Clock::EMPTY));
                        }
                    }
                }
                Kind::Join if partner != NONE => {
                    let other = threads[requirements.thread(partner) as usize];
                    hear(&mut self.store, partner, other);
                }
                _ => {}
            }
            if kind.writes() && object != NONE {
                written[(object / 2) as usize] = known;
                let number = self.numbers[(object / 2) as usize];
                if let Some(list) = self.writes.get_mut(number as usize) {
                    let run = match list.last() {
                        Some(last)
                            if comes_before(requirements, &self.store, last, (event, known)) =>
                        {
                            last.run
                        }
                        _ => list.len() as u32,
                    };
                    list.push(Written { event, needs: known, run });
                    kept += 1;
                }
            }
            threads[t] = known;
            if self.store.is_worth_collecting(written.len() + kept) {
                let lists = self.writes.iter().chain(&self.needed).flatten();
                let roots = threads.iter().chain(&written).copied();
                self.store.collect(roots.chain(lists.map(|write| write.needs)));
            }
        }
    }

    /// What a doubtful read may have seen, given what its thread needs just before it.
    fn seen(&self, values: &Values, read: u32, group: u32, known: Clock) -> Seen {
        let requirements = self.requirements;
        let variable = requirements.object(read) / 2;
        let (own, writer) = (requirements.thread(read), requirements.partner(read));
        let found = values.found_by(requirements.kind(read), read);
        let group = &self.groups[group as usize];
        let number = self.numbers[variable as usize] as usize;
        let before = |clock: Clock, event: u32| {
            self.store.get(clock, ThreadId(requirements.thread(event)))[0] > event
        };
        // Writes of another value that certainly come before the read, and hide what they need.
        let mut hiding: [(u32, Clock); 8] = [(NONE, Clock::EMPTY); 8];
        let mut count = 0;
        let list = &self.writes[number];
        let (mut at, end) = (list.len(), list.len().saturating_sub(LOOK_BACK));
        while at > end {
            at -= 1;
            let Written { event: write, needs, run } = list[at];
            if values.codes[write as usize] == found || write == writer {
                continue;
            }
            let thread = requirements.thread(write);
            let is_later =
                |h: &(u32, Clock)| requirements.thread(h.0) == thread || before(h.1, write);
            // Most are hidden by a later one, which is cheaper to see than what the read knows.
            if hiding[..count].iter().any(is_later) {
                continue;
            }
            if thread == own || before(known, write) {
                hiding[count] = (write, needs);
                count += 1;
                if count == hiding.len() {
                    break;
                }
                // It hides these as well.
                at = run as usize;
            }
        }
        let hiding = &hiding[..count];
        // Events of a thread before this are hidden.
        let hidden = |thread: u32| {
            let by = |&(write, needs): &(u32, Clock)| match requirements.thread(write) == thread {
                true => write + 1,
                false => self.store.get(needs, ThreadId(thread))[0],
            };
            hiding.iter().map(by).max().unwrap_or(0)
        };
        let mut left = Left::default();
        if writer == NONE || group.is_initial && hiding.is_empty() {
            left.add(&[NONE], writer);
        }
        if writer != NONE && values.codes[writer as usize] == 0 {
            left.add(&[writer], writer);
        }
        for (thread, writes) in &group.threads {
            let from = hidden(*thread);
            let visible = &writes[writes.partition_point(|&write| write < from)..];
            let visible = match *thread == own {
                // The thread's own last write before the read.
                true => {
                    let before = visible.partition_point(|&write| write < read);
                    &visible[before.saturating_sub(1)..before]
                }
                // Those that do not need the read.
                false => {
                    let needs_it = |&write: &u32| {
                        write > read
                            && needs_of(&self.needed[number], write)
                                .is_some_and(|n| before(n, read))
                    };
                    &visible[..visible.partition_point(|write| !needs_it(write))]
                }
            };
            left.add(visible, writer);
        }
        match left {
            Left { others: false, .. } => Seen::Bound,
            Left { threads: 1, first, .. } if first < read => Seen::After(first),
            _ => Seen::After(NONE),
        }
    }
}

/// What a write needs, according to a list in their order.
fn needs_of(writes: &[Written], write: u32) -> Option<Clock> {
    writes.binary_search_by_key(&write, |known| known.event).ok().map(|at| writes[at].needs)
}

/// Whether a write certainly comes before another event with these needs.
fn comes_before(
    requirements: &Requirements,
    store: &ClockStore,
    write: &Written,
    (event, needs): (u32, Clock),
) -> bool {
    let thread = requirements.thread(write.event);
    thread == requirements.thread(event) || store.get(needs, ThreadId(thread))[0] > write.event
}

/// The writes that a read may still see.
#[derive(Default)]
struct Left {
    /// Whether there are any besides the one that it saw.
    others: bool,
    /// The number of their threads; the initial value counts as one more.
    threads: usize,
    /// The first of the thread that was added last.
    first: u32,
}

impl Left {
    /// Adds those of one thread.
    fn add(&mut self, visible: &[u32], writer: u32) {
        if let Some(&first) = visible.first() {
            self.others |= visible != [writer];
            self.threads += 1;
            self.first = first;
        }
    }
}

/// What a read may have seen.
enum Seen {
    /// Only the write that it saw.
    Bound,
    /// A write that is not before this one, or any.
    After(u32),
}

#[cfg(test)]
mod tests {
    use foresee_testkit::trace;
    use foresee_trace::Trace;

    use super::super::requirements::Requirements;
    use crate::needs::NONE;

    /// The reads that are not bound, with what they need.
    fn free(trace: &Trace) -> Vec<(u32, u32)> {
        let mut requirements = Requirements::default();
        trace.events.iter().for_each(|event| requirements.push(event, &trace.pool).unwrap());
        requirements.finish();
        let all = (0..trace.events.len() as u32).filter(|&event| requirements.is_free(event));
        all.map(|event| (event, requirements.need(event))).collect()
    }

    #[test]
    fn reads_are_bound_where_nothing_else_will_do() {
        // No other thread writes it.
        assert_eq!(free(&trace! { T1: w(x)=1, w(x)=2; T2: r(x)=2 }), []);
        // Any of two writes of one thread: the first one is needed in any case.
        assert_eq!(free(&trace! { T1: w(x)=1, w(x)=1; T2: r(x)=1 }), [(2, 0)]);
        // With two threads, neither is.
        assert_eq!(free(&trace! { T1: w(x)=1; T3: w(x)=1; T2: r(x)=1 }), [(2, NONE)]);
        // The initial value, unless the thread has written something else since.
        assert_eq!(
            free(&trace! { T2: r(x)=0; T1: w(x)=1, w(x)=0; T2: r(x)=0 }).last(),
            Some(&(3, NONE))
        );
        let told = trace! { T1: init(x)=0; T2: w(x)=1; T1: r(x)=1, w(x)=0; T2: r(x)=0 };
        assert_eq!(free(&told), []);
        // Turns: each needs the one before, and later ones need it.
        let turns = trace! {
            T1: init(x)=0; T1: r(x)=0, w(x)=1; T2: r(x)=1, w(x)=0; T1: r(x)=0, w(x)=1; T2: r(x)=1, w(x)=0
        };
        assert_eq!(free(&turns), []);
    }
}
