//! Prediction of a specification's violations over the lattice of each property.

use foresee_causality::schedule::Schedule;
use foresee_causality::{Clocks, Order};
use foresee_spec::ast::Spec;
use foresee_spec::letter::Letter;
use foresee_spec::monitor::{StateId, TooManyStates};
use foresee_spec::observe::{Lens, ProgramState, Troubles};
use foresee_spec::params::{Binding, Object};
use foresee_spec::property::Compiled;
use foresee_spec::{Resolved, print_atom};
use foresee_trace::{Batch, FindingSink, Flow, Names, Outcome};

use super::bindings::BoundSteps;
use super::search::{Limits, Search, Searched};
use super::slice::{Item, Slice};
use super::tables::{Sets, States, Writes};
use super::witness::Run;
use crate::analysis::{Analysed, Analysis, AnalysisError, Stat};

/// A violation that some other run shows, before its witness is written out and re-checked.
#[derive(Clone, Debug)]
pub struct Prediction {
    /// The property, by its place in the specification.
    pub property: usize,
    /// What each parameter stands for.
    pub binding: Vec<(String, Object)>,
    /// The shortest violating run.
    pub shortest: Schedule,
    /// The violating run with the fewest swaps of relevant events, and their number, if the
    /// lattice was small enough to find it.
    pub closest: Option<(Schedule, u64)>,
}

/// What the lattices showed.
pub type Predictions = std::rc::Rc<std::cell::RefCell<Vec<Prediction>>>;

/// The name of this analysis.
pub const LATTICE: &str = "lattice";

/// How many bindings of one property get a witness. Each witness is an order of the whole trace,
/// written out and judged; after some of them, more are no help to anybody.
const MAX_PREDICTIONS: usize = 20;
/// How many cuts with monitor states a lattice may have for a second, closer look.
const CLOSER_LOOK: usize = 200_000;

/// Checks every run with the same causality, one lattice for each property and binding.
///
/// # Guarantees
/// Sound: every prediction has a run of the Mazurkiewicz order that violates the property.
/// Complete for that order if the outcome is [`Outcome::Exhausted`]. Memory grows with the
/// relevant events and the widest level.
pub struct Lattice {
    clocks: Clocks,
    limits: Limits,
    watches: Vec<Watch>,
    predictions: Predictions,
}

struct Watch {
    property: Compiled,
    lens: Lens,
    writes: Writes,
    steps: Steps,
    /// There were more relevant events than are kept. The first ones are an execution, too.
    cut_off: bool,
}

/// The steps of a property: all in one slice, or, with parameters, apart by what they bind.
enum Steps {
    All(Slice),
    ByBinding(BoundSteps),
}

impl Steps {
    fn len(&self) -> usize {
        match self {
            Steps::All(slice) => slice.len(),
            Steps::ByBinding(steps) => steps.len(),
        }
    }
}

impl Lattice {
    /// Makes ready for a trace with these names, with all initial values in the specification. What
    /// is found is put into `predictions`.
    pub fn new(
        spec: &Spec,
        properties: Vec<Compiled>,
        resolved: &Resolved,
        names: &Names,
        limits: Limits,
        predictions: Predictions,
    ) -> Lattice {
        let watch = |property: Compiled| {
            let lens = Lens::new(&property.alphabet, &spec.inits, resolved, names);
            let steps = match property.params.is_empty() {
                true => Steps::All(Slice::default()),
                false => Steps::ByBinding(BoundSteps::default()),
            };
            Watch { property, lens, writes: Writes::default(), steps, cut_off: false }
        };
        Lattice {
            clocks: Clocks::new(Order::Mazurkiewicz),
            limits,
            watches: properties.into_iter().map(watch).collect(),
            predictions,
        }
    }
}

impl Analysis for Lattice {
    fn events(
        &mut self,
        first: u64,
        batch: &Batch,
        _: &Names,
        _: &mut dyn FindingSink,
    ) -> Result<Flow, AnalysisError> {
        let mut found = Vec::new();
        for (i, event) in batch.events.iter().enumerate() {
            let stamp = self.clocks.event(event)?;
            for watch in &mut self.watches {
                let Some(step) = watch.lens.step(event, &batch.pool) else { continue };
                if watch.steps.len() >= self.limits.events {
                    watch.cut_off = true;
                    continue;
                }
                let write = step.write.map(|write| watch.writes.number(write, &watch.lens));
                let index = first + i as u64;
                let item = Item { index, stamp, atoms: step.events, write };
                match &mut watch.steps {
                    Steps::All(slice) => slice.push(item, &self.clocks),
                    Steps::ByBinding(steps) => {
                        let params = &watch.property.params;
                        params.bindings(step.events, event, &batch.pool, &mut found);
                        steps.push(item, &found, !params.binding_bits());
                    }
                }
            }
        }
        Ok(Flow::Continue)
    }

