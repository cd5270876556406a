//! Traces that a worker has fetched: files named by their digests, the least used of which make room for others.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use foresee_batch::{Blob, Digest};
use foresee_support::output::OutputFile;
use tokio::sync::Mutex;

use crate::server::NatsError;
use crate::store::Store;

/// A folder of fetched traces.
pub(crate) struct Fetched {
    folder: PathBuf,
    /// How many bytes it may have.
    most: u64,
    files: Mutex<HashMap<Digest, File>>,
}

struct File {
    bytes: u64,
    /// How many jobs read it now.
    users: usize,
    /// When it was last asked for.
    used: u64,
}

impl Fetched {
    /// Uses what an earlier worker left in the folder.
    pub(crate) fn open(folder: &Path, most: u64) -> Result<Fetched, NatsError> {
        let cannot =
            |error| NatsError(format!("cannot use the folder {}: {error}", folder.display()));
        std::fs::create_dir_all(folder).map_err(cannot)?;
        let mut files = HashMap::new();
        for entry in std::fs::read_dir(folder).map_err(cannot)? {
            let Ok(entry) = entry else { continue };
            let name = entry.file_name();
            let digest = name.to_str().and_then(|name| name.parse::<Digest>().ok());
            let (Some(digest), Ok(about)) = (digest, entry.metadata()) else { continue };
            // Anyone may have changed it since.
            match Digest::of_file(&entry.path()) {
                Ok((is, bytes)) if is == digest && about.is_file() => {
                    files.insert(digest, File { bytes, users: 0, used: 0 });
                }
                _ => drop(std::fs::remove_file(entry.path())),
            }
        }
        Ok(Fetched { folder: folder.to_owned(), most, files: Mutex::new(files) })
    }

    /// A file with this content, fetched if it is not here. It stays until it is [released](Fetched::release).
    pub(crate) async fn take(&self, store: &Store, blob: &Blob) -> Result<PathBuf, NatsError> {
        if blob.bytes > self.most {
            return Err(NatsError(format!(
                "{} has {} MiB, and this worker keeps at most {}: allow more with --cache-size",
                blob.name,
                blob.bytes >> 20,
                self.most >> 20
            )));
        }
        // Two jobs that want the same file fetch it once.
        let mut files = self.files.lock().await;
        let path = self.folder.join(blob.digest.to_string());
        let now = files.values().map(|file| file.used).max().unwrap_or(0) + 1;
        if let Some(file) = files.get_mut(&blob.digest) {
            (file.users, file.used) = (file.users + 1, now);
            return Ok(path);
        }
        self.make_room(&mut files, blob.bytes);
        let cannot = |error| NatsError(format!("cannot write {}: {error}", path.display()));
        let mut file = OutputFile::create(&path).map_err(cannot)?;
        store.fetch_to(&blob.digest.to_string(), blob.bytes, &mut file).await?;
        file.finish().map_err(cannot)?;
        if Digest::of_file(&path).map_err(cannot)?.0 != blob.digest {
            let _ = std::fs::remove_file(&path);
            return Err(NatsError(format!("{} was damaged on its way", blob.name)));
        }
        files.insert(blob.digest, File { bytes: blob.bytes, users: 1, used: now });
        Ok(path)
    }

    /// Says that a file is no longer read.
    pub(crate) async fn release(&self, digest: Digest) {
        if let Some(file) = self.files.lock().await.get_mut(&digest) {
            file.users = file.users.saturating_sub(1);
        }
    }

    /// Removes files that nobody reads, those first that nobody has asked for the longest.
    fn make_room(&self, files: &mut HashMap<Digest, File>, bytes: u64) {
        let mut total: u64 = files.values().map(|file| file.bytes).sum();
        while total + bytes > self.most {
            let idle = files.iter().filter(|(_, file)| file.users == 0);
            let Some((&oldest, _)) = idle.min_by_key(|(_, file)| file.used) else { return };
            if let Some(file) = files.remove(&oldest) {
                total -= file.bytes;
            }
            let _ = std::fs::remove_file(self.folder.join(oldest.to_string()));
        }
    }
}
