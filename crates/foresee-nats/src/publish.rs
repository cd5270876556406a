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
    /// Where its events go, and what must be heard even if there is no room for events.
    subject: String,
    signs: String,
    offset: u64,
    /// Whether events were dropped, so that only the end is still to come.
    has_dropped: bool,
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
        let signs = runs.subject("signs", &run);
        let alive = background.spawn({
            let (runs, subject) = (Arc::clone(&runs), signs.clone());
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
        Ok(Publisher {
            run,
            subject,
            signs,
            offset: 0,
            has_dropped: false,
            runs,
            _alive: alive,
            background,
        })
    }

    /// Says that everything was published.
    pub fn end(&mut self) -> Result<(), NatsError> {
        let mut headers = HeaderMap::new();
        headers.insert(END, self.offset.to_string());
        let id = format!("{}-end", self.run.id);
        self.publish("publish the end of a run", &id, &headers, b"", true).map(drop)
    }

    /// Publishes the next piece; `false` if it may be dropped and the stream is full.
    fn piece(&mut self, piece: &[u8], may_drop: bool) -> Result<bool, NatsError> {
        let mut headers = HeaderMap::new();
        headers.insert(OFFSET, self.offset.to_string());
        let id = format!("{}-{}", self.run.id, self.offset);
        let is_there = self.publish("publish events", &id, &headers, piece, may_drop)?;
        self.has_dropped |= !is_there;
        if is_there {
            self.offset += piece.len() as u64;
        }
        Ok(is_there)
    }

    /// Publishes a message. One that need not wait is not taken by a stream of events that is full, other than the end of a
    /// run, which goes among the signs then, as does all that follows dropped events.
    fn publish(
        &mut self,
        what: &str,
        id: &str,
        headers: &HeaderMap,
        bytes: &[u8],
        is_hasty: bool,
    ) -> Result<bool, NatsError> {
        let (runs, is_end) = (&self.runs, headers.get(END).is_some());
        let mut subject = &self.subject;
        if self.has_dropped {
            subject = &self.signs;
        } else if is_hasty {
            let tried = runs.try_publish(subject, id, headers.clone(), bytes);
            match self.background.wait(tried) {
                Ok(()) => return Ok(true),
                Err(NatsError(why)) if is_full(&why) && !is_end => return Ok(false),
                Err(NatsError(why)) if is_full(&why) => subject = &self.signs,
                Err(_) => {}
            }
        }
        let published = runs.publish(what, subject, id, (headers.clone(), bytes));
        self.background.wait(published).map(|()| true)
    }
}

/// Whether runs can be published there.
pub fn ready(server: &Server) -> Result<(), NatsError> {
    Background::start()?.wait(Runs::open(server)).map(drop)
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

    fn finish(&mut self) -> io::Result<()> {
        self.end().map_err(io::Error::other)
    }
}
