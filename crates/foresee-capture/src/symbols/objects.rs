//! Finds the name of what is at an address.

use std::collections::HashMap;

use foresee_trace::FieldName;

use super::Symbols;
use super::globals::Global;
use super::heap::is_plain;
use super::image::Image;
use super::scalar::{Kind, Scalar};
use super::types::{Shape, TypeId, Types};

/// A stretch of memory with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// A path from a variable: `fleet[1].pos.y`. A part that is not a whole field or element is
    /// given by its offset: `buf[16..24]`, `ctl+2`.
    pub name: String,
    /// How to read its bytes.
    pub scalar: Scalar,
}

/// All variables by name.
#[derive(Default)]
pub(super) struct Index {
    /// By the name with namespaces; those that the same module or others define as well.
    pub(super) by_name: HashMap<String, Vec<Entry>>,
    /// How many modules are in it.
    indexed: usize,
}

/// A variable: its module and its place in the module's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) module: usize,
    pub(super) global: usize,
}

/// Types of objects that a specification is about. In the names of variables, their names stand in braces behind the
/// objects: `fleet[1]{ship}.pos.y`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tags<'t> {
    types: &'t [String],
    /// Whether the next record is not tagged.
    is_within: bool,
}

impl<'t> Tags<'t> {
    /// Tags for these types, as the specification names them.
    pub fn new(types: &'t [String]) -> Tags<'t> {
        Tags { types, is_within: false }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.types.is_empty()
    }

    /// The same for all that is in an object, but not for the object itself.
    pub(super) fn within(self) -> Tags<'t> {
        Tags { is_within: true, ..self }
    }

    /// The name of a record that is to be tagged.
    pub(super) fn name<'n>(&self, types: &'n Types, record: TypeId) -> Option<&'n str> {
        if self.types.is_empty() {
            return None;
        }
        let name = types.record_name(record).filter(|name| is_plain(name))?;
        self.types.iter().any(|meant| FieldName::is_named(name, meant)).then_some(name)
    }

    /// Whether a type, or a part of it, is one of them.
    pub(super) fn are_in(&self, types: &Types, ty: TypeId, depth: usize) -> bool {
        if depth > 64 {
            return false;
        }
        match &types.get(ty).shape {
            Shape::Record { fields, .. } => {
                self.name(types, ty).is_some()
                    || fields.iter().any(|field| self.are_in(types, field.ty, depth + 1))
            }
            Shape::Array { element, .. } => self.are_in(types, *element, depth + 1),
            _ => false,
        }
    }
}

impl Symbols {
    /// The name of `size` bytes at `address`, if they belong to a variable of static lifetime.
    /// Different stretches have different names.
    pub fn object(&self, address: u64, size: u64, tags: Tags<'_>) -> Option<Part> {
        let module = self.modules.iter().position(|m| m.module.range.contains(&address))?;
        let image = self.modules[module].image()?;
        let local = address.wrapping_sub(self.modules[module].module.bias);
        let global = image.global_at(local)?;
        let mut name = self.label(module, global);
        let (image, ty) = self.type_of(image, global);
        let offset = local - global.address;
        let scalar = match ty {
            Some(ty) => descend(&image.types, ty, (offset, size), &mut name, tags),
            None if offset == 0 && size == global.size => untyped(size),
            None => stretch(&mut name, offset, size),
        };
        Some(Part { name, scalar })
    }

