//! Finds the address of a variable by its name in a specification.
//!
//! `[file.c:]name` and then fields and elements: `ctl.valve.open`, `fleet[1].pos.y`. A name may
//! leave out namespaces and the function of a static local, a file may leave out folders.

use std::collections::HashSet;

use foresee_support::nearest::likeness;
use foresee_trace::FieldName;

use super::objects::{Entry, Tags, is_suffix};
use super::scalar::{Kind, Scalar};
use super::types::{Shape, TypeId};
use super::{Image, Symbols};

/// A variable that a name denotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its full name, which means this variable alone.
    pub name: String,
    /// Its address in the process.
    pub address: u64,
    /// How large it is and how to read it.
    pub scalar: Scalar,
}

/// Why a name does not denote a variable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` {reason}")]
pub struct Unmatched {
    /// The name.
    pub name: String,
    /// What is wrong with it.
    pub reason: NameError,
}

/// What is wrong with a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// No variable has it.
    #[error("is not a global or static variable of the program{}", hint(.0))]
    Unknown(Vec<String>),
    /// Several variables have it.
    #[error("could be any of {}; write one of these", list(.0))]
    Ambiguous(Vec<String>),
    /// The variable has no such field.
    #[error("does not exist: `{within}` has no field `{field}`{}", hint(.nearest))]
    NoField {
        /// What was searched for the field.
        within: String,
        /// The field it does not have.
        field: String,
        /// Fields it has.
        nearest: Vec<String>,
    },
    /// The array has fewer elements.
    #[error("does not exist: `{within}` has {count} elements")]
    NoElement {
        /// The array.
        within: String,
        /// How many it has.
        count: u64,
    },
    /// It has no single value.
    #[error("has no single value{}", hint(.0))]
    NotScalar(Vec<String>),
    /// The path goes through a pointer.
    #[error(
        "goes through the pointer `{0}`: what it points to has no fixed place; \
             note an event with FORESEE_EVENT instead"
    )]
    Pointer(String),
    /// The program has no description of the type.
    #[error("goes into `{0}`, whose type is unknown: compile with -g")]
    NoType(String),
    /// It is not a name.
    #[error("is not a name of the form file.c:variable.field[index]")]
    Syntax,
}

fn list(names: &[String]) -> String {
    names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ")
}

fn hint(names: &[String]) -> String {
    if names.is_empty() { String::new() } else { format!("; did you mean {}?", list(names)) }
}

/// A step of a path.
enum Step<'a> {
    Field(&'a str),
    Element(u64),
}

/// The maximum number of names in a message.
const SHOWN: usize = 5;

impl Symbols {
    /// The variable that a name denotes.
    pub fn find(&self, name: &str) -> Result<Variable, Unmatched> {
        self.locate(name).map_err(|reason| Unmatched { name: name.to_owned(), reason })
    }

    /// The fields of all objects of some types among the variables of static lifetime, for each type the fields that
    /// are wanted; at most so many.
    pub fn fields_of(&self, types: &[(&str, Vec<&str>)], most: usize) -> Vec<(String, Variable)> {
        let names: Vec<String> = types.iter().map(|(of, _)| (*of).to_owned()).collect();
        let mut search = FieldSearch { types, tags: Tags::new(&names), most, found: Vec::new() };
        for loaded in &self.modules {
            let Some(image) = loaded.image() else { continue };
            for global in image.globals.iter().filter(|g| !g.file.is_empty()) {
                if let Some(ty) = global.ty {
                    search.look(image, ty, global.address.wrapping_add(loaded.module.bias), 0);
                }
            }
        }
        // Several specifications may ask for the same.
        let mut seen = HashSet::new();
        search.found.retain(|it| seen.insert((it.address, it.scalar.size)));
        let tags = search.tags;
        let named = search.found.into_iter().filter_map(|mut variable| {
            let part = self.object(variable.address, variable.scalar.size, tags)?;
            variable.name = part.name.clone();
            Some((part.name, variable))
        });
        named.collect()
    }

