//! Prediction of the patterns of a specification.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use foresee_spec::ast::{Atom, EventAtom, Term};
use foresee_spec::observe::EventTable;
use foresee_spec::params::Binding;
use foresee_spec::pattern::Position;
use foresee_spec::property::Compiled;
use foresee_spec::{Resolved, print_atom};
use foresee_support::count::count;
use foresee_trace::{Batch, Finding, FindingKind, Flow, Names, Outcome, Verdict};

use super::Match;
use super::engine::{AnyEngine, Core, MonitoredPattern, Seen, State};
use super::plan::{Algorithm, LaneMap, MAX_UNORDERED, SearchKind, Sequence};
use super::tracker::{Found, MAX_TUPLES};
use crate::analysis::{Analysed, Analysis, AnalysisError, Conclusion, End, Out, Pass, Stat};
use crate::info::{OBSERVED, PATTERN};
use crate::observed::{Watched, WhichRun, describe_binding, trail};
use crate::sites::{look_up_in, of_violation};

/// How many bindings of one pattern are reported one by one, of each kind.
const REPORTED_BINDINGS: usize = 20;

/// Looks for runs of the same causality that have a pattern, for all patterns in one pass.
///
/// # Guarantees
/// Sound: for every match there is a run of the Mazurkiewicz order that has its events in the order
/// of the pattern. Complete for that order if the outcome is [`Outcome::Exhausted`]. A match is
/// certain at the earliest event at which any is. Memory does not grow with the trace, only with
/// the number of threads, variables, locks and bindings.
#[derive(Debug)]
pub struct Patterns {
    core: Core,
    engine: AnyEngine,
    names: Vec<String>,
    /// The atoms of each pattern, as they are written.
    atoms: Vec<Vec<String>>,
    /// How many bindings of each pattern the observed run has.
    observed: Vec<usize>,
    /// For each pattern, whether a match was reported early; `None` unless early reports are
    /// wanted.
    reported: Option<Vec<bool>>,
}

impl Patterns {
    /// Whether this is a pattern that can be predicted here: one whose every match binds all of its
    /// parameters.
    pub fn accepts(property: &Compiled) -> bool {
        let Some(sequences) = &property.sequences else { return false };
        let params = &property.params;
        let total = (1u8 << params.names().len()) - 1;
        let by_set = |&any: &u64| {
            let bits = (0..64).filter(|bit| any >> bit & 1 == 1);
            bits.fold(total, |domain, bit| domain & params.domain_of(bit))
        };
        let bound = |position: &Position| position.all_of.iter().map(by_set).fold(0, |a, b| a | b);
        sequences.iter().all(|s| s.iter().fold(0, |all, position| all | bound(position)) == total)
    }

    /// Makes ready for a trace with these names. All properties must be accepted. Matches have the
    /// places of the properties in this list.
    pub fn new(
        properties: Vec<Compiled>,
        resolved: &Resolved,
        names: &Names,
        algorithm: Algorithm,
    ) -> Patterns {
        let mut atoms: Vec<&EventAtom> = Vec::new();
        let mut numbers: HashMap<(String, Vec<bool>), usize, RandomState> = HashMap::default();
        let mut users: Vec<Vec<(u32, u8)>> = Vec::new();
        let mut atoms_of: Vec<Vec<usize>> = Vec::new();
        for (watch, property) in properties.iter().enumerate() {
            let mut own = Vec::new();
            for (bit, atom) in property.alphabet.atoms().iter().enumerate() {
                let Atom::Event(event) = atom else { unreachable!("patterns are of events") };
                // What is a parameter of one pattern may be a name in another.
                let terms = [&event.target, &event.thread].into_iter().chain(&event.args);
                let params: Vec<bool> = terms.map(|t| matches!(t, Term::Param(_))).collect();
                let key = (print_atom(atom), params);
                let number = *numbers.entry(key).or_insert_with(|| {
                    atoms.push(event);
                    users.push(Vec::new());
                    atoms.len() - 1
                });
                users[number].push((watch as u32, bit as u8));
                own.push(number);
            }
            atoms_of.push(own);
        }
        let table = EventTable::new(atoms, resolved, names);
        let mut map = LaneMap::default();
        let mut watches = Vec::new();
        let mut atoms = Vec::new();
        let mut called = Vec::new();
        for (property, own) in properties.into_iter().zip(&atoms_of) {
            let chain = |bit: usize| table.chain(own[bit]);
            let positions = property.sequences.unwrap_or_default();
            atoms.push(property.alphabet.atoms().iter().map(print_atom).collect());
            let is_bound = !property.params.is_empty();
            let sequence =
                |s: &Vec<Position>| Sequence::new(s, chain, is_bound, algorithm, &mut map);
            let sequences = positions.iter().map(sequence).collect();
            watches.push(MonitoredPattern::new(sequences, property.params, own.len()));
            called.push(property.name);
        }
        let core = Core::new(watches, table, &users, map);
        let observed = vec![0; called.len()];
        let engine = AnyEngine::new();
        Patterns { core, engine, names: called, atoms, observed, reported: None }
    }

