//! Frames of one program, from any connection and in any order, back in their order.
//!
//! Memory is bounded in two halves. Frames that are next in line wait in the *queue*; frames that
//! have overtaken others are held *early*, until the gap before them is filled and they join the queue. A connection whose frame finds no room in its half is not
//! read until there is, so that the sender has to wait, too.
//!
//! # Why nobody waits for ever
//! The frame that is next needs only room in the queue, and whoever empties the queue waits for
//! nobody. So the frame that is next always gets in, on whatever connection it arrives. Early
//! frames wait for it; a connection that waits with an early frame cannot bring the one that is
//! missing. If all connections wait like that, and no more are announced, then none can: the
//! program is given up with an error that says so. In every other case some connection is being
//! read, and either brings the frame, or ends, or is ended by the time limits.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use foresee_formats::native::Kind;

use crate::limits::Limits;
use crate::wire::Numbered;

/// What the queue holds.
#[derive(Debug)]
pub(crate) enum Taken {
    /// The next frame.
    Frame(Numbered),
    /// So many events were dropped here because there was no room.
    Lost(u64),
    /// Nothing more will come, and there was no end mark.
    Ended(String),
    /// The observer is about to stop.
    Stopped,
}

/// What is said to those who come too late.
const TOO_LATE: &str = "the program was taken to be over before this came";

/// How things stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// How many bytes of frames wait, in order or behind a gap.
    pub bytes: usize,
    /// How many connections can still send.
    pub connections: usize,
    /// How many frames wait behind a gap.
    pub early: usize,
}

#[derive(Debug, Default)]
struct State {
    /// The number of the first frame that is not in the queue and never was.
    next: u64,
    queue: VecDeque<Waiting>,
    queued: usize,
    early: BTreeMap<u64, Waiting>,
    held: usize,
    /// Connections that can still send.
    open: usize,
    /// The early frames with which connections wait.
    stuck: Vec<u64>,
    /// How many connections the program announced, and how many there were.
    channels: usize,
    arrived: usize,
    /// Since when there has been no connection.
    quiet_since: Option<Instant>,
    /// The one who takes frames has been told that no more will come, so no more may.
    is_closed: bool,
    /// The program is over, well or with an error.
    over: Option<Option<String>>,
    /// More came out of order than may be kept.
    overflow: Option<u64>,
    stopping: bool,
    /// Frames that the consumer has stored.
    stored: u64,
    /// The first frame that was dropped: nothing that follows it is of use.
    gap: Option<u64>,
    /// The one who takes frames has come there.
    losing: bool,
    /// How many events were dropped.
    dropped: u64,
}

#[derive(Debug)]
enum Waiting {
    Frame(Numbered),
    Lost(u64),
}

impl State {
    /// Why nothing is taken any more, if that is so.
    fn refusal(&self) -> Option<String> {
        match &self.over {
            Some(Some(error)) => Some(error.clone()),
            Some(None) => Some(TOO_LATE.to_owned()),
            None if self.is_closed => Some(TOO_LATE.to_owned()),
            None => None,
        }
    }
}

impl Waiting {
    fn bytes(&self) -> usize {
        match self {
            Waiting::Frame(frame) => frame.bytes.len(),
            Waiting::Lost(_) => 0,
        }
    }
}

/// Puts frames back in order.
#[derive(Debug)]
pub(crate) struct Reassembler {
    state: Mutex<State>,
    /// Something changed for those who bring frames, or wait until theirs are stored.
    room: Condvar,
    /// Something changed for the one who takes them.
    ready: Condvar,
    half: usize,
    lossy: bool,
    linger: Duration,
}

