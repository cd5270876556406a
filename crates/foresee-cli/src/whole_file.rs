//! Small files that are read as a whole: whatever the path leads to, a device or an endless pipe, no more than so much of it.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use anyhow::{Context, anyhow, ensure};

const MIB: u64 = 1 << 20;

/// What a file is supposed to be.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    /// As in "this is not a specification".
    name: &'static str,
    /// The maximum size, in MiB.
    most: u64,
    /// How each of them begins, after blanks.
    start: &'static str,
}

const fn kind(name: &'static str, most: u64, start: &'static str) -> Kind {
    Kind { name, most, start }
}

pub(crate) const SPECIFICATION: Kind = kind("a specification", 16, "");
pub(crate) const SUPPRESSIONS: Kind = kind("a list of suppressions", 16, "");
pub(crate) const BASELINE: Kind = kind("a baseline", 64, "");
pub(crate) const SETTINGS: Kind = kind("a file of settings", 16, "");
pub(crate) const MANIFEST: Kind = kind("a manifest", 64, "");
pub(crate) const REPORT: Kind = kind("a report", 512, "{");
pub(crate) const SCHEDULE: Kind = kind("a schedule", 1024, "foresee-schedule");

/// How much is looked at before the rest is read, in bytes.
const HEAD: u64 = 64 << 10;

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

fn text(input: impl Read, name: &str, kind: Kind) -> anyhow::Result<String> {
    let Kind { name: what, most, start } = kind;
    let mut input = input.take(most * MIB + 1);
    let mut bytes = Vec::new();
    let read = input.by_ref().take(HEAD).read_to_end(&mut bytes);
    read.with_context(|| format!("cannot read {name}"))?;
    let not_text = |at: usize| anyhow!("{name}: byte {at} is not text: this is not {what}");
    let zero = bytes.iter().position(|&byte| byte == 0);
    let bad = std::str::from_utf8(&bytes).err();
    // A character may be cut off at the end of what was looked at.
    let bad = bad.filter(|bad| bad.error_len().is_some()).map(|bad| bad.valid_up_to());
    if let Some(at) = zero.into_iter().chain(bad).min() {
        return Err(not_text(at));
    }
    if !bytes.trim_ascii_start().starts_with(start.as_bytes()) {
        // The rest does not matter; whoever wanted it says what is wrong with the beginning.
        return Ok(String::from_utf8_lossy(&bytes).into_owned());
    }
    let read = input.read_to_end(&mut bytes);
    read.with_context(|| format!("cannot read {name}"))?;
    ensure!(bytes.len() as u64 <= most * MIB, "{name}: more than {most} MiB is not {what}");
    String::from_utf8(bytes).map_err(|error| not_text(error.utf8_error().valid_up_to()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_read_than_there_can_be() {
        let kind = kind("a list", 1, "");
        let long = text(io::repeat(b'x'), "endless", kind).unwrap_err().to_string();
        assert_eq!(long, "endless: more than 1 MiB is not a list");
        assert_eq!(text(&b"just right"[..], "list", kind).unwrap(), "just right");
        let bytes = text(&b"ab\xff"[..], "list", kind).unwrap_err().to_string();
        assert_eq!(bytes, "list: byte 2 is not text: this is not a list");
        let late = [b"x".repeat(HEAD as usize + 7), vec![0xff]].concat();
        let bytes = text(&late[..], "list", kind).unwrap_err().to_string();
        assert_eq!(bytes, "list: byte 65543 is not text: this is not a list");
        let wide = "ä".repeat(HEAD as usize);
        assert_eq!(
            text(format!("x{wide}").as_bytes(), "list", kind).unwrap().len(),
            wide.len() + 1
        );
    }

    /// What cannot be what it should be is not collected.
    #[test]
    fn a_beginning_is_enough_to_refuse_the_rest() {
        let most = kind("a report", 512, "{");
        let mut zeros = io::repeat(0).take(1 << 30);
        let bytes = text(&mut zeros, "zeros", most).unwrap_err().to_string();
        assert_eq!(bytes, "zeros: byte 0 is not text: this is not a report");
        let mut long = io::repeat(b'y').take(1 << 30);
        assert_eq!(text(&mut long, "long", most).unwrap().len() as u64, HEAD);
        assert_eq!((zeros.limit(), long.limit()), ((1 << 30) - HEAD, (1 << 30) - HEAD));
        assert_eq!(text(&b" \n{}"[..], "short", most).unwrap(), " \n{}");
    }
}
