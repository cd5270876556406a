//! Functions of libc that access the program's memory: one mechanism for all of them.
//!
//! libc has no hooks, so a table ([`calls!`]) says for each such function what it is about to read
//! and to write and, if only its result shows it, what it wrote. Reads are recorded before libc
//! acts, writes afterwards, with no other thread in between.

use super::channels::Channel;
use super::thread::Thread;
use super::{access, enter, explore, leave, step_aside};

/// How libc is called.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Within the hook: nothing it calls is recorded. For functions that cannot block and do not
    /// call the program.
    Inside,
    /// With the token, but outside the hook: it may call the program, allocate, or be a cancellation point.
    Outside,
    /// Without the token: it may block.
    Aside,
    /// Not at all: it would only let time pass, which a replay need not wait for.
    Skipped,
    /// Without the token, and nothing that it calls is recorded: for a library that may block and is modelled as a whole.
    Away,
}

/// One call of such a function by a recorded thread.
pub(super) struct Call {
    pub(super) t: *mut Thread,
    pub(super) pc: usize,
    pub(super) way: Way,
    /// What will be written regardless of the result.
    certain: [(usize, usize); 4],
    count: usize,
    /// What it receives from.
    pub(super) source: Option<Channel>,
    /// What the program is told instead of libc's result.
    pub(super) instead: Option<usize>,
}

impl Call {
    /// Memory is read now.
    #[inline(always)]
    pub(super) fn reads(&mut self, at: usize, size: usize) {
        if at == 0 {
            return;
        }
        // SAFETY: in a hook of the thread; libc is about to read this memory.
        unsafe {
            match explore::is_on() {
                true => explore::memory::call_reads(self.t, at, size, self.pc),
                false => access::range(self.t, at, size, self.pc, false),
            }
        }
    }

    /// A text is read, with the zero that ends it.
    #[inline(always)]
    pub(super) fn reads_text(&mut self, text: usize) {
        if text != 0 {
            self.reads(text, super::strings::text(text));
        }
    }

    /// Memory may be written; [`Call::wrote`] says afterwards how much of it was.
    #[inline(always)]
    pub(super) fn may_write(&mut self, at: usize, size: usize) {
        if at != 0 {
            // SAFETY: in a hook of the thread; libc is about to write this memory.
            unsafe { access::before_write(self.t, at, size) }
        }
    }

    /// Memory is going to be written.
    #[inline(always)]
    pub(super) fn writes(&mut self, at: usize, size: usize) {
        self.may_write(at, size);
        if let Some(room) = self.certain.get_mut(self.count) {
            *room = (at, size);
            self.count += 1;
        }
    }

    /// Attributes the memory that libc is about to allocate to the caller. Only for calls
    /// [`Way::Outside`].
    pub(super) fn allocates(&mut self) {
        // SAFETY: the thread's own state.
        unsafe { (*self.t).site = self.pc };
    }

    /// A text was written, with the zero that ends it.
    pub(super) fn wrote_text(&mut self, text: usize) {
        if text != 0 {
            self.wrote(text, super::strings::text(text));
        }
    }

    /// Memory was written.
    #[inline(always)]
    pub(super) fn wrote(&mut self, at: usize, size: usize) {
        if at == 0 || size == 0 {
            return;
        }
        // SAFETY: in a hook of the thread; libc wrote this memory.
        unsafe {
            if self.way != Way::Inside && !explore::is_on() {
                // Another thread may have accessed it since.
                access::before_write(self.t, at, size);
            }
            access::written(self.t, at, size, self.pc);
        }
    }
}

/// Performs a call: records what it will access, lets libc `act`, and records the effect.
#[inline(always)]
pub(super) fn carry_out(
    way: Way,
    pc: f64,
    before: impl FnOnce(&mut Call),
    act: impl FnOnce() -> usize,
    after: impl FnOnce(&mut Call, usize),
) -> usize {
    let t = enter();
    if t.is_null() {
        return act();
    }
    // SAFETY: in a hook of `t`.
    unsafe {
        access::settle(t);
        if explore::is_on() {
            explore::memory::begin_call(t);
        }
        let mut call = Call {
            t,
            pc: pc.to_bits() as usize,
            way,
            certain: [(0, 0); 4],
            count: 0,
            source: None,
            instead: None,
        };
        before(&mut call);
        if explore::is_on() {
            explore::memory::before_act(t, call.pc);
            if let Some(file) = call.source.and_then(Channel::awaited) {
                explore::kernel::receives(t, file, call.pc);
            }
        }
        match call.way {
            Way::Inside | Way::Skipped => {}
            Way::Outside => leave(t),
            Way::Aside | Way::Away => step_aside(t),
        }
        let out = match call.way {
            Way::Away => explore::kernel::waits(|| super::in_library(act)),
            Way::Aside => explore::kernel::waits(act),
            Way::Skipped => 0,
            Way::Inside | Way::Outside => act(),
        };
        if !matches!(call.way, Way::Inside | Way::Skipped) && enter().is_null() {
            return out;
        }
        if let Some(channel) = call.source {
            call.received(channel, out);
        }
        for i in 0..call.count {
            let (at, size) = call.certain[i];
            call.wrote(at, size);
        }
        after(&mut call, out);
        leave(t);
        call.instead.unwrap_or(out)
    }
}

