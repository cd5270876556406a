//! What pointers point to, in machine code.
//!
//! Debugging information says of no instruction what it accesses, and of an allocation what it is for. It does say
//! of the program's variables what they are and where: a pointer's type is known wherever it is in a register or in the
//! frame. From there, types follow the code: through copies, fields, sums with what indices are multiples of, and results
//! of functions. Where a hook is called, the address that it gets has a type then, and so has the object that the
//! program accesses: the instruction that accesses `a->balance` has `a` in a register, and `a` is an `account *`.
//!
//! Nothing is guessed. Where paths meet, only what holds on all of them is known; an address outside what it
//! was computed from has no type. So a pointer to a member from which the code reaches the structure around it is not
//! mistaken for one to another member: what the structure has besides lies outside.

use std::collections::{BTreeMap, HashMap, HashSet};

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess,
    OpKind, Register,
};

use super::dwarf::Dwarf;
use super::image::Image;
use super::locals::{Local, Spot, Subprograms, locals, type_of};
use super::types::{Shape, TypeId, Types};

/// What a hook is told to be accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Accessed {
    /// A part of a structure, at this offset in it.
    Record {
        ty: TypeId,
        offset: u64,
        in_frame: bool,
    },
    /// Something that is no part of a structure.
    Plain,
    /// Something in the frame of the function that has no name.
    Frame,
    Unknown,
}

/// What is known of the functions of a file that were asked for.
#[derive(Default)]
pub(super) struct Flows {
    subprograms: Option<Subprograms>,
    /// By the return addresses of hooks.
    accesses: HashMap<u64, Accessed>,
    /// The functions that have been looked at, by their first instructions, and whether they were understood.
    done: HashMap<u64, bool>,
}

impl Image {
    /// What the hook that returns to this address was told.
    pub(super) fn accessed(&self, back: u64) -> Accessed {
        let mut flows = self.flows.borrow_mut();
        if let Some(&known) = flows.accesses.get(&back) {
            return known;
        }
        // Libraries of the system have no hooks.
        if self.is_system {
            return Accessed::Plain;
        }
        let Some((start, end)) = self.function_around(back.wrapping_sub(1)) else {
            return Accessed::Unknown;
        };
        let is_understood = match flows.done.get(&start) {
            Some(&is_understood) => is_understood,
            None => {
                let is_understood = self.follow(&mut flows, start, end).is_some();
                flows.done.insert(start, is_understood);
                is_understood
            }
        };
        match flows.accesses.get(&back) {
            Some(&known) => known,
            // What functions of libraries access belongs to something that the program's own code accesses, too.
            None if is_understood => Accessed::Plain,
            None => Accessed::Unknown,
        }
    }

    fn follow(&self, flows: &mut Flows, start: u64, end: u64) -> Option<()> {
        let dwarf = self.dwarf.as_ref()?;
        let code = self.code(start, end)?;
        let subprograms = flows.subprograms.get_or_insert_with(|| Subprograms::load(dwarf));
        let types = &mut *self.pointed.borrow_mut();
        let locals = match subprograms.at(start) {
            Some(function) => locals(dwarf, types, function),
            None => Vec::new(),
        };
        let found = HashMap::new();
        let decoder = &mut Decoder::with_ip(64, &code, start, DecoderOptions::NONE);
        let code = decoder.iter().collect::<Vec<_>>();
        let added = added(&code);
        let moves = locals.iter().any(|local| local.moves);
        let mut function =
            Function { image: self, dwarf, subprograms, types, locals, moves, added, found };
        function.run(&code)?;
        flows.accesses.extend(function.found);
        Some(())
    }
}

/// What a register or a word of the frame holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    /// A multiple of an unknown number. Zero is a multiple of zero, and everything is one of one. Where two are
    /// multiples `of` the same, which is not zero, the unknown number is the same.
    Multiple { factor: u64, of: u64 },
    /// An address in the frame, relative to the caller's stack pointer before the call.
    Frame(i64),
    /// An address: so many bytes behind the beginning of something of this type, and a multiple of `step` more.
    Pointer { ty: TypeId, offset: i64, step: u64 },
}

