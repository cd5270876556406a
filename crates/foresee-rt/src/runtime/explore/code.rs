//! What the code after a hook of a store does first: the store, or a call of another hook.
//!
//! gcc announces both sides of an assignment of structures before it copies them, the target first. Whether a store has happened
//! by the thread's next hook must not be concluded from memory, which other threads write: a thread's operations would then hang
//! on what it was not told. The machine code says it. Only the instructions that compilers put there are decoded; anything
//! else counts as the store.

/// What comes first after a place in the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum First {
    /// Memory is written, or it is not known.
    Store,
    /// A function is called, which returns to this place.
    Call(usize),
}

/// The most bytes that are looked at.
const NEAR: usize = 64;

/// What the code at `pc` does first. Stores into the frame are spills, unless the store `is_on_stack` itself.
///
/// # Safety
/// `pc` is in code that is about to run.
pub(super) unsafe fn first(pc: usize, is_on_stack: bool) -> First {
    let mut at = pc;
    while at < pc + NEAR {
        // SAFETY: by the caller's promise; an instruction is shorter than what follows any code in memory.
        let bytes = unsafe { core::slice::from_raw_parts(at as *const u8, 16) };
        match decode(bytes) {
            Some(Instruction { what: What::Call, len }) => return First::Call(at + len),
            Some(Instruction { what: What::Spill, len }) if !is_on_stack => at += len,
            Some(Instruction { what: What::Other, len }) => at += len,
            _ => return First::Store,
        }
    }
    First::Store
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Other,
    Store,
    /// A store relative to the stack pointer.
    Spill,
    Call,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Instruction {
    what: What,
    len: usize,
}

/// How an instruction uses the operand that may be in memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operand {
    Read,
    Write,
    /// Depends on the middle bits of its second byte.
    Group,
}

/// Decodes an instruction; `None` if it is not one that is expected, or leaves the sequence.
fn decode(code: &[u8]) -> Option<Instruction> {
    let mut at = 0;
    let (mut is_wide, mut is_half, mut has_prefix) = (false, false, false);
    loop {
        match code[at] {
            0x66 => is_half = true,
            0xf2 | 0xf3 => has_prefix = true,
            // The linker pads calls with it.
            0x67 => {}
            _ => break,
        }
        at += 1;
        if at > 4 {
            return None;
        }
    }
    if code[at] & 0xf0 == 0x40 {
        is_wide = code[at] & 8 != 0;
        at += 1;
    }
    let full = if is_half { 2 } else { 4 };
    let op = code[at];
    at += 1;
    let plain = |at: usize| Some(Instruction { what: What::Other, len: at });
    match op {
        0xe8 => Some(Instruction { what: What::Call, len: at + 4 }),
        0x50..=0x5f | 0x90 | 0x98 | 0x99 => plain(at),
        0xb0..=0xb7 => plain(at + 1),
        0xb8..=0xbf => plain(at + if is_wide { 8 } else { full }),
        0x04 | 0x0c | 0x14 | 0x1c | 0x24 | 0x2c | 0x34 | 0x3c | 0xa8 => plain(at + 1),
        0x05 | 0x0d | 0x15 | 0x1d | 0x25 | 0x2d | 0x35 | 0x3d | 0xa9 => plain(at + full),
        // Arithmetic: to memory, then to a register; comparisons write nothing.
        0x38 | 0x39 | 0x84 | 0x85 => operand(code, at, Operand::Read, 0),
        0x00..=0x3b if op & 7 < 2 => operand(code, at, Operand::Write, 0),
        0x00..=0x3b if op & 7 < 4 => operand(code, at, Operand::Read, 0),
        0x63 | 0x8a | 0x8b | 0x8d => operand(code, at, Operand::Read, 0),
        0x69 => operand(code, at, Operand::Read, full),
        0x6b => operand(code, at, Operand::Read, 1),
        0x86..=0x89 => operand(code, at, Operand::Write, 0),
        0x80 | 0x83 => {
            let is_compare = code[at] >> 3 & 7 == 7;
            operand(code, at, if is_compare { Operand::Read } else { Operand::Write }, 1)
        }
        0x81 => {
            let is_compare = code[at] >> 3 & 7 == 7;
            operand(code, at, if is_compare { Operand::Read } else { Operand::Write }, full)
        }
        0xc0 | 0xc1 => operand(code, at, Operand::Write, 1),
        0xd0..=0xd3 => operand(code, at, Operand::Write, 0),
        0xc6 => operand(code, at, Operand::Write, 1),
        0xc7 => operand(code, at, Operand::Write, full),
        0xf6 | 0xf7 => {
            let which = code[at] >> 3 & 7;
            let number = if which < 2 { if op == 0xf6 { 1 } else { full } } else { 0 };
            let is_written = which == 2 || which == 3;
            operand(code, at, if is_written { Operand::Write } else { Operand::Read }, number)
        }
        0xff => operand(code, at, Operand::Group, 0),
        0x0f => two_bytes(code, at, has_prefix || is_half),
        // The short forms of what vector instructions of newer processors begin with.
        0xc5 => vector(code, at, 1, 1),
        0xc4 => vector(code, at, 2, code[at] & 0x1f),
        _ => None,
    }
}

