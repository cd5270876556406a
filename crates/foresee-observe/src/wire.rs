//! The wire protocol; `docs/formats/wire.md` describes every byte.
//!
//! A sender sends a hello, is welcomed or refused, and sends frames of the native format, each
//! preceded by its number. No length field is trusted before it has been compared with a limit.

use std::hash::BuildHasher;
use std::io::{self, Read};

use foresee_formats::native::{FrameHeader, HEADER, Kind, read_full};
use foresee_trace::FileOrder;

/// Like the magic number of traces, with another letter.
const MAGIC: [u8; 8] = *b"\x89FSO\r\n\x1a\n";
/// The latest version of the protocol. The versions differ in the hello only: from the second on,
/// it may hold a secret.
pub const VERSION: u16 = 2;
/// The length of the fixed part of a hello.
const HELLO: usize = 40;
/// The longest token, in bytes.
pub const MAX_TOKEN: usize = 256;
/// The longest secret, in bytes.
pub const MAX_SECRET: usize = 64;
/// The longest name of a program, in bytes.
pub const MAX_NAME: usize = 256;
/// The first bytes of a reply.
const REPLY_MAGIC: [u8; 4] = *b"FSOR";
/// The length of the fixed part of a reply.
const REPLY: usize = 20;
/// The longest text of a reply, in bytes.
const MAX_TEXT: usize = 4096;
/// Memory for a frame is allocated in steps of this size as its bytes arrive.
const STEP: usize = 1 << 20;

/// The identifier of a program; the sender chooses it and keeps it when it reconnects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProgramId(pub [u8; 16]);

impl ProgramId {
    /// A new identifier.
    pub fn random() -> ProgramId {
        ProgramId(fastrand::u128(..).to_le_bytes())
    }

    /// Parses the text of a [`ProgramId`].
    pub fn parse(text: &str) -> Option<ProgramId> {
        let is_hex = text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit());
        let number = is_hex.then(|| u128::from_str_radix(text, 16).ok())??;
        Some(ProgramId(number.to_be_bytes()))
    }
}

impl std::fmt::Display for ProgramId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

/// A new secret, by which the connections of one program are recognised.
pub fn new_secret() -> Vec<u8> {
    // The keys of the hash function come from the operating system's source of random numbers.
    let word = |n: u64| std::hash::RandomState::new().hash_one(n).to_le_bytes();
    [word(0), word(1)].concat()
}

/// The first message of a sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The identifier of the program.
    pub program: ProgramId,
    /// Its name for people.
    pub name: String,
    /// What the order of events means.
    pub order: FileOrder,
    /// The number of connections over which the program sends.
    pub channels: u16,
    /// The shared secret, if one is required.
    pub token: Vec<u8>,
    /// What only the program knows: with it, a program is resumed only by those who send the
    /// same. Empty in hellos of version 1.
    pub secret: Vec<u8>,
    /// Whether the frames are pieces of an agent's log instead of names and events.
    pub is_log: bool,
    /// Whether the trace may be sent several times, each time with more of it; see [`EDITION`].
    pub has_editions: bool,
}

/// Flags of a hello.
const IS_LOG: u8 = 1;
const HAS_EDITIONS: u8 = 2;

/// An error in what a sender sends.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The connection failed, or was closed by a time limit.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The connection ended in the middle of a message.
    #[error("the connection ended in the middle of {0}")]
    Cut(&'static str),
    /// The peer uses another protocol.
    #[error("the peer is not a foresee sender: its first bytes are not a hello")]
    OtherProtocol,
    /// An unsupported version.
    #[error(
        "the sender uses protocol version {0}, but only versions up to {VERSION} are supported"
    )]
    Version(u16),
    /// An invalid hello.
    #[error("invalid hello: {0}")]
    Hello(&'static str),
    /// An invalid frame.
    #[error("{0}")]
    Frame(String),
}

