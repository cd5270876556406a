//! Who takes the next step: as the schedule says, and after its end as its tail does.

use core::sync::atomic::{AtomicU64, Ordering};

use super::super::thread::{self, Thread, life};
use super::{CHANGES, IDS, end, head, kernel, objects, step, sync};
use crate::exploring::{Entry, TIME_OUT, kind, lock, reason, state, tail};

/// Whether a thread can do what it is about to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Can {
    No,
    Yes,
    /// Only if its time is over.
    TimeOut,
}

static RANDOM: AtomicU64 = AtomicU64::new(1);
/// How many steps were taken since anything changed.
static STILL: AtomicU64 = AtomicU64::new(0);
/// How many steps threads may take without changing anything while all repeat themselves.
const PATIENCE: u64 = 64;
/// The longest loop that is recognised, and how many operations are remembered for that.
const LOOP: usize = 4;
pub(in crate::runtime) const REMEMBERED: usize = 2 * LOOP;

pub(super) fn prepare(seed: u64) {
    RANDOM.store(seed, Ordering::Relaxed);
}

/// A random number (SplitMix64): neighbouring seeds give unrelated schedules.
fn random() -> u64 {
    let x = RANDOM.load(Ordering::Relaxed).wrapping_add(0x9e37_79b9_7f4a_7c15);
    RANDOM.store(x, Ordering::Relaxed);
    let x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

/// Whether a thread at the gate can do what it asks for.
unsafe fn can(u: *mut Thread) -> Can {
    // SAFETY: threads are never moved, and all but the caller sleep.
    unsafe {
        let ask = &(*u).ask;
        let address = ask.address as usize;
        let yes = |is_possible: bool| if is_possible { Can::Yes } else { Can::No };
        match ask.kind {
            kind::LOCK => {
                let is_free = objects::admits(address, (*u).id, ask.sub);
                match ask.sub {
                    _ if is_free => Can::Yes,
                    sub if sub & lock::TRY != 0 => Can::Yes,
                    sub if sub & lock::TIMED != 0 => Can::TimeOut,
                    _ => Can::No,
                }
            }
            kind::WAIT_END => {
                let is_free = objects::admits(ask.a[0] as usize, (*u).id, 0);
                match is_free {
                    false => Can::No,
                    true if (*u).woken.load(Ordering::SeqCst) != 0 => Can::Yes,
                    true if ask.sub != 0 => Can::TimeOut,
                    true => Can::No,
                }
            }
            kind::SEM_WAIT => match ask.sub {
                _ if sync::sem_count(address) > 0 => Can::Yes,
                lock::TRY => Can::Yes,
                lock::TIMED => Can::TimeOut,
                _ => Can::No,
            },
            kind::PASS => yes(objects::has_passed(address, ask.a[0])),
            kind::ONCE_BEGIN => yes(!objects::is_in_progress(address)),
            kind::JOIN => {
                let other = thread::get(ask.a[0] as u32);
                let has_ended = (*other).life.load(Ordering::SeqCst) == life::ENDED;
                yes(has_ended || ask.sub != 0)
            }
            kind::UNKNOWN => yes(kernel::can(u)),
            _ => Can::Yes,
        }
    }
}

/// The threads at the gate.
fn waiting() -> impl Iterator<Item = *mut Thread> + Clone {
    (1..thread::count()).map(thread::get).filter(|&u| {
        // SAFETY: threads are never moved.
        unsafe { (*u).ask.kind != kind::NONE && (*u).life.load(Ordering::SeqCst) == life::BEGUN }
    })
}

/// The thread that takes the next step. `t` is at the gate and has the token.
pub(super) unsafe fn next(t: *mut Thread) -> *mut Thread {
    // SAFETY: by the caller's promise.
    unsafe {
        let done = head().done;
        if done >= head().most {
            end(state::CUT, 0, done);
        }
        match step(done) {
            Some(step) => forced(step.thread, step.choice, done),
            None => freely(t),
        }
    }
}

/// The thread that goes on after the end of `t`; `None` if there is none.
pub(super) unsafe fn after_end(t: *mut Thread) -> Option<*mut Thread> {
    // SAFETY: by the caller's promise.
    unsafe { waiting().next().is_some().then(|| next(t)) }
}

unsafe fn forced(index: u32, choice: u32, at: u64) -> *mut Thread {
    let fail = |why| end(state::DIVERGED, why, at);
    let id = IDS.get(index as usize).map_or(0, |id| id.load(Ordering::SeqCst));
    if id == 0 {
        fail(reason::NOT_STARTED);
    }
    let u = thread::get(id);
    // SAFETY: threads are never moved.
    unsafe {
        if (*u).life.load(Ordering::SeqCst) == life::ENDED {
            fail(reason::ENDED);
        }
        match can(u) {
            Can::No => fail(reason::BLOCKED),
            Can::TimeOut if choice != TIME_OUT => fail(reason::BLOCKED),
            Can::Yes if choice == TIME_OUT => fail(reason::NO_TIME),
            _ => {}
        }
        (*u).choice = choice;
        u
    }
}

unsafe fn freely(t: *mut Thread) -> *mut Thread {
    let mut best: [Option<*mut Thread>; 3] = [None; 3];
    let mut counts = [0u64; 3];
    let is_random = head().tail == tail::RANDOM;
    for u in waiting() {
        // SAFETY: threads are never moved, and all but the caller sleep.
        unsafe {
            let rank = match can(u) {
                Can::No => continue,
                Can::Yes if !repeats(u) => 0,
                Can::TimeOut if is_random && !repeats(u) => 0,
                Can::TimeOut => 1,
                Can::Yes => 2,
            };
            counts[rank] += 1;
            let is_better = match (best[rank], head().tail) {
                (None, _) => true,
                (Some(_), tail::RANDOM) => random().is_multiple_of(counts[rank]),
                (Some(v), tail::PRIORITIES) => (*u).priority > (*v).priority,
                // Those that repeat themselves take turns.
                (Some(v), _) if rank == 2 => (*u).moved < (*v).moved,
                (Some(v), _) => v != t && (u == t || is_before(u, v)),
            };
            if is_better {
                best[rank] = Some(u);
            }
        }
    }
    let Some((rank, u)) = best.iter().enumerate().find_map(|(rank, u)| Some((rank, (*u)?))) else {
        // SAFETY: threads are never moved, and all but the caller sleep.
        return match unsafe { kernel::await_input(waiting()) } {
            // SAFETY: by the caller's promise.
            true => unsafe { freely(t) },
            false => end(state::DEADLOCK, 0, head().done),
        };
    };
    if rank == 2 && STILL.fetch_add(1, Ordering::Relaxed) > PATIENCE {
        end(state::SPINNING, 0, head().done);
    }
    // SAFETY: as above.
    unsafe {
        (*u).choice = match (can(u), (*u).ask.kind) {
            (Can::TimeOut, _) => TIME_OUT,
            (_, kind::SIGNAL) if is_random => {
                let waiters = sync::waiters((*u).ask.address as usize);
                if waiters == 0 { 0 } else { (random() % u64::from(waiters)) as u32 }
            }
            _ => 0,
        };
    }
    u
}

/// Whether a thread comes before another in the order of their names.
unsafe fn is_before(u: *mut Thread, v: *mut Thread) -> bool {
    // SAFETY: threads are never moved.
    unsafe {
        let (u, v) = (&*u, &*v);
        u.path[..u.path_len as usize] < v.path[..v.path_len as usize]
    }
}

/// Whether a thread has done the same as just before, was told the same, and nothing has changed since.
unsafe fn repeats(u: *mut Thread) -> bool {
    // SAFETY: threads are never moved.
    let (seen, changes) = unsafe { (&(*u).seen, &(*u).seen_at) };
    let now = CHANGES.load(Ordering::Relaxed);
    (1..=LOOP)
        .any(|n| seen[2 * n - 1] != 0 && changes[2 * n - 1] == now && seen[..n] == seen[n..2 * n])
}

/// Remembers an operation and what its thread was told.
pub(super) unsafe fn remember(t: *mut Thread, entry: &Entry) {
    // SAFETY: `t` has the token.
    unsafe {
        let parts = [
            u64::from(entry.kind),
            entry.pc,
            entry.address,
            u64::from(entry.told_kind),
            entry.told[0],
            entry.told[1],
        ];
        let mixed = parts.iter().fold(0x9e37_79b9_7f4a_7c15u64, |sum, part| {
            (sum.rotate_left(29) ^ part).wrapping_mul(0xbf58_476d_1ce4_e5b9)
        });
        let now = CHANGES.load(Ordering::Relaxed);
        if (*t).seen_at[0] != now {
            STILL.store(0, Ordering::Relaxed);
        }
        (*t).seen.copy_within(..REMEMBERED - 1, 1);
        (*t).seen_at.copy_within(..REMEMBERED - 1, 1);
        ((*t).seen[0], (*t).seen_at[0]) = (mixed | 1, now);
        (*t).moved = head().done;
        if head().tail == tail::PRIORITIES {
            change_priority(t);
        }
    }
}

/// How many changes of priority there are in a usual run.
const PRIORITY_CHANGES: u64 = 2;

/// Gives a thread a priority when it is first seen, and a low one at a few steps, by chance.
unsafe fn change_priority(t: *mut Thread) {
    // SAFETY: `t` has the token.
    unsafe {
        if random() % head().expected.max(1) < PRIORITY_CHANGES {
            (*t).priority = random() % 1000;
        }
    }
}

/// The priority of a new thread.
pub(super) unsafe fn give_priority(t: *mut Thread) {
    // SAFETY: no other thread uses the new one yet.
    unsafe { (*t).priority = 1000 + random() % (1 << 32) };
}
