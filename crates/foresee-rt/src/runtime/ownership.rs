//! The ownership filter: which accesses need not be recorded.
//!
//! Every eight bytes of memory have a [`Cell`] that names the thread that accessed them last: the *owner*. While no other
//! thread accesses them, most of the owner's accesses add nothing to the order of events: its first accesses come after
//! everything that the others come after, and its last ones come before everything that the others come before. So while
//! a thread is the owner, the runtime records only
//!
//! - the first read and the first write of each byte, at once, unless every earlier access to the byte is ordered before
//!   them anyway: the memory is fresh, or locks and the like order it ([`World::is_before`]);
//! - the last write and the last reads after it, when another thread arrives ([`Held`]), with the place in the owner's
//!   own sequence where they happened; not even these if the newcomer is ordered after them anyway and covers them.
//!
//! A cell keeps the very last write after its thread has lost ownership, because that write must be recorded before any
//! read that sees it. It keeps it even beside the owner's write, if that is to other bytes. Memory that several threads
//! read and no thread writes has no owner: each thread keeps its own last read ([`Entry`]). So memory that one thread uses
//! at a time, under a lock, costs nothing, and neither does memory that is only read.
//!
//! Bytes of one cell that are held back together are recorded together, at the place of the latest of them. That may add
//! order, but never removes any. The tests below compare the causality of what is kept with that of everything.

use core::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};

use crate::format::Access;

/// The state of eight bytes. In the free-running mode, which does not promise exactness, threads may race for it.
#[repr(C)]
#[derive(Default)]
pub(super) struct Cell {
    /// The owner's number, whether the last write and read were atomic, and the last writer if it is not the owner.
    owner: AtomicU32,
    /// Bytes whose last write is held back.
    wrote: AtomicU8,
    /// Bytes whose last read is held back.
    read: AtomicU8,
    /// Bytes whose writes by the owner are ordered after all earlier accesses to them, according
    /// to the log.
    first_write: AtomicU8,
    /// The same for reads, which are ordered after all earlier writes.
    first_read: AtomicU8,
    /// Place of the last write.
    write_place: AtomicU32,
    /// Zero if nothing was ever written.
    write_pc: AtomicU32,
    /// Place of the owner's last access other than its last write; the phase number if there is no owner.
    read_place: AtomicU32,
    read_pc: AtomicU32,
}

/// The last read of a cell by one of several readers. The entry of [`NO_THREAD`] is the write before the owner's.
#[derive(Default)]
pub(super) struct Entry {
    /// The phase of reading in which it happened. Phase numbers are unique, so entries of earlier phases are void. For a
    /// write, the writer.
    phase: AtomicU32,
    place: AtomicU32,
    pc: AtomicU32,
    /// The bytes read or written.
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

/// What a cell needs from the rest of the runtime.
pub(super) trait World {
    /// Whether the log orders everything that another thread did up to a place before what the current thread does now.
    fn is_before(&self, thread: u32, place: u32) -> bool;
    /// A thread's entry for this cell, if any.
    fn entry(&self, thread: u32) -> Option<&Entry>;
    /// The same, created if necessary; `None` if there is no room.
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
/// The owner of memory whose accesses are all recorded.
const WATCHED: u32 = ID;
/// The owner of memory that is a lock: the fields hold its clock, its owner and its depth.
const LOCK: u32 = ID - 1;
/// The owner of memory that several threads read.
const READERS: u32 = ID - 2;
/// Besides the owner's write, another thread's write to other bytes is held back, as the entry of [`NO_THREAD`].
const OLDER: u32 = 1 << 23;
const NO_THREAD: u32 = 0;
const ATOMIC_WRITE: u32 = 1 << 24;
const ATOMIC_READ: u32 = 1 << 25;
/// The last writer, if it is not the owner: a number below [`UNKNOWN_WRITER`], or that if it does not fit.
const WRITER: u32 = 26;
const UNKNOWN_WRITER: u32 = 63;

impl Cell {
    /// Notes an access and returns whether it must be recorded now.
    #[inline(always)]
    pub(super) fn touch(&self, touch: Touch, world: &mut impl World) -> bool {
        !self.touch_again(touch)
            && !self.read_again(touch, || world.entry(touch.thread))
            && self.touch_anew(touch, world)
    }