    fn finish(
        &mut self,
        _: &Names,
        _: &mut dyn FindingSink,
    ) -> Result<Vec<Analysed>, AnalysisError> {
        let mut analysed = Vec::new();
        for (number, watch) in self.watches.iter_mut().enumerate() {
            let mut tally = Tally::default();
            let result = watch.search(number, &self.clocks, self.limits, &mut tally);
            if watch.cut_off && tally.outcome == Some(Outcome::Exhausted) {
                tally.outcome = Some(Outcome::EventLimit);
            }
            if let Err(error) = result {
                tally.outcome = Some(Outcome::StateLimit);
                tally.trouble = Some(error.to_string());
            }
            let atom = |i: usize| print_atom(&watch.property.alphabet.atoms()[i]);
            tally.notes = watch.lens.warnings(&tally.troubles, atom);
            analysed.push(tally.analysed(&watch.property.name));
            self.predictions.borrow_mut().append(&mut tally.predictions);
        }
        Ok(analysed)
    }
}

impl Watch {
    fn search(
        &mut self,
        number: usize,
        clocks: &Clocks,
        limits: Limits,
        tally: &mut Tally,
    ) -> Result<(), TooManyStates> {
        let steps = std::mem::replace(&mut self.steps, Steps::All(Slice::default()));
        match steps {
            Steps::All(slice) => self.search_slice(number, None, &slice, limits, tally),
            Steps::ByBinding(steps) => {
                let bindings = steps.total(&self.property.params)?;
                tally.bindings = Some(bindings.len() as u64);
                for binding in &bindings {
                    let slice = steps.slice(binding, clocks);
                    self.search_slice(number, Some(binding), &slice, limits, tally)?;
                }
                Ok(())
            }
        }
    }

    fn search_slice(
        &mut self,
        number: usize,
        binding: Option<&Binding>,
        slice: &Slice,
        limits: Limits,
        tally: &mut Tally,
    ) -> Result<(), TooManyStates> {
        tally.steps += slice.len() as u64;
        let initial = self.lens.state_of(self.lens.initial().values().into(), &mut tally.troubles);
        let mut start = self.property.monitor.start();
        if self.property.reads_initial {
            start = self.property.monitor.step(start, initial.letter())?;
        }
        if start == StateId::BAD || self.observed_fails(slice, start, initial.clone())? {
            // Nothing needs to be predicted where the observed run fails.
            tally.observed += 1;
            return Ok(());
        }
        let states = States::new(initial, &self.writes);
        let (sets, monitor) = (Sets::new(start), &mut self.property.monitor);
        let mut search = Search::new(slice, &self.lens, monitor, states, sets, limits);
        let found = search.run()?;
        tally.troubles.add(search.states.troubles());
        tally.violated += u64::from(found.violation.is_some());
        let wanted = found.violation.filter(|_| tally.predictions.len() < MAX_PREDICTIONS);
        if let Some((depth, bad)) = wanted {
            let shortest = search.run_to(&found.history, depth, bad)?;
            let closest = match found.cuts as usize <= CLOSER_LOOK {
                true => search.closest(start, CLOSER_LOOK)?,
                false => None,
            };
            let all = found.runs.as_ref().filter(|_| found.outcome == Outcome::Exhausted);
            if let (Some(closest), Some(runs)) = (&closest, all) {
                tally.violating = Some((runs - &closest.harmless).to_string());
            }
            tally.predictions.push(Prediction {
                property: number,
                binding: binding.map_or_else(Vec::new, |b| {
                    let names = self.property.params.names().iter().enumerate();
                    names.filter_map(|(i, name)| Some((name.clone(), b.get(i)?))).collect()
                }),
                shortest: schedule(&shortest, slice),
                closest: closest.map(|c| (schedule(&c.run, slice), c.swaps)),
            });
        }
        tally.add(&found);
        Ok(())
    }

    /// Whether the captured order itself violates the property.
    fn observed_fails(
        &mut self,
        slice: &Slice,
        start: StateId,
        initial: ProgramState,
    ) -> Result<bool, TooManyStates> {
        let mut states = States::new(initial, &self.writes);
        let mut counts = vec![0usize; slice.columns.len()];
        let (mut state, mut monitor) = (0, start);
        for &column in &slice.observed {
            let column = column as usize;
            let item = &slice.columns[column].items[counts[column]];
            counts[column] += 1;
            if let Some(write) = item.write {
                state = states.after(state, write, &self.lens);
            }
            let letter = Letter(states.bits(state) | item.atoms);
            monitor = self.property.monitor.step(monitor, letter)?;
        }
        Ok(monitor == StateId::BAD)
    }
}

