//! Tries again, later and later, as long as there is patience.

use std::fmt::Display;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_nats::{Event, ServerError};

use crate::server::NatsError;

const FIRST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(2);

/// The waits between tries.
pub(crate) struct Backoff {
    next: Duration,
    until: Instant,
}

impl Backoff {
    pub(crate) fn new(patience: Duration) -> Backoff {
        Backoff { next: FIRST, until: Instant::now() + patience }
    }

    /// Waits, unless there is no patience left.
    pub(crate) async fn wait(&mut self) -> bool {
        if Instant::now() + self.next > self.until {
            return false;
        }
        tokio::time::sleep(self.next).await;
        self.next = (self.next * 2).min(LONGEST);
        true
    }
}

/// Tries something until it succeeds or there is no patience left.
pub(crate) async fn retry<T, E: Display>(
    patience: Duration,
    what: &str,
    mut attempt: impl AsyncFnMut() -> Result<T, E>,
) -> Result<T, NatsError> {
    let mut backoff = Backoff::new(patience);
    loop {
        let error = match attempt().await {
            Ok(done) => return Ok(done),
            Err(error) => error.to_string(),
        };
        // Nothing that time would change.
        let is_final = error.contains("JetStream not enabled") || error.contains("Permissions");
        if is_final || !backoff.wait().await {
            let remedy = match refusal().filter(|_| error.contains("timed out")) {
                Some(refusal) => format!("; the server said: {refusal}"),
                None => remedy(&error).to_owned(),
            };
            return Err(NatsError(format!("cannot {what}: {error}{remedy}")));
        }
    }
}

/// What the server last refused to this process for want of a permission. It answers with silence, and says why on the side.
static REFUSED: Mutex<Option<String>> = Mutex::new(None);

/// Hears what the server says on the side.
pub(crate) async fn hear(event: Event) {
    if let Event::ServerError(ServerError::Other(said)) = event
        && said.to_lowercase().contains("permissions violation")
    {
        *REFUSED.lock().unwrap_or_else(PoisonError::into_inner) = Some(said);
    }
}

fn refusal() -> Option<String> {
    REFUSED.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// What helps against an error of the server, if that is known.
fn remedy(error: &str) -> &'static str {
    // JetStream sets the space for events aside when their stream is made.
    const DISK: &str = "; the server has no room left for it: free space on its disk, start it with its store on a larger one \
                        (-sd DIR), raise max_file_store in its configuration, or ask for less with --events-size";
    const MEMORY: &str =
        "; the server has no room left in memory: raise max_memory_store in its configuration";
    match error {
        _ if error.contains("insufficient storage") || error.contains("insufficient resources") => {
            DISK
        }
        _ if error.contains("resource limits exceeded") => DISK,
        _ if error.contains("insufficient memory") => MEMORY,
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_without_room_is_said_what_helps() {
        let asked = retry(Duration::ZERO, "open the queue", async || {
            Err::<(), _>("code 500: insufficient storage resources available")
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let error = runtime.block_on(asked).unwrap_err().to_string();
        assert!(
            error.starts_with("cannot open the queue: ") && error.contains("-sd DIR"),
            "{error}"
        );
        assert!(error.contains("max_file_store"), "{error}");
        assert_eq!(remedy("no responders"), "");
    }
}