    /// Reports matches as soon as they are certain, not only at the end: for traces that are still
    /// being written. Patterns with parameters are only reported at the end.
    #[must_use]
    pub fn reporting_early(mut self) -> Patterns {
        self.reported = Some(vec![false; self.names.len()]);
        self
    }

    fn report_early(&mut self, out: &mut Out<'_>) {
        let Some(mut reported) = self.reported.take() else { return };
        for (watch, reported) in reported.iter_mut().enumerate() {
            let is_found = matches!(
                &self.core.watches[watch].state, State::One(tracker) if tracker.found.is_some()
            );
            if is_found && !std::mem::replace(reported, true) {
                out.candidates.early.matches.append(&mut self.found(watch).0);
            }
        }
        self.reported = Some(reported);
    }

    fn binding(
        &self,
        watch: usize,
        binding: &Binding,
    ) -> Vec<(String, foresee_spec::params::Object)> {
        self.core.watches[watch].params.named(binding)
    }

    /// Reports matches of the observed run in the latest events, which begin with this index.
    fn report(&mut self, latest: (u64, &Batch), names: &Names, out: &mut Out<'_>) -> Flow {
        for seen in std::mem::take(&mut self.core.seen) {
            let watch = seen.watch as usize;
            self.observed[watch] += 1;
            if self.observed[watch] > REPORTED_BINDINGS {
                continue;
            }
            let mut finding = self.observed_finding(&seen, names);
            look_up_in(&mut finding.sites, latest, names);
            if out.finding(finding) == Flow::Stop {
                return Flow::Stop;
            }
        }
        Flow::Continue
    }

    fn observed_finding(&self, seen: &Seen, names: &Names) -> Finding {
        let watch = seen.watch as usize;
        let binding = seen.binding.map_or_else(Vec::new, |b| self.binding(watch, &b));
        let mut details = describe_binding(&binding, names);
        if seen.events.len() > 1 {
            details.push(trail(&seen.events));
        }
        let event = seen.events.last().copied();
        let message = format!("violated in the observed run, at event {}", event.unwrap_or(0));
        Finding {
            fingerprint: None,
            kind: FindingKind::Observed,
            analysis: OBSERVED,
            property: self.names[watch].clone(),
            verdict: Verdict::Violated,
            message,
            event,
            witness: None,
            sites: of_violation(event, &seen.events, &[]),
            about: Vec::new(),
            details,
            shown_by: None,
            schedule: None,
            confirmation: None,
        }
    }

    /// The matches of a pattern, in the order in which they became certain, and their number.
    fn found(&self, watch: usize) -> (Vec<Match>, usize) {
        let made = |binding, found: &Found| Match {
            property: watch,
            binding,
            tuple: found.tuple.clone(),
            certain_at: found.certain_at,
        };
        match &self.core.watches[watch].state {
            State::Over => (Vec::new(), 0),
            State::One(tracker) => {
                let all: Vec<Match> = tracker.found.iter().map(|f| made(Vec::new(), f)).collect();
                let count = all.len();
                (all, count)
            }
            State::Bindings(instances) => {
                let mut all: Vec<(&Binding, &Found)> = instances.found().collect();
                let count = all.len();
                all.sort_by_key(|(_, found)| found.certain_at);
                let shown = all.into_iter().take(REPORTED_BINDINGS);
                (shown.map(|(b, f)| made(self.binding(watch, b), f)).collect(), count)
            }
        }
    }

    /// Why the search is not complete, if it is not.
    fn trouble(&self, watch: usize) -> Option<String> {
        let watch = &self.core.watches[watch];
        let is_too_long = |s: &Sequence| matches!(s.search, SearchKind::TooLong);
        if watch.sequences.iter().any(is_too_long) {
            return Some(format!(
                "it has more than {MAX_UNORDERED} events that more than one thread may make; \
                 name the threads, or split the pattern"
            ));
        }
        if watch.dropped > 0 {
            return Some(format!(
                "the antichain limit was hit: of its partial matches, none better than another, \
                 only {MAX_TUPLES} are kept, and {} were dropped",
                watch.dropped
            ));
        }
        let State::Bindings(instances) = &watch.state else { return None };
        if instances.is_full {
            return Some("its parameters have too many bindings in this trace".to_owned());
        }
        (instances.incomplete > 0).then(|| {
            format!(
                "{} came late, and not all of their earlier events were kept",
                count(instances.incomplete, "binding")
            )
        })
    }

