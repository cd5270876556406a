//! The outer layer: a file header, then frames with a length and a checksum.

use std::io::{self, Read};

pub(crate) use foresee_trace::varint::{push_varint, varint};
use foresee_trace::{ErrorKind, FileOrder, Position, ReadError, Remarks};

/// Like PNG's: a byte that is not text, the name, and line ends that reveal a transfer in text
/// mode.
pub(crate) const MAGIC: [u8; 8] = *b"\x89FSE\r\n\x1a\n";
/// The version of the format.
const VERSION: u16 = 1;
/// The length of the file header and of a frame header, in bytes.
pub const HEADER: usize = 16;

/// The longest payload of a frame, in bytes.
pub const MAX_PAYLOAD: u32 = 16 << 20;

/// Frames of this kind and above may be skipped by a reader that does not know them.
const OPTIONAL: u8 = 128;

/// The kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Texts and their numbers.
    Names,
    /// Records of events.
    Events,
    /// What is known of the trace as a whole.
    Remarks,
    /// Where each frame stands.
    Index,
    /// The positions of all frames.
    End,
    /// Unknown, but not needed.
    Optional(u8),
}

/// Frames of this kind give the number of events lost at their position; see
/// `docs/formats/native.md`.
pub const LOST: Kind = Kind::Optional(128);

impl Kind {
    fn from_code(code: u8) -> Option<Kind> {
        Some(match code {
            1 => Kind::Names,
            2 => Kind::Events,
            3 => Kind::Remarks,
            4 => Kind::Index,
            5 => Kind::End,
            OPTIONAL.. => Kind::Optional(code),
            _ => return None,
        })
    }

    pub(crate) fn code(self) -> u8 {
        match self {
            Kind::Names => 1,
            Kind::Events => 2,
            Kind::Remarks => 3,
            Kind::Index => 4,
            Kind::End => 5,
            Kind::Optional(code) => code,
        }
    }
}

/// The first sixteen bytes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// The kind of the frame.
    pub kind: Kind,
    /// The length of the payload in bytes, at most [`MAX_PAYLOAD`].
    pub length: u32,
    /// The number of events, names or entries.
    pub count: u32,
    /// The checksum of the payload.
    pub crc: u32,
}

impl FrameHeader {
    /// The header of a payload; a payload that is too long is rejected.
    pub fn of(kind: Kind, count: u32, payload: &[u8]) -> io::Result<FrameHeader> {
        match u32::try_from(payload.len()) {
            Ok(length) if length <= MAX_PAYLOAD => {
                Ok(FrameHeader { kind, length, count, crc: crc32fast::hash(payload) })
            }
            _ => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("a frame of {} bytes is longer than {MAX_PAYLOAD}", payload.len()),
            )),
        }
    }

    /// The encoded header, which precedes its payload.
    pub fn encode(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[0] = self.kind.code();
        bytes[4..8].copy_from_slice(&self.length.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.count.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.crc.to_le_bytes());
        let check = header_check(&bytes);
        bytes[2..4].copy_from_slice(&check.to_le_bytes());
        bytes
    }

    /// Decodes a header at byte `at`.
    pub fn decode(bytes: &[u8; HEADER], at: u64) -> Result<FrameHeader, ReadError> {
        let check = u16::from_le_bytes([bytes[2], bytes[3]]);
        let mut checked = *bytes;
        checked[2..4].fill(0);
        if check != header_check(&checked) || bytes[1] != 0 {
            return Err(damaged(at, "the frame header is damaged (its checksum is wrong)"));
        }
        let kind = Kind::from_code(bytes[0]).ok_or_else(|| {
            damaged(at, format!("unknown frame kind {}", bytes[0]))
                .with_help("the trace may have been written by a newer version")
        })?;
        let header = FrameHeader {
            kind,
            length: u32_at(bytes, 4),
            count: u32_at(bytes, 8),
            crc: u32_at(bytes, 12),
        };
        if header.length > MAX_PAYLOAD {
            let message =
                format!("a frame of {} bytes is longer than {MAX_PAYLOAD}", header.length);
            return Err(ReadError::new(ErrorKind::Limit, Position::Byte(at), message));
        }
        Ok(header)
    }

    /// Fails unless the checksum of `payload` is correct.
    pub fn check(&self, payload: &[u8], at: u64) -> Result<(), ReadError> {
        if crc32fast::hash(payload) == self.crc {
            return Ok(());
        }
        Err(damaged(at, "the frame is damaged (the checksum of its contents is wrong)"))
    }
}

