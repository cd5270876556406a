//! The bindings of one run and their monitor states.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::{Binding, ParamPlan};
use crate::letter::Letter;
use crate::monitor::{Monitor, StateId, TooManyStates, Verdict};
use crate::run::Trail;

/// There are more bindings than can be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the property's parameters have more than {0} bindings in this trace")]
pub struct TooManyBindings(pub usize);

/// Why a slicer stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SlicerError {
    /// The automaton grew too large.
    #[error(transparent)]
    States(#[from] TooManyStates),
    /// There are too many bindings.
    #[error(transparent)]
    Bindings(#[from] TooManyBindings),
}

type Map<K, V> = HashMap<K, V, RandomState>;

struct Instance {
    binding: Binding,
    state: StateId,
    trail: Trail,
    /// The last event that was a step of it.
    seen: u64,
    /// It has been violated or can no longer be. It stays in the table of bindings, so that it is
    /// not created again, but events ignore it.
    settled: bool,
}

/// The bindings of one run.
pub struct Slicer {
    instances: Vec<Instance>,
    by_binding: Map<Binding, u32>,
    /// For a set of parameters and a subset: the bindings of exactly that set, by their restriction
    /// to the subset.
    by_part: Map<(u8, u8), Map<Binding, Vec<u32>>>,
    /// Sets of parameters that bindings can have.
    domains: Vec<u8>,
    total: u8,
    binding_bits: u64,
    only_changes_matter: bool,
    limit: usize,
    // Reused between events, so that events do not allocate.
    joins: Vec<Binding>,
    touched: Vec<u32>,
    made: Vec<(Binding, u32)>,
}

impl std::fmt::Debug for Slicer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Slicer").field("bindings", &self.instances.len()).finish_non_exhaustive()
    }
}

impl Slicer {
    /// The default limit on bindings; one takes about half a kilobyte.
    pub const DEFAULT_LIMIT: usize = 1_000_000;

    /// A slicer without bindings; `start` is the state before the first event.
    pub fn new(plan: &ParamPlan, start: StateId, limit: usize) -> Slicer {
        let mut slicer = Slicer::without_bindings(plan, limit);
        slicer.insert(Binding::default(), start, Trail::default(), false);
        slicer
    }

    /// A slicer that continues a run from what [`Slicer::states`] returned then.
    pub fn resumed(
        plan: &ParamPlan,
        monitor: &Monitor,
        states: &[(Binding, StateId)],
        limit: usize,
    ) -> Slicer {
        let mut slicer = Slicer::without_bindings(plan, limit);
        for &(binding, state) in states {
            let is_settled = slicer.is_settled(&binding, state, monitor);
            slicer.insert(binding, state, Trail::default(), is_settled);
        }
        slicer
    }

    /// All bindings and their states, in an order that does not depend on that of the events. If two runs have the same ones,
    /// what follows means the same to both.
    pub fn states(&self) -> Box<[(Binding, StateId)]> {
        let all = self.instances.iter().map(|instance| (instance.binding, instance.state));
        let mut all: Box<[(Binding, StateId)]> = all.collect();
        all.sort_unstable_by_key(|(binding, _)| binding.rank());
        all
    }

    fn without_bindings(plan: &ParamPlan, limit: usize) -> Slicer {
        Slicer {
            instances: Vec::new(),
            by_binding: Map::default(),
            by_part: Map::default(),
            domains: plan.domains(),
            total: plan.total(),
            binding_bits: plan.binding_bits(),
            only_changes_matter: plan.only_changes_matter(),
            limit,
            joins: Vec::new(),
            touched: Vec::new(),
            made: Vec::new(),
        }
    }

    /// Whether a binding of all parameters is violated, or can no longer be.
    fn is_settled(&self, binding: &Binding, state: StateId, monitor: &Monitor) -> bool {
        binding.domain() == self.total && monitor.verdict(state) != Verdict::Open
    }

    /// The number of bindings, including the empty one.
    pub fn len(&self) -> usize {
        self.instances.len()
    }

    /// Whether there is only the empty binding.
    pub fn is_empty(&self) -> bool {
        self.instances.len() == 1
    }

