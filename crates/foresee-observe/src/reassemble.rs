//! Puts the frames of one program, from any connection and in any order, back in order.
//!
//! Memory is bounded in two halves. The next frames in order wait in the *queue*; frames that have
//! overtaken others are held *early*, until the gap before them is filled and they join the queue.
//! A connection whose frame finds no room in its half is not read until there is room, so the
//! sender has to wait, too. All programs together have a budget besides; where that is used up, each
//! program goes on with one frame at a time.
//!
//! # Why no connection waits forever
//! The next frame in order needs only room in the queue, and the consumer of the queue never blocks
//! on senders. So the next frame is always accepted, whichever connection it arrives on. Early
//! frames wait for it; a connection that waits with an early frame cannot deliver the missing one.
//! If all connections wait like that, and no more are announced, none can: the program is aborted
//! with an error that says so. In every other case some connection is being read, and it delivers
//! the frame, ends, or is closed by the time limits.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use foresee_formats::native::Kind;
use foresee_support::budget::BudgetPart;

use crate::limits::Limits;
use crate::wire::Numbered;

/// What the consumer takes from the queue.
#[derive(Debug)]
pub(crate) enum Taken {
    /// The next frame.
    Frame(Numbered),
    /// This many events were dropped here because there was no room.
    Lost(u64),
    /// No more frames will come, and there was no end mark.
    Ended(String),
    /// The observer is stopping.
    Stopped,
}

/// How often connections that wait for memory that other programs hold look for it.
const TICK: Duration = Duration::from_millis(20);

/// The reply to connections that come too late.
const TOO_LATE: &str = "the program was considered over before this frame arrived";

/// The current state of a program's buffers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// The number of buffered bytes, in order or behind a gap.
    pub bytes: usize,
    /// The number of connections that can still send.
    pub connections: usize,
    /// The number of frames behind a gap.
    pub early: usize,
}

#[derive(Debug, Default)]
struct State {
    /// The number of the first frame that has never been in the queue.
    next: u64,
    queue: VecDeque<Waiting>,
    queued: usize,
    early: BTreeMap<u64, Waiting>,
    held: usize,
    /// Connections that can still send.
    open: usize,
    /// The early frames that connections are blocked on.
    stuck: Vec<u64>,
    /// The number of connections that the program announced, and of those that came.
    channels: usize,
    arrived: usize,
    /// The time since which there has been no connection.
    quiet_since: Option<Instant>,
    /// The consumer has been notified that no more frames will come, so none may.
    is_closed: bool,
    /// The program is over, successfully or with an error.
    over: Option<Option<String>>,
    /// More frames came out of order than may be buffered.
    overflow: Option<u64>,
    stopping: bool,
    /// The number of frames that the consumer has stored.
    stored: u64,
    /// The first dropped frame: nothing after it is usable.
    gap: Option<u64>,
    /// The consumer has reached the gap.
    losing: bool,
    /// The number of dropped events.
    dropped: u64,
    /// What all frames may take, besides their own limits.
    part: Option<BudgetPart>,
}

#[derive(Debug)]
enum Waiting {
    Frame(Numbered),
    Lost(u64),
}

impl State {
    /// Why no more frames are accepted, if so.
    fn refusal(&self) -> Option<String> {
        match &self.over {
            Some(Some(error)) => Some(error.clone()),
            Some(None) => Some(TOO_LATE.to_owned()),
            None if self.is_closed => Some(TOO_LATE.to_owned()),
            None => None,
        }
    }

