//! Names for contents.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::Path;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The BLAKE3 hash of some bytes, by which they are known.
///
/// ```
/// use foresee_batch::Digest;
///
/// let digest = Digest::of(b"T1|w(x)|\n");
/// assert_eq!(digest.to_string().parse::<Digest>()?, digest);
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of these bytes.
    pub fn of(bytes: &[u8]) -> Digest {
        Digest(*blake3::hash(bytes).as_bytes())
    }

    /// The digest and the size of a file.
    pub fn of_file(path: &Path) -> io::Result<(Digest, u64)> {
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(File::open(path)?)?;
        Ok((Digest(*hasher.finalize().as_bytes()), hasher.count()))
    }
}

impl fmt::Display for Digest {
    /// Sixty-four hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&blake3::Hash::from_bytes(self.0).to_hex())
    }
}

impl FromStr for Digest {
    type Err = String;

    fn from_str(text: &str) -> Result<Digest, String> {
        let is_plain = text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        let hash = blake3::Hash::from_hex(text).ok().filter(|_| is_plain);
        let hash = hash.ok_or_else(|| "a digest has 64 hexadecimal digits".to_owned())?;
        Ok(Digest(*hash.as_bytes()))
    }
}

impl TryFrom<String> for Digest {
    type Error = String;

    fn try_from(text: String) -> Result<Digest, String> {
        text.parse()
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> String {
        digest.to_string()
    }
}