    /// Takes a step. `letter` has the atoms that hold for every binding and all atoms that bind
    /// parameters; `found` are the bindings that these create; `always` means that the step
    /// concerns every binding. Calls `violated` for each binding that becomes violated.
    pub fn step(
        &mut self,
        monitor: &mut Monitor,
        event: u64,
        letter: Letter,
        found: &[(Binding, u64)],
        always: bool,
        mut violated: impl FnMut(&Binding, &Trail),
    ) -> Result<(), SlicerError> {
        let base = letter.0 & !self.binding_bits;
        let letter_of = |binding: &Binding| {
            let bits = found.iter().filter(|(b, _)| binding.extends(b)).fold(0, |m, (_, b)| m | b);
            Letter(base | bits)
        };
        self.join_all(found, always);
        self.find_touched_and_made();

        // New bindings start from their greatest part, in its state before this event.
        self.made.sort_unstable_by_key(|(made, from)| {
            let from = self.instances[*from as usize].binding.domain();
            (made.domain().count_ones(), u32::MAX - from.count_ones())
        });
        let mut done: Map<Binding, bool> = Map::default();
        let mut created: Vec<(Binding, StateId, Trail)> = Vec::new();
        for &(binding, from) in &self.made {
            if done.contains_key(&binding) {
                continue;
            }
            let source = &self.instances[from as usize];
            let next = monitor.step(source.state, letter_of(&binding))?;
            let same = next == source.state;
            // A part that is created now would become the greatest part of this one.
            let part_made = |&domain: &u8| done.get(&binding.restrict(domain)) == Some(&true);
            let skip = same && self.only_changes_matter && !self.domains.iter().any(part_made);
            done.insert(binding, !skip);
            if !skip {
                let mut trail = source.trail;
                if !same {
                    trail.push(event);
                }
                created.push((binding, next, trail));
            }
        }

        for i in 0..self.touched.len() {
            let at = self.touched[i] as usize;
            let instance = &mut self.instances[at];
            if instance.seen == event + 1 || instance.settled {
                continue;
            }
            instance.seen = event + 1;
            let next = monitor.step(instance.state, letter_of(&instance.binding))?;
            if next != instance.state {
                instance.state = next;
                instance.trail.push(event);
                self.settle(at, monitor, &mut violated);
            }
        }
        for (binding, state, trail) in created {
            if self.instances.len() >= self.limit {
                return Err(TooManyBindings(self.limit).into());
            }
            let is_settled = self.is_settled(&binding, state, monitor);
            let at = self.insert(binding, state, trail, is_settled);
            self.instances[at].seen = event + 1;
            self.settle(at, monitor, &mut violated);
        }
        Ok(())
    }

    /// Reports a full binding that is violated, and retires those that can no longer change.
    fn settle(
        &mut self,
        at: usize,
        monitor: &Monitor,
        violated: &mut impl FnMut(&Binding, &Trail),
    ) {
        let total = self.total;
        let instance = &mut self.instances[at];
        if instance.binding.domain() != total {
            return;
        }
        instance.settled = monitor.verdict(instance.state) != Verdict::Open;
        if monitor.bad(instance.state) {
            violated(&instance.binding, &instance.trail);
        }
    }

    /// All joins of the event's bindings. With `always`, the empty one concerns all bindings.
    fn join_all(&mut self, found: &[(Binding, u64)], always: bool) {
        self.joins.clear();
        if always {
            self.joins.push(Binding::default());
        }
        for (binding, _) in found {
            for i in 0..self.joins.len() {
                if let Some(joined) = self.joins[i].join(binding)
                    && !self.joins.contains(&joined)
                {
                    self.joins.push(joined);
                }
            }
            if !self.joins.contains(binding) {
                self.joins.push(*binding);
            }
        }
    }

    /// Fills `touched` with the stored bindings that the event concerns and `made` with those that
    /// it creates, each with a stored part.
    fn find_touched_and_made(&mut self) {
        self.touched.clear();
        self.made.clear();
        for i in 0..self.joins.len() {
            let concerned = self.joins[i];
            let bound = concerned.domain();
            for &domain in &self.domains {
                let shared = domain & bound;
                let Some(list) = self
                    .by_part
                    .get_mut(&(domain, shared))
                    .and_then(|map| map.get_mut(&concerned.restrict(shared)))
                else {
                    continue;
                };
                list.retain(|&i| !self.instances[i as usize].settled);
                if shared == bound {
                    self.touched.extend_from_slice(list);
                    continue;
                }
                for &from in list.iter() {
                    let joined = self.instances[from as usize].binding.join(&concerned);
                    if let Some(joined) = joined
                        && !self.by_binding.contains_key(&joined)
                    {
                        self.made.push((joined, from));
                    }
                }
            }
        }
    }

    fn insert(&mut self, binding: Binding, state: StateId, trail: Trail, settled: bool) -> usize {
        let at = self.instances.len();
        let domain = binding.domain();
        if !settled {
            let mut parts: Vec<u8> = self.domains.iter().map(|d| d & domain).collect();
            parts.sort_unstable();
            parts.dedup();
            for part in parts {
                let lists = self.by_part.entry((domain, part)).or_default();
                lists.entry(binding.restrict(part)).or_default().push(at as u32);
            }
        }
        self.by_binding.insert(binding, at as u32);
        self.instances.push(Instance { binding, state, trail, seen: 0, settled });
        at
    }
}
