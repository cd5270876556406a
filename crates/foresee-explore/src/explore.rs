//! The loop: search what the facts allow, run the program where a fact is missing, learn, until nothing is missing.
//!
//! The hunt comes first: detours are counted, and there is a run after every few thousand states. If it does not end, a search
//! with persistent sets follows, which has fewer states and cannot count.

use std::time::{Duration, Instant};

use crate::map::HashSet;

use crate::facts::{Facts, MONITORS};
use crate::journal::Journal;
use crate::learn::{Lesson, learn};
use crate::model::{MIXED, Missing, Mode, Move, State, Status};
use crate::monitor::{self, Monitor};
use crate::outcome::{Covered, Explored, Finding, Stopped, Trouble};
use crate::pairs::Pairs;
use crate::program::{Ending, Execution, Place, Program, RunError, Schedule, Tail, ThreadName};
use crate::reduce::Reducer;
use crate::search::{Search, Way, is_known, schedule};

/// What is done about loops that wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spin {
    /// A thread that did the same one to four operations twice, and was told the same, is where it was.
    Collapse,
    /// Such a loop is followed for this number of rounds.
    Bound(u32),
}

/// How far to go.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The largest number of runs.
    pub runs: Option<u32>,
    /// At most so much time.
    pub time: Option<Duration>,
    /// The largest number of states in one search.
    pub states: usize,
    /// The largest number of bytes for the states of a search.
    pub memory: usize,
    /// The largest number of detours in a schedule.
    pub detours: Option<u32>,
    /// What is done about loops that wait.
    pub spin: Spin,
    /// Whether to end at the first finding.
    pub stops_at_first: bool,
    /// How often the first run is repeated, to notice hidden inputs.
    pub repeats: u32,
    /// States between two runs of the hunt.
    pub effort: usize,
    /// States of the hunt before persistent sets are tried.
    pub hunt: usize,
    /// Whether persistent sets are used.
    pub reduces: bool,
    /// The most operations of one run.
    pub most_operations: usize,
    /// Where chance begins.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            runs: None,
            time: None,
            states: usize::MAX,
            memory: 1 << 30,
            detours: None,
            spin: Spin::Bound(8),
            stops_at_first: true,
            repeats: 3,
            effort: 2_000,
            hunt: 200_000,
            reduces: true,
            most_operations: 100_000,
            seed: 1,
        }
    }
}

/// How far an exploration is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Runs so far.
    pub runs: u32,
    /// Facts so far.
    pub facts: u64,
    /// States of this search.
    pub states: usize,
    /// Findings so far.
    pub findings: usize,
    /// Detours up to which every schedule was covered.
    pub detours: Option<u32>,
}

/// The number of runs that may miss a target before it is given up.
const MOST_TRIES: u32 = 2;
/// The number of contradictions that show that a program is no function of its trace: more runs show nothing.
const MOST_DOUBTS: usize = 8;
/// States between two looks at the clock.
const SLICE: usize = 20_000;

/// Explores a program.
///
/// # Errors
/// If it cannot be run, or the journal cannot be written.
pub fn explore(
    runners: &mut [Box<dyn Program>],
    settings: &Settings,
    monitor: Option<Box<dyn Monitor>>,
    journal: Option<Journal>,
    progress: &mut dyn FnMut(&Progress) -> bool,
) -> Result<Explored, RunError> {
    let mut explorer = Explorer {
        settings,
        runners,
        monitor,
        journal,
        progress,
        begun: Instant::now(),
        facts: Facts::new(),
        pairs: Pairs::default(),
        seen: HashSet::default(),
        hunted: None,
        out: Explored {
            unseen: None,
            runs: 0,
            states: 0,
            facts: 0,
            findings: Vec::new(),
            covered: Covered::Nothing,
            open: 0,
            unreached: Vec::new(),
            doubts: Vec::new(),
            undecided: Vec::new(),
            has_cut: false,
            has_collapsed: false,
            cut_runs: 0,
            stopped: Stopped::Done,
        },
    };
    explorer.all()?;
    Ok(explorer.finish())
}

/// What makes two failures the same: the place, where each thread waits, the kind, and which of that kind.
type Identity = (Place, Vec<(ThreadName, Place)>, u8, usize);

struct Explorer<'a> {
    settings: &'a Settings,
    runners: &'a mut [Box<dyn Program>],
    monitor: Option<Box<dyn Monitor>>,
    journal: Option<Journal>,
    progress: &'a mut dyn FnMut(&Progress) -> bool,
    begun: Instant,
    facts: Facts,
    pairs: Pairs,
    /// What was found, so that each is reported once.
    seen: HashSet<Identity>,
    /// Detours up to which the hunt covered every schedule.
    hunted: Option<u32>,
    out: Explored,
}

