//! Short runs that violate a property, settle it, or exercise it.

use std::hash::Hash;

use super::steps::{Search, Steps};
use super::{Facts, MAX_STATES, OrderFacts};
use crate::ast::{BinaryOp, Body, Formula, FormulaKind, Init, Property, UnaryOp};
use crate::draw::cube_text;
use crate::letter::Letter;
use crate::logic::logic_of;
use crate::monitor::{Cube, Explored, StateId, TooManyStates, Verdict};
use crate::past::looks_ahead;
use crate::property::Compiled;

/// The maximum number of entries in the automaton's table, whatever the number of its states.
const MAX_ENTRIES: usize = 1 << 19;

/// A run, step by step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    /// The atoms that are true at each step.
    pub letters: Vec<Letter>,
    /// The relevant atoms of each step; empty if any step will do.
    pub steps: Vec<String>,
    /// Whether the first step is the initial state.
    pub begins_initially: bool,
}

/// The result of a search for an example.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// An example.
    Example(Example),
    /// There is none.
    Nothing,
    /// The search became too large.
    GaveUp,
}

impl Found {
    /// The example, if there is one.
    pub fn example(&self) -> Option<&Example> {
        match self {
            Found::Example(example) => Some(example),
            _ => None,
        }
    }
}

impl Facts {
    pub(super) fn of(
        property: &Property,
        compiled: &mut Compiled,
        inits: &[Init],
    ) -> Result<Facts, TooManyStates> {
        let explored = whole(compiled)?;
        let order = OrderFacts::of(compiled);
        let minimal = explored.minimise();
        let shower = Shower { minimal: &minimal, steps: Steps::new(compiled, inits), compiled };
        let settled = shower.reach(Verdict::Good);
        let exercised = condition(property).map(|c| shower.exercise(c));
        let allowed = match exercised {
            Some(found @ Found::Example(_)) => found,
            _ if settled != Found::Nothing => settled.clone(),
            _ => shower.farthest(),
        };
        Ok(Facts {
            states: explored.states.len(),
            minimal: minimal.states.len(),
            letters: explored.letters.len(),
            order,
            can_be_violated: explored.can_be_violated(),
            violation: shower.reach(Verdict::Bad),
            settled,
            allowed,
        })
    }
}

/// The complete automaton of a property, if it is small enough to be minimised, which may take time
/// proportional to the size of its table times its depth.
pub(crate) fn whole(compiled: &mut Compiled) -> Result<Explored, TooManyStates> {
    let letters = compiled.letters(MAX_ENTRIES).map_or(1, |letters| letters.len().max(1));
    compiled.explore(MAX_STATES.min(MAX_ENTRIES / letters))
}

/// The condition of a past-time property of the form "whenever this, then that".
fn condition(property: &Property) -> Option<&Formula> {
    match &property.body {
        Body::Formula(f) if !looks_ahead(f) => match &f.kind {
            FormulaKind::Binary(BinaryOp::Implies, condition, _) => Some(condition),
            _ => None,
        },
        _ => None,
    }
}

struct Shower<'a> {
    minimal: &'a Explored,
    steps: Steps,
    compiled: &'a Compiled,
}

impl Shower<'_> {
    fn verdict(&self, state: u32) -> Verdict {
        self.minimal.states[state as usize].verdict
    }

    fn reach(&self, verdict: Verdict) -> Found {
        // Without such a state, a search would only waste time.
        if self.minimal.states.iter().all(|s| s.verdict != verdict) {
            return Found::Nothing;
        }
        self.find(|v, _| v == verdict)
    }

    fn find(&self, wanted: impl Fn(Verdict, u32) -> bool) -> Found {
        let next = |&s: &u32, i: usize| Some(self.minimal.states[s as usize].row[i]);
        self.search(0, next, |s: &u32| wanted(self.verdict(*s), *s))
    }

    /// A shortest run after which the condition holds and the property is not violated.
    fn exercise(&self, condition: &Formula) -> Found {
        // A monitor that is violated where the condition holds detects when it does.
        let never = FormulaKind::Unary(UnaryOp::Not, Box::new(condition.clone()));
        let body = Body::Formula(Formula { kind: never, span: condition.span });
        let mut alphabet = self.compiled.alphabet.clone();
        let Ok(draft) = logic_of(&body).compile(&body, &mut alphabet) else {
            return Found::GaveUp;
        };
        let mut monitor = draft.monitor;
        let start = (0u32, monitor.start());
        let next = |&(s, c): &(u32, StateId), i: usize| {
            let to = self.minimal.states[s as usize].row[i];
            let condition = monitor.step(c, self.minimal.letters[i]).ok()?;
            (self.verdict(to) != Verdict::Bad).then_some((to, condition))
        };
        self.search(start, next, |(_, c)| *c == StateId::BAD)
    }

    /// A shortest run to the non-violating state that is farthest from the start.
    fn farthest(&self) -> Found {
        let states = 0..self.minimal.states.len() as u32;
        // States are numbered by their distance from the start.
        let last = states.rev().find(|&s| self.verdict(s) != Verdict::Bad);
        match self.find(|_, s| Some(s) == last) {
            Found::Nothing => self.find(|v, _| v != Verdict::Bad),
            found => found,
        }
    }

    /// A shortest run from `start` to a wanted state, and the relevant atoms of its steps.
    fn search<S: Clone + Eq + Hash>(
        &self,
        start: S,
        mut next: impl FnMut(&S, usize) -> Option<S>,
        wanted: impl Fn(&S) -> bool,
    ) -> Found {
        let letters = &self.minimal.letters;
        let word = match self.steps.shortest(letters, start.clone(), &mut next, wanted) {
            Search::Found(word) => word,
            Search::Nothing => return Found::Nothing,
            Search::GaveUp => return Found::GaveUp,
        };
        let alphabet = &self.compiled.alphabet;
        let begins_initially = self.compiled.reads_initial;
        let mut state = start;
        let mut steps = Vec::new();
        for (n, &i) in word.iter().enumerate() {
            let to = next(&state, i);
            // No event happens in the initial state, so that is not mentioned.
            let irrelevant = if n == 0 && begins_initially { alphabet.event_bits() } else { 0 };
            let possible = (0..letters.len()).filter(|&j| letters[j].0 & irrelevant == 0);
            let (same, other): (Vec<usize>, Vec<usize>) =
                possible.partition(|&j| next(&state, j) == to);
            let [same, other] = [same, other]
                .map(|places| places.into_iter().map(|j| letters[j]).collect::<Vec<Letter>>());
            let cubes = Cube::cover(&same, &other).into_iter().filter(|c| c.holds(letters[i]));
            let cube = cubes.min_by_key(|c| (c.yes | c.no).count_ones());
            steps.push(cube_text(cube.expect("the cover covers"), alphabet, ", "));
            let Some(to) = to else { break };
            state = to;
        }
        let letters = word.iter().map(|&i| letters[i]).collect();
        Found::Example(Example { letters, steps, begins_initially })
    }
}
