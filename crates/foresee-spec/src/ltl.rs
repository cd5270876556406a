//! Future-time linear temporal logic, with past-time subformulas: the whole run must satisfy F.
//!
//! The monitor answers three questions about the prefix seen so far, all exactly:
//!
//! - is it *bad*: no infinite continuation satisfies F?
//! - is it *good*: every infinite continuation satisfies F? (Together with the first this is LTL3;
//!   Bauer, Leucker and Schallhart 2011.)
//! - does F hold if the run ends here, over finite words (LTLf: `next` is strong)?
//!
//! F in negation normal form is unfolded into alternatives: conditions on this step, and
//! obligations from the next step on. Sets of obligations are the states of a Büchi automaton;
//! which of them accept an infinite word is computed once, at compile time. A monitor state
//! consists of the obligation sets that the run may have, for F and for its negation, and the bits
//! of the past operators.
//!
//! "Continuation" ranges over the letters of [`Alphabet::letters`]: conditions on different
//! variables count as independent, so a verdict may be late but is never wrong.

mod obligations;
mod unfold;

use std::sync::Arc;

use crate::ast::Body;
use crate::diagnostic::Diagnostic;
use crate::letter::{Alphabet, Letter};
use crate::logic::{Draft, Logic};
use crate::monitor::{Machine, Monitor, TooManyStates, Verdict};
use crate::past::looks_ahead;
use obligations::Hopes;
use unfold::{Alternative, Unfolding};

/// `property NAME: F` with future operators.
pub struct FutureTime;

impl Logic for FutureTime {
    fn name(&self) -> &'static str {
        "ltl"
    }

    fn describe(&self) -> &'static str {
        "future-time formulas, which the run must be able to satisfy"
    }

    fn accepts(&self, body: &Body) -> bool {
        matches!(body, Body::Formula(f) if looks_ahead(f))
    }

    fn compile(&self, body: &Body, atoms: &mut Alphabet) -> Result<Draft, Diagnostic> {
        let Body::Formula(formula) = body else { unreachable!("only formulas are accepted") };
        let mut unfolding = Unfolding::default();
        let holds = unfolding.owe(formula, true, atoms)?;
        let fails = unfolding.owe(formula, false, atoms)?;
        let hopes = Hopes::new(&mut unfolding, &[holds, fails], atoms).map_err(|e| {
            let error = Diagnostic::error("too-large", e.to_string(), formula.span, "too large");
            error.help("split the formula into several properties")
        })?;
        let machine = FutureMachine { unfolding, hopes, holds, fails };
        Ok(Monitor::new(machine, atoms.atoms().len(), Monitor::DEFAULT_LIMIT).into())
    }
}

struct FutureMachine {
    unfolding: Unfolding,
    hopes: Hopes,
    holds: u64,
    fails: u64,
}

/// What is still possible after the run so far.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Outlook {
    /// Bits of the past operators; `None` before the first step.
    memory: Option<u64>,
    /// Sets of obligations, each of which would satisfy F. Hopeless ones are kept, because a run
    /// that ends may still satisfy them.
    holds: Arc<[u64]>,
    /// The same for its negation, without the hopeless ones.
    fails: Arc<[u64]>,
}

impl Machine for FutureMachine {
    type State = Outlook;

    fn start(&mut self) -> Outlook {
        Outlook { memory: None, holds: [self.holds].into(), fails: [self.fails].into() }
    }

    fn step(&mut self, before: &Outlook, letter: Letter) -> Result<Outlook, TooManyStates> {
        let (past, memory) = self.unfolding.past(before.memory, letter);
        let mut follow = |sets: &[u64]| {
            let mut next = Vec::new();
            for &set in sets {
                let alternatives = self.unfolding.alternatives(set)?;
                let fits = |a: &&Alternative| a.fits(letter, past);
                next.extend(alternatives.iter().filter(fits).map(|a| a.owed));
            }
            keep_least(&mut next);
            Ok(next)
        };
        let holds = follow(&before.holds)?.into();
        let mut fails = follow(&before.fails)?;
        fails.retain(|&set| self.hopes.alive(Some(memory), set));
        Ok(Outlook { memory: Some(memory), holds, fails: fails.into() })
    }

    fn verdict(&self, outlook: &Outlook) -> Verdict {
        if !outlook.holds.iter().any(|&set| self.hopes.alive(outlook.memory, set)) {
            Verdict::Bad
        } else if !outlook.fails.iter().any(|&set| self.hopes.alive(outlook.memory, set)) {
            Verdict::Good
        } else {
            Verdict::Open
        }
    }

    fn holds_at_end(&self, outlook: &Outlook) -> bool {
        outlook.holds.iter().any(|set| set & self.unfolding.strong() == 0)
    }
}

/// Keeps the minimal sets: a run that satisfies a superset satisfies the set.
fn keep_least(sets: &mut Vec<u64>) {
    sets.sort_unstable_by_key(|s| (s.count_ones(), *s));
    sets.dedup();
    let mut kept: Vec<u64> = Vec::new();
    sets.retain(|&set| {
        let least = !kept.iter().any(|&k| k & !set == 0);
        if least {
            kept.push(set);
        }
        least
    });
}

#[cfg(test)]
mod tests;
