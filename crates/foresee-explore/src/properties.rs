//! The properties of specifications along the search: each step becomes the events that a trace would have, and the monitors of
//! the properties step with them. Their states are numbered together, so that they are one word of a state's key.
//!
//! A property with parameters has a state for each binding of them, and the first binding that is violated violates it.
//!
//! Properties that see calls of functions or the accesses of every variable are not decided here.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foresee_spec::ast::{Atom, EventKind, Spec, Term};
use foresee_spec::letter::Letter;
use foresee_spec::monitor::StateId;
use foresee_spec::observe::{EvalWarnings, InitialValues, ProgramState, Projection, Step};
use foresee_spec::params::{Binding, Slicer, SlicerError};
use foresee_spec::property::Compiled;
use foresee_spec::run::Trail;
use foresee_trace::{Event, Names, Pool};

use crate::map::{HashMap, HashSet};
use crate::monitor::{Monitor, Seen};
use crate::program::{Operation, ThreadName, Told, Value};

/// The most bindings of a property's parameters: every state of the search has them all.
const MOST_BINDINGS: usize = 1000;

/// What a program's operations are called in specifications.
pub trait Vocabulary: Send {
    /// All names so far.
    fn names(&self) -> &Names;

    /// Grows with them.
    fn version(&self) -> u32;

    /// The events of a step, as a trace would have them.
    fn events(&mut self, seen: &Seen<'_>, pool: &mut Pool) -> Vec<Event>;

    /// The values of variables before the program begins.
    fn initial(&mut self, pool: &mut Pool) -> Vec<Event>;

    /// Whether an operation may be an event that one of the properties sees.
    fn sees(&self, operation: &Operation) -> bool;

    /// Why what properties see is not known, if it is not.
    fn doubt(&self) -> Option<String> {
        None
    }
}

/// Which events properties can see.
#[derive(Clone, Debug, Default)]
pub struct Interest {
    kinds: HashSet<EventKind>,
}

impl Interest {
    /// What the properties of these specifications see, as far as they are decided along the search.
    pub fn of(specs: &[(Spec, Vec<Compiled>)]) -> Interest {
        let compiled = specs.iter().flat_map(|(_, compiled)| compiled);
        let decided = compiled.filter(|property| obstacle(property).is_none());
        let kinds =
            decided.flat_map(|property| property.alphabet.atoms()).filter_map(|atom| match atom {
                Atom::Event(event) => Some(event.kind),
                _ => None,
            });
        Interest { kinds: kinds.collect() }
    }

    /// Whether some property sees that locks are taken and given back.
    pub fn has_locks(&self) -> bool {
        self.kinds.contains(&EventKind::Acquire) || self.kinds.contains(&EventKind::Release)
    }

    /// Whether some property sees that threads are started and joined.
    pub fn has_threads(&self) -> bool {
        self.kinds.contains(&EventKind::Fork) || self.kinds.contains(&EventKind::Join)
    }

    /// Whether some property sees what threads say about themselves.
    pub fn has_marks(&self) -> bool {
        self.kinds.contains(&EventKind::Event)
    }
}

/// Why a property is not decided along the search.
fn obstacle(property: &Compiled) -> Option<&'static str> {
    property.alphabet.atoms().iter().find_map(|atom| match atom {
        Atom::Event(event) => match (event.kind, &event.target) {
            (EventKind::Enter | EventKind::Exit, _) => Some("sees calls of functions"),
            (EventKind::Read | EventKind::Write, Term::Name(_)) => None,
            (EventKind::Read | EventKind::Write, _) => Some("sees accesses of every variable"),
            _ => None,
        },
        _ => None,
    })
}

/// The properties of some specifications, numbered in their order.
pub struct Properties<V> {
    vocabulary: Arc<Mutex<V>>,
    specs: Vec<Spec>,
    properties: Vec<Property>,
    undecided: Vec<String>,
    /// The names that the projections know.
    version: Option<u32>,
    start: u32,
    states: Vec<Box<[One]>>,
    numbers: HashMap<Box<[One]>, u32>,
    /// The operations that were seen so far, and what each is to each property.
    known: HashMap<Key, u32>,
    steps: Vec<Box<[Box<[Bound]>]>>,
    nexts: HashMap<(u32, u32), Next>,
}

