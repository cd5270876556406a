//! The bindings of a pattern's parameters, each with searches of its own.
//!
//! What an event binds is a *part* of bindings. A binding of all parameters is made when the event
//! has happened that every match needs and that binds most (an iterator with its collection), joined
//! with other parts where that is not all. Its state then is that of the greatest part so far, if
//! one part has seen all that concerns it; otherwise the events of its parts are played again.
//! Clocks are those of the whole trace, computed once.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use foresee_causality::{LaneClocks, LaneVector};
use foresee_spec::letter::Letter;
use foresee_spec::params::{Binding, ParamPlan};

use super::event::{Held, Now};
use super::pareto::Fresh;
use super::plan::{Meaning, Sequence};
use super::tracker::{Found, Tracker};

type Map<K, V> = HashMap<K, V, RandomState>;

/// How many bindings may be kept.
const MAX_BINDINGS: usize = 2_000_000;
/// How many events of parts may be kept for bindings to come.
const MAX_HISTORY: usize = 200_000;

#[derive(Debug)]
pub(super) struct Instances {
    list: Vec<Instance>,
    by_binding: Map<Binding, u32>,
    /// For each part the bindings that have it, itself included.
    members: Map<Binding, Vec<u32>>,
    joins: Joins,
    /// The sets of parameters that atoms bind, the empty one included.
    domains: Vec<u8>,
    total: u8,
    /// The atom whose events make bindings; 64 if there is none.
    seed: u32,
    /// Whether a binding may have events of two parts neither of which has the other's.
    needs_history: bool,
    kept_events: usize,
    /// Bindings whose earlier events were not all kept.
    pub(super) incomplete: u64,
    pub(super) is_full: bool,
    meanings: Map<u64, Meaning>,
    // Kept from event to event, so that events allocate nothing.
    touched: Vec<u32>,
    made: Vec<Binding>,
}

#[derive(Debug)]
struct Instance {
    binding: Binding,
    tracker: Tracker,
    /// The events that have made exactly this part: index, atoms, number in [`Held`].
    history: Vec<(u64, u64, u32)>,
    /// Some of them were not kept.
    is_cut: bool,
    /// One more than the index of the last event that was a step of it.
    seen: u64,
    /// The observed run has the pattern for it.
    is_over: bool,
}

/// What an event is to a pattern with parameters.
pub(super) struct Bound<'e> {
    /// The atoms that bind nothing.
    pub(super) common: u64,
    /// What the others bind.
    pub(super) parts: &'e [(Binding, u64)],
}

impl Instances {
    pub(super) fn new(params: &ParamPlan, atoms: usize, sequences: &[Sequence]) -> Instances {
        let bits = params.binding_bits();
        let mut domains = vec![0u8];
        for bit in (0..atoms).filter(|bit| bits >> bit & 1 == 1) {
            let domain = params.domain_of(bit);
            if !domains.contains(&domain) {
                domains.push(domain);
            }
        }
        let total = domains.iter().fold(0, |all, d| all | d);
        let incomparable = |a: u8, b: u8| a & b != a && a & b != b;
        let needs_history =
            domains.iter().any(|&a| domains.iter().any(|&b| incomparable(a, b) && (a != total)));
        let needed = |bit: &usize| {
            sequences.iter().all(|s| s.positions.iter().any(|p| p.all_of.contains(&(1 << bit))))
        };
        let seed = (0..atoms)
            .rev()
            .filter(|bit| bits >> bit & 1 == 1)
            .filter(needed)
            .max_by_key(|&bit| params.domain_of(bit).count_ones());
        let mut instances = Instances {
            list: Vec::new(),
            by_binding: Map::default(),
            members: Map::default(),
            joins: Joins::default(),
            domains,
            total,
            seed: seed.map_or(64, |bit| bit as u32),
            needs_history,
            kept_events: 0,
            incomplete: 0,
            is_full: false,
            meanings: Map::default(),
            touched: Vec::new(),
            made: Vec::new(),
        };
        if seed.is_none() {
            instances.joins.keep(Binding::default(), &mut Vec::new());
        }
        instances.insert(Binding::default(), Tracker::new(sequences));
        instances
    }

    /// How many bindings of all parameters there are.
    pub(super) fn bindings(&self) -> u64 {
        let total = |i: &&Instance| i.binding.domain() == self.total;
        self.list.iter().filter(total).count() as u64
    }

