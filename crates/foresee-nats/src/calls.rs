//! Requests to whoever can answer them, such as to run a program: the side that asks.
//!
//! A request is a message in a work queue, its answer a value in the store of results. Requests of a group go only to workers
//! that [serve](crate::Served) it, so that a worker never has to refuse one. Each request has an identity of its own, and two that say the same
//! are two: whoever asks twice wants to know whether the answers differ.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_nats::jetstream::consumer::{AckPolicy, PullConsumer, pull};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{self, DiscardPolicy, RetentionPolicy};
use foresee_batch::Digest;
use futures_util::StreamExt as _;

use crate::background::Background;
use crate::retry::retry;
use crate::server::{NatsError, Server, is_word};
use crate::store::{LONELY, MOST_PENDING, Side, Store, has_workers, own_number, version_word};

/// How often an answer is looked for that no notice came of.
const LOOK: Duration = Duration::from_secs(1);

/// The largest request and the largest answer.
pub(crate) const MOST_BYTES: u64 = 64 << 20;

/// What stands before a request, and in place of one that is an object.
const INLINE: u8 = b'i';
const OBJECT: u8 = b'o';

/// Workers that can answer the same requests.
///
/// ```
/// use foresee_nats::Group;
///
/// assert!("8f3a01".parse::<Group>().is_ok());
/// assert!("a.*".parse::<Group>().is_err(), "it becomes a word of a subject");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Group(String);

/// A name that no group can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the name of a group has 1 to {LONGEST} letters, digits, `-` and `_`")]
pub struct BadGroup;

const LONGEST: usize = 128;

impl std::str::FromStr for Group {
    type Err = BadGroup;

    fn from_str(text: &str) -> Result<Group, BadGroup> {
        is_word(text, LONGEST).then(|| Group(text.to_owned())).ok_or(BadGroup)
    }
}

/// The work queue of a group.
pub(crate) struct Calls {
    subject: String,
    stream: stream::Stream,
    pub(crate) consumer: PullConsumer,
}

impl Calls {
    pub(crate) async fn open(
        store: &Store,
        server: &Server,
        group: &Group,
    ) -> Result<Calls, NatsError> {
        let (queue, version) = (&server.queue, version_word());
        let config = stream::Config {
            name: format!("{queue}_calls"),
            subjects: vec![format!("{queue}.calls.>")],
            retention: RetentionPolicy::WorkQueue,
            discard: DiscardPolicy::New,
            max_age: server.keep,
            ..stream::Config::default()
        };
        let stream = retry(server.patience, "open the queue of requests", async || {
            store.context.get_or_create_stream(config.clone()).await
        });
        let stream = stream.await?;
        let (name, subject) = (
            format!("calls_{version}_{}", group.0),
            format!("{queue}.calls.{version}.{}", group.0),
        );
        let wanted = pull::Config {
            durable_name: Some(name.clone()),
            ack_policy: AckPolicy::Explicit,
            ack_wait: server.ack_wait,
            filter_subject: subject.clone(),
            max_ack_pending: MOST_PENDING,
            // Builds come and go.
            inactive_threshold: server.keep,
            ..pull::Config::default()
        };
        let consumer = retry(server.patience, "open the consumer of requests", async || {
            stream.get_or_create_consumer(&name, wanted.clone()).await
        });
        Ok(Calls { subject, consumer: consumer.await?, stream })
    }

    async fn publish(&self, store: &Store, id: &str, text: &[u8]) -> Result<(), NatsError> {
        retry(store.patience, "put a request into the queue", async || {
            let message = PublishMessage::build().message_id(id).payload(text.to_vec().into());
            store.context.send_publish(self.subject.clone(), message).await?.await
        })
        .await
        .map(drop)
    }
}

/// Where the answer to a request is kept.
pub(crate) fn answer_name(id: &str) -> String {
    format!("call.{id}")
}

/// Where it is told that a request was answered.
fn notices(server: &Server, id: &str) -> String {
    format!("{}.called.{id}", server.queue)
}

/// A request as a worker gets it.
pub(crate) struct Request {
    pub(crate) id: String,
    pub(crate) body: Vec<u8>,
}

impl Request {
    /// Reads a message; nothing if it is no request.
    pub(crate) async fn read(store: &Store, bytes: &[u8]) -> Result<Option<Request>, NatsError> {
        let Some((kind, rest)) = bytes.split_first() else { return Ok(None) };
        let Some((id, body)) = rest.split_at_checked(64) else { return Ok(None) };
        let id = std::str::from_utf8(id).ok().filter(|id| id.parse::<Digest>().is_ok());
        let Some(id) = id.map(str::to_owned) else { return Ok(None) };
        let body = match *kind {
            INLINE => body.to_vec(),
            OBJECT => store.fetch(&format!("request-{id}"), MOST_BYTES).await?,
            _ => return Ok(None),
        };
        Ok(Some(Request { id, body }))
    }

