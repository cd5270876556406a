//! Built-in checks: what goes wrong in some schedule, without a specification.
//!
//! Every check asks one question about correct reorderings, a [goal](crate::reorder::Goal): can
//! these events have happened in this order, and those be the next of their threads? A race asks
//! for two accesses that are both next, a deadlock for a cycle of requests. So all checks share one
//! pass over the trace, which is kept, one search with growing budgets, one way to count the
//! results of all candidates, and one judge.
//!
//! | file | what it does |
//! |---|---|
//! | `lock_state`, `locksets` | which locks each thread holds, as the trace goes by |
//! | `attempt` | searches with growing budgets |
//! | `tries` | candidates, on all cores |
//! | `decided` | candidates that were tried elsewhere |
//! | `tally` | the results of all candidates, and the statement that follows |
//! | `confirm` | confirms each finding |
//! | `pointers` | the least tuple of whole chains of events, with sections in their order |
//! | `events` | events, locks and threads in reports |
//! | `glob`, `suppress` | name patterns, and suppressed findings |
//! | `atomicity` | regions that can be disturbed |
//! | `lifetime` | objects that can be used too late or too early |
//!
//! # Guarantees
//! Each finding is a correct reordering of the run that the judge has replayed. A check claims that
//! nothing is possible only if every candidate is proved impossible; all others count as not found,
//! undecided or not tried. Candidates that are impossible only because a read would have to see
//! another value are counted separately and listed as conditional. Memory grows with the trace, by
//! about forty bytes an event and 320 a variable, as measured in
//! `benches/results/checks.md`; beyond the memory limit only the beginning of the trace is examined.

mod atomicity;
mod attempt;
mod confirm;
mod deadlock;
mod decided;
mod events;
mod glob;
mod lifetime;
mod lock_state;
mod locksets;
mod pointers;
mod race;
mod suppress;
mod tally;
mod tries;

use std::sync::Arc;
use std::time::{Duration, Instant};

use foresee_causality::judge::{Reads, Seen};
use foresee_trace::{
    Detail, Event, Finding, FindingKind, Flow, Id as _, Op, Outcome, Site, Subject, TargetKind,
    Trace, Verdict, Witness,
};

use crate::analysis::{Analysed, Analysis, AnalysisError, Conclusion, End, Out, Pass, Stat};
use crate::kept::Kept;
use crate::reorder::Requirements;
use crate::shares::Shares;
use attempt::Budget;
use lock_state::LockState;
pub(crate) use lock_state::{given, taken};
pub(crate) use locksets::Hold;
use locksets::LockSets;
pub use race::{Algorithm, MemoryModel};
use tally::{SearchStats, Words};
use tries::{Candidate, Chains, Found, Tried};

pub use atomicity::AtomicityOptions;
pub(crate) use decided::Deciding;
pub use decided::{CandidatePart, Decided};
pub use glob::Glob;
pub use suppress::{Day, Suppression, Suppressions};

/// How many bytes [`Checks`] keeps per event, at most: the event, its requirements and its place in
/// the [`LockState`].
const BYTES_PER_EVENT: usize = 48;
/// The same per variable: its name, its requirements, its clocks, and what guards it.
const BYTES_PER_VARIABLE: usize = 320;

/// The number of conditional findings that are listed; all are counted.
const MOST_CONDITIONAL: usize = 8;

