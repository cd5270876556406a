//! The lengths of turns: random, from a generator with a seed, so that a schedule can be repeated.
//!
//! Turns are short at first, because most errors of small programs show only when threads
//! interleave, and grow with the run, because passing the token on costs as much as hundreds of
//! hooks. Occasionally there are some short turns between long ones. The figures were chosen by
//! measurement (`docs/capture/`).

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use super::thread::Thread;
use super::{config, explore, gate, log};

/// The average length of the longest turns.
const LONGEST: u64 = 40_000;
/// The average length of the shortest turns.
const SHORTEST: u64 = 4;
/// A turn is, on average, this fraction of all hooks so far.
const SHARE: u64 = 64;
/// How many short turns come in a row between long ones.
const BURST: u32 = 16;

/// The turns of a thread that goes before others after a replay.
const PATIENT: i32 = 1 << 20;

/// The generator's state, and the number of short turns left; only the holder of the token uses them.
static RANDOM: AtomicU64 = AtomicU64::new(0);
static SHORT: AtomicU32 = AtomicU32::new(0);

/// Begins with a seed.
pub(super) fn seed(seed: u64) {
    // Neighbouring seeds must give unrelated schedules.
    let mixed = (seed ^ 0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    RANDOM.store(mixed ^ mixed >> 31 | 1, Relaxed);
}

/// A random number, for the holder of the token.
pub(super) fn random() -> u64 {
    let mut x = RANDOM.load(Relaxed);
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    RANDOM.store(x, Relaxed);
    x.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 20
}

/// Begins a turn.
///
/// # Safety
/// `t` holds the token.
pub(super) unsafe fn begin(t: *mut Thread) {
    // SAFETY: by the caller's promise.
    let id = unsafe { (*t).id };
    let length = match config::quantum() {
        // Every hook asks whether the schedule lets the thread continue.
        _ if gate::is_following() || explore::is_on() => 0,
        _ if gate::is_patient(id) => PATIENT,
        // SAFETY: by the caller's promise.
        0 => length(unsafe { log::hooks() }),
        fixed => fixed,
    };
    // SAFETY: the thread's own state, or that of a thread the caller acts for.
    unsafe { ((*t).turn, (*t).fuel) = (length, length) };
}

fn length(hooks: u64) -> i32 {
    let usual = (hooks / SHARE).clamp(SHORTEST, LONGEST);
    let short = SHORT.load(Relaxed);
    let most = match short {
        0 if random().is_multiple_of(4) => {
            SHORT.store(BURST, Relaxed);
            4 * SHORTEST
        }
        0 => 2 * usual,
        _ => {
            SHORT.store(short - 1, Relaxed);
            4 * SHORTEST
        }
    };
    (random() % most) as i32 + 1
}
