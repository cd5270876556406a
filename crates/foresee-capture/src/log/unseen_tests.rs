//! Simulated programs some of whose writes no hook sees, recorded as the runtime would. Whatever order the judge accepts of
//! the events made of the log must be one that the program could have run in, unseen writes included.

use std::ops::Range;
use std::path::{Path, PathBuf};

use foresee_causality::judge::{Judge, Reads};
use foresee_rt::format::{
    Access, BUFFER_AT, CHUNK_HEAD, CHUNK_MAGIC, MAGIC, RUN, Tag, VERSION, checksum, neighbourhood,
    zigzag,
};
use foresee_trace::{
    Batch, EXTERNAL, Event, EventSource, Mode, Op, ThreadId, Trace, Validated, Value,
};

use super::unseen::Stacks;
use super::{HashMap, Log, Plain};
use crate::private::Owners;

/// Small random numbers.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }
}

/// A log as the runtime leaves it, with its end still in the tail.
#[derive(Default)]
pub(super) struct Writer {
    chunks: Vec<u8>,
    pub(super) bytes: Vec<u8>,
    addresses: [u64; 2],
    /// The return address of the next record, and of the latest.
    pub(super) pc: u64,
    latest_pc: u64,
    thread: u32,
}

impl Writer {
    pub(super) fn put(&mut self, tag: u8, address: u64, value: u64) {
        let last = &mut self.addresses[neighbourhood(tag)];
        let difference = zigzag(address.wrapping_sub(std::mem::replace(last, address)));
        let of_pc = zigzag(self.pc.wrapping_sub(std::mem::replace(&mut self.latest_pc, self.pc)));
        // Eight bytes for each part, whatever it is.
        self.bytes.extend([tag, 3 | 7 << 2 | 7 << 5]);
        for part in [of_pc, difference, value] {
            self.bytes.extend(part.to_le_bytes());
        }
    }

    pub(super) fn of(&mut self, thread: u32) {
        if self.thread != thread {
            self.thread = thread;
            self.put(Tag::Switch as u8, 0, u64::from(thread));
            self.put(Tag::Turn as u8, 0, 0);
        }
    }

    /// Ends a chunk.
    pub(super) fn end_chunk(&mut self) {
        let body = std::mem::take(&mut self.bytes);
        let length = (body.len() as u64) << 32;
        for word in [length | u64::from(CHUNK_MAGIC), checksum(&body), 0] {
            self.chunks.extend(word.to_le_bytes());
        }
        self.chunks.extend(body);
        (self.addresses, self.latest_pc) = ([0; 2], 0);
        self.put(Tag::Switch as u8, 0, u64::from(self.thread));
    }

    pub(super) fn save(self, folder: &Path) -> PathBuf {
        let (tail, log) = (folder.join("simulated.tail"), folder.join("simulated.log"));
        let mut head = vec![0u8; BUFFER_AT + CHUNK_HEAD];
        let base = self.chunks.len() as u64;
        let left = CHUNK_HEAD + self.bytes.len();
        let (size, capacity) = (base + left as u64, left.max(self.chunks.len()));
        head[..8].copy_from_slice(&MAGIC.to_le_bytes());
        head[8..12].copy_from_slice(&VERSION.to_le_bytes());
        head[28..32].copy_from_slice(&1u32.to_le_bytes());
        head[40..48].copy_from_slice(&base.to_le_bytes());
        head[48..56].copy_from_slice(&size.to_le_bytes());
        head[56..64].copy_from_slice(&(capacity as u64).to_le_bytes());
        head.extend(self.bytes);
        head.resize(BUFFER_AT + capacity, 0);
        std::fs::write(&tail, head).expect("the folder is ours");
        std::fs::write(log, self.chunks).expect("the folder is ours");
        tail
    }
}

const VARIABLES: usize = 3;
const LOCKS: usize = 2;
const COND: u64 = 0x3000;

fn variable(i: usize) -> u64 {
    0x1000 + 128 * i as u64
}

/// What the first variable is. A buffer consists of the same eight bytes over and over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum First {
    Number,
    /// A buffer that is read and written as a whole.
    Whole,
    /// A buffer that is written as a whole, and never unseen. Any part of it is read.
    Parts,
}

/// The number of words in a buffer.
const WORDS: usize = 9;