const UNKNOWN: Value = multiple(1);

const fn multiple(factor: u64) -> Value {
    Value::Multiple { factor, of: 0 }
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The numbers of registers that matter, as the processor counts them.
const RAX: usize = 0;
const RSP: usize = 4;
const RBP: usize = 5;
const RDI: usize = 7;
/// Those that functions may change: rax, rcx, rdx, rsi, rdi, r8 to r11.
const VOLATILE: [usize; 9] = [0, 1, 2, 6, 7, 8, 9, 10, 11];
/// DWARF's numbers of registers, as the processor's.
const FROM_DWARF: [usize; 16] = [0, 2, 1, 3, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15];

/// What is known before an instruction.
#[derive(Clone, Debug, PartialEq)]
struct State {
    registers: [Value; 16],
    /// Words of the frame.
    slots: BTreeMap<i64, Value>,
    /// In code that foresee has added: the stack pointer around it. Debugging information does not know this code, so
    /// what it says of the stack pointer and of registers holds around it.
    around: Option<Value>,
}

impl State {
    fn new() -> State {
        let mut registers = [UNKNOWN; 16];
        registers[RSP] = Value::Frame(-8);
        State { registers, slots: BTreeMap::new(), around: None }
    }

    /// Numbers that nothing is known of after an instruction are those that it makes: copies of them are the same
    /// number, until the instruction makes another.
    fn define(&mut self, ip: u64) {
        let own = |register: usize| ip << 4 | register as u64;
        let makes =
            |value: Value| matches!(value, Value::Multiple { of, .. } if of >> 4 == ip && of != 0);
        let new = |(register, &value): (usize, &Value)| (value == UNKNOWN).then_some(register);
        let made: Vec<usize> = self.registers.iter().enumerate().filter_map(new).collect();
        if made.is_empty() {
            return;
        }
        for value in self.registers.iter_mut().chain(self.slots.values_mut()) {
            if let Value::Multiple { factor, .. } = *value
                && makes(*value)
            {
                *value = multiple(factor);
            }
        }
        for register in made {
            self.registers[register] = Value::Multiple { factor: 1, of: own(register) };
        }
    }

    /// Only what is where in the frame.
    fn frame_only(&self) -> State {
        let mut registers = [UNKNOWN; 16];
        (registers[RSP], registers[RBP]) = (self.registers[RSP], self.registers[RBP]);
        State { registers, slots: BTreeMap::new(), around: None }
    }
}

/// The most passes over a function for each of its blocks: what still changes then is left unknown.
const MOST_PASSES: usize = 40;

struct Function<'a> {
    image: &'a Image,
    dwarf: &'a Dwarf,
    subprograms: &'a Subprograms,
    types: &'a mut Types,
    locals: Vec<Local>,
    /// Whether variables of the function may share places in its frame, which then tell nothing.
    moves: bool,
    /// Where code that foresee has added begins.
    added: HashSet<u64>,
    found: HashMap<u64, Accessed>,
}

