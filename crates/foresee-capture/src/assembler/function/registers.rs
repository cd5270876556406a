//! The effect of instructions on registers and on the frame, as far as addresses depend on them.

use super::super::instruction::{
    ARGUMENTS, CHANGED_BY_CALLS, Instruction, Memory, Operand, RAX, RBP, RDI, RDX, RSI, RSP, number,
};
use super::super::values::{Value, Values};
use super::{Hook, Walk};

impl<'a> Walk<'_, 'a, '_> {
    /// The address that an operand denotes.
    pub(super) fn place(&mut self, memory: &Memory<'a>) -> Option<Value> {
        let (symbol, constant) = memory.displacement()?;
        let mut sum = self.values.constant(constant);
        if !memory.segment.is_empty() && memory.segment != "es" && memory.segment != "ds" {
            let segment = self.values.symbol(memory.segment);
            sum = self.values.add(sum, segment);
        }
        if !symbol.is_empty() {
            let symbol = self.values.symbol(symbol);
            sum = self.values.add(sum, symbol);
        }
        if let Some(base) = memory.base {
            sum = self.values.add(sum, self.registers[base]);
        }
        if let Some(index) = memory.index {
            sum = self.values.add_times(sum, self.registers[index], memory.scale);
        }
        Some(sum)
    }

    /// The effect of a store on what is known, and on whether the frame escapes.
    pub(super) fn store(
        &mut self,
        instruction: &Instruction<'a>,
        memory: &Memory<'a>,
        place: Value,
        size: u64,
        named: Option<&str>,
    ) {
        self.changes += 1;
        let value = match instruction.operands.as_slice() {
            [Operand::Register(register, n), Operand::Memory(_)]
                if instruction.mnemonic.starts_with("mov") && *n == size =>
            {
                Some(self.registers[*register])
            }
            _ => None,
        };
        let points = size == 8 && value.is_some_and(|v| self.points_into_frame(v));
        if !self.values.is_in_frame(place) {
            self.found.escapes |= points;
            self.disturb();
            return;
        }
        let is_argument = memory.base == Some(RSP) && (named.is_none() || self.source.is_clang);
        match self.values.frame_offset(place) {
            Some(offset) if points && !is_argument => {
                if !self.found.slots.contains(&offset) {
                    self.found.slots.push(offset);
                    self.found.slots.sort_unstable();
                }
            }
            _ => self.found.escapes |= points,
        }
        if self.values.frame_offset(place).is_none() {
            self.disturb();
        }
        self.held.retain(|(at, n), _| {
            Values::distance(*at, place).is_none_or(|d| d >= *n as i64 || d + size as i64 <= 0)
        });
        if let Some(value) = value {
            self.held.insert((place, size), (value, self.is_spill));
        }
    }

    /// A pointer may have been used to change the contents of the frame, if there is one.
    pub(super) fn disturb(&mut self) {
        self.changes += 1;
        if self.facts.escapes || self.facts.has_pointers() {
            self.held.retain(|_, (_, is_own)| *is_own);
        }
    }

    pub(super) fn points_into_frame(&self, value: Value) -> bool {
        self.values.may_point_into_frame(value, &self.facts.registers, &self.facts.slots)
    }

    pub(super) fn load(&mut self, memory: &Memory<'a>, size: u64) -> Value {
        let Some(place) = self.place(memory) else { return self.values.new_value() };
        let is_pointer =
            memory.segment == "fs" && memory.displacement == "0" && memory.base.is_none();
        if is_pointer {
            return self.values.symbol("fs");
        }
        if !self.values.is_in_frame(place) {
            return self.values.new_value();
        }
        if let Some((value, _)) = self.held.get(&(place, size)) {
            return *value;
        }
        let value = self.values.held(place, self.changes);
        self.held.insert((place, size), (value, self.is_spill));
        value
    }

    /// Sets the value of a register.
    pub(super) fn set(&mut self, register: usize, value: Value) {
        self.registers[register] = value;
        // The frame pointer itself is not the address of a variable.
        let is_frame = register == RSP
            || (register == RBP && self.registers[RSP] == value)
            || self.frame.is_some_and(|f| f.register == register);
        if is_frame || !self.points_into_frame(value) {
            return;
        }
        self.found.registers[register] = true;
        if let Some(offset) = self.values.frame_offset(value)
            && !self.found.taken.contains(&offset)
        {
            self.found.taken.push(offset);
            self.found.taken.sort_unstable();
        }
    }

