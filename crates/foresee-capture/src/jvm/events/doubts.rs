//! What the trace cannot tell, because the order of some steps is that of this run.

use std::collections::BTreeSet;

use foresee_trace::{Id, VarId};

use super::super::HashMap;
use super::super::certain::{Certain, Doubt, How};
use super::super::initialisers::Initialisers;
use super::super::record::{Kind, Record};
use super::{JvmSource, Target};
use crate::log::{Waits, listed};

const NOT_TO_THE_END: &str = "whether threads and tasks access memory in an order that only this run had was not looked at to the end";

/// In place of an object, the room in it.
const ROOM: u64 = 1 << 62;

/// What is certain about the steps so far.
#[derive(Debug, Default)]
pub(super) struct Doubts {
    pub(super) certain: Certain,
    initialisers: Initialisers,
    waits: Waits,
    /// How deeply locks are held.
    depths: HashMap<(usize, u64), u32>,
    /// How deeply those were held that a thread gave up to wait.
    given_up: HashMap<(usize, u64), u32>,
}

impl Doubts {
    pub(super) fn acquire(&mut self, i: usize, lock: u64, is_shared: bool, waits: bool) {
        self.certain.acquire(i, lock, is_shared, waits);
        let depth = self.depths.entry((i, lock)).or_default();
        *depth += 1;
        if *depth == 1 {
            self.waits.acquire(i as u32, lock, waits);
        }
    }

    pub(super) fn release(&mut self, i: usize, lock: u64) {
        self.certain.release(i, lock);
        let depth = self.depths.entry((i, lock)).or_default();
        *depth = depth.saturating_sub(1);
        if *depth == 0 {
            self.waits.release(i as u32, lock);
        }
    }

    pub(super) fn wait(&mut self, i: usize, lock: u64, is_begin: bool) {
        if is_begin {
            self.certain.wait(i, lock);
            let depth = self.depths.remove(&(i, lock)).unwrap_or(0);
            self.given_up.insert((i, lock), depth);
            self.waits.release(i as u32, lock);
        } else if let Some(depth) = self.given_up.remove(&(i, lock)) {
            for _ in 0..depth {
                self.certain.wake(i, lock);
            }
            self.depths.insert((i, lock), depth);
            self.waits.acquire(i as u32, lock, true);
        }
    }

    pub(super) fn join(&mut self, i: usize, child: usize) {
        self.certain.join(i, child);
        self.waits.joins(i as u32, child as u32);
    }
}

impl JvmSource {
    /// Asks what of the order is certain, beside making events.
    pub(in super::super) fn compare(&mut self) {
        self.doubts = Some(Box::default());
    }

    pub(super) fn doubt(&mut self, step: impl FnOnce(&mut Doubts)) {
        if let Some(doubts) = &mut self.doubts {
            step(doubts);
            if doubts.certain.is_full() {
                self.doubts = None;
                self.partial(NOT_TO_THE_END);
            }
        }
    }

    pub(super) fn note_access(&mut self, i: usize, var: VarId, how: How) {
        if let Some(doubts) = &mut self.doubts {
            doubts.certain.access(i, var.0, how);
            if self.watched.contains(&var) {
                doubts.certain.watch(i);
            }
        }
    }

    /// Notes what a record says about the order, beside what becomes an event.
    pub(super) fn note(&mut self, i: usize, record: &Record) {
        let Some(doubts) = &mut self.doubts else { return };
        let (thread, object, value) = (i as u32, record.object, record.value as i64);
        let Doubts { certain, waits, initialisers, .. } = &mut **doubts;
        let element = (record.value_type, record.value);
        match record.kind {
            Kind::End => certain.end(i),
            Kind::TaskBegin => certain.begin_task(i, object, record.value),
            Kind::TaskEnd => certain.end_task(i),
            Kind::Waits => waits.asks(thread, if value == 1 { object ^ ROOM } else { object }),
            Kind::Give => {
                certain.give(i, object, (element.0 != 0).then_some(element));
                waits.provides(thread, object);
            }
            Kind::Got => certain.got(i, object, element, false),
            Kind::Removed => {
                certain.got(i, object, element, true);
                waits.provides(thread, object ^ ROOM);
            }
            Kind::Told => {
                certain.told(i, object);
                if let Some(var) = self.targets.get(&Target::Collection(object)) {
                    certain.access(i, var.0, How { reads: true, ..How::default() });
                }
            }
            Kind::Post => {
                certain.post(i, object, record.value);
                waits.provides(thread, object);
            }
            Kind::Look => certain.look(i, object),
            Kind::Miss => certain.miss(i, object),
            Kind::Permits => {
                certain.permits(object, value);
                waits.begins(object, value.max(0) as u64);
            }
            Kind::Raised => {
                certain.raise(i, object, value);
                (0..value.min(64)).for_each(|_| waits.raises(thread, object));
            }
            Kind::Lowered => {
                certain.lower(i, object, value.abs());
                (0..value.abs().min(64)).for_each(|_| waits.lowers(thread, object, value > 0));
            }
            Kind::Initialising => {
                certain.initialising(i, true);
                initialisers.begin(i, object);
            }
            Kind::Initialised => {
                certain.initialising(i, false);
                initialisers.end(i, object, certain.now(i));
            }
            Kind::InitialisationSeen => {
                initialisers.seen(i, object, |moment| certain.knows(i, moment));
            }
            Kind::Hold => certain.hold(i, object, record.value),
            Kind::Unhold if value == 1 => certain.leave_key(i),
            Kind::Unhold => certain.unhold(i, object),
            Kind::Key => certain.hold_key(i, object, element),
            _ => {}
        }
    }

