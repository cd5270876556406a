//! What the runtime reads of a schedule.

use std::io::{self, Write as _};
use std::path::Path;

use foresee_rt::format::replay::{
    HAS_VALUE, IN_PROGRAM, MAGIC, NAME, NO_STOP, OTHERS_FIRST, RELEASE_ALL, STRICT, SWITCH,
    TIMED_OUT, VIOLATOR_FIRST,
};

use super::{Flag, Place, Schedule, Step};

/// How closely the schedule is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Every step is checked.
    Strict,
    /// Only where threads change.
    Switch,
}

/// What happens after the last step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// All threads continue.
    All,
    /// The thread of the last step goes first.
    ViolatorFirst,
    /// The others go first.
    OthersFirst,
}

/// How to follow a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// How closely.
    pub mode: Mode,
    /// What comes then.
    pub after: After,
    /// Whether threads really sleep.
    pub sleeps: bool,
}

/// The most records between two steps: several times as many as any thread had in the run that the schedule is of, because a
/// thread may wait in a loop that costs little, for another one that comes late.
fn patience(schedule: &Schedule) -> u64 {
    const AT_LEAST: u64 = 200_000;
    const TIMES: u64 = 4;
    let longest = schedule.steps.iter().map(|step| step.number).max().unwrap_or(0);
    longest.saturating_mul(TIMES).saturating_add(AT_LEAST)
}

/// The steps that the runtime is told of, by their indices in the schedule.
pub fn told(schedule: &Schedule, mode: Mode) -> Vec<usize> {
    let all = 0..schedule.steps.len();
    match mode {
        Mode::Strict => all.collect(),
        Mode::Switch => all.filter(|&i| schedule.steps[i].since.is_some()).collect(),
    }
}

/// Writes a schedule for the runtime, which holds all threads before a step if there is one to `stop` at: at that one or, if the
/// runtime is not told of it, at the next.
pub fn write(schedule: &Schedule, way: Way, stop: Option<usize>, path: &Path) -> io::Result<()> {
    let told = told(schedule, way.mode);
    let mut bytes = Vec::with_capacity(64 + schedule.threads.len() * 24 + told.len() * 32);
    bytes.extend(MAGIC.to_le_bytes());
    let mode = if way.mode == Mode::Strict { STRICT } else { SWITCH };
    let after = match way.after {
        After::All => RELEASE_ALL,
        After::ViolatorFirst => VIOLATOR_FIRST,
        After::OthersFirst => OTHERS_FIRST,
    };
    let threads = u32::try_from(schedule.threads.len()).map_err(io::Error::other)?;
    for word in [mode, after, u32::from(way.sleeps), threads] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend((told.len() as u64).to_le_bytes());
    let stop = stop.map_or(NO_STOP, |stop| told.partition_point(|&step| step < stop) as u64);
    bytes.extend(stop.to_le_bytes());
    bytes.extend(patience(schedule).to_le_bytes());
    for thread in &schedule.threads {
        bytes.extend((thread.parent as u32).to_le_bytes());
        bytes.extend(thread.before.to_le_bytes());
        // The kernel keeps as many bytes, the last of which is zero.
        let mut name = [0; NAME];
        for (to, &byte) in name[..NAME - 1].iter_mut().zip(thread.name.as_bytes()) {
            *to = byte;
        }
        bytes.extend(name);
    }
    told.iter().for_each(|&i| put(&schedule.steps[i], way.mode, &mut bytes));
    std::fs::File::create(path)?.write_all(&bytes)
}

fn put(step: &Step, mode: Mode, bytes: &mut Vec<u8>) {
    let (is_program, place) = match step.place {
        Place::None => (false, 0),
        Place::Program(offset) => (true, offset),
        Place::Library(_, offset) => (false, offset),
    };
    let value = step.value.filter(|_| !step.flags.contains(&Flag::Terminal));
    let flags = [
        (value.is_some(), HAS_VALUE),
        (is_program, IN_PROGRAM),
        (step.flags.contains(&Flag::Timeout), TIMED_OUT),
    ];
    let flags = flags.iter().filter(|flag| flag.0).fold(0, |all, flag| all | flag.1);
    let number = match mode {
        Mode::Strict => step.number,
        Mode::Switch => step.since.unwrap_or(1),
    };
    bytes.extend((step.thread as u32).to_le_bytes());
    bytes.extend([step.tag, flags, 0, 0]);
    bytes.extend(number.to_le_bytes());
    bytes.extend(place.to_le_bytes());
    bytes.extend(value.unwrap_or(0).to_le_bytes());
}