    /// The effect of an instruction on registers. `loaded` is the symbol whose address it loads.
    pub(super) fn follow(&mut self, instruction: &Instruction<'a>, loaded: Option<&str>) {
        use Operand::{Immediate, Memory as At, Other, Register, Target};
        let m = instruction.mnemonic;
        let operands = instruction.operands.as_slice();
        match (m, operands) {
            ("call" | "callq", [target]) => {
                let name = match target {
                    Target(name) => name.strip_suffix("@PLT").unwrap_or(name),
                    _ => "",
                };
                self.call(name);
            }
            ("push" | "pushq", operands) => {
                let stack = Values::plus(self.registers[RSP], -8);
                self.registers[RSP] = stack;
                if let [Register(r, _)] = operands {
                    let value = self.registers[*r];
                    self.found.escapes |= self.points_into_frame(value);
                    self.held.insert((stack, 8), (value, true));
                }
            }
            ("pop" | "popq", operands) => {
                self.registers[RSP] = Values::plus(self.registers[RSP], 8);
                if let [Register(r, _)] = operands {
                    self.registers[*r] = self.values.new_value();
                }
            }
            ("leave" | "leaveq", _) => {
                self.registers[RSP] = Values::plus(self.registers[RBP], 8);
                self.registers[RBP] = self.values.new_value();
            }
            ("ret" | "retq" | "ud2" | "nop" | "nopw" | "nopl" | "endbr64" | "hlt" | "pause", _) => {
            }
            ("movq" | "mov" | "movabsq", [from, Register(to, 8)]) => {
                let value = match (from, loaded) {
                    (_, Some(symbol)) => self.linked(symbol),
                    (Register(from, 8), _) => self.registers[*from],
                    (Immediate(text), _) => self.immediate(text),
                    (At(memory), _) => self.load(memory, 8),
                    _ => self.values.new_value(),
                };
                self.set(*to, value);
            }
            ("movq" | "mov", [Register(from, 8), Other(_)]) => {
                // Pointers that are stored in pairs.
                self.found.escapes |= self.points_into_frame(self.registers[*from]);
            }
            ("movl" | "mov", [Immediate(text), Register(to, 4)]) => {
                let value = self.immediate(text);
                self.set(*to, value);
            }
            ("leaq" | "lea", [At(memory), Register(to, 8)]) => {
                let value = self.place(memory).unwrap_or_else(|| self.values.new_value());
                self.set(*to, value);
            }
            ("addq" | "subq", [Immediate(text), Register(to, 8)]) => {
                let more = self.immediate(text);
                let factor = if m == "addq" { 1 } else { -1 };
                let value = self.values.add_times(self.registers[*to], more, factor);
                self.set(*to, value);
            }
            ("addq" | "subq", [Register(from, 8), Register(to, 8)]) => {
                let factor = if m == "addq" { 1 } else { -1 };
                let value =
                    self.values.add_times(self.registers[*to], self.registers[*from], factor);
                self.set(*to, value);
            }
            ("addq", [At(memory), Register(to, 8)]) => {
                let more = match loaded {
                    Some(symbol) => self.linked(symbol),
                    None => self.load(memory, 8),
                };
                let value = self.values.add(self.registers[*to], more);
                self.set(*to, value);
            }
            ("andq", [Immediate(_), Register(RSP, 8)]) => self.registers[RSP] = self.values.stack(),
            ("salq" | "shlq", [Immediate(text), Register(to, 8)])
                if number(text).is_some_and(|n| (0..32).contains(&n)) =>
            {
                let zero = self.values.constant(0);
                let by = 1i64 << number(text).unwrap_or(0);
                let value = self.values.add_times(zero, self.registers[*to], by);
                self.set(*to, value);
            }
            ("salq" | "shlq", [Register(to, 8)]) => {
                let value = self.values.add(self.registers[*to], self.registers[*to]);
                self.set(*to, value);
            }
            ("xorl" | "xorq", [Register(a, _), Register(b, _)]) if a == b => {
                let zero = self.values.constant(0);
                self.set(*b, zero);
            }
            ("cltq" | "cwtl" | "cdqe", _) => {
                let value = self.values.made(m, vec![self.registers[RAX]]);
                self.set(RAX, value);
            }
            ("cqto" | "cltd" | "cqo" | "cdq", _) => {
                self.registers[RDX] = self.values.new_value();
            }
            _ if m.starts_with("cmp") && !m.starts_with("cmpxchg") => {}
            _ if m.starts_with("test") || m.starts_with('j') || matches!(m, "btl" | "btq") => {}
            _ if has_hidden_results(m, operands.len()) => {
                for r in (0..16).filter(|r| *r != RSP && *r != RBP) {
                    self.registers[r] = self.values.new_value();
                }
                self.held.clear();
            }
            (_, [.., Register(to, size)]) => {
                let value = if is_pure(m) && *size >= 4 {
                    let mut from = Vec::with_capacity(3);
                    for operand in operands {
                        let value = match operand {
                            Register(r, _) => self.registers[*r],
                            Immediate(text) => self.immediate(text),
                            At(memory) => {
                                let size = instruction.access().map_or(8, |a| a.size.max(1));
                                self.load(memory, size)
                            }
                            _ => self.values.new_value(),
                        };
                        from.push(value);
                    }
                    // The result of a move does not depend on the previous contents.
                    if m.starts_with("mov") {
                        from.truncate(1);
                    }
                    self.values.made(m, from)
                } else {
                    self.values.new_value()
                };
                self.set(*to, value);
            }
            _ => {}
        }
    }

    pub(super) fn linked(&mut self, symbol: &str) -> Value {
        let name = symbol.split('@').next().unwrap_or(symbol);
        if symbol.contains("@gottpoff") {
            return self.values.symbol(&format!("{name}@tpoff"));
        }
        self.values.symbol(name)
    }

