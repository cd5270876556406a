//! The only event loop: one pass over the trace for everything that was asked.

use std::time::{Duration, Instant};

use foresee_trace::{
    Batch, EventSource, FileOrder, Finding, FindingKind, FindingSink, Flow, Names, Outcome,
    Remarks, Trace,
};

use crate::analysis::{Analysed, Analysis, AnalysisError, Conclusion, End, Out, Pass, Room};
use crate::candidates::Candidates;
use crate::info::{AnalysisInfo, OBSERVED, keeps_causality};
use crate::kept::Kept;
use crate::memory::MemoryLimit;
use crate::monitorability::ScheduleVerdict;
use crate::observed::WhichRun;
use crate::shares::Shares;

/// Called from time to time with the number of events read so far.
pub type Progress<'a> = &'a mut dyn FnMut(u64);

/// The result of a pass over the trace.
#[derive(Debug)]
pub struct Summary {
    /// How many events were read.
    pub events: u64,
    /// The conclusions of the analyses, in the order in which they were given.
    pub analysed: Vec<Analysed>,
    /// The remarks of the reader.
    pub remarks: Remarks,
    /// What searches propose, which is still to be confirmed.
    pub candidates: Vec<Candidates>,
    /// How long the searches took.
    pub searched: Duration,
}

/// One analysis of a pass, and the candidates that it shares with others of its specification.
pub(crate) struct Search<'a> {
    /// The analysis.
    pub(crate) analysis: &'a mut dyn Analysis,
    /// Which of the candidates are its own, by number.
    pub(crate) of: usize,
}

/// Receives findings and the progress of a pass.
pub(crate) trait Receiver: FindingSink {
    /// The analyses are about to get these events, the first of which has this index.
    fn batch(&mut self, first: u64, batch: &Batch, names: &Names) {
        let _ = (first, batch, names);
    }

    /// `events` events have been read. Candidates that are reported early may be taken out.
    fn read(&mut self, events: u64, candidates: &mut [Candidates]);
}

/// What is known when a trace has been read, and nothing has been concluded yet.
#[derive(Debug)]
pub(crate) struct ReadThrough {
    /// How many events were read.
    pub events: u64,
    /// Whether these are all.
    pub(crate) is_all: bool,
    /// How many events every analysis has got, if there was no memory for more.
    pub(crate) full_after: Option<u64>,
    /// As many of the first events as analyses need.
    pub(crate) trace: Option<Trace>,
    /// What the analyses, the trace and its names took when the last event had been read, in bytes.
    held: usize,
}

