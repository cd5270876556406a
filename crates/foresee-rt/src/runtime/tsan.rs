//! The hooks of plain accesses and of functions.

use super::{Errno, access, config, enter, enter_knowing, hook, leave, log, modules, thread};
use crate::format::Tag;

macro_rules! plain {
    ($($name:ident, $inner:ident, $size:literal, $write:literal;)*) => { $(
        extern "C" fn $inner(address: usize, pc: usize) {
            access::plain::<$size, $write>(address, pc);
        }
        hook! { $name => $inner, "rsi"; }
    )* };
}

plain! {
    __tsan_read1, read1, 1, false;
    __tsan_read2, read2, 2, false;
    __tsan_read4, read4, 4, false;
    __tsan_read8, read8, 8, false;
    __tsan_write1, write1, 1, true;
    __tsan_write2, write2, 2, true;
    __tsan_write4, write4, 4, true;
    __tsan_write8, write8, 8, true;
}

hook! {
    __tsan_unaligned_read2 => read2, "rsi";
    __tsan_unaligned_read4 => read4, "rsi";
    __tsan_unaligned_read8 => read8, "rsi";
    __tsan_unaligned_write2 => write2, "rsi";
    __tsan_unaligned_write4 => write4, "rsi";
    __tsan_unaligned_write8 => write8, "rsi";
    __tsan_volatile_read1 => read1, "rsi";
    __tsan_volatile_read2 => read2, "rsi";
    __tsan_volatile_read4 => read4, "rsi";
    __tsan_volatile_read8 => read8, "rsi";
    __tsan_volatile_write1 => write1, "rsi";
    __tsan_volatile_write2 => write2, "rsi";
    __tsan_volatile_write4 => write4, "rsi";
    __tsan_volatile_write8 => write8, "rsi";
    __tsan_unaligned_volatile_read2 => read2, "rsi";
    __tsan_unaligned_volatile_read4 => read4, "rsi";
    __tsan_unaligned_volatile_read8 => read8, "rsi";
    __tsan_unaligned_volatile_write2 => write2, "rsi";
    __tsan_unaligned_volatile_write4 => write4, "rsi";
    __tsan_unaligned_volatile_write8 => write8, "rsi";
    __tsan_read16 => read16, "rsi";
    __tsan_write16 => write16, "rsi";
    __tsan_unaligned_read16 => read16, "rsi";
    __tsan_unaligned_write16 => write16, "rsi";
    __tsan_volatile_read16 => read16, "rsi";
    __tsan_volatile_write16 => write16, "rsi";
    __tsan_unaligned_volatile_read16 => read16, "rsi";
    __tsan_unaligned_volatile_write16 => write16, "rsi";
    __tsan_read_write1 => update1, "rsi";
    __tsan_read_write2 => update2, "rsi";
    __tsan_read_write4 => update4, "rsi";
    __tsan_read_write8 => update8, "rsi";
    __tsan_read_write16 => update16, "rsi";
    __tsan_unaligned_read_write2 => update2, "rsi";
    __tsan_unaligned_read_write4 => update4, "rsi";
    __tsan_unaligned_read_write8 => update8, "rsi";
    __tsan_unaligned_read_write16 => update16, "rsi";
    __tsan_read_range => read_range, "rdx";
    __tsan_write_range => write_range, "rdx";
    __tsan_vptr_read => read8, "rsi";
    __tsan_vptr_update => vptr_update, "rdx";
}

macro_rules! update {
    ($($name:ident, $size:literal;)*) => { $(
        extern "C" fn $name(address: usize, pc: usize) {
            range(address, $size, pc, false);
            range(address, $size, pc, true);
        }
    )* };
}

update! { update1, 1; update2, 2; update4, 4; update8, 8; update16, 16; }

extern "C" fn read16(address: usize, pc: usize) {
    range(address, 16, pc, false);
}

extern "C" fn write16(address: usize, pc: usize) {
    range(address, 16, pc, true);
}

extern "C" fn read_range(address: usize, size: usize, pc: usize) {
    range(address, size, pc, false);
}

extern "C" fn write_range(address: usize, size: usize, pc: usize) {
    range(address, size, pc, true);
}

fn range(address: usize, size: usize, pc: usize, write: bool) {
    // SAFETY: the caller's own thread.
    let t = enter_knowing(|t| !write && unsafe { access::is_source(t, size, pc) });
    if !t.is_null() {
        // SAFETY: the hook of an access to this memory.
        unsafe {
            access::range(t, address, size, pc, write);
            leave(t);
        }
    }
}

/// A pointer to a virtual function table is set, usually to the value that it has already, in the destructor of a base class.
extern "C" fn vptr_update(address: usize, value: usize, pc: usize) {
    // SAFETY: the object exists.
    if unsafe { access::load(address, 8) } == value as u64 {
        access::plain::<8, false>(address, pc);
    } else {
        access::plain::<8, true>(address, pc);
    }
}

/// The hooks of functions, which are passed the stack pointer as well.
#[cfg_attr(foresee_object, unsafe(no_mangle))]
#[unsafe(naked)]
unsafe extern "C" fn __tsan_func_entry() {
    core::arch::naked_asm!("mov rsi, qword ptr [rsp]", "mov rdx, rsp", "jmp {}", sym func_entry)
}

#[cfg_attr(foresee_object, unsafe(no_mangle))]
#[unsafe(naked)]
unsafe extern "C" fn __tsan_func_exit() {
    core::arch::naked_asm!("mov rdi, qword ptr [rsp]", "mov rsi, rsp", "jmp {}", sym func_exit)
}

extern "C" fn func_entry(caller: usize, pc: usize, sp: usize) {
    let t = thread::current();
    if !t.is_null() {
        // SAFETY: the caller is that thread. A store happens in the function that announced it.
        unsafe {
            access::happens_now(t);
            (*t).callers.enter(caller, pc, sp);
        }
    }
    if config::calls() && modules::is_wanted(pc) {
        call(Tag::Enter, pc);
    }
}

extern "C" fn func_exit(pc: usize, sp: usize) {
    let t = thread::current();
    if !t.is_null() {
        // SAFETY: as above.
        unsafe {
            access::happens_now(t);
            (*t).callers.leave(pc, sp);
        }
    }
    if config::calls() && modules::is_wanted(pc) {
        call(Tag::Exit, pc);
    }
}

fn call(tag: Tag, pc: usize) {
    let t = enter();
    if !t.is_null() {
        // SAFETY: in a hook of `t`.
        unsafe {
            access::settle(t);
            log::put(t, tag as u8, pc, 0, 0);
            leave(t);
        }
    }
}

hook! { __tsan_init => init, "rdi"; }

/// Called by constructors that the compiler adds to every instrumented file, including plugins.
extern "C" fn init(pc: usize) {
    let _errno = Errno::save();
    let t = enter();
    if !t.is_null() {
        // SAFETY: in a hook of `t`.
        unsafe {
            access::settle(t);
            modules::announce(t);
            let place = (*t).place;
            log::put(t, Tag::Instrumented as u8, pc, 0, 0);
            (*t).place = place;
            leave(t);
        }
    }
}

/// Part of the interface; nothing here depends on it.
#[cfg_attr(foresee_object, unsafe(no_mangle))]
extern "C" fn __tsan_ignore_thread_begin() {}

/// Part of the interface; nothing here depends on it.
#[cfg_attr(foresee_object, unsafe(no_mangle))]
extern "C" fn __tsan_ignore_thread_end() {}