    /// Notes a plain access by the owner that repeats an earlier one, as most do: it need not be recorded. Returns `false`
    /// and changes nothing if the access is of another kind.
    #[inline(always)]
    pub(super) fn touch_again(&self, touch: Touch) -> bool {
        let Touch { thread, place, mask, pc, write, atomic } = touch;
        let owner = self.owner.load(Relaxed);
        // Neither access may be atomic, and a write must not overwrite another thread's.
        let differs = if write { u32::MAX } else { ID | ATOMIC_READ | ATOMIC_WRITE };
        let known = if write { &self.first_write } else { &self.first_read };
        if atomic || (owner ^ thread) & differs != 0 || mask & !known.load(Relaxed) != 0 {
            return false;
        }
        if write {
            self.note_write(mask, place, pc);
        } else {
            self.note_read(mask, place, pc);
        }
        true
    }

    /// The same for a read by one of several readers; `entry` finds its entry.
    #[inline(always)]
    pub(super) fn read_again<'e>(
        &self,
        touch: Touch,
        entry: impl FnOnce() -> Option<&'e Entry>,
    ) -> bool {
        let Touch { place, mask, pc, write, atomic, .. } = touch;
        if self.owner.load(Relaxed) & ID == READERS
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

    /// Notes any other access and returns whether it must be recorded now.
    #[inline(always)]
    pub(super) fn touch_anew(&self, touch: Touch, world: &mut impl World) -> bool {
        let Touch { thread, place, mask, pc, write, atomic } = touch;
        let owner = self.owner.load(Relaxed);
        let arrives = owner & ID != thread;
        if arrives && (owner & OLDER != 0 || !self.succeed(touch, true, world)) {
            match self.arrive(touch, true, world) {
                Arrival::Watched => return true,
                Arrival::Reader => return false,
                Arrival::Owner => {}
            }
        }
        let owner = self.owner.load(Relaxed);
        let known = if write { &self.first_write } else { &self.first_read };
        if known.load(Relaxed) & mask != mask {
            return self.first(touch, world);
        }
        if write {
            if owner & OLDER != 0 {
                self.write_over_older(mask, world);
            } else if owner >> WRITER != 0 && self.write_over(touch, world) {
                return true;
            }
            self.note_write(mask, place, pc);
        } else {
            self.note_read(mask, place, pc);
        }
        if atomic || owner & (ATOMIC_READ | ATOMIC_WRITE) != 0 {
            let bit = if write { ATOMIC_WRITE } else { ATOMIC_READ };
            let owner = self.owner.load(Relaxed);
            self.owner.store(if atomic { owner | bit } else { owner & !bit }, Relaxed);
        }
        false
    }

    /// Records what could no longer be recorded after a write that may follow.
    pub(super) fn before_write(&self, touch: Touch, world: &mut impl World) {
        if self.owner.load(Relaxed) & ID != touch.thread
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
        let owner = self.owner.load(Relaxed);
        match owner >> WRITER {
            _ if self.write_pc.load(Relaxed) == 0 => None,
            0 => Some(owner & ID),
            writer => Some(writer),
        }
    }

    /// Whether the last write is ordered before the current access.
    fn write_is_before(&self, thread: u32, world: &impl World) -> bool {
        self.writer().is_none_or(|writer| {
            writer == thread
                || writer != UNKNOWN_WRITER
                    && world.is_before(writer, self.write_place.load(Relaxed))
        })
    }

    /// Makes the thread the owner. Its writes and its reads of these bytes are known to be ordered
    /// after the earlier accesses.
    fn move_in(&self, touch: Touch, first_write: u8, first_read: u8) {
        let writer = match self.writer() {
            Some(writer) if writer == touch.thread => 0,
            Some(writer) => writer.min(UNKNOWN_WRITER),
            None => 0,
        };
        let atomic = self.owner.load(Relaxed) & ATOMIC_WRITE;
        self.owner.store(touch.thread | writer << WRITER | atomic, Relaxed);
        self.first_write.store(first_write, Relaxed);
        self.first_read.store(first_read, Relaxed);
        self.read.store(0, Relaxed);
        self.read_place.store(touch.place, Relaxed);
    }

    /// Makes the thread the owner if the memory is fresh or all earlier accesses are ordered before this one.
    #[inline(always)]
    fn succeed(&self, touch: Touch, certain: bool, world: &mut impl World) -> bool {
        let Touch { thread, place, mask, .. } = touch;
        let owner = self.owner.load(Relaxed);
        if owner == 0 {
            self.owner.store(thread, Relaxed);
            self.first_write.store(0xff, Relaxed);
            self.first_read.store(0xff, Relaxed);
            self.read_place.store(place, Relaxed);
            return true;
        }
        let (write_place, mut last) =
            (self.write_place.load(Relaxed), self.read_place.load(Relaxed));
        let writer = match owner >> WRITER {
            0 => {
                last = last.max(write_place);
                owner & ID
            }
            writer if writer == thread => writer,
            UNKNOWN_WRITER => return false,
            writer if world.is_before(writer, write_place) => writer,
            _ => return false,
        };
        // Clocks never order an owner that is not a thread.
        if !world.is_before(owner & ID, last) {
            return false;
        }
        if !certain || self.read.load(Relaxed) & !mask != 0 {
            self.tell(world);
        }
        let is_written = writer != thread && self.write_pc.load(Relaxed) != 0;
        let writer = if is_written { writer.min(UNKNOWN_WRITER) } else { 0 };
        self.owner.store(thread | writer << WRITER | owner & ATOMIC_WRITE, Relaxed);
        self.read.store(0, Relaxed);
        self.read_place.store(place, Relaxed);
        true
    }

    /// Handles a thread that was not the owner. Unless it is `certain` that the access happens, nothing is left out because
    /// of it.
    fn arrive(&self, touch: Touch, certain: bool, world: &mut impl World) -> Arrival {
        let Touch { thread, place, mask, pc, write, atomic } = touch;
        self.tell_older(world);
        if self.succeed(touch, certain, world) {
            return Arrival::Owner;
        }
        let owner = self.owner.load(Relaxed) & ID;
        match owner {
            WATCHED => return Arrival::Watched,
            LOCK => {
                self.write_place.store(0, Relaxed);
                self.write_pc.store(1, Relaxed);
                self.owner.store(UNKNOWN_WRITER << WRITER | LOCK, Relaxed);
                self.move_in(touch, 0, 0);
                return Arrival::Owner;
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
            && let (Some(mine), Some(others)) = (world.make_entry(thread), world.make_entry(owner))
            && let Some(writer) = self.writer().filter(|&w| w < UNKNOWN_WRITER)
        {
            let phase = world.new_phase();
            if read != 0 {
                let atomic = self.owner.load(Relaxed) & ATOMIC_READ != 0;
                let (place, pc) = (self.read_place.load(Relaxed), self.read_pc.load(Relaxed));
                others.begin(phase, read, place, pc, atomic);
            }
            mine.begin(phase, mask, place, pc, atomic);
            let flags = self.owner.load(Relaxed) & ATOMIC_WRITE;
            self.owner.store(READERS | writer << WRITER | flags, Relaxed);
            self.read.store(0, Relaxed);
            self.read_place.store(phase, Relaxed);
            return Arrival::Reader;
        }
        self.tell(world);
        self.move_in(touch, 0, 0);
        Arrival::Owner
    }

    /// Handles a thread that reads for the first time in this phase, reads bytes not known to be ordered, or writes.
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
        // The write that is held back was ordered after all earlier accesses to its bytes.
        let known = if all_before { wrote } else { 0 };
        if !all_before || !certain {
            self.tell_write(world);
        }
        self.move_in(touch, known, known);
        // The thread's own reads stay held back.
        if let Some(mine) = world.entry(thread).filter(|e| e.phase.load(Relaxed) == phase) {
            self.read.store(mine.mask.load(Relaxed), Relaxed);
            self.read_place.store(mine.place.load(Relaxed), Relaxed);
            self.read_pc.store(mine.pc.load(Relaxed), Relaxed);
            if mine.atomic.load(Relaxed) != 0 {
                self.owner.store(self.owner.load(Relaxed) | ATOMIC_READ, Relaxed);
            }
        }
        Arrival::Owner
    }

    /// The owner writes where an earlier write of another thread is held back. The bytes that it does not overwrite move to
    /// the entry of [`NO_THREAD`]. Returns `true` if there is no room, so that the write must be recorded now.
    fn write_over(&self, touch: Touch, world: &mut impl World) -> bool {
        let (wrote, owner) = (self.wrote.load(Relaxed), self.owner.load(Relaxed));
        let rest = wrote & !touch.mask;
        if rest != 0
            && let Some(older) = world.make_entry(NO_THREAD)
        {
            let (place, pc) = (self.write_place.load(Relaxed), self.write_pc.load(Relaxed));
            older.begin(owner >> WRITER, rest, place, pc, owner & ATOMIC_WRITE != 0);
            self.wrote.store(0, Relaxed);
            self.owner.store(touch.thread | owner & ATOMIC_READ | OLDER, Relaxed);
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
        self.owner.store(touch.thread | owner & ATOMIC_READ, Relaxed);
        false
    }

    /// The owner writes again, perhaps over the older write.
    fn write_over_older(&self, mask: u8, world: &impl World) {
        let rest = world.entry(NO_THREAD).map_or(0, |older| {
            older.mask.store(older.mask.load(Relaxed) & !mask, Relaxed);
            older.mask.load(Relaxed)
        });
        if rest == 0 {
            self.owner.store(self.owner.load(Relaxed) & !OLDER, Relaxed);
        }
    }

    /// Records the older write, if there is one.
    #[inline(always)]
    fn tell_older(&self, world: &mut impl World) {
        if self.owner.load(Relaxed) & OLDER != 0 {
            self.tell_older_write(world);
        }
    }

    #[cold]
    #[inline(never)]
    fn tell_older_write(&self, world: &mut impl World) {
        self.owner.store(self.owner.load(Relaxed) & !OLDER, Relaxed);
        let Some(held) = world.entry(NO_THREAD).map(|older| Held {
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

    /// The access is the first of its kind for some of its bytes. It is recorded, after what was held back.
    #[cold]
    #[inline(never)]
    fn first(&self, touch: Touch, world: &mut impl World) -> bool {
        let Touch { thread, place, mask, pc, write, .. } = touch;
        self.tell(world);
        if write {
            self.first_write.store(self.first_write.load(Relaxed) | mask, Relaxed);
            self.owner.store(thread | self.owner.load(Relaxed) & ATOMIC_READ, Relaxed);
            self.write_place.store(place, Relaxed);
            self.write_pc.store(pc, Relaxed);
        }
        self.read_place.store(place, Relaxed);
        // A thread that reads its own write reads after no other write.
        self.first_read.store(self.first_read.load(Relaxed) | mask, Relaxed);
        true
    }

    /// Records the last write, if it was held back.
    fn tell_write(&self, world: &mut impl World) {
        let wrote = self.wrote.load(Relaxed);
        if wrote != 0 {
            let owner = self.owner.load(Relaxed);
            let thread = if owner >> WRITER == 0 { owner & ID } else { owner >> WRITER };
            let access =
                if owner & ATOMIC_WRITE != 0 { Access::AtomicWrite } else { Access::Write };
            let (place, pc) = (self.write_place.load(Relaxed), self.write_pc.load(Relaxed));
            world.tell(Held { thread, access, mask: wrote, place, pc });
            self.wrote.store(0, Relaxed);
        }
    }

    /// Records what was held back.
    fn tell(&self, world: &mut impl World) {
        self.tell_older(world);
        let (wrote, read) = (self.wrote.load(Relaxed), self.read.load(Relaxed));
        let owner = self.owner.load(Relaxed);
        self.tell_write(world);
        if read != 0 {
            let access = if owner & ATOMIC_READ != 0 { Access::AtomicRead } else { Access::Read };
            // The thread's own write may be recorded after the read of another byte.
            let mut place = self.read_place.load(Relaxed);
            if wrote != 0 && owner >> WRITER == 0 {
                place = place.max(self.write_place.load(Relaxed));
            }
            let pc = self.read_pc.load(Relaxed);
            world.tell(Held { thread: owner & ID, access, mask: read, place, pc });
        }
        self.read.store(0, Relaxed);
    }

    /// Records every access to these bytes from now on.
    pub(super) fn watch(&self) {
        self.owner.store(WATCHED, Relaxed);
    }

    /// Makes the memory that of a lock and records what was held back; `None` if it is watched.
    pub(super) fn as_lock(&self, touch: Touch, world: &mut impl World) -> Option<LockWords<'_>> {
        let owner = self.owner.load(Relaxed) & ID;
        if owner != LOCK {
            if owner != touch.thread && matches!(self.arrive(touch, false, world), Arrival::Watched)
            {
                return None;
            }
            self.tell(world);
            for word in [&self.write_place, &self.write_pc, &self.read_place, &self.read_pc] {
                word.store(0, Relaxed);
            }
            self.owner.store(LOCK, Relaxed);
        }
        let (clock, owner, depth) = (&self.write_place, &self.read_place, &self.read_pc);
        Some(LockWords { clock, owner, depth })
    }
}

/// What a thread that was not the owner has become.
enum Arrival {
    Watched,
    Reader,
    Owner,
}

/// The fields of a cell that belongs to a lock.
pub(super) struct LockWords<'c> {
    /// The place of its clock; zero if it has none.
    pub(super) clock: &'c AtomicU32,
    /// The thread that holds it exclusively.
    pub(super) owner: &'c AtomicU32,
    /// How often it has been taken by that thread.
    pub(super) depth: &'c AtomicU32,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A step of a small program: an access to some bytes of a cell, an operation on a lock, or a mark. The last two are
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

    /// What the cells need, and what they record late.
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
            // The last thread comes too late to get entries, and there is little room for older
            // writes.
            let full = thread as usize == THREADS - 1 || thread == NO_THREAD && self.cell == 1;
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

    /// The steps that are kept, with those held back inserted at their places, as the host does.
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
                    // Some writes are announced with more bytes than they write, or do not happen.
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
        // Each thread begins with a record of its start, which is not a step.
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

    /// Threads hand memory to each other, mostly under a lock, and access parts of it.
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

    /// The host compares each read with the last write: omissions must not show there. And no
    /// thread may be recorded as the writer of another thread's value.
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

    /// Under miri, a thousandth.
    fn rounds(n: usize) -> usize {
        if cfg!(miri) { n / 1000 } else { n }
    }

    #[test]
    fn what_is_kept_has_the_order_of_everything() {
        let mut random = Random(1);
        let (mut all, mut left) = (0, 0);
        for _ in 0..rounds(40_000) {
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
        for round in 0..rounds(80_000) {
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
