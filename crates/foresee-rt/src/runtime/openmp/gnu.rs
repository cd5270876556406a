//! The entry points of libgomp, as gcc calls them.

use super::tasks::{self, Dependence, Task};
use super::{Team, arrive, barrier, begin, depart, ordered, take_part};
use crate::format::{Tag, block, task};
use crate::runtime::calls::{Call, calls};
use crate::runtime::next::real;
use crate::runtime::thread::Thread;
use crate::runtime::{access, back_in_program, enter, go_to_library, leave, sync};

fn place(pc: f64) -> usize {
    pc.to_bits() as usize
}

/// What libgomp runs in each member of a team.
unsafe extern "C" fn member(team: *const Team) {
    // SAFETY: what `begin` was given.
    unsafe {
        take_part(team, [(0, 0); 2], || {
            let function: unsafe extern "C" fn(usize) = core::mem::transmute((*team).function);
            function(*(*team).words);
        });
    }
}

/// Parallel regions: the function, its argument, and what concerns only the library.
macro_rules! parallel {
    ($($name:ident($($arg:ident),*);)*) => {
        entries! { $(
            $name(function, data, $($arg),*), pc => {
                let member: unsafe extern "C" fn(*const Team) = member;
                begin(
                    function,
                    &[data],
                    place(pc),
                    || real!($name(function => usize, data => usize, $($arg => usize),*) -> usize),
                    |team| real!($name(member as usize => usize, team as usize => usize, $($arg => usize),*) -> usize),
                )
            };
        )* }
    };
}

parallel! {
    GOMP_parallel(threads, flags);
    GOMP_parallel_reductions(threads, flags);
    GOMP_parallel_sections(threads, count, flags);
    GOMP_parallel_loop_static(threads, from, to, step, chunk, flags);
    GOMP_parallel_loop_dynamic(threads, from, to, step, chunk, flags);
    GOMP_parallel_loop_guided(threads, from, to, step, chunk, flags);
    GOMP_parallel_loop_nonmonotonic_dynamic(threads, from, to, step, chunk, flags);
    GOMP_parallel_loop_nonmonotonic_guided(threads, from, to, step, chunk, flags);
    GOMP_parallel_loop_runtime(threads, from, to, step, flags);
    GOMP_parallel_loop_nonmonotonic_runtime(threads, from, to, step, flags);
    GOMP_parallel_loop_maybe_nonmonotonic_runtime(threads, from, to, step, flags);
}