impl Hello {
    /// The encoded hello.
    pub fn encode(&self) -> io::Result<Vec<u8>> {
        let too_long = |what: &str| io::Error::new(io::ErrorKind::InvalidInput, what.to_owned());
        if self.token.len() > MAX_TOKEN {
            return Err(too_long("the token is longer than 256 bytes"));
        }
        if self.name.len() > MAX_NAME {
            return Err(too_long("the name of the program is longer than 256 bytes"));
        }
        if self.secret.len() > MAX_SECRET {
            return Err(too_long("the secret is longer than 64 bytes"));
        }
        // Without a secret, older observers understand it, too.
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        let flags = flag(self.is_log, IS_LOG) | flag(self.has_editions, HAS_EDITIONS);
        let version = if self.secret.is_empty() && flags == 0 { 1 } else { VERSION };
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&version.to_le_bytes());
        bytes.extend_from_slice(&[self.order.code(), flags]);
        bytes.extend_from_slice(&self.channels.to_le_bytes());
        bytes.extend_from_slice(&(self.token.len() as u16).to_le_bytes());
        bytes.extend_from_slice(&(self.name.len() as u16).to_le_bytes());
        bytes.extend_from_slice(&(self.secret.len() as u16).to_le_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&self.program.0);
        bytes.extend_from_slice(&self.token);
        bytes.extend_from_slice(self.name.as_bytes());
        bytes.extend_from_slice(&self.secret);
        let crc = crc32fast::hash(&bytes);
        bytes[20..24].copy_from_slice(&crc.to_le_bytes());
        Ok(bytes)
    }

    /// Reads a hello; `None` if the connection ends before its first byte.
    pub fn read(input: &mut impl Read) -> Result<Option<Hello>, WireError> {
        let mut bytes = vec![0; HELLO];
        // The magic number first: another kind of client may send no more and wait for an answer.
        let have = read_full(input, &mut bytes[..MAGIC.len()])?;
        if have == 0 {
            return Ok(None);
        }
        if bytes[..have] != MAGIC[..have] {
            return Err(WireError::OtherProtocol);
        }
        if have < MAGIC.len() || read_full(input, &mut bytes[8..10])? < 2 {
            return Err(WireError::Cut("its hello"));
        }
        let u16_at = |bytes: &[u8], at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let version = u16_at(&bytes, 8);
        if !(1..=VERSION).contains(&version) {
            return Err(WireError::Version(version));
        }
        if read_full(input, &mut bytes[10..HELLO])? < HELLO - 10 {
            return Err(WireError::Cut("its hello"));
        }
        let (token, name) = (u16_at(&bytes, 14) as usize, u16_at(&bytes, 16) as usize);
        if token > MAX_TOKEN {
            return Err(WireError::Hello("its token is longer than 256 bytes"));
        }
        if name > MAX_NAME {
            return Err(WireError::Hello("its name is longer than 256 bytes"));
        }
        let secret = u16_at(&bytes, 18) as usize;
        if secret > MAX_SECRET {
            return Err(WireError::Hello("its secret is longer than 64 bytes"));
        }
        bytes.resize(HELLO + token + name + secret, 0);
        if read_full(input, &mut bytes[HELLO..])? < token + name + secret {
            return Err(WireError::Cut("its hello"));
        }
        let crc = [bytes[20], bytes[21], bytes[22], bytes[23]];
        bytes[20..24].fill(0);
        if crc32fast::hash(&bytes) != u32::from_le_bytes(crc) {
            return Err(WireError::Hello("its checksum is wrong"));
        }
        let flags = bytes[11];
        let is_log = flags & IS_LOG != 0;
        let has_editions = flags & HAS_EDITIONS != 0;
        // Of a log there are no editions: the observer makes one trace of it.
        if flags > HAS_EDITIONS || version == 1 && (secret != 0 || flags != 0) {
            return Err(WireError::Hello("it has unknown flags"));
        }
        let order = FileOrder::ALL.into_iter().find(|order| order.code() == bytes[10]);
        let order = order.ok_or(WireError::Hello("it has an unknown order of events"))?;
        let channels = u16_at(&bytes, 12);
        if channels == 0 {
            return Err(WireError::Hello("it announces no connections"));
        }
        let mut program = [0; 16];
        program.copy_from_slice(&bytes[24..HELLO]);
        let secret = bytes.split_off(HELLO + token + name);
        let name = String::from_utf8(bytes.split_off(HELLO + token))
            .map_err(|_| WireError::Hello("its name is not UTF-8"))?;
        let token = bytes.split_off(HELLO);
        let program = ProgramId(program);
        Ok(Some(Hello { program, name, order, channels, token, secret, is_log, has_editions }))
    }
}

