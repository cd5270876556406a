//! Where a queue is, and who asks.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use async_nats::{Client, ConnectErrorKind, ConnectOptions};

use crate::retry::{Backoff, hear};

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
    /// Certificates of authorities to trust in place of those of the system.
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

    /// How to prove who asks: as was said, or else as the first address says that does.
    fn proof(&self) -> Auth {
        match &self.auth {
            Auth::None => self.url.split(',').find_map(in_address).unwrap_or_default(),
            said => said.clone(),
        }
    }

    async fn options(&self) -> Result<ConnectOptions, NatsError> {
        let file = |path: &Path, error: &dyn fmt::Display| {
            NatsError(format!("cannot read {}: {error}", path.display()))
        };
        let holds = |path: &Path, what: &str, mark: &str| {
            let text = std::fs::read(path).map_err(|error| file(path, &error))?;
            let holds = String::from_utf8_lossy(&text).contains(mark);
            let error = || NatsError(format!("{} has no {what} in PEM", path.display()));
            holds.then_some(()).ok_or_else(error)
        };
        let (certificate_mark, key_mark) = ("-----BEGIN CERTIFICATE-----", "PRIVATE KEY-----");
        let mut options = ConnectOptions::new()
            .name("foresee")
            .connection_timeout(Duration::from_secs(5))
            .request_timeout(Some(Duration::from_secs(5)))
            .ping_interval(Duration::from_secs(10))
            .event_callback(hear);
        options = match self.proof() {
            Auth::None => options,
            Auth::Token(token) => options.token(token),
            Auth::User(name, password) => options.user_and_password(name, password),
            Auth::Nkey(path) => {
                let seed = std::fs::read_to_string(&path).map_err(|error| file(&path, &error))?;
                let seed = seed.trim();
                if !is_seed(seed) {
                    let shown = path.display();
                    return Err(NatsError(format!(
                        "{shown} has no seed of a user's nkey, which is 58 letters and digits that begin with SU"
                    )));
                }
                options.nkey(seed.to_owned())
            }
            Auth::Credentials(path) => {
                options.credentials_file(&path).await.map_err(|error| file(&path, &error))?
            }
        };
        if self.tls.required {
            options = options.require_tls(true);
        }
        if let Some(ca) = &self.tls.ca {
            holds(ca, "certificate", certificate_mark)?;
            options = options.add_root_certificates(ca.clone());
        }
        if let Some((certificate, key)) = &self.tls.own {
            holds(certificate, "certificate", certificate_mark)?;
            holds(key, "private key", key_mark)?;
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
                _ => match insecure(&error.to_string()) {
                    Some(help) => {
                        return Err(NatsError(format!(
                            "{shown}: no secure connection: {error}; {help}"
                        )));
                    }
                    None => format!("cannot reach {shown}: {error}"),
                },
            };
            if !backoff.wait().await {
                return Err(NatsError(why));
            }
        }
    }
}

/// What helps if there is no secure connection, and never will be.
fn insecure(error: &str) -> Option<&'static str> {
    Some(match error {
        _ if error.contains("UnknownIssuer") => {
            "nobody whom we trust vouches for the server's certificate: name its authority with --nats-ca FILE"
        }
        _ if error.contains("NotValidForName") => {
            "the server's certificate is for another name: use one that it has"
        }
        _ if error.contains("Expired") || error.contains("NotValidYet") => {
            "the server's certificate is not valid today: renew it, or set the clock"
        }
        _ if error.contains("invalid peer certificate") => "mend the server's certificate",
        _ if error.contains("received fatal alert") => {
            "the server does not trust us: give it a certificate with --nats-cert FILE and --nats-key FILE"
        }
        _ if error.contains("InvalidContentType") => {
            "the server does not use TLS: ask it with nats:// and without certificates"
        }
        _ => return None,
    })
}

/// The name and password, or the token, in an address.
fn in_address(url: &str) -> Option<Auth> {
    let (before, _) = url.split_once("://")?.1.rsplit_once('@')?;
    Some(match before.split_once(':') {
        Some((name, password)) => Auth::User(decoded(name), decoded(password)),
        None => Auth::Token(decoded(before)),
    })
}

/// A part of an address without its escapes, such as `%40`.
fn decoded(text: &str) -> String {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let digits = part.get(..2).and_then(|two| u8::from_str_radix(two, 16).ok());
        match digits {
            Some(byte) => {
                bytes.push(byte);
                bytes.extend(&part.as_bytes()[2..]);
            }
            None => bytes.extend(b"%".iter().chain(part.as_bytes())),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Whether this looks like the seed of a user's nkey.
fn is_seed(text: &str) -> bool {
    let is_digit = |b: u8| b.is_ascii_uppercase() || (b'2'..=b'7').contains(&b);
    text.len() == 58 && text.starts_with("SU") && text.bytes().all(is_digit)
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
    fn an_address_may_say_who_asks() {
        let proof = |url: &str| match Server::new(url).proof() {
            Auth::User(name, password) => format!("{name} {password}"),
            Auth::Token(token) => token,
            _ => String::new(),
        };
        assert_eq!(proof("nats://a:1,tls://me:se%3Acr%40t%@b:2"), "me se:cr@t%");
        assert_eq!(proof("nats://sesame@a"), "sesame");
        assert_eq!(proof("nats://a:1"), "");
        let said = Server { auth: Auth::Token("said".to_owned()), ..Server::new("nats://x@a") };
        assert!(matches!(said.proof(), Auth::Token(token) if token == "said"));
    }

    #[test]
    fn secrets_are_not_shown() {
        let server = Server::new("nats://me:secret@a:1,nats://b,tls://token@c");
        assert_eq!(server.shown(), "nats://a:1,nats://b,tls://c");
    }
}
