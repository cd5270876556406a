//! Races: two accesses to one variable, at least one of them a write, that could come at once.
//!
//! Two accesses race if some correct reordering brings their threads to a point where both are
//! next. The values that they read or write and their order do not matter. Two atomic accesses do
//! not race.
//!
//! | file | what it does |
//! |---|---|
//! | `suspects` | the variables that no lock guards always |
//! | `classes` | their accesses in classes, and the pairs worth a look |
//! | `tokens` | variables that are used as locks |
//! | `ordered` | pairs that are in order only by what was read |
//! | `spread` | which of these are tried, and in which order |
//! | `language` | races by the language's rules, of accesses that only relaxed atomics order |
//!
//! | algorithm | reports | its silence |
//! |---|---|---|
//! | `hb` | what happens-before leaves unordered, and a search confirms | proves nothing |
//! | `shb` | what schedulable happens-before leaves unordered | proves nothing |
//! | `syncp` | all races with critical sections in their observed order | there are none of those |
//! | `sliced` | also those for which sections must swap | proves only what is said to be impossible |
//!
//! `shb` is Mathur, Kini and Viswanathan, *What Happens-After the First Race?*, OOPSLA 2018; `syncp` is
//! Mathur, Pavlogiannis and Viswanathan, *Optimal Prediction of Synchronization-Preserving Races*,
//! POPL 2021.

mod classes;
mod language;
mod ordered;
mod spread;
mod suspects;
mod tokens;

use std::collections::{HashMap, HashSet};

use foresee_causality::judge::Seen;
use foresee_causality::{Clocks, Order};
use foresee_support::count::count;
use foresee_trace::{Detail, Event, Fact, Id, Name, Op, Role, Site, ThreadId, Verdict, entry};
use serde::{Deserialize, Serialize};

use super::attempt::{Budget, NEXT};
use super::lock_state::LockState;
use super::tally::{SearchStats, Words};
use super::tries::{Candidate, Chains, Found, Tried, Try};
use super::{Check, CheckKind, Context, Description, ObservedViolation, Proposals};
use crate::analysis::{AnalysisError, Stat};
use crate::info::RACE;
use crate::reorder::{NONE, Sight};
use classes::{Classes, Group, Known};
use suspects::Suspects;
use tokens::{Guards, Tokens};

/// The check for races.
pub(super) const KIND: CheckKind = CheckKind {
    name: RACE,
    new: |options| Box::new(Race { algorithm: options.algorithm, ..Race::default() }),
};

/// The algorithm that finds races.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Algorithm {
    /// Happens-before, as race detectors do; its pairs are then searched for.
    Hb,
    /// Schedulable happens-before.
    Shb,
    /// Reorderings with critical sections in their observed order.
    Syncp,
    /// Also those in which sections swap.
    #[default]
    Sliced,
}

/// Which memory model the program's language has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum MemoryModel {
    /// That of C11 and C++11: relaxed atomics order nothing. Where a trace has none, this is the
    /// same as sequential consistency.
    #[default]
    C11,
    /// Sequential consistency: all atomics order.
    Sc,
}

impl Algorithm {
    /// What its reports and its silence mean.
    fn guarantee(self) -> &'static str {
        match self {
            Algorithm::Hb => {
                "happens-before: of the pairs that it leaves unordered, only the first is known to \
                 race; each is searched for and reported if a reordering shows it; pairs that it \
                 orders are not looked at"
            }
            Algorithm::Shb => {
                "schedulable happens-before: every pair that it leaves unordered races; races that \
                 need another order of critical sections, or reads to be left out, are not looked for"
            }
            Algorithm::Syncp => {
                "sync-preserving: reports every race that shows while critical sections keep their \
                 observed order; races that need sections to swap are not looked for"
            }
            Algorithm::Sliced => {
                "sliced: also looks for races that need critical sections to swap; it finds nearly \
                 all of them, but a race that was not found is not proved to be impossible"
            }
        }
    }
}