    /// The bindings for which a match was found that the observed run does not have.
    pub(super) fn found(&self) -> impl Iterator<Item = (&Binding, &Found)> {
        self.list.iter().filter_map(|i| Some((&i.binding, i.tracker.found.as_ref()?)))
    }

    /// Takes the next event. Calls `observed` for each binding for which the observed run has the
    /// pattern now.
    pub(super) fn step<V: LaneVector>(
        &mut self,
        sequences: &[Sequence],
        bound: &Bound<'_>,
        now: &Now<'_, V>,
        held: &mut Held<V>,
        fresh: &mut Fresh,
        mut observed: impl FnMut(&Binding, Vec<u64>),
    ) {
        if self.is_full {
            return;
        }
        self.make(sequences, bound, now.clocks, held, fresh);
        self.touched.clear();
        if bound.common != 0 {
            self.touched.extend(0..self.list.len() as u32);
        }
        for (part, _) in bound.parts {
            if let Some(members) = self.members.get_mut(part) {
                members.retain(|&i| !self.list[i as usize].is_over);
                self.touched.extend_from_slice(members);
            }
        }
        for &i in &self.touched {
            let instance = &mut self.list[i as usize];
            if instance.is_over || instance.seen == now.index + 1 {
                continue;
            }
            instance.seen = now.index + 1;
            let letter = letter_of(&instance.binding, bound);
            let meaning = self
                .meanings
                .entry(letter)
                .or_insert_with(|| Meaning::of(Letter(letter), sequences));
            if let Some(tuple) = instance.tracker.step(sequences, meaning, now, held, fresh) {
                instance.is_over = true;
                observed(&instance.binding, tuple);
            }
        }
        if self.needs_history {
            self.remember(bound, now, held, fresh);
        }
    }

    /// Makes the bindings that there are with this event, in the state they had before it.
    fn make<V: LaneVector>(
        &mut self,
        sequences: &[Sequence],
        bound: &Bound<'_>,
        clocks: &LaneClocks<V>,
        held: &mut Held<V>,
        fresh: &mut Fresh,
    ) {
        let mut made = std::mem::take(&mut self.made);
        made.clear();
        for (part, bits) in bound.parts {
            self.joins.add_part(*part, &mut made);
            if self.seed < 64 && bits >> self.seed & 1 == 1 {
                self.joins.keep(*part, &mut made);
            }
        }
        made.retain(|binding| binding.domain() == self.total);
        // Parts are followed, too: bindings that come later begin where they are.
        made.extend(bound.parts.iter().map(|(part, _)| *part));
        for binding in &made {
            if self.by_binding.contains_key(binding) {
                continue;
            }
            if self.list.len() >= MAX_BINDINGS || self.joins.is_full {
                self.is_full = true;
                break;
            }
            let tracker = self.state_of(binding, sequences, clocks, held, fresh);
            self.insert(*binding, tracker);
        }
        self.made = made;
    }

    /// The state of a binding that is new, from the parts that it has.
    fn state_of<V: LaneVector>(
        &mut self,
        binding: &Binding,
        sequences: &[Sequence],
        clocks: &LaneClocks<V>,
        held: &mut Held<V>,
        fresh: &mut Fresh,
    ) -> Tracker {
        let domain = binding.domain();
        let parts = self.domains.iter().filter(|&&d| d & domain == d && d != domain);
        let parts: Vec<u32> =
            parts.filter_map(|&d| self.by_binding.get(&binding.restrict(d)).copied()).collect();
        let domain_of = |i: u32| self.list[i as usize].binding.domain();
        let all = parts.iter().fold(0, |all, &i| all | domain_of(i));
        if let Some(&greatest) = parts.iter().find(|&&i| domain_of(i) == all) {
            return self.list[greatest as usize].tracker.copy(held);
        }
        let mut events: Vec<(u64, u64, u32)> = Vec::new();
        for &i in &parts {
            events.extend_from_slice(&self.list[i as usize].history);
        }
        if parts.iter().any(|&i| self.list[i as usize].is_cut) {
            self.incomplete += 1;
        }
        events.sort_unstable();
        let mut tracker = Tracker::new(sequences);
        for same in events.chunk_by(|a, b| a.0 == b.0) {
            let letter = same.iter().fold(0, |bits, event| bits | event.1);
            let event = *held.get(same[0].2);
            let (vector, index, thread_lane) = (event.vector, event.mark.index, event.mark.lane);
            let then = Now { clocks, vector, index, thread_lane };
            let meaning = self
                .meanings
                .entry(letter)
                .or_insert_with(|| Meaning::of(Letter(letter), sequences));
            let mut again = Fresh::default();
            again.begin();
            // A binding without its own event cannot have the whole pattern.
            tracker.step(sequences, meaning, &then, held, &mut again);
            again.end(held);
            fresh.dropped += again.dropped;
        }
        tracker
    }

