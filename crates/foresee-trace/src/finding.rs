//! The findings of analyses, and where they go.
//!
//! A finding is plain data: [sites](Site) with their places, threads and locks, a [`Verdict`], a
//! [`Witness`]. Reports render text from it. Nothing reads the text back.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::detail::Detail;
use crate::fingerprint::Fingerprint;
use crate::site::Site;
use crate::words::{Word, read_word, words};

words! {
    /// Whether a violation was seen or is foreseen.
    ///
    /// ```
    /// assert_eq!(foresee_trace::FindingKind::Predicted.word(), "predicted");
    /// ```
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum FindingKind {
        /// The captured order itself violates the property.
        Observed = "observed",
        /// Only another possible run violates it.
        Predicted = "predicted",
        /// The execution leaves two orders open, one of which violates the property and the other
        /// does not, so the schedule determines a monitor's verdict.
        ScheduleDependent = "schedule-dependent",
        /// Another run would violate it if a read saw another value than it did and its thread
        /// continued as before. This is not claimed, but not ruled out either.
        Conditional = "conditional",
    }
}

words! {
    /// The spaces of reorderings, from the smallest: where to search, and in which of them a
    /// violation shows.
    ///
    /// ```
    /// use foresee_trace::Space;
    ///
    /// assert!(Space::Maz < Space::Correct);
    /// assert_eq!(Space::Sliced.word(), "sliced");
    /// ```
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Space {
        /// Only events that nothing orders: the order of conflicting accesses and of all operations of
        /// each lock is kept.
        Maz = "maz",
        /// Critical sections are swapped and events left out, stretch by stretch of the file's order.
        Sliced = "sliced",
        /// Any correct reordering.
        Correct = "correct",
        /// Any order that notes leave open.
        Notes = "notes",
    }
}

/// A concrete order of events that shows a violation.
///
/// ```
/// use foresee_trace::{Space, Witness};
///
/// let swapped = Witness::listed(Space::Maz, vec![0, 2, 1], 2);
/// assert_eq!(swapped.run().collect::<Vec<_>>(), [0, 2, 1]);
/// assert_eq!(swapped.needed_events(), 3);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Witness {
    /// The smallest space known to have it.
    pub reorder: Space,
    /// The number of events of the trace that come first, as observed.
    pub observed: u64,
    /// Indices of the events after them, in the order of the violating run. With each event it
    /// holds everything that must precede it.
    pub order: Vec<u64>,
    /// The position in the whole run, with the observed beginning, of the step that violates; the
    /// last one if it is what comes `next` that does, and the length of the run if nothing violates:
    /// an order that is shown to keep the property.
    pub violated_at: usize,
    /// The events that the threads are about to do after it, where these are what the violation
    /// consists of: the accesses of a race, the requests of a deadlock.
    pub next: Vec<u64>,
    /// The reads in it that see another, unknown value than in the trace.
    pub changed_reads: Vec<u64>,
}

impl Witness {
    /// A run that is listed from its first event on.
    pub fn listed(reorder: Space, order: Vec<u64>, violated_at: usize) -> Witness {
        let (observed, next, changed_reads) = (0, Vec::new(), Vec::new());
        Witness { reorder, observed, order, violated_at, next, changed_reads }
    }

    /// How many of the first events of the trace it takes to show it.
    pub fn needed_events(&self) -> u64 {
        let listed = self.order.iter().chain(&self.next).map(|event| event + 1).max();
        listed.unwrap_or(0).max(self.observed)
    }

    /// The whole run: the observed beginning and what comes after it.
    pub fn run(&self) -> impl Iterator<Item = u64> + '_ {
        (0..self.observed).chain(self.order.iter().copied())
    }
}

