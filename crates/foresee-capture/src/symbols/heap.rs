//! What is in a block of allocated memory. Debugging information does not say, but where the line
//! that allocates declares a pointer, as in `struct node *n = malloc(sizeof *n);`, the block is most
//! likely what it points to. That is good enough for a name. How memory is cut into variables depends on it
//! only for types that a specification names, and then what accesses show counts more (`crate::objects`).

use std::collections::HashMap;

use super::Symbols;
use super::dwarf::{Die, Dwarf};
use super::flow::Accessed;
use super::objects::{Tags, descend, leaf_in};
use super::scalar::Scalar;
use super::types::{Shape, TypeId, Types};

/// The variables that functions declare, by line. What the pointers among them point to is found when it is asked.
#[derive(Default)]
pub(super) struct Pointers {
    by_line: HashMap<u64, Vec<Die>>,
}

impl Pointers {
    /// Adds a variable of a function.
    pub(super) fn add(&mut self, line: u64, die: Die) {
        self.by_line.entry(line).or_default().push(die);
    }

    /// What the pointers on a line of a file, named without folders, point to; nothing where several disagree.
    fn target(&self, dwarf: &Dwarf, types: &mut Types, file: &str, line: u64) -> Option<TypeId> {
        let mut found = None;
        for &die in self.by_line.get(&line)? {
            let Some(entry) = dwarf.entry(die) else { continue };
            if dwarf.file(die.unit, &entry).as_deref() != Some(file) {
                continue;
            }
            let Some(target) = types.pointed_to(dwarf, die.unit, &entry) else { continue };
            match found {
                Some(known) if !types.are_alike(known, target) => return None,
                _ => found = Some(found.unwrap_or(target)),
            }
        }
        found
    }
}

/// A type of structures, or of anything else that a block consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Content {
    module: usize,
    element: TypeId,
}

/// What an access shows.
#[derive(Clone, Copy, Debug)]
pub enum Access {
    /// It is of a part of a structure.
    Record {
        /// The structure.
        content: Content,
        /// Where in it.
        offset: u64,
        /// Whether it is a variable of the function.
        in_frame: bool,
    },
    /// It is of something else.
    Plain,
    /// It is of something in the frame of the function that has no name.
    Frame,
    /// Nothing.
    Unknown,
}

/// How a smaller object relates to a larger one, at some offset in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// It is a field or element, or the same.
    Part,
    /// It lies in bytes that may be anything.
    Storage,
    /// The larger one has something else there.
    Other,
}

impl Symbols {
    /// What is in blocks that are allocated at a place in the code.
    pub fn content(&self, code: u64) -> Option<Content> {
        let place = self.place(code);
        let frame = place.0.first()?;
        let file = frame.file.as_ref()?.rsplit('/').next()?;
        let module = self.modules.iter().position(|m| m.module.range.contains(&code))?;
        let image = self.modules[module].image()?;
        let (dwarf, types) = (image.dwarf.as_ref()?, &mut image.pointed.borrow_mut());
        let element = image.pointers.target(dwarf, types, file, u64::from(frame.line?))?;
        Some(Content { module, element })
    }

    /// What the hook that returns to an address was told to be accessed.
    pub fn accessed(&self, back: u64) -> Access {
        let module = self.modules.iter().position(|m| m.module.range.contains(&back));
        let image = module.and_then(|module| Some((module, self.modules[module].image()?)));
        let Some((module, image)) = image else { return Access::Unknown };
        match image.accessed(back.wrapping_sub(self.modules[module].module.bias)) {
            Accessed::Record { ty, offset, in_frame } => {
                let content = Content { module, element: ty };
                Access::Record { content, offset, in_frame }
            }
            Accessed::Plain => Access::Plain,
            Accessed::Frame => Access::Frame,
            Accessed::Unknown => Access::Unknown,
        }
    }

    /// Looks at the types of a content's file.
    fn with<R>(&self, content: Content, look: impl FnOnce(&Types) -> R) -> Option<R> {
        Some(look(&self.modules[content.module].image()?.pointed.borrow()))
    }

    /// The size of a type.
    pub fn size_of(&self, content: Content) -> u64 {
        self.with(content, |types| types.get(content.element).size).unwrap_or(0)
    }

    /// Whether a type, or a part of it, is one of those that are asked for.
    pub fn has_tagged(&self, content: Content, tags: Tags<'_>) -> bool {
        self.with(content, |types| tags.are_in(types, content.element, 0)).unwrap_or(false)
    }

    /// How an object relates to a larger one that begins `offset` bytes before it.
    pub fn relation(&self, outer: Content, offset: u64, inner: Content) -> Relation {
        if outer == inner && offset == 0 {
            return Relation::Part;
        }
        let images = (self.modules[outer.module].image(), self.modules[inner.module].image());
        let (Some(one), Some(other)) = images else { return Relation::Other };
        let (one, other) = (one.pointed.borrow(), other.pointed.borrow());
        relation((&one, outer.element), offset, (&other, inner.element), 0)
    }

