//! The search: from level to level, as far as events have arrived.
//!
//! A level is left when everything that can happen next in any of its cuts is known. Three things
//! make that so: the next event of each thread has arrived, or its end, or the trace has ended. In
//! two cases a level is left earlier. Within a window, when events arrive in the order in which
//! they were observed, and more cuts than the window holds are known: all that is still to come is
//! further from the observed run than these. And when more events wait than the lookahead allows;
//! then runs are left out, and the outcome says so.

use std::time::{Duration, Instant};

use foresee_spec::monitor::{StateId, TooManyStates};
use foresee_spec::observe::{ProgramState, Projection};
use foresee_trace::Outcome;

use super::events::Events;
use super::expand::{Bad, Expander, Ground};
use super::level::{Count, History, Level};
use super::tables::{Meaning, Shared, Tables, Writes};
use super::window::Narrowing;

/// How far to search.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How many cuts of a level are followed at most: those nearest to the observed run. `None`
    /// follows all.
    pub window: Option<usize>,
    /// How many relevant events may wait for a level to be completed before it is left as it is.
    pub lookahead: usize,
    /// With a window, the search follows the trace at intervals of this many relevant events. A fixed
    /// number of them, so that a second pass over the trace does the same.
    pub stride: u64,
    /// How many relevant events of a property with parameters are kept; what comes later is not
    /// looked at.
    pub events: usize,
    /// How many cuts are looked at in all.
    pub cuts: u64,
    /// How many bytes levels and events may take.
    pub memory: usize,
    /// How long to search.
    pub time: Option<Duration>,
    /// How many bytes are spent on remembering levels for the witness. When they do not suffice,
    /// levels are thinned out and recomputed when needed.
    pub history: usize,
    /// How many bytes of events that levels have left behind are kept for the witness. When they
    /// do not suffice, the witness takes another pass over the trace.
    pub kept_events: usize,
    /// How many cores are used for large levels.
    pub cores: usize,
}

/// How many bytes of levels, and of events that they have left behind, are kept for the witness of a
/// program that is still running.
const LIVE_MEMORY: usize = 1 << 20;

impl Limits {
    /// Keeps little of the past: there may be many running programs, and each may run forever.
    pub(crate) fn keep_little(&mut self) {
        (self.history, self.kept_events) = (LIVE_MEMORY, LIVE_MEMORY);
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            window: None,
            lookahead: usize::MAX,
            stride: 4096,
            events: 10_000_000,
            cuts: 100_000_000,
            memory: 1 << 30,
            time: None,
            history: 256 << 20,
            kept_events: 256 << 20,
            cores: std::thread::available_parallelism().map_or(1, Into::into),
        }
    }
}

/// The result of a search.
#[derive(Debug)]
pub(super) struct Searched {
    pub(super) outcome: Outcome,
    /// The first level that was not searched completely.
    pub(super) first_cut_off: Option<usize>,
    pub(super) cuts: u64,
    pub(super) levels: usize,
    pub(super) widest: usize,
    /// How many bytes the largest level took, with the table that finds its cuts.
    pub(super) widest_bytes: usize,
    /// How many runs were followed to their end, if they were counted.
    pub(super) runs: Option<Count>,
    /// The level in front of the first violating step, and the step.
    pub(super) violation: Option<(usize, Bad)>,
}

/// A search that goes on as events arrive.
#[derive(Debug)]
pub(super) struct Explorer {
    pub(super) events: Events,
    pub(super) tables: Tables,
    pub(super) found: Searched,
    expander: Expander,
    level: Level,
    next: Level,
    bad: Vec<Bad>,
    narrowing: Narrowing,
    limits: Limits,
    /// Only the first violation is wanted.
    first_only: bool,
    spent: Duration,
    over: bool,
    /// Levels up to the first violation, as long as the events that led there are kept as well.
    history: Option<History>,
    /// For the history only: the numbers of events known in each column, with the level from which
    /// they hold.
    pub(super) known: Vec<(usize, Vec<u32>)>,
    tables_after_tidying: usize,
}

/// Tables below this size are not tidied.
const SMALL_TABLES: usize = 1 << 16;

impl Explorer {
    /// At the initial state, with the monitor in `start`.
    pub(super) fn new(initial: ProgramState, start: StateId, limits: Limits) -> Explorer {
        Explorer {
            events: Events::default(),
            tables: Tables::new(initial, start),
            found: Searched {
                outcome: Outcome::Exhausted,
                first_cut_off: None,
                cuts: 1,
                levels: 1,
                widest: 1,
                widest_bytes: 0,
                runs: None,
                violation: None,
            },
            expander: Expander::new(limits.cores),
            level: Level::first(),
            next: Level::default(),
            bad: Vec::new(),
            narrowing: Narrowing::default(),
            limits,
            first_only: false,
            spent: Duration::ZERO,
            over: false,
            history: Some(History::new(limits.history)),
            known: Vec::new(),
            tables_after_tidying: SMALL_TABLES,
        }
    }

    /// How many events the cuts of the level have.
    fn depth(&self) -> usize {
        self.found.levels - 1
    }

