//! Opens a trace: detects its compression and format.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::Path;

use foresee_trace::{ErrorKind, EventSource, Position, ReadError};

use crate::parse_error::shown;
use crate::text::{Head, survey};
use crate::{FORMATS, Format, format_names};

/// How much of a file is examined to detect its format.
const HEAD: usize = 64 << 10;
/// Up to this size, the beginning is examined whenever bytes arrive.
const FIRST_LINES: usize = 4 << 10;

/// A trace that is ready to read.
pub struct Opened<'r> {
    /// The detected or requested format.
    pub format: &'static dyn Format,
    /// The events.
    pub source: Box<dyn EventSource + 'r>,
}

/// Opens the trace in a file, or standard input if the path is `-`. Detects the format unless it is
/// given.
pub fn open(
    path: &Path,
    format: Option<&'static dyn Format>,
) -> Result<Opened<'static>, ReadError> {
    if path == Path::new("-") {
        return open_reader(Box::new(io::stdin().lock()), format);
    }
    let no_file = |error: io::Error| {
        let message = format!("cannot open {}: {error}", path.display());
        ReadError::new(ErrorKind::Io, Position::Unknown, message)
    };
    let file = File::open(path).map_err(no_file)?;
    if file.metadata().is_ok_and(|m| m.is_dir()) {
        return Err(no_file(io::ErrorKind::IsADirectory.into()));
    }
    open_reader(Box::new(file), format)
}

/// Opens a trace from anything that can be read; see [`open`].
pub fn open_reader<'r>(
    input: Box<dyn Read + 'r>,
    format: Option<&'static dyn Format>,
) -> Result<Opened<'r>, ReadError> {
    let (head, input) = peek(input, |head| head.len() >= 4)?;
    if head.is_empty() {
        return Err(empty());
    }
    let input: Box<dyn Read + 'r> = match head[..] {
        [0x1f, 0x8b, ..] => {
            Box::new(Checked { name: "gz", inner: flate2::read::MultiGzDecoder::new(input) })
        }
        [0x28, 0xb5, 0x2f, 0xfd, ..] => {
            Box::new(Checked { name: "zst", inner: zstd::stream::read::Decoder::new(input)? })
        }
        _ => input,
    };
    let (head, input) = peek(input, |head| format.is_some() || is_enough(head))?;
    if head.is_empty() {
        return Err(empty());
    }
    let format = format.or_else(|| find(&head)).ok_or_else(|| unknown(&head))?;
    Ok(Opened { format, source: format.read(input)? })
}

/// The format that accepts the beginning of a file.
fn find(head: &[u8]) -> Option<&'static dyn Format> {
    FORMATS.iter().find(|format| format.sniff(head)).copied()
}

/// Whether the beginning suffices, so that a trace that is still being written can be followed from
/// its first lines on.
fn is_enough(head: &[u8]) -> bool {
    match survey(head) {
        Head::Line(_) | Head::Declared(_) => head.ends_with(b"\n") && find(head).is_some(),
        // More lines may follow the comments.
        Head::CommentsOnly => false,
        Head::Nothing => find(head).is_some(),
    }
}

/// The first bytes of a reader, until they suffice, and a reader that still returns them.
fn peek<'r>(
    mut input: Box<dyn Read + 'r>,
    enough: impl Fn(&[u8]) -> bool,
) -> Result<(Vec<u8>, Box<dyn Read + 'r>), ReadError> {
    let (mut head, mut have, mut looked_at) = (vec![0; HEAD], 0, 0);
    while have < HEAD {
        match input.read(&mut head[have..]) {
            Ok(0) => break,
            Ok(n) => have += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
        // After the first lines, only when the size has doubled: single bytes would make this slow.
        if have < FIRST_LINES || have >= 2 * looked_at {
            looked_at = have;
            if enough(&head[..have]) {
                break;
            }
        }
    }
    head.truncate(have);
    let again = Cursor::new(head.clone());
    Ok((head, Box::new(again.chain(input))))
}

fn empty() -> ReadError {
    ReadError::new(ErrorKind::Format, Position::Unknown, "the file is empty")
        .with_help("even a trace without events has a header or a comment")
}

fn unknown(head: &[u8]) -> ReadError {
    let message = format!(
        "this is not a trace in a known format ({}); it begins with the {}",
        format_names(),
        first_bytes(head)
    );
    ReadError::new(ErrorKind::Format, Position::Unknown, message)
        .with_help("if you know the format, specify it: the error then names the line")
}

/// The beginning of a file for people: its first line, or bytes if it is not text.
fn first_bytes(head: &[u8]) -> String {
    let start = &head[..head.len().min(256)];
    let text = match std::str::from_utf8(start) {
        Ok(text) => Some(text),
        // A character that is cut off at the end does not make it binary.
        Err(error) if error.error_len().is_none() && error.valid_up_to() > 0 => {
            std::str::from_utf8(&start[..error.valid_up_to()]).ok()
        }
        Err(_) => None,
    };
    match text {
        Some(text) if !text.contains('\0') => {
            format!("text {}", shown(text.trim_ascii_start().lines().next().unwrap_or_default()))
        }
        _ => {
            let bytes: Vec<_> = start.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
            format!("bytes {}", bytes.join(" "))
        }
    }
}

/// A decompressor that mentions itself in its errors.
struct Checked<R> {
    name: &'static str,
    inner: R,
}

impl<R: Read> Read for Checked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.inner.read(buffer).map_err(|error| match error.kind() {
            io::ErrorKind::Interrupted => error,
            io::ErrorKind::UnexpectedEof => {
                let message = format!("the {} compressed data is cut off", self.name);
                io::Error::new(io::ErrorKind::UnexpectedEof, message)
            }
            kind => {
                let message = format!("the {} compressed data is damaged ({error})", self.name);
                io::Error::new(kind, message)
            }
        })
    }
}