    /// Whether an address is in a file of the process, and not in a variable that only the compiler knows: it may put
    /// allocated memory there, or parts of a variable.
    pub fn is_static(&self, address: u64) -> bool {
        let Some(loaded) = self.at(address) else { return false };
        let Some(image) = loaded.image() else { return false };
        let global = image.global_at(address.wrapping_sub(loaded.module.bias));
        let is_table =
            |name: &str| ["vtable ", "VTT ", "guard "].iter().any(|it| name.starts_with(it));
        // What libraries define is described by these, or by nobody.
        image.is_system
            || global.is_none_or(|it| it.ty.is_some() || it.is_external || is_table(&it.name))
    }

    /// Whether what is at an address is a variable of static lifetime, other than bytes that may hold such an object.
    pub fn is_described(&self, address: u64, content: Content) -> bool {
        let module = self.modules.iter().position(|m| m.module.range.contains(&address));
        let image = module.and_then(|module| Some((module, self.modules[module].image()?)));
        let Some((module, image)) = image else { return false };
        let local = address.wrapping_sub(self.modules[module].module.bias);
        let Some(global) = image.global_at(local) else { return false };
        let Some(ty) = global.ty else { return false };
        let (Some(origin), Some(dwarf)) = (image.types.origin(ty), &image.dwarf) else {
            return true;
        };
        let element = image.pointed.borrow_mut().load(dwarf, origin, 0);
        let whole = Content { module, element };
        self.relation(whole, local - global.address, content) != Relation::Storage
    }

    /// The type of what is in a block of this size, if it is a structure with a plain name.
    pub fn type_name(&self, content: Content, whole: u64) -> Option<String> {
        let types = &self.modules[content.module].image()?.pointed.borrow();
        let stride = types.get(content.element).size;
        let name = types.record_name(content.element)?;
        (stride > 0 && whole > 0 && whole.is_multiple_of(stride) && is_plain(name))
            .then(|| name.to_owned())
    }

    /// The scalar that the byte at `offset` of a block belongs to: where it begins in the block, and how to read it.
    pub fn scalar_within(&self, content: Content, offset: u64) -> Option<(u64, Scalar)> {
        let types = &self.modules[content.module].image()?.pointed.borrow();
        let stride = types.get(content.element).size;
        let first = offset.checked_div(stride)? * stride;
        let (inner, scalar) = leaf_in(types, content.element, offset - first, 0)?;
        Some((first + inner, scalar))
    }

    /// The way to `size` bytes at `offset` in a block of `whole` bytes, to stand behind its name;
    /// none if the block cannot have this content.
    pub fn within(
        &self,
        content: Content,
        whole: u64,
        (offset, size): (u64, u64),
        tags: Tags<'_>,
    ) -> Option<String> {
        let types = &self.modules[content.module].image()?.pointed.borrow();
        let stride = types.get(content.element).size;
        if stride == 0 || whole == 0 || !whole.is_multiple_of(stride) || offset >= whole {
            return None;
        }
        let (index, inner) = (offset / stride, offset % stride);
        // What goes beyond an element has no name.
        if inner.saturating_add(size) > stride {
            return None;
        }
        let mut path = String::new();
        if whole > stride {
            path = format!("[{index}]");
        }
        // Its own type is in the name of the block.
        descend(types, content.element, (inner, size), &mut path, tags.within());
        Some(path)
    }

    /// The way to `size` bytes at `offset` in an object, to stand behind its name, with its type.
    pub fn within_object(
        &self,
        content: Content,
        (offset, size): (u64, u64),
        tags: Tags<'_>,
    ) -> Option<String> {
        let types = &self.modules[content.module].image()?.pointed.borrow();
        if offset.saturating_add(size) > types.get(content.element).size {
            return None;
        }
        let mut path = String::new();
        descend(types, content.element, (offset, size), &mut path, tags);
        Some(path)
    }
}

/// Whether the name of a type can stand in the name of a variable.
pub(super) fn is_plain(name: &str) -> bool {
    name.chars().all(|c| c.is_alphanumeric() || "_:<>, *&$".contains(c))
}

fn relation(
    (types, outer): (&Types, TypeId),
    offset: u64,
    (others, inner): (&Types, TypeId),
    depth: usize,
) -> Relation {
    let (it, part) = (types.get(outer), others.get(inner));
    let fits = offset.saturating_add(part.size) <= it.size;
    if depth > 64 || !fits {
        return Relation::Other;
    }
    if offset == 0 && it.size == part.size && types.is_same(outer, others, inner) {
        return Relation::Part;
    }
    match &it.shape {
        Shape::Opaque => Relation::Storage,
        Shape::Scalar(scalar) if scalar.size == 1 => Relation::Storage,
        Shape::Scalar(_) | Shape::Pointer(_) => Relation::Other,
        Shape::Array { element, .. } => match types.get(*element).size {
            1 => Relation::Storage,
            0 => Relation::Other,
            stride => relation((types, *element), offset % stride, (others, inner), depth + 1),
        },
        Shape::Record { fields, .. } => {
            let around = fields.iter().filter(|f| f.offset <= offset);
            let each = around
                .map(|f| relation((types, f.ty), offset - f.offset, (others, inner), depth + 1));
            // Of the members of a union, and of a base class and what follows it, any will do.
            let mut best = Relation::Other;
            for relation in each {
                match relation {
                    Relation::Part => return Relation::Part,
                    Relation::Storage => best = Relation::Storage,
                    Relation::Other => {}
                }
            }
            best
        }
    }
}