/// After how many events unused clocks are freed.
const FORGET: usize = 1024;
/// The maximum number of pairs of places to try.
const MOST_CANDIDATES: usize = 20_000;
/// The maximum for pairs that only other writes of the same value could demonstrate.
const MOST_BY_VALUE: usize = 2_000;
/// The number of unconfirmed pairs that are listed.
const TOLD: usize = 20;
/// The work limit for chains, if sections may swap anyway.
const CHAIN_WORK: usize = 20_000_000;
/// The number of pairs of chains that are searched regardless.
const LEAST_CHAINS: usize = 4;

#[derive(Debug, Default)]
struct Race {
    algorithm: Algorithm,
    suspects: Suspects,
    tokens: Tokens,
    classes: Option<Classes>,
    /// Whether some atomic access is weaker than sequentially consistent.
    has_weak: bool,
    /// The first pair of events of each pair of places that is tried.
    proposed: Vec<(u32, [u32; 2])>,
}

impl Race {
    /// The pairs of places at which suspects are accessed, with the pairs of events worth a try.
    fn classes(&mut self, context: &Context<'_>) -> Result<Classes, AnalysisError> {
        let most = [context.options.tries, context.options.tries_per_place];
        let mut classes =
            Classes::new((self.algorithm != Algorithm::Shb).then_some(most), context.room / 2);
        if self.suspects.count().1 == 0 {
            return Ok(classes);
        }
        let mut observed: Clocks = Clocks::new(match self.algorithm {
            Algorithm::Hb => Order::HappensBefore,
            _ => Order::Schedulable,
        });
        let mut needs = match self.algorithm {
            Algorithm::Hb | Algorithm::Shb => None,
            Algorithm::Syncp | Algorithm::Sliced => Some(Clocks::<1>::new(Order::Needs)),
        };
        let mut guards = Guards::new(&self.tokens);
        let mut times: Vec<u32> = Vec::new();
        let uninstrumented = context.uninstrumented();
        let mut is_alone = has_one_root(context);
        for (index, event) in context.trace.events.iter().enumerate() {
            let (op, thread) = (event.op(), event.thread());
            if op == Op::Init {
                continue;
            }
            let time = entry(&mut times, thread.index());
            *time += 1;
            is_alone &= op != Op::Fork;
            let is_access = op.reads() || op.writes();
            // Uninstrumented accesses may be of any thread.
            let is_known = !uninstrumented.contains(&thread);
            if is_access && is_known && !is_alone && self.suspects.has(event.var()) {
                classes.access(index as u32, event, guards.set(thread), *time, |other| {
                    let other = ThreadId(other);
                    let (seen, until) = (observed.count_now(thread, other), u32::MAX);
                    match &needs {
                        _ if self.algorithm == Algorithm::Hb => {
                            Known { sure: u32::MAX, possible: seen, until }
                        }
                        None => Known { sure: seen, possible: seen, until },
                        Some(needs) => {
                            let needed = needs.count_now(thread, other);
                            Known { sure: seen, possible: needed.min(seen), until }
                        }
                    }
                });
            }
            // Accesses that locks exclude are ordered by them as well.
            if self.algorithm != Algorithm::Shb {
                guards.event(index as u32, event);
            }
            // Objects that only one thread uses order nothing.
            let is_private = is_access && context.requirements.object(index as u32) == NONE;
            let event = if is_private { Event::new(thread, Op::Event) } else { *event };
            observed.event(&event)?;
            if let Some(needs) = &mut needs {
                needs.event(&event)?;
            }
            if index % FORGET == 0 {
                observed.forget_old(&[]);
                needs.iter_mut().for_each(|needs| needs.forget_old(&[]));
            }
        }
        Ok(classes)
    }

    /// Counts a pair of places for which there is nothing to try.
    fn settle(&self, group: &Group, tally: &mut SearchStats) {
        match group.is_open {
            false => tally.by_locks += 1,
            // It does not ask what is needed.
            true if self.algorithm == Algorithm::Hb => tally.not_found += 1,
            true => tally.by_order += 1,
        }
    }

