//! All reads of a trace, on all cores.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::ControlFlow;
use std::time::Instant;

use foresee_trace::{EXTERNAL, LocId, Op, ThreadId, Trace, Value, VarId, entry};
use serde::{Deserialize, Serialize};

use super::candidates::{Candidates, Target};
use super::graph::{Deadline, Graph, Kind, NONE};
use super::{Counts, Effort, Form, MOST_LOCATIONS, Options, Verdict, witness};
use crate::analysis::AnalysisError;
use crate::checks::{CandidatePart, Decided};
use crate::parallel::{Work, in_order};

/// What could see another write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Reader {
    /// The event with this index.
    Event(u64),
    /// A read of the variable with this number after the end.
    Final(u32),
}

/// A read that could see another write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Broken {
    /// Which one.
    pub reader: Reader,
    /// The write that it saw; nothing for the initial value.
    pub saw: Option<u64>,
    /// A write that it could see instead.
    pub challenger: Option<u64>,
    /// How the witness for that looks.
    pub form: Form,
    /// How many writes it could see instead.
    pub challengers: u64,
    #[serde(with = "locations")]
    pub(super) written_at: Vec<Option<LocId>>,
    target: Target,
    node: u32,
}

/// Locations as their numbers.
mod locations {
    use foresee_trace::LocId;
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    pub(super) fn serialize<S: Serializer>(
        all: &[Option<LocId>],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        all.iter().map(|one| one.map(|loc| loc.0)).collect::<Vec<_>>().serialize(to)
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(
        from: D,
    ) -> Result<Vec<Option<LocId>>, D::Error> {
        let all = Vec::<Option<u32>>::deserialize(from)?;
        Ok(all.into_iter().map(|one| one.map(LocId)).collect())
    }
}

/// What a search came to.
#[derive(Debug, Default)]
pub struct Searched {
    /// What could see another write, in the order of the trace.
    pub broken: Vec<Broken>,
    /// The results of the candidates.
    pub counts: Counts,
    /// Whether it stopped at the first.
    pub stopped: bool,
}

impl Searched {
    /// How many of them are events.
    pub fn breakable_reads(&self) -> u64 {
        self.broken.iter().filter(|b| matches!(b.reader, Reader::Event(_))).count() as u64
    }
}

/// What the examination of some reads came to, each by its place in the list.
struct Examined {
    broken: Vec<(usize, Broken)>,
    counts: Counts,
}

/// What was decided of a part of the reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DecidedReads {
    part: CandidatePart,
    /// What tells these reads from others: verdicts on others are worth nothing.
    pub(crate) of: u64,
    broken: Vec<(usize, Broken)>,
    counts: Counts,
}

impl DecidedReads {
    /// Whether it says the same as another one, or speaks of reads that the other one leaves out.
    pub(crate) fn goes_with(&self, other: &DecidedReads) -> bool {
        self.of == other.of && self.part.of == other.part.of && self.part != other.part
    }
}

/// The search for breakable reads of one trace.
#[derive(Debug)]
pub struct Search<'t> {
    trace: &'t Trace,
    options: &'t Options,
    graph: Graph,
    targets: Vec<Target>,
    /// The number of variables left out, because code that was not captured writes them at unknown
    /// times, for unknown threads.
    left_out: u64,
    /// Initial values that the trace states.
    initial: Vec<Option<Value>>,
    deadline: Deadline,
}

/// How many reads a core takes at a time.
const CHUNK: usize = 32;

