//! When objects became shared: the agent does not record what a thread does to objects that no other can reach.
//!
//! Another thread reaches such an object by means of what was shared, so all that it does to it comes after that. How it got there
//! may not be recorded (the JDK may have handed the object over), nor are the writes whose values it reads, so the order is an event
//! of its own: the thread that shared the object writes a variable, which each other thread reads before its first use.

use foresee_trace::{Batch, Op};

use super::super::record::{NO_OBJECT, Record};
use super::super::{HashMap, HashSet};
use super::{JvmSource, Result, Target};

/// What was shared, with what, and who has reached it.
#[derive(Debug, Default)]
pub(super) struct Sharing {
    /// The object that each was shared with, which may be itself, and the thread that did it.
    roots: HashMap<u64, (u64, usize)>,
    /// What the object that a thread describes next was shared with.
    next: HashMap<usize, u64>,
    reached: HashSet<(usize, u64)>,
}

impl Sharing {
    pub(super) fn with(&mut self, i: usize, object: u64) {
        self.next.insert(i, object);
    }
}

impl JvmSource {
    /// A thread describes an object, which may be shared by that.
    pub(super) fn describe(&mut self, i: usize, record: &Record, batch: &mut Batch) -> Result<()> {
        let with = self.sharing.next.remove(&i);
        if record.value as u32 == NO_OBJECT {
            self.sharing.roots.remove(&record.object);
            return Ok(());
        }
        if let Some(&root) = with.and_then(|with| self.sharing.roots.get(&with)) {
            self.sharing.roots.insert(record.object, root);
            return self.reach(i, record, batch);
        }
        let is_shared = record.value_type != 0;
        if is_shared && self.objects.is_crossing(record.object) {
            self.sharing.roots.insert(record.object, (record.object, i));
            let var = self.variable(Target::Shared(record.object))?;
            self.doubt(|doubts| doubts.certain.write_order(i, var.0));
            self.simple(i, Op::VolatileWrite, var.0, record, batch)?;
        }
        Ok(())
    }

