//! The bindings of a pattern's parameters, each with searches of its own.
//!
//! What an event binds is a *part* of bindings. A binding of all parameters is made when the event
//! has happened that every match needs and that binds most (an iterator with its collection), joined
//! with other parts where that is not all. Its state then is that of the greatest part so far, if
//! one part has seen all that concerns it; otherwise the events of its parts are played again.
//! Clocks are those of the whole trace, computed once.

use foresee_causality::{LaneClocks, LaneVector};
use foresee_spec::letter::Letter;
use foresee_spec::params::{Binding, ParamPlan};
use foresee_trace::entry;

use super::event::{Held, Now};
use super::joins::{Bindings, Joins, Map};
use super::pareto::Fresh;
use super::plan::{Meaning, Sequence};
use super::tracker::{Found, Tracker};

/// How many bindings may be kept, parts included.
const MAX_BINDINGS: usize = 4_000_000;
/// How many events of parts may be kept for bindings to come.
const MAX_HISTORY: usize = 200_000;
/// No instance.
const NONE: u32 = u32::MAX;

#[derive(Debug)]
pub(super) struct Instances {
    list: Vec<Instance>,
    numbers: Bindings,
    /// For each binding by its number who has it.
    users: Vec<Users>,
    /// `None` if one event binds all parameters: nothing is left to join.
    joins: Option<Joins>,
    /// The sets of parameters that atoms bind, the empty one included.
    domains: Vec<u8>,
    total: u8,
    /// The atom whose events make bindings; 64 if there is none.
    seed: u32,
    /// Whether a binding may have events of two parts neither of which has the other's.
    needs_history: bool,
    /// For instances of parts, the events that have made exactly this part: index, atoms, number in
    /// [`Held`].
    history: Map<u32, Vec<(u64, u64, u32)>>,
    kept_events: usize,
    /// Bindings whose earlier events were not all kept.
    pub(super) incomplete: u64,
    pub(super) is_full: bool,
    meanings: Map<u64, Meaning>,
    // Kept from event to event, so that events allocate nothing.
    touched: Vec<u32>,
    made: Vec<u32>,
}

/// The instance of a binding, and those of the bindings that have more.
#[derive(Debug)]
struct Users {
    itself: u32,
    greater: Vec<u32>,
}

impl Default for Users {
    fn default() -> Users {
        Users { itself: NONE, greater: Vec::new() }
    }
}