impl Function<'_> {
    /// Follows all paths; none if that takes too long.
    fn run(&mut self, code: &[Instruction]) -> Option<()> {
        let index: HashMap<u64, usize> =
            code.iter().enumerate().map(|(i, at)| (at.ip(), i)).collect();
        // The states before the first instructions of blocks.
        let mut states: BTreeMap<usize, State> = BTreeMap::new();
        let targets = code.iter().filter(|at| is_branch(at));
        let mut leaders: Vec<usize> =
            targets.filter_map(|at| index.get(&at.near_branch_target()).copied()).collect();
        leaders.sort_unstable();
        leaders.dedup();
        let mut visited = vec![false; code.len()];
        states.insert(0, State::new());
        let mut open = vec![0];
        let mut passes = 0;
        // Where code goes to by a table, or by an exception, the frame is as it was elsewhere.
        let mut elsewhere: Option<State> = None;
        let mut factory = InstructionInfoFactory::new();
        loop {
            let Some(block) = open.pop() else {
                // What no path leads to.
                let rest = visited.iter().position(|visited| !visited);
                let (Some(rest), Some(state)) = (rest, &elsewhere) else { break };
                states.insert(rest, state.clone());
                open.push(rest);
                continue;
            };
            passes += 1;
            if passes > MOST_PASSES * (leaders.len() + 1) {
                return None;
            }
            let Some(mut state) = states.get(&block).cloned() else { continue };
            for i in block..code.len() {
                let at = &code[i];
                if i != block && leaders.binary_search(&i).is_ok() {
                    self.reach(i, &state, &mut states, &mut open);
                    break;
                }
                visited[i] = true;
                self.step(at, &mut state, &mut factory);
                state.define(at.ip());
                if is_branch(at)
                    && let Some(&target) = index.get(&at.near_branch_target())
                {
                    self.reach(target, &state, &mut states, &mut open);
                }
                match at.flow_control() {
                    FlowControl::IndirectBranch | FlowControl::Call => {
                        elsewhere.get_or_insert_with(|| state.frame_only());
                    }
                    _ => {}
                }
                let ends = matches!(
                    at.flow_control(),
                    FlowControl::UnconditionalBranch
                        | FlowControl::IndirectBranch
                        | FlowControl::Return
                        | FlowControl::Exception
                );
                if ends {
                    break;
                }
            }
        }
        Some(())
    }

    /// A block is reached with a state.
    fn reach(
        &mut self,
        block: usize,
        state: &State,
        states: &mut BTreeMap<usize, State>,
        open: &mut Vec<usize>,
    ) {
        let Some(known) = states.get(&block) else {
            states.insert(block, state.clone());
            open.push(block);
            return;
        };
        let mut registers = known.registers;
        for (register, &other) in registers.iter_mut().zip(&state.registers) {
            *register = self.join(*register, other);
        }
        let both = known.slots.iter().filter_map(|(&at, &one)| {
            let joined = self.join(one, *state.slots.get(&at)?);
            (joined != UNKNOWN).then_some((at, joined))
        });
        let around = known.around.filter(|_| known.around == state.around);
        let joined = State { registers, slots: both.collect(), around };
        if joined != *known {
            states.insert(block, joined);
            open.push(block);
        }
    }

    /// What holds of both.
    fn join(&self, one: Value, other: Value) -> Value {
        match (one, other) {
            (one, other) if one == other => one,
            (Value::Multiple { factor, .. }, Value::Multiple { factor: other, .. }) => {
                multiple(gcd(factor, other))
            }
            (
                Value::Pointer { ty, offset, step },
                Value::Pointer { ty: other, offset: to, step: steps },
            ) if ty == other => {
                let step = gcd(gcd(step, steps), offset.abs_diff(to));
                let size = self.types.get(ty).size;
                // One element of an array or another.
                let is_element = size > 0 && step.is_multiple_of(size);
                let offset = if is_element { offset.rem_euclid(size as i64) } else { offset };
                Value::Pointer { ty, offset, step }
            }
            _ => UNKNOWN,
        }
    }

    fn step(&mut self, at: &Instruction, state: &mut State, factory: &mut InstructionInfoFactory) {
        if self.added.contains(&at.ip()) {
            state.around = Some(state.registers[RSP]);
        }
        if state.around.is_none() {
            self.overlay(at.ip(), state);
        }
        let register = |n: u32| (at.op_kind(n) == OpKind::Register).then(|| at.op_register(n));
        let wide = |n: u32| register(n).filter(|r| r.is_gpr64()).map(Register::number);
        match at.mnemonic() {
            Mnemonic::Mov => {
                if let Some(to) = wide(0) {
                    state.registers[to] = self.operand(at, 1, state);
                    return;
                }
                if at.op_kind(0) == OpKind::Memory {
                    let value = wide(1).map(|from| state.registers[from]);
                    return self.store(at, value, state);
                }
                if let Some(to) = register(0).filter(|r| r.is_gpr32()) {
                    let value = match register(1) {
                        Some(from) if from.is_gpr32() => state.registers[from.number()],
                        _ => self.operand(at, 1, state),
                    };
                    state.registers[to.number()] = narrowed(value);
                    return;
                }
            }
            Mnemonic::Lea => {
                if let Some(to) = wide(0) {
                    state.registers[to] = self.address(at, state);
                    // It leaves the stack as it found it.
                    if moves_stack(at, ADDED)
                        && let Some(around) = state.around.take()
                    {
                        state.registers[RSP] = around;
                    }
                    return;
                }
            }
            Mnemonic::Movsxd | Mnemonic::Cdqe => {
                let to = if at.mnemonic() == Mnemonic::Cdqe { Some(RAX) } else { wide(0) };
                if let Some(to) = to {
                    let from = if at.mnemonic() == Mnemonic::Cdqe {
                        Some(RAX)
                    } else {
                        register(1).map(Register::number)
                    };
                    let value = from.map_or(UNKNOWN, |from| state.registers[from]);
                    state.registers[to] = narrowed(value);
                    return;
                }
            }
            Mnemonic::Add | Mnemonic::Sub => {
                if let Some(to) = wide(0) {
                    let other = match at.op_kind(1) {
                        OpKind::Register | OpKind::Memory => Err(self.operand(at, 1, state)),
                        _ => Ok(at.immediate(1) as i64),
                    };
                    let is_sub = at.mnemonic() == Mnemonic::Sub;
                    let before = state.registers[to];
                    state.registers[to] = match other {
                        Ok(number) if is_sub => shifted(before, -number),
                        Ok(number) => shifted(before, number),
                        Err(Value::Multiple { factor, .. }) if is_sub => stepped(before, factor),
                        // Differences of addresses are numbers.
                        Err(_) if is_sub => UNKNOWN,
                        Err(other) => sum(before, other),
                    };
                    return;
                }
            }
            Mnemonic::Shl | Mnemonic::Imul => {
                if let Some(to) = register(0).filter(|r| r.is_gpr64() || r.is_gpr32())
                    && let Some(factor) = factor(at)
                {
                    let from = match (at.op_count(), register(1)) {
                        (3, Some(from)) => state.registers[from.number()],
                        (3, None) => UNKNOWN,
                        _ => state.registers[to.number()],
                    };
                    state.registers[to.number()] = times(from, factor);
                    return;
                }
            }
            Mnemonic::Push => {
                let value = self.operand(at, 0, state);
                state.registers[RSP] = shifted(state.registers[RSP], -8);
                if let Value::Frame(to) = state.registers[RSP] {
                    state.slots.insert(to, value);
                }
                return;
            }
            Mnemonic::Pop => {
                let value = match state.registers[RSP] {
                    Value::Frame(from) => self.loaded(Value::Frame(from), at.ip(), state),
                    _ => UNKNOWN,
                };
                state.registers[RSP] = shifted(state.registers[RSP], 8);
                if let Some(to) = wide(0) {
                    state.registers[to] = value;
                }
                return;
            }
            Mnemonic::Leave => {
                let base = state.registers[RBP];
                state.registers[RBP] = self.loaded(base, at.ip(), state);
                state.registers[RSP] = shifted(base, 8);
                return;
            }
            Mnemonic::Call => return self.call(at, state),
            _ => {}
        }
        let is_zero = matches!(at.mnemonic(), Mnemonic::Xor | Mnemonic::Sub)
            && register(0).is_some()
            && register(0) == register(1);
        let info = factory.info(at);
        for used in info.used_registers() {
            let is_written = !matches!(used.access(), OpAccess::Read | OpAccess::CondRead);
            let whole = used.register().full_register();
            if is_written && whole.is_gpr64() {
                state.registers[whole.number()] = if is_zero { multiple(0) } else { UNKNOWN };
            }
        }
        let writes = info
            .used_memory()
            .iter()
            .any(|used| !matches!(used.access(), OpAccess::Read | OpAccess::CondRead));
        if writes {
            self.store(at, None, state);
        }
    }

    /// What the program's own variables are.
    fn overlay(&mut self, ip: u64, state: &mut State) {
        for i in 0..self.locals.len() {
            let Local { from, to, spot, ty, .. } = self.locals[i];
            if ip < from || ip >= to {
                continue;
            }
            let (register, offset) = match spot {
                Spot::Register(register) => (register, 0),
                Spot::Sum(register, offset) => (register, offset),
                Spot::Frame(_) | Spot::At(..) => continue,
            };
            let Some(&register) = FROM_DWARF.get(usize::from(register)) else { continue };
            // A pointer, or a structure around one.
            if let Some(pointer) = self.pointer_at(ty, 0) {
                state.registers[register] = shifted(pointer, -offset);
            }
        }
    }

    fn operand(&mut self, at: &Instruction, n: u32, state: &State) -> Value {
        match at.op_kind(n) {
            OpKind::Register if at.op_register(n).is_gpr64() => {
                state.registers[at.op_register(n).number()]
            }
            OpKind::Memory if at.memory_size().size() == 8 => {
                let address = self.address(at, state);
                self.loaded(address, at.ip(), state)
            }
            OpKind::Memory | OpKind::Register => UNKNOWN,
            _ => multiple((at.immediate(n) as i64).unsigned_abs()),
        }
    }

    /// The address of an instruction's operand in memory.
    fn address(&mut self, at: &Instruction, state: &State) -> Value {
        if at.segment_prefix() == Register::FS || at.segment_prefix() == Register::GS {
            return UNKNOWN;
        }
        if at.is_ip_rel_memory_operand() {
            return self.global(at.ip_rel_memory_address());
        }
        let of = |register: Register| match register {
            Register::None => None,
            register if register.is_gpr64() => Some(state.registers[register.number()]),
            _ => Some(UNKNOWN),
        };
        let index = of(at.memory_index()).map(|value| match at.memory_index_scale() {
            1 => value,
            scale => times(value, u64::from(scale)),
        });
        let displacement = at.memory_displacement64() as i64;
        match (of(at.memory_base()), index) {
            (Some(base), Some(index)) => shifted(sum(base, index), displacement),
            (Some(one), None) | (None, Some(one)) => shifted(one, displacement),
            (None, None) => self.global(displacement as u64),
        }
    }

    fn global(&mut self, address: u64) -> Value {
        let Some(global) = self.image.global_at(address) else { return UNKNOWN };
        let Some(origin) = global.ty.and_then(|ty| self.image.types.origin(ty)) else {
            return UNKNOWN;
        };
        let ty = self.types.load(self.dwarf, origin, 0);
        Value::Pointer { ty, offset: (address - global.address) as i64, step: 0 }
    }

    /// The word at an address.
    fn loaded(&mut self, address: Value, ip: u64, state: &State) -> Value {
        let (ty, offset) = match address {
            Value::Frame(_) if self.moves => return UNKNOWN,
            // What a variable holds may change without being seen, but not what it is.
            Value::Frame(at) => match self.local_at(at, ip, state) {
                Some(place) => place,
                None => return state.slots.get(&at).copied().unwrap_or(UNKNOWN),
            },
            Value::Pointer { ty, offset, step } => match self.resolved(ty, offset, step) {
                Some(place) => place,
                None => return UNKNOWN,
            },
            Value::Multiple { .. } => return UNKNOWN,
        };
        self.pointer_at(ty, offset).unwrap_or(UNKNOWN)
    }

    /// What the pointer at an offset in a type points to.
    fn pointer_at(&mut self, ty: TypeId, offset: u64) -> Option<Value> {
        let pointer = self.types.part_at(ty, offset, 0)?;
        let target = self.types.target(self.dwarf, pointer)?;
        Some(Value::Pointer { ty: target, offset: 0, step: 0 })
    }

    /// The variable at a place in the frame, and the offset in it.
    fn local_at(&self, at: i64, ip: u64, state: &State) -> Option<(TypeId, u64)> {
        let current = self.locals.iter().filter(|local| (local.from..local.to).contains(&ip));
        let mut found = current.filter_map(|local| {
            let start = match local.spot {
                Spot::Frame(start) => start,
                Spot::At(register, offset) => {
                    let register = *FROM_DWARF.get(usize::from(register))?;
                    match state.around.filter(|_| register == RSP) {
                        Some(Value::Frame(base)) => base + offset,
                        Some(_) => return None,
                        None => match state.registers[register] {
                            Value::Frame(base) => base + offset,
                            _ => return None,
                        },
                    }
                }
                Spot::Register(_) | Spot::Sum(..) => return None,
            };
            let offset = u64::try_from(at - start).ok()?;
            (offset < self.types.get(local.ty).size).then_some((local.ty, offset))
        });
        found.next_back()
    }

    /// The type of what is at an address, and the offset in that.
    fn resolved(&self, ty: TypeId, offset: i64, step: u64) -> Option<(TypeId, u64)> {
        let size = self.types.get(ty).size;
        let inside = u64::try_from(offset).ok()?;
        if (step == 0 || size > 0 && step.is_multiple_of(size)) && inside < size {
            return Some((ty, inside));
        }
        // An element of an array within.
        let mut arrays = Vec::new();
        self.types.arrays(ty, 0, 0, &mut arrays);
        let mut fitting = arrays.into_iter().filter(|&(from, to, element)| {
            let stride = self.types.get(element).size;
            (from..to).contains(&inside) && stride > 0 && step.is_multiple_of(stride)
        });
        let (from, _, element) = fitting.next()?;
        let stride = self.types.get(element).size;
        fitting.next().is_none().then_some((element, (inside - from) % stride))
    }

    fn store(&mut self, at: &Instruction, value: Option<Value>, state: &mut State) {
        let Value::Frame(to) = self.address(at, state) else { return };
        let size = at.memory_size().size() as i64;
        let overlapping: Vec<i64> =
            state.slots.range(to - 7..to + size.max(1)).map(|(&at, _)| at).collect();
        overlapping.iter().for_each(|at| {
            state.slots.remove(at);
        });
        if let Some(value) = value.filter(|value| *value != UNKNOWN) {
            state.slots.insert(to, value);
        }
    }

    fn call(&mut self, at: &Instruction, state: &mut State) {
        let (name, result) = match at.op_kind(0) {
            OpKind::NearBranch64 => {
                let target = at.near_branch_target();
                let callee = self.subprograms.beginning(target);
                let result = callee
                    .and_then(|die| Some((die, self.dwarf.entry(die)?)))
                    .and_then(|(die, entry)| type_of(self.dwarf, self.types, die.unit, &entry))
                    .and_then(|ty| self.types.target(self.dwarf, ty));
                (self.image.callee(target), result)
            }
            OpKind::Memory if at.is_ip_rel_memory_operand() => {
                (self.image.imported(at.ip_rel_memory_address()), None)
            }
            _ => (None, None),
        };
        let name = name.unwrap_or_default();
        if takes_address(&name) {
            let accessed = self.told(state.registers[RDI], at.ip(), state);
            self.found.insert(at.next_ip(), accessed);
        }
        // Hooks that foresee adds change nothing.
        if name.starts_with("foresee_") {
            return;
        }
        for register in VOLATILE {
            state.registers[register] = UNKNOWN;
        }
        if let Some(ty) = result {
            state.registers[RAX] = Value::Pointer { ty, offset: 0, step: 0 };
        }
    }

    /// What a hook is told by an address.
    fn told(&self, address: Value, ip: u64, state: &State) -> Accessed {
        let (place, in_frame) = match address {
            Value::Multiple { .. } => return Accessed::Unknown,
            Value::Frame(at) => match self.local_at(at, ip, state) {
                Some(place) => (Some(place), true),
                None => return Accessed::Frame,
            },
            Value::Pointer { ty, offset, step } => (self.resolved(ty, offset, step), false),
        };
        let Some((ty, offset)) = place else { return Accessed::Unknown };
        match self.types.record_at(ty, offset) {
            Some((ty, offset)) => Accessed::Record { ty, offset, in_frame },
            None if matches!(self.types.get(ty).shape, Shape::Opaque) => Accessed::Unknown,
            None => Accessed::Plain,
        }
    }
}

