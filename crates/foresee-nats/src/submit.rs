//! The side of the batch: jobs into the queue, results out of it.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet, VecDeque};
use std::rc::Rc;
use std::time::{Duration, Instant};

use foresee_batch::{Blobs, Digest, Failed, HandOver, Job, Performed, Queue, QueueError, VERSION};
use futures_util::StreamExt as _;
use tokio::sync::OnceCell;

use crate::server::{NatsError, Server};
use crate::store::{LONELY, Side, Store, has_workers, own_number};

/// How often results are looked for that no notice came of, and how many at a time.
const LOOK: Duration = Duration::from_millis(1000);
const LOOKED_FOR: usize = 200;

/// How many jobs are put into the queue at once.
const AT_ONCE: usize = 16;

/// A queue on a NATS server.
pub struct NatsQueue<'n> {
    /// Where it is.
    pub server: Server,
    /// Told what the user should know meanwhile.
    pub tell: &'n dyn Fn(&str),
}

impl Queue for NatsQueue<'_> {
    fn perform(
        &self,
        jobs: &[&Job],
        blobs: &(dyn Blobs + Sync),
        done: &mut HandOver<'_>,
    ) -> Result<(), QueueError> {
        if jobs.is_empty() {
            return Ok(());
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| QueueError(format!("cannot start: {error}")))?;
        runtime.block_on(self.submit(jobs, blobs, done))
    }
}

fn failed(NatsError(why): NatsError) -> QueueError {
    QueueError(why)
}

impl NatsQueue<'_> {
    async fn submit(
        &self,
        jobs: &[&Job],
        blobs: &(dyn Blobs + Sync),
        done: &mut HandOver<'_>,
    ) -> Result<(), QueueError> {
        let store = Store::open(&self.server, Side::Batch).await.map_err(failed)?;
        let mut notices = store.notices().await.map_err(failed)?;
        let mut open = Open::new();
        let uploads = Uploads { store: &store, blobs, stored: RefCell::default() };
        let (uploads, batch) = (&uploads, open.batch);
        let offers = futures_util::stream::iter(jobs.iter().enumerate());
        let offers =
            offers.map(|(number, job)| async move { (number, offer(uploads, job, batch).await) });
        // Most of the time is spent waiting for the server, so several jobs wait at once.
        let mut offers = offers.buffer_unordered(AT_ONCE);
        let mut is_offered = false;
        // A worker may be done before it is known here that its job is in the queue.
        let mut early: HashSet<Digest> = HashSet::new();
        let mut look = tokio::time::interval(LOOK);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut alone = Alone::default();
        while !is_offered || !open.is_empty() {
            tokio::select! {
                next = offers.next(), if !is_offered => match next {
                    None => is_offered = true,
                    Some((number, Ok(Offer::Queued(text)))) => {
                        let key = jobs[number].key();
                        open.add(key, number, text);
                        if early.remove(&key) {
                            open.collect(key, &store, done).await?;
                        }
                    }
                    Some((number, Ok(Offer::Done(performed)))) => done(number, *performed)?,
                    Some((_, Err(why))) => return Err(failed(why)),
                },
                Some(notice) = notices.next() => {
                    let key = std::str::from_utf8(&notice.payload).ok();
                    if let Some(key) = key.and_then(|key| key.parse().ok()) {
                        let is_known = open.collect(key, &store, done).await?;
                        if !is_known && !is_offered {
                            early.insert(key);
                        }
                    }
                }
                _ = look.tick() => {
                    let (mut found, keys) = (false, open.next(LOOKED_FOR));
                    for key in keys {
                        found |= open.collect(key, &store, done).await?;
                    }
                    if found || !is_offered || open.is_empty() {
                        continue;
                    }
                    if store.waiting().await.map_err(failed)? == 0 {
                        open.publish_again(uploads, jobs).await?;
                    }
                    alone.look(has_workers(&store.consumer).await, self.tell);
                }
            }
        }
        Ok(())
    }
}

/// What became of a job that was to be put into the queue.
enum Offer {
    /// It is there; its text.
    Queued(Vec<u8>),
    /// It need not be, or cannot be.
    Done(Box<Performed>),
}

/// Puts a job into the queue, unless it has been done.
async fn offer(uploads: &Uploads<'_>, job: &Job, batch: u128) -> Result<Offer, NatsError> {
    let (store, key) = (uploads.store, job.key());
    match store.result(key).await? {
        Some(Ok(answer)) => return Ok(Offer::Done(Box::new(Ok(answer)))),
        // What failed before is tried again.
        Some(Err(_)) => store.forget(key).await?,
        None => {}
    }
    let text = serde_json::to_vec(job).map_err(|error| NatsError(error.to_string()))?;
    let (bytes, most) = (text.len(), store.most_bytes());
    if bytes > most {
        return Ok(Offer::Done(Box::new(Err(Failed(format!(
            "the job has {bytes} bytes, and the server takes messages of {most}: raise its max_payload"
        ))))));
    }
    match uploads.put(job).await {
        Ok(()) => {}
        Err(Upload::Input(why)) => return Ok(Offer::Done(Box::new(Err(why)))),
        Err(Upload::Server(why)) => return Err(why),
    }
    store.publish(&message(key, batch, 0), &text).await?;
    Ok(Offer::Queued(text))
}

