//! A session with a trace that is still being made: the same searches as in a whole trace.
//!
//! For a whole trace, all names are known before the search begins, and so are the initial values
//! in it. Here they appear over time. So the searches begin when everything that the specifications
//! need is known; and when a later name changes the meaning of a specification, they restart on the
//! events stored so far. The findings are therefore those of the whole trace, and nothing is
//! reported that a later name could turn into a false alarm, unless that name changes the question:
//! then the report is withdrawn.

use std::cell::RefCell;
use std::time::Instant;

use foresee_spec::{Diagnostic, Expanded, Interest, Resolved, resolve};
use foresee_trace::{
    Batch, Continued, ErrorKind, EventSource, Finding, FindingSink, Flow, GrowingTrace, Mode,
    Names, Position, ReadError, Remarks, Validated,
};

use super::conclude::{self, Passed, give_up, load_first, needed_events, stands};
use super::error::SessionError;
use super::filtered::ensure_whole;
use super::mistake::InternalError;
use super::parts::{Part, Work, expanded};
use super::report::TraceFacts;
use super::run::for_searches;
use super::spec::Specification;
use super::told::Told;
use super::{Examined, Listener, Session};
use crate::candidates::Candidates;
use crate::confirm::{Confirmer, Unconfirmed};
use crate::info::{LATTICE, PATTERN};
use crate::initial::learn_initial_values;
use crate::kept::{self, Kept};
use crate::memory::MemoryLimit;
use crate::runner::{self, Receiver, Together};
use crate::sites::{LinesSoFar, complete_from};

impl Session {
    /// Follows a trace to its end, and reports findings as they are made. The settings should
    /// declare that traces are [still being made](super::Settings::is_live).
    pub fn follow(
        &self,
        program: &dyn GrowingTrace,
        listener: &mut dyn Listener,
    ) -> Result<Examined, SessionError> {
        let meaning = Meaning {
            specs: &self.specs,
            interests: RefCell::new(self.specs.iter().map(|s| Interest::new(&s.spec)).collect()),
            resolved: RefCell::default(),
            turned_up: RefCell::default(),
        };
        let mut told = Told::new(listener);
        let mut names = Names::default();
        loop {
            let attempt = Attempt { session: self, program, meaning: &meaning, names: &names };
            let result = attempt.run(&mut told);
            if let Some(new) = meaning.turned_up.take() {
                names = new;
                told.begin_again();
                continue;
            }
            // Names that a specification needs may be in what follows.
            let may_mend = matches!(result, Ok(_) | Err(SessionError::Spec(_)));
            if !may_mend || !program.is_continued() {
                return result;
            }
            // What was found in the beginning of a program stays found.
            if let Ok(examined) = &result {
                examined.report.findings.iter().for_each(|finding| told.tell(finding));
            }
            match program.continues()? {
                Continued::Over => return result,
                Continued::CutShort(why) => {
                    return result.map(|mut examined| {
                        examined.report.remarks.cut_short = Some(why);
                        examined
                    });
                }
                Continued::Anew => {}
            }
            told.begin_another_trace();
            names = Names::default();
            meaning.forget();
        }
    }
}

/// What the specifications mean, for all sources of one program.
struct Meaning<'s> {
    specs: &'s [Specification],
    interests: RefCell<Vec<Interest>>,
    /// At present.
    resolved: RefCell<Vec<Resolved>>,
    /// All names, once there is one that changes that.
    turned_up: RefCell<Option<Names>>,
}

impl Meaning<'_> {
    /// Another trace begins, with names of its own.
    fn forget(&self) {
        let interests = self.specs.iter().map(|source| Interest::new(&source.spec));
        *self.interests.borrow_mut() = interests.collect();
    }
}

/// A source that ends with an error as soon as a name turns up that changes the question.
struct Watching<'s> {
    inner: Box<dyn EventSource + 's>,
    meaning: &'s Meaning<'s>,
    names: usize,
}

impl Watching<'_> {
    fn look(&mut self) -> Result<(), ReadError> {
        let names = self.inner.names();
        let count = names.vars.len() + names.locks.len() + names.threads.len() + names.syms.len();
        if std::mem::replace(&mut self.names, count) == count {
            return Ok(());
        }
        let Meaning { specs, interests, resolved, turned_up } = self.meaning;
        let mut changed = false;
        for ((spec, interest), meaning) in
            specs.iter().zip(interests.borrow_mut().iter_mut()).zip(resolved.borrow().iter())
        {
            let touch = interest.examine(names);
            changed |=
                touch.texts || touch.names && resolve(&spec.spec, names).resolved != *meaning;
        }
        if !changed {
            return Ok(());
        }
        *turned_up.borrow_mut() = Some(names.clone());
        Err(ReadError::new(ErrorKind::Io, Position::Unknown, "a name turned up"))
    }
}

