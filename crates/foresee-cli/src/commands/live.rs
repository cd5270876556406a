//! The analysis of a program that is still running: the same searches as `foresee check` makes, over
//! a trace that grows.
//!
//! A check knows all names of the trace, and the initial values that it tells, before it begins.
//! Here they turn up along the way. So the searches begin when everything that the specification
//! needs is known; and when a name turns up later that changes what the specification means, they
//! begin anew, on what was put aside so far. What is found is therefore what a check of the whole
//! trace would find, and nothing is told that a later name could turn into a false alarm, unless
//! that name changes what was asked: then what was told is withdrawn.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use anyhow::Context;
use foresee_causality::judge::Judge;
use foresee_observe::Program;
use foresee_predict::{Court, Unconfirmed, learn_initial_values};
use foresee_report::Report;
use foresee_spec::ast::Spec;
use foresee_spec::{Diagnostic, Interest, Resolved, resolve};
use foresee_trace::{
    Batch, ErrorKind, EventSource, Finding, FindingSink, Flow, Mode, Names, Outcome, Position,
    ReadError, Remarks, Validated,
};

use crate::args::AnalysisArgs;
use crate::commands::check::{Part, Passed, built_in, conclude, load_first, needed_events, stands};
use crate::commands::query::Answered;
use crate::commands::thinned;
use crate::{bug, checks, specs};

/// What an event takes in memory when a witness is judged.
const BYTES_AN_EVENT: u64 = 24;

/// Told of findings as they are made, and when one no longer stands.
pub(crate) trait Listener {
    /// Something was found.
    fn found(&mut self, finding: &Finding);
    /// A name turned up that changes the question to which this was an answer.
    fn withdrawn(&mut self, finding: &Finding);
}

/// What came of a program.
pub(crate) struct Examined {
    pub(crate) report: Report,
    /// What should be known of the specifications, now that all names are.
    pub(crate) warnings: Vec<(usize, Vec<Diagnostic>)>,
}

/// Follows a program to its end.
pub(crate) fn examine(
    args: &AnalysisArgs,
    sources: &[specs::Source],
    program: &Arc<Program>,
    listener: &mut dyn Listener,
) -> anyhow::Result<Examined> {
    let specs = sources.iter().map(specs::parse_again).collect::<anyhow::Result<Vec<Spec>>>()?;
    let interests = specs.iter().map(Interest::new).collect();
    let shared = Rc::new(Shared {
        specs,
        interests: RefCell::new(interests),
        resolved: RefCell::default(),
        turned_up: RefCell::default(),
    });
    let told = RefCell::new(Told { listener, findings: Vec::new() });
    let mut attempt =
        Attempt { args, sources, program, shared, names: Names::default(), told: &told };
    let mut before = Vec::new();
    loop {
        let result = attempt.run(&before);
        let Some(names) = attempt.shared.turned_up.take() else { return result };
        attempt.names = names;
        before.append(&mut told.borrow_mut().findings);
    }
}

/// What has been told.
struct Told<'a> {
    listener: &'a mut dyn Listener,
    findings: Vec<Finding>,
}

/// What the sources of one program have in common.
struct Shared {
    specs: Vec<Spec>,
    interests: RefCell<Vec<Interest>>,
    /// What the specifications mean at present.
    resolved: RefCell<Vec<Resolved>>,
    /// All names, once there is one that changes that.
    turned_up: RefCell<Option<Names>>,
}

/// A source that ends with an error as soon as a name turns up that changes the question.
struct Watching {
    inner: Box<dyn EventSource>,
    shared: Rc<Shared>,
    names: usize,
}

impl Watching {
    fn look(&mut self) -> Result<(), ReadError> {
        let names = self.inner.names();
        let count = names.vars.len() + names.locks.len() + names.threads.len() + names.syms.len();
        if std::mem::replace(&mut self.names, count) == count {
            return Ok(());
        }
        let Shared { specs, interests, resolved, turned_up } = &*self.shared;
        let mut changed = false;
        for ((spec, interest), meaning) in
            specs.iter().zip(interests.borrow_mut().iter_mut()).zip(resolved.borrow().iter())
        {
            let touch = interest.examine(names);
            changed |= touch.texts || touch.names && resolve(spec, names).resolved != *meaning;
        }
        if !changed {
            return Ok(());
        }
        *turned_up.borrow_mut() = Some(names.clone());
        Err(ReadError::new(ErrorKind::Io, Position::Unknown, "a name turned up"))
    }
}