/// Whether two tokens or secrets are equal; the time does not reveal where they differ.
pub fn is_same_token(a: &[u8], b: &[u8]) -> bool {
    // Both padded to one length, so that not even the lengths are revealed.
    let padded = |token: &[u8]| {
        let mut bytes = [0; MAX_TOKEN + 2];
        let length = token.len().min(MAX_TOKEN);
        bytes[..length].copy_from_slice(&token[..length]);
        bytes[MAX_TOKEN..].copy_from_slice(&(token.len() as u16).to_le_bytes());
        bytes
    };
    let (a, b) = (padded(a), padded(b));
    let differs = a.iter().zip(&b).fold(0, |all, (a, b)| std::hint::black_box(all | (a ^ b)));
    std::hint::black_box(differs) == 0
}

/// The kind of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The sender may send frames.
    Welcome,
    /// Everything that this connection sent is stored or analysed.
    Farewell,
    /// The observer closes this connection, and says why.
    Refused,
    /// Like `Refused`, but the sender may come back: the observer is stopping, or full.
    Later,
}

impl Status {
    const ALL: [Status; 4] = [Status::Welcome, Status::Farewell, Status::Refused, Status::Later];
}

/// A reply of the observer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Its kind.
    pub status: Status,
    /// The first frame that the observer has not stored: a sender that reconnects continues there.
    pub next: u64,
    /// A text for people.
    pub text: String,
}

impl Reply {
    /// The encoded reply; a long text is cut off.
    pub fn encode(&self) -> Vec<u8> {
        let mut length = self.text.len().min(MAX_TEXT);
        while !self.text.is_char_boundary(length) {
            length -= 1;
        }
        let mut bytes = REPLY_MAGIC.to_vec();
        bytes.extend_from_slice(&[self.status as u8, 0, 0, 0]);
        bytes.extend_from_slice(&self.next.to_le_bytes());
        bytes.extend_from_slice(&(length as u32).to_le_bytes());
        bytes.extend_from_slice(&self.text.as_bytes()[..length]);
        bytes
    }

    /// Reads a reply; `None` if the connection ends first.
    pub fn read(input: &mut impl Read) -> io::Result<Option<Reply>> {
        let bad = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
        let mut bytes = [0; REPLY];
        match read_full(input, &mut bytes)? {
            0 => return Ok(None),
            REPLY if bytes[..4] == REPLY_MAGIC => {}
            _ => return Err(bad("the peer is not a foresee observer")),
        }
        let status = Status::ALL.get(usize::from(bytes[4]));
        let status = *status.ok_or_else(|| bad("the observer's reply is invalid"))?;
        let mut next = [0; 8];
        next.copy_from_slice(&bytes[8..16]);
        let length = u32::from_le_bytes([bytes[16], bytes[17], bytes[18], bytes[19]]) as usize;
        if length > MAX_TEXT {
            return Err(bad("the observer's reply is too long"));
        }
        let mut text = vec![0; length];
        if read_full(input, &mut text)? < length {
            return Err(bad("the observer's reply is cut off"));
        }
        let text = String::from_utf8_lossy(&text).into_owned();
        Ok(Some(Reply { status, next: u64::from_le_bytes(next), text }))
    }
}

/// The kind of frames with pieces of an agent's log.
pub const LOG: Kind = Kind::Optional(140);

/// The kind of the frame that ends an edition of a trace: the program goes on, and what follows is its trace from the first
/// event on, as it is known by then.
pub const EDITION: Kind = Kind::Optional(141);

/// The kind of a frame that says nothing but that the sender is there.
pub const SIGN: Kind = Kind::Optional(142);

/// A frame with its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbered {
    /// Its position among all frames of the program, starting at 0.
    pub number: u64,
    /// Its decoded header.
    pub header: FrameHeader,
    /// Header and payload, as in a file.
    pub bytes: Vec<u8>,
}

