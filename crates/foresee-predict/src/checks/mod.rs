//! Built-in checks: what goes wrong in some schedule, without a specification.
//!
//! Every check comes down to one question about correct reorderings, a [goal](crate::reorder::Goal):
//! can these events have happened in this order, and then those be the next of their threads? A race
//! asks for two accesses that are both next, a deadlock for a circle of requests. So all checks
//! share one pass over the trace, which is kept, one search, one ladder of efforts, one way to
//! count what became of each candidate, and one judge.
//!
//! | file | what it does |
//! |---|---|
//! | `scene`, `locksets` | which locks each thread holds, as the trace goes by |
//! | `attempt` | how hard one question is tried |
//! | `tries` | candidates, on all cores |
//! | `tally` | what became of every candidate, and what may be said of the rest |
//! | `confirm` | the last word on each finding |
//! | `pointers` | the least tuple of whole chains of events, with sections in their order |
//! | `tell` | events, locks and threads in reports |
//! | `glob`, `suppress` | names with holes, and findings that are not wanted |
//! | `atomicity` | regions that can be disturbed |
//! | `order` | objects that can be used too late or too early |
//!
//! # Guarantees
//! Each finding is a correct reordering of the run that was replayed by the judge. That nothing is
//! possible is said only if every candidate is proved impossible; everything else is counted as not
//! found, undecided or not tried. What is impossible only because a read would have to see another
//! value is counted apart, and listed as conditional. Memory grows with the trace, by some forty
//! bytes an event, as measured in `benches/results/checks.md`.

mod atomicity;
mod attempt;
mod confirm;
mod deadlock;
mod glob;
mod locksets;
mod order;
mod pointers;
mod race;
mod scene;
mod suppress;
mod tally;
mod tell;
mod tries;

use std::time::{Duration, Instant};

use foresee_causality::judge::{Reads, Seen};
use foresee_trace::{
    Event, Finding, FindingKind, Flow, Outcome, Site, Subject, Trace, Verdict, Witness,
};

use crate::analysis::{Analysed, Analysis, AnalysisError, Conclusion, End, Out, Pass, Stat};
use crate::kept::Kept;
use crate::reorder::Requirements;
use attempt::Rung;
pub(crate) use locksets::Hold;
pub use race::{Algorithm, MemoryModel};
use scene::Scene;
pub(crate) use scene::{given, taken};
use tally::{Tally, Words};
use tries::{Candidate, Chains, Found, Tried};

pub use atomicity::AtomicityOptions;
pub use glob::Glob;
pub use suppress::{Suppression, Suppressions};

/// How many bytes [`Checks`] keeps per event, at most: the event, its requirements and its place in
/// the [`Scene`].
pub(crate) const BYTES_PER_EVENT: usize = 48;

/// How many findings that hang on what reads see are listed; all are counted.
const MOST_CONDITIONAL: usize = 8;

/// How far to search.
#[derive(Clone, Debug)]
pub struct Options {
    /// What the last read of a thread may see.
    pub reads: Reads,
    /// How far back from the first event of a candidate events may change.
    pub look_back: u32,
    /// How many tuples of events are tried for one tuple of threads and places.
    pub tries: usize,
    /// How many are tried for one tuple of places.
    pub tries_per_place: usize,
    /// How many steps one search may take.
    pub work: u64,
    /// How many cores to use.
    pub cores: usize,
    /// How races are looked for.
    pub algorithm: Algorithm,
    /// Which atomics order anything.
    pub memory_model: MemoryModel,
    /// Whether checks that have nothing to look at in the trace are passed over, because nobody
    /// asked for them by name.
    pub only_relevant: bool,
    /// How long all searches together may take.
    pub time: Option<Duration>,
    /// How many events the trace may have, all of which are kept.
    pub trace: usize,
    /// What counts as an atomic region.
    pub atomicity: AtomicityOptions,
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
            atomicity: AtomicityOptions::default(),
        }
    }
}

/// What checks know when the trace has ended.
pub(crate) struct Context<'c> {
    pub(crate) trace: &'c Trace,
    pub(crate) requirements: &'c Requirements,
    pub(crate) options: &'c Options,
    /// Whether the trace goes on behind what is kept of it.
    pub(crate) is_cut: bool,
}

