//! Which accesses need not be recorded: the tenancy filter.
//!
//! For every eight bytes of memory there is a [`Cell`] that says who touched them last: the *tenant*. While nobody else
//! comes, most of the tenant's accesses add nothing to the order of events: whatever they come after, the first ones come
//! after, and whatever comes after them comes after the last ones. So of each tenancy are recorded
//!
//! - the first read and the first write of each byte, at once, unless everything that was done to the byte before comes
//!   before them anyway: the memory is fresh, or locks and the like say so ([`World::is_before`]);
//! - the last write and the last reads behind it, when somebody else comes ([`Held`]), told with the place in the tenant's
//!   own sequence where they happened; not even these if the newcomer comes after them anyway and covers them.
//!
//! The last write of all stays known when its author is no longer the tenant, for it is told before any read that sees
//! it; even beside the tenant's own, where that is to other bytes. Memory that several threads read and nobody writes has no tenant: each thread keeps its own last read ([`Entry`]).
//! So memory that one thread uses at a time, under a lock, costs nothing, and neither does memory that is only read.
//!
//! Bytes of one cell that are held back together are told together, at the place of the latest of them. That adds order,
//! and never takes any away. The tests below compare the causality of what is kept with that of everything.

use core::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};

use crate::format::Access;

/// What is known of eight bytes. Threads may race for it in the free-running mode, which promises no exactness.
#[repr(C)]
#[derive(Default)]
pub(super) struct Cell {
    /// Number of the tenant, whether the last write and read were atomic, and who wrote last if that was not the tenant.
    tenant: AtomicU32,
    /// Bytes whose last write is held back.
    wrote: AtomicU8,
    /// Bytes whose last read is held back.
    read: AtomicU8,
    /// Bytes whose writes by the tenant come after everything that was done to them before,
    /// according to the log.
    first_write: AtomicU8,
    /// The same of reads, and all that was written before.
    first_read: AtomicU8,
    /// Place of the last write.
    write_place: AtomicU32,
    /// Zero if nothing was ever written.
    write_pc: AtomicU32,
    /// Place of the tenant's last access other than its last write; the number of the phase if there is no tenant.
    read_place: AtomicU32,
    read_pc: AtomicU32,
}

/// The last read of a cell by one of several threads that read it; the entry of no thread is the write before the tenant's.
#[derive(Default)]
pub(super) struct Entry {
    /// In which phase of reading it happened. Phases have numbers of their own, so what is left of earlier ones is void. Of a
    /// write, who wrote.
    phase: AtomicU32,
    place: AtomicU32,
    pc: AtomicU32,
    /// Which bytes.
    mask: AtomicU8,
    atomic: AtomicU8,
}

impl Entry {
    #[inline(always)]
    fn note(&self, mask: u8, place: u32, pc: u32, atomic: bool) {
        self.mask.store(self.mask.load(Relaxed) | mask, Relaxed);
        self.place.store(place, Relaxed);
        self.pc.store(pc, Relaxed);
        self.atomic.store(u8::from(atomic), Relaxed);
    }

    fn begin(&self, phase: u32, mask: u8, place: u32, pc: u32, atomic: bool) {
        self.mask.store(0, Relaxed);
        self.phase.store(phase, Relaxed);
        self.note(mask, place, pc, atomic);
    }
}

/// What a cell must know of the rest.
pub(super) trait World {
    /// Whether everything that another thread did up to a place comes before what the thread whose hook this is does
    /// now, by what is in the log.
    fn is_before(&self, thread: u32, place: u32) -> bool;
    /// Where a thread keeps its reads of this cell; `None` if it has none.
    fn entry(&self, thread: u32) -> Option<&Entry>;
    /// The same, made if need be; `None` if that cannot be.
    fn make_entry(&self, thread: u32) -> Option<&Entry>;
    /// The number of a new phase.
    fn new_phase(&self) -> u32;
    /// Threads that may have entries have numbers below this.
    fn readers(&self) -> u32;
    /// Records what was held back.
    fn tell(&mut self, held: Held);
}

/// An access that was held back and must be recorded now.
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

