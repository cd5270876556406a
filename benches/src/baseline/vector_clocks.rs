//! Plain vector clocks for the Mazurkiewicz order: the textbook algorithm, a vector for each
//! thread, two for each variable and one for each lock, joined and copied at every access.

use foresee_trace::{Event, Id, Op, entry};

/// A vector that grows with the threads.
type Clock = Vec<u32>;

fn join(into: &mut Clock, from: &Clock) {
    if into.len() < from.len() {
        into.resize(from.len(), 0);
    }
    for (a, &b) in into.iter_mut().zip(from) {
        *a = (*a).max(b);
    }
}

#[derive(Default)]
pub(crate) struct VectorClocks {
    threads: Vec<Clock>,
    forks: Vec<Option<Clock>>,
    writes: Vec<Clock>,
    accesses: Vec<Clock>,
    locks: Vec<Clock>,
}

impl VectorClocks {
    /// Takes the next event; waits and notifications are not handled.
    pub(crate) fn event(&mut self, event: &Event) {
        let t = event.thread().index();
        let mut clock = std::mem::take(entry(&mut self.threads, t));
        if let Some(fork) = entry(&mut self.forks, t).take() {
            join(&mut clock, &fork);
        }
        if clock.len() <= t {
            clock.resize(t + 1, 0);
        }
        clock[t] += 1;
        match event.op() {
            Op::Read | Op::VolatileRead => {
                let x = event.var().index();
                join(&mut clock, entry(&mut self.writes, x));
                join(entry(&mut self.accesses, x), &clock);
            }
            Op::Write | Op::VolatileWrite | Op::Rmw => {
                let x = event.var().index();
                join(&mut clock, entry(&mut self.accesses, x));
                self.accesses[x].clone_from(&clock);
                entry(&mut self.writes, x).clone_from(&clock);
            }
            Op::Acquire | Op::Release | Op::AcquireShared | Op::ReleaseShared => {
                let lock = entry(&mut self.locks, event.lock().index());
                join(&mut clock, lock);
                lock.clone_from(&clock);
            }
            Op::Fork => *entry(&mut self.forks, event.other().index()) = Some(clock.clone()),
            Op::Join => join(&mut clock, entry(&mut self.threads, event.other().index())),
            _ => {}
        }
        self.threads[t] = clock;
    }

    /// The latest clock of a thread.
    pub(crate) fn thread(&self, t: usize) -> &[u32] {
        self.threads.get(t).map_or(&[], |clock| clock)
    }
}
