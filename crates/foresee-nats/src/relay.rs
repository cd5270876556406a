//! Programs that send to an observer while they run, and reach a queue: a local socket takes what they send, and passes it on.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use foresee_observe::wire::{Hello, Reply, Status};
use foresee_observe::{Outlet as _, ProgramId};

use crate::publish::Publisher;
use crate::server::{NatsError, Server};

/// How often it is looked whether a program connects.
const TICK: Duration = Duration::from_millis(20);

/// How much is passed on at once.
const PIECE: usize = 64 << 10;

/// A socket for programs on this machine. Each connection becomes a run of the queue.
pub struct Relay {
    is_over: Arc<AtomicBool>,
    listening: JoinHandle<Vec<JoinHandle<Relayed>>>,
}

/// What became of a connection: its run, or why there is none or not all of it.
pub type Relayed = Result<ProgramId, NatsError>;

impl Relay {
    /// Listens at a path.
    pub fn open(server: &Server, path: &Path) -> Result<Relay, NatsError> {
        let cannot =
            |error: io::Error| NatsError(format!("cannot listen at {}: {error}", path.display()));
        let listener = UnixListener::bind(path).map_err(cannot)?;
        listener.set_nonblocking(true).map_err(cannot)?;
        let is_over = Arc::new(AtomicBool::new(false));
        let (over, server) = (Arc::clone(&is_over), server.clone());
        let listening = std::thread::spawn(move || {
            let mut passing = Vec::new();
            loop {
                // Those who have connected before the end are heard.
                let is_last = over.load(Ordering::Relaxed);
                while let Ok((stream, _)) = listener.accept() {
                    let server = server.clone();
                    passing.push(std::thread::spawn(move || pass(&server, stream)));
                }
                if is_last {
                    return passing;
                }
                std::thread::sleep(TICK);
            }
        });
        Ok(Relay { is_over, listening })
    }

    /// Waits until everything is published that was sent. The programs must have ended.
    pub fn finish(self) -> Vec<Relayed> {
        self.is_over.store(true, Ordering::Relaxed);
        let panicked = || Err(NatsError("a connection could not be passed on".to_owned()));
        let passing = self.listening.join().unwrap_or_default();
        passing.into_iter().map(|one| one.join().unwrap_or_else(|_| panicked())).collect()
    }
}

/// Passes a connection on, as an observer at its other end.
fn pass(server: &Server, mut stream: UnixStream) -> Relayed {
    let broken = |error: &dyn std::fmt::Display| {
        NatsError(format!("the connection of a program broke: {error}"))
    };
    stream.set_nonblocking(false).map_err(|error| broken(&error))?;
    let hello = Hello::read(&mut stream).map_err(|error| broken(&error))?;
    let hello = hello.ok_or_else(|| broken(&"it said nothing"))?;
    let mut publisher = Publisher::open(server, &hello.name, hello.program)?;
    let failed = |error: io::Error| NatsError(error.to_string());
    publisher.put(&hello.encode().map_err(failed)?, false).map_err(failed)?;
    let say = |status| {
        let reply = Reply { status, next: 0, text: String::new() };
        (&stream).write_all(&reply.encode()).map_err(|error| broken(&error))
    };
    say(Status::Welcome)?;
    let mut bytes = vec![0; PIECE];
    loop {
        match (&stream).read(&mut bytes) {
            Ok(0) => break,
            Ok(count) => {
                publisher.put(&bytes[..count], false).map_err(failed)?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // The observer will find that there is no goodbye.
            Err(_) => break,
        }
    }
    publisher.end()?;
    // A program that has ended meanwhile does not hear it.
    let _ = say(Status::Farewell);
    Ok(hello.program)
}
