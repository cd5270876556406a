//! The layout of types: which bytes of a variable are which field or element.

use std::collections::HashMap;

use gimli::{AttributeValue, DwAte};

use super::dwarf::{Die, Dwarf, Entry};
use super::scalar::{Kind, Scalar};

/// A type, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct TypeId(u32);

/// How a type lays out its bytes.
#[derive(Clone, Debug)]
pub(super) struct Type {
    pub(super) size: u64,
    pub(super) shape: Shape,
}

#[derive(Clone, Debug)]
pub(super) enum Shape {
    Scalar(Scalar),
    /// A pointer or reference, and what it points to.
    Pointer(Option<Die>),
    /// A struct, union or class.
    Record {
        fields: Vec<Field>,
        is_union: bool,
    },
    Array {
        element: TypeId,
        count: u64,
    },
    /// Known by size alone.
    Opaque,
}

#[derive(Clone, Debug)]
pub(super) struct Field {
    /// Empty for a base class and for an unnamed struct or union: its members count as the
    /// record's own.
    pub(super) name: String,
    pub(super) offset: u64,
    pub(super) ty: TypeId,
}

/// Types within types at most: what goes deeper comes from a broken file.
const DEEPEST: usize = 64;

/// All types of a file that were asked for so far.
#[derive(Default)]
pub(super) struct Types {
    types: Vec<Type>,
    known: HashMap<Die, TypeId>,
    /// Where each comes from, unless it is a part of another.
    origins: HashMap<TypeId, Die>,
    /// What records are called.
    records: HashMap<TypeId, String>,
}

impl Types {
    pub(super) fn get(&self, id: TypeId) -> &Type {
        &self.types[id.0 as usize]
    }

    /// The type that an entry's `DW_AT_type` refers to.
    pub(super) fn of(&mut self, dwarf: &Dwarf, unit: usize, entry: &Entry) -> Option<TypeId> {
        let die = dwarf.follow(unit, &entry.attr_value(gimli::DW_AT_type)?)?;
        Some(self.load(dwarf, die, 0))
    }

    /// What an entry's type points to, if it is a pointer to something of known size.
    pub(super) fn pointed_to(
        &mut self,
        dwarf: &Dwarf,
        unit: usize,
        entry: &Entry,
    ) -> Option<TypeId> {
        let pointer = self.of(dwarf, unit, entry)?;
        self.target(dwarf, pointer)
    }

    /// What a pointer or reference points to, if that has a known size.
    pub(super) fn target(&mut self, dwarf: &Dwarf, pointer: TypeId) -> Option<TypeId> {
        let Shape::Pointer(Some(target)) = self.get(pointer).shape else { return None };
        let id = self.load(dwarf, target, 0);
        (self.get(id).size > 0).then_some(id)
    }

    /// Where a type is described; none if it is only a part of another.
    pub(super) fn origin(&self, id: TypeId) -> Option<Die> {
        self.origins.get(&id).copied()
    }

    /// The name of a record.
    pub(super) fn record_name(&self, id: TypeId) -> Option<&str> {
        self.records.get(&id).map(String::as_str)
    }

    /// The scalar or pointer that begins at an offset in a type.
    pub(super) fn part_at(&self, ty: TypeId, offset: u64, depth: usize) -> Option<TypeId> {
        if depth > DEEPEST {
            return None;
        }
        match &self.get(ty).shape {
            Shape::Scalar(_) | Shape::Pointer(_) => (offset == 0).then_some(ty),
            Shape::Opaque => None,
            Shape::Array { element, .. } => {
                let inner = offset.checked_rem(self.get(*element).size)?;
                self.part_at(*element, inner, depth + 1)
            }
            Shape::Record { fields, is_union } => {
                let inside =
                    |f: &&Field| f.offset <= offset && offset - f.offset < self.get(f.ty).size;
                let around = fields.iter().filter(inside);
                // Of the members of a union, any may be meant.
                if *is_union && around.clone().count() > 1 {
                    return None;
                }
                // A base class without members has a byte that is also another member's.
                around.into_iter().find_map(|f| self.part_at(f.ty, offset - f.offset, depth + 1))
            }
        }
    }

