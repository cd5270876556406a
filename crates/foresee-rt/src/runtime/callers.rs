//! The call stack of each thread, from the hooks at the beginning and at the end of functions.
//!
//! A thread keeps a [`Frame`] for each function that it is in. Nothing is recorded when functions are entered and left: only when
//! a record of the thread is written, what has changed since its last one precedes it ([`changes`]). So functions that do nothing
//! worth recording cost no space in the log.
//!
//! Not every function that is left says so: `longjmp` skips functions, and so does an exception that passes through C. But a frame
//! knows the stack pointer of its hook, and functions whose frames lie below that of a hook that is called now are over. Jumps
//! say where they go. A thread that runs on another stack than its own, as coroutines do, has no call stack from then on: it is
//! not known what belongs to what.

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::thread::{self, Thread};
use super::{config, hook, next::Next, sys};
use crate::format::Call;

/// A function that a thread is in.
#[derive(Clone, Copy)]
#[repr(C)]
struct Frame {
    /// The return address of the function.
    caller: usize,
    /// The stack pointer of the hook at its beginning; the lowest bit is set once the log has the frame.
    sp: usize,
    /// The return address of that hook: a place at the beginning of the function.
    pc: usize,
}

const TOLD: usize = 1;

/// The distance between the return address of a function that is opened and the stack pointer in its frame. Compilers keep the
/// stack aligned where they call hooks, so no hook has this one.
const OPENED: usize = 8;

/// The number of frames that a thread keeps. Deeper calls are only counted.
const FRAMES: usize = 340;
const _: () = assert!((FRAMES as u64) < Call::RETURNS);
/// The bytes that each thread has for them.
const ROOM: usize = 8192;

/// Where the frames of all threads are; zero if there are none.
static ROOMS: AtomicUsize = AtomicUsize::new(0);

/// What a thread knows of its calls.
#[repr(C)]
pub(super) struct Callers {
    /// Null if nothing is known.
    frames: *mut Frame,
    /// The number of functions that the thread is in.
    depth: u32,
    /// The number of frames that the log has.
    told: u32,
    /// Whether it has entered or left a function since the last record.
    pub(super) has_moved: bool,
    /// Whether the log has it that the stack is not known.
    is_told_unknown: bool,
    /// Whether what is recorded happened before it moved.
    pub(super) is_behind: bool,
    /// The thread's own stack.
    low: usize,
    size: usize,
}

/// Makes room, if call stacks are wanted and there is memory.
pub(super) fn prepare() {
    if config::stacks() {
        ROOMS.store(sys::reserve(ROOM * thread::MAX as usize) as usize, Relaxed);
    }
}

/// A thread begins, on this stack; its bounds may be unknown.
///
/// # Safety
/// The caller is `t`.
pub(super) unsafe fn begin(t: *mut Thread, low: usize, size: usize) {
    let rooms = ROOMS.load(Relaxed);
    if rooms == 0 {
        return;
    }
    // SAFETY: the thread's own state; there is room for every thread.
    unsafe {
        let callers = &mut (*t).callers;
        callers.frames = (rooms + ROOM * (*t).id as usize) as *mut Frame;
        (callers.low, callers.size) = if size == 0 { (0, usize::MAX) } else { (low, size) };
    }
}

/// The thread is in no function any more.
///
/// # Safety
/// The caller is `t`.
pub(super) unsafe fn end(t: *mut Thread) {
    // SAFETY: the thread's own state.
    unsafe {
        (*t).callers.depth = 0;
        (*t).callers.has_moved = !(*t).callers.frames.is_null();
    }
}

impl Callers {
    /// # Safety
    /// There is such a frame.
    #[inline(always)]
    unsafe fn sp(&self, number: usize) -> usize {
        // SAFETY: by the caller's promise.
        unsafe { (*self.frames.add(number)).sp & !TOLD }
    }

    /// A function begins whose hook has this stack pointer.
    #[inline(always)]
    pub(super) unsafe fn enter(&mut self, caller: usize, pc: usize, sp: usize) {
        // SAFETY: the thread's own frames, of which there are FRAMES.
        unsafe {
            if self.frames.is_null() {
                return;
            }
            if sp.wrapping_sub(self.low) >= self.size {
                return self.lose();
            }
            let mut depth = self.depth as usize;
            if depth > FRAMES && self.sp(FRAMES - 1) <= sp {
                depth = FRAMES;
            }
            if depth < FRAMES {
                while depth > 0 && self.sp(depth - 1) <= sp {
                    depth -= 1;
                }
                // A signal handler that runs before the frame counts would use its place.
                let frame = self.frames.add(depth);
                frame.write_volatile(Frame { caller, sp, pc });
                (&raw mut self.depth).write_volatile(depth as u32 + 1);
                frame.write_volatile(Frame { caller, sp, pc });
            } else {
                self.enter_deep(caller, pc, sp, depth);
            }
            self.has_moved = true;
        }
    }