/// Feeds a trace to analyses until it ends, none of them wants more, or there is no memory for more.
/// What was found until then stands: the beginning of a run is a run.
pub(crate) fn read(
    source: &mut dyn EventSource,
    searches: &mut [Search<'_>],
    candidates: &mut [Candidates],
    receiver: &mut dyn Receiver,
    memory: &MemoryLimit<'_>,
) -> Result<ReadThrough, AnalysisError> {
    let mut batch = Batch::default();
    let mut events = 0;
    let mut wanted: Vec<bool> = vec![true; searches.len()];
    let mut trace = Some(Trace::default());
    let (mut is_all, mut full_after) = (true, None);
    // What each analysis holds, and all of them together.
    let (mut sizes, mut held) = (vec![0; searches.len()], 0);
    while source.next_batch(&mut batch)? {
        let names = source.names();
        receiver.batch(events, &batch, names);
        let kept = trace.as_ref().map_or(0, Trace::bytes) + names.bytes();
        let each = searches.iter_mut().zip(&mut wanted).zip(&mut sizes);
        for ((search, wanted), size) in each.filter(|((_, wanted), _)| **wanted) {
            let out = Out::new(receiver, &mut candidates[search.of]);
            let mut pass = Pass { first: events, batch: &batch, names, out };
            *wanted = search.analysis.events(&mut pass)? == Flow::Continue;
            let before = std::mem::replace(size, search.analysis.bytes());
            held = held - before + *size;
            // A batch can hold thousands of threads, and take as much of every analysis.
            if !memory.allows(kept + held) {
                full_after = Some(events);
                break;
            }
        }
        let before = events;
        events += batch.events.len() as u64;
        // Once events are missing, later ones are useless.
        let needed = needed_events(searches);
        trace = trace.filter(|_| needed.is_some());
        if let Some(trace) = trace.as_mut().filter(|trace| trace.events.len() as u64 == before) {
            trace.push_batch(&mut batch);
            let most = needed.and_then(|events| usize::try_from(events).ok());
            trace.events.truncate(most.unwrap_or(usize::MAX));
            trace.stacks.truncate(trace.events.len());
        }
        receiver.read(events, candidates);
        let kept = trace.as_ref().map_or(0, Trace::bytes) + source.names().bytes();
        if full_after.is_none() && !memory.allows(kept + held) {
            full_after = Some(events);
        }
        if full_after.is_some() || !wanted.contains(&true) {
            is_all = false;
            break;
        }
    }
    let mut trace = trace.filter(|_| needed_events(searches).is_some());
    if let Some(trace) = &mut trace {
        trace.names = source.names().clone();
        trace.remarks = source.remarks().clone();
    }
    let kept = trace.as_ref().map_or(0, |trace| size_of_val(&*trace.events));
    held += kept + source.names().bytes();
    Ok(ReadThrough { events, is_all, full_after, trace, held })
}

/// How many of the first events some analysis needs at the end.
fn needed_events(searches: &[Search<'_>]) -> Option<u64> {
    let needs_trace = |analysis: &dyn Analysis| {
        AnalysisInfo::of(analysis.name()).is_some_and(|info| info.needs_trace)
    };
    let analyses = searches.iter().map(|search| &*search.analysis);
    analyses.filter(|one| needs_trace(*one)).filter_map(|one| one.kept_events()).max()
}

/// How much the searches of all analyses may take together.
#[derive(Clone, Copy)]
pub(crate) struct Together<'m, 's> {
    /// From now on; `None` for no limit but those of each analysis.
    pub(crate) time: Option<Duration>,
    /// With everything that is held already.
    pub(crate) memory: &'m MemoryLimit<'s>,
}

/// Asks analyses for their conclusions on a trace that has been read.
pub(crate) fn finish(
    read: &ReadThrough,
    source: &dyn EventSource,
    searches: &mut [Search<'_>],
    mut candidates: Vec<Candidates>,
    kept: Option<&Kept<'_>>,
    limits: Together<'_, '_>,
    out: &mut dyn FindingSink,
) -> Result<Summary, AnalysisError> {
    let mut analysed = Vec::new();
    let start = Instant::now();
    let spent = searches.iter().map(|search| search.analysis.searched()).sum();
    let time = limits.time.map(|time| time.saturating_sub(spent));
    let mut shares =
        Shares::new(time, searches.iter().map(|search| search.analysis.searches()).sum());
    for search in searches {
        let out = Out::new(out, &mut candidates[search.of]);
        let time = shares.next_of(search.analysis.searches());
        let room = Room { time, memory: limits.memory.left(read.held) };
        let mut end = End { names: source.names(), kept, out, room };
        analysed.extend(search.analysis.finish(&mut end)?);
    }
    let searched = start.elapsed() + spent;
    // What was not read can hold anything.
    if !read.is_all {
        for one in analysed.iter_mut().filter(|a| a.outcome == Outcome::Exhausted) {
            one.outcome = Outcome::EventLimit;
        }
    }
    // Causality was read off an order that is not that of the steps.
    if source.remarks().order == FileOrder::Notes {
        let holds = |one: &Analysed| one.info().is_some_and(AnalysisInfo::holds_for_notes);
        for one in analysed.iter_mut().filter(|one| !holds(one)) {
            one.outcome = Outcome::OrderUnknown;
            one.statement = "nothing is claimed of other runs: the order of this trace is only \
                             that in which its events were noted"
                .to_owned();
            one.stats.clear();
        }
    }
    // What was left out of a filtered trace matters as soon as the causality changes.
    if source.remarks().order == FileOrder::Filtered {
        for one in analysed.iter_mut().filter(|one| !keeps_causality(one.name)) {
            one.outcome = Outcome::OrderUnknown;
            one.statement = "not looked for: the capture left out accesses that only matter here; \
                             capture everything with `foresee run --all`"
                .to_owned();
            one.stats.clear();
        }
    }
    let mut remarks = source.remarks().clone();
    if let Some(events) = read.full_after {
        let why = format!(
            "after event {events} there was no memory for more (--max-memory, --total-memory): \
             not everything after that was looked at"
        );
        remarks.partial.get_or_insert(why);
    }
    Ok(Summary { events: read.events, analysed, remarks, candidates, searched })
}

/// Reads a trace for analyses that share their candidates, and asks for their conclusions.
pub fn run(
    source: &mut dyn EventSource,
    analyses: &mut [Box<dyn Analysis>],
    out: &mut dyn FindingSink,
    progress: Progress<'_>,
) -> Result<Summary, AnalysisError> {
    let mut candidates = vec![Candidates::default()];
    let mut searches: Vec<Search<'_>> =
        analyses.iter_mut().map(|analysis| Search { analysis: analysis.as_mut(), of: 0 }).collect();
    let mut plain = Plain { out, progress };
    let memory = MemoryLimit::new(usize::MAX, &|_| true);
    let read = read(source, &mut searches, &mut candidates, &mut plain, &memory)?;
    let kept = read.trace.as_ref().map(Kept::new);
    let (searches, kept) = (&mut searches, kept.as_ref());
    let limits = Together { time: None, memory: &memory };
    finish(&read, source, searches, candidates, kept, limits, plain.out)
}

/// Findings go to a sink, and progress to a function.
struct Plain<'a> {
    out: &'a mut dyn FindingSink,
    progress: Progress<'a>,
}

impl FindingSink for Plain<'_> {
    fn finding(&mut self, finding: Finding) -> Flow {
        self.out.finding(finding)
    }
}

impl Receiver for Plain<'_> {
    fn read(&mut self, events: u64, _: &mut [Candidates]) {
        (self.progress)(events);
    }
}