/// A run of relevant events as a schedule; the relevant events that are left come after it, in the
/// order in which they were observed.
fn schedule(run: &Run, slice: &Slice) -> Schedule {
    let epoch = |column: usize, k: usize| slice.columns[column].items[k].stamp.epoch();
    let mut counts = vec![0; slice.columns.len()];
    let mut first = Vec::with_capacity(run.len());
    for &column in run {
        first.push(epoch(column as usize, counts[column as usize]));
        counts[column as usize] += 1;
    }
    let mut seen = vec![0; slice.columns.len()];
    let others = slice.observed.iter().filter_map(|&column| {
        let k = seen[column as usize];
        seen[column as usize] += 1;
        (k >= counts[column as usize]).then(|| epoch(column as usize, k))
    });
    Schedule::new(first, others)
}

/// What the lattices of one property come to.
#[derive(Default)]
struct Tally {
    predictions: Vec<Prediction>,
    /// How many bindings the parameters have, for a property with parameters.
    bindings: Option<u64>,
    lattices: u64,
    /// How many of them have a violating run.
    violated: u64,
    observed: u64,
    steps: u64,
    cuts: u64,
    levels: u64,
    widest: u64,
    runs: Option<String>,
    violating: Option<String>,
    outcome: Option<Outcome>,
    first_cut_off: Option<usize>,
    trouble: Option<String>,
    /// What went wrong with values.
    troubles: Troubles,
    notes: Vec<String>,
}

impl Tally {
    fn add(&mut self, found: &Searched) {
        self.lattices += 1;
        self.cuts += found.cuts;
        self.levels = self.levels.max(found.levels as u64);
        self.widest = self.widest.max(found.widest as u64);
        self.runs = found.runs.as_ref().map(ToString::to_string);
        if found.outcome != Outcome::Exhausted || self.outcome.is_none() {
            self.outcome = Some(found.outcome);
        }
        self.first_cut_off = self.first_cut_off.or(found.first_cut_off);
    }

    fn analysed(&self, property: &str) -> Analysed {
        let nothing = self.steps == 0 && self.observed == 0 && self.trouble.is_none();
        let outcome = match self.outcome {
            _ if nothing => Outcome::NothingRelevant,
            Some(Outcome::Exhausted) if !self.notes.is_empty() => Outcome::UnknownValues,
            Some(outcome) => outcome,
            // Only observed violations, of which there is nothing to predict.
            None => Outcome::Exhausted,
        };
        let mut stats = vec![("relevant_events", Stat::Count(self.steps))];
        if let Some(bindings) = self.bindings {
            stats.push(("bindings", Stat::Count(bindings)));
        }
        if self.lattices > 0 {
            stats.push(("states", Stat::Count(self.cuts)));
            stats.push(("levels", Stat::Count(self.levels)));
            stats.push(("widest_level", Stat::Count(self.widest)));
        }
        // Runs of different bindings do not add up to anything.
        if self.lattices == 1 {
            stats.extend(self.runs.clone().map(|n| ("runs", Stat::Text(n))));
            stats.extend(self.violating.clone().map(|n| ("violating_runs", Stat::Text(n))));
        }
        Analysed {
            name: LATTICE,
            property: Some(property.to_owned()),
            outcome,
            statement: self.statement(outcome),
            notes: self.notes.clone(),
            stats,
        }
    }

    fn statement(&self, outcome: Outcome) -> String {
        let found = match self.violated {
            0 if self.observed > 0 => "the observed run violates it already".to_owned(),
            0 => "no violation".to_owned(),
            1 => "violated in another run with the same causality".to_owned(),
            n if n > MAX_PREDICTIONS as u64 => format!(
                "violated in other runs with the same causality, for {n} bindings, of which \
                 {MAX_PREDICTIONS} are shown"
            ),
            n => format!("violated in other runs with the same causality, for {n} bindings"),
        };
        let cut_off = self.first_cut_off.unwrap_or(0);
        let covered = match outcome {
            Outcome::Exhausted if self.lattices == 0 => String::new(),
            Outcome::Exhausted => "; every run with this causality was covered".to_owned(),
            Outcome::NothingRelevant => {
                return "no event of the trace concerns this property".to_owned();
            }
            Outcome::UnknownValues => {
                "; every run with this causality was covered, but values were missing".to_owned()
            }
            Outcome::EventLimit => format!(
                " in the first {} relevant events; the others were not looked at",
                self.steps
            ),
            Outcome::Window => format!(
                " among the {} cuts nearest to the observed run; the window left runs out from \
                 level {cut_off} on",
                self.cuts
            ),
            _ => match &self.trouble {
                Some(trouble) => format!("; the search was given up: {trouble}"),
                None => {
                    format!(" among {} cuts; the search was given up at level {cut_off}", self.cuts)
                }
            },
        };
        found + &covered
    }
}