    #[cold]
    #[inline(never)]
    unsafe fn enter_deep(&mut self, caller: usize, pc: usize, sp: usize, mut depth: usize) {
        // SAFETY: as above.
        unsafe {
            while depth > 0 && depth <= FRAMES && self.sp(depth - 1) <= sp {
                depth -= 1;
            }
            if depth < FRAMES {
                self.frames.add(depth).write(Frame { caller, sp, pc });
            }
        }
        self.depth = depth as u32 + 1;
    }

    /// A function ends whose hook has this stack pointer and return address.
    #[inline(always)]
    pub(super) unsafe fn leave(&mut self, pc: usize, sp: usize) {
        // SAFETY: the thread's own frames, of which there are FRAMES.
        unsafe {
            let depth = self.depth as usize;
            if self.frames.is_null() || depth == 0 {
                return;
            }
            if depth <= FRAMES && self.sp(depth - 1) >= sp
                || depth > FRAMES && self.sp(FRAMES - 1) >= sp
            {
                self.depth = depth as u32 - 1;
            } else {
                self.leave_many(pc, sp);
            }
            self.has_moved = true;
        }
    }

    /// The hook has a higher stack pointer than the innermost frame. Either functions were left without a hook, or the hook is
    /// called in place of the function's return: then it returns to where the function would.
    #[inline(never)]
    unsafe fn leave_many(&mut self, pc: usize, sp: usize) {
        let mut depth = (self.depth as usize).min(FRAMES);
        let mut is_in_place_of_return = false;
        // SAFETY: as above.
        unsafe {
            while depth > 0 && self.sp(depth - 1) < sp {
                depth -= 1;
                is_in_place_of_return = (*self.frames.add(depth)).caller == pc;
            }
        }
        self.depth = (depth - usize::from(!is_in_place_of_return && depth > 0)) as u32;
    }

    /// The thread is in the function whose return address is in `slot` (zero if that is not known), until [`Callers::close`].
    pub(super) unsafe fn open(&mut self, slot: usize, pc: usize) {
        // SAFETY: the thread's own frames; the caller's return address.
        unsafe {
            if self.frames.is_null() {
                return;
            }
            if slot == 0 {
                return self.lose();
            }
            let depth = self.depth as usize;
            let is_known = depth > FRAMES || depth > 0 && self.sp(depth - 1) < slot;
            if !is_known {
                self.enter((slot as *const usize).read(), pc, slot - OPENED);
            }
        }
    }

    /// The function whose return address is in `slot` is over, unless the hook at its beginning said that the thread is in it.
    pub(super) unsafe fn close(&mut self, slot: usize) {
        // SAFETY: the thread's own frames.
        unsafe {
            let depth = self.depth as usize;
            let is_here = !self.frames.is_null() && depth > 0 && depth <= FRAMES;
            if is_here && self.sp(depth - 1) == slot - OPENED {
                self.depth = depth as u32 - 1;
                self.has_moved = true;
            }
        }
    }

    /// The thread jumps out of all functions whose frames lie below this.
    unsafe fn jump(&mut self, sp: usize) {
        // SAFETY: as above.
        unsafe {
            if self.frames.is_null() {
                return;
            }
            if sp.wrapping_sub(self.low) >= self.size {
                return self.lose();
            }
            let mut depth = self.depth as usize;
            if depth > FRAMES && self.sp(FRAMES - 1) < sp {
                depth = FRAMES;
            }
            while depth > 0 && depth <= FRAMES && self.sp(depth - 1) < sp {
                depth -= 1;
            }
            self.depth = depth as u32;
            self.has_moved = true;
        }
    }

    /// The thread's calls are not known from now on.
    #[cold]
    fn lose(&mut self) {
        self.frames = core::ptr::null_mut();
        self.has_moved = true;
    }
}

