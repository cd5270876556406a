//! What a thread may still do, as far as it is known: which slots it and the threads that it starts read, write, lock, wait for.

use crate::map::HashMap;

use crate::facts::{Act, CHILD, Facts, MONITORS, NONE, NodeId};
use crate::program::Patience;

/// What an operation does with a slot, as bits.
pub(crate) type Aspects = u32;

pub(crate) const READ: Aspects = 1;
const WRITE: Aspects = 1 << 1;
const LOCK: Aspects = 1 << 2;
const SHARE: Aspects = 1 << 3;
/// Takes it if it is there: what the thread is told hangs on when it asks.
const TRY: Aspects = 1 << 4;
pub(crate) const RELEASE: Aspects = 1 << 5;
const AWAIT: Aspects = 1 << 6;
pub(crate) const NOTIFY: Aspects = 1 << 7;
pub(crate) const POST: Aspects = 1 << 8;
const TAKE: Aspects = 1 << 9;
const TRY_TAKE: Aspects = 1 << 10;
pub(crate) const ARRIVE: Aspects = 1 << 11;
const ONCE: Aspects = 1 << 12;
pub(crate) const ONCE_END: Aspects = 1 << 13;
const INIT: Aspects = 1 << 14;
pub(crate) const FORK: Aspects = 1 << 15;

/// What an operation conflicts with: what may not be swapped with it. Unlocking conflicts only with attempts, as nothing else
/// can happen to a lock that another thread has.
fn against(aspects: Aspects) -> Aspects {
    const TABLE: [(Aspects, Aspects); 15] = [
        (READ, WRITE),
        (WRITE, READ | WRITE),
        (LOCK, LOCK | SHARE | TRY),
        (SHARE, LOCK | TRY),
        (TRY, LOCK | SHARE | TRY | RELEASE),
        (RELEASE, TRY),
        (AWAIT, NOTIFY),
        (NOTIFY, AWAIT | NOTIFY),
        (POST, TRY_TAKE | INIT),
        (TAKE, TAKE | TRY_TAKE | INIT),
        (TRY_TAKE, POST | TAKE | TRY_TAKE | INIT),
        (ARRIVE, ARRIVE | INIT),
        (ONCE, ONCE),
        (ONCE_END, 0),
        (INIT, POST | TAKE | TRY_TAKE | ARRIVE | INIT),
    ];
    TABLE.iter().filter(|row| aspects & row.0 != 0).fold(0, |all, row| all | row.1)
}

/// What an operation touches, and how. `is_watched` if a property sees it.
pub(crate) fn footprint(
    facts: &Facts,
    node: NodeId,
    is_watched: bool,
    out: &mut Vec<(u32, Aspects)>,
) {
    out.clear();
    if is_watched {
        out.push((MONITORS, WRITE));
    }
    let Some(act) = facts.act(node) else { return };
    match act {
        Act::Load(parts) => out.extend(facts.memory.parts(parts).iter().map(|p| (p.slot, READ))),
        Act::Store(parts, _) | Act::Modify(parts, _) => {
            out.extend(facts.memory.parts(parts).iter().map(|p| (p.slot, WRITE)));
        }
        Act::Lock { lock, patience: Patience::Wait, shared, .. } => {
            out.push((lock, if shared { SHARE } else { LOCK }));
        }
        Act::Lock { lock, .. } => out.push((lock, TRY)),
        Act::Unlock { lock, .. } => out.push((lock, RELEASE)),
        Act::Wait { condition, lock } => out.extend([(condition, AWAIT), (lock, RELEASE)]),
        Act::WaitEnd { condition, lock, timed } => {
            out.push((lock, LOCK));
            if timed {
                out.push((condition, AWAIT));
            }
        }
        Act::Signal(at) | Act::Broadcast(at) => out.push((at, NOTIFY)),
        Act::SemInit(at, _) => out.push((at, INIT)),
        Act::SemPost(at) => out.push((at, POST)),
        Act::SemWait(at, Patience::Wait) => out.push((at, TAKE)),
        Act::SemWait(at, _) | Act::SemValue(at) => out.push((at, TRY_TAKE)),
        Act::BarrierInit { arrived, .. } => out.push((arrived, INIT)),
        Act::Arrive { arrived, .. } => out.push((arrived, ARRIVE)),
        Act::OnceBegin(at) => out.push((at, ONCE)),
        Act::OnceEnd(at) => out.push((at, ONCE_END)),
        Act::Fork => {
            if let Some(child) = facts.edge(node, CHILD) {
                let child = facts.nodes[child as usize].thread;
                out.push((facts.threads[child as usize].node, FORK));
            }
        }
        Act::Pass { .. } | Act::Join(_) | Act::End(_) => {}
        Act::Stop | Act::Fail | Act::Mark | Act::Unknown => {}
    }
}

type Set = Box<[(u32, Aspects)]>;

/// The futures of all histories. Equal sets are kept once.
#[derive(Default)]
pub(crate) struct Futures {
    sets: Vec<Set>,
    ids: HashMap<Set, u32>,
    unions: HashMap<(u32, u32), u32>,
    of: Vec<u32>,
}

impl Futures {
    /// What the facts say now.
    pub(crate) fn new(facts: &Facts, is_watched: &dyn Fn(NodeId) -> bool) -> Futures {
        let mut futures = Futures::default();
        let nothing = futures.intern(Box::new([]));
        futures.of = vec![nothing; facts.nodes.len()];
        let mut touched = Vec::new();
        // Histories come after those that they go on from.
        for node in (0..facts.nodes.len()).rev() {
            footprint(facts, node as NodeId, is_watched(node as NodeId), &mut touched);
            touched.sort_unstable();
            let own = futures.intern(touched.as_slice().into());
            let all = futures.union(own, futures.of[node]);
            futures.of[node] = all;
            let parent = facts.nodes[node].parent;
            if parent != NONE {
                futures.of[parent as usize] = futures.union(futures.of[parent as usize], all);
            }
        }
        futures
    }

    fn intern(&mut self, set: Set) -> u32 {
        if let Some(&id) = self.ids.get(&set) {
            return id;
        }
        let id = self.sets.len() as u32;
        self.sets.push(set.clone());
        self.ids.insert(set, id);
        id
    }

    fn union(&mut self, one: u32, other: u32) -> u32 {
        if one == other {
            return one;
        }
        let pair = (one.min(other), one.max(other));
        if let Some(&known) = self.unions.get(&pair) {
            return known;
        }
        let mut all: Vec<(u32, Aspects)> = self.sets[one as usize].to_vec();
        all.extend_from_slice(&self.sets[other as usize]);
        all.sort_unstable();
        all.dedup_by(|next, before| {
            let is_same = next.0 == before.0;
            if is_same {
                before.1 |= next.1;
            }
            is_same
        });
        let id = self.intern(all.into());
        self.unions.insert(pair, id);
        id
    }

    /// Whether a thread with this history may still do one of these things with a slot.
    pub(crate) fn may(&self, node: NodeId, slot: u32, aspects: Aspects) -> bool {
        // Histories that are newer than this have no futures yet; the next pass knows them.
        let Some(&set) = self.of.get(node as usize) else { return true };
        let set = &self.sets[set as usize];
        set.binary_search_by_key(&slot, |entry| entry.0).is_ok_and(|at| set[at].1 & aspects != 0)
    }

    /// Whether a thread with this history may still do something that conflicts with an operation.
    pub(crate) fn conflicts(&self, node: NodeId, footprint: &[(u32, Aspects)]) -> bool {
        footprint.iter().any(|&(slot, aspects)| self.may(node, slot, against(aspects)))
    }
}