    fn locate(&self, name: &str) -> Result<Variable, NameError> {
        let (file, path) = split_file(name);
        let (base, steps) = split_path(path).ok_or(NameError::Syntax)?;
        let found = self.candidates(file, base);
        let entry = match found.as_slice() {
            [] => return Err(NameError::Unknown(self.nearest(base))),
            [one] => *one,
            several => {
                let labels = several.iter().map(|e| self.label(e.module, self.global(*e)));
                return Err(NameError::Ambiguous(labels.take(SHOWN).collect()));
            }
        };
        let global = self.global(entry);
        let loaded = &self.modules[entry.module];
        let label = self.label(entry.module, global);
        let image = loaded.image().ok_or(NameError::Syntax)?;
        let start = global.address.wrapping_add(loaded.module.bias);
        let (image, ty) = self.type_of(image, global);
        match ty {
            Some(ty) => walk(image, ty, label, start, &steps),
            None if !steps.is_empty() => Err(NameError::NoType(label)),
            None if !matches!(global.size, 1 | 2 | 4 | 8) => Err(NameError::NotScalar(Vec::new())),
            None => Ok(Variable {
                name: label,
                address: start,
                scalar: Scalar::new(Kind::Signed, global.size),
            }),
        }
    }

    fn candidates(&self, file: Option<&str>, base: &str) -> Vec<Entry> {
        self.index();
        let index = self.index.borrow();
        let in_file = |e: &Entry| {
            let module = self.modules[e.module].module.path.to_string_lossy();
            file.is_none_or(|f| is_suffix(f, &self.global(*e).file) || is_suffix(f, &module))
        };
        let of = |list: &Vec<Entry>| list.iter().copied().filter(in_file).collect::<Vec<_>>();
        let exact = index.by_name.get(base).map(of).unwrap_or_default();
        if !exact.is_empty() {
            return exact;
        }
        let ends = |name: &str| name.strip_suffix(base).is_some_and(|rest| rest.ends_with("::"));
        let mut found: Vec<Entry> =
            index.by_name.iter().filter(|(name, _)| ends(name)).flat_map(|(_, l)| of(l)).collect();
        found.sort_by_key(|e| (e.module, e.global));
        found
    }

    /// Names close to one that does not exist, closest first; only those with a source.
    fn nearest(&self, base: &str) -> Vec<String> {
        let index = self.index.borrow();
        let names = index.by_name.iter().filter(|(_, l)| !self.global(l[0]).file.is_empty());
        nearest(base, names.map(|(name, _)| name.as_str()))
    }
}

/// A search for fields of objects.
struct FieldSearch<'a> {
    types: &'a [(&'a str, Vec<&'a str>)],
    tags: Tags<'a>,
    most: usize,
    found: Vec<Variable>,
}

impl FieldSearch<'_> {
    /// Looks for objects in what is at an address.
    fn look(&mut self, image: &Image, ty: TypeId, address: u64, depth: usize) {
        if self.found.len() >= self.most || !self.tags.are_in(&image.types, ty, depth) {
            return;
        }
        match &image.types.get(ty).shape {
            Shape::Record { fields, .. } => {
                let name = self.tags.name(&image.types, ty);
                let meant =
                    |(of, _): &&(&str, _)| name.is_some_and(|name| FieldName::is_named(name, of));
                for path in self.types.iter().filter(meant).flat_map(|(_, paths)| paths) {
                    let whole = format!("x.{path}");
                    let steps = split_path(&whole).map(|(_, steps)| steps).unwrap_or_default();
                    let found = walk(image, ty, String::new(), address, &steps);
                    self.found.extend(found);
                }
                for field in fields {
                    self.look(image, field.ty, address.wrapping_add(field.offset), depth + 1);
                }
            }
            Shape::Array { element, count } => {
                let stride = image.types.get(*element).size;
                for index in 0..*count {
                    if self.found.len() >= self.most {
                        break;
                    }
                    let at = address.wrapping_add(index.wrapping_mul(stride));
                    self.look(image, *element, at, depth + 1);
                }
            }
            _ => {}
        }
    }
}

/// The closest of some names, closest first.
pub(super) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Vec<String> {
    let close = |it: &str| {
        let last = it.rsplit("::").next().unwrap_or(it);
        let likeness = likeness(name, last);
        (likeness >= 0.6 || likeness > 0.3 && last.contains(name)).then_some(likeness)
    };
    let mut found: Vec<(f64, &str)> =
        known.filter(|n| n.len() <= 200).filter_map(|n| Some((close(n)?, n))).collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    found.into_iter().take(SHOWN).map(|(_, n)| n.to_owned()).collect()
}

/// `file.c:name` in two; `::` does not end a file's name.
fn split_file(name: &str) -> (Option<&str>, &str) {
    let bytes = name.as_bytes();
    let alone = |i: usize| {
        bytes[i] == b':' && bytes.get(i + 1) != Some(&b':') && (i == 0 || bytes[i - 1] != b':')
    };
    match (0..bytes.len()).rev().find(|&i| alone(i)) {
        Some(i) => (Some(&name[..i]), &name[i + 1..]),
        None => (None, name),
    }
}

