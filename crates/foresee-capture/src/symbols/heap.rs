//! What is in a block of allocated memory. Debugging information does not say, but where the line
//! that allocates declares a pointer, as in `struct node *n = malloc(sizeof *n);`, the block is most
//! likely what it points to. That is good enough for a name, and used for nothing else: how memory
//! is cut into variables does not depend on it.

use std::collections::HashMap;

use super::Symbols;
use super::dwarf::{Dwarf, Entry};
use super::objects::descend;
use super::types::{TypeId, Types};

/// What the pointers that functions declare point to, by file, without folders, and line; nothing
/// where several on a line disagree.
#[derive(Default)]
pub(super) struct Pointers {
    by_line: HashMap<(String, u64), Option<TypeId>>,
}

impl Pointers {
    /// Adds a variable of a function, if it is a pointer.
    pub(super) fn add(&mut self, dwarf: &Dwarf, types: &mut Types, unit: usize, entry: &Entry) {
        let Some(line) = dwarf.number(entry, gimli::DW_AT_decl_line) else { return };
        let Some(target) = types.pointed_to(dwarf, unit, entry) else { return };
        let Some(file) = dwarf.file(unit, entry) else { return };
        let known = self.by_line.entry((file, line)).or_insert(Some(target));
        if known.is_some_and(|known| !types.are_alike(known, target)) {
            *known = None;
        }
    }
}

/// What a block consists of: one or more of a type.
#[derive(Clone, Copy, Debug)]
pub struct Content {
    module: usize,
    element: TypeId,
}

impl Symbols {
    /// What is in blocks that are allocated at a place in the code.
    pub fn content(&self, code: u64) -> Option<Content> {
        let place = self.place(code);
        let frame = place.0.first()?;
        let file = frame.file.as_ref()?.rsplit('/').next()?.to_owned();
        let module = self.modules.iter().position(|m| m.module.range.contains(&code))?;
        let image = self.modules[module].image()?;
        let known = image.pointers.by_line.get(&(file, u64::from(frame.line?)));
        let element = (*known?)?;
        Some(Content { module, element })
    }

    /// The way to `size` bytes at `offset` in a block of `whole` bytes, to stand behind its name;
    /// none if the block cannot have this content.
    pub fn within(&self, content: Content, whole: u64, offset: u64, size: u64) -> Option<String> {
        let types = &self.modules[content.module].image()?.types;
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
        descend(types, content.element, inner, size, &mut path);
        Some(path)
    }
}
