//! foresee predicts concurrency failures from a run that passed.
//!
//! A multithreaded program ran once and nothing went wrong. foresee takes what its threads did,
//! keeps the causal order instead of the one order that was seen, and checks every other order that
//! the same causality allows. Each prediction comes with a concrete schedule, which independent code
//! has confirmed.
//!
//! # Ten lines
//!
//! A trace and questions go into a [`Session`]; a [`Report`] comes out:
//!
//! ```
//! use foresee::{Check, Session};
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("run.std");
//! # std::fs::write(&path, "main|w(ready)=1|main.c:7\nworker|r(ready)=1|main.c:12\n")?;
//! let trace = foresee::open(&path)?;
//! let report = Session::new(&trace).check(Check::Race).run()?;
//! assert_eq!(report.findings().len(), 1);
//! println!("{report}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `println!` shows what the command-line tool would print: where the two accesses are, which locks
//! were held, and the schedule that brings them together.
//!
//! # Specifications
//!
//! A specification says what must hold of every run. The language has past- and future-time logic,
//! regular expressions, patterns and automata:
//!
//! ```
//! use foresee::{FindingKind, Recorder, Session};
//!
//! // A controller lands if it has approval; another thread switches the radio off.
//! let recorder = Recorder::new();
//! let (landing, approved) = (recorder.var("landing", 0), recorder.var("approved", 0));
//! let radio = recorder.var("radio", 1);
//! let watcher = recorder.fork("watcher");
//! approved.set(radio.get());
//! if approved.get() == 1 {
//!     landing.set(1);
//! }
//! std::thread::scope(|scope| {
//!     scope.spawn(|| {
//!         let _running = watcher.begin();
//!         radio.set(0);
//!     });
//! });
//!
//! // In this run the radio went off after the landing. Nothing forced that order.
//! let trace = recorder.trace()?;
//! let report = Session::new(&trace)
//!     .spec("property safe: start(landing == 1) -> [start(approved == 1), end(radio == 1))")?
//!     .run()?;
//! assert_eq!(report.findings()[0].kind, FindingKind::Predicted);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Spec::open`] reads one from a file, and a [`Spec`] can be used in many sessions.
//!
//! # Limits
//!
//! By default each search may take 30 seconds, 1 GiB and all cores. [`Limits`] says otherwise:
//!
//! ```
//! use foresee::{Limits, Recorder, Session};
//!
//! let trace = Recorder::new().trace()?;
//! let limits = Limits { time: None, cores: 1, ..Limits::default() };
//! let report = Session::new(&trace).limits(limits).run()?;
//! # let _ = report;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Monitors of your own
//!
//! A type that implements [`Monitor`] takes part in monitoring and in prediction like a property of
//! any logic; `examples/monitor.rs` has one in under thirty lines.
//!
//! # What an answer means
//!
//! - A finding is a promise that a real schedule exists, provided that the trace holds all shared
//!   accesses and all synchronisation of a sequentially consistent execution.
//! - An empty list is a promise only if [`Report::is_complete`] says so. Otherwise the report says
//!   what was left out.
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | `capture` | [`capture`](foresee_capture): building and running C and C++ programs so that they are recorded |
//! | `index` | [`index`](foresee_index): patterns answered in microseconds, without reading the trace again |
//! | `observe` | [`observe`](foresee_observe): a server that programs report to while they run |
//!
//! None of them is on by default.
#![cfg_attr(
    not(all(feature = "capture", feature = "index", feature = "observe")),
    allow(rustdoc::broken_intra_doc_links)
)]

/// The programs of the page for library users are tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/library.md")]
struct LibraryPage;

mod input;
mod recorder;
mod session;
mod spec;

#[cfg(feature = "capture")]
pub use foresee_capture as capture;
#[cfg(feature = "index")]
pub use foresee_index as index;
#[cfg(feature = "observe")]
pub use foresee_observe as observe;

pub use foresee_predict::session::{BadSpec, Limits, SessionError, Settings};
pub use foresee_spec::custom::CustomMonitor as Monitor;
pub use foresee_trace::{
    Detail, Fact, Finding, FindingKind, Fingerprint, Location, Outcome, ReadError, Role, Site,
    Space, Trace, TraceInput, Value, Verdict, Witness,
};
pub use input::{TraceFile, open};
pub use recorder::{
    Argument, Child, Fork, JoinHandle, Mutex, MutexGuard, RecordError, Recordable, Recorder,
    Running, Var,
};
pub use session::{Check, Report, Session};
pub use spec::{Spec, SpecError};