    /// The record that an offset in a type lies in, itself or an element, and the offset there.
    pub(super) fn record_at(&self, mut ty: TypeId, mut offset: u64) -> Option<(TypeId, u64)> {
        for _ in 0..DEEPEST {
            match &self.get(ty).shape {
                Shape::Record { .. } => return Some((ty, offset)),
                Shape::Array { element, .. } => {
                    offset = offset.checked_rem(self.get(*element).size)?;
                    ty = *element;
                }
                _ => return None,
            }
        }
        None
    }

    /// The arrays in a type: where they begin and end, and what they are of. A last one without a length has no end.
    pub(super) fn arrays(
        &self,
        ty: TypeId,
        at: u64,
        depth: usize,
        found: &mut Vec<(u64, u64, TypeId)>,
    ) {
        let it = self.get(ty);
        match &it.shape {
            Shape::Array { element, count: 0 } => found.push((at, u64::MAX, *element)),
            Shape::Array { element, .. } => found.push((at, at.saturating_add(it.size), *element)),
            Shape::Record { fields, .. } if depth < DEEPEST => {
                for field in fields {
                    self.arrays(field.ty, at.saturating_add(field.offset), depth + 1, found);
                }
            }
            _ => {}
        }
    }

    /// Whether a type of these is the same as one of others, for all one can see: by its name, and alike.
    pub(super) fn is_same(&self, one: TypeId, others: &Types, other: TypeId) -> bool {
        self.record_name(one) == others.record_name(other) && self.is_like(one, others, other)
    }

    /// Whether two types look alike: each unit describes shared types separately.
    pub(super) fn are_alike(&self, one: TypeId, other: TypeId) -> bool {
        self.is_like(one, self, other)
    }

    fn is_like(&self, one: TypeId, others: &Types, other: TypeId) -> bool {
        let (one, other) = (self.get(one), others.get(other));
        let is_same = match (&one.shape, &other.shape) {
            (Shape::Scalar(one), Shape::Scalar(other)) => one == other,
            (Shape::Record { fields, .. }, Shape::Record { fields: others, .. }) => {
                let places = |fields: &[Field]| -> Vec<(String, u64)> {
                    fields.iter().map(|field| (field.name.clone(), field.offset)).collect()
                };
                places(fields) == places(others)
            }
            (one, other) => std::mem::discriminant(one) == std::mem::discriminant(other),
        };
        is_same && one.size == other.size
    }

    pub(super) fn load(&mut self, dwarf: &Dwarf, die: Die, depth: usize) -> TypeId {
        if let Some(known) = self.known.get(&die) {
            return *known;
        }
        // A placeholder for itself while it is being read, in case it contains itself.
        let id = self.add(Type { size: 0, shape: Shape::Opaque });
        self.known.insert(die, id);
        self.origins.insert(id, die);
        if depth < DEEPEST
            && let Some(ty) = self.parse(dwarf, die, depth)
        {
            if matches!(ty.shape, Shape::Record { .. })
                && let Some(name) = record_name(dwarf, die)
            {
                self.records.insert(id, name);
            }
            self.types[id.0 as usize] = ty;
        }
        id
    }

    fn add(&mut self, ty: Type) -> TypeId {
        self.types.push(ty);
        TypeId((self.types.len() - 1) as u32)
    }

