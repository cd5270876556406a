//! The other end: sends a stored trace as a running program would.

use std::cell::Cell;
use std::io::{self, BufWriter, Read, Write};
use std::rc::Rc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use foresee_formats::native::{FrameHeader, HEADER, Kind, write_frames};
use foresee_trace::{Batch, EventSource, FileOrder, ReadError, Remarks};

use crate::address::{Address, Stream};
use crate::program::{lost, optional};
use crate::wire::{EDITION, Hello, ProgramId, Reply, SIGN, Status, new_secret};

/// How a trace is sent.
#[derive(Clone, Debug)]
pub struct SendOptions {
    /// The address of the observer.
    pub to: Address,
    /// The shared secret that the observer expects.
    pub token: Vec<u8>,
    /// The identifier of the program.
    pub program: ProgramId,
    /// Its name for people.
    pub name: String,
    /// The number of connections.
    pub connections: u16,
    /// The number of events per frame.
    pub frame_events: u32,
    /// The number of events per second.
    pub rate: Option<u64>,
    /// The seed with which frames are reordered.
    pub shuffle: Option<u64>,
    /// How long to retry if the observer is unreachable or full.
    pub retry: Duration,
}

/// The maximum number of frames that are reordered among each other.
const SHUFFLED: usize = 64;

/// Statistics of a sent trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// The number of events of the trace.
    pub events: u64,
    /// The number of frames sent.
    pub frames: u64,
    /// The number of reconnections.
    pub retries: u64,
}

/// Why a trace was not sent.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The trace cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The observer is unreachable, or has gone away.
    #[error("cannot reach an observer at {0}: {1}")]
    Connection(Address, io::Error),
    /// The observer refused it.
    #[error("the observer says: {0}")]
    Refused(String),
    /// The observer refused it for now.
    #[error("the observer says: {0}")]
    Later(String),
}

impl SendError {
    /// Whether a retry may succeed.
    fn may_pass(&self) -> bool {
        matches!(self, SendError::Connection(..) | SendError::Later(_))
    }
}

/// Opens the trace from its start.
pub type Open<'a> = &'a mut dyn FnMut() -> Result<Box<dyn EventSource>, ReadError>;

/// Sends a trace and waits until the observer has it. If the observer goes away, reconnects and
/// sends what it has not stored.
pub fn send(open: Open<'_>, options: &SendOptions) -> Result<Sent, SendError> {
    let mut sent = Sent::default();
    let mut failing: Option<Instant> = None;
    // The first frame that the observer had not stored at the last connection.
    let mut from = 0;
    let secret = new_secret();
    loop {
        let before = from;
        match attempt(open, options, &secret, &mut from, &mut sent) {
            Err(error) if error.may_pass() => {
                if from > before {
                    failing = None;
                }
                if failing.get_or_insert_with(Instant::now).elapsed() >= options.retry {
                    return Err(error);
                }
                sent.retries += 1;
                std::thread::sleep(Duration::from_millis(20).min(options.retry));
            }
            Err(error) => return Err(error),
            Ok(()) => return Ok(sent),
        }
    }
}

fn attempt(
    open: Open<'_>,
    options: &SendOptions,
    secret: &[u8],
    from: &mut u64,
    sent: &mut Sent,
) -> Result<(), SendError> {
    let mut source = open()?;
    let order = source.remarks().order;
    let hello = Hello {
        program: options.program,
        name: options.name.clone(),
        order,
        channels: options.connections.max(1),
        token: options.token.clone(),
        secret: secret.to_vec(),
        is_log: false,
        has_editions: false,
    };
    let failed = |error: io::Error| SendError::Connection(options.to.clone(), error);
    let hello = hello.encode().map_err(failed)?;
    let mut streams = Vec::new();
    let mut stored = u64::MAX;
    for _ in 0..options.connections.max(1) {
        let stream = options.to.connect().map_err(failed)?;
        let mut half = &stream;
        half.write_all(&hello).map_err(failed)?;
        match Reply::read(&mut half).map_err(failed)? {
            Some(Reply { status: Status::Welcome, next, .. }) => stored = stored.min(next),
            // The observer already has everything.
            Some(Reply { status: Status::Farewell, .. }) => return Ok(()),
            Some(reply) => return Err(refused(reply)),
            None => return Err(failed(io::ErrorKind::UnexpectedEof.into())),
        }
        streams.push(stream);
    }
    *from = stored;
    let results: Vec<Result<u64, SendError>> = std::thread::scope(|scope| {
        let mut channels = Vec::new();
        let mut workers = Vec::new();
        for stream in &streams {
            let (channel, frames) = sync_channel::<Vec<u8>>(4);
            channels.push(channel);
            workers.push(scope.spawn(move || deliver(stream, &frames, &options.to)));
        }
        let produced = produce(&mut source, options, stored, channels, sent);
        let mut results: Vec<_> = workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|p| std::panic::resume_unwind(p)))
            .collect();
        results.push(produced.map(|()| 0));
        results
    });
    // The observer's reply explains more than the closed connection.
    let mut failure = None;
    for result in results {
        match result {
            Ok(frames) => sent.frames += frames,
            Err(error) if failure.is_none() || !error.may_pass() => failure = Some(error),
            Err(_) => {}
        }
    }
    failure.map_or(Ok(()), Err)
}