words! {
    /// What goes wrong.
    ///
    /// ```
    /// assert_eq!(foresee_trace::Verdict::LostUpdate.word(), "lost-update");
    /// ```
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Verdict {
        /// A property of a specification is violated.
        Violated = "violated",
        /// Two accesses happen at the same time.
        ConcurrentAccess = "concurrent-access",
        /// Two accesses are not ordered by the rules of the language, whatever the machine does.
        UnorderedAccess = "unordered-access",
        /// Threads wait for each other.
        LockCycle = "lock-cycle",
        /// Threads wait for each other until one gives up.
        Stall = "stall",
        /// A thread waits for a condition that nothing signals any more.
        EndlessWait = "endless-wait",
        /// A thread waits for a lock that is never given back.
        LockNeverReleased = "lock-never-released",
        /// A thread waits for something that no thread can give it.
        Stuck = "stuck",
        /// A value is read and written back, and another thread writes it in between.
        LostUpdate = "lost-update",
        /// A variable is read twice, and another thread writes it in between.
        InconsistentReads = "inconsistent-reads",
        /// A variable is written and read back, and another thread writes it in between.
        Overwritten = "overwritten",
        /// A variable is written twice, and another thread reads it in between.
        IntermediateRead = "intermediate-read",
        /// A region cannot be put before or after what other threads do.
        NotSerialisable = "not-serialisable",
        /// An object is used after its end.
        UseAfterEnd = "use-after-end",
        /// An object is ended twice.
        EndedTwice = "ended-twice",
        /// An object is used before its beginning.
        UseBeforeBegin = "use-before-begin",
        /// A read could see another write.
        OtherWrite = "other-write",
        /// The final value of a variable could be another.
        OtherFinalValue = "other-final-value",
        /// The program exited with a failure, was killed, or was ended after its time.
        Failed = "failed",
        /// The program hung.
        Hung = "hung",
    }
}

/// Something that has a name and that a finding is about as a whole, besides its sites.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Subject {
    /// A variable.
    Variable(String),
    /// An object that is freed, closed or initialised.
    Object(String),
    /// An atomic region.
    Region(String),
    /// A lock.
    Lock(String),
    /// A thread.
    Thread(String),
}

impl Subject {
    /// The word for its kind in reports.
    pub fn kind(&self) -> &'static str {
        match self {
            Subject::Variable(_) => "variable",
            Subject::Object(_) => "object",
            Subject::Region(_) => "region",
            Subject::Lock(_) => "lock",
            Subject::Thread(_) => "thread",
        }
    }

    /// Its name in the trace.
    pub fn name(&self) -> &str {
        match self {
            Subject::Variable(name)
            | Subject::Object(name)
            | Subject::Region(name)
            | Subject::Lock(name)
            | Subject::Thread(name) => name,
        }
    }
}

/// Which of several runs of a program, or of several traces, show a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownBy {
    /// How many do.
    pub runs: usize,
    /// The total number.
    pub of: usize,
    /// The run or trace that the finding was taken from.
    pub from: String,
    /// The names of the traces that show it; none for runs.
    pub traces: Vec<String>,
}

/// How many traces are named in a line.
const NAMED_TRACES: usize = 5;

impl fmt::Display for ShownBy {
    /// `3 of 5 show it; this is from run 2`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} show it", self.runs, self.of)?;
        if self.runs > 1 && !self.traces.is_empty() {
            let named = &self.traces[..self.traces.len().min(NAMED_TRACES)];
            write!(f, ", {}", named.join(", "))?;
            if self.traces.len() > named.len() {
                write!(f, " and {} more", self.traces.len() - named.len())?;
            }
        }
        write!(f, "; this is from {}", self.from)
    }
}

