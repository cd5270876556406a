//! Results on disk, each in a file that is named by what the result depends on.
//!
//! A file appears only when it is whole, so the folder is also the journal of a batch: whatever is in it is done. A result
//! that cannot be read is as good as none.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use foresee_support::output;

use crate::digest::Digest;
use crate::perform::{Answer, decode, encode};

const ENDING: &str = "result";

/// A folder with results.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: PathBuf,
}

impl Cache {
    /// Makes the folder if it is not there.
    pub fn open(folder: &Path) -> io::Result<Cache> {
        fs::create_dir_all(folder)?;
        Ok(Cache { folder: folder.to_owned() })
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Folders with a few hundred files each stay quick on every file system.
    fn path(&self, key: Digest) -> PathBuf {
        let name = key.to_string();
        self.folder.join(&name[..2]).join(format!("{name}.{ENDING}"))
    }

    /// Whether there is a result.
    pub fn has(&self, key: Digest) -> bool {
        self.path(key).is_file()
    }

    /// A result, if there is one that can be used. One that cannot is removed.
    pub fn get(&self, key: Digest) -> Option<Answer> {
        let path = self.path(key);
        let bytes = fs::read(&path).ok()?;
        match decode(key, &bytes) {
            Ok(Ok(answer)) => Some(answer),
            Ok(Err(_)) | Err(_) => {
                let _ = fs::remove_file(&path);
                None
            }
        }
    }

    /// Stores a result.
    pub fn put(&self, key: Digest, answer: Answer) -> io::Result<()> {
        let path = self.path(key);
        fs::create_dir_all(output::folder(&path))?;
        let bytes = encode(key, &Ok(answer)).map_err(io::Error::other)?;
        output::write(&path, &bytes)
    }

    /// Removes the oldest results beyond `most` bytes, but none of these.
    pub fn trim(&self, most: u64, keep: &HashSet<Digest>) -> io::Result<()> {
        let mut files: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
        for folder in fs::read_dir(&self.folder)? {
            let folder = folder?.path();
            if !folder.is_dir() {
                continue;
            }
            for entry in fs::read_dir(&folder)? {
                let path = entry?.path();
                // A file may vanish meanwhile: another batch trims, too.
                let Ok(about) = fs::metadata(&path) else { continue };
                if path.extension().is_some_and(|ending| ending == ENDING) {
                    let changed = about.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                    files.push((changed, about.len(), path));
                }
            }
        }
        let is_kept = |path: &Path| {
            let stem = path.file_stem().and_then(|stem| stem.to_str());
            stem.and_then(|stem| stem.parse().ok()).is_some_and(|key| keep.contains(&key))
        };
        let mut total: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
        files.sort();
        for (_, bytes, path) in files {
            if total <= most {
                break;
            }
            if !is_kept(&path) && fs::remove_file(&path).is_ok() {
                total -= bytes;
            }
        }
        Ok(())
    }
}
