//! Tasks: created before they begin, finished before a thread that waits for them continues, and in
//! the order of their dependences.
//!
//! Each task has a channel through which its creator sends and at which the thread that executes it
//! looks. When the task is finished, that thread sends through a channel of its own: a thread that
//! waits for any tasks of the team looks at the channels of all threads that have executed some.
//! That orders more than necessary, namely after tasks that were finished but not awaited; and tasks
//! that one thread executed stay in its order. So the log also tells what happens to tasks ([`tell`]),
//! for the host to find out whether that hides anything.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::Team;
use crate::format::{Tag, channel, task};
use crate::runtime::channels::Channel;
use crate::runtime::thread::Thread;
use crate::runtime::{access, back_in_program, enter, go_to_library, leave, log, thread};

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
    /// Whether the tasks that it creates are not deferred.
    pub(super) is_final: bool,
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

/// Records what happens to a task, or to those that the thread waits for.
///
/// # Safety
/// In a hook of `t`.
pub(super) unsafe fn tell(t: *mut Thread, what: u64, pc: usize) {
    // SAFETY: by the caller's promise.
    unsafe { tell_at(t, task::value(what, 0), 0, pc) }
}

/// The same of one task, where the thread's stack is.
unsafe fn tell_at(t: *mut Thread, value: u64, stack: usize, pc: usize) {
    // SAFETY: in a hook of `t`.
    unsafe {
        access::settle(t);
        log::put_uncounted_at(t, Tag::Task, pc, stack, value);
    }
}

/// How far the stack of a thread is looked at that the team's first thread does not run on.
const STACK: usize = 32 << 20;

/// A thread begins a section, or there is none left (zero). What it has on its stack since the region began is its own.
///
/// # Safety
/// In a hook of `t`.
pub(super) unsafe fn section(t: *mut Thread, number: usize, pc: usize) {
    let here = &raw const number as usize;
    // SAFETY: by the caller's promise; a member's team lasts.
    unsafe {
        let stack = match (*t).team.as_ref() {
            Some(team) if team.first == (*t).id => &raw const *team as usize,
            _ => here.saturating_add(STACK),
        };
        tell_at(t, task::value(task::SECTION, number as u32 as u64), stack, pc);
    }
}

/// A new task of the thread's team.
///
/// # Safety
/// In a hook of `t`.
pub(super) unsafe fn new(t: *mut Thread, function: usize, depends: *mut Dependence) -> Task {
    // SAFETY: by the caller's promise.
    let (team, is_final) = unsafe { ((*t).team, (*t).is_final) };
    Task { function, number: LATEST.fetch_add(1, Relaxed) + 1, team, depends, is_final }
}

/// Whether the tasks that a thread creates are executed at once: in a task that is final, and where there is no team.
///
/// # Safety
/// In a hook of `t`.
pub(super) unsafe fn are_at_once(t: *mut Thread) -> bool {
    // SAFETY: by the caller's promise.
    unsafe { (*t).is_final || (*t).team.is_null() }
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
        unsafe {
            self.channel().note(t, Tag::Send, pc);
            tell_at(t, task::value(task::CREATED, self.number), 0, pc);
        }
    }

    /// The thread that created the task has waited for it, because it was not deferred.
    ///
    /// # Safety
    /// In a hook of `t`.
    pub(super) unsafe fn awaited(&self, t: *mut Thread, pc: usize) {
        // SAFETY: by the caller's promise.
        unsafe { tell_at(t, task::value(task::AWAITED, self.number), 0, pc) }
    }

    /// Executes the task with `run`, after a step `first`.
    ///
    /// # Safety
    /// The library requests it, in any thread.
    pub(super) unsafe fn carry_out(self, first: impl FnOnce(*mut Thread), run: impl FnOnce()) {
        let mut outer = (core::ptr::null(), 0, false);
        // Whatever the task has on the stack is below.
        let stack = &raw const outer as usize;
        back_in_program(
            // SAFETY: in a hook of `t`.
            |t| unsafe {
                outer = ((*t).team, (*t).round, (*t).is_final);
                ((*t).team, (*t).is_final) = (self.team, self.is_final);
                tell_at(t, task::value(task::BEGUN, self.number), stack, 0);
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
                tell_at(t, task::value(task::ENDED, self.number), stack, 0);
                done(t, self.team, 0);
            },
        );
        // SAFETY: the thread's own state; the list is the task's own.
        unsafe {
            let t = thread::current();
            if !t.is_null() {
                ((*t).team, (*t).round, (*t).is_final) = outer;
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

/// A group of tasks begins with `act`.
pub(super) fn group(pc: usize, act: impl FnOnce()) {
    let t = enter();
    if !t.is_null() {
        // SAFETY: in a hook of `t`.
        return unsafe {
            tell(t, task::GROUP_BEGUN, pc);
            go_to_library(t, act)
        };
    }
    act();
}

/// Waits with `act` for what the tasks of a list that `depends` makes depend on.
pub(super) fn wait_for(pc: usize, depends: impl FnOnce() -> *mut Dependence, act: impl FnOnce()) {
    wait(pc, None, act);
    let t = enter();
    if !t.is_null() {
        // SAFETY: in a hook of `t`; the list is our own.
        unsafe {
            let list = depends();
            look_at_dependences(t, list, pc);
            if !list.is_null() {
                __libc_free(list as usize);
            }
            leave(t);
        }
    }
}

/// Waits with `act` for the tasks that `what` tells, if that is known.
pub(super) fn wait<R>(pc: usize, what: Option<u64>, act: impl FnOnce() -> R) -> R {
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
            what.into_iter().for_each(|what| tell(t, what, pc));
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
