//! One function: which accesses of memory have a hook, and hooks for the rest.
//!
//! The compiler's hook of an access is a call between which and the access there is no other call, so both are in one
//! stretch of code without a label. The values of registers are followed through such stretches; an access to a place
//! that none of the hooks before it named gets one of ours. Where an access has a hook but that cannot be seen, it is
//! recorded twice, by the same thread and with nothing in between: that is of no consequence for what is predicted.
//!
//! The function's own frame is left alone unless an address in it leaves the function: nobody else knows of it.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::instruction::{
    ARGUMENTS, CHANGED_BY_CALLS, Instruction, Memory, Operand, RAX, RBP, RCX, RDI, RDX, RSI, RSP,
    name, number, register,
};
use super::values::{Value, Values};

/// What is known of the whole file.
#[derive(Default)]
pub(super) struct Source<'a> {
    pub(super) is_clang: bool,
    /// Symbols of memory that nobody writes.
    pub(super) constants: HashSet<&'a str>,
}

/// What is known of a function once it has been gone through.
#[derive(Clone, Default, PartialEq, Eq)]
struct Facts {
    /// Whether an address in the frame is handed to somebody else.
    escapes: bool,
    /// Registers and places in the frame that may hold an address in the frame.
    registers: [bool; 16],
    slots: Vec<i64>,
    /// Places in the frame whose address is taken.
    taken: Vec<i64>,
    /// The extent of each named variable, as far as it is accessed in place.
    names: BTreeMap<String, (i64, i64)>,
}

impl Facts {
    /// Whether an address in the frame is ever held.
    fn has_pointers(&self) -> bool {
        self.registers.contains(&true) || !self.slots.is_empty()
    }
}

/// What came of a function.
#[derive(Default)]
pub(super) struct Completed {
    /// How many hooks were added.
    pub(super) added: usize,
    /// Why some accesses may still have no hook.
    pub(super) doubt: Option<String>,
}

/// Goes through a function, and writes it with the hooks it lacks.
pub(super) fn complete<'a>(lines: &[&'a str], source: &Source<'a>, out: &mut String) -> Completed {
    let mut facts = Facts::default();
    // What may hold an address in the frame depends on itself; so few rounds are enough for any code seen.
    for _ in 0..4 {
        let mut walk = Walk::new(source, &facts, None);
        walk.all(lines);
        if walk.found == facts {
            break;
        }
        facts = walk.found;
    }
    let mut walk = Walk::new(source, &facts, Some(out));
    walk.form = form(lines);
    walk.all(lines);
    walk.completed
}

/// Which form of the hooks keeps every register that the function may use. One that never calls the hook of its own
/// entry may hand on arguments that it does not name.
fn form(lines: &[&str]) -> &'static str {
    let names = |part: &str| lines.iter().any(|line| line.contains(part));
    if names("%ymm") || names("%zmm") || names("%k") {
        "_y"
    } else if names("%xmm") || names("%mm") || names("%st") || !names("__tsan_func_entry") {
        "_x"
    } else {
        ""
    }
}

/// A hook of the compiler's that may still be for an access to come.
#[derive(Clone, Copy)]
struct Hook {
    at: Value,
    size: i64,
    reads: bool,
    writes: bool,
}

/// Where the frame of the function ends, as the tables for unwinding say.
#[derive(Clone, Copy)]
struct Frame {
    register: usize,
    offset: i64,
}

struct Walk<'s, 'a, 'o> {
    source: &'s Source<'a>,
    facts: &'s Facts,
    found: Facts,
    values: Values,
    registers: [Value; 16],
    /// What places in the frame hold, by place and size, and whether they are the compiler's own.
    held: HashMap<(Value, u64), (Value, bool)>,
    /// Whether the instruction at hand moves a register to or from a place of the compiler's own.
    is_spill: bool,
    changes: u32,
    hooks: Vec<Hook>,
    frame: Option<Frame>,
    remembered: Vec<Option<Frame>>,
    in_assembly: bool,
    /// The form of hooks that is added.
    form: &'static str,
    out: Option<&'o mut String>,
    completed: Completed,
}

