//! One function: finds which memory accesses have a hook, and adds hooks for the rest.
//!
//! The compiler's hook of an access is a call with no other call between it and the access, so both
//! are in one stretch of code without a label. The values of registers are tracked through such
//! stretches; an access to an address that no preceding hook named gets one of ours. If an access
//! has a hook that is not recognised, it is recorded twice, by the same thread and with nothing in
//! between, which does not affect predictions.
//!
//! Accesses to the function's own frame get no hooks unless an address in it escapes: no other
//! thread knows of it.

mod insert;
mod outside;
mod registers;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::instruction::{Access, Instruction, Memory, Operand, RBP, RSP, number, register};
use super::values::{Value, Values};
use insert::hook_for;

/// What is known about the whole file.
#[derive(Default)]
pub(super) struct Source<'a> {
    pub(super) is_clang: bool,
    /// Symbols of read-only memory.
    pub(super) constants: HashSet<&'a str>,
}

/// What is known about a function after the first passes.
#[derive(Clone, Default, PartialEq, Eq)]
struct Facts {
    /// Whether an address in the frame escapes.
    escapes: bool,
    /// Registers and frame slots that may hold an address in the frame.
    registers: [bool; 16],
    slots: Vec<i64>,
    /// Frame slots whose address is taken.
    taken: Vec<i64>,
    /// The extent of each named variable, as far as it is accessed directly.
    names: BTreeMap<String, (i64, i64)>,
    /// Frame slots with compiler hooks, and their sizes. All accesses to them have hooks; otherwise
    /// some reads would see values that no write had stored.
    hooked: BTreeSet<(i64, i64)>,
    /// Memory that is exchanged atomically by instructions without compiler hooks. A load of it is
    /// the first guess of the loop around such an instruction, and irrelevant.
    exchanged: BTreeSet<String>,
}

impl Facts {
    /// Whether a register or slot ever holds an address in the frame.
    fn has_pointers(&self) -> bool {
        self.registers.contains(&true) || !self.slots.is_empty()
    }
}

/// The result for a function.
#[derive(Default)]
pub(super) struct Completed {
    /// The number of added hooks.
    pub(super) added: usize,
    /// Why some accesses may still lack a hook.
    pub(super) doubt: Option<String>,
}

/// Analyses a function and writes it with the missing hooks.
pub(super) fn complete<'a>(lines: &[&'a str], source: &Source<'a>, out: &mut String) -> Completed {
    let mut facts = Facts::default();
    // What may hold an address in the frame depends on itself; a few rounds suffice for all code
    // seen so far.
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
    walk.outside = outside::lines(lines);
    walk.all(lines);
    walk.completed
}

/// The form of the hooks that preserves every register the function may use. A function that never
/// calls the hook of its own entry may pass on arguments that it does not name.
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

/// A compiler hook that may belong to a later access.
#[derive(Clone, Copy)]
struct Hook {
    at: Value,
    size: i64,
    reads: bool,
    writes: bool,
    /// A redundant load may follow that repeats what the runtime was called for, and whose result
    /// is unused.
    leaves_load: bool,
}

