//! Tries again, later and later, as long as there is patience.

use std::fmt::Display;
use std::time::{Duration, Instant};

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
            return Err(NatsError(format!("cannot {what}: {error}")));
        }
    }
}
