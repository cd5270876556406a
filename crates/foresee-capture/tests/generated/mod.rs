//! Random programs of the tiny language as C, compiled and explored for real, against the truth of an interpreter.
//!
//! Each instruction is a line of its own, so that a place of a report is an instruction. All programs of a batch are one
//! executable, and its first argument says which of them runs.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex};

use foresee_capture::explore::{Native, Options};
use foresee_explore::program::{
    Execution, Object, Operation, Place, Program, RunError, Schedule, ThreadName, Value,
};
use foresee_explore::{Settings, Spin, Trouble, explore};

#[path = "../../../foresee-explore/tests/programs.rs"]
#[allow(dead_code)]
pub(crate) mod programs;
#[path = "../../../foresee-explore/tests/tiny.rs"]
#[allow(dead_code)]
pub(crate) mod tiny;
#[path = "../../../foresee-explore/tests/truth.rs"]
#[allow(dead_code)]
pub(crate) mod truth;

use programs::Family;
use tiny::{Code, Ins, REGS};
use truth::{Truth, truth};

/// A random program of what can be written in C.
pub(crate) fn program(seed: u64) -> Code {
    Family::IN_C.program(seed)
}

/// A batch of programs, and which instruction is on which line.
pub(crate) struct Batch {
    pub(crate) text: String,
    /// By line: the program, and the place in the tiny language.
    lines: Vec<Option<(usize, Place)>>,
    /// Second halves of barriers.
    passes: BTreeSet<(usize, Place)>,
}

const HEAD: &str = "#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
typedef unsigned long u64;
static volatile u64 v0, v1, v2;
static pthread_mutex_t l0 = PTHREAD_MUTEX_INITIALIZER, l1 = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c0 = PTHREAD_COND_INITIALIZER;
static sem_t s0;
static pthread_barrier_t b0;
static const struct timespec soon = {1, 0};
static pthread_t h1, h2;
static u64 cas(volatile u64 *at, u64 old, u64 new) { __atomic_compare_exchange_n(at, &old, new, 0, 5, 5); return old; }
";

/// What a thread ends with: its registers as one number.
fn sum(regs: &[u64; REGS]) -> u64 {
    regs.iter().fold(17, |sum: u64, reg| sum.wrapping_mul(31).wrapping_add(*reg))
}

impl Batch {
    pub(crate) fn new(programs: &[Code]) -> Batch {
        let mut batch = Batch { text: HEAD.to_owned(), lines: Vec::new(), passes: BTreeSet::new() };
        batch.lines.resize(HEAD.lines().count() + 1, None);
        for (number, code) in programs.iter().enumerate() {
            for at in (0..code.len()).rev() {
                batch.thread(number, code, at);
            }
        }
        batch.line("int main(int count, char **words) {", None);
        batch.line("(void)count;", None);
        batch.line("switch (atoi(words[1])) {", None);
        for number in 0..programs.len() {
            batch.line(&format!("case {number}: p{number}_0(0); break;"), None);
        }
        batch.line("}\nreturn 0;\n}", None);
        batch
    }

    fn line(&mut self, text: &str, place: Option<(usize, Place)>) {
        self.text += text;
        self.text.push('\n');
        self.lines.extend(text.split('\n').map(|_| place));
    }

    fn thread(&mut self, number: usize, code: &Code, at: usize) {
        self.line(&format!("static void *p{number}_{at}(void *unused) {{"), None);
        let regs: Vec<String> = (0..REGS).map(|reg| format!("r{reg} = 0")).collect();
        self.line(&format!("(void)unused; u64 {};", regs.join(", ")), None);
        for (pc, ins) in code[at].iter().enumerate() {
            let text = statement(number, *ins, pc);
            let place = Place((at * 1000 + pc + 1) as u64);
            if matches!(ins, Ins::Pass(_)) {
                self.passes.insert((number, place));
            }
            self.line(&format!("L{pc}: __attribute__((unused)); {text}"), Some((number, place)));
        }
        let end = (0..REGS).fold("17".to_owned(), |sum, reg| format!("({sum} * 31 + r{reg})"));
        let how = match at {
            0 => format!("pthread_exit((void *){end});"),
            _ => format!("return (void *){end};"),
        };
        let pc = code[at].len();
        let place = Place((at * 1000 + pc + 1) as u64);
        self.line(&format!("L{pc}: __attribute__((unused)); {how}"), Some((number, place)));
        self.line("}", None);
    }