/// For a trace of notes: takes back what the order of the notes violates, unless every order that
/// they leave open does. What was seen is then one of several things that may have happened.
pub(crate) fn settle_notes(analysed: &mut [Analysed], findings: &mut Vec<Finding>) {
    let monitorable = Conclusion::Schedule(ScheduleVerdict::Monitorable);
    let certain: Vec<Option<String>> = analysed
        .iter()
        .filter(|one| one.conclusion == monitorable)
        .map(|one| one.property.clone())
        .collect();
    let is_certain = |property: &str| certain.iter().flatten().any(|name| name == property);
    let was_seen = |finding: &Finding| finding.kind == FindingKind::Observed;
    findings.retain(|finding| !was_seen(finding) || is_certain(&finding.property));
    for one in analysed.iter_mut().filter(|one| one.name == OBSERVED) {
        match &one.conclusion {
            _ if !one.property.as_deref().is_some_and(is_certain) => {
                one.statement = "not known: the order in which events happened decides, and the \
                                 notes do not show it"
                    .to_owned();
            }
            Conclusion::Watched(watched) => one.statement = watched.statement(WhichRun::Any),
            Conclusion::Other | Conclusion::Schedule(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Notes what it may take.
    struct Greedy {
        searches: usize,
        searched: Duration,
        room: Option<Room>,
    }

    impl Analysis for Greedy {
        fn name(&self) -> &'static str {
            OBSERVED
        }

        fn events(&mut self, _: &mut Pass<'_>) -> Result<Flow, AnalysisError> {
            Ok(Flow::Continue)
        }

        fn finish(&mut self, end: &mut End<'_, '_>) -> Result<Vec<Analysed>, AnalysisError> {
            self.room = Some(end.room);
            Ok(Vec::new())
        }

        fn bytes(&self) -> usize {
            1 << 20
        }

        fn searches(&self) -> usize {
            self.searches
        }

        fn searched(&self) -> Duration {
            self.searched
        }
    }

    #[test]
    fn all_searches_share_one_time_limit_and_one_memory_limit() {
        let trace = foresee_testkit::trace! { T1: w(x)=1 };
        let second = Duration::from_secs(1);
        let greedy = |searches, searched| Greedy { searches, searched, room: None };
        let mut all = [
            greedy(0, Duration::ZERO),
            greedy(1, second * 400),
            greedy(4, Duration::ZERO),
            greedy(1, Duration::ZERO),
        ];
        let mut searches: Vec<Search<'_>> =
            all.iter_mut().map(|analysis| Search { analysis, of: 0 }).collect();
        let mut findings = Vec::new();
        let mut none = |_| {};
        let mut plain = Plain { out: &mut findings, progress: &mut none };
        let (mut source, mut candidates) = (trace.source(), vec![Candidates::default()]);
        let memory = MemoryLimit::new(16 << 20, &|_| true);
        let read = read(&mut source, &mut searches, &mut candidates, &mut plain, &memory).unwrap();
        let limits = Together { time: Some(1000 * second), memory: &memory };
        finish(&read, &source, &mut searches, candidates, None, limits, plain.out).unwrap();
        let rooms = all.map(|one| one.room.unwrap());
        // What one leaves over is for those that follow, and only the searches count.
        let shares = rooms.map(|room| room.time.unwrap().as_secs_f64().round());
        assert_eq!(shares, [0.0, 100.0, 480.0, 600.0]);
        assert!(rooms.iter().all(|room| room.memory <= 12 << 20 && room.memory > 11 << 20));
    }
}