    fn parse(&mut self, dwarf: &Dwarf, die: Die, depth: usize) -> Option<Type> {
        let entry = dwarf.entry(die)?;
        let target = entry.attr_value(gimli::DW_AT_type);
        let target = target.and_then(|value| dwarf.follow(die.unit, &value));
        let size = dwarf.number(&entry, gimli::DW_AT_byte_size);
        Some(match entry.tag() {
            gimli::DW_TAG_base_type => {
                let size = size?;
                let kind = match entry.attr_value(gimli::DW_AT_encoding)? {
                    AttributeValue::Encoding(encoding) => kind(encoding),
                    _ => return None,
                };
                Type { size, shape: Shape::Scalar(Scalar::new(kind, size)) }
            }
            gimli::DW_TAG_enumeration_type => {
                let base = target.map(|die| self.load(dwarf, die, depth + 1));
                let kind = match base.map(|id| &self.get(id).shape) {
                    Some(Shape::Scalar(scalar)) => scalar.kind,
                    // C's plain enumerations are signed only if they have to be.
                    _ => Kind::Signed,
                };
                let size = size.or(base.map(|id| self.get(id).size))?;
                Type { size, shape: Shape::Scalar(Scalar::new(kind, size)) }
            }
            gimli::DW_TAG_pointer_type
            | gimli::DW_TAG_reference_type
            | gimli::DW_TAG_rvalue_reference_type
            | gimli::DW_TAG_unspecified_type => {
                let width = u64::from(dwarf.units[die.unit].encoding().address_size);
                Type { size: size.unwrap_or(width), shape: Shape::Pointer(target) }
            }
            gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type | gimli::DW_TAG_union_type => {
                let fields = self.fields(dwarf, die, depth);
                let is_union = entry.tag() == gimli::DW_TAG_union_type;
                Type { size: size?, shape: Shape::Record { fields, is_union } }
            }
            gimli::DW_TAG_array_type => self.array(dwarf, die, target?, depth)?,
            gimli::DW_TAG_typedef
            | gimli::DW_TAG_const_type
            | gimli::DW_TAG_volatile_type
            | gimli::DW_TAG_restrict_type
            | gimli::DW_TAG_atomic_type
            | gimli::DW_TAG_immutable_type => {
                let target = self.load(dwarf, target?, depth + 1);
                self.get(target).clone()
            }
            _ => Type { size: size?, shape: Shape::Opaque },
        })
    }

    fn fields(&mut self, dwarf: &Dwarf, die: Die, depth: usize) -> Vec<Field> {
        let mut fields: Vec<Field> = Vec::new();
        // Bit fields that share bytes are one variable: no program writes them apart.
        let mut bits: Option<(Field, u64)> = None;
        for child in children(dwarf, die) {
            let base = child.tag() == gimli::DW_TAG_inheritance;
            if child.tag() != gimli::DW_TAG_member && !base {
                continue;
            }
            let Some(ty) = self.of_deeper(dwarf, die.unit, &child, depth) else { continue };
            let name = match base {
                true => String::new(),
                false => dwarf.text(die.unit, &child, gimli::DW_AT_name).unwrap_or_default(),
            };
            let offset = match child.attr_value(gimli::DW_AT_data_member_location) {
                None => 0,
                // The place of a virtual base is known only to the running program.
                Some(value) => match value.udata_value() {
                    Some(offset) => offset,
                    None => continue,
                },
            };
            // A static member of DWARF 4 is listed among the others.
            if dwarf.flag(&child, gimli::DW_AT_external) {
                continue;
            }
            let Some(width) = dwarf.number(&child, gimli::DW_AT_bit_size) else {
                flush(self, &mut bits, &mut fields);
                fields.push(Field { name, offset, ty });
                continue;
            };
            let size = self.get(ty).size.max(1);
            let start = match dwarf.number(&child, gimli::DW_AT_data_bit_offset) {
                Some(bit) => bit,
                None => {
                    let from_top = dwarf.number(&child, gimli::DW_AT_bit_offset).unwrap_or(0);
                    (offset * 8 + size * 8).saturating_sub(from_top.saturating_add(width))
                }
            };
            let (first, last) = (start / 8, start.saturating_add(width.max(1) - 1) / 8);
            match &mut bits {
                Some((field, end)) if first < *end => {
                    field.name = format!("{}|{name}", field.name);
                    *end = (*end).max(last + 1);
                }
                _ => {
                    flush(self, &mut bits, &mut fields);
                    bits = Some((Field { name, offset: first, ty }, last + 1));
                }
            }
        }
        flush(self, &mut bits, &mut fields);
        fields
    }

