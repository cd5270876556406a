//! One search, for events that arrive in any order.
//!
//! A running program sends an observer its relevant events, each with what its thread knew of the
//! others, its forks and the ends of its threads. Messages may overtake each other, even those of
//! one thread. A level is left as soon as nothing else can happen in it; the search never waits for
//! a message that cannot come, and the end of the trace ends all waiting.

use foresee_causality::{Clocks, Order, TooLong};
use foresee_spec::Resolved;
use foresee_spec::ast::Spec;
use foresee_spec::monitor::{StateId, TooManyStates};
use foresee_spec::observe::{Projection, Step};
use foresee_spec::property::Compiled;
use foresee_trace::{Event, Id, Names, Op, Outcome, Pool, ThreadId, entry};

use super::events::Item;
use super::explore::{Explorer, Limits};
use super::level::Count;
use super::predict::beginning;
use super::tables::{Meaning, Writes};

/// A relevant event, as sent to an observer.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Its thread.
    pub thread: ThreadId,
    /// How many relevant events of its thread came before it.
    pub number: u32,
    /// Its place in the order that was observed.
    pub index: u64,
    /// How many relevant events of other threads come before it, where there are any.
    pub knows: Vec<(ThreadId, u32)>,
    /// How many forks of its thread came before it.
    pub forks: u32,
    /// What it does to the property.
    pub step: Step,
}

/// A message to an observer.
#[derive(Clone, Debug, PartialEq)]
pub enum Notice {
    /// A relevant event.
    Event(Message),
    /// A thread forks another.
    Fork {
        /// The forking thread.
        parent: ThreadId,
        /// The new thread.
        child: ThreadId,
        /// How many relevant events of the parent came before.
        count: u32,
    },
    /// A thread ends.
    End {
        /// The thread.
        thread: ThreadId,
        /// How many relevant events it had.
        count: u32,
        /// How many threads it forked.
        forks: u32,
    },
}

/// Makes the notices of a trace, event by event.
#[derive(Debug)]
pub struct Stamper {
    clocks: Clocks<2>,
    /// For each thread that has appeared, its relevant events and its forks so far.
    threads: Vec<Option<(u32, u32)>>,
}

impl Default for Stamper {
    fn default() -> Self {
        Stamper { clocks: Clocks::new(Order::Mazurkiewicz), threads: Vec::new() }
    }
}

impl Stamper {
    /// Processes the next event of the trace, and returns the notice for an observer.
    pub fn event(
        &mut self,
        index: u64,
        event: &Event,
        pool: &Pool,
        projection: &Projection,
    ) -> Result<Option<Notice>, TooLong> {
        let step = projection.step(event, pool);
        let stamp = self.clocks.event_if(event, step.is_some())?;
        if !Order::is_step(event) {
            return Ok(None);
        }
        let thread = event.thread();
        let (count, forks) = *entry(&mut self.threads, thread.index()).get_or_insert((0, 0));
        let mut told = None;
        if let Some(step) = step {
            let others = (0..self.threads.len()).map(ThreadId::new).filter(|&t| t != thread);
            let knows = others.map(|t| (t, self.clocks.count(&stamp, t)[1]));
            let knows = knows.filter(|&(_, count)| count > 0).collect();
            told =
                Some(Notice::Event(Message { thread, number: count, index, knows, forks, step }));
            self.threads[thread.index()] = Some((count + 1, forks));
        } else if event.op() == Op::Fork {
            let child = event.other();
            entry(&mut self.threads, child.index()).get_or_insert((0, 0));
            self.threads[thread.index()] = Some((count, forks + 1));
            told = Some(Notice::Fork { parent: thread, child, count });
        }
        self.clocks.forget_old(&[]);
        Ok(told)
    }

    /// The ends of all threads.
    pub fn ends(&self) -> impl Iterator<Item = Notice> + '_ {
        let end = |(t, thread): (usize, &Option<(u32, u32)>)| {
            let (count, forks) = (*thread)?;
            Some(Notice::End { thread: ThreadId::new(t), count, forks })
        };
        self.threads.iter().enumerate().filter_map(end)
    }
}

/// What a search has covered.
#[derive(Clone, Debug, PartialEq)]
pub struct Coverage {
    /// How many relevant events the shortest violating run has, if there is one.
    pub violated: Option<usize>,
    /// Whether all runs were covered, and if not, why.
    pub outcome: Outcome,
    /// The first level that was not searched completely.
    pub first_cut_off: Option<usize>,
    /// How many cuts were looked at.
    pub cuts: u64,
    /// The number of levels.
    pub levels: usize,
    /// How many cuts the widest level has.
    pub widest: usize,
    /// How many runs were followed to their end.
    pub runs: Option<Count>,
}

