//! Hooks that the assembler of `foresee cc` adds where compilers leave them out.
//!
//! They precede single instructions, in the middle of code that does not expect a call: every
//! register and the flags are preserved. The caller has moved the stack pointer below the
//! function's red zone and pushed `rdi` and `rsi`, which hold the address and the size. Each hook
//! has three forms, depending on what else the function uses: only general registers, SSE registers
//! (`_x`), or wider ones (`_y`).

use super::{access, enter, explore, leave, process, thread, token};

/// Defines the three forms of a hook. `$ours` is code that jumps to `9` if the access is private.
macro_rules! added {
    ($($plain:ident $sse:ident $wide:ident => $target:path, $ours:expr;)*) => { $(
        added!(@ $plain, $target, $ours, "", "");
        added!(@ $sse, $target, $ours, "sub rsp, 512\nfxsave64 [rsp]", "fxrstor64 [rsp]");
        // The header of the area must be zero: it describes what was in use when the registers were
        // saved.
        added!(@ $wide, $target, $ours,
            "sub rsp, 2752\nand rsp, -64\nxor eax, eax\nmov [rsp + 512], rax\nmov [rsp + 520], rax\n\
             mov [rsp + 528], rax\nmov [rsp + 536], rax\nmov [rsp + 544], rax\nmov [rsp + 552], rax\n\
             mov [rsp + 560], rax\nmov [rsp + 568], rax\nxor edx, edx\nmov eax, 0xe7\nxsave64 [rsp]\n\
             mov rdx, [rbp + 16]",
            "xor edx, edx\nmov eax, 0xe7\nxrstor64 [rsp]");
    )* };
    (@ $name:ident, $target:path, $ours:expr, $save:literal, $restore:literal) => {
        #[cfg_attr(foresee_object, unsafe(no_mangle))]
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                "pushfq", ".cfi_def_cfa_offset 16",
                "push rbp", ".cfi_def_cfa_offset 24", ".cfi_offset rbp, -24",
                "mov rbp, rsp", ".cfi_def_cfa_register rbp",
                "push rax",
                "cmp dword ptr [rip + {state}], {not}", "je 9f",
                $ours,
                "push rcx", "push rdx", "push rsi", "push rdi",
                "push r8", "push r9", "push r10", "push r11",
                "and rsp, -16",
                "mov rdx, [rbp + 16]",
                $save,
                "call {target}",
                $restore,
                "lea rsp, [rbp - 72]",
                "pop r11", "pop r10", "pop r9", "pop r8",
                "pop rdi", "pop rsi", "pop rdx", "pop rcx",
                "9:",
                "pop rax",
                "pop rbp", ".cfi_def_cfa rsp, 16",
                "popfq", ".cfi_def_cfa_offset 8",
                "ret", ".cfi_endproc",
                state = sym process::STATE,
                not = const process::NOT_RECORDED,
                target = sym $target,
            )
        }
    };
}

/// The size also encodes the end of the function's frame, if it matters: in words above its stack
/// pointer or, with the highest bit, at its frame pointer. A frame that its function keeps private
/// is ignored.
///
/// The stack pointer of the function is 168 above `rbp`: that and the flags, a return address, two
/// pushed registers, and the 128 bytes of the red zone.
macro_rules! unless_own {
    () => {
        "mov eax, esi\nand esi, 0xfff\nshr eax, 12\njz 2f\ntest eax, 0x80000\njnz 3f\nlea rax, [rbp + rax * 8 + 168]\n\
         jmp 4f\n3:\nmov rax, [rbp]\nadd rax, 16\n4:\ncmp rdi, rax\njae 2f\nlea rax, [rbp + 40]\ncmp rdi, rax\njae 9f\n2:"
    };
}

added! {
    foresee_read foresee_read_x foresee_read_y => read, unless_own!();
    foresee_write foresee_write_x foresee_write_y => write, unless_own!();
    foresee_update foresee_update_x foresee_update_y => update, unless_own!();
    foresee_atomic foresee_atomic_x foresee_atomic_y => atomic, unless_own!();
    foresee_read_range foresee_read_range_x foresee_read_range_y => read, "";
    foresee_write_range foresee_write_range_x foresee_write_range_y => write, "";
    foresee_open foresee_open_x foresee_open_y => open, "";
    foresee_close foresee_close_x foresee_close_y => close, "";
}

/// What is recorded until [`close`] happens in the function whose return address is in `slot`, whether or not the hook at its
/// beginning said so.
extern "C" fn open(slot: usize, _size: usize, pc: usize) {
    let t = thread::current();
    if !t.is_null() {
        // SAFETY: the caller is that thread, and the function's frame exists.
        unsafe { (*t).callers.open(slot, pc) };
    }
}

extern "C" fn close(slot: usize) {
    let t = thread::current();
    if !t.is_null() {
        // SAFETY: the caller is that thread.
        unsafe { (*t).callers.close(slot) };
    }
}

extern "C" fn read(address: usize, size: usize, pc: usize) {
    access(address, size, pc, true, false);
}

extern "C" fn write(address: usize, size: usize, pc: usize) {
    access(address, size, pc, false, true);
}

extern "C" fn update(address: usize, size: usize, pc: usize) {
    access(address, size, pc, true, true);
}

/// An instruction that was written to be atomic. Threads spin with them.
extern "C" fn atomic(address: usize, size: usize, pc: usize) {
    let t = enter();
    if !t.is_null() {
        // SAFETY: the hook of an access to this memory.
        unsafe {
            token::charge_for_atomic(t);
            access::announce_atomic(t, address, size, pc);
            leave(t);
        }
    }
}

fn access(address: usize, size: usize, pc: usize, reads: bool, writes: bool) {
    let t = enter();
    if t.is_null() {
        return;
    }
    // SAFETY: the hook of an access to this memory.
    unsafe {
        if explore::is_on() {
            explore::memory::instruction(t, address, size, pc, (reads, writes));
            return leave(t);
        }
        if reads {
            access::read_between(t, address, size, pc);
        }
        if writes {
            access::range(t, address, size, pc, true);
            access::happens_now(t);
        }
        leave(t);
    }
}