    /// The type of a variable. One that the linker copied into the program is described by the
    /// library that it came from.
    pub(super) fn type_of<'a>(
        &'a self,
        image: &'a Image,
        global: &Global,
    ) -> (&'a Image, Option<TypeId>) {
        if global.ty.is_some() || !global.is_external {
            return (image, global.ty);
        }
        let images = self.modules.iter().filter_map(|m| m.image());
        let same = images.flat_map(|image| image.globals.iter().map(move |g| (image, g))).find(
            |(_, g)| {
                g.ty.is_some() && g.is_external && g.name == global.name && g.size == global.size
            },
        );
        same.map_or((image, None), |(image, g)| (image, g.ty))
    }

    /// A variable's own name if it is the only one of that name, else with as much of its file's
    /// path as it takes.
    pub(super) fn label(&self, module: usize, global: &Global) -> String {
        self.index();
        let index = self.index.borrow();
        let others: Vec<&Global> = index
            .by_name
            .get(&global.name)
            .into_iter()
            .flatten()
            .filter(|e| e.module != module || self.global(**e).address != global.address)
            .map(|e| self.global(*e))
            .collect();
        if others.is_empty() {
            return global.name.clone();
        }
        if global.file.is_empty() {
            let path = &self.modules[module].module.path;
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            return format!("{name}:{}", global.name);
        }
        let mut start = global.file.len();
        loop {
            start = global.file[..start].rfind('/').unwrap_or(0);
            let suffix = global.file[start..].trim_start_matches('/');
            if start == 0 || !others.iter().any(|g| is_suffix(suffix, &g.file)) {
                // Two with the same name in one file are distinguished by their location.
                let twin = others.iter().any(|g| is_suffix(suffix, &g.file));
                let which = match twin {
                    true => format!("@{:x}", global.address),
                    false => String::new(),
                };
                return format!("{suffix}:{}{which}", global.name);
            }
        }
    }

    pub(super) fn global(&self, entry: Entry) -> &Global {
        let image = self.modules[entry.module].image();
        &image.expect("only opened modules are indexed").globals[entry.global]
    }

    /// Lists the variables of modules that came since the last time.
    pub(super) fn index(&self) {
        let mut index = self.index.borrow_mut();
        while index.indexed < self.modules.len() {
            let module = index.indexed;
            index.indexed += 1;
            let Some(image) = self.modules[module].image() else { continue };
            for (global, it) in image.globals.iter().enumerate() {
                let known = index.by_name.get(&it.name).into_iter().flatten();
                let same = known.map(|e| (e.module, self.global(*e)));
                // The first module that defines an external name defines it for all.
                let mut earlier = same.filter(|(m, g)| *m != module && g.is_external);
                if it.is_external && earlier.any(|(_, g)| g.size == it.size) {
                    continue;
                }
                // Names that are only in the symbol table of a system library do not compete.
                if it.file.is_empty() && index.by_name.contains_key(&it.name) {
                    continue;
                }
                index.by_name.entry(it.name.clone()).or_default().push(Entry { module, global });
            }
        }
    }
}

/// Whether a path ends in another, by whole components.
pub(super) fn is_suffix(suffix: &str, path: &str) -> bool {
    path.strip_suffix(suffix).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
}

/// Finds `size` bytes at `offset` in a type, and puts the way there behind `name`.
pub(super) fn descend(
    types: &Types,
    mut ty: TypeId,
    (mut offset, size): (u64, u64),
    name: &mut String,
    mut tags: Tags<'_>,
) -> Scalar {
    loop {
        let it = types.get(ty);
        let whole = offset == 0 && size == it.size;
        match &it.shape {
            Shape::Scalar(scalar) if whole => return *scalar,
            Shape::Pointer(_) if whole => return Scalar::new(Kind::Pointer, size),
            Shape::Scalar(_) | Shape::Pointer(_) | Shape::Opaque => {
                return if whole { untyped(size) } else { stretch(name, offset, size) };
            }
            Shape::Record { fields, .. } => {
                let inside = |f: &&super::types::Field| {
                    let end = types.get(f.ty).size.saturating_add(f.offset);
                    f.offset <= offset && offset.saturating_add(size) <= end
                };
                // The member of a union that fits exactly, if there is one.
                let exact = |f: &&super::types::Field| {
                    let is_leaf =
                        matches!(types.get(f.ty).shape, Shape::Scalar(_) | Shape::Pointer(_));
                    is_leaf && f.offset == offset && types.get(f.ty).size == size
                };
                let found = fields.iter().find(exact).or_else(|| fields.iter().find(inside));
                let Some(field) = found else {
                    return if whole { untyped(size) } else { stretch(name, offset, size) };
                };
                if !std::mem::take(&mut tags.is_within)
                    && let Some(of) = tags.name(types, ty)
                {
                    name.extend(["{", of, "}"]);
                }
                if !field.name.is_empty() {
                    name.push('.');
                    name.push_str(&field.name);
                }
                offset -= field.offset;
                ty = field.ty;
            }
            Shape::Array { element, .. } => {
                let stride = types.get(*element).size;
                if stride == 0 || whole && size != stride {
                    return if whole { untyped(size) } else { stretch(name, offset, size) };
                }
                let (index, inner) = (offset / stride, offset % stride);
                if inner.saturating_add(size) <= stride {
                    name.push_str(&format!("[{index}]"));
                    offset = inner;
                    ty = *element;
                } else if inner == 0 && size.is_multiple_of(stride) {
                    name.push_str(&format!("[{index}..{}]", index + size / stride));
                    return untyped(size);
                } else {
                    return stretch(name, offset, size);
                }
            }
        }
    }
}

