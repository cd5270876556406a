//! Could the noted events have happened in this order?
//!
//! This applies the rules of notes directly: each thread keeps its order, forks and joins precede
//! and follow the threads they concern, locks are passed on as observed, and for each value that
//! was read, a thread that may have written it has done so. It uses no clocks.

use std::collections::HashMap;

use foresee_trace::{Event, Id, Op, Trace, Value, entry};

use super::{Rejected, lock_of};

/// Whether the notes allow this order, which may be a prefix of an order of all events. An order
/// that they allow need not be possible for the program: writes in between are not considered.
pub fn check_notes(trace: &Trace, order: &[u64]) -> Result<(), Rejected> {
    let facts = Facts::new(trace);
    let mut happened = vec![false; trace.events.len()];
    // For each variable and value, the earliest note of a write that has happened.
    let mut written: HashMap<(u32, Option<Value>), usize> = HashMap::new();
    for (position, &index) in order.iter().enumerate() {
        let reject = |reason| Err(Rejected { position, reason });
        let Some(i) = usize::try_from(index).ok().filter(|&i| i < trace.events.len()) else {
            return reject("there is no such event");
        };
        if std::mem::replace(&mut happened[i], true) {
            return reject("the event happens twice");
        }
        let event = &trace.events[i];
        if facts.needs[i].iter().any(|&need| !happened[need as usize]) {
            return reject("an event that it depends on has not happened");
        }
        if event.op().reads() && !facts.is_explained(i, event, trace, &written) {
            return reject("no thread has written the value that is read");
        }
        if event.op().writes() {
            let key = (event.var().0, trace.pool.value(event));
            let earliest = written.entry(key).or_insert(i);
            *earliest = (*earliest).min(i);
        }
    }
    Ok(())
}

struct Facts {
    /// For each event, the events that must have happened.
    needs: Vec<Vec<u32>>,
    initial: HashMap<u32, Value>,
    /// For each variable and value, the earliest note of a write.
    noted: HashMap<(u32, Option<Value>), usize>,
    /// For each read, whether the order of atomic steps determines its writer.
    is_exact: Vec<bool>,
}

#[derive(Default)]
struct Lock {
    alone: Option<u32>,
    shared: Vec<u32>,
}

#[derive(Clone, Copy, Default)]
struct Var {
    has_plain_write: bool,
    last_atomic: Option<u32>,
}

impl Facts {
    fn new(trace: &Trace) -> Facts {
        let n = trace.events.len();
        let mut facts = Facts {
            needs: vec![Vec::new(); n],
            initial: HashMap::new(),
            noted: HashMap::new(),
            is_exact: vec![false; n],
        };
        let mut last: Vec<Option<u32>> = Vec::new();
        let mut forks: Vec<Option<u32>> = Vec::new();
        let mut locks: Vec<Lock> = Vec::new();
        let mut vars: Vec<Var> = Vec::new();
        for (i, event) in trace.events.iter().enumerate() {
            let here = i as u32;
            if event.op() == Op::Init {
                facts.initial.extend(trace.pool.value(event).map(|v| (event.var().0, v)));
                continue;
            }
            let t = event.thread().index();
            let needs = &mut facts.needs[i];
            let previous = entry(&mut last, t).replace(here);
            needs.extend(previous.or(*entry(&mut forks, t)));
            match event.op() {
                Op::Fork => *entry(&mut forks, event.other().index()) = Some(here),
                Op::Join => {
                    let other = event.other().index();
                    needs.extend(*entry(&mut forks, other));
                    needs.extend(*entry(&mut last, other));
                }
                _ => {}
            }
            if let Some((lock, shared, taken)) = lock_of(event) {
                let lock = entry(&mut locks, lock.index());
                match (shared, taken) {
                    (_, true) => {
                        needs.extend(lock.alone);
                        needs.extend(lock.shared.iter().filter(|_| !shared));
                    }
                    (true, false) => lock.shared.push(here),
                    (false, false) => *lock = Lock { alone: Some(here), shared: Vec::new() },
                }
            }
            if event.op().reads() || event.op().writes() {
                let var = entry(&mut vars, event.var().index());
                if event.op().reads() && event.op() != Op::Read && !var.has_plain_write {
                    facts.is_exact[i] = true;
                    needs.extend(var.last_atomic);
                }
                if event.op().writes() {
                    facts.noted.entry((event.var().0, trace.pool.value(event))).or_insert(i);
                    match event.op() {
                        Op::Write => var.has_plain_write = true,
                        _ => var.last_atomic = Some(here),
                    }
                }
            }
        }
        facts
    }

    /// Whether the value of a read is an initial one, or was written by an event that has happened
    /// and was noted first. A value without a noted write needs no explanation.
    fn is_explained(
        &self,
        i: usize,
        event: &Event,
        trace: &Trace,
        written: &HashMap<(u32, Option<Value>), usize>,
    ) -> bool {
        let values = trace.pool.values(event);
        let seen = match event.op() {
            Op::Rmw if values.len() < 2 => None,
            _ => values.first().copied(),
        };
        let Some(seen) = seen.filter(|_| !self.is_exact[i]) else { return true };
        let x = event.var().0;
        let is_initial = match self.initial.get(&x) {
            Some(initial) => *initial == seen,
            None => {
                matches!(seen, Value::Int(0) | Value::Uint(0) | Value::Bool(false))
                    || matches!(seen, Value::Float(zero) if zero == 0.0)
            }
        };
        let is_before = |first: &&usize| **first < i;
        let keys = [(x, Some(seen)), (x, None)];
        let is_noted = keys.iter().any(|key| self.noted.get(key).filter(is_before).is_some());
        let is_written = keys.iter().any(|key| written.get(key).filter(is_before).is_some());
        is_initial || !is_noted || is_written
    }
}
