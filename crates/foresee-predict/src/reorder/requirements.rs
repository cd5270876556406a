//! What each event needs, whatever else is chosen: the hard requirements.
//!
//! An event needs the one before it in its thread, the fork of its thread, the end of a thread it
//! joins, and the notification that ends its wait; a read that counts needs the write it saw, or
//! [another of the same value](super::values). All this is known once the trace has been read, and
//! kept in a few numbers an event.

use std::collections::HashMap;
use std::sync::OnceLock;

use foldhash::fast::RandomState;
use foresee_trace::{Event, Id, Op, Pool, ThreadId, entry};

use super::goal::Sight;
use super::landmarks::{self, Landmarks};
use super::sections::{self, Counts, Inside, Sections};
use super::values::{self, Values};
use crate::needs::{Kind, NONE, Need, Needs};
use crate::published::Published;
use crate::users::Users;

/// How many reads of a section are remembered until their variable is written.
const MOST_PENDING: usize = 16;

/// The hard requirements of all events of a trace, twenty bytes an event.
#[derive(Debug, Default)]
pub struct Requirements {
    rows: Vec<Row>,
    /// The fork of each thread.
    forks: Vec<u32>,
    /// For events that are only possible if one event comes before another, these two: for ends of
    /// waits the beginning and the notification; for failed try-locks themselves and the release of
    /// the section that was in their way.
    conditions: HashMap<u32, (u32, u32), RandomState>,
    /// For the latter of the two, the events that depend on this order.
    conditional: HashMap<u32, Vec<u32>, RandomState>,
    sections: Sections,
    values: Values,
    /// A bit for each event: a read under a lock whose thread writes the variable next, before it
    /// gives a lock back.
    updates: Vec<u64>,
    /// How many variables and locks have a number, and how many threads there are.
    object_count: usize,
    thread_count: usize,
    landmarks: OnceLock<Landmarks>,
    landmarks_by_value: OnceLock<Landmarks>,
    inside: OnceLock<Inside>,
    building: Building,
}

/// The data kept for an event. Searches need most of it at once.
#[derive(Clone, Copy, Debug)]
struct Row {
    /// The thread and, in the low byte, the kind.
    head: u32,
    /// The variable or lock, if more than one thread uses it and forks alone do not order that: twice
    /// its number, plus one for locks.
    object: u32,
    previous: u32,
    /// For a read, the write it saw; for an acquire, its release; for a join, the last event of the
    /// thread; for a bare wait, its notification; for a failed try-lock, the acquire in its way.
    partner: u32,
}

/// What is only needed while the trace is read.
#[derive(Debug, Default)]
struct Building {
    needs: Needs,
    sections: Counts,
    /// The try-locks that failed.
    failed: Vec<u32>,
    /// For each thread how many locks it has, and the reads since it last gave one back, each with
    /// its object, that no access to it has followed.
    pending: Vec<(u32, Vec<(u32, u32)>)>,
    users: Users,
    published: Published,
}

/// More events than can be numbered, or than there is room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the trace is too long for it: allow more with --max-memory")]
pub struct TooManyEvents;

impl Row {
    #[inline]
    fn kind(&self) -> Kind {
        Kind::ALL[(self.head & 0xff) as usize]
    }
}

impl Requirements {
    /// Takes the next event of a well-formed trace, whose values are in the pool.
    pub fn push(&mut self, event: &Event, pool: &Pool) -> Result<(), TooManyEvents> {
        let i = self.rows.len() as u32;
        if i >= NONE - 1 || event.target().is_some_and(|t| t >= NONE / 2) {
            return Err(TooManyEvents);
        }
        let Need { kind, object, previous, mut partner, acquire } =
            self.building.needs.step(i, event);
        let t = event.thread();
        if kind == Kind::WaitEnd && partner != NONE {
            self.conditions.insert(i, (previous, partner));
            self.conditional.entry(partner).or_default().push(i);
            // The release of its section takes this place.
            partner = NONE;
        }
        if kind == Kind::Busy && partner != NONE {
            self.building.failed.push(i);
        }
        if acquire != NONE {
            self.rows[acquire as usize].partner = i;
        }
        if kind.acquires() && object != NONE {
            self.building.sections.add((object / 2) as usize, kind == Kind::AcquireShared);
        }
        if object != NONE {
            self.building.users.add(object as usize, t.0);
        }
        match event.op() {
            Op::Fork => self.building.published.fork(t, event.other(), i),
            _ if kind.reads() || kind.writes() => {
                self.building.published.access((object / 2) as usize, t.0, kind, i);
            }
            _ => {}
        }
        self.note_updates(i, t, kind, object);
        self.rows.push(Row { head: t.0 << 8 | kind as u32, object, previous, partner });
        self.values.push(event, pool, partner);
        Ok(())
    }