impl<'t> Search<'t> {
    /// Learns what happened in a well-formed trace.
    pub fn new(trace: &'t Trace, options: &'t Options) -> Result<Search<'t>, AnalysisError> {
        let unknown = |what: &str, name: &str| {
            AnalysisError::Limit(format!("there is no {what} named `{name}` in the trace"))
        };
        let names = &trace.names;
        let variables = options
            .variables
            .iter()
            .map(|name| names.vars.lookup(name).ok_or_else(|| unknown("variable", name)));
        let variables: Vec<VarId> = variables.collect::<Result<_, _>>()?;
        let threads = options
            .threads
            .iter()
            .map(|name| names.threads.lookup(name).ok_or_else(|| unknown("thread", name)));
        let threads: Vec<ThreadId> = threads.collect::<Result<_, _>>()?;
        let deadline = Deadline(options.time.map(|time| Instant::now() + time / 4 * 3));
        let graph = Graph::new(trace, deadline, options.memory)?;
        if graph.is_cut_short || graph.is_too_large {
            let (targets, initial) = (Vec::new(), Vec::new());
            return Ok(Search { trace, options, graph, targets, left_out: 0, initial, deadline });
        }
        let uninstrumented = names.threads.lookup(EXTERNAL);
        let by_stranger = |v: u32| {
            let writes = &graph.variables[v as usize].writes;
            uninstrumented.is_some_and(|s| writes.iter().any(|(thread, _)| *thread == s.0))
        };
        let is_asked = |v: u32| variables.is_empty() || variables.contains(&VarId(v));
        let is_wanted = |v: u32| is_asked(v) && !by_stranger(v);
        let all = 0..graph.variables.len() as u32;
        let left_out = all.filter(|&v| is_asked(v) && by_stranger(v)).count() as u64;
        let is_reader = |t: u32| threads.is_empty() || threads.contains(&ThreadId(t));
        let is_written = |v: u32| !graph.variables[v as usize].writes.is_empty();
        let mut targets = Vec::new();
        for (i, node) in graph.nodes.iter().enumerate() {
            let reads = matches!(node.kind, Kind::Read | Kind::Rmw);
            if reads && is_wanted(node.object) && is_reader(node.thread) && is_written(node.object)
            {
                targets.push(Target::Read(i as u32));
            }
        }
        if threads.is_empty() {
            let all = 0..graph.variables.len() as u32;
            targets.extend(all.filter(|&v| is_wanted(v) && is_written(v)).map(Target::Final));
        }
        let mut initial = Vec::new();
        for event in trace.events.iter().filter(|e| e.op() == Op::Init) {
            *entry(&mut initial, event.var().0 as usize) = trace.pool.value(event);
        }
        Ok(Search { trace, options, graph, targets, left_out, initial, deadline })
    }

    /// Whether there is nothing that could see another write.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// How many reads are looked at.
    pub fn reads(&self) -> usize {
        self.targets.iter().filter(|t| matches!(t, Target::Read(_))).count()
    }

    /// How many variables are not looked at, because code that was not captured writes them.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Whether some access that is looked at has no value.
    pub fn lacks_values(&self) -> bool {
        let accesses = self.graph.variables.iter().flat_map(|v| &v.all);
        accesses.into_iter().any(|&node| self.value(node).is_none())
    }

    /// Whether the time is up.
    pub fn is_late(&self) -> bool {
        self.deadline.is_over()
    }

    /// Whether the last quarter of the time is up, too, which is all there is for writing out what was
    /// found.
    pub fn is_overdue(&self) -> bool {
        let late =
            self.deadline.0.map(|deadline| Instant::now().saturating_duration_since(deadline));
        late.zip(self.options.time).is_some_and(|(late, time)| late > time / 4)
    }

    /// Whether there was not enough memory to look at anything.
    pub fn is_too_large(&self) -> bool {
        self.graph.is_too_large
    }

    /// Whether the time was up before anything could be looked at.
    pub fn is_cut_short(&self) -> bool {
        self.graph.is_cut_short
    }

    fn candidates(&self) -> Candidates<'_> {
        Candidates::new(&self.graph, self.options.effort, self.deadline)
    }

    /// Goes through all reads, other than those of parts that are decided.
    pub fn run(&self, decided: &Decided) -> Searched {
        let mut found = Searched::default();
        if self.options.first {
            let mut candidates = self.candidates();
            for &target in &self.targets {
                if let Some(broken) = self.examine(&mut candidates, target) {
                    found.broken.push(broken);
                    found.stopped = true;
                    break;
                }
            }
            found.counts = candidates.counts;
            return found;
        }
        let known = decided.reads(self.fingerprint());
        let is_open = |at: usize| !known.iter().any(|one| one.part.has(at));
        let mut reads = self.examine_all(is_open);
        for one in known {
            reads.counts.add(&one.counts);
            let is_its = |(at, broken): &&(usize, Broken)| {
                one.part.has(*at) && self.targets.get(*at) == Some(&broken.target)
            };
            reads.broken.extend(one.broken.iter().filter(is_its).cloned());
        }
        reads.broken.sort_by_key(|&(at, _)| at);
        found.counts = reads.counts;
        found.broken = reads.broken.into_iter().map(|(_, one)| one).collect();
        found
    }

    /// Goes through a part of the reads, for a search that [knows](Search::run) what this one decides. One that stops at the
    /// first has no parts.
    pub(super) fn run_part(&self, part: CandidatePart) -> Option<DecidedReads> {
        if self.options.first {
            return None;
        }
        let Examined { broken, counts } = self.examine_all(|at| part.has(at));
        Some(DecidedReads { part, of: self.fingerprint(), broken, counts })
    }

    /// Distinguishes lists of reads. Another compiler may give other numbers, which costs time and nothing else.
    fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.targets.hash(&mut hasher);
        self.graph.events.hash(&mut hasher);
        hasher.finish()
    }

    /// Examines the wanted reads, on all cores.
    fn examine_all(&self, is_wanted: impl Fn(usize) -> bool) -> Examined {
        let wanted: Vec<usize> = (0..self.targets.len()).filter(|&at| is_wanted(at)).collect();
        let work = Work { cores: self.options.cores, chunk: CHUNK };
        let start = || (self.candidates(), Vec::new());
        let each = |(candidates, broken): &mut (Candidates<'_>, Vec<_>), _: usize, &at: &usize| {
            broken.extend(self.examine(candidates, self.targets[at]).map(|one| (at, one)));
            ControlFlow::Continue(())
        };
        let end = |(candidates, broken): (Candidates<'_>, Vec<_>)| (broken, candidates.counts);
        let parts = work.on_all(&wanted, start, each, end);
        let mut counts = Counts::default();
        parts.iter().for_each(|(_, more)| counts.add(more));
        Examined { broken: in_order(parts.into_iter().map(|(broken, _)| broken)), counts }
    }

    fn event(&self, node: u32) -> Option<u64> {
        (node != NONE).then(|| u64::from(self.graph.events[node as usize]))
    }

    /// The value that a node writes, or else reads.
    fn value(&self, node: u32) -> Option<Value> {
        let event = &self.trace.events[self.graph.events[node as usize] as usize];
        self.trace.pool.value(event)
    }

    /// What the target saw: its variable, the write and its value.
    fn observed(&self, target: Target) -> (u32, u32, Option<Value>) {
        match target {
            Target::Read(read) => {
                let node = self.graph.node(read);
                let event = &self.trace.events[self.graph.events[read as usize] as usize];
                // For a read-modify-write, the old value comes first.
                let values = self.trace.pool.values(event);
                let value = match node.kind {
                    Kind::Rmw if values.len() < 2 => None,
                    _ => values.first().copied(),
                };
                (node.object, node.saw, value)
            }
            Target::Final(variable) => {
                let writes = &self.graph.variables[variable as usize].writes;
                let last = writes.iter().filter_map(|(_, writes)| writes.last()).max();
                let last = last.copied().unwrap_or(NONE);
                (variable, last, (last != NONE).then(|| self.value(last)).flatten())
            }
        }
    }

    fn examine(&self, candidates: &mut Candidates<'_>, target: Target) -> Option<Broken> {
        if self.is_late() {
            candidates.counts.give_up();
            return None;
        }
        let (variable, saw, observed) = self.observed(target);
        let initial = self.initial.get(variable as usize).copied().flatten();
        let wanted = |challenger: u32| {
            if !self.options.same_value {
                return true;
            }
            let value = if challenger == NONE { initial } else { self.value(challenger) };
            observed.is_none() || value.is_none() || observed != value
        };
        let mut broken: Option<Broken> = None;
        candidates.decide(target, wanted, |challenger, form, verdict| {
            if verdict != Verdict::Feasible {
                return;
            }
            let it = broken.get_or_insert_with(|| Broken {
                reader: match target {
                    Target::Read(read) => {
                        Reader::Event(u64::from(self.graph.events[read as usize]))
                    }
                    Target::Final(variable) => Reader::Final(variable),
                },
                saw: self.event(saw),
                challenger: self.event(challenger),
                form,
                challengers: 0,
                written_at: Vec::new(),
                target,
                node: NONE - 1,
            });
            // Both forms of one challenger come one after the other.
            if it.node != challenger {
                it.node = challenger;
                it.challengers += 1;
                let event = self.event(challenger);
                let at = event.map(|event| self.trace.events[event as usize].loc());
                if it.written_at.len() < MOST_LOCATIONS && !it.written_at.contains(&at) {
                    it.written_at.push(at);
                }
            }
        });
        broken
    }

    /// The witness of a breakable read, as an order of events.
    pub(super) fn witness(&self, broken: &Broken) -> Result<Vec<u64>, String> {
        // It was found in time, so it is written out.
        let mut candidates = Candidates::new(&self.graph, self.options.effort, Deadline(None));
        let only = |challenger: u32| self.event(challenger) == broken.challenger;
        let mut order = None;
        candidates.decide_one(broken.target, only, broken.form, |solver| {
            order = Some(solver.order());
        });
        let nodes = order.ok_or("internal error: a witness was not found again")?;
        Ok(witness::write_out(self.trace, &self.graph, &nodes, broken.reader))
    }
}

