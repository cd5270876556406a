//! The entry points of libomp, as clang calls them. The first two arguments of nearly all of them are a source location and
//! the number of the thread.

use super::tasks::{self, Dependence, Task};
use super::{Team, arrive, barrier, begin, depart, locks, ordered, take_part};
use crate::format::{Tag, block, task};
use crate::runtime::calls::{List, calls, variadic};
use crate::runtime::next::real;
use crate::runtime::thread::Thread;
use crate::runtime::{
    access, atomics, back_in_program, enter, go_to_library, in_library, leave, sync, thread,
};

/// C's `memory_order_seq_cst`.
const SEQ_CST: u32 = 5;

fn place(pc: f64) -> usize {
    pc.to_bits() as usize
}

unsafe extern "C" {
    fn __libc_malloc(size: usize) -> usize;
    fn __libc_free(block: usize);
}

// Parallel regions. The outlined function takes two numbers and its arguments as words.
variadic! {
    __kmpc_fork_call, "3", "rcx" => fork_call;
    __kmpc_fork_teams, "3", "rcx" => fork_teams;
}

macro_rules! forks {
    ($name:ident, $handle:ident) => {
        extern "C" fn $handle(
            source: usize,
            count: usize,
            function: usize,
            list: usize,
            pc: f64,
        ) -> usize {
            let count = count as u32 as usize;
            // Four words are always loaded into registers, whether they are needed or not.
            // SAFETY: a block of our own; the list has this many words.
            let words = unsafe {
                let mut list = List::copy(list);
                let block = __libc_malloc(8 * count.max(4)) as *mut usize;
                if block.is_null() {
                    crate::runtime::sys::abort();
                }
                for i in 0..count.max(4) {
                    block.add(i).write(if i < count { list.word() } else { 0 });
                }
                core::slice::from_raw_parts(block, count)
            };
            let member: unsafe extern "C" fn(usize, usize, *const Team) = member;
            let act = |team: *const Team| real!($name(source => usize, 1 => usize, member as usize => usize, team => *const Team));
            // A team that is not recorded only needs to know what to call.
            begin(function, words, place(pc), || act(&Team::unrecorded(function, words)), act);
            // SAFETY: the region is over.
            unsafe { __libc_free(words.as_ptr() as usize) };
            0
        }
    };
}
forks! { __kmpc_fork_call, fork_call }
forks! { __kmpc_fork_teams, fork_teams }

unsafe extern "C" fn member(whole: usize, bound: usize, team: *const Team) {
    // SAFETY: what `begin` was given; the numbers are libomp's.
    unsafe {
        let run = || invoke((*team).function, whole, bound, (*team).count, (*team).words);
        if (*team).is_recorded() {
            take_part(team, [(whole, 4), (bound, 4)], run);
        } else {
            run();
        }
    }
}

/// Calls a function with two words and `count` more, at least four of which can be read.
#[unsafe(naked)]
unsafe extern "C" fn invoke(
    function: usize,
    first: usize,
    second: usize,
    count: usize,
    words: *const usize,
) {
    core::arch::naked_asm!(
        ".cfi_startproc",
        "push rbp",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset rbp, -16",
        "mov rbp, rsp",
        ".cfi_def_cfa_register rbp",
        "mov rax, rdi",
        "mov rdi, rsi",
        "mov rsi, rdx",
        "mov r11, r8",
        // What does not fit into registers goes to the stack, which stays aligned.
        "sub rcx, 4",
        "jle 3f",
        "lea rdx, [rcx * 8 + 15]",
        "and rdx, -16",
        "sub rsp, rdx",
        "2:",
        "mov rdx, [r11 + rcx * 8 + 24]",
        "mov [rsp + rcx * 8 - 8], rdx",
        "dec rcx",
        "jnz 2b",
        "3:",
        "mov rdx, [r11]",
        "mov rcx, [r11 + 8]",
        "mov r8, [r11 + 16]",
        "mov r9, [r11 + 24]",
        "call rax",
        "leave",
        ".cfi_def_cfa rsp, 8",
        "ret",
        ".cfi_endproc",
    )
}