/// Limits and options of the search.
#[derive(Clone, Debug)]
pub struct Options {
    /// What the last read of a thread may see.
    pub reads: Reads,
    /// How far back from the first event of a candidate events may change.
    pub look_back: u32,
    /// The number of tuples of events to try for one tuple of threads and places.
    pub tries: usize,
    /// The number to try for one tuple of places.
    pub tries_per_place: usize,
    /// The maximum number of steps of one search.
    pub work: u64,
    /// The number of cores to use.
    pub cores: usize,
    /// The algorithm that finds races.
    pub algorithm: Algorithm,
    /// The memory model, which determines the atomics that order other accesses.
    pub memory_model: MemoryModel,
    /// Whether to skip checks that do not apply to the trace, because they were not selected by
    /// name.
    pub only_relevant: bool,
    /// The time limit of all searches together.
    pub time: Option<Duration>,
    /// The maximum number of events, all of which are kept.
    pub trace: usize,
    /// The memory limit in bytes. Three quarters of it are for the trace and what is kept of it.
    pub memory: usize,
    /// What counts as an atomic region.
    pub atomicity: AtomicityOptions,
    /// Verdicts on candidates that were reached elsewhere.
    pub decided: Arc<Decided>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            reads: Reads::Terminal,
            look_back: 200,
            tries: 16,
            tries_per_place: 64,
            work: 100_000,
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            algorithm: Algorithm::default(),
            memory_model: MemoryModel::default(),
            only_relevant: false,
            time: None,
            trace: u32::MAX as usize - 1,
            memory: usize::MAX,
            atomicity: AtomicityOptions::default(),
            decided: Arc::default(),
        }
    }
}

/// The input of checks at the end of the trace.
pub(crate) struct Context<'c> {
    pub(crate) trace: &'c Trace,
    pub(crate) requirements: &'c Requirements,
    pub(crate) options: &'c Options,
    /// All sets of locks that threads held.
    pub(crate) locksets: &'c LockSets,
    /// Whether the trace continues after the events that are kept.
    pub(crate) is_cut: bool,
    /// How many bytes are left for what a check finds out about the events.
    pub(crate) room: usize,
}

/// The candidates that a check wants to try, and what it has found without a search.
#[derive(Debug, Default)]
pub(crate) struct Proposals {
    pub(crate) candidates: Vec<Candidate>,
    /// The candidates that are decided without a search.
    pub(crate) tally: SearchStats,
    /// The violations in the observed order itself.
    pub(crate) observed: Vec<ObservedViolation>,
    /// Why the check does not apply to the trace, so that silence means nothing.
    pub(crate) nothing: Option<String>,
    /// Why nothing is proved even if every candidate is decided.
    pub(crate) caveat: Option<&'static str>,
    /// Notes for the user.
    pub(crate) notes: Vec<String>,
    /// Statistics besides those of the tally.
    pub(crate) stats: Vec<(&'static str, Stat)>,
}

/// The check's description of a finding.
#[derive(Debug)]
pub(crate) struct Description {
    /// What goes wrong ...
    pub(crate) verdict: Verdict,
    /// ... in one sentence.
    pub(crate) message: String,
    /// The events that take part.
    pub(crate) sites: Vec<Site>,
    /// The subjects of the finding as a whole.
    pub(crate) about: Vec<Subject>,
    /// Details that help to understand it.
    pub(crate) details: Vec<Detail>,
}

impl Description {
    /// The finding, located by an event or by a witness.
    fn finding(
        self,
        kind: FindingKind,
        check: &'static str,
        event: Option<u64>,
        witness: Option<Witness>,
    ) -> Finding {
        let Description { verdict, message, sites, about, details } = self;
        Finding {
            fingerprint: None,
            kind,
            analysis: check,
            property: check.to_owned(),
            verdict,
            message,
            event,
            witness,
            sites,
            about,
            details,
            shown_by: None,
            schedule: None,
            confirmation: None,
        }
    }
}

/// A violation in the observed order.
#[derive(Debug)]
pub(crate) struct ObservedViolation {
    /// The event at which it occurs.
    pub(crate) event: u32,
    pub(crate) description: Description,
}

impl ObservedViolation {
    fn finding(self, check: &'static str) -> Finding {
        self.description.finding(FindingKind::Observed, check, Some(self.event.into()), None)
    }
}

/// One kind of failure.
pub(crate) trait Check {
    /// Its entry in the list of checks.
    fn kind(&self) -> &'static CheckKind;

