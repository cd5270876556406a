//! Programs of the JVM: the log that the agent in `agents/jvm` writes, as events.
//!
//! A process has a folder `PID.jvm` with a file of names and a file of records for each thread. A record has the ticket of its
//! stripe, and the order of events is program order and the order of tickets.

mod certain;
mod dictionary;
mod events;
mod initialisers;
mod launch;
mod live;
mod locks;
mod merge;
mod objects;
mod record;
mod trace;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use launch::{Agent, Injected, MissingAgent, is_java};
pub use live::LiveLog;
pub use trace::JvmTrace;

use dictionary::Dictionary;

type HashSet<T> = std::collections::HashSet<T, foldhash::fast::RandomState>;
type HashMap<K, V> = std::collections::HashMap<K, V, foldhash::fast::RandomState>;

/// Why a log could not be read.
#[derive(Debug, thiserror::Error)]
pub enum JvmError {
    /// A file cannot be read.
    #[error("cannot read {0}: {1}")]
    Io(PathBuf, #[source] io::Error),
    /// A file does not have the expected form.
    #[error("{0}: {1}")]
    Damaged(PathBuf, String),
    /// What an agent sent does not have the expected form.
    #[error("what the agent sent is damaged: {0}")]
    Sent(&'static str),
}

/// The log of one process.
#[derive(Debug)]
pub struct JvmLog {
    folder: PathBuf,
    /// The process.
    pub pid: u32,
    dictionary: Arc<Dictionary>,
}

/// The folders of all processes that recorded into a directory, in the order of their starts.
pub fn find(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "jvm") {
            let started = std::fs::metadata(path.join("1.log")).and_then(|m| m.created()).ok();
            found.push((started, path));
        }
    }
    found.sort();
    Ok(found.into_iter().map(|f| f.1).collect())
}

impl JvmLog {
    /// Opens the log of a process.
    pub fn open(folder: &Path) -> Result<JvmLog, JvmError> {
        let pid = folder.file_stem().and_then(|stem| stem.to_str()?.parse().ok()).unwrap_or(0);
        let dictionary = Dictionary::read(&folder.join("names"))?;
        Ok(JvmLog { folder: folder.to_owned(), pid, dictionary: Arc::new(dictionary) })
    }

    /// Whether the program did anything that was recorded.
    pub fn is_empty(&self) -> bool {
        self.dictionary.sites.is_empty()
    }
}
