//! Names for a log's addresses, from the symbols of the process.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use foresee_trace::FieldName;

use crate::log::{Block, Log, Names, Pc, Piece};
use crate::symbols::{Content, Module, Scalar, Symbols, Variable};

/// The symbols of the process that left a log.
pub fn symbols_of(log: &Log) -> Symbols {
    let mut symbols = Symbols::default();
    for module in log.modules.iter().filter(|m| !m.path.as_os_str().is_empty()) {
        let range = module.low..module.end;
        symbols.add(Module { path: module.path.clone(), bias: module.base, range });
    }
    symbols
}

/// Names captured things by their symbols, and variables of a specification as it names them.
pub struct Naming<'s> {
    symbols: &'s Symbols,
    /// By address: the name in the specification, and the type.
    spec_vars: BTreeMap<u64, (String, Scalar)>,
    /// Locations that allocate.
    sites: HashMap<u64, Site>,
    /// The numbers of their names. A line of a template has one name and one address per instance.
    site_names: HashMap<String, u64>,
    /// The types of objects whose values specifications need.
    object_types: &'s [String],
}

/// A location that allocates memory.
struct Site {
    name: String,
    number: u64,
    /// The type of the blocks from there.
    content: Option<Content>,
}

impl<'s> Naming<'s> {
    /// Names from symbols; `spec_vars` are the variables of a specification with its names for them,
    /// the first of which is used; `object_types` are the types of objects that it is about.
    pub fn new(
        symbols: &'s Symbols,
        spec_vars: &[(String, Variable)],
        object_types: &'s [String],
    ) -> Naming<'s> {
        let mut names = BTreeMap::new();
        for (name, variable) in spec_vars {
            let entry = (name.clone(), variable.scalar);
            names.entry(variable.address).or_insert(entry);
        }
        let (sites, site_names) = (HashMap::new(), HashMap::new());
        Naming { symbols, spec_vars: names, sites, site_names, object_types }
    }

    /// The location that allocates a block.
    fn site_of(&mut self, site: u64) -> &Site {
        let (symbols, names) = (self.symbols, &mut self.site_names);
        self.sites.entry(site).or_insert_with(|| {
            let place = symbols.place(site.wrapping_sub(1));
            let name = match place.0.is_empty() {
                true => format!("{site:#x}"),
                false => place.to_string(),
            };
            let next = names.len() as u64;
            let number = *names.entry(name.clone()).or_insert(next);
            Site { name, number, content: symbols.content(site.wrapping_sub(1)) }
        })
    }

    /// The name of `size` bytes in a block: `node(list.c:9(push))#2.next`.
    fn in_block(&mut self, address: u64, size: u64, block: &Block, out: &mut String) {
        self.block(block, out);
        let (symbols, content) = (self.symbols, self.site_of(block.site.address).content);
        let offset = address.wrapping_sub(block.start);
        let path = content.and_then(|content| symbols.within(content, block.size, offset, size));
        // Writing to a string cannot fail.
        let _ = match path {
            Some(path) => write!(out, "{path}"),
            None => write!(out, "+{offset}"),
        };
    }

    /// The scalar at an address in a block, if a specification is about objects of the block's type.
    fn scalar_in_block(&mut self, address: u64, block: &Block) -> Option<Piece> {
        let (symbols, types) = (self.symbols, self.object_types);
        if types.is_empty() {
            return None;
        }
        let content = self.site_of(block.site.address).content?;
        let of = symbols.type_name(content, block.size)?;
        if !types.iter().any(|meant| FieldName::is_named(&of, meant)) {
            return None;
        }
        let (start, kind) = symbols.scalar_within(content, address.wrapping_sub(block.start))?;
        Some(Piece { start: block.start.wrapping_add(start), kind, is_whole: true })
    }

    fn unknown(&self, address: u64, out: &mut String) {
        let module = self.symbols.modules().find(|m| m.range.contains(&address));
        let _ = match module {
            Some(module) => {
                let name = module.path.file_name().unwrap_or_default().to_string_lossy();
                write!(out, "{name}+{:#x}", address.wrapping_sub(module.bias))
            }
            None => write!(out, "memory({address:#x})"),
        };
    }
}

impl Names for Naming<'_> {
    fn scalar(&mut self, address: u64, block: Option<&Block>) -> Option<Piece> {
        let spec_vars = self.spec_vars.range(..=address).next_back();
        if let Some((&start, &(_, kind))) = spec_vars
            && address - start < kind.size
        {
            return Some(Piece { start, kind, is_whole: true });
        }
        if let Some(block) = block {
            return self.scalar_in_block(address, block);
        }
        let leaf = self.symbols.leaf(address)?;
        Some(Piece { start: leaf.start, kind: leaf.scalar, is_whole: false })
    }

    fn variable(&mut self, start: u64, size: u64, block: Option<&Block>, out: &mut String) {
        if let Some((name, scalar)) = self.spec_vars.get(&start)
            && scalar.size == size
        {
            out.push_str(name);
        } else if let Some(part) = self.symbols.object(start, size) {
            out.push_str(&part.name);
        } else if let Some(block) = block {
            self.in_block(start, size, block, out);
        } else {
            self.unknown(start, out);
        }
    }

    fn site(&mut self, site: Pc) -> u64 {
        self.site_of(site.address).number
    }

    fn block(&mut self, block: &Block, out: &mut String) {
        let (number, symbols) = (block.number + 1, self.symbols);
        let site = self.site_of(block.site.address);
        let of = site.content.and_then(|content| symbols.type_name(content, block.size));
        let _ = write!(out, "{}({})#{number}", of.as_deref().unwrap_or("heap"), site.name);
    }

    fn object(&mut self, address: u64, block: Option<&Block>, out: &mut String) {
        if let Some(part) = self.symbols.object(address, 4) {
            out.push_str(without_innards(&part.name));
        } else if let Some(block) = block {
            let mut name = String::new();
            self.in_block(address, 4, block, &mut name);
            // The part in parentheses is a location, and file names may contain anything.
            let path = name.rfind(')').unwrap_or(0);
            let end = name[path..].find("._").map_or(name.len(), |at| path + at);
            out.push_str(&name[..end]);
        } else {
            self.unknown(address, out);
        }
    }

    fn location(&mut self, pc: Pc, out: &mut String) {
        let _ = write!(out, "{}", self.symbols.place(pc.address.wrapping_sub(1)));
    }

    fn is_runtime(&mut self, pc: Pc) -> bool {
        let place = self.symbols.place(pc.address.wrapping_sub(1));
        let function = place.0.last().and_then(|frame| frame.function.as_deref());
        // It has no debugging information, and names of its own.
        function.is_none_or(|name| name.contains("foresee_rt"))
    }

    fn function(&mut self, pc: Pc, out: &mut String) {
        let place = self.symbols.place(pc.address.wrapping_sub(1));
        // Inlined functions have no entry of their own.
        match place.0.last().and_then(|frame| frame.function.as_ref()) {
            Some(name) => out.push_str(name),
            None => self.unknown(pc.address, out),
        }
    }
}

/// To everything but the C library, `alice.lock.__data.__lock` is the lock `alice.lock`.
pub(crate) fn without_innards(name: &str) -> &str {
    let end = name.find("._").or_else(|| name.find('+')).unwrap_or(name.len());
    &name[..end]
}
