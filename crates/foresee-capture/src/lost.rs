//! Processes of a run that could not be recorded, and why.

use std::fmt;
use std::path::Path;

use crate::log::Log;
use crate::process_tree::leading_number;

/// A process that could not be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// The process.
    pub process: u32,
    /// The number of the error that its runtime met.
    pub error: u32,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} could not be recorded: {}", self.process, reason(self.error))
    }
}

/// All processes of a run that could not be recorded: those that say so in the directory, and those
/// that only the log of their parent knows of.
pub fn find(folder: &Path, logs: &[Log]) -> Vec<Lost> {
    let mut found: Vec<Lost> =
        logs.iter().flat_map(|log| log.header.lost.iter().copied()).collect();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|ending| ending == "lost")
            && let Some(process) = path.file_name().and_then(leading_number)
        {
            let error = path.file_stem().and_then(|stem| Path::new(stem).extension()?.to_str());
            found.push(Lost { process, error: error.and_then(|e| e.parse().ok()).unwrap_or(0) });
        }
    }
    found.sort_by_key(|lost| lost.process);
    found
}

/// What an error of the runtime means, and what helps.
pub fn reason(error: u32) -> String {
    let known = match error {
        12 => {
            "its memory is limited (RLIMIT_AS or RLIMIT_DATA), and recording needs some; run it \
             without the limit"
        }
        13 => "it may not write where the log is, because it runs as another user",
        23 | 24 => "it may not open any more files (RLIMIT_NOFILE)",
        27 => "its files may not become large enough (RLIMIT_FSIZE)",
        28 => "the disk is full (no space left on device)",
        _ => "",
    };
    match known {
        "" => std::io::Error::from_raw_os_error(error as i32).to_string(),
        known => known.to_owned(),
    }
}