entries! {
    __kmpc_barrier(source, who), pc => void!(barrier(place(pc), || real!(__kmpc_barrier(source => usize, who => usize))));
    __kmpc_cancel_barrier(source, who), pc
        => barrier(place(pc), || real!(__kmpc_cancel_barrier(source => usize, who => usize) -> usize));
    __kmpc_flush(source), pc => void!({
        real!(__kmpc_flush(source => usize));
        atomics::thread_fence(SEQ_CST, place(pc));
    });
    __kmpc_ordered(source, who), pc
        => void!(ordered(place(pc), None, Some(Tag::Receive), || real!(__kmpc_ordered(source => usize, who => usize))));
    __kmpc_end_ordered(source, who), pc
        => void!(ordered(place(pc), Some(Tag::Send), None, || real!(__kmpc_end_ordered(source => usize, who => usize))));
    __kmpc_doacross_post(source, who, at), pc
        => void!(ordered(place(pc), Some(Tag::Send), None, || real!(__kmpc_doacross_post(source => usize, who => usize, at => usize))));
    __kmpc_doacross_wait(source, who, at), pc
        => void!(ordered(place(pc), None, Some(Tag::Look), || real!(__kmpc_doacross_wait(source => usize, who => usize, at => usize))));
    __kmpc_copyprivate(source, who, size, data, copy, did_it), pc
        => void!(copy_private(source, who, size, data, copy, did_it, place(pc)));
    __kmpc_reduce(source, who, count, size, data, function, lock), pc => reduce(source, lock, pc, |source| real!(__kmpc_reduce(
        source => *const Source, who => usize, count => usize, size => usize, data => usize, 0 => usize, lock => usize) -> usize));
    __kmpc_reduce_nowait(source, who, count, size, data, function, lock), pc => reduce(source, lock, pc, |source| real!(__kmpc_reduce_nowait(
        source => *const Source, who => usize, count => usize, size => usize, data => usize, 0 => usize, lock => usize) -> usize));
    __kmpc_end_reduce(source, who, lock), pc => void!({
        // The lock, if it was acquired, is released before the barrier.
        locks::unlock(lock, pc, || ());
        barrier(place(pc), || real!(__kmpc_end_reduce(source => usize, who => usize, lock => usize)))
    });
    __kmpc_end_reduce_nowait(source, who, lock), pc
        => void!(locks::unlock(lock, pc, || real!(__kmpc_end_reduce_nowait(source => usize, who => usize, lock => usize))));
    __kmpc_omp_task_alloc(source, who, flags, size, shared, function), pc
        => allocate(function, flags, size, shared, place(pc), |size, shared, function| real!(__kmpc_omp_task_alloc(
            source => usize, who => usize, flags => usize, size => usize, shared => usize, function => usize) -> usize));
    __kmpc_omp_task(source, who, task), pc
        => hand_over(task, place(pc), 0, 0, || real!(__kmpc_omp_task(source => usize, who => usize, task => usize) -> usize));
    __kmpc_omp_task_with_deps(source, who, task, count, list, more, others), pc
        => hand_over(task, place(pc), count as u32 as usize, list, || real!(__kmpc_omp_task_with_deps(
            source => usize, who => usize, task => usize, count => usize, list => usize, more => usize, others => usize) -> usize));
    __kmpc_taskloop(source, who, task, at_once, from, to, step, alone, kind, grain, copy), pc
        => hand_over_loop(task, place(pc), [from, to], || void!(real!(__kmpc_taskloop(source => usize, who => usize, task => usize, at_once => usize,
            from => usize, to => usize, step => usize, alone => usize, kind => usize, grain => usize, copy => usize))));
    __kmpc_taskloop_5(source, who, task, at_once, from, to, step, alone, kind, grain, modifier, copy), pc
        => hand_over_loop(task, place(pc), [from, to], || void!(real!(__kmpc_taskloop_5(source => usize, who => usize, task => usize, at_once => usize,
            from => usize, to => usize, step => usize, alone => usize, kind => usize, grain => usize, modifier => usize, copy => usize))));
    __kmpc_omp_taskwait(source, who), pc
        => tasks::wait(place(pc), Some(task::CHILDREN_AWAITED), || real!(__kmpc_omp_taskwait(source => usize, who => usize) -> usize));
    __kmpc_omp_wait_deps(source, who, count, list, more, others), pc
        => void!(tasks::wait_for(place(pc), || dependences(count, list), || real!(__kmpc_omp_wait_deps(
            source => usize, who => usize, count => usize, list => usize, more => usize, others => usize))));
    __kmpc_omp_taskwait_deps_51(source, who, count, list, more, others, nowait), pc
        => void!(tasks::wait_for(place(pc), || dependences(count, list), || real!(__kmpc_omp_taskwait_deps_51(
            source => usize, who => usize, count => usize, list => usize, more => usize, others => usize, nowait => usize))));
    __kmpc_omp_taskyield(source, who, end), pc
        => tasks::wait(place(pc), None, || real!(__kmpc_omp_taskyield(source => usize, who => usize, end => usize) -> usize));
    __kmpc_taskgroup(source, who), pc
        => void!(tasks::group(place(pc), || real!(__kmpc_taskgroup(source => usize, who => usize))));
    __kmpc_end_taskgroup(source, who), pc
        => void!(tasks::wait(place(pc), Some(task::GROUP_AWAITED), || real!(__kmpc_end_taskgroup(source => usize, who => usize))));
}