struct Property {
    number: usize,
    spec: usize,
    compiled: Compiled,
    projection: Option<Projection>,
}

/// A step of a property, and the bindings that it creates.
struct Bound {
    step: Step,
    bindings: Box<[(Binding, u64)]>,
}

/// The state of one property, and that of its variables; nothing if neither changes any more.
#[derive(Clone, PartialEq, Eq, Hash)]
struct One(Progress, Option<ProgramState>);

/// The state of a property's monitor; with parameters, one for each binding.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Progress {
    Plain(StateId),
    Bindings(Box<[(Binding, StateId)]>),
}

const BAD: Progress = Progress::Plain(StateId::BAD);

/// A state after a step, and the properties that the step violates.
type Next = (u32, Box<[usize]>);

/// All that the events of a step can hang on.
type Key = (ThreadName, Operation, Told, Option<Value>, bool);

impl Progress {
    fn step(
        &mut self,
        property: &mut Compiled,
        bound: &Bound,
        letter: Letter,
    ) -> Result<(), SlicerError> {
        let Compiled { params, monitor, .. } = property;
        match self {
            Progress::Plain(state) => *state = monitor.step(*state, letter)?,
            Progress::Bindings(states) => {
                let concerns_all =
                    bound.step.write.is_some() || bound.step.events & !params.binding_bits() != 0;
                let mut slicer = Slicer::resumed(params, monitor, states, MOST_BINDINGS);
                let mut is_violated = false;
                let violates = |_: &Binding, _: &Trail| is_violated = true;
                slicer.step(monitor, 0, letter, &bound.bindings, concerns_all, violates)?;
                *self = if is_violated { BAD } else { Progress::Bindings(slicer.states()) };
            }
        }
        Ok(())
    }
}

