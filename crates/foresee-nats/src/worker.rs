//! The side of the workers: takes jobs, does them, and stores their results.

use std::cell::Cell;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use async_nats::jetstream::consumer::PullConsumer;
use async_nats::jetstream::{AckKind, Message};
use foresee_batch::{Blob, Blobs, Decided, Digest, Failed, Job, Performed};
use futures_util::StreamExt as _;
use futures_util::future::join_all;

use crate::TRIES;
use crate::calls::{Calls, Group, Request, answer_name, encode};
use crate::fetched::Fetched;
use crate::server::{NatsError, Server};
use crate::store::{Side, Store, is_gone};

/// How long a worker waits for a job at a time, and so how soon it notices that it should stop.
const WAIT: Duration = Duration::from_secs(1);

/// How often a worker without work, or in trouble, looks whether the queue is still there, and that of its version.
const LOOK: Duration = Duration::from_secs(10);

/// How long work that could not be stored waits for another try.
const PAUSE: Duration = Duration::from_millis(500);

/// As much as a process has on its first thread, and some more: jobs are done on others.
const STACK: usize = 16 << 20;

/// The largest specification.
const MOST_TEXT: u64 = 16 << 20;

/// Does a job.
pub type Perform = Arc<dyn Fn(&Job, &dyn Blobs) -> Performed + Send + Sync>;

/// Answers a request, or says why not.
pub type Answering = Arc<dyn Fn(&[u8]) -> Result<Vec<u8>, String> + Send + Sync>;

/// Requests that a worker answers.
#[derive(Clone)]
pub struct Served {
    /// Their group.
    pub group: Group,
    /// What answers them.
    pub answer: Answering,
}

/// A worker.
pub struct Worker {
    /// Where the queue is.
    pub server: Server,
    /// How many jobs it does at once.
    pub jobs: usize,
    /// Where it keeps traces ...
    pub folder: PathBuf,
    /// ... and how many bytes of them.
    pub most_bytes: u64,
    /// How long it waits for work before it ends; `None` if it never does.
    pub idle: Option<Duration>,
    /// What does the jobs.
    pub perform: Perform,
    /// Requests that it answers besides, of each group as many at once as jobs.
    pub served: Vec<Served>,
}

/// What a worker has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Worked {
    /// Jobs and requests that it has stored a result of.
    pub done: u64,
    /// Those among them that have no answer.
    pub failed: u64,
}

/// Works until it is told to stop, or nothing is left to do. A job that was begun is finished.
pub fn work(worker: &Worker, stop: &AtomicBool, tell: &dyn Fn(&str)) -> Result<Worked, NatsError> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().thread_stack_size(STACK).build();
    let runtime = runtime.map_err(|error| NatsError(format!("cannot start: {error}")))?;
    runtime.block_on(async {
        let store = Store::open(&worker.server, Side::Worker).await?;
        let fetched = Fetched::open(&worker.folder, worker.most_bytes)?;
        let heartbeat = store.consumer.cached_info().config.ack_wait / 3;
        let heartbeat = heartbeat.max(Duration::from_millis(100));
        let mut calls = Vec::new();
        for served in &worker.served {
            calls.push(Calls::open(&store, &worker.server, &served.group).await?);
        }
        let (calls, looked) = (calls.as_slice(), Cell::new(Instant::now()));
        let shift = Shift { worker, store, calls, looked, fetched, heartbeat, stop, tell };
        let shift = &shift;
        let each = (0..worker.jobs.max(1)).flat_map(|_| {
            let calls = calls.iter().zip(&worker.served);
            let calls = calls.map(|(calls, served)| Work::Calls(calls, &served.answer));
            std::iter::once(Work::Jobs).chain(calls).map(|work| shift.work(work))
        });
        let all = join_all(each).await;
        let mut worked = Worked::default();
        for one in all {
            let one = one?;
            worked.done += one.done;
            worked.failed += one.failed;
        }
        Ok(worked)
    })
}

/// A worker at work.
struct Shift<'w> {
    worker: &'w Worker,
    store: Store,
    calls: &'w [Calls],
    looked: Cell<Instant>,
    fetched: Fetched,
    heartbeat: Duration,
    stop: &'w AtomicBool,
    tell: &'w dyn Fn(&str),
}

/// One kind of work.
#[derive(Clone, Copy)]
enum Work<'w> {
    Jobs,
    Calls(&'w Calls, &'w Answering),
}

