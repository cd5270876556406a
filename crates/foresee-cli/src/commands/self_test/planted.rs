//! The program of `foresee self-test rust`: foresee itself, which is written in Rust and needs no compiler to be run.

use foresee::Recorder;

use super::PLANTED;

/// Two threads that add to a variable without a lock.
pub(super) fn run() {
    let recorder = Recorder::new();
    let planted = recorder.var(PLANTED, 0);
    let threads = ["one", "two"].map(|name| {
        let planted = planted.clone();
        recorder.spawn(name, move || planted.set(planted.get() + 1))
    });
    threads.into_iter().for_each(|thread| thread.join());
}
