//! OpenMP: the order that teams, barriers, tasks and locks imply.
//!
//! The libraries behind it (libgomp, libomp) block in ways that no hook sees, so their entry points
//! are intercepted instead, and what they do inside is not recorded. Order is recorded as steps on
//! channels, as for files:
//!
//! - The thread that begins a team sends, and the members look; members send when they finish, and
//!   the first thread looks.
//! - At a barrier each member sends, and looks when it leaves. Two channels alternate: no thread
//!   can be two barriers ahead of another, so no false order arises.
//! - Tasks: see `tasks.rs`.

/// Intercepts entry points of the libraries: `name(arguments), return address => what to do`, all
/// of them machine words.
macro_rules! entries {
    ($($name:ident($($arg:ident),*), $pc:ident => $body:expr;)*) => { $(
        mod $name {
            #[allow(unused_imports)]
            use super::*;

            #[allow(unused_variables)]
            pub(super) extern "C" fn handle($($arg: usize,)* $pc: f64) -> usize { $body }
        }
        $crate::runtime::calls::stand_in_front! { $name => $name::handle }
    )* };
}

/// The same for functions that return nothing.
macro_rules! void {
    ($body:expr) => {{
        $body;
        0
    }};
}

mod gnu;
mod llvm;
mod locks;
mod tasks;

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use super::calls::calls;
use super::channels::Channel;
use super::thread::Thread;
use super::{access, back_in_program, enter, go_to_library, leave};
use crate::format::{Tag, channel, task};

/// A team, which lives as long as its parallel region, in the frame of the thread that began it.
pub(super) struct Team {
    /// The thread that began it.
    first: u32,
    /// The number of other teams of that thread.
    level: u32,
    /// What members run, and its argument.
    function: usize,
    words: *const usize,
    count: usize,
    /// The threads that have executed tasks of the team, as bits.
    workers: AtomicU64,
}

/// The channels of a team besides those of its alternating barriers, which have the first two numbers.
const END: usize = 2;

impl Team {
    /// What to call if nothing is recorded.
    fn unrecorded(function: usize, words: &[usize]) -> Team {
        let (words, count) = (words.as_ptr(), words.len());
        Team { first: 0, level: 0, function, words, count, workers: AtomicU64::new(0) }
    }

    fn is_recorded(&self) -> bool {
        self.first != 0
    }

    fn note(&self, t: *mut Thread, tag: Tag, pc: usize, what: usize) {
        let number = (self.first as usize) << 16 | (self.level as usize & 0x3fff) << 2 | what;
        // SAFETY: callers are in a hook of `t`.
        unsafe { Channel::made(channel::TEAM, number, self.first - 1).note(t, tag, pc) }
    }

    fn note_ordered(&self, t: *mut Thread, tag: Tag, pc: usize) {
        let number = (self.first as usize) << 16 | self.level as usize & 0xffff;
        // SAFETY: as above.
        unsafe { Channel::made(channel::ORDERED, number, self.first - 1).note(t, tag, pc) }
    }
}

/// Whether there has been a team.
static IS_USED: AtomicBool = AtomicBool::new(false);

/// The program is over: what its libraries still do is not recorded if one of them is OpenMP's,
/// which cleans up with locks and conditions that no recorded thread has used.
pub(super) fn retire() {
    let t = super::thread::current();
    if IS_USED.load(Relaxed) && !t.is_null() {
        // SAFETY: the thread's own state.
        unsafe {
            if !enter().is_null() {
                super::step_aside(t);
            }
            (*t).busy.store(super::IN_LIBRARY, Relaxed);
        }
    }
}

/// Begins a team: `act` makes the library run its first argument, with the second, in all members.
fn begin<R>(
    function: usize,
    words: &[usize],
    pc: usize,
    plain: impl FnOnce() -> R,
    act: impl FnOnce(*const Team) -> R,
) -> R {
    let t = enter();
    if t.is_null() {
        return plain();
    }
    // SAFETY: in a hook of `t`; a team outlives its region.
    unsafe {
        access::settle(t);
        IS_USED.store(true, Relaxed);
        let outer = (*t).team;
        let team = Team {
            first: (*t).id,
            level: if outer.is_null() { 0 } else { (*outer).level + 1 },
            function,
            words: words.as_ptr(),
            count: words.len(),
            workers: AtomicU64::new(0),
        };
        team.note(t, Tag::Send, pc, 0);
        let out = go_to_library(t, || act(&raw const team));
        if !enter().is_null() {
            team.note(t, Tag::Look, pc, END);
            tasks::look_at_all(t, &raw const team, pc);
            tasks::tell(t, task::ALL_AWAITED, pc);
            leave(t);
        }
        out
    }
}

