//! Back from a violation to a run that shows it.

use foresee_spec::letter::Letter;
use foresee_spec::monitor::{StateId, TooManyStates};

use super::expand::Bad;
use super::explore::Explorer;
use super::level::Level;
use super::tables::Meaning;

/// A run over relevant events: which column moves at each step.
pub(super) type Run = Vec<u32>;

impl Explorer {
    /// The run to a violating step, the step included: the shortest there is, and among those the
    /// one that goes back along the latest observed events.
    pub(super) fn run_to(
        &mut self,
        depth: usize,
        bad: Bad,
        meaning: &mut Meaning<'_>,
    ) -> Result<Run, TooManyStates> {
        let mut levels = self.levels_up_to(depth, meaning)?;
        let level = levels.pop().expect("the level of the violation was searched");
        let n = bad.cut as usize;
        let mut counts = level.counts(n);
        let letter = self.letter(level.states[n], &counts, bad.column as usize, meaning);
        let mut goal = None;
        for state in self.tables.set(level.sets[n]).clone().iter() {
            if meaning.monitor.step(state, letter)? == StateId::BAD {
                goal = Some(state);
                break;
            }
        }
        let mut goal = goal.expect("a state of the cut leads to the violation");
        let mut run = vec![bad.column];
        for at in (0..depth).rev() {
            if levels.is_empty() {
                levels = self.levels_up_to(at, meaning)?;
            }
            let level = levels.pop().expect("every level up to the violation is there");
            let (column, state) = self.step_back(&level, &counts, goal, meaning)?;
            counts[column] -= 1;
            goal = state;
            run.push(column as u32);
        }
        run.reverse();
        Ok(run)
    }

    /// A cut of `level` and a state of it from which one step leads to `goal` in the cut `counts`;
    /// the column of that step.
    fn step_back(
        &mut self,
        level: &Level,
        counts: &[u32],
        goal: StateId,
        meaning: &mut Meaning<'_>,
    ) -> Result<(usize, StateId), TooManyStates> {
        let mut columns: Vec<usize> = (0..counts.len()).filter(|&c| counts[c] > 0).collect();
        let index = |c: usize| self.events.columns()[c].item(counts[c] - 1).index;
        columns.sort_by_key(|&c| std::cmp::Reverse(index(c)));
        for column in columns {
            let mut before = counts.to_vec();
            before[column] -= 1;
            if !self.events.is_enabled(column, &before, counts) {
                continue;
            }
            // An earlier level may not know of columns that appeared later.
            let (known, later) = before.split_at(level.packing.len());
            if later.iter().any(|&count| count > 0) {
                continue;
            }
            let mut cut = Vec::new();
            level.packing.pack(known, &mut cut);
            let Some(n) = (0..level.len()).find(|&n| *level.cut(n) == cut) else { continue };
            let letter = self.letter(level.states[n], &before, column, meaning);
            for state in self.tables.set(level.sets[n]).clone().iter() {
                if meaning.monitor.step(state, letter)? == goal {
                    return Ok((column, state));
                }
            }
        }
        unreachable!("every state of a cut is reached from a cut of the level before")
    }

    /// The letter of the next event of a column after a cut with this program state.
    fn letter(
        &mut self,
        state: u32,
        counts: &[u32],
        column: usize,
        meaning: &Meaning<'_>,
    ) -> Letter {
        let item = *self.events.columns()[column].item(counts[column]);
        let state = match item.write() {
            Some(write) => self.tables.after(state, write, meaning),
            None => state,
        };
        Letter(self.tables.bits(state) | item.atoms)
    }
}