fn lock(i: usize) -> u64 {
    0x2000 + 64 * i as u64
}

/// A program while it runs.
struct Program {
    random: Random,
    log: Writer,
    /// Everything that really happened, and which of it no hook saw.
    truth: Trace,
    hidden: Vec<bool>,
    memory: [u64; VARIABLES],
    first: First,
    next_value: u64,
    /// For each lock its holder.
    holders: [Option<u32>; LOCKS],
    /// For each thread that waits, the lock it gave up, and whether it was woken.
    waits: Vec<Option<(usize, bool)>>,
}

impl Program {
    fn event(&mut self, thread: u32, op: Op, target: u32, values: &[Value], hidden: bool) {
        let event = Event::new(ThreadId(thread - 1), op).with_target(target);
        let event = event.with_values(values, &mut self.truth.pool);
        self.truth.events.push(event);
        self.hidden.push(hidden);
    }

    /// An access of some words of a variable, if it is a buffer.
    fn access(&mut self, access: Access, var: usize, words: Range<usize>) {
        let value = self.memory[var];
        let address = variable(var) + 8 * words.start as u64;
        match self.first {
            First::Whole | First::Parts if var == 0 && words.len() > 1 => {
                self.log.put((access as u8) << 3 | RUN, address, 8 * words.len() as u64);
                self.log.bytes.extend(words.flat_map(|_| value.to_le_bytes()));
            }
            First::Parts if var == 0 => self.log.put((access as u8) << 3 | 3, address, value),
            _ => self.log.put((access as u8) << 3 | 3, variable(var), value),
        }
    }

    fn write(&mut self, thread: u32, var: usize, hidden: bool) {
        self.next_value += 1;
        self.memory[var] = self.next_value;
        if !hidden {
            self.log.of(thread);
            self.access(Access::Write, var, 0..WORDS);
        }
        let value = Value::Int(self.next_value as i64);
        self.event(thread, Op::Write, var as u32, &[value], hidden);
    }

    fn read(&mut self, thread: u32, var: usize) {
        let value = self.memory[var];
        self.log.of(thread);
        let first = self.random.below(WORDS);
        let words = match self.first {
            First::Parts => first..first + 1 + self.random.below(WORDS - first),
            _ => 0..WORDS,
        };
        self.access(Access::Read, var, words);
        self.event(thread, Op::Read, var as u32, &[Value::Int(value as i64)], false);
    }

    fn fork(&mut self, thread: u32) {
        self.log.of(1);
        self.log.put(Tag::Fork as u8, 0, u64::from(thread));
        self.event(1, Op::Fork, thread - 1, &[], false);
    }

    /// Whether the thread could do something.
    fn step(&mut self, thread: u32) -> bool {
        if let Some((of, is_woken)) = self.waits[thread as usize] {
            if !is_woken || self.holders[of].is_some() {
                return false;
            }
            self.waits[thread as usize] = None;
            self.holders[of] = Some(thread);
            self.log.of(thread);
            self.log.put(Tag::WaitEnd as u8, COND, lock(of));
            let event = Event::new(ThreadId(thread - 1), Op::WaitEnd).with_target(0);
            let lock = foresee_trace::LockId(of as u32);
            self.truth.events.push(event.with_wait_lock(Some(lock)));
            self.hidden.push(false);
            return true;
        }
        let held = (0..LOCKS).find(|&l| self.holders[l] == Some(thread));
        match (self.random.below(12), held) {
            (0..3, _) => {
                let var = self.random.below(VARIABLES);
                self.read(thread, var);
            }
            (3, _) => {
                let var = self.random.below(VARIABLES);
                self.write(thread, var, false);
            }
            (4..6, _) => {
                // A thread runs only when it has the token, and then there is a record.
                self.log.of(thread);
                let var = match self.first {
                    First::Parts => 1 + self.random.below(VARIABLES - 1),
                    _ => self.random.below(VARIABLES),
                };
                self.write(thread, var, true);
            }
            (6..9, None) => {
                let of = self.random.below(LOCKS);
                if self.holders[of].is_some() {
                    return false;
                }
                self.holders[of] = Some(thread);
                self.log.of(thread);
                self.log.put(Tag::Acquire as u8, lock(of), 0);
                self.event(thread, Op::Acquire, of as u32, &[], false);
            }
            (6..9, Some(of)) => {
                self.holders[of] = None;
                self.log.of(thread);
                self.log.put(Tag::Release as u8, lock(of), 0);
                self.event(thread, Op::Release, of as u32, &[], false);
            }
            (9, Some(of)) => {
                self.holders[of] = None;
                self.waits[thread as usize] = Some((of, false));
                self.log.of(thread);
                self.log.put(Tag::WaitBegin as u8, COND, lock(of));
                let event = Event::new(ThreadId(thread - 1), Op::WaitBegin).with_target(0);
                let lock = foresee_trace::LockId(of as u32);
                self.truth.events.push(event.with_wait_lock(Some(lock)));
                self.hidden.push(false);
            }
            (10, _) => {
                for wait in self.waits.iter_mut().flatten() {
                    wait.1 = true;
                }
                self.log.of(thread);
                self.log.put(Tag::NotifyAll as u8, COND, 0);
                self.event(thread, Op::NotifyAll, 0, &[], false);
            }
            _ => return false,
        }
        true
    }
}