    /// What the trace does not have and every match needs. Like an index, it is asked of whole
    /// positions: a name that occurs helps nothing if this thread or this argument never had it.
    fn absent(&self, number: usize) -> Option<String> {
        let MonitoredPattern { sequences, occurred, .. } = &self.core.watches[number];
        let missing = |s: &Sequence| s.positions.iter().find(|p| !occurred.has(p)).cloned();
        let missing: Option<Vec<Position>> = sequences.iter().map(missing).collect();
        let written = |any: &u64| {
            let bits = (0..64).filter(|bit| any >> bit & 1 == 1);
            bits.map(|bit| self.atoms[number][bit].as_str()).collect::<Vec<&str>>().join(" / ")
        };
        let all_of = |p: &Position| p.all_of.iter().map(written).collect::<Vec<_>>().join(" & ");
        missing?.first().map(all_of)
    }

    fn observed_analysed(&self, watch: usize) -> Analysed {
        let MonitoredPattern { steps, state, .. } = &self.core.watches[watch];
        let is_full = matches!(state, State::Bindings(instances) if instances.is_full);
        let observed = self.observed[watch];
        let too_many = || "its parameters have too many bindings".to_owned();
        let given_up = is_full.then(too_many);
        let violations = observed as u64;
        // Patterns have no values.
        let watched = Watched { steps: *steps, violations, given_up, silence: None };
        Analysed {
            name: OBSERVED,
            property: Some(self.names[watch].clone()),
            outcome: match *steps {
                _ if is_full => Outcome::StateLimit,
                0 => Outcome::NothingRelevant,
                _ => Outcome::Window,
            },
            statement: watched.statement(WhichRun::Observed),
            conclusion: Conclusion::Watched(watched),
            notes: Vec::new(),
            stats: vec![("relevant_events", Stat::Count(*steps))],
        }
    }

    fn pattern_analysed(&self, number: usize, found: usize) -> Analysed {
        let watch = &self.core.watches[number];
        let trouble = self.trouble(number);
        let (outcome, statement) = if let Some(atom) = self.absent(number) {
            let why = format!("cannot match: `{atom}` does not occur");
            (Outcome::NothingRelevant, why)
        } else if watch.steps == 0 {
            let why = "no event of the trace concerns this property";
            (Outcome::NothingRelevant, why.to_owned())
        } else {
            let found = match found {
                0 if self.observed[number] > 0 => "the observed run violates it already".to_owned(),
                0 => "no violation".to_owned(),
                1 => "violated in another run with the same causality".to_owned(),
                n if n > REPORTED_BINDINGS => format!(
                    "violated in other runs with the same causality, for {n} bindings, of which \
                     {REPORTED_BINDINGS} are shown"
                ),
                n => format!("violated in other runs with the same causality, for {n} bindings"),
            };
            match trouble {
                Some(trouble) => (
                    Outcome::StateLimit,
                    format!("{found}, but not every run was covered: {trouble}"),
                ),
                None => (
                    Outcome::Exhausted,
                    format!("{found}; every run with this causality was covered"),
                ),
            }
        };
        let mut stats = vec![("relevant_events", Stat::Count(watch.steps))];
        if let State::Bindings(instances) = &watch.state {
            stats.push(("bindings", Stat::Count(instances.bindings())));
        }
        let dimension = watch.sequences.iter().map(|s| s.positions.len()).max().unwrap_or(0);
        stats.push(("dimension", Stat::Count(dimension as u64)));
        let mut searches: Vec<&str> = watch.sequences.iter().map(|s| s.search.word()).collect();
        searches.dedup();
        stats.push(("search", Stat::Text(searches.join(", "))));
        Analysed {
            name: PATTERN,
            property: Some(self.names[number].clone()),
            outcome,
            conclusion: Conclusion::Other,
            statement,
            notes: Vec::new(),
            stats,
        }
    }
}

impl Analysis for Patterns {
    fn name(&self) -> &'static str {
        PATTERN
    }

    fn events(&mut self, pass: &mut Pass<'_>) -> Result<Flow, AnalysisError> {
        let Pass { first, batch, names, out } = pass;
        let first = *first;
        self.engine.events(&mut self.core, first, batch)?;
        self.report_early(out);
        Ok(self.report((first, batch), names, out))
    }

    fn finish(&mut self, end: &mut End<'_, '_>) -> Result<Vec<Analysed>, AnalysisError> {
        let mut analysed = Vec::new();
        for watch in 0..self.names.len() {
            let (mut found, count) = self.found(watch);
            analysed.push(self.observed_analysed(watch));
            analysed.push(self.pattern_analysed(watch, count));
            end.out.candidates.matches.append(&mut found);
        }
        Ok(analysed)
    }
}