fn refused(reply: Reply) -> SendError {
    match reply.status {
        Status::Later => SendError::Later(reply.text),
        _ => SendError::Refused(reply.text),
    }
}

/// Splits the trace into frames and passes them to the connections; skips those before `from`.
fn produce(
    source: &mut dyn EventSource,
    options: &SendOptions,
    from: u64,
    channels: Vec<SyncSender<Vec<u8>>>,
    sent: &mut Sent,
) -> Result<(), SendError> {
    let chance = options.shuffle.map(fastrand::Rng::with_seed);
    let is_skipping = Rc::new(Cell::new(from > 0));
    let skipping = Rc::clone(&is_skipping);
    let dealer = Dealer { channels, turn: 0, chance, held: Vec::new(), next: 0, from, is_skipping };
    let pace = Pace { frame_events: options.frame_events, rate: options.rate };
    let closed = |_: io::Error| SendError::Connection(options.to.clone(), closed());
    write_paced(source, pace, &skipping, dealer, sent).map_err(|error| match error {
        Unwritten::Read(error) => SendError::Read(error),
        Unwritten::Write(error) => closed(error),
    })
}

/// How large frames are, and how fast they leave.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// The number of events per frame.
    pub frame_events: u32,
    /// The number of events per second.
    pub rate: Option<u64>,
}

/// Why a trace did not leave.
#[derive(Debug, thiserror::Error)]
pub enum Unwritten {
    /// The trace cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// It cannot be passed on.
    #[error(transparent)]
    Write(io::Error),
}

/// Where frames go, each with its number.
trait Frames {
    fn frame(&mut self, header: &FrameHeader, frame: &[u8]) -> io::Result<()>;
}

impl Frames for Dealer {
    fn frame(&mut self, header: &FrameHeader, frame: &[u8]) -> io::Result<()> {
        self.deal(frame.to_vec())?;
        if header.kind == Kind::End { self.finish() } else { Ok(()) }
    }
}

/// Where a trace goes, piece by piece: a queue, or one connection to an observer.
pub trait Outlet: Send {
    /// Takes some bytes of what a connection would carry: a hello, or a frame with its number. With `may_drop`, `false` says
    /// that there is no room for them; otherwise it waits until there is.
    fn put(&mut self, bytes: &[u8], may_drop: bool) -> io::Result<bool>;

    /// Says that this was everything, and waits until it has arrived.
    fn finish(&mut self) -> io::Result<()>;
}

/// A connection to an observer, which makes the sender wait where it cannot follow.
#[derive(Debug)]
pub struct Connection {
    to: Address,
    stream: Stream,
    is_welcome: bool,
}

impl Connection {
    /// Connects.
    pub fn open(to: &Address) -> Result<Connection, SendError> {
        let stream = to.connect().map_err(|error| SendError::Connection(to.clone(), error))?;
        Ok(Connection { to: to.clone(), stream, is_welcome: false })
    }

    /// What the observer says; `error` if it says nothing.
    fn reply(&self, expected: Status, error: io::Error) -> io::Result<()> {
        let mut half = &self.stream;
        Err(io::Error::other(match Reply::read(&mut half) {
            Ok(Some(reply)) if reply.status == expected => return Ok(()),
            Ok(Some(reply)) => refused(reply),
            Ok(None) => SendError::Connection(self.to.clone(), error),
            Err(error) => SendError::Connection(self.to.clone(), error),
        }))
    }
}

impl Outlet for Connection {
    fn put(&mut self, bytes: &[u8], _: bool) -> io::Result<bool> {
        let mut half = &self.stream;
        if let Err(error) = half.write_all(bytes) {
            // The observer may have replied why.
            self.reply(Status::Welcome, error)?;
            return Err(closed());
        }
        // What comes first is the hello.
        if !std::mem::replace(&mut self.is_welcome, true) {
            self.reply(Status::Welcome, closed())?;
        }
        Ok(true)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.stream.finish_writing()?;
        self.reply(Status::Farewell, closed())
    }
}

/// Passes a trace on as one connection of a sender would. If `may_drop`, events that find no room are dropped and counted,
/// with everything after them, as an observer that is told to does; the number is returned besides.
pub fn send_through(
    source: &mut dyn EventSource,
    hello: &Hello,
    pace: Pace,
    may_drop: bool,
    outlet: Box<dyn Outlet>,
) -> Result<(Sent, u64), Unwritten> {
    let mut editions = Editions::begin(hello, outlet)?;
    let sent = editions.put(source, pace, may_drop, true)?;
    editions.finish()?;
    Ok(sent)
}

