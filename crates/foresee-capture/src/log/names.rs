//! The interface for names.

use std::fmt::Write as _;

use super::Module;
use crate::objects::Seen;
use crate::symbols::Scalar;

/// A place in the program's code: a return address, so look up the byte before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pc {
    /// The log's module that contains it.
    pub module: Option<usize>,
    /// The address in memory.
    pub address: u64,
}

/// A live block of allocated memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its address.
    pub start: u64,
    /// Its size in bytes.
    pub size: u64,
    /// When it was allocated: the number of records before.
    pub since: u32,
    /// The location that allocated it.
    pub site: Pc,
    /// The number of blocks allocated before at locations with that name; see [`Names::site`].
    pub number: u64,
    /// Whether the program can rely on zeros in it.
    pub is_zeroed: bool,
}

/// A scalar in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its address.
    pub start: u64,
    /// Its size and how to read it.
    pub kind: Scalar,
    /// Whether accesses of its parts are accesses of it, because its value is needed.
    pub is_whole: bool,
}

/// Names captured things. Addresses are those of the run.
pub trait Names {
    /// The variable, field or element that contains the byte at `address`, if its type is known; `block` is the allocated
    /// memory that it lies in.
    fn scalar(&mut self, address: u64, block: Option<&Block>) -> Option<Piece>;

    /// Adds the name of the variable of `size` bytes at `start`; `block` is the allocated memory that it lies in.
    fn variable(&mut self, start: u64, size: u64, block: Option<&Block>, out: &mut String);

    /// A number for a location that allocates memory. Locations with the same name have the same
    /// number, so that blocks counted by it never share a name.
    fn site(&mut self, site: Pc) -> u64 {
        site.address
    }

    /// Whether accesses and calls are wanted.
    fn is_watching(&self) -> bool {
        false
    }

    /// A thread has returned from some functions, which are not known if none, and has possibly called another.
    fn called(&mut self, thread: u32, returned: Option<u64>, is_call: bool) {
        let _ = (thread, returned, is_call);
    }

    /// An access.
    fn sees(&mut self, seen: &Seen<'_>) {
        let _ = seen;
    }

    /// Adds the name of a block of allocated memory, which is a prefix of the names of its
    /// variables.
    fn block(&mut self, block: &Block, out: &mut String);

    /// Adds the name of a lock, condition variable, semaphore, barrier or the like.
    fn object(&mut self, address: u64, block: Option<&Block>, out: &mut String) {
        self.variable(address, 0, block, out);
    }

    /// Adds file and line, if they are known.
    fn location(&mut self, pc: Pc, out: &mut String);

    /// Whether a place belongs to the runtime, which is part of the program.
    fn is_runtime(&mut self, pc: Pc) -> bool {
        let _ = pc;
        false
    }

    /// Adds the name of a function.
    fn function(&mut self, pc: Pc, out: &mut String);

    /// Adds the name of a thread: its number, starting at 0, or its name in the program.
    fn thread(&mut self, number: u32, called: Option<&str>, out: &mut String) {
        // Writing to a string cannot fail.
        let _ = match (called, number) {
            (Some(name), _) => write!(out, "{name}"),
            (None, 0) => write!(out, "main"),
            (None, n) => write!(out, "T{n}"),
        };
    }
}

/// Names without symbols: module and offset.
#[derive(Clone, Debug)]
pub struct Plain {
    modules: Vec<Module>,
}

impl Plain {
    /// Names for a log with these modules.
    pub fn new(modules: &[Module]) -> Plain {
        Plain { modules: modules.to_vec() }
    }

    fn place(&self, address: u64, out: &mut String) {
        let module = self.modules.iter().find(|m| (m.base..m.end).contains(&address));
        let _ = match module {
            Some(m) => {
                let name = m.path.file_name().map_or("?".into(), |n| n.to_string_lossy());
                write!(out, "{name}+{:#x}", address - m.base)
            }
            None => write!(out, "{address:#x}"),
        };
    }
}

impl Names for Plain {
    fn scalar(&mut self, _address: u64, _block: Option<&Block>) -> Option<Piece> {
        None
    }

    fn variable(&mut self, start: u64, _size: u64, block: Option<&Block>, out: &mut String) {
        match block {
            Some(block) => {
                self.block(block, out);
                let _ = write!(out, "+{}", start - block.start);
            }
            None => self.place(start, out),
        }
    }

    fn block(&mut self, block: &Block, out: &mut String) {
        let _ = write!(out, "heap(");
        self.place(block.site.address, out);
        let _ = write!(out, "#{})", block.number);
    }

    fn location(&mut self, pc: Pc, out: &mut String) {
        self.place(pc.address, out);
    }

    fn function(&mut self, pc: Pc, out: &mut String) {
        self.place(pc.address, out);
    }
}
