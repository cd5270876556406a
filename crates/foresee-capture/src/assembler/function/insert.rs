//! Inserts hooks before the instructions that lack them.

use super::super::instruction::{Instruction, Memory, Operand, RAX, RBP, RCX, RDI, RSI, RSP, name};
use super::super::values::Values;
use super::{Frame, Hook, Walk};

impl<'a> Walk<'_, 'a, '_> {
    /// Handles inline assembly, which has no hooks.
    pub(super) fn foreign(&mut self, line: &'a str) {
        let code = line.split_once('#').map_or(line, |(code, _)| code);
        if code.trim_start().starts_with(['.', '"']) || code.contains('"') {
            return self.emit(line);
        }
        let mut prefix = "";
        for statement in code.split(';') {
            let mut rest = statement.trim();
            while let Some((label, behind)) = rest.split_once(':').filter(|(l, _)| is_label(l)) {
                self.emit(&format!("{label}:"));
                rest = behind.trim();
            }
            if rest == "lock" || rest == "rep" {
                prefix = rest;
                continue;
            }
            let joined = [prefix, rest].join(" ");
            let text = if prefix.is_empty() { rest } else { joined.trim() };
            prefix = "";
            if let Some(instruction) = Instruction::parse(text) {
                self.foreign_instruction(&instruction);
            }
            self.emit(&format!("\t{text}"));
        }
    }

    pub(super) fn foreign_instruction(&mut self, instruction: &Instruction<'_>) {
        let is_string = self.is_string_operation(instruction);
        if instruction.mnemonic == "syscall" || is_string {
            return self.doubt("inline assembly");
        }
        let Some((_, memory)) = instruction.memory() else { return };
        // On the function's own stack are variables that no other thread knows, or the dummy
        // operand of a fence.
        if memory.base == Some(RSP) || memory.base == Some(RBP) || memory.displacement.contains('@')
        {
            return;
        }
        if let Some(size) = instruction.atomic_size() {
            self.add(memory, "foresee_atomic", size, false);
        } else if let Some(access) = instruction.access() {
            if let Some(hook) = hook_for(access.reads, access.writes) {
                self.add(memory, hook, access.size, false);
            }
        } else {
            self.doubt("inline assembly");
        }
    }

    /// Adds a hook. If the address may be in a frame that the function keeps private, the hook gets
    /// the position of the frame.
    pub(super) fn add(&mut self, memory: &Memory<'_>, hook: &str, size: u64, may_be_frame: bool) {
        self.completed.added += 1;
        if hook != "foresee_read" {
            // Stores that were announced and have not happened are recorded too early: they get
            // hooks of their own.
            self.hooks.retain(|h| !h.writes);
        }
        let frame = match self.frame {
            Some(f) if may_be_frame && self.facts.has_pointers() && !self.facts.escapes => {
                match f.register {
                    RSP => (f.offset as u64 / 8).min(0x3_ffff) << 12,
                    _ => 1 << 31,
                }
            }
            _ => 0,
        };
        let thread = memory.segment == "fs";
        if thread && (memory.base == Some(RDI) || memory.index == Some(RDI)) {
            self.doubt("thread-local memory");
            return;
        }
        let mut place = String::new();
        if thread {
            // `lea` does not support segments.
            place.push_str("\tmovq\t%fs:0, %rdi\n");
        }
        let shift = if memory.base == Some(RSP) { format!("{ROOM}+") } else { String::new() };
        let displacement = if memory.displacement.is_empty() { "0" } else { memory.displacement };
        let displacement = format!("{shift}{displacement}");
        let base = match (memory.is_relative, memory.base) {
            (true, _) => "%rip".to_owned(),
            (_, Some(base)) => format!("%{}", name(base)),
            (_, None) if thread => "%rdi".to_owned(),
            _ => String::new(),
        };
        let index = match memory.index {
            Some(index) => format!(",%{},{}", name(index), memory.scale),
            None => String::new(),
        };
        if thread && memory.base.is_some() {
            place.push_str(&format!("\tleaq\t{displacement}(%rdi,{base}), %rdi\n"));
        } else if base.is_empty() && index.is_empty() {
            place.push_str(&format!("\tleaq\t{displacement}, %rdi\n"));
        } else {
            place.push_str(&format!("\tleaq\t{displacement}({base}{index}), %rdi\n"));
        }
        place.push_str(&format!("\tmovl\t${:#x}, %esi\n", size | frame));
        place.push_str(&self.call_of(hook));
        self.insert(&place);
    }

    /// The runtime learns that the thread is in this function before a call, and that it is not after it.
    pub(super) fn open_call(&mut self) {
        let code = self.return_address() + &self.call_of("foresee_open");
        self.put(&code);
    }

    pub(super) fn close_call(&mut self) {
        let code = self.return_address() + &self.call_of("foresee_close");
        self.put(&code);
    }