/// A change of a thread's call stack, in the order in which the log has them.
pub(super) enum Change {
    /// Calls have returned.
    Returned(u32),
    /// After that many returned, there is a call: the return addresses of the function, and of a hook in the function around it
    /// (zero if there is none), which is not the one that calls if that has no hooks; and an address on the stack below which
    /// nothing was in use when it began.
    Called { returned: u32, at: usize, from: usize, below: usize },
    /// The stack is not known.
    Unknown,
}

/// Passes the changes since the last record of a thread to `tell`.
///
/// # Safety
/// The caller is `t`, or acts for it.
#[cold]
#[inline(never)]
pub(super) unsafe fn changes(t: *mut Thread, tell: impl FnMut(Change)) {
    // SAFETY: by the caller's promise.
    unsafe { (*t).callers.changes(tell) }
}

impl Callers {
    unsafe fn changes(&mut self, mut tell: impl FnMut(Change)) {
        self.has_moved = false;
        let depth = self.depth as usize;
        if self.frames.is_null() || depth > FRAMES {
            if !self.is_told_unknown {
                self.is_told_unknown = true;
                tell(Change::Unknown);
            }
            return;
        }
        // SAFETY: the thread's own frames, of which there are FRAMES.
        unsafe {
            let mut kept = depth.min(self.told as usize);
            while kept > 0 && (*self.frames.add(kept - 1)).sp & TOLD == 0 {
                kept -= 1;
            }
            let mut returned = self.told - kept as u32;
            if kept == depth && (returned > 0 || self.is_told_unknown) {
                tell(Change::Returned(returned));
            }
            for number in kept..depth {
                let frame = self.frames.add(number);
                let at = (*frame).caller;
                let from = number.checked_sub(1).map_or(0, |outer| (*self.frames.add(outer)).pc);
                let below = self.unused_below(number);
                tell(Change::Called { returned, at, from, below });
                (*frame).sp |= TOLD;
                returned = 0;
            }
        }
        self.told = depth as u32;
        self.is_told_unknown = false;
    }
}

/// How far above the stack pointer of a function's hook its return address is looked for, in words.
const SEARCHED: usize = 512;

impl Callers {
    /// Where the return address of a function is: what lies below was not in use when the function began. If it is not found, all
    /// that is known is that nothing below the hook's stack pointer was.
    ///
    /// # Safety
    /// There is such a frame.
    unsafe fn unused_below(&self, number: usize) -> usize {
        // SAFETY: by the caller's promise; the search ends at the frame around it, or where the stack does.
        unsafe {
            let (sp, caller) = (self.sp(number), (*self.frames.add(number)).caller);
            if self.low == 0 {
                return sp;
            }
            let end = match number {
                0 => self.low.saturating_add(self.size),
                _ => self.sp(number - 1),
            };
            let first = sp.next_multiple_of(8);
            let words = (end.saturating_sub(first) / 8).min(SEARCHED);
            let is_return_address =
                |&slot: &usize| (slot as *const usize).read_volatile() == caller;
            (0..words).map(|word| first + 8 * word).find(is_return_address).unwrap_or(sp)
        }
    }
}

/// Defines a function that is called instead of another one, prepares for that, and becomes it.
macro_rules! becomes {
    ($($name:ident => $prepare:ident;)*) => { $(
        #[cfg_attr(foresee_object, unsafe(no_mangle))]
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            core::arch::naked_asm!("push rdi", "push rsi", "sub rsp, 8", "call {}", "add rsp, 8", "pop rsi", "pop rdi", "jmp rax",
                sym $prepare)
        }
    )* };
}

becomes! {
    longjmp => before_longjmp;
    _longjmp => before_plain_longjmp;
    siglongjmp => before_siglongjmp;
    __longjmp_chk => before_longjmp_chk;
    pthread_exit => before_exit;
}

macro_rules! jumps {
    ($($prepare:ident, $name:ident;)*) => { $(
        extern "C" fn $prepare(target: *const usize) -> usize {
            jump_to(target);
            static NEXT: Next = Next::new(
                // SAFETY: ends with its only zero byte.
                unsafe { core::ffi::CStr::from_bytes_with_nul_unchecked(concat!(stringify!($name), "\0").as_bytes()) });
            NEXT.address()
        }
    )* };
}

jumps! {
    before_longjmp, longjmp;
    before_plain_longjmp, _longjmp;
    before_siglongjmp, siglongjmp;
    before_longjmp_chk, __longjmp_chk;
}

