//! What is known about a property's parameters before any event.

use foresee_trace::{Event, LockId, Op, Pool, TargetKind, ThreadId, Value, VarId};

use super::{Binding, MAX_PARAMS, Object};
use crate::ast::{Atom, EventKind, Ident, Term};
use crate::diagnostic::Diagnostic;
use crate::letter::Alphabet;
use crate::monitor::{Explored, Verdict};
use crate::observe::args;

/// The position of a parameter's object in an event.
#[derive(Clone, Copy, Debug)]
enum Place {
    Target,
    Thread,
    Arg(usize),
}

/// The parameters that one event atom binds.
#[derive(Clone, Debug)]
struct AtomParams {
    bit: u8,
    kind: EventKind,
    places: Vec<(usize, Place)>,
    domain: u8,
}

/// The parameters of a property and where its atoms bind them.
#[derive(Clone, Debug, Default)]
pub struct ParamPlan {
    names: Vec<String>,
    atoms: Vec<AtomParams>,
    /// Whether every path to a violation takes steps that bind all parameters and change the state.
    /// If so, bindings whose state equals that of their parts need not be created.
    only_changes_matter: bool,
    /// Atoms, as bits, that every violation requires.
    needed: u64,
}

impl ParamPlan {
    pub(crate) fn new(params: &[Ident], alphabet: &Alphabet) -> Result<ParamPlan, Diagnostic> {
        if let Some(param) = params.get(MAX_PARAMS) {
            let message = format!("a property can have at most {MAX_PARAMS} parameters");
            return Err(Diagnostic::error("too-many-params", message, param.span, "one more here"));
        }
        let number = |term: &Term| match term {
            Term::Param(ident) => params.iter().position(|p| p.name == ident.name),
            _ => None,
        };
        let mut atoms = Vec::new();
        for (bit, atom) in alphabet.atoms().iter().enumerate() {
            let Atom::Event(event) = atom else { continue };
            let target = number(&event.target).map(|p| (p, Place::Target));
            let thread = number(&event.thread).map(|p| (p, Place::Thread));
            let args = event.args.iter().enumerate();
            let args = args.filter_map(|(i, arg)| Some((number(arg)?, Place::Arg(i))));
            let places: Vec<_> = target.into_iter().chain(args).chain(thread).collect();
            if !places.is_empty() {
                let domain = places.iter().fold(0, |d, (p, _)| d | 1 << p);
                atoms.push(AtomParams { bit: bit as u8, kind: event.kind, places, domain });
            }
        }
        let bound = atoms.iter().fold(0, |d, a| d | a.domain);
        if let Some((_, param)) = params.iter().enumerate().find(|(i, _)| bound >> i & 1 == 0) {
            let message = format!("no event of the property binds its parameter `{}`", param.name);
            let error = Diagnostic::error("unbound-param", message, param.span, "never bound");
            return Err(
                error.help("use it as an argument, target or thread of an event, or leave it out")
            );
        }
        let names = params.iter().map(|p| p.name.clone()).collect();
        Ok(ParamPlan { names, atoms, only_changes_matter: false, needed: 0 })
    }

    /// The names of the parameters.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The object of each parameter in a binding, with the parameter's name.
    pub fn named(&self, binding: &Binding) -> Vec<(String, Object)> {
        let names = self.names.iter().enumerate();
        names.filter_map(|(i, name)| Some((name.clone(), binding.get(i)?))).collect()
    }

    /// The binding of all parameters to these objects, if none is missing.
    pub fn binding_of(&self, named: &[(String, Object)]) -> Option<Binding> {
        let mut binding = Binding::default();
        for (param, name) in self.names.iter().enumerate() {
            let (_, object) = named.iter().find(|(named, _)| named == name)?;
            binding.bind(param, *object);
        }
        Some(binding)
    }