fn lock<V>(vocabulary: &Mutex<V>) -> MutexGuard<'_, V> {
    vocabulary.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<V: Vocabulary> Properties<V> {
    /// The properties of these specifications, compiled, in this order.
    pub fn new(specs: Vec<(Spec, Vec<Compiled>)>, vocabulary: Arc<Mutex<V>>) -> Properties<V> {
        let (mut properties, mut undecided) = (Vec::new(), Vec::new());
        let (mut number, mut all) = (0, Vec::new());
        for (i, (spec, compiled)) in specs.into_iter().enumerate() {
            for compiled in compiled {
                match obstacle(&compiled) {
                    Some(why) => undecided.push(format!("property {} {why}", compiled.name)),
                    None => {
                        let projection = None;
                        properties.push(Property { number, spec: i, compiled, projection });
                    }
                }
                number += 1;
            }
            all.push(spec);
        }
        Properties {
            vocabulary,
            specs: all,
            properties,
            undecided,
            version: None,
            start: 0,
            states: Vec::new(),
            numbers: HashMap::default(),
            known: HashMap::default(),
            steps: Vec::new(),
            nexts: HashMap::default(),
        }
    }

    /// Binds the properties to the names that are known now.
    fn bind(&mut self) {
        self.states.clear();
        self.numbers.clear();
        self.known.clear();
        self.steps.clear();
        self.nexts.clear();
        let vocabulary = Arc::clone(&self.vocabulary);
        let mut vocabulary = lock(&vocabulary);
        self.version = Some(vocabulary.version());
        let mut pool = Pool::default();
        let initial = vocabulary.initial(&mut pool);
        let names = vocabulary.names();
        let mut resolved = Vec::new();
        for spec in &self.specs {
            resolved.push(foresee_spec::resolve(spec, names).resolved);
        }
        let mut all = Vec::with_capacity(self.properties.len());
        for property in &mut self.properties {
            let (spec, compiled) = (&self.specs[property.spec], &mut property.compiled);
            let projection =
                Projection::new(&compiled.alphabet, &spec.inits, &resolved[property.spec], names);
            let mut values = InitialValues::new(&projection);
            initial.iter().for_each(|event| values.learn(&projection, event, &pool));
            let program = values.state(&projection, &mut EvalWarnings::default());
            let mut state = compiled.monitor.start();
            if compiled.reads_initial {
                match compiled.monitor.step(state, program.letter()) {
                    Ok(next) => state = next,
                    Err(error) => {
                        self.undecided.push(format!("property {}: {error}", compiled.name));
                    }
                }
            }
            let progress = match compiled.params.is_empty() {
                true => Progress::Plain(state),
                false => {
                    let slicer = Slicer::new(&compiled.params, state, MOST_BINDINGS);
                    Progress::Bindings(slicer.states())
                }
            };
            property.projection = Some(projection);
            all.push(One(progress, Some(program)));
        }
        drop(vocabulary);
        self.start = self.number(all.into());
    }

    fn number(&mut self, all: Box<[One]>) -> u32 {
        if let Some(&number) = self.numbers.get(&all) {
            return number;
        }
        self.states.push(all.clone());
        let number = self.states.len() as u32;
        self.numbers.insert(all, number);
        number
    }

    /// What a step is to each property, by its number.
    fn key(&mut self, seen: &Seen<'_>) -> u32 {
        let key = (seen.thread.clone(), seen.operation, seen.told, seen.left, seen.is_outermost);
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        let mut pool = Pool::default();
        let events = lock(&self.vocabulary).events(seen, &mut pool);
        let of = |property: &Property| -> Box<[Bound]> {
            let projection = property.projection.as_ref();
            let bound = |event| {
                let step = projection.and_then(|projection| projection.step(event, &pool))?;
                let mut bindings = Vec::new();
                property.compiled.params.bindings(step.events, event, &pool, &mut bindings);
                Some(Bound { step, bindings: bindings.into() })
            };
            events.iter().filter_map(bound).collect()
        };
        self.steps.push(self.properties.iter().map(of).collect());
        let number = self.steps.len() as u32 - 1;
        self.known.insert(key, number);
        number
    }

    fn advance(&mut self, state: u32, step: u32) -> Next {
        let mut all = self.states[state as usize - 1].clone();
        let mut violated = Vec::new();
        let steps = &self.steps[step as usize];
        for ((property, one), steps) in self.properties.iter_mut().zip(&mut all).zip(steps) {
            let (Some(projection), Some(program)) = (&property.projection, &mut one.1) else {
                continue;
            };
            let was_bad = one.0 == BAD;
            let mut trouble = None;
            for bound in steps {
                let letter = projection.apply(program, bound.step, &mut EvalWarnings::default());
                if let Err(why) = one.0.step(&mut property.compiled, bound, letter) {
                    trouble = Some(format!("property {}: {why}", property.compiled.name));
                }
            }
            let is_final = match one.0 {
                Progress::Plain(state) => {
                    state == StateId::BAD || property.compiled.monitor.good(state)
                }
                Progress::Bindings(_) => false,
            };
            if is_final || trouble.is_some() {
                // Nothing changes any more.
                one.1 = None;
            }
            self.undecided.extend(trouble.filter(|why| !self.undecided.contains(why)));
            if one.0 == BAD && !was_bad {
                violated.push(property.number);
            }
        }
        (self.number(all), violated.into())
    }
}

impl<V: Vocabulary> Monitor for Properties<V> {
    fn start(&mut self, violated: &mut Vec<usize>) -> u32 {
        if self.version != Some(lock(&self.vocabulary).version()) {
            self.bind();
        }
        let all = &self.states[self.start as usize - 1];
        let bad = self.properties.iter().zip(all).filter(|(_, one)| one.0 == BAD);
        violated.extend(bad.map(|(property, _)| property.number));
        self.start
    }

    fn step(&mut self, state: u32, seen: &Seen<'_>, violated: &mut Vec<usize>) -> u32 {
        let step = self.key(seen);
        if !self.nexts.contains_key(&(state, step)) {
            let next = self.advance(state, step);
            self.nexts.insert((state, step), next);
        }
        let (next, broken) = &self.nexts[&(state, step)];
        violated.extend_from_slice(broken);
        *next
    }

    fn sees(&self, operation: &Operation) -> bool {
        lock(&self.vocabulary).sees(operation)
    }

    fn epoch(&self) -> u32 {
        lock(&self.vocabulary).version()
    }

    fn undecided(&self) -> Vec<String> {
        let doubt = lock(&self.vocabulary).doubt();
        self.undecided.iter().cloned().chain(doubt).collect()
    }
}
