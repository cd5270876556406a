//! Traces of programs that could deadlock and happened not to: locks nested in any order.
//!
//! A thread only ever takes what is free, so the imitated machine never gets stuck itself.

use fastrand::Rng;
use foresee_testkit::parse_trace;
use foresee_trace::Trace;

/// What the programs do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nested {
    pub(crate) threads: usize,
    pub(crate) locks: usize,
    pub(crate) variables: usize,
    pub(crate) depth: usize,
    /// In percent, as everything below.
    pub(crate) accesses: u8,
    pub(crate) rmws: u8,
    pub(crate) shared: u8,
    pub(crate) reentrant: u8,
    pub(crate) waits: u8,
    /// Of waits after a look at a flag, and of notifications after it is set, both under the lock.
    pub(crate) guarded: u8,
    pub(crate) forks: u8,
    /// Of locks that are tried for, which may fail.
    pub(crate) tries: u8,
    /// Of locks and threads that are asked for and never given.
    pub(crate) stuck: u8,
    /// Of threads that end, with whatever they have.
    pub(crate) ends: u8,
}

impl Nested {
    pub(crate) const PLAIN: Nested = Nested {
        threads: 3,
        locks: 3,
        variables: 3,
        depth: 2,
        accesses: 15,
        rmws: 0,
        shared: 0,
        reentrant: 0,
        waits: 0,
        guarded: 0,
        forks: 0,
        tries: 0,
        stuck: 0,
        ends: 0,
    };