/// Runs a program; the log, the truth, and which of it no hook saw.
fn run(seed: u64, folder: &Path) -> (PathBuf, Trace, Vec<bool>) {
    let mut truth = Trace::default();
    for thread in ["main", "T1", "T2"] {
        truth.names.thread(thread).expect("few names");
    }
    let log = Writer::default();
    let mut program = Program {
        random: Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
        log,
        truth,
        hidden: Vec::new(),
        memory: [0; VARIABLES],
        first: [First::Number, First::Whole, First::Parts][(seed / 2 % 3) as usize],
        next_value: 0,
        holders: [None; LOCKS],
        waits: vec![None; 4],
    };
    for var in 0..VARIABLES {
        program.write(1, var, false);
    }
    let threads = 2 + (seed % 2) as u32;
    let mut late = (2..=threads).collect::<Vec<_>>();
    let mut steps = 0;
    let mut tries = 0;
    while steps < 16 && tries < 200 {
        let started = threads - late.len() as u32;
        let thread = 1 + program.random.below(started as usize) as u32;
        for _ in 0..=program.random.below(3) {
            tries += 1;
            if thread == 1 && !late.is_empty() && program.random.below(2) == 0 {
                if program.waits[1].is_none() {
                    program.fork(late.remove(0));
                    steps += 1;
                }
                break;
            }
            steps += usize::from(program.step(thread));
        }
    }
    // A thread may wait for a lock until the end.
    let of_other = |program: &Program, thread: u32| {
        (0..LOCKS).find(|&of| program.holders[of].is_some_and(|holder| holder != thread))
    };
    let is_idle = |program: &Program, thread: u32| program.waits[thread as usize].is_none();
    let blocked = (2..=threads - late.len() as u32)
        .find(|&t| is_idle(&program, t) && of_other(&program, t).is_some())
        .filter(|_| program.random.below(2) == 0);
    if let Some(thread) = blocked
        && let Some(of) = of_other(&program, thread)
    {
        program.log.of(thread);
        program.log.put(Tag::Request as u8, lock(of), 0);
    }
    // What is over can be waited for.
    for thread in 2..=threads - late.len() as u32 {
        let holds = program.holders.contains(&Some(thread));
        let idle = [1, thread].iter().all(|&t| program.waits[t as usize].is_none());
        if idle && !holds && blocked != Some(thread) && program.random.below(2) == 0 {
            program.log.of(1);
            program.log.put(Tag::Join as u8, 0, u64::from(thread));
            program.event(1, Op::Join, thread - 1, &[], false);
        }
    }
    // Every write that no hook saw shows in the end.
    let started = threads - late.len() as u32;
    let runs = |t: &u32| is_idle(&program, *t) && blocked != Some(*t);
    if let Some(thread) = (1..=started).find(runs) {
        for var in 0..VARIABLES {
            program.read(thread, var);
        }
    }
    (program.log.save(folder), program.truth, program.hidden)
}

