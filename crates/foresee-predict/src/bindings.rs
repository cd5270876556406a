//! The bindings of a property's parameters, and the steps that concern each.
//!
//! A binding is any join of what single events bind, if they agree. Both the joins and the steps of
//! a binding are found through hash tables by the parameters that two sides have in common, so
//! neither all bindings nor all steps are gone through for each.

use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;
use foresee_spec::monitor::TooManyStates;
use foresee_spec::observe::Step;
use foresee_spec::params::{Binding, ParamPlan};
use foresee_trace::{Event, Pool};

type Map<K, V> = HashMap<K, V, RandomState>;

/// How many bindings of one property are searched.
const MAX_BINDINGS: usize = 200_000;
/// How many bytes each takes while they are joined, with the tables that they are found in.
const BYTES_PER_BINDING: usize = 10 * size_of::<Binding>();

/// The steps of a property with parameters; of each, `T` is what the caller wants to know.
#[derive(Debug)]
pub(crate) struct BoundSteps<T> {
    items: Vec<T>,
    /// For each binding that an event makes, the events that make it and the atoms they match.
    by_part: Map<Binding, Vec<(u32, u64)>>,
    /// The sets of parameters that events bind.
    domains: Vec<u8>,
    /// Events that concern every binding: they write a variable, or match an atom that binds none.
    common: Vec<(u32, u64)>,
    /// What the latest step binds: memory that is used again and again.
    parts: Vec<(Binding, u64)>,
}

impl<T> Default for BoundSteps<T> {
    fn default() -> Self {
        BoundSteps {
            items: Vec::new(),
            by_part: Map::default(),
            domains: Vec::new(),
            common: Vec::new(),
            parts: Vec::new(),
        }
    }
}

impl<T: Copy> BoundSteps<T> {
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// About how many bytes the steps take, with the tables in which they are found.
    pub(crate) fn bytes(&self) -> usize {
        self.items.len() * (size_of::<T>() + size_of::<(u32, u64)>())
            + self.by_part.capacity() * size_of::<(Binding, Vec<(u32, u64)>)>()
    }

    /// All steps, in the order in which they came.
    pub(crate) fn items(&self) -> &[T] {
        &self.items
    }

    /// Adds a step that an event is.
    pub(crate) fn push(
        &mut self,
        item: T,
        step: Step,
        event: &Event,
        pool: &Pool,
        params: &ParamPlan,
    ) {
        let i = self.items.len() as u32;
        params.bindings(step.events, event, pool, &mut self.parts);
        for (part, bits) in &self.parts {
            if !self.domains.contains(&part.domain()) {
                self.domains.push(part.domain());
            }
            self.by_part.entry(*part).or_default().push((i, *bits));
        }
        let always = step.events & !params.binding_bits();
        if step.write.is_some() || always != 0 {
            self.common.push((i, always));
        }
        self.items.push(item);
    }

    /// All bindings of all parameters that some run may violate, if they can be found in this many bytes.
    pub(crate) fn total(
        &self,
        plan: &ParamPlan,
        memory: usize,
    ) -> Result<Vec<Binding>, TooManyStates> {
        let mut joins = Joins::new(memory);
        // Without an atom that every violation needs there is none, so bindings grow from what the
        // one that binds most has bound. An iterator then goes with its own collection only.
        let needed = (0..64).filter(|bit| plan.needed_bits() >> bit & 1 == 1);
        match needed.max_by_key(|&bit| plan.domain_of(bit).count_ones()) {
            None => joins.add(Binding::default())?,
            Some(bit) => {
                let made = |steps: &[(u32, u64)]| steps.iter().any(|s| s.1 >> bit & 1 == 1);
                let mut seeds = self.by_part.iter().filter(|(_, steps)| made(steps));
                seeds.try_for_each(|(part, _)| joins.add(*part))?;
            }
        }
        for part in self.by_part.keys() {
            joins.join(part)?;
        }
        let total = |b: &Binding| b.domain().count_ones() as usize == plan.names().len();
        // The tables are not needed any more.
        let Joins { mut all, .. } = joins;
        all.retain(total);
        // An order that does not depend on hashing; bindings from the same steps are distinguished by
        // their values.
        let firsts: Vec<u32> = all.iter().flat_map(|binding| self.first_steps(binding)).collect();
        let first = |i: usize| firsts.get(i * self.domains.len()..(i + 1) * self.domains.len());
        let mut order: Vec<u32> = (0..all.len() as u32).collect();
        order.sort_by(|&one, &other| {
            let (one, other) = (one as usize, other as usize);
            let values = |i: usize| format!("{:?}", all[i]);
            first(one).cmp(&first(other)).then_with(|| values(one).cmp(&values(other)))
        });
        Ok(order.into_iter().map(|i| all[i as usize]).collect())
    }

