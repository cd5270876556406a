//! Tasks: created before they begin, finished before a thread that waits for them continues, and in
//! the order of their dependences.
//!
//! Each task has a channel through which its creator sends and at which the thread that executes it
//! looks. When the task is finished, that thread sends through a channel of its own: a thread that
//! waits for any tasks of the team looks at the channels of all threads that have executed some.
//! That orders more than necessary, namely after tasks that were finished but not awaited.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::Team;
use crate::format::{Tag, channel};
use crate::runtime::channels::Channel;
use crate::runtime::thread::Thread;
use crate::runtime::{access, back_in_program, enter, go_to_library, leave, thread};

static LATEST: AtomicU64 = AtomicU64::new(0);
/// Threads that have completed tasks without executing them, as bits.
static COMPLETED: AtomicU64 = AtomicU64::new(0);

/// What must be known about a task when it is executed.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Task {
    /// The program's function.
    pub(super) function: usize,
    number: u64,
    team: *const Team,
    /// What it depends on; null, or a list from [`keep`].
    depends: *mut Dependence,
}

/// An address that tasks depend on, and whether they change the object there. A null one ends a
/// list.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Dependence {
    pub(super) address: usize,
    pub(super) changes: bool,
}

impl Dependence {
    /// Several tasks may read an object at once, so there are two channels.
    fn channel(self, of_changes: bool) -> Channel {
        Channel::made(
            channel::DEPENDENCE,
            self.address << 1 | usize::from(of_changes),
            self.address as u32,
        )
    }
}

unsafe extern "C" {
    fn __libc_malloc(size: usize) -> usize;
    fn __libc_free(block: usize);
}

/// Keeps a list of what a task depends on until it is done; null if there is nothing.
pub(super) fn keep(count: usize, each: impl Fn(usize) -> Dependence) -> *mut Dependence {
    if count == 0 {
        return core::ptr::null_mut();
    }
    // SAFETY: a block of our own, with room for the last.
    unsafe {
        let list = __libc_malloc((count + 1) * size_of::<Dependence>()) as *mut Dependence;
        if !list.is_null() {
            for i in 0..count {
                list.add(i).write(each(i));
            }
            list.add(count).write(Dependence { address: 0, changes: false });
        }
        list
    }
}

/// A new task of the thread's team.
///
/// # Safety
/// In a hook of `t`.
pub(super) unsafe fn new(t: *mut Thread, function: usize, depends: *mut Dependence) -> Task {
    // SAFETY: by the caller's promise.
    let team = unsafe { (*t).team };
    Task { function, number: LATEST.fetch_add(1, Relaxed) + 1, team, depends }
}

impl Task {
    fn channel(&self) -> Channel {
        Channel::made(channel::TASK, self.number as usize, self.number as u32)
    }

    /// Sets what the task depends on.
    pub(super) fn depend(&mut self, list: *mut Dependence) {
        self.depends = list;
    }

    /// The task is passed to the thread that will execute it.
    ///
    /// # Safety
    /// In a hook of `t`.
    pub(super) unsafe fn made(&self, t: *mut Thread, pc: usize) {
        // SAFETY: by the caller's promise.
        unsafe { self.channel().note(t, Tag::Send, pc) }
    }

    /// Executes the task with `run`, after a step `first`.
    ///
    /// # Safety
    /// The library requests it, in any thread.
    pub(super) unsafe fn carry_out(self, first: impl FnOnce(*mut Thread), run: impl FnOnce()) {
        let mut outer = (core::ptr::null(), 0);
        back_in_program(
            // SAFETY: in a hook of `t`.
            |t| unsafe {
                outer = ((*t).team, (*t).round);
                (*t).team = self.team;
                self.channel().note(t, Tag::Look, 0);
                look_at_dependences(t, self.depends, 0);
                first(t);
            },
            run,
            // SAFETY: in a hook of `t`.
            |t| unsafe {
                let mut at = self.depends;
                while !at.is_null() && (*at).address != 0 {
                    (*at).channel((*at).changes).note(t, Tag::Send, 0);
                    at = at.add(1);
                }
                done(t, self.team, 0);
            },
        );
        // SAFETY: the thread's own state; the list is the task's own.
        unsafe {
            let t = thread::current();
            if !t.is_null() {
                ((*t).team, (*t).round) = outer;
            }
            if !self.depends.is_null() {
                __libc_free(self.depends as usize);
            }
        }
    }
}

/// Orders the thread after what the list depends on.
///
/// # Safety
/// In a hook of `t`; a list of [`keep`].
pub(super) unsafe fn look_at_dependences(t: *mut Thread, list: *const Dependence, pc: usize) {
    // SAFETY: by the caller's promise.
    unsafe {
        let mut at = list;
        while !at.is_null() && (*at).address != 0 {
            (*at).channel(true).note(t, Tag::Look, pc);
            if (*at).changes {
                (*at).channel(false).note(t, Tag::Look, pc);
            }
            at = at.add(1);
        }
    }
}

/// Threads with larger numbers share the last bit.
const BITS: u32 = 63;

fn done_by(bit: u32) -> Channel {
    Channel::made(channel::TASKS_DONE, bit as usize, bit.saturating_sub(1))
}

/// Records that the thread has finished a task.
unsafe fn done(t: *mut Thread, team: *const Team, pc: usize) {
    // SAFETY: in a hook of `t`; a team outlives its tasks.
    unsafe {
        let bit = (*t).id.min(BITS);
        done_by(bit).note(t, Tag::Send, pc);
        team.as_ref().map_or(&COMPLETED, |team| &team.workers).fetch_or(1 << bit, Relaxed);
    }
}

/// Orders the thread after all finished tasks of the team.
///
/// # Safety
/// In a hook of `t`; the team lasts, or is null.
pub(super) unsafe fn look_at_all(t: *mut Thread, team: *const Team, pc: usize) {
    // SAFETY: by the caller's promise.
    unsafe {
        let of_team = team.as_ref().map_or(0, |team| team.workers.load(Relaxed));
        let mut left = of_team | COMPLETED.load(Relaxed);
        while left != 0 {
            done_by(left.trailing_zeros()).note(t, Tag::Look, pc);
            left &= left - 1;
        }
    }
}

/// Waits for tasks with `act`.
pub(super) fn wait<R>(pc: usize, act: impl FnOnce() -> R) -> R {
    let t = enter();
    if t.is_null() {
        return act();
    }
    // SAFETY: in a hook of `t`.
    unsafe {
        access::settle(t);
        let out = go_to_library(t, act);
        if !enter().is_null() {
            look_at_all(t, (*t).team, pc);
            leave(t);
        }
        out
    }
}

/// Completes a task that waits for an event, with `act`.
pub(super) fn complete(pc: usize, act: impl FnOnce()) {
    let t = enter();
    if t.is_null() {
        return act();
    }
    // SAFETY: in a hook of `t`.
    unsafe {
        access::settle(t);
        done(t, core::ptr::null(), pc);
        go_to_library(t, act);
    }
}
