//! How a property sees a trace: which events are steps of it, and the letter of each step.
//!
//! A [`Projection`] binds a property's alphabet to the names of one trace. It does not change while
//! events are processed; the [`ProgramState`], the values of the property's variables, does. So an
//! analysis of many orders of one trace shares one of them and keeps a state for each cut.

mod atoms;
mod labels;
mod many;
mod table;

use foresee_trace::{Event, Names, Op, Pool, SymId, Value, VarId};

use crate::ast::{Atom, Init, Literal};
use crate::letter::{Alphabet, Letter};
use crate::resolve::Resolved;
use crate::value::EvalError;
pub(crate) use atoms::args;
use atoms::{Shape, StateAtom};
pub use labels::AtomLabels;
pub use many::{Chain, EventTable};
use table::Targets;

/// The effect of an event on a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The event atoms that the event matches.
    pub events: u64,
    /// The variable it writes, by its index in [`Projection::variables`], and the value, if captured.
    pub write: Option<(u16, Option<Value>)>,
}

/// Which fields of objects get values in a run. What is said about an object begins when all of its fields have values, so if one
/// never has, nothing is said: every analysis asks this before it calls silence a result.
#[derive(Clone, Debug)]
pub struct KnownFields(Box<[bool]>);

impl KnownFields {
    /// Before the first event: what the specification gives values to.
    pub fn new(projection: &Projection) -> KnownFields {
        let initial = projection.initial.values.iter().zip(&projection.is_field);
        KnownFields(initial.map(|(value, is_field)| !is_field || value.is_some()).collect())
    }

    /// An event happens.
    #[inline]
    pub fn step(&mut self, step: Step) {
        if let Some((slot, Some(_))) = step.write {
            self.0[usize::from(slot)] = true;
        }
    }

    /// Variables have these values, whatever gave them.
    pub fn learn(&mut self, state: &ProgramState) {
        for (is_known, value) in self.0.iter_mut().zip(&state.values) {
            *is_known |= value.is_some();
        }
    }

    /// Why nothing was said about the objects of a property, if that is so.
    pub fn silence(&self, projection: &Projection) -> Option<String> {
        let slot = self.0.iter().position(|is_known| !is_known)?;
        let name = &projection.variables[slot].0;
        Some(format!(
            "nothing is said about an object before `{name}` has a value, and it never has one"
        ))
    }
}

/// The values of a property's variables, and the state atoms that they make true.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProgramState {
    values: Box<[Option<Value>]>,
    bits: u64,
}

impl ProgramState {
    /// The value of each variable, in the order of [`Projection::variables`].
    pub fn values(&self) -> &[Option<Value>] {
        &self.values
    }

    /// The letter of the initial state: no event.
    pub fn letter(&self) -> Letter {
        Letter(self.bits)
    }
}

/// Problems with values while a run was observed.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct EvalWarnings {
    /// Variables that were needed before they had a value.
    unknown: Vec<bool>,
    /// Atoms, as bits, that compared or calculated with a text.
    types: u64,
    overflow: u64,
    zero: u64,
}

impl EvalWarnings {
    /// Adds the problems of another run.
    pub fn add(&mut self, other: &EvalWarnings) {
        if self.unknown.len() < other.unknown.len() {
            self.unknown.resize(other.unknown.len(), false);
        }
        for (mine, theirs) in self.unknown.iter_mut().zip(&other.unknown) {
            *mine |= theirs;
        }
        self.types |= other.types;
        self.overflow |= other.overflow;
        self.zero |= other.zero;
    }
}

/// A property's alphabet bound to the names of one trace.
#[derive(Debug)]
pub struct Projection {
    variables: Vec<(String, Option<VarId>)>,
    given: Vec<bool>,
    /// The variables that are fields of objects, which come into being.
    is_field: Vec<bool>,
    initial: ProgramState,
    state_atoms: Vec<(u8, StateAtom)>,
    /// For each variable the state atoms (indices into `state_atoms`) that mention it.
    mentioned_in: Vec<Box<[u8]>>,
    slots: Targets<u16>,
    shapes: Vec<Shape>,
    by_op: Vec<Option<Box<OpTable>>>,
}

/// The atoms that events of one operation can match.
#[derive(Debug, Default)]
struct OpTable {
    /// Indices into `shapes`, by target.
    by_target: Targets<Box<[u8]>>,
    /// Shapes that match any target.
    any_target: Box<[u8]>,
    /// Whether the operation writes a variable.
    writes: bool,
}

