//! A compiled property: its letters, its monitor, and what it needs from a trace.

use crate::ast::{Atom, EventKind, Expr, ExprKind, Property, Span, Spec, Term};
use crate::diagnostic::Diagnostic;
use crate::letter::{Alphabet, Letter};
use crate::logic::logic_of;
use crate::monitor::{Explored, Monitor, TooManyStates};
use crate::params::ParamPlan;
use crate::pattern::Position;

/// A compiled property.
#[derive(Debug)]
pub struct Compiled {
    /// Its name in reports.
    pub name: String,
    /// The name of its logic.
    pub logic: &'static str,
    /// Its atoms.
    pub alphabet: Alphabet,
    /// Its automaton over letters.
    pub monitor: Monitor,
    /// Whether the first letter is the initial state. Properties other than formulas read only
    /// events if all their atoms are events.
    pub reads_initial: bool,
    /// Its parameters and the atoms that bind them; empty if it has none.
    pub params: ParamPlan,
    /// For patterns: the sequences of positions, each of which is a violation.
    pub sequences: Option<Vec<Vec<Position>>>,
    /// Whether some run violates it; `true` if unknown.
    pub is_violable: bool,
    /// The event atoms that every violation is known to require, as bits.
    pub needed: u64,
    /// Things that are allowed but probably not intended.
    pub warnings: Vec<Diagnostic>,
    /// Its position in the source.
    pub span: Span,
}

/// How much of the automaton is built at compile time to detect properties that cannot be violated.
const GLANCE_LETTERS: usize = 256;
const GLANCE_STATES: usize = 512;
/// How much of it is built for explanations.
const EXPLAIN_LETTERS: usize = 4_096;

impl Compiled {
    /// Compiles one property.
    pub fn new(property: &Property) -> Result<Compiled, Diagnostic> {
        let logic = logic_of(&property.body);
        let mut alphabet = Alphabet::default();
        let draft = logic.compile(&property.body, &mut alphabet)?;
        let params = ParamPlan::new(&property.params, &alphabet)?;
        let is_formula = matches!(property.body, crate::ast::Body::Formula(_));
        let mut compiled = Compiled {
            name: property.name.name.clone(),
            logic: logic.name(),
            reads_initial: is_formula || alphabet.has_state_atoms(),
            alphabet,
            monitor: draft.monitor,
            params,
            sequences: draft.sequences,
            is_violable: true,
            needed: 0,
            warnings: Vec::new(),
            span: property.span,
        };
        compiled.glance(&property.name.span);
        Ok(compiled)
    }

    /// Compiles all properties of a specification; the error has a diagnostic for each that failed.
    pub fn all(spec: &Spec) -> Result<Vec<Compiled>, Vec<Diagnostic>> {
        let (mut compiled, mut errors) = (Vec::new(), Vec::new());
        for property in &spec.properties {
            match Compiled::new(property) {
                Ok(property) => compiled.push(property),
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() { Ok(compiled) } else { Err(errors) }
    }

    fn glance(&mut self, at: &Span) {
        let Some(letters) = self.letters(GLANCE_LETTERS) else { return };
        let Ok(explored) = self.monitor.explore(&letters, GLANCE_STATES) else { return };
        self.params.note_automaton(&explored);
        self.is_violable = explored.can_be_violated();
        if self.is_violable {
            let atoms = self.alphabet.atoms().iter().enumerate();
            let events = atoms.filter(|(_, atom)| matches!(atom, Atom::Event(_)));
            let needed = events.map(|(i, _)| 1 << i).filter(|&bit| !explored.is_bad_without(bit));
            self.needed = needed.fold(0, |needed, bit| needed | bit);
            return;
        }
        let message = match self.logic {
            "ltl" => "the property cannot be violated by a finite prefix of a run",
            _ => "the property can never be violated",
        };
        let warning = Diagnostic::warning("never-violated", message, *at, "will never be reported");
        self.warnings.push(match self.logic {
            "ltl" => warning.help(
                "`eventually` and `until` promise something that may always happen later; \
                 a past-time or `always` formula can fail in the middle of a run",
            ),
            _ => warning,
        });
    }

    /// Every letter that a step may have, or `None` if there are more than `limit`.
    pub fn letters(&self, limit: usize) -> Option<Vec<Letter>> {
        let mut letters = self.alphabet.letters(limit)?;
        // Without state atoms, a step is an event that some atom matches.
        letters.retain(|l| self.reads_initial || l.0 != 0);
        Some(letters)
    }

    /// The complete automaton, for explaining the property.
    pub fn explore(&mut self, max_states: usize) -> Result<Explored, TooManyStates> {
        let too_many = TooManyStates { limit: EXPLAIN_LETTERS, what: "different kinds of steps" };
        let letters = self.letters(EXPLAIN_LETTERS).ok_or(too_many)?;
        self.monitor.explore(&letters, max_states)
    }

    /// The parts of a trace that are relevant to the property.
    pub fn relevance(&self) -> Relevance {
        let mut relevance = Relevance::default();
        for atom in self.alphabet.atoms() {
            match atom {
                Atom::Compare(_, a, b) => {
                    relevance.variables_of(a);
                    relevance.variables_of(b);
                }
                Atom::Truth(e) => relevance.variables_of(e),
                Atom::Event(event) => {
                    let targets = match event.kind {
                        EventKind::Read | EventKind::Write => &mut relevance.vars,
                        EventKind::Acquire | EventKind::Release => &mut relevance.locks,
                        EventKind::Fork | EventKind::Join => &mut relevance.threads,
                        EventKind::Enter | EventKind::Exit | EventKind::Event => {
                            &mut relevance.syms
                        }
                    };
                    targets.add(&event.target);
                }
            }
        }
        relevance
    }
}

/// The entities of one kind that a property names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// Their names, as the specification writes them.
    pub names: Vec<String>,
    /// Whether it also refers to any entity of this kind, by `_` or by a parameter.
    pub any: bool,
}

impl Named {
    fn add(&mut self, term: &Term) {
        match term {
            Term::Name(ident) => self.add_name(&ident.name),
            Term::Any | Term::Param(_) | Term::Literal(..) => self.any = true,
        }
    }

    fn add_name(&mut self, name: &str) {
        if !self.names.iter().any(|n| n == name) {
            self.names.push(name.into());
        }
    }
}

/// The parts of a trace that are relevant to a property, so that a capture can leave out the rest.
/// Events of other entities still matter for the causality of the named ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Relevance {
    /// Variables of conditions, and targets of `read` and `write`.
    pub vars: Named,
    /// Targets of `acquire` and `release`.
    pub locks: Named,
    /// Targets of `fork` and `join`.
    pub threads: Named,
    /// Targets of `enter`, `exit` and `event`.
    pub syms: Named,
}

impl Relevance {
    fn variables_of(&mut self, e: &Expr) {
        match &e.kind {
            ExprKind::Literal(_) => {}
            ExprKind::Var(name) => self.vars.add_name(name),
            ExprKind::Neg(e) => self.variables_of(e),
            ExprKind::Arith(_, a, b) => {
                self.variables_of(a);
                self.variables_of(b);
            }
        }
    }
}