    /// Finds the reads whose value is only written back.
    #[inline]
    fn note_updates(&mut self, i: u32, t: ThreadId, kind: Kind, object: u32) {
        if i.is_multiple_of(64) {
            self.updates.push(0);
        }
        let (held, reads) = entry(&mut self.building.pending, t.index());
        match kind {
            Kind::Acquire | Kind::AcquireShared | Kind::WaitEnd => *held += 1,
            Kind::Release | Kind::ReleaseShared => {
                *held = held.saturating_sub(1);
                reads.clear();
            }
            Kind::Read | Kind::Write | Kind::Rmw if *held > 0 => {
                if let Some(at) = reads.iter().position(|read| read.1 == object) {
                    let (read, _) = reads.swap_remove(at);
                    if kind == Kind::Write {
                        self.updates[read as usize / 64] |= 1 << (read % 64);
                    }
                }
                if kind == Kind::Read && reads.len() < MOST_PENDING {
                    reads.push((i, object));
                }
            }
            _ => {}
        }
    }

    /// Takes the next event, or drops everything if that would exceed the given number of events.
    pub(crate) fn push_within(
        &mut self,
        most: usize,
        event: &Event,
        pool: &Pool,
    ) -> Result<(), TooManyEvents> {
        let pushed = match self.len() < most {
            true => self.push(event, pool),
            false => Err(TooManyEvents),
        };
        if pushed.is_err() {
            *self = Requirements::default();
        }
        pushed
    }

    /// The trace has ended. Drops objects that only one thread uses, and variables that forks order,
    /// because nothing about them depends on the order of anything else.
    pub fn finish(&mut self) {
        let Building { users, published, failed, sections, needs, .. } =
            std::mem::take(&mut self.building);
        self.forks = needs.into_forks();
        for busy in failed {
            let release = self.partner(self.partner(busy));
            if release != NONE {
                self.conditions.insert(busy, (busy, release));
                self.conditional.entry(release).or_default().push(busy);
            }
        }
        for row in &mut self.rows {
            let is_settled = |object: u32| {
                let is_lock = object & 1 == 1;
                !users.is_shared(object as usize)
                    || !is_lock && published.is_settled((object / 2) as usize)
            };
            if row.object != NONE && is_settled(row.object) {
                row.object = NONE;
            }
            self.thread_count = self.thread_count.max((row.head >> 8) as usize + 1);
        }
        self.object_count = users.shared_end();
        let acquires = self.rows.iter().enumerate().filter_map(|(i, row)| {
            let is_one = row.object != NONE && row.kind().acquires();
            is_one.then_some(((row.object / 2) as usize, i as u32))
        });
        let release = |acquire: u32| self.rows[acquire as usize].partner;
        self.sections = sections.sections(|lock| users.is_shared(lock * 2 + 1), acquires, release);
        let mut values = std::mem::take(&mut self.values);
        values::bind(self, &mut values);
        self.values = values;
    }

    /// How many events there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no event.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    #[inline]
    pub(crate) fn kind(&self, event: u32) -> Kind {
        self.rows[event as usize].kind()
    }

    /// Whether it is a step at all.
    #[inline]
    pub(crate) fn is_step(&self, event: u32) -> bool {
        self.kind(event) != Kind::Init
    }

    #[inline]
    pub(crate) fn thread(&self, event: u32) -> u32 {
        self.rows[event as usize].head >> 8
    }

    #[inline]
    pub(crate) fn object(&self, event: u32) -> u32 {
        self.rows[event as usize].object
    }

    #[inline]
    pub(crate) fn partner(&self, event: u32) -> u32 {
        self.rows[event as usize].partner
    }

    /// Whether any read could have seen another write of the same value.
    pub(crate) fn has_free_reads(&self) -> bool {
        self.values.has_free_reads()
    }

    /// Whether a read could have seen another write of the same value, as far as is known.
    #[inline]
    pub(crate) fn is_free(&self, read: u32) -> bool {
        self.values.need_of_free(read).is_some()
    }

