//! The runtime under many threads, without a program around it: threads enter hooks as a program's
//! do, and the log that they leave is read back.

#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.

use std::cell::UnsafeCell;
use std::path::{Path, PathBuf};
use std::sync::{Barrier, Mutex, MutexGuard, Once};
use std::time::Duration;

use super::thread::{self, Thread};
use super::*;
use crate::format::{
    ACCESSES, BUFFER_AT, CHUNK_HEAD, Delayed, Head, PC_SIZES, POINTER, RUN, SIZES, checksum,
    neighbourhood, unzigzag,
};

/// The runtime, whose state is that of the process: one test at a time uses it.
struct Runtime {
    folder: PathBuf,
    _alone: MutexGuard<'static, ()>,
}

#[derive(Clone, Copy, Default)]
struct Settings {
    is_free_running: bool,
    is_filtered: bool,
    limit: Option<u64>,
}

impl Runtime {
    fn start(settings: Settings) -> Runtime {
        static ALONE: Mutex<()> = Mutex::new(());
        static PREPARED: Once = Once::new();
        let alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("foresee-rt-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir(&folder).unwrap();
        PREPARED.call_once(|| {
            assert!(thread::prepare(threads::farewell) && threads::prepare());
            assert!(queue::prepare() && shadow::prepare());
            // SAFETY: registers.
            assert_eq!(unsafe { sys::syscall!(sys::MEMBARRIER, 16, 0, 0) }, 0);
        });
        config::set_for_test(&folder, settings.is_free_running, settings.is_filtered);
        config::set_limit_for_test(settings.limit.unwrap_or(u64::MAX));
        token::start_over();
        shadow::start_over();
        turns::seed(u64::from(number));
        log::open(0).unwrap();
        config::start();
        Runtime { folder, _alone: alone }
    }

    /// Runs threads of a program at once, and waits for them.
    fn run(&self, count: usize, act: impl Fn(usize, *mut Thread) + Sync) {
        let start = Barrier::new(count);
        std::thread::scope(|scope| {
            for number in 0..count {
                let (start, act) = (&start, &act);
                scope.spawn(move || {
                    let t = thread::allocate();
                    // SAFETY: the new thread's own state.
                    unsafe { (*t).tid = sys::thread_id() };
                    thread::set_current(t);
                    start.wait();
                    act(number, t);
                    if !enter().is_null() {
                        // SAFETY: in a hook of `t`.
                        unsafe { step_aside(t) };
                    }
                    thread::set_current(core::ptr::null_mut());
                });
            }
        });
    }

    /// Ends the recording and reads it.
    fn read(&self) -> (Head, Vec<Record>) {
        config::stop();
        read(&self.folder)
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        config::stop();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[derive(Debug, PartialEq)]
struct Record {
    thread: u32,
    tag: u8,
    pc: u64,
    address: u64,
    value: u64,
    bytes: Vec<u8>,
}

/// All records of the only log in a folder, by the description of the format alone.
fn read(folder: &Path) -> (Head, Vec<Record>) {
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let tail = files.into_iter().find(|path| path.extension().unwrap() == "tail").unwrap();
    let (log, tail) = (std::fs::read(tail.with_extension("log")), std::fs::read(tail).unwrap());
    // SAFETY: the tail begins with a head, which consists of numbers.
    let head = unsafe { tail.as_ptr().cast::<Head>().read_unaligned() };
    let mut records = Vec::new();
    let log = log.unwrap_or_default();
    let mut rest = &log[..head.base as usize];
    while !rest.is_empty() {
        assert_eq!(&rest[..4], b"frch");
        let length = u32::from_le_bytes(rest[4..8].try_into().unwrap()) as usize;
        let payload = &rest[CHUNK_HEAD..CHUNK_HEAD + length];
        assert_eq!(u64::from_le_bytes(rest[8..16].try_into().unwrap()), checksum(payload));
        decode(payload, &mut records);
        rest = &rest[CHUNK_HEAD + length..];
    }
    let used = (head.end - head.base) as usize;
    decode(&tail[BUFFER_AT + CHUNK_HEAD..BUFFER_AT + used], &mut records);
    (head, records)
}

fn decode(mut payload: &[u8], out: &mut Vec<Record>) {
    let (mut pc, mut addresses, mut thread) = (0u64, [0u64; 2], 0);
    while !payload.is_empty() {
        let (mut tag, lengths) = (payload[0], usize::from(payload[1]));
        payload = &payload[2..];
        let mut number = |size: usize| {
            let mut bytes = [0; 8];
            bytes[..size].copy_from_slice(&payload[..size]);
            payload = &payload[size..];
            u64::from_le_bytes(bytes)
        };
        pc = pc.wrapping_add(unzigzag(number(PC_SIZES[lengths & 3])));
        let near = &mut addresses[neighbourhood(tag)];
        *near = near.wrapping_add(unzigzag(number(SIZES[lengths >> 2 & 7])));
        let address = *near;
        let mut value = number(SIZES[lengths >> 5]);
        if tag == Tag::Switch as u8 {
            thread = value as u32;
            continue;
        }
        let is_access = tag & !crate::format::INEXACT < ACCESSES && tag < 0x80;
        if is_access && tag & 7 == POINTER {
            (tag, value) = (tag & !7 | 3, address.wrapping_add(unzigzag(value)));
        }
        let has_bytes = match is_access {
            true => tag & 7 == RUN,
            false => Tag::from_code(tag).unwrap().has_bytes(),
        };
        let (bytes, rest) = payload.split_at(if has_bytes { value as usize } else { 0 });
        payload = rest;
        out.push(Record { thread, tag, pc, address, value, bytes: bytes.to_vec() });
    }
}

/// Memory that threads share without synchronisation of their own.
struct Shared(UnsafeCell<u64>);
// SAFETY: what the tests want to know.
unsafe impl Sync for Shared {}

/// Uses processor time outside hooks.
fn compute(time: Duration) {
    let tid = sys::thread_id();
    let until = sys::processor_time(tid).unwrap() + time.as_nanos() as u64;
    while sys::processor_time(tid).unwrap() < until {
        std::hint::spin_loop();
    }
}

/// The order of records is the order of steps, and no step is lost, although the token is released, passed on, and taken from
/// threads that sleep and compute.
#[test]
fn the_token_is_held_by_one_thread_at_a_time() {
    const STEPS: usize = 300;
    for threads in [2, 8, 64, 400] {
        let runtime = Runtime::start(Settings::default());
        let counter = Shared(UnsafeCell::new(0));
        let (all, steps) = (&counter, STEPS.min(24_000 / threads));
        runtime.run(threads, |number, t| {
            let mut random = number as u64 + 1;
            for _ in 0..steps {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                assert_eq!(enter(), t);
                // SAFETY: in a hook of `t`; only the holder of the token is here.
                unsafe {
                    let before = all.0.get().read();
                    log::put(t, Tag::SemPost as u8, 1, 8, before);
                    std::hint::spin_loop();
                    all.0.get().write(before + 1);
                    match random >> 60 {
                        0 | 1 => step_aside(t),
                        _ => leave(t),
                    }
                }
                match random >> 50 & 1023 {
                    0 => std::thread::sleep(Duration::from_millis(5)),
                    1 => compute(Duration::from_millis(4)),
                    _ => {}
                }
            }
        });
        let (head, records) = runtime.read();
        let total = (threads * steps) as u64;
        // SAFETY: all threads have ended.
        assert_eq!(unsafe { counter.0.get().read() }, total);
        let values = records.iter().filter(|r| r.tag == Tag::SemPost as u8).map(|r| r.value);
        assert!(values.eq(0..total), "{threads} threads");
        assert_eq!((head.state, queue::len()), (0, 0));
        assert_eq!(token::OWNER.load(Ordering::SeqCst), token::FREE);
    }
}

/// A thread that holds the token and computes loses it, and its announced store is recorded exactly.
#[test]
fn the_token_is_taken_from_a_thread_that_computes() {
    let runtime = Runtime::start(Settings::default());
    let (memory, is_done) = (Shared(UnsafeCell::new(0)), std::sync::atomic::AtomicBool::new(false));
    let shared = (&memory, &is_done);
    runtime.run(2, |number, t| {
        let (memory, is_done) = shared;
        let address = memory.0.get();
        if number == 0 {
            // SAFETY: what a hook of a store and the store do.
            unsafe {
                assert_eq!(enter(), t);
                access::range(t, address as usize, 8, 5, true);
                leave(t);
                address.write_volatile(77);
            }
            while !is_done.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        } else {
            // SAFETY: a word of the test.
            while unsafe { address.read_volatile() } != 77 {
                std::thread::yield_now();
            }
            assert_eq!(enter(), t);
            // SAFETY: in a hook of `t`.
            unsafe { leave(t) };
            is_done.store(true, Ordering::Relaxed);
        }
    });
    let (head, records) = runtime.read();
    let took = records.iter().position(|r| r.tag == Tag::Took as u8).unwrap();
    // A write of eight bytes, not marked as inexact.
    let write = records.iter().position(|r| r.tag == access::tag(crate::format::Access::Write, 8));
    let write = write.unwrap();
    assert_eq!((records[write].value, write), (77, took + 1));
    assert_eq!(head.takes, 0, "it did not sleep");
}

/// A full buffer goes to the file, whichever thread writes, and nothing is lost or mixed up.
#[test]
fn the_log_holds_what_many_threads_wrote() {
    const THREADS: usize = 12;
    const RECORDS: u64 = 6000;
    for is_free_running in [false, true] {
        let runtime = Runtime::start(Settings { is_free_running, ..Settings::default() });
        let first = thread::count();
        runtime.run(THREADS, |number, t| {
            for i in 0..RECORDS {
                assert_eq!(enter(), t);
                let address = (number << 32) + (i * i) as usize;
                // SAFETY: in a hook of `t`.
                unsafe {
                    match i % 3 {
                        0 => log::put(t, Tag::Alloc as u8, i as usize, address, i << (i % 60)),
                        1 => log::put(t, 3, usize::MAX - i as usize, address, u64::MAX - i),
                        _ => {
                            let bytes = [i as u8; 100];
                            log::put_with(t, Tag::Event as u8, 9, address, 100, &bytes);
                        }
                    }
                    leave(t);
                }
            }
        });
        let (head, records) = runtime.read();
        assert!(head.base > 0, "the buffer was full several times");
        let mut next = vec![0u64; THREADS];
        for record in records.iter().filter(|r| r.tag != Tag::Turn as u8) {
            let i = next[(record.address >> 32) as usize];
            let number = record.address >> 32;
            assert_eq!(record.address, (number << 32) + i * i);
            match i % 3 {
                0 => assert_eq!((record.pc, record.value), (i, i << (i % 60))),
                1 => assert_eq!((record.pc, record.value), (u64::MAX - i, u64::MAX - i)),
                _ => assert_eq!(record.bytes, [i as u8; 100]),
            }
            assert!(record.thread >= first);
            next[number as usize] += 1;
        }
        assert_eq!(next, [RECORDS; THREADS], "free-running: {is_free_running}");
    }
}

/// What stops the recording stops it for all threads, and none stays behind.
#[test]
fn all_threads_go_on_when_recording_ends() {
    let limit = Some(1 << 20);
    let runtime = Runtime::start(Settings { limit, ..Settings::default() });
    runtime.run(100, |_, t| {
        for i in 0..2000u64 {
            if enter().is_null() {
                continue;
            }
            // SAFETY: in a hook of `t`.
            unsafe {
                log::put_with(t, Tag::Event as u8, 9, 0, 100, &[i as u8; 100]);
                leave(t);
            }
        }
    });
    let (head, records) = runtime.read();
    assert_eq!(head.state, 3);
    assert!(head.base <= 1 << 20 && records.len() > 1000);
}

/// Memory of one thread costs next to nothing, and what threads share is recorded: each thread finds what the one before
/// did, held back or not.
#[test]
fn the_filter_keeps_what_threads_share() {
    const THREADS: usize = 16;
    const ROUNDS: u64 = 200;
    let runtime = Runtime::start(Settings { is_filtered: true, ..Settings::default() });
    let memory: Vec<Shared> = (0..=THREADS).map(|_| Shared(UnsafeCell::new(0))).collect();
    let owners = Mutex::new(Vec::new());
    runtime.run(THREADS, |number, t| {
        for i in 0..ROUNDS {
            assert_eq!(enter(), t);
            // SAFETY: in a hook of `t`; the runtime writes, as for a call of libc.
            unsafe {
                for at in [memory[1 + number].0.get(), memory[0].0.get()] {
                    access::before_write(t, at as usize, 8);
                    at.write((number as u64) << 32 | i);
                    access::written(t, at as usize, 8, 3);
                }
                owners.lock().unwrap().push((*t).id);
                leave(t);
            }
        }
    });
    let (_, records) = runtime.read();
    let at = |record: &Record, memory: &Shared| record.address == memory.0.get() as u64;
    for (number, own) in memory[1..].iter().enumerate() {
        let records = records.iter().filter(|r| at(r, own)).count();
        assert!(records <= 1, "{records} of {number}'s own memory");
    }
    // For each stretch in which one thread has the memory, the last write is recorded, at once or
    // late.
    let mut last = owners.into_inner().unwrap();
    last.dedup();
    let writers: Vec<u32> = records
        .iter()
        .filter(|r| at(r, &memory[0]))
        .map(|r| match r.tag == Tag::Delayed as u8 {
            true => Delayed::from_bytes(&r.bytes).unwrap().thread,
            false => r.thread,
        })
        .collect();
    let mut order = writers.clone();
    order.dedup();
    assert!(last.len() > 10, "they took turns");
    // The very last stretch has only its first write: no thread came after it.
    assert_eq!(order, last);
}

/// Functions are looked up while other threads look up the same.
#[test]
fn libc_is_found_by_many_threads_at_once() {
    use next::Next;
    static NAMES: [Next; 4] = [
        Next::new(c"strlen"),
        Next::new(c"pthread_cond_wait"),
        Next::new(c"malloc_usable_size"),
        Next::new(c"foresee_has_no_such_function"),
    ];
    let start = Barrier::new(16);
    let found: Vec<[usize; 4]> = std::thread::scope(|scope| {
        let look = || {
            start.wait();
            [0, 1, 2, 3].map(|i| NAMES[i].address())
        };
        let threads: Vec<_> = (0..16).map(|_| scope.spawn(look)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(found[0][..3].iter().all(|&at| at != 0) && found[0][3] == 0);
    assert!(found.iter().all(|at| *at == found[0]));
}

/// The table of functions whose calls are recorded, which grows while other threads look at it.
#[test]
fn wanted_functions_are_those_that_were_asked_for() {
    modules::want(0x1000, 0x20);
    modules::want(0x3000, 1);
    modules::want(0x1000, 0x20);
    // Return addresses are behind calls: the first is beyond the function's first byte.
    for (pc, is_in) in
        [(0x1000, false), (0x1001, true), (0x1020, true), (0x1021, false), (0x3001, true)]
    {
        assert_eq!(modules::is_wanted(pc), is_in, "{pc:x}");
    }
    const THREADS: usize = 12;
    const SHARED: usize = 400;
    let start = Barrier::new(THREADS);
    std::thread::scope(|scope| {
        for number in 0..THREADS {
            let start = &start;
            scope.spawn(move || {
                start.wait();
                for i in 0..SHARED {
                    // All ask for the same ones, each in an order of its own.
                    let at = 0x8_0000 + (i * 7 + number * 31) % SHARED * 0x100;
                    modules::want(at, 0x10);
                    assert!(modules::is_wanted(at + 1) && modules::is_wanted(at + 0x10));
                    assert!(!modules::is_wanted(at) && !modules::is_wanted(at + 0x11));
                }
            });
        }
    });
    // Each took one place, so there are as many left.
    for i in 0..2000 {
        modules::want(0x10_0000 + i * 0x100, 0x10);
    }
    let left = 1024 - SHARED - 2;
    for (i, is_in) in [(0, true), (left - 1, true), (left, false), (1999, false)] {
        assert_eq!(modules::is_wanted(0x10_0000 + i * 0x100 + 1), is_in, "{i} of {left}");
    }
}