    /// The terms of its statement.
    fn words(&self) -> Words;

    /// The budgets with which its candidates are tried.
    fn budgets(&self) -> &'static [Budget];

    /// Processes the next event of the trace, with the locks held just before it.
    fn event(&mut self, index: u32, event: &Event, lock_state: &LockState);

    /// How many bytes it holds that grow with sets of locks.
    fn bytes(&self) -> usize {
        0
    }

    /// The candidates, at the end of the trace.
    fn propose(&mut self, context: &Context<'_>) -> Result<Proposals, AnalysisError>;

    /// For candidates that were tried without a result: chains of events in which a search that
    /// keeps the order of critical sections may still find them.
    fn chains(&mut self, _: &Context<'_>, _: &Tried) -> Vec<Chains> {
        Vec::new()
    }

    /// The violations in the observed order that were not found otherwise.
    fn observed(
        &mut self,
        _: &Context<'_>,
        _: &Tried,
    ) -> Result<Vec<ObservedViolation>, AnalysisError> {
        Ok(Vec::new())
    }

    /// Notes for the user, after all candidates were tried.
    fn notes(&self, _: &Context<'_>, _: &Tried) -> Vec<String> {
        Vec::new()
    }

    /// Checks what a reordering must show besides reaching the goal, after the judge has replayed
    /// it. `order` holds the events after the observed prefix.
    fn confirm(
        &self,
        context: &Context<'_>,
        found: &Found,
        order: &[u64],
        seen: &Seen<'_>,
    ) -> Result<(), String>;

    /// Whether the finding happened in the observed order already, apart from events that are left
    /// out. Then it is reported as observed, not as predicted.
    fn is_observed(&self, _: &Found) -> bool {
        false
    }

    /// Describes a finding.
    fn describe(&self, context: &Context<'_>, found: &Found) -> Description;

    /// A key by which equal findings are merged, and the event to list with the first of them;
    /// `None` if it is never merged.
    fn joins(&self, _: &Context<'_>, _: &Found) -> Option<([u32; 4], u32)> {
        None
    }
}

/// A check that can be selected by name.
#[derive(Debug)]
pub struct CheckKind {
    /// Its name, by which [`AnalysisInfo::of`](crate::info::AnalysisInfo::of) describes it.
    pub name: &'static str,
    new: fn(&Options) -> Box<dyn Check>,
}

/// Every check.
pub const CHECKS: &[CheckKind] =
    &[race::KIND, deadlock::KIND, atomicity::KIND, atomicity::LIKELY, lifetime::KIND];

/// The fraction of its time that there is for the candidates of each check, however long it took to
/// propose them.
const TRYING_SHARE: u32 = 4;

/// How many events are read between two looks at the memory.
const WEIGHED_EVERY: usize = 64;

/// The selected checks, in one pass over the trace.
pub struct Checks {
    /// The name of the first check.
    name: &'static str,
    options: Options,
    checks: Vec<Box<dyn Check>>,
    requirements: Requirements,
    lock_state: LockState,
    /// The number of events that are analysed.
    events: usize,
    /// The number of variables in them.
    variables: usize,
    /// Whether the trace was longer than what is kept.
    is_cut: bool,
    /// Whether nothing is wanted but verdicts on some candidates.
    deciding: Option<Deciding>,
}

impl Checks {
    /// Prepares all checks in the list.
    pub fn new(kinds: &[&'static CheckKind], options: Options) -> Checks {
        let checks = kinds.iter().map(|kind| (kind.new)(&options)).collect();
        Checks {
            name: kinds.first().map_or("", |kind| kind.name),
            options,
            checks,
            requirements: Requirements::default(),
            lock_state: LockState::default(),
            events: 0,
            variables: 0,
            is_cut: false,
            deciding: None,
        }
    }

    /// Makes the checks decide some candidates, and do nothing else.
    pub(crate) fn decide(mut self, deciding: Option<Deciding>) -> Checks {
        self.deciding = deciding;
        self
    }

    /// How many bytes all events so far need. Sets of few locks take next to nothing, but those of
    /// thousands do. Checks make more of them when they have read all: of each as much again.
    fn weight(&self) -> usize {
        let of_checks: usize = self.checks.iter().map(|check| check.bytes()).sum();
        self.events * BYTES_PER_EVENT
            + self.variables * BYTES_PER_VARIABLE
            + 2 * self.lock_state.locksets.bytes()
            + of_checks
    }
}

impl Analysis for Checks {
    fn name(&self) -> &'static str {
        self.name
    }

    fn events(&mut self, pass: &mut Pass<'_>) -> Result<Flow, AnalysisError> {
        let Pass { first, batch, .. } = pass;
        let first = *first;
        let most = self.options.memory / 4 * 3;
        for (i, event) in batch.events.iter().enumerate() {
            if event.op().target_kind() == TargetKind::Var {
                self.variables = self.variables.max(event.var().index() + 1);
            }
            // A prefix of a run is a run, so findings in it are valid.
            self.is_cut = self.events >= self.options.trace
                || i.is_multiple_of(WEIGHED_EVERY) && self.weight() > most
                || self.requirements.push(event, &batch.pool).is_err();
            if self.is_cut {
                return Ok(Flow::Stop);
            }
            self.events += 1;
            let index = (first + i as u64) as u32;
            for check in &mut self.checks {
                check.event(index, event, &self.lock_state);
            }
            self.lock_state.event(index, event);
        }
        Ok(Flow::Continue)
    }

    fn finish(&mut self, end: &mut End<'_, '_>) -> Result<Vec<Analysed>, AnalysisError> {
        let kept = end.whole()?;
        // Other analyses may keep more events.
        match kept.trace.events.len() > self.events {
            true => self.conclude(&Kept::new(&kept.beginning(self.events)), end),
            false => self.conclude(kept, end),
        }
    }

    fn bytes(&self) -> usize {
        self.weight() - self.events * size_of::<Event>()
    }

    fn searches(&self) -> usize {
        self.checks.len()
    }

    fn kept_events(&self) -> Option<u64> {
        Some(if self.is_cut { self.events as u64 } else { u64::MAX })
    }
}

impl Checks {
    /// Runs all checks on the events so far.
    fn conclude(
        &mut self,
        kept: &Kept<'_>,
        end: &mut End<'_, '_>,
    ) -> Result<Vec<Analysed>, AnalysisError> {
        // Free the requirements as soon as the checks are done.
        let mut requirements = std::mem::take(&mut self.requirements);
        requirements.finish();
        let context = Context {
            trace: kept.trace,
            requirements: &requirements,
            options: &self.options,
            locksets: &self.lock_state.locksets,
            is_cut: self.is_cut,
            room: self.options.memory.saturating_sub(self.weight()),
        };
        let time = end.room.time_within(self.options.time);
        let mut shares = Shares::new(time, self.checks.len());
        let mut analysed = Vec::new();
        for check in &mut self.checks {
            match run_check(
                &mut **check,
                &context,
                self.deciding.as_ref(),
                shares.next(),
                kept,
                &mut end.out,
            ) {
                Ok(one) => analysed.extend(one),
                // An internal error of one check does not lose the results of the others.
                Err(AnalysisError::Mistake(why)) => {
                    analysed.push(Analysed::mistake(check.kind().name, None, &why));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(analysed)
    }
}

/// Runs one check. `None` if it does not apply to the trace and was not selected by name.
fn run_check(
    check: &mut dyn Check,
    context: &Context<'_>,
    deciding: Option<&Deciding>,
    time: Option<Duration>,
    kept: &Kept<'_>,
    out: &mut Out<'_>,
) -> Result<Option<Analysed>, AnalysisError> {
    let name = check.kind().name;
    let start = Instant::now();
    let cut = || {
        let n = context.trace.events.len();
        format!("only the first {n} events were looked at: allow more with --max-memory")
    };
    let Proposals { candidates, mut tally, observed, nothing, caveat, mut notes, mut stats } =
        check.propose(context)?;
    if nothing.is_some() && context.options.only_relevant && !context.is_cut {
        return Ok(None);
    }
    let candidates = tries::in_trying_order(candidates);
    let budgets = check.budgets();
    // On a busy machine the passes over a long trace can use up the time.
    let left = |time: Duration| time.saturating_sub(start.elapsed()).max(time / TRYING_SHARE);
    let until = || time.map(|time| Instant::now() + left(time));
    if let Some(deciding) = deciding {
        let part = (0..candidates.len()).filter(|&at| deciding.part.has(at));
        let verdicts = tries::decide(context, &candidates, part, budgets, until());
        deciding.keep(name, &candidates, verdicts);
        return Ok(None);
    }
    // What one thread did alone may have been left out.
    let is_empty = context.trace.events.is_empty() && !context.is_cut;
    let alone = || is_empty.then(|| "no step of the run concerns more than one thread".into());
    if let Some(why) = nothing.or_else(alone) {
        return Ok(Some(Analysed {
            name,
            property: None,
            outcome: match context.is_cut {
                true => Outcome::MemoryLimit,
                false => Outcome::NothingRelevant,
            },
            conclusion: Conclusion::Other,
            statement: match context.is_cut {
                true => format!("nothing to look at: {why}; {}", cut()),
                false => format!("nothing to look at: {why}"),
            },
            notes,
            stats,
        }));
    }
    tally.found += observed.len() as u64;
    let is_attempt =
        |event: &Event| matches!(event.op(), Op::Try | Op::TryFor | Op::Busy | Op::BusyShared);
    tally.has_attempts = context.trace.events.iter().any(is_attempt);
    tally.caveat = match context.is_cut {
        true => {
            notes.push(cut());
            Some("the rest of the trace was not looked at: allow more with --max-memory")
        }
        false => caveat,
    };
    for one in observed {
        if out.finding(one.finding(name)) == Flow::Stop {
            break;
        }
    }
    let known = context.options.decided.of(name, &candidates);
    let until = until();
    let mut tried = tries::try_all(context, candidates, known, budgets, until, &mut tally);
    let chains = check.chains(context, &tried);
    tries::try_chains(context, &chains, until, &mut tried);
    tried.count(&mut tally);
    notes.extend(check.notes(context, &tried));
    let besides = check.observed(context, &tried)?;
    tally.found += besides.len() as u64;
    let conditional = std::mem::take(&mut tried.conditional);
    let found = tried.found;
    let tried_found = found.len() as u64;
    if !found.is_empty() {
        let findings = confirm::confirm(context, kept.judge(), check, found)?;
        tally.found -= tried_found - findings.len() as u64;
        for finding in findings {
            if out.finding(finding) == Flow::Stop {
                break;
            }
        }
    }
    for one in besides {
        if out.finding(one.finding(name)) == Flow::Stop {
            break;
        }
    }
    if !conditional.is_empty() {
        let found =
            confirm::conditional(context, kept.judge(), check, conditional, MOST_CONDITIONAL)?;
        for finding in found {
            if out.finding(finding) == Flow::Stop {
                break;
            }
        }
    }
    stats.extend(tally.stats());
    Ok(Some(Analysed {
        name,
        property: None,
        outcome: match context.is_cut {
            true => Outcome::MemoryLimit,
            false => tally.outcome(),
        },
        conclusion: Conclusion::Other,
        statement: tally.statement(check.words()),
        notes,
        stats,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_are_told_apart() {
        for (i, kind) in CHECKS.iter().enumerate() {
            assert!(CHECKS[..i].iter().all(|other| other.name != kind.name));
            assert_eq!((kind.new)(&Options::default()).kind().name, kind.name);
        }
    }
}