impl Projection {
    /// Binds an alphabet to a trace. `inits` are the initial values from the specification.
    pub fn new(
        alphabet: &Alphabet,
        inits: &[Init],
        resolved: &Resolved,
        names: &Names,
    ) -> Projection {
        let mut strings = Strings::new(names);
        let mut variables: Vec<(String, Option<VarId>)> = Vec::new();
        let mut state_atoms = Vec::new();
        let mut shapes = Vec::new();
        for (bit, atom) in alphabet.atoms().iter().enumerate() {
            match atom {
                Atom::Event(event) => {
                    shapes.extend(Shape::new(bit as u8, event, resolved, &mut strings));
                }
                _ => {
                    let mut slot = |name: &str| {
                        let known = variables.iter().position(|(n, _)| n == name);
                        known.unwrap_or_else(|| {
                            variables.push((name.into(), resolved.vars.get(name).copied()));
                            variables.len() - 1
                        }) as u16
                    };
                    let atom = StateAtom::new(atom, &mut slot, &mut strings);
                    state_atoms.push((bit as u8, atom));
                }
            }
        }
        let mentioned_in = (0..variables.len() as u16)
            .map(|slot| {
                let atoms = state_atoms.iter().enumerate();
                atoms.filter(|(_, (_, a))| a.mentions(slot)).map(|(i, _)| i as u8).collect()
            })
            .collect();
        let given_values: Vec<Option<Value>> = variables
            .iter()
            .map(|(name, _)| {
                let init = inits.iter().find(|i| i.var.name == *name)?;
                literal_value(&init.value, &mut strings)
            })
            .collect();
        let ids = variables.iter().enumerate();
        let slots = ids.filter_map(|(slot, (_, id))| Some((id.as_ref()?.0, slot as u16)));
        let mut projection = Projection {
            slots: Targets::new(slots.collect()),
            given: given_values.iter().map(Option::is_some).collect(),
            is_field: variables
                .iter()
                .map(|(_, id)| id.is_some_and(|id| resolved.fields.contains(&id)))
                .collect(),
            initial: ProgramState { values: given_values.into(), bits: 0 },
            variables,
            state_atoms,
            mentioned_in,
            shapes,
            by_op: Vec::new(),
        };
        projection.by_op = projection.tables();
        projection.initial =
            projection.state_of(projection.initial.values.clone(), &mut EvalWarnings::default());
        projection
    }

    fn tables(&self) -> Vec<Option<Box<OpTable>>> {
        let last = Op::ALL.iter().map(|&op| op as usize).max().unwrap_or(0);
        let mut tables: Vec<Option<Box<OpTable>>> = (0..=last).map(|_| None).collect();
        for &op in Op::ALL {
            let of_op = self.shapes.iter().enumerate().filter(|(_, s)| s.is_about(op));
            let mut any_target = Vec::new();
            let mut by_target: Vec<(u32, Vec<u8>)> = Vec::new();
            for (i, shape) in of_op {
                let Some(targets) = &shape.targets else {
                    any_target.push(i as u8);
                    continue;
                };
                for &target in targets {
                    match by_target.iter_mut().find(|(t, _)| *t == target) {
                        Some((_, shapes)) => shapes.push(i as u8),
                        None => by_target.push((target, vec![i as u8])),
                    }
                }
            }
            let writes = op.writes() && !self.slots.is_empty();
            if writes || !any_target.is_empty() || !by_target.is_empty() {
                let by_target = by_target.into_iter().map(|(t, s)| (t, s.into())).collect();
                let any_target = any_target.into();
                let table = OpTable { by_target: Targets::new(by_target), any_target, writes };
                tables[op as usize] = Some(Box::new(table));
            }
        }
        tables
    }

    /// The variables that state atoms mention, by the names the specification uses.
    pub fn variables(&self) -> impl ExactSizeIterator<Item = &str> {
        self.variables.iter().map(|(name, _)| name.as_str())
    }

    /// The state before the first event, as far as the specification defines it.
    pub fn initial(&self) -> &ProgramState {
        &self.initial
    }

    /// The effect of an event on the property, or `None` if it is not a step of it.
    #[inline]
    pub fn step(&self, event: &Event, pool: &Pool) -> Option<Step> {
        let table = self.by_op[event.op() as usize].as_deref()?;
        let target = match event.op() {
            Op::WaitBegin | Op::WaitEnd => event.wait_lock().map(|lock| lock.0),
            _ => event.target(),
        };
        let mut step = Step { events: 0, write: None };
        if let Some(target) = target {
            if table.writes
                && let Some(&slot) = self.slots.get(target)
            {
                step.write = Some((slot, pool.value(event)));
            }
            if let Some(shapes) = table.by_target.get(target) {
                step.events = self.matches(shapes, event, pool);
            }
        }
        step.events |= self.matches(&table.any_target, event, pool);
        (step.events != 0 || step.write.is_some()).then_some(step)
    }

