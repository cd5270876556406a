//! What a file defines: its variables of static lifetime, and how much of it was built for capture.

use std::collections::{HashMap, HashSet};

use super::demangle::demangle;
use super::dwarf::{Die, Dwarf, Entry};
use super::heap::Pointers;
use super::types::{TypeId, Types};

/// A variable of static lifetime, at its address in the file.
#[derive(Clone, Debug)]
pub(super) struct Global {
    /// Its name with namespaces, or with the function it is local to: `bank::total`, `next::last`.
    pub(super) name: String,
    /// The source file as the compiler was given it; empty if only the linker knows the variable.
    pub(super) file: String,
    pub(super) address: u64,
    pub(super) size: u64,
    pub(super) ty: Option<TypeId>,
    /// Whether other files mean the same variable by the same name.
    pub(super) is_external: bool,
}

/// How much of a file was built for capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// The number of source files compiled into it, as far as the debugging information shows.
    pub units: u64,
    /// Those among them that were compiled for capture.
    pub captured_units: u64,
    /// Functions in all of them.
    pub functions: u64,
    /// Functions in those compiled for capture.
    pub captured_functions: u64,
}

/// Everything that debugging information says of variables, the coverage, and what is known of
/// pointers.
pub(super) fn collect(dwarf: &Dwarf, types: &mut Types) -> (Vec<Global>, Coverage, Pointers) {
    let (globals, coverage, pointers, declared) = Default::default();
    let mut walk = Walk { dwarf, types, globals, coverage, pointers, declared };
    for unit in 0..dwarf.units.len() {
        walk.unit(unit);
    }
    // What an inline function or a header defines is described by each unit that uses it.
    let mut seen = HashSet::new();
    walk.globals.retain(|g| seen.insert(g.address));
    (walk.globals, walk.coverage, walk.pointers)
}

struct Walk<'a> {
    dwarf: &'a Dwarf,
    types: &'a mut Types,
    globals: Vec<Global>,
    coverage: Coverage,
    pointers: Pointers,
    /// Full names of variables that were declared in a namespace, to be defined outside.
    declared: HashMap<Die, String>,
}