entries! {
    GOMP_barrier(), pc => void!(barrier(place(pc), || real!(GOMP_barrier())));
    GOMP_barrier_cancel(), pc => barrier(place(pc), || real!(GOMP_barrier_cancel() -> usize));
    GOMP_loop_end(), pc => void!(barrier(place(pc), || real!(GOMP_loop_end())));
    GOMP_loop_end_cancel(), pc => barrier(place(pc), || real!(GOMP_loop_end_cancel() -> usize));
    GOMP_sections_end(), pc => void!(barrier(place(pc), || real!(GOMP_sections_end())));
    GOMP_sections_end_cancel(), pc => barrier(place(pc), || real!(GOMP_sections_end_cancel() -> usize));
    GOMP_single_copy_start(), pc => single_copy_start(place(pc));
    GOMP_single_copy_end(data), pc => void!(barrier(place(pc), || real!(GOMP_single_copy_end(data => usize))));
    GOMP_ordered_start(), pc => void!(ordered(place(pc), None, Some(Tag::Receive), || real!(GOMP_ordered_start())));
    GOMP_ordered_end(), pc => void!(ordered(place(pc), Some(Tag::Send), None, || real!(GOMP_ordered_end())));
    GOMP_doacross_post(counts), pc => void!(ordered(place(pc), Some(Tag::Send), None, || real!(GOMP_doacross_post(counts => usize))));
    GOMP_doacross_ull_post(counts), pc => void!(ordered(place(pc), Some(Tag::Send), None, || real!(GOMP_doacross_ull_post(counts => usize))));
    GOMP_task(function, data, copy, size, align, at_once, flags, depend, priority, detach), pc
        => void!(task(function, Given { data, copy, size, align }, at_once, flags, depend, priority, detach, place(pc)));
    GOMP_taskloop(function, data, copy, size, align, flags, tasks, priority, from, to, step), pc
        => void!(task_loop(function, Given { data, copy, size, align }, flags, place(pc), |function, data, copy, size, align| {
            real!(GOMP_taskloop(function => usize, data => usize, copy => usize, size => usize, align => usize, flags => usize, tasks => usize,
                priority => usize, from => usize, to => usize, step => usize));
        }));
    GOMP_taskloop_ull(function, data, copy, size, align, flags, tasks, priority, from, to, step), pc
        => void!(task_loop(function, Given { data, copy, size, align }, flags, place(pc), |function, data, copy, size, align| {
            real!(GOMP_taskloop_ull(function => usize, data => usize, copy => usize, size => usize, align => usize, flags => usize, tasks => usize,
                priority => usize, from => usize, to => usize, step => usize));
        }));
    GOMP_taskwait(), pc => void!(tasks::wait(place(pc), Some(task::CHILDREN_AWAITED), || real!(GOMP_taskwait())));
    GOMP_taskwait_depend(list), pc => void!(tasks::wait_for(place(pc), || depend_on(list), || real!(GOMP_taskwait_depend(list => usize))));
    GOMP_taskyield(), pc => void!(tasks::wait(place(pc), None, || real!(GOMP_taskyield())));
    GOMP_taskgroup_start(), pc => void!(tasks::group(place(pc), || real!(GOMP_taskgroup_start())));
    GOMP_taskgroup_end(), pc => void!(tasks::wait(place(pc), Some(task::GROUP_AWAITED), || real!(GOMP_taskgroup_end())));
    GOMP_workshare_task_reduction_unregister(cancelled), pc
        => void!(barrier(place(pc), || real!(GOMP_workshare_task_reduction_unregister(cancelled => usize))));
    omp_fulfill_event(event), pc => void!(tasks::complete(place(pc), || real!(omp_fulfill_event(event => usize))));
}

/// One member gets null, creates something and passes it to the others, which wait for it here.
fn single_copy_start(pc: usize) -> usize {
    let act = || real!(GOMP_single_copy_start() -> usize);
    let t = enter();
    if t.is_null() {
        return act();
    }
    // SAFETY: in a hook of `t`.
    unsafe {
        arrive(t, pc);
        let out = go_to_library(t, act);
        if !enter().is_null() {
            if out != 0 {
                depart(t, pc);
            }
            leave(t);
        }
        out
    }
}

// The variable arguments of these are the iterations to wait for.
crate::runtime::calls::variadic! {
    GOMP_doacross_wait, "1", "rsi" => doacross_wait;
    GOMP_doacross_ull_wait, "1", "rsi" => doacross_ull_wait;
}

/// Passes on one word for each level of nesting that dependent loops can have.
macro_rules! doacross {
    ($name:ident, $handle:ident) => {
        extern "C" fn $handle(first: usize, list: usize, pc: f64) -> usize {
            // SAFETY: a `va_list`; anything read beyond its end is the caller's stack, and is not used.
            let mut list = unsafe { crate::runtime::calls::List::copy(list) };
            // SAFETY: as above.
            let w: [usize; 7] = core::array::from_fn(|_| unsafe { list.word() });
            let act = || {
                real!($name(first => usize, w[0] => usize, w[1] => usize, w[2] => usize, w[3] => usize, w[4] => usize,
                    w[5] => usize, w[6] => usize))
            };
            ordered(place(pc), None, Some(Tag::Look), act);
            0
        }
    };
}
doacross! { GOMP_doacross_wait, doacross_wait }
doacross! { GOMP_doacross_ull_wait, doacross_ull_wait }

const FLAG_FINAL: usize = 1 << 1;
const FLAG_DEPEND: usize = 1 << 3;
const FLAG_NO_GROUP: usize = 1 << 11;
const FLAG_DETACH: usize = 1 << 13;

