//! Monitors written in Rust, for properties that no logic of the specification language expresses.
//!
//! A [`CustomMonitor`] names the conditions it depends on in the specification language and steps
//! over their truth values. That makes it an automaton over letters like every other property, so
//! all analyses take it: the observed run, the lattice of other runs, and the confirmation of what
//! they find.

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use crate::ast::{Body, Formula, Ident, Property, Span, Spec};
use crate::diagnostic::Diagnostic;
use crate::letter::{Alphabet, Letter};
use crate::logic::{Draft, Logic};
use crate::monitor::{Machine, Monitor, TooManyStates, Verdict};
use crate::past::{Program, Root};
use crate::syntax::parse;

/// A monitor written in Rust.
///
/// It must be a function of what it is given: prediction steps the same monitor along many runs and
/// remembers each step, so hidden state or randomness would make its answers wrong.
pub trait CustomMonitor: Send + Sync + 'static {
    /// What the monitor remembers of a run. Equal states must behave the same.
    type State: Clone + Eq + Hash + Send;

    /// The conditions that the monitor looks at, in the specification language: event atoms such as
    /// `event(open)`, comparisons such as `count > 3`, and past-time formulas over them.
    fn conditions(&self) -> Vec<String>;

    /// `init` and `let` lines that the conditions rely on.
    fn definitions(&self) -> String {
        String::new()
    }

    /// The state before the first step.
    fn start(&self) -> Self::State;

    /// The state after one more step, or `None` if the step violates the property. `holds[i]` says
    /// whether condition `i` is true of the step.
    ///
    /// If a condition compares values, the first step is the initial state of the program, and each
    /// relevant event is one further step. It must cope with any sequence of steps: to find out what
    /// can still happen, foresee also follows sequences that this program never shows.
    fn step(&self, state: &Self::State, holds: &[bool]) -> Option<Self::State>;
}

/// The body of a property that a [`CustomMonitor`] decides.
#[derive(Clone)]
pub struct Custom {
    /// The conditions, parsed.
    pub conditions: Vec<Formula>,
    factory: Arc<dyn Factory>,
}

impl fmt::Debug for Custom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Custom").field("conditions", &self.conditions).finish_non_exhaustive()
    }
}

impl PartialEq for Custom {
    fn eq(&self, other: &Custom) -> bool {
        self.conditions == other.conditions && Arc::ptr_eq(&self.factory, &other.factory)
    }
}

/// Builds the automaton of a monitor whose type is no longer known.
trait Factory: Send + Sync {
    fn monitor(&self, conditions: Program, roots: Vec<Root>, atoms: usize) -> Monitor;
}

struct Shared<M>(Arc<M>);

impl<M: CustomMonitor> Factory for Shared<M> {
    fn monitor(&self, conditions: Program, roots: Vec<Root>, atoms: usize) -> Monitor {
        let machine = Stepper { monitor: Arc::clone(&self.0), conditions, roots };
        Monitor::new(machine, atoms, Monitor::DEFAULT_LIMIT)
    }
}

/// A specification with one property, decided by `monitor`, and the text of its conditions, into
/// which diagnostics point.
pub fn specification<M: CustomMonitor>(
    name: &str,
    monitor: M,
) -> Result<(String, Spec), (String, Vec<Diagnostic>)> {
    let mut text = monitor.definitions();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    for (i, condition) in monitor.conditions().iter().enumerate() {
        text += &format!("property condition_{i}: {condition}\n");
    }
    let parsed = parse(&text);
    if parsed.diagnostics.iter().any(Diagnostic::is_error) {
        return Err((text, parsed.diagnostics));
    }
    let mut spec = parsed.spec;
    let conditions = std::mem::take(&mut spec.properties).into_iter().filter_map(formula).collect();
    let body = Body::Custom(Custom { conditions, factory: Arc::new(Shared(Arc::new(monitor))) });
    let span = Span { start: 0, end: text.len() as u32 };
    let name = Ident { name: name.to_owned(), span };
    let property = Property { name, params: Vec::new(), objects: Vec::new(), body, span };
    // A condition may use what only some places allow, which the logic finds out.
    if let Err(mistake) = CustomLogic.compile(&property.body, &mut Alphabet::default()) {
        return Err((text, vec![mistake]));
    }
    spec.properties.push(property);
    Ok((text, spec))
}

fn formula(property: Property) -> Option<Formula> {
    match property.body {
        Body::Formula(formula) => Some(formula),
        _ => None,
    }
}

/// Properties that a monitor in Rust decides.
pub struct CustomLogic;