    pub(super) fn immediate(&mut self, text: &str) -> Value {
        match number(text) {
            Some(n) => self.values.constant(n),
            None => {
                let (symbol, more) = match text.rfind(['+', '-']).filter(|at| *at > 0) {
                    Some(at) if number(&text[at + 1..]).is_some() => {
                        let n = number(&text[at + 1..]).unwrap_or(0);
                        (&text[..at], if text.as_bytes()[at] == b'-' { -n } else { n })
                    }
                    _ => (text, 0),
                };
                let (symbol, more) = match symbol.split_once('+') {
                    // `16+table`.
                    Some((n, symbol)) if number(n).is_some() => {
                        (symbol, more + number(n).unwrap_or(0))
                    }
                    _ => (symbol, more),
                };
                let symbol = self.values.symbol(symbol);
                Values::plus(symbol, more)
            }
        }
    }

    pub(super) fn call(&mut self, name: &str) {
        if let Some((reads, writes, size)) = hook(name) {
            let size = match size {
                Some(size) => Some(size),
                None => self.values.as_constant(self.registers[RSI]),
            };
            if let Some(size) = size {
                let at = self.registers[RDI];
                self.found.hooked.extend(self.values.frame_offset(at).map(|offset| (offset, size)));
                self.hooks.push(Hook { at, size, reads, writes, leaves_load: false });
            }
        } else if !matches!(name, "__tsan_func_entry" | "__tsan_func_exit") {
            const KEPT: [&str; 7] = [
                "memcpy",
                "memmove",
                "memset",
                "memcmp",
                "__tsan_memcpy",
                "__tsan_memmove",
                "__tsan_memset",
            ];
            if KEPT.contains(&name) {
                // The runtime sees these calls like hooks. Their end is not always known: then it
                // is the end of the frame.
                let from = if name.ends_with("memset") { &[RDI][..] } else { &[RDI, RSI] };
                let size = self.values.as_constant(self.registers[RDX]);
                for offset in
                    from.iter().filter_map(|r| self.values.frame_offset(self.registers[*r]))
                {
                    self.found.hooked.insert((offset, size.unwrap_or(offset.saturating_neg())));
                }
            } else {
                for r in ARGUMENTS {
                    self.found.escapes |= self.points_into_frame(self.registers[r]);
                }
            }
            self.hooks.clear();
            self.disturb();
            // clang keeps the load that it also had the runtime carry out.
            if let Some(bits) =
                name.strip_prefix("__tsan_atomic").and_then(|n| n.strip_suffix("_load"))
            {
                let size = bits.parse::<i64>().unwrap_or(0) / 8;
                let at = self.registers[RDI];
                let leaves_load = self.source.is_clang;
                self.hooks.push(Hook { at, size, reads: true, writes: false, leaves_load });
            }
        }
        for r in CHANGED_BY_CALLS {
            self.registers[r] = self.values.new_value();
        }
    }
}

/// What a compiler hook announces: reads, writes, and the number of bytes, if its name has it.
fn hook(name: &str) -> Option<(bool, bool, Option<i64>)> {
    let rest = name.strip_prefix("__tsan_")?;
    let rest = rest.strip_prefix("unaligned_").unwrap_or(rest);
    let rest = rest.strip_prefix("volatile_").unwrap_or(rest);
    match rest {
        "vptr_read" => return Some((true, false, Some(8))),
        "vptr_update" => return Some((false, true, Some(8))),
        "read_range" => return Some((true, false, None)),
        "write_range" => return Some((false, true, None)),
        _ => {}
    }
    let (kind, size) = rest.split_at(rest.find(|c: char| c.is_ascii_digit())?);
    let size = size.parse().ok()?;
    match kind {
        "read" => Some((true, false, Some(size))),
        "write" => Some((false, true, Some(size))),
        "read_write" => Some((true, true, Some(size))),
        _ => None,
    }
}

/// Instructions whose result depends only on their operands.
fn is_pure(mnemonic: &str) -> bool {
    const PURE: [&str; 15] = [
        "add", "sub", "and", "or", "xor", "sal", "shl", "shr", "sar", "imul", "neg", "not", "inc",
        "dec", "lea",
    ];
    mnemonic.starts_with("mov")
        || PURE.iter().any(|p| matches!(mnemonic.strip_prefix(p), Some("l" | "q")))
}

/// Instructions that change registers other than their operands.
fn has_hidden_results(mnemonic: &str, operands: usize) -> bool {
    let m = mnemonic;
    let one =
        |base: &str| operands == 1 && matches!(m.strip_prefix(base), Some("b" | "w" | "l" | "q"));
    one("mul")
        || one("imul")
        || one("div")
        || one("idiv")
        || m.starts_with("cmpxchg")
        || m.starts_with("xchg")
        || m.starts_with("xadd")
        || m.starts_with("mulx")
        || matches!(m, "cpuid" | "rdtsc" | "rdtscp" | "xgetbv" | "syscall" | "rdpmc" | "loop")
}