impl Shift<'_> {
    /// One job or request after the other.
    async fn work(&self, work: Work<'_>) -> Result<Worked, NatsError> {
        let consumer = match work {
            Work::Jobs => &self.store.consumer,
            Work::Calls(calls, _) => &calls.consumer,
        };
        let mut worked = Worked::default();
        let (mut busy, mut heard) = (Instant::now(), Instant::now());
        while !self.stop.load(Ordering::Relaxed) {
            match self.next(consumer).await {
                Ok(Some(message)) => {
                    heard = Instant::now();
                    let handled = match work {
                        Work::Jobs => self.handle(&message).await,
                        Work::Calls(_, answer) => self.answer(&message, answer).await,
                    };
                    match handled {
                        Ok(Some(is_answered)) => {
                            worked.done += 1;
                            worked.failed += u64::from(!is_answered);
                        }
                        Ok(None) => {}
                        Err(NatsError(why)) => {
                            (self.tell)(&why);
                            self.look().await?;
                        }
                    }
                    busy = Instant::now();
                }
                Ok(None) => {
                    heard = Instant::now();
                    if self.worker.idle.is_some_and(|idle| busy.elapsed() >= idle) {
                        break;
                    }
                    self.look().await?;
                }
                Err(NatsError(why)) => {
                    // The client connects again by itself.
                    if heard.elapsed() > self.worker.server.patience {
                        return Err(NatsError(why));
                    }
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
            }
        }
        Ok(worked)
    }

    /// Looks once in a while whether the queue is as it should be. Nothing would ever come from one that is gone: what is
    /// missing is made again, and batches put into it what is not done. One of another version is left.
    async fn look(&self) -> Result<(), NatsError> {
        if self.looked.get().elapsed() < LOOK {
            return Ok(());
        }
        self.looked.set(Instant::now());
        let server = &self.worker.server;
        self.store.ensure_ours(server).await?;
        let made = async {
            let mut is_made = self.store.mend().await?;
            for (calls, served) in self.calls.iter().zip(&self.worker.served) {
                if calls.consumer.get_info().await.is_err_and(|error| is_gone(&error)) {
                    Calls::open(&self.store, server, &served.group).await?;
                    is_made = true;
                }
            }
            Ok::<_, NatsError>(is_made)
        };
        match made.await {
            Ok(false) => {}
            Ok(true) => (self.tell)("parts of the queue were gone, and were made again"),
            Err(NatsError(why)) => (self.tell)(&why),
        }
        Ok(())
    }

    /// The next job, if one comes soon.
    async fn next(&self, consumer: &PullConsumer) -> Result<Option<Message>, NatsError> {
        let failed =
            |error: &dyn std::fmt::Display| NatsError(format!("cannot take a job: {error}"));
        let wanted = consumer.batch().max_messages(1).expires(WAIT).messages();
        let mut messages = wanted.await.map_err(|error| failed(&error))?;
        // A server that is restarted forgets who waits.
        let next = tokio::time::timeout(2 * WAIT, messages.next()).await;
        match next {
            Err(_) | Ok(None) => match self.store.client.connection_state() {
                async_nats::connection::State::Connected => Ok(None),
                _ => Err(NatsError("the server cannot be reached".to_owned())),
            },
            Ok(Some(message)) => message.map(Some).map_err(|error| failed(&error)),
        }
    }

    /// Does a job; whether it has an answer, or nothing if its result was there.
    async fn handle(&self, message: &Message) -> Result<Option<bool>, NatsError> {
        let Ok(job) = serde_json::from_slice::<Job>(&message.payload) else {
            // It would not become one by trying again.
            let _ = message.ack_with(AckKind::Term).await;
            return Err(NatsError(
                "a message in the queue is not a job, and was dropped".to_owned(),
            ));
        };
        let key = job.key();
        let tries = message.info().map_or(1, |info| info.delivered);
        match self.finish(message, &job, tries).await {
            Ok(done) => {
                self.acknowledge(message, key).await;
                Ok(done)
            }
            Err(why) => {
                self.store.note_try(key, &why.to_string()).await;
                self.put_back(message, tries).await;
                Err(why)
            }
        }
    }

    /// Stores the result of a job; whether that is an answer, or nothing if it was there.
    async fn finish(
        &self,
        message: &Message,
        job: &Job,
        tries: i64,
    ) -> Result<Option<bool>, NatsError> {
        let key = job.key();
        if self.store.has_result(key).await? {
            return Ok(None);
        }
        let performed = match tries > TRIES {
            true => Err(self.give_up(key).await),
            false => self.alive(message, self.perform(job)).await?,
        };
        self.alive(message, self.store.put_result(key, &performed)).await?;
        Ok(Some(performed.is_ok()))
    }

    /// Another worker may have more luck, a little later.
    async fn put_back(&self, message: &Message, tries: i64) {
        let delay = PAUSE * u32::try_from(tries).unwrap_or(1);
        let _ = message.ack_with(AckKind::Nak(Some(delay))).await;
    }

    /// Answers a request; whether it has an answer, or nothing if that was there.
    async fn answer(
        &self,
        message: &Message,
        answer: &Answering,
    ) -> Result<Option<bool>, NatsError> {
        let tries = message.info().map_or(1, |info| info.delivered);
        let request = match Request::read(&self.store, &message.payload).await {
            Ok(Some(request)) => request,
            Ok(None) => {
                let _ = message.ack_with(AckKind::Term).await;
                return Err(NatsError(
                    "a message in the queue is not a request, and was dropped".to_owned(),
                ));
            }
            Err(why) => {
                self.put_back(message, tries).await;
                return Err(why);
            }
        };
        let name = answer_name(&request.id);
        let is_there = match self.store.has_value(&name).await {
            Ok(is_there) => is_there,
            Err(why) => {
                self.put_back(message, tries).await;
                return Err(why);
            }
        };
        let mut is_answered = None;
        if !is_there {
            let answered = match tries > TRIES {
                true => Err(format!(
                    "given up after {TRIES} tries: the workers died, or gave no sign of life"
                )),
                false => {
                    let (answer, body) = (Arc::clone(answer), request.body.clone());
                    let doing = tokio::task::spawn_blocking(move || answer(&body));
                    let done = self.alive(message, doing).await;
                    done.unwrap_or_else(|error| {
                        Err(format!("a request could not be done: {error}"))
                    })
                }
            };
            is_answered = Some(answered.is_ok());
            let bytes = encode(&answered);
            let stored = self.alive(message, self.store.put_value(&name, &bytes)).await;
            if let Err(why) = stored {
                let trouble = why.to_string();
                request.notify(&self.store, &self.worker.server, &trouble).await;
                self.put_back(message, tries).await;
                return Err(why);
            }
        }
        request.notify(&self.store, &self.worker.server, "").await;
        let _ = message.double_ack().await;
        Ok(is_answered)
    }

    /// Why a job is not tried again.
    async fn give_up(&self, key: Digest) -> Failed {
        let last = self.store.last_try(key).await;
        let last = last.as_deref().unwrap_or("its workers died, or gave no sign of life");
        Failed(format!("given up after {TRIES} tries: {last}"))
    }

    /// Waits for something, and shows meanwhile that the worker is alive.
    async fn alive<T>(&self, message: &Message, doing: impl Future<Output = T>) -> T {
        let mut beat = tokio::time::interval(self.heartbeat);
        beat.tick().await;
        let mut doing = std::pin::pin!(doing);
        loop {
            tokio::select! {
                done = &mut doing => return done,
                _ = beat.tick() => drop(message.ack_with(AckKind::Progress).await),
            }
        }
    }

    /// Tells the server and the batch that a result is stored. If the server does not hear of it, the job is delivered once
    /// more, and found to be done.
    async fn acknowledge(&self, message: &Message, key: Digest) {
        self.store.notify(key).await;
        let _ = message.double_ack().await;
    }

    /// Fetches what a job names, and does it on a thread of its own. What goes wrong with the job itself is its result.
    async fn perform(&self, job: &Job) -> Result<Performed, NatsError> {
        let mut texts = HashMap::new();
        for spec in &job.specs {
            let bytes = self.store.fetch(&spec.digest.to_string(), MOST_TEXT).await?;
            let text = String::from_utf8(bytes)
                .ok()
                .filter(|text| Digest::of(text.as_bytes()) == spec.digest);
            let damaged = || NatsError(format!("{} was damaged on its way", spec.name));
            texts.insert(spec.digest, text.ok_or_else(damaged)?);
        }
        let mut decided = HashMap::new();
        for &key in &job.decided_by {
            // Whoever is not helped does everything itself.
            if let Ok(Some(Ok(answer))) = self.store.result(key).await {
                decided.extend(answer.decided.map(|decided| (key, decided)));
            }
        }
        let taken = self.fetched.take(&self.store, &job.trace).await?;
        let here = Here { trace: taken.path.clone(), texts, decided };
        let (perform, of) = (Arc::clone(&self.worker.perform), job.clone());
        let done = tokio::task::spawn_blocking(move || perform(&of, &here)).await;
        let done = done.map_err(|error| NatsError(format!("a job could not be done: {error}")))?;
        match done.is_ok() || taken.is_there() {
            true => Ok(done),
            false => Err(NatsError(format!("{} was removed while it was read", job.trace.name))),
        }
    }
}

/// What one job names.
struct Here {
    trace: PathBuf,
    texts: HashMap<Digest, String>,
    decided: HashMap<Digest, Decided>,
}

impl Blobs for Here {
    fn trace(&self, _: &Blob) -> Result<PathBuf, Failed> {
        Ok(self.trace.clone())
    }

    fn text(&self, blob: &Blob) -> Result<String, Failed> {
        let unknown = || Failed(format!("{} was not fetched", blob.name));
        self.texts.get(&blob.digest).cloned().ok_or_else(unknown)
    }

    fn decided(&self, key: Digest) -> Option<Decided> {
        self.decided.get(&key).cloned()
    }
}
