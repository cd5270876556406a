//! Accepts programs and receives their frames.

use std::collections::{HashMap, VecDeque};
use std::io::{self, BufReader, Read, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use foresee_support::budget::{Budget, BudgetPart};

use crate::address::{Address, Listener, Stream};
use crate::limits::Limits;
use crate::program::{LogReader, Opening, Program};
use crate::spool::{Shelf, Spool};
use crate::wire::{Hello, MAX_TOKEN, Numbered, ProgramId, Reply, Status, WireError, is_same_token};

/// Handles observed programs.
pub trait Observer: Send + Sync {
    /// Analyses a program until it is over; called on a separate thread. An error is reported to
    /// the program's senders.
    fn observe(&self, program: &Arc<Program>) -> Result<(), String>;

    /// What reads the log of an agent, which a program sends instead of events; `None` if nothing does.
    fn log_reader(&self) -> Option<Box<dyn LogReader>> {
        None
    }

    /// A sender was refused, or did something wrong.
    fn problem(&self, peer: &str, program: Option<&str>, what: &str);
}

/// How an observer listens.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// The addresses to listen on.
    pub listen: Vec<Address>,
    /// The shared secret that senders must present.
    pub token: Option<String>,
    /// The directory where traces are kept.
    pub keep: Option<PathBuf>,
    /// The resources that one sender may use.
    pub limits: Limits,
}

/// How often waiting threads check whether to continue.
const TICK: Duration = Duration::from_millis(50);
/// How long a stopping observer waits for its connections to close.
const FAREWELL: Duration = Duration::from_secs(2);
/// The reply to senders that may come back.
const STOPPING: &str = "the observer is stopping";
/// What takes memory for each connection or program: frames that arrive, frames that wait, names and
/// analyses.
const PARTS: usize = 4;
/// The number of connections beyond the limit that are told so before they are closed.
const REFUSED: usize = 64;
/// How long a connection that was refused may take to read why.
const PARTING: Duration = Duration::from_secs(1);
/// The number of finished programs that are remembered.
const REMEMBERED: usize = 4096;

struct Shared {
    observer: Arc<dyn Observer>,
    token: Option<String>,
    shelf: Option<Shelf>,
    limits: Limits,
    /// The memory and the disk space that all programs share.
    memory: Arc<Budget>,
    disk: Arc<Budget>,
    stop: AtomicBool,
    connections: AtomicUsize,
    /// Connections beyond the limit that are being told so.
    refused: AtomicUsize,
    programs: Mutex<Programs>,
    changed: Condvar,
}

#[derive(Default)]
struct Programs {
    running: HashMap<ProgramId, Arc<Program>>,
    /// Finished programs, and their total number.
    over: VecDeque<ProgramId>,
    finished: u64,
}

/// A running observer.
pub struct Server {
    shared: Arc<Shared>,
    listening: Vec<Address>,
    threads: Vec<JoinHandle<()>>,
}

/// The state of all programs.
#[derive(Clone, Debug)]
pub struct Listening {
    /// The programs that are not over.
    pub running: Vec<Arc<Program>>,
    /// The number of programs that are over.
    pub finished: u64,
}

