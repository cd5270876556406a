//! Atomicity: regions that should execute atomically, and can be disturbed.
//!
//! First, clocks over transactions find the regions that the observed order breaks. Then other
//! orders are searched: another thread's access between two of a region to the same variable, and
//! cycles of conflicts over several variables, each as a goal: the others have happened, and the
//! last access of the region is next. The graph of transactions of its order confirms each finding.
//!
//! The clocks are those of AeroDrome (Mathur and Viswanathan, *Atomicity Checking in Linear Time Using
//! Vector Clocks*, ASPLOS 2020), the graph is that of Velodrome (Flanagan, Freund and Yi, *Velodrome: A
//! Sound and Complete Dynamic Atomicity Checker for Multithreaded Programs*, PLDI 2008).
//!
//! | file | what it does |
//! |---|---|
//! | `regions` | which regions there are |
//! | `observed` | clocks over transactions |
//! | `graph` | the graph of transactions of one order, which confirms |
//! | `accesses` | what regions and others do to variables |
//! | `triples` | candidates of one variable |
//! | `cycles` | candidates of several; the proof that all regions are protected |
//! | `likely` | the other check: inferred regions |
//! | `describe` | describes findings |
//!
//! # What its silence means
//! The check claims that no reordering has a violation only if every region holds, from its first
//! access to a shared variable to its last, a lock that every thread takes that could disturb it.
//! Otherwise nothing is claimed beyond the counts.

mod accesses;
mod cycles;
mod describe;
mod graph;
mod likely;
mod observed;
mod regions;
mod triples;

use std::collections::HashMap;

use foldhash::fast::RandomState;
use foresee_causality::judge::Seen;
use foresee_trace::{Event, Id, Op, ThreadId, entry};

use super::attempt::{Budget, EXECUTED};
use super::glob::Glob;
use super::lock_state::LockState;
use super::tally::Words;
use super::tries::{Found, Try};
use super::{Check, CheckKind, Context, Description, ObservedViolation, Options, Proposals};
use crate::analysis::{AnalysisError, Stat};
use crate::info::ATOMICITY;
use accesses::Accesses;
use cycles::Samples;
use graph::Link;
use observed::{Broken, Observed};
use regions::Regions;

pub(super) use describe::also;
pub(super) use likely::KIND as LIKELY;

/// The number of violations in the observed order that are reported.
const MOST_OBSERVED: usize = 100;

/// Which regions there are, and how far to search.
#[derive(Clone, Debug, Default)]
pub struct AtomicityOptions {
    /// Calls of these methods are regions, besides those that are declared by events.
    pub methods: Vec<Glob>,
    /// Also search for cycles of three transactions.
    pub with_three: bool,
}

/// The check.
pub(super) const KIND: CheckKind =
    CheckKind { name: ATOMICITY, new: |options| Box::new(Atomicity::new(options)) };

/// Finds regions that can be disturbed.
struct Atomicity {
    options: AtomicityOptions,
    regions: Regions,
    /// Whether there can be a region at all.
    has_regions: bool,
}

impl Atomicity {
    fn new(options: &Options) -> Atomicity {
        let options = options.atomicity.clone();
        Atomicity { options, regions: Regions::default(), has_regions: false }
    }

    /// The regions that the observed order breaks, by the access that shows it.
    fn broken(&mut self, context: &Context<'_>, ignored: &[ThreadId]) -> Vec<Broken> {
        let mut observed = Observed::default();
        let mut broken = Vec::new();
        for (i, event) in context.trace.events.iter().enumerate() {
            let change = self.regions.event(i as u32, event, &context.trace.names);
            if !ignored.contains(&event.thread()) {
                observed.event(i as u32, event, change, &mut |one| broken.push(one));
            }
        }
        broken
    }

