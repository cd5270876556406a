//! Questions about a trace, and their answers.

use std::fmt;

use foresee_predict::info::{
    ATOMICITY, CAUSALITY, DEADLOCK, LIFETIME, MONITORABILITY, NONDETERMINISM, RACE,
};
use foresee_predict::session::{
    BadSpec, Limits, Session as Questions, SessionError, Settings, Silent, Specification,
};
use foresee_report::text::Options;
use foresee_spec::custom::{CustomMonitor, specification};
use foresee_trace::{Finding, TraceInput};

use crate::spec::{Spec, SpecError};

/// What can be looked for without a specification.
///
/// ```
/// use foresee::{Check, Recorder, Session};
///
/// let trace = Recorder::new().trace()?;
/// let report = Session::new(&trace).check(Check::Race).check(Check::Deadlock).run()?;
/// assert!(report.findings().is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Check {
    /// Two threads access a variable at the same time, and one writes.
    Race,
    /// Threads wait for each other, or for something that never comes.
    Deadlock,
    /// Another thread disturbs a region that was declared atomic.
    Atomicity,
    /// An object is used after it was freed, freed twice, or used before it was initialised.
    Lifetime,
    /// A read could have seen another write.
    Nondeterminism,
    /// The verdict on a specification depends on the schedule.
    Monitorability,
    /// How much of the observed order could have been otherwise.
    Causality,
}

impl Check {
    /// Its name on the command line and in reports.
    ///
    /// ```
    /// assert_eq!(foresee::Check::Race.name(), "race");
    /// ```
    pub fn name(self) -> &'static str {
        match self {
            Check::Race => RACE,
            Check::Deadlock => DEADLOCK,
            Check::Atomicity => ATOMICITY,
            Check::Lifetime => LIFETIME,
            Check::Nondeterminism => NONDETERMINISM,
            Check::Monitorability => MONITORABILITY,
            Check::Causality => CAUSALITY,
        }
    }
}

/// Questions about one trace.
///
/// Without any question it makes the checks that the command line makes by default.
///
/// ```
/// use foresee::{Recorder, Session};
///
/// let recorder = Recorder::new();
/// let count = recorder.var("count", 0);
/// let threads = ["A", "B"].map(|name| {
///     let count = count.clone();
///     recorder.spawn(name, move || count.set(count.get() + 1))
/// });
/// threads.into_iter().for_each(|thread| thread.join());
/// let trace = recorder.trace()?;
/// let report = Session::new(&trace).run()?;
/// assert!(!report.findings().is_empty(), "two unprotected increments race");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Session<'t> {
    trace: &'t dyn TraceInput,
    settings: Settings,
    specs: Vec<Specification>,
    checks: Vec<Check>,
}

impl fmt::Debug for Session<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Session");
        out.field("trace", &self.trace.name()).field("checks", &self.checks);
        out.finish_non_exhaustive()
    }
}

impl<'t> Session<'t> {
    /// A session about a trace: a file ([`open`](crate::open)), what a
    /// [`Recorder`](crate::Recorder) has recorded, or any other [`TraceInput`].
    ///
    /// ```
    /// let trace = foresee::Recorder::new().trace()?;
    /// let session = foresee::Session::new(&trace);
    /// # let _ = session;
    /// # Ok::<(), foresee::RecordError>(())
    /// ```
    pub fn new(trace: &'t dyn TraceInput) -> Self {
        Session { trace, settings: Settings::default(), specs: Vec::new(), checks: Vec::new() }
    }

    /// Asks whether a specification holds of every run: a [`Spec`], or the text of one.
    ///
    /// ```
    /// use foresee::{Recorder, Session, Spec};
    ///
    /// let recorder = Recorder::new();
    /// recorder.var("x", 0).set(1);
    /// let trace = recorder.trace()?;
    /// let small = Spec::parse("property small: x < 9")?;
    /// let report = Session::new(&trace).spec(&small)?.spec("property zero: x == 0")?.run()?;
    /// assert_eq!(report.findings()[0].property, "zero");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn spec<S>(mut self, spec: S) -> Result<Self, SpecError>
    where
        S: TryInto<Spec>,
        SpecError: From<S::Error>,
    {
        self.specs.push(spec.try_into()?.0);
        Ok(self)
    }

