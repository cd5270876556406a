//! What of a queue is where in JetStream.

use std::path::Path;
use std::time::{Duration, SystemTime};

use async_nats::Client;
use async_nats::jetstream::consumer::{AckPolicy, PullConsumer, pull};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::object_store::{self, ObjectStore};
use async_nats::jetstream::stream::{self, DiscardPolicy, RetentionPolicy};
use async_nats::jetstream::{self, Context, kv};
use foresee_batch::{Digest, Performed, VERSION, decode, encode};
use tokio::io::AsyncReadExt as _;

use crate::retry::retry;
use crate::server::{NatsError, Server};

/// The largest result that is a value of the key-value store; others are objects.
const MOST_INLINE: usize = 256 << 10;

/// What stands before a result in the key-value store, and in place of one that is an object.
const INLINE: u8 = b'i';
const OBJECT: u8 = b'o';

/// Room for headers in a message.
const HEADERS: usize = 4 << 10;

/// How many jobs may be with workers at once.
pub(crate) const MOST_PENDING: i64 = 20_000;

/// How long nobody may ask for work until that is said.
pub(crate) const LONELY: Duration = Duration::from_secs(10);

/// A queue.
pub(crate) struct Store {
    pub(crate) client: Client,
    pub(crate) context: Context,
    pub(crate) consumer: PullConsumer,
    blobs: ObjectStore,
    /// How long objects stay.
    keep: Duration,
    results: kv::Store,
    pub(crate) patience: Duration,
    server: Server,
    names: Names,
}

/// The names of its parts.
#[derive(Clone)]
struct Names {
    jobs: String,
    subject: String,
    done: String,
    consumer: String,
    blobs: String,
    results: String,
}

/// Who opens a queue.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Batch,
    Worker,
}

impl Store {
    /// Connects, and makes what is not there.
    pub(crate) async fn open(server: &Server, side: Side) -> Result<Store, NatsError> {
        let client = server.connect().await?;
        let context = jetstream::new(client.clone());
        let (queue, version) = (&server.queue, version_word());
        let names = Names {
            jobs: format!("{queue}_jobs"),
            subject: format!("{queue}.jobs.{version}"),
            done: format!("{queue}.done"),
            consumer: format!("workers_{version}"),
            blobs: format!("{queue}_blobs"),
            results: format!("{queue}_results"),
        };
        let patience = server.patience;
        let stream = ours(&context, server, &names, side).await?;
        let wanted = pull::Config {
            durable_name: Some(names.consumer.clone()),
            ack_policy: AckPolicy::Explicit,
            ack_wait: server.ack_wait,
            filter_subject: names.subject.clone(),
            max_ack_pending: MOST_PENDING,
            // Versions come and go.
            inactive_threshold: server.keep,
            ..pull::Config::default()
        };
        let consumer = retry(patience, "open the queue's consumer", async || {
            stream.get_or_create_consumer(&names.consumer, wanted.clone()).await
        });
        let consumer = consumer.await?;
        let blobs = retry(patience, "open the store of traces", async || {
            let config = object_store::Config {
                bucket: names.blobs.clone(),
                max_age: server.keep,
                ..object_store::Config::default()
            };
            match context.get_object_store(&names.blobs).await {
                Ok(store) => Ok(store),
                Err(_) => context.create_object_store(config).await,
            }
        });
        let blobs = blobs.await?;
        // Whoever made it may have wanted another time.
        let stream = retry(patience, "ask for the state of the store of traces", async || {
            context.get_stream(format!("OBJ_{}", names.blobs)).await
        });
        let keep = stream.await?.cached_info().config.max_age;
        // What the client would make by itself, without asking for figures that servers before 2.10 do not have.
        let bucket = stream::Config {
            name: format!("KV_{}", names.results),
            subjects: vec![format!("$KV.{}.>", names.results)],
            max_messages_per_subject: 1,
            max_age: server.keep,
            discard: DiscardPolicy::New,
            allow_rollup: true,
            deny_delete: true,
            allow_direct: true,
            ..stream::Config::default()
        };
        let made = retry(patience, "make the store of results", async || {
            context.get_or_create_stream(bucket.clone()).await
        });
        made.await?;
        let results = retry(patience, "open the store of results", async || {
            context.get_key_value(&names.results).await
        });
        let results = results.await?;
        let server = server.clone();
        Ok(Store { client, context, consumer, blobs, keep, results, patience, server, names })
    }