/// The arguments of a task: this many bytes, copied by a function or verbatim.
#[derive(Clone, Copy)]
struct Given {
    data: usize,
    copy: usize,
    size: usize,
    align: usize,
}

/// A task of the program that waits in libgomp; its argument follows.
#[repr(C)]
struct Waiting {
    task: Task,
    /// The argument of the program's function.
    data: usize,
    /// The pointer to pass to `free`.
    block: usize,
}

unsafe extern "C" {
    fn __libc_malloc(size: usize) -> usize;
    fn __libc_free(block: usize);
}

impl Given {
    /// Copies the task's argument, in the thread that creates it, in a hook.
    unsafe fn set_aside(self, t: *mut Thread, task: Task, pc: usize) -> *mut Waiting {
        let align = self.align.max(16);
        // SAFETY: a block of our own; the program gives the size of what it passes.
        unsafe {
            let block = __libc_malloc(size_of::<Waiting>() + self.size + align);
            if block == 0 {
                crate::runtime::sys::abort();
            }
            let data = (block + size_of::<Waiting>()).next_multiple_of(align);
            let waiting = block as *mut Waiting;
            waiting.write(Waiting { task, data, block });
            sync(t, Tag::Alloc, pc, data, block::value(self.size, false));
            if self.copy != 0 {
                leave(t);
                let copy: unsafe extern "C" fn(usize, usize) = core::mem::transmute(self.copy);
                copy(data, self.data);
                enter();
            } else if self.size != 0 {
                // The compiler has put it together on the thread's stack for this call only, so no other thread can touch it.
                // Reading it would read the gaps between its parts, too, where anything may have been left behind.
                core::ptr::copy_nonoverlapping(self.data as *const u8, data as *mut u8, self.size);
                access::written(t, data, self.size, pc);
            }
            waiting
        }
    }
}

impl Waiting {
    /// Executes the task; libgomp has put some `words` at the beginning of its argument.
    unsafe fn carry_out(waiting: *mut Waiting, words: &[usize]) {
        // SAFETY: made by `set_aside`, and no longer used by any other thread.
        unsafe {
            let Waiting { task, data, block } = waiting.read();
            for (i, &word) in words.iter().enumerate() {
                (data as *mut usize).add(i).write(word);
            }
            task.carry_out(
                |t| {
                    access::before_write(t, data, 8 * words.len());
                    access::written(t, data, 8 * words.len(), 0);
                },
                || {
                    let function: unsafe extern "C" fn(usize) = core::mem::transmute(task.function);
                    function(data);
                },
            );
            __libc_free(block);
        }
    }
}

/// What `taskwait` depends on.
fn depend_on(list: usize) -> *mut Dependence {
    // SAFETY: as the program passes it to libgomp.
    unsafe { dependences(list) }
}

/// `depend` as libgomp reads it: the number of entries, the number that change, then the addresses; or zero, and more numbers first.
unsafe fn dependences(list: usize) -> *mut Dependence {
    let word = |i: usize| {
        // SAFETY: the program's own list, whose first words give its length.
        unsafe { *((list + 8 * i) as *const usize) }
    };
    if word(0) != 0 {
        let changing = word(1);
        return tasks::keep(word(0), |i| Dependence {
            address: word(2 + i),
            changes: i < changing,
        });
    }
    // Those that change, those that exclude each other, those that only read, and those that give their kind themselves.
    let (looking, objects) = (word(2) + word(3), word(2) + word(3) + word(4));
    tasks::keep(word(1), |i| match word(5 + i) {
        object if i >= objects => Dependence {
            // SAFETY: an `omp_depend_t` of the program, which begins with the address.
            address: unsafe { *(object as *const usize) },
            changes: true,
        },
        address => Dependence { address, changes: i < looking },
    })
}

