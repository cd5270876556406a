//! One place where a trace and questions go in and confirmed findings come out.
//!
//! A [`Session`] holds the questions: specifications, checks and how far to search. It answers them
//! for any number of traces, whole ones ([`Session::run`]) and ones that are still being made
//! ([`Session::follow`]). It chooses which engine looks at which property, reads the trace, keeps it
//! in memory once if an analysis needs it, and has one judge confirm what every engine proposes. What
//! comes out is a [`Report`].
//!
//! ```
//! use foresee_predict::session::{Session, Settings, Silent};
//! use foresee_trace::{Event, Op, Trace};
//!
//! let mut trace = Trace::default();
//! let x = trace.names.vars.intern("x")?;
//! for name in ["T1", "T2"] {
//!     let thread = trace.names.thread(name)?;
//!     trace.events.push(Event::new(thread, Op::Write).with_target(x.0));
//! }
//! let mut session = Session::new(Settings::default());
//! session.add_check("race")?;
//! let examined = session.run(&trace, &mut Silent)?;
//! assert_eq!(examined.report.findings.len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | file | what it does |
//! |---|---|
//! | `settings` | what can be asked, and how far to search |
//! | `spec` | specifications that have been read |
//! | `parts` | which engine looks at which property |
//! | `run` | a whole trace |
//! | `follow` | a trace that grows |
//! | `told` | what was reported of it |
//! | `filtered` | captures that left accesses out |
//! | `conclude` | what stands after the pass, confirmed |
//! | `mistake` | errors of foresee, which cost one property its answer |
//! | `pictures` | small lattices as data to be drawn |
//! | `answered`, `index` | patterns that an index has answered already |
//! | `report` | everything there is to say |

mod answered;
mod conclude;
mod error;
mod filtered;
mod follow;
#[cfg(feature = "index")]
mod index;
mod mistake;
mod parts;
mod pictures;
mod report;
mod run;
mod settings;
mod spec;
#[cfg(test)]
mod tests;
mod told;

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use foresee_spec::Diagnostic;
use foresee_trace::{Finding, Trace, TraceInput};

use answered::Answered;
pub use error::SessionError;
pub use mistake::InternalError;
pub use pictures::Drawing;
pub use report::{Report, TraceFacts};
pub use settings::{Limits, NondeterminismSettings, Settings};
pub use spec::{BadSpec, Specification};

use crate::checks::{CHECKS, CandidatePart, CheckKind, Checks, Decided, Deciding, Glob};
use crate::info::{self, ATOMICITY, AnalysisInfo, LIKELY_ATOMICITY, NONDETERMINISM};
use crate::nondeterminism::Nondeterminism;
use crate::{ANALYSES, Analysis, AnalysisKind};

/// Receives what happens while a session runs.
pub trait Listener {
    /// Something was found in a trace that is still being made.
    fn found(&mut self, finding: &Finding) {
        let _ = finding;
    }

    /// A name turned up that changes the question to which this was an answer, or the order of
    /// events turned out not to be known.
    fn withdrawn(&mut self, finding: &Finding) {
        let _ = finding;
    }

    /// What should be known of a specification, now that the names of the trace are known.
    fn warning(&mut self, spec: &Specification, diagnostics: &[Diagnostic]) {
        let _ = (spec, diagnostics);
    }

    /// Something else that the user should know.
    fn note(&mut self, text: &str) {
        let _ = text;
    }

    /// Foresee made a mistake; the report says what it costs.
    fn internal_error(&mut self, error: &InternalError<'_>) {
        let _ = error;
    }

    /// This many events have been read.
    fn progress(&mut self, events: u64) {
        let _ = events;
    }
}

/// A listener that ignores everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Listener for Silent {}

/// The result for a trace.
#[derive(Debug)]
pub struct Examined {
    /// Everything there is to say.
    pub report: Report,
    /// The trace, as much of it as was loaded; enough to draw every witness of the report.
    pub trace: Option<Trace>,
    /// The lattices that were asked for.
    pub drawings: Vec<Drawing>,
    /// How long the searches took, of the time that they had.
    pub searched: Duration,
}