    /// Loads the place of the function's return address, or zero if it is not known.
    fn return_address(&self) -> String {
        match self.frame {
            Some(Frame { register: RSP, offset }) => {
                format!("\tleaq\t{}(%rsp), %rdi\n", ROOM + offset - 8)
            }
            Some(Frame { register, offset }) => {
                format!("\tleaq\t{}(%{}), %rdi\n", offset - 8, name(register))
            }
            None => "\tmovl\t$0, %edi\n".to_owned(),
        }
    }

    /// Inserts hooks. The runtime knows that the thread is in this function when it is called.
    pub(super) fn insert(&mut self, hooks: &str) {
        if !self.is_outside {
            return self.put(hooks);
        }
        let slot = self.return_address();
        let (open, close) = (self.call_of("foresee_open"), self.call_of("foresee_close"));
        self.put(&format!("{slot}{open}\tmovq\t8(%rsp), %rdi\n{hooks}{slot}{close}"));
    }

    /// Inserts code that preserves registers, flags and the memory below the stack pointer.
    fn put(&mut self, code: &str) {
        let of_stack = self.frame.is_some_and(|f| f.register == RSP);
        let (grow, shrink) = if of_stack {
            (
                format!("\t.cfi_adjust_cfa_offset {ROOM}\n"),
                format!("\t.cfi_adjust_cfa_offset -{ROOM}\n"),
            )
        } else {
            Default::default()
        };
        if let Some(out) = &mut self.out {
            out.push_str("\tleaq\t-128(%rsp), %rsp\n\tpushq\t%rdi\n\tpushq\t%rsi\n");
            out.push_str(&grow);
            out.push_str(code);
            out.push_str("\tpopq\t%rsi\n\tpopq\t%rdi\n\tleaq\t128(%rsp), %rsp\n");
            out.push_str(&shrink);
        }
    }

    /// Through the global offset table: lazy binding must not change registers.
    pub(super) fn call_of(&self, hook: &str) -> String {
        format!("\tcall\t*{hook}{}@GOTPCREL(%rip)\n", self.form)
    }

    pub(super) fn is_string_operation(&self, instruction: &Instruction<'_>) -> bool {
        let bytes = instruction.mnemonic.as_bytes();
        matches!(bytes, [rest @ .., b'b' | b'w' | b'l' | b'q'] if matches!(rest, b"movs" | b"stos" | b"lods" | b"scas" | b"cmps"))
            && !instruction.operands.iter().any(|o| matches!(o, Operand::Immediate(_)))
    }

    pub(super) fn string_operation(&mut self, instruction: &Instruction<'_>) {
        let m = instruction.mnemonic;
        let size = match m.as_bytes()[m.len() - 1] {
            b'b' => 1,
            b'w' => 2,
            b'l' => 4,
            _ => 8,
        };
        let (writes, reads) = match &m[..4] {
            "movs" => (true, true),
            "stos" => (true, false),
            "lods" => (false, true),
            // How far these read is known only afterwards.
            _ => {
                self.doubt(m);
                (false, false)
            }
        };
        let length = match instruction.prefix {
            "" => format!("\tmovl\t${size}, %esi\n"),
            _ => format!("\tleaq\t(,%rcx,{size}), %rsi\n"),
        };
        let known = match instruction.prefix {
            "" => Some(size),
            _ => self.values.as_constant(self.registers[RCX]).and_then(|n| n.checked_mul(size)),
        };
        let mut code = String::new();
        for (wanted, register, hook) in
            [(writes, RDI, "foresee_write_range"), (reads, RSI, "foresee_read_range")]
        {
            let at = self.registers[register];
            let covers = |h: &Hook| {
                let is_kind = if register == RDI { h.writes } else { h.reads };
                let fits = |d: i64| d >= 0 && known.is_some_and(|n| d + n <= h.size);
                is_kind && Values::distance(h.at, at).is_some_and(fits)
            };
            let is_constant = self
                .values
                .has_symbol(at, |s| s.starts_with(".L") || self.source.constants.contains(s));
            let is_own =
                self.values.is_in_frame(at) && !self.facts.escapes && !self.source.is_clang;
            if !wanted || is_constant || is_own || self.hooks.iter().any(covers) {
                continue;
            }
            self.completed.added += 1;
            if register == RSI {
                code.push_str("\tmovq\t(%rsp), %rdi\n");
            }
            code.push_str(&length);
            code.push_str(&self.call_of(hook));
        }
        if !code.is_empty() {
            self.hooks.retain(|h| !h.writes);
            self.insert(&code);
        }
        for register in [RDI, RSI, RCX, RAX] {
            self.registers[register] = self.values.new_value();
        }
        self.held.clear();
        self.changes += 1;
    }
}

/// The distance by which the stack pointer is moved around a hook.
const ROOM: i64 = 128 + 16;

/// The hook for an instruction's effect on memory.
pub(super) fn hook_for(reads: bool, writes: bool) -> Option<&'static str> {
    match (reads, writes) {
        (true, false) => Some("foresee_read"),
        (false, true) => Some("foresee_write"),
        (true, true) => Some("foresee_update"),
        (false, false) => None,
    }
}

/// Labels of inline assembly.
fn is_label(text: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || "_.$".contains(c);
    !text.is_empty() && text.chars().all(is_part)
}