    /// A thread uses an object.
    pub(super) fn reach(&mut self, i: usize, record: &Record, batch: &mut Batch) -> Result<()> {
        let Some(&(root, by)) = self.sharing.roots.get(&record.object) else { return Ok(()) };
        if by != i && self.sharing.reached.insert((i, root)) {
            let var = self.variable(Target::Shared(root))?;
            self.doubt(|doubts| doubts.certain.read_order(i, var.0));
            self.simple(i, Op::VolatileRead, var.0, record, batch)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeSet;

    use foresee_testkit::oracle::{Reads, races_reading};
    use foresee_trace::{Event, Op, Trace, Value};

    /// An execution in which threads make objects, use them, share them, and then use what others shared. The flag of an event says
    /// whether the agent records it.
    struct Execution {
        trace: Trace,
        values: Vec<i64>,
        recorded: Vec<bool>,
    }

    impl Execution {
        fn step(&mut self, thread: usize, op: Op, var: &str, is_recorded: bool) -> i64 {
            let var = self.trace.names.vars.intern(var).unwrap();
            if self.values.len() <= var.0 as usize {
                self.values.resize(var.0 as usize + 1, 0);
            }
            let value = &mut self.values[var.0 as usize];
            *value += i64::from(op.writes());
            let value = *value;
            let thread = self.trace.names.thread(&format!("T{thread}")).unwrap();
            let event = Event::new(thread, op).with_target(var.0);
            let event = event.with_values(&[Value::Int(value)], &mut self.trace.pool);
            self.trace.events.push(event);
            self.recorded.push(is_recorded);
            value
        }

        fn access(&mut self, thread: usize, var: &str, is_recorded: bool, is_write: bool) -> i64 {
            self.step(thread, if is_write { Op::Write } else { Op::Read }, var, is_recorded)
        }
    }

    /// With `by_field`, objects are found in fields; else in a way that is not recorded.
    fn execution(chance: &mut fastrand::Rng, by_field: bool) -> Execution {
        let threads = chance.usize(2..4);
        let mut all =
            Execution { trace: Trace::default(), values: Vec::new(), recorded: Vec::new() };
        let makers: Vec<usize> = (0..2).map(|_| chance.usize(..threads)).collect();
        let mut is_shared = [false; 2];
        let mut knows = vec![[false; 2]; threads];
        for _ in 0..chance.usize(6..13) {
            let (thread, object) = (chance.usize(..threads), chance.usize(..2));
            let is_write = chance.bool();
            let field = format!("o{object}.{}", if chance.bool() { "f" } else { "g" });
            let is_maker = makers[object] == thread;
            match chance.u32(..5) {
                0 => {
                    all.access(thread, "x", true, is_write);
                }
                1 if is_maker && !is_shared[object] => {
                    all.step(thread, Op::VolatileWrite, &format!("o{object}:shared"), true);
                    if by_field {
                        all.access(thread, &format!("p{object}"), true, true);
                    }
                    is_shared[object] = true;
                }
                _ if is_maker || knows[thread][object] => {
                    all.access(thread, &field, is_shared[object], is_write);
                }
                _ if is_shared[object] || by_field => {
                    let is_found =
                        !by_field || all.access(thread, &format!("p{object}"), true, false) > 0;
                    if is_found {
                        all.step(thread, Op::VolatileRead, &format!("o{object}:shared"), true);
                        knows[thread][object] = true;
                    }
                }
                _ => {}
            }
        }
        all
    }

    /// The races among the events that are kept, by their places among these; and whether others race.
    fn kept_races(
        trace: &Trace,
        keep: impl Fn(usize) -> bool,
        reads: Reads,
    ) -> (BTreeSet<[usize; 2]>, bool) {
        let places: Vec<usize> = (0..trace.events.len()).filter(|&i| keep(i)).collect();
        let place = |event: usize| places.binary_search(&event).ok();
        let mut found = (BTreeSet::new(), false);
        for race in races_reading(trace, reads) {
            match race.map(place) {
                [Some(a), Some(b)] => _ = found.0.insert([a, b]),
                _ => found.1 = true,
            }
        }
        found
    }

    #[test]
    fn what_is_left_out_changes_no_race() {
        let (mut left_out, mut racing) = (0, 0);
        for seed in 0..3_000 {
            let by_field = seed % 2 == 0;
            let all = execution(&mut fastrand::Rng::with_seed(seed), by_field);
            let is_sharing =
                |i: usize| matches!(all.trace.events[i].op(), Op::VolatileRead | Op::VolatileWrite);
            let only = |keep: &dyn Fn(usize) -> bool| foresee_testkit::only(&all.trace, keep);
            let seen = only(&|i| all.recorded[i]);
            left_out += all.recorded.iter().filter(|recorded| !**recorded).count();
            let (whole, others) = kept_races(&all.trace, |i| all.recorded[i], Reads::Identical);
            let (found, _) = kept_races(&seen, |_| true, Reads::Identical);
            assert_eq!(found, whole, "seed {seed}");
            assert!(!others, "seed {seed}");
            racing += found.len();
            // By their values, reads may see writes that were left out; nothing is found beyond that.
            let (whole, _) = kept_races(&all.trace, |i| all.recorded[i], Reads::Strict);
            let (found, _) = kept_races(&seen, |_| true, Reads::Strict);
            assert!(found.is_subset(&whole), "seed {seed}");
            if by_field {
                // Where the field says how the object was found, the order of sharing says nothing new.
                let plain = only(&|i| !is_sharing(i));
                let numbers: Vec<usize> =
                    (0..all.recorded.len()).filter(|&i| !is_sharing(i)).collect();
                let (found, others) =
                    kept_races(&plain, |i| all.recorded[numbers[i]], Reads::Identical);
                assert!(!others, "seed {seed}");
                let all = kept_races(&all.trace, |i| all.recorded[i], Reads::Identical).0;
                assert_eq!(found.len(), all.len(), "seed {seed}");
            }
        }
        assert!(left_out > 1_000 && racing > 1_000, "{left_out} {racing}");
    }
}