impl Reassembler {
    /// Starts with frame `first`. One connection is about to come; if frames were stored by another
    /// observer, it is waited for only so long.
    pub(crate) fn new(limits: &Limits, first: u64, is_resumed: bool) -> Reassembler {
        let quiet_since = is_resumed.then(Instant::now);
        let state = State { next: first, stored: first, quiet_since, ..State::default() };
        Reassembler {
            state: Mutex::new(state),
            room: Condvar::new(),
            ready: Condvar::new(),
            half: (limits.memory / 2).max(1),
            lossy: limits.lossy,
            linger: limits.linger,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A thread that panicked has left the state as it was between two steps.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection has arrived, of a program that announces so many; the first frame that is not
    /// stored, or the reason why nothing is wanted.
    pub(crate) fn connect(&self, channels: u16) -> Result<u64, String> {
        let mut state = self.lock();
        if let Some(why) = state.refusal() {
            return Err(why);
        }
        state.open += 1;
        state.arrived += 1;
        state.channels = state.channels.max(usize::from(channels));
        state.quiet_since = None;
        Ok(state.stored)
    }

    /// A connection can send no more.
    pub(crate) fn disconnect(&self) {
        let mut state = self.lock();
        state.open -= 1;
        if state.open == 0 {
            state.quiet_since = Some(Instant::now());
        }
        // Those who wait with early frames have to see whether anybody is left to wait for.
        self.room.notify_all();
        self.ready.notify_all();
    }

    /// Takes a frame, unless it is known already; waits until there is room for it. An error is the
    /// reason why nothing more is wanted.
    pub(crate) fn accept(&self, frame: Numbered) -> Result<(), String> {
        let mut state = self.lock();
        let (number, size) = (frame.number, frame.bytes.len());
        loop {
            if state.gap.is_some_and(|gap| number > gap) {
                // The program is not to notice.
                state.dropped += frame.events();
                return Ok(());
            }
            if number < state.next || state.early.contains_key(&number) {
                return Ok(());
            }
            if let Some(why) = state.refusal() {
                return Err(why);
            }
            let is_next = number == state.next;
            let has_room = match is_next {
                true => state.queue.is_empty() || state.queued + size <= self.half,
                false => {
                    state.held + size <= self.half
                        && state.queued + state.held + size <= 2 * self.half
                }
            };
            if has_room {
                self.put(&mut state, number, Waiting::Frame(frame));
                return Ok(());
            }
            if self.lossy && matches!(frame.header.kind, Kind::Events | Kind::Names) {
                let events = frame.events();
                state.dropped += events;
                state.gap = Some(number);
                self.put(&mut state, number, Waiting::Lost(events));
                return Ok(());
            }
            if is_next {
                state = self.wait(state);
                continue;
            }
            state.stuck.push(number);
            // One that waits with what is next by now has yet to notice; and while the queue is
            // emptied, there may be room again.
            let all_wait = state.stuck.len() >= state.open && !state.stuck.contains(&state.next);
            if all_wait && state.queue.is_empty() && state.arrived >= state.channels {
                let next = state.next;
                state.overflow.get_or_insert(next);
                self.ready.notify_all();
            }
            state = self.wait(state);
            let waited = state.stuck.iter().position(|&waits| waits == number);
            waited.map(|at| state.stuck.swap_remove(at));
        }
    }

    fn wait<'s>(&self, state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        self.room.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts what there is room for in its place.
    fn put(&self, state: &mut State, number: u64, item: Waiting) {
        if number != state.next {
            state.held += item.bytes();
            state.early.insert(number, item);
            return;
        }
        state.queued += item.bytes();
        state.queue.push_back(item);
        state.next += 1;
        let mut filled = false;
        while let Some(item) = {
            let next = state.next;
            state.early.remove(&next)
        } {
            state.held -= item.bytes();
            state.queued += item.bytes();
            state.queue.push_back(item);
            state.next += 1;
            filled = true;
        }
        self.ready.notify_all();
        if filled || !state.stuck.is_empty() {
            self.room.notify_all();
        }
    }

    /// The next frame, as soon as it is there.
    pub(crate) fn take(&self) -> Taken {
        let mut state = self.lock();
        loop {
            if let Some(item) = state.queue.pop_front() {
                state.queued -= item.bytes();
                self.room.notify_all();
                return match item {
                    Waiting::Frame(frame) => Taken::Frame(frame),
                    Waiting::Lost(events) => {
                        state.losing = true;
                        Taken::Lost(events)
                    }
                };
            }
            if let Some(next) = state.overflow {
                state.is_closed = true;
                return Taken::Ended(format!(
                    "frame {next} is missing, and {} bytes that came before their turn are all that \
                     may wait: raise --memory, or send more nearly in order",
                    state.held
                ));
            }
            if state.stopping {
                return Taken::Stopped;
            }
            let mut patience = Duration::from_secs(3600);
            if let Some(since) = state.quiet_since {
                match self.linger.checked_sub(since.elapsed()).filter(|left| !left.is_zero()) {
                    Some(left) => patience = left,
                    None => {
                        let mut why = "the connection ended without a goodbye".to_owned();
                        if !state.early.is_empty() {
                            let (next, early) = (state.next, state.early.len());
                            why += &format!("; {early} frames came, but frame {next} did not");
                        }
                        state.is_closed = true;
                        return Taken::Ended(why);
                    }
                }
            }
            let waited = self.ready.wait_timeout(state, patience);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// So many frames are stored.
    pub(crate) fn stored(&self, frames: u64) {
        self.lock().stored = frames;
        self.room.notify_all();
    }

    /// Waits until everything before frame `end` is stored or of no use, and says how much is; or
    /// why it never will be. Nothing if the observer is about to stop.
    pub(crate) fn wait_until_stored(&self, end: u64) -> Option<Result<u64, String>> {
        let mut state = self.lock();
        loop {
            if let Some(Some(error)) = &state.over {
                return Some(Err(error.clone()));
            }
            if state.stored >= end || state.losing {
                return Some(Ok(state.stored));
            }
            if state.over.is_some() {
                return Some(Err(TOO_LATE.to_owned()));
            }
            if state.stopping {
                return None;
            }
            state = self.wait(state);
        }
    }

    /// Nothing more is taken: the program is over, well or with an error.
    pub(crate) fn end(&self, error: Option<String>) {
        let mut state = self.lock();
        state.over.get_or_insert(error);
        state.queue.clear();
        state.early.clear();
        (state.queued, state.held) = (0, 0);
        self.room.notify_all();
        self.ready.notify_all();
    }

    /// What is in the queue is still handed out, then the observer stops.
    pub(crate) fn stop(&self) {
        self.lock().stopping = true;
        self.room.notify_all();
        self.ready.notify_all();
    }

    /// Whether there is no use in waiting for frames.
    pub(crate) fn is_over(&self) -> bool {
        let state = self.lock();
        state.over.is_some() && !state.losing
    }

    /// How many events were dropped.
    pub(crate) fn dropped(&self) -> u64 {
        self.lock().dropped
    }

    pub(crate) fn backlog(&self) -> Backlog {
        let state = self.lock();
        Backlog {
            bytes: state.queued + state.held,
            connections: state.open,
            early: state.early.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use foresee_formats::native::FrameHeader;

    use super::*;

    fn frame(number: u64, size: usize) -> Numbered {
        let payload = vec![0; size];
        let header = FrameHeader::of(Kind::Events, 1, &payload).unwrap();
        Numbered { number, header, bytes: [&header.encode()[..], &payload].concat() }
    }

    fn number(taken: Taken) -> Option<u64> {
        match taken {
            Taken::Frame(frame) => Some(frame.number),
            _ => None,
        }
    }

    fn limits(memory: usize) -> Limits {
        Limits { memory, linger: Duration::from_millis(20), ..Limits::default() }
    }

    #[test]
    fn any_order_becomes_the_order_and_copies_are_dropped() {
        let all = Reassembler::new(&limits(1 << 20), 0, false);
        all.connect(1).unwrap();
        for number in [3, 1, 1, 0, 2, 0, 3] {
            assert_eq!(all.accept(frame(number, 10)), Ok(()));
        }
        for expected in 0..4 {
            assert_eq!(number(all.take()), Some(expected));
        }
        all.disconnect();
        let Taken::Ended(why) = all.take() else { panic!() };
        assert_eq!(why, "the connection ended without a goodbye");
    }

    #[test]
    fn a_sender_that_is_too_fast_waits() {
        let all = Arc::new(Reassembler::new(&limits(4 * 116), 0, false));
        all.connect(1).unwrap();
        let sender = std::thread::spawn({
            let all = Arc::clone(&all);
            move || (0..1000).for_each(|number| assert_eq!(all.accept(frame(number, 100)), Ok(())))
        });
        for expected in 0..1000 {
            assert!(all.backlog().bytes <= 4 * 116);
            assert_eq!(number(all.take()), Some(expected));
        }
        sender.join().unwrap();
    }

    #[test]
    fn the_missing_frame_gets_in_while_others_wait() {
        // The first connection waits with frame 9; the second brings what is missing.
        let all = Arc::new(Reassembler::new(&limits(2 * 116), 0, false));
        (0..2).for_each(|_| assert!(all.connect(2).is_ok()));
        let early = std::thread::spawn({
            let all = Arc::clone(&all);
            move || [8, 9].map(|number| all.accept(frame(number, 100)))
        });
        let taker = std::thread::spawn({
            let all = Arc::clone(&all);
            move || (0..10).map(|_| number(all.take())).collect::<Vec<_>>()
        });
        for number in 0..8 {
            assert_eq!(all.accept(frame(number, 100)), Ok(()));
        }
        assert_eq!(early.join().unwrap(), [Ok(()), Ok(())]);
        assert_eq!(taker.join().unwrap(), (0..10).map(Some).collect::<Vec<_>>());
    }

    #[test]
    fn what_cannot_be_put_in_order_is_given_up() {
        let all = Arc::new(Reassembler::new(&limits(2 * 116), 0, false));
        all.connect(1).unwrap();
        let sender = std::thread::spawn({
            let all = Arc::clone(&all);
            move || (1..5).map(|number| all.accept(frame(number, 100))).collect::<Vec<_>>().pop()
        });
        let Taken::Ended(why) = all.take() else { panic!() };
        assert!(why.starts_with("frame 0 is missing"), "{why}");
        all.end(Some(why.clone()));
        assert_eq!(sender.join().unwrap(), Some(Err(why)));
    }

    #[test]
    fn if_asked_for_events_are_dropped_instead() {
        let all = Reassembler::new(&Limits { lossy: true, ..limits(2 * 116) }, 0, false);
        all.connect(1).unwrap();
        (0..5).for_each(|number| assert_eq!(all.accept(frame(number, 100)), Ok(())));
        assert_eq!(number(all.take()), Some(0));
        assert!(matches!(all.take(), Taken::Lost(1)));
        assert_eq!(all.dropped(), 4);
    }
}