/// A stretch that is nothing the source has a name for.
fn stretch(name: &mut String, offset: u64, size: u64) -> Scalar {
    name.push_str(&format!("+{offset}"));
    if !matches!(size, 1 | 2 | 4 | 8) {
        name.push_str(&format!("..{}", offset.saturating_add(size)));
    } else {
        // Accesses of different widths at one place are different stretches.
        name.push_str(&format!(":{size}"));
    }
    untyped(size)
}

/// Bytes of which only the count is known.
fn untyped(size: u64) -> Scalar {
    let kind = if matches!(size, 1 | 2 | 4 | 8) { Kind::Unsigned } else { Kind::Bytes };
    Scalar::new(kind, size)
}

/// The stretch of a variable that is read and written as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// Where it begins.
    pub start: u64,
    /// How large it is and how to read it.
    pub scalar: Scalar,
}

impl Symbols {
    /// The scalar variable, field or element that an address belongs to. Every address has at most
    /// one, so leaves do not overlap: of a union's members the largest counts.
    pub fn leaf(&self, address: u64) -> Option<Leaf> {
        let loaded = self.modules.iter().find(|m| m.module.range.contains(&address))?;
        let image = loaded.image()?;
        let local = address.wrapping_sub(loaded.module.bias);
        let global = image.global_at(local)?;
        let (described, ty) = self.type_of(image, global);
        let offset = local - global.address;
        let (inner, scalar) = match ty {
            Some(ty) => leaf_in(&described.types, ty, offset, 0)?,
            None if matches!(global.size, 1 | 2 | 4 | 8) => (0, untyped(global.size)),
            None => return None,
        };
        let start = global.address.wrapping_add(inner).wrapping_add(loaded.module.bias);
        Some(Leaf { start, scalar })
    }
}

pub(super) fn leaf_in(
    types: &Types,
    ty: TypeId,
    offset: u64,
    depth: usize,
) -> Option<(u64, Scalar)> {
    let it = types.get(ty);
    // A broken file may have a type within itself.
    if offset >= it.size || depth > 64 {
        return None;
    }
    let scalar = |kind, size| matches!(size, 1 | 2 | 4 | 8).then_some((0, Scalar::new(kind, size)));
    match &it.shape {
        Shape::Scalar(s) => scalar(s.kind, s.size),
        Shape::Pointer(_) => scalar(Kind::Pointer, it.size),
        Shape::Opaque => None,
        Shape::Array { element, .. } => {
            let stride = types.get(*element).size;
            let index = offset.checked_div(stride)?;
            let (inner, scalar) = leaf_in(types, *element, offset % stride, depth + 1)?;
            Some((index * stride + inner, scalar))
        }
        Shape::Record { fields, is_union } => {
            let inside = |f: &&super::types::Field| {
                f.offset <= offset && offset - f.offset < types.get(f.ty).size
            };
            let within = |f: &super::types::Field| {
                let (inner, scalar) = leaf_in(types, f.ty, offset - f.offset, depth + 1)?;
                Some((f.offset + inner, scalar))
            };
            match is_union {
                // The first of the largest members.
                true => fields
                    .iter()
                    .rev()
                    .max_by_key(|f| types.get(f.ty).size)
                    .filter(inside)
                    .and_then(within),
                // What a base class leaves unused at its end may hold a member of the class.
                false => fields.iter().filter(inside).find_map(within),
            }
        }
    }
}