impl EventSource for Watching {
    fn next_batch(&mut self, batch: &mut Batch) -> Result<bool, ReadError> {
        let more = self.inner.next_batch(batch)?;
        self.look()?;
        Ok(more)
    }
    fn names(&self) -> &Names {
        self.inner.names()
    }
    fn names_mut(&mut self) -> &mut Names {
        self.inner.names_mut()
    }
    fn position(&self, i: usize) -> Position {
        self.inner.position(i)
    }
    fn remarks(&self) -> &Remarks {
        self.inner.remarks()
    }
}

struct Attempt<'a, 'l> {
    args: &'a AnalysisArgs,
    sources: &'a [specs::Source],
    program: &'a Arc<Program>,
    shared: Rc<Shared>,
    /// The names that are known.
    names: Names,
    told: &'a RefCell<Told<'l>>,
}

impl Attempt<'_, '_> {
    fn follow(&self) -> Result<Box<dyn EventSource>, ReadError> {
        let (inner, shared) = (self.program.follow()?, Rc::clone(&self.shared));
        Ok(Box::new(Watching { inner, shared, names: 0 }))
    }

    /// One pass over the trace, as far as nothing turns up. `before` was told in an earlier one.
    fn run(&mut self, before: &[Finding]) -> anyhow::Result<Examined> {
        let resolutions: Vec<_> =
            self.shared.specs.iter().map(|spec| resolve(spec, &self.names)).collect();
        *self.shared.resolved.borrow_mut() =
            resolutions.iter().map(|r| r.resolved.clone()).collect();
        let parsed = self.sources.iter().zip(&self.shared.specs);
        for ((source, spec), resolution) in parsed.zip(&resolutions) {
            if resolution.diagnostics.iter().any(Diagnostic::is_error) {
                // Names are missing without which nothing can be said; they may still come. If they
                // do not, advice is given from all names that there are.
                let resolution = resolve(spec, &self.wait()?);
                return Err(specs::BadSpec::new(source, &resolution.diagnostics).into());
            }
        }
        let specs = self.sources.iter().zip(&self.shared.specs);
        thinned::ensure_whole(self.program.order(), &mut self.follow()?, specs)?;
        let mut analyses = built_in(self.args, &checks::atomics(self.shared.specs.iter()))?;
        let mut parts = Vec::new();
        for ((source, spec), resolution) in
            self.sources.iter().zip(&self.shared.specs).zip(&resolutions)
        {
            let (mut spec, resolved) = (spec.clone(), &resolution.resolved);
            let properties = specs::compile_again(source, &spec)?;
            // This waits for the first access of each variable whose initial value nobody gives.
            let open = || self.follow();
            learn_initial_values(&mut spec, &properties, resolved, &self.names, open)?;
            let names = &self.names;
            let (meaning, order) = ((&spec, resolved), self.program.order());
            parts.extend(Part::all(source, meaning, names, order, self.args, &mut analyses)?);
        }
        let mut source = Validated::new(self.follow()?, Mode::Reject);
        let live = Live { attempt: self, parts: &parts, before, failure: RefCell::default() };
        let mut sink = Telling { live: &live, findings: Vec::new() };
        let summary = foresee_predict::run(&mut source, &mut analyses, &mut sink, &mut |events| {
            live.confirm_new(events);
        });
        let findings = sink.findings;
        let failure = live.failure.take();
        let mut summary = summary?;
        // If nobody wanted more, the program goes on all the same, and is kept if that is asked for.
        let mut batch = Batch::default();
        while let Ok(true) = source.next_batch(&mut batch) {}
        if let Some(failure) = failure {
            return Err(failure);
        }
        let has_room = self.can_judge(needed_events(&parts).unwrap_or(summary.events));
        if !has_room {
            self.give_up_claims(&parts, &mut summary.analysed);
        }
        let passed = Passed { summary, findings, answered: Answered::default() };
        let open = || Ok(Validated::new(self.program.stored()?, Mode::Reject));
        let mut report = conclude(passed, &parts, source.names(), &self.program.name, &open)?;
        self.settle(before, &mut report);
        let diagnostics = resolutions.into_iter().map(|r| r.diagnostics).enumerate();
        Ok(Examined { report, warnings: diagnostics.filter(|(_, all)| !all.is_empty()).collect() })
    }

    /// Reads on until a name turns up, or to the end; the names by then.
    fn wait(&self) -> Result<Names, ReadError> {
        let (mut source, mut batch) = (self.follow()?, Batch::default());
        while source.next_batch(&mut batch)? {}
        Ok(source.names().clone())
    }

    /// Whether the first events can be loaded to judge a witness.
    fn can_judge(&self, events: u64) -> bool {
        let memory = (self.args.max_memory as u64).saturating_mul(1 << 20);
        self.program.is_all_stored() && events.saturating_mul(BYTES_AN_EVENT) <= memory
    }