    #[inline]
    fn matches(&self, shapes: &[u8], event: &Event, pool: &Pool) -> u64 {
        let shapes = shapes.iter().map(|&i| &self.shapes[usize::from(i)]);
        shapes.filter(|s| s.matches(event, pool)).fold(0, |bits, s| bits | 1 << s.bit)
    }

    /// The state atoms that a value of a variable makes true, if no atom compares the variable with
    /// another one. The property cannot distinguish values with equal results.
    pub fn meaning(&self, slot: u16, value: Option<Value>) -> Option<u64> {
        let mut scratch = self.initial.clone();
        self.stands_alone(slot).then(|| self.meaning_in(&mut scratch, slot, value))
    }

    /// Like [`Projection::meaning`], for a variable that no atom compares with another one; reuses a
    /// state.
    #[inline]
    pub fn meaning_in(&self, scratch: &mut ProgramState, slot: u16, value: Option<Value>) -> u64 {
        self.assign(scratch, slot, value, &mut EvalWarnings::default());
        scratch.bits & self.mentioning(slot)
    }

    /// Whether no atom compares a variable with another one.
    pub fn stands_alone(&self, slot: u16) -> bool {
        let others = (0..self.variables.len() as u16).filter(|&other| other != slot);
        self.mentioned_in[usize::from(slot)].iter().all(|&place| {
            let (_, atom) = &self.state_atoms[usize::from(place)];
            others.clone().all(|other| !atom.mentions(other))
        })
    }

    /// The state atoms that mention a variable, as bits.
    #[inline]
    pub fn mentioning(&self, slot: u16) -> u64 {
        let places = self.mentioned_in[usize::from(slot)].iter();
        places.fold(0, |bits, &place| bits | 1 << self.state_atoms[usize::from(place)].0)
    }

    /// Takes a step and returns its letter.
    #[inline]
    pub fn apply(
        &self,
        state: &mut ProgramState,
        step: Step,
        warnings: &mut EvalWarnings,
    ) -> Letter {
        if let Some((slot, value)) = step.write {
            self.assign(state, slot, value, warnings);
        }
        Letter(state.bits | step.events)
    }

    #[inline]
    fn assign(
        &self,
        state: &mut ProgramState,
        slot: u16,
        value: Option<Value>,
        warnings: &mut EvalWarnings,
    ) {
        state.values[usize::from(slot)] = value;
        for &place in &self.mentioned_in[usize::from(slot)] {
            self.evaluate(state, place, warnings);
        }
    }

    #[inline]
    fn evaluate(&self, state: &mut ProgramState, place: u8, warnings: &mut EvalWarnings) {
        let (bit, atom) = &self.state_atoms[usize::from(place)];
        let (holds, error) = atom.holds(&state.values);
        state.bits = state.bits & !(1 << bit) | u64::from(holds) << bit;
        if let Some(error) = error {
            self.note(warnings, *bit, error, atom, &state.values);
        }
    }

    #[cold]
    fn note(
        &self,
        warnings: &mut EvalWarnings,
        bit: u8,
        error: EvalError,
        atom: &StateAtom,
        values: &[Option<Value>],
    ) {
        match error {
            EvalError::Unknown => {
                warnings.unknown.resize(values.len(), false);
                for (slot, value) in values.iter().enumerate() {
                    // Properties of objects begin when all values are known.
                    let is_told = value.is_none() && !self.is_field[slot];
                    warnings.unknown[slot] |= is_told && atom.mentions(slot as u16);
                }
            }
            EvalError::Type => warnings.types |= 1 << bit,
            EvalError::Overflow => warnings.overflow |= 1 << bit,
            EvalError::DivisionByZero => warnings.zero |= 1 << bit,
        }
    }

    /// The state in which the variables have these values.
    pub fn state_of(
        &self,
        values: Box<[Option<Value>]>,
        warnings: &mut EvalWarnings,
    ) -> ProgramState {
        let mut state = ProgramState { values, bits: 0 };
        for place in 0..self.state_atoms.len() as u8 {
            self.evaluate(&mut state, place, warnings);
        }
        state
    }