impl EventSource for Watching<'_> {
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

/// One pass over the trace, as far as no name turns up that changes the question.
struct Attempt<'a> {
    session: &'a Session,
    program: &'a dyn GrowingTrace,
    meaning: &'a Meaning<'a>,
    /// The names that are known.
    names: &'a Names,
}

impl<'a> Attempt<'a> {
    fn follow(&self) -> Result<Box<dyn EventSource + 'a>, ReadError> {
        let inner = self.program.follow()?;
        Ok(Box::new(Watching { inner, meaning: self.meaning, names: 0 }))
    }

    fn run(&self, told: &mut Told<'_>) -> Result<Examined, SessionError> {
        let (session, order) = (self.session, self.program.order());
        let resolutions: Vec<_> =
            session.specs.iter().map(|source| resolve(&source.spec, self.names)).collect();
        *self.meaning.resolved.borrow_mut() =
            resolutions.iter().map(|r| r.resolved.clone()).collect();
        for (source, resolution) in session.specs.iter().zip(&resolutions) {
            if resolution.diagnostics.iter().any(Diagnostic::is_error) {
                // Names are missing without which nothing can be said; they may still come. If they
                // do not, advice is given from all names that there are.
                let resolution = resolve(&source.spec, &self.wait()?);
                return Err(source.bad(resolution.diagnostics).into());
            }
        }
        ensure_whole(order, || self.follow(), &session.specs)?;
        let mut work = Work::new(session, session.settings.clone());
        for (source, resolution) in session.specs.iter().zip(&resolutions) {
            let mut asked = expanded(session, &source.spec, &resolution.resolved, self.names);
            let properties = source.compile(&asked.spec)?;
            // This waits for the first access of each variable without a given initial value.
            let open = || self.follow();
            let Expanded { spec, resolved, .. } = &mut asked;
            learn_initial_values(spec, &properties, resolved, self.names, open)?;
            work.add(session, source, &asked, self.names, order)?;
        }
        let mut candidates = work.candidates();
        let mut left_out = std::mem::take(&mut work.left_out);
        let (mut searches, parts) = work.searches();
        let mut source = Validated::new(self.follow()?, Mode::Reject);
        let mut live = Live {
            attempt: self,
            parts,
            told,
            lines: LinesSoFar::new(),
            findings: Vec::new(),
            failure: None,
        };
        let shared = |bytes: usize| self.program.allows(bytes);
        let memory = MemoryLimit::new(session.settings.limits.memory, &shared);
        let mut read =
            runner::read(&mut source, &mut searches, &mut candidates, &mut live, &memory)?;
        let whole = read.trace.take();
        let kept = whole.as_ref().map(Kept::new);
        let kept = kept.as_ref();
        let time = session.settings.limits.time;
        let until = time.and_then(|time| Instant::now().checked_add(time));
        let limits = Together { time: time.map(for_searches), memory: &memory };
        let mut summary =
            runner::finish(&read, &source, &mut searches, candidates, kept, limits, &mut live)?;
        let Live { findings, failure, .. } = live;
        // If no search wanted more, the program still continues, and its trace is stored if requested.
        let mut batch = Batch::default();
        while let Ok(true) = source.next_batch(&mut batch) {}
        if let Some(failure) = failure {
            return Err(failure);
        }
        if !self.can_judge(needed_events(&summary.candidates).unwrap_or(summary.events)) {
            let why = match self.program.is_all_stored() {
                true => "the trace is too long to confirm that in the memory that may be taken",
                false => "the trace was too long to be saved, so nothing can be confirmed",
            };
            let why = format!("{why}; check the kept trace with more: --max-memory");
            give_up(parts, &mut summary.candidates, &mut summary.analysed, &why);
        }
        summary.analysed.append(&mut left_out);
        let passed = Passed {
            facts: TraceFacts::new(summary.events, source.names()),
            analysed: summary.analysed,
            remarks: summary.remarks,
            findings,
            parts,
            candidates: summary.candidates,
            searched: summary.searched,
            readable: u64::MAX,
        };
        let open = || Ok(Validated::new(self.program.stored()?, Mode::Reject));
        let kept = kept.filter(|_| read.is_all);
        let room = conclude::Room { memory: usize::MAX, until };
        let name = self.program.name();
        let mut examined = session.close(passed, &name, kept, &open, room, told.listener())?;
        told.settle(&mut examined.report, self.program.order());
        complete_from(&mut examined.report.findings, u64::MAX, open)?;
        for (source, resolution) in session.specs.iter().zip(resolutions) {
            if !resolution.diagnostics.is_empty() {
                told.listener().warning(source, &resolution.diagnostics);
            }
        }
        if examined.trace.is_none() {
            examined.trace = whole.filter(|_| read.is_all);
        }
        Ok(examined)
    }

    /// Reads on until a name turns up, or to the end; the names by then.
    fn wait(&self) -> Result<Names, ReadError> {
        let (mut source, mut batch) = (self.follow()?, Batch::default());
        while source.next_batch(&mut batch)? {}
        Ok(source.names().clone())
    }

    /// Whether the first events can be loaded to judge a witness.
    fn can_judge(&self, events: u64) -> bool {
        let memory = self.session.settings.limits.memory as u64;
        self.program.is_all_stored() && events.saturating_mul(kept::BYTES_PER_EVENT) <= memory
    }
}

