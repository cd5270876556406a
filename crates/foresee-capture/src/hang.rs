//! Detects programs that hang: all their threads wait for each other.
//!
//! The runtime counts, in the head of its log, the living threads and those in a call that only
//! another thread of the process can end. If the two are equal, the kernel reports that all threads
//! sleep, and nothing changes for a while, the program hangs: the calls have no timeout, other
//! processes cannot reach what they wait for, and there is no signal handler.

use std::collections::HashMap;
use std::fs::{self, File};
use std::mem::offset_of;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use foresee_rt::format::{Head, MAGIC, replay};
use rustix::process::{Pid, Signal, kill_process};

use crate::process_tree::{is_asleep, leading_number};

/// How long nothing must change.
const CALM: Duration = Duration::from_millis(300);

/// The same for a program that follows a schedule.
const STALL: Duration = Duration::from_millis(700);

/// Detects programs that hang, and kills them.
pub(crate) struct Hangs {
    folder: PathBuf,
    /// For each process that may hang: the number of changes so far, and the time of the last one.
    calm: HashMap<u32, (u32, Instant)>,
    /// The same for processes that follow a schedule: the next step, and since when it is that.
    stalls: HashMap<u32, (u64, Instant)>,
    /// The processes that were killed.
    pub(crate) ended: Vec<u32>,
}

impl Hangs {
    /// The processes that record into this directory.
    pub(crate) fn in_folder(folder: &Path) -> Hangs {
        Hangs {
            folder: folder.to_owned(),
            calm: HashMap::new(),
            stalls: HashMap::new(),
            ended: Vec::new(),
        }
    }

    /// Kills processes that have hung for a while, and records it in their logs.
    pub(crate) fn end(&mut self) {
        for (tail, process) in tails(&self.folder) {
            self.end_stalled(&tail, process);
            let Some(changes) = hung(&tail, process) else {
                self.calm.remove(&process);
                continue;
            };
            let now = Instant::now();
            let calm = self.calm.entry(process).or_insert((changes, now));
            if calm.0 != changes {
                *calm = (changes, now);
            } else if calm.1.elapsed() >= CALM {
                self.calm.remove(&process);
                note(&tail);
                let pid = i32::try_from(process).ok().and_then(Pid::from_raw);
                if pid.is_some_and(|pid| kill_process(pid, Signal::KILL).is_ok()) {
                    self.ended.push(process);
                }
            }
        }
    }
}

impl Hangs {
    /// Kills a process that follows a schedule and has not got any further for a while, with all threads asleep.
    fn end_stalled(&mut self, tail: &Path, process: u32) {
        let Some(at) = stalled(tail, process) else {
            self.stalls.remove(&process);
            return;
        };
        let now = Instant::now();
        let stall = self.stalls.entry(process).or_insert((at, now));
        if stall.0 != at {
            *stall = (at, now);
        } else if stall.1.elapsed() >= STALL {
            self.stalls.remove(&process);
            let pid = i32::try_from(process).ok().and_then(Pid::from_raw);
            if pid.is_some_and(|pid| kill_process(pid, Signal::KILL).is_ok()) {
                let state =
                    (u64::from(replay::STALLED) << 32 | u64::from(replay::DIVERGED)).to_le_bytes();
                let file = File::options().write(true).open(tail);
                let at = offset_of!(Head, replay) as u64;
                // If that fails, the log shows a killed program that followed a schedule, which is true.
                let _ = file.and_then(|file| file.write_all_at(&state, at));
            }
        }
    }
}

/// The head of a log that a program is writing.
struct Live([u8; size_of::<Head>()]);

impl Live {
    fn read(tail: &Path) -> Option<Live> {
        let mut head = [0; size_of::<Head>()];
        File::open(tail).ok()?.read_exact_at(&mut head, 0).ok()?;
        Some(Live(head))
    }

    fn word(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.0[at..at + 4].try_into().unwrap_or_default())
    }

    fn long(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.0[at..at + 8].try_into().unwrap_or_default())
    }
}

/// The tails of the logs in a directory, and their processes.
fn tails(folder: &Path) -> impl Iterator<Item = (PathBuf, u32)> + use<> {
    let files = fs::read_dir(folder).into_iter().flatten();
    let paths = files.filter_map(|file| Some(file.ok()?.path()));
    let tails = paths.filter(|path| path.extension().is_some_and(|ending| ending == "tail"));
    tails.filter_map(|tail| {
        let process = tail.file_name().and_then(leading_number)?;
        Some((tail, process))
    })
}

/// The process that records into this directory and is held at a step of its schedule, if there is one.
pub(crate) fn held(folder: &Path) -> Option<u32> {
    let is_held = |tail: &Path| {
        Live::read(tail).is_some_and(|head| head.word(offset_of!(Head, replay)) == replay::HELD)
    };
    tails(folder).find(|(tail, _)| is_held(tail)).map(|(_, process)| process)
}

/// If a process follows a schedule and all its threads sleep: the next step.
fn stalled(tail: &Path, process: u32) -> Option<u64> {
    let head = Live::read(tail)?;
    let is_following = head.word(offset_of!(Head, replay)) == replay::FOLLOWING;
    let is_it = is_following && is_asleep(process, head.word(offset_of!(Head, living)));
    is_it.then(|| head.long(offset_of!(Head, replay_at)))
}

/// If every thread of a process waits for another: the number of changes so far.
fn hung(tail: &Path, process: u32) -> Option<u32> {
    let head = Live::read(tail)?;
    let living = head.word(offset_of!(Head, living));
    let is_open = head.long(0) == MAGIC && head.word(offset_of!(Head, state)) == 0;
    let is_stuck = living > 0 && head.word(offset_of!(Head, blocked)) == living;
    let has_no_handler = head.word(offset_of!(Head, handlers)) == 0;
    let is_it = is_open && is_stuck && has_no_handler && is_asleep(process, living);
    is_it.then(|| head.word(offset_of!(Head, changes)))
}

/// Records in a log why the program ends here. If that fails, the log shows a killed program, which
/// is true.
fn note(tail: &Path) {
    let state = offset_of!(Head, state) as u64;
    let file = File::options().write(true).open(tail);
    let _ = file.and_then(|file| file.write_all_at(&5u32.to_le_bytes(), state));
}
