//! The folder of a run's logs. It is removed at the end of the run, or by the next one if foresee was
//! killed.
//!
//! A file in it is locked as long as the run lasts, whatever ends it.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;

const PREFIX: &str = "foresee-run-";
const LOCK: &str = "lock";
/// A folder that is younger may not be locked yet.
const YOUNG: Duration = Duration::from_secs(10);

/// The folder of one run.
#[derive(Debug)]
pub struct Scratch {
    folder: TempDir,
    /// Locked until it is dropped.
    _lock: File,
}

impl Scratch {
    /// A new folder for temporary files, which no other user can read. Removes what earlier runs
    /// had to leave behind.
    pub fn new() -> io::Result<Scratch> {
        Scratch::new_in(&std::env::temp_dir())
    }

    /// The same in memory, where that is possible, for files that are written again and again.
    pub fn in_memory() -> io::Result<Scratch> {
        Scratch::new_in(Path::new("/dev/shm")).or_else(|_| Scratch::new())
    }

    fn new_in(parent: &Path) -> io::Result<Scratch> {
        remove_abandoned(parent);
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent)?;
        let lock = File::create_new(folder.path().join(LOCK))?;
        lock.lock()?;
        Ok(Scratch { folder, _lock: lock })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes the folders of runs that were killed. What cannot be removed stays.
fn remove_abandoned(parent: &Path) {
    let user = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_named = entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes());
        // Links are not followed.
        let Some(kind) = entry.metadata().ok().filter(|_| is_named) else { continue };
        let is_old = kind.modified().is_ok_and(|at| at.elapsed().is_ok_and(|age| age > YOUNG));
        if kind.is_dir() && kind.uid() == user && is_old && !is_in_use(&entry.path()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn is_in_use(folder: &Path) -> bool {
    match File::open(folder.join(LOCK)) {
        Ok(file) => matches!(file.try_lock_shared(), Err(fs::TryLockError::WouldBlock)),
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make_old(folder: &Path) {
        let long_ago = std::time::SystemTime::now() - Duration::from_secs(3600);
        File::open(folder).unwrap().set_modified(long_ago).unwrap();
    }

    #[test]
    fn what_killed_runs_left_is_removed_and_nothing_else() {
        let parent = tempfile::tempdir().unwrap();
        let running = Scratch::new_in(parent.path()).unwrap();
        make_old(running.path());
        let folder = |name: &str| {
            let path = parent.path().join(name);
            fs::create_dir(&path).unwrap();
            fs::write(path.join("log"), "x").unwrap();
            path
        };
        let killed = [folder("foresee-run-killed"), folder("foresee-run-early")];
        fs::write(killed[0].join(LOCK), "").unwrap();
        killed.iter().for_each(|path| make_old(path));
        let (young, other) = (folder("foresee-run-young"), folder("other"));
        make_old(&other);
        let link = parent.path().join("foresee-run-link");
        std::os::unix::fs::symlink(&other, &link).unwrap();
        let next = Scratch::new_in(parent.path()).unwrap();
        assert!(killed.iter().all(|path| !path.exists()));
        for kept in [running.path(), &young, &other, &link, next.path()] {
            assert!(kept.exists(), "{}", kept.display());
        }
        assert!(other.join("log").exists());
    }
}