fn split_path(path: &str) -> Option<(&str, Vec<Step<'_>>)> {
    let end = path.find(['.', '[']).unwrap_or(path.len());
    let (base, mut rest) = path.split_at(end);
    if base.is_empty() {
        return None;
    }
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[']).unwrap_or(after.len());
            steps.push(Step::Field(after.get(..end).filter(|f| !f.is_empty())?));
            rest = &after[end..];
        } else {
            let (index, after) = rest.strip_prefix('[')?.split_once(']')?;
            steps.push(Step::Element(index.parse().ok()?));
            rest = after;
        }
    }
    Some((base, steps))
}

fn walk(
    image: &Image,
    ty: TypeId,
    mut name: String,
    mut address: u64,
    steps: &[Step<'_>],
) -> Result<Variable, NameError> {
    let mut ty = ty;
    for step in steps {
        match (step, &image.types.get(ty).shape) {
            (_, Shape::Pointer(_)) => return Err(NameError::Pointer(name)),
            (Step::Element(index), Shape::Array { element, count }) => {
                if index >= count {
                    return Err(NameError::NoElement { within: name, count: *count });
                }
                let stride = image.types.get(*element).size;
                address = address.wrapping_add(index.wrapping_mul(stride));
                name.push_str(&format!("[{index}]"));
                ty = *element;
            }
            (Step::Field(field), Shape::Record { .. }) => {
                let Some((offset, inner)) = member(image, ty, field, 0) else {
                    let nearest = nearest(field, fields(image, ty).iter().map(String::as_str));
                    let field = (*field).to_owned();
                    return Err(NameError::NoField { within: name, field, nearest });
                };
                address = address.wrapping_add(offset);
                name.push('.');
                name.push_str(field);
                ty = inner;
            }
            (Step::Field(field), _) => {
                let field = (*field).to_owned();
                return Err(NameError::NoField { within: name, field, nearest: Vec::new() });
            }
            (Step::Element(_), _) => return Err(NameError::NoElement { within: name, count: 0 }),
        }
    }
    // A `std::atomic<int>` or another wrapper of one value is that value.
    loop {
        let it = image.types.get(ty);
        let scalar = match &it.shape {
            Shape::Scalar(scalar) if scalar.kind != Kind::Bytes => *scalar,
            Shape::Pointer(_) => Scalar::new(Kind::Pointer, it.size),
            Shape::Record { fields, .. } if only(image, ty).is_some() => {
                ty = only(image, ty).unwrap_or(fields[0].ty);
                continue;
            }
            Shape::Record { .. } => {
                let fields = fields(image, ty).into_iter().take(SHOWN);
                return Err(NameError::NotScalar(fields.map(|f| format!("{name}.{f}")).collect()));
            }
            Shape::Array { count, .. } if *count > 0 => {
                return Err(NameError::NotScalar(vec![format!("{name}[0]")]));
            }
            _ => return Err(NameError::NotScalar(Vec::new())),
        };
        return Ok(Variable { name, address, scalar });
    }
}

/// The one member of a record that has all of its bytes.
fn only(image: &Image, ty: TypeId) -> Option<TypeId> {
    let whole = image.types.get(ty);
    let Shape::Record { fields, .. } = &whole.shape else { return None };
    let mut large = fields.iter().filter(|f| image.types.get(f.ty).size == whole.size);
    let first = large.next()?;
    (large.next().is_none() && whole.size <= 8 && first.ty != ty).then_some(first.ty)
}

/// A field by name, in unnamed members and base classes too.
fn member(image: &Image, ty: TypeId, name: &str, depth: usize) -> Option<(u64, TypeId)> {
    let Shape::Record { fields, .. } = &image.types.get(ty).shape else { return None };
    if let Some(field) = fields.iter().find(|f| f.name == name) {
        return Some((field.offset, field.ty));
    }
    // A broken file may have a type within itself.
    let unnamed = fields.iter().filter(|f| f.name.is_empty() && depth < 16);
    unnamed.into_iter().find_map(|f| {
        let (offset, ty) = member(image, f.ty, name, depth + 1)?;
        Some((f.offset.wrapping_add(offset), ty))
    })
}

fn fields(image: &Image, ty: TypeId) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![(ty, 0)];
    while let Some((ty, depth)) = open.pop() {
        let Shape::Record { fields, .. } = &image.types.get(ty).shape else { continue };
        for field in fields {
            if !field.name.is_empty() {
                found.push(field.name.clone());
            } else if depth < 16 && found.len() < 1000 {
                open.push((field.ty, depth + 1));
            }
        }
    }
    found
}