    /// The accesses of some classes, in their order.
    fn members(
        &self,
        context: &Context<'_>,
        classes: &Classes,
        wanted: impl Iterator<Item = u32>,
    ) -> HashMap<u32, Vec<u32>> {
        let mut members: HashMap<u32, Vec<u32>> = wanted.map(|class| (class, Vec::new())).collect();
        if members.is_empty() {
            return members;
        }
        let mut is_wanted = Vec::new();
        for &class in members.keys() {
            *entry(&mut is_wanted, classes.variable(class).index()) = true;
        }
        let mut guards = Guards::new(&self.tokens);
        for (index, event) in context.trace.events.iter().enumerate() {
            let is_access = event.op().reads() || event.op().writes();
            if is_access
                && is_wanted.get(event.var().index()) == Some(&true)
                && let Some(class) = classes.class_of(event, guards.set(event.thread()).0)
                && let Some(chain) = members.get_mut(&class)
            {
                chain.push(index as u32);
            }
            guards.event(index as u32, event);
        }
        members
    }
}

/// Whether all threads but one are forked, so that nothing races with the events before the first
/// fork.
fn has_one_root(context: &Context<'_>) -> bool {
    let forks = context.trace.events.iter().filter(|event| event.op() == Op::Fork);
    let forked: HashSet<ThreadId> = forks.map(|fork| fork.other()).collect();
    forked.len() + 1 == context.trace.names.threads.len()
}

