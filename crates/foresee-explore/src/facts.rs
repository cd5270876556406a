//! What is known of a program: a thread's history decides what it does next.
//!
//! A history is a node of a tree: each thread has a root, and each answer that a thread was told leads to another node. A fact
//! is a node with its next operation. Nodes are exact, where hashes of histories could collide.

use crate::map::HashMap;
use hashbrown::hash_map::Entry;

use crate::memory::{Memory, Parts, ValueId, Values};
use crate::program::{
    Cell, Join, LockKind, Modify, Operation, Patience, Place, Spot, ThreadName, Told, Value,
};

/// The number of a thread.
pub(crate) type Tid = u32;
/// The number of a history.
pub(crate) type NodeId = u32;
/// The number of an operation at a place.
pub(crate) type ActionId = u32;
/// An answer, as a number.
pub(crate) type Answer = u32;

pub(crate) const NONE: u32 = u32::MAX;

/// Answers other than values. [`CHILD`] leads from a fork to the first fact of the thread that it starts.
pub(crate) const NOTHING: Answer = 0;
pub(crate) const GOT: Answer = 1;
pub(crate) const BUSY: Answer = 2;
pub(crate) const WOKEN: Answer = 3;
pub(crate) const TIMED_OUT: Answer = 4;
pub(crate) const REFUSED: Answer = 5;
pub(crate) const CHILD: Answer = 6;
const VALUES: Answer = 7;

/// The answer with which a value is told.
pub(crate) fn told_value(value: ValueId) -> Answer {
    VALUES + value
}

/// A thread.
pub(crate) struct ThreadInfo {
    pub(crate) name: ThreadName,
    /// The slots of its history and of its wait.
    pub(crate) node: u32,
    pub(crate) wait: u32,
}

/// A history.
#[derive(Clone, Copy)]
pub(crate) struct Node {
    pub(crate) thread: Tid,
    /// The history before, or the parent's before the fork; [`NONE`] for the root of `main`.
    pub(crate) parent: NodeId,
    /// What the thread was told last.
    pub(crate) told: Answer,
    /// What it does next; [`NONE`] if that is not known.
    pub(crate) action: ActionId,
    /// Where the history goes on if the thread is told nothing.
    pub(crate) next: NodeId,
    /// The run that showed what it does next.
    pub(crate) run: u32,
    /// The length of the history.
    pub(crate) depth: u32,
    /// The history that this one repeats: its last operations and answers are those before them.
    pub(crate) repeats: NodeId,
    /// How often they were repeated.
    pub(crate) rounds: u32,
}

/// An operation, with slots for what it touches.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    Load(Parts),
    /// The value is zero if it is not known yet.
    Store(Parts, ValueId),
    Modify(Parts, Modify),
    Lock {
        lock: u32,
        kind: LockKind,
        shared: bool,
        patience: Patience,
    },
    Unlock {
        lock: u32,
        kind: LockKind,
    },
    Wait {
        condition: u32,
        lock: u32,
    },
    WaitEnd {
        condition: u32,
        lock: u32,
        timed: bool,
    },
    Signal(u32),
    Broadcast(u32),
    SemInit(u32, u32),
    SemPost(u32),
    SemWait(u32, Patience),
    SemValue(u32),
    BarrierInit {
        needed: u32,
        arrived: u32,
        count: u32,
    },
    Arrive {
        needed: u32,
        arrived: u32,
    },
    Pass {
        arrived: u32,
    },
    OnceBegin(u32),
    OnceEnd(u32),
    /// The fact after [`CHILD`] says which thread it starts.
    Fork,
    Join(Tid),
    End(ValueId),
    /// The process ends here: the search does not take this step.
    Stop,
    /// The same, and badly: a run must show it.
    Fail,
    /// Nothing but properties sees it.
    Mark,
    Unknown,
}

/// Two runs disagree, or a run disagrees with what was computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contradiction {
    /// The thread.
    pub thread: ThreadName,
    /// After how many operations of it.
    pub after: u32,
    /// The run that showed the first, from 1; 0 if it was computed.
    pub first_run: u32,
    /// What was known.
    pub first: Did,
    /// The run that showed the second.
    pub second_run: u32,
    /// What happened instead.
    pub second: Did,
}

/// What a thread did, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Did {
    /// What it did, or was about to do.
    pub operation: Operation,
    /// What it was told, if that is the difference.
    pub told: Option<Told>,
    /// Where.
    pub place: Place,
}