/// Half of the checksum of a header whose own checksum field is zero.
fn header_check(bytes: &[u8; HEADER]) -> u16 {
    crc32fast::hash(bytes) as u16
}

#[cold]
pub(crate) fn damaged(at: u64, message: impl Into<String>) -> ReadError {
    ReadError::new(ErrorKind::Syntax, Position::Byte(at), message)
}

/// The file header of a trace with this order.
pub fn encode_file_header(order: FileOrder) -> [u8; HEADER] {
    let flags = u16::from(order.code());
    let mut bytes = [0; HEADER];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..10].copy_from_slice(&VERSION.to_le_bytes());
    bytes[10..12].copy_from_slice(&flags.to_le_bytes());
    let crc = crc32fast::hash(&bytes[..12]);
    bytes[12..].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// The order of events according to the file header.
pub fn decode_file_header(bytes: &[u8]) -> Result<FileOrder, ReadError> {
    let format = |message: String| ReadError::new(ErrorKind::Format, Position::Byte(0), message);
    let seen = &bytes[..bytes.len().min(MAGIC.len())];
    if *seen != MAGIC[..seen.len()] {
        return Err(match bytes.starts_with(&MAGIC[..4]) {
            true => format("the file was damaged by a transfer in text mode".into())
                .with_help("copy it again in binary mode"),
            false => format("this is not a native trace".into()),
        });
    }
    let Ok(bytes) = <[u8; HEADER]>::try_from(bytes) else {
        return Err(format(format!("the file header is cut off after {} bytes", bytes.len())));
    };
    let (version, flags) =
        (u16::from_le_bytes([bytes[8], bytes[9]]), u16::from_le_bytes([bytes[10], bytes[11]]));
    if crc32fast::hash(&bytes[..12]) != u32_at(&bytes, 12) {
        return Err(format("the file header is damaged (its checksum is wrong)".into()));
    }
    let order = FileOrder::ALL.into_iter().find(|order| u16::from(order.code()) == flags);
    let Some(order) = order.filter(|_| version == VERSION) else {
        let message = format!("the trace has version {version} and flags {flags:#x}");
        return Err(format(message).with_help(format!("this program supports version {VERSION}")));
    };
    Ok(order)
}

/// Reads until `buffer` is full or the input ends; returns the number of bytes read.
pub fn read_full(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut have = 0;
    while have < buffer.len() {
        match input.read(&mut buffer[have..]) {
            Ok(0) => break,
            Ok(n) => have += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(have)
}

/// The number at an offset that is known to be valid.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// The number at an offset that is known to be valid.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// The payloads of the frames for these remarks.
pub fn encode_remarks(remarks: &Remarks) -> Vec<Vec<u8>> {
    let order = remarks.order.code();
    let texts = [(1, &remarks.cut_short), (2, &remarks.partial)];
    let said = texts.iter().filter_map(|(kind, text)| Some((*kind, text.as_deref()?)));
    let mut payloads: Vec<Vec<u8>> =
        said.map(|(kind, text)| [&[order, kind], text.as_bytes()].concat()).collect();
    if payloads.is_empty() {
        payloads.push(vec![order, 0]);
    }
    payloads
}

/// Merges the remarks of a frame.
pub(crate) fn read_remarks(
    payload: &[u8],
    at: u64,
    remarks: &mut Remarks,
) -> Result<(), ReadError> {
    let (&[order @ 0..=2, kind @ 0..=2], text) =
        payload.split_first_chunk().ok_or_else(|| damaged(at, "a remarks frame is too short"))?
    else {
        return Err(damaged(at, "a remarks frame has unknown flags"));
    };
    let text = std::str::from_utf8(text).map_err(|_| damaged(at, "a remark is not UTF-8"))?;
    if order != 0 {
        remarks.order = FileOrder::ALL[usize::from(order)];
    }
    match kind {
        1 => remarks.cut_short = Some(text.to_owned()),
        2 => remarks.partial = Some(text.to_owned()),
        _ => {}
    }
    Ok(())
}
