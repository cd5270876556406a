//! Simulated programs with much that is one thread's own. What is stored of them must be the same whether it is left out
//! beforehand or when everything has been named.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use foresee_rt::format::{Access, RUN, Tag};
use foresee_trace::{Batch, EventSource, Names};

use super::unseen_tests::{Random, Writer};
use super::{Log, Plain};
use crate::private::{Keep, Owners};

const THREADS: usize = 3;
const BLOCKS: usize = 6;
const BLOCK: u64 = 40;
const GLOBALS: u64 = 0x1000;

fn block(i: usize) -> u64 {
    0x10_000 + 64 * i as u64
}

/// A buffer that is only written as a whole.
const BUFFER: u64 = 0x18_000;
const LENGTH: u64 = 96;

/// Eight bytes that are always accessed as a whole.
fn waited(i: usize) -> u64 {
    GLOBALS + 64 * (BLOCKS + 1) as u64 + 8 * i as u64
}

fn stack(thread: u32) -> u64 {
    0x20_000 * u64::from(thread)
}

/// A program while it runs.
struct Program {
    random: Random,
    log: Writer,
    memory: HashMap<u64, u8>,
    is_live: [bool; BLOCKS],
    /// The threads at work, of which the first never ends, and the number of the next one.
    threads: [u32; THREADS],
    next: u32,
}

impl Program {
    fn bytes(&mut self, address: u64, size: u64) -> Vec<u8> {
        (address..address + size).map(|at| *self.memory.entry(at).or_default()).collect()
    }