fn two_bytes(code: &[u8], at: usize, has_prefix: bool) -> Option<Instruction> {
    let op = code[at];
    match op {
        0x11 | 0x13 | 0x17 | 0x29 | 0x2b | 0x7f | 0xd6 | 0xe7 => {
            operand(code, at + 1, Operand::Write, 0)
        }
        // To a register with the prefix f3, from one otherwise.
        0x7e => match code[0] == 0xf3 {
            true => operand(code, at + 1, Operand::Read, 0),
            false => operand(code, at + 1, Operand::Write, 0),
        },
        0x90..=0x9f => operand(code, at + 1, Operand::Write, 0),
        0x1e | 0x1f | 0x10 | 0x12 | 0x14..=0x16 | 0x28 | 0x2a | 0x2c..=0x2f => {
            operand(code, at + 1, Operand::Read, 0)
        }
        0x40..=0x6f | 0x74..=0x76 | 0xaf | 0xb6 | 0xb7 | 0xbc..=0xbf | 0xd0..=0xff => {
            operand(code, at + 1, Operand::Read, 0)
        }
        0x70 | 0xc2 | 0xc6 if has_prefix || op != 0x70 => operand(code, at + 1, Operand::Read, 1),
        _ => None,
    }
}

fn vector(code: &[u8], at: usize, len: usize, map: u8) -> Option<Instruction> {
    let op = code[at + len];
    let next = at + len + 1;
    match (map, op) {
        (1, 0x11 | 0x13 | 0x17 | 0x29 | 0x2b | 0x7e | 0x7f | 0xd6 | 0xe7) => {
            operand(code, next, Operand::Write, 0)
        }
        (1, 0x70 | 0xc2 | 0xc6) => operand(code, next, Operand::Read, 1),
        (1, 0x10..=0x6f | 0xd0..=0xff) => operand(code, next, Operand::Read, 0),
        _ => None,
    }
}

/// The operand that may be in memory, and then a number with this many bytes.
fn operand(code: &[u8], at: usize, use_of: Operand, number: usize) -> Option<Instruction> {
    let byte = code[at];
    let (mode, middle, base) = (byte >> 6, byte >> 3 & 7, byte & 7);
    let mut len = at + 1;
    let mut is_frame = false;
    if mode != 3 {
        if base == 4 {
            let index = code[len];
            is_frame = index & 7 == 4 && index >> 3 & 7 == 4;
            len += 1;
            if mode == 0 && index & 7 == 5 {
                len += 4;
            }
        }
        len += match mode {
            0 if base == 5 => 4,
            0 => 0,
            1 => 1,
            _ => 4,
        };
    }
    len += number;
    let is_written = match use_of {
        Operand::Read => false,
        Operand::Write => true,
        Operand::Group => match middle {
            0 | 1 => true,
            2 => return Some(Instruction { what: What::Call, len }),
            6 => false,
            _ => return None,
        },
    };
    let what = match (is_written && mode != 3, is_frame) {
        (false, _) => What::Other,
        (true, true) => What::Spill,
        (true, false) => What::Store,
    };
    Some(Instruction { what, len })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_calls_and_what_is_between_them_are_told_apart() {
        let cases: [(&[u8], What, usize); 17] = [
            (&[0x89, 0x05, 1, 2, 3, 4], What::Store, 6), // mov [rip+x], eax
            (&[0x48, 0x89, 0xd0], What::Other, 3),       // mov rax, rdx
            (&[0x48, 0x8b, 0x45, 0xf8], What::Other, 4), // mov rax, [rbp-8]
            (&[0x48, 0x89, 0x44, 0x24, 0x08], What::Spill, 5), // mov [rsp+8], rax
            (&[0xc7, 0x05, 0, 0, 0, 0, 1, 0, 0, 0], What::Store, 10), // mov dword [rip], 1
            (&[0xc6, 0x00, 0x01], What::Store, 3),       // mov byte [rax], 1
            (&[0x66, 0xc7, 0x00, 0x01, 0x00], What::Store, 5), // mov word [rax], 1
            (&[0xe8, 0, 0, 0, 0], What::Call, 5),
            (&[0x67, 0xe8, 0, 0, 0, 0], What::Call, 6),
            (&[0xff, 0x15, 0, 0, 0, 0], What::Call, 6), // call [rip]
            (&[0xf3, 0x0f, 0x11, 0x00], What::Store, 4), // movss [rax], xmm0
            (&[0x0f, 0x29, 0x00], What::Store, 3),      // movaps [rax], xmm0
            (&[0x83, 0x00, 0x01], What::Store, 3),      // add dword [rax], 1
            (&[0x83, 0x38, 0x01], What::Other, 3),      // cmp dword [rax], 1
            (&[0x48, 0x8d, 0x3d, 0, 0, 0, 0], What::Other, 7), // lea rdi, [rip]
            (&[0xf3, 0x0f, 0x7e, 0x00], What::Other, 4), // movq xmm0, [rax]
            (&[0x66, 0x0f, 0xd6, 0x00], What::Store, 4), // movq [rax], xmm0
        ];
        for (bytes, what, len) in cases {
            let mut code = [0x90; 32];
            code[..bytes.len()].copy_from_slice(bytes);
            assert_eq!(decode(&code), Some(Instruction { what, len }), "{bytes:x?}");
        }
        assert_eq!(decode(&[0xc3; 16]), None);
    }

    #[test]
    fn the_first_effect_of_code_is_found() {
        // mov rax, [rbp-8]; mov rdi, rax; call; mov [rax], edx
        let code: [u8; 15] =
            [0x48, 0x8b, 0x45, 0xf8, 0x48, 0x89, 0xc7, 0xe8, 0, 0, 0, 0, 0x89, 0x10, 0xc3];
        let mut room = [0xc3_u8; 96];
        room[..code.len()].copy_from_slice(&code);
        let at = room.as_ptr() as usize;
        // SAFETY: the bytes are there.
        unsafe {
            assert_eq!(first(at, false), First::Call(at + 12));
            assert_eq!(first(at + 12, false), First::Store);
        }
    }
}
