//! Conditions on edges, as text.

use crate::ast::{Atom, ExprKind};
use crate::letter::{Alphabet, Letter};
use crate::monitor::Cube;
use crate::print_atom;

/// A conjunction as text, its parts joined by `joint`; empty if it has no parts.
pub(crate) fn cube_text(cube: Cube, alphabet: &Alphabet, joint: &str) -> String {
    let mut parts = Vec::new();
    for (i, atom) in alphabet.atoms().iter().enumerate() {
        if cube.yes >> i & 1 == 1 {
            parts.push(print_atom(atom));
        } else if cube.no >> i & 1 == 1 {
            let text = print_atom(atom);
            let single = match atom {
                Atom::Event(_) => true,
                Atom::Compare(..) => false,
                Atom::Truth(expr) => matches!(expr.kind, ExprKind::Var(_)),
            };
            parts.push(if single { format!("!{text}") } else { format!("!({text})") });
        }
    }
    parts.join(joint)
}

/// The maximum number of alternatives that are written out.
const MAX_ALTERNATIVES: usize = 24;

/// A condition: a step meets it if it meets any of the conjunctions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guard {
    /// The conjunctions; none means "never", an empty one "always".
    pub cubes: Vec<Cube>,
}

impl Guard {
    /// The guard of these cubes, without redundant ones. `letters` are all possible letters.
    pub(super) fn new(mut cubes: Vec<Cube>, letters: &[Letter]) -> Guard {
        // Cubes with the most conditions cover the least.
        cubes.sort_by_key(|c| (c.yes | c.no).count_ones());
        let mut i = cubes.len();
        while i > 0 {
            i -= 1;
            let others = |l: Letter| cubes.iter().enumerate().any(|(j, c)| j != i && c.holds(l));
            if letters.iter().filter(|l| cubes[i].holds(**l)).all(|l| others(*l)) {
                cubes.remove(i);
            }
        }
        Guard { cubes }
    }

    /// Whether a step satisfies it.
    pub fn holds(&self, letter: Letter) -> bool {
        self.cubes.iter().any(|c| c.holds(letter))
    }

    /// The condition in the notation of specifications, common parts of all alternatives first.
    pub fn text(&self, alphabet: &Alphabet) -> String {
        let all = Cube { yes: u64::MAX, no: u64::MAX };
        let common =
            self.cubes.iter().fold(all, |a, c| Cube { yes: a.yes & c.yes, no: a.no & c.no });
        let (first, rest) = match &self.cubes[..] {
            [] => return "false".into(),
            [one] => (*one, &[][..]),
            several => (common, several),
        };
        let first = cube_text(first, alphabet, " && ");
        let alternatives = rest.iter().take(MAX_ALTERNATIVES).map(|c| {
            let own = Cube { yes: c.yes & !common.yes, no: c.no & !common.no };
            let text = cube_text(own, alphabet, " && ");
            if (own.yes | own.no).count_ones() > 1 { format!("({text})") } else { text }
        });
        let mut alternatives = alternatives.collect::<Vec<_>>().join(" || ");
        if let Some(more) = rest.len().checked_sub(MAX_ALTERNATIVES + 1) {
            alternatives.push_str(&format!(" || … ({} more)", more + 1));
        }
        match (first.is_empty(), alternatives.is_empty()) {
            (true, true) => "true".into(),
            (false, true) => first,
            (true, false) => alternatives,
            (false, false) => format!("{first} && ({alternatives})"),
        }
    }
}