#[allow(clippy::too_many_arguments)] // the library's own
fn task(
    function: usize,
    given: Given,
    at_once: usize,
    flags: usize,
    depend: usize,
    priority: usize,
    detach: usize,
    pc: usize,
) {
    let Given { data, copy, size, align } = given;
    let act = |function: usize, data: usize, copy: usize, size: usize, align: usize| {
        real!(GOMP_task(function => usize, data => usize, copy => usize, size => usize, align => usize, at_once => usize, flags => usize,
            depend => usize, priority => usize, detach => usize));
    };
    let t = enter();
    if t.is_null() {
        return act(function, data, copy, size, align);
    }
    // SAFETY: in a hook of `t`.
    unsafe {
        access::settle(t);
        let depends = match flags & FLAG_DEPEND {
            0 => core::ptr::null_mut(),
            _ => dependences(depend),
        };
        let is_awaited = at_once as u8 == 0 || tasks::are_at_once(t);
        let mut task = tasks::new(t, function, depends);
        task.is_final |= flags & FLAG_FINAL != 0;
        let waiting = given.set_aside(t, task, pc);
        task.made(t, pc);
        // libgomp puts the event that a detached task waits for at the beginning of its argument.
        let is_detached = flags & FLAG_DETACH != 0;
        let handed = [0, waiting as usize, usize::from(is_detached)];
        let run: unsafe extern "C" fn(*const [usize; 3]) = run_task;
        go_to_library(t, || {
            act(run as usize, handed.as_ptr() as usize, 0, size_of_val(&handed), 8)
        });
        if (is_detached || is_awaited) && !enter().is_null() {
            if is_detached {
                access::before_write(t, detach, 8);
                access::written(t, detach, 8, pc);
            } else {
                task.awaited(t, pc);
            }
            leave(t);
        }
    }
}

unsafe extern "C" fn run_task(handed: *const [usize; 3]) {
    // SAFETY: a copy of what `task` passed.
    unsafe {
        let [event, waiting, is_detached] = *handed;
        Waiting::carry_out(waiting as *mut Waiting, &[event][..is_detached]);
    }
}

/// What libgomp copies for each task of a loop and passes to it.
#[repr(C)]
struct Stretch {
    /// The iterations, written by libgomp.
    from: usize,
    to: usize,
    /// Where libgomp expects the description of reductions.
    reductions: usize,
    /// The task of the program.
    waiting: *mut Waiting,
}

/// What each task gets a copy of.
#[repr(C)]
struct Pattern {
    stretch: Stretch,
    given: Given,
    function: usize,
    pc: usize,
}

const FLAG_REDUCTION: usize = 1 << 12;

fn task_loop(
    function: usize,
    given: Given,
    flags: usize,
    pc: usize,
    act: impl Fn(usize, usize, usize, usize, usize),
) {
    let t = enter();
    if t.is_null() {
        return act(function, given.data, given.copy, given.size, given.align);
    }
    // SAFETY: in a hook of `t`; the description of reductions is the third word of the program's data.
    unsafe {
        access::settle(t);
        let reductions = match flags & FLAG_REDUCTION {
            0 => 0,
            _ => *((given.data + 16) as *const usize),
        };
        let is_group = flags & FLAG_NO_GROUP == 0;
        if is_group {
            tasks::tell(t, task::GROUP_BEGUN, pc);
        }
        let stretch = Stretch { from: 0, to: 0, reductions, waiting: core::ptr::null_mut() };
        let pattern = Pattern { stretch, given, function, pc };
        let run: unsafe extern "C" fn(*const Stretch) = run_stretch;
        let copy: unsafe extern "C" fn(*mut Stretch, *const Pattern) = copy_stretch;
        go_to_library(t, || {
            act(
                run as usize,
                &raw const pattern as usize,
                copy as usize,
                size_of::<Stretch>(),
                align_of::<Stretch>(),
            );
        });
        if !enter().is_null() {
            tasks::look_at_all(t, (*t).team, pc);
            if is_group {
                tasks::tell(t, task::GROUP_AWAITED, pc);
            }
            leave(t);
        }
    }
}