impl<'s, 'a, 'o> Walk<'s, 'a, 'o> {
    fn new(source: &'s Source<'a>, facts: &'s Facts, out: Option<&'o mut String>) -> Self {
        let mut values = Values::new();
        let registers = std::array::from_fn(|_| values.new_value());
        Walk {
            source,
            facts,
            found: facts.clone(),
            values,
            registers,
            held: HashMap::new(),
            is_spill: false,
            changes: 0,
            hooks: Vec::new(),
            frame: None,
            remembered: Vec::new(),
            in_assembly: false,
            form: "",
            out,
            completed: Completed::default(),
        }
    }

    fn all(&mut self, lines: &[&'a str]) {
        self.registers[RSP] = self.values.stack();
        for line in lines {
            if self.in_assembly && line.trim() != "#NO_APP" {
                self.foreign(line);
            } else {
                self.line(line);
                self.emit(line);
            }
        }
    }

    fn emit(&mut self, line: &str) {
        if let Some(out) = &mut self.out {
            out.push_str(line);
            out.push('\n');
        }
    }

    fn line(&mut self, line: &'a str) {
        let text = line.trim();
        match text {
            "#APP" => self.in_assembly = true,
            "#NO_APP" => {
                self.in_assembly = false;
                self.forget();
            }
            _ => {}
        }
        let (code, comment) = text.split_once('#').unwrap_or((text, ""));
        let code = code.trim_end();
        if let Some(label) = code.strip_suffix(':') {
            if !is_for_debugging(label) {
                self.join();
            }
        } else if code.starts_with('.') {
            self.directive(code);
        } else if let Some(instruction) = Instruction::parse(code) {
            self.instruction(&instruction, comment);
        }
    }

    /// Something that the program's author wrote: nothing of it has a hook.
    fn foreign(&mut self, line: &'a str) {
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

    fn foreign_instruction(&mut self, instruction: &Instruction<'_>) {
        let is_string = self.is_string_operation(instruction);
        if instruction.mnemonic == "syscall" || is_string {
            return self.doubt("inline assembly");
        }
        let Some((_, memory)) = instruction.memory() else { return };
        // Its own stack is where a function's variables are that nobody else knows, or a fence's victim.
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

    fn doubt(&mut self, why: &str) {
        self.completed.doubt.get_or_insert_with(|| why.to_owned());
    }

    /// Nothing is known any more.
    fn forget(&mut self) {
        let stack = self.registers[RSP];
        let frame = self.registers[RBP];
        let is_frame = self.frame.is_some_and(|f| f.register == RBP);
        self.registers = std::array::from_fn(|_| self.values.new_value());
        self.registers[RSP] = stack;
        if is_frame {
            self.registers[RBP] = frame;
        }
        self.hooks.clear();
        self.held.clear();
    }

    /// Control flow comes together.
    fn join(&mut self) {
        self.hooks.clear();
        self.held.clear();
        self.registers = std::array::from_fn(|r| self.values.entry(r));
        self.registers[RSP] = self.values.stack();
        if let Some(Frame { register, offset }) = self.frame {
            let frame = self.values.frame();
            self.registers[register] = Values::plus(frame, -offset);
        }
    }

    fn directive(&mut self, code: &str) {
        let (word, rest) = code.split_once([' ', '\t']).unwrap_or((code, ""));
        let register_of = |text: &str| match text.trim() {
            "7" | "%rsp" | "rsp" => Some(RSP),
            "6" | "%rbp" | "rbp" => Some(RBP),
            _ => None,
        };
        match word {
            ".cfi_startproc" => {
                self.frame = Some(Frame { register: RSP, offset: 8 });
                self.join();
                // What the caller left in registers is nothing of this frame.
                for r in (0..16).filter(|r| *r != RSP) {
                    self.registers[r] = self.values.new_value();
                }
            }
            ".cfi_endproc" => self.frame = None,
            ".cfi_def_cfa_offset" => {
                if let (Some(frame), Some(offset)) = (&mut self.frame, number(rest.trim())) {
                    frame.offset = offset;
                }
            }
            ".cfi_adjust_cfa_offset" => {
                if let (Some(frame), Some(more)) = (&mut self.frame, number(rest.trim())) {
                    frame.offset += more;
                }
            }
            ".cfi_def_cfa_register" => {
                self.frame = self
                    .frame
                    .and_then(|f| register_of(rest).map(|register| Frame { register, ..f }));
            }
            ".cfi_def_cfa" => {
                self.frame = rest.split_once(',').and_then(|(register, offset)| {
                    Some(Frame { register: register_of(register)?, offset: number(offset.trim())? })
                });
            }
            ".cfi_escape" => self.frame = None,
            ".cfi_remember_state" => self.remembered.push(self.frame),
            ".cfi_restore_state" => self.frame = self.remembered.pop().unwrap_or(None),
            _ => {}
        }
    }

    /// The place that an operand names.
    fn place(&mut self, memory: &Memory<'a>) -> Option<Value> {
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

    fn instruction(&mut self, instruction: &Instruction<'a>, comment: &str) {
        if self.is_string_operation(instruction) {
            self.string_operation(instruction);
            return;
        }
        self.is_spill = ["%sfp", "Spill", "Reload"].iter().any(|mark| comment.contains(mark));
        let mut loaded = None;
        if let Some((index, memory)) = instruction.memory() {
            let access = instruction.access();
            let place = self.place(memory);
            if memory.displacement.contains("@GOT") || memory.displacement.contains("@gottpoff") {
                // What the linker fills in: a symbol's place.
                loaded = memory.displacement().map(|(symbol, _)| symbol);
            } else {
                match (access, place) {
                    (Some(access), _) if !access.reads && !access.writes => {}
                    (Some(access), Some(place)) => {
                        let named = name_of(comment, index);
                        self.access(memory, place, access, named);
                        if access.writes {
                            self.store(instruction, memory, place, access.size, named);
                        }
                    }
                    _ if memory.base == Some(RSP) || memory.base == Some(RBP) => {}
                    _ => self.doubt(instruction.mnemonic),
                }
            }
        } else if instruction.access().is_none()
            && instruction
                .operands
                .iter()
                .any(|o| matches!(o, Operand::Other(t) if t.contains('(')))
        {
            self.doubt(instruction.mnemonic);
        }
        self.follow(instruction, loaded);
    }

    /// An access of memory: hooked already, nobody else's business, or given a hook now.
    fn access(
        &mut self,
        memory: &Memory<'a>,
        place: Value,
        access: super::instruction::Access,
        named: Option<&str>,
    ) {
        let size = access.size as i64;
        let covers = |hook: &Hook| {
            Values::distance(hook.at, place).is_some_and(|d| d >= 0 && d + size <= hook.size)
        };
        let reads = access.reads && !self.hooks.iter().any(|h| h.reads && covers(h));
        let writes = access.writes && !self.hooks.iter().any(|h| h.writes && covers(h));
        if !reads && !writes {
            return;
        }
        // A thread's control block, and what is there for the compiler alone.
        let is_control = memory.segment == "fs"
            && memory.base.is_none()
            && number(memory.displacement).is_some();
        if is_control
            || self
                .values
                .has_symbol(place, |s| s.starts_with(".L") || self.source.constants.contains(s))
        {
            return;
        }
        let in_frame = self.values.is_in_frame(place);
        if in_frame {
            self.note_name(place, size, named);
            let is_argument = self.source.is_clang
                && writes
                && !self.is_spill
                && memory.base == Some(RSP)
                && memory.index.is_none();
            // clang has hooks for what is passed by value and lies on the stack, so it must be seen how it got there.
            if !is_argument && !self.matters_in_frame(place, size, named) {
                return;
            }
        }
        if let Some(hook) = hook_for(reads, writes) {
            self.add(memory, hook, access.size, !in_frame);
        }
    }

    fn note_name(&mut self, place: Value, size: i64, named: Option<&str>) {
        let (Some(from), Some(variable)) =
            (self.values.frame_offset(place), named.and_then(variable))
        else {
            return;
        };
        let extent = self.found.names.entry(variable.to_owned()).or_insert((from, from + size));
        *extent = (extent.0.min(from), extent.1.max(from + size));
    }

    /// Whether memory of the frame may be known to somebody else.
    fn matters_in_frame(&self, place: Value, size: i64, named: Option<&str>) -> bool {
        let offset = self.values.frame_offset(place);
        let is_return_address = offset == Some(-8);
        if !self.facts.escapes || self.is_spill || is_return_address {
            return false;
        }
        // Where a variable ends is not known, so all above the first address taken may be part of it.
        let may_be_known = || offset.is_none_or(|o| self.facts.taken.iter().any(|t| *t < o + size));
        if self.source.is_clang {
            return may_be_known();
        }
        let Some(name) = named else { return false };
        match (variable(name), offset) {
            (Some(variable), Some(_)) => {
                let extent = self.facts.names.get(variable).copied().unwrap_or((0, 0));
                self.facts.taken.iter().any(|t| extent.0 <= *t && *t < extent.1)
            }
            _ => may_be_known(),
        }
    }

    /// Adds a hook. One for a place that may be in the frame of a function that keeps its frame to itself says where
    /// the frame is.
    fn add(&mut self, memory: &Memory<'_>, hook: &str, size: u64, may_be_frame: bool) {
        self.completed.added += 1;
        if hook != "foresee_read" {
            // Whatever was announced and has not happened is told too early: it gets a hook of its own.
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
            // `lea` knows no segments.
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

    /// Code around which everything is kept: registers, flags and what is below the stack pointer.
    fn insert(&mut self, code: &str) {
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

    /// Through the table of the linker: finding the function the first time must not change registers.
    fn call_of(&self, hook: &str) -> String {
        format!("\tcall\t*{hook}{}@GOTPCREL(%rip)\n", self.form)
    }

    fn is_string_operation(&self, instruction: &Instruction<'_>) -> bool {
        let bytes = instruction.mnemonic.as_bytes();
        matches!(bytes, [rest @ .., b'b' | b'w' | b'l' | b'q'] if matches!(rest, b"movs" | b"stos" | b"lods" | b"scas" | b"cmps"))
            && !instruction.operands.iter().any(|o| matches!(o, Operand::Immediate(_)))
    }

    fn string_operation(&mut self, instruction: &Instruction<'_>) {
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
            // How far these look is known only afterwards.
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

    /// What a store does to what is known, and to who knows the frame.
    fn store(
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

    /// A pointer may have been used to change what the frame holds, if there is one.
    fn disturb(&mut self) {
        self.changes += 1;
        if self.facts.escapes || self.facts.has_pointers() {
            self.held.retain(|_, (_, is_own)| *is_own);
        }
    }

    fn points_into_frame(&self, value: Value) -> bool {
        self.values.may_point_into_frame(value, &self.facts.registers, &self.facts.slots)
    }

    fn load(&mut self, memory: &Memory<'a>, size: u64) -> Value {
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

    /// A register gets a value.
    fn set(&mut self, register: usize, value: Value) {
        self.registers[register] = value;
        let is_frame = register == RSP || self.frame.is_some_and(|f| f.register == register);
        if is_frame || !self.points_into_frame(value) {
            return;
        }
        self.found.registers[register] = true;
        if let Some(offset) = self.values.frame_offset(value) {
            // The frame pointer itself is no variable's address.
            if !(register == RBP && self.registers[RSP] == value)
                && !self.found.taken.contains(&offset)
            {
                self.found.taken.push(offset);
                self.found.taken.sort_unstable();
            }
        }
    }

    /// What an instruction does to registers. `loaded` is the symbol whose place it loads.
    fn follow(&mut self, instruction: &Instruction<'a>, loaded: Option<&str>) {
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
                    // What a move makes of its source does not depend on what was there before.
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

    fn linked(&mut self, symbol: &str) -> Value {
        let name = symbol.split('@').next().unwrap_or(symbol);
        if symbol.contains("@gottpoff") {
            return self.values.symbol(&format!("{name}@tpoff"));
        }
        self.values.symbol(name)
    }

    fn immediate(&mut self, text: &str) -> Value {
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

    fn call(&mut self, name: &str) {
        if let Some((reads, writes, size)) = hook(name) {
            let size = match size {
                Some(size) => Some(size),
                None => self.values.as_constant(self.registers[RSI]),
            };
            if let Some(size) = size {
                self.hooks.push(Hook { at: self.registers[RDI], size, reads, writes });
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
            for r in ARGUMENTS.into_iter().filter(|_| !KEPT.contains(&name)) {
                self.found.escapes |= self.points_into_frame(self.registers[r]);
            }
            self.hooks.clear();
            self.disturb();
            // clang leaves the load in place that it had the runtime carry out.
            if let Some(bits) =
                name.strip_prefix("__tsan_atomic").and_then(|n| n.strip_suffix("_load"))
            {
                let size = bits.parse::<i64>().unwrap_or(0) / 8;
                self.hooks.push(Hook { at: self.registers[RDI], size, reads: true, writes: false });
            }
        }
        for r in CHANGED_BY_CALLS {
            self.registers[r] = self.values.new_value();
        }
    }
}

/// How far the stack pointer is moved around a hook.
const ROOM: i64 = 128 + 16;

/// The hook for what an instruction does to memory.
fn hook_for(reads: bool, writes: bool) -> Option<&'static str> {
    match (reads, writes) {
        (true, false) => Some("foresee_read"),
        (false, true) => Some("foresee_write"),
        (true, true) => Some("foresee_update"),
        (false, false) => None,
    }
}

/// What people jump to within their own assembly.
fn is_label(text: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || "_.$".contains(c);
    !text.is_empty() && text.chars().all(is_part)
}

/// What a hook of the compiler announces: whether reads, whether writes, and how many bytes, if its name says.
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

/// Labels that nothing jumps to.
fn is_for_debugging(label: &str) -> bool {
    let Some(rest) = label.strip_prefix(".L") else { return false };
    let kinds = [
        "VL",
        "BB",
        "BE",
        "FB",
        "FE",
        "FSB",
        "BI",
        "EHB",
        "EHE",
        "CFI",
        "LSDA",
        "tmp",
        "func_begin",
    ];
    kinds.iter().any(|kind| {
        rest.strip_prefix(kind)
            .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    })
}

/// Instructions whose result depends on nothing but what they name.
fn is_pure(mnemonic: &str) -> bool {
    const PURE: [&str; 15] = [
        "add", "sub", "and", "or", "xor", "sal", "shl", "shr", "sar", "imul", "neg", "not", "inc",
        "dec", "lea",
    ];
    mnemonic.starts_with("mov")
        || PURE.iter().any(|p| matches!(mnemonic.strip_prefix(p), Some("l" | "q")))
}

/// Instructions that change registers which they do not name.
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

/// The name that the compiler's comment gives an operand: as many as there are operands, between commas.
fn name_of(comment: &str, index: usize) -> Option<&str> {
    let mut depth = 0;
    let mut parts = comment.split(|c: char| {
        depth += i32::from("<([{".contains(c)) - i32::from(">)]}".contains(c));
        c == ',' && depth == 0
    });
    let name = parts.nth(index)?.trim();
    Some(name).filter(|n| !n.is_empty())
}

/// The variable that a name begins with; none for what is reached through a pointer.
fn variable(name: &str) -> Option<&str> {
    let end =
        name.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$')).unwrap_or(name.len());
    let first = &name[..end];
    let is_temporary = first == "D" && name[end..].starts_with('.');
    let is_pointer =
        name[end..].starts_with("->") || first == "MEM" || first == "VIEW_CONVERT_EXPR";
    if is_temporary {
        let end = name[2..].find(|c: char| !c.is_ascii_digit()).map_or(name.len(), |e| e + 2);
        return Some(&name[..end]);
    }
    (end > 0 && !is_pointer && register(first).is_none()).then_some(first)
}