    fn insert(&mut self, binding: Binding, tracker: Tracker) {
        let i = self.list.len() as u32;
        let domain = binding.domain();
        for &d in self.domains.iter().filter(|&&d| d != 0 && d & domain == d) {
            self.members.entry(binding.restrict(d)).or_default().push(i);
        }
        self.by_binding.insert(binding, i);
        let (history, is_cut) = (Vec::new(), false);
        self.list.push(Instance { binding, tracker, history, is_cut, seen: 0, is_over: false });
    }

    /// Keeps the event for bindings that are made later.
    fn remember<V: LaneVector>(
        &mut self,
        bound: &Bound<'_>,
        now: &Now<'_, V>,
        held: &mut Held<V>,
        fresh: &mut Fresh,
    ) {
        let common = (Binding::default(), bound.common);
        let common = (bound.common != 0).then_some(&common).into_iter();
        for (part, bits) in common.chain(bound.parts) {
            if part.domain() == self.total {
                continue;
            }
            let Some(&i) = self.by_binding.get(part) else { continue };
            let instance = &mut self.list[i as usize];
            if self.kept_events >= MAX_HISTORY {
                instance.is_cut = true;
                continue;
            }
            let id = fresh.id(now, held);
            held.add_user(id);
            instance.history.push((now.index, *bits, id));
            self.kept_events += 1;
        }
    }
}

/// The atoms that an event matches for a binding.
fn letter_of(binding: &Binding, bound: &Bound<'_>) -> u64 {
    let parts = bound.parts.iter().filter(|(part, _)| binding.extends(part));
    parts.fold(bound.common, |letter, (_, bits)| letter | bits)
}

/// Bindings that grow from those that are needed, by joining them with parts that agree.
#[derive(Debug, Default)]
struct Joins {
    kept: Index,
    parts: Index,
    is_full: bool,
}

/// Bindings that are found by what they have in common with another.
#[derive(Debug, Default)]
struct Index {
    known: std::collections::HashSet<Binding, RandomState>,
    by_domain: Map<u8, Vec<Binding>>,
    /// For a set of parameters and some of them, the bindings by these.
    by_shared: Map<(u8, u8), Map<Binding, Vec<Binding>>>,
}

impl Index {
    fn add(&mut self, binding: Binding) -> bool {
        if !self.known.insert(binding) {
            return false;
        }
        let domain = binding.domain();
        self.by_domain.entry(domain).or_default().push(binding);
        for ((of, shared), index) in &mut self.by_shared {
            if *of == domain {
                index.entry(binding.restrict(*shared)).or_default().push(binding);
            }
        }
        true
    }

    /// The joins of a binding with all that agree with it.
    fn join(&mut self, with: &Binding, out: &mut Vec<Binding>) {
        let Index { by_domain, by_shared, .. } = self;
        for (&domain, bindings) in by_domain.iter() {
            let shared = domain & with.domain();
            let index = by_shared.entry((domain, shared)).or_insert_with(|| {
                let mut index: Map<Binding, Vec<Binding>> = Map::default();
                for binding in bindings {
                    index.entry(binding.restrict(shared)).or_default().push(*binding);
                }
                index
            });
            let agreeing = index.get(&with.restrict(shared)).into_iter().flatten();
            out.extend(agreeing.filter_map(|binding| binding.join(with)));
        }
    }
}

impl Joins {
    /// A part that an event has made; bindings that are new with it go to `made`.
    fn add_part(&mut self, part: Binding, made: &mut Vec<Binding>) {
        if self.is_full || !self.parts.add(part) {
            return;
        }
        let mut joined = Vec::new();
        self.kept.join(&part, &mut joined);
        for binding in joined {
            self.keep(binding, made);
        }
    }

    /// A binding that may have the pattern, and all that follow from it.
    fn keep(&mut self, binding: Binding, made: &mut Vec<Binding>) {
        let mut todo = vec![binding];
        while let Some(binding) = todo.pop() {
            if !self.kept.add(binding) {
                continue;
            }
            made.push(binding);
            self.parts.join(&binding, &mut todo);
            self.is_full = self.kept.known.len() > MAX_BINDINGS;
            if self.is_full {
                break;
            }
        }
    }
}
