//! Small concurrent programs, correct and faulty, that can be run in any schedule.
//!
//! FACTS was evaluated with them (Soueidi and Falcone, 2023): the bakery lock, and producers and
//! consumers with a buffer. An event before and after each access of shared data (`bw` and `aw` for
//! a write, `br` and `ar` for a read) lets a monitor check whether it happens while another thread
//! writes: [`EXCLUSION`].

use std::fmt::Write as _;

use fastrand::Rng;
use foresee_trace::Trace;

use crate::notation::std_trace;

/// No access happens while another thread writes.
pub const EXCLUSION: &str = "automaton exclusion { initial idle; idle: event(bw) -> writing; \
     writing: event(aw) -> idle, event(bw) -> bad, event(br) -> bad, event(ar) -> bad; }";

/// The programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// Threads that take turns with Lamport's bakery lock, which uses only reads and writes.
    Bakery,
    /// Producers and consumers of a buffer with room for one item, under a mutex.
    ProducersConsumers,
}

/// One run in a random schedule. In a `faulty` program the first thread takes no lock. If the notes
/// are `late`, an action and its note are two steps, as in [`crate::asynchronous`].
///
/// # Panics
/// If the simulator does something impossible.
pub fn run(program: Program, faulty: bool, late: bool, seed: u64) -> Trace {
    let mut rng = Rng::with_seed(seed);
    let threads = 3;
    let mut machine = Machine::default();
    if late {
        machine.text.push_str("# foresee: order=notes\n");
    }
    let mut states: Vec<State> =
        (0..threads).map(|t| State::new(t, threads, faulty && t == 0)).collect();
    let mut bursts = 0;
    let mut t = 0;
    if program == Program::ProducersConsumers {
        // What the faulty producer adds is not counted.
        states[threads - 1].rounds = if faulty { 2 } else { 4 };
    }
    while states.iter().any(|state| !state.is_over()) {
        // Threads run for a while, as on real machines; sometimes only for one step.
        if bursts == 0 || states[t].is_over() {
            t = rng.usize(..threads);
            bursts = rng.usize(1..6);
            continue;
        }
        bursts -= 1;
        let state = &mut states[t];
        match state.pending.take() {
            Some(Pending::Note(text)) => machine.text.push_str(&text),
            Some(Pending::Write(variable, value)) => machine.set(&variable, value),
            Some(Pending::Release) => machine.owner = None,
            None => {
                machine.late = late;
                match program {
                    Program::Bakery => state.bakery(&mut machine),
                    Program::ProducersConsumers => state.buffer(&mut machine),
                }
            }
        }
        if states[t].is_blocked {
            bursts = 0;
        }
    }
    let trace = std_trace(&machine.text, true);
    trace.unwrap_or_else(|error| panic!("{error}\n{}", machine.text))
}

/// What the threads share.
#[derive(Default)]
struct Machine {
    variables: Vec<(String, i64)>,
    owner: Option<usize>,
    late: bool,
    text: String,
}

impl Machine {
    fn get(&self, variable: &str) -> i64 {
        self.variables.iter().find(|(name, _)| name == variable).map_or(0, |(_, value)| *value)
    }

    fn set(&mut self, variable: &str, value: i64) {
        match self.variables.iter_mut().find(|(name, _)| name == variable) {
            Some((_, old)) => *old = value,
            None => self.variables.push((variable.to_owned(), value)),
        }
    }
}

/// The second half of a step.
enum Pending {
    Note(String),
    Write(String, i64),
    Release,
}

/// The state of a thread.
struct State {
    me: usize,
    threads: usize,
    is_faulty: bool,
    at: u32,
    other: usize,
    ticket: i64,
    rounds: u32,
    is_done: bool,
    is_blocked: bool,
    pending: Option<Pending>,
}

impl State {
    fn new(me: usize, threads: usize, is_faulty: bool) -> State {
        State {
            me,
            threads,
            is_faulty,
            at: 0,
            other: 0,
            ticket: 0,
            rounds: 2,
            is_done: false,
            is_blocked: false,
            pending: None,
        }
    }

    fn is_over(&self) -> bool {
        self.is_done && self.pending.is_none()
    }

    fn line(&self, what: &str) -> String {
        let mut line = String::new();
        let _ = writeln!(line, "T{}|{what}|main.c:{}", self.me, 10 + self.at);
        line
    }

    fn event(&self, machine: &mut Machine, name: &str) {
        machine.text += &self.line(&format!("event({name})"));
    }

    /// A read or a write that is noted in the same step.
    fn atomic_read(&self, machine: &mut Machine, variable: &str) -> i64 {
        let value = machine.get(variable);
        machine.text += &self.line(&format!("vr({variable})={value}"));
        value
    }

    fn atomic_write(&self, machine: &mut Machine, variable: &str, value: i64) {
        machine.set(variable, value);
        machine.text += &self.line(&format!("vw({variable})={value}"));
    }

    fn read(&mut self, machine: &mut Machine, variable: &str) -> i64 {
        let value = machine.get(variable);
        let line = self.line(&format!("r({variable})={value}"));
        match machine.late {
            true => self.pending = Some(Pending::Note(line)),
            false => machine.text += &line,
        }
        value
    }