/// Runs the code of a team's member. The library has written its arguments, `given`, to the
/// thread's stack.
///
/// # Safety
/// The library calls this for a team that [`begin`] passed to it.
unsafe fn take_part(team: *const Team, given: [(usize, usize); 2], run: impl FnOnce()) {
    // SAFETY: the team lasts; `given` is the library's own.
    unsafe {
        let mut outer = (core::ptr::null(), 0);
        back_in_program(
            |t| {
                outer = ((*t).team, (*t).round);
                ((*t).team, (*t).round) = (team, 1);
                (*team).note(t, Tag::Look, 0, 0);
                for (at, size) in given {
                    if at != 0 {
                        access::before_write(t, at, size);
                        access::written(t, at, size, 0);
                    }
                }
            },
            run,
            |t| (*team).note(t, Tag::Send, 0, END),
        );
        let t = super::thread::current();
        if !t.is_null() {
            ((*t).team, (*t).round) = outer;
        }
    }
}

/// Waits for the team at a barrier.
fn barrier<R>(pc: usize, act: impl FnOnce() -> R) -> R {
    let t = enter();
    if t.is_null() {
        return act();
    }
    // SAFETY: in a hook of `t`.
    unsafe {
        arrive(t, pc);
        let out = go_to_library(t, act);
        if !enter().is_null() {
            depart(t, pc);
            leave(t);
        }
        out
    }
}

/// # Safety
/// In a hook of `t`.
unsafe fn arrive(t: *mut Thread, pc: usize) {
    // SAFETY: by the caller's promise; a member's team lasts.
    unsafe {
        access::settle(t);
        if let Some(team) = (*t).team.as_ref() {
            team.note(t, Tag::Send, pc, ((*t).round & 1) as usize);
        }
    }
}

/// # Safety
/// In a hook of `t`.
unsafe fn depart(t: *mut Thread, pc: usize) {
    // SAFETY: as above.
    unsafe {
        if let Some(team) = (*t).team.as_ref() {
            team.note(t, Tag::Look, pc, ((*t).round & 1) as usize);
            tasks::look_at_all(t, team, pc);
            tasks::tell(t, task::ALL_AWAITED, pc);
            (*t).round += 1;
        }
    }
}

/// A step on what orders the iterations of a loop: waits with `act`, then records; or records, then
/// releases others with `act`.
fn ordered(pc: usize, before: Option<Tag>, after: Option<Tag>, act: impl FnOnce()) {
    let t = enter();
    if t.is_null() {
        return act();
    }
    // SAFETY: in a hook of `t`; a member's team lasts.
    unsafe {
        access::settle(t);
        let team = (*t).team.as_ref();
        if let (Some(team), Some(tag)) = (team, before) {
            team.note_ordered(t, tag, pc);
        }
        go_to_library(t, act);
        if !enter().is_null() {
            if let (Some(team), Some(tag)) = (team, after) {
                team.note_ordered(t, tag, pc);
            }
            leave(t);
        }
    }
}

// Queries and settings: the first of them makes the library initialise itself.
calls! {
    Inside omp_get_thread_num();
    Inside omp_get_num_threads();
    Inside omp_get_max_threads();
    Inside omp_get_num_procs();
    Inside omp_get_thread_limit();
    Inside omp_get_level();
    Inside omp_get_active_level();
    Inside omp_in_parallel();
    Inside omp_get_dynamic();
    Inside omp_set_num_threads(count);
    Inside omp_set_dynamic(on);
    Inside omp_set_nested(on);
    Inside omp_set_max_active_levels(count);
    Inside omp_set_schedule(kind, chunk);
    Inside omp_get_schedule(kind, chunk) |c| { c.writes(kind, 4); c.writes(chunk, 4); };
}
