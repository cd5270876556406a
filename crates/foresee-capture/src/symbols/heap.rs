//! What is in a block of allocated memory. Debugging information does not say, but where the line
//! that allocates declares a pointer, as in `struct node *n = malloc(sizeof *n);`, the block is most
//! likely what it points to. That is good enough for a name. How memory is cut into variables depends on it
//! only for types that a specification names.

use std::collections::HashMap;

use super::Symbols;
use super::dwarf::{Die, Dwarf};
use super::objects::{descend, leaf_in};
use super::scalar::Scalar;
use super::types::{TypeId, Types};

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
        let file = frame.file.as_ref()?.rsplit('/').next()?;
        let module = self.modules.iter().position(|m| m.module.range.contains(&code))?;
        let image = self.modules[module].image()?;
        let (dwarf, types) = (image.dwarf.as_ref()?, &mut image.pointed.borrow_mut());
        let element = image.pointers.target(dwarf, types, file, u64::from(frame.line?))?;
        Some(Content { module, element })
    }

    /// The type of what is in a block of this size, if it is a structure with a plain name.
    pub fn type_name(&self, content: Content, whole: u64) -> Option<String> {
        let types = &self.modules[content.module].image()?.pointed.borrow();
        let stride = types.get(content.element).size;
        let is_plain = |c: char| c.is_alphanumeric() || "_:<>, *&$".contains(c);
        let name = types.record_name(content.element)?;
        (stride > 0 && whole > 0 && whole.is_multiple_of(stride) && name.chars().all(is_plain))
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
    pub fn within(&self, content: Content, whole: u64, offset: u64, size: u64) -> Option<String> {
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
        descend(types, content.element, inner, size, &mut path);
        Some(path)
    }
}
