//! Server and sender in one process.

#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use foresee_formats::native::{FrameHeader, Kind};
use foresee_observe::wire::{Hello, Reply, Status};
use foresee_observe::{
    Limits, Observer, Program, ProgramId, SendError, SendOptions, Sent, Server, ServerOptions,
    Stream, send,
};
use foresee_testkit::generated;
use foresee_trace::generate::Config;
use foresee_trace::{EventSource, FileOrder, Trace};

/// How long a test waits for what has to happen, on however busy a machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// Loads what programs send, once it is allowed to.
#[derive(Default)]
struct Loader {
    may_start: AtomicBool,
    loaded: Mutex<Vec<Result<Trace, String>>>,
}

impl Observer for Loader {
    fn observe(&self, program: &Arc<Program>) -> Result<(), String> {
        while !self.may_start.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let result = program.follow().and_then(|mut source| Trace::load(&mut source));
        let result = result.map_err(|error| error.to_string());
        let error = result.as_ref().err().cloned();
        self.loaded.lock().unwrap().push(result);
        error.map_or(Ok(()), Err)
    }
    fn problem(&self, _: &str, _: Option<&str>, _: &str) {}
}

fn start(limits: Limits, may_start: bool) -> (Server, Arc<Loader>) {
    start_keeping(limits, may_start, None)
}

fn start_keeping(limits: Limits, may_start: bool, keep: Option<&Path>) -> (Server, Arc<Loader>) {
    let loader = Arc::new(Loader::default());
    loader.may_start.store(may_start, Ordering::SeqCst);
    let options = ServerOptions {
        listen: vec!["127.0.0.1:0".parse().unwrap()],
        token: None,
        keep: keep.map(Path::to_owned),
        limits,
    };
    (Server::start(options, Arc::clone(&loader) as Arc<dyn Observer>).unwrap(), loader)
}

fn trace(events: u64) -> &'static Trace {
    let config = Config { events, locations: 50, variables: 500, ..Config::default() };
    Box::leak(Box::new(generated(config)))
}

fn play(
    server: &Server,
    trace: &'static Trace,
    change: impl Fn(&mut SendOptions),
) -> Result<Sent, SendError> {
    let mut options = SendOptions {
        to: server.addresses()[0].clone(),
        token: Vec::new(),
        program: ProgramId::random(),
        name: "test".to_owned(),
        connections: 1,
        frame_events: 64,
        rate: None,
        shuffle: None,
        retry: Duration::ZERO,
    };
    change(&mut options);
    send(&mut || Ok(Box::new(trace.source()) as Box<dyn EventSource>), &options)
}

#[test]
fn what_is_sent_arrives_in_its_order() {
    let (server, loader) = start(Limits::default(), true);
    let trace = trace(20_000);
    for connections in 1..=4 {
        for shuffle in [None, Some(u64::from(connections))] {
            let sent = play(&server, trace, |options| {
                (options.connections, options.shuffle) = (connections, shuffle);
            });
            assert_eq!(sent.unwrap().events, 20_000);
        }
    }
    assert!(server.wait(8, PATIENCE));
    server.stop();
    for loaded in loader.loaded.lock().unwrap().iter() {
        let loaded = loaded.as_ref().unwrap();
        assert_eq!(loaded.remarks.cut_short, None);
        assert_eq!(loaded.to_string(), trace.to_string());
    }
}

#[test]
fn a_sender_waits_for_an_observer_that_is_slow() {
    let limits = Limits { memory: 1 << 14, ..Limits::default() };
    let (server, loader) = start(limits, false);
    let trace = trace(50_000);
    std::thread::scope(|scope| {
        let sender = scope.spawn(|| play(&server, trace, |options| options.connections = 3));
        std::thread::sleep(Duration::from_millis(100));
        assert!(!sender.is_finished(), "more was taken than may wait");
        for program in server.now().running {
            assert!(program.backlog().bytes <= 1 << 14, "{:?}", program.backlog());
        }
        loader.may_start.store(true, Ordering::SeqCst);
        assert_eq!(sender.join().unwrap().unwrap().events, 50_000);
    });
    assert!(server.wait(1, PATIENCE));
    let loaded = loader.loaded.lock().unwrap();
    assert!(
        loaded[0].as_ref().is_ok_and(|loaded| loaded.events.len() == 50_000),
        "{:?}",
        loaded[0]
    );
}