    /// Takes what is needed for all bytes and this many more from the budget; `false` if there is not
    /// enough.
    fn charge(&mut self, more: usize) -> bool {
        let bytes = self.queued + self.held + more;
        self.part.as_mut().is_none_or(|part| part.take(bytes))
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
    /// Signals connections that deliver frames or wait until theirs are stored.
    room: Condvar,
    /// Signals the consumer.
    ready: Condvar,
    half: usize,
    lossy: bool,
    linger: Duration,
}

impl Reassembler {
    /// Starts with frame `first`. One connection is expected; if another observer has stored
    /// frames, it is awaited only for a limited time.
    pub(crate) fn new(
        limits: &Limits,
        first: u64,
        is_resumed: bool,
        part: Option<BudgetPart>,
    ) -> Reassembler {
        let quiet_since = is_resumed.then(Instant::now);
        let state = State { next: first, stored: first, quiet_since, part, ..State::default() };
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
        // The state is consistent even if a thread has panicked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a connection of a program that announces this many; returns the first frame that
    /// is not stored, or the reason for the refusal.
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

    /// A connection can no longer send.
    pub(crate) fn disconnect(&self) {
        let mut state = self.lock();
        state.open -= 1;
        if state.open == 0 {
            state.quiet_since = Some(Instant::now());
        }
        // Connections blocked on early frames must check whether any other is left to wait for.
        self.room.notify_all();
        self.ready.notify_all();
    }

    /// Accepts a frame unless it is a duplicate; blocks until there is room for it. The error says
    /// why no more frames are accepted.
    pub(crate) fn accept(&self, frame: Numbered) -> Result<(), String> {
        let mut state = self.lock();
        let (number, size) = (frame.number, frame.bytes.len());
        loop {
            if state.gap.is_some_and(|gap| number > gap) {
                // The program must not notice.
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
            if has_room && state.charge(size) {
                self.put(&mut state, number, Waiting::Frame(frame));
                return Ok(());
            }
            if has_room && is_next && state.queue.is_empty() && !self.lossy {
                // Other programs hold all memory. The frame goes on in that of its connection, which
                // reads no other one meanwhile.
                self.put(&mut state, number, Waiting::Frame(frame));
                while !state.queue.is_empty() && state.refusal().is_none() {
                    state = self.wait(state);
                }
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
            // A connection blocked on what is now the next frame may not have noticed yet; and
            // while the queue is being emptied, there may be room again.
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

    /// Waits until something changes; other programs do not say when they need less memory.
    fn wait<'s>(&self, state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        self.room.wait_timeout(state, TICK).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Moves frames that fit to their place.
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

    /// The next frame, as soon as it is available.
    pub(crate) fn take(&self) -> Taken {
        let mut state = self.lock();
        loop {
            if let Some(item) = state.queue.pop_front() {
                state.queued -= item.bytes();
                state.charge(0);
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
                    "frame {next} is missing, and {} bytes of early frames are all that \
                     may wait: raise --memory or --total-memory, or send more nearly in order",
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

    /// Records that this many frames are stored.
    pub(crate) fn stored(&self, frames: u64) {
        self.lock().stored = frames;
        self.room.notify_all();
    }

    /// Blocks until everything before frame `end` is stored or useless; returns how much is stored,
    /// or why it never will be. `None` if the observer is stopping.
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

    /// Ends the program, successfully or with an error; accepts no more frames.
    pub(crate) fn end(&self, error: Option<String>) {
        let mut state = self.lock();
        state.over.get_or_insert(error);
        state.queue.clear();
        state.early.clear();
        (state.queued, state.held, state.part) = (0, 0, None);
        self.room.notify_all();
        self.ready.notify_all();
    }

    /// Stops the observer after the queue has been consumed.
    pub(crate) fn stop(&self) {
        self.lock().stopping = true;
        self.room.notify_all();
        self.ready.notify_all();
    }

    /// Whether it is pointless to wait for frames.
    pub(crate) fn is_over(&self) -> bool {
        let state = self.lock();
        state.over.is_some() && !state.losing
    }

    /// The number of dropped events.
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
        let all = Reassembler::new(&limits(1 << 20), 0, false, None);
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
        let all = Arc::new(Reassembler::new(&limits(4 * 116), 0, false, None));
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
        // The first connection blocks on frame 9; the second delivers what is missing.
        let all = Arc::new(Reassembler::new(&limits(2 * 116), 0, false, None));
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
        let all = Arc::new(Reassembler::new(&limits(2 * 116), 0, false, None));
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
        let all = Reassembler::new(&Limits { lossy: true, ..limits(2 * 116) }, 0, false, None);
        all.connect(1).unwrap();
        (0..5).for_each(|number| assert_eq!(all.accept(frame(number, 100)), Ok(())));
        assert_eq!(number(all.take()), Some(0));
        assert!(matches!(all.take(), Taken::Lost(1)));
        assert_eq!(all.dropped(), 4);
    }
}
