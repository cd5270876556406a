//! Patterns in correct reorderings: the analysis behind `--reorder sliced`.

use std::time::{Duration, Instant};

use foresee_causality::judge::Reads;
use foresee_causality::{Clock, Clocks, Order, Stamp};
use foresee_spec::Resolved;
use foresee_spec::ast::Spec;
use foresee_spec::letter::Letter;
use foresee_spec::monitor::TooManyStates;
use foresee_spec::pattern::Position;
use foresee_spec::property::Compiled;
use foresee_trace::{Event, Flow, Id, Names, Op, Outcome, Pool, Space, entry};
use serde::{Deserialize, Serialize};

use super::goal::{Answer, Effort, Goal, Sight, Wanted};
use super::repair::Search;
use super::requirements::{Requirements, TooManyEvents};
use super::tuples::{Candidate, Tried, Tuples};
use crate::analysis::{Analysed, Analysis, AnalysisError, Conclusion, End, Pass, Stat};
use crate::beyond::{BYTES_PER_EVENT, BindingSearch, PropertySteps, ViolatingOrder, as_far_as};
use crate::candidates::Candidates;
use crate::confirm::Reordered;
use crate::info::SLICED;
use crate::settled::{BindingVerdict, Sharing};
use crate::shares::Shares;

/// The number of bindings up to which the whole trace is searched for each.
const FEW_BINDINGS: usize = 16;
/// How far back from the first event of a tuple events may change, step by step. If a near search
/// fails, the next one reaches farther, at more cost; with many bindings, only near ones are made.
const LOOK_BACK: [u32; 3] = [200, 10_000, u32::MAX];
/// How many tuples are tried for one choice of threads, and how many such choices for a binding.
const TRIES: usize = 64;
const COMBINATIONS: usize = 20_000;

/// How far to search.
#[derive(Clone, Copy, Debug)]
pub struct SlicedLimits {
    /// What reads may see.
    pub reads: Reads,
    /// How many events the trace may have, all of which are kept, at some twenty bytes each.
    pub trace: usize,
    /// How many relevant events are looked at; the first ones.
    pub events: usize,
    /// How many steps the search for one property may take, for each event of the trace and at
    /// least.
    pub work_per_event: u64,
    /// How many steps it may take however short the trace is.
    pub least_work: u64,
    /// How long the searches for all properties may take together.
    pub time: Option<Duration>,
    /// How far back events may change where there are many bindings.
    pub look_back: u32,
}

impl Default for SlicedLimits {
    fn default() -> Self {
        SlicedLimits {
            reads: Reads::Terminal,
            trace: 120_000_000,
            events: 4_000_000,
            work_per_event: 20,
            least_work: 300_000_000,
            time: None,
            look_back: LOOK_BACK[0],
        }
    }
}

/// Looks for the patterns of a specification in correct reorderings of a trace.
///
/// # Guarantees
/// What is found is a correct reordering with the pattern in it; the judge sees to that. Silence
/// promises nothing: only some reorderings are tried, though nearly all that small traces have.
/// Memory grows with the trace, by about twenty bytes an event.
pub struct Sliced {
    requirements: Requirements,
    too_long: Option<TooManyEvents>,
    clocks: Clocks,
    /// What each thread has needed so far.
    known: Vec<Option<Clock>>,
    /// The clocks that must be kept.
    stamps: Vec<Stamp>,
    watches: Vec<PropertySteps<Candidate>>,
    limits: SlicedLimits,
    /// What others have decided, or are to know.
    sharing: Sharing,
}

impl Sliced {
    /// Prepares for a trace with these names. Bindings that have a run with the same causality
    /// among the candidates at the end of the trace are skipped.
    pub fn new(
        spec: &Spec,
        properties: Vec<Compiled>,
        resolved: &Resolved,
        names: &Names,
        limits: SlicedLimits,
    ) -> Sliced {
        let patterns =
            properties.into_iter().enumerate().filter(|(_, property)| property.sequences.is_some());
        let watch =
            |(number, property)| PropertySteps::new(number, property, spec, resolved, names);
        Sliced {
            requirements: Requirements::default(),
            too_long: None,
            clocks: Clocks::new(Order::Needs),
            known: Vec::new(),
            stamps: Vec::new(),
            watches: patterns.map(watch).collect(),
            limits,
            sharing: Sharing::default(),
        }
    }

    /// Uses verdicts on bindings and objects that were reached elsewhere, or reaches some of them and nothing else.
    #[must_use]
    pub(crate) fn in_parts(mut self, sharing: Sharing) -> Sliced {
        self.sharing = sharing;
        self
    }