#[test]
fn a_lossy_observer_never_lets_a_program_wait() {
    let limits = Limits { memory: 1 << 14, lossy: true, ..Limits::default() };
    let (server, loader) = start(limits, false);
    let trace = trace(50_000);
    std::thread::scope(|scope| {
        let sender = scope.spawn(|| play(&server, trace, |_| {}));
        while server.now().running.iter().all(|program| program.dropped() < 20_000) {
            std::thread::sleep(Duration::from_millis(1));
        }
        loader.may_start.store(true, Ordering::SeqCst);
        assert_eq!(sender.join().unwrap().unwrap().events, 50_000);
    });
    assert!(server.wait(1, PATIENCE));
    let loaded = loader.loaded.lock().unwrap();
    let loaded = loaded[0].as_ref().unwrap();
    assert!(loaded.events.len() < 30_000);
    let why = loaded.remarks.partial.as_ref().unwrap();
    assert!(why.contains("events were dropped"), "{why}");
    // It is a prefix of what was sent.
    assert!(trace.to_string().starts_with(&loaded.to_string()));
}

#[test]
fn frames_too_far_out_of_order_are_an_error_for_their_sender() {
    let limits = Limits { memory: 1 << 13, ..Limits::default() };
    let (server, loader) = start(limits, true);
    let result = play(&server, trace(50_000), |options| options.shuffle = Some(1));
    assert!(matches!(result, Err(SendError::Refused(_))), "{result:?}");
    assert!(server.wait(1, PATIENCE));
    let loaded = loader.loaded.lock().unwrap();
    let why = match &loaded[0] {
        Ok(loaded) => loaded.remarks.cut_short.clone().unwrap(),
        Err(error) => error.clone(),
    };
    assert!(why.contains("is missing"), "{why}");
}

#[test]
fn no_sender_waits_for_an_observer_that_is_gone() {
    let (server, _) = start(Limits::default(), true);
    let to = server.addresses()[0].clone();
    server.stop();
    let options = SendOptions {
        to,
        token: Vec::new(),
        program: ProgramId::random(),
        name: String::new(),
        connections: 1,
        frame_events: 1,
        rate: None,
        shuffle: None,
        retry: Duration::from_millis(50),
    };
    let trace = trace(10);
    let result = send(&mut || Ok(Box::new(trace.source()) as Box<dyn EventSource>), &options);
    assert!(matches!(result, Err(SendError::Connection(..))), "{result:?}");
}

fn hello(program: ProgramId, secret: &[u8]) -> Vec<u8> {
    let (name, order) = ("test".to_owned(), FileOrder::Observed);
    let (token, secret) = (Vec::new(), secret.to_vec());
    let (is_log, has_editions) = (false, false);
    let hello = Hello { program, name, order, channels: 1, token, secret, is_log, has_editions };
    hello.encode().unwrap()
}

/// Connects, says something, and returns the connection with the first answer.
fn say(server: &Server, bytes: &[u8]) -> (Stream, Reply) {
    let stream = server.addresses()[0].connect().unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    (&stream).write_all(bytes).unwrap();
    let reply = Reply::read(&mut &stream).unwrap().unwrap();
    (stream, reply)
}

#[test]
fn a_program_belongs_to_those_who_know_its_secret() {
    let folder = tempfile::tempdir().unwrap();
    let keep = folder.path().join("kept");
    let id = ProgramId::random();
    let (server, _) = start_keeping(Limits::default(), true, Some(&keep));
    let (_own, welcome) = say(&server, &hello(id, b"own"));
    assert_eq!(welcome.status, Status::Welcome);
    for stranger in [b"".as_slice(), b"other", b"ow"] {
        let (_, reply) = say(&server, &hello(id, stranger));
        assert_eq!(reply.status, Status::Refused);
        assert_eq!(reply.text, "the program belongs to another sender");
    }
    let (_again, welcome) = say(&server, &hello(id, b"own"));
    assert_eq!(welcome.status, Status::Welcome);
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&keep), 0o700);
    let files: Vec<_> = keep.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 2, "a trace and a secret: {files:?}");
    assert!(files.iter().all(|file| mode(file) == 0o600), "{files:?}");
    server.stop();
    // The next observer knows it, too.
    let (server, _) = start_keeping(Limits::default(), true, Some(&keep));
    assert_eq!(say(&server, &hello(id, b"other")).1.status, Status::Refused);
    assert_eq!(say(&server, &hello(id, b"own")).1.status, Status::Welcome);
    // Senders without a secret still share a program by its number alone.
    let older = ProgramId::random();
    assert_eq!(say(&server, &hello(older, b"")).1.status, Status::Welcome);
    assert_eq!(say(&server, &hello(older, b"")).1.status, Status::Welcome);
    server.stop();
}

