//! The processes of one recording: the program and everything it started. They are found in `/proc`
//! by the directory that their environment names, so that daemons and new sessions are included.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use foresee_formats::recorded::FOLDER;
use rustix::process::{Pid, Signal, kill_process};

/// The processes that record into a directory.
pub(crate) struct ProcessTree {
    folder: PathBuf,
    /// The entry for the directory in the environment of its processes.
    mark: Vec<u8>,
}

impl ProcessTree {
    /// The processes that record into this directory.
    pub(crate) fn of(folder: &Path) -> ProcessTree {
        let mut mark = FOLDER.as_bytes().to_vec();
        mark.push(b'=');
        mark.extend(folder.as_os_str().as_bytes());
        ProcessTree { folder: folder.to_owned(), mark }
    }

    /// The running processes with a log, which cannot be read yet.
    pub(crate) fn recording(&self) -> Vec<u32> {
        let Ok(files) = fs::read_dir(&self.folder) else { return Vec::new() };
        let names = files.filter_map(|file| Some(file.ok()?.file_name()));
        let tails = names.filter(|name| name.as_bytes().ends_with(b".tail"));
        let mut found: Vec<u32> = tails.filter_map(|name| leading_number(&name)).collect();
        found.sort_unstable();
        found.dedup();
        found.retain(|&process| self.is_marked(process));
        found
    }

    /// All running processes, recorded or not; a recorded one may have just been started.
    pub(crate) fn running(&self) -> Vec<u32> {
        let mut found: Vec<u32> = processes().into_keys().collect();
        found.sort_unstable();
        found.retain(|&process| process != std::process::id() && self.is_marked(process));
        found
    }

    /// Kills them all, and all descendants of `first`. A process that is just being created is
    /// found in the next round.
    pub(crate) fn end(&self, first: u32) {
        for _ in 0..ROUNDS {
            let members = self.members(first);
            if members.is_empty() {
                return;
            }
            for process in members.iter().filter_map(|&id| Pid::from_raw(i32::try_from(id).ok()?)) {
                // It may be gone by now, or belong to another user.
                let _ = kill_process(process, Signal::KILL);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn members(&self, first: u32) -> Vec<u32> {
        let all = processes();
        let own = std::process::id();
        let descends = |process: u32| {
            // While processes come and go, a chain of parents could be a cycle.
            let chain = std::iter::successors(Some(process), |id| all.get(id).copied());
            chain.take(all.len()).any(|id| id == first)
        };
        let is_member = |process: u32| {
            process != own && process > 1 && (descends(process) || self.is_marked(process))
        };
        all.keys().copied().filter(|&process| is_member(process)).collect()
    }

    /// Whether a process has our directory; `false` for one that is gone or a zombie.
    fn is_marked(&self, process: u32) -> bool {
        let environment = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
        environment.split(|&byte| byte == 0).any(|variable| variable == self.mark)
    }
}

/// Enough for all programs except fork bombs and those with more privileges than we have.
const ROUNDS: usize = 400;

/// `123.0.tail` belongs to process 123.
pub(crate) fn leading_number(name: &OsStr) -> Option<u32> {
    name.to_str()?.split('.').next()?.parse().ok()
}

/// All running processes, with their parents.
fn processes() -> HashMap<u32, u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return HashMap::new() };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter_map(|name| living(name.parse().ok()?)).collect()
}

/// Whether a process has exactly this many threads, and all of them sleep.
pub(crate) fn is_asleep(process: u32, threads: u32) -> bool {
    let Ok(tasks) = fs::read_dir(format!("/proc/{process}/task")) else { return false };
    let mut sleeping = 0;
    for task in tasks {
        let Some(line) = task.ok().and_then(|t| fs::read_to_string(t.path().join("stat")).ok())
        else {
            return false;
        };
        match after_name(&line).and_then(|mut words| words.next()) {
            Some("S") => sleeping += 1,
            // The first thread of a process remains as a zombie after it has ended.
            Some("Z" | "X") => {}
            _ => return false,
        }
    }
    sleeping == threads
}

/// The fields of a `stat` line from the state on. The name before them, in parentheses, may contain
/// anything.
fn after_name(line: &str) -> Option<std::str::SplitWhitespace<'_>> {
    Some(line.rsplit_once(')')?.1.split_whitespace())
}

/// A process and its parent, if it still runs.
fn living(process: u32) -> Option<(u32, u32)> {
    let line = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let mut words = after_name(&line)?;
    let is_gone = matches!(words.next()?, "Z" | "X");
    let parent = words.next()?.parse().ok()?;
    (!is_gone).then_some((process, parent))
}