    /// Whether there is any pattern to look for.
    pub fn has_patterns(&self) -> bool {
        !self.watches.is_empty()
    }

    fn event(&mut self, index: u32, event: &Event, pool: &Pool) -> Result<(), AnalysisError> {
        let stamp = self.clocks.event(event)?;
        if event.op() == Op::Init {
            return Ok(());
        }
        let known = entry(&mut self.known, event.thread().index()).replace(stamp.known);
        for watch in &mut self.watches {
            let Some(step) = watch.step(event, pool, self.limits.events) else { continue };
            // A read that nothing follows may see any write, unless the pattern asks for its value.
            let is_read = event.op().reads();
            let keeps_value = is_read && !watch.is_blind(event, pool, step);
            let is_free = is_read
                && event.op() != Op::Rmw
                && !keeps_value
                && self.limits.reads == Reads::Terminal;
            let stamp = match is_free {
                true => Stamp { known: known.unwrap_or(Clock::EMPTY), ..stamp },
                false => stamp,
            };
            self.stamps.push(stamp);
            let candidate = Candidate { wanted: Wanted { event: index, keeps_value }, stamp };
            watch.keep(candidate, step, event, pool);
        }
        self.clocks.forget_old(&self.stamps);
        Ok(())
    }
}

impl Analysis for Sliced {
    fn name(&self) -> &'static str {
        SLICED
    }

    fn events(&mut self, pass: &mut Pass<'_>) -> Result<Flow, AnalysisError> {
        let Pass { first, batch, .. } = pass;
        let first = *first;
        for (i, event) in batch.events.iter().enumerate() {
            if let Err(error) = self.requirements.push_within(self.limits.trace, event, &batch.pool)
            {
                self.too_long = Some(error);
                return Ok(Flow::Stop);
            }
            self.event(first as u32 + i as u32, event, &batch.pool)?;
        }
        Ok(Flow::Continue)
    }

    fn bytes(&self) -> usize {
        let of_trace = self.requirements.len() * BYTES_PER_EVENT;
        of_trace + self.watches.iter().map(PropertySteps::bytes).sum::<usize>()
    }

    fn searches(&self) -> usize {
        1
    }

    fn finish(&mut self, end: &mut End<'_, '_>) -> Result<Vec<Analysed>, AnalysisError> {
        self.requirements.finish();
        let mut search = Search::new(&self.requirements, self.limits.reads);
        let mut analysed = Vec::new();
        let mut shares = Shares::new(end.room.time_within(self.limits.time), self.watches.len());
        for watch in self.watches.iter_mut() {
            let time = shares.next();
            if watch.len() == 0 {
                continue;
            }
            let mut tally = SearchStats::default();
            if let Some(error) = self.too_long {
                tally.trouble = Some(error.to_string());
            } else {
                let mut search = PropertySearch {
                    search: &mut search,
                    clocks: &self.clocks,
                    limits: self.limits,
                    work: self
                        .limits
                        .least_work
                        .max(self.limits.work_per_event * self.requirements.len() as u64),
                    until: time.map(|time| Instant::now() + time),
                    tally: &mut tally,
                    sharing: &self.sharing,
                };
                if let Err(error) = search.all(watch, end.out.candidates, end.room.memory) {
                    tally.trouble = Some(error.to_string());
                }
            }
            // If the observed run or a simpler one fails, there was nothing left to search for.
            if tally.searched > 0 || tally.trouble.is_some() {
                analysed.push(tally.analysed(watch));
            }
        }
        Ok(analysed)
    }
}

/// The search for one property.
struct PropertySearch<'h, 'r> {
    search: &'h mut Search<'r>,
    clocks: &'h Clocks,
    limits: SlicedLimits,
    /// How many steps are left.
    work: u64,
    until: Option<Instant>,
    tally: &'h mut SearchStats,
    sharing: &'h Sharing,
}

impl PropertySearch<'_, '_> {
    fn all(
        &mut self,
        watch: &mut PropertySteps<Candidate>,
        candidates: &mut Candidates,
        memory: usize,
    ) -> Result<(), TooManyStates> {
        let known = candidates.bindings_of(watch.number);
        let sequences = watch.property.sequences.clone().unwrap_or_default();
        let (sharing, before) = (self.sharing, SlicedVerdict::default());
        let load = watch.property.monitor.load();
        let mut one = OneBinding { search: self, sequences: &sequences, before, load };
        let property = &watch.property;
        let which = (sharing, SLICED, property.name.as_str(), watch.number);
        let searched = watch.steps.search(&property.params, &known, memory, &mut one, which)?;
        self.tally.bindings = searched.bindings;
        self.tally.is_enough = searched.is_enough;
        self.tally.found = searched.found.len() as u64;
        candidates.reordered.extend(searched.found.into_iter().map(|found| Reordered {
            analysis: SLICED,
            reorder: Space::Sliced,
            reads: self.limits.reads,
            property: watch.number,
            binding: found.binding,
            observed: found.observed,
            order: found.order,
        }));
        Ok(())
    }