/// One member passes what it made to the others, each of which copies it between two barriers.
fn copy_private(
    source: usize,
    who: usize,
    size: usize,
    data: usize,
    copy: usize,
    did_it: usize,
    pc: usize,
) {
    let act = |copy: usize| real!(__kmpc_copyprivate(source => usize, who => usize, size => usize, data => usize, copy => usize, did_it => usize));
    let t = enter();
    if t.is_null() {
        return act(copy);
    }
    // SAFETY: in a hook of `t`.
    unsafe {
        arrive(t, pc);
        (*t).copies = copy;
        if did_it as u32 != 0 {
            // It has nothing to do between the barriers.
            (*t).round += 1;
            arrive(t, pc);
        }
        let ours: unsafe extern "C" fn(usize, usize) = copy_for_member;
        go_to_library(t, || act(ours as usize));
        if !enter().is_null() {
            depart(t, pc);
            leave(t);
        }
    }
}

unsafe extern "C" fn copy_for_member(to: usize, from: usize) {
    let t = thread::current();
    // SAFETY: called by libomp in a thread that is in `copy_private`.
    unsafe {
        let copy: unsafe extern "C" fn(usize, usize) = core::mem::transmute((*t).copies);
        back_in_program(|t| depart(t, 0), || copy(to, from), |t| arrive(t, 0));
    }
}

/// A source location, and what the compiler supports there.
#[repr(C)]
#[derive(Clone, Copy)]
struct Source {
    before: u32,
    flags: u32,
    behind: [usize; 2],
}

/// Returns how the thread adds its part: 1: alone, with the lock; 2: by atomic operations; 0: it is
/// done. libomp does not learn of the function that adds the parts of several threads, so that it
/// does not call it; nor of atomic operations, some of which have no hooks.
fn reduce(source: usize, lock: usize, pc: f64, act: impl FnOnce(*const Source) -> usize) -> usize {
    const ATOMIC: u32 = 0x10;
    // SAFETY: as clang made it.
    let mut source = unsafe { *(source as *const Source) };
    source.flags &= !ATOMIC;
    let act = || act(&source);
    let t = enter();
    if t.is_null() {
        return act();
    }
    // SAFETY: in a hook of `t`.
    let out = unsafe { go_to_library(t, act) };
    if out as i32 == 1 {
        locks::lock(lock, pc, || true, || ());
    }
    out
}

/// The flag of a task that it is final.
const FINAL: usize = 2;

