//! Answers directly from the definitions, for traces of about a dozen events.
//!
//! Nothing here is fast, and nothing is shared with the analyses: an oracle that uses the code it
//! judges would agree with every mistake.
//!
//! | question | answer |
//! |---|---|
//! | could these events be an execution? | [`wellformed`] |
//! | which event comes before which? | [`Order`] |
//! | in which orders can the events happen? | [`for_each_run`], [`count_runs`] |
//! | what is true of all cuts, or of some run? | [`Ideals`], [`pattern_predictable`] |
//! | what else could happen if locks only exclude, and reads see what they saw? | [`Reorderings`] |
//! | which writes could a read see? | [`possible_writers`], [`final_writers`] |
//! | which accesses could happen at the same time? | [`races()`] |
//! | which threads could block each other in a cycle? | [`deadlocks`], [`endless_waits`],
//! [`endless_acquires`], [`left_waiting`] |
//! | is this one order really possible? | [`is_correct_reordering`] |
//! | which regions are not atomic in every order? | [`atomicity`] |

pub mod atomicity;
mod busy;
mod closure;
mod deadlock;
mod ideals;
mod language;
mod linearisations;
mod notify;
mod races;
mod reorder;
mod replay;
mod schedulable;
pub mod wellformed;

pub use closure::{Order, Relation, reads_from};
pub use deadlock::{deadlocks, deadlocks_reading, endless_acquires, endless_waits, left_waiting};
pub use ideals::{Ideals, matching_events, pattern_predictable};
pub use language::Language;
pub use linearisations::{count_runs, for_each_run};
pub use notify::matched_notifications;
pub use races::{conflict, races, races_reading};
pub use reorder::{Reads, Reorderings, State, Step, final_writers, possible_writers};
pub use replay::is_correct_reordering;
pub use schedulable::racy_places;
