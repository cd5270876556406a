//! Who holds which lock, so that no event is made that no execution could contain.

use super::HashMap;

#[derive(Debug, Default)]
struct Lock {
    owner: Option<usize>,
    depth: u32,
    readers: Vec<(usize, u32)>,
}

/// The holders of all locks, by the numbers of their objects and threads.
#[derive(Debug, Default)]
pub(super) struct Locks {
    all: HashMap<u64, Lock>,
    /// How deeply threads held the locks that they gave up to wait.
    waiting: HashMap<usize, (u64, u32)>,
}

impl Locks {
    /// Whether another thread prevents this one from having the lock.
    pub(super) fn is_busy(&self, lock: u64, thread: usize, is_shared: bool) -> bool {
        self.all.get(&lock).is_some_and(|lock| {
            lock.owner.is_some_and(|owner| owner != thread)
                || !is_shared && lock.readers.iter().any(|reader| reader.0 != thread)
        })
    }

    /// Notes that a lock is taken; `false` if it cannot be.
    pub(super) fn acquire(&mut self, lock: u64, thread: usize, is_shared: bool) -> bool {
        if self.is_busy(lock, thread, is_shared) {
            return false;
        }
        let lock = self.all.entry(lock).or_default();
        if !is_shared {
            lock.owner = Some(thread);
            lock.depth += 1;
        } else if let Some(reader) = lock.readers.iter_mut().find(|reader| reader.0 == thread) {
            reader.1 += 1;
        } else {
            lock.readers.push((thread, 1));
        }
        true
    }

    /// Notes that a lock is given up; `false` if the thread does not hold it.
    pub(super) fn release(&mut self, lock: u64, thread: usize, is_shared: bool) -> bool {
        let Some(lock) = self.all.get_mut(&lock) else { return false };
        if is_shared {
            let Some(i) = lock.readers.iter().position(|reader| reader.0 == thread) else {
                return false;
            };
            lock.readers[i].1 -= 1;
            if lock.readers[i].1 == 0 {
                lock.readers.swap_remove(i);
            }
            return true;
        }
        if lock.owner != Some(thread) {
            return false;
        }
        lock.depth -= 1;
        if lock.depth == 0 {
            lock.owner = None;
        }
        true
    }

    /// Notes that a thread waits, which gives the lock up however deeply it is held.
    pub(super) fn wait(&mut self, lock: u64, thread: usize) -> bool {
        let Some(held) = self.all.get_mut(&lock).filter(|held| held.owner == Some(thread)) else {
            return false;
        };
        self.waiting.insert(thread, (lock, held.depth));
        held.owner = None;
        held.depth = 0;
        true
    }

    /// Notes that a wait is over; `None` if there was none, else whether the lock can be had again.
    pub(super) fn wake(&mut self, lock: u64, thread: usize) -> Option<bool> {
        let (_, depth) = self.waiting.remove(&thread).filter(|waited| waited.0 == lock)?;
        if self.is_busy(lock, thread, false) {
            return Some(false);
        }
        let held = self.all.entry(lock).or_default();
        held.owner = Some(thread);
        held.depth = depth;
        Some(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holders_exclude_each_other() {
        let mut locks = Locks::default();
        assert!(locks.acquire(1, 0, false) && locks.acquire(1, 0, false));
        assert!(!locks.acquire(1, 1, false) && !locks.acquire(1, 1, true));
        assert!(!locks.release(1, 1, false));
        assert!(locks.wait(1, 0));
        assert!(locks.acquire(1, 1, false));
        assert!(!locks.wait(1, 0));
        assert!(locks.release(1, 1, false));
        assert_eq!(locks.wake(1, 0), Some(true));
        assert_eq!(locks.wake(1, 0), None);
        assert!(locks.release(1, 0, false) && locks.is_busy(1, 1, true));
        assert!(locks.release(1, 0, false) && !locks.is_busy(1, 1, true));
        assert!(locks.acquire(1, 1, true) && locks.acquire(1, 2, true));
        assert!(locks.is_busy(1, 1, false) && !locks.is_busy(1, 1, true));
    }
}