    fn write(&mut self, machine: &mut Machine, variable: &str, value: i64) {
        machine.text += &self.line(&format!("w({variable})={value}"));
        match machine.late {
            true => self.pending = Some(Pending::Write(variable.to_owned(), value)),
            false => machine.set(variable, value),
        }
    }

    /// Acquires the mutex; returns whether it was free.
    fn acquire(&mut self, machine: &mut Machine) -> bool {
        self.is_blocked = machine.owner.is_some();
        if self.is_blocked {
            return false;
        }
        machine.owner = Some(self.me);
        let line = self.line("acq(m)");
        match machine.late {
            true => self.pending = Some(Pending::Note(line)),
            false => machine.text += &line,
        }
        true
    }

    fn release(&mut self, machine: &mut Machine) {
        machine.text += &self.line("rel(m)");
        match machine.late {
            true => self.pending = Some(Pending::Release),
            false => machine.owner = None,
        }
    }

    fn next_round(&mut self) {
        self.rounds -= 1;
        self.is_done = self.rounds == 0;
        self.at = 0;
    }

    fn bakery(&mut self, machine: &mut Machine) {
        let (choosing, number) =
            (|t: usize| format!("choosing[{t}]"), |t: usize| format!("number[{t}]"));
        self.is_blocked = false;
        if self.at == 0 && self.is_faulty {
            self.at = 6;
        }
        if self.at == 4 && self.other == self.me {
            self.other += 1;
        }
        if self.at == 4 && self.other == self.threads {
            self.at = 6;
        }
        match self.at {
            0 => {
                self.atomic_write(machine, &choosing(self.me), 1);
                (self.at, self.other, self.ticket) = (1, 0, 0);
            }
            1 => {
                let taken = self.atomic_read(machine, &number(self.other));
                self.ticket = self.ticket.max(taken);
                self.other += 1;
                self.at = if self.other == self.threads { 2 } else { 1 };
            }
            2 => {
                self.ticket += 1;
                self.atomic_write(machine, &number(self.me), self.ticket);
                self.at = 3;
            }
            3 => {
                self.atomic_write(machine, &choosing(self.me), 0);
                (self.at, self.other) = (4, 0);
            }
            4 => {
                self.is_blocked = self.atomic_read(machine, &choosing(self.other)) != 0;
                self.at = if self.is_blocked { 4 } else { 5 };
            }
            5 => {
                let ticket = self.atomic_read(machine, &number(self.other));
                self.is_blocked = ticket != 0 && (ticket, self.other) < (self.ticket, self.me);
                if !self.is_blocked {
                    (self.at, self.other) = (4, self.other + 1);
                }
            }
            6 => {
                self.event(machine, "bw");
                self.at = 7;
            }
            7 => {
                self.write(machine, "account", 10 * self.me as i64 + i64::from(self.rounds));
                self.at = 8;
            }
            8 => {
                self.event(machine, "aw");
                self.at = 9;
                if self.is_faulty {
                    self.next_round();
                }
            }
            _ => {
                self.atomic_write(machine, &number(self.me), 0);
                self.next_round();
            }
        }
    }

    /// The first two threads produce; the last consumes what one of them has added.
    fn buffer(&mut self, machine: &mut Machine) {
        let is_consumer = self.me + 1 == self.threads;
        self.is_blocked = false;
        if self.at == 0 && self.is_faulty {
            self.at = 2;
        }
        match self.at {
            0 => {
                if self.acquire(machine) {
                    self.at = 1;
                }
            }
            1 => {
                let count = self.read(machine, "count");
                // The buffer is not in the required state: release the lock and try again.
                self.at = if (count > 0) == is_consumer { 2 } else { 6 };
            }
            2 => {
                self.event(machine, if is_consumer { "br" } else { "bw" });
                self.at = 3;
            }
            3 => {
                match is_consumer {
                    true => {
                        self.read(machine, "slot");
                    }
                    false => {
                        let item = 10 * self.me as i64 + i64::from(self.rounds);
                        self.write(machine, "slot", item);
                    }
                }
                self.at = 4;
            }
            4 => {
                self.event(machine, if is_consumer { "ar" } else { "aw" });
                self.at = 5;
                if self.is_faulty {
                    self.next_round();
                }
            }
            5 => {
                self.write(machine, "count", i64::from(!is_consumer));
                self.at = 7;
            }
            6 => {
                self.release(machine);
                (self.at, self.is_blocked) = (0, true);
            }
            _ => {
                self.release(machine);
                self.next_round();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_end_in_every_schedule() {
        for seed in 0..200 {
            for program in [Program::Bakery, Program::ProducersConsumers] {
                for (faulty, late) in [(false, false), (true, false), (false, true), (true, true)] {
                    let trace = run(program, faulty, late, seed);
                    let has = |name: &str| trace.names.syms.lookup(name).is_some();
                    assert!(has("bw") && has("aw"), "{program:?} {seed}\n{trace}");
                }
            }
        }
    }
}
