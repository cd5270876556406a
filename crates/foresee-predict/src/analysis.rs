//! The seam between the loop and the analyses.

use std::time::Duration;

use foresee_trace::{
    Batch, Finding, FindingSink, Flow, Names, Outcome, ReadError, Word, read_word,
};
use serde::{Deserialize, Deserializer, Serialize};

use crate::candidates::Candidates;
use crate::causality::Concurrency;
use crate::info::{AnalysisInfo, CAUSALITY, NONDETERMINISM};
use crate::kept::Kept;
use crate::monitorability::ScheduleVerdict;
use crate::nondeterminism::Nondeterminism;
use crate::observed::Watched;
use crate::session::Settings;

/// A number or a text that an analysis reports beside its findings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stat {
    /// A count.
    Count(u64),
    /// Anything else.
    Text(String),
}

/// What an analysis concluded about one property, where something else is decided by it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Conclusion {
    /// Nothing that others need to know.
    #[default]
    Other,
    /// What the observed run came to.
    Watched(Watched),
    /// Whether the verdict depends on the schedule, if that was decided exactly.
    Schedule(ScheduleVerdict),
}

/// What an analysis has to say of one property, once the trace has ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Analysed {
    /// The analysis.
    #[serde(deserialize_with = "read_word")]
    pub name: Word,
    /// The property, for analyses of properties.
    pub property: Option<String>,
    /// How much was searched.
    pub outcome: Outcome,
    /// What was found out, where something else is decided by it. A stored report, which is complete, has none.
    #[serde(skip)]
    pub conclusion: Conclusion,
    /// What was found out, and what silence means here, in a sentence or two.
    pub statement: String,
    /// What else the user should know: values that were missing, texts compared with numbers.
    pub notes: Vec<String>,
    /// Figures, in the order in which to show them.
    #[serde(deserialize_with = "read_stats")]
    pub stats: Vec<(Word, Stat)>,
}

fn read_stats<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(Word, Stat)>, D::Error> {
    #[derive(Deserialize)]
    struct Label(#[serde(deserialize_with = "read_word")] Word);
    let stats = Vec::<(Label, Stat)>::deserialize(from)?;
    Ok(stats.into_iter().map(|(Label(label), stat)| (label, stat)).collect())
}

impl Analysed {
    /// What there is to know about the analysis.
    pub fn info(&self) -> Option<&'static AnalysisInfo> {
        AnalysisInfo::of(self.name)
    }

    /// What is said in place of an answer after a mistake of ours.
    pub fn mistake(
        name: &'static str,
        property: Option<String>,
        why: &dyn std::fmt::Display,
    ) -> Self {
        Analysed {
            name,
            property,
            outcome: Outcome::Mistake,
            conclusion: Conclusion::Other,
            statement: format!(
                "internal error, so nothing is claimed here: {why}. Please report this mistake of \
                 foresee, with the trace"
            ),
            notes: Vec::new(),
            stats: Vec::new(),
        }
    }
}

/// Why an analysis could not go on.
#[derive(Debug, thiserror::Error)]
pub enum AnalysisError {
    /// The trace could not be read to its end.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The trace is longer than clocks can count.
    #[error(transparent)]
    TooLong(#[from] foresee_causality::TooLong),
    /// A limit was hit that leaves no answer.
    #[error("{0}")]
    Limit(String),
    /// It contradicted itself: a bug in foresee, which costs this analysis its answer and no
    /// other one.
    #[error("internal error, please report it with the trace: {0}")]
    Mistake(String),
}

/// Where an analysis puts what it finds, and the only way out: findings that it has confirmed
/// itself, and candidates that the judge has yet to see.
pub struct Out<'p> {
    findings: &'p mut dyn FindingSink,
    /// The candidates of the analysis's specification: its own, and those of the searches before
    /// it.
    pub candidates: &'p mut Candidates,
}

