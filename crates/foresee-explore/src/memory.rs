//! Memory as the search sees it: bytes that are always accessed together are one slot of a state.
//!
//! Slots are made when an access is first seen. An access that takes only a part of a slot, or more than one, splits it; states
//! that were made before are void then ([`Memory::splits`]).

use std::collections::BTreeMap;

use crate::map::HashMap;

use crate::program::{Cell, Object, Spot, Value};

/// What is in a slot. Parts of addresses appear where a pointer is copied byte by byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Datum {
    Bits(u128),
    Address(Spot),
    /// Some bytes of an address: the first, and how many.
    Piece(Spot, u8, u8),
}

/// The number of a [`Datum`]; zero is none: nothing wrote there yet.
pub(crate) type ValueId = u32;

/// The bytes of an address.
const ADDRESS: u8 = 8;

/// Values by their numbers.
#[derive(Default)]
pub(crate) struct Values {
    data: Vec<Datum>,
    numbers: HashMap<Datum, ValueId>,
}

impl Values {
    pub(crate) fn number(&mut self, datum: Datum) -> ValueId {
        *self.numbers.entry(datum).or_insert_with(|| {
            self.data.push(datum);
            self.data.len() as ValueId
        })
    }

    pub(crate) fn of(&mut self, value: Value) -> ValueId {
        self.number(match value {
            Value::Bits(bits) => Datum::Bits(bits),
            Value::Address(spot) => Datum::Address(spot),
        })
    }

    pub(crate) fn datum(&self, value: ValueId) -> Datum {
        self.data[value as usize - 1]
    }

    /// As a program tells it; `None` for parts of addresses.
    pub(crate) fn value(&self, value: ValueId) -> Option<Value> {
        match self.datum(value) {
            Datum::Bits(bits) => Some(Value::Bits(bits)),
            Datum::Address(spot) => Some(Value::Address(spot)),
            Datum::Piece(..) => None,
        }
    }

    /// Some bytes of a value.
    pub(crate) fn part(&mut self, value: ValueId, from: u8, width: u8) -> ValueId {
        let part = match self.datum(value) {
            Datum::Bits(bits) => Datum::Bits(mask(bits >> (8 * u32::from(from)), width)),
            Datum::Address(_) if from == 0 && width >= ADDRESS => return value,
            Datum::Address(spot) if from < ADDRESS => Datum::Piece(spot, from, width),
            Datum::Address(_) => Datum::Bits(0),
            Datum::Piece(spot, first, _) => Datum::Piece(spot, first + from, width),
        };
        self.number(part)
    }

    /// A value from its parts, each with its width; `None` if it is a mixture of parts of addresses.
    pub(crate) fn joined(&mut self, parts: impl Iterator<Item = (ValueId, u8)>) -> Option<ValueId> {
        let mut whole: Option<(Datum, u8)> = None;
        for (part, width) in parts {
            let datum = self.datum(part);
            let Some((so_far, at)) = whole else {
                whole = Some((datum, width));
                continue;
            };
            let both = match (so_far, datum) {
                (Datum::Bits(low), Datum::Bits(high)) => {
                    Datum::Bits(low | high << (8 * u32::from(at)))
                }
                (Datum::Piece(one, first, length), Datum::Piece(other, next, more))
                    if one == other && first + length == next =>
                {
                    match (first, length + more) {
                        (0, ADDRESS) => Datum::Address(one),
                        (first, length) => Datum::Piece(one, first, length),
                    }
                }
                _ => return None,
            };
            whole = Some((both, at + width));
        }
        whole.map(|(datum, _)| self.number(datum))
    }
}

/// The low bytes of a number.
pub(crate) fn mask(bits: u128, width: u8) -> u128 {
    match width {
        0..16 => bits & ((1 << (8 * u32::from(width))) - 1),
        _ => bits,
    }
}

/// A slot of an access.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) slot: u32,
    pub(crate) width: u8,
}

/// The slots of an access, in [`Memory::parts`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts {
    first: u32,
    count: u8,
    pub(crate) width: u8,
}

/// Which bytes are which slots, and what was there before anything was written.
#[derive(Default)]
pub(crate) struct Memory {
    /// By object: slots by the offsets at which they begin.
    objects: HashMap<Object, BTreeMap<u64, Part>>,
    parts: Vec<Part>,
    /// The number of parts of each access.
    known: HashMap<Cell, Parts>,
    /// What was in a slot before anything was written, as far as it was seen.
    initial: HashMap<u32, ValueId>,
    /// How often a slot was split.
    pub(crate) splits: u32,
}

impl Memory {
    pub(crate) fn parts(&self, parts: Parts) -> &[Part] {
        &self.parts[parts.first as usize..][..usize::from(parts.count)]
    }