    fn is_over(&mut self) -> bool {
        self.tally.is_out_of_time |= self.until.is_some_and(|until| Instant::now() >= until);
        self.tally.is_out_of_work |= self.work == 0;
        self.tally.is_out_of_time || self.tally.is_out_of_work
    }

    /// Looks for a reordering that shows one of the sequences.
    fn binding(
        &mut self,
        sequences: &[Vec<Position>],
        steps: &[(Candidate, u64)],
        look_back: &[u32],
    ) -> Option<(u32, Vec<u32>)> {
        if sequences.iter().any(|sequence| is_observed(sequence, steps)) {
            // If the observed run fails, there is nothing to predict.
            self.tally.observed += 1;
            return None;
        }
        self.tally.searched += 1;
        let mut found = None;
        let sights: &[Sight] = match self.search.has_free_reads() {
            true => &[Sight::Writers, Sight::Values],
            false => &[Sight::Writers],
        };
        for &sight in sights {
            for sequence in sequences {
                let clocks = (sight == Sight::Writers).then_some(self.clocks);
                let tuples = Tuples::new(sequence, steps, clocks, TRIES, COMBINATIONS);
                let Some(mut tuples) = tuples else { continue };
                let _ = tuples
                    .each(&mut |executed| self.attempt(sight, executed, look_back, &mut found));
                self.tally.too_many_threads |= tuples.is_exhausted();
                if found.is_some() || self.is_over() {
                    return found;
                }
            }
        }
        found
    }

    /// Looks for a reordering with these events in this order.
    fn attempt(
        &mut self,
        sight: Sight,
        executed: &[Wanted],
        look_back: &[u32],
        found: &mut Option<(u32, Vec<u32>)>,
    ) -> Tried {
        self.tally.tuples += 1;
        let goal = Goal { executed, next: &[] };
        let first = goal.first().unwrap_or(0);
        let mut blamed = 0;
        let mut is_settled = [false; 2];
        for &back in look_back {
            let anchor = first.saturating_sub(back);
            let efforts = [Effort::QUICK, Effort::THOROUGH];
            for (effort, is_settled) in efforts.into_iter().zip(&mut is_settled) {
                if *is_settled {
                    continue;
                }
                if self.is_over() {
                    return Tried::Stop;
                }
                let effort = Effort { work: self.work, ..effort };
                let answer = self.search.ask_seeing(sight, &goal, anchor, effort);
                self.work = self.work.saturating_sub(self.search.take_work());
                match answer {
                    Answer::Yes { observed, order } => {
                        *found = Some((observed, order));
                        return Tried::Found;
                    }
                    Answer::No { blamed: more, gave_up, is_final } => {
                        self.tally.gave_up += u64::from(gave_up);
                        *is_settled = is_final;
                        blamed = more;
                    }
                }
            }
            if anchor == 0 {
                break;
            }
        }
        if blamed == 0 { Tried::Hopeless } else { Tried::TooEarly(blamed) }
    }
}

/// The search for one binding of a property.
struct OneBinding<'s, 'h, 'r> {
    search: &'s mut PropertySearch<'h, 'r>,
    sequences: &'s [Vec<Position>],
    /// What all searches had come to before the latest.
    before: SlicedVerdict,
    load: f64,
}

/// What the search for one binding came to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SlicedVerdict {
    searched: u64,
    observed: u64,
    tuples: u64,
    gave_up: u64,
    too_many_threads: bool,
    /// How many steps it took.
    work: u64,
    found: Option<ViolatingOrder>,
}

impl PropertySearch<'_, '_> {
    /// What all searches have come to so far; the work is what is left.
    fn so_far(&self) -> SlicedVerdict {
        SlicedVerdict {
            searched: self.tally.searched,
            observed: self.tally.observed,
            tuples: self.tally.tuples,
            gave_up: self.tally.gave_up,
            too_many_threads: false,
            work: self.work,
            found: None,
        }
    }
}

