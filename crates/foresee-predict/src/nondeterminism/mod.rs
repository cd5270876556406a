//! Nondeterminism: reads that could have seen another write.
//!
//! A program whose reads see the same writes however its threads are scheduled is deterministic.
//! One run shows which reads are not like that: a read is *breakable* if the threads could have run
//! in an order in which every earlier read sees what it saw, locks exclude each other, and this
//! read sees another write. Mutual exclusion is reasoned about, not frozen: sections may swap.
//!
//! The question is that of Sinha, Malik and Gupta, *Efficient Predictive Analysis for Detecting
//! Nondeterminism in Multi-Threaded Programs*, FMCAD 2012; the search is our own, and exact.
//!
//! | file | what it does |
//! |---|---|
//! | `candidates` | which writes come into question, by clocks alone |
//! | `graph` | what every witness has in common: nodes, needs and clocks |
//! | `locks` | critical sections |
//! | `decide` | the search: edges that are forced, and choices |
//! | `linearise` | an order with these edges, and what is wrong with it |
//! | `search` | all reads of a trace, on all cores |
//! | `witness` | a witness as an order of events, and its confirmation |
//! | `places` | findings, by variable and source location |

mod candidates;
mod decide;
mod graph;
mod linearise;
mod locks;
mod places;
mod search;
mod witness;

use std::sync::Arc;
use std::time::Duration;

pub use candidates::{Counts, Form};
pub use decide::Verdict;
pub(crate) use search::DecidedReads;
pub use search::{Broken, Reader, Search, Searched, decide_all};

use foresee_support::count::count;
use foresee_trace::{Detail, Fact, Finding, FindingKind, Flow, Outcome, Space, Trace, Witness};

use crate::analysis::{Analysed, Analysis, AnalysisError, Conclusion, End, Pass, Stat};
use crate::checks::{Decided, Deciding};
use crate::info::NONDETERMINISM;
use crate::kept::Kept;
use places::{Place, places};

/// The number of source locations of writes that are listed for one place.
const MOST_LOCATIONS: usize = 6;

/// How hard to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// How many orders may be tried for one candidate.
    pub graphs: u32,
    /// How many events may be put into order for one candidate.
    pub work: u64,
}

impl Default for Effort {
    fn default() -> Self {
        Effort { graphs: 1000, work: 10_000_000 }
    }
}

/// What to look for.
#[derive(Clone, Debug)]
pub struct Options {
    /// Another write of the same value does not count.
    pub same_value: bool,
    /// Only reads of these variables; of all if empty.
    pub variables: Vec<String>,
    /// Only reads of these threads; of all if empty.
    pub threads: Vec<String>,
    /// Stop at the first read that could see another write.
    pub first: bool,
    /// How many cores to use.
    pub cores: usize,
    /// How hard to look.
    pub effort: Effort,
    /// How long to look.
    pub time: Option<Duration>,
    /// How many bytes the clocks may take.
    pub memory: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            same_value: false,
            variables: Vec::new(),
            threads: Vec::new(),
            first: false,
            cores: std::thread::available_parallelism().map_or(1, Into::into),
            effort: Effort::default(),
            time: None,
            memory: 1 << 30,
        }
    }
}

/// Finds the reads that could have seen another write.
///
/// # Guarantees
/// Each finding has a witness that an independent judge has confirmed. Without undecided
/// candidates, a read that is not found sees the same write in every correct reordering of the
/// trace in which the reads before it do. Memory is that of the trace and its clocks.
#[derive(Debug, Default)]
pub struct Nondeterminism {
    options: Options,
    decided: Arc<Decided>,
    deciding: Option<Deciding>,
}

impl Nondeterminism {
    /// Before the first event.
    pub fn new(options: Options) -> Self {
        Nondeterminism { options, decided: Arc::default(), deciding: None }
    }

    /// Uses what was decided elsewhere, or decides a part of the reads and does nothing else.
    pub(crate) fn in_parts(self, decided: Arc<Decided>, deciding: Option<Deciding>) -> Self {
        Nondeterminism { decided, deciding, ..self }
    }