    /// Says, when all records are read, what is not known.
    pub(super) fn tell_doubts(&mut self) {
        let Some(mut doubts) = self.doubts.take() else { return };
        if self.dictionary.is_async {
            return;
        }
        self.tell_order(&mut doubts.certain);
        let stuck = doubts.waits.doubtful();
        let names: BTreeSet<String> = stuck
            .iter()
            .flatten()
            .map(|object| self.objects.name(object & !ROOM, &self.dictionary))
            .collect();
        let names: Vec<String> = names.into_iter().collect();
        let what = match stuck {
            Some(_) if names.is_empty() => None,
            Some(_) => Some(listed(&names, "more object")),
            None => Some("semaphores, futures and the like".to_owned()),
        };
        if let Some(what) = what {
            self.partial(&format!(
                "whether threads could wait forever for {what} is not known: a thread that is to provide it may have to wait for \
                 a lock or a permit that another one has"
            ));
        }
        let extended: Vec<(u64, u64)> = {
            let numbers: HashMap<&str, u64> = self
                .dictionary
                .initialisers
                .iter()
                .map(|(&number, name)| (&**name, number))
                .collect();
            let above = |(&class, name): (&u64, &String)| Some((class, *numbers.get(&**name)?));
            self.dictionary.extended.iter().filter_map(above).collect()
        };
        // The agent counts them down from -2.
        let object = |number: u64| !(number + 1);
        for (class, above) in extended {
            doubts.initialisers.extends(object(class), object(above));
        }
        for classes in doubts.initialisers.doubtful() {
            let name = |object: &u64| {
                let number = (!object).wrapping_sub(1);
                self.dictionary.initialisers.get(&number).map_or("?", String::as_str).to_owned()
            };
            let mut names: Vec<String> = classes.iter().map(name).collect();
            names.sort();
            self.partial(&format!(
                "the static initialisers of {} need each other: threads that begin with different ones wait for each other \
                 forever",
                names.join(" and ")
            ));
        }
    }

    fn tell_order(&mut self, certain: &mut Certain) {
        let statics: Vec<bool> = {
            let mut statics = vec![false; self.names.vars.len()];
            for (target, var) in &self.targets {
                statics[var.index()] = matches!(target, Target::Field(0, _));
            }
            statics
        };
        certain.finish(|var| statics.get(var as usize).is_some_and(|&is_static| is_static));
        let (mut variables, mut of_tasks) = (BTreeSet::new(), BTreeSet::new());
        let mut others = BTreeSet::new();
        for doubt in &certain.doubts {
            let of = |object: u64| self.objects.name(object, &self.dictionary);
            match *doubt {
                Doubt::Variable(var) => _ = variables.insert(self.names.vars.get(VarId(var)).to_owned()),
                Doubt::Tasks(var) => _ = of_tasks.insert(self.names.vars.get(VarId(var)).to_owned()),
                Doubt::Locks(one, other) => _ = others.insert(format!(
                    "{} and {} are taken in both orders, and only what threads did in this run kept them from doing so at the same \
                     time: whether they could wait for each other forever is not known",
                    of(one),
                    of(other)
                )),
                Doubt::Meeting(object) => _ = others.insert(format!(
                    "which threads meet at {} is a matter of chance, and other meetings are not predicted",
                    of(object)
                )),
                Doubt::NoLock(object) => _ = others.insert(format!(
                    "threads gave permits of {} back that they did not have, and whether it keeps threads apart is not known",
                    of(object)
                )),
                Doubt::Source(object) => _ = others.insert(format!(
                    "the permits of {} could have come from other threads, and what could happen then is not predicted",
                    of(object)
                )),
                Doubt::Stamp(object) => _ = others.insert(format!(
                    "what was read with a stamp of {} was not validated",
                    of(object)
                )),
                Doubt::Specification => _ = others.insert(
                    "events that the specification is about are in order only by what threads did in this run with concurrent \
                     collections, semaphores, tasks and the like: other orders are not predicted"
                        .to_owned(),
                ),
            }
        }
        let list = |names: BTreeSet<String>| {
            listed(&names.into_iter().collect::<Vec<_>>(), "more variable")
        };
        if !variables.is_empty() {
            others.insert(format!(
                "what threads did with concurrent collections, semaphores, futures and the like stays in the order of this run, and \
                 without that order they could access {} at the same time",
                list(variables)
            ));
        }
        if !of_tasks.is_empty() {
            others.insert(format!(
                "tasks that one thread executed access {}, and others could have executed them at the same time",
                list(of_tasks)
            ));
        }
        if certain.is_cut {
            others.insert(NOT_TO_THE_END.to_owned());
        }
        others.iter().for_each(|reason| self.partial(reason));
    }
}
