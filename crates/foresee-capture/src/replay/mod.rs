//! Replay: schedules as files, and programs that follow them.
//!
//! [`Steps`] turns the log of a run into the steps of its threads and an order of events into a [`Schedule`]; [`Schedule`] is
//! the text that people keep (`docs/formats/schedule.md`); [`script`] is what the runtime reads; [`Progress`] is how far it got.

mod moved;
mod progress;
mod schedule;
pub mod script;
mod steps;

pub use foresee_rt::format::checksum;
pub use moved::Line;
pub use progress::{Got, Progress, Reason, State};
pub use schedule::{
    Claim, Flag, Place, Schedule, ScheduleError, ScheduleThread, Step, is_sized, op_name,
};
pub use steps::{NotScheduled, Steps};