/// Whether to go on.
type Flow = Result<bool, RunError>;

/// How a search ended.
enum End {
    /// Nothing is left.
    Done,
    /// There are too many states.
    Full,
    /// The exploration ends.
    Stop,
}

impl Explorer<'_> {
    fn all(&mut self) -> Result<(), RunError> {
        let (runs, unseen) = self.journal.as_mut().map(Journal::take).unwrap_or_default();
        self.out.unseen = unseen;
        for execution in runs {
            self.learn(&execution);
        }
        if self.is_over() {
            return Ok(());
        }
        let first = vec![(Vec::new(), Tail::Straight); self.settings.repeats as usize + 1];
        for chunk in first.chunks(self.runners.len().max(1)) {
            self.run(chunk)?;
        }
        if self.is_over() {
            return Ok(());
        }
        let way = Way {
            counts: true,
            most_detours: self.settings.detours,
            mode: match self.settings.spin {
                Spin::Collapse => Mode::Collapsing,
                Spin::Bound(_) => Mode::Searching,
            },
            most_rounds: match self.settings.spin {
                Spin::Collapse => u32::MAX,
                Spin::Bound(rounds) => rounds,
            },
        };
        // Persistent sets need histories that only grow, and cannot count detours.
        let can_reduce =
            self.settings.reduces && way.mode == Mode::Searching && self.settings.detours.is_none();
        let first = if can_reduce { self.settings.hunt } else { self.settings.states };
        let mut hunt = self.search(way, false);
        if let End::Full = self.pursue(&mut hunt, first.min(self.settings.states))? {
            if !can_reduce {
                self.out.stopped = Stopped::States;
                return Ok(());
            }
            drop(hunt);
            let proof = Way { counts: false, ..way };
            loop {
                let known = (self.facts.known, self.epoch());
                let mut search = self.search(proof, true);
                match self.pursue(&mut search, self.settings.states)? {
                    End::Done if (self.facts.known, self.epoch()) == known => return Ok(()),
                    End::Done => {}
                    End::Full => break,
                    End::Stop => return Ok(()),
                }
            }
            let mut hunt = self.search(way, false);
            if let End::Full = self.pursue(&mut hunt, self.settings.states)? {
                self.out.stopped = Stopped::States;
            }
        }
        Ok(())
    }

    fn search(&mut self, way: Way, reduces: bool) -> Search {
        let reducer = reduces.then(|| {
            let watched: Vec<bool> = match &self.monitor {
                Some(monitor) => (0..self.facts.nodes.len() as u32)
                    .map(|node| {
                        self.facts.action(node).is_some_and(|action| monitor.sees(&action.0))
                    })
                    .collect(),
                None => Vec::new(),
            };
            let is_watched = self.monitor.is_some();
            Reducer::new(
                &self.facts,
                Box::new(move |node| watched.get(node as usize).copied().unwrap_or(is_watched)),
            )
        });
        Search::new(&self.facts, way, reducer, self.monitor.as_deref_mut())
    }

    /// What makes all states of a search void: slots that were split, histories that are two, properties that know more names.
    fn epoch(&self) -> (u32, u32, u32) {
        let names = self.monitor.as_ref().map_or(0, |monitor| monitor.epoch());
        (self.facts.memory.splits, self.facts.uncollapsed, names)
    }

    /// Searches and runs until nothing is left.
    fn pursue(&mut self, search: &mut Search, most_states: usize) -> Result<End, RunError> {
        let (way, reduces) = (search.way, !search.way.counts);
        let mut epoch = self.epoch();
        let mut given_up: HashSet<Missing> = HashSet::default();
        let mut effort = self.settings.effort;
        loop {
            if self.epoch() != epoch {
                epoch = self.epoch();
                *search = self.search(way, reduces);
                given_up.clear();
            }
            // The proof looks at everything before it runs anything: its order is no good for hunting.
            let slice = if way.counts { effort.min(SLICE) } else { SLICE };
            let done = search.work(&mut self.facts, self.monitor.as_deref_mut(), slice);
            effort = effort.saturating_sub(done);
            self.note(search);
            if !self.report_found(search)? || self.is_over() {
                return Ok(End::Stop);
            }
            if search.states() > most_states || search.bytes() > self.settings.memory {
                return Ok(End::Full);
            }
            if effort > 0 && !search.is_done() {
                continue;
            }
            let best = search.best(
                &mut self.facts,
                self.monitor.as_deref_mut(),
                &self.pairs,
                self.runners.len(),
                MOST_TRIES,
            );
            if best.is_empty() {
                if search.is_done() {
                    return Ok(End::Done);
                }
                effort = self.settings.effort;
                continue;
            }
            effort = self.settings.effort;
            if !self.try_out(search, &best, &mut given_up)? {
                return Ok(End::Stop);
            }
        }
    }

    /// Runs the program for missing facts, and learns from that.
    fn try_out(
        &mut self,
        search: &mut Search,
        best: &[Missing],
        given_up: &mut HashSet<Missing>,
    ) -> Flow {
        let mut targets = Vec::with_capacity(best.len());
        for (i, &missing) in best.iter().enumerate() {
            let number = self.out.runs + i as u32;
            let tail = match number % 2 {
                0 => Tail::Straight,
                _ => Tail::Random(self.settings.seed.wrapping_add(u64::from(number))),
            };
            targets.push((search.target(missing).unwrap_or_default(), tail));
        }
        let epoch = self.epoch();
        let reasons = self.run(&targets)?;
        if self.epoch() == epoch {
            search.learnt(&mut self.facts, self.monitor.as_deref_mut());
            for (&missing, why) in best.iter().zip(reasons) {
                let is_lost = search.waiting.get(&missing).is_some_and(|w| w.tries >= MOST_TRIES);
                if is_lost && !is_known(&self.facts, missing) && given_up.insert(missing) {
                    let why = why.unwrap_or_else(|| "the run took another way".to_owned());
                    self.out.unreached.push(why);
                }
            }
        }
        self.note(search);
        Ok(!self.is_over())
    }

    /// Runs the program along paths, and learns from the runs. Says why a run did not follow its path.
    fn run(&mut self, targets: &[(Vec<Move>, Tail)]) -> Result<Vec<Option<String>>, RunError> {
        let mode = match self.settings.spin {
            Spin::Collapse => Mode::Collapsing,
            Spin::Bound(_) => Mode::Searching,
        };
        let schedules: Vec<Schedule> = targets
            .iter()
            .map(|(path, tail)| {
                schedule(&mut self.facts, mode, path, *tail, self.settings.most_operations).0
            })
            .collect();
        let mut reasons = Vec::new();
        for chunk in schedules.chunks(self.runners.len().max(1)) {
            for execution in run_all(self.runners, chunk) {
                let execution = execution?;
                // First, because what is kept of a run must not be without it.
                self.note_unseen()?;
                if let Some(journal) = &mut self.journal {
                    journal.append(&execution).map_err(|error| RunError(error.to_string()))?;
                }
                reasons.push(execution.diverged.as_ref().map(|diverged| diverged.1.clone()));
                self.learn(&execution);
            }
        }
        Ok(reasons)
    }

    /// Keeps that a part of the program is not captured: a later exploration may need no run that shows it.
    fn note_unseen(&mut self) -> Result<(), RunError> {
        if self.out.unseen.is_none()
            && let Some(unseen) = self.runners.iter().find_map(|runner| runner.unseen())
        {
            if let Some(journal) = &mut self.journal {
                journal.append_unseen(&unseen).map_err(|error| RunError(error.to_string()))?;
            }
            self.out.unseen = Some(unseen);
        }
        Ok(())
    }

    fn learn(&mut self, execution: &Execution) {
        self.out.runs += 1;
        let run = self.out.runs;
        let lesson = learn(&mut self.facts, &mut self.pairs, execution, run);
        self.judge(execution, &lesson, run);
        if let Some(doubt) = lesson.doubt
            && !self.out.doubts.contains(&doubt)
        {
            self.out.doubts.push(doubt);
        }
        if execution.ending == Ending::Cut && execution.diverged.is_none() {
            self.out.cut_runs += 1;
        }
    }

    /// Looks whether a run went wrong.
    fn judge(&mut self, execution: &Execution, lesson: &Lesson, run: u32) {
        let last = execution.events.last();
        let Some(trouble) = Trouble::of(execution) else {
            self.judge_properties(execution, lesson, run);
            return;
        };
        let thread = last.and_then(|event| execution.threads.get(event.thread as usize).cloned());
        let place = match &trouble {
            Trouble::Deadlock(all) => all.first().map_or(Place(0), |first| first.2),
            _ => last.map_or(Place(0), |event| event.place),
        };
        self.found(trouble, thread.unwrap_or_default(), place, run, execution, lesson);
        self.judge_properties(execution, lesson, run);
    }

    /// The properties along the way of one run.
    fn judge_properties(&mut self, execution: &Execution, lesson: &Lesson, run: u32) {
        let Some(mut monitor) = self.monitor.take() else { return };
        let mut violated: Vec<(usize, ThreadName, Place)> = Vec::new();
        let (mut state, mut broken) = (State::start(&self.facts), Vec::new());
        let start = monitor.start(&mut broken);
        state.set(MONITORS, start);
        violated
            .extend(broken.drain(..).map(|property| (property, ThreadName::default(), Place(0))));
        for &step in &lesson.path {
            let Some((node, act)) = state.act(&self.facts, u32::from(step.thread)) else { break };
            let Ok(told) = state.take(&mut self.facts, step, Mode::Learning) else { break };
            let next =
                monitor::step(&mut *monitor, &mut self.facts, &state, node, act, told, &mut broken);
            state.set(MONITORS, next);
            for property in broken.drain(..) {
                let thread = self.facts.threads[usize::from(step.thread)].name.clone();
                violated.push((property, thread, self.facts.place(node)));
            }
        }
        self.monitor = Some(monitor);
        for (property, thread, place) in violated {
            self.found(Trouble::Violated(property), thread, place, run, execution, lesson);
        }
    }

    fn found(
        &mut self,
        trouble: Trouble,
        thread: ThreadName,
        place: Place,
        run: u32,
        execution: &Execution,
        lesson: &Lesson,
    ) {
        let (waiting, kind, which) = match &trouble {
            Trouble::Deadlock(all) => {
                let mut all: Vec<_> = all.iter().map(|one| (one.0.clone(), one.2)).collect();
                all.sort();
                (all, 1, 0)
            }
            Trouble::Failed(_) => (Vec::new(), 2, 0),
            Trouble::Exited(_) => (Vec::new(), 3, 0),
            Trouble::Hung => (Vec::new(), 4, 0),
            Trouble::Violated(property) => (Vec::new(), 5, *property),
        };
        let place_of = if kind == 5 { Place(0) } else { place };
        if !self.seen.insert((place_of, waiting, kind, which)) {
            return;
        }
        let (mut schedule, detours) = schedule(
            &mut self.facts,
            Mode::Learning,
            &lesson.path,
            Tail::Straight,
            self.settings.most_operations,
        );
        // The steps as the run took them, with the last one, at which it failed.
        let ids: Vec<u32> = execution.threads.iter().map(|name| self.facts.thread(name)).collect();
        for event in execution.events.iter().skip(schedule.steps.len()) {
            let thread = ids.get(event.thread as usize).copied().unwrap_or(0);
            schedule.steps.push(crate::program::Step { thread, choice: event.choice });
        }
        self.out.findings.push(Finding { trouble, thread, place, run, detours, schedule });
    }

    /// Deadlocks and violations of the model become findings by a run.
    fn report_found(&mut self, search: &mut Search) -> Flow {
        let deadlocks = std::mem::take(&mut search.deadlocks);
        let violated = std::mem::take(&mut search.violated);
        for (from, step) in std::mem::take(&mut search.failing) {
            let mut path = search.path(from);
            path.push(step);
            if !self.report_failure(path)? {
                return Ok(false);
            }
        }
        let mut paths: Vec<(Vec<Move>, Option<usize>)> =
            deadlocks.iter().map(|&index| (search.path(index), None)).collect();
        let mut tried = HashSet::default();
        for violation in violated {
            let is_known =
                |finding: &Finding| finding.trouble == Trouble::Violated(violation.property);
            if self.out.findings.iter().any(is_known) || !tried.insert(violation.property) {
                continue;
            }
            let mut path = search.path(violation.from);
            path.push(violation.step);
            paths.push((path, Some(violation.property)));
        }
        for (path, property) in paths {
            let is_found = |all: &[Finding], number: usize| {
                property.map_or(all.len() > number, |property| {
                    all.iter().any(|finding| finding.trouble == Trouble::Violated(property))
                })
            };
            let before = self.out.findings.len();
            // A run for another finding may have shown it.
            let is_known = match property {
                None => !self.is_new_deadlock(&path),
                Some(_) => is_found(&self.out.findings, before),
            };
            if is_known {
                continue;
            }
            let reasons = self.run(&[(path, Tail::Straight)])?;
            if !is_found(&self.out.findings, before) {
                let why = reasons.into_iter().flatten().next();
                let what = if property.is_some() { "violation" } else { "deadlock" };
                self.out.unreached.push(format!(
                    "a predicted {what} did not happen: {}",
                    why.unwrap_or_else(|| "the run took another way".to_owned())
                ));
            }
            if self.is_over() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A thread about to fail is a finding once a run shows it; most runs for facts show it already.
    fn report_failure(&mut self, path: Vec<Move>) -> Flow {
        let mut state = State::start(&self.facts);
        let Some(&last) = path.last() else { return Ok(true) };
        for &step in &path[..path.len() - 1] {
            let _ = state.take(&mut self.facts, step, Mode::Learning);
        }
        let Some((node, _)) = state.act(&self.facts, u32::from(last.thread)) else {
            return Ok(true);
        };
        let place = self.facts.place(node);
        let is_seen = self.seen.iter().any(|seen| matches!(seen.2, 2 | 3) && seen.0 == place);
        if !is_seen {
            let before = self.out.findings.len();
            let reasons = self.run(&[(path, Tail::Straight)])?;
            if self.out.findings.len() == before {
                let why = reasons.into_iter().flatten().next();
                let why = why.unwrap_or_else(|| "the run took another way".to_owned());
                self.out.unreached.push(format!("a predicted failure did not happen: {why}"));
            }
        }
        Ok(!self.is_over())
    }

    /// Whether no deadlock with these threads at these places was found yet.
    fn is_new_deadlock(&mut self, path: &[Move]) -> bool {
        let mut state = State::start(&self.facts);
        for &step in path {
            let _ = state.take(&mut self.facts, step, Mode::Learning);
        }
        let mut all: Vec<(ThreadName, Place)> = Vec::new();
        for thread in 0..self.facts.threads.len() as u32 {
            if let Status::At(node) = state.status(&self.facts, thread) {
                let name = self.facts.threads[thread as usize].name.clone();
                all.push((name, self.facts.place(node)));
            }
        }
        all.sort();
        !self.seen.iter().any(|seen| seen.2 == 1 && seen.1 == all)
    }

    /// Whether the exploration ends here.
    fn is_over(&mut self) -> bool {
        let settings = self.settings;
        let stopped = if settings.stops_at_first && !self.out.findings.is_empty() {
            Stopped::Found
        } else if settings.runs.is_some_and(|most| self.out.runs >= most) {
            Stopped::Runs
        } else if settings.time.is_some_and(|most| self.begun.elapsed() >= most) {
            Stopped::Time
        } else if self.out.doubts.len() >= MOST_DOUBTS {
            Stopped::Doubts
        } else if self.out.stopped == Stopped::Interrupted {
            Stopped::Interrupted
        } else {
            return false;
        };
        self.out.stopped = stopped;
        true
    }

    /// Notes how far a search is.
    fn note(&mut self, search: &Search) {
        self.out.states = self.out.states.max(search.states());
        self.out.open = search.waiting.keys().filter(|missing| missing.told != MIXED).count();
        self.out.has_cut = search.cut.is_some();
        let least = search.least_uncovered();
        let is_done = search.is_done() && search.waiting.is_empty();
        self.out.covered = match least {
            None if is_done => Covered::Everything,
            Some(least) if search.way.counts => {
                self.hunted = self.hunted.max(least.checked_sub(1));
                self.hunted.map_or(Covered::Nothing, Covered::Detours)
            }
            _ => self.hunted.map_or(Covered::Nothing, Covered::Detours),
        };
        let progress = Progress {
            runs: self.out.runs,
            facts: self.facts.known,
            states: search.states(),
            findings: self.out.findings.len(),
            detours: self.hunted,
        };
        if !(self.progress)(&progress) {
            self.out.stopped = Stopped::Interrupted;
        }
    }

    fn finish(mut self) -> Explored {
        self.out.facts = self.facts.known;
        self.out.has_collapsed = self.facts.has_collapsed;
        self.out.undecided =
            self.monitor.as_ref().map_or_else(Vec::new, |monitor| monitor.undecided());
        self.out
    }
}

/// Runs schedules at the same time, one on each runner.
fn run_all(
    runners: &mut [Box<dyn Program>],
    schedules: &[Schedule],
) -> Vec<Result<Execution, RunError>> {
    match (runners, schedules) {
        ([runner, ..], [schedule]) => vec![runner.run(schedule)],
        (runners, schedules) => std::thread::scope(|scope| {
            let threads: Vec<_> = runners
                .iter_mut()
                .zip(schedules)
                .map(|(runner, schedule)| scope.spawn(move || runner.run(schedule)))
                .collect();
            let ended = || Err(RunError("a runner ended early".to_owned()));
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| ended())).collect()
        }),
    }
}
