//! Which obligations an infinite run can still satisfy.

use std::collections::{HashMap, HashSet};

use foresee_support::components::{components, members};

use super::unfold::Unfolding;
use crate::letter::{Alphabet, Letter};
use crate::monitor::TooManyStates;

/// A state of the Büchi automaton: the bits of the past operators and the obligations.
type Node = (Option<u64>, u64);

/// The maximum number of nodes and edges of the automaton.
const MAX_NODES: usize = 20_000;
const MAX_EDGES: usize = 2_000_000;
/// The maximum number of letters that are tried individually if past operators require it.
const MAX_LETTERS: usize = 1_024;

/// The obligations that can be satisfied.
#[derive(Debug)]
pub(super) struct Hopes {
    /// Reachable nodes from which no infinite word is accepted.
    hopeless: HashSet<Node>,
    /// Whether nodes include the past. Without past operators there is nothing to include; with too
    /// many letters to try, past formulas count as independent conditions.
    with_past: bool,
}

impl Hopes {
    /// Examines all obligations that can follow from `roots`.
    pub(super) fn new(
        unfolding: &mut Unfolding,
        roots: &[u64],
        atoms: &Alphabet,
    ) -> Result<Hopes, TooManyStates> {
        let letters = atoms.letters(MAX_LETTERS);
        let tried = letters.as_deref().filter(|_| unfolding.has_past());
        let with_past = tried.is_some();
        let mut nodes: Vec<Node> = roots.iter().map(|&set| (None, set)).collect();
        let mut places: HashMap<Node, u32> = nodes.iter().copied().zip(0..).collect();
        let mut edges: Vec<Vec<u32>> = Vec::new();
        let mut edge_count = 0;
        while edges.len() < nodes.len() {
            let (memory, set) = nodes[edges.len()];
            let mut next: Vec<Node> = Vec::new();
            let alternatives = unfolding.alternatives(set)?;
            match tried {
                Some(letters) => {
                    for &letter in letters {
                        let (past, memory) = unfolding.past(memory, letter);
                        let fit = alternatives.iter().filter(|a| a.fits(letter, past));
                        next.extend(fit.map(|a| (Some(memory), a.owed)));
                    }
                }
                None => {
                    let can_be = |yes: u64, no: u64| match &letters {
                        Some(all) => all.iter().any(|l: &Letter| l.0 & yes == yes && l.0 & no == 0),
                        None => true,
                    };
                    let possible = alternatives.iter().filter(|a| can_be(a.yes, a.no));
                    next.extend(possible.map(|a| (None, a.owed)));
                }
            }
            next.sort_unstable();
            next.dedup();
            edge_count += next.len();
            let mut row = Vec::with_capacity(next.len());
            for node in next {
                let place = *places.entry(node).or_insert(nodes.len() as u32);
                if place as usize == nodes.len() {
                    nodes.push(node);
                }
                row.push(place);
            }
            if nodes.len() > MAX_NODES || edge_count > MAX_EDGES {
                return Err(TooManyStates { limit: MAX_NODES, what: "sets of obligations" });
            }
            edges.push(row);
        }
        let alive = accepting(&nodes, &edges, unfolding.until());
        let hopeless = nodes.iter().zip(alive).filter(|(_, alive)| !alive).map(|(n, _)| *n);
        Ok(Hopes { hopeless: hopeless.collect(), with_past })
    }

    /// Whether some infinite continuation satisfies the obligations.
    pub(super) fn alive(&self, memory: Option<u64>, set: u64) -> bool {
        let memory = if self.with_past { memory } else { None };
        !self.hopeless.contains(&(memory, set))
    }
}

/// The nodes from which some infinite path postpones no `until` forever: those that reach a
/// strongly connected component with a cycle in which every `until` is absent from some node.
fn accepting(nodes: &[Node], edges: &[Vec<u32>], until: u64) -> Vec<bool> {
    let mut alive = vec![false; nodes.len()];
    // Components come with those they lead to first, so one pass is enough.
    for component in members(&components(edges.len(), |node| &edges[node as usize])) {
        let inside: HashSet<u32> = component.iter().copied().collect();
        let put_off = component.iter().fold(until, |m, &n| m & nodes[n as usize].1);
        let to = |n: &u32| edges[*n as usize].iter();
        let cycle = component.iter().any(|n| to(n).any(|t| inside.contains(t)));
        let leads_on = component.iter().any(|n| to(n).any(|&t| alive[t as usize]));
        if leads_on || cycle && put_off == 0 {
            component.iter().for_each(|&n| alive[n as usize] = true);
        }
    }
    alive
}