    /// The first steps that concern a binding, one for each set of parameters.
    fn first_steps<'b>(&'b self, binding: &'b Binding) -> impl Iterator<Item = u32> + 'b {
        let parts = self.domains.iter().map(|&domain| self.by_part.get(&binding.restrict(domain)));
        parts.map(|steps| steps.map_or(u32::MAX, |steps| steps[0].0))
    }

    /// The steps that concern a binding, each with the atoms that do.
    pub(crate) fn steps_of(&self, binding: &Binding, out: &mut Vec<(T, u64)>) {
        let mut steps = self.common.clone();
        for &domain in &self.domains {
            steps.extend(self.by_part.get(&binding.restrict(domain)).into_iter().flatten());
        }
        steps.sort_unstable();
        out.clear();
        out.extend(steps.chunk_by(|a, b| a.0 == b.0).map(|same| {
            let atoms = same.iter().fold(0, |bits, step| bits | step.1);
            (self.items[same[0].0 as usize], atoms)
        }));
    }
}

/// Bindings closed under joins.
struct Joins {
    limit: TooManyStates,
    all: Vec<Binding>,
    known: HashSet<Binding, RandomState>,
    /// The sets of parameters that bindings have, each with its bindings.
    by_domain: Map<u8, Vec<u32>>,
    /// For a set of parameters and some of them, the bindings by these.
    by_shared: Map<(u8, u8), Map<Binding, Vec<u32>>>,
}

impl Joins {
    /// None yet, and as many as there is memory for.
    fn new(memory: usize) -> Joins {
        let room = memory / BYTES_PER_BINDING;
        let what = match room < MAX_BINDINGS {
            true => "bindings of its parameters, which is all that --max-memory leaves room for",
            false => "bindings of its parameters",
        };
        Joins {
            limit: TooManyStates { limit: room.min(MAX_BINDINGS), what },
            all: Vec::new(),
            known: HashSet::default(),
            by_domain: Map::default(),
            by_shared: Map::default(),
        }
    }

    fn add(&mut self, binding: Binding) -> Result<(), TooManyStates> {
        if self.known.contains(&binding) {
            return Ok(());
        }
        if self.all.len() >= self.limit.limit {
            return Err(self.limit);
        }
        self.known.insert(binding);
        let (i, domain) = (self.all.len() as u32, binding.domain());
        self.all.push(binding);
        self.by_domain.entry(domain).or_default().push(i);
        for ((of, shared), index) in &mut self.by_shared {
            if *of == domain {
                index.entry(binding.restrict(*shared)).or_default().push(i);
            }
        }
        Ok(())
    }

    /// Joins a part with every binding that agrees with it.
    fn join(&mut self, part: &Binding) -> Result<(), TooManyStates> {
        let domains: Vec<u8> = self.by_domain.keys().copied().collect();
        let mut joined = Vec::new();
        for domain in domains {
            let shared = domain & part.domain();
            let all = &self.all;
            let index = self.by_shared.entry((domain, shared)).or_insert_with(|| {
                let mut index: Map<Binding, Vec<u32>> = Map::default();
                for &i in &self.by_domain[&domain] {
                    index.entry(all[i as usize].restrict(shared)).or_default().push(i);
                }
                index
            });
            let agreeing = index.get(&part.restrict(shared)).into_iter().flatten();
            joined.extend(agreeing.filter_map(|&i| all[i as usize].join(part)));
        }
        joined.into_iter().try_for_each(|binding| self.add(binding))
    }
}