/// The id of a message. It distinguishes the messages of a batch from those of others with the same jobs.
fn message(key: Digest, batch: u128, round: u32) -> String {
    format!("{key}-{batch:x}-{round}")
}

/// Jobs in the queue.
struct Open {
    /// With the job's number and text.
    jobs: HashMap<Digest, (usize, Vec<u8>)>,
    /// In the order in which they are looked for.
    order: VecDeque<Digest>,
    /// Part of the ids of messages.
    batch: u128,
    rounds: u32,
    /// Jobs that neither the queue nor the store of results had when both were last looked at.
    lost: HashSet<Digest>,
}

impl Open {
    fn new() -> Open {
        let (jobs, order, lost) = (HashMap::new(), VecDeque::new(), HashSet::new());
        Open { jobs, order, batch: own_number(), rounds: 0, lost }
    }

    fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    fn add(&mut self, key: Digest, number: usize, text: Vec<u8>) {
        self.jobs.insert(key, (number, text));
        self.order.push_back(key);
    }

    /// Some jobs to look for, others each time.
    fn next(&mut self, most: usize) -> Vec<Digest> {
        self.order.retain(|key| self.jobs.contains_key(key));
        let count = most.min(self.order.len());
        let next: Vec<Digest> = self.order.iter().take(count).copied().collect();
        self.order.rotate_left(count);
        next
    }

    /// Hands on the result of a job, if there is one and it was not handed on before.
    async fn collect(
        &mut self,
        key: Digest,
        store: &Store,
        done: &mut HandOver<'_>,
    ) -> Result<bool, QueueError> {
        if !self.jobs.contains_key(&key) {
            return Ok(false);
        }
        let Some(performed) = store.result(key).await.map_err(failed)? else { return Ok(false) };
        if let Some((number, _)) = self.jobs.remove(&key) {
            done(number, performed)?;
        }
        Ok(true)
    }

    /// Puts jobs into the queue again that are neither there nor done, since someone has removed them: a result may have been
    /// stored between the two looks, so it takes two to be sure.
    async fn publish_again(
        &mut self,
        uploads: &Uploads<'_>,
        jobs: &[&Job],
    ) -> Result<(), QueueError> {
        let (store, mut lost) = (uploads.store, HashSet::new());
        self.rounds += 1;
        // What they name may have been removed, too.
        uploads.stored.borrow_mut().clear();
        for (&key, (number, text)) in &self.jobs {
            if store.has_result(key).await.map_err(failed)? {
                continue;
            }
            match self.lost.contains(&key) {
                true => {
                    if let Err(Upload::Server(why)) = uploads.put(jobs[*number]).await {
                        return Err(failed(why));
                    }
                    let id = message(key, self.batch, self.rounds);
                    store.publish(&id, text).await.map_err(failed)?;
                }
                false => drop(lost.insert(key)),
            }
        }
        self.lost = lost;
        Ok(())
    }
}

/// Why something could not be stored.
enum Upload {
    Input(Failed),
    Server(NatsError),
}

/// Contents that are on the server, or on their way.
struct Uploads<'u> {
    store: &'u Store,
    blobs: &'u (dyn Blobs + Sync),
    stored: RefCell<HashMap<Digest, Rc<OnceCell<()>>>>,
}

impl Uploads<'_> {
    /// Stores what a job names, each content once.
    async fn put(&self, job: &Job) -> Result<(), Upload> {
        for spec in &job.specs {
            let put = || async {
                let text = self.blobs.text(spec).map_err(Upload::Input)?;
                let name = spec.digest.to_string();
                self.store.put_bytes(&name, text.as_bytes()).await.map_err(Upload::Server)
            };
            self.cell(spec.digest).get_or_try_init(put).await?;
        }
        let put = || async {
            let path = self.blobs.trace(&job.trace).map_err(Upload::Input)?;
            self.store.put_file(job.trace.digest, &path).await.map_err(Upload::Server)?;
            // What was stored under the digest must be what it was taken of.
            self.blobs.ensure_same(&job.trace).map_err(Upload::Input)
        };
        self.cell(job.trace.digest).get_or_try_init(put).await.map(drop)
    }

    /// What whoever else wants a content waits for.
    fn cell(&self, digest: Digest) -> Rc<OnceCell<()>> {
        Rc::clone(self.stored.borrow_mut().entry(digest).or_default())
    }
}

/// Notices that nobody works.
#[derive(Default)]
struct Alone {
    since: Option<Instant>,
    is_told: bool,
}

impl Alone {
    fn look(&mut self, has_workers: bool, tell: &dyn Fn(&str)) {
        if has_workers {
            *self = Alone::default();
            return;
        }
        let since = *self.since.get_or_insert_with(Instant::now);
        if !self.is_told && since.elapsed() > LONELY {
            self.is_told = true;
            tell(&format!(
                "no worker of foresee {VERSION} asks for work: start one with `foresee worker`"
            ));
        }
    }
}