    /// What the observed order shows, one for each tuple of places. Each is confirmed.
    fn seen(
        &self,
        context: &Context<'_>,
        broken: &[Broken],
        triples: &[[u32; 3]],
    ) -> Result<Vec<ObservedViolation>, AnalysisError> {
        let events = &context.trace.events;
        let mut reported: HashMap<Vec<u32>, (), RandomState> = HashMap::default();
        let mut all = Vec::new();
        let by_triple = triples.iter().map(|&[a1, b, a2]| {
            let links = vec![Link { from: a1, to: b }, Link { from: b, to: a2 }];
            (self.regions.at(events[a2 as usize].thread().0, a2), a2, Some(links))
        });
        let mut tried: HashMap<[u32; 4], u32, RandomState> = HashMap::default();
        let by_clock =
            broken.iter().map(|one| (self.regions.at(one.thread, one.event), one.event, None));
        for (region, event, links) in by_triple.chain(by_clock) {
            if all.len() >= MOST_OBSERVED {
                break;
            }
            let Some(region) = region else { continue };
            let begin = self.regions.all()[region as usize].begin;
            let place = |event: u32| events[event as usize].loc().0;
            // Among many similar ones, only a few are examined closely.
            let it = &events[event as usize];
            let places = match [place(begin), place(event)] {
                [0, _] | [_, 0] => [0, 0, it.thread().0, it.var().0],
                [begin, event] => [begin, event, 0, 0],
            };
            let alike = tried.entry(places).or_insert(0);
            *alike += 1;
            if links.is_none() && *alike > 4 {
                continue;
            }
            let start = self.regions.quiet_before(begin);
            let run = start..event;
            let cycle = graph::cycle(events, &self.regions, run, start, event, region);
            let Some(cycle) = cycle else {
                return Err(AnalysisError::Mistake(format!(
                    "the region that begins with \
                     event {begin} is said to be broken by event {event}, and is not"
                )));
            };
            let cycle = links.unwrap_or(cycle);
            let key: Vec<u32> =
                cycle.iter().flat_map(|link| [place(link.from), place(link.to)]).collect();
            let is_placed = key.iter().all(|&place| place != 0);
            let key = if is_placed { key } else { self.without_places(context, &cycle) };
            if reported.insert(key, ()).is_none() {
                let description = describe::observed(context, &self.regions, region, &cycle);
                all.push(ObservedViolation { event, description });
            }
        }
        Ok(all)
    }

    /// What distinguishes cycles if their places are not known: threads and variables.
    fn without_places(&self, context: &Context<'_>, cycle: &[Link]) -> Vec<u32> {
        let ends = cycle.iter().flat_map(|link| [link.from, link.to]);
        let key = ends.flat_map(|event| {
            let event = &context.trace.events[event as usize];
            [event.thread().0, event.target().unwrap_or(u32::MAX), event.loc().0]
        });
        key.collect()
    }
}

/// Whether events happen as they were observed.
fn is_as_observed(by: &Try) -> bool {
    let executed = by.executed.iter().map(|wanted| wanted.event);
    executed.chain(by.next.iter().copied()).is_sorted()
}

/// Which variables are accessed by several threads, and written by one.
fn shared(events: &[Event], ignored: &[ThreadId]) -> Vec<bool> {
    #[derive(Clone, Default)]
    struct Users {
        first: Option<ThreadId>,
        are_several: bool,
        is_written: bool,
    }
    let mut users: Vec<Users> = Vec::new();
    for event in events.iter().filter(|e| e.op().reads() || e.op().writes()) {
        if ignored.contains(&event.thread()) {
            continue;
        }
        let user = entry(&mut users, event.var().index());
        user.are_several |= *user.first.get_or_insert(event.thread()) != event.thread();
        user.is_written |= event.op().writes();
    }
    users.iter().map(|user| user.are_several && user.is_written).collect()
}

