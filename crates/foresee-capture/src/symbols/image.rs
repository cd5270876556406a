//! One ELF file: its variables, functions and places, at the addresses the file gives them.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use gimli::Reader as _;
use object::{Object, ObjectSection, ObjectSymbol, ObjectSymbolTable, SymbolKind};

use crate::assembler::{self, Notes};
use crate::summary::is_system;

use super::demangle::demangle;
use super::dwarf::{Dwarf, Reader};
use super::flow::Flows;
use super::globals::{Coverage, Global, collect};
use super::heap::Pointers;
use super::types::Types;
use super::{Frame, SymbolError};

/// The maximum size of a file that is read.
const LARGEST: u64 = 4 << 30;

/// An ELF file.
pub(super) struct Image {
    pub(super) globals: Vec<Global>,
    pub(super) types: Types,
    pub(super) coverage: Coverage,
    /// What was said when hooks were completed.
    pub(super) notes: Notes,
    pub(super) pointers: Pointers,
    /// The types that pointers point to, as far as they were asked for.
    pub(super) pointed: RefCell<Types>,
    /// What instructions access, as far as it was asked for.
    pub(super) flows: RefCell<Flows>,
    /// The names of the functions of other files, by where their addresses are.
    imports: OnceCell<HashMap<u64, String>>,
    pub(super) is_system: bool,
    /// The debugging information; not that of system libraries.
    pub(super) dwarf: Option<Dwarf>,
    /// Lines are read when the first is asked for.
    lines: OnceCell<Option<addr2line::Context<Reader>>>,
    /// Functions of the symbol table, for code without debugging information: address, end, name.
    functions: Vec<(u64, u64, String)>,
    bytes: Vec<u8>,
    /// Where the dynamic linker writes before the program begins.
    relocated: Vec<u64>,
}

impl Image {
    pub(super) fn open(path: &Path) -> Result<Image, SymbolError> {
        let bytes = read(path)?;
        let file = parse(path, &bytes)?;
        // What a system library has for itself is of no interest, and there is much of it: one place in the C library
        // would cost more than all those of a program. Its functions have names without it.
        let separate = match file.section_by_name(".debug_info").is_some() || is_system(path) {
            true => None,
            false => separate_debug_file(path, &file),
        };
        let mut types = Types::default();
        let debug_bytes = separate.and_then(|path| read(&path).ok());
        let debug = match &debug_bytes {
            Some(bytes) => object::File::parse(&**bytes).ok(),
            None => None,
        };
        let dwarf = Dwarf::load(debug.as_ref().unwrap_or(&file));
        let (mut globals, coverage, pointers) = match &dwarf {
            Some(dwarf) => collect(dwarf, &mut types),
            None => Default::default(),
        };
        globals.sort_by_key(|g| g.address);
        let mut functions = Vec::new();
        let mut unknown = Vec::new();
        let tables = [&file].into_iter().chain(debug.as_ref());
        for symbol in tables.flat_map(|f| f.symbols().chain(f.dynamic_symbols())) {
            let Ok(name) = symbol.name() else { continue };
            if symbol.is_undefined() || symbol.address() == 0 || name.is_empty() {
                continue;
            }
            let (address, size) = (symbol.address(), symbol.size());
            match symbol.kind() {
                SymbolKind::Text => {
                    functions.push((address, address.saturating_add(size), name.to_owned()));
                }
                SymbolKind::Data if size > 0 => {
                    if let Ok(at) = globals.binary_search_by_key(&address, |g| g.address) {
                        // An array without bounds in its declaration has them in its definition.
                        globals[at].size = globals[at].size.max(size);
                    } else {
                        let (name, file) = (demangle(name), String::new());
                        let is_external = symbol.is_global();
                        unknown.push(Global { name, file, address, size, ty: None, is_external });
                    }
                }
                _ => {}
            }
        }
        unknown.sort_by_key(|g| (g.address, g.name.len()));
        unknown.dedup_by_key(|g| g.address);
        globals.append(&mut unknown);
        globals.sort_by_key(|g| g.address);
        functions.sort();
        functions.dedup_by_key(|f| f.0);
        let mut relocated: Vec<u64> =
            file.dynamic_relocations().into_iter().flatten().map(|(address, _)| address).collect();
        relocated.sort_unstable();
        let notes = file.section_by_name(assembler::SECTION).and_then(|s| s.data().ok());
        let mut notes = Notes::read(notes.unwrap_or_default());
        notes.doubts.iter_mut().for_each(|(function, _)| *function = demangle(function));
        let (pointed, flows) = (RefCell::default(), RefCell::default());
        let (lines, imports) = (OnceCell::new(), OnceCell::new());
        Ok(Image {
            globals,
            types,
            coverage,
            notes,
            pointers,
            pointed,
            flows,
            imports,
            is_system: is_system(path),
            dwarf,
            lines,
            functions,
            bytes,
            relocated,
        })
    }