/// What code that foresee has added keeps off below the stack pointer.
const ADDED: i64 = 128;

/// Whether an instruction moves the stack pointer by a number, and leaves the flags as they are.
fn moves_stack(at: &Instruction, by: i64) -> bool {
    at.mnemonic() == Mnemonic::Lea
        && at.op_register(0) == Register::RSP
        && at.memory_base() == Register::RSP
        && at.memory_index() == Register::None
        && at.memory_displacement64() as i64 == by
}

/// Where code begins that foresee has added: it keeps off what is below the stack pointer, and then saves two registers.
fn added(code: &[Instruction]) -> HashSet<u64> {
    let pushes = |at: &Instruction, register: Register| {
        at.mnemonic() == Mnemonic::Push
            && at.op_kind(0) == OpKind::Register
            && at.op_register(0) == register
    };
    let begun = code.windows(3).filter(|next| {
        moves_stack(&next[0], -ADDED)
            && pushes(&next[1], Register::RDI)
            && pushes(&next[2], Register::RSI)
    });
    begun.map(|next| next[0].ip()).collect()
}

fn is_branch(at: &Instruction) -> bool {
    let is_near = matches!(
        at.flow_control(),
        FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch
    );
    is_near && at.op_kind(0) == OpKind::NearBranch64
}

