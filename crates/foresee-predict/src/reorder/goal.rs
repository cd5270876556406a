//! The question that every search for a reordering answers.
//!
//! *Is there a correct reordering in which these events happen in this order, and after which each
//! of those events is the very next of its thread?* A pattern asks for the first half, a race or a
//! deadlock for the second, an atomicity violation for both.

use serde::{Deserialize, Serialize};

/// An event that is to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Its index in the trace.
    pub event: u32,
    /// Whether it is wanted only with the value it has in the trace: a read must then see what it
    /// saw, even if nothing is claimed of its thread afterwards.
    pub keeps_value: bool,
}

/// The requirements on a reordering.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Goal<'g> {
    /// These events happen, in this order.
    pub executed: &'g [Wanted],
    /// Then each of these events, of different threads, is the next of its thread. It has not
    /// happened, so a read among them may see anything, and an acquire may find its lock taken.
    pub next: &'g [u32],
}

impl Goal<'_> {
    /// The first event of the goal.
    pub fn first(&self) -> Option<u32> {
        self.extent().map(|(first, _)| first)
    }

    /// The first and the last event of the goal.
    pub fn extent(&self) -> Option<(u32, u32)> {
        let mut events = self.executed.iter().map(|w| w.event).chain(self.next.iter().copied());
        let one = events.next()?;
        Some(events.fold((one, one), |(first, last), event| (first.min(event), last.max(event))))
    }
}

/// What active reads must see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sight {
    /// The write that they saw, though another one of the same value may come in between.
    #[default]
    Writers,
    /// Some write of the value that they saw.
    Values,
    /// The same, except for reads under a lock whose thread writes the variable next: these may see
    /// anything. A finding then depends on those that see something else.
    Updates,
    /// Anything: a finding then depends on the reads that see something else.
    Anything,
}

/// The limits of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// How many slices there are for each event that is to happen. More slices, more reorderings.
    pub slices: u8,
    /// How often a choice may turn out wrong.
    pub failures: u32,
    /// How many steps the search may take in all.
    pub work: u64,
}

impl Effort {
    /// One slice per event, which finds most reorderings.
    pub const QUICK: Effort = Effort { slices: 1, failures: 16, work: 10_000_000 };
    /// Two slices per event, which finds nearly all.
    pub const THOROUGH: Effort = Effort { slices: 2, failures: 64, work: 10_000_000 };
}

/// The answer to a goal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// There is such a reordering: everything before `observed` as in the trace, then `order`.
    Yes {
        /// How many events of the trace happen as observed.
        observed: u32,
        /// What happens after them.
        order: Vec<u32>,
    },
    /// None was found.
    No {
        /// Which of the events came too early, by their places among the executed and then the next
        /// ones, as bits. No reordering has such an event where the goal wants it. If no bit is
        /// set, later events of the same threads fail, too.
        blamed: u128,
        /// Whether the search was given up before it had tried everything.
        gave_up: bool,
        /// Whether the answer would be the same with any earlier anchor.
        is_final: bool,
    },
}
