//! foresee
mod recorder;
pub use recorder::{
    Argument, Child, Fork, JoinHandle, Mutex, MutexGuard, RecordError, Recordable, Recorder,
    Running, Var,
};
