//! The cuts of a small lattice, one after the other.

use std::collections::{BTreeMap, HashMap};

use foresee_causality::{Clocks, Order, Stamp};
use foresee_spec::monitor::{Monitor, StateId, TooManyStates};
use foresee_spec::observe::{ProgramState, Projection, Step};
use foresee_spec::params::{Object, ParamPlan};
use foresee_trace::{Event, Pool, ThreadId, Trace};
use num_bigint::BigUint;

use super::{NoPicture, Picture};

/// A relevant event.
pub(super) struct Item {
    pub(super) index: u64,
    /// Its thread, by its place in `Items::threads`.
    pub(super) column: usize,
    pub(super) step: Step,
    /// How many relevant events of each thread must come before it.
    pub(super) needs: Vec<u32>,
}

/// The relevant events in the order of the trace.
pub(super) struct Items {
    pub(super) items: Vec<Item>,
    pub(super) threads: Vec<ThreadId>,
    /// For each thread, the places of its events in `items`.
    pub(super) columns: Vec<Vec<usize>>,
}

/// What is known of a cut while the lattice is built.
pub(super) struct Cut {
    pub(super) counts: Vec<u32>,
    pub(super) program: ProgramState,
    /// For each state of the monitor, the number of runs up to here that reach it.
    pub(super) runs: BTreeMap<StateId, BigUint>,
    pub(super) violated: bool,
}

/// The whole lattice.
pub(super) struct Cuts {
    pub(super) cuts: Vec<Cut>,
    /// Before, after, and the item that leads there.
    pub(super) edges: Vec<(usize, usize, usize)>,
    pub(super) places: HashMap<Vec<u32>, usize>,
}

impl Items {
    pub(super) fn of(
        trace: &Trace,
        projection: &Projection,
        params: &ParamPlan,
        binding: &[(String, Object)],
    ) -> Result<Items, NoPicture> {
        let mut clocks: Clocks = Clocks::new(Order::Mazurkiewicz);
        let mut stamps: Vec<Stamp> = Vec::new();
        let mut steps: Vec<(u64, Step)> = Vec::new();
        for (i, event) in trace.events.iter().enumerate() {
            let stamp = clocks.event(event)?;
            if let Some(step) = step_of(event, &trace.pool, projection, params, binding) {
                // The observed run alone passes as many cuts.
                if steps.len() + 1 == Picture::MAX_CUTS {
                    return Err(NoPicture::TooLarge(Picture::MAX_CUTS));
                }
                steps.push((i as u64, step));
                stamps.push(stamp);
            }
            clocks.forget_old(&stamps);
        }
        if steps.is_empty() {
            return Err(NoPicture::NothingRelevant);
        }
        let mut threads: Vec<ThreadId> = stamps.iter().map(|stamp| stamp.thread).collect();
        threads.sort_unstable();
        threads.dedup();
        let mut columns = vec![Vec::new(); threads.len()];
        let mut items = Vec::new();
        for (i, ((index, step), stamp)) in steps.into_iter().zip(&stamps).enumerate() {
            let column = threads.partition_point(|&t| t < stamp.thread);
            let needs = columns.iter().map(|column: &Vec<usize>| {
                column.iter().filter(|&&k| clocks.knows(stamp, stamps[k].epoch())).count() as u32
            });
            items.push(Item { index, column, step, needs: needs.collect() });
            columns[column].push(i);
        }
        Ok(Items { items, threads, columns })
    }

    /// The next event of a thread after a cut, if everything it needs has happened.
    fn enabled(&self, column: usize, counts: &[u32]) -> Option<usize> {
        let &next = self.columns[column].get(counts[column] as usize)?;
        let needs = &self.items[next].needs;
        needs.iter().zip(counts).all(|(need, have)| need <= have).then_some(next)
    }
}

/// How many pairs of a cut and a monitor state are followed.
const MAX_PAIRS: usize = 100_000;

