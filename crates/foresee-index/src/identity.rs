//! The trace from which an index was built, and whether it is unchanged.
//!
//! Length and times are compared first; in doubt, the checksum of the whole content decides. A file
//! that was written within [`DOUBT`] of the start of indexing may have been written again without a
//! change of its times, so the times prove nothing.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The coarsest resolution of file times.
const DOUBT: Duration = Duration::from_secs(2);

/// The metadata of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    /// Its length in bytes.
    pub length: u64,
    /// When its content last changed, in nanoseconds since 1970.
    pub modified: i64,
    /// When its content or its metadata last changed, or 0 if unknown.
    pub changed: i64,
    /// Its inode number, or 0 if it has none.
    pub inode: u64,
}

impl Stat {
    fn of(metadata: &Metadata) -> Stat {
        #[cfg(unix)]
        let (changed, inode) = {
            use std::os::unix::fs::MetadataExt;
            let nanos = metadata.ctime().saturating_mul(1_000_000_000);
            (nanos.saturating_add(metadata.ctime_nsec()), metadata.ino())
        };
        #[cfg(not(unix))]
        let (changed, inode) = (0, 0);
        let modified = metadata.modified().map_or(0, nanos);
        Stat { length: metadata.len(), modified, changed, inode }
    }
}

/// Nanoseconds since 1970.
fn nanos(time: SystemTime) -> i64 {
    let clamp = |d: Duration| i64::try_from(d.as_nanos()).unwrap_or(i64::MAX);
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => clamp(after),
        Err(before) => -clamp(before.duration()),
    }
}

/// A checksum of a whole file: a CRC and a sum of another kind, so that each detects changes that
/// the other misses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digest {
    /// CRC-32 as in zip files.
    pub crc: u32,
    /// The multiplicative sum of its 64-bit words, the last one padded with zeros.
    pub sum: u64,
}

/// Computes a [`Digest`].
#[derive(Debug, Default)]
struct Digester {
    crc: crc32fast::Hasher,
    sum: u64,
    /// Bytes that do not form a word yet.
    rest: Vec<u8>,
}

/// Odd and without a bit pattern (from the golden ratio).
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

impl Digester {
    fn update(&mut self, mut bytes: &[u8]) {
        self.crc.update(bytes);
        if !self.rest.is_empty() {
            let n = bytes.len().min(8 - self.rest.len());
            self.rest.extend_from_slice(&bytes[..n]);
            bytes = &bytes[n..];
            if self.rest.len() < 8 {
                return;
            }
            self.word(crate::page::word_at(&self.rest, 0));
            self.rest.clear();
        }
        let words = bytes.chunks_exact(8);
        self.rest.extend_from_slice(words.remainder());
        for word in words {
            self.word(crate::page::word_at(word, 0));
        }
    }

    #[inline]
    fn word(&mut self, word: u64) {
        self.sum = (self.sum.rotate_left(23) ^ word).wrapping_mul(FACTOR);
    }

    fn finish(mut self) -> Digest {
        if !self.rest.is_empty() {
            self.rest.resize(8, 0);
            self.word(crate::page::word_at(&self.rest, 0));
        }
        Digest { crc: self.crc.finalize(), sum: self.sum }
    }
}

/// The trace from which an index was built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The metadata of the file when indexing began.
    pub stat: Stat,
    /// The time when indexing began.
    pub begun: i64,
    /// Its content.
    pub digest: Digest,
}

impl Identity {
    /// Why the file differs from the one that was indexed, or `None` if it does not. Reads the file
    /// only if its length matches but its times leave a doubt.
    pub fn differs_from(&self, path: &Path) -> io::Result<Option<String>> {
        let mut file = File::open(path)?;
        let now = Stat::of(&file.metadata()?);
        if now.length != self.stat.length {
            let (now, then) = (now.length, self.stat.length);
            return Ok(Some(format!(
                "the trace has {now} bytes but had {then} when it was indexed"
            )));
        }
        let latest = self.stat.modified.max(self.stat.changed);
        let doubt = i64::try_from(DOUBT.as_nanos()).unwrap_or(i64::MAX);
        if now == self.stat && latest.saturating_add(doubt) < self.begun {
            return Ok(None);
        }
        let mut digester = Digester::default();
        let mut buffer = vec![0; 256 << 10];
        loop {
            match file.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => digester.update(&buffer[..n]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let same = digester.finish() == self.digest;
        Ok((!same).then(|| "the trace's content has changed since it was indexed".to_owned()))
    }
}

/// Reads a trace while it is indexed, and then returns its identity.
#[derive(Debug)]
pub struct IdentityReader {
    file: File,
    stat: Stat,
    begun: i64,
    digester: Digester,
}

impl IdentityReader {
    /// Starts reading.
    pub fn open(path: &Path) -> io::Result<IdentityReader> {
        let begun = nanos(SystemTime::now());
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "only a regular file can be indexed",
            ));
        }
        Ok(IdentityReader { stat: Stat::of(&metadata), file, begun, digester: Digester::default() })
    }

    /// Reads the rest of the file and returns its identity; fails if the file has changed
    /// meanwhile.
    pub fn identity(mut self) -> io::Result<Identity> {
        io::copy(&mut self, &mut io::sink())?;
        if Stat::of(&self.file.metadata()?) != self.stat {
            return Err(io::Error::other("the trace changed while it was indexed"));
        }
        Ok(Identity { stat: self.stat, begun: self.begun, digest: self.digester.finish() })
    }
}

impl Read for IdentityReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read(buffer)?;
        self.digester.update(&buffer[..n]);
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_does_not_depend_on_the_pieces() {
        let bytes: Vec<u8> = (0..1000u32).map(|i| (i * 7 % 251) as u8).collect();
        let digest = |pieces: usize| {
            let mut digester = Digester::default();
            bytes.chunks(pieces).for_each(|piece| digester.update(piece));
            digester.finish()
        };
        let whole = digest(1000);
        for pieces in [1, 3, 7, 8, 9, 64, 999] {
            assert_eq!(digest(pieces), whole);
        }
        let mut other = Digester::default();
        other.update(&bytes[..999]);
        assert_ne!(other.finish(), whole);
    }
}
