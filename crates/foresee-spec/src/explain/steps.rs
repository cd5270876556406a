//! Words that a real run can have, for examples.
//!
//! Not every sequence of letters is possible: no event happens in the initial state, and a step
//! writes at most one variable, so only conditions on that variable change, and they must agree
//! with the value that the event writes.

use std::collections::{HashSet, VecDeque};
use std::hash::Hash;

use foresee_trace::Names;

use crate::ast::{Atom, CompareOp, EventAtom, EventKind, Expr, ExprKind, Ident, Init, Term};
use crate::letter::{Alphabet, Letter};
use crate::observe::Projection;
use crate::property::Compiled;
use crate::resolve::Resolved;

/// Which letter may follow which.
pub(super) struct Steps {
    reads_initial: bool,
    /// The atoms about events.
    events: u64,
    variables: Vec<Variable>,
    /// Event atoms that require a write of some variable of the conditions.
    writes: u64,
    /// An event atom, and those that every matching event matches as well.
    implied: Vec<(u64, u64)>,
    /// The atoms whose initial value the specification determines, and those of them that are true.
    given: u64,
    given_true: u64,
}

/// A variable of the conditions.
struct Variable {
    /// The conditions on it.
    conditions: u64,
    /// The event atoms that a write of it may match, and those that it always matches.
    may: u64,
    must: u64,
    values: Vec<Written>,
}

/// An event atom that determines the written value.
struct Written {
    atom: u64,
    /// The conditions on the variable alone, and those that hold for the value.
    conditions: u64,
    holding: u64,
    /// The condition that the variable has this value, if the atom holds for all writes of it.
    same: u64,
}

impl Written {
    fn new(event: &EventAtom, variable: &str, alphabet: &Alphabet) -> Option<Written> {
        let (Term::Name(target), [Term::Literal(value, span)]) = (&event.target, &event.args[..])
        else {
            return None;
        };
        if target.name != variable || event.kind != EventKind::Write {
            return None;
        }
        let var = Ident { name: variable.into(), span: *span };
        let init = Init { var, value: value.clone() };
        let (conditions, holding) = initially(alphabet, &[init]);
        let same = bits(alphabet, |a| match a {
            Atom::Compare(CompareOp::Eq, left, right) => {
                let (var, value) =
                    (ExprKind::Var(variable.into()), ExprKind::Literal(value.clone()));
                event.thread == Term::Any && left.kind == var && right.kind == value
            }
            _ => false,
        });
        let atom = bits(alphabet, |a| matches!(a, Atom::Event(e) if e == event));
        Some(Written { atom, conditions, holding, same })
    }

    /// Whether the atom and the conditions agree on the value.
    fn agrees(&self, letter: Letter) -> bool {
        if letter.0 & self.atom != 0 {
            letter.0 & self.conditions == self.holding
        } else {
            letter.0 & self.same == 0
        }
    }
}

/// The conditions that initial values determine, and those of them that are true.
fn initially(alphabet: &Alphabet, inits: &[Init]) -> (u64, u64) {
    let decided = bits(alphabet, |atom| {
        let mut all = !matches!(atom, Atom::Event(_));
        each_variable(atom, &mut |name| all &= inits.iter().any(|i| i.var.name == name));
        all
    });
    let projection = Projection::new(alphabet, inits, &Resolved::default(), &Names::default());
    (decided, projection.initial().letter().0 & decided)
}

/// Whether every event of the first shape also has the second.
fn implies(a: &EventAtom, b: &EventAtom) -> bool {
    let wider = |a: &Term, b: &Term| *b == Term::Any || a == b;
    a.kind == b.kind
        && wider(&a.target, &b.target)
        && wider(&a.thread, &b.thread)
        && b.args.len() <= a.args.len()
        && a.args.iter().zip(&b.args).all(|(a, b)| wider(a, b))
}

/// The maximum number of steps that a search tries.
const MAX_TRIES: usize = 4_000_000;

/// The result of a search.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Search {
    /// A shortest word, as indices into the list of letters.
    Found(Vec<usize>),
    /// There is none.
    Nothing,
    /// There may be one, but the search became too large.
    GaveUp,
}

impl Steps {
    pub(super) fn new(compiled: &Compiled, inits: &[Init]) -> Steps {
        let alphabet = &compiled.alphabet;
        let events = alphabet.event_bits();
        let mut names: Vec<&str> = Vec::new();
        for atom in alphabet.atoms() {
            each_variable(atom, &mut |name| {
                if !names.contains(&name) {
                    names.push(name);
                }
            });
        }
        let variables: Vec<Variable> =
            names.iter().map(|name| Variable::new(name, alphabet)).collect();
        let is_variable = |e: &EventAtom| match &e.target {
            Term::Name(ident) => names.contains(&ident.name.as_str()),
            _ => false,
        };
        let writes = bits(
            alphabet,
            |a| matches!(a, Atom::Event(e) if e.kind == EventKind::Write && is_variable(e)),
        );
        let shapes = alphabet.atoms().iter().filter_map(|a| match a {
            Atom::Event(event) => Some(event),
            _ => None,
        });
        let implied = shapes.map(|a| {
            let own = bits(alphabet, |b| matches!(b, Atom::Event(b) if a == b));
            (own, bits(alphabet, |b| matches!(b, Atom::Event(b) if implies(a, b))))
        });
        let implied = implied.collect();
        let (given, given_true) = initially(alphabet, inits);
        Steps {
            reads_initial: compiled.reads_initial,
            events,
            variables,
            writes,
            implied,
            given,
            given_true,
        }
    }