impl Walk<'_> {
    /// Walks over a unit. What is not needed is skipped, not read: most of it describes parameters and types.
    fn unit(&mut self, unit: usize) {
        let dwarf = self.dwarf;
        let Ok(mut entries) = dwarf.units[unit].entries_raw(None) else { return };
        // What the current entry is inside of, and how deep that is.
        let mut scopes: Vec<(isize, Scope)> = Vec::new();
        let mut skip: Option<isize> = None;
        let mut captured = None;
        let mut file = String::new();
        while !entries.is_empty() {
            let (depth, offset) = (entries.next_depth(), entries.next_offset());
            let Ok(abbreviation) = entries.read_abbreviation() else { return };
            let Some(abbreviation) = abbreviation else { continue };
            let (tag, specs) = (abbreviation.tag(), abbreviation.attributes());
            if skip.is_some_and(|top| depth > top) {
                if entries.skip_attributes(specs).is_err() {
                    return;
                }
                continue;
            }
            skip = None;
            while scopes.last().is_some_and(|(at, _)| *at >= depth) {
                scopes.pop();
            }
            let has = |at: gimli::DwAt| specs.iter().any(|spec| spec.name() == at);
            let is_listed = |spec: &gimli::AttributeSpecification| {
                spec.name() == gimli::DW_AT_location
                    && matches!(spec.form(), gimli::DW_FORM_sec_offset | gimli::DW_FORM_loclistx)
            };
            match tag {
                // A variable of a function that has no fixed address.
                gimli::DW_TAG_variable if specs.iter().any(is_listed) => {
                    for &spec in specs {
                        let Ok(attribute) = entries.read_attribute(spec) else { return };
                        if attribute.name() == gimli::DW_AT_decl_line
                            && let Some(line) = attribute.udata_value()
                        {
                            self.pointers.add(line, Die { unit, offset });
                        }
                    }
                    continue;
                }
                gimli::DW_TAG_compile_unit | gimli::DW_TAG_namespace | gimli::DW_TAG_variable => {
                    let mut attributes = Vec::new();
                    if entries.read_attributes(specs, &mut attributes).is_err() {
                        return;
                    }
                    let entry = Entry::new(tag, abbreviation.has_children(), attributes, offset);
                    match tag {
                        gimli::DW_TAG_variable => self.variable(unit, &entry, &scopes, &file),
                        gimli::DW_TAG_namespace => {
                            let name = self.text(unit, &entry, gimli::DW_AT_name);
                            scopes.push((depth, Scope::Namespace(name.unwrap_or_default())));
                        }
                        _ => {
                            let name = self.text(unit, &entry, gimli::DW_AT_name);
                            file = name.unwrap_or_default();
                            // The runtime brings a little of Rust's library along.
                            if file.starts_with("/rustc/") {
                                return;
                            }
                            // Where the compiler's own words are lost, nothing is known.
                            let producer = self.text(unit, &entry, gimli::DW_AT_producer);
                            captured = producer.map(|p| is_captured(&p));
                            self.coverage.units += u64::from(captured.is_some());
                            self.coverage.captured_units += u64::from(captured == Some(true));
                        }
                    }
                    continue;
                }
                gimli::DW_TAG_subprogram => {
                    if has(gimli::DW_AT_low_pc) || has(gimli::DW_AT_ranges) {
                        self.coverage.functions += u64::from(captured.is_some());
                        self.coverage.captured_functions += u64::from(captured == Some(true));
                    }
                    scopes.push((depth, Scope::Function(Die { unit, offset })));
                }
                // Nothing below these has an address of its own.
                gimli::DW_TAG_structure_type
                | gimli::DW_TAG_class_type
                | gimli::DW_TAG_union_type
                | gimli::DW_TAG_enumeration_type
                | gimli::DW_TAG_subroutine_type => skip = Some(depth),
                _ => {}
            }
            if entries.skip_attributes(specs).is_err() {
                return;
            }
        }
    }

    fn variable(&mut self, unit: usize, entry: &Entry, scopes: &[(isize, Scope)], file: &str) {
        let die = Die { unit, offset: entry.offset() };
        let plain = || self.text(unit, entry, gimli::DW_AT_name);
        let Some(address) = self.dwarf.fixed_address(unit, entry) else {
            let is_of_function =
                scopes.iter().any(|(_, scope)| matches!(scope, Scope::Function(_)));
            if !is_of_function
                && !scopes.is_empty()
                && let Some(plain) = plain()
            {
                let name = self.qualified(scopes, &plain);
                self.declared.insert(die, name);
            }
            if let Some(line) = self.dwarf.number(entry, gimli::DW_AT_decl_line) {
                self.pointers.add(line, die);
            }
            return;
        };
        let plain = plain();
        let declared = self.declaration(unit, entry);
        let (home, declaration) = match &declared {
            Some((die, declaration)) => (die.unit, declaration),
            None => (unit, entry),
        };
        let ty = self.types.of(self.dwarf, unit, entry);
        let ty = ty.or_else(|| self.types.of(self.dwarf, home, declaration));
        let linked = self.text(unit, entry, gimli::DW_AT_linkage_name);
        let linked = linked.or_else(|| self.text(home, declaration, gimli::DW_AT_linkage_name));
        let plain = plain.or_else(|| self.text(home, declaration, gimli::DW_AT_name));
        let known = declared.as_ref().and_then(|(die, _)| self.declared.get(die));
        let name = match (&declared, linked, plain) {
            _ if known.is_some() => known.cloned().unwrap_or_default(),
            // A static member: only the linker's name has the class.
            (Some(_), Some(linked), _) => demangle(&linked),
            (_, _, Some(plain)) => self.qualified(scopes, &plain),
            (_, Some(linked), None) => demangle(&linked),
            (_, None, None) => return,
        };
        let size = ty.map_or(0, |ty| self.types.get(ty).size);
        let is_external = self.dwarf.flag(entry, gimli::DW_AT_external)
            || self.dwarf.flag(declaration, gimli::DW_AT_external);
        let file = file.to_owned();
        self.globals.push(Global { name, file, address, size, ty, is_external });
    }

    /// The entry that declared what this one defines.
    fn declaration(&self, unit: usize, entry: &Entry) -> Option<(Die, Entry)> {
        let link = entry
            .attr_value(gimli::DW_AT_specification)
            .or_else(|| entry.attr_value(gimli::DW_AT_abstract_origin))?;
        let die = self.dwarf.follow(unit, &link)?;
        Some((die, self.dwarf.entry(die)?))
    }

    /// The name of a function, with what it is inside of.
    fn function_name(&self, die: Die, scopes: &[(isize, Scope)]) -> String {
        let Some(entry) = self.dwarf.entry(die) else { return String::new() };
        let mut at = (die.unit, entry);
        // An inlined function names its origin, which names its declaration.
        for _ in 0..4 {
            if let Some(linked) = self.text(at.0, &at.1, gimli::DW_AT_linkage_name) {
                return demangle(&linked);
            }
            match self.declaration(at.0, &at.1) {
                Some((die, declaration)) => at = (die.unit, declaration),
                None => break,
            }
        }
        let name = self.text(at.0, &at.1, gimli::DW_AT_name).unwrap_or_default();
        self.qualified(scopes, &name)
    }

    /// A name with what it is inside of. The name of a function is whole: what that is inside of does not count again.
    fn qualified(&self, scopes: &[(isize, Scope)], name: &str) -> String {
        let function = scopes.iter().rposition(|(_, scope)| matches!(scope, Scope::Function(_)));
        let mut whole = String::new();
        for (i, (_, scope)) in scopes.iter().enumerate().skip(function.unwrap_or(0)) {
            let scope = match scope {
                Scope::Namespace(name) => name,
                Scope::Function(die) => &self.function_name(*die, &scopes[..i]),
            };
            if !scope.is_empty() {
                whole.push_str(scope);
                whole.push_str("::");
            }
        }
        whole + name
    }

    fn text(&self, unit: usize, entry: &Entry, at: gimli::DwAt) -> Option<String> {
        self.dwarf.text(unit, entry, at)
    }
}

/// What an entry is inside of.
enum Scope {
    Namespace(String),
    /// Its name is read when it is needed.
    Function(Die),
}

/// Whether the compiler placed the hooks. gcc records its options by itself; `foresee cc` makes
/// clang do so.
fn is_captured(producer: &str) -> bool {
    let sanitize = producer.split_whitespace().filter_map(|w| w.strip_prefix("-fsanitize="));
    sanitize.flat_map(|list| list.split(',')).any(|name| name == "thread")
}