    /// The initial value that an event before any write reveals: `init(x)`, or a first read. Values
    /// from the specification take precedence.
    fn revealed(&self, event: &Event, pool: &Pool) -> Option<(u16, Value)> {
        let op = event.op();
        if op != Op::Init && !op.reads() {
            return None;
        }
        let slot = *self.slots.get(event.target()?)?;
        // What memory holds before an object is made there is not a value of the object.
        if op == Op::Init && self.is_field[usize::from(slot)] {
            return None;
        }
        let values = pool.values(event);
        // The first of the two values of a read-modify-write is the one that it read.
        let value = if op == Op::Rmw && values.len() < 2 { None } else { values.first().copied() };
        (!self.given[usize::from(slot)]).then_some((slot, value?))
    }

    /// Sets the value of a variable that has none from a read or an `init(x)`, which is not a step.
    #[inline]
    pub fn reveal(
        &self,
        state: &mut ProgramState,
        event: &Event,
        pool: &Pool,
        warnings: &mut EvalWarnings,
    ) {
        if let Some((slot, value)) = self.revealed(event, pool)
            && state.values[usize::from(slot)].is_none()
        {
            self.assign(state, slot, Some(value), warnings);
        }
    }

    /// The problems as text for people: one sentence per variable and atom.
    pub fn warnings(
        &self,
        warnings: &EvalWarnings,
        mut atom: impl FnMut(usize) -> String,
    ) -> Vec<String> {
        let unknown = warnings.unknown.iter().zip(&self.variables).filter(|(unknown, _)| **unknown);
        let mut all: Vec<String> = unknown
            .map(|(_, (name, _))| {
                format!(
                    "the value of `{name}` was not known when it was needed, so comparisons with it \
                     were false; give its first value with `init {name} = …`"
                )
            })
            .collect();
        for (bits, what) in [
            (warnings.types, "compares or computes with a text and a number, or orders texts"),
            (warnings.overflow, "left the range of whole numbers, so it was false"),
            (warnings.zero, "divided by zero, so it was false"),
        ] {
            let hit = (0..64).filter(|i| bits >> i & 1 == 1);
            all.extend(hit.map(|i| format!("`{}` {what}", atom(i))));
        }
        all
    }
}

/// Determines the values of a property's variables before the first event.
#[derive(Debug)]
pub struct InitialValues {
    values: Box<[Option<Value>]>,
    /// Variables whose first access has not been seen.
    open: Vec<bool>,
}

impl InitialValues {
    /// Starts with the values from the specification.
    pub fn new(projection: &Projection) -> InitialValues {
        let values = projection.initial.values.clone();
        InitialValues { open: vec![true; values.len()], values }
    }

    /// Whether nothing more can be learnt.
    pub fn settled(&self) -> bool {
        !self.open.contains(&true)
    }

    /// Learns from the next event of the trace.
    pub fn learn(&mut self, projection: &Projection, event: &Event, pool: &Pool) {
        if let Some((slot, value)) = projection.revealed(event, pool)
            && self.open[usize::from(slot)]
        {
            self.values[usize::from(slot)] = Some(value);
            self.open[usize::from(slot)] = false;
        }
        if event.op().writes()
            && let Some(&slot) = event.target().and_then(|t| projection.slots.get(t))
        {
            self.open[usize::from(slot)] = false;
        }
    }

    /// The state with these values.
    pub fn state(&self, projection: &Projection, warnings: &mut EvalWarnings) -> ProgramState {
        projection.state_of(self.values.clone(), warnings)
    }
}

/// Numbers for the texts of a specification, including those that are not in the trace.
struct Strings<'a> {
    names: &'a Names,
    absent: Vec<String>,
}

impl<'a> Strings<'a> {
    fn new(names: &'a Names) -> Strings<'a> {
        Strings { names, absent: Vec::new() }
    }

    fn id(&mut self, text: &str) -> SymId {
        self.names.syms.lookup(text).unwrap_or_else(|| {
            let known = self.absent.iter().position(|a| a == text);
            let i = known.unwrap_or_else(|| {
                self.absent.push(text.into());
                self.absent.len() - 1
            });
            // From the upper end of the numbers, which no trace reaches: such a text equals only
            // itself.
            SymId(u32::MAX - i as u32)
        })
    }
}

fn literal_value(literal: &Literal, strings: &mut Strings<'_>) -> Option<Value> {
    Some(match literal {
        Literal::Int(n) => match i64::try_from(*n) {
            Ok(n) => Value::Int(n),
            Err(_) => Value::Uint(u64::try_from(*n).ok()?),
        },
        Literal::Float(x) => Value::Float(*x),
        Literal::Bool(b) => Value::Bool(*b),
        Literal::Str(s) => Value::Str(strings.id(s)),
    })
}
