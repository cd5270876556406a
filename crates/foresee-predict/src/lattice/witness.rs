//! Back from a violation to a run that shows it.

use foresee_spec::letter::Letter;
use foresee_spec::monitor::{StateId, TooManyStates};

use super::search::{Bad, History, Level, Search};

/// A run over relevant events: which column moves at each step.
pub(super) type Run = Vec<u32>;

impl Search<'_> {
    /// The run to a violating step, the step included: the shortest there is, and among those the
    /// one that goes back along the latest observed events.
    pub(super) fn run_to(
        &mut self,
        history: &History,
        depth: usize,
        bad: Bad,
    ) -> Result<Run, TooManyStates> {
        let mut levels = self.levels_up_to(history, depth)?;
        let level = levels.pop().expect("the level of the violation was searched");
        let mut counts = self.counts_of(&level, bad.cut as usize);
        let states = self.sets.get(level.sets[bad.cut as usize]).clone();
        let letter = self.letter(&level, bad.cut as usize, bad.column as usize);
        let mut goal = None;
        for state in states.iter() {
            if self.monitor.step(state, letter)? == StateId::BAD {
                goal = Some(state);
                break;
            }
        }
        let mut goal = goal.expect("a state of the cut leads to the violation");
        let mut run = vec![bad.column];
        for at in (0..depth).rev() {
            if levels.is_empty() {
                levels = self.levels_up_to(history, at)?;
            }
            let level = levels.pop().expect("every level up to the violation is there");
            let (column, state) = self.step_back(&level, &counts, goal)?;
            counts[column] -= 1;
            goal = state;
            run.push(column as u32);
        }
        run.reverse();
        Ok(run)
    }

    /// The levels from the latest one kept up to `depth`, recomputed where they were not kept.
    fn levels_up_to(
        &mut self,
        history: &History,
        depth: usize,
    ) -> Result<Vec<Level>, TooManyStates> {
        let (kept, level) = history.at_or_before(depth).expect("the first level is always kept");
        let mut levels = vec![level.clone()];
        let mut bad = Vec::new();
        for _ in kept..depth {
            let mut next = Level::default();
            let last = &levels[levels.len() - 1];
            self.advance(last, &mut next, &mut bad)?;
            levels.push(next);
        }
        Ok(levels)
    }

    /// A cut of `level` and a state of it from which one step leads to `goal` in the cut `counts`;
    /// the column of that step.
    fn step_back(
        &mut self,
        level: &Level,
        counts: &[u32],
        goal: StateId,
    ) -> Result<(usize, StateId), TooManyStates> {
        let mut columns: Vec<usize> = (0..counts.len()).filter(|&c| counts[c] > 0).collect();
        let index = |c: usize| self.slice.columns[c].items[counts[c] as usize - 1].index;
        columns.sort_by_key(|&c| std::cmp::Reverse(index(c)));
        for column in columns {
            let mut before = counts.to_vec();
            before[column] -= 1;
            if !self.slice.is_enabled(column, &before) {
                continue;
            }
            let Some(n) = (0..level.len()).find(|&n| self.counts_of(level, n) == before) else {
                continue;
            };
            let letter = self.letter(level, n, column);
            for state in self.sets.get(level.sets[n]).clone().iter() {
                if self.monitor.step(state, letter)? == goal {
                    return Ok((column, state));
                }
            }
        }
        unreachable!("every state of a cut is reached from a cut of the level before")
    }

    /// The letter of the next event of a column after a cut.
    pub(super) fn letter(&mut self, level: &Level, n: usize, column: usize) -> Letter {
        let k = self.counts_of(level, n)[column] as usize;
        let item = self.slice.columns[column].items[k];
        let state = match item.write {
            Some(write) => self.states.after(level.states[n], write, self.lens),
            None => level.states[n],
        };
        Letter(self.states.bits(state) | item.atoms)
    }
}