    pub(crate) fn trace(&self, seed: u64, events: usize) -> Trace {
        let mut machine = Machine {
            kind: *self,
            rng: Rng::with_seed(seed),
            owners: vec![Vec::new(); self.locks],
            values: vec![0; self.variables],
            threads: vec![Thread::default(); self.threads],
            text: String::new(),
        };
        let forked = if self.forks > 0 { self.threads - 1 } else { 0 };
        for thread in machine.threads.iter_mut().rev().take(forked) {
            thread.is = Is::Unborn;
        }
        // Some thread can always take a step, but now and then one that cannot is asked.
        let mut t = 0;
        for _ in 0..events * 12 {
            if machine.text.matches(';').count() >= events {
                break;
            }
            // Inside a section a thread goes on, or the others would keep it from nesting.
            let switch = if machine.threads[t].held.is_empty() { 60 } else { 12 };
            if machine.threads[t].is != Is::Running || machine.chance(switch) {
                t = machine.rng.usize(..self.threads);
            }
            machine.step(t);
        }
        parse_trace(&machine.text, true).unwrap_or_else(|e| panic!("{e} in {}", machine.text))
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Is {
    Unborn,
    #[default]
    Running,
    Waiting,
    Notified,
    Ended,
    Joined,
    Stuck,
}

#[derive(Clone, Debug, Default)]
struct Thread {
    is: Is,
    /// Locks and whether they are shared, as they were taken.
    held: Vec<(usize, bool)>,
}

struct Machine {
    kind: Nested,
    rng: Rng,
    /// For each lock who has it, and whether shared.
    owners: Vec<Vec<(usize, bool)>>,
    /// What each variable holds.
    values: Vec<u8>,
    threads: Vec<Thread>,
    text: String,
}

impl Machine {
    fn chance(&mut self, percent: u8) -> bool {
        self.rng.u8(..100) < percent
    }

    fn emit(&mut self, t: usize, what: &str) {
        self.text += &format!("T{t}: {what}; ");
    }

    fn is_free(&self, t: usize, lock: usize, shared: bool) -> bool {
        self.owners[lock].iter().all(|&(owner, other)| owner == t || shared && other)
    }

    fn step(&mut self, t: usize) {
        match self.threads[t].is {
            Is::Running => {}
            Is::Notified if self.is_free(t, 0, false) => {
                self.threads[t].is = Is::Running;
                self.take(t, 0, false, "wait_end(c, l0)");
                return;
            }
            _ => return,
        }
        if self.kind.ends > 0 && t > 0 && self.chance(self.kind.ends) {
            self.threads[t].is = Is::Joined;
            return self.emit(t, "thread_end");
        }
        if self.kind.stuck > 0 && self.chance(self.kind.stuck) {
            let other = self.rng.usize(..self.threads.len());
            let what = match self.rng.u8(..4) {
                0 if other != t => format!("await(T{other})"),
                1 => "block(x0)".to_owned(),
                _ => {
                    let (lock, shared) =
                        (self.rng.usize(..self.kind.locks), self.chance(self.kind.shared));
                    // What is free is given at once, without a request.
                    if self.owners[lock].iter().all(|&(_, other)| shared && other) {
                        return;
                    }
                    format!("{}(l{lock})", if shared { "rreq" } else { "req" })
                }
            };
            self.threads[t].is = Is::Stuck;
            return self.emit(t, &what);
        }
        if self.chance(self.kind.forks) && self.fork_join_or_end(t) {
            return;
        }
        if self.chance(self.kind.waits) && self.wait_or_notify(t) {
            return;
        }
        if self.chance(self.kind.accesses) {
            return self.access(t);
        }
        let depth = self.threads[t].held.len();
        if depth < self.kind.depth && self.chance(if depth == 1 { 85 } else { 60 }) {
            let (lock, shared) = (self.rng.usize(..self.kind.locks), self.chance(self.kind.shared));
            let again = self.threads[t].held.contains(&(lock, shared));
            let is_upgrade = self.threads[t].held.iter().any(|h| h.0 == lock) && !again;
            if again && !self.chance(self.kind.reentrant) || is_upgrade && shared {
                return;
            }
            let is_try = self.chance(self.kind.tries);
            if !self.is_free(t, lock, shared) {
                if is_try {
                    let word = if shared { "rbusy" } else { "busy" };
                    self.emit(t, &format!("{word}(l{lock})"));
                }
                return;
            }
            if is_try {
                let word = self.rng.choice(["try", "try_for"]).unwrap();
                self.emit(t, &format!("{word}(l{lock})"));
            }
            let word = if shared { "racq" } else { "acq" };
            self.take(t, lock, shared, &format!("{word}(l{lock})"));
        } else if let Some(&(lock, shared)) = self.threads[t].held.last() {
            let word = if shared { "rrel" } else { "rel" };
            self.give(t, lock, shared, &format!("{word}(l{lock})"));
        }
    }

    fn take(&mut self, t: usize, lock: usize, shared: bool, what: &str) {
        self.owners[lock].push((t, shared));
        self.threads[t].held.push((lock, shared));
        self.emit(t, what);
    }

    fn give(&mut self, t: usize, lock: usize, shared: bool, what: &str) {
        let place = |list: &[(usize, bool)], one| list.iter().rposition(|&it| it == one).unwrap();
        let (owner, own) =
            (place(&self.owners[lock], (t, shared)), place(&self.threads[t].held, (lock, shared)));
        self.owners[lock].remove(owner);
        self.threads[t].held.remove(own);
        self.emit(t, what);
    }

    fn access(&mut self, t: usize) {
        let variable = self.rng.usize(..self.kind.variables);
        let word = match self.chance(self.kind.rmws) {
            true => "rmw",
            false => self.rng.choice(["r", "w"]).unwrap(),
        };
        let old = self.values[variable];
        if word != "r" {
            self.values[variable] = self.rng.u8(1..=2);
        }
        let new = self.values[variable];
        self.emit(
            t,
            &match word {
                "rmw" => format!("rmw(x{variable})={old}->{new}"),
                _ => format!("{word}(x{variable})={new}"),
            },
        );
    }

    fn fork_join_or_end(&mut self, t: usize) -> bool {
        let one = self.rng.usize(..self.threads.len());
        match self.threads[one].is {
            Is::Unborn => {
                self.threads[one].is = Is::Running;
                self.emit(t, &format!("fork(T{one})"));
            }
            Is::Ended => {
                self.threads[one].is = Is::Joined;
                self.emit(t, &format!("join(T{one})"));
            }
            Is::Running if one == t && t > 0 && self.threads[t].held.is_empty() => {
                self.threads[t].is = Is::Ended;
            }
            _ => return false,
        }
        true
    }

    /// Waits give up the first lock, whatever else is held; notifications need none.
    fn wait_or_notify(&mut self, t: usize) -> bool {
        let holds = self.threads[t].held.iter().filter(|&&h| h == (0, false)).count();
        if holds == 1 && self.rng.bool() && !self.threads[t].held.contains(&(0, true)) {
            self.threads[t].is = Is::Waiting;
            if self.chance(self.kind.guarded) {
                self.emit(t, "r(flag)");
            }
            self.give(t, 0, false, "wait_begin(c, l0)");
            return true;
        }
        let waiting: Vec<usize> =
            (0..self.threads.len()).filter(|&u| self.threads[u].is == Is::Waiting).collect();
        if self.chance(self.kind.guarded) {
            if holds == 0 {
                return false;
            }
            self.emit(t, "w(flag)");
        }
        let all = self.rng.u8(..4) == 0;
        for &u in if all { &waiting[..] } else { &waiting[..waiting.len().min(1)] } {
            self.threads[u].is = Is::Notified;
        }
        self.emit(t, if all { "notify_all(c)" } else { "notify(c)" });
        true
    }
}
