//! Runs a program under capture.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use foresee_formats::recorded::FOLDER;
use rustix::process::{Pid, Signal, kill_process};

use crate::hang::{self, Hangs};
use crate::heard::Heard;
use crate::process_tree::ProcessTree;

/// The usual maximum size of a log in bytes: what is analysed within a time that a person waits.
pub const LOG_LIMIT: u64 = 512 << 20;

/// How to record.
#[derive(Clone, Debug, Default)]
pub struct Recording<'a> {
    /// Whether threads run freely, so that only the order of records is known.
    pub is_free_running: bool,
    /// Whether accesses to memory that only one thread uses are recorded, too.
    pub is_unfiltered: bool,
    /// Whether the call stacks of threads are recorded.
    pub has_stacks: bool,
    /// What is always recorded; see [`crate::filter`].
    pub watch: Option<&'a Path>,
    /// The maximum size of the log in bytes.
    pub limit: Option<u64>,
    /// The seed of the lengths of turns: equal seeds give equal turns.
    pub seed: u64,
    /// A variable of the environment that brings an agent in; see [`crate::jvm`].
    pub variable: Option<(&'static str, OsString)>,
    /// Whether what the program prints to its standard output goes to our standard error, because
    /// our standard output is for a report that programs read.
    pub is_diverted: bool,
    /// The schedule that the program is to follow; see [`crate::replay::script`].
    pub script: Option<&'a Path>,
    /// Whether the program's output is dropped, and its input read from the beginning if that is a file.
    pub is_silent: bool,
    /// Whether someone else reads our standard input meanwhile, like a debugger: the program gets it only if it is a file.
    pub is_input_taken: bool,
    /// Where what the program prints to its standard error is kept, too.
    pub heard: Option<Heard>,
}

/// How a program ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// The exit status or the signal.
    pub status: ExitStatus,
    /// Whether it was killed because of the timeout.
    pub timed_out: bool,
    /// How long it ran.
    pub took: Duration,
    /// The process.
    pub process: u32,
    /// The processes that were killed because their threads waited for each other.
    pub hung: Vec<u32>,
    /// Whether we were told to end it.
    pub is_stopped: bool,
}

/// When to stop waiting.
pub struct Timeouts<'p> {
    /// After this time, everything that still runs is killed.
    pub timeout: Option<Duration>,
    /// The user does not want to wait for what the program left running.
    pub is_interrupted: &'p AtomicBool,
    /// The number of a signal that told us to end; zero as long as there is none.
    pub stop: &'p AtomicUsize,
    /// Called with the processes that outlive the program.
    pub on_orphans: &'p mut dyn FnMut(Orphans<'_>),
}

/// What is done with a process that is held at a step of its schedule, for as long as that takes; whether it may continue.
pub type OnHeld<'h> = &'h mut dyn FnMut(u32) -> io::Result<bool>;

/// Runs a command to its end, with our own standard streams, and records into a directory. Waits
/// for recorded processes that it leaves behind, because an unfinished log cannot be read.
pub fn launch(
    command: &[OsString],
    folder: &Path,
    recording: &Recording<'_>,
    timeouts: Timeouts<'_>,
) -> io::Result<Ended> {
    launch_held(command, folder, recording, timeouts, &mut |_| Ok(false))
}

