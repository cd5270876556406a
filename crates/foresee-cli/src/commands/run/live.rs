//! What observers learn of a program in C or C++ while it runs.
//!
//! No event of such a program is certain before its log has ended: how memory is divided into variables depends on all
//! accesses of it, so do the variables that only one thread uses, and a name may be given to a thread or an object at any
//! time. But the log of a running program is that of one that was killed now. So its trace is made as if it had been, by the
//! code that does so at the end, and sent as an edition; the next one follows when the log is twice as long. The last one is
//! the trace that `--keep` stores, and the verdict is about that one. All editions together are about three times as long at most.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use foresee_capture::log::{self, Log, snapshot};
use foresee_capture::naming::symbols_of;
use foresee_capture::store::{Keep, LogConversion, LogTrace};
use foresee_capture::symbols::{Symbols, Variable};
use foresee_observe::Pace;
use foresee_predict::session::Session;
use foresee_trace::TraceInput;

use super::spec_vars;
use crate::args::{Destination, FRAME_EVENTS, RunArgs};
use crate::commands::sending::Sending;

/// How often it is looked how long the logs are.
const LOOK: Duration = Duration::from_millis(100);
/// How long a program runs before its first edition: most do not take as long.
const FIRST: Duration = Duration::from_secs(1);
/// How many times as long as an edition took nothing is done for the next one.
const REST: u32 = 4;
/// How often a program without news shows that it is there: observers hang up after ten minutes.
const SIGN: Duration = Duration::from_secs(60);

/// How logs become traces, and where these go.
#[derive(Clone, Copy)]
pub(super) struct Conversion<'a> {
    pub(super) args: &'a RunArgs,
    pub(super) session: &'a Session,
    pub(super) object_types: &'a [String],
    /// What the program is called among those that are observed.
    pub(super) name: &'a str,
    pub(super) keep: Keep,
}

impl<'a> Conversion<'a> {
    /// How many bytes a conversion may take.
    pub(super) fn memory(&self) -> usize {
        self.args.analysis.max_memory.saturating_mul(1 << 20)
    }

    /// The trace of a process.
    pub(super) fn trace<'l>(
        &self,
        log: &'l Log,
        symbols: &'l Symbols,
        spec_vars: &'l [(String, Variable)],
        title: &str,
        progress: &mut dyn FnMut(u64),
    ) -> anyhow::Result<LogTrace<'l>>
    where
        'a: 'l,
    {
        let conversion = LogConversion {
            log,
            symbols,
            spec_vars,
            object_types: self.object_types,
            trusted: &self.args.trust,
            keep: self.keep,
            memory: self.memory(),
        };
        conversion.read(title.to_owned(), progress).with_context(|| super::parts::unusable(title))
    }

    /// Introduces a process of the program to observers.
    fn open(&self, to: &Destination, trace: &dyn TraceInput) -> anyhow::Result<Sending> {
        let order = trace.open()?.remarks().order;
        self.sending(to, order, true)
    }

    /// The same for a trace of whatever origin.
    pub(super) fn sending(
        &self,
        to: &Destination,
        order: foresee_trace::FileOrder,
        has_editions: bool,
    ) -> anyhow::Result<Sending> {
        let pace = Pace { frame_events: FRAME_EVENTS, rate: None };
        Sending::open(to, &self.args.publish, pace, self.name, order, has_editions)
    }
}

/// A process of the program whose log grows.
struct Growing {
    /// How long its log was at the last edition.
    size: u64,
    /// When there may be another one.
    not_before: Instant,
    /// When something was sent last.
    heard: Instant,
    /// What is sent, or why that ended.
    sending: Option<anyhow::Result<Sending>>,
}

/// The processes that were followed, by the names of their logs.
#[derive(Default)]
pub(super) struct Followed(BTreeMap<OsString, Growing>);

impl Followed {
    /// What has been sent of a process, or why that ended; `None` if nothing has.
    pub(super) fn take(&mut self, tail: &Path) -> Option<anyhow::Result<Sending>> {
        self.0.get_mut(tail.file_name()?)?.sending.take()
    }
}

impl Conversion<'_> {
    /// Follows the logs of a program until it is over. `copies` is an empty folder.
    pub(super) fn follow(
        &self,
        to: &Destination,
        logs: &Path,
        copies: &Path,
        is_over: &AtomicBool,
    ) -> Followed {
        let mut all = Followed::default();
        // Who is to drop events instead of waiting gets them at the end, where they are counted.
        while !self.args.publish.lossy && !is_over.load(Ordering::Relaxed) {
            std::thread::sleep(LOOK);
            // A folder that cannot be read is an error at the end.
            for tail in log::find(logs).unwrap_or_default() {
                let Some(name) = tail.file_name() else { continue };
                let process = all.0.entry(name.to_owned()).or_insert_with(|| Growing {
                    size: 0,
                    not_before: Instant::now() + FIRST,
                    heard: Instant::now(),
                    sending: None,
                });
                self.look(process, to, &tail, copies);
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
            }
        }
        all
    }

    /// Sends another edition if it is time.
    fn look(&self, process: &mut Growing, to: &Destination, tail: &Path, copies: &Path) {
        let now = Instant::now();
        if matches!(process.sending, Some(Err(_))) || now < process.not_before {
            return;
        }
        let Ok(Some(size)) = snapshot::grown(tail) else { return };
        let is_due = size >= process.size.saturating_mul(2);
        if is_due {
            process.size = size;
            let sent = self.edition(process.sending.take(), to, tail, copies);
            let took = now.elapsed();
            (process.not_before, process.heard) = (Instant::now() + took * REST, Instant::now());
            process.sending = sent;
        } else if now.duration_since(process.heard) >= SIGN
            && let Some(Ok(sending)) = &mut process.sending
        {
            process.heard = now;
            if let Err(error) = sending.sign() {
                process.sending = Some(Err(error));
            }
        }
    }

    /// Sends the trace of a process as far as it is known. One that cannot be made is an error at the end.
    fn edition(
        &self,
        sending: Option<anyhow::Result<Sending>>,
        to: &Destination,
        tail: &Path,
        copies: &Path,
    ) -> Option<anyhow::Result<Sending>> {
        let Ok(Some(tail)) = snapshot::copy(tail, copies) else { return sending };
        let Ok(log) = Log::open_within(&tail, self.memory() / 4, self.keep, &mut |_| {}) else {
            return sending;
        };
        let symbols = symbols_of(&log);
        let (spec_vars, missing) = spec_vars(self.session, &symbols);
        let trace = self.trace(&log, &symbols, &spec_vars, self.name, &mut |_| {});
        let Some(trace) = trace.ok().filter(|_| missing.is_none()) else { return sending };
        let mut sending = match sending.unwrap_or_else(|| self.open(to, &trace)) {
            Ok(sending) => sending,
            failed => return Some(failed),
        };
        let sent =
            trace.open().map_err(Into::into).and_then(|mut source| sending.put(&mut *source));
        Some(sent.map(|()| sending))
    }
}
