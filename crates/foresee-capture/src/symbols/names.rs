//! What a program defines, for editors that complete names.

use super::Symbols;
use super::image::Image;
use super::types::{Shape, TypeId};

/// The names of a program that specifications can use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Defined {
    /// Variables of static lifetime and their fields.
    pub variables: Vec<String>,
    /// Functions.
    pub functions: Vec<String>,
}

/// More names than this are not listed.
const MOST: usize = 100_000;

/// Fields of fields are listed down to this depth.
const DEEPEST: usize = 4;

impl Symbols {
    /// What all modules define that has debugging information.
    pub fn defined(&self) -> Defined {
        let mut defined = Defined::default();
        for image in self.modules.iter().filter_map(|loaded| loaded.image()) {
            for global in image.globals.iter().filter(|global| !global.file.is_empty()) {
                add(image, &global.name, global.ty, 0, &mut defined.variables);
            }
            // What begins like this belongs to compilers and libraries.
            let own = |name: &String| !name.starts_with(['_', '.']) && !name.starts_with("std::");
            defined.functions.extend(image.function_names().filter(own).take(MOST));
        }
        for names in [&mut defined.variables, &mut defined.functions] {
            names.sort_unstable();
            names.dedup();
        }
        defined
    }
}

/// A variable or field, and what is in it.
fn add(image: &Image, name: &str, ty: Option<TypeId>, depth: usize, out: &mut Vec<String>) {
    if out.len() >= MOST {
        return;
    }
    let Some(Shape::Record { fields, .. }) = ty.map(|ty| &image.types.get(ty).shape) else {
        out.push(name.to_owned());
        return;
    };
    if depth == 0 {
        out.push(name.to_owned());
    }
    for field in fields.iter().filter(|_| depth < DEEPEST) {
        let path = match field.name.as_str() {
            "" => name.to_owned(),
            part => format!("{name}.{part}"),
        };
        add(image, &path, Some(field.ty), depth + 1, out);
    }
}
