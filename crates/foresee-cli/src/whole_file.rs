//! Small files that are read as a whole: whatever the path leads to, a device or an endless pipe, no more than so much of it.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use anyhow::{Context, ensure};

const MIB: u64 = 1 << 20;

/// What a file is supposed to be.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    /// As in "this is not a specification".
    name: &'static str,
    /// The maximum size, in MiB.
    most: u64,
}

pub(crate) const SPECIFICATION: Kind = Kind { name: "a specification", most: 16 };
pub(crate) const SUPPRESSIONS: Kind = Kind { name: "a list of suppressions", most: 16 };
pub(crate) const BASELINE: Kind = Kind { name: "a baseline", most: 64 };
pub(crate) const SETTINGS: Kind = Kind { name: "a file of settings", most: 16 };
pub(crate) const MANIFEST: Kind = Kind { name: "a manifest", most: 64 };
pub(crate) const REPORT: Kind = Kind { name: "a report", most: 512 };
pub(crate) const SCHEDULE: Kind = Kind { name: "a schedule", most: 1024 };

/// The name of an input in messages; `-` is standard input.
pub(crate) fn name(path: &Path) -> String {
    match path == Path::new("-") {
        true => "standard input".to_owned(),
        false => path.display().to_string(),
    }
}

/// The text of a file.
pub(crate) fn read(path: &Path, kind: Kind) -> anyhow::Result<String> {
    let name = name(path);
    let file = File::open(path).with_context(|| format!("cannot open {name}"))?;
    text(file, &name, kind)
}

/// The text of a file, or of standard input if it is `-`.
pub(crate) fn read_or_stdin(path: &Path, kind: Kind) -> anyhow::Result<String> {
    match path == Path::new("-") {
        true => text(io::stdin().lock(), &name(path), kind),
        false => read(path, kind),
    }
}

fn text(input: impl Read, name: &str, Kind { name: what, most }: Kind) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    let read = input.take(most * MIB + 1).read_to_end(&mut bytes);
    read.with_context(|| format!("cannot read {name}"))?;
    ensure!(bytes.len() as u64 <= most * MIB, "{name}: more than {most} MiB is not {what}");
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        anyhow::anyhow!("{name}: byte {at} is not UTF-8: this is not {what}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_read_than_there_can_be() {
        let kind = Kind { name: "a list", most: 1 };
        let long = text(io::repeat(b'x'), "endless", kind).unwrap_err().to_string();
        assert_eq!(long, "endless: more than 1 MiB is not a list");
        assert_eq!(text(&b"just right"[..], "list", kind).unwrap(), "just right");
        let bytes = text(&b"ab\xff"[..], "list", kind).unwrap_err().to_string();
        assert_eq!(bytes, "list: byte 2 is not UTF-8: this is not a list");
    }
}
