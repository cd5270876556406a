//! Runs a program under capture.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

/// How to record.
#[derive(Clone, Debug, Default)]
pub struct Recording<'a> {
    /// Whether threads run freely, so that only the order of notes is known.
    pub is_free_running: bool,
    /// Whether accesses to memory of one thread alone are recorded too.
    pub is_unfiltered: bool,
    /// What is recorded in any case; see [`crate::watch`].
    pub watch: Option<&'a Path>,
    /// How many bytes of log at most.
    pub limit: Option<u64>,
}

/// How a program ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// By itself, or by a signal.
    pub status: ExitStatus,
    /// Whether we ended it because its time was up.
    pub timed_out: bool,
    /// How long it ran.
    pub took: Duration,
}

/// Runs a command to its end, with our own standard streams, and records into a folder.
pub fn launch(
    command: &[OsString],
    folder: &Path,
    recording: &Recording<'_>,
    timeout: Option<Duration>,
) -> io::Result<Ended> {
    let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut child = Command::new(program);
    child.args(arguments).env("FORESEE_CAPTURE", folder);
    child.env("FORESEE_MODE", if recording.is_free_running { "async" } else { "sync" });
    child.env("FORESEE_FILTER", if recording.is_unfiltered { "none" } else { "shared" });
    match recording.watch {
        Some(file) => child.env("FORESEE_WATCH", file),
        None => child.env_remove("FORESEE_WATCH"),
    };
    match recording.limit {
        Some(bytes) => child.env("FORESEE_LIMIT", bytes.to_string()),
        None => child.env_remove("FORESEE_LIMIT"),
    };
    let start = Instant::now();
    let mut child = child.spawn()?;
    let Some(timeout) = timeout else {
        let status = child.wait()?;
        return Ok(Ended { status, timed_out: false, took: start.elapsed() });
    };
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Ended { status, timed_out: false, took: start.elapsed() });
        }
        if start.elapsed() >= timeout {
            child.kill()?;
            let status = child.wait()?;
            return Ok(Ended { status, timed_out: true, took: start.elapsed() });
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}