    fn number(bytes: &[u8]) -> u64 {
        let mut number = [0; 8];
        number[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(number)
    }

    fn set(&mut self, address: u64, size: u64) {
        for at in address..address + size {
            let byte = self.random.below(256) as u8;
            self.memory.insert(at, byte);
        }
    }

    /// Sets eight bytes to an address in some stack.
    fn point(&mut self, address: u64) {
        let thread = self.threads[1 + self.random.below(THREADS - 1)];
        let target = stack(thread) + self.random.below(32) as u64;
        self.memory.extend((address..).zip(target.to_le_bytes()));
    }

    /// Reads the same again and again, and sometimes something of its own in between.
    fn wait(&mut self, thread: u32, address: u64) {
        for _ in 0..3 + self.random.below(12) {
            let value = Program::number(&self.bytes(address, 8));
            self.log.of(thread);
            self.log.put((Access::Read as u8) << 3 | 3, address, value);
            if thread > 1 && self.random.below(3) == 0 {
                let offset = self.random.below(24) as u64;
                self.access(thread, stack(thread) + 64 + offset);
            }
        }
    }

    /// Fills a buffer, or examines some of it.
    fn use_buffer(&mut self, thread: u32) {
        self.log.of(thread);
        if self.random.below(4) == 0 {
            self.set(BUFFER, LENGTH);
            let bytes = self.bytes(BUFFER, LENGTH);
            self.log.put((Access::Write as u8) << 3 | RUN, BUFFER, LENGTH);
            self.log.bytes.extend(bytes);
            return;
        }
        for _ in 0..self.random.below(24) {
            self.log.pc = 0x40_0000 + self.random.below(3) as u64;
            let code = self.random.below(4) as u8;
            let at = BUFFER + self.random.below(LENGTH as usize - 8) as u64;
            let value = Program::number(&self.bytes(at, 1 << code));
            self.log.put((Access::Read as u8) << 3 | code, at, value);
            if thread > 1 && self.random.below(4) == 0 {
                let offset = self.random.below(24) as u64;
                self.access(thread, stack(thread) + 64 + offset);
            }
        }
    }

    fn access(&mut self, thread: u32, address: u64) {
        let code = self.random.below(4) as u8;
        let size = 1u64 << code;
        self.log.of(thread);
        match self.random.below(16) {
            0..7 => {
                let value = Program::number(&self.bytes(address, size));
                self.log.put((Access::Read as u8) << 3 | code, address, value);
            }
            7..13 => {
                match size == 8 && self.random.below(4) == 0 {
                    true => self.point(address),
                    false => self.set(address, size),
                }
                let value = Program::number(&self.bytes(address, size));
                self.log.put((Access::Write as u8) << 3 | code, address, value);
            }
            13 => {
                let old = self.bytes(address, size);
                self.set(address, size);
                let value = Program::number(&self.bytes(address, size));
                self.log.put((Access::Rmw as u8) << 3 | code, address, value);
                self.log.bytes.push(size as u8);
                self.log.bytes.extend(old);
            }
            n => {
                let access = if n == 14 { Access::Read } else { Access::Write };
                let size = 1 + self.random.below(24) as u64;
                if access == Access::Write {
                    self.set(address, size);
                }
                let bytes = self.bytes(address, size);
                self.log.put((access as u8) << 3 | RUN, address, size);
                self.log.bytes.extend(bytes);
            }
        }
    }

    /// Another thread begins.
    fn start(&mut self, at: usize) {
        let thread = self.next;
        self.next += 1;
        self.threads[at] = thread;
        self.log.of(1);
        self.log.put(Tag::Fork as u8, 0, u64::from(thread));
        self.log.of(thread);
        self.log.put(Tag::ThreadBegin as u8, stack(thread), 4096);
    }

    /// A thread ends, and another one takes its place, perhaps when its blocks have been freed.
    fn replace(&mut self, at: usize) {
        self.log.of(1);
        self.log.put(Tag::Join as u8, 0, u64::from(self.threads[at]));
        for i in (at..BLOCKS).step_by(THREADS) {
            if self.is_live[i] && self.random.below(2) == 0 {
                self.log.put(Tag::Free as u8, block(i), BLOCK);
                self.is_live[i] = false;
            }
        }
        for _ in 0..self.random.below(4) {
            let i = self.random.below(BLOCKS);
            self.access(1, GLOBALS + 64 * i as u64);
        }
        self.start(at);
    }

    fn step(&mut self) {
        let i = self.random.below(BLOCKS);
        if self.random.below(40) == 0 {
            self.replace(1 + i % (THREADS - 1));
        }
        let own = self.threads[i % THREADS];
        let any = self.threads[self.random.below(THREADS)];
        // Most of it is always used by the same thread.
        let who = if self.random.below(12) == 0 { any } else { own };
        match self.random.below(28) {
            27 => self.use_buffer(any),
            24 if self.random.below(4) == 0 => {
                self.set(waited(i), 8);
                let value = Program::number(&self.bytes(waited(i), 8));
                self.log.of(any);
                self.log.put((Access::Write as u8) << 3 | 3, waited(i), value);
            }
            24 => self.wait(any, waited(i)),
            25 => {
                // What no hook sees, where a thread may wait for it, or on a stack.
                self.log.of(who);
                let at = if self.random.below(2) == 0 { waited(i) } else { stack(own.max(2)) };
                self.set(at, 1);
            }
            26 if who > 1 => {
                for _ in 0..4 + self.random.below(8) {
                    let offset = self.random.below(32) as u64;
                    self.access(who, stack(who) + offset);
                }
            }
            0..3 if !self.is_live[i] => {
                self.log.of(who);
                self.log.put(Tag::Alloc as u8, block(i), BLOCK << 1);
                self.memory.extend((block(i)..block(i) + BLOCK).map(|at| (at, 0)));
                self.is_live[i] = true;
            }
            0 if self.is_live[i] => {
                self.log.of(who);
                self.log.put(Tag::Free as u8, block(i), BLOCK);
                self.is_live[i] = false;
            }
            3 => {
                // What no hook sees.
                let at = block(i) + self.random.below(BLOCK as usize) as u64;
                self.log.of(who);
                self.set(at, 1);
            }
            4..8 => {
                let offset = self.random.below(64) as u64;
                self.access(who, GLOBALS + 64 * i as u64 + offset);
            }
            8..12 if who > 1 => {
                let offset = self.random.below(32) as u64;
                self.access(who, stack(own.max(2)) + offset);
            }
            _ if self.is_live[i] || self.random.below(40) == 0 => {
                let offset = self.random.below(BLOCK as usize - 8) as u64;
                self.access(who, block(i) + offset);
            }
            _ => {}
        }
    }
}

/// What is stored of a log, in words; and how many accesses were not passed over.
fn stored(tail: &Path, is_brief: bool, wanted: &[(u64, u64)], keep: Keep) -> (Vec<String>, usize) {
    let log = Log::open_within(tail, usize::MAX, keep, &mut |_| {}).expect("a log");
    let mut prior = None;
    loop {
        let is_first = prior.is_none();
        let mut source = log.source_after(Plain::new(&[]), prior).expect("a log");
        if is_brief {
            source = source.briefly(wanted.iter().copied());
        }
        let (mut owners, mut batches) = (Owners::default(), Vec::new());
        let mut batch = Batch::default();
        while source.next_batch(&mut batch).expect("valid records") {
            owners.see(&batch, source.names());
            batches.push(std::mem::take(&mut batch));
        }
        // A second pass that has nothing to keep in order yields the same, too.
        if is_first {
            prior = Some(source.learnt(|var| owners.is_shared(var)));
            if is_brief || !prior.as_ref().is_some_and(|prior| prior.plan.is_empty()) {
                continue;
            }
        }
        let all: usize = batches.iter().map(|batch| batch.events.len()).sum();
        let shared = owners.shared(source.names(), keep).expect("few names");
        let mut words = Vec::new();
        for mut batch in batches {
            let names: &Names = match &shared {
                None => source.names(),
                Some(shared) => {
                    shared.narrow(&mut batch);
                    &shared.names
                }
            };
            for event in &batch.events {
                let thread = names.threads.get(event.thread());
                words.push(format!("{thread} {}", event.describe(names, &batch.pool)));
            }
        }
        return (words, all);
    }
}

/// Leaves out reads that only repeat the one before, even if an order is noted in between that is not the reads'.
fn leave_out_repeated(events: &mut Vec<String>) {
    let mut latest = String::new();
    events.retain(|event| {
        if event.contains("unseen") && !event.starts_with("external") {
            return true;
        }
        let is_repeated = latest == *event && event.contains(" r(");
        latest.clone_from(event);
        !is_repeated
    });
}

/// The variable that an event writes, or reads if not `is_written`.
fn accessed(event: &str, is_written: bool) -> Option<&str> {
    let (_, what) = event.split_once(' ')?;
    let (op, rest) = what.split_once('(')?;
    let is_write = op.ends_with('w');
    (matches!(op, "r" | "w" | "rmw") && is_write == is_written)
        .then(|| &rest[..rest.rfind(')').unwrap_or(0)])
}

/// Leaves out reads of what nobody writes.
fn leave_out_constants(events: &mut Vec<String>) {
    let written: HashSet<String> =
        events.iter().filter_map(|event| accessed(event, true)).map(str::to_owned).collect();
    events.retain(|event| accessed(event, false).is_none_or(|var| written.contains(var)));
}

#[test]
fn what_is_passed_over_would_have_been_left_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut kept, mut brief, mut whole, mut unseen, mut freed, mut skipped) = (0, 0, 0, 0, 0, 0);
    let (mut examined, mut reread, mut constant, mut constant_kept) = (0, 0, 0, 0);
    let (mut shared, mut unsettled) = (0, 0);
    for seed in 1..=3000u64 {
        let mut program = Program {
            random: Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
            log: Writer::default(),
            memory: HashMap::new(),
            is_live: [false; BLOCKS],
            threads: [1; THREADS],
            next: 2,
        };
        program.log.of(1);
        program.log.put(Tag::Data as u8, GLOBALS, 64 * (BLOCKS + 2) as u64);
        program.log.put(Tag::Alloc as u8, BUFFER, LENGTH << 1);
        (1..THREADS).for_each(|at| program.start(at));
        for _ in 0..20 + program.random.below(250) {
            program.step();
            if program.random.below(60) == 0 {
                program.log.end_chunk();
            }
        }
        let tail = program.log.save(folder.path());
        // Without such variables, the first pass has found records that the others need not decode.
        let wanted: &[_] = if seed % 2 == 0 { &[(GLOBALS + 64, GLOBALS + 72)] } else { &[] };
        skipped += Log::open(&tail).expect("a log").skips.len();
        let keep = if seed % 3 == 0 { Keep::Unsettled } else { Keep::Shared };
        let (mut slow, all) = stored(&tail, false, wanted, keep);
        let (mut fast, named) = stored(&tail, true, wanted, keep);
        if keep == Keep::Unsettled {
            unsettled += named;
            shared += stored(&tail, true, wanted, Keep::Shared).1;
        }
        // Only a buffer has no values.
        let is_examined = |event: &&String| event.contains(" r(") && !event.contains('=');
        let reads = |events: &[String]| events.iter().filter(is_examined).count();
        constant += slow.len();
        constant_kept += fast.len();
        [&mut slow, &mut fast].into_iter().for_each(leave_out_constants);
        constant -= slow.len();
        constant_kept -= fast.len();
        examined += reads(&slow);
        reread += reads(&slow) - reads(&fast);
        [&mut slow, &mut fast].into_iter().for_each(leave_out_repeated);
        assert_eq!(slow, fast, "seed {seed}");
        kept += slow.len();
        whole += all;
        brief += named;
        unseen += usize::from(slow.iter().any(|event| event.starts_with("external")));
        freed += usize::from(slow.iter().any(|event| event.contains("heap_free")));
    }
    assert!(
        constant_kept * 4 < constant * 3,
        "{constant_kept} of {constant} reads of constants are kept"
    );
    assert!(unsettled * 10 < shared * 9, "{unsettled} of {shared} named that are not settled");
    assert!(reread * 4 > examined, "{reread} of {examined} reads of a buffer are left out");
    assert!(skipped > 200, "{skipped} runs of records are skipped");
    assert!(unseen > 200 && freed > 200, "{unseen} with unseen writes, {freed} with freed memory");
    assert!(kept * 2 < whole && brief * 4 < whole * 3, "{kept} of {whole}, {brief} named");
}