#[derive(Debug)]
struct Instance {
    /// The number of its binding.
    binding: u32,
    tracker: Tracker,
    /// Some events that have made exactly this part were not kept.
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
            numbers: Bindings::default(),
            users: Vec::new(),
            joins: match seed {
                Some(bit) if params.domain_of(bit) == total => None,
                _ => Some(Joins::new(MAX_BINDINGS)),
            },
            domains,
            total,
            seed: seed.map_or(64, |bit| bit as u32),
            needs_history,
            history: Map::default(),
            kept_events: 0,
            incomplete: 0,
            is_full: false,
            meanings: Map::default(),
            touched: Vec::new(),
            made: Vec::new(),
        };
        let nothing = instances.numbers.number(&Binding::default());
        if let (None, Some(joins)) = (seed, &mut instances.joins) {
            joins.keep(nothing, &mut instances.numbers, &mut Vec::new());
        }
        instances.insert(nothing, Tracker::new(sequences));
        instances
    }

    /// How many bindings of all parameters there are.
    pub(super) fn bindings(&self) -> u64 {
        let total = |i: &&Instance| self.numbers.get(i.binding).domain() == self.total;
        self.list.iter().filter(total).count() as u64
    }

    /// The bindings for which a match was found that the observed run does not have.
    pub(super) fn found(&self) -> impl Iterator<Item = (&Binding, &Found)> {
        self.list.iter().filter_map(|i| {
            let found = i.tracker.found.as_ref()?;
            Some((self.numbers.get(i.binding), found))
        })
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
            let Some(number) = self.numbers.lookup(part) else { continue };
            let Some(users) = self.users.get_mut(number as usize) else { continue };
            users.greater.retain(|&i| !self.list[i as usize].is_over);
            self.touched.extend(Some(users.itself).filter(|&i| i != NONE));
            self.touched.extend_from_slice(&users.greater);
        }
        for &i in &self.touched {
            let instance = &mut self.list[i as usize];
            if instance.is_over || instance.seen == now.index + 1 {
                continue;
            }
            instance.seen = now.index + 1;
            let binding = self.numbers.get(instance.binding);
            let letter = letter_of(binding, bound);
            let meaning = self
                .meanings
                .entry(letter)
                .or_insert_with(|| Meaning::of(Letter(letter), sequences));
            if let Some(tuple) = instance.tracker.step(sequences, meaning, now, held, fresh) {
                instance.is_over = true;
                observed(binding, tuple);
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
            let part = self.numbers.number(part);
            let is_seed = self.seed < 64 && bits >> self.seed & 1 == 1;
            if let Some(joins) = &mut self.joins {
                joins.add_part(part, &mut self.numbers, &mut made);
                if is_seed {
                    joins.keep(part, &mut self.numbers, &mut made);
                }
            }
        }
        made.retain(|&binding| self.numbers.get(binding).domain() == self.total);
        // Parts are followed, too: bindings that come later begin where they are.
        for (part, _) in bound.parts {
            made.push(self.numbers.number(part));
        }
        for &number in &made {
            if self.instance_of(number).is_some() {
                continue;
            }
            if self.list.len() >= MAX_BINDINGS || self.joins.as_ref().is_some_and(|j| j.is_full) {
                self.is_full = true;
                break;
            }
            let binding = *self.numbers.get(number);
            let tracker = self.state_of(&binding, sequences, clocks, held, fresh);
            self.insert(number, tracker);
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
        let parts: Vec<u32> = parts
            .filter_map(|&d| self.instance_of(self.numbers.lookup(&binding.restrict(d))?))
            .collect();
        let domain_of = |i: u32| self.numbers.get(self.list[i as usize].binding).domain();
        let all = parts.iter().fold(0, |all, &i| all | domain_of(i));
        if let Some(&greatest) = parts.iter().find(|&&i| domain_of(i) == all) {
            return self.list[greatest as usize].tracker.copy(held);
        }
        let mut events: Vec<(u64, u64, u32)> = Vec::new();
        for history in parts.iter().filter_map(|i| self.history.get(i)) {
            events.extend_from_slice(history);
        }
        let is_cut = parts.iter().any(|&i| self.list[i as usize].is_cut);
        self.incomplete += u64::from(is_cut);
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

    fn instance_of(&self, binding: u32) -> Option<u32> {
        let users = self.users.get(binding as usize)?;
        (users.itself != NONE).then_some(users.itself)
    }

    fn insert(&mut self, binding: u32, tracker: Tracker) {
        let i = self.list.len() as u32;
        entry(&mut self.users, binding as usize).itself = i;
        let bound = *self.numbers.get(binding);
        let domain = bound.domain();
        for &d in self.domains.iter().filter(|&&d| d != 0 && d != domain && d & domain == d) {
            let part = self.numbers.number(&bound.restrict(d));
            entry(&mut self.users, part as usize).greater.push(i);
        }
        self.list.push(Instance { binding, tracker, is_cut: false, seen: 0, is_over: false });
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
            let Some(number) = self.numbers.lookup(part) else { continue };
            let Some(i) = self.instance_of(number) else { continue };
            if self.kept_events >= MAX_HISTORY {
                self.list[i as usize].is_cut = true;
                continue;
            }
            let id = fresh.id(now, held);
            held.add_user(id);
            self.history.entry(i).or_default().push((now.index, *bits, id));
            self.kept_events += 1;
        }
    }
}

/// The atoms that an event matches for a binding.
fn letter_of(binding: &Binding, bound: &Bound<'_>) -> u64 {
    let parts = bound.parts.iter().filter(|(part, _)| binding.extends(part));
    parts.fold(bound.common, |letter, (_, bits)| letter | bits)
}