    /// Files and lines of instructions, if there are any.
    fn lines(&self) -> Option<&addr2line::Context<Reader>> {
        let load = || {
            let sections = self.dwarf.as_ref()?.sections.clone();
            addr2line::Context::from_arc_dwarf(sections).ok()
        };
        self.lines.get_or_init(load).as_ref()
    }

    /// The variable that holds an address.
    pub(super) fn global_at(&self, address: u64) -> Option<&Global> {
        let after = self.globals.partition_point(|g| g.address <= address);
        let global = self.globals.get(after.checked_sub(1)?)?;
        (address - global.address < global.size.max(1)).then_some(global)
    }

    /// What the file holds at an address before the program begins; `None` if the dynamic
    /// linker determines it.
    pub(super) fn initial(&self, address: u64, size: u64) -> Option<u64> {
        let end = address.checked_add(size)?;
        let at = self.relocated.partition_point(|&r| r.saturating_add(8) <= address);
        if size > 8 || self.relocated.get(at).is_some_and(|&r| r < end) {
            return None;
        }
        let file = object::File::parse(&*self.bytes).ok()?;
        let section = file.sections().find(|s| {
            s.address() <= address && end <= s.address().saturating_add(s.size()) && s.address() > 0
        })?;
        if section.kind().is_bss() {
            return Some(0);
        }
        let data = section.data_range(address, size).ok()??;
        let mut bits = [0; 8];
        bits[..data.len()].copy_from_slice(data);
        Some(u64::from_le_bytes(bits))
    }

    /// Where an instruction comes from, innermost first.
    pub(super) fn frames(&self, address: u64) -> Vec<Frame> {
        let mut found = Vec::new();
        if let Some(lines) = self.lines() {
            let home = lines.find_dwarf_and_unit(address).skip_all_loads();
            let home = home.and_then(|unit| unit.comp_dir.as_ref());
            let home = home.and_then(|dir| Some(dir.to_string_lossy().ok()?.into_owned()));
            if let Ok(mut frames) = lines.find_frames(address).skip_all_loads() {
                while let Ok(Some(frame)) = frames.next() {
                    let location = frame.location.as_ref();
                    let file = location.and_then(|l| l.file).map(|f| relative(f, home.as_deref()));
                    let name = frame.function.as_ref().and_then(|f| f.raw_name().ok());
                    found.push(Frame {
                        function: name.map(|n| demangle(&n)),
                        file,
                        line: location.and_then(|l| l.line),
                    });
                }
            }
        }
        // For a function that is local to its file, only the linker's name has the namespaces.
        if let Some(function) = self.function(address).map(demangle) {
            match found.last_mut() {
                Some(frame) => {
                    let known = frame.function.as_deref().unwrap_or_default();
                    if known.is_empty() || function.ends_with(&format!("::{known}")) {
                        frame.function = Some(function);
                    }
                }
                None => found.push(Frame { function: Some(function), file: None, line: None }),
            }
        }
        found
    }

    /// Functions by their source name.
    pub(super) fn functions_named(&self, name: &str) -> impl Iterator<Item = (u64, u64)> {
        // Demangling all of a large program takes long: the last part is in the linker's name, too.
        let last = name.rsplit("::").next().unwrap_or(name).to_owned();
        let ending = format!("::{name}");
        let name = name.to_owned();
        self.functions.iter().filter_map(move |(start, end, linked)| {
            let fits = *linked == name
                || linked.starts_with("_Z") && linked.contains(&last) && {
                    let plain = demangle(linked);
                    plain == name || plain.ends_with(&ending)
                };
            fits.then_some((*start, end - start))
        })
    }

    /// Functions whose source names are wanted.
    pub(super) fn functions_like(&self, is_wanted: &dyn Fn(&str) -> bool) -> Vec<(u64, u64)> {
        let wanted = self.functions.iter().filter(|(_, _, linked)| is_wanted(&demangle(linked)));
        wanted.map(|(start, end, _)| (*start, end - start)).collect()
    }

    /// The names of all functions.
    pub(super) fn function_names(&self) -> impl Iterator<Item = String> {
        self.functions.iter().map(|(_, _, linked)| demangle(linked))
    }

