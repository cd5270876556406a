//! The test kit of foresee, also used for bug reports.
//!
//! - [`trace!`] is a notation for traces.
//! - [`oracle`] answers questions about tiny traces directly from the definitions, slowly. It
//!   shares
//!   no code with the analyses that are compared with it.
//! - [`random_trace`] is a tiny random trace, different for every seed; see
//!   [`foresee_trace::generate`] for larger ones.
//! - [`asynchronous`] runs programs whose actions are noted without stopping them.
//! - [`programs`] are little programs, right and faulty, that run in any schedule.
//! - [`corpus`] reads the worked examples in `testdata/cases`, each with what every analysis is
//!   expected to say about it.
//! - [`shrink`] makes a failing trace small enough to look at.
//! - [`tools`] finds the compilers that captured programs are built with.
//!
//! ```
//! use foresee_testkit::oracle::{possible_writers, Order, Relation};
//! use foresee_testkit::trace;
//!
//! let trace = trace! { T1: acq(l), w(x)=1, rel(l); T2: acq(l), r(x)=1, rel(l) };
//! // The lock orders the sections as they were observed ...
//! assert!(Order::new(&trace, Relation::Mazurkiewicz).before(1, 4));
//! // ... but they could also run in reverse order, and then the read sees no write.
//! assert!(possible_writers(&trace)[4].contains(&None));
//! ```

pub mod asynchronous;
pub mod corpus;
pub mod correct;
mod families;
mod notation;
pub mod oracle;
pub mod programs;
mod relax;
mod seeds;
mod shrink;
pub mod tools;

pub use families::{Family, families};
pub use notation::parse_trace;
pub use relax::relaxed;
pub use seeds::{enough, seeds, seeds_in};
pub use shrink::{only, shrink};

use foresee_trace::Trace;
use foresee_trace::generate::{Config, Generator};

/// The trace that `config` describes.
///
/// # Panics
/// If `config` is invalid.
pub fn generated(config: Config) -> Trace {
    let mut generator = Generator::new(config).unwrap_or_else(|error| panic!("{error}"));
    Trace::load(&mut generator).unwrap_or_else(|error| panic!("{error}"))
}

/// A tiny random trace, from [`Config::small`].
pub fn random_trace(seed: u64) -> Trace {
    generated(Config::small(seed))
}
