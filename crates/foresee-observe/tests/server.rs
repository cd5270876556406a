//! Server and sender in one process.

#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use foresee_observe::{
    Limits, Observer, Program, ProgramId, SendError, SendOptions, Sent, Server, ServerOptions, send,
};
use foresee_testkit::generated;
use foresee_trace::generate::Config;
use foresee_trace::{EventSource, Trace};

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
    let loader = Arc::new(Loader::default());
    loader.may_start.store(may_start, Ordering::SeqCst);
    let options = ServerOptions {
        listen: vec!["127.0.0.1:0".parse().unwrap()],
        token: None,
        keep: None,
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
    assert!(server.wait(8, Duration::from_secs(30)));
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
    assert!(server.wait(1, Duration::from_secs(30)));
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
    assert!(server.wait(1, Duration::from_secs(30)));
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
    assert!(server.wait(1, Duration::from_secs(30)));
    let loaded = loader.loaded.lock().unwrap();
    let why = match &loaded[0] {
        Ok(loaded) => loaded.remarks.cut_short.clone().unwrap(),
        Err(error) => error.clone(),
    };
    assert!(why.contains("is missing"), "{why}");
}

#[test]
fn nobody_waits_for_an_observer_that_is_gone() {
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