    /// How large a message may be, without headers.
    pub(crate) fn most_bytes(&self) -> usize {
        self.client.server_info().max_payload.saturating_sub(HEADERS)
    }

    /// Puts a job into the queue. `id` is that of this very message: a second one with it is dropped.
    pub(crate) async fn publish(&self, id: &str, job: &[u8]) -> Result<(), NatsError> {
        retry(self.patience, "put a job into the queue", async || {
            let message = PublishMessage::build().message_id(id).payload(job.to_vec().into());
            self.context.send_publish(self.names.subject.clone(), message).await?.await
        })
        .await
        .map(drop)
    }

    /// How many jobs are in the queue, those with workers included.
    pub(crate) async fn waiting(&self) -> Result<u64, NatsError> {
        let info = retry(self.patience, "ask for the state of the queue", async || {
            self.context.get_stream(&self.names.jobs).await
        });
        Ok(info.await?.cached_info().state.messages)
    }

    /// Fails if a batch of another version has taken the queue over. A server that cannot be asked is no reason to believe that.
    pub(crate) async fn ensure_ours(&self, server: &Server) -> Result<(), NatsError> {
        let Ok(stream) = self.context.get_stream(&self.names.jobs).await else { return Ok(()) };
        let of = stream.cached_info().config.description.clone().unwrap_or_default();
        if of == description() { Ok(()) } else { Err(used_by(server, &of)) }
    }

    /// Whether someone has removed a part of it, such as who started the server with an empty store.
    async fn has_gaps(&self) -> bool {
        let streams = [
            self.names.jobs.clone(),
            format!("OBJ_{}", self.names.blobs),
            format!("KV_{}", self.names.results),
        ];
        for name in streams {
            if let Err(error) = self.context.get_stream(name).await {
                return is_gone(&error);
            }
        }
        self.consumer.get_info().await.is_err_and(|error| is_gone(&error))
    }

    /// Makes again what someone has removed; whether there was anything.
    pub(crate) async fn mend(&self) -> Result<bool, NatsError> {
        let has_gaps = self.has_gaps().await;
        if has_gaps {
            Store::open(&self.server, Side::Worker).await?;
        }
        Ok(has_gaps)
    }

    /// Tries something with the results until it succeeds or there is no patience left.
    async fn with_results<T, E: std::fmt::Display>(
        &self,
        what: &str,
        mut attempt: impl AsyncFnMut() -> Result<T, E>,
    ) -> Result<T, NatsError> {
        retry(self.patience, what, async || {
            let done = attempt().await;
            if done.is_err() {
                let _ = self.mend().await;
            }
            done
        })
        .await
    }

    /// The keys of jobs whose results have been stored, from now on.
    pub(crate) async fn notices(&self) -> Result<async_nats::Subscriber, NatsError> {
        let subscribed = self.client.subscribe(self.names.done.clone()).await;
        subscribed.map_err(|error| NatsError(format!("cannot subscribe: {error}")))
    }

    /// Says that the result of a job has been stored. Who misses it finds the result a little later.
    pub(crate) async fn notify(&self, key: Digest) {
        let _ = self.client.publish(self.names.done.clone(), key.to_string().into()).await;
    }

    /// Whether there is an object of this name and size that stays for a while.
    async fn has(&self, name: &str, bytes: u64) -> bool {
        let Ok(info) = self.blobs.info(name).await else { return false };
        let stored = info.modified.map(SystemTime::from);
        !info.deleted && info.size as u64 == bytes && stays(stored, SystemTime::now(), self.keep)
    }

    fn about(&self, name: &str) -> object_store::ObjectMetadata {
        object_store::ObjectMetadata {
            name: name.to_owned(),
            chunk_size: Some(self.most_bytes().clamp(1024, 128 << 10)),
            ..object_store::ObjectMetadata::default()
        }
    }