/// The same for a program that is to be held at a step of its schedule.
pub fn launch_held(
    command: &[OsString],
    folder: &Path,
    recording: &Recording<'_>,
    timeouts: Timeouts<'_>,
    on_held: OnHeld<'_>,
) -> io::Result<Ended> {
    let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut child = Command::new(program);
    child.args(arguments).env(FOLDER, folder);
    child.env("FORESEE_MODE", if recording.is_free_running { "async" } else { "sync" });
    child.env("FORESEE_FILTER", if recording.is_unfiltered { "none" } else { "shared" });
    child.env("FORESEE_STACKS", if recording.has_stacks { "on" } else { "off" });
    child.env("FORESEE_SEED", recording.seed.to_string());
    match recording.watch {
        Some(file) => child.env("FORESEE_WATCH", file),
        None => child.env_remove("FORESEE_WATCH"),
    };
    if recording.is_diverted {
        child.stdout(io::stderr());
    }
    // If we are killed, the runtime ends the recording.
    child.env("FORESEE_LAUNCHER", std::process::id().to_string());
    match recording.limit {
        Some(bytes) => child.env("FORESEE_LIMIT", bytes.to_string()),
        None => child.env_remove("FORESEE_LIMIT"),
    };
    if let Some((name, value)) = &recording.variable {
        child.env(name, value);
    }
    match recording.script {
        Some(file) => child.env("FORESEE_SCHEDULE", file),
        None => child.env_remove("FORESEE_SCHEDULE"),
    };
    if recording.is_silent {
        child.stdin(input_again()).stdout(Stdio::null()).stderr(Stdio::null());
    }
    if recording.is_input_taken {
        child.stdin(input_again());
    }
    if recording.heard.is_some() {
        child.stderr(Stdio::piped());
    }
    let tree = ProcessTree::of(folder);
    let mut start = Instant::now();
    let mut child = child.spawn()?;
    let process = child.id();
    let listener = recording.heard.as_ref().zip(child.stderr.take());
    let listener = listener.map(|(heard, from)| heard.listen(from, recording.is_silent));
    let mut hangs = Hangs::in_folder(folder);
    let (tell, told) = mpsc::channel();
    // If this fails, the receiver is gone.
    std::thread::spawn(move || drop(tell.send(child.wait())));
    let mut stopped = None;
    let status = loop {
        let is_late = timeouts.timeout.is_some_and(|limit| start.elapsed() >= limit);
        let stop = timeouts.stop.load(Ordering::Relaxed);
        if stop != 0 && stopped.is_none() {
            stopped = Some(Instant::now());
            pass_on(stop, process);
        }
        let is_stubborn = stopped.is_some_and(|since| since.elapsed() >= TO_END);
        match told.recv_timeout(LOOK) {
            Ok(status) => break status?,
            Err(mpsc::RecvTimeoutError::Timeout) if !is_late && !is_stubborn => {
                let Some(held) = recording.script.and_then(|_| hang::held(folder)) else {
                    hangs.end();
                    continue;
                };
                let since = Instant::now();
                let may_continue = on_held(held);
                // The time with the debugger is not the program's.
                start += since.elapsed();
                if may_continue.as_ref().is_ok_and(|&may| may) && hang::held(folder).is_none() {
                    continue;
                }
                end_all(&tree, process)?;
                let status = told.recv().map_err(io::Error::other)??;
                may_continue?;
                let (took, hung, is_stopped) = (start.elapsed(), hangs.ended, stopped.is_some());
                return Ok(Ended { status, timed_out: false, took, process, hung, is_stopped });
            }
            Err(_) => {
                end_all(&tree, process)?;
                let status = told.recv().map_err(io::Error::other)??;
                let (took, hung, is_stopped) = (start.elapsed(), hangs.ended, stopped.is_some());
                return Ok(Ended { status, timed_out: true, took, process, hung, is_stopped });
            }
        }
    };
    let is_late = || timeouts.timeout.is_some_and(|limit| start.elapsed() >= limit);
    let mut pause = Pause::default();
    let gone = Instant::now();
    let (mut left, mut is_told) = (tree.running(), false);
    while !left.is_empty() {
        let recording = tree.recording();
        let is_stopped = timeouts.stop.load(Ordering::Relaxed) != 0;
        if is_late() || is_stopped || timeouts.is_interrupted.load(Ordering::Relaxed) {
            end_all(&tree, process)?;
            let (took, hung) = (start.elapsed(), hangs.ended);
            return Ok(Ended { status, timed_out: true, took, process, hung, is_stopped });
        }
        // Other processes are ignored once they have had the time to begin a log.
        if recording.is_empty() && gone.elapsed() > GRACE {
            (timeouts.on_orphans)(Orphans::NotRecorded(&left));
            break;
        }
        if !recording.is_empty() && !std::mem::replace(&mut is_told, true) {
            (timeouts.on_orphans)(Orphans::Recorded(&recording));
        }
        hangs.end();
        pause.take();
        left = tree.running();
    }
    if let Some(listener) = listener {
        listener.wait();
    }
    let (took, hung, is_stopped) = (start.elapsed(), hangs.ended, stopped.is_some());
    Ok(Ended { status, timed_out: false, took, process, hung, is_stopped })
}

/// Our standard input from its beginning if it is a file; otherwise nothing, because it can be read only once.
fn input_again() -> Stdio {
    let path = Path::new("/dev/stdin");
    let is_file = std::fs::metadata(path).is_ok_and(|about| about.is_file());
    let file = is_file.then(|| std::fs::File::open(path).ok()).flatten();
    file.map_or_else(Stdio::null, Stdio::from)
}

/// Sends the signal that we got to the program, which may have something to do before it ends.
fn pass_on(signal: usize, process: u32) {
    let signal = i32::try_from(signal).ok().and_then(Signal::from_named_raw);
    let process = i32::try_from(process).ok().and_then(Pid::from_raw);
    if let (Some(signal), Some(process)) = (signal, process) {
        // It may be gone by now.
        let _ = kill_process(process, signal);
    }
}

/// How long a program may take to end itself when it is told to.
const TO_END: Duration = Duration::from_secs(2);

/// How often to check whether a program still runs.
const LOOK: Duration = Duration::from_millis(50);

/// How long a process that the program left behind may take to begin its log.
const GRACE: Duration = Duration::from_millis(500);

/// Processes that outlive the program that started them.
pub enum Orphans<'p> {
    /// Their logs are incomplete: the launcher waits for them.
    Recorded(&'p [u32]),
    /// They have no log, and are left running.
    NotRecorded(&'p [u32]),
}

fn end_all(tree: &ProcessTree, first: u32) -> io::Result<()> {
    tree.end(first);
    match tree.recording().is_empty() {
        true => Ok(()),
        false => Err(io::Error::other("it goes on recording however often it is ended")),
    }
}

/// A pause that is short at first, because most programs are.
struct Pause(Duration);

impl Default for Pause {
    fn default() -> Pause {
        Pause(Duration::from_millis(1))
    }
}

impl Pause {
    fn take(&mut self) {
        std::thread::sleep(self.0);
        self.0 = (self.0 * 2).min(Duration::from_millis(20));
    }
}
