//! The analyses of foresee, and the one loop that feeds them.
//!
//! An [`Analysis`] takes a trace batch by batch and pushes findings to a sink; [`run`] reads the
//! trace once for all analyses asked for. [`info::ALL`] lists and describes them all.

mod analysis;
mod beyond;
mod bindings;
mod calm;
mod candidates;
mod causality;
pub mod checks;
mod confirm;
pub mod correct;
mod explain;
pub mod info;
mod initial;
mod kept;
pub mod lattice;
mod memory;
mod monitorability;
mod needs;
pub mod nondeterminism;
mod observed;
mod parallel;
pub mod pattern;
mod published;
pub mod reorder;
mod runner;
pub mod session;
mod settled;
mod shares;
mod sites;
mod users;

pub use analysis::{
    ANALYSES, Analysed, Analysis, AnalysisError, AnalysisKind, Conclusion, End, Out, Pass, Room,
    Stat,
};
pub use candidates::{Candidates, Early};
pub use causality::Concurrency;
pub use confirm::{Confirmer, OtherRun, Reordered, Unconfirmed, confirm, confirm_match};
pub use initial::learn_initial_values;
pub use kept::Kept;
pub use memory::MemoryLimit;
pub use monitorability::{Monitorability, MonitorabilityOptions, ScheduleVerdict};
pub use observed::{Observed, Watched};
pub use runner::{Progress, Summary, run};
pub use sites::{complete, complete_from};
