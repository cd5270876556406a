//! Executions that are recorded without being stopped: an action and its note are two steps, with
//! anything in between.
//!
//! The simulator runs small random programs and knows both the notes and the true order of the
//! actions: program order, forks and joins, writes before the reads that saw them, and releases
//! before later acquires.

use std::fmt::Write as _;

use fastrand::Rng;
use foresee_trace::Trace;

use crate::notation::std_trace;
use crate::oracle::Order;

/// A simulated execution.
#[derive(Clone, Debug)]
pub struct Execution {
    /// The events in the order of their notes.
    pub trace: Trace,
    /// The true order of the actions.
    pub order: Order,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Statement {
    Read(usize),
    Write(usize, i64),
    VolatileRead(usize),
    VolatileWrite(usize, i64),
    Rmw(usize, i64),
    Acquire(usize, bool),
    Release(usize, bool),
    Fork(usize),
    Join(usize),
    Mark(usize),
}

/// How an action is related to its note.
#[derive(PartialEq)]
enum Noted {
    Before,
    After,
    AtOnce,
}

impl Statement {
    fn noted(self) -> Noted {
        match self {
            Statement::Write(..) | Statement::Release(..) | Statement::Fork(_) => Noted::Before,
            Statement::Read(_) | Statement::Acquire(..) | Statement::Join(_) => Noted::After,
            _ => Noted::AtOnce,
        }
    }
}

/// A statement: the number of its thread, and its own.
type Place = (usize, usize);

#[derive(Default)]
struct Lock {
    alone: Option<usize>,
    sharing: Vec<usize>,
    /// All releases so far, and whether each was shared.
    releases: Vec<(Place, bool)>,
}

struct Simulation {
    program: Vec<Vec<Statement>>,
    is_synchronous: bool,
    /// For each thread the next statement, and whether half of it is done.
    at: Vec<(usize, bool)>,
    is_running: Vec<bool>,
    forks: Vec<Option<Place>>,
    values: Vec<i64>,
    writers: Vec<Option<Place>>,
    locks: Vec<Lock>,
    seen: Vec<Vec<i64>>,
    edges: Vec<(Place, Place)>,
    notes: Vec<Place>,
    text: String,
}

/// The first of the variables that only atomic operations access.
const ATOMICS: usize = 2;
const VARIABLES: usize = 4;

/// A random execution. The order of its trace is that of its notes, unless it is `synchronous`:
/// then each action is noted in the same step.
///
/// # Panics
/// If the simulator writes notes that no execution can have.
pub fn execution(seed: u64, synchronous: bool) -> Execution {
    let mut rng = Rng::with_seed(seed);
    let initial: Vec<i64> = (0..VARIABLES).map(|_| rng.i64(0..3)).collect();
    let program = program(&mut rng);
    let threads = program.len();
    let forked = |t: usize| program.iter().flatten().any(|s| *s == Statement::Fork(t));
    let mut simulation = Simulation {
        is_synchronous: synchronous,
        at: vec![(0, false); threads],
        is_running: (0..threads).map(|t| !forked(t)).collect(),
        forks: vec![None; threads],
        values: initial.clone(),
        writers: vec![None; VARIABLES],
        locks: (0..2).map(|_| Lock::default()).collect(),
        seen: program.iter().map(|statements| vec![0; statements.len()]).collect(),
        edges: Vec::new(),
        notes: Vec::new(),
        text: String::new(),
        program,
    };
    if !synchronous {
        simulation.text.push_str("# foresee: order=notes\n");
    }
    let mut inits = 0;
    for (x, value) in initial.iter().enumerate() {
        // Values that are not declared are zero.
        if *value != 0 || rng.bool() {
            let _ = writeln!(simulation.text, "T0|init(x{x})={value}|");
            inits += 1;
        }
    }
    // Some executions are cut off.
    let mut left = if rng.u8(..4) == 0 { rng.usize(..30) } else { usize::MAX };
    loop {
        let able: Vec<usize> = (0..threads).filter(|&t| simulation.can_go_on(t)).collect();
        if able.is_empty() || left == 0 {
            break;
        }
        left -= 1;
        simulation.step(able[rng.usize(..able.len())]);
    }
    simulation.result(inits)
}

/// A few threads with a few statements each, critical sections among them.
fn program(rng: &mut Rng) -> Vec<Vec<Statement>> {
    let threads = rng.usize(2..5);
    let mut program: Vec<Vec<Statement>> = (0..threads)
        .map(|_| {
            let mut statements = Vec::new();
            let mut held: Vec<(usize, bool)> = Vec::new();
            for _ in 0..rng.usize(1..7) {
                let (x, value) = (rng.usize(..ATOMICS), rng.i64(1..3));
                // Occasionally, atomics access the same variables as plain accesses.
                let atomic = if rng.u8(..4) == 0 { x } else { ATOMICS + x };
                statements.push(match rng.u8(..12) {
                    0..=2 => Statement::Read(x),
                    3..=5 => Statement::Write(x, value),
                    6 => Statement::VolatileRead(atomic),
                    7 => Statement::VolatileWrite(atomic, value),
                    8 => Statement::Rmw(atomic, value),
                    9 => Statement::Mark(rng.usize(..3)),
                    10 if held.len() < 2 => {
                        let lock = held.first().map_or(rng.usize(..2), |(l, _)| 1 - l);
                        held.push((lock, rng.u8(..3) == 0));
                        Statement::Acquire(lock, held[held.len() - 1].1)
                    }
                    _ => match held.pop() {
                        Some((lock, shared)) => Statement::Release(lock, shared),
                        None => Statement::Mark(rng.usize(..3)),
                    },
                });
            }
            let open = held.into_iter().rev();
            statements.extend(open.map(|(lock, shared)| Statement::Release(lock, shared)));
            statements
        })
        .collect();
    for child in 1..threads {
        if rng.bool() {
            let parent = rng.usize(..child);
            let at = rng.usize(..=program[parent].len());
            program[parent].insert(at, Statement::Fork(child));
            if rng.bool() {
                let later = rng.usize(at + 1..=program[parent].len());
                program[parent].insert(later, Statement::Join(child));
            }
        }
    }
    program
}

impl Simulation {
    fn can_go_on(&self, t: usize) -> bool {
        let (at, is_half_done) = self.at[t];
        let Some(&statement) = self.program[t].get(at) else { return false };
        let acts_now = is_half_done != (statement.noted() == Noted::After && !self.is_synchronous);
        self.is_running[t]
            && (self.can_act(t, statement)
                || !acts_now && statement.noted() == Noted::Before
                || is_half_done && statement.noted() == Noted::After)
    }

