//! The names behind addresses: variables with their fields and types, functions, files and lines,
//! from the symbol tables and debugging information (DWARF 4 and 5) of a process's ELF files.
//!
//! ```text
//! address ──▶ Symbols::object ──▶ `ctl.valve.open`, a bool of one byte
//! code    ──▶ Symbols::place  ──▶ `land` in landing.c:12, with what was inlined
//! name    ──▶ Symbols::find   ──▶ address, size and type, or the nearest names
//! ```

mod demangle;
mod dwarf;
mod find;
mod flow;
mod globals;
mod heap;
mod image;
mod locals;
mod names;
mod objects;
mod scalar;
mod types;

use std::cell::{OnceCell, RefCell};
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;

use image::Image;

pub use find::{NameError, Unmatched, Variable};
pub use globals::Coverage;
pub use heap::{Access, Content, Relation};
pub use names::Defined;
pub use objects::{Leaf, Part, Tags};
pub use scalar::{Kind, Scalar};

/// An ELF file and where a process had loaded it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// The file.
    pub path: PathBuf,
    /// What to subtract from an address of the process to get the file's own.
    pub bias: u64,
    /// The addresses it took up.
    pub range: Range<u64>,
}

/// Why a file provides no symbols.
#[derive(Debug, thiserror::Error)]
pub enum SymbolError {
    /// It cannot be read.
    #[error("cannot read {path}: {source}", path = path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is too large.
    #[error("{path} is larger than 4 GiB", path = path.display())]
    TooLarge {
        /// Which file.
        path: PathBuf,
    },
    /// It is not a program or library.
    #[error("{path} is not an ELF file: {why}", path = path.display())]
    NotElf {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

/// One function that an instruction belongs to: the one it was written in, or one that it was
/// inlined into.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// The function's name, without parameters.
    pub function: Option<String>,
    /// The source file, relative to where the compiler ran.
    pub file: Option<String>,
    /// The line in it, from one.
    pub line: Option<u32>,
}

/// Where an instruction comes from: innermost frame first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place(pub Vec<Frame>);

impl Place {
    /// File and line alone: `landing.c:12`.
    pub fn line(&self) -> Option<String> {
        let frame = self.0.first()?;
        Some(match frame.line {
            Some(line) => format!("{}:{line}", frame.file.as_ref()?),
            None => frame.file.clone()?,
        })
    }
}

impl fmt::Display for Place {
    /// `list.h:9(push)<queue.c:20(enqueue)` for what was written in `push` and inlined; nothing if
    /// nothing is known. Without white space it needs no quotes in the text formats.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, frame) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("<")?;
            }
            match (&frame.file, frame.line) {
                (Some(file), Some(line)) => write!(f, "{file}:{line}")?,
                (Some(file), None) => f.write_str(file)?,
                (None, _) => f.write_str("?")?,
            }
            if let Some(function) = &frame.function {
                write!(f, "({function})")?;
            }
        }
        Ok(())
    }
}

/// The symbols of a process.
#[derive(Default)]
pub struct Symbols {
    modules: Vec<Loaded>,
    index: RefCell<objects::Index>,
}

struct Loaded {
    module: Module,
    /// Opened when it is first asked: most of a process's libraries never are.
    image: OnceCell<Result<Image, SymbolError>>,
}

impl Loaded {
    fn image(&self) -> Option<&Image> {
        self.image.get_or_init(|| Image::open(&self.module.path)).as_ref().ok()
    }
}

impl Symbols {
    /// Adds a module, in the order in which they were loaded: the first that defines a name
    /// defines it for all.
    pub fn add(&mut self, module: Module) {
        if !self.modules.iter().any(|m| m.module == module) {
            self.modules.push(Loaded { module, image: OnceCell::new() });
        }
    }

    /// All modules so far.
    pub fn modules(&self) -> impl Iterator<Item = &Module> {
        self.modules.iter().map(|m| &m.module)
    }

    /// Why a module has no names; none if it has, or if it has not been asked.
    pub fn error(&self, module: &Module) -> Option<&SymbolError> {
        let loaded = self.modules.iter().find(|m| m.module == *module)?;
        loaded.image.get()?.as_ref().err()
    }

    /// How much of a module was built for capture; none if its debugging information, or the lack
    /// of it, does not show it.
    pub fn coverage(&self, module: &Module) -> Option<Coverage> {
        let image = self.modules.iter().find(|m| m.module == *module)?.image()?;
        (image.coverage.units > 0).then_some(image.coverage)
    }

    /// What was said of a module when its hooks were completed.
    pub fn notes(&self, module: &Module) -> Option<&crate::assembler::Notes> {
        Some(&self.modules.iter().find(|m| m.module == *module)?.image()?.notes)
    }

    /// Where an instruction comes from. For a return address ask for the byte before it.
    pub fn place(&self, code: u64) -> Place {
        let found = self.at(code).and_then(|m| Some((m, m.image()?)));
        Place(
            found
                .map_or_else(Vec::new, |(m, image)| image.frames(code.wrapping_sub(m.module.bias))),
        )
    }

    /// Where functions of a name begin and how long they are; namespaces may be left out.
    pub fn functions(&self, name: &str) -> Vec<(u64, u64)> {
        let images = self.modules.iter().filter_map(|m| Some((m.module.bias, m.image()?)));
        images
            .flat_map(|(bias, image)| {
                let found = image.functions_named(name);
                found.map(move |(address, size)| (address.wrapping_add(bias), size))
            })
            .collect()
    }

    /// The functions whose names are wanted, and their sizes.
    pub fn functions_like(&self, is_wanted: &dyn Fn(&str) -> bool) -> Vec<(u64, u64)> {
        let images = self.modules.iter().filter_map(|m| Some((m.module.bias, m.image()?)));
        let all = images.flat_map(|(bias, image)| {
            let found = image.functions_like(is_wanted).into_iter();
            found.map(move |(address, size)| (address.wrapping_add(bias), size))
        });
        all.collect()
    }

    /// What a variable holds before the program begins.
    pub fn initial(&self, address: u64, size: u64) -> Option<u64> {
        let loaded = self.at(address)?;
        loaded.image()?.initial(address.wrapping_sub(loaded.module.bias), size)
    }

    fn at(&self, address: u64) -> Option<&Loaded> {
        self.modules.iter().find(|m| m.module.range.contains(&address))
    }
}