impl Check for Race {
    fn kind(&self) -> &'static CheckKind {
        &KIND
    }

    fn words(&self) -> Words {
        Words { one: "race", many: "races", candidates: "pairs of places" }
    }

    fn budgets(&self) -> &'static [Budget] {
        match self.algorithm {
            Algorithm::Hb | Algorithm::Sliced => NEXT,
            Algorithm::Shb | Algorithm::Syncp => &NEXT[..1],
        }
    }

    fn event(&mut self, _: u32, event: &Event, lock_state: &LockState) {
        if event.op().reads() || event.op().writes() {
            self.suspects.access(event, lock_state);
        }
        self.has_weak |= event.op().weakens();
    }

    fn bytes(&self) -> usize {
        self.suspects.bytes()
    }

    fn propose(&mut self, context: &Context<'_>) -> Result<Proposals, AnalysisError> {
        // Schedulable happens-before orders what they exclude.
        if self.algorithm != Algorithm::Shb {
            self.tokens = Tokens::new(context.trace);
        }
        let classes = self.classes(context)?;
        let mut proposals = Proposals::default();
        let tally = &mut proposals.tally;
        let (ordered, no_room) = match self.algorithm {
            Algorithm::Hb | Algorithm::Shb => (HashMap::new(), 0),
            Algorithm::Syncp | Algorithm::Sliced => {
                ordered::ordered(context, &self.suspects, &self.tokens, &classes)?
            }
        };
        let cut = classes.crowded() + classes.left_out;
        let (mut by_value, mut left_out) = (0, no_room.saturating_sub(cut));
        for (key, group) in (0..).zip(&classes.groups).filter(|(_, group)| group.is_settled()) {
            match ordered.get(&key) {
                Some(kept) if !kept.is_impossible && by_value == MOST_BY_VALUE => left_out += 1,
                Some(kept) => {
                    by_value += usize::from(!kept.is_impossible);
                    let next = |pair: &[u32; 2]| Try { executed: Vec::new(), next: pair.to_vec() };
                    proposals.candidates.push(Candidate {
                        key,
                        tries: kept.pairs.iter().map(next).collect(),
                        is_complete: kept.is_impossible,
                        is_impossible: kept.is_impossible,
                        is_only_by_value: true,
                        hangs_on: kept.is_impossible.then_some(Sight::Updates),
                        ..Candidate::default()
                    });
                }
                None => self.settle(group, tally),
            }
        }
        let (chosen, left) = spread::best_first(&classes.groups, MOST_CANDIDATES);
        tally.not_tried += left;
        let open = chosen.iter().map(|&key| &classes.groups[key as usize]);
        let open = open.filter(|group| group.sure.is_none()).flat_map(|group| &group.classes);
        let members = self.members(context, &classes, open.flatten().copied());
        for key in chosen {
            let group = &classes.groups[key as usize];
            let pairs = spread::pairs(group, &members, context.options);
            self.proposed.push((key, pairs[0]));
            let tries = pairs.iter().map(|pair| Try { executed: Vec::new(), next: pair.to_vec() });
            proposals.candidates.push(Candidate {
                key,
                tries: tries.collect(),
                is_complete: false,
                is_conceivable: self.algorithm == Algorithm::Shb,
                is_sure: group.sure.is_some(),
                ..Candidate::default()
            });
        }
        let crowded = classes.crowded();
        tally.not_tried += crowded + classes.left_out + left_out;
        if crowded > 0 {
            let places = match self.algorithm {
                Algorithm::Hb => "",
                _ => "; every place that schedulable happens-before shows to be racy is reported",
            };
            proposals.notes.push(format!(
                "{crowded} variables are accessed in too many ways to look at all pairs of \
                 them{places}"
            ));
        }
        self.classes = Some(classes);
        if self.algorithm == Algorithm::Shb {
            proposals.caveat = Some("accesses that the run itself orders were not looked at");
        }
        if !context.uninstrumented().is_empty() {
            proposals.caveat = Some(
                "accesses of code that was not captured are left out, because it is not known which \
                 thread they are of",
            );
        }
        let (shared, suspects) = self.suspects.count();
        proposals.stats = vec![
            ("shared_variables", Stat::Count(shared)),
            ("guarded_by_a_lock", Stat::Count(shared - suspects)),
        ];
        Ok(proposals)
    }

    fn chains(&mut self, context: &Context<'_>, tried: &Tried) -> Vec<Chains> {
        let most = match self.algorithm {
            Algorithm::Hb | Algorithm::Shb => return Vec::new(),
            Algorithm::Syncp => usize::MAX,
            Algorithm::Sliced => (CHAIN_WORK / context.trace.events.len().max(1)).max(LEAST_CHAINS),
        };
        let open: HashSet<u32> = tried.open.iter().map(|&(key, _)| key).collect();
        let Some(classes) = self.classes.as_ref().filter(|_| !open.is_empty()) else {
            return Vec::new();
        };
        let mut pairs: Vec<(u32, [u32; 2])> = Vec::new();
        for &key in &open {
            let group = &classes.groups[key as usize];
            pairs.extend(group.classes.iter().map(|&pair| (key, pair)));
        }
        pairs.sort_unstable();
        pairs.truncate(most);
        let wanted = pairs.iter().flat_map(|(_, pair)| pair).copied();
        let members = self.members(context, classes, wanted);
        let chain = |class: &u32| members.get(class).cloned().unwrap_or_default();
        pairs
            .iter()
            .map(|(key, pair)| Chains { key: *key, chains: pair.iter().map(chain).collect() })
            .collect()
    }

    fn observed(
        &mut self,
        context: &Context<'_>,
        tried: &Tried,
    ) -> Result<Vec<ObservedViolation>, AnalysisError> {
        match self.has_weak && context.options.memory_model == MemoryModel::C11 {
            true => language::races(context, &self.suspects, &tried.found),
            false => Ok(Vec::new()),
        }
    }

    fn notes(&self, context: &Context<'_>, tried: &Tried) -> Vec<String> {
        // Where everything is decided, what this one promises makes no difference.
        if self.algorithm == Algorithm::Sliced && tried.open.is_empty() {
            return Vec::new();
        }
        let mut notes = vec![self.algorithm.guarantee().to_owned()];
        if self.algorithm != Algorithm::Hb {
            return notes;
        }
        let found: HashSet<u32> = tried.found.iter().map(|found| found.key).collect();
        let doubtful: Vec<[u32; 2]> = self
            .proposed
            .iter()
            .filter(|(key, _)| !found.contains(key))
            .map(|(_, pair)| *pair)
            .collect();
        for [e, f] in doubtful.iter().take(TOLD) {
            notes.push(format!(
                "unordered by happens-before, but no reordering was found that shows it: {}; {}",
                context.describe_event(*e),
                context.describe_event(*f)
            ));
        }
        if doubtful.len() > TOLD {
            notes.push(format!("and {}", count(doubtful.len() - TOLD, "more such pair")));
        }
        notes
    }

    fn confirm(
        &self,
        context: &Context<'_>,
        found: &Found,
        _: &[u64],
        _: &Seen<'_>,
    ) -> Result<(), String> {
        let &[e, f] = &found.by.next[..] else { return Err("not two accesses".to_owned()) };
        let (a, b) = (&context.trace.events[e as usize], &context.trace.events[f as usize]);
        let is_access = |op: Op| op.reads() || op.writes();
        let races = is_access(a.op())
            && is_access(b.op())
            && a.thread() != b.thread()
            && a.target() == b.target()
            && (a.op().writes() || b.op().writes())
            && !(a.op().is_atomic() && b.op().is_atomic());
        if races { Ok(()) } else { Err("they do not conflict".to_owned()) }
    }

    fn describe(&self, context: &Context<'_>, found: &Found) -> Description {
        let (e, f) = (found.by.next[0], found.by.next[1]);
        let events = &context.trace.events;
        let variable = Name(context.trace.names.vars.get(events[e as usize].var()));
        let message = format!(
            "{} {} {variable}{} and {} {} it{} at the same time",
            context.thread_of(e),
            verb(context, e),
            context.place_of(e),
            context.thread_of(f),
            verb(context, f),
            context.place_of(f)
        );
        let groups = self.classes.as_ref().map(|classes| &classes.groups);
        let group = groups.and_then(|groups| groups.get(found.key as usize));
        let sites = [e, f].map(|event| context.site(Role::Access, event));
        let mut details = vec![
            Detail::new("variable", Fact::Subject(context.variable_of(e))),
            Detail::new("first access", Fact::Sites(vec![0])),
            Detail::new("locks at the first", Fact::LocksAt(0)),
            Detail::new("second access", Fact::Sites(vec![1])),
            Detail::new("locks at the second", Fact::LocksAt(1)),
        ];
        details.extend(origins(&sites));
        let how = match (found.reached.budget, group.is_some_and(|group| group.sure.is_some())) {
            (0, true) if self.algorithm != Algorithm::Hb => {
                "the observed order, without what is not needed (schedulable happens-before)"
            }
            (0, _) => "critical sections in their observed order, some left out (sync-preserving)",
            _ => "critical sections in another order",
        };
        details.push(Detail::new("shown by", Fact::Text(how.to_owned())));
        if let Some(count) = group.map(|group| group.count).filter(|&count| count > 1) {
            details.push(Detail::new("neighbouring pairs like it", Fact::Count(count)));
        }
        Description {
            verdict: Verdict::ConcurrentAccess,
            message,
            sites: sites.into(),
            about: vec![context.variable_of(e)],
            details,
        }
    }
}

/// How the thread of each site was started.
fn origins(sites: &[Site]) -> impl Iterator<Item = Detail> + '_ {
    let threads = sites.iter().enumerate();
    threads
        .map(|(i, site)| Detail::new(format!("thread {}", site.thread_name()), Fact::ThreadOf(i)))
}

/// What an access does to the variable, in a sentence.
fn verb(context: &Context<'_>, event: u32) -> &'static str {
    match context.trace.events[event as usize].op() {
        Op::Read | Op::VolatileRead => "reads",
        Op::Rmw => "modifies",
        _ => "writes",
    }
}
