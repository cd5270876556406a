//! Has jobs done, on the cores of this machine or elsewhere.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

use crate::job::Job;
use crate::perform::{Blobs, Performed, perform};

/// Why a queue could not go on. What was done before is done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct QueueError(pub String);

/// Takes the result of a job, with the job's number.
pub type HandOver<'d> = dyn FnMut(usize, Performed) -> Result<(), QueueError> + 'd;

/// Something that has jobs done.
pub trait Queue {
    /// Has each of the jobs done and hands its result to `done`, with the job's number, in any order. A job without an answer
    /// is handed over as failed; an error means that the rest of them was not even tried. Stops if `done` fails.
    fn perform(
        &self,
        jobs: &[&Job],
        blobs: &(dyn Blobs + Sync),
        done: &mut HandOver<'_>,
    ) -> Result<(), QueueError>;
}

/// Does jobs on the cores of this machine.
#[derive(Clone, Copy, Debug)]
pub struct InProcess {
    /// The number of cores.
    pub cores: usize,
}

/// As much as a process has on its first thread, and some more.
const STACK: usize = 16 << 20;

impl Queue for InProcess {
    fn perform(
        &self,
        jobs: &[&Job],
        blobs: &(dyn Blobs + Sync),
        done: &mut HandOver<'_>,
    ) -> Result<(), QueueError> {
        let workers = self.cores.clamp(1, jobs.len().max(1));
        // Fewer jobs than cores leave some for each of them.
        let cores = (self.cores / workers).max(1);
        let (next, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
        let (next, is_over) = (&next, &is_over);
        let (send, receive) = mpsc::channel();
        std::thread::scope(|scope| {
            for _ in 0..workers {
                let send = send.clone();
                let work = move || {
                    while !is_over.load(Ordering::Relaxed) {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        let Some(job) = jobs.get(number) else { break };
                        if send.send((number, perform(job, blobs, cores))).is_err() {
                            break;
                        }
                    }
                };
                let started =
                    std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work);
                started.map_err(|error| QueueError(format!("cannot start a thread: {error}")))?;
            }
            drop(send);
            for (number, performed) in receive {
                if let Err(error) = done(number, performed) {
                    is_over.store(true, Ordering::Relaxed);
                    return Err(error);
                }
            }
            Ok(())
        })
    }
}