    /// The place in the tiny language of a place in the C program: `batch.c:41(p3_1)`.
    fn place(&self, name: &str) -> Option<Place> {
        // The innermost function may be one that was inlined.
        let lines = name.split("batch.c:").skip(1).filter_map(|rest| {
            let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
            digits.parse::<usize>().ok()
        });
        lines.filter_map(|line| *self.lines.get(line)?).map(|(_, place)| place).next()
    }
}

fn statement(number: usize, ins: Ins, pc: usize) -> String {
    let part = |var: usize, offset: u8, width: u8| {
        format!("*(volatile uint{}_t *)((volatile char *)&v{var} + {offset})", 8 * width)
    };
    match ins {
        Ins::Load(reg, var) => format!("r{reg} = v{var};"),
        Ins::LoadPart(reg, var, offset, width) => format!("r{reg} = {};", part(var, offset, width)),
        Ins::Set(var, value) => format!("v{var} = {value};"),
        Ins::Store(var, reg, by) => format!("v{var} = r{reg} + {by};"),
        Ins::StorePart(var, offset, width, value) => {
            // Two bytes may lie across words, which one instruction writes all the same.
            format!("{} = {value};", part(var, offset, width))
        }
        Ins::Add(reg, var, by) => format!("r{reg} = __atomic_fetch_add(&v{var}, {by}, 5);"),
        Ins::Cas(reg, var, old, new) => format!("r{reg} = cas(&v{var}, {old}, {new});"),
        Ins::Lock(lock) => format!("pthread_mutex_lock(&l{lock});"),
        Ins::TryLock(reg, lock) => format!("r{reg} = pthread_mutex_trylock(&l{lock}) == 0;"),
        Ins::TimedLock(reg, lock) => {
            format!("r{reg} = pthread_mutex_timedlock(&l{lock}, &soon) == 0;")
        }
        Ins::Unlock(lock) => format!("pthread_mutex_unlock(&l{lock});"),
        Ins::Wait(condition, lock) => format!("pthread_cond_wait(&c{condition}, &l{lock});"),
        Ins::TimedWait(reg, condition, lock) => {
            format!("r{reg} = pthread_cond_timedwait(&c{condition}, &l{lock}, &soon) == 0;")
        }
        Ins::Signal(condition) => format!("pthread_cond_signal(&c{condition});"),
        Ins::Broadcast(condition) => format!("pthread_cond_broadcast(&c{condition});"),
        Ins::SemInit(sem, count) => format!("sem_init(&s{sem}, 0, {count});"),
        Ins::Post(sem) => format!("sem_post(&s{sem});"),
        Ins::Take(sem) => format!("sem_wait(&s{sem});"),
        Ins::TryTake(reg, sem) => format!("r{reg} = sem_trywait(&s{sem}) == 0;"),
        Ins::BarrierInit(barrier, count) => {
            format!("pthread_barrier_init(&b{barrier}, 0, {count});")
        }
        Ins::Arrive(barrier) => format!("pthread_barrier_wait(&b{barrier});"),
        // The call is both.
        Ins::Pass(_) => ";".to_owned(),
        Ins::Fork(thread) => format!("pthread_create(&h{thread}, 0, p{number}_{thread}, 0);"),
        Ins::Join(thread) => format!("pthread_join(h{thread}, 0);"),
        Ins::SkipIf(reg, value, by) => format!("if (r{reg} == {value}) goto L{};", pc + 1 + by),
        Ins::SkipUnless(reg, value, by) => {
            format!("if (r{reg} != {value}) goto L{};", pc + 1 + by)
        }
        Ins::Back(by) => format!("goto L{};", pc - by),
        Ins::Bump(reg, by) => format!("r{reg} += {by};"),
        Ins::Fail => "assert(0);".to_owned(),
        other => panic!("{other:?} is not generated"),
    }
}

/// A program that notes with what its threads end.
struct Noting {
    native: Native,
    ends: Arc<Mutex<BTreeSet<(ThreadName, u64)>>>,
}

impl Program for Noting {
    fn run(&mut self, schedule: &Schedule) -> Result<Execution, RunError> {
        let execution = self.native.run(schedule)?;
        let mut ends = self.ends.lock().expect("no test panics with it");
        for event in &execution.events {
            let is_main = event.thread == 0;
            if let (Operation::End(Value::Bits(value)), false) = (event.operation, is_main) {
                ends.insert((execution.threads[event.thread as usize].clone(), value as u64));
            }
        }
        Ok(execution)
    }

    fn unseen(&self) -> Option<String> {
        self.native.unseen()
    }

    fn object_name(&self, object: Object) -> String {
        self.native.object_name(object)
    }

    fn place_name(&self, place: Place) -> String {
        self.native.place_name(place)
    }
}

