//! Trace formats: five representations of the same events, in one list.
//!
//! [`open`] detects compression and format from the content; [`create`] writes a file that appears
//! only once it is complete. To add a format, write a file with a type that implements [`Format`],
//! add it to [`FORMATS`], and put a sample into `testdata/formats/<name>/`: the tests walk the
//! list.
//!
//! ```
//! use foresee_trace::Trace;
//!
//! let text = "T1|w(landing)=1|ctl.c:14\nT2|r(landing)=1|ctl.c:31\n";
//! let mut opened = foresee_formats::open_reader(Box::new(text.as_bytes()), None)?;
//! assert_eq!(opened.format.name(), "std");
//! assert_eq!(Trace::load(&mut opened.source)?.events.len(), 2);
//! # Ok::<(), foresee_trace::ReadError>(())
//! ```

mod cache;
mod create;
mod csv;
mod jsonl;
mod lines;
pub mod native;
mod open;
mod operation;
mod parse_error;
mod rapid;
pub mod recorded;
mod roadrunner;
mod shape;
mod std_text;
mod text;
mod trace_file;
mod value;

use std::io::{Read, Write};

use foresee_support::nearest::nearest_within;
use foresee_trace::{EventSink, EventSource, ReadError};

pub use create::{CopyError, Output, copy, create, create_with};
pub use csv::Csv;
pub use jsonl::Jsonl;
pub use lines::MAX_LINE;
pub use native::Native;
pub use open::{Opened, open, open_reader};
pub use rapid::ForRapid;
pub use roadrunner::RoadRunner;
pub use shape::MAX_VALUES;
pub use std_text::Std;
pub use trace_file::TraceFile;

/// A trace format.
pub trait Format: Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// One line for `--help`.
    fn about(&self) -> &'static str;

    /// Whether a file that begins like this (up to 64 KiB, decompressed) is of this format.
    fn sniff(&self, head: &[u8]) -> bool;

    /// Starts reading. Errors at the very beginning are returned at once, all others by the source.
    fn read<'r>(&self, input: Box<dyn Read + 'r>) -> Result<Box<dyn EventSource + 'r>, ReadError>;

    /// Starts writing. The sink is buffered; nothing is guaranteed to be written before `finish`.
    fn write<'w>(&self, output: Box<dyn Write + 'w>) -> Box<dyn EventSink + 'w>;
}

/// Every format, in the order in which detection tries them.
pub const FORMATS: &[&dyn Format] = &[&Native, &Std, &RoadRunner, &Csv, &Jsonl];

/// No format has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no trace format \"{name}\"{}; formats are {}", did_you_mean(.nearest), format_names())]
pub struct UnknownFormat {
    name: String,
    nearest: Option<&'static str>,
}

/// The format with this name.
pub fn by_name(name: &str) -> Result<&'static dyn Format, UnknownFormat> {
    if let Some(format) = FORMATS.iter().find(|f| f.name() == name) {
        return Ok(*format);
    }
    let names = || FORMATS.iter().map(|f| f.name());
    let lower = name.to_lowercase();
    let nearest = names().find(|known| *known == lower);
    let nearest = nearest.or_else(|| nearest_within(2, &lower, names()));
    Err(UnknownFormat { name: name.to_owned(), nearest })
}

fn did_you_mean(nearest: &Option<&'static str>) -> String {
    nearest.map_or_else(String::new, |n| format!(" (did you mean \"{n}\"?)"))
}

pub(crate) fn format_names() -> String {
    FORMATS.iter().map(|f| f.name()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_found_by_name() {
        for format in FORMATS {
            assert_eq!(by_name(format.name()).map(|f| f.name()), Ok(format.name()));
        }
        let near = by_name("Jsonn").map(|f| f.name()).unwrap_err().to_string();
        assert_eq!(
            near,
            "there is no trace format \"Jsonn\" (did you mean \"jsonl\"?); formats are native, \
             std, rr, csv, jsonl"
        );
        let far = by_name("perfetto").map(|f| f.name()).unwrap_err().to_string();
        assert!(far.starts_with("there is no trace format \"perfetto\"; formats are"), "{far}");
    }
}