/// Sends the trace of a program that is still running several times, each time with more of it.
pub struct Editions {
    outlet: Box<dyn Outlet>,
    /// The number of the next frame.
    next: u64,
}

impl Editions {
    /// Introduces the program.
    pub fn begin(hello: &Hello, mut outlet: Box<dyn Outlet>) -> Result<Editions, Unwritten> {
        let hello = hello.encode().map_err(Unwritten::Write)?;
        outlet.put(&hello, false).map_err(Unwritten::Write)?;
        Ok(Editions { outlet, next: 0 })
    }

    /// Sends the trace as far as it is known. If `may_drop`, events that find no room are dropped and counted, with
    /// everything after them; the number is returned besides.
    pub fn put(
        &mut self,
        source: &mut dyn EventSource,
        pace: Pace,
        may_drop: bool,
        is_last: bool,
    ) -> Result<(Sent, u64), Unwritten> {
        let mut sent = Sent::default();
        let counts = Rc::new(Cell::new((self.next, 0)));
        let first = self.next;
        let order = source.remarks().order;
        let through = Through {
            outlet: &mut *self.outlet,
            may_drop,
            is_last,
            order,
            next: first,
            passed: 0,
            dropped: 0,
            counts: Rc::clone(&counts),
        };
        let written = write_paced(source, pace, &Cell::new(false), through, &mut sent);
        let dropped;
        (self.next, dropped) = counts.get();
        written?;
        sent.frames = self.next - first;
        Ok((sent, dropped))
    }

    /// Shows that the program is still there.
    pub fn sign(&mut self) -> io::Result<()> {
        let frame = optional(SIGN, &[])?;
        self.outlet.put(&[&self.next.to_le_bytes()[..], &frame].concat(), false)?;
        self.next += 1;
        Ok(())
    }

    /// Waits until everything has arrived.
    pub fn finish(mut self) -> Result<(), Unwritten> {
        self.outlet.finish().map_err(Unwritten::Write)
    }
}

/// Numbers frames and passes them to an outlet.
struct Through<'o> {
    outlet: &'o mut dyn Outlet,
    may_drop: bool,
    is_last: bool,
    order: FileOrder,
    next: u64,
    /// Events that were passed on, and that were not.
    passed: u64,
    dropped: u64,
    /// Frames and dropped events, at the end.
    counts: Rc<Cell<(u64, u64)>>,
}

impl Through<'_> {
    fn put(&mut self, frame: &[u8], may_drop: bool) -> io::Result<bool> {
        let is_there =
            self.outlet.put(&[&self.next.to_le_bytes()[..], frame].concat(), may_drop)?;
        self.next += u64::from(is_there);
        Ok(is_there)
    }
}

impl Frames for Through<'_> {
    fn frame(&mut self, header: &FrameHeader, frame: &[u8]) -> io::Result<()> {
        if header.kind == Kind::End && !self.is_last {
            self.put(&optional(EDITION, &[])?, false)?;
            self.counts.set((self.next, self.dropped));
            return Ok(());
        }
        let events = if header.kind == Kind::Events { u64::from(header.count) } else { 0 };
        let is_lossy = self.may_drop && matches!(header.kind, Kind::Events | Kind::Names);
        if header.kind == Kind::End && self.dropped > 0 {
            for frame in lost(self.passed, self.dropped, self.order)? {
                self.put(&frame, false)?;
            }
        }
        // What comes after a gap is of no use.
        let is_passed = (self.dropped == 0 || !is_lossy && header.kind != Kind::Remarks)
            && self.put(frame, is_lossy)?;
        match is_passed {
            true => self.passed += events,
            // Names may be dropped, too: something is missing then all the same.
            false => self.dropped += events.max(u64::from(self.dropped == 0)),
        }
        self.counts.set((self.next, self.dropped));
        Ok(())
    }
}