const ID: u32 = (1 << 23) - 1;
/// The tenant of memory of which everything is recorded.
const WATCHED: u32 = ID;
/// The tenant of memory that is a lock: the fields hold its clock, its owner and its depth.
const LOCK: u32 = ID - 1;
/// The tenant of memory that several threads read.
const READERS: u32 = ID - 2;
/// Besides the tenant's own write, one of another thread to other bytes is held back, as the entry of [`NOBODY`].
const OLDER: u32 = 1 << 23;
const NOBODY: u32 = 0;
const ATOMIC_WRITE: u32 = 1 << 24;
const ATOMIC_READ: u32 = 1 << 25;
/// The last writer, if it is not the tenant: a number below [`SOMEBODY`], or that.
const WRITER: u32 = 26;
const SOMEBODY: u32 = 63;

impl Cell {
    /// Notes an access, and says whether it must be recorded now.
    #[inline(always)]
    pub(super) fn touch(&self, touch: Touch, world: &mut impl World) -> bool {
        !self.touch_again(touch)
            && !self.read_again(touch, || world.entry(touch.thread))
            && self.touch_anew(touch, world)
    }

    /// Notes a plain access by the tenant that is like others before it, as most are: it need not be recorded. `false` if it is
    /// none; then nothing has changed.
    #[inline(always)]
    pub(super) fn touch_again(&self, touch: Touch) -> bool {
        let Touch { thread, place, mask, pc, write, atomic } = touch;
        let tenant = self.tenant.load(Relaxed);
        // Neither may be atomic, and no other thread may have written what is overwritten.
        let differs = if write { u32::MAX } else { ID | ATOMIC_READ | ATOMIC_WRITE };
        let known = if write { &self.first_write } else { &self.first_read };
        if atomic || (tenant ^ thread) & differs != 0 || mask & !known.load(Relaxed) != 0 {
            return false;
        }
        if write {
            self.note_write(mask, place, pc);
        } else {
            self.note_read(mask, place, pc);
        }
        true
    }