/// The end of a log has no checksum, so that anything may stand there.
#[test]
fn a_thread_with_an_absurd_number_is_damage() {
    let folder = tempfile::tempdir().expect("a folder");
    for tag in [Tag::Switch, Tag::Fork, Tag::Join] {
        let mut log = Writer::default();
        log.of(1);
        log.put(Tag::Data as u8, GLOBALS, 64);
        log.put(tag as u8, 0, u64::from(u32::MAX));
        log.put((Access::Read as u8) << 3 | 3, GLOBALS, 0);
        let tail = log.save(folder.path());
        assert!(Log::open(&tail).is_err(), "{tag:?}");
    }
}

/// A thread that waits for another one reads the same many times. The last of these reads must stay before the write that
/// ends the wait.
#[test]
fn reads_that_wait_are_kept_at_both_ends() {
    let folder = tempfile::tempdir().expect("a folder");
    let read = |log: &mut Writer, value| log.put((Access::Read as u8) << 3 | 3, GLOBALS, value);
    let mut log = Writer::default();
    log.of(1);
    log.put(Tag::Data as u8, GLOBALS, 64);
    log.put(Tag::Fork as u8, 0, 2);
    log.of(2);
    for i in 0..100 {
        if i == 50 {
            log.end_chunk();
        }
        read(&mut log, 0);
    }
    log.of(1);
    log.put((Access::Write as u8) << 3 | 3, GLOBALS, 1);
    log.of(2);
    read(&mut log, 1);
    let (events, _) = stored(&log.save(folder.path()), true, &[], Keep::Shared);
    let name = "0x1000";
    let read = |value| format!("T1 r({name})={value}");
    let fork = "main fork(T1)".to_owned();
    let write = format!("main w({name})=1");
    assert_eq!(events, [fork, read(0), read(0), read(0), write, read(1)]);
}

/// `realloc` copies all that belongs to a block, also what is behind the size that was asked for. What earlier blocks left there
/// was not written by another thread.
#[test]
fn what_is_left_behind_a_block_is_nobodys() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut log = Writer::default();
    log.of(1);
    log.put(Tag::Fork as u8, 0, 2);
    for size in [24, 10] {
        log.of(1);
        log.put(Tag::Alloc as u8, BUFFER, size << 1);
        log.put((Access::Write as u8) << 3 | 3, BUFFER, 7);
        if size == 24 {
            log.put((Access::Write as u8) << 3 | 3, BUFFER + 16, 8);
        } else {
            // The allocator's own data are in the third word.
            log.put((Access::Read as u8) << 3 | RUN, BUFFER, 24);
            log.bytes.extend([7u64, 0, 0x21].iter().flat_map(|word| word.to_le_bytes()));
        }
        log.put(Tag::Free as u8, BUFFER, 24);
        log.of(2);
    }
    let (events, all) = stored(&log.save(folder.path()), true, &[], Keep::Shared);
    // Nothing but the start and two frees.
    assert!(all <= 3 && events.len() <= 3, "{all}: {events:?}");
}
