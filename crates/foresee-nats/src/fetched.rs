//! Traces that a worker has fetched: files named by their digests, in a folder that all workers of a machine share.
//!
//! Whoever reads a file holds a lock on it, which ends with the process. Whoever needs room removes the files that nobody
//! reads, those first that nobody has asked for the longest. A file is fetched beside its place and appears there when it
//! is whole.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use foresee_batch::{Blob, Digest};
use tempfile::NamedTempFile;
use tokio::sync::Mutex;

use crate::server::NatsError;
use crate::store::Store;

/// How the names of files begin that are still being fetched.
const UNFINISHED: &str = ".fetching-";

/// How often a file is fetched again that others remove at once.
const TRIES: usize = 3;

/// A folder of fetched traces.
pub(crate) struct Fetched {
    folder: PathBuf,
    /// How many bytes it may have.
    most: u64,
    /// What this process has found to be whole.
    whole: Mutex<HashSet<Digest>>,
}

/// A file with a trace, which stays as long as this does.
pub(crate) struct Taken {
    pub(crate) path: PathBuf,
    lock: File,
}

impl Taken {
    /// Whether the file has been there all the time.
    pub(crate) fn is_there(&self) -> bool {
        is_at(&self.lock, &self.path)
    }
}

impl Fetched {
    /// Uses what earlier workers left in the folder.
    pub(crate) fn open(folder: &Path, most: u64) -> Result<Fetched, NatsError> {
        let cannot =
            |error| NatsError(format!("cannot use the folder {}: {error}", folder.display()));
        fs::create_dir_all(folder).map_err(cannot)?;
        for entry in fs::read_dir(folder).map_err(cannot)?.flatten() {
            if is_unfinished(&entry.path()) {
                remove_unused(&entry.path());
            }
        }
        // It is better to know now than with the first job.
        NamedTempFile::with_prefix_in(UNFINISHED, folder).map_err(cannot)?;
        Ok(Fetched { folder: folder.to_owned(), most, whole: Mutex::default() })
    }

    /// A file with this content, fetched if it is not here.
    pub(crate) async fn take(&self, store: &Store, blob: &Blob) -> Result<Taken, NatsError> {
        if blob.bytes > self.most {
            return Err(NatsError(format!(
                "{} has {} MiB, and this worker keeps at most {}: allow more with --cache-size",
                blob.name,
                blob.bytes >> 20,
                self.most >> 20
            )));
        }
        // Two jobs that want the same file fetch it once.
        let mut whole = self.whole.lock().await;
        for _ in 0..TRIES {
            if let Some(taken) = self.held(blob.digest, &mut whole) {
                return Ok(taken);
            }
            self.fetch(store, blob).await?;
        }
        Err(NatsError(format!("{} was removed again by others", blob.name)))
    }

    /// The file with this content, if it is here and whole.
    fn held(&self, digest: Digest, whole: &mut HashSet<Digest>) -> Option<Taken> {
        let path = self.folder.join(digest.to_string());
        let lock = File::open(&path).ok()?;
        // Where there are no locks, others may remove it while it is read, which is noticed afterwards.
        let _ = lock.lock_shared();
        // Someone may have removed it before it was locked.
        if !is_at(&lock, &path) {
            return None;
        }
        // Anyone may have changed it since.
        if !whole.contains(&digest) {
            match Digest::of_file(&path) {
                Ok((is, _)) if is == digest => drop(whole.insert(digest)),
                _ => {
                    let _ = fs::remove_file(&path);
                    return None;
                }
            }
        }
        let _ = lock.set_modified(SystemTime::now());
        Some(Taken { path, lock })
    }

    async fn fetch(&self, store: &Store, blob: &Blob) -> Result<(), NatsError> {
        let path = self.folder.join(blob.digest.to_string());
        let cannot = |error: io::Error| {
            NatsError(format!("cannot keep a trace in {}: {error}", self.folder.display()))
        };
        self.make_room(blob.bytes).map_err(cannot)?;
        let mut file = NamedTempFile::with_prefix_in(UNFINISHED, &self.folder).map_err(cannot)?;
        let _ = file.as_file().lock();
        store.fetch_to(&blob.digest.to_string(), blob.bytes, &mut file).await?;
        if Digest::of_file(file.path()).map_err(cannot)?.0 != blob.digest {
            return Err(NatsError(format!("{} was damaged on its way", blob.name)));
        }
        file.persist(&path).map(drop).map_err(|error| cannot(error.error))
    }

    /// Removes files that nobody reads, those first that nobody has asked for the longest.
    fn make_room(&self, bytes: u64) -> io::Result<()> {
        let (mut total, mut files) = (bytes, Vec::new());
        for entry in fs::read_dir(&self.folder)?.flatten() {
            // Another worker may have removed it meanwhile.
            let Ok(about) = entry.metadata() else { continue };
            let path = entry.path();
            let is_trace = entry.file_name().to_str().is_some_and(|n| n.parse::<Digest>().is_ok());
            if is_trace {
                let used = about.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                files.push((used, about.len(), path));
            } else if !is_unfinished(&path) {
                continue;
            }
            total += about.len();
        }
        files.sort();
        for (_, bytes, path) in files {
            if total <= self.most {
                break;
            }
            if remove_unused(&path) {
                total -= bytes;
            }
        }
        Ok(())
    }
}

fn is_unfinished(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.starts_with(UNFINISHED))
}

/// Removes a file unless a worker reads or writes it.
fn remove_unused(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    let is_used = matches!(file.try_lock(), Err(fs::TryLockError::WouldBlock));
    !is_used && is_at(&file, path) && fs::remove_file(path).is_ok()
}

/// Whether an open file is the one that is found at a path.
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let same = |a: fs::Metadata, b: fs::Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
    file.metadata().is_ok_and(|open| fs::metadata(path).is_ok_and(|there| same(open, there)))
}
