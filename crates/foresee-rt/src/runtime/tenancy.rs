//! Which accesses need not be recorded: the tenancy filter.
//!
//! For every eight bytes of memory there is a [`Cell`] that says who touched them last: the *tenant*. While nobody else
//! comes, most of the tenant's accesses add nothing to the order of events: whatever they come after, the first ones come
//! after, and whatever comes after them comes after the last ones. So of each tenancy are recorded
//!
//! - the first read and the first write of each byte, at once, unless the memory is fresh: nobody was there before;
//! - the last write and the last reads behind it, when somebody else comes ([`Held`]), told with the place in the tenant's
//!   own sequence where they happened. Memory that only one thread ever touches thus costs nothing.
//!
//! Bytes of one cell that are held back together are told together, at the place of the latest of them. That adds order,
//! and never takes any away. The tests below compare the causality of what is kept with that of everything.

use core::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};

use crate::format::Access;

/// What is known of eight bytes. Threads may race for it in the free-running mode, which promises no exactness.
#[repr(C)]
#[derive(Default)]
pub(super) struct Cell {
    /// Number of the tenant, and whether its last write and read were atomic.
    tenant: AtomicU32,
    /// Bytes whose last write is held back.
    wrote: AtomicU8,
    /// Bytes whose last read is held back.
    read: AtomicU8,
    /// Bytes whose first write of the tenancy need not be recorded (any more).
    first_write: AtomicU8,
    /// The same of reads.
    first_read: AtomicU8,
    write_place: AtomicU32,
    write_pc: AtomicU32,
    read_place: AtomicU32,
    read_pc: AtomicU32,
}

/// An access that was held back and has to be told now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub(super) thread: u32,
    pub(super) access: Access,
    pub(super) mask: u8,
    pub(super) place: u32,
    pub(super) pc: u32,
}

/// An access that happens now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Touch {
    pub(super) thread: u32,
    pub(super) place: u32,
    pub(super) mask: u8,
    pub(super) pc: u32,
    pub(super) write: bool,
    pub(super) atomic: bool,
}

const ID: u32 = (1 << 24) - 1;
/// The tenant of memory that somebody wants to know everything of.
const WATCHED: u32 = ID;
const ATOMIC_WRITE: u32 = 1 << 24;
const ATOMIC_READ: u32 = 1 << 25;

impl Cell {
    /// Notes an access, and says whether it must be recorded now.
    #[inline(always)]
    pub(super) fn touch(&self, touch: Touch, tell: impl FnMut(Held)) -> bool {
        let Touch { thread, place, mask, pc, write, atomic } = touch;
        let tenant = self.tenant.load(Relaxed);
        if tenant & ID != thread {
            return self.touch_by_another(touch, tell);
        }
        let known = if write { &self.first_write } else { &self.first_read };
        if known.load(Relaxed) & mask != mask {
            return self.first(mask, write, tell);
        }
        if write {
            self.wrote.store(self.wrote.load(Relaxed) | mask, Relaxed);
            self.read.store(self.read.load(Relaxed) & !mask, Relaxed);
            self.write_place.store(place, Relaxed);
            self.write_pc.store(pc, Relaxed);
        } else {
            self.read.store(self.read.load(Relaxed) | mask, Relaxed);
            self.read_place.store(place, Relaxed);
            self.read_pc.store(pc, Relaxed);
        }
        if atomic || tenant & !ID != 0 {
            let bit = if write { ATOMIC_WRITE } else { ATOMIC_READ };
            self.tenant.store(if atomic { tenant | bit } else { tenant & !bit }, Relaxed);
        }
        false
    }

    #[cold]
    fn touch_by_another(&self, touch: Touch, mut tell: impl FnMut(Held)) -> bool {
        self.arrive(touch.thread, &mut tell) || self.touch_as_tenant(touch, tell)
    }

    #[inline(never)]
    fn touch_as_tenant(&self, touch: Touch, tell: impl FnMut(Held)) -> bool {
        // One level deep: the thread is the tenant now.
        self.touch(touch, tell)
    }

