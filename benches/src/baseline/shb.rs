//! Races by schedulable happens-before as RAPID's `SHB` engine finds them, from a std file.
//!
//! This is a port of the algorithm (Mathur, Kini and Viswanathan, "What Happens-After the First Race?",
//! 2018) in the straightforward style, with RAPID's data structures: a vector for each thread and
//! lock, and three for each variable (its reads, its writes, and what its last write knew), joined and
//! compared in full at every access. A place is racy if an access there is not after all earlier
//! accesses that conflict with it. Names are looked up in maps of strings, line by line, as its
//! reader does. RAPID itself is a Java program: what is measured here does the same work without the
//! costs of its runtime.

use std::collections::{HashMap, HashSet};
use std::io::BufRead;

use foresee_trace::entry;

type Clock = Vec<u32>;

fn join(into: &mut Clock, from: &Clock) {
    if into.len() < from.len() {
        into.resize(from.len(), 0);
    }
    for (a, &b) in into.iter_mut().zip(from) {
        *a = (*a).max(b);
    }
}

fn is_known(past: &Clock, now: &Clock) -> bool {
    past.iter().enumerate().all(|(t, &time)| time <= now.get(t).copied().unwrap_or(0))
}

fn set(clock: &mut Clock, t: usize, time: u32) {
    *entry(clock, t) = time;
}

/// The state after the events read so far.
#[derive(Default)]
pub(crate) struct Shb {
    threads: Vec<Clock>,
    locks: Vec<Clock>,
    reads: Vec<Clock>,
    writes: Vec<Clock>,
    last_writes: Vec<Clock>,
    names: HashMap<String, usize>,
    /// The racy places.
    pub(crate) places: HashSet<String>,
    /// How many accesses race with earlier ones.
    pub(crate) races: u64,
}

impl Shb {
    /// Reads a whole trace; how many events it has.
    pub(crate) fn read(&mut self, input: impl BufRead) -> anyhow::Result<u64> {
        let mut events = 0;
        for line in input.lines() {
            let line = line?;
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            events += 1;
            let mut fields = line.split('|');
            let (thread, operation) = (fields.next().unwrap_or(""), fields.next().unwrap_or(""));
            let place = fields.next().unwrap_or("");
            let (op, rest) = operation.split_once('(').unwrap_or((operation, ")"));
            let target = rest.split_once(')').map_or(rest, |(target, _)| target);
            let thread = self.number("thread ", thread);
            let kind = match op {
                "r" | "w" => "variable ",
                "fork" | "join" => "thread ",
                _ => "lock ",
            };
            let target = self.number(kind, target);
            self.event(thread, op, target, place);
        }
        Ok(events)
    }

    fn number(&mut self, kind: &str, name: &str) -> usize {
        let name = format!("{kind}{name}");
        let next = self.names.len();
        *self.names.entry(name).or_insert(next)
    }

    fn event(&mut self, t: usize, op: &str, target: usize, place: &str) {
        let mut clock = std::mem::take(entry(&mut self.threads, t));
        let time = entry(&mut clock, t);
        *time = (*time).max(1);
        let now = *time;
        match op {
            "acq" => join(&mut clock, entry(&mut self.locks, target)),
            "rel" => entry(&mut self.locks, target).clone_from(&clock),
            "fork" => join(entry(&mut self.threads, target), &clock),
            "join" => join(&mut clock, entry(&mut self.threads, target)),
            "r" => {
                let is_race = !is_known(entry(&mut self.writes, target), &clock);
                self.count(is_race, place);
                join(&mut clock, entry(&mut self.last_writes, target));
                set(entry(&mut self.reads, target), t, now);
            }
            "w" => {
                let is_race = !is_known(entry(&mut self.reads, target), &clock)
                    || !is_known(entry(&mut self.writes, target), &clock);
                self.count(is_race, place);
                entry(&mut self.last_writes, target).clone_from(&clock);
                set(entry(&mut self.writes, target), t, now);
            }
            _ => {}
        }
        clock[t] += 1;
        self.threads[t] = clock;
    }

    fn count(&mut self, is_race: bool, place: &str) {
        if is_race {
            self.races += 1;
            if !self.places.contains(place) {
                self.places.insert(place.to_owned());
            }
        }
    }
}
