//! The side of observed programs: a run into the queue.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use async_nats::HeaderMap;
use foresee_observe::{Outlet, ProgramId};

use crate::background::{Background, Besides};
use crate::runs::{ALIVE, END, OFFSET, RunName, Runs};
use crate::server::{NatsError, Server};

/// How often a sender shows that it is alive.
pub(crate) const SIGN_OF_LIFE: Duration = Duration::from_secs(5);

/// The largest piece, within what the server takes.
const LONGEST_PIECE: usize = 128 << 10;

/// Publishes a run of a program. Whoever observes finds it, now or later.
pub struct Publisher {
    run: RunName,
    subject: String,
    offset: u64,
    runs: Arc<Runs>,
    _alive: Besides,
    background: Background,
}

impl Publisher {
    /// Connects.
    pub fn open(server: &Server, program: &str, id: ProgramId) -> Result<Publisher, NatsError> {
        let background = Background::start()?;
        let runs = Arc::new(background.wait(Runs::open(server))?);
        let run = RunName::new(program, id);
        let subject = runs.subject("events", &run);
        let alive = background.spawn({
            let (runs, subject) = (Arc::clone(&runs), subject.clone());
            async move {
                for number in 0_u64.. {
                    tokio::time::sleep(SIGN_OF_LIFE).await;
                    let mut headers = HeaderMap::new();
                    headers.insert(ALIVE, number.to_string());
                    // One that gets lost is followed by another one.
                    let id = format!("{}-alive-{number}", subject);
                    let _ = runs.try_publish(&subject, &id, headers, b"").await;
                }
            }
        });
        Ok(Publisher { run, subject, offset: 0, runs, _alive: alive, background })
    }

    /// Says that everything was published.
    pub fn finish(self) -> Result<(), NatsError> {
        let mut headers = HeaderMap::new();
        headers.insert(END, self.offset.to_string());
        let id = format!("{}-end", self.run.id);
        let end = self.runs.publish("publish the end of a run", &self.subject, &id, (headers, b""));
        self.background.wait(end)
    }

    /// Publishes the next piece; `false` if it may be dropped and the stream is full.
    fn piece(&mut self, piece: &[u8], may_drop: bool) -> Result<bool, NatsError> {
        let mut headers = HeaderMap::new();
        headers.insert(OFFSET, self.offset.to_string());
        let id = format!("{}-{}", self.run.id, self.offset);
        let (runs, subject) = (&self.runs, &self.subject);
        if may_drop {
            let tried =
                self.background.wait(runs.try_publish(subject, &id, headers.clone(), piece));
            if tried.as_ref().is_err_and(|NatsError(why)| is_full(why)) {
                return Ok(false);
            }
            if tried.is_ok() {
                self.offset += piece.len() as u64;
                return Ok(true);
            }
        }
        let published = runs.publish("publish events", subject, &id, (headers, piece));
        self.background.wait(published)?;
        self.offset += piece.len() as u64;
        Ok(true)
    }
}

/// Whether a server has no room for a message.
fn is_full(why: &str) -> bool {
    [
        "maximum bytes exceeded",
        "maximum messages exceeded",
        "insufficient resources",
        "resource limits",
    ]
    .iter()
    .any(|words| why.contains(words))
}

impl Outlet for Publisher {
    fn put(&mut self, bytes: &[u8], may_drop: bool) -> io::Result<bool> {
        let is_first = self.offset == 0;
        let longest = LONGEST_PIECE.min(self.runs.store.most_bytes()).max(1);
        for (i, piece) in bytes.chunks(longest).enumerate() {
            // A frame that has begun is finished.
            let is_there = self.piece(piece, may_drop && i == 0).map_err(io::Error::other)?;
            if !is_there {
                return Ok(false);
            }
        }
        if is_first {
            let subject = self.runs.subject("runs", &self.run);
            let id = format!("{}-run", self.run.id);
            let said = self.runs.publish("announce a run", &subject, &id, (HeaderMap::new(), b""));
            self.background.wait(said).map_err(io::Error::other)?;
        }
        Ok(true)
    }
}
