//! Finds the variables that could have races at all.
//!
//! Most shared variables are always accessed under one lock. In the pass over the trace each
//! variable keeps the locks that all its accesses had in common, as in Eraser; only those without a
//! common lock are examined further.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use foresee_trace::{Event, Id, VarId};

use super::super::lock_state::LockState;
use super::super::locksets::{Hold, LockSetId, LockSets};

/// The suspects.
#[derive(Debug, Default)]
pub(super) struct Suspects {
    variables: Vec<Variable>,
    /// Sets of locks that guard a variable, whatever the mode they are held in.
    guards: LockSets,
    /// The guards that remain after an access.
    narrowed: HashMap<(LockSetId, LockSetId, bool), LockSetId, RandomState>,
}

#[derive(Clone, Copy, Debug)]
struct Variable {
    /// The thread of an earlier access; `u32::MAX` before the first one.
    owner: u32,
    guards: LockSetId,
    /// The locks of the latest access.
    latest: LockSetId,
    is_shared: bool,
    is_written: bool,
    is_plain: bool,
    latest_writes: bool,
}

const NOBODY: Variable = Variable {
    owner: u32::MAX,
    guards: LockSetId::EMPTY,
    latest: LockSetId::EMPTY,
    is_shared: false,
    is_written: false,
    is_plain: false,
    latest_writes: false,
};

impl Suspects {
    /// The next access, by a thread that holds the locks in `lock_state`.
    #[inline]
    pub(super) fn access(&mut self, event: &Event, lock_state: &LockState) {
        let at = event.var().index();
        if at >= self.variables.len() {
            self.variables.resize(at + 1, NOBODY);
        }
        let (op, held) = (event.op(), lock_state.set(event.thread()));
        let (known, owner) = (self.variables[at], event.thread().0);
        let variable = &mut self.variables[at];
        variable.is_shared |= known.owner != u32::MAX && known.owner != owner;
        variable.is_written |= op.writes();
        variable.is_plain |= !op.is_atomic();
        let is_first = known.owner == u32::MAX;
        let is_same = known.latest == held && known.latest_writes == op.writes();
        if !is_first && (is_same || known.guards == LockSetId::EMPTY) {
            return;
        }
        (variable.owner, variable.latest, variable.latest_writes) = (owner, held, op.writes());
        let guards =
            self.narrow((!is_first).then_some(known.guards), held, op.writes(), lock_state);
        self.variables[at].guards = guards;
    }

    /// The guards that are also held at an access with these locks. A lock that is only shared does
    /// not guard a write.
    fn narrow(
        &mut self,
        guards: Option<LockSetId>,
        held: LockSetId,
        writes: bool,
        lock_state: &LockState,
    ) -> LockSetId {
        let holds = lock_state.locksets.get(held);
        let guarding = holds.iter().filter(|hold| !writes || !hold.shared);
        let guarding = guarding.map(|hold| Hold { shared: false, ..*hold });
        let Some(guards) = guards else { return self.guards.intern(guarding) };
        if let Some(&known) = self.narrowed.get(&(guards, held, writes)) {
            return known;
        }
        let is_held =
            |shared: bool, guard: &Hold| holds.binary_search(&Hold { shared, ..*guard }).is_ok();
        let stays = |guard: &&Hold| is_held(false, guard) || !writes && is_held(true, guard);
        let left: Vec<Hold> = self.guards.get(guards).iter().filter(stays).copied().collect();
        let left = self.guards.intern(left.into_iter());
        self.narrowed.insert((guards, held, writes), left);
        left
    }

    /// How many bytes the sets of guards take.
    pub(super) fn bytes(&self) -> usize {
        self.guards.bytes()
    }

    /// Whether nothing rules out a race for a variable yet.
    #[inline]
    pub(super) fn has(&self, variable: VarId) -> bool {
        self.variables.get(variable.index()).is_some_and(|v| v.is_open())
    }

    /// The number of variables that several threads use, and the number of suspects among them.
    pub(super) fn count(&self) -> (u64, u64) {
        let shared = self.variables.iter().filter(|v| v.is_shared).count();
        let open = self.variables.iter().filter(|v| v.is_open()).count();
        (shared as u64, open as u64)
    }
}

impl Variable {
    fn is_open(&self) -> bool {
        self.is_shared && self.is_written && self.is_plain && self.guards == LockSetId::EMPTY
    }
}