impl Logic for CustomLogic {
    fn name(&self) -> &'static str {
        "custom"
    }

    fn describe(&self) -> &'static str {
        "monitors written in Rust, which step over conditions"
    }

    fn accepts(&self, body: &Body) -> bool {
        matches!(body, Body::Custom(_))
    }

    fn compile(&self, body: &Body, atoms: &mut Alphabet) -> Result<Draft, Diagnostic> {
        let Body::Custom(custom) = body else { unreachable!("only custom monitors are accepted") };
        let mut program = Program::default();
        let conditions = custom.conditions.iter();
        let roots =
            conditions.map(|c| program.add(c, atoms)).collect::<Result<Vec<Root>, Diagnostic>>()?;
        Ok(custom.factory.monitor(program, roots, atoms.atoms().len()).into())
    }
}

/// A custom monitor as an automaton over letters.
struct Stepper<M> {
    monitor: Arc<M>,
    conditions: Program,
    roots: Vec<Root>,
}

/// What is remembered of a run.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Memory<S> {
    /// The monitor's state, and the bits of past-time operators in its conditions after the first
    /// step.
    Open(S, Option<u64>),
    Violated,
}

impl<M: CustomMonitor> Machine for Stepper<M> {
    type State = Memory<M::State>;

    fn start(&mut self) -> Memory<M::State> {
        Memory::Open(self.monitor.start(), None)
    }

    fn step(
        &mut self,
        memory: &Memory<M::State>,
        letter: Letter,
    ) -> Result<Memory<M::State>, TooManyStates> {
        let Memory::Open(state, bits) = memory else { return Ok(Memory::Violated) };
        let (values, bits) = self.conditions.run(*bits, letter);
        let holds: Vec<bool> = self.roots.iter().map(|&root| values.of(root)).collect();
        Ok(match self.monitor.step(state, &holds) {
            Some(next) => Memory::Open(next, Some(bits)),
            None => Memory::Violated,
        })
    }

    fn verdict(&self, memory: &Memory<M::State>) -> Verdict {
        match memory {
            Memory::Open(..) => Verdict::Open,
            Memory::Violated => Verdict::Bad,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitor::StateId;
    use crate::property::Compiled;

    /// At most `limit` files may be open.
    struct OpenFiles {
        limit: u32,
    }

    impl CustomMonitor for OpenFiles {
        type State = u32;
        fn conditions(&self) -> Vec<String> {
            vec!["event(open)".to_owned(), "event(close) && once event(open)".to_owned()]
        }
        fn start(&self) -> u32 {
            0
        }
        fn step(&self, open: &u32, holds: &[bool]) -> Option<u32> {
            let open = (open + u32::from(holds[0])).saturating_sub(u32::from(holds[1]));
            (open <= self.limit).then_some(open)
        }
    }

    #[test]
    fn a_custom_monitor_is_an_automaton_over_its_conditions() {
        let (_, spec) = specification("files", OpenFiles { limit: 2 }).unwrap();
        let mut compiled = Compiled::all(&spec).unwrap().remove(0);
        assert_eq!((compiled.name.as_str(), compiled.logic), ("files", "custom"));
        assert!(!compiled.reads_initial, "it looks at events alone");
        let (open, close) = (Letter(1), Letter(2));
        let after = |compiled: &mut Compiled, steps: &[Letter]| {
            let start = compiled.monitor.start();
            steps.iter().fold(start, |s, &l| compiled.monitor.step(s, l).unwrap())
        };
        assert_eq!(after(&mut compiled, &[open, open, open]), StateId::BAD);
        assert_ne!(after(&mut compiled, &[open, open, close, open]), StateId::BAD);
        // Nothing was open when this was closed, which the past-time condition knows.
        assert_eq!(after(&mut compiled, &[close, open, open, open]), StateId::BAD);
    }

    #[test]
    fn mistakes_in_conditions_are_diagnosed() {
        struct Wrong(&'static str);
        impl CustomMonitor for Wrong {
            type State = ();
            fn conditions(&self) -> Vec<String> {
                vec![self.0.to_owned()]
            }
            fn start(&self) {}
            fn step(&self, (): &(), holds: &[bool]) -> Option<()> {
                (!holds[0]).then_some(())
            }
        }
        let error = |condition| specification("p", Wrong(condition)).err().unwrap().1;
        assert!(error("event(").iter().any(Diagnostic::is_error));
        assert_eq!(error("eventually event(e)")[0].code, "future-in-past");
        assert!(specification("p", Wrong("event(e)")).is_ok());
    }
}