    /// Tells whoever asked that there is an answer, or what trouble there is with it.
    pub(crate) async fn notify(&self, store: &Store, server: &Server, trouble: &str) {
        let trouble = trouble.to_owned().into();
        let _ = store.client.publish(notices(server, &self.id), trouble).await;
    }
}

/// An answer as it is stored.
pub(crate) fn encode(answer: &Result<Vec<u8>, String>) -> Vec<u8> {
    match answer {
        Ok(bytes) => [b"+", &**bytes].concat(),
        Err(why) => [b"-", why.as_bytes()].concat(),
    }
}

/// Asks workers of a group. Any number of threads may ask at once.
pub struct Caller {
    server: Server,
    store: Store,
    calls: Calls,
    /// Part of the identities of requests.
    started: u128,
    next: AtomicU64,
    is_stopped: Arc<dyn Fn() -> bool + Send + Sync>,
    tell: Arc<dyn Fn(&str) + Send + Sync>,
    background: Background,
}

impl Caller {
    /// Connects. Requests are given up when `is_stopped`; `tell` is told what the user should know meanwhile.
    pub fn open(
        server: &Server,
        group: &Group,
        is_stopped: Arc<dyn Fn() -> bool + Send + Sync>,
        tell: Arc<dyn Fn(&str) + Send + Sync>,
    ) -> Result<Caller, NatsError> {
        let background = Background::start()?;
        let (store, calls) = background.wait(async {
            let store = Store::open(server, Side::Batch).await?;
            let calls = Calls::open(&store, server, group).await?;
            Ok::<_, NatsError>((store, calls))
        })?;
        let (server, started, next) = (server.clone(), own_number(), AtomicU64::new(0));
        Ok(Caller { server, store, calls, started, next, is_stopped, tell, background })
    }

    /// Asks, and waits for the answer.
    pub fn call(&self, body: &[u8]) -> Result<Vec<u8>, NatsError> {
        self.background.wait(self.ask(body))
    }

    async fn ask(&self, body: &[u8]) -> Result<Vec<u8>, NatsError> {
        if body.len() as u64 > MOST_BYTES {
            return Err(NatsError(format!("a request has more than {} MiB", MOST_BYTES >> 20)));
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let id = Digest::of(format!("{:x} {number}", self.started).as_bytes()).to_string();
        let cannot =
            |error: &dyn std::fmt::Display| NatsError(format!("cannot subscribe: {error}"));
        let noticed = self.store.client.subscribe(notices(&self.server, &id)).await;
        let mut noticed = noticed.map_err(|error| cannot(&error))?;
        let text = match body.len() + 65 <= self.store.most_bytes() {
            true => [&[INLINE], id.as_bytes(), body].concat(),
            false => {
                self.store.put_bytes(&format!("request-{id}"), body).await?;
                [&[OBJECT], id.as_bytes()].concat()
            }
        };
        self.calls.publish(&self.store, &id, &text).await?;
        let (asked, mut is_told, mut round, mut absent) = (Instant::now(), false, 0, 0);
        loop {
            let notice = tokio::time::timeout(LOOK, noticed.next()).await;
            if let Some(answer) = self.store.value(&answer_name(&id), MOST_BYTES).await? {
                return match answer.split_first() {
                    Some((b'+', bytes)) => Ok(bytes.to_vec()),
                    Some((_, why)) => Err(NatsError(String::from_utf8_lossy(why).into_owned())),
                    None => Err(NatsError("an answer is empty".to_owned())),
                };
            }
            if (self.is_stopped)() {
                return Err(NatsError("stopped while workers were at it".to_owned()));
            }
            if let Ok(notice) = notice {
                let trouble = notice.map(|notice| notice.payload).unwrap_or_default();
                // Workers try again, and so does whoever asks, for as long as there is patience.
                if !trouble.is_empty() && asked.elapsed() > self.store.patience {
                    return Err(NatsError(String::from_utf8_lossy(&trouble).into_owned()));
                }
                continue;
            }
            // Someone may have removed it. An answer may come between two looks, so it takes two to be sure.
            let info = retry(self.store.patience, "ask for the state of the queue", async || {
                self.calls.stream.get_info().await
            });
            absent = if info.await?.state.messages == 0 { absent + 1 } else { 0 };
            if absent == 2 {
                (round, absent) = (round + 1, 0);
                self.calls.publish(&self.store, &format!("{id}-{round}"), &text).await?;
            }
            if !is_told && asked.elapsed() > LONELY && !has_workers(&self.calls.consumer).await {
                is_told = true;
                (self.tell)(
                    "no worker takes this: start one with `foresee worker --allow-run`, on a machine with the \
                     same build of the program (and with --allow-before, if --before is used)",
                );
            }
        }
    }
}