impl Cuts {
    pub(super) fn of(
        items: &Items,
        projection: &Projection,
        monitor: &mut Monitor,
        start: StateId,
    ) -> Result<Cuts, NoPicture> {
        let first = vec![0; items.threads.len()];
        let mut all = Cuts {
            places: HashMap::from([(first.clone(), 0)]),
            cuts: vec![Cut {
                counts: first,
                program: projection.initial().clone(),
                runs: BTreeMap::from([(start, BigUint::from(1u8))]),
                violated: start == StateId::BAD,
            }],
            edges: Vec::new(),
        };
        let mut pairs = 1;
        let mut from = 0;
        // Steps lead one level down, so each cut is complete when its turn comes.
        while from < all.cuts.len() {
            let (counts, runs) = (all.cuts[from].counts.clone(), all.cuts[from].runs.clone());
            for column in 0..counts.len() {
                let Some(item) = items.enabled(column, &counts) else { continue };
                let mut program = all.cuts[from].program.clone();
                let step = items.items[item].step;
                let letter = projection.apply(&mut program, step, &mut Default::default());
                let to = all.cut_after(&counts, column, program)?;
                all.edges.push((from, to, item));
                let cut = &mut all.cuts[to];
                for (&state, runs) in &runs {
                    let next = monitor.step(state, letter)?;
                    cut.violated |= next == StateId::BAD && state != StateId::BAD;
                    let before = cut.runs.len();
                    *cut.runs.entry(next).or_default() += runs;
                    pairs += cut.runs.len() - before;
                }
                if pairs > MAX_PAIRS {
                    let what = "states of its monitor at the cuts";
                    return Err(TooManyStates { limit: MAX_PAIRS, what }.into());
                }
            }
            from += 1;
        }
        Ok(all)
    }

    /// The cut with one more event of a thread, new or met before.
    fn cut_after(
        &mut self,
        counts: &[u32],
        column: usize,
        program: ProgramState,
    ) -> Result<usize, NoPicture> {
        let mut counts = counts.to_vec();
        counts[column] += 1;
        if let Some(&known) = self.places.get(&counts) {
            // Writes of one variable are ordered, so every way here leads to the same values.
            debug_assert_eq!(self.cuts[known].program, program);
            return Ok(known);
        }
        if self.cuts.len() == Picture::MAX_CUTS {
            return Err(NoPicture::TooLarge(Picture::MAX_CUTS));
        }
        let new = self.cuts.len();
        self.places.insert(counts.clone(), new);
        self.cuts.push(Cut { counts, program, runs: BTreeMap::new(), violated: false });
        Ok(new)
    }

    pub(super) fn last(&self) -> &Cut {
        &self.cuts[self.cuts.len() - 1]
    }

    /// The cuts that an order of events passes; events that are not relevant do not count.
    pub(super) fn path(
        &self,
        items: &Items,
        order: impl Iterator<Item = u64>,
    ) -> Result<Vec<usize>, NoPicture> {
        let mut counts = vec![0; items.threads.len()];
        let mut path = vec![0];
        for index in order {
            let Ok(i) = items.items.binary_search_by_key(&index, |item| item.index) else {
                continue;
            };
            counts[items.items[i].column] += 1;
            path.push(*self.places.get(&counts).ok_or(NoPicture::NoRun)?);
        }
        Ok(path)
    }
}

/// What an event does to a property under a binding of all its parameters.
fn step_of(
    event: &Event,
    pool: &Pool,
    projection: &Projection,
    params: &ParamPlan,
    binding: &[(String, Object)],
) -> Option<Step> {
    let step = projection.step(event, pool)?;
    if params.is_empty() {
        return Some(step);
    }
    let mut parts = Vec::new();
    params.bindings(step.events, event, pool, &mut parts);
    let object = |i: usize| {
        let name = params.names().get(i)?;
        binding.iter().find(|(bound, _)| bound == name).map(|(_, object)| *object)
    };
    let mut events = step.events & !params.binding_bits();
    for (part, bits) in &parts {
        let bound = (0..params.names().len()).filter(|i| part.domain() >> i & 1 == 1);
        if bound.into_iter().all(|i| part.get(i) == object(i)) {
            events |= bits;
        }
    }
    (events != 0 || step.write.is_some()).then_some(Step { events, ..step })
}