    /// Whether a letter may be the first, or may follow one with these conditions true.
    fn may_follow(&self, before: Option<u64>, letter: Letter) -> bool {
        let (events, conditions) = (letter.0 & self.events, letter.0 & !self.events);
        if self.implied.iter().any(|(a, all)| events & a != 0 && all & !events != 0) {
            return false;
        }
        let Some(before) = before else {
            return if self.reads_initial {
                events == 0 && conditions & self.given == self.given_true
            } else {
                events != 0
            };
        };
        let changed = before ^ conditions;
        let without_write = changed == 0 && events != 0 && events & self.writes == 0;
        without_write
            || self.variables.iter().any(|v| {
                changed & !v.conditions == 0
                    && events & !v.may == 0
                    && v.must & !events == 0
                    && v.values.iter().all(|w| w.agrees(letter))
            })
    }

    /// A shortest non-empty word that leads to a wanted state.
    pub(super) fn shortest<S: Clone + Eq + Hash>(
        &self,
        letters: &[Letter],
        start: S,
        next: &mut impl FnMut(&S, usize) -> Option<S>,
        wanted: impl Fn(&S) -> bool,
    ) -> Search {
        // What may follow depends on the conditions that are currently true.
        let mut nodes: Vec<(S, Option<u64>, usize, usize)> = vec![(start.clone(), None, 0, 0)];
        let mut seen = HashSet::from([(start, None)]);
        let mut queue = VecDeque::from([0usize]);
        let mut tries = 0;
        while let Some(at) = queue.pop_front() {
            tries += letters.len();
            if tries > MAX_TRIES {
                return Search::GaveUp;
            }
            for (i, &letter) in letters.iter().enumerate() {
                if !self.may_follow(nodes[at].1, letter) {
                    continue;
                }
                let Some(state) = next(&nodes[at].0, i) else { continue };
                let key = (state, Some(letter.0 & !self.events));
                if seen.contains(&key) {
                    continue;
                }
                let found = wanted(&key.0);
                nodes.push((key.0.clone(), key.1, at, i));
                if found {
                    return Search::Found(word_to(nodes.len() - 1, |n| (nodes[n].2, nodes[n].3)));
                }
                queue.push_back(nodes.len() - 1);
                seen.insert(key);
            }
        }
        Search::Nothing
    }
}

fn word_to(mut node: usize, before: impl Fn(usize) -> (usize, usize)) -> Vec<usize> {
    let mut word = Vec::new();
    while node != 0 {
        let (from, letter) = before(node);
        word.push(letter);
        node = from;
    }
    word.reverse();
    word
}

impl Variable {
    fn new(name: &str, alphabet: &Alphabet) -> Variable {
        // `landing` may be short for `file.c:landing`.
        let same = |target: &Term| match target {
            Term::Name(ident) => ident.name.ends_with(name) || name.ends_with(&ident.name),
            _ => true,
        };
        // A read-modify-write is a read, too.
        let may = bits(alphabet, |a| {
            matches!(a, Atom::Event(e)
                if matches!(e.kind, EventKind::Read | EventKind::Write) && same(&e.target))
        });
        let must = bits(alphabet, |a| {
            matches!(a, Atom::Event(e) if e.kind == EventKind::Write
            && e.args.is_empty()
            && e.thread == Term::Any
            && match &e.target {
                Term::Name(ident) => ident.name == name,
                target => *target == Term::Any,
            })
        });
        let conditions = bits(alphabet, |atom| {
            let mut mentioned = false;
            each_variable(atom, &mut |n| mentioned |= n == name);
            mentioned
        });
        let values = alphabet.atoms().iter().filter_map(|atom| match atom {
            Atom::Event(event) => Written::new(event, name, alphabet),
            _ => None,
        });
        Variable { conditions, may, must, values: values.collect() }
    }
}

fn bits(alphabet: &Alphabet, wanted: impl Fn(&Atom) -> bool) -> u64 {
    let atoms = alphabet.atoms().iter().enumerate();
    atoms.filter(|(_, a)| wanted(a)).fold(0, |m, (i, _)| m | 1 << i)
}

/// Calls `found` with every variable that a condition mentions.
fn each_variable<'a>(atom: &'a Atom, found: &mut impl FnMut(&'a str)) {
    fn within<'a>(expr: &'a Expr, found: &mut impl FnMut(&'a str)) {
        match &expr.kind {
            ExprKind::Literal(_) => {}
            ExprKind::Var(name) => found(name),
            ExprKind::Neg(e) => within(e, found),
            ExprKind::Arith(_, a, b) => {
                within(a, found);
                within(b, found);
            }
        }
    }
    match atom {
        Atom::Event(_) => {}
        Atom::Truth(e) => within(e, found),
        Atom::Compare(_, a, b) => {
            within(a, found);
            within(b, found);
        }
    }
}
