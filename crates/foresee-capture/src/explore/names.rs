//! Names of memory and code that are the same in every run.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use foresee_explore::program::{Object, Place, RunError, Spot};
use foresee_rt::exploring::{Head, beyond};

use crate::log::Log;
use crate::naming::symbols_of;
use crate::program::{Built, Program};
use crate::summary::Summary;
use crate::symbols::Symbols;

/// Where the runtime puts stacks and heaps: see `foresee-rt/src/runtime/explore/arena.rs`.
const ARENAS: std::ops::Range<u64> = 0x6000_0000_0000..0x7000_0000_0000;
const ARENA: u64 = 1 << 30;
const HEAP: u64 = 1 << 28;
const LIBRARY_HEAP: u64 = 3 << 28;

/// The objects that memory consists of.
const PROGRAM: u128 = 1;
const OTHER: u128 = 2;
const STACKS: u128 = 1 << 32;
const HEAPS: u128 = 2 << 32;
const LIBRARY_HEAPS: u128 = 3 << 32;

/// Removes the logs of a run.
pub(super) fn clear(logs: &Path) {
    for file in std::fs::read_dir(logs).into_iter().flatten().flatten() {
        let _ = std::fs::remove_file(file.path());
    }
}

/// The names of a program.
pub(super) struct Names {
    /// Where the program begins.
    program: u64,
    symbols: OnceCell<Symbols>,
    /// Libraries, by where they begin.
    known: BTreeMap<u64, String>,
    /// Which part of the program is not captured, once a run has shown it.
    pub(super) unseen: Option<String>,
}

impl Names {
    /// The names of the program that a command runs.
    pub(super) fn of(command: &[OsString]) -> Result<Names, RunError> {
        let Some(program) = command.first() else {
            return Err(RunError("there is no program to run".to_owned()));
        };
        let name = program.to_string_lossy();
        let found = Program::find(program)
            .ok_or_else(|| RunError(format!("there is no program {name}")))?;
        let why = match found.built {
            Built::ForCapture => {
                return Ok(Names {
                    program: 0,
                    symbols: OnceCell::new(),
                    known: BTreeMap::new(),
                    unseen: None,
                });
            }
            Built::Plain => "was not built for capture",
            Built::Static => "is linked statically, so that it cannot be controlled",
            Built::Sanitizer | Built::TwoRuntimes => "has the runtime of a sanitizer",
            Built::Starter => "is a script or something else that starts programs",
        };
        Err(RunError(format!(
            "{name} {why}: build it with `foresee cc` or `foresee c++`, and name it directly"
        )))
    }

    /// Learns where the program is, and the names of its code from the log of a run.
    pub(super) fn learn(&mut self, program: u64, logs: &Path, trusted: &[String]) {
        self.program = program;
        let tails = crate::log::find(logs).unwrap_or_default();
        if self.symbols.get().is_none()
            && let Some(log) = tails.first().and_then(|tail| Log::open(tail).ok())
        {
            let symbols = symbols_of(&log);
            self.unseen = Summary::new(&log, &symbols, trusted).partial();
            let _ = self.symbols.set(symbols);
            for module in &log.modules {
                let name = module.path.file_name().unwrap_or_default().to_string_lossy();
                self.known.insert(module.base, name.into_owned());
            }
        }
    }

    /// Notes what a run did that is not explored.
    pub(super) fn note_beyond(&mut self, head: &Head, is_late: bool, has_vanished: bool) {
        let reasons = [
            (
                head.beyond & beyond::PROCESS != 0 || has_vanished,
                "it starts other processes or programs, which are not explored",
            ),
            (
                head.beyond & beyond::CHANNEL != 0,
                "its threads send each other something through the kernel, such as a file or a pipe, whose contents are not modelled",
            ),
            (
                head.beyond & beyond::MAPPING != 0,
                "it maps memory that belongs to a file or to several processes, and that may have several addresses",
            ),
            (
                is_late && head.in_kernel != 0,
                "a thread waits in the kernel for something that is not modelled, and the others cannot go on meanwhile",
            ),
        ];
        for (_, reason) in reasons.into_iter().filter(|(is_so, _)| *is_so) {
            let known = self.unseen.get_or_insert_default();
            if !known.contains(reason) {
                if !known.is_empty() {
                    known.push_str("; ");
                }
                known.push_str(reason);
            }
        }
    }

    /// The byte at an address.
    pub(super) fn spot(&self, address: u64) -> Spot {
        if ARENAS.contains(&address) {
            let (slot, offset) = ((address - ARENAS.start) / ARENA, address % ARENA);
            let (object, offset) = match offset {
                _ if offset < HEAP => (STACKS, offset),
                _ if offset < LIBRARY_HEAP => (HEAPS, offset - HEAP),
                _ => (LIBRARY_HEAPS, offset - LIBRARY_HEAP),
            };
            return Spot { object: Object(object + u128::from(slot)), offset };
        }
        // Programs are not larger than that.
        const LARGEST: u64 = 1 << 32;
        match address.checked_sub(self.program).filter(|&offset| offset < LARGEST) {
            Some(offset) => Spot { object: Object(PROGRAM), offset },
            None => Spot { object: Object(OTHER), offset: address },
        }
    }

    /// The place that a return address belongs to.
    pub(super) fn place_of(&self, pc: u64) -> Place {
        Place(pc)
    }

    pub(super) fn object(&self, Object(object): Object) -> String {
        let slot = object & 0xffff_ffff;
        let thread = if slot == 0 { "0".to_owned() } else { format!("0.{slot}") };
        match object & !0xffff_ffff {
            STACKS => format!("the stack of {thread}"),
            HEAPS => format!("the heap of {thread}"),
            LIBRARY_HEAPS => format!("libc's memory of {thread}"),
            _ if object == PROGRAM => "the program".to_owned(),
            _ => "memory".to_owned(),
        }
    }

    pub(super) fn place(&self, Place(pc): Place) -> String {
        if pc == 0 {
            return String::new();
        }
        let place = self.symbols.get().map(|symbols| symbols.place(pc - 1));
        match place.filter(|place| !place.0.is_empty()) {
            Some(place) => place.to_string(),
            None => match self.known.range(..=pc).next_back() {
                Some((base, name)) => format!("{name}+{:x}", pc - base),
                None => format!("{pc:x}"),
            },
        }
    }
}