/// Reports every candidate that clocks do not rule out: the reader, the event whose write it would
/// see (`None` for the initial value), the form of the witness, and the verdict.
pub fn decide_all(
    trace: &Trace,
    effort: Effort,
    mut tell: impl FnMut(Reader, Option<u64>, Form, Verdict),
) -> Result<Counts, AnalysisError> {
    let options = Options { effort, ..Options::default() };
    let search = Search::new(trace, &options)?;
    let mut candidates = search.candidates();
    for &target in &search.targets {
        let reader = match target {
            Target::Read(read) => Reader::Event(u64::from(search.graph.events[read as usize])),
            Target::Final(variable) => Reader::Final(variable),
        };
        candidates.decide(
            target,
            |_| true,
            |challenger, form, verdict| {
                tell(reader, search.event(challenger), form, verdict);
            },
        );
    }
    Ok(candidates.counts)
}

#[cfg(test)]
mod tests {
    use foresee_testkit::trace;

    use super::*;

    #[test]
    fn reads_that_there_is_no_time_for_are_given_up() {
        let trace = trace! { T1: w(x), w(y); T2: r(x), r(y) };
        let options = Options::default();
        let mut search = Search::new(&trace, &options).unwrap();
        assert_eq!(search.run(&Decided::default()).broken.len(), 2);
        search.deadline = Deadline(Some(Instant::now()));
        let found = search.run(&Decided::default());
        assert!(found.broken.is_empty());
        assert_eq!(found.counts.undecided, search.targets.len() as u64);
        assert_eq!(found.counts.candidates, found.counts.undecided);
    }
}