impl Server {
    /// Starts listening. Resumes kept traces of programs that were not over.
    pub fn start(options: ServerOptions, observer: Arc<dyn Observer>) -> io::Result<Server> {
        if options.token.is_none()
            && let Some(open) = options.listen.iter().find(|address| !address.is_local())
        {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!("{open} can be reached from other machines: set a token with --token"),
            ));
        }
        if options.token.as_ref().is_some_and(|token| token.len() > MAX_TOKEN) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("no sender can present this token: it is longer than {MAX_TOKEN} bytes"),
            ));
        }
        let shelf = options.keep.as_deref().map(Shelf::open).transpose()?;
        let limits = options.limits;
        let disk = usize::try_from(limits.total_disk).unwrap_or(usize::MAX);
        let shared = Arc::new(Shared {
            observer,
            token: options.token,
            shelf,
            limits,
            memory: Budget::new(limits.total_memory, PARTS * limits.connections),
            disk: Budget::new(disk, limits.connections),
            stop: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
            refused: AtomicUsize::new(0),
            programs: Mutex::default(),
            changed: Condvar::new(),
        });
        let mut listening = Vec::new();
        let mut listeners = Vec::new();
        for address in &options.listen {
            let listener = Listener::bind(address).map_err(|e| {
                io::Error::new(e.kind(), format!("cannot listen on {address}: {e}"))
            })?;
            listening.push(listener.address()?);
            listeners.push(listener);
        }
        take_up_again(&shared)?;
        let mut threads = Vec::new();
        for listener in listeners {
            let shared = Arc::clone(&shared);
            let thread = std::thread::Builder::new().name("listener".to_owned());
            threads.push(thread.spawn(move || listen(&shared, &listener))?);
        }
        Ok(Server { shared, listening, threads })
    }

    /// The addresses it listens on.
    pub fn addresses(&self) -> &[Address] {
        &self.listening
    }

    /// A connection from within this process, for what comes another way than over a socket. Nothing of it is trusted more.
    #[cfg(unix)]
    pub fn connect(&self, peer: &str) -> io::Result<Stream> {
        if self.shared.is_stopping() {
            return Err(io::Error::other(STOPPING));
        }
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        welcome(&self.shared, Stream::Unix(theirs), peer.to_owned());
        Ok(Stream::Unix(ours))
    }

    /// The current state.
    pub fn now(&self) -> Listening {
        let programs = self.shared.programs();
        let mut running: Vec<_> = programs.running.values().cloned().collect();
        running.sort_by(|a, b| (&a.name, a.id).cmp(&(&b.name, b.id)));
        Listening { running, finished: programs.finished }
    }

    /// Waits until this many programs are over, or until the time is up.
    pub fn wait(&self, finished: u64, time: Duration) -> bool {
        let mut programs = self.shared.programs();
        let end = Instant::now() + time;
        while programs.finished < finished {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.shared.changed.wait_timeout(programs, left);
            programs = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// Accepts no more connections, and waits until every program has a verdict on what arrived.
    pub fn stop(self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        for address in &self.listening {
            // The listener blocks in accept, so connect to it.
            let _ = address.connect();
        }
        for thread in self.threads {
            // It removes its socket. If it has panicked, the panic has been reported.
            let _ = thread.join();
        }
        let mut programs = self.shared.programs();
        programs.running.values().for_each(|program| program.frames.stop());
        while !programs.running.is_empty() {
            programs = self
                .shared
                .changed
                .wait_timeout(programs, TICK)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
            programs.running.values().for_each(|program| program.frames.stop());
        }
        drop(programs);
        // Senders learn that everything has arrived, or that the observer is gone.
        let end = Instant::now() + FAREWELL;
        while self.shared.connections.load(Ordering::SeqCst) > 0 && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Shared {
    fn programs(&self) -> MutexGuard<'_, Programs> {
        self.programs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts connections: those that are refused because there are too many, or the others.
    fn counter(&self, is_refused: bool) -> &AtomicUsize {
        if is_refused { &self.refused } else { &self.connections }
    }

    fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }
}

/// Resumes programs whose beginning a stopped observer has kept.
fn take_up_again(shared: &Arc<Shared>) -> io::Result<()> {
    let Some(shelf) = &shared.shelf else { return Ok(()) };
    for (name, id, path) in shelf.growing()? {
        match Spool::resume(&path) {
            Ok((spool, order)) => {
                let paths = Some((path, shelf.paths(&name, id).1));
                let (secret, is_resumed) = (shelf.secret(id)?, true);
                // Whoever sends editions does not come back.
                let (log, has_editions) = (None, false);
                let opening = Opening {
                    id,
                    name,
                    order,
                    secret,
                    spool,
                    paths,
                    is_resumed,
                    log,
                    has_editions,
                };
                let program = Program::new(opening, shared.limits, &shared.memory);
                let mut programs = shared.programs();
                begin(shared, &mut programs, program)?;
            }
            Err(error) => {
                let what = format!("{} cannot be resumed: {error}", path.display());
                shared.observer.problem("a kept trace", Some(&name), &what);
            }
        }
    }
    Ok(())
}

/// Observes a program on a separate thread.
fn begin(
    shared: &Arc<Shared>,
    programs: &mut Programs,
    program: Program,
) -> io::Result<Arc<Program>> {
    let program = Arc::new(program);
    let (shared, observed) = (Arc::clone(shared), Arc::clone(&program));
    std::thread::Builder::new().name("program".to_owned()).spawn(move || {
        let run = std::panic::AssertUnwindSafe(|| shared.observer.observe(&observed));
        // A panic is our bug; it must not leave senders waiting forever.
        let result = std::panic::catch_unwind(run).unwrap_or_else(|_| {
            Err("internal error: the analysis of the program failed".to_owned())
        });
        end(&shared, &observed, result.err());
    })?;
    programs.running.insert(program.id, Arc::clone(&program));
    Ok(program)
}

/// Ends a program that has its verdict.
fn end(shared: &Shared, program: &Arc<Program>, error: Option<String>) {
    let is_final = program.spool().is_finished() || error.is_some();
    if let Some((growing, kept)) = program.paths.as_ref().filter(|_| is_final)
        && let Err(error) = std::fs::rename(growing, kept)
    {
        let what = format!("cannot rename {}: {error}", growing.display());
        shared.observer.problem("a kept trace", Some(&program.name), &what);
    }
    if let Some(shelf) = shared.shelf.as_ref().filter(|_| is_final) {
        shelf.forget_secret(program.id);
    }
    program.frames.end(error);
    let mut programs = shared.programs();
    programs.running.remove(&program.id);
    if programs.over.len() == REMEMBERED {
        programs.over.pop_front();
    }
    programs.over.push_back(program.id);
    programs.finished += 1;
    shared.changed.notify_all();
}

fn listen(shared: &Arc<Shared>, listener: &Listener) {
    while !shared.is_stopping() {
        let (stream, peer) = match listener.accept() {
            Ok(accepted) => accepted,
            Err(error) => {
                // Probably out of file descriptors: other connections may release theirs.
                shared.observer.problem("the listener", None, &error.to_string());
                std::thread::sleep(TICK);
                continue;
            }
        };
        if shared.is_stopping() {
            break;
        }
        welcome(shared, stream, peer);
    }
}

/// Talks to a sender on a thread of its own, or tells it that there is no room.
fn welcome(shared: &Arc<Shared>, stream: Stream, peer: String) {
    let stream = Arc::new(stream);
    let is_full = shared.connections.load(Ordering::SeqCst) >= shared.limits.connections;
    let before = shared.counter(is_full).fetch_add(1, Ordering::SeqCst);
    let talk = {
        let (shared, stream) = (Arc::clone(shared), Arc::clone(&stream));
        move || {
            let connection = Connection { shared: &shared, peer, stream: &stream };
            match is_full {
                true => connection.part(Break::Later(full(&shared)), None, 0),
                false => connection.talk(),
            }
            shared.counter(is_full).fetch_sub(1, Ordering::SeqCst);
        }
    };
    let thread = std::thread::Builder::new().name("connection".to_owned());
    let trouble = match is_full && before >= REFUSED {
        true => Some(full(shared)),
        false => thread.spawn(talk).err().map(|error| error.to_string()),
    };
    if let Some(text) = trouble {
        // Nothing waits until the reply has been read.
        shared.counter(is_full).fetch_sub(1, Ordering::SeqCst);
        shared.observer.problem("the listener", None, &text);
        let _ = stream.set_write_timeout(Some(TICK));
        let reply = Reply { status: Status::Later, next: 0, text };
        let _ = (&*stream).write_all(&reply.encode());
    }
}

fn full(shared: &Shared) -> String {
    format!("there are already {} connections", shared.limits.connections)
}

/// Why a connection is closed.
enum Break {
    /// The sender did something wrong.
    Refused(String),
    /// The sender may come back.
    Later(String),
    /// The connection is gone, so there is no reply.
    Gone,
}

struct Connection<'a> {
    shared: &'a Arc<Shared>,
    peer: String,
    stream: &'a Stream,
}

impl Connection<'_> {
    fn talk(&self) {
        let ready = self.stream.set_read_timeout(Some(TICK)).is_ok()
            && self.stream.set_write_timeout(Some(self.shared.limits.stall)).is_ok();
        if !ready {
            return;
        }
        let (hello, program) = match self.hello() {
            Ok(Some(met)) => met,
            Ok(None) => return,
            Err(why) => return self.part(why, None, 0),
        };
        let result = match program.frames.connect(hello.channels) {
            Ok(next) => {
                let welcome = self.reply(Status::Welcome, next, "");
                let heard = welcome.and_then(|()| self.listen_to(&program));
                program.frames.disconnect();
                heard.and_then(|end| self.farewell(&program, end))
            }
            Err(error) => Err(Break::Refused(error)),
        };
        if let Err(why) = result {
            let next = program.spool().frames();
            self.part(why, Some(&program.name), next);
        }
    }

    /// Says farewell to a sender once everything before frame `end` is stored: what is not on disk
    /// yet would be lost with the observer.
    fn farewell(&self, program: &Program, end: u64) -> Result<(), Break> {
        match program.frames.wait_until_stored(end) {
            Some(Ok(next)) => self.reply(Status::Farewell, next, ""),
            Some(Err(error)) => Err(Break::Refused(error)),
            None => Err(Break::Later(STOPPING.to_owned())),
        }
    }

    /// Reads the hello and identifies the program; `None` if it is already over.
    fn hello(&self) -> Result<Option<(Hello, Arc<Program>)>, Break> {
        let shared = self.shared;
        let mut input = Patient {
            stream: self.stream,
            stop: &shared.stop,
            until: Some(Instant::now() + shared.limits.hello),
            program: None,
        };
        let Some(hello) = Hello::read(&mut input).map_err(|e| refusal(e, "its hello"))? else {
            return Ok(None);
        };
        if let Some(token) = &shared.token
            && !is_same_token(token.as_bytes(), &hello.token)
        {
            return Err(Break::Refused("the token is wrong".to_owned()));
        }
        let program = self.program(&hello)?;
        if program.is_none() {
            let _ = self.reply(Status::Farewell, u64::MAX, "this program is over");
        }
        Ok(program.map(|program| (hello, program)))
    }

    /// The program of a hello, which may be new; `None` if it is over.
    fn program(&self, hello: &Hello) -> Result<Option<Arc<Program>>, Break> {
        let shared = self.shared;
        let id = hello.program;
        let mut programs = shared.programs();
        if let Some(program) = programs.running.get(&id) {
            return match program.is_joined_by(&hello.secret) {
                true => Ok(Some(Arc::clone(program))),
                false => Err(Break::Refused("the program belongs to another sender".to_owned())),
            };
        }
        if programs.over.contains(&id) || shared.shelf.as_ref().is_some_and(|s| s.has(id)) {
            return Ok(None);
        }
        if shared.is_stopping() {
            return Err(Break::Later(STOPPING.to_owned()));
        }
        if programs.running.len() >= shared.limits.connections {
            return Err(Break::Later(format!(
                "there are already {} programs",
                programs.running.len()
            )));
        }
        let log = match hello.is_log {
            false => None,
            true => {
                let why = "this observer does not read the logs of agents";
                let reader = shared.observer.log_reader();
                Some(reader.ok_or_else(|| Break::Refused(why.to_owned()))?)
            }
        };
        let stored = |error: io::Error| Break::Later(format!("cannot store the trace: {error}"));
        let paths = shared.shelf.as_ref().map(|shelf| shelf.paths(&hello.name, id));
        if let Some(shelf) = &shared.shelf {
            shelf.forget_secret(id);
            shelf.store_secret(id, &hello.secret).map_err(stored)?;
        }
        let spool = match &paths {
            Some((growing, _)) => Spool::create(growing, hello.order),
            None => Spool::temporary(hello.order, shared.limits.disk, shared.disk.part()),
        };
        let Hello { name, order, secret, has_editions, .. } = hello.clone();
        let spool = spool.map_err(stored)?;
        let is_resumed = false;
        let opening =
            Opening { id, name, order, secret, spool, paths, is_resumed, log, has_editions };
        let program = Program::new(opening, shared.limits, &shared.memory);
        begin(shared, &mut programs, program).map(Some).map_err(stored)
    }

    /// Receives frames until the sender has no more; returns the number after its last one.
    fn listen_to(&self, program: &Program) -> Result<u64, Break> {
        let limits = &self.shared.limits;
        let until = |time: Duration| Instant::now().checked_add(time);
        let stop = &self.shared.stop;
        let patient = Patient { stream: self.stream, stop, until: None, program: Some(program) };
        let mut input = BufReader::with_capacity(1 << 16, patient);
        let mut end = 0;
        let mut arriving = self.shared.memory.part();
        loop {
            let _ = arriving.take(0);
            input.get_mut().until = limits.idle.and_then(until);
            if input.buffer().is_empty() {
                match std::io::BufRead::fill_buf(&mut input) {
                    Ok([]) => return Ok(end),
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => return Err(refusal(error.into(), "a frame")),
                }
            }
            let deadline = until(limits.stall);
            input.get_mut().until = deadline;
            let mut room = |bytes: usize| self.wait_for_room(&mut arriving, bytes, deadline);
            let frame = Numbered::read_with(&mut input, limits.frame, &mut room);
            if program.frames.is_over() {
                // The program's own error explains more than where it was cut off.
                return Ok(end.max(1));
            }
            let Some(frame) = frame.map_err(|error| refusal(error, "a frame"))? else {
                return Ok(end);
            };
            end = end.max(frame.number.saturating_add(1));
            program.frames.accept(frame).map_err(Break::Refused)?;
        }
    }

    /// Takes memory for a frame that arrives; other programs may have to give some back first.
    fn wait_for_room(
        &self,
        part: &mut BudgetPart,
        bytes: usize,
        until: Option<Instant>,
    ) -> io::Result<()> {
        while !part.take(bytes) {
            if self.shared.is_stopping() {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                return Err(io::ErrorKind::OutOfMemory.into());
            }
            std::thread::sleep(TICK);
        }
        Ok(())
    }

    fn reply(&self, status: Status, next: u64, text: &str) -> Result<(), Break> {
        let reply = Reply { status, next, text: text.to_owned() };
        let mut stream = self.stream;
        stream.write_all(&reply.encode()).map_err(|_| Break::Gone)
    }

    /// Replies to a sender why its connection is closed, and reports it to the observer.
    fn part(&self, why: Break, program: Option<&str>, next: u64) {
        let (status, text) = match why {
            Break::Refused(text) => (Status::Refused, text),
            Break::Later(text) => (Status::Later, text),
            Break::Gone => return,
        };
        self.shared.observer.problem(&self.peer, program, &text);
        let _ = self.stream.set_write_timeout(Some(PARTING));
        if self.reply(status, next, &text).is_err() || self.stream.finish_writing().is_err() {
            return;
        }
        // Closing with unread bytes would discard the reply before the sender has seen it.
        let end = Instant::now() + PARTING;
        let _ = self.stream.set_read_timeout(Some(TICK));
        let mut scratch = [0; 1 << 14];
        let mut stream = self.stream;
        while Instant::now() < end && !self.shared.is_stopping() {
            match stream.read(&mut scratch) {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) if is_wait(&error) => {}
                Err(_) => break,
            }
        }
    }
}