/// Receives findings and early candidates, and reports them.
struct Live<'a, 't, 'l> {
    attempt: &'a Attempt<'a>,
    parts: &'a [Part],
    told: &'t mut Told<'l>,
    lines: LinesSoFar,
    findings: Vec<Finding>,
    failure: Option<SessionError>,
}

impl Live<'_, '_, '_> {
    fn tell(&mut self, finding: &Finding) {
        if !stands(finding, self.attempt.program.order()) {
            return;
        }
        let finding = &self.with_fingerprint(finding.clone());
        self.told.tell(finding);
        self.told.now.push(finding.clone());
    }

    /// A finding as it is known now. What it consists of may be further back than the latest
    /// events.
    fn with_fingerprint(&self, mut finding: Finding) -> Finding {
        let program = self.attempt.program;
        finding.fingerprint = self.lines.fingerprint(&finding);
        if finding.fingerprint.is_none() && program.is_all_stored() {
            // A stored trace that cannot be read is an error at the end.
            let one = std::slice::from_mut(&mut finding);
            let _ = complete_from(one, u64::MAX, || program.stored());
        }
        finding
    }

    /// Confirms what was foreseen in the latest events, on the events so far.
    fn confirm_on(
        &mut self,
        events: u64,
        candidates: &mut [Candidates],
    ) -> Result<(), SessionError> {
        let stored = self.attempt.program.stored()?;
        let whole = load_first(&mut Validated::new(stored, Mode::Reject), Some(events))
            .map_err(SessionError::Stored)?;
        let kept = Kept::new(&whole);
        for (part, candidates) in self.parts.iter().zip(candidates) {
            let confirmer = Confirmer::new(&part.spec, &part.resolved, &kept);
            let early = std::mem::take(&mut candidates.early);
            for one in early.predictions {
                let property = part.name_of(one.property);
                match confirmer.confirm(&one) {
                    Ok(finding) => self.tell(&finding),
                    // There was no room to search for it again; the final report is still to come.
                    Err(Unconfirmed::Lost(_)) => {}
                    Err(error) => self.told.listener().internal_error(&InternalError {
                        analysis: LATTICE,
                        property,
                        error: &error,
                        candidate: &one,
                        trace: Some(&whole),
                    }),
                }
            }
            for one in early.matches {
                let property = part.name_of(one.property);
                match confirmer.confirm_match(&one) {
                    Ok(finding) => self.tell(&finding),
                    Err(error) => self.told.listener().internal_error(&InternalError {
                        analysis: PATTERN,
                        property,
                        error: &error,
                        candidate: &one,
                        trace: Some(&whole),
                    }),
                }
            }
        }
        Ok(())
    }
}

impl FindingSink for Live<'_, '_, '_> {
    fn finding(&mut self, finding: Finding) -> Flow {
        self.tell(&finding);
        self.findings.push(finding);
        Flow::Continue
    }
}

impl Receiver for Live<'_, '_, '_> {
    fn batch(&mut self, first: u64, batch: &Batch, names: &Names) {
        self.lines.batch(first, batch, names);
    }

    fn read(&mut self, events: u64, candidates: &mut [Candidates]) {
        self.told.listener().progress(events);
        let is_new = candidates.iter().any(|candidates| !candidates.early.is_empty());
        // If there is no room now, the final report states it.
        if is_new
            && self.failure.is_none()
            && self.attempt.can_judge(events)
            && let Err(error) = self.confirm_on(events, candidates)
        {
            self.failure = Some(error);
        }
    }
}
