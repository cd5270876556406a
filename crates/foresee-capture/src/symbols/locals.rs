//! The variables of functions: what they are, and where they are at each instruction.

use gimli::Operation;

use super::dwarf::{Die, Dwarf, Entry};
use super::types::{TypeId, Types};

/// The functions of a file: where the code of each is, in the order of addresses.
#[derive(Default)]
pub(super) struct Subprograms {
    ranges: Vec<(u64, u64, Die)>,
}

impl Subprograms {
    pub(super) fn load(dwarf: &Dwarf) -> Subprograms {
        let mut ranges = Vec::new();
        for (unit, it) in dwarf.units.iter().enumerate() {
            let Ok(mut entries) = it.entries_raw(None) else { continue };
            while !entries.is_empty() {
                let offset = entries.next_offset();
                let Ok(abbreviation) = entries.read_abbreviation() else { break };
                let Some(abbreviation) = abbreviation else { continue };
                let specs = abbreviation.attributes();
                if entries.skip_attributes(specs).is_err() {
                    break;
                }
                let has_code = specs
                    .iter()
                    .any(|s| matches!(s.name(), gimli::DW_AT_low_pc | gimli::DW_AT_ranges));
                if abbreviation.tag() != gimli::DW_TAG_subprogram || !has_code {
                    continue;
                }
                let die = Die { unit, offset };
                let code = dwarf.entry(die).map(|entry| dwarf.code(unit, &entry));
                ranges.extend(code.into_iter().flatten().map(|(low, high)| (low, high, die)));
            }
        }
        ranges.sort_by_key(|&(low, ..)| low);
        Subprograms { ranges }
    }

    /// The function that an instruction belongs to.
    pub(super) fn at(&self, address: u64) -> Option<Die> {
        let after = self.ranges.partition_point(|&(low, ..)| low <= address);
        let &(_, high, die) = self.ranges.get(after.checked_sub(1)?)?;
        (address < high).then_some(die)
    }

    /// The function that begins at an address.
    pub(super) fn beginning(&self, address: u64) -> Option<Die> {
        let at = self.ranges.binary_search_by_key(&address, |&(low, ..)| low).ok()?;
        Some(self.ranges[at].2)
    }
}

/// Where a variable is. Registers have the numbers of DWARF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spot {
    Register(u16),
    /// In memory, at an offset from the address that the caller's stack pointer had before the call.
    Frame(i64),
    /// In memory, at an offset from what a register holds.
    At(u16, i64),
    /// Nowhere, but it is what a register holds and an offset.
    Sum(u16, i64),
}

/// A variable or parameter, as long as it is in one place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Local {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) spot: Spot,
    pub(super) ty: TypeId,
    /// Whether it is elsewhere at other times, and others may have been where it is now.
    pub(super) moves: bool,
}

/// What the offsets of variables in a frame count from.
#[derive(Clone, Copy)]
enum Base {
    Cfa,
    Register(u16),
}

/// All variables of a function, with those of what was inlined into it.
pub(super) fn locals(dwarf: &Dwarf, types: &mut Types, function: Die) -> Vec<Local> {
    let mut found = Vec::new();
    let unit = &dwarf.units[function.unit];
    let Ok(mut cursor) = unit.entries_at_offset(function.offset) else { return found };
    let mut base = None;
    // The code of the blocks around, and how deep these are.
    let mut blocks: Vec<(isize, Vec<(u64, u64)>)> = Vec::new();
    while let Ok(Some(entry)) = cursor.next_dfs() {
        let depth = entry.depth();
        if depth <= 0 && !blocks.is_empty() {
            break;
        }
        while blocks.last().is_some_and(|(at, _)| *at >= depth) {
            blocks.pop();
        }
        match entry.tag() {
            gimli::DW_TAG_subprogram if blocks.is_empty() => {
                base = frame_base(dwarf, function.unit, entry);
                blocks.push((depth, dwarf.code(function.unit, entry)));
            }
            gimli::DW_TAG_lexical_block | gimli::DW_TAG_inlined_subroutine => {
                let mut code = dwarf.code(function.unit, entry);
                if code.is_empty() {
                    code = blocks.last().map(|(_, code)| code.clone()).unwrap_or_default();
                }
                blocks.push((depth, code));
            }
            gimli::DW_TAG_variable | gimli::DW_TAG_formal_parameter => {
                let Some((_, code)) = blocks.last() else { continue };
                add(dwarf, types, function.unit, entry, (code, base), &mut found);
            }
            _ => {}
        }
    }
    found
}

