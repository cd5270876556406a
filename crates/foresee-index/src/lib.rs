//! An index of a trace: whether some reordering of it matches a pattern, in microseconds and
//! without reading the trace again.
//!
//! A [`Builder`] makes one in a single pass; [`Index`] opens it, and [`Question`] asks it. What is
//! kept, and why it is enough:
//!
//! - for each operation, target and thread the times of its events (a *chain*);
//! - for each pair of threads, when one learned how much of the other: from this follows the first
//!   event of any thread that comes after a given event;
//! - where each event stands in the trace.
//!
//! The greedy search (`query.rs`) then needs two binary searches for each pair of positions.
//! `docs/formats/index.md` tells what stands where in the file.

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
pub use identity::{Digest, Identity, Stat, Witnessed};
pub use page::ReadAt;
pub use query::{Answer, Question, Unsupported};
pub use reader::{Census, Index, Part};
