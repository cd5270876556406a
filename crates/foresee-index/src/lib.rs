//! An index of a trace: it answers in microseconds, without reading the trace again, whether some
//! reordering of the trace matches a pattern.
//!
//! A [`Builder`] builds it in a single pass; [`Index`] opens it, and [`Question`] is a query. The
//! index stores:
//!
//! - for each operation, target and thread, the times of its events (a *chain*);
//! - for each pair of threads, when one learned how much of the other, which determines the first
//!   event of any thread that comes after a given event;
//! - the position of each event in the trace.
//!
//! The greedy search (`query.rs`) needs two binary searches for each pair of positions.
//! `docs/formats/index.md` describes the file format.

mod build;
mod error;
mod header;
mod identity;
mod list;
mod page;
mod query;
mod reader;
mod streams;

pub use build::{About, Builder};
pub use error::IndexError;
pub use identity::{Digest, Identity, IdentityReader, Stat};
pub use page::ReadAt;
pub use query::{Answer, Question, Unsupported};
pub use reader::{Census, Index, Part};