    /// How far it searches.
    pub(super) fn limits(&self) -> Limits {
        self.limits
    }

    /// How many bytes its events and its current level take.
    pub(super) fn bytes(&self) -> usize {
        self.events.bytes() + self.level.bytes()
    }

    /// Limits the time spent from now on, and the memory.
    pub(super) fn spend_at_most(&mut self, time: Option<Duration>, memory: usize) {
        self.limits.memory = memory;
        let more = time.map(|time| self.spent + time);
        self.limits.time = self.limits.time.and_then(|all| Some(all.min(more?)));
    }

    /// Whether the search is complete.
    pub(super) fn is_over(&self) -> bool {
        self.over
    }

    /// Only the first violation is wanted.
    pub(super) fn end_with_violation(&mut self) {
        self.first_only = true;
    }

    /// Ends the search where it stands.
    pub(super) fn stop(&mut self) {
        self.over = true;
    }

    /// The levels that were passed, if they and the events are still here.
    pub(super) fn history(&self) -> Option<&History> {
        self.history.as_ref()
    }

    /// Searches as far as events have arrived; `in_order` if they arrive in the order in which
    /// they were observed.
    pub(super) fn advance(
        &mut self,
        meaning: &mut Meaning<'_>,
        in_order: bool,
    ) -> Result<(), TooManyStates> {
        let (start, before) = (Instant::now(), self.spent);
        let known = self.events.counts();
        if self.history.is_some() && self.known.last().is_none_or(|(_, counts)| *counts != known) {
            self.known.push((self.depth(), known.clone()));
        }
        let arrived = self.events.count();
        while !self.over {
            if self.events.is_complete() && self.depth() as u64 == arrived {
                self.over = true;
                self.found.runs = self.level.runs.get(0);
                break;
            }
            let waiting = arrived - self.depth() as u64;
            let ready = self.events.is_known_beyond(&self.expander.most);
            let forced = waiting > self.limits.lookahead as u64;
            let window = self.limits.window.filter(|_| in_order);
            if waiting == 0 || !(ready || forced || window.is_some()) {
                break;
            }
            let room = self.room();
            self.build(&known, room, meaning)?;
            let full = window.is_some_and(|window| self.next.len() > window);
            if !(ready || full || forced && self.next.len() > 0) {
                break;
            }
            self.leave(!ready && !full);
            self.spent = before + start.elapsed();
            self.enforce_limits(room, arrived);
        }
        self.spent = before + start.elapsed();
        Ok(())
    }

    /// Builds the next level from the given number of events of each column.
    fn build(
        &mut self,
        known: &[u32],
        room: usize,
        meaning: &mut Meaning<'_>,
    ) -> Result<(), TooManyStates> {
        self.level.make_room(known, !self.events.is_complete());
        let tables = &Shared::new(&mut self.tables, meaning);
        let ground = Ground { events: &self.events, known, tables, room };
        self.expander.expand(ground, &self.level, &mut self.next, &mut self.bad)
    }

    /// Goes on to the level that was built.
    fn leave(&mut self, early: bool) {
        self.events.begin();
        let depth = self.depth();
        let narrowed = match self.limits.window {
            Some(window) if self.next.len() > window => {
                self.narrowing.narrow(&mut self.next, window, &self.events);
                self.narrowing.most(&self.next, &mut self.expander.most);
                if self.found.violation.is_none() {
                    // Only runs inside the window are looked at: with a window of one, the
                    // observed run.
                    let (level, next) = (&self.level, &self.next);
                    self.bad.retain(|bad| leads_into(level, bad, next));
                }
                true
            }
            _ => false,
        };
        if self.found.violation.is_none() {
            if let Some(history) = &mut self.history {
                // Up to the first violation every level may be needed for the witness.
                history.keep(depth, &self.level);
            }
            let after = |bad: &Bad| {
                let mut counts = self.level.counts(bad.cut as usize);
                counts[bad.column as usize] += 1;
                counts
            };
            let nearer = |a: &&Bad, b: &&Bad| self.events.compare(&after(a), &after(b));
            self.found.violation = self.bad.iter().min_by(nearer).map(|bad| (depth, *bad));
        }
        if narrowed || early {
            self.cut_off(Outcome::Window, depth + 1);
        }
        self.found.cuts += self.next.len() as u64;
        self.found.levels += 1;
        self.found.widest = self.found.widest.max(self.next.len());
        let bytes = self.next.bytes() + self.expander.bytes();
        self.found.widest_bytes = self.found.widest_bytes.max(bytes);
        std::mem::swap(&mut self.level, &mut self.next);
        self.over = self.first_only && self.found.violation.is_some();
        if !self.events.is_complete() && self.events.bytes() > self.limits.kept_events {
            // A witness, if one is needed, takes another pass.
            self.history = None;
            self.known = Vec::new();
        }
        if self.history.is_none() {
            self.events.let_go(&self.expander.least);
        }
    }

    fn cut_off(&mut self, outcome: Outcome, level: usize) {
        self.found.outcome = outcome;
        self.found.first_cut_off.get_or_insert(level);
    }

