//! How far a program followed a schedule.

use foresee_rt::format::replay;

/// Whether the schedule was followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// There was none.
    Off,
    /// It was not at its end.
    Following,
    /// To its end.
    Followed,
    /// To the step at which it was to be held, and there it was ended.
    Held,
    /// Only to some step.
    Diverged(Reason),
}

/// Why a schedule could not be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A thread did something else.
    OtherStep,
    /// A thread did the same in another place.
    OtherPlace,
    /// A thread read or wrote another value.
    OtherValue,
    /// The thread was not started.
    NotStarted,
    /// The thread had ended.
    Ended,
    /// Another thread has what the step takes.
    Busy,
    /// All threads slept.
    Stalled,
    /// A thread went on and on, and did not come to its next step.
    Lost,
    /// A thread got what it should have waited for.
    DidNotBlock,
    /// The runtime could not read the schedule.
    Unreadable,
}

/// What a thread did instead of the next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Got {
    /// The thread's index in the schedule.
    pub thread: usize,
    /// The tag of its record; zero if it did nothing.
    pub tag: u8,
    /// The return address.
    pub pc: u64,
    /// The value.
    pub value: u64,
}

/// How far a program followed a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Whether it did.
    pub state: State,
    /// The next of the steps that the runtime was told of.
    pub at: u64,
    /// What a thread did instead.
    pub got: Got,
    /// The addresses of the last two steps that were taken, the later one first.
    pub met: [u64; 2],
}

impl Progress {
    /// From the head of a log.
    pub(crate) fn new(
        [state, reason]: [u32; 2],
        at: u64,
        got: [u64; 4],
        met: [u64; 2],
    ) -> Progress {
        let reason = match reason {
            replay::OTHER_STEP => Reason::OtherStep,
            replay::OTHER_PLACE => Reason::OtherPlace,
            replay::OTHER_VALUE => Reason::OtherValue,
            replay::NOT_STARTED => Reason::NotStarted,
            replay::ENDED => Reason::Ended,
            replay::BUSY => Reason::Busy,
            replay::DID_NOT_BLOCK => Reason::DidNotBlock,
            replay::UNREADABLE => Reason::Unreadable,
            replay::LOST => Reason::Lost,
            _ => Reason::Stalled,
        };
        let state = match state {
            replay::FOLLOWING => State::Following,
            replay::FOLLOWED => State::Followed,
            replay::HELD => State::Held,
            replay::DIVERGED => State::Diverged(reason),
            _ => State::Off,
        };
        let [thread, tag, pc, value] = got;
        let got = Got { thread: thread as usize, tag: tag as u8, pc, value };
        Progress { state, at, got, met }
    }
}