impl BindingSearch<Candidate> for OneBinding<'_, '_, '_> {
    fn is_over(&mut self) -> bool {
        self.search.is_over()
    }

    fn search(
        &mut self,
        steps: &[(Candidate, u64)],
        bindings: usize,
    ) -> Result<Option<(u64, Vec<u64>)>, TooManyStates> {
        let look_back = match bindings {
            ..=FEW_BINDINGS => &LOOK_BACK[..],
            _ => &[self.search.limits.look_back],
        };
        self.before = self.search.so_far();
        let had_too_many = std::mem::take(&mut self.search.tally.too_many_threads);
        let found = self.search.binding(self.sequences, steps, look_back);
        self.before.too_many_threads = self.search.tally.too_many_threads;
        self.search.tally.too_many_threads |= had_too_many;
        Ok(found
            .map(|(observed, order)| (observed.into(), order.into_iter().map(u64::from).collect())))
    }

    fn verdict(&mut self, found: &Option<ViolatingOrder>) -> Option<BindingVerdict> {
        let (before, now) = (self.before.clone(), self.search.so_far());
        (!self.search.is_over()).then(|| {
            BindingVerdict::Sliced(SlicedVerdict {
                searched: now.searched - before.searched,
                observed: now.observed - before.observed,
                tuples: now.tuples - before.tuples,
                gave_up: now.gave_up - before.gave_up,
                too_many_threads: before.too_many_threads,
                work: before.work - now.work,
                found: found.clone(),
            })
        })
    }

    fn recall(&mut self, verdict: &BindingVerdict) -> Option<Option<ViolatingOrder>> {
        let BindingVerdict::Sliced(verdict) = verdict else { return None };
        self.search.work = self.search.work.checked_sub(verdict.work).filter(|&left| left > 0)?;
        let tally = &mut *self.search.tally;
        tally.searched += verdict.searched;
        tally.observed += verdict.observed;
        tally.tuples += verdict.tuples;
        tally.gave_up += verdict.gave_up;
        tally.too_many_threads |= verdict.too_many_threads;
        Some(verdict.found.clone())
    }

    fn load(&self) -> f64 {
        self.load
    }
}

/// Whether the captured order has the sequence.
fn is_observed(sequence: &[Position], steps: &[(Candidate, u64)]) -> bool {
    let mut next = sequence.iter().peekable();
    for (_, atoms) in steps {
        if next.peek().is_some_and(|position| position.matches(Letter(*atoms))) {
            next.next();
        }
    }
    next.peek().is_none()
}

/// The result of the search for one property.
#[derive(Default)]
struct SearchStats {
    bindings: Option<u64>,
    searched: u64,
    observed: u64,
    found: u64,
    tuples: u64,
    gave_up: u64,
    is_enough: bool,
    is_out_of_time: bool,
    is_out_of_work: bool,
    too_many_threads: bool,
    trouble: Option<String>,
}

impl SearchStats {
    fn analysed(&self, watch: &PropertySteps<Candidate>) -> Analysed {
        let mut stats = Vec::new();
        if let Some(bindings) = self.bindings {
            stats.push(("bindings", Stat::Count(bindings)));
        }
        stats.push(("tuples_tried", Stat::Count(self.tuples)));
        if self.gave_up > 0 {
            stats.push(("searches_given_up", Stat::Count(self.gave_up)));
        }
        Analysed {
            name: SLICED,
            property: Some(watch.property.name.clone()),
            outcome: self.outcome(watch),
            conclusion: Conclusion::Other,
            statement: self.statement(watch),
            notes: Vec::new(),
            stats,
        }
    }

    /// How far the search got. It never covers all correct reorderings.
    fn outcome(&self, watch: &PropertySteps<Candidate>) -> Outcome {
        let is_cut = self.is_out_of_work || self.too_many_threads || self.gave_up > 0;
        match self {
            _ if self.is_out_of_time => Outcome::TimeLimit,
            _ if is_cut || self.trouble.is_some() => Outcome::StateLimit,
            _ if watch.cut_off => Outcome::EventLimit,
            _ => Outcome::Window,
        }
    }

    fn statement(&self, watch: &PropertySteps<Candidate>) -> String {
        let statement = match self.found {
            0 => "no violation found where critical sections swap and events are left out, as far \
                  as was searched"
                .to_owned(),
            1 => "violated where critical sections swap or events are left out".to_owned(),
            n => format!(
                "violated by {n} bindings where critical sections swap or events are left out"
            ),
        };
        let reasons = [
            (self.is_enough, "enough was found"),
            (self.is_out_of_time, "there was no time left"),
            (self.is_out_of_work, "the search became too large"),
            (self.too_many_threads, "there are too many combinations of threads"),
            (self.gave_up > 0, "some searches were given up"),
            (watch.cut_off, "only the first events were kept"),
        ];
        as_far_as(statement, &reasons, self.trouble.as_deref())
    }
}