/// Whether the next access of what was written unseen is a read, so that it is noticed. What is written over unread cannot
/// be known of.
fn is_noticed(truth: &Trace, hidden: &[bool]) -> bool {
    (0..truth.events.len()).filter(|&i| hidden[i]).all(|i| {
        let is_access = |e: &Event| e.op().reads() || e.op().writes();
        let later = (i + 1..truth.events.len()).find(|&j| {
            let (event, written) = (&truth.events[j], &truth.events[i]);
            !hidden[j] && is_access(event) && event.var() == written.var()
        });
        later.is_some_and(|j| truth.events[j].op() == Op::Read)
    })
}

/// The events of the log as they are stored; without the order that is kept for unseen writes if not `planned`.
fn captured(tail: &Path, planned: bool) -> (Trace, u64) {
    let log = Log::open(tail).expect("a log");
    let mut source = log.source(Plain::new(&[])).expect("a log");
    let (mut owners, mut batch) = (Owners::default(), Batch::default());
    while source.next_batch(&mut batch).expect("valid records") {
        owners.see(&batch, source.names());
    }
    let prior = source.learnt(|var| owners.is_shared(var));
    let mut source = log.source_after(Plain::new(&[]), planned.then_some(prior)).expect("a log");
    let trace = Trace::load(&mut source).expect("valid records");
    Trace::load(&mut Validated::new(trace.source(), Mode::Reject)).expect("a well-formed trace");
    (trace, source.stats().external_writes)
}

/// For each event of the captured trace, that of the truth.
fn matched(captured: &Trace, truth: &Trace, hidden: &[bool]) -> Vec<Option<usize>> {
    let mut next = [0; 3];
    let external = captured.names.threads.lookup(EXTERNAL);
    captured
        .events
        .iter()
        .map(|event| {
            let name = event.target_name(&captured.names).unwrap_or_default();
            let is_marking = Some(event.thread()) == external || name.starts_with("unseen");
            if is_marking || event.op().requests() {
                return None;
            }
            let name = captured.names.threads.get(event.thread());
            let thread = truth.names.threads.lookup(name).expect("the same threads");
            let at = &mut next[thread.0 as usize];
            while truth.events[*at].thread() != thread || hidden[*at] {
                *at += 1;
            }
            // A write that the reader is said to have made itself stands before its read.
            (truth.events[*at].op() == event.op()).then(|| {
                *at += 1;
                *at - 1
            })
        })
        .collect()
}

const READS: Reads = Reads::Terminal;

/// Whether the threads could really have done these steps in this order, with unseen writes wherever their threads had
/// the time for them.
fn is_possible(truth: &Judge<'_>, trace: &Trace, hidden: &[bool], visible: &[usize]) -> bool {
    fn go(
        judge: &Judge<'_>,
        trace: &Trace,
        hidden: &[bool],
        rest: &[usize],
        order: &mut Vec<u64>,
        done: &mut [usize; 3],
    ) -> bool {
        if judge.check(order, READS).is_err() {
            return false;
        }
        let next_of = |thread: usize, done: &[usize; 3]| {
            (done[thread]..trace.events.len())
                .find(|&i| trace.events[i].thread().0 as usize == thread)
        };
        let Some((&first, others)) = rest.split_first() else { return true };
        let mut choices = Vec::new();
        for thread in 0..3 {
            if let Some(i) = next_of(thread, done) {
                choices.extend(Some(i).filter(|&i| hidden[i] || i == first));
            }
        }
        for i in choices {
            let thread = trace.events[i].thread().0 as usize;
            let before = std::mem::replace(&mut done[thread], i + 1);
            order.push(i as u64);
            let left = if hidden[i] { rest } else { others };
            if go(judge, trace, hidden, left, order, done) {
                return true;
            }
            order.pop();
            done[thread] = before;
        }
        false
    }
    go(truth, trace, hidden, visible, &mut Vec::new(), &mut [0; 3])
}

/// How many random orders of the captured events were accepted and are another than observed, and whether one of them is
/// impossible.
fn walk(
    captured: &Trace,
    truth: &Trace,
    hidden: &[bool],
    random: &mut Random,
) -> (u64, Option<Vec<u64>>) {
    let matched = matched(captured, truth, hidden);
    let (judge, real) = (Judge::new(captured), Judge::new(truth));
    let mut differing = 0;
    for _ in 0..12 {
        let mut order: Vec<u64> = Vec::new();
        let mut stuck = 0;
        while stuck < 12 {
            let threads = captured.names.threads.len();
            let thread = ThreadId(random.below(threads) as u32);
            let is_next =
                |&i: &usize| captured.events[i].thread() == thread && !order.contains(&(i as u64));
            stuck += 1;
            let Some(next) = (0..captured.events.len()).find(is_next) else { continue };
            order.push(next as u64);
            match judge.check(&order, READS) {
                Ok(_) => stuck = 0,
                Err(_) => drop(order.pop()),
            }
        }
        let visible: Vec<usize> = order.iter().filter_map(|&i| matched[i as usize]).collect();
        differing += u64::from(!visible.is_sorted());
        if !is_possible(&real, truth, hidden, &visible) {
            return (differing, Some(order));
        }
    }
    (differing, None)
}

