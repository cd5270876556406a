//! When a waiting thread may take the token from its holder: if the holder sleeps outside hooks, in a system call that is not
//! intercepted, or has been computing for long without a hook.
//!
//! What the holder announced in its last hook follows within a few instructions. It has happened if the holder has since
//! used a millisecond of processor time; that it was not scheduled for some time says nothing.

use core::sync::atomic::Ordering;

use super::sys::{self, Text};
use super::thread::{self, Thread};
use super::{queue, token};

/// How long the holder is watched at least.
const PATIENCE: u64 = 2_000_000;
/// The processor time after which the holder has done what it announced.
const RAN: u64 = 1_000_000;
/// The processor time that it may take in addition for each announced byte.
const RAN_PER_BYTE: u64 = 4;
/// How long a thread must not have run at all before it counts as asleep, if the kernel does not say whether it is.
const STILL: u64 = 50 * PATIENCE;

/// What the holder does while others wait.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Holder {
    /// It sleeps, or is gone.
    Sleeps,
    /// It has computed for this many nanoseconds without a hook.
    Computes(u64),
}

impl Holder {
    /// Whether a store of this size that the holder announced has certainly been carried out.
    pub(super) fn has_stored(self, size: usize) -> bool {
        match self {
            Holder::Sleeps => false,
            Holder::Computes(time) => time >= RAN + (size as u64).saturating_mul(RAN_PER_BYTE),
        }
    }
}

/// What was seen of the holder.
#[derive(Clone, Copy)]
struct Look {
    owner: u32,
    progress: (i32, u32, bool),
    /// Its processor time; `None` if there is no such thread any more.
    ran: Option<u64>,
    since: u64,
}

/// A waiting thread's view of the holder.
///
/// It must not take one thread long to notice that the holder is stuck, and many waiting threads must not wake up all the
/// time. So a thread sleeps for longer the more there are, by chance, and watches the holder only after that.
pub(super) struct Watch {
    last: Option<Look>,
    chance: u64,
}

impl Watch {
    pub(super) fn new(id: u32) -> Watch {
        let chance = sys::ticks() ^ u64::from(id).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut watch = Watch { last: None, chance };
        if queue::len() <= 2 {
            watch.last = look();
        }
        watch
    }

    /// How long to sleep.
    pub(super) fn pause(&mut self) -> u64 {
        if self.last.is_some() {
            return PATIENCE;
        }
        self.chance = self.chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        PATIENCE * (1 + (self.chance >> 33) % u64::from(2 * queue::len().max(1) - 1))
    }

    /// Looks at the holder after a pause. Returns it, and what it does, if the token may be taken from it.
    pub(super) fn look(&mut self) -> Option<(u32, Holder)> {
        let now = look();
        let (Some(before), Some(now)) = (self.last, now) else {
            self.last = now;
            return None;
        };
        if (before.owner, before.progress) != (now.owner, now.progress) {
            self.last = None;
            return None;
        }
        let waited = now.since.wrapping_sub(before.since);
        if waited < PATIENCE {
            return None;
        }
        let does = match (before.ran, now.ran) {
            (Some(then), Some(now)) if now.wrapping_sub(then) >= RAN => {
                Holder::Computes(now.wrapping_sub(then))
            }
            (_, None) => Holder::Sleeps,
            (then, ran) => {
                // SAFETY: only read; threads are never moved.
                let tid = unsafe { (&raw const (*thread::get(now.owner)).tid).read_volatile() };
                let is_still = then == ran && waited >= STILL;
                is_asleep(tid).unwrap_or(is_still).then_some(Holder::Sleeps)?
            }
        };
        Some((now.owner, does))
    }
}

fn look() -> Option<Look> {
    let owner = token::OWNER.load(Ordering::Relaxed);
    if owner == token::FREE {
        return None;
    }
    let other: *mut Thread = thread::get(owner);
    // SAFETY: only read, and only compared; a torn or stale view costs another round.
    unsafe {
        let fuel = (&raw const (*other).fuel).read_volatile();
        let place = (&raw const (*other).place).read_volatile();
        let is_busy = (*other).busy.load(Ordering::Relaxed) != 0;
        let tid = (&raw const (*other).tid).read_volatile();
        let ran = sys::processor_time(tid);
        Some(Look { owner, progress: (fuel, place, is_busy), ran, since: sys::ticks() })
    }
}

/// Whether the kernel would not run the thread now; `None` if it does not say.
fn is_asleep(tid: u32) -> Option<bool> {
    let mut path = Text::<64>::new();
    path.push(b"/proc/self/task/").number(u64::from(tid)).push(b"/stat");
    let mut text = [0u8; 512];
    // SAFETY: reads into `text`.
    let n = unsafe {
        let file =
            sys::syscall!(sys::OPENAT, -100isize, path.as_ptr(), sys::O_RDONLY | sys::O_CLOEXEC, 0);
        if file < 0 {
            return None;
        }
        let n = sys::syscall!(sys::READ, file, text.as_mut_ptr(), text.len());
        sys::syscall!(sys::CLOSE, file);
        n
    };
    let text = &text[..usize::try_from(n).unwrap_or(0)];
    // The name before the state is in parentheses and may contain some itself.
    let end = text.iter().rposition(|&b| b == b')')?;
    Some(text.get(end + 2) != Some(&b'R'))
}