/// libgomp calls this for each task of a loop, in the thread that creates them.
unsafe extern "C" fn copy_stretch(to: *mut Stretch, pattern: *const Pattern) {
    let mut waiting = core::ptr::null_mut();
    // SAFETY: `task_loop` made the pattern, and libgomp has room for the copy.
    unsafe {
        let Pattern { ref stretch, given, function, pc } = *pattern;
        let reductions = stretch.reductions;
        back_in_program(
            |t| {
                let task = tasks::new(t, function, core::ptr::null_mut());
                waiting = given.set_aside(t, task, pc);
                task.made(t, pc);
            },
            || {},
            |_| {},
        );
        to.write(Stretch { from: 0, to: 0, reductions, waiting });
    }
}

unsafe extern "C" fn run_stretch(stretch: *const Stretch) {
    // SAFETY: what `copy_stretch` wrote; libgomp added the iterations.
    unsafe {
        if !(*stretch).waiting.is_null() {
            Waiting::carry_out((*stretch).waiting, &[(*stretch).from, (*stretch).to]);
        }
    }
}

/// Worksharing loops: libgomp returns whether there are iterations left, and which. No thread waits
/// here, and nothing is ordered.
macro_rules! shares {
    ($($name:ident($($arg:ident),*), $from:ident, $to:ident;)*) => {
        calls! { $(
            Inside $name($($arg),*) |c| { c.may_write($from, 8); c.may_write($to, 8); }
                => |c, out| { if out as u8 != 0 { c.wrote($from, 8); c.wrote($to, 8); } };
        )* }
    };
}

shares! {
    GOMP_loop_static_start(a, b, step, chunk, from, to), from, to;
    GOMP_loop_dynamic_start(a, b, step, chunk, from, to), from, to;
    GOMP_loop_guided_start(a, b, step, chunk, from, to), from, to;
    GOMP_loop_runtime_start(a, b, step, from, to), from, to;
    GOMP_loop_nonmonotonic_dynamic_start(a, b, step, chunk, from, to), from, to;
    GOMP_loop_nonmonotonic_guided_start(a, b, step, chunk, from, to), from, to;
    GOMP_loop_nonmonotonic_runtime_start(a, b, step, from, to), from, to;
    GOMP_loop_maybe_nonmonotonic_runtime_start(a, b, step, from, to), from, to;
    GOMP_loop_ordered_static_start(a, b, step, chunk, from, to), from, to;
    GOMP_loop_ordered_dynamic_start(a, b, step, chunk, from, to), from, to;
    GOMP_loop_ordered_guided_start(a, b, step, chunk, from, to), from, to;
    GOMP_loop_ordered_runtime_start(a, b, step, from, to), from, to;
    GOMP_loop_doacross_static_start(count, counts, chunk, from, to), from, to;
    GOMP_loop_doacross_dynamic_start(count, counts, chunk, from, to), from, to;
    GOMP_loop_doacross_guided_start(count, counts, chunk, from, to), from, to;
    GOMP_loop_doacross_runtime_start(count, counts, from, to), from, to;
    GOMP_loop_ull_static_start(up, a, b, step, chunk, from, to), from, to;
    GOMP_loop_ull_dynamic_start(up, a, b, step, chunk, from, to), from, to;
    GOMP_loop_ull_guided_start(up, a, b, step, chunk, from, to), from, to;
    GOMP_loop_ull_runtime_start(up, a, b, step, from, to), from, to;
    GOMP_loop_ull_nonmonotonic_dynamic_start(up, a, b, step, chunk, from, to), from, to;
    GOMP_loop_ull_nonmonotonic_guided_start(up, a, b, step, chunk, from, to), from, to;
    GOMP_loop_ull_nonmonotonic_runtime_start(up, a, b, step, from, to), from, to;
    GOMP_loop_ull_maybe_nonmonotonic_runtime_start(up, a, b, step, from, to), from, to;
    GOMP_loop_ull_ordered_static_start(up, a, b, step, chunk, from, to), from, to;
    GOMP_loop_ull_ordered_dynamic_start(up, a, b, step, chunk, from, to), from, to;
    GOMP_loop_ull_ordered_guided_start(up, a, b, step, chunk, from, to), from, to;
    GOMP_loop_ull_ordered_runtime_start(up, a, b, step, from, to), from, to;
    GOMP_loop_static_next(from, to), from, to;
    GOMP_loop_dynamic_next(from, to), from, to;
    GOMP_loop_guided_next(from, to), from, to;
    GOMP_loop_runtime_next(from, to), from, to;
    GOMP_loop_nonmonotonic_dynamic_next(from, to), from, to;
    GOMP_loop_nonmonotonic_guided_next(from, to), from, to;
    GOMP_loop_nonmonotonic_runtime_next(from, to), from, to;
    GOMP_loop_maybe_nonmonotonic_runtime_next(from, to), from, to;
    GOMP_loop_ull_static_next(from, to), from, to;
    GOMP_loop_ull_dynamic_next(from, to), from, to;
    GOMP_loop_ull_guided_next(from, to), from, to;
    GOMP_loop_ull_runtime_next(from, to), from, to;
    GOMP_loop_ull_nonmonotonic_dynamic_next(from, to), from, to;
    GOMP_loop_ull_nonmonotonic_guided_next(from, to), from, to;
    GOMP_loop_ull_nonmonotonic_runtime_next(from, to), from, to;
    GOMP_loop_ull_maybe_nonmonotonic_runtime_next(from, to), from, to;
}