impl Check for Atomicity {
    fn kind(&self) -> &'static CheckKind {
        &KIND
    }

    fn words(&self) -> Words {
        Words {
            one: "atomicity violation",
            many: "atomicity violations",
            candidates: "ways to disturb a region",
        }
    }

    fn budgets(&self) -> &'static [Budget] {
        EXECUTED
    }

    fn event(&mut self, _: u32, event: &Event, _: &LockState) {
        self.has_regions |= match event.op() {
            Op::Begin => true,
            Op::Enter => !self.options.methods.is_empty(),
            _ => false,
        };
    }

    fn propose(&mut self, context: &Context<'_>) -> Result<Proposals, AnalysisError> {
        self.regions = Regions::new(self.options.methods.clone());
        let ignored = context.uninstrumented();
        let broken = match self.has_regions {
            true => self.broken(context, &ignored),
            false => Vec::new(),
        };
        if self.regions.all().is_empty() {
            let why = match self.options.methods.is_empty() {
                true => "no region is declared to be atomic",
                false => "no region is declared to be atomic, and no method of that name is called",
            };
            return Ok(Proposals { nothing: Some(why.to_owned()), ..Proposals::default() });
        }
        let events = &context.trace.events;
        let shared = shared(events, &ignored);
        let is_shared = |variable: u32| shared.get(variable as usize).is_some_and(|&s| s);
        let samples = Samples::new(events, &self.regions, &ignored, is_shared);
        let mut in_order = self.regions.in_order();
        let touched = events.iter().enumerate().filter(|(i, e)| {
            (e.op().reads() || e.op().writes())
                && is_shared(e.var().0)
                && in_order.at(e.thread().0, *i as u32).is_some()
        });
        let touched = touched.map(|(_, e)| e.var().0).chain(samples.variables(events));
        let accesses = Accesses::new(events, &self.regions, touched, &ignored);
        let mut proposals = Proposals::default();
        let triples::Triples { candidates, observed } =
            triples::triples(events, &accesses, &mut proposals.tally);
        proposals.candidates = candidates;
        proposals.candidates.extend(cycles::cycles(
            events,
            &self.regions,
            &samples,
            &accesses,
            self.options.with_three,
            &mut proposals.tally,
        ));
        // What was seen is not predicted.
        proposals.candidates.retain(|candidate| !candidate.tries.iter().any(is_as_observed));
        proposals.observed = self.seen(context, &broken, &observed)?;
        let all_are_protected =
            cycles::all_are_protected(events, &self.regions, &accesses, &ignored, is_shared);
        if !all_are_protected {
            proposals.caveat = Some(
                "regions are not protected by a lock from end to end, and longer cycles of \
                 conflicts were not looked for",
            );
        }
        let count = |n: usize| Stat::Count(n as u64);
        proposals.stats = vec![
            ("regions", count(self.regions.all().len())),
            ("regions_broken_as_observed", count(broken.len())),
        ];
        Ok(proposals)
    }

    fn confirm(
        &self,
        context: &Context<'_>,
        found: &Found,
        order: &[u64],
        _: &Seen<'_>,
    ) -> Result<(), String> {
        self.cycle(context, found, order).map(|_| ())
    }

    fn is_observed(&self, found: &Found) -> bool {
        found.reached.order.iter().chain(&found.by.next).is_sorted()
    }

    fn describe(&self, context: &Context<'_>, found: &Found) -> Description {
        describe::predicted(context, &self.regions, found)
    }
}

#[cfg(test)]
mod tests;

impl Atomicity {
    /// The cycle that a reordering has, with the event that is next.
    fn cycle(
        &self,
        context: &Context<'_>,
        found: &Found,
        order: &[u64],
    ) -> Result<Vec<Link>, String> {
        let &[last] = &found.by.next[..] else { return Err("one event should be next".to_owned()) };
        let thread = context.trace.events[last as usize].thread().0;
        let region = self.regions.at(thread, last).ok_or("it is in no region")?;
        let observed = found.reached.observed;
        let start = self.regions.quiet_before(observed);
        let run = (start..observed).chain(order.iter().map(|&event| event as u32));
        graph::cycle(&context.trace.events, &self.regions, run, start, last, region)
            .ok_or_else(|| "its transactions have no cycle through the region".to_owned())
    }
}