/// What a check wants to have tried, and what it knows already.
#[derive(Debug, Default)]
pub(crate) struct Proposal {
    pub(crate) candidates: Vec<Candidate>,
    /// The candidates that are settled without a search.
    pub(crate) tally: Tally,
    /// What goes wrong in the observed order itself.
    pub(crate) observed: Vec<Witnessed>,
    /// Why there is nothing to look at, so that silence means nothing.
    pub(crate) nothing: Option<String>,
    /// Why nothing is proved even if every candidate is settled.
    pub(crate) caveat: Option<&'static str>,
    /// What else the user should know.
    pub(crate) notes: Vec<String>,
    /// Figures besides those of the tally.
    pub(crate) stats: Vec<(&'static str, Stat)>,
}

/// What a check says of something that it found.
#[derive(Debug)]
pub(crate) struct Told {
    /// What goes wrong ...
    pub(crate) verdict: Verdict,
    /// ... in one sentence.
    pub(crate) message: String,
    /// The events that it consists of.
    pub(crate) sites: Vec<Site>,
    /// What it is about as a whole.
    pub(crate) about: Vec<Subject>,
    /// What helps people to understand it.
    pub(crate) details: Vec<(String, String)>,
}

impl Told {
    /// The finding of a check that shows itself at an event, or by a witness.
    fn finding(
        self,
        kind: FindingKind,
        check: &'static str,
        event: Option<u64>,
        witness: Option<Witness>,
    ) -> Finding {
        let Told { verdict, message, sites, about, details } = self;
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
        }
    }
}

/// Something that goes wrong in the observed order.
#[derive(Debug)]
pub(crate) struct Witnessed {
    /// The event at which it does.
    pub(crate) event: u32,
    pub(crate) told: Told,
}

impl Witnessed {
    fn finding(self, check: &'static str) -> Finding {
        self.told.finding(FindingKind::Observed, check, Some(self.event.into()), None)
    }
}

/// One kind of thing that can go wrong.
pub(crate) trait Check {
    /// Its entry in the list of checks.
    fn kind(&self) -> &'static CheckKind;

    /// What it looks for, in the words of its statement.
    fn words(&self) -> Words;

    /// How hard its candidates are tried.
    fn rungs(&self) -> &'static [Rung];

    /// The next event of the trace, with how things are just before it.
    fn event(&mut self, index: u32, event: &Event, scene: &Scene);