    /// Stores a file, unless it is there.
    pub(crate) async fn put_file(&self, digest: Digest, path: &Path) -> Result<(), NatsError> {
        let name = digest.to_string();
        let cannot = |error: std::io::Error| NatsError(format!("{}: {error}", path.display()));
        let bytes = tokio::fs::metadata(path).await.map_err(cannot)?.len();
        if self.has(&name, bytes).await {
            return Ok(());
        }
        retry(self.patience, "store a trace on the server", async || {
            let mut file = tokio::fs::File::open(path).await.map_err(|error| error.to_string())?;
            let put = self.blobs.put(self.about(&name), &mut file).await;
            put.map(drop).map_err(|error| error.to_string())
        })
        .await
    }

    /// Stores some bytes under a name, unless they are there.
    pub(crate) async fn put_bytes(&self, name: &str, bytes: &[u8]) -> Result<(), NatsError> {
        if self.has(name, bytes.len() as u64).await {
            return Ok(());
        }
        retry(self.patience, "store data on the server", async || {
            self.blobs.put(self.about(name), &mut &*bytes).await.map(drop)
        })
        .await
    }

    /// Fetches an object of at most this size, piece by piece.
    pub(crate) async fn fetch_to(
        &self,
        name: &str,
        most: u64,
        to: &mut dyn std::io::Write,
    ) -> Result<(), NatsError> {
        let cannot = |why: &dyn std::fmt::Display| NatsError(format!("cannot fetch {name}: {why}"));
        let object = self.blobs.get(name).await.map_err(|error| cannot(&error))?;
        if object.info().size as u64 > most {
            return Err(cannot(&format!("it has more than {most} bytes")));
        }
        let (mut object, mut piece) = (object.take(most + 1), vec![0; 128 << 10]);
        loop {
            match object.read(&mut piece).await.map_err(|error| cannot(&error))? {
                0 => return Ok(()),
                length => to.write_all(&piece[..length]).map_err(|error| cannot(&error))?,
            }
        }
    }

    /// Fetches an object of at most this size into memory.
    pub(crate) async fn fetch(&self, name: &str, most: u64) -> Result<Vec<u8>, NatsError> {
        let mut bytes = Vec::new();
        self.fetch_to(name, most, &mut bytes).await?;
        Ok(bytes)
    }

    /// The result of a job, if there is one that can be used.
    pub(crate) async fn result(&self, key: Digest) -> Result<Option<Performed>, NatsError> {
        let value = self.value(&key.to_string(), u64::from(u32::MAX)).await?;
        Ok(value.and_then(|bytes| decode(key, &bytes).ok()))
    }

    /// A value of at most this size, if it is there and whole.
    pub(crate) async fn value(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>, NatsError> {
        let value = self.with_results("ask for a result", async || self.results.get(name).await);
        let Some(value) = value.await? else { return Ok(None) };
        Ok(match value.split_first() {
            Some((&INLINE, bytes)) => Some(bytes.to_vec()),
            Some((&OBJECT, _)) => self.fetch(&object(name), most).await.ok(),
            _ => None,
        })
    }

    /// Whether there is a result.
    pub(crate) async fn has_result(&self, key: Digest) -> Result<bool, NatsError> {
        self.has_value(&key.to_string()).await
    }

    /// Whether there is a value of this name.
    pub(crate) async fn has_value(&self, name: &str) -> Result<bool, NatsError> {
        let value = self.with_results("ask for a result", async || self.results.get(name).await);
        Ok(value.await?.is_some())
    }

    /// Stores the result of a job. One that is too large is stored as a failure.
    pub(crate) async fn put_result(
        &self,
        key: Digest,
        performed: &Performed,
    ) -> Result<(), NatsError> {
        let bytes = match encode(key, performed) {
            Ok(bytes) => bytes,
            Err(error) => encode(key, &Err(foresee_batch::Failed(error.to_string())))
                .map_err(|error| NatsError(error.to_string()))?,
        };
        self.put_value(&key.to_string(), &bytes).await
    }

    /// Stores a value.
    pub(crate) async fn put_value(&self, name: &str, bytes: &[u8]) -> Result<(), NatsError> {
        let value = match bytes.len() < MOST_INLINE.min(self.most_bytes()) {
            true => [&[INLINE], bytes].concat(),
            false => {
                self.put_bytes(&object(name), bytes).await?;
                vec![OBJECT]
            }
        };
        self.with_results("store a result", async || {
            self.results.put(name, value.clone().into()).await
        })
        .await
        .map(drop)
    }

    /// Forgets a result, so that its job is done again.
    pub(crate) async fn forget(&self, key: Digest) -> Result<(), NatsError> {
        let name = key.to_string();
        retry(self.patience, "remove a result", async || self.results.purge(&name).await).await
    }

    /// Notes why a try of a job failed. Only messages rest on it.
    pub(crate) async fn note_try(&self, key: Digest, why: &str) {
        let _ = self.results.put(format!("tries.{key}"), why.to_owned().into()).await;
    }

    /// Why the last try of a job failed, if that is known.
    pub(crate) async fn last_try(&self, key: Digest) -> Option<String> {
        let noted = self.results.get(format!("tries.{key}")).await.ok()??;
        Some(String::from_utf8_lossy(&noted).into_owned())
    }
}

/// Whether a server says that there is no such stream or consumer. Any other error may pass.
pub(crate) fn is_gone(error: &dyn std::fmt::Display) -> bool {
    error.to_string().contains("not found")
}

/// Whether a worker asks a consumer for work, or has some from it.
pub(crate) async fn has_workers(consumer: &PullConsumer) -> bool {
    let info = consumer.get_info().await;
    info.is_ok_and(|info| info.num_waiting > 0 || info.num_ack_pending > 0)
}

/// The version as one word of a subject.
pub(crate) fn version_word() -> String {
    VERSION.replace(|c: char| !c.is_ascii_alphanumeric(), "_")
}

/// A number that tells the messages of this process from those of others.
pub(crate) fn own_number() -> u128 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    now.as_nanos() ^ (u128::from(std::process::id()) << 96)
}