    /// How many cuts the next level may have.
    fn room(&self) -> usize {
        let taken = self.level.bytes() + self.events.bytes();
        let each = (self.level.bytes() / self.level.len().max(1)).max(24) + 10;
        self.limits.memory.saturating_sub(taken) / each
    }

    fn enforce_limits(&mut self, room: usize, arrived: u64) {
        let outcome = match self.limits.time {
            _ if self.depth() as u64 == arrived && self.events.is_complete() => return,
            // Some events wait for others that are missing.
            _ if self.level.len() == 0 => Outcome::EventLimit,
            _ if self.found.cuts > self.limits.cuts => Outcome::StateLimit,
            _ if self.level.len() > room => Outcome::MemoryLimit,
            Some(limit) if self.spent > limit => Outcome::TimeLimit,
            _ => return,
        };
        self.over = true;
        self.cut_off(outcome, self.depth() + 1);
    }

    /// Whether some run of the events so far violates the property, as if the trace ended here.
    /// Searches for at most this long, and changes nothing.
    pub(super) fn foresees(
        &self,
        meaning: &mut Meaning<'_>,
        time: Duration,
    ) -> Result<bool, TooManyStates> {
        if self.found.violation.is_some() || self.over {
            return Ok(self.found.violation.is_some());
        }
        let mut expander = Expander::new(1);
        expander.least.clone_from(&self.expander.least);
        expander.most.clone_from(&self.expander.most);
        let mut ahead = Explorer {
            events: self.events.clone(),
            tables: self.tables.clone(),
            found: Searched {
                outcome: Outcome::Exhausted,
                first_cut_off: None,
                runs: None,
                violation: None,
                ..self.found
            },
            expander,
            level: self.level.clone(),
            next: Level::default(),
            bad: Vec::new(),
            narrowing: Narrowing::default(),
            limits: Limits { time: Some(time), ..self.limits },
            first_only: true,
            spent: Duration::ZERO,
            over: false,
            history: None,
            known: Vec::new(),
            tables_after_tidying: self.tables_after_tidying,
        };
        ahead.finish(meaning, true)?;
        Ok(ahead.found.violation.is_some())
    }

    /// Nothing more will arrive. Goes through the remaining levels.
    pub(super) fn finish(
        &mut self,
        meaning: &mut Meaning<'_>,
        in_order: bool,
    ) -> Result<(), TooManyStates> {
        self.events.end_all();
        self.advance(meaning, in_order)?;
        if self.events.has_gaps() && self.found.outcome == Outcome::Exhausted {
            self.cut_off(Outcome::EventLimit, self.depth() + 1);
        }
        if self.events.has_late_threads() && self.found.outcome == Outcome::Exhausted {
            self.cut_off(Outcome::Window, 1);
        }
        Ok(())
    }

    /// Drops states and values that nothing refers to any more, so that the memory of a long search
    /// depends on its levels and not on its length.
    pub(super) fn tidy(&mut self, writes: &mut Writes, projection: &Projection) {
        let tables = self.tables.len() + writes.len();
        if self.history.is_some() || tables < 2 * self.tables_after_tidying {
            return;
        }
        let (states, sets) = self.tables.retain(&self.level.states, &self.level.sets);
        self.level.states.iter_mut().for_each(|state| *state = states[state]);
        self.level.sets.iter_mut().for_each(|set| *set = sets[set]);
        let mut used = Vec::new();
        self.events.renumber(|write| {
            used.push(write);
            write
        });
        let numbers = writes.retain(&used, projection);
        self.events.renumber(|write| numbers[&write]);
        self.expander.forget();
        self.tables_after_tidying = (self.tables.len() + writes.len()).max(SMALL_TABLES);
    }

    /// The levels from the latest one kept up to `depth`, recomputed where they were not kept, from
    /// the same events that were known when they were left.
    pub(super) fn levels_up_to(
        &mut self,
        depth: usize,
        meaning: &mut Meaning<'_>,
    ) -> Result<Vec<Level>, TooManyStates> {
        let kept = self.history.as_ref().and_then(|history| history.at_or_before(depth));
        let (kept, level) = kept.expect("the first level is always kept");
        let mut levels = vec![level.clone()];
        for at in kept..depth {
            self.level = levels[levels.len() - 1].clone();
            let known = self.known.iter().rev().find(|(from, _)| *from <= at);
            let known = known.expect("a level is left only with events").1.clone();
            self.build(&known, usize::MAX, meaning)?;
            if let Some(window) = self.limits.window.filter(|&window| self.next.len() > window) {
                self.narrowing.narrow(&mut self.next, window, &self.events);
            }
            levels.push(std::mem::take(&mut self.next));
        }
        Ok(levels)
    }
}

/// Whether the cut after a step is in the next level.
fn leads_into(level: &Level, bad: &Bad, next: &Level) -> bool {
    let mut counts = level.counts(bad.cut as usize);
    counts[bad.column as usize] += 1;
    let mut cut = Vec::new();
    next.packing.pack(&counts, &mut cut);
    next.cuts.chunks_exact(cut.len()).any(|kept| *kept == cut)
}
