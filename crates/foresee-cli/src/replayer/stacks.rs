//! Where the threads of a program wait that hung in a replay.

use foresee_capture::log::{Log, Pc};
use foresee_capture::symbols::{Frame, Symbols};

/// The callers of a thread that waits.
#[derive(Clone, Debug)]
pub(crate) struct Stack {
    /// The thread's name in reports.
    pub(crate) thread: String,
    /// The functions and their places, the innermost first: only those of the program whose lines are known.
    pub(crate) frames: Vec<String>,
}

/// The stacks of the threads that wait when a log ends, as the runtime found them.
pub(super) fn of(log: &Log, symbols: &Symbols) -> Vec<Stack> {
    // What libc does there is of no interest.
    let is_own = |pc: &&u64| log.place(**pc).module.is_some_and(|m| log.modules[m].instrumented);
    let stack = |(&thread, callers): (&u32, &Vec<u64>)| Stack {
        thread: log.thread_name(thread),
        frames: callers
            .iter()
            .filter(is_own)
            .flat_map(|&pc| symbols.place(pc.wrapping_sub(1)).0)
            .filter_map(|frame| text(&frame))
            .collect(),
    };
    log.callers.iter().map(stack).collect()
}

/// The last place that was seen of each thread that has not ended.
pub(super) fn last_places(log: &Log, symbols: &Symbols) -> Vec<Stack> {
    let stack = |(thread, pc): (u32, Pc)| Stack {
        thread: log.thread_name(thread),
        frames: symbols.place(pc.address.wrapping_sub(1)).0.iter().filter_map(text).collect(),
    };
    log.last_places().map(stack).collect()
}

/// A function of the program and its place, if that is known. What the runtime and the compiler's start-up code do is of no
/// interest.
fn text(frame: &Frame) -> Option<String> {
    let (function, file) = (frame.function.as_deref().unwrap_or("?"), frame.file.as_deref()?);
    let is_own = !function.starts_with("foresee_rt::");
    is_own.then(|| Some(format!("{function} {file}:{}", frame.line?))).flatten()
}

/// Where each thread waits, as the end of a sentence; empty if that is not known.
pub(super) fn in_one_line(stacks: &[Stack]) -> String {
    let places = stacks.iter().filter_map(|stack| {
        let place = stack.frames.first()?;
        Some(format!("{} in {place}", stack.thread))
    });
    let places: Vec<String> = places.collect();
    if places.is_empty() { String::new() } else { format!("; waiting: {}", places.join(", ")) }
}