// The iterations of ordered loops are assigned in order: libgomp makes threads wait for each other here.
macro_rules! waits_for_shares {
    ($($name:ident)*) => {
        calls! { $(
            Away $name(from, to) |c| { c.may_write(from, 8); c.may_write(to, 8); }
                => |c, out| { if out as u8 != 0 { c.wrote(from, 8); c.wrote(to, 8); } };
        )* }
    };
}

waits_for_shares! {
    GOMP_loop_ordered_static_next GOMP_loop_ordered_dynamic_next GOMP_loop_ordered_guided_next GOMP_loop_ordered_runtime_next
    GOMP_loop_ull_ordered_static_next GOMP_loop_ull_ordered_dynamic_next GOMP_loop_ull_ordered_guided_next
    GOMP_loop_ull_ordered_runtime_next
}

/// The beginning of a loop with task reductions, or with its own memory.
macro_rules! shares_with_memory {
    ($($name:ident($($arg:ident),*), $from:ident, $to:ident, $memory:ident;)*) => {
        calls! { $(
            Inside $name($($arg),*) |c| { c.may_write($from, 8); c.may_write($to, 8); c.may_write($memory, 8); }
                => |c, out| { if out as u8 != 0 { c.wrote($from, 8); c.wrote($to, 8); } c.wrote($memory, 8); };
        )* }
    };
}

shares_with_memory! {
    GOMP_loop_start(a, b, step, kind, chunk, from, to, reductions, memory), from, to, memory;
    GOMP_loop_ordered_start(a, b, step, kind, chunk, from, to, reductions, memory), from, to, memory;
    GOMP_loop_doacross_start(count, counts, kind, chunk, from, to, reductions, memory), from, to, memory;
    GOMP_loop_ull_start(up, a, b, step, kind, chunk, from, to, reductions, memory), from, to, memory;
    GOMP_loop_ull_ordered_start(up, a, b, step, kind, chunk, from, to, reductions, memory), from, to, memory;
    GOMP_loop_ull_doacross_start(count, counts, kind, chunk, from, to, reductions, memory), from, to, memory;
}

impl Call {
    fn takes_section(&mut self, number: usize) {
        // SAFETY: in a hook of the thread.
        unsafe { tasks::section(self.t, number, self.pc) }
    }
}

calls! {
    Inside GOMP_sections_start(count) => |c, out| { c.takes_section(out); };
    Inside GOMP_sections2_start(count, reductions, memory) |c| { c.may_write(memory, 8); }
        => |c, out| { c.wrote(memory, 8); c.takes_section(out); };
    Inside GOMP_sections_next() => |c, out| { c.takes_section(out); };
    Inside GOMP_single_start();
    Inside GOMP_scope_start(reductions);
}