impl<'p> Out<'p> {
    /// A way out.
    pub fn new(findings: &'p mut dyn FindingSink, candidates: &'p mut Candidates) -> Self {
        Out { findings, candidates }
    }

    /// Hands on a finding, and says whether more are wanted.
    pub fn finding(&mut self, finding: Finding) -> Flow {
        self.findings.finding(finding)
    }
}

/// The next stretch of the trace, for one analysis.
pub struct Pass<'p> {
    /// The index of the first event of the batch.
    pub first: u64,
    /// The events.
    pub batch: &'p Batch,
    /// All names so far.
    pub names: &'p Names,
    /// Where to put what is found.
    pub out: Out<'p>,
}

/// The end of the trace, for one analysis.
pub struct End<'p, 't> {
    /// All names.
    pub names: &'p Names,
    /// The trace, if it was kept; see [`Analysis::kept_events`].
    pub kept: Option<&'p Kept<'t>>,
    /// Where to put what is found.
    pub out: Out<'p>,
    /// What the searches may take from now on.
    pub room: Room,
}

/// What an analysis may take of what all analyses of a trace may take together.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// How long it may search; `None` for no limit.
    pub time: Option<Duration>,
    /// How many bytes it may take besides those that it holds.
    pub memory: usize,
}

impl Room {
    /// No limits but those that an analysis has of its own.
    pub const ALL: Room = Room { time: None, memory: usize::MAX };

    /// The time that is left to an analysis with a limit of its own.
    pub fn time_within(&self, own: Option<Duration>) -> Option<Duration> {
        self.time.into_iter().chain(own).min()
    }
}

impl<'p, 't> End<'p, 't> {
    /// The trace, of which an analysis has said at every batch that it needs it.
    pub fn whole(&self) -> Result<&'p Kept<'t>, AnalysisError> {
        let missing = || AnalysisError::Mistake("the trace was not kept".to_owned());
        self.kept.ok_or_else(missing)
    }
}

/// Something that looks at a whole trace.
pub trait Analysis {
    /// The name by which [`AnalysisInfo::of`] describes it; any of them if it has several.
    fn name(&self) -> &'static str;

    /// Takes the next events.
    fn events(&mut self, pass: &mut Pass<'_>) -> Result<Flow, AnalysisError>;

    /// The trace has ended.
    fn finish(&mut self, end: &mut End<'_, '_>) -> Result<Vec<Analysed>, AnalysisError>;

    /// How many bytes it holds that can grow without bound: with threads, locks, bindings. The trace
    /// that the runner keeps for it does not count.
    fn bytes(&self) -> usize {
        0
    }

    /// How many searches it makes at the end of the trace that can take long. The time limit is divided
    /// equally among those of all analyses; what one does not need is for those that follow.
    fn searches(&self) -> usize {
        0
    }

    /// How long it has searched already, while the trace was read.
    fn searched(&self) -> Duration {
        Duration::ZERO
    }

    /// How many of the first events of the trace [`Analysis::finish`] needs, as far as is known by
    /// now, or `None` if it turned out that it does not need the trace. The runner asks those that
    /// [need the trace](AnalysisInfo::needs_trace) after every batch, and keeps no more than some
    /// analysis needs.
    fn kept_events(&self) -> Option<u64> {
        Some(u64::MAX)
    }
}

/// An analysis that can be asked for by name.
#[derive(Debug)]
pub struct AnalysisKind {
    /// Its name, by which [`AnalysisInfo::of`] describes it.
    pub name: &'static str,
    /// Makes one.
    pub new: fn(&Settings) -> Box<dyn Analysis>,
}

/// Every analysis that needs no specification, besides the checks.
pub const ANALYSES: &[AnalysisKind] = &[
    AnalysisKind { name: CAUSALITY, new: |_| Box::new(Concurrency::new()) },
    AnalysisKind {
        name: NONDETERMINISM,
        new: |settings| Box::new(Nondeterminism::new(settings.nondeterminism())),
    },
];