/// The end of the function's frame according to the unwind tables.
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
    /// The contents of frame slots, by slot and size, and whether they belong to the compiler
    /// itself.
    held: HashMap<(Value, u64), (Value, bool)>,
    /// Whether the current instruction moves a register to or from a slot of the compiler itself.
    is_spill: bool,
    changes: u32,
    hooks: Vec<Hook>,
    frame: Option<Frame>,
    remembered: Vec<Option<Frame>>,
    in_assembly: bool,
    /// The form of hooks that are added.
    form: &'static str,
    /// The lines at which the runtime may not know that the thread is in this function, and whether the current one is.
    outside: Vec<bool>,
    is_outside: bool,
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
            outside: Vec::new(),
            is_outside: false,
            out,
            completed: Completed::default(),
        }
    }

    fn all(&mut self, lines: &[&'a str]) {
        self.registers[RSP] = self.values.stack();
        for (number, line) in lines.iter().enumerate() {
            self.is_outside = self.outside.get(number).is_some_and(|is| *is);
            if self.in_assembly && line.trim() != "#NO_APP" {
                self.foreign(line);
            } else if self.is_outside && outside::is_copy(line) {
                self.open_call();
                self.line(line);
                self.emit(line);
                self.close_call();
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

    fn doubt(&mut self, why: &str) {
        self.completed.doubt.get_or_insert_with(|| why.to_owned());
    }

    /// Discards everything that is known.
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

    /// Control flow merges.
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
                // What the caller left in registers does not belong to this frame.
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
            ".cfi_escape" => match rest.split(',').next().and_then(|byte| number(byte.trim())) {
                // The number of argument bytes on the stack, and where a register was saved.
                Some(0x10 | 0x16 | 0x2e) => {}
                // A slot determines the end of the frame, because the stack was aligned; the frame
                // pointer is set up as usual.
                Some(0x0f) => self.frame = Some(Frame { register: RBP, offset: 16 }),
                _ => self.frame = None,
            },
            ".cfi_remember_state" => self.remembered.push(self.frame),
            ".cfi_restore_state" => self.frame = self.remembered.pop().unwrap_or(None),
            _ => {}
        }
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
                // The linker fills this in: the address of a symbol.
                loaded = memory.displacement().map(|(symbol, _)| symbol);
            } else {
                match (access, place) {
                    (None, Some(place)) if instruction.atomic_size().is_some() => {
                        self.one_step(instruction, memory, place);
                    }
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
                .any(|o| matches!(o, Operand::Other(t) if t.contains('(') && !t.starts_with("st(")))
        {
            self.doubt(instruction.mnemonic);
        }
        self.follow(instruction, loaded);
    }

    /// Handles an atomic instruction that the compiler generated after its hooks were in place.
    fn one_step(&mut self, instruction: &Instruction<'a>, memory: &Memory<'a>, place: Value) {
        let Some(size) = instruction.atomic_size() else { return };
        // On the stack it is a fence.
        if !self.values.is_in_frame(place) {
            if instruction.mnemonic.starts_with("cmpxchg") {
                self.found.exchanged.insert(format!("{memory:?}"));
            }
            self.add(memory, "foresee_atomic", size, true);
        }
        self.disturb();
    }

    /// Handles a memory access: it has a hook already, is private, or gets a hook now.
    fn access(&mut self, memory: &Memory<'a>, place: Value, access: Access, named: Option<&str>) {
        let size = access.size as i64;
        let covers = |hook: &Hook| {
            Values::distance(hook.at, place).is_some_and(|d| d >= 0 && d + size <= hook.size)
        };
        let reads = access.reads && !self.hooks.iter().any(|h| h.reads && covers(h));
        let writes = access.writes && !self.hooks.iter().any(|h| h.writes && covers(h));
        let in_frame = self.values.is_in_frame(place);
        if !writes && (!reads || !in_frame && self.is_done_over(memory, place, size)) {
            return;
        }
        // A thread's control block, and data of the compiler itself.
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
        if in_frame {
            self.note_name(place, size, named);
            let is_argument = self.source.is_clang
                && writes
                && !self.is_spill
                && memory.base == Some(RSP)
                && memory.index.is_none();
            // clang has hooks for arguments passed by value on the stack, so it must be visible how
            // they got there.
            if !is_argument && !self.matters_in_frame(place, size, named) {
                return;
            }
            // What the compiler alone keeps in the frame is not such a load, and was skipped before.
            if !writes && self.is_done_over(memory, place, size) {
                return;
            }
        }
        if let Some(hook) = hook_for(reads, writes) {
            self.add(memory, hook, access.size, !in_frame);
        }
    }

    /// Whether a load repeats what another instruction, or the runtime, does.
    fn is_done_over(&mut self, memory: &Memory<'a>, place: Value, size: i64) -> bool {
        let in_frame = self.values.is_in_frame(place);
        let is_symbol = |value| self.values.has_symbol(value, |_| true);
        let may_be = |h: &Hook| {
            let same = Values::distance(h.at, place).map(|d| d == 0);
            let may_be_same = || !is_symbol(h.at) || !is_symbol(place) && !in_frame;
            h.leaves_load && h.size == size && same.unwrap_or_else(may_be_same)
        };
        if let Some(at) = self.hooks.iter().position(may_be) {
            self.hooks.remove(at);
            return true;
        }
        !self.facts.exchanged.is_empty() && self.facts.exchanged.contains(&format!("{memory:?}"))
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

    /// Whether other threads may know of memory in the frame.
    fn matters_in_frame(&self, place: Value, size: i64, named: Option<&str>) -> bool {
        let offset = self.values.frame_offset(place);
        let is_return_address = offset == Some(-8);
        if self.is_spill || is_return_address {
            return false;
        }
        let is_hooked =
            |o: i64| self.facts.hooked.iter().any(|&(at, n)| at < o + size && o < at + n);
        if offset.is_some_and(is_hooked) {
            return true;
        }
        if !self.facts.escapes {
            return false;
        }
        // The end of a variable is unknown, so everything above the first taken address may be part
        // of it; but the caller's data above the return address is separate from the function's own
        // variables.
        let may_be_part = |o: i64, t: i64| t < o + size && (t < 0) == (o < 0);
        if offset.is_some_and(|o| !self.facts.taken.iter().any(|t| may_be_part(o, *t))) {
            return false;
        }
        if self.source.is_clang {
            return true;
        }
        let Some(name) = named else { return false };
        match (variable(name), offset) {
            (Some(variable), Some(_)) => {
                let extent = self.facts.names.get(variable).copied().unwrap_or((0, 0));
                self.facts.taken.iter().any(|t| extent.0 <= *t && *t < extent.1)
            }
            _ => true,
        }
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

/// The name that the compiler's comment gives an operand: one per operand, separated by commas.
fn name_of(comment: &str, index: usize) -> Option<&str> {
    let mut depth = 0;
    let mut parts = comment.split(|c: char| {
        depth += i32::from("<([{".contains(c)) - i32::from(">)]}".contains(c));
        c == ',' && depth == 0
    });
    let name = parts.nth(index)?.trim();
    Some(name).filter(|n| !n.is_empty())
}

/// The variable at the start of a name; `None` for what is reached through a pointer.
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
