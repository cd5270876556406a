//! The lifetimes that programs declare for their objects, and the variables that belong to them.
//!
//! | event | what it declares about the object, its first argument |
//! |---|---|
//! | `event(init, x)`, `event(open, x)` | a lifetime begins |
//! | `event(use, x)` | it is used |
//! | `event(free, x)`, `event(close, x)`, `event(closed, x)` | its lifetime ends |
//! | `event(heap_free, x)` | the same for memory, recorded by the capture |
//!
//! An object is a number (an address, a file descriptor) or a name. A variable belongs to the object
//! whose name its own begins with, up to the first `+`, `.`, `[` or `->` outside of brackets:
//! `heap(list.c:7)#2+8` to `heap(list.c:7)#2`, `queue.head` to `queue`. Accesses of variables are
//! uses of their object.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use foresee_trace::{Event, HEAP_FREE, Id, Names, Op, Pool, Value, VarId, object_of};

/// What an event declares about its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    Begins,
    Used,
    /// It ends; its state afterwards, in one word.
    Ends(&'static str),
}

/// What a named event declares.
fn word(name: &str) -> Option<Said> {
    Some(match name {
        "init" | "open" => Said::Begins,
        "use" => Said::Used,
        "free" | HEAP_FREE => Said::Ends("freed"),
        "close" | "closed" => Said::Ends("closed"),
        _ => return None,
    })
}

/// The objects with lifetime events in a trace.
#[derive(Debug, Default)]
pub(super) struct Objects {
    numbers: HashMap<Value, u32, RandomState>,
    names: Vec<String>,
    /// For each event name, what it declares.
    words: Vec<Option<Said>>,
    /// For each variable, its object.
    of_variable: Vec<Option<u32>>,
}

/// What an object is called.
fn name_of(value: Value, names: &Names) -> String {
    match value {
        Value::Str(sym) => names.syms.get(sym).to_owned(),
        Value::Int(n) if !(-4096..4096).contains(&n) => format!("{n:#x}"),
        Value::Int(n) => n.to_string(),
        Value::Uint(n) => format!("{n:#x}"),
        Value::Float(f) => f.to_string(),
        Value::Bool(b) => b.to_string(),
    }
}

impl Objects {
    /// Finds the objects of a trace.
    pub(super) fn new(events: &[Event], pool: &Pool, names: &Names) -> Objects {
        let words = names.syms.iter().map(|(_, name)| word(name)).collect();
        let mut this = Objects { words, ..Objects::default() };
        for event in events.iter().filter(|event| event.op() == Op::Event) {
            let Some((_, value)) = this.said_of(event, pool) else { continue };
            this.numbers.entry(value).or_insert_with(|| {
                this.names.push(name_of(value, names));
                this.names.len() as u32 - 1
            });
        }
        if !this.names.is_empty() {
            let owner = |(_, name): (VarId, &str)| {
                let sym = names.syms.lookup(object_of(name))?;
                this.numbers.get(&Value::Str(sym)).copied()
            };
            this.of_variable = names.vars.iter().map(owner).collect();
        }
        this
    }

    fn said_of(&self, event: &Event, pool: &Pool) -> Option<(Said, Value)> {
        let said = self.words.get(event.sym()?.index()).copied().flatten()?;
        Some((said, *pool.values(event).first()?))
    }

    /// The number of objects.
    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    /// What an object is called.
    pub(super) fn name(&self, object: u32) -> &str {
        &self.names[object as usize]
    }

    /// What an event declares about which object.
    pub(super) fn said(&self, event: &Event, pool: &Pool) -> Option<(Said, u32)> {
        match event.op() {
            Op::Event => {
                let (said, value) = self.said_of(event, pool)?;
                Some((said, *self.numbers.get(&value)?))
            }
            op if op.reads() || op.writes() => {
                let object = self.of_variable.get(event.var().index()).copied().flatten()?;
                Some((Said::Used, object))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foresee_testkit::trace;

    #[test]
    fn events_speak_of_objects_by_number_or_name() {
        let trace = trace! {
            T1: event(init, 4096), event(use, 4096), event(free, buf), w(buf.size), w(bufs),
            event(use), event(other, 4096)
        };
        let objects = Objects::new(&trace.events, &trace.pool, &trace.names);
        let said = |i: usize| objects.said(&trace.events[i], &trace.pool);
        assert_eq!((objects.len(), objects.name(0), objects.name(1)), (2, "0x1000", "buf"));
        assert_eq!(said(0), Some((Said::Begins, 0)));
        assert_eq!(said(1), Some((Said::Used, 0)));
        assert_eq!(said(2), Some((Said::Ends("freed"), 1)));
        assert_eq!(said(3), Some((Said::Used, 1)));
        assert_eq!([said(4), said(5), said(6)], [None; 3]);
    }
}