/// Whether what was stored then stays for at least half of the time that things are kept: workers may come to it late. Clocks
/// that differ by less do no harm.
fn stays(stored: Option<SystemTime>, now: SystemTime, keep: Duration) -> bool {
    let age = stored.map(|stored| now.duration_since(stored).unwrap_or_default());
    // No time is forever.
    keep.is_zero() || age.is_some_and(|age| age < keep / 2)
}

/// The name of the object with a value.
fn object(name: &str) -> String {
    format!("result-{name}")
}

/// What the stream of jobs says of who uses it.
fn description() -> String {
    format!("foresee {VERSION}")
}

/// The queue belongs to another version.
fn used_by(server: &Server, other: &str) -> NatsError {
    let other = if other.is_empty() { "something else" } else { other };
    NatsError(format!(
        "the queue `{}` on {} is used by {other}, and this is {}: use the same version, or another \
         queue with --queue-name",
        server.queue,
        server.shown(),
        description()
    ))
}

/// The stream of jobs, if this version uses it. A batch takes over one of another version that is empty.
async fn ours(
    context: &Context,
    server: &Server,
    names: &Names,
    side: Side,
) -> Result<stream::Stream, NatsError> {
    let description = description();
    let config = stream::Config {
        name: names.jobs.clone(),
        subjects: vec![format!("{}.jobs.>", server.queue)],
        retention: RetentionPolicy::WorkQueue,
        // A job that does not fit is refused, and no other one is lost for it.
        discard: DiscardPolicy::New,
        description: Some(description.clone()),
        ..stream::Config::default()
    };
    let opened = retry(server.patience, "open the queue", async || {
        context.get_or_create_stream(config.clone()).await
    });
    let stream = opened.await?;
    let info = stream.cached_info();
    let other = info.config.description.clone().unwrap_or_default();
    if other == description {
        return Ok(stream);
    }
    if side == Side::Worker || info.state.messages > 0 {
        return Err(used_by(server, &other));
    }
    retry(server.patience, "take over the queue", async || {
        context.update_stream(config.clone()).await
    })
    .await?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_removed_soon_is_stored_again() {
        let (now, hour) = (SystemTime::now(), Duration::from_secs(3600));
        assert!(stays(Some(now - hour), now, 3 * hour));
        assert!(!stays(Some(now - hour), now, 2 * hour));
        assert!(!stays(None, now, hour));
        assert!(stays(Some(now - 100 * hour), now, Duration::ZERO), "kept forever");
        assert!(stays(Some(now + hour), now, hour), "by a clock that is ahead");
    }
}