extern "C" fn before_exit() -> usize {
    let t = thread::current();
    if !t.is_null() {
        // SAFETY: the caller is that thread.
        unsafe { end(t) };
    }
    static NEXT: Next = Next::new(c"pthread_exit");
    NEXT.address()
}

/// The stack pointer is the seventh word of what `setjmp` keeps, and libc scrambles it.
fn jump_to(target: *const usize) {
    const STACK_POINTER: usize = 6;
    let t = thread::current();
    if t.is_null() {
        return;
    }
    // SAFETY: the program passes what `setjmp` has filled; the thread's own words.
    unsafe {
        let guard: usize;
        core::arch::asm!("mov {}, qword ptr fs:[0x30]", out(reg) guard,
            options(pure, readonly, nostack, preserves_flags));
        let sp = target.add(STACK_POINTER).read().rotate_right(17) ^ guard;
        // The function that called `setjmp` pushes its return address below that, as it did for its own hook.
        (*t).callers.jump(sp.wrapping_sub(8));
    }
}

hook! { swapcontext => swap_context, "rdx"; setcontext => set_context, "rsi"; }

/// The thread continues on another stack.
fn leave_stack() {
    let t = thread::current();
    if !t.is_null() {
        // SAFETY: the caller is that thread.
        unsafe { (*t).callers.lose() };
    }
}

extern "C" fn swap_context(from: *mut u8, to: *const u8, _pc: usize) -> i32 {
    leave_stack();
    super::next::real!(swapcontext(from => *mut u8, to => *const u8) -> i32)
}