/// The data between a task of libomp and what it shares.
#[repr(C)]
struct Trailer {
    task: Task,
    /// The address of the task, if it is not a copy, and its size.
    at: usize,
    size: usize,
    /// Whether it belongs to a loop: libomp writes to such tasks.
    is_stretch: bool,
}

/// The first word of a task points to what it shares. We always have it set, to find what precedes that.
unsafe fn trailer(task: usize) -> *mut Trailer {
    // SAFETY: by the caller's promise, a task that `allocate` made, or a copy of one.
    unsafe { (*(task as *const usize) - size_of::<Trailer>()) as *mut Trailer }
}

fn allocate(
    function: usize,
    flags: usize,
    size: usize,
    shared: usize,
    pc: usize,
    act: impl Fn(usize, usize, usize) -> usize,
) -> usize {
    let t = enter();
    if t.is_null() {
        return act(size, shared, function);
    }
    let run: unsafe extern "C" fn(usize, usize) -> i32 = run_task;
    // SAFETY: in a hook of `t`; libomp aligns what is shared to eight bytes and leaves room for the trailer before it.
    unsafe {
        access::settle(t);
        let whole = size.next_multiple_of(8) + size_of::<Trailer>();
        let shared = shared.max(8);
        let at = in_library(|| act(whole, shared, run as usize));
        let size = whole + shared;
        sync(t, Tag::Alloc, pc, at, block::value(size, false));
        let mut task = tasks::new(t, function, core::ptr::null_mut());
        task.is_final |= flags & FINAL != 0;
        trailer(at).write(Trailer { task, at, size, is_stretch: false });
        // libomp fills in the pointer to what is shared, the function, the next part, and two more words.
        let filled = 40.min(size);
        access::before_write(t, at, filled);
        access::written(t, at, filled, pc);
        leave(t);
        at
    }
}

fn hand_over(
    task: usize,
    pc: usize,
    count: usize,
    list: usize,
    act: impl FnOnce() -> usize,
) -> usize {
    let t = enter();
    if t.is_null() {
        return act();
    }
    // SAFETY: in a hook of `t`; a task that `allocate` made.
    unsafe {
        access::settle(t);
        let at = trailer(task);
        if count != 0 {
            (*at).task.depend(dependences(count, list));
        }
        (*at).task.made(t, pc);
        let (is_awaited, ours) = (tasks::are_at_once(t), (*at).task);
        let out = go_to_library(t, act);
        if is_awaited && !enter().is_null() {
            ours.awaited(t, pc);
            leave(t);
        }
        out
    }
}

/// What a task depends on, as libomp reads it: entries with an address, a size and flags, whose lowest bit marks what is only
/// read.
fn dependences(count: usize, list: usize) -> *mut Dependence {
    tasks::keep(count as u32 as usize, |i| {
        // SAFETY: the program's own list, of this length.
        let [address, _, flags] = unsafe { *((list + 24 * i) as *const [usize; 3]) };
        Dependence { address, changes: flags as u8 != 1 }
    })
}

fn hand_over_loop(
    task: usize,
    pc: usize,
    bounds: [usize; 2],
    act: impl FnOnce() -> usize,
) -> usize {
    let t = enter();
    if !t.is_null() {
        // SAFETY: in a hook of `t`; the bounds are in the task, and the program's own.
        unsafe {
            access::settle(t);
            for at in bounds {
                access::range(t, at, 8, pc, false);
            }
            let trailer = trailer(task);
            (*trailer).is_stretch = true;
            (*trailer).task.made(t, pc);
            leave(t);
        }
    }
    tasks::wait(pc, None, act)
}

/// libomp calls this for each task.
unsafe extern "C" fn run_task(who: usize, task: usize) -> i32 {
    // SAFETY: a task that `allocate` made, or a copy of one.
    unsafe {
        let Trailer { task: ours, at, size, is_stretch } = trailer(task).read();
        // Copies are libomp's own, and it sets the bounds of loops in all of them.
        let first = |t: *mut Thread| {
            if at != task {
                sync(t, Tag::Alloc, 0, task, block::value(size, false));
            }
            if is_stretch {
                access::before_write(t, task, size);
                access::written(t, task, size, 0);
            }
        };
        let run = || {
            let function: unsafe extern "C" fn(usize, usize) -> i32 =
                core::mem::transmute(ours.function);
            function(who, task);
        };
        ours.carry_out(first, run);
        0
    }
}