/// What a shift or product multiplies by.
fn factor(at: &Instruction) -> Option<u64> {
    let last = at.op_count() - 1;
    if matches!(at.op_kind(last), OpKind::Register | OpKind::Memory) {
        return None;
    }
    let number = at.immediate(last);
    match at.mnemonic() {
        Mnemonic::Shl => 1u64.checked_shl(number as u32),
        _ => Some((number as i64).unsigned_abs()),
    }
}

/// A value and a number that is known.
fn shifted(value: Value, number: i64) -> Value {
    match value {
        Value::Multiple { .. } if number == 0 => value,
        Value::Multiple { factor, .. } => multiple(gcd(factor, number.unsigned_abs())),
        Value::Frame(at) => Value::Frame(at.wrapping_add(number)),
        Value::Pointer { ty, offset, step } => {
            Value::Pointer { ty, offset: offset.wrapping_add(number), step }
        }
    }
}

/// A value and a multiple of something.
fn stepped(value: Value, by: u64) -> Value {
    match value {
        Value::Multiple { factor, .. } => multiple(gcd(factor, by)),
        Value::Pointer { ty, offset, step } => Value::Pointer { ty, offset, step: gcd(step, by) },
        Value::Frame(at) if by == 0 => Value::Frame(at),
        Value::Frame(_) => UNKNOWN,
    }
}