    /// Tells what a write that is about to happen would make untellable.
    pub(super) fn before_write(&self, thread: u32, mask: u8, mut tell: impl FnMut(Held)) {
        if self.tenant.load(Relaxed) & ID != thread {
            self.arrive(thread, &mut tell);
        } else if self.first_read.load(Relaxed) & self.first_write.load(Relaxed) & mask != mask {
            self.tell(&mut tell);
        }
    }

    /// The thread was not the tenant. `true` if the memory is watched.
    fn arrive(&self, thread: u32, tell: &mut impl FnMut(Held)) -> bool {
        let tenant = self.tenant.load(Relaxed) & ID;
        if tenant == WATCHED {
            return true;
        }
        self.tell(tell);
        let known = if tenant == 0 { 0xff } else { 0 };
        self.first_write.store(known, Relaxed);
        self.first_read.store(known, Relaxed);
        self.tenant.store(thread, Relaxed);
        false
    }

    /// The access is the first of its kind for some of its bytes; it is recorded, and so must be what was held back.
    #[cold]
    fn first(&self, mask: u8, write: bool, mut tell: impl FnMut(Held)) -> bool {
        self.tell(&mut tell);
        if write {
            self.first_write.store(self.first_write.load(Relaxed) | mask, Relaxed);
        }
        // What a thread reads after its own write comes after nobody else's.
        self.first_read.store(self.first_read.load(Relaxed) | mask, Relaxed);
        true
    }

    /// Tells what was held back.
    fn tell(&self, tell: &mut impl FnMut(Held)) {
        let (wrote, read) = (self.wrote.load(Relaxed), self.read.load(Relaxed));
        let (tenant, write_place) = (self.tenant.load(Relaxed), self.write_place.load(Relaxed));
        let thread = tenant & ID;
        if wrote != 0 {
            let access =
                if tenant & ATOMIC_WRITE != 0 { Access::AtomicWrite } else { Access::Write };
            tell(Held {
                thread,
                access,
                mask: wrote,
                place: write_place,
                pc: self.write_pc.load(Relaxed),
            });
        }
        if read != 0 {
            let access = if tenant & ATOMIC_READ != 0 { Access::AtomicRead } else { Access::Read };
            // What is told of the write may have moved behind the read of another byte.
            let place = self.read_place.load(Relaxed);
            let place = if wrote != 0 { place.max(write_place) } else { place };
            tell(Held { thread, access, mask: read, place, pc: self.read_pc.load(Relaxed) });
        }
        self.wrote.store(0, Relaxed);
        self.read.store(0, Relaxed);
    }