/// Splits the trace into frames. What goes out while it `is_skipping` does not count towards the rate.
fn write_paced<F: Frames>(
    source: &mut dyn EventSource,
    pace: Pace,
    skipping: &Cell<bool>,
    frames: F,
    sent: &mut Sent,
) -> Result<(), Unwritten> {
    let splitter = Splitter { frames, bytes: Vec::new(), begun: false };
    let events = match pace.rate {
        // A hundred frames per second, so that events are not delayed.
        Some(rate) => u32::try_from(rate / 100).unwrap_or(u32::MAX).clamp(1, pace.frame_events),
        None => pace.frame_events,
    };
    let mut sink = write_frames(Box::new(splitter), events);
    // Frames that the observer already has do not count towards the rate.
    let (mut start, mut skipped) = (Instant::now(), 0);
    let mut batch = Batch::default();
    sent.events = 0;
    let closed = Unwritten::Write;
    let remarks = Remarks { order: source.remarks().order, ..Remarks::default() };
    sink.begin(&remarks).map_err(closed)?;
    while source.next_batch(&mut batch)? {
        let mut rest = std::mem::take(&mut batch.events);
        let step = pace.rate.map_or(rest.len(), |_| events as usize);
        while !rest.is_empty() {
            let later = rest.split_off(step.min(rest.len()));
            sent.events += rest.len() as u64;
            batch.events = rest;
            sink.write_batch(&batch, source.names()).map_err(closed)?;
            rest = later;
            if skipping.get() {
                (start, skipped) = (Instant::now(), sent.events);
            } else if let Some(rate) = pace.rate {
                let paced = (sent.events - skipped) as f64;
                let due = Duration::from_secs_f64(paced / rate.max(1) as f64);
                std::thread::sleep(due.saturating_sub(start.elapsed()));
            }
        }
    }
    sink.finish(source.names(), source.remarks()).map_err(closed)
}

fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the connection was closed")
}

/// Splits the output of a native writer into frames.
struct Splitter<F> {
    frames: F,
    bytes: Vec<u8>,
    /// The file header has been seen.
    begun: bool,
}

impl<F: Frames> Write for Splitter<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        if !self.begun && self.bytes.len() >= HEADER {
            self.bytes.drain(..HEADER);
            self.begun = true;
        }
        let mut at = 0;
        while let Some(head) = self.bytes.get(at..).and_then(<[u8]>::first_chunk::<HEADER>) {
            let header = FrameHeader::decode(head, 0).map_err(io::Error::other)?;
            let end = at + HEADER + header.length as usize;
            let Some(frame) = self.bytes.get(at..end) else { break };
            self.frames.frame(&header, frame)?;
            at = end;
        }
        self.bytes.drain(..at);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Numbers frames and passes them to connections, in turn or at random.
struct Dealer {
    channels: Vec<SyncSender<Vec<u8>>>,
    turn: usize,
    chance: Option<fastrand::Rng>,
    /// Frames that wait to be reordered.
    held: Vec<Vec<u8>>,
    next: u64,
    from: u64,
    /// Whether frames are still being skipped.
    is_skipping: Rc<Cell<bool>>,
}

impl Dealer {
    fn deal(&mut self, frame: Vec<u8>) -> io::Result<()> {
        let number = self.next;
        self.next += 1;
        if number < self.from {
            return Ok(());
        }
        self.is_skipping.set(false);
        let numbered = [&number.to_le_bytes()[..], &frame].concat();
        if self.chance.is_none() {
            return self.give(numbered);
        }
        self.held.push(numbered);
        match self.held.len() >= SHUFFLED {
            true => self.give_any(),
            false => Ok(()),
        }
    }

    fn give_any(&mut self) -> io::Result<()> {
        let Some(chance) = &mut self.chance else { return Ok(()) };
        let frame = self.held.swap_remove(chance.usize(..self.held.len()));
        self.turn = chance.usize(..self.channels.len());
        self.give(frame)
    }

    fn give(&mut self, frame: Vec<u8>) -> io::Result<()> {
        let turn = self.turn % self.channels.len();
        self.turn = turn + 1;
        self.channels[turn].send(frame).map_err(|_| closed())
    }

    fn finish(&mut self) -> io::Result<()> {
        while !self.held.is_empty() {
            self.give_any()?;
        }
        Ok(())
    }
}

/// Writes the frames of one connection, and waits for the observer's final reply.
fn deliver(stream: &Stream, frames: &Receiver<Vec<u8>>, to: &Address) -> Result<u64, SendError> {
    let mut count = 0;
    let mut half = stream;
    let written = (|| {
        let mut output = BufWriter::with_capacity(1 << 16, half);
        while let Ok(frame) = frames.recv() {
            output.write_all(&frame)?;
            count += 1;
            // Small frames share a packet only with those that are already available.
            let mut more = frames.try_recv();
            while let Ok(frame) = more {
                output.write_all(&frame)?;
                count += 1;
                more = frames.try_recv();
            }
            output.flush()?;
        }
        output.flush()?;
        stream.finish_writing()
    })();
    let failed = |error| SendError::Connection(to.clone(), error);
    // If writing failed, the observer may have replied why.
    match (Reply::read(&mut half), written) {
        (Ok(Some(Reply { status: Status::Farewell, .. })), _) => {
            let _ = half.read(&mut [0]);
            Ok(count)
        }
        (Ok(Some(reply)), _) => Err(refused(reply)),
        (_, Err(error)) | (Err(error), _) => Err(failed(error)),
        (Ok(None), Ok(())) => Err(failed(closed())),
    }
}
