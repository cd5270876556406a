//! Lines of a text, from any reader, a chunk at a time.
//!
//! A chunk ends at a line end and is validated as UTF-8 as a whole, which is much cheaper than line
//! by line. Later errors (invalid bytes, a failing read) are held back until the good lines before
//! them have been returned, so that the first error in the file is reported first.

use std::io::{ErrorKind as IoErrorKind, Read};

use foresee_trace::{ErrorKind, Position, ReadError};
use memchr::{memchr, memrchr};

/// The maximum length of a line in text formats, in bytes.
pub const MAX_LINE: usize = 1 << 20;

/// The number of bytes requested from the operating system at once; at most [`MAX_LINE`].
const READ: usize = 128 << 10;

pub(crate) struct LineReader<'r> {
    input: Box<dyn Read + 'r>,
    /// Complete lines, each with its line end.
    chunk: String,
    /// Where the next line starts in `chunk`.
    next: usize,
    /// The beginning of a line whose end has not been read.
    tail: Vec<u8>,
    /// The number of the latest line, counted from one.
    number: u64,
    at_start: bool,
    at_end: bool,
    /// The error to report once `chunk` is consumed.
    pending: Option<ReadError>,
}

impl<'r> LineReader<'r> {
    pub(crate) fn new(input: Box<dyn Read + 'r>) -> Self {
        LineReader {
            input,
            chunk: String::new(),
            next: 0,
            tail: Vec::new(),
            number: 0,
            at_start: true,
            at_end: false,
            pending: None,
        }
    }

    /// The number of the latest line, counted from one.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The next line without its end.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Result<Option<&str>, ReadError> {
        while self.next == self.chunk.len() {
            if !self.refill()? {
                return Ok(None);
            }
        }
        let rest = &self.chunk.as_bytes()[self.next..];
        let length = find_near(b'\n', rest).unwrap_or(rest.len());
        let returned = length > 0 && rest[length - 1] == b'\r';
        let start = self.next;
        self.next = (start + length + 1).min(self.chunk.len());
        self.number += 1;
        if length > MAX_LINE {
            return Err(self.too_long());
        }
        Ok(Some(&self.chunk[start..start + length - usize::from(returned)]))
    }

    #[cold]
    fn too_long(&self) -> ReadError {
        let message = format!("the line is longer than {MAX_LINE} bytes");
        ReadError::new(ErrorKind::Limit, Position::Line(self.number), message).with_help(
            "is this really a text trace? If the format was detected wrongly, specify it",
        )
    }

    /// Reads the next chunk; `false` at the end.
    #[cold]
    fn refill(&mut self) -> Result<bool, ReadError> {
        if let Some(error) = self.pending.take() {
            return Err(error);
        }
        if self.at_end {
            return Ok(false);
        }
        let mut bytes = std::mem::take(&mut self.chunk).into_bytes();
        bytes.clear();
        bytes.append(&mut self.tail);
        self.next = 0;
        loop {
            let old = bytes.len();
            bytes.resize(old + READ, 0);
            let read = self.input.read(&mut bytes[old..]);
            bytes.truncate(old + *read.as_ref().unwrap_or(&0));
            match read {
                Err(error) if error.kind() == IoErrorKind::Interrupted => continue,
                Err(error) => {
                    bytes.truncate(memrchr(b'\n', &bytes).map_or(0, |end| end + 1));
                    self.stop_with(&bytes, ErrorKind::Io, format!("cannot read: {error}"));
                    break;
                }
                Ok(0) => {
                    self.at_end = true;
                    if bytes.last().is_some_and(|&last| last != b'\n') {
                        bytes.push(b'\n');
                    }
                    break;
                }
                Ok(_) => {}
            }
            if let Some(end) = memrchr(b'\n', &bytes[old..]) {
                self.tail.extend_from_slice(&bytes[old + end + 1..]);
                bytes.truncate(old + end + 1);
                break;
            }
            if bytes.len() > MAX_LINE {
                self.number += 1;
                return Err(self.too_long());
            }
        }
        self.chunk = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => self.up_to_bad_bytes(error),
        };
        if std::mem::take(&mut self.at_start) && self.chunk.starts_with('\u{feff}') {
            self.next = '\u{feff}'.len_utf8();
        }
        Ok(true)
    }

    /// The lines before the first one with invalid UTF-8.
    fn up_to_bad_bytes(&mut self, error: std::string::FromUtf8Error) -> String {
        let bad = error.utf8_error().valid_up_to();
        let mut bytes = error.into_bytes();
        let (byte, start) = (bytes[bad], memrchr(b'\n', &bytes[..bad]).map_or(0, |end| end + 1));
        bytes.truncate(start);
        let message = format!("byte {} of the line, {byte:#04x}, is not UTF-8", bad - start + 1);
        self.stop_with(&bytes, ErrorKind::Syntax, message);
        // Everything before the first invalid byte is valid.
        String::from_utf8(bytes).unwrap_or_default()
    }

    /// Stores an error in the line after the lines in `bytes`.
    fn stop_with(&mut self, bytes: &[u8], kind: ErrorKind, message: String) {
        let line = self.number + memchr::memchr_iter(b'\n', bytes).count() as u64 + 1;
        self.pending = Some(ReadError::new(kind, Position::Line(line), message));
    }
}