    /// Asks whether a monitor of your own rejects a run; see [`Monitor`](crate::Monitor).
    ///
    /// ```
    /// use foresee::{Monitor, Recorder, Session};
    ///
    /// /// Nothing is closed more often than it was opened.
    /// struct Balanced;
    /// impl Monitor for Balanced {
    ///     type State = u32;
    ///     fn conditions(&self) -> Vec<String> {
    ///         vec!["event(open)".into(), "event(close)".into()]
    ///     }
    ///     fn start(&self) -> u32 {
    ///         0
    ///     }
    ///     fn step(&self, open: &u32, holds: &[bool]) -> Option<u32> {
    ///         (open + u32::from(holds[0])).checked_sub(u32::from(holds[1]))
    ///     }
    /// }
    ///
    /// let recorder = Recorder::new();
    /// let opener = recorder.spawn("opener", {
    ///     let recorder = recorder.clone();
    ///     move || recorder.event("open", &[])
    /// });
    /// let is_open = recorder.clone();
    /// while is_open.trace()?.events.len() < 2 {}
    /// recorder.event("close", &[]);
    /// opener.join();
    /// let trace = recorder.trace()?;
    /// let report = Session::new(&trace).monitor("balanced", Balanced)?.run()?;
    /// assert_eq!(report.findings().len(), 1, "nothing keeps close behind open");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn monitor<M: CustomMonitor>(mut self, name: &str, monitor: M) -> Result<Self, SpecError> {
        let (text, spec) = specification(name, monitor).map_err(|(text, diagnostics)| BadSpec {
            name: format!("conditions of {name}"),
            text,
            diagnostics,
        })?;
        self.specs.push(Specification::of(name, &text, spec)?);
        Ok(self)
    }

    /// Asks for a check. Several can be asked for, one after the other.
    ///
    /// ```
    /// use foresee::{Check, Recorder, Session};
    ///
    /// let recorder = Recorder::new();
    /// let x = recorder.var("x", 0);
    /// let writer = recorder.spawn("writer", { let x = x.clone(); move || x.set(1) });
    /// x.get();
    /// writer.join();
    /// let trace = recorder.trace()?;
    /// let report = Session::new(&trace).check(Check::Race).run()?;
    /// assert_eq!(report.findings().len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn check(mut self, check: Check) -> Self {
        self.checks.push(check);
        self
    }

    /// Limits the effort: time, memory and cores.
    ///
    /// ```
    /// use foresee::{Limits, Recorder, Session};
    ///
    /// let trace = Recorder::new().trace()?;
    /// let limits = Limits { memory: 2 << 30, cores: 1, ..Limits::default() };
    /// let report = Session::new(&trace).limits(limits).run()?;
    /// assert!(report.findings().is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn limits(mut self, limits: Limits) -> Self {
        self.settings.limits = limits;
        self
    }

    /// Says how to search: which reorderings, with which algorithms, and within which limits.
    ///
    /// ```
    /// use foresee::{Recorder, Session, Settings, Space};
    ///
    /// let trace = Recorder::new().trace()?;
    /// let settings = Settings { space: Some(Space::Maz), ..Settings::default() };
    /// let report = Session::new(&trace).settings(settings).run()?;
    /// assert!(report.findings().is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Answers everything. Every finding of the report is confirmed.
    ///
    /// ```
    /// use foresee::{Recorder, Session};
    ///
    /// let trace = Recorder::new().trace()?;
    /// let report = Session::new(&trace).run()?;
    /// println!("{report}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn run(self) -> Result<Report, SessionError> {
        let mut questions = Questions::new(self.settings);
        if self.specs.is_empty() && self.checks.is_empty() {
            questions.add_default_checks();
        }
        self.specs.into_iter().for_each(|spec| questions.add_spec(spec));
        for check in self.checks {
            questions.add_check(check.name())?;
        }
        let examined = questions.run(self.trace, &mut Silent)?;
        Ok(Report {
            report: foresee_report::Report::of(examined, &foresee_report::Tests::default()),
        })
    }
}

/// Everything there is to say about a trace. Its [`Display`](fmt::Display) is the report of the
/// command line.
///
/// ```
/// use foresee::{Recorder, Report, Session};
///
/// let trace = Recorder::new().trace()?;
/// let report: Report = Session::new(&trace).run()?;
/// assert!(report.to_string().contains("trace"), "{report}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Report {
    report: foresee_report::Report,
}

impl Report {
    /// What was found, each with its sites, its fingerprint and, unless it was observed, a schedule
    /// that shows it.
    ///
    /// ```
    /// use foresee::{Check, Recorder, Session};
    ///
    /// let recorder = Recorder::new();
    /// let x = recorder.var("x", 0);
    /// let writer = recorder.spawn("writer", { let x = x.clone(); move || x.set(1) });
    /// x.set(2);
    /// writer.join();
    /// let trace = recorder.trace()?;
    /// let report = Session::new(&trace).check(Check::Race).run()?;
    /// let race = &report.findings()[0];
    /// let threads: Vec<&str> = race.sites.iter().map(|site| site.thread_name()).collect();
    /// assert!(threads.contains(&"writer") && race.fingerprint.is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn findings(&self) -> &[Finding] {
        &self.report.findings
    }

    /// Whether nothing was found and every run was covered, so that there is nothing to find in any
    /// reordering that was asked for.
    ///
    /// ```
    /// use foresee::{Check, Recorder, Session};
    ///
    /// let recorder = Recorder::new();
    /// let x = recorder.var("x", 0);
    /// recorder.spawn("worker", { let x = x.clone(); move || x.set(1) }).join();
    /// x.set(2);
    /// let trace = recorder.trace()?;
    /// assert!(Session::new(&trace).check(Check::Race).run()?.is_complete());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_complete(&self) -> bool {
        self.exit_status() == 0
    }

    /// The exit status of the command line: 0 if nothing was found and the answer is complete, 1 if
    /// something was found, 2 if a bug in foresee cost an answer, 3 if nothing was found but the
    /// answer is not complete.
    ///
    /// ```
    /// use foresee::{Check, Recorder, Session};
    ///
    /// let trace = Recorder::new().trace()?;
    /// let report = Session::new(&trace).check(Check::Race).run()?;
    /// assert_eq!(report.exit_status(), 3, "nothing was recorded, so nothing is known");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn exit_status(&self) -> u8 {
        foresee_report::exit_status(&self.report)
    }

    /// The report as one JSON object, as `--format json` prints it.
    ///
    /// ```
    /// use foresee::{Recorder, Session};
    ///
    /// let trace = Recorder::new().trace()?;
    /// assert!(Session::new(&trace).run()?.to_json().starts_with(r#"{"foresee":"#));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn to_json(&self) -> String {
        foresee_report::json::report(&self.report)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&foresee_report::text::report(&self.report, &Options::default()))
    }
}