/// Everything that is known of a program.
#[derive(Default)]
pub(crate) struct Facts {
    pub(crate) threads: Vec<ThreadInfo>,
    /// The threads in the order of their names, which is the default order of schedules.
    pub(crate) order: Vec<Tid>,
    thread_ids: HashMap<ThreadName, Tid>,
    joins: HashMap<Join, Tid>,
    pub(crate) nodes: Vec<Node>,
    edges: HashMap<(NodeId, Answer), NodeId>,
    /// What an opaque operation stored, by the history after it.
    stored: HashMap<NodeId, ValueId>,
    actions: Vec<(Operation, Place)>,
    action_ids: HashMap<(Operation, Place), ActionId>,
    pub(crate) acts: Vec<Act>,
    /// The kind of each slot's synchronisation object, by where it is.
    slots: HashMap<(Spot, SlotKind), u32>,
    /// The number of slots of a state.
    pub(crate) slot_count: u32,
    pub(crate) values: Values,
    pub(crate) memory: Memory,
    /// The splits of memory that [`Facts::acts`] knows.
    acts_splits: u32,
    /// The number of facts.
    pub(crate) known: u64,
    /// Places of loops that were taken for waiting and turned out to count.
    counting: crate::map::HashSet<ActionId>,
    /// Grows when histories that were one become two.
    pub(crate) uncollapsed: u32,
    /// Whether histories were taken for one.
    pub(crate) has_collapsed: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum SlotKind {
    Lock,
    Condition,
    Semaphore,
    BarrierNeeded,
    BarrierArrived,
    Once,
}

/// The slot of the thread that moved last, in searches that count detours.
pub(crate) const RUNNING: u32 = 0;
/// The slot of the state of the monitors.
pub(crate) const MONITORS: u32 = 1;

/// How many operations a loop that waits may have.
const LONGEST_LOOP: usize = 4;

impl Facts {
    pub(crate) fn new() -> Facts {
        let mut facts = Facts { slot_count: 2, ..Facts::default() };
        facts.thread(&ThreadName::default());
        facts.node(0, NONE, NOTHING);
        facts
    }

    fn slot(&mut self) -> u32 {
        self.slot_count += 1;
        self.slot_count - 1
    }

    /// The number of a thread.
    pub(crate) fn thread(&mut self, name: &ThreadName) -> Tid {
        if let Some(&tid) = self.thread_ids.get(name) {
            return tid;
        }
        let tid = self.threads.len() as Tid;
        let (node, wait) = (self.slot(), self.slot());
        self.threads.push(ThreadInfo { name: name.clone(), node, wait });
        self.thread_ids.insert(name.clone(), tid);
        self.joins.insert(name.join(), tid);
        let at = self.order.partition_point(|&other| self.threads[other as usize].name < *name);
        self.order.insert(at, tid);
        tid
    }

    fn node(&mut self, thread: Tid, parent: NodeId, told: Answer) -> NodeId {
        let id = self.nodes.len() as NodeId;
        let before = (parent != NONE).then(|| self.nodes[parent as usize]);
        let depth = match before {
            Some(before) if told != CHILD => before.depth + 1,
            _ => 0,
        };
        self.nodes.push(Node {
            thread,
            parent,
            told,
            action: NONE,
            next: NONE,
            run: 0,
            depth,
            repeats: NONE,
            rounds: 0,
        });
        if depth > 0
            && let Some((repeats, rounds)) = self.repeats(parent, told)
        {
            let node = &mut self.nodes[id as usize];
            (node.repeats, node.rounds) = (repeats, rounds);
        }
        id
    }

    /// The history after an answer, if it is known.
    pub(crate) fn edge(&self, node: NodeId, told: Answer) -> Option<NodeId> {
        if told == NOTHING {
            let next = self.nodes[node as usize].next;
            return (next != NONE).then_some(next);
        }
        self.edges.get(&(node, told)).copied()
    }

    /// The history after an answer, which is made if it is new. `thread` is another one only for [`CHILD`].
    pub(crate) fn make_edge(&mut self, node: NodeId, told: Answer, thread: Tid) -> NodeId {
        if let Some(next) = self.edge(node, told) {
            return next;
        }
        let next = self.node(thread, node, told);
        match told {
            NOTHING => self.nodes[node as usize].next = next,
            _ => {
                self.edges.insert((node, told), next);
            }
        }
        next
    }

    /// What comes next in a history, if that is known.
    pub(crate) fn act(&self, node: NodeId) -> Option<Act> {
        let action = self.nodes[node as usize].action;
        (action != NONE).then(|| self.acts[action as usize])
    }

    pub(crate) fn action(&self, node: NodeId) -> Option<(Operation, Place)> {
        let action = self.nodes[node as usize].action;
        (action != NONE).then(|| self.actions[action as usize])
    }

    pub(crate) fn place(&self, node: NodeId) -> Place {
        self.action(node).map_or(Place(0), |action| action.1)
    }

