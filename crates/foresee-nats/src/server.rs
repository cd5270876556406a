//! Where a queue is, and who asks.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use async_nats::{Client, ConnectErrorKind, ConnectOptions};

use crate::retry::Backoff;

/// Why a server could not be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NatsError(pub String);

/// The name of a queue, from which those of its streams, stores and subjects are made.
///
/// ```
/// use foresee_nats::QueueName;
///
/// assert!("nightly-2".parse::<QueueName>().is_ok());
/// assert!("a.b".parse::<QueueName>().is_err(), "a dot would make it several words of a subject");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueName(String);

/// A name that no queue can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the name of a queue has 1 to {LONGEST} letters, digits, `-` and `_`")]
pub struct BadName;

const LONGEST: usize = 32;

impl FromStr for QueueName {
    type Err = BadName;

    fn from_str(text: &str) -> Result<QueueName, BadName> {
        is_word(text, LONGEST).then(|| QueueName(text.to_owned())).ok_or(BadName)
    }
}

/// Whether a text may be one word of a subject and part of the names of streams and consumers.
pub(crate) fn is_word(text: &str, longest: usize) -> bool {
    let is_fine = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    (1..=longest).contains(&text.len()) && text.bytes().all(is_fine)
}

impl fmt::Display for QueueName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Default for QueueName {
    fn default() -> QueueName {
        QueueName("foresee".to_owned())
    }
}

/// How to prove who asks.
#[derive(Clone, Default)]
pub enum Auth {
    /// Not at all, or as the address says.
    #[default]
    None,
    /// By a token.
    Token(String),
    /// By name and password.
    User(String, String),
    /// By the seed of an nkey, in a file.
    Nkey(PathBuf),
    /// By a file of credentials: a token of the account's issuer, and a seed.
    Credentials(PathBuf),
}

/// How to trust and be trusted.
#[derive(Clone, Debug, Default)]
pub struct Tls {
    /// Whether a connection without TLS is refused.
    pub required: bool,
    /// Certificates of authorities to trust besides those of the system.
    pub ca: Option<PathBuf>,
    /// The own certificate and its key.
    pub own: Option<(PathBuf, PathBuf)>,
}

/// Where a queue is, and who asks.
#[derive(Clone)]
pub struct Server {
    /// The address: `nats://HOST[:PORT]` or `tls://HOST[:PORT]`, several separated by commas.
    pub url: String,
    /// The queue.
    pub queue: QueueName,
    /// How to prove who asks.
    pub auth: Auth,
    /// How to trust and be trusted.
    pub tls: Tls,
    /// How long to go on without a connection.
    pub patience: Duration,
    /// How long a job may be without a sign of life from its worker, if the queue is new.
    pub ack_wait: Duration,
    /// How long traces and results are kept, if the queue is new.
    pub keep: Duration,
    /// How many bytes of events of runs without a verdict are kept, if the queue is new.
    pub most_event_bytes: u64,
}

impl Server {
    /// A queue at this address.
    pub fn new(url: &str) -> Server {
        Server {
            url: url.to_owned(),
            queue: QueueName::default(),
            auth: Auth::None,
            tls: Tls::default(),
            patience: Duration::from_secs(60),
            ack_wait: Duration::from_secs(30),
            keep: Duration::from_secs(7 * 24 * 3600),
            most_event_bytes: 4 << 30,
        }
    }

    /// The address without what is secret in it.
    pub(crate) fn shown(&self) -> String {
        let servers = self.url.split(',').map(|url| match url.rsplit_once('@') {
            Some((before, host)) => match before.split_once("://") {
                Some((scheme, _)) => format!("{scheme}://{host}"),
                None => host.to_owned(),
            },
            None => url.to_owned(),
        });
        servers.collect::<Vec<_>>().join(",")
    }

    async fn options(&self) -> Result<ConnectOptions, NatsError> {
        let file = |path: &PathBuf, error: &dyn fmt::Display| {
            NatsError(format!("cannot read {}: {error}", path.display()))
        };
        let mut options = ConnectOptions::new()
            .name("foresee")
            .connection_timeout(Duration::from_secs(5))
            .request_timeout(Some(Duration::from_secs(5)))
            .ping_interval(Duration::from_secs(10));
        options = match &self.auth {
            Auth::None => options,
            Auth::Token(token) => options.token(token.clone()),
            Auth::User(name, password) => options.user_and_password(name.clone(), password.clone()),
            Auth::Nkey(path) => {
                let seed = std::fs::read_to_string(path).map_err(|error| file(path, &error))?;
                options.nkey(seed.trim().to_owned())
            }
            Auth::Credentials(path) => {
                options.credentials_file(path).await.map_err(|error| file(path, &error))?
            }
        };
        if self.tls.required {
            options = options.require_tls(true);
        }
        if let Some(ca) = &self.tls.ca {
            std::fs::metadata(ca).map_err(|error| file(ca, &error))?;
            options = options.add_root_certificates(ca.clone());
        }
        if let Some((certificate, key)) = &self.tls.own {
            for path in [certificate, key] {
                std::fs::metadata(path).map_err(|error| file(path, &error))?;
            }
            options = options.add_client_certificate(certificate.clone(), key.clone());
        }
        Ok(options)
    }

    /// Connects. A server that cannot be reached is tried again for a while; one that refuses is not.
    pub(crate) async fn connect(&self) -> Result<Client, NatsError> {
        let (shown, mut backoff) = (self.shown(), Backoff::new(self.patience));
        let servers: Vec<&str> = self.url.split(',').collect();
        if let Some(odd) = servers.iter().find(|url| !is_address(url)) {
            let odd = odd.rsplit('@').next().unwrap_or_default();
            return Err(NatsError(format!(
                "`{odd}` is not the address of a NATS server, such as nats://host:4222"
            )));
        }
        loop {
            let error = match self.options().await?.connect(&servers[..]).await {
                Ok(client) => return Ok(client),
                Err(error) => error,
            };
            let why = match error.kind() {
                ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => {
                    return Err(NatsError(format!(
                        "{shown} refuses these credentials: check the user, the token, the nkey or \
                         the credentials file"
                    )));
                }
                ConnectErrorKind::ServerParse => {
                    return Err(NatsError(format!("{shown} is not an address: {error}")));
                }
                ConnectErrorKind::Tls => {
                    return Err(NatsError(format!("{shown}: no secure connection: {error}")));
                }
                _ => format!("cannot reach {shown}: {error}"),
            };
            if !backoff.wait().await {
                return Err(NatsError(why));
            }
        }
    }
}

/// Whether this is an address that makes sense here.
fn is_address(url: &str) -> bool {
    let host = url.strip_prefix("nats://").or_else(|| url.strip_prefix("tls://"));
    host.is_some_and(|host| !host.is_empty() && !host.contains(char::is_whitespace))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_would_be_subjects_are_refused() {
        for name in ["", "a.b", "a b", "*", ">", "ä", "a/b", &"x".repeat(33)] {
            assert_eq!(name.parse::<QueueName>(), Err(BadName), "{name}");
        }
        assert_eq!("Nightly_2-b".parse::<QueueName>().unwrap().to_string(), "Nightly_2-b");
    }

    #[test]
    fn secrets_are_not_shown() {
        let server = Server::new("nats://me:secret@a:1,nats://b,tls://token@c");
        assert_eq!(server.shown(), "nats://a:1,nats://b,tls://c");
    }
}