    /// The same of a read by one of several readers, whose entry is found by `entry`.
    #[inline(always)]
    pub(super) fn read_again<'e>(
        &self,
        touch: Touch,
        entry: impl FnOnce() -> Option<&'e Entry>,
    ) -> bool {
        let Touch { place, mask, pc, write, atomic, .. } = touch;
        if self.tenant.load(Relaxed) & ID == READERS
            && !write
            && mask & !self.wrote.load(Relaxed) == 0
            && let Some(entry) = entry()
            && entry.phase.load(Relaxed) == self.read_place.load(Relaxed)
        {
            entry.note(mask, place, pc, atomic);
            return true;
        }
        false
    }

    #[inline(always)]
    fn note_write(&self, mask: u8, place: u32, pc: u32) {
        self.wrote.store(self.wrote.load(Relaxed) | mask, Relaxed);
        self.read.store(self.read.load(Relaxed) & !mask, Relaxed);
        self.write_place.store(place, Relaxed);
        self.write_pc.store(pc, Relaxed);
    }

    #[inline(always)]
    fn note_read(&self, mask: u8, place: u32, pc: u32) {
        self.read.store(self.read.load(Relaxed) | mask, Relaxed);
        self.read_place.store(place, Relaxed);
        self.read_pc.store(pc, Relaxed);
    }

    /// Notes any other access, and says whether it must be recorded now.
    #[inline(always)]
    pub(super) fn touch_anew(&self, touch: Touch, world: &mut impl World) -> bool {
        let Touch { thread, place, mask, pc, write, atomic } = touch;
        let tenant = self.tenant.load(Relaxed);
        let arrives = tenant & ID != thread;
        if arrives && (tenant & OLDER != 0 || !self.succeed(touch, true, world)) {
            match self.arrive(touch, true, world) {
                Arrival::Watched => return true,
                Arrival::Reader => return false,
                Arrival::Tenant => {}
            }
        }
        let tenant = self.tenant.load(Relaxed);
        let known = if write { &self.first_write } else { &self.first_read };
        if known.load(Relaxed) & mask != mask {
            return self.first(touch, world);
        }
        if write {
            if tenant & OLDER != 0 {
                self.write_over_older(mask, world);
            } else if tenant >> WRITER != 0 && self.write_over(touch, world) {
                return true;
            }
            self.note_write(mask, place, pc);
        } else {
            self.note_read(mask, place, pc);
        }
        if atomic || tenant & (ATOMIC_READ | ATOMIC_WRITE) != 0 {
            let bit = if write { ATOMIC_WRITE } else { ATOMIC_READ };
            let tenant = self.tenant.load(Relaxed);
            self.tenant.store(if atomic { tenant | bit } else { tenant & !bit }, Relaxed);
        }
        false
    }

    /// Records what could no longer be recorded after a write that may be about to happen.
    pub(super) fn before_write(&self, touch: Touch, world: &mut impl World) {
        if self.tenant.load(Relaxed) & ID != touch.thread
            && matches!(self.arrive(touch, false, world), Arrival::Watched)
        {
            return;
        }
        let known = self.first_read.load(Relaxed) & self.first_write.load(Relaxed);
        if known & touch.mask != touch.mask {
            self.tell(world);
        }
    }

    /// The last writer, if any.
    fn writer(&self) -> Option<u32> {
        let tenant = self.tenant.load(Relaxed);
        match tenant >> WRITER {
            _ if self.write_pc.load(Relaxed) == 0 => None,
            0 => Some(tenant & ID),
            writer => Some(writer),
        }
    }

    /// Whether the last write comes before what happens now.
    fn write_is_before(&self, thread: u32, world: &impl World) -> bool {
        self.writer().is_none_or(|writer| {
            writer == thread
                || writer != SOMEBODY && world.is_before(writer, self.write_place.load(Relaxed))
        })
    }

    /// Makes another thread the tenant, which is known to come after the history of these bytes for
    /// writes and reads.
    fn move_in(&self, touch: Touch, first_write: u8, first_read: u8) {
        let writer = match self.writer() {
            Some(writer) if writer == touch.thread => 0,
            Some(writer) => writer.min(SOMEBODY),
            None => 0,
        };
        let atomic = self.tenant.load(Relaxed) & ATOMIC_WRITE;
        self.tenant.store(touch.thread | writer << WRITER | atomic, Relaxed);
        self.first_write.store(first_write, Relaxed);
        self.first_read.store(first_read, Relaxed);
        self.read.store(0, Relaxed);
        self.read_place.store(touch.place, Relaxed);
    }

    /// Makes another thread the tenant if the memory is fresh, or all that was done to it comes before.
    #[inline(always)]
    fn succeed(&self, touch: Touch, certain: bool, world: &mut impl World) -> bool {
        let Touch { thread, place, mask, .. } = touch;
        let tenant = self.tenant.load(Relaxed);
        if tenant == 0 {
            self.tenant.store(thread, Relaxed);
            self.first_write.store(0xff, Relaxed);
            self.first_read.store(0xff, Relaxed);
            self.read_place.store(place, Relaxed);
            return true;
        }
        let (write_place, mut last) =
            (self.write_place.load(Relaxed), self.read_place.load(Relaxed));
        let writer = match tenant >> WRITER {
            0 => {
                last = last.max(write_place);
                tenant & ID
            }
            writer if writer == thread => writer,
            SOMEBODY => return false,
            writer if world.is_before(writer, write_place) => writer,
            _ => return false,
        };
        // Clocks know nothing of what is no thread.
        if !world.is_before(tenant & ID, last) {
            return false;
        }
        if !certain || self.read.load(Relaxed) & !mask != 0 {
            self.tell(world);
        }
        let is_written = writer != thread && self.write_pc.load(Relaxed) != 0;
        let writer = if is_written { writer.min(SOMEBODY) } else { 0 };
        self.tenant.store(thread | writer << WRITER | tenant & ATOMIC_WRITE, Relaxed);
        self.read.store(0, Relaxed);
        self.read_place.store(place, Relaxed);
        true
    }

    /// The thread was not the tenant. Unless it is `certain` that the access happens, nothing is left out because of it.
    fn arrive(&self, touch: Touch, certain: bool, world: &mut impl World) -> Arrival {
        let Touch { thread, place, mask, pc, write, atomic } = touch;
        self.tell_older(world);
        if self.succeed(touch, certain, world) {
            return Arrival::Tenant;
        }
        let tenant = self.tenant.load(Relaxed) & ID;
        match tenant {
            WATCHED => return Arrival::Watched,
            LOCK => {
                self.write_place.store(0, Relaxed);
                self.write_pc.store(1, Relaxed);
                self.tenant.store(SOMEBODY << WRITER | LOCK, Relaxed);
                self.move_in(touch, 0, 0);
                return Arrival::Tenant;
            }
            READERS => return self.arrive_at_readers(touch, certain, world),
            _ => {}
        }
        let (wrote, read) = (self.wrote.load(Relaxed), self.read.load(Relaxed));
        let write_is_before = self.write_is_before(thread, world);
        if certain
            && !write
            && mask & !wrote == 0
            && write_is_before
            && let (Some(mine), Some(others)) = (world.make_entry(thread), world.make_entry(tenant))
            && let Some(writer) = self.writer().filter(|&w| w < SOMEBODY)
        {
            let phase = world.new_phase();
            if read != 0 {
                let atomic = self.tenant.load(Relaxed) & ATOMIC_READ != 0;
                let (place, pc) = (self.read_place.load(Relaxed), self.read_pc.load(Relaxed));
                others.begin(phase, read, place, pc, atomic);
            }
            mine.begin(phase, mask, place, pc, atomic);
            let flags = self.tenant.load(Relaxed) & ATOMIC_WRITE;
            self.tenant.store(READERS | writer << WRITER | flags, Relaxed);
            self.read.store(0, Relaxed);
            self.read_place.store(phase, Relaxed);
            return Arrival::Reader;
        }
        self.tell(world);
        self.move_in(touch, 0, 0);
        Arrival::Tenant
    }

    /// The thread reads for the first time in this phase, or reads what is not known to be ordered, or writes.
    fn arrive_at_readers(&self, touch: Touch, certain: bool, world: &mut impl World) -> Arrival {
        let Touch { thread, place, mask, pc, write, atomic } = touch;
        let (phase, wrote) = (self.read_place.load(Relaxed), self.wrote.load(Relaxed));
        let write_is_before = self.write_is_before(thread, world);
        if certain
            && !write
            && mask & !wrote == 0
            && write_is_before
            && let Some(mine) = world.make_entry(thread)
        {
            mine.begin(phase, mask, place, pc, atomic);
            return Arrival::Reader;
        }
        let mut all_before = write_is_before;
        for reader in (1..world.readers()).filter(|&r| r != thread) {
            let Some((read, place, pc, atomic)) = world.entry(reader).and_then(|entry| {
                (entry.phase.load(Relaxed) == phase).then(|| {
                    let atomic = entry.atomic.load(Relaxed) != 0;
                    (
                        entry.mask.load(Relaxed),
                        entry.place.load(Relaxed),
                        entry.pc.load(Relaxed),
                        atomic,
                    )
                })
            }) else {
                continue;
            };
            let is_before = world.is_before(reader, place);
            all_before &= is_before;
            if !(is_before && certain && write && read & !mask == 0) {
                self.tell_write(world);
                let access = if atomic { Access::AtomicRead } else { Access::Read };
                world.tell(Held { thread: reader, access, mask: read, place, pc });
            }
        }
        // What was written by the one whose write is held back came after all that was done before.
        let known = if all_before { wrote } else { 0 };
        if !all_before || !certain {
            self.tell_write(world);
        }
        self.move_in(touch, known, known);
        // What the thread itself has read is held back as before.
        if let Some(mine) = world.entry(thread).filter(|e| e.phase.load(Relaxed) == phase) {
            self.read.store(mine.mask.load(Relaxed), Relaxed);
            self.read_place.store(mine.place.load(Relaxed), Relaxed);
            self.read_pc.store(mine.pc.load(Relaxed), Relaxed);
            if mine.atomic.load(Relaxed) != 0 {
                self.tenant.store(self.tenant.load(Relaxed) | ATOMIC_READ, Relaxed);
            }
        }
        Arrival::Tenant
    }

    /// The tenant writes where the last write of another is held back that comes before it. What is not overwritten of that
    /// is put aside. `true` if there is no room for it, so that the write is to be recorded now.
    fn write_over(&self, touch: Touch, world: &mut impl World) -> bool {
        let (wrote, tenant) = (self.wrote.load(Relaxed), self.tenant.load(Relaxed));
        let rest = wrote & !touch.mask;
        if rest != 0
            && let Some(older) = world.make_entry(NOBODY)
        {
            let (place, pc) = (self.write_place.load(Relaxed), self.write_pc.load(Relaxed));
            older.begin(tenant >> WRITER, rest, place, pc, tenant & ATOMIC_WRITE != 0);
            self.wrote.store(0, Relaxed);
            self.tenant.store(touch.thread | tenant & ATOMIC_READ | OLDER, Relaxed);
            return false;
        }
        self.read.store(self.read.load(Relaxed) & !touch.mask, Relaxed);
        if rest != 0 {
            if wrote & touch.mask != 0 {
                self.wrote.store(wrote & !touch.mask, Relaxed);
                self.read_place.store(touch.place, Relaxed);
                return true;
            }
            self.tell(world);
        }
        self.wrote.store(0, Relaxed);
        self.write_place.store(0, Relaxed);
        self.tenant.store(touch.thread | tenant & ATOMIC_READ, Relaxed);
        false
    }

    /// The tenant writes again, perhaps over what was put aside.
    fn write_over_older(&self, mask: u8, world: &impl World) {
        let rest = world.entry(NOBODY).map_or(0, |older| {
            older.mask.store(older.mask.load(Relaxed) & !mask, Relaxed);
            older.mask.load(Relaxed)
        });
        if rest == 0 {
            self.tenant.store(self.tenant.load(Relaxed) & !OLDER, Relaxed);
        }
    }

    /// Records the older write, if there is one.
    #[inline(always)]
    fn tell_older(&self, world: &mut impl World) {
        if self.tenant.load(Relaxed) & OLDER != 0 {
            self.tell_aside(world);
        }
    }

    #[cold]
    #[inline(never)]
    fn tell_aside(&self, world: &mut impl World) {
        self.tenant.store(self.tenant.load(Relaxed) & !OLDER, Relaxed);
        let Some(held) = world.entry(NOBODY).map(|older| Held {
            thread: older.phase.load(Relaxed),
            access: match older.atomic.load(Relaxed) {
                0 => Access::Write,
                _ => Access::AtomicWrite,
            },
            mask: older.mask.load(Relaxed),
            place: older.place.load(Relaxed),
            pc: older.pc.load(Relaxed),
        }) else {
            return;
        };
        world.tell(held);
    }

    /// The access is the first of its kind for some of its bytes; it is recorded, and so must be what was held back.
    #[cold]
    #[inline(never)]
    fn first(&self, touch: Touch, world: &mut impl World) -> bool {
        let Touch { thread, place, mask, pc, write, .. } = touch;
        self.tell(world);
        if write {
            self.first_write.store(self.first_write.load(Relaxed) | mask, Relaxed);
            self.tenant.store(thread | self.tenant.load(Relaxed) & ATOMIC_READ, Relaxed);
            self.write_place.store(place, Relaxed);
            self.write_pc.store(pc, Relaxed);
        }
        self.read_place.store(place, Relaxed);
        // What a thread reads after its own write comes after no other write.
        self.first_read.store(self.first_read.load(Relaxed) | mask, Relaxed);
        true
    }

    /// Records the last write, if it was held back.
    fn tell_write(&self, world: &mut impl World) {
        let wrote = self.wrote.load(Relaxed);
        if wrote != 0 {
            let tenant = self.tenant.load(Relaxed);
            let thread = if tenant >> WRITER == 0 { tenant & ID } else { tenant >> WRITER };
            let access =
                if tenant & ATOMIC_WRITE != 0 { Access::AtomicWrite } else { Access::Write };
            let (place, pc) = (self.write_place.load(Relaxed), self.write_pc.load(Relaxed));
            world.tell(Held { thread, access, mask: wrote, place, pc });
            self.wrote.store(0, Relaxed);
        }
    }

    /// Records what was held back.
    fn tell(&self, world: &mut impl World) {
        self.tell_older(world);
        let (wrote, read) = (self.wrote.load(Relaxed), self.read.load(Relaxed));
        let tenant = self.tenant.load(Relaxed);
        self.tell_write(world);
        if read != 0 {
            let access = if tenant & ATOMIC_READ != 0 { Access::AtomicRead } else { Access::Read };
            // The thread's own write may be recorded after the read of another byte.
            let mut place = self.read_place.load(Relaxed);
            if wrote != 0 && tenant >> WRITER == 0 {
                place = place.max(self.write_place.load(Relaxed));
            }
            let pc = self.read_pc.load(Relaxed);
            world.tell(Held { thread: tenant & ID, access, mask: read, place, pc });
        }
        self.read.store(0, Relaxed);
    }

    /// Wants everything to be known of these bytes from now on.
    pub(super) fn watch(&self) {
        self.tenant.store(WATCHED, Relaxed);
    }

    /// Makes the memory that of a lock; `None` if it is watched. Records what was held back of it.
    pub(super) fn as_lock(&self, touch: Touch, world: &mut impl World) -> Option<LockWords<'_>> {
        let tenant = self.tenant.load(Relaxed) & ID;
        if tenant != LOCK {
            if tenant != touch.thread
                && matches!(self.arrive(touch, false, world), Arrival::Watched)
            {
                return None;
            }
            self.tell(world);
            for word in [&self.write_place, &self.write_pc, &self.read_place, &self.read_pc] {
                word.store(0, Relaxed);
            }
            self.tenant.store(LOCK, Relaxed);
        }
        let (clock, owner, depth) = (&self.write_place, &self.read_place, &self.read_pc);
        Some(LockWords { clock, owner, depth })
    }
}

