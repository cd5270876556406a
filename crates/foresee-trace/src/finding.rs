//! What analyses say, and to whom they say it.

/// Whether a violation was seen or is foreseen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindingKind {
    /// The captured order itself violates the property.
    Observed,
    /// Only another run that the threads could have had does.
    Predicted,
    /// Of two orders that the execution leaves open one violates the property and the other does
    /// not, so that a monitor's verdict is one of the schedule.
    ScheduleDependent,
    /// Another run would, if some read of it saw another value than it did and its thread went on all
    /// the same. Nothing is claimed, but it is not ruled out either.
    Conditional,
}

impl FindingKind {
    /// The word for it in reports.
    pub fn word(self) -> &'static str {
        match self {
            FindingKind::Observed => "observed",
            FindingKind::Predicted => "predicted",
            FindingKind::ScheduleDependent => "schedule-dependent",
            FindingKind::Conditional => "conditional",
        }
    }
}

/// The spaces of reorderings, from the smallest: what had to change for a violation to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reordering {
    /// Only events that nothing orders: the order of conflicting accesses and of all operations of
    /// each lock is kept.
    Maz,
    /// Critical sections are swapped and events left out, stretch by stretch of the file's order.
    Sliced,
    /// Any correct reordering.
    Correct,
    /// Any order that notes leave open.
    Notes,
}

impl Reordering {
    /// The word for it, on the command line and in reports.
    pub fn word(self) -> &'static str {
        match self {
            Reordering::Maz => "maz",
            Reordering::Sliced => "sliced",
            Reordering::Correct => "correct",
            Reordering::Notes => "notes",
        }
    }
}

/// A concrete order of events that shows a violation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Witness {
    /// The smallest space known to have it.
    pub reorder: Reordering,
    /// So many events of the trace come first, as observed.
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
    /// The reads in it that see another value than in the trace, nobody knows which.
    pub changed_reads: Vec<u64>,
}

impl Witness {
    /// A run that is listed from its first event on.
    pub fn listed(reorder: Reordering, order: Vec<u64>, violated_at: usize) -> Witness {
        let (observed, next, changed_reads) = (0, Vec::new(), Vec::new());
        Witness { reorder, observed, order, violated_at, next, changed_reads }
    }

    /// The whole run: the observed beginning and what comes after it.
    pub fn run(&self) -> impl Iterator<Item = u64> + '_ {
        (0..self.observed).chain(self.order.iter().copied())
    }
}

/// A violation.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Seen or foreseen.
    pub kind: FindingKind,
    /// The analysis that found it.
    pub analysis: &'static str,
    /// The property or check that is violated.
    pub property: String,
    /// What happens, in one sentence.
    pub message: String,
    /// The event at which it happens, if the violation is in the captured order.
    pub event: Option<u64>,
    /// The order that shows it. The captured order, up to `event`, is its own witness.
    pub witness: Option<Witness>,
    /// More that helps to understand it: names and values, in the order in which to show them.
    pub details: Vec<(String, String)>,
    /// The places, variables, locks and objects that it is about, which suppressions can name.
    pub about: Vec<String>,
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

/// How much of what could be searched was searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Every run that the causality allows was covered.
    Exhausted,
    /// Only some runs were looked at; with a window of one, the observed run alone.
    Window,
    /// The property's monitor, or the search, grew too large.
    StateLimit,
    /// The search needed more memory than it may take.
    MemoryLimit,
    /// There was no time left.
    TimeLimit,
    /// The trace was not read to its end.
    EventLimit,
    /// A value that a property needs was not captured, so it could not be judged everywhere.
    UnknownValues,
    /// The order of the trace is only that of its notes, from which no other run follows.
    OrderUnknown,
    /// There was nothing to look at: the trace is empty, or nothing in it is relevant.
    NothingRelevant,
    /// The analysis contradicted itself, so nothing is claimed.
    Mistake,
}

impl Outcome {
    /// The word for it in reports.
    pub fn word(self) -> &'static str {
        match self {
            Outcome::Exhausted => "exhausted",
            Outcome::Window => "window",
            Outcome::StateLimit => "state-limit",
            Outcome::MemoryLimit => "memory-limit",
            Outcome::TimeLimit => "time-limit",
            Outcome::EventLimit => "event-limit",
            Outcome::UnknownValues => "unknown-values",
            Outcome::OrderUnknown => "order-unknown",
            Outcome::NothingRelevant => "nothing-relevant",
            Outcome::Mistake => "internal-error",
        }
    }
}