impl Numbered {
    /// Reads the next frame, with a payload of at most `longest` bytes; `None` if the connection
    /// ends here. Its checksums have been verified, its kind may be sent, and its names, if any,
    /// have their position.
    pub fn read(input: &mut impl Read, longest: u32) -> Result<Option<Numbered>, WireError> {
        Numbered::read_with(input, longest, &mut |_| Ok(()))
    }

    /// The same; `room` is told how many bytes of memory the frame is about to take in all.
    pub(crate) fn read_with(
        input: &mut impl Read,
        longest: u32,
        room: &mut dyn FnMut(usize) -> io::Result<()>,
    ) -> Result<Option<Numbered>, WireError> {
        let mut head = [0; 8 + HEADER];
        match read_full(input, &mut head)? {
            0 => return Ok(None),
            24 => {}
            _ => return Err(WireError::Cut("a frame")),
        }
        let mut number = [0; 8];
        number.copy_from_slice(&head[..8]);
        let number = u64::from_le_bytes(number);
        let mut bytes = [0; HEADER];
        bytes.copy_from_slice(&head[8..]);
        let wrong = |what: String| WireError::Frame(format!("frame {number}: {what}"));
        let header = FrameHeader::decode(&bytes, 8).map_err(|e| {
            wrong(format!("{}{}", e, e.help().map_or(String::new(), |help| format!(" ({help})"))))
        })?;
        if header.length > longest {
            let length = header.length;
            return Err(wrong(format!("{length} bytes exceed the limit of {longest}")));
        }
        let is_sound = match header.kind {
            Kind::Names | Kind::Events => header.length >= 8,
            Kind::Remarks => header.length >= 2,
            Kind::End => header.length == 8,
            Kind::Optional(_) => true,
            Kind::Index => return Err(wrong("an index has no meaning over a connection".into())),
        };
        if !is_sound {
            return Err(wrong(format!("{} bytes are too few for its kind", header.length)));
        }
        let end = HEADER + header.length as usize;
        let mut frame = bytes.to_vec();
        while frame.len() < end {
            let start = frame.len();
            room(end.min(start + STEP))?;
            frame.reserve_exact(end.min(start + STEP) - start);
            frame.resize(end.min(start + STEP), 0);
            let want = frame.len() - start;
            if read_full(input, &mut frame[start..])? < want {
                return Err(WireError::Cut("a frame"));
            }
        }
        header.check(&frame[HEADER..], 8).map_err(|e| wrong(e.to_string()))?;
        Ok(Some(Numbered { number, header, bytes: frame }))
    }

    /// The number of its events.
    pub fn events(&self) -> u64 {
        if self.header.kind == Kind::Events { u64::from(self.header.count) } else { 0 }
    }