    pub(crate) fn stored(&self, after: NodeId) -> Option<ValueId> {
        self.stored.get(&after).copied()
    }

    pub(crate) fn set_stored(&mut self, after: NodeId, value: Value) {
        let value = self.values.of(value);
        self.stored.insert(after, value);
    }

    /// Learns what comes next in a history.
    ///
    /// # Errors
    /// If something else was known.
    pub(crate) fn learn(
        &mut self,
        node: NodeId,
        operation: Operation,
        place: Place,
        run: u32,
    ) -> Result<(), Box<Contradiction>> {
        let id = self.intern(operation, place);
        let known = self.nodes[node as usize];
        if known.action == id {
            return Ok(());
        }
        if known.action != NONE {
            let (before, at) = self.actions[known.action as usize];
            match (before, operation) {
                // What is stored is a fact of its own.
                (Operation::Store(cell, None), Operation::Store(other, Some(_)))
                    if cell == other && at == place => {}
                (Operation::Store(cell, Some(_)), Operation::Store(other, None))
                    if cell == other && at == place =>
                {
                    return Ok(());
                }
                _ => {
                    return Err(Box::new(Contradiction {
                        thread: self.threads[known.thread as usize].name.clone(),
                        after: known.depth,
                        first_run: known.run,
                        first: Did { operation: before, told: None, place: at },
                        second_run: run,
                        second: Did { operation, told: None, place },
                    }));
                }
            }
        } else {
            self.known += 1;
        }
        let node_of = &mut self.nodes[node as usize];
        (node_of.action, node_of.run) = (id, run);
        self.check_repetition(node);
        Ok(())
    }

    /// A loop that does something else at last was not waiting, it was counting.
    fn check_repetition(&mut self, node: NodeId) {
        let Node { repeats, action, .. } = self.nodes[node as usize];
        if repeats == NONE {
            return;
        }
        let other = self.nodes[repeats as usize].action;
        if other == NONE || other == action {
            return;
        }
        self.counting.insert(other);
        for at in &mut self.nodes {
            if at.repeats != NONE && at.action == other {
                (at.repeats, at.rounds) = (NONE, 0);
            }
        }
        let mut at = node;
        while at != NONE && self.nodes[at as usize].repeats != NONE {
            let before = self.nodes[at as usize].parent;
            let here = &mut self.nodes[at as usize];
            (here.repeats, here.rounds) = (NONE, 0);
            at = before;
        }
        self.uncollapsed += 1;
    }

    /// The history that the one after this answer would repeat, and how often.
    pub(crate) fn repeats(&self, node: NodeId, told: Answer) -> Option<(NodeId, u32)> {
        let mut last = [(NONE, NOTHING); 2 * LONGEST_LOOP];
        let mut nodes = [NONE; 2 * LONGEST_LOOP];
        let (mut at, mut answer, mut length) = (node, told, 0);
        while length < last.len() {
            let here = self.nodes[at as usize];
            if !self.is_idle(here.action, answer) || self.counting.contains(&here.action) {
                break;
            }
            (last[length], nodes[length]) = ((here.action, answer), at);
            length += 1;
            if here.depth == 0 {
                break;
            }
            (at, answer) = (here.parent, here.told);
        }
        for period in 1..=length / 2 {
            if last[..period] == last[period..2 * period] {
                let before = nodes[period - 1];
                return Some((before, self.nodes[before as usize].rounds + 1));
            }
        }
        None
    }

    /// Whether an operation with this answer leaves everything as it is, or as it was once the loop is through.
    fn is_idle(&self, action: ActionId, told: Answer) -> bool {
        if action == NONE {
            return false;
        }
        match self.actions[action as usize].0 {
            Operation::Load(_) | Operation::Wait { .. } | Operation::WaitEnd { .. } => true,
            Operation::Lock { .. } | Operation::Unlock { .. } => true,
            Operation::SemWait(_, Patience::Try | Patience::Timed) => told != GOT,
            Operation::SemValue(_) => true,
            Operation::Modify(_, Modify::CompareExchange { expected, .. }) => {
                told >= VALUES && self.values.value(told - VALUES) != Some(expected)
            }
            _ => false,
        }
    }

    /// The answer as a number.
    pub(crate) fn answer(&mut self, told: Told) -> Answer {
        match told {
            Told::Nothing => NOTHING,
            Told::Got => GOT,
            Told::Busy => BUSY,
            Told::Woken => WOKEN,
            Told::TimedOut => TIMED_OUT,
            Told::Refused => REFUSED,
            Told::Value(value) => told_value(self.values.of(value)),
        }
    }