/// A violation.
///
/// ```
/// use foresee_trace::{Finding, FindingKind};
///
/// /// What to do about a finding.
/// fn triage(finding: &Finding) -> String {
///     let places = finding.sites.iter().filter_map(|site| site.location());
///     let places: Vec<String> = places.map(ToString::to_string).collect();
///     match finding.kind {
///         FindingKind::Observed => format!("{} happened at {}", finding.rule(), places.join(", ")),
///         _ => format!("{} can happen: {}", finding.rule(), finding.message),
///     }
/// }
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Finding {
    /// What it is known by from run to run. Sessions set it.
    pub fingerprint: Option<Fingerprint>,
    /// Seen or foreseen.
    pub kind: FindingKind,
    /// The analysis that found it.
    #[serde(deserialize_with = "read_word")]
    pub analysis: Word,
    /// The property or check that is violated.
    pub property: String,
    /// What goes wrong.
    pub verdict: Verdict,
    /// What happens, in one sentence.
    pub message: String,
    /// The event at which it happens, if the violation is in the captured order.
    pub event: Option<u64>,
    /// The order that shows it. The captured order, up to `event`, is its own witness.
    pub witness: Option<Witness>,
    /// The events that it consists of.
    pub sites: Vec<Site>,
    /// What it is about as a whole.
    pub about: Vec<Subject>,
    /// More that helps people to understand it, in the order in which to show it.
    pub details: Vec<Detail>,
    /// Which of several runs show it.
    pub shown_by: Option<ShownBy>,
    /// The order that shows it as steps of the program's threads, for `foresee replay`.
    pub schedule: Option<String>,
    /// Whether the program was seen to fail in this way.
    pub confirmation: Option<Confirmation>,
}

words! {
    /// The result of the attempt to make a predicted failure happen.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Confirmed {
        /// It happened in the program.
        Yes = "confirmed",
        /// The program did something else before it could; this refutes nothing.
        Diverged = "diverged",
        /// The program could not be controlled, or did not fail although it was; this refutes nothing.
        NotForced = "not-forced",
        /// There was no attempt.
        NotTried = "not-tried",
    }
}

/// The result of the attempt to make a predicted failure happen, and how, in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confirmation {
    /// The result.
    pub is: Confirmed,
    /// How, or why not.
    pub how: String,
}

impl Finding {
    /// The kind of bug, as tools that group findings by rules want it: the name of a property, or
    /// of a check with its verdict, as in `race/concurrent-access`.
    pub fn rule(&self) -> String {
        match self.verdict {
            Verdict::Violated => self.property.clone(),
            verdict => format!("{}/{}", self.property, verdict.word()),
        }
    }
}

/// Whether to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// More is wanted.
    Continue,
    /// Enough was seen.
    Stop,
}

/// Takes findings as they are made. Analyses never print.
pub trait FindingSink {
    /// Takes one finding, and says whether more are wanted.
    fn finding(&mut self, finding: Finding) -> Flow;
}

impl FindingSink for Vec<Finding> {
    fn finding(&mut self, finding: Finding) -> Flow {
        self.push(finding);
        Flow::Continue
    }
}

words! {
    /// How much of what could be searched was searched.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Outcome {
        /// Every run that the causality allows was covered.
        Exhausted = "exhausted",
        /// Only some runs were looked at; with a window of one, the observed run alone.
        Window = "window",
        /// The property's monitor, or the search, grew too large.
        StateLimit = "state-limit",
        /// The search needed more memory than it may take.
        MemoryLimit = "memory-limit",
        /// There was no time left.
        TimeLimit = "time-limit",
        /// The trace was not read to its end.
        EventLimit = "event-limit",
        /// A value that a property needs was not captured, so it could not be judged everywhere.
        UnknownValues = "unknown-values",
        /// The order of the trace is only that of its notes, from which no other run follows.
        OrderUnknown = "order-unknown",
        /// There was nothing to look at: the trace is empty, or nothing in it is relevant.
        NothingRelevant = "nothing-relevant",
        /// The question was not answered: the trace could not be read, or whoever was to answer it failed.
        NotAnswered = "not-answered",
        /// The analysis contradicted itself, so nothing is claimed.
        Mistake = "internal-error",
    }
}
