//! What leads to what among things that threads wait for, for programs of the JVM; see [`super::waiting`].

use super::waiting::{Thing, Waiting};

/// The waits of a program for locks and for objects that other threads provide something at.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    waiting: Waiting,
    /// How many locks each thread holds.
    held: super::HashMap<u32, usize>,
    /// Whether a thread waited for something else while it held a lock, or there are semaphores.
    is_nested: bool,
}

impl Waits {
    /// A thread takes a lock, after it asked for it.
    pub(crate) fn acquire(&mut self, thread: u32, lock: u64, has_asked: bool) {
        if has_asked {
            self.waiting.asks(thread, Thing::Lock(lock));
        }
        self.waiting.has(thread, lock);
        *self.held.entry(thread).or_default() += 1;
    }

    /// A thread gives a lock back.
    pub(crate) fn release(&mut self, thread: u32, lock: u64) {
        self.waiting.gives(thread, lock);
        let held = self.held.entry(thread).or_default();
        *held = held.saturating_sub(1);
    }

    /// A thread waits for an object.
    pub(crate) fn asks(&mut self, thread: u32, object: u64) {
        self.is_nested |= self.held.get(&thread).is_some_and(|&held| held > 0);
        self.waiting.asks(thread, Thing::Barrier(object));
    }

    /// A thread provides what others wait for at an object.
    pub(crate) fn provides(&mut self, thread: u32, object: u64) {
        self.waiting.provides(thread, Thing::Barrier(object));
    }

    /// A thread waits for the end of another one.
    pub(crate) fn joins(&mut self, thread: u32, other: u32) {
        self.waiting.asks(thread, Thing::End(other));
    }

    /// A semaphore begins with so many permits.
    pub(crate) fn begins(&mut self, semaphore: u64, permits: u64) {
        self.waiting.begins(semaphore, permits);
    }

    /// A thread takes a permit of a semaphore.
    pub(crate) fn lowers(&mut self, thread: u32, semaphore: u64, waits: bool) {
        self.is_nested = true;
        self.waiting.lowers(thread, semaphore, waits);
    }

    /// A thread adds a permit to a semaphore.
    pub(crate) fn raises(&mut self, thread: u32, semaphore: u64) {
        self.waiting.raises(thread, semaphore);
    }

    /// The objects at which a thread might be stuck; `None` if there is too much to tell.
    pub(crate) fn doubtful(&mut self) -> Option<Vec<u64>> {
        if !self.is_nested {
            return Some(Vec::new());
        }
        let object = |thing| match thing {
            Thing::Semaphore(object) | Thing::Barrier(object) => Some(object),
            _ => None,
        };
        Some(self.waiting.doubtful()?.into_iter().filter_map(object).collect())
    }
}