extern "C" fn set_context(to: *const u8, _pc: usize) -> i32 {
    leave_stack();
    super::next::real!(setcontext(to => *const u8) -> i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls as a machine makes them: a stack pointer, and what is on the stack.
    struct Machine {
        callers: Callers,
        frames: Vec<Frame>,
        /// Return address and stack pointer of the hook, of each function that is not over.
        stack: Vec<(usize, usize)>,
        /// What the log says.
        log: Option<Vec<usize>>,
    }

    const TOP: usize = 1 << 20;
    /// Where a hook returns to that is called before the function returns.
    const IN_FUNCTION: usize = 1 << 30;

    impl Machine {
        fn new() -> Box<Machine> {
            let none = Frame { caller: 0, sp: 0, pc: 0 };
            let mut machine = Box::new(Machine {
                callers: Callers {
                    frames: core::ptr::null_mut(),
                    depth: 0,
                    told: 0,
                    has_moved: false,
                    is_told_unknown: false,
                    is_behind: false,
                    low: 0,
                    size: TOP + 1,
                },
                frames: vec![none; FRAMES],
                stack: Vec::new(),
                log: Some(Vec::new()),
            });
            machine.callers.frames = machine.frames.as_mut_ptr();
            machine
        }

        fn sp(&self) -> usize {
            self.stack.last().map_or(TOP, |frame| frame.1)
        }

        fn enter(&mut self, caller: usize, size: usize) {
            let sp = self.sp() - 16 - 16 * size;
            self.stack.push((caller, sp));
            // SAFETY: the machine's own frames.
            unsafe { self.callers.enter(caller, 1, sp) };
        }

        fn leave(&mut self, in_place_of_return: bool) {
            let Some((caller, sp)) = self.stack.pop() else { return };
            let (pc, sp) = match in_place_of_return {
                // The return address is below what the caller's hook had.
                true => (caller, self.sp()),
                false => (IN_FUNCTION, sp),
            };
            // SAFETY: the machine's own frames.
            unsafe { self.callers.leave(pc, sp) };
        }

        /// Functions are left without a sign; `is_told` says whether the jump was seen.
        fn jump(&mut self, depth: usize, is_told: bool) {
            self.stack.truncate(depth);
            if is_told {
                // SAFETY: the machine's own frames.
                unsafe { self.callers.jump(self.sp()) };
            }
        }

        fn record(&mut self) {
            let callers = &raw mut self.callers;
            let log = &mut self.log;
            let tell = |change: Change| match change {
                Change::Unknown => *log = None,
                Change::Returned(n) => {
                    let log = log.get_or_insert_default();
                    log.truncate(log.len() - n as usize);
                }
                Change::Called { returned, at, .. } => {
                    let log = log.get_or_insert_default();
                    log.truncate(log.len() - returned as usize);
                    log.push(at);
                }
            };
            // SAFETY: the machine's own frames.
            unsafe { (*callers).changes(tell) };
        }
    }

    fn draw(seed: &mut u64, below: usize) -> usize {
        *seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (*seed >> 33) as usize % below
    }

    #[test]
    fn the_log_has_the_calls_that_are_not_over() {
        for seed in 1..200u64 {
            let (mut seed, mut machine) = (seed, Machine::new());
            for _ in 0..2000 {
                match draw(&mut seed, 20) {
                    0..9 if machine.stack.len() < FRAMES - 1 => {
                        let (caller, size) = (100 + draw(&mut seed, 8), draw(&mut seed, 4));
                        machine.enter(caller, size);
                    }
                    9..15 => machine.leave(false),
                    15..17 => machine.leave(true),
                    17 => {
                        let depth = draw(&mut seed, machine.stack.len() + 1);
                        machine.jump(depth, true);
                    }
                    _ => machine.record(),
                }
            }
            machine.record();
            let expected: Vec<usize> = machine.stack.iter().map(|frame| frame.0).collect();
            assert_eq!(machine.log, Some(expected), "seed {seed}");
        }
    }

    #[test]
    fn what_is_too_deep_is_not_known_until_it_is_over() {
        let mut machine = Machine::new();
        for i in 0..2 * FRAMES {
            machine.enter(i, 0);
        }
        machine.record();
        assert_eq!(machine.log, None);
        for _ in 0..2 * FRAMES - 3 {
            machine.leave(false);
        }
        machine.log = Some(Vec::new());
        machine.record();
        assert_eq!(machine.log, Some(vec![0, 1, 2]));
    }

    #[test]
    fn functions_that_were_skipped_end_with_those_around_them() {
        let mut machine = Machine::new();
        (0..5).for_each(|i| machine.enter(i, 1));
        machine.record();
        machine.jump(2, false);
        machine.leave(false);
        machine.record();
        assert_eq!(machine.log, Some(vec![0]));
        (1..5).for_each(|i| machine.enter(i, 1));
        machine.jump(2, false);
        machine.leave(true);
        machine.record();
        assert_eq!(machine.log, Some(vec![0]));
    }

    #[test]
    fn a_function_whose_hooks_are_over_can_be_opened_again() {
        let mut machine = Machine::new();
        machine.enter(7, 0);
        let caller = 8usize;
        let slot = &raw const caller as usize;
        machine.callers.size = usize::MAX;
        // SAFETY: the machine's own frames, and a word of this function.
        unsafe {
            machine.frames[0].sp = slot + 64;
            machine.callers.open(slot, 1);
            machine.record();
            assert_eq!(machine.log, Some(vec![7, 8]));
            machine.callers.close(slot);
            machine.record();
            assert_eq!(machine.log, Some(vec![7]));
            // A frame that is known stays.
            machine.frames[0].sp = slot - 64;
            machine.callers.open(slot, 1);
            machine.callers.close(slot);
            machine.record();
            assert_eq!(machine.log, Some(vec![7]));
            machine.callers.open(0, 1);
            machine.record();
        }
        assert_eq!(machine.log, None);
    }

    #[test]
    fn what_a_function_has_on_the_stack_lies_below_its_return_address() {
        let mut machine = Machine::new();
        let mut memory = [0usize; 64];
        let start = memory.as_ptr() as usize;
        (machine.callers.low, machine.callers.size) = (start, size_of_val(&memory));
        let at = |word: usize| start + 8 * word;
        // The hook of a function at word 40 whose return address is in word 50, and of one that it calls.
        (memory[50], memory[30], memory[60]) = (7, 8, 7);
        // SAFETY: the machine's own frames.
        unsafe {
            machine.callers.enter(7, 1, at(40));
            machine.callers.enter(8, 1, at(20));
            machine.callers.enter(9, 1, at(10));
            assert_eq!(machine.callers.unused_below(0), at(50));
            assert_eq!(machine.callers.unused_below(1), at(30));
            // Its return address is nowhere.
            assert_eq!(machine.callers.unused_below(2), at(10));
        }
        assert_eq!(memory[50], 7);
    }

    #[test]
    fn another_stack_ends_what_is_known() {
        let mut machine = Machine::new();
        machine.enter(7, 0);
        machine.record();
        // SAFETY: the machine's own frames.
        unsafe { machine.callers.enter(8, 1, 5 * TOP) };
        machine.record();
        assert_eq!(machine.log, None);
    }
}