    /// Whether an event reads under a lock what its thread then writes, before it gives a lock back.
    #[inline]
    pub(crate) fn is_update(&self, event: u32) -> bool {
        self.updates[event as usize / 64] >> (event % 64) & 1 == 1
    }

    /// An event as far as others need it to have happened: a free read needs no certain write.
    pub(crate) fn bound(&self, index: u32, event: &Event) -> Event {
        let op = event.op();
        match op.reads() && self.is_free(index) {
            true if op.writes() => event.with_op(Op::Write),
            true => Event::new(event.thread(), Op::Event),
            false => *event,
        }
    }

    /// What must have been written before a read, whichever write of its value it sees.
    #[inline]
    pub(crate) fn need(&self, read: u32) -> u32 {
        self.values.need_of_free(read).unwrap_or_else(|| self.partner(read))
    }

    /// Whether a read finds the same after another write, or after none, as it did.
    #[inline]
    pub(crate) fn is_alike(&self, read: u32, write: u32) -> bool {
        self.values.is_alike(read, self.object(read) / 2, write)
    }

    /// The writes of the value that a free read found, in their order.
    pub(crate) fn alike(&self, read: u32) -> &[u32] {
        self.values.alike(read, self.object(read) / 2)
    }

    /// The last write of a variable before some event, if a free read is of it.
    pub(crate) fn last_write_before(&self, object: u32, event: u32) -> u32 {
        self.values.last_before(object / 2, event)
    }

    /// The representative of a write and all others of its value, if no read can distinguish them:
    /// the write `base` if it has that value, or else one of them.
    pub(crate) fn stands_for(&self, write: u32, base: u32) -> Option<u32> {
        self.values.stands_for(self.object(write) / 2, write, base)
    }

    /// The last write of a free read's variable before some event.
    pub(crate) fn written_before(&self, read: u32, event: u32) -> u32 {
        self.values.last_before(self.object(read) / 2, event)
    }

    /// The event before it in its thread, or its fork.
    #[inline]
    pub(crate) fn previous(&self, event: u32) -> u32 {
        match self.rows[event as usize].previous {
            NONE => self.forks.get(self.thread(event) as usize).copied().unwrap_or(NONE),
            previous => previous,
        }
    }

    /// The event that started a thread, if there is one.
    pub(crate) fn fork(&self, thread: usize) -> u32 {
        self.forks.get(thread).copied().unwrap_or(NONE)
    }

    /// Whether the event before it is of its own thread.
    #[inline]
    pub(crate) fn has_previous(&self, event: u32) -> bool {
        self.rows[event as usize].previous != NONE
    }

    /// The two events of which the first must come before the second, if the second comes at all,
    /// for this one to be possible: a wait ends if it had begun before its notification, a try-lock
    /// fails before the section is over that is in its way.
    #[inline]
    pub(crate) fn condition(&self, event: u32) -> Option<(u32, u32)> {
        self.conditions.get(&event).copied()
    }

    /// The events that require others to come before this one.
    pub(crate) fn conditional(&self, event: u32) -> &[u32] {
        // Most traces have none.
        if self.conditional.is_empty() {
            return &[];
        }
        self.conditional.get(&event).map_or(&[], Vec::as_slice)
    }

    /// How many variables and locks have a number.
    pub(crate) fn object_count(&self) -> usize {
        self.object_count
    }

    pub(crate) fn thread_count(&self) -> usize {
        self.thread_count
    }

    /// What some events certainly need, if reads must see this; computed on first use.
    pub(crate) fn landmarks(&self, sight: Sight) -> &Landmarks {
        let all = match sight {
            Sight::Values if self.has_free_reads() => &self.landmarks_by_value,
            _ => &self.landmarks,
        };
        all.get_or_init(|| Landmarks::new(self, landmarks::STRIDE, sight))
    }

    /// The sections that an event's thread is in just before it, by their acquires in their order.
    pub(crate) fn inside(&self, event: u32) -> Vec<u32> {
        self.inside.get_or_init(|| Inside::new(self, sections::STRIDE)).at(event, self)
    }

    /// The sections of a lock that are open just before event `at`, by their acquires.
    pub(crate) fn open_at(&self, lock_object: u32, at: u32, out: &mut Vec<u32>) {
        self.sections.open_at((lock_object / 2) as usize, at, |a| self.partner(a), out);
    }
}