    fn statement(&self, trace: &Trace, search: &Search<'_>, found: &Searched) -> String {
        if search.is_cut_short() {
            return format!(
                "there was no time to learn what happened in {} events: nothing is known of their \
                 reads",
                trace.events.len()
            );
        }
        if search.is_too_large() {
            return format!(
                "the clocks of {} events of {} threads take more memory than --max-memory allows: \
                 nothing is known of their reads",
                trace.events.len(),
                trace.names.threads.len()
            );
        }
        let is_narrow = !self.options.variables.is_empty() || !self.options.threads.is_empty();
        let what = match (is_narrow, search.left_out()) {
            (true, _) => " of those asked for",
            (false, 0) => "",
            (false, _) => " of those looked at",
        };
        let reads = found.broken.iter().filter(|b| matches!(b.reader, Reader::Event(_))).count();
        let finals = found.broken.len() - reads;
        if search.is_empty() && search.left_out() == 0 {
            return format!(
                "no read{what} is of a variable that another thread writes: every one sees the \
                 same write in every run"
            );
        }
        let finals = match finals {
            0 => String::new(),
            1 => ", and the final value of 1 variable depends on the order".to_owned(),
            n => format!(", and the final values of {n} variables depend on the order"),
        };
        let undecided = found.counts.undecided;
        match (reads, found.stopped, undecided) {
            (_, true, _) => "stopped at the first read that could see another write".to_owned(),
            (0, _, 0) => format!(
                "no read{what} could see another write{} in a run in which the reads before it see \
                 what they saw{finals}",
                if self.options.same_value { " of another value" } else { "" }
            ),
            (n, _, 0) => format!(
                "{n} of {}{what} could see another write{finals}; the others see the same \
                 one in every run in which the reads before them do",
                count(search.reads(), "read")
            ),
            (n, _, undecided) => format!(
                "{n} of {}{what} could see another write{finals}; {undecided} of the candidates \
                 were given up, so there may be more",
                count(search.reads(), "read")
            ),
        }
    }

    fn finding(
        &self,
        search: &Search<'_>,
        kept: &Kept<'_>,
        place: &Place,
        keep: &mut usize,
    ) -> Result<Finding, AnalysisError> {
        let (trace, judge, example) = (kept.trace, kept.judge(), &place.example);
        let order = search.witness(example).map_err(AnalysisError::Limit)?;
        witness::confirm(trace, judge, &order, example.reader, example.challenger).map_err(
            |refused| {
                AnalysisError::Mistake(format!(
                    "the witness of {:?} was refused: {refused}",
                    example.reader
                ))
            },
        )?;
        let sites = place.sites(trace);
        let mut details = place.details(trace, &sites);
        let witness = if order.len() <= *keep {
            *keep -= order.len();
            let violated_at = order.len().saturating_sub(1);
            let changed_reads = match example.reader {
                Reader::Event(read) => vec![read],
                Reader::Final(_) => Vec::new(),
            };
            let listed = Witness::listed(Space::Correct, order, violated_at);
            Some(Witness { changed_reads, ..listed })
        } else {
            let note = "found and confirmed, but not kept; narrow the search with --variable";
            details.push(Detail::new("witness", Fact::Text(note.to_owned())));
            None
        };
        Ok(Finding {
            fingerprint: None,
            kind: FindingKind::Predicted,
            analysis: NONDETERMINISM,
            property: NONDETERMINISM.to_owned(),
            verdict: place.verdict(),
            message: place.message(trace),
            event: None,
            witness,
            sites,
            about: vec![place.subject(trace)],
            details,
            shown_by: None,
            schedule: None,
            confirmation: None,
        })
    }
}