    /// The number of threads including those that this frame names, if it names threads.
    pub fn threads(&self) -> Option<u64> {
        let payload = &self.bytes[HEADER..];
        if self.header.kind != Kind::Names || payload[0] != 0 {
            return None;
        }
        let first = u32::from_le_bytes([payload[4], payload[5], payload[6], payload[7]]);
        Some(u64::from(first) + u64::from(self.header.count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello() -> Hello {
        Hello {
            program: ProgramId([7; 16]),
            name: "landing".to_owned(),
            order: FileOrder::Filtered,
            channels: 3,
            token: b"secret".to_vec(),
            secret: b"own".to_vec(),
            is_log: true,
            has_editions: false,
        }
    }

    #[test]
    fn a_hello_comes_back_and_no_damaged_one_does() {
        let bytes = hello().encode().unwrap();
        assert_eq!(Hello::read(&mut bytes.as_slice()).unwrap(), Some(hello()));
        let other = Hello { is_log: false, has_editions: true, secret: Vec::new(), ..hello() };
        let with_editions = other.encode().unwrap();
        assert_eq!(Hello::read(&mut with_editions.as_slice()).unwrap(), Some(other));
        let older = Hello { secret: Vec::new(), is_log: false, ..hello() };
        let old = older.encode().unwrap();
        assert_eq!((bytes[8], old[8]), (2, 1));
        assert_eq!(Hello::read(&mut old.as_slice()).unwrap(), Some(older));
        assert!(Hello::read(&mut [].as_slice()).unwrap().is_none());
        for cut in 1..bytes.len() {
            assert!(Hello::read(&mut &bytes[..cut]).is_err(), "{cut}");
        }
        for i in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[i] ^= 0x20;
            assert!(Hello::read(&mut damaged.as_slice()).is_err(), "byte {i}");
        }
        let mut newer = bytes.clone();
        newer[8] = 9;
        let error = Hello::read(&mut newer.as_slice()).unwrap_err();
        assert!(matches!(error, WireError::Version(9)), "{error}");
        let error = Hello::read(&mut b"GET / HTTP/1.1\r\n".as_slice()).unwrap_err();
        assert!(matches!(error, WireError::OtherProtocol), "{error}");
    }

    #[test]
    fn replies_come_back() {
        for status in Status::ALL {
            let reply = Reply { status, next: 1 << 40, text: "é".repeat(10) };
            assert_eq!(Reply::read(&mut reply.encode().as_slice()).unwrap(), Some(reply));
        }
        let long = Reply { status: Status::Refused, next: 0, text: "é".repeat(5000) };
        let read = Reply::read(&mut long.encode().as_slice()).unwrap().unwrap();
        assert_eq!(read.text.len(), MAX_TEXT);
    }

    #[test]
    fn secrets_differ() {
        assert!(new_secret() != new_secret() && new_secret().len() == 16);
    }

    #[test]
    fn tokens_are_told_apart() {
        assert!(is_same_token(b"", b"") && is_same_token(b"abc", b"abc"));
        for other in [b"".as_slice(), b"ab", b"abd", b"abcd", b"abc\0"] {
            assert!(!is_same_token(b"abc", other), "{other:?}");
        }
    }

    #[test]
    fn a_long_frame_is_refused_before_it_is_read() {
        let header = FrameHeader { kind: Kind::Events, length: 1 << 20, count: 1, crc: 0 };
        let bytes = [&0u64.to_le_bytes()[..], &header.encode()].concat();
        let error = Numbered::read(&mut bytes.as_slice(), 1 << 16).unwrap_err();
        assert_eq!(error.to_string(), "frame 0: 1048576 bytes exceed the limit of 65536");
        let huge = FrameHeader { length: u32::MAX, ..header };
        let bytes = [&5u64.to_le_bytes()[..], &huge.encode()].concat();
        let error = Numbered::read(&mut bytes.as_slice(), u32::MAX).unwrap_err();
        assert!(error.to_string().starts_with("frame 5: byte 8: a frame of 4294967295"), "{error}");
    }

    /// A short version of the fuzz target: arbitrary bytes, and frames that are almost correct.
    #[test]
    fn no_bytes_do_harm() {
        let mut chance = fastrand::Rng::with_seed(1);
        let payload = [0; 40];
        let header = FrameHeader::of(Kind::Names, 3, &payload).unwrap();
        let good = [&7u64.to_le_bytes()[..], &header.encode(), &payload].concat();
        let hello = hello().encode().unwrap();
        for _ in 0..50_000 {
            let mut bytes = match chance.u8(..3) {
                0 => std::iter::repeat_with(|| chance.u8(..)).take(100).collect(),
                1 => good.repeat(2),
                _ => hello.clone(),
            };
            for _ in 0..chance.usize(..4) {
                let at = chance.usize(..bytes.len());
                bytes[at] = chance.u8(..);
            }
            bytes.truncate(chance.usize(..=bytes.len()));
            let _ = Hello::read(&mut bytes.as_slice());
            let _ = Reply::read(&mut bytes.as_slice());
            let mut rest = bytes.as_slice();
            while let Ok(Some(frame)) = Numbered::read(&mut rest, 1 << 16) {
                assert_eq!(frame.bytes.len(), HEADER + frame.header.length as usize);
                frame.threads();
            }
        }
    }

    #[test]
    fn ids_are_written_and_read() {
        let id = ProgramId::random();
        assert_eq!(ProgramId::parse(&id.to_string()), Some(id));
        assert_eq!(ProgramId::parse("+123"), None);
    }
}