fn frame_base(dwarf: &Dwarf, unit: usize, entry: &Entry) -> Option<Base> {
    let expression = entry.attr_value(gimli::DW_AT_frame_base)?.exprloc_value()?;
    match expression.operations(dwarf.units[unit].encoding()).next().ok()?? {
        Operation::CallFrameCFA => Some(Base::Cfa),
        Operation::Register { register } => Some(Base::Register(register.0)),
        _ => None,
    }
}

fn add(
    dwarf: &Dwarf,
    types: &mut Types,
    unit: usize,
    entry: &Entry,
    (code, base): (&[(u64, u64)], Option<Base>),
    found: &mut Vec<Local>,
) {
    let Some(location) = entry.attr_value(gimli::DW_AT_location) else { return };
    let Some(ty) = type_of(dwarf, types, unit, entry) else { return };
    let home = &dwarf.units[unit];
    if let Some(expression) = location.exprloc_value() {
        let Some(spot) = spot(expression, home.encoding(), base) else { return };
        found.extend(code.iter().map(|&(from, to)| Local { from, to, spot, ty, moves: false }));
    } else if let Ok(Some(mut list)) = dwarf.sections.attr_locations(home, location) {
        // LLVM, which describes frames by a register, lets such variables share a place in the frame, and does not say when.
        let moves = matches!(base, Some(Base::Register(_)));
        while let Ok(Some(at)) = list.next() {
            if let Some(spot) = spot(at.data, home.encoding(), base) {
                let (from, to) = (at.range.begin, at.range.end);
                found.push(Local { from, to, spot, ty, moves });
            }
        }
    }
}

/// The type of an entry, or of the one that it is an instance of.
pub(super) fn type_of(
    dwarf: &Dwarf,
    types: &mut Types,
    unit: usize,
    entry: &Entry,
) -> Option<TypeId> {
    let (mut unit, mut entry) = (unit, entry.clone());
    for _ in 0..4 {
        if let Some(ty) = types.of(dwarf, unit, &entry) {
            return Some(ty);
        }
        let link = entry
            .attr_value(gimli::DW_AT_abstract_origin)
            .or_else(|| entry.attr_value(gimli::DW_AT_specification))?;
        let die = dwarf.follow(unit, &link)?;
        (unit, entry) = (die.unit, dwarf.entry(die)?);
    }
    None
}

/// Where an expression says that a variable is, if that is simple.
fn spot(
    expression: gimli::Expression<super::dwarf::Reader>,
    encoding: gimli::Encoding,
    base: Option<Base>,
) -> Option<Spot> {
    let mut operations = expression.operations(encoding);
    let first = operations.next().ok()??;
    let second = operations.next().ok()?;
    Some(match (first, second) {
        (Operation::Register { register }, None) => Spot::Register(register.0),
        // The first part of it, which is all that is looked at.
        (
            Operation::Register { register },
            Some(Operation::Piece { size_in_bits: 64, bit_offset: None }),
        ) => Spot::Register(register.0),
        (Operation::FrameOffset { offset }, None) => match base? {
            Base::Cfa => Spot::Frame(offset),
            Base::Register(register) => Spot::At(register, offset),
        },
        (Operation::RegisterOffset { register, offset, .. }, None) => Spot::At(register.0, offset),
        (Operation::RegisterOffset { register, offset, .. }, Some(Operation::StackValue))
            if matches!(operations.next(), Ok(None)) =>
        {
            Spot::Sum(register.0, offset)
        }
        _ => return None,
    })
}
