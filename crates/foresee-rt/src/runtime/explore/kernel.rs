//! What a program does through the kernel. The search has no model of it: all that is known here is that it happens, so that
//! nothing is claimed about it.

use super::super::channels;
use super::super::sys;
use super::super::thread::{self, Thread};
use super::{Ask, gate, head, is_on, tell};
use crate::exploring::{beyond, kind, told};
use crate::format::Tag;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// The program goes beyond what is explored: bits of [`mod@beyond`].
pub(in crate::runtime) fn goes_beyond(what: u32) {
    if is_on() {
        head().beyond |= what;
    }
}

/// The channels that were used, by a hash of their numbers.
static CHANNELS: [Users; 1024] = [const { Users::none() }; 1024];

/// Which threads use a channel.
struct Users {
    channel: AtomicUsize,
    sender: AtomicU32,
    receiver: AtomicU32,
}

/// More than one thread.
const SEVERAL: u32 = u32::MAX;

impl Users {
    const fn none() -> Users {
        let (sender, receiver) = (AtomicU32::new(0), AtomicU32::new(0));
        Users { channel: AtomicUsize::new(0), sender, receiver }
    }
}

/// The users of a channel; `None` if there are too many channels.
fn users(channel: usize) -> Option<&'static Users> {
    let first = channel.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let slots = (0..CHANNELS.len()).map(|i| &CHANNELS[(first + i) % CHANNELS.len()]);
    slots.into_iter().find(|users| {
        let other = users.channel.load(Ordering::Relaxed);
        if other == 0 {
            users.channel.store(channel, Ordering::Relaxed);
        }
        other == 0 || other == channel
    })
}

/// A thread uses a channel: what one sends and another receives, or looks for, depends on the schedule.
pub(in crate::runtime) fn uses(t: *mut Thread, channel: usize, tag: Tag) {
    // No channel has the number zero in the table.
    let Some(users) = users(channel | 1 << 63) else { return goes_beyond(beyond::CHANNEL) };
    // SAFETY: threads are never moved.
    let id = unsafe { (*t).id };
    let whose = if tag == Tag::Send { &users.sender } else { &users.receiver };
    let before = whose.load(Ordering::Relaxed);
    if before != id {
        whose.store(if before == 0 { id } else { SEVERAL }, Ordering::Relaxed);
    }
    let (sender, receiver) =
        (users.sender.load(Ordering::Relaxed), users.receiver.load(Ordering::Relaxed));
    // What several threads receive, one takes from the other.
    let is_shared = receiver == SEVERAL && tag == Tag::Receive;
    if sender != 0 && receiver != 0 && (sender != receiver || sender == SEVERAL) || is_shared {
        goes_beyond(beyond::CHANNEL);
    }
}

/// A thread is about to receive something from a pipe or the like: it can as soon as something is there.
///
/// # Safety
/// In a hook of `t`.
pub(in crate::runtime) unsafe fn receives(t: *mut Thread, file: u32, pc: usize) {
    let address = file as usize;
    // SAFETY: by the caller's promise.
    unsafe {
        gate(t, Ask { kind: kind::UNKNOWN, sub: RECEIVES, pc, address, ..Ask::default() });
        tell(t, told::NOTHING, [0; 2], true);
    }
}

/// The mark of an operation that waits for a file.
const RECEIVES: u8 = 1;

/// Whether a thread waits for a file.
unsafe fn is_receiving(u: *mut Thread) -> bool {
    // SAFETY: threads are never moved.
    unsafe { (*u).ask.kind == kind::UNKNOWN && (*u).ask.sub == RECEIVES }
}

/// Whether a thread that is about to do something unknown can do it.
pub(super) unsafe fn can(u: *mut Thread) -> bool {
    // SAFETY: threads are never moved.
    unsafe { !is_receiving(u) || channels::has_input((*u).ask.address as usize) }
}

/// No thread can move. If some wait for files, the kernel may still have something for one of them: returns that.
pub(super) unsafe fn await_input(mut waiting: impl Iterator<Item = *mut Thread> + Clone) -> bool {
    const PAUSE: u64 = 1_000_000;
    // SAFETY: threads are never moved.
    unsafe {
        if !waiting.clone().any(|u| is_receiving(u)) {
            return false;
        }
        waits(|| {
            while !waiting.clone().any(|u| is_receiving(u) && can(u)) {
                sys::futex_wait(&NEVER, 0, PAUSE);
            }
        });
        waiting.any(|u| is_receiving(u))
    }
}

/// Nobody wakes who waits for this.
static NEVER: AtomicU32 = AtomicU32::new(0);

/// Lets a thread make a call that may block. No other thread goes on meanwhile, so it may block for ever.
pub(in crate::runtime) fn waits<R>(act: impl FnOnce() -> R) -> R {
    if !is_on() {
        return act();
    }
    let t = thread::current();
    // SAFETY: the thread's own state.
    head().in_kernel = if t.is_null() { 0 } else { unsafe { (*t).id } };
    let out = act();
    // The process may have ended meanwhile, as far as exploration is concerned.
    if is_on() {
        head().in_kernel = 0;
    }
    out
}