#[test]
fn time_limits_hold_for_senders_that_drip() {
    // Long enough for a hello that is sent at once, also on a busy machine.
    let time = Duration::from_secs(2);
    let limits = Limits { hello: time, stall: time, linger: Duration::ZERO, ..Limits::default() };
    let (server, _) = start(limits, true);
    let drip = |already: &[u8], bytes: &[u8]| {
        let stream = server.addresses()[0].connect().unwrap();
        (&stream).write_all(already).unwrap();
        if !already.is_empty() {
            let welcome = Reply::read(&mut &stream).unwrap().unwrap();
            assert_eq!(welcome.status, Status::Welcome);
        }
        // A whole hello takes several times the limit this way.
        stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        for byte in bytes.iter().cycle().take(100_000) {
            if let Ok(Some(reply)) = Reply::read(&mut &stream) {
                return reply.text;
            }
            let _ = (&stream).write_all(&[*byte]);
        }
        panic!("{} bytes were taken one by one", bytes.len());
    };
    let hello = hello(ProgramId::random(), b"own");
    let longer = [&hello[..], &[0; 1000]].concat();
    assert_eq!(drip(&[], &longer), "timeout while waiting for its hello");
    let payload = [0; 4096];
    let header = FrameHeader::of(Kind::Optional(200), 0, &payload).unwrap();
    let frame = [&0u64.to_le_bytes()[..], &header.encode(), &payload].concat();
    assert_eq!(drip(&hello, &frame), "timeout while waiting for a frame");
    server.stop();
}

#[test]
fn a_connection_too_many_is_told_so() {
    let (server, _) = start(Limits { connections: 1, ..Limits::default() }, true);
    let (_first, welcome) = say(&server, &hello(ProgramId::random(), b"own"));
    assert_eq!(welcome.status, Status::Welcome);
    // More than what the reply could be read after, if the connection were just closed.
    let much = [hello(ProgramId::random(), b"own"), vec![0; 1 << 20]].concat();
    for _ in 0..5 {
        let stream = server.addresses()[0].connect().unwrap();
        let _ = (&stream).write_all(&much);
        let reply = Reply::read(&mut &stream).unwrap().unwrap();
        assert_eq!(reply.status, Status::Later);
        assert_eq!(reply.text, "there are already 1 connections");
    }
    server.stop();
}

#[test]
fn all_programs_together_have_a_limit() {
    let total = 8 << 20;
    let limits = Limits {
        memory: 8 << 20,
        total_memory: total,
        connections: 12,
        linger: Duration::from_secs(60),
        ..Limits::default()
    };
    let (server, loader) = start(limits, false);
    let trace = trace(200_000);
    std::thread::scope(|scope| {
        let senders: Vec<_> =
            (0..12).map(|_| scope.spawn(|| play(&server, trace, |_| {}))).collect();
        let (mut most, mut rounds) = (0, 0);
        let end = Instant::now() + PATIENCE;
        // Until a good part of it is used, and for a while after that.
        while (most <= total / 3 || rounds < 50) && Instant::now() < end {
            rounds += usize::from(most > total / 3);
            let waiting: usize = server.now().running.iter().map(|p| p.backlog().bytes).sum();
            // Each may have one frame that is not paid for.
            assert!(waiting <= total + 12 * 4096, "{waiting} bytes wait");
            most = most.max(waiting);
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(most > total / 3, "only {most} bytes wait");
        loader.may_start.store(true, Ordering::SeqCst);
        for sender in senders {
            assert_eq!(sender.join().unwrap().unwrap().events, 200_000);
        }
    });
    assert!(server.wait(12, PATIENCE));
    let loaded = loader.loaded.lock().unwrap();
    let whole = |one: &Result<Trace, String>| {
        one.as_ref().is_ok_and(|one| one.events.len() == 200_000 && one.remarks.cut_short.is_none())
    };
    assert!(loaded.iter().all(whole));
}

#[test]
fn all_spooled_traces_together_have_a_limit() {
    let limits = Limits { total_disk: 1 << 16, connections: 2, ..Limits::default() };
    let (server, loader) = start(limits, false);
    let trace = trace(50_000);
    let sent = std::thread::scope(|scope| {
        let sender = scope.spawn(|| play(&server, trace, |_| {}));
        while server.now().running.is_empty() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let program = Arc::clone(&server.now().running[0]);
        loader.may_start.store(true, Ordering::SeqCst);
        let sent = sender.join().unwrap();
        assert!(!program.is_all_stored());
        sent
    });
    // It is analysed all the same.
    assert_eq!(sent.unwrap().events, 50_000);
}