/// The first eight bytes as a little-endian number; missing ones are zero.
#[inline(always)]
pub(crate) fn word(bytes: &[u8]) -> u64 {
    let length = bytes.len();
    if let Some(all) = bytes.first_chunk() {
        return u64::from_le_bytes(*all);
    }
    // Two overlapping loads are cheaper than a loop with an unpredictable end.
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        let (first, last) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
        return u64::from(first) | u64::from(last) << (8 * (length - 4));
    }
    match *bytes {
        [a, b, c] => u64::from_le_bytes([a, b, c, 0, 0, 0, 0, 0]),
        [a, b] => u64::from_le_bytes([a, b, 0, 0, 0, 0, 0, 0]),
        [a] => u64::from(a),
        _ => 0,
    }
}

/// Finds a nonzero byte that is expected to be near, where a call of `memchr` costs more than the
/// search.
#[inline(always)]
pub(crate) fn find_near(byte: u8, bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const NEAR: usize = 32;
    let mut at = 0;
    while at < bytes.len() {
        if at == NEAR {
            return memchr(byte, &bytes[at..]).map(|i| at + i);
        }
        // A byte of `differs` is zero where the byte is found; only then is its high bit set below,
        // at least in the first such byte.
        let differs = word(&bytes[at..]) ^ (ONES * u64::from(byte));
        let found = differs.wrapping_sub(ONES) & !differs & (ONES << 7);
        if found != 0 {
            return Some(at + found.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Yields a text in pieces of a given size.
    struct Pieces<'a>(&'a [u8], usize);

    impl Read for Pieces<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let n = self.1.min(self.0.len()).min(buffer.len());
            buffer[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    fn lines(bytes: &[u8], piece: usize) -> (Vec<String>, Option<ReadError>) {
        let mut reader = LineReader::new(Box::new(Pieces(bytes, piece)));
        let mut lines = Vec::new();
        loop {
            match reader.next() {
                Ok(Some(line)) => lines.push(line.to_owned()),
                Ok(None) => return (lines, None),
                Err(error) => return (lines, Some(error)),
            }
        }
    }

    #[test]
    fn lines_do_not_depend_on_how_they_arrive() {
        for piece in [1, 2, 3, 7, 1000] {
            let (got, error) = lines("\u{feff}a\r\n\nbéc\n  d".as_bytes(), piece);
            assert_eq!(got, ["a", "", "béc", "  d"]);
            assert!(error.is_none());
        }
        assert_eq!(lines(b"", 1).0, [""; 0]);
    }

    #[test]
    fn near_and_far_are_found() {
        for length in 0..70 {
            for at in 0..=length {
                let mut bytes = vec![b'{'; length];
                if at < length {
                    bytes[at..].fill(b'|');
                }
                assert_eq!(find_near(b'|', &bytes), bytes.iter().position(|&b| b == b'|'));
                assert_eq!(find_near(b'x', &bytes), None);
            }
        }
    }

    #[test]
    fn good_lines_come_before_the_bad_one() {
        for piece in [1, 5, 1000] {
            let (got, error) = lines(b"one\ntwo\nth\xffee\nfour\n", piece);
            assert_eq!(got, ["one", "two"]);
            let error = error.unwrap();
            assert_eq!(error.to_string(), "line 3: byte 3 of the line, 0xff, is not UTF-8");
        }
        // A character cut off by the end of the file.
        let error = lines("one\né".as_bytes().split_last().unwrap().1, 3).1.unwrap();
        assert_eq!(error.at(), Position::Line(2));
    }

    #[test]
    fn an_endless_line_is_given_up() {
        let mut reader = LineReader::new(Box::new(std::io::repeat(b'a')));
        let error = reader.next().unwrap_err();
        assert_eq!((error.kind(), error.at()), (ErrorKind::Limit, Position::Line(1)));
        let long = [b"x\n".to_vec(), vec![b'a'; MAX_LINE + 1], b"\ny\n".to_vec()].concat();
        let (got, error) = lines(&long, 1 << 16);
        assert_eq!(got, ["x"]);
        assert_eq!(error.unwrap().at(), Position::Line(2));
        let longest = [vec![b'a'; MAX_LINE], b"\ny\n".to_vec()].concat();
        assert_eq!(lines(&longest, 1 << 16).0.len(), 2);
    }
}