/// The lattice of a property without parameters, while its events arrive in any order.
pub struct Online {
    property: Compiled,
    projection: Projection,
    writes: Writes,
    explorer: Explorer,
    fails_at_once: bool,
}

impl Online {
    /// Starts at the initial state. `roots` are the threads that are not forked: the search cannot
    /// wait for threads that are unknown when the first level is left.
    pub fn new(
        spec: &Spec,
        mut property: Compiled,
        resolved: &Resolved,
        names: &Names,
        limits: Limits,
        roots: &[ThreadId],
    ) -> Result<Online, TooManyStates> {
        let projection = Projection::new(&property.alphabet, &spec.inits, resolved, names);
        let (initial, start) = beginning(&projection, &mut property)?;
        // The caller, who has the trace, searches for the witness.
        let limits = Limits { kept_events: 0, ..limits };
        let mut explorer = Explorer::new(initial, start, limits);
        for &root in roots {
            explorer.events.column(root);
        }
        let fails_at_once = start == StateId::BAD;
        Ok(Online { property, projection, writes: Writes::default(), explorer, fails_at_once })
    }

    /// Maps events to steps of the property.
    pub fn projection(&self) -> &Projection {
        &self.projection
    }

    /// Takes a notice.
    pub fn notice(&mut self, notice: Notice) {
        let events = &mut self.explorer.events;
        match notice {
            Notice::Event(message) => {
                let Message { thread, number, index, knows, forks, step } = message;
                let write = step.write.map(|write| self.writes.number(write, &self.projection));
                let item = Item::new(index, number, step.events, write);
                events.arrive(thread, number, item, &knows, forks);
            }
            Notice::Fork { parent, child, count } => events.fork(parent, child, count),
            Notice::End { thread, count, forks } => events.end(thread, count, forks),
        }
    }

    /// Searches as far as what has arrived allows.
    pub fn advance(&mut self) -> Result<(), TooManyStates> {
        let Online { property, projection, writes, explorer, .. } = self;
        let mut meaning = Meaning { projection, writes, monitor: &mut property.monitor };
        explorer.advance(&mut meaning, false)?;
        explorer.tidy(writes, projection);
        Ok(())
    }

    /// Nothing more will arrive.
    pub fn finish(&mut self) -> Result<Coverage, TooManyStates> {
        let Online { property, projection, writes, explorer, .. } = self;
        let mut meaning = Meaning { projection, writes, monitor: &mut property.monitor };
        explorer.finish(&mut meaning, false)?;
        Ok(self.coverage())
    }

    /// What has been covered so far.
    pub fn coverage(&self) -> Coverage {
        let found = &self.explorer.found;
        let violated = found.violation.map(|(depth, _)| depth + 1);
        Coverage {
            violated: if self.fails_at_once { Some(0) } else { violated },
            outcome: found.outcome,
            first_cut_off: found.first_cut_off,
            cuts: found.cuts,
            levels: found.levels,
            widest: found.widest,
            runs: found.runs.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use foresee_spec::{parse, resolve};
    use foresee_trace::{Batch, Value};

    use super::*;

    #[test]
    fn an_observer_keeps_nothing_for_each_time_it_looks() {
        let spec = parse("init x = 0\nproperty p: x < 2").spec;
        let (mut names, mut batch) = (Names::default(), Batch::default());
        let var = names.vars.intern("x").unwrap();
        let threads = ["T1", "T2"].map(|name| names.threads.intern(name).unwrap());
        let resolved = resolve(&spec, &names).resolved;
        let property = Compiled::all(&spec).unwrap().remove(0);
        let limits = Limits { window: Some(4), ..Limits::default() };
        let mut online = Online::new(&spec, property, &resolved, &names, limits, &threads).unwrap();
        // It starts with a history, and keeps less once it has dropped that.
        let (initial, start) = beginning(&online.projection, &mut online.property).unwrap();
        let limits = Limits { kept_events: 4096, ..limits };
        online.explorer = Explorer::new(initial, start, limits);
        for thread in threads {
            online.explorer.events.column(thread);
        }
        let mut stamper = Stamper::default();
        for i in 0..1000 {
            let write = Event::new(threads[i % 2], Op::Write).with_target(var.0);
            let write = write.with_values(&[Value::Int(i as i64 % 2)], &mut batch.pool);
            let notice = stamper.event(i as u64, &write, &batch.pool, online.projection()).unwrap();
            online.notice(notice.expect("it writes what the property reads"));
            online.advance().unwrap();
        }
        assert!(online.coverage().levels > 900, "{:?}", online.coverage());
        assert!(online.explorer.known.is_empty() && online.explorer.history().is_none());
        let here: usize = online.explorer.events.columns().iter().map(|c| c.items().len()).sum();
        assert!(here < 100, "{here} events are still kept");
    }
}