    /// Wants everything to be known of these bytes from now on.
    pub(super) fn watch(&self) {
        self.tenant.store(WATCHED, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A step of a small program: an access of some bytes of a cell, or a mark, which is always recorded.
    #[derive(Clone, Copy, Debug)]
    enum Step {
        Access { thread: u32, cell: usize, mask: u8, write: bool },
        Mark { thread: u32, number: usize },
    }

    struct Random(u64);

    impl Random {
        fn below(&mut self, n: u64) -> u64 {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % n
        }
    }

    fn thread(step: Step) -> u32 {
        match step {
            Step::Access { thread, .. } | Step::Mark { thread, .. } => thread,
        }
    }

    fn depends(a: Step, b: Step) -> bool {
        if thread(a) == thread(b) {
            return true;
        }
        match (a, b) {
            (
                Step::Access { cell: c, mask: m, write: w, .. },
                Step::Access { cell: d, mask: n, write: x, .. },
            ) => c == d && m & n != 0 && (w || x),
            _ => false,
        }
    }

    /// Which marks must come before which, by the definition.
    fn order_of_marks(steps: &[Step]) -> Vec<Vec<bool>> {
        let n = steps.len();
        let mut before = vec![vec![false; n]; n];
        for j in 0..n {
            for i in (0..j).rev() {
                if depends(steps[i], steps[j]) {
                    before[i][j] = true;
                    for row in before.iter_mut().take(i) {
                        row[j] |= row[i];
                    }
                }
            }
        }
        let marks = steps.iter().filter(|s| matches!(s, Step::Mark { .. })).count();
        let mut out = vec![vec![false; marks]; marks];
        for (i, a) in steps.iter().enumerate() {
            for (j, b) in steps.iter().enumerate() {
                if let (Step::Mark { number: a, .. }, Step::Mark { number: b, .. }) = (a, b) {
                    out[*a][*b] = before[i][j];
                }
            }
        }
        out
    }

    /// What is left of the steps, with what was held back in its place, as the host puts it.
    fn filtered(steps: &[Step]) -> Vec<Step> {
        let cells = [Cell::default(), Cell::default()];
        let mut recorded: Vec<Step> = Vec::new();
        let mut late: Vec<(u32, u32, Step)> = Vec::new();
        let mut places = [1u32; 4];
        for &step in steps {
            match step {
                Step::Mark { .. } => {
                    recorded.push(step);
                    places[thread(step) as usize] += 1;
                }
                Step::Access { thread, cell, mask, write } => {
                    let place = places[thread as usize];
                    let touch = Touch { thread, place, mask, pc: 0, write, atomic: false };
                    let now = cells[cell].touch(touch, |held| {
                        let write = held.access.writes();
                        let step =
                            Step::Access { thread: held.thread, cell, mask: held.mask, write };
                        late.push((held.thread, held.place, step));
                    });
                    if now {
                        recorded.push(step);
                        places[thread as usize] += 1;
                    }
                }
            }
        }
        late.sort_by_key(|l| (l.0, l.1));
        let mut out = Vec::new();
        let mut places = [0u32; 4];
        let put_late = |out: &mut Vec<Step>, t: u32, place: u32| {
            out.extend(late.iter().filter(|l| (l.0, l.1) == (t, place)).map(|l| l.2));
        };
        // Each thread begins with a record of its beginning, which is no step.
        for t in 1..4 {
            places[t as usize] = 1;
            put_late(&mut out, t, 1);
        }
        for step in recorded {
            out.push(step);
            let t = thread(step);
            places[t as usize] += 1;
            put_late(&mut out, t, places[t as usize]);
        }
        out
    }

    fn random_steps(random: &mut Random, parts: bool) -> Vec<Step> {
        let mut marks = 0;
        (0..4 + random.below(24))
            .map(|_| {
                let thread = 1 + random.below(3) as u32;
                if random.below(3) == 0 {
                    marks += 1;
                    return Step::Mark { thread, number: marks - 1 };
                }
                let mask =
                    if parts { [0x0f, 0xf0, 0xff, 0x3c][random.below(4) as usize] } else { 0xff };
                Step::Access {
                    thread,
                    cell: random.below(2) as usize,
                    mask,
                    write: random.below(2) == 0,
                }
            })
            .collect()
    }

    #[test]
    fn what_is_kept_has_the_order_of_everything() {
        let mut random = Random(1);
        let mut left_out = 0;
        for _ in 0..20_000 {
            let steps = random_steps(&mut random, false);
            let kept = filtered(&steps);
            left_out += steps.len() - kept.len().min(steps.len());
            assert_eq!(order_of_marks(&steps), order_of_marks(&kept), "{steps:?}\n{kept:?}");
        }
        assert!(left_out > 20_000, "{left_out}");
    }

    #[test]
    fn with_accesses_of_parts_no_order_is_lost() {
        let mut random = Random(2);
        for _ in 0..20_000 {
            let steps = random_steps(&mut random, true);
            let kept = filtered(&steps);
            let (all, thin) = (order_of_marks(&steps), order_of_marks(&kept));
            for (a, row) in all.iter().enumerate() {
                for (b, &before) in row.iter().enumerate() {
                    assert!(!before || thin[a][b], "{a} {b}: {steps:?}\n{kept:?}");
                }
            }
        }
    }
}