/// Intercepts functions: `Way name(arguments) |call| { before } => |call, result| { after };`. Arguments and results are
/// machine words of any type: only the lower half of an `int` is meaningful.
///
/// The return address is passed in a floating-point register: these functions take no floating-point numbers, and some
/// of them need all other registers.
macro_rules! calls {
    ($($way:ident $name:ident($($arg:ident),*) $(|$c:ident| $before:block)? $(=> |$d:ident, $out:ident| $after:block)?;)*) => { $(
        pub(super) mod $name {
            #[allow(unused_imports)]
            use super::*;

            #[allow(unused_variables)]
            pub(in $crate::runtime) extern "C" fn handle($($arg: usize,)* pc: f64) -> usize {
                $crate::runtime::calls::carry_out(
                    $crate::runtime::calls::Way::$way,
                    pc,
                    |call| { $(let $c = call; $before)? },
                    || $crate::runtime::next::real!($name($($arg => usize),*) -> usize),
                    |call, out| { $(let ($d, $out) = (call, out); $after)? },
                )
            }
        }

        $crate::runtime::calls::stand_in_front! { $name => $name::handle }
    )* };
}
pub(super) use calls;

/// Defines a function that programs call, and passes it on with the caller's return address as a floating-point number.
macro_rules! stand_in_front {
    ($name:ident => $target:path) => {
        #[cfg_attr(foresee_object, unsafe(no_mangle))]
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            core::arch::naked_asm!("movsd xmm0, qword ptr [rsp]", "jmp {}", sym $target)
        }
    };
}
pub(super) use stand_in_front;

/// The arguments after the named ones of a variadic function, as the x86-64 ABI passes them.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct List {
    gp_offset: u32,
    fp_offset: u32,
    overflow: usize,
    saved: usize,
}

impl List {
    /// A copy of a `va_list`, to be read.
    ///
    /// # Safety
    /// `list` is one.
    pub(super) unsafe fn copy(list: usize) -> List {
        // SAFETY: by the caller's promise.
        unsafe { *(list as *const List) }
    }

    /// The next whole number or pointer.
    ///
    /// # Safety
    /// There is one, as for all methods.
    pub(super) unsafe fn word(&mut self) -> usize {
        // SAFETY: by the caller's promise.
        unsafe {
            if self.gp_offset < 48 {
                self.gp_offset += 8;
                return *((self.saved + self.gp_offset as usize - 8) as *const usize);
            }
            self.overflow += 8;
            *((self.overflow - 8) as *const usize)
        }
    }

    /// Skips a `double`.
    pub(super) fn skip_double(&mut self) {
        if self.fp_offset < 176 {
            self.fp_offset += 16;
        } else {
            self.overflow += 8;
        }
    }

    /// Skips a `long double`.
    pub(super) fn skip_long_double(&mut self) {
        self.overflow = self.overflow.next_multiple_of(16) + 16;
    }
}

/// Intercepts functions that take any number of arguments after `fixed` named ones: collects these in a `va_list` and
/// calls our version of the function that takes such a list. The frame can be unwound, because a thread may be cancelled
/// within.
macro_rules! variadic {
    ($($name:ident, $fixed:literal, $list:literal => $target:path;)*) => { $(
        #[cfg_attr(foresee_object, unsafe(no_mangle))]
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                "push rbp", ".cfi_def_cfa_offset 16", ".cfi_offset rbp, -16",
                "mov rbp, rsp", ".cfi_def_cfa_register rbp",
                "sub rsp, 208",
                "mov [rsp], rdi", "mov [rsp + 8], rsi", "mov [rsp + 16], rdx",
                "mov [rsp + 24], rcx", "mov [rsp + 32], r8", "mov [rsp + 40], r9",
                "test al, al", "je 2f",
                "movaps [rsp + 48], xmm0", "movaps [rsp + 64], xmm1",
                "movaps [rsp + 80], xmm2", "movaps [rsp + 96], xmm3",
                "movaps [rsp + 112], xmm4", "movaps [rsp + 128], xmm5",
                "movaps [rsp + 144], xmm6", "movaps [rsp + 160], xmm7",
                "2:",
                concat!("mov dword ptr [rsp + 176], 8 * ", $fixed),
                "mov dword ptr [rsp + 180], 48",
                "lea rax, [rbp + 16]", "mov [rsp + 184], rax",
                "mov [rsp + 192], rsp",
                concat!("lea ", $list, ", [rsp + 176]"),
                "movsd xmm0, qword ptr [rbp + 8]",
                "call {}",
                "leave", ".cfi_def_cfa rsp, 8",
                "ret", ".cfi_endproc",
                sym $target
            )
        }
    )* };
}
pub(super) use variadic;