    pub(crate) fn initial(&self, slot: u32) -> Option<ValueId> {
        self.initial.get(&slot).copied()
    }

    pub(crate) fn set_initial(&mut self, slot: u32, value: ValueId) {
        self.initial.insert(slot, value);
    }

    /// The slots of an access; `next` makes new ones.
    pub(crate) fn access(
        &mut self,
        cell: Cell,
        values: &mut Values,
        next: &mut dyn FnMut() -> u32,
    ) -> Parts {
        if let Some(&parts) = self.known.get(&cell) {
            return parts;
        }
        let (from, until) = (cell.at.offset, cell.at.offset + u64::from(cell.width));
        let before = self.splits;
        self.split(cell.at.object, from, values, next);
        self.split(cell.at.object, until, values, next);
        if self.splits != before {
            // The slots of other accesses may be others now.
            self.known.clear();
        }
        let slots = self.objects.entry(cell.at.object).or_default();
        let first = self.parts.len() as u32;
        let mut at = from;
        while at < until {
            let part = match slots.range(at..).next() {
                Some((&begin, &part)) if begin == at => part,
                other => {
                    let end = other.map_or(until, |(&begin, _)| begin.min(until));
                    let part = Part { slot: next(), width: (end - at) as u8 };
                    slots.insert(at, part);
                    part
                }
            };
            self.parts.push(part);
            at += u64::from(part.width);
        }
        let count = (self.parts.len() as u32 - first) as u8;
        let parts = Parts { first, count, width: cell.width };
        self.known.insert(cell, parts);
        parts
    }

    /// Makes this offset the beginning of a slot, if it is inside one.
    fn split(
        &mut self,
        object: Object,
        at: u64,
        values: &mut Values,
        next: &mut dyn FnMut() -> u32,
    ) {
        let Some(slots) = self.objects.get_mut(&object) else { return };
        let Some((&begin, &whole)) = slots.range(..at).next_back() else { return };
        let left = (at - begin).min(u64::from(whole.width)) as u8;
        if left == whole.width {
            return;
        }
        self.splits += 1;
        let right = whole.width - left;
        let halves = [(begin, 0, left), (at, left, right)];
        let initial = self.initial.remove(&whole.slot);
        for (offset, from, width) in halves {
            let part = Part { slot: next(), width };
            slots.insert(offset, part);
            if let Some(initial) = initial {
                let value = values.part(initial, from, width);
                self.initial.insert(part.slot, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(offset: u64, width: u8) -> Cell {
        Cell { at: Spot { object: Object(1), offset }, width }
    }

    #[test]
    fn overlapping_accesses_split_slots_and_what_was_in_them() {
        let (mut memory, mut values, mut count) = (Memory::default(), Values::default(), 0);
        let mut next = || {
            count += 1;
            count
        };
        let whole = memory.access(cell(0, 4), &mut values, &mut next);
        let slot = memory.parts(whole)[0].slot;
        let value = values.of(Value::Bits(0x4433_2211));
        memory.set_initial(slot, value);
        assert_eq!(memory.splits, 0);
        let middle = memory.access(cell(1, 2), &mut values, &mut next);
        assert_eq!(memory.splits, 2);
        let middle = memory.parts(middle)[0].slot;
        let initial = memory.initial(middle).expect("it is known");
        assert_eq!(values.value(initial), Some(Value::Bits(0x3322)));
        let whole = memory.access(cell(0, 4), &mut values, &mut next);
        let parts: Vec<Part> = memory.parts(whole).to_vec();
        assert_eq!(parts.iter().map(|part| part.width).collect::<Vec<_>>(), [1, 2, 1]);
        let parts =
            parts.iter().map(|part| (memory.initial(part.slot).expect("known"), part.width));
        let joined = values.joined(parts).expect("they are bits");
        assert_eq!(values.value(joined), Some(Value::Bits(0x4433_2211)));
        // A wider access covers old and new bytes.
        let wide = memory.access(cell(0, 8), &mut values, &mut next);
        assert_eq!(memory.parts(wide).iter().map(|part| part.width).sum::<u8>(), 8);
    }

    #[test]
    fn addresses_come_back_from_their_bytes() {
        let mut values = Values::default();
        let address = values.of(Value::Address(Spot { object: Object(7), offset: 16 }));
        let halves = [values.part(address, 0, 4), values.part(address, 4, 4)];
        assert_eq!(values.value(halves[0]), None);
        let joined = values.joined(halves.into_iter().map(|half| (half, 4)));
        assert_eq!(joined, Some(address));
        let zero = values.of(Value::Bits(0));
        assert_eq!(values.joined([(halves[0], 4), (zero, 4)].into_iter()), None);
    }
}