fn sum(one: Value, other: Value) -> Value {
    match (one, other) {
        (Value::Multiple { factor, of }, Value::Multiple { factor: more, of: same })
            if of == same && of != 0 =>
        {
            Value::Multiple { factor: factor.wrapping_add(more), of }
        }
        (value, Value::Multiple { factor, .. }) | (Value::Multiple { factor, .. }, value) => {
            stepped(value, factor)
        }
        _ => UNKNOWN,
    }
}

/// The lower half of a value, extended in some way.
fn narrowed(value: Value) -> Value {
    match value {
        Value::Multiple { factor, .. } => multiple(factor),
        _ => UNKNOWN,
    }
}

fn times(value: Value, by: u64) -> Value {
    match value {
        Value::Multiple { factor, of } => Value::Multiple { factor: factor.wrapping_mul(by), of },
        _ => multiple(by),
    }
}

/// Whether the first argument of a function is the address that its record is about.
fn takes_address(name: &str) -> bool {
    if let Some(rest) = name.strip_prefix("__tsan_") {
        let kinds = ["read", "write", "unaligned_", "volatile_", "atomic", "vptr_"];
        return kinds.iter().any(|kind| rest.starts_with(kind)) && !rest.contains("fence");
    }
    let ours = ["foresee_read", "foresee_write", "foresee_update", "foresee_atomic"];
    let locks = ["pthread_mutex_", "pthread_rwlock_", "pthread_spin_", "mtx_", "sem_"];
    ours.iter().chain(&locks).any(|start| name.starts_with(start))
}