/// What became of a thread that was not the tenant.
enum Arrival {
    Watched,
    Reader,
    Tenant,
}

/// What a cell holds of a lock.
pub(super) struct LockWords<'c> {
    /// Where its clock is; zero if it has none.
    pub(super) clock: &'c AtomicU32,
    /// Who has it for itself alone.
    pub(super) owner: &'c AtomicU32,
    /// How often.
    pub(super) depth: &'c AtomicU32,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A step of a small program: an access of some bytes of a cell, an operation on a lock, or a mark. The last two are
    /// always recorded.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Step {
        Access { thread: u32, cell: usize, mask: u8, write: bool, values: [u32; 8] },
        Lock { thread: u32, lock: usize },
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

    const THREADS: usize = 5;

    fn thread(step: Step) -> u32 {
        match step {
            Step::Access { thread, .. } | Step::Lock { thread, .. } | Step::Mark { thread, .. } => {
                thread
            }
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
            (Step::Lock { lock: a, .. }, Step::Lock { lock: b, .. }) => a == b,
            _ => false,
        }
    }

    /// Which marks and operations on locks must come before which, by the definition.
    fn order_of_the_rest(steps: &[Step]) -> Vec<Vec<bool>> {
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
        let rest: Vec<usize> =
            (0..n).filter(|&i| !matches!(steps[i], Step::Access { .. })).collect();
        rest.iter().map(|&i| rest.iter().map(|&j| before[i][j]).collect()).collect()
    }

    /// What the cells need to know, and what they tell.
    struct Small<'a> {
        me: u32,
        cell: usize,
        clocks: &'a [[u32; THREADS]; THREADS],
        entries: &'a [[Entry; 2]; THREADS],
        phases: &'a core::cell::Cell<u32>,
        memory: [u32; 8],
        late: &'a mut Vec<(u32, u32, Step)>,
    }

    impl World for Small<'_> {
        fn is_before(&self, thread: u32, place: u32) -> bool {
            self.clocks[self.me as usize].get(thread as usize).is_some_and(|&known| place < known)
        }

        fn entry(&self, thread: u32) -> Option<&Entry> {
            Some(&self.entries[thread as usize][self.cell])
        }

        fn make_entry(&self, thread: u32) -> Option<&Entry> {
            // The last thread is too late to have entries, and there is little room for older
            // writes.
            let full = thread as usize == THREADS - 1 || thread == NOBODY && self.cell == 1;
            (!full).then(|| &self.entries[thread as usize][self.cell])
        }

        fn new_phase(&self) -> u32 {
            self.phases.set(self.phases.get() + 1);
            self.phases.get()
        }

        fn readers(&self) -> u32 {
            THREADS as u32
        }

        fn tell(&mut self, held: Held) {
            let Held { thread, access, mask, place, .. } = held;
            let (cell, write, values) = (self.cell, access.writes(), self.memory);
            self.late.push((thread, place, Step::Access { thread, cell, mask, write, values }));
        }
    }

    /// What is left of the steps, with what was held back in its place, as the host puts it.
    fn filtered(steps: &[Step], random: &mut Random) -> Vec<Step> {
        let cells = [Cell::default(), Cell::default()];
        let entries: [[Entry; 2]; THREADS] = Default::default();
        let phases = core::cell::Cell::new(0);
        let mut clocks = [[0u32; THREADS]; THREADS];
        let mut locks = [[0u32; THREADS]; 2];
        let mut memory = [[0u32; 8]; 2];
        let mut recorded: Vec<Step> = Vec::new();
        let mut late: Vec<(u32, u32, Step)> = Vec::new();
        let mut places = [1u32; THREADS];
        for (number, &step) in steps.iter().enumerate() {
            let me = thread(step) as usize;
            match step {
                Step::Mark { .. } => {
                    recorded.push(step);
                    places[me] += 1;
                }
                Step::Lock { lock, .. } => {
                    recorded.push(step);
                    places[me] += 1;
                    for (mine, carried) in clocks[me].iter_mut().zip(locks[lock]) {
                        *mine = carried.max(*mine);
                    }
                    locks[lock] = clocks[me];
                    locks[lock][me] = places[me];
                }
                Step::Access { thread, cell, mask, write, .. } => {
                    let place = places[me];
                    let touch = Touch { thread, place, mask, pc: 1, write, atomic: false };
                    let mut world = Small {
                        me: thread,
                        cell,
                        clocks: &clocks,
                        entries: &entries,
                        phases: &phases,
                        memory: memory[cell],
                        late: &mut late,
                    };
                    // Some writes are announced, with more bytes than are written in the end, or in vain.
                    let announced = random.below(6) == 0;
                    if announced {
                        cells[cell]
                            .before_write(Touch { mask: 0xff, write: true, ..touch }, &mut world);
                    }
                    let mut now = !announced && cells[cell].touch(touch, &mut world);
                    if write {
                        for i in (0..8).filter(|i| mask >> i & 1 != 0) {
                            memory[cell][i] = number as u32 + 1;
                        }
                    }
                    if announced {
                        world.memory = memory[cell];
                        now = cells[cell].touch(touch, &mut world);
                    }
                    if now {
                        let values = memory[cell];
                        recorded.push(Step::Access { thread, cell, mask, write, values });
                        places[me] += 1;
                    }
                }
            }
        }
        late.sort_by_key(|l| (l.0, l.1));
        let mut out = Vec::new();
        let put_late = |out: &mut Vec<Step>, t: usize, place: u32| {
            out.extend(late.iter().filter(|l| (l.0 as usize, l.1) == (t, place)).map(|l| l.2));
        };
        // Each thread begins with a record of its beginning, which is no step.
        let mut places = [1u32; THREADS];
        for t in 1..THREADS {
            put_late(&mut out, t, 1);
        }
        for step in recorded {
            out.push(step);
            let t = thread(step) as usize;
            places[t] += 1;
            put_late(&mut out, t, places[t]);
        }
        out
    }

    fn random_steps(random: &mut Random, parts: bool) -> Vec<Step> {
        let (mut marks, mut thread, locks) = (0, 1, random.below(6));
        let reads = 1 + random.below(4);
        let turns = 1 + random.below(4);
        (0..4 + random.below(36))
            .map(|_| {
                if random.below(turns) == 0 {
                    thread = 1 + random.below(THREADS as u64 - 1) as u32;
                }
                if random.below(4) == 0 {
                    marks += 1;
                    return Step::Mark { thread, number: marks - 1 };
                }
                if random.below(10) < locks {
                    return Step::Lock { thread, lock: random.below(2) as usize };
                }
                let mask =
                    if parts { [0x0f, 0xf0, 0xff, 0x3c][random.below(4) as usize] } else { 0xff };
                let (cell, write) = (random.below(2) as usize, random.below(reads + 1) == 0);
                Step::Access { thread, cell, mask, write, values: [0; 8] }
            })
            .collect()
    }

    /// Threads hand memory to each other under a lock, most of the time, and touch parts of it.
    fn handed_over(random: &mut Random) -> Vec<Step> {
        let (mut steps, mut marks) = (Vec::new(), 0);
        let (careless, cells) = (1 + random.below(6), 1 + random.below(2));
        for _ in 0..2 + random.below(6) {
            let thread = 1 + random.below(THREADS as u64 - 1) as u32;
            let lock = (random.below(careless) != 0).then_some(Step::Lock { thread, lock: 0 });
            steps.extend(lock);
            for _ in 0..1 + random.below(4) {
                if random.below(3) == 0 {
                    steps.push(Step::Mark { thread, number: marks });
                    marks += 1;
                }
                let mask = [0x0f, 0xf0, 0xff, 0x3c, 0x03][random.below(5) as usize];
                let (cell, write) = (random.below(cells) as usize, random.below(2) == 0);
                steps.push(Step::Access { thread, cell, mask, write, values: [0; 8] });
            }
            steps.extend(lock);
        }
        steps
    }

    /// On load, each read is compared with the last write: omissions must not show there. And no
    /// thread may be recorded as the writer of another one's value.
    fn check_values(kept: &[Step], steps: &[Step]) {
        let mut known = [[None; 8]; 2];
        for step in kept {
            if let &Step::Access { thread, cell, mask, write, values } = step {
                for i in (0..8).filter(|i| mask >> i & 1 != 0) {
                    // What is written is the number of the step, from one.
                    assert!(
                        !write
                            || matches!(steps[values[i] as usize - 1], Step::Access { thread: t, cell: c, mask: m, write: true, .. }
                            if (t, c) == (thread, cell) && m >> i & 1 != 0),
                        "{step:?}: {steps:?}\n{kept:?}"
                    );
                    let last: &mut Option<u32> = &mut known[cell][i];
                    assert!(
                        write || last.is_none_or(|v| v == values[i]),
                        "{step:?}: {steps:?}\n{kept:?}"
                    );
                    *last = Some(values[i]);
                }
            }
        }
    }

    #[test]
    fn what_is_kept_has_the_order_of_everything() {
        let mut random = Random(1);
        let (mut all, mut left) = (0, 0);
        for _ in 0..40_000 {
            let steps = random_steps(&mut random, false);
            let kept = filtered(&steps, &mut random);
            (all, left) = (all + steps.len(), left + kept.len());
            assert_eq!(order_of_the_rest(&steps), order_of_the_rest(&kept), "{steps:?}\n{kept:?}");
            check_values(&kept, &steps);
        }
        assert!(left * 10 < all * 9, "{left} of {all}");
    }

    #[test]
    fn with_accesses_of_parts_no_order_is_lost() {
        let mut random = Random(2);
        for round in 0..80_000 {
            let steps = match round % 2 {
                0 => random_steps(&mut random, true),
                _ => handed_over(&mut random),
            };
            let kept = filtered(&steps, &mut random);
            let (all, thin) = (order_of_the_rest(&steps), order_of_the_rest(&kept));
            for (a, row) in all.iter().enumerate() {
                for (b, &before) in row.iter().enumerate() {
                    assert!(!before || thin[a][b], "{a} {b}: {steps:?}\n{kept:?}");
                }
            }
            check_values(&kept, &steps);
        }
    }
}