fn refusal(error: WireError, what: &str) -> Break {
    match error {
        WireError::Io(error) if error.kind() == io::ErrorKind::TimedOut => {
            Break::Refused(format!("timeout while waiting for {what}"))
        }
        WireError::Io(error) if error.kind() == io::ErrorKind::ConnectionAborted => {
            Break::Later(STOPPING.to_owned())
        }
        WireError::Io(error) if error.kind() == io::ErrorKind::OutOfMemory => {
            Break::Later("other programs take all memory (--total-memory)".to_owned())
        }
        WireError::Io(error) => Break::Refused(format!("the connection failed: {error}")),
        error => Break::Refused(error.to_string()),
    }
}

fn is_wait(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}

/// A connection that is read until data arrives, the time is up by the clock, or the observer stops.
struct Patient<'a> {
    program: Option<&'a Program>,
    stream: &'a Stream,
    stop: &'a AtomicBool,
    until: Option<Instant>,
}

impl Read for Patient<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.stop.load(Ordering::SeqCst) {
                // A sender with nothing more to send still gets a farewell.
                return match self.program.is_some_and(|program| program.frames.is_over()) {
                    true => Ok(0),
                    false => Err(io::ErrorKind::ConnectionAborted.into()),
                };
            }
            let mut stream = self.stream;
            let result = stream.read(buffer);
            let is_silent = result.as_ref().is_err_and(is_wait);
            if is_silent && self.program.is_some_and(|program| program.frames.is_over()) {
                return Ok(0);
            }
            // A sender that sends a byte now and then is late all the same; one that has nothing
            // more to send is not.
            let is_end = matches!(result, Ok(0) | Err(_)) && !is_silent;
            if !is_end && self.until.is_some_and(|until| Instant::now() >= until) {
                return Err(io::ErrorKind::TimedOut.into());
            }
            if !is_silent {
                return result;
            }
        }
    }
}