    /// Whether the property has no parameters.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    pub(super) fn only_changes_matter(&self) -> bool {
        self.only_changes_matter
    }

    /// The event atoms that bind some parameter, as bits.
    pub fn binding_bits(&self) -> u64 {
        self.atoms.iter().fold(0, |m, a| m | 1 << a.bit)
    }

    /// All sets of parameters that bindings can have: the unions of those that atoms bind.
    pub(super) fn domains(&self) -> Vec<u8> {
        let mut domains = vec![0u8];
        for atom in &self.atoms {
            for i in 0..domains.len() {
                let joined = domains[i] | atom.domain;
                if !domains.contains(&joined) {
                    domains.push(joined);
                }
            }
        }
        domains
    }

    /// All parameters, as bits.
    pub(super) fn total(&self) -> u8 {
        self.names.iter().enumerate().fold(0, |d, (i, _)| d | 1 << i)
    }

    /// The bindings of an event, each with the atoms (of `matched`) that create it. An atom that
    /// would bind one parameter to two objects does not match.
    pub fn bindings(
        &self,
        matched: u64,
        event: &Event,
        pool: &Pool,
        found: &mut Vec<(Binding, u64)>,
    ) {
        found.clear();
        for atom in self.atoms.iter().filter(|a| matched >> a.bit & 1 == 1) {
            let Some(binding) = atom.bind(event, pool) else { continue };
            match found.iter_mut().find(|(b, _)| *b == binding) {
                Some((_, bits)) => *bits |= 1 << atom.bit,
                None => found.push((binding, 1 << atom.bit)),
            }
        }
    }

    /// The event atoms that bind parameters and that every violation requires, as bits. A binding
    /// for which one of them never matches cannot be violated.
    pub fn needed_bits(&self) -> u64 {
        self.needed
    }

    /// The parameters that an atom binds, as bits.
    pub fn domain_of(&self, bit: usize) -> u8 {
        self.atoms.iter().find(|a| usize::from(a.bit) == bit).map_or(0, |a| a.domain)
    }

    /// Determines from the complete automaton whether steps that change nothing can be ignored: on
    /// every path to a violation, the steps that change the state must bind all parameters.
    pub(crate) fn note_automaton(&mut self, explored: &Explored) {
        let params_of = |letter: u64| {
            let atoms = self.atoms.iter().filter(|a| letter >> a.bit & 1 == 1);
            atoms.fold(0u8, |d, a| d | a.domain)
        };
        // The parameters that are bound on all paths to a state; start with all and remove.
        let mut bound = vec![u8::MAX; explored.states.len()];
        bound[0] = 0;
        let mut todo = vec![0usize];
        while let Some(at) = todo.pop() {
            for (letter, &to) in explored.letters.iter().zip(&explored.states[at].row) {
                let to = to as usize;
                let here = bound[to] & (bound[at] | params_of(letter.0));
                if to != at && here != bound[to] {
                    bound[to] = here;
                    todo.push(to);
                }
            }
        }
        let bad = explored.states.iter().position(|s| s.verdict == Verdict::Bad);
        self.only_changes_matter = bad.is_none_or(|bad| bound[bad] & self.total() == self.total());
        let is_needed = |bit: u64| bad.is_some() && !explored.is_bad_without(bit);
        let bits = self.atoms.iter().map(|a| 1 << a.bit);
        self.needed = bits.filter(|&bit| is_needed(bit)).fold(0, |needed, bit| needed | bit);
    }
}

impl AtomParams {
    fn bind(&self, event: &Event, pool: &Pool) -> Option<Binding> {
        let values = pool.values(event);
        let args = args(self.kind, &values);
        let mut binding = Binding::default();
        for &(param, place) in &self.places {
            let object = match place {
                Place::Thread => Object::Thread(event.thread()),
                Place::Arg(i) => Object::Value(*args.get(i)?),
                Place::Target => target_object(event)?,
            };
            if !binding.bind(param, object) {
                return None;
            }
        }
        Some(binding)
    }
}

fn target_object(event: &Event) -> Option<Object> {
    if matches!(event.op(), Op::WaitBegin | Op::WaitEnd) {
        return event.wait_lock().map(Object::Lock);
    }
    let target = event.target()?;
    match event.op().target_kind() {
        TargetKind::Var => Some(Object::Var(VarId(target))),
        TargetKind::Lock => Some(Object::Lock(LockId(target))),
        TargetKind::Thread => Some(Object::Thread(ThreadId(target))),
        TargetKind::Sym => Some(Object::Value(Value::Str(foresee_trace::SymId(target)))),
        TargetKind::Cond | TargetKind::None => None,
    }
}