    /// What cannot be confirmed is not printed, and not passed over in silence.
    fn give_up_claims(&self, parts: &[Part], analysed: &mut [foresee_predict::Analysed]) {
        let why = match self.program.is_all_stored() {
            true => "the trace is too long to confirm that in the memory that may be taken",
            false => "the trace was too long to be put aside, so that nothing can be confirmed",
        };
        let mut gave_up = Vec::new();
        for part in parts {
            let claims = &part.claims;
            let properties = claims.predictions.take().into_iter().map(|claim| claim.property);
            let matched = claims.matches.take().into_iter().map(|claim| claim.property);
            let reordered = claims.reordered.take().into_iter().map(|claim| claim.property);
            let all = properties.chain(matched).chain(reordered);
            gave_up.extend(all.map(|i| part.spec.properties[i].name.name.clone()));
        }
        let is_given_up = |property: &Option<String>| {
            property.as_ref().is_some_and(|property| gave_up.contains(property))
        };
        for one in analysed.iter_mut().filter(|one| is_given_up(&one.property)) {
            one.outcome = Outcome::MemoryLimit;
            one.notes.push(format!("{why}; check the kept trace with more: --max-memory"));
        }
    }

    /// What was told while the program ran stands; what the last word leaves out is added, and what
    /// answers another question by now is withdrawn.
    fn settle(&self, before: &[Finding], report: &mut Report) {
        let is_same = |a: &Finding, b: &Finding| {
            a.property == b.property && (a.kind, a.event) == (b.kind, b.event)
        };
        let mut told = self.told.borrow_mut();
        for finding in &told.findings {
            let is_there = report.findings.iter().any(|f| f.property == finding.property);
            if !is_there && finding.witness.is_some() {
                report.findings.push(finding.clone());
                report.witnesses.push(None);
            }
        }
        for finding in before {
            let stands = report.findings.iter().chain(&told.findings);
            if !stands.into_iter().any(|f| is_same(f, finding) || f.property == finding.property) {
                told.listener.withdrawn(finding);
            }
        }
    }
}

/// Findings on their way out.
struct Live<'a, 'l> {
    attempt: &'a Attempt<'a, 'l>,
    parts: &'a [Part],
    before: &'a [Finding],
    failure: RefCell<Option<anyhow::Error>>,
}

impl Live<'_, '_> {
    fn tell(&self, finding: &Finding) {
        if !stands(finding, self.attempt.program.order()) {
            return;
        }
        let mut told = self.attempt.told.borrow_mut();
        let is_same = |other: &Finding| {
            (other.kind, &other.property, other.event, &other.details)
                == (finding.kind, &finding.property, finding.event, &finding.details)
        };
        // It was told before a name turned up that has nothing to do with it.
        if !self.before.iter().any(is_same) {
            told.listener.found(finding);
        }
        told.findings.push(finding.clone());
    }

    /// Confirms what was foreseen in the latest events, on the events so far.
    fn confirm_new(&self, events: u64) {
        let is_new = |part: &Part| {
            let (predictions, matches) = &part.claims.early;
            !predictions.borrow().is_empty() || !matches.borrow().is_empty()
        };
        // If there is no room now, the last word will say so.
        if self.parts.iter().any(is_new)
            && self.failure.borrow().is_none()
            && self.attempt.can_judge(events)
            && let Err(error) = self.confirm_on(events)
        {
            *self.failure.borrow_mut() = Some(error);
        }
    }

    fn confirm_on(&self, events: u64) -> anyhow::Result<()> {
        let stored = self.attempt.program.stored()?;
        let whole = load_first(&mut Validated::new(stored, Mode::Reject), events)
            .context("what was put aside of the trace")?;
        let judge = Judge::new(&whole);
        for part in self.parts {
            let court = Court::new(&part.spec, &part.resolved, &whole, &judge);
            for claim in part.claims.early.0.take() {
                match court.confirm(&claim) {
                    Ok(finding) => self.tell(&finding),
                    // There was no room to look for it again; the last word is still to come.
                    Err(Unconfirmed::Lost(_)) => {}
                    Err(error) => bug::report(&error, part.name_of(claim.property), &claim, &whole),
                }
            }
            for claim in part.claims.early.1.take() {
                match court.confirm_match(&claim) {
                    Ok(finding) => self.tell(&finding),
                    Err(error) => bug::report(&error, part.name_of(claim.property), &claim, &whole),
                }
            }
        }
        Ok(())
    }
}

/// Where analyses put their findings.
struct Telling<'a, 'l> {
    live: &'a Live<'a, 'l>,
    findings: Vec<Finding>,
}

impl FindingSink for Telling<'_, '_> {
    fn finding(&mut self, finding: Finding) -> Flow {
        self.live.tell(&finding);
        self.findings.push(finding);
        Flow::Continue
    }
}