/// What came of one program.
#[derive(Default)]
pub(crate) struct Compared {
    /// 1 if every schedule was claimed to be covered.
    pub(crate) covered: usize,
    pub(crate) runs: u32,
    pub(crate) states: usize,
    pub(crate) failures: usize,
    pub(crate) deadlocks: usize,
    pub(crate) ends: usize,
}

/// The truth about programs that are small enough to be compared, with these seeds.
pub(crate) fn small(seeds: impl Iterator<Item = u64>, count: usize) -> Vec<(u64, Code, Truth)> {
    let with_truth = seeds.filter_map(|seed| {
        let code = program(seed);
        let truth = truth(&code, None, 4_000)?;
        Some((seed, code, truth))
    });
    with_truth.take(count).collect()
}

/// Explores a program of a batch, and compares it with the truth.
///
/// # Errors
/// What is different.
pub(crate) fn compare(
    executable: &Path,
    number: usize,
    batch: &Batch,
    truth: &Truth,
) -> Result<Compared, String> {
    let command = vec![executable.into(), number.to_string().into()];
    let native = Native::new(Options::new(command)).map_err(|why| why.to_string())?;
    let ends: Arc<Mutex<BTreeSet<(ThreadName, u64)>>> = Arc::default();
    let mut runners: Vec<Box<dyn Program>> =
        vec![Box::new(Noting { native, ends: Arc::clone(&ends) })];
    let settings = Settings {
        stops_at_first: false,
        repeats: 1,
        spin: Spin::Bound(1000),
        ..Settings::default()
    };
    let explored = explore(&mut runners, &settings, None, None, &mut |_| true)
        .map_err(|why| why.to_string())?;
    let mut wrong = String::new();
    let is_complete = explored.is_complete();
    let place = |place: Place| batch.place(&runners[0].place_name(place)).unwrap_or_default();
    let (mut failures, mut deadlocks) = (BTreeSet::new(), BTreeSet::new());
    for finding in &explored.findings {
        match &finding.trouble {
            Trouble::Failed(_) => {
                failures.insert(place(finding.place));
            }
            Trouble::Deadlock(all) => {
                let mut all: Vec<(ThreadName, Place)> =
                    all.iter().map(|one| (one.0.clone(), place(one.2))).collect();
                all.sort();
                deadlocks.insert(all);
            }
            other => {
                let _ = write!(wrong, "{other:?}; ");
            }
        }
    }
    // The two halves of a barrier are one place in C.
    let whole = |place: Place| match batch.passes.contains(&(number, place)) {
        true => Place(place.0 - 1),
        false => place,
    };
    let expected: BTreeSet<Vec<(ThreadName, Place)>> = truth
        .deadlocks
        .iter()
        .map(|all| all.iter().map(|(name, at)| (name.clone(), whole(*at))).collect())
        .collect();
    // What is not claimed to be covered may be missing, but nothing may be invented.
    let is_right = |found_all: bool, invents: bool| !invents && (found_all || !is_complete);
    if !is_right(failures == truth.failures, !failures.is_subset(&truth.failures)) {
        let _ = write!(wrong, "failures {failures:?} instead of {:?}; ", truth.failures);
    }
    if !is_right(deadlocks == expected, !deadlocks.is_subset(&expected)) {
        let _ = write!(wrong, "deadlocks {deadlocks:?} instead of {expected:?}; ");
    }
    // What `main` ends with, nobody is told.
    let others = truth.ends.iter().filter(|(name, _)| *name != ThreadName::default());
    let told: BTreeSet<(ThreadName, u64)> =
        others.map(|(name, regs)| (name.clone(), sum(regs))).collect();
    let ends = std::mem::take(&mut *ends.lock().expect("no test panics with it"));
    if !is_right(ends == told, !ends.is_subset(&told)) {
        let _ = write!(wrong, "threads end with {ends:?} instead of {told:?}; ");
    }
    // Every finding happens again when it is forced.
    for finding in &explored.findings {
        let again = runners[0].run(&finding.schedule).map_err(|why| why.to_string())?;
        let is_it = Trouble::of(&again).is_some_and(|trouble| trouble.is_like(&finding.trouble));
        if !is_it || again.diverged.is_some() {
            let _ = write!(wrong, "{:?} is not confirmed; ", finding.trouble);
        }
    }
    match wrong.is_empty() {
        true => Ok(Compared {
            covered: usize::from(is_complete),
            runs: explored.runs,
            states: explored.states,
            failures: failures.len(),
            deadlocks: deadlocks.len(),
            ends: told.len(),
        }),
        false => Err(wrong),
    }
}