/// Questions about traces.
#[derive(Debug, Default)]
pub struct Session {
    settings: Settings,
    specs: Vec<Specification>,
    /// The names of the checks, as they were asked for.
    checks: Vec<String>,
    /// Whether it looks for whatever goes wrong without a specification.
    is_default: bool,
    answered: Option<Answered>,
    /// The questions that are answered, by their numbers; `None` for all.
    only: Option<Range<usize>>,
    /// Verdicts on candidates that were reached elsewhere.
    decided: Arc<Decided>,
    /// Whether nothing is wanted but verdicts on some candidates.
    deciding: Option<Deciding>,
}

impl Session {
    /// No questions yet.
    pub fn new(settings: Settings) -> Session {
        Session { settings, ..Session::default() }
    }

    /// Adds a specification.
    pub fn add_spec(&mut self, spec: Specification) {
        self.specs.push(spec);
    }

    /// Adds one of the [checks and analyses](info::selectable) that can be requested.
    pub fn add_check(&mut self, name: &str) -> Result<(), SessionError> {
        let name = info::present_name(name);
        if !info::selectable().any(|known| known == name) {
            let known = info::selectable().collect::<Vec<_>>().join(", ");
            return Err(SessionError::UnknownCheck(name.to_owned(), known));
        }
        self.checks.push(name.to_owned());
        Ok(())
    }

    /// Adds the checks that are made if nothing is asked. Those that have nothing to look at in a
    /// trace are passed over.
    pub fn add_default_checks(&mut self) {
        self.is_default = true;
    }

    /// The specifications.
    pub fn specs(&self) -> &[Specification] {
        &self.specs
    }

    /// How far it searches.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Whether there is no question that a trace has to be read for.
    pub fn is_empty(&self) -> bool {
        self.specs.is_empty() && self.checks.is_empty() && self.kinds().is_empty()
    }

    /// Whether this was asked for by name.
    pub fn asks_for(&self, check: &str) -> bool {
        self.checks.iter().any(|name| name == check)
    }

    /// The methods that its specifications call atomic.
    pub fn atomics(&self) -> Vec<Glob> {
        let methods = self.specs.iter().flat_map(|spec| &spec.spec.atomics);
        methods.map(|method| Glob::new(&method.name)).collect()
    }

    /// Whether every access matters to an answer, and not only those that the causality rests on.
    pub fn goes_beyond_causality(&self) -> bool {
        let is_beyond = |name: &String| name != info::SPEC && !info::keeps_causality(name);
        !self.specs.is_empty() && self.settings.goes_beyond_causality()
            || self.checks.iter().any(is_beyond)
            || !self.kinds().is_empty()
    }

    /// Whether no answer depends on accesses that starts and joins of threads order in every run: such accesses neither race nor
    /// see anything else in another order. That holds for the default checks: those that have nothing left to look at are passed
    /// over, where one that was asked for by name would say so. Atomic regions have to know these accesses, which only
    /// matters to a trace that has any, unless regions are inferred.
    pub fn ignores_settled(&self) -> bool {
        self.is_default
            && self.specs.is_empty()
            && self.checks.is_empty()
            && !self.settings.infer_regions
    }

    /// How many questions there are that can be answered apart: first the checks and the analyses that need no specification,
    /// then the properties of all specifications.
    pub fn questions(&self) -> usize {
        self.built_in_questions()
            + self.specs.iter().map(|s| s.spec.properties.len()).sum::<usize>()
    }

    /// How many of the [questions](Session::questions) need no specification.
    pub fn built_in_questions(&self) -> usize {
        self.all_kinds().len() + self.named_analyses().count()
    }

    /// Answers only the questions with these numbers. The reports on all questions of a trace, in parts, say together what
    /// one report on all of them says.
    pub fn answer_only(&mut self, questions: Range<usize>) {
        self.only = Some(questions);
    }