    /// Where the function begins and ends that an instruction belongs to.
    pub(super) fn function_around(&self, address: u64) -> Option<(u64, u64)> {
        let after = self.functions.partition_point(|f| f.0 <= address);
        let &(start, end, _) = self.functions.get(after.checked_sub(1)?)?;
        (address < end).then_some((start, end))
    }

    /// The machine code from one address to another.
    pub(super) fn code(&self, start: u64, end: u64) -> Option<Vec<u8>> {
        let file = object::File::parse(&*self.bytes).ok()?;
        let size = end.checked_sub(start)?;
        let mut sections = file.sections();
        let code = sections.find_map(|section| section.data_range(start, size).ok().flatten())?;
        Some(code.to_vec())
    }

    /// The name of the function that a call goes to, possibly by way of the linker's table.
    pub(super) fn callee(&self, target: u64) -> Option<String> {
        let at = self.functions.binary_search_by_key(&target, |f| f.0);
        if let Ok(at) = at {
            return Some(self.functions[at].2.clone());
        }
        // `endbr64`, then `jmp *address(%rip)` with or without `bnd`.
        let stub = self.code(target, target.checked_add(16)?)?;
        let jump = stub.windows(2).position(|bytes| bytes == [0xff, 0x25]).filter(|at| *at <= 5)?;
        let offset = i32::from_le_bytes(stub.get(jump + 2..jump + 6)?.try_into().ok()?);
        let next = target.wrapping_add(jump as u64 + 6);
        self.imported(next.wrapping_add_signed(i64::from(offset)))
    }

    /// The name of the function of another file whose address is in a place.
    pub(super) fn imported(&self, place: u64) -> Option<String> {
        let imports = self.imports.get_or_init(|| {
            let Ok(file) = object::File::parse(&*self.bytes) else { return HashMap::new() };
            let table = file.dynamic_symbol_table();
            let name = |relocation: &object::Relocation| {
                let object::RelocationTarget::Symbol(index) = relocation.target() else {
                    return None;
                };
                let symbol = table.as_ref()?.symbol_by_index(index).ok()?;
                Some(symbol.name().ok()?.to_owned())
            };
            let all = file.dynamic_relocations().into_iter().flatten();
            all.filter_map(|(at, relocation)| Some((at, name(&relocation)?))).collect()
        });
        imports.get(&place).cloned()
    }

    fn function(&self, address: u64) -> Option<&str> {
        let after = self.functions.partition_point(|f| f.0 <= address);
        let (start, end, name) = self.functions.get(after.checked_sub(1)?)?;
        (address < *end || start == end).then_some(name)
    }
}

fn read(path: &Path) -> Result<Vec<u8>, SymbolError> {
    let unreadable = |source| SymbolError::Unreadable { path: path.to_owned(), source };
    let size = fs::metadata(path).map_err(unreadable)?.len();
    if size > LARGEST {
        return Err(SymbolError::TooLarge { path: path.to_owned() });
    }
    fs::read(path).map_err(unreadable)
}

fn parse<'a>(path: &Path, bytes: &'a [u8]) -> Result<object::File<'a>, SymbolError> {
    object::File::parse(bytes)
        .map_err(|error| SymbolError::NotElf { path: path.to_owned(), why: error.to_string() })
}

/// Where distributions put what they took out of a program.
fn separate_debug_file(path: &Path, file: &object::File<'_>) -> Option<PathBuf> {
    let mut places = Vec::new();
    if let Ok(Some(id)) = file.build_id()
        && id.len() > 1
    {
        let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        places.push(PathBuf::from(format!(
            "/usr/lib/debug/.build-id/{}/{}.debug",
            &hex[..2],
            &hex[2..]
        )));
    }
    if let Ok(Some((name, _))) = file.gnu_debuglink() {
        let name = String::from_utf8_lossy(name).into_owned();
        let dir = path.parent()?;
        places.push(dir.join(&name));
        places.push(dir.join(".debug").join(&name));
        places.push(Path::new("/usr/lib/debug").join(dir.strip_prefix("/").ok()?).join(&name));
    }
    places.into_iter().find(|p| p.is_file() && p != path)
}

/// A file's name as the compiler was given it, if that was below where it ran.
fn relative(file: &str, home: Option<&str>) -> String {
    let rest = home.and_then(|home| file.strip_prefix(home));
    let rest = rest.and_then(|rest| rest.strip_prefix('/'));
    rest.map(|rest| rest.trim_start_matches("./")).unwrap_or(file).to_owned()
}