    /// The answer that a number means; `None` for parts of addresses.
    pub(crate) fn told(&self, answer: Answer) -> Option<Told> {
        Some(match answer {
            NOTHING | CHILD => Told::Nothing,
            GOT => Told::Got,
            BUSY => Told::Busy,
            WOKEN => Told::Woken,
            TIMED_OUT => Told::TimedOut,
            REFUSED => Told::Refused,
            value => Told::Value(self.values.value(value - VALUES)?),
        })
    }

    /// The number of an operation at a place.
    pub(crate) fn intern(&mut self, operation: Operation, place: Place) -> ActionId {
        let id = match self.action_ids.entry((operation, place)) {
            Entry::Occupied(known) => return *known.get(),
            Entry::Vacant(new) => {
                let id = self.actions.len() as ActionId;
                new.insert(id);
                id
            }
        };
        self.actions.push((operation, place));
        let act = self.compile(operation);
        self.acts.push(act);
        if self.acts_splits != self.memory.splits {
            // Slots were split: the operations that use them must know.
            self.acts_splits = self.memory.splits;
            for i in 0..self.actions.len() {
                self.acts[i] = self.compile(self.actions[i].0);
            }
        }
        id
    }

    fn object(&mut self, spot: Spot, kind: SlotKind) -> u32 {
        if let Some(&slot) = self.slots.get(&(spot, kind)) {
            return slot;
        }
        let slot = self.slot();
        self.slots.insert((spot, kind), slot);
        slot
    }

    fn parts(&mut self, cell: Cell) -> Parts {
        let count = &mut self.slot_count;
        let mut next = || {
            *count += 1;
            *count - 1
        };
        self.memory.access(cell, &mut self.values, &mut next)
    }

    fn compile(&mut self, operation: Operation) -> Act {
        use SlotKind::{BarrierArrived, BarrierNeeded, Condition, Lock, Once, Semaphore};
        match operation {
            Operation::Load(cell) => Act::Load(self.parts(cell)),
            Operation::Store(cell, value) => {
                let value = value.map_or(0, |value| self.values.of(value));
                Act::Store(self.parts(cell), value)
            }
            Operation::Modify(cell, modify) => Act::Modify(self.parts(cell), modify),
            Operation::Lock { lock, kind, shared, patience } => {
                Act::Lock { lock: self.object(lock, Lock), kind, shared, patience }
            }
            Operation::Unlock { lock, kind } => Act::Unlock { lock: self.object(lock, Lock), kind },
            Operation::Wait { condition, lock, .. } => {
                let condition = self.object(condition, Condition);
                Act::Wait { condition, lock: self.object(lock, Lock) }
            }
            Operation::WaitEnd { condition, lock, timed } => {
                let condition = self.object(condition, Condition);
                Act::WaitEnd { condition, lock: self.object(lock, Lock), timed }
            }
            Operation::Signal(condition) => Act::Signal(self.object(condition, Condition)),
            Operation::Broadcast(condition) => Act::Broadcast(self.object(condition, Condition)),
            Operation::SemInit(at, count) => Act::SemInit(self.object(at, Semaphore), count),
            Operation::SemPost(at) => Act::SemPost(self.object(at, Semaphore)),
            Operation::SemWait(at, patience) => Act::SemWait(self.object(at, Semaphore), patience),
            Operation::SemValue(at) => Act::SemValue(self.object(at, Semaphore)),
            Operation::BarrierInit(at, count) => {
                let needed = self.object(at, BarrierNeeded);
                Act::BarrierInit { needed, arrived: self.object(at, BarrierArrived), count }
            }
            Operation::Arrive(at) => {
                let needed = self.object(at, BarrierNeeded);
                Act::Arrive { needed, arrived: self.object(at, BarrierArrived) }
            }
            Operation::Pass(at) => Act::Pass { arrived: self.object(at, BarrierArrived) },
            Operation::OnceBegin(at) => Act::OnceBegin(self.object(at, Once)),
            Operation::OnceEnd(at) => Act::OnceEnd(self.object(at, Once)),
            Operation::Fork(_) => Act::Fork,
            Operation::Join { thread } => match self.joins.get(&thread) {
                Some(&thread) => Act::Join(thread),
                None => Act::Unknown,
            },
            Operation::End(value) => Act::End(self.values.of(value)),
            Operation::Exit(0) => Act::Stop,
            Operation::Exit(_) | Operation::Fail(_) => Act::Fail,
            Operation::Mark(_) => Act::Mark,
            Operation::Unknown => Act::Unknown,
        }
    }

    /// The thread that this one starts, by its number among its children.
    pub(crate) fn child(&mut self, parent: Tid, number: u32) -> Tid {
        let name = self.threads[parent as usize].name.child(number);
        self.thread(&name)
    }
}