    /// Whether a [question](Session::questions) has candidates, or bindings, that can be [decided](Session::decide) apart.
    pub fn has_candidates(&self, question: usize) -> bool {
        let kinds = self.all_kinds().len();
        let named = question.checked_sub(kinds).and_then(|i| self.named_analyses().nth(i));
        let mut properties = self.specs.iter().flat_map(|source| &source.spec.properties);
        let property = question.checked_sub(self.built_in_questions());
        let property = property.and_then(|i| properties.nth(i));
        question < kinds
            || named.is_some_and(|kind| kind.name == NONDETERMINISM)
                && !self.settings.nondeterminism.first
            || property.is_some_and(|p| !p.params.is_empty() || !p.objects.is_empty())
    }

    /// Decides a part of the candidates of the checks that it makes, and of the bindings of its properties, and does nothing
    /// else.
    pub fn decide(
        &mut self,
        part: CandidatePart,
        trace: &dyn TraceInput,
        listener: &mut dyn Listener,
    ) -> Result<Decided, SessionError> {
        let deciding = Deciding::new(part);
        self.deciding = Some(deciding.clone());
        let ran = self.run(trace, listener);
        self.deciding = None;
        ran.map(|_| deciding.take())
    }

    /// Uses verdicts on candidates of the trace that were [decided](Session::decide) by a session with the same questions
    /// and settings. The answer is the same as without.
    pub fn know(&mut self, decided: Decided) {
        Arc::make_mut(&mut self.decided).add(decided);
    }

    /// Whether a question is to be answered.
    fn answers(&self, question: usize) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(&question))
    }

    /// The checks that are made, all in one analysis.
    fn kinds(&self) -> Vec<&'static CheckKind> {
        let all = self.all_kinds().into_iter().enumerate();
        all.filter(|(question, _)| self.answers(*question)).map(|(_, kind)| kind).collect()
    }

    /// The analyses besides the checks that were asked for and need no specification.
    fn named_analyses(&self) -> impl Iterator<Item = &'static AnalysisKind> {
        self.checks.iter().filter_map(|name| ANALYSES.iter().find(|kind| kind.name == name))
    }

    /// The checks that were asked for. Specifications ask for one, too, if they say
    /// that methods are atomic.
    fn all_kinds(&self) -> Vec<&'static CheckKind> {
        let has_atomics = self.specs.iter().any(|spec| !spec.spec.atomics.is_empty());
        let is_wanted = |kind: &&CheckKind| {
            self.asks_for(kind.name)
                || self.is_default
                    && AnalysisInfo::of(kind.name).is_some_and(|info| info.is_default)
                || kind.name == ATOMICITY && has_atomics
                || kind.name == LIKELY_ATOMICITY && self.settings.infer_regions
        };
        CHECKS.iter().filter(is_wanted).collect()
    }

    /// Whether a check is made, by request or by default.
    pub fn makes(&self, check: &str) -> bool {
        self.kinds().iter().any(|kind| kind.name == check)
    }

    /// The analyses that need no specification.
    fn built_in(&self, settings: &Settings) -> Vec<Box<dyn Analysis>> {
        let mut analyses: Vec<Box<dyn Analysis>> = Vec::new();
        let kinds = self.kinds();
        if !kinds.is_empty() {
            let mut options = settings.checks(self.atomics(), self.is_default);
            options.decided = Arc::clone(&self.decided);
            let checks = Checks::new(&kinds, options).decide(self.deciding.clone());
            analyses.push(Box::new(checks));
        }
        for (kind, question) in self.named_analyses().zip(self.all_kinds().len()..) {
            if !self.answers(question) {
                continue;
            }
            if kind.name == NONDETERMINISM {
                let all = Nondeterminism::new(settings.nondeterminism());
                let decided = Arc::clone(&self.decided);
                analyses.push(Box::new(all.in_parts(decided, self.deciding.clone())));
            } else if self.deciding.is_none() {
                analyses.push((kind.new)(settings));
            }
        }
        analyses
    }
}
