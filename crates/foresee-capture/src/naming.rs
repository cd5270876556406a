//! Names for a log's addresses, from the symbols of the process.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::sync::Arc;

use crate::log::{Block, Log, Names, Pc, Piece};
use crate::objects::{Collected, Life, Objects, Seen};
use crate::symbols::{Content, Module, Scalar, Symbols, Tags, Variable};

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
    tags: Tags<'s>,
    /// The objects of the run, once they are known.
    objects: Arc<Objects>,
    /// Variables of functions and the like that are objects, by address, and how many there are of each place.
    named: HashMap<u64, String>,
    counts: HashMap<String, u64>,
    /// What accesses show of objects, while that is asked for.
    collected: Option<Collected>,
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
    /// the first of which is used; `object_types` are the types of objects that it is about, and `objects` those that
    /// the run has.
    pub(crate) fn new(
        symbols: &'s Symbols,
        spec_vars: &[(String, Variable)],
        object_types: &'s [String],
        objects: Arc<Objects>,
    ) -> Naming<'s> {
        let mut names = BTreeMap::new();
        for (name, variable) in spec_vars {
            let entry = (name.clone(), variable.scalar);
            names.entry(variable.address).or_insert(entry);
        }
        Naming {
            symbols,
            spec_vars: names,
            sites: HashMap::new(),
            site_names: HashMap::new(),
            tags: Tags::new(object_types),
            objects,
            named: HashMap::new(),
            counts: HashMap::new(),
            collected: None,
        }
    }

    /// Collects what accesses show of objects.
    pub(crate) fn watching(mut self) -> Naming<'s> {
        self.collected = Some(Collected::default());
        self
    }

    /// What accesses have shown of objects.
    pub(crate) fn take_collected(&mut self) -> Collected {
        self.collected.take().unwrap_or_default()
    }

    /// The life of a block.
    fn life_of(&mut self, block: Option<&Block>) -> Life {
        block.map(|block| (self.site_of(block.site.address).number, block.number))
    }

    /// What a block consists of. What accesses show counts more than what the line says that allocates it.
    fn content_of(&mut self, block: &Block) -> Option<Content> {
        let life = self.life_of(Some(block));
        let declared = self.site_of(block.site.address).content;
        match self.objects.content(life) {
            Some(shown) => Some(shown),
            None => {
                declared.filter(|&content| self.objects.allows(self.symbols, life, block, content))
            }
        }
    }

    /// The object that an address belongs to, other than as an element of its block: where it begins and its name, and
    /// what it is.
    fn object_at(&mut self, address: u64, block: Option<&Block>) -> Option<(u64, Content, String)> {
        let life = self.life_of(block);
        let (symbols, tags) = (self.symbols, self.tags);
        let object = self.objects.at(symbols, life, address)?;
        if !symbols.has_tagged(object.content, tags) {
            return None;
        }
        let start = object.start;
        let mut name = String::new();
        if let Some(block) = block {
            self.block(block, &mut name);
            let _ = write!(name, "+{}", start - block.start);
        } else if let Some(part) = symbols.object(start, 1, tags) {
            name = part.name;
        } else if let Some(known) = self.named.get(&start) {
            name.push_str(known);
        } else {
            // By the place that showed it.
            let place = symbols.place(object.pc.wrapping_sub(1));
            let number = self.counts.entry(place.to_string()).or_insert(0);
            *number += 1;
            let _ = write!(name, "memory({place}#{number})");
            self.named.insert(start, name.clone());
        }
        Some((start, object.content, name))
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
        let (symbols, content) = (self.symbols, self.content_of(block));
        let offset = address.wrapping_sub(block.start);
        let path = content
            .and_then(|content| symbols.within(content, block.size, (offset, size), self.tags));
        // Writing to a string cannot fail.
        let _ = match path {
            Some(path) => write!(out, "{path}"),
            None => write!(out, "+{offset}"),
        };
    }

    /// The name of `size` bytes in an object that is not an element of its block.
    fn in_object(&mut self, address: u64, size: u64, block: Option<&Block>) -> Option<String> {
        let (start, content, name) = self.object_at(address, block)?;
        let path = self.symbols.within_object(content, (address - start, size), self.tags)?;
        Some(name + &path)
    }

    /// The scalar at an address, if a specification is about the object that it belongs to.
    fn scalar_in_object(&mut self, address: u64, block: Option<&Block>) -> Option<Piece> {
        let (symbols, tags) = (self.symbols, self.tags);
        let within = |content, start| {
            let (at, kind) = symbols.scalar_within(content, address.wrapping_sub(start))?;
            Some(Piece { start: start.wrapping_add(at), kind, is_whole: true })
        };
        if let Some(block) = block {
            let content = self.content_of(block).filter(|&it| symbols.has_tagged(it, tags));
            // What accesses show lies in storage of it.
            if let Some(content) = content
                && let Some(piece) = within(content, block.start)
                && symbols.type_name(content, block.size).is_some()
                && piece.kind.size > 1
            {
                return Some(piece);
            }
        }
        let (start, content, _) = self.object_at(address, block)?;
        within(content, start)
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
        if !self.tags.is_empty()
            && let Some(piece) = self.scalar_in_object(address, block)
        {
            return Some(piece);
        }
        if block.is_some() {
            return None;
        }
        let leaf = self.symbols.leaf(address)?;
        Some(Piece { start: leaf.start, kind: leaf.scalar, is_whole: false })
    }

    fn variable(&mut self, start: u64, size: u64, block: Option<&Block>, out: &mut String) {
        if let Some((name, scalar)) = self.spec_vars.get(&start)
            && scalar.size == size
        {
            out.push_str(name);
        } else if !self.tags.is_empty()
            && let Some(name) = self.in_object(start, size, block)
        {
            out.push_str(&name);
        } else if let Some(part) = self.symbols.object(start, size, self.tags) {
            out.push_str(&part.name);
        } else if let Some(block) = block {
            self.in_block(start, size, block, out);
        } else {
            self.unknown(start, out);
        }
    }

    fn is_watching(&self) -> bool {
        self.collected.is_some()
    }

    fn called(&mut self, thread: u32, returned: Option<u64>, is_call: bool) {
        let Some(collected) = &mut self.collected else { return };
        match returned {
            Some(returned) => collected.called(thread, returned, is_call),
            None => collected.is_lost(thread),
        }
    }

    fn sees(&mut self, seen: &Seen<'_>) {
        let life = self.life_of(seen.block);
        let declared = seen.block.and_then(|it| self.site_of(it.site.address).content);
        if let Some(collected) = &mut self.collected {
            collected.see(self.symbols, life, declared.is_some(), seen);
        }
    }

    fn site(&mut self, site: Pc) -> u64 {
        self.site_of(site.address).number
    }

    fn block(&mut self, block: &Block, out: &mut String) {
        let (number, symbols) = (block.number + 1, self.symbols);
        let of = self.content_of(block).and_then(|it| symbols.type_name(it, block.size));
        let site = self.site_of(block.site.address);
        let _ = write!(out, "{}({})#{number}", of.as_deref().unwrap_or("heap"), site.name);
    }

    fn object(&mut self, address: u64, block: Option<&Block>, out: &mut String) {
        let within = match self.tags.is_empty() {
            true => None,
            false => self.in_object(address, 4, block),
        };
        if let Some(name) = within {
            let path = name.rfind(['}', ')']).unwrap_or(0);
            let end = name[path..].find("._").map_or(name.len(), |at| path + at);
            out.push_str(&name[..end]);
        } else if let Some(part) = self.symbols.object(address, 4, self.tags) {
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