    fn can_act(&self, t: usize, statement: Statement) -> bool {
        match statement {
            Statement::Acquire(l, shared) => {
                let lock = &self.locks[l];
                let others_share = lock.sharing.iter().any(|&other| other != t);
                lock.alone.is_none() && (shared || !others_share)
            }
            Statement::Join(other) => self.at[other].0 == self.program[other].len(),
            _ => true,
        }
    }

    /// Performs half of the thread's next statement, or all of it.
    fn step(&mut self, t: usize) {
        let (at, is_half_done) = self.at[t];
        let statement = self.program[t][at];
        let noted = if self.is_synchronous { Noted::AtOnce } else { statement.noted() };
        match (noted, is_half_done) {
            (Noted::AtOnce, _) => {
                self.act(t, at, statement);
                self.note(t, at, statement);
            }
            (Noted::Before, false) | (Noted::After, true) => self.note(t, at, statement),
            (Noted::Before, true) | (Noted::After, false) => self.act(t, at, statement),
        }
        let is_done = self.is_synchronous || statement.noted() == Noted::AtOnce || is_half_done;
        self.at[t] = if is_done { (at + 1, false) } else { (at, true) };
    }

    fn act(&mut self, t: usize, at: usize, statement: Statement) {
        let here = (t, at);
        match statement {
            Statement::Read(x) | Statement::VolatileRead(x) => self.read(here, x),
            Statement::Write(x, value) | Statement::VolatileWrite(x, value) => {
                (self.values[x], self.writers[x]) = (value, Some(here));
            }
            Statement::Rmw(x, value) => {
                self.read(here, x);
                (self.values[x], self.writers[x]) = (value, Some(here));
            }
            Statement::Acquire(l, shared) => {
                let lock = &mut self.locks[l];
                let before = lock.releases.iter().filter(|r| !(shared && r.1));
                self.edges.extend(before.map(|r| (r.0, here)));
                match shared {
                    true => lock.sharing.push(t),
                    false => lock.alone = Some(t),
                }
            }
            Statement::Release(l, shared) => {
                let lock = &mut self.locks[l];
                lock.releases.push((here, shared));
                match shared {
                    true => lock.sharing.retain(|&other| other != t),
                    false => lock.alone = None,
                }
            }
            Statement::Fork(child) => {
                self.is_running[child] = true;
                self.forks[child] = Some(here);
                self.edges.push((here, (child, 0)));
            }
            Statement::Join(child) => {
                self.edges.extend(self.forks[child].map(|fork| (fork, here)));
                let last = self.program[child].len().checked_sub(1);
                self.edges.extend(last.map(|last| ((child, last), here)));
            }
            Statement::Mark(_) => {}
        }
    }

    fn read(&mut self, here: Place, x: usize) {
        self.seen[here.0][here.1] = self.values[x];
        self.edges.extend(self.writers[x].map(|writer| (writer, here)));
    }

    fn note(&mut self, t: usize, at: usize, statement: Statement) {
        let seen = self.seen[t][at];
        let what = match statement {
            Statement::Read(x) => format!("r(x{x})={seen}"),
            Statement::Write(x, value) => format!("w(x{x})={value}"),
            Statement::VolatileRead(x) => format!("vr(x{x})={seen}"),
            Statement::VolatileWrite(x, value) => format!("vw(x{x})={value}"),
            Statement::Rmw(x, value) => format!("rmw(x{x})={seen}->{value}"),
            Statement::Acquire(l, shared) => {
                format!("{}(l{l})", if shared { "racq" } else { "acq" })
            }
            Statement::Release(l, shared) => {
                format!("{}(l{l})", if shared { "rrel" } else { "rel" })
            }
            Statement::Fork(child) => format!("fork(T{child})"),
            Statement::Join(child) => format!("join(T{child})"),
            Statement::Mark(name) => format!("event(e{name})"),
        };
        let _ = writeln!(self.text, "T{t}|{what}|p{t}.c:{at}");
        self.notes.push((t, at));
    }

    fn result(self, inits: usize) -> Execution {
        let trace = std_trace(&self.text, true);
        let trace = trace.unwrap_or_else(|error| panic!("{error}\n{}", self.text));
        let n = inits + self.notes.len();
        let order = Order::from_edges(n, |a, b| {
            if a < inits || b < inits {
                return a < inits && b >= inits;
            }
            let (a, b) = (self.notes[a - inits], self.notes[b - inits]);
            a.0 == b.0 && a.1 < b.1 || self.edges.contains(&(a, b))
        });
        Execution { trace, order }
    }
}
