//! One run of a program that is explored: as fast as can be, and nothing of it stays.

use std::ffi::OsStr;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use foresee_explore::program::RunError;
use foresee_formats::recorded::FOLDER;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::Options;

/// How a run ended.
pub(super) struct RunEnd {
    pub(super) status: ExitStatus,
    pub(super) is_late: bool,
}

impl RunEnd {
    pub(super) fn signal(&self) -> Option<i32> {
        self.status.signal()
    }
}

/// Runs the program once. The schedule is in the file.
pub(super) fn launch(
    options: &Options,
    scratch: &Path,
    file: &Path,
    watchdog: &Watchdog,
) -> Result<RunEnd, RunError> {
    let failed = |what: &OsStr, why: &dyn std::fmt::Display| {
        RunError(format!("cannot run {}: {why}", what.to_string_lossy()))
    };
    let folder = options.is_private.then(|| scratch.join("work"));
    if let Some(folder) = &folder {
        // What the last run left is not there for this one.
        let _ = std::fs::remove_dir_all(folder);
        std::fs::create_dir(folder).map_err(|why| failed(folder.as_os_str(), &why))?;
    }
    if let Some(before) = &options.before {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(before).stdin(Stdio::null());
        let status = within(&mut shell, folder.as_deref()).status();
        let status = status.map_err(|why| failed(before, &why))?;
        if !status.success() {
            return Err(failed(before, &format_args!("it ended with {status}")));
        }
    }
    let Some((program, arguments)) = options.command.split_first() else {
        return Err(RunError("there is no program to run".to_owned()));
    };
    let mut command = Command::new(program);
    command.args(arguments).env(FOLDER, scratch.join("log")).env("FORESEE_EXPLORE", file);
    command.env("FORESEE_MODE", "sync").env("FORESEE_FILTER", "none").env("FORESEE_SEED", "1");
    // The environment must always be equally long, because it lies above the first thread's stack.
    command.env("FORESEE_LAUNCHER", format!("{:010}", std::process::id()));
    for name in ["FORESEE_SCHEDULE", "FORESEE_WATCH", "FORESEE_LIMIT", "FORESEE_QUANTUM"] {
        command.env_remove(name);
    }
    within(&mut command, folder.as_deref());
    let input = match &options.input {
        Some(path) => std::fs::File::open(path)
            .map(Stdio::from)
            .map_err(|why| failed(path.as_os_str(), &why))?,
        None => Stdio::null(),
    };
    command.stdin(input);
    if !options.is_shown {
        command.stdout(Stdio::null()).stderr(Stdio::null());
    }
    // What it starts can be ended with it.
    command.process_group(0);
    let mut child =
        without_random_addresses(|| command.spawn()).map_err(|why| failed(program, &why))?;
    let process = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let is_late = process.is_some_and(|process| {
        let armed = watchdog.arm(process, options.timeout);
        // It stays a zombie, so that its number is not reused before the watchdog rests.
        let how = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while waitid(WaitId::Pid(process), how).is_err_and(|why| why == rustix::io::Errno::INTR) {}
        let is_late = armed.rest();
        // Other processes that it left running.
        let _ = kill_process_group(process, Signal::KILL);
        is_late
    });
    let status = child.wait().map_err(|why| failed(program, &why))?;
    Ok(RunEnd { status, is_late })
}

/// Lets a command run in a folder.
fn within<'c>(command: &'c mut Command, folder: Option<&Path>) -> &'c mut Command {
    match folder {
        Some(folder) => command.current_dir(folder),
        None => command,
    }
}

/// Starts a process to which the kernel gives the same addresses every time.
fn without_random_addresses<T>(start: impl FnOnce() -> T) -> T {
    use nix::sys::personality::{Persona, get, set};
    // It holds for this thread and what it starts.
    let before = get().ok();
    if let Some(before) = before {
        let _ = set(before | Persona::ADDR_NO_RANDOMIZE);
    }
    let out = start();
    if let Some(before) = before {
        let _ = set(before);
    }
    out
}

/// Ends runs that take too long.
#[derive(Default)]
pub(super) struct Watchdog {
    shared: Arc<Shared>,
    has_begun: std::sync::OnceLock<()>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    watched: Option<(Pid, Instant)>,
    has_ended_it: bool,
    is_over: bool,
}

/// A run that is watched.
struct Armed<'w>(&'w Shared);

impl Armed<'_> {
    /// The run is over; returns whether it was ended because it took too long.
    fn rest(self) -> bool {
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.watched = None;
        state.has_ended_it
    }
}

impl Watchdog {
    fn arm(&self, process: Pid, limit: Duration) -> Armed<'_> {
        self.has_begun.get_or_init(|| {
            let shared = Arc::clone(&self.shared);
            std::thread::spawn(move || watch(&shared));
        });
        let mut state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.watched = Some((process, Instant::now() + limit));
        state.has_ended_it = false;
        Armed(&self.shared)
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner).is_over = true;
        self.shared.changed.notify_all();
    }
}

fn watch(shared: &Shared) {
    /// How often it looks; waking it for each run would cost more than the run.
    const PAUSE: Duration = Duration::from_millis(50);
    let mut state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
    while !state.is_over {
        if let Some((process, until)) = state.watched
            && Instant::now() >= until
        {
            state.has_ended_it = true;
            let _ = kill_process_group(process, Signal::KILL);
        }
        state = shared.changed.wait_timeout(state, PAUSE).unwrap_or_else(PoisonError::into_inner).0;
    }
}