#[test]
fn whatever_is_predicted_across_unseen_writes_is_possible() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut differing, mut unseen, mut caught) = (0, 0, 0);
    for seed in 1..=2000 {
        let (tail, truth, hidden) = run(seed, folder.path());
        if !is_noticed(&truth, &hidden) {
            continue;
        }
        let (trace, count) = captured(&tail, true);
        let mut random = Random(seed | 1 << 40);
        let (orders, wrong) = walk(&trace, &truth, &hidden, &mut random);
        let tell = |trace: &Trace| {
            let line = |(i, e): (usize, &Event)| {
                let thread = trace.names.threads.get(e.thread());
                format!("{i} {thread} {}\n", e.describe(&trace.names, &trace.pool))
            };
            trace.events.iter().enumerate().map(line).collect::<String>()
        };
        assert_eq!(wrong, None, "seed {seed}:\n{}\nreally: {:?}", tell(&trace), truth.events);
        differing += orders;
        unseen += count;
        // Without the order that is kept the same search finds what is not possible.
        let (loose, _) = captured(&tail, false);
        caught += u64::from(walk(&loose, &truth, &hidden, &mut Random(seed | 1 << 40)).1.is_some());
    }
    assert!(differing > 1000, "{differing} orders are another than observed");
    assert!(unseen > 1000, "{unseen} unseen writes were noticed");
    assert!(caught > 50, "{caught} programs show what happens without");
}

/// A thread calls functions and returns, and accesses words of their frames. A call is told with the next access, as the runtime
/// does; that of a function which is over by then never is.
#[test]
fn what_is_left_over_on_a_stack_is_known_from_calls() {
    const TOP: u64 = 1 << 20;
    let mut random = Random(91);
    let (mut left_over, mut kept) = (0, 0);
    for _ in 0..2_000 {
        let mut stacks = Stacks::default();
        stacks.add(1, TOP - (1 << 16), 1 << 16);
        let mut clock = 0;
        // Where frames end and begin, and whether they have been told.
        let mut frames: Vec<(u64, u64, bool)> = vec![(TOP - 64, TOP, true)];
        // When each word was last accessed, and whether it has been out of use since.
        let mut words: HashMap<u64, (u32, bool)> = HashMap::default();
        for _ in 0..200 {
            let bottom = frames.last().map_or(TOP, |frame| frame.0);
            match random.below(4) {
                0 if bottom > TOP - 4096 => {
                    frames.push((bottom - 8 - 8 * random.below(6) as u64, bottom, false));
                }
                1 if frames.len() > 1 => {
                    frames.pop();
                    let bottom = frames.last().map_or(TOP, |frame| frame.0);
                    words.iter_mut().for_each(|(&at, word)| word.1 |= at < bottom);
                }
                _ => {
                    for frame in frames.iter_mut().filter(|frame| !frame.2) {
                        stacks.called(1, frame.1, clock);
                        frame.2 = true;
                    }
                    // Of any frame: functions pass on where their variables are.
                    let of = frames[random.below(frames.len())];
                    let at = of.0 + 8 * random.below(((of.1 - of.0) / 8) as usize) as u64;
                    if let Some(&(known, is_left_over)) = words.get(&at) {
                        assert_eq!(stacks.is_left_over(1, at, known), is_left_over);
                        assert!(!stacks.is_left_over(2, at, known), "it is another's stack");
                        left_over += u32::from(is_left_over);
                        kept += u32::from(!is_left_over);
                    }
                    clock += 1;
                    words.insert(at, (clock, false));
                }
            }
        }
    }
    assert!(left_over > 1_000 && kept > 1_000, "{left_over} {kept}");
}