/// Worksharing loops: libomp writes the first and last iterations, the distance to the next chunk, and whether it is the last.
macro_rules! shares {
    ($($name:ident($($arg:ident),*), $size:literal, $is_last:ident, [$($bound:ident),*];)*) => {
        calls! { $(
            Inside $name($($arg),*)
                |c| { c.may_write($is_last, 4); $(c.reads($bound, $size); c.may_write($bound, $size);)* }
                => |c, out| { c.wrote($is_last, 4); $(c.wrote($bound, $size);)* };
        )* }
    };
}

shares! {
    __kmpc_for_static_init_4(source, who, kind, last, from, to, step, by, chunk), 4, last, [from, to, step];
    __kmpc_for_static_init_4u(source, who, kind, last, from, to, step, by, chunk), 4, last, [from, to, step];
    __kmpc_for_static_init_8(source, who, kind, last, from, to, step, by, chunk), 8, last, [from, to, step];
    __kmpc_for_static_init_8u(source, who, kind, last, from, to, step, by, chunk), 8, last, [from, to, step];
    __kmpc_dist_for_static_init_4(source, who, kind, last, from, to, all, step, by, chunk), 4, last, [from, to, all, step];
    __kmpc_dist_for_static_init_4u(source, who, kind, last, from, to, all, step, by, chunk), 4, last, [from, to, all, step];
    __kmpc_dist_for_static_init_8(source, who, kind, last, from, to, all, step, by, chunk), 8, last, [from, to, all, step];
    __kmpc_dist_for_static_init_8u(source, who, kind, last, from, to, all, step, by, chunk), 8, last, [from, to, all, step];
}

/// The next chunk of a loop, if there is one. In ordered loops libomp makes threads wait for each other here.
macro_rules! stretches {
    ($($name:ident, $size:literal;)*) => {
        calls! { $(
            Away $name(source, who, last, from, to, step)
                |c| { c.may_write(last, 4); c.may_write(from, $size); c.may_write(to, $size); c.may_write(step, $size); }
                => |c, out| {
                    if out as i32 != 0 {
                        c.wrote(last, 4);
                        c.wrote(from, $size);
                        c.wrote(to, $size);
                        c.wrote(step, $size);
                    }
                };
        )* }
    };
}

stretches! {
    __kmpc_dispatch_next_4, 4;
    __kmpc_dispatch_next_4u, 4;
    __kmpc_dispatch_next_8, 8;
    __kmpc_dispatch_next_8u, 8;
}

// A thread that is several loops ahead waits at the beginning of the next.
calls! {
    Away __kmpc_dispatch_init_4(source, who, kind, from, to, step, chunk);
    Away __kmpc_dispatch_init_4u(source, who, kind, from, to, step, chunk);
    Away __kmpc_dispatch_init_8(source, who, kind, from, to, step, chunk);
    Away __kmpc_dispatch_init_8u(source, who, kind, from, to, step, chunk);
    Away __kmpc_dispatch_fini_4(source, who);
    Away __kmpc_dispatch_fini_4u(source, who);
    Away __kmpc_dispatch_fini_8(source, who);
    Away __kmpc_dispatch_fini_8u(source, who);
    Away __kmpc_dispatch_deinit(source, who);
    Away __kmpc_doacross_init(source, who, count, what);
    Away __kmpc_doacross_fini(source, who);
    Inside __kmpc_single(source, who);
    Inside __kmpc_end_single(source, who);
    Inside __kmpc_global_thread_num(source);
    Inside __kmpc_omp_task_begin_if0(source, who, task);
    Inside __kmpc_omp_task_complete_if0(source, who, task);
    Inside __kmpc_push_num_threads(source, who, count);
    Inside __kmpc_serialized_parallel(source, who);
    Inside __kmpc_end_serialized_parallel(source, who);
}