    /// The trace has ended: what could go wrong in it?
    fn propose(&mut self, context: &Context<'_>) -> Result<Proposal, AnalysisError>;

    /// What was tried without a result: whole chains of events in which it may be found all the
    /// same, with sections in their order.
    fn chains(&mut self, _: &Context<'_>, _: &Tried) -> Vec<Chains> {
        Vec::new()
    }

    /// What goes wrong in the observed order, besides what was found otherwise.
    fn observed(&mut self, _: &Context<'_>, _: &Tried) -> Result<Vec<Witnessed>, AnalysisError> {
        Ok(Vec::new())
    }

    /// What else the user should know, once all is tried.
    fn notes(&self, _: &Context<'_>, _: &Tried) -> Vec<String> {
        Vec::new()
    }

    /// Whether a reordering that the judge has replayed shows what was looked for, as far as that is
    /// more than reaching the goal. `order` is what comes after the observed beginning.
    fn confirm(
        &self,
        context: &Context<'_>,
        found: &Found,
        order: &[u64],
        seen: &Seen<'_>,
    ) -> Result<(), String>;

    /// Whether what was found happened in the observed order already, events that are left out
    /// aside. Then it is reported as observed, and is no prediction.
    fn is_observed(&self, _: &Found) -> bool {
        false
    }

    /// What happens, and what helps to understand it.
    fn describe(&self, context: &Context<'_>, found: &Found) -> Told;

    /// What makes it one finding with others that are alike, and the event to list with the first
    /// of them; nothing if it is a finding of its own.
    fn joins(&self, _: &Context<'_>, _: &Found) -> Option<([u32; 4], u32)> {
        None
    }
}

/// A check that can be asked for by name.
#[derive(Debug)]
pub struct CheckKind {
    /// Its name, by which [`AnalysisInfo::of`](crate::info::AnalysisInfo::of) describes it.
    pub name: &'static str,
    new: fn(&Options) -> Box<dyn Check>,
}

/// Every check.
pub const CHECKS: &[CheckKind] =
    &[race::KIND, deadlock::KIND, atomicity::KIND, atomicity::LIKELY, order::KIND];

/// The checks that were asked for, in one pass over the trace.
pub struct Checks {
    options: Options,
    checks: Vec<Box<dyn Check>>,
    requirements: Requirements,
    scene: Scene,
    /// How many of the first events are analysed.
    events: usize,
    /// There was no room for more of the trace.
    is_cut: bool,
}

impl Checks {
    /// Makes ready to look for everything in the list.
    pub fn new(kinds: &[&'static CheckKind], options: Options) -> Checks {
        let checks = kinds.iter().map(|kind| (kind.new)(&options)).collect();
        Checks {
            options,
            checks,
            requirements: Requirements::default(),
            scene: Scene::default(),
            events: 0,
            is_cut: false,
        }
    }
}

impl Analysis for Checks {
    fn events(&mut self, pass: &mut Pass<'_>) -> Result<Flow, AnalysisError> {
        let Pass { first, batch, .. } = pass;
        let first = *first;
        for (i, event) in batch.events.iter().enumerate() {
            // The beginning of a run is a run, and what can happen in it can happen.
            self.is_cut = self.events >= self.options.trace
                || self.requirements.push(event, &batch.pool).is_err();
            if self.is_cut {
                return Ok(Flow::Stop);
            }
            self.events += 1;
            let index = (first + i as u64) as u32;
            for check in &mut self.checks {
                check.event(index, event, &self.scene);
            }
            self.scene.event(index, event);
        }
        Ok(Flow::Continue)
    }

    fn finish(&mut self, end: &mut End<'_, '_>) -> Result<Vec<Analysed>, AnalysisError> {
        let kept = end.whole()?;
        // Others may have room for more.
        match kept.trace.events.len() > self.events {
            true => self.conclude(&Kept::new(&kept.beginning(self.events)), &mut end.out),
            false => self.conclude(kept, &mut end.out),
        }
    }

    fn kept_events(&self) -> u64 {
        if self.is_cut { self.events as u64 } else { u64::MAX }
    }
}

impl Checks {
    /// Makes all checks on the events that were taken.
    fn conclude(
        &mut self,
        kept: &Kept<'_>,
        out: &mut Out<'_>,
    ) -> Result<Vec<Analysed>, AnalysisError> {
        // What is kept is needed no longer than this takes.
        let mut requirements = std::mem::take(&mut self.requirements);
        requirements.finish();
        let context = Context {
            trace: kept.trace,
            requirements: &requirements,
            options: &self.options,
            is_cut: self.is_cut,
        };
        let until = self.options.time.map(|time| Instant::now() + time);
        let mut analysed = Vec::new();
        for check in &mut self.checks {
            match look(&mut **check, &context, until, kept, out) {
                Ok(one) => analysed.extend(one),
                // One check's mistake does not cost the others their answers.
                Err(AnalysisError::Mistake(why)) => {
                    analysed.push(Analysed::mistake(check.kind().name, None, &why));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(analysed)
    }
}

/// Makes one check. `None` if there is nothing to look at and nobody asked for it.
fn look(
    check: &mut dyn Check,
    context: &Context<'_>,
    until: Option<Instant>,
    kept: &Kept<'_>,
    out: &mut Out<'_>,
) -> Result<Option<Analysed>, AnalysisError> {
    let name = check.kind().name;
    let cut = || {
        let n = context.trace.events.len();
        format!("only the first {n} events were looked at: allow more with --max-memory")
    };
    let Proposal { candidates, mut tally, observed, nothing, caveat, mut notes, mut stats } =
        check.propose(context)?;
    if nothing.is_some() && context.options.only_relevant && !context.is_cut {
        return Ok(None);
    }
    if let Some(why) = nothing {
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
    let rungs = check.rungs();
    let mut tried = tries::try_all(context, candidates, rungs, until, &mut tally);
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
        outcome: match context.trace.events.is_empty() {
            _ if context.is_cut => Outcome::MemoryLimit,
            true => Outcome::NothingRelevant,
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