impl Analysis for Nondeterminism {
    fn name(&self) -> &'static str {
        NONDETERMINISM
    }

    fn events(&mut self, _: &mut Pass<'_>) -> Result<Flow, AnalysisError> {
        Ok(Flow::Continue)
    }

    fn searches(&self) -> usize {
        1
    }

    fn finish(&mut self, end: &mut End<'_, '_>) -> Result<Vec<Analysed>, AnalysisError> {
        let kept = end.whole()?;
        let trace = kept.trace;
        self.options.time = end.room.time_within(self.options.time);
        self.options.memory = self.options.memory.min(end.room.memory);
        let search = Search::new(trace, &self.options)?;
        if let Some(deciding) = &self.deciding {
            search.run_part(deciding.part).into_iter().for_each(|part| deciding.keep_reads(part));
            return Ok(Vec::new());
        }
        let mut found = search.run(&self.decided);
        let broken = std::mem::take(&mut found.broken);
        let places = places(trace, broken.clone());
        found.broken = broken;
        // Many long witnesses would take more memory than the trace.
        let mut keep = trace.events.len().saturating_mul(8).max(1 << 22);
        let mut unconfirmed: &[Place] = &[];
        for (i, place) in places.iter().enumerate() {
            if search.is_overdue() {
                unconfirmed = &places[i..];
                break;
            }
            let finding = match self.finding(&search, kept, place, &mut keep) {
                Err(AnalysisError::Mistake(why)) => {
                    return Ok(vec![Analysed::mistake(NONDETERMINISM, None, &why)]);
                }
                finding => finding?,
            };
            if end.out.finding(finding) == Flow::Stop {
                break;
            }
        }
        // What is not confirmed is not claimed.
        found.broken.retain(|one| !unconfirmed.iter().any(|p| p.has(trace, one)));
        found.counts.undecided += unconfirmed.len() as u64;
        let counts = found.counts;
        let infeasible = counts.ordered + counts.cyclic + counts.exhausted;
        let mut notes = Vec::new();
        if self.options.same_value && search.lacks_values() {
            notes.push(
                "not all accesses have values: a write whose value was not captured counts as one \
                 of another value"
                    .to_owned(),
            );
        }
        if search.left_out() > 0 {
            notes.push(format!(
                "{} variables are left out: code that was not captured writes them, and it is not known \
                 when",
                search.left_out()
            ));
        }
        if !unconfirmed.is_empty() {
            notes.push(format!(
                "{} more places were found, but there was no time to confirm them",
                unconfirmed.len()
            ));
        }
        let count = Stat::Count;
        let questions = counts.questions.max(1);
        Ok(vec![Analysed {
            name: NONDETERMINISM,
            property: None,
            outcome: match (trace.events.is_empty(), found.stopped, counts.undecided) {
                (true, ..) => Outcome::NothingRelevant,
                _ if search.is_cut_short() => Outcome::TimeLimit,
                _ if search.is_too_large() => Outcome::MemoryLimit,
                (_, true, _) => Outcome::Window,
                (_, _, 0) if search.left_out() > 0 => Outcome::Window,
                (_, _, 0) => Outcome::Exhausted,
                _ if search.is_late() => Outcome::TimeLimit,
                _ => Outcome::StateLimit,
            },
            conclusion: Conclusion::Other,
            statement: self.statement(trace, &search, &found),
            notes,
            stats: vec![
                ("reads", count(search.reads() as u64)),
                ("breakable_reads", count(found.breakable_reads())),
                ("breakable_finals", count(found.broken.len() as u64 - found.breakable_reads())),
                ("places", count((places.len() - unconfirmed.len()) as u64)),
                ("candidates", count(counts.candidates)),
                ("rejected", count(infeasible)),
                ("rejected_by_clocks", count(counts.ordered)),
                ("rejected_by_cycle", count(counts.cyclic)),
                ("rejected_after_choices", count(counts.exhausted)),
                ("feasible", count(counts.feasible + counts.chosen)),
                ("feasible_after_choices", count(counts.chosen)),
                ("same_value", count(counts.same_value)),
                ("undecided", count(counts.undecided)),
                ("graphs", count(counts.graphs)),
                (
                    "graphs_per_witness",
                    Stat::Text(format!("{:.3}", counts.graphs as f64 / questions as f64)),
                ),
            ],
        }])
    }
}
