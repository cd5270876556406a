//! A session with a whole trace.

use std::time::{Duration, Instant};

use foresee_spec::{Diagnostic, Expanded};
use foresee_trace::{EventSource, Finding, FindingSink, Flow, ReadError, TraceInput, Validated};

use super::conclude::{Open, Passed, Room, conclude};
use super::error::SessionError;
use super::filtered::ensure_whole;
use super::parts::{Work, expanded};
use super::report::TraceFacts;
use super::{Examined, Listener, Session};
use crate::candidates::Candidates;
use crate::initial::learn_initial_values;
use crate::kept::Kept;
use crate::memory::MemoryLimit;
use crate::runner::{self, Receiver, Together};

impl Session {
    /// Answers everything of a whole trace.
    pub fn run(
        &self,
        trace: &dyn TraceInput,
        listener: &mut dyn Listener,
    ) -> Result<Examined, SessionError> {
        self.run_within(self.settings.limits.time, trace, listener)
    }

    /// Answers everything of a whole trace in at most this time after it has been read; `None` for no limit.
    pub fn run_within(
        &self,
        time: Option<Duration>,
        trace: &dyn TraceInput,
        listener: &mut dyn Listener,
    ) -> Result<Examined, SessionError> {
        let open = || -> Result<Validated<Box<dyn EventSource + '_>>, ReadError> {
            Ok(Validated::new(trace.open()?, trace.mode()))
        };
        if let Some(answered) = self.answered.as_ref().filter(|_| self.is_empty()) {
            let (report, trace) = answered.without_pass(&trace.name(), &open, listener)?;
            let (drawings, searched) = (Vec::new(), Duration::ZERO);
            return Ok(Examined { report, trace, drawings, searched });
        }
        let memory = match self.settings.is_alone {
            true => MemoryLimit::of_process(self.settings.limits.memory),
            false => MemoryLimit::new(self.settings.limits.memory, &|_| true),
        };
        // The trace may have names already.
        let mut settings = self.settings.clone();
        settings.limits.memory = memory.left(0);
        settings.limits.time = time;
        let mut work = Work::new(self, settings);
        if !self.specs.is_empty() {
            self.tie(trace, &mut work, listener)?;
        }
        let mut candidates = work.candidates();
        let mut source = open()?;
        let mut collect = Collect { findings: Vec::new(), listener };
        let mut left_out = std::mem::take(&mut work.left_out);
        let (mut searches, _) = work.searches();
        let mut read =
            runner::read(&mut source, &mut searches, &mut candidates, &mut collect, &memory)?;
        let whole = read.trace.take();
        let mut examined = {
            let kept = whole.as_ref().map(Kept::new);
            let kept = kept.as_ref();
            let out = &mut collect.findings;
            let until = time.and_then(|time| Instant::now().checked_add(time));
            let limits = Together { time: time.map(for_searches), memory: &memory };
            let mut summary =
                runner::finish(&read, &source, &mut searches, candidates, kept, limits, out)?;
            summary.analysed.append(&mut left_out);
            if self.deciding.is_some() {
                // Whoever knows the verdicts confirms and reports.
                summary
                    .candidates
                    .iter_mut()
                    .for_each(|candidates| *candidates = Candidates::default());
                collect.findings.clear();
            }
            let facts = TraceFacts::new(summary.events, source.names());
            // What follows may read the trace again, with its names.
            drop(source);
            let parts = work.into_parts();
            let passed = Passed {
                facts,
                analysed: summary.analysed,
                remarks: summary.remarks,
                findings: collect.findings,
                parts: &parts,
                candidates: summary.candidates,
                searched: summary.searched,
                readable: read.full_after.map_or(u64::MAX, |_| read.events),
            };
            let room = Room { memory: memory.left(0), until };
            self.close(passed, &trace.name(), kept, &open, room, listener)?
        };
        if examined.trace.is_none() {
            examined.trace = whole;
        }
        Ok(examined)
    }

    /// Ties the specifications to the names of a trace.
    fn tie(
        &self,
        trace: &dyn TraceInput,
        work: &mut Work,
        listener: &mut dyn Listener,
    ) -> Result<(), SessionError> {
        // Text says anywhere in the file what its order stands for.
        let (names, order) = trace.names()?;
        if !trace.is_made_for_specs() {
            ensure_whole(order, || trace.open(), &self.specs)?;
        }
        for source in &self.specs {
            let resolution = foresee_spec::resolve(&source.spec, &names);
            if resolution.diagnostics.iter().any(Diagnostic::is_error) {
                return Err(source.bad(resolution.diagnostics).into());
            }
            if !resolution.diagnostics.is_empty() {
                listener.warning(source, &resolution.diagnostics);
            }
            let mut asked = expanded(self, &source.spec, &resolution.resolved, &names);
            let properties = source.compile(&asked.spec)?;
            let open = || trace.open();
            let Expanded { spec, resolved, .. } = &mut asked;
            learn_initial_values(spec, &properties, resolved, &names, open)?;
            work.add(self, source, &asked, &names, order)?;
        }
        Ok(())
    }

    /// Everything that can be said after the pass.
    pub(super) fn close(
        &self,
        passed: Passed<'_>,
        name: &str,
        kept: Option<&Kept<'_>>,
        open: Open<'_, '_>,
        room: Room,
        listener: &mut dyn Listener,
    ) -> Result<Examined, SessionError> {
        let answered = self.answered.as_ref();
        let is_short = passed.facts.events <= DRAWN_BESIDE;
        let draws = self.settings.draws_lattices || self.settings.draws_beside && is_short;
        let mut examined = conclude(passed, answered, draws, kept, open, room, listener)?;
        examined.report.name = name.to_owned();
        Ok(examined)
    }
}

/// How much of the time limit searches may take; the rest is for confirming what they find.
pub(super) fn for_searches(time: Duration) -> Duration {
    time / 4 * 3
}

/// How long traces may be whose lattices are drawn besides: they are kept in memory for it.
const DRAWN_BESIDE: u64 = 20_000;

/// Collects findings.
struct Collect<'l> {
    findings: Vec<Finding>,
    listener: &'l mut dyn Listener,
}

impl FindingSink for Collect<'_> {
    fn finding(&mut self, finding: Finding) -> Flow {
        self.findings.finding(finding)
    }
}

impl Receiver for Collect<'_> {
    fn read(&mut self, events: u64, _: &mut [Candidates]) {
        self.listener.progress(events);
    }
}