    fn of_deeper(&mut self, d: &Dwarf, unit: usize, entry: &Entry, depth: usize) -> Option<TypeId> {
        let die = d.follow(unit, &entry.attr_value(gimli::DW_AT_type)?)?;
        Some(self.load(d, die, depth + 1))
    }

    fn array(&mut self, dwarf: &Dwarf, die: Die, element: Die, depth: usize) -> Option<Type> {
        let mut element = self.load(dwarf, element, depth + 1);
        let mut counts = Vec::new();
        for child in children(dwarf, die) {
            if child.tag() != gimli::DW_TAG_subrange_type {
                continue;
            }
            let last = dwarf.number(&child, gimli::DW_AT_upper_bound);
            let count = dwarf.number(&child, gimli::DW_AT_count);
            counts.push(count.or(last.map(|n| n.wrapping_add(1))).unwrap_or(0));
        }
        // `a[2][3]` is two arrays of three.
        let mut whole = None;
        for count in counts.into_iter().rev() {
            let size = self.get(element).size.checked_mul(count)?;
            let ty = Type { size, shape: Shape::Array { element, count } };
            whole = Some(ty.clone());
            element = self.add(ty);
        }
        whole
    }
}

/// The name of a record: its own or, if it has none, that of the last typedef.
fn record_name(dwarf: &Dwarf, mut die: Die) -> Option<String> {
    let mut name = None;
    for _ in 0..DEEPEST {
        let entry = dwarf.entry(die)?;
        name = dwarf.text(die.unit, &entry, gimli::DW_AT_name).or(name);
        match entry.tag() {
            gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type | gimli::DW_TAG_union_type => {
                return name;
            }
            _ => die = dwarf.follow(die.unit, &entry.attr_value(gimli::DW_AT_type)?)?,
        }
    }
    None
}

/// Ends a stretch of bit fields: one unsigned number of the bytes they share.
fn flush(types: &mut Types, bits: &mut Option<(Field, u64)>, fields: &mut Vec<Field>) {
    if let Some((mut field, end)) = bits.take() {
        let size = end - field.offset;
        let kind = if size <= 8 { Kind::Unsigned } else { Kind::Bytes };
        field.ty = types.add(Type { size, shape: Shape::Scalar(Scalar::new(kind, size)) });
        fields.push(field);
    }
}

/// The entries right below another.
fn children(dwarf: &Dwarf, die: Die) -> Vec<Entry> {
    let mut found = Vec::new();
    let Ok(mut cursor) = dwarf.units[die.unit].entries_at_offset(die.offset) else { return found };
    if !matches!(cursor.next_dfs(), Ok(Some(entry)) if entry.has_children()) {
        return found;
    }
    while let Ok(Some(entry)) = cursor.next_dfs() {
        match entry.depth() {
            1 => found.push(entry.clone()),
            depth if depth < 1 => break,
            _ => {}
        }
    }
    found
}

fn kind(encoding: DwAte) -> Kind {
    match encoding {
        gimli::DW_ATE_boolean => Kind::Bool,
        gimli::DW_ATE_signed | gimli::DW_ATE_signed_char => Kind::Signed,
        gimli::DW_ATE_unsigned
        | gimli::DW_ATE_unsigned_char
        | gimli::DW_ATE_UTF
        | gimli::DW_ATE_ASCII => Kind::Unsigned,
        gimli::DW_ATE_float => Kind::Float,
        gimli::DW_ATE_address => Kind::Pointer,
        _ => Kind::Bytes,
    }
}
